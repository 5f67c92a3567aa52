/** Fetches from Python, while a kernel is linked, the events that the page was too small for: those of the window, when it rests. */

import { errorMessage } from "../dom";
import { unpackTable } from "../payload";
import type { Model, Table } from "../types";
import type { Field } from "./details";
import type { Match } from "./query";
import { shownValue } from "./stats";
import { totalTime } from "./ticks";
import type { Sent } from "./unmerge";

const RESTS_MS = 200;
const SLOW_MS = 3000;

/** Where arrows of an event lead: how many, and the event at the end of the first. */
export interface Way {
  label: string;
  count: number;
  name: string;
  row: number;
  start_ps: number;
  end_ps: number;
}

/** What of the timeline the fetcher needs. */
export interface Wanting {
  /** The window, in picoseconds. */
  windowPs(): [number, number];
  /** Rows of the whole that must stay, wherever they are. */
  keep(): number[];
  receive(sent: Sent): void;
  /** The words have changed. */
  told(): void;
}

type State = "idle" | "asking" | "slow" | "too many" | "failed";

export class OnDemand {
  private state: State = "idle";
  /** Whether Python was there at some time. */
  private wasLinked: boolean;
  private covered: [number, number] | null = null;
  private coversAll = false;
  /** Events of the trace that came from Python and are here now. */
  private fetched = 0;
  private tooMany: { window: [number, number]; count: number; most: number } | null = null;
  private failure = "";
  private inFlight = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly model: Model,
    private readonly part: { alone: number; events: number },
    private readonly about: { timeline: string; rows: number },
    private readonly timeline: Wanting,
    signal: AbortSignal,
  ) {
    this.wasLinked = this.linked;
    const follow = () => {
      this.wasLinked ||= this.linked;
      this.state = "idle";
      this.rested();
      timeline.told();
    };
    model.on("change:linked", follow);
    signal.addEventListener("abort", () => {
      model.off("change:linked", follow);
      clearTimeout(this.timer);
    });
  }

  get linked(): boolean {
    return this.model.linked === true;
  }

  /** Whether there are events that the page lacks. */
  get lacks(): boolean {
    return this.part.alone < this.part.events && !this.coversAll;
  }

  /** The window has moved: once it rests, what it lacks is asked for. */
  rested(): void {
    clearTimeout(this.timer);
    if (!this.linked || !this.lacks) return;
    this.timer = setTimeout(() => void this.fetch(), RESTS_MS);
  }

  private isCovered([start, end]: [number, number]): boolean {
    return this.covered !== null && start >= this.covered[0] && end <= this.covered[1];
  }

  private async fetch(): Promise<void> {
    const window = this.timeline.windowPs();
    if (this.inFlight || !this.linked || !this.lacks) return;
    if (this.isCovered(window)) return this.be("idle");
    const { tooMany } = this;
    // As long as it reaches as far, there are no fewer in it.
    if (tooMany !== null && window[0] <= tooMany.window[0] && window[1] >= tooMany.window[1]) return this.be("too many");
    this.inFlight = true;
    this.be("asking");
    const slow = setTimeout(() => this.state === "asking" && this.be("slow"), SLOW_MS);
    try {
      const { content, tables } = await this.ask({ kind: "window", range_ms: window.map((ps) => ps / 1e9), keep: this.timeline.keep() });
      if (content["too_many"] !== undefined) {
        this.tooMany = { window, count: content["too_many"], most: content["most"] };
        this.state = "too many";
      } else {
        const [events, bars, names] = (await Promise.all(["events", "bars", "names"].map((name) => unpackTable(tables[name]!)))) as [Table, Table, Table];
        // What was asked for is there, whatever became of the last digits on the way.
        const [from, to] = content["window_ps"] as [number, number];
        this.covered = [Math.min(window[0], from), Math.max(window[1], to)];
        this.coversAll = content["all"];
        this.fetched = content["events"];
        this.tooMany = null;
        this.state = "idle";
        this.timeline.receive({ events, bars, names, unit_ps: content["unit_ps"], tracks: content["tracks"] });
      }
    } catch (error) {
      this.state = this.linked ? "failed" : "idle";
      this.failure = errorMessage(error);
    } finally {
      clearTimeout(slow);
      this.inFlight = false;
    }
    this.timeline.told();
    // The window may have moved on meanwhile; what can't be answered isn't asked again until it moves.
    if (this.state === "idle") this.rested();
  }

  private be(state: State): void {
    if (state === this.state) return;
    this.state = state;
    this.timeline.told();
  }

  private ask(question: Record<string, unknown>) {
    return this.model.ask!({ ...question, ...this.about });
  }

  /** What the profiler noted with an event, and where its arrows lead; null if Python doesn't answer. */
  async details(row: number): Promise<{ stats: Field[]; ways: Way[] } | null> {
    if (!this.linked) return null;
    const answered = await this.ask({ kind: "details", row }).catch(() => null);
    if (answered === null) return null;
    const { stats, ways } = answered.content as { stats: { name: string; label: string; unit: string; meaning: string; value: string }[]; ways: Way[] };
    const fields = stats.map(({ name, label, unit, meaning, value }) => ({ label, value: shownValue(value, unit), meaning, hint: name }));
    return { stats: fields.sort((a, b) => a.label.localeCompare(b.label)), ways };
  }

  /** How many events of the whole trace a search finds, in words; null if Python doesn't answer. */
  async search(text: string, match: Match): Promise<{ count: number; words: string } | null> {
    if (!this.linked) return null;
    const answered = await this.ask({ kind: "search", text, match }).catch(() => null);
    if (answered === null) return null;
    const { count: many, total_ps } = answered.content as { count: number; total_ps: number };
    return { count: many, words: `${count(many)} in the whole trace · ${totalTime(total_ps)}` };
  }

  /** What is here of all, to follow the word "in". */
  get here(): string {
    return `the ${count(this.part.alone + this.fetched)} of ${count(this.part.events)} events that are here one by one`;
  }

  /** Of what is here, and what is with Python. */
  get words(): string {
    const { part } = this;
    if (part.alone >= part.events) return "";
    if (this.coversAll) return `All ${count(part.events)} events of the trace are here one by one, ${count(this.fetched)} of them from Python`;
    const here = part.alone + this.fetched;
    const some = `${count(here)} of ${count(part.events)} events of the trace are here one by one${this.fetched > 0 ? `, ${count(this.fetched)} of them from Python` : ""}`;
    if (!this.linked) return this.wasLinked ? `${some}; the kernel that has the others is gone` : some;
    if (this.state === "asking") return `${some}; asking Python for those of this window …`;
    if (this.state === "slow") return `${some}; Python has not answered yet: it is busy, or gone`;
    if (this.state === "failed") return `${some}; Python can't send the others: ${this.failure}`;
    if (this.state === "too many") {
      const { count: many, most } = this.tooMany!;
      return `${some}; Python has ${count(many)} more for this window, and sends at most ${count(most)} at once: zoom in`;
    }
    return this.isCovered(this.timeline.windowPs()) ? `${some}: all those of this window` : some;
  }
}

const count = (n: number) => n.toLocaleString("en-US");
