"""A timeline with fewer events: the important ones one by one, the others merged into bars of the same busy time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .details import StatColumn, first_row
from .nesting import stable_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .counters import CounterTrack
    from .timeline import Timeline

#: The stat of a bar: how many events it stands for.
MERGED = "merged_events"

# Of two events of one length an op counts more than another event, and one of a device more than one of a host.
_OP_WEIGHT = 2.0
_DEVICE_WEIGHT = 4.0
# Kinds of tracks whose events are all kept.
_KEPT = ("steps", "own")
_FINEST = 1 << 14
# Changes of counters, for each row of events.
_COUNTERS_SHARE = 0.25
_PS_PER_MS = 1e9


@dataclass(frozen=True)
class Thinned:
    """A timeline with fewer events. n rows of N events.

    Attributes
    ----------
    data : Timeline
        With n events, and without the thread pools' bookkeeping. A bar begins where its first event does, and is as long as all of its
        events together: it ends before the next event of its lane.
    count : int64 array (n)
        Events that each row stands for.
    first, last : int64 arrays (n)
        The first and last of them: rows of the whole timeline's events.
    track : int64 array
        Row in the whole timeline's tracks of each track.
    """

    data: Timeline
    count: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    track: NDArray[np.int64]

    @property
    def n_alone(self) -> int:
        """Events of the trace that are there one by one."""
        own = self.data.tracks[self.data.tracks["kind"].isin(["host", "device"])]
        rows = [self.count[first : first + count] for first, count in zip(own["first"], own["count"], strict=True)]
        return int(sum((count == 1).sum() for count in rows))

    @property
    def stats(self) -> StatColumn | None:
        """How many events each bar stands for, as a stat of the timeline's events."""
        bars = np.flatnonzero(self.count > 1)
        if not len(bars):
            return None
        texts = [f"{count:,}" for count in np.unique(self.count[bars]).tolist()]
        order = sorted(range(len(texts)), key=texts.__getitem__)
        code = np.empty(len(texts), np.int32)
        code[order] = np.arange(len(texts), dtype=np.int32)
        which = np.unique(self.count[bars], return_inverse=True)[1]
        return StatColumn(MERGED, bars - first_row(self.data), code[which], sorted(texts))

    def in_whole(self, selection: Mapping[str, Any], whole: Timeline) -> dict[str, Any]:
        """Return a selection in this timeline as one in the whole timeline; a bar stands for its events.

        Rows beyond this timeline's are those of the whole that a page got since: they follow in their order.
        """
        result = dict(selection)
        if "row" in selection and int(selection["row"]) >= len(self.count):
            result["track"] = int(self.track[int(selection["track"])])
            result["row"] = int(selection["row"]) - len(self.count)
        elif "row" in selection:
            track = int(self.track[int(selection["track"])])
            row = int(selection["row"])
            result["track"], result["row"] = track, int(self.first[row])
            if self.count[row] > 1:
                del result["track"], result["row"]
                start, duration, lane = (whole.events[name].to_numpy() for name in ("start_ps", "duration_ps", "lane"))
                first, last = self.first[row], self.last[row]
                result["range_ms"] = [(start[first] + duration[first]) / _PS_PER_MS, start[last] / _PS_PER_MS]
                result["lanes"] = [{"track": track, "first": int(lane[first]), "last": int(lane[first])}]
        else:
            result["lanes"] = [{**lanes, "track": int(self.track[int(lanes["track"])])} for lanes in selection["lanes"]]
        return result


def without_bookkeeping(data: Timeline) -> Thinned:
    """Return a timeline with all its events but the thread pools' bookkeeping."""
    rows = np.arange(len(data.events))
    tracks = np.flatnonzero(~data.tracks["hidden"].to_numpy(bool))
    shown = data.tracks.iloc[tracks].reset_index(drop=True)
    thinner = replace(data, tracks=shown, hidden=data.hidden.iloc[:0])
    return Thinned(_with_names_in_use(thinner), np.ones(len(rows), np.int64), rows, rows, tracks)


def thinned(data: Timeline, most: int) -> Thinned:
    """Return a timeline with at most so many rows, or as many as its steps and the user's own events if those are more.

    Parameters
    ----------
    data : Timeline
        All of a host's events.
    most : int
        Rows that the result may have.
    """
    return Thinning(data).to(most)


class Thinning:
    """A timeline to be thinned, more than once: what doesn't depend on how many rows are left is made once.

    Parameters
    ----------
    data : Timeline
        All of a host's events.
    """

    def __init__(self, data: Timeline) -> None:
        self._whole = data

    @cached_property
    def bare(self) -> Thinned:
        """The timeline with all its events but the thread pools' bookkeeping."""
        return without_bookkeeping(self._whole)

    @cached_property
    def _events(self) -> _ByLane:
        """The events lane by lane, in time."""
        tracks, events = self.bare.data.tracks, self._whole.events
        duration, name, lane = (events[c].to_numpy() for c in ("duration_ps", "name", "lane"))
        own = tracks[tracks["kind"] != "counter"].sort_values("first")
        track = np.repeat(own.index.to_numpy(), own["count"].to_numpy())
        weight = np.ones(len(tracks))
        for index, each in own["kind"].items():
            weight[index] = np.inf if each in _KEPT else _DEVICE_WEIGHT if each in ("device", "derived") else 1.0
        is_op = (self._whole.names["role"] == "op").to_numpy()
        # One picosecond more, so that what must be kept is even if it takes no time.
        score = (duration + 1.0) * weight[track] * np.where(is_op[name], _OP_WEIGHT, 1.0)

        key = track * (int(lane.max()) + 1) + lane
        order = stable_order(key)
        key, score = key[order], score[order]
        start = events["start_ps"].to_numpy()[order]
        new_lane = np.append(True, key[1:] != key[:-1])
        stretch = (start * (_FINEST / max(self._whole.span_ps, 1))).astype(np.int32)
        return _ByLane(order, track, start, score, new_lane, np.bitwise_xor(stretch, np.roll(stretch, 1)))

    def to(self, most: int) -> Thinned:
        """Return the timeline with at most so many rows; see `thinned`."""
        if len(self._whole.events) <= most:
            return self.bare
        events = self._events
        begins = np.flatnonzero(events.begins(most))
        count = np.diff(np.append(begins, len(events.order)))

        data, order = self._whole, events.order
        duration = data.events["duration_ps"].to_numpy()[order]
        longest = _longest(duration, begins, count)
        first, last = order[begins], order[begins + count - 1]
        names, code = _with_merged_names(data.names, data.events["name"].to_numpy()[order[longest]], count > 1)
        start, length, track = events.start[begins], np.add.reduceat(duration, begins), events.track[first]
        by_track = np.lexsort((-length, start, track))
        rows = pd.DataFrame(
            {
                "start_ps": start[by_track],
                "duration_ps": length[by_track],
                "name": code[by_track],
                "lane": data.events["lane"].to_numpy()[first[by_track]],
            }
        )
        tracks = self.bare.data.tracks.copy()
        rows_of = np.bincount(track, minlength=len(tracks))
        at = np.flatnonzero(tracks["kind"] != "counter")
        tracks.loc[at, "first"] = np.cumsum(rows_of[at]) - rows_of[at]
        tracks.loc[at, "count"] = rows_of[at]
        counters = _thinned_counters(self._whole.counters, int(most * _COUNTERS_SHARE))
        changes = np.array([len(counter.time_ps) for counter in counters], np.int64)
        # Their tracks are in the counters' order.
        at = np.flatnonzero(tracks["kind"] == "counter")
        tracks.loc[at, "first"] = np.cumsum(changes) - changes
        tracks.loc[at, "count"] = changes
        made = replace(self.bare.data, tracks=tracks, events=rows, names=names, counters=counters)
        return Thinned(_with_names_in_use(made), count[by_track], first[by_track], last[by_track], self.bare.track)


@dataclass(frozen=True)
class _ByLane:
    """Events lane by lane, in time: N of them, and the place of each among the whole timeline's.

    ``score`` tells how much an event counts, inf for those that must be kept. ``stretch`` has the bits in which an event's stretch of time
    (of the finest) differs from that of the event before: those of stretches twice as long are the bits above the lowest, and so on.
    """

    order: NDArray[np.int64]
    track: NDArray[np.int64]  # in the whole timeline's order
    start: NDArray[np.int64]
    score: NDArray[np.float64]
    new_lane: NDArray[np.bool_]
    stretch: NDArray[np.int32]

    def begins(self, most: int) -> NDArray[np.bool_]:
        """Where a row begins: at an event that is kept, after one, in a new lane, in a new stretch of time.

        As many are kept as can be with so many rows at most, and the stretches are as short as they can be with half of the rows.
        """
        must = np.isinf(self.score)
        forced = self.new_lane | must
        forced[1:] |= must[:-1]
        # The stretches: how many bits of theirs don't count.
        n_bits = np.frexp(self.stretch[~forced])[1]
        of_length = np.cumsum(np.bincount(n_bits, minlength=_FINEST.bit_length() + 1)[::-1])[::-1]
        fits = of_length[1:] + np.count_nonzero(forced) <= most / 2
        dropped = int(np.argmax(fits)) if fits.any() else _FINEST.bit_length() - 1
        forced |= (self.stretch >> dropped) != 0

        # An event begins a row if it or the one before it is kept: if the higher score of both is at least that of the last one kept.
        higher = self.score.copy()
        np.maximum(higher[1:], self.score[:-1], out=higher[1:])
        candidates = -_highest(higher[~forced], most)
        n_forced = int(np.count_nonzero(forced))
        low, high = int(np.count_nonzero(must)), most  # kept ones: that many fit, that many more don't
        ranked = _highest(self.score, max(low, high))
        while low + 1 < high:
            middle = (low + high) // 2
            n_more = int(np.searchsorted(candidates, -ranked[middle - 1], side="right"))
            low, high = (middle, high) if n_forced + n_more <= most else (low, middle)
        kept = self.score >= ranked[low - 1] if low > 0 else must
        begins = forced | kept
        begins[1:] |= kept[:-1]
        return begins


def _highest(values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The highest so many, and one more, falling."""
    if n + 1 < len(values):
        values = np.partition(values, len(values) - n - 1)[-n - 1 :]
    return np.sort(values)[::-1]


def _thinned_counters(counters: list[CounterTrack], most: int) -> list[CounterTrack]:
    """Counters with about so many changes together: of each stretch of them the highest and the last, so that no peak is lost."""
    n = sum(len(counter.time_ps) for counter in counters)
    if n <= most:
        return counters
    thin = []
    for counter in counters:
        stretches = max(1, most * len(counter.time_ps) // (2 * n))
        first = np.unique(np.linspace(0, len(counter.time_ps), stretches, endpoint=False).astype(np.int64))
        last = np.append(first[1:], len(counter.time_ps)) - 1
        highest = _longest(counter.value, first, last - first + 1)
        kept = np.union1d(highest, last)
        thin.append(replace(counter, time_ps=counter.time_ps[kept], value=counter.value[kept]))
    return thin


def _longest(duration: NDArray[np.int64], begins: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """The longest event of each row."""
    row = np.repeat(np.arange(len(begins)), count)
    at = np.flatnonzero(duration == np.maximum.reduceat(duration, begins)[row])
    return at[np.unique(row[at], return_index=True)[1]]


def _with_merged_names(
    names: pd.DataFrame, name: NDArray[np.int64], merged: NDArray[np.bool_]
) -> tuple[pd.DataFrame, NDArray[np.int32]]:
    """Add a name for bars whose longest event has a name; return the names, and that of each row."""
    distinct, which = np.unique(name[merged], return_inverse=True)
    of_bars = names.iloc[distinct]
    bars = of_bars.assign(
        name="Merged events, the longest: " + of_bars["name"], short="… " + of_bars["short"], role="merged"
    )
    code = name.astype(np.int32)
    code[merged] = len(names) + which
    return pd.concat([names, bars], ignore_index=True), code


def _with_names_in_use(data: Timeline) -> Timeline:
    """Leave out names that no event has any more; the commonest first."""
    name = data.events["name"].to_numpy()
    uses = np.bincount(name, minlength=len(data.names))
    used = np.flatnonzero(uses)[np.argsort(-uses[uses > 0], kind="stable")]
    row = np.zeros(len(data.names), np.int32)
    row[used] = np.arange(len(used), dtype=np.int32)
    return replace(data, events=data.events.assign(name=row[name]), names=data.names.iloc[used].reset_index(drop=True))
