"""The overview against XProf's overview page."""

from __future__ import annotations

import numpy as np
import pytest

from generate import gpu_capture
from oracle import properties, xprof
from tfprof_widgets.analysis.device import KERNEL, device_events
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.report import Report, load
from tfprof_widgets.xspace import read

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ["cpu_loop", "keras2_fit"])
def test_step_statistics_equal_xprofs(capture, xprof_of, name):
    theirs = properties(xprof_of(name, "overview_page")[1])
    row = load(capture(name)).overview.step_time.iloc[0]
    for ours, key in (("mean", "average"), ("std", "standard_deviation"), ("min", "minimum"), ("max", "maximum")):
        assert row[f"{ours}_ms"] == pytest.approx(float(theirs[f"steptime_ms_{key}"]), abs=0.051), (
            ours
        )  # one decimal there


def test_precision_equals_xprofs_where_no_bfloat16_is_in_use(capture, xprof_of):
    theirs = properties(xprof_of("gpu_w0", "overview_page")[0])
    precision = load(capture("gpu_w0")).overview.precision
    assert precision["16-bit"] == pytest.approx(float(theirs["device_compute_16bit_percent"].rstrip("%")), abs=0.06)


def test_xprofs_precision_counts_copies_and_ours_does_not():
    data = gpu_capture(1, 6).bytes()
    theirs = float(properties(xprof(data, "overview_page")[0])["device_compute_16bit_percent"].rstrip("%"))
    space = read(data)
    trace = Trace(space)
    devices = device_events(trace)
    duration = trace.duration_ps[devices.event].astype(float)
    owner, code, texts = trace.strings("shape")
    row, found = devices.rows(owner)
    shape = np.full(len(devices), "", object)
    shape[row] = np.array(texts, object)[code[found]]
    names = np.array([space.meta_name[m] for m in trace.meta[devices.event]], object)
    kernel = devices.kind == KERNEL
    half = kernel & np.array(
        ["half" in (of or name) or "fp16" in (of or name) for of, name in zip(shape, names, strict=True)]
    )
    assert theirs == pytest.approx(100 * duration[half].sum() / duration.sum(), abs=0.06)
    ours = Report([space]).overview.precision["16-bit"]
    assert ours == pytest.approx(100 * duration[half].sum() / duration[kernel].sum())
    assert ours > theirs + 20


@pytest.mark.parametrize("name", ["cpu_fit", "keras2_fit", "tb", "raw_tf"])
def test_all_ops_run_on_the_host_of_a_cpu_capture(capture, xprof_of, name):
    theirs = properties(xprof_of(name, "overview_page")[0])
    assert float(theirs["host_tf_op_percent"].rstrip("%")) == 100
    assert load(capture(name)).overview.op_share_pct == {"host": 100}


def test_device_ops_are_counted_where_xprof_finds_none(capture, xprof_of):
    theirs = properties(xprof_of("gpu_w0", "overview_page")[0])
    assert float(theirs["device_tf_op_percent"].rstrip("%")) == 0  # no `tf_op` in old files
    assert load(capture("gpu_w0")).overview.op_share_pct["device"] > 5
