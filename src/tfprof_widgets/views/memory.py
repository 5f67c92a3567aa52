"""The Memory tab: how much each allocator holds over time, and what it held at the peak."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from bokeh.models import (
    Column,
    ColumnDataSource,
    FixedTicker,
    Line,
    NumeralTickFormatter,
    Scatter,
    Span,
    Step,
    Text,
    Title,
    VAreaStep,
    VStrip,
)

from ..analysis.memory import BEFORE_CAPTURE, STACK
from . import spec
from .packing import byte_columns
from .spec import count, fact, ms, percent
from .template import Template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bokeh.models import Plot
    from numpy.typing import NDArray

    from ..analysis.memory_history import MemoryHistory

_HEAP, _STACK, _FRAGMENTATION, _PEAK = "#2083d1", "#52c4f9", "#d88112", "#c8202b"
_LINE = "#808890"
_UNITS = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))
# Points of one chart; of more the browser draws the least and the most of each stretch of time.
_MOST_POINTS = 4000
# More steps than these can't be seen as bands.
_MOST_BANDS = 120
# The capacity is drawn where the peak takes more than this share of it; below, the chart would be flat.
_NEAR_CAPACITY = 0.4
# Both charts of an allocator begin at one place, whatever the numbers at their axes.
_LEFT_OF_CHARTS = 68
_TICK_MS = 1e-6
# Where the use varies by less than this share of the peak, the axis doesn't start at 0.
_FLAT = 0.1
_NO_OP = "(no op named)"
_EMPTY = (
    "No allocation was recorded in this capture, so there is no memory profile. Memory events need a host tracer level of 2 or more "
    "(--host-level 2), and allocators of TensorFlow that work while the profiler runs."
)


def memory_tab(
    payload: spec.Tables, memory: pd.DataFrame, summary: pd.DataFrame, history: MemoryHistory, steps: pd.DataFrame
) -> spec.Tab:
    """Return the Memory tab.

    Parameters
    ----------
    payload : Payload
        Gets the tables ``memory_events`` and ``memory_blocks``, from which the browser tells what was held at any time.
    memory, summary : DataFrame
        ``report.memory`` and ``report.memory_summary``; with several hosts each has a column ``host``.
    history : MemoryHistory
        What each event begins and ends to hold, the allocators in the order of ``summary``.
    steps : DataFrame
        ``report.steps``, to be seen behind the charts.
    """
    if memory.empty:
        return spec.tab("memory", "Memory", [spec.text(_EMPTY, "info")])
    several = "host" in memory
    by = ["host", "allocator"] if several else ["allocator"]
    rows_of = memory.groupby(by, sort=False, observed=True).indices
    steps_of = dict(iter(steps.groupby("host", sort=False)))
    hosts: dict[str, dict[str, tuple[str, list[spec.Item]]]] = {}
    first = np.searchsorted(history.events["place"].to_numpy(), np.arange(len(summary) + 1)).tolist()
    for number, (_, allocator) in enumerate(summary.iterrows()):
        key = tuple(allocator[by]) if several else allocator["allocator"]
        host = str(allocator["host"]) if several else ""
        name = str(allocator["allocator"])
        mine = _steps_on(steps_of.get(host) if several else steps, name)
        rows = memory.iloc[rows_of[key]]
        items = [_summary(allocator), _held(rows, allocator, mine, first[number])]
        hosts.setdefault(host, {})[f"memory-{number}"] = (f"{name} ({size(allocator['peak_bytes'])})", items)
    payload.add_table("memory_events", pack_history(history))
    payload.add_table("memory_blocks", history.blocks)
    cases = {host: _allocators(number, of_host) for number, (host, of_host) in enumerate(hosts.items())}
    if not several:
        return spec.tab("memory", "Memory", cases[""])
    named = {f"host-{i}": (host, items) for i, (host, items) in enumerate(cases.items())}
    return spec.tab("memory", "Memory", [spec.switch("memory_host", "Host", named, trait="host")])


def _steps_on(steps: pd.DataFrame | None, allocator: str) -> pd.DataFrame | None:
    """The steps as the device saw them whose memory it is: devices need not run a step at the same time."""
    device = re.fullmatch(r"GPU_(\d+)_bfc", allocator)
    if steps is None or device is None or "device" not in steps:
        return steps
    its = steps["device"].astype(str).str.endswith(f":GPU:{device[1]}")
    return steps[its] if its.any() else steps


def size(n_bytes: float) -> str:
    """Return an amount of memory as people read it."""
    unit, scale = _unit(n_bytes)
    return f"{n_bytes:,.0f} B" if not unit else f"{n_bytes / scale:,.{_digits(n_bytes / scale)}f} {unit}"


def _unit(n_bytes: float) -> tuple[str, float]:
    return next(((unit, scale) for unit, scale in _UNITS if n_bytes >= scale), ("", 1.0))


def _digits(value: float) -> int:
    return 0 if value >= 1000 else 1 if value >= 100 else 2


def _allocators(number: int, cases: Mapping[str, tuple[str, list[spec.Item]]]) -> list[spec.Item]:
    if len(cases) == 1:
        ((label, items),) = cases.values()
        return [
            spec.text(f"Memory: {label.rpartition(' (')[0]}, the only allocator of which the profiler saw events."),
            *items,
        ]
    return [spec.switch(f"memory_allocator_{number}", "Memory ID (peak)", cases)]


# ---- summary ------------------------------------------------------------------------------------------------


def _summary(allocator: pd.Series[Any]) -> spec.Item:
    capacity, peak = float(allocator["capacity_bytes"]), float(allocator["peak_bytes"])
    of_capacity = f" ({percent(100 * peak / capacity)} of the capacity)" if capacity > 0 else ""
    lifetime = "As far back as the allocator keeps it"
    rows = [
        fact("Allocations", f"{allocator['allocations']:,}"),
        fact("Deallocations", f"{allocator['deallocations']:,}"),
        fact("Memory capacity", size(capacity), hint="In use and free, as the allocator reports it"),
        fact("Peak since the program began", size(float(allocator["lifetime_peak_bytes"])), hint=lifetime),
        fact("Peak in this capture", f"{size(peak)}{of_capacity}"),
        fact("Time of the peak", ms(float(allocator["peak_time_ms"])), hint="Since the start of the trace"),
    ]
    return spec.facts("", rows)


def _at_peak(allocator: pd.Series[Any], *, stack: bool, fragmentation: bool) -> spec.Item:
    """What there was at the peak: the chart's legend."""
    pieces = "Share of the free memory that is in pieces too small for the largest block that would fit in it"
    at_peak = float(allocator["fragmentation"])
    share = "not reported" if np.isnan(at_peak) else percent(100 * at_peak)
    rows = [
        fact("Heap allocation", size(float(allocator["heap_bytes"])), color=_HEAP),
        fact("Stack reservation", size(float(allocator["stack_bytes"])), color=_STACK if stack else ""),
        fact("Free memory", size(float(allocator["free_bytes"]))),
        fact("Fragmentation", share, color=_FRAGMENTATION if fragmentation else "", hint=pieces),
    ]
    return spec.facts("At the peak", rows)


# ---- timeline -----------------------------------------------------------------------------------------------


def _held(rows: pd.DataFrame, allocator: pd.Series[Any], steps: pd.DataFrame | None, first: int) -> spec.Item:
    """The chart of an allocator, and what it held at the peak or at a time chosen there. ``first``: its first row of the events."""
    in_use = rows["in_use_bytes"].to_numpy()
    unit, scale = _unit(float(allocator["peak_bytes"]))
    has_stack = bool((rows["stack_bytes"] > 0).any())
    has_fragmentation = bool(rows["fragmentation"].notna().any())
    # What is free follows from what is in use, unless the allocator grows.
    grows = bool(np.ptp(in_use + rows["free_bytes"].to_numpy()) > 0)

    capacity, peak = float(allocator["capacity_bytes"]), float(allocator["peak_bytes"])
    low, high, least = 0.0, 1.15 * peak, float(in_use.min())
    near = capacity > 0 and peak >= _NEAR_CAPACITY * capacity
    if near:
        high = 1.05 * capacity
    elif peak - least < _FLAT * peak:
        low, high = least - 0.3 * (peak - least or peak), peak + 0.4 * (peak - least or peak)
    low, high = max(low, 0.0) / scale, (high or 1.0) / scale
    start, end = float(rows["time_ms"].iloc[0]), float(rows["time_ms"].iloc[-1])
    room = 0.01 * (end - start) or 0.5
    ends = start - room, end + room
    bands, steps_note = _bands(steps, ends)
    peak_ms = float(allocator["peak_time_ms"])
    late = peak_ms > (start + end) / 2

    number = {"type": "value", "value": low}
    figure = _chart(unit or "B", stack=has_stack, fragmentation=has_fragmentation, free=grows).fill(
        {
            "bands": {"from": bands[0], "to": bands[1]},
            "peak": {
                "x": [peak_ms],
                "y": [peak / scale],
                "words": [f"peak: {size(peak)} at {ms(peak_ms)}"],
                "align": ["right" if late else "left"],
                "x_offset": [-8 if late else 8],
            },
        },
        {
            "time": {"start": ends[0], "end": ends[1]},
            "size": {"start": low, "end": high},
            "capacity": {"location": capacity / scale, "visible": near},
            "heap": {"y1": number},
        },
    )
    notes = ["Click at any time to see what was held then."]
    if near:
        notes.append("Dashed: the capacity.")
    elif low > 0:
        notes.append(f"The axis starts at {size(low * scale)}.")
    notes += [steps_note] if steps_note else []
    parts = ["heap", *(["stack"] if has_stack else [])]
    title = f"Memory in use ({' and '.join(parts)})" + (" and fragmentation" if has_fragmentation else "")
    alt = (
        f"{title} from {ms(start)} to {ms(end)}: between {size(least)} and {size(peak)}, the peak at {ms(peak_ms)}, "
        f"of {size(capacity)}."
    )
    # The last of equal peaks, as in the summary.
    at_peak = len(in_use) - 1 - int(np.argmax(in_use[::-1]))
    return {
        "kind": "held",
        "title": title,
        "figure": figure,
        "alt": alt,
        "note": " ".join(notes),
        "beside": _at_peak(allocator, stack=has_stack, fragmentation=has_fragmentation),
        "events": "memory_events",
        "blocks": "memory_blocks",
        "first": first,
        "count": len(rows),
        "peak": at_peak,
        "tick_ms": _TICK_MS,
        "scale": scale,
        "most_points": _MOST_POINTS,
        "labels": {"other": BEFORE_CAPTURE, "stack": STACK, "unnamed": _NO_OP},
        "table": _breakdown(),
    }


def _bands(steps: pd.DataFrame | None, ends: tuple[float, float]) -> tuple[tuple[list[float], list[float]], str]:
    """Every other step of the shown time, as start and end, and what to say about them."""
    if steps is None or steps.empty:
        return ([], []), ""
    spans = steps.groupby("step")
    start = spans["start_ms"].min().to_numpy(float)
    end = (steps["start_ms"] + steps["duration_ms"]).groupby(steps["step"]).max().to_numpy(float)
    seen = (end > ends[0]) & (start < ends[1])
    start, end = np.clip(start[seen], *ends), np.clip(end[seen], *ends)
    if not len(start):
        return ([], []), ""
    if len(start) > _MOST_BANDS:
        return ([], []), f"{count(len(start), 'step')} ran in this time, too many to be marked."
    words = "Band: the step." if len(start) == 1 else f"Bands: every other one of {count(len(start), 'step')}."
    return (start[::2].tolist(), end[::2].tolist()), words


@cache
def _chart(unit: str, *, stack: bool, fragmentation: bool, free: bool) -> Template:
    columns = [
        "time",
        "heap",
        *(["stack", "in_use"] if stack else []),
        *(["free"] if free else []),
        *(["fragmentation"] if fragmentation else []),
    ]
    # The browser fills it; BokehJS never ends drawing steps of no points.
    points = ColumnDataSource({name: [0.0] for name in columns}, name="points")
    x_label = "Time since the start of the trace (ms)"
    p = spec.plot(210, (0, 1), (0, 1), x_label="" if fragmentation else x_label, y_label=f"Memory in use ({unit})")
    p.x_range.name, p.y_range.name = "time", "size"
    p.xgrid.visible = False
    p.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    p.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    band = VStrip(x0="from", x1="to", fill_color=_LINE, fill_alpha=0.16, line_color=None)
    spec.draw(p, ColumnDataSource({"from": [], "to": []}, name="bands"), band)
    top = "in_use" if stack else "heap"
    heap = VAreaStep(x="time", y1=0, y2="heap", step_mode="after", fill_color=_HEAP, fill_alpha=0.75, name="heap")
    spec.draw(p, points, heap)
    if stack:
        spec.draw(p, points, VAreaStep(x="time", y1="heap", y2="in_use", step_mode="after", fill_color=_STACK))
    spec.draw(p, points, Step(x="time", y=top, mode="after", line_color=_HEAP, line_width=1))
    tooltips = [("Time", "@time{0,0.000} ms"), ("Heap", f"@heap{{0,0.000}} {unit}")]
    if stack:
        tooltips += [("Stack", f"@stack{{0,0.000}} {unit}"), ("In use", f"@in_use{{0,0.000}} {unit}")]
    if free:
        tooltips.append(("Free", f"@free{{0,0.000}} {unit}"))
    if fragmentation:
        tooltips.append(("Fragmentation", "@fragmentation{0.0} %"))
    p.add_layout(
        Span(location=0, dimension="width", line_color=_LINE, line_dash="dashed", line_width=1, name="capacity")
    )
    peak = ColumnDataSource({name: [] for name in ("x", "y", "words", "align", "x_offset")}, name="peak")
    spec.draw(p, peak, Scatter(x="x", y="y", marker="inverted_triangle", size=9, fill_color=_PEAK, line_color="white"))
    label = Text(
        x="x",
        y="y",
        text="words",
        text_align="align",
        text_baseline="bottom",
        x_offset="x_offset",
        y_offset=-2,
        text_font_size="11px",
    )
    spec.draw(p, peak, label)
    _hover(p, points, top, tooltips)
    p.add_layout(_cursor())
    if not fragmentation:
        return Template(p)
    # Below the memory, over the same times. Too low for a label along its axis.
    q = spec.plot(126, (0, 1), (0, 104), x_label=x_label)
    q.title = Title(text="Fragmentation (%)", text_font_size="12px", text_font_style="normal", standoff=4)
    q.x_range = p.x_range
    q.xgrid.visible = False
    q.yaxis.ticker = FixedTicker(ticks=[0, 50, 100])
    q.xaxis.formatter = p.xaxis[0].formatter
    area = VAreaStep(x="time", y1=0, y2="fragmentation", step_mode="after", fill_color=_FRAGMENTATION, fill_alpha=0.25)
    spec.draw(q, points, area)
    line = Step(x="time", y="fragmentation", mode="after", line_color=_FRAGMENTATION, line_width=1.5)
    spec.draw(q, points, line)
    _hover(q, points, "fragmentation", tooltips)
    q.add_layout(_cursor())
    for plot in (p, q):
        plot.min_border_left = _LEFT_OF_CHARTS
    p.xaxis.major_label_text_font_size = "0px"
    return Template(Column(children=[p, q], sizing_mode="stretch_width"))


def _hover(p: Plot, points: ColumnDataSource, y: str, tooltips: list[tuple[str, str]]) -> None:
    # A line that isn't seen is hit all along, which steps and areas are not.
    hit = spec.draw(p, points, Line(x="time", y=y, line_alpha=0))
    spec.hover(p, [hit], tooltips, mode="vline", line_policy="prev", point_policy="follow_mouse")


def _cursor() -> Span:
    """Where the reader has chosen a time; the browser moves it."""
    return Span(location=0, dimension="height", line_color=_PEAK, line_width=1.5, visible=False, name="cursor")


# ---- breakdown ----------------------------------------------------------------------------------------------


def pack_history(history: MemoryHistory) -> pd.DataFrame:
    """Turn events into columns of bytes that gzip packs well.

    Returns
    -------
    DataFrame
        A row an event: ``time{n}`` (ticks since the event before of its allocator; for its first, since the start of the trace);
        ``begins{n}`` (0 for none, 1 for the row of ``blocks`` after the newest one so far, else 2 + the newest one's row - its row);
        ``ends{n}`` (0 for none, else 1 + the newest one's row - its row); both are mostly small numbers;
        ``other{n}``, ``stack{n}``, and ``whole{n}`` (in use and free) (zigzag of the change in bytes; for an allocator's first event,
        from 0); ``fragmentation{n}`` (1 + per mille; 0 if unknown).
    """
    events = history.events
    place = events["place"].to_numpy()
    starts = np.flatnonzero(np.diff(place, prepend=-1))

    def changes(values: NDArray[np.int64]) -> NDArray[np.int64]:
        change = np.diff(values, prepend=0)
        change[starts] = values[starts]
        return change

    def zigzag(change: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(change < 0, -2 * change - 1, 2 * change)

    begins, ends = events["begins"].to_numpy(), events["ends"].to_numpy()
    newest = np.maximum.accumulate(begins) if len(begins) else begins
    older = np.concatenate([[-1], newest[:-1]])[: len(begins)]
    ticks = np.rint(events["time_ms"].to_numpy() / _TICK_MS).astype(np.int64)
    columns = byte_columns("time", changes(ticks))
    columns |= byte_columns("begins", np.select([begins < 0, begins > older], [0, 1], older - begins + 2))
    columns |= byte_columns("ends", np.where(ends < 0, 0, newest - ends + 1))
    columns |= byte_columns("other", zigzag(changes(events["other_bytes"].to_numpy())))
    stack = events["stack_bytes"].to_numpy()
    columns |= byte_columns("stack", zigzag(changes(stack)))
    sizes = np.append(history.blocks["bytes"].to_numpy(np.int64), 0)  # -1 is none
    held = np.cumsum(sizes[begins] - sizes[ends])
    before = np.concatenate([[0], held])[starts]
    held -= np.repeat(before, np.diff(np.append(starts, len(events))))
    whole = held + events["other_bytes"].to_numpy() + stack + events["free_bytes"].to_numpy()
    columns |= byte_columns("whole", zigzag(changes(whole)))
    per_mille = np.nan_to_num(np.rint(1000 * events["fragmentation"].to_numpy(float)) + 1)
    columns |= byte_columns("fragmentation", per_mille.astype(np.int64))
    return pd.DataFrame(columns)


def _breakdown() -> spec.Item:
    columns = [
        spec.column("op_name", "Op name", "text", min_width=240, trace={"side": "host"}),
        spec.column("size_mib", "Allocation size", "number", digits=3, unit="MiB", width=104),
        spec.column("requested_size_mib", "Requested size", "number", digits=3, unit="MiB", width=104),
        spec.column("occurrences", "Occurrences", "number", digits=0, width=104),
        spec.column("total_size_mib", "Total size", "number", digits=3, unit="MiB", width=104),
        spec.column("share_pct", "Share", "percent", digits=1, width=92, hint="Of what was in use at that time"),
        spec.column("region_type", "Region type", "text", width=96),
        spec.column("data_type", "Data type", "text", width=88),
        spec.column("shape", "Shape", "text", width=170),
    ]
    return spec.table(
        "Allocations held",
        "memory_blocks",
        columns,
        sort=("total_size_mib", "desc"),
        csv="memory_held.csv",
        filter=True,
    )
