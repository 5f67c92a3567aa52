/** Questions about events: what lies where, its self time, what a part of the trace sums up to. */

import type { Store, Track } from "./data";
import type { Marks } from "./lod";

export interface Place {
  store: Store;
  /** In the store. */
  lane: number;
  event: number;
}

/** The event of a lane at `time`, or the nearest one within `reach` ticks; -1 if there is none. */
export function eventAt(store: Store, lane: number, time: number, reach: number): number {
  const first = store.laneFirst[lane]!;
  const last = store.laneFirst[lane + 1]!;
  const next = store.firstStart(time, first, last);
  let best = -1;
  let distance = reach;
  for (const event of [next - 1, next]) {
    if (event < first || event >= last) continue;
    const away = Math.max(0, store.start[event]! - time, time - store.end[event]!);
    if (away < distance || (away === 0 && best < 0)) {
      best = event;
      distance = away;
    }
  }
  return best;
}

/** Ticks of `[start, end]` in which at least one event of some lanes runs. */
export function busyTime(lanes: readonly { store: Store; lane: number }[], start: number, end: number): number {
  const parts = lanes.map(({ store, lane }) => {
    const first = store.firstEnd(start, store.laneFirst[lane]!, store.laneFirst[lane + 1]!);
    return { store, first, last: store.firstStart(end, first, store.laneFirst[lane + 1]!) };
  });
  const n = parts.reduce((sum, part) => sum + part.last - part.first, 0);
  const starts = new Float64Array(n);
  const ends = new Float64Array(n);
  let at = 0;
  for (const { store, first, last } of parts) {
    for (let i = first; i < last; i++, at++) {
      starts[at] = Math.max(start, store.start[i]!);
      ends[at] = Math.min(end, store.end[i]!);
    }
  }
  // As many have ended as have begun: nothing runs until the next one begins.
  starts.sort();
  ends.sort();
  let busy = 0;
  for (let i = 0, from = 0; i < n; i++) {
    if (i + 1 < n && starts[i + 1]! <= ends[i]!) continue;
    busy += ends[i]! - starts[from]!;
    from = i + 1;
  }
  return busy;
}

export interface PythonCall {
  name: string;
  /** `file.py:12`, where the function begins; null for functions of C. */
  source: string | null;
  /** Where functions of C come from; null if the profiler doesn't know. */
  module: string | null;
}

/** A call that Python's tracer saw: names are `$file.py:12 function`, `$module function`, `$<unknown> method`. Null for other names. */
export function pythonCall(text: string): PythonCall | null {
  const found = /^\$(?!\$)(?:(.+:\d+)|(\S+)) (\S+)$/s.exec(text);
  if (found === null) return null;
  const [, source, module, name] = found;
  return { name: name!, source: source ?? null, module: module === undefined || module === "<unknown>" ? null : module };
}

// ---- search -----------------------------------------------------------------------------------------------------

export type Match = "text" | "regex" | "exact" | "op";

/** Which names a search finds: text in either case, a regular expression (throws on a bad one), one name exactly, or all of one op. */
export function matchNames(names: { name: string[]; op?: string[] }, wanted: string, match: Match): Uint8Array {
  const found = new Uint8Array(names.name.length);
  if (wanted === "") return found;
  const lower = wanted.toLowerCase();
  const pattern = match === "regex" ? new RegExp(wanted, "i") : null;
  if (match === "op") return Uint8Array.from(names.op ?? [], (op) => (op === wanted ? 1 : 0));
  const hit = (text: string) => (match === "exact" ? text === wanted : pattern === null ? text.toLowerCase().includes(lower) : pattern.test(text));
  for (let i = 0; i < found.length; i++) {
    if (hit(names.name[i]!)) found[i] = 1;
  }
  return found;
}

export interface Hits {
  count: number;
  /** Ticks, of all of them together. */
  total: number;
  marks: Map<Store, Marks>;
}

/**
 * Finds the events of those names, on some sides only if `on` says so. All are marked, but only those on the tracks of the
 * file's own events are counted: steps and derived lines repeat them.
 */
export function findHits(
  stores: readonly Store[],
  found: Uint8Array,
  tracks: readonly { track: Track; store: Store }[],
  on: (track: Track) => boolean = () => true,
): Hits {
  const hits: Hits = { count: 0, total: 0, marks: new Map() };
  for (const store of stores) {
    const before = new Int32Array(store.n + 1);
    const { name, laneFirst } = store;
    const looked = new Uint8Array(store.n).fill(1);
    for (const each of tracks) if (each.store === store && !on(each.track)) looked.fill(0, laneFirst[each.track.lane]!, laneFirst[each.track.lane + each.track.lanes]!);
    for (let i = 0, count = 0; i < name.length; i++) before[i + 1] = count += found[name[i]!]! & looked[i]!;
    hits.marks.set(store, { before });
  }
  for (const { track, store } of tracks) {
    if (!isOwn(track)) continue;
    const { before } = hits.marks.get(store)!;
    const first = store.laneFirst[track.lane]!;
    const last = store.laneFirst[track.lane + track.lanes]!;
    const count = before[last]! - before[first]!;
    hits.count += count;
    if (count === 0) continue;
    let total = 0;
    for (let i = first; i < last; i++) if (found[store.name[i]!] === 1) total += store.duration(i);
    hits.total += total;
  }
  return hits;
}

/** Whether a track holds events of the file itself. */
export function isOwn(track: Track): boolean {
  return track.kind !== "steps" && track.kind !== "derived";
}

/** First index in `(from, high]` with more than `count` hits before it, less one: the next hit at or after `from`. */
function nextHit(before: Int32Array, from: number, high: number): number {
  const seen = before[from]!;
  let [low, stop] = [from, high];
  while (low < stop) {
    const middle = (low + stop) >>> 1;
    if (before[middle + 1]! > seen) stop = middle;
    else low = middle + 1;
  }
  return low;
}

function previousHit(before: Int32Array, low: number, from: number): number {
  // The last hit in [low, from).
  const seen = before[from]!;
  if (seen === before[low]!) return -1;
  let [left, right] = [low, from - 1];
  while (left < right) {
    const middle = (left + right + 1) >>> 1;
    if (before[middle]! < seen) left = middle;
    else right = middle - 1;
  }
  return left;
}

/** The hit after (or before) a place in the order of start, then of lanes. Null if there is none. */
export function step(hits: Hits, lanes: readonly { store: Store; lane: number }[], from: { time: number; row: number } | null, back: boolean): (Place & { row: number }) | null {
  let best: (Place & { row: number }) | null = null;
  for (let row = 0; row < lanes.length; row++) {
    const { store, lane } = lanes[row]!;
    const marks = hits.marks.get(store);
    if (marks === undefined) continue;
    const first = store.laneFirst[lane]!;
    const last = store.laneFirst[lane + 1]!;
    let event: number;
    if (!back) {
      let low = first;
      if (from !== null) {
        low = store.firstStart(from.time, first, last);
        // Of those that start at the very same time, the rows below come after.
        while (row <= from.row && low < last && store.start[low] === from.time) low++;
      }
      event = low < last ? nextHit(marks.before, low, last) : last;
      if (event >= last) continue;
    } else {
      let high = last;
      if (from !== null) {
        high = store.firstStart(from.time, first, last);
        while (row < from.row && high < last && store.start[high] === from.time) high++;
      }
      event = previousHit(marks.before, first, high);
      if (event < 0) continue;
    }
    const time = store.start[event]!;
    const better = best === null || (back ? time >= best.store.start[best.event]! : time < best.store.start[best.event]!);
    if (better) best = { store, lane, event, row };
  }
  return best;
}

/** An event with its lane. */
export function placeOf(store: Store, event: number): Place {
  let [low, high] = [0, store.laneFirst.length - 1];
  while (low + 1 < high) {
    const middle = (low + high) >>> 1;
    if (store.laneFirst[middle]! <= event) low = middle;
    else high = middle;
  }
  return { store, lane: low, event };
}
