"""A comparison as people meet it: an exported file with no network, JupyterLab, and a saved notebook with no kernel."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser

playwright = pytest.importorskip("playwright.sync_api")

import tfprof_widgets as tfprof  # noqa: E402
from chromium import offline_page  # noqa: E402
from generate import cpu_fit_capture, gpu_capture  # noqa: E402
from lab import REPORT, WIDGET, Lab, Notebook, shut_down  # noqa: E402
from tfprof_widgets.report import Report  # noqa: E402
from tfprof_widgets.xspace import read  # noqa: E402

HOSTILE = "<img src=x onerror=\"globalThis.pwned=1;new Image().src='https://example.com/x'\"> $$x$$"
TABS = ["Steps", "Ops", "Input pipeline", "Memory", "Trace"]

# Start and end of both windows in ms of each trace.
_WINDOWS = """
() => [...document.querySelectorAll(".tfprof-tl")].map(({ timeline: t }) => [t.viewport.start, t.viewport.end].map((x) => x * t.unit / 1e9))
"""
_BOTH_DRAWN = "() => [...document.querySelectorAll('.tfprof-tl')].filter((e) => e.timeline?.painted > 0).length === 2"
_SETTLED = """
() => { const all = [...document.querySelectorAll(".tfprof-tl")].map((e) => e.timeline); const now = all.map((t) => t.frames);
  return new Promise((done) => setTimeout(() => done(all.every((t, i) => t.frames === now[i] && t.frame === 0 && t.painted > 0)), 150)); }
"""


def report_of(space) -> Report:
    return Report([read(space.bytes())])


@pytest.fixture(scope="module")
def comparison() -> tfprof.Comparison:
    before, after = cpu_fit_capture(1, 16, slow_input_us=6_000), cpu_fit_capture(1, 16, seed=1)
    return tfprof.compare(report_of(before), report_of(after), names=[HOSTILE, "after"])


@pytest.fixture(scope="module")
def exported(comparison, tmp_path_factory):
    return comparison.to_html(tmp_path_factory.mktemp("comparison") / "diff.html")


@pytest.fixture
def page(browser, exported):
    """The exported file, opened; at the end nothing was asked of any network, and no name was more than text."""
    with offline_page(browser, exported, 1300) as page:
        yield page


def test_the_sentence_is_first_and_every_tab_shows_something(page, comparison):
    assert page.locator(".tfprof-answer-text").inner_text() == comparison.statement
    assert page.get_by_role("tab").all_inner_texts() == TABS
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        page.locator(":is(canvas, .tabulator-row):visible").first.wait_for()
        assert page.locator(".tfprof-error:visible").count() == 0


def test_the_tables_begin_with_the_most_time_won_or_lost_and_have_all_rows(page, comparison):
    page.get_by_role("tab", name="Ops").click()
    table = page.locator(".tabulator:visible").last
    cells = table.locator('.tabulator-cell[tabulator-field="difference_us_per_step"]')
    cells.first.wait_for()
    shown = [abs(float(text.replace(",", "").replace("−", "-"))) for text in cells.all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    rows = (comparison.ops["type"] != "IDLE").sum()
    assert page.locator(".tfprof-count:visible").last.inner_text().startswith(f"{rows} rows")


def windows(page) -> list[list[float]]:
    page.wait_for_function(_SETTLED)
    return page.evaluate(_WINDOWS)


def lie_above_each_other(shown, at) -> None:
    (start, end), (other_start, other_end) = shown
    assert end - start == pytest.approx(other_end - other_start, rel=1e-3)
    assert start - at[0] == pytest.approx(other_start - at[1], abs=1e-3 * (end - start))


def test_the_traces_are_aligned_at_a_step_and_move_together(page, comparison):
    page.get_by_role("tab", name="Trace").click()
    page.wait_for_function(_BOTH_DRAWN)
    places = comparison.payload.tabs[-1]["items"][0]["places"]
    begun = int(page.get_by_label("Align at").input_value())
    at = [time / 1e9 for time in places[begun]["at_ps"]]
    lasts = [time / 1e9 for time in places[begun]["durations_ps"]]
    shown = windows(page)
    lie_above_each_other(shown, at)
    for (start, end), begins, takes in zip(shown, at, lasts, strict=True):
        assert start < begins
        assert end > begins + takes

    # The wheel on the trace below zooms both.
    plot = page.locator(".tl-over").nth(1)
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -500)
    page.keyboard.up("Control")
    page.wait_for_function(
        "(before) => [...document.querySelectorAll('.tfprof-tl')].every(({ timeline: t }) => t.viewport.length * t.unit / 1e9 < before)",
        arg=0.8 * (shown[0][1] - shown[0][0]),
    )
    lie_above_each_other(windows(page), at)

    # Another step, then the start: there both windows can show all of both traces.
    page.get_by_label("Align at").select_option(index=3)
    lie_above_each_other(windows(page), [time / 1e9 for time in places[3]["at_ps"]])
    page.get_by_label("Align at").select_option(label="the start of both traces")
    shown = windows(page)
    lie_above_each_other(shown, [0, 0])
    ends = [trace["timeline"]["span_ps"] / 1e9 for trace in comparison.payload.tabs[-1]["items"][0]["traces"]]
    assert all(start < 0 and end > max(ends) for start, end in shown)


def test_an_op_of_the_table_is_shown_in_both_traces(page, comparison):
    page.get_by_role("tab", name="Ops").click()
    row = page.locator(".tabulator:visible").last.locator(".tabulator-row", has_text="Sqrt_5").first
    search = page.get_by_placeholder("Search").last
    search.fill("adam/Sqrt_5")
    row.wait_for()
    row.locator("button").first.click()
    page.wait_for_function(_BOTH_DRAWN)
    assert page.get_by_role("tab", name="Trace").get_attribute("aria-selected") == "true"
    for box in page.locator(".tl-search input:visible").all():
        playwright.expect(box).to_have_value(re.compile("Sqrt_5"))


def test_without_scripts_the_summary_stays(browser, exported, comparison):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(exported.as_uri())
    assert comparison.statement in page.locator(".tfprof-static").inner_text()
    context.close()


# ---- in a notebook ----------------------------------------------------------------------------------------------

CELL = """
import tfprof_widgets as tfprof
tfprof.compare("before.xplane.pb", "after.xplane.pb")
"""
NAME = "compare.ipynb"


def used(notebook) -> None:
    """Look at the traces of a report that is on the notebook's page."""
    report = notebook.report
    assert report.get_by_role("tab").all_inner_texts() == [
        "Steps",
        "Ops",
        "Input pipeline",
        "GPU kernels",
        "Memory",
        "Trace",
    ]
    report.get_by_role("tab", name="GPU kernels").click()
    report.locator(".tabulator-row:visible").first.wait_for()
    report.get_by_role("tab", name="Trace").click()
    notebook.page.wait_for_function(_BOTH_DRAWN)
    assert notebook.foreign == []
    assert notebook.errors == []


def test_in_jupyterlab_and_reopened_without_a_kernel(browser, tmp_path):
    pytest.importorskip("jupyterlab")
    lab = Lab(tmp_path / "author")
    try:
        for name, layers in (("before", 3), ("after", 1)):
            gpu_capture(steps=8, layers=layers).save(lab.root / f"{name}.xplane.pb")
        lab.write(NAME, CELL)
        live = Notebook(browser, lab, NAME)
        live.command("notebook:run-all-cells")
        live.page.locator(REPORT).first.wait_for(timeout=60_000)
        used(live)
        live.command("docmanager:save")
        live.page.wait_for_function(f"!{WIDGET}.context.model.dirty")
        shut_down(live)

        again = Notebook(browser, lab, NAME, kernels=False)
        used(again)
        assert lab.get("/api/kernels") == []
        again.close()
    finally:
        lab.stop()
