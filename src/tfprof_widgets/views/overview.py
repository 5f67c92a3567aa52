"""The Overview tab: where the time of a step goes, step by step and on average, and what takes most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import ColumnDataSource, NumeralTickFormatter, Range1d, Span

from ..analysis.steps import CATEGORIES, CATEGORY_LABELS
from . import spec
from .colors import CATEGORY_COLORS, HATCHED_CATEGORIES, text_color_on
from .spec import count, fact, ms, percent

if TYPE_CHECKING:
    import pandas as pd
    from bokeh.plotting import figure as Figure
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
}
# Each device's chart holds its own data; beyond this many devices only the slowest of each step is drawn.
_MAX_DEVICE_CHARTS = 16
_PALE = 0.35
# A rough width of a letter of a bar's label, and of the narrowest bar that the report is made for.
_LETTER_PX, _NARROW_BAR_PX = 7, 560


def overview_tab(payload: spec.Tables, summary: Overview, steps: pd.DataFrame) -> spec.Tab:
    """Return the Overview tab.

    Parameters
    ----------
    payload : Payload
        Gets the table ``top_ops``.
    summary : Overview
        Averages, top ops, environment.
    steps : DataFrame
        ``report.steps``: one row a step and device.
    """
    items = [spec.text(summary.statement)] if summary.statement else []
    items += _step_items(summary, steps)
    environment = spec.facts("Run environment", [fact(label, value) for label, value in summary.environment.items()])
    items.append(spec.row([_top_ops(payload, summary.top_ops), environment], weights=[2, 1]))
    return spec.tab("overview", "Overview", items)


# ---- steps --------------------------------------------------------------------------------------------------


def _step_items(summary: Overview, steps: pd.DataFrame) -> list[spec.Item]:
    notes = [spec.text(" ".join(summary.notes))] if summary.notes else []
    if steps.empty:
        how = (
            "No step was found in this capture, so there is no step time to show. Mark each step of your own loop: "
            "with tf.profiler.experimental.Trace('train', step_num=i, _r=1): …"
        )
        return notes or [spec.text(how, "info")]
    cases = {
        str(average["kind"]): (
            f"{average['kind'] or 'steps'} ({int(average['steps'] + average['left_out']):,})",
            _kind_items(average, steps[steps["kind"] == average["kind"]], number),
        )
        for number, (_, average) in enumerate(summary.step_time.iterrows())
    }
    if len(cases) == 1:
        return next(iter(cases.values()))[1] + notes
    return [spec.switch("kind", "Kind of step", cases), *notes]


def _kind_items(average: pd.Series[Any], steps: pd.DataFrame, number: int) -> list[spec.Item]:
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
    return items + _charts(average, steps, number)


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
    source = ColumnDataSource(
        {
            "left": ends - [time for _, time, _ in parts],
            "right": ends,
            "middle": ends - [time / 2 for _, time, _ in parts],
            "category": labels,
            "shown": [_bar_label(c, share) for c, _, share in parts],
            "time": [ms(time, like=mean) for _, time, _ in parts],
            "share": [percent(share) for _, _, share in parts],
            "color": [CATEGORY_COLORS[c] for c, _, _ in parts],
            "text_color": [text_color_on(CATEGORY_COLORS[c]) for c, _, _ in parts],
            "hatch": [_HATCH if c in HATCHED_CATEGORIES else " " for c, _, _ in parts],
        }
    )
    p = spec.plot(56, zoom=False, x_range=Range1d(0, float(ends[-1]) if len(ends) else 1), y_range=Range1d(-0.5, 0.5))
    p.axis.visible = False
    p.grid.visible = False
    p.outline_line_color = None
    p.min_border_left = p.min_border_right = 0
    bars = p.hbar(
        y=0, height=0.9, left="left", right="right", source=source,
        fill_color="color", line_color="white", line_width=1, hatch_pattern="hatch", **_HATCH_STYLE,
    )  # fmt: skip
    p.text(
        x="middle", y=0, text="shown", source=source, text_color="text_color", text_font_size="12px",
        text_align="center", text_baseline="middle",
    )  # fmt: skip
    spec.hover(
        p, [bars], [("Category", "@category"), ("Time", "@time"), ("Share", "@share")], point_policy="follow_mouse"
    )
    spoken = ", ".join(f"{label} {percent(share)}" for label, (_, _, share) in zip(labels, parts, strict=True))
    return spec.chart(f"Average step time: {ms(mean)}", p, f"Breakdown of the average step: {spoken}.")


def _bar_label(category: str, share: float) -> str:
    """As much of a part's name and share as fits into it even in a narrow window."""
    short = "All others" if category == "other" else CATEGORY_LABELS[category]
    room = share / 100 * _NARROW_BAR_PX / _LETTER_PX - 1
    wordings = (f"{short} {percent(share)}", percent(share), f"{share:.0f} %")
    return next((words for words in wordings if len(words) <= room), "")


def _breakdown_facts(average: pd.Series[Any]) -> spec.Item:
    parts = _breakdown(average)
    mean = float(average["mean_ms"])
    rows = [
        fact(
            CATEGORY_LABELS[c],
            f"{ms(time, like=mean)} · {percent(share)}",
            color=CATEGORY_COLORS[c],
            hatch=c in HATCHED_CATEGORIES,
        )
        for c, time, share in parts
    ]
    seen = {c for c, _, _ in parts}
    unseen = [CATEGORY_LABELS[c] for c in CATEGORIES if c not in seen]
    if unseen:
        rows.append(fact(", ".join(unseen), "0"))
    return spec.facts("Where the time goes", rows)


def _statistics(average: pd.Series[Any], steps: pd.DataFrame) -> spec.Item:
    averaged, left_out = int(average["steps"]), int(average["left_out"])
    mean = float(average["mean_ms"])
    named = {"mean": "Average", "std": "Standard deviation", "min": "Minimum", "median": "Median", "max": "Maximum"}
    rows = [
        *(fact(label, ms(float(average[f"{name}_ms"]), like=mean)) for name, label in named.items()),
        fact("Steps averaged", f"{averaged:,} of {averaged + left_out:,}"),
    ]
    if left_out:
        rows.append(
            fact(
                "Left out", f"{left_out:,} ({_why_left_out(steps)})", hint="Steps that say little about the usual ones"
            )
        )
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


def _charts(average: pd.Series[Any], steps: pd.DataFrame, number: int) -> list[spec.Item]:
    """Return a chart; where there are several devices, one for the slowest of each step and one for each of them."""
    slowest = steps.loc[steps.groupby("step", sort=True)["duration_ms"].idxmax()]
    devices = list(steps.groupby(["host", "device"], sort=False))
    if len(devices) == 1:
        return [_step_chart(average, slowest)]
    title = "Slowest device of each step"
    if len(devices) > _MAX_DEVICE_CHARTS:
        words = f"{len(devices)} devices took part; each step is drawn as its slowest device saw it. report.steps has them all."
        return [_step_chart(average, slowest, several=True), spec.text(words)]
    several_hosts = len(set(steps["host"])) > 1
    cases = {"slowest": (title, [_step_chart(average, slowest, several=True)])}
    for i, ((host, device), of_device) in enumerate(devices):
        label = f"{host} {device}" if several_hosts else str(device)
        cases[f"device-{i}"] = (label, [_step_chart(average, of_device.sort_values("step"), mean_line=False)])
    return [spec.switch(f"device-{number}", "Device", cases)]


def _step_chart(
    average: pd.Series[Any], steps: pd.DataFrame, *, several: bool = False, mean_line: bool = True
) -> spec.Item:
    total = steps["duration_ms"].to_numpy(float)
    number = steps["step"].to_numpy(np.int64)
    left_out = _is_left_out(steps)
    shown = [c for c in CATEGORIES if (steps[f"{c}_ms"] > 0).any()]
    position, labels = _positions(number)
    top, above = _top(total, left_out)

    data: dict[str, Any] = {
        "x": position,
        "step": number.astype(np.int32) if len(number) and np.abs(number).max() < 2**31 else [str(n) for n in number],
        "total": total.astype(np.float32),
        "alpha": np.where(left_out, _PALE, 1.0).astype(np.float32),
        "start": steps["start_ms"].to_numpy(np.float32),
        **{c: steps[f"{c}_ms"].to_numpy(np.float32) for c in shown},
    }
    if left_out.any():
        data["left_out"] = [
            _reasons_of(flags) if out else "no" for flags, out in zip(steps["flags"], left_out, strict=True)
        ]
    if several:
        data["device"] = [f"{h} {d}" for h, d in zip(steps["host"], steps["device"], strict=True)]
    source = ColumnDataSource(data)
    few = len(steps) <= 100
    p = spec.plot(
        260,
        x_range=Range1d(*_ends(position), bounds="auto"),
        y_range=Range1d(0, top),
        x_axis_label="Step",
        y_axis_label="Time (ms)",
    )
    p.xgrid.visible = False
    p.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    p.xaxis.formatter = NumeralTickFormatter(format="0")
    p.xaxis.ticker.min_interval = 1
    if labels:
        p.xaxis.major_label_overrides = labels
    # Bars of many steps touch: gaps narrower than a pixel would only blur the colours.
    p.vbar_stack(
        shown, x="x", width=0.85 if few else 1.0, source=source,
        fill_color=[CATEGORY_COLORS[c] for c in shown], fill_alpha="alpha", line_color=None,
        hatch_pattern=[_HATCH if c in HATCHED_CATEGORIES else " " for c in shown], **_HATCH_STYLE,
    )  # fmt: skip
    if mean_line and average["steps"] > 0:
        p.add_layout(
            Span(
                location=float(average["mean_ms"]),
                dimension="width",
                line_color="#808890",
                line_dash="dashed",
                line_width=1,
            )
        )
    _mark_above(p, position[above], total[above], top)
    _chart_hover(p, source, shown, total)

    kind = str(average["kind"])
    notes = []
    if mean_line and average["steps"] > 0:
        notes.append(f"Dashed: the average, {ms(float(average['mean_ms']))}.")
    if left_out.any():
        notes.append(f"Pale: {left_out.sum():,} of {len(steps):,} steps, left out of averages.")
    if above.any():
        notes.append(f"Above the axis: {_list_steps(number[above], total[above])}.")
    if labels:
        notes.append("Steps are drawn in their order, side by side; their numbers have gaps or repeat.")
    alt = (
        f"Time of {count(len(steps), 'step')} of kind {kind}, one bar each: from {ms(total.min())} to {ms(total.max())}; "
        f"split into {', '.join(CATEGORY_LABELS[c] for c in shown)}."
    )
    return spec.chart(f"Step time: {count(len(steps), f'{kind} step'.strip())}", p, alt, " ".join(notes))


def _positions(number: NDArray[np.int64]) -> tuple[NDArray[np.float64], dict[int | float | str, str]]:
    """Place of each step on the x axis: its number, unless numbers repeat or lie far apart; then the labels of the places."""
    distinct = len(np.unique(number)) == len(number)
    if not len(number) or (distinct and np.ptp(number) < 2 * len(number)):
        return number.astype(float), {}
    return np.arange(len(number), dtype=float), {i: str(n) for i, n in enumerate(number.tolist())}


def _ends(position: NDArray[np.float64]) -> tuple[float, float]:
    return (float(position.min()) - 0.5, float(position.max()) + 0.5) if len(position) else (-0.5, 0.5)


def _top(total: NDArray[np.float64], left_out: NDArray[np.bool_]) -> tuple[float, NDArray[np.bool_]]:
    """End of the y axis, and which steps reach above it: few, and far longer than the others (a first, traced step)."""
    nothing = np.zeros(len(total), bool)
    highest = float(total.max(initial=0.0))
    usual = total[~left_out] if (~left_out).any() else total
    median = float(np.median(usual)) if len(usual) else 0.0
    outlying = total > 4 * median
    few = outlying.sum() <= max(2, len(total) // 20)
    if median > 0 and few and (~outlying).any():
        rest = float(total[~outlying].max())
        if highest > 2 * rest:
            return 1.25 * rest, outlying
    return 1.05 * highest or 1.0, nothing


def _mark_above(p: Figure, position: NDArray[np.float64], total: NDArray[np.float64], top: float) -> None:
    if not len(position):
        return
    p.scatter(position, 0.965 * top, marker="triangle", size=8, fill_color="#c8202b", line_color="white")
    if len(position) <= 3:
        p.text(
            position, 0.965 * top, [ms(t) for t in total], text_font_size="11px", text_baseline="middle",
            x_offset=8, background_fill_color="white", background_fill_alpha=0,
        )  # fmt: skip


def _list_steps(number: NDArray[np.int64], total: NDArray[np.float64], most: int = 5) -> str:
    named = ", ".join(f"step {n} ({ms(t)})" for n, t in list(zip(number.tolist(), total.tolist(), strict=True))[:most])
    return named + (f" and {len(number) - most:,} more" if len(number) > most else "")


def _chart_hover(p: Figure, source: ColumnDataSource, shown: list[str], total: NDArray[np.float64]) -> None:
    """Tell all categories of the step under the pointer, wherever in its column that is."""
    median = float(np.median(total)) if len(total) else 0.0
    digits = int(np.clip(2 - np.floor(np.log10(median)), 0, 4)) if median > 0 else 3
    number = "{0,0." + "0" * digits + "}" if digits else "{0,0}"
    whole = p.vbar(
        x="x", top="total", width=1.0, source=source, fill_color="#808890", fill_alpha=0.0, line_color=None,
        hover_fill_color="#808890", hover_fill_alpha=0.25, hover_line_color=None,
    )  # fmt: skip
    tooltips = [("Step", "@step"), ("Time", f"@total{number} ms"), ("Starts at", "@start{0,0.0} ms")]
    tooltips += [(CATEGORY_LABELS[c], f"@{c}{number} ms") for c in shown]
    if "left_out" in source.data:
        tooltips.append(("Left out", "@left_out"))
    if "device" in source.data:
        tooltips.append(("Device", "@device"))
    spec.hover(p, [whole], tooltips, mode="vline", point_policy="follow_mouse")


# ---- top ops ------------------------------------------------------------------------------------------------


def _top_ops(payload: spec.Tables, top_ops: pd.DataFrame) -> spec.Item:
    if top_ops.empty:
        return spec.text(
            "No TensorFlow op was recorded. Was work done while the profiler ran, and is the host level (--host-level) at least 2?",
            "info",
        )
    ranked = top_ops.reset_index(drop=True)
    ranked.insert(0, "rank", np.arange(1, len(ranked) + 1))
    payload.add_table("top_ops", ranked)
    side = "device" if (ranked["host_or_device"] == "Device").any() else "host"
    of_all = f"In percent of the self time of all ops on the {side}"
    so_far = "This op and those above it, in percent of the same"
    return spec.table(
        f"Top {len(ranked)} TensorFlow operations on the {side}",
        "top_ops",
        [
            spec.column("rank", "Rank", "number", digits=0, width=64),
            spec.column("self_time_pct", "Self time", "percent", digits=1, width=92, hint=of_all),
            spec.column("cumulative_pct", "Cumulative", "number", unit="%", digits=1, width=108, hint=so_far),
            spec.column("category", "Category", "text"),
            spec.column("name", "Operation", "text"),
            spec.column("self_time_us", "Self time", "number", digits=1, unit="µs", width=104),
            spec.column("occurrences", "Occurrences", "number", digits=0, width=112),
        ],
        sort=("self_time_us", "desc"),
        csv="top_ops.csv",
    )
