"""The runs that a kernel remembers, so that a cell can be compared with what it was before: `tfprof.history`."""

from __future__ import annotations

import difflib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from ..report import Report
from .steady import kinds_of, run_of

if TYPE_CHECKING:
    from collections.abc import Iterable

BUDGET_VARIABLE = "TFPROF_HISTORY_MIB"
#: What the kept runs may take together, in MiB; the newest is kept whatever it takes.
BUDGET_MIB = 512

# Without the notebook's word for which cell it is, a cell is the one whose text is that much the same.
_ALIKE = 0.6
# A cell's first lines tell which it is; comparing long ones takes long.
_COMPARED_LETTERS = 4000


@dataclass
class KeptRun:
    """A profiled run: its report as long as there is room for it, and what is said of it after that."""

    name: str
    cell: str
    source: str
    captured_s: float
    steps: int
    step_ms: float
    size_bytes: int
    report: Report | None
    empty: bool = False  # nothing was recorded: code with a slip in it, for example


class KeptRuns:
    """Profiled runs, oldest first, within a budget of memory.

    Parameters
    ----------
    budget_bytes : int, optional
        What the kept reports may take together; by default what the environment variable ``TFPROF_HISTORY_MIB`` says, else 512 MiB.
        0 keeps none.
    """

    def __init__(self, budget_bytes: int | None = None) -> None:
        self._budget_bytes = budget_bytes
        self._runs: list[KeptRun] = []

    @property
    def budget_bytes(self) -> int:
        """What the kept reports may take together."""
        if self._budget_bytes is not None:
            return self._budget_bytes
        try:
            return int(float(os.environ.get(BUDGET_VARIABLE, BUDGET_MIB)) * 2**20)
        except ValueError:
            return BUDGET_MIB * 2**20

    def add(self, report: Report, cell: str = "") -> None:
        """Keep a run, and let go of the oldest ones for which there is no room any more.

        Parameters
        ----------
        report : Report
            The run's.
        cell : str
            The notebook's id of the cell; empty where it tells none.
        """
        if self._runs and self._runs[-1].report is not None:
            # By now it has made what it shows.
            self._runs[-1].size_bytes = held_bytes(self._runs[-1].report)
        capture = report.capture
        kinds = kinds_of(report)
        run = run_of(report, kinds[0]) if kinds else None
        self._runs.append(
            KeptRun(
                name=report.title,
                cell=cell,
                source=capture.source if capture is not None else "",
                captured_s=capture.started_s if capture is not None else time.time(),
                steps=run.steps if run is not None else 0,
                step_ms=float(np.median(run.ms)) if run is not None and len(run.ms) else np.nan,
                size_bytes=held_bytes(report),
                report=report,
                empty=is_empty(report),
            )
        )
        self._fit()

    def _fit(self) -> None:
        budget = self.budget_bytes
        room = budget
        kept = [run for run in self._runs if run.report is not None]
        for age, run in enumerate(reversed(kept)):
            room -= run.size_bytes
            if room < 0 and (age > 0 or budget == 0):
                run.report = None

    def previous(self, cell: str, source: str) -> KeptRun | None:
        """Return the last run of a cell that is still kept and in which something was recorded.

        Parameters
        ----------
        cell : str
            The notebook's id of the cell. Where there is none, the run whose text is most like the cell's, if it is much alike.
        source : str
            The cell's text as it is now.
        """
        kept = [run for run in reversed(self._runs) if run.report is not None and not run.empty]
        if cell:
            return next((run for run in kept if run.cell == cell), None)
        scored = [(_likeness(run.source, source), run) for run in kept if not run.cell]
        best = max(scored, key=lambda one: one[0], default=(0.0, None))
        return best[1] if best[0] >= _ALIKE else None

    def find(self, name: str) -> Report:
        """Return the newest run of a name.

        Raises
        ------
        KeyError
            If there is none, or its report had to go; the message lists those that there are.
        """
        named = [run for run in self._runs if run.name == name]
        report = next((run.report for run in reversed(named) if run.report is not None), None)
        if report is not None:
            return report
        if named:
            budget = f"{self.budget_bytes / 2**20:,.0f} MiB"
            raise KeyError(f"the run {name!r} is not kept any more: the kept runs have {budget} ({BUDGET_VARIABLE})")
        there = list(dict.fromkeys(run.name for run in self._runs if run.report is not None))
        raise KeyError(f"no run is called {name!r}; there is {', '.join(map(repr, there)) or 'none yet'}")

    def to_frame(self) -> pd.DataFrame:
        """Return the runs, oldest first; see `history`."""
        runs = self._runs
        return pd.DataFrame(
            {
                "run": [run.name for run in runs],
                "captured": pd.to_datetime([run.captured_s for run in runs], unit="s"),
                "code": [_first_line(run.source) for run in runs],
                "steps": [run.steps for run in runs],
                "step_ms": [run.step_ms for run in runs],
                "size_mib": [run.size_bytes / 2**20 for run in runs],
                "kept": [run.report is not None for run in runs],
            }
        )

    def clear(self) -> None:
        """Let go of all runs."""
        self._runs.clear()


#: Those of this kernel.
kept_runs = KeptRuns()


@overload
def history(name: None = None) -> pd.DataFrame: ...
@overload
def history(name: str) -> Report: ...
def history(name: str | None = None) -> pd.DataFrame | Report:
    """List the profiled runs of this kernel, or return the report of one.

    ``%%tfprofile`` keeps every run, so that a cell that is run again can be compared with what it was before. The reports
    may take 512 MiB together (the environment variable ``TFPROF_HISTORY_MIB`` says otherwise; 0 keeps none); the oldest
    go first.

    Parameters
    ----------
    name : str, optional
        A run's name: ``In [5]``, or what it was given with ``--name``. Of several the newest.

    Returns
    -------
    DataFrame or Report
        Without a name one row a run, oldest first: ``run``, ``captured`` (UTC), ``code`` (its first line), ``steps``,
        ``step_ms`` (median of the steady ones), ``size_mib``, ``kept`` (whether its report is still there). With a name the report.

    Raises
    ------
    KeyError
        If there is no such run, or it had to go.
    """
    return kept_runs.to_frame() if name is None else kept_runs.find(name)


def is_empty(report: Report) -> bool:
    """Whether nothing was recorded in a run: then nothing can be compared with it."""
    return not any(host.trace.space.n_events for host in report.hosts)


def _likeness(a: str, b: str) -> float:
    a, b = (_code(text)[:_COMPARED_LETTERS] for text in (a, b))
    return 1.0 if a == b else difflib.SequenceMatcher(None, a, b, autojunk=False).ratio() if a and b else 0.0


def _code(source: str) -> str:
    """A cell's text without the line of the magic, whose options may change."""
    lines = source.splitlines()
    return "\n".join(lines[1:] if lines and lines[0].startswith("%%tfprofile") else lines).strip()


def _first_line(source: str) -> str:
    return next((line for line in _code(source).splitlines() if line.strip()), "")


def held_bytes(value: Any) -> int:
    """Count what a report's arrays, tables and texts take, in bytes; each once."""
    seen: set[int] = set()
    waiting = [value]
    total = 0
    while waiting:
        one = waiting.pop()
        if one is None or isinstance(one, (bool, int, float, type)) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            # A view takes no room of its own; what it looks at is counted once.
            if one.base is not None:
                waiting.append(one.base)
            else:
                total += one.nbytes
        elif isinstance(one, pd.DataFrame):
            total += int(one.memory_usage(index=True).sum())
        elif isinstance(one, (str, bytes)):
            total += len(one)
        elif isinstance(one, dict):
            waiting += _few(one.values())
        elif isinstance(one, (list, tuple, set, frozenset)):
            total += 8 * len(one)
            waiting += _few(one)
        elif type(one).__module__.startswith(__package__.partition(".")[0]):
            waiting += list(vars(one).values()) if hasattr(one, "__dict__") else []
        elif hasattr(one, "nbytes"):
            total += int(one.nbytes)
    return total


def _few(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if not isinstance(value, (bool, int, float))]
