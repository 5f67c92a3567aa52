"""Which ops ran, how often and for how long: on the host's threads and on the devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .device import KERNEL, KINDS, OTHER, device_events, host_launch
from .events import Trace
from .intervals import union_ps
from .names import ALLOCATION_NAMES, TF_OP, parse_op
from .nesting import child_sum, nest, stable_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .device import DeviceEvents

IDLE = "IDLE"
UNATTRIBUTED = "unattributed"
EAGER, FUNCTION = "eager", "function"
HOST, DEVICE = "Host", "Device"

_EAGER_EXECUTE = "EagerExecute"
_EAGER_PREFIX = f"{_EAGER_EXECUTE}: "
# What `EagerExecute: name` runs in old files, if it is a traced function and no op.
_FUNCTION_PREFIXES = ("__inference_", "__forward_", "__backward_")
_PERCENTS = ("device_self_time_pct", "device_cumulative_pct", "host_self_time_pct", "host_cumulative_pct")
_COLUMNS = (
    "host_or_device", "type", "name", "occurrences", "total_time_us", "avg_time_us", "self_time_us", "avg_self_time_us",
    *_PERCENTS, "execution_mode",
)  # fmt: skip


def op_stats(trace: Trace | Sequence[Trace]) -> pd.DataFrame:
    """Tabulate the ops of a run: one row an op of the host, and one an op of the devices.

    On the host an op is an event whose name is one (``dense/MatMul:MatMul``, ``Iterator::Root::Prefetch``), an event
    that names one in its ``tf_op`` (a launch), or an op that Python ran eagerly (``EagerExecute``), if that left no event
    of its own. Its total time includes the ops nested in it on the same thread, its self time doesn't. Allocations name an
    op too, but are no execution of it. On a device an op is what its kernels and copies add up to; it occurred as
    often as its most frequent kernel. Kernels of which the file doesn't say the op are in a row named ``unattributed``, so
    that the rows add up to the device's time.

    ``IDLE`` is a row on each side. On the host it adds up, over the threads that run ops, the time between the first and
    the last op in which none ran: a sum of thread times, often more than the capture's length. What Python does
    between the ops that it runs eagerly is not idle and not counted. On the devices it is the time between the first
    and the last event of each device in which no stream was busy.

    Parameters
    ----------
    trace : Trace or sequence of Trace
        One host, or all hosts of a run (added up).

    Returns
    -------
    DataFrame
        Device ops first, then host ops, each by falling self time:

        * ``host_or_device`` (``Host``, ``Device``), ``type``, ``name``, ``occurrences``;
        * ``total_time_us``, ``avg_time_us``, ``self_time_us``, ``avg_self_time_us``;
        * ``device_self_time_pct``, ``device_cumulative_pct``, ``host_self_time_pct``, ``host_cumulative_pct``: 0 to 100,
          IDLE included (see `without_idle`); a host op has 0 in the device's columns, and the other way round;
        * ``execution_mode``: ``eager`` if it ever ran so, else ``function``; what ran both ways may have a row for each;
        * where the file has FLOPs or bytes: ``flop_rate_gflops``, ``bandwidth_gibps`` (GiB/s), ``operational_intensity`` (FLOPs a
          byte) and ``bound_by`` (``Compute`` or ``HBM``, whichever is nearer its peak).
    """
    traces = [trace] if isinstance(trace, Trace) else list(trace)
    rows = _join([_device_rows(t) for t in traces] + [_host_rows(t) for t in traces])
    return _finish(rows, traces)


def without_idle(ops: pd.DataFrame) -> pd.DataFrame:
    """Leave out IDLE, and take the percentages of the ops' self time alone.

    Parameters
    ----------
    ops : DataFrame
        From `op_stats`, or some of its rows.

    Returns
    -------
    DataFrame
        A copy without the rows of type IDLE, its index kept.
    """
    kept = ops[ops["type"] != IDLE]
    return kept.assign(**_percents(kept["host_or_device"].to_numpy(object), kept["self_time_us"].to_numpy(float)))


# ---- host ----------------------------------------------------------------------------------------------------


class _Names:
    """The distinct ops of a side: name, type, and whether it is a TensorFlow op; an op's code is its place here."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.types: list[str] = []
        self.is_tf: list[bool] = []
        self._code: dict[tuple[str, bool], int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def code(self, name: str, kind: str, *, is_tf: bool = False, eager: bool = False) -> int:
        """Code of an op, by its name; it has the first type that is known of it.

        What Python ran eagerly has a row of its own: in a function of the same name it is another op.
        """
        code = self._code.setdefault((name, eager), len(self.names))
        if code == len(self.names):
            self.names.append(name)
            self.types.append(kind)
            self.is_tf.append(is_tf)
        else:
            self.types[code] = self.types[code] or kind
            self.is_tf[code] |= is_tf
        return code


@dataclass(frozen=True)
class _Rows:
    """What hosts contribute to the table: one row an op of a host."""

    side: list[str]
    type: list[str]
    name: list[str]
    occurrences: NDArray[np.int64]
    total_ps: NDArray[np.int64]
    self_ps: NDArray[np.int64]
    is_eager: NDArray[np.bool_]
    flops: NDArray[np.float64]
    bytes: NDArray[np.float64]

    def columns(self) -> list[Any]:
        """Return the columns, in the order of the fields."""
        return [getattr(self, f.name) for f in fields(self)]

    def at(self, index: NDArray[np.int64]) -> _Rows:
        """Some of the rows, in this order."""
        rows = index.tolist()
        columns: list[Any] = [[c[i] for i in rows] if isinstance(c, list) else c[index] for c in self.columns()]
        return _Rows(*columns)

    def ran(self) -> _Rows:
        """The ops that ran at all."""
        return self.at(np.flatnonzero(self.occurrences > 0))


@dataclass(frozen=True)
class _Runs:
    """Executions of ops. One row each (or one for several of an aggregated event)."""

    event: NDArray[np.int64]
    code: NDArray[np.int64]
    times: NDArray[np.int64]
    self_ps: NDArray[np.int64]
    is_eager: NDArray[np.bool_]

    def rows(self, trace: Trace, names: _Names) -> _Rows:
        """Add the executions up by op."""
        times, total, own, eager = _sums(
            self.code,
            len(names),
            self.times,
            trace.duration_ps[self.event],
            self.self_ps,
            self.is_eager.astype(np.int64),
        )
        nothing = np.zeros(len(names))
        return _Rows(
            [HOST] * len(names), names.types, names.names, times, total, own, eager > 0, nothing, nothing
        ).ran()


def _host_rows(trace: Trace) -> _Rows:
    names = _Names()
    event, code = _named_ops(trace, names)
    eager = _eager_calls(trace)
    runs = _runs(trace, names, event, code, eager)
    idle_ps = _host_idle_ps(trace, runs)
    if len(eager):
        runs = _with_eager(trace, names, runs, eager)
    rows = runs.rows(trace, names)
    return _join([rows, _idle_row(HOST, idle_ps)]) if rows.name else rows


def _named_ops(trace: Trace, names: _Names) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Host events that are ops, ascending, with the code of each; one that names a second op comes twice."""
    code_of_meta = np.full(len(trace.space.meta_name), -1, np.int64)
    at = np.flatnonzero(trace.meta_is_op)
    ops, is_tf = trace.ops, (trace.ops.category == TF_OP).tolist()
    code_of_meta[at] = [names.code(ops.name[i], ops.type[i], is_tf=is_tf[i]) for i in at.tolist()]
    is_host = trace.line_is_host & ~trace.line_is_derived
    event = np.flatnonzero((code_of_meta >= 0)[trace.meta] & is_host[trace.line])
    code = code_of_meta[trace.meta[event]]

    owner, text, texts = trace.strings("tf_op")
    is_allocation = trace.meta_matches(ALLOCATION_NAMES.__contains__)
    launches = is_host[trace.line[owner]] & ~is_allocation[trace.meta[owner]]
    if not launches.any():
        return event, code
    owner, text = owner[launches], text[launches]
    code_of_text = np.full(len(texts), -1, np.int64)
    for i in np.unique(text):
        op = parse_op(texts[i])
        if op.name:
            code_of_text[i] = names.code(op.name, op.type, is_tf=op.category == TF_OP)
    named = code_of_text[text] >= 0
    event, code = np.concatenate([event, owner[named]]), np.concatenate([code, code_of_text[text[named]]])
    order = np.argsort(event, kind="stable")
    return event[order], code[order]


def _runs(
    trace: Trace, names: _Names, event: NDArray[np.int64], code: NDArray[np.int64], eager: NDArray[np.int64]
) -> _Runs:
    is_eager = _stored_eager(trace)[event] | _inside(trace, event, eager)
    if len(code):
        is_eager &= np.array(names.is_tf, bool)[code]
    times = np.ones(len(event), np.int64)
    own = np.zeros(len(event), np.int64)
    occurrences = _occurrences(trace)
    timed = np.arange(len(event))
    if occurrences is not None:  # a number of occurrences and the sum of their times, but no starts: no nesting
        times = np.maximum(occurrences[event], 1)
        timed = np.flatnonzero(occurrences[event] <= 0)
        duration = trace.duration_ps.copy()
        owner, value = trace.ints("self_duration_ps")
        duration[owner] = np.clip(value, 0, duration[owner])
        own = duration[event]
    own[timed] = _nested_self_ps(trace, event[timed])[0]
    return _Runs(event, code, times, own, is_eager)


def _occurrences(trace: Trace) -> NDArray[np.int64] | None:
    """``num_occurrences`` of aggregated events, 0 of ordinary ones, shape (N,); None if all are ordinary."""
    occurrences = trace.space.event_occurrences
    if occurrences is None or not (occurrences > 0).any():
        return None
    return occurrences if trace.order is None else occurrences[trace.order]


def _nested_self_ps(trace: Trace, event: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Self time of each of some events (ascending) by their nesting among themselves, and the parent of each.

    Where two overlap in part, the inner one counts until the outer one ends, so that no time counts twice.
    """
    start = trace.start_ps[event]
    _, parent, effective_end = nest(trace.line[event], start, trace.duration_ps[event])
    length = effective_end - start
    return length - child_sum(parent, length), parent


def _host_idle_ps(trace: Trace, runs: _Runs) -> int:
    """Thread time between the first and the last op of each line in which no op ran."""
    occurrences = _occurrences(trace)
    event, own = runs.event, runs.self_ps
    if occurrences is not None:
        timed = occurrences[event] <= 0
        event, own = event[timed], own[timed]
    if not len(event):
        return 0
    line = trace.line[event]
    first = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
    window = np.maximum.reduceat(trace.end_ps[event], first) - np.minimum.reduceat(trace.start_ps[event], first)
    return int(np.maximum(window - np.add.reduceat(own, first), 0).sum())


# ---- ops that Python runs one by one ---------------------------------------------------------------------------


def _eager_calls(trace: Trace) -> NDArray[np.int64]:
    """``EagerExecute`` of ops (not of traced functions), ascending."""
    owner, is_func = trace.ints("is_func")
    by_stat = np.isin(owner[is_func == 0], trace.named(_EAGER_EXECUTE), assume_unique=True)
    calls = owner[is_func == 0][by_stat]
    # TensorFlow 2.4 wrote the op's name into the event's.
    named = trace.meta_search(f"^{_EAGER_PREFIX}") & ~trace.meta_search(
        f"^{_EAGER_PREFIX}({'|'.join(_FUNCTION_PREFIXES)})"
    )
    if named.any():
        calls = np.union1d(calls, np.flatnonzero(named[trace.meta]))
    return calls[trace.line_is_host[trace.line[calls]]]


def _stored_eager(trace: Trace) -> NDArray[np.bool_]:
    """Events that TensorFlow itself has marked as eager, shape (N,)."""
    stored = np.zeros(len(trace), bool)
    owner, value = trace.ints("is_eager")
    stored[owner] = value != 0
    return stored


def _inside(trace: Trace, event: NDArray[np.int64], span: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which events lie within one of some spans (ascending) of their line."""
    inside = np.zeros(len(event), bool)
    line = trace.line[event]
    for number in np.unique(trace.line[span]):  # the threads on which Python runs: few
        mine = np.flatnonzero(line == number)
        spans = span[trace.line[span] == number]
        last = np.searchsorted(trace.start_ps[spans], trace.start_ps[event[mine]], side="right") - 1
        reach = np.maximum.accumulate(trace.end_ps[spans])
        inside[mine] = (last >= 0) & (trace.end_ps[event[mine]] <= reach[np.maximum(last, 0)])
    return inside


def _eager_types(trace: Trace, calls: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
    """Op type that each call runs: a code into a list of types; -1 if it says none."""
    code = np.full(len(trace), -1, np.int64)
    owner, text, texts = trace.strings("eager_op")
    code[owner] = text
    lookup = {kind: i for i, kind in enumerate(texts)}
    for meta in np.unique(trace.meta[calls]):
        kind = trace.space.meta_name[meta][len(_EAGER_PREFIX) :]
        if kind:
            code[calls[trace.meta[calls] == meta]] = lookup.setdefault(kind, len(lookup))
    return code[calls], list(lookup)


def _with_eager(trace: Trace, names: _Names, runs: _Runs, calls: NDArray[np.int64]) -> _Runs:
    """Add the ops that ran eagerly and left no event of their own.

    Before TensorFlow 2.5 a call holds an event of its op (``Mul:Mul``); then that counts, not the call.
    """
    kind, kinds = _eager_types(trace, calls)
    calls, kind = calls[kind >= 0], kind[kind >= 0]
    types = np.array(names.types, object)
    occurrences = _occurrences(trace)
    timed = np.ones(len(runs.event), bool) if occurrences is None else occurrences[runs.event] <= 0
    while len(calls):
        # Both kinds together, in the lines where there are calls.
        rows = np.flatnonzero(timed & np.isin(trace.line[runs.event], np.unique(trace.line[calls])))
        both = np.concatenate([calls, runs.event[rows]])
        order = np.argsort(both, kind="stable")
        own, parent = _nested_self_ps(trace, both[order])
        above = np.where(parent >= 0, order[parent], -1)  # as indices into `both`
        op = np.flatnonzero((order >= len(calls)) & (above >= 0) & (above < len(calls)))
        of_op = types[runs.code[rows[order[op] - len(calls)]]] if len(op) else np.empty(0, object)
        of_call = np.array(kinds, object)[kind[above[op]]]
        seen = np.unique(above[op][of_op == of_call])
        if len(seen):
            calls, kind = np.delete(calls, seen), np.delete(kind, seen)
            continue
        back = np.empty(len(both), np.int64)
        back[order] = own
        self_ps = runs.self_ps.copy()
        self_ps[rows] = back[len(calls) :]
        code = np.array([names.code(k, k, is_tf=True, eager=True) for k in kinds], np.int64)
        return _Runs(
            event=np.concatenate([runs.event, calls]),
            code=np.concatenate([runs.code, code[kind]]),
            times=np.concatenate([runs.times, np.ones(len(calls), np.int64)]),
            self_ps=np.concatenate([self_ps, back[: len(calls)]]),
            is_eager=np.concatenate([runs.is_eager, np.ones(len(calls), bool)]),
        )
    return runs


# ---- devices ---------------------------------------------------------------------------------------------------


def _device_rows(trace: Trace) -> _Rows:
    devices = device_events(trace)
    work = np.flatnonzero((devices.kind != OTHER) & devices.is_measured)
    if not len(work):
        return _join([])
    event, meta = devices.event[work], trace.meta[devices.event[work]]
    names = _Names()
    # One name, one row: the first type that is known of it.
    code_of_op = np.array([names.code(n, t) for n, t in zip(devices.op_names, devices.op_types, strict=True)], np.int64)
    op = devices.op_code[work]
    code = np.where(op >= 0, code_of_op[op], -1) if len(code_of_op) else np.full(len(work), -1, np.int64)
    for kind in np.unique(devices.kind[work][code < 0]):
        rest = np.flatnonzero((code < 0) & (devices.kind[work] == kind))
        if kind == KERNEL:
            code[rest] = names.code(UNATTRIBUTED, UNATTRIBUTED)
        else:  # a copy of which no op is known says what it is itself
            metas, inverse = np.unique(meta[rest], return_inverse=True)
            code[rest] = np.array([names.code(trace.space.meta_name[m], KINDS[kind]) for m in metas], np.int64)[inverse]

    # An op of a program launches the same kernels each time, so its most frequent one tells how often it ran.
    program = np.full(len(devices), -1, np.int64)
    owner, value = trace.ints("program_id")
    row, found = devices.rows(owner)
    program[row] = value[found]
    keys = (code, devices.plane[work], program[work], meta)
    order = np.lexsort(keys[::-1])
    new = np.array([np.diff(key[order], prepend=key[order[0]] - 1) != 0 for key in keys])
    kernel = np.flatnonzero(new.any(axis=0))
    times = np.diff(kernel, append=len(order))
    run = np.flatnonzero(new[:3, kernel].any(axis=0))
    (occurrences,) = _sums(code[order[kernel[run]]], len(names), np.maximum.reduceat(times, run))
    if UNATTRIBUTED in names.names:
        at = names.code(UNATTRIBUTED, UNATTRIBUTED)
        occurrences[at] = np.count_nonzero(code == at)

    duration = trace.duration_ps[event]
    eager = _device_eager(trace, devices)[work].astype(np.int64)
    total, times_eager = _sums(code, len(names), duration, eager)
    flops = _weights(code, _per_event(trace, "flops", event), len(names))
    size = _weights(code, _per_event(trace, "bytes_accessed", event), len(names))
    sides = [DEVICE] * len(names)
    rows = _Rows(sides, names.types, names.names, occurrences, total, total, times_eager > 0, flops, size).ran()
    return _join([rows, _idle_row(DEVICE, _device_idle_ps(trace, devices, work))])


def _device_idle_ps(trace: Trace, devices: DeviceEvents, work: NDArray[np.int64]) -> int:
    event = devices.event[work]
    plane, start, end = devices.plane[work].astype(np.int64), trace.start_ps[event], trace.end_ps[event]
    order = np.argsort(plane, kind="stable")
    first = np.flatnonzero(np.concatenate([[True], np.diff(plane[order]) != 0]))
    window = np.maximum.reduceat(end[order], first) - np.minimum.reduceat(start[order], first)
    busy = union_ps(plane, start, end, int(plane.max()) + 1)
    return int(window.sum() - busy.sum())


def _device_eager(trace: Trace, devices: DeviceEvents) -> NDArray[np.bool_]:
    """Device events that an op launched which Python ran eagerly, shape (n,)."""
    stored = _stored_eager(trace)[devices.event]
    eager = _eager_calls(trace)
    if len(eager):
        launch = host_launch(trace, devices)
        known = np.flatnonzero(launch >= 0)
        stored[known] |= _inside(trace, launch[known], eager)
    return stored


def _per_event(trace: Trace, stat: str, event: NDArray[np.int64]) -> NDArray[np.float64]:
    """A numeric stat of some events, their own or that of their metadata; 0 where there is none."""
    of_meta = np.zeros(len(trace.space.meta_name), np.float64)
    owner, value = trace.space.meta_stats.floats(stat)
    of_meta[owner] = value
    result = of_meta[trace.meta[event]]
    own_event, own = trace.floats(stat)
    if len(own_event):
        position = np.minimum(np.searchsorted(own_event, event), len(own_event) - 1)
        result = np.where(own_event[position] == event, own[position], result)
    return np.where(np.isfinite(result) & (result > 0), result, 0.0)


# ---- the table ---------------------------------------------------------------------------------------------------


def _sums(code: NDArray[np.int64], n: int, *values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Sums of some columns by code, exact in int64 (bincount would go through float64)."""
    totals = [np.zeros(n, np.int64) for _ in values]
    if len(code):
        order = stable_order(code)
        sorted_code = code[order]
        first = np.flatnonzero(np.concatenate([[True], sorted_code[1:] != sorted_code[:-1]]))
        for total, value in zip(totals, values, strict=True):
            total[sorted_code[first]] = np.add.reduceat(value[order], first)
    return totals


def _weights(code: NDArray[np.int64], value: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    return np.bincount(code, value, n).astype(np.float64)


def _idle_row(side: str, idle_ps: int) -> _Rows:
    time_ps, nothing = np.array([idle_ps], np.int64), np.zeros(1)
    return _Rows([side], [IDLE], [IDLE], np.zeros(1, np.int64), time_ps, time_ps, np.zeros(1, bool), nothing, nothing)


def _join(parts: list[_Rows]) -> _Rows:
    if not parts:
        times, nothing = np.zeros(0, np.int64), np.zeros(0)
        return _Rows([], [], [], times, times, times, np.zeros(0, bool), nothing, nothing)
    columns = zip(*(part.columns() for part in parts), strict=True)
    joined: list[Any] = [list(chain.from_iterable(c)) if isinstance(c[0], list) else np.concatenate(c) for c in columns]
    return _Rows(*joined)


def _over_hosts(rows: _Rows) -> _Rows:
    """Add up the rows that several hosts have of one op."""
    lookup: dict[tuple[str, str, bool], int] = {}
    first: list[int] = []
    types: list[str] = []
    keys = zip(rows.side, rows.name, rows.is_eager.tolist(), strict=True)
    code = np.empty(len(rows.name), np.int64)
    for i, key in enumerate(keys):
        code[i] = lookup.setdefault(key, len(first))
        if code[i] == len(first):
            first.append(i)
            types.append(rows.type[i])
        else:
            types[code[i]] = types[code[i]] or rows.type[i]
    n = len(first)
    occurrences, total, own = _sums(code, n, rows.occurrences, rows.total_ps, rows.self_ps)
    merged = rows.at(np.array(first, np.int64))
    flops, size = _weights(code, rows.flops, n), _weights(code, rows.bytes, n)
    return _Rows(merged.side, types, merged.name, occurrences, total, own, merged.is_eager, flops, size)


def _finish(rows: _Rows, traces: list[Trace]) -> pd.DataFrame:
    if len(traces) > 1 and rows.name:
        rows = _over_hosts(rows)
    keys = list(zip(rows.side, (-rows.self_ps).tolist(), rows.name, strict=True))
    rows = rows.at(np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64))
    times, total, own = rows.occurrences, rows.total_ps, rows.self_ps
    once = np.maximum(times, 1)
    table = pd.DataFrame(
        {
            "host_or_device": rows.side,
            "type": [kind or "Unknown" for kind in rows.type],
            "name": rows.name,
            "occurrences": times,
            "total_time_us": total / 1e6,
            "avg_time_us": np.where(times > 0, total / once, 0) / 1e6,
            "self_time_us": own / 1e6,
            "avg_self_time_us": np.where(times > 0, own / once, 0) / 1e6,
            **_percents(np.array(rows.side, object), own / 1e6),
            "execution_mode": np.where(rows.is_eager, EAGER, FUNCTION),
        },
        columns=list(_COLUMNS),
    )
    _put_rates(table, rows, traces)
    return table


def _percents(side: NDArray[np.object_], self_time: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """The columns `_PERCENTS`."""
    columns = {}
    for name, prefix in ((DEVICE, "device"), (HOST, "host")):
        mine = side == name
        own = np.where(mine, self_time, 0.0)
        total = own.sum()
        share = 100 * own / total if total > 0 else np.zeros(len(own))
        # Cumulative in the order of self time, whatever the order of the rows.
        by_time = np.argsort(-own, kind="stable")
        cumulative = np.empty(len(own))
        cumulative[by_time] = np.minimum(np.cumsum(share[by_time]), 100.0)
        columns[f"{prefix}_self_time_pct"] = share
        columns[f"{prefix}_cumulative_pct"] = np.where(mine, cumulative, 0.0)
    return columns


def _put_rates(table: pd.DataFrame, rows: _Rows, traces: list[Trace]) -> None:
    """Add what follows from FLOPs and bytes, if the file has any."""
    flops, size = rows.flops, rows.bytes
    if not (flops > 0).any() and not (size > 0).any():
        return
    seconds = table["total_time_us"].to_numpy(float) / 1e6
    per_second = np.divide(1.0, seconds, out=np.full(len(table), np.nan), where=seconds > 0)
    table["flop_rate_gflops"] = np.where(flops > 0, flops * per_second / 1e9, np.nan)
    table["bandwidth_gibps"] = np.where(size > 0, size * per_second / 2**30, np.nan)
    table["operational_intensity"] = np.divide(
        flops, size, out=np.full(len(table), np.nan), where=(flops > 0) & (size > 0)
    )
    peak_flops, peak_bytes = _peaks(traces)
    if peak_flops and peak_bytes:
        of_compute, of_memory = flops * per_second / peak_flops, size * per_second / peak_bytes
        bound = np.where(of_compute >= of_memory, "Compute", "HBM").astype(object)
        bound[(flops <= 0) & (size <= 0)] = None
        table["bound_by"] = bound


def _peaks(traces: list[Trace]) -> tuple[float, float]:
    """FLOPs and bytes a second at most, of the first device that says both; 0 if none does."""
    for trace in traces:
        for device, stats in zip(trace.plane_is_device, trace.space.plane_stats, strict=True):
            flops, memory = stats.get("peak_teraflops_per_second"), stats.get("peak_hbm_bw_gigabytes_per_second")
            if device and isinstance(flops, int | float) and isinstance(memory, int | float):
                return 1e12 * flops, 1e9 * memory
    return 0.0, 0.0
