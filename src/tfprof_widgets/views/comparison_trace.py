"""A comparison's Trace tab: the timelines of both runs, one above the other, aligned at a step of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import spec
from .comparison import AFTER_COLOR, BEFORE_COLOR
from .timeline import timeline_tab

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.timeline import Timeline
    from .colors import OpColors

#: A step of both runs: its label, when it began in each and how long it took there, in ms.
Place = tuple[str, tuple[float, float], tuple[float, float]]

_PS_PER_MS = 1e9
# A list of more steps is no help in choosing one.
_MOST_PLACES = 200


def trace_tab(
    payload: spec.Tables,
    timelines: tuple[Timeline, Timeline],
    names: tuple[str, str],
    places: Sequence[Place],
    colors: OpColors,
    begin: int = 0,
    remarks: Sequence[str] = (),
) -> spec.Tab:
    """Return the Trace tab.

    Parameters
    ----------
    payload : Payload
        Gets the tables of both timelines, ``before_events`` … ``after_names``.
    timelines : (Timeline, Timeline)
        What to draw.
    names : (str, str)
        What the runs are called.
    places : sequence of Place
        Steps of both runs at which the timelines can be aligned.
    colors : OpColors
        The same for both.
    begin : int
        The place to begin with.
    remarks : sequence of str
        What is not drawn.
    """
    traces = [
        {
            "label": label if name.lower() == label.lower() else f"{label}: {name}",
            "color": color,
            "timeline": timeline_tab(payload, data, colors, prefix)["items"][0],
        }
        for label, name, color, data, prefix in zip(
            ("Before", "After"), names, (BEFORE_COLOR, AFTER_COLOR), timelines, ("before", "after"), strict=True
        )
    ]
    shown = places[:_MOST_PLACES]
    offered: list[dict[str, Any]] = [
        {
            "label": label,
            "at_ps": [round(at * _PS_PER_MS) for at in at_ms],
            "durations_ps": [round(time * _PS_PER_MS) for time in lasts_ms],
        }
        for label, at_ms, lasts_ms in shown
    ]
    offered.append({"label": "the start of both traces", "at_ps": [0, 0], "durations_ps": None})
    left = len(places) - len(shown)
    notes = [*remarks, *([f"The first {len(shown)} of {len(places):,} steady steps are listed."] if left else [])]
    item: spec.Item = {
        "kind": "timelines",
        "traces": traces,
        "places": offered,
        "value": begin if begin < len(shown) else 0,
    }
    said = [spec.text(" ".join(notes))] if notes else []
    return spec.tab("trace", "Trace", [item, *said])
