"""The Memory tab: nothing is lost by thinning, each allocator has its own numbers."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from bokeh.document import Document
from bokeh.models import Scatter, VStrip

from generate import gpu_capture, pod_captures
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.memory import memory, memory_peak, memory_summary
from tfprof_widgets.analysis.memory_history import memory_history
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.views.memory import _steps_on, memory_tab, pack_history, size
from tfprof_widgets.xspace import read
from view_frames import HOSTILE, Recorder, every, without_data


def frames(spaces):
    """A report's memory, its summary, its history and its steps, of these hosts."""
    traces = [Trace(read(space.bytes()), f"worker-{i}") for i, space in enumerate(spaces)]
    tables = [memory(trace) for trace in traces]
    made = [tables, [memory_summary(t) for t in tables]]
    if len(traces) > 1:
        made = [[t.assign(host=trace.host) for t, trace in zip(of_kind, traces, strict=True)] for of_kind in made]
    steps = [find_steps(trace).table for trace in traces]
    memory_table, summary, steps = (pd.concat(of_kind, ignore_index=True) for of_kind in (*made, steps))
    return [memory_table, summary, memory_history(tables), steps]


def tab_of(tables):
    recorder = Recorder()
    tab = memory_tab(recorder, *tables)
    json.dumps(tab, allow_nan=False)
    return tab, recorder


def plots_of(chart):
    """The chart's figures: one, or two below each other."""
    root = Document.from_json(chart["figure"]["doc"]).roots[0]
    return getattr(root, "children", [root])


def plot_of(chart):
    return plots_of(chart)[0]


def unpacked(frame, name):
    columns = [column for column in frame if column.startswith(name)]
    return sum(frame[column].to_numpy(np.int64) << (8 * i) for i, column in enumerate(columns))


def points_of(plot):
    return next(r.data_source.data for r in plot.renderers if "heap" in r.data_source.data)


@pytest.fixture(scope="module")
def tables():
    return frames([gpu_capture(2, 6)])


def test_without_allocations_it_says_why(tables):
    empty = tables[0][:0]
    tab, recorder = tab_of([empty, tables[1][:0], memory_history([empty]), tables[3][:0]])
    (item,) = tab["items"]
    assert "host tracer level of 2" in item["text"]
    assert recorder.frames == {}


def test_each_allocator_has_its_facts_chart_and_breakdown(tables):
    memory_table, summary, history, _ = tables
    tab, recorder = tab_of(tables)
    (switch,) = tab["items"]
    assert [option["label"].split(" (")[0] for option in switch["options"]] == list(summary["allocator"])
    assert len(recorder.frames["memory_events"]) == len(memory_table)
    assert recorder.frames["memory_blocks"] is history.blocks
    peaks = memory_peak(memory_table)
    for place, (_, allocator) in enumerate(summary.iterrows()):
        items = switch["cases"][f"memory-{place}"]
        facts, chart = items
        shown = {fact["label"]: fact["value"] for fact in facts["rows"]}
        assert shown["Allocations"] == f"{allocator['allocations']:,}"
        assert shown["Peak in this capture"].startswith(size(allocator["peak_bytes"]))
        mine = memory_table[memory_table["allocator"] == allocator["allocator"]]
        plot, below = plots_of(chart)
        assert plot.x_range is below.x_range
        # Filled by the browser, from the events.
        assert set(points_of(plot)) == {"time", "heap", "fragmentation"}
        assert points_of(below) is points_of(plot)
        assert chart["scale"] == 2 ** (10 * int(np.log2(allocator["peak_bytes"]) // 10))
        mark = next(r.data_source.data for r in plot.renderers if isinstance(r.glyph, Scatter))
        assert mark["x"] == [allocator["peak_time_ms"]]
        assert chart["count"] == len(mine)
        assert set(history.events["place"][chart["first"] : chart["first"] + chart["count"]]) == {place}
        at_peak = mine["in_use_bytes"].to_numpy()[chart["peak"]]
        assert at_peak == peaks.loc[peaks["allocator"] == allocator["allocator"], "total_bytes"].sum()
        assert {column["field"] for column in chart["table"]["columns"]} == {
            *("op_name", "size_mib", "requested_size_mib", "occurrences", "total_size_mib", "share_pct"),
            *("region_type", "data_type", "shape"),
        }


def test_the_history_is_packed_and_can_be_unpacked():
    history = frames([gpu_capture(2, 3), gpu_capture(2, 4)])[2]
    packed = pack_history(history)
    begins, ends = unpacked(packed, "begins"), unpacked(packed, "ends")
    newest, got = -1, []
    for code, end in zip(begins.tolist(), ends.tolist(), strict=True):
        newest += code == 1
        got.append(
            (-1 if code == 0 else newest if code == 1 else newest - code + 2, -1 if end == 0 else newest - end + 1)
        )
    assert got == list(zip(history.events["begins"], history.events["ends"], strict=True))
    starts = history.events.groupby("place").head(1).index
    assert unpacked(packed, "fragmentation").tolist() == np.rint(1000 * history.events["fragmentation"] + 1).tolist()
    # An allocator that neither grows nor shrinks has its whole size at its first event, and no change after it.
    changed = np.flatnonzero(unpacked(packed, "whole"))
    assert changed.tolist() == starts.tolist()
    for name, column in (("time", history.events["time_ms"] * 1e6), ("other", history.events["other_bytes"])):
        change = unpacked(packed, name)
        if name == "other":
            change = np.where(change % 2, -(change + 1) // 2, change // 2)
        total = np.cumsum(change)
        before = np.repeat(total[starts] - change[starts], np.diff(np.append(starts, len(total))))
        np.testing.assert_allclose(total - before, column, atol=0.5)


def test_bands_are_the_steps_of_the_memorys_own_device():
    steps = pd.DataFrame({"step": [0, 0], "device": ["/device:GPU:4", "/device:GPU:16"], "start_ms": [1.0, 9.0]})
    assert _steps_on(steps, "GPU_4_bfc")["start_ms"].tolist() == [1.0]
    assert _steps_on(steps, "GPU_6_bfc")["start_ms"].tolist() == [1.0, 9.0]
    assert _steps_on(steps, "gpu_host_bfc")["start_ms"].tolist() == [1.0, 9.0]


def test_every_other_step_is_a_band(tables):
    tab, _ = tab_of(tables)
    plot = plot_of(next(every(tab["items"], "held")))
    bands = next(r.data_source.data for r in plot.renderers if isinstance(r.glyph, VStrip))
    assert len(bands["from"]) == 3
    assert all(a < b for a, b in zip(bands["from"], bands["to"], strict=True))


def test_one_allocation_of_a_hostile_allocator(tables):
    memory_table, *_ = tables
    one = memory_table[:1].assign(
        allocator=pd.Categorical([HOSTILE]), op_name=pd.Categorical([HOSTILE]), fragmentation=np.nan
    )
    tab, recorder = tab_of([one, memory_summary(one), memory_history([one]), tables[3][:0]])
    (chart,) = every(tab["items"], "held")
    assert len(plots_of(chart)) == 1
    assert "onerror" not in without_data(chart["figure"])
    assert "fragmentation" not in points_of(plot_of(chart))
    assert HOSTILE in set(recorder.frames["memory_blocks"]["op_name"])


def test_64_hosts_stay_small():
    tab, recorder = tab_of(frames(pod_captures(64, 1, 3)))
    (switch,) = tab["items"]
    assert len(switch["options"]) == 64
    charts = list(every(tab["items"], "held"))
    assert sum(chart["count"] for chart in charts) == len(recorder.frames["memory_events"])
    # All hosts run the same model.
    assert len(recorder.frames["memory_blocks"]) < 20
    # One figure that is filled in the browser: nearly the same text for each.
    assert len(gzip.compress(json.dumps(tab).encode())) < 64 * 260


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(0, "0 B"), (512, "512 B"), (2048, "2.00 KiB"), (35_651_584, "34.00 MiB"), (68_719_476_736, "64.00 GiB")],
)
def test_sizes_in_words(n_bytes, words):
    assert size(n_bytes) == words
