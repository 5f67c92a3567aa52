"""A thread that keeps its own time: events are written in the order in which they happen."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from .builder import Event, Line

# Closing an event takes time too, so no two events end together.
CLOSING_NS = 50


class Thread:
    """A line with a clock and a source of reproducible variation.

    Parameters
    ----------
    line : Line
        Where events go.
    random : numpy.random.Generator
        Varies durations.
    now_ns : int
        The clock's start.
    """

    def __init__(self, line: Line, random: np.random.Generator, now_ns: int = 0) -> None:
        self.line = line
        self.random = random
        self.now_ns = now_ns

    def vary(self, typical_ns: float) -> int:
        """Return a duration about the typical one: log-normal, one in fifty up to four times as long."""
        factor = float(self.random.lognormal(0, 0.15))
        if self.random.random() < 0.02:
            factor *= 1 + 3 * float(self.random.random())
        return max(1, round(typical_ns * factor))

    def wait(self, ns: float) -> Thread:
        """Let some time pass."""
        self.now_ns += self.vary(ns)
        return self

    def wait_until(self, now_ns: int) -> Thread:
        """Let time pass until then, if it is not past already."""
        self.now_ns = max(self.now_ns, now_ns)
        return self

    def instant(self, name: str, /, stats: dict[str, Any] | None = None, **more: Any) -> Event:
        """Write an event without duration."""
        return self.line.event(name, self.now_ns / 1000, 0, stats, **more)

    def leaf(self, name: str, ns: float, /, stats: dict[str, Any] | None = None, **more: Any) -> Event:
        """Write an event of about this duration, and go to its end."""
        duration_ns = self.vary(ns)
        event = self.line.event(name, self.now_ns / 1000, duration_ns / 1000, stats, **more)
        self.now_ns += duration_ns + CLOSING_NS
        return event

    @contextmanager
    def span(self, name: str, /, stats: dict[str, Any] | None = None, **more: Any) -> Iterator[Event]:
        """Write an event that lasts as long as what happens inside it."""
        start_ns = self.now_ns
        event = self.line.event(name, start_ns / 1000, 0, stats, **more)
        yield event
        event.message.duration_ps = (self.now_ns - start_ns) * 1000
        self.now_ns += CLOSING_NS
