"""All that is shown of a report in one page: its payload, within its size, and the summary for where no script runs."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .tabs import tab_or_error, tools, trace_tab
from .timelines import drawn_now, thinned_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..analysis.thinning import Thinned
    from ..budget import Plan, Trimmed
    from ..display.payload import Payload
    from ..views.blocks import Block
    from ..views.spec import Item
    from .drawn import Drawn
    from .report import Report

_log = logging.getLogger(__name__)


def whole_payload(report: Report) -> Payload:
    """The report's tabs and their data, whatever their size."""
    from .. import __version__
    from ..display.payload import Payload
    from ..views.advice import answer

    others = 0 if report.capture is not None and report.capture.name else len(report.hosts) - 1
    title = f"{report.title} and {others} other {'host' if others == 1 else 'hosts'}" if others else report.title
    head: dict[str, Any] = {"title": title, "facts": report._head_facts}
    try:
        head["answer"] = answer(report.advice, report.overview)
    except Exception:  # noqa: BLE001  # as for the tabs
        _log.exception("The advice failed on this profile.")
    payload = Payload(id=report.id, version=__version__, head=head, notes=report.notes)
    for tab_id, (title, make) in tools(report, payload).items():
        payload.tabs.append(tab_or_error(tab_id, title, make))
    if report._compared is not None:
        payload.tabs.append(report._compared.tab)
        payload.tables |= report._compared.tables
        if "answer" in head:
            head["answer"]["links"] = [report._compared.link, *head["answer"]["links"]]
    return payload


def trimmed_payload(report: Report) -> Trimmed | None:
    """What of the report fits into a page; None if all does."""
    from ..budget import BYTES_PER_MB, HOW_TO_SEE_ALL, in_short, statement, trimmed
    from ..display.html import least_size, report_html

    whole = report._whole_payload
    if report.max_mb is None or least_size(whole) < 0.8 * report.max_mb * BYTES_PER_MB:
        return None

    def size_of(payload: Payload) -> int:
        return len(report_html(payload, static_html(report, payload)).encode())

    if size_of(whole) <= report.max_mb * BYTES_PER_MB:
        return None

    def make(plan: Plan) -> tuple[Payload, list[Drawn], list[Thinned]]:
        tables = {name: table for name, table in whole.tables.items() if not name.startswith("timeline")}
        bundles = [bundle for bundle in whole.bundles if not bundle["name"].startswith("timeline")]
        payload = replace(whole, tables=tables, bundles=bundles)
        drawn = drawn_now(report, plan)
        timelines = [thinned_as(data, each) for data, each in zip(report.timelines, drawn, strict=True)]
        trace = tab_or_error("trace", "Trace", lambda: trace_tab(report, payload, drawn, plan, timelines))
        payload.tabs = [trace if tab["id"] == "trace" else tab for tab in whole.tabs]
        return payload, drawn, timelines

    n_events = sum(host.trace.space.n_events for host in report.hosts)
    found = trimmed(report.max_mb, size_of, make, sum(len(data.events) for data in report.timelines))
    said = statement(found, report.timelines)
    trace = next(tab for tab in found.payload.tabs if tab["id"] == "trace")
    trace["items"].insert(0, {"kind": "text", "text": said, "level": "info"})
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
