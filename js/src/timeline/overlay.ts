/** What lies over the canvas: outlines of events, the box being dragged, marked ranges. Positions are pixels of the frame. */

import { h } from "../dom";

export interface Rect {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const SVG = "http://www.w3.org/2000/svg";

export interface MarkedRange {
  left: number;
  right: number;
  label: string;
  hint: string;
}

const LABEL_ROW_PX = 18;
/** Of a label, about. */
const CHARACTER_PX = 6.6;
const LABEL_PADDING_PX = 30;

/**
 * Where the labels of ranges stand, from left and top: in the middle of what is in view of each, inside of the frame, in the first
 * row where it covers no other's. Null for ranges out of view.
 */
export function placeLabels(ranges: readonly MarkedRange[], width: number, height: number): ({ x: number; y: number } | null)[] {
  const rows = Math.max(1, Math.floor((height - 2) / LABEL_ROW_PX));
  const taken: [number, number][][] = [];
  return ranges.map(({ left, right, label }) => {
    if (right <= 0 || left >= width) return null;
    const half = (label.length * CHARACTER_PX + LABEL_PADDING_PX) / 2;
    const x = Math.max(half, Math.min((Math.max(0, left) + Math.min(width, right)) / 2, width - half));
    let row = 0;
    while (row < rows - 1 && taken[row]?.some(([from, to]) => x - half < to && x + half > from)) row++;
    (taken[row] ??= []).push([x - half, x + half]);
    return { x, y: 2 + row * LABEL_ROW_PX };
  });
}

/** An arrow from one place to another. */
export interface Bend {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

/** A curve and its tip. */
function arrowPath({ x0, y0, x1, y1 }: Bend): string {
  const bend = Math.min(80, Math.max(14, Math.abs(x1 - x0) / 2));
  const [a, b, c, d] = [x0, y0, x1, y1].map((value) => Math.round(value * 10) / 10) as [number, number, number, number];
  const [left, right] = [x0 + bend, x1 - bend].map(Math.round) as [number, number];
  return `M${a} ${b}C${left} ${b} ${right} ${d} ${c} ${d}M${c - 5} ${d - 3}L${c} ${d}L${c - 5} ${d + 3}`;
}

export class Overlay {
  readonly element = h("div", { class: "tl-over", "data-tool": "pan" });
  private readonly hover = h("div", { class: "tl-outline", hidden: true });
  private readonly selected = h("div", { class: "tl-outline tl-selected", hidden: true });
  private readonly drag = h("div", { class: "tl-drag", hidden: true });
  private readonly ranges = h("div", {});

  /** One path for many arrows: an element each would take longer than all the rest of a frame. */
  private readonly arrows: readonly [SVGPathElement, SVGPathElement] = [document.createElementNS(SVG, "path"), document.createElementNS(SVG, "path")];
  private drawn: [string, string] = ["", ""];

  /** `remove`: takes a range away. */
  constructor(remove: (range: number) => void) {
    for (const event of ["pointerdown", "dblclick"]) this.ranges.addEventListener(event, (press) => press.stopPropagation());
    this.ranges.addEventListener("click", (event) => {
      const range = (event.target as Element).closest("button")?.closest(".tl-range");
      if (range) remove([...this.ranges.children].indexOf(range));
    });
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "tl-arrows");
    this.arrows[1].setAttribute("class", "tl-strong");
    svg.append(...this.arrows);
    this.element.append(this.ranges, svg as unknown as HTMLElement, this.hover, this.selected, this.drag);
  }

  private put(element: HTMLElement, rect: Rect | null): void {
    if (element.hidden && rect === null) return;
    element.hidden = rect === null;
    if (rect === null) return;
    element.style.left = `${rect.left}px`;
    element.style.top = `${rect.top}px`;
    element.style.width = `${Math.max(0, rect.right - rect.left)}px`;
    element.style.height = `${Math.max(0, rect.bottom - rect.top)}px`;
  }

  /** Arrows from left to right, those of the selected event more strongly. */
  showArrows(arrows: readonly Bend[], strong: readonly Bend[]): void {
    const [d, strongD] = [arrows.map(arrowPath).join(""), strong.map(arrowPath).join("")];
    if (d !== this.drawn[0]) this.arrows[0].setAttribute("d", d);
    if (strongD !== this.drawn[1]) this.arrows[1].setAttribute("d", strongD);
    this.drawn = [d, strongD];
  }

  showHover(rect: Rect | null): void {
    this.put(this.hover, rect);
  }

  showSelected(rect: Rect | null): void {
    this.put(this.selected, rect);
  }

  showDrag(rect: Rect | null): void {
    this.put(this.drag, rect);
  }

  showRanges(ranges: readonly MarkedRange[], width: number, height: number): void {
    while (this.ranges.children.length > ranges.length) this.ranges.lastElementChild!.remove();
    while (this.ranges.children.length < ranges.length) {
      this.ranges.append(h("div", { class: "tl-range" }, h("div", { class: "tl-length" }, h("span"), h("button", { type: "button" }, "×"))));
    }
    const places = placeLabels(ranges, width, height);
    ranges.forEach(({ left, right, label, hint }, i) => {
      const element = this.ranges.children[i] as HTMLElement;
      const place = places[i]!;
      element.hidden = place === null;
      if (place === null) return;
      element.style.left = `${left}px`;
      element.style.width = `${Math.max(1, right - left)}px`;
      const tag = element.firstElementChild as HTMLElement;
      tag.style.left = `${place.x - left}px`;
      tag.style.top = `${place.y}px`;
      const said = `${label}: ${hint}`;
      if (tag.title === said) return;
      tag.title = said;
      tag.firstElementChild!.textContent = label;
      const button = tag.lastElementChild as HTMLElement;
      button.title = "Remove this mark";
      button.setAttribute("aria-label", `Remove the mark of ${said}`);
    });
  }
}
