"""The Input pipeline tab, from played and real pipelines."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from bokeh.document import Document
from bokeh.models import HBar, Quad

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from generate.input_pipeline import input_pipeline_capture
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.input_pipeline import InputPipeline, input_pipeline
from tfprof_widgets.analysis.op_stats import op_stats
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.views.input_pipeline import find_step_chart, input_pipeline_tab
from tfprof_widgets.views.overview import overview_tab
from tfprof_widgets.views.spec import ms
from tfprof_widgets.xspace import read
from view_frames import HOSTILE, Recorder, every, ops_frame, overview_of, steps_frame, without_data


def analysis_of(*spaces: Space) -> InputPipeline:
    traces = [Trace(read(space.bytes()), f"worker-{i}") for i, space in enumerate(spaces)]
    return input_pipeline(traces, [find_steps(trace) for trace in traces], op_stats(traces))


def tab_of(analysis: InputPipeline, chart=None):
    recorder = Recorder()
    tab = input_pipeline_tab(recorder, analysis, chart)
    json.dumps(tab, allow_nan=False)
    return tab, recorder


def plot_of(chart):
    return Document.from_json(chart["figure"]["doc"]).roots[0]


def data_of(chart, glyph) -> dict:
    return next(r.data_source.data for r in plot_of(chart).renderers if isinstance(r.glyph, glyph))


def charts(tab, title: str):
    return [chart for chart in every(tab["items"], "figure") if chart["title"].startswith(title)]


@pytest.fixture(scope="module")
def slow() -> InputPipeline:
    """A map function that takes five times as long as a step."""
    return analysis_of(input_pipeline_capture(12, map_us=5000, step_us=1000).space)


def test_three_sections_in_the_guides_order(slow):
    tab, _ = tab_of(slow)
    titles = [item["title"] for item in every(tab["items"], "section")]
    assert titles == ["Device-side analysis", "Host-side analysis", "Stages of the pipeline"]
    first = tab["items"][0]
    assert (first["kind"], first["level"], first["text"]) == ("text", "warning", slow.summary.statement)
    change = next(every(tab["items"], "change"))
    assert "".join(part["text"] for part in change["change"]) == slow.summary.suggestion
    assert any(part.get("code") for part in change["change"])


def test_the_bottleneck_is_marked_and_nothing_else(slow):
    tab, _ = tab_of(slow)
    (stages,) = every(tab["items"], "stages")
    assert [row["name"] for row in stages["rows"]] == list(slow.tf_data["name"])
    assert [row["depth"] for row in stages["rows"]] == list(slow.tf_data["depth"])
    assert [row["name"] for row in stages["rows"] if "marked" in row] == ["ParallelMapV2"]
    marked = next(row for row in stages["rows"] if "marked" in row)
    by_title = dict(zip([column["title"] for column in stages["columns"]][1:], marked["cells"], strict=True))
    assert by_title["Parallel calls"]["text"] == "1"
    assert by_title["Time per batch"]["share"] == 1
    waited = sum(row["cells"][0].get("share", 0) for row in stages["rows"])
    assert waited == pytest.approx(1)


def test_a_pipeline_that_keeps_up_has_no_bottleneck():
    analysis = analysis_of(input_pipeline_capture(12, map_us=50, step_us=3000).space)
    tab, _ = tab_of(analysis)
    (stages,) = every(tab["items"], "stages")
    assert not any("marked" in row for row in stages["rows"])
    assert sum("waited for most" in row["tags"] for row in stages["rows"]) == 1
    assert tab["items"][0]["level"] == "info"


def test_waiting_of_each_step(slow):
    tab, _ = tab_of(slow)
    (chart,) = charts(tab, "Waiting for input")
    data = data_of(chart, Quad)
    np.testing.assert_allclose(data["mean"], slow.per_step["input_ms"], rtol=1e-5)
    assert list(data["step"]) == [str(step) for step in slow.per_step["step"]]
    assert "low" not in data


def test_the_range_over_devices(slow):
    analysis = analysis_of(gpu_capture(3, 5, input_us=2000))
    (chart,) = charts(tab_of(analysis)[0], "Waiting for input")
    data = data_of(chart, Quad)
    np.testing.assert_allclose(data["low"], analysis.per_step["input_min_ms"], rtol=1e-5)
    np.testing.assert_allclose(data["high"], analysis.per_step["input_max_ms"], rtol=1e-5)
    assert "Grey" in chart["note"]
    # Devices take different times, so the share is of all their time, not of one step's.
    assert "of the devices' time in" in analysis.summary.statement


def test_thousands_of_steps_are_grouped_and_none_is_lost(slow):
    n = 3001
    per_step = pd.concat([slow.per_step[:1]] * n, ignore_index=True)
    per_step["step"] = np.arange(n)
    per_step["input_max_ms"] = per_step["input_min_ms"] = per_step["input_ms"] = np.arange(n) / 100
    (chart,) = charts(tab_of(dataclasses.replace(slow, per_step=per_step))[0], "Waiting for input")
    data = data_of(chart, Quad)
    assert len(data["mean"]) <= 500
    assert max(data["high"]) == pytest.approx(30)
    assert data["step"][-1].endswith(" to 3000")
    assert "average of 7 steps" in chart["note"]


def test_a_long_first_step_is_named_above_the_axis(slow):
    per_step = slow.per_step.assign(averaged=True)
    per_step.loc[0, ["input_ms", "input_min_ms", "input_max_ms", "averaged"]] = [900.0, 900.0, 900.0, False]
    (chart,) = charts(tab_of(dataclasses.replace(slow, per_step=per_step))[0], "Waiting for input")
    assert "Above the axis: step 0 (900 ms)" in chart["note"]
    assert plot_of(chart).y_range.end < 10


def test_the_overviews_chart_is_the_same_item(slow):
    steps = pd.concat([steps_frame(20), steps_frame(9, kind="test")], ignore_index=True)
    items = overview_tab(Recorder(), overview_of(steps, ops_frame()), steps)["items"]
    chart = find_step_chart(items)
    assert chart["title"] == "Step time: 20 steps (train)"
    tab, _ = tab_of(slow, chart)
    assert any(item is chart for item in tab["items"])
    assert find_step_chart([]) is None


def test_host_side_has_the_four_categories_and_all_columns(slow):
    tab, recorder = tab_of(slow)
    (chart,) = charts(tab, "Input-processing time")
    data = data_of(chart, HBar)
    np.testing.assert_allclose(np.array(data["right"]) - np.array(data["left"]), slow.host_side["time_ms"], atol=1e-6)
    legend = next(item for item in every(tab["items"], "facts") if any("color" in row for row in item["rows"]))
    assert [row["label"] for row in legend["rows"]] == list(data["category"])
    assert all(row["hint"] for row in legend["rows"])
    (table,) = every(tab["items"], "table")
    assert {column["field"] for column in table["columns"]} == set(recorder.frames["input_ops"].columns)
    assert recorder.frames["input_ops"] is slow.input_ops


def test_a_real_fit_has_statistics_of_each_kind():
    analysis = analysis_of(cpu_fit_capture())
    tab, _ = tab_of(analysis)
    row = analysis.device_side.iloc[0]
    statistics = next(item for item in every(tab["items"], "facts") if item["title"] == "Step-time statistics")
    values = {fact["label"]: fact["value"] for fact in statistics["rows"]}
    assert set(values) == {"Average", "Standard deviation", "Range", "Median"}
    assert float(values["Average"].split()[0]) == pytest.approx(row["mean"], rel=0.01)
    assert values["Range"] == f"{ms(row['min'])} to {ms(row['max'])}"


def test_an_empty_capture_says_what_is_missing():
    space = Space("empty")
    space.plane("/host:CPU").line("python", id=1).event("nothing", 0, 1)
    tab, recorder = tab_of(analysis_of(space))
    words = " ".join(item["text"] for item in every(tab["items"], "text"))
    for reason in ("No steps and no input operations", "tfprof_widgets.step(", "tf.data", "--host-level 2"):
        assert reason in words
    assert len(tab["items"]) == 1  # said once
    assert list(every(tab["items"], "figure")) == []
    assert recorder.frames == {}


def test_hostile_names_stay_out_of_figures(slow):
    hostile = dataclasses.replace(
        slow,
        summary=dataclasses.replace(slow.summary, statement=HOSTILE, stage=HOSTILE, kind=HOSTILE),
        per_step=slow.per_step.assign(kind=HOSTILE),
        device_side=slow.device_side.assign(kind=HOSTILE),
        tf_data=slow.tf_data.assign(name=HOSTILE, stage=HOSTILE),
        pipelines=slow.pipelines.assign(name=HOSTILE, statement=HOSTILE, suggestion=HOSTILE),
    )
    tab, _ = tab_of(hostile)
    for chart in every(tab["items"], "figure"):
        assert "onerror" not in without_data(chart["figure"])


def test_64_hosts_have_a_choice_and_stay_small():
    analysis = analysis_of(*pod_captures(64, 1, 3))
    tab, _ = tab_of(analysis)
    switch = next(item for item in every(tab["items"], "switch") if item["id"] == "input_pipeline_of")
    assert len(switch["options"]) == len(analysis.pipelines) >= 64
    assert {option["label"].split(":")[0] for option in switch["options"]} == {f"worker-{i}" for i in range(64)}
    assert len(json.dumps(tab)) < 64 * 8000
