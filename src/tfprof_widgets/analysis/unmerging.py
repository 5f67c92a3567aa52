"""Taking bars of a thinned timeline apart again: which events come in their place, for a window of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .thinning import Thinned
    from .timeline import Timeline


@dataclass(frozen=True)
class Unmerged:
    """Bars, and the events that they stand for.

    Attributes
    ----------
    bars : int64 array (B)
        Rows of the thinned timeline's events, ascending.
    rows : int64 array (R)
        Rows of the whole timeline's events, ascending: all those of the bars.
    tracks : int64 array (T, 2)
        First and number of those of each track of the thinned timeline, as places in ``rows``.
    """

    bars: NDArray[np.int64]
    rows: NDArray[np.int64]
    tracks: NDArray[np.int64]


class Unmerger:
    """Finds what the bars of a thinned timeline stand for.

    Parameters
    ----------
    thin : Thinned
        The timeline with bars.
    whole : Timeline
        What it was made of.
    """

    def __init__(self, thin: Thinned, whole: Timeline) -> None:
        self._thin = thin
        self._whole = whole
        start, duration, lane = (whole.events[name].to_numpy() for name in ("start_ps", "duration_ps", "lane"))
        # A lane's events in time are those that its bars share out: each bar has those from its first to its last.
        tracks = whole.tracks[~whole.tracks["hidden"].to_numpy(bool) & (whole.tracks["kind"] != "counter").to_numpy()]
        tracks = tracks.sort_values("first")
        track = np.repeat(np.arange(len(tracks)), tracks["count"].to_numpy())
        order = np.argsort(track * (int(lane.max(initial=0)) + 1) + lane, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        by_place = np.argsort(place[thin.first])
        self._bar = np.empty(len(order), np.int64)
        self._bar[order] = np.repeat(by_place, thin.count[by_place])
        self._merged = thin.count > 1
        # Events of a lane don't overlap: the last one ends last.
        self._start_ps = start[thin.first]
        self._end_ps = start[thin.last] + duration[thin.last]
        of_whole = whole.tracks.iloc[thin.track]
        self._first = np.where(of_whole["kind"] == "counter", 0, of_whole["first"].to_numpy())
        self._end = np.where(of_whole["kind"] == "counter", 0, (of_whole["first"] + of_whole["count"]).to_numpy())

    def count(self, from_ps: float, to_ps: float) -> int:
        """Return how many events the bars stand for that reach into a window."""
        return int(self._thin.count[self._within(from_ps, to_ps)].sum())

    def within(self, from_ps: float, to_ps: float, keep: Sequence[int] = ()) -> Unmerged:
        """Return the bars that reach into a window, taken apart.

        Parameters
        ----------
        from_ps, to_ps : float
            The window.
        keep : sequence of int
            Rows of the whole timeline's events that are wanted too, wherever they are.
        """
        wanted = self._within(from_ps, to_ps)
        more = np.array([row for row in keep if 0 <= row < len(self._bar)], np.int64)
        wanted[self._bar[more]] |= self._merged[self._bar[more]]
        rows = np.flatnonzero(wanted[self._bar])
        first, end = np.searchsorted(rows, self._first), np.searchsorted(rows, self._end)
        return Unmerged(np.flatnonzero(wanted), rows, np.column_stack((first, end - first)))

    def _within(self, from_ps: float, to_ps: float) -> NDArray[np.bool_]:
        return self._merged & (self._start_ps < to_ps) & (self._end_ps > from_ps)
