import { tableFromArrays } from "@uwdata/flechette";
import { describe, expect, it } from "vitest";
import { Flows } from "../../src/timeline/flows";

describe("Flows", () => {
  // launch: 3 -> 300 and 4 -> 290; work: 4, 5 (one group) -> 9.
  const flows = Flows.of(
    tableFromArrays({
      row0: Uint8Array.of(3, 1, 290 & 255, 10, 4, 1, 9),
      row1: Uint8Array.of(0, 0, 290 >> 8, 0, 0, 0, 0),
      group0: Uint8Array.of(0, 2, 2, 1, 0, 0, 0),
    }),
    { table: "", parts: [{ kind: "launch", sources: 2, targets: 2 }, { kind: "work", sources: 2, targets: 1 }] },
  );
  const words = (arrows: Iterable<{ kind: string; from: number; to: number }>) => [...arrows].map(({ kind, from, to }) => `${kind} ${from} ${to}`);

  it("finds the arrows from and to an event", () => {
    expect(words(flows.at(3))).toEqual(["launch 3 300"]);
    expect(words(flows.at(4))).toEqual(["launch 4 290", "work 4 9"]);
    expect(words(flows.at(300))).toEqual(["launch 3 300"]);
    expect(words(flows.at(9))).toEqual(["work 4 9", "work 5 9"]);
    expect(flows.at(8)).toEqual([]);
  });

  it("lists them all, or the first ones and how many are left", () => {
    const pairs = ({ from, to }: { from: Uint32Array; to: Uint32Array }) => [...from].map((row, i) => `${row} ${to[i]}`);
    expect(pairs(flows.all(10))).toEqual(["3 300", "4 290", "4 9", "5 9"]);
    expect(flows.all(10).beyond).toBe(0);
    expect(pairs(flows.all(3))).toEqual(["3 300", "4 290", "4 9"]);
    expect(flows.all(3).beyond).toBe(1);
  });
});
