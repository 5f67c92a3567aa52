/** Which tracks are shown: folded, pinned, removed, filtered ones, and the bookkeeping that is folded away. */

import { h } from "../dom";
import type { Timeline } from "./timeline";

export class ShownTracks {
  readonly folded = new Set<string>();
  readonly pinned = new Set<number>();
  private readonly removed = new Set<number>();
  private filter: RegExp | null = null;
  readonly someTracks = h("button", { type: "button", class: "tl-some", hidden: true });
  showHidden = false;

  constructor(private readonly timeline: Timeline) {}

  isShown(index: number): boolean {
    const track = this.timeline.tracks[index]!;
    if (track.hidden && !this.showHidden) return false;
    if (this.removed.has(index)) return false;
    // Pinned ones are wanted whatever the others are filtered by.
    const { filter } = this;
    if (filter === null || this.pinned.has(index)) return true;
    return [track.label, track.hint, this.timeline.item.sections[track.section]!.title].some((text) => filter.test(text));
  }

  /** Lays the tracks out again after what is shown, folded or pinned has changed. */
  relay(): void {
    this.timeline.lay();
    this.timeline.scrollTo(this.timeline.scroll);
    const all = this.timeline.tracks.filter((track) => !track.hidden || this.showHidden).length;
    const shown = this.timeline.tracks.filter((_, index) => this.isShown(index)).length;
    this.someTracks.hidden = shown === all;
    this.someTracks.textContent = `${shown} of ${all} tracks shown: show all`;
    this.timeline.invalidate();
  }

  pin(track: number): void {
    if (!this.pinned.delete(track)) this.pinned.add(track);
    this.relay();
  }

  remove(track: number): void {
    this.removed.add(track);
    this.relay();
  }

  /** Only tracks whose label (or section, or thread's name) has a text in it, or matches a regular expression. */
  setFilter(text: string): void {
    try {
      this.filter = text === "" ? null : new RegExp(text, "i");
    } catch {
      this.filter = new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
    }
    this.relay();
  }

  showAllTracks(): void {
    this.removed.clear();
    this.filter = null;
    this.timeline.gutter.clearFilter();
    this.relay();
  }

  toggle(section: number, track: number): void {
    if (track >= 0 && this.timeline.tracks[track]!.lanes < 2) return;
    const key = `${section}:${track}`;
    if (!this.folded.delete(key)) this.folded.add(key);
    this.relay();
  }

  async setHidden(show: boolean): Promise<void> {
    if (show) await this.timeline.loadHidden();
    this.showHidden = show;
    this.relay();
  }
}
