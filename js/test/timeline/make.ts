/** Traces for the tests: random lanes, and the tables that Python would make of them. */

import { Store } from "../../src/timeline/data";

/** A small generator with a seed, so that a failure can be repeated. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export interface Simple {
  start: number;
  duration: number;
  name?: number;
}

/** A store with these lanes; each must be in order and free of overlaps. */
export function storeOf(...lanes: Simple[][]): Store {
  const all = lanes.flat();
  const first = [0];
  for (const lane of lanes) first.push(first[first.length - 1]! + lane.length);
  return new Store(
    Float64Array.from(all, (event) => event.start),
    Float64Array.from(all, (event) => event.start + event.duration),
    Uint32Array.from(all, (event) => event.name ?? 0),
    Uint32Array.from(first),
  );
}

/** `n` events of mixed lengths (instants among them), one after another, with gaps. */
export function randomLane(n: number, seed: number, names = 5): Simple[] {
  const next = random(seed);
  const lane: Simple[] = [];
  let time = Math.floor(next() * 100);
  for (let i = 0; i < n; i++) {
    const scale = 10 ** (next() * 4);
    const duration = next() < 0.1 ? 0 : Math.floor(next() * scale);
    lane.push({ start: time, duration, name: Math.floor(next() * names) });
    time += duration + (next() < 0.3 ? 0 : Math.floor(next() * scale));
  }
  return lane;
}

/** A store of `lanes` lanes with `n` events in all, made fast enough for millions. */
export function bigStore(n: number, lanes: number, seed = 1): Store {
  const next = random(seed);
  const start = new Float64Array(n);
  const end = new Float64Array(n);
  const name = new Uint32Array(n);
  const first = new Uint32Array(lanes + 1);
  for (let lane = 0; lane < lanes; lane++) {
    const from = Math.floor((n * lane) / lanes);
    const to = Math.floor((n * (lane + 1)) / lanes);
    first[lane + 1] = to;
    let time = 0;
    for (let i = from; i < to; i++) {
      const r = next();
      const duration = Math.floor(r * r * r * 40_000);
      start[i] = time;
      end[i] = time + duration;
      name[i] = Math.floor(next() * 50);
      time += duration + Math.floor(next() * 2000);
    }
  }
  return new Store(start, end, name, first);
}
