import { tableFromArrays } from "@uwdata/flechette";
import { describe, expect, it } from "vitest";
import { columnsOf, decodeCounters, formatCount, makeCounter, type Counter } from "../../src/timeline/counters";
import type { Track } from "../../src/timeline/data";
import { random } from "./make";

const counter = (time: number[], value: number[]) => makeCounter("", Float64Array.from(time), Float64Array.from(value));
/** That of the last change; null before the first one. */
const valueAt = ({ time, value }: Counter, at: number): number | null => value[time.findLastIndex((each) => each <= at)] ?? null;

describe("counters", () => {
  it("are unpacked by track, each with its scale", () => {
    const tracks = ["steps", "counter", "counter"].map((kind, i) => ({ kind, first: i === 2 ? 2 : 0, count: i === 2 ? 1 : 2 }) as Track);
    const table = tableFromArrays({ time0: Uint8Array.of(5, 10, 7), value0: Uint8Array.of(3, 0, 2) });
    const counters = decodeCounters(table, { table: "", units: ["bytes", ""], scales: [256, 1] }, tracks);
    expect([...counters.keys()]).toEqual([1, 2]);
    expect([...counters.get(1)!.time]).toEqual([5, 15]);
    expect([...counters.get(1)!.value]).toEqual([768, 0]);
    expect(counters.get(1)!.most).toBe(768);
    expect([...counters.get(2)!.time]).toEqual([7]);
    expect(formatCount(768 * 1024, "bytes")).toBe("768 KiB");
    expect(formatCount(12345, "")).toBe("12,345");
  });

  it("show the least and the most of every pixel, at any zoom", () => {
    const next = random(7);
    const time: number[] = [];
    for (let i = 0, at = 50; i < 400; i++) time.push((at += 1 + Math.floor(next() ** 6 * 300)));
    const value = time.map(() => Math.floor(next() * 9));
    const shown = counter(time, value);
    for (const [start, perPx] of [[0, 37], [0, 200], [60, 0.3], [-100, 4], [5000, 11.7], [0, 4000]] as const) {
      const width = 300;
      const columns = columnsOf(shown, start, perPx, width);
      columns.forEach((column, i) => expect(column.left).toBeGreaterThanOrEqual(i === 0 ? 0 : columns[i - 1]!.right));
      for (let x = 0; x < width; x++) {
        const [from, to] = [start + x * perPx, start + (x + 1) * perPx];
        const inside = value.filter((_, i) => time[i]! > from && time[i]! < to);
        const before = valueAt(shown, from);
        const all = before === null ? inside : [before, ...inside];
        const column = columns.find((each) => each.left <= x && x < each.right);
        if (all.length === 0) expect(column).toBeUndefined();
        else expect([column!.least, column!.most]).toEqual([Math.min(...all), Math.max(...all)]);
      }
    }
  });
});
