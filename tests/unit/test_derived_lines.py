"""Derived lines: against the ones that old captures store, and against a merge one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets.analysis.derived_lines import (
    NAME_SCOPE,
    OPS,
    STEPS,
    XLA_MODULES,
    XLA_OPS,
    DerivedLines,
    derived_lines,
)
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.xspace import read

DETAILS = "regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:32,1,1 occ_pct:50"


def trace_of(space: Space) -> Trace:
    return Trace(read(space.bytes()))


def events_of(derived: DerivedLines, kind: str) -> list[tuple]:
    """(depth, name, start, end) in µs of all lines of a kind."""
    rows = np.flatnonzero(np.isin(derived.line, np.flatnonzero(derived.lines["name"] == kind)))
    end_ps = derived.start_ps + derived.duration_ps
    return [
        (int(derived.depth[i]), derived.names[derived.name[i]], derived.start_ps[i] / 1e6, end_ps[i] / 1e6)
        for i in rows
    ]


def kernels(*ops: str, group: list[int] | None = None) -> Space:
    """One kernel of each op, 10 µs apart, each taking 4 µs; no op for an empty name."""
    space = Space()
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    for index, op in enumerate(ops):
        more = {"tf_op": op} if op else {}
        stream.event("k", 10 * index, 4, kernel_details=DETAILS, group_id=group[index] if group else 0, **more)
    return space


def test_neighbours_of_one_op_and_step_are_one_event():
    space = kernels("m/a:A", "m/a:A", "m/b:B", "m/a:A", "m/a:A", group=[0, 0, 0, 0, 1])
    derived = derived_lines(trace_of(space))
    assert events_of(derived, OPS) == [(0, "m/a", 0, 14), (0, "m/b", 20, 24), (0, "m/a", 30, 34), (0, "m/a", 40, 44)]
    assert events_of(derived, NAME_SCOPE) == [(0, "m", 0, 34), (0, "m", 40, 44)]
    assert events_of(derived, STEPS) == [(0, "0", 0, 34), (0, "1", 40, 44)]
    assert [derived.types[n] for n in derived.name[derived.line == 2]] == ["A", "B", "A", "A"]


def test_name_scopes_nest_and_end_where_another_begins():
    derived = derived_lines(trace_of(kernels("m/x/y/a:A", "m/x/b:B", "m/x/y/a:A", "c:C", "m/x/b:B", "n/x/a:A")))
    assert events_of(derived, NAME_SCOPE) == [
        # Ops of an outer scope only, or of none, end nothing.
        (0, "m", 0, 44), (1, "x", 0, 44), (2, "y", 0, 24), (0, "n", 50, 54), (1, "x", 50, 54),
    ]  # fmt: skip


def test_kernels_of_no_op_neither_make_nor_end_an_event():
    derived = derived_lines(trace_of(kernels("m/a:A", "", "m/a:A", "")))
    assert events_of(derived, OPS) == [(0, "m/a", 0, 24)]


def test_given_steps_win_over_the_files_groups():
    trace = trace_of(kernels("m/a:A", "m/a:A"))
    derived = derived_lines(trace, np.array([5, 6]))
    assert events_of(derived, STEPS) == [(0, "5", 0, 4), (0, "6", 10, 14)]
    assert len(events_of(derived, OPS)) == 2
    assert sorted(set(derived.step.tolist())) == [5, 6]


def test_xla_modules_and_ops():
    space = Space()
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    for index, (program, hlo_op) in enumerate(
        [(1, "while.1::dot.2"), (1, "while.1::add.3"), (2, "while.1::dot.2"), (2, "")]
    ):
        xla = {"hlo_module": "jit_f", "program_id": program, "hlo_op": hlo_op, "tf_op": "XlaModule:"}
        stream.event("k", 10 * index, 4, kernel_details=DETAILS, **xla)
    stream.event("k", 100, 4, kernel_details=DETAILS)
    derived = derived_lines(trace_of(space))
    assert events_of(derived, XLA_MODULES) == [(0, "jit_f(1)", 0, 14), (0, "jit_f(2)", 20, 34)]
    assert events_of(derived, XLA_OPS) == [
        (0, "while.1", 0, 14), (1, "dot.2", 0, 4), (1, "add.3", 10, 14), (0, "while.1", 20, 24), (1, "dot.2", 20, 24),
    ]  # fmt: skip


def test_a_new_module_ends_ops_and_scopes():
    space = Space()
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    for index, program in enumerate([1, 1, 2]):
        xla = {
            "hlo_module": "jit_f",
            "program_id": program,
            "hlo_op": "dot.2",
            "tf_op": "XlaModule:",
            "name": "jit(f)/dot",
        }
        stream.event("k", 10 * index, 4, kernel_details=DETAILS, **xla)
    derived = derived_lines(trace_of(space))
    assert events_of(derived, OPS) == [(0, "jit(f)/dot", 0, 14), (0, "jit(f)/dot", 20, 24)]
    assert events_of(derived, NAME_SCOPE) == [(0, "jit(f)", 0, 14), (0, "jit(f)", 20, 24)]


def test_in_a_file_without_groups_what_has_no_step_is_of_the_one_before_on_its_device():
    space = kernels("a:A", "a:A", "b:B", "b:B", group=[None] * 4)
    space.plane("/device:GPU:1").line("Stream #1(Kernel)", id=1).event("k", 30, 4, kernel_details=DETAILS, tf_op="a:A")
    derived = derived_lines(trace_of(space), np.array([-1, 4, -1, 5, -1]))
    assert events_of(derived, STEPS) == [(0, "4", 10, 24), (0, "5", 30, 34)]
    assert derived.step[derived.lines["plane"].to_numpy()[derived.line] == 1].tolist() == [-1]


def test_in_a_grouped_file_what_has_no_group_is_of_no_step():
    derived = derived_lines(trace_of(kernels("a:A", "a:A", "b:B", group=[4, None, None])))
    assert events_of(derived, STEPS) == [(0, "4", 0, 4)]


def test_copies_make_steps_but_no_ops():
    space = kernels("m/a:A")
    stream = space.planes[0].line("Stream #2(MemcpyH2D)", id=2)
    stream.event("MemcpyH2D", 50, 5, group_id=0, tf_op="b:_Recv", memcpy_details="size:4")
    derived = derived_lines(trace_of(space))
    assert events_of(derived, STEPS) == [(0, "0", 0, 55)]
    assert events_of(derived, OPS) == [(0, "m/a", 0, 4)]


def test_every_stream_has_its_own_lines_and_the_device_its_steps():
    trace = trace_of(gpu_capture(devices=2, steps=2, grouped=False))
    lines = derived_lines(trace, np.zeros(len(trace), np.int64)).lines
    assert lines["name"].value_counts().to_dict() == {STEPS: 2, NAME_SCOPE: 2, OPS: 4}  # all-reduces have no scope
    assert (lines["stream"] == -1).equals(lines["name"] == STEPS)
    for row in lines[lines["stream"] >= 0].itertuples():
        assert trace.space.line_plane[row.stream] == row.plane


@pytest.mark.parametrize("steps", [1, 3])
def test_old_captures_lines_are_derived_as_they_are_stored(steps):
    trace = trace_of(gpu_capture(steps=steps, dialect="old"))
    assert len(derived_lines(trace).line) == 0
    derived = derived_lines(trace, stored_too=True)
    for kind, full in ((STEPS, False), (OPS, True)):
        line = trace.space.line_name.index(kind)
        rows = np.flatnonzero(trace.line == line)
        stored = [(trace.space.meta_name[trace.meta[i]], trace.start_ps[i], trace.end_ps[i]) for i in rows]
        mine = np.flatnonzero(np.isin(derived.line, np.flatnonzero(derived.lines["name"] == kind)))
        names = [derived.names[n] + (f":{derived.types[n]}" if full else "") for n in derived.name[mine]]
        end_ps = derived.start_ps + derived.duration_ps
        assert stored == list(zip(names, derived.start_ps[mine], end_ps[mine], strict=True))


@pytest.mark.parametrize("space", [cpu_fit_capture(epochs=1, batches=2), Space("empty")])
def test_without_devices_there_are_none(space):
    space.plane("/device:GPU:0")
    derived = derived_lines(trace_of(space))
    assert len(derived.lines) == len(derived.line) == len(derived.name) == 0
    assert list(derived.lines.columns) == ["plane", "stream", "name"]


def merged(paths: list[list[str]], steps: list[int]) -> list[tuple]:
    """Merge one kernel after the other: each level keeps its last event until one begins at it or above."""
    last: list[list] = []
    result = []
    for index, (path, step) in enumerate(zip(paths, steps, strict=True)):
        for depth, name in enumerate(path):
            if depth < len(last) and last[depth][1] == name and last[depth][4] == step:
                last[depth][3] = 10 * index + 4
                continue
            del last[depth:]
            last.append([depth, name, 10 * index, 10 * index + 4, step])
            result.append(last[-1])
    return sorted(tuple(e[:4]) for e in result)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4), st.sampled_from([0, 0, 1])),
        min_size=1,
        max_size=12,
    )
)
def test_merging_equals_a_merge_one_by_one(kernels_):
    paths = [path for path, _ in kernels_]
    steps = [step for _, step in kernels_]
    derived = derived_lines(trace_of(kernels(*("/".join([*path, "op"]) + ":Op" for path in paths), group=steps)))
    assert sorted(events_of(derived, NAME_SCOPE)) == merged(paths, steps)
    ops = [["/".join([*path, "op"])] for path in paths]
    assert sorted(events_of(derived, OPS)) == merged(ops, steps)
