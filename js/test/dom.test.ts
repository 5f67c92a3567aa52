import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { onPage } from "../src/dom";

let resized: (() => void)[] = [];
let stopped = 0;

beforeEach(() => {
  resized = [];
  stopped = 0;
  vi.stubGlobal(
    "ResizeObserver",
    class {
      constructor(private readonly callback: () => void) {}
      observe() {
        resized.push(this.callback);
      }
      disconnect() {
        stopped += 1;
      }
    },
  );
});
afterEach(() => vi.unstubAllGlobals());

test("an element on the page is ready at once", async () => {
  const element = document.body.appendChild(document.createElement("div"));
  await onPage(element, new AbortController().signal);
  expect(resized).toHaveLength(0);
});

test("one that is put there later is waited for", async () => {
  const element = document.createElement("div");
  let ready = false;
  const waiting = onPage(element, new AbortController().signal).then(() => (ready = true));
  resized[0]!(); // some front ends measure it before
  await Promise.resolve();
  expect(ready).toBe(false);
  document.body.append(element);
  resized[0]!();
  await waiting;
  expect(stopped).toBe(1);
});

test("one that is taken away for good is not watched any more", () => {
  const controller = new AbortController();
  void onPage(document.createElement("div"), controller.signal);
  controller.abort();
  expect(stopped).toBe(1);
});
