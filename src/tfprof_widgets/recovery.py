"""Captures that a kernel left behind when it died, opened after all."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .scratch import Leftover, leftovers
from .session import CaptureInfo, Options, describe_error, keep_run

if TYPE_CHECKING:
    from .report import Report

_NOTE = "This capture was recovered: the process that made it ended before it could show the report."

_NOTHING = "No capture was left behind: none is in the directory for temporary files{also}. {hint}"
_HINT = "Captures with --logdir lie in their log directory; recover(logdir) looks there too."

_EMPTY = (
    "{what}: nothing was written. TensorFlow writes a profile when the profiler stops, and the process ended before that "
    "(its directory was removed). Shorter recordings lose less: --duration, --steps."
)


@dataclass
class Recovered(Sequence["Report"]):
    """What `recover` found: a sequence of reports, and what is to say about each capture.

    Attributes
    ----------
    reports
        Those that could be opened, oldest first.
    findings
        One sentence for each capture found, also those that could not be opened.
    """

    reports: list[Report] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    _unreadable: list[Path] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.reports)

    def __getitem__(self, index: Any) -> Any:
        return self.reports[index]

    def __iter__(self) -> Iterator[Report]:
        return iter(self.reports)

    def __repr__(self) -> str:
        """Say what was found, a line each."""
        return "\n".join(self.findings)

    def discard(self) -> None:
        """Remove the captures that could not be opened."""
        while self._unreadable:
            shutil.rmtree(self._unreadable.pop(), ignore_errors=True)


def recover(logdir: str | Path | None = None) -> Recovered:
    """Open the captures that an earlier kernel left behind, for example because it was killed while it made the report.

    Parameters
    ----------
    logdir
        Look in this log directory too, and keep the profiles there (``logdir/plugins/profile/…``, where TensorBoard finds
        them). Without it they are removed once they have been read.

    Returns
    -------
    Recovered
        The reports, oldest first, and what was found in words. Captures that cannot be read are left where they are until
        its ``discard()``.

    Examples
    --------
    >>> found = tfprof.recover()
    >>> found                # says what was left, and by which cell
    >>> found[-1]            # the newest report
    """
    directory = None if logdir is None else Path(logdir).expanduser().absolute()
    result = Recovered()
    for left in leftovers(directory):
        _open(left, directory, result)
    if not result.findings:
        also = f" or in {directory}" if directory else ""
        result.findings.append(_NOTHING.format(also=also, hint="" if directory else _HINT).rstrip())
    return result


def hint() -> str | None:
    """Return one line about captures that wait to be recovered; None if there are none."""
    waiting = leftovers()
    if not waiting:
        return None
    size_mb = sum(left.size_bytes for left in waiting) / 1e6
    count = f"{len(waiting)} captures" if len(waiting) > 1 else f"a capture, {_name(waiting[0])},"
    return f"An earlier kernel left {count} without a report ({size_mb:.1f} MB): tfprof_widgets.recover() says what is left."


def _open(left: Leftover, logdir: Path | None, result: Recovered) -> None:
    from .report import load_run

    what = f"{_name(left)}, {_when(left)}"
    if not left.files:
        result.findings.append(_EMPTY.format(what=what))
        shutil.rmtree(left.path, ignore_errors=True)
        return
    info = _info(left, logdir)
    try:
        report = load_run(left.files, capture=info)
    except Exception as error:  # noqa: BLE001 - whatever it is, the others must be opened
        result.findings.append(f"{what}: cannot be opened ({describe_error(error)}). It is left in {left.path}")
        result._unreadable.append(left.path)
        return
    kept = ""
    if logdir is not None:
        try:
            for run in sorted({file.parent for file in left.files}):
                kept = f", and kept in {keep_run(run, logdir)}"
        except OSError as error:
            info.notes.append(f"The profile could not be kept in {logdir}: {error}. It is left in {left.path}")
            result.findings.append(f"{what}: opened, but could not be kept in {logdir}; it is left in {left.path}")
            result.reports.append(report)
            return
    shutil.rmtree(left.path, ignore_errors=True)
    result.reports.append(report)
    result.findings.append(f"{what}: opened as number {len(result.reports) - 1}{kept}")


def _name(left: Leftover) -> str:
    return str(left.facts.get("name") or left.path.name)


def _when(left: Leftover) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(left.facts["started_s"]))
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return "at an unknown time"


def _info(left: Leftover, logdir: Path | None) -> CaptureInfo:
    facts = left.facts
    try:
        options = Options(**facts["options"])
    except (KeyError, TypeError, ValueError):
        options = Options()
    return CaptureInfo(
        name=_name(left),
        source=str(facts.get("source", "")),
        logdir=logdir,
        started_s=float(facts.get("started_s", 0.0)),
        options=options,
        notes=[_NOTE],
        tensorflow_version=str(facts.get("tensorflow_version", "")),
    )
