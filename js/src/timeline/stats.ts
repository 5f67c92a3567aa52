/** What the profiler noted with the events: packed by Python (views/timeline_stats.py), looked up one event at a time. */

import type { Context, Table, TimelineStats } from "../types";
import { unsplit } from "./data";

export interface Stat {
  /** As the profiler calls it. */
  name: string;
  label: string;
  value: string;
  meaning: string;
}

interface Column {
  name: string;
  label: string;
  unit: string;
  meaning: string;
  first: number;
  count: number;
  firstValue: number;
  values: number;
}

/** `1,048,576 bytes (1 MiB)` */
export function formatBytes(bytes: number): string {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = "";
  for (const next of units) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  const whole = `${bytes.toLocaleString("en-US")} bytes`;
  return unit === "" ? whole : `${Number(value.toPrecision(4))} ${unit} (${whole})`;
}

export function shownValue(text: string, unit: string): string {
  return unit === "bytes" && /^-?\d+$/.test(text) ? formatBytes(Number(text)) : text;
}

/** Undoes the front coding: each text is told by what it shares with the one before. */
export function frontDecoded(coded: string): string[] {
  let before = "";
  return coded
    .split("\t")
    .slice(0, -1)
    .map((part) => (before = before.slice(0, part.charCodeAt(0) - 33) + part.slice(1)));
}

/** Sums of the gaps, begun anew with each column. */
function summed(gaps: ArrayLike<number>, parts: readonly { first: number; count: number }[]): Uint32Array {
  const sums = Uint32Array.from(gaps);
  for (const { first, count } of parts) for (let i = first + 1; i < first + count; i++) sums[i]! += sums[i - 1]!;
  return sums;
}

export class Stats {
  private constructor(
    private readonly columns: readonly Column[],
    private readonly rows: Uint32Array,
    private readonly codes: ArrayLike<number>,
    private readonly values: Uint32Array,
    private readonly texts: readonly string[],
  ) {}

  static async load(item: TimelineStats, ctx: Pick<Context, "table">): Promise<Stats> {
    const [table, names, values, texts] = await Promise.all([item.table, item.names, item.values, item.texts].map((name) => ctx.table(name)));
    return Stats.of(table!, names!, values!, texts!);
  }

  static of(table: Table, names: Table, values: Table, texts: Table): Stats {
    const columns = Array.from({ length: names.numRows }, (_, i): Column => {
      const row = names.get(i) as Record<string, unknown>;
      const [name, label, unit, meaning] = ["name", "label", "unit", "meaning"].map((key) => String(row[key])) as [string, string, string, string];
      const [first, count, firstValue, many] = ["first", "count", "first_value", "values"].map((key) => Number(row[key])) as [number, number, number, number];
      return { name, label, unit, meaning, first, count, firstValue, values: many };
    });
    return new Stats(
      columns,
      summed(unsplit(table, "row").values, columns),
      unsplit(table, "value").values,
      summed(unsplit(values, "text").values, columns.map((column) => ({ first: column.firstValue, count: column.values }))),
      frontDecoded(String(texts.getChild("text")?.at(0) ?? "")),
    );
  }

  /** Row and value of each event that has a stat. */
  *all(name: string): Generator<[number, string]> {
    for (const column of this.columns) {
      if (column.name !== name) continue;
      for (let i = column.first; i < column.first + column.count; i++) yield [this.rows[i]!, this.texts[this.values[column.firstValue + this.codes[i]!]!]!];
    }
  }

  /** Of the event in this row of the timeline's table. */
  of(row: number): Stat[] {
    const found: Stat[] = [];
    for (const column of this.columns) {
      let [low, high] = [column.first, column.first + column.count];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (this.rows[middle]! < row) low = middle + 1;
        else high = middle;
      }
      for (; low < column.first + column.count && this.rows[low] === row; low++) {
        const text = this.texts[this.values[column.firstValue + this.codes[low]!]!]!;
        const value = shownValue(text, column.unit);
        found.push({ name: column.name, label: column.label, value, meaning: column.meaning });
      }
    }
    return found.sort((a, b) => a.label.localeCompare(b.label));
  }
}
