/** Pointer, wheel and keys. They act on the timeline only; the page keeps what is not meant for it. */

import type { Rect } from "./overlay";
import { TOOLS, type Timeline } from "./timeline";

/** Pixels that a press may move and still be a click. */
const CLICK_PX = 4;

type DragMode = "pan" | "box" | "zoom" | "timing";

interface Drag {
  id: number;
  mode: DragMode;
  x: number;
  y: number;
  lastX: number;
  lastY: number;
  moved: boolean;
  /** Ticks, of a timing mark. */
  from: number;
}

export function listenToPointer(timeline: Timeline, over: HTMLElement, gutter: HTMLElement, signal: AbortSignal): void {
  let drag: Drag | null = null;
  const fingers = new Map<number, { x: number; y: number }>();

  const at = (event: MouseEvent) => {
    const box = over.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, clientX: event.clientX, clientY: event.clientY };
  };

  const dragged = (now: Drag, x: number, y: number): Rect => {
    const whole = now.mode !== "box";
    const edge = (value: number, most: number) => Math.min(Math.max(0, value), most);
    return {
      left: edge(Math.min(now.x, x), timeline.width),
      right: edge(Math.max(now.x, x), timeline.width),
      top: whole ? 0 : edge(Math.min(now.y, y), timeline.height),
      bottom: whole ? timeline.height : edge(Math.max(now.y, y), timeline.height),
    };
  };

  const stop = () => {
    drag = null;
    over.classList.remove("tl-dragging");
    timeline.overlay.showDrag(null);
  };

  /** After a pinch, the finger that stays pans on. */
  const lift = (id: number) => {
    if (!fingers.delete(id) || fingers.size !== 1) return;
    const [[other, { x, y }]] = [...fingers] as [[number, { x: number; y: number }]];
    drag = { id: other, mode: "pan", x, y, lastX: x, lastY: y, moved: true, from: 0 };
  };

  timeline.root.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !drag?.moved) return;
      stop();
      timeline.invalidate();
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    { signal, capture: true },
  );

  over.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0 && event.button !== 1) return;
      event.preventDefault();
      timeline.focus();
      const { x, y } = at(event);
      over.setPointerCapture(event.pointerId);
      if (event.pointerType === "touch") {
        fingers.set(event.pointerId, { x, y });
        if (fingers.size > 1) return stop();
      }
      const byTool = { select: "box", pan: "pan", zoom: "zoom", timing: "timing" } as const;
      const mode: DragMode = event.button === 1 ? "pan" : event.shiftKey ? "box" : byTool[timeline.tool];
      drag = { id: event.pointerId, mode, x, y, lastX: x, lastY: y, moved: false, from: timeline.pointing.snap(x, y) };
    },
    { signal },
  );

  over.addEventListener(
    "pointermove",
    (event) => {
      const here = at(event);
      const { x, y } = here;
      if (fingers.size === 2 && fingers.has(event.pointerId)) {
        const [a, b] = [...fingers.values()] as [{ x: number; y: number }, { x: number; y: number }];
        const before = Math.max(8, Math.hypot(a.x - b.x, a.y - b.y));
        const middle = (a.x + b.x) / 2;
        fingers.set(event.pointerId, { x, y });
        const [c, d] = [...fingers.values()] as [{ x: number; y: number }, { x: number; y: number }];
        timeline.zoomAt(before / Math.max(8, Math.hypot(c.x - d.x, c.y - d.y)), middle);
        timeline.panPx(middle - (c.x + d.x) / 2, 0);
        return;
      }
      if (drag === null || drag.id !== event.pointerId) {
        // A mark's label has words of its own.
        if (event.pointerType !== "touch") timeline.pointing.hoverAt((event.target as Element).closest(".tl-length") ? null : here);
        return;
      }
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < CLICK_PX) return;
      if (!drag.moved) {
        drag.moved = true;
        over.classList.add("tl-dragging");
        timeline.pointing.hideTip();
      }
      if (drag.mode === "pan") {
        timeline.panPx(drag.lastX - x, drag.lastY - y);
        drag.lastX = x;
        drag.lastY = y;
      } else if (drag.mode === "timing") {
        const to = timeline.pointing.snap(x, y);
        const [left, right] = [timeline.xOf(Math.min(drag.from, to)), timeline.xOf(Math.max(drag.from, to))];
        timeline.overlay.showDrag({ left, right, top: 0, bottom: timeline.height });
      } else timeline.overlay.showDrag(dragged(drag, x, y));
    },
    { signal },
  );

  over.addEventListener(
    "pointerup",
    (event) => {
      lift(event.pointerId);
      if (drag === null || drag.id !== event.pointerId) return;
      const { x, y } = at(event);
      const done = drag;
      stop();
      if (!done.moved) {
        timeline.select(timeline.pointing.spotAt(x, y));
        return;
      }
      const rect = dragged(done, x, y);
      if (done.mode === "box") timeline.selectBox(rect);
      else if (done.mode === "zoom") timeline.go(timeline.timeAt(rect.left), timeline.timeAt(rect.right));
      else if (done.mode === "timing") {
        const to = timeline.pointing.snap(x, y);
        timeline.addRange(Math.min(done.from, to), Math.max(done.from, to));
      }
    },
    { signal },
  );
  over.addEventListener(
    "pointercancel",
    (event) => {
      stop();
      lift(event.pointerId);
    },
    { signal },
  );
  over.addEventListener("pointerleave", () => timeline.pointing.hideTip(), { signal });
  over.addEventListener(
    "dblclick",
    (event) => {
      const { x, y } = at(event);
      const spot = timeline.pointing.spotAt(x, y);
      if (spot === null) return;
      timeline.select(spot);
      timeline.fit();
    },
    { signal },
  );

  // The page scrolls under the wheel until the timeline has been clicked; Ctrl (and so a pinch) always zooms.
  over.addEventListener(
    "wheel",
    (event) => {
      const zooms = event.ctrlKey || event.metaKey;
      if (!zooms && !timeline.active) return;
      const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
      const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
      const { x } = at(event);
      event.preventDefault();
      event.stopPropagation();
      if (event.altKey) timeline.scrollTo(timeline.scroll + dy);
      else if (event.shiftKey && !zooms) timeline.panPx(dx === 0 ? dy : dx, 0);
      else if (!zooms && Math.abs(dx) > Math.abs(dy)) timeline.panPx(dx, 0);
      // A pinch comes in small steps.
      else timeline.zoomAt(Math.exp(Math.min(Math.max(dy, -150), 150) * (event.ctrlKey && Math.abs(dy) < 30 ? 0.012 : 0.0028)), x);
    },
    { signal, passive: false },
  );
  // A finger scrolls the tracks as far as they go; where they end, and with tools that only take a time, it scrolls the page.
  let fingerY = 0;
  for (const part of [over, gutter]) {
    const move = (event: TouchEvent) => {
      const by = fingerY - event.touches[0]!.clientY;
      fingerY -= by;
      const pans = part === gutter || drag?.mode === "pan";
      const takes = event.touches.length > 1 || drag?.mode === "box" || (pans && timeline.canScroll(by));
      if (takes && event.cancelable) event.preventDefault();
      if (part === gutter && takes) timeline.scrollTo(timeline.scroll + by);
    };
    part.addEventListener(
      "touchstart",
      (event) => {
        fingerY = event.touches[0]!.clientY;
        // A label that leaves the frame is no part of the page any more, and only itself still hears of the finger on it.
        (event.target as HTMLElement).addEventListener("touchmove", move, { signal, passive: false });
      },
      { signal, passive: true },
    );
    part.addEventListener("touchmove", move, { signal, passive: false });
  }
  gutter.addEventListener(
    "wheel",
    (event) => {
      if (!timeline.scrolls || event.ctrlKey) return;
      const before = timeline.scroll;
      timeline.scrollTo(before + event.deltaY * (event.deltaMode === 1 ? 16 : 1));
      // At its end the page goes on.
      if (timeline.scroll !== before) event.preventDefault();
    },
    { signal, passive: false },
  );
}

export function listenToKeys(timeline: Timeline, signal: AbortSignal): void {
  timeline.root.addEventListener(
    "keydown",
    (event) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input:not([type=checkbox]), textarea, select")) return;
      // A button's own keys stay its own.
      if (target.tagName === "BUTTON" && (event.key === "Enter" || event.key === " ")) return;
      if (!act(timeline, event)) return;
      event.preventDefault();
      event.stopPropagation();
    },
    { signal },
  );
}

function act(timeline: Timeline, event: KeyboardEvent): boolean {
  const step = event.repeat ? 0.4 : 1;
  switch (event.key.length === 1 ? event.key.toLowerCase() : event.key) {
    case "w":
    case "+":
    case "=":
      timeline.zoomSmoothly(0.65 ** step);
      return true;
    case "s":
    case "-":
      timeline.zoomSmoothly(0.65 ** -step);
      return true;
    case "a":
      timeline.panSmoothly(-0.25 * step);
      return true;
    case "d":
      timeline.panSmoothly(0.25 * step);
      return true;
    case "f":
      timeline.fit();
      return true;
    case "z":
    case "0":
      timeline.all();
      return true;
    case "m":
      timeline.markSelected();
      return true;
    case "/":
      timeline.focusSearch();
      return true;
    case "?":
      timeline.toggleHelp();
      return true;
    case "1":
    case "2":
    case "3":
    case "4":
      timeline.setTool(TOOLS[Number(event.key) - 1]!);
      return true;
    case "ArrowLeft":
      timeline.neighbour("left");
      return true;
    case "ArrowRight":
      timeline.neighbour("right");
      return true;
    case "ArrowUp":
      timeline.neighbour("up");
      return true;
    case "ArrowDown":
      timeline.neighbour("down");
      return true;
    case "Home":
      timeline.goToEdge("start");
      return true;
    case "End":
      timeline.goToEdge("end");
      return true;
    case "PageUp":
      timeline.scrollTo(timeline.scroll - timeline.height * 0.8);
      return true;
    case "PageDown":
      timeline.scrollTo(timeline.scroll + timeline.height * 0.8);
      return true;
    case "Enter":
      timeline.searching.nextHit(event.shiftKey);
      return true;
    case "Escape":
      timeline.escape();
      return true;
    default:
      return false;
  }
}
