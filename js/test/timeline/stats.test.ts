import { tableFromArrays } from "@uwdata/flechette";
import { describe, expect, it } from "vitest";
import { pythonCall } from "../../src/timeline/query";
import { formatBytes, frontDecoded, Stats } from "../../src/timeline/stats";

describe("Stats", () => {
  // `shape` of the events 5 and 300: "[2]", "[2,3]"; `bytes` of the events 5 and 6, both "2048".
  const stats = Stats.of(
    tableFromArrays({ row0: Uint8Array.of(5, 295 & 255, 5, 1), row1: Uint8Array.of(0, 295 >> 8, 0, 0), value0: Uint8Array.of(0, 1, 0, 0) }),
    tableFromArrays({
      name: ["shape", "bytes"],
      label: ["Shape", "Size"],
      unit: ["", "bytes"],
      meaning: ["of the tensor", ""],
      first: [0, 2],
      count: [2, 2],
      first_value: [0, 2],
      values: [2, 1],
    }),
    tableFromArrays({ text0: Uint8Array.of(1, 1, 0) }),
    tableFromArrays({ text: ['!2048\t![2]\t#,3]\t'] }),
  );

  it("finds an event's stats by its row", () => {
    expect(stats.of(300)).toEqual([{ name: "shape", label: "Shape", value: "[2,3]", meaning: "of the tensor" }]);
    expect(stats.of(5).map(({ label, value }) => [label, value])).toEqual([
      ["Shape", "[2]"],
      ["Size", "2 KiB (2,048 bytes)"],
    ]);
    expect(stats.of(6).map((stat) => stat.name)).toEqual(["bytes"]);
    expect(stats.of(7)).toEqual([]);
  });

  it("takes texts apart", () => {
    expect(frontDecoded("!a/b\t$/c\t!\t!x\t")).toEqual(["a/b", "a/b/c", "", "x"]);
    expect(frontDecoded("")).toEqual([]);
  });

  it("shows sizes as people read them", () => {
    expect(formatBytes(512)).toBe("512 bytes");
    expect(formatBytes(692224)).toBe("676 KiB (692,224 bytes)");
  });

  it("knows the line of a Python function", () => {
    expect(pythonCall("$train.py:12 step")).toEqual({ name: "step", source: "train.py:12", module: null });
    expect(pythonCall("$C:\\a b.py:3 <lambda>")).toEqual({ name: "<lambda>", source: "C:\\a b.py:3", module: null });
    expect(pythonCall("$<frozen importlib._bootstrap>:1053 _handle_fromlist")?.source).toBe("<frozen importlib._bootstrap>:1053");
    expect(pythonCall("$builtins len")).toEqual({ name: "len", source: null, module: "builtins" });
    expect(pythonCall("$<unknown> append")).toEqual({ name: "append", source: null, module: null });
    expect(pythonCall("dense/MatMul:MatMul")).toBeNull();
    for (const text of ["$$5", "$$x$$ and y", "$", "$a"]) expect(pythonCall(text)).toBeNull();
  });
});
