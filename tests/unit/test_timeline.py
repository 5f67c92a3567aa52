"""The timeline's tracks, lanes and names, and their way into the payload."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets import xspace
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.steps import Steps, find_steps
from tfprof_widgets.analysis.timeline import Timeline, pack_lanes, timeline
from tfprof_widgets.display.payload import Payload
from tfprof_widgets.report import Report
from tfprof_widgets.views.timeline import PS_PER_NS, describe, pack_events, timeline_tab


def trace_of(space: Space) -> Trace:
    return Trace(xspace.read(space.bytes()))


def no_overlap(data: Timeline) -> None:
    """No event of a lane starts before the one before it ended."""
    for tracks, frame in (
        (data.tracks[~data.tracks["hidden"]], data.events),
        (data.tracks[data.tracks["hidden"]], data.hidden),
    ):
        assert tracks["count"].sum() == len(frame)
        for row in tracks.itertuples():
            events = frame.iloc[row.first : row.first + row.count]
            assert events["start_ps"].is_monotonic_increasing
            assert set(events["lane"]) == set(range(row.lanes))
            for _, lane in events.groupby("lane"):
                start, end = lane["start_ps"].to_numpy(), (lane["start_ps"] + lane["duration_ps"]).to_numpy()
                assert (start[1:] >= end[:-1]).all()


def small_cpu() -> Space:
    space = Space(hostname="worker")
    host = space.plane("/host:CPU")
    pool = host.line("tf_Compute/77", id=77)
    pool.event("dense/MatMul:MatMul", 10, 20)
    pool.event("ThreadpoolListener::Record", 12, 0)
    pool.event("relu/Relu:Relu", 40, 5)
    host.line("tf_data_iterator_get_next/5", id=5).event("Iterator::Root::Prefetch", 0, 200)
    python = host.line("python", id=1)
    outer = python.event("fit", 0, 100, tf_function_call="concrete")
    assert outer is not None
    python.event("call", 10, 50)
    python.event("call", 70, 20)
    host.line("tf_Compute/78", id=78).event("dense/MatMul:MatMul", 0, 90)
    host.line("background", id=9).event("tick", 0, 500)
    host.line("tf_numa_-1_Eigen/3", id=3).event("ThreadpoolListener::StopRegion", 3, 0)
    return space


def test_threads_are_ordered_and_named_by_what_they_do() -> None:
    data = timeline(trace_of(small_cpu()))
    assert [s.title for s in data.sections] == ["Host Threads"]
    own = data.tracks[~data.tracks["hidden"]]
    assert own["label"].to_list() == [
        "python (main)",
        "tf_Compute #1",
        "tf_Compute #2",
        "tf_data_iterator_get_next",
        "background",
    ]
    assert own["hint"].to_list()[1:3] == ["tf_Compute/78", "tf_Compute/77"]  # the busier one first
    assert own["busy_ps"].to_list() == [100_000_000, 90_000_000, 25_000_000, 200_000_000, 500_000_000]
    assert own["lanes"].to_list() == [2, 1, 1, 1, 1]
    no_overlap(data)


def test_bookkeeping_is_folded_away_and_counted_not_dropped() -> None:
    data = timeline(trace_of(small_cpu()))
    hidden = data.tracks[data.tracks["hidden"]]
    assert hidden["kind"].unique().tolist() == ["bookkeeping"]
    assert hidden["count"].to_list() == [1, 1]
    assert len(data.hidden) == 2
    assert len(data.events) == 8
    names = data.names["name"].to_numpy()[data.hidden["name"]]
    assert sorted(names) == ["ThreadpoolListener::Record", "ThreadpoolListener::StopRegion"]
    assert "2 events of thread-pool bookkeeping" in describe(data)


def test_names_say_op_type_and_role() -> None:
    data = timeline(trace_of(small_cpu()))
    rows = data.names.set_index("name")
    assert rows.loc["dense/MatMul:MatMul", ["type", "op", "role"]].to_list() == ["MatMul", "dense/MatMul", "op"]
    assert rows.loc["Iterator::Root::Prefetch", "type"] == "Dataset"
    assert rows.loc["call", ["short", "type", "role"]].to_list() == ["call", "", "other"]
    assert rows.index.is_unique


def test_devices_come_first_each_with_a_section_and_kernels_know_their_op() -> None:
    space = Space()
    host = space.plane("/host:CPU").line("python", id=1)
    host.event("train", 0, 90, step_num=0, _r=1)
    gpu = space.plane("/device:GPU:1", id=1)
    gpu.line("Stream #7(MemcpyH2D)", id=7).event("MemcpyH2D", 1, 2, correlation_id=5)
    stream = gpu.line("Stream #8(Compute)", id=8)
    details = "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:32,1,1"
    stream.event("gemm_kernel", 10, 30, tf_op="dense/MatMul:MatMul", kernel_details=details)
    stream.event("gemm_kernel", 50, 30, tf_op="conv/Conv2D:Conv2D", kernel_details=details)
    gpu.line("Steps", id=-559038737).event("0", 0, 90, group_id=0)
    space.plane("/device:GPU:0", id=0)
    data = timeline(trace_of(space))
    assert [s.title for s in data.sections] == ["/device:GPU:1 (pid 1)", "Host Threads"]
    own = data.tracks[data.tracks["kind"] != "derived"]
    assert own["label"].to_list() == ["Steps", "Stream #8(Compute)", "Stream #7(MemcpyH2D)", "python (main)"]
    assert own["kind"].to_list() == ["device", "device", "device", "host"]
    # What a fresh file doesn't hold: which scopes and ops the kernels belong to. It stands above the streams.
    labels = data.tracks["label"].to_list()
    assert labels.index("Steps") < labels.index("TensorFlow Name Scope") < labels.index("TensorFlow Ops") < 4
    ops = data.tracks.set_index("label").loc["TensorFlow Ops"]
    derived = data.names["name"].to_numpy()[data.events["name"].iloc[ops["first"] : ops["first"] + ops["count"]]]
    assert derived.tolist() == ["dense/MatMul", "conv/Conv2D"]
    assert ops["section"] == 0
    assert data.empty_planes == ["/device:GPU:0"]
    kernels = data.names[data.names["name"] == "gemm_kernel"]
    assert sorted(kernels["type"]) == ["Conv2D", "MatMul"]
    assert sorted(kernels["op"]) == ["conv/Conv2D", "dense/MatMul"]


def test_steps_are_the_topmost_section() -> None:
    steps = pd.DataFrame(
        {
            "step": [0, 1],
            "kind": ["train", "train"],
            "device": ["host", "host"],
            "start_ms": [0.001, 0.05],
            "duration_ms": [0.04, 0.03],
        }
    )
    data = timeline(trace_of(small_cpu()), Steps(steps))
    assert data.sections[0].title == "Steps"
    track = data.tracks.iloc[0]
    assert (track["label"], track["kind"], track["count"], track["lanes"]) == ("Steps", "steps", 2, 1)
    shown = data.events.iloc[track["first"] : track["first"] + 2]
    assert data.names["name"].to_numpy()[shown["name"]].tolist() == ["train 0", "train 1"]
    assert shown["start_ps"].to_list() == [1_000_000, 50_000_000]
    assert data.names["role"].to_numpy()[shown["name"]].tolist() == ["step", "step"]


def test_steps_of_several_devices_have_a_track_each() -> None:
    steps = pd.DataFrame(
        {
            "step": [0, 0],
            "kind": ["", ""],
            "device": ["/device:GPU:0", "/device:GPU:1"],
            "start_ms": [0, 0.1],
            "duration_ms": [0.2, 0.2],
        }
    )
    data = timeline(trace_of(small_cpu()), Steps(steps))
    assert data.tracks["label"].to_list()[:2] == ["Steps /device:GPU:0", "Steps /device:GPU:1"]
    assert data.events["start_ps"].to_list()[:2] == [0, 100_000_000]


def test_derived_lines_are_cut_at_steps() -> None:
    """A stream that runs one op only, once a step: the op doesn't last from the first step to the last."""
    trace = trace_of(gpu_capture(devices=2, steps=3))
    data = timeline(trace, find_steps(trace))
    tracks = data.tracks.set_index(["section", "label"])
    assert {label for _, label in tracks.index} >= {"Steps", "TensorFlow Ops · Stream #20(Kernel)"}
    for (section, label), track in tracks[tracks["kind"] == "derived"].iterrows():
        if label == "TensorFlow Ops · Stream #20(Kernel)":
            kernels = tracks.loc[(section, "Stream #20(Kernel)")]
            both = [data.events.iloc[t["first"] : t["first"] + t["count"]] for t in (track, kernels)]
            assert both[0]["start_ps"].to_list() == both[1]["start_ps"].to_list()
            assert both[0]["duration_ps"].to_list() == both[1]["duration_ps"].to_list()
        elif label == "Steps":
            assert track["count"] == 3


@pytest.mark.parametrize("seed", range(6))
def test_overlapping_events_are_packed_into_lanes(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 400
    track = np.sort(random.integers(0, 3, n))
    start = random.integers(0, 2000, n)
    duration = random.choice([0, 1, 30, 200], n)
    order = np.lexsort((-duration, start, track))
    track, start, duration = track[order], start[order], duration[order]
    lane = pack_lanes(track, start, duration, np.zeros(n, np.int32))
    most = 0
    for key in np.unique(track):
        mine = track == key
        for number in np.unique(lane[mine]):
            s, d = start[mine & (lane == number)], duration[mine & (lane == number)]
            assert (s[1:] >= (s + d)[:-1]).all()
        # No more lanes than events at one time (an instant takes a lane of its own for its moment).
        at = np.unique(start[mine])
        open_at = ((start[mine][:, None] <= at) & (at < (start + np.maximum(duration, 1))[mine][:, None])).sum(axis=0)
        most = max(most, open_at.max())
        assert lane[mine].max() < open_at.max()
    assert most > 3


def test_events_that_nest_keep_their_depth() -> None:
    track = np.zeros(5, np.int64)
    start = np.array([0, 0, 5, 20, 22])
    duration = np.array([10, 4, 5, 10, 3])
    depth = np.array([0, 1, 1, 0, 1], np.int32)
    assert pack_lanes(track, start, duration, depth).tolist() == depth.tolist()


def unpack(frame: pd.DataFrame, first: np.ndarray) -> pd.DataFrame:
    """What the browser does (js/src/timeline/data.ts), event by event."""

    def joined(name: str) -> list[int]:
        columns = [c for c in frame.columns if c.rstrip("0123456789") == name]
        return sum(
            (frame[c].to_numpy().astype(object) * 256 ** int(c[len(name) :]) for c in columns),
            np.zeros(len(frame), object),
        ).tolist()

    gap, duration, name, lane = (joined(c) for c in ("start", "duration", "name", "lane"))
    wrap = 256 ** sum(c.startswith("start") for c in frame.columns)
    rows = []
    start = end = above = 0
    for i in range(len(frame)):
        if i in first:
            start = end = above = 0
        start = ((start if lane[i] > above else end) + gap[i]) % wrap
        end, above = start + duration[i], lane[i]
        rows.append((start, duration[i], name[i], lane[i]))
    return pd.DataFrame(rows, columns=["start_ps", "duration_ps", "name", "lane"])


@pytest.mark.parametrize("seed", range(4))
def test_packed_events_come_back_as_they_were(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 300
    scale = 10 ** (3 + 3 * seed)  # up to starts of many bytes
    track = np.sort(random.integers(0, 4, n))
    start = random.integers(0, scale, n)
    duration = random.integers(0, scale // 20, n)
    order = np.lexsort((-duration, start, track))
    track, start, duration = track[order], start[order], duration[order]
    lane = pack_lanes(track, start, duration, np.zeros(n, np.int32))
    events = pd.DataFrame(
        {
            "start_ps": start * PS_PER_NS,
            "duration_ps": duration * PS_PER_NS,
            "name": random.integers(0, 70_000, n),
            "lane": lane,
        }
    )
    first = np.flatnonzero(np.concatenate([[True], track[1:] != track[:-1]]))
    packed = pack_events(events, first, PS_PER_NS)
    assert set(packed.dtypes) == {np.dtype(np.uint8)}
    back = unpack(packed, first)
    assert (back["start_ps"] * PS_PER_NS).tolist() == events["start_ps"].tolist()
    assert (back["duration_ps"] * PS_PER_NS).tolist() == events["duration_ps"].tolist()
    assert back["name"].tolist() == events["name"].tolist()
    assert back["lane"].tolist() == events["lane"].tolist()


def test_times_that_are_no_whole_nanoseconds_keep_their_picoseconds() -> None:
    space = Space()
    space.plane("/host:CPU").line("python", id=1).event("a", 0.000001, 0.000003)
    payload = Payload(id="t")
    item = timeline_tab(payload, timeline(trace_of(space)))["items"][0]
    assert item["unit_ps"] == 1
    assert item["span_ps"] == 4


def test_a_profile_without_events_gives_an_empty_timeline() -> None:
    space = Space()
    space.plane("/host:CPU")
    data = timeline(trace_of(space))
    assert len(data.tracks) == len(data.events) == len(data.names) == 0
    payload = Payload(id="t")
    item = timeline_tab(payload, data)["items"][0]
    assert item["hidden"] is None
    assert item["span_ps"] == 0
    assert set(payload.tables) == {"timeline_events", "timeline_tracks", "timeline_names"}


@pytest.mark.parametrize(
    "name", ["cpu_fit", "cpu_loop", "gpu_w0", "t4_fit_2", "jax_mi300", "macos_old", "windows_no_cupti", "py", "eager"]
)
def test_real_captures(capture, name: str) -> None:
    trace = Trace(xspace.read(capture(name)))
    steps = find_steps(trace)
    data = timeline(trace, steps)
    no_overlap(data)
    # All that is in the file is in the timeline, and nothing else.
    added = data.tracks[data.tracks["kind"].isin(["steps", "derived"])]
    whole = trace.whole
    assert len(data.events) + len(data.hidden) == len(whole) + added["count"].sum()
    assert data.tracks.loc[data.tracks["kind"] == "steps", "count"].sum() == len(steps.table)
    all_names = data.names["name"].to_numpy()
    is_added = np.zeros(len(data.events), bool)
    for row in added.itertuples():
        is_added[row.first : row.first + row.count] = True
    ours = pd.concat([data.events[~is_added], data.hidden])
    theirs = pd.DataFrame(
        {
            "name": np.array(whole.space.meta_name, object)[whole.meta],
            "start": whole.start_ps,
            "duration": whole.duration_ps,
        }
    )
    mine = pd.DataFrame(
        {
            "name": all_names[ours["name"]],
            "start": ours["start_ps"].to_numpy(),
            "duration": ours["duration_ps"].to_numpy(),
        }
    )
    by = ["start", "duration", "name"]
    pd.testing.assert_frame_equal(
        mine.sort_values(by, ignore_index=True), theirs.sort_values(by, ignore_index=True), check_dtype=False
    )


def test_an_event_takes_under_three_bytes(capture) -> None:
    trace = Trace(xspace.read(capture("cpu_fit")))
    data = timeline(trace, find_steps(trace))
    payload = Payload(id="t")
    timeline_tab(payload, data)
    assert len(payload.tables["timeline_events"]) / len(data.events) < 3.0
    assert sum(map(len, payload.tables.values())) * 4 / 3 / len(trace.whole) < 3.2  # as base64
    assert gzip.decompress(payload.tables["timeline_events"])


def test_counters_leave_the_packed_starts_of_events_alone():
    report = Report([xspace.read(cpu_fit_capture(epochs=2, batches=8).bytes())])
    data = report.timelines[0]
    assert len(data.counters)
    packed = {}

    class Tables:
        def add_table(self, name, frame):
            packed[name] = frame

    timeline_tab(Tables(), data)
    table = packed["timeline_events"]

    def number(name):
        return sum(table[c].to_numpy(np.int64) << (8 * i) for i, c in enumerate(c for c in table if c.startswith(name)))

    gap, duration, lane = number("start"), number("duration"), number("lane")
    bits = 8 * sum(c.startswith("start") for c in table)
    gap = np.where(gap >= 1 << (bits - 1), gap - (1 << bits), gap)
    tracks = data.tracks[~data.tracks["hidden"] & (data.tracks["kind"] != "counter")]
    start = np.zeros(len(table), np.int64)
    for first, count in zip(tracks["first"], tracks["count"], strict=True):
        for i in range(first, first + count):
            before = 0 if i == first else start[i - 1] + (0 if lane[i] > lane[i - 1] else duration[i - 1])
            start[i] = before + gap[i]
    assert start.tolist() == (data.events["start_ps"].to_numpy() // 1000).tolist()
