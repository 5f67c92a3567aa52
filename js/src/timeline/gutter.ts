/** Labels of sections and tracks beside the canvas; only those in view exist. */

import { h } from "../dom";
import type { Track } from "./data";
import { HEADER_PX, onScreen, type Band } from "./layout";

const LABEL_PX = 22;

export interface GutterActions {
  toggle(section: number, track: number): void;
  pin(track: number): void;
  remove(track: number): void;
  filter(text: string): void;
}

export class Gutter {
  readonly element = h("div", { class: "tl-gutter" });
  private readonly base = h("div", { class: "tl-base" });
  private readonly offset = h("span", { class: "tl-offset" });
  private readonly input = h("input", { type: "search", placeholder: "Filter tracks", "aria-label": "Filter tracks by text or regular expression", spellcheck: "false" });
  private readonly labels = h("div", { class: "tl-labels" });
  private readonly shown = new Map<string, HTMLElement>();
  /** What is shown, to leave the page alone while only the time moves. */
  private state = "";
  private axisHeight = -1;

  constructor(
    private readonly sections: readonly { title: string }[],
    private readonly tracks: readonly Track[],
    actions: GutterActions,
  ) {
    this.base.append(this.input, this.offset);
    this.element.append(this.base, this.labels);
    this.input.addEventListener("input", () => actions.filter(this.input.value));
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return event.stopPropagation();
      this.clearFilter();
      actions.filter("");
      event.stopPropagation();
    });
    this.labels.addEventListener("click", (event) => {
      const target = event.target as Element;
      const label = target.closest<HTMLElement>(".tl-label");
      if (label === null) return;
      const [section, track] = [Number(label.dataset["section"]), Number(label.dataset["track"])];
      const action = target.closest<HTMLElement>("[data-action]")?.dataset["action"];
      if (action === "pin") actions.pin(track);
      else if (action === "remove") actions.remove(track);
      else if (action === "toggle") actions.toggle(section, track);
    });
  }

  clearFilter(): void {
    this.input.value = "";
  }

  /** Where the frame begins, and what the axis's labels count from. */
  setAxis(height: number, base: string): void {
    if (height !== this.axisHeight) {
      this.axisHeight = height;
      this.base.style.height = `${height}px`;
      this.labels.style.top = `${height}px`;
    }
    const text = base === "" ? "" : `${base} +`;
    if (this.offset.textContent === text) return;
    this.offset.textContent = text;
    this.input.hidden = text !== "" && this.input.value === "";
  }

  show(bands: readonly Band[], scroll: number, pinnedHeight: number): void {
    const state = bands.map((band) => `${band.section}:${band.track}:${band.top}:${band.height}:${band.collapsed}:${band.pinned}`).join() + `@${scroll}`;
    if (state === this.state) return;
    this.state = state;
    const gone = new Set(this.shown.keys());
    for (const band of bands) {
      const key = `${band.section}:${band.track}`;
      gone.delete(key);
      let label = this.shown.get(key);
      if (label === undefined) {
        label = this.make(band);
        this.shown.set(key, label);
        this.labels.append(label);
      }
      const top = onScreen(band, scroll);
      label.style.top = `${top}px`;
      label.style.height = `${band.height}px`;
      label.classList.toggle("tl-pinned", band.pinned);
      const button = label.firstElementChild as HTMLElement;
      button.setAttribute("aria-expanded", String(!band.collapsed));
      label.querySelector("[data-action=pin]")?.setAttribute("aria-pressed", String(band.pinned));
      // The label of a tall track stays in view as long as the track does.
      const down = band.pinned ? 0 : Math.min(Math.max(0, pinnedHeight - top), Math.max(0, band.height - LABEL_PX));
      label.style.setProperty("--down", `${down}px`);
      label.style.setProperty("--high", `${Math.min(LABEL_PX, band.height)}px`);
    }
    for (const key of gone) {
      this.shown.get(key)!.remove();
      this.shown.delete(key);
    }
    // From top to bottom, for those who go through them by keys.
    bands.forEach((band, i) => {
      const label = this.shown.get(`${band.section}:${band.track}`)!;
      const here = this.labels.children[i];
      if (here !== label) this.labels.insertBefore(label, here ?? null);
    });
  }

  private make(band: Band): HTMLElement {
    const section = band.track < 0;
    const track = section ? null : this.tracks[band.track]!;
    const text = track?.label ?? this.sections[band.section]!.title;
    // The number of a thread or stream tells it from others: it is kept when the label is cut.
    const [, head, tail, rest] = /^(.*?)( #\d+(?: · .*)?| \(\w+\))?( ?\(.*\))?$/s.exec(text)!;
    const triangle = section || track!.lanes > 1;
    const hint = track === null ? text : `${this.sections[band.section]!.title}\n${track.hint}\n${track.count.toLocaleString("en-US")} ${track.kind === "counter" ? "changes" : "events"}`;
    const button = h(
      "button",
      { type: "button", class: "tl-name", "data-action": "toggle", title: hint, tabindex: section ? 0 : -1 },
      h("span", { class: "tl-triangle", "aria-hidden": "true" }, triangle ? "▶" : ""),
      h("span", { class: "tl-text" }, head),
      tail === undefined ? null : h("span", { class: "tl-tail" }, tail),
      rest === undefined ? null : h("span", { class: "tl-text tl-rest" }, rest),
    );
    const label = h("div", { class: `tl-label ${section ? "tl-section" : "tl-track"}`, "data-section": band.section, "data-track": band.track }, button);
    if (section) label.style.minHeight = `${HEADER_PX}px`;
    else {
      const act = (action: string, sign: string, title: string) => h("button", { type: "button", "data-action": action, title, "aria-label": `${title}: ${text}`, tabindex: -1 }, sign);
      label.append(h("span", { class: "tl-acts" }, act("pin", "⌃", "Pin to the top"), act("remove", "×", "Hide this track")));
    }
    return label;
  }
}
