"""The Input pipeline tab: whether the run waits for its input, how long, and for which stage."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, HBar, NumeralTickFormatter, Quad, Scatter, Text

from ..analysis.input_pipeline import CATEGORIES, ENQUEUE, IN_ADVANCE, ON_DEMAND, PREPROCESSING
from . import spec
from .advice import prose
from .colors import CATEGORY_COLORS, text_color_on
from .spec import count, fact, ms, percent
from .template import Template

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from ..analysis.input_pipeline import InputPipeline, InputSummary

_RED, _LINE = CATEGORY_COLORS["input"], "#808890"
_HOST_COLORS = {ON_DEMAND: "#bf4306", IN_ADVANCE: "#78c7fd", PREPROCESSING: "#4477aa", ENQUEUE: "#71ae8d"}
_HOST_LABELS = {
    ON_DEMAND: "Reading data from files on demand",
    IN_ADVANCE: "Reading data from files in advance",
    PREPROCESSING: "Data preprocessing",
    ENQUEUE: "Enqueuing to the device",
}
_WHAT_HELPS = {
    ON_DEMAND: "Prefetch, cache or interleave, so that reading goes on while the device works.",
    IN_ADVANCE: "Read more files at once (cycle_length, num_parallel_calls), in larger pieces.",
    PREPROCESSING: "Run it in parallel (num_parallel_calls), on whole batches, beforehand, or cache its results.",
    ENQUEUE: "Send less (uint8 instead of float32) or in fewer, larger transfers.",
}
# Bars beyond these are groups of steps; the number of letters that fit into a part of the stacked bar.
_MOST_BARS, _LETTER_SHARE = 500, 1.3
# What reduces a category is said from this share on, in percent.
_WORTH_A_WORD = 10
# A wait so many times as long as the longest in averages is named instead of drawn to its end.
_OUTLYING = 4
# As in the chart of step times.
_PALE = 0.35
_NO_STEPS = (
    "No step was found in this capture, so how long steps wait for input is unknown. Mark each step of your own loop: "
    "with tfprof_widgets.step(i): …"
)
_NOTHING = (
    "No steps and no input operations were found in this capture, so nothing can be said of its input: mark each step of your own loop "
    "(with tfprof_widgets.step(i): …), and read with tf.data while the profiler runs, with a host level of 2 or more (--host-level 2)."
)
_NO_OPS = (
    "No input op was recorded: the input doesn't come from tf.data, or nothing was read while the profiler ran (a host tracer level "
    "of 2 or more is needed to see it: --host-level 2)."
)


def input_pipeline_tab(payload: spec.Tables, analysis: InputPipeline, step_chart: spec.Item | None = None) -> spec.Tab:
    """Return the Input pipeline tab.

    Parameters
    ----------
    payload : Payload
        Gets the table ``input_ops``.
    analysis : InputPipeline
        ``report.input_pipeline``.
    step_chart : item, optional
        The Overview's chart of step time plotted against step number.
    """
    if analysis.per_step.empty and analysis.input_ops.empty and analysis.pipelines.empty:
        return spec.tab("input_pipeline", "Input pipeline", [spec.text(_NOTHING, "info")])
    items = [
        *_summary(analysis),
        spec.section("Device-side analysis"),
        *_device_side(analysis, step_chart),
        spec.section("Host-side analysis"),
        *_host_side(payload, analysis),
        spec.section("Stages of the pipeline"),
        *_pipelines(analysis),
    ]
    if analysis.notes and not analysis.pipelines.empty:
        items.append(spec.text(" ".join(analysis.notes)))
    return spec.tab("input_pipeline", "Input pipeline", items)


def find_step_chart(items: Sequence[spec.Item]) -> spec.Item | None:
    """Return the chart of step time against step number among the Overview's items: that of the first kind of step."""
    for item in items:
        if item["kind"] == "figure" and item["title"].startswith("Step time: "):
            return item
        within = [item.get("children", []), *item.get("cases", {}).values()]
        found = next((chart for each in within if (chart := find_step_chart(each)) is not None), None)
        if found is not None:
            return found
    return None


# ---- summary ------------------------------------------------------------------------------------------------


def _summary(analysis: InputPipeline) -> list[spec.Item]:
    summary = analysis.summary
    level: spec.Level = "warning" if summary.verdict in ("high", "moderate") else "info"
    items = [spec.text(summary.statement, level)]
    several = not analysis.per_step.empty and bool(analysis.per_step.groupby("step")["devices"].sum().max() > 1)
    rows = _summary_facts(summary, several_devices=several)
    if rows:
        items.append(spec.facts("", rows))
    if summary.suggestion:
        items.append(_change(summary.suggestion))
    return items


def _summary_facts(summary: InputSummary, *, several_devices: bool) -> list[dict[str, Any]]:
    rows = []
    if summary.verdict != "unknown":
        # The share is of each device's own time, so that it is not one of these times in percent of the other.
        waiting = "What steps wait in calls of tf.data, and the op around them that hands the batch over"
        if several_devices:
            of_slowest = (
                "Of the step's time on its slowest device, as in the Overview and in the first line of the report"
            )
            of_all = "Of all devices' time in their steps"
            rows += [
                fact(
                    "Waiting on the slowest device",
                    f"{ms(summary.slowest_input_time_ms)} · {percent(summary.slowest_input_pct)}",
                    hint=of_slowest,
                ),
                fact(
                    "Waiting, mean of the devices",
                    f"{ms(summary.input_time_ms)} · {percent(summary.input_pct)}",
                    hint=of_all,
                ),
            ]
        else:
            rows += [
                fact("Waiting for input", percent(summary.input_pct), hint="Share of the steps' time"),
                fact("Waiting in each step", ms(summary.input_time_ms), hint=waiting),
            ]
        rows += [
            fact(f"Average step{' (slowest device)' if several_devices else ''}", ms(summary.step_time_ms)),
            fact(
                "Steps averaged",
                f"{summary.steps:,}" + (f" ({summary.kind})" if summary.kind not in ("", "step") else ""),
            ),
        ]
    if summary.category:
        label = f"{_HOST_LABELS.get(summary.category, summary.category)} ({percent(summary.category_pct)})"
        rows.append(fact("Most input processing", label, hint="Of the time in tf.data operations on the host"))
    if summary.stage:
        stage = f"{_short(summary.stage)} ({percent(summary.stage_pct)})"
        rows.append(
            fact("Stage waited for longest", stage, hint=f"Share of the waiting for tf.data. In full: {summary.stage}")
        )
    return rows


def _change(words: str) -> spec.Item:
    return {"kind": "change", "label": "What to change", "change": prose(words)}


def _short(stage: str) -> str:
    return stage.rpartition("::")[2] or stage


# ---- device side --------------------------------------------------------------------------------------------


def _device_side(analysis: InputPipeline, step_chart: spec.Item | None) -> list[spec.Item]:
    per_step = analysis.per_step
    if per_step.empty:
        return [spec.text(_NO_STEPS, "info")]
    items = [] if step_chart is None else [step_chart]
    kinds = [str(kind) for kind in dict.fromkeys([*analysis.device_side["kind"], *per_step["kind"]])]
    cases = {}
    for number, kind in enumerate(kinds):
        mine = per_step[per_step["kind"] == kind]
        steps = count(mine["step"].nunique(), "step")
        measures = analysis.device_side[analysis.device_side["kind"] == kind].set_index("measure")
        cases[f"kind-{number}"] = (f"{kind or 'steps'} ({steps})", [*_statistics(measures), _waiting_chart(mine, kind)])
    if len(cases) == 1:
        return items + next(iter(cases.values()))[1]
    return [*items, spec.switch("input_kind", "Kind of step", cases)]


def _statistics(measures: pd.DataFrame) -> list[spec.Item]:
    if measures.empty:
        return [
            spec.text("There is no average: every step of this kind is one of those that averages leave out.", "info")
        ]
    titles = {"step_time_ms": "Step-time statistics", "input_time_ms": "Waiting for input"}
    return [spec.row([_measure(measures, name, title) for name, title in titles.items()])]


def _measure(measures: pd.DataFrame, name: str, title: str) -> spec.Item:
    row = measures.loc[name]
    mean = float(row["mean"])

    def shown(statistic: str) -> str:
        return ms(float(row[statistic]), like=mean)

    return spec.facts(
        title,
        [
            fact("Average", shown("mean")),
            fact("Standard deviation", shown("std")),
            fact("Range", _range(float(row["min"]), float(row["max"]), mean), hint="Minimum and maximum"),
            fact("Median", shown("median")),
        ],
    )


def _range(low: float, high: float, mean: float) -> str:
    """From one time to another, as exact as their mean where they have its unit."""
    one_unit = len({ms(time).rpartition(" ")[2] for time in (low, high, mean)}) == 1
    return f"{ms(low, like=mean)} to {ms(high, like=mean)}" if one_unit else f"{ms(low)} to {ms(high)}"


def _waiting_chart(per_step: pd.DataFrame, kind: str) -> spec.Item:
    """Waiting of each step: the mean of the devices as a bar, their range over it."""
    steps = per_step.groupby("step")
    mean = steps["input_ms"].mean().to_numpy(float)
    low, high = steps["input_min_ms"].min().to_numpy(float), steps["input_max_ms"].max().to_numpy(float)
    share = steps["input_pct"].mean().to_numpy(float)
    averaged = steps["averaged"].any().to_numpy(bool)
    number = np.array(list(steps.groups), np.int64)
    several = int(steps["devices"].sum().max()) > 1
    size = -(-len(number) // _MOST_BARS)
    group = np.arange(len(number)) // size
    first = np.flatnonzero(np.diff(group, prepend=-1))
    counts = np.bincount(group)
    usual = np.where(averaged, high, 0.0).max() or high.max() or 1.0
    above = high > _OUTLYING * usual
    top = 1.1 * float(high[~above].max(initial=0.0) or usual)

    names = [str(n) for n in number[first]]
    if size > 1:
        last = np.append(first[1:], len(number)) - 1
        names = [f"{a} to {b}" for a, b in zip(number[first].tolist(), number[last].tolist(), strict=True)]
    lows, highs = np.minimum.reduceat(low, first), np.maximum.reduceat(high, first)
    at = np.arange(len(first), dtype=float)
    width = max(len(first), 12) / 2
    middle = (len(first) - 1) / 2
    positions = _labelled(names)
    figure = _waiting(several or size > 1).fill(
        {
            "waiting": {
                "left": at - 0.425,
                "right": at + 0.425,
                "step": names,
                "mean": np.bincount(group, mean) / counts,
                "share": np.bincount(group, share) / counts,
                "alpha": np.where(np.maximum.reduceat(averaged, first), 1.0, _PALE),
                **({"low": lows, "high": highs} if several or size > 1 else {}),
            },
            "above": {"x": at[highs > top], "y": np.full(int((highs > top).sum()), 0.92 * top)},
        },
        {
            "steps": {"start": middle - width, "end": middle + width},
            "waited": {"end": top},
            "ticks": {"ticks": list(positions)},
            "x_axis": {
                "major_label_overrides": {"type": "map", "entries": [[i, name] for i, name in positions.items()]}
            },
        },
    )
    notes = []
    if not averaged.all() and averaged.any():
        notes.append(f"Faint: {(~averaged).sum():,} of {count(len(number), 'step')}, not in averages.")
    if size > 1:
        notes.append(f"Each of the {len(first)} bars is the average of {size} steps in a row.")
    if several:
        notes.append("Grey: from the device that waits least to the one that waits most.")
    elif size > 1:
        notes.append("Grey: from the least to the most of these steps.")
    if above.any():
        which = ", ".join(f"step {n} ({ms(t)})" for n, t in list(zip(number[above], high[above], strict=True))[:5])
        more = f" and {above.sum() - 5:,} more" if above.sum() > 5 else ""
        notes.append(f"Above the axis: {which}{more}.")
    of_kind = f" ({kind})" if kind not in ("", "step") else ""
    title = f"Waiting for input: {count(len(number), 'step')}{of_kind}"
    alt = f"{title}: {ms(float(mean.mean()))} on average, from {ms(float(low.min()))} to {ms(float(high.max()))}."
    return {"kind": "figure", "title": title, "figure": figure, "alt": alt, "note": " ".join(notes)}


def _labelled(names: Sequence[str]) -> dict[int, str]:
    """Some ten bars and their names (our own: numbers of steps)."""
    every = max(1, -(-len(names) // 10))
    nice = next((n for n in (1, 2, 5, 10, 20, 50) if n >= every), every)
    return {i: names[i].partition(" ")[0] for i in range(0, len(names), nice)}


@cache
def _waiting(ranges: bool) -> Template:
    columns = ["left", "right", "step", "mean", "share", "alpha", *(["low", "high"] if ranges else [])]
    source = ColumnDataSource({name: [] for name in columns}, name="waiting")
    p = spec.plot(170, (0, 1), (0, 1), x_label="Step", y_label="Waiting (ms)")
    p.x_range.name, p.y_range.name = "steps", "waited"
    p.xgrid.visible = False
    p.xaxis[0].name = "x_axis"
    p.xaxis[0].ticker = FixedTicker(ticks=[], name="ticks")
    p.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    bar = Quad(
        left="left", right="right", bottom=0, top="mean", fill_color=_RED, fill_alpha="alpha", line_color=None,
        hatch_pattern="right_diagonal_line", hatch_color="white", hatch_alpha=0.5, hatch_scale=9, hatch_weight=1,
    )  # fmt: skip
    bars = spec.draw(p, source, bar)
    mark = Scatter(x="x", y="y", marker="triangle", size=8, fill_color=_RED, line_color="white")
    spec.draw(p, ColumnDataSource({"x": [], "y": []}, name="above"), mark)
    tooltips = [("Step", "@step"), ("Waiting", "@mean{0,0.000} ms"), ("Share of the step", "@share{0.0} %")]
    if ranges:
        span = Quad(
            left="left", right="right", bottom="low", top="high", fill_color=_LINE, fill_alpha=0.4, line_color=None
        )
        spec.draw(p, source, span)
        tooltips.append(("Least and most", "@low{0,0.000} to @high{0,0.000} ms"))
    spec.hover(p, [bars], tooltips, mode="vline", point_policy="follow_mouse")
    return Template(p)


# ---- host side ----------------------------------------------------------------------------------------------


def _host_side(payload: spec.Tables, analysis: InputPipeline) -> list[spec.Item]:
    ops = analysis.input_ops
    if ops.empty:
        return [spec.text(_NO_OPS, "info")]
    payload.add_table("input_ops", ops)
    of_all = "Of the self time of all input ops"
    in_functions = "Thread time in the functions given to it, such as map's: on top of the self time"
    columns = [
        spec.column("name", "Input op", "text", min_width=260, trace={"side": "host"}),
        spec.column("count", "Count", "number", digits=0, width=80, hint="Executions in the profiled time"),
        _ms_column("total_time_ms", "Total time", "The functions that it calls included"),
        spec.column("total_time_pct", "Total time %", "percent", digits=1, width=92, hint=of_all),
        _ms_column("self_time_ms", "Total self time", "Without the functions that it calls"),
        spec.column("self_time_pct", "Total self time %", "percent", digits=1, width=92, hint=of_all),
        spec.column("category", "Category", "text", width=150),
        _ms_column("wait_time_ms", "Waiting", "Of the self time: waiting for another thread"),
        _ms_column("function_time_ms", "In functions", in_functions),
    ]
    sort: tuple[str, Literal["desc"]] = ("self_time_ms", "desc")
    table = spec.table("Input op statistics", "input_ops", columns, sort=sort, csv="input_ops.csv", filter=True)
    return [*_categories(analysis.host_side), table]


def _ms_column(field: str, title: str, hint: str) -> spec.Column:
    return spec.column(field, title, "number", digits=3, unit="ms", width=96, hint=hint)


def _categories(host_side: pd.DataFrame) -> list[spec.Item]:
    """The four categories as a stacked bar, with what each means and what helps."""
    time = host_side["time_ms"].to_numpy(float)
    share = host_side["time_pct"].to_numpy(float)
    names = host_side["category"].tolist()
    ends = np.cumsum(time)
    fills = [_HOST_COLORS[name] for name in names]
    labels = [_HOST_LABELS[name] for name in names]
    figure = _stacked().fill(
        {
            "parts": {
                "left": ends - time,
                "right": ends,
                "middle": ends - time / 2,
                "category": labels,
                "shown": [_fitting(label, part) for label, part in zip(labels, share, strict=True)],
                "time": [ms(t) for t in time],
                "share": [percent(part) for part in share],
                "color": fills,
                "text_color": [text_color_on(fill) for fill in fills],
            }
        },
        {"total": {"end": float(ends[-1]) or 1.0}},
    )
    spoken = ", ".join(f"{label} {percent(part)}" for label, part in zip(labels, share, strict=True))
    title = f"Input-processing time: {ms(float(time.sum()))}"
    chart = {"kind": "figure", "title": title, "figure": figure, "alt": f"{title} of all host threads: {spoken}."}
    longest = float(time.max())
    rows = [
        fact(
            label,
            f"{ms(t, like=longest)} · {percent(part)}" if t > 0 else "0",
            color=fill,
            hint=f"{CATEGORIES[name]}. {_WHAT_HELPS[name]}",
        )
        for name, label, t, part, fill in zip(names, labels, time, share, fills, strict=True)
    ]
    helps = [
        f"{label}: {_WHAT_HELPS[name]}"
        for name, label, part in zip(names, labels, share, strict=True)
        if part >= _WORTH_A_WORD
    ]
    words = [spec.text("\n".join(["What reduces it:", *helps]))] if helps else []
    return [chart, spec.facts("", rows), *words]


def _fitting(label: str, share: float) -> str:
    wordings = (f"{label} {percent(share)}", percent(share), f"{share:.0f} %")
    return next((words for words in wordings if len(words) * _LETTER_SHARE <= share), "")


@cache
def _stacked() -> Template:
    columns = ("left", "right", "middle", "category", "shown", "time", "share", "color", "text_color")
    source = ColumnDataSource({name: [] for name in columns}, name="parts")
    p = spec.plot(48, (0, 1), (-0.5, 0.5), axes=False)
    p.x_range.name = "total"
    part = HBar(y=0, height=0.9, left="left", right="right", fill_color="color", line_color="white", line_width=1)
    bars = spec.draw(p, source, part)
    label = Text(
        x="middle",
        y=0,
        text="shown",
        text_color="text_color",
        text_font_size="12px",
        text_align="center",
        text_baseline="middle",
    )
    spec.draw(p, source, label)
    spec.hover(
        p, [bars], [("Category", "@category"), ("Time", "@time"), ("Share", "@share")], point_policy="follow_mouse"
    )
    return Template(p)


# ---- stages -------------------------------------------------------------------------------------------------


def _pipelines(analysis: InputPipeline) -> list[spec.Item]:
    pipelines, stages = analysis.pipelines, analysis.tf_data
    if pipelines.empty:
        why = " ".join(analysis.notes) or "No tf.data pipeline is in this profile, so there are no stages to show."
        return [spec.text(why, "info")]
    several_hosts = len(set(pipelines["host"])) > 1
    # What the loop waited for longest comes first.
    ranked = pipelines.sort_values("blocked_ms", ascending=False, kind="stable")
    of_pipeline = stages.groupby(["host", "pipeline"], sort=False).indices
    cases = {}
    for number, (_, pipeline) in enumerate(ranked.iterrows()):
        rows = of_pipeline.get((pipeline["host"], pipeline["pipeline"]), np.empty(0, np.int64))
        words = [str(pipeline["kind"] or "no step"), *(["on the device"] if pipeline["place"] == "device" else [])]
        label = f"{pipeline['name']} ({', '.join(words)})"
        label = f"{pipeline['host']}: {label}" if several_hosts else label
        said = str(pipeline["suggestion"]) == analysis.summary.suggestion and len(ranked) == 1
        cases[f"pipeline-{number}"] = (label, _pipeline(pipeline, stages.iloc[rows], said=said))
    if len(cases) == 1:
        return next(iter(cases.values()))[1]
    return [spec.switch("input_pipeline_of", "Pipeline", cases)]


def _pipeline(pipeline: pd.Series[Any], stages: pd.DataFrame, *, said: bool) -> list[spec.Item]:
    items = [spec.text(str(pipeline["statement"]))] if pipeline["statement"] else []
    if pipeline["suggestion"] and not said:
        items.append(_change(str(pipeline["suggestion"])))
    slowest = max(float(stages["time_per_batch_ms"].max()), 0.0) if len(stages) else 0.0
    marked = pipeline["verdict"] != "low"
    rows = [_stage(stage, slowest, marked=marked) for _, stage in stages.iterrows()]
    columns = (
        ("Stage", "The training loop asks the first stage; each stage asks the ones below it, down to the source"),
        (
            "Loop waited for it",
            "What the training loop waited for this stage, in percent of its waiting for the pipeline",
        ),
        (
            "Time per batch",
            "Its work, and the time of its functions divided by the parallelism: it can't make a batch faster",
        ),
        ("Own work", "Self time less waiting, over the whole capture"),
        ("Waiting", "Of its self time: waiting for another thread, over the whole capture"),
        ("In functions", "Thread time in the functions given to it (map), over the whole capture"),
        ("Parallel calls", "At the same time, as last seen"),
        ("Buffered", "Elements that were ready when it was asked, on average, of how many there is room for"),
        ("Calls", ""),
    )
    threads = float(pipeline["cpu_budget"])
    note = f"{count(pipeline['calls'], 'call')} of the first stage took {ms(float(pipeline['mean_ms']))} on average"
    note += (
        f" (from {ms(float(pipeline['min_ms']))} to {ms(float(pipeline['max_ms']))})." if pipeline["calls"] > 1 else "."
    )
    if threads == threads:
        note += f" tf.data has {threads:.0f} threads."
    return [
        *items,
        spec.stages(f"Stages of {pipeline['name']}, from the training loop to the source", columns, rows, note),
    ]


def _stage(stage: pd.Series[Any], slowest: float, *, marked: bool) -> dict[str, Any]:
    per_batch, blocking = float(stage["time_per_batch_ms"]), float(stage["blocking_pct"])
    tags = [
        *(["waited for most"] if stage["is_bottleneck"] and not marked else []),
        *(["works ahead"] if stage["is_asynchronous"] else []),
        *(["autotuned"] if stage["is_autotuned"] else []),
        *([f"batches of {stage['batch_size']:.0f}"] if stage["batch_size"] == stage["batch_size"] else []),
        *([f"cycle of {stage['cycle_length']:.0f}"] if stage["cycle_length"] == stage["cycle_length"] else []),
        *(["Python"] if stage["python_time_ms"] > 0 else []),
    ]
    waited = f"{ms(float(stage['blocking_time_ms']))} · {percent(blocking)}" if blocking > 0 else "–"
    cells: list[dict[str, Any]] = [
        {"text": waited, "share": blocking / 100},
        {"text": ms(per_batch), "share": per_batch / (slowest or 1.0)},
        *({"text": _time(stage[f"{name}_time_ms"])} for name in ("work", "wait", "function")),
        {"text": _number(stage["parallelism"])},
        {"text": _buffered(stage["buffered_elements"], stage["buffer_size"])},
        {"text": f"{stage['calls']:,}"},
    ]
    why = "bottleneck" if stage["is_bottleneck"] and marked else ""
    return spec.stage(str(stage["name"]), int(stage["depth"]), cells, tags=tags, marked=why, hint=str(stage["stage"]))


def _time(value_ms: float) -> str:
    return ms(float(value_ms)) if value_ms > 0 else "–"


def _number(value: float) -> str:
    return f"{value:g}" if value == value else "–"


def _buffered(elements: float, room: float) -> str:
    if elements != elements:
        return "–" if room != room else f"room for {room:g}"
    shown = f"{elements:.2g}" if elements < 10 else f"{elements:.0f}"
    return f"{shown} of {room:g}" if room == room else shown
