/** What an allocator held at a time: chosen by a click on its chart of use over time, or with the keys below it. */

import { embedFigure } from "../embed";
import { legendOf, saveBar } from "../save_picture";
import { h, uniqueId } from "../dom";
import { unsplit } from "../timeline/data";
import type { Context, HeldItem, Mounted, Table } from "../types";
import { hasTrace, scrollToReport, showInTrace } from "../show_in_trace";
import { onRowWish, wishFor } from "../show_row";
import { onChartClick } from "./chart_click";
import { mountItems } from "./index";
import { mountRows } from "./table";

type Row = Record<string, unknown>;

const MIB = 2 ** 20;
/** The events of all allocators: see `pack_history` in views/memory.py. */
export interface History {
  /** Ticks since the event before of the allocator. */
  gap: ArrayLike<number>;
  /** Rows of the blocks; -1 for none. */
  begins: Int32Array;
  ends: Int32Array;
  /** Changes in bytes. */
  other: Float64Array;
  stack: Float64Array;
  whole: Float64Array;
  /** 0 to 100; NaN if unknown. */
  fragmentation: Float64Array;
}

const unzigzag = (values: ArrayLike<number>) => Float64Array.from(values, (value) => (value % 2 === 1 ? -(value + 1) / 2 : value / 2));

export function decodeHistory(table: Table): History {
  const column = (name: string) => unsplit(table, name).values;
  const [gap, begun, ended] = [column("time"), column("begins"), column("ends")];
  const n = table.numRows;
  const [begins, ends] = [new Int32Array(n), new Int32Array(n)];
  let newest = -1;
  for (let i = 0; i < n; i++) {
    const code = begun[i]!;
    if (code === 1) newest += 1;
    begins[i] = code === 0 ? -1 : code === 1 ? newest : newest - code + 2;
    ends[i] = ended[i]! === 0 ? -1 : newest - ended[i]! + 1;
  }
  const [other, stack, whole] = ["other", "stack", "whole"].map((name) => unzigzag(column(name)));
  const fragmentation = Float64Array.from(column("fragmentation"), (value) => (value === 0 ? NaN : (value - 1) / 10));
  return { gap, begins, ends, other: other!, stack: stack!, whole: whole!, fragmentation };
}

/** What is drawn over time, in bytes and percent, of the `count` events from `first` on. */
export function course(history: History, blocks: Table, first: number, count: number): Record<string, Float64Array> {
  const bytes = Float64Array.from(blocks.getChild("bytes")!.toArray() as ArrayLike<number | bigint>, Number);
  const [heap, stack, in_use, free] = Array.from({ length: 4 }, () => new Float64Array(count));
  let [held, other, reserved, whole] = [0, 0, 0, 0];
  for (let i = 0; i < count; i++) {
    const at = first + i;
    if (history.begins[at]! >= 0) held += bytes[history.begins[at]!]!;
    if (history.ends[at]! >= 0) held -= bytes[history.ends[at]!]!;
    other += history.other[at]!;
    reserved += history.stack[at]!;
    whole += history.whole[at]!;
    heap![i] = held + other;
    stack![i] = reserved;
    in_use![i] = heap![i]! + reserved;
    free![i] = whole - in_use![i]!;
  }
  return { heap: heap!, stack: stack!, in_use: in_use!, free: free!, fragmentation: history.fragmentation.slice(first, first + count) };
}

/** Which of the ascending `times` to draw: at most `most`, the first, the last, and of each stretch of time the least and the most of `values`. */
export function thinned(times: ArrayLike<number>, values: ArrayLike<number>, most: number): number[] {
  const n = times.length;
  if (n <= most) return Array.from({ length: n }, (_, i) => i);
  const buckets = (most - 2) >> 1;
  const span = times[n - 1]! - times[0]! || 1;
  const kept = new Set([0, n - 1]);
  for (let i = 0; i < n; ) {
    const bucketOf = (row: number) => Math.min(buckets - 1, Math.floor((buckets * (times[row]! - times[0]!)) / span));
    const bucket = bucketOf(i);
    let [low, high] = [i, i];
    for (; i < n && bucketOf(i) === bucket; i++) {
      if (values[i]! < values[low]!) low = i;
      if (values[i]! > values[high]!) high = i;
    }
    kept.add(low).add(high);
  }
  return [...kept].sort((a, b) => a - b);
}

/** What is held after the event `at` of the `first` and following ones: a row a kind of block, as the peak's table has them. */
export function heldAt(history: History, blocks: Table, first: number, at: number, labels: HeldItem["labels"]): Row[] {
  const occurrences = new Map<number, number>();
  const add = (block: number, change: number) => {
    if (block >= 0) occurrences.set(block, (occurrences.get(block) ?? 0) + change);
  };
  let [other, stack] = [0, 0];
  for (let i = first; i <= first + at; i++) {
    add(history.begins[i]!, 1);
    add(history.ends[i]!, -1);
    other += history.other[i]!;
    stack += history.stack[i]!;
  }
  const column = (name: string) => blocks.getChild(name)!;
  const [bytes, requested, op, region, type, shape] = ["bytes", "requested_bytes", "op_name", "region_type", "data_type", "shape"].map(column);
  const rows: Row[] = [];
  for (const [block, count] of occurrences) {
    if (count <= 0) continue;
    const size = Number(bytes!.at(block)) / MIB;
    rows.push({
      op_name: op!.at(block) || labels.unnamed,
      size_mib: size,
      requested_size_mib: Number(requested!.at(block)) / MIB,
      occurrences: count,
      total_size_mib: size * count,
      region_type: region!.at(block),
      data_type: type!.at(block),
      shape: shape!.at(block),
    });
  }
  for (const [name, size] of [[labels.other, other], [labels.stack, stack]] as [string, number][]) {
    if (size <= 0) continue;
    rows.push({ op_name: name, size_mib: size / MIB, requested_size_mib: size / MIB, occurrences: 1, total_size_mib: size / MIB, region_type: "", data_type: "", shape: "" });
  }
  const total = rows.reduce((sum, row) => sum + Number(row["total_size_mib"]), 0) || 1;
  return rows.map((row) => ({ ...row, share_pct: (100 * Number(row["total_size_mib"])) / total }));
}

/** The last of the ascending `times` that is not after `time`; 0 if all are. */
export function lastUntil(times: ArrayLike<number>, time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

export async function mountHeld(host: HTMLElement, item: HeldItem, ctx: Context): Promise<Mounted> {
  const [events, blocks] = await Promise.all([ctx.table(item.events), ctx.table(item.blocks)]);
  const history = decodeHistory(events);
  const times = new Float64Array(item.count);
  let tick = 0;
  for (let i = 0; i < item.count; i++) times[i] = (tick += history.gap[item.first + i]!) * item.tick_ms;
  const last = item.count - 1;

  const data = course(history, blocks, item.first, item.count);
  const drawn = thinned(times, data["in_use"]!, item.most_points);
  const number = (value: number) => value.toLocaleString("en-US");
  const fewer = drawn.length < item.count ? `${number(drawn.length)} of ${number(item.count)} points drawn: each stretch of time keeps its least and its most, so no peak is lost. ` : "";

  const canvas = h("div", { class: "tfprof-canvas tfprof-clickable" });
  const figure = h(
    "figure",
    { class: "tfprof-figure", "aria-label": item.alt },
    item.title ? h("h4", { class: "tfprof-heading" }, item.title) : null,
    canvas,
    h("figcaption", {}, fewer + (item.note ?? "")),
  );
  const [chartCell, besideCell] = [h("div", { class: "tfprof-cell" }), h("div", { class: "tfprof-cell" })];
  chartCell.style.setProperty("--weight", "2.4");
  besideCell.style.setProperty("--weight", "0.9");
  chartCell.append(figure);

  const id = uniqueId("time");
  const time = h("input", { type: "number", id, class: "tfprof-time", step: "any", min: 0 });
  const button = (label: string, name: string | null) => h("button", { type: "button", class: "tfprof-button", "aria-label": name }, label);
  const [before, after, peak] = [button("‹", "Previous change"), button("›", "Next change"), button("Peak", null)];
  const said = h("span", { class: "tfprof-count", role: "status", title: "Changes: the allocations and deallocations" });
  const tools = h(
    "div",
    { class: "tfprof-stepper", "data-lm-suppress-shortcuts": "true" },
    h("label", { for: id }, "What was held at (ms)"),
    ...[before, time, after, peak, said],
  );
  const below = h("div");
  host.append(h("div", { class: "tfprof-row" }, chartCell, besideCell), tools, below);

  const kept = `held:${item.events}:${item.first}`;
  let shown = Math.min(last, Number(ctx.state.get(kept) ?? item.peak));
  const asked = wishFor(host, ctx.model)?.time_ms;
  // An allocation of the trace: half a tick of room for what is lost in numbers of milliseconds.
  const changeAt = (time_ms: number) => lastUntil(times, time_ms + item.tick_ms / 2);
  if (asked !== undefined) shown = changeAt(asked);
  const rowsAt = (at: number) => heldAt(history, blocks, item.first, at, item.labels);
  const words = (at: number) => `${times[at]!.toLocaleString("en-US", { maximumFractionDigits: 3 })} ms`;
  const titleAt = (at: number) => (at === item.peak ? `Allocations at the peak (${words(at)})` : `Allocations at ${words(at)}`);
  const [mounted, beside, table] = await Promise.all([
    embedFigure(canvas, item.figure, ctx),
    mountItems(besideCell, [item.beside], ctx),
    mountRows(below, { ...item.table, title: titleAt(shown) }, ctx, rowsAt(shown), Math.max(rowsAt(item.peak).length, 8)),
  ]);

  figure.prepend(saveBar(ctx, () => ({ title: item.title ?? "Memory in use", view: mounted.view, legend: legendOf(figure) })));
  const points = mounted.document.get_model_by_name("points");
  points.data = Object.fromEntries(
    Object.keys(points.data).map((name) => {
      const unit = name === "time" || name === "fragmentation" ? 1 : item.scale;
      const values = name === "time" ? times : data[name]!;
      return [name, Float64Array.from(drawn, (row) => values[row]! / unit)];
    }),
  );
  const cursors = [...mounted.document.all_models].filter((model: any) => model.name === "cursor");
  const mark = (at: number) => {
    for (const cursor of cursors) cursor.setv({ location: times[at], visible: at !== item.peak });
    time.value = String(Number(times[at]!.toFixed(6)));
    said.textContent = `after change ${number(at + 1)} of ${number(item.count)}`;
    before.disabled = at === 0;
    after.disabled = at === last;
  };
  const show = (wanted: number) => {
    const at = Math.max(0, Math.min(last, wanted));
    if (at !== shown) {
      shown = at;
      ctx.state.set(kept, at);
      void table.replace(rowsAt(at), titleAt(at));
    }
    mark(at);
  };
  mark(shown);
  before.addEventListener("click", () => show(shown - 1));
  after.addEventListener("click", () => show(shown + 1));
  peak.addEventListener("click", () => show(item.peak));
  time.addEventListener("change", () => {
    if (time.value !== "" && Number.isFinite(Number(time.value))) show(lastUntil(times, Number(time.value)));
    else mark(shown);
  });

  if (hasTrace(ctx.model)) {
    const trace = button("Trace", "Show this time in the trace");
    trace.addEventListener("click", () => {
      // From the change before to the one after, so that it stands in the middle of something.
      const [from, to] = [times[Math.max(0, shown - 1)]!, times[Math.min(last, shown + 1)]!];
      const room = Math.max(to - times[shown]!, times[shown]! - from, 0.002);
      showInTrace(ctx.model, { range_ms: [times[shown]! - room, times[shown]! + room], spot: { start_ms: times[shown]!, kind: "memory" } });
      scrollToReport(trace);
    });
    tools.append(trace);
  }
  const stop = onRowWish(host, ctx, ({ time_ms }) => {
    if (time_ms !== undefined) show(changeAt(time_ms));
  });

  const { view } = mounted;
  const plots = view.frame !== undefined ? [view] : view.child_views;
  onChartClick(canvas, plots, (time) => show(lastUntil(times, time)));
  const parts = [mounted, beside, table];
  return {
    dispose: () => {
      stop();
      parts.forEach((part) => part.dispose());
    },
    resize: () => parts.forEach((part) => part.resize()),
  };
}
