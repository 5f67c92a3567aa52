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
}

/** The counters by their tracks. */
export function decodeCounters(table: Table, item: TimelineCounters, tracks: readonly Track[]): Map<number, Counter> {
  const gaps = unsplit(table, "time").values;
  const values = unsplit(table, "value").values;
  const counters = new Map<number, Counter>();
  tracks.forEach((track, index) => {
    if (track.kind !== "counter") return;
    const scale = item.scales[counters.size]!;
    const time = Float64Array.from(gaps.subarray(track.first, track.first + track.count));
    for (let i = 1; i < time.length; i++) time[i]! += time[i - 1]!;
    const value = Float64Array.from(values.subarray(track.first, track.first + track.count), (each) => each * scale);
    const most = value.reduce((a, b) => Math.max(a, b), 0);
    counters.set(index, { unit: item.units[counters.size]!, time, value, most });
  });
  return counters;
}

/** Index of the last change at `time` or before it; -1 if there is none. */
function at(counter: Counter, time: number): number {
  let [low, high] = [0, counter.time.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (counter.time[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The value at a time; null before the first change. */
export function valueAt(counter: Counter, time: number): number | null {
  const index = at(counter, time);
  return index < 0 ? null : counter.value[index]!;
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
  const { time, value } = counter;
  let next = at(counter, start) + 1;
  let now = next > 0 ? value[next - 1]! : NaN;
  for (let x = 0; x < width; ) {
    for (const from = start + x * perPx; next < time.length && time[next]! <= from; next++) now = value[next]!;
    let [least, most] = [now, now];
    const end = start + (x + 1) * perPx;
    for (; next < time.length && time[next]! < end; next++) {
      now = value[next]!;
      least = Number.isNaN(least) ? now : Math.min(least, now);
      most = Number.isNaN(most) ? now : Math.max(most, now);
    }
    // To the pixel of the next change nothing changes.
    const until = next < time.length ? Math.min(width, Math.floor((time[next]! - start) / perPx)) : width;
    const add = (left: number, right: number, low: number, high: number) => {
      const before = columns[columns.length - 1];
      if (before !== undefined && before.right === left && before.least === low && before.most === high) before.right = right;
      else columns.push({ left, right, least: low, most: high });
    };
    if (!Number.isNaN(most)) add(x, x + 1, least, most);
    if (until > x + 1 && !Number.isNaN(now)) add(x + 1, until, now, now);
    x = Math.max(x + 1, until);
  }
  return columns;
}

export function formatCount(value: number, unit: string): string {
  return unit === "bytes" ? formatBytes(value).replace(/ \(.*/, "") : value.toLocaleString("en-US");
}
