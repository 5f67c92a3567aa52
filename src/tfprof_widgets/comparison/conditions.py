"""Conditions on a comparison for programs that must say yes or no: ``step_ms > 1.1x``."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..analysis.steps import CATEGORY_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .result import Comparison

_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d*)?|\.\d+)\s*(x|%|)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
#: What a condition can be on: figures of the typical step, and of the whole run.
MEASURES = ("step_ms", *CATEGORY_COLUMNS, "span_ms", "examples_per_s", "peak_memory_bytes")


@dataclass(frozen=True)
class Condition:
    """A condition, as it was written and in parts.

    Attributes
    ----------
    text, measure, sign : str
        ``step_ms > 1.1x``, ``step_ms``, ``>``.
    bound : float
        Of the ratio, after over before, or of the figure after.
    of_ratio : bool
        Which of the two.
    """

    text: str
    measure: str
    sign: str
    bound: float
    of_ratio: bool


def parse_condition(text: str) -> Condition:
    """Read a condition: a measure, a comparison, and a number: ``1.1x`` or ``110%`` of what it was before, else the figure after.

    Raises
    ------
    ValueError
        If it is none; the message says how one is written.
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        msg = f"{text!r} is no condition: write, for example, 'step_ms > 1.1x' (1.1 times as long as before) or 'step_ms > 25'"
        raise ValueError(msg)
    measure, sign, number, unit = found.groups()
    if measure not in MEASURES:
        raise ValueError(f"there is no measure {measure!r}; there are {', '.join(MEASURES)}")
    bound = float(number) / (100 if unit == "%" else 1)
    return Condition(text.strip(), measure, sign, bound, unit != "")


def check(comparison: Comparison, condition: Condition) -> dict[str, Any]:
    """Check a condition.

    A ratio of the step's time that no difference is shown of does not count as one: a test that fails by chance is soon ignored.

    Returns
    -------
    dict
        ``condition``, ``before``, ``after``, ``ratio`` (None where a run doesn't tell), ``holds`` (None if that can't be told), and
        ``why``, a sentence.
    """
    before, after = _values(comparison, condition.measure)
    ratio = after / before if before > 0 else math.nan
    # Not of the ratio: a category that took no time before has none, and any time is more than that.
    bound = condition.bound * before if condition.of_ratio else condition.bound
    holds = bool(_COMPARE[condition.sign](after, bound)) if after == after and bound == bound else None
    shown = f"{condition.measure} {before:.4g} → {after:.4g}" + (f", {ratio:.3g}x" if ratio == ratio else "")
    if holds is None:
        why = f"{condition.measure} is not known of both runs"
    elif holds and condition.of_ratio and condition.measure == "step_ms" and not comparison.change.shown:
        holds = False
        why = f"{shown}: it would hold, but that is no more than chance"
    else:
        why = f"{shown}: {'holds' if holds else 'does not hold'}"
    known = {
        name: None if number != number else number
        for name, number in (("before", before), ("after", after), ("ratio", ratio))
    }
    return {"condition": condition.text, **known, "holds": holds, "why": f"{condition.text}: {why}."}


def _values(comparison: Comparison, measure: str) -> tuple[float, float]:
    """A measure before and after; NaN where a run does not tell."""
    if measure == "span_ms":
        return comparison.sides[0].span_ms, comparison.sides[1].span_ms
    if measure == "peak_memory_bytes":
        tables = (comparison.before.memory_summary, comparison.after.memory_summary)
        before, after = (float(table["peak_bytes"].max()) if len(table) else math.nan for table in tables)
        return before, after
    if measure == "examples_per_s":
        rates = (comparison.before.overview.examples_per_s, comparison.after.overview.examples_per_s)
        before, after = (math.nan if rate is None else float(rate) for rate in rates)
        return before, after
    rows = comparison.steps
    category = "duration" if measure == "step_ms" else measure.removesuffix("_ms")
    mine = rows[rows["category"] == category]
    if mine.empty:
        return math.nan, math.nan
    return float(mine["before_ms"].iloc[0]), float(mine["after_ms"].iloc[0])
