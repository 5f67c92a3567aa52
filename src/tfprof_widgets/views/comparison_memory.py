"""A comparison's Memory tab: what the allocators of two runs held, one curve over the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import ColumnDataSource, Line, NumeralTickFormatter, Step

from . import spec
from .comparison import AFTER_COLOR, BEFORE_COLOR
from .memory import size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

_MOST_POINTS = 2000
# Charts of more allocators than these would only repeat one another.
_MOST_ALLOCATORS = 8
_MIB = 2.0**20
_UNITS = (("GiB", 2.0**30), ("MiB", _MIB), ("KiB", 2.0**10), ("B", 1.0))


def memory_tab(
    payload: spec.Tables,
    table: pd.DataFrame,
    memories: tuple[pd.DataFrame, pd.DataFrame],
    starts_ms: tuple[float, float],
) -> spec.Tab:
    """Return the Memory tab.

    Parameters
    ----------
    payload : Payload
        Gets the table ``compared_memory``.
    table : DataFrame
        The comparison's ``memory``.
    memories : (DataFrame, DataFrame)
        ``report.memory`` of both runs.
    starts_ms : (float, float)
        When the first step of each run began, which is where the curves are aligned; 0 without steps.
    """
    if table.empty:
        return spec.tab("memory", "Memory", [spec.text("No allocation was recorded in either run.", "info")])
    sizes = {f"{which}_mib": table[f"{which}_bytes"] / _MIB for which in ("before", "after", "difference")}
    payload.add_table(
        "compared_memory", table.assign(**sizes).drop(columns=["before_bytes", "after_bytes", "difference_bytes"])
    )
    peaks = table[table["measure"] == table["measure"].iloc[0]]
    order = np.argsort(-peaks[["before_bytes", "after_bytes"]].max(axis=1).to_numpy(), kind="stable")
    drawn = peaks.iloc[order[:_MOST_ALLOCATORS]]
    cases = {
        f"compared-memory-{number}": (_label(row), [_chart(row, memories, starts_ms)])
        for number, (_, row) in enumerate(drawn.iterrows())
    }
    items = [spec.switch("compared_allocator", "Allocator", cases)] if len(cases) > 1 else next(iter(cases.values()))[1]
    if len(peaks) > len(drawn):
        items.append(
            spec.text(f"Drawn: the {len(drawn)} of {len(peaks)} allocators that held most. The table has all of them.")
        )
    return spec.tab("memory", "Memory", [*items, _table(several="".join(table["host"]) != "")])


def _label(row: pd.Series[Any]) -> str:
    return f"{row['host']} {row['allocator']}".strip()


def _chart(row: pd.Series[Any], memories: tuple[pd.DataFrame, pd.DataFrame], starts_ms: Sequence[float]) -> spec.Item:
    highest = max(float(row["before_bytes"]), float(row["after_bytes"]), 1.0)
    unit, scale = next((u, s) for u, s in _UNITS if highest >= s)
    allocators = row["allocator_before"] or row["allocator"], row["allocator"]
    curves = []
    notes = []
    for name, memory, allocator, start in zip(("before", "after"), memories, allocators, starts_ms, strict=True):
        mine = memory[(memory["allocator"] == allocator)]
        if "host" in memory and row["host"]:
            mine = mine[mine["host"] == row["host"]]
        if mine.empty:
            continue
        time, in_use = mine["time_ms"].to_numpy(float), mine["in_use_bytes"].to_numpy()
        kept = thinned(time, in_use, _MOST_POINTS)
        if len(kept) < len(time):
            notes.append(
                f"Drawn of the run {name}: {len(kept):,} of {spec.count(len(time), 'point')}; each stretch keeps its least and its most."
            )
        curves.append((name, time[kept] - start, np.round(in_use[kept] / scale, 3)))
    times = np.concatenate([time for _, time, _ in curves])
    low = min(float(values.min()) for _, _, values in curves)
    high = max(float(values.max()) for _, _, values in curves)
    # Where little of much changes, the axis doesn't start at 0.
    bottom = 0.0 if high - low > 0.1 * high else max(0.0, low - 0.3 * (high - low or high))
    label = "Time since the first step began (ms)" if any(starts_ms) else "Time since the start of the trace (ms)"
    room = 0.01 * float(np.ptp(times)) or 0.5
    ends = float(times.min()) - room, float(times.max()) + room
    top = high + 0.1 * (high - bottom or high)
    p = spec.plot(230, ends, (bottom, top or 1.0), x_label=label, y_label=f"Memory in use ({unit})")
    p.xgrid.visible = False
    for axis in (p.xaxis, p.yaxis):
        axis.formatter = NumeralTickFormatter(format="0,0.[000]")
    colors = {"before": BEFORE_COLOR, "after": AFTER_COLOR}
    for name, time, values in curves:
        source = ColumnDataSource({"time": time, "in_use": values})
        # The first is broad: where the other lies on it, both are seen.
        look = {"line_width": 3.5, "line_alpha": 0.8} if name == "before" else {"line_width": 1.2}
        spec.draw(p, source, Step(x="time", y="in_use", mode="after", line_color=colors[name], **look))
        hit = spec.draw(p, source, Line(x="time", y="in_use", line_alpha=0))
        tooltips = [("Run", name), ("Time", "@time{0,0.000} ms"), ("In use", f"@in_use{{0,0.000}} {unit}")]
        spec.hover(p, [hit], tooltips, mode="vline", line_policy="prev", point_policy="follow_mouse")
    if bottom > 0:
        notes.append(f"The axis starts at {size(bottom * scale)}.")
    before, after = (size(float(row[f"{run}_bytes"])) for run in ("before", "after"))
    chart = spec.chart(
        "Memory in use",
        p,
        f"Memory in use of {len(curves)} runs; peak {before} before, {after} after.",
        " ".join(notes),
    )
    return spec.row([chart, _peaks(row)], weights=[2.4, 0.9])


def thinned(time_ms: NDArray[np.float64], in_use: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return which points to draw: at most ``most``, the first, the last, and of each bucket of time the least and the most in use.

    Parameters
    ----------
    time_ms, in_use : arrays (N)
        In time order.
    most : int
        At least 4.
    """
    n = len(time_ms)
    if n <= most:
        return np.arange(n)
    buckets = (most - 2) // 2
    span = float(time_ms[-1] - time_ms[0]) or 1.0
    bucket = np.minimum((buckets * (time_ms - time_ms[0]) / span).astype(np.int64), buckets - 1)
    order = np.lexsort((in_use, bucket))
    first = np.flatnonzero(np.diff(bucket[order], prepend=-1))
    last = np.append(first[1:], n) - 1
    return np.unique(np.concatenate([[0, n - 1], order[first], order[last]]))


def _peaks(row: pd.Series[Any]) -> spec.Item:
    absent: Mapping[str, str] = {"appeared": "before", "vanished": "after"}
    facts = []
    for run, color in (("before", BEFORE_COLOR), ("after", AFTER_COLOR)):
        words = "not used" if absent.get(str(row["matched"])) == run else size(float(row[f"{run}_bytes"]))
        facts.append(spec.fact(f"Peak {run}", words, color=color))
    if str(row["matched"]) not in absent:
        difference = float(row["difference_bytes"])
        sign = "+" if difference > 0 else "−" if difference < 0 else "±"
        facts.append(spec.fact("Difference", f"{sign}{size(abs(difference))}"))
    return spec.facts("At the peak", facts)


def _table(*, several: bool) -> spec.Item:
    host = [spec.column("host", "Host", "text", width=110)] if several else []
    return spec.table(
        "Allocators",
        "compared_memory",
        [
            *host,
            spec.column("allocator", "Allocator", "text", width=120),
            spec.column("measure", "Figure", "text", min_width=220),
            spec.column("before_mib", "Before", "number", digits=3, unit="MiB", width=100),
            spec.column("after_mib", "After", "number", digits=3, unit="MiB", width=100),
            spec.column("difference_mib", "Difference", "number", digits=3, unit="MiB", width=100),
            spec.column("ratio", "Ratio", "number", digits=2, width=64),
            spec.column("matched", "Matched by", "text", width=104),
        ],
        csv="memory.csv",
    )
