"""What a report's head line says, and its notes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ..analysis.overview import captured_ms, device_type
from ..diagnosis.report_checks import report_notes

if TYPE_CHECKING:
    import pandas as pd

    from .report import Report

_log = logging.getLogger(__name__)


def head_facts(report: Report) -> list[dict[str, Any]]:
    """Return the facts of the head line: what was captured, and how much of it there is."""
    try:
        kinds = report.overview.step_time["kind"]
        counted = (
            ", ".join(_counted(report.steps[report.steps["kind"] == kind], kind) for kind in kinds) or "none found"
        )
    except Exception:  # noqa: BLE001  # as for the tabs
        _log.exception("The overview failed on this profile.")
        counted = "unknown"
    rows = [
        {"label": "Steps", "value": counted},
        {
            "label": "Captured",
            "value": _duration(max(captured_ms(host.trace) for host in report.hosts)),
            "hint": "From the profiler's start to its stop; where the file doesn't tell, from the first event to the last",
        },
        {"label": "Device", "value": device_type([host.trace for host in report.hosts])},
    ]
    if len(report.hosts) > 1:
        rows.append({"label": "Hosts", "value": f"{len(report.hosts)}"})
    rows += [{"label": name, "value": version} for name, version in versions(report).items() if name == "TensorFlow"]
    rows.append({"label": "Events", "value": f"{sum(host.trace.space.n_events for host in report.hosts):,}"})
    if report._compared is not None:
        rows.append(report._compared.fact)
    return rows


def notes(report: Report) -> list[str]:
    """What to know before trusting the numbers: errors that the profiler stored, repairs, what was left out."""
    found = list(report.capture.notes) if report.capture is not None else []
    if report.capture is not None and report.capture.error:
        found.append(f"The cell ended early ({report.capture.error}); the report shows what was captured until then.")
    found += report._notes
    for host in report.hosts:
        space = host.trace.space
        prefix = f"{host.trace.host}: " if len(report.hosts) > 1 else ""
        found += [prefix + note for note in space.notes]
    found += report_notes(report)
    return list(dict.fromkeys(found))


def versions(report: Report) -> dict[str, str]:
    """Return the versions of what ran, as far as they are known."""
    if report.capture is None:
        return {}
    found = {"TensorFlow": report.capture.tensorflow_version, "Keras": report.capture.keras_version}
    return {name: version for name, version in found.items() if version}


def _counted(steps: pd.DataFrame, kind: str) -> str:
    """How many steps of a kind each host ran."""
    of_host = steps.groupby("host", sort=False)["step"].nunique()
    least, most = int(of_host.min()), int(of_host.max())
    number = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return f"{number} {kind}" + (
        f" on {'each of ' if least != most else ''}{len(of_host)} hosts" if len(of_host) > 1 else ""
    )


def _duration(ms: float) -> str:
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2f} ms"
