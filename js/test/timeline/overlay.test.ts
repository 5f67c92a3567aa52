// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { Overlay, placeLabels, type MarkedRange } from "../../src/timeline/overlay";

const range = (left: number, right: number, label = "100.0 µs"): MarkedRange => ({ left, right, label, hint: "from – to" });

describe("labels of marked ranges", () => {
  it("stand in the middle of what is in view of their range, inside of the frame", () => {
    const [inside, over, before, cut] = placeLabels([range(400, 600), range(-4, 1004), range(-4, -1), range(990, 1004)], 1000, 300);
    expect(inside).toEqual({ x: 500, y: 2 });
    expect(over!.x).toBe(500);
    expect(before).toBeNull();
    expect(cut!.x).toBeLessThan(970);
  });

  it("take the first row that is free there, and stay in the frame", () => {
    const places = placeLabels([range(100, 120), range(110, 130), range(800, 820), range(90, 130)], 1000, 300);
    expect(places.map((place) => place!.y)).toEqual([2, 20, 2, 38]);
    const many = placeLabels(Array.from({ length: 40 }, () => range(100, 120)), 1000, 300);
    expect(Math.max(...many.map((place) => place!.y))).toBeLessThanOrEqual(300 - 18);
  });
});

describe("marked ranges", () => {
  it("are removed one by one", () => {
    const removed: number[] = [];
    const overlay = new Overlay((index) => removed.push(index));
    overlay.showRanges([range(10, 90), range(200, 300, "<b>2</b>"), range(-4, -2)], 1000, 300);
    const shown = [...overlay.element.querySelectorAll<HTMLElement>(".tl-range")].filter((element) => !element.hidden);
    expect(shown.map((element) => element.querySelector("span")!.textContent)).toEqual(["100.0 µs", "<b>2</b>"]);
    expect(shown[0]!.querySelector<HTMLElement>(".tl-length")!.title).toBe("100.0 µs: from – to");
    shown[1]!.querySelector("button")!.click();
    expect(removed).toEqual([1]);
  });
});
