/** Two traces, one above the other, aligned at a step of both: what moves one moves the other. */

import { h, uniqueId } from "../dom";
import { mountTimeline } from "../timeline/index";
import type { Timeline } from "../timeline/timeline";
import type { Context, Model, Mounted, TimelinesItem } from "../types";

/** Room kept free before the first and after the last of both traces, as a share of all. */
const MARGIN = 0.01;
/** How much of the steps' length is shown before and after them. */
const ROOM = 0.25;

/** A time of each trace, in ps: the two are one above the other. */
export type Pair = readonly [number, number];

/** What a window on each trace can show, so that both can show all of both: from, to, in ps of each trace. */
export function limits(spans: Pair, at: Pair, begins: Pair = [0, 0]): [Pair, Pair] {
  const low = Math.min(begins[0] - at[0], begins[1] - at[1]);
  const high = Math.max(spans[0] - at[0], spans[1] - at[1]);
  const margin = MARGIN * (high - low);
  return [
    [low - margin + at[0], high + margin + at[0]],
    [low - margin + at[1], high + margin + at[1]],
  ];
}

/** Where a time of one trace (0 or 1) is on the other. */
export function across(time: number, from: 0 | 1, at: Pair): number {
  return time - at[from] + at[1 - from]!;
}

/** The window of the first trace that shows a step of both. */
export function around(at: Pair, durations: Pair): Pair {
  const longest = Math.max(...durations);
  return [at[0] - ROOM * longest, at[0] + (1 + ROOM) * longest];
}

/** The report's model for the trace below: which time is shown is the one above's to tell. */
function withoutRange(model: Model): Model {
  const told = (name: string) => !["range_ms", "spot"].includes(name.replace("change:", ""));
  return {
    get: (name) => (told(name) ? model.get(name) : null),
    set: (name, value) => (told(name) ? model.set(name, value) : undefined),
    save_changes: () => model.save_changes(),
    on: (event, callback) => (told(event) ? model.on(event, callback) : undefined),
    off: (event, callback) => (told(event) ? model.off(event, callback) : undefined),
  };
}

export async function mountTimelines(host: HTMLElement, item: TimelinesItem, ctx: Context): Promise<Mounted> {
  const places = item.traces.map(({ label, color }) => {
    const swatch = h("span", { class: "tfprof-swatch", "aria-hidden": "true" });
    swatch.style.background = color;
    return { heading: h("h4", { class: "tfprof-heading tfprof-trace-run" }, swatch, label), body: h("div") };
  });
  const kept = `timelines:${item.traces[0].timeline.events}`;
  const select = h("select", { id: uniqueId("align") }, ...item.places.map(({ label }, index) => h("option", { value: String(index) }, label)));
  host.append(
    h("div", { class: "tfprof-switch" }, h("label", { for: select.id }, "Align at"), select, item.note ? h("span", {}, item.note) : null),
    ...places.flatMap(({ heading, body }) => [heading, body]),
  );
  const below: Context = { ...ctx, model: withoutRange(ctx.model) };
  const told = Array.isArray(ctx.model.get("range_ms"));
  const traces = (await Promise.all(
    item.traces.map(({ timeline }, index) => mountTimeline(places[index]!.body, timeline, index === 0 ? ctx : below)),
  )) as [Timeline, Timeline];
  const units = item.traces.map(({ timeline }) => timeline.unit_ps) as [number, number];
  const spans = item.traces.map(({ timeline }) => timeline.span_ps) as [number, number];
  const begins = traces.map(({ viewport }, index) => viewport.begin * units[index]!) as [number, number];
  let at: Pair = [0, 0];

  const lead = (from: 0 | 1) => {
    const to = (1 - from) as 0 | 1;
    const { start, end } = traces[from].viewport;
    const [left, right] = [start, end].map((time) => across(time * units[from], from, at) / units[to]) as [number, number];
    const { viewport } = traces[to];
    // What is less than a hundredth of a pixel is a rounding: it would go back and forth.
    const same = 1e-5 * viewport.length;
    if (Math.abs(viewport.start - left) < same && Math.abs(viewport.end - right) < same) return;
    viewport.set(left, right);
    traces[to].invalidate();
  };
  const align = (index: number, move: boolean) => {
    const place = item.places[index] ?? item.places[0]!;
    at = place.at_ps;
    limits(spans, at, begins).forEach((ends, i) => (traces[i]!.viewport.limits = ends.map((time) => time / units[i]!) as [number, number]));
    if (move && place.durations_ps !== null) {
      const [start, end] = around(at, place.durations_ps);
      traces[0].viewport.set(start / units[0], end / units[0]);
    } else if (move) {
      traces[0].viewport.all();
    }
    traces[0].invalidate();
    lead(0);
  };
  traces.forEach((trace, index) => (trace.moved = () => lead(index as 0 | 1)));
  select.addEventListener("change", () => {
    ctx.state.set(kept, Number(select.value));
    align(Number(select.value), true);
  });
  const chosen = Math.min(Number(ctx.state.get(kept) ?? item.value), item.places.length - 1);
  select.value = String(chosen);
  align(chosen, !told);
  return {
    dispose: () => traces.forEach((trace) => trace.dispose()),
    resize: () => traces.forEach((trace) => trace.resize()),
  };
}
