/**
 * The Bokeh figure: what there is to draw goes in once a frame, in pixels of the figure's frame.
 *
 * Ten thousand boxes in every frame of the screen is more than BokehJS takes as it is: it copies and indexes them for hit
 * tests that nobody makes here, builds a style string for each, and paints a frame or two later. So the two glyphs paint
 * straight from the frame (`hurry`), when it is made; the data sources follow when the picture stands still. With
 * a BokehJS whose insides differ, everything still works by the ordinary way, only slower.
 */

import { embedFigure, type Embedded } from "../embed";
import { FONT } from "../figure_json";
import type { Context, FigureJson } from "../types";

export interface Frame {
  /**
   * Pixels from the frame's top left corner; `color` has 4 bytes a box. Boxes of one colour that follow each
   * other are painted at once.
   */
  boxes: { left: Float32Array; right: Float32Array; top: Float32Array; bottom: Float32Array; color: Uint8Array };
  words: { x: number[]; y: number[]; text: string[]; color: string[] };
  ticks: { at: number[]; labels: string[] };
}

export interface Room {
  left: number;
  top: number;
  width: number;
  height: number;
}

const FONT_OF_WORDS = `11px ${FONT}`;

type Ctx = CanvasRenderingContext2D;

export class View {
  private labels = new Map<number, string>();
  private readonly plot: any;
  private readonly model: any;
  private readonly boxes: any;
  private readonly words: any;
  private readonly ticker: any;
  private readonly renderers: any[];
  private readonly fast: boolean;
  private readonly ndarray: (buffer: ArrayBufferLike, options: { dtype: string; shape: number[] }) => unknown;
  private frame: Frame | null = null;

  private constructor(
    private readonly embedded: Embedded,
    Bokeh: any,
  ) {
    const { document, view } = embedded;
    this.plot = view;
    this.model = view.model;
    this.boxes = document.get_model_by_name("boxes");
    this.words = document.get_model_by_name("words");
    this.ticker = document.get_model_by_name("ticker");
    this.ndarray = Bokeh.require("core/util/ndarray").ndarray;
    // Labels by place, not by value: CustomJSTickFormatter would need `eval`, which some pages forbid.
    const formatter = document.get_model_by_name("formatter");
    formatter.doFormat = (at: number[]) => at.map((x) => this.labels.get(x) ?? "");
    this.renderers = this.model.renderers.map((renderer: any) => view.views?.find_one?.(renderer));
    this.fast = this.hurry();
  }

  /** Makes it with a height, in pixels. */
  static async make(host: HTMLElement, figure: FigureJson, height: number, ctx: Context): Promise<View> {
    const Bokeh = await ctx.bokeh();
    const [root] = figure.doc.roots as { attributes: object }[];
    const roots = [{ ...root, attributes: { ...root!.attributes, height } }];
    return new View(await embedFigure(host, { ...figure, doc: { ...figure.doc, roots } }, ctx), Bokeh);
  }

  /** Where the frame (the plot without its axis) lies in the host. */
  get room(): Room {
    const { left, top, width, height } = this.plot.frame.bbox;
    return { left, top, width, height };
  }

  /** The figure's view, to be saved as a picture. */
  get figure(): any {
    return this.plot;
  }

  set height(height: number) {
    if (this.model.height !== height) this.model.height = height;
  }

  /** Calls back when the frame's size has changed. */
  onResize(callback: () => void): void {
    const { inner_width, inner_height } = this.model.properties;
    this.plot.connect(inner_width.change, callback);
    this.plot.connect(inner_height.change, callback);
  }

  show(frame: Frame): void {
    const { width, height } = this.room;
    const { x_range, y_range } = this.model;
    if (x_range.end !== width) x_range.setv({ start: 0, end: width });
    if (y_range.start !== height) y_range.setv({ start: height, end: 0 });
    this.frame = frame;
    this.labels = new Map(frame.ticks.at.map((x, i) => [x, frame.ticks.labels[i]!]));
    this.ticker.setv({ ticks: frame.ticks.at }, { silent: this.fast });
    if (this.fast) {
      this.plot.invalidate_painters();
      this.plot.paint();
    } else this.fill(frame, false);
  }

  /** Puts into the data sources what is on the screen; done once it stands still. */
  keep(): void {
    if (this.fast && this.frame !== null) this.fill(this.frame, true);
  }

  private fill(frame: Frame, silent: boolean): void {
    const { color, ...sides } = frame.boxes;
    const count = color.length / 4;
    const data = { ...sides, color: this.ndarray(color.buffer, { dtype: "uint8", shape: [count, 4] }) };
    this.boxes.setv({ data }, { silent });
    this.words.setv({ data: frame.words }, { silent });
  }

  /** Whether the glyphs could be taught to paint faster. */
  private hurry(): boolean {
    const [boxes, words] = this.renderers.map((renderer) => renderer?.glyph);
    const known =
      boxes !== undefined &&
      words !== undefined &&
      typeof this.plot.paint === "function" &&
      typeof this.plot.invalidate_painters === "function" &&
      [boxes, words].every((glyph) => typeof glyph._paint === "function");
    if (!known) return false;
    // Asked for with every label, and each time the page's styles are computed anew.
    Object.defineProperty(this.plot, "base_font_size", { value: this.plot.base_font_size });
    boxes._paint = (ctx: Ctx) => this.paintBoxes(ctx);
    words._paint = (ctx: Ctx) => this.paintWords(ctx);
    return true;
  }

  private paintBoxes(ctx: Ctx): void {
    if (this.frame === null) return;
    const { boxes } = this.frame;
    const { color } = boxes;
    const { left, top } = this.room;
    // Bokeh moves its canvas by half a pixel, for crisp lines; crisp areas need whole ones.
    const [x, y] = [left - 0.5, top - 0.5];
    let before = -1;
    for (let i = 0; i < boxes.left.length; i++) {
      const rgb = (color[4 * i]! << 16) | (color[4 * i + 1]! << 8) | color[4 * i + 2]!;
      if (rgb !== before) {
        ctx.fillStyle = `#${rgb.toString(16).padStart(6, "0")}`;
        before = rgb;
      }
      const [x0, y0] = [boxes.left[i]!, boxes.top[i]!];
      ctx.fillRect(x + x0, y + y0, boxes.right[i]! - x0, boxes.bottom[i]! - y0);
    }
  }

  private paintWords(ctx: Ctx): void {
    if (this.frame === null) return;
    const { x, y, text, color } = this.frame.words;
    const { left, top } = this.room;
    ctx.font = FONT_OF_WORDS;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    let before = "";
    for (let i = 0; i < text.length; i++) {
      if (color[i] !== before) ctx.fillStyle = before = color[i]!;
      ctx.fillText(text[i]!, left + x[i]!, top + y[i]!);
    }
  }

  dispose(): void {
    this.embedded.dispose();
  }
}
