"""The Overview's part on the devices: all idle time in its classes, the longest gaps of all hosts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from generate import cpu_fit_capture, gpu_capture, pod_captures
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.utilization import utilization
from tfprof_widgets.views.device_use import device_items
from tfprof_widgets.xspace import read
from view_frames import Recorder, every


def made(spaces):
    traces = [Trace(read(space.bytes()), f"worker-{i}") for i, space in enumerate(spaces)]
    used = [utilization(trace) for trace in traces]
    recorder = Recorder()
    items = device_items(recorder, used, [trace.host for trace in traces])
    json.dumps(items, allow_nan=False)
    return items, recorder.frames, used


def test_without_devices_there_is_nothing():
    assert made([cpu_fit_capture(1, 3)])[:2] == ([], {})


def test_a_host_with_devices():
    items, frames, (used,) = made([gpu_capture(2, 6)])
    (chart,) = every(items, "figure")
    idle_ms = used.devices["idle_ms"].sum()
    assert f"in {used.devices['gaps'].sum():,} gaps" in chart["alt"]
    assert "µs" in json.dumps(chart["figure"], ensure_ascii=False)
    assert "host" not in frames["device_use"]
    np.testing.assert_allclose(frames["device_use"]["idle_ms"], used.devices["idle_ms"])
    np.testing.assert_allclose(used.gap_histogram["total_us"].sum() / 1e3, idle_ms)
    gaps = frames["device_gaps"]
    assert gaps["duration_us"].is_monotonic_decreasing
    assert gaps["duration_us"].iloc[0] == pytest.approx(used.devices["longest_gap_us"].max())
    for table in every(items, "table"):
        assert {column["field"] for column in table["columns"]} <= set(frames[table["table"]].columns)


def test_hosts_are_named_and_the_longest_gaps_are_those_of_all():
    items, frames, used = made(pod_captures(3, 2, 5))
    assert set(frames["device_use"]["host"]) == {"worker-0", "worker-1", "worker-2"}
    assert len(frames["device_use"]) == 6
    longest = max(one.devices["longest_gap_us"].max() for one in used)
    assert frames["device_gaps"]["duration_us"].iloc[0] == pytest.approx(longest)
    assert len(frames["device_gaps"]) == 20
    total = sum(int(one.devices["gaps"].sum()) for one in used)
    titles = [table["title"] for table in every(items, "table")]
    assert f"20 longest gaps of {total:,}" in titles
