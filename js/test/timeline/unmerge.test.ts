import { tableFromArrays } from "@uwdata/flechette";
import { expect, it } from "vitest";
import { Store, type Names, type Track } from "../../src/timeline/data";
import { unmerge, withNames } from "../../src/timeline/unmerge";

const track = (lane: number, lanes: number, more: Partial<Track> = {}): Track => ({ section: 0, label: "", hint: "", kind: "host", hidden: false, first: 0, count: 0, lanes, lane, busyPs: 0, ...more });

// Track 0 has lanes 0 and 1, track 2 has lane 2; between them a counter, which has none. Rows as Python numbers them: by track, then by start.
const tracks = [track(0, 2), track(-1, 0, { kind: "counter", first: 0, count: 9 }), track(2, 1)];
const page = new Store(
  Float64Array.of(0, 100, 300, 10, 50),
  Float64Array.of(90, 150, 310, 20, 60),
  Uint32Array.of(0, 5, 0, 1, 2),
  Uint32Array.of(0, 3, 4, 5),
  Uint32Array.of(0, 2, 3, 1, 4),
);
const sent = {
  // The bar of row 2, [100, 150), stands for [100, 100), [100, 140) and [190, 200) in the same lane.
  events: tableFromArrays({
    start0: Uint8Array.of(50, 0, 25),
    duration0: Uint8Array.of(0, 20, 5),
    name0: Uint8Array.of(6, 0, 7),
    lane0: Uint8Array.of(0, 0, 0),
    row0: Uint8Array.of(11, 1, 2),
  }),
  bars: tableFromArrays({ row0: Uint8Array.of(2) }),
  names: tableFromArrays({ name: ["six", "seven"], short: ["6", "7"], type: ["", ""], op: ["", ""], role: ["other", "op"], color: ["#000000", "#111111"] }),
  // Ticks twice as long as the page's.
  unit_ps: 2000,
  tracks: [[0, 3], [0, 0], [3, 0]] as [number, number][],
};

it("puts events in the place of their bar, in the order of time", () => {
  const store = unmerge(page, tracks, 1000, sent);
  expect([...store.laneFirst]).toEqual([0, 5, 6, 7]);
  expect([...store.start]).toEqual([0, 100, 100, 190, 300, 10, 50]);
  expect([...store.end]).toEqual([90, 100, 140, 200, 310, 20, 60]);
  expect([...store.name]).toEqual([0, 6, 0, 7, 0, 1, 2]);
  // Those of the page keep their rows; the others follow by their rows in the whole.
  expect([...store.row]).toEqual([0, 5 + 11, 5 + 12, 5 + 14, 3, 1, 4]);
  expect(tracks.map(({ lane }) => lane)).toEqual([0, -1, 2]);
});

it("leaves the page's own as they are", () => {
  unmerge(page, tracks, 1000, sent);
  expect([...page.row]).toEqual([0, 2, 3, 1, 4]);
  const names: Names = { name: ["a"], short: ["a"], type: [""], op: [""], role: ["other"], color: ["#222222"] };
  expect(withNames(names, sent).name).toEqual(["a", "six", "seven"]);
  expect(withNames(names, sent).role).toEqual(["other", "other", "op"]);
  expect(names.name).toEqual(["a"]);
});

it("counts the bars that are left, and what came in a bar's place one by one", () => {
  const counts = new Map([[2, 3], [1, 20]]);
  const store = unmerge(new Store(page.start, page.end, page.name, page.laneFirst, page.row).weigh(counts), tracks, 1000, sent);
  expect(Array.from({ length: store.n }, (_, i) => store.events(i, i + 1))).toEqual([1, 1, 1, 1, 1, 20, 1]);
  expect(Array.from({ length: store.n }, (_, i) => store.isBar(i))).toEqual([false, false, false, false, false, true, false]);
  expect(unmerge(page, tracks, 1000, sent).events(0, 7)).toBe(7);
});
