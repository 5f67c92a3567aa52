"""Examples per second: the batch size that the file tells, and how many batches a step takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from .steps import rank_of_kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .events import Trace
    from .steps import Steps

_PAUSE_MEDIANS = 5
_LEADING_DIMENSION = re.compile(r"\[(\d+)[\],]")


def batch_size(trace: Trace, step_of: NDArray[np.int64]) -> int | None:
    """Batch size of the steps, where the file tells one.

    It is taken from the step marks (Keras 2 writes it there), else from the stage of the input pipeline that batches, else
    from the first dimension of what the pipeline yields. Of several sizes the most frequent counts.

    Parameters
    ----------
    trace : Trace
        One host's events.
    step_of : int64 array (N)
        Step of each event; -1 for none.

    Returns
    -------
    int or None
        None where nothing tells it, or where ragged shapes contradict one another.
    """
    event, value = trace.ints("batch_size")
    positive = value > 0
    event, value = event[positive], value[positive]
    if len(event):
        is_iterator = trace.meta_search("^Iterator::")[trace.meta[event]]
        marks = ~is_iterator & (step_of[event] >= 0)
        if marks.any():
            return _most_frequent(value[marks])
        if is_iterator.any():
            # Of batches of batches the outer stage yields what a step gets: the one with the shortest name.
            event, value = event[is_iterator], value[is_iterator]
            stages = np.array([trace.space.meta_name[m].count("::") for m in trace.meta[event]])
            return _most_frequent(value[stages == stages.min()])
    owner, code, texts = trace.strings("shapes")
    if not len(owner):
        return None
    stages = np.array([trace.space.meta_name[m].count("::") for m in trace.meta[owner]])
    sizes = set()
    for text in {texts[c] for c in code[stages == stages.min()]}:
        leading = [_LEADING_DIMENSION.match(part) for part in text.split()]
        sizes.add(frozenset(int(m[1]) if m else 0 for m in leading))
    if len(sizes) == 1 and len(only := next(iter(sizes))) == 1:
        return next(iter(only)) or None
    return None


def examples_per_s(trace: Trace, steps: Steps) -> float | None:
    """Examples that the averaged steps of the kind that the run is about work through in a second.

    From the start of one to that of the next: time between marks counts too.

    Parameters
    ----------
    trace : Trace
        One host's events.
    steps : Steps
        Its steps.

    Returns
    -------
    float or None
        None where the batch size isn't known.
    """
    used = steps.slowest[steps.averaged[steps.slowest]]
    if not len(used):
        return None
    kind = steps.table["kind"].to_numpy(object)[used]
    used = used[kind == min(kind, key=rank_of_kind)]
    step_of = steps.step_of(trace)
    size = batch_size(trace, step_of)
    mean_ms = _pace_ms(steps, used)
    if size is None or mean_ms <= 0:
        return None
    # With steps_per_execution one call takes several batches.
    taken = trace.named("IteratorGetNextOp::DoCompute", "IteratorGetNextAsOptionalOp::DoCompute")
    step = steps.table["step"].to_numpy()
    per_step = np.bincount(step_of[taken][step_of[taken] >= 0], minlength=int(step.max()) + 1)[step[used]]
    batches = float(per_step.mean()) if per_step.any() else 1.0
    return size * batches / (mean_ms / 1e3)


def _pace_ms(steps: Steps, used: NDArray[np.int64]) -> float:
    """Mean time from a step to the next one of its kind; pauses between runs, which many times a step's time tell, left out."""
    step, start = (steps.table[name].to_numpy()[used] for name in ("step", "start_ms"))
    mean_ms = float(steps.table["duration_ms"].to_numpy()[used].mean())
    if steps.table["flags"].iloc[used].str.contains("unmarked").all():
        return mean_ms  # it is that already
    period = np.diff(start)[np.diff(step) == 1]
    period = period[(period > 0) & (period < _PAUSE_MEDIANS * np.median(period))] if len(period) else period
    return max(mean_ms, float(period.mean())) if len(period) else mean_ms


def _most_frequent(values: NDArray[np.int64]) -> int:
    distinct, count = np.unique(values, return_counts=True)
    return int(distinct[np.argmax(count)])
