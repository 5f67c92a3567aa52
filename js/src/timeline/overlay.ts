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

  constructor() {
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

  showRanges(ranges: readonly MarkedRange[]): void {
    while (this.ranges.children.length > ranges.length) this.ranges.lastElementChild!.remove();
    while (this.ranges.children.length < ranges.length) this.ranges.append(h("div", { class: "tl-range" }, h("span")));
    ranges.forEach((range, i) => {
      const element = this.ranges.children[i] as HTMLElement;
      element.style.left = `${range.left}px`;
      element.style.width = `${Math.max(1, range.right - range.left)}px`;
      const label = element.firstElementChild as HTMLElement;
      if (label.textContent !== range.label) label.textContent = range.label;
      label.style.top = `${2 + i * 18}px`;
    });
  }
}
