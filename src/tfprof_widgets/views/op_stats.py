"""The TensorFlow stats tab: every op that ran, as pies of self time and as a table."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from ..analysis.op_stats import IDLE, without_idle
from . import spec
from .colors import OpColors
from .pie import pie

_PCT = ("device_self_time_pct", "device_cumulative_pct", "host_self_time_pct", "host_cumulative_pct")

By = Literal["name", "type"]
_MODES = "Eager: run op by op as Python calls it; Function: in the graph of a tf.function"
_NOUN = {"name": "operation", "type": "type"}


def op_stats_tab(
    payload: spec.Tables, ops: pd.DataFrame, colors: OpColors | None = None, *, unseen: bool = False
) -> spec.Tab:
    """Return the TensorFlow stats tab.

    Parameters
    ----------
    payload : Payload
        Gets the table ``ops``: one row an op, with ranks and percentages both with and without IDLE.
    ops : DataFrame
        ``report.ops``, IDLE rows included.
    colors : OpColors, optional
        The report's colours of op types; `OpColors.of` these ops by default.
    unseen : bool
        Whether devices took part of which nothing was recorded.
    """
    colors = OpColors.of(ops) if colors is None else colors
    busy = ops[ops["type"] != IDLE]
    if busy.empty:
        why = (
            "No TensorFlow op was recorded in this capture, so there are no statistics. Ops are seen when they run while "
            "the profiler runs, with a host tracer level of 2 or more (--host-level 2)."
        )
        return spec.tab("op_stats", "TensorFlow stats", [spec.text(why, "info")])
    payload.add_table("ops", ops_table(ops))
    missing = _missing_sides(busy, unseen=unseen)
    without = [*_pies(without_idle(ops), colors), *missing, _table(ops, idle=False)]
    if not (ops["type"] == IDLE).any():
        return spec.tab("op_stats", "TensorFlow stats", without)
    with_idle = [*_pies(ops, colors), *missing, _table(ops, idle=True)]
    cases = {"without": ("left out", without), "with": ("included", with_idle)}
    return spec.tab("op_stats", "TensorFlow stats", [spec.switch("idle", "Idle time", cases)])


def ops_table(ops: pd.DataFrame) -> pd.DataFrame:
    """Return the ops, most self time first, with ranks and percentages of both readings.

    Columns as in ``report.ops``, with the percentages without IDLE (missing for IDLE itself); those
    with it end in ``_with_idle_pct``. ``rank`` counts without IDLE, ``rank_with_idle`` with it.
    """
    ops = ops.sort_values("self_time_us", ascending=False, kind="stable").reset_index(drop=True)
    busy = (ops["type"] != IDLE).to_numpy()
    table = ops.rename(columns={c: c.removesuffix("_pct") + "_with_idle_pct" for c in _PCT})
    narrowed = without_idle(ops)
    for column in _PCT:
        table[column] = narrowed[column].reindex(table.index)
    table["rank"] = pd.array(np.where(busy, np.cumsum(busy), -1), dtype="Int32")
    table.loc[~busy, "rank"] = pd.NA
    table["rank_with_idle"] = np.arange(1, len(table) + 1, dtype=np.int32)
    # Shares are read to one digit; with three instead of sixteen, thousands of rows pack into half the bytes.
    shares = [name for name in table if name.endswith("_pct")]
    table[shares] = table[shares].round(3)
    return table


# ---- pies ---------------------------------------------------------------------------------------------------


def _missing_sides(busy: pd.DataFrame, *, unseen: bool) -> list[spec.Item]:
    sides = set(busy["host_or_device"])
    if "Device" not in sides and unseen:
        return [
            spec.text(
                "The device took part, but what ran on it was not recorded: these are the host's operations only, and most of the "
                "model's are missing.",
                "info",
            )
        ]
    if "Device" not in sides:
        return [
            spec.text("No operation ran on a device (GPU, TPU) in this capture, so there are no pies of device time.")
        ]
    if "Host" not in sides:
        return [spec.text("No operation was recorded on the host in this capture, so there are no pies of host time.")]
    return []


def _pies(ops: pd.DataFrame, colors: OpColors) -> list[spec.Item]:
    rows = []
    for side in ("Host", "Device"):
        of_side = ops[(ops["host_or_device"] == side) & (ops["self_time_us"] > 0)]
        if len(of_side):
            rows.append(spec.row([_pie(of_side, side, "type", colors), _pie(of_side, side, "name", colors)]))
    return rows


def _pie(ops: pd.DataFrame, side: str, by: By, colors: OpColors) -> spec.Item:
    """Return a pie of the self time of the ops of a side."""
    parts = ops.groupby(by, sort=False, observed=True).agg(time_us=("self_time_us", "sum"), type=("type", "first"))
    parts = parts.sort_values("time_us", ascending=False, kind="stable")
    names = [str(name) for name in parts.index]
    fills = [colors(str(t)) for t in parts["type"]]
    noun = _NOUN[by]
    times_ms = parts["time_us"].to_numpy(float) / 1e3
    # Longer than the capture, where several work at once.
    note = "All threads added up." if side == "Host" else "All devices added up."
    return pie(f"{side} self time by {noun}", names, times_ms, fills, noun, "Self time", note=note)


# ---- table --------------------------------------------------------------------------------------------------


def _table(ops: pd.DataFrame, *, idle: bool) -> spec.Item:
    infix = "_with_idle" if idle else ""
    of_all = "of all thread time, idle time included" if idle else "of the self time of all ops"
    columns = [
        spec.column("rank_with_idle" if idle else "rank", "Rank", "number", digits=0, width=56),
        spec.column("host_or_device", "Host/device", "text", width=84),
        spec.column("type", "Operation type", "text", min_width=112),
        spec.column("name", "Operation name", "text", min_width=190, trace={"side_field": "host_or_device"}),
        spec.column("occurrences", "Occurrences", "number", digits=0, width=104),
        spec.column(
            "total_time_us", "Total time", "number", digits=1, unit="µs", width=84, hint="The ops called by it included"
        ),
        spec.column("avg_time_us", "Average time", "number", digits=1, unit="µs", width=84),
        spec.column(
            "self_time_us",
            "Total self time",
            "number",
            digits=1,
            unit="µs",
            width=84,
            hint="Without the ops called by it",
        ),
        spec.column("avg_self_time_us", "Average self time", "number", digits=1, unit="µs", width=84),
    ]
    for side in ("device", "host"):
        if (ops["host_or_device"] == side.capitalize()).any():
            share = f"In percent {of_all} on the {side}"
            so_far = f"This op and those on the {side} ranked above it, in percent {of_all}"
            columns += [
                spec.column(
                    f"{side}_self_time{infix}_pct", f"Self time on {side}", "percent", digits=1, width=80, hint=share
                ),
                spec.column(
                    f"{side}_cumulative{infix}_pct",
                    f"Cumulative on {side}",
                    "number",
                    unit="%",
                    digits=1,
                    width=92,
                    hint=so_far,
                ),
            ]
    known = [
        spec.column("flop_rate_gflops", "FLOP rate", "number", digits=1, unit="GFLOP/s", width=92),
        spec.column("bandwidth_gibps", "Memory bandwidth", "number", digits=1, unit="GiB/s", width=100),
        spec.column("operational_intensity", "Operational intensity", "number", digits=2, unit="FLOP/B", width=100),
        spec.column("bound_by", "Bound by", "text", width=92),
        spec.column("execution_mode", "Execution mode", "text", width=88, hint=_MODES),
    ]
    columns += [column for column in known if column["field"] in ops and ops[column["field"]].notna().any()]
    return spec.table(
        "Operations",
        "ops",
        columns,
        sort=("self_time_us", "desc"),
        csv="tensorflow_stats.csv",
        filter=True,
        where=None if idle else {"field": "type", "not_equals": IDLE},
    )
