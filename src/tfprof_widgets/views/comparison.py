"""A comparison's tabs: the typical steps of two runs side by side, and tables of what was won and lost."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import ColumnDataSource, HBar, NumeralTickFormatter, Quad, Span, Text, VAreaStep
from bokeh.models import Step as StepLine

from ..analysis.op_stats import IDLE
from ..analysis.steps import CATEGORIES, CATEGORY_LABELS
from . import spec
from .colors import CATEGORY_COLORS, HATCHED_CATEGORIES, text_color_on
from .kernel_labels import kernel_labels
from .spec import count, fact, ms, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

#: Of the run before and the one after, wherever both are drawn: no category of a step has them.
BEFORE_COLOR, AFTER_COLOR = "#9a6b3f", "#c43c8c"
_LINE = "#808890"
_HATCH = "right_diagonal_line"
_HATCH_STYLE = {"hatch_color": "white", "hatch_alpha": 0.5, "hatch_scale": 9, "hatch_weight": 1}
# The histogram: so many bins at most, between these percentiles of all steps.
_MOST_BINS, _SHOWN_PCT = 48, 98.0
# Fewer steps have no distribution to look at.
_FEWEST_DRAWN = 3
_LETTER_PX, _NARROW_BAR_PX = 7, 560
_MATCHED = (
    "How the counterpart was found. name: the same name and type; another type: the same name; renamed: the same but for numbers of layers "
    "and the calls around it; position: the same type at the same place; appeared, vanished: there is none"
)
_RATIO = "After over before, of a step: below 1 is faster"


# ---- steps ------------------------------------------------------------------------------------------------------


def steps_tab(
    payload: spec.Tables,
    steps: pd.DataFrame,
    overview: pd.DataFrame,
    times_ms: tuple[Array, Array],
    names: tuple[str, str],
    runs: pd.DataFrame | None = None,
    cautions: Sequence[str] = (),
) -> spec.Tab:
    """Return the tab of steps.

    Parameters
    ----------
    payload : Payload
        Gets the tables ``compared_overview`` and, of more than two runs, ``compared_runs``.
    steps, overview, runs : DataFrame
        Those of the comparison; ``runs`` if there are more than two.
    times_ms : (float array (N), float array (M))
        Steady steps of the compared kind, before and after.
    names : (str, str)
        What the runs are called.
    cautions : sequence of str
        What is not alike.
    """
    items: list[spec.Item] = []
    if cautions:
        items.append(
            spec.text(f"The runs are not alike. {'. '.join(c[:1].upper() + c[1:] for c in cautions)}.", "warning")
        )
    kinds = list(dict.fromkeys(steps["kind"]))
    for number, kind in enumerate(kinds):
        rows = steps[steps["kind"] == kind].set_index("category")
        shown = _kind_items(rows, times_ms if number == 0 else None)
        if len(kinds) > 1:
            items.append(spec.section(f"Steps: {kind}"))
        items += shown
    if not kinds:
        why = (
            "No step was found in either run, so the runs are compared as a whole. Mark each step of your own loop: "
            "with tfprof.step(i): …"
        )
        items.append(spec.text(why, "info"))
    if runs is not None:
        payload.add_table("compared_runs", runs)
        items.append(_runs_table())
    # Counts are whole numbers, the others have digits: each with those that it has.
    payload.add_table("compared_overview", _rounded(overview))
    items.append(_overview_table())
    named = [fact("Before", names[0], color=BEFORE_COLOR), fact("After", names[1], color=AFTER_COLOR)]
    items.append(spec.facts("Runs", named))
    return spec.tab("steps", "Steps", items)


def _rounded(overview: pd.DataFrame) -> pd.DataFrame:
    columns = ["before", "after", "difference"]
    # Those of a row have the same digits: as many as its larger figure needs, none where things are counted.
    largest = overview[["before", "after"]].abs().max(axis=1)
    digits = np.select([overview["unit"] == "", largest >= 1000, largest >= 100], [0, 0, 1], 2)
    return overview.assign(**{name: overview[name].round(2) + 0.0 for name in columns}, digits=digits)  # -0.0 is 0


def _kind_items(rows: pd.DataFrame, times_ms: tuple[Array, Array] | None) -> list[spec.Item]:
    total = rows.loc["duration"]
    items = [_breakdown(rows), spec.row([_legend(rows), _typical(total)])]
    if times_ms is not None and min(len(side) for side in times_ms) >= _FEWEST_DRAWN:
        items.append(_distribution(*times_ms, total))
    return items


def _breakdown(rows: pd.DataFrame) -> spec.Item:
    """Two bars on one scale: where the time of a typical step goes, before and after."""
    total = rows.loc["duration"]
    longest = float(np.nanmax([total["before_ms"], total["after_ms"]]))
    parts: list[dict[str, Any]] = []
    for run, y in (("before", 1), ("after", 0)):
        times = rows[f"{run}_ms"].to_dict()
        end = 0.0
        for category in CATEGORIES:
            if not times[category] > 0:
                continue
            time = float(times[category])
            color = CATEGORY_COLORS[category]
            part = {
                "run": run, "y": y, "left": end, "right": end + time, "middle": end + time / 2,
                "category": CATEGORY_LABELS[category], "words": _bar_words(category, time, longest),
                "time": ms(time, like=longest), "share": percent(100 * time / times["duration"]),
                "color": color, "text_color": text_color_on(color), "hatch": _HATCH if category in HATCHED_CATEGORIES else " ",
            }  # fmt: skip
            parts.append(part)
            end += time
    data = {key: [part[key] for part in parts] for key in parts[0]} if parts else {}
    source = ColumnDataSource(data)
    p = spec.plot(96, (-0.09 * longest, longest), (-0.5, 1.5), axes=False)
    bar = HBar(
        y="y", height=0.84, left="left", right="right", fill_color="color", line_color="white", line_width=1,
        hatch_pattern="hatch", **_HATCH_STYLE,
    )  # fmt: skip
    bars = spec.draw(p, source, bar)
    # Where no label fits, there is no box for one either.
    labels = ColumnDataSource({key: [part[key] for part in parts if part["words"]] for key in data})
    label_glyph = Text(
        x="middle", y="y", text="words", text_color="text_color", text_font_size="12px", text_align="center",
        text_baseline="middle", background_fill_color="color", padding=2,
    )  # fmt: skip
    spec.draw(p, labels, label_glyph)
    spec.caption(p, [-0.008 * longest] * 2, [1, 0], ["before", "after"], text_align="right", text_font_size="12px")
    tooltips = [("Run", "@run"), ("Category", "@category"), ("Time", "@time"), ("Share", "@share")]
    spec.hover(p, [bars], tooltips, point_policy="follow_mouse")
    spoken = "; ".join(
        f"{CATEGORY_LABELS[c]} {_arrow(rows.loc[c], longest)}" for c in CATEGORIES if _took_time(rows.loc[c])
    )
    title = f"Typical step: {_arrow(total)}"  # as the sentence above has it
    return spec.chart(title, p, f"Breakdown of the typical step before and after: {spoken}.")


def _bar_words(category: str, time_ms: float, longest_ms: float) -> str:
    """As much of a part's name and time as fits into it even in a narrow window."""
    room = time_ms / longest_ms * _NARROW_BAR_PX / _LETTER_PX - 1
    time = ms(time_ms, like=longest_ms)
    return next((words for words in (f"{_short(category)} {time}", time) if len(words) <= room), "")


def _short(category: str) -> str:
    return "All others" if category == "other" else CATEGORY_LABELS[category]


def _took_time(row: pd.Series[Any]) -> bool:
    return bool(row["before_ms"] > 0 or row["after_ms"] > 0)


def _arrow(row: pd.Series[Any], like: float | None = None) -> str:
    before, after = (ms(float(row[f"{run}_ms"]), like=like) for run in ("before", "after"))
    unit = f" {after.rsplit(' ', 1)[-1]}"
    if "–" in (before, after):
        return f"{after} (only after)" if before == "–" else f"{before} (only before)"
    return f"{before.removesuffix(unit)} → {after}"


def _signed(difference_ms: float, like: float) -> str:
    if difference_ms != difference_ms:
        return "–"
    size = ms(abs(difference_ms), like=like)
    sign = "+" if difference_ms > 0 else "−" if difference_ms < 0 else "±"
    return size if size.startswith("<") else f"{sign}{size}"  # next to none is neither more nor less


def _legend(rows: pd.DataFrame) -> spec.Item:
    total = rows.loc["duration"]
    longest = float(np.nanmax([total["before_ms"], total["after_ms"]]))
    moved = rows["difference_ms"].abs().fillna(0).to_dict()
    shown = sorted((c for c in CATEGORIES if _took_time(rows.loc[c])), key=lambda c: -moved[c])
    facts = []
    for category in shown:
        row = rows.loc[category]
        difference = float(row["difference_ms"])
        # The unit stands before it: narrow windows have no room for another.
        change = f" ({_signed(difference, longest).rsplit(' ', 1)[0]})" if difference == difference else ""
        hint = CATEGORY_LABELS[category] if category == "other" else ""
        hatch = category in HATCHED_CATEGORIES
        words = _arrow(row, longest) + change
        facts.append(fact(_short(category), words, color=CATEGORY_COLORS[category], hatch=hatch, hint=hint))
    return spec.facts("Where the time goes, before → after", facts)


def _typical(total: pd.Series[Any]) -> spec.Item:
    rows = []
    for run, color in (("before", BEFORE_COLOR), ("after", AFTER_COLOR)):
        median = float(total[f"{run}_ms"])
        low, high = float(total[f"{run}_low_ms"]), float(total[f"{run}_high_ms"])
        words = ms(median)
        if low == low:
            words += f" ({_digits_of(low, median)} to {ms(high, like=median)})"
        rows.append(fact(run.capitalize(), words, color=color, hint="Median. In brackets: where it lies, at 95 %"))
    if total["ratio"] == total["ratio"]:
        words = f"{total['ratio']:.2f}"
        if total["ratio_low"] == total["ratio_low"]:
            words += f" ({total['ratio_low']:.2f} to {total['ratio_high']:.2f})"
        hint = (
            "After over before. In brackets: where the ratio lies, at 99 %, with the drift between runs; "
            "if 1 is in it, no difference is shown"
        )
        rows.append(fact("Ratio", words, hint=hint))
    if total["told"]:
        rows.append(fact("Verdict", str(total["told"])))
    return spec.facts("Median of the steps", rows)


def _digits_of(value: float, like: float) -> str:
    return ms(value, like=like).rsplit(" ", 1)[0]


def _distribution(before_ms: Array, after_ms: Array, total: pd.Series[Any]) -> spec.Item:
    """How long the steps of both runs took: shares of each run's steps by time."""
    every = np.concatenate([before_ms, after_ms])
    low, high = float(every.min()), float(np.percentile(every, _SHOWN_PCT))
    # A run of few odd steps must not push the others into one bin; beyond the end is said below.
    high = max(high, float(np.median(before_ms)) * 1.05, float(np.median(after_ms)) * 1.05, low * 1.01)
    bins = int(np.clip(np.sqrt(len(every)) * 2, 8, _MOST_BINS))
    edges = np.linspace(low, high, bins + 1)
    p = spec.plot(
        200, (float(edges[0]), float(edges[-1])), (0, 1), x_label="Time of a step (ms)", y_label="Share of steps (%)"
    )
    p.xgrid.visible = False
    p.yaxis.formatter = NumeralTickFormatter(format="0,0.[0]")
    p.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    top = 0.0
    for name, side, color in (("before", before_ms, BEFORE_COLOR), ("after", after_ms, AFTER_COLOR)):
        share = 100 * np.histogram(side, edges)[0] / len(side)
        top = max(top, float(share.max()))
        outline = ColumnDataSource({"x": edges, "share": np.append(share, share[-1])})
        spec.draw(p, outline, VAreaStep(x="x", y1=0, y2="share", step_mode="after", fill_color=color, fill_alpha=0.35))
        spec.draw(
            p,
            outline,
            StepLine(x="x", y="share", mode="after", line_color=color, line_width=3.5 if name == "before" else 1.2),
        )
        median = float(np.median(side))
        wide = 4 if name == "before" else 2  # both are seen where one lies on the other
        p.add_layout(Span(location=median, dimension="height", line_color=color, line_width=wide, line_dash="dashed"))
        columns = ColumnDataSource(
            {
                "bottom": np.zeros(bins), "top": share, "left": edges[:-1], "right": edges[1:],
                "run": [name] * bins, "from": [ms(x, like=high) for x in edges[:-1]], "to": [ms(x, like=high) for x in edges[1:]],
                "share": [percent(x) for x in share],
            }
        )  # fmt: skip
        hit = spec.draw(
            p, columns, Quad(left="left", right="right", bottom="bottom", top="top", fill_alpha=0, line_alpha=0)
        )
        spec.hover(
            p,
            [hit],
            [("Run", "@run"), ("Time", "@from to @to"), ("Share of its steps", "@share")],
            point_policy="follow_mouse",
        )
    p.y_range.end = 1.1 * top or 1.0
    notes = ["Dashed: the medians."]
    beyond = [int((side > high).sum()) for side in (before_ms, after_ms)]
    if any(beyond):
        notes.append(
            f"Longer, not shown: {beyond[0]:,} of {count(len(before_ms), 'step')} before, {beyond[1]:,} of {len(after_ms):,} after."
        )
    alt = (
        f"Distribution of the times of steps; median {_arrow(total, high)}, from {ms(low)} to {ms(float(every.max()))}."
    )
    return spec.chart("Times of the steady steps", p, alt, " ".join(notes))


def _runs_table() -> spec.Item:
    return spec.table(
        "All runs, each against the first",
        "compared_runs",
        [
            spec.column("run", "Run", "text", min_width=160),
            spec.column("steps", "Steady steps", "number", digits=0, width=96),
            spec.column("median_ms", "Median", "number", digits=2, unit="ms", width=96),
            spec.column(
                "low_ms", "From", "number", digits=2, unit="ms", width=88, hint="Interval of the median at 95 %"
            ),
            spec.column("high_ms", "To", "number", digits=2, unit="ms", width=88),
            spec.column("ratio", "Ratio", "number", digits=2, width=80, hint="To the first run: below 1 is faster"),
            spec.column("told", "Verdict", "text", width=160),
        ],
        csv="runs.csv",
    )


def _overview_table() -> spec.Item:
    return spec.table(
        "Figures of both runs",
        "compared_overview",
        [
            spec.column("measure", "Figure", "text", min_width=220),
            spec.column("unit", "Unit", "text", width=56),
            *(
                spec.column(name, name.capitalize(), "number", width=92, digits_field="digits")
                for name in ("before", "after", "difference")
            ),
            spec.column("ratio", "Ratio", "number", digits=2, width=64, hint="After over before"),
        ],
        csv="overview.csv",
    )


# ---- tables of what was won and lost ----------------------------------------------------------------------------


def ops_tab(payload: spec.Tables, ops: pd.DataFrame, steps: tuple[int, int]) -> spec.Tab:
    """Return the tab of ops: by type, and one by one.

    Parameters
    ----------
    payload : Payload
        Gets the tables ``compared_ops`` and ``compared_types``.
    ops : DataFrame
        The comparison's.
    steps : (int, int)
        What "per step" divides by; 1 and 1 without steps.
    """
    busy = ops[ops["type"] != IDLE]
    if busy.empty:
        return spec.tab("ops", "Ops", [spec.text("No TensorFlow op was recorded in either run.", "info")])
    payload.add_table("compared_ops", _shown(busy, "us"))
    sums = {f"{which}_us_per_step": "sum" for which in ("before", "after", "difference")}
    by_type = busy.groupby(["host_or_device", "type"], sort=False).agg(sums).reset_index()
    by_type["ratio_per_step"] = _ratio(by_type["before_us_per_step"], by_type["after_us_per_step"])
    order = np.argsort(-by_type["difference_us_per_step"].abs().to_numpy(), kind="stable")
    payload.add_table("compared_types", by_type.iloc[order])
    several = len(set(busy["host_or_device"])) > 1
    side = [spec.column("host_or_device", "Host/device", "text", width=92)] if several else []
    types = spec.table(
        "By type of op",
        "compared_types",
        [*side, spec.column("type", "Type", "text", min_width=180), *_times("us", "µs", steps, "Self time")],
        csv="op_types.csv",
    )
    columns = [
        *side,
        spec.column("type", "Type", "text", min_width=120),
        spec.column("name", "Operation", "text", min_width=220, trace={"side_field": "host_or_device"}),
        *_times("us", "µs", steps, "Self time"),
        spec.column("occurrences_before", "Times before", "number", digits=0, width=88),
        spec.column("occurrences_after", "Times after", "number", digits=0, width=88),
        spec.column("matched", "Matched by", "text", width=104, hint=_MATCHED),
        spec.column("name_before", "Name before", "text", min_width=180, hint="Where it is another"),
    ]
    table = spec.table("Operations", "compared_ops", columns, csv="ops.csv", filter=True)
    return spec.tab("ops", "Ops", [spec.text(_account(busy, "op", steps, "us", "self time")), types, table])


def kernels_tab(payload: spec.Tables, kernels: pd.DataFrame, steps: tuple[int, int]) -> spec.Tab:
    """Return the tab of GPU kernels; the payload gets ``compared_kernels``. ``steps`` as for `ops_tab`."""
    shown = _shown(kernels, "us")
    names = [kernels[field].astype(str) for field in ("kernel_name", "kernel_name_before")]
    labels = kernel_labels(dict.fromkeys(itertools.chain(*names)))
    for name in names:
        shown[str(name.name).replace("name", "label")] = name.map(labels).astype("category")
    payload.add_table("compared_kernels", shown)
    columns = [
        spec.column(
            "kernel_name",
            "Kernel",
            "text",
            min_width=220,
            trace={"side": "device", "op_field": "op_name"},
            label="kernel_label",
        ),
        spec.column("op_name", "Operation", "text", min_width=220, trace={"side": "device"}),
        *_times("us", "µs", steps, "Time"),
        spec.column("occurrences_before", "Times before", "number", digits=0, width=88),
        spec.column("occurrences_after", "Times after", "number", digits=0, width=88),
        spec.column("matched", "Matched by", "text", width=120, hint="Kernels match by name and op, else by op"),
        spec.column(
            "kernel_name_before",
            "Kernel before",
            "text",
            min_width=180,
            hint="Where it is another",
            label="kernel_label_before",
        ),
    ]
    table = spec.table("Kernels", "compared_kernels", columns, csv="kernels.csv", filter=True)
    return spec.tab("kernels", "GPU kernels", [spec.text(_account(kernels, "kernel", steps, "us", "time")), table])


def input_tab(payload: spec.Tables, input_ops: pd.DataFrame, steps: tuple[int, int]) -> spec.Tab:
    """Return the tab of the input pipeline; the payload gets ``compared_input``. ``steps`` as for `ops_tab`."""
    if input_ops.empty:
        words = "Neither run read, prepared or handed over input with tf.data while it was profiled."
        return spec.tab("input", "Input pipeline", [spec.text(words, "info")])
    payload.add_table("compared_input", _shown(input_ops, "ms"))
    columns = [
        spec.column("name", "Input op", "text", min_width=240, trace={"side": "host"}),
        spec.column("category", "Category", "text", width=130),
        *_times("ms", "ms", steps, "Self time"),
        spec.column("occurrences_before", "Times before", "number", digits=0, width=88),
        spec.column("occurrences_after", "Times after", "number", digits=0, width=88),
        spec.column("matched", "Matched by", "text", width=104, hint=_MATCHED),
        spec.column("name_before", "Name before", "text", min_width=180, hint="Where it is another"),
    ]
    words = _account(input_ops, "input op", steps, "ms", "self time")
    hint = (
        "Stages that run side by side with the training cost it nothing; what a step waits for is Input, under Steps."
    )
    table = spec.table("Input ops", "compared_input", columns, csv="input_ops.csv", filter=True)
    return spec.tab("input", "Input pipeline", [spec.text(f"{words} {hint}"), table])


def _times(unit: str, shown: str, steps: tuple[int, int], what: str) -> list[spec.Column]:
    per = " of a step" if steps != (1, 1) else ""
    digits = 1 if unit == "us" else 3
    return [
        spec.column(f"before_{unit}_per_step", "Before", "number", digits=digits, unit=shown, width=92, hint=f"{what}{per}"),
        spec.column(f"after_{unit}_per_step", "After", "number", digits=digits, unit=shown, width=92, hint=f"{what}{per}"),
        spec.column(f"difference_{unit}_per_step", "Difference", "number", digits=digits, unit=shown, width=104,
                    hint=f"{what}{per}, after less before: below 0 is time won"),
        spec.column("ratio_per_step", "Ratio", "number", digits=2, width=72, hint=_RATIO),
    ]  # fmt: skip


def _shown(table: pd.DataFrame, unit: str) -> pd.DataFrame:
    """What the browser needs, with the digits that are read: fewer different numbers pack smaller."""
    numbers = [f"{which}_{unit}_per_step" for which in ("before", "after", "difference")]
    kept = table.drop(columns=[f"{which}_{unit}" for which in ("before", "after", "difference")] + ["ratio"])
    kept[numbers] = kept[numbers].round(3 if unit == "us" else 6)
    kept["ratio_per_step"] = kept["ratio_per_step"].round(4)
    return kept


def _ratio(before: pd.Series[Any], after: pd.Series[Any]) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(before > 0, after / before, np.nan)


def _account(table: pd.DataFrame, noun: str, steps: tuple[int, int], unit: str, what: str) -> str:
    """Say what the table adds up to, and how many of its rows have no counterpart."""
    before, after, difference = (
        float(table[f"{which}_{unit}_per_step"].sum()) for which in ("before", "after", "difference")
    )
    scale = 1e-3 if unit == "us" else 1.0
    longest = scale * max(before, after)
    per = "a step" if steps != (1, 1) else "in all"
    sums = f"{ms(scale * before, like=longest)} → {ms(scale * after, like=longest)}"
    words = f"All {noun}s: {sums} of {what} {per} ({_signed(scale * difference, longest)})."
    appeared, vanished = ((table["matched"] == says).sum() for says in ("appeared", "vanished"))
    if not appeared and not vanished:
        return f"{words} Each of {count(len(table), noun)} has its counterpart."
    times = [
        ms(scale * float(table.loc[table["matched"] == says, f"{run}_{unit}_per_step"].sum()), like=longest)
        for says, run in (("appeared", "after"), ("vanished", "before"))
    ]
    return f"{words} Of {count(len(table), noun)}, {appeared:,} appeared ({times[0]}) and {vanished:,} vanished ({times[1]})."
