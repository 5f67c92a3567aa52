"""The report in the real JupyterLab: run, save, reopen without a kernel, and open as somebody who doesn't trust it."""

from __future__ import annotations

import importlib.util

import pytest

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("jupyterlab")
if importlib.util.find_spec("tensorflow") is None:  # not imported here: only kernels need it
    pytest.skip("needs TensorFlow", allow_module_level=True)

from lab import REPORT, WIDGET, Lab, Notebook, run_new_cell, shut_down, zoom_in  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.notebook, pytest.mark.tensorflow]

NAME = "training.ipynb"
CELLS = [
    """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
%load_ext tfprof_widgets
x = tf.random.uniform((320, 16))
y = tf.random.uniform((320, 1))
data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a * 2.0, b)).batch(16).prefetch(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
""",
    "%%tfprofile --name 'small fit'\nmodel.fit(data, epochs=2, verbose=0);",
    "print('rows of steps:', len(tfprof_report.steps))",
]
# The report again, and two of its tools side by side, whose traits go both ways.
COMPOSED = [
    "tfprof_report",
    """
import ipywidgets
chart, table = tfprof_report.step_chart(), tfprof_report.op_table()
chart.layout = table.layout = ipywidgets.Layout(width="50%")
ipywidgets.HBox([chart, table])
""",
    """
whole = tfprof_report.widget()
whole
""",
    "whole.tab = 'memory'",
    "print('the reader is in:', whole.tab)",
]
SUMMARY = ".jp-OutputArea-output .tfprof-static"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("author"))
    yield lab
    lab.stop()


@pytest.fixture(scope="module")
def colleague(tmp_path_factory):
    """Somebody else's JupyterLab: other signatures, so that it trusts nothing of the author's."""
    lab = Lab(tmp_path_factory.mktemp("colleague"))
    yield lab
    lab.stop()


@pytest.fixture(scope="module")
def written(lab):
    return lab.write(NAME, *CELLS)


@pytest.fixture(scope="module")
def live(browser, lab, written):
    """The notebook after all its cells were run, with its kernel."""
    notebook = Notebook(browser, lab, NAME)
    notebook.command("notebook:run-all-cells")
    notebook.page.get_by_text("rows of steps: 40").wait_for(timeout=120_000)
    yield notebook
    notebook.close()


def test_tools_compose_and_follow_python_and_a_report_shown_again_starts_where_it_was(browser, lab):
    name = "composed.ipynb"
    lab.write(name, *CELLS)
    opened = Notebook(browser, lab, name)
    opened.command("notebook:run-all-cells")
    opened.page.get_by_text("rows of steps: 40").wait_for(timeout=120_000)
    opened.report.get_by_role("tab", name="TensorFlow stats").click()
    opened.report.locator('.tabulator-col[tabulator-field="occurrences"]:visible .tfprof-coltitle').first.click()

    again, box, whole, to_memory, ask = COMPOSED
    shown_again = run_new_cell(opened, again)
    tab = shown_again.get_by_role("tab", name="TensorFlow stats")
    playwright.expect(tab).to_have_attribute("aria-selected", "true")
    sorted_by = shown_again.locator('.tabulator-col[tabulator-field="occurrences"]:visible').first
    playwright.expect(sorted_by).to_have_attribute("aria-sort", "descending")

    side_by_side = run_new_cell(opened, box)
    side_by_side.locator("canvas").first.wait_for()
    side_by_side.locator(".tabulator-row").first.wait_for()
    chart, table = side_by_side.locator(".tfprof-app").all()
    assert side_by_side.locator("[role=tab], .tfprof-head, .tfprof-answer").count() == 0
    assert chart.locator(".tabulator").count() == table.locator("figure").count() == 0
    (left, right) = (chart.bounding_box(), table.bounding_box())
    assert left["x"] + left["width"] <= right["x"] + 1
    assert abs(left["y"] - right["y"]) < 2

    led = run_new_cell(opened, whole)
    led.get_by_role("tab", name="Overview").wait_for()
    run_new_cell(opened, to_memory)
    playwright.expect(led.get_by_role("tab", name="Memory")).to_have_attribute("aria-selected", "true")
    led.get_by_role("tab", name="Input pipeline").click()
    run_new_cell(opened, ask).get_by_text("the reader is in: input_pipeline").last.wait_for()
    assert opened.foreign == []
    assert opened.errors == []
    shut_down(opened)


@pytest.fixture(scope="module")
def saved(live, lab, written):
    """The notebook's file after it was saved and its kernel shut down."""
    live.command("docmanager:save")
    live.page.wait_for_function(f"!{WIDGET}.context.model.dirty")
    shut_down(live)
    assert lab.get("/api/kernels") == []
    return written


def check_interactive(notebook: Notebook) -> None:
    """Three tabs; the chart is drawn; the table sorts; the timeline zooms; nothing was fetched from elsewhere."""
    report = notebook.report
    assert {"Overview", "TensorFlow stats", "Trace"} <= set(report.get_by_role("tab").all_inner_texts())
    assert not notebook.page.locator(SUMMARY).first.is_visible()
    report.locator("canvas").first.wait_for()

    report.get_by_role("tab", name="TensorFlow stats").click()
    count = report.locator('.tabulator-row:visible .tabulator-cell[tabulator-field="occurrences"]')
    count.first.wait_for()
    header = report.locator('.tabulator-col[tabulator-field="occurrences"]:visible').first
    shown = {}
    for _ in range(2):
        order = header.get_attribute("aria-sort")
        header.locator(".tfprof-coltitle").click()
        playwright.expect(header).not_to_have_attribute("aria-sort", order)
        shown[header.get_attribute("aria-sort")] = [int(text.replace(",", "")) for text in count.all_inner_texts()]
    assert shown["ascending"] == sorted(shown["ascending"])
    assert shown["descending"] == sorted(shown["descending"], reverse=True)
    assert shown["ascending"][0] < shown["descending"][0]

    report.get_by_role("tab", name="Trace").click()
    zoom_in(notebook, report)

    assert notebook.foreign == []
    assert notebook.errors == []


def check_keys(notebook: Notebook) -> None:
    """Keys are the timeline's while it has the focus, else the notebook's."""
    page, report = notebook.page, notebook.report
    kinds = f"{WIDGET}.content.widgets.map(cell => cell.model.type).join()"
    before = page.evaluate(kinds)
    report.locator(".tl-bar [role=radio]").first.wait_for()
    report.locator(".tfprof-tl").focus()
    # In the notebook: a Markdown cell, cells above and below, undo, a heading, and a cell deleted.
    for key in "mabz1dd3":
        page.keyboard.press(key)
    playwright.expect(report.get_by_role("radio", name="Zoom")).to_be_checked()
    assert page.evaluate(kinds) == before
    page.evaluate(f"{WIDGET}.content.mode = 'command'; {WIDGET}.content.node.focus()")
    page.keyboard.press("b")
    page.wait_for_function(f"{kinds} !== {before!r}")
    assert page.evaluate(kinds).count("code") == before.count("code") + 1
    page.keyboard.press("d")
    page.keyboard.press("d")
    page.wait_for_function(f"{kinds} === {before!r}")
    playwright.expect(report.get_by_role("radio", name="Zoom")).to_be_checked()


def test_a_cell_runs_and_its_report_is_interactive(live):
    check_interactive(live)
    check_keys(live)
    assert live.page.locator(REPORT).count() == 1
    assert "small fit" in live.report.inner_text()


def test_reopened_without_a_kernel_it_is_still_interactive(browser, lab, saved):
    notebook = Notebook(browser, lab, NAME, kernels=False)
    check_interactive(notebook)
    assert lab.get("/api/kernels") == []
    notebook.close()


def test_a_notebook_that_is_not_trusted_shows_the_summary(browser, colleague, saved):
    (colleague.root / NAME).write_bytes(saved.read_bytes())
    notebook = Notebook(browser, colleague, NAME, kernels=False)
    summary = notebook.page.locator(".jp-OutputArea-output", has_text="This is the report's summary").first
    summary.wait_for()
    assert "small fit" in summary.inner_text()
    assert "40" in summary.inner_text()
    assert summary.locator("table").count() > 0
    assert notebook.page.locator(".tfprof-app").count() == 0
    assert notebook.foreign == []
    assert notebook.errors == []

    # Trusting it brings the report, with no kernel.
    notebook.command("notebook:trust")
    notebook.page.locator(".jp-Dialog button", has_text="Trust").click()
    assert notebook.report.get_by_role("tab").count() >= 3
    notebook.close()
