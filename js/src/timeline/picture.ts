/** The timeline as it is on the screen, with the names of its tracks. */

import type { Label, Picture, Tint } from "../save_picture";

/** `root` is the timeline's element, `figure` the element of the Bokeh figure, `view` that figure's view. */
export function timelinePicture(title: string, root: HTMLElement, figure: HTMLElement, view: any): Picture {
  const origin = figure.getBoundingClientRect();
  const gutter = root.querySelector<HTMLElement>(".tl-gutter")?.getBoundingClientRect();
  const left = gutter === undefined ? 0 : Math.max(0, origin.left - gutter.left);
  const labels: Label[] = [];
  for (const name of root.querySelectorAll<HTMLElement>(".tl-gutter .tl-name")) {
    const box = name.getBoundingClientRect();
    const middle = (box.top + box.bottom) / 2 - origin.top;
    if (box.height === 0 || middle < 0 || middle > origin.height) continue;
    const text = name.querySelector(".tl-text")?.textContent ?? "";
    const tail = name.querySelector(".tl-tail")?.textContent ?? "";
    const x = Math.max(0, box.left - origin.left + left);
    labels.push({ x, y: middle, width: left - x - 4, text: text + tail, bold: name.closest(".tl-section") !== null });
  }
  const frame = root.querySelector<HTMLElement>(".tl-over")?.getBoundingClientRect();
  const tints: Tint[] = [];
  for (const range of root.querySelectorAll<HTMLElement>(".tl-range:not([hidden])")) {
    const [box, tag] = [range, range.querySelector<HTMLElement>(".tl-length")!].map((element) => element.getBoundingClientRect()) as [DOMRect, DOMRect];
    if (frame === undefined) break;
    const [from, to] = [Math.max(box.left, frame.left), Math.min(box.right, frame.right)];
    tints.push({
      x: from - origin.left + left,
      y: frame.top - origin.top,
      width: Math.max(1, to - from),
      height: frame.height,
      color: getComputedStyle(range).borderLeftColor,
      text: range.querySelector("span")?.textContent ?? "",
      textX: (tag.left + tag.right) / 2 - origin.left + left,
      textY: (tag.top + tag.bottom) / 2 - origin.top,
    });
  }
  return { title, view, labels, left, tints };
}
