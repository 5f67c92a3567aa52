"""tf.data: the stages of each input pipeline, and which of them the training loop waits for.

XProf's analysis (since removed from it) calls a run input-bound if its slowest ``GetNext`` took more than 50 µs, which almost
every run does: the first call fills the buffers. Here the waiting is set against the step time, over the steps that enter
averages, and the time of each call of the outermost iterator is divided among the stages that it was spent in (`iterators.blame`),
so that the stages' shares sum to what the loop waited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .iterators import Iterators, blame, is_asynchronous, iterators, short_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .events import Trace
    from .steps import Steps

# Shares of the step time from which waiting for input is moderate and high: those of XProf's input pipeline analyzer.
MODERATE_INPUT_PCT = 5.0
HIGH_INPUT_PCT = 20.0
# Without steps, a call is slow from here on (XProf's threshold, in µs).
SLOW_CALL_US = 50.0

_STAGE_COLUMNS = {
    "pipeline": "int64", "stage": "str", "name": "str", "depth": "int64", "parent": "str", "calls": "int64",
    "total_time_ms": "float64", "self_time_ms": "float64", "wait_time_ms": "float64", "work_time_ms": "float64",
    "function_time_ms": "float64", "python_time_ms": "float64", "time_per_batch_ms": "float64",
    "blocking_time_ms": "float64", "blocking_pct": "float64", "is_bottleneck": "bool", "is_asynchronous": "bool",
    "is_autotuned": "bool", "parallelism": "float64", "buffer_size": "float64", "buffered_elements": "float64",
    "batch_size": "float64", "cycle_length": "float64",
}  # fmt: skip
_PIPELINE_COLUMNS = {
    "pipeline": "int64", "name": "str", "kind": "str", "place": "str", "iterators": "int64", "calls": "int64",
    "mean_ms": "float64", "min_ms": "float64", "max_ms": "float64", "first_call_ms": "float64", "total_time_ms": "float64",
    "slow_calls": "int64", "step_time_ms": "float64", "blocked_ms": "float64", "blocked_pct": "float64", "verdict": "str",
    "bottleneck": "str", "bottleneck_pct": "float64", "cpu_budget": "float64", "statement": "str", "suggestion": "str",
}  # fmt: skip
_CALL_COLUMNS = {
    "pipeline": "int64", "iterator": "int64", "step": "int64", "start_ms": "float64", "duration_ms": "float64",
    "is_slow": "bool", "is_judged": "bool", "bottleneck": "str", "bottleneck_ms": "float64",
}  # fmt: skip


@dataclass(frozen=True)
class TfData:
    """The input pipelines of one host.

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
        ``python_time_ms`` (of that, in ``py_function`` and the like, which run one at a time), ``time_per_batch_ms`` (work, and function time
        divided by the parallelism, for each call of the outermost iterator: what the stage can't do a batch faster than),
        ``blocking_time_ms`` and ``blocking_pct`` (what the loop waited for it), ``is_bottleneck``, ``is_asynchronous``, and
        its parameters as last seen: ``is_autotuned``, ``parallelism``, ``buffer_size``, ``batch_size``, ``cycle_length``; and the
        mean ``buffered_elements`` at a call. NaN where the profile doesn't say.
    calls : DataFrame
        One row a call of an outermost iterator, in time order: ``pipeline``, ``iterator`` (number), ``step`` (-1: none), ``start_ms``,
        ``duration_ms``, ``is_slow``, ``is_judged`` (enters the verdict), ``bottleneck`` (stage with most of its time), ``bottleneck_ms``.
    notes : list of str
        What the reader of the numbers should know.
    """

    pipelines: pd.DataFrame
    stages: pd.DataFrame
    calls: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    @property
    def main(self) -> pd.Series[float] | None:
        """Row of ``pipelines`` that the loop waited for longest, among those on the host if there are any; None without pipelines."""
        table = self.pipelines[self.pipelines["calls"] > 0]
        if (table["place"] == "host").any():
            table = table[table["place"] == "host"]
        if table.empty:
            return None
        training = table[table["kind"].isin(["train"])]
        return (table if training.empty else training).sort_values("blocked_ms", ascending=False, kind="stable").iloc[0]


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
        notes = ["No tf.data iterators in this profile: the input doesn't come from tf.data, or nothing was read while the profiler ran."]
        return TfData(_empty(_PIPELINE_COLUMNS), _empty(_STAGE_COLUMNS), _empty(_CALL_COLUMNS), notes)
    root = np.flatnonzero(its.is_root_call)
    root = root[np.argsort(trace.start_ps[its.event[root]], kind="stable")]
    step = np.full(len(root), -1, np.int64)
    if steps is not None and len(steps.table):
        step = steps.step_of(trace)[its.event[root]]
    step_ms, step_kind, step_averaged = _step_times(steps)
    kind = np.array([step_kind.get(int(s), "") for s in step], object)

    pipeline_of_iterator = _pipelines(trace, its, root, kind)
    pipeline = pipeline_of_iterator[its.iterator[root]]
    blocking, owner = blame(trace, its)
    judged = _judged(trace, its, root, pipeline, step, step_averaged)
    calls = _calls(trace, its, root, pipeline, step, judged, blocking, owner)
    pipelines = _pipeline_table(trace, its, calls, kind, pipeline_of_iterator, step_ms, steps is not None and len(steps.table) > 0)
    waited = np.isin(owner, root[judged])
    stages = _stage_table(trace, its, pipeline_of_iterator, pipelines, np.where(waited, blocking, 0))
    calls["is_slow"] = _slow(calls, pipelines)
    pipelines["slow_calls"] = np.bincount(calls["pipeline"], weights=calls["is_slow"], minlength=len(pipelines)).astype(np.int64)
    _judge(pipelines, stages)
    notes = []
    if (pipelines["place"] == "device").all():
        notes.append("Only the part of the pipeline that hands batches to a device was captured; the host's part is not in this profile.")
    orphans = int((pipelines["calls"] == 0).sum())
    if orphans:
        notes.append(f"{orphans} of {len(pipelines)} pipelines worked in the background, but nothing was taken from them while the profiler ran.")
    return TfData(
        pipelines[list(_PIPELINE_COLUMNS)].reset_index(drop=True), stages[list(_STAGE_COLUMNS)].reset_index(drop=True),
        calls[list(_CALL_COLUMNS)].reset_index(drop=True), notes,
    )  # fmt: skip


def _empty(columns: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns.items()})


def _step_times(steps: Steps | None) -> tuple[dict[int, float], dict[int, str], set[int]]:
    """Duration (the longest device's), kind, and whether it enters averages, of each step."""
    if steps is None or not len(steps.table):
        return {}, {}, set()
    by_step = steps.table.assign(averaged=steps.averaged).groupby("step")
    rows = by_step.agg(duration_ms=("duration_ms", "max"), kind=("kind", "first"), averaged=("averaged", "any"))
    number = rows.index.tolist()
    return (
        dict(zip(number, rows["duration_ms"].tolist(), strict=True)),
        dict(zip(number, rows["kind"].tolist(), strict=True)),
        {n for n, averaged in zip(number, rows["averaged"].tolist(), strict=True) if averaged},
    )


def _pipelines(trace: Trace, its: Iterators, root: NDArray[np.int64], kind: NDArray[np.object_]) -> NDArray[np.int64]:
    """Pipeline of each iterator: one a dataset, however many iterators (epochs) went over it; numbered in time order."""
    tops, top = np.unique(its.top_iterator, return_inverse=True)
    first_seen = np.full(len(tops), np.iinfo(np.int64).max)
    np.minimum.at(first_seen, top[its.iterator], trace.start_ps[its.event])
    stage = its.iterator_stage
    pairs = np.unique(np.stack([top[stage >= 0], stage[stage >= 0]]), axis=1)
    bounds = np.searchsorted(pairs[0], np.arange(len(tops) + 1))

    describe = _described(trace, its)
    root_top = top[its.iterator[root]]
    labels: list[tuple[object, ...]] = [()] * len(tops)
    known = [("kind", root_top, kind)] + [(name, top[its.iterator[row]], value) for name, (row, value) in describe.items()]
    columns = []
    for _, where, value in known:
        column = np.full(len(tops), "", object)
        column[where[::-1]] = value[::-1]  # the first seen stays
        columns.append(column)
    labels = list(zip(*columns, strict=True))

    # Iterators over one dataset may have shown different parts of it: the smaller set of stages belongs to the larger.
    sets = [frozenset(pairs[1][bounds[i] : bounds[i + 1]].tolist()) for i in range(len(tops))]
    members: dict[tuple[object, ...], list[frozenset[int]]] = {}
    for label, one in zip(labels, sets, strict=True):
        seen = members.setdefault(label, [])
        if one not in seen:
            seen.append(one)
    largest = {
        (label, one): max((other for other in seen if one <= other), key=len) for label, seen in members.items() for one in seen
    }
    code: dict[object, int] = {}
    number = np.empty(len(tops), np.int64)
    for i in np.argsort(first_seen, kind="stable"):
        number[i] = code.setdefault((labels[i], largest[labels[i], sets[i]]), len(code))
    return number[top]


def _described(trace: Trace, its: Iterators) -> dict[str, tuple[NDArray[np.int64], NDArray[np.object_]]]:
    """What root calls say of their dataset: rows among the iterator events, and texts."""
    result = {}
    for stat in ("name", "shapes", "types"):
        owner, code, texts = trace.strings(stat)
        row = np.minimum(np.searchsorted(its.event, owner), len(its.event) - 1)
        mine = (its.event[row] == owner) & its.is_root_call[row]
        result[stat] = row[mine], np.array(texts, object)[code[mine]] if len(texts) else np.empty(0, object)
    return result


def _judged(
    trace: Trace,
    its: Iterators,
    root: NDArray[np.int64],
    pipeline: NDArray[np.int64],
    step: NDArray[np.int64],
    averaged: set[int],
) -> NDArray[np.bool_]:
    """Root calls that enter the verdict: those of the steps in averages; without steps, all but each iterator's first."""
    judged = np.isin(step, np.fromiter(averaged, np.int64, len(averaged)))
    for number in np.unique(pipeline[root >= 0]):
        mine = np.flatnonzero(pipeline == number)
        if judged[mine].any():
            continue
        iterator = its.iterator[root[mine]]
        _, first = np.unique(iterator, return_index=True)
        later = np.ones(len(mine), np.bool_)
        later[first] = False
        judged[mine] = later if later.any() else True
    return judged


def _calls(
    trace: Trace,
    its: Iterators,
    root: NDArray[np.int64],
    pipeline: NDArray[np.int64],
    step: NDArray[np.int64],
    judged: NDArray[np.bool_],
    blocking: NDArray[np.int64],
    owner: NDArray[np.int64],
) -> pd.DataFrame:
    """The root calls, and in which stage most of the time of each was spent."""
    _, iterator = np.unique(its.iterator[root], return_inverse=True)
    held = np.flatnonzero(owner >= 0)
    n_stages = max(1, len(its.stage_name))
    key, where = np.unique(owner[held] * n_stages + its.stage[held], return_inverse=True)
    spent = np.bincount(where, weights=blocking[held].astype(np.float64), minlength=len(key))
    order = np.lexsort((-key, spent, key // n_stages))
    call = key[order] // n_stages
    last = np.flatnonzero(np.concatenate([call[1:] != call[:-1], [True]])) if len(call) else order
    stage = np.full(len(its.event), -1, np.int64)
    most = np.zeros(len(its.event))
    stage[call[last]] = key[order][last] % n_stages
    most[call[last]] = spent[order][last]
    names = np.array([*its.stage_name, ""], object)
    return pd.DataFrame(
        {
            "pipeline": pipeline,
            "iterator": iterator,
            "step": step,
            "start_ms": trace.start_ps[its.event[root]] / 1e9,
            "duration_ms": trace.duration_ps[its.event[root]] / 1e9,
            "is_judged": judged,
            "bottleneck": names[stage[root]],
            "bottleneck_ms": most[root] / 1e9,
        }
    )


def _pipeline_table(
    trace: Trace,
    its: Iterators,
    calls: pd.DataFrame,
    kind: NDArray[np.object_],
    pipeline_of_iterator: NDArray[np.int64],
    step_ms: dict[int, float],
    has_steps: bool,
) -> pd.DataFrame:
    count = int(pipeline_of_iterator.max()) + 1
    names = np.full(count, "", object)
    row, text = _described(trace, its)["name"]
    names[pipeline_of_iterator[its.iterator[row]][::-1]] = text[::-1]
    budget = np.full(count, np.nan)
    owner, value = trace.ints("cpu_budget")
    at = np.minimum(np.searchsorted(its.event, owner), len(its.event) - 1)
    mine = its.event[at] == owner
    budget[pipeline_of_iterator[its.iterator[at[mine]]]] = value[mine]

    top_stage = np.full(count, -1, np.int64)
    top_stage[pipeline_of_iterator] = its.iterator_stage[its.top_iterator]
    on_device = _device_pipelines(its, pipeline_of_iterator, count)
    rows = []
    calls = calls.assign(kind=kind)
    for number in range(count):
        mine_calls = calls[calls["pipeline"] == number]
        duration = mine_calls["duration_ms"]
        judged = mine_calls[mine_calls["is_judged"]]
        step_time, blocked = _step_time(mine_calls, judged, step_ms, has_steps)
        kinds = mine_calls["kind"].value_counts()
        name = names[number] or (its.stage_name[top_stage[number]] if top_stage[number] >= 0 else "")
        rows.append(
            {
                "pipeline": number,
                "name": name,
                "kind": kinds.index[0] if len(kinds) else "",
                "place": "device" if on_device[number] else "host",
                "iterators": int(mine_calls["iterator"].nunique()),
                "calls": len(mine_calls),
                "mean_ms": duration.mean(),
                "min_ms": duration.min(),
                "max_ms": duration.max(),
                "first_call_ms": mine_calls.drop_duplicates("iterator")["duration_ms"].mean(),
                "total_time_ms": duration.sum(),
                "step_time_ms": step_time,
                "blocked_ms": blocked,
                "blocked_pct": min(100.0, 100 * blocked / step_time) if step_time > 0 else 0.0,
                "cpu_budget": budget[number],
            }
        )
    return pd.DataFrame(rows)


def _device_pipelines(its: Iterators, pipeline_of_iterator: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """Pipelines that only hand on what a pipeline on the host made: a prefetch that reads from a generator."""
    handing_on = np.array([n == "Iterator::Prefetch::Generator" for n in its.stage_name], bool)
    result = np.zeros(count, np.bool_)
    known = its.iterator_stage >= 0
    result[pipeline_of_iterator[known][handing_on[its.iterator_stage[known]]]] = True
    return result


def _step_time(calls: pd.DataFrame, judged: pd.DataFrame, step_ms: dict[int, float], has_steps: bool) -> tuple[float, float]:
    """Mean step time and mean waiting a step, in ms."""
    if has_steps and len(judged) and (judged["step"] >= 0).all():
        per_step = judged.groupby("step")["duration_ms"].sum()
        return float(np.mean([step_ms[int(s)] for s in per_step.index])), float(per_step.mean())
    if len(calls) < 2:
        return 0.0, float(judged["duration_ms"].mean()) if len(judged) else 0.0
    # From the first call to the last, each iterator by itself: the pauses between epochs aren't steps.
    spans = calls.groupby("iterator")["start_ms"].agg(["min", "max", "count"])
    periods = int((spans["count"] - 1).sum())
    return float((spans["max"] - spans["min"]).sum() / periods) if periods else 0.0, float(judged["duration_ms"].mean())


def _slow(calls: pd.DataFrame, pipelines: pd.DataFrame) -> NDArray[np.bool_]:
    step_time = pipelines["step_time_ms"].to_numpy()[calls["pipeline"]]
    in_steps = (calls["step"] >= 0).to_numpy()
    limit = np.where(in_steps & (step_time > 0), step_time * MODERATE_INPUT_PCT / 100, SLOW_CALL_US / 1e3)
    slow: NDArray[np.bool_] = calls["duration_ms"].to_numpy() > limit
    return slow


def _parameters(trace: Trace, its: Iterators, group: NDArray[np.int64], n_groups: int) -> dict[str, NDArray[np.float64]]:
    """Parameters of each group of iterator events: the last value, or the mean for ``buffered_elements``; NaN if unknown."""
    by_time = np.argsort(trace.start_ps[its.event], kind="stable")
    rank = np.empty(len(by_time), np.int64)
    rank[by_time] = np.arange(len(by_time))

    def values(stat: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        owner, value = trace.ints(stat)
        row = np.minimum(np.searchsorted(its.event, owner), len(its.event) - 1)
        mine = its.event[row] == owner
        row, value = row[mine], value[mine]
        order = np.argsort(rank[row], kind="stable")
        return row[order], value[order]

    result = {}
    for stat in ("parallelism", "buffer_size", "batch_size", "cycle_length"):
        row, value = values(stat)
        column = np.full(n_groups, np.nan)
        column[group[row]] = value
        result[stat] = column
    row, value = values("buffer_limit")  # a prefetch's buffer as it is now; its buffer_size is what was asked for
    result["buffer_size"][group[row]] = value
    has_buffer = np.zeros(n_groups, np.bool_)
    has_buffer[group[row]] = True

    # TensorFlow leaves out a count of 0. Only versions that write interleave_depth write the count at all.
    row, value = values("buffered_elements")
    has_buffer[group[row]] = True
    depth_row, _ = values("interleave_depth")
    has_buffer[group[depth_row]] = True
    writes = len(row) > 0 or len(depth_row) > 0
    total = np.bincount(group[row], weights=value.astype(np.float64), minlength=n_groups)
    calls = np.bincount(group, minlength=n_groups)
    result["buffered_elements"] = np.where(has_buffer & writes, total / np.maximum(calls, 1), np.nan)

    owner, code, texts = trace.strings("autotune")
    row = np.minimum(np.searchsorted(its.event, owner), len(its.event) - 1)
    mine = (its.event[row] == owner) & np.array([t == "true" for t in texts] or [False], bool)[code]
    tuned = np.zeros(n_groups)
    tuned[group[row[mine]]] = 1
    result["is_autotuned"] = tuned
    return result


def _stage_table(
    trace: Trace,
    its: Iterators,
    pipeline_of_iterator: NDArray[np.int64],
    pipelines: pd.DataFrame,
    blocking: NDArray[np.int64],
) -> pd.DataFrame:
    """One row a pipeline and stage."""
    n_stages = len(its.stage_name)
    known = np.flatnonzero(its.iterator_stage >= 0)
    keys, row_of_known = np.unique(pipeline_of_iterator[known] * n_stages + its.iterator_stage[known], return_inverse=True)
    n = len(keys)
    row_of_iterator = np.full(len(its.iterator_stage), -1, np.int64)
    row_of_iterator[known] = row_of_known
    row = row_of_iterator[its.iterator]

    def of_events(value: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(row, weights=value.astype(np.float64), minlength=n) / 1e9

    def of_iterators(value: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.bincount(row_of_known, weights=value[known].astype(np.float64), minlength=n) / 1e9

    pipeline, stage = keys // n_stages, keys % n_stages
    names = np.array([*its.stage_name, ""], object)
    table = pd.DataFrame(
        {
            "pipeline": pipeline,
            "stage": names[stage],
            "name": [short_name(s) for s in names[stage]],
            "parent": names[its.stage_parent[stage]],
            "calls": np.bincount(row, minlength=n),
            "total_time_ms": of_events(trace.duration_ps[its.event]),
            "self_time_ms": of_events(its.self_ps),
            "wait_time_ms": of_events(its.wait_ps),
            "work_time_ms": of_events(its.self_ps - its.wait_ps) + of_iterators(its.overhead_ps),
            "function_time_ms": of_iterators(its.function_ps),
            "python_time_ms": of_iterators(its.python_ps),
            "blocking_time_ms": of_events(blocking),
            "is_asynchronous": [is_asynchronous(s) for s in names[stage]],
            **_parameters(trace, its, row, n),
        }
    )
    table["is_autotuned"] = table["is_autotuned"].astype(bool)
    waited = table.groupby("pipeline")["blocking_time_ms"].transform("sum")
    table["blocking_pct"] = np.where(waited > 0, 100 * table["blocking_time_ms"] / waited.where(waited > 0, 1), 0.0)
    most = table.groupby("pipeline")["blocking_time_ms"].transform("max")
    table["is_bottleneck"] = (table["blocking_time_ms"] == most) & (most > 0) & ~table.duplicated(["pipeline", "blocking_time_ms"])
    table["time_per_batch_ms"] = _time_per_batch(table, pipelines)
    return _in_tree_order(table)


def _time_per_batch(table: pd.DataFrame, pipelines: pd.DataFrame) -> NDArray[np.float64]:
    calls = pipelines["calls"].to_numpy()[table["pipeline"]]
    own = table["parallelism"].fillna(1).clip(lower=1).to_numpy()
    # What a parallel interleave reads from runs on as many threads as that has.
    threads = np.ones(len(table))
    at = {(p, s): i for i, (p, s) in enumerate(zip(table["pipeline"], table["stage"], strict=True))}
    for i, (pipeline, stage) in enumerate(zip(table["pipeline"], table["stage"], strict=True)):
        for match in re.finditer(r"::ParallelInterleave\w*(?=\[\*\])", stage):
            above = at.get((pipeline, stage[: match.end()]))
            threads[i] *= own[above] if above is not None else 1
    time = (table["work_time_ms"].to_numpy() + table["function_time_ms"].to_numpy() / own) / threads
    result: NDArray[np.float64] = np.where(calls > 0, time / np.maximum(calls, 1), np.nan)
    return result


def _in_tree_order(table: pd.DataFrame) -> pd.DataFrame:
    """Each stage right behind the one that reads from it, and its ``depth``."""
    keys = list(zip(table["pipeline"], table["stage"], strict=True))
    present = set(keys)
    children: dict[tuple[int, str], list[int]] = {}
    tops = []
    for i, (pipeline, parent) in enumerate(zip(table["pipeline"], table["parent"], strict=True)):
        if parent and (pipeline, parent) in present:
            children.setdefault((pipeline, parent), []).append(i)
        else:
            tops.append(i)
    order, depth = [], np.zeros(len(table), np.int64)
    todo = [(i, 0) for i in reversed(sorted(tops, key=lambda i: keys[i]))]
    seen = set()
    while todo:
        i, level = todo.pop()
        if i in seen:
            continue
        seen.add(i)
        order.append(i)
        depth[i] = level
        todo += [(j, level + 1) for j in reversed(sorted(children.get(keys[i], []), key=lambda j: keys[j]))]
    order += [i for i in range(len(table)) if i not in seen]  # damaged ids that form a ring
    return table.assign(depth=depth).iloc[order]


# ---- what to say about it ------------------------------------------------------------------------------------


def _judge(pipelines: pd.DataFrame, stages: pd.DataFrame) -> None:
    """Fill in verdict, bottleneck, statement and suggestion of each pipeline."""
    verdict, bottleneck, share, statement, suggestion = [], [], [], [], []
    for pipeline in pipelines.to_dict("records"):
        pct = pipeline["blocked_pct"]
        level = "high" if pct >= HIGH_INPUT_PCT else "moderate" if pct >= MODERATE_INPUT_PCT else "low"
        mine = stages[stages["pipeline"] == pipeline["pipeline"]]
        slowest = mine[mine["is_bottleneck"]]
        stage = slowest.iloc[0].to_dict() if len(slowest) else None
        verdict.append(level)
        bottleneck.append(stage["stage"] if stage else "")
        share.append(stage["blocking_pct"] if stage else 0.0)
        statement.append(_statement(pipeline, level, stage))
        suggestion.append(suggest(stage, pipeline["cpu_budget"]) if stage and level != "low" else "")
    pipelines["verdict"] = verdict
    pipelines["bottleneck"] = bottleneck
    pipelines["bottleneck_pct"] = share
    pipelines["statement"] = statement
    pipelines["suggestion"] = suggestion


def _statement(pipeline: dict[str, object], level: str, stage: dict[str, object] | None) -> str:
    if not pipeline["calls"]:
        return "Nothing was taken from this pipeline while the profiler ran."
    blocked = f"{pipeline['blocked_ms']:.3g} ms"
    if pipeline["step_time_ms"]:
        waits = f"Each step of {pipeline['step_time_ms']:.3g} ms waits {blocked} ({pipeline['blocked_pct']:.1f} %) for this pipeline"
    else:
        waits = f"The call waits {blocked} for this pipeline"
    if level == "low" or stage is None:
        return f"{waits}: it keeps up."
    facts = [
        f"{label} {stage[key]:.3g}"
        for key, label in (
            ("parallelism", "parallelism"), ("buffer_size", "buffer size"), ("buffered_elements", "buffered elements on average"),
            ("batch_size", "batch size"), ("cycle_length", "cycle length"),
        )
        if stage[key] == stage[key]  # not NaN
    ]  # fmt: skip
    details = f" ({', '.join(facts)})" if facts else ""
    return f"{waits}, {stage['blocking_pct']:.0f} % of that for {stage['name']}{details}."


_SLOW_SOURCES = re.compile(
    r"TFRecord|TextLine|FixedLengthRecord|SSTable|RecordIO|ArrayRecord|LMDB|CSV|Sql|TensorSlice|FromTensor|Range|SparseTensorSlice"
)


def suggest(stage: dict[str, object], cpu_budget: float = float("nan")) -> str:
    """One concrete change for a stage that the loop waits for.

    Parameters
    ----------
    stage : dict
        A row of `TfData.stages`.
    cpu_budget : float
        Threads that tf.data may use; NaN if unknown.

    Returns
    -------
    str
    """
    name = re.sub(r"(V\d+)?(\[(\d+|\*)\])?$", "", str(stage["name"]))
    parallelism, function = float(stage["parallelism"]), float(stage["function_time_ms"])  # type: ignore[arg-type]
    python = float(stage["python_time_ms"])  # type: ignore[arg-type]
    if python > 0.5 * function > 0:
        where = "Its Python generator" if name == "Generator" else "Its function is Python (py_function or numpy_function)"
        return (
            f"{where}, which runs one call at a time whatever the parallelism: write it with TensorFlow ops, "
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
        return "Filling its buffer takes the time: a smaller buffer_size, or shuffle file names and interleave the files."
    if name == "DataService":
        return "tf.data service can't keep up: add workers."
    if _SLOW_SOURCES.match(name):
        return "Read in parallel: interleave() several files with num_parallel_calls=tf.data.AUTOTUNE; keep small data with cache(); end with prefetch()."
    if name == "Prefetch":
        return "Its buffer is empty when asked: a larger buffer helps only against uneven times; look at the stages that it reads from."
    return "See TensorFlow's guide to tf.data performance: prefetch, parallel map and interleave, cache, work on batches."
