import { h } from "../dom";
import { embedFigure, type Embedded } from "../embed";
import { legendOf, saveBar } from "../save_picture";
import { hasTrace } from "../show_in_trace";
import { onStepClick } from "./step_click";
import type { Context, FigureItem, Mounted } from "../types";

export async function mountFigure(host: HTMLElement, item: FigureItem, ctx: Context): Promise<Mounted> {
  const steps = item.trace !== undefined && hasTrace(ctx.model);
  const canvas = h("div", { class: steps ? "tfprof-canvas tfprof-clickable" : "tfprof-canvas" });
  const note = [item.note, steps ? "Click a step to see it in the trace." : ""].filter(Boolean).join(" ");
  let embedded: Embedded | null = null;
  const save = saveBar(ctx, () => ({ title: item.title ?? "", view: embedded?.view, legend: legendOf(host) }));
  save.hidden = true;
  host.append(
    h(
      "figure",
      { class: "tfprof-figure", "aria-label": item.alt },
      save,
      item.title ? h("h4", { class: "tfprof-heading" }, item.title) : null,
      canvas,
      note ? h("figcaption", {}, note) : null,
    ),
  );
  embedded = await embedFigure(canvas, item.figure, ctx);
  save.hidden = false;
  if (steps) onStepClick(canvas, embedded, item.trace!.step_kind, ctx);
  return embedded;
}
