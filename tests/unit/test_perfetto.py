"""The exported trace, read back by a parser of its own: slices, threads, nesting, arguments, arrows and counters."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import numpy as np
import pytest

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from tfprof_widgets.report import Report, load
from tfprof_widgets.xspace import read


def report_of(*spaces: Space) -> Report:
    return Report([read(space.bytes()) for space in spaces])


def exported(report: Report, tmp_path) -> list[dict]:
    return json.loads(report.to_perfetto(tmp_path / "trace.json").read_text())["traceEvents"]


def whole_ns(us: float) -> int:
    return round(us * 1000)


def named(events: list[dict]) -> tuple[dict, dict]:
    process, thread = {}, {}
    for event in events:
        if event["name"] == "process_name":
            process[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            thread[event["pid"], event["tid"]] = event["args"]["name"]
    return process, thread


def slices(events: list[dict]) -> Counter:
    """Process, thread, name, start and end (ns) of each slice."""
    process, thread = named([event for event in events if event["ph"] == "M"])
    found: Counter = Counter()
    for e in events:
        if e["ph"] == "X":
            start = whole_ns(e["ts"])
            key = process[e["pid"]], thread[e["pid"], e["tid"]], e["name"], start, start + whole_ns(e["dur"])
            found[key] += 1
    return found


def rows(report: Report) -> Counter:
    """The same of the report's events."""
    events = report.events
    plane = events["plane"].astype(str)
    if "host" in events:
        plane = events["host"].astype(str) + ": " + plane
    start_ps = np.rint(events["start_us"].to_numpy() * 1e6).astype(np.int64)
    end_ps = start_ps + np.rint(events["duration_us"].to_numpy() * 1e6).astype(np.int64)
    return Counter(
        zip(plane, events["line"].astype(str), events["name"].astype(str), (start_ps // 1000).tolist(), (end_ps // 1000).tolist(),
            strict=True)
    )  # fmt: skip


def assert_threads_nest(events: list[dict]) -> None:
    """Viewers drop a slice that begins in another one and ends after it."""
    open_until: dict[int, list[int]] = {}
    for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: whole_ns(e["ts"])):
        start, stack = whole_ns(e["ts"]), open_until.setdefault(e["tid"], [])
        while stack and stack[-1] <= start:
            stack.pop()
        end = start + whole_ns(e["dur"])
        assert not stack or end <= stack[-1]
        stack.append(end)


CAPTURES = {
    "cpu": lambda: report_of(cpu_fit_capture(1, 6)),
    "gpu": lambda: report_of(gpu_capture(devices=2, steps=4)),
    "pod": lambda: report_of(*pod_captures(2, 2, 3)),
}


@pytest.mark.parametrize("name", CAPTURES)
def test_it_has_the_events_of_the_report_on_their_threads(tmp_path, name):
    report = CAPTURES[name]()
    events = exported(report, tmp_path)
    assert slices(events) == rows(report)
    assert_threads_nest(events)


@pytest.mark.parametrize("name", ["cpu_fit", "gpu_w0"])
def test_it_has_the_events_of_real_captures(capture, tmp_path, name):
    report = load(capture(name))
    events = exported(report, tmp_path)
    assert slices(events) == rows(report)
    assert_threads_nest(events)


def test_events_that_overlap_in_part_get_threads_of_one_name(tmp_path):
    space = Space("h")
    line = space.plane("/device:GPU:0").line("Stream #1", id=1)
    for start in range(5):
        line.event(f"copy {start}", 10 * start, 25)
    line.event("alone", 500, 10)
    report = report_of(space)
    events = exported(report, tmp_path)
    assert slices(events) == rows(report)
    assert len({e["tid"] for e in events if e["ph"] == "X"}) == 3
    assert_threads_nest(events)


def test_arguments_are_the_step_and_what_the_profiler_noted(tmp_path):
    space = Space("h")
    line = space.plane("/host:CPU").line("python", id=7)
    for i in range(4):
        line.event("train", 100 * i, 80, step_num=i, note=f'a "{i}"\n')
    line.event("after", 1000, 5)
    events = [e for e in exported(report_of(space), tmp_path) if e["ph"] == "X"]
    assert [e["args"] for e in events if e["name"] == "train"] == [
        {"step": i, "step_num": str(i), "note": f'a "{i}"\n'} for i in range(4)
    ]
    assert [e["args"] for e in events if e["name"] == "after"] == [{}]


def test_arrows_lead_from_launches_to_kernels(tmp_path):
    report = report_of(gpu_capture(devices=1, steps=3))
    events = exported(report, tmp_path)
    begins = {e["id"]: e for e in events if e["ph"] == "s" and e["name"] == "launch"}
    ends = {e["id"]: e for e in events if e["ph"] == "f" and e["name"] == "launch"}
    process, _ = named([e for e in events if e["ph"] == "M"])
    assert begins.keys() == ends.keys()
    kernels = [e for e in events if e["ph"] == "X" and process[e["pid"]] == "/device:GPU:0"]
    assert len(begins) == len(kernels) > 40
    assert all(process[e["pid"]] == "/device:GPU:0" for e in ends.values())
    assert all(process[e["pid"]] == "/host:CPU" for e in begins.values())
    assert all(begins[i]["ts"] <= ends[i]["ts"] for i in begins)
    # A viewer ties an arrow's end to the slice before it in the file.
    before = dict(zip((id(e) for e in events[1:]), events, strict=False))
    for end in [*begins.values(), *ends.values()]:
        at = before[id(end)]
        while at["ph"] != "X":
            at = before[id(at)]
        assert (at["tid"], at["ts"]) == (end["tid"], end["ts"])


def test_an_arrow_back_in_time_is_left_out_and_counted(tmp_path):
    space = Space("h")
    device, host = space.plane("/device:GPU:0").line("Stream #1", id=1), space.plane("/host:CPU").line("python", id=2)
    for i in range(3):
        host.event("launch", 100 * i, 5, correlation_id=i)
        device.event("kernel", 100 * i + 10, 5, correlation_id=i)
    host.event("launch", 900, 5, correlation_id=9)
    device.event("kernel", 850, 5, correlation_id=9)
    trace = json.loads(report_of(space).to_perfetto(tmp_path / "t.json").read_text())
    assert sum(e["ph"] == "s" for e in trace["traceEvents"]) == 3
    assert trace["otherData"]["left out"].startswith("1 arrows")


def test_counters_end_where_memory_does(tmp_path):
    report = report_of(gpu_capture(devices=1, steps=3))
    events = [e for e in exported(report, tmp_path) if e["ph"] == "C" and e["name"] == "Memory GPU_0_bfc"]
    memory = report.memory[report.memory["allocator"] == "GPU_0_bfc"]
    assert max(e["args"]["bytes"] for e in events) == memory["in_use_bytes"].max()
    assert events[-1]["args"]["bytes"] == memory["in_use_bytes"].iloc[-1]


def test_a_name_that_ends_in_gz_is_gzipped(tmp_path):
    report = report_of(cpu_fit_capture(1, 3))
    plain = report.to_perfetto(tmp_path / "trace.json").read_bytes()
    packed = report.to_perfetto(tmp_path / "trace.json.gz").read_bytes()
    assert gzip.decompress(packed) == plain
    assert len(packed) < len(plain) / 5


def test_hostile_names_stay_text(tmp_path):
    names = ['"},{"ph":"X"', "\x00\x1b[31m", "‮right to left", "a\\", "🙂" * 50, "</script>"]
    space = Space("h")
    line = space.plane('"plane"\n').line('"line"\\', id=1)
    for i, name in enumerate(names):
        line.event(name, 10 * i, 5)
    report = report_of(space)
    assert slices(exported(report, tmp_path)) == rows(report)
