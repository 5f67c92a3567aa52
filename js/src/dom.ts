/** Makes elements; text goes in as text nodes only, so that a profile's names stay text. */

import { splitMiddle } from "./format";

type Props = Record<string, string | number | boolean | null | undefined>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: (Node | string | null | undefined)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || (value === false && !name.startsWith("aria-"))) continue;
    element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined));
  return element;
}

/** A name that gives way in its middle where there is no room for it, and then at its start; told in full on hovering. */
export function shortenedName(text: string, from?: number): HTMLElement {
  const [start, end] = splitMiddle(text, from);
  // What is cut off at its start is written from right to left, but for the name itself.
  const tail = end ? h("span", { class: "tfprof-name-end" }, h("bdi", { dir: "ltr" }, end)) : null;
  return h("span", { class: "tfprof-name", title: text.length > 12 ? text : null }, h("span", {}, start), tail);
}

/** Resolves once the element is on the page with a size: what measures and draws itself can't before. */
export function onPage(element: HTMLElement, signal: AbortSignal): Promise<void> {
  if (element.isConnected) return Promise.resolve();
  return new Promise((resolve) => {
    const observer = new ResizeObserver(() => {
      if (!element.isConnected) return;
      observer.disconnect();
      resolve();
    });
    observer.observe(element);
    signal.addEventListener("abort", () => observer.disconnect());
  });
}

let lastId = 0;
/** An id that is free on the page, for `aria-controls` and the like. */
export function uniqueId(stem: string): string {
  lastId += 1;
  return `tfprof-${stem}-${lastId}-${Math.random().toString(36).slice(2, 8)}`;
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
