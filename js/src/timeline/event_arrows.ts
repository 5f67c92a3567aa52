/** Arrows between events: those of the selected one, and all that are in view. */

import { ABOVE, ABSENT, Arrows, BELOW, IN_VIEW } from "./arrows";
import type { Store } from "./data";
import { Flows, type Arrow } from "./flows";
import { onScreen } from "./layout";
import type { Bend } from "./overlay";
import { placeOf, type Place } from "./query";
import { shortName } from "./short_name";
import type { Timeline } from "./timeline";

const MOST_ARROWS = 300;

export class EventArrows {
  private flows: Flows | null = null;
  private arrowsOfAll = false;
  /** All arrows, ordered for drawing; made when they are first asked for. */
  private arrows: Arrows | null = null;
  /** Event of each row of the table of what is not hidden. */
  private eventOfRow: Uint32Array | null = null;
  arrowWords = "";

  constructor(private readonly timeline: Timeline) {}

  private async loadFlows(): Promise<Flows> {
    const item = this.timeline.item.flows!;
    const table = await this.timeline.ctx.table(item.table);
    const { row } = this.timeline.stores.get(false)!;
    if (this.eventOfRow === null) {
      this.eventOfRow = new Uint32Array(row.length);
      row.forEach((each, event) => (this.eventOfRow![each] = event));
    }
    return (this.flows ??= Flows.of(table, item));
  }

  /** Draws the arrows of the selected event, and offers to follow them. */
  async showFlows(place: Place): Promise<void> {
    await this.loadFlows();
    if (this.timeline.selected !== place) return;
    const row = place.store.row[place.event]!;
    const arrows = this.arrowsAt(place);
    const ways = { "Led to": arrows.filter((arrow) => arrow.from === row).map((arrow) => arrow.to), "Caused by": arrows.filter((arrow) => arrow.to === row).map((arrow) => arrow.from) };
    for (const [label, rows] of Object.entries(ways)) {
      if (rows.length === 0) continue;
      const other = this.placeOfRow(rows[0]!);
      const name = this.timeline.names.name[other.store.name[other.event]!]!;
      const more = rows.length === 1 ? "" : ` and ${(rows.length - 1).toLocaleString("en-US")} more`;
      this.timeline.details.addAction({ label: `${label}: ${shortName(name)}${more}`, hint: `Go to ${name}`, run: () => this.timeline.select(other, true) });
    }
    this.timeline.invalidate();
  }

  async setArrows(on: boolean): Promise<void> {
    if (on) await this.loadFlows();
    this.arrowsOfAll = on;
    this.timeline.invalidate();
  }

  /** Ids are used again: what began earlier is not led to. */
  private isForward({ from, to }: Arrow): boolean {
    const { start } = this.timeline.stores.get(false)!;
    return start[this.eventOfRow![from]!]! <= start[this.eventOfRow![to]!]!;
  }

  private arrowsAt({ store, event }: Place): Arrow[] {
    return this.flows === null ? [] : this.flows.at(store.row[event]!).filter((arrow) => this.isForward(arrow));
  }

  private placeOfRow(row: number): Place {
    return placeOf(this.timeline.stores.get(false)!, this.eventOfRow![row]!);
  }

  /** Arrows in view: those of the selected event, and all if they are asked for. */
  drawArrows(): void {
    this.arrowWords = "";
    if (this.flows === null || (this.timeline.selected === null && !this.arrowsOfAll)) return this.timeline.overlay.showArrows([], []);
    const store = this.timeline.stores.get(false)!;
    const { sides, heights } = this.laneSides(store);
    const bend = (a: number, b: number, laneA: number, laneB: number): Bend | null => {
      const [from, to] = [sides[laneA]!, sides[laneB]!];
      if (from === ABSENT || to === ABSENT || (from === to && from !== IN_VIEW)) return null;
      const end = store.start[b]!;
      const begin = Math.min(store.end[a]!, end);
      return { x0: this.timeline.xOf(begin), y0: heights[laneA]!, x1: this.timeline.xOf(end), y1: heights[laneB]! };
    };
    const strong: Bend[] = [];
    const weak: Bend[] = [];
    let count = 0;
    const chosen = this.timeline.selected?.store === store ? this.timeline.selected.event : -1;
    if (this.timeline.selected?.store === store) {
      for (const arrow of this.arrowsAt(this.timeline.selected)) {
        const [a, b] = [this.placeOfRow(arrow.from), this.placeOfRow(arrow.to)];
        const found = bend(a.event, b.event, a.lane, b.lane);
        if (found === null) continue;
        count++;
        if (strong.length < MOST_ARROWS) strong.push(found);
      }
    }
    if (this.arrowsOfAll) {
      const all = (this.arrows ??= new Arrows(this.flows, store, this.eventOfRow!));
      all.keep(sides);
      const inView = all.within(this.timeline.left, this.timeline.left + this.timeline.width * this.timeline.perPx, MOST_ARROWS);
      for (const i of inView.arrows) {
        const [a, b] = [all.from[i]!, all.to[i]!];
        if (a === chosen || b === chosen) continue;
        const found = bend(a, b, all.fromLane[i]!, all.toLane[i]!);
        if (found !== null) weak.push(found);
      }
      count = Math.max(inView.count, weak.length + strong.length);
    }
    if (!this.arrowsOfAll && count === 0) return this.timeline.overlay.showArrows([], []);
    const drawn = (weak.length + strong.length).toLocaleString("en-US");
    const beyond = this.arrowsOfAll && this.arrows!.beyond > 0 ? ` (${this.arrows!.beyond.toLocaleString("en-US")} of the trace are too many to be kept)` : "";
    this.arrowWords = count === 0 ? `No arrow is in view${beyond}` : `${drawn} of ${count.toLocaleString("en-US")} arrows drawn${beyond}`;
    this.timeline.overlay.showArrows(weak, strong);
  }

  /** Of each lane: on which side of what is in view it is, and its height there. */
  private laneSides(store: Store): { sides: Uint8Array; heights: Float64Array } {
    const lanes = store.laneFirst.length - 1;
    const sides = new Uint8Array(lanes);
    const heights = new Float64Array(lanes);
    const { pinnedHeight } = this.timeline.layout;
    for (const bands of [this.timeline.layout.bands, this.timeline.layout.pinned]) {
      for (const { boxes } of bands) {
        for (const box of boxes) {
          if (box.store !== store) continue;
          const y = onScreen(box, this.timeline.scroll) + (box.bottom - box.top) / 2;
          sides[box.lane] = box.pinned ? IN_VIEW : y <= pinnedHeight ? ABOVE : y > this.timeline.height ? BELOW : IN_VIEW;
          heights[box.lane] = box.pinned ? y : Math.max(pinnedHeight, y);
        }
      }
    }
    return { sides, heights };
  }
}
