"""The report: where the stages meet. Every part is made on first use, once."""

from __future__ import annotations

import logging
import os
import sys
import uuid
import weakref
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd

from .analysis.advice import Finding, Run, advice
from .analysis.counters import counters, with_counters
from .analysis.details import stat_columns
from .analysis.events import Trace, events_table
from .analysis.flows import flows
from .analysis.input_pipeline import InputPipeline, input_pipeline
from .analysis.kernels import kernels
from .analysis.memory import memory, memory_peak, memory_summary
from .analysis.memory_history import MemoryHistory, memory_history
from .analysis.op_stats import op_stats
from .analysis.overview import Overview, captured_ms, device_planes, device_type, overview
from .analysis.own_tracks import checked_track, with_own_tracks
from .analysis.pod import Pod, pod
from .analysis.recorded import recorded_rows
from .analysis.selection import selected_own, selected_rows
from .analysis.steps import Steps, find_steps
from .analysis.timeline import Timeline, timeline
from .budget import DEFAULT_MAX_MB
from .diagnosis.report_checks import report_notes
from .drawn import Drawn, parse
from .xspace import XSpace, XSpaceError, hosts, read_hosts
from .xspace.logdir import find_runs, host_name, newest_run, run_name

W = TypeVar("W", bound="LinkWidget | ReportWidget")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from .analysis.thinning import Thinned
    from .budget import Plan, Trimmed
    from .comparison.result import ComparedPart
    from .display.payload import Payload
    from .display.widget import LinkWidget, ReportWidget
    from .on_demand import Answer, OnDemand
    from .session import CaptureInfo
    from .views.blocks import Block
    from .views.colors import OpColors
    from .views.spec import Item, Tab

# What `Report.to_csv` writes: each the name of a property.
_TABLES = ("steps", "ops", "input_ops", "kernels", "memory", "memory_summary", "memory_peak", "pod", "events")

_log = logging.getLogger(__name__)


@dataclass
class HostProfile:
    """One host's part of a report."""

    trace: Trace

    @cached_property
    def steps(self) -> Steps:
        """The host's steps."""
        return find_steps(self.trace)

    @cached_property
    def memory(self) -> pd.DataFrame:
        """The host's allocations and deallocations, in time order."""
        return memory(self.trace, self.step_of_event)

    @cached_property
    def step_of_event(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Step of each event of the trace; -1 for events of no step."""
        return self.steps.step_of(self.trace)


class Report:
    """What a profile says, as DataFrames and as an interactive display.

    Made by ``%%tfprofile``, `load` and ``profile()``. In a notebook, a Report as the last value of a cell shows itself.

    Parameters
    ----------
    spaces : sequence of XSpace
        The profile of each host.
    capture : CaptureInfo, optional
        How it was captured, where that was done here.
    notes : sequence of str
        What was missing or repaired on the way here.
    """

    def __init__(
        self, spaces: Sequence[XSpace], *, capture: CaptureInfo | None = None, notes: Sequence[str] = ()
    ) -> None:
        if not spaces:
            msg = "A report needs the profile of at least one host."
            raise XSpaceError(msg)
        self.id = uuid.uuid4().hex[:12]
        self.capture = capture
        self.hosts = [HostProfile(Trace(space, name)) for space, name in zip(spaces, hosts(spaces), strict=True)]
        self.is_anonymized = False
        self._max_mb: float | None = DEFAULT_MAX_MB
        self._notes = list(notes)
        self._link: LinkWidget | None = None
        # By host, by name.
        self._own_tracks: list[dict[str, pd.DataFrame]] = [{} for _ in self.hosts]
        self._compared: ComparedPart | None = None
        # By the timeline that a page has drawn: what it asks for is found faster the second time.
        self._on_demand: dict[Drawn, OnDemand] = {}
        # What the last linked display told: see `analysis.selection`.
        self._selected: Any = None

    def __repr__(self) -> str:
        """Name the report in one line."""
        facts = ", ".join(f"{fact['label'].lower()} {fact['value']}" for fact in self._head_facts)
        return f"<Report {self.title!r}: {facts}>"

    def of_host(self, name: str) -> Report:
        """Return the report of one of several hosts; this one is of all of them.

        Raises
        ------
        KeyError
            If there is no such host; the message lists those that there are.
        """
        for host in self.hosts:
            if host.trace.host == name:
                one = Report([host.trace.space], capture=self.capture, notes=self._notes)
                one.hosts[0].trace.host = name  # which of several hosts of one name, or of none, only this report knows
                return one
        raise KeyError(f"no host {name!r} in this report; it has {', '.join(repr(h.trace.host) for h in self.hosts)}")

    def anonymized(self) -> Report:
        """Return this report with stand-ins (``host-1``, ``user-1``, ``path-1.py``) for host names, user names, paths and addresses.

        They are replaced in the profile's own texts, so everything made of the result has them: displays, tables, exports. The
        source of the profiled cell is left out. What is replaced is found in the texts, so look through the result before it
        goes to strangers: names of ops, functions and files without a directory stay.
        """
        from .anonymize import Anonymizer

        spaces = [host.trace.space for host in self.hosts]
        about = [] if self.capture is None else [self.capture.name, *self.capture.notes, self.capture.error or ""]
        stand_in = Anonymizer(spaces, [*about, *self._notes])
        capture = None if self.capture is None else stand_in.capture(self.capture)
        report = Report([stand_in.space(space) for space in spaces], capture=capture)
        for new, old in zip(report.hosts, self.hosts, strict=True):
            new.trace.host = stand_in(old.trace.host)
        report._own_tracks = [
            {
                stand_in(name): frame.assign(name=[stand_in(str(each)) for each in frame["name"]])
                for name, frame in own.items()
            }
            for own in self._own_tracks
        ]
        report._notes = [*map(stand_in, self._notes), stand_in.statement()]
        report.is_anonymized = True
        report.max_mb = self.max_mb
        return report

    def as_asked(self, *, max_mb: float | None, anonymize: bool, name: str | None = None) -> Report:
        """Return this report, or an anonymized one, as the options of the magic and the command line ask for it."""
        from .session import CaptureInfo

        if name:
            self.capture = CaptureInfo(name) if self.capture is None else replace(self.capture, name=name)
        report = self.anonymized() if anonymize and not self.is_anonymized else self
        report.max_mb = max_mb
        return report

    # ---- what it says --------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """Name given to the capture, else where it was read from."""
        if self.capture is not None and self.capture.name:
            return self.capture.name
        first = self.hosts[0].trace.space.name
        # Several hosts' files lie in a directory that is named after the run.
        return (run_name(first) if len(self.hosts) > 1 else "") or host_name(first)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row a step and device (host only: one row a step), with the time of each category.

        Returns
        -------
        DataFrame
            ``step``, ``kind``, ``host``, ``device``, ``start_ms``, ``duration_ms``, ``flags`` and nine ``*_ms`` columns that sum
            to the duration; see `analysis.steps.Steps`.
        """
        return pd.concat([host.steps.table for host in self.hosts], ignore_index=True)

    @cached_property
    def ops(self) -> pd.DataFrame:
        """One row an op of the host or of a device, with its times and shares; see `analysis.op_stats.op_stats`."""
        return op_stats([host.trace for host in self.hosts])

    @cached_property
    def _pod(self) -> Pod:
        return pod([host.steps.table for host in self.hosts])

    @property
    def pod(self) -> pd.DataFrame:
        """One row a step, host and device, the hosts' steps aligned; see `analysis.pod.Pod`."""
        return self._pod.table

    @property
    def stragglers(self) -> pd.DataFrame:
        """The slowest host or device of each step, and the category that makes it slow; see `analysis.pod.Pod`."""
        return self._pod.stragglers

    @cached_property
    def overview(self) -> Overview:
        """Average step time and its breakdown, top ops, environment."""
        return overview(
            [host.trace for host in self.hosts], [host.steps for host in self.hosts], self.ops, self._environment
        )

    @cached_property
    def kernels(self) -> pd.DataFrame:
        """One row a GPU kernel, launch shape and op; see `analysis.kernels.kernels`. With several hosts, a ``host`` column."""
        return self._of_hosts(lambda host: kernels(host.trace))

    @cached_property
    def memory(self) -> pd.DataFrame:
        """One row an allocation or deallocation; see `analysis.memory.memory`. With several hosts, a ``host`` column."""
        return self._of_hosts(lambda host: host.memory)

    @cached_property
    def memory_summary(self) -> pd.DataFrame:
        """One row an allocator: counts, capacity, peaks, fragmentation; see `analysis.memory.memory_summary`."""
        return self._of_hosts(lambda host: memory_summary(host.memory))

    @cached_property
    def memory_peak(self) -> pd.DataFrame:
        """What each allocator held when most was in use; see `analysis.memory.memory_peak`."""
        return self._of_hosts(lambda host: memory_peak(host.memory))

    @cached_property
    def _memory_history(self) -> MemoryHistory:
        return memory_history([host.memory for host in self.hosts])

    @cached_property
    def input_pipeline(self) -> InputPipeline:
        """Whether the run waits for its input, and for which stage; see `analysis.input_pipeline.InputPipeline`."""
        return input_pipeline([host.trace for host in self.hosts], [host.steps for host in self.hosts], self.ops)

    @property
    def input_ops(self) -> pd.DataFrame:
        """One row an op that reads, prepares or hands over input; see `analysis.input_pipeline.input_ops`."""
        return self.input_pipeline.input_ops

    @cached_property
    def advice(self) -> list[Finding]:
        """What to change, the most promising first; empty if nothing stands out. See `analysis.advice.Finding`."""
        run = Run(
            traces=[host.trace for host in self.hosts],
            steps=[host.steps for host in self.hosts],
            ops=self.ops,
            overview=self.overview,
            input_pipeline=self.input_pipeline,
            kernels=self.kernels,
            memory_summary=self.memory_summary,
            stragglers=self.stragglers,
        )
        return advice(run)

    @cached_property
    def events(self) -> pd.DataFrame:
        """Every event: ``plane``, ``line``, ``name``, ``start_us``, ``duration_us``, ``depth``, ``step`` (and ``host``, if several)."""
        return self._of_hosts(lambda host: events_table(host.trace, host.step_of_event))

    @property
    def selection(self) -> pd.DataFrame:
        """Rows of `events` that are selected in the linked display: the last event clicked, or all in the last box.

        A step stands for what began in its time. Events of your own tracks (`add_track`) follow below, with the track as their ``line``.
        Empty while nothing is selected, and where no display is linked to Python.
        """
        selected = self._selected
        rows = np.empty(0, np.int64)
        own = None
        drawn = self._drawn_as(selected.get("timeline")) if isinstance(selected, dict) else None
        if drawn is not None:
            host, data = self.hosts[drawn.host], self._timeline_with(drawn)
            if drawn.is_part:
                selected = self._part(drawn).in_whole(selected, data)
            before = sum(each.trace.space.n_events for each in self.hosts[: drawn.host])
            rows = before + selected_rows(selected, data, host.trace)
            own = selected_own(selected, data)
            own.index += len(self.events)
            if len(self.hosts) > 1:
                own.insert(0, "host", host.trace.host)
        found = self.events.iloc[rows]
        return found if own is None or own.empty else pd.concat([found, own])

    def _drawn_as(self, table: Any) -> Drawn | None:
        """Return which timeline of this report a display means by its table of events; None for none."""
        parsed = parse(table)
        if parsed is None or parsed[1] != "events":
            return None
        drawn = parsed[0]
        known = drawn.host < len(self.hosts) and drawn.own <= self._own_count(drawn.host)
        return drawn if known else None

    def _own_count(self, host: int) -> int:
        """Return how many of the user's tracks a host's timeline has: those without events are no tracks."""
        return sum(not frame.empty for frame in self._own_tracks[host].values())

    def _timeline_with(self, drawn: Drawn) -> Timeline:
        """Return the whole timeline of a host, with as many of the user's tracks as a display of it had."""
        if drawn.own == self._own_count(drawn.host):
            return self.timelines[drawn.host]
        filled = [(name, frame) for name, frame in self._own_tracks[drawn.host].items() if not frame.empty]
        return with_own_tracks(self._bare_timelines[drawn.host], dict(filled[: drawn.own]))

    def _part(self, drawn: Drawn) -> Thinned:
        """Return what of a timeline a page has."""
        if drawn in self._on_demand:
            return self._on_demand[drawn].thin
        trimmed = self.__dict__.get("_trimmed")
        if trimmed is not None and trimmed.drawn[drawn.host] == drawn:
            found: Thinned = trimmed.timelines[drawn.host]
            return found
        return _thinned(self._timeline_with(drawn), drawn)

    def _follow(self, widget: W) -> W:
        """Remember what is selected in a widget."""
        # ipywidgets keeps every widget until the kernel ends: it must not keep the report with it.
        report = weakref.ref(self)

        def remember(change: dict[str, Any]) -> None:
            if (alive := report()) is not None:
                alive._selected = change["new"]

        widget.observe(remember, names="selection")
        return widget

    def _answer(self, question: Any) -> Answer:
        """Return what a page asks for that has only a part of the trace; see `on_demand`.

        Raises
        ------
        ValueError
            If it can't be answered; the message says why.
        """
        from .on_demand import OnDemand

        asked = question.get("timeline") if isinstance(question, dict) else None
        drawn = self._drawn_as(asked)
        if drawn is None or not drawn.is_part:
            msg = f"The report in Python has no part of a trace that is called {asked!r}."
            raise ValueError(msg)
        ready = self._on_demand.get(drawn)
        if ready is None:
            whole = self._timeline_with(drawn)
            ready = OnDemand(self.hosts[drawn.host].trace, whole, self._part(drawn), self._colors)
            # Of each host's pages the one that is being looked at.
            self._on_demand = {each: kept for each, kept in self._on_demand.items() if each.host != drawn.host}
            self._on_demand[drawn] = ready
        return ready.answer(question)

    def _of_hosts(self, make: Callable[[HostProfile], pd.DataFrame]) -> pd.DataFrame:
        """Table of every host, one below the other; with several hosts, the first column tells which."""
        tables = [make(host) for host in self.hosts]
        if len(tables) == 1:
            return tables[0]
        named = [table.assign(host=host.trace.host) for host, table in zip(self.hosts, tables, strict=True)]
        table = pd.concat(named, ignore_index=True)
        return table[["host", *(name for name in table.columns if name != "host")]]

    @cached_property
    def notes(self) -> list[str]:
        """What to know before trusting the numbers: errors that the profiler stored, repairs, what was left out."""
        notes = list(self.capture.notes) if self.capture is not None else []
        if self.capture is not None and self.capture.error:
            notes.append(f"The cell ended early ({self.capture.error}); the report shows what was captured until then.")
        notes += self._notes
        for host in self.hosts:
            space = host.trace.space
            prefix = f"{host.trace.host}: " if len(self.hosts) > 1 else ""
            notes += [prefix + note for note in space.notes]
        notes += report_notes(self)
        return list(dict.fromkeys(notes))

    @property
    def _has_gpu(self) -> bool:
        return any(device_planes(host.trace) for host in self.hosts)

    @property
    def _environment(self) -> dict[str, str]:
        asked = None if self.capture is None else self.capture.options
        return {**recorded_rows([host.trace for host in self.hosts], asked), **self._versions}

    @property
    def _versions(self) -> dict[str, str]:
        if self.capture is None:
            return {}
        versions = {"TensorFlow": self.capture.tensorflow_version, "Keras": self.capture.keras_version}
        return {name: version for name, version in versions.items() if version}

    @cached_property
    def _head_facts(self) -> list[dict[str, Any]]:
        try:
            kinds = self.overview.step_time["kind"]
            counted = (
                ", ".join(_counted(self.steps[self.steps["kind"] == kind], kind) for kind in kinds) or "none found"
            )
        except Exception:  # noqa: BLE001  # as for the tabs
            _log.exception("The overview failed on this profile.")
            counted = "unknown"
        rows = [
            {"label": "Steps", "value": counted},
            {
                "label": "Captured",
                "value": _duration(max(captured_ms(host.trace) for host in self.hosts)),
                "hint": "From the profiler's start to its stop; where the file doesn't tell, from the first event to the last",
            },
            {"label": "Device", "value": device_type([host.trace for host in self.hosts])},
        ]
        if len(self.hosts) > 1:
            rows.append({"label": "Hosts", "value": f"{len(self.hosts)}"})
        rows += [{"label": name, "value": version} for name, version in self._versions.items() if name == "TensorFlow"]
        rows.append({"label": "Events", "value": f"{sum(host.trace.space.n_events for host in self.hosts):,}"})
        if self._compared is not None:
            rows.append(self._compared.fact)
        return rows

    # ---- how it is shown -----------------------------------------------------------------------------------

    @property
    def max_mb(self) -> float | None:
        """Size in MB that the report's page may have, 4 by default; None for no limit.

        A page that would be larger keeps all its tables and the most important events of the trace one by one, and says what it leaves out.
        """
        return self._max_mb

    @max_mb.setter
    def max_mb(self, size: float | None) -> None:
        if size is not None and not size > 0:
            msg = f"max_mb is a size in MB above 0, or None for no limit, not {size!r}"
            raise ValueError(msg)
        self._max_mb = size
        for made in ("_trimmed", "payload", "html"):
            self.__dict__.pop(made, None)

    @cached_property
    def payload(self) -> Payload:
        """The report's tabs and their data, as its page has them: what doesn't fit into `max_mb` is left out."""
        trimmed = self._trimmed
        return self._whole_payload if trimmed is None else trimmed.payload

    @cached_property
    def _trimmed(self) -> Trimmed | None:
        """What of the report fits into a page; None if all does."""
        from .budget import BYTES_PER_MB, HOW_TO_SEE_ALL, in_short, statement, trimmed
        from .display.html import least_size, report_html

        whole = self._whole_payload
        if self.max_mb is None or least_size(whole) < 0.8 * self.max_mb * BYTES_PER_MB:
            return None

        def size_of(payload: Payload) -> int:
            return len(report_html(payload, self._static_html_of(payload)).encode())

        if size_of(whole) <= self.max_mb * BYTES_PER_MB:
            return None

        def make(plan: Plan) -> tuple[Payload, list[Drawn], list[Thinned]]:
            tables = {name: table for name, table in whole.tables.items() if not name.startswith("timeline")}
            bundles = [bundle for bundle in whole.bundles if not bundle["name"].startswith("timeline")]
            payload = replace(whole, tables=tables, bundles=bundles)
            drawn = self._drawn(plan)
            timelines = [_thinned(data, each) for data, each in zip(self.timelines, drawn, strict=True)]
            trace = tab_or_error("trace", "Trace", lambda: self._trace_tab(payload, drawn, plan, timelines))
            payload.tabs = [trace if tab["id"] == "trace" else tab for tab in whole.tabs]
            return payload, drawn, timelines

        n_events = sum(host.trace.space.n_events for host in self.hosts)
        found = trimmed(self.max_mb, size_of, make, sum(len(data.events) for data in self.timelines))
        said = statement(found, self.timelines)
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

    def _drawn(self, plan: Plan | None = None) -> list[Drawn]:
        """Return what a display made now draws of each host's timeline: all of it, or what a plan leaves of it."""
        drawn = [Drawn(index, self._own_count(index)) for index in range(len(self.hosts))]
        if plan is None:
            return drawn
        total = max(1, sum(len(data.events) for data in self.timelines))
        return [
            replace(each, is_part=True, most=None if plan.events is None else plan.events * len(data.events) // total)
            for each, data in zip(drawn, self.timelines, strict=True)
        ]

    @cached_property
    def _whole_payload(self) -> Payload:
        """The report's tabs and their data, whatever their size."""
        from . import __version__
        from .display.payload import Payload
        from .views.advice import answer

        others = 0 if self.capture is not None and self.capture.name else len(self.hosts) - 1
        title = f"{self.title} and {others} other {'host' if others == 1 else 'hosts'}" if others else self.title
        head: dict[str, Any] = {"title": title, "facts": self._head_facts}
        try:
            head["answer"] = answer(self.advice, self.overview)
        except Exception:  # noqa: BLE001  # as for the tabs
            _log.exception("The advice failed on this profile.")
        payload = Payload(id=self.id, version=__version__, head=head, notes=self.notes)
        for tab_id, (title, make) in self._tools(payload).items():
            payload.tabs.append(tab_or_error(tab_id, title, make))
        if self._compared is not None:
            payload.tabs.append(self._compared.tab)
            payload.tables |= self._compared.tables
            if "answer" in head:
                head["answer"]["links"] = [self._compared.link, *head["answer"]["links"]]
        return payload

    def show_compared(self, part: ComparedPart) -> None:
        """Show how this run compares with another in the displays made from now on; see `comparison.result.Comparison.part`."""
        self._compared = part
        for made in ("_head_facts", "_summary", "_whole_payload", "_trimmed", "payload", "html", "text"):
            self.__dict__.pop(made, None)

    def _tools(self, payload: Payload) -> dict[str, tuple[str, Callable[[], Tab]]]:
        """Return the title of each tool and what makes its tab, which leaves its tables in the payload."""
        from .views.kernels import kernels_tab
        from .views.memory import memory_tab
        from .views.op_stats import op_stats_tab
        from .views.pod import pod_tab

        return {
            "overview": ("Overview", lambda: self._overview_tab(payload)),
            "input_pipeline": ("Input pipeline", lambda: self._input_pipeline_tab(payload)),
            "op_stats": ("TensorFlow stats", lambda: op_stats_tab(payload, self.ops, self._colors)),
            "trace": ("Trace", lambda: self._trace_tab(payload)),
            "kernels": (
                "GPU kernels",
                lambda: kernels_tab(payload, self.kernels, self.ops, self._colors, has_gpu=self._has_gpu),
            ),
            "memory": (
                "Memory",
                lambda: memory_tab(payload, self.memory, self.memory_summary, self._memory_history, self.steps),
            ),
            "pod": ("Pod", lambda: pod_tab(payload, self._pod, self.overview.environment)),
        }

    def _alone(self, tool: str, wanted: Callable[[Item], bool] | None = None, host: str | None = None) -> ReportWidget:
        """Return a tool without the report's head as an anywidget: all of it, or the items that are wanted."""
        from . import __version__
        from .display.payload import Payload
        from .display.widget import ReportWidget
        from .views.alone import is_text, only, tables_of

        shown = self if host is None else self.of_host(host)
        payload = Payload(id=self.id, version=__version__, head=None)
        tab = tab_or_error(tool, *shown._tools(payload)[tool])  # another Report
        if wanted is not None:
            tab = {**tab, "items": only(tab["items"], wanted) or only(tab["items"], is_text)}
        needed = tables_of(tab, list(payload.tables))
        payload.tables = {name: table for name, table in payload.tables.items() if name in needed}
        payload.tabs.append(tab)
        return self._follow(ReportWidget(payload, tab=tool))

    def _overview_tab(self, payload: Payload) -> Tab:
        from .views.advice import mean_step_ms, recommendations
        from .views.overview import overview_tab

        # The head says it already.
        tab = overview_tab(payload, replace(self.overview, statement=""), self.steps)
        try:
            if not self.advice and self.overview.step_time.empty and self.overview.top_ops.empty:
                return tab  # nothing was recorded in which there could be something to change
            advised = recommendations(self.advice, mean_step_ms(self.overview))
        except Exception as error:  # noqa: BLE001  # the advice rests on all tools: one that fails leaves the overview alone
            advised = _failure("Recommendations", error)
        tab["items"].insert(0, advised)
        return tab

    def _input_pipeline_tab(self, payload: Payload) -> Tab:
        from .display.payload import Payload
        from .views.input_pipeline import find_step_chart, input_pipeline_tab

        overviews = [tab for tab in payload.tabs if tab["id"] == "overview"] or [
            self._overview_tab(Payload(id=self.id))
        ]
        drawn = find_step_chart(overviews[0]["items"])
        return input_pipeline_tab(payload, self.input_pipeline, drawn)

    @cached_property
    def timelines(self) -> list[Timeline]:
        """What the trace viewer draws, one a host; see `analysis.timeline.Timeline`."""
        return [with_own_tracks(data, own) for data, own in zip(self._bare_timelines, self._own_tracks, strict=True)]

    @cached_property
    def _bare_timelines(self) -> list[Timeline]:
        """The timelines without the user's own tracks."""
        return [
            with_counters(timeline(host.trace, host.steps.table), counters(host.trace, host.memory))
            for host in self.hosts
        ]

    def add_track(self, frame: pd.DataFrame, name: str, host: str | None = None) -> None:
        """Add a track of your own measurements to the trace timeline; displays made from now on have it.

        Parameters
        ----------
        frame : DataFrame
            A row an event: ``start_us`` (since the start of the trace, as in `events`), ``duration_us``, ``name``. Events may overlap.
        name : str
            What to call the track.
        host : str, optional
            The host to whose trace it is added; the first by default.

        Raises
        ------
        TypeError, ValueError
            If the frame is no such table, the name is empty or taken, or there is no such host; the message says what is wrong.
        """
        hosts = [each.trace.host for each in self.hosts]
        if host is not None and host not in hosts:
            msg = f"There is no host {host!r} in this report; it has {', '.join(map(repr, hosts))}."
            raise ValueError(msg)
        own = self._own_tracks[0 if host is None else hosts.index(host)]
        if not name or name in own:
            msg = f"A track needs a name that no other one has, not {name!r}."
            raise ValueError(msg)
        own[name] = checked_track(frame)
        for made in ("timelines", "_whole_payload", "_trimmed", "payload", "html"):
            self.__dict__.pop(made, None)

    def _trace_tab(
        self, payload: Payload, drawn: Sequence[Drawn] = (), plan: Plan | None = None, timelines: Sequence[Thinned] = ()
    ) -> Tab:
        """Make the tab of the trace: all of it, or what a plan leaves of it."""
        from .views import spec
        from .views.timeline import timeline_tab

        tabs = []
        for index, (host, data) in enumerate(zip(self.hosts, self.timelines, strict=True)):
            columns, left_out = stat_columns(host.trace)
            arrows = flows(host.trace) if plan is None or plan.arrows else []
            if plan is not None:
                data = timelines[index].data
                if not plan.details:
                    left_out = {**left_out, **{column.name: len(column.event) for column in columns}}
                    columns = [column for column in (timelines[index].stats,) if column is not None]
            prefix = (drawn or self._drawn())[index].prefix
            tab = timeline_tab(payload, data, self._colors, prefix, (columns, left_out), arrows)
            if plan is not None:
                whole = self.timelines[index].tracks
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
            for index, (host, tab) in enumerate(zip(self.hosts, tabs, strict=True))
        }
        return spec.tab("trace", "Trace", [spec.switch("trace_host", "Host", cases, trait="host")])

    @cached_property
    def _colors(self) -> OpColors:
        from .views.colors import OpColors

        return OpColors.of(self.ops)

    @cached_property
    def _summary(self) -> Sequence[Block]:
        from .views.summary import summary_blocks

        try:
            findings = self.advice
        except Exception:  # noqa: BLE001  # as for the tabs
            _log.exception("The advice failed on this profile.")
            findings = None
        return summary_blocks(self._head_facts, self.notes, self.overview, findings)

    @property
    def _static_html(self) -> str:
        return self._static_html_of(self.payload)

    def _static_html_of(self, payload: Payload) -> str:
        """Return the summary in HTML, with the notes of a payload."""
        from .display.static_summary import to_html
        from .views.blocks import Notes

        more = [note for note in payload.notes if note not in self.notes]
        return to_html(self.title, [*self._summary, *([Notes(more)] if more else [])])

    @cached_property
    def html(self) -> str:
        """The ``text/html`` of the report: self-contained, static summary and interactive view."""
        from .display.html import report_html

        return report_html(self.payload, self._static_html)

    @cached_property
    def text(self) -> str:
        """The report's summary in words."""
        from .display.static_summary import to_text

        return to_text(self.title, self._summary)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        if self._link is None and _in_kernel():
            from .display.widget import LinkWidget

            self._link = self._follow(LinkWidget(self.id))
            self._link.on_msg(_answering(weakref.ref(self)))
            weakref.finalize(self, self._link.close).atexit = False
        return {"text/plain": self.text, "text/html": self.html}

    def widget(self) -> ReportWidget:
        """Return the report as an anywidget, for ipywidgets layouts, Voilà, Colab, VS Code and marimo."""
        from .display.widget import ReportWidget

        return self._follow(ReportWidget(self._whole_payload))

    def overview_page(self, host: str | None = None) -> ReportWidget:
        """Return the Overview alone as an anywidget: recommendations, breakdown, step times, top ops, environment.

        Parameters
        ----------
        host : str, optional
            One of the report's hosts; all of them by default.
        """
        return self._alone("overview", host=host)

    def step_chart(self, host: str | None = None) -> ReportWidget:
        """Return the Overview's chart of step times alone as an anywidget. ``host`` as for `overview_page`."""
        from .views.alone import is_step_chart

        return self._alone("overview", is_step_chart, host)

    def input_pipeline_analyzer(self, host: str | None = None) -> ReportWidget:
        """Return the input pipeline analyzer alone as an anywidget. ``host`` as for `overview_page`."""
        return self._alone("input_pipeline", host=host)

    def op_table(self, host: str | None = None) -> ReportWidget:
        """Return the table of TensorFlow stats, without its pies, as an anywidget. ``host`` as for `overview_page`."""
        from .views.alone import is_table

        return self._alone("op_stats", is_table, host)

    def kernel_table(self, host: str | None = None) -> ReportWidget:
        """Return the table of GPU kernels, without its pies, as an anywidget. ``host`` as for `overview_page`."""
        from .views.alone import is_table

        return self._alone("kernels", is_table, host)

    def memory_profile(self, host: str | None = None) -> ReportWidget:
        """Return the memory profile alone as an anywidget. ``host`` as for `overview_page`."""
        return self._alone("memory", host=host)

    def pod_viewer(self) -> ReportWidget:
        """Return the pod viewer alone as an anywidget: all hosts and devices, a step at a time."""
        return self._alone("pod")

    def trace_viewer(self, range_ms: tuple[float, float] | None = None, highlight: str | None = None) -> ReportWidget:
        """Return the trace timeline alone as an anywidget.

        Parameters
        ----------
        range_ms : (float, float), optional
            Time to show first, in ms from the start of the trace; all of it by default.
        highlight : str, optional
            What to highlight: the name of events, else of an op, else a text in names.

        Raises
        ------
        ValueError
            If the range doesn't end after it begins.
        """
        from . import __version__
        from .display.payload import Payload
        from .display.widget import ReportWidget

        if range_ms is not None and not range_ms[0] < range_ms[1]:
            msg = f"range_ms must be two times in ms, the first one before the second, not {range_ms!r}."
            raise ValueError(msg)
        payload = Payload(id=self.id, version=__version__, head={"title": self.title, "facts": []})
        payload.tabs.append(self._trace_tab(payload))
        shown = None if range_ms is None else [float(ms) for ms in range_ms]
        return self._follow(ReportWidget(payload, range_ms=shown, highlight=highlight))

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        max_mb: float | Literal["as set"] | None = "as set",
        anonymize: bool = False,
    ) -> Path:
        """Write the report as one HTML file that opens from disk with no network.

        Parameters
        ----------
        path : path
            The file to write.
        max_mb : float or None, optional
            Size in MB that the file may have, None for no limit; by default the report's own `max_mb`.
        anonymize : bool
            Whether to put stand-ins for host names, paths and user names; see `anonymized`.

        Returns
        -------
        Path
            The file written.
        """
        from .display.html import report_page

        target = Path(path)
        shown = self.anonymized() if anonymize and not self.is_anonymized else self
        before = shown.max_mb
        if max_mb == "as set" or max_mb == before:
            page = report_page(shown.payload, shown._static_html, shown.title)
        else:
            shown.max_mb = max_mb
            page = report_page(shown.payload, shown._static_html, shown.title)
            shown.max_mb = before
        target.write_text(page, encoding="utf-8")
        return target

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the capture itself into one file, from which `load` makes this report again; by custom it ends in ``.tfprof``.

        It is a zip archive with the profile of each host, as the profiler wrote it, and what else the report knows: its title,
        how it was captured, notes, your own tracks.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        XSpaceError
            If the profile was opened from a file that is there no more, or has changed.
        ValueError
            If the report is anonymized: the profile is not.
        """
        if self.is_anonymized:
            msg = "What is saved is the profile itself, with all its names. Share an anonymized report with to_html()."
            raise ValueError(msg)
        from . import __version__
        from .export import saved

        spaces = [host.trace.space for host in self.hosts]
        return saved.write(path, spaces, self.capture, self._notes, self._own_tracks, __version__)

    def to_perfetto(self, path: str | os.PathLike[str]) -> Path:
        """Write every event, and what the profiler noted with it, as a trace for Perfetto's viewer (https://ui.perfetto.dev).

        Chrome's ``chrome://tracing`` opens it too. A path that ends in ``.gz`` (``trace.json.gz``) gives a gzipped file, a tenth of
        the size. It holds the rows of `events`, arrows between them and counters; your own tracks are not in it.

        Returns
        -------
        Path
            The file written.
        """
        from .export.perfetto import HostEvents, write_chrome_json

        hosts = [
            HostEvents(
                host.trace,
                host.step_of_event,
                stat_columns(host.trace)[0],
                flows(host.trace),
                counters(host.trace, host.memory),
            )
            for host in self.hosts
        ]
        return write_chrome_json(path, hosts, self.title)

    def to_csv(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write each table as a CSV file into a directory, which is made if need be.

        A spreadsheet takes a text that begins with ``=``, ``+``, ``-`` or ``@`` for a formula; such a text gets an apostrophe before it.

        Returns
        -------
        list of Path
            The files written.
        """
        from .export.csv_text import without_formulas

        target = Path(directory)
        target.mkdir(parents=True, exist_ok=True)
        written = []
        for name in _TABLES:
            file = target / f"{name}.csv"
            without_formulas(getattr(self, name)).to_csv(file, index=False)
            written.append(file)
        return written


def _answering(report: weakref.ref[Report]) -> Callable[[LinkWidget, Any, Any], None]:
    """Return what hears the questions of a linked page. It must not keep the report."""

    def hear(link: LinkWidget, question: Any, _: Any) -> None:
        number = question.get("question") if isinstance(question, dict) else None
        alive = report()
        try:
            if alive is None:
                msg = "The report is not in Python any more."
                raise ValueError(msg)  # told like all else that can't be answered
            told, tables = alive._answer(question)
        except Exception as error:  # noqa: BLE001  # whatever it is, the page must hear of it and go on with what it has
            if not isinstance(error, ValueError):
                _log.exception("A page's question failed.")
            told, tables = {"error": str(error)}, {}
        link.send({**told, "question": number, "tables": list(tables)}, buffers=list(tables.values()))

    return hear


def _thinned(data: Timeline, drawn: Drawn) -> Thinned:
    from .analysis.thinning import thinned, without_bookkeeping

    return without_bookkeeping(data) if drawn.most is None else thinned(data, drawn.most)


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


def _in_kernel() -> bool:
    """Whether this Python is a notebook's kernel, so that a page can be linked to it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def _counted(steps: pd.DataFrame, kind: str) -> str:
    """How many steps of a kind each host ran."""
    of_host = steps.groupby("host", sort=False)["step"].nunique()
    least, most = int(of_host.min()), int(of_host.max())
    number = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return f"{number} {kind}" + (
        f" on {'each of ' if least != most else ''}{len(of_host)} hosts" if len(of_host) > 1 else ""
    )


def _duration(ms: float) -> str:
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2f} ms"


# ---- opening what was captured before --------------------------------------------------------------------------


def load(path: str | os.PathLike[str], *, executor: Executor | None = None) -> Report:
    """Open a saved profile.

    Parameters
    ----------
    path : path or URL
        A log directory (its newest run), a run's directory, one ``*.xplane.pb``, or what `Report.save` wrote; URLs go through fsspec.
    executor : concurrent.futures.Executor, optional
        What reads the hosts' files side by side, a file a task: a process pool by default where the files are many and big;
        a Dask client's ``get_executor()`` reads them on a cluster.

    Returns
    -------
    Report
        Of all the run's hosts. One that can't be read is named in the notes, if another can.

    Raises
    ------
    FileNotFoundError
        If the path doesn't exist.
    XSpaceError
        If there is no usable profile there.
    """
    from .export.saved import is_saved, read_saved

    try:
        os.fspath(path)
    except TypeError as error:
        msg = f"A profile is opened by its path (str or Path), not by {type(path).__name__}."
        raise TypeError(msg) from error
    if is_saved(path):
        saved = read_saved(path)
        report = Report(saved.spaces, capture=saved.capture, notes=saved.notes)
        for host, tracks in zip(report.hosts, saved.tracks, strict=True):
            for name, frame in tracks.items():
                report.add_track(frame, name, host.trace.host)
        return report
    return load_run(newest_run(path).files, executor=executor)


def runs(path: str | os.PathLike[str]) -> pd.DataFrame:
    """List what a log directory holds, oldest run first.

    Returns
    -------
    DataFrame
        ``run``, ``hosts`` (number of files), ``size_bytes``, ``modified``, ``path`` (to give to `load`).
    """
    found = find_runs(path)
    return pd.DataFrame(
        {
            "run": [run.name for run in found],
            "hosts": [len(run.files) for run in found],
            "size_bytes": [run.size_bytes for run in found],
            "modified": [run.modified for run in found],
            "path": [run.path for run in found],
        }
    )


def load_run(
    paths: Sequence[str | os.PathLike[str]], *, capture: CaptureInfo | None = None, executor: Executor | None = None
) -> Report:
    """Read the files of one run, a host each, at once: they may be deleted afterwards.

    Parameters
    ----------
    paths : sequence of paths or URLs
        One a host.
    capture : CaptureInfo, optional
        How they were captured.
    executor : concurrent.futures.Executor, optional
        As for `load`.

    Raises
    ------
    XSpaceError
        If none of the files is a usable profile.
    """
    # What a capture left in a temporary directory is soon gone.
    keep = capture is not None and capture.run_dir is None
    spaces, lost = read_hosts([os.fspath(path) for path in paths], executor, keep=keep)
    if not spaces:
        raise XSpaceError("\n".join(lost) or "The run has no file.")
    notes = [f"{len(lost)} of {len(paths)} hosts could not be read: {'; '.join(lost)}"] if lost else []
    return Report(spaces, capture=capture, notes=notes)
