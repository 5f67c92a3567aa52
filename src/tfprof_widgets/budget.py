"""What a report of limited size leaves out: details of the trace first, then its least important events one by one.

All tables stay, and the whole of the trace stays in view: what is left out of it is merged into bars of the same busy time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analysis.thinning import Thinned
    from .analysis.timeline import Timeline
    from .display.payload import Payload
    from .report.drawn import Drawn

#: Size in MB that a page may have unless another is asked for.
DEFAULT_MAX_MB = 4.0
BYTES_PER_MB = 1_000_000

# Below this a trace shows nothing.
_FEWEST_EVENTS = 200
_TRIES = 8
# What is said of it, in the head line, the notes, the summary and the tab.
_WORDS_BYTES = 4000


@dataclass(frozen=True)
class Plan:
    """What of the trace is in a page.

    Attributes
    ----------
    arrows, details : bool
        Whether its arrows are there, and what the profiler noted with the events.
    events : int or None
        How many rows all its hosts may have together; None for all but the thread pools' bookkeeping.
    """

    arrows: bool = True
    details: bool = True
    events: int | None = None


@dataclass(frozen=True)
class Trimmed:
    """A page within its budget: how it was made, and the timeline of each host."""

    payload: Payload
    plan: Plan
    drawn: list[Drawn]
    timelines: list[Thinned]
    max_mb: float
    fits: bool


def parse_max_mb(text: str) -> float | None:
    """Return a size in MB; None for ``none``.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if text.strip().lower() == "none":
        return None
    try:
        size = float(text)
    except ValueError:
        size = 0.0
    if not size > 0:
        msg = f"a size is a number of megabytes above 0, or none for no limit, not {text!r}"
        raise ValueError(msg)
    return size


def trimmed(
    max_mb: float,
    size_of: Callable[[Payload], int],
    make: Callable[[Plan], tuple[Payload, list[Drawn], list[Thinned]]],
    n_events: int,
    events_bytes: int,
    *,
    is_certain: bool,
) -> Trimmed:
    """Find what fits into a page.

    Parameters
    ----------
    max_mb : float
        The page's size.
    size_of : function
        Size of the page of a payload, in bytes.
    make : function
        Makes the payload of a plan.
    n_events, events_bytes : int
        Events that the trace draws, and about how many bytes of a page they take.
    is_certain : bool
        Whether it is certain that they don't fit, so that they needn't be tried.
    """
    room = max_mb * BYTES_PER_MB - _WORDS_BYTES
    size = 0
    bare = Plan(arrows=False, details=False)
    for plan in () if is_certain else (Plan(), Plan(arrows=False), bare):
        payload, drawn, timelines = make(plan)
        size = size_of(payload)
        if size <= room:
            return Trimmed(payload, plan, drawn, timelines, max_mb, fits=True)
    # What events take is nearly in proportion to their number; what else there is, is seen from a trace of few.
    least = replace(bare, events=_FEWEST_EVENTS)
    payload, drawn, timelines = make(least)
    fixed = size_of(payload)
    best = Trimmed(payload, least, drawn, timelines, max_mb, fits=fixed <= room)
    if not best.fits:
        return best
    an_event = (events_bytes if is_certain else size - fixed) / max(n_events, 1)
    wanted = int(min((room - fixed) / an_event, 0.98 * n_events)) if an_event > 0 else n_events
    for _ in range(_TRIES):
        if wanted <= _FEWEST_EVENTS:
            break
        plan = replace(bare, events=wanted)
        payload, drawn, timelines = make(plan)
        size = size_of(payload)
        if size <= room:
            return Trimmed(payload, plan, drawn, timelines, max_mb, fits=True)
        wanted = int(wanted * min(0.95, 0.97 * (room - fixed) / (size - fixed)))
    return best


def statement(trimmed: Trimmed, whole: Sequence[Timeline]) -> str:
    """Say what a page leaves out."""
    timelines = trimmed.timelines
    hidden = sum(len(data.hidden) for data in whole)
    drawn = sum(int(own["count"].sum()) for own in (d.tracks[d.tracks["kind"].isin(["host", "device"])] for d in whole))
    alone = sum(each.n_alone for each in timelines)
    without = [
        *([f"{hidden:,} events of the thread pools' bookkeeping"] if hidden else []),
        *([] if trimmed.plan.details else ["the events' details"]),
        *([] if trimmed.plan.arrows else ["arrows"]),
    ]
    merged = (
        f"; the other {drawn - alone:,} are merged into bars that are as long as their times together"
        if alone < drawn
        else ""
    )
    changes, kept = (
        sum(len(c.time_ps) for data in each for c in data.counters) for each in (whole, [t.data for t in timelines])
    )
    if kept < changes:
        without.append(f"{changes - kept:,} of the counters' {changes:,} changes, none of them a peak")
    listed = ", ".join(without[:-1]) + (" and " if len(without) > 1 else "") + without[-1] if without else ""
    left_out = f" Left out: {listed}." if without else ""
    size = (
        f"To keep this report within {trimmed.max_mb:g} MB"
        if trimmed.fits
        else (f"This report takes more than the {trimmed.max_mb:g} MB asked for, with its tables alone;")
    )
    return f"{size}, its page has {alone:,} of {drawn:,} events one by one{merged}.{left_out}".replace(";,", ";")


def in_short(trimmed: Trimmed, n_events: int) -> str:
    """Return how many events are shown one by one, of all in the file."""
    return f"{sum(each.n_alone for each in trimmed.timelines):,} of {n_events:,}"


HOW_TO_SEE_ALL = (
    'To have all of it: report.to_html("report.html", max_mb=None), %%tfprofile --max-mb none, or '
    "tfprof-widgets report LOGDIR --max-mb none; report.widget() shows all of it while Python runs, and the trace in a notebook gets "
    "the others from Python while the kernel that made it runs."
)
