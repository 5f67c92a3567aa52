/** From a step's column in a chart to the step in the trace. */

import type { Embedded } from "../embed";
import { scrollToReport, showInTrace, type Target } from "../show_in_trace";
import type { Context } from "../types";
import { onChartClick } from "./chart_click";

/** Of the step's length, what is shown before and after it. */
const ROOM = 0.1;

/** The window that shows a step. */
export function around(start_ms: number, length_ms: number): [number, number] {
  return [start_ms - ROOM * length_ms, start_ms + (1 + ROOM) * length_ms];
}

/** Where in the trace the step at `x` is; `null` between columns. `kind` is of all the chart's steps. */
export function stepAt(data: Record<string, ArrayLike<any>>, x: number, kind: string): Target | null {
  const { x: middle, width, step, start, total, host } = data;
  for (let i = 0; i < middle!.length; i++) {
    if (Math.abs(x - middle![i]) > width![i] / 2) continue;
    const [from, length] = [Number(start![i]), Number(total![i])];
    const number = step![i];
    return {
      range_ms: around(from, length),
      // A column of several steps is an average of them: it shows where they begin.
      spot: /^-?\d+$/.test(String(number)) ? { start_ms: from, kind: "step", name: `${kind} ${number}`.trim() } : undefined,
      host: host === undefined ? undefined : String(host[i]),
    };
  }
  return null;
}

export function onStepClick(canvas: HTMLElement, { document, view }: Embedded, kind: string, ctx: Pick<Context, "model">): void {
  onChartClick(canvas, [view], (x) => {
    const target = stepAt(document.get_model_by_name("steps").data, x, kind);
    if (target === null) return;
    showInTrace(ctx.model, target);
    scrollToReport(canvas);
  });
}
