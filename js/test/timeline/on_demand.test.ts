import { gzipSync } from "node:zlib";
import { tableFromArrays, tableToIPC } from "@uwdata/flechette";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { OnDemand } from "../../src/timeline/on_demand";

const packed = (columns: Record<string, Uint8Array>) => new Uint8Array(gzipSync(tableToIPC(tableFromArrays(columns), { format: "stream" })!));
const tables = () => ({ events: packed({ start0: Uint8Array.of(1) }), bars: packed({ row0: Uint8Array.of(0) }), names: packed({ name0: Uint8Array.of(0) }) });

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** A page whose kernel answers when it is told to. */
function page(linked = true) {
  const listeners = new Set<() => void>();
  const asked: { question: any; answer(content: object): void; fail(message: string): void }[] = [];
  const model: any = {
    linked,
    on: (_: string, callback: () => void) => listeners.add(callback),
    off: () => {},
    ask: (question: any) =>
      new Promise((resolve, reject) => asked.push({ question, answer: (content) => resolve({ content, tables: tables() }), fail: (message) => reject(new Error(message)) })),
  };
  const window: [number, number] = [0, 1e9];
  const receive = vi.fn();
  const end = new AbortController();
  const demand = new OnDemand(model, { alone: 1000, events: 5000 }, { timeline: "t", rows: 9 }, { windowPs: () => [...window], keep: () => [7], receive, told: () => {} }, end.signal);
  const link = (on: boolean) => {
    model.linked = on;
    for (const listener of listeners) listener();
  };
  const move = async (from: number, to: number) => {
    [window[0], window[1]] = [from, to];
    demand.rested();
    await vi.advanceTimersByTimeAsync(250);
  };
  return { demand, asked, receive, link, move };
}

/** Unpacking takes a while of real time. */
const until = (condition: () => boolean) => vi.waitUntil(condition, { interval: 1 });

it("asks once the window rests, once at a time, and not again for what it has", async () => {
  const { demand, asked, receive, move } = page();
  demand.rested();
  demand.rested();
  await move(2e9, 3e9);
  expect(asked.map(({ question }) => question)).toEqual([{ kind: "window", range_ms: [2, 3], keep: [7], timeline: "t", rows: 9 }]);
  expect(demand.words).toContain("asking Python");
  await move(2.5e9, 3e9);
  expect(asked.length).toBe(1);
  asked[0]!.answer({ window_ps: [1e9, 4e9], all: false, events: 500, unit_ps: 1000, tracks: [] });
  await until(() => receive.mock.calls.length === 1);
  expect(demand.words).toBe("1,500 of 5,000 events of the trace are here one by one, 500 of them from Python: all those of this window");
  await move(1e9, 4e9);
  expect(asked.length).toBe(1);
  await move(1e9, 4.1e9);
  expect(asked.length).toBe(2);
  asked[1]!.answer({ window_ps: [0, 9e9], all: true, events: 4000, unit_ps: 1000, tracks: [] });
  await until(() => receive.mock.calls.length === 2);
  expect(demand.words).toBe("All 5,000 events of the trace are here one by one, 4,000 of them from Python");
  await move(0, 99e9);
  expect(asked.length).toBe(2);
});

it("asks for where the window has gone while Python answered", async () => {
  const { asked, receive, move } = page();
  await move(2e9, 3e9);
  await move(7e9, 8e9);
  asked[0]!.answer({ window_ps: [1e9, 4e9], all: false, events: 500, unit_ps: 1000, tracks: [] });
  await until(() => receive.mock.calls.length === 1);
  await vi.advanceTimersByTimeAsync(250);
  expect(asked[1]!.question.range_ms).toEqual([7, 8]);
});

it("asks for less where Python has too many", async () => {
  const { demand, asked, move } = page();
  await move(0, 8e9);
  asked[0]!.answer({ too_many: 300000, most: 200000 });
  await vi.advanceTimersByTimeAsync(1000);
  expect(demand.words).toContain("Python has 300,000 more for this window, and sends at most 200,000 at once: zoom in");
  await move(0, 9e9);
  expect(asked.length).toBe(1);
  await move(1e9, 4e9);
  expect(asked.length).toBe(2);
});

it("says when Python is slow, is gone, can't, and was never there", async () => {
  const { demand, asked, link, move } = page();
  await move(2e9, 3e9);
  await vi.advanceTimersByTimeAsync(4000);
  expect(demand.words).toContain("busy, or gone");
  link(false);
  asked[0]!.fail("The kernel is gone.");
  await vi.advanceTimersByTimeAsync(0);
  expect(demand.words).toBe("1,000 of 5,000 events of the trace are here one by one; the kernel that has the others is gone");
  await move(4e9, 5e9);
  expect(asked.length).toBe(1);
  link(true);
  await move(4e9, 5e9);
  asked[1]!.fail("The report in Python has changed.");
  await vi.advanceTimersByTimeAsync(1000);
  expect(demand.words).toContain("Python can't send the others: The report in Python has changed.");
  expect(asked.length).toBe(2);
  expect(page(false).demand.words).toBe("1,000 of 5,000 events of the trace are here one by one");
});

it("tells details and finds of the whole, or that it can't", async () => {
  const { demand, asked, link } = page();
  const details = demand.details(12);
  asked[0]!.answer({ stats: [{ name: "b", label: "Size", unit: "bytes", meaning: "", value: "2048" }, { name: "a", label: "Op", unit: "", meaning: "m", value: "x" }], ways: [] });
  expect((await details)!.stats).toEqual([{ hint: "a", label: "Op", meaning: "m", value: "x" }, { hint: "b", label: "Size", meaning: "", value: "2 KiB (2,048 bytes)" }]);
  const search = demand.search("relu", "text");
  expect(asked[1]!.question).toMatchObject({ kind: "search", text: "relu", match: "text" });
  asked[1]!.answer({ count: 1234, total_ps: 5e9 });
  expect(await search).toEqual({ count: 1234, words: "1,234 in the whole trace · 5.000 ms" });
  const failed = demand.search("(", "regex");
  asked[2]!.fail("no");
  expect(await failed).toBeNull();
  link(false);
  expect(await demand.details(12)).toBeNull();
  expect(await demand.search("relu", "text")).toBeNull();
});
