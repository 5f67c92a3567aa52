/** Names cut to the width of their boxes. */

import { plainText } from "../plain_text";

/** Line breaks and other controls would break a box; BokehJS's marks of mathematics are defused. */
function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  return plainText(text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " "));
}

export class Labels {
  private readonly context: CanvasRenderingContext2D;
  private readonly widths = new Map<string, number>();
  private readonly cuts = new Map<string, string>();

  constructor(font: string, context: CanvasRenderingContext2D | null = document.createElement("canvas").getContext("2d")) {
    if (context === null) throw new Error("This browser has no canvas.");
    this.context = context;
    this.context.font = font;
  }

  width(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      width = this.context.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }

  /** The name in full if it fits, else its short form, else as much as fits; empty if that is nothing. */
  fit(name: string, short: string, room: number): string {
    // Widths in steps of 4 pixels, so that most cuts are known from earlier frames.
    const step = Math.floor(room / 4);
    const key = `${step}\u0000${name}`;
    let text = this.cuts.get(key);
    if (text === undefined) {
      text = this.cut(oneLine(name), oneLine(short), step * 4);
      if (this.cuts.size > 20000) this.cuts.clear();
      this.cuts.set(key, text);
    }
    return text;
  }

  private cut(name: string, short: string, room: number): string {
    if (this.width(name) <= room) return name;
    if (short !== "" && this.width(short) <= room) return short;
    const source = short !== "" && short.length < name.length ? short : name;
    let low = 0;
    let high = source.length;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.context.measureText(source.slice(0, middle) + "…").width <= room) low = middle;
      else high = middle - 1;
    }
    // Not between the halves of a surrogate pair, and no stub of a letter or two.
    if (low > 0 && /[\ud800-\udbff]/.test(source[low - 1]!)) low--;
    return low >= 3 ? source.slice(0, low).trimEnd() + "…" : "";
  }
}
