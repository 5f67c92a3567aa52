/** What the pointer is on: the event or counter below it, the tip beside it, and edges that attract. */

import { h } from "../dom";
import { columnsOf, formatCount } from "./counters";
import type { Store } from "./data";
import type { LaneBox } from "./layout";
import { eventAt } from "./query";
import { formatTime } from "./ticks";
import type { Spot, Timeline } from "./timeline";

/** Pixels within which the pointer finds an event, and an edge to snap to. */
const REACH_PX = 3;
const SNAP_PX = 7;

/**
 * The event that a pixel of a lane shows, and how many others are in it: the one drawn by itself over the pixel's middle, else the
 * longest of those merged into the bar there, else what is near. -1 if there is none. `time` is the pixel's left edge, `perPx` its
 * ticks, `bin` those that an event needs to be drawn by itself.
 */
export function eventInPixel(store: Store, lane: number, time: number, perPx: number, bin: number): { event: number; others: number } {
  const [from, to] = store.inside(lane, time, time + perPx);
  const middle = time + perPx / 2;
  const found = (event: number) => {
    const mine = event >= from && event < to ? store.events(event, event + 1) : Math.min(1, to - from);
    return { event, others: store.events(from, to) - mine };
  };
  const alone = (event: number) => store.duration(event) >= bin;
  // Edges are drawn at whole pixels, rounded: who has the middle has the pixel.
  const last = store.laneFirst[lane + 1]!;
  const over = store.firstEnd(middle, store.laneFirst[lane]!, last);
  if (over < last && store.start[over]! < middle && alone(over)) return found(over);
  const left = Math.floor(middle / bin) * bin;
  let [low, high] = store.inside(lane, left, left + bin);
  // Only the outer ones can be as long as all of the bar.
  if (low < high && alone(low)) low++;
  if (low < high && alone(high - 1)) high--;
  return found(low < high ? store.longest(low, high) : eventAt(store, lane, middle, REACH_PX * perPx));
}

export class Pointing {
  hover: Spot | null = null;
  pointer: { x: number; y: number; clientX: number; clientY: number } | null = null;
  readonly tip = h("div", { class: "tl-tip", role: "tooltip", hidden: true });
  tipOf = -1;

  constructor(private readonly timeline: Timeline) {}

  private boxAt(y: number): LaneBox | undefined {
    const pinned = y < this.timeline.layout.pinnedHeight;
    const down = pinned ? y : y + this.timeline.scroll;
    return this.timeline.shown?.boxes.find((box) => box.pinned === pinned && down >= box.top && down < box.bottom + 1);
  }

  /** What the pointer is on. */
  spotAt(x: number, y: number): Spot | null {
    if (this.timeline.shown === null) return null;
    const box = this.boxAt(y);
    if (box === undefined) return null;
    const { store, lane } = box;
    const { perPx, shown } = this.timeline;
    const { event, others } = eventInPixel(store, lane, this.timeline.timeAt(Math.floor(x)), perPx, perPx * shown.minPx);
    return event < 0 ? null : { store, lane, event, box, others };
  }

  /** The edge of an event near a point, for marks to snap to. */
  snap(x: number, y: number): number {
    const box = this.boxAt(y);
    const time = this.timeline.timeAt(x);
    if (box === undefined) return time;
    const { store, lane } = box;
    const first = store.laneFirst[lane]!;
    const last = store.laneFirst[lane + 1]!;
    const near = store.firstEnd(time, first, last);
    let best = time;
    let distance = SNAP_PX * this.timeline.perPx;
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

  hoverAt(at: { x: number; y: number; clientX: number; clientY: number } | null): void {
    this.pointer = at;
    this.timeline.invalidate();
  }

  showHover(): void {
    const spot = this.pointer === null ? null : this.spotAt(this.pointer.x, this.pointer.y);
    const same = spot !== null && this.hover !== null && spot.event === this.hover.event && spot.store === this.hover.store;
    this.hover = spot;
    this.timeline.overlay.showHover(spot === null ? null : this.timeline.rectOf(spot));
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

  /** What the counter at the pointer says. */
  private countAt(x: number, y: number): Node[] | null {
    const pinned = y < this.timeline.layout.pinnedHeight;
    const down = pinned ? y : y + this.timeline.scroll;
    const band = this.timeline.shown?.bands.find((each) => each.pinned === pinned && down >= each.top && down < each.top + each.height);
    const counter = band === undefined ? undefined : this.timeline.counters.get(band.track);
    if (band === undefined || counter === undefined) return null;
    // What the pixel's column is drawn of.
    const time = this.timeline.timeAt(Math.floor(x));
    const [column] = columnsOf(counter, time, this.timeline.perPx, 1);
    const [least, most] = [column?.least, column?.most].map((value) => (value === undefined ? "not known yet" : formatCount(value, counter.unit)));
    return [
      h("b", {}, least === most ? least! : `${least} to ${most}`),
      h("div", {}, this.timeline.tracks[band.track]!.hint),
      h("div", { class: "tl-time" }, `at ${formatTime(Math.round(time) * this.timeline.unit, this.timeline.unit)} · at most ${formatCount(counter.most, counter.unit)}`),
    ];
  }

  private fillTip(spot: Spot): void {
    const { store, event } = spot;
    const name = store.name[event]!;
    const full = this.timeline.names.name[name]!;
    const short = this.timeline.names.short[name]!;
    const lines: Node[] = [h("b", {}, short === "" ? full : short)];
    if (short !== "" && short !== full) lines.push(h("div", {}, full));
    const all = this.timeline.eventDetails.fields(spot);
    const value = (label: string) => all.find((field) => field.label === label)?.value;
    const self = value("Self time");
    const merged = store.events(event, event + 1);
    lines.push(h("div", { class: "tl-time" }, `${value("Duration")}${merged > 1 ? ` of ${merged.toLocaleString("en-US")} events together` : ""}${self === undefined ? "" : ` · self ${self}`} · at ${value("Start")}`));
    const where = [value("Op") === undefined ? "" : `op ${value("Op")}`, value("Stream") ?? value("Thread") ?? value("Track"), value("Step")].filter(Boolean);
    lines.push(h("div", {}, where.join(" · ")));
    if (spot.others > 0) lines.push(h("div", {}, `and ${spot.others.toLocaleString("en-US")} more in this pixel: zoom in to tell them apart`));
    this.tip.replaceChildren(...lines);
  }

  hideTip(): void {
    this.hoverAt(null);
  }
}
