/** What the report's model is told of the timeline, and tells it: the time shown, the selection, a place to go to. */

import type { Spot as WantedSpot } from "../show_in_trace";
import type { TimelineSelection } from "../types";
import { ALLOCATION, DEALLOCATION } from "./event_details";
import type { LaneBox } from "./layout";
import type { Place } from "./query";
import type { Timeline } from "./timeline";

export class Telling {
  private told = "";

  constructor(private readonly timeline: Timeline) {}

  /** Selects the event that another part of the report knows by its time: a step, or a change of memory. */
  selectSpot(): void {
    const spot = this.timeline.ctx.model.get("spot") as WantedSpot | null | undefined;
    if (!spot) return;
    if (this.timeline.searching.hits !== null) this.timeline.searching.searchFor("");
    const time = (spot.start_ms * 1e9) / this.timeline.unit;
    // The steps of several devices have a track each.
    const own = spot.device === undefined ? -1 : this.timeline.tracks.findIndex((track) => track.kind === "steps" && track.hint === `Steps on ${spot.device}`);
    const lanes = this.timeline.tracks.flatMap((track, index) => {
      const store = this.timeline.storeOf(track);
      if (store === null || (track.kind === "steps") !== (spot.kind === "step") || (own >= 0 && index !== own)) return [];
      return Array.from({ length: track.lanes }, (_, i) => ({ store, lane: track.lane + i }));
    });
    const { name: texts } = this.timeline.names;
    const isIt = (text: string) => (spot.kind === "memory" ? text === ALLOCATION || text === DEALLOCATION : spot.name === undefined || text === spot.name);
    // Times come as numbers of milliseconds: to a nanosecond of memory's changes, and to seven digits of steps.
    const reach = spot.kind === "memory" ? 1e3 / this.timeline.unit : Math.max(time * 1e-6, 1e6 / this.timeline.unit, ((spot.within_ms ?? 0) * 1e9) / this.timeline.unit);
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
    this.timeline.select(found);
    if (found !== null) this.timeline.reveal(found, false);
  }

  /** Tells the report's model which time is shown. */
  share(): void {
    const toMs = (time: number) => (time * this.timeline.unit) / 1e9;
    const range = [toMs(this.timeline.viewport.start), toMs(this.timeline.viewport.end)];
    const text = JSON.stringify(range);
    if (text === this.told) return;
    this.told = text;
    this.timeline.ctx.model.set("range_ms", range);
    this.timeline.ctx.model.save_changes();
  }

  /** Tells the report's model what is selected: an event, the lanes of a box, or nothing. */
  tellSelection(boxes: readonly LaneBox[] = []): void {
    let selection: TimelineSelection | null = null;
    const rangeMs = (start: number, end: number): [number, number] => [(start * this.timeline.unit) / 1e9, (end * this.timeline.unit) / 1e9];
    if (this.timeline.selected !== null) {
      const { store, lane, event } = this.timeline.selected;
      const range_ms = rangeMs(store.start[event]!, store.end[event]!);
      selection = { timeline: this.timeline.item.events, range_ms, track: this.timeline.trackOf(store, lane), row: store.row[event]! };
    } else if (this.timeline.summaryOf !== null) {
      const lanes = new Map<number, { track: number; first: number; last: number }>();
      for (const box of boxes) {
        const lane = box.lane - this.timeline.tracks[box.track]!.lane;
        const known = lanes.get(box.track);
        lanes.set(box.track, { track: box.track, first: Math.min(lane, known?.first ?? lane), last: Math.max(lane, known?.last ?? lane) });
      }
      selection = { timeline: this.timeline.item.events, range_ms: rangeMs(this.timeline.summaryOf.start, this.timeline.summaryOf.end), lanes: [...lanes.values()] };
    }
    this.timeline.ctx.model.set("selection", selection);
    this.timeline.ctx.model.save_changes();
  }

  /** Shows the time that the report's model names. */
  follow(): void {
    const range = this.timeline.ctx.model.get("range_ms") as [number, number] | null | undefined;
    if (!Array.isArray(range) || range.length !== 2 || !(range[1] > range[0])) return;
    const text = JSON.stringify(range);
    if (text === this.told) return;
    this.told = text;
    this.timeline.viewport.set((range[0] * 1e9) / this.timeline.unit, (range[1] * 1e9) / this.timeline.unit);
    this.timeline.invalidate();
  }
}
