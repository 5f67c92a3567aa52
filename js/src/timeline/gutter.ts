/** Labels of sections and tracks beside the canvas; only those in view exist. */

import { h } from "../dom";
import type { Track } from "./data";
import { HEADER_PX, onScreen, type Band } from "./layout";

const LABEL_PX = 22;
const PIN = "Pin to the top";

const keyOf = ({ section, track, wanted }: Band) => `${section}:${track}:${wanted}`;

/** A section's title in a few characters: `GPU:0` of `/device:GPU:0 (pid 0)`. */
const shortly = (title: string) => /(\w+:\d+)(?: \(pid \d+\))?$/.exec(title)?.[1] ?? title;

export interface GutterActions {
  toggle(section: number, track: number): void;
  pin(track: number): void;
  remove(track: number): void;
  filter(text: string): void;
  /** Gives the focus to the timeline itself. */
  focus(): void;
}

export class Gutter {
  readonly element = h("div", { class: "tl-gutter" });
  private readonly base = h("div", { class: "tl-base" });
  private readonly offset = h("span", { class: "tl-offset" });
  private readonly input = h("input", { type: "search", placeholder: "Filter tracks", "aria-label": "Filter tracks by text or regular expression", spellcheck: "false" });
  private readonly labels = h("div", { class: "tl-labels" });
  private readonly whose = h("div", { class: "tl-whose", "aria-hidden": "true", hidden: true });
  private readonly shown = new Map<string, HTMLElement>();
  /** What is shown, to leave the page alone while only the time moves. */
  private state = "";
  private axisHeight = -1;

  constructor(
    private readonly sections: readonly { title: string }[],
    private readonly tracks: readonly Track[],
    private readonly actions: GutterActions,
  ) {
    this.base.append(this.input, this.offset);
    this.element.append(this.base, this.labels);
    this.labels.append(this.whose);
    this.input.addEventListener("input", () => actions.filter(this.input.value));
    this.input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Escape") return;
      this.clearFilter();
      actions.filter("");
      actions.focus();
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
    // Beside it there is no room for more.
    this.input.placeholder = text === "" ? "Filter tracks" : "Filter";
  }

  show(bands: readonly Band[], scroll: number, pinnedHeight: number): void {
    const state = bands.map((band) => `${band.section}:${band.track}:${band.top}:${band.height}:${band.collapsed}:${band.pinned}:${band.wanted}`).join() + `@${scroll}`;
    if (state === this.state) return;
    this.state = state;
    const focused = this.labels.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
    const byKeys = focused?.matches(":focus-visible") ?? false;
    const gone = new Set(this.shown.keys());
    // Whose tracks these are, where the section's own line has left the frame.
    const first = bands.find((band) => !band.pinned);
    const headless = first !== undefined && first.track >= 0 && !first.wanted;
    this.whose.hidden = !headless;
    this.whose.style.top = `${pinnedHeight}px`;
    if (headless) this.whose.textContent = this.whose.title = this.sections[first.section]!.title;
    const covered = pinnedHeight + (headless ? HEADER_PX : 0);
    for (const band of bands) {
      const key = keyOf(band);
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
      const pin = label.querySelector<HTMLElement>("[data-action=pin]");
      pin?.setAttribute("aria-pressed", String(band.wanted === true));
      if (pin) pin.title = band.wanted && !band.pinned ? `${PIN}: it scrolls, as those above it have all the room there is` : PIN;
      // The label of a tall track stays in view as long as the track does.
      const down = band.pinned ? 0 : Math.min(Math.max(0, covered - top), Math.max(0, band.height - LABEL_PX));
      label.style.setProperty("--down", `${down}px`);
      label.style.setProperty("--high", `${Math.min(LABEL_PX, band.height)}px`);
    }
    for (const key of gone) {
      this.shown.get(key)!.remove();
      this.shown.delete(key);
    }
    // From top to bottom, for those who go through them by keys.
    bands.forEach((band, i) => {
      const label = this.shown.get(keyOf(band))!;
      const here = this.labels.children[i + 1];
      if (here !== label) this.labels.insertBefore(label, here ?? null);
    });
    if (focused === null || focused === document.activeElement) return;
    // Moved or gone: whoever goes by keys is still at that track, all others at the timeline.
    const { section, track } = focused.closest<HTMLElement>(".tl-label")!.dataset;
    const name = byKeys ? this.labels.querySelector<HTMLElement>(`[data-section="${section}"][data-track="${track}"] > .tl-name`) : null;
    if (name === null) this.actions.focus();
    else name.focus({ preventScroll: true });
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
      { type: "button", class: "tl-name", "data-action": "toggle", title: hint },
      h("span", { class: "tl-triangle", "aria-hidden": "true" }, triangle ? "▶" : ""),
      // On top of all, tracks of several devices may be called alike.
      band.wanted && this.tracks.some((each) => each !== track && each.label === text) && this.sections[band.section]!.title !== text ? h("span", { class: "tl-of" }, shortly(this.sections[band.section]!.title)) : null,
      h("span", { class: "tl-text" }, head),
      tail === undefined ? null : h("span", { class: "tl-tail" }, tail),
      rest === undefined ? null : h("span", { class: "tl-text tl-rest" }, rest),
    );
    const label = h("div", { class: `tl-label ${section ? "tl-section" : "tl-track"}`, "data-section": band.section, "data-track": band.track }, button);
    if (section) label.style.minHeight = `${HEADER_PX}px`;
    else {
      const act = (action: string, sign: string, title: string) => h("button", { type: "button", "data-action": action, title, "aria-label": `${title}: ${text}` }, sign);
      label.append(h("span", { class: "tl-acts" }, act("pin", "⌃", PIN), act("remove", "×", "Hide this track")));
    }
    return label;
  }
}
