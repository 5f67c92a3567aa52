/** The window on the trace: which time is shown, and how it moves. Times are ticks. */

/** Room kept free before the start and after the end, as a share of the trace. */
const MARGIN = 0.01;
/** Fewest ticks that the window shows. */
const LEAST_TICKS = 20;

export class Viewport {
  start = 0;
  /** Kept by itself, so that moving changes it by not even a rounding: the pixel grid stays. */
  length = 1;
  /** Between which times the window stays, if not around the trace: that of traces beside each other shows all of both. */
  limits: [number, number] | null = null;
  private animation: { from: [number, number]; to: [number, number]; begun: number; lasts: number } | null = null;

  /** `begin`: from where on all is shown, if not from 0; the window may go back to 0. */
  constructor(readonly span: number, readonly begin = 0) {
    this.all();
  }

  get end(): number {
    return this.start + this.length;
  }

  private get bounds(): [number, number] {
    if (this.limits !== null) return this.limits;
    const margin = Math.max(this.span, LEAST_TICKS) * MARGIN;
    return [-margin, Math.max(this.span, LEAST_TICKS) + margin];
  }

  private clamped(start: number, end: number): [number, number] {
    const [low, high] = this.bounds;
    const length = Math.min(Math.max(end - start, LEAST_TICKS), high - low);
    const middle = (start + end) / 2;
    const from = Math.min(Math.max(middle - length / 2, low), high - length);
    return [from, from + length];
  }

  set(start: number, end: number): void {
    this.animation = null;
    this.place(this.clamped(start, end));
  }

  private place([start, end]: [number, number]): void {
    this.start = start;
    this.length = end - start;
  }

  all(): void {
    const [low, high] = this.bounds;
    if (this.limits !== null) return this.set(low, high);
    const margin = Math.max(this.span - this.begin, LEAST_TICKS) * MARGIN;
    this.set(this.begin - margin, Math.max(this.span, LEAST_TICKS) + margin);
  }

  pan(ticks: number): void {
    const { length } = this;
    const [low, high] = this.bounds;
    const start = Math.min(Math.max(this.start + ticks, low), high - length);
    this.animation = null;
    this.start = start;
  }

  /** Zooms by `factor` (below 1: in) around a time that stays where it is. */
  zoom(factor: number, around: number): void {
    const [start, end] = this.zoomed(factor, around);
    this.set(start, end);
  }

  private zoomed(factor: number, around: number, start = this.start, end = this.end): [number, number] {
    const length = end - start;
    const wanted = Math.max(length * factor, LEAST_TICKS);
    const share = (around - start) / length;
    return this.clamped(around - share * wanted, around + (1 - share) * wanted);
  }

  // ---- smooth moves -----------------------------------------------------------------------------------------------

  /** Where a smooth move leads, or what is shown. */
  get target(): [number, number] {
    return this.animation?.to ?? [this.start, this.end];
  }

  moveTo(start: number, end: number, now: number, lasts: number): void {
    const to = this.clamped(start, end);
    if (lasts <= 0) return this.set(...to);
    this.animation = { from: [this.start, this.end], to, begun: now, lasts };
  }

  panSmoothly(share: number, now: number, lasts: number): void {
    const [start, end] = this.target;
    const by = (end - start) * share;
    const [low, high] = this.bounds;
    const from = Math.min(Math.max(start + by, low), high - (end - start));
    this.moveTo(from, from + (end - start), now, lasts);
  }

  zoomSmoothly(factor: number, around: number, now: number, lasts: number): void {
    const [start, end] = this.target;
    this.moveTo(...this.zoomed(factor, Math.min(Math.max(around, start), end), start, end), now, lasts);
  }

  /** Moves on to `now`; whether there is more to come. */
  advance(now: number): boolean {
    if (this.animation === null) return false;
    const { from, to, begun, lasts } = this.animation;
    const done = Math.min(1, Math.max(0, (now - begun) / lasts));
    const eased = 1 - (1 - done) ** 3;
    // Lengths change by ratios, so that a zoom looks even.
    const [length0, length1] = [from[1] - from[0], to[1] - to[0]];
    const length = length0 * (length1 / length0) ** eased;
    const share = length0 === length1 ? eased : (length - length0) / (length1 - length0);
    this.start = from[0] + (to[0] - from[0]) * share;
    this.length = length;
    if (done >= 1) {
      this.place(to);
      this.animation = null;
    }
    return this.animation !== null;
  }
}
