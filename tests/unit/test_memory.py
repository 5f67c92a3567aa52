"""Memory: the table, each allocator's peak, and what was live at it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.memory import (
    BEFORE_CAPTURE,
    MEMORY_COLUMNS,
    PEAK_COLUMNS,
    STACK,
    SUMMARY_COLUMNS,
    memory,
    memory_peak,
    memory_summary,
)
from tfprof_widgets.xspace import read


def trace_of(space: Space) -> Trace:
    return Trace(read(space.bytes()))


def host_line(space: Space):
    return space.plane("/host:CPU").line("tf_Compute/1", id=1)


def write(line, time_us, kind, size, in_use, address, **more):
    """Write an allocation ('+') or a free ('-') that leaves ``in_use`` bytes allocated."""
    values = {
        "allocator_name": "cpu", "allocation_bytes": size, "requested_bytes": size - 1, "bytes_allocated": in_use,
        "bytes_reserved": 0, "bytes_available": 10_000 - in_use, "peak_bytes_in_use": in_use, "addr": address, "fragmentation": 0.25,
    }  # fmt: skip
    line.event("MemoryAllocation" if kind == "+" else "MemoryDeallocation", time_us, 0, {**values, **more})


def test_the_table_holds_what_the_events_say():
    space = Space()
    line = host_line(space)
    write(line, 5, "+", 100, 600, 0xA, tf_op="a/MatMul", region_type="output", data_type=19, shape="[2,3]", id=7)
    write(line, 9, "-", 100, 500, 0xA, id=0, data_type=0, bytes_reserved=50)
    table = memory(trace_of(space))
    assert list(table.columns) == list(MEMORY_COLUMNS)
    first, last = table.iloc[0], table.iloc[1]
    assert (first["time_ms"], first["kind"], first["bytes"], first["requested_bytes"]) == (0.005, "allocation", 100, 99)
    assert (first["in_use_bytes"], first["free_bytes"], first["fragmentation"]) == (600, 9400, 0.25)
    assert (last["kind"], last["in_use_bytes"], last["stack_bytes"], last["heap_bytes"]) == (
        "deallocation",
        550,
        50,
        500,
    )
    # A free is told the tensor of the allocation that it ends.
    for column, value in {
        "op_name": "a/MatMul",
        "region_type": "output",
        "data_type": "half",
        "shape": "[2,3]",
    }.items():
        assert table[column].tolist() == [value, value]
    assert table["step"].isna().all()


def test_rows_are_in_time_order_over_threads_and_lines_start_at_different_times():
    space = Space()
    plane = space.plane("/host:CPU")
    late = plane.line("a", id=1, timestamp_ns=40_000)
    early = plane.line("b", id=2, timestamp_ns=1_000)
    write(late, 50, "+", 10, 20, 2)
    write(early, 5, "+", 10, 10, 1)
    write(early, 70, "-", 10, 10, 1)
    table = memory(trace_of(space))
    assert table["time_ms"].tolist() == [0.005, 0.05, 0.07]
    assert memory_summary(table)["peak_time_ms"].tolist() == [0.05]


def test_steps_are_those_of_the_events():
    space = Space()
    line = host_line(space)
    line.event("other", 0, 1)
    write(line, 5, "+", 10, 10, 1)
    write(line, 6, "-", 10, 0, 1)
    table = memory(trace_of(space), np.array([3, 4, -1]))
    assert table["step"].tolist() == [4, pd.NA]


def test_the_peak_holds_what_is_live_whatever_its_step():
    space = Space()
    line = host_line(space)
    write(line, 1, "+", 100, 1100, 0xA, tf_op="kept", id=1)
    write(line, 2, "+", 200, 1300, 0xB, tf_op="freed")
    write(line, 3, "-", 200, 1100, 0xB)
    write(line, 4, "+", 300, 1400, 0xC, tf_op="twice", shape="[1]")
    write(line, 5, "+", 300, 1700, 0xB, tf_op="twice", shape="[1]", bytes_reserved=7)
    write(line, 6, "-", 300, 1400, 0xC)
    write(line, 7, "+", 10, 1410, 0xD, tf_op="later")
    peak = memory_peak(memory(trace_of(space)))
    assert list(peak.columns) == list(PEAK_COLUMNS)
    rows = peak.set_index("op_name")[["occurrences", "bytes", "total_bytes"]]
    assert rows.index.tolist() == [BEFORE_CAPTURE, "twice", "kept", STACK]
    assert rows.loc[BEFORE_CAPTURE].tolist() == [1, 1000, 1000]
    assert rows.loc["twice"].tolist() == [2, 300, 600]
    assert rows.loc[STACK].tolist() == [1, 7, 7]
    assert peak["total_bytes"].sum() == 1707


def test_the_lifetime_peak_is_the_true_maximum():
    space = Space()
    line = host_line(space)
    write(line, 1, "+", 10, 500, 1, peak_bytes_in_use=450)  # recorded before another thread's event, which reports more
    write(line, 2, "+", 10, 400, 2, peak_bytes_in_use=400)
    write(line, 3, "-", 10, 500, 1, peak_bytes_in_use=500)
    summary = memory_summary(memory(trace_of(space)))
    assert list(summary.columns) == list(SUMMARY_COLUMNS)
    row = summary.iloc[0]
    assert (row["lifetime_peak_bytes"], row["peak_bytes"], row["peak_time_ms"]) == (500, 500, 0.003)
    assert (row["allocations"], row["deallocations"], row["capacity_bytes"]) == (2, 1, 10_000)


def test_allocators_are_apart_even_at_the_same_address():
    space = Space()
    line = host_line(space)
    write(line, 1, "+", 10, 10, 1, tf_op="a")
    write(line, 2, "+", 20, 20, 1, tf_op="b", allocator_name="gpu")
    write(line, 3, "-", 20, 0, 1, allocator_name="gpu")
    table = memory(trace_of(space))
    assert table["op_name"].tolist() == ["a", "b", "b"]
    assert memory_summary(table)["allocator"].tolist() == ["gpu", "cpu"]
    assert memory_peak(table)["op_name"].tolist() == ["b", "a"]


def test_a_missed_free_never_makes_more_live_than_in_use():
    space = Space()
    line = host_line(space)
    write(line, 1, "+", 100, 100, 1, tf_op="a")
    write(line, 2, "+", 100, 100, 1, tf_op="b")  # the same address again: the first block must be gone
    write(line, 3, "+", 500, 300, 2, tf_op="c")  # more than the allocator says it has
    table = memory(trace_of(space))
    peak = memory_peak(table)
    assert set(peak["op_name"]) == {"b", "c"}
    assert (peak["total_bytes"] > 0).all()


def test_allocators_without_a_name_go_by_their_number():
    space = Space()
    line = host_line(space)
    write(line, 1, "+", 10, 10, 1, allocator_name="", device_ordinal=3)
    write(line, 2, "+", 10, 10, 1, allocator_name=None, index_on_host=2, device_ordinal=5)
    write(line, 3, "+", 10, 10, 1, allocator_name="")
    write(line, 4, "+", 10, 10, 1, allocator_name="cpu")
    assert memory(trace_of(space))["allocator"].tolist() == ["device 3", "device 2", "unknown allocator", "cpu"]


@pytest.mark.parametrize(
    ("stored", "shown"), [("\0PU_0_bfc", "GPU_0_bfc"), ("\0pu_host_bfc", "gpu_host_bfc"), ("PUMA", "PUMA")]
)
def test_windows_beheaded_names_get_their_first_letter_back(stored, shown):
    space = Space()
    write(host_line(space), 1, "+", 10, 10, 1, allocator_name=stored)
    assert memory(trace_of(space))["allocator"].tolist() == [shown]


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("\x0064]", "[64]"),
        ("\0]", "[]"),
        ("\x0032", "[32,…]"),
        ("[32,64]", "[32,64]"),
        ("<unknown>", "<unknown>"),
        ("", ""),
    ],
)
def test_windows_beheaded_shapes_get_their_bracket_back(stored, shown):
    space = Space()
    write(host_line(space), 1, "+", 10, 10, 1, shape=stored)
    assert memory(trace_of(space))["shape"].tolist() == [shown]


def test_no_text_reads_as_no_text_and_unknown_types_as_numbers():
    space = Space()
    line = host_line(space)
    write(line, 1, "+", 10, 10, 1, tf_op="(null)", region_type="(null)", data_type=77, fragmentation=float("nan"))
    write(line, 2, "+", 10, 20, 2, data_type=101, fragmentation=0)
    table = memory(trace_of(space))
    assert table["op_name"].tolist() == table["region_type"].tolist() == ["", ""]
    assert table["data_type"].tolist() == ["type 77", "float_ref"]
    assert table["fragmentation"].tolist() == pytest.approx([np.nan, 0], nan_ok=True)


def test_device_planes_hold_no_allocations():
    space = Space()
    write(space.plane("/device:GPU:0").line("Stream #1", id=1), 1, "+", 10, 10, 1)
    assert len(memory(trace_of(space))) == 0


@pytest.mark.parametrize("space", [gpu_capture(steps=1, allocations=False), Space("empty")])
def test_without_allocations_all_tables_are_empty(space):
    space.plane("/host:CPU")
    table = memory(trace_of(space))
    assert list(table.columns) == list(MEMORY_COLUMNS)
    for result, columns in ((memory_summary(table), SUMMARY_COLUMNS), (memory_peak(table), PEAK_COLUMNS)):
        assert len(result) == 0
        assert list(result.columns) == list(columns)


def test_nonsense_sizes_are_no_error():
    space = Space()
    line = host_line(space)
    write(line, 1, "+", 1 << 62, 1 << 62, 1, bytes_reserved=1 << 62)
    write(line, 2, "+", -5, -7, 2, bytes_available=-(1 << 62))
    line.event("MemoryAllocation", 3, 0, allocator_name=4, bytes_allocated="many", addr=1.5, shape=3, data_type="float")
    table = memory(trace_of(space))
    sizes = table[["bytes", "requested_bytes", "in_use_bytes", "heap_bytes", "free_bytes", "peak_bytes"]]
    assert (sizes >= 0).all(axis=None)
    assert len(memory_summary(table)) == 2
    assert (memory_peak(table)["total_bytes"] >= 0).all()


@pytest.mark.parametrize("space", [cpu_fit_capture(epochs=1, batches=4), gpu_capture(devices=2, steps=3)])
def test_the_rows_of_a_peak_add_up_to_it(space):
    table = memory(trace_of(space))
    summary = memory_summary(table).set_index("allocator")
    held = memory_peak(table).groupby("allocator", sort=False)["total_bytes"].sum()
    assert len(summary) > 0
    assert held.to_dict() == summary["peak_bytes"].to_dict()
    assert (summary["allocations"] + summary["deallocations"]).sum() == len(table)
    assert (summary["lifetime_peak_bytes"] >= summary["peak_bytes"]).all()


@settings(max_examples=60, deadline=None)
@given(
    before=st.integers(0, 1000),
    actions=st.lists(
        st.tuples(st.sampled_from("+-"), st.integers(0, 5), st.integers(1, 50), st.integers(0, 2)), max_size=40
    ),
)
def test_live_blocks_are_those_of_a_replay(before, actions):
    """Random allocations and frees on three threads, against a replay one by one."""
    space = Space()
    plane = space.plane("/host:CPU")
    lines = [plane.line(f"t{i}", id=i) for i in range(3)]
    live: dict[int, int] = {}
    in_use, best, at_best = before, -1, {}
    for time, (kind, address, size, thread) in enumerate(actions):
        if (kind == "+") == (address in live):
            continue  # an allocator gives out free addresses only
        size = size if kind == "+" else live[address]
        in_use += size if kind == "+" else -size
        live = {**live, address: size} if kind == "+" else {a: s for a, s in live.items() if a != address}
        write(lines[thread], time + 1, kind, size, in_use, address)
        if in_use >= best:
            best, at_best = in_use, live
    table = memory(trace_of(space))
    summary, peak = memory_summary(table), memory_peak(table)
    assert len(summary) == (best >= 0)
    if best >= 0:
        assert summary["peak_bytes"].tolist() == [best]
        assert peak["total_bytes"].sum() == best
        blocks = peak[peak["op_name"] != BEFORE_CAPTURE]
        assert sorted(blocks["bytes"].repeat(blocks["occurrences"])) == sorted(at_best.values())
        assert peak.loc[peak["op_name"] == BEFORE_CAPTURE, "bytes"].sum() == before
