import { describe, expect, it } from "vitest";
import type { Track } from "../../src/timeline/data";
import { Labels } from "../../src/timeline/labels";
import { bandsBetween, layOut, onScreen } from "../../src/timeline/layout";
import { mix, parseColor, shadeShare, textOn } from "../../src/timeline/paint";
import { Viewport } from "../../src/timeline/viewport";
import { storeOf } from "./make";

const track = (section: number, lanes: number, kind: Track["kind"] = "host", lane = 0): Track => ({
  section, label: `t${section}`, hint: "", kind, hidden: kind === "bookkeeping", first: 0, count: 1, lanes, lane, busyPs: 0,
});

describe("layOut", () => {
  const store = storeOf([], [], [], [], [], []);
  const tracks = [track(0, 1, "steps"), track(1, 3, "host", 1), track(1, 1, "bookkeeping", 4), track(2, 2, "host", 4)];
  const state = (folded: string[] = [], shown: (t: Track) => boolean = (t) => !t.hidden, pinned: number[] = [], mostPinned = Infinity) => ({
    sections: [{ title: "Steps" }, { title: "A" }, { title: "B" }],
    tracks,
    storeOf: () => store,
    isCollapsed: (section: number, index: number) => folded.includes(`${section}:${index}`),
    isShown: (index: number) => shown(tracks[index]!),
    isPinned: (index: number) => pinned.includes(index),
    mostPinned,
  });

  it("stacks headers and tracks without gaps or overlaps, a box a lane", () => {
    const { bands, height } = layOut(state());
    expect(bands.map((band) => [band.kind, band.section, band.track])).toEqual([
      ["track", 0, 0],
      ["section", 1, -1],
      ["track", 1, 1],
      ["section", 2, -1],
      ["track", 2, 3],
    ]);
    let top = 0;
    for (const band of bands) {
      expect(band.top).toBe(top);
      top += band.height;
      for (const box of band.boxes) {
        expect(box.top).toBeGreaterThanOrEqual(band.top);
        expect(box.bottom).toBeLessThanOrEqual(band.top + band.height);
      }
    }
    expect(top).toBe(height);
    expect(bands[2]!.boxes.map((box) => box.lane)).toEqual([1, 2, 3]);
  });

  it("keeps what is folded in sight: a section as strips, a track pressed flat", () => {
    const { bands } = layOut(state(["1:-1", "2:3"]));
    expect(bands.map((band) => band.kind)).toEqual(["track", "section", "section", "track"]);
    expect(bands[1]!.boxes.map((box) => [box.track, box.flat])).toEqual([[1, true]]);
    expect(bands[3]!.boxes.map((box) => [box.lane, box.flat])).toEqual([[4, true], [5, true]]);
    expect(bands[3]!.height).toBeLessThan(layOut(state()).bands[4]!.height);
  });

  it("keeps pinned tracks on top, out of their sections", () => {
    const { pinned, pinnedHeight, bands } = layOut(state([], (t) => !t.hidden, [0, 3]));
    expect(pinned.map((band) => [band.track, band.pinned])).toEqual([[0, true], [3, true]]);
    expect(bands.map((band) => [band.section, band.track])).toEqual([[1, -1], [1, 1]]);
    expect(bands[0]!.top).toBe(pinnedHeight);
    expect(onScreen(pinned[1]!, 50)).toBe(pinned[1]!.top);
    expect(onScreen(bands[0]!, 50)).toBe(pinnedHeight - 50);
    expect(pinned[1]!.boxes.every((box) => box.pinned && box.top >= pinned[1]!.top)).toBe(true);
  });

  it("keeps as many on top as there is room for; the others of them come first below", () => {
    const { pinned, pinnedHeight, bands, height } = layOut(state([], (t) => !t.hidden, [0, 1, 3], 70));
    expect(pinned.map((band) => band.track)).toEqual([0, 3]);
    expect(pinnedHeight).toBeLessThanOrEqual(70);
    expect(bands.map((band) => [band.section, band.track, band.pinned, band.wanted])).toEqual([[1, 1, false, true]]);
    expect(bands[0]!.top).toBe(pinnedHeight);
    expect(bands[0]!.boxes.every((box) => !box.pinned)).toBe(true);
    expect(height).toBe(pinnedHeight + bands[0]!.height);
  });

  it("shows bookkeeping only when asked", () => {
    const all = layOut(state([], () => true));
    expect(all.bands.some((band) => band.track === 2)).toBe(true);
    expect(layOut(state()).bands.some((band) => band.track === 2)).toBe(false);
  });

  it("finds the bands in view", () => {
    const layout = layOut(state());
    const all = layout.bands;
    expect(bandsBetween(layout, 0, layout.height)).toEqual(all);
    expect(bandsBetween(layout, all[2]!.top, all[2]!.top + 1)).toEqual([all[2]]);
    expect(bandsBetween(layout, all[2]!.top - 1, all[2]!.top + 1)).toEqual([all[1], all[2]]);
    expect(bandsBetween(layout, layout.height, layout.height + 5)).toEqual([]);
  });
});

describe("Viewport", () => {
  it("keeps the time under the pointer while zooming, and stays in the trace", () => {
    const viewport = new Viewport(1e6);
    viewport.zoom(0.01, 400_000);
    const share = (400_000 - viewport.start) / viewport.length;
    viewport.zoom(0.5, 400_000);
    expect((400_000 - viewport.start) / viewport.length).toBeCloseTo(share, 9);
    for (let i = 0; i < 100; i++) viewport.zoom(0.5, 400_000);
    expect(viewport.length).toBe(20);
    for (let i = 0; i < 100; i++) viewport.zoom(2, 0);
    expect(viewport.start).toBeCloseTo(-1e4);
    expect(viewport.end).toBeCloseTo(1.01e6);
    viewport.set(0, 1000);
    viewport.pan(-1e9);
    expect([viewport.start, viewport.length]).toEqual([-1e4, 1000]);
    viewport.pan(1e9);
    expect(viewport.end).toBeCloseTo(1.01e6);
    expect(viewport.length).toBe(1000);
  });

  it("moves smoothly to where it was sent, and further moves add up", () => {
    const viewport = new Viewport(1e6);
    viewport.set(0, 1e5);
    viewport.panSmoothly(0.5, 0, 100);
    viewport.panSmoothly(0.5, 10, 100);
    expect(viewport.target).toEqual([1e5, 2e5]);
    let before = viewport.start;
    for (let now = 20; now < 110; now += 10) {
      expect(viewport.advance(now)).toBe(true);
      expect(viewport.start).toBeGreaterThanOrEqual(before);
      before = viewport.start;
    }
    expect(viewport.advance(200)).toBe(false);
    expect([viewport.start, viewport.end]).toEqual([1e5, 2e5]);
  });

  it("shows an empty trace too", () => {
    const viewport = new Viewport(0);
    expect(viewport.length).toBeGreaterThan(0);
  });
});

describe("Labels", () => {
  const labels = new Labels("11px sans-serif", { measureText: (text: string) => ({ width: text.length * 6 }) } as unknown as CanvasRenderingContext2D);
  it("shows the whole name, else the short one, else what fits", () => {
    expect(labels.fit("dense/MatMul:MatMul", "MatMul", 200)).toBe("dense/MatMul:MatMul");
    expect(labels.fit("dense/MatMul:MatMul", "MatMul", 60)).toBe("MatMul");
    expect(labels.fit("dense/MatMul:MatMul", "MatMul", 30)).toBe("Mat…");
    expect(labels.fit("dense/MatMul:MatMul", "MatMul", 10)).toBe("");
  });
  it("keeps to one line, and no mathematics", () => {
    expect(labels.fit("a\nb\u0000c", "", 200)).toBe("a b c");
    expect(labels.fit("$$x$$", "", 200)).not.toContain("$$");
  });
});

describe("paint", () => {
  it("mixes, and writes black or white on it", () => {
    expect(parseColor("#4477aa")).toEqual([0x44, 0x77, 0xaa]);
    expect(parseColor("javascript:")).toEqual([0x8b, 0x90, 0x95]);
    expect(mix([0, 0, 0], [255, 255, 255], 0.5)).toEqual([128, 128, 128]);
    expect(textOn([255, 255, 255])).toBe("#000000");
    expect(textOn([30, 30, 60])).toBe("#ffffff");
    expect(shadeShare(1, 6)).toBeGreaterThan(0.25);
    expect(shadeShare(6, 6)).toBe(1);
  });
});
