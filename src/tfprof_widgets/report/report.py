"""A report: the tables as properties, its displays, and what it is written to."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from ..analysis.advice import Finding, Run, advice
from ..analysis.counters import counters
from ..analysis.details import stat_columns
from ..analysis.events import Trace, events_table
from ..analysis.flows import flows
from ..analysis.input_pipeline import InputPipeline, input_pipeline
from ..analysis.kernels import kernels
from ..analysis.memory import memory_peak, memory_summary
from ..analysis.memory_history import MemoryHistory, memory_history
from ..analysis.op_stats import op_stats
from ..analysis.overview import Overview, overview
from ..analysis.own_tracks import checked_track, with_own_tracks
from ..analysis.pod import Pod, pod
from ..analysis.recorded import recorded_rows
from ..analysis.timeline import Timeline
from ..budget import DEFAULT_MAX_MB
from ..xspace import XSpace, XSpaceError, hosts
from ..xspace.logdir import host_name, run_name
from . import head, link, page
from .host import HostProfile, of_hosts
from .tabs import trace_tab
from .timelines import bare_timelines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..budget import Trimmed
    from ..comparison.result import ComparedPart
    from ..display.payload import Payload
    from ..display.widget import LinkWidget, ReportWidget
    from ..session import CaptureInfo
    from ..views.blocks import Block
    from ..views.colors import OpColors
    from ..views.spec import Item
    from .drawn import Drawn
    from .on_demand import OnDemand

# What `Report.to_csv` writes: each the name of a property.
_TABLES = ("steps", "ops", "input_ops", "kernels", "memory", "memory_summary", "memory_peak", "pod", "events")
# What is made anew when another page is asked for, and when what it shows has changed.
_PAGE = ("_trimmed", "payload", "html")
_ALL_SHOWN = ("_without_trace", "_whole_payload", *_PAGE)


# From so many events on (a second or more) it is said that a report is being made; a host takes as long as so many events.
_LONG_FROM_EVENTS, _EVENTS_A_HOST = 150_000, 15_000


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

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has, or a pickle: all but the link, which is of the displays in this kernel."""
        return {**self.__dict__, "_link": None, "_on_demand": {}, "_selected": None}

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
        for index, host in enumerate(self.hosts):
            if host.trace.host == name:
                one = Report([host.trace.space], capture=self.capture, notes=self._notes)
                one.hosts[0].trace.host = name  # which of several hosts of one name, or of none, only this report knows
                one._own_tracks = [dict(self._own_tracks[index])]
                one.is_anonymized, one.max_mb = self.is_anonymized, self.max_mb
                return one
        raise KeyError(f"no host {name!r} in this report; it has {', '.join(repr(h.trace.host) for h in self.hosts)}")

    def anonymized(self) -> Report:
        """Return this report with stand-ins (``host-1``, ``user-1``, ``path-1.py``) for host names, user names, paths and addresses.

        They are replaced in the profile's own texts, so everything made of the result has them: displays, tables, exports. The
        source of the profiled cell is left out. What is replaced is found in the texts, so look through the result before it
        goes to strangers: names of ops, functions and files without a directory stay.
        """
        from ..anonymize import anonymized

        return anonymized(self)

    def as_asked(self, *, max_mb: float | None, anonymize: bool, name: str | None = None) -> Report:
        """Return this report, or an anonymized one, as the options of the magic and the command line ask for it."""
        from ..session import CaptureInfo

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
        return of_hosts(self.hosts, lambda host: kernels(host.trace))

    @cached_property
    def memory(self) -> pd.DataFrame:
        """One row an allocation or deallocation; see `analysis.memory.memory`. With several hosts, a ``host`` column."""
        return of_hosts(self.hosts, lambda host: host.memory)

    @cached_property
    def memory_summary(self) -> pd.DataFrame:
        """One row an allocator: counts, capacity, peaks, fragmentation; see `analysis.memory.memory_summary`."""
        return of_hosts(self.hosts, lambda host: memory_summary(host.memory))

    @cached_property
    def memory_peak(self) -> pd.DataFrame:
        """What each allocator held when most was in use; see `analysis.memory.memory_peak`."""
        return of_hosts(self.hosts, lambda host: memory_peak(host.memory))

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
            pod=self._pod,
        )
        return advice(run)

    @cached_property
    def events(self) -> pd.DataFrame:
        """Every event: ``plane``, ``line``, ``name``, ``start_us``, ``duration_us``, ``depth``, ``step`` (and ``host``, if several)."""
        return of_hosts(self.hosts, lambda host: events_table(host.trace, host.step_of_event))

    @property
    def selection(self) -> pd.DataFrame:
        """Rows of `events` that are selected in the linked display: the last event clicked, or all in the last box.

        A step stands for what began in its time. Events of your own tracks (`add_track`) follow below, with the track as their ``line``.
        Empty while nothing is selected, and where no display is linked to Python.
        """
        return link.selection(self)

    @cached_property
    def notes(self) -> list[str]:
        """What to know before trusting the numbers: errors that the profiler stored, repairs, what was left out."""
        return head.notes(self)

    @property
    def _environment(self) -> dict[str, str]:
        asked = None if self.capture is None else self.capture.options
        return {**recorded_rows([host.trace for host in self.hosts], asked), **head.versions(self)}

    @cached_property
    def _head_facts(self) -> list[dict[str, Any]]:
        return head.head_facts(self)

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
        self._forget(*_PAGE)

    @cached_property
    def payload(self) -> Payload:
        """The report's tabs and their data, as its page has them: what doesn't fit into `max_mb` is left out."""
        trimmed = self._trimmed
        return self._whole_payload if trimmed is None else trimmed.payload

    @cached_property
    def _trimmed(self) -> Trimmed | None:
        """What of the report fits into a page; None if all does."""
        return page.trimmed_payload(self)

    @cached_property
    def _without_trace(self) -> Payload:
        """The tabs and their data but for the trace, of which a page may have a part."""
        return page.without_trace(self)

    @cached_property
    def _whole_payload(self) -> Payload:
        """The report's tabs and their data, whatever their size."""
        return page.whole_payload(self)

    def show_compared(self, part: ComparedPart) -> None:
        """Show how this run compares with another in the displays made from now on; see `comparison.result.Comparison.part`."""
        self._compared = part
        self._forget("_head_facts", "_summary", "text", *_ALL_SHOWN)

    def _forget(self, *made: str) -> None:
        """Have parts made again when they are next needed."""
        for each in made:
            self.__dict__.pop(each, None)

    def _alone(self, tool: str, wanted: Callable[[Item], bool] | None = None, host: str | None = None) -> ReportWidget:
        """Return a tool without the report's head as an anywidget: all of it, or the items that are wanted."""
        from ..display.widget import ReportWidget

        return link.follow(self, ReportWidget(page.tool_alone(self, tool, wanted, host), tab=tool))

    @cached_property
    def timelines(self) -> list[Timeline]:
        """What the trace viewer draws, one a host; see `analysis.timeline.Timeline`."""
        return [with_own_tracks(data, own) for data, own in zip(self._bare_timelines, self._own_tracks, strict=True)]

    @cached_property
    def _bare_timelines(self) -> list[Timeline]:
        """The timelines without the user's own tracks."""
        return bare_timelines(self)

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
        self._forget("timelines", *_ALL_SHOWN)

    @cached_property
    def _colors(self) -> OpColors:
        from ..views.colors import OpColors

        return OpColors.of(self.ops)

    @cached_property
    def _summary(self) -> Sequence[Block]:
        return page.summary(self)

    @property
    def _static_html(self) -> str:
        return page.static_html(self, self.payload)

    @cached_property
    def html(self) -> str:
        """The ``text/html`` of the report: self-contained, static summary and interactive view."""
        from ..display.html import report_html

        return report_html(self.payload, self._static_html)

    @cached_property
    def text(self) -> str:
        """The report's summary in words."""
        from ..display.static_summary import to_text

        return to_text(self.title, self._summary)

    def _ipython_display_(self) -> None:
        """Say what is being done while a long report is made; IPython shows others as it shows all that has a mime bundle."""
        from ..progress import show_long

        events = sum(host.trace.space.n_events for host in self.hosts)
        if "html" in self.__dict__ or events + _EVENTS_A_HOST * len(self.hosts) < _LONG_FROM_EVENTS:
            raise NotImplementedError
        show_long(self, f"tfprof: making the report of {events:,} events …")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        if self._link is None:
            self._link = link.linked(self)
        return {"text/plain": self.text, "text/html": self.html}

    def widget(self) -> ReportWidget:
        """Return the report as an anywidget, for ipywidgets layouts, Voilà, Colab, VS Code and marimo."""
        from ..display.widget import ReportWidget

        return link.follow(self, ReportWidget(self._whole_payload))

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
        from ..views.alone import is_step_chart

        return self._alone("overview", is_step_chart, host)

    def input_pipeline_analyzer(self, host: str | None = None) -> ReportWidget:
        """Return the input pipeline analyzer alone as an anywidget. ``host`` as for `overview_page`."""
        return self._alone("input_pipeline", host=host)

    def op_table(self, host: str | None = None) -> ReportWidget:
        """Return the table of TensorFlow stats, without its pies, as an anywidget. ``host`` as for `overview_page`."""
        from ..views.alone import is_table

        return self._alone("op_stats", is_table, host)

    def kernel_table(self, host: str | None = None) -> ReportWidget:
        """Return the table of GPU kernels, without its pies, as an anywidget. ``host`` as for `overview_page`."""
        from ..views.alone import is_table

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
        from .. import __version__
        from ..display.payload import Payload
        from ..display.widget import ReportWidget

        if range_ms is not None and not range_ms[0] < range_ms[1]:
            msg = f"range_ms must be two times in ms, the first one before the second, not {range_ms!r}."
            raise ValueError(msg)
        payload = Payload(id=self.id, version=__version__, head={"title": self.title, "facts": []})
        payload.tabs.append(trace_tab(self, payload))
        shown = None if range_ms is None else [float(ms) for ms in range_ms]
        return link.follow(self, ReportWidget(payload, range_ms=shown, highlight=highlight))

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
        from ..display.html import report_page

        target = Path(path).expanduser()
        shown = self.anonymized() if anonymize and not self.is_anonymized else self
        before = shown.max_mb
        if max_mb == "as set" or max_mb == before:
            page = report_page(shown.payload, shown._static_html, shown.title)
        else:
            shown.max_mb = max_mb
            try:
                page = report_page(shown.payload, shown._static_html, shown.title)
            finally:
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
            If the report is anonymized (the profile is not), or the path is that of a page (`to_html` makes one).
        """
        if str(path).lower().endswith((".html", ".htm")):
            msg = f"save() writes the capture itself, for load() to open. For a page, use to_html({os.fspath(path)!r})."
            raise ValueError(msg)
        if self.is_anonymized:
            msg = "What is saved is the profile itself, with all its names. Share an anonymized report with to_html()."
            raise ValueError(msg)
        from .. import __version__
        from ..export import saved

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
        from ..export.perfetto import HostEvents, write_chrome_json

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
        from ..export.csv_text import write_tables

        return write_tables(((name, getattr(self, name)) for name in _TABLES), directory)
