/** The search: which events have a name, how many they are, and the ways from one to the next. */

import { errorMessage } from "../dom";
import type { Within } from "../show_in_trace";
import type { Side } from "../types";
import type { Kind, Store } from "./data";
import { findHits, isOwn, matchNames, step, type Hits, type Match, type Place } from "./query";
import { counted } from "./summary";
import { totalTime } from "./ticks";
import type { Timeline } from "./timeline";

const READABLE_PX = 24;

/** Where a track's events ran; null for what is on no side. */
function sideOf(kind: Kind): Side | null {
  if (kind === "device" || kind === "derived") return "device";
  return kind === "host" || kind === "bookkeeping" ? "host" : null;
}

export class Searching {
  hits: Hits | null = null;
  searched: { wanted: string; match: Match; within: Within } | null = null;

  constructor(private readonly timeline: Timeline) {}

  /** Finds what the report's model names: events of that name, else of that op, else with that text; selects the first, if need be by going there. */
  async highlight(goThere: boolean): Promise<void> {
    const wanted = this.timeline.ctx.model.get("highlight") as unknown;
    if (typeof wanted !== "string" || wanted === "") return;
    const within = (this.timeline.ctx.model.get("within") as Within | null | undefined) ?? {};
    this.timeline.toolbar.setSearch(wanted);
    // What is said of where they are narrows it down, but doesn't hide what is only elsewhere.
    const ways = [within, ...(within.side === undefined && within.op === undefined ? [] : [{}])];
    search: for (const where of ways) {
      for (const match of ["exact", "op", "text"] as const) {
        await this.search(wanted, match, where);
        if (this.hits === null || this.hits.count > 0) break search;
      }
    }
    this.timeline.select(null);
    const found = within.side === undefined ? this.hitFrom(this.timeline.viewport.start) : this.longestHit();
    if (found === null || !(goThere || found.store.start[found.event]! <= this.timeline.viewport.end)) return;
    this.timeline.select(found, true);
    const { start, end } = found.store;
    const [from, to] = [start[found.event]!, end[found.event]!];
    // A speck is no answer to "where is it?".
    if (goThere && (to - from) / this.timeline.perPx < READABLE_PX) this.timeline.go(from - 4 * (to - from) - 10, to + 4 * (to - from) + 10);
  }

  /** Finds every event of one name. */
  searchFor(name: string): void {
    this.timeline.toolbar.setSearch(name);
    void this.search(name, "exact");
  }

  /** Finds names, marks their events and says how many there are. */
  async search(wanted: string, match: Match, within: Within = {}): Promise<void> {
    const searched = wanted === "" ? null : { wanted, match, within };
    this.searched = searched;
    if (wanted === "") {
      this.hits = null;
      this.timeline.toolbar.showHits("", false);
      this.timeline.invalidate();
      return;
    }
    let found: Uint8Array;
    try {
      found = matchNames(this.timeline.names, wanted, match);
      if (within.op !== undefined) this.timeline.names.op.forEach((op, name) => op !== within.op && (found[name] = 0));
    } catch (error) {
      this.timeline.toolbar.showHits(errorMessage(error), true);
      return;
    }
    // A bar is no event, unless it is what is looked for.
    let bars = false;
    this.timeline.names.role.forEach((role, name) => {
      if (role !== "merged" || found[name] !== 1) return;
      bars = true;
      if (match !== "exact") found[name] = 0;
    });
    // What is folded away counts too.
    if (!this.timeline.stores.has(true) && this.timeline.item.hidden) await this.timeline.loadHidden();
    // Meanwhile something else may be looked for, or nothing.
    if (this.searched !== searched) return;
    const tracks = this.timeline.tracks.flatMap((track) => {
      const store = this.timeline.storeOf(track);
      return store === null ? [] : [{ track, store }];
    });
    this.hits = findHits([...this.timeline.stores.values()], found, tracks, ({ kind }) => within.side === undefined || sideOf(kind) === null || sideOf(kind) === within.side);
    const { count, total } = this.hits;
    // What is typed finds parts of names; a button or a table's row, whole names.
    const how = [match === "exact" ? "whole name" : match === "op" ? "of the op" : "", within.side === "device" ? "on devices" : within.side === "host" ? "on the host" : ""].filter(Boolean);
    const text = (count === 0 ? "no hits" : `${counted(count, "hit")} · ${totalTime(total * this.timeline.unit)}`) + (how.length > 0 ? ` · ${how.join(", ")}` : "");
    const tell = (words: string) => {
      this.timeline.toolbar.showHits(words, false);
      this.timeline.live.textContent = words;
    };
    this.timeline.invalidate();
    const { onDemand } = this.timeline;
    if (onDemand === null || !onDemand.lacks || (bars && match === "exact")) return tell(text);
    tell(`${text} in ${onDemand.here}`);
    const whole = await onDemand.search(wanted, match);
    if (whole !== null && this.searched === searched) tell(whole.count === count ? text : `${text} here; ${whole.words}`);
  }

  nextHit(back: boolean): void {
    if (this.hits === null || this.hits.count === 0) return;
    const lanes = this.ownLanes();
    let from: { time: number; row: number } | null = null;
    if (this.timeline.selected !== null) {
      const { store, lane, event } = this.timeline.selected;
      from = { time: store.start[event]!, row: lanes.findIndex((each) => each.store === store && each.lane === lane) };
    } else from = { time: this.timeline.viewport.start, row: back ? lanes.length : -1 };
    const found = step(this.hits, lanes, from, back) ?? step(this.hits, lanes, null, back);
    if (found !== null) this.timeline.select(found, true);
  }

  private ownLanes(): { store: Store; lane: number }[] {
    return this.timeline.tracks.flatMap((track) => {
      const store = this.timeline.storeOf(track);
      return store === null || !isOwn(track) ? [] : Array.from({ length: track.lanes }, (_, i) => ({ store, lane: track.lane + i }));
    });
  }

  /** The longest hit, the first one of equals: that of a row whose times are what brought somebody here. */
  private longestHit(): Place | null {
    let found: Place | null = null;
    let longest = -1;
    for (const { store, lane } of this.ownLanes()) {
      const marks = this.hits?.marks.get(store);
      if (marks === undefined) continue;
      for (let event = store.laneFirst[lane]!; event < store.laneFirst[lane + 1]!; event++) {
        if (marks.before[event + 1]! === marks.before[event]! || store.duration(event) <= longest) continue;
        longest = store.duration(event);
        found = { store, lane, event };
      }
    }
    return found;
  }

  /** The first hit from a time on, else the first of all. */
  private hitFrom(time: number): Place | null {
    if (this.hits === null) return null;
    const lanes = this.ownLanes();
    return step(this.hits, lanes, { time, row: -1 }, false) ?? step(this.hits, lanes, null, false);
  }
}
