"""The Memory tab: nothing is lost by thinning, each allocator has its own numbers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from bokeh.document import Document
from bokeh.models import Scatter, VStrip

from generate import gpu_capture, pod_captures
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.memory import memory, memory_peak, memory_summary
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.views.memory import memory_tab, size, thinned
from tfprof_widgets.xspace import read
from view_frames import HOSTILE, Recorder, every, without_data


def frames(spaces):
    """The four tables of a report on these hosts."""
    traces = [Trace(read(space.bytes()), f"worker-{i}") for i, space in enumerate(spaces)]
    tables = [memory(trace) for trace in traces]
    made = [tables, [memory_summary(t) for t in tables], [memory_peak(t) for t in tables]]
    if len(traces) > 1:
        made = [[t.assign(host=trace.host) for t, trace in zip(of_kind, traces, strict=True)] for of_kind in made]
    steps = [find_steps(trace).table for trace in traces]
    return [pd.concat(of_kind, ignore_index=True) for of_kind in (*made, steps)]


def tab_of(tables):
    recorder = Recorder()
    tab = memory_tab(recorder, *tables)
    json.dumps(tab, allow_nan=False)
    return tab, recorder


def plot_of(chart):
    return Document.from_json(chart["figure"]["doc"]).roots[0]


def points_of(plot):
    return next(r.data_source.data for r in plot.renderers if "heap" in r.data_source.data)


@pytest.fixture(scope="module")
def tables():
    return frames([gpu_capture(2, 6)])


def test_without_allocations_it_says_why(tables):
    tab, recorder = tab_of([table[:0] for table in tables])
    (item,) = tab["items"]
    assert "host tracer level of 2" in item["text"]
    assert recorder.frames == {}


def test_each_allocator_has_its_facts_chart_and_breakdown(tables):
    memory_table, summary, peak, _ = tables
    tab, recorder = tab_of(tables)
    (switch,) = tab["items"]
    assert [option["label"].split(" (")[0] for option in switch["options"]] == list(summary["allocator"])
    held = recorder.frames["memory_peak"]
    assert len(held) == len(peak)
    for place, (_, allocator) in enumerate(summary.iterrows()):
        items = switch["cases"][f"memory-{place}"]
        facts, row, table = items
        shown = {fact["label"]: fact["value"] for fact in facts["rows"]}
        assert shown["Allocations"] == f"{allocator['allocations']:,}"
        assert shown["Peak in this capture"].startswith(size(allocator["peak_bytes"]))
        mine = memory_table[memory_table["allocator"] == allocator["allocator"]]
        plot = plot_of(row["children"][0])
        data = points_of(plot)
        assert len(data["time"]) == len(mine)
        unit = 2 ** (10 * round(np.log2(allocator["peak_bytes"] / max(data["heap"])) / 10))
        np.testing.assert_allclose(data["heap"] * unit, mine["in_use_bytes"], atol=0.0006 * unit)
        np.testing.assert_allclose(data["fragmentation"], 100 * mine["fragmentation"], atol=0.06)
        mark = next(r.data_source.data for r in plot.renderers if isinstance(r.glyph, Scatter))
        assert mark["x"] == [allocator["peak_time_ms"]]
        assert table["where"] == {"field": "place", "equals": place}
        of_place = held[held["place"] == place]
        assert of_place["total_size_mib"].sum() * 2**20 == pytest.approx(allocator["peak_bytes"])
        assert of_place["share_pct"].sum() == pytest.approx(100)
        assert {column["field"] for column in table["columns"]} == set(held.columns) - {"place"}


def test_every_other_step_is_a_band(tables):
    tab, _ = tab_of(tables)
    plot = plot_of(next(every(tab["items"], "figure")))
    bands = next(r.data_source.data for r in plot.renderers if isinstance(r.glyph, VStrip))
    assert len(bands["from"]) == 3
    assert all(a < b for a, b in zip(bands["from"], bands["to"], strict=True))


def test_thinning_keeps_the_ends_and_every_peak():
    rng = np.random.default_rng(3)
    n = 50_000
    time_ms = np.sort(rng.uniform(0, 1000, n))
    in_use = np.cumsum(rng.integers(-100, 101, n)) + 100_000
    spike = 31_337
    in_use[spike] = 10_000_000
    kept = thinned(time_ms, in_use, 4000)
    assert len(kept) <= 4000
    assert (np.diff(kept) > 0).all()
    assert {0, n - 1, spike, int(in_use.argmin())} <= set(kept.tolist())
    assert len(thinned(time_ms[:4000], in_use[:4000], 4000)) == 4000
    assert len(thinned(np.zeros(9000), np.arange(9000), 4000)) == 2


def test_a_long_history_is_thinned_and_says_so(tables):
    memory_table, summary, peak, steps = tables
    first = memory_table[memory_table["allocator"] == summary["allocator"][0]]
    long = pd.concat([first] * 200, ignore_index=True)
    long["time_ms"] = np.linspace(0, 1000, len(long))
    held = peak[peak["allocator"] == summary["allocator"][0]]
    tab, _ = tab_of([long, summary[:1], held, steps])
    (chart,) = every(tab["items"], "figure")
    drawn = len(points_of(plot_of(chart))["time"])
    assert drawn <= 4000 < len(long)
    assert f"{drawn:,} of {len(long):,} points drawn" in chart["note"]
    assert len(json.dumps(chart)) < 100_000


def test_one_allocation_of_a_hostile_allocator(tables):
    memory_table, *_ = tables
    one = memory_table[:1].assign(
        allocator=pd.Categorical([HOSTILE]), op_name=pd.Categorical([HOSTILE]), fragmentation=np.nan
    )
    tab, recorder = tab_of([one, memory_summary(one), memory_peak(one), tables[3][:0]])
    (chart,) = every(tab["items"], "figure")
    assert "onerror" not in without_data(chart["figure"])
    assert "fragmentation" not in points_of(plot_of(chart))
    assert HOSTILE in set(recorder.frames["memory_peak"]["op_name"])


def test_64_hosts_stay_small():
    tab, recorder = tab_of(frames(pod_captures(64, 1, 3)))
    (switch,) = tab["items"]
    assert len(switch["options"]) == 64
    assert len(list(every(tab["items"], "figure"))) == len(set(recorder.frames["memory_peak"]["place"]))
    assert len(json.dumps(tab)) < 64 * 16_000


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(0, "0 B"), (512, "512 B"), (2048, "2.00 KiB"), (35_651_584, "34.00 MiB"), (68_719_476_736, "64.00 GiB")],
)
def test_sizes_in_words(n_bytes, words):
    assert size(n_bytes) == words
