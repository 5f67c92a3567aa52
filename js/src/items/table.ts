/** A table of the payload: sorted, searched, filtered and saved in the browser. */

import {
  FormatModule,
  ResizeColumnsModule,
  ResizeTableModule,
  SortModule,
  FilterModule,
  Tabulator,
  type ColumnDefinition,
  type CellComponent,
} from "tabulator-tables";
import { Precision, Type } from "@uwdata/flechette";
import { h, shortenedName, uniqueId } from "../dom";
import { formatCell, parseFilter, partings, toCsv } from "../format";
import { hasTrace, scrollToReport, showInTrace } from "../show_in_trace";
import { FoundRow } from "./found_row";
import type { Column, Context, Mounted, Side, Sort, Table, TableItem, Where } from "../types";

Tabulator.registerModule([FilterModule, FormatModule, ResizeColumnsModule, ResizeTableModule, SortModule]);

type Row = Record<string, unknown>;

const ROW_HEIGHT = 29; // with its line: see style.css
const MAX_BODY_HEIGHT = 15 * ROW_HEIGHT;

/** The rows of `where`, as plain objects (a sort calls for each value many times). */
export function rowsOf(table: Table, where?: Where): Row[] {
  const fields = table.names;
  const columns = fields.map((field) => table.getChild(field));
  // A float of four bytes has seven digits: more of them are noise (0.1 comes as 0.10000000149).
  const short = table.schema.fields.map(({ type }) => type.typeId === Type.Float && type.precision === Precision.SINGLE);
  const rows: Row[] = [];
  for (let i = 0; i < table.numRows; i++) {
    const row: Row = {};
    fields.forEach((field, j) => {
      const value = columns[j]!.at(i);
      row[field] = short[j] && typeof value === "number" ? Number(value.toPrecision(7)) : value;
    });
    if (where !== undefined) {
      const value = row[where.field];
      if ("equals" in where && value !== where.equals) continue;
      if ("not_equals" in where && value === where.not_equals) continue;
    }
    rows.push(row);
  }
  return rows;
}

const isNumeric = (column: Column) => column.kind === "number" || column.kind === "percent";

/** Rough widths of what is written: of a figure, of a letter of a title, and of what is around both. */
const FIGURE_PX = 8.3;
const LETTER_PX = 7.3;
const AROUND_PX = 18;

/** How wide a column must be for the longest word of its title, and, if it is of numbers, for the largest of them. */
export function neededWidth(column: Column, rows: Row[]): number {
  const words = `${column.title} ${column.unit ?? ""}`.split(" ").map((word) => LETTER_PX * word.length);
  const numbers: number[] = [];
  if (isNumeric(column)) {
    let [least, most] = [0, 0];
    for (const row of rows) {
      const value = Number(row[column.field]);
      if (value > most) most = value;
      if (value < least) least = value;
    }
    // Points and commas are narrow.
    const shown = [least, most].map((value) => formatCell(value, column));
    numbers.push(...shown.map((text) => FIGURE_PX * text.replace(/[.,]/g, "").length + (FIGURE_PX / 2) * text.replace(/[^.,]/g, "").length));
  }
  return Math.ceil(Math.max(...words, ...numbers)) + AROUND_PX;
}

/** Numbers by size, text as people count (`dense_2` before `dense_10`), missing values last either way. */
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
export function compare(a: unknown, b: unknown, dir: "asc" | "desc"): number {
  const [noA, noB] = [a, b].map((x) => x === null || x === undefined || Number.isNaN(x));
  if (noA || noB) return noA && noB ? 0 : (noA ? 1 : -1) * (dir === "asc" ? 1 : -1);
  if (typeof a === "string" || typeof b === "string") return collator.compare(String(a), String(b));
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}

/** A text's cell; with a label, that is what is seen. */
function nameContent(text: string, label: unknown, parts: (name: string) => number): HTMLElement {
  if (typeof label !== "string" || label === text) return shortenedName(text, parts(text));
  const content = h("span", { class: "tfprof-name", title: text }, h("span", {}, label)); // it begins with what matters
  content.dataset["whole"] = text;
  return content;
}

function cellContent(value: unknown, column: Column, largest: number): HTMLElement {
  const text = formatCell(value, column);
  const content = h("span", { class: "tfprof-number" }, text);
  if (column.kind === "percent" && largest > 0 && Number(value) > 0) {
    const bar = h("span", { class: "tfprof-bar", "aria-hidden": "true" });
    bar.style.width = `${Math.min(100, (100 * Number(value)) / largest)}%`;
    return h("span", { class: "tfprof-percent" }, bar, content);
  }
  return content;
}

/** Where cells were selected, one line a row and a tab between cells; else the text just as it is. */
function copyWhole(event: ClipboardEvent): void {
  const selection = document.getSelection();
  if (selection === null || selection.rangeCount === 0 || !event.clipboardData) return;
  const fragment = selection.getRangeAt(0).cloneContents();
  for (const name of fragment.querySelectorAll<HTMLElement>("[data-whole]")) name.textContent = name.dataset["whole"]!;
  const rows = [...fragment.querySelectorAll(".tabulator-row")];
  const line = (cells: Iterable<Element>) => [...cells].map((cell) => cell.textContent ?? "").join("\t");
  let text: string;
  if (rows.length > 0) text = rows.map((row) => line(row.querySelectorAll(".tabulator-cell"))).join("\n");
  else if (fragment.querySelector(".tabulator-cell")) text = line(fragment.querySelectorAll(".tabulator-cell"));
  else text = fragment.textContent ?? "";
  event.clipboardData.setData("text/plain", text);
  event.preventDefault();
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function mountTable(host: HTMLElement, item: TableItem, ctx: Context): Promise<Mounted> {
  return mountRows(host, item, ctx, rowsOf(await ctx.table(item.table), item.where));
}

export interface MountedTable extends Mounted {
  /** Shows other rows, under another title; order, search and filters stay. */
  replace(rows: Row[], title: string): Promise<void>;
}

/** A table of rows that are at hand; `room` is how many of them it has place for, if not for these. */
export async function mountRows(host: HTMLElement, item: TableItem, ctx: Context, given: Row[], room = given.length): Promise<MountedTable> {
  let rows = given;
  const known = new Set(Object.keys(rows[0] ?? {}));
  const missing = rows.length > 0 ? item.columns.flatMap(({ field, label, digits_field }) => [field, label ?? field, digits_field ?? field]).filter((field) => !known.has(field)) : [];
  if (missing.length > 0) throw new Error(`its data has no column ${missing.join(", ")}`);

  const heading = item.title ? h("h4", { class: "tfprof-heading", id: uniqueId("table") }, item.title) : null;
  const texts = item.columns.filter((column) => column.kind === "text");
  // What is in view at once needs no search.
  const searchable = texts.length > 0 && (item.filter === true || room * ROW_HEIGHT > MAX_BODY_HEIGHT);
  const count = h("span", { class: "tfprof-count", role: "status" });
  const search = h("input", { type: "search", class: "tfprof-search", placeholder: "Search", "aria-label": `Search ${item.title ?? "the table"}` });
  const buttons = h("span", { class: "tfprof-buttons" });
  const beyond = h("span", { class: "tfprof-more" });
  const tools = h("div", { class: "tfprof-tabletools" }, heading, count, beyond, searchable ? search : null, buttons);
  const grid = h("div", { class: "tfprof-grid", "data-lm-suppress-shortcuts": "true" });
  host.append(tools, grid);

  // One predicate for the search box and the header filters, so that they combine.
  const kept = `table:${item.table}:${JSON.stringify(item.where ?? null)}:`;
  const filterInputs = new Map<HTMLInputElement, string>();
  const filters = new Map<Column, (value: unknown) => boolean>();
  let searchFor: ((value: unknown) => boolean) | null = null;
  // What is seen is found, and so is what it stands for.
  const finds = (row: Row, { field, label }: Column, test: (value: unknown) => boolean) => test(row[field]) || (label !== undefined && test(row[label]));
  const matches = (row: Row): boolean => {
    for (const [column, test] of filters) if (!finds(row, column, test)) return false;
    return searchFor === null || texts.some((column) => finds(row, column, searchFor!));
  };
  const filtered = () => filters.size > 0 || searchFor !== null;

  const inTrace = hasTrace(ctx.model);
  const withTrace = (content: HTMLElement, name: string, { side, side_field, op_field }: NonNullable<Column["trace"]>, row: Row): HTMLElement => {
    const button = h("button", { type: "button", class: "tfprof-totrace", title: "Show in the trace", "aria-label": `Show ${name} in the trace` }, "Trace");
    button.addEventListener("click", () => {
      const where = side ?? (side_field === undefined ? undefined : (String(row[side_field]).toLowerCase() as Side));
      const op = op_field === undefined ? "" : String(row[op_field] ?? "");
      showInTrace(ctx.model, { highlight: name, within: { side: where, op: op || undefined } });
      scrollToReport(grid);
    });
    return h("span", { class: "tfprof-withtrace" }, content, button);
  };

  let longestBars = new Map<string, number>();
  const largest = ({ field, kind }: Column): number => {
    if (kind !== "percent") return 0;
    let most = longestBars.get(field);
    if (most === undefined) longestBars.set(field, (most = rows.reduce((max, row) => Math.max(max, Number(row[field]) || 0), 0)));
    return most;
  };

  let partingsOf = new Map<string, (name: string) => number>();
  const parts = ({ field, trace }: Column): ((name: string) => number) => {
    let known = partingsOf.get(field);
    if (known === undefined) partingsOf.set(field, (known = trace ? partings(rows.map((row) => String(row[field] ?? ""))) : () => Infinity));
    return known;
  };

  const definition = (column: Column): ColumnDefinition => {
    const numeric = isNumeric(column);
    const needed = neededWidth(column, rows);
    return {
      field: column.field,
      title: column.title,
      titleFormatter: () => columnTitle(column),
      cssClass: numeric ? "tfprof-numeric" : "",
      hozAlign: numeric ? "right" : "left",
      headerHozAlign: numeric ? "right" : "left",
      headerSortStartingDir: numeric ? "desc" : "asc",
      sorter: (a, b, rowA, rowB, _column, dir) =>
        column.label === undefined ? compare(a, b, dir) : compare((rowA.getData() as Row)[column.label], (rowB.getData() as Row)[column.label], dir),
      formatter: (cell: CellComponent) => {
        const row = cell.getData() as Row;
        const content =
          column.kind === "text"
            ? nameContent(formatCell(cell.getValue(), column), column.label && row[column.label], parts(column))
            : cellContent(cell.getValue(), column.digits_field === undefined ? column : { ...column, digits: Number(row[column.digits_field]) }, largest(column));
        return inTrace && column.trace && cell.getValue() ? withTrace(content, String(cell.getValue()), column.trace, cell.getRow().getData() as Row) : content;
      },
      minWidth: Math.max(needed, column.width ?? column.min_width ?? (numeric ? 106 : column.kind === "bool" ? 64 : 180)),
      ...(column.width !== undefined ? { width: Math.max(needed, column.width) } : {}),
      ...(column.max_width !== undefined ? { maxWidth: Math.max(needed, column.max_width) } : {}),
      widthGrow: numeric || column.kind === "bool" ? 1 : 3,
    };
  };

  const columnTitle = (column: Column): HTMLElement => {
    const label = h(
      "span",
      { class: "tfprof-coltitle", title: column.hint },
      column.title,
      column.unit ? h("span", { class: "tfprof-unit" }, ` ${column.unit}`) : null,
    );
    if (!item.filter) return label;
    const input = h("input", {
      type: "text",
      class: "tfprof-filter",
      placeholder: isNumeric(column) ? ">10" : "filter",
      "aria-label": `Filter ${column.title}`,
      title: isNumeric(column) ? "Filter: >10, <=2.5, =3, 1..3, or digits to find" : "Filter: text to find",
    });
    // The header sorts on a click and on Enter; not from inside its filter.
    for (const type of ["click", "mousedown", "keydown"]) input.addEventListener(type, (event) => event.stopPropagation());
    filterInputs.set(input, `filter:${column.field}`);
    input.addEventListener("input", () => {
      ctx.state.set(`${kept}filter:${column.field}`, input.value);
      const test = parseFilter(input.value, column);
      if (test === null) filters.delete(column);
      else filters.set(column, test);
      refresh();
    });
    return h("div", { class: "tfprof-colhead" }, label, input);
  };

  const bodyHeight = Math.min(MAX_BODY_HEIGHT, Math.max(room, 1) * ROW_HEIGHT);
  const sort = ((ctx.state.get(`${kept}sort`) as Sort[] | undefined) ?? item.sort ?? []).filter(({ field }) => item.columns.some((column) => column.field === field));
  const found = new FoundRow(grid, () => {
    for (const input of [search, ...filterInputs.keys()]) {
      if (input.value === "") continue;
      input.value = "";
      input.dispatchEvent(new Event("input"));
    }
  });
  const table = new Tabulator(grid, {
    data: rows,
    columns: item.columns.map(definition),
    // Fixed: rows are drawn as they scroll into view, and a filter doesn't move what is below.
    height: bodyHeight + (item.filter ? 78 : 44),
    rowHeight: ROW_HEIGHT - 1,
    layout: "fitColumns",
    initialSort: sort.map(({ field, dir }) => ({ column: field, dir })).reverse(),
    nestedFieldSeparator: false, // a dot in a name is only a dot
    placeholder: "No rows match.",
    rowFormatter: found.format,
    columnDefaults: { resizable: "header" },
  });
  await new Promise<void>((resolve) => table.on("tableBuilt", resolve));
  // Whole rows only, whatever lines the titles took and whether there is a scroll bar.
  const holder = grid.querySelector<HTMLElement>(".tabulator-tableholder")!;
  // Between grid and rows Tabulator has two elements where roles know one; the outer one takes the keys that scroll.
  holder.setAttribute("role", "rowgroup");
  holder.setAttribute("aria-label", "Rows");
  holder.querySelector(".tabulator-table")?.setAttribute("role", "presentation");
  grid.removeAttribute("aria-owns");
  const fit = () => {
    const around = grid.offsetHeight - holder.clientHeight;
    if (grid.clientWidth > 0 && holder.clientHeight !== bodyHeight) table.setHeight(around + bodyHeight);
  };
  fit();
  // Where scroll bars hide, nothing else says that a table goes on to the right.
  const sayWhatIsBeyond = () => {
    const edge = holder.scrollLeft + holder.clientWidth + 1;
    const hidden = table.getColumns().filter((column) => {
      const { offsetLeft, offsetWidth } = column.getElement();
      return offsetLeft + offsetWidth > edge;
    }).length;
    beyond.textContent = hidden > 0 && holder.clientWidth > 0 ? `${hidden} more ${hidden === 1 ? "column" : "columns"} →` : "";
  };
  sayWhatIsBeyond();
  holder.addEventListener("scroll", sayWhatIsBeyond, { passive: true });
  table.on("columnResized", sayWhatIsBeyond);

  const refresh = () => {
    table.setFilter(matches as never);
    showCount();
  };
  const matching = () => table.getData("active") as Row[];
  const save = (all: boolean) => {
    const chosen = all ? rows : matching();
    download(item.csv ?? `${item.table}.csv`, toCsv(chosen, item.columns.map((column) => column.field)));
  };
  const csv = h("button", { type: "button", class: "tfprof-button" });
  const csvAll = h("button", { type: "button", class: "tfprof-button" });
  csv.addEventListener("click", () => save(false));
  csvAll.addEventListener("click", () => save(true));
  buttons.append(csv, csvAll);
  const showCount = () => {
    const total = rows.length.toLocaleString("en-US");
    const shown = filtered() ? table.getDataCount("active").toLocaleString("en-US") : total;
    count.textContent = filtered() ? `${shown} of ${total} rows` : `${total} ${rows.length === 1 ? "row" : "rows"}`;
    csv.textContent = filtered() ? `CSV of these ${shown}` : "Download CSV";
    csvAll.textContent = `CSV of all ${total}`;
    csvAll.hidden = !filtered();
  };
  showCount();
  table.on("dataSorted", (sorters) => ctx.state.set(`${kept}sort`, sorters.map(({ field, dir }) => ({ field, dir })).reverse()));

  search.addEventListener("input", () => {
    ctx.state.set(`${kept}search`, search.value);
    searchFor = parseFilter(search.value, { field: "", title: "", kind: "text" });
    refresh();
  });
  // As it was left: what stands in the boxes is put there again and read again.
  for (const [input, name] of [[search, "search"], ...filterInputs] as [HTMLInputElement, string][]) {
    const text = ctx.state.get(kept + name);
    if (!text) continue;
    input.value = text;
    input.dispatchEvent(new Event("input"));
  }
  grid.addEventListener("copy", copyWhole);
  for (const header of grid.querySelectorAll<HTMLElement>(".tabulator-col.tabulator-sortable")) {
    header.tabIndex = 0;
    header.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      header.click();
    });
  }
  found.attach(table, ctx);
  return {
    dispose: () => {
      found.dispose();
      table.destroy();
    },
    replace: async (next, title) => {
      rows = next;
      longestBars = new Map();
      partingsOf = new Map();
      if (heading !== null) heading.textContent = title;
      await found.replace(() => table.replaceData(rows));
      showCount();
    },
    resize: () => {
      table.redraw();
      fit();
      sayWhatIsBeyond();
      void found.look();
    },
  };
}
