/** The contracts between the report's parts: see docs/architecture.md, "views" and "display". */

import type { Table } from "@uwdata/flechette";

export type { Table };

/** What `render` needs of a model: anywidget's, or the `LocalModel` of a page without a kernel. */
export interface Model {
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, callback: (...args: any[]) => void): void;
  off(event: string, callback?: ((...args: any[]) => void) | null): void;
  /** A kernel's model only: a message to Python, whose answers come as `msg:custom`. */
  send?(content: unknown): void;
  /** A page's model only: asks Python, which `linked` says is there (`change:linked` when that changes). Fails without it. */
  ask?(question: Record<string, unknown>): Promise<Answered>;
  readonly linked?: boolean;
}

/** What Python answers a page: see report/on_demand.py. Its tables are packed. */
export interface Answered {
  content: Record<string, any>;
  tables: Record<string, ArrayBufferView>;
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
  /** What the reader chose in items: see `state.ts`. */
  readonly state: Map<string, any>;
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
  /** A remark that takes a line of the legend for itself. */
  wide?: boolean;
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
  /** Its columns are steps, which a click shows in the trace. The rows of the data source `steps`: `x`, `width`, `step`, `start` and
   * `total` (ms), `host` if there are several. */
  trace?: { step_kind: string };
}

export type Side = "device" | "host";

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
  max_width?: number;
  hint?: string;
  /** Its texts are names that the trace can show: of events on the devices or on the host, of an op that another field names. */
  trace?: { side?: Side; side_field?: string; op_field?: string };
  /** A field whose short texts are shown in place of its own. */
  label?: string;
  /** A field that holds the digits of each row, in place of `digits`. */
  digits_field?: string;
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
  /** The model's trait that holds the label of the case shown; null where the case's value is empty. */
  trait?: "host";
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
  stats?: TimelineStats;
  counters?: TimelineCounters;
  flows?: TimelineFlows;
  /** The page has only a part: so many of the trace's events one by one, the others in bars; and whether their details and arrows. */
  part?: { alone: number; events: number; details: boolean; arrows: boolean };
}

/** Two traces of a comparison, one above the other; what moves one moves the other. */
export interface TimelinesItem {
  kind: "timelines";
  title?: string;
  traces: [TracesRun, TracesRun];
  /** Where they can be aligned: a time in each (and how long the steps there took, to be shown whole). */
  places: { label: string; at_ps: [number, number]; durations_ps: [number, number] | null }[];
  /** The place to begin with. */
  value: number;
  note?: string;
}

export interface TracesRun {
  label: string;
  color: string;
  timeline: TimelineItem;
}

/** A table of what leads to what: of each kind first the sources, then the targets. */
export interface TimelineFlows {
  table: string;
  parts: { kind: string; sources: number; targets: number }[];
}

/** A table of numbers over time, and the unit and scale of those of each track of the kind `counter`. */
export interface TimelineCounters {
  table: string;
  units: string[];
  scales: number[];
}

/** The model's `selection`: an event by its row in the timeline's table, or the lanes of some tracks in a time. */
export type TimelineSelection = { timeline: string; range_ms: [number, number] } & (
  | { track: number; row: number }
  | { lanes: { track: number; first: number; last: number }[] }
);

/** Tables of what the profiler noted with the events; unpacked when an event is first looked at. */
export interface TimelineStats {
  table: string;
  names: string;
  values: string;
  texts: string;
  /** How many are here, and in the file. */
  count: number;
  total: number;
  /** Names of those that are in the file only. */
  left_out: string[];
}

/** Where a link goes: `tool:` and a tab's id (see `goTo`), or an `https://` address. */
export interface Link {
  label: string;
  href: string;
}

/** A part of a sentence. */
export interface Prose {
  text: string;
  code?: boolean;
}

export interface Finding {
  title: string;
  /** What it may save, and how sure that is. */
  note: string;
  statement: string;
  change: Prose[];
  evidence: { label: string; value: string }[];
  links: Link[];
}

/** Begins a part of a tab. */
export interface SectionItem {
  kind: "section";
  title: string;
}

export interface ChangeItem {
  kind: "change";
  label: string;
  change: Prose[];
}

export interface FindingsItem {
  kind: "findings";
  title?: string;
  rows: Finding[];
}

export interface StageCell {
  text: string;
  /** Length of the bar behind the text, 0 to 1. */
  share?: number;
}

export interface Stage {
  name: string;
  depth: number;
  hint?: string;
  tags: string[];
  /** Why the stage stands out, if it does. */
  marked?: string;
  cells: StageCell[];
}

export interface StagesItem {
  kind: "stages";
  title?: string;
  /** Of the stage's name, then of its cells. */
  columns: { title: string; hint?: string }[];
  rows: Stage[];
  note?: string;
}

export interface StepperItem {
  kind: "stepper";
  title?: string;
  label: string;
  /** A figure with a data source named `bars` and a range named `height`. */
  figure: FigureJson;
  alt: string;
  note?: string;
  /** Payload tables. `rows`: the data of each step's bars, ordered by step, with `bar`, a row of `bars`; `bars`: what stays the same from
   * step to step; `steps`: a row a step with `label`, `caption`, `top` (end of the height), and `first` and `count` of its rows. */
  rows: string;
  bars: string;
  steps: string;
  /** Columns of `rows` that are whole numbers of this unit. */
  scale: Record<string, number>;
  /** Row of `steps` to begin with. */
  value: number;
  /** Buttons that go to a row of `steps`. */
  marks: { label: string; value: number }[];
  /** The bars are steps of hosts and devices, which a click shows in the trace: the columns of `rows` with their start and length, in ms by
   * `scale`, and the one whose largest value tells the slowest. Their names are the columns `host` and `device` of `bars`. */
  trace?: { start: string; length: string; slowest: string; several_hosts: boolean };
}

/** A chart of an allocator, and a table of what it held at a time that is chosen there: at first, at the peak. */
export interface HeldItem {
  kind: "held";
  title?: string;
  /** The columns of its data source `points` are filled from the events; its lines `cursor` are moved to the chosen time. */
  figure: FigureJson;
  alt: string;
  note?: string;
  /** Stands beside the figure. */
  beside: Item;
  /** Payload tables, of all allocators: see `pack_history` in views/memory.py. */
  events: string;
  blocks: string;
  /** The allocator's rows of `events`; `peak` is one of them, from 0. */
  first: number;
  count: number;
  peak: number;
  tick_ms: number;
  /** Bytes in a unit of the chart. */
  scale: number;
  most_points: number;
  /** Names of rows that are no op: see `heldAt`. */
  labels: { other: string; stack: string; unnamed: string };
  /** The table's columns, order and download. */
  table: TableItem;
}

export type Item =
  | TextItem
  | FactsItem
  | FigureItem
  | TableItem
  | RowItem
  | SwitchItem
  | SectionItem
  | ChangeItem
  | FindingsItem
  | StagesItem
  | StepperItem
  | HeldItem
  | TimelineItem
  | TimelinesItem;

/** What the report says first: where the time goes and what to change. */
export interface Answer {
  text: string;
  /** More of where the time goes. */
  detail?: string;
  action: Prose[];
  links: Link[];
}

export interface Tab {
  id: string;
  title: string;
  items: Item[];
}

export interface Head {
  title?: string;
  facts: Fact[];
  answer?: Answer;
}

export interface Spec {
  format: number;
  id: string;
  version: string;
  bokeh_version: string;
  /** `null` for a tool alone, in a layout of the user's. */
  head: Head | null;
  tabs: Tab[];
  notes: string[];
  /** Tables that travel together in one: their names and sizes in bytes, in order. */
  bundles?: { name: string; tables: string[]; sizes: number[] }[];
}
