"""The op table against XProf's, op by op, on every capture.

XProf counts allocations as executions of the op that they name, so it is given the file without those names; then all that
both know must be equal, counts and IDLE included. `docs/differences-from-xprof.md` lists what is different on purpose.
"""

import numpy as np
import pytest

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from generate.builder import message_classes
from oracle import CAPTURES, GPU_CAPTURES, frame, properties, xprof
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.op_stats import op_stats, without_idle
from tfprof_widgets.xspace import read

pytestmark = pytest.mark.oracle

# XProf keeps this many rows of each side.
CAP = 500
ALLOCATIONS = (b"MemoryAllocation", b"MemoryDeallocation")
# Here, ops end in the same nanosecond as the op around them, and XProf loses them (microsecond clock).
LOST = {
    "macos_old": {
        "Iterator::Model::ParallelMapV2::Zip",
        "Iterator::Model::ParallelMapV2::Zip[0]::FlatMap[0]::Concatenate",
    }
}


def without_allocation_ops(data):
    """Return the file with no op named by its allocations."""
    space = message_classes()["XSpace"].FromString(data)
    for plane in space.planes:
        allocations = {e.key for e in plane.event_metadata if e.value.name in ALLOCATIONS}
        names = {e.key for e in plane.stat_metadata if e.value.name.lstrip(b"\0") == b"tf_op"}
        for line in plane.lines:
            for event in line.events:
                if event.metadata_id in allocations:
                    kept = [stat for stat in event.stats if stat.metadata_id not in names]
                    del event.stats[:]
                    event.stats.extend(kept)
    return space.SerializeToString()


def both(data):
    """XProf's two tables (with and without IDLE) and ours."""
    tables = [frame(table) for table in xprof(without_allocation_ops(data), "framework_op_stats")]
    return tables, op_stats(Trace(read(data)))


def compare(theirs, ours, side, lost=frozenset()):
    """Compare the rows of one side that both have; return the names that only one of them has."""
    theirs = theirs[theirs["host_or_device"] == side].set_index("operation")
    ours = ours[ours["host_or_device"] == side]
    # An op of a function, and the calls of that name by Python, are two rows here and XProf has the first.
    ours = ours.sort_values("execution_mode", ascending=False, kind="stable").drop_duplicates("name").set_index("name")
    common = theirs.index.intersection(ours.index)
    a, b = theirs.loc[common], ours.loc[common]
    np.testing.assert_array_equal(a["occurrences"], b["occurrences"])
    np.testing.assert_allclose(b["total_time_us"], a["total_time"], rtol=0, atol=1e-6)
    tolerance = 1e-6 + ours.loc[list(lost), "total_time_us"].sum() if lost else 1e-6
    np.testing.assert_allclose(b["self_time_us"], a["total_self_time"], rtol=0, atol=tolerance)
    np.testing.assert_allclose(b["avg_time_us"], a["avg_time"], rtol=1e-9)
    assert b["type"].tolist() == a["type"].tolist()
    assert b["execution_mode"].tolist() == a["eager"].str.lower().tolist()
    return set(theirs.index) - set(common), ours.loc[ours.index.difference(common)]


@pytest.mark.parametrize("name", CAPTURES)
def test_host_ops(capture, name):
    (theirs, _), ours = both(capture(name).read_bytes())
    only_theirs, only_ours = compare(theirs, ours, "Host", LOST.get(name, set()))
    # A host with no op at all gets an IDLE of 0 from XProf.
    assert only_theirs <= {"IDLE"}
    if only_theirs:
        assert (theirs["total_time"] == 0).all() or name in GPU_CAPTURES
    # What XProf doesn't have: ops that Python ran eagerly and, beyond its cap, the ones with the least self time.
    more = only_ours[only_ours["execution_mode"] != "eager"]
    if (theirs["host_or_device"] == "Host").sum() == CAP:
        least = theirs.loc[theirs["host_or_device"] == "Host", "total_self_time"].min()
        assert (more["self_time_us"] <= least + 1e-6).all()
    else:
        assert set(more.index) == LOST.get(name, set())


@pytest.mark.parametrize(
    ("name", "op", "times"),
    [
        ("cpu_fit", "StatefulPartitionedCall/sequential_1/conv2d_1/Relu", 128),
        ("cpu_loop", "sequential_1/conv2d_1/Relu", 20),
        ("keras2_fit", "sequential/conv2d/Relu", 64),
    ],
)
def test_xprof_counts_allocations_and_we_do_not(capture, xprof_of, name, op, times):
    theirs = frame(xprof_of(name, "framework_op_stats")[0]).set_index("operation")
    ours = op_stats(Trace(read(capture(name)))).set_index("name")
    assert theirs.loc[op, "occurrences"] == 2 * times
    assert ours.loc[op, "occurrences"] == times
    assert ours.loc[op, "total_time_us"] == pytest.approx(theirs.loc[op, "total_time"])
    assert ours.loc[op, "self_time_us"] == pytest.approx(theirs.loc[op, "total_self_time"])


@pytest.mark.parametrize("name", ["t4_fit", "t4_fit_2", "t4_fit_3", "gpu_w0"])
def test_old_files_have_device_ops_too(capture, xprof_of, name):
    """They have no ``tf_op``, so XProf shows a device that is idle all the time; the op is in the ``annotation``."""
    theirs = frame(xprof_of(name, "framework_op_stats")[0])
    assert theirs.loc[theirs["host_or_device"] == "Device", "operation"].tolist() == ["IDLE"]
    trace = Trace(read(capture(name)))
    ours = op_stats(trace)
    device = ours[ours["host_or_device"] == "Device"]
    idle = device["type"] == "IDLE"
    streams_us = trace.duration_ps[trace.events_of(trace.line_is_stream)].sum() / 1e6
    assert device.loc[~idle, "self_time_us"].sum() == pytest.approx(streams_us, abs=1e-6)
    assert "unattributed" not in set(device["name"])
    # Their idle time is the device's whole window; here it is what is left of it (their streams overlap little).
    whole = theirs.loc[theirs["host_or_device"] == "Device", "total_time"].item()
    assert device.loc[idle, "self_time_us"].item() == pytest.approx(whole - streams_us, abs=0.02 * streams_us)
    # The stored `TensorFlow Ops` line names an op for each of the kernels; the table has them all.
    space = trace.space
    stored = trace.events_of(np.array([n == "TensorFlow Ops" for n in space.line_name]))
    names = {space.meta_name[m].rpartition(":")[0] for m in np.unique(trace.meta[stored])}
    assert names <= set(device["name"])


@pytest.mark.parametrize(
    ("name", "occurrences"),
    [
        ("jax_mi300", {"jit(forward_3d_conv)/conv_general_dilated": 40, "x": 39, "kernel": 40}),
        ("jax_mi300_gemm", {"jit(dot)/dot_general": 18, "jit(broadcast_in_dim)/broadcast_in_dim": 12, "copy.1": 12}),
        ("jax_mi300_old", {"jit(forward_3d_conv)/jit(main)/conv_general_dilated": 5, "x": 5, "kernel": 5}),
    ],
)
def test_xla_ops(capture, xprof_of, name, occurrences):
    """Times equal XProf's. It counts the HLO ops of one program; here an op counts once a run, in every program."""
    theirs = frame(xprof_of(name, "framework_op_stats")[0])
    theirs = theirs[theirs["host_or_device"] == "Device"].set_index("operation")
    ours = op_stats(Trace(read(capture(name))))
    ours = ours[ours["host_or_device"] == "Device"].set_index("name")
    assert ours.loc[list(occurrences), "occurrences"].to_dict() == occurrences
    ops = theirs.index.drop("IDLE")
    np.testing.assert_allclose(ours.loc[ops, "total_time_us"], theirs.loc[ops, "total_time"], atol=1e-6)
    # XProf leaves out what names no op; here it is a row, so that all adds up to the same window.
    assert len(ours.index.difference(theirs.index)) == 1
    # (Streams of one device overlap for 4 µs; XProf takes that from the idle time, here it is not idle twice.)
    assert 0 <= ours["self_time_us"].sum() - theirs["total_self_time"].sum() + 1e-6 < 5


GENERATED = {
    "fit": cpu_fit_capture(1, 8, validation_batches=3),
    "marked fit": cpu_fit_capture(1, 7, marks="train", traced_first=True),
    "one GPU": gpu_capture(1, 7),
    "four GPUs": gpu_capture(4, 3, layers=2),
    "AMD": gpu_capture(2, 3, dialect="amd"),
}


@pytest.mark.parametrize("key", GENERATED)
def test_generated_captures(key):
    data = GENERATED[key].bytes()
    (theirs, without), ours = both(data)
    for side in ("Host", "Device"):
        only_theirs, only_ours = compare(theirs, ours, side)
        assert not only_theirs
        assert set(only_ours["execution_mode"]) <= {"eager"}
    if "fit" in key:
        return
    # The same rows: then the percentages are equal too.
    for table, mine in ((theirs, ours), (without, without_idle(ours))):
        pairs = table.merge(mine, left_on=["host_or_device", "operation"], right_on=["host_or_device", "name"])
        assert len(pairs) == len(table) == len(mine)
        for xprof_column, column in (
            ("device_total_self_time_percent", "device_self_time_pct"),
            ("device_cumulative_total_self_time_percent", "device_cumulative_pct"),
            ("host_total_self_time_percent", "host_self_time_pct"),
            ("Host_cumulative_total_self_time_percent", "host_cumulative_pct"),
        ):
            np.testing.assert_allclose(pairs[column], 100 * pairs[xprof_column], atol=1e-6)
        assert pairs["rank"].is_monotonic_increasing
        assert mine["name"].tolist() == table["operation"].tolist()
    assert properties(xprof(data, "framework_op_stats")[0])["task_type"] == "Training"


def test_several_hosts():
    spaces = [space.bytes() for space in pod_captures(2, 2, 4, allocations=False)]
    theirs = frame(xprof(spaces, "framework_op_stats")[0])
    ours = op_stats([Trace(read(data)) for data in spaces])
    for side in ("Host", "Device"):
        only_theirs, only_ours = compare(theirs, ours, side)
        assert not only_theirs
        assert only_ours.empty


def grow(line, random, start_ns, end_ns, depth, count):
    """Write properly nested ops with a name each: children may touch, or begin with their parent, but end before it."""
    at = start_ns
    while at < end_ns and count[0] < 400:
        first = at + int(random.integers(0, 40)) * int(random.integers(0, 2))
        last = first + int(random.integers(0, max(2, (end_ns - start_ns) // 2)))
        if last > end_ns:
            return
        count[0] += 1
        if random.random() < 0.8:
            line.event(f"op_{count[0]}:Op", first / 1000, (last - first) / 1000)
        else:
            line.event("no op", first / 1000, (last - first) / 1000)
        if depth < 6 and last - first > 2:
            grow(line, random, first, last - 1, depth + 1, count)
        at = last


@pytest.mark.parametrize("seed", range(8))
def test_random_nesting(seed):
    random = np.random.default_rng(seed)
    space = Space("h")
    plane = space.plane("/host:CPU")
    count = [0]
    for number in range(12):
        line = plane.line(f"thread/{number}", id=number - 5, timestamp_ns=int(random.integers(0, 1000)))
        grow(line, random, int(random.integers(0, 1000)), int(random.integers(2000, 60_000)), 0, count)
        if count[0] >= 400:
            break
    (theirs, _), ours = both(space.bytes())
    only_theirs, only_ours = compare(theirs, ours, "Host")
    assert not only_theirs
    assert only_ours.empty
    assert len(ours) > 100


def test_xprof_loses_ops_that_overlap_or_end_together_and_we_do_not():
    space = Space("h")
    line = space.plane("/host:CPU").line("python")
    line.event("outer:Op", 0, 10)
    line.event("ends_with_it:Op", 5, 5)
    line.event("first:Op", 20, 6)
    line.event("overlaps:Op", 24, 6)
    (theirs, _), ours = both(space.bytes())
    assert set(theirs["operation"]) == {"outer", "first", "IDLE"}
    assert set(ours["name"]) == {"outer", "ends_with_it", "first", "overlaps", "IDLE"}
