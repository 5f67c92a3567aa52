/**
 * The events as typed arrays, lane by lane.
 *
 * A *lane* holds events that don't overlap, so that both its starts and its ends ascend: everything that
 * is drawn or looked up is found in it by binary search. Times are ticks (`unit_ps` picoseconds each) since
 * the start of the trace.
 */

import type { Table } from "../types";

/** `steps` and `derived` repeat, in other words, what the other tracks show. */
export type Kind = "steps" | "host" | "device" | "derived" | "own" | "counter" | "bookkeeping";

export interface Track {
  section: number;
  label: string;
  /** The label in full: a thread's whole name with its id. */
  hint: string;
  kind: Kind;
  /** Its events are in the table that is unpacked on demand. */
  hidden: boolean;
  /** Rows of the table. */
  first: number;
  count: number;
  lanes: number;
  /** First of its lanes in the store. */
  lane: number;
  busyPs: number;
}

export interface Names {
  name: string[];
  /** What fits in a small box: an op's type. */
  short: string[];
  type: string[];
  op: string[];
  role: string[];
  /** `#rrggbb` */
  color: string[];
}

/** Events per block of the index of longest events. */
const BLOCK = 32;

export class Store {
  readonly n: number;
  /** Sum of the durations of all events before each one. */
  readonly total: Float64Array;
  /** The longest event of each block, of each block of blocks, … */
  private readonly longestOf: Int32Array[] = [];

  /** `start`, `end`, `name` of each event, lane after lane; `laneFirst`: first event of each lane, and the number of events at the end. */
  constructor(
    readonly start: Float64Array,
    readonly end: Float64Array,
    readonly name: Uint32Array,
    readonly laneFirst: Uint32Array,
    /** Row of each event in the table that it came in. */
    readonly row: Uint32Array = new Uint32Array(0),
  ) {
    const n = start.length;
    this.n = n;
    const total = new Float64Array(n + 1);
    for (let i = 0; i < n; i++) total[i + 1] = total[i]! + (end[i]! - start[i]!);
    this.total = total;
    for (let level = 0, size = n; size > BLOCK; level++) {
      const below = level === 0 ? null : this.longestOf[level - 1]!;
      size = Math.ceil(size / BLOCK);
      const longest = new Int32Array(size);
      const length = below === null ? n : below.length;
      for (let block = 0; block < size; block++) {
        let best = -1;
        let bestLength = -1;
        for (let i = block * BLOCK, stop = Math.min(i + BLOCK, length); i < stop; i++) {
          const event = below === null ? i : below[i]!;
          const duration = end[event]! - start[event]!;
          if (duration > bestLength) {
            bestLength = duration;
            best = event;
          }
        }
        longest[block] = best;
      }
      this.longestOf.push(longest);
    }
  }

  /** Of a page kept small: how many events each row stands for that is a bar. Null where there are no bars. */
  counts: ReadonlyMap<number, number> | null = null;
  /** Events of the trace before each one here. */
  private before: Float64Array | null = null;

  /** Takes rows for as many events as they stand for, if more than one. */
  weigh(counts: ReadonlyMap<number, number> | null): this {
    this.counts = counts;
    this.before = counts === null ? null : new Float64Array(this.n + 1);
    if (counts !== null) for (let i = 0; i < this.n; i++) this.before![i + 1] = this.before![i]! + (counts.get(this.row[i]!) ?? 1);
    return this;
  }

  /** How many events of the trace `[low, high)` stand for. */
  events(low: number, high: number): number {
    return this.before === null ? high - low : this.before[high]! - this.before[low]!;
  }

  /** Whether it stands for several events of the trace, in a page kept small. */
  isBar(event: number): boolean {
    return this.before !== null && this.before[event + 1]! - this.before[event]! > 1;
  }

  duration(event: number): number {
    return this.end[event]! - this.start[event]!;
  }

  /** First event in `[low, high)` that starts at `time` or later; `high` if none does. */
  firstStart(time: number, low: number, high: number): number {
    const { start } = this;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (start[middle]! < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** First event in `[low, high)` that ends at `time` or later; `high` if none does. */
  firstEnd(time: number, low: number, high: number): number {
    const { end } = this;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (end[middle]! < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Events `[low, high)` of a lane that are in `[start, end)`, instants at its start among them; not those that end where it starts. */
  inside(lane: number, start: number, end: number): [number, number] {
    const last = this.laneFirst[lane + 1]!;
    let low = this.firstEnd(start, this.laneFirst[lane]!, last);
    while (low < last && this.end[low] === start && this.start[low]! < start) low++;
    return [low, this.firstStart(end, low, last)];
  }

  /** Like `firstStart`, in steps that double: fast where the answer is near `low`. */
  nextStart(time: number, low: number, high: number): number {
    const { start } = this;
    let step = 1;
    let from = low;
    while (from + step < high && start[from + step]! < time) {
      from += step;
      step *= 2;
    }
    return this.firstStart(time, from, Math.min(from + step + 1, high));
  }

  /** The longest event in `[low, high)`, the first one of equals; there must be one. */
  longest(low: number, high: number): number {
    let best = low;
    for (let level = -1; ; level++) {
      // Blocks are wholly inside; what is left of and right of them is looked at here, the blocks one level up.
      const inner = Math.ceil(low / BLOCK);
      const outer = Math.floor(high / BLOCK);
      if (inner >= outer || level + 1 >= this.longestOf.length) return this.longer(level, low, high, best);
      best = this.longer(level, low, inner * BLOCK, best);
      best = this.longer(level, outer * BLOCK, high, best);
      low = inner;
      high = outer;
    }
  }

  private longer(level: number, low: number, high: number, best: number): number {
    const { start, end } = this;
    const items = level < 0 ? null : this.longestOf[level]!;
    let length = end[best]! - start[best]!;
    for (let i = low; i < high; i++) {
      const event = items === null ? i : items[i]!;
      const here = end[event]! - start[event]!;
      if (here > length || (here === length && event < best)) {
        length = here;
        best = event;
      }
    }
    return best;
  }
}

/** Unsigned integers, of as many bytes as they need. */
export type Numbers = Uint8Array | Uint32Array | Float64Array;

function addPlane(values: Uint32Array, bytes: Uint8Array, shift: number): void {
  for (let i = 0; i < bytes.length; i++) values[i]! |= bytes[i]! << shift;
}

/** A column of unsigned integers that was stored one byte a column (`start0` is the lowest), and what they wrap around at. */
export function unsplit(table: Table, name: string): { values: Numbers; wrap: number } {
  const planes: Uint8Array[] = [];
  for (;;) {
    const plane = table.getChild(`${name}${planes.length}`);
    if (!plane) break;
    planes.push(plane.toArray() as Uint8Array);
  }
  const wrap = 256 ** planes.length;
  const [lowest = new Uint8Array(table.numRows), ...others] = planes;
  if (others.length === 0) return { values: lowest, wrap };
  const values = new Uint32Array(lowest);
  others.slice(0, 3).forEach((bytes, plane) => addPlane(values, bytes, 8 * (plane + 1)));
  if (planes.length <= 4) return { values, wrap };
  const wide = new Float64Array(values);
  planes.slice(4).forEach((bytes, plane) => {
    const scale = 256 ** (plane + 4);
    for (let i = 0; i < wide.length; i++) wide[i]! += bytes[i]! * scale;
  });
  return { values: wide, wrap };
}

/**
 * Unpacks events. Each start is stored as the gap from the event before: from that one's start if this one lies
 * in a deeper lane, else from its end (such gaps are the smallest).
 */
export function decodeEvents(table: Table, tracks: Track[]): Store {
  const { values: gap, wrap } = unsplit(table, "start");
  const duration = unsplit(table, "duration").values;
  const name = unsplit(table, "name").values;
  const lane = unsplit(table, "lane").values;
  const n = gap.length;

  let lanes = 0;
  for (const track of tracks) {
    track.lane = lanes;
    lanes += track.lanes;
  }
  const laneFirst = new Uint32Array(lanes + 1);
  for (const track of tracks) {
    for (let i = track.first; i < track.first + track.count; i++) laneFirst[track.lane + lane[i]! + 1]!++;
  }
  for (let i = 0; i < lanes; i++) laneFirst[i + 1]! += laneFirst[i]!;

  const next = laneFirst.slice();
  const starts = new Float64Array(n);
  const ends = new Float64Array(n);
  const names = new Uint32Array(n);
  const rows = new Uint32Array(n);
  for (const track of tracks) {
    let start = 0;
    let end = 0;
    let above = 0;
    for (let i = track.first; i < track.first + track.count; i++) {
      const here = lane[i]!;
      let at = (here > above ? start : end) + gap[i]!;
      if (at >= wrap) at -= wrap;
      start = at;
      end = at + duration[i]!;
      above = here;
      const to = next[track.lane + here]!++;
      starts[to] = start;
      ends[to] = end;
      names[to] = name[i]!;
      rows[to] = i;
    }
  }
  return new Store(starts, ends, names, laneFirst, rows);
}

export function decodeTracks(table: Table): Track[] {
  return Array.from({ length: table.numRows }, (_, i) => {
    const row = table.get(i) as Record<string, any>;
    return {
      section: Number(row["section"]),
      label: String(row["label"]),
      hint: String(row["hint"]),
      kind: row["kind"] as Kind,
      hidden: Boolean(row["hidden"]),
      first: Number(row["first"]),
      count: Number(row["count"]),
      lanes: Number(row["lanes"]),
      lane: 0,
      busyPs: Number(row["busy_ps"]),
    };
  });
}

export function decodeNames(table: Table): Names {
  const column = (name: string) => Array.from(table.getChild(name)!.toArray() as Iterable<unknown>, String);
  return {
    name: column("name"),
    short: column("short"),
    type: column("type"),
    op: column("op"),
    role: column("role"),
    color: column("color"),
  };
}
