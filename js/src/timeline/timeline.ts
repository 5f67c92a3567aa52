/** The timeline: where the window and its tracks are, what is selected, and each frame. Its parts, in files of their own, have the rest. */

import { h, uniqueId } from "../dom";
import { FONT, PALETTES } from "../figure_json";
import type { Picture } from "../save_picture";
import type { Context, Mounted, TimelineItem } from "../types";
import type { Counter } from "./counters";
import { decodeEvents, type Names, type Store, type Track } from "./data";
import { Details } from "./details";
import { EventArrows } from "./event_arrows";
import { EventDetails } from "./event_details";
import { Gutter } from "./gutter";
import { listenToKeys, listenToPointer } from "./interact";
import { Labels } from "./labels";
import { layOut, onScreen, type LaneBox, type Layout } from "./layout";
import { Minimap } from "./minimap";
import { OnDemand, type Way } from "./on_demand";
import { Overlay, type Rect } from "./overlay";
import { parseColor } from "./paint";
import { timelinePicture } from "./picture";
import { Pointing } from "./pointing";
import { busyTime, placeOf, type Place } from "./query";
import { Rows } from "./rows";
import { Scene, type Shown } from "./scene";
import { Searching } from "./searching";
import { ShownTracks } from "./shown_tracks";
import { counted, summarize, summaryWords } from "./summary";
import { Telling } from "./telling";
import { formatDuration, formatTime, ticks } from "./ticks";
import sheet from "./timeline.css";
import { Toolbar } from "./toolbar";
import { unmerge, withNames, type Sent } from "./unmerge";
import { View, type Room } from "./view";
import { Viewport } from "./viewport";

export const TOOLS = ["select", "pan", "zoom", "timing"] as const;
export type Tool = (typeof TOOLS)[number];

export interface Spot extends Place {
  box: LaneBox;
  /** Other events in the same pixel. */
  others: number;
}

interface Range {
  start: number;
  end: number;
}

const SMOOTH_MS = 130;
const SETTLED_MS = 250;
const FIRST_HEIGHT_PX = 500;
const OUTSIDE_PX = 4;
/** From this share of the trace on, time before the first event is left out. */
const MOST_EMPTY = 0.02;
const MOST_STEP_TRACKS = 4;
/** Share of the frame that pinned tracks take, so that there is room to scroll the others. */
const MOST_PINNED = 0.5;

export class Timeline implements Mounted {
  readonly root: HTMLElement;
  readonly viewport: Viewport;
  // Its parts, each with a state of its own.
  readonly shownTracks = new ShownTracks(this);
  readonly pointing = new Pointing(this);
  readonly searching = new Searching(this);
  readonly eventDetails = new EventDetails(this);
  readonly eventArrows = new EventArrows(this);
  readonly telling = new Telling(this);
  readonly overlay = new Overlay((range) => this.removeRange(range));
  scroll = 0;
  tool: Tool = "pan";
  selected: Place | null = null;
  ranges: Range[] = [];
  /** Frames that were made, for those who measure. */
  frames = 0;
  /** Those of them that are on the screen. */
  painted = 0;
  shown: Shown | null = null;
  /** Called with each frame, for what follows the window. */
  moved: (() => void) | null = null;

  readonly stores = new Map<boolean, Store>();
  readonly unit: number;
  private readonly firstEvent: number;
  readonly toolbar: Toolbar;
  readonly gutter: Gutter;
  private readonly minimap: Minimap;
  readonly details = new Details();
  readonly rows: Rows;
  private readonly labels = new Labels(`11px ${FONT}`);
  private scene: Scene;
  /** What the page itself has, and who fetches what it lacks. */
  private readonly page: { store: Store; names: Names };
  readonly onDemand: OnDemand | null;
  private readonly source = h("span", { class: "tl-line tl-source", role: "status", hidden: true });
  /** Row of an event that is to be selected once it is here. */
  private wanted: number | null = null;
  private seen: [number, number] = [NaN, NaN];
  private readonly figure = h("div", { class: "tl-figure" });
  private readonly plot = h("div", { class: "tl-plot" });
  private readonly scroller = h("div", { class: "tl-scroll", tabindex: -1, "aria-hidden": "true" });
  private readonly spacer = h("div");
  private readonly main = h("div", { class: "tl-main" });
  private readonly count = h("span");
  private readonly hint = h("span", { class: "tl-hint" });
  private readonly arrowCount = h("span", { class: "tl-line", hidden: true });
  readonly live = h("div", { class: "tl-sr", "aria-live": "polite" });
  private readonly controller = new AbortController();
  layout: Layout = { pinned: [], pinnedHeight: 0, bands: [], height: 0 };
  private view: View | null = null;
  private room: Room = { left: 0, top: 0, width: 0, height: 0 };
  private frame = 0;
  private settled: ReturnType<typeof setTimeout> | undefined;
  summaryOf: { start: number; end: number; top: number; bottom: number } | null = null;

  constructor(
    host: HTMLElement,
    readonly item: TimelineItem,
    readonly ctx: Context,
    readonly tracks: readonly Track[],
    public names: Names,
    events: Store,
    readonly counters: ReadonlyMap<number, Counter> = new Map(),
  ) {
    this.unit = item.unit_ps;
    this.rows = new Rows(ctx);
    this.stores.set(false, events);
    item.sections.forEach((section, index) => section.collapsed && this.shownTracks.folded.add(`${index}:-1`));
    this.firstEvent = this.findFirst();
    // Where the profiler had started long before, that time is left out, unless there may be hidden events in it.
    const late = !item.hidden && this.firstEvent * this.unit >= MOST_EMPTY * item.span_ps;
    this.viewport = new Viewport(item.span_ps / this.unit, late ? this.firstEvent : 0);
    this.scene = new Scene(names, this.labels, counters);
    this.page = { store: events, names };

    ctx.signal.addEventListener("abort", () => this.controller.abort(), { signal: this.controller.signal });
    const { signal } = this.controller;
    this.onDemand =
      item.part === undefined
        ? null
        : new OnDemand(
            ctx.model,
            item.part,
            { timeline: item.events, rows: events.n },
            {
              windowPs: () => [this.viewport.start * this.unit, (this.viewport.start + this.viewport.length) * this.unit],
              keep: () => [...(this.selected === null ? [] : [this.selected.store.row[this.selected.event]!]), ...(this.wanted === null ? [] : [this.wanted])],
              receive: (sent) => this.receive(sent),
              told: () => this.invalidate(),
            },
            signal,
          );
    const summary = uniqueId("timeline");
    this.toolbar = new Toolbar(this, item.hidden_count ?? 0, item.flows !== undefined, signal);
    this.gutter = new Gutter(item.sections, tracks, {
      toggle: (section, track) => this.shownTracks.toggle(section, track),
      pin: (track) => this.shownTracks.pin(track),
      remove: (track) => this.shownTracks.remove(track),
      filter: (text) => this.shownTracks.setFilter(text),
      focus: () => this.focus(),
    });
    this.shownTracks.someTracks.addEventListener("click", () => this.shownTracks.showAllTracks(), { signal });
    // Steps stay on top of all; those of many devices would take all the room.
    const steps = tracks.flatMap((track, index) => (track.kind === "steps" ? [index] : []));
    if (steps.length <= MOST_STEP_TRACKS) for (const index of steps) this.shownTracks.pinned.add(index);
    this.minimap = new Minimap(
      () => this.whole(),
      (start, end) => {
        this.viewport.set(start, end);
        this.invalidate();
      },
      signal,
    );
    this.plot.append(this.figure, this.overlay.element);
    this.scroller.append(this.spacer);
    this.main.append(this.gutter.element, this.plot, this.scroller);
    const style = h("style");
    style.textContent = sheet;
    this.root = h(
      "div",
      {
        class: "tfprof-tl",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "trace timeline",
        "aria-label": "Trace timeline. Press question mark for its keys.",
        "aria-describedby": summary,
        // JupyterLab's own shortcuts (m, d d, z, …) would take the keys.
        "data-lm-suppress-shortcuts": "true",
      },
      style,
      h("div", { class: "tl-sr", id: summary }, item.alt ?? ""),
      this.toolbar.element,
      h("div", { class: "tl-minirow" }, this.extent(), this.minimap.element),
      this.main,
      h("div", { class: "tl-foot" }, this.count, this.shownTracks.someTracks, this.hint, this.arrowCount, this.source, item.empty_planes?.length ? h("span", { class: "tl-planes" }, `Without events: ${item.empty_planes.join(", ")}`) : null),
      this.details.element,
      this.toolbar.help,
      this.live,
      this.pointing.tip,
    );
    host.append(this.root);
    // For tests and measurements in the page.
    (this.root as HTMLElement & { timeline?: Timeline }).timeline = this;

    this.scroller.addEventListener("scroll", () => this.scrollTo(this.scroller.scrollTop), { signal });
    for (const event of ["focusin", "focusout"]) this.root.addEventListener(event, () => this.showHint(), { signal });
    this.showHint();
    this.setTheme(ctx.theme.dark);
    const stop = ctx.theme.onChange((dark) => this.setTheme(dark));
    signal.addEventListener("abort", stop);
    const follow = () => this.telling.follow();
    const highlight = () => void this.searching.highlight(true);
    ctx.model.on("change:range_ms", follow);
    ctx.model.on("change:highlight", highlight);
    const spot = () => this.telling.selectSpot();
    ctx.model.on("change:spot", spot);
    signal.addEventListener("abort", () => {
      ctx.model.off("change:range_ms", follow);
      ctx.model.off("change:highlight", highlight);
      ctx.model.off("change:spot", spot);
    });
    listenToPointer(this, this.overlay.element, this.gutter.element, signal);
    listenToKeys(this, signal);
  }

  async start(): Promise<void> {
    this.lay();
    this.main.style.height = `${Math.min(FIRST_HEIGHT_PX, this.layout.height + 30)}px`;
    // Before the figure is made: its first layout is then its last.
    this.fitGutter();
    this.view = await View.make(this.figure, this.item.figure, this.main.clientHeight || FIRST_HEIGHT_PX, this.ctx);
    this.view.onResize(() => this.resize());
    let size = this.size;
    const observer = new ResizeObserver(() => {
      // It also calls when it begins to watch.
      if (size !== this.size) this.resize();
      size = this.size;
    });
    observer.observe(this.main);
    this.controller.signal.addEventListener("abort", () => observer.disconnect());
    this.telling.follow();
    this.resize();
    // After the first frame, which finds out how much room there is.
    const told = Array.isArray(this.ctx.model.get("range_ms"));
    requestAnimationFrame(() => {
      void this.searching.highlight(!told);
      this.telling.selectSpot();
    });
  }

  resize(): void {
    if (this.view === null || this.main.clientHeight === 0) return;
    this.fitGutter();
    this.view.height = this.main.clientHeight;
    this.paintMinimap();
    this.invalidate();
  }

  private get size(): string {
    return `${this.main.clientWidth} ${this.main.clientHeight}`;
  }

  private fitGutter(): void {
    // Whole pixels: a canvas between pixels is blurred.
    const gutter = Math.round(Math.min(240, Math.max(172, this.main.clientWidth * 0.21)));
    this.root.style.setProperty("--gutter", `${gutter}px`);
  }

  dispose(): void {
    this.controller.abort();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.settled);
    clearTimeout(this.minimapLater);
    this.view?.dispose();
    this.view = null;
    this.root.remove();
  }

  // ---- what is where ----------------------------------------------------------------------------------------------

  /** When the first event begins. */
  private findFirst(): number {
    let first = Infinity;
    for (const track of this.tracks) {
      const store = track.kind === "steps" || track.hidden ? null : this.storeOf(track);
      if (store === null) continue;
      for (let lane = track.lane; lane < track.lane + track.lanes; lane++) if (store.laneFirst[lane]! < store.laneFirst[lane + 1]!) first = Math.min(first, store.start[store.laneFirst[lane]!]!);
    }
    return Number.isFinite(first) ? first : 0;
  }

  /** Between which times there are events. */
  private extent(): HTMLElement {
    const { unit, item } = this;
    const begin = this.firstEvent * unit;
    // What is less than a pixel is nothing to tell.
    const from = begin < item.span_ps / 1000 ? "0" : formatDuration(begin);
    const title = `The whole trace: the first event begins at ${formatTime(begin, unit)}, the last one ends ${formatDuration(item.span_ps - begin)} later. Times count from the start of the trace.`;
    return h("div", { class: "tl-minilabel", title }, `${from} – ${formatDuration(item.span_ps)}`);
  }

  /** All of the trace, with the margins that the window can show. */
  private whole(): [number, number] {
    return [this.viewport.begin, this.item.span_ps / this.unit];
  }

  get perPx(): number {
    return this.viewport.length / Math.max(1, this.room.width);
  }

  /** The time at the frame's left edge: whole pixels from the start of the trace, so that nothing shimmers when it moves. */
  get left(): number {
    return Math.round(this.viewport.start / this.perPx) * this.perPx;
  }

  timeAt(x: number): number {
    return this.left + x * this.perPx;
  }

  xOf(time: number): number {
    return (time - this.left) / this.perPx;
  }

  /** Where a time is in the frame, cut off a little beyond its edges: browsers draw nothing that is millions of pixels wide. */
  private inFrame(start: number, end: number): [number, number] {
    return [Math.max(-OUTSIDE_PX, this.xOf(start)), Math.min(this.width + OUTSIDE_PX, this.xOf(end))];
  }

  get width(): number {
    return this.room.width;
  }

  get height(): number {
    return this.room.height;
  }

  storeOf(track: Track): Store | null {
    if (track.kind === "counter") return null;
    return this.stores.get(track.hidden) ?? null;
  }

  lay(): void {
    this.layout = layOut({
      sections: this.item.sections,
      tracks: this.tracks,
      storeOf: (track) => this.storeOf(track),
      isCollapsed: (section, track) => this.shownTracks.folded.has(`${section}:${track}`),
      isShown: (index) => this.shownTracks.isShown(index),
      isPinned: (index) => this.shownTracks.pinned.has(index),
      mostPinned: (this.room.height || FIRST_HEIGHT_PX) * MOST_PINNED,
    });
    this.spacer.style.height = `${this.layout.height + this.room.top}px`;
  }

  private hiddenEvents: Promise<void> | null = null;

  loadHidden(): Promise<void> {
    const { hidden } = this.item;
    if (this.stores.has(true) || !hidden) return Promise.resolve();
    // Once, however often it is asked for meanwhile.
    this.hiddenEvents ??= this.ctx.table(hidden).then(
      (table) => void this.stores.set(true, decodeEvents(table, this.tracks.filter((track) => track.hidden))),
    );
    return this.hiddenEvents;
  }

  /** Events from Python take the place of bars. */
  private receive(sent: Sent): void {
    const before = this.stores.get(false)!;
    const store = unmerge(this.page.store, this.tracks, this.unit, sent);
    this.stores.set(false, store);
    this.names = withNames(this.page.names, sent);
    this.scene = new Scene(this.names, this.labels, this.counters);
    this.scene.setTheme(this.root.hasAttribute("data-dark"));
    // What was on the screen knows the former events; the next frame, these.
    this.shown = null;
    this.pointing.hover = null;
    this.pointing.tipOf = -1;
    const { selected } = this;
    if (selected?.store === before) {
      const event = this.sameEvent(selected, store);
      // The same object: those who wait for its details still know it.
      if (event >= 0) Object.assign(selected, { store, event });
      else this.select(null);
    }
    this.lay();
    if (this.searching.searched !== null) void this.searching.search(this.searching.searched.wanted, this.searching.searched.match);
    if (this.wanted !== null) this.selectRow(this.wanted);
    this.invalidate();
  }

  /** Goes to an event that may be one of a bar's: it is selected as soon as it is here. */
  goTo({ row, start_ps, end_ps }: Way): void {
    if (this.selectRow(row)) return;
    const [start, end] = [start_ps / this.unit, end_ps / this.unit];
    const half = Math.max(this.viewport.length / 2, (end - start) * 0.6);
    this.wanted = row;
    this.go((start + end) / 2 - half, (start + end) / 2 + half);
  }

  private selectRow(row: number): boolean {
    const store = this.stores.get(false)!;
    const event = store.row.indexOf(row);
    if (event >= 0) this.select(placeOf(store, event), true);
    return event >= 0;
  }

  /** An event in a store of the same lanes; -1 if it isn't there, such as a bar that was taken apart. */
  private sameEvent(place: Place, store: Store): number {
    const row = place.store.row[place.event]!;
    const start = place.store.start[place.event]!;
    const last = store.laneFirst[place.lane + 1]!;
    for (let event = store.firstStart(start, store.laneFirst[place.lane]!, last); event < last && store.start[event] === start; event++) {
      if (store.row[event] === row) return event;
    }
    return -1;
  }

  /** The box of a lane, where it is in view or out of it; null where its track is folded away. */
  private boxOf(store: Store, lane: number): LaneBox | null {
    for (const band of [...this.layout.pinned, ...this.layout.bands]) {
      for (const box of band.boxes) if (box.store === store && box.lane === lane) return box;
    }
    return null;
  }

  trackOf(store: Store, lane: number): number {
    return this.tracks.findIndex((track) => this.storeOf(track) === store && lane >= track.lane && lane < track.lane + track.lanes);
  }

  rectOf(place: Place): Rect | null {
    const box = this.boxOf(place.store, place.lane);
    if (box === null) return null;
    const left = this.xOf(place.store.start[place.event]!);
    const right = Math.max(left + 2, this.xOf(place.store.end[place.event]!));
    if (right < -2 || left > this.width + 2) return null;
    const top = onScreen(box, this.scroll);
    const bottom = top + box.bottom - box.top;
    if (!box.pinned && bottom < this.layout.pinnedHeight) return null;
    return { left: Math.max(-4, left) - 1, right: Math.min(this.width + 4, right) + 1, top: top - 1, bottom: bottom + 1 };
  }

  // ---- moving -----------------------------------------------------------------------------------------------------

  private get smooth(): number {
    return matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : SMOOTH_MS;
  }

  panPx(dx: number, dy: number): void {
    if (dx !== 0) this.viewport.pan(dx * this.perPx);
    if (dy !== 0) this.scrollTo(this.scroll + dy);
    this.invalidate();
  }

  zoomAt(factor: number, x: number): void {
    this.viewport.zoom(factor, this.viewport.start + x * this.perPx);
    this.invalidate();
  }

  zoomSmoothly(factor: number): void {
    const around = this.pointing.pointer === null ? this.viewport.start + this.viewport.length / 2 : this.timeAt(this.pointing.pointer.x);
    this.viewport.zoomSmoothly(factor, around, performance.now(), this.smooth);
    this.invalidate();
  }

  panSmoothly(share: number): void {
    this.viewport.panSmoothly(share, performance.now(), this.smooth);
    this.invalidate();
  }

  all(): void {
    const [start, end] = this.whole();
    const margin = (end - start) * 0.01;
    this.go(start - margin, end + margin);
  }

  goToEdge(edge: "start" | "end"): void {
    const [low, high] = this.whole();
    const [start, end] = this.viewport.target;
    const left = edge === "start" ? low : high - (end - start);
    if (end - start < high - low) this.go(left, left + end - start);
  }

  go(start: number, end: number): void {
    this.viewport.moveTo(start, end, performance.now(), this.smooth);
    this.invalidate();
  }

  /** Fits the selection, else all. */
  fit(): void {
    if (this.selected !== null) {
      const { store, event } = this.selected;
      const [start, end] = [store.start[event]!, store.end[event]!];
      const margin = Math.max(end - start, 10) * 0.15;
      this.go(start - margin, end + margin);
    } else if (this.summaryOf !== null) this.go(this.summaryOf.start, this.summaryOf.end);
    else this.all();
  }

  private scrolled(top: number): number {
    const most = Math.max(0, this.layout.height - this.room.height);
    return Math.round(Math.min(Math.max(0, top), most));
  }

  canScroll(by: number): boolean {
    return this.scrolled(this.scroll + by) !== this.scroll;
  }

  scrollTo(top: number): void {
    const scroll = this.scrolled(top);
    if (Math.abs(this.scroller.scrollTop - scroll) >= 1) this.scroller.scrollTop = scroll;
    if (scroll === this.scroll) return;
    this.scroll = scroll;
    this.invalidate();
  }

  /** Whether there is more than fits. */
  get scrolls(): boolean {
    return this.layout.height > this.room.height;
  }

  // ---- tools, selection, marks ------------------------------------------------------------------------------------

  setTool(tool: Tool): void {
    this.tool = tool;
    this.overlay.element.dataset["tool"] = tool;
    this.toolbar.showTool(tool);
    this.showHint();
  }

  select(place: Place | null, reveal = false): void {
    this.selected = place;
    this.wanted = null;
    this.summaryOf = null;
    if (place === null) this.details.clear();
    else {
      this.eventDetails.showDetails(place);
      if (reveal) this.reveal(place);
    }
    this.telling.tellSelection();
    this.telling.share();
    this.invalidate();
  }

  /** Unfolds and scrolls to an event's track, and if `moves` shows its time. */
  reveal(place: Place, moves = true): void {
    const track = this.tracks[this.trackOf(place.store, place.lane)]!;
    if (this.boxOf(place.store, place.lane) === null || this.shownTracks.folded.has(`${track.section}:-1`)) {
      this.shownTracks.folded.delete(`${track.section}:-1`);
      if (track.hidden) {
        this.shownTracks.showHidden = true;
        this.toolbar.showHidden(true);
      }
      if (!this.shownTracks.isShown(this.tracks.indexOf(track))) this.shownTracks.showAllTracks();
      this.shownTracks.relay();
    }
    const box = this.boxOf(place.store, place.lane);
    const { pinnedHeight } = this.layout;
    if (box !== null && !box.pinned && (box.top < this.scroll + pinnedHeight + 4 || box.bottom > this.scroll + this.height - 4)) {
      this.scrollTo((box.top + box.bottom) / 2 - (this.height + pinnedHeight) / 2);
    }
    if (!moves) return;
    const [from, to] = [place.store.start[place.event]!, place.store.end[place.event]!];
    const [start, end] = this.viewport.target;
    const length = end - start;
    if (to - from > length) this.go(from - (to - from) * 0.1, to + (to - from) * 0.1);
    else if (from < start || to > end) {
      // In the middle, but not with time beside it where nothing is.
      const [low, high] = this.whole();
      const most = Math.max(low, high - length);
      const left = Math.min(from, Math.min(Math.max((from + to - length) / 2, low), most));
      this.go(left, left + length);
    }
  }

  /** What a box on the timeline sums up to; pixels of the frame. */
  selectBox(rect: Rect): void {
    // The margins before and after the trace are no part of it.
    const [low, high] = this.whole();
    const [start, end] = [rect.left, rect.right].map((x) => Math.min(Math.max(this.timeAt(x), low), high)) as [number, number];
    this.selected = null;
    // An edge on what is pinned stays, as that does; all others scroll.
    const { pinnedHeight } = this.layout;
    const [top, bottom] = [rect.top, rect.bottom].map((y) => (y < pinnedHeight ? y : y + this.scroll)) as [number, number];
    this.summaryOf = { start, end, top, bottom };
    const boxes = (this.shown?.boxes ?? []).filter((box) => {
      const top = onScreen(box, this.scroll);
      const bottom = top + box.bottom - box.top;
      return bottom > rect.top && top < rect.bottom && (box.pinned || bottom > pinnedHeight);
    });
    const lanes = boxes.map((box) => ({ store: box.store, lane: box.lane, track: this.tracks[box.track]! }));
    const { names } = this;
    const summed = summarize(lanes, names, start, end);
    const busy = end > start ? busyTime(lanes, start, end) / (end - start) : 0;
    this.details.showSummary(
      summaryWords(summed, (end - start) * this.unit, busy),
      summed.rows,
      names,
      this.unit,
      (name) => this.searching.searchFor(names.name[name]!),
      [
        { label: "Fit (F)", run: () => this.fit() },
        { label: "Close", run: () => this.select(null) },
      ],
    );
    this.telling.tellSelection(boxes);
    this.telling.share();
    this.invalidate();
  }

  /** The event before or after the selected one in its lane, or the first at its time above or below it. */
  neighbour(direction: "left" | "right" | "up" | "down"): void {
    if (this.selected === null) {
      if (direction === "left" || direction === "right") this.panSmoothly(direction === "left" ? -0.2 : 0.2);
      else this.scrollTo(this.scroll + (direction === "up" ? -60 : 60));
      return;
    }
    const { store, lane, event } = this.selected;
    const first = store.laneFirst[lane]!;
    const last = store.laneFirst[lane + 1]!;
    if (direction === "left" && event > first) this.select({ store, lane, event: event - 1 }, true);
    if (direction === "right" && event + 1 < last) this.select({ store, lane, event: event + 1 }, true);
    if (direction === "up" || direction === "down") {
      const track = this.tracks[this.trackOf(store, lane)]!;
      const down = direction === "up" ? -1 : 1;
      const [start, end] = [store.start[event]!, store.end[event]!];
      // Ticks are whole: what begins together with an instant is above or below it.
      for (let next = lane + down; next >= track.lane && next < track.lane + track.lanes; next += down) {
        const [found, stop] = store.inside(next, start, Math.max(end, start + 1));
        if (found < stop) return this.select({ store, lane: next, event: found }, true);
      }
    }
  }

  addRange(start: number, end: number): void {
    if (end > start && !this.ranges.some((range) => range.start === start && range.end === end)) this.ranges.push({ start, end });
    this.invalidate();
  }

  private removeRange(index: number): void {
    this.ranges.splice(index, 1);
    // Its button had the focus.
    this.focus();
    this.invalidate();
  }

  markSelected(): void {
    const place = this.selected ?? this.pointing.hover;
    if (place !== null) this.addRange(place.store.start[place.event]!, place.store.end[place.event]!);
    else if (this.summaryOf !== null) this.addRange(this.summaryOf.start, this.summaryOf.end);
  }

  /** Takes back one thing at a time: help, the selection, the search, the marks. */
  escape(): void {
    if (this.toolbar.menuIsOpen) this.toolbar.toggleMenu(false);
    else if (!this.toolbar.help.hidden) this.toolbar.toggleHelp(false);
    else if (this.selected !== null || this.summaryOf !== null) this.select(null);
    else if (this.searching.hits !== null) this.searching.searchFor("");
    else this.ranges = [];
    this.invalidate();
  }

  toggleHelp(): void {
    this.toolbar.toggleHelp();
  }

  focusSearch(): void {
    this.toolbar.focusSearch();
  }

  /** Keys and the wheel are meant for the timeline from now on. */
  focus(): void {
    this.root.focus({ preventScroll: true });
  }

  /** Whether keys and the wheel are meant for the timeline. */
  get active(): boolean {
    return this.root.contains(document.activeElement) || this.root.matches(":focus-within");
  }

  // ---- drawing ----------------------------------------------------------------------------------------------------

  private setTheme(dark: boolean): void {
    this.root.toggleAttribute("data-dark", dark);
    this.scene.setTheme(dark);
    this.paintMinimap();
    this.invalidate();
  }

  /** After what is asked for more urgently: the timeline itself. */
  private paintMinimap(): void {
    clearTimeout(this.minimapLater);
    this.minimapLater = setTimeout(() => this.paintMinimapNow(), 30);
  }

  private minimapLater: ReturnType<typeof setTimeout> | undefined;

  private paintMinimapNow(): void {
    if (this.view === null) return;
    const paper = parseColor(PALETTES[this.ctx.theme.dark ? "dark" : "light"].paper);
    const rows = this.tracks.flatMap((track) => {
      const store = this.storeOf(track);
      return track.hidden || store === null ? [] : [{ store, lane: track.lane }];
    });
    this.minimap.paint(rows, this.names.color, paper);
  }

  private showHint(): void {
    const drag = { select: "drag a box for a table", pan: "drag pans", zoom: "drag over a time to zoom to it", timing: "drag measures" }[this.tool];
    const text = this.active ? `Wheel zooms · ${drag} · ? for keys` : "Click to zoom with wheel and keys";
    if (this.hint.textContent !== text) this.hint.textContent = text;
  }

  /** Draws in the next frame of the screen; all changes until then are one. */
  invalidate(): void {
    if (this.frame !== 0 || this.view === null) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = 0;
      this.render(now);
    });
  }

  private render(now: number): void {
    const { view } = this;
    if (view === null) return;
    const room = view.room;
    if (room.width <= 0 || room.height <= 0) return;
    if (room.left !== this.room.left || room.top !== this.room.top || room.width !== this.room.width || room.height !== this.room.height) {
      const relay = room.top !== this.room.top || room.height !== this.room.height;
      this.room = room;
      if (relay) this.lay();
      const { style } = this.overlay.element;
      style.left = `${room.left}px`;
      style.top = `${room.top}px`;
      style.width = `${room.width}px`;
      style.height = `${room.height}px`;
      this.scrollTo(this.scroll);
    }
    if (this.viewport.advance(now)) this.invalidate();
    this.moved?.();

    const { perPx, left, unit } = this;
    const shown = this.scene.make(
      this.layout,
      { start: left, perPx, scroll: this.scroll, width: room.width, height: room.height },
      this.searching.hits === null ? null : this.searching.hits.marks,
    );
    const axis = ticks(left * unit, (left + room.width * perPx) * unit, room.width);
    shown.frame.ticks = { at: axis.at.map((ps) => this.xOf(ps / unit)), labels: axis.labels };
    view.show(shown.frame);
    this.painted++;
    this.shown = shown;
    this.frames++;

    this.gutter.setAxis(room.top, axis.base);
    this.gutter.show(shown.bands, this.scroll, this.layout.pinnedHeight);
    this.minimap.show(this.viewport.start, this.viewport.end);
    this.overlay.showSelected(this.selected === null ? null : this.rectOf(this.selected));
    this.overlay.showRanges(
      this.ranges.map((range) => {
        const [left, right] = this.inFrame(range.start, range.end);
        const [from, to] = [range.start, range.end].map((time) => formatTime(Math.round(time) * unit, unit));
        return { left, right, label: formatDuration((range.end - range.start) * unit), hint: `${from} – ${to}` };
      }),
      room.width,
      room.height,
    );
    this.eventArrows.drawArrows();
    if (this.summaryOf !== null) {
      const { start, end } = this.summaryOf;
      const { pinnedHeight } = this.layout;
      const [top, bottom] = [this.summaryOf.top, this.summaryOf.bottom].map((y) => (y < pinnedHeight ? y : Math.max(pinnedHeight, y - this.scroll))) as [number, number];
      const [left, right] = this.inFrame(start, end);
      this.overlay.showDrag(left < right && top < bottom ? { left, right, top, bottom } : null);
    } else if (!this.overlay.element.classList.contains("tl-dragging")) this.overlay.showDrag(null);
    this.pointing.showHover();
    const count = (n: number) => n.toLocaleString("en-US");
    const merged = shown.total - shown.alone;
    const [whole0, whole1] = this.whole();
    const [from, to] = [Math.max(left, whole0), Math.min(left + room.width * perPx, whole1)];
    // The margins before and after the trace are no part of it.
    const time = formatDuration(Math.max(0, to - from) * unit) + (from <= whole0 && to >= whole1 ? " (all)" : "");
    const words =
      `In view: ${time}, ${shown.isAbout ? "about " : ""}${counted(shown.total, "event")}` +
      (merged > 0 ? `: ${count(shown.alone)} one by one, ${count(merged)} short ${merged === 1 ? "one" : "ones"} merged into bars` : "");
    if (words !== this.count.textContent) this.count.textContent = words;
    // A line of its own: what is above it must not wrap now and then while the window moves.
    this.arrowCount.hidden = this.eventArrows.arrowWords === "";
    if (this.eventArrows.arrowWords !== this.arrowCount.textContent) this.arrowCount.textContent = this.eventArrows.arrowWords;
    const source = this.onDemand?.words ?? "";
    this.source.hidden = source === "";
    if (source !== this.source.textContent) this.source.textContent = source;
    if (this.viewport.start !== this.seen[0] || this.viewport.length !== this.seen[1]) {
      this.seen = [this.viewport.start, this.viewport.length];
      this.onDemand?.rested();
    }
    clearTimeout(this.settled);
    this.settled = setTimeout(() => {
      view.keep();
      this.telling.share();
    }, SETTLED_MS);
  }

  /** What is on the screen, to be saved. */
  get picture(): Picture {
    return timelinePicture(this.item.title ?? "Trace", this.root, this.figure, this.view?.figure);
  }

}
