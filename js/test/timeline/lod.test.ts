import { describe, expect, it } from "vitest";
import { Store } from "../../src/timeline/data";
import { Detail, draw, LEVELS, levelOf, makeDrawn, type Drawn, type Row, type Window } from "../../src/timeline/lod";
import { findHits } from "../../src/timeline/query";
import { bigStore, random, randomLane, storeOf } from "./make";

const look = new Uint16Array(64).map((_, i) => i % 7);
const rowsOf = (store: Store): Row[] => Array.from({ length: store.laneFirst.length - 1 }, (_, lane) => ({ store, lane }));

/** What the rules say, event by event, without any cleverness. */
function expected(store: Store, lane: number, window: Window, minPx: number) {
  const bin = window.perPx * minPx;
  const low = Math.floor(window.start / bin) * bin;
  const high = Math.ceil(window.end / bin) * bin;
  const singles: number[] = [];
  const rest: number[] = [];
  for (let i = store.laneFirst[lane]!; i < store.laneFirst[lane + 1]!; i++) {
    if (store.end[i]! < low || store.start[i]! >= high) continue;
    (store.end[i]! - store.start[i]! >= bin ? singles : rest).push(i);
  }
  return { singles, rest, bin };
}

function check(store: Store, window: Window, minPx: number, drawn: Drawn): void {
  const { singles, bars } = drawn;
  let total = 0;
  for (let lane = 0; lane < store.laneFirst.length - 1; lane++) {
    const want = expected(store, lane, window, minPx);
    total += want.singles.length + want.rest.length;
    const mine = [...Array(singles.n).keys()].filter((i) => singles.row[i] === lane);
    // Every event of at least a pixel, at its place, and nothing else.
    expect(mine.map((i) => singles.event[i])).toEqual(want.singles);
    for (const i of mine) {
      expect(singles.left[i]).toBe(store.start[singles.event[i]!]);
      expect(singles.right[i]).toBe(store.end[singles.event[i]!]);
    }
    const own = [...Array(bars.n).keys()].filter((i) => bars.row[i] === lane);
    // All the others are in a bar that covers them; together the bars hold exactly their time and their number.
    const slack = want.bin * 1e-9;
    const uncovered = want.rest.filter((event) => {
      const [start, end] = [store.start[event]!, store.end[event]!];
      return !own.some((i) => bars.left[i]! <= end + slack && bars.right[i]! >= start - slack);
    });
    expect(uncovered).toEqual([]);
    const busy = want.rest.reduce((sum, event) => sum + store.duration(event), 0);
    expect(own.reduce((sum, i) => sum + bars.busy[i]!, 0)).toBeCloseTo(busy, 3);
    expect(own.reduce((sum, i) => sum + bars.count[i]!, 0)).toBe(want.rest.length);
    for (let k = 0; k < own.length; k++) {
      const i = own[k]!;
      // No bar claims a pixel without an event: it is as wide as its events reach, up to a pixel at each side.
      const inside = want.rest.filter((event) => store.end[event]! >= bars.left[i]! - slack && store.start[event]! <= bars.right[i]! + slack);
      expect(inside.length).toBeGreaterThan(0);
      expect(bars.left[i]!).toBeGreaterThanOrEqual(Math.min(...inside.map((event) => store.start[event]!)) - want.bin - slack);
      expect(bars.right[i]!).toBeLessThanOrEqual(Math.max(...inside.map((event) => store.end[event]!)) + want.bin + slack);
      expect(bars.right[i]! - bars.left[i]!).toBeGreaterThanOrEqual(want.bin * 0.499);
      expect(bars.level[i]).toBeGreaterThanOrEqual(1);
      expect(bars.level[i]).toBeLessThanOrEqual(LEVELS);
      if (k > 0) expect(bars.left[i]!).toBeGreaterThanOrEqual(bars.right[own[k - 1]!]! - want.bin * 0.501);
    }
  }
  expect(drawn.total).toBe(total);
}

describe("draw", () => {
  it("keeps every long event and merges exactly the rest, at any zoom", () => {
    const next = random(7);
    for (let seed = 1; seed <= 8; seed++) {
      const store = storeOf(randomLane(300, seed), randomLane(200, seed + 100), []);
      const span = store.end[299]!;
      for (let k = 0; k < 6; k++) {
        const perPx = 0.5 * 4 ** (k * 1.3);
        const start = Math.round((next() * span) / perPx) * perPx;
        const window = { start, end: start + perPx * 400, perPx };
        for (const minPx of [1, 2, 6]) {
          const drawn = makeDrawn();
          expect(draw(rowsOf(store), window, minPx, Infinity, look, null, drawn)).toBe(true);
          check(store, window, minPx, drawn);
        }
      }
    }
  });

  it("shows a lone instant, and a speck between two long events", () => {
    const store = storeOf([
      { start: 500, duration: 0 },
      { start: 1000, duration: 400 },
      { start: 1400, duration: 0 },
      { start: 1400, duration: 300 },
    ]);
    const drawn = makeDrawn();
    draw(rowsOf(store), { start: 0, end: 4000, perPx: 10 }, 1, Infinity, look, null, drawn);
    expect(drawn.singles.n).toBe(2);
    expect(drawn.bars.n).toBe(2);
    expect([drawn.bars.left[0], drawn.bars.right[0]]).toEqual([500, 510]);
    expect(drawn.bars.right[1]! - drawn.bars.left[1]!).toBe(5);
    expect(drawn.alone).toBe(4);
  });

  it("gives a busier pixel a darker shade", () => {
    const lane = [...Array(10).keys()].map((i) => ({ start: i * 10, duration: 1 }));
    const busy = [...Array(10).keys()].map((i) => ({ start: 1000 + i * 10, duration: 9 }));
    const drawn = makeDrawn();
    draw(rowsOf(storeOf([...lane, ...busy])), { start: 0, end: 2000, perPx: 100 }, 1, Infinity, look, null, drawn);
    expect([...drawn.bars.level.slice(0, 2)]).toEqual([levelOf(0.1), levelOf(0.9)]);
    expect(drawn.bars.busy[1]).toBe(90);
  });

  it("takes the colour of the longest event of a pixel", () => {
    const lane = [...Array(200).keys()].map((i) => ({ start: i * 10, duration: i === 137 ? 9 : 3, name: i === 137 ? 4 : 1 }));
    const drawn = makeDrawn();
    draw(rowsOf(storeOf(lane)), { start: 0, end: 4000, perPx: 2000 }, 1, Infinity, look, null, drawn);
    expect(drawn.bars.n).toBe(1);
    expect(drawn.bars.event[0]).toBe(137);
  });

  it("doesn't change what a pixel looks like while the window moves by whole pixels", () => {
    const store = storeOf(randomLane(3000, 5));
    const perPx = 373.1;
    const before = makeDrawn();
    const after = makeDrawn();
    draw(rowsOf(store), { start: 100 * perPx, end: 500 * perPx, perPx }, 1, Infinity, look, null, before);
    draw(rowsOf(store), { start: 123 * perPx, end: 523 * perPx, perPx }, 1, Infinity, look, null, after);
    const inside = (drawn: Drawn) =>
      [...Array(drawn.bars.n).keys()]
        .map((i) => [drawn.bars.left[i]!, drawn.bars.right[i]!, drawn.bars.level[i]!, drawn.bars.busy[i]!])
        .filter(([left, right]) => left! > 124 * perPx && right! < 499 * perPx);
    expect(inside(before).length).toBeGreaterThan(20);
    expect(inside(after)).toEqual(inside(before));
  });

  it("marks a bar that holds a marked event, and only such", () => {
    const lane = [...Array(100).keys()].map((i) => ({ start: i * 10, duration: 3, name: i === 42 ? 2 : 0 }));
    const store = storeOf(lane);
    const found = new Uint8Array(3);
    found[2] = 1;
    const hits = findHits([store], found, []);
    const drawn = makeDrawn();
    draw(rowsOf(store), { start: 0, end: 1000, perPx: 100 }, 1, Infinity, look, hits.marks, drawn);
    const marked = [...Array(drawn.bars.n).keys()].filter((i) => drawn.bars.marked[i] === 1);
    expect(marked.map((i) => [drawn.bars.left[i], drawn.bars.right[i]])).toEqual([[400, 500]]);
  });
});

describe("Detail", () => {
  it("keeps to its budget at any zoom, with three million events", () => {
    const store = bigStore(3_000_000, 40);
    const rows = rowsOf(store);
    const span = store.end[store.n - 1]!;
    const detail = new Detail(10_000);
    const drawn = makeDrawn();
    for (let share = 1; share > 1e-6; share /= 3) {
      for (const at of [0, 0.3, 0.77]) {
        const perPx = (span * share) / 1400;
        const start = Math.round((at * span * (1 - share)) / perPx) * perPx;
        detail.draw(rows, { start, end: start + 1400 * perPx, perPx }, look, null, drawn);
        expect(drawn.singles.n + drawn.bars.n).toBeLessThanOrEqual(10_000);
        if (drawn.total > 0) expect(drawn.singles.n + drawn.bars.n).toBeGreaterThan(0);
        check2(drawn);
      }
    }
  });

  /** All events are accounted for. */
  function check2(drawn: Drawn): void {
    let count = drawn.singles.n;
    for (let i = 0; i < drawn.bars.n; i++) count += drawn.bars.count[i]!;
    expect(count).toBe(drawn.total);
  }

  it("counts a bar of a page kept small as the events that it stands for", () => {
    const lane = Array.from({ length: 300 }, (_, i) => ({ start: i * 10, duration: i % 3 === 0 ? 9 : 2 }));
    const plain = storeOf(lane);
    const counts = new Map(Array.from({ length: 100 }, (_, i) => [3 * i, 1 + (i % 4) * 50]));
    const store = new Store(plain.start, plain.end, plain.name, plain.laneFirst, Uint32Array.from(plain.start, (_, i) => i)).weigh(counts);
    const drawn = makeDrawn();
    for (const perPx of [1, 4, 30, 500]) {
      draw([{ store, lane: 0 }], { start: 0, end: 3000, perPx }, 1, 10_000, look, null, drawn);
      expect(drawn.total).toBe(200 + 100 + 25 * (50 + 100 + 150));
      expect(drawn.isAbout).toBe(true);
      const parts = [drawn.singles, drawn.bars].flatMap((part) => [...part.count.slice(0, part.n)]);
      expect(parts.reduce((sum, count) => sum + count, 0)).toBe(drawn.total);
      // One by one are only those that are.
      expect(drawn.alone).toBe(parts.filter((count) => count === 1).length);
    }
    draw([{ store, lane: 0 }], { start: 10, end: 28, perPx: 1 }, 1, 10_000, look, null, drawn);
    expect([drawn.total, drawn.alone, drawn.isAbout]).toEqual([2, 2, false]);
  });

  it("draws as fine as it can, and doesn't flicker while the window moves", () => {
    const store = bigStore(200_000, 30, 3);
    const rows = rowsOf(store);
    const detail = new Detail(10_000);
    const drawn = makeDrawn();
    const perPx = 20_000;
    const steps = new Set<number>();
    for (let px = 0; px < 2000; px += 10) {
      detail.draw(rows, { start: px * perPx, end: (px + 1400) * perPx, perPx }, look, null, drawn);
      steps.add(detail.minPx);
    }
    expect(steps.size).toBeLessThanOrEqual(2);
    detail.draw(rows, { start: 0, end: 1400 * 10, perPx: 10 }, look, null, drawn);
    expect(detail.minPx).toBe(1);
  });
});
