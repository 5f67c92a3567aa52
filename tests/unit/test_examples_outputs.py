"""The example notebooks are kept with the reports that they show, so that a reader without a kernel sees them."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.ipynb"))
LARGEST = 3_000_000


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_holds_its_reports(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < LARGEST
    profiled = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.startswith("%%tfprofile")]
    for cell in profiled:
        shown = [output.data for output in cell.outputs if "data" in output]
        reports = [data for data in shown if "tfprof-mount" in data.get("text/html", "")]
        assert len(reports) == 1
        assert "Events" in reports[0]["text/plain"]
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert outputs, "run it and keep its outputs"
    assert not any(output.output_type == "error" for output in outputs)
