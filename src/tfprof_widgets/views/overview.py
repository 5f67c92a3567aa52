"""The Overview tab: where the time of a step goes, step by step and on average, and what takes most of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import (
    BooleanFilter,
    CDSView,
    ColumnDataSource,
    FixedTicker,
    HBar,
    NumeralTickFormatter,
    Scatter,
    Span,
    Step,
    Text,
    VAreaStep,
    VBar,
)
from bokeh.transform import stack

from ..analysis.steps import CATEGORIES, CATEGORY_LABELS
from . import spec
from .colors import CATEGORY_COLORS, HATCHED_CATEGORIES, text_color_on
from .device_use import device_items
from .spec import count, fact, ms, percent
from .template import Template

if TYPE_CHECKING:
    import pandas as pd
    from bokeh.models import Plot
    from numpy.typing import NDArray

    from ..analysis.overview import Overview

_HATCH = "right_diagonal_line"
_HATCH_STYLE = {"hatch_color": "white", "hatch_alpha": 0.5, "hatch_scale": 9, "hatch_weight": 1}
# Why a step is left out of averages, in the words of its flags.
_REASONS = {
    "first": "first",
    "last": "last",
    "traced": "function traced",
    "compiling": "compiling",
    "end_of_data": "end of the data",
    "host_only": "without work on a device",
}
_NOTHING = "Nothing was recorded in which steps or operations could be found, so there is nothing to show of them."
# Each device's chart holds its own data; beyond this many devices only the slowest of each step is drawn.
_MAX_DEVICE_CHARTS = 16
_PALE = 0.35
# With more steps than each of these, bars touch, bars become areas, and areas are of the average of several steps.
_MOST_GAPS, _MOST_BARS, _MOST_DRAWN = 100, 300, 1000
_GROUPS = 500
# Lines over the chart, seen on light and dark pages.
_LINE = "#808890"
# Steps that are too long for the chart are named in it where there is this share of its width for each; the note names so many.
_ROOM_FOR_TIME, _MOST_LISTED_ABOVE = 0.09, 8
# Up to this share of the steps may be so much longer than the others that they are cut off.
_MOST_CUT_SHARE = 0.25
# The chart is at least as wide as so many bars.
_FEWEST_WIDTHS = 12
# A rough width of a letter of a bar's label, and of the narrowest bar that the report is made for.
_LETTER_PX, _NARROW_BAR_PX = 7, 560


def overview_tab(payload: spec.Tables, summary: Overview, steps: pd.DataFrame) -> spec.Tab:
    """Return the Overview tab.

    Parameters
    ----------
    payload : Payload
        Gets the table ``top_ops``, and those of `device_items`.
    summary : Overview
        Averages, top ops, environment.
    steps : DataFrame
        ``report.steps``: one row a step and device.
    """
    items = [spec.text(summary.statement)] if summary.statement else []
    if steps.empty and summary.top_ops.empty:
        # Why, and what to do, the head of the report says.
        environment = spec.facts(
            "Run environment", [fact(label, value) for label, value in summary.environment.items()]
        )
        return spec.tab("overview", "Overview", [*items, spec.text(_NOTHING, "info"), environment])
    items += _step_items(summary, steps)
    items += _performance(summary)
    hosts = [str(used.devices["host"].iloc[0]) if len(used.devices) else "" for used in summary.utilization]
    items += device_items(payload, summary.utilization, hosts)
    items.append(_top_ops(payload, summary.top_ops, several_hosts=len(summary.host_step_time) > 1))
    items.append(spec.facts("Run environment", [fact(label, value) for label, value in summary.environment.items()]))
    return spec.tab("overview", "Overview", items)


def _performance(summary: Overview) -> list[spec.Item]:
    rows = []
    if summary.examples_per_s is not None:
        rows.append(fact("Examples per second", f"{summary.examples_per_s:,.0f}"))
    if summary.device_busy_pct is not None:
        busy = percent(summary.device_busy_pct)
        rows.append(
            fact(
                "Device busy (whole capture)",
                busy,
                hint="Share of the time between a device's first and last event, also outside steps; the rest is idle",
            )
        )
    if summary.precision:
        shares = ", ".join(f"{bits} {percent(share)}" for bits, share in summary.precision.items())
        rows.append(fact("Device compute precision", shares, hint="Share of the devices' compute time"))
    for side, share in summary.eager_pct.items():
        if share > 0:
            hint = f"Share of the self time of all ops on the {side} that Python ran op by op, not in a tf.function"
            rows.append(fact(f"Op time run eagerly ({side})", percent(share), hint=hint))
    return [spec.facts("Performance", rows)] if rows else []


# ---- steps --------------------------------------------------------------------------------------------------


def _step_items(summary: Overview, steps: pd.DataFrame) -> list[spec.Item]:
    notes = [spec.text(" ".join(summary.notes), "info" if steps.empty else "plain")] if summary.notes else []
    if steps.empty:
        how = (
            "No step was found in this capture, so there is no step time to show. Mark each step of your own loop: "
            "with tfprof_widgets.step(i): …"
        )
        return notes or [spec.text(how, "info")]
    together = _kinds_items(summary.step_time, steps, "")
    if len(summary.host_step_time) < 2:
        return together + notes
    # The value of no host is empty: tools that show one host at a time stay as they are.
    cases = {"": ("All hosts", together)}
    for number, (host, step_time) in enumerate(summary.host_step_time.items()):
        of_host = steps[steps["host"] == host]
        shown = (
            _kinds_items(step_time, of_host, f"{number}-", all_devices=steps[["host", "device"]].drop_duplicates())
            if len(of_host)
            else [spec.text("No step was found on this host.", "info")]
        )
        cases[f"host-{number}"] = (host, shown)
    return [spec.switch("overview_host", "Host", cases, trait="host"), *notes]


def _kinds_items(
    step_time: pd.DataFrame, steps: pd.DataFrame, prefix: str, all_devices: pd.DataFrame | None = None
) -> list[spec.Item]:
    """Return the breakdown and the chart of each kind of step: of all hosts' steps, or of one's."""
    of_all = steps[["host", "device"]].drop_duplicates() if all_devices is None else all_devices
    one_by_one = len(of_all) <= _MAX_DEVICE_CHARTS
    cases = {
        str(average["kind"]): (
            f"{average['kind'] or 'steps'} ({of_kind['step'].nunique():,})",
            _kind_items(average, of_kind, f"{prefix}{number}", one_by_one=one_by_one),
        )
        for number, (_, average) in enumerate(step_time.iterrows())
        for of_kind in [steps[steps["kind"] == average["kind"]]]
    }
    if len(cases) == 1:
        return next(iter(cases.values()))[1]
    return [spec.switch(f"{prefix}kind", "Kind of step", cases)]


def _kind_items(average: pd.Series[Any], steps: pd.DataFrame, number: str, *, one_by_one: bool) -> list[spec.Item]:
    items = []
    if average["steps"] > 0:
        items.append(_breakdown_bar(average))
        items.append(spec.row([_breakdown_facts(average), _statistics(average, steps)]))
    else:
        items.append(
            spec.text(
                f"There is no average: {count(int(average['left_out']), 'step')} of this kind ran, and averages leave out "
                f"such steps ({_why_left_out(steps)}). Profile a few more steps after the first ones.",
                "info",
            )
        )
    return items + _charts(average, steps, number, one_by_one=one_by_one)


def _breakdown(average: pd.Series[Any]) -> list[tuple[str, float, float]]:
    """Categories that took time: each with its mean in milliseconds and its percentage of the step."""
    mean = float(average["mean_ms"])
    times = [(c, float(average[f"{c}_ms"])) for c in CATEGORIES]
    return [(c, time, 100 * time / mean if mean > 0 else 0.0) for c, time in times if time > 0]


def _breakdown_bar(average: pd.Series[Any]) -> spec.Item:
    parts = _breakdown(average)
    mean = float(average["mean_ms"])
    ends = np.cumsum([time for _, time, _ in parts]) if parts else np.zeros(0)
    labels = [CATEGORY_LABELS[c] for c, _, _ in parts]
    shown = [_bar_label(c, share) for c, _, share in parts]
    figure = _bar().fill(
        {
            "parts": {
                "left": ends - [time for _, time, _ in parts],
                "right": ends,
                "middle": ends - [time / 2 for _, time, _ in parts],
                "category": labels,
                "shown": shown,
                "time": [ms(time, like=mean) for _, time, _ in parts],
                "share": [percent(share) for _, _, share in parts],
                "color": [CATEGORY_COLORS[c] for c, _, _ in parts],
                "text_color": [text_color_on(CATEGORY_COLORS[c]) for c, _, _ in parts],
                "hatch": [_hatch(c) for c, _, _ in parts],
            }
        },
        {
            "whole": {"end": float(ends[-1]) if len(ends) else 1.0},
            "labelled": {"booleans": [bool(words) for words in shown]},
        },
    )
    spoken = ", ".join(f"{label} {percent(share)}" for label, (_, _, share) in zip(labels, parts, strict=True))
    alt = f"Breakdown of the average step: {spoken}."
    return {"kind": "figure", "title": f"Average step time: {ms(mean)}", "figure": figure, "alt": alt}


@cache
def _bar() -> Template:
    columns = ("left", "right", "middle", "category", "shown", "time", "share", "color", "text_color", "hatch")
    source = ColumnDataSource({name: [] for name in columns}, name="parts")
    p = spec.plot(56, (0, 1), (-0.5, 0.5), axes=False)
    p.x_range.name = "whole"
    part = HBar(
        y=0, height=0.9, left="left", right="right",
        fill_color="color", line_color="white", line_width=1, hatch_pattern="hatch", **_HATCH_STYLE,
    )  # fmt: skip
    bars = spec.draw(p, source, part)
    # A label on a pattern gets the plain colour behind it; where none fits, there is no box for one either.
    label = Text(
        x="middle", y=0, text="shown", text_color="text_color", text_font_size="12px",
        text_align="center", text_baseline="middle", background_fill_color="color", padding=2,
    )  # fmt: skip
    spec.draw(p, source, label, view=CDSView(filter=BooleanFilter([], name="labelled")))
    spec.hover(
        p, [bars], [("Category", "@category"), ("Time", "@time"), ("Share", "@share")], point_policy="follow_mouse"
    )
    return Template(p)


def _bar_label(category: str, share: float) -> str:
    """As much of a part's name and share as fits into it even in a narrow window."""
    room = share / 100 * _NARROW_BAR_PX / _LETTER_PX - 1
    wordings = (f"{_short_label(category)} {percent(share)}", percent(share), f"{share:.0f} %")
    return next((words for words in wordings if len(words) <= room), "")


def _short_label(category: str) -> str:
    return "All others" if category == "other" else CATEGORY_LABELS[category]


def _breakdown_facts(average: pd.Series[Any]) -> spec.Item:
    parts = _breakdown(average)
    mean = float(average["mean_ms"])
    rows = [
        fact(
            _short_label(c),
            f"{ms(time, like=mean)} · {percent(share)}",
            color=CATEGORY_COLORS[c],
            hatch=c in HATCHED_CATEGORIES,
            hint=CATEGORY_LABELS[c] if c == "other" else "",
        )
        for c, time, share in parts
    ]
    seen = {c for c, _, _ in parts}
    unseen = [_short_label(c) for c in CATEGORIES if c not in seen]
    if unseen:
        rows.append(fact("No time in", ", ".join(unseen), wide=True))
    return spec.facts("Where the time goes", rows)


def _statistics(average: pd.Series[Any], steps: pd.DataFrame) -> spec.Item:
    averaged, left_out = int(average["steps"]), int(average["left_out"])
    hosts = steps["host"].nunique()
    of_hosts = f" ({hosts} hosts' steps)" if hosts > 1 else ""
    mean = float(average["mean_ms"])
    named = {"mean": "Average", "std": "Standard deviation", "min": "Minimum", "median": "Median", "max": "Maximum"}
    rows = [
        *(fact(label, ms(float(average[f"{name}_ms"]), like=mean)) for name, label in named.items()),
        fact("Steps averaged", f"{averaged:,} of {averaged + left_out:,}{of_hosts}"),
    ]
    if left_out:
        rows.append(
            fact(
                "Left out", f"{left_out:,} ({_why_left_out(steps)})", hint="Steps that say little about the usual ones"
            )
        )
        with_them = ms(float(average["all_mean_ms"]), like=mean)
        rows.append(fact("Average with them", with_them, hint="The left-out ones included"))
    return spec.facts("Step statistics", rows)


def _is_left_out(steps: pd.DataFrame) -> NDArray[np.bool_]:
    return ~steps["flags"].str.contains("averaged", regex=False).to_numpy(bool)


def _why_left_out(steps: pd.DataFrame) -> str:
    """Count the reasons of the steps that are left out; a step can have several."""
    reasons: dict[str, int] = {}
    for flags in steps[_is_left_out(steps)].groupby(["host", "step"], sort=False)["flags"].first():
        for word in flags.split():
            if word in _REASONS:
                reasons[word] = reasons.get(word, 0) + 1
    return ", ".join(f"{_REASONS[word]}: {reasons[word]:,}" for word in _REASONS if word in reasons)


def _reasons_of(flags: str) -> str:
    words = [_REASONS[word] for word in flags.split() if word in _REASONS]
    return ", ".join(words)


# ---- the chart over all steps -------------------------------------------------------------------------------


def _charts(average: pd.Series[Any], steps: pd.DataFrame, number: str, *, one_by_one: bool) -> list[spec.Item]:
    """Return a chart; where there are several devices, one for the slowest of each step and one for each of them."""
    slowest = steps.loc[steps.groupby("step", sort=True)["duration_ms"].idxmax()]
    devices = list(steps.groupby(["host", "device"], sort=False))
    if len(devices) == 1:
        return [_step_chart(average, slowest)]
    title = "Slowest device of each step"
    of_hosts = steps["host"].nunique()
    together = _step_chart(average, slowest, several=True, of_hosts=of_hosts)
    if of_hosts > 1:
        words = f"Each step is drawn as the slowest of the {len(devices)} devices of {of_hosts} hosts saw it; choose a host to see its own."
        return [together, spec.text(words)]
    if not one_by_one:
        words = f"Each step is drawn as the slowest of the {count(len(devices), 'device')} saw it. report.steps has them all."
        return [together, spec.text(words)]
    cases = {"slowest": (title, [together])}
    for i, ((_, device), of_device) in enumerate(devices):
        cases[f"device-{i}"] = (str(device), [_step_chart(average, of_device.sort_values("step"), mean_line=False)])
    return [spec.switch(f"device-{number}", "Device", cases)]


def _step_chart(
    average: pd.Series[Any], steps: pd.DataFrame, *, several: bool = False, mean_line: bool = True, of_hosts: int = 1
) -> spec.Item:
    total = steps["duration_ms"].to_numpy(float)
    number = steps["step"].to_numpy(np.int64)
    left_out = _is_left_out(steps)
    shown = [c for c in CATEGORIES if (steps[f"{c}_ms"] > 0).any()]
    as_bars = len(steps) <= _MOST_BARS
    in_groups_of = 1 if len(steps) <= _MOST_DRAWN else -(-len(steps) // _GROUPS)
    position, labels = _positions(number, gaps=as_bars)
    top, above = _top(total, left_out)
    # One step is its own average.
    mean = float(average["mean_ms"]) if mean_line and average["steps"] > 0 and len(steps) > 1 else None

    if in_groups_of > 1:
        columns = _grouped(steps, position, left_out, shown, in_groups_of)
    else:
        columns = _columns(steps, position, left_out, shown, several=several, several_hosts=of_hosts > 1)
    areas = {} if as_bars else _areas(columns, shown)
    start, end = _ends(position)
    ticks = len(steps) <= _FEWEST_WIDTHS
    figure = _chart(
        tuple(shown),
        tuple(columns),
        tuple(areas),
        digits=_hover_digits(float(np.median(total))),
        narrow=len(steps) > _MOST_GAPS,
        ticks=ticks,
    ).fill(
        {
            "steps": columns,
            **({"areas": areas} if areas else {}),
            **_above(position[above], total[above], top, start, end),
        },
        {
            "ends": {"start": start, "end": end},
            "top": {"end": top},
            "mean": {"location": mean or 0.0, "visible": mean is not None},
            "x_axis": {"major_label_overrides": {"type": "map", "entries": [[i, name] for i, name in labels.items()]}},
            **({"ticks": {"ticks": position.tolist()}} if ticks else {}),
        },
    )

    kind = str(average["kind"])
    steps_of_kind = count(len(steps), "step") + (f" ({kind})" if kind not in ("", "step") else "")
    notes = []
    if in_groups_of > 1:
        notes.append(
            f"Each of the {len(columns['x'])} columns is the average of {in_groups_of} steps in a row; "
            "the thin line above it is the longest of them."
        )
    if mean is not None:
        of_all = "average of all hosts, not of the slowest alone" if of_hosts > 1 else "average"
        notes.append(f"Dashed: the {of_all}, {ms(mean)}.")
    if left_out.any():
        notes.append(
            f"{'Faint' if as_bars else 'Left out'}: {left_out.sum():,} of {count(len(steps), 'step')}, not in averages."
        )
    if above.any():
        notes.append(f"Above the axis: {_list_steps(number[above], total[above])}.")
    if labels:
        notes.append("The steps stand side by side: their numbers have gaps or repeat.")
    alt = (
        f"Step time of {steps_of_kind}, one beside the other: from {ms(total.min())} to {ms(total.max())}; "
        f"split into {', '.join(CATEGORY_LABELS[c] for c in shown)}."
    )
    item = {
        "kind": "figure",
        "title": f"Step time: {steps_of_kind}",
        "figure": figure,
        "alt": alt,
        "trace": {"step_kind": kind},
    }
    return {**item, "note": " ".join(notes)} if notes else item


@cache
def _chart(
    shown: tuple[str, ...], columns: tuple[str, ...], areas: tuple[str, ...], *, digits: int, narrow: bool, ticks: bool
) -> Template:
    """Return an empty chart, of bars or (with columns for them) of areas, whose data sources have these columns."""
    p = spec.plot(260, (0, 1), (0, 1), x_label="Step", y_label="Time (ms)")
    p.x_range.name, p.y_range.name = "ends", "top"
    p.xgrid.visible = False
    p.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    p.xaxis.formatter = NumeralTickFormatter(format="0")
    p.xaxis[0].name = "x_axis"
    if ticks:
        p.xaxis.ticker = FixedTicker(ticks=[], name="ticks")
    else:
        p.xaxis.ticker.min_interval = 1
    source = ColumnDataSource({name: [] for name in columns}, name="steps")
    if areas:
        _draw_areas(p, ColumnDataSource({name: [] for name in areas}, name="areas"), shown)
    else:
        # Where bars are narrow, gaps between them would only blur the colours.
        _draw_bars(p, source, shown, width=1.0 if narrow else 0.85)
    p.add_layout(Span(location=0, dimension="width", line_color=_LINE, line_dash="dashed", line_width=1, name="mean"))
    _draw_above(p)
    _chart_hover(p, source, shown, digits)
    return Template(p)


def _columns(
    steps: pd.DataFrame,
    position: NDArray[np.float64],
    left_out: NDArray[np.bool_],
    shown: list[str],
    *,
    several: bool,
    several_hosts: bool,
) -> dict[str, Any]:
    """Return the chart's data: a row a step."""
    number = steps["step"].to_numpy(np.int64)
    data: dict[str, Any] = {
        "x": position,
        "width": np.ones(len(steps), np.float32),
        "step": number.astype(np.int32) if np.abs(number).max() < 2**31 else [str(n) for n in number],
        "total": steps["duration_ms"].to_numpy(np.float32),
        "alpha": np.where(left_out, _PALE, 1.0).astype(np.float32),
        "start": steps["start_ms"].to_numpy(np.float32),
        **{c: steps[f"{c}_ms"].to_numpy(np.float32) for c in shown},
    }
    if left_out.any():
        reasons = (_reasons_of(flags) if out else "no" for flags, out in zip(steps["flags"], left_out, strict=True))
        data["left_out"] = list(reasons)
    if several_hosts:
        data["host"] = steps["host"].tolist()
    if several:
        data["device"] = [f"{h} {d}" for h, d in zip(steps["host"], steps["device"], strict=True)]
    return data


def _grouped(
    steps: pd.DataFrame, position: NDArray[np.float64], left_out: NDArray[np.bool_], shown: list[str], size: int
) -> dict[str, Any]:
    """Return the chart's data with a row for so many steps in a row: their average, and the longest of them.

    Steps that are left out of averages are left out of these too, unless a group has no others.
    """
    group = np.arange(len(steps)) // size
    only_left_out = np.bincount(group, ~left_out)[group] == 0
    used = ~left_out | only_left_out
    averaged = steps[["duration_ms", *(f"{c}_ms" for c in shown)]][used].groupby(group[used]).mean()
    number = steps["step"].to_numpy(np.int64)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    last = np.append(first[1:], len(steps)) - 1
    return {
        "x": (position[first] + position[last]) / 2,
        "width": (position[last] - position[first] + 1).astype(np.float32),
        "step": [f"{a} to {b}" for a, b in zip(number[first].tolist(), number[last].tolist(), strict=True)],
        "total": averaged["duration_ms"].to_numpy(np.float32),
        "longest": steps["duration_ms"].groupby(group).max().to_numpy(np.float32),
        "start": steps["start_ms"].to_numpy(np.float32)[first],
        **{c: averaged[f"{c}_ms"].to_numpy(np.float32) for c in shown},
    }


def _areas(columns: dict[str, Any], shown: list[str]) -> dict[str, Any]:
    """Return the corners of areas: one in steps goes from each left edge to the next, so the last right edge is a point too."""
    half = columns["width"] / 2
    edges: dict[str, Any] = {"left": np.append(columns["x"] - half, columns["x"][-1] + half[-1])}
    for name in [*(["longest"] if "longest" in columns else []), *shown]:
        edges[name] = np.append(columns[name], columns[name][-1:])
    return edges


def _draw_bars(p: Plot, source: ColumnDataSource, shown: tuple[str, ...], width: float) -> None:
    for i, category in enumerate(shown):
        bar = VBar(
            x="x", width=width, bottom=stack(*shown[:i]), top=stack(*shown[: i + 1]),
            fill_color=CATEGORY_COLORS[category], fill_alpha="alpha", line_color=None, hatch_pattern=_hatch(category), **_HATCH_STYLE,
        )  # fmt: skip
        spec.draw(p, source, bar, name=category)


def _draw_areas(p: Plot, points: ColumnDataSource, shown: tuple[str, ...]) -> None:
    """Draw one area a category: side by side, bars of about a pixel come out pale."""
    for i, category in enumerate(shown):
        area = VAreaStep(
            x="left", y1=stack(*shown[:i]), y2=stack(*shown[: i + 1]), step_mode="after",
            fill_color=CATEGORY_COLORS[category], hatch_pattern=_hatch(category), **_HATCH_STYLE,
        )  # fmt: skip
        spec.draw(p, points, area, name=category)
    if "longest" in points.data:
        spec.draw(p, points, Step(x="left", y="longest", mode="after", line_color=_LINE, line_width=1))


def _hatch(category: str) -> str:
    return _HATCH if category in HATCHED_CATEGORIES else " "


def _positions(number: NDArray[np.int64], *, gaps: bool) -> tuple[NDArray[np.float64], dict[int | float | str, str]]:
    """Place of each step on the x axis: its number, unless numbers repeat or leave (wide) gaps; then the labels of the places."""
    # Larger numbers have no place of their own in the four bytes that a place gets.
    distinct = len(np.unique(number)) == len(number) and np.abs(number).max(initial=0) < 2**23
    if distinct and np.ptp(number) < (2 if gaps else 1) * len(number):
        return number.astype(float), {}
    return np.arange(len(number), dtype=float), {i: str(n) for i, n in enumerate(number.tolist())}


def _ends(position: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the x axis: at the outer bars, and beyond them where there are so few that they would be very wide."""
    first, last = float(position.min()), float(position.max())
    room = max(0.5, 0.005 * (last - first), (_FEWEST_WIDTHS - (last - first)) / 2)
    return first - room, last + room


def _top(total: NDArray[np.float64], left_out: NDArray[np.bool_]) -> tuple[float, NDArray[np.bool_]]:
    """End of the y axis, and which steps reach above it: few, and far longer than the others (a first, traced step)."""
    nothing = np.zeros(len(total), bool)
    highest = float(total.max(initial=0.0))
    usual = total[~left_out] if (~left_out).any() else total
    median = float(np.median(usual)) if len(usual) else 0.0
    outlying = total > 4 * median
    few = outlying.sum() <= max(2, _MOST_CUT_SHARE * len(total))
    if median > 0 and few and (~outlying).any():
        rest = float(total[~outlying].max())
        if highest > 2 * rest:
            return 1.25 * rest, outlying
    return 1.05 * highest or 1.0, nothing


def _draw_above(p: Plot) -> None:
    """Draw marks of what reaches above the axis, with its time at either side."""
    mark = Scatter(x="x", y="y", marker="triangle", size=8, fill_color="#c8202b", line_color="white")
    spec.draw(p, ColumnDataSource({"x": [], "y": []}, name="above"), mark)
    for name, offset, align in (("times_right", 8, "left"), ("times_left", -8, "right")):
        words = Text(
            x="x", y="y", text="words", x_offset=offset, text_align=align, text_baseline="middle", text_font_size="11px"
        )
        spec.draw(p, ColumnDataSource({"x": [], "y": [], "words": []}, name=name), words)


def _above(
    position: NDArray[np.float64], total: NDArray[np.float64], top: float, start: float, end: float
) -> dict[str, dict[str, Any]]:
    """Return the data of the marks, and of the times of those that have room for it."""
    room = _ROOM_FOR_TIME * (end - start)
    named, taken = [], -np.inf
    for i, x in enumerate(position.tolist()):
        if x - taken >= room:
            named.append(i)
            taken = x
    # A word ends at the edge of the chart, or begins at its own mark.
    to_left = [i for i in named if position[i] > end - room and position[i] >= (start + end) / 2]
    sides = {"times_right": [i for i in named if i not in to_left], "times_left": to_left}
    return {
        "above": {"x": position, "y": np.full(len(position), 0.96 * top)},
        **{
            name: {
                "x": position[side],
                "y": np.full(len(side), 0.96 * top),
                "words": [ms(time) for time in total[side].tolist()],
            }
            for name, side in sides.items()
        },
    }


def _list_steps(number: NDArray[np.int64], total: NDArray[np.float64]) -> str:
    most = _MOST_LISTED_ABOVE
    named = ", ".join(f"step {n} ({ms(t)})" for n, t in list(zip(number.tolist(), total.tolist(), strict=True))[:most])
    return named + (f" and {len(number) - most:,} more" if len(number) > most else "")


def _hover_digits(median_ms: float) -> int:
    return int(np.clip(2 - np.floor(np.log10(median_ms)), 0, 4)) if median_ms > 0 else 3


def _chart_hover(p: Plot, source: ColumnDataSource, shown: tuple[str, ...], digits: int) -> None:
    """Tell all categories of the step under the pointer, wherever in its column that is."""
    number = "{0,0." + "0" * digits + "}" if digits else "{0,0}"
    whole = VBar(x="x", top="total", width="width", fill_color=None, line_color=None)
    lit = VBar(x="x", top="total", width="width", fill_color=_LINE, fill_alpha=0.3, line_color=None)
    columns = spec.draw(p, source, whole, hover_glyph=lit)
    tooltips = [("Step", "@step"), ("Time", f"@total{number} ms")]
    if "longest" in source.data:
        tooltips = [("Steps", "@step"), ("Average", f"@total{number} ms"), ("Longest", f"@longest{number} ms")]
    tooltips.append(("Starts at", "@start{0,0.0} ms"))
    tooltips += [(CATEGORY_LABELS[c], f"@{c}{number} ms") for c in shown]
    if "left_out" in source.data:
        tooltips.append(("Left out", "@left_out"))
    if "device" in source.data:
        tooltips.append(("Device", "@device"))
    spec.hover(p, [columns], tooltips, mode="vline", point_policy="follow_mouse")


# ---- top ops ------------------------------------------------------------------------------------------------


def _top_ops(payload: spec.Tables, top_ops: pd.DataFrame, *, several_hosts: bool) -> spec.Item:
    if top_ops.empty:
        return spec.text(
            "No TensorFlow op was recorded. Was work done while the profiler ran, and is the host level (--host-level) at least 2?",
            "info",
        )
    ranked = top_ops.reset_index(drop=True)
    ranked.insert(0, "rank", np.arange(1, len(ranked) + 1))
    payload.add_table("top_ops", ranked)
    # As wide as its texts ask for: what is left is for the ops' names.
    category_px = int(np.clip(8 * ranked["category"].astype(str).str.len().max() + 18, 120, 320))
    side = "device" if (ranked["host_or_device"] == "Device").any() else "host"
    of_all = f"In percent of the self time of all ops on the {side}"
    so_far = "This op and those above it, in percent of the same"
    return spec.table(
        f"Top {count(len(ranked), 'TensorFlow operation')} on the {side}{'s of all hosts' if several_hosts else ''}",
        "top_ops",
        [
            spec.column("rank", "Rank", "number", digits=0, width=56),
            spec.column("self_time_pct", "Self time", "percent", digits=1, width=92, hint=of_all),
            spec.column("cumulative_pct", "Cumulative", "number", unit="%", digits=1, width=116, hint=so_far),
            spec.column("category", "Category", "text", min_width=110, max_width=category_px),
            spec.column("name", "Operation", "text", min_width=220, trace={"side": side}),
            spec.column("self_time_us", "Self time", "number", digits=1, unit="µs", width=104),
            spec.column("occurrences", "Occurrences", "number", digits=0, width=112),
        ],
        sort=("self_time_us", "desc"),
        csv="top_ops.csv",
    )
