"""The input pipeline analyzer on generated profiles: verdict, device side, host side, input ops."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from generate import Space, cpu_fit_capture, gpu_capture
from generate.input_pipeline import input_pipeline_capture
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.input_pipeline import (
    CATEGORIES,
    ENQUEUE,
    IN_ADVANCE,
    ON_DEMAND,
    PREPROCESSING,
    InputPipeline,
    category,
    input_pipeline,
)
from tfprof_widgets.analysis.op_stats import op_stats
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.xspace import read


def analyse(*spaces: Space | bytes) -> InputPipeline:
    traces = [
        Trace(read(s if isinstance(s, bytes) else s.bytes()), f"host {i}" if len(spaces) > 1 else "")
        for i, s in enumerate(spaces)
    ]
    return input_pipeline(traces, [find_steps(t) for t in traces], op_stats(traces))


def loop(input_us: float, step_us: float = 1000, steps: int = 12) -> Space:
    """Steps that spend some time in IteratorGetNext and some in an op."""
    space = Space("worker-0")
    python = space.plane("/host:CPU").line("python", id=1)
    for n in range(steps):
        python.event("train", n * step_us, step_us, step_num=n, _r=1)
        python.event("IteratorGetNextOp::DoCompute", n * step_us + 10, input_us, id=n, iter_num=0)
        python.event("model/MatMul:MatMul", n * step_us + 20 + input_us, step_us - 40 - input_us)
    return space


# ---- the verdict ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("input_us", "verdict", "words"),
    [(10, "low", "Not input-bound"), (49, "low", "Not"), (50, "moderate", "Moderately"), (199, "moderate", "Moderately"),
     (200, "high", "Highly input-bound"), (900, "high", "Highly")],
)  # fmt: skip
def test_the_verdict_follows_the_share_of_input_in_the_step_time(input_us, verdict, words):
    summary = analyse(loop(input_us)).summary
    assert summary.verdict == verdict
    assert summary.statement.startswith(words)
    assert summary.input_pct == pytest.approx(input_us / 10)
    assert summary.input_time_ms == pytest.approx(input_us / 1000)
    assert summary.step_time_ms == pytest.approx(1)
    assert (summary.kind, summary.steps) == ("train", 10)  # without the first and the last
    assert bool(summary.suggestion) == (verdict != "low")


def test_the_stage_that_holds_up_the_loop_is_in_the_summary():
    result = analyse(input_pipeline_capture(30, source_us=3000, map_us=100).space)
    summary = result.summary
    assert summary.verdict == "high"
    assert summary.stage == "Iterator::Root::Prefetch::ParallelMapV2::TFRecord"
    assert summary.stage_pct > 90
    assert "TFRecord" in summary.statement
    assert "interleave" in summary.suggestion
    assert summary.category == IN_ADVANCE or summary.category == PREPROCESSING
    row = result.to_frame()
    assert len(row) == 1
    assert row["verdict"].tolist() == ["high"]
    assert list(row.columns) == [f.name for f in dataclasses.fields(summary)]


def test_a_pipeline_that_keeps_up_is_not_blamed_for_slow_copies():
    space = loop(300)
    line = space.plane("/host:CPU").line("get_next", id=9)
    for n in range(12):
        line.event("Iterator::Root", n * 1000 + 20, 5, id=1)
    summary = analyse(space).summary
    assert summary.verdict == "high"
    assert "handing over and copying" in summary.statement
    assert "Copy less" in summary.suggestion


def test_input_without_tf_data_is_said():
    summary = analyse(loop(300)).summary
    assert "doesn't come from a tf.data pipeline" in summary.statement
    assert summary.stage == ""
    assert "tf.data" in summary.suggestion


def test_time_in_no_category_is_told_but_does_not_make_a_run_input_bound():
    space = Space("worker-0")
    python = space.plane("/host:CPU").line("python", id=1)
    for n in range(10):
        python.event("train", n * 1000, 1000, step_num=n, _r=1)
        python.event("model/MatMul:MatMul", n * 1000 + 10, 500)
    summary = analyse(space).summary
    assert summary.verdict == "low"
    assert summary.other_pct == pytest.approx(50)
    assert "50 % is in no category" in summary.statement


def test_without_steps_the_verdict_is_unknown_and_the_pipeline_still_told():
    space = Space("worker-0")
    thread = space.plane("/host:CPU").line("background", id=1)
    for n in range(5):
        thread.event("Iterator::Root", n * 1000, 900, id=1)
    result = analyse(space)
    assert result.summary.verdict == "unknown"
    assert np.isnan(result.summary.input_pct)
    assert "No step time was measured" in result.summary.statement
    assert "Root" in result.summary.statement
    assert result.per_step.empty
    assert result.device_side.empty


def test_training_is_judged_where_there_is_training():
    result = analyse(cpu_fit_capture(epochs=2, batches=10, validation_batches=4))
    assert result.summary.kind == "train"
    assert result.device_side["kind"].tolist() == ["train"] * 3 + ["test"] * 3
    assert result.pipelines["kind"].tolist() == ["train", "test"]


# ---- device side ---------------------------------------------------------------------------------------------


def test_statistics_of_step_and_input_time():
    space = Space("worker-0")
    python = space.plane("/host:CPU").line("python", id=1)
    waits = [900, 100, 200, 300, 100, 500, 900]
    for n, wait in enumerate(waits):
        python.event("train", n * 2000, 1000 + wait, step_num=n, _r=1)
        python.event("IteratorGetNextOp::DoCompute", n * 2000 + 10, wait, id=n, iter_num=0)
        python.event("model/MatMul:MatMul", n * 2000 + 20 + wait, 900)
    result = analyse(space)
    kept = np.array(waits[1:-1]) / 1000
    table = result.device_side.set_index("measure")
    for measure, value in (("input_time_ms", kept), ("step_time_ms", 1 + kept), ("input_pct", 100 * kept / (1 + kept))):
        row = table.loc[measure]
        expected = [value.mean(), value.std(ddof=1), value.min(), value.max(), np.median(value)]
        assert row[["mean", "std", "min", "max", "median"]].tolist() == pytest.approx(expected)
        assert row["steps"] == 5
    assert result.per_step["averaged"].tolist() == [False] + [True] * 5 + [False]
    assert result.per_step["input_ms"].tolist() == pytest.approx([w / 1000 for w in waits])


def test_one_step_has_no_deviation():
    result = analyse(loop(300, steps=1))
    assert result.device_side["steps"].tolist() == [1, 1, 1]
    assert result.device_side["std"].isna().all()


def test_the_range_over_devices_of_the_time_waiting_for_input():
    trace = Trace(read(gpu_capture(devices=2, steps=8).bytes()))
    steps = find_steps(trace)
    result = input_pipeline([trace], [steps], op_stats(trace))
    table = steps.table
    assert table["device"].nunique() == 2
    assert len(result.per_step) == table["step"].nunique()
    for row in result.per_step.to_dict("records"):
        mine = table[table["step"] == row["step"]]
        assert row["devices"] == len(mine) == 2
        assert row["duration_ms"] == mine["duration_ms"].max()
        assert (row["input_min_ms"], row["input_max_ms"]) == (mine["input_ms"].min(), mine["input_ms"].max())
        assert row["input_ms"] == pytest.approx(mine["input_ms"].mean())
        assert row["input_pct"] == pytest.approx((100 * mine["input_ms"] / mine["duration_ms"]).mean())
    averaged = table[steps.averaged]
    assert result.summary.input_pct == pytest.approx(100 * averaged["input_ms"].sum() / averaged["duration_ms"].sum())


# ---- host side -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Iterator::Root::BatchV2::TFRecord", ON_DEMAND),
        ("Iterator::Root::BatchV2::TextLine", ON_DEMAND),
        ("Iterator::Root::FlatMap[3]::FixedLengthRecordV2", ON_DEMAND),
        ("Iterator::Root::Prefetch::TFRecord", IN_ADVANCE),
        ("Iterator::Root::ParallelMapV2::Shuffle::TFRecord", IN_ADVANCE),
        ("Iterator::Root::Interleave[0]::SSTable", IN_ADVANCE),
        ("Iterator::Root::ParallelInterleaveV4[0]::TFRecord", IN_ADVANCE),
        ("Iterator::Root::MemoryCacheImpl::TFRecord", IN_ADVANCE),
        ("Iterator::Root::Prefetch::TensorSlice", PREPROCESSING),
        ("Iterator::Root::Map::TFRecordish", PREPROCESSING),
        ("Iterator::Root", PREPROCESSING),
    ],
)
def test_categories_of_iterators(name, expected):
    assert category(name) == expected


def test_the_four_categories_add_up_to_the_input_ops():
    space = Space("worker-0")
    plane = space.plane("/host:CPU")
    thread, launcher = plane.line("background", id=1), plane.line("Host Threads/7", id=2)
    thread.event("Iterator::Root", 0, 100, id=1)
    thread.event("Iterator::Root::BatchV2", 5, 90, id=2, parent_id=1)
    thread.event("Iterator::Root::BatchV2::TFRecord", 10, 60, id=3, parent_id=2)
    thread.event("Iterator::Root::Prefetch::TFRecord", 200, 30, id=4, parent_id=5)
    thread.event("infeed:InfeedEnqueueTuple", 300, 7)
    launcher.event("MemcpyH2D", 50, 4, correlation_id=1)
    launcher.event("MemcpyH2D", 60, 5, correlation_id=2)
    launcher.event("MemcpyD2H", 70, 9, correlation_id=3)
    result = analyse(space)
    side = result.host_side.set_index("category")
    assert side.index.tolist() == list(CATEGORIES)
    assert side["time_ms"].tolist() == pytest.approx([0.060, 0.030, 0.040, 0.016])
    assert side["time_pct"].sum() == pytest.approx(100)
    assert side["ops"].tolist() == [1, 1, 2, 2]
    ops = result.input_ops.set_index("name")
    assert ops.loc["MemcpyH2D", ["count", "category"]].tolist() == [2, ENQUEUE]
    assert ops.loc["infeed", "category"] == ENQUEUE
    assert "MemcpyD2H" not in ops.index
    assert ops["self_time_pct"].sum() == pytest.approx(100)
    assert ops["self_time_ms"].is_monotonic_decreasing
    assert ops.loc["Iterator::Root", ["total_time_ms", "self_time_ms"]].tolist() == pytest.approx([0.1, 0.01])
    assert ops.loc["Iterator::Root", "total_time_pct"] == pytest.approx(100 * 0.1 / 0.146)


def test_waiting_and_functions_stand_beside_self_time():
    played = input_pipeline_capture(20, source_us=100, map_us=2000, parallelism=2)
    result = analyse(played.space)
    ops = result.input_ops.set_index("name")
    mapped = ops.loc["Iterator::Root::Prefetch::ParallelMapV2"]
    assert mapped["function_time_ms"] == pytest.approx(played.function_us / 1000)
    assert 0 < mapped["self_time_ms"] - mapped["wait_time_ms"] < 0.1
    assert ops.loc["Iterator::Root::Prefetch", "wait_time_ms"] == pytest.approx(sum(played.waited_us) / 1000)
    assert ops.drop(index="Iterator::Root::Prefetch::ParallelMapV2")["function_time_ms"].eq(0).all()
    assert any("added up over threads" in note for note in result.notes)


# ---- several hosts, nothing at all ---------------------------------------------------------------------------


def test_hosts_are_added_up_and_the_one_that_waits_is_judged():
    quick = input_pipeline_capture(20, source_us=100, map_us=100, step_us=3000)
    slow = input_pipeline_capture(20, source_us=5000, map_us=100, step_us=3000)
    one, both = analyse(quick.space), analyse(quick.space, slow.space)
    assert both.per_step["host"].value_counts().to_dict() == {"host 0": 20, "host 1": 20}
    assert both.pipelines["host"].tolist() == ["host 0", "host 1"]
    assert both.pipelines["verdict"].tolist() == ["low", "high"]
    assert both.summary.stage.endswith("TFRecord")
    assert both.summary.steps == 36
    root = both.input_ops.set_index("name").loc["Iterator::Root", "count"]
    assert root == 2 * one.input_ops.set_index("name").loc["Iterator::Root", "count"]
    assert both.tf_data["host"].tolist() == ["host 0"] * 4 + ["host 1"] * 4


def test_a_profile_without_input_has_empty_tables_with_the_same_columns():
    space = Space("worker-0")
    space.plane("/host:CPU").line("python", id=1).event("something", 0, 10)
    full, empty = analyse(input_pipeline_capture(8).space), analyse(space)
    assert empty.summary.verdict == "unknown"
    assert empty.notes
    for name in ("device_side", "per_step", "input_ops", "tf_data", "pipelines", "calls"):
        assert getattr(empty, name).empty
        assert list(getattr(empty, name).columns) == list(getattr(full, name).columns)
        pd.testing.assert_series_equal(getattr(empty, name).dtypes, getattr(full, name).dtypes)
    assert empty.host_side["time_ms"].tolist() == [0, 0, 0, 0]


def test_device_only_and_line_less_profiles_do_no_harm():
    space = Space()
    stream = space.plane("/device:GPU:0").line("Stream #7(Compute)", id=7)
    stream.event("volta_sgemm", 0, 10, kernel_details="regs:32 grid:1,1,1 block:32,1,1")
    space.plane("/host:CPU")
    assert analyse(space).input_ops.empty


# ---- with TensorFlow -----------------------------------------------------------------------------------------

_PROGRAM = """
import json, sys, time
import tensorflow as tf
range_, auto = tf.data.Dataset.range, tf.data.AUTOTUNE

slept_s = 0.0

def pause(seconds):
    global slept_s
    begun = time.perf_counter()
    time.sleep(seconds)
    slept_s += time.perf_counter() - begun

def slow(x, seconds):
    def sleep(x):
        pause(seconds)
        return x
    return tf.ensure_shape(tf.py_function(sleep, [x], tf.int64), [])

def generate():
    for i in range(20):
        pause(0.005)
        yield i

pipelines = {
    "map": range_(20).map(lambda a: slow(a, 0.005), num_parallel_calls=1).prefetch(2),
    "source": tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64)).map(
        lambda b: b + 1, num_parallel_calls=2).prefetch(2),
    "inner": range_(20).map(lambda c: slow(c, 0.005)).prefetch(4).map(lambda d: d * 2, num_parallel_calls=2).prefetch(2),
    "hidden": range_(20).map(lambda e: slow(e, 0.002), num_parallel_calls=1).prefetch(4),
}
for name, dataset in pipelines.items():
    work = 0.010 if name == "hidden" else 0.001
    slept_s = 0.0
    with tf.profiler.experimental.Profile(f"{sys.argv[1]}/{name}"):
        iterator = iter(dataset)
        for step in range(20):
            with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
                next(iterator)
                time.sleep(work)
    with open(f"{sys.argv[1]}/{name}.json", "w") as file:
        json.dump(1000 * slept_s, file)
"""


@pytest.mark.tensorflow
def test_real_pipelines_with_a_known_bottleneck(tmp_path: Path):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("no TensorFlow to capture with")
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    subprocess.run([sys.executable, str(program), str(tmp_path)], check=True, capture_output=True, timeout=240)
    culprit = {"map": "ParallelMapV2", "source": "Generator", "inner": "Map"}
    for name in ("map", "source", "inner", "hidden"):
        (path,) = (tmp_path / name).rglob("*.xplane.pb")
        result = analyse(path.read_bytes())
        main = result.pipelines[result.pipelines["kind"] == "train"].iloc[0]
        if name == "hidden":
            assert main["verdict"] == "low", main.to_dict()
            continue
        assert main["verdict"] == "high", main.to_dict()
        assert main["bottleneck"].rpartition("::")[2] == culprit[name], main.to_dict()
        assert main["calls"] == 20
        # 20 calls that sleep 5 ms each, longer on a busy machine; counted once, with some of Python's own time.
        slept_ms = json.loads((tmp_path / f"{name}.json").read_text())
        python_ms = result.tf_data.set_index("name").loc[culprit[name], "python_time_ms"]
        assert 0.99 * slept_ms <= python_ms < 1.8 * slept_ms
