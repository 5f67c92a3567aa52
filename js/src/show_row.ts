/** From the trace to the row of a table elsewhere in the report. */

import type { Context, Model } from "./types";

/** The row that is wanted: a trait of the page's model that stays on the page. */
const TRAIT = "row";

export interface RowWish {
  /** The tab that it is in. */
  tab: string;
  /** Values of the row; a table looks at those that it has columns for. */
  fields: Record<string, string>;
  /** Switches of the tab with such an option (or one of which this is the beginning, before brackets) take it. */
  choose?: string[];
  /** Charts with a time to choose take this one. */
  time_ms?: number;
}

/** Opens the tab, and lets its tables go to the row. */
export function showRow(model: Model, wish: RowWish): void {
  // The same row again is a new wish.
  model.set(TRAIT, null);
  model.set("tab", wish.tab);
  model.set(TRAIT, wish);
  model.save_changes();
}

/** The row that is wanted in the tab around an element. */
export function wishFor(element: Element, model: Model): RowWish | null {
  const wish = model.get(TRAIT) as RowWish | null | undefined;
  const tab = element.closest<HTMLElement>("[data-tab]")?.dataset["tab"];
  return wish && wish.tab === tab ? wish : null;
}

/** Calls back with each wish for the tab around an element, the one that there is already at once; returns how to stop. */
export function onRowWish(element: Element, { model }: Pick<Context, "model">, take: (wish: RowWish) => void): () => void {
  const follow = () => {
    const wish = wishFor(element, model);
    if (wish !== null) take(wish);
  };
  model.on(`change:${TRAIT}`, follow);
  follow();
  return () => model.off(`change:${TRAIT}`, follow);
}

/** Whether an option is the one wanted: `GPU_0_bfc` is `GPU_0_bfc (12 MiB)`. */
export function isChosen(label: string, wish: RowWish): boolean {
  return (wish.choose ?? []).some((wanted) => label === wanted || label.startsWith(`${wanted} (`));
}

/** Whether a row is the one wanted, as far as it has the fields. */
export function isWanted(row: Record<string, unknown>, wish: RowWish): boolean {
  const known = Object.keys(wish.fields).filter((field) => field in row);
  return known.length > 0 && known.every((field) => row[field] === wish.fields[field]);
}
