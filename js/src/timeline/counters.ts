/** Numbers over time, drawn as areas: a step from each change to the next. */

import type { Table, TimelineCounters } from "../types";
import { unsplit, type Track } from "./data";
import { formatBytes } from "./stats";

export interface Counter {
  unit: string;
  /** Ticks, ascending. */
  time: Float64Array;
  value: Float64Array;
  most: number;
  /** The least and the most of each block of changes. */
  leastOf: Float64Array;
  mostOf: Float64Array;
}

/** Changes in a block. */
const BLOCK = 16;

export function makeCounter(unit: string, time: Float64Array, value: Float64Array): Counter {
  const blocks = Math.ceil(value.length / BLOCK);
  const [leastOf, mostOf] = [new Float64Array(blocks).fill(Infinity), new Float64Array(blocks).fill(-Infinity)];
  for (let i = 0; i < value.length; i++) {
    const block = Math.floor(i / BLOCK);
    if (value[i]! < leastOf[block]!) leastOf[block] = value[i]!;
    if (value[i]! > mostOf[block]!) mostOf[block] = value[i]!;
  }
  return { unit, time, value, most: mostOf.reduce((a, b) => Math.max(a, b), 0), leastOf, mostOf };
}

/** The counters by their tracks. */
export function decodeCounters(table: Table, item: TimelineCounters, tracks: readonly Track[]): Map<number, Counter> {
  const gaps = unsplit(table, "time").values;
  const values = unsplit(table, "value").values;
  const counters = new Map<number, Counter>();
  tracks.forEach((track, index) => {
    if (track.kind !== "counter") return;
    const scale = item.scales[counters.size]!;
    const time = new Float64Array(gaps.subarray(track.first, track.first + track.count));
    for (let i = 1; i < time.length; i++) time[i]! += time[i - 1]!;
    const value = new Float64Array(values.subarray(track.first, track.first + track.count));
    for (let i = 0; i < value.length; i++) value[i]! *= scale;
    counters.set(index, makeCounter(item.units[counters.size]!, time, value));
  });
  return counters;
}

/** The first change after `time`, at `from` or later, in steps that double: fast where it is near. */
function after(time: Float64Array, at: number, from = 0): number {
  let step = 1;
  let low = from;
  while (low + step < time.length && time[low + step - 1]! <= at) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, time.length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (time[middle]! <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface Column {
  /** Pixels. */
  left: number;
  right: number;
  least: number;
  most: number;
}

/** The least and the most in each pixel of a window; neighbours that are alike are one. Before the first change there is nothing. */
export function columnsOf(counter: Counter, start: number, perPx: number, width: number): Column[] {
  const columns: Column[] = [];
  const { time, value, leastOf, mostOf } = counter;
  // Index of the first change after the left edge of the pixel; the value there is that of the change before it.
  let next = after(time, start);
  const add = (left: number, right: number, least: number, most: number) => {
    const before = columns[columns.length - 1];
    if (before !== undefined && before.right === left && before.least === least && before.most === most) before.right = right;
    else columns.push({ left, right, least, most });
  };
  for (let x = 0; x < width; ) {
    next = after(time, start + x * perPx, next);
    let least = next > 0 ? value[next - 1]! : Infinity;
    let most = next > 0 ? value[next - 1]! : -Infinity;
    const end = start + (x + 1) * perPx;
    let stop = after(time, end, next);
    while (stop > next && time[stop - 1]! >= end) stop--;
    for (let i = next; i < stop; ) {
      const whole = i % BLOCK === 0 && i + BLOCK <= stop;
      const [low, high] = whole ? [leastOf[i / BLOCK]!, mostOf[i / BLOCK]!] : [value[i]!, value[i]!];
      if (low < least) least = low;
      if (high > most) most = high;
      i += whole ? BLOCK : 1;
    }
    next = stop;
    if (most >= least) add(x, x + 1, least, most);
    // To the pixel of the next change nothing changes.
    const until = next < time.length ? Math.min(width, Math.floor((time[next]! - start) / perPx)) : width;
    if (until > x + 1 && next > 0) add(x + 1, until, value[next - 1]!, value[next - 1]!);
    x = Math.max(x + 1, until);
  }
  return columns;
}

export function formatCount(value: number, unit: string): string {
  return unit === "bytes" ? formatBytes(value).replace(/ \(.*/, "") : value.toLocaleString("en-US");
}
