"""What the profiler noted with each event, stat by stat, ready to be shown one event at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .kernels import readable_details
from .memory import data_type_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..xspace.stats import Stats
    from .events import Trace
    from .timeline import Timeline

#: Stats that only tie events to each other or to memory: numbers that mean nothing to a reader.
ID_STATS = frozenset(
    {
        "_p", "_pt", "_c", "_ct", "_r", "id", "parent_id", "element_id", "step_id", "addr", "context_id",
        "correlation_id", "group_id", "run_id", "program_id", "symbol_id", "uid",
    }
)  # fmt: skip


@dataclass(frozen=True)
class StatColumn:
    """One stat of all events that have it. n events, V distinct values.

    Attributes
    ----------
    name : str
        Such as ``shape``.
    event : int64 array (n)
        Events of the trace, ascending.
    code : int32 array (n)
        Which of the texts each has.
    texts : list of str (V)
        The values, sorted.
    """

    name: str
    event: NDArray[np.int64]
    code: NDArray[np.int32]
    texts: list[str]


def first_row(data: Timeline) -> int:
    """Return the row of the timeline's events that is the trace's first event; the others follow in their order."""
    tracks = data.tracks
    return int(tracks.loc[tracks["kind"] == "steps", "count"].sum())


def stat_columns(trace: Trace) -> tuple[list[StatColumn], dict[str, int]]:
    """Return the stats worth reading of a trace's events, those of the events' metadata too.

    Returns
    -------
    columns : list of StatColumn
        A name may come twice: for stats of events, and for stats of their metadata.
    left_out : dict
        Number of events by name of stat, for those that are ids (`ID_STATS`).
    """
    columns = []
    left_out = {}
    for name in trace.space.stats.names:
        if name in ID_STATS:
            left_out[name] = len(trace.owners(name))
            continue
        owner, code, values = _texts(trace.space.stats, name)
        event = trace.rank[owner].astype(np.int64)
        order = np.argsort(event, kind="stable")[int((event < 0).sum()) :]
        columns.append(_column(name, event[order], code[order], values))
    by_meta = np.argsort(trace.meta, kind="stable") if len(trace.space.meta_stats) else np.empty(0, np.int64)
    for name in trace.space.meta_stats.names:
        owner, code, values = _texts(trace.space.meta_stats, name)
        of_meta = np.full(len(trace.space.meta_name), -1, np.int64)
        of_meta[owner] = code
        event = np.sort(by_meta[of_meta[trace.meta[by_meta]] >= 0])
        if name in ID_STATS:
            left_out[name] = left_out.get(name, 0) + len(event)
        else:
            columns.append(_column(name, event, of_meta[trace.meta[event]], values))
    return [column for column in columns if len(column.event)], {name: n for name, n in left_out.items() if n}


def stat_counts(trace: Trace) -> dict[str, int]:
    """Return the number of a trace's events that have each stat, those of the events' metadata too."""
    counts: dict[str, int] = {}
    for name in trace.space.stats.names:
        counts[name] = int(np.count_nonzero(trace.rank[trace.space.stats.owners(name)] >= 0))
    if len(trace.space.meta_stats):
        uses = np.bincount(trace.meta, minlength=len(trace.space.meta_name))
        for name in trace.space.meta_stats.names:
            counts[name] = counts.get(name, 0) + int(uses[np.unique(trace.space.meta_stats.owners(name))].sum())
    return {name: n for name, n in counts.items() if n}


def _texts(stats: Stats, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Owners of a stat, ascending, the code of each one's value, and the values as texts."""
    owner, number = stats.ints(name)
    distinct, code = np.unique(number, return_inverse=True)
    word = data_type_name if name == "data_type" else str
    owners, codes, values = [owner], [code], [word(value) for value in distinct.tolist()]
    # A stat's type may differ from event to event.
    owner, real = stats.floats(name)
    other = ~np.isin(owner, owners[0]) if len(owners[0]) else np.ones(len(owner), np.bool_)
    if other.any():
        distinct_reals, code = np.unique(real[other], return_inverse=True)
        owners.append(owner[other])
        codes.append(code + len(values))
        values += [f"{value:.6g}" for value in distinct_reals.tolist()]
    owner, text_code, texts = stats.strings(name)
    if name == "kernel_details":
        texts, again = _distinct([readable_details(text) for text in texts])
        text_code = again[text_code]
    owners.append(owner)
    codes.append(text_code.astype(np.int64) + len(values))
    values += texts
    owner, code = np.concatenate(owners), np.concatenate(codes)
    order = np.argsort(owner, kind="stable")
    return owner[order], code[order], values


def _distinct(texts: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    """Texts without repeats, and which of them each one is."""
    at = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return list(at), np.array([at[text] for text in texts], np.int32)


def _column(name: str, event: NDArray[np.int64], code: NDArray[np.int64], values: list[str]) -> StatColumn:
    used = np.unique(code).tolist()
    used.sort(key=values.__getitem__)
    again = np.zeros(len(values), np.int32)
    again[used] = np.arange(len(used), dtype=np.int32)
    return StatColumn(name, event, again[code], [values[i] for i in used])
