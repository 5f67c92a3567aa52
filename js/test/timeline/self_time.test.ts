import { describe, expect, it } from "vitest";
import { Store, type Track } from "../../src/timeline/data";
import { SelfTimes, selfTime } from "../../src/timeline/self_time";
import { random, storeOf, type Simple } from "./make";

const trackOf = (lanes: number): Track => ({ section: 0, label: "", hint: "", kind: "host", hidden: false, first: 0, count: 0, lanes, lane: 0, busyPs: 0 });
const at = (store: Store, lane: number, i = 0, lanes = store.laneFirst.length - 1) => selfTime({ store, lane, event: store.laneFirst[lane]! + i }, trackOf(lanes));

/** Events of a track in lanes, as Python packs them where they overlap: each lane takes the next that starts after the last one's end. */
function packed(events: Simple[]): Store {
  const lanes: Simple[][] = [];
  let rest = [...events].sort((a, b) => a.start - b.start || b.duration - a.duration);
  while (rest.length > 0) {
    let free = -Infinity;
    const lane = rest.filter((event) => event.start >= free && ((free = event.start + event.duration), true));
    lanes.push(lane);
    rest = rest.filter((event) => !lane.includes(event));
  }
  return storeOf(...lanes);
}

describe("selfTime", () => {
  // A parent with two children, a parent with none, and an instant.
  const store = storeOf([{ start: 0, duration: 100 }, { start: 200, duration: 50 }, { start: 300, duration: 0 }], [{ start: 10, duration: 20 }, { start: 40, duration: 30 }]);

  it("takes the direct children off", () => {
    expect(at(store, 0)).toBe(50);
    expect(at(store, 0, 1)).toBe(50);
    expect(at(store, 0, 2)).toBe(0);
    expect(at(store, 1)).toBe(20);
    const deep = storeOf([{ start: 0, duration: 100 }], [{ start: 10, duration: 50 }], [{ start: 20, duration: 5 }]);
    expect([0, 1, 2].map((lane) => at(deep, lane))).toEqual([50, 45, 5]);
  });

  it("is none where events overlap: not of those, nor of the one that they are in", () => {
    // In lanes: A and, inside it, a1; B, which outlasts A; a2, which outlasts a1.
    const own = packed([{ start: 0, duration: 1000 }, { start: 500, duration: 1000 }, { start: 100, duration: 50 }, { start: 120, duration: 90 }]);
    expect(own.laneFirst).toEqual(Uint32Array.of(0, 1, 3, 4));
    expect([at(own, 0), at(own, 1, 0), at(own, 1, 1), at(own, 2)]).toEqual(["overlap", "overlap", "overlap", "overlap"]);
    // A child that overlaps on the left, and one that overlaps on the right.
    const over = storeOf([{ start: 10, duration: 20 }, { start: 50, duration: 20 }, { start: 100, duration: 9 }], [{ start: 5, duration: 10 }, { start: 60, duration: 30 }]);
    expect([at(over, 0, 0), at(over, 0, 1), at(over, 0, 2)]).toEqual(["overlap", "overlap", 9]);
  });

  it("is known above and beside what overlaps", () => {
    // root > p > (a, b that overlap), and root > q
    const events = [{ start: 0, duration: 1000 }, { start: 100, duration: 300 }, { start: 150, duration: 50 }, { start: 170, duration: 60 }, { start: 500, duration: 100 }];
    const some = packed(events);
    expect(at(some, 0)).toBe(600);
    expect(at(some, 1, 0)).toBe("overlap");
    expect(at(some, 1, 1)).toBe(100);
  });

  it("is what comparing every event with every other says", () => {
    let known = 0;
    let unknown = 0;
    for (let seed = 0; seed < 200; seed++) {
      const next = random(seed);
      const events = Array.from({ length: 14 }, () => ({ start: Math.floor(next() * 60), duration: Math.floor(next() * next() * 50) }));
      // Of two alike one would be inside the other, either way.
      const distinct = [...new Map(events.map((event) => [`${event.start} ${event.duration}`, event])).values()];
      const made = packed(distinct);
      const all = distinct.filter((event) => event.duration > 0).map((event) => [event.start, event.start + event.duration] as const);
      const inside = (a: readonly [number, number], b: readonly [number, number]) => a !== b && b[0] <= a[0] && a[1] <= b[1];
      const crosses = (a: readonly [number, number], b: readonly [number, number]) => a[0] < b[1] && b[0] < a[1] && !inside(a, b) && !inside(b, a) && a !== b;
      for (let lane = 0; lane + 1 < made.laneFirst.length; lane++) {
        const times = new SelfTimes(made, lane, trackOf(made.laneFirst.length - 1));
        for (let event = made.laneFirst[lane]!; event < made.laneFirst[lane + 1]!; event++) {
          const me = all.find(([from, to]) => from === made.start[event] && to === made.end[event]);
          const self = times.of(event);
          expect(self).toBe(selfTime({ store: made, lane, event }, trackOf(made.laneFirst.length - 1)));
          if (me === undefined) continue;
          const within = all.filter((each) => inside(each, me));
          const children = within.filter((each) => !within.some((other) => inside(each, other)));
          const mixed = all.some((each) => crosses(each, me)) || children.some((each) => children.some((other) => crosses(each, other)));
          if (mixed) unknown++;
          else known++;
          expect(self, `${seed}: ${me.join("–")}`).toBe(mixed ? "overlap" : children.reduce((left, [from, to]) => left - (to - from), me[1] - me[0]));
        }
      }
    }
    expect(Math.min(known, unknown)).toBeGreaterThan(300);
  });

  it("is none of a bar, nor where a bar may hold children of several", () => {
    const lanes = storeOf(
      [{ start: 0, duration: 100 }, { start: 110, duration: 90 }, { start: 300, duration: 50 }, { start: 400, duration: 100 }],
      [{ start: 10, duration: 20 }, { start: 50, duration: 40 }, { start: 310, duration: 10 }, { start: 410, duration: 20 }],
    );
    const store = new Store(lanes.start, lanes.end, lanes.name, lanes.laneFirst, Uint32Array.from(lanes.start, (_, i) => i));
    expect(at(store, 0, 0)).toBe(40);
    // The second one in the lane below stands for seven, which may go on until the third; the third one stands for itself.
    store.weigh(new Map([[5, 7]]));
    expect(at(store, 1, 1)).toBe("merged");
    expect([0, 1, 2, 3].map((i) => at(store, 0, i))).toEqual(["merged", "merged", "merged", 80]);
    // All of a bar is within, if the next one in the lane below begins before the next one above, or is where the parent begins.
    store.weigh(new Map([[4, 3]]));
    expect([0, 1, 2, 3].map((i) => at(store, 0, i))).toEqual([40, 90, 40, 80]);
    store.weigh(new Map([[7, 3]]));
    expect([0, 1, 2, 3].map((i) => at(store, 0, i))).toEqual([40, 90, 40, 80]);
  });
});
