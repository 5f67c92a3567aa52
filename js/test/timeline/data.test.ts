import { tableFromArrays } from "@uwdata/flechette";
import { describe, expect, it } from "vitest";
import { decodeEvents, Store, type Track } from "../../src/timeline/data";
import { random, randomLane, storeOf } from "./make";

const track = (first: number, count: number, lanes: number): Track => ({
  section: 0,
  label: "",
  hint: "",
  kind: "host",
  hidden: false,
  first,
  count,
  lanes,
  lane: -1,
  busyPs: 0,
});

describe("decodeEvents", () => {
  it("adds up gaps, joins bytes, and sorts the events into lanes", () => {
    // Track 1: [100, 400) in lane 0, [110, 160) and [160, 170) in lane 1, [500, 501) in lane 0. Track 2: [7, 7].
    // Gaps: 100; 110 - 100 (deeper); 160 - 160; 500 - 170; 7.
    const table = tableFromArrays({
      start0: Uint8Array.of(100, 10, 0, 330 & 255, 7),
      start1: Uint8Array.of(0, 0, 0, 330 >> 8, 0),
      duration0: Uint8Array.of(300 & 255, 50, 10, 1, 0),
      duration1: Uint8Array.of(300 >> 8, 0, 0, 0, 0),
      name0: Uint8Array.of(0, 1, 2, 3, 4),
      lane0: Uint8Array.of(0, 1, 1, 0, 0),
    });
    const tracks = [track(0, 4, 2), track(4, 1, 1)];
    const store = decodeEvents(table, tracks);
    expect(tracks.map((each) => each.lane)).toEqual([0, 2]);
    expect([...store.laneFirst]).toEqual([0, 2, 4, 5]);
    expect([...store.start]).toEqual([100, 500, 110, 160, 7]);
    expect([...store.end]).toEqual([400, 501, 160, 170, 7]);
    expect([...store.name]).toEqual([0, 3, 1, 2, 4]);
  });

  it("lets negative gaps wrap around", () => {
    // [100, 200) in lane 1, then [150, 160) in lane 0: 150 - 200 = -50, stored as 65486.
    const table = tableFromArrays({
      start0: Uint8Array.of(100, 65486 & 255),
      start1: Uint8Array.of(0, 65486 >> 8),
      duration0: Uint8Array.of(100, 10),
      name0: Uint8Array.of(0, 0),
      lane0: Uint8Array.of(1, 0),
    });
    const store = decodeEvents(table, [track(0, 2, 2)]);
    expect([...store.start]).toEqual([150, 100]);
  });
});

describe("Store", () => {
  const store = storeOf(randomLane(5000, 3));
  const next = random(9);

  it("finds the first event that starts, or ends, at a time or later", () => {
    for (let k = 0; k < 200; k++) {
      const time = next() * store.end[4999]! * 1.1;
      const low = Math.floor(next() * 1000);
      const naive = (values: Float64Array) => {
        let i = low;
        while (i < 5000 && values[i]! < time) i++;
        return i;
      };
      expect(store.firstStart(time, low, 5000)).toBe(naive(store.start));
      expect(store.nextStart(time, low, 5000)).toBe(naive(store.start));
      expect(store.firstEnd(time, low, 5000)).toBe(naive(store.end));
    }
  });

  it("finds the longest event of a range, the first one of equals", () => {
    const many = new Store(
      Float64Array.from({ length: 5000 }, (_, i) => i * 10),
      Float64Array.from({ length: 5000 }, (_, i) => i * 10 + (i % 7)),
      new Uint32Array(5000),
      Uint32Array.of(0, 5000),
    );
    for (const each of [store, many]) {
      for (let k = 0; k < 300; k++) {
        const low = Math.floor(next() * 4999);
        const high = low + 1 + Math.floor(next() * (5000 - low));
        let best = low;
        for (let i = low; i < Math.min(high, 5000); i++) if (each.duration(i) > each.duration(best)) best = i;
        expect(each.longest(low, Math.min(high, 5000))).toBe(best);
      }
    }
  });
});
