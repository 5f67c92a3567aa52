/** The whole trace in one strip, and on it the window that can be moved and drawn anew. */

import { h } from "../dom";
import { draw, LEVELS, makeDrawn, type Row } from "./lod";
import { mix, parseColor, shadeShare, type Rgb } from "./paint";

const HEIGHT_PX = 26;
const REACH_PX = 5;

/** What a drag from a place does. */
type Mode = "move" | "left" | "right" | "new";
const CURSORS: Record<Mode, string> = { move: "grab", left: "ew-resize", right: "ew-resize", new: "crosshair" };

export class Minimap {
  readonly element = h("div", { class: "tl-mini", "aria-hidden": "true" });
  private readonly canvas = h("canvas");
  private readonly before = h("div", { class: "tl-shade" });
  private readonly after = h("div", { class: "tl-shade" });
  private readonly window = h("div", { class: "tl-window" });
  private shown: [number, number] = [0, 1];

  /** `move`: shows that window, as shares of the whole. */
  constructor(
    private readonly whole: () => [number, number],
    move: (start: number, end: number) => void,
    signal: AbortSignal,
  ) {
    this.element.append(this.canvas, this.before, this.after, this.window);
    this.before.style.left = "0";
    this.after.style.right = "0";
    let grip: { x: number; start: number; end: number; mode: Mode } | null = null;
    const at = (event: PointerEvent) => {
      const box = this.element.getBoundingClientRect();
      return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    };
    const modeAt = (x: number): Mode => {
      const [start, end] = this.shown;
      const reach = REACH_PX / this.element.clientWidth;
      return Math.abs(x - start) < reach ? "left" : Math.abs(x - end) < reach ? "right" : x > start && x < end && end - start < 0.98 ? "move" : "new";
    };
    const time = (share: number) => {
      const [start, end] = this.whole();
      return start + share * (end - start);
    };
    this.element.addEventListener(
      "pointerdown",
      (event) => {
        if (event.button !== 0) return;
        const x = at(event);
        const [start, end] = this.shown;
        grip = { x, start, end, mode: modeAt(x) };
        this.element.setPointerCapture(event.pointerId);
      },
      { signal },
    );
    this.element.addEventListener(
      "pointermove",
      (event) => {
        const x = at(event);
        if (grip === null) {
          this.element.style.cursor = CURSORS[modeAt(x)];
          return;
        }
        if (grip.mode === "move") move(time(grip.start + x - grip.x), time(grip.end + x - grip.x));
        else {
          const other = grip.mode === "left" ? grip.end : grip.mode === "right" ? grip.start : grip.x;
          if (x !== other) move(time(Math.min(x, other)), time(Math.max(x, other)));
        }
      },
      { signal },
    );
    const drop = (event: PointerEvent) => {
      if (grip !== null && grip.mode === "new" && at(event) === grip.x) {
        // A click: the window goes there.
        const half = (grip.end - grip.start) / 2;
        move(time(grip.x - half), time(grip.x + half));
      }
      grip = null;
    };
    this.element.addEventListener("pointerup", drop, { signal });
    this.element.addEventListener("pointercancel", () => (grip = null), { signal });
  }

  paint(rows: readonly Row[], colors: readonly string[], paper: Rgb): void {
    const width = Math.round(this.element.clientWidth);
    const context = this.canvas.getContext("2d");
    if (width === 0 || context === null) return;
    this.canvas.width = width;
    this.canvas.height = HEIGHT_PX;
    if (rows.length === 0) return;
    const [start, end] = this.whole();
    const perPx = (end - start) / width;
    const known = new Map<string, number>();
    const look = Uint16Array.from(colors, (color) => {
      const index = known.get(color) ?? known.size;
      known.set(color, index);
      return index;
    });
    const rgb = [...known.keys()].map(parseColor);
    // A pixel for each: a trace has more of them than a canvas takes quickly as rectangles.
    const image = context.createImageData(width, HEIGHT_PX);
    const pixels = image.data;
    const each = HEIGHT_PX / rows.length;
    const drawn = makeDrawn();
    draw(rows, { start, end, perPx }, 1, Infinity, look, null, drawn);
    for (const part of [drawn.singles, drawn.bars]) {
      for (let i = 0; i < part.n; i++) {
        const row = part.row[i]!;
        const share = 0.4 + 0.6 * shadeShare(part.level[i]!, LEVELS);
        const [r, g, b] = mix(rgb[look[rows[row]!.store.name[part.event[i]!]!]!]!, paper, share);
        const x0 = Math.max(0, Math.round((part.left[i]! - start) / perPx));
        const x1 = Math.min(width, Math.max(x0 + 1, Math.round((part.right[i]! - start) / perPx)));
        const y0 = Math.floor(row * each);
        const y1 = Math.max(y0 + 1, Math.floor((row + 0.85) * each));
        for (let y = y0; y < y1; y++) {
          for (let x = x0, at = (y * width + x0) * 4; x < x1; x++, at += 4) {
            pixels[at] = r;
            pixels[at + 1] = g;
            pixels[at + 2] = b;
            pixels[at + 3] = 255;
          }
        }
      }
    }
    context.putImageData(image, 0, 0);
  }

  show(start: number, end: number): void {
    const [low, high] = this.whole();
    const left = Math.min(1, Math.max(0, (start - low) / (high - low)));
    const right = Math.min(1, Math.max(left, (end - low) / (high - low)));
    this.shown = [left, right];
    this.before.style.width = `${left * 100}%`;
    this.after.style.width = `${(1 - right) * 100}%`;
    this.window.style.left = `${left * 100}%`;
    this.window.style.width = `${(right - left) * 100}%`;
  }
}
