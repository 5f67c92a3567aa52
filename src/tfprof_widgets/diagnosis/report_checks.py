"""Looking at a report for what is missing from it, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..analysis.recorded import ignored, recorded, recorded_rows
from .check import ERROR, INFO, WARNING, Check
from .known_messages import Known, explained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..report import Report


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
    unmeasured = sum(one.unmeasured for one in found)
    if unmeasured:
        yield Check(
            "unmeasured",
            WARNING,
            f"{unmeasured:,} of {sum(one.device_events for one in found):,} events of devices have no duration.",
            "The profiler did not measure how long they took: the trace shows them, and no other number counts them.",
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


def recorded_checks(report: Report) -> Iterator[Check]:
    """Say what was recorded, for the doctor: nothing is amiss with it unless there are no steps."""
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
