"""Whether two runs differ by more than chance: medians of steps, their intervals, and the drift between runs.

Neighbouring steps are alike (a busy machine slows several in a row), so intervals come from resampling blocks of
steps, not single ones. And two runs of the same code differ by more than the steps of either suggest: the machine
was warmer, or had other work. Two runs can't show how much, but parts of one run do: noise of the kind that
computers have (as strong over long times as over short ones) moves whole runs about as far as it moves the parts of
one. The interval of a difference therefore holds that drift too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Told = Literal["faster", "slower", "no difference shown", "too few steps"]

#: Confidence of the interval of one run's median, in percent.
MEDIAN_LEVEL_PCT = 95
#: Confidence of the interval of the ratio of two, in percent: of a hundred comparisons of like with like one may be wrong.
RATIO_LEVEL_PCT = 99
#: A smaller difference is none that anyone would act on, however sure it is.
LEAST_RATIO = 1.05
#: Runs of the same code hardly ever come out further apart than this (1.8 was the most of some hundreds on a machine with much other
#: work): where there are too few steps for an interval, only a difference beyond it is told.
FAR_RATIO = 2.0
#: Fewer steps than this on either side give no interval.
FEWEST_STEPS = 6

_RESAMPLES = 2000
# So many drawn steps are held at once.
_AT_ONCE = 2_000_000
_MOST_PARTS = 8
# Student's t for a two-sided interval of 99 %, by degrees of freedom.
_T99 = {
    1: 63.66, 2: 9.925, 3: 5.841, 4: 4.604, 5: 4.032, 6: 3.707, 7: 3.499, 8: 3.355, 9: 3.250, 10: 3.169, 11: 3.106,
    12: 3.055, 13: 3.012, 14: 2.977,
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """How the typical time of two runs differs.

    Attributes
    ----------
    before_ms, after_ms : float
        Medians.
    before_interval_ms, after_interval_ms : (float, float)
        Of each median alone, at `MEDIAN_LEVEL_PCT`; NaN where there are too few steps.
    ratio : float
        After over before.
    ratio_interval : (float, float)
        At `RATIO_LEVEL_PCT`, the drift between runs included; NaN where there are too few steps.
    told : str
        ``faster``, ``slower``, ``no difference shown`` or ``too few steps`` (to tell).
    """

    before_ms: float
    after_ms: float
    before_interval_ms: tuple[float, float]
    after_interval_ms: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]
    told: Told

    @property
    def shown(self) -> bool:
        """Whether a difference is shown."""
        return self.told in ("faster", "slower")

    @property
    def has_interval(self) -> bool:
        """Whether there were enough steps for an interval."""
        return self.ratio_interval[0] == self.ratio_interval[0]


def compare_times(before_ms: Array, after_ms: Array, *, seed: int = 0) -> Change:
    """Compare the typical times of two runs.

    Parameters
    ----------
    before_ms, after_ms : arrays (N), (M)
        Times of the steady steps of one kind, in the order in which they ran; at least one each.
    seed : int
        Of the resampling: the same steps always give the same intervals.
    """
    before, after = float(np.median(before_ms)), float(np.median(after_ms))
    ratio = after / before if before > 0 else np.nan
    none = (np.nan, np.nan)
    if min(len(before_ms), len(after_ms)) < FEWEST_STEPS or not (before > 0 and after > 0):
        far = max(ratio, 1 / ratio) >= FAR_RATIO if ratio > 0 else False
        told: Told = "too few steps" if not far else "faster" if ratio < 1 else "slower"
        return Change(before, after, none, none, ratio, none, told)
    random = np.random.default_rng(seed)
    medians = [resampled_medians(ms, random) for ms in (before_ms, after_ms)]
    tail = (100 - MEDIAN_LEVEL_PCT) / 2
    intervals = [tuple(np.percentile(m, (tail, 100 - tail)).tolist()) for m in medians]
    spread = [np.log(np.maximum(m, 1e-12)).std() for m in medians]
    drifts = [drift(ms) for ms in (before_ms, after_ms)]
    freedom = int(np.clip(sum(_parts(len(ms)) - 1 for ms in (before_ms, after_ms)), 1, max(_T99)))
    width = _T99[freedom] * float(np.sqrt(sum(s**2 for s in [*spread, *drifts])))
    if _apart(before_ms, after_ms):
        width = min(width, float(np.log(FAR_RATIO)))
    low, high = ratio * np.exp(-width), ratio * np.exp(width)
    told = "no difference shown"
    if high < 1 and ratio <= 1 / LEAST_RATIO:
        told = "faster"
    elif low > 1 and ratio >= LEAST_RATIO:
        told = "slower"
    return Change(before, after, intervals[0], intervals[1], ratio, (float(low), float(high)), told)


def _apart(one_ms: Array, other_ms: Array) -> bool:
    """Whether three quarters of one run's steps are shorter than three quarters of the other's, which drift alone hardly does."""
    (low, high), (other_low, other_high) = (np.percentile(ms, (25, 75)) for ms in (one_ms, other_ms))
    return bool(high < other_low or other_high < low)


def resampled_medians(ms: Array, random: np.random.Generator) -> Array:
    """Medians of a run as it might have been: made of blocks of its steps, drawn with replacement.

    A block is as long as the square root of the run, and may run over the end to the start.

    Parameters
    ----------
    ms : array (N)
        Times in the order in which they were taken.

    Returns
    -------
    array (R)
        R resamples; fewer where a run is very long.
    """
    n = len(ms)
    length = int(np.ceil(np.sqrt(n)))
    blocks = -(-n // length)
    resamples = int(np.clip(20 * _AT_ONCE // n, 200, _RESAMPLES))
    chunk = max(1, _AT_ONCE // n)
    medians = []
    for done in range(0, resamples, chunk):
        start = random.integers(0, n, (min(chunk, resamples - done), blocks, 1))
        drawn = ((start + np.arange(length)) % n).reshape(len(start), -1)[:, :n]
        medians.append(np.median(ms[drawn], axis=1))
    return np.concatenate(medians)


def drift(ms: Array) -> float:
    """How far the medians of a run's parts lie apart, as a standard deviation of their logarithm (0.1: some 10 %)."""
    parts = np.array([np.median(part) for part in np.array_split(ms, _parts(len(ms)))])
    return float(np.log(np.maximum(parts, 1e-12)).std(ddof=1))


def _parts(n: int) -> int:
    """In how many parts a run is divided: of two steps at least."""
    return min(_MOST_PARTS, n // 2)


def typical_split(ms: Array, split_ms: Array) -> Array:
    """Where the time of a typical step goes: the median, divided as the steps around it are.

    The mean of each category would follow a few odd steps, and the medians of categories don't add up. This does.

    Parameters
    ----------
    ms : array (N)
        Times of steps.
    split_ms : array (N, C)
        The same by category: each row adds up to its time.

    Returns
    -------
    array (C)
        Adds up to the median of ``ms``.
    """
    n = len(ms)
    order = np.argsort(ms, kind="stable")
    middle = order[n // 4 : n - n // 4]
    mean = split_ms[middle].mean(axis=0)
    total = mean.sum()
    result: Array = mean * (np.median(ms) / total) if total > 0 else mean
    return result
