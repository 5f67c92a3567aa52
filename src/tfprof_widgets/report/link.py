"""What a report's displays tell Python: what is selected in them, and what they ask for that they lack."""

from __future__ import annotations

import logging
import sys
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from ..analysis.selection import selected_own, selected_rows
from ..analysis.thinning import Thinning
from .timelines import drawn_as, thinned_as, timeline_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.thinning import Thinned
    from ..display.widget import LinkWidget, ReportWidget
    from .drawn import Drawn
    from .on_demand import Answer
    from .report import Report

W = TypeVar("W", bound="LinkWidget | ReportWidget")

_log = logging.getLogger(__name__)


def linked(report: Report) -> LinkWidget | None:
    """Return what links the pages of a report to this kernel; None if this Python is no kernel."""
    if not _in_kernel():
        return None
    from ..display.widget import LinkWidget

    link = follow(report, LinkWidget(report.id))
    link.on_msg(answering(weakref.ref(report)))
    weakref.finalize(report, link.close).atexit = False
    return link


def follow(report: Report, widget: W) -> W:
    """Remember what is selected in a widget."""
    # ipywidgets keeps every widget until the kernel ends: it must not keep the report with it.
    kept = weakref.ref(report)

    def remember(change: dict[str, Any]) -> None:
        if (alive := kept()) is not None:
            alive._selected = change["new"]

    widget.observe(remember, names="selection")
    return widget


def selection(report: Report) -> pd.DataFrame:
    """Return the rows of the report's events that are selected in a linked display, and of the user's own tracks below."""
    selected = report._selected
    rows = np.empty(0, np.int64)
    own = None
    drawn = drawn_as(report, selected.get("timeline")) if isinstance(selected, dict) else None
    if drawn is not None:
        host, data = report.hosts[drawn.host], timeline_with(report, drawn)
        if drawn.is_part:
            selected = _part(report, drawn).in_whole(selected, data)
        before = sum(each.trace.space.n_events for each in report.hosts[: drawn.host])
        rows = before + selected_rows(selected, data, host.trace)
        own = selected_own(selected, data)
        own.index += len(report.events)
        if len(report.hosts) > 1:
            own.insert(0, "host", host.trace.host)
    found = report.events.iloc[rows]
    return found if own is None or own.empty else pd.concat([found, own])


def answer(report: Report, question: Any) -> Answer:
    """Return what a page asks for that has only a part of the trace; see `on_demand`.

    Raises
    ------
    ValueError
        If it can't be answered; the message says why.
    """
    from .on_demand import OnDemand

    asked = question.get("timeline") if isinstance(question, dict) else None
    drawn = drawn_as(report, asked)
    if drawn is None or not drawn.is_part:
        msg = f"The report in Python has no part of a trace that is called {asked!r}."
        raise ValueError(msg)
    ready = report._on_demand.get(drawn)
    if ready is None:
        whole = timeline_with(report, drawn)
        ready = OnDemand(report.hosts[drawn.host].trace, whole, _part(report, drawn), report._colors)
        # Of each host's pages the one that is being looked at.
        report._on_demand = {each: kept for each, kept in report._on_demand.items() if each.host != drawn.host}
        report._on_demand[drawn] = ready
    return ready.answer(question)


def _part(report: Report, drawn: Drawn) -> Thinned:
    """Return what of a timeline a page has."""
    if drawn in report._on_demand:
        return report._on_demand[drawn].thin
    trimmed = report.__dict__.get("_trimmed")
    if trimmed is not None and trimmed.drawn[drawn.host] == drawn:
        found: Thinned = trimmed.timelines[drawn.host]
        return found
    return thinned_as(Thinning(timeline_with(report, drawn)), drawn)


def answering(report: weakref.ref[Report]) -> Callable[[LinkWidget, Any, Any], None]:
    """Return what hears the questions of a linked page. It must not keep the report."""

    def hear(link: LinkWidget, question: Any, _: Any) -> None:
        number = question.get("question") if isinstance(question, dict) else None
        alive = report()
        try:
            if alive is None:
                msg = "The report is not in Python any more."
                raise ValueError(msg)  # told like all else that can't be answered
            told, tables = answer(alive, question)
        except Exception as error:  # noqa: BLE001  # whatever it is, the page must hear of it and go on with what it has
            if not isinstance(error, ValueError):
                _log.exception("A page's question failed.")
            told, tables = {"error": str(error)}, {}
        link.send({**told, "question": number, "tables": list(tables)}, buffers=list(tables.values()))

    return hear


def _in_kernel() -> bool:
    """Whether this Python is a notebook's kernel, so that a page can be linked to it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
