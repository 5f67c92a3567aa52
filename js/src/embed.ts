/** Puts a Bokeh figure on the page in the report's look, and keeps that look when the theme switches. */

import { figureHeight, PALETTES, prepareFigure, tooltipSheet } from "./figure_json";
import type { Context, FigureJson, Mounted } from "./types";

export interface Embedded extends Mounted {
  /** The Bokeh document and the root's view. */
  document: any;
  view: any;
}

/**
 * BokehJS clears its canvases half a pixel off: what was drawn at the left and upper edge before a figure had its final layout
 * would stay there, as a faint line of pieces.
 */
function clearWholly(views: any): void {
  for (const { primary, overlays } of views.query?.((each: any) => each.model.type === "Canvas") ?? []) {
    for (const layer of [primary, overlays]) {
      if (!(layer?.ctx instanceof CanvasRenderingContext2D)) continue;
      const { ctx } = layer;
      layer.clear = () => {
        ctx.save();
        ctx.resetTransform();
        ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
        ctx.restore();
      };
    }
  }
}

export async function embedFigure(host: HTMLElement, json: FigureJson, ctx: Context): Promise<Embedded> {
  host.style.minHeight = `${figureHeight(json.doc.roots[0])}px`;
  const Bokeh = await ctx.bokeh();
  if (json.version !== Bokeh.version) {
    throw new Error(`The figure was made with Bokeh ${json.version}, and the page has BokehJS ${Bokeh.version}.`);
  }
  const { figure, coloured } = prepareFigure(json, ctx.theme.dark);
  const views = await Bokeh.embed.embed_item(figure, host);
  const view = views.roots[0];
  const document = view.model.document;
  clearWholly(views);
  const styleTooltips = (dark: boolean) => {
    const stylesheets = [tooltipSheet(PALETTES[dark ? "dark" : "light"])];
    // A hover tool makes its boxes' models itself, so they are not in the figure's JSON.
    for (const hover of views.query?.((each: any) => each.model.type === "HoverTool") ?? []) {
      for (const tooltip of hover.ttmodels?.values() ?? []) tooltip.setv({ stylesheets });
    }
  };
  styleTooltips(ctx.theme.dark);
  const stop = ctx.theme.onChange((dark) => {
    styleTooltips(dark);
    const palette = PALETTES[dark ? "dark" : "light"];
    const byModel = new Map<string, Record<string, unknown>>();
    for (const { id, attribute, token } of coloured) {
      const model = document.get_model_by_id(id);
      if (!model) continue;
      const values = byModel.get(id) ?? {};
      // A data property (a glyph's line colour) is read and set in its wrapped form.
      const wrapped = typeof model[attribute] === "object" && model[attribute] !== null;
      values[attribute] = wrapped ? { value: palette[token] } : palette[token];
      byModel.set(id, values);
    }
    for (const [id, values] of byModel) document.get_model_by_id(id).setv(values);
  });
  return {
    document,
    view,
    resize() {}, // Bokeh watches its element's size itself
    dispose() {
      stop();
      views.clear();
      document.clear();
      const at = Bokeh.documents.indexOf(document);
      if (at >= 0) Bokeh.documents.splice(at, 1);
    },
  };
}
