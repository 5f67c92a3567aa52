"""The tabs of a report, a tool each: from its tables to what is shown of them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..analysis.details import stat_columns, stat_counts
from ..analysis.flows import flows
from ..analysis.overview import device_planes
from .drawn import Drawn, parse
from .timelines import drawn_now

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..analysis.thinning import Thinned
    from ..budget import Plan
    from ..display.payload import Payload
    from ..views.spec import Tab
    from .report import Report

_log = logging.getLogger(__name__)

# The tab that a page may have only a part of.
TRACE = "trace"


def tools(report: Report, payload: Payload) -> dict[str, tuple[str, Callable[[], Tab]]]:
    """Return the title of each tool and what makes its tab, which leaves its tables in the payload."""
    from ..views.kernels import kernels_tab
    from ..views.memory import memory_tab
    from ..views.pod import pod_tab

    return {
        "overview": ("Overview", lambda: _overview_tab(report, payload)),
        "input_pipeline": ("Input pipeline", lambda: _input_pipeline_tab(report, payload)),
        "op_stats": ("TensorFlow stats", lambda: _op_stats_tab(report, payload)),
        TRACE: ("Trace", lambda: trace_tab(report, payload)),
        "kernels": (
            "GPU kernels",
            lambda: kernels_tab(payload, report.kernels, report.ops, report._colors, has_gpu=_has_gpu(report)),
        ),
        "memory": (
            "Memory",
            lambda: memory_tab(payload, report.memory, report.memory_summary, report._memory_history, report.steps),
        ),
        "pod": ("Pod", lambda: pod_tab(payload, report._pod, report.overview.environment)),
    }


def _overview_tab(report: Report, payload: Payload) -> Tab:
    from ..views.advice import mean_step_ms, recommendations
    from ..views.overview import overview_tab

    # The head says it already.
    tab = overview_tab(payload, replace(report.overview, statement=""), report.steps)
    try:
        if not report.advice and report.overview.step_time.empty and report.overview.top_ops.empty:
            return tab  # nothing was recorded in which there could be something to change
        unseen = report.overview.unseen_devices > 0
        advised = recommendations(report.advice, mean_step_ms(report.overview), unseen=unseen)
    except Exception as error:  # noqa: BLE001  # the advice rests on all tools: one that fails leaves the overview alone
        advised = _failure("Recommendations", error)
    tab["items"].insert(0, advised)
    return tab


def _input_pipeline_tab(report: Report, payload: Payload) -> Tab:
    from ..display.payload import Payload
    from ..views.input_pipeline import find_step_chart, input_pipeline_tab

    overviews = [tab for tab in payload.tabs if tab["id"] == "overview"] or [
        _overview_tab(report, Payload(id=report.id))
    ]
    drawn = find_step_chart(overviews[0]["items"])
    return input_pipeline_tab(payload, report.input_pipeline, drawn)


def _op_stats_tab(report: Report, payload: Payload) -> Tab:
    from ..views.op_stats import op_stats_tab

    return op_stats_tab(payload, report.ops, report._colors, unseen=report.overview.unseen_devices > 0)


def trace_tab(
    report: Report,
    payload: Payload,
    drawn: Sequence[Drawn] = (),
    plan: Plan | None = None,
    timelines: Sequence[Thinned] = (),
) -> Tab:
    """Make the tab of the trace: all of it, or what a plan leaves of it."""
    from ..views import spec
    from ..views.timeline import timeline_tab

    tabs = []
    for index, (host, data) in enumerate(zip(report.hosts, report.timelines, strict=True)):
        arrows = flows(host.trace) if plan is None or plan.arrows else []
        if plan is None or plan.details:
            columns, left_out = stat_columns(host.trace)
        else:
            columns, left_out = [c for c in (timelines[index].stats,) if c is not None], stat_counts(host.trace)
        if plan is not None:
            data = timelines[index].data
        prefix = (drawn or drawn_now(report))[index].prefix
        tab = timeline_tab(payload, data, report._colors, prefix, (columns, left_out), arrows)
        if plan is not None:
            whole = report.timelines[index].tracks
            n_drawn = int(whole.loc[whole["kind"].isin(["host", "device"]), "count"].sum())
            tab["items"][0]["part"] = {
                "alone": timelines[index].n_alone,
                "events": n_drawn,
                "details": plan.details,
                "arrows": plan.arrows,
            }
        tabs.append(tab)
    if len(tabs) == 1:
        return tabs[0]
    # Hosts that run one program have nearly the same names.
    kinds: dict[str, list[str]] = {}
    for table in payload.tables:
        if (parsed := parse(table)) is not None:
            kinds.setdefault(parsed[1], []).append(table)
    for kind, of_hosts in kinds.items():
        payload.bundle(f"timelines_{kind}", of_hosts)
    cases = {
        str(index): (host.trace.host, tab["items"])
        for index, (host, tab) in enumerate(zip(report.hosts, tabs, strict=True))
    }
    return spec.tab("trace", "Trace", [spec.switch("trace_host", "Host", cases, trait="host")])


def tab_or_error(tab_id: str, title: str, make: Callable[[], Tab]) -> Tab:
    """Return a tab; one that cannot be made says so in its place, and the others are shown."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001  # whatever a profile holds, the other tools must be shown
        return {"id": tab_id, "title": title, "items": [_failure(title, error)]}


def _failure(tool: str, error: Exception) -> dict[str, Any]:
    """Item that says, in the place of a tool, why it isn't there; the traceback goes to the log."""
    _log.error("The tool %r failed on this profile.", tool, exc_info=error)
    words = f"{tool} failed on this profile ({type(error).__name__}: {error}). The other tools are not affected."
    return {"kind": "text", "text": words, "level": "error"}


def _has_gpu(report: Report) -> bool:
    return any(device_planes(host.trace) for host in report.hosts)
