import { h } from "../dom";
import { embedFigure } from "../embed";
import { hasTrace } from "../show_in_trace";
import { onStepClick } from "./step_click";
import type { Context, FigureItem, Mounted } from "../types";

export async function mountFigure(host: HTMLElement, item: FigureItem, ctx: Context): Promise<Mounted> {
  const steps = item.trace !== undefined && hasTrace(ctx.model);
  const canvas = h("div", { class: steps ? "tfprof-canvas tfprof-clickable" : "tfprof-canvas" });
  const note = [item.note, steps ? "Click a step to see it in the trace." : ""].filter(Boolean).join(" ");
  host.append(
    h(
      "figure",
      { class: "tfprof-figure", "aria-label": item.alt },
      item.title ? h("h4", { class: "tfprof-heading" }, item.title) : null,
      canvas,
      note ? h("figcaption", {}, note) : null,
    ),
  );
  const embedded = await embedFigure(canvas, item.figure, ctx);
  if (steps) onStepClick(canvas, embedded, item.trace!.step_kind, ctx);
  return embedded;
}
