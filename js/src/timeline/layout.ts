/** Where sections, tracks and lanes lie, from the top of the timeline, in pixels. */

import type { Store, Track } from "./data";

export const HEADER_PX = 22;
export const LANE_PX = 17;
/** A folded track: all of its lanes, pressed flat. */
export const FOLDED_PX = 14;
const COUNTER_PX = 25;
const ABOVE_PX = 3;
const BELOW_PX = 4;

export interface LaneBox {
  store: Store;
  /** In the store. */
  lane: number;
  track: number;
  /** Pixels from the top of the timeline. */
  top: number;
  bottom: number;
  /** It stays where it is while the others scroll. */
  pinned: boolean;
  /** Too flat for names and for the pointer to tell events apart by their lane. */
  flat: boolean;
}

export interface Band {
  kind: "section" | "track";
  section: number;
  /** -1 for a section. */
  track: number;
  top: number;
  height: number;
  collapsed: boolean;
  pinned: boolean;
  /** It is among the pinned ones, even if there is no room to keep it on top. */
  wanted?: boolean;
  boxes: LaneBox[];
  /** Tracks of counters in a folded section. */
  counters?: number[];
}

export interface LayoutState {
  sections: readonly { title: string }[];
  tracks: readonly Track[];
  storeOf(track: Track): Store | null;
  isCollapsed(section: number, track: number): boolean;
  /** Whether a track takes part at all. */
  isShown(index: number): boolean;
  /** Whether a track is to stay on top of all. */
  isPinned(index: number): boolean;
  /** Pixels that those on top may take. */
  mostPinned: number;
}

export interface Layout {
  /** On top of all, whatever is scrolled to. */
  pinned: Band[];
  pinnedHeight: number;
  /** The others; their places begin below those pinned. */
  bands: Band[];
  height: number;
}

export function layOut(state: LayoutState): Layout {
  const shown = state.tracks.flatMap((track, index) => (state.isShown(index) && (track.kind === "counter" || state.storeOf(track) !== null) ? [index] : []));
  let top = 0;
  const add = (bands: Band[], index: number, pinned: boolean) => {
    const band = trackBand(state, index, top, pinned);
    bands.push(band);
    top += band.height;
  };
  const pinned: Band[] = [];
  const bands: Band[] = [];
  const over: number[] = [];
  for (const index of shown) {
    if (!state.isPinned(index)) continue;
    if (top + trackBand(state, index, top, true).height <= state.mostPinned) add(pinned, index, true);
    else over.push(index);
  }
  const pinnedHeight = top;
  // Those that find no room there are the first of what scrolls.
  for (const index of over) add(bands, index, false);
  for (const band of [...pinned, ...bands]) band.wanted = true;
  state.sections.forEach((_, section) => {
    const members = shown.filter((index) => state.tracks[index]!.section === section && !state.isPinned(index));
    if (members.length === 0) return;
    // Steps need no header.
    const collapsed = state.isCollapsed(section, -1) && members.some((index) => state.tracks[index]!.kind !== "steps");
    if (members.some((index) => state.tracks[index]!.kind !== "steps")) {
      const boxes = collapsed ? strips(state, members, top + 3, HEADER_PX - 6) : [];
      const counters = collapsed ? members.filter((index) => state.tracks[index]!.kind === "counter") : [];
      bands.push({ kind: "section", section, track: -1, top, height: HEADER_PX, collapsed, pinned: false, boxes, counters });
      top += HEADER_PX;
    }
    if (!collapsed) for (const index of members) add(bands, index, false);
  });
  return { pinned, pinnedHeight, bands, height: top };
}

function trackBand(state: LayoutState, index: number, top: number, pinned: boolean): Band {
  const track = state.tracks[index]!;
  if (track.kind === "counter") return { kind: "track", section: track.section, track: index, top, height: COUNTER_PX, collapsed: false, pinned, boxes: [] };
  const store = state.storeOf(track)!;
  const collapsed = state.isCollapsed(track.section, index);
  const inner = collapsed ? FOLDED_PX : track.lanes * LANE_PX;
  const each = inner / track.lanes;
  const boxes: LaneBox[] = [];
  for (let lane = 0; lane < track.lanes; lane++) {
    const y = top + ABOVE_PX + lane * each;
    boxes.push({ store, lane: track.lane + lane, track: index, top: y, bottom: y + (collapsed ? each : each - 1), pinned, flat: collapsed });
  }
  return { kind: "track", section: track.section, track: index, top, height: ABOVE_PX + inner + BELOW_PX, collapsed, pinned, boxes };
}

/** The outermost events of each track, one thin line a track: what a folded section still shows. */
function strips(state: LayoutState, members: number[], top: number, height: number): LaneBox[] {
  members = members.filter((index) => state.tracks[index]!.kind !== "counter");
  const each = height / members.length;
  return members.map((index, i) => {
    const track = state.tracks[index]!;
    const y = top + i * each;
    return { store: state.storeOf(track)!, lane: track.lane, track: index, top: y, bottom: y + each, pinned: false, flat: true };
  });
}

/** The bands, other than pinned ones, that cross `[top, bottom)`; they ascend. */
export function bandsBetween(layout: Layout, top: number, bottom: number): Band[] {
  const { bands } = layout;
  let low = 0;
  let high = bands.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (bands[middle]!.top + bands[middle]!.height <= top) low = middle + 1;
    else high = middle;
  }
  let stop = low;
  while (stop < bands.length && bands[stop]!.top < bottom) stop++;
  return bands.slice(low, stop);
}

/** Where a box or band is on the screen, in pixels of the frame. */
export function onScreen(place: { top: number; pinned: boolean }, scroll: number): number {
  return place.pinned ? place.top : place.top - scroll;
}
