/** The Bokeh figure: what there is to draw goes in once a frame, in pixels of the figure's frame. */

import { embedFigure, type Embedded } from "../embed";
import type { Context, FigureJson } from "../types";

export interface Frame {
  /** Pixels from the frame's top left corner; `color` has 4 bytes a box. */
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

export class View {
  private labels = new Map<number, string>();
  private readonly model: any;
  private readonly boxes: any;
  private readonly words: any;
  private readonly ticker: any;
  private readonly ndarray: (buffer: ArrayBufferLike, options: { dtype: string; shape: number[] }) => unknown;

  private constructor(
    private readonly embedded: Embedded,
    Bokeh: any,
  ) {
    const { document } = embedded;
    this.model = embedded.view.model;
    this.boxes = document.get_model_by_name("boxes");
    this.words = document.get_model_by_name("words");
    this.ticker = document.get_model_by_name("ticker");
    this.ndarray = Bokeh.require("core/util/ndarray").ndarray;
    // Labels by place, not by value: CustomJSTickFormatter would need `eval`, which some pages forbid.
    const formatter = document.get_model_by_name("formatter");
    formatter.doFormat = (at: number[]) => at.map((x) => this.labels.get(x) ?? "");
  }

  static async make(host: HTMLElement, figure: FigureJson, ctx: Context): Promise<View> {
    const Bokeh = await ctx.bokeh();
    return new View(await embedFigure(host, figure, ctx), Bokeh);
  }

  /** Where the frame (the plot without its axis) lies in the host. */
  get room(): Room {
    const { left, top, width, height } = this.embedded.view.frame.bbox;
    return { left, top, width, height };
  }

  set height(height: number) {
    if (this.model.height !== height) this.model.height = height;
  }

  /** Calls back when the frame's size has changed. */
  onResize(callback: () => void): void {
    const { inner_width, inner_height } = this.model.properties;
    this.embedded.view.connect(inner_width.change, callback);
    this.embedded.view.connect(inner_height.change, callback);
  }

  onPainted(callback: () => void): void {
    this.embedded.view.connect(this.embedded.view.repainted, callback);
  }

  show(frame: Frame): void {
    const { width, height } = this.room;
    const { x_range, y_range } = this.model;
    if (x_range.end !== width) x_range.setv({ start: 0, end: width });
    if (y_range.start !== height) y_range.setv({ start: height, end: 0 });
    this.labels = new Map(frame.ticks.at.map((x, i) => [x, frame.ticks.labels[i]!]));
    this.ticker.ticks = frame.ticks.at;
    const { color, ...sides } = frame.boxes;
    const count = color.length / 4;
    this.boxes.data = { ...sides, color: this.ndarray(color.buffer, { dtype: "uint8", shape: [count, 4] }) };
    this.words.data = frame.words;
  }

  dispose(): void {
    this.embedded.dispose();
  }
}
