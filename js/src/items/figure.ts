import { h } from "../dom";
import { embedFigure } from "../embed";
import type { Context, FigureItem, Mounted } from "../types";

export async function mountFigure(host: HTMLElement, item: FigureItem, ctx: Context): Promise<Mounted> {
  const canvas = h("div", { class: "tfprof-canvas" });
  host.append(
    h(
      "figure",
      { class: "tfprof-figure", "aria-label": item.alt },
      item.title ? h("h4", { class: "tfprof-heading" }, item.title) : null,
      canvas,
      item.note ? h("figcaption", {}, item.note) : null,
    ),
  );
  return embedFigure(canvas, item.figure, ctx);
}
