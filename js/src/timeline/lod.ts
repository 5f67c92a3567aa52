/**
 * Level of detail: from events to at most a few thousand rectangles.
 *
 * An event of at least `minPx` pixels is drawn by itself. Shorter ones are merged, pixel by pixel, into bars
 * whose shade is the share of the time that is busy. Pixels are counted from the start of the trace, not from the
 * edge of the window, so that nothing changes its look while the window moves.
 */

import type { Store } from "./data";

/** Shades of merged bars. */
export const LEVELS = 6;

export interface Row {
  store: Store;
  lane: number;
}

export interface Window {
  /** Ticks. */
  start: number;
  end: number;
  /** Ticks a pixel. */
  perPx: number;
}

/** Rectangles, in structures of arrays that are reused from frame to frame. */
export class Boxes {
  n = 0;
  left: Float64Array;
  right: Float64Array;
  /** Index of the row. */
  row: Int32Array;
  /** The event drawn, or the longest of those merged. */
  event: Int32Array;
  /** How many events of the trace; more than one in a merged bar. */
  count: Int32Array;
  /** Ticks in which it is busy. */
  busy: Float64Array;
  /** 0 for a single event; the shade (1 to `LEVELS`) of a bar. */
  level: Uint8Array;
  /** Whether an event in it is marked. */
  marked: Uint8Array;

  constructor(capacity = 4096) {
    this.left = new Float64Array(capacity);
    this.right = new Float64Array(capacity);
    this.row = new Int32Array(capacity);
    this.event = new Int32Array(capacity);
    this.count = new Int32Array(capacity);
    this.busy = new Float64Array(capacity);
    this.level = new Uint8Array(capacity);
    this.marked = new Uint8Array(capacity);
  }

  add(left: number, right: number, row: number, event: number, count: number, busy: number, level: number, marked: number): void {
    const { n } = this;
    if (n === this.left.length) this.grow();
    this.left[n] = left;
    this.right[n] = right;
    this.row[n] = row;
    this.event[n] = event;
    this.count[n] = count;
    this.busy[n] = busy;
    this.level[n] = level;
    this.marked[n] = marked;
    this.n = n + 1;
  }

  private grow(): void {
    for (const key of ["left", "right", "row", "event", "count", "busy", "level", "marked"] as const) {
      const old = this[key];
      const bigger = new (old.constructor as new (length: number) => typeof old)(old.length * 2);
      bigger.set(old as never);
      (this as Record<string, unknown>)[key] = bigger;
    }
  }
}

export interface Marks {
  /** Number of marked events before each one: shape (n + 1). */
  before: Int32Array;
}

export interface Drawn {
  singles: Boxes;
  bars: Boxes;
  /** Events in the window, on the rows that were drawn. */
  total: number;
  /** Those of them with a rectangle of their own. */
  alone: number;
  /** Whether some are known as a bar of the page only, so that it isn't certain how many are in the window. */
  isAbout: boolean;
}

export function makeDrawn(): Drawn {
  return { singles: new Boxes(), bars: new Boxes(), total: 0, alone: 0, isAbout: false };
}

/** The shade for a share of busy time: what exists has at least the lightest. */
export function levelOf(share: number): number {
  return Math.min(LEVELS, Math.max(1, Math.ceil(share * LEVELS)));
}

/**
 * Draws the rows into `out`. Returns false, having stopped, once there are more than `budget` rectangles.
 *
 * `look[name]` is a number that stands for the colour of a name: neighbouring bars of one look become one.
 */
export function draw(
  rows: readonly Row[],
  window: Window,
  minPx: number,
  budget: number,
  look: ArrayLike<number>,
  marksOf: ReadonlyMap<Store, Marks> | null,
  out: Drawn,
): boolean {
  out.singles.n = 0;
  out.bars.n = 0;
  out.total = 0;
  out.alone = 0;
  out.isAbout = false;
  for (let row = 0; row < rows.length; row++) {
    const { store, lane } = rows[row]!;
    drawLane(store, lane, row, window, minPx, look, marksOf?.get(store) ?? null, out);
    if (out.singles.n + out.bars.n > budget) return false;
  }
  return true;
}

function drawLane(
  store: Store,
  lane: number,
  row: number,
  window: Window,
  minPx: number,
  look: ArrayLike<number>,
  marks: Marks | null,
  out: Drawn,
): void {
  const { start, end, name, total } = store;
  const { singles, bars } = out;
  const first = store.laneFirst[lane]!;
  const last = store.laneFirst[lane + 1]!;
  const bin = window.perPx * minPx;
  // Whole pixels, so that the edge of the window doesn't change the shade of a bar.
  let i = store.firstEnd(Math.floor(window.start / bin) * bin, first, last);
  const stop = store.firstStart(Math.ceil(window.end / bin) * bin, i, last);
  const events = store.events(i, stop);
  out.total += events;
  if (events > stop - i) out.isAbout = true;

  // The bar being made: pixel `at`, from `left` on. An event that ends in the next pixel leaves time over for it.
  let at = NaN;
  let left = 0;
  let count = 0;
  let busy = 0;
  let longest = -1;
  let marked = 0;
  let free = -Infinity; // where the last single event ended
  let lookBefore = -1; // of the bar before, if this one may join it

  const close = (right: number) => {
    if (longest < 0) return;
    // A speck between two long events must still be seen.
    if (right - left < bin * 0.5) right = left + bin * 0.5;
    const level = levelOf(busy / (right - left));
    const key = (look[name[longest]!]! * LEVELS + level - 1) * 2 + marked;
    const n = bars.n - 1;
    if (lookBefore === key && bars.right[n] === left) {
      if (count > 0 && bars.count[n] === 1) out.alone--;
      bars.right[n] = right;
      bars.count[n]! += count;
      bars.busy[n]! += busy;
      if (store.duration(longest) > store.duration(bars.event[n]!)) bars.event[n] = longest;
    } else {
      bars.add(left, right, row, longest, count, busy, level, marked);
      if (count === 1) out.alone++;
    }
    lookBefore = key;
    longest = -1;
  };

  const open = (pixel: number, event: number) => {
    at = pixel;
    left = Math.max(pixel * bin, free);
    count = 0;
    busy = 0;
    longest = event;
    marked = 0;
  };

  while (i < stop) {
    const from = start[i]!;
    if (end[i]! - from >= bin) {
      close(Math.min((at + 1) * bin, from));
      lookBefore = -1;
      const here = store.events(i, i + 1);
      singles.add(from, end[i]!, row, i, here, end[i]! - from, 0, marks !== null && marks.before[i + 1]! > marks.before[i]! ? 1 : 0);
      if (here === 1) out.alone++;
      free = end[i]!;
      i++;
      continue;
    }
    const pixel = Math.floor(from / bin);
    if (longest >= 0 && pixel !== at) close((at + 1) * bin);
    const pixelEnd = (pixel + 1) * bin;
    let j = store.nextStart(pixelEnd, i, stop);
    // Of those that start in one pixel, only the last can be as long as a pixel.
    if (j - 1 > i && end[j - 1]! - start[j - 1]! >= bin) j--;
    if (longest < 0) open(pixel, i);
    const best = store.longest(i, j);
    if (store.duration(best) > store.duration(longest)) longest = best;
    count += store.events(i, j);
    busy += total[j]! - total[i]!;
    if (marks !== null && marks.before[j]! > marks.before[i]!) marked = 1;
    const over = end[j - 1]! - pixelEnd;
    if (over > 0) {
      busy -= over;
      const lastMarked = marks !== null && marks.before[j]! > marks.before[j - 1]! ? 1 : 0;
      close(pixelEnd);
      open(pixel + 1, j - 1);
      busy = over;
      marked = lastMarked;
    }
    i = j;
  }
  if (longest >= 0) close(i < last ? Math.min((at + 1) * bin, start[i]!) : (at + 1) * bin);
}

/** Pixels below which events are merged, from the finest on. */
export const STEPS = [1, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64];

/**
 * Chooses how fine to draw: the finest step that keeps within the budget. While only the window moves the step goes
 * up where it must, but down only where there is much room, so that it doesn't flicker between two.
 */
export class Detail {
  private step = 0;
  private perPx = NaN;

  constructor(readonly budget: number) {}

  get minPx(): number {
    return STEPS[this.step]!;
  }

  draw(rows: readonly Row[], window: Window, look: ArrayLike<number>, marks: ReadonlyMap<Store, Marks> | null, out: Drawn): void {
    const zoomed = this.perPx !== window.perPx;
    this.perPx = window.perPx;
    const attempt = () => draw(rows, window, this.minPx, this.budget, look, marks, out);
    let fits = attempt();
    while (!fits && this.step < STEPS.length - 1) {
      this.step++;
      fits = attempt();
    }
    while (this.step > 0) {
      const used = out.singles.n + out.bars.n;
      if (used > this.budget * (zoomed ? 0.6 : 0.35)) break;
      this.step--;
      if (attempt()) continue;
      this.step++;
      attempt();
      break;
    }
  }
}
