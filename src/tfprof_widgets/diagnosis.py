"""Why a profile is empty, or has no GPU in it: what can be seen of it in a report, and on this machine.

`report_checks` looks at a profile and is cheap: every report's notes come from it. `doctor` looks around too, and has
TensorFlow imported for that.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any

from .analysis.recorded import ignored, recorded, recorded_rows
from .known_messages import Known, explained

if TYPE_CHECKING:
    import pandas as pd

    from .report import Report

OK, INFO, WARNING, ERROR = "ok", "info", "warning", "error"
# A minute's capture of a busy program can take this much.
_ROOM_GB = 1.0
_RANK = {ERROR: 0, WARNING: 1, INFO: 2, OK: 3}
_SIGNS = {OK: "✓", INFO: "i", WARNING: "!", ERROR: "✗"}
_WORDS = {OK: "fine", INFO: "note", WARNING: "look", ERROR: "problem"}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        Short and stable, for programs: ``libcupti``, ``privileges``, …
    status : str
        ``ok``, ``info`` (worth knowing), ``warning`` (may be why something is missing) or ``error`` (something is missing).
    found : str
        What was found.
    why : str
        What that means.
    do : str
        What to do; empty if nothing.
    commands : tuple of str
        What to type for that.
    evidence : str
        The message that tells it, where there is one.
    """

    name: str
    status: str
    found: str
    why: str = ""
    do: str = ""
    commands: tuple[str, ...] = ()
    evidence: str = ""

    @property
    def note(self) -> str:
        """What a reader of a report must know of it, in a few sentences."""
        commands = f"Commands: {' · '.join(self.commands)}" if self.commands else ""
        parts = (self.found, self.evidence, self.why if not self.evidence else "", self.do, commands)
        return " ".join(part for part in parts if part)


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
            f'<div style="{style}">',
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


# ---- what a report shows ---------------------------------------------------------------------------------------


def report_checks(report: Report) -> list[Check]:
    """Look for what is missing from a report, and why.

    Returns
    -------
    list of Check
        In the order in which to read them; no ``ok`` among them.
    """
    return [*_told(report), *_missing(report), *_ignored(report)]


def report_notes(report: Report) -> list[str]:
    """Return the findings of `report_checks` that a reader must know, as sentences."""
    return [check.note for check in report_checks(report) if check.status in (WARNING, ERROR)]


def _told(report: Report) -> Iterator[Check]:
    """What the profiler itself stored or logged."""
    said: dict[str, list[tuple[str, str]]] = {}
    unknown: list[Check] = []
    several = len(report.hosts) > 1
    for host in report.hosts:
        prefix = f"{host.trace.host}: " if several else ""
        stored = [(f"{prefix}The profiler reported an error: {text}", text, ERROR) for text in host.trace.space.errors]
        stored += [(f"{prefix}The profiler warned: {text}", text, WARNING) for text in host.trace.space.warnings]
        for words, text, status in stored:
            meaning = explained(text)
            if meaning is None:
                unknown.append(Check("profiler_message", status, words))
            else:
                said.setdefault(meaning.name, []).append((words, text))
    logged = report.capture.log if report.capture is not None else []
    for line in logged:
        meaning = explained(line)
        # Each cause once: the consequences in the log add nothing to what is known.
        if meaning is not None and meaning.name not in said and not (meaning.name == "cupti" and said):
            said[meaning.name] = [(f"TensorFlow's log says: {line}", line)]
    for sentences in said.values():
        meaning = explained(sentences[0][1])
        assert meaning is not None
        yield _meant(meaning, " ".join(dict.fromkeys(words for words, _ in sentences)))
    yield from unknown


def _meant(meaning: Known, words: str) -> Check:
    stop = "" if words.endswith((".", ")", "!")) else "."
    status = ERROR if meaning.is_error else WARNING
    return Check(meaning.name, status, meaning.title, meaning.why, meaning.do, meaning.commands, f"{words}{stop}")


def _missing(report: Report) -> Iterator[Check]:
    found = [recorded(host.trace) for host in report.hosts]
    capture = report.capture
    asked_devices = capture is None or capture.options.device_level > 0
    explained_already = any(check.status == ERROR for check in _told(report))
    devices, active = sum(one.devices for one in found), sum(one.active_devices for one in found)
    dropped = sum(one.dropped for one in found)
    if dropped:
        yield Check(
            "dropped",
            WARNING,
            f"The profiler dropped {dropped:,} events.",
            "Its buffers were full; counts and times are too low.",
            "Record a shorter part.",
            ("%%tfprofile --steps 0:10",),
        )
    if devices and not active and not explained_already:
        yield Check(
            "silent_devices",
            WARNING,
            f"The profile names {devices} device{'' if devices == 1 else 's'}, but nothing that {'it' if devices == 1 else 'they'} did.",
            "Either nothing ran there in this time, or CUPTI could not trace it.",
            "See what this machine lets the profiler do.",
            ("tfprof_widgets.doctor()",),
        )
    if not devices and asked_devices and capture is not None and capture.gpus and not explained_already:
        metal = sys.platform == "darwin"
        yield Check(
            "no_device_plane",
            INFO if metal else WARNING,
            f"TensorFlow sees {capture.gpus} GPU{'' if capture.gpus == 1 else 's'}, but the profile has none.",
            "tensorflow-metal has no device tracer: only the host's part is recorded. Apple's Instruments (Metal System Trace) "
            "shows the GPU's."
            if metal
            else "The device tracer did not start: CUPTI is missing, or may not be used.",
            "" if metal else "See what this machine lets the profiler do.",
            () if metal else ("tfprof_widgets.doctor()",),
        )
    if not sum(one.host_events for one in found) and not sum(one.device_events for one in found):
        yield Check(
            "nothing_ran",
            WARNING,
            "Nothing is in the profile.",
            "No TensorFlow work was done in the time recorded, or it ended before the profiler had started.",
            "Profile the code that trains or predicts.",
        )


def _ignored(report: Report) -> Iterator[Check]:
    if report.capture is None:
        return
    said = ignored([recorded(host.trace) for host in report.hosts], report.capture.options)
    if said:
        version = report.capture.tensorflow_version
        this = f" (this is {version})" if version else ""
        yield Check(
            "options_ignored",
            WARNING,
            f"TensorFlow ignored some of the options of this capture: {'; '.join(said)}.",
            f"Versions 2.20 and 2.21 ignore all tracer levels when a program profiles itself{this}; 2.15 follows them, and so do "
            "profiler servers.",
        )


def _recorded(report: Report) -> Iterator[Check]:
    asked = None if report.capture is None else report.capture.options
    rows = recorded_rows([host.trace for host in report.hosts], asked)
    yield Check(
        "recorded", INFO, "Recorded: " + "; ".join(f"{label.lower()} {text}" for label, text in rows.items()) + "."
    )
    steps = len(report.steps)
    if not steps:
        yield Check(
            "no_steps",
            WARNING,
            "No step was found, so there is no step time.",
            "Steps are Keras' batches, and those that a loop marks.",
            "Mark the steps of your own loop.",
            ("with tfprof_widgets.step(i): …",),
        )


# ---- the doctor ------------------------------------------------------------------------------------------------


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
    from .installation import installation, installation_checks
    from .machine import look
    from .machine_checks import machine_checks

    installed = installation()
    machine = look()
    checks = [*installation_checks(installed, machine), *machine_checks(machine, installed)]
    checks += [*_session_checks(), *_room_checks()]
    if report is not None:
        checks += [*report_checks(report), *_recorded(report)]
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
    from .session import active

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
