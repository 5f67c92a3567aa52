"""The report in the real JupyterLab: run, save, reopen without a kernel, and open as somebody who doesn't trust it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("jupyterlab")
if importlib.util.find_spec("tensorflow") is None:  # not imported here: only kernels need it
    pytest.skip("needs TensorFlow", allow_module_level=True)

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
REPORT = ".jp-OutputArea-output .tfprof-app"
WIDGET = "globalThis.jupyterapp.shell.currentWidget"
SUMMARY = ".jp-OutputArea-output .tfprof-static"


class Lab:
    """A JupyterLab server with settings, signatures and files of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "notebooks"
        self.root.mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.origin = f"http://127.0.0.1:{free.getsockname()[1]}"
        # A new JupyterLab asks whether it may fetch news.
        notification = home / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        notification.parent.mkdir(parents=True)
        notification.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
        folders = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        environment = dict(os.environ, **{name: str(home / folder) for name, folder in folders.items()})
        self.log = home / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"),
                    *("--ip=127.0.0.1", f"--port={self.origin.rsplit(':')[-1]}", "--ServerApp.port_retries=0"),
                    *("--IdentityProvider.token=", f"--ServerApp.root_dir={self.root}"),
                    "--LabApp.extension_manager=readonly",
                ],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise

    def _wait_until_up(self) -> None:
        for _ in range(300):
            if self.process.poll() is not None:
                break
            try:
                self.get("/api/status")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
            else:
                return
        pytest.fail(f"JupyterLab did not start:\n{self.log.read_text()[-3000:]}")

    def get(self, path: str):
        with urllib.request.urlopen(self.origin + path, timeout=5) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Notebook:
    """A notebook opened in a browser that reaches nothing but its server; collects what went wrong."""

    def __init__(self, browser, lab: Lab, name: str = NAME, *, kernels: bool = True) -> None:
        self.lab = lab
        self.foreign: list[str] = []
        self.errors: list[str] = []
        self.context = browser.new_context(viewport={"width": 1400, "height": 1000})
        self.context.route(re.compile(f"^https?://(?!{re.escape(lab.origin[7:])}/)"), self._refuse)
        if not kernels:
            none = json.dumps({"default": "", "kernelspecs": {}})
            self.context.route("**/api/kernelspecs*", lambda route: route.fulfill(body=none))
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{lab.origin}/lab/tree/{name}?reset")
        self.page.wait_for_function("globalThis.jupyterapp !== undefined")
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        if kernels:
            self.page.wait_for_function(f"{WIDGET}?.sessionContext?.session?.kernel?.status === 'idle'")
        else:
            # JupyterLab asks which kernel to use, and there is none to choose.
            self.page.locator(".jp-Dialog button", has_text="No Kernel").click()
            self.page.locator(".jp-Dialog").wait_for(state="detached")

    def _refuse(self, route) -> None:
        self.foreign.append(route.request.url)
        route.abort()

    def command(self, name: str) -> None:
        """Start one of JupyterLab's commands, as its menus do, without waiting for its end."""
        self.page.evaluate("name => void globalThis.jupyterapp.commands.execute(name)", name)

    @property
    def report(self):
        """The interactive report that is on the page; waits until it is."""
        report = self.page.locator(REPORT).first
        report.locator("[role=tabpanel]:not([hidden]) > *").first.wait_for()
        report.scroll_into_view_if_needed()
        return report

    def close(self) -> None:
        self.context.close()


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
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source.strip()) for source in CELLS]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, lab.root / NAME)
    return lab.root / NAME


@pytest.fixture(scope="module")
def live(browser, lab, written):
    """The notebook after all its cells were run, with its kernel."""
    notebook = Notebook(browser, lab)
    notebook.command("notebook:run-all-cells")
    notebook.page.get_by_text("rows of steps: 40").wait_for(timeout=120_000)
    yield notebook
    notebook.close()


def run_new_cell(notebook: Notebook, source: str):
    """Append a cell, run it and return its element once it has run."""
    notebook.command("notebook:insert-cell-below")
    cells = notebook.page.locator(".jp-Notebook .jp-Cell")
    notebook.page.wait_for_function(f"{WIDGET}.content.activeCell.model.sharedModel.getSource() === ''")
    notebook.page.evaluate(f"source => {WIDGET}.content.activeCell.model.sharedModel.setSource(source)", source.strip())
    notebook.command("notebook:run-cell")
    cell = cells.nth(notebook.page.evaluate(f"{WIDGET}.content.activeCellIndex"))
    notebook.page.wait_for_function(f"{WIDGET}.content.activeCell.model.executionCount > 0")
    cell.scroll_into_view_if_needed()
    return cell


def test_tools_compose_and_follow_python_and_a_report_shown_again_starts_where_it_was(browser, lab):
    name = "composed.ipynb"
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source.strip()) for source in CELLS]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, lab.root / name)
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


def shut_down(notebook: Notebook) -> None:
    """End the notebook's kernel, and close its page: the server goes on for the other tests."""
    notebook.command("kernelmenu:shutdown")
    notebook.page.wait_for_function(f"{WIDGET}.sessionContext.session === null")
    notebook.close()


@pytest.fixture(scope="module")
def saved(live, lab, written):
    """The notebook's file after it was saved and its kernel shut down."""
    live.command("docmanager:save")
    live.page.wait_for_function(f"!{WIDGET}.context.model.dirty")
    shut_down(live)
    assert lab.get("/api/kernels") == []
    return written


def zoom_in(notebook: Notebook, report) -> None:
    """Turn the wheel over the middle of the timeline; its overview then marks a narrower window."""
    plot = report.locator(".tl-over").first
    plot.wait_for()
    plot.scroll_into_view_if_needed()
    window = report.locator(".tl-mini .tl-window").first
    before = window.bounding_box()["width"]
    box = plot.bounding_box()
    notebook.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    notebook.page.keyboard.down("Control")
    notebook.page.mouse.wheel(0, -500)
    notebook.page.keyboard.up("Control")
    notebook.page.wait_for_function(
        "([window, width]) => window.getBoundingClientRect().width < width", arg=[window.element_handle(), 0.8 * before]
    )


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


def test_a_cell_runs_and_its_report_is_interactive(live):
    check_interactive(live)
    assert live.page.locator(REPORT).count() == 1
    assert "small fit" in live.report.inner_text()


def test_reopened_without_a_kernel_it_is_still_interactive(browser, lab, saved):
    notebook = Notebook(browser, lab, kernels=False)
    check_interactive(notebook)
    assert lab.get("/api/kernels") == []
    notebook.close()


def test_a_notebook_that_is_not_trusted_shows_the_summary(browser, colleague, saved):
    (colleague.root / NAME).write_bytes(saved.read_bytes())
    notebook = Notebook(browser, colleague, kernels=False)
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
