"""What a comparison needs to know of one run: its steady steps, and the circumstances in which it ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..analysis.overview import device_planes, device_type
from ..analysis.steps import CATEGORY_COLUMNS
from ..analysis.throughput import batch_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..report import Report

_STEADY = "averaged"
_UNSTEADY = ("traced", "compiling", "end_of_data", "host_only")


@dataclass(frozen=True)
class Run:
    """The steps of one kind of a run.

    Attributes
    ----------
    kind : str
        Empty where no step was found.
    ms : float array (N)
        Times of the steady steps, in their order; with several devices the slowest's.
    split_ms : float array (N, 9)
        The same by category.
    left_out : int
        Steps of the kind that are not steady: the first, the last, traced and compiling ones, the end of the data.
    unsteady : bool
        Whether no step was steady, so that all of them are taken.
    span_ms : float
        From the first to the last event of the threads that the steps ran on: the profiled code as a whole.
    unmarked : bool
        Whether no step has a mark: each then goes on until the next one begins.
    """

    kind: str
    ms: NDArray[np.float64]
    split_ms: NDArray[np.float64]
    left_out: int = 0
    unsteady: bool = False
    span_ms: float = 0.0
    unmarked: bool = False

    @property
    def steps(self) -> int:
        """Number of all steps of the kind."""
        return len(self.ms) + self.left_out


@dataclass(frozen=True)
class Circumstances:
    """What must be the same for two runs to be compared like with like."""

    devices: str
    n_devices: int
    hosts: int
    batch_size: int | None
    versions: dict[str, str] = field(default_factory=dict)


def kinds_of(report: Report) -> list[str]:
    """Kinds of step of a run, training first."""
    return [str(kind) for kind in report.overview.step_time["kind"]]


def run_of(report: Report, kind: str) -> Run:
    """Return the steps of one kind of a run; with an empty kind that it doesn't have, the run as a whole."""
    ms, split, left_out, flags = [], [], 0, []
    for host in report.hosts:
        steps = host.steps
        table = steps.table.iloc[steps.slowest]
        of_kind = table["kind"].to_numpy(object) == kind
        steady = of_kind & steps.averaged[steps.slowest]
        ms.append(table["duration_ms"].to_numpy(float)[steady])
        split.append(table[list(CATEGORY_COLUMNS)].to_numpy(float)[steady])
        left_out += int(of_kind.sum() - steady.sum())
        flags += table["flags"].to_numpy(object)[steady].tolist()
    unsteady = bool(flags) and all(any(word in words for word in _UNSTEADY) for words in flags)
    unmarked = bool(flags) and all("unmarked" in words for words in flags)
    return Run(kind, np.concatenate(ms), np.concatenate(split), left_out, unsteady, _span_ms(report), unmarked)


def _span_ms(report: Report) -> float:
    spans = []
    for host in report.hosts:
        trace = host.trace
        mine = trace.line == trace.main_line
        mine = mine if mine.any() else np.ones(len(trace), bool)
        if len(trace):
            spans.append(float(trace.end_ps[mine].max() - trace.start_ps[mine].min()) / 1e9)
    return max(spans, default=0.0)


def circumstances(report: Report) -> Circumstances:
    """Return the circumstances of a run, as far as the profile tells them."""
    traces = [host.trace for host in report.hosts]
    sizes = {batch_size(host.trace, host.step_of_event) for host in report.hosts}
    return Circumstances(
        devices=device_type(traces),
        n_devices=sum(len(device_planes(trace)) for trace in traces),
        hosts=len(traces),
        batch_size=sizes.pop() if len(sizes) == 1 else None,
        versions=_versions(report),
    )


def _versions(report: Report) -> dict[str, str]:
    if report.capture is None:
        return {}
    versions = {"TensorFlow": report.capture.tensorflow_version, "Keras": report.capture.keras_version}
    return {name: version for name, version in versions.items() if version}
