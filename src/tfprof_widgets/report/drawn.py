"""Which timeline a display has drawn, as the names of its tables tell.

A report's timeline changes while displays of it are on the page: `Report.add_track` adds tracks in its midst, and another `Report.max_mb`
merges other events into bars. All displays of a report tell Python through the same link, so that what each says of tracks and rows is
understood only with what *it* has drawn: how many of the user's tracks, and how many rows. Both are in the tables' names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"timeline_(\d+)(?:_own(\d+))?(_part(\d*))?_(?!part|own)([a-z_]+)")


@dataclass(frozen=True)
class Drawn:
    """A host's timeline in a display.

    Attributes
    ----------
    host : int
        Place of the host in the report.
    own : int
        How many of the user's own tracks it has: the first so many that were added.
    is_part : bool
        Whether the display has only a part of it.
    most : int or None
        Of a part: how many rows it might have; None if all events are there and only the bookkeeping isn't.
    """

    host: int
    own: int = 0
    is_part: bool = False
    most: int | None = None

    @property
    def prefix(self) -> str:
        """What the names of its tables begin with."""
        own = f"_own{self.own}" if self.own else ""
        return f"timeline_{self.host}{own}" + (f"_part{'' if self.most is None else self.most}" if self.is_part else "")

    @property
    def events(self) -> str:
        """The name of its table of events, by which a display names the timeline."""
        return f"{self.prefix}_events"


def parse(table: object) -> tuple[Drawn, str] | None:
    """Return the timeline that a table belongs to, and what of it the table has (``events``); None if it is no timeline's."""
    found = _NAME.fullmatch(table) if isinstance(table, str) else None
    if found is None:
        return None
    host, own, part, most, kind = found.groups()
    return Drawn(int(host), int(own or 0), part is not None, int(most) if most else None), kind
