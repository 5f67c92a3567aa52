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

export class Overlay {
  readonly element = h("div", { class: "tl-over", "data-tool": "pan" });
  private readonly hover = h("div", { class: "tl-outline", hidden: true });
  private readonly selected = h("div", { class: "tl-outline tl-selected", hidden: true });
  private readonly drag = h("div", { class: "tl-drag", hidden: true });
  private readonly ranges = h("div", {});

  private readonly arrows = document.createElementNS(SVG, "svg");

  constructor() {
    this.arrows.setAttribute("class", "tl-arrows");
    this.element.append(this.ranges, this.arrows as unknown as HTMLElement, this.hover, this.selected, this.drag);
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

  /** Arrows from left to right, of those marked more strongly. */
  showArrows(arrows: readonly { x0: number; y0: number; x1: number; y1: number; strong: boolean }[]): void {
    const paths = arrows.map(({ x0, y0, x1, y1, strong }) => {
      const path = document.createElementNS(SVG, "path");
      const bend = Math.min(80, Math.max(14, Math.abs(x1 - x0) / 2));
      const tip = `M${x1 - 5} ${y1 - 3}L${x1} ${y1}L${x1 - 5} ${y1 + 3}`;
      path.setAttribute("d", `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}${tip}`);
      if (strong) path.setAttribute("class", "tl-strong");
      return path;
    });
    if (paths.length > 0 || this.arrows.childElementCount > 0) this.arrows.replaceChildren(...paths);
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
