/**
 * A figure's JSON on its way to BokehJS: the house style goes in, mathematics stays out.
 *
 * Views say nothing about fonts, text colours, axes and backgrounds: they are set here, where the theme is
 * known, on every attribute that the figure leaves open. White lines (the gaps between a pie's wedges or a
 * bar's parts) take the background's colour. What was coloured is returned, so that a switch of the theme
 * can colour it again.
 */

import { plainText } from "./plain_text";
import type { FigureJson } from "./types";

export type Token = "paper" | "text" | "muted" | "line" | "grid";
export type Palette = Record<Token, string>;

/** The same values as in style.css; a canvas can't read those. */
export const PALETTES: { light: Palette; dark: Palette } = {
  light: { paper: "#ffffff", text: "#1f2328", muted: "#59636e", line: "#c4cad1", grid: "#e7eaee" },
  dark: { paper: "#16191d", text: "#e6e9ed", muted: "#a3acb6", line: "#4a525b", grid: "#2b3138" },
};

export interface Coloured {
  id: string;
  attribute: string;
  token: Token;
}

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

/** By the end of a model's name: colours, then fixed values. */
const STYLE: [RegExp, Record<string, Token>, Record<string, unknown>][] = [
  [
    /^(figure|Figure|Plot|GridPlot)$/,
    { background_fill_color: "paper", border_fill_color: "paper" },
    { outline_line_color: null },
  ],
  [
    /Axis$/,
    {
      axis_label_text_color: "muted",
      major_label_text_color: "muted",
      axis_line_color: "line",
      major_tick_line_color: "line",
      minor_tick_line_color: "line",
      group_text_color: "muted",
      subgroup_text_color: "muted",
      separator_line_color: "line",
    },
    {
      axis_label_text_font: FONT,
      axis_label_text_font_style: "normal",
      axis_label_text_font_size: "12px",
      major_label_text_font: FONT,
      major_label_text_font_size: "11px",
      minor_tick_line_alpha: 0,
    },
  ],
  [/^Grid$/, { grid_line_color: "grid" }, {}],
  [/^Title$/, { text_color: "text" }, { text_font: FONT, text_font_size: "13px", text_font_style: "bold" }],
  [
    /^Legend$/,
    { label_text_color: "text", title_text_color: "text", background_fill_color: "paper", border_line_color: "grid", inactive_fill_color: "paper" },
    { label_text_font: FONT, label_text_font_size: "12px", title_text_font: FONT, title_text_font_style: "normal" },
  ],
  [/ColorBar$/, { background_fill_color: "paper", major_label_text_color: "muted", title_text_color: "muted" }, { major_label_text_font: FONT, title_text_font: FONT }],
  [/^(Text|Label|LabelSet)$/, { text_color: "text" }, { text_font: FONT }],
];

/** Axes and grids exist under these names only where their model has the property. */
const ONLY: Record<string, RegExp> = {
  group_text_color: /^CategoricalAxis$/,
  subgroup_text_color: /^CategoricalAxis$/,
  separator_line_color: /^CategoricalAxis$/,
};

/** Values of a glyph's or annotation's data property are wrapped: `{"type": "value", "value": …}`. */
const DATA_MODELS = /^(Text|LabelSet)$/;

const WHITE = /^(white|#fff|#ffffff)$/i;

/** The style of hover boxes. Bokeh hangs them on the page's body, where the report's own sheet doesn't reach. */
export function tooltipSheet({ paper, text, muted, line }: Palette): string {
  return `
:host { --tooltip-color: ${paper}; --tooltip-text: ${text}; --tooltip-border: ${line}; --tooltip-arrow-color: ${line};
  --tooltip-arrow-inner-color: ${paper}; opacity: 1; padding: 6px 8px; border-radius: 4px; box-shadow: 0 2px 8px rgb(0 0 0 / 0.25);
  max-width: min(36rem, 90vw); overflow-wrap: anywhere; font-family: ${FONT}; font-variant-numeric: tabular-nums; }
.bk-tooltip-row-label { color: ${muted}; white-space: nowrap; }`;
}

interface ObjectRep {
  type: "object";
  name: string;
  id: string;
  attributes?: Record<string, any>;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isObjectRep = (value: Record<string, unknown>): value is Record<string, unknown> & ObjectRep =>
  value["type"] === "object" && typeof value["name"] === "string" && typeof value["id"] === "string";

function style(rep: ObjectRep, palette: Palette, coloured: Coloured[]): void {
  const attributes = (rep.attributes ??= {});
  for (const [names, colours, fixed] of STYLE) {
    if (!names.test(rep.name)) continue;
    const wrap = (value: unknown) => (DATA_MODELS.test(rep.name) ? { type: "value", value } : value);
    for (const [attribute, token] of Object.entries(colours)) {
      if (attribute in attributes || ONLY[attribute]?.test(rep.name) === false) continue;
      attributes[attribute] = wrap(palette[token]);
      coloured.push({ id: rep.id, attribute, token });
    }
    for (const [attribute, value] of Object.entries(fixed)) {
      if (!(attribute in attributes)) attributes[attribute] = wrap(value);
    }
  }
  const line = attributes["line_color"];
  if (typeof line?.value === "string" && WHITE.test(line.value)) {
    attributes["line_color"] = { ...line, value: palette.paper };
    coloured.push({ id: rep.id, attribute: "line_color", token: "paper" });
  }
}

/** A copy of `figure` for `dark` or light pages, and what in it depends on that. */
export function prepareFigure(figure: FigureJson, dark: boolean): { figure: FigureJson; coloured: Coloured[] } {
  const palette = PALETTES[dark ? "dark" : "light"];
  const coloured: Coloured[] = [];
  const copy = (value: unknown, key: string): unknown => {
    // `code` is JavaScript (CustomJS and its kin), whose `\(` is not a text.
    if (typeof value === "string") return key === "code" ? value : plainText(value);
    if (Array.isArray(value)) return value.map((each) => copy(each, key));
    if (!isRecord(value)) return value;
    const result: Record<string, unknown> = {};
    for (const [name, each] of Object.entries(value)) result[name] = copy(each, name);
    if (isObjectRep(result)) style(result, palette, coloured);
    return result;
  };
  const result = copy(figure, "") as FigureJson;
  for (const root of result.doc.roots) {
    // The window decides the width, and the figure its height.
    const attributes = (root as ObjectRep).attributes;
    if (attributes !== undefined) attributes["sizing_mode"] ??= "stretch_width";
  }
  return { figure: result, coloured };
}

/** The height that a figure will take, so that its room is kept while it loads; 0 if it doesn't say. */
export function figureHeight(root: unknown): number {
  if (!isRecord(root)) return 0;
  const attributes = (root["attributes"] ?? {}) as Record<string, unknown>;
  if (typeof attributes["height"] === "number") return attributes["height"];
  const heights = ((attributes["children"] ?? []) as unknown[]).map(figureHeight);
  if (heights.length === 0) return 0;
  return root["name"] === "Column" ? heights.reduce((a, b) => a + b, 0) : Math.max(...heights);
}
