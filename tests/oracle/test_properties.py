"""Profiles that hypothesis draws, tool by tool against XProf: equal wherever XProf gives a number.

What differs on purpose is told apart here by name; `docs/differences-from-xprof.md` has the reasons.
"""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st

from generate import Space
from generate.strategies import (
    ITERATOR_NAMES,
    OP_NAMES,
    OTHER_NAMES,
    allocations,
    gpu_host,
    marked_steps,
    new_line,
    tidy_spans,
    wild_spans,
    xprof_loses_none,
)
from oracle import frame, xprof
from tfprof_widgets.analysis.device import device_events
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import read

pytestmark = pytest.mark.oracle

# The same examples each time: a failure is a change of ours, not luck.
few = settings(
    max_examples=int(os.environ.get("TFPROF_EXAMPLES", "60")),  # more, to look for what is not known yet
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def report_of(*spaces) -> Report:
    return Report([read(space.bytes(), name=f"host{i}") for i, space in enumerate(spaces)])


# ---- ops -----------------------------------------------------------------------------------------------------


@st.composite
def threads(draw, hostname="host"):
    """A host with tidy and wild threads; whether XProf loses any of its events; and the wild threads' names."""
    space = Space(hostname)
    plane = space.plane("/host:CPU", id=draw(st.integers(0, 3)))
    used: set[int] = set()
    whole = True
    for number in range(draw(st.integers(0, 3))):
        line = new_line(draw, plane, draw(st.sampled_from(("python", "", "tf_Compute/1", "Steps"))), used)
        if draw(st.integers(0, 3)):
            spans = draw(tidy_spans(st.sampled_from(OP_NAMES + ITERATOR_NAMES + OTHER_NAMES)))
            assert xprof_loses_none(spans)
        else:
            spans = draw(wild_spans(lambda i, number=number: f"wild{hostname}{number}/op{i}:Op"))
            whole &= xprof_loses_none(spans)
        note(f"{number} {spans}")
        for span in spans:
            span.write(line)
    return space, whole


def ops_of(table, side):
    return table[table["host_or_device"] == side].set_index("operation")


def equal(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours, float), np.asarray(theirs, float), rtol=0, atol=1e-6)


@few
@given(st.lists(threads(), min_size=1, max_size=2))
def test_host_ops(drawn):
    spaces, whole = [space for space, _ in drawn], all(whole for _, whole in drawn)
    theirs = ops_of(frame(xprof([space.bytes() for space in spaces], "framework_op_stats")[0]), "Host")
    ours = report_of(*spaces).ops.set_index("name")
    common = theirs.index.intersection(ours.index)
    a, b = theirs.loc[common], ours.loc[common]
    np.testing.assert_array_equal(b["occurrences"], a["occurrences"])
    equal(b["total_time_us"].drop("IDLE", errors="ignore"), a["total_time"].drop("IDLE", errors="ignore"))
    assert b["type"].tolist() == a["type"].tolist()
    # XProf has an IDLE of 0 where no op is.
    missing = set(theirs.index) - set(common)
    assert not missing or (missing == {"IDLE"} and ours.empty and theirs.loc["IDLE", "total_time"] == 0)
    if whole:
        assert set(ours.index) == set(common)
        for mine, column in (
            ("self_time_us", "total_self_time"),
            ("total_time_us", "total_time"),
            ("avg_time_us", "avg_time"),
        ):
            equal(b[mine], a[column])
        for mine, column in (("host_self_time_pct", "host_total_self_time_percent"),):
            equal(b[mine], 100 * a[column])
    else:  # what it loses is here, and its time is taken off the op around it
        lost = ours.index.difference(common)
        assert all(name.startswith("wild") for name in lost)
        ops = common.drop("IDLE", errors="ignore")
        assert (b.loc[ops, "self_time_us"] <= a.loc[ops, "total_self_time"] + 1e-6).all()
        tidy = [name for name in common if not name.startswith("wild") and name != "IDLE"]
        equal(b.loc[tidy, "self_time_us"], a.loc[tidy, "total_self_time"])


@few
@given(st.lists(gpu_host(), min_size=1, max_size=2))
def test_device_ops(spaces):
    theirs = ops_of(frame(xprof([space.bytes() for space in spaces], "framework_op_stats")[0]), "Device")
    ops = report_of(*spaces).ops
    ours = ops[ops["host_or_device"] == "Device"].set_index("name")
    named = theirs.index.drop("IDLE", errors="ignore")
    # Kernels and copies of no op have rows of their own here.
    own = {"unattributed", "MemcpyH2D", "MemcpyD2H", "Memset", "ncclKernel_AllReduce"}
    assert set(ours.index) - set(named) <= {"IDLE", *own}
    # What was not measured (a duration of 0) XProf counts as well.
    unmeasured = ops_with_an_event_of_no_duration(spaces)
    assert (theirs.loc[named.difference(ours.index), "total_time"] == 0).all()
    assert set(named.difference(ours.index)) <= unmeasured
    named = named.intersection(ours.index)
    equal(ours.loc[named, "total_time_us"], theirs.loc[named, "total_time"])
    equal(ours.loc[named, "self_time_us"], theirs.loc[named, "total_self_time"])
    assert (ours.loc[named, "occurrences"] > 0).all()
    named = named[~named.isin(unmeasured)]
    a, b = theirs.loc[named], ours.loc[named]
    # An op that ran other kernels on another device is counted on each, where XProf takes the most frequent kernel of all.
    assert (b["occurrences"] >= a["occurrences"]).all()
    if sum(plane.name.startswith(b"/device") for space in spaces for plane in space.message.planes) == 1:
        assert b["occurrences"].tolist() == a["occurrences"].tolist()


def ops_with_an_event_of_no_duration(spaces):
    found = set()
    for space in spaces:
        devices = device_events(Trace(read(space.bytes())))
        code = devices.op_code[~devices.is_measured & (devices.op_code >= 0)]
        found |= {devices.op_names[c] for c in code}
    return found


KERNEL_KEY = ["kernel_name", "registers_per_thread", "shared_memory_bytes", "block_dim", "grid_dim", "op_name"]


@few
@given(gpu_host())
def test_kernels(space):
    theirs = frame(xprof(space.bytes(), "kernel_stats")).rename(columns={"shmem_bytes": "shared_memory_bytes"})
    ours = report_of(space).kernels
    if ours.empty:
        assert theirs.empty
        return
    # XProf tells static from dynamic shared memory, whose sum it shows.
    a = theirs.groupby(KERNEL_KEY).agg(
        occurrences=("occurrences", "sum"), total_time_us=("total_duration_us", "sum"), min_time_us=("min_duration_us", "min"),
        max_time_us=("max_duration_us", "max"), uses_tensor_core=("is_kernel_using_tensor_core", "max"),
        tensor_core_eligible=("is_op_tensor_core_eligible", "max"),
    )  # fmt: skip
    b = ours.set_index(KERNEL_KEY).sort_index()[list(a.columns)]
    a, b = (table.sort_index().astype(float) for table in (a, b))
    # XProf calls no kernel of an unknown op eligible, not even one that does use Tensor Cores.
    unknown = a.index.get_level_values("op_name") == ""
    a.loc[unknown, "tensor_core_eligible"] = a.loc[unknown, "uses_tensor_core"]
    pd.testing.assert_frame_equal(b, a, check_index_type=False, atol=1e-6)


@few
@given(allocations())
def test_memory(space):
    theirs = xprof(space.bytes(), "memory_profile")["memoryProfilePerAllocator"]
    report = report_of(space)
    ours = report.memory_summary.set_index("allocator")
    assert set(ours.index) == set(theirs)
    for name, row in ours.iterrows():
        summary, events = theirs[name]["profileSummary"], report.memory.query("allocator == @name")
        at_peak = summary["peakStats"]
        assert row["peak_bytes"] == int(at_peak["peakBytesInUse"])
        assert row["heap_bytes"] == int(at_peak["heapAllocatedBytes"])
        assert row["capacity_bytes"] == int(summary["memoryCapacity"])
        assert row["lifetime_peak_bytes"] >= max(int(summary["peakBytesUsageLifetime"]), row["peak_bytes"])
        # Of equal peaks XProf takes the one that it looks at last, thread by thread.
        peaks = events[events["in_use_bytes"] == row["peak_bytes"]]
        assert int(summary["peakStatsTimePs"]) / 1e9 in peaks["time_ms"].tolist()
        assert float(at_peak["fragmentation"]) in peaks["fragmentation"].tolist()
        drawn = [s["activityMetadata"]["memoryActivity"] for s in theirs[name]["sampledTimelineSnapshots"]]
        assert row["allocations"] == drawn.count("ALLOCATION")
        assert row["deallocations"] == drawn.count("DEALLOCATION")
        held = report.memory_peak.query("allocator == @name")
        assert held["total_bytes"].sum() == row["peak_bytes"]


@few
@given(threads())
def test_input_ops(drawn):
    space, _ = drawn
    theirs = frame(xprof(space.bytes(), "input_pipeline_analyzer")[2])
    ours = report_of(space).input_ops
    equal(ours["count"], theirs["count"])
    for column, mine in (("timeInMs", "total_time_ms"), ("selfTimeInMs", "self_time_ms")):
        equal(ours[mine], theirs[column])
    equal(ours["self_time_pct"], 100 * theirs["selfTimeInPercent"].astype(float))
    assert ours["name"].tolist() == theirs["opName"].tolist()
    assert ours["category"].tolist() == theirs["category"].tolist()


@few
@given(marked_steps())
def test_marked_steps(space):
    sequence = xprof(space.bytes(), "pod_viewer")["podStatsSequence"]["podStatsMap"]
    theirs = [next(iter(step["podStatsPerCore"].values())) for step in sequence]
    ours = report_of(space).steps
    total = [core["totalDurationUs"] / 1e3 for core in theirs]
    part = [{int(k): v / 1e3 for k, v in core["stepBreakdownUs"].items()} for core in theirs]
    equal(ours["duration_ms"], total)
    equal(ours["input_ms"], [p.get(6, 0) for p in part])
    rest = ours["compilation_ms"] + ours["host_compute_ms"] + ours["other_ms"]
    equal(rest, [p.get(4, 0) + p.get(9, 0) for p in part])
    assert (ours["host_compute_ms"] <= np.array([p.get(4, 0) for p in part]) + 1e-6).all()


@few
@given(st.lists(st.integers(0, 3000), min_size=2, max_size=3), st.data())
def test_steps_of_several_hosts(starts_us, data):
    spaces = [data.draw(marked_steps(f"worker-{i}", start_us=at)) for i, at in enumerate(starts_us)]
    sequence = xprof([space.bytes() for space in spaces], "pod_viewer")["podStatsSequence"]["podStatsMap"]
    theirs = [
        (step, core["hostName"], core["totalDurationUs"] / 1e3)
        for step, cores in enumerate(sequence)
        for core in cores["podStatsPerCore"].values()
    ]
    ours = report_of(*spaces).pod
    mine = list(zip(ours["step"], ours["host"], ours["total_ms"], strict=True))
    event("aligned" if theirs else "nothing in common")
    if theirs:  # else each host's own steps are shown
        assert [m[:2] for m in mine] == sorted(t[:2] for t in theirs)
        equal([m[2] for m in mine], [t[2] for t in sorted(theirs)])


def kernel(line, op: str, name: str, start_us: float) -> None:
    details = "regs:1 static_shared:0 dynamic_shared:0 grid:1,1,1 block:1,1,1 occ_pct:50"
    line.event(name, start_us, 1, tf_op=op, kernel_details=details)


def test_an_op_that_runs_other_kernels_on_another_device_counts_on_each():
    space = Space("host")
    for device, name in enumerate("ab"):
        line = space.plane(f"/device:GPU:{device}", id=device).line("Stream #1(Kernel)", id=1)
        for i in range(2):
            kernel(line, "dense/MatMul:MatMul", name, 10 * i)
    theirs = ops_of(frame(xprof(space.bytes(), "framework_op_stats")[0]), "Device")
    ours = report_of(space).ops.set_index("name")
    assert theirs.loc["dense/MatMul", "occurrences"] == 2
    assert ours.loc["dense/MatMul", "occurrences"] == 4
    assert ours.loc["dense/MatMul", "total_time_us"] == theirs.loc["dense/MatMul", "total_time"] == 4


def test_a_tensor_core_kernel_of_an_unknown_op_is_eligible():
    space = Space("host")
    plane = space.plane(
        "/device:GPU:0", stats={"compute_cap_major": 8, "compute_cap_minor": 0, "device_vendor": "Nvidia"}
    )
    kernel(plane.line("Stream #1(Kernel)", id=1), "", "h884gemm", 0)
    (theirs,) = frame(xprof(space.bytes(), "kernel_stats")).to_dict("records")
    assert (theirs["is_kernel_using_tensor_core"], theirs["is_op_tensor_core_eligible"]) == (True, False)
    assert report_of(space).kernels[["uses_tensor_core", "tensor_core_eligible"]].to_numpy().tolist() == [[True, True]]


def test_whole_fragmentation_is_read():
    space = Space("host")
    line = space.plane("/host:CPU").line("tf_Compute/1", id=1)
    line.event(
        "MemoryAllocation", 0, allocator_name="GPU_0_bfc", bytes_allocated=1, bytes_available=9, fragmentation=1, addr=5, allocation_bytes=1
    )  # fmt: skip
    theirs = xprof(space.bytes(), "memory_profile")["memoryProfilePerAllocator"]["GPU_0_bfc"]
    assert float(theirs["profileSummary"]["peakStats"]["fragmentation"]) == 0
    assert report_of(space).memory_summary["fragmentation"].tolist() == [1]


def test_a_step_in_which_the_host_only_launched_is_kept():
    space = Space("host")
    line = space.plane("/host:CPU").line("python", id=1)
    for step in range(3):
        line.event("train", 100 * step, 50, step_num=step, _r=1)
        line.event("FunctionRun" if step == 1 else "dense/MatMul:MatMul", 100 * step + 5, 10)
    assert len(xprof(space.bytes(), "pod_viewer")["podStatsSequence"]["podStatsMap"]) == 2
    assert report_of(space).steps["duration_ms"].tolist() == pytest.approx([0.05] * 3)
