/** The contracts between the report's parts: see docs/architecture.md, "views" and "display". */

import type { Table } from "@uwdata/flechette";

export type { Table };

/** What `render` needs of a model: anywidget's, or the `LocalModel` of a page without a kernel. */
export interface Model {
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, callback: () => void): void;
  off(event: string, callback?: (() => void) | null): void;
}

export interface Theme {
  readonly dark: boolean;
  /** Calls back after every switch between light and dark, until the returned function is called. */
  onChange(callback: (dark: boolean) => void): () => void;
}

/** What an item may use of the report that it is in. */
export interface Context {
  /** Unpacks a table of the payload; each is unpacked once. Fails with a message for people if there is none. */
  table(name: string): Promise<Table>;
  /** BokehJS in the version that made the figures (not necessarily `window.Bokeh`). */
  bokeh(): Promise<any>;
  readonly theme: Theme;
  readonly model: Model;
  /** Aborted when the report is taken off the page: listeners and observers end with it. */
  readonly signal: AbortSignal;
}

/** A mounted item. */
export interface Mounted {
  dispose(): void;
  /** The item is shown again, or its room changed without its element changing. */
  resize(): void;
}

/** A Bokeh `json_item`. */
export interface FigureJson {
  target_id?: string | null;
  root_id: string;
  doc: { version: string; title: string; roots: unknown[] };
  version: string;
}

export interface TextItem {
  kind: "text";
  text: string;
  level: "plain" | "info" | "warning" | "error";
}

export interface Fact {
  label: string;
  value: string | number | boolean | null;
  hint?: string;
  /** The colour of its part in the chart beside it, and whether that part is hatched: facts as a legend. */
  color?: string;
  hatch?: boolean;
}

export interface FactsItem {
  kind: "facts";
  title?: string;
  rows: Fact[];
}

export interface FigureItem {
  kind: "figure";
  title?: string;
  figure: FigureJson;
  /** What the figure says, for those who cannot see it. */
  alt: string;
  note?: string;
}

export interface Column {
  field: string;
  title: string;
  kind: "text" | "number" | "percent" | "bool";
  /** Digits after the point. */
  digits?: number;
  unit?: string;
  /** Pixels, whatever the window's width. */
  width?: number;
  /** Pixels, and more where there is room. */
  min_width?: number;
  hint?: string;
}

export interface Sort {
  field: string;
  dir: "asc" | "desc";
}

export interface Where {
  field: string;
  equals?: string | number | boolean | null;
  not_equals?: string | number | boolean | null;
}

export interface TableItem {
  kind: "table";
  title?: string;
  /** Name of the payload's table. */
  table: string;
  columns: Column[];
  sort?: Sort[];
  /** File name of the download. */
  csv?: string;
  /** Show a filter under each header. */
  filter?: boolean;
  where?: Where;
}

export interface RowItem {
  kind: "row";
  children: Item[];
  weights?: number[];
}

export interface SwitchItem {
  kind: "switch";
  id: string;
  label: string;
  options: { value: string; label: string }[];
  value: string;
  cases: Record<string, Item[]>;
}

export interface TimelineSection {
  title: string;
  collapsed: boolean;
}

export interface TimelineItem {
  kind: "timeline";
  title?: string;
  /** Names of the payload's tables. */
  events: string;
  /** Thread-pool bookkeeping, unpacked when it is asked for. */
  hidden?: string | null;
  hidden_count?: number;
  tracks: string;
  names: string;
  /** The Bokeh figure that the timeline fills. */
  figure: FigureJson;
  /** Picoseconds in a tick of the events' `start` and `duration`. */
  unit_ps: number;
  /** Length of the whole trace. */
  span_ps: number;
  sections: TimelineSection[];
  /** Planes with nothing to draw. */
  empty_planes?: string[];
  /** What the timeline shows, in words. */
  alt?: string;
}

export type Item = TextItem | FactsItem | FigureItem | TableItem | RowItem | SwitchItem | TimelineItem;

export interface Tab {
  id: string;
  title: string;
  items: Item[];
}

export interface Spec {
  format: number;
  id: string;
  version: string;
  bokeh_version: string;
  head: { title?: string; facts: Fact[] };
  tabs: Tab[];
  notes: string[];
}
