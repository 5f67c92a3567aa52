"""What a tool's result says of itself at the end of a cell."""

from __future__ import annotations

import pytest

from generate import cpu_fit_capture
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import read


@pytest.fixture(scope="module")
def report() -> Report:
    return Report([read(cpu_fit_capture(1, 300, slow_input_us=9000).bytes())])


@pytest.mark.parametrize("tool", ["input_pipeline", "overview"])
def test_a_tool_says_what_it_found_and_what_its_tables_hold_instead_of_all_rows(report, tool):
    result = getattr(report, tool)
    first, *fields = repr(result).splitlines()
    assert first == f"{type(result).__name__}: {getattr(result, 'summary', result).statement}"
    named = [line.split()[0].removeprefix(".") for line in fields]
    assert set(vars(result)) - {"statement"} == set(named)
    assert len(repr(result)) < 4000


def test_a_table_is_told_by_its_rows_and_columns(report):
    words = repr(report.input_pipeline)
    assert f"DataFrame, {len(report.input_pipeline.per_step):,} rows of step, kind, host, " in words
    assert "DataFrame, 1 row of host, pipeline, " in words
