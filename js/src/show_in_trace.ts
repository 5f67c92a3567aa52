/** From anywhere in the report to the trace timeline. */

import type { Model, Side, Spec } from "./types";

const TAB = "trace";

export function hasTrace(model: Model): boolean {
  return (model.get("spec") as Spec | undefined)?.tabs.some((tab) => tab.id === TAB) ?? false;
}

/** An event of which little is known but when it begins; a trait of the page's model that stays on the page. */
export interface Spot {
  start_ms: number;
  kind: "step" | "memory";
  /** A step's: `train 5`. */
  name?: string;
  /** A step's, and how exact its start is. */
  device?: string;
  within_ms?: number;
}

/** Where the highlighted events are, and what launched them; a trait of the page's model that stays on the page. */
export interface Within {
  side?: Side | undefined;
  op?: string | undefined;
}

export interface Target {
  highlight?: string | undefined;
  within?: Within | undefined;
  range_ms?: [number, number] | undefined;
  spot?: Spot | undefined;
  host?: string | undefined;
}

/** Opens the timeline, at a time or where it was, and highlights what has a name (an event's, or an op's), or selects an event. */
export function showInTrace(model: Model, { highlight, within, range_ms, spot, host }: Target): void {
  // First, so that the timeline has its size when it is told the rest.
  model.set("tab", TAB);
  if (host !== undefined) model.set("host", host);
  if (range_ms !== undefined) model.set("range_ms", range_ms);
  if (highlight !== undefined || spot !== undefined) {
    // The same again is a new wish, and takes the place of the one before.
    model.set("highlight", null);
    model.set("spot", null);
    model.set("within", within ?? null);
    if (highlight !== undefined) model.set("highlight", highlight);
    if (spot !== undefined) model.set("spot", spot);
  }
  model.save_changes();
}

/** Opens a tool: a tab's id, for the trace with a place in it (`trace?highlight=NAME`, `trace?range_ms=FROM,TO`). */
export function goTo(model: Model, target: string): void {
  const [tab, query] = target.split("?", 2) as [string, string | undefined];
  if (tab === TAB && query !== undefined) {
    const place = new URLSearchParams(query);
    const range = place.get("range_ms")?.split(",").map(Number);
    showInTrace(model, {
      highlight: place.get("highlight") ?? undefined,
      range_ms: range?.length === 2 && range.every(Number.isFinite) ? (range as [number, number]) : undefined,
    });
    return;
  }
  model.set("tab", tab);
  model.save_changes();
}

/** Where a report begins above the window, goes to its top: its tools have different heights. */
export function scrollToReport(element: Element): void {
  const report = element.closest(".tfprof-report");
  if (report !== null && report.getBoundingClientRect().top < 0) report.scrollIntoView();
}
