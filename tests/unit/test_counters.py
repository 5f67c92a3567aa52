"""Counters of the timeline: what they count, and where they stand."""

from __future__ import annotations

import numpy as np
import pandas as pd

from generate import Space
from tfprof_widgets.analysis.counters import counters
from tfprof_widgets.report import Report, load
from tfprof_widgets.views.timeline import pack_counters
from tfprof_widgets.xspace import read


def report() -> Report:
    space = Space(hostname="w")
    host = space.plane("/host:CPU")
    python = host.line("python", id=1)
    python.event("train", 0, 900, step_num=0, _r=1)
    data = host.line("tf_data", id=2)
    for i, fill in enumerate((2, 2, 0, 1)):
        data.event("Iterator::Root::Prefetch#buffer=2#", 100 * i, 50, buffered_elements=fill)
    for thread, (start, length) in enumerate(((100, 100), (150, 100), (200, 10))):
        line = host.line(f"tf_Compute/{thread}", id=3 + thread)
        line.event("ExecutorState::Process", start, length)
        line.event("ExecutorState::Process", start + 1, 2)  # within the other: one thread is one thread
    return Report([read(space.bytes())])


def found(report: Report) -> dict[str, list[tuple[float, int]]]:
    made = counters(report.hosts[0].trace, report.memory)
    return {c.label: list(zip((c.time_ps / 1e6).tolist(), c.value.tolist(), strict=True)) for c in made}


def test_buffers_and_threads_are_counted() -> None:
    assert found(report()) == {
        "Buffer Prefetch": [(0, 2), (200, 0), (300, 1)],
        # At 200 one thread ends as another begins.
        "Executor threads": [(100, 1), (150, 2), (210, 1), (250, 0)],
    }


def test_they_stand_below_the_steps() -> None:
    data = report().timelines[0]
    assert [section.title for section in data.sections] == ["Steps", "Counters", "Host Threads"]
    rows = data.tracks[data.tracks["kind"] == "counter"]
    assert rows[["section", "first", "count"]].to_numpy().tolist() == [[1, 0, 3], [1, 3, 4]]
    item = next(tab for tab in report().payload.tabs if tab["id"] == "trace")["items"][0]
    assert item["counters"] == {"table": "timeline_0_counters", "units": ["", ""], "scales": [1, 1]}


def test_memory_is_that_of_the_table(capture) -> None:
    made = load(capture("gpu_w0"))
    memory = made.memory
    some = {c.label: c for c in counters(made.hosts[0].trace, memory)}
    of = memory[memory["allocator"] == "GPU_4_bfc"]
    counter = some["Memory GPU_4_bfc"]
    assert counter.value.max() == of["in_use_bytes"].max()
    at = np.searchsorted(counter.time_ps, np.rint(of["time_ms"] * 1e9).astype(np.int64), side="right") - 1
    last = of.groupby("time_ms")["in_use_bytes"].transform("last")
    np.testing.assert_array_equal(counter.value[at], last)
    packed = pack_counters([counter], 1000)
    value = sum(packed[f"value{i}"].to_numpy().astype(np.int64) << (8 * i) for i in range(4) if f"value{i}" in packed)
    np.testing.assert_array_equal(value * np.gcd.reduce(counter.value), counter.value)


def test_they_are_in_the_order_of_their_numbers() -> None:
    space = Space()
    line = space.plane("/host:CPU").line("python", id=1)
    for i, gpu in enumerate((7, 1, 10, 2)):
        held = {"bytes_allocated": 64, "allocation_bytes": 64, "requested_bytes": 64, "peak_bytes_in_use": 64}
        line.event("MemoryAllocation", 10 * i, 0, allocator_name=f"GPU_{gpu}_bfc", **held)
    made = Report([read(space.bytes())])
    labels = [counter.label for counter in counters(made.hosts[0].trace, made.memory)]
    assert labels == ["Memory GPU_1_bfc", "Memory GPU_2_bfc", "Memory GPU_7_bfc", "Memory GPU_10_bfc"]


def test_a_profile_that_counts_nothing_has_no_counters() -> None:
    space = Space()
    space.plane("/host:CPU").line("python", id=1).event("x", 0, 1)
    made = Report([read(space.bytes())])
    assert counters(made.hosts[0].trace, made.memory) == []
    assert isinstance(made.timelines[0].tracks, pd.DataFrame)
    assert "counters" not in next(tab for tab in made.payload.tabs if tab["id"] == "trace")["items"][0]
