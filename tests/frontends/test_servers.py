"""The report in the real Notebook 7, nbclassic, Voilà and marimo."""

from __future__ import annotations

import importlib.util
import re

import nbformat
import pytest

TimeoutError_ = pytest.importorskip("playwright.sync_api").TimeoutError
# They are in the extra `dev`: without one of them its test fails, it isn't skipped.
MISSING = [name for name in ("notebook", "nbclassic", "voila", "marimo") if importlib.util.find_spec(name) is None]

from frontends import servers  # noqa: E402
from frontends.checks import check_interactive, check_summary, visit  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.notebook]

NAME = "training.ipynb"
# What these front ends say of themselves. nbclassic's own part for widgets at times shows one before its output is on the page.
NOTEBOOK_7 = r"^Cannot read properties of undefined \(reading 'schema'\)$"
NBCLASSIC = (
    "status of 404|nbextensions/(voila|widgets/notebook/js)/extension|^Access to font at 'about:blank'|"
    "net::ERR_FAILED|^Host is not attached"
)
VOILA = "^Access to font at 'about:blank'|net::ERR_FAILED|shared module is not a function|widget model not found"


@pytest.fixture(scope="module")
def root(tmp_path_factory, profile, notebook):
    """Notebooks: one to run, one that was run by somebody else, one for Voilà."""
    assert MISSING == []
    root = tmp_path_factory.mktemp("notebooks")
    cells = ["import tfprof_widgets as tfprof", f"report = tfprof.load({str(profile)!r})\nreport", "report.widget()"]
    made = nbformat.v4.new_notebook(metadata=notebook.metadata)
    made.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(made, root / NAME)
    nbformat.write(notebook, root / "foreign.ipynb")
    return root


@pytest.fixture(scope="module")
def origin(tmp_path_factory, root):
    with servers.jupyter(tmp_path_factory.mktemp("home"), root) as origin:
        yield origin


def choose(page, menu: str, *entries: str, timeout_ms: float | None = None) -> None:
    """Choose an entry of one of Notebook 7's menus."""
    bar = page.locator("#jp-MainMenu, .jp-MenuBar, .lm-MenuBar").first
    bar.get_by_text(menu, exact=True).click(timeout=timeout_ms)
    for entry in entries:
        page.locator(".lm-Menu-item", has_text=entry).first.click(timeout=timeout_ms)


def run_all(page) -> None:
    """Run all cells of Notebook 7, again if need be: it shows an idle kernel before it has one, and then asks which to start.

    A dialog may come at any time, and another after it.
    """
    started = page.locator(".jp-InputPrompt", has_text=re.compile(r"\d|\*")).first
    dialog = page.locator(".jp-Dialog").first
    for _ in range(15):
        try:
            if dialog.is_visible():
                dialog.locator("button.jp-mod-accept").first.click(timeout=5_000)
                dialog.wait_for(state="detached", timeout=5_000)
            else:
                choose(page, "Run", "Run All Cells", timeout_ms=10_000)
            return started.wait_for(timeout=5_000)
        except TimeoutError_:
            continue
    raise AssertionError("no cell was run in a minute")


def test_notebook_7(browser, origin):
    with visit(browser, origin=origin) as seen:
        seen.page.goto(f"{origin}/notebooks/{NAME}")
        seen.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        run_all(seen.page)
        reports = seen.page.locator(".jp-OutputArea-output .tfprof-app")
        check_interactive(seen, reports.first, dark=False)
        seen.look("notebook7")
        check_interactive(seen, reports.nth(1))
        choose(seen.page, "Settings", "Theme", "JupyterLab Dark")
        seen.page.locator(".tfprof-app[data-tfprof-theme=dark]").first.wait_for()
        seen.look("notebook7-dark")
        seen.is_clean(NOTEBOOK_7)
    # Of somebody else, and not trusted.
    with visit(browser, origin=origin) as seen:
        seen.page.goto(f"{origin}/notebooks/foreign.ipynb")
        summary = seen.page.locator(".jp-OutputArea-output", has_text="Step time in ms").first
        summary.wait_for()
        check_summary(summary.inner_text())
        assert seen.page.locator(".tfprof-app").count() == 0
        seen.look("notebook7-untrusted")
        seen.is_clean(NOTEBOOK_7)


def test_nbclassic(browser, origin):
    with visit(browser, origin=origin) as seen:
        seen.page.goto(f"{origin}/nbclassic/notebooks/{NAME}")
        seen.page.wait_for_function("globalThis.Jupyter?.notebook?.kernel?.is_connected()")
        seen.page.evaluate("Jupyter.notebook.execute_all_cells()")
        reports = seen.page.locator(".output_area .tfprof-app")
        check_interactive(seen, reports.first, dark=False)
        seen.look("nbclassic")
        check_interactive(seen, reports.nth(1))
        seen.is_clean(NBCLASSIC)
    with visit(browser, origin=origin) as seen:
        seen.page.goto(f"{origin}/nbclassic/notebooks/foreign.ipynb")
        summary = seen.page.locator(".output_area", has_text="Step time in ms").first
        summary.wait_for()
        seen.page.evaluate("new Promise((done) => MathJax.Hub.Queue(done))")
        check_summary(summary.inner_text())
        assert seen.page.locator(".tfprof-app").count() == 0
        seen.look("nbclassic-untrusted")
        seen.is_clean(NBCLASSIC)


def test_voila(browser, origin):
    with visit(browser, origin=origin, blocked="^https://cdn.jsdelivr.net/npm/@fortawesome/") as seen:
        reports = seen.page.locator(".tfprof-app")
        # On a busy machine Voilà draws widgets before it has their models ("widget model not found"): then one loads the page again.
        for patience_ms in (20_000, 30_000, 60_000, 60_000):
            seen.page.goto(f"{origin}/voila/render/{NAME}?theme=dark")
            reports.first.wait_for()
            try:
                reports.nth(1).wait_for(timeout=patience_ms)
                break
            except TimeoutError_:
                continue
        check_interactive(seen, reports.first, dark=True)
        seen.look("voila")
        check_interactive(seen, reports.nth(1), dark=True)
        seen.is_clean(VOILA)


APP = """
import marimo

app = marimo.App(width="medium")


@app.cell
def _():
    import marimo as mo
    import tfprof_widgets as tfprof

    mo.ui.anywidget(tfprof.load({path!r}).widget())
    return


if __name__ == "__main__":
    app.run()
"""


def test_marimo(browser, tmp_path, root, profile):
    app = tmp_path / "training.py"
    app.write_text(APP.format(path=str(profile)), encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.marimo.display]\ntheme = "dark"\n', encoding="utf-8")
    with servers.marimo(tmp_path, app) as origin, visit(browser, origin=origin) as seen:
        seen.page.goto(origin)
        check_interactive(seen, seen.page.locator(".tfprof-app"), dark=True)
        seen.look("marimo")
        seen.is_clean()
