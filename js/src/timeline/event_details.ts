/** The details of an event: what is known of it, what the profiler noted, and the links to the report's tables. */

import { scrollToReport } from "../show_in_trace";
import type { Track } from "./data";
import type { Field } from "./details";
import { eventAt, isOwn, pythonCall, type Place } from "./query";
import { selfTime } from "./self_time";
import { shortName } from "./short_name";
import { Stats } from "./stats";
import { formatDuration, formatTime } from "./ticks";
import type { Timeline } from "./timeline";

/** Of the events within one, that a change of memory is looked for among. */
const MOST_LOOKED_AT = 1000;
/** Names of changes of memory. */
export const [ALLOCATION, DEALLOCATION] = ["MemoryAllocation", "MemoryDeallocation"];

export class EventDetails {
  private stats: Promise<Stats> | null = null;

  constructor(private readonly timeline: Timeline) {}

  private stepOf(place: Place): string {
    const time = place.store.start[place.event]!;
    const steps = this.timeline.tracks.filter((track) => track.kind === "steps");
    const section = this.timeline.item.sections[this.timeline.tracks[this.timeline.trackOf(place.store, place.lane)]!.section]!.title;
    const own = steps.filter((track) => track.label.startsWith("Steps ") && section.startsWith(track.label.slice(6)));
    for (const track of own.length > 0 ? own : steps) {
      const store = this.timeline.storeOf(track)!;
      for (let lane = track.lane; lane < track.lane + track.lanes; lane++) {
        const event = eventAt(store, lane, time, 0);
        if (event >= 0) return this.timeline.names.name[store.name[event]!]!;
      }
    }
    return "";
  }

  fields(place: Place): Field[] {
    const { store, lane, event } = place;
    const track = this.timeline.tracks[this.timeline.trackOf(store, lane)]!;
    const name = store.name[event]!;
    const isBar = store.isBar(event);
    const fields: Field[] = [];
    const { names, unit } = this.timeline;
    if (names.type[name] && names.role[name] === "op") fields.push({ label: "Op type", value: names.type[name]! });
    const call = pythonCall(names.name[name]!);
    if (call !== null) {
      fields.push({ label: "Python function", value: call.name });
      if (call.source !== null) fields.push({ label: "Source", value: call.source, meaning: "where the function begins; the profiler notes no folder" });
      else fields.push({ label: "Source", value: call.module ?? "not known", meaning: call.module === null ? "a method that is written in C" : "a module; the function is written in C" });
    }
    if (!isBar && names.op[name] && names.op[name] !== names.name[name]) fields.push({ label: "Op", value: names.op[name]! });
    fields.push({ label: "Start", value: formatTime(store.start[event]! * unit, unit) });
    const merged = store.events(event, event + 1).toLocaleString("en-US");
    fields.push({ label: "Duration", value: formatDuration(store.duration(event) * unit), ...(isBar && { meaning: `of ${merged} events together, which this page, kept small, has merged` }) });
    // Of a bar there is none.
    if (!isBar) fields.push(...this.selfTime(place, track));
    const onDevice = track.kind === "device" || track.kind === "derived";
    fields.push({ label: onDevice ? "Stream" : track.kind === "own" || track.kind === "steps" ? "Track" : "Thread", value: track.hint });
    if (onDevice) fields.push({ label: "Device", value: this.timeline.item.sections[track.section]!.title });
    const step = names.role[name] === "step" ? "" : this.stepOf(place);
    if (step !== "") fields.push({ label: "Step", value: step });
    return fields;
  }

  private selfTime(place: Place, track: Track): Field[] {
    const self = selfTime(place, track);
    const unknown = (meaning: string) => [{ label: "Self time", value: "–", meaning: `not known: ${meaning}` }];
    if (self === "merged") return unknown("events inside it are merged into bars in this page, which was kept small");
    if (self === "overlap") return unknown("events overlap here, none is inside another");
    return self === place.store.duration(place.event) ? [] : [{ label: "Self time", value: formatDuration(self * this.timeline.unit) }];
  }

  showDetails(place: Place): void {
    const name = this.timeline.names.name[place.store.name[place.event]!]!;
    const track = this.timeline.tracks[this.timeline.trackOf(place.store, place.lane)]!;
    // A device's own line of steps has their numbers only.
    const title = /^Steps\b/.test(track.hint) && /^\d+$/.test(name) ? `Step ${name}` : name;
    this.timeline.details.showEvent(title, this.fields(place), [
      { label: "Fit (F)", hint: "Zoom to this event", run: () => this.timeline.fit() },
      { label: "All of this name", hint: "Find every event of this name", run: () => this.timeline.searching.searchFor(name) },
      { label: "Mark (M)", hint: "Mark its time", run: () => this.timeline.markSelected() },
      { label: "Close", run: () => this.timeline.select(null) },
    ]);
    this.timeline.live.textContent = `${name}, ${formatDuration(place.store.duration(place.event) * this.timeline.unit)}`;
    void this.showStats(place);
    void this.showRows(place);
  }

  /** Links to the rows of the report's tables that the event belongs to. */
  private async showRows(place: Place): Promise<void> {
    const { store, lane, event } = place;
    const track = this.timeline.tracks[this.timeline.trackOf(store, lane)]!;
    const name = store.name[event]!;
    if (track.kind === "own" || this.timeline.names.role[name] === "step") return;
    const onDevice = track.kind === "device" || track.kind === "derived";
    const links = await this.timeline.rows.linksOf({ name: this.timeline.names.name[name]!, op: this.timeline.names.op[name]!, onDevice });
    const change = this.changeIn(place);
    if (change !== null && this.timeline.item.stats !== undefined) {
      this.stats ??= Stats.load(this.timeline.item.stats, this.timeline.ctx);
      const stats = (await this.stats).of(change.store.row[change.event]!);
      const value = (wanted: string) => stats.find((stat) => stat.name === wanted)?.value;
      const allocator = value("allocator_name");
      const time_ms = (change.store.start[change.event]! * this.timeline.unit) / 1e9;
      if (allocator !== undefined) links.push(...this.timeline.rows.linkOfMemory({ allocator, op: value("tf_op") ?? "", time_ms }));
    }
    if (this.timeline.selected !== place) return;
    for (const { label, hint, run } of links) this.timeline.details.addAction({ label, hint, run: () => this.leave(run) });
  }

  /** The first allocation in an op of the host's (its output, as a rule), or the change of memory that it is. */
  private changeIn({ store, lane, event }: Place): Place | null {
    const { names } = this.timeline;
    const { name } = names;
    const isChange = (each: number) => name[store.name[each]!] === ALLOCATION || name[store.name[each]!] === DEALLOCATION;
    if (isChange(event)) return { store, lane, event };
    const track = this.timeline.tracks[this.timeline.trackOf(store, lane)]!;
    if (track.kind !== "host" || names.op[store.name[event]!] === "") return null;
    for (let below = lane + 1; below < track.lane + track.lanes; below++) {
      const [first, last] = [store.laneFirst[below]!, store.laneFirst[below + 1]!];
      const from = store.firstStart(store.start[event]!, first, last);
      const to = Math.min(from + MOST_LOOKED_AT, store.firstStart(store.end[event]!, from, last));
      for (let each = from; each < to; each++) if (name[store.name[each]!] === ALLOCATION) return { store, lane: below, event: each };
    }
    return null;
  }

  /** Goes to another tab, whose top comes into view. */
  private leave(go: () => void): void {
    scrollToReport(this.timeline.root);
    go();
  }

  /** What the profiler noted with an event of the file. */
  private async showStats(place: Place): Promise<void> {
    const { stats } = this.timeline.item;
    const track = this.timeline.tracks[this.timeline.trackOf(place.store, place.lane)]!;
    // The user's own events have none: nothing of the profiler's is missing there.
    if (!isOwn(track) || track.kind === "own") return;
    if (this.timeline.item.flows !== undefined && !track.hidden) void this.timeline.eventArrows.showFlows(place);
    if (stats === undefined) return;
    this.stats ??= Stats.load(stats, this.timeline.ctx);
    const unpacked = await this.stats;
    const isBar = this.timeline.names.role[place.store.name[place.event]!] === "merged";
    const { part } = this.timeline.item;
    if (part !== undefined && !(part.details && part.arrows) && !isBar) {
      const told = (await this.timeline.onDemand?.details(place.store.row[place.event]!)) ?? null;
      if (this.timeline.selected !== place) return;
      if (told !== null) {
        for (const way of told.ways) {
          const more = way.count === 1 ? "" : ` and ${(way.count - 1).toLocaleString("en-US")} more`;
          this.timeline.details.addAction({ label: `${way.label}: ${shortName(way.name)}${more}`, hint: `Go to ${way.name}`, run: () => this.timeline.goTo(way) });
        }
        if (!part.details) return this.timeline.details.addStats(told.stats, " (from Python)", "The details of this page's events were left out to keep it small; Python has them.");
      }
    }
    if (this.timeline.selected !== place) return;
    const found = track.hidden ? [] : unpacked.of(place.store.row[place.event]!);
    const count = (n: number) => n.toLocaleString("en-US");
    const note =
      stats.count < stats.total
        ? `Not in this report, for any event: ${stats.left_out.join(", ")} (${count(stats.total - stats.count)} of ${count(stats.total)} stats). They are ids, or too many for a page.`
        : "";
    this.timeline.details.addStats(found.map(({ name, ...field }) => ({ ...field, hint: name })), "", note);
  }
}
