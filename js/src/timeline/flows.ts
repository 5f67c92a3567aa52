/** What led to what: arrows between events, found by the rows of the events' table. */

import type { Table, TimelineFlows } from "../types";
import { unsplit } from "./data";

export interface Arrow {
  kind: string;
  /** Rows. */
  from: number;
  to: number;
}

interface Side {
  rows: Uint32Array;
  groups: Uint32Array;
  /** Places in `rows` by group, and where each group's begin. */
  order: Uint32Array;
  first: Uint32Array;
}

function side(rows: Uint32Array, groups: Uint32Array, many: number): Side {
  const first = new Uint32Array(many + 1);
  for (const group of groups) first[group + 1]!++;
  for (let i = 0; i < many; i++) first[i + 1]! += first[i]!;
  const next = first.slice();
  const order = new Uint32Array(rows.length);
  groups.forEach((group, i) => (order[next[group]!++] = i));
  return { rows, groups, order, first };
}

function find(rows: Uint32Array, row: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle]! < row) low = middle + 1;
    else high = middle;
  }
  return rows[low] === row ? low : -1;
}

const ofGroup = (of: Side, group: number) => Array.from(of.order.subarray(of.first[group], of.first[group + 1]), (i) => of.rows[i]!);

export class Flows {
  private constructor(private readonly parts: readonly { kind: string; source: Side; target: Side }[]) {}

  static of(table: Table, item: TimelineFlows): Flows {
    const gaps = unsplit(table, "row").values;
    const changes = unsplit(table, "group").values;
    let at = 0;
    const take = (count: number) => {
      const rows = Uint32Array.from(gaps.subarray(at, at + count));
      // Zigzag: even ones are steps up, odd ones down.
      const groups = Uint32Array.from(changes.subarray(at, at + count), (change) => (change & 1 ? -(change + 1) / 2 : change / 2));
      for (let i = 1; i < count; i++) {
        rows[i]! += rows[i - 1]!;
        groups[i]! += groups[i - 1]!;
      }
      at += count;
      return { rows, groups };
    };
    return new Flows(
      item.parts.map(({ kind, sources, targets }) => {
        const [source, target] = [take(sources), take(targets)];
        const many = source.groups.reduce((most, group) => Math.max(most, group + 1), 0);
        return { kind, source: side(source.rows, source.groups, many), target: side(target.rows, target.groups, many) };
      }),
    );
  }

  /** The arrows from and to an event. */
  at(row: number): Arrow[] {
    return this.parts.flatMap(({ kind, source, target }) => {
      const [from, to] = [find(source.rows, row), find(target.rows, row)];
      return [
        ...(from < 0 ? [] : ofGroup(target, source.groups[from]!).map((other) => ({ kind, from: row, to: other }))),
        ...(to < 0 ? [] : ofGroup(source, target.groups[to]!).map((other) => ({ kind, from: other, to: row }))),
      ];
    });
  }

  /** Rows at both ends of all arrows, of the first `most` of them; and how many there are beyond. */
  all(most: number): { from: Uint32Array; to: Uint32Array; beyond: number } {
    const sizes = ({ first }: Side, group: number) => first[group + 1]! - first[group]!;
    let total = 0;
    for (const { source, target } of this.parts) for (let group = 0; group + 1 < source.first.length; group++) total += sizes(source, group) * sizes(target, group);
    const many = Math.min(total, most);
    const from = new Uint32Array(many);
    const to = new Uint32Array(many);
    let n = 0;
    for (const { source, target } of this.parts) {
      for (let group = 0; group + 1 < source.first.length; group++) {
        for (let i = source.first[group]!; i < source.first[group + 1]!; i++) {
          const row = source.rows[source.order[i]!]!;
          for (let j = target.first[group]!; j < target.first[group + 1]! && n < many; j++) {
            from[n] = row;
            to[n++] = target.rows[target.order[j]!]!;
          }
        }
      }
    }
    return { from, to, beyond: total - many };
  }
}
