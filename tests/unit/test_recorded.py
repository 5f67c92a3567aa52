"""What was recorded, beside what was asked for."""

from __future__ import annotations

import pytest

import tfprof_widgets as tfprof
from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.recorded import ignored, recorded, recorded_rows, stored_levels
from tfprof_widgets.session import CaptureInfo, Options
from tfprof_widgets.xspace import read


def trace_of(space: Space) -> Trace:
    return Trace(read(space.bytes()))


def with_levels(host: int, device: int) -> Space:
    """A profile as newer versions of TensorFlow write it: with the options that took effect."""
    space = Space("worker")
    threads = space.plane("/host:CPU")
    line = threads.line("python", id=1)
    line.event("op", 0, 10)
    line.event("$loop.py:12 train", 0, 50)
    line.event("$loop.py:12 train", 60, 50)
    threads.line("idle thread", id=2)
    message = bytes([0x10, host, 0x18, device, 0x52, 2]) + b"/x"  # fields 2, 3 and the text of field 10
    space.plane("Task Environment", stats={"profile_options": message})
    return space


def test_what_a_profile_holds():
    found = recorded(trace_of(with_levels(2, 1)))
    assert (found.host_level, found.device_level) == (2, 1)
    assert (found.threads, found.host_events, found.python_calls) == (1, 3, 2)
    assert (found.devices, found.active_devices, found.device_events, found.dropped) == (0, 0, 0, 0)


def test_devices_are_counted_with_and_without_events():
    space = gpu_capture(devices=2, steps=2)
    space.plane("/device:GPU:7")
    found = recorded(trace_of(space))
    assert (found.devices, found.active_devices) == (3, 2)
    trace = trace_of(space)
    on_device = [trace.space.plane_name[plane].startswith("/device:") for plane in trace.space.line_plane]
    assert found.device_events == sum(on_device[line] for line in trace.space.event_line)
    assert found.device_events + found.host_events == trace.space.n_events


def test_events_that_the_profiler_dropped():
    space = with_levels(2, 1)
    space.plane("/host:CPU", stats={"dropped_traces": 17})
    assert recorded(trace_of(space)).dropped == 17


def test_options_that_were_followed():
    found = recorded(trace_of(with_levels(3, 0)))
    assert ignored([found], Options(host_level=3, python=True, device_level=0)) == []


def test_options_that_were_not():
    quiet = Space("quiet")
    quiet.plane("/host:CPU").line("python", id=1).event("op", 0, 1)
    found = [recorded(trace_of(with_levels(2, 1))), recorded(trace_of(quiet))]
    assert ignored(found, Options(host_level=3, python=True, device_level=0)) == [
        "host level 3 was asked for, 2 was recorded",
        "device level 0 was asked for, 1 was recorded",
    ]
    assert ignored(found[1:], Options(host_level=3, python=True)) == ["Python calls were asked for, none was recorded"]


@pytest.mark.parametrize("stored", [b"\xff\xff\xff", "text", 7])
def test_options_that_cannot_be_read(stored):
    space = Space("worker")
    space.plane("/host:CPU").line("python", id=1).event("op", 0, 1)
    space.plane("Task Environment", stats={"profile_options": stored})
    assert stored_levels(read(space.bytes())) == {}


def test_rows_say_what_was_asked_for_where_it_differs():
    traces = [trace_of(with_levels(2, 1))]
    assert recorded_rows(traces, None) == {
        "Host trace": "3 events on 1 thread, level 2",
        "Python calls": "2 calls",
        "Device trace": "none",
    }
    rows = recorded_rows(traces, Options(host_level=3, device_level=0))
    assert rows["Host trace"] == "3 events on 1 thread, level 2 (3 was asked for)"
    assert rows["Python calls"] == "2 calls (not asked for)"
    assert rows["Device trace"] == "none (not asked for)"
    none = recorded_rows([trace_of(cpu_fit_capture(epochs=1, batches=2))], Options(python=True))
    assert none["Python calls"] == "none (though asked for)"


def test_the_overview_states_it():
    space = read(gpu_capture(devices=2, steps=2).bytes())
    report = tfprof.Report([space], capture=CaptureInfo("mine", options=Options(python=True)))
    environment = report.overview.environment
    assert environment["Python calls"] == "none (though asked for)"
    assert environment["Device trace"].endswith("on 2 of 2 devices")
    assert "Python calls" in report.text


def test_real_captures(capture):
    found = recorded(Trace(read(capture("cpu_fit"))))
    assert (found.host_level, found.device_level, found.host_events, found.threads) == (2, 1, 260_961, 13)
    assert recorded(Trace(read(capture("jax_mi300")))).python_calls == 1_353
    gpu = recorded(Trace(read(capture("gpu_w0"))))
    assert (gpu.devices, gpu.active_devices, gpu.device_events, gpu.host_level) == (8, 3, 7_774, None)
