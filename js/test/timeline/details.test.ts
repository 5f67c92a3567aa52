// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import type { Names } from "../../src/timeline/data";
import { Details } from "../../src/timeline/details";

const N = 2500;
const text = Array.from({ length: N }, (_, i) => `op_${i}`);
const names: Names = { name: text, short: text, type: text, op: text, role: text, color: text };
const rows = text.map((_, name) => ({ name, bars: 0, count: 1 + (name % 7), total: N - name, self: 1, min: 1, max: 2 }));

describe("the table of a box", () => {
  it("has all its rows within reach, in any order", () => {
    const details = new Details();
    const chosen: number[] = [];
    details.showSummary("title", rows, names, 1000, (name) => chosen.push(name), []);
    const lines = () => [...details.element.querySelectorAll("tbody tr")].map((row) => row.firstElementChild!.textContent);
    const buttons = () => [...details.element.querySelectorAll<HTMLElement>(".tl-actions button")];
    expect(lines()).toEqual(text.slice(0, 200));
    expect(details.element.textContent).toContain("200 rows of 2,500 shown");
    buttons().at(-1)!.click();
    expect(lines()).toEqual(text.slice(0, 2200));
    expect(buttons().at(-1)!.textContent).toBe("Show all 2,500 rows");
    buttons().at(-1)!.click();
    expect(lines()).toEqual(text);
    expect(details.element.textContent).not.toContain("shown");

    const heads = [...details.element.querySelectorAll("th")];
    expect(heads.map((head) => head.getAttribute("aria-sort"))).toEqual([null, null, "descending", null, null, null, null]);
    heads[2]!.querySelector("button")!.click();
    expect(heads[2]!.getAttribute("aria-sort")).toBe("ascending");
    expect(lines()).toEqual(text.slice(-200).reverse());
    details.element.querySelector<HTMLElement>("tbody button")!.click();
    expect(chosen).toEqual([N - 1]);
    // The next box is in the same order.
    details.showSummary("title", rows.slice(0, 3), names, 1000, () => {}, []);
    expect(lines()).toEqual(["op_2", "op_1", "op_0"]);
    expect(buttons()).toEqual([]);
  });

  it("says of what is merged into bars that it has no names", () => {
    const details = new Details();
    details.showSummary("title", [{ name: null, bars: 3, count: 40, total: 80, self: null, min: null, max: null }], names, 1000, () => {}, []);
    const cells = [...details.element.querySelectorAll("td")].map((cell) => cell.textContent);
    expect(cells).toEqual(["Merged into 3 bars: names not in this page", "40", "80 ns", "–", "2 ns", "–", "–"]);
    expect(details.element.querySelector("td button")).toBeNull();
  });
});
