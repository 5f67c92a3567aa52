"""What must hold for every profile, however odd: checked on generated captures and on profiles that hypothesis draws."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from generate.strategies import THREAD_IDS, allocations, anything, gpu_host, marked_steps
from tfprof_widgets.analysis.device import COLLECTIVE, KERNEL, OTHER, device_events
from tfprof_widgets.analysis.events import DERIVED_LINE_ID
from tfprof_widgets.analysis.intervals import union_ps
from tfprof_widgets.analysis.memory import MEMORY_COLUMNS
from tfprof_widgets.analysis.steps import CATEGORY_COLUMNS
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import read

few = settings(
    max_examples=int(os.environ.get("TFPROF_EXAMPLES", "30")),
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
US = 1e-6  # what float64 may lose in a sum of microseconds


def report_of(*spaces: Space) -> Report:
    return Report([read(space.bytes(), name=f"host{i}") for i, space in enumerate(spaces)])


def check(report: Report) -> None:
    """Every invariant of every table of a report."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_events(report)
        check_ops(report)
        check_steps(report)
        check_kernels(report)
        check_memory(report)
        check_devices(report)
        check_input(report)
        assert all(finding.saves_ms >= 0 for finding in report.advice)


def check_events(report: Report) -> None:
    assert len(report.events) == sum(host.trace.space.n_events for host in report.hosts)
    assert (report.events["duration_us"] >= 0).all()
    for host in report.hosts:
        trace = host.trace
        assert (trace.self_ps >= 0).all()
        assert (trace.self_ps <= trace.duration_ps).all()


def check_ops(report: Report) -> None:
    ops = report.ops
    assert (ops["self_time_us"] >= 0).all()
    assert (ops["self_time_us"] <= ops["total_time_us"] + US).all()
    assert (ops.loc[ops["type"] != "IDLE", "occurrences"] > 0).all()
    assert np.allclose(ops["avg_time_us"] * ops["occurrences"], ops["total_time_us"].where(ops["type"] != "IDLE", 0))
    assert not ops.duplicated(["host_or_device", "name", "execution_mode"]).any()
    for side, prefix in (("Device", "device"), ("Host", "host")):
        mine = ops["host_or_device"] == side
        share, cumulative = ops[f"{prefix}_self_time_pct"], ops[f"{prefix}_cumulative_pct"]
        assert (share[~mine] == 0).all()
        assert (cumulative[~mine] == 0).all()
        if ops.loc[mine, "self_time_us"].sum() > 0:
            assert share.sum() == pytest.approx(100)
            assert cumulative.max() == pytest.approx(100)
        assert cumulative[mine].is_monotonic_increasing
        assert ops.loc[mine, "self_time_us"].is_monotonic_decreasing
    # What a thread's ops add up to is never more than the time in which any of them was open.
    on_host = ops[(ops["host_or_device"] == "Host") & (ops["type"] != "IDLE") & (ops["execution_mode"] == "function")]
    spanned = 0
    for host in report.hosts:
        trace = host.trace
        event = np.flatnonzero(trace.line_is_host[trace.line])
        spanned += union_ps(
            trace.line[event].astype(np.int64), trace.start_ps[event], trace.end_ps[event], len(trace.space.line_plane)
        ).sum()
    if all(host.trace.space.event_occurrences is None for host in report.hosts):
        assert on_host["self_time_us"].sum() <= spanned / 1e6 + US


def check_steps(report: Report) -> None:
    steps = report.steps
    assert (steps[list(CATEGORY_COLUMNS)] >= -1e-12).all(axis=None)
    assert np.allclose(steps[list(CATEGORY_COLUMNS)].sum(axis=1), steps["duration_ms"], rtol=1e-12, atol=1e-9)
    assert not steps.duplicated(["host", "step", "device"]).any()
    for _, mine in steps.groupby(["host", "device"]):
        assert mine["step"].is_monotonic_increasing
    # A host's own steps never overlap.
    for host in report.hosts:
        rows = host.steps.table
        rows = rows[rows["device"] == "/host:CPU"].sort_values("start_ms")
        end = (rows["start_ms"] + rows["duration_ms"]).to_numpy()
        assert (rows["start_ms"].to_numpy()[1:] >= end[:-1] - 1e-9).all()
        step_of = host.step_of_event
        assert len(step_of) == len(host.trace)
        if len(host.steps.table):
            assert step_of.max() <= host.steps.table["step"].max() or (step_of >= 0).any()
        # Each kind has an average.
        table = host.steps.table
        assert set(table.loc[host.steps.averaged, "kind"]) == set(table["kind"])
    time = report.overview.step_time
    assert np.allclose(time[list(CATEGORY_COLUMNS)].sum(axis=1), time["mean_ms"], atol=1e-9)
    assert ((time["min_ms"] <= time["mean_ms"] + 1e-9) & (time["mean_ms"] <= time["max_ms"] + 1e-9)).all()
    counted = sum(host.steps.table["step"].nunique() for host in report.hosts)
    assert (time["steps"] + time["left_out"]).sum() == counted
    pod = report.pod
    assert np.allclose(pod[list(CATEGORY_COLUMNS)].sum(axis=1), pod["total_ms"], atol=1e-9)
    assert len(pod) <= len(steps)
    assert (report.stragglers["excess_ms"].astype(float) >= -1e-9).all()


def check_kernels(report: Report) -> None:
    """Kernel totals are the streams' totals."""
    kernels = report.kernels
    total = count = 0
    for host in report.hosts:
        devices = device_events(host.trace)
        mine = devices.event[np.isin(devices.kind, (KERNEL, COLLECTIVE))]
        assert np.isin(devices.kind[devices.is_kernel], (KERNEL, COLLECTIVE)).all()
        total += host.trace.duration_ps[mine].sum()
        count += np.count_nonzero(host.trace.duration_ps[mine])
    assert kernels["total_time_us"].sum() == pytest.approx(total / 1e6)
    assert kernels["occurrences"].sum() == count
    assert (kernels["min_time_us"] <= kernels["avg_time_us"] + US).all()
    assert (kernels["avg_time_us"] <= kernels["max_time_us"] + US).all()
    assert (~kernels["uses_tensor_core"] | kernels["tensor_core_eligible"]).all()
    assert kernels["occupancy_pct"].dropna().between(0, 100).all()


def check_memory(report: Report) -> None:
    memory, summary, peak = report.memory, report.memory_summary, report.memory_peak
    sizes = [name for name in MEMORY_COLUMNS if name.endswith("bytes")]
    assert (memory[sizes] >= 0).all(axis=None)
    for _, mine in memory.groupby("host" if "host" in memory else memory["allocator"].astype(str), observed=True):
        assert mine["time_ms"].is_monotonic_increasing
    assert summary["allocations"].sum() + summary["deallocations"].sum() == len(memory)
    assert (summary["lifetime_peak_bytes"] >= summary["peak_bytes"]).all()
    assert (summary["peak_bytes"] == summary["stack_bytes"] + summary["heap_bytes"]).all()
    assert (peak["total_bytes"] == peak["bytes"] * peak["occurrences"]).all()
    keys = ["host", "allocator"] if "host" in summary else ["allocator"]
    held = peak.groupby(keys)["total_bytes"].sum()
    for key, of_allocator in summary.set_index(keys)["peak_bytes"].items():
        assert held.get(key, 0) >= of_allocator  # more only where the file lacks frees


def check_devices(report: Report) -> None:
    for used in report.overview.utilization:
        devices = used.devices
        assert np.allclose(devices["busy_ms"] + devices["idle_ms"], devices["window_ms"])
        assert (devices["compute_16bit_ms"] + devices["compute_32bit_ms"] <= devices["busy_ms"] + 1e-9).all()
        gaps = used.gap_histogram.groupby("device")["total_us"].sum() / 1e3
        named = devices.groupby("device")["idle_ms"].sum()
        assert np.allclose(gaps.reindex(named.index), named)
        assert used.longest_gaps["host_activity_pct"].between(0, 100 + 1e-9).all()
    # The device rows add up to the streams' time: nothing lost, nothing twice.
    ops = report.ops[(report.ops["host_or_device"] == "Device") & (report.ops["type"] != "IDLE")]
    streams, only_work = 0, True
    for host in report.hosts:
        devices = device_events(host.trace)
        only_work &= not (devices.kind == OTHER).any()
        streams += host.trace.duration_ps[devices.event[devices.kind != OTHER]].sum()
    assert ops["self_time_us"].sum() == pytest.approx(streams / 1e6)
    if only_work:
        idle = report.ops[(report.ops["host_or_device"] == "Device") & (report.ops["type"] == "IDLE")]
        assert idle["self_time_us"].sum() == pytest.approx(
            sum(1e3 * used.devices["idle_ms"].sum() for used in report.overview.utilization)
        )


def check_input(report: Report) -> None:
    pipeline = report.input_pipeline
    ops = pipeline.input_ops
    assert (ops["self_time_ms"] <= ops["total_time_ms"] + 1e-9).all()
    assert (ops["wait_time_ms"] <= ops["self_time_ms"] + 1e-9).all()
    if ops["self_time_ms"].sum() > 0:
        assert ops["self_time_pct"].sum() == pytest.approx(100)
    assert pipeline.host_side["time_ms"].sum() == pytest.approx(ops["self_time_ms"].sum())
    assert (pipeline.per_step["input_ms"] <= pipeline.per_step["duration_ms"] + 1e-9).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: [cpu_fit_capture(2, 8, validation_batches=3, traced_first=True)],
        lambda: [cpu_fit_capture(1, 7, marks="train", hostname="")],
        lambda: [gpu_capture(2, 6)],
        lambda: [gpu_capture(1, 3, dialect="old")],
        lambda: [gpu_capture(2, 3, dialect="old", attribution="none", marks="")],
        lambda: [gpu_capture(2, 3, dialect="amd", xla=True)],
        lambda: [gpu_capture(1, 6, grouped=True)],
        lambda: pod_captures(3, 2, 5, slow_host=1),
    ],
    ids=["fit", "marked fit", "GPUs", "old GPU", "old GPUs without ops or marks", "AMD with XLA", "grouped GPU", "pod"],
)
def test_generated_captures(make):
    check(report_of(*make()))


@few
@given(st.lists(anything(), min_size=1, max_size=2))
def test_anything(spaces):
    check(report_of(*spaces))


@few
@given(st.lists(marked_steps(), min_size=1, max_size=3))
def test_marked_steps(spaces):
    check(report_of(*spaces))


@few
@given(gpu_host(streams=3))
def test_devices(space):
    check(report_of(space))


@few
@given(allocations())
def test_allocations(space):
    check(report_of(space))


@few
@given(THREAD_IDS)
def test_lines_of_a_host_that_repeat_others_are_not_counted_again(ident):
    space = Space("host")
    space.plane("/host:CPU").line("python", id=ident).event("dense/MatMul:MatMul", 0, 1)
    is_derived = ident in range(DERIVED_LINE_ID, DERIVED_LINE_ID + 400) or ident in range(
        DERIVED_LINE_ID + 2**32, DERIVED_LINE_ID + 2**32 + 400
    )
    assert report_of(space).ops.empty == is_derived


def test_a_compute_capability_that_is_no_number_is_unknown():
    space = Space("host")
    plane = space.plane("/device:GPU:0", stats={"compute_cap_major": "?", "compute_cap_minor": b"", "device_vendor": 7})
    details = "regs:1 shm:0 grid:1,1,1 block:32,1,1"
    plane.line("Stream #1", id=1).event("gemm", 0, 5, tf_op="dense/MatMul:MatMul", kernel_details=details)
    report = report_of(space)
    check(report)
    assert report.kernels["occupancy_pct"].isna().all()


DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences-from-xprof.md"


def test_every_difference_has_its_test():
    table = [line for line in DIFFERENCES.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][2:]
    assert len(table) > 30
    for row in table:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 5, row
        named = re.findall(r"`([^`]+)`", cells[4])
        assert named, row
        file = ""
        for name in named:
            path, _, function = name.partition("::")
            file = path if path != "…" else file
            source = (DIFFERENCES.parents[1] / "tests" / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {re.escape(function)}\(", source, re.M), name
