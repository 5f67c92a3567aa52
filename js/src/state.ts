/**
 * What the reader chose in a report (which case, which order of rows), kept on the page by the report's id: a report
 * that is shown again, in whatever output or view, looks as it was left. The kernel's model keeps its traits itself.
 */

import { LINKED } from "./local_model";
import type { Model } from "./types";

export type State = Map<string, any>;

declare global {
  var __tfprof_states: Map<string, State> | undefined;
}

export function stateOf(id: string): State {
  const all = (globalThis.__tfprof_states ??= new Map());
  let state = all.get(id);
  if (state === undefined) all.set(id, (state = new Map()));
  return state;
}

/** The traits as they were left, by name; `null` for those that never had a value. */
export function keptTraits(state: State): Record<string, unknown> {
  return Object.fromEntries(LINKED.map((name) => [name, state.get(`trait:${name}`) ?? null]));
}

/** Keeps the model's traits from now on. */
export function keepTraits(state: State, model: Model): void {
  for (const name of LINKED) model.on(`change:${name}`, () => state.set(`trait:${name}`, model.get(name)));
}
