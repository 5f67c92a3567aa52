"""Steps on generated profiles: which there are, when, and that their parts add up."""

from __future__ import annotations

import numpy as np
import pytest

from generate import Space, cpu_fit_capture
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.intervals import layered_union_ps, overlapping, union_ps
from tfprof_widgets.analysis.steps import CATEGORY_COLUMNS, Steps, find_steps
from tfprof_widgets.xspace import read


def steps_of(space: Space) -> Steps:
    return find_steps(Trace(read(space.bytes())))


def python_thread(space: Space | None = None):
    return (space or Space("worker-0")).plane("/host:CPU").line("python", id=1)


def call(line, name: str, start_us: float, duration_us: float, *, traced: bool = False):
    kind = "traced-nonXla" if traced else "notTraced-nonXla"
    return line.event(name, start_us, duration_us, tf_function_call=kind, tracing_count=1)


def sums_to_duration(steps: Steps) -> bool:
    table = steps.table
    return np.allclose(table[list(CATEGORY_COLUMNS)].sum(axis=1), table["duration_ms"], rtol=0, atol=1e-9)


def test_every_batch_of_a_keras_3_fit_is_a_step():
    steps = steps_of(cpu_fit_capture(epochs=2, batches=12))
    assert len(steps.table) == 24
    assert set(steps.table["kind"]) == {"train"}
    assert steps.source == "function calls"
    assert sums_to_duration(steps)
    assert (steps.table["input_ms"] > 0).all()
    assert (steps.table["host_compute_ms"] > 0).all()


def test_the_time_between_epochs_is_charged_to_no_step():
    steps = steps_of(cpu_fit_capture(epochs=2, batches=12))
    end_ms = steps.table["start_ms"] + steps.table["duration_ms"]
    gap_ms = steps.table["start_ms"].shift(-1) - end_ms
    within = gap_ms.drop(index=[11, 23])
    assert within.abs().max() < 1e-9  # a step ends where the next one begins
    assert gap_ms[11] == pytest.approx(steps.between_runs_ms)
    assert steps.between_runs_ms > 0


def test_validation_is_told_from_training_by_its_ops():
    steps = steps_of(cpu_fit_capture(epochs=2, batches=8, validation_batches=3))
    assert steps.table["kind"].value_counts().to_dict() == {"train": 16, "test": 6}
    assert steps.table["kind"].tolist() == (["train"] * 8 + ["test"] * 3) * 2


def test_a_mark_that_found_the_data_at_its_end_is_no_step():
    space = Space("worker-0")
    line = python_thread(space)
    for i in range(4):
        line.event("train", 100 * i, 90, step_num=i, _r=1)
    line.event("train", 400, 3, step_num=4, _r=1, end_of_data=1)
    assert len(steps_of(space).table) == 4


def test_batches_without_a_loop_of_keras_have_its_kinds():
    space = Space("worker-0")
    line = python_thread(space)
    for i in range(6):
        call(line, "one_step_on_data", 100 * i, 50)
        function = "__inference_one_step_on_data_7" if i < 3 else "__inference_one_step_on_data_9"
        line.event(f"EagerLocalExecute: {function}", 100 * i + 1, 40)
        line.event("gradient_tape/mul/Mul:Mul" if i < 3 else "mul/Mul:Mul", 100 * i + 5, 10)
    assert steps_of(space).table["kind"].tolist() == ["train"] * 3 + ["test"] * 3


def test_marks_win_over_the_calls_inside_them():
    steps = steps_of(cpu_fit_capture(epochs=1, batches=10, marks="train"))
    assert len(steps.table) == 10
    assert steps.source == "marks"
    assert not steps.table["flags"].str.contains("unmarked").any()
    assert sums_to_duration(steps)


def test_a_traced_step_is_kept_flagged_and_not_averaged():
    steps = steps_of(cpu_fit_capture(epochs=1, batches=10, traced_first=True))
    first = steps.table.iloc[0]
    assert {"first", "traced", "compiling"} <= set(first["flags"].split())
    assert "averaged" not in first["flags"]
    assert first["compilation_ms"] == pytest.approx(80, rel=0.2)  # the generator varies its times
    assert steps.averaged.sum() == 8  # the last one is left out too
    assert "2 of 10 steps are left out" in steps.notes[0]


def test_a_mark_around_several_marks_of_one_name_is_an_epoch():
    line = python_thread()
    line.event("epoch", 0, 1000, step_num=0)
    for i in range(4):
        line.event("batch", 10 + 200 * i, 150, step_num=i)
    steps = steps_of_line(line)
    assert steps.table["kind"].tolist() == ["batch"] * 4


def test_parts_of_a_marked_step_are_not_steps():
    line = python_thread()
    for i in range(4):
        line.event("train", 200 * i, 150, step_num=i)
        line.event("forward", 200 * i + 10, 60, step_num=i)
        line.event("backward", 200 * i + 80, 60, step_num=i)
    assert steps_of_line(line).table["kind"].tolist() == ["train"] * 4


def steps_of_line(line) -> Steps:
    return find_steps(Trace(read(_space_of(line).bytes())))


def _space_of(line):
    space = Space()
    space.message.planes.append(line.plane.message)
    return space


def test_of_interleaved_functions_the_one_with_most_time_makes_the_steps():
    line = python_thread()
    for i in range(6):
        call(line, "train_step", 1000 * i, 600)
        call(line, "update_metrics", 1000 * i + 700, 100)
    steps = steps_of_line(line)
    assert steps.table["kind"].tolist() == ["train_step"] * 6
    assert steps.table["duration_ms"].tolist() == pytest.approx([1.0] * 5 + [0.6])


def test_functions_that_take_turns_in_phases_both_make_steps():
    line = python_thread()
    for i in range(5):
        call(line, "train_step", 1000 * i, 600)
    for i in range(3):
        call(line, "test_step", 10_000 + 500 * i, 200)
    steps = steps_of_line(line)
    assert steps.table["kind"].tolist() == ["train_step"] * 5 + ["test_step"] * 3
    assert steps.between_runs_ms == pytest.approx(10 - 4.6)


def test_a_long_pause_starts_a_new_run():
    line = python_thread()
    for i in range(6):
        call(line, "train_step", 1000 * i + (100_000 if i >= 3 else 0), 600)
    steps = steps_of_line(line)
    assert steps.table["duration_ms"].max() == pytest.approx(1.0)
    assert steps.between_runs_ms == pytest.approx(100 + 0.4)


def test_a_last_call_without_data_is_flagged():
    space = Space("worker-0")
    plane = space.plane("/host:CPU")
    python, compute = plane.line("python", id=1), plane.line("tf_Compute/7", id=7)
    for i in range(5):
        call(python, "train_function", 1000 * i, 800)
        python.event("FunctionRun", 1000 * i + 10, 5, id=100 + i, _r=1)
        compute.event("ExecutorState::Process", 1000 * i + 20, 700, id=100 + i, iter_num=0)
        for k in range(10 if i < 4 else 0):
            compute.event(f"op_{k}:MatMul", 1000 * i + 30 + 50 * k, 40)
    steps = steps_of(space)
    assert "end_of_data" in steps.table["flags"].iloc[-1]
    assert not steps.table["flags"].iloc[:-1].str.contains("end_of_data").any()
    assert steps.table["host_compute_ms"].tolist() == pytest.approx([0.4] * 4 + [0.0])


def test_no_step_gives_an_empty_table_and_says_what_to_do():
    space = Space()
    space.plane("/host:CPU").line("python", id=1).event("anything", 0, 5)
    steps = steps_of(space)
    assert len(steps.table) == 0
    assert list(steps.table.columns[-9:]) == list(CATEGORY_COLUMNS)
    assert "tfprof_widgets.step(i)" in steps.notes[0]


def test_union_counts_overlaps_once():
    group = np.array([0, 0, 0, 1, 2])
    start, end = np.array([0, 5, 20, 0, 9]), np.array([10, 12, 25, 3, 9])
    assert union_ps(group, start, end, 4).tolist() == [17, 3, 0, 0]


def test_layers_give_time_to_the_first_active_one():
    rng = np.random.default_rng(3)
    group = rng.integers(0, 4, 300)
    start = rng.integers(0, 1000, 300)
    end = start + rng.integers(0, 40, 300)
    layer = rng.integers(0, 3, 300).astype(np.int8)
    expected = np.zeros((4, 3), np.int64)
    for g in range(4):
        for t in range(1100):
            active = layer[(group == g) & (start <= t) & (end > t)]
            if len(active):
                expected[g, active.min()] += 1
    assert layered_union_ps(group, start, end, layer, 4, 3).tolist() == expected.tolist()


def test_overlapping_pairs_intervals_with_every_span_they_touch():
    span_start, span_end = np.array([0, 10, 20]), np.array([10, 20, 30])
    interval, span = overlapping(np.array([5, 30, 12]), np.array([25, 40, 13]), span_start, span_end)
    assert list(zip(interval.tolist(), span.tolist(), strict=True)) == [(0, 0), (0, 1), (0, 2), (2, 1)]
