"""Whether a run waits for its input, how long, and for which stage of the pipeline."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .in_words import described, ms, share
from .iterators import iterators
from .op_stats import HOST
from .steps import rank_of_kind
from .tf_data import HIGH_INPUT_PCT, MODERATE_INPUT_PCT, TfData, frame, suggest, tf_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .events import Trace
    from .iterators import Iterators
    from .steps import Steps

ON_DEMAND, IN_ADVANCE, PREPROCESSING, ENQUEUE = "Demanded file read", "Advanced file read", "Preprocessing", "Enqueue"
CATEGORIES = {
    ON_DEMAND: "Reading data from files on demand, with nothing that reads ahead",
    IN_ADVANCE: "Reading data from files in advance: cached, prefetched or interleaved",
    PREPROCESSING: "Preprocessing the data, such as decompressing images",
    ENQUEUE: "Enqueuing the data to be transferred to the device",
}
# Above this share of the step time in no category, input that doesn't come from tf.data may hide there (XProf's "high").
_HIGH_OTHER_PCT = 15.0
# If tf.data accounts for less than this much of the time waiting for input, it isn't what holds up the loop.
_READY_SHARE = 0.5
_FILE_READERS = re.compile(r"::(TFRecord|TextLine|FixedLengthRecord|SSTable|RecordIO|ArrayRecord)(V\d+)?$")
_READS_AHEAD = re.compile(
    r"::(MemoryReader|MemoryWriter|MemoryCache|FileReader|FileWriter|FileCache|Interleave|ParallelInterleave|Prefetch|ParallelMap)"
)
_COPY_TO_DEVICE = r"^(cu|cuda|hip)?memcpy(h2d|htod)\w*$"
_INPUT_OP_COLUMNS = {
    "name": "str", "count": "int64", "total_time_ms": "float64", "total_time_pct": "float64", "self_time_ms": "float64",
    "self_time_pct": "float64", "category": "str", "wait_time_ms": "float64", "function_time_ms": "float64",
}  # fmt: skip
_PER_STEP_COLUMNS = {
    "step": "int64", "kind": "str", "host": "str", "devices": "int64", "start_ms": "float64", "duration_ms": "float64",
    "input_ms": "float64", "input_min_ms": "float64", "input_max_ms": "float64", "input_pct": "float64", "averaged": "bool",
}  # fmt: skip
_DEVICE_SIDE_COLUMNS = {
    "kind": "str", "measure": "str", "steps": "int64", "mean": "float64", "std": "float64", "min": "float64", "max": "float64",
    "median": "float64",
}  # fmt: skip
_STEP_IN_A_SENTENCE = {
    "train": "a training step", "Profiled batch": "a batch", "test": "a test step", "predict": "a prediction step", "step": "a step",
}  # fmt: skip


@dataclass(frozen=True)
class InputSummary:
    """The answer of the input pipeline analyzer.

    Attributes
    ----------
    verdict : str
        ``high`` (20 % of the step time or more is spent waiting for input), ``moderate`` (5 % or more), ``low``; ``unknown`` without steps.
    statement, suggestion : str
        The verdict in words, with its numbers, and one change that would help; the latter is empty if input is no problem.
    kind : str
        Kind of the steps that were judged (training, if there is any).
    steps : int
        How many were averaged.
    step_time_ms, input_time_ms, input_pct : float
        Mean step time, mean time waiting for input in a step, and the share of the one in the other.
    other_pct : float
        Share of the step time that is in no category (Python, and input that doesn't come from tf.data).
    category : str
        Host category with most input-processing time (see `InputPipeline.host_side`); empty if there was none.
    category_pct : float
        Its share.
    stage : str
        The tf.data stage for which the loop waited longest; empty without tf.data.
    stage_pct : float
        Its share of that waiting.
    slowest_input_time_ms, slowest_input_pct : float
        As `input_time_ms` and `input_pct`, of the slowest device of each step instead of all devices: what the Overview's step has.
    """

    verdict: str
    statement: str
    suggestion: str = ""
    kind: str = ""
    steps: int = 0
    step_time_ms: float = float("nan")
    input_time_ms: float = float("nan")
    input_pct: float = float("nan")
    other_pct: float = float("nan")
    category: str = ""
    category_pct: float = 0.0
    stage: str = ""
    stage_pct: float = 0.0
    slowest_input_time_ms: float = float("nan")
    slowest_input_pct: float = float("nan")


@dataclass(frozen=True)
class InputPipeline:
    """The input pipeline of a run.

    Attributes
    ----------
    summary : InputSummary
        Whether the run waits for its input, and for what.
    device_side : DataFrame
        Statistics of the steps that enter averages: a row a ``kind`` and ``measure`` (``step_time_ms``; ``input_time_ms``, the
        time waiting for input; ``input_pct``, its share) with ``steps``, ``mean``, ``std`` (sample; NaN for one step), ``min``,
        ``max``, ``median``.
    per_step : DataFrame
        One row a step and host: ``step``, ``kind``, ``host``, ``devices``, ``start_ms``, ``duration_ms`` (of the slowest device),
        ``input_ms`` (mean of the devices) and its range over the devices ``input_min_ms`` … ``input_max_ms``,
        ``input_pct`` (mean of the devices), ``averaged``.
    host_side : DataFrame
        The four categories of input processing: ``category``, ``time_ms`` (self time of the input ops, added up over threads),
        ``time_pct``, ``wait_time_ms`` (of it, waiting for another thread), ``function_time_ms`` (in functions given to the
        pipeline's stages, which comes on top), ``ops``, ``description``.
    input_ops : DataFrame
        The input ops; see `input_ops`.
    tf_data : DataFrame
        The pipelines' stages (`TfData.stages`).
    pipelines, calls : DataFrame
        The pipelines and the calls of their outermost iterators (`TfData`), likewise.
    notes : list of str
        What the reader of the numbers should know.
    """

    summary: InputSummary
    device_side: pd.DataFrame
    per_step: pd.DataFrame
    host_side: pd.DataFrame
    input_ops: pd.DataFrame
    tf_data: pd.DataFrame
    pipelines: pd.DataFrame
    calls: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    def to_frame(self) -> pd.DataFrame:
        """Return the summary as a table of one row."""
        return pd.DataFrame([dataclasses.asdict(self.summary)])

    def __repr__(self) -> str:
        return described(self, self.summary.statement)


def input_pipeline(traces: Sequence[Trace], steps: Sequence[Steps], ops: pd.DataFrame) -> InputPipeline:
    """Analyse where a run's input comes from and how long the run waits for it.

    Parameters
    ----------
    traces : sequence of Trace
        One for each host.
    steps : sequence of Steps
        Theirs, in the same order.
    ops : DataFrame
        The op table of all hosts (`op_stats`).

    Returns
    -------
    InputPipeline
    """
    its = [iterators(trace) for trace in traces]
    analyses = [tf_data(t, s, i) for t, s, i in zip(traces, steps, its, strict=True)]
    ops_columns = _input_ops(traces, ops, its)
    host_side = _host_side(ops_columns)
    per_step = _per_step(steps)
    kinds = _kinds(per_step)
    notes = list(dict.fromkeys(note for a in analyses for note in a.notes))
    if ops_columns["name"]:
        notes.append(
            "Times of input ops are added up over threads that work at the same time as the devices: compare them with one another, "
            "not with the step time. Time spent waiting for another thread is part of the self time, and is shown beside it."
        )
    return InputPipeline(
        summary=_summary(steps, per_step, kinds, host_side, analyses),
        device_side=_device_side(per_step, kinds),
        per_step=frame(per_step, _PER_STEP_COLUMNS),
        host_side=pd.DataFrame(host_side),
        input_ops=frame(ops_columns, _INPUT_OP_COLUMNS),
        tf_data=_of_hosts([a.stages for a in analyses]),
        pipelines=_of_hosts([a.pipelines for a in analyses]),
        calls=_of_hosts([a.calls for a in analyses]),
        notes=notes,
    )


def input_ops(traces: Sequence[Trace], ops: pd.DataFrame, its: Sequence[Iterators] | None = None) -> pd.DataFrame:
    """Tabulate the ops that read, prepare and hand over input: ``report.input_ops``.

    Parameters
    ----------
    traces : sequence of Trace
        One for each host.
    ops : DataFrame
        The op table of all hosts (`op_stats`).
    its : sequence of Iterators, optional
        The traces' iterator events, if they are at hand.

    Returns
    -------
    DataFrame
        By falling self time: ``name``, ``count``, ``total_time_ms``, ``self_time_ms`` (without the ops nested in it on its thread),
        ``total_time_pct``, ``self_time_pct`` (of the self time of all input ops), ``category`` (of the four in `CATEGORIES`),
        ``wait_time_ms`` (how much of the self time was waiting for another thread, or for a function that ran on one) and
        ``function_time_ms`` (thread time in the functions given to the stage, ``map`` functions above all: it comes on top of the
        self time, and is in the op table under the functions' own ops).
    """
    its = [iterators(trace) for trace in traces] if its is None else its
    return frame(_input_ops(traces, ops, its), _INPUT_OP_COLUMNS)


def _input_ops(traces: Sequence[Trace], ops: pd.DataFrame, its: Sequence[Iterators]) -> dict[str, Any]:
    kind = ops["type"].to_numpy(object)
    of_kind = {k: k == "Dataset" or _is_enqueue(k) for k in set(kind)}
    is_input = np.array([of_kind[k] for k in kind], bool) & (ops["host_or_device"].to_numpy(object) == HOST)
    rows: dict[str, NDArray[np.float64]] = {}
    enqueues = set()
    name_of = ops["name"].to_numpy(object)[is_input]
    count, total_us, self_us = (ops[c].to_numpy()[is_input] for c in ("occurrences", "total_time_us", "self_time_us"))
    numbers = np.stack([count, total_us * 1e6, self_us * 1e6], axis=1)
    for name, one_kind, number in zip(name_of, kind[is_input], numbers, strict=True):
        rows[name] = rows[name] + number if name in rows else number  # what ran eagerly and in functions has two rows
        if _is_enqueue(one_kind):
            enqueues.add(name)
    for name, (count, total) in _copies(traces).items():
        if name not in rows:
            rows[name] = np.array([count, total, total], np.float64)
            enqueues.add(name)
    wait, function = _waits_and_functions(traces, its)
    names = sorted(rows, key=lambda n: (-rows[n][2], n))
    numbers = np.array([rows[n] for n in names], np.float64).reshape(-1, 3)
    whole = numbers[:, 2].sum() or 1.0
    return {
        "name": names,
        "count": numbers[:, 0],
        "total_time_ms": numbers[:, 1] / 1e9,
        "total_time_pct": 100 * numbers[:, 1] / whole,
        "self_time_ms": numbers[:, 2] / 1e9,
        "self_time_pct": 100 * numbers[:, 2] / whole,
        "category": [ENQUEUE if n in enqueues else category(n) for n in names],
        "wait_time_ms": np.minimum([wait.get(n, 0) for n in names], numbers[:, 2]) / 1e9,
        "function_time_ms": np.array([function.get(n, 0) for n in names], np.float64) / 1e9,
    }


def _is_enqueue(op_type: str) -> bool:
    return op_type.startswith("InfeedEnqueue") or op_type.lower() == "memcpyhtod"


def category(name: str) -> str:
    """Category of a tf.data iterator by its long name."""
    if not _FILE_READERS.search(name):
        return PREPROCESSING
    return IN_ADVANCE if _READS_AHEAD.search(name) else ON_DEMAND


def _copies(traces: Sequence[Trace]) -> dict[str, tuple[int, int]]:
    """Host calls that enqueue a copy to a device: count and total time, in ps, by name."""
    result: dict[str, tuple[int, int]] = {}
    for trace in traces:
        on_host = trace.plane_is_host[trace.space.meta_plane] & ~trace.meta_is_op
        wanted = trace.meta_search(_COPY_TO_DEVICE, ignore_case=True) & on_host
        if not wanted.any():
            continue
        event = np.flatnonzero(wanted[trace.meta])
        for meta in np.unique(trace.meta[event]):
            of_name = event[trace.meta[event] == meta]
            name = trace.space.meta_name[meta]
            count, total = result.get(name, (0, 0))
            result[name] = count + len(of_name), total + int(trace.duration_ps[of_name].sum())
    return result


def _waits_and_functions(traces: Sequence[Trace], its: Sequence[Iterators]) -> tuple[dict[str, int], dict[str, int]]:
    """Waiting time and function time, in ps, by the iterators' long names."""
    wait: dict[str, int] = {}
    function: dict[str, int] = {}
    for trace, one in zip(traces, its, strict=True):
        if not len(one.event):
            continue
        meta = trace.meta[one.event]
        known = np.full(len(one.parent_iterator), -1, np.int64)
        known[one.iterator] = meta
        for total, of_meta, value in (
            (wait, meta, one.wait_ps),
            (function, known[known >= 0], one.function_ps[known >= 0]),
        ):
            spent = np.bincount(of_meta, weights=value.astype(np.float64))
            for m in np.flatnonzero(spent):
                name = trace.space.meta_name[m]
                total[name] = total.get(name, 0) + int(spent[m])
    return wait, function


def _host_side(ops: dict[str, Any]) -> dict[str, Any]:
    of_op = np.array(ops["category"], object)
    member = np.array([of_op == name for name in CATEGORIES], np.float64).reshape(len(CATEGORIES), len(of_op))
    time, wait, function = (member @ ops[c] for c in ("self_time_ms", "wait_time_ms", "function_time_ms"))
    return {
        "category": list(CATEGORIES),
        "time_ms": time,
        "time_pct": 100 * time / (time.sum() or 1.0),
        "wait_time_ms": wait,
        "function_time_ms": function,
        "ops": member.sum(axis=1).astype(np.int64),
        "description": list(CATEGORIES.values()),
    }


def _of_hosts(tables: list[pd.DataFrame]) -> pd.DataFrame:
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def _per_step(steps: Sequence[Steps]) -> dict[str, NDArray[Any]]:
    """One row a step and host: the columns."""
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _PER_STEP_COLUMNS}
    for one in steps:
        table = one.table
        if not len(table):
            continue
        step, first, row = np.unique(table["step"].to_numpy(), return_index=True, return_inverse=True)
        devices = np.bincount(row)
        duration, waiting = table["duration_ms"].to_numpy(), table["input_ms"].to_numpy()
        pct = np.where(duration > 0, 100 * waiting / np.where(duration > 0, duration, 1), 0.0)
        shape = len(step)
        parts["step"].append(step)
        parts["kind"].append(table["kind"].to_numpy(object)[first])
        parts["host"].append(table["host"].to_numpy(object)[first])
        parts["devices"].append(devices)
        parts["start_ms"].append(_extreme(np.minimum, row, table["start_ms"].to_numpy(), shape))
        parts["duration_ms"].append(_extreme(np.maximum, row, duration, shape))
        parts["input_ms"].append(np.bincount(row, weights=waiting) / devices)
        parts["input_min_ms"].append(_extreme(np.minimum, row, waiting, shape))
        parts["input_max_ms"].append(_extreme(np.maximum, row, waiting, shape))
        parts["input_pct"].append(np.bincount(row, weights=pct) / devices)
        parts["averaged"].append(np.bincount(row, weights=one.averaged) > 0)
    return {name: np.concatenate([np.empty(0, bool), *columns]) for name, columns in parts.items()}


def _extreme(which: np.ufunc, row: NDArray[np.int64], value: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    result = np.full(n_rows, np.inf if which is np.minimum else -np.inf)
    which.at(result, row, value)
    return result


def _device_side(per_step: dict[str, NDArray[Any]], kinds: list[str]) -> pd.DataFrame:
    """Statistics of step time and input time, a kind at a time."""
    columns: dict[str, list[Any]] = {name: [] for name in _DEVICE_SIDE_COLUMNS}
    for one in kinds:
        mine = per_step["averaged"] & (per_step["kind"] == one)
        for measure, column in (
            ("step_time_ms", "duration_ms"),
            ("input_time_ms", "input_ms"),
            ("input_pct", "input_pct"),
        ):
            value = per_step[column][mine]
            columns["kind"].append(one)
            columns["measure"].append(measure)
            columns["steps"].append(len(value))
            columns["mean"].append(value.mean())
            columns["std"].append(value.std(ddof=1) if len(value) > 1 else np.nan)
            columns["min"].append(value.min())
            columns["max"].append(value.max())
            columns["median"].append(np.median(value))
    return frame(columns, _DEVICE_SIDE_COLUMNS)


def _kinds(per_step: dict[str, NDArray[Any]]) -> list[str]:
    """Kinds of the steps in averages, as the Overview orders them; those of one rank by the time that they take."""
    averaged = per_step["averaged"]
    total: dict[str, float] = {}
    for kind, duration in zip(per_step["kind"][averaged], per_step["duration_ms"][averaged], strict=True):
        total[kind] = total.get(kind, 0.0) + duration
    return sorted(total, key=lambda kind: (rank_of_kind(kind), -total[kind]))


# ---- the answer ----------------------------------------------------------------------------------------------


def _summary(
    steps: Sequence[Steps],
    per_step: dict[str, NDArray[Any]],
    kinds: list[str],
    host_side: dict[str, Any],
    analyses: Sequence[TfData],
) -> InputSummary:
    facts: dict[str, Any] = {}
    most = host_side["time_ms"].argmax()
    if host_side["time_ms"][most] > 0:
        facts = {"category": host_side["category"][most], "category_pct": float(host_side["time_pct"][most])}
    pipeline, stage = _main_pipeline(analyses)
    if stage is not None:
        facts |= {"stage": stage["stage"], "stage_pct": stage["blocking_pct"]}

    # Each device has its own step; the share is that of all devices' time.
    device_ms = waiting_ms = other_ms = slowest_ms = slowest_waiting_ms = 0.0
    judged = 0
    for one in steps:
        mine = one.averaged & (one.table["kind"].to_numpy(object) == kinds[0]) if kinds else one.averaged[:0]
        if mine.any():
            device_ms += one.table["duration_ms"].to_numpy()[mine].sum()
            waiting_ms += one.table["input_ms"].to_numpy()[mine].sum()
            other_ms += one.table["other_ms"].to_numpy()[mine].sum()
            slowest = one.slowest[mine[one.slowest]]
            slowest_ms += one.table["duration_ms"].to_numpy()[slowest].sum()
            slowest_waiting_ms += one.table["input_ms"].to_numpy()[slowest].sum()
            judged += len(slowest)
    if device_ms <= 0:
        statement = "No step time was measured, so the share of input in it is unknown."
        suggestion = ""
        if pipeline is not None and pipeline["calls"] > 1:
            statement += f" {pipeline['statement']}"
            suggestion = pipeline["suggestion"]
        return InputSummary("unknown", statement, suggestion, **facts)

    kind = kinds[0]
    input_pct, other_pct = float(100 * waiting_ms / device_ms), float(100 * other_ms / device_ms)
    slowest_pct = 100 * slowest_waiting_ms / slowest_ms if slowest_ms > 0 else 0.0
    averaged = per_step["averaged"] & (per_step["kind"] == kind)
    step_ms = float(per_step["duration_ms"][averaged].mean())
    input_ms = float(per_step["input_ms"][averaged].mean())
    verdict = "high" if input_pct >= HIGH_INPUT_PCT else "moderate" if input_pct >= MODERATE_INPUT_PCT else "low"

    words = {"high": "Highly input-bound", "moderate": "Moderately input-bound", "low": "Not input-bound"}[verdict]
    what = _STEP_IN_A_SENTENCE.get(kind, f"a step ({kind})")
    each = per_step["devices"][averaged].max()
    on_slowest = f"{slowest_pct:.1f} %, {ms(slowest_waiting_ms / max(judged, 1))}, on the slowest device of each step"
    if each > 1:  # the devices' own steps differ, so no one step time goes with the share
        parts = [
            f"{words}: waiting for input takes {input_pct:.1f} % of the devices' time in {what}, {ms(input_ms)} each ({on_slowest})."
        ]
    else:
        parts = [f"{words}: waiting for input takes {ms(input_ms)} of the {ms(step_ms)} of {what} ({input_pct:.1f} %)."]
    suggestion = ""
    if verdict != "low" and pipeline is not None and stage is not None:
        if pipeline["blocked_ms"] < _READY_SHARE * input_ms:
            parts.append(
                f"tf.data held it up for only {ms(pipeline['blocked_ms'])}; handing over and copying the batch takes the rest."
            )
            suggestion = (
                "Copy less (uint8 instead of float32, converted on the device), and ahead of time (prefetch_to_device)."
            )
        else:
            parts.append(f"{share(stage['blocking_pct'])} of what it waited for tf.data was spent in {stage['name']}.")
            suggestion = suggest(stage, pipeline)
    elif verdict != "low":
        parts.append("The input doesn't come from a tf.data pipeline in this profile.")
        suggestion = "Read the input with tf.data, which works ahead of the training loop."
    if verdict != "high" and other_pct >= _HIGH_OTHER_PCT:
        parts.append(
            f"Another {other_pct:.0f} % is in no category: Python, and data loading without tf.data if there is any."
        )
    return InputSummary(
        verdict,
        " ".join(parts),
        suggestion,
        kind,
        int(averaged.sum()),
        step_ms,
        input_ms,
        input_pct,
        other_pct,
        slowest_input_time_ms=slowest_waiting_ms / max(judged, 1),
        slowest_input_pct=slowest_pct,
        **facts,
    )


def _main_pipeline(analyses: Sequence[TfData]) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The pipeline that a host waited for longest, and its stage that it waited for longest."""
    known = [(a.main, a.main_stage) for a in analyses if a.main is not None]
    return max(known, key=lambda pair: pair[0]["blocked_pct"]) if known else (None, None)
