"""One colour for each step category and each op type, the same in every view.

The colours can be told apart with the common kinds of colour blindness, and stand out from a
light and from a dark page (``tests/unit/test_views_colors.py`` measures both).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

#: Fill of each category of a step's time. Red is waiting for input, green the device at work.
CATEGORY_COLORS = {
    "compilation": "#76319d",
    "input": "#c8202b",
    "output": "#d88112",
    "kernel_launch": "#dbcd2b",
    "host_compute": "#2083d1",
    "device_to_device": "#52c4f9",
    "device_collective": "#306e6b",
    "device_compute": "#68c788",
    "other": "#8b9095",
}

#: Categories that carry a pattern as well, for those who can't tell red from green.
HATCHED_CATEGORIES = frozenset({"input"})

#: What belongs to no op type: idle time, and what a chart folds together.
NEUTRAL_COLOR = "#8b9095"

#: Fills of op types. Each next one is as far as can be from those before it, for every kind of sight.
OP_PALETTE = (
    "#4477aa", "#b0cd39", "#bf4306", "#78c7fd", "#71ae8d", "#6885f6", "#aa295f", "#de6907",
    "#5ed99e", "#753a8d", "#4057c2", "#ab6d6c", "#58a7dc", "#a5b866", "#066357", "#b4845c",
)  # fmt: skip

#: Colours of the commonest op types, so that they stay the same from one profile to the next.
_USUAL = (
    "MatMul", "Dataset", "Conv2D", "FusedMatMul", "Relu", "BiasAdd", "Conv2DBackpropFilter", "IteratorGetNext",
    "Conv2DBackpropInput", "BatchMatMulV2", "Mul", "AddV2", "Softmax", "Sum", "ResourceApplyAdam", "Cast",
)  # fmt: skip

_NEUTRAL_TYPES = frozenset({"", "IDLE", "Unknown"})


class OpColors:
    """Colours of op types: ``OpColors(types)(type)`` is a hex colour.

    The colour of a type depends on its name alone, except that types which would share a colour
    are kept apart as far as the palette goes, those named first before the others. Make one
    for a report (see `of`), and give it to all of its views.

    Parameters
    ----------
    types : iterable of str
        Op types, the most important (most self time) first.
    """

    def __init__(self, types: Iterable[str] = ()) -> None:
        self._color: dict[str, str] = {}
        taken: set[int] = set()
        for op_type in dict.fromkeys(types):
            if op_type in _NEUTRAL_TYPES:
                continue
            if len(taken) == len(OP_PALETTE):
                break
            slot = _slot(op_type)
            while slot in taken:
                slot = (slot + 1) % len(OP_PALETTE)
            taken.add(slot)
            self._color[op_type] = OP_PALETTE[slot]

    @classmethod
    def of(cls, ops: pd.DataFrame) -> OpColors:
        """Return the colours for ``report.ops``: the types with the largest share of their side's self time are told apart first."""
        busy = ops[~ops["type"].isin(_NEUTRAL_TYPES)]
        times = busy.groupby(["host_or_device", "type"], sort=False, observed=True)["self_time_us"].sum()
        shares = times / times.groupby(level="host_or_device", observed=True).transform("sum")
        by_type = shares.groupby(level="type", sort=False, observed=True).max()
        return cls(str(t) for t in by_type.sort_values(ascending=False, kind="stable").index)

    def __call__(self, op_type: str) -> str:
        """Return the fill colour of an op type."""
        if op_type in _NEUTRAL_TYPES:
            return NEUTRAL_COLOR
        return self._color.get(op_type) or OP_PALETTE[_slot(op_type)]


def _slot(op_type: str) -> int:
    """Place of a type in the palette by its name alone."""
    if op_type in _USUAL:
        return _USUAL.index(op_type)
    return crc32(op_type.encode("utf-8", "surrogatepass")) % len(OP_PALETTE)


def text_color_on(fill: str) -> str:
    """Return black or white, whichever reads better on a fill colour ``#rrggbb``."""
    return "#000000" if luminance(fill) > 0.179 else "#ffffff"


def luminance(color: str) -> float:
    """Relative luminance (0 to 1) of ``#rrggbb``, as WCAG defines it."""
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
