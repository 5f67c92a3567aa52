"""A cell that is run again: its report says how the run did against the one before, and the kernel remembers it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ..report import Report
from .kept_runs import is_empty, kept_runs
from .result import compare

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = logging.getLogger(__name__)


def baseline_of(name: str, variables: Mapping[str, Any]) -> Report:
    """Return the run to compare with.

    Parameters
    ----------
    name : str
        Of a variable that holds a report, else of a run that the kernel remembers.
    variables : mapping
        The notebook's.

    Raises
    ------
    KeyError
        If it is neither; the message lists the runs that there are.
    """
    value = variables.get(name)
    if isinstance(value, Report):
        return value
    if value is not None:
        raise KeyError(f"the variable {name} holds no report but {type(value).__name__}")
    return kept_runs.find(name)


def remember(report: Report, *, cell: str, baseline: Report | None, shown: bool) -> None:
    """Compare a run with its baseline or with the cell's run before, for its report to show, and keep it.

    Parameters
    ----------
    report : Report
        The run's.
    cell : str
        The notebook's id of the cell; empty where it tells none.
    baseline : Report, optional
        What to compare with; by default the cell's run before, if something was recorded in both.
    shown : bool
        Whether the report is to show a comparison.
    """
    try:
        before = baseline or (_before(report, cell) if shown else None)
        if before is not None and shown:
            _show(before, report)
        kept_runs.add(report, cell)
    except Exception:  # noqa: BLE001  # the report itself must not suffer
        _log.exception("The run could not be compared with the one before.")


def _before(report: Report, cell: str) -> Report | None:
    if is_empty(report):
        return None
    kept = kept_runs.previous(cell, report.capture.source if report.capture is not None else "")
    return None if kept is None else kept.report


def _show(before: Report, report: Report) -> None:
    if report.is_anonymized and not before.is_anonymized:
        before = before.anonymized()  # its title may be the name of a host
    against = before.title if before.title != report.title else "the run before"
    report.show_compared(compare(before, report, names=[against, report.title]).part(against))
