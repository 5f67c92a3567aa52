"""Lines that a fresh capture doesn't store: steps, name scopes and ops of a device, derived from what ran on its streams.

TensorFlow used to add these lines itself, and today's profiler leaves it to whoever opens the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .device import COLLECTIVE, KERNEL, device_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .device import DeviceEvents
    from .events import Trace

    # Events of derived lines, by name of the column.
    _Columns = dict[str, NDArray[np.int64]]

STEPS, NAME_SCOPE, OPS, XLA_MODULES, XLA_OPS = (
    "Steps",
    "TensorFlow Name Scope",
    "TensorFlow Ops",
    "XLA Modules",
    "XLA Ops",
)
KINDS = (STEPS, NAME_SCOPE, OPS, XLA_MODULES, XLA_OPS)
# What the same line is called in a file, by its maker's version.
_STORED_AS = {NAME_SCOPE: ("TensorFlow Name Scope", "Framework Name Scope"), OPS: ("TensorFlow Ops", "Framework Ops")}


@dataclass(frozen=True)
class DerivedLines:
    """Derived lines and their events. T lines, M events.

    Attributes
    ----------
    lines : DataFrame (T)
        ``plane``; ``stream``, the line that it is derived from (-1 for the steps, which are of the whole device); ``name``, such as
        ``TensorFlow Ops``. By plane, then stream, in the order of the module's constants.
    line : int32 array (M)
        Row of ``lines``; events are ordered by line, start, and depth.
    start_ps, duration_ps : int64 arrays (M)
        Since the start of the trace.
    depth : int32 array (M)
        Nesting level: of a name scope in others, of an XLA op in others.
    name : int32 array (M)
        Index into ``names`` and ``types``.
    step : int64 array (M)
        Step of the event; -1 for none.
    names, types : list of str
        The distinct names, and the op type where the name is an op's (else empty).
    """

    lines: pd.DataFrame
    line: NDArray[np.int32]
    start_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    depth: NDArray[np.int32]
    name: NDArray[np.int32]
    step: NDArray[np.int64]
    names: list[str]
    types: list[str]


def derived_lines(trace: Trace, step: NDArray[np.int64] | None = None, *, stored_too: bool = False) -> DerivedLines:
    """Derive the lines of all devices.

    Kernels of a stream that follow one another, belong to one op (or name scope, …) and to one step make one event,
    whatever lies between them; a new event ends those nested below it, a new XLA module all of them. Kernels that
    belong to no op make none and end none. These are XProf's rules.

    Parameters
    ----------
    trace : Trace
        One host's events.
    step : int64 array (N), optional
        The step of each event of the trace, -1 for none; by default what the file says (``group_id``). In a
        file without groups, a device event of no step belongs to that of the event before it on the device.
    stored_too : bool
        Whether to derive also the lines that a device's plane has already.

    Returns
    -------
    DerivedLines
    """
    devices = device_events(trace)
    step_of = devices.group_id if step is None else step[devices.event]
    if not (devices.group_id >= 0).any():
        step_of = _inherit(trace, devices, step_of)
    rows = np.flatnonzero((devices.kind == KERNEL) | (devices.kind == COLLECTIVE))
    names = _Names()
    parts = [_steps(trace, devices, step_of, names)]
    modules, hlo_ops = _xla_levels(trace, devices, rows, names)
    of_module, opened = _merge(modules, devices.line[rows], step_of[rows], *_times(trace, devices, rows))
    for kind, levels in enumerate(
        (_scope_levels(devices, rows, names), _op_levels(devices, rows, names), None, hlo_ops), start=1
    ):
        part = of_module
        if levels is not None:
            part, _ = _merge(levels, devices.line[rows], step_of[rows], *_times(trace, devices, rows), opened)
        parts.append(_placed(part, trace.space.line_plane[part["line"]], part["line"], kind))
    events = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    if not stored_too:
        new = ~_is_stored(trace)[events["plane"], events["kind"]]
        events = {key: value[new] for key, value in events.items()}

    order = np.lexsort([events[key] for key in ("depth", "start_ps", "kind", "stream", "plane")])
    events = {key: value[order] for key, value in events.items()}
    keys = [events[key] for key in ("plane", "stream", "kind")]
    is_first = np.append(np.ones(min(len(order), 1), bool), np.logical_or.reduce([np.diff(key) != 0 for key in keys]))
    plane, stream, kinds = (key[is_first] for key in keys)
    return DerivedLines(
        lines=pd.DataFrame({"plane": plane, "stream": stream, "name": np.array(KINDS, object)[kinds]}),
        line=(np.cumsum(is_first) - 1).astype(np.int32),
        start_ps=events["start_ps"],
        duration_ps=events["end_ps"] - events["start_ps"],
        depth=events["depth"].astype(np.int32),
        name=events["name"].astype(np.int32),
        step=events["step"],
        names=names.names,
        types=names.types,
    )


class _Names:
    """The distinct names, and the code of each."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.types: list[str] = []
        self._code: dict[tuple[str, str, int], int] = {}

    def code(self, name: str, kind: str = "", program: int = 0) -> int:
        """Code of a name; equal names of two types or two programs have two."""
        code = self._code.setdefault((name, kind, program), len(self.names))
        if code == len(self.names):
            self.names.append(name)
            self.types.append(kind)
        return code


def _times(trace: Trace, devices: DeviceEvents, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    event = devices.event[rows]
    start = trace.start_ps[event]
    return start, start + trace.duration_ps[event]


def _inherit(trace: Trace, devices: DeviceEvents, step_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Steps of the device events, those of no step filled with the last one that the device was in."""
    order = np.lexsort((trace.start_ps[devices.event], devices.plane))
    plane, value = devices.plane[order], step_of[order]
    last = np.maximum.accumulate(np.where(value >= 0, np.arange(len(order)), -1)) if len(order) else order
    found = (last >= 0) & (plane[last] == plane)
    result = np.empty_like(step_of)
    result[order] = np.where(found, value[last], -1) if len(order) else value
    return result


def _merge(
    levels: NDArray[np.int32],
    line: NDArray[np.int32],
    step: NDArray[np.int64],
    start_ps: NDArray[np.int64],
    end_ps: NDArray[np.int64],
    opened: NDArray[np.int64] | None = None,
) -> tuple[_Columns, NDArray[np.int64]]:
    """Merge neighbours of one name into one event, level by level.

    Parameters
    ----------
    levels : int32 array (n, d)
        Name of each event on each level, outermost first; -1 where there are no more.
    line, step, start_ps, end_ps : arrays (n)
        Ordered by line and start.
    opened : int64 array (n), optional
        How many events that end all of these had begun up to each one.

    Returns
    -------
    events : columns
    opened : int64 array (n)
        The same count with the events made here added.
    """
    columns = ("line", "step", "depth", "name", "start_ps", "end_ps")
    parts: list[tuple[NDArray[np.int64], ...]] = [(np.empty(0, np.int64),) * len(columns)]
    opened = np.zeros(len(line), np.int64) if opened is None else opened
    for depth in range(levels.shape[1]):
        named = np.flatnonzero(levels[:, depth] >= 0)
        if not len(named):
            break
        keys = (levels[named, depth], line[named], step[named], opened[named])
        first = np.flatnonzero(np.concatenate([[True], np.logical_or.reduce([np.diff(key) != 0 for key in keys])]))
        begin = named[first]
        parts.append(
            (
                line[begin].astype(np.int64),
                step[begin],
                np.full(len(begin), depth, np.int64),
                levels[begin, depth].astype(np.int64),
                np.minimum.reduceat(start_ps[named], first),
                np.maximum.reduceat(end_ps[named], first),
            )
        )
        begins = np.zeros(len(line), np.int64)
        begins[begin] = 1
        opened = opened + np.cumsum(begins)
    return dict(zip(columns, (np.concatenate(c) for c in zip(*parts, strict=True)), strict=True)), opened


def _placed(part: _Columns, plane: NDArray[np.integer[Any]], stream: NDArray[np.int64], kind: int) -> _Columns:
    """Events with where each belongs: the plane, the line that it is derived from, the kind of line."""
    return part | {"plane": plane.astype(np.int64), "stream": stream, "kind": np.full(len(stream), kind)}


def _steps(trace: Trace, devices: DeviceEvents, step_of: NDArray[np.int64], names: _Names) -> _Columns:
    """Steps of each device, from everything that ran on it."""
    rows = np.flatnonzero(step_of >= 0)
    start, end = _times(trace, devices, rows)
    order = np.lexsort((start, devices.plane[rows]))
    rows, start, end = rows[order], start[order], end[order]
    used, inverse = np.unique(step_of[rows], return_inverse=True)
    code = np.array([names.code(str(number)) for number in used], np.int32)[inverse]
    part, _ = _merge(code.reshape(-1, 1), devices.plane[rows], step_of[rows], start, end)
    return _placed(part, part["line"], np.full(len(part["line"]), -1), 0)


def _op_levels(devices: DeviceEvents, rows: NDArray[np.int64], names: _Names) -> NDArray[np.int32]:
    codes = [names.code(*op) for op in zip(devices.op_names, devices.op_types, strict=True)]
    return np.array([*codes, -1], np.int32)[devices.op_code[rows]].reshape(-1, 1)


def _scope_levels(devices: DeviceEvents, rows: NDArray[np.int64], names: _Names) -> NDArray[np.int32]:
    scopes = [name.rpartition("/")[0] for name in devices.op_names]
    levels = {
        scope: [names.code(part) for part in scope.split("/")] if scope else [] for scope in dict.fromkeys(scopes)
    }
    return _table([levels[scope] for scope in scopes])[devices.op_code[rows]]


def _table(paths: list[list[int]]) -> NDArray[np.int32]:
    """Paths of codes as a matrix, padded with -1; its last row, which is no path, is that of index -1."""
    table = np.full((len(paths) + 1, max((len(p) for p in paths), default=0) or 1), -1, np.int32)
    for row, path in enumerate(paths):
        table[row, : len(path)] = path
    return table


def _xla_levels(
    trace: Trace, devices: DeviceEvents, rows: NDArray[np.int64], names: _Names
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Levels of the XLA modules and of the XLA ops of some device events."""
    columns = [np.full(len(devices), -1, np.int64) for _ in range(3)]
    owner, value = trace.ints("program_id")
    texts: list[list[str]] = [[]]
    row, found = devices.rows(owner)
    columns[0][row] = value[found]
    for column, stat in zip(columns[1:], ("hlo_module", "hlo_op"), strict=True):
        owner, code, known = trace.strings(stat)
        row, found = devices.rows(owner)
        column[row] = code[found]
        texts.append(known)
    program, module, hlo_op = columns

    def levels(column: NDArray[np.int64], path: Callable[[int, int], list[int]]) -> NDArray[np.int32]:
        pairs, inverse = np.unique(np.stack([program[rows], column[rows]]), axis=1, return_inverse=True)
        return _table([path(number, index) if index >= 0 else [] for number, index in pairs.T.tolist()])[
            inverse.ravel()
        ]

    def module_path(number: int, index: int) -> list[int]:
        return [names.code(f"{texts[1][index]}({number})" if number >= 0 else texts[1][index])]

    def op_path(number: int, index: int) -> list[int]:
        return [names.code(part, program=number) for part in texts[2][index].split("::") if part]

    return levels(module, module_path), levels(hlo_op, op_path)


def _is_stored(trace: Trace) -> NDArray[np.bool_]:
    """Whether each plane has each kind of line already, shape (P, number of kinds)."""
    space = trace.space
    has = np.zeros((len(space.plane_name), len(KINDS)), bool)
    for kind, name in enumerate(KINDS):
        stored = np.array([line in _STORED_AS.get(name, (name,)) for line in space.line_name], bool)
        has[space.line_plane[stored], kind] = True
    return has
