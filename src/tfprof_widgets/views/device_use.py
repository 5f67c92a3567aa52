"""How well the devices were used: busy and idle time, and the gaps between what they ran. A part of the Overview."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from bokeh.models import ColumnDataSource, FixedTicker, NumeralTickFormatter, VBar

from . import spec
from .colors import CATEGORY_COLORS
from .spec import count, ms, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.utilization import Utilization

_LINE = "#808890"
# So many gaps are listed, however many hosts there are.
_MOST_GAPS = 20


def device_items(payload: spec.Tables, used: Sequence[Utilization], hosts: Sequence[str]) -> list[spec.Item]:
    """Return charts and tables of the devices' use; nothing without devices.

    Parameters
    ----------
    payload : Payload
        Gets the tables ``device_use`` and ``device_gaps``.
    used : sequence of Utilization
        One a host.
    hosts : sequence of str
        The hosts' names.
    """
    named = [(host, one) for host, one in zip(hosts, used, strict=True) if len(one.devices)]
    if not named:
        return []
    devices = pd.concat([one.devices for _, one in named], ignore_index=True)
    histogram = pd.concat([one.gap_histogram for _, one in named]).groupby(["from_us", "to_us"], as_index=False)
    classes = histogram[["gaps", "total_us"]].sum().sort_values("from_us", ignore_index=True)
    classes = classes[: int(np.flatnonzero(classes["gaps"].to_numpy() > 0).max(initial=0)) + 1]
    several = len(named) > 1
    items: list[spec.Item] = [
        spec.row([_histogram(classes, devices), _devices(payload, devices, several=several)], weights=[1.3, 1.6])
    ]
    longest = pd.concat([one.longest_gaps.assign(host=host) for host, one in named], ignore_index=True)
    if len(longest):
        items.append(_longest(payload, longest, int(devices["gaps"].sum()), several=several))
    return items


def _class_name(from_us: float, to_us: float) -> str:
    def words(us: float) -> str:
        return f"{us:g} µs" if us < 1000 else f"{us / 1000:g} ms"

    if from_us <= 0:
        return f"< {words(to_us)}"
    if np.isinf(to_us):
        return f"> {words(from_us)}"
    unit = words(to_us).split()[1]
    low = from_us if unit == "µs" else from_us / 1000
    return f"{low:g}–{words(to_us)}"


def _histogram(classes: pd.DataFrame, devices: pd.DataFrame) -> spec.Item:
    names = [_class_name(*bounds) for bounds in zip(classes["from_us"], classes["to_us"], strict=True)]
    idle_ms = classes["total_us"].to_numpy(float) / 1e3
    total = float(idle_ms.sum())
    x = np.arange(len(classes))
    source = ColumnDataSource(
        {
            "x": x,
            "idle": idle_ms,
            "length": names,
            "time": [ms(each) for each in idle_ms],
            "share": [percent(100 * each / total if total > 0 else 0.0) for each in idle_ms],
            "gaps": [f"{n:,}" for n in classes["gaps"].astype(int)],
        }
    )
    top = 1.08 * float(idle_ms.max(initial=0.0)) or 1.0
    p = spec.plot(200, (-0.6, len(classes) - 0.4), (0, top), x_label="Length of the gap", y_label="Idle time (ms)")
    p.xgrid.visible = False
    p.xaxis.ticker = FixedTicker(ticks=x.tolist())
    p.xaxis.major_label_overrides = {int(i): name for i, name in zip(x, names, strict=True)}
    p.xaxis.major_label_orientation = 0.6
    p.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    spec.draw(p, source, VBar(x="x", top="idle", width=0.85, fill_color=CATEGORY_COLORS["other"], line_color=None))
    whole = VBar(x="x", top=top, width=1.0, fill_color=None, line_color=None)
    lit = VBar(x="x", top="idle", width=0.85, fill_color=_LINE, fill_alpha=0.4, line_color=None)
    bars = spec.draw(p, source, whole, hover_glyph=lit)
    tooltips = [("Gaps of", "@length"), ("Number", "@gaps"), ("Idle time", "@time"), ("Share", "@share")]
    spec.hover(p, [bars], tooltips, mode="vline", point_policy="follow_mouse")
    gaps = int(classes["gaps"].sum())
    most = int(np.argmax(idle_ms)) if len(idle_ms) else 0
    of = "the device" if len(devices) == 1 else f"{len(devices)} devices"
    alt = f"Idle time of {of} between what it ran, by the length of the gaps: {ms(total)} in {count(gaps, 'gap')}"
    if len(names) and total > 0:
        alt += f", most of it in gaps of {names[most]} ({percent(100 * idle_ms[most] / total)})"
    note = f"{ms(total)} in {count(gaps, 'gap')} of {of}. Short gaps are launches; long ones are waiting for the host."
    return spec.chart("Idle time by the length of the gaps", p, f"{alt}.", note)


def _devices(payload: spec.Tables, devices: pd.DataFrame, *, several: bool) -> spec.Item:
    table = devices[["host", "device", "busy_pct", "idle_ms", "window_ms", "gaps", "longest_gap_us"]].copy()
    table["longest_gap_ms"] = table.pop("longest_gap_us") / 1e3
    if not several:
        table = table.drop(columns="host")
    payload.add_table("device_use", table)
    columns = [
        *([spec.column("host", "Host", "text", min_width=100)] if several else []),
        spec.column("device", "Device", "text", min_width=112),
        spec.column("busy_pct", "Busy", "percent", digits=1, width=84, hint="Of its time: the rest is idle"),
        spec.column("idle_ms", "Idle", "number", digits=2, unit="ms", width=84),
        spec.column(
            "window_ms", "Time", "number", digits=2, unit="ms", width=88, hint="From its first event to its last"
        ),
        spec.column("gaps", "Gaps", "number", digits=0, width=72),
        spec.column("longest_gap_ms", "Longest gap", "number", digits=3, unit="ms", width=92),
    ]
    return spec.table("Use of the devices", "device_use", columns, sort=("busy_pct", "asc"), csv="devices.csv")


def _longest(payload: spec.Tables, gaps: pd.DataFrame, total: int, *, several: bool) -> spec.Item:
    table = gaps.nlargest(_MOST_GAPS, "duration_us").reset_index(drop=True)
    columns = ["host", "device", "duration_us", "start_ms", "before", "after", "host_activity", "host_activity_pct"]
    table = table[columns if several else columns[1:]]
    payload.add_table("device_gaps", table)
    shown = [
        spec.column("duration_us", "Gap", "number", digits=1, unit="µs", width=92),
        spec.column("start_ms", "Starts at", "number", digits=3, unit="ms", width=96),
        *([spec.column("host", "Host", "text", width=100)] if several else []),
        spec.column("device", "Device", "text", width=116),
        spec.column(
            "before",
            "After",
            "text",
            min_width=150,
            trace={"side": "device"},
            hint="What the device ran before the gap",
        ),
        spec.column("after", "Before", "text", min_width=150, trace={"side": "device"}, hint="What it ran next"),
        spec.column(
            "host_activity",
            "Python's thread meanwhile",
            "text",
            min_width=130,
            hint="What took more of the gap there than anything else",
        ),
        spec.column(
            "host_activity_pct",
            "Share",
            "percent",
            digits=0,
            width=76,
            hint="Its share of the gap; in the rest, the profiler saw less or nothing there",
        ),
    ]
    title = "Longest gap" if len(table) == 1 else f"{len(table)} longest gaps of {total:,}"
    return spec.table(title, "device_gaps", shown, sort=("duration_us", "desc"), csv="gaps.csv")
