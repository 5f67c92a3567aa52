"""What a summary is made of: facts, small tables and sentences, to be read as they are (`display.static_summary`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | float | int | bool | None


@dataclass(frozen=True)
class Facts:
    """Labels and their values, on one line if they are few."""

    rows: Sequence[tuple[str, Value]]
    title: str = ""


@dataclass(frozen=True)
class SmallTable:
    """A table short enough to be read whole.

    Parameters
    ----------
    columns : sequence of str
        The headers, units included.
    rows : sequence of sequence
        One value a column; floats are shown with `digits` digits after the point.
    note : str
        Said below: what was left out, for example.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    title: str = ""
    note: str = ""
    digits: int = 2


@dataclass(frozen=True)
class Notes:
    """Sentences, each on its own."""

    texts: Sequence[str]
    title: str = ""


Block: TypeAlias = Facts | SmallTable | Notes
