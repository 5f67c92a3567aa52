"""What the trace timeline draws: sections and tracks, and the events in lanes that never overlap."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .derived_lines import derived_lines
from .device import DeviceEvents, device_events
from .intervals import union_ps
from .names import parse_op
from .nesting import disjoint_times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .counters import CounterTrack
    from .derived_lines import DerivedLines
    from .events import Trace
    from .steps import Steps

# Lines of a device from the top: what the user wrote first, then what the compiler made of it, then what ran.
_DEVICE_LINES = (
    "Steps", "Framework Name Scope", "TensorFlow Name Scope", "Framework Ops", "TensorFlow Ops",
    "XLA Modules", "XLA Ops", "Source code",
)  # fmt: skip
_LAST_LINES = ("Launch Stats", "CUPTI overhead", "_counters_")
_STREAM_RANK = len(_DEVICE_LINES)
# More than there are lines: ranks are the kind of line times this, plus a place among its kind.
_RANK = 1 << 32

# Pools of host threads from the top, after the thread that runs the user's Python.
_HOST_POOLS = (
    r"python",
    r"tf_Compute|tf_gpu_private|tf_pjrt|py_xla_execute|pjrt|XLA",
    r"tf_numa|Eigen",
    r"tf_data",
)

_PYTHON_CALL = re.compile(r"\$(?!\$)(?:.+:\d+|\S+) (\S+)", re.DOTALL)

TRACK_COLUMNS = ("section", "label", "hint", "kind", "hidden", "first", "count", "lanes", "busy_ps")
_NAME_COLUMNS = ("name", "short", "type", "op", "role")
_TRACK_TYPES: dict[str, Any] = {
    "label": "str",
    "hint": "str",
    "kind": "str",
    "hidden": np.bool_,
}  # the others are integers


@dataclass(frozen=True)
class Section:
    """Tracks of one plane: a device, the host's threads, or the steps.

    Attributes
    ----------
    title : str
        Such as ``/device:GPU:0 (pid 0)``, ``Host Threads``, ``Steps``.
    collapsed : bool
        Whether it is folded to begin with.
    """

    title: str
    collapsed: bool = False


@dataclass(frozen=True)
class Timeline:
    """Everything on the timeline. T tracks, N events, H hidden events, K names.

    Attributes
    ----------
    sections : list of Section
        From top to bottom.
    tracks : DataFrame (T)
        From top to bottom: ``section`` (index), ``label``, ``hint`` (the full name), ``kind`` (``steps``, ``host``,
        ``device``, ``derived`` (of a device, repeating what is on its streams), ``own`` (the user's), ``bookkeeping``),
        ``hidden`` (its events are in ``hidden``), ``first``, ``count`` (rows of its events), ``lanes``, ``busy_ps`` (time
        with at least one event).
    events, hidden : DataFrame (N), (H)
        ``start_ps``, ``duration_ps``, ``name`` (row of ``names``), ``lane`` (from 0; events of a lane don't overlap),
        ordered by track, start, longest first. ``hidden`` are the thread pools' own notes, folded away at first.
    names : DataFrame (K)
        ``name`` in full, ``short`` (op type, function of a call of Python's, else the same), ``type`` (an op's, else empty), ``op``
        (name of the op, for a kernel that of the op which launched it), ``role`` (``op``, ``step``, ``other``).
    span_ps : int
        From 0 to the last end.
    empty_planes : list of str
        Planes with nothing to draw.
    counters : list of CounterTrack
        One for each track of the kind ``counter``, in their order; see `analysis.counters`.
    """

    sections: list[Section]
    tracks: pd.DataFrame
    events: pd.DataFrame
    hidden: pd.DataFrame
    names: pd.DataFrame
    span_ps: int
    empty_planes: list[str] = field(default_factory=list)
    counters: list[CounterTrack] = field(default_factory=list)


def timeline(
    trace: Trace,
    steps: Steps | None = None,
    devices: DeviceEvents | None = None,
) -> Timeline:
    """Lay out a host's trace.

    Parameters
    ----------
    trace : Trace
        The host's events.
    steps : Steps, optional
        The host's steps. They become the topmost section, and end the events of lines that are derived (`derived_lines`).
    devices : DeviceEvents, optional
        The device events of the trace, if they are at hand.

    Returns
    -------
    Timeline
    """
    devices = device_events(trace) if devices is None else devices
    step_of = None if steps is None or (steps.step_of_event < 0).all() else steps.step_of_event
    derived = derived_lines(trace, step_of)
    names = _Names(trace, devices)
    starts = trace.space.event_start_ps
    origin_ps = min(int(starts.min()), 0) if len(starts) else 0  # damaged files only: never draw left of 0

    sections: list[Section] = []
    shown: list[_Tracks] = []
    if steps is not None and len(steps.table):
        shown.append(_step_tracks(steps.table, names, -origin_ps))
        sections.append(Section("Steps"))
    bookkeeping = trace.bookkeeping
    used = _has_events(trace) | _has_events(bookkeeping)
    own, pools = _line_tracks(trace, bookkeeping, names, origin_ps, _plane_sections(trace, used, sections))
    shown.append(own)
    if len(derived.lines):
        shown.append(_derived_tracks(trace, derived, names, own, origin_ps))

    table, merged = names.table([part.name for part in (*shown, pools)])
    rows, events = _joined(shown, merged, hidden=False)
    hidden_rows, hidden = _joined([pools], merged, hidden=True)
    # A thread's bookkeeping stands below the thread itself.
    rows = sorted(rows + hidden_rows, key=lambda row: (row["section"], row["rank"], row["hidden"]))
    ends = [int((part.start_ps + part.duration_ps).max(initial=0)) for part in (*shown, pools)]
    return Timeline(
        sections=sections,
        tracks=tracks_table({name: [row[name] for row in rows] for name in TRACK_COLUMNS}),
        events=events,
        hidden=hidden,
        names=table,
        span_ps=max(ends),
        empty_planes=[
            name
            for plane, name in enumerate(trace.space.plane_name)
            if not used[trace.space.line_plane == plane].any()
            and (trace.plane_is_host[plane] or trace.plane_is_device[plane])
        ],
    )


# ---- tracks -------------------------------------------------------------------------------------------------


def tracks_table(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return the table of a timeline's tracks, of lists by column."""
    types = {name: _TRACK_TYPES.get(name, np.int64) for name in TRACK_COLUMNS}
    return pd.DataFrame(
        {
            name: pd.Series(columns[name], dtype=kind) if kind == "str" else np.array(columns[name], kind)
            for name, kind in types.items()
        }
    )


@dataclass
class _Tracks:
    """Tracks and their events, ordered by track. T tracks, N events.

    ``section``, ``label``, ``hint``, ``kind`` as in `Timeline.tracks`, ``rank`` to order them by within the section.
    """

    section: NDArray[np.int64]
    label: list[str]
    hint: list[str]
    kind: list[str]
    rank: NDArray[np.int64]
    busy_ps: NDArray[np.int64]
    track: NDArray[np.int32]
    start_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    name: NDArray[np.int32]
    lane: NDArray[np.int32]


def _joined(
    parts: list[_Tracks], names: NDArray[np.int32], *, hidden: bool
) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """A row for each track that has events, and all events; ``names`` are the rows of the names' codes."""
    rows = []
    before = 0
    for part in parts:
        bounds = np.searchsorted(part.track, np.arange(len(part.label) + 1, dtype=np.int32)).tolist()
        for i, (first, end) in enumerate(itertools.pairwise(bounds)):
            if first < end:
                row = {name: getattr(part, name)[i] for name in ("section", "label", "hint", "kind", "rank", "busy_ps")}
                place = {"hidden": hidden, "first": before + first, "count": end - first}
                rows.append(row | place | {"lanes": int(part.lane[first:end].max()) + 1})
        before += len(part.track)
    columns = ("start_ps", "duration_ps", "name", "lane")
    events = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    events["name"] = names[events["name"]]
    return rows, pd.DataFrame(events, copy=False)


def _has_events(trace: Trace) -> NDArray[np.bool_]:
    return np.diff(trace.line_first_event) > 0


def _plane_sections(trace: Trace, used: NDArray[np.bool_], sections: list[Section]) -> NDArray[np.int64]:
    """Add a section for each plane with events; the section of each plane, -1 for none."""
    space = trace.space
    planes: list[int] = np.unique(space.line_plane[used]).tolist()
    # Devices first, as in TensorBoard; in the file's order otherwise.
    planes.sort(key=lambda p: (not trace.plane_is_device[p], trace.plane_is_host[p], p))
    hosts = [p for p in planes if trace.plane_is_host[p]]
    section = np.full(len(space.plane_name), -1, np.int64)
    for plane in planes:
        section[plane] = len(sections)
        name = space.plane_name[plane]
        title = f"{name} (pid {space.plane_id[plane]})"
        if trace.plane_is_host[plane]:
            title = "Host Threads" if len(hosts) == 1 else f"Host Threads {name}"
        sections.append(Section(title))
    return section


def _line_tracks(
    trace: Trace, bookkeeping: Trace, names: _Names, origin_ps: int, section_of_plane: NDArray[np.int64]
) -> tuple[_Tracks, _Tracks]:
    """A track for each line, with its events and with its bookkeeping."""
    space = trace.space
    n_lines = len(space.line_plane)
    full = [name or f"thread {line_id}" for name, line_id in zip(space.line_name, space.line_id, strict=True)]
    busy_ps = _busy_ps(trace)
    kind_rank = np.array([_line_rank(trace, line, full[line]) for line in range(n_lines)], np.int64)
    order = np.lexsort((np.arange(n_lines), -busy_ps, kind_rank))
    rank = kind_rank * _RANK
    rank[order] += np.arange(n_lines)
    section = section_of_plane[space.line_plane]
    label = _labels(trace, full, order)

    def tracks(
        some: Trace, label: list[str], kind: list[str], busy_ps: NDArray[np.int64], name: NDArray[np.int32]
    ) -> _Tracks:
        return _Tracks(
            section, label, full, kind, rank, busy_ps, some.line, some.start_ps - origin_ps, some.duration_ps, name, _lanes(some)
        )  # fmt: skip

    kind = ["host" if is_host else "device" for is_host in trace.line_is_host]
    pool_label = [f"{text} · pool bookkeeping" for text in label]
    return (
        tracks(trace, label, kind, busy_ps, names.code),
        tracks(bookkeeping, pool_label, ["bookkeeping"] * n_lines, _busy_ps(bookkeeping), bookkeeping.meta),
    )


def _busy_ps(trace: Trace) -> NDArray[np.int64]:
    """Time of each line in which at least one event was open."""
    busy_ps = np.zeros(len(trace.space.line_plane), np.int64)
    lines = np.flatnonzero(_has_events(trace))
    if len(lines):
        outermost = np.where(trace.depth == 0, trace.duration_ps, 0)
        busy_ps[lines] = np.add.reduceat(outermost, trace.line_first_event[lines])
    crossing = trace.events_of(~trace.line_is_nested)
    if len(crossing):
        line = trace.line[crossing].astype(np.int64)
        union = union_ps(line, trace.start_ps[crossing], trace.end_ps[crossing], len(busy_ps))
        busy_ps = np.where(trace.line_is_nested, busy_ps, union)
    return busy_ps


def _lanes(trace: Trace) -> NDArray[np.int32]:
    """Lane of each event: its depth, but on lines with events that overlap in part."""
    crossing = trace.events_of(~trace.line_is_nested)
    if not len(crossing):
        return trace.depth
    lane = trace.depth.copy()
    track, start, duration = trace.line[crossing], trace.start_ps[crossing], trace.duration_ps[crossing]
    lane[crossing] = pack_lanes(track.astype(np.int64), start, duration, lane[crossing])
    return lane


def _line_rank(trace: Trace, line: int, name: str) -> int:
    if not trace.line_is_host[line]:
        if name in _DEVICE_LINES:
            return _DEVICE_LINES.index(name)
        return _STREAM_RANK + 1 + _LAST_LINES.index(name) if name in _LAST_LINES else _STREAM_RANK
    if line == trace.main_line:
        return -1
    return next((i for i, pool in enumerate(_HOST_POOLS) if re.match(pool, name)), len(_HOST_POOLS))


def _labels(trace: Trace, full: list[str], order: NDArray[np.int64]) -> list[str]:
    """Short labels: threads of a pool are numbered from the busiest, instead of by their 64-bit ids."""
    labels = list(full)
    pool = {line: full[line].rpartition("/")[0] or full[line] for line in order.tolist() if trace.line_is_host[line]}
    size: dict[tuple[int, str], int] = {}
    for line, name in pool.items():
        key = (int(trace.space.line_plane[line]), name)
        size[key] = size.get(key, 0) + 1
    used: dict[tuple[int, str], int] = {}
    for line, name in pool.items():
        key = (int(trace.space.line_plane[line]), name)
        used[key] = used.get(key, 0) + 1
        labels[line] = name if size[key] == 1 else f"{name} #{used[key]}"
        if line == trace.main_line:
            labels[line] += " (main)"
    return labels


def _step_tracks(steps: pd.DataFrame, names: _Names, shift_ps: int) -> _Tracks:
    """Tracks of steps, one a device."""
    device = steps["device"].astype(str).to_numpy(object)
    known = list(dict.fromkeys(device))
    track = np.array([known.index(d) for d in device], np.int64)
    start = np.rint(steps["start_ms"].to_numpy() * 1e9).astype(np.int64) + shift_ps
    duration = np.rint(steps["duration_ms"].to_numpy() * 1e9).astype(np.int64)
    code = names.add_steps(steps["kind"].astype(str).to_list(), steps["step"].to_list())
    order = np.lexsort((-duration, start, track))
    track, start, duration, code = track[order], start[order], duration[order], code[order]
    n = len(known)
    return _Tracks(
        section=np.zeros(n, np.int64),
        label=["Steps"] if n == 1 else [f"Steps {name}" for name in known],
        hint=[f"Steps on {name}" for name in known],
        kind=["steps"] * n,
        rank=np.arange(n),
        busy_ps=union_ps(track, start, start + duration, n),
        track=track.astype(np.int32),
        start_ps=start,
        duration_ps=duration,
        name=code,
        lane=pack_lanes(track, start, duration, np.zeros(len(track), np.int32)),
    )


def _derived_tracks(trace: Trace, derived: DerivedLines, names: _Names, own: _Tracks, origin_ps: int) -> _Tracks:
    """Tracks of derived lines, which come before the streams of their device."""
    n = len(derived.lines)
    code = names.add_ops(derived.names, derived.types)[derived.name]
    track = derived.line.astype(np.int64)
    name: list[str] = derived.lines["name"].to_list()
    plane = derived.lines["plane"].to_list()
    stream = [trace.space.line_name[s] if s >= 0 else "" for s in derived.lines["stream"]]
    alike = Counter(zip(name, plane, strict=True))
    label = [n if alike[n, p] == 1 or not s else f"{n} · {s}" for n, p, s in zip(name, plane, stream, strict=True)]
    section_of_plane = dict(zip(trace.space.line_plane.tolist(), own.section.tolist(), strict=True))
    return _Tracks(
        section=np.array([section_of_plane[p] for p in plane], np.int64),
        label=label,
        hint=[f"{n}, derived from {s or 'all streams'}" for n, s in zip(name, stream, strict=True)],
        kind=["derived"] * n,
        rank=np.array([_DEVICE_LINES.index(kind) * _RANK + i for i, kind in enumerate(name)], np.int64),
        busy_ps=union_ps(track, derived.start_ps, derived.start_ps + derived.duration_ps, n),
        track=derived.line,
        start_ps=derived.start_ps - origin_ps,
        duration_ps=derived.duration_ps,
        name=code,
        lane=pack_lanes(track, derived.start_ps, derived.duration_ps, derived.depth),
    )


# ---- lanes --------------------------------------------------------------------------------------------------


def pack_lanes(
    track: NDArray[np.int64], start_ps: NDArray[np.int64], duration_ps: NDArray[np.int64], depth: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Put events into lanes in which none overlaps another: by nesting depth where that does it.

    Where events of one depth overlap (asynchronous work on one line), the whole cluster of overlapping
    events is packed anew, each lane taking the next event that starts after the last one's end.

    Parameters
    ----------
    track, start_ps, duration_ps, depth : arrays (N)
        Ordered by track, start, longest first.

    Returns
    -------
    int32 array (N)
        Lane of each event, from 0.
    """
    lane = depth.astype(np.int32)
    if len(track) < 2:
        return lane
    key = track * (int(depth.max()) + 1) + depth
    order = np.argsort(key, kind="stable")
    start, end = disjoint_times(key[order].astype(np.int32), start_ps[order], (start_ps + duration_ps)[order])
    overlaps = order[1:][start[1:] < np.maximum.accumulate(end)[:-1]]
    if not len(overlaps):
        return lane

    start, end = disjoint_times(track.astype(np.int32), start_ps, start_ps + duration_ps)
    alone = np.concatenate([[True], start[1:] >= np.maximum.accumulate(end)[:-1]])
    cluster = np.cumsum(alone)
    todo = np.flatnonzero(np.isin(cluster, np.unique(cluster[overlaps])))
    level = 0
    while len(todo):
        stays = _chain(start[todo], end[todo])
        lane[todo[stays]] = level
        todo = todo[~stays]
        level += 1
    return lane


def _chain(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The first event, the first one that starts after its end, and so on (jumps double, so it takes log N rounds)."""
    n = len(start)
    jump = np.append(np.maximum(np.searchsorted(start, end, side="left"), np.arange(1, n + 1)), n)
    stays = np.zeros(n + 1, np.bool_)
    stays[0] = True
    while True:
        reached = jump[np.flatnonzero(stays)]
        if stays[reached].all():
            return stays[:n]
        stays[reached] = True
        jump = jump[jump]


# ---- names --------------------------------------------------------------------------------------------------


def _short(name: str) -> str:
    """Return the function of a call of Python's own, of which the profiler writes ``$file.py:12 function``; else the name."""
    found = _PYTHON_CALL.fullmatch(name)
    return found[1] if found else name


class _Names:
    """The distinct names of events. ``code`` is each event's (N): its metadata row, or for a device event one by op too."""

    def __init__(self, trace: Trace, devices: DeviceEvents) -> None:
        space, ops = trace.space, trace.ops
        n_meta = len(space.meta_name)
        is_op = trace.meta_is_op.tolist()
        types = [t if known else "" for t, known in zip(ops.type, is_op, strict=True)]
        shown = [
            d or (t if known else _short(n))
            for n, d, t, known in zip(space.meta_name, space.meta_display_name, types, is_op, strict=True)
        ]
        self._name = list(space.meta_name)
        self._short = shown
        self._type = types
        self._op = [op if known else "" for op, known in zip(ops.name, is_op, strict=True)]
        self._role = ["op" if known else "other" for known in is_op]
        self.code = trace.meta.copy()
        # A kernel runs for many ops: its colour and its details are those of the op that launched it.
        of_op = np.flatnonzero(devices.op_code >= 0)
        if len(of_op):
            event = devices.event[of_op]
            pair = trace.meta[event].astype(np.int64) * len(devices.op_names) + devices.op_code[of_op]
            distinct, inverse = np.unique(pair, return_inverse=True)
            self.code[event] = n_meta + inverse
            for meta, op in zip(*(x.tolist() for x in np.divmod(distinct, len(devices.op_names))), strict=True):
                self._name.append(space.meta_name[meta])
                self._short.append(shown[meta])
                self._type.append(devices.op_types[op] or types[meta])
                self._op.append(devices.op_names[op])
                self._role.append("op")

    def add_steps(self, kinds: list[str], numbers: list[int]) -> NDArray[np.int32]:
        """Add a name for each step; return their codes."""
        first = len(self._name)
        for kind, number in zip(kinds, numbers, strict=True):
            self._name.append(f"{kind} {number}".strip())
            self._short.append(str(number))
            self._type.append(kind)
            self._op.append("")
            self._role.append("step")
        return np.arange(first, len(self._name), dtype=np.int32)

    def add_ops(self, names: list[str], types: list[str]) -> NDArray[np.int32]:
        """Add names that are ops' where there is a type; return their codes."""
        first = len(self._name)
        self._name += names
        self._short += [kind or name for name, kind in zip(names, types, strict=True)]
        self._type += types
        self._op += [parse_op(name).name if kind else "" for name, kind in zip(names, types, strict=True)]
        self._role += ["op" if kind else "other" for kind in types]
        return np.arange(first, len(self._name), dtype=np.int32)

    def table(self, codes: list[NDArray[np.int32]]) -> tuple[pd.DataFrame, NDArray[np.int32]]:
        """Only the names in use, equal ones merged, the commonest first (small numbers pack well); the row of each code."""
        uses = np.sum([np.bincount(c, minlength=len(self._name)) for c in codes], axis=0)
        used = np.flatnonzero(uses)[np.argsort(-uses[uses > 0], kind="stable")]
        keys = list(zip(self._name, self._short, self._type, self._op, self._role, strict=True))
        rows: dict[tuple[str, str, str, str, str], int] = {}
        merged = np.zeros(len(keys), np.int32)
        merged[used] = [rows.setdefault(keys[code], len(rows)) for code in used.tolist()]
        columns = zip(*rows, strict=True) if rows else ((),) * len(_NAME_COLUMNS)
        named = {
            name: pd.Series(list(column), dtype="str") for name, column in zip(_NAME_COLUMNS, columns, strict=True)
        }
        return pd.DataFrame(named), merged
