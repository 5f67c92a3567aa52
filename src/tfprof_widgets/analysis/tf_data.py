"""tf.data: the stages of each input pipeline, and which of them the training loop waits for.

XProf's analysis (since removed from it) calls a run input-bound if its slowest ``GetNext`` took more than 50 µs, which almost
every run does: the first call fills the buffers. Here the waiting is set against the step time, over the steps that enter
averages, and the time of each call of the outermost iterator is divided among the stages that it was spent in (`iterators.blame`),
so that the stages' shares sum to what the loop waited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .in_words import ms, share
from .intervals import union_ps
from .iterators import Iterators, blame, is_asynchronous, iterators, short_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .events import Trace
    from .steps import Steps

# Shares of the step time from which waiting for input is moderate and high: those of XProf's input pipeline analyzer.
MODERATE_INPUT_PCT = 5.0
HIGH_INPUT_PCT = 20.0
# Without steps, a call is slow from here on (XProf's threshold, in µs).
SLOW_CALL_US = 50.0

_NUMBER = re.compile(r":\d+$")
# More datasets than this that differ in nothing but their number, each read once, come from a loop that makes them.
_MANY_DATASETS = 8
_BELOW_INTERLEAVE = re.compile(r"::ParallelInterleave\w*(?=\[\*\])")
_STAGE_COLUMNS = {
    "host": "str", "pipeline": "int64", "stage": "str", "name": "str", "depth": "int64", "parent": "str", "calls": "int64",
    "total_time_ms": "float64", "self_time_ms": "float64", "wait_time_ms": "float64", "work_time_ms": "float64",
    "function_time_ms": "float64", "python_time_ms": "float64", "time_per_batch_ms": "float64",
    "blocking_time_ms": "float64", "blocking_pct": "float64", "is_bottleneck": "bool", "is_asynchronous": "bool",
    "is_autotuned": "bool", "parallelism": "float64", "buffer_size": "float64", "buffered_elements": "float64",
    "batch_size": "float64", "cycle_length": "float64",
}  # fmt: skip
_PIPELINE_COLUMNS = {
    "host": "str", "pipeline": "int64", "name": "str", "kind": "str", "place": "str", "iterators": "int64", "calls": "int64",
    "mean_ms": "float64", "min_ms": "float64", "max_ms": "float64", "first_call_ms": "float64", "total_time_ms": "float64",
    "slow_calls": "int64", "step_time_ms": "float64", "blocked_ms": "float64", "blocked_pct": "float64", "verdict": "str",
    "bottleneck": "str", "bottleneck_pct": "float64", "cpu_budget": "float64", "statement": "str", "suggestion": "str",
}  # fmt: skip
_CALL_COLUMNS = {
    "host": "str", "pipeline": "int64", "iterator": "int64", "step": "int64", "start_ms": "float64", "duration_ms": "float64",
    "is_slow": "bool", "is_judged": "bool", "bottleneck": "str", "bottleneck_ms": "float64",
}  # fmt: skip


@dataclass(frozen=True)
class TfData:
    """The input pipelines of one host. Each table begins with the ``host``.

    Attributes
    ----------
    pipelines : DataFrame
        One row a pipeline (the iterators of several epochs over one dataset are one): ``pipeline`` (number), ``name`` (its
        last dataset), ``kind`` (of the steps that it feeds), ``place`` (``host``, or ``device`` for the part that only hands
        batches on to a device), ``iterators``, ``calls`` of the outermost iterator with their ``mean_ms``, ``min_ms``, ``max_ms``
        and ``total_time_ms``, ``first_call_ms`` (mean of the iterators' first calls, which fill the buffers), ``slow_calls``
        (longer than 5 % of a step); ``step_time_ms`` (mean; without steps the mean time from call to call), ``blocked_ms`` and
        ``blocked_pct`` (what the loop waited a step, and its share), ``verdict`` (``high``, ``moderate``, ``low``), ``bottleneck`` (the
        stage with most of that waiting) and its ``bottleneck_pct`` of it, ``cpu_budget`` (threads), ``statement``, ``suggestion``.
    stages : DataFrame
        One row a pipeline and stage, outermost first: ``stage`` (long name), ``name``, ``depth``, ``parent`` (long name of the stage that
        reads from it), ``calls``, ``total_time_ms``, ``self_time_ms`` (without the stages and ops that it calls on its thread),
        ``wait_time_ms`` (of that, waiting for another thread), ``work_time_ms`` (own work: self time less waiting, and handing
        elements over in the background), ``function_time_ms`` (thread time in the functions given to it, wherever they ran),
        ``python_time_ms`` (of that, in ``py_function`` and the like, which run one at a time), ``time_per_batch_ms`` (work, and function
        time divided by the parallelism, for each call of the outermost iterator: what the stage can't do a batch faster than),
        ``blocking_time_ms`` and ``blocking_pct`` (what the loop waited for it), ``is_bottleneck``, ``is_asynchronous``, and
        its parameters as last seen: ``is_autotuned``, ``parallelism``, ``buffer_size``, ``batch_size``, ``cycle_length``; and the
        mean ``buffered_elements`` at a call. NaN where the profile doesn't say.
    calls : DataFrame
        One row a call of an outermost iterator, in time order: ``pipeline``, ``iterator`` (number), ``step`` (-1: none), ``start_ms``,
        ``duration_ms``, ``is_slow``, ``is_judged`` (enters the verdict), ``bottleneck`` (stage with most of its time), ``bottleneck_ms``.
    notes : list of str
        What the reader of the numbers should know.
    main, main_stage : dict or None
        The rows of ``pipelines`` and ``stages`` of what the loop waited for longest: a pipeline that feeds training, on the host,
        if there is one.
    """

    pipelines: pd.DataFrame
    stages: pd.DataFrame
    calls: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    main: dict[str, Any] | None = None
    main_stage: dict[str, Any] | None = None


def tf_data(trace: Trace, steps: Steps | None = None, its: Iterators | None = None) -> TfData:
    """Analyse the input pipelines of a host.

    Parameters
    ----------
    trace : Trace
        The host's events.
    steps : Steps, optional
        Its steps; without them waiting is set against the time from call to call.
    its : Iterators, optional
        The trace's iterator events, if they are at hand.

    Returns
    -------
    TfData
        With empty tables and a note if the trace holds no tf.data iterators.
    """
    its = iterators(trace) if its is None else its
    if not len(its.event):
        notes = [
            "No tf.data iterators in this profile: the input doesn't come from tf.data, or nothing was read while the profiler ran."
        ]
        return TfData(frame({}, _PIPELINE_COLUMNS), frame({}, _STAGE_COLUMNS), frame({}, _CALL_COLUMNS), notes)
    step_times = _StepTimes(steps)
    calls = _root_calls(trace, its, steps)
    kind = _kind_of_iterators(its, calls, step_times)
    name = _names(trace, its)
    pipeline_of_iterator = _pipelines(trace, its, kind, name)
    calls.pipeline = pipeline_of_iterator[its.iterator[calls.row]]
    calls.judged = _judged(calls, step_times)

    pipelines = _pipeline_rows(trace, its, calls, kind, name, pipeline_of_iterator, step_times)
    slow = _slow(calls, pipelines)
    blocking, owner = blame(trace, its)
    waited = np.zeros(len(its.event), np.bool_)
    waited[calls.row] = calls.judged
    stages = _stage_rows(
        trace, its, pipeline_of_iterator, pipelines, np.where(waited[owner] & (owner >= 0), blocking, 0)
    )
    bottlenecks = {row["pipeline"]: row for row in stages if row["is_bottleneck"]}
    slow_calls = np.bincount(calls.pipeline[slow], minlength=len(pipelines))
    for row in pipelines:
        row["slow_calls"] = int(slow_calls[row["pipeline"]])
        _judge(row, bottlenecks.get(row["pipeline"]))
    main = _main(pipelines)
    notes = []
    if all(row["place"] == "device" for row in pipelines):
        notes.append(
            "Only the part of the pipeline that hands batches to a device is in this profile, not the host's part."
        )
    idle = sum(row["calls"] == 0 for row in pipelines)
    if idle:
        notes.append(
            f"{idle} of {len(pipelines)} pipelines worked in the background, but nobody took anything from them meanwhile."
        )
    return TfData(
        pipelines=_frame(trace.host, pipelines, _PIPELINE_COLUMNS),
        stages=_frame(trace.host, stages, _STAGE_COLUMNS),
        calls=_call_table(trace.host, its, calls, slow, blocking, owner),
        notes=notes,
        main=main,
        main_stage=bottlenecks.get(main["pipeline"]) if main else None,
    )


def _main(pipelines: list[dict[str, Any]]) -> dict[str, Any] | None:
    used = [row for row in pipelines if row["calls"]]
    for wanted in ({"place": "host", "kind": "train"}, {"place": "host"}, {}):
        found = [row for row in used if all(row[key] == value for key, value in wanted.items())]
        if found:
            return max(found, key=lambda row: row["blocked_ms"])
    return None


def frame(columns: Mapping[str, Any], kinds: Mapping[str, str]) -> pd.DataFrame:
    """Make a table of columns (lists or arrays; by name, missing ones if there are no rows) with the types given."""

    def typed(name: str, kind: str) -> Any:
        values = columns.get(name, ())
        if kind == "str":  # pandas decides between its string types; only an empty column needs to be told
            return list(values) if len(values) else pd.Series(dtype="str")
        return np.asarray(values, kind)

    return pd.DataFrame({name: typed(name, kind) for name, kind in kinds.items()})


def _frame(host: str, rows: list[dict[str, Any]], kinds: dict[str, str]) -> pd.DataFrame:
    columns = {name: [row[name] for row in rows] for name in kinds if name != "host"}
    return frame({"host": [host] * len(rows), **columns}, kinds)


class _StepTimes:
    """When (by the longest device), kind, and whether it enters averages, of each step; S steps, numbered from 0."""

    def __init__(self, steps: Steps | None) -> None:
        self.known = steps is not None and len(steps.table) > 0
        self.kinds: list[str] = []
        self.duration_ms = np.zeros(0)
        self.start_ps = self.end_ps = np.zeros(0, np.int64)
        self.averaged = np.zeros(0, np.bool_)
        self._kind = np.zeros(0, np.int64)
        if steps is None or not len(steps.table):
            return
        number, duration_ms, kind = (steps.table[c].to_numpy()[steps.slowest] for c in ("step", "duration_ms", "kind"))
        self.duration_ms = np.zeros(number.max() + 1)
        self.duration_ms[number] = duration_ms
        self.start_ps, self.end_ps = np.zeros((2, len(self.duration_ms)), np.int64)
        self.start_ps[number] = np.rint(steps.table["start_ms"].to_numpy()[steps.slowest] * 1e9).astype(np.int64)
        self.end_ps[number] = self.start_ps[number] + np.rint(duration_ms * 1e9).astype(np.int64)
        self.averaged = np.zeros(len(self.duration_ms), np.bool_)
        self.averaged[number] = steps.averaged[steps.slowest]
        self.kinds = list(dict.fromkeys(kind))
        self._kind = np.full(len(self.duration_ms), -1, np.int64)
        self._kind[number] = [self.kinds.index(one) for one in kind]

    def kind(self, step: NDArray[np.int64]) -> NDArray[np.int64]:
        """Code of the kind of steps; -1 for none."""
        known = (step >= 0) & (step < len(self._kind))
        return np.where(known, self._kind[np.where(known, step, 0)] if len(self._kind) else -1, -1)


@dataclass
class _RootCalls:
    """Calls of outermost iterators in time order. C calls; ``row`` is that of the iterator event."""

    row: NDArray[np.int64]
    iterator: NDArray[np.int64]
    step: NDArray[np.int64]
    start_ps: NDArray[np.int64]
    duration_ps: NDArray[np.int64]
    pipeline: NDArray[np.int64]
    judged: NDArray[np.bool_]


def _root_calls(trace: Trace, its: Iterators, steps: Steps | None) -> _RootCalls:
    row = np.flatnonzero(its.is_root_call)
    row = row[np.argsort(trace.start_ps[its.event[row]], kind="stable")]
    event = its.event[row]
    step = np.full(len(row), -1, np.int64)
    if steps is not None and len(steps.table):
        step = steps.step_of(trace)[event]
    _, first, where = np.unique(its.iterator[row], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    nothing = np.zeros(len(row), np.int64)
    return _RootCalls(
        row, rank[where], step, trace.start_ps[event], trace.duration_ps[event], nothing, nothing.astype(bool)
    )


def _values(trace: Trace, its: Iterators, stat: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of iterator events with an integer stat, and its values; in time order, so that the last one to be stored wins."""
    owner, value = trace.ints(stat)
    row = np.minimum(np.searchsorted(its.event, owner), len(its.event) - 1)
    mine = its.event[row] == owner
    row, value = row[mine], value[mine]
    order = np.argsort(trace.start_ps[its.event[row]], kind="stable")
    return row[order], value[order]


def _kind_of_iterators(its: Iterators, calls: _RootCalls, steps: _StepTimes) -> NDArray[np.object_]:
    """Kind of the steps that most calls of each outermost iterator were made in; shape (U,)."""
    result = np.full(len(its.iterator_stage), "", object)
    kind = steps.kind(calls.step)
    known = kind >= 0
    width = len(steps.kinds) + 1
    pair, count = np.unique(its.iterator[calls.row[known]] * width + kind[known], return_counts=True)
    by_count = np.argsort(count, kind="stable")  # the last one to be stored wins
    result[pair[by_count] // width] = np.array([*steps.kinds, ""], object)[pair[by_count] % width]
    return result


def _names(trace: Trace, its: Iterators) -> NDArray[np.object_]:
    """Name of the dataset that each outermost iterator reads, as its calls give it; shape (U,)."""
    result = np.full(len(its.iterator_stage), "", object)
    owner, code, texts = trace.strings("name")
    row = np.minimum(np.searchsorted(its.event, owner), len(its.event) - 1)
    mine = (its.event[row] == owner) & its.is_root_call[row]
    if mine.any():
        result[its.iterator[row[mine]]] = np.array(texts, object)[code[mine]]
    return result


def _pipelines(trace: Trace, its: Iterators, kind: NDArray[np.object_], name: NDArray[np.object_]) -> NDArray[np.int64]:
    """Pipeline of each iterator: one a dataset, however many iterators (epochs) went over it; numbered in time order."""
    tops, top = np.unique(its.top_iterator, return_inverse=True)
    first_seen = np.full(len(tops), np.iinfo(np.int64).max)
    np.minimum.at(first_seen, top[its.iterator], trace.start_ps[its.event])
    known = its.iterator_stage >= 0
    pairs = np.unique(top[known] * (len(its.stage_name) + 1) + its.iterator_stage[known])
    bounds = np.searchsorted(pairs, np.arange(len(tops) + 1) * (len(its.stage_name) + 1))
    stages = pairs % (len(its.stage_name) + 1)

    labels = _labels(kind[tops].tolist(), name[tops].tolist())
    sets = [frozenset(part.tolist()) for part in np.split(stages, bounds[1:-1])]
    # Iterators over one dataset may have shown different parts of it: the smaller set of stages belongs to the larger.
    variants: dict[tuple[str, str], dict[frozenset[int], frozenset[int]]] = {}
    for label, one in zip(labels, sets, strict=True):
        variants.setdefault(label, {})[one] = one
    for seen in variants.values():
        by_size = sorted(seen, key=lambda one: (-len(one), sorted(one)))
        for one in by_size:
            seen[one] = next(other for other in by_size if one <= other)
    code: dict[tuple[tuple[str, str], frozenset[int]], int] = {}
    number = np.empty(len(tops), np.int64)
    for i in np.argsort(first_seen, kind="stable"):
        number[i] = code.setdefault((labels[i], variants[labels[i]][sets[i]]), len(code))
    return number[top]


def _labels(kinds: list[str], names: list[str]) -> list[tuple[str, str]]:
    """What iterators of one dataset have in common: the kind of the steps that they feed, and the dataset's name."""
    of_name: dict[str, set[str]] = {}
    for kind, name in zip(kinds, names, strict=True):
        of_name.setdefault(name, set()).update({kind} - {""})
    # One whose calls were in no step feeds the same steps as the others of its dataset, if that is clear.
    kinds = [
        kind or (min(of_name[name]) if name and len(of_name[name]) == 1 else "")
        for kind, name in zip(kinds, names, strict=True)
    ]
    # A loop that makes a dataset each time (Keras' predict does) gives each another number: they are one pipeline.
    iterators_of: dict[tuple[str, str], dict[str, int]] = {}
    for kind, name in zip(kinds, names, strict=True):
        numbered = iterators_of.setdefault((kind, _NUMBER.sub("", name)), {})
        numbered[name] = numbered.get(name, 0) + 1
    return [
        (kind, short if len(numbered) > _MANY_DATASETS and max(numbered.values()) == 1 else name)
        for kind, name, short in zip(kinds, names, (_NUMBER.sub("", n) for n in names), strict=True)
        for numbered in [iterators_of[kind, short]]
    ]


def _groups(number: NDArray[np.int64], count: int = 0) -> list[NDArray[np.int64]]:
    """Positions of 0, of 1, … in an array, at least up to ``count - 1``."""
    order = np.argsort(number, kind="stable")
    size = np.bincount(number, minlength=count)
    return np.split(order, np.cumsum(size)[:-1]) if len(size) else []


def _judged(calls: _RootCalls, steps: _StepTimes) -> NDArray[np.bool_]:
    """Root calls that enter the verdict: those of the steps in averages; without steps, all but each iterator's first."""
    judged = np.zeros(len(calls.row), np.bool_)
    known = np.flatnonzero((calls.step >= 0) & (calls.step < len(steps.averaged)))
    judged[known] = steps.averaged[calls.step[known]]
    for mine in _groups(calls.pipeline):
        if not len(mine) or judged[mine].any():
            continue
        later = np.ones(len(mine), np.bool_)
        later[np.unique(calls.iterator[mine], return_index=True)[1]] = False
        judged[mine] = later if later.any() else True
    return judged


def _pipeline_rows(
    trace: Trace,
    its: Iterators,
    calls: _RootCalls,
    kind: NDArray[np.object_],
    name: NDArray[np.object_],
    pipeline_of_iterator: NDArray[np.int64],
    steps: _StepTimes,
) -> list[dict[str, Any]]:
    """What `TfData.pipelines` holds, but for the verdicts."""
    count = int(pipeline_of_iterator.max()) + 1
    budget = np.full(count, np.nan)
    row, value = _values(trace, its, "cpu_budget")
    budget[pipeline_of_iterator[its.iterator[row]]] = value
    top_stage = np.full(count, -1, np.int64)
    top_stage[pipeline_of_iterator] = its.iterator_stage[its.top_iterator]
    label = np.full(count, "", object)
    named = np.flatnonzero(name != "")
    label[pipeline_of_iterator[named][::-1]] = name[named][::-1]
    # A prefetch that reads from a generator only hands on to a device what a pipeline on the host made.
    on_device = np.zeros(count, np.bool_)
    handing_on = np.array([*(n == "Iterator::Prefetch::Generator" for n in its.stage_name), False], bool)
    on_device[pipeline_of_iterator[handing_on[its.iterator_stage]]] = True

    rows = []
    for number, mine in enumerate(_groups(calls.pipeline, count)):
        call_ms = calls.duration_ps[mine] / 1e9
        iterators_here, first = np.unique(calls.iterator[mine], return_index=True)
        step_ms, blocked_ms = _step_time(calls, mine, steps)
        some = len(mine) > 0
        rows.append(
            {
                "pipeline": number,
                "name": label[number] or ([*its.stage_name, ""][top_stage[number]]),
                "kind": kind[its.iterator[calls.row[mine[0]]]] if some else "",
                "place": "device" if on_device[number] else "host",
                "iterators": len(iterators_here),
                "calls": len(mine),
                "mean_ms": call_ms.mean() if some else np.nan,
                "min_ms": call_ms.min() if some else np.nan,
                "max_ms": call_ms.max() if some else np.nan,
                "first_call_ms": call_ms[first].mean() if some else np.nan,
                "total_time_ms": call_ms.sum(),
                "step_time_ms": step_ms,
                "blocked_ms": blocked_ms,
                "blocked_pct": min(100.0, 100 * blocked_ms / step_ms) if step_ms > 0 else 0.0,
                "cpu_budget": budget[number],
            }
        )
    return rows


def _step_time(calls: _RootCalls, mine: NDArray[np.int64], steps: _StepTimes) -> tuple[float, float]:
    """Mean step time and mean waiting a step, in ms; NaN and 0 where there is nothing to go by."""
    judged = mine[calls.judged[mine]]
    if not len(judged):
        return np.nan, 0.0
    if steps.known and (calls.step[judged] >= 0).all():
        step, group = np.unique(calls.step[judged], return_inverse=True)
        start, end = calls.start_ps[judged], calls.start_ps[judged] + calls.duration_ps[judged]
        # A host that runs ahead of its device waits beside the step before: that costs no time.
        start, end = np.maximum(start, steps.start_ps[step][group]), np.minimum(end, steps.end_ps[step][group])
        # Replicas read at the same time: the step waits as long as one of them does.
        waited = union_ps(group.astype(np.int64), start, end, len(step))
        return float(steps.duration_ms[step].mean()), float(waited.mean()) / 1e9
    waited_ms = float(calls.duration_ps[judged].mean()) / 1e9
    # From call to call, each iterator by itself (the pauses between epochs are no steps), from its second call on if it can be.
    for some in (judged, mine):
        order = some[np.argsort(calls.iterator[some], kind="stable")]
        same = calls.iterator[order][1:] == calls.iterator[order][:-1]
        periods = np.diff(calls.start_ps[order])[same]
        if len(periods):
            return float(periods.mean()) / 1e9, waited_ms
    return np.nan, waited_ms


def _slow(calls: _RootCalls, pipelines: list[dict[str, Any]]) -> NDArray[np.bool_]:
    """Root calls that took more than the moderate share of a step; outside steps, more than XProf's 50 µs."""
    step_ms = np.array([row["step_time_ms"] for row in pipelines])[calls.pipeline]
    limit = np.where((calls.step >= 0) & (step_ms > 0), step_ms * MODERATE_INPUT_PCT / 100, SLOW_CALL_US / 1e3)
    slow: NDArray[np.bool_] = calls.duration_ps / 1e9 > limit
    return slow


def _call_table(
    host: str,
    its: Iterators,
    calls: _RootCalls,
    slow: NDArray[np.bool_],
    blocking: NDArray[np.int64],
    owner: NDArray[np.int64],
) -> pd.DataFrame:
    """The root calls, and in which stage most of the time of each was spent."""
    held = np.flatnonzero(owner >= 0)
    n_stages = len(its.stage_name) + 1
    key, where = np.unique(owner[held] * n_stages + its.stage[held], return_inverse=True)
    spent = np.bincount(where, weights=blocking[held].astype(np.float64), minlength=len(key))
    order = np.lexsort((-key, spent, key // n_stages))
    key, spent = key[order], spent[order]
    call = key // n_stages
    last = np.flatnonzero(np.concatenate([call[1:] != call[:-1], [True]])) if len(call) else call
    stage = np.full(len(its.event), -1, np.int64)
    most = np.zeros(len(its.event))
    stage[call[last]] = key[last] % n_stages
    most[call[last]] = spent[last]
    columns = {
        "host": [host] * len(calls.row),
        "pipeline": calls.pipeline,
        "iterator": calls.iterator,
        "step": calls.step,
        "start_ms": calls.start_ps / 1e9,
        "duration_ms": calls.duration_ps / 1e9,
        "is_slow": slow,
        "is_judged": calls.judged,
        "bottleneck": np.array([*its.stage_name, ""], object)[stage[calls.row]],
        "bottleneck_ms": most[calls.row] / 1e9,
    }
    return frame(columns, _CALL_COLUMNS)


def _parameters(trace: Trace, its: Iterators, group: NDArray[np.int64], n_groups: int) -> dict[str, NDArray[Any]]:
    """Parameters of each group of iterator events: the last value, or the mean for ``buffered_elements``; NaN if unknown."""
    result: dict[str, NDArray[Any]] = {}
    for column, stats in (
        ("parallelism", ("parallelism",)),
        ("buffer_size", ("buffer_size", "buffer_limit")),  # of a prefetch: what was asked for, and what it is now
        ("batch_size", ("batch_size",)),
        ("cycle_length", ("cycle_length",)),
    ):
        result[column] = np.full(n_groups, np.nan)
        for stat in stats:
            row, value = _values(trace, its, stat)
            result[column][group[row]] = value

    # TensorFlow leaves out a count of 0. Only versions that write interleave_depth write the count at all.
    row, value = _values(trace, its, "buffered_elements")
    has_buffer = np.zeros(n_groups, np.bool_)
    has_buffer[group[row]] = True
    written = _rows_of(its, trace.owners("interleave_depth"))
    has_buffer[group[written]] = True
    if len(written):
        has_buffer |= ~np.isnan(result["buffer_size"])
    total = np.bincount(group[row], weights=value.astype(np.float64), minlength=n_groups)
    calls = np.bincount(group, minlength=n_groups)
    result["buffered_elements"] = np.where(has_buffer & (calls > 0), total / np.maximum(calls, 1), np.nan)

    owner, code, texts = trace.strings("autotune")
    result["is_autotuned"] = np.zeros(n_groups, np.bool_)
    if "true" in texts:
        tuned = owner[code == texts.index("true")]
        result["is_autotuned"][group[_rows_of(its, tuned)]] = True
    return result


def _rows_of(its: Iterators, events: NDArray[np.int64]) -> NDArray[np.int64]:
    row = np.minimum(np.searchsorted(its.event, events), len(its.event) - 1)
    return row[its.event[row] == events]


def _stage_rows(
    trace: Trace,
    its: Iterators,
    pipeline_of_iterator: NDArray[np.int64],
    pipelines: list[dict[str, Any]],
    blocking: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """What `TfData.stages` holds, in its order."""
    n_stages = len(its.stage_name)
    known = np.flatnonzero(its.iterator_stage >= 0)
    keys, row_of_known = np.unique(
        pipeline_of_iterator[known] * n_stages + its.iterator_stage[known], return_inverse=True
    )
    n = len(keys)
    row_of_iterator = np.full(len(its.iterator_stage), -1, np.int64)
    row_of_iterator[known] = row_of_known
    row = row_of_iterator[its.iterator]

    def of_events(value: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(row, weights=value.astype(np.float64), minlength=n) / 1e9

    def of_iterators(value: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(row_of_known, weights=value[known].astype(np.float64), minlength=n) / 1e9

    pipeline, stage = keys // n_stages, keys % n_stages
    names = [*its.stage_name, ""]
    blocked = of_events(blocking)
    waited = np.bincount(pipeline, weights=blocked)[pipeline]
    columns: dict[str, Any] = {
        "pipeline": pipeline,
        "stage": [names[s] for s in stage],
        "name": [short_name(names[s]) for s in stage],
        "parent": [names[p] for p in its.stage_parent[stage]],
        "calls": np.bincount(row, minlength=n),
        "total_time_ms": of_events(trace.duration_ps[its.event]),
        "self_time_ms": of_events(its.self_ps),
        "wait_time_ms": of_events(its.wait_ps),
        "work_time_ms": of_events(its.self_ps - its.wait_ps) + of_iterators(its.overhead_ps),
        "function_time_ms": of_iterators(its.function_ps),
        "python_time_ms": of_iterators(its.python_ps),
        "blocking_time_ms": blocked,
        "blocking_pct": np.where(waited > 0, 100 * blocked / np.where(waited > 0, waited, 1), 0.0),
        "is_asynchronous": [is_asynchronous(names[s]) for s in stage],
        **_parameters(trace, its, row, n),
    }
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    most: dict[int, dict[str, Any]] = {}
    by_stage = {(r["pipeline"], r["stage"]): r for r in rows}
    for r in rows:
        r["is_bottleneck"] = False
        r["time_per_batch_ms"] = _time_per_batch(r, by_stage, pipelines[r["pipeline"]]["calls"])
        if r["blocking_time_ms"] > most.get(r["pipeline"], {"blocking_time_ms": 0.0})["blocking_time_ms"]:
            most[r["pipeline"]] = r
    for r in most.values():
        r["is_bottleneck"] = True
    return _in_tree_order(rows, by_stage)


def _time_per_batch(row: dict[str, Any], by_stage: dict[tuple[int, str], dict[str, Any]], calls: int) -> float:
    """Time that a stage can't do a batch faster than: its functions run in parallel, and so does what a parallel interleave reads."""
    if not calls:
        return np.nan
    threads = 1.0
    for match in _BELOW_INTERLEAVE.finditer(row["stage"]):
        threads *= _threads(by_stage.get((row["pipeline"], row["stage"][: match.end()])))
    return float((row["work_time_ms"] + row["function_time_ms"] / _threads(row)) / threads / calls)


def _threads(row: dict[str, Any] | None) -> float:
    return float(row["parallelism"]) if row is not None and row["parallelism"] > 1 else 1.0


def _in_tree_order(rows: list[dict[str, Any]], by_stage: dict[tuple[int, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Each stage right behind the one that reads from it; fills in ``depth``."""
    children: dict[tuple[int, str], list[dict[str, Any]]] = {}
    todo = []
    for row in sorted(rows, key=lambda r: (r["pipeline"], r["stage"]), reverse=True):
        row["depth"] = -1
        above = (row["pipeline"], row["parent"])
        if above in by_stage:
            children.setdefault(above, []).append(row)
        else:
            todo.append((row, 0))
    ordered = []
    while todo:
        row, row["depth"] = todo.pop()
        ordered.append(row)
        todo += [
            (child, row["depth"] + 1)
            for child in children.get((row["pipeline"], row["stage"]), [])
            if child["depth"] < 0
        ]
    rest = [row for row in rows if row["depth"] < 0]  # damaged ids that form a ring
    for row in rest:
        row["depth"] = 0
    return ordered + rest


# ---- what to say about it ------------------------------------------------------------------------------------


def _judge(pipeline: dict[str, Any], stage: dict[str, Any] | None) -> None:
    """Fill in a pipeline's verdict, bottleneck, statement and suggestion; ``stage`` is what the loop waited for longest."""
    pct = pipeline["blocked_pct"]
    level = "high" if pct >= HIGH_INPUT_PCT else "moderate" if pct >= MODERATE_INPUT_PCT else "low"
    pipeline["verdict"] = level
    pipeline["bottleneck"] = stage["stage"] if stage else ""
    pipeline["bottleneck_pct"] = stage["blocking_pct"] if stage else 0.0
    pipeline["statement"] = _statement(pipeline, level, stage)
    pipeline["suggestion"] = suggest(stage, pipeline) if stage and level != "low" else ""


def _statement(pipeline: dict[str, Any], level: str, stage: dict[str, Any] | None) -> str:
    if not pipeline["calls"]:
        return "Nothing was taken from this pipeline while the profiler ran."
    blocked_ms = pipeline["blocked_ms"]
    blocked = ms(blocked_ms)
    if pipeline["step_time_ms"] > 0 and pipeline["place"] == "device":
        # Asked by a thread that works ahead: what it waits for, the step need not wait for.
        step = f"a step of {ms(pipeline['step_time_ms'])}"
        waits = f"Calls that hand batches to the device take {blocked} in {step} (which waits only for what isn't done ahead)"
    elif pipeline["step_time_ms"] > 0:
        part = f"{blocked} ({pipeline['blocked_pct']:.1f} %)"
        waits = f"Each step of {ms(pipeline['step_time_ms'])} waits {part} in calls of this pipeline"
    else:
        waits = f"The call waits {blocked} for this pipeline"
    if level == "low" or stage is None:
        first = pipeline["first_call_ms"]
        slow_start = pipeline["calls"] > pipeline["iterators"] and first > max(5 * pipeline["blocked_ms"], 1.0)
        start = f", once the first call of an iterator ({ms(first)}) has filled its buffers" if slow_start else ""
        return f"{waits}: it keeps up{start}."
    facts = [
        f"{label} {stage[key]:.3g}"
        for key, label in (
            ("parallelism", "parallelism"), ("buffer_size", "buffer size"), ("buffered_elements", "buffered elements on average"),
            ("batch_size", "batch size"), ("cycle_length", "cycle length"),
        )
        if stage[key] == stage[key]  # not NaN
    ]  # fmt: skip
    details = f" ({', '.join(facts)})" if facts else ""
    return f"{waits}, {share(stage['blocking_pct'])} of that for {stage['name']}{details}."


_SLOW_SOURCES = re.compile(
    r"TFRecord|TextLine|FixedLengthRecord|SSTable|RecordIO|ArrayRecord|LMDB|CSV|Sql|TensorSlice|FromTensor|Range|SparseTensorSlice"
)


# Stages above which is a cache (`MemoryCache`, `FileCache`, and the `Impl` that each has below it).
_BELOW_A_CACHE = re.compile(r"::(Memory|File)Cache\w*(\[[^\]]*\])?::")


def suggest(stage: Mapping[str, Any], pipeline: Mapping[str, Any]) -> str:
    """One concrete change for a stage that the loop waits for.

    Parameters
    ----------
    stage : mapping
        A row of `TfData.stages`.
    pipeline : mapping
        Its row of `TfData.pipelines`.

    Returns
    -------
    str
    """
    name = re.sub(r"(V\d+)?(\[(\d+|\*)\])?$", "", stage["name"])
    parallelism, cpu_budget = stage["parallelism"], pipeline["cpu_budget"]
    if pipeline["place"] == "device":
        return "The host hands batches over too slowly: see which of its stages is the slow one (profile longer if they aren't shown)."
    if _BELOW_A_CACHE.search(stage["stage"]):
        return (
            "This stage runs only while the cache() above it is being filled, in the first epoch: profile a later epoch of the same "
            "dataset. If each epoch fills it again, make the cached dataset once, outside of the loop."
        )
    if stage["python_time_ms"] > 0.5 * stage["function_time_ms"]:
        what = (
            "Its generator is Python"
            if name == "Generator"
            else "Its function is Python (py_function or numpy_function)"
        )
        return (
            f"{what}, of which one thread runs at a time, however many calls there are: write it with TensorFlow ops, "
            "prepare the data beforehand, or keep the results with cache()."
        )
    if name == "Generator":
        return "A generator makes one element at a time: interleave several, or replace it by files read with TFRecordDataset."
    if name in ("ParallelMap", "MapAndBatch", "ParallelBatch", "ParseExample"):
        if parallelism < (cpu_budget if cpu_budget == cpu_budget else 2):
            return f"Run more calls at once: num_parallel_calls=tf.data.AUTOTUNE (now {parallelism:.0f})."
        return (
            "Its function takes all the threads there are: make it cheaper (work on whole batches: batch() before map()), "
            "keep the results with cache() if they don't change, or move work to tf.data service."
        )
    if name == "Map":
        return "Run its function in parallel: map(..., num_parallel_calls=tf.data.AUTOTUNE), after batch() if it can work on batches."
    if name == "Interleave":
        return "Read the inputs in parallel: interleave(..., num_parallel_calls=tf.data.AUTOTUNE)."
    if name in ("ParallelInterleave", "LegacyParallelInterleave"):
        return "Read more inputs at once: a higher cycle_length and num_parallel_calls=tf.data.AUTOTUNE; split the data into more files."
    if name in ("Batch", "PaddedBatch"):
        return "Batch in parallel: batch(..., num_parallel_calls=tf.data.AUTOTUNE)."
    if name in ("Filter", "FlatMap", "Unbatch", "Window", "GroupByWindow", "Scan", "TakeWhile"):
        return "It works on one element at a time: move it behind a parallel stage, do it beforehand, or keep its results with cache()."
    if name == "Shuffle":
        return (
            "Filling its buffer takes the time: a smaller buffer_size, or shuffle file names and interleave the files."
        )
    if name == "DataService":
        return "tf.data service can't keep up: add workers."
    if _SLOW_SOURCES.match(name):
        return "Read in parallel: interleave() several files with num_parallel_calls=tf.data.AUTOTUNE; keep small data with cache()."
    if name == "Prefetch":
        if stage["buffered_elements"] >= 0.5:
            return "Elements are ready when asked for; handing them over takes the time: use larger batches, or several steps a call."
        return (
            "Prefetch's buffer is empty when a batch is asked for: speed up the stage below it with the most time per batch, with "
            "num_parallel_calls=tf.data.AUTOTUNE or cache(); if none is shown, profile longer."
        )
    return (
        "See TensorFlow's guide to tf.data performance: prefetch, parallel map and interleave, cache, work on batches."
    )
