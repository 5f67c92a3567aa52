"""Two runs side by side: the tables add up, what is not alike is named first, and the sentence names the cause."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tfprof_widgets as tfprof
from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets.report import Report, load
from tfprof_widgets.xspace import read


def report_of(space: Space) -> Report:
    return Report([read(space.bytes())])


def in_words_of_keras_2(space: Space) -> Space:
    """The same run as TensorFlow 2.15 names its ops: no call before the model's name, layers counted from nothing, ``Adam``."""
    for plane in space.message.planes:
        for metadata in (entry.value for entry in plane.event_metadata):
            for field in ("name", "display_name"):
                text = getattr(metadata, field).decode()
                text = text.replace("StatefulPartitionedCall/", "").replace("adam/", "Adam/")
                text = re.sub(r"(sequential|conv2d|flatten|max_pooling2d|dense)_1(?=/|_2/)", r"\1", text)
                setattr(metadata, field, text.replace("dense_2/", "dense_1/").encode())
    return space


def two_versions() -> tuple[Report, Report]:
    keras_3 = cpu_fit_capture(1, 12)
    keras_2 = in_words_of_keras_2(cpu_fit_capture(1, 20, marks="train", seed=5))
    return report_of(keras_2), report_of(keras_3)


def adds_up(comparison: tfprof.Comparison) -> None:
    """Differences add up to the difference of the totals, in every table of times."""
    before, after = comparison.before, comparison.after
    for table, value, mine in (
        (comparison.ops, "self_time_us", "us"),
        (comparison.kernels, "total_time_us", "us"),
        (comparison.input_ops, "self_time_ms", "ms"),
    ):
        name = {"self_time_us": "ops", "total_time_us": "kernels", "self_time_ms": "input_ops"}[value]
        then, now = (float(getattr(report, name)[value].sum()) for report in (before, after))
        assert table[f"before_{mine}"].sum() == pytest.approx(then)
        assert table[f"after_{mine}"].sum() == pytest.approx(now)
        assert table[f"difference_{mine}"].sum() == pytest.approx(now - then, abs=1e-6 * (then + now))
    for _, rows in comparison.steps.groupby("kind"):
        total, parts = rows[rows["category"] == "duration"], rows[rows["category"] != "duration"]
        for column in ("before_ms", "after_ms", "difference_ms"):
            assert parts[column].sum(skipna=False) == pytest.approx(total[column].iloc[0], nan_ok=True)


def test_ops_of_two_tensorflow_versions_find_one_another_and_add_up():
    comparison = tfprof.compare(*two_versions())
    adds_up(comparison)
    ops = comparison.ops.set_index("name")
    assert set(ops["matched"]) <= {"name", "renamed", "position"}
    assert (
        ops.at["StatefulPartitionedCall/sequential_1/dense_1_2/BiasAdd", "name_before"] == "sequential/dense_1/BiasAdd"
    )
    assert ops.at["StatefulPartitionedCall/adam/Sqrt_5", "name_before"] == "Adam/Sqrt_5"
    assert comparison.cautions == [
        "Other number of steps (20 → 12)",
        "steps are marked only before: without marks, the time between them is in them",
    ]


def test_ops_of_two_real_tensorflow_versions_add_up(capture):
    comparison = tfprof.compare(load(capture("keras2_fit")), load(capture("cpu_fit")))
    adds_up(comparison)
    ops = comparison.ops
    both = ~ops["matched"].isin(["appeared", "vanished"])
    # What has no counterpart is what Keras 3 does differently; the model's ops all have one.
    assert ops.loc[both, ["before_us", "after_us"]].sum().sum() > 0.9 * ops[["before_us", "after_us"]].sum().sum()
    renamed = ops[ops["name"].str.endswith("sequential_1/conv2d_1/Relu")]
    assert renamed["name_before"].tolist() == ["sequential/conv2d/Relu"]


@pytest.mark.parametrize("pair", [("t4_fit", "t4_fit_2"), ("gpu_w0", "t4_fit"), ("eager", "raw_tf")])
def test_real_captures_add_up(capture, pair):
    adds_up(tfprof.compare(*(capture(name) for name in pair)))


def test_a_run_and_itself_do_not_differ():
    report = report_of(gpu_capture(devices=2, steps=10, layers=2))
    comparison = tfprof.compare(report, report)
    adds_up(comparison)
    assert comparison.change.told == "no difference shown"
    assert comparison.cautions == []
    assert comparison.statement.startswith("No difference shown: step ")
    for table in (comparison.ops, comparison.kernels, comparison.input_ops):
        assert set(table["matched"]) == {"name"}
    assert (comparison.memory["difference_bytes"] == 0).all()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"slow_input_us": 6_000}, {}, r"Step .* ms, [\d.]+× faster, mostly less waiting for input\."),
        ({}, {"slow_input_us": 6_000}, r"Step .* ms, [\d.]+× slower, mostly more waiting for input\."),
    ],
)
def test_the_sentence_names_waiting_for_input(before, after, words):
    runs = (report_of(cpu_fit_capture(1, 16, seed=i, **options)) for i, options in enumerate((before, after)))
    assert re.fullmatch(words, tfprof.compare(*runs).statement)


def test_the_sentence_names_launches_on_a_gpu():
    before, after = (report_of(gpu_capture(steps=10, layers=3, launch_us=us)) for us in (400, 9))
    comparison = tfprof.compare(before, after)
    adds_up(comparison)
    assert re.fullmatch(r"Step .* faster, mostly less launching of kernels.*", comparison.statement)


def test_what_is_not_alike_is_named_before_any_conclusion():
    cpu, gpu = report_of(cpu_fit_capture(1, 12)), report_of(gpu_capture(steps=8))
    statement = tfprof.compare(cpu, gpu).statement
    assert statement.startswith("Other devices (CPU → ")
    assert "ther number of steps (12 → 8)" in statement.split(":")[0]


def eager_loop(n_ops: int, us: int, marks: int = 0) -> Space:
    """Ops run one by one, with ``marks`` marked steps around them."""
    space = Space("worker-0")
    line = space.plane("/host:CPU").line("python", id=1)
    for i in range(n_ops):
        if marks and i % (n_ops // marks) == 0:
            line.event("train", i * us, us * (n_ops // marks) - 1, step_num=i * marks // n_ops, _r=1)
        line.event("EagerExecute", i * us + 1, us - 4, eager_op="MatMul", is_func=0)
    return space


def test_runs_without_steps_are_compared_as_a_whole_and_only_large_differences_are_told():
    slow, fast, equal = (report_of(eager_loop(100, us)) for us in (100, 30, 80))
    comparison = tfprof.compare(slow, fast)
    assert re.match(r"The profiled code 10\.00 → 3\.00 ms, 3\.34× faster \(one run each\)", comparison.statement)
    assert tfprof.compare(slow, equal).change.told == "too few steps"
    assert "too few to tell from chance" in tfprof.compare(slow, equal).statement
    assert any("Mark the steps" in note for note in comparison.notes)


def test_an_eager_loop_that_became_a_function_is_named():
    before, after = report_of(eager_loop(4000, 100)), report_of(cpu_fit_capture(1, 8))
    statement = tfprof.compare(before, after).statement
    assert statement.startswith("Steps were found only after: the profiled code 400 → 24.")
    assert statement.endswith("mostly because ops no longer run eagerly, one by one from Python.")


def test_another_batch_size_is_named_with_the_time_of_an_example():
    small, large = cpu_fit_capture(1, 12), cpu_fit_capture(1, 12)
    for plane in large.message.planes:
        ids = [entry.key for entry in plane.stat_metadata if entry.value.name == b"batch_size"]
        for stat in (s for line in plane.lines for event in line.events for s in event.stats if s.metadata_id in ids):
            stat.int64_value = 128
    comparison = tfprof.compare(report_of(small), report_of(large))
    assert re.match(
        r"Other batch size \(64 → 128, [\d.]+ → [\d.]+ µs an example\): no difference", comparison.statement
    )


def test_of_several_runs_the_first_and_the_last_are_compared_and_all_are_listed():
    reports = [report_of(cpu_fit_capture(1, 12, seed=i, slow_input_us=us)) for i, us in enumerate((12_000, 4_000, 0))]
    comparison = tfprof.compare(*reports, names=["a", "b", "c"])
    assert comparison.runs["run"].tolist() == ["a", "b", "c"]
    assert comparison.runs["told"].tolist() == ["", "faster", "faster"]
    assert comparison.runs["ratio"].iloc[-1] == pytest.approx(comparison.change.ratio)
    with pytest.raises(ValueError, match="a name for each of the 3 runs"):
        tfprof.compare(*reports, names=["a"])


def test_paths_are_opened_and_what_is_none_is_said(tmp_path):
    paths = [cpu_fit_capture(1, 8, seed=i).save(tmp_path / f"{i}.xplane.pb") for i in range(2)]
    comparison = tfprof.compare(*paths)
    assert comparison.title == "0 → 1"
    with pytest.raises(FileNotFoundError):
        tfprof.compare(paths[0], tmp_path / "none")
    with pytest.raises(TypeError, match=r"by its path \(str or Path\), not by int"):
        tfprof.compare(paths[0], 2)


def test_validation_steps_have_their_own_rows():
    before = report_of(cpu_fit_capture(1, 12, validation_batches=8))
    after = report_of(cpu_fit_capture(1, 12))
    steps = tfprof.compare(before, after).steps
    test = steps[(steps["kind"] == "test") & (steps["category"] == "duration")].iloc[0]
    assert test["before_ms"] > 0
    assert np.isnan(test["after_ms"])
    assert test["told"] == ""


def test_the_overview_tells_only_what_the_runs_tell():
    table = tfprof.compare(*two_versions()).overview.set_index("measure")
    assert table.at["steady steps", "before"] == 18
    assert table.at["step time, median", "ratio"] > 0
    assert "device busy" not in table.index


def test_steps_of_one_run_alone_are_shown_as_its_own():
    comparison = tfprof.compare(report_of(eager_loop(100, 100)), report_of(cpu_fit_capture(1, 12)))
    table = comparison.overview.set_index("measure")
    assert table.at["steady steps", "after"] == 10
    assert table.at["steady steps", "before"] == 0
    assert np.isnan(table.at["step time, median", "before"])
    assert comparison.payload.head["facts"][1]["value"].startswith("12 train steps, ")
    figure = next(item for item in comparison.payload.tabs[0]["items"] if item["kind"] == "figure")
    assert figure["title"].endswith(" (only after)")
