"""Marks for the steps of the user's own loops, and the counting of steps while a capture wants to know them.

A mark is what XProf takes for a step too: ``tf.profiler.experimental.Trace(kind, step_num=i, _r=1)``. It costs about a
microsecond while nothing is recorded, and needs no TensorFlow.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, SupportsIndex, TypeVar, overload

T = TypeVar("T")

# Who counts the steps now; None most of the time.
_counter: StepCounter | None = None

# Numbers for marks that were given none, by kind.
_numbers: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)

# TensorFlow's Trace, once TensorFlow has been imported by somebody.
_trace_class: Any = None


class StepCounter:
    """Tells a capture when steps begin and end: marks, and Keras' batches outside of marks.

    Of marks inside marks the inner ones are counted: the outer one is an epoch then.

    Parameters
    ----------
    begins, ended
        Called in the thread that runs the step.
    """

    def __init__(self, begins: Callable[[], None], ended: Callable[[], None]) -> None:
        self._begins = begins
        self._ended = ended
        self._thread = threading.local()

    def mark_begins(self) -> None:
        """Note that a mark is being entered."""
        # For each open mark of this thread, whether there was a mark inside it.
        stack = self._thread.__dict__.setdefault("stack", [])
        if stack:
            stack[-1] = True
        stack.append(False)
        self._begins()

    def mark_ended(self, *, counts: bool = True) -> None:
        """Note that a mark has been left."""
        stack = self._thread.__dict__.setdefault("stack", [])
        # Nothing is open if the mark was entered before the counting began.
        if stack and not stack.pop() and counts:
            self._ended()

    def batch_begins(self) -> None:
        """Note that Keras is about to run a batch."""
        if not self._thread.__dict__.get("stack"):
            self._begins()

    def batch_ended(self) -> None:
        """Note that Keras has run a batch."""
        if not self._thread.__dict__.get("stack"):
            self._ended()


def count_with(counter: StepCounter | None) -> None:
    """Let a counter, or none any more, hear of the marks."""
    global _counter
    _counter = counter


class Step:
    """One step of a loop, as a context manager; made by `step`."""

    __slots__ = ("_ends_data", "_kind", "_number", "_trace")

    def __init__(self, number: SupportsIndex | None, kind: str) -> None:
        self._number = number
        self._kind = kind
        self._trace: Any = None
        self._ends_data = False

    def __enter__(self) -> Step:
        if _counter is not None:
            _counter.mark_begins()
        trace = _trace_class or _find_trace_class()
        if trace is not None:
            number = next(_numbers[self._kind]) if self._number is None else self._number.__index__()
            self._trace = trace(self._kind, step_num=number, _r=1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._trace is not None:
            self._trace.__exit__(kind, error, traceback)
        if _counter is not None:
            _counter.mark_ended(counts=not self._ends_data)

    def had_no_data(self) -> None:
        """Say that this was no step after all: the data had come to its end."""
        self._ends_data = True
        if self._trace is not None:
            self._trace.set_metadata(end_of_data=1)


@overload
def step(i: SupportsIndex | None = None, kind: str = "train") -> Step: ...


@overload
def step(i: Iterable[T], kind: str = "train") -> Iterator[T]: ...


def step(i: Any = None, kind: str = "train") -> Any:
    """Mark a step of your own training loop, so that reports and XProf know where it begins and ends.

    Keras' ``fit``, ``evaluate``, ``predict`` and ``train_on_batch`` need no marks.

    Parameters
    ----------
    i
        The step's number; by default those of a kind are numbered from 0 on, for as long as Python runs. Or what the loop
        runs over: each round is then a step, the fetching of its data included.
    kind
        What the step does: ``train``, ``test``, ``predict`` or a word of your own. Averages are made for each kind apart.

    Returns
    -------
    Step or iterator
        A context manager; an iterator over the same things if `i` is an iterable.

    Examples
    --------
    >>> for i, batch in enumerate(dataset):
    ...     with tfprof.step(i):
    ...         train(batch)

    >>> for batch in tfprof.step(dataset):
    ...     train(batch)
    """
    if i is None or hasattr(i, "__index__"):
        return Step(i, kind)
    return _rounds(i, kind)


def _rounds(iterable: Iterable[T], kind: str) -> Iterator[T]:
    try:
        count = len(iterable)  # type: ignore[arg-type]
    except TypeError:  # also tf.data's, if it doesn't know
        count = -1
    items = iter(iterable)
    for number in itertools.count():
        if number == count:
            return
        with Step(number, kind) as mark:
            try:
                item = next(items)
            except StopIteration:
                mark.had_no_data()
                return
            yield item


def _find_trace_class() -> Any:
    global _trace_class
    try:
        _trace_class = sys.modules["tensorflow"].profiler.experimental.Trace
    except (KeyError, AttributeError):  # not imported, or not to its end
        return None
    return _trace_class
