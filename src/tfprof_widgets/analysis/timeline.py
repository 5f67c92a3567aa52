"""What the trace timeline draws: sections and tracks, and the events in lanes that never overlap."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .derived_lines import DerivedLines, derived_lines
from .device import DeviceEvents, device_events
from .intervals import union_ps
from .names import UNKNOWN, parse_op
from .nesting import disjoint_times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .events import Trace

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

TRACK_COLUMNS = ("section", "label", "hint", "kind", "hidden", "first", "count", "lanes", "busy_ps")


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
        ``device``, ``derived`` (of a device, repeating what is on its streams), ``bookkeeping``), ``hidden`` (its events
        are in ``hidden``), ``first``, ``count`` (rows of its events), ``lanes``, ``busy_ps`` (time with at least one event).
    events, hidden : DataFrame (N), (H)
        ``start_ps``, ``duration_ps``, ``name`` (row of ``names``), ``lane`` (from 0; events of a lane don't overlap),
        ordered by track, start, longest first. ``hidden`` are the thread pools' own notes, folded away at first.
    names : DataFrame (K)
        ``name`` in full, ``short`` (the op's type where it is an op, else the same), ``type`` (op type; empty for what is no op), ``op``
        (name of the op, for a kernel that of the op which launched it), ``role`` (``op``, ``step``, ``other``).
    span_ps : int
        From 0 to the last end.
    empty_planes : list of str
        Planes with nothing to draw.
    """

    sections: list[Section]
    tracks: pd.DataFrame
    events: pd.DataFrame
    hidden: pd.DataFrame
    names: pd.DataFrame
    span_ps: int
    empty_planes: list[str] = field(default_factory=list)


def timeline(
    trace: Trace,
    steps: pd.DataFrame | None = None,
    devices: DeviceEvents | None = None,
    derived: DerivedLines | None = None,
) -> Timeline:
    """Lay out a host's trace.

    Parameters
    ----------
    trace : Trace
        The host's events.
    steps : DataFrame, optional
        Steps as in ``report.steps``: ``step``, ``kind``, ``device``, ``start_ms``, ``duration_ms``; they become the topmost section.
    devices : DeviceEvents, optional
        The device events of the trace, if they are at hand.
    derived : DerivedLines, optional
        Lines of steps, scopes and ops of the devices that the file doesn't hold, if they are at hand.

    Returns
    -------
    Timeline
    """
    devices = device_events(trace) if devices is None else devices
    derived = derived_lines(trace) if derived is None else derived
    names = _Names(trace, devices)
    starts = trace.space.event_start_ps
    origin_ps = min(int(starts.min()), 0) if len(starts) else 0  # damaged files only: never draw left of 0

    sections: list[Section] = []
    parts: list[pd.DataFrame] = []
    shown: list[_Part] = []
    hidden: list[_Part] = []
    if steps is not None and len(steps):
        part, tracks = _step_tracks(steps, names, -origin_ps)
        shown.append(part)
        parts.append(tracks)
        sections.append(Section("Steps"))

    bookkeeping = trace.bookkeeping
    used = np.unique(np.concatenate([trace.line, bookkeeping.line]))
    lines = _line_table(trace, used, sections)
    # Bookkeeping has no duration and encloses nothing: one lane shows it all.
    flat = np.zeros(len(bookkeeping), np.int32)
    for is_hidden, some, code, depth in (
        (False, trace, names.code, trace.depth),
        (True, bookkeeping, bookkeeping.meta.astype(np.int64), flat),
    ):
        part = _part(some, code, depth, origin_ps)
        (hidden if is_hidden else shown).append(part)
        parts.append(part.tracks(lines, is_hidden))
    if len(derived.lines):
        part, tracks = _derived_tracks(trace, derived, names, lines)
        part.start_ps -= origin_ps
        shown.append(part)
        parts.append(tracks)

    tracks = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(TRACK_COLUMNS))
    # A thread's bookkeeping stands below the thread itself.
    tracks = tracks.sort_values(["section", "rank", "hidden"], kind="stable", ignore_index=True)
    events, first_shown = _in_order(shown)
    concealed, first_hidden = _in_order(hidden)
    tracks["first"] = np.where(tracks["hidden"], _firsts(tracks, first_hidden), _firsts(tracks, first_shown))
    table, events["name"], concealed["name"] = names.table(events["name"].to_numpy(), concealed["name"].to_numpy())
    with_events = set(trace.space.line_plane[used].tolist())
    ends = [int((p["start_ps"] + p["duration_ps"]).max()) for p in (events, concealed) if len(p)]
    return Timeline(
        sections=sections,
        tracks=tracks[list(TRACK_COLUMNS)],
        events=events,
        hidden=concealed,
        names=table,
        span_ps=max(ends, default=0),
        empty_planes=[
            name
            for plane, name in enumerate(trace.space.plane_name)
            if plane not in with_events and (trace.plane_is_host[plane] or trace.plane_is_device[plane])
        ],
    )


# ---- tracks -------------------------------------------------------------------------------------------------


@dataclass
class _Part:
    """Events of some tracks; ``track`` is a key that grows with the events' order, not yet a row."""

    track: NDArray[np.int64]
    start_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    name: NDArray[np.int64]
    lane: NDArray[np.int32]

    def tracks(self, lines: pd.DataFrame, hidden: bool) -> pd.DataFrame:
        """Rows of the track table for those lines that have events here."""
        n = len(lines)
        count = np.bincount(self.track, minlength=n)
        lanes = np.zeros(n, np.int64)
        np.maximum.at(lanes, self.track, self.lane + 1)
        rows = lines.assign(
            key=np.arange(n),
            hidden=hidden,
            count=count,
            lanes=lanes,
            busy_ps=union_ps(self.track, self.start_ps, self.start_ps + self.duration_ps, n),
        )[count > 0]
        if hidden:
            rows = rows.assign(kind="bookkeeping", label=[f"{label} · pool bookkeeping" for label in rows["label"]])
        return rows


def _line_table(trace: Trace, used: NDArray[np.int32], sections: list[Section]) -> pd.DataFrame:
    """Section, label and order of each line; adds the sections of those used. One row a line."""
    space = trace.space
    n_lines = len(space.line_plane)
    busy = union_ps(trace.line.astype(np.int64), trace.start_ps, trace.end_ps, n_lines)
    planes: list[int] = np.unique(space.line_plane[used]).tolist()
    # Devices first, as in TensorBoard; in the file's order otherwise.
    planes.sort(key=lambda p: (not trace.plane_is_device[p], trace.plane_is_host[p], p))
    hosts = [p for p in planes if trace.plane_is_host[p]]
    section = np.full(n_lines, -1, np.int64)
    for plane in planes:
        section[space.line_plane == plane] = len(sections)
        name = space.plane_name[plane]
        title = f"{name} (pid {space.plane_id[plane]})"
        if trace.plane_is_host[plane]:
            title = "Host Threads" if len(hosts) == 1 else f"Host Threads {name}"
        sections.append(Section(title))

    full = [name or f"thread {line_id}" for name, line_id in zip(space.line_name, space.line_id, strict=True)]
    rank = np.array([_line_rank(trace, line, full[line]) for line in range(n_lines)], np.int64)
    order = np.lexsort((np.arange(n_lines), -busy, rank))
    place = rank * _RANK
    place[order] += np.arange(n_lines)
    return pd.DataFrame(
        {
            "section": section,
            "label": _labels(trace, full, order),
            "hint": full,
            "kind": np.where(trace.line_is_host, "host", "device"),
            "rank": place,
        }
    )


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


def _part(trace: Trace, code: NDArray[np.int64], depth: NDArray[np.int32], origin_ps: int) -> _Part:
    """Events of a trace on the tracks of their lines."""
    track = trace.line.astype(np.int64)
    lane = pack_lanes(track, trace.start_ps, trace.duration_ps, depth)
    return _Part(track, trace.start_ps - origin_ps, trace.duration_ps, code, lane)


def _step_tracks(steps: pd.DataFrame, names: _Names, shift_ps: int) -> tuple[_Part, pd.DataFrame]:
    """Tracks of steps, one a device; their keys come before those of all lines."""
    device = steps["device"].astype(str).to_numpy(object)
    known = list(dict.fromkeys(device))
    track = np.array([known.index(d) for d in device], np.int64)
    start = np.rint(steps["start_ms"].to_numpy() * 1e9).astype(np.int64) + shift_ps
    duration = np.rint(steps["duration_ms"].to_numpy() * 1e9).astype(np.int64)
    code = names.add_steps(steps["kind"].astype(str).to_list(), steps["step"].to_list())
    order = np.lexsort((-duration, start, track))
    track, start, duration, code = track[order], start[order], duration[order], code[order]
    lane = pack_lanes(track, start, duration, np.zeros(len(track), np.int32))
    part = _Part(track - len(known), start, duration, code, lane)
    lanes = np.zeros(len(known), np.int64)
    np.maximum.at(lanes, track, lane + 1)
    tracks = pd.DataFrame(
        {
            "section": 0,
            "label": ["Steps" if len(known) == 1 else f"Steps {name}" for name in known],
            "hint": [f"Steps on {name}" for name in known],
            "kind": "steps",
            "rank": np.arange(len(known)),
            "key": np.arange(len(known)) - len(known),
            "hidden": False,
            "count": np.bincount(track, minlength=len(known)),
            "lanes": lanes,
            "busy_ps": union_ps(track, start, start + duration, len(known)),
        }
    )
    return part, tracks


def _derived_tracks(
    trace: Trace, derived: DerivedLines, names: _Names, lines: pd.DataFrame
) -> tuple[_Part, pd.DataFrame]:
    """Tracks of derived lines, which come before the streams of their device; their keys come after those of all lines."""
    n_lines, n = len(lines), len(derived.lines)
    code = names.add_ops(derived.names, derived.types)[derived.name]
    track = derived.line.astype(np.int64)
    end = derived.start_ps + derived.duration_ps
    lane = pack_lanes(track, derived.start_ps, derived.duration_ps, derived.depth)
    part = _Part(track + n_lines, derived.start_ps.copy(), derived.duration_ps, code, lane)
    lanes = np.zeros(n, np.int64)
    np.maximum.at(lanes, track, lane + 1)
    name = derived.lines["name"].to_numpy(object)
    plane = derived.lines["plane"].to_numpy(np.int64)
    stream = derived.lines["stream"].to_numpy(np.int64)
    labels = []
    for i in range(n):
        alike = np.count_nonzero((name == name[i]) & (plane == plane[i]))
        labels.append(name[i] if alike == 1 or stream[i] < 0 else f"{name[i]} · {trace.space.line_name[stream[i]]}")
    section_of_plane = dict(zip(trace.space.line_plane.tolist(), lines["section"].tolist(), strict=True))
    rows = pd.DataFrame(
        {
            "section": [section_of_plane[p] for p in plane.tolist()],
            "label": labels,
            "hint": [
                f"{name[i]}, derived from {trace.space.line_name[stream[i]] if stream[i] >= 0 else 'all streams'}"
                for i in range(n)
            ],
            "kind": "derived",
            "rank": [_DEVICE_LINES.index(kind) * _RANK + i for i, kind in enumerate(name.tolist())],
            "key": np.arange(n) + n_lines,
            "hidden": False,
            "count": np.bincount(track, minlength=n),
            "lanes": lanes,
            "busy_ps": union_ps(track, derived.start_ps, end, n),
        }
    )
    return part, rows


def _in_order(parts: list[_Part]) -> tuple[pd.DataFrame, dict[int, int]]:
    """All events, and the first row of each track's key."""

    def joined(name: str, kind: type) -> NDArray[np.int64]:
        return np.concatenate([np.empty(0, kind), *(getattr(p, name) for p in parts)]).astype(kind, copy=False)

    frame = pd.DataFrame(
        {
            "start_ps": joined("start_ps", np.int64),
            "duration_ps": joined("duration_ps", np.int64),
            "name": joined("name", np.int64),
            "lane": joined("lane", np.int32),
        }
    )
    keys, first = np.unique(joined("track", np.int64), return_index=True)
    return frame, dict(zip(keys.tolist(), first.tolist(), strict=True))


def _firsts(tracks: pd.DataFrame, first: dict[int, int]) -> NDArray[np.int64]:
    return np.array([first.get(key, 0) for key in tracks["key"].tolist()], np.int64)


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


class _Names:
    """The distinct names of events. ``code`` is each event's (N): its metadata row, or for a device event one by op too."""

    def __init__(self, trace: Trace, devices: DeviceEvents) -> None:
        space, ops = trace.space, trace.ops
        n_meta = len(space.meta_name)
        is_op = (ops["category"] != UNKNOWN).tolist()
        types = [t if known else "" for t, known in zip(ops["type"], is_op, strict=True)]
        shown = [
            d or (t if known else n)
            for n, d, t, known in zip(space.meta_name, space.meta_display_name, types, is_op, strict=True)
        ]
        self._name = list(space.meta_name)
        self._short = shown
        self._type = types
        self._op = [op if known else "" for op, known in zip(ops["name"], is_op, strict=True)]
        self._role = ["op" if known else "other" for known in is_op]
        self.code = trace.meta.astype(np.int64)
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

    def add_steps(self, kinds: list[str], numbers: list[int]) -> NDArray[np.int64]:
        """Add a name for each step; return their codes."""
        first = len(self._name)
        for kind, number in zip(kinds, numbers, strict=True):
            self._name.append(f"{kind} {number}".strip())
            self._short.append(str(number))
            self._type.append(kind)
            self._op.append("")
            self._role.append("step")
        return np.arange(first, len(self._name))

    def add_ops(self, names: list[str], types: list[str]) -> NDArray[np.int64]:
        """Add names that are ops' where there is a type; return their codes."""
        first = len(self._name)
        self._name += names
        self._short += [kind or name for name, kind in zip(names, types, strict=True)]
        self._type += types
        self._op += [parse_op(name).name if kind else "" for name, kind in zip(names, types, strict=True)]
        self._role += ["op" if kind else "other" for kind in types]
        return np.arange(first, len(self._name))

    def table(self, *codes: NDArray[np.int64]) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.int64]]:
        """Only the names in use, equal ones merged, the commonest first (small numbers pack well)."""
        uses = sum((np.bincount(c, minlength=len(self._name)) for c in codes), np.zeros(len(self._name), np.int64))
        rows: dict[tuple[str, str, str, str, str], int] = {}
        merged = np.zeros(len(self._name), np.int64)
        for code in np.flatnonzero(uses)[np.argsort(-uses[uses > 0], kind="stable")].tolist():
            key = (self._name[code], self._short[code], self._type[code], self._op[code], self._role[code])
            merged[code] = rows.setdefault(key, len(rows))
        table = pd.DataFrame(list(rows), columns=["name", "short", "type", "op", "role"], dtype="str")
        shown, hidden = (merged[c] for c in codes)
        return table, shown, hidden
