import { describe, expect, it } from "vitest";
import { sortedRows } from "../../src/timeline/details";
import { Store, type Names, type Track } from "../../src/timeline/data";
import { summarize, summaryWords } from "../../src/timeline/summary";
import { storeOf } from "./make";

const track: Track = { section: 0, label: "", hint: "", kind: "host", hidden: false, first: 0, count: 0, lanes: 2, lane: 0, busyPs: 0 };
const namesOf = (...name: string[]): Names => ({ name, short: name, type: name, op: name.map((_, i) => `op ${i}`), role: name.map(() => "op"), color: name });
const abc = namesOf("a", "b", "c", "d");
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
const lanes = [0, 1].map((lane) => ({ store, lane, track }));

describe("summarize", () => {
  it("adds up whole events by name", () => {
    const { rows, repeated } = summarize(lanes, abc, 0, 1000);
    expect(rows.map((row) => row.name)).toEqual([0, 1, 3, 2]);
    expect(rows[1]).toEqual({ name: 1, bars: 0, count: 2, total: 70, self: 70, min: 20, max: 50 });
    expect(rows[0]).toEqual({ name: 0, bars: 0, count: 1, total: 100, self: 50, min: 100, max: 100 });
    expect(repeated).toBe(0);
    expect(summarize(lanes, abc, 35, 60).rows.map((row) => row.name)).toEqual([0, 3]);
    expect(summarize(lanes, abc, 101, 199).rows).toEqual([]);
  });

  it("takes what has the same text for one name, whatever op it is of", () => {
    const { rows } = summarize(lanes, namesOf("sgemm", "relu", "sgemm", "relu"), 0, 1000);
    expect(rows.map(({ name, count, total, min, max }) => [name, count, total, min, max])).toEqual([
      [1, 3, 100, 20, 50],
      [0, 2, 100, 0, 100],
    ]);
  });

  it("has no self time where events overlap", () => {
    const over = storeOf([{ start: 0, duration: 10, name: 0 }, { start: 20, duration: 10, name: 0 }, { start: 40, duration: 10, name: 1 }], [{ start: 5, duration: 10, name: 2 }]);
    const { rows } = summarize([0, 1].map((lane) => ({ store: over, lane, track })), abc, 0, 100);
    expect(Object.fromEntries(rows.map((row) => [abc.name[row.name!], row.self]))).toEqual({ a: null, b: 10, c: null });
  });

  it("counts the events of bars, whose names and self times are not known", () => {
    const bars = new Store(store.start, store.end, store.name, store.laneFirst, Uint32Array.of(0, 1, 2, 3, 4)).weigh(new Map([[1, 40], [3, 7]]));
    const { rows, repeated } = summarize([{ store: bars, lane: 0, track }, { store: bars, lane: 1, track: { ...track, kind: "derived" } }], abc, 0, 1000);
    expect(rows).toContainEqual({ name: null, bars: 2, count: 47, total: 70, self: null, min: null, max: null });
    expect(rows.reduce((sum, row) => sum + row.count, 0)).toBe(50);
    expect(repeated).toBe(8);
  });
});

describe("summaryWords", () => {
  const words = (start: number, end: number, repeats = false, merged = new Map<number, number>()) => {
    const some = new Store(store.start, store.end, store.name, store.laneFirst, Uint32Array.of(0, 1, 2, 3, 4)).weigh(merged.size > 0 ? merged : null);
    const which = [0, 1].map((lane) => ({ store: some, lane, track: repeats && lane === 1 ? { ...track, kind: "derived" as const } : track }));
    return summaryWords(summarize(which, abc, start, end), (end - start) * 1000, 0.5);
  };
  it("are those of one, of many, of none", () => {
    expect(words(201, 210)).toBe("1 event of 1 name in 9 ns, 50.0 % of it busy");
    expect(words(0, 1000)).toBe("5 events of 4 names in 1.000 µs, 50.0 % of it busy");
    expect(words(101, 199)).toBe("No event in these 98 ns");
  });
  it("say what the page lacks, and what Python leaves out", () => {
    expect(words(0, 1000, false, new Map([[1, 1200]]))).toBe(
      "About 1,204 events in 1.000 µs, 50.0 % of it busy. In this page, which was kept small, 4 events are there one by one, of 4 names",
    );
    expect(words(0, 1000, true)).toBe("5 events of 4 names in 1.000 µs, 50.0 % of it busy. 2 of them repeat others (steps, derived lines): not in report.selection");
  });
});

describe("the table", () => {
  it("is sorted by any column, what has no value last", () => {
    const row = (name: number | null, count: number, self: number | null) => ({ name, bars: name === null ? 1 : 0, count, total: count * 10, self, min: 1, max: 2 });
    const rows = [row(0, 5, 9), row(null, 4, null), row(1, 3, 30), row(2, 1, null)];
    const names = namesOf("op_10", "op_9", "Add");
    const order = (column: number, descending: boolean) => sortedRows(rows, names, column, descending).map((each) => each.name);
    expect(order(0, false)).toEqual([2, 1, 0, null]);
    expect(order(0, true)).toEqual([0, 1, 2, null]);
    expect(order(1, true)).toEqual([0, null, 1, 2]);
    expect(order(1, false)).toEqual([2, 1, null, 0]);
    expect(order(3, true)).toEqual([1, 0, null, 2]);
    expect(order(3, false)).toEqual([0, 1, null, 2]);
  });
});
