"""What a linked page asks of Python: the events that it was too small for, their details, and how many a search finds.

The page asks with a message, ``{"kind", "timeline", "rows", …}``, and gets one: JSON, and packed tables by name. An answer holds all
that it needs: nothing is remembered here of what a page has.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analysis.details import first_row, stat_columns
from ..analysis.flows import flows
from ..analysis.unmerging import Unmerger
from ..display.payload import Payload
from ..views.stat_words import words_of
from ..views.timeline import add_unmerged
from ..views.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from ..analysis.details import StatColumn
    from ..analysis.events import Trace
    from ..analysis.flows import Flow
    from ..analysis.thinning import Thinned
    from ..analysis.timeline import Timeline
    from ..views.colors import OpColors

Answer = tuple[dict[str, Any], dict[str, bytes]]

#: Events that are sent at once; a browser takes a moment for them.
MOST_EVENTS = 200_000

_PS_PER_MS = 1e9


class OnDemand:
    """Answers what the trace viewer of one host asks.

    Parameters
    ----------
    trace : Trace
        The host's events.
    whole : Timeline
        All of its timeline.
    thin : Thinned
        What the page has of it.
    colors : OpColors
        Colours of op types, as on the page.
    """

    def __init__(self, trace: Trace, whole: Timeline, thin: Thinned, colors: OpColors) -> None:
        self.whole = whole
        self.thin = thin
        self._trace = trace
        self._colors = colors

    def answer(self, question: Mapping[str, Any], most: int | None = None) -> Answer:
        """Return what a question asks for: a message, and tables.

        Parameters
        ----------
        question : mapping
            ``kind`` and what it needs: ``window`` (``range_ms`` of the window, ``keep``: rows that are wanted too),
            ``details`` (``row``), ``search`` (``text``, ``match``). ``rows`` is how many the page's timeline has; rows beyond are those
            of the whole, in their order.
        most : int, optional
            Events that may be sent at once; `MOST_EVENTS` by default.

        Raises
        ------
        ValueError
            If it is no such question, or one about another timeline; the message says what is wrong.
        """
        kinds: dict[str, Callable[[Mapping[str, Any], int], Answer]] = {
            "window": self._window,
            "details": self._details,
            "search": self._search,
        }
        kind = question.get("kind")
        if kind not in kinds:
            msg = f"A page may ask for {', '.join(kinds)}, not for {kind!r}."
            raise ValueError(msg)
        if question.get("rows") != len(self.thin.data.events):
            msg = "The report in Python has changed since the page was made."
            raise ValueError(msg)
        return kinds[str(kind)](question, MOST_EVENTS if most is None else most)

    # ---- events of a window -----------------------------------------------------------------------------------------

    @cached_property
    def _unmerger(self) -> Unmerger:
        return Unmerger(self.thin, self.whole)

    def _window(self, question: Mapping[str, Any], most: int) -> Answer:
        start, end = (float(ms) * _PS_PER_MS for ms in question["range_ms"])
        if not start < end:
            msg = f"A window ends after it begins, not {question['range_ms']!r}."
            raise ValueError(msg)
        # The wider, the less often the page has to ask.
        length = end - start
        whole = (0.0, float(max(self.whole.span_ps, 1)))
        for window in (whole, (start - length, end + length), (start, end)):
            if self._unmerger.count(*window) <= most:
                break
        else:
            return {"too_many": self._unmerger.count(start, end), "most": most}, {}
        n = len(self.thin.count)
        keep = [int(row) - n for row in question.get("keep", ()) if int(row) >= n]
        found = self._unmerger.within(*window, keep)
        payload = Payload(id="answer")
        told = add_unmerged(payload, found, self.whole, self.thin.data, self._colors)
        own = self.thin.data.tracks["kind"].isin(["host", "device"]).to_numpy()
        return {
            **told,
            "window_ps": [min(window[0], start), max(window[1], end)],
            "all": len(found.bars) == int((self.thin.count > 1).sum()),
            "events": int(found.tracks[own, 1].sum()),
        }, payload.tables

    # ---- details of an event ----------------------------------------------------------------------------------------

    @cached_property
    def _stats(self) -> list[StatColumn]:
        return stat_columns(self._trace)[0]

    def _details(self, question: Mapping[str, Any], _: int) -> Answer:
        n = len(self.thin.count)
        row = int(question["row"])
        event = (row - n if row >= n else int(self.thin.first[row])) - first_row(self.whole)
        stats = []
        for column in self._stats:
            at = np.searchsorted(column.event, event)
            if at < len(column.event) and column.event[at] == event:
                text = visible(column.texts[int(column.code[at])])
                stats.append({"name": column.name, **words_of(column.name)._asdict(), "value": text})
        led_to, caused_by = [], []
        for flow in self._flows:
            led_to.append(_others(event, flow.source, flow.source_group, flow.target, flow.target_group))
            caused_by.append(_others(event, flow.target, flow.target_group, flow.source, flow.source_group))
        ways = [self._way("Led to", event, led_to, 1), self._way("Caused by", event, caused_by, -1)]
        return {"stats": stats, "ways": [way for way in ways if way is not None]}, {}

    @cached_property
    def _flows(self) -> list[Flow]:
        return flows(self._trace)

    def _way(self, label: str, event: int, others: list[NDArray[np.int64]], direction: int) -> dict[str, Any] | None:
        """Where arrows of an event lead: how many there are, and the first one's other end."""
        first = first_row(self.whole)
        start = self.whole.events["start_ps"].to_numpy()
        rows = first + np.concatenate([*others, np.empty(0, np.int64)])
        # Ids are used again: what began earlier is not led to.
        rows = rows[direction * (start[rows] - start[first + event]) >= 0]
        if not len(rows):
            return None
        row = int(rows[0])
        of_page = np.flatnonzero((self.thin.first == row) & (self.thin.count == 1))
        return {
            "label": label,
            "count": len(rows),
            "row": int(of_page[0]) if len(of_page) else row + len(self.thin.count),
            "name": self._names[int(self.whole.events["name"].iloc[row])],
            "start_ps": int(start[row]),
            "end_ps": int(start[row] + self.whole.events["duration_ps"].iloc[row]),
        }

    # ---- search -----------------------------------------------------------------------------------------------------

    @cached_property
    def _names(self) -> list[str]:
        return [visible(name) for name in self.whole.names["name"]]

    @cached_property
    def _by_name(self) -> tuple[Any, Any]:
        """Number of events, and their time, by name: on the tracks of the file's own events, the folded ones too."""
        tracks = self.whole.tracks[~self.whole.tracks["kind"].isin(["steps", "derived", "counter"])]
        count = np.zeros(len(self.whole.names), np.int64)
        total_ps = np.zeros(len(self.whole.names))
        for hidden, events in ((False, self.whole.events), (True, self.whole.hidden)):
            own = np.zeros(len(events), np.bool_)
            mine = tracks[tracks["hidden"] == hidden]
            for first, n in zip(mine["first"], mine["count"], strict=True):
                own[first : first + n] = True
            name = events["name"].to_numpy()[own]
            count += np.bincount(name, minlength=len(count))
            total_ps += np.bincount(name, events["duration_ps"].to_numpy()[own], minlength=len(count))
        return count, total_ps

    def _search(self, question: Mapping[str, Any], _: int) -> Answer:
        text, match = str(question["text"]), question["match"]
        if match == "text":
            wanted = text.lower()
            found = [wanted in name.lower() for name in self._names]
        elif match == "exact":
            found = [text == name for name in self._names]
        elif match == "op":
            found = [text == visible(op) for op in self.whole.names["op"]]
        elif match == "regex":
            try:
                pattern = re.compile(text, re.IGNORECASE)
            except re.error as error:
                msg = f"Python reads this pattern differently: {error}"
                raise ValueError(msg) from error
            found = [pattern.search(name) is not None for name in self._names]
        else:
            msg = f"A search is for text, regex, exact or op, not {match!r}."
            raise ValueError(msg)
        count, total_ps = self._by_name
        which = np.array(found, np.bool_)
        return {"count": int(count[which].sum()), "total_ps": float(total_ps[which].sum())}, {}


def _others(
    event: int,
    here: NDArray[np.int64],
    here_group: NDArray[np.int64],
    there: NDArray[np.int64],
    there_group: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Events at the other ends of an event's arrows."""
    at = np.searchsorted(here, event)
    if at == len(here) or here[at] != event:
        return np.empty(0, np.int64)
    return there[there_group == here_group[at]]
