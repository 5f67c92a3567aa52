"""``tfprof-widgets compare``: what it writes, and its exit status as a test for CI."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import tfprof_widgets as tfprof
from generate import Space, cpu_fit_capture
from tfprof_widgets import cli
from tfprof_widgets.comparison.conditions import MEASURES, check, parse_condition


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, the same again, a slow one, and one of which nothing is known but its time."""
    folder = tmp_path_factory.mktemp("runs")
    spaces = {
        "fast": cpu_fit_capture(1, 16, hostname="janes-laptop"),
        "again": cpu_fit_capture(1, 16, seed=1, hostname="janes-laptop"),
        "slow": cpu_fit_capture(1, 16, slow_input_us=6_000, hostname="janes-laptop"),
        "bare": Space("janes-laptop"),
    }
    spaces["bare"].plane("/host:CPU").line("python", id=1).event("EagerExecute", 0, 50, eager_op="MatMul", is_func=0)
    return {name: space.save(folder / name / f"{name}.xplane.pb").parent for name, space in spaces.items()}


def run(capsys, *arguments) -> tuple[int, str, str]:
    try:
        status = cli.main(["compare", *map(str, arguments)])
    except SystemExit as left:
        status = left.code
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return status, out, err


def test_it_prints_the_comparison(capsys, runs):
    status, out, err = run(capsys, runs["slow"], runs["fast"])
    assert (status, err) == (0, "")
    assert "faster, mostly less waiting for input." in out
    assert "Typical step (median)" in out


def test_it_writes_a_page_and_tables(capsys, runs, tmp_path):
    status, out, err = run(capsys, runs["slow"], runs["fast"], "-o", tmp_path / "diff.html", "--csv", tmp_path / "csv")
    assert status == 0
    assert out.count("\n") == 1
    assert f"Wrote {tmp_path / 'diff.html'}" in err
    assert "tfprof-report" in (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert len(pd.read_csv(tmp_path / "csv" / "steps.csv")) == 10


def test_json_is_for_programs(capsys, runs):
    status, out, err = run(capsys, runs["slow"], runs["fast"], "--json", "--fail-if", "step_ms > 1.1x")
    assert (status, err) == (0, "")
    said = json.loads(out)
    comparison = tfprof.compare(runs["slow"], runs["fast"])
    assert said["statement"] == comparison.statement
    assert said["told"] == "faster"
    assert said["ratio"] == pytest.approx(comparison.change.ratio)
    assert len(said["ratio_interval"]) == 2
    assert said["steps"][0]["difference_ms"] < 0
    assert said["conditions"][0]["holds"] is False
    assert "NaN" not in out


@pytest.mark.parametrize(
    ("before", "after", "condition", "status"),
    [
        ("fast", "slow", "step_ms > 1.1x", 3),
        ("fast", "slow", "step_ms>110%", 3),
        ("slow", "fast", "step_ms > 1.1x", 0),
        ("fast", "slow", "input_ms >= 5", 3),
        ("fast", "slow", "step_ms > 1000", 0),
        ("fast", "slow", "examples_per_s < 0.9x", 3),
        ("fast", "again", "peak_memory_bytes > 1.5x", 0),
        # More than chance, or it isn't counted.
        ("fast", "again", "step_ms > 0.5x", 0),
        # Nothing was compiled on either side: no more than before, and no less.
        ("fast", "slow", "compilation_ms > 1.1x", 0),
        ("fast", "slow", "compilation_ms <= 1x", 3),
        # What can't be checked doesn't pass.
        ("bare", "bare", "step_ms > 1.1x", 1),
    ],
)
def test_a_condition_that_holds_gives_an_exit_status(capsys, runs, before, after, condition, status):
    said, _, err = run(capsys, runs[before], runs[after], "--fail-if", condition)
    assert said == status
    assert err.startswith(f"{condition}: ")


def test_any_of_several_conditions_counts(capsys, runs):
    conditions = ("--fail-if", "step_ms > 9x", "--fail-if", "input_ms > 2x")
    assert run(capsys, runs["fast"], runs["slow"], *conditions)[0] == 3


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("step_ms", "is no condition"),
        ("step_ms > 1.1y", "is no condition"),
        ("steps > 1x", "there is no measure 'steps'; there are step_ms"),
    ],
)
def test_a_condition_that_is_none_is_explained(capsys, runs, condition, words):
    status, _, err = run(capsys, runs["fast"], runs["slow"], "--fail-if", condition)
    assert status == 2
    assert words in " ".join(err.split())


def test_a_profile_that_is_not_there_is_named(capsys, runs, tmp_path):
    status, _, err = run(capsys, runs["fast"], tmp_path / "none")
    assert status == 1
    assert "none" in err


def test_an_anonymous_comparison_names_nobody(capsys, runs):
    for form in ([], ["--json"]):
        status, out, err = run(capsys, runs["slow"], runs["fast"], "--anonymize", *form)
        assert status == 0
        assert "janes-laptop" not in out + err


def test_every_measure_can_be_checked(runs):
    comparison = tfprof.compare(runs["slow"], runs["fast"])
    for measure in MEASURES:
        checked = check(comparison, parse_condition(f"{measure} >= 0"))
        assert checked["holds"] is True, checked
