"""The answer at the head of the report, and the list of recommendations."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tfprof_widgets.analysis.advice import Finding
from tfprof_widgets.views.advice import answer, note, prose, recommendations
from view_frames import HOSTILE, ops_frame, overview_of, steps_frame

INPUT = Finding(
    title="The run waits for its input",
    statement="Highly input-bound: waiting for input takes 31 % of a training step.",
    saves_ms=3.1,
    confidence="high",
    evidence={"Parallelism": "1"},
    change="Run more calls at once: num_parallel_calls=tf.data.AUTOTUNE (now 1).",
    links=[("Guide", "https://www.tensorflow.org/guide/data_performance"), ("Input pipeline", "tool:input_pipeline")],
)
FRAGMENTED = Finding(
    "GPU_0_bfc is nearly full", HOSTILE, 0.0, "medium", change="os.environ['A'] = 'b'   # before TensorFlow starts"
)


@pytest.fixture(scope="module")
def summary():
    return overview_of(steps_frame(20), ops_frame())


def test_the_first_sentence_is_the_first_findings(summary):
    said = answer([INPUT, FRAGMENTED], summary)
    assert said["text"] == INPUT.statement
    assert said["detail"] == summary.statement
    assert [link["href"] for link in said["links"]] == ["tool:input_pipeline", "tool:overview"]
    assert said["links"][1]["label"] == "1 more recommendation"
    assert [part["text"] for part in said["action"] if part.get("code")] == ["num_parallel_calls=tf.data.AUTOTUNE"]


def test_a_small_saving_is_no_answer(summary):
    small = dataclasses.replace(INPUT, saves_ms=0.01)
    said = answer([small], summary)
    assert said["text"].startswith("Nothing big stands out: the best change found saves up to 0.3 % of a step.")
    assert said["action"] == answer([INPUT], summary)["action"]
    # What costs no time in a step is said as it is.
    assert answer([FRAGMENTED], summary)["text"] == FRAGMENTED.statement


def test_where_nothing_stands_out_the_report_says_so_and_where_it_looked(summary):
    said = answer([], summary)
    assert said["text"] == "Nothing stands out."
    # A place to look all the same: the op with the most time.
    assert said["detail"].startswith(summary.statement)
    assert str(summary.top_ops["name"].iloc[0]).rpartition("/")[2] in said["detail"]
    item = recommendations([], 3.0)
    assert item["text"].startswith("No recommendation. Looked at: waiting for input")


def test_a_device_that_was_not_recorded_comes_before_any_finding(summary):
    said = answer([INPUT], dataclasses.replace(summary, unseen_devices=1))
    assert said["text"].startswith("The device was not recorded")
    assert "CUPTI" in said["action"][0]["text"]
    assert [link["label"] for link in said["links"]] == ["1 recommendation"]
    assert "was not recorded" in recommendations([], 3.0, unseen=True)["text"]


def test_without_steps_nothing_is_said_to_be_well(summary):
    said = answer([], dataclasses.replace(summary, step_time=summary.step_time[:0]))
    assert "without steps" in said["text"]
    assert {"text": "tfprof_widgets.step(i)", "code": True} in said["action"]


def test_recommendations_keep_their_rank_and_all_that_they_rest_on():
    item = recommendations([INPUT, FRAGMENTED], 10.0)
    json.dumps(item, allow_nan=False)
    assert [row["title"] for row in item["rows"]] == [INPUT.title, FRAGMENTED.title]
    assert item["rows"][0]["evidence"] == [{"label": "Parallelism", "value": "1"}]
    assert [link["href"] for link in item["rows"][0]["links"]] == [href for _, href in INPUT.links]
    assert item["rows"][1]["statement"] == HOSTILE


@pytest.mark.parametrize(
    ("saves_ms", "step_ms", "words"),
    [
        (3.1, 10.0, "saves up to 3.1 ms a step (31.0 %) · high confidence"),
        (0.0, 10.0, "high confidence"),
        (250.0, 0.0, "saves up to 250 ms of the capture · high confidence"),
        (20.0, 10.0, "saves up to 20.0 ms a step · high confidence"),
    ],
)
def test_what_a_finding_saves(saves_ms, step_ms, words):
    assert note(Finding("t", "s", saves_ms, "high"), step_ms) == words


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (
            "model.compile(..., jit_compile=True)   # or tf.function(jit_compile=True): XLA",
            ["model.compile(..., jit_compile=True)"],
        ),
        ("@tf.function   # above the function", ["@tf.function"]),
        ("os.environ['TF_GPU_THREAD_MODE'] = 'gpu_private'", ["os.environ['TF_GPU_THREAD_MODE'] = 'gpu_private'"]),
        ("Its function is Python (py_function or numpy_function), of which one runs.", []),
        ("Batch before: batch() before map(), then cache().", ["batch()", "map()", "cache()"]),
        (
            "Declare: @tf.function(input_signature=[tf.TensorSpec([None, ...], tf.float32)]) or reduce_retracing=True",
            ["@tf.function(input_signature=[tf.TensorSpec([None, ...], tf.float32)])", "reduce_retracing=True"],
        ),
        (
            "Map: map(..., num_parallel_calls=tf.data.AUTOTUNE), after.",
            ["map(..., num_parallel_calls=tf.data.AUTOTUNE)"],
        ),
        ("", []),
    ],
)
def test_code_is_told_from_words(words, code):
    parts = prose(words)
    assert [part["text"] for part in parts if part.get("code")] == code
    if "   #" not in words:
        assert "".join(part["text"] for part in parts) == words


def test_where_nothing_was_recorded_nothing_is_judged():
    empty = steps_frame(3)[:0]
    summary = overview_of(empty, ops_frame(0, 0, idle=False), statement="No steps and no ops were recorded.")
    said = answer([], summary)
    assert said["text"] == "No steps and no ops were recorded."
    assert "--host-level 2" in said["action"][0]["text"]
