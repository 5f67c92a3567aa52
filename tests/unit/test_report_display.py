"""What a report puts into a notebook: its size, its text, and that one broken tool leaves the others alone."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from tfprof_widgets import report as report_module
from tfprof_widgets.display.widget import LinkWidget
from tfprof_widgets.report import Report, load
from tfprof_widgets.xspace import read

# Four of the eight bytes are for the events' details and arrows.
FIXED_BYTES, BYTES_AN_EVENT = 1_000_000, 8


def report_of(*spaces: Space) -> Report:
    return Report([read(space.bytes()) for space in spaces])


def grows_within_bound(report: Report) -> bool:
    bundle = report._repr_mimebundle_()
    size = sum(len(content.encode()) for content in bundle.values())
    events = sum(len(host.trace) for host in report.hosts)
    return size <= FIXED_BYTES + BYTES_AN_EVENT * events


@pytest.mark.parametrize(
    "space", [cpu_fit_capture(2, 40), cpu_fit_capture(1, 3), gpu_capture(devices=2, steps=20, layers=4)]
)
def test_a_notebook_grows_within_the_bound(space):
    assert grows_within_bound(report_of(space))


@pytest.mark.parametrize("name", ["cpu_fit", "gpu_w0", "keras2_fit"])
def test_a_notebook_grows_within_the_bound_on_real_captures(capture, name):
    assert grows_within_bound(load(capture(name)))


def test_a_notebook_grows_within_the_bound_with_64_small_hosts():
    report = report_of(*pod_captures(hosts=64, devices=1, steps=4))
    assert grows_within_bound(report)
    assert "4 train on 64 hosts" in report.text
    # What hosts have in common travels once.
    assert {bundle["name"] for bundle in report.payload.bundles} >= {"timelines_names", "timelines_events"}
    assert all(len(bundle["tables"]) == 64 for bundle in report.payload.bundles)


def test_the_bundle_has_html_and_the_same_summary_in_words():
    bundle = report_of(cpu_fit_capture(1, 8))._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    static = bundle["text/html"].partition('<div class="tfprof-mount">')[0].replace("&nbsp;", " ").replace("<wbr>", "")
    for words in ("8 train", "Host compute", "_MklNativeFusedConv2D"):
        assert words in bundle["text/plain"]
        assert words in static


def test_nothing_in_the_html_asks_for_anything_from_elsewhere():
    html = report_of(cpu_fit_capture(1, 8)).html
    assert not re.search(r"\b(?:src|href)\s*=\s*[\"'](?!data:|#)", re.sub(r">[A-Za-z0-9+/=]{200,}<", "><", html))


def test_hostile_names_are_escaped_in_the_static_summary():
    space = Space("<b>host</b>")
    line = space.plane("/host:CPU").line("python", id=1)
    for i in range(8):
        line.event("<img src=x onerror=alert(1)>", 100 * i, 50, step_num=i)
        line.event("<script>alert(1)</script>/MatMul:MatMul", 100 * i + 10, 20)
    report = report_of(space)
    static = report.html.partition('<div class="tfprof-mount">')[0]
    assert "<img" not in static
    assert "<script" not in static.partition('<div class="tfprof-static">')[2]
    assert "&lt;img src=x onerror=alert(1)&gt;" in static


@pytest.mark.parametrize(
    ("part", "tabs_hit"),
    [
        ("timelines", {"trace"}),
        ("advice", set()),
        ("kernels", {"kernels"}),
        ("memory", {"memory"}),
        ("input_pipeline", {"input_pipeline"}),
    ],
)
def test_a_tool_that_fails_says_so_in_its_place_and_the_others_are_shown(monkeypatch, caplog, part, tabs_hit):
    def broken(*_):
        raise ZeroDivisionError("nothing to divide")

    monkeypatch.setattr(report_module.Report, part, property(broken))
    report = report_of(cpu_fit_capture(1, 4))
    failed = {
        tab["id"] for tab in report.payload.tabs if len(tab["items"]) == 1 and tab["items"][0].get("level") == "error"
    }
    assert failed == tabs_hit
    words = str(report.payload.spec["tabs"])
    assert "ZeroDivisionError: nothing to divide" in words
    assert "failed on this profile" in caplog.text
    assert "Host compute" in words  # the overview is there whatever fails beside it


def test_the_exported_file_is_a_whole_page_and_the_tables_are_csv(tmp_path):
    report = report_of(cpu_fit_capture(1, 4))
    page = report.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    written = report.to_csv(tmp_path / "tables")
    assert {path.name for path in written} >= {"steps.csv", "ops.csv", "events.csv", "memory.csv"}
    header, *rows = (tmp_path / "tables" / "steps.csv").read_text().splitlines()
    assert header.startswith("step,kind,host,device,start_ms,duration_ms,flags")
    assert len(rows) == 4


def test_notes_tell_what_the_profiler_reported():
    space = cpu_fit_capture(1, 3)
    space.error("Failed to load libcupti (is it installed and accessible?)")
    report = report_of(space)
    assert any("libcupti" in note for note in report.notes)
    assert "libcupti" in report.text


def test_a_report_that_was_displayed_can_be_copied_and_pickled():
    report = Report([read(cpu_fit_capture(1, 5).bytes())])
    report._link = LinkWidget(report.id)  # as displays in a kernel have it
    for again in (copy.copy(report), copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
        assert again._link is None
        assert again.text == report.text
    assert report._link is not None


def test_a_report_of_no_host_is_an_error():
    with pytest.raises(ValueError, match="at least one host"):
        Report([])


def test_importing_the_package_imports_neither_tensorflow_nor_pandas():
    import subprocess
    import sys

    code = "import sys, tfprof_widgets; print(*[m for m in ('tensorflow', 'pandas', 'bokeh', 'pyarrow') if m in sys.modules])"
    source = Path(report_module.__file__).parents[2]
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONPATH": str(source)}
    )
    assert out.stdout.strip() == ""
