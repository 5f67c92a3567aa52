"""Kernel statistics of real and generated captures, against XProf's kernel stats."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from generate import gpu_capture
from oracle import GPU_CAPTURES, frame, xprof
from tfprof_widgets.analysis.device import COLLECTIVE, KERNEL, device_events
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.kernels import kernels
from tfprof_widgets.xspace import read

pytestmark = pytest.mark.oracle

# What XProf tells of a kernel's launch besides its op, which it finds in few files.
KEY = ["kernel_name", "block_dim", "grid_dim"]
NUMBERS = ("registers_per_thread", "shared_memory_bytes", "occurrences", "total_time_us", "min_time_us", "max_time_us")
MAX_XPROF_ROWS = 1000


def theirs_of(table) -> pd.DataFrame:
    renamed = {
        "shmem_bytes": "shared_memory_bytes", "is_op_tensor_core_eligible": "tensor_core_eligible",
        "is_kernel_using_tensor_core": "uses_tensor_core", "total_duration_us": "total_time_us", "avg_duration_us": "avg_time_us",
        "min_duration_us": "min_time_us", "max_duration_us": "max_time_us",
    }  # fmt: skip
    return frame(table).rename(columns=renamed)


def launches(table: pd.DataFrame) -> pd.DataFrame:
    """One row a kernel and launch shape, over all ops."""
    return table.groupby(KEY).agg(
        occurrences=("occurrences", "sum"), total_time_us=("total_time_us", "sum"), min_time_us=("min_time_us", "min"),
        max_time_us=("max_time_us", "max"), uses_tensor_core=("uses_tensor_core", "max"),
    ).astype(float)  # fmt: skip


@pytest.fixture
def kernels_of(capture):
    return lambda name: kernels(Trace(read(capture(name))))


@pytest.mark.parametrize("name", [n for n in GPU_CAPTURES if n != "windows_no_cupti"])
def test_times_and_counts_of_every_launch_are_xprofs(kernels_of, xprof_of, name):
    mine, theirs = launches(kernels_of(name)), launches(theirs_of(xprof_of(name, "kernel_stats")))
    pd.testing.assert_frame_equal(mine, theirs, rtol=1e-9, atol=1e-6)


# XProf's op names are empty where the file has no tf_op, and those of HLO ops without a framework name.
@pytest.mark.parametrize("name", ["jax_mi300", "jax_mi300_gemm", "jax_mi300_old"])
def test_ops_that_xprof_names_have_its_names_and_eligibility(kernels_of, xprof_of, name):
    keys = [*KEY, "op_name"]
    theirs = theirs_of(xprof_of(name, "kernel_stats"))
    theirs = theirs[theirs["op_name"] != ""].set_index(keys)
    mine = kernels_of(name).set_index(keys).loc[theirs.index]
    assert len(theirs) > 0
    for column in ("occurrences", "total_time_us", "tensor_core_eligible", "uses_tensor_core"):
        assert np.allclose(mine[column].astype(float), theirs[column].astype(float))


@pytest.mark.parametrize(
    ("name", "count", "total_ms"),
    [("gpu_w0", 1330, 29.69), ("t4_fit", 148, 6.036), ("t4_fit_2", 202, 9.338), ("t4_fit_3", 116, 5.673)],
)
def test_every_kernel_has_its_op_although_xprof_finds_none(kernels_of, xprof_of, name, count, total_ms):
    table = kernels_of(name)
    assert table["occurrences"].sum() == count
    assert table["total_time_us"].sum() / 1000 == pytest.approx(total_ms, abs=5e-3)
    assert (table["op_name"] != "").all()
    assert (frame(xprof_of(name, "kernel_stats"))["op_name"] == "").all()


@pytest.mark.parametrize("name", ["gpu_w0", "t4_fit", "t4_fit_2", "t4_fit_3"])
def test_old_files_get_the_shared_memory_and_occupancy_that_xprof_loses(kernels_of, xprof_of, name):
    table, theirs = kernels_of(name), theirs_of(xprof_of(name, "kernel_stats"))
    assert (theirs["occupancy_pct"] == 0).all()
    assert (theirs["shared_memory_bytes"] == 0).all()
    assert table["occupancy_pct"].between(0, 100, inclusive="right").all()
    assert table["shared_memory_bytes"].max() == (0 if name == "gpu_w0" else 49152 if name != "t4_fit_3" else 32768)
    # A V100 keeps one block of 1024 threads with 38 registers each, of two.
    if name == "gpu_w0":
        assert table.loc[table["registers_per_thread"] == 38, "occupancy_pct"].eq(50).all()


@pytest.mark.parametrize("name", ["t4_fit", "t4_fit_2", "t4_fit_3", "gpu_w0"])
def test_the_ops_are_those_of_the_stored_op_line(capture, name):
    """The line was made from one op at a time over all streams, so it must enclose each kernel of an op."""
    trace = Trace(read(capture(name)))
    devices = device_events(trace)
    kernel = np.flatnonzero((devices.kind == KERNEL) | (devices.kind == COLLECTIVE))
    ops = trace.events_of(np.array([n == "TensorFlow Ops" for n in trace.space.line_name]))
    names = np.array(trace.space.meta_name, object)[trace.meta[ops]]
    plane = trace.space.line_plane[trace.line[ops]]
    for row in kernel:
        event = devices.event[row]
        encloses = (trace.start_ps[ops] <= trace.start_ps[event]) & (trace.end_ps[ops] >= trace.end_ps[event])
        op = f"{devices.op_names[devices.op_code[row]]}:{devices.op_types[devices.op_code[row]]}"
        assert op in names[encloses & (plane == devices.plane[row])]


def test_amd_files_have_no_occupancy_and_no_nonsense_registers(kernels_of, xprof_of):
    table, theirs = kernels_of("jax_mi300_old"), theirs_of(xprof_of("jax_mi300_old", "kernel_stats"))
    assert (theirs["registers_per_thread"] > 2e9).all()
    assert table[["registers_per_thread", "shared_memory_bytes", "occupancy_pct"]].isna().all(axis=None)
    assert kernels_of("jax_mi300")["shared_memory_bytes"].max() == 49280  # group_mem, which XProf doesn't know


@pytest.mark.parametrize("settings", [{}, {"devices": 2, "layers": 2}, {"marks": "", "steps": 1}])
def test_whole_tables_of_current_captures_are_xprofs(settings):
    data = gpu_capture(**{"steps": 3, **settings}).bytes()
    mine, theirs = kernels(Trace(read(data))), theirs_of(xprof(data, "kernel_stats"))
    assert len(theirs) < MAX_XPROF_ROWS
    keys = [*KEY, "op_name"]
    mine, theirs = (t.sort_values(keys).reset_index(drop=True) for t in (mine, theirs))
    assert mine[keys].equals(theirs[keys].astype(object))
    for column in (*NUMBERS, "uses_tensor_core"):
        # XProf doesn't know cuDNN's xmma_wgrad and the like, though they are Tensor Core kernels.
        rows = ~mine["kernel_name"].str.contains("xmma_wgrad") if column == "uses_tensor_core" else slice(None)
        assert np.allclose(mine[column].astype(float)[rows], theirs[column].astype(float)[rows]), column
    assert np.allclose(mine["avg_time_us"], theirs["avg_time_us"], atol=1e-3)  # XProf divides whole nanoseconds
    known = theirs["occupancy_pct"] > 0
    assert np.allclose(mine["occupancy_pct"][known], theirs["occupancy_pct"][known])
    assert (mine["tensor_core_eligible"] | ~theirs["tensor_core_eligible"].astype(bool)).all()
