/** Labels of sections and tracks beside the canvas; only those in view exist. */

import { h } from "../dom";
import type { Track } from "./data";
import { HEADER_PX, type Band } from "./layout";

const LABEL_PX = 22;

export class Gutter {
  readonly element = h("div", { class: "tl-gutter" });
  private readonly base = h("div", { class: "tl-base" });
  private readonly labels = h("div", { class: "tl-labels" });
  private readonly shown = new Map<string, HTMLElement>();
  /** What is shown, to leave the page alone while only the time moves. */
  private state = "";
  private axisHeight = -1;

  constructor(
    private readonly sections: readonly { title: string }[],
    private readonly tracks: readonly Track[],
    toggle: (section: number, track: number) => void,
  ) {
    this.element.append(this.base, this.labels);
    this.labels.addEventListener("click", (event) => {
      const label = (event.target as Element).closest<HTMLElement>(".tl-label");
      if (label !== null) toggle(Number(label.dataset["section"]), Number(label.dataset["track"]));
    });
  }

  /** Where the frame begins, and what the axis's labels count from. */
  setAxis(height: number, base: string): void {
    if (height !== this.axisHeight) {
      this.axisHeight = height;
      this.base.style.height = `${height}px`;
      this.labels.style.top = `${height}px`;
    }
    const text = base === "" ? "" : `${base} +`;
    if (this.base.textContent !== text) this.base.textContent = text;
  }

  show(bands: readonly Band[], scroll: number): void {
    const state = bands.map((band) => `${band.section}:${band.track}:${band.top}:${band.height}:${band.collapsed}`).join() + `@${scroll}`;
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
      label.style.top = `${band.top - scroll}px`;
      label.style.height = `${band.height}px`;
      const button = label.firstElementChild as HTMLElement;
      button.setAttribute("aria-expanded", String(!band.collapsed));
      // The label of a tall track stays in view as long as the track does.
      const down = Math.min(Math.max(0, scroll - band.top), Math.max(0, band.height - LABEL_PX));
      button.style.transform = down > 0 ? `translateY(${down}px)` : "";
      button.style.height = `${Math.min(LABEL_PX, band.height)}px`;
    }
    for (const key of gone) {
      this.shown.get(key)!.remove();
      this.shown.delete(key);
    }
  }

  private make(band: Band): HTMLElement {
    const section = band.track < 0;
    const track = section ? null : this.tracks[band.track]!;
    const text = track?.label ?? this.sections[band.section]!.title;
    // The end of a label tells threads apart: it is kept when the label is cut.
    const [, head, tail] = /^(.*?)( #\d+(?: · .*)?| \(\w+\))?$/s.exec(text)!;
    const triangle = section || track!.lanes > 1;
    const button = h(
      "button",
      { type: "button", title: track === null ? text : `${track.hint}\n${track.count.toLocaleString("en-US")} events`, tabindex: section ? 0 : -1 },
      h("span", { class: "tl-triangle", "aria-hidden": "true" }, triangle ? "▶" : ""),
      h("span", { class: "tl-text" }, head),
      tail === undefined ? null : h("span", { class: "tl-tail" }, tail),
    );
    const label = h("div", { class: `tl-label ${section ? "tl-section" : "tl-track"}`, "data-section": band.section, "data-track": band.track }, button);
    if (section) label.style.minHeight = `${HEADER_PX}px`;
    return label;
  }
}
