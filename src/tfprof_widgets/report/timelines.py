"""What the trace viewer draws of each host: with the user's own tracks, whole, or what a page has of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..analysis.counters import counters, with_counters
from ..analysis.own_tracks import with_own_tracks
from ..analysis.timeline import Timeline, timeline
from .drawn import Drawn, parse

if TYPE_CHECKING:
    from ..analysis.thinning import Thinned, Thinning
    from ..budget import Plan
    from .report import Report


def bare_timelines(report: Report) -> list[Timeline]:
    """The timelines without the user's own tracks."""
    return [with_counters(timeline(host.trace, host.steps), counters(host.trace, host.memory)) for host in report.hosts]


def drawn_now(report: Report, plan: Plan | None = None) -> list[Drawn]:
    """Return what a display made now draws of each host's timeline: all of it, or what a plan leaves of it."""
    drawn = [Drawn(index, _own_count(report, index)) for index in range(len(report.hosts))]
    if plan is None:
        return drawn
    total = max(1, sum(len(data.events) for data in report.timelines))
    return [
        replace(each, is_part=True, most=None if plan.events is None else plan.events * len(data.events) // total)
        for each, data in zip(drawn, report.timelines, strict=True)
    ]


def drawn_as(report: Report, table: Any) -> Drawn | None:
    """Return which timeline of this report a display means by its table of events; None for none."""
    parsed = parse(table)
    if parsed is None or parsed[1] != "events":
        return None
    drawn = parsed[0]
    known = drawn.host < len(report.hosts) and drawn.own <= _own_count(report, drawn.host)
    return drawn if known else None


def timeline_with(report: Report, drawn: Drawn) -> Timeline:
    """Return the whole timeline of a host, with as many of the user's tracks as a display of it had."""
    if drawn.own == _own_count(report, drawn.host):
        return report.timelines[drawn.host]
    filled = [(name, frame) for name, frame in report._own_tracks[drawn.host].items() if not frame.empty]
    return with_own_tracks(report._bare_timelines[drawn.host], dict(filled[: drawn.own]))


def _own_count(report: Report, host: int) -> int:
    """Return how many of the user's tracks a host's timeline has: those without events are no tracks."""
    return sum(not frame.empty for frame in report._own_tracks[host].values())


def thinned_as(thinning: Thinning, drawn: Drawn) -> Thinned:
    """Return what a page has of a timeline of which it has a part."""
    return thinning.bare if drawn.most is None else thinning.to(drawn.most)
