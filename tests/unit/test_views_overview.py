"""The Overview tab, from generated steps."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from bokeh.document import Document
from bokeh.models import ColumnDataSource, Text, VAreaStep, VBar

from tfprof_widgets.analysis.steps import CATEGORIES
from tfprof_widgets.views.colors import CATEGORY_COLORS
from tfprof_widgets.views.overview import overview_tab
from view_frames import CPU, HOSTILE, Recorder, every, ops_frame, overview_of, steps_frame

GPUS = ("/device:GPU:0", "/device:GPU:1")


def tab_of(steps, ops=None, **more):
    ops = ops_frame() if ops is None else ops
    recorder = Recorder()
    tab = overview_tab(recorder, overview_of(steps, ops, **more), steps)
    json.dumps(tab, allow_nan=False)  # what the page is sent
    return tab, recorder


def texts(tab) -> str:
    return "\n".join(item["text"] for item in every(tab["items"], "text"))


def charts(tab, title: str):
    return [item for item in every(tab["items"], "figure") if item["title"].startswith(title)]


def plot_of(chart):
    return Document.from_json(chart["figure"]["doc"]).roots[0]


def source_of(plot, column: str) -> ColumnDataSource:
    """The data that the steps are hovered in."""
    return next(r.data_source for r in plot.renderers if column in r.data_source.data)


def color_of(renderer) -> str | None:
    color = renderer.glyph.fill_color
    return getattr(color, "value", color)


def facts_of(tab, title: str) -> dict[str, str]:
    found = next(item for item in every(tab["items"], "facts") if item["title"] == title)
    return {row["label"]: row["value"] for row in found["rows"]}


# ---- the chart over all steps --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 50, 128, 300, 301, 1000])
def test_every_step_is_drawn_with_all_its_time(n):
    steps = steps_frame(n)
    (chart,) = charts(tab_of(steps)[0], "Step time")
    plot = plot_of(chart)
    data = source_of(plot, "step").data
    assert list(data["step"]) == list(range(n))
    shown = [c for c in CATEGORIES if c in data]
    np.testing.assert_allclose(sum(np.asarray(data[c]) for c in shown), steps["duration_ms"], rtol=1e-5)
    np.testing.assert_allclose(data["total"], steps["duration_ms"], rtol=1e-6)
    glyph = VBar if n <= 300 else VAreaStep
    stacked = {
        c: [r for r in plot.renderers if isinstance(r.glyph, glyph) and color_of(r) == CATEGORY_COLORS[c]]
        for c in shown
    }
    assert [len(renderers) for renderers in stacked.values()] == [1] * len(shown)
    assert (plot.y_range.start, plot.x_range.start) <= (0, -0.5)
    assert plot.x_range.end >= n - 0.5
    assert plot.y_range.end >= steps["duration_ms"].max()


def test_categories_have_their_colors_and_input_a_pattern():
    steps = steps_frame(20, devices=(GPUS[0],))
    (chart,) = charts(tab_of(steps)[0], "Step time")
    look = {r.name: (color_of(r), r.glyph.hatch_pattern.value) for r in plot_of(chart).renderers if r.name}
    assert look["input"] == ("#c8202b", "right_diagonal_line")
    assert look["device_compute"] == ("#68c788", " ")


def test_a_huge_first_step_does_not_flatten_the_others():
    steps = steps_frame(60, slow_first=300)
    (chart,) = charts(tab_of(steps)[0], "Step time")
    plot = plot_of(chart)
    others = steps["duration_ms"][1:].max()
    assert others < plot.y_range.end < 2 * others
    assert "Above the axis: step 0 (90" in chart["note"]
    labels = [word for r in plot.renderers if isinstance(r.glyph, Text) for word in r.data_source.data["words"]]
    assert labels == [f"{steps['duration_ms'][0]:.0f} ms"]


def test_many_long_steps_stay_within_the_axis():
    steps = steps_frame(60)
    categories = [f"{c}_ms" for c in CATEGORIES]
    steps.loc[steps.index % 3 == 0, [*categories, "duration_ms"]] *= 10
    (chart,) = charts(tab_of(steps)[0], "Step time")
    assert plot_of(chart).y_range.end >= steps["duration_ms"].max()
    assert "Above the axis" not in chart["note"]


def test_steps_left_out_of_averages_are_pale_and_counted():
    steps = steps_frame(20)
    tab, _ = tab_of(steps)
    (chart,) = charts(tab, "Step time")
    data = source_of(plot_of(chart), "step").data
    assert [i for i, alpha in enumerate(data["alpha"]) if alpha < 1] == [0, 19]
    assert data["left_out"][0] == "first, function traced"
    assert data["left_out"][1] == "no"
    assert "Faint: 2 of 20 steps" in chart["note"]
    statistics = facts_of(tab, "Step statistics")
    assert statistics["Steps averaged"] == "18 of 20"
    assert statistics["Left out"] == "2 (first: 1, last: 1, function traced: 1)"


def test_thousands_of_steps_are_drawn_in_groups_that_lose_none():
    steps = steps_frame(5003, slow_first=200)
    steps.loc[2500, "duration_ms"] += 5
    (chart,) = charts(tab_of(steps)[0], "Step time")
    data = source_of(plot_of(chart), "step").data
    bounds = [tuple(map(int, group.split(" to "))) for group in data["step"]]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == 5002
    assert all(after[0] == before[1] + 1 for before, after in pairwise(bounds))
    assert len(bounds) <= 500
    longest = [steps["duration_ms"][a : b + 1].max() for a, b in bounds]
    np.testing.assert_allclose(data["longest"], longest, rtol=1e-6)
    # The traced first step is in no average, so it isn't in its group's.
    a, b = bounds[0]
    assert data["total"][0] == pytest.approx(steps["duration_ms"][a + 1 : b + 1].mean(), rel=1e-5)
    assert f"Each of the {len(bounds)} columns is the average of 11 steps" in chart["note"]
    assert "Left out: 2 of 5,003 steps" in chart["note"]
    assert len(json.dumps(chart)) < 100_000


@pytest.mark.parametrize("number", [[0, 1, 2, 0, 1, 2], [0, 100, 200, 300, 400, 500]])
def test_steps_whose_numbers_repeat_or_lie_apart_stand_side_by_side(number):
    steps = steps_frame(6)
    steps["step"] = number
    steps["host"] = [f"h{i}" for i in range(6)] if number[0] == number[3] else "h"
    (chart, *_) = charts(tab_of(steps)[0], "Step time")
    plot = plot_of(chart)
    if number[0] == number[3]:  # of several hosts: the slowest of each step
        assert list(source_of(plot, "step").data["step"]) == [0, 1, 2]
    else:
        assert list(source_of(plot, "step").data["x"]) == list(range(6))
        assert plot.xaxis[0].major_label_overrides == dict(enumerate(map(str, number)))
        assert "side by side" in chart["note"]


def test_numbers_that_start_late_are_kept():
    (chart,) = charts(tab_of(steps_frame(20, first_step=5000))[0], "Step time")
    assert list(source_of(plot_of(chart), "step").data["x"]) == list(range(5000, 5020))


# ---- kinds and devices ---------------------------------------------------------------------------------------


def test_each_kind_has_its_case_the_first_one_shown():
    steps = pd.concat([steps_frame(30), steps_frame(10, kind="test", first_step=30)], ignore_index=True)
    tab, _ = tab_of(steps)
    (switch,) = every(tab["items"], "switch")
    assert [option["label"] for option in switch["options"]] == ["train (30)", "test (10)"]
    assert switch["value"] == "train"
    assert [chart["title"] for chart in charts(tab, "Step time")] == [
        "Step time: 30 steps (train)",
        "Step time: 10 steps (test)",
    ]


def test_the_slowest_device_of_each_step_comes_first_then_each_device():
    steps = steps_frame(25, devices=GPUS)
    tab, _ = tab_of(steps)
    (switch,) = every(tab["items"], "switch")
    assert [option["label"] for option in switch["options"]] == ["Slowest device of each step", *GPUS]
    slowest, first, _second = (source_of(plot_of(chart), "step").data for chart in charts(tab, "Step time"))
    np.testing.assert_allclose(slowest["total"], steps.groupby("step")["duration_ms"].max(), rtol=1e-6)
    np.testing.assert_allclose(first["total"], steps["duration_ms"][:25], rtol=1e-6)
    assert set(slowest["device"]) <= {f"worker {gpu}" for gpu in GPUS}


def test_very_many_devices_are_said_and_not_drawn_one_by_one():
    steps = steps_frame(5, devices=tuple(f"/device:GPU:{i}" for i in range(40)))
    tab, _ = tab_of(steps)
    assert len(charts(tab, "Step time")) == 1
    assert "40 devices" in texts(tab)


def test_a_kind_without_an_average_says_why_and_shows_its_steps():
    steps = steps_frame(1)
    steps["flags"] = "first traced"
    tab, _ = tab_of(steps)
    assert "There is no average: 1 step" in texts(tab)
    assert "function traced: 1" in texts(tab)
    assert len(charts(tab, "Step time")) == 1
    assert not charts(tab, "Average step time")


def test_no_steps_say_how_to_mark_them():
    tab, _ = tab_of(steps_frame(3)[:0])
    assert "tfprof_widgets.step(" in texts(tab)
    assert not list(every(tab["items"], "figure"))


def test_the_analysis_own_words_come_instead_where_there_are_any():
    tab, _ = tab_of(steps_frame(3)[:0], notes=["No steps were found: why."])
    assert "No steps were found: why." in texts(tab)
    assert "Trace(" not in texts(tab)


@pytest.mark.parametrize("outliers", [[0], [0, 1, 2], [3, 9, 17, 18, 30, 39]])
def test_steps_that_are_far_longer_do_not_squash_the_others(outliers):
    steps = steps_frame(40)
    long = steps["step"].isin(outliers)
    steps.loc[long, ["other_ms", "duration_ms"]] += 500.0
    (chart,) = charts(tab_of(steps)[0], "Step time: 40 steps")
    plot = plot_of(chart)
    usual = steps["duration_ms"][~long].max()
    assert usual < plot.y_range.end < 2 * usual
    for step in outliers:
        assert f"step {step} (50" in chart["note"]
    # Where there is room for it, the time stands at the mark.
    written = [words for r in plot.renderers for words in r.data_source.data.get("words", [])]
    assert 1 <= len(written) <= len(outliers)
    assert all(words.startswith("50") for words in written)


# ---- the breakdown -------------------------------------------------------------------------------------------


def test_the_bar_and_the_legend_tell_the_same_breakdown():
    steps = steps_frame(20, devices=(GPUS[0],))
    tab, _ = tab_of(steps)
    (bar,) = charts(tab, "Average step time")
    data = source_of(plot_of(bar), "category").data
    used = steps[steps["flags"] == "averaged"]
    assert data["right"][-1] == pytest.approx(used["duration_ms"].mean())
    assert list(data["left"][1:]) == pytest.approx(list(data["right"][:-1]))
    legend = facts_of(tab, "Where the time goes")
    input_ms = used["input_ms"].mean()
    assert legend["Input"] == f"{input_ms:.2f} ms · {100 * input_ms / used['duration_ms'].mean():.1f} %"
    # What took no time is named, too.
    assert legend["No time in"].count(",") == len(CATEGORIES) - 3 - 1
    assert "Input" in bar["alt"]


def test_labels_are_only_where_they_fit():
    steps = steps_frame(20)
    steps["duration_ms"] += 0.001 - steps["output_ms"]
    steps["output_ms"] = 0.001
    (bar,) = charts(tab_of(steps)[0], "Average step time")
    data = source_of(plot_of(bar), "category").data
    shown = dict(zip(data["category"], data["shown"], strict=True))
    assert shown["Output"] == ""
    assert shown["Host compute"].startswith("Host compute ")


# ---- the rest ------------------------------------------------------------------------------------------------


def test_top_ops_are_a_table_of_the_payload():
    tab, recorder = tab_of(steps_frame(5))
    (table,) = every(tab["items"], "table")
    frame = recorder.frames[table["table"]]
    assert table["title"] == "Top 10 TensorFlow operations on the device"
    assert {column["field"] for column in table["columns"]} <= set(frame.columns)
    assert list(frame["rank"]) == list(range(1, 11))
    assert frame["self_time_us"].is_monotonic_decreasing


def test_top_ops_of_a_host_and_of_nothing():
    tab, _ = tab_of(steps_frame(5), ops_frame(3, 0))
    (table,) = every(tab["items"], "table")
    assert table["title"] == "Top 3 TensorFlow operations on the host"
    tab, recorder = tab_of(steps_frame(5), ops_frame(0, 0))
    assert not recorder.frames
    assert "No TensorFlow op was recorded" in texts(tab)


def test_environment_and_performance_are_told():
    tab, _ = tab_of(
        steps_frame(5), examples_per_s=12345.6, precision={"16-bit": 30.0, "32-bit": 70.0}, eager_pct={"host": 2.5}
    )
    assert facts_of(tab, "Run environment") == {"Hosts": "1 (worker)", "Device type": "CPU"}
    assert facts_of(tab, "Performance") == {
        "Examples per second": "12,346",
        "Device compute precision": "16-bit 30.0 %, 32-bit 70.0 %",
        "Op time run eagerly (host)": "2.5 %",
    }
    assert tab["items"][0] == {"kind": "text", "text": "A training step takes 3 ms.", "level": "plain"}


def test_names_of_a_profile_reach_figures_only_as_data():
    """BokehJS reads mathematics and HTML into other texts; in data, only hovering shows them, escaped."""
    steps = steps_frame(5, kind=HOSTILE, devices=(CPU, HOSTILE))
    steps["host"] = HOSTILE
    tab, _ = tab_of(steps)
    for chart in every(tab["items"], "figure"):
        plot = plot_of(chart)
        for model in plot.references():
            if not isinstance(model, ColumnDataSource):
                values = json.dumps(model.properties_with_values(include_defaults=False), default=str)
                assert "pwned" not in values, model
    assert any("pwned" in json.dumps(chart["figure"]) for chart in every(tab["items"], "figure"))


def test_a_host_can_be_chosen_however_many_there_are():
    steps = pd.concat(
        [steps_frame(6, devices=GPUS).assign(host=f"worker-{i}", duration_ms=float(i + 1)) for i in range(20)],
        ignore_index=True,
    )
    alone = {host: overview_of(of_host, ops_frame()).step_time for host, of_host in steps.groupby("host", sort=False)}
    tab, _ = tab_of(steps, host_step_time=alone)
    switch = next(every(tab["items"], "switch"))
    assert (switch["label"], switch["trait"], switch["value"]) == ("Host", "host", "")
    assert [option["label"] for option in switch["options"]] == ["All hosts", *alone]
    everything = source_of(plot_of(charts({"items": switch["cases"][""]}, "Step time")[0]), "step").data
    assert set(everything["total"]) == {20.0}
    (own,) = charts({"items": switch["cases"]["host-4"]}, "Step time")
    assert set(source_of(plot_of(own), "step").data["total"]) == {5.0}
    assert facts_of({"items": switch["cases"]["host-4"]}, "Step statistics")["Average"] == "5.00 ms"
    # Few devices have a chart each, on the host that they are of.
    few = steps[steps["host"].isin(["worker-0", "worker-1"])].reset_index(drop=True)
    tab, _ = tab_of(few, host_step_time={host: alone[host] for host in ("worker-0", "worker-1")})
    (device, _other) = [each for each in every(tab["items"], "switch") if each["label"] == "Device"]
    assert [option["label"] for option in device["options"]] == ["Slowest device of each step", *GPUS]


def test_where_nothing_was_recorded_that_is_said_once():
    steps = steps_frame(3)[:0]
    tab, recorder = tab_of(steps, ops_frame(0, 0))
    assert [item["kind"] for item in tab["items"]] == ["text", "text", "facts"]
    assert "Nothing was recorded" in texts(tab)
    assert not recorder.frames
