/** From the events in the window to what is drawn: boxes with their colours, and the names in them. */

import { columnsOf, type Counter } from "./counters";
import type { Names } from "./data";
import type { Labels } from "./labels";
import { bandsBetween, onScreen, type Band, type LaneBox, type Layout } from "./layout";
import { Detail, LEVELS, makeDrawn, type Boxes, type Marks, type Window } from "./lod";
import { mix, parseColor, shadeShare, textOn, type Rgb } from "./paint";
import type { Store } from "./data";
import type { Frame } from "./view";

/** Rectangles a frame, of software-rendered canvas: about 30 ms. */
export const BUDGET = 10_000;
/** Names a frame; the widest boxes come first. */
const MOST_WORDS = 700;
const NARROWEST_WORD_PX = 26;
const PADDING_PX = 4;

interface Theme {
  paper: Rgb;
  header: Rgb;
  line: Rgb;
}

const THEMES: { light: Theme; dark: Theme } = {
  light: { paper: [255, 255, 255], header: [238, 241, 244], line: [228, 231, 235] },
  dark: { paper: [22, 25, 29], header: [35, 40, 46], line: [43, 49, 56] },
};
const COUNTER_COLOR: Rgb = [74, 134, 176];
/** What a search or a selected name leaves of the others. */
const DIMMED = 0.22;

export interface View {
  /** Ticks. */
  start: number;
  perPx: number;
  /** Pixels. */
  scroll: number;
  width: number;
  height: number;
}

export interface Shown {
  frame: Frame;
  bands: Band[];
  boxes: LaneBox[];
  /** Events in the window on the visible tracks, and how many of them have a rectangle of their own. */
  total: number;
  alone: number;
  /** Whether bars of a page kept small make the total uncertain. */
  isAbout: boolean;
  rectangles: number;
  minPx: number;
}

/** Whole pixels are crisp, and painted twice as fast. A hairline tells an event from the next one. */
export function wholePixels(left: number, right: number): [number, number] {
  const x0 = Math.round(left);
  const x1 = Math.max(x0 + 1, Math.round(right));
  return [x0, x1 - x0 > 3 ? x1 - 1 : x1];
}

export class Scene {
  readonly drawn = makeDrawn();
  private readonly detail = new Detail(BUDGET);
  /** A number for each name that stands for its colour. */
  private readonly look: Uint16Array;
  private readonly colors: Rgb[];
  private readonly ink: string[];
  /** Bytes of each look, shade and emphasis. */
  private table = new Uint8Array(0);
  private theme: Theme = THEMES.light;
  /** Where in the table each box's colour is. */
  private readonly cells = new Uint32Array(2 * BUDGET);

  constructor(
    private readonly names: Names,
    private readonly labels: Labels,
    private readonly counters: ReadonlyMap<number, Counter> = new Map(),
  ) {
    const known = new Map<string, number>();
    this.look = Uint16Array.from(names.color, (color) => {
      const at = known.get(color) ?? known.size;
      known.set(color, at);
      return at;
    });
    this.colors = [...known.keys()].map(parseColor);
    this.ink = this.colors.map(textOn);
    this.setTheme(false);
  }

  setTheme(dark: boolean): void {
    this.theme = THEMES[dark ? "dark" : "light"];
    const { paper } = this.theme;
    this.table = new Uint8Array(this.colors.length * 2 * (LEVELS + 1) * 4);
    this.colors.forEach((color, look) => {
      for (let bright = 0; bright < 2; bright++) {
        for (let level = 0; level <= LEVELS; level++) {
          const share = shadeShare(level, LEVELS) * (bright ? 1 : DIMMED);
          this.table.set([...mix(color, paper, share), 255], this.cell(look, bright, level));
        }
      }
    });
  }

  private cell(look: number, bright: number, level: number): number {
    return ((look * 2 + bright) * (LEVELS + 1) + level) * 4;
  }

  /** Boxes in the order of their colours (a counting sort), so that each colour is set once a frame. */
  private byCell(n: number): Uint32Array {
    const { cells } = this;
    const next = new Uint32Array(this.table.length / 4 + 1);
    for (let i = 0; i < n; i++) next[cells[i]! / 4 + 1]!++;
    for (let i = 1; i < next.length; i++) next[i]! += next[i - 1]!;
    const order = new Uint32Array(n);
    for (let i = 0; i < n; i++) order[next[cells[i]! / 4]!++] = i;
    return order;
  }

  private colorOf(part: Boxes, i: number, boxes: readonly LaneBox[], marks: ReadonlyMap<Store, Marks> | null): number {
    const name = boxes[part.row[i]!]!.store.name[part.event[i]!]!;
    return this.cell(this.look[name]!, marks === null || part.marked[i] === 1 ? 1 : 0, part.level[i]!);
  }

  private inkDimmed(): string {
    return this.theme === THEMES.dark ? "#7d8791" : "#8a939c";
  }

  make(layout: Layout, view: View, marks: ReadonlyMap<Store, Marks> | null): Shown {
    const { pinned, pinnedHeight } = layout;
    const [top0, bottom0] = [view.scroll + pinnedHeight, view.scroll + view.height];
    const scrolled = bandsBetween(layout, top0, bottom0);
    const bands = [...pinned, ...scrolled];
    const boxes = bands.flatMap((band) => band.boxes).filter((box) => box.pinned || (box.bottom > top0 && box.top < bottom0));
    const window: Window = { start: view.start, end: view.start + view.width * view.perPx, perPx: view.perPx };
    this.detail.draw(boxes, window, this.look, marks, this.drawn);
    const { singles, bars, total, alone, isAbout } = this.drawn;

    const back = [...this.background(scrolled, view), ...this.areas(scrolled, view)];
    // Those pinned cover what scrolls away below them.
    const cover = pinnedHeight > 0 ? [[0, pinnedHeight, this.theme.paper] as const, ...this.background(pinned, view), ...this.areas(pinned, view)] : [];
    const count = back.length + cover.length + singles.n + bars.n;
    const left = new Float32Array(count);
    const right = new Float32Array(count);
    const top = new Float32Array(count);
    const bottom = new Float32Array(count);
    const color = new Uint8Array(count * 4);
    let n = 0;
    const fill = (areas: readonly (readonly [number, number, Rgb, number?, number?])[]) => {
      for (const [y0, y1, rgb, x0 = 0, x1 = view.width] of areas) {
        left[n] = x0;
        right[n] = x1;
        top[n] = y0;
        bottom[n] = y1;
        color.set([...rgb, 255], n * 4);
        n++;
      }
    };
    const { table } = this;
    const { start, perPx, width, scroll } = view;
    const { cells } = this;
    const place = (part: Boxes, order: Uint32Array, pinnedOnes: boolean) => {
      for (const i of order) {
        const box = boxes[part.row[i]!]!;
        if (box.pinned !== pinnedOnes) continue;
        let x0 = Math.max(-2, (part.left[i]! - start) / perPx);
        let x1 = Math.min(width + 2, (part.right[i]! - start) / perPx);
        if (part.level[i] === 0) {
          [x0, x1] = wholePixels(x0, x1);
        } else {
          x0 = Math.round(x0 * 64) / 64;
          x1 = Math.round(x1 * 64) / 64;
        }
        left[n] = x0;
        right[n] = x1;
        top[n] = onScreen(box, scroll);
        bottom[n] = top[n]! + box.bottom - box.top;
        const at = this.colorOf(part, i, boxes, marks);
        color[n * 4] = table[at]!;
        color[n * 4 + 1] = table[at + 1]!;
        color[n * 4 + 2] = table[at + 2]!;
        color[n * 4 + 3] = 255;
        n++;
      }
    };
    const order = [singles, bars].map((part) => {
      for (let i = 0; i < part.n; i++) cells[i] = this.colorOf(part, i, boxes, marks);
      return this.byCell(part.n);
    });
    fill(back);
    place(singles, order[0]!, false);
    place(bars, order[1]!, false);
    fill(cover);
    place(singles, order[0]!, true);
    place(bars, order[1]!, true);
    return {
      frame: { boxes: { left, right, top, bottom, color }, words: this.words(boxes, view, pinnedHeight, marks !== null), ticks: { at: [], labels: [] } },
      bands,
      boxes,
      total,
      alone,
      isAbout,
      rectangles: singles.n + bars.n,
      minPx: this.detail.minPx,
    };
  }

  /** Headers' fills and the lines between tracks: top, bottom, colour. */
  private background(bands: Band[], view: View): [number, number, Rgb][] {
    const { header, line } = this.theme;
    return bands.flatMap((band): [number, number, Rgb][] => {
      const y = onScreen(band, view.scroll);
      if (band.kind === "section") return [[y, y + band.height - 1, header]];
      return [[y + band.height - 1, y + band.height, line]];
    });
  }

  /** Counters: up to the least of each pixel in full, from there to the most in a lighter shade. */
  private areas(bands: Band[], view: View): [number, number, Rgb, number, number][] {
    const rows = bands.flatMap((band) => {
      const y = onScreen(band, view.scroll);
      if (band.kind === "track") return [{ track: band.track, bottom: y + band.height - 2, high: band.height - 6 }];
      // A folded section shows all of its own, one upon the other.
      const { counters = [] } = band;
      const each = (band.height - 6) / counters.length;
      return counters.map((track, i) => ({ track, bottom: Math.round(y + 3 + (i + 1) * each), high: Math.max(1, Math.floor(each)) }));
    });
    return rows.flatMap(({ track, bottom, high }) => {
      const counter = this.counters.get(track);
      if (counter === undefined || counter.most <= 0) return [];
      const tall = (value: number) => (value > 0 ? Math.max(1, Math.round((value / counter.most) * high)) : 0);
      const [full, light] = [mix(COUNTER_COLOR, this.theme.paper, 0.8), mix(COUNTER_COLOR, this.theme.paper, 0.4)];
      return columnsOf(counter, view.start, view.perPx, view.width).flatMap(({ left, right, least, most }) => {
        const [low, top] = [bottom - tall(least), bottom - tall(most)];
        const parts: [number, number, Rgb, number, number][] = [];
        if (low < bottom) parts.push([low, bottom, full, left, right]);
        if (top < low) parts.push([top, low, light, left, right]);
        return parts;
      });
    });
  }

  private words(boxes: LaneBox[], view: View, pinnedHeight: number, marking: boolean): Frame["words"] {
    const { singles } = this.drawn;
    const { start, perPx, width, scroll } = view;
    const room = (i: number) => Math.min(width, (singles.right[i]! - start) / perPx) - Math.max(0, (singles.left[i]! - start) / perPx);
    let chosen: number[] = [];
    for (let i = 0; i < singles.n; i++) {
      if (!boxes[singles.row[i]!]!.flat && room(i) >= NARROWEST_WORD_PX) chosen.push(i);
    }
    if (chosen.length > MOST_WORDS) chosen = chosen.sort((a, b) => room(b) - room(a)).slice(0, MOST_WORDS);
    const words: Frame["words"] = { x: [], y: [], text: [], color: [] };
    for (const i of chosen) {
      const box = boxes[singles.row[i]!]!;
      const y = onScreen(box, scroll) + (box.bottom - box.top) / 2 + 0.5;
      // Below what is pinned a name would show through.
      if (!box.pinned && y < pinnedHeight + 7) continue;
      const name = box.store.name[singles.event[i]!]!;
      const text = this.labels.fit(this.names.name[name]!, this.names.short[name]!, room(i) - 2 * PADDING_PX);
      if (text === "") continue;
      words.x.push(Math.max(0, (singles.left[i]! - start) / perPx) + PADDING_PX);
      words.y.push(y);
      words.text.push(text);
      words.color.push(marking && singles.marked[i] !== 1 ? this.inkDimmed() : this.ink[this.look[name]!]!);
    }
    return words;
  }
}
