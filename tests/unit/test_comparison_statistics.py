"""When a difference is told from chance: intervals, drift, and how often like is taken for unlike."""

from __future__ import annotations

import numpy as np
import pytest

from tfprof_widgets.comparison.statistics import (
    FAR_RATIO,
    FEWEST_STEPS,
    compare_times,
    drift,
    resampled_medians,
    typical_split,
)


def steps(n: int, seed: int, *, median_ms: float = 10, scatter: float = 0.1, alike: float = 0.0) -> np.ndarray:
    """Times of n steps; with ``alike`` (0 to 1) each is so much like the one before it."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=n)
    for i in range(1, n):
        noise[i] = alike * noise[i - 1] + np.sqrt(1 - alike**2) * noise[i]
    return median_ms * np.exp(scatter * noise)


@pytest.mark.parametrize(("after_ms", "told"), [(6, "faster"), (16, "slower"), (10, "no difference shown")])
def test_a_difference_is_shown_where_there_is_one(after_ms, told):
    change = compare_times(steps(60, 0), steps(60, 1, median_ms=after_ms))
    assert change.told == told
    assert change.ratio == pytest.approx(after_ms / 10, rel=0.1)
    assert change.ratio_interval[0] < change.ratio < change.ratio_interval[1]
    assert change.before_interval_ms[0] < change.before_ms < change.before_interval_ms[1]


@pytest.mark.parametrize("alike", [0.0, 0.6, 0.9])
@pytest.mark.parametrize("n", [8, 60])
def test_like_is_hardly_ever_taken_for_unlike(n, alike):
    told = [compare_times(steps(n, 2 * i, alike=alike), steps(n, 2 * i + 1, alike=alike)).shown for i in range(60)]
    assert sum(told) <= 3


def test_steps_that_are_like_their_neighbours_give_wider_intervals():
    random = np.random.default_rng(0)
    alone = np.mean([resampled_medians(steps(100, i), random).std() for i in range(20)])
    alike = np.mean([resampled_medians(steps(100, i, alike=0.9), random).std() for i in range(20)])
    assert alike > 1.5 * alone


def test_a_run_that_slows_down_on_the_way_shows_less():
    steady, sinking = steps(80, 0, scatter=0.02), steps(80, 0, scatter=0.02) * np.linspace(1, 1.6, 80)
    assert drift(sinking) > 3 * drift(steady)
    other = steps(80, 1, median_ms=12, scatter=0.02)
    assert compare_times(steady, other).told == "slower"
    assert compare_times(sinking / 1.3, other).told == "no difference shown"


def test_a_difference_nobody_would_act_on_is_none():
    assert compare_times(np.full(50, 10.0), np.full(50, 10.3)).told == "no difference shown"
    assert compare_times(np.full(50, 10.0), np.full(50, 10.8)).told == "slower"


def test_a_few_steps_tell_large_differences_only():
    few = FEWEST_STEPS - 1
    assert compare_times(np.full(few, 10.0), np.full(50, 14.0)).told == "too few steps"
    assert compare_times(np.full(1, 10.0), np.full(1, 10.0 * FAR_RATIO)).told == "slower"
    assert not compare_times(np.full(1, 10.0), np.full(1, 30.0)).has_interval


def test_the_same_steps_always_give_the_same_intervals():
    assert compare_times(steps(30, 0), steps(30, 1)) == compare_times(steps(30, 0), steps(30, 1))


def test_the_split_of_a_typical_step_adds_up_to_the_median_and_ignores_odd_steps():
    random = np.random.default_rng(0)
    split = random.uniform(1, 2, (41, 3))
    split[7, 2] += 500  # one step in which something took half a second
    ms = split.sum(axis=1)
    typical = typical_split(ms, split)
    assert typical.sum() == pytest.approx(np.median(ms))
    assert typical[2] < 2


def test_runs_that_are_far_apart_differ_however_much_they_drift():
    noisy = steps(64, 0, scatter=0.1) * np.repeat(np.exp(0.8 * np.random.default_rng(3).normal(size=8)), 8)
    low, high = np.percentile(noisy, (25, 75))
    apart = compare_times(noisy, noisy * 1.2 * high / low)
    assert apart.ratio > FAR_RATIO
    assert apart.told == "slower"
    assert apart.ratio_interval[0] > 1
    assert compare_times(noisy, noisy * FAR_RATIO * 0.9).told == "no difference shown"
