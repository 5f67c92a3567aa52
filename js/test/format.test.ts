import { describe, expect, test } from "vitest";
import { formatCell, formatPlain, parseFilter, partings, splitMiddle, toCsv, unbroken } from "../src/format";
import { compare } from "../src/items/table";
import type { Column } from "../src/types";

const column = (kind: Column["kind"], digits?: number): Column => ({ field: "x", title: "X", kind, ...(digits === undefined ? {} : { digits }) });

describe("cells", () => {
  test.each([
    [1234567.891, column("number", 1), "1,234,567.9"],
    [1234, column("number"), "1,234"],
    [0, column("number", 2), "0.00"],
    [0.0004, column("number", 2), "<0.01"],
    [-0.0004, column("number", 2), ">−0.01"],
    [-1234.5, column("number", 1), "−1,234.5"],
    [0.01, column("percent"), "<0.1 %"],
    [41.25, column("percent"), "41.3 %"],
    [12345678901234567890n, column("number"), "12,345,678,901,234,567,890"],
    ["9007199254740993", column("text"), "9007199254740993"],
    [true, column("bool"), "yes"],
    [0, column("bool"), "no"],
    [null, column("number"), ""],
    [NaN, column("number"), ""],
    [Infinity, column("number", 2), "Infinity"],
  ])("%o", (value, as, text) => expect(formatCell(value, as)).toBe(text));

  test("facts", () => expect([null, true, 14.25, 1e7, "CPU"].map(formatPlain)).toEqual(["–", "yes", "14.25", "10,000,000", "CPU"]));
});

describe("long names", () => {
  test("short ones are left whole", () => expect(splitMiddle("dense/MatMul")).toEqual(["dense/MatMul", ""]));
  test("both parts make the whole", () => {
    const name = "model/very/long/name/that/goes/on/dense_7/MatMul";
    const [start, end] = splitMiddle(name);
    expect(start + end).toBe(name);
    expect(end).toBe("name/that/goes/on/dense_7/MatMul".slice(-29));
  });
  test("C++ functions keep how they begin", () => {
    const name = "void functor::FillKernel<float, 4>(float const*, int, Eigen::GpuDevice)";
    expect(splitMiddle(name)).toEqual([name, ""]);
  });
  test("of one word most of the start is kept", () => expect(splitMiddle("ampere_fp16_s16816gemm_fp16_64x4_nn")[1]).toBe("16_64x4_nn"));
  test("a character is never cut in two", () => {
    const [start, end] = splitMiddle(`${"a".repeat(60)}/😀${"b".repeat(35)}`);
    expect(end.startsWith("😀")).toBe(true);
    expect(() => encodeURIComponent(start)).not.toThrow(); // it does on half a character
  });
});

describe("names that begin alike", () => {
  const layer = (n: number) => `model/encoder/layer_${n}/attention/output/dropout_3/dropout/Cast`;
  const names = [...Array(12).keys()].map(layer);
  test("are cut where they part", () => {
    const parts = partings([...names, "loss/Mean"]);
    const [start, end] = splitMiddle(layer(7), parts(layer(7)));
    expect([start, end]).toEqual(["model/encoder/", "layer_7/attention/output/dropout_3/dropout/Cast"]);
    expect(parts("loss/Mean")).toBe(Infinity);
  });
  test("few of them, and those whose end is longer, are cut as any", () => {
    expect(partings(names.slice(0, 3))(layer(1))).toBe(Infinity);
    const short = [...Array(9).keys()].map((n) => `while/model/encoder/block/dense_${n}/MatMul`);
    expect(splitMiddle(short[1]!, partings(short)(short[1]!))).toEqual(splitMiddle(short[1]!));
  });
});

describe("CSV", () => {
  test("quotes what needs it, and rounds nothing", () => {
    const rows = [
      { name: 'a "b", c', value: 0.1 + 0.2, flag: true },
      { name: "line\nbreak", value: null, flag: false },
      { name: "=1+2", value: NaN, flag: null },
      { name: " kept ", value: 1e21, flag: undefined },
    ];
    expect(toCsv(rows, ["name", "value", "flag"])).toBe(
      'name,value,flag\r\n"a ""b"", c",0.30000000000000004,true\r\n"line\nbreak",,false\r\n\'=1+2,,\r\n" kept ",1e+21,\r\n',
    );
  });

  test.each([
    ["=cmd|'!A0", "'=cmd|'!A0"],
    ["+1+1", "'+1+1"],
    ["-2+3", "'-2+3"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["＝1", "'＝1"],
    ["-12.5", "-12.5"],
    ["+1e3", "+1e3"],
    ["a=b", "a=b"],
    [-3, "-3"],
  ])("a spreadsheet takes no text for a formula: %s", (value, written) => {
    expect(toCsv([{ x: value }], ["x"])).toBe(`x\r\n${written}\r\n`);
  });
});

describe("filters", () => {
  const finds = (input: string, as: Column, values: unknown[]) => values.filter(parseFilter(input, as)!);
  const numbers = [-5, 0, 1, 2.5, 10, null, NaN];
  test.each([
    [">1", [2.5, 10]],
    [">= 1", [1, 2.5, 10]],
    ["<0", [-5]],
    ["=2.5", [2.5]],
    ["0..2.5", [0, 1, 2.5]],
    ["-5..0", [-5, 0]],
    ["1", [1, 10]],
  ])("number %o", (input, found) => expect(finds(input, column("number"), numbers)).toEqual(found));
  test("text in either case, never a pattern", () => {
    expect(finds("MATMUL", column("text"), ["dense/MatMul", "Relu"])).toEqual(["dense/MatMul"]);
    expect(finds("a.c", column("text"), ["abc", "a.c"])).toEqual(["a.c"]);
    expect(finds(">1", column("text"), ["x>1", "2"])).toEqual(["x>1"]);
  });
  test("an empty one is none", () => expect(parseFilter("  ", column("text"))).toBeNull());
});

describe("sorting", () => {
  const sorted = (values: unknown[], dir: "asc" | "desc") => [...values].sort((a, b) => (dir === "asc" ? 1 : -1) * compare(a, b, dir));
  test("text as people count", () => expect(sorted(["dense_10", "dense_2", "Dense_1"], "asc")).toEqual(["Dense_1", "dense_2", "dense_10"]));
  test("what is missing comes last either way", () => {
    expect(sorted([null, 3, NaN, 1], "asc").slice(0, 2)).toEqual([1, 3]);
    expect(sorted([null, 3, NaN, 1], "desc").slice(0, 2)).toEqual([3, 1]);
  });
});

test("numbers keep their units on one line, and words after numbers may wrap", () => {
  expect(unbroken("2.6 % of 3 ms, 5 µs; 4 steps in 2 minutes, 1 sample")).toBe("2.6\u00a0% of 3\u00a0ms, 5\u00a0µs; 4 steps in 2 minutes, 1 sample");
  expect(unbroken("2 (first: 1, last: none)")).toBe("2 (first:\u00a01, last: none)");
});
