// @vitest-environment happy-dom
import { tableFromArrays } from "@uwdata/flechette";
import { expect, test } from "vitest";
import { course, decodeHistory, heldAt, lastUntil, thinned } from "../src/items/held";

const bytes = (...values: number[]) => Uint8Array.from(values);
const labels = { other: "(before)", stack: "(stack)", unnamed: "(none)" };

// Blocks 0, 1; then 0 again; the first 0 ends; 1 ends and 2 begins; what was there before shrinks from 2 to 1 MiB.
const events = tableFromArrays({
  time0: bytes(5, 1, 1, 1, 1),
  begins0: bytes(1, 1, 3, 0, 1),
  ends0: bytes(0, 0, 0, 2, 2),
  other0: bytes(0, 0, 0, 0, 0xff),
  other1: bytes(0, 0, 0, 0, 0xff),
  other2: bytes(0x40, 0, 0, 0, 0x1f),
  stack0: bytes(0, 0, 0, 0, 10),
  whole0: bytes(0, 0, 0, 0, 0),
  whole1: bytes(0, 0, 0, 0, 0),
  whole2: bytes(0, 0, 0, 0, 0),
  whole3: bytes(2, 0, 0, 0, 0),
  fragmentation0: bytes(0, 1, 251, 0, 0),
});
const blocks = tableFromArrays({
  op_name: ["a", "", "c"],
  bytes: [2 ** 20, 2 ** 21, 2 ** 22],
  requested_bytes: [10, 20, 30],
  region_type: ["output", "temp", ""],
  data_type: ["float", "half", ""],
  shape: ["[1]", "[2]", ""],
});

test("what is held is told from what events begin and end to hold", () => {
  const history = decodeHistory(events);
  expect([...history.begins]).toEqual([0, 1, 0, -1, 2]);
  expect([...history.ends]).toEqual([-1, -1, -1, 0, 1]);
  const at = (row: number) => heldAt(history, blocks, 0, row, labels).map(({ op_name, occurrences, total_size_mib }) => [op_name, occurrences, total_size_mib]);
  expect(at(0)).toEqual([["a", 1, 1], ["(before)", 1, 2]]);
  expect(at(2)).toEqual([["a", 2, 2], ["(none)", 1, 2], ["(before)", 1, 2]]);
  expect(at(4).slice(0, 3)).toEqual([["a", 1, 1], ["c", 1, 4], ["(before)", 1, 1]]);
  expect(at(4)[3]!.slice(0, 2)).toEqual(["(stack)", 1]);
  const shares = heldAt(history, blocks, 0, 4, labels).map((row) => Number(row["share_pct"]));
  expect(shares.reduce((a, b) => a + b)).toBeCloseTo(100);
});

test("the course of use follows from the same events", () => {
  const { heap, stack, in_use, free, fragmentation } = course(decodeHistory(events), blocks, 0, 5);
  expect([...heap!].map((bytes) => bytes / 2 ** 20)).toEqual([3, 5, 6, 5, 6]);
  expect([...stack!]).toEqual([0, 0, 0, 0, 5]);
  expect(in_use![4]).toBe(6 * 2 ** 20 + 5);
  expect([...free!].map((bytes, i) => bytes + in_use![i]!)).toEqual(Array(5).fill(2 ** 24));
  expect([...fragmentation!]).toEqual([NaN, 0, 25, NaN, NaN]);
});

test("thinning keeps the ends and every peak", () => {
  const n = 50_000;
  const times = Float64Array.from({ length: n }, (_, i) => i + Math.sin(i) / 2);
  const values = Float64Array.from({ length: n }, (_, i) => 1000 + 300 * Math.sin(i / 90) + ((i * 7919) % 13));
  values[31_337] = 9999;
  const kept = thinned(times, values, 4000);
  expect(kept.length).toBeLessThanOrEqual(4000);
  expect(kept.length).toBeGreaterThan(2000);
  for (let i = 1; i < kept.length; i++) expect(kept[i]!).toBeGreaterThan(kept[i - 1]!);
  for (const row of [0, n - 1, 31_337, values.indexOf(Math.min(...values))]) expect(kept).toContain(row);
  expect(thinned(times.slice(0, 4000), values, 4000)).toHaveLength(4000);
  expect(thinned(new Float64Array(9000), values, 4000).length).toBeLessThanOrEqual(4);
});

test("a time is after the last event that is not later", () => {
  const times = [5, 6, 6, 8];
  expect([4, 5, 6, 7.9, 8, 99].map((time) => lastUntil(times, time))).toEqual([0, 0, 2, 2, 3, 3]);
});
