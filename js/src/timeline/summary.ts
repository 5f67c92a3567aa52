/** What a part of the trace sums up to, name by name, and the words for it. */

import type { Names, Store, Track } from "./data";
import { isOwn } from "./query";
import { SelfTimes } from "./self_time";
import { formatDuration } from "./ticks";

export interface Summary {
  /** A row of the names, the first with its text; null for all that is merged into bars: the page doesn't know their names. */
  name: number | null;
  /** Bars that stand for the events. */
  bars: number;
  /** Events. */
  count: number;
  total: number;
  /** Null where some have none: where events overlap, or are merged into bars. */
  self: number | null;
  /** Null for what is merged into bars. */
  min: number | null;
  max: number | null;
}

export interface Summed {
  rows: Summary[];
  /** Events of steps and derived lines, which repeat others and are not in `report.selection`. */
  repeated: number;
}

const groups = new WeakMap<Names, Uint32Array>();

/** Of each name the first with the same text: names are told apart by their ops too. */
export function sameText(names: Names): Uint32Array {
  const known = groups.get(names);
  if (known !== undefined) return known;
  const first = new Map<string, number>();
  const found = Uint32Array.from(names.name, (text, row) => {
    const before = first.get(text);
    if (before === undefined) first.set(text, row);
    return before ?? row;
  });
  groups.set(names, found);
  return found;
}

/** What the events that touch `[start, end]` in some lanes sum up to, by name; the most total time first. Whole events, not cut at the edges. */
export function summarize(lanes: readonly { store: Store; lane: number; track: Track }[], names: Names, start: number, end: number): Summed {
  const group = sameText(names);
  const byName = new Map<number | null, Summary>();
  let repeated = 0;
  for (const { store, lane, track } of lanes) {
    const last = store.laneFirst[lane + 1]!;
    const selves = new SelfTimes(store, lane, track);
    const from = store.firstEnd(start, store.laneFirst[lane]!, last);
    let i = from;
    for (; i < last && store.start[i]! <= end; i++) {
      const length = store.duration(i);
      const events = store.events(i, i + 1);
      const isBar = events > 1;
      const name = isBar ? null : group[store.name[i]!]!;
      let row = byName.get(name);
      if (row === undefined) byName.set(name, (row = { name, bars: 0, count: 0, total: 0, self: isBar ? null : 0, min: isBar ? null : length, max: isBar ? null : length }));
      row.count += events;
      row.total += length;
      if (isBar) row.bars++;
      if (row.self !== null) {
        const self = selves.of(i);
        row.self = typeof self === "number" ? row.self + self : null;
      }
      if (row.min !== null && length < row.min) row.min = length;
      if (row.max !== null && length > row.max) row.max = length;
    }
    if (!isOwn(track)) repeated += store.events(from, i);
  }
  return { rows: [...byName.values()].sort((a, b) => b.total - a.total || b.count - a.count), repeated };
}

export const counted = (n: number, one: string, more = `${one}s`): string => `${n.toLocaleString("en-US")} ${n === 1 ? one : more}`;

/** What is in a stretch of time of so many picoseconds, of which a share is busy. */
export function summaryWords({ rows, repeated }: Summed, ps: number, busy: number): string {
  const count = rows.reduce((sum, row) => sum + row.count, 0);
  if (count === 0) return `No event in these ${formatDuration(ps)}`;
  const merged = rows.find((row) => row.name === null);
  const names = merged === undefined ? rows.length : rows.length - 1;
  // A bar's events may be on either side of the edge.
  const all = merged === undefined ? `${counted(count, "event")} of ${counted(names, "name")}` : `About ${counted(count, "event")}`;
  const parts = merged === undefined ? "" : `. In this page, which was kept small, ${counted(count - merged.count, "event is", "events are")} there one by one, of ${counted(names, "name")}`;
  const again = repeated === 0 ? "" : `. ${counted(repeated, "of them repeats others", "of them repeat others")} (steps, derived lines): not in report.selection`;
  return `${all} in ${formatDuration(ps)}, ${(100 * busy).toFixed(1)} % of it busy${parts}${again}`;
}
