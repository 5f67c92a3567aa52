/** Times as people read them, and where to put the marks of a time axis. All times are picoseconds. */

const UNITS: [string, number][] = [
  ["s", 1e12],
  ["ms", 1e9],
  ["µs", 1e6],
  ["ns", 1e3],
  ["ps", 1],
];

function unitFor(ps: number): [string, number] {
  return UNITS.find(([, size]) => ps >= size) ?? UNITS[UNITS.length - 1]!;
}

const decimals = (value: number, digits: number) => value.toFixed(Math.min(12, Math.max(0, digits)));

/** A length of time with four digits that count: `3.150 ms`, `41.25 µs`, `50 ns`. */
export function formatDuration(ps: number): string {
  if (!(ps > 0)) return ps < 0 ? `−${formatDuration(-ps)}` : "0";
  // What rounds up to a thousand of a unit is one of the next.
  const rounded = Number(ps.toPrecision(4));
  const [unit, size] = unitFor(rounded);
  const value = ps / size;
  if (unit === "ps") return `${Math.round(value)} ps`;
  const digits = 3 - Math.floor(Math.log10(rounded / size) + 1e-9);
  // Times are measured in whole nanoseconds, so more digits would be made up.
  const known = Math.round(Math.log10(size)) - (ps % 1000 === 0 ? 3 : 0);
  return `${decimals(value, Math.min(digits, known))} ${unit}`;
}

/** The time of several events together, in words where they take none. */
export function totalTime(ps: number): string {
  return ps > 0 ? formatDuration(ps) : "without a duration";
}

/** A point in time, as exact as `precision` picoseconds: `123.456 ms`. */
export function formatTime(ps: number, precision: number): string {
  if (ps === 0) return "0";
  const [unit, size] = unitFor(Math.max(Math.abs(ps), precision));
  return `${decimals(ps / size, Math.ceil(Math.log10(size / precision) - 1e-9))} ${unit}`;
}

export interface Ticks {
  /** Picoseconds. */
  at: number[];
  labels: string[];
  /** What the labels count from, where they are offsets (they begin with `+`); else empty. */
  base: string;
}

/** A round step of at least `ps`. */
export function niceStep(ps: number): number {
  const power = 10 ** Math.floor(Math.log10(ps) + 1e-9);
  for (const factor of [1, 2, 5]) if (factor * power >= ps * (1 - 1e-9)) return Math.max(1, factor * power);
  return Math.max(1, 10 * power);
}

/** A label's width, at most: nothing is measured for each frame. */
const CHARACTER_PX = 7;
const LABEL_GAP_PX = 8;
/** Units of the labels between two places that they can count from. */
const BASE_UNITS = 100;
/** With fewer marks nobody can tell a length. */
const FEWEST = 2;

/**
 * Marks between `start` and `end`, about `spacing` pixels apart on `width` pixels, or closer where these would be fewer than two. Deep in a
 * trace the labels would have to repeat many digits; there they count from a base that is shown once.
 */
export function ticks(start: number, end: number, width: number, spacing = 110): Ticks {
  const span = end - start;
  if (!(span > 0) || !(width > 0)) return { at: [], labels: [], base: "" };
  let step = niceStep((span * spacing) / width);
  let found = every(step, start, end);
  while (found.at.length < FEWEST) {
    const closer = niceStep(step / 2.5);
    if (closer >= step) break;
    const next = every(closer, start, end);
    const longest = Math.max(...next.labels.map((label) => label.length), 0);
    if ((closer * width) / span < longest * CHARACTER_PX + LABEL_GAP_PX) break;
    [step, found] = [closer, next];
  }
  return found;
}

/** Marks at the multiples of a step. */
function every(step: number, start: number, end: number): Ticks {
  const first = Math.ceil(start / step - 1e-9);
  const last = Math.floor(end / step + 1e-9);
  const at: number[] = [];
  for (let k = first; k <= last; k++) at.push(k * step);
  const largest = Math.max(Math.abs(start), Math.abs(end));
  const [unit, size] = unitFor(largest);
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  if (digits <= 4) {
    return { at, labels: at.map((ps) => (ps === 0 ? "0" : `${decimals(ps / size, digits)} ${unit}`)), base: "" };
  }
  // Offsets are below a thousand of their unit: a window is, and the base is the last multiple of a hundred of them before it.
  const [offsetUnit, offsetSize] = unitFor((end - start) * (1 + BASE_UNITS / 900));
  const grain = offsetSize * BASE_UNITS;
  const base = Math.floor(start / grain) * grain;
  const offsetDigits = Math.max(0, Math.ceil(Math.log10(offsetSize / step) - 1e-9));
  return {
    at,
    labels: at.map((ps) => `+${decimals((ps - base) / offsetSize, offsetDigits)} ${offsetUnit}`),
    base: formatTime(base, grain),
  };
}
