"""The comparison in one sentence: what is not alike, how the time changed, and what that is mostly due to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..analysis.op_stats import IDLE, UNATTRIBUTED
from .statistics import LEAST_RATIO

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from .statistics import Change
    from .steady import Circumstances, Run

#: What less or more of a category is called.
_CAUSES = {
    "compilation": "tracing and compiling",
    "input": "waiting for input",
    "output": "copying from the device",
    "kernel_launch": "launching of kernels",
    "host_compute": "host compute",
    "device_to_device": "copying on and between devices",
    "device_collective": "communication between devices",
    "device_compute": "device compute",
    "other": "time outside TensorFlow's ops (Python, waiting)",
}
# Shares of the whole difference from which one cause is most of it, and two together are named.
_MOST, _SECOND = 0.5, 0.25
# What went the other way is worth a word from this share of the difference.
_AGAINST = 0.2
# A factor from which on it is no percentage.
_AS_FACTOR = 1.5
# The same op types must make up this share of a compute category's change to be named.
_OF_COMPUTE = 0.6
# Op time that ran eagerly, in percent: a run from op by op to functions, or back.
_EAGER_PCT, _NOT_EAGER_PCT = 50.0, 15.0


@dataclass(frozen=True)
class Words:
    """What a comparison says.

    Attributes
    ----------
    cautions : list of str
        What is not alike, to know before the rest.
    change : str
        How the time changed.
    cause : str
        What that is mostly due to; empty where no difference is shown.
    """

    cautions: list[str]
    change: str
    cause: str = ""

    @property
    def sentence(self) -> str:
        """All of it as one sentence, the cautions first."""
        words = ", ".join(part for part in (self.change, self.cause) if part)
        if self.cautions:
            return f"{'; '.join(self.cautions)}: {words}."
        return f"{words[:1].upper()}{words[1:]}."

    @property
    def short(self) -> str:
        """The same for a narrow place, without the full stop."""
        return self.sentence.removesuffix(".")


def cautions(
    sides: tuple[Circumstances, Circumstances], runs: tuple[Run, Run], all_steps: tuple[int, int]
) -> list[str]:
    """List what is not alike in two runs, the gravest first, each as a part of a sentence.

    Parameters
    ----------
    sides : (Circumstances, Circumstances)
        Those before and after.
    runs : (Run, Run)
        The steps that are compared.
    all_steps : (int, int)
        How many steps of any kind there are.
    """
    before, after = sides
    found = []
    if before.devices != after.devices:
        found.append(f"Other devices ({before.devices} → {after.devices})")
    elif before.n_devices != after.n_devices:
        found.append(f"Other number of devices ({before.n_devices} → {after.n_devices})")
    if before.hosts != after.hosts:
        found.append(f"Other number of hosts ({before.hosts} → {after.hosts})")
    if before.batch_size != after.batch_size and before.batch_size and after.batch_size:
        each = [float(np.median(run.ms)) if len(run.ms) else 0.0 for run in runs]
        examples = times(each[0] / before.batch_size, each[1] / after.batch_size)
        of_one = f", {examples} an example" if all(each) else ""
        found.append(f"Other batch size ({before.batch_size:,} → {after.batch_size:,}{of_one})")
    if runs[0].kind != runs[1].kind and runs[0].kind and runs[1].kind:
        found.append(f"Other steps (“{runs[0].kind}” → “{runs[1].kind}”)")
    elif bool(all_steps[0]) != bool(all_steps[1]):
        found.append(f"Steps were found only {'before' if all_steps[0] else 'after'}")
    elif runs[0].steps != runs[1].steps:
        found.append(f"Other number of steps ({runs[0].steps:,} → {runs[1].steps:,})")
    if runs[0].steps and runs[1].steps and runs[0].unmarked != runs[1].unmarked:
        found.append(
            f"Steps are marked only {'after' if runs[0].unmarked else 'before'}: without marks, the time between them is in them"
        )
    both = [name for name in before.versions if name in after.versions]
    versions = [(name, before.versions[name], after.versions[name]) for name in both]
    found += [f"Other {name} ({then} → {now})" for name, then, now in versions if then != now]
    return [found[0], *(part[:1].lower() + part[1:] for part in found[1:])] if found else []


def times(before_ms: float, after_ms: float) -> str:
    """Return ``21.4 → 14.9 ms``: both in the unit that suits the larger."""
    larger = max(abs(before_ms), abs(after_ms))
    unit, scale = ("s", 1e-3) if larger >= 10_000 else ("ms", 1.0) if larger >= 0.1 else ("µs", 1e3)
    before, after = (_digits(value * scale) for value in (before_ms, after_ms))
    return f"{before} → {after} {unit}"


def _digits(value: float) -> str:
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def factor(ratio: float) -> str:
    """Return ``1.43× faster`` or ``1.43× slower`` for a ratio of times, after over before."""
    times_as = 1 / ratio if ratio < 1 else ratio
    words = f"{times_as:,.0f}" if times_as >= 20 else f"{times_as:.1f}" if times_as >= 10 else f"{times_as:.2f}"
    return f"{words}× {'faster' if ratio < 1 else 'slower'}"


def how_it_changed(change: Change, what: str, least: tuple[int, int]) -> str:
    """Say how a time changed, or that no difference is shown.

    Parameters
    ----------
    change : Change
        Of the typical time.
    what : str
        Whose time it is: ``step``.
    least : (int, int)
        Number of steady steps of each run (1 for whole captures).
    """
    shown = f"{what} {times(change.before_ms, change.after_ms)}"
    if change.told == "no difference shown":
        return f"no difference shown: {shown}; these runs tell only differences beyond {_at_least(change)}"
    few = (
        f"{least[0]:,} and {least[1]:,} steady steps"
        if max(least) > 1
        else f"one {what} each"
        if what == "step"
        else "one run each"
    )
    if change.told == "too few steps":
        return f"no difference shown: {shown}, of {few}, too few to tell from chance"
    unsure = "" if change.has_interval else f" ({few})"
    return f"{shown}, {factor(change.ratio)}{unsure}"


def _at_least(change: Change) -> str:
    """Return how large a difference must be to be told from chance: ``±12 %``, ``1.8×``."""
    width = max(change.ratio_interval[1] / change.ratio, LEAST_RATIO)
    return f"{width:.2f}×" if width >= _AS_FACTOR else f"±{100 * (width - 1):.0f} %"


def cause_of(
    split_ms: Mapping[str, tuple[float, float]], ops: pd.DataFrame, eager_pct: tuple[float | None, float | None]
) -> str:
    """Say what the change of a step is mostly due to.

    Parameters
    ----------
    split_ms : mapping
        Category → its time in a typical step before and after.
    ops : DataFrame
        `tables.ops_table`.
    eager_pct : (float or None, float or None)
        Share of op time that ran eagerly (the devices', where there are any), before and after.
    """
    eager = _eager_cause(eager_pct)
    changes = {name: after - before for name, (before, after) in split_ms.items()}
    whole = sum(changes.values())
    if not whole:
        return eager
    shares = sorted(((change / whole, name) for name, change in changes.items()), reverse=True)
    (first, name), (second, other) = shares[0], shares[1] if len(shares) > 1 else (0.0, "")
    if eager and name in ("other", "host_compute"):
        return eager
    direction = "less" if whole < 0 else "more"
    if first >= _MOST:
        words = f"mostly {direction} {_named(name, whole < 0, ops)}"
        if first < _MOST + _SECOND and second >= _SECOND:
            words += f", and {_CAUSES[other]}"
    elif second >= _SECOND:
        words = f"mostly {direction} {_CAUSES[name]} and {_CAUSES[other]}"
    else:
        words = f"spread over several causes, first {direction} {_CAUSES[name]}"
    last, against = shares[-1]
    if last <= -_AGAINST:
        words += f", though {'more' if whole < 0 else 'less'} {_CAUSES[against]}"
    return words


def _eager_cause(eager_pct: tuple[float | None, float | None]) -> str:
    before, after = (share if share is not None else 0.0 for share in eager_pct)
    if before >= _EAGER_PCT and after <= _NOT_EAGER_PCT:
        return "mostly because ops no longer run eagerly, one by one from Python"
    if after >= _EAGER_PCT and before <= _NOT_EAGER_PCT:
        return "mostly because ops run eagerly now, one by one from Python"
    return ""


def _named(category: str, less: bool, ops: pd.DataFrame) -> str:
    """Name a category; of compute, also the type of op that most of the change is in."""
    words = _CAUSES[category]
    if category not in ("host_compute", "device_compute") or ops.empty:
        return words
    side = "Host" if category == "host_compute" else "Device"
    busy = (ops["host_or_device"] == side) & ~ops["type"].isin([IDLE, UNATTRIBUTED, "Dataset"])
    by_type = ops[busy].groupby("type")["difference_us_per_step"].sum()
    by_type = by_type[by_type < 0] if less else by_type[by_type > 0]
    if by_type.empty:
        return words
    name = str(by_type.abs().idxmax())
    return f"{words} ({name})" if abs(by_type[name]) >= _OF_COMPUTE * by_type.abs().sum() else words


def cause_without_steps(ops: pd.DataFrame, eager_pct: tuple[float | None, float | None]) -> str:
    """Say what the change of a whole capture is mostly due to, where there are no steps to look into."""
    eager = _eager_cause(eager_pct)
    if eager:
        return eager
    busy = ops[~ops["type"].isin([IDLE, UNATTRIBUTED])]
    by_type = busy.groupby(["host_or_device", "type"])["difference_us"].sum()
    whole = by_type.sum()
    mine = by_type[by_type * whole > 0]
    if mine.empty:
        return ""
    side, name = mine.abs().idxmax()
    if abs(mine[(side, name)]) < _MOST * mine.abs().sum():
        return ""
    return f"mostly {'less' if whole < 0 else 'more'} time in {name} ops on the {str(side).lower()}"
