import { describe, expect, it } from "vitest";
import { formatDuration, formatTime, niceStep, ticks } from "../../src/timeline/ticks";

describe("formatDuration", () => {
  it.each([
    [0, "0"],
    [1, "1 ps"],
    [50_000, "50 ns"],
    [1_500, "1.500 ns"],
    [999_000, "999 ns"],
    [41_250_000, "41.25 µs"],
    [3_150_000_000, "3.150 ms"],
    [574_130_000_000, "574.1 ms"],
    [12_345_000_000_000, "12.35 s"],
    [123_456_000_000_000, "123.5 s"],
    [1_000_000, "1.000 µs"],
    [-2_000, "−2 ns"],
    [999_999_000, "1.000 ms"],
    [999_949_000, "999.9 µs"],
    [9_999_600, "10.00 µs"],
    [999_999_999_999, "1.000 s"],
    [1_234_567_000_000_000, "1235 s"],
  ])("%d ps is %s", (ps, text) => expect(formatDuration(ps)).toBe(text));
});

describe("formatTime", () => {
  it("is as exact as asked for", () => {
    expect(formatTime(229_711_924_000, 1000)).toBe("229.711924 ms");
    expect(formatTime(2_775_279_351_000, 1000)).toBe("2.775279351 s");
    expect(formatTime(0, 1000)).toBe("0");
    expect(formatTime(462_000_000_000, 1_000_000_000)).toBe("462 ms");
  });
});

describe("niceStep", () => {
  it.each([
    [1, 1],
    [3, 5],
    [0.2, 1],
    [11, 20],
    [500, 500],
    [5.1e8, 1e9],
  ])("%d becomes %d", (least, step) => expect(niceStep(least)).toBe(step));
});

describe("ticks", () => {
  it("are round, in the window, far enough apart, and told apart, from seconds to nanoseconds", () => {
    for (let span = 2e13; span > 2e4; span /= 3) {
      for (const start of [0, 123_456_789_000, 461_234_567_891_000]) {
        for (const width of [130, 250, 500, 1100]) {
          const { at, labels, base } = ticks(start, start + span, width);
          if (width > 200) expect(at.length, `${span} ps on ${width} px`).toBeGreaterThanOrEqual(width > 400 ? 2 : 1);
          if (at.length > 1) expect(((at[1]! - at[0]!) * width) / span).toBeGreaterThan(7 * Math.max(...labels.map((label) => label.length)));
          expect(at.length).toBeLessThanOrEqual(width / 110 + 2);
          for (const ps of at) {
            expect(ps).toBeGreaterThanOrEqual(start - 1);
            expect(ps).toBeLessThanOrEqual(start + span + 1);
          }
          expect(new Set(labels).size).toBe(labels.length);
          for (const label of labels) expect(label.length, label).toBeLessThanOrEqual(12);
          // What is written is where it stands.
          const value = (text: string) => {
            const [number, unit] = text.split(" ") as [string, string | undefined];
            return Number(number) * { s: 1e12, ms: 1e9, "µs": 1e6, ns: 1e3, ps: 1 }[unit ?? "ps"]!;
          };
          at.forEach((ps, i) => expect(value(labels[i]!) + (base === "" ? 0 : value(base))).toBeCloseTo(ps, -1));
          if (base !== "") for (const label of labels) expect(Number(label.split(" ")[0]), label).toBeLessThan(1000);
          if (at.length > 0) expect(labels.every((label) => label.startsWith("+"))).toBe(base !== "");
        }
      }
    }
  });

  it("has units that suit the zoom", () => {
    expect(ticks(0, 4e12, 1100).labels).toContain("1.0 s");
    expect(ticks(0, 463e9, 1100).labels).toContain("50 ms");
    expect(ticks(0, 2e6, 1100).labels).toContain("0.2 µs");
    const deep = ticks(229_711_900_000, 229_712_000_000, 1100);
    expect(deep.base).toBe("229.7119 ms");
    expect(deep.labels[0]).toBe("+0 ns");
    // Windows of about a microsecond, and across a whole one.
    const micro = ticks(1_931_234_180_000, 1_931_235_230_000, 1100);
    expect([micro.base, micro.labels[0]]).toEqual(["1.9312 s", "+34.2 µs"]);
    const across = ticks(11_999_970_000, 12_000_040_000, 1100);
    expect([across.base, across.labels[0], across.labels.at(-1)]).toEqual(["11.9999 ms", "+70 ns", "+140 ns"]);
  });

  it("are none where there is no room", () => {
    expect(ticks(0, 0, 100).at).toEqual([]);
    expect(ticks(0, 10, 0).at).toEqual([]);
  });
});
