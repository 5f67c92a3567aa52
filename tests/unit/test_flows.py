"""Arrows between events: what leads to what."""

from __future__ import annotations

import numpy as np
import pytest

from generate import Space
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.flows import Flow, flows
from tfprof_widgets.views.timeline import pack_flows
from tfprof_widgets.xspace import read


def arrows(trace: Trace, flow: Flow) -> list[tuple[str, float, str, float]]:
    def word(event: int) -> tuple[str, float]:
        return trace.space.meta_name[trace.meta[event]], trace.start_ps[event] / 1e6

    return sorted(
        (*word(s), *word(t))
        for s, g in zip(flow.source, flow.source_group, strict=True)
        for t in flow.target[flow.target_group == g]
    )


def found(space: Space) -> dict[str, list[tuple[str, float, str, float]]]:
    trace = Trace(read(space.bytes()))
    return {flow.kind: arrows(trace, flow) for flow in flows(trace)}


def test_launches_lead_to_what_ran_and_the_last_one_counts() -> None:
    space = Space()
    host = space.plane("/host:CPU").line("python", id=1)
    stream = space.plane("/device:GPU:0").line("Stream #1(Compute)", id=1)
    host.event("outer", 0, 20, correlation_id=7)
    host.event("cuLaunchKernel", 5, 2, correlation_id=7)
    host.event("cuLaunchKernel", 30, 2, correlation_id=8)
    host.event("lost", 40, 2, correlation_id=9)
    stream.event("kernel_a", 50, 5, correlation_id=7)
    stream.event("kernel_b", 60, 5, correlation_id=8)
    stream.event("orphan", 70, 5, correlation_id=99)
    assert found(space) == {"launch": [("cuLaunchKernel", 5, "kernel_a", 50), ("cuLaunchKernel", 30, "kernel_b", 60)]}


def test_work_goes_by_type_and_id() -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    one, two = plane.line("python", id=1), plane.line("tf_Compute/1", id=2)
    one.event("FunctionRun", 0, 5, _pt=2, _p=11)
    one.event("FunctionRun", 10, 5, _pt=1, _p=11)
    for start in (6, 8):
        two.event("ExecutorState::Process", start, 1, _ct=2, _c=11)
    two.event("ExecutorState::Process", 20, 1, _ct=1, _c=11)
    two.event("ExecutorState::Process", 30, 1, _ct=1, _c=12)
    assert found(space) == {
        "work": [
            ("FunctionRun", 0, "ExecutorState::Process", 6),
            ("FunctionRun", 0, "ExecutorState::Process", 8),
            ("FunctionRun", 10, "ExecutorState::Process", 20),
        ]
    }


def test_a_crowd_on_both_sides_says_nothing() -> None:
    space = Space()
    line = space.plane("/host:CPU").line("python", id=1)
    for i in range(64):
        line.event("gives", i, 0.1, _pt=1, _p=1)
        line.event("takes", i + 0.5, 0.1, _ct=1, _c=1)
    assert found(space) == {}


def test_elements_go_from_a_stage_to_who_takes_them() -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    one, two = plane.line("a", id=1), plane.line("b", id=2)
    one.event("PrefetchProduce", 0, 5, element_id=1)
    one.event("BatchProduce", 10, 5, element_id=1)
    two.event("PrefetchConsume", 20, 5, element_id=1)
    two.event("PrefetchConsume", 30, 5, element_id=2)
    two.event("other", 40, 5, element_id=1)
    assert found(space) == {"element": [("PrefetchProduce", 0, "PrefetchConsume", 20)]}


def test_no_ids_no_arrows() -> None:
    space = Space()
    space.plane("/host:CPU").line("python", id=1).event("x", 0, 1)
    assert found(space) == {}


@pytest.mark.parametrize("name", ["cpu_fit", "t4_fit_2"])
def test_packed_arrows_come_back(capture, name: str) -> None:
    trace = Trace(read(capture(name)))
    made = flows(trace)
    packed = pack_flows(made, 100)

    def number(column: str) -> np.ndarray:
        return sum(
            packed[c].to_numpy().astype(np.int64) << (8 * i)
            for i, c in enumerate(c for c in packed if c.startswith(column))
        )

    at = 0
    row, zigzag = number("row"), number("group")
    change = np.where(zigzag % 2, -(zigzag + 1) // 2, zigzag // 2)
    for flow in made:
        for event, group in ((flow.source, flow.source_group), (flow.target, flow.target_group)):
            part = slice(at, at + len(event))
            np.testing.assert_array_equal(np.cumsum(row[part]), event + 100)
            np.testing.assert_array_equal(np.cumsum(change[part]), group)
            at += len(event)
    assert at == len(packed) > 0
