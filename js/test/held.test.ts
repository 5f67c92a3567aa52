// @vitest-environment happy-dom
import { tableFromArrays } from "@uwdata/flechette";
import { expect, test } from "vitest";
import { decodeHistory, heldAt, lastUntil } from "../src/items/held";

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
  stack0: bytes(0, 0, 0, 0, 0),
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
  expect(at(4)).toEqual([["a", 1, 1], ["c", 1, 4], ["(before)", 1, 1]]);
  const shares = heldAt(history, blocks, 0, 4, labels).map((row) => Number(row["share_pct"]));
  expect(shares.reduce((a, b) => a + b)).toBeCloseTo(100);
});

test("a time is after the last event that is not later", () => {
  const times = [5, 6, 6, 8];
  expect([4, 5, 6, 7.9, 8, 99].map((time) => lastUntil(times, time))).toEqual([0, 0, 2, 2, 3, 3]);
});
