/** The timeline's state, and what follows from it on the page. */

import { errorMessage, h, uniqueId } from "../dom";
import { FONT, PALETTES } from "../figure_json";
import { scrollToReport, type Spot as WantedSpot } from "../show_in_trace";
import type { Picture } from "../save_picture";
import type { Context, Mounted, TimelineItem, TimelineSelection } from "../types";
import { ABOVE, ABSENT, Arrows, BELOW, IN_VIEW } from "./arrows";
import { formatCount, valueAt, type Counter } from "./counters";
import { decodeEvents, type Names, type Store, type Track } from "./data";
import { Details, type Field } from "./details";
import { Flows, type Arrow } from "./flows";
import { Gutter } from "./gutter";
import { listenToKeys, listenToPointer } from "./interact";
import { Labels } from "./labels";
import { layOut, onScreen, type LaneBox, type Layout } from "./layout";
import { Minimap } from "./minimap";
import { OnDemand, type Way } from "./on_demand";
import { Overlay, type Bend, type Rect } from "./overlay";
import { timelinePicture } from "./picture";
import { parseColor } from "./paint";
import { busyTime, eventAt, findHits, isOwn, matchNames, pythonCall, selfTime, step, summarize, type Hits, type Match, type Place } from "./query";
import { Rows } from "./rows";
import { Scene, type Shown } from "./scene";
import { formatDuration, formatTime, ticks } from "./ticks";
import { Stats } from "./stats";
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

/** Pixels within which the pointer finds an event, and an edge to snap to. */
const REACH_PX = 3;
const SNAP_PX = 7;
const READABLE_PX = 24;
const MOST_ARROWS = 300;
const SMOOTH_MS = 130;
const SETTLED_MS = 250;
const FIRST_HEIGHT_PX = 500;
/** From this share of the trace on, time before the first event is left out. */
const MOST_EMPTY = 0.02;
const MOST_STEP_TRACKS = 4;
/** Names of changes of memory. */
const MOST_LOOKED_AT = 1000;
const [ALLOCATION, DEALLOCATION] = ["MemoryAllocation", "MemoryDeallocation"];

export class Timeline implements Mounted {
  readonly root: HTMLElement;
  readonly viewport: Viewport;
  readonly overlay = new Overlay();
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

  private readonly stores = new Map<boolean, Store>();
  private readonly unit: number;
  private readonly firstEvent: number;
  readonly toolbar: Toolbar;
  private readonly gutter: Gutter;
  private readonly minimap: Minimap;
  private readonly details = new Details();
  private readonly rows: Rows;
  private readonly labels = new Labels(`11px ${FONT}`);
  private scene: Scene;
  /** What the page itself has, and who fetches what it lacks. */
  private readonly page: { store: Store; names: Names };
  private readonly onDemand: OnDemand | null;
  private readonly source = h("span", { class: "tl-line tl-source", role: "status", hidden: true });
  /** Row of an event that is to be selected once it is here. */
  private wanted: number | null = null;
  private searched: { wanted: string; match: Match } | null = null;
  private seen: [number, number] = [NaN, NaN];
  private readonly figure = h("div", { class: "tl-figure" });
  private readonly plot = h("div", { class: "tl-plot" });
  private readonly scroller = h("div", { class: "tl-scroll", tabindex: -1, "aria-hidden": "true" });
  private readonly spacer = h("div");
  private readonly main = h("div", { class: "tl-main" });
  private readonly count = h("span");
  private readonly hint = h("span", { class: "tl-hint" });
  private readonly arrowCount = h("span", { class: "tl-line", hidden: true });
  private readonly tip = h("div", { class: "tl-tip", role: "tooltip", hidden: true });
  private readonly live = h("div", { class: "tl-sr", "aria-live": "polite" });
  private readonly folded = new Set<string>();
  private readonly pinned = new Set<number>();
  private readonly removed = new Set<number>();
  private filter: RegExp | null = null;
  private readonly someTracks = h("button", { type: "button", class: "tl-some", hidden: true });
  private readonly controller = new AbortController();
  private layout: Layout = { pinned: [], pinnedHeight: 0, bands: [], height: 0 };
  private view: View | null = null;
  private room: Room = { left: 0, top: 0, width: 0, height: 0 };
  private frame = 0;
  private settled: ReturnType<typeof setTimeout> | undefined;
  private hits: Hits | null = null;
  private hover: Spot | null = null;
  private pointer: { x: number; y: number; clientX: number; clientY: number } | null = null;
  private showHidden = false;
  private stats: Promise<Stats> | null = null;
  private flows: Flows | null = null;
  private arrowsOfAll = false;
  /** All arrows, ordered for drawing; made when they are first asked for. */
  private arrows: Arrows | null = null;
  /** Event of each row of the table of what is not hidden. */
  private eventOfRow: Uint32Array | null = null;
  private arrowWords = "";
  private summaryOf: { start: number; end: number; top: number; bottom: number } | null = null;

  constructor(
    host: HTMLElement,
    private readonly item: TimelineItem,
    private readonly ctx: Context,
    private readonly tracks: readonly Track[],
    private names: Names,
    events: Store,
    private readonly counters: ReadonlyMap<number, Counter> = new Map(),
  ) {
    this.unit = item.unit_ps;
    this.rows = new Rows(ctx);
    this.stores.set(false, events);
    item.sections.forEach((section, index) => section.collapsed && this.folded.add(`${index}:-1`));
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
      toggle: (section, track) => this.toggle(section, track),
      pin: (track) => this.pin(track),
      remove: (track) => this.remove(track),
      filter: (text) => this.setFilter(text),
    });
    this.someTracks.addEventListener("click", () => this.showAllTracks(), { signal });
    // Steps stay on top of all; those of many devices would take all the room.
    const steps = tracks.flatMap((track, index) => (track.kind === "steps" ? [index] : []));
    if (steps.length <= MOST_STEP_TRACKS) for (const index of steps) this.pinned.add(index);
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
      h("div", { class: "tl-foot" }, this.count, this.someTracks, this.hint, this.arrowCount, this.source, item.empty_planes?.length ? h("span", { class: "tl-planes" }, `Without events: ${item.empty_planes.join(", ")}`) : null),
      this.details.element,
      this.toolbar.help,
      this.live,
      this.tip,
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
    const follow = () => this.follow();
    const highlight = () => void this.highlight(true);
    ctx.model.on("change:range_ms", follow);
    ctx.model.on("change:highlight", highlight);
    const spot = () => this.selectSpot();
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
    this.view = await View.make(this.figure, this.item.figure, this.ctx);
    this.view.height = this.main.clientHeight;
    this.view.onResize(() => this.resize());
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.main);
    this.controller.signal.addEventListener("abort", () => observer.disconnect());
    this.follow();
    this.resize();
    // After the first frame, which finds out how much room there is.
    const told = Array.isArray(this.ctx.model.get("range_ms"));
    requestAnimationFrame(() => {
      void this.highlight(!told);
      this.selectSpot();
    });
  }

  resize(): void {
    if (this.view === null || this.main.clientHeight === 0) return;
    // Whole pixels: a canvas between pixels is blurred.
    const gutter = Math.round(Math.min(240, Math.max(172, this.main.clientWidth * 0.21)));
    this.root.style.setProperty("--gutter", `${gutter}px`);
    this.view.height = this.main.clientHeight;
    this.paintMinimap();
    this.invalidate();
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
  private get left(): number {
    return Math.round(this.viewport.start / this.perPx) * this.perPx;
  }

  timeAt(x: number): number {
    return this.left + x * this.perPx;
  }

  xOf(time: number): number {
    return (time - this.left) / this.perPx;
  }

  get width(): number {
    return this.room.width;
  }

  get height(): number {
    return this.room.height;
  }

  private storeOf(track: Track): Store | null {
    if (track.kind === "counter") return null;
    return this.stores.get(track.hidden) ?? null;
  }

  private lay(): void {
    this.layout = layOut({
      sections: this.item.sections,
      tracks: this.tracks,
      storeOf: (track) => this.storeOf(track),
      isCollapsed: (section, track) => this.folded.has(`${section}:${track}`),
      isShown: (index) => this.isShown(index),
      isPinned: (index) => this.pinned.has(index),
    });
    this.spacer.style.height = `${this.layout.height + this.room.top}px`;
  }

  private isShown(index: number): boolean {
    const track = this.tracks[index]!;
    if (track.hidden && !this.showHidden) return false;
    if (this.removed.has(index)) return false;
    // Pinned ones are wanted whatever the others are filtered by.
    const { filter } = this;
    if (filter === null || this.pinned.has(index)) return true;
    return [track.label, track.hint, this.item.sections[track.section]!.title].some((text) => filter.test(text));
  }

  /** Lays the tracks out again after what is shown, folded or pinned has changed. */
  private relay(): void {
    this.lay();
    this.scrollTo(this.scroll);
    const all = this.tracks.filter((track) => !track.hidden || this.showHidden).length;
    const shown = this.tracks.filter((_, index) => this.isShown(index)).length;
    this.someTracks.hidden = shown === all;
    this.someTracks.textContent = `${shown} of ${all} tracks shown: show all`;
    this.invalidate();
  }

  pin(track: number): void {
    if (!this.pinned.delete(track)) this.pinned.add(track);
    this.relay();
  }

  remove(track: number): void {
    this.removed.add(track);
    this.relay();
  }

  /** Only tracks whose label (or section, or thread's name) has a text in it, or matches a regular expression. */
  setFilter(text: string): void {
    try {
      this.filter = text === "" ? null : new RegExp(text, "i");
    } catch {
      this.filter = new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
    }
    this.relay();
  }

  private showAllTracks(): void {
    this.removed.clear();
    this.filter = null;
    this.gutter.clearFilter();
    this.relay();
  }

  toggle(section: number, track: number): void {
    if (track >= 0 && this.tracks[track]!.lanes < 2) return;
    const key = `${section}:${track}`;
    if (!this.folded.delete(key)) this.folded.add(key);
    this.relay();
  }

  async setHidden(show: boolean): Promise<void> {
    if (show) await this.loadHidden();
    this.showHidden = show;
    this.relay();
  }

  private async loadHidden(): Promise<void> {
    if (this.stores.has(true) || !this.item.hidden) return;
    const table = await this.ctx.table(this.item.hidden);
    this.stores.set(true, decodeEvents(table, this.tracks.filter((track) => track.hidden)));
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
    this.hover = null;
    this.tipOf = -1;
    const { selected } = this;
    if (selected?.store === before) {
      const event = this.sameEvent(selected, store);
      // The same object: those who wait for its details still know it.
      if (event >= 0) Object.assign(selected, { store, event });
      else this.select(null);
    }
    this.lay();
    if (this.searched !== null) void this.search(this.searched.wanted, this.searched.match);
    if (this.wanted !== null) this.selectRow(this.wanted);
    this.invalidate();
  }

  /** Goes to an event that may be one of a bar's: it is selected as soon as it is here. */
  private goTo({ row, start_ps, end_ps }: Way): void {
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

  private trackOf(store: Store, lane: number): number {
    return this.tracks.findIndex((track) => this.storeOf(track) === store && lane >= track.lane && lane < track.lane + track.lanes);
  }

  private boxAt(y: number): LaneBox | undefined {
    const pinned = y < this.layout.pinnedHeight;
    const down = pinned ? y : y + this.scroll;
    return this.shown?.boxes.find((box) => box.pinned === pinned && down >= box.top && down < box.bottom + 1);
  }

  /** What the pointer is on. */
  spotAt(x: number, y: number): Spot | null {
    if (this.shown === null) return null;
    const box = this.boxAt(y);
    if (box === undefined) return null;
    const { store, lane } = box;
    const { perPx } = this;
    const time = this.timeAt(x);
    const first = store.laneFirst[lane]!;
    const last = store.laneFirst[lane + 1]!;
    const low = store.firstEnd(time, first, last);
    const high = store.firstStart(time + perPx, low, last);
    const event = high > low ? store.longest(low, high) : eventAt(store, lane, time + perPx / 2, REACH_PX * perPx);
    return event < 0 ? null : { store, lane, event, box, others: Math.max(0, high - low - 1) };
  }

  private rectOf(place: Place): Rect | null {
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

  /** The edge of an event near a point, for marks to snap to. */
  snap(x: number, y: number): number {
    const box = this.boxAt(y);
    const time = this.timeAt(x);
    if (box === undefined) return time;
    const { store, lane } = box;
    const first = store.laneFirst[lane]!;
    const last = store.laneFirst[lane + 1]!;
    const near = store.firstEnd(time, first, last);
    let best = time;
    let distance = SNAP_PX * this.perPx;
    for (let event = Math.max(first, near - 1); event < Math.min(last, near + 2); event++) {
      for (const edge of [store.start[event]!, store.end[event]!]) {
        if (Math.abs(edge - time) < distance) {
          distance = Math.abs(edge - time);
          best = edge;
        }
      }
    }
    return best;
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
    const around = this.pointer === null ? this.viewport.start + this.viewport.length / 2 : this.timeAt(this.pointer.x);
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

  scrollTo(top: number): void {
    const most = Math.max(0, this.layout.height - this.room.height);
    const scroll = Math.round(Math.min(Math.max(0, top), most));
    if (Math.abs(this.scroller.scrollTop - scroll) >= 1) this.scroller.scrollTop = scroll;
    if (scroll === this.scroll) return;
    this.scroll = scroll;
    this.invalidate();
  }

  /** Whether there is more than fits. */
  get scrolls(): boolean {
    return this.layout.height > this.room.height;
  }

  // ---- tools, selection, search -----------------------------------------------------------------------------------

  setTool(tool: Tool): void {
    this.tool = tool;
    this.overlay.element.dataset["tool"] = tool;
    this.toolbar.showTool(tool);
  }

  select(place: Place | null, reveal = false): void {
    this.selected = place;
    this.wanted = null;
    this.summaryOf = null;
    if (place === null) this.details.clear();
    else {
      this.showDetails(place);
      if (reveal) this.reveal(place);
    }
    this.tellSelection();
    this.share();
    this.invalidate();
  }

  /** Unfolds and scrolls to an event's track, and if `moves` shows its time. */
  private reveal(place: Place, moves = true): void {
    const track = this.tracks[this.trackOf(place.store, place.lane)]!;
    if (this.boxOf(place.store, place.lane) === null || this.folded.has(`${track.section}:-1`)) {
      this.folded.delete(`${track.section}:-1`);
      if (track.hidden) {
        this.showHidden = true;
        this.toolbar.showHidden(true);
      }
      if (!this.isShown(this.tracks.indexOf(track))) this.showAllTracks();
      this.relay();
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
    else if (from < start + length * 0.02 || to > end - length * 0.02) this.go((from + to - length) / 2, (from + to + length) / 2);
  }

  private stepOf(place: Place): string {
    const time = place.store.start[place.event]!;
    const steps = this.tracks.filter((track) => track.kind === "steps");
    const section = this.item.sections[this.tracks[this.trackOf(place.store, place.lane)]!.section]!.title;
    const own = steps.filter((track) => track.label.startsWith("Steps ") && section.startsWith(track.label.slice(6)));
    for (const track of own.length > 0 ? own : steps) {
      const store = this.storeOf(track)!;
      for (let lane = track.lane; lane < track.lane + track.lanes; lane++) {
        const event = eventAt(store, lane, time, 0);
        if (event >= 0) return this.names.name[store.name[event]!]!;
      }
    }
    return "";
  }

  private fields(place: Place): Field[] {
    const { store, lane, event } = place;
    const track = this.tracks[this.trackOf(store, lane)]!;
    const name = store.name[event]!;
    const self = selfTime(place, track);
    const fields: Field[] = [];
    const { names, unit } = this;
    if (names.type[name] && names.role[name] === "op") fields.push({ label: "Op type", value: names.type[name]! });
    const call = pythonCall(names.name[name]!);
    if (call !== null) {
      fields.push({ label: "Python function", value: call.name });
      if (call.source !== null) fields.push({ label: "Source", value: call.source, meaning: "where the function begins; the profiler notes no folder" });
      else fields.push({ label: "Source", value: call.module ?? "not known", meaning: call.module === null ? "a method that is written in C" : "a module; the function is written in C" });
    }
    if (names.op[name] && names.op[name] !== names.name[name]) fields.push({ label: "Op", value: names.op[name]! });
    fields.push({ label: "Start", value: formatTime(store.start[event]! * unit, unit) });
    fields.push({ label: "Duration", value: formatDuration(store.duration(event) * unit) });
    if (self === null) fields.push({ label: "Self time", value: "–", meaning: "not known: events overlap here, none is inside another" });
    else if (self !== store.duration(event)) fields.push({ label: "Self time", value: formatDuration(self * unit) });
    const onDevice = track.kind === "device" || track.kind === "derived";
    fields.push({ label: onDevice ? "Stream" : track.kind === "own" || track.kind === "steps" ? "Track" : "Thread", value: track.hint });
    if (onDevice) fields.push({ label: "Device", value: this.item.sections[track.section]!.title });
    const step = names.role[name] === "step" ? "" : this.stepOf(place);
    if (step !== "") fields.push({ label: "Step", value: step });
    return fields;
  }

  private showDetails(place: Place): void {
    const name = this.names.name[place.store.name[place.event]!]!;
    this.details.showEvent(name, this.fields(place), [
      { label: "Fit (F)", hint: "Zoom to this event", run: () => this.fit() },
      { label: "All of this name", hint: "Find every event of this name", run: () => this.searchFor(name) },
      { label: "Mark (M)", hint: "Mark its time", run: () => this.markSelected() },
      { label: "Close", run: () => this.select(null) },
    ]);
    this.live.textContent = `${name}, ${formatDuration(place.store.duration(place.event) * this.unit)}`;
    void this.showStats(place);
    void this.showRows(place);
  }

  /** Links to the rows of the report's tables that the event belongs to. */
  private async showRows(place: Place): Promise<void> {
    const { store, lane, event } = place;
    const track = this.tracks[this.trackOf(store, lane)]!;
    const name = store.name[event]!;
    if (track.kind === "own" || this.names.role[name] === "step") return;
    const onDevice = track.kind === "device" || track.kind === "derived";
    const links = await this.rows.linksOf({ name: this.names.name[name]!, op: this.names.op[name]!, onDevice });
    const change = this.changeIn(place);
    if (change !== null && this.item.stats !== undefined) {
      this.stats ??= Stats.load(this.item.stats, this.ctx);
      const stats = (await this.stats).of(change.store.row[change.event]!);
      const value = (wanted: string) => stats.find((stat) => stat.name === wanted)?.value;
      const allocator = value("allocator_name");
      const time_ms = (change.store.start[change.event]! * this.unit) / 1e9;
      if (allocator !== undefined) links.push(...this.rows.linkOfMemory({ allocator, op: value("tf_op") ?? "", time_ms }));
    }
    if (this.selected !== place) return;
    for (const { label, hint, run } of links) this.details.addAction({ label, hint, run: () => this.leave(run) });
  }

  /** The first allocation in an op of the host's (its output, as a rule), or the change of memory that it is. */
  private changeIn({ store, lane, event }: Place): Place | null {
    const { names } = this;
    const { name } = names;
    const isChange = (each: number) => name[store.name[each]!] === ALLOCATION || name[store.name[each]!] === DEALLOCATION;
    if (isChange(event)) return { store, lane, event };
    const track = this.tracks[this.trackOf(store, lane)]!;
    if (track.kind !== "host" || names.op[store.name[event]!] === "") return null;
    for (let below = lane + 1; below < track.lane + track.lanes; below++) {
      const [first, last] = [store.laneFirst[below]!, store.laneFirst[below + 1]!];
      const from = store.firstStart(store.start[event]!, first, last);
      const to = Math.min(from + MOST_LOOKED_AT, store.firstStart(store.end[event]!, from, last));
      for (let each = from; each < to; each++) if (name[store.name[each]!] === ALLOCATION) return { store, lane: below, event: each };
    }
    return null;
  }

  /** Goes to another tab, whose top comes into view. */
  private leave(go: () => void): void {
    scrollToReport(this.root);
    go();
  }

  /** What the profiler noted with an event of the file. */
  private async showStats(place: Place): Promise<void> {
    const { stats } = this.item;
    const track = this.tracks[this.trackOf(place.store, place.lane)]!;
    if (!isOwn(track)) return;
    if (this.item.flows !== undefined && !track.hidden) void this.showFlows(place);
    if (stats === undefined) return;
    this.stats ??= Stats.load(stats, this.ctx);
    const unpacked = await this.stats;
    const isBar = this.names.role[place.store.name[place.event]!] === "merged";
    const { part } = this.item;
    if (part !== undefined && !(part.details && part.arrows) && !isBar) {
      const told = (await this.onDemand?.details(place.store.row[place.event]!)) ?? null;
      if (this.selected !== place) return;
      if (told !== null) {
        for (const way of told.ways) {
          const more = way.count === 1 ? "" : ` and ${(way.count - 1).toLocaleString("en-US")} more`;
          this.details.addAction({ label: `${way.label}: ${way.name}${more}`, hint: "Go there", run: () => this.goTo(way) });
        }
        if (!part.details) return this.details.addStats(told.stats, " (from Python)", "The details of this page's events were left out to keep it small; Python has them.");
      }
    }
    if (this.selected !== place) return;
    const found = track.hidden ? [] : unpacked.of(place.store.row[place.event]!);
    const count = (n: number) => n.toLocaleString("en-US");
    const note =
      stats.count < stats.total
        ? `Not in this report, for any event: ${stats.left_out.join(", ")} (${count(stats.total - stats.count)} of ${count(stats.total)} stats). They are ids, or too many for a page.`
        : "";
    this.details.addStats(found.map(({ name, ...field }) => ({ ...field, hint: name })), "", note);
  }

  // ---- arrows -----------------------------------------------------------------------------------------------------

  private async loadFlows(): Promise<Flows> {
    const item = this.item.flows!;
    const table = await this.ctx.table(item.table);
    const { row } = this.stores.get(false)!;
    if (this.eventOfRow === null) {
      this.eventOfRow = new Uint32Array(row.length);
      row.forEach((each, event) => (this.eventOfRow![each] = event));
    }
    return (this.flows ??= Flows.of(table, item));
  }

  /** Draws the arrows of the selected event, and offers to follow them. */
  private async showFlows(place: Place): Promise<void> {
    await this.loadFlows();
    if (this.selected !== place) return;
    const row = place.store.row[place.event]!;
    const arrows = this.arrowsAt(place);
    const ways = { "Led to": arrows.filter((arrow) => arrow.from === row).map((arrow) => arrow.to), "Caused by": arrows.filter((arrow) => arrow.to === row).map((arrow) => arrow.from) };
    for (const [label, rows] of Object.entries(ways)) {
      if (rows.length === 0) continue;
      const other = this.placeOfRow(rows[0]!);
      const name = this.names.name[other.store.name[other.event]!]!;
      const text = rows.length === 1 ? `${label}: ${name}` : `${label}: ${name} and ${(rows.length - 1).toLocaleString("en-US")} more`;
      this.details.addAction({ label: text, hint: "Go there", run: () => this.select(other, true) });
    }
    this.invalidate();
  }

  async setArrows(on: boolean): Promise<void> {
    if (on) await this.loadFlows();
    this.arrowsOfAll = on;
    this.invalidate();
  }

  /** Ids are used again: what began earlier is not led to. */
  private isForward({ from, to }: Arrow): boolean {
    const { start } = this.stores.get(false)!;
    return start[this.eventOfRow![from]!]! <= start[this.eventOfRow![to]!]!;
  }

  private arrowsAt({ store, event }: Place): Arrow[] {
    return this.flows === null ? [] : this.flows.at(store.row[event]!).filter((arrow) => this.isForward(arrow));
  }

  private placeOfRow(row: number): Place {
    return placeOf(this.stores.get(false)!, this.eventOfRow![row]!);
  }

  /** Arrows in view: those of the selected event, and all if they are asked for. */
  private drawArrows(): void {
    this.arrowWords = "";
    if (this.flows === null || (this.selected === null && !this.arrowsOfAll)) return this.overlay.showArrows([], []);
    const store = this.stores.get(false)!;
    const { sides, heights } = this.laneSides(store);
    const bend = (a: number, b: number, laneA: number, laneB: number): Bend | null => {
      const [from, to] = [sides[laneA]!, sides[laneB]!];
      if (from === ABSENT || to === ABSENT || (from === to && from !== IN_VIEW)) return null;
      const end = store.start[b]!;
      const begin = Math.min(store.end[a]!, end);
      return { x0: this.xOf(begin), y0: heights[laneA]!, x1: this.xOf(end), y1: heights[laneB]! };
    };
    const strong: Bend[] = [];
    const weak: Bend[] = [];
    let count = 0;
    const chosen = this.selected?.store === store ? this.selected.event : -1;
    if (this.selected?.store === store) {
      for (const arrow of this.arrowsAt(this.selected)) {
        const [a, b] = [this.placeOfRow(arrow.from), this.placeOfRow(arrow.to)];
        const found = bend(a.event, b.event, a.lane, b.lane);
        if (found === null) continue;
        count++;
        if (strong.length < MOST_ARROWS) strong.push(found);
      }
    }
    if (this.arrowsOfAll) {
      const all = (this.arrows ??= new Arrows(this.flows, store, this.eventOfRow!));
      all.keep(sides);
      const inView = all.within(this.left, this.left + this.width * this.perPx, MOST_ARROWS);
      for (const i of inView.arrows) {
        const [a, b] = [all.from[i]!, all.to[i]!];
        if (a === chosen || b === chosen) continue;
        const found = bend(a, b, all.fromLane[i]!, all.toLane[i]!);
        if (found !== null) weak.push(found);
      }
      count = Math.max(inView.count, weak.length + strong.length);
    }
    if (!this.arrowsOfAll && count === 0) return this.overlay.showArrows([], []);
    const drawn = (weak.length + strong.length).toLocaleString("en-US");
    const beyond = this.arrowsOfAll && this.arrows!.beyond > 0 ? ` (${this.arrows!.beyond.toLocaleString("en-US")} of the trace are too many to be kept)` : "";
    this.arrowWords = count === 0 ? `No arrow is in view${beyond}` : `${drawn} of ${count.toLocaleString("en-US")} arrows drawn${beyond}`;
    this.overlay.showArrows(weak, strong);
  }

  /** Of each lane: on which side of what is in view it is, and its height there. */
  private laneSides(store: Store): { sides: Uint8Array; heights: Float64Array } {
    const lanes = store.laneFirst.length - 1;
    const sides = new Uint8Array(lanes);
    const heights = new Float64Array(lanes);
    const { pinnedHeight } = this.layout;
    for (const bands of [this.layout.bands, this.layout.pinned]) {
      for (const { boxes } of bands) {
        for (const box of boxes) {
          if (box.store !== store) continue;
          const y = onScreen(box, this.scroll) + (box.bottom - box.top) / 2;
          sides[box.lane] = box.pinned ? IN_VIEW : y <= pinnedHeight ? ABOVE : y > this.height ? BELOW : IN_VIEW;
          heights[box.lane] = box.pinned ? y : Math.max(pinnedHeight, y);
        }
      }
    }
    return { sides, heights };
  }

  /** What a box on the timeline sums up to; pixels of the frame. */
  selectBox(rect: Rect): void {
    const start = this.timeAt(rect.left);
    const end = this.timeAt(rect.right);
    this.selected = null;
    this.summaryOf = { start, end, top: rect.top + this.scroll, bottom: rect.bottom + this.scroll };
    const boxes = (this.shown?.boxes ?? []).filter((box) => {
      const top = onScreen(box, this.scroll);
      const bottom = top + box.bottom - box.top;
      return bottom > rect.top && top < rect.bottom && (box.pinned || bottom > this.layout.pinnedHeight);
    });
    const lanes = boxes.map((box) => ({ store: box.store, lane: box.lane, track: this.tracks[box.track]! }));
    const { names } = this;
    const rows = summarize(lanes, start, end);
    const count = rows.reduce((sum, row) => sum + row.count, 0);
    const busy = end > start ? busyTime(lanes, start, end) / (end - start) : 0;
    this.details.showSummary(
      count === 0 ? `No event in these ${formatDuration((end - start) * this.unit)}` : `${count.toLocaleString("en-US")} events of ${rows.length.toLocaleString("en-US")} names in ${formatDuration((end - start) * this.unit)}, ${(100 * busy).toFixed(1)} % of it busy`,
      rows,
      names,
      this.unit,
      (name) => this.searchFor(names.name[name]!),
      [
        { label: "Fit (F)", run: () => this.fit() },
        { label: "Close", run: () => this.select(null) },
      ],
    );
    this.tellSelection(boxes);
    this.share();
    this.invalidate();
  }

  /** The event before or after the selected one in its lane, or the one above or below it. */
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
      const next = lane + (direction === "up" ? -1 : 1);
      if (next < track.lane || next >= track.lane + track.lanes) return;
      const time = direction === "up" ? store.start[event]! : store.start[event]!;
      const [low, high] = [store.laneFirst[next]!, store.laneFirst[next + 1]!];
      const found = store.firstEnd(time, low, high);
      if (found < high) this.select({ store, lane: next, event: found }, true);
    }
  }

  /** Finds what the report's model names: events of that name, else of that op, else with that text; selects the first, if need be by going there. */
  private async highlight(goThere: boolean): Promise<void> {
    const wanted = this.ctx.model.get("highlight") as unknown;
    if (typeof wanted !== "string" || wanted === "") return;
    this.toolbar.setSearch(wanted);
    for (const match of ["exact", "op", "text"] as const) {
      await this.search(wanted, match);
      if (this.hits === null || this.hits.count > 0) break;
    }
    this.select(null);
    const found = this.hitFrom(this.viewport.start);
    if (found === null || !(goThere || found.store.start[found.event]! <= this.viewport.end)) return;
    this.select(found, true);
    const { start, end } = found.store;
    const [from, to] = [start[found.event]!, end[found.event]!];
    // A speck is no answer to "where is it?".
    if (goThere && (to - from) / this.perPx < READABLE_PX) this.go(from - 4 * (to - from) - 10, to + 4 * (to - from) + 10);
  }

  /** Selects the event that another part of the report knows by its time: a step, or a change of memory. */
  private selectSpot(): void {
    const spot = this.ctx.model.get("spot") as WantedSpot | null | undefined;
    if (!spot) return;
    if (this.hits !== null) this.searchFor("");
    const time = (spot.start_ms * 1e9) / this.unit;
    // The steps of several devices have a track each.
    const own = spot.device === undefined ? -1 : this.tracks.findIndex((track) => track.kind === "steps" && track.hint === `Steps on ${spot.device}`);
    const lanes = this.tracks.flatMap((track, index) => {
      const store = this.storeOf(track);
      if (store === null || (track.kind === "steps") !== (spot.kind === "step") || (own >= 0 && index !== own)) return [];
      return Array.from({ length: track.lanes }, (_, i) => ({ store, lane: track.lane + i }));
    });
    const { name: texts } = this.names;
    const isIt = (text: string) => (spot.kind === "memory" ? text === ALLOCATION || text === DEALLOCATION : spot.name === undefined || text === spot.name);
    // Times come as numbers of milliseconds: to a nanosecond of memory's changes, and to seven digits of steps.
    const reach = spot.kind === "memory" ? 1e3 / this.unit : Math.max(time * 1e-6, 1e6 / this.unit, ((spot.within_ms ?? 0) * 1e9) / this.unit);
    let found: Place | null = null;
    let nearest = reach;
    for (const { store, lane } of lanes) {
      const first = store.firstStart(time - reach, store.laneFirst[lane]!, store.laneFirst[lane + 1]!);
      for (let event = first; event < store.laneFirst[lane + 1]! && store.start[event]! <= time + reach; event++) {
        const away = Math.abs(store.start[event]! - time);
        if (away > nearest || !isIt(texts[store.name[event]!]!)) continue;
        nearest = away;
        found = { store, lane, event };
      }
    }
    this.select(found);
    if (found !== null) this.reveal(found, false);
  }

  /** Finds every event of one name. */
  searchFor(name: string): void {
    this.toolbar.setSearch(name);
    void this.search(name, "exact");
  }

  /** Finds names, marks their events and says how many there are. */
  async search(wanted: string, match: Match): Promise<void> {
    const searched = wanted === "" ? null : { wanted, match };
    this.searched = searched;
    if (wanted === "") {
      this.hits = null;
      this.toolbar.showHits("", false);
      this.invalidate();
      return;
    }
    let found: Uint8Array;
    try {
      found = matchNames(this.names, wanted, match);
    } catch (error) {
      this.toolbar.showHits(errorMessage(error), true);
      return;
    }
    // A bar is no event, unless it is what is looked for.
    let bars = false;
    this.names.role.forEach((role, name) => {
      if (role !== "merged" || found[name] !== 1) return;
      bars = true;
      if (match !== "exact") found[name] = 0;
    });
    // What is folded away counts too.
    if (!this.stores.has(true) && this.item.hidden) await this.loadHidden();
    const tracks = this.tracks.flatMap((track) => {
      const store = this.storeOf(track);
      return store === null ? [] : [{ track, store }];
    });
    this.hits = findHits([...this.stores.values()], found, tracks);
    const { count, total } = this.hits;
    const text = count === 0 ? "no hits" : `${count.toLocaleString("en-US")} ${count === 1 ? "hit" : "hits"} · ${formatDuration(total * this.unit)}`;
    const tell = (words: string) => {
      this.toolbar.showHits(words, false);
      this.live.textContent = words;
    };
    this.invalidate();
    const { onDemand } = this;
    if (onDemand === null || !onDemand.lacks || (bars && match === "exact")) return tell(text);
    tell(`${text} in ${onDemand.here}`);
    const whole = await onDemand.search(wanted, match);
    if (whole !== null && this.searched === searched) tell(whole.count === count ? text : `${text} here; ${whole.words}`);
  }

  nextHit(back: boolean): void {
    if (this.hits === null || this.hits.count === 0) return;
    const lanes = this.ownLanes();
    let from: { time: number; row: number } | null = null;
    if (this.selected !== null) {
      const { store, lane, event } = this.selected;
      from = { time: store.start[event]!, row: lanes.findIndex((each) => each.store === store && each.lane === lane) };
    } else from = { time: this.viewport.start, row: back ? lanes.length : -1 };
    const found = step(this.hits, lanes, from, back) ?? step(this.hits, lanes, null, back);
    if (found !== null) this.select(found, true);
  }

  private ownLanes(): { store: Store; lane: number }[] {
    return this.tracks.flatMap((track) => {
      const store = this.storeOf(track);
      return store === null || !isOwn(track) ? [] : Array.from({ length: track.lanes }, (_, i) => ({ store, lane: track.lane + i }));
    });
  }

  /** The first hit from a time on, else the first of all. */
  private hitFrom(time: number): Place | null {
    if (this.hits === null) return null;
    const lanes = this.ownLanes();
    return step(this.hits, lanes, { time, row: -1 }, false) ?? step(this.hits, lanes, null, false);
  }

  addRange(start: number, end: number): void {
    if (end > start) this.ranges.push({ start, end });
    this.invalidate();
  }

  markSelected(): void {
    const place = this.selected ?? this.hover;
    if (place !== null) this.addRange(place.store.start[place.event]!, place.store.end[place.event]!);
    else if (this.summaryOf !== null) this.addRange(this.summaryOf.start, this.summaryOf.end);
  }

  /** Takes back one thing at a time: help, the selection, the search, the marks. */
  escape(): void {
    if (this.toolbar.menuIsOpen) this.toolbar.toggleMenu(false);
    else if (!this.toolbar.help.hidden) this.toolbar.toggleHelp(false);
    else if (this.selected !== null || this.summaryOf !== null) this.select(null);
    else if (this.hits !== null) this.searchFor("");
    else this.ranges = [];
    this.invalidate();
  }

  toggleHelp(): void {
    this.toolbar.toggleHelp();
  }

  focusSearch(): void {
    this.toolbar.focusSearch();
  }

  /** Whether keys and the wheel are meant for the timeline. */
  get active(): boolean {
    return this.root.contains(document.activeElement) || this.root.matches(":focus-within");
  }

  // ---- the pointer ------------------------------------------------------------------------------------------------

  hoverAt(at: { x: number; y: number; clientX: number; clientY: number } | null): void {
    this.pointer = at;
    this.invalidate();
  }

  private showHover(): void {
    const spot = this.pointer === null ? null : this.spotAt(this.pointer.x, this.pointer.y);
    const same = spot !== null && this.hover !== null && spot.event === this.hover.event && spot.store === this.hover.store;
    this.hover = spot;
    this.overlay.showHover(spot === null ? null : this.rectOf(spot));
    const counted = spot === null && this.pointer !== null ? this.countAt(this.pointer.x, this.pointer.y) : null;
    this.tip.hidden = spot === null && counted === null;
    if (this.tip.hidden || this.pointer === null) return;
    if (counted !== null) this.tip.replaceChildren(...counted);
    else if (spot !== null && !(same && this.tipOf === spot.event)) this.fillTip(spot);
    this.tipOf = spot?.event ?? -1;
    const { clientX, clientY } = this.pointer;
    const { offsetWidth, offsetHeight } = this.tip;
    const x = clientX + 14 + offsetWidth > innerWidth ? Math.max(2, clientX - 14 - offsetWidth) : clientX + 14;
    const y = clientY + 18 + offsetHeight > innerHeight ? Math.max(2, clientY - 12 - offsetHeight) : clientY + 18;
    this.tip.style.left = `${x}px`;
    this.tip.style.top = `${y}px`;
  }

  private tipOf = -1;

  /** What the counter at the pointer says. */
  private countAt(x: number, y: number): Node[] | null {
    const pinned = y < this.layout.pinnedHeight;
    const down = pinned ? y : y + this.scroll;
    const band = this.shown?.bands.find((each) => each.pinned === pinned && down >= each.top && down < each.top + each.height);
    const counter = band === undefined ? undefined : this.counters.get(band.track);
    if (band === undefined || counter === undefined) return null;
    const time = this.timeAt(x);
    const value = valueAt(counter, time);
    return [
      h("b", {}, value === null ? "not known yet" : formatCount(value, counter.unit)),
      h("div", {}, this.tracks[band.track]!.hint),
      h("div", { class: "tl-time" }, `at ${formatTime(Math.round(time) * this.unit, this.unit)} · at most ${formatCount(counter.most, counter.unit)}`),
    ];
  }

  private fillTip(spot: Spot): void {
    const { store, event } = spot;
    const name = store.name[event]!;
    const full = this.names.name[name]!;
    const short = this.names.short[name]!;
    const lines: Node[] = [h("b", {}, short === "" ? full : short)];
    if (short !== "" && short !== full) lines.push(h("div", {}, full));
    const all = this.fields(spot);
    const value = (label: string) => all.find((field) => field.label === label)?.value;
    const self = value("Self time");
    lines.push(h("div", { class: "tl-time" }, `${value("Duration")}${self === undefined || self === "–" ? "" : ` · self ${self}`} · at ${value("Start")}`));
    const where = [value("Op") === undefined ? "" : `op ${value("Op")}`, value("Stream") ?? value("Thread") ?? value("Track"), value("Step")].filter(Boolean);
    lines.push(h("div", {}, where.join(" · ")));
    if (spot.others > 0) lines.push(h("div", {}, `and ${spot.others.toLocaleString("en-US")} more in this pixel: zoom in to tell them apart`));
    this.tip.replaceChildren(...lines);
  }

  hideTip(): void {
    this.hoverAt(null);
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
    const text = this.active ? "Wheel zooms · drag pans · ? for keys" : "Click to zoom with wheel and keys";
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
    if (room.top !== this.room.top || room.height !== this.room.height) {
      this.spacer.style.height = `${this.layout.height + room.top}px`;
    }
    if (room.left !== this.room.left || room.top !== this.room.top || room.width !== this.room.width || room.height !== this.room.height) {
      this.room = room;
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
      this.hits === null ? null : this.hits.marks,
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
      this.ranges.map((range) => ({ left: this.xOf(range.start), right: this.xOf(range.end), label: formatDuration((range.end - range.start) * unit) })),
    );
    this.drawArrows();
    if (this.summaryOf !== null) {
      const { start, end, top, bottom } = this.summaryOf;
      this.overlay.showDrag({ left: this.xOf(start), right: this.xOf(end), top: top - this.scroll, bottom: bottom - this.scroll });
    } else if (!this.overlay.element.classList.contains("tl-dragging")) this.overlay.showDrag(null);
    this.showHover();
    const count = (n: number) => n.toLocaleString("en-US");
    const merged = shown.total - shown.alone;
    const [whole0, whole1] = this.whole();
    const [from, to] = [Math.max(left, whole0), Math.min(left + room.width * perPx, whole1)];
    // The margins before and after the trace are no part of it.
    const time = formatDuration(Math.max(0, to - from) * unit) + (from <= whole0 && to >= whole1 ? " (all)" : "");
    const words =
      `In view: ${time}, ${count(shown.total)} ${shown.total === 1 ? "event" : "events"}` +
      (merged > 0 ? `: ${count(shown.alone)} one by one, ${count(merged)} short ${merged === 1 ? "one" : "ones"} merged into bars` : "");
    if (words !== this.count.textContent) this.count.textContent = words;
    // A line of its own: what is above it must not wrap now and then while the window moves.
    this.arrowCount.hidden = this.arrowWords === "";
    if (this.arrowWords !== this.arrowCount.textContent) this.arrowCount.textContent = this.arrowWords;
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
      this.share();
    }, SETTLED_MS);
  }

  // ---- Python -----------------------------------------------------------------------------------------------------

  /** What is on the screen, to be saved. */
  get picture(): Picture {
    return timelinePicture(this.item.title ?? "Trace", this.root, this.figure, this.view?.figure);
  }

  private told = "";

  /** Tells the report's model which time is shown. */
  private share(): void {
    const toMs = (time: number) => (time * this.unit) / 1e9;
    const range = [toMs(this.viewport.start), toMs(this.viewport.end)];
    const text = JSON.stringify(range);
    if (text === this.told) return;
    this.told = text;
    this.ctx.model.set("range_ms", range);
    this.ctx.model.save_changes();
  }

  /** Tells the report's model what is selected: an event, the lanes of a box, or nothing. */
  private tellSelection(boxes: readonly LaneBox[] = []): void {
    let selection: TimelineSelection | null = null;
    const rangeMs = (start: number, end: number): [number, number] => [(start * this.unit) / 1e9, (end * this.unit) / 1e9];
    if (this.selected !== null) {
      const { store, lane, event } = this.selected;
      const range_ms = rangeMs(store.start[event]!, store.end[event]!);
      selection = { timeline: this.item.events, range_ms, track: this.trackOf(store, lane), row: store.row[event]! };
    } else if (this.summaryOf !== null) {
      const lanes = new Map<number, { track: number; first: number; last: number }>();
      for (const box of boxes) {
        const lane = box.lane - this.tracks[box.track]!.lane;
        const known = lanes.get(box.track);
        lanes.set(box.track, { track: box.track, first: Math.min(lane, known?.first ?? lane), last: Math.max(lane, known?.last ?? lane) });
      }
      selection = { timeline: this.item.events, range_ms: rangeMs(this.summaryOf.start, this.summaryOf.end), lanes: [...lanes.values()] };
    }
    this.ctx.model.set("selection", selection);
    this.ctx.model.save_changes();
  }

  /** Shows the time that the report's model names. */
  private follow(): void {
    const range = this.ctx.model.get("range_ms") as [number, number] | null | undefined;
    if (!Array.isArray(range) || range.length !== 2 || !(range[1] > range[0])) return;
    const text = JSON.stringify(range);
    if (text === this.told) return;
    this.told = text;
    this.viewport.set((range[0] * 1e9) / this.unit, (range[1] * 1e9) / this.unit);
    this.invalidate();
  }
}

/** An event with its lane. */
function placeOf(store: Store, event: number): Place {
  let [low, high] = [0, store.laneFirst.length - 1];
  while (low + 1 < high) {
    const middle = (low + high) >>> 1;
    if (store.laneFirst[middle]! <= event) low = middle;
    else high = middle;
  }
  return { store, lane: low, event };
}
