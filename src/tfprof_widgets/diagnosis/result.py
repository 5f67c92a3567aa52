"""What `tfprof.doctor` returns, and how it comes to it. TensorFlow is imported for that."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from html import escape
from typing import TYPE_CHECKING, Any

from .check import ERROR, INFO, OK, WARNING, Check

if TYPE_CHECKING:
    import pandas as pd

    from ..report import Report

# A minute's capture of a busy program can take this much.
_ROOM_GB = 1.0
_RANK = {ERROR: 0, WARNING: 1, INFO: 2, OK: 3}
_SIGNS = {OK: "✓", INFO: "i", WARNING: "!", ERROR: "✗"}
_WORDS = {OK: "fine", INFO: "note", WARNING: "look", ERROR: "problem"}


class Diagnosis(Sequence[Check]):
    """What `doctor` found: a sequence of checks, problems first; it shows itself in a notebook and can be printed."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self.checks = sorted(checks, key=lambda check: _RANK[check.status])

    def __len__(self) -> int:
        return len(self.checks)

    def __getitem__(self, index: Any) -> Any:
        return self.checks[index]

    @property
    def problems(self) -> list[Check]:
        """The checks that found something amiss: warnings and errors."""
        return [check for check in self.checks if check.status in (ERROR, WARNING)]

    @property
    def summary(self) -> str:
        """The result in a sentence."""
        errors = sum(check.status == ERROR for check in self.checks)
        warnings = len(self.problems) - errors
        if not self.problems:
            return "Nothing is amiss."
        counts = [f"{errors} problem{'' if errors == 1 else 's'}"] if errors else []
        counts += [f"{warnings} thing{'' if warnings == 1 else 's'} to look at"] if warnings else []
        return f"{' and '.join(counts)}."

    def to_frame(self) -> pd.DataFrame:
        """Return a row a check: ``name``, ``status``, ``found``, ``why``, ``do``, ``commands`` (a line each), ``evidence``."""
        import pandas as pd

        rows = [{**asdict(check), "commands": "\n".join(check.commands)} for check in self.checks]
        return pd.DataFrame(rows, columns=[column.name for column in fields(Check)])

    def __str__(self) -> str:
        lines = [f"tfprof_widgets' doctor: {self.summary}"]
        for check in self.checks:
            lines.append(f"\n[{_SIGNS[check.status]}] {check.found}")
            lines += [f"    {words}" for words in (check.evidence, check.why, check.do) if words]
            lines += [f"      {command}" for command in check.commands]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # The page's own colours; the theme's where it has any.
        style = "max-width: 62em; padding: 0 4px; font: 13px/1.45 var(--jp-ui-font-family, system-ui, sans-serif)"
        parts = [
            # What a profile or a log says may hold two dollars, which notebooks take for mathematics.
            f'<div class="tex2jax_ignore mathjax_ignore" style="{style}">',
            f'<p style="margin: 4px 0 10px"><strong>tfprof_widgets’ doctor:</strong> {escape(self.summary)}</p>',
            *map(_check_html, self.checks),
            "</div>",
        ]
        return "\n".join(parts)


_COLORS = {
    OK: "var(--jp-success-color1, #2e7d32)",
    INFO: "var(--jp-info-color1, #0277bd)",
    WARNING: "var(--jp-warn-color1, #e65100)",
    ERROR: "var(--jp-error-color1, #c62828)",
}


def _check_html(check: Check) -> str:
    color = _COLORS[check.status]
    badge = (
        f'<span style="flex: 0 0 auto; width: 7.5em; color: {color}; font-weight: 600">'
        f'<span aria-hidden="true">{_SIGNS[check.status]}</span> {_WORDS[check.status]}</span>'
    )
    words = "".join(
        f'<div style="opacity: 0.85">{escape(text)}</div>' for text in (check.evidence, check.why, check.do) if text
    )
    commands = "".join(
        '<pre style="margin: 4px 0; padding: 4px 8px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; '
        f'border: 1px solid rgba(128, 128, 128, 0.35); border-radius: 3px; background: rgba(128, 128, 128, 0.1)">{escape(command)}</pre>'
        for command in check.commands
    )
    found = f'<div style="{"font-weight: 600" if check.status in (WARNING, ERROR) else ""}">{escape(check.found)}</div>'
    return (
        '<div style="display: flex; gap: 8px; padding: 6px 0; border-top: 1px solid rgba(128, 128, 128, 0.25)">'
        f'{badge}<div style="flex: 1 1 auto; min-width: 0">{found}{words}{commands}</div></div>'
    )


def doctor(report: Report | None = None) -> Diagnosis:
    """Find out why a profile is empty, or has no GPU in it.

    Looks at TensorFlow and its build, GPUs and their drivers, NVIDIA's profiling library CUPTI, the right to profile,
    other profilers, and, if a report is given, at what it holds and what it was to hold. TensorFlow is imported for that, in a
    process of its own unless it is imported already.

    Parameters
    ----------
    report : Report, optional
        A report in which something is missing.

    Returns
    -------
    Diagnosis
        Shows itself in a notebook and can be printed; a sequence of `Check` otherwise, each with ``status``, ``found``,
        ``why``, ``do`` and ``commands``. ``problems`` are those that found something amiss.

    Examples
    --------
    >>> tfprof.doctor()
    >>> [check.name for check in tfprof.doctor(report).problems]
    """
    from .installation import installation
    from .installation_checks import installation_checks
    from .machine import look
    from .machine_checks import machine_checks
    from .report_checks import recorded_checks, report_checks

    installed = installation()
    machine = look()
    checks = [*installation_checks(installed, machine), *machine_checks(machine, installed)]
    checks += [*_session_checks(), *_room_checks()]
    if report is not None:
        checks += [*report_checks(report), *recorded_checks(report)]
    return Diagnosis(checks)


def _room_checks() -> Iterator[Check]:
    """A capture is written to the directory for temporary files first."""
    do, commands = "Free some space, or name another place before Python starts.", ("export TMPDIR=/a/larger/disk",)
    try:
        place = tempfile.gettempdir()
        free_gb = shutil.disk_usage(place).free / 1e9
    except OSError as error:
        yield Check(
            "room",
            ERROR,
            "There is no directory for temporary files, so nothing can be captured.",
            str(error),
            do,
            commands,
        )
        return
    if free_gb < _ROOM_GB:
        found = f"{free_gb:.1f} GB are free in {place}, where captures are written."
        yield Check("room", WARNING, found, "A long capture takes more than that.", do, commands)


def _session_checks() -> Iterator[Check]:
    from ..session import active

    running = active()
    if running is not None:
        yield Check(
            "session",
            WARNING,
            f"A capture is running in this process ({running.name}).",
            "A process has one profiler session at a time.",
            "It ends with its cell or with block; to end it now:",
            ("import tensorflow as tf; tf.profiler.experimental.stop()",),
        )
