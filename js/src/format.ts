/** Values as people read them, and as files keep them. */

import type { Column } from "./types";

/** Always the same whatever the reader's locale: digits grouped by a thin space would not copy well. */
const plain = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });
const withDigits = new Map<number, Intl.NumberFormat>();

function fixed(digits: number): Intl.NumberFormat {
  let format = withDigits.get(digits);
  if (format === undefined) {
    format = new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    withDigits.set(digits, format);
  }
  return format;
}

const missing = (value: unknown) => value === null || value === undefined || (typeof value === "number" && Number.isNaN(value));

/** A fact's value. */
export function formatPlain(value: unknown): string {
  if (missing(value)) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number" && Number.isFinite(value)) return plain.format(value);
  return String(value);
}

/** A number and its unit stay on one line, and so do a number and what it counts (`first: 1`). */
export const unbroken = (text: string): string => text.replace(/(\d) (?=(?:%|[nµm]?s|[KMGT]?i?B)(?!\w))|(:) (?=\d)/g, "$1$2\u00a0");

/** A cell's text; nothing for a missing value. The unit stands in the header, except for percents. */
export function formatCell(value: unknown, column: Column): string {
  if (missing(value)) return "";
  switch (column.kind) {
    case "bool":
      return value ? "yes" : "no";
    case "text":
      return String(value);
    case "percent":
    case "number": {
      const number = typeof value === "bigint" ? value : Number(value);
      if (typeof number === "number" && !Number.isFinite(number)) return String(value);
      const digits = column.digits ?? (column.kind === "percent" ? 1 : undefined);
      const text = digits === undefined ? plain.format(number) : fixed(digits).format(number);
      // A small share is not none.
      if (digits !== undefined && number !== 0 && Number(text.replaceAll(",", "")) === 0) {
        const least = fixed(digits).format(10 ** -digits);
        return `${number < 0 ? ">−" : "<"}${least}${column.kind === "percent" ? " %" : ""}`;
      }
      const signed = text.replace(/^-/, "−");
      return column.kind === "percent" ? `${signed} %` : signed;
    }
  }
}

/** Where to cut a long name: its end (`…/dense_7/MatMul`) tells names apart as much as its start; of one word, the start does. */
export function splitMiddle(text: string, from = Infinity): [string, string] {
  // C++ functions are told apart by how they begin: they end in the types of their arguments.
  if (text.length <= 12 || /[(<].*[)>]$/s.test(text)) return [text, ""];
  const longestEnd = /\/|::/.test(text) ? 36 : 10;
  const at = Math.min(from, text.length - Math.min(longestEnd, Math.ceil(0.6 * text.length)));
  // Not between the halves of a surrogate pair.
  const low = text.charCodeAt(at) >= 0xdc00 && text.charCodeAt(at) <= 0xdfff;
  const cut = low ? at - 1 : at;
  return [text.slice(0, cut), text.slice(cut)];
}

/** So large a part of the names, and so many of them, share a beginning that says little. */
const SHARED_BY = 0.2;
const SHARED_BY_LEAST = 4;

/**
 * Where names part: how long the beginning (`model/encoder/`) is that a name shares with many of the others. What comes after it
 * (`layer_11/attention/MatMul`) is what tells it from them.
 */
export function partings(names: Iterable<string>): (name: string) => number {
  const distinct = new Set(names);
  const shared = new Map<string, number>();
  const ends = (name: string) => [...name.matchAll(/\//g)].map((match) => match.index + 1);
  for (const name of distinct) for (const end of ends(name)) shared.set(name.slice(0, end), (shared.get(name.slice(0, end)) ?? 0) + 1);
  const least = Math.max(SHARED_BY_LEAST, SHARED_BY * distinct.size);
  return (name) => ends(name).filter((end) => (shared.get(name.slice(0, end)) ?? 0) >= least).at(-1) ?? Infinity;
}

type Row = Record<string, unknown>;

/** What spreadsheets take for the beginning of a formula (`export/csv_text.py` says the same), unless it is a number. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠](?!(?<=^[+-])[\d.]+(?:e[+-]?\d+)?$)/i;

function csvField(value: unknown): string {
  if (missing(value)) return "";
  const text = typeof value === "string" && FORMULA.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

/** RFC 4180, with the fields' names (which carry their units) as its head and the values not rounded. */
export function toCsv(rows: Row[], fields: string[]): string {
  const lines = [fields, ...rows.map((row) => fields.map((field) => row[field]))];
  return lines.map((line) => line.map(csvField).join(",") + "\r\n").join("");
}

/**
 * What a header's filter means: text finds text in either case; numbers also take `>5`, `<=2.5`, `=3` and `1..3`.
 * `null` for an empty one.
 */
export function parseFilter(input: string, column: Column): ((value: unknown) => boolean) | null {
  const wanted = input.trim();
  if (wanted === "") return null;
  if (column.kind === "number" || column.kind === "percent") {
    const compare = /^(<=|>=|<|>|=)\s*(-?[\d.]+(?:e[+-]?\d+)?)%?$/i.exec(wanted);
    if (compare !== null) {
      const bound = Number(compare[2]);
      const test = {
        "<": (x: number) => x < bound,
        "<=": (x: number) => x <= bound,
        ">": (x: number) => x > bound,
        ">=": (x: number) => x >= bound,
        "=": (x: number) => x === bound,
      }[compare[1]!]!;
      return (value) => !missing(value) && test(Number(value));
    }
    const range = /^(-?[\d.]+)\s*\.\.\s*(-?[\d.]+)$/.exec(wanted);
    if (range !== null) {
      const [low, high] = [Number(range[1]), Number(range[2])];
      return (value) => !missing(value) && Number(value) >= low && Number(value) <= high;
    }
  }
  const lower = (column.kind === "text" ? wanted : wanted.replace(/^-/, "−")).toLowerCase();
  return (value) => formatCell(value, column).toLowerCase().includes(lower);
}
