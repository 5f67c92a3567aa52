"""The tables of a comparison: before, after, difference (after less before) and ratio (after over before).

Every row of either run is in exactly one row of a table, so that the differences add up to the difference of the runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..analysis.steps import CATEGORIES, CATEGORY_COLUMNS
from .matching import Rule, Side, bare_layer, bare_name, last_part, match
from .statistics import typical_split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..report import Report
    from .statistics import Change
    from .steady import Run

BY_NAME, OTHER_TYPE, RENAMED, BY_PLACE = "name", "another type", "renamed", "position"

_STEP_COLUMNS = (
    "kind", "category", "before_ms", "after_ms", "difference_ms", "ratio",
    "before_low_ms", "before_high_ms", "after_low_ms", "after_high_ms", "ratio_low", "ratio_high", "told",
)  # fmt: skip


def steps_table(kinds: Sequence[tuple[str, Run | None, Run | None, Change | None]]) -> pd.DataFrame:
    """Tabulate a typical step of each kind, and where its time goes.

    Parameters
    ----------
    kinds : sequence of (kind, before, after, change)
        None on the side where no such step ran; the change is None then.

    Returns
    -------
    DataFrame
        A row ``duration`` and one a category for each ``kind``: ``before_ms``, ``after_ms``, ``difference_ms``, ``ratio``. The
        duration is the median of the steady steps; the categories divide it (`statistics.typical_split`) and add up
        to it. The duration has the intervals ``before_low_ms`` … ``after_high_ms`` (of each median), ``ratio_low``,
        ``ratio_high``, and ``told``.
    """
    rows: list[dict[str, Any]] = []
    for kind, before, after, change in kinds:
        sides = [_typical(run) for run in (before, after)]
        total: dict[str, Any] = {"told": "" if change is None else change.told}
        if change is not None:
            total |= {
                "before_low_ms": change.before_interval_ms[0],
                "before_high_ms": change.before_interval_ms[1],
                "after_low_ms": change.after_interval_ms[0],
                "after_high_ms": change.after_interval_ms[1],
                "ratio_low": change.ratio_interval[0],
                "ratio_high": change.ratio_interval[1],
            }
        for number, category in enumerate(("duration", *CATEGORIES)):
            row = {"kind": kind, "category": category, **_quantities(sides[0][number], sides[1][number], "ms")}
            rows.append(row | (total if category == "duration" else {"told": ""}))
    return pd.DataFrame(rows, columns=list(_STEP_COLUMNS))


def _typical(run: Run | None) -> NDArray[np.float64]:
    """The median time of a step, and its categories."""
    if run is None:
        return np.full(1 + len(CATEGORY_COLUMNS), np.nan)
    return np.append(np.median(run.ms), typical_split(run.ms, run.split_ms))


def _quantities(before: float, after: float, unit: str) -> dict[str, float]:
    ratio = after / before if before > 0 else np.nan
    return {f"before_{unit}": before, f"after_{unit}": after, f"difference_{unit}": after - before, "ratio": ratio}


# ---- ops --------------------------------------------------------------------------------------------------------


def ops_table(before: Report, after: Report, steps: tuple[int, int]) -> pd.DataFrame:
    """Match the ops of two runs.

    Ops match by name and type (and whether they ran eagerly); by name alone, if their type changed; by type and name without the numbers of
    layers; last by type and place, if they ran as often.

    Parameters
    ----------
    before, after : Report
        The runs.
    steps : (int, int)
        Steps in each; 1 where there are none, so that "per step" is the whole capture.

    Returns
    -------
    DataFrame
        ``host_or_device``, ``type`` and ``name`` (those after, where there are), ``type_before`` and ``name_before`` (empty where
        they are the same), ``matched`` (``name``, ``another type``, ``renamed``, ``position``, ``appeared``, ``vanished``),
        ``occurrences_before``, ``occurrences_after``, ``before_us``, ``after_us``, ``difference_us`` (of self time), ``ratio``, and the
        same ``*_per_step``. The most time won or lost in a step first. IDLE is a row, so that the differences add up to that
        of all self time.
    """
    sides = _op_side(before, steps[0]), _op_side(after, steps[1])
    rules = [
        Rule(BY_NAME, lambda op: (op["host_or_device"], op["type"], op["name"], op["execution_mode"])),
        Rule(BY_NAME, lambda op: (op["host_or_device"], op["type"], op["name"])),
        Rule(OTHER_TYPE, lambda op: (op["host_or_device"], op["name"])),
        Rule(RENAMED, lambda op: (op["host_or_device"], op["type"], *bare_layer(op["name"]))),
        Rule(RENAMED, lambda op: (op["host_or_device"], op["type"], bare_name(op["name"]))),
        Rule(RENAMED, lambda op: (op["host_or_device"], op["type"], last_part(op["name"]), op["per_step"])),
        Rule(BY_PLACE, lambda op: (op["host_or_device"], op["type"], op["per_step"]), by_place=True),
    ]
    return _joined(
        *sides, rules, texts=("host_or_device", "type", "name"), may_differ=("type", "name"), value="self_time_us", unit="us", steps=steps
    )  # fmt: skip


def _op_side(report: Report, steps: int) -> Side:
    ops = report.ops
    rows = ops[["host_or_device", "type", "name", "execution_mode", "occurrences", "self_time_us"]].to_dict("records")
    times = ops["occurrences"].to_numpy(float)
    per_step = np.maximum(np.round(times / steps), 1).astype(int)
    for row, often in zip(rows, per_step.tolist(), strict=True):
        row["per_step"] = often
    first = first_start(report)
    place = np.array([first.get(row["name"], np.inf) for row in rows], float)
    return Side(rows, place, ops["self_time_us"].to_numpy(float) / np.maximum(times, 1))


def first_start(report: Report) -> dict[str, float]:
    """When each op first ran, in ps; the ops that the names of events tell."""
    first: dict[str, float] = {}
    for host in report.hosts:
        trace = host.trace
        starts = np.full(len(trace.space.meta_name), np.inf)
        np.minimum.at(starts, trace.meta, trace.start_ps)
        for meta in np.flatnonzero(trace.meta_is_op & np.isfinite(starts)).tolist():
            name = trace.ops.name[meta]
            first[name] = min(first.get(name, np.inf), float(starts[meta]))
    return first


# ---- kernels, input ---------------------------------------------------------------------------------------------


def kernels_table(before: Report, after: Report, steps: tuple[int, int]) -> pd.DataFrame:
    """Match the GPU kernels of two runs, whatever their launch shapes: by op and kernel, by kernel and the op's bare name, else by op.

    Returns
    -------
    DataFrame
        ``kernel_name``, ``op_name`` (and ``*_before`` where they differ), ``matched`` and the columns of `ops_table`, of total time.
    """
    sides = _kernel_side(before), _kernel_side(after)
    rules = [
        Rule(BY_NAME, lambda k: (k["kernel_name"], k["op_name"])),
        Rule(RENAMED, lambda k: (k["kernel_name"], *bare_layer(k["op_name"]))),
        Rule(RENAMED, lambda k: (k["kernel_name"], bare_name(k["op_name"]))),
        Rule("another kernel", lambda k: k["op_name"] or None),
        Rule("another kernel", lambda k: bare_layer(k["op_name"]) if k["op_name"] else None),
    ]
    names = ("kernel_name", "op_name")
    return _joined(*sides, rules, texts=names, may_differ=names, value="total_time_us", unit="us", steps=steps)


def _kernel_side(report: Report) -> Side:
    by = ["kernel_name", "op_name"]
    kernels = report.kernels.groupby(by, sort=False, observed=True)[["occurrences", "total_time_us"]].sum()
    table = kernels.reset_index().astype(dict.fromkeys(by, object))
    each = table["total_time_us"].to_numpy(float) / np.maximum(table["occurrences"].to_numpy(float), 1)
    return Side(table.to_dict("records"), np.arange(len(table), dtype=float), each)


def input_table(before: Report, after: Report, steps: tuple[int, int]) -> pd.DataFrame:
    """Match the ops that read, prepare and hand over input: by name, else by category and the last stage of their names.

    Returns
    -------
    DataFrame
        ``name``, ``category``, ``name_before``, ``matched`` and the columns of `ops_table`, of self time in ms.
    """
    sides = _input_side(before), _input_side(after)
    rules = [
        Rule(BY_NAME, lambda op: op["name"]),
        Rule(RENAMED, lambda op: (op["category"], op["name"].rsplit("::", 1)[-1])),
    ]
    texts = ("name", "category")
    return _joined(*sides, rules, texts=texts, may_differ=("name",), value="self_time_ms", unit="ms", steps=steps)


def _input_side(report: Report) -> Side:
    table = report.input_ops
    rows = table[["name", "category", "count", "self_time_ms"]].rename(columns={"count": "occurrences"})
    each = rows["self_time_ms"].to_numpy(float) / np.maximum(rows["occurrences"].to_numpy(float), 1)
    return Side(
        rows.astype({"name": object, "category": object}).to_dict("records"), np.arange(len(rows), dtype=float), each
    )


def _joined(
    before: Side,
    after: Side,
    rules: Sequence[Rule],
    *,
    texts: Sequence[str],
    may_differ: Sequence[str],
    value: str,
    unit: str,
    steps: tuple[int, int],
) -> pd.DataFrame:
    """One row a match: the texts (those after where there are, and beside them what they were before), and the values of both sides."""
    matches = match(before, after, rules)
    ours, theirs = ([m.before for m in matches], [m.after for m in matches])
    columns: dict[str, Any] = {}
    for name in texts:
        old = [None if i < 0 else str(before.rows[i][name]) for i in ours]
        new = [None if j < 0 else str(after.rows[j][name]) for j in theirs]
        columns[name] = [b if b is not None else a for a, b in zip(old, new, strict=True)]
        if name in may_differ:
            columns[f"{name}_before"] = [
                "" if a is None or b is None or a == b else a for a, b in zip(old, new, strict=True)
            ]

    def numbers(side: Side, row: Sequence[int], name: str) -> NDArray[np.float64]:
        # One more than there are rows: what -1, no row, reads.
        return np.array([*(float(each[name]) for each in side.rows), 0.0])[np.array(row, int)]

    then, now = numbers(before, ours, value), numbers(after, theirs, value)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((np.array(ours) >= 0) & (np.array(theirs) >= 0) & (then > 0), now / then, np.nan)
    table = pd.DataFrame(
        {
            **{name: np.array(column, object) for name, column in columns.items()},
            "matched": np.array([m.says for m in matches], object),
            "occurrences_before": numbers(before, ours, "occurrences").astype(np.int64),
            "occurrences_after": numbers(after, theirs, "occurrences").astype(np.int64),
            f"before_{unit}": then,
            f"after_{unit}": now,
            f"difference_{unit}": now - then,
            "ratio": ratio,
            f"before_{unit}_per_step": then / steps[0],
            f"after_{unit}_per_step": now / steps[1],
            f"difference_{unit}_per_step": now / steps[1] - then / steps[0],
            "ratio_per_step": ratio * steps[0] / steps[1],
        }
    )
    order = np.argsort(-np.abs(table[f"difference_{unit}_per_step"].to_numpy()), kind="stable")
    return table.iloc[order].reset_index(drop=True)


# ---- memory, overview -------------------------------------------------------------------------------------------

_MEASURES = {
    "peak_bytes": "peak in the capture",
    "heap_bytes": "heap at the peak",
    "stack_bytes": "stack at the peak",
    "lifetime_peak_bytes": "peak since the program began",
    "capacity_bytes": "capacity",
}


def memory_table(before: Report, after: Report) -> pd.DataFrame:
    """Compare what each allocator held.

    Returns
    -------
    DataFrame
        A row an allocator (``host`` empty unless there are several) and ``measure``: ``before_bytes``, ``after_bytes``,
        ``difference_bytes``, ``ratio``; ``matched`` tells how the allocators were: one that has another name, but is the only one
        of both runs, is the same.
    """
    sides = _memory_side(before), _memory_side(after)
    alone = all(len(side.rows) == 1 for side in sides)
    rules = [Rule(BY_NAME, lambda a: (a["host"], a["allocator"])), Rule(BY_NAME, lambda a: a["allocator"])]
    if alone:
        rules.append(Rule(RENAMED, lambda _: ""))
    rows: list[dict[str, Any]] = []
    for one in match(*sides, rules):
        ours = sides[0].rows[one.before] if one.before >= 0 else None
        theirs = sides[1].rows[one.after] if one.after >= 0 else None
        named = theirs or ours or {}
        for column, measure in _MEASURES.items():
            sizes = [float(side[column]) if side is not None else 0.0 for side in (ours, theirs)]
            values = _quantities(sizes[0], sizes[1], "bytes")
            if ours is None or theirs is None:
                values["ratio"] = np.nan
            old = str(ours["allocator"]) if ours and theirs and ours["allocator"] != theirs["allocator"] else ""
            named_so = {"host": str(named["host"]), "allocator": str(named["allocator"]), "allocator_before": old}
            rows.append({**named_so, "matched": one.says, "measure": measure, **values})
    columns = [
        "host", "allocator", "allocator_before", "matched", "measure", "before_bytes", "after_bytes", "difference_bytes", "ratio",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _memory_side(report: Report) -> Side:
    table = report.memory_summary
    table = table if "host" in table else table.assign(host="")
    rows = table[["host", "allocator", *_MEASURES]].astype({"host": object, "allocator": object}).to_dict("records")
    return Side(rows, np.arange(len(rows), dtype=float), table["peak_bytes"].to_numpy(float))


def overview_table(before: Report, after: Report, sizes: tuple[Run, Run]) -> pd.DataFrame:
    """Compare the figures of the overview.

    Returns
    -------
    DataFrame
        ``measure``, ``unit``, ``before``, ``after``, ``difference``, ``ratio``; NaN where a run does not tell.
    """
    sides = [_measures(report, run) for report, run in zip((before, after), sizes, strict=True)]
    names = list(dict.fromkeys([*sides[0], *sides[1]]))
    rows = []
    for measure, unit in names:
        then, now = (side.get((measure, unit), np.nan) for side in sides)
        ratio = now / then if then > 0 else np.nan
        values = {"before": then, "after": now, "difference": now - then, "ratio": ratio}
        rows.append({"measure": measure, "unit": unit, **values})
    return pd.DataFrame(rows, columns=["measure", "unit", "before", "after", "difference", "ratio"])


def _measures(report: Report, run: Run) -> dict[tuple[str, str], float]:
    summary = report.overview
    found: dict[tuple[str, str], float | None] = {
        ("step time, median", "ms"): float(np.median(run.ms)) if len(run.ms) else None,
        ("step time, mean", "ms"): float(run.ms.mean()) if len(run.ms) else None,
        ("step time, standard deviation", "ms"): float(run.ms.std(ddof=1)) if len(run.ms) > 1 else None,
        ("steady steps", ""): float(len(run.ms)),
        ("steps left out", ""): float(run.left_out),
        ("time of the profiled code", "ms"): run.span_ms,
        ("examples per second", "1/s"): summary.examples_per_s,
        ("device busy", "%"): summary.device_busy_pct,
        **{(f"compute in {bits}", "%"): share for bits, share in summary.precision.items()},
        **{(f"op time run eagerly, {side}", "%"): share for side, share in summary.eager_pct.items()},
        ("self time of ops", "ms"): float(report.ops.loc[report.ops["type"] != "IDLE", "self_time_us"].sum()) / 1000,
        ("events", ""): float(sum(host.trace.space.n_events for host in report.hosts)),
    }
    return {key: float(value) for key, value in found.items() if value is not None}
