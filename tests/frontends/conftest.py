"""One hostile report for all the front ends, and a notebook that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nbformat
import pytest

pytest.register_assert_rewrite("frontends.checks")

from generate.hostile import hostile_capture  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from tfprof_widgets.report import Report


@pytest.fixture(scope="session")
def profile(tmp_path_factory) -> Path:
    """File of a profile whose names try everything."""
    return hostile_capture().save(tmp_path_factory.mktemp("profile") / "training.xplane.pb")


@pytest.fixture(scope="session")
def report(profile) -> Report:
    """The report of that profile, as a cell shows it."""
    import tfprof_widgets

    return tfprof_widgets.load(profile)


@pytest.fixture(scope="session")
def notebook(report) -> nbformat.NotebookNode:
    """A notebook that was run and saved: two cells, each with a report."""
    made = nbformat.v4.new_notebook()
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.metadata["language_info"] = {"name": "python"}
    for number in (1, 2):
        output = nbformat.v4.new_output(
            "execute_result", report._repr_mimebundle_(), execution_count=number, metadata={}
        )
        made.cells.append(nbformat.v4.new_code_cell(f"report  # {number}", execution_count=number, outputs=[output]))
    nbformat.validate(made)
    return made
