import { describe, expect, it } from "vitest";
import type { Track } from "../../src/timeline/data";
import { busyTime, eventAt, findHits, matchNames, step } from "../../src/timeline/query";
import { randomLane, storeOf } from "./make";

const track: Track = { section: 0, label: "", hint: "", kind: "host", hidden: false, first: 0, count: 0, lanes: 2, lane: 0, busyPs: 0 };
// A parent with two children, a parent with none, and an instant.
const store = storeOf(
  [
    { start: 0, duration: 100, name: 0 },
    { start: 200, duration: 50, name: 1 },
    { start: 300, duration: 0, name: 2 },
  ],
  [
    { start: 10, duration: 20, name: 1 },
    { start: 40, duration: 30, name: 3 },
  ],
);

describe("eventAt", () => {
  it("finds what lies there, or the nearest in reach", () => {
    expect(eventAt(store, 0, 50, 5)).toBe(0);
    expect(eventAt(store, 0, 103, 5)).toBe(0);
    expect(eventAt(store, 0, 197, 5)).toBe(1);
    expect(eventAt(store, 0, 150, 5)).toBe(-1);
    expect(eventAt(store, 0, 302, 5)).toBe(2);
    expect(eventAt(store, 1, 35, 4)).toBe(-1);
  });
});

describe("busyTime", () => {
  it("counts time once, and only that in the window", () => {
    const lanes = [0, 1].map((lane) => ({ store, lane }));
    expect(busyTime(lanes, 0, 1000)).toBe(150);
    expect(busyTime(lanes, 50, 220)).toBe(70);
    expect(busyTime(lanes, 100, 200)).toBe(0);
    expect(busyTime([lanes[1]!], 0, 1000)).toBe(50);
    const apart = storeOf([{ start: 0, duration: 10 }, { start: 30, duration: 10 }], [{ start: 5, duration: 10 }, { start: 35, duration: 2 }, { start: 60, duration: 0 }]);
    expect(busyTime([0, 1].map((lane) => ({ store: apart, lane })), 0, 100)).toBe(25);
  });
});

describe("search", () => {
  const names = { name: ["a/MatMul:MatMul", "train 3", "Relu", "MatMul<img onerror=x>"] };
  it("finds text in either case, and regular expressions", () => {
    expect([...matchNames(names, "matmul", "text")]).toEqual([1, 0, 0, 1]);
    expect([...matchNames(names, "^relu$", "regex")]).toEqual([0, 0, 1, 0]);
    expect([...matchNames(names, "(", "text")]).toEqual([0, 0, 0, 0]);
    expect([...matchNames(names, "Relu", "exact")]).toEqual([0, 0, 1, 0]);
    expect([...matchNames(names, "relu", "exact")]).toEqual([0, 0, 0, 0]);
    expect(() => matchNames(names, "(", "regex")).toThrow();
  });

  it("marks steps and derived lines, but counts an event once", () => {
    const two = storeOf([{ start: 0, duration: 10, name: 1 }], [{ start: 0, duration: 7, name: 1 }]);
    const tracks = [
      { track: { ...track, lanes: 1, lane: 0, kind: "derived" as const }, store: two },
      { track: { ...track, lanes: 1, lane: 1 }, store: two },
    ];
    const hits = findHits([two], Uint8Array.of(0, 1), tracks);
    expect([hits.count, hits.total]).toEqual([1, 7]);
    expect([...hits.marks.get(two)!.before]).toEqual([0, 1, 2]);
  });

  it("counts, adds up, and steps through all hits in the order of time, both ways", () => {
    const many = storeOf(randomLane(400, 1), randomLane(300, 2), [], randomLane(1, 3));
    const found = Uint8Array.of(0, 1, 0, 1, 0);
    const hits = findHits([many], found, [{ track: { ...track, lanes: 4 }, store: many }]);
    const want: [number, number, number][] = [];
    for (let lane = 0; lane < 4; lane++) {
      for (let i = many.laneFirst[lane]!; i < many.laneFirst[lane + 1]!; i++) if (found[many.name[i]!] === 1) want.push([many.start[i]!, lane, i]);
    }
    want.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    // Instants of one lane at one time can't be told apart by time: once each is enough.
    const distinct = want.filter(([time, lane], i) => i === 0 || time !== want[i - 1]![0] || lane !== want[i - 1]![1]);
    expect(hits.count).toBe(want.length);
    expect(hits.total).toBe(want.reduce((sum, [, , i]) => sum + many.duration(i), 0));
    const lanes = [0, 1, 2, 3].map((lane) => ({ store: many, lane }));
    for (const back of [false, true]) {
      const seen: number[] = [];
      let from: { time: number; row: number } | null = null;
      for (;;) {
        const place = step(hits, lanes, from, back);
        if (place === null) break;
        seen.push(many.start[place.event]!);
        from = { time: many.start[place.event]!, row: place.row };
        expect(seen.length).toBeLessThanOrEqual(distinct.length);
      }
      const order = distinct.map(([time]) => time);
      expect(seen).toEqual(back ? order.reverse() : order);
    }
  });
});
