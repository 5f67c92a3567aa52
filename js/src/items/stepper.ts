/** A chart of one step at a time: a slider chooses the step, and the chart's data is that step's rows of a table. */

import { embedFigure } from "../embed";
import { h, uniqueId } from "../dom";
import { plainText } from "../plain_text";
import { legendOf, saveBar } from "../save_picture";
import { hasTrace, scrollToReport, showInTrace, type Target } from "../show_in_trace";
import type { Context, Mounted, StepperItem, Table } from "../types";
import { onChartClick } from "./chart_click";
import { around } from "./step_click";

/** The columns of a slice of a table; numbers are multiplied by `scale`. */
export function slice(table: Table, first: number, count: number, scale: Record<string, number>): Record<string, any> {
  const result: Record<string, any> = {};
  for (const field of table.names) {
    const column = table.getChild(field)!;
    const factor = scale[field];
    const values: unknown[] = [];
    for (let i = first; i < first + count; i++) values.push(column.at(i));
    if (factor !== undefined) result[field] = Float64Array.from(values, (value) => Number(value) * factor);
    else result[field] = values.map((value) => (typeof value === "string" ? plainText(value) : value));
  }
  return result;
}

/** Columns of one table at the rows that another names. */
export function pick(table: Table, rows: Iterable<unknown>): Record<string, any> {
  const at = [...rows].map(Number);
  return Object.fromEntries(
    table.names.map((field) => {
      const column = table.getChild(field)!;
      return [field, at.map((i) => column.at(i)).map((value: unknown) => (typeof value === "string" ? plainText(value) : value))];
    }),
  );
}

/** Which of the bars shown is at `x`; -1 beside them. They are one wide. */
export function barAt(x: ArrayLike<number>, at: number): number {
  for (let i = 0; i < x.length; i++) if (Math.abs(at - x[i]!) <= 0.5) return i;
  return -1;
}

/** The bar of the slowest: the first whose step, or own work, takes longest. */
export function slowestBar(data: Record<string, ArrayLike<any>>, { slowest }: NonNullable<StepperItem["trace"]>): number {
  const times = Array.from(data[slowest]! as ArrayLike<number>);
  return times.indexOf(Math.max(...times));
}

/** Where in the trace the step of a bar is. */
export function inTrace(data: Record<string, ArrayLike<any>>, i: number, bars: Table, { trace, scale }: Pick<StepperItem, "trace" | "scale">): Target {
  const { start, length, several_hosts } = trace!;
  const [from, long] = [Number(data[start]![i]), Number(data[length]![i])];
  const bar = Number(data["bar"]![i]);
  // As they are in the trace: in the chart they may be spelled so that they are no mathematics.
  const name = (column: string) => String(bars.getChild(column)!.at(bar));
  return {
    range_ms: around(from, long),
    spot: { start_ms: from, kind: "step", device: name("device"), within_ms: scale[start] ?? 0 },
    host: several_hosts ? name("host") : undefined,
  };
}

export async function mountStepper(host: HTMLElement, item: StepperItem, ctx: Context): Promise<Mounted> {
  const [rows, bars, steps] = await Promise.all([ctx.table(item.rows), ctx.table(item.bars), ctx.table(item.steps)]);
  const column = (name: string) => {
    const found = steps.getChild(name);
    if (!found) throw new Error(`its data has no column ${name}`);
    return found;
  };
  const [first, count, label, caption, top] = ["first", "count", "label", "caption", "top"].map(column);
  const last = steps.numRows - 1;

  const id = uniqueId("step");
  const slider = h("input", { type: "range", id, min: 0, max: last, step: 1, value: item.value });
  const [before, after] = [h("button", { type: "button", class: "tfprof-button", "aria-label": "Previous step" }, "‹"), h("button", { type: "button", class: "tfprof-button", "aria-label": "Next step" }, "›")];
  const output = h("output", { for: id });
  const choice = last > 0 ? [before, slider, after] : []; // of one step there is nothing to choose
  const marks = item.marks.map(({ label: text, value }) => {
    const button = h("button", { type: "button", class: "tfprof-button" }, text);
    button.addEventListener("click", () => show(value));
    return button;
  });
  const linked = item.trace !== undefined && hasTrace(ctx.model);
  const slowest = h("button", { type: "button", class: "tfprof-button", hidden: !linked, title: "Open the trace at this step of the slowest" }, "Slowest in the trace");
  const canvas = h("div", { class: linked ? "tfprof-canvas tfprof-clickable" : "tfprof-canvas" });
  const note = [item.note, linked ? "Click a bar to see that step in the trace." : ""].filter(Boolean).join(" ");
  const words = h("figcaption", { "aria-live": "polite" });
  host.append(
    h(
      "figure",
      { class: "tfprof-figure", "aria-label": item.alt },
      item.title ? h("h4", { class: "tfprof-heading" }, item.title) : null,
      h("div", { class: "tfprof-stepper", "data-lm-suppress-shortcuts": "true" }, h("label", { for: id }, item.label), ...choice, output, ...marks, slowest),
      words,
      canvas,
      note ? h("figcaption", {}, note) : null,
    ),
  );
  const embedded = await embedFigure(canvas, item.figure, ctx);
  const title = () => [item.title, words.textContent].filter(Boolean).join(" – ");
  host.querySelector("figure")!.prepend(saveBar(ctx, () => ({ title: title(), file: item.title ?? item.label, view: embedded.view, legend: legendOf(host) })));
  const source = embedded.document.get_model_by_name("bars");
  const range = embedded.document.get_model_by_name("height");

  let shown = -1;
  function show(wanted: number): void {
    const at = Math.max(0, Math.min(last, wanted));
    if (at === shown) return;
    shown = at;
    const data = slice(rows, Number(first!.at(at)), Number(count!.at(at)), item.scale);
    source.data = { ...data, ...pick(bars, data["bar"]) };
    range.end = Number(top!.at(at));
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", `step ${label!.at(at)}`);
    output.textContent = `${label!.at(at)} (${(at + 1).toLocaleString("en-US")} of ${(last + 1).toLocaleString("en-US")})`;
    words.textContent = String(caption!.at(at));
    before.disabled = at === 0;
    after.disabled = at === last;
  }
  slider.addEventListener("input", () => show(Number(slider.value)));
  before.addEventListener("click", () => show(shown - 1));
  after.addEventListener("click", () => show(shown + 1));
  show(item.value);
  if (linked) {
    const open = (i: number) => {
      if (i < 0) return;
      showInTrace(ctx.model, inTrace(source.data, i, bars, item));
      scrollToReport(host);
    };
    onChartClick(canvas, [embedded.view], (x) => open(barAt(source.data["x"], x)));
    slowest.addEventListener("click", () => open(slowestBar(source.data, item.trace!)));
  }
  return embedded;
}
