/** Clicks on charts. */

/** A mouse that moved further between press and release has dragged the chart. */
const CLICK_PX = 4;

/** Where on the x axis of one of the plots a click lies; `null` beside their frames. */
export function placeAt(event: MouseEvent, plots: readonly any[]): number | null {
  for (const plot of plots) {
    const around = plot.el.getBoundingClientRect();
    const { left, right, top, bottom } = plot.frame.bbox;
    const [x, y] = [event.clientX - around.left, event.clientY - around.top];
    const { start, end } = plot.model.x_range;
    if (x >= left && x <= right && y >= top && y <= bottom) return start + ((x - left) / (right - left)) * (end - start);
  }
  return null;
}

/** Calls back with the place on the x axis of each click that is no drag. */
export function onChartClick(canvas: HTMLElement, plots: readonly any[], take: (x: number) => void): void {
  let pressed = { x: 0, y: 0 };
  canvas.addEventListener("pointerdown", ({ clientX, clientY }) => (pressed = { x: clientX, y: clientY }), { capture: true });
  canvas.addEventListener("click", (event) => {
    if (Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) > CLICK_PX) return;
    const x = placeAt(event, plots);
    if (x !== null) take(x);
  });
}
