import { describe, expect, it } from "vitest";
import { draw, makeDrawn } from "../../src/timeline/lod";
import { eventInPixel } from "../../src/timeline/pointing";
import { wholePixels } from "../../src/timeline/scene";
import { random, randomLane, storeOf } from "./make";

describe("what a pixel is of", () => {
  it.each([1, 2, 8])("is what is drawn there, where events of %i pixels are drawn by themselves", (minPx) => {
    const store = storeOf(randomLane(1500, 3), randomLane(1500, 4));
    const rows = [0, 1].map((lane) => ({ store, lane }));
    const next = random(5);
    const drawn = makeDrawn();
    let [alone, narrow, merged] = [0, 0, 0];
    for (let round = 0; round < 60; round++) {
      const perPx = 10 ** (next() * 4);
      const start = Math.round((next() * 500_000) / perPx) * perPx;
      const width = 300;
      draw(rows, { start, end: start + width * perPx, perPx }, minPx, Infinity, new Uint16Array(64), null, drawn);
      const x = (time: number) => (time - start) / perPx;
      const at = (lane: number, pixel: number) => eventInPixel(store, lane, start + pixel * perPx, perPx, perPx * minPx);
      const taken = new Set<number>();
      for (let i = 0; i < drawn.singles.n; i++) {
        const [left, right] = wholePixels(x(drawn.singles.left[i]!), x(drawn.singles.right[i]!));
        for (let pixel = Math.max(0, left); pixel < Math.min(width, right); pixel++) {
          expect(at(drawn.singles.row[i]!, pixel).event).toBe(drawn.singles.event[i]!);
          taken.add(drawn.singles.row[i]! * width + pixel);
          if (right - left <= 2) narrow++;
          alone++;
        }
      }
      for (let i = 0; i < drawn.bars.n; i++) {
        for (let pixel = Math.max(0, Math.ceil(x(drawn.bars.left[i]!))); pixel < Math.min(width, Math.floor(x(drawn.bars.right[i]!))); pixel++) {
          if (taken.has(drawn.bars.row[i]! * width + pixel)) continue;
          const { event } = at(drawn.bars.row[i]!, pixel);
          expect(event).toBeGreaterThanOrEqual(0);
          expect(store.duration(event)).toBeLessThan(perPx * minPx);
          merged++;
        }
      }
    }
    expect([alone > 3000, narrow > 100 || minPx > 2, merged > 500]).toEqual([true, true, true]);
  });

  it("counts the others in it, and finds what is near", () => {
    const store = storeOf([{ start: 0, duration: 10 }, { start: 10, duration: 3 }, { start: 14, duration: 2 }, { start: 60, duration: 1 }]);
    expect(eventInPixel(store, 0, 10, 10, 10)).toEqual({ event: 1, others: 1 });
    expect(eventInPixel(store, 0, 0, 10, 10)).toEqual({ event: 0, others: 0 });
    expect(eventInPixel(store, 0, 40, 10, 10)).toEqual({ event: 3, others: 0 });
    expect(eventInPixel(store, 0, 200, 10, 10).event).toBe(-1);
  });
});
