/** Tools, zoom buttons, search, the switch for what is folded away, and the list of keys. */

import { h, uniqueId } from "../dom";
import type { Timeline, Tool } from "./timeline";

const TOOL_BUTTONS: [Tool, string, string][] = [
  ["select", "Select", "Select (1): drag a box for a table of what is in it"],
  ["pan", "Pan", "Pan (2): drag to move, click an event for its details"],
  ["zoom", "Zoom", "Zoom (3): drag over a time to zoom to it"],
  ["timing", "Time", "Timing (4): drag to measure a time; edges of events attract"],
];

const KEYS: [string, string][] = [
  ["W S", "zoom in, out at the pointer"],
  ["A D", "move left, right"],
  ["Home End", "the start, the end of the trace"],
  ["F", "fit the selection"],
  ["Z 0", "the whole trace"],
  ["← →", "previous, next event on the track"],
  ["↑ ↓", "the event above, below"],
  ["1 2 3 4", "select, pan, zoom, timing"],
  ["Shift + drag", "select a box with any tool"],
  ["M", "mark the time of the event"],
  ["/", "search; Enter and Shift + Enter: next, previous hit"],
  ["Esc", "take back: selection, search, marks"],
  ["Wheel", "zoom (Shift: move, Alt: scroll the tracks)"],
  ["Wheel on labels", "scroll the tracks, as do PageUp, PageDown"],
  ["Double click", "zoom to an event"],
];

export class Toolbar {
  readonly element: HTMLElement;
  readonly help: HTMLElement;
  /** What a narrow window has behind a button. */
  readonly more: HTMLElement;
  private readonly menu: HTMLButtonElement;
  private readonly tools = new Map<Tool, HTMLButtonElement>();
  private readonly input = h("input", { type: "search", placeholder: "Search events ( / )", "aria-label": "Search events by name", spellcheck: "false" });
  private readonly regex = h("button", { type: "button", title: "Regular expression", "aria-label": "Regular expression", "aria-pressed": "false" }, ".*");
  private readonly hits = h("span", { class: "tl-hits", role: "status" });
  private readonly hidden = h("input", { type: "checkbox" });

  constructor(
    timeline: Timeline,
    hiddenCount: number,
    hasFlows: boolean,
    signal: AbortSignal,
  ) {
    const group = h("div", { class: "tl-group", role: "radiogroup", "aria-label": "Tool" });
    for (const [tool, label, title] of TOOL_BUTTONS) {
      const button = h("button", { type: "button", role: "radio", title, "aria-checked": tool === "pan", tabindex: tool === "pan" ? 0 : -1 }, label);
      button.addEventListener(
        "click",
        (event) => {
          timeline.setTool(tool);
          // Arrows go from tool to tool for those who came by keys; after a click they are the trace's.
          if (event.detail > 0) timeline.focus();
        },
        { signal },
      );
      this.tools.set(tool, button);
      group.append(button);
    }
    group.addEventListener(
      "keydown",
      (event) => {
        const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
        const all = [...this.tools.keys()];
        const at = all.findIndex((tool) => this.tools.get(tool) === event.target);
        if (by === undefined || at < 0) return;
        const next = all[(at + by + all.length) % all.length]!;
        timeline.setTool(next);
        this.tools.get(next)!.focus();
        event.preventDefault();
        event.stopPropagation();
      },
      { signal },
    );
    const button = (label: string, title: string, run: () => void) => {
      const element = h("button", { type: "button", title, "aria-label": title }, label);
      element.addEventListener("click", run, { signal });
      return element;
    };
    const zoom = h(
      "div",
      { class: "tl-group", role: "group", "aria-label": "Zoom" },
      button("+", "Zoom in (W)", () => timeline.zoomSmoothly(0.5)),
      button("−", "Zoom out (S)", () => timeline.zoomSmoothly(2)),
      button("Fit", "Fit the selection (F)", () => timeline.fit()),
      button("All", "All of the trace (Z)", () => timeline.all()),
    );
    const steps = h(
      "div",
      { class: "tl-group", role: "group", "aria-label": "Hits" },
      this.regex,
      button("‹", "Previous hit (Shift + Enter)", () => timeline.searching.nextHit(true)),
      button("›", "Next hit (Enter)", () => timeline.searching.nextHit(false)),
    );
    const search = h("div", { class: "tl-search", role: "search" }, this.input, steps);
    const count = hiddenCount.toLocaleString("en-US");
    const fold =
      hiddenCount === 0
        ? null
        : h("label", { class: "tl-switch", title: "ThreadpoolListener events: notes of the thread pools about themselves" }, this.hidden, `Thread-pool bookkeeping (${count} events)`);
    const arrows = h("input", { type: "checkbox" });
    arrows.addEventListener("change", () => void timeline.eventArrows.setArrows(arrows.checked), { signal });
    const flows = hasFlows ? h("label", { class: "tl-switch", title: "Arrows of all events in view: launch to kernel, producer to consumer" }, arrows, "Arrows") : null;
    const keys = button("?", "Keys (?)", () => this.toggleHelp());
    this.more = h("div", { class: "tl-more", id: uniqueId("more") }, flows, fold);
    this.menu = h("button", { type: "button", title: "More", "aria-label": "More timeline tools", "aria-expanded": "false", "aria-controls": this.more.id }, "⋯");
    this.menu.addEventListener("click", () => this.toggleMenu(), { signal });
    const last = h("div", { class: "tl-last" }, h("div", { class: "tl-group tl-menu" }, this.menu), this.more, h("div", { class: "tl-group" }, keys));
    this.element = h("div", { class: "tl-bar", role: "toolbar", "aria-label": "Timeline tools" }, group, zoom, search, this.hits, last);
    const outside = (event: Event) => {
      const path = event.composedPath();
      if (path.includes(last)) return;
      if (this.menuIsOpen) this.toggleMenu(false);
      if (!path.includes(this.help)) this.toggleHelp(false);
    };
    for (const event of ["pointerdown", "focusin"]) document.addEventListener(event, outside, { signal });
    last.addEventListener(
      "keydown",
      (event) => {
        if (event.key !== "Escape" || !this.menuIsOpen) return;
        this.toggleMenu(false);
        event.stopPropagation();
      },
      { signal },
    );
    const list = h("dl", {});
    for (const [key, meaning] of KEYS) list.append(h("dt", {}, key), h("dd", {}, meaning));
    this.help = h("div", { class: "tl-help", role: "dialog", "aria-label": "Keys of the timeline", hidden: true }, h("b", {}, "Keys"), list);

    const run = () => void timeline.searching.search(this.input.value, this.regex.getAttribute("aria-pressed") === "true" ? "regex" : "text");
    this.input.addEventListener("input", run, { signal });
    this.regex.addEventListener(
      "click",
      () => {
        this.regex.setAttribute("aria-pressed", String(this.regex.getAttribute("aria-pressed") !== "true"));
        run();
      },
      { signal },
    );
    this.input.addEventListener(
      "keydown",
      (event) => {
        event.stopPropagation();
        if (event.key === "Enter") timeline.searching.nextHit(event.shiftKey);
        else if (event.key === "Escape") {
          this.setSearch("");
          run();
          timeline.root.focus();
        } else return;
        event.preventDefault();
      },
      { signal },
    );
    this.hidden.addEventListener("change", () => void timeline.shownTracks.setHidden(this.hidden.checked), { signal });
    this.help.addEventListener("click", () => this.toggleHelp(false), { signal });
  }

  showTool(tool: Tool): void {
    for (const [each, button] of this.tools) {
      button.setAttribute("aria-checked", String(each === tool));
      button.tabIndex = each === tool ? 0 : -1;
    }
  }

  showHidden(on: boolean): void {
    this.hidden.checked = on;
  }

  setSearch(text: string): void {
    this.input.value = text;
    this.regex.setAttribute("aria-pressed", "false");
  }

  showHits(text: string, wrong: boolean): void {
    this.hits.textContent = text;
    this.input.setAttribute("aria-invalid", String(wrong));
  }

  focusSearch(): void {
    this.input.focus();
    this.input.select();
  }

  get menuIsOpen(): boolean {
    return this.menu.getAttribute("aria-expanded") === "true";
  }

  toggleMenu(open = !this.menuIsOpen): void {
    this.menu.setAttribute("aria-expanded", String(open));
    if (!open && this.more.contains(document.activeElement)) this.menu.focus();
  }

  toggleHelp(show = this.help.hidden): void {
    this.help.hidden = !show;
  }
}
