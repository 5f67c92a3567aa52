"""All that is shown of a report in one page: its payload, within its size, and the summary for where no script runs."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..xspace.logdir import host_name
from .tabs import TRACE, tab_or_error, tools, trace_tab
from .timelines import drawn_now, thinned_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..analysis.thinning import Thinned
    from ..budget import Plan, Trimmed
    from ..display.payload import Payload
    from ..views.blocks import Block
    from ..views.spec import Item, Tab
    from .drawn import Drawn
    from .report import Report

_log = logging.getLogger(__name__)

# What events take is estimated: less than this share of the estimate they never take.
_CERTAIN = 0.7


def without_trace(report: Report) -> Payload:
    """All of the report's tabs and their data but the trace, which has an empty tab."""
    from .. import __version__
    from ..display.payload import Payload
    from ..views.advice import answer

    # A name of the capture, or of its run, is of all hosts.
    is_of_one = report.title == host_name(report.hosts[0].trace.space.name)
    others = len(report.hosts) - 1 if is_of_one and not (report.capture is not None and report.capture.name) else 0
    title = f"{report.title} and {others} other {'host' if others == 1 else 'hosts'}" if others else report.title
    head: dict[str, Any] = {"title": title, "facts": report._head_facts}
    try:
        head["answer"] = answer(report.advice, report.overview)
    except Exception:  # noqa: BLE001  # as for the tabs
        _log.exception("The advice failed on this profile.")
    payload = Payload(id=report.id, version=__version__, head=head, notes=report.notes)
    for tab_id, (title, make) in tools(report, payload).items():
        empty: Tab = {"id": tab_id, "title": title, "items": []}
        payload.tabs.append(empty if tab_id == TRACE else tab_or_error(tab_id, title, make))
    if report._compared is not None:
        payload.tabs.append(report._compared.tab)
        payload.tables |= report._compared.tables
        if "answer" in head:
            head["answer"]["links"] = [report._compared.link, *head["answer"]["links"]]
    return payload


def whole_payload(report: Report) -> Payload:
    """The report's tabs and their data, whatever their size."""
    return _with_trace(report, lambda payload: trace_tab(report, payload))


def _with_trace(report: Report, make: Callable[[Payload], Tab]) -> Payload:
    """Return the report's tabs with a tab of the trace; ``make`` leaves its tables in the payload."""
    other = report._without_trace
    payload = replace(other, tables=dict(other.tables), bundles=list(other.bundles))
    trace = tab_or_error(TRACE, "Trace", lambda: make(payload))
    payload.tabs = [trace if tab["id"] == TRACE else tab for tab in other.tabs]
    return payload


def trimmed_payload(report: Report) -> Trimmed | None:
    """What of the report fits into a page; None if all does."""
    from ..analysis.thinning import Thinning
    from ..budget import BYTES_PER_MB, HOW_TO_SEE_ALL, in_short, statement, trimmed
    from ..display.html import least_size, report_html
    from ..views.timeline import packed_bytes

    if report.max_mb is None:
        return None
    room = report.max_mb * BYTES_PER_MB

    def size_of(payload: Payload) -> int:
        return len(report_html(payload, static_html(report, payload)).encode())

    try:
        report.timelines  # noqa: B018
    except Exception:  # noqa: BLE001  # the tab of the trace says so, and the others are shown
        return None
    # Packing millions of events to find that they don't fit takes longer than all else.
    events_bytes = sum(packed_bytes(data.events) for data in report.timelines) * 4 // 3
    hidden_bytes = sum(packed_bytes(data.hidden) for data in report.timelines) * 4 // 3
    if least_size(report._without_trace) + _CERTAIN * (events_bytes + hidden_bytes) < room:
        whole = report._whole_payload
        if least_size(whole) < 0.8 * room or size_of(whole) <= room:
            return None

    thinnings = [Thinning(data) for data in report.timelines]

    def make(plan: Plan) -> tuple[Payload, list[Drawn], list[Thinned]]:
        drawn = drawn_now(report, plan)
        timelines = [thinned_as(thinning, each) for thinning, each in zip(thinnings, drawn, strict=True)]
        return (
            _with_trace(report, lambda payload: trace_tab(report, payload, drawn, plan, timelines)),
            drawn,
            timelines,
        )

    n_events = sum(host.trace.space.n_events for host in report.hosts)
    n_drawn = sum(len(data.events) for data in report.timelines)
    found = trimmed(report.max_mb, size_of, make, n_drawn, events_bytes, is_certain=_CERTAIN * events_bytes > room)
    said = statement(found, report.timelines)
    trace = next(tab for tab in found.payload.tabs if tab["id"] == TRACE)
    trace["items"].insert(0, {"kind": "text", "text": said, "level": "info"})
    whole = report._without_trace
    if whole.head is not None:
        fact = {
            "label": "One by one in the page",
            "value": in_short(found, n_events),
            "hint": f"{said} {HOW_TO_SEE_ALL}",
        }
        found.payload.head = {**whole.head, "facts": [*whole.head["facts"], fact]}
    found.payload.notes = [*whole.notes, f"{said} {HOW_TO_SEE_ALL}"]
    return found


def tool_alone(
    report: Report, tool: str, wanted: Callable[[Item], bool] | None = None, host: str | None = None
) -> Payload:
    """Return a tool without the report's head: all of it, or the items that are wanted."""
    from .. import __version__
    from ..display.payload import Payload
    from ..views.alone import is_text, only, tables_of

    shown = report if host is None else report.of_host(host)
    payload = Payload(id=report.id, version=__version__, head=None)
    tab = tab_or_error(tool, *tools(shown, payload)[tool])
    if wanted is not None:
        tab = {**tab, "items": only(tab["items"], wanted) or only(tab["items"], is_text)}
    needed = tables_of(tab, list(payload.tables))
    payload.tables = {name: table for name, table in payload.tables.items() if name in needed}
    payload.tabs.append(tab)
    return payload


def summary(report: Report) -> Sequence[Block]:
    """Return what the summary says, for where no script runs."""
    from ..views.summary import summary_blocks

    try:
        findings = report.advice
    except Exception:  # noqa: BLE001  # as for the tabs
        _log.exception("The advice failed on this profile.")
        findings = None
    return summary_blocks(report._head_facts, report.notes, report.overview, findings)


def static_html(report: Report, payload: Payload) -> str:
    """Return the summary in HTML, with the notes of a payload."""
    from ..display.static_summary import to_html
    from ..views.blocks import Notes

    more = [note for note in payload.notes if note not in report.notes]
    return to_html(report.title, [*report._summary, *([Notes(more)] if more else [])])
