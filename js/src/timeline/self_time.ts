/** Self time: an event's duration less that of its direct children, which lie in the lane below it. */

import type { Store, Track } from "./data";
import type { Place } from "./query";

/** In ticks; or why there is none: events overlap here without one being inside the other, or some of them are merged into bars in this page. */
export type SelfTime = number | "overlap" | "merged";

const found = new WeakMap<Store, Map<number, Float64Array | null>>();

/** Whether an event of a track isn't inside one of the lane above: some overlap in part, as a rule. */
function isMixed(store: Store, track: Track): boolean {
  const { start, end, laneFirst } = store;
  for (let lane = track.lane + 1; lane < track.lane + track.lanes; lane++) {
    const above = laneFirst[lane - 1]!;
    let outer = above - 1;
    for (let event = laneFirst[lane]!; event < laneFirst[lane + 1]!; event++) {
      while (outer + 1 < laneFirst[lane]! && start[outer + 1]! <= start[event]!) outer++;
      if (start[event]! === end[event]! || (outer >= above && end[outer]! >= end[event]!)) continue;
      // Bars are drawn closer together than their events are.
      if (!store.isBar(event) && !(outer >= above && store.isBar(outer))) return true;
    }
  }
  return false;
}

/**
 * Self times of a track's events, where some overlap in part: not a number (NaN) for those, and for what has such ones among its direct
 * children. Lanes don't tell there what is inside what, so all that run at one time are compared. Bars are left out of it.
 */
function sweep(store: Store, track: Track): Float64Array {
  const { start, end, laneFirst } = store;
  const origin = laneFirst[track.lane]!;
  const self = new Float64Array(laneFirst[track.lane + track.lanes]! - origin);
  for (let i = 0; i < self.length; i++) self[i] = store.duration(origin + i);
  const next = laneFirst.slice(track.lane, track.lane + track.lanes);
  const running: number[] = [];
  const around: number[] = [];
  const crossed: number[] = [];
  for (;;) {
    // The first to start; of several the longest, of those alike the upper one.
    let lane = -1;
    for (let each = 0; each < track.lanes; each++) {
      const event = next[each]!;
      if (event >= laneFirst[track.lane + each + 1]!) continue;
      if (lane < 0) lane = each;
      else if (start[event]! < start[next[lane]!]! || (start[event] === start[next[lane]!] && end[event]! > end[next[lane]!]!)) lane = each;
    }
    if (lane < 0) return self;
    const event = next[lane]!++;
    // What takes no time takes none of another's.
    if (start[event] === end[event] || store.isBar(event)) continue;
    around.length = crossed.length = 0;
    let kept = 0;
    for (const other of running) {
      if (end[other]! <= start[event]!) continue;
      running[kept++] = other;
      (end[other]! < end[event]! ? crossed : around).push(other);
    }
    running.length = kept;
    running.push(event);
    for (const other of crossed) self[other - origin] = self[event - origin] = NaN;
    // They are in the order in which they began: it is a direct child of those only that enclose none of the later ones.
    let least = Infinity;
    for (let at = around.length - 1; at >= 0; at--) {
      const outer = around[at]!;
      if (end[outer]! >= least) continue;
      least = end[outer]!;
      self[outer - origin]! -= store.duration(event);
      if (crossed.length > 0 && crossed.some((each) => start[each]! >= start[outer]! && end[each]! <= end[outer]!)) self[outer - origin] = NaN;
    }
  }
}

/** As `sweep` says; null where nothing overlaps. Counted from the track's first event, and made once for each store. */
function overlapping(store: Store, track: Track): Float64Array | null {
  const known = found.get(store) ?? new Map<number, Float64Array | null>();
  found.set(store, known);
  let times = known.get(track.lane);
  if (times === undefined) known.set(track.lane, (times = isMixed(store, track) ? sweep(store, track) : null));
  return times;
}

/** Self times of a lane's events, asked for in their order: in time linear in all that is between the first and the last. */
export class SelfTimes {
  private readonly swept: Float64Array | null;
  private readonly origin: number;
  /** The lane below. */
  private child: number;
  private readonly first: number;
  private readonly last: number;

  constructor(
    private readonly store: Store,
    private readonly lane: number,
    track: Track,
  ) {
    this.swept = overlapping(store, track);
    this.origin = store.laneFirst[track.lane]!;
    const isLast = lane + 1 >= track.lane + track.lanes;
    this.first = this.child = isLast ? 0 : store.laneFirst[lane + 1]!;
    this.last = isLast ? 0 : store.laneFirst[lane + 2]!;
  }

  of(event: number): SelfTime {
    const { store, first, last } = this;
    if (store.isBar(event)) return "merged";
    const swept = this.swept === null ? null : this.swept[event - this.origin]!;
    if (Number.isNaN(swept)) return "overlap";
    if (swept !== null && store.counts === null) return swept;
    const [start, end] = [store.start[event]!, store.end[event]!];
    const from = store.nextStart(start, this.child, last);
    const to = store.nextStart(end, from, last);
    this.child = from;
    if (from > first) {
      // The events of a bar go on, perhaps, until the next row begins.
      if (store.isBar(from - 1) && !(from < last && store.start[from] === start)) return "merged";
      if (store.end[from - 1]! > start) return "overlap";
    }
    if (to > from && store.isBar(to - 1)) {
      const next = to < last ? store.start[to]! : Infinity;
      const nextOuter = event + 1 < store.laneFirst[this.lane + 1]! ? store.start[event + 1]! : Infinity;
      if (next > nextOuter) return "merged";
    }
    return end - start - (store.total[to]! - store.total[from]!);
  }
}

export function selfTime({ store, lane, event }: Place, track: Track): SelfTime {
  return new SelfTimes(store, lane, track).of(event);
}
