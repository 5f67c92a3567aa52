"""The summary for where no script runs, and as plain text."""

from __future__ import annotations

import pandas as pd

from tfprof_widgets.analysis.advice import Finding
from tfprof_widgets.analysis.steps import CATEGORIES, CATEGORY_LABELS
from tfprof_widgets.display.static_summary import to_html, to_text
from tfprof_widgets.views.summary import shortened, shortened_apart, summary_blocks
from view_frames import HOSTILE, ops_frame, overview_of, steps_frame

HEAD = [{"label": "Steps", "value": "20 train"}, {"label": "Device", "value": "CPU"}]


def text_of(steps, ops=None, notes=(), **more) -> str:
    return to_text(
        "a title", summary_blocks(HEAD, notes, overview_of(steps, ops_frame() if ops is None else ops, **more))
    )


def test_it_tells_what_the_overview_does():
    steps = steps_frame(20)
    text = text_of(steps, notes=["The profiler warned: w"])
    used = steps[steps["flags"] == "averaged"]
    assert text.startswith("a title\n\nSteps   20 train")
    assert "A training step takes 3 ms." in text
    row = next(line for line in text.splitlines() if line.startswith("train"))
    mean = used["duration_ms"].mean()
    assert row.split()[1:5] == ["18", "of", "20", f"{mean:.2f}"]
    input_ms = used["input_ms"].mean()
    line = next(line for line in text.splitlines() if line.startswith("Input "))
    assert line.split() == ["Input", f"{input_ms:.2f}", f"{100 * input_ms / mean:.2f}"]
    assert "The profiler warned: w" in text
    assert "Hosts        1 (worker)" in text
    for category in CATEGORIES:
        assert CATEGORY_LABELS[category] in text
    # The ten ops, each with its rank.
    for rank in range(1, 11):
        assert any(line.split()[:1] == [str(rank)] for line in text.splitlines())


def test_kinds_stand_side_by_side():
    steps = pd.concat([steps_frame(30), steps_frame(10, kind="test", first_step=30)], ignore_index=True)
    lines = text_of(steps).splitlines()
    assert any(line.startswith("train ") for line in lines)
    assert any(line.startswith("test ") for line in lines)
    header = next(line for line in lines if line.startswith("Category"))
    assert header.split() == ["Category", "train", "(ms)", "train", "(%)", "test", "(ms)", "test", "(%)"]


def test_a_kind_without_an_average_is_in_the_statistics_only():
    steps = steps_frame(1)
    steps["flags"] = "first"
    text = text_of(steps)
    assert next(line for line in text.splitlines() if line.startswith("train")).split() == [
        "train",
        "0",
        "of",
        "1",
        *"–––––",
    ]
    assert "Where the time" not in text


def test_without_steps_or_ops_it_says_so():
    text = text_of(steps_frame(3)[:0], ops_frame(0, 0), statement="No steps and no ops were recorded.", notes=["why"])
    assert "No steps and no ops were recorded." in text
    assert "why" in text.splitlines()
    assert "Top" not in text


def test_a_statement_that_is_the_answer_is_said_once():
    nothing = "No steps and no ops were recorded."
    overview = overview_of(steps_frame(3)[:0], ops_frame(0, 0), statement=nothing)
    assert to_text("a title", summary_blocks(HEAD, [], overview, findings=[])).count(nothing) == 1


def test_what_the_head_says_is_not_said_again():
    text = text_of(steps_frame(5), environment={"Device": "CPU", "Cores": "2"})
    assert sum(line.startswith("Device") for line in text.splitlines()) == 1
    assert "Cores" in text


def test_names_are_escaped_and_cut_in_the_middle():
    ops = ops_frame(name=HOSTILE + "{}")
    blocks = summary_blocks(HEAD, [HOSTILE], overview_of(steps_frame(5, kind=HOSTILE), ops, statement=HOSTILE))
    html = to_html(HOSTILE, blocks)
    assert "<img" not in html
    assert "<script" not in html
    assert "&lt;img src=x onerror" in html
    long = "model/" + "block/" * 40 + "dense_7/MatMul{}"
    text = text_of(steps_frame(5), ops_frame(name=long))
    assert "…" in text
    assert "dense_7/MatMul1" in text
    assert max(map(len, text.splitlines())) < 160


def test_it_begins_with_what_to_change():
    overview = overview_of(steps_frame(20), ops_frame())
    findings = [Finding(f"title {i}", f"statement {i}", 1.0, "high", change=f"change {i}") for i in range(5)]
    text = to_text("t", summary_blocks(HEAD, [], overview, findings))
    assert text.index("statement 0") < text.index(overview.statement) < text.index("title 0") < text.index("Step time")
    for i in range(3):
        assert f"change {i}" in text
    assert "title 3" not in text
    assert "2 more recommendations" in text
    assert "Nothing stands out." in to_text("t", summary_blocks(HEAD, [], overview, []))
    hostile = [Finding(HOSTILE, HOSTILE, 0.0, "low", change=HOSTILE)]
    assert "<img" not in to_html("t", summary_blocks(HEAD, [], overview, hostile))


def test_names_keep_what_tells_them_apart():
    layers = [
        f"replica_4/bert_span_labeler/bert_encoder_1/transformer/layer_{n}/attention/dropout/random_uniform/Uniform"
        for n in (1, 22)
    ]
    names = shortened_apart([*layers, "loss/Mean", layers[0]])
    assert all(len(name) <= 72 for name in names)
    assert names[2] == "loss/Mean"
    assert ("layer_1/" in names[0], "layer_22/" in names[1], names[3]) == (True, True, names[0])
    assert names[0].startswith("replica_4/")
    assert shortened_apart([layers[0]] * 2) == [shortened(layers[0])] * 2
    same_end = ["a" * 80 + letter + "b" * 80 for letter in "xy"]
    assert len(set(shortened_apart(same_end))) == 2
