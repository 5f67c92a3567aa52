/**
 * Charts as pictures, in the page's theme: an SVG of what BokehJS paints, with the title, the legend or the names of tracks,
 * which the page has beside it. A PNG is that SVG, painted.
 */

import { errorMessage, h } from "./dom";
import { FONT, PALETTES } from "./figure_json";
import type { Context, Spec } from "./types";

const NS = "http://www.w3.org/2000/svg";
const [MARGIN, TITLE, LINE] = [12, 26, 18];
/** Pixels of a PNG for each of the page's. */
const PNG_SCALE = 2;

/** A text of the page, from the top left corner of the chart; cut off after `width`. */
export interface Label {
  x: number;
  y: number;
  width: number;
  text: string;
  bold?: boolean;
}

/** A line of the legend. */
export interface Entry {
  color: string;
  label: string;
  value: string;
}

/** A marked part of the chart and its text, whose middle is given. */
export interface Tint {
  x: number;
  y: number;
  width: number;
  height: number;
  color: string;
  text: string;
  textX: number;
  textY: number;
}

export interface Picture {
  title: string;
  /** What the file is called after, if that is less than the title. */
  file?: string;
  /** View of the figure. */
  view: any;
  /** What is to the left of the figure, and its width. */
  labels?: readonly Label[];
  left?: number;
  tints?: readonly Tint[];
  legend?: readonly Entry[];
}

function element(name: string, attributes: Record<string, string | number>, text?: string): SVGElement {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  // What XML can't hold is left out.
  if (text !== undefined) made.textContent = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
  return made;
}

/** The picture as SVG. */
export async function pictureSvg({ title, view, labels = [], left = 0, tints = [], legend = [] }: Picture, dark: boolean): Promise<SVGSVGElement> {
  const palette = PALETTES[dark ? "dark" : "light"];
  const painted: Blob = await view.export("svg", false).to_blob();
  const figure = new DOMParser().parseFromString(await painted.text(), "image/svg+xml").documentElement;
  const [width, height] = ["width", "height"].map((name) => parseFloat(figure.getAttribute(name) ?? "0")) as [number, number];
  const top = MARGIN + (title ? TITLE : 0);
  const [wide, high] = [MARGIN * 2 + left + width, top + height + (legend.length > 0 ? LINE * legend.length + MARGIN : 0) + MARGIN];
  const svg = element("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, "font-family": FONT, "font-size": 12, fill: palette.text }) as SVGSVGElement;
  svg.append(element("rect", { width: wide, height: high, fill: palette.paper }));
  if (title) svg.append(element("text", { x: MARGIN, y: MARGIN + 12, "font-size": 14, "font-weight": 600 }, title));
  for (const label of labels) {
    // An inner svg cuts off what is too long.
    const box = element("svg", { x: MARGIN + label.x, y: top + label.y - 10, width: Math.max(0, label.width), height: 20 });
    box.append(element("text", { x: 0, y: 14, "font-weight": label.bold ? 600 : 400 }, label.text));
    svg.append(box);
  }
  figure.setAttribute("x", String(MARGIN + left));
  figure.setAttribute("y", String(top));
  svg.append(document.importNode(figure, true));
  for (const { x, y, width, height, color } of tints) {
    svg.append(element("rect", { x: MARGIN + x, y: top + y, width, height, fill: color, "fill-opacity": 0.09, stroke: color }));
  }
  for (const { textX, textY, color, text } of tints) {
    const [middle, wide] = [MARGIN + textX, text.length * 7.4 + 8];
    svg.append(element("rect", { x: middle - wide / 2, y: top + textY - 8.5, width: wide, height: 17, rx: 3, fill: color }));
    svg.append(element("text", { x: middle, y: top + textY + 4, "text-anchor": "middle", "font-weight": 600, fill: palette.paper }, text));
  }
  legend.forEach(({ color, label, value }, i) => {
    const y = top + height + MARGIN + i * LINE;
    svg.append(element("rect", { x: MARGIN, y, width: 10, height: 10, fill: color }), element("text", { x: MARGIN + 18, y: y + 9 }, value ? `${label}: ${value}` : label));
  });
  return svg;
}

async function painted(svg: SVGSVGElement, source: Blob): Promise<Blob> {
  const url = URL.createObjectURL(source);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(Number(svg.getAttribute("width")) * PNG_SCALE);
    canvas.height = Math.round(Number(svg.getAttribute("height")) * PNG_SCALE);
    const paint = canvas.getContext("2d")!;
    paint.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((blob) => (blob === null ? reject(new Error("the picture is too large")) : resolve(blob)), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** A file's name of a report's and a chart's title. */
export function fileName(report: string | undefined, chart: string, extension: string): string {
  const words = [report ?? "", chart].map((text) => text.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "")).filter(Boolean);
  return `${words.join("_").slice(0, 120) || "chart"}.${extension}`;
}

/** The legend of the chart in `host`: that of the row that both are in. */
export function legendOf(host: HTMLElement): Entry[] {
  const lines = host.closest(".tfprof-row")?.querySelectorAll<HTMLElement>(".tfprof-legend > .tfprof-fact") ?? [];
  return [...lines].flatMap((line) => {
    const swatch = line.querySelector<HTMLElement>(".tfprof-swatch");
    if (swatch === null) return [];
    const name = line.querySelector<HTMLElement>(".tfprof-name");
    return [{ color: swatch.style.backgroundColor, label: name?.title || (name ?? line).textContent || "", value: line.querySelector("dd")?.textContent ?? "" }];
  });
}

/** Two buttons that save a picture. */
export function saveBar(ctx: Context, picture: () => Picture): HTMLElement {
  const said = h("span", { role: "status" });
  const button = (kind: "PNG" | "SVG") => {
    const { title } = picture();
    const made = h("button", { type: "button", "aria-label": `Save ${title || "the chart"} as ${kind}`, title: `Save as ${kind}` }, kind);
    let saving = false;
    // Not disabled meanwhile: it would lose the focus, and a timeline its keys.
    made.addEventListener("click", async () => {
      if (saving) return;
      saving = true;
      said.textContent = "";
      try {
        const wanted = picture();
        const svg = await pictureSvg(wanted, ctx.theme.dark);
        const source = new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml;charset=utf-8" });
        const url = URL.createObjectURL(kind === "SVG" ? source : await painted(svg, source));
        const spec = ctx.model.get("spec") as Spec | undefined;
        h("a", { href: url, download: fileName(spec?.head?.title, wanted.file ?? wanted.title, kind.toLowerCase()) }).click();
        setTimeout(() => URL.revokeObjectURL(url), 10_000);
      } catch (error) {
        console.error("tfprof_widgets:", error);
        said.textContent = `No picture: ${errorMessage(error)}`;
      } finally {
        saving = false;
      }
    });
    return made;
  };
  return h("div", { class: "tfprof-save", role: "group", "aria-label": "Save the chart" }, h("span", { "aria-hidden": "true" }, "Save as "), button("PNG"), button("SVG"), said);
}
