/** The pane below the timeline: the selected event, or what a selected box sums up to. Names go in as text only. */

import { h } from "../dom";
import type { Names } from "./data";
import { counted, type Summary } from "./summary";
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

/** Rows of the table at first, and how many more at once: thousands take a browser a while. */
const FIRST_ROWS = 200;
const MORE_ROWS = 2000;

type Value = number | string | null;

/** Columns of the table of a box. */
const COLUMNS: [string, (row: Summary, names: Names) => Value][] = [
  ["Name", (row, names) => (row.name === null ? null : names.name[row.name]!)],
  ["Count", (row) => row.count],
  ["Total", (row) => row.total],
  ["Self", (row) => row.self],
  ["Mean", (row) => row.total / row.count],
  ["Min", (row) => row.min],
  ["Max", (row) => row.max],
];
const TOTAL = 2;

/** Rows by a column, those without a value last; of equals, in the order that they are in. */
export function sortedRows(rows: readonly Summary[], names: Names, column: number, descending: boolean): Summary[] {
  const value = COLUMNS[column]![1];
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const keyed = rows.map((row) => ({ row, key: value(row, names) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
    const order = typeof a.key === "string" ? compare(a.key, b.key as string) : a.key - (b.key as number);
    return descending ? -order : order;
  });
  return keyed.map(({ row }) => row);
}

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

  /** The order of the table, kept from box to box. */
  private sorting = { column: TOTAL, descending: true };

  showSummary(title: string, rows: readonly Summary[], names: Names, unitPs: number, choose: (name: number) => void, actions: readonly Action[]): void {
    const time = (ticks: number | null) => (ticks === null ? "–" : formatDuration(ticks * unitPs));
    const body = h("tbody", {});
    const line = (row: Summary): HTMLElement => {
      const cells = [row.count.toLocaleString("en-US"), time(row.total), time(row.self), time(row.total / row.count), time(row.min), time(row.max)];
      if (row.name === null) {
        const hint = "This page was kept small: the names of these events are not in it, nor how long each one is.";
        return h("tr", {}, h("td", { class: "tl-merged", title: hint }, `Merged into ${counted(row.bars, "bar")}: names not in this page`), ...cells.map((cell) => h("td", {}, cell)));
      }
      const name = row.name;
      const link = h("button", { type: "button", title: names.name[name]! }, names.name[name]!);
      link.addEventListener("click", () => choose(name));
      return h("tr", {}, h("td", {}, link), ...cells.map((cell) => h("td", {}, cell)));
    };
    const more = h("div", { class: "tl-actions" });
    const heads = COLUMNS.map(([text], column) => {
      const button = h("button", { type: "button" }, text, h("span", { class: "tl-sorted", "aria-hidden": "true" }));
      button.addEventListener("click", () => {
        const { sorting } = this;
        // Names from A to Z first, numbers from the largest.
        this.sorting = { column, descending: sorting.column === column ? !sorting.descending : column > 0 };
        fill(FIRST_ROWS);
      });
      return h("th", { scope: "col" }, button);
    });
    const fill = (most: number) => {
      const { column, descending } = this.sorting;
      heads.forEach((head, i) => {
        if (i === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
        head.querySelector(".tl-sorted")!.textContent = i !== column ? "" : descending ? " ▾" : " ▴";
      });
      body.replaceChildren(...sortedRows(rows, names, column, descending).slice(0, most).map(line));
      const left = rows.length - most;
      if (left <= 0) return more.replaceChildren();
      const next = Math.min(left, MORE_ROWS);
      const words = next === left ? `Show all ${counted(rows.length, "row")}` : `Show ${counted(next, "row")} more`;
      const button = h("button", { type: "button" }, words);
      button.addEventListener("click", () => {
        const at = body.childElementCount;
        fill(most + next);
        // The button goes away; the keyboard goes on where it was.
        body.children[at]?.querySelector("button")?.focus({ preventScroll: true });
      });
      more.replaceChildren(h("span", {}, `${counted(most, "row")} of ${rows.length.toLocaleString("en-US")} shown`), button);
    };
    const parts: HTMLElement[] = [h("h5", {}, title), this.actions(actions)];
    if (rows.length > 0) {
      fill(FIRST_ROWS);
      parts.push(h("table", {}, h("thead", {}, h("tr", {}, ...heads)), body), more);
    }
    this.element.replaceChildren(...parts);
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
