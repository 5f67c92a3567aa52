// @vitest-environment happy-dom
import { dictionary, float32, tableFromArrays, utf8 } from "@uwdata/flechette";
import { describe, expect, test, vi } from "vitest";
import { linkTo, mountFindings, prose } from "../src/items/findings";
import { branchesOf, mountStages } from "../src/items/stages";
import { barAt, inTrace, pick, slice, slowestBar } from "../src/items/stepper";
import { neededWidth, rowsOf } from "../src/items/table";
import type { Context, Finding } from "../src/types";

const HOSTILE = '<img src=x onerror="globalThis.pwned=1">';
const model = () => ({ get: vi.fn(), set: vi.fn(), save_changes: vi.fn(), on: vi.fn(), off: vi.fn() });

describe("links", () => {
  test("to a tool set the tab", () => {
    const given = model();
    const link = linkTo({ label: "Trace", href: "tool:trace" }, { model: given })!;
    link.click();
    expect(link.tagName).toBe("BUTTON");
    expect(given.set).toHaveBeenCalledWith("tab", "trace");
    expect(given.save_changes).toHaveBeenCalled();
  });

  test("to TensorFlow's pages open there and tell nothing of this one", () => {
    const link = linkTo({ label: "Guide", href: "https://www.tensorflow.org/guide" }, { model: model() })!;
    expect(link.getAttribute("target")).toBe("_blank");
    expect(link.getAttribute("rel")).toContain("noopener");
  });

  test.each(["javascript:alert(1)", "http://example.org", "data:text/html,x", ""])("none to %s", (href) => {
    expect(linkTo({ label: "x", href }, { model: model() })).toBeNull();
  });
});

describe("a change in words", () => {
  test("offers its code for copying, and no mere names", async () => {
    const write = vi.fn().mockResolvedValue(undefined);
    vi.stubGlobal("navigator", { clipboard: { writeText: write } });
    const shown = prose([{ text: "Use " }, { text: "batch()", code: true }, { text: " before " }, { text: "map(f, n=2)", code: true }]);
    expect(shown.querySelectorAll("code")).toHaveLength(2);
    shown.querySelector("button")!.click();
    await vi.waitFor(() => expect(shown.querySelector("button")!.textContent).toBe("Copied"));
    expect(write).toHaveBeenCalledWith("map(f, n=2)");
    vi.unstubAllGlobals();
  });

  test("has no button without code", () => expect(prose([{ text: "Use a larger batch." }]).querySelector("button")).toBeNull());
});

test("findings are a list in rank, with text as text", () => {
  const host = document.createElement("div");
  const row: Finding = {
    title: HOSTILE,
    note: "saves up to 1 ms",
    statement: HOSTILE,
    change: [{ text: HOSTILE, code: true }],
    evidence: [{ label: HOSTILE, value: HOSTILE }],
    links: [{ label: HOSTILE, href: "tool:trace" }],
  };
  mountFindings(host, { kind: "findings", rows: [row, row] }, { model: model() } as unknown as Context);
  expect(host.querySelectorAll("ol > li")).toHaveLength(2);
  expect(host.querySelector("img")).toBeNull();
  expect(host.textContent).toContain(HOSTILE);
});

test("stages are a table whose rows have headers", () => {
  const host = document.createElement("div");
  const stage = { name: HOSTILE, depth: 2, tags: ["in advance"], marked: "bottleneck", cells: [{ text: "2 ms", share: 3 }, { text: "–" }] };
  mountStages(host, { kind: "stages", title: "t", columns: [{ title: "Stage" }, { title: "Time" }, { title: "Calls" }], rows: [stage] });
  expect(host.querySelector("img")).toBeNull();
  const header = host.querySelector<HTMLElement>("tbody th[scope=row]")!;
  expect(header.textContent).toBe(`${HOSTILE}in advancebottleneck`);
  expect(header.style.getPropertyValue("--depth")).toBe("2");
  const bars = host.querySelectorAll<HTMLElement>(".tfprof-stage-bar");
  expect([...bars].map((bar) => bar.style.width)).toEqual(["100%"]);
});

test("the tree of stages leads from each stage to all that it reads from, and from none to nothing", () => {
  // Zip of FlatMap, which reads from TensorSlice, and of Repeat.
  const drawn = branchesOf([0, 1, 2, 1]).map((row) => row.map(({ level, part }) => `${part} ${level}`));
  expect(drawn).toEqual([["down 0"], ["through 0", "down 1"], ["through 0", "up 1"], ["up 0"]]);
});

test("a column is as wide as its largest number and the longest word of its title", () => {
  const column = { field: "time", title: "Total time", kind: "number", digits: 1, unit: "µs" } as const;
  expect(neededWidth(column, [{ time: 1.5 }])).toBeLessThan(64);
  expect(neededWidth(column, [{ time: 1_714_475.1 }, { time: 2 }])).toBeGreaterThan(90);
  expect(neededWidth({ ...column, title: "Occurrences" }, [])).toBeGreaterThan(90);
});

describe("the rows of a step", () => {
  const rows = tableFromArrays({ bar: [1, 0, 1, 0], total: [10, 20, 30, 40], word: ["a", "$$x$$", "c", "d"] });
  test("are a slice, in units, and never mathematics", () => {
    const data = slice(rows, 1, 2, { total: 0.5 });
    expect(data["total"]).toEqual(Float64Array.of(10, 15));
    expect(data["bar"]).toEqual([0, 1]);
    expect(data["word"][0]).not.toContain("$$");
  });
  test("name their bars", () => {
    const bars = tableFromArrays({ x: [0.5, 1.5], host: ["w0", "$$w1"] });
    const picked = pick(bars, [1, 0, 1]);
    expect(picked["x"]).toEqual([1.5, 0.5, 1.5]);
    expect(picked["host"][1]).toBe("w0");
    expect(picked["host"][0]).not.toContain("$$");
  });
});

test("a float of four bytes is read with its seven digits, and texts that travel once as such", () => {
  const types = { share: float32(), type: dictionary(utf8()) };
  const table = tableFromArrays({ share: [0.1, 33.3333333333], time: [1 / 3, 2 / 3], type: ["MatMul", "MatMul"] }, { types });
  expect(rowsOf(table)).toEqual([
    { share: 0.1, time: 1 / 3, type: "MatMul" },
    { share: 33.33333, time: 2 / 3, type: "MatMul" },
  ]);
});

test("a bar of a chart of hosts and devices is a step in one's trace, by its name as it is there", () => {
  const bars = tableFromArrays({ host: ["a", "$x$"], device: ["/device:GPU:0", "/device:GPU:1"] });
  const data = { bar: [1, 0], x: [1.6, 0], start: [250, 100], total: [50, 40] };
  expect(barAt(data.x, 1.2)).toBe(0);
  expect(barAt(data.x, 0.5)).toBe(1);
  expect(barAt(data.x, 0.8)).toBe(-1);
  const trace = { start: "start", length: "total", slowest: "own", several_hosts: true };
  const item = { trace, scale: { start: 0.01, total: 0.01 } };
  expect(inTrace(data, 0, bars, item)).toEqual({
    range_ms: [245, 305],
    spot: { start_ms: 250, kind: "step", device: "/device:GPU:1", within_ms: 0.01 },
    host: "$x$",
  });
  expect(inTrace(data, 1, bars, { ...item, trace: { ...trace, several_hosts: false } }).host).toBeUndefined();
});

test("the slowest bar is the one with most own work, where all take the same time", () => {
  const trace = { start: "start", length: "total", slowest: "own", several_hosts: false };
  expect(slowestBar({ total: [50, 50, 50], own: [20, 45, 45] }, trace)).toBe(1);
});
