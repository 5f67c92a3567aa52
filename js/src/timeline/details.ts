/** The pane below the timeline: the selected event, or what a selected box sums up to. Names go in as text only. */

import { h } from "../dom";
import type { Names } from "./data";
import type { Summary } from "./query";
import { formatDuration } from "./ticks";

export interface Field {
  label: string;
  value: string;
  meaning?: string;
  /** What it is called in the file. */
  hint?: string;
}

export interface Action {
  label: string;
  hint?: string;
  run(): void;
}

/** Rows of the table; how many there are is said. */
const MOST_ROWS = 200;

export class Details {
  readonly element = h("div", { class: "tl-details", hidden: true, role: "region", "aria-label": "Details of the selection" });

  clear(): void {
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  showEvent(title: string, fields: readonly Field[], actions: readonly Action[]): void {
    this.element.replaceChildren(h("div", { class: "tl-event" }, h("div", {}, h("h5", {}, title), this.list(fields), this.actions(actions))));
    this.element.hidden = false;
  }

  /** Adds what takes a moment to unpack. A note is about the stats of all events: it is said in full once, then kept behind a mark. */
  addStats(stats: readonly Field[], source: string, note: string): void {
    const mark = note === "" ? null : h("span", { class: "tl-mark", role: "img", tabindex: 0, title: note, "aria-label": note }, "i");
    const title = h("h6", {}, `${stats.length === 0 ? "No stats" : "Stats"}${source}`, mark);
    const said = this.said === note ? "" : note;
    this.said = note;
    this.element.firstElementChild?.append(h("div", { class: "tl-stats" }, title, this.list(stats), said === "" ? null : h("p", {}, said)));
  }

  /** The last note that was said in full. */
  private said = "";

  addAction(action: Action): void {
    this.element.querySelector(".tl-actions")?.append(this.actions([action]).firstElementChild!);
  }

  private list(fields: readonly Field[]): HTMLElement {
    const list = h("dl", {});
    for (const { label, value, meaning, hint } of fields) {
      list.append(h("dt", { title: hint }, label), h("dd", {}, value, meaning ? h("span", { class: "tl-meaning" }, ` – ${meaning}`) : null));
    }
    return list;
  }

  showSummary(title: string, rows: readonly Summary[], names: Names, unitPs: number, choose: (name: number) => void, actions: readonly Action[]): void {
    const time = (ticks: number) => formatDuration(ticks * unitPs);
    const body = h("tbody", {});
    for (const row of rows.slice(0, MOST_ROWS)) {
      const link = h("button", { type: "button", title: names.name[row.name]! }, names.name[row.name]!);
      link.addEventListener("click", () => choose(row.name));
      const cells = [row.count.toLocaleString("en-US"), time(row.total), time(row.self), time(row.total / row.count), time(row.min), time(row.max)];
      body.append(h("tr", {}, h("td", {}, link), ...cells.map((cell) => h("td", {}, cell))));
    }
    const head = ["Name", "Count", "Total", "Self", "Mean", "Min", "Max"].map((text) => h("th", { scope: "col" }, text));
    const more = rows.length > MOST_ROWS ? ` · ${MOST_ROWS} of ${rows.length.toLocaleString("en-US")} names` : "";
    this.element.replaceChildren(h("h5", {}, title + more), this.actions(actions), h("table", {}, h("thead", {}, h("tr", {}, ...head)), body));
    this.element.hidden = false;
  }

  private actions(actions: readonly Action[]): HTMLElement {
    const row = h("div", { class: "tl-actions" });
    for (const action of actions) {
      const button = h("button", { type: "button", title: action.hint }, action.label);
      button.addEventListener("click", () => {
        action.run();
        // Gone with what it was about: the keys are still meant for the timeline.
        if (!button.isConnected || this.element.hidden) this.element.closest<HTMLElement>(".tfprof-tl")?.focus({ preventScroll: true });
      });
      row.append(button);
    }
    return row;
  }
}
