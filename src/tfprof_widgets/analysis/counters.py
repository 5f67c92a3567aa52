"""Numbers that change over time: memory in use, fill of tf.data's buffers, work of the executor's threads."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from .own_tracks import with_section

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from .events import Trace
    from .timeline import Timeline

SECTION = "Counters"
_EXECUTOR = "ExecutorState::Process"
_BUFFER = "buffered_elements"


@dataclass(frozen=True)
class CounterTrack:
    """A number over time. n changes.

    Attributes
    ----------
    label, hint : str
        What it counts, in short and in full.
    unit : str
        ``bytes`` or empty.
    time_ps : int64 array (n)
        When it changed, ascending, since the start of the trace.
    value : int64 array (n)
        From then on; not negative.
    """

    label: str
    hint: str
    unit: str
    time_ps: NDArray[np.int64]
    value: NDArray[np.int64]


def counters(trace: Trace, memory: pd.DataFrame) -> list[CounterTrack]:
    """Return what a trace counts.

    Parameters
    ----------
    trace : Trace
        A host's events.
    memory : DataFrame
        Its allocations, as in ``report.memory``.
    """
    found = []
    time_ps = np.rint(memory["time_ms"].to_numpy() * 1e9).astype(np.int64)
    in_use, allocator = memory["in_use_bytes"].to_numpy(), memory["allocator"].cat.codes.to_numpy()
    for code, name in enumerate(memory["allocator"].cat.categories):
        mine = np.flatnonzero(allocator == code)
        hint = f"Memory in use of the allocator {name}"
        found.append(_counter(f"Memory {name}", hint, "bytes", time_ps[mine], in_use[mine]))
    event, fill = trace.ints(_BUFFER)
    for meta in np.unique(trace.meta[event]).tolist():
        mine = trace.meta[event] == meta
        name = trace.space.meta_name[meta].partition("#")[0]
        hint = f"Elements that wait in the buffer of {name}"
        found.append(_counter(f"Buffer {name.rpartition('::')[2]}", hint, "", trace.start_ps[event[mine]], fill[mine]))
    event = trace.named(_EXECUTOR)
    if len(event):
        outermost = event[~np.isin(trace.parent[event], event)]
        time = np.concatenate([trace.start_ps[outermost], trace.end_ps[outermost]])
        change = np.repeat([1, -1], len(outermost))
        order = np.lexsort((change, time))
        running = np.cumsum(change[order])
        hint = "Threads that run TensorFlow's executor at the same time"
        found.append(_counter("Executor threads", hint, "", time[order], running))
    found.sort(key=_place)
    return [counter for counter in found if len(counter.time_ps) and counter.value.any()]


def _place(counter: CounterTrack) -> tuple[int, list[str | int]]:
    """Memory first, then buffers, then threads; of those the second before the tenth."""
    parts: list[str | int] = [*re.split(r"([0-9]{1,9})", counter.label)]
    parts[1::2] = [int(number) for number in parts[1::2]]
    return ["Memory", "Buffer", "Executor"].index(counter.label.partition(" ")[0]), parts


def _counter(label: str, hint: str, unit: str, time_ps: NDArray[np.int64], value: NDArray[np.int64]) -> CounterTrack:
    """Keep the last value of each time, and of those only the changes."""
    order = np.argsort(time_ps, kind="stable")
    time_ps, value = time_ps[order], np.maximum(value[order], 0)
    last = np.append(time_ps[1:] != time_ps[:-1], True)[: len(time_ps)]
    time_ps, value = time_ps[last], value[last]
    changed = np.concatenate([[True], value[1:] != value[:-1]])[: len(value)]
    return CounterTrack(label, hint, unit, time_ps[changed], value[changed])


def with_counters(data: Timeline, found: list[CounterTrack]) -> Timeline:
    """Return the timeline with a section of counters, below the steps: tracks of the kind ``counter``.

    The ``first`` and ``count`` of such a track are those of its changes in all counters one after another.
    """
    if not found:
        return data
    n, count = len(found), [len(counter.time_ps) for counter in found]
    tracks: dict[str, list[Any]] = {
        "label": [counter.label for counter in found],
        "hint": [counter.hint for counter in found],
        "kind": ["counter"] * n,
        "hidden": [False] * n,
        "first": [0, *accumulate(count[:-1])],
        "count": count,
        "lanes": [1] * n,
        "busy_ps": [0] * n,
    }
    return replace(with_section(data, SECTION, tracks), counters=found)
