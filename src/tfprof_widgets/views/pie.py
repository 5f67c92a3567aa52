"""Pies: what takes most of a time, as a ring beside its legend."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from bokeh.models import AnnularWedge, ColumnDataSource, Text

from . import spec
from .colors import NEUTRAL_COLOR
from .spec import count, fact, ms, percent
from .template import Template

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from .template import Column

#: Parts that are shown; of more, these and the rest together.
SLICES = 10
_OUTER_PX, _INNER_PX = 92, 52


def pie(
    title: str,
    names: Sequence[str],
    times_ms: NDArray[np.float64],
    fills: Sequence[str],
    noun: str,
    measure: str,
    *,
    shorter: Callable[[str], str] = str,
    note: str = "",
) -> spec.Item:
    """Return a ring of times beside its legend; small parts are folded into one, and counted.

    Parameters
    ----------
    names, times_ms, fills : sequences (N)
        The parts, the largest first, and their colours.
    noun : str
        What a part is, for counting those folded: ``operation``.
    measure : str
        What the times are, for hovering: ``Self time``.
    shorter : callable
        Makes a name short enough for the legend, which tells it in full on hovering.
    note : str
        What is said below the ring.
    """
    names = [name or "(no name)" for name in names]
    total_ms = float(times_ms.sum())
    if len(names) > SLICES + 1:
        folded = len(names) - SLICES
        names = [*names[:SLICES], f"Other ({count(folded, noun)})"]
        times_ms = np.append(times_ms[:SLICES], times_ms[SLICES:].sum())
        fills = [*fills[:SLICES], NEUTRAL_COLOR]
    shares = 100 * times_ms / (total_ms or 1.0)
    times, parts = [ms(t) for t in times_ms], [percent(s) for s in shares]
    # Clockwise from the top, as one reads a clock.
    angles = np.pi / 2 - 2 * np.pi * np.concatenate([[0.0], np.cumsum(shares) / 100])
    wedges: dict[str, Column] = {
        "from": angles[:-1],
        "to": angles[1:],
        "name": names,
        "time": times,
        "share": parts,
        "color": list(fills),
    }
    gap = {"type": "value", "value": int(len(names) > 1)}
    figure = _ring(measure).fill({"wedges": wedges, "total": {"words": [ms(total_ms)]}}, {"wedge": {"line_width": gap}})
    spoken = ", ".join(f"{name} {part}" for name, part in list(zip(names, parts, strict=True))[:5])
    alt = f"{title}, {ms(total_ms)} in all: {spoken}{' and others' if len(names) > 5 else ''}."
    legend = [
        fact(short := shorter(name), f"{part} · {time}", color=fill, hint="" if short == name else name)
        for name, part, time, fill in zip(names, parts, times, fills, strict=True)
    ]
    chart = {"kind": "figure", "title": title, "figure": figure, "alt": alt, "note": note}
    return spec.row([chart, spec.facts("", legend)], weights=[0.7, 1])


@cache
def _ring(measure: str) -> Template:
    p = spec.plot(2 * _OUTER_PX + 16, (-1, 1), (-1, 1), axes=False)
    columns = ("from", "to", "name", "time", "share", "color")
    wedge = AnnularWedge(
        x=0, y=0, start_angle="from", end_angle="to", direction="clock",
        inner_radius=_INNER_PX, inner_radius_units="screen", outer_radius=_OUTER_PX, outer_radius_units="screen",
        fill_color="color", line_color="white", name="wedge",
    )  # fmt: skip
    ring = spec.draw(p, ColumnDataSource({name: [] for name in columns}, name="wedges"), wedge)
    total = Text(x=0, y=0, text="words", text_align="center", text_baseline="middle", text_font_size="14px")
    spec.draw(p, ColumnDataSource({"words": []}, name="total"), total)
    spec.hover(p, [ring], [("Name", "@name"), (measure, "@time"), ("Share", "@share")], point_policy="follow_mouse")
    return Template(p)
