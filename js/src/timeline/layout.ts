/** Where sections, tracks and lanes lie, from the top of the timeline, in pixels. */

import type { Store, Track } from "./data";

export const HEADER_PX = 22;
export const LANE_PX = 17;
/** A folded track: all of its lanes, pressed flat. */
export const FOLDED_PX = 14;
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
  boxes: LaneBox[];
}

export interface LayoutState {
  sections: readonly { title: string }[];
  tracks: readonly Track[];
  storeOf(track: Track): Store | null;
  isCollapsed(section: number, track: number): boolean;
  /** Whether a track takes part at all. */
  isShown(track: Track): boolean;
}

export interface Layout {
  bands: Band[];
  height: number;
}

export function layOut(state: LayoutState): Layout {
  const bands: Band[] = [];
  let top = 0;
  state.sections.forEach((_, section) => {
    const members = state.tracks.flatMap((track, index) =>
      track.section === section && state.isShown(track) && state.storeOf(track) !== null ? [index] : [],
    );
    if (members.length === 0) return;
    const steps = members.every((index) => state.tracks[index]!.kind === "steps");
    const collapsed = !steps && state.isCollapsed(section, -1);
    if (!steps) {
      const boxes = collapsed ? strips(state, members, top + 3, HEADER_PX - 6) : [];
      bands.push({ kind: "section", section, track: -1, top, height: HEADER_PX, collapsed, boxes });
      top += HEADER_PX;
    }
    if (collapsed) return;
    for (const index of members) {
      const track = state.tracks[index]!;
      const store = state.storeOf(track)!;
      const folded = state.isCollapsed(section, index);
      const inner = folded ? FOLDED_PX : track.lanes * LANE_PX;
      const boxes: LaneBox[] = [];
      for (let lane = 0; lane < track.lanes; lane++) {
        const height = inner / track.lanes;
        const y = top + ABOVE_PX + lane * height;
        boxes.push({ store, lane: track.lane + lane, track: index, top: y, bottom: y + (folded ? height : height - 1), flat: folded });
      }
      const height = ABOVE_PX + inner + BELOW_PX;
      bands.push({ kind: "track", section, track: index, top, height, collapsed: folded, boxes });
      top += height;
    }
  });
  return { bands, height: top };
}

/** The outermost events of each track, one thin line a track: what a folded section still shows. */
function strips(state: LayoutState, members: number[], top: number, height: number): LaneBox[] {
  const each = height / members.length;
  return members.map((index, i) => {
    const track = state.tracks[index]!;
    const y = top + i * each;
    return { store: state.storeOf(track)!, lane: track.lane, track: index, top: y, bottom: y + each, flat: true };
  });
}

/** The bands that cross `[top, bottom)`; they ascend. */
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
