import { describe, expect, test } from "vitest";
import { across, around, limits } from "../src/items/timelines";
import { Viewport } from "../src/timeline/viewport";

describe("two traces aligned at a step", () => {
  test("a time of one is where the steps lie above each other", () => {
    expect(across(120, 0, [100, 40])).toBe(60);
    expect(across(60, 1, [100, 40])).toBe(120);
  });

  test("windows can show all of both, whichever is longer and however far they are shifted", () => {
    const [above, below] = limits([1000, 300], [100, 250]);
    // The trace below begins 150 earlier than the one above, and that one ends 850 later.
    expect(above[0]).toBeLessThanOrEqual(-150);
    expect(above[1]).toBeGreaterThanOrEqual(1000);
    expect(below[0]).toBeLessThanOrEqual(0);
    expect(below[1]).toBeGreaterThanOrEqual(1150);
    expect(across(above[0], 0, [100, 250])).toBeCloseTo(below[0]);
    expect(across(above[1], 0, [100, 250])).toBeCloseTo(below[1]);
  });

  test("the step is shown whole in both, with room around it", () => {
    const [start, end] = around([1000, 50], [400, 80]);
    expect(start).toBeLessThan(1000);
    expect(end).toBeGreaterThan(1400);
    expect(end - start).toBe(600);
  });
});

describe("a trace that begins late", () => {
  test("is shown from there on", () => {
    const viewport = new Viewport(1000, 800);
    expect([viewport.start, viewport.end]).toEqual([798, 1002]);
    viewport.pan(-1000);
    expect(viewport.start).toBe(-10);
    expect(limits([1000, 300], [900, 250], [800, 0])[0]).toEqual([650 - 3.5, 1000 + 3.5]);
  });
});

describe("a window with limits of its own", () => {
  test("goes beyond the trace, as far as the limits", () => {
    const viewport = new Viewport(1000);
    viewport.limits = [-500, 3000];
    viewport.set(-400, 2600);
    expect([viewport.start, viewport.end]).toEqual([-400, 2600]);
    viewport.all();
    expect([viewport.start, viewport.end]).toEqual([-500, 3000]);
    viewport.pan(100);
    expect(viewport.end).toBe(3000);
  });
});
