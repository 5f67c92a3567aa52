import { describe, expect, it } from "vitest";
import { ABOVE, ABSENT, Arrows, BELOW, IN_VIEW } from "../../src/timeline/arrows";
import type { Flows } from "../../src/timeline/flows";
import { random, randomLane, storeOf } from "./make";

const LANES = 6;
const EACH = 300;
const store = storeOf(...Array.from({ length: LANES }, (_, i) => randomLane(EACH, i + 1)));
const next = random(3);
const pairs = Array.from({ length: 2000 }, () => [Math.floor(next() * store.n), Math.floor(next() * store.n)] as const);
const flows = { all: () => ({ from: Uint32Array.from(pairs, ([a]) => a), to: Uint32Array.from(pairs, ([, b]) => b), beyond: 0 }) } as unknown as Flows;
const same = Uint32Array.from({ length: store.n }, (_, i) => i);
const arrows = new Arrows(flows, store, same);

/** What should be found, looked at one by one. */
function expected(sides: number[], low: number, high: number): string[] {
  return pairs
    .filter(([a, b]) => store.start[a]! <= store.start[b]!)
    .filter(([a, b]) => {
      const [from, to] = [sides[Math.floor(a / EACH)]!, sides[Math.floor(b / EACH)]!];
      return from !== ABSENT && to !== ABSENT && (from === IN_VIEW || from !== to);
    })
    .filter(([a, b]) => {
      const end = store.start[b]!;
      const begin = Math.min(store.end[a]!, end);
      return (begin >= low && begin <= high) || (end >= low && end <= high);
    })
    .map(([a, b]) => `${a} ${b}`)
    .sort();
}

describe("Arrows", () => {
  const span = store.end.reduce((a, b) => Math.max(a, b), 0);
  const found = (low: number, high: number, most: number) => {
    const { arrows: chosen, count } = arrows.within(low, high, most);
    return { count, pairs: chosen.map((i) => `${arrows.from[i]} ${arrows.to[i]}`).sort() };
  };

  it("finds those with an end in the window, whatever is folded or scrolled away", () => {
    for (const sides of [Array(LANES).fill(IN_VIEW), [ABOVE, ABOVE, IN_VIEW, BELOW, BELOW, ABSENT]]) {
      arrows.keep(Uint8Array.from(sides));
      for (const [low, high] of [[0, span], [span * 0.3, span * 0.4], [span * 0.5, span * 0.5001], [-10, -1]] as const) {
        const want = expected(sides, low, high);
        expect(found(low, high, Infinity)).toEqual({ count: want.length, pairs: want });
      }
    }
  });

  it("draws some of too many: the same ones while the window moves, and more of them the closer it is", () => {
    arrows.keep(new Uint8Array(LANES).fill(IN_VIEW));
    const all = found(0, span, 100);
    expect(all.count).toBe(arrows.n);
    expect(all.pairs.length).toBeGreaterThan(40);
    expect(all.pairs.length).toBeLessThanOrEqual(100);
    const [a, b] = [found(span * 0.1, span * 0.8, 100), found(span * 0.12, span * 0.82, 100)];
    const kept = a.pairs.filter((pair) => b.pairs.includes(pair));
    expect(kept.length).toBeGreaterThan(0.85 * Math.min(a.pairs.length, b.pairs.length));
  });
});
