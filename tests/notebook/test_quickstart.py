"""The quickstart notebook, run the way that ``make demo`` runs it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

if importlib.util.find_spec("tensorflow") is None:  # not imported here: only kernels need it
    pytest.skip("needs TensorFlow", allow_module_level=True)
pytest.importorskip("nbclient")
pytest.importorskip("nbconvert")

pytestmark = [pytest.mark.notebook, pytest.mark.tensorflow]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Folder with the results of the demo."""
    into = tmp_path_factory.mktemp("demo")
    command = [sys.executable, str(EXAMPLES / "run_demo.py"), "--into", str(into)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert str(into / "quickstart.html") in done.stdout
    return into


@pytest.fixture(scope="module")
def outputs(demo):
    """Outputs of each code cell."""
    notebook = nbformat.read(demo / "quickstart.ipynb", as_version=4)
    nbformat.validate(notebook)
    return [(cell.source, cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def reports(outputs) -> list:
    return [
        output.data
        for _, cell in outputs
        for output in cell
        if "tfprof-mount" in output.get("data", {}).get("text/html", "")
    ]


def test_every_cell_runs_without_a_word_of_warning(outputs):
    said = [(source, output) for source, cell in outputs for output in cell]
    assert [source for source, output in said if output.output_type == "error"] == []
    assert [output.text for _, output in said if output.get("name") == "stderr"] == []


def test_each_profiled_cell_shows_one_report(outputs):
    assert len(reports(outputs)) == 2
    for source, cell in outputs:
        shown = [output for output in cell if "tfprof-mount" in output.get("data", {}).get("text/html", "")]
        assert len(shown) == source.startswith("%%tfprofile")


def test_the_slow_pipeline_is_found_and_the_fast_one_is_fast(outputs):
    """The notebook says that the first training waits for its input, and that the second does not."""
    median = outputs[-1][1][-1].data["text/plain"]
    before, after = map(float, re.search(r"input_ms\s+([\d.]+)\s+([\d.]+)", median).groups())
    assert before > 5 * after, median
    assert "% input" in reports(outputs)[0]["text/plain"]


def test_a_report_adds_no_more_to_the_notebook_than_it_may(outputs):
    """1.0 MB for what every report carries, 8 bytes for each of its events, details and arrows included."""
    for data in reports(outputs):
        events = int(re.search(r"Events\s+([\d,]+)", data["text/plain"])[1].replace(",", ""))
        size = len("".join(data.values()).encode())
        assert size <= 1_000_000 + 8 * events


def test_the_exported_report_names_nothing_to_fetch(demo):
    page = (demo / "report.html").read_text(encoding="utf-8")
    assert "tfprof-mount" in page
    assert re.findall(r"""(?:src|href)=(?!["']?data:)[^\s>]+""", page) == []
    assert "http://" not in page
    assert "https://" not in page


def test_the_converted_notebook_holds_both_reports(demo):
    page = (demo / "quickstart.html").read_text(encoding="utf-8")
    assert page.count('class="tfprof-mount"') == 2
