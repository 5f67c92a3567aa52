"""What a comparison shows: every table that an item names is there, texts are escaped, and what cannot be shown says why."""

from __future__ import annotations

import html
import re

import pandas as pd
import pytest

import tfprof_widgets as tfprof
from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets.comparison import result
from tfprof_widgets.report import Report
from tfprof_widgets.views.alone import tables_of
from tfprof_widgets.xspace import read
from view_frames import every


def report_of(space: Space) -> Report:
    return Report([read(space.bytes())])


def on_cpus(**names) -> tfprof.Comparison:
    before, after = cpu_fit_capture(1, 16, slow_input_us=6_000), cpu_fit_capture(1, 16, seed=1)
    return tfprof.compare(report_of(before), report_of(after), **names)


def on_gpus() -> tfprof.Comparison:
    runs = (gpu_capture(steps=10, layers=layers, seed=layers) for layers in (3, 1))
    return tfprof.compare(*(report_of(run) for run in runs))


@pytest.mark.parametrize("make", [on_cpus, on_gpus])
def test_every_tab_is_made_and_names_only_tables_that_are_there(make):
    comparison = make()
    payload = comparison.payload
    named = set().union(*(tables_of(tab, list(payload.tables)) for tab in payload.tabs))
    assert named == set(payload.tables)
    for tab in payload.tabs:
        assert not any(item.get("level") == "error" for item in every(tab["items"], "text")), tab["title"]
        assert all(item["table"] in payload.tables for item in every(tab["items"], "table"))
    assert payload.spec["head"]["answer"]["text"] == comparison.statement


def test_kernels_have_a_tab_only_where_there_are_any():
    assert "kernels" in [tab["id"] for tab in on_gpus().payload.tabs]
    assert "kernels" not in [tab["id"] for tab in on_cpus().payload.tabs]


def test_the_steps_are_drawn_as_bars_side_by_side_and_as_a_distribution():
    tab = on_cpus().payload.tabs[0]
    titles = [item["title"] for item in every(tab["items"], "figure")]
    assert titles[0].startswith("Typical step: ")
    assert titles[1:] == ["Times of the steady steps"]
    legend = next(every(tab["items"], "facts"))
    assert legend["rows"][0]["label"] == "Input"  # the category with the largest difference first
    assert "(−" in legend["rows"][0]["value"]


def test_the_bars_title_has_the_sentences_numbers():
    slow, fast = (Report([read(cpu_fit_capture(1, 12, slow_input_us=us).bytes())]) for us in (40_000, 0))
    comparison = tfprof.compare(slow, fast)
    before, after = re.search(r"([\d.]+) → ([\d.]+ ms)", comparison.statement).groups()
    assert float(before) > 10 > float(after.removesuffix(" ms"))  # of different numbers of digits
    title = next(every(comparison.payload.tabs[0]["items"], "figure"))["title"]
    assert title == f"Typical step: {before} → {after}"


def test_the_tables_begin_with_the_most_time_won_or_lost():
    ops = on_gpus().ops["difference_us_per_step"].abs()
    assert ops.is_monotonic_decreasing


def test_what_is_not_alike_heads_the_steps():
    comparison = tfprof.compare(report_of(cpu_fit_capture(1, 12)), report_of(cpu_fit_capture(1, 20)))
    first = comparison.payload.tabs[0]["items"][0]
    assert first["level"] == "warning"
    assert "number of steps (12 → 20)" in first["text"]


def test_more_than_two_runs_are_listed():
    reports = [report_of(cpu_fit_capture(1, 12, seed=seed)) for seed in range(3)]
    tab = tfprof.compare(*reports).payload.tabs[0]
    assert "compared_runs" in [item["table"] for item in every(tab["items"], "table")]


def test_runs_without_steps_and_memory_say_so():
    space = Space("worker-0")
    space.plane("/host:CPU").line("python", id=1).event("EagerExecute", 0, 50, eager_op="MatMul", is_func=0)
    tabs = {tab["id"]: tab for tab in tfprof.compare(report_of(space), report_of(space)).payload.tabs}
    assert "No step was found" in next(every(tabs["steps"]["items"], "text"))["text"]
    assert "No allocation was recorded" in next(every(tabs["memory"]["items"], "text"))["text"]


def test_names_are_escaped_and_the_summary_says_the_sentence():
    comparison = on_cpus(names=["<img src=x>", "b & c"])
    summary = comparison._static_html
    assert "<img" not in summary
    assert html.escape("<img src=x>") in summary
    assert html.escape(comparison.statement) in summary
    assert comparison.statement in comparison.text
    assert set(comparison._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_a_comparison_is_saved_as_one_file_and_as_tables(tmp_path):
    comparison = on_cpus()
    page = comparison.to_html(tmp_path / "diff.html").read_text(encoding="utf-8")
    assert comparison.statement in html.unescape(page)
    files = comparison.to_csv(tmp_path / "tables")
    assert [file.stem for file in files] == ["steps", "ops", "kernels", "input_ops", "memory", "overview", "runs"]
    assert len(pd.read_csv(tmp_path / "tables" / "ops.csv")) == len(comparison.ops)
    comparison.ops.loc[0, "name"] = "=1+1"  # a formula to a spreadsheet
    comparison.to_csv(tmp_path / "tables")
    assert pd.read_csv(tmp_path / "tables" / "ops.csv")["name"][0] == "'=1+1"


def test_the_widget_holds_the_same_payload():
    comparison = on_cpus()
    widget = comparison.widget()
    assert widget.spec["id"] == comparison.id
    assert set(widget.tables) == set(comparison.payload.tables)
    widget.close()


def test_a_long_trace_is_thinned_and_it_is_said(monkeypatch):
    monkeypatch.setattr(result, "MOST_DRAWN", 500)
    tab = on_cpus().payload.tabs[-1]
    (said,) = every(tab["items"], "text")
    assert said["text"].count("rows for") == 2
    whole = on_cpus().before.timelines[0]
    assert f"{len(whole.events) + len(whole.hidden):,} events" in said["text"]
