/**
 * Level of detail of arrows: which of all those between events have an end in the window, and which of them to draw.
 *
 * Flat arrays, ordered once by where the arrows begin and once by where they end, so that a frame walks only over what is in
 * its window. Where that is too much to be read, a share of them is drawn: which ones depends on nothing but their place among
 * all, so that they stay the same ones while the window moves.
 */

import type { Store } from "./data";
import type { Flows } from "./flows";

/** Where a lane is: not laid out, or above, in, or below what is in view. */
export const ABSENT = 0;
export const ABOVE = 1;
export const IN_VIEW = 2;
export const BELOW = 3;

/** In steps of this share fewer are drawn, so that they aren't others with each one that comes into the window. */
const FEWER = 0.84;

/** More arrows in a trace than these take too much memory; how many are beyond is told. */
const MOST = 4_000_000;

export interface Chosen {
  /** Arrows to draw. */
  arrows: number[];
  /** Arrows with an end in the window. */
  count: number;
}

export class Arrows {
  readonly n: number;
  /** Those of the trace that are not in here. */
  readonly beyond: number;
  /** Events of the store. */
  readonly from: Uint32Array;
  readonly to: Uint32Array;
  /** Lanes of the store. */
  readonly fromLane: Uint32Array;
  readonly toLane: Uint32Array;
  /** Ticks; arrows are in the order of `begin`. */
  readonly begin: Float64Array;
  readonly end: Float64Array;
  private readonly byEnd: Uint32Array;
  /** Those that cross what is in view, in both orders. */
  private kept: Uint32Array;
  private keptByEnd: Uint32Array;
  private sides: Uint8Array | null = null;

  /** `eventOf`: event of the store of each row that flows name. */
  constructor(flows: Flows, store: Store, eventOf: Uint32Array) {
    const { start, end, laneFirst } = store;
    const all = flows.all(MOST);
    const laneOf = new Uint32Array(store.n);
    for (let lane = 0; lane + 1 < laneFirst.length; lane++) laneOf.fill(lane, laneFirst[lane], laneFirst[lane + 1]);
    const begins = new Float64Array(all.from.length);
    let n = 0;
    for (let i = 0; i < all.from.length; i++) {
      const [a, b] = [eventOf[all.from[i]!]!, eventOf[all.to[i]!]!];
      // Ids are used again: what began earlier is not led to.
      if (start[a]! > start[b]!) continue;
      all.from[n] = a;
      all.to[n] = b;
      // From the end of the one to the start of the other, or from within the one where that begins before its end.
      begins[n++] = Math.min(end[a]!, start[b]!);
    }
    this.n = n;
    this.beyond = all.beyond;
    const order = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => begins[a]! - begins[b]!);
    this.from = order.map((i) => all.from[i]!);
    this.to = order.map((i) => all.to[i]!);
    this.begin = Float64Array.from(order, (i) => begins[i]!);
    this.end = Float64Array.from(this.to, (event) => start[event]!);
    this.fromLane = this.from.map((event) => laneOf[event]!);
    this.toLane = this.to.map((event) => laneOf[event]!);
    const ends = this.end;
    this.byEnd = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => ends[a]! - ends[b]!);
    this.kept = new Uint32Array(0);
    this.keptByEnd = this.kept;
  }

  /** Keeps the arrows whose ends aren't both above or both below what is in view, on lanes that are laid out. */
  keep(sides: Uint8Array): void {
    const { sides: before, fromLane, toLane } = this;
    if (before !== null && before.length === sides.length && before.every((side, lane) => side === sides[lane])) return;
    this.sides = sides.slice();
    const isKept = (i: number) => {
      const [a, b] = [sides[fromLane[i]!]!, sides[toLane[i]!]!];
      return a !== ABSENT && b !== ABSENT && (a !== b || a === IN_VIEW);
    };
    this.kept = Uint32Array.from({ length: this.n }, (_, i) => i).filter(isKept);
    this.keptByEnd = this.byEnd.filter(isKept);
  }

  /** The arrows kept with an end in `[low, high]`; at most `most` to be drawn. */
  within(low: number, high: number, most: number): Chosen {
    const { begin, end, kept, keptByEnd } = this;
    const [first, last] = [lower(kept, begin, low, false), lower(kept, begin, high, true)];
    const [firstEnd, lastEnd] = [lower(keptByEnd, end, low, false), lower(keptByEnd, end, high, true)];
    let count = last - first;
    for (let k = firstEnd; k < lastEnd; k++) if (begin[keptByEnd[k]!]! < low) count++;
    let share = 1;
    while (count * share > most) share *= FEWER;
    const arrows: number[] = [];
    const bound = 2 ** 32 * share;
    const add = (i: number) => {
      // Scattered evenly, whatever pattern the arrows follow (Knuth's multiplicative hash).
      if (Math.imul(i, 0x9e3779b1) >>> 0 < bound && arrows.length < most) arrows.push(i);
    };
    for (let k = first; k < last; k++) add(kept[k]!);
    for (let k = firstEnd; k < lastEnd; k++) if (begin[keptByEnd[k]!]! < low) add(keptByEnd[k]!);
    return { arrows, count };
  }
}

/** First place in `order` whose time is at least (`after`: more than) `time`. */
function lower(order: Uint32Array, times: Float64Array, time: number, after: boolean): number {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const here = times[order[middle]!]!;
    if (here < time || (after && here === time)) low = middle + 1;
    else high = middle;
  }
  return low;
}
