"""A profile's events in their order and nesting: what every tool starts from."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from .names import THREADPOOL_PREFIX, UNKNOWN, Ops, parse_ops, search
from .nesting import child_sum, line_order, nest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..xspace import XSpace

# Ids of the lines that TensorFlow derives from others (Steps, TensorFlow Ops, …): 0xDEADBEEF as int32, and up.
DERIVED_LINE_ID = -559038737
_DERIVED_LINES = 400
DERIVED_LINE_NAMES = frozenset(
    {
        "Steps", "Launch Stats", "Framework Name Scope", "Framework Ops", "TensorFlow Name Scope",
        "TensorFlow Ops", "XLA Modules", "XLA Ops", "Source code",
    }
)  # fmt: skip


class Trace:
    """One host's events, ordered and nested.

    What thread pools note about themselves (over half of a CPU capture's events, all of them instants of no use to any
    tool but the timeline) is left out; `bookkeeping` has it, and `whole` everything.

    Events are ordered by line, start, and longest first; every array below is in that order
    (``order`` leads back to the file's). Planes, lines and metadata are those of ``space``.

    Parameters
    ----------
    space : XSpace
        The profile as read.
    host : str
        What to call the host; the stored name by default.
    keep : bool array (E), optional
        The file's events that the trace has; by default all but the thread pools' bookkeeping.

    Attributes
    ----------
    order : int64 array (N) or None
        Index in the file of each event; None if it is the same.
    line, meta : int32 arrays (N)
        Line (ascending) and metadata row.
    start_ps, duration_ps : int64 arrays (N)
        Start since the start of the trace, and duration.
    """

    def __init__(self, space: XSpace, host: str = "", keep: NDArray[np.bool_] | None = None) -> None:
        self.space = space
        self.host = host or space.hostname or "localhost"
        self.order: NDArray[np.int64] | None = None
        self.line, self.meta = space.event_line, space.event_meta
        self.start_ps, self.duration_ps = space.event_start_ps, space.event_duration_ps
        keep = ~self._is_bookkeeping if keep is None else keep
        if not keep.all():
            self._take(np.flatnonzero(keep))
        by_start = line_order(self.line, self.start_ps, self.duration_ps)
        if by_start is not None:
            self._take(by_start)

    def _take(self, index: NDArray[np.int64]) -> None:
        self.order = index if self.order is None else self.order[index]
        self.line, self.meta = self.line[index], self.meta[index]
        self.start_ps, self.duration_ps = self.start_ps[index], self.duration_ps[index]

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.start_ps)

    @property
    def bookkeeping(self) -> Trace:
        """The thread pools' bookkeeping alone, made anew at each call."""
        return Trace(self.space, self.host, self._is_bookkeeping)

    @property
    def whole(self) -> Trace:
        """All events of the file, bookkeeping too, made anew at each call."""
        return Trace(self.space, self.host, np.ones(self.space.n_events, np.bool_))

    @cached_property
    def _is_bookkeeping(self) -> NDArray[np.bool_]:
        """Which of the file's events are the thread pools' bookkeeping, shape (E,)."""
        return self.meta_search(f"^{THREADPOOL_PREFIX}")[self.space.event_meta]

    # ---- nesting -------------------------------------------------------------------------------------------

    @cached_property
    def _nesting(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        return nest(self.line, self.start_ps, self.duration_ps)

    @property
    def depth(self) -> NDArray[np.int32]:
        """Number of events of the line that enclose each event, shape (N,)."""
        return self._nesting[0]

    @property
    def parent(self) -> NDArray[np.int32]:
        """Innermost enclosing event of the line; -1 if there is none. Shape (N,)."""
        return self._nesting[1]

    @cached_property
    def line_is_nested(self) -> NDArray[np.bool_]:
        """Lines on which no event overlaps another in part, shape (L,)."""
        nested = np.ones(len(self.space.line_plane), np.bool_)
        nested[self.line[self._nesting[2] != self.end_ps]] = False
        return nested

    @cached_property
    def self_ps(self) -> NDArray[np.int64]:
        """Duration less that of the direct children, shape (N,); of every event, op or not."""
        _, parent, effective_end = self._nesting
        return self.duration_ps - child_sum(parent, effective_end - self.start_ps)

    @cached_property
    def end_ps(self) -> NDArray[np.int64]:
        """End of each event since the start of the trace, shape (N,)."""
        return self.start_ps + self.duration_ps

    # ---- planes and lines ----------------------------------------------------------------------------------

    @cached_property
    def plane_is_host(self) -> NDArray[np.bool_]:
        """Planes of host threads, shape (P,)."""
        return np.array(
            [re.match(r"/host:(?!metadata)|Host CPUs|Syscalls", n) is not None for n in self.space.plane_name], bool
        )

    @cached_property
    def plane_is_device(self) -> NDArray[np.bool_]:
        """Planes of devices (GPU, TPU, custom), shape (P,)."""
        return np.array([n.startswith("/device:") for n in self.space.plane_name], bool)

    @cached_property
    def line_is_host(self) -> NDArray[np.bool_]:
        """Lines that are host threads, shape (L,)."""
        return self.plane_is_host[self.space.line_plane]

    @cached_property
    def line_is_derived(self) -> NDArray[np.bool_]:
        """Lines that repeat others (Steps, TensorFlow Ops, …) and must not be counted again, shape (L,).

        Those of devices go by id or name; hosts have some too (what XLA compiled for the CPU), which go by id alone.
        """
        index = self.space.line_id - DERIVED_LINE_ID
        by_id = ((index >= 0) & (index < _DERIVED_LINES)) | (
            (index >= 2**32) & (index < 2**32 + _DERIVED_LINES)  # the same as uint32
        )
        named = np.array([n in DERIVED_LINE_NAMES for n in self.space.line_name], bool)
        # A TPU has no streams: what it ran is on its line of XLA ops.
        on_tpu = np.array([n.startswith("/device:TPU") for n in self.space.plane_name], bool)[self.space.line_plane]
        tpu_ops = on_tpu & np.array([n in ("XLA Ops", "Async XLA Ops") for n in self.space.line_name], bool)
        return (by_id | (named & self.plane_is_device[self.space.line_plane])) & ~tpu_ops

    @cached_property
    def line_is_stream(self) -> NDArray[np.bool_]:
        """Device lines that hold what ran: streams, not derived lines and no bookkeeping, shape (L,)."""
        name = self.space.line_name
        real = np.array([not n.startswith(("CUPTI overhead", "_counters_")) for n in name], bool)
        return self.plane_is_device[self.space.line_plane] & ~self.line_is_derived & real

    @cached_property
    def main_line(self) -> int:
        """The thread that runs the user's Python: the one with most function calls, marks, or events; -1 if none."""
        host = np.flatnonzero(self.line_is_host)
        if not len(host):
            return -1
        events = np.diff(self.line_first_event)
        calls = np.zeros(len(events), np.int64)
        for stat in ("tf_function_call", "step_num", "is_func", "eager_op"):
            owners = self.owners(stat)
            calls += np.bincount(self.line[owners], minlength=len(events))
        python = np.array([n.startswith("python") for n in self.space.line_name], bool)
        best = max(host, key=lambda i: (calls[i], python[i], events[i]))
        return int(best) if calls[best] or python[best] else -1

    @cached_property
    def line_first_event(self) -> NDArray[np.int64]:
        """First event of each line, and the number of events at the end: shape (L + 1,)."""
        # In the lines' own type: another would convert all of them.
        return np.searchsorted(self.line, np.arange(len(self.space.line_plane) + 1, dtype=np.int32))

    def events_of(self, lines: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Indices of the events on the lines of a mask of shape (L,)."""
        first = self.line_first_event
        return np.concatenate([np.arange(first[i], first[i + 1]) for i in np.flatnonzero(lines)] or [first[:0]])

    # ---- names ---------------------------------------------------------------------------------------------

    @cached_property
    def ops(self) -> Ops:
        """The op recognised in each metadata row's name."""
        return parse_ops(self.space.meta_name)

    @cached_property
    def meta_is_op(self) -> NDArray[np.bool_]:
        """Metadata rows whose name is an op of some category, shape (M,)."""
        return self.ops.category != UNKNOWN

    def meta_matches(self, rule: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Mask over the metadata rows whose name fulfils a rule, shape (M,)."""
        return np.fromiter(map(rule, self.space.meta_name), bool, len(self.space.meta_name))

    @cached_property
    def _meta_name(self) -> pa.Array:
        return pa.array(self.space.meta_name, pa.string())

    def meta_search(self, pattern: str, *, ignore_case: bool = False) -> NDArray[np.bool_]:
        """Mask over the metadata rows in whose name a regular expression is found (`names.search`), shape (M,)."""
        return search(self._meta_name, pattern, ignore_case=ignore_case)

    def named(self, *names: str) -> NDArray[np.int64]:
        """Indices of the events with one of these names."""
        wanted = set(names)
        return np.flatnonzero(self.meta_matches(wanted.__contains__)[self.meta])

    # ---- stats ---------------------------------------------------------------------------------------------

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """Index here of each of the file's events, shape (E,); -1 for those left out."""
        rank = np.full(self.space.n_events, -1, np.int32)
        rank[slice(None) if self.order is None else self.order] = np.arange(len(self), dtype=np.int32)
        return rank

    def _ordered(self, owner: NDArray[np.int64], *values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Bring owners (in the file's order) and what belongs to them into this trace's order."""
        if self.order is None:
            return owner, *values
        event = self.rank[owner].astype(np.int64)
        here = event >= 0
        if not here.all():
            event, values = event[here], tuple(v[here] for v in values)
        if (event[1:] < event[:-1]).any():
            by_event = np.argsort(event, kind="stable")
            event, values = event[by_event], tuple(v[by_event] for v in values)
        return event, *values

    def owners(self, stat: str) -> NDArray[np.int64]:
        """Events that carry a stat, ascending."""
        return self._ordered(self.space.stats.owners(stat))[0]

    def ints(self, stat: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Events with an integer stat and its values (see `Stats.ints`), ascending by event."""
        event, value = self._ordered(*self.space.stats.ints(stat))
        return event, value

    def floats(self, stat: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Events with a numeric stat and its values as float64, ascending by event."""
        event, value = self._ordered(*self.space.stats.floats(stat))
        return event, value

    def strings(self, stat: str) -> tuple[NDArray[np.int64], NDArray[np.int32], list[str]]:
        """Events with a string stat, the code of each one's text, and the texts; ascending by event."""
        owner, code, texts = self.space.stats.strings(stat)
        event, code = self._ordered(owner, code)
        return event, code, texts

    def dense_ints(self, stat: str, missing: int = 0) -> NDArray[np.int64]:
        """An integer stat as an array over all events, shape (N,)."""
        event, value = self.ints(stat)
        dense = np.full(len(self), missing, np.int64)
        dense[event] = value
        return dense

    def stats_of(self, event: int) -> dict[str, Any]:
        """All stats of one event, those of its metadata included: for showing its details."""
        source = int(event if self.order is None else self.order[event])
        return {**self.space.meta_stats.of(int(self.meta[event])), **self.space.stats.of(source)}


def line_labels(space: XSpace) -> list[str]:
    """Return what each line is called; those without a name go by their id."""
    return [name or f"thread {line_id}" for name, line_id in zip(space.line_name, space.line_id, strict=True)]


def events_table(trace: Trace, step: NDArray[np.int64] | None = None) -> pd.DataFrame:
    """All events of the file, bookkeeping too: ``plane``, ``line``, ``name``, ``start_us``, ``duration_us``, ``depth``, ``step``.

    Parameters
    ----------
    trace : Trace
        The events.
    step : int64 array (N), optional
        The step of each event; -1 for none.
    """
    whole = trace.whole
    space = trace.space

    def categorical(codes: NDArray[np.int32], labels: list[str]) -> pd.Categorical:
        distinct = list(dict.fromkeys(labels))
        position = {label: i for i, label in enumerate(distinct)}
        recode = np.array([position[label] for label in labels], np.int32)
        return pd.Categorical.from_codes(
            recode[codes] if len(recode) else codes, categories=pd.Index(distinct, dtype=object)
        )

    # The last one is for what the trace leaves out.
    of_event = np.append(np.full(len(trace), -1) if step is None else step, -1)
    of_whole = of_event[trace.rank if whole.order is None else trace.rank[whole.order]]
    return pd.DataFrame(
        {
            "plane": categorical(space.line_plane[whole.line], space.plane_name),
            "line": categorical(whole.line, line_labels(space)),
            "name": categorical(whole.meta, space.meta_name),
            "start_us": whole.start_ps / 1e6,
            "duration_us": whole.duration_ps / 1e6,
            "depth": whole.depth,
            "step": pd.arrays.IntegerArray(np.maximum(of_whole, 0), of_whole < 0),
        }
    )
