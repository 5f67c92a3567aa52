/** Puts events that Python sent in the place of the bars that stood for them. */

import type { Table } from "../types";
import { decodeEvents, decodeNames, Store, unsplit, type Names, type Track } from "./data";

/** What Python sent for a window: see `add_unmerged` in views/timeline.py. */
export interface Sent {
  events: Table;
  bars: Table;
  names: Table;
  unit_ps: number;
  /** First and number of the events of each track. */
  tracks: [number, number][];
}

function summed(table: Table): Uint32Array {
  const rows = Uint32Array.from(unsplit(table, "row").values);
  for (let i = 1; i < rows.length; i++) rows[i]! += rows[i - 1]!;
  return rows;
}

/**
 * The page's events without the bars that were taken apart, and with the events of those: their rows follow the page's own in the order of
 * the whole trace.
 */
export function unmerge(page: Store, tracks: readonly Track[], unitPs: number, sent: Sent): Store {
  // Decoding gives tracks their lanes anew: to copies, which get the same.
  const own = tracks.flatMap((track, i) => {
    const [first, count] = sent.tracks[i] ?? [0, 0];
    return track.hidden || track.kind === "counter" ? [] : [{ ...track, first, count }];
  });
  const more = decodeEvents(sent.events, own);
  const rows = summed(sent.events);
  const scale = sent.unit_ps / unitPs;
  const gone = new Uint8Array(page.n);
  for (const row of summed(sent.bars)) gone[row] = 1;

  const n = page.n - sent.bars.numRows + more.n;
  const [start, end] = [new Float64Array(n), new Float64Array(n)];
  const [name, row] = [new Uint32Array(n), new Uint32Array(n)];
  const laneFirst = new Uint32Array(page.laneFirst.length);
  let at = 0;
  for (let lane = 0; lane + 1 < page.laneFirst.length; lane++) {
    laneFirst[lane] = at;
    let [a, b] = [page.laneFirst[lane]!, more.laneFirst[lane]!];
    const [lastA, lastB] = [page.laneFirst[lane + 1]!, more.laneFirst[lane + 1]!];
    while (a < lastA || b < lastB) {
      if (a < lastA && gone[page.row[a]!] === 1) {
        a++;
        continue;
      }
      const [startB, endB] = b < lastB ? [more.start[b]! * scale, more.end[b]! * scale] : [Infinity, Infinity];
      // Of two that begin at once the first one takes no time.
      if (a < lastA && (page.start[a]! < startB || (page.start[a]! === startB && page.end[a]! <= endB))) {
        start[at] = page.start[a]!;
        end[at] = page.end[a]!;
        name[at] = page.name[a]!;
        row[at++] = page.row[a++]!;
      } else {
        start[at] = startB;
        end[at] = endB;
        name[at] = more.name[b]!;
        row[at++] = page.n + rows[more.row[b++]!]!;
      }
    }
  }
  laneFirst[laneFirst.length - 1] = at;
  return new Store(start, end, name, laneFirst, row).weigh(page.counts);
}

/** The page's names, and those that came with the events. */
export function withNames(page: Names, sent: Sent): Names {
  const more = decodeNames(sent.names);
  const both = (column: keyof Names) => [...page[column], ...more[column]];
  return { name: both("name"), short: both("short"), type: both("type"), op: both("op"), role: both("role"), color: both("color") };
}
