"""Memory of real and generated captures, against XProf's memory profile."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from generate import cpu_fit_capture, gpu_capture
from oracle import CAPTURES, xprof
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.memory import BEFORE_CAPTURE, memory, memory_peak, memory_summary
from tfprof_widgets.xspace import read

pytestmark = pytest.mark.oracle


def compare(data, theirs: dict) -> None:
    """Check every number of the summary that XProf has."""
    trace = Trace(read(data))
    table = memory(trace)
    mine = memory_summary(table).set_index("allocator")
    profiles = theirs["memoryProfilePerAllocator"]
    # XProf shows the NUL that Windows builds put over the first letter.
    names = {name.replace("\0PU", "GPU").replace("\0pu", "gpu"): name for name in profiles}
    assert set(mine.index) == set(names)
    for name, row in mine.iterrows():
        summary = profiles[names[name]]["profileSummary"]
        at_peak = summary["peakStats"]
        assert row["peak_bytes"] == int(at_peak["peakBytesInUse"])
        assert row["stack_bytes"] == int(at_peak["stackReservedBytes"])
        assert row["heap_bytes"] == int(at_peak["heapAllocatedBytes"])
        assert row["free_bytes"] == int(at_peak["freeMemoryBytes"])
        assert row["capacity_bytes"] == int(summary["memoryCapacity"])
        # XProf's is the last event's it looked at, which may be below its own window peak.
        assert row["lifetime_peak_bytes"] >= max(int(summary["peakBytesUsageLifetime"]), row["peak_bytes"])
        # Of several equal peaks XProf takes the last one it looks at, by thread and not by time.
        peaks = table[(table["allocator"] == name) & (table["in_use_bytes"] == row["peak_bytes"])]
        assert row["peak_time_ms"] == peaks["time_ms"].max()
        assert np.isclose(peaks["fragmentation"], float(at_peak["fragmentation"]), rtol=1e-6, equal_nan=True).any()
        # Its times are relative to the line's start.
        starts = {0, *trace.space.line_timestamp_ns.tolist()}
        times_ms = {(int(summary["peakStatsTimePs"]) + start * 1000) / 1e9 for start in starts}
        assert any(np.isclose(peaks["time_ms"], t, rtol=0, atol=1e-9).any() for t in times_ms)
        assert memory_peak(table).groupby("allocator")["total_bytes"].sum()[name] == row["peak_bytes"]


@pytest.mark.parametrize("name", CAPTURES)
def test_peaks_are_xprofs(capture, xprof_of, name):
    compare(capture(name), xprof_of(name, "memory_profile"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: cpu_fit_capture(epochs=1, batches=10),
        lambda: gpu_capture(devices=2, steps=5),
        lambda: gpu_capture(steps=2, dialect="old"),
    ],
)
def test_peaks_of_generated_captures_are_xprofs(make):
    data = make().bytes()
    compare(data, xprof(data, "memory_profile"))


def test_all_events_are_counted_not_the_thousand_that_xprof_draws(capture, xprof_of):
    summary = memory_summary(memory(Trace(read(capture("cpu_fit")))))
    assert summary[["allocations", "deallocations"]].to_numpy().tolist() == [[1027, 1027]]
    drawn = xprof_of("cpu_fit", "memory_profile")["memoryProfilePerAllocator"]["mklcpu"]["sampledTimelineSnapshots"]
    assert len(drawn) == 1000


def test_the_lifetime_peak_is_not_below_the_window_peak_as_xprofs_is(capture, xprof_of):
    row = memory_summary(memory(Trace(read(capture("gpu_w0"))))).set_index("allocator").loc["GPU_4_bfc"]
    theirs = xprof_of("gpu_w0", "memory_profile")["memoryProfilePerAllocator"]["GPU_4_bfc"]["profileSummary"]
    assert int(theirs["peakBytesUsageLifetime"]) < int(theirs["peakStats"]["peakBytesInUse"])
    assert row["lifetime_peak_bytes"] == row["peak_bytes"] == 6_208_853_760


def breakdown(theirs: dict, allocator: str) -> pd.DataFrame:
    profile = theirs["memoryProfilePerAllocator"][allocator]
    rows = []
    for active in profile["activeAllocations"]:
        index = int(active["snapshotIndex"])
        if index >= 0:
            block = profile["memoryProfileSnapshots"][index]["activityMetadata"]
            size, requested = int(block["allocationBytes"]), int(block["requestedBytes"])
            rows.append(
                (
                    block["tfOpName"],
                    size,
                    requested,
                    block["regionType"],
                    block["tensorShape"],
                    int(active["numOccurrences"]),
                )
            )
    return pd.DataFrame(rows, columns=["op_name", "bytes", "requested_bytes", "region_type", "shape", "occurrences"])


# One step holds the whole capture here, so XProf's replay (of the peak's step only) misses nothing.
@pytest.mark.parametrize("allocator", ["GPU_4_bfc", "GPU_6_bfc", "GPU_1_bfc"])
def test_the_breakdown_of_one_step_is_xprofs(capture, xprof_of, allocator):
    peak = memory_peak(memory(Trace(read(capture("gpu_w0")))))
    mine = peak[(peak["allocator"] == allocator) & (peak["op_name"] != BEFORE_CAPTURE)]
    theirs = breakdown(xprof_of("gpu_w0", "memory_profile"), allocator)
    columns = list(theirs.columns)
    mine, theirs = (t.groupby(columns[:-1], as_index=False)["occurrences"].sum()[columns] for t in (mine, theirs))
    assert len(theirs) > 15
    assert mine.astype(str).to_numpy().tolist() == theirs.astype(str).to_numpy().tolist()


@pytest.mark.parametrize("allocator", ["GPU_4_bfc", "GPU_6_bfc"])
def test_memory_from_before_is_called_so(capture, xprof_of, allocator):
    peak = memory_peak(memory(Trace(read(capture("gpu_w0"))))).set_index(["allocator", "op_name"])
    special = xprof_of("gpu_w0", "memory_profile")["memoryProfilePerAllocator"][allocator]["specialAllocations"]
    assert [s["tfOpName"] for s in special] == ["unused preallocated device memory"]
    assert peak.loc[(allocator, BEFORE_CAPTURE), "total_bytes"] == int(special[0]["allocationBytes"]) == 4_013_337_088


def test_blocks_of_earlier_steps_are_live_too(capture, xprof_of):
    """XProf calls all memory at the peak of cpu_loop "unused preallocated", as its replay starts with the peak's step."""
    peak = memory_peak(memory(Trace(read(capture("cpu_loop"))))).set_index("op_name")
    special = xprof_of("cpu_loop", "memory_profile")["memoryProfilePerAllocator"]["mklcpu"]["specialAllocations"]
    assert int(special[0]["allocationBytes"]) == 11_767_808
    assert peak.loc[BEFORE_CAPTURE, "total_bytes"] == 2_076_672
    assert peak.loc["sequential_1/conv2d_1/Relu", "total_bytes"] == 4_153_344
