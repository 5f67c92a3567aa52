"""What the kernel remembers of its runs: within a budget, found by name and by cell."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tfprof_widgets as tfprof
from generate import Space, cpu_fit_capture
from tfprof_widgets.comparison import rerun
from tfprof_widgets.comparison.kept_runs import BUDGET_VARIABLE, KeptRuns, held_bytes, kept_runs
from tfprof_widgets.report import Report
from tfprof_widgets.session import CaptureInfo
from tfprof_widgets.xspace import read

CELL = "%%tfprofile\nmodel.compile('adam', loss)\nmodel.fit(dataset, epochs=2)\n"


def run(name: str = "In [1]", source: str = CELL, seed: int = 0) -> Report:
    capture = CaptureInfo(name, source=source, started_s=1_700_000_000.0 + seed)
    return Report([read(cpu_fit_capture(1, 8, seed=seed).bytes())], capture=capture)


def test_runs_are_listed_oldest_first_with_what_is_known_of_them():
    runs = KeptRuns()
    runs.add(run("In [1]"))
    runs.add(run("faster", seed=1))
    table = runs.to_frame()
    assert table["run"].tolist() == ["In [1]", "faster"]
    assert table["code"].tolist() == ["model.compile('adam', loss)"] * 2
    assert table["steps"].tolist() == [8, 8]
    assert (table["step_ms"] > 0).all()
    assert table["kept"].all()
    assert table["captured"].is_monotonic_increasing


def test_the_oldest_reports_go_when_there_is_no_room_and_stay_in_the_list():
    alone = KeptRuns()
    alone.add(run())
    runs = KeptRuns(budget_bytes=int(2.5 * 2**20 * alone.to_frame()["size_mib"].iloc[0]))
    for number in range(4):
        runs.add(run(f"In [{number}]", seed=number))
    assert runs.to_frame()["kept"].tolist() == [False, False, True, True]
    assert runs.find("In [3]").title == "In [3]"
    with pytest.raises(KeyError, match=r"'In \[0\]' is not kept any more: the kept runs have .* MiB"):
        runs.find("In [0]")
    with pytest.raises(KeyError, match=r"no run is called 'x'; there is 'In \[2\]', 'In \[3\]'"):
        runs.find("x")


def test_the_newest_is_kept_whatever_it_takes_unless_none_is_wanted():
    runs = KeptRuns(budget_bytes=1)
    runs.add(run())
    assert runs.to_frame()["kept"].tolist() == [True]
    none = KeptRuns(budget_bytes=0)
    none.add(run())
    assert none.to_frame()["kept"].tolist() == [False]


def test_the_budget_is_the_environments(monkeypatch):
    monkeypatch.setenv(BUDGET_VARIABLE, "2.5")
    assert KeptRuns().budget_bytes == 2_621_440
    monkeypatch.setenv(BUDGET_VARIABLE, "much")
    assert KeptRuns().budget_bytes == 512 * 2**20


def test_a_cells_previous_run_is_found_by_the_notebooks_id():
    runs = KeptRuns()
    runs.add(run("In [1]"), cell="a")
    runs.add(run("In [2]"), cell="b")
    runs.add(run("In [3]"), cell="a")
    assert runs.previous("a", CELL).name == "In [3]"
    assert runs.previous("c", CELL) is None


def test_without_an_id_a_cell_is_known_by_its_text():
    runs = KeptRuns()
    runs.add(run("In [1]", source="%%tfprofile\nfor i in range(50):\n    train_step(x, y)\n"))
    runs.add(run("In [2]"))
    changed = "%%tfprofile --name tuned\nmodel.compile('sgd', loss)\nmodel.fit(dataset.prefetch(2), epochs=2)\n"
    assert runs.previous("", changed).name == "In [2]"
    assert runs.previous("", "%%tfprofile\nimport this") is None
    assert runs.previous("", "") is None


def test_a_run_in_which_nothing_was_recorded_is_no_baseline_and_has_none(monkeypatch):
    monkeypatch.setattr(rerun, "kept_runs", runs := KeptRuns())
    nothing = Space(hostname="worker-0")
    nothing.plane("/host:CPU")
    slip = Report([read(nothing.bytes())], capture=CaptureInfo("In [2]", source=CELL))
    for name, report in {"In [1]": run("In [1]"), "In [2]": slip, "In [3]": (mended := run("In [3]", seed=1))}.items():
        rerun.remember(report, cell="a", baseline=None, shown=True)
        assert runs.to_frame()["run"].iloc[-1] == name
    assert not [fact for fact in slip.payload.head["facts"] if fact["label"].startswith("Against")]
    assert mended.payload.head["facts"][-1]["label"] == "Against In [1]"


def test_an_anonymous_report_names_no_baseline(monkeypatch):
    monkeypatch.setattr(rerun, "kept_runs", KeptRuns())
    before = run("/home/jane/runs/janes-laptop")
    report = run("In [2]").anonymized()
    rerun.remember(report, cell="", baseline=before, shown=True)
    assert "Against" in str(report.payload.head)
    assert "jane" not in str(report.payload.spec)


def test_what_a_report_takes_is_counted_once_and_grows_with_what_it_made():
    report = run()
    before = held_bytes(report)
    assert before == held_bytes([report, report]) - 16
    arrays = [value for value in vars(report.hosts[0].trace.space).values() if isinstance(value, np.ndarray)]
    assert before > sum(array.nbytes for array in arrays if array.base is None)
    assert len(report.html) < held_bytes(report) - before


def test_history_lists_and_finds_the_kernels_runs():
    kept_runs.clear()
    try:
        kept_runs.add(run("In [7]"))
        assert tfprof.history()["run"].tolist() == ["In [7]"]
        assert tfprof.history("In [7]").title == "In [7]"
        assert isinstance(tfprof.compare(tfprof.history("In [7]"), run("In [8]", seed=1)).statement, str)
    finally:
        kept_runs.clear()


def test_a_report_shows_how_it_compares_and_keeps_no_other_report():
    before, after = run("In [1]"), run("In [2]", seed=1)
    comparison = tfprof.compare(before, after)
    after.show_compared(comparison.part("In [1]"))
    payload = after.payload
    assert payload.tabs[-1]["id"] == "compared"
    assert payload.head["facts"][-1] == {"label": "Against In [1]", "value": comparison.statement.removesuffix(".")}
    assert payload.head["answer"]["links"][0]["href"] == "tool:compared"
    assert {"compared_ops", "compared_overview"} <= set(payload.tables)
    code = next(part["text"] for part in payload.tabs[-1]["items"][-1]["change"] if part.get("code"))
    assert code.endswith("tfprof.compare(tfprof.history('In [1]'), tfprof.history('In [2]'))")
    assert comparison.statement.removesuffix(".") in after.text
    gone = weakref.ref(before)
    del before, comparison
    gc.collect()
    assert gone() is None
