/** The trace timeline's item. */

import { saveBar } from "../save_picture";
import type { Context, TimelineItem } from "../types";
import { decodeCounters } from "./counters";
import { decodeEvents, decodeNames, decodeTracks } from "./data";
import { Stats } from "./stats";
import { Timeline } from "./timeline";

/** The stat of bars: of how many events. */
const MERGED = "merged_events";

export async function mountTimeline(host: HTMLElement, item: TimelineItem, ctx: Context): Promise<Timeline> {
  // Its code is unpacked while the tables are; a failure shows where it is waited for.
  ctx.bokeh().catch(() => {});
  const [events, trackTable, nameTable, counterTable] = await Promise.all([
    ctx.table(item.events),
    ctx.table(item.tracks),
    ctx.table(item.names),
    item.counters === undefined ? null : ctx.table(item.counters.table),
  ]);
  const tracks = decodeTracks(trackTable);
  const names = decodeNames(nameTable);
  const shown = decodeEvents(events, tracks.filter((track) => !track.hidden && track.kind !== "counter"));
  if (names.role.includes("merged") && item.stats !== undefined) {
    const stats = await Stats.load(item.stats, ctx);
    shown.weigh(new Map(Array.from(stats.all(MERGED), ([row, count]) => [row, Number(count.replaceAll(",", ""))])));
  }
  const counters = counterTable === null ? new Map() : decodeCounters(counterTable, item.counters!, tracks);
  const timeline = new Timeline(host, item, ctx, tracks, names, shown, counters);
  await timeline.start();
  timeline.toolbar.more.append(saveBar(ctx, () => timeline.picture));
  return timeline;
}
