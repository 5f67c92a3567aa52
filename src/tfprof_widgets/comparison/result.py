"""What `tfprof.compare` returns: the tables, the sentence, and the displays."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..analysis.thinning import thinned
from ..report import Report, load
from ..report.tabs import tab_or_error
from . import sentence, tables
from .statistics import MEDIAN_LEVEL_PCT, RATIO_LEVEL_PCT, Change, compare_times
from .steady import Circumstances, Run, circumstances, kinds_of, run_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..analysis.timeline import Timeline
    from ..display.payload import Payload
    from ..display.widget import ReportWidget
    from ..views.blocks import Block
    from ..views.comparison_trace import Place
    from ..views.spec import Tab

#: Events of each run that a comparison's page draws: some 4 MB for both.
MOST_DRAWN = 300_000

# What `Comparison.to_csv` writes: each the name of a property.
_TABLES = ("steps", "ops", "kernels", "input_ops", "memory", "overview", "runs")


def compare(
    before: Report | str | os.PathLike[str],
    after: Report | str | os.PathLike[str],
    *more: Report | str | os.PathLike[str],
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare runs: what became faster or slower, whether that is more than chance, and why.

    Parameters
    ----------
    before, after : Report or path
        The runs; a path is opened as `load` does.
    *more : Report or path
        Later runs. The first is then compared with the last, and `Comparison.runs` has each against the first.
    names : sequence of str, optional
        What to call the runs; their titles by default.

    Returns
    -------
    Comparison
        As the last value of a cell it shows itself.

    Raises
    ------
    FileNotFoundError, XSpaceError
        If a path holds no profile.
    ValueError
        If there is not a name for each run.
    """
    reports = [run if isinstance(run, Report) else load(run) for run in (before, after, *more)]
    if names is not None and len(names) != len(reports):
        msg = f"names must hold a name for each of the {len(reports)} runs, not {len(names)}."
        raise ValueError(msg)
    return Comparison(reports, list(names) if names is not None else _told_apart([r.title for r in reports]))


def _told_apart(titles: list[str]) -> list[str]:
    """Titles, numbered where several are the same."""
    if len(set(titles)) == len(titles):
        return titles
    if len(titles) == 2:
        return [f"{titles[0]} (before)", f"{titles[1]} (after)"]
    return [f"{title} ({number})" for number, title in enumerate(titles, start=1)]


@dataclass(frozen=True)
class ComparedPart:
    """What a report shows of how its run compares with another: a fact of its head, a link there, and a tab with its tables."""

    fact: dict[str, Any]
    link: dict[str, str]
    tab: Tab
    tables: dict[str, bytes]


class Comparison:
    """Runs side by side, as DataFrames and as an interactive display. Made by `compare`.

    Differences are after less before, ratios after over before: a ratio of 0.5 is twice as fast.

    Attributes
    ----------
    before, after : Report
        The first and the last of the runs.
    names : list of str
        What the runs are called.
    """

    def __init__(self, reports: Sequence[Report], names: Sequence[str]) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.reports = list(reports)
        self.names = list(names)
        self.before, self.after = self.reports[0], self.reports[-1]

    def __repr__(self) -> str:
        """Say the comparison in one line."""
        return f"<Comparison {self.title!r}: {self.statement}>"

    @property
    def title(self) -> str:
        """Which runs these are."""
        return f"{self.names[0]} → {self.names[-1]}"

    # ---- what it says --------------------------------------------------------------------------------------

    @cached_property
    def _kind(self) -> tuple[str, str]:
        """Kind of step that is compared, on each side; empty on both if one side has no steps."""
        ours, theirs = kinds_of(self.before), kinds_of(self.after)
        if not ours or not theirs:
            return "", ""
        common = [kind for kind in ours if kind in theirs]
        return (common[0], common[0]) if common else (ours[0], theirs[0])

    @cached_property
    def sides(self) -> tuple[Run, Run]:
        """The steady steps that are compared, before and after."""
        return run_of(self.before, self._kind[0]), run_of(self.after, self._kind[1])

    @cached_property
    def circumstances(self) -> tuple[Circumstances, Circumstances]:
        """Devices, hosts, batch sizes and versions, before and after."""
        return circumstances(self.before), circumstances(self.after)

    @cached_property
    def change(self) -> Change:
        """How the typical step differs; without steps on both sides, the whole of the profiled code."""
        before, after = self.sides
        if len(before.ms) and len(after.ms):
            return compare_times(before.ms, after.ms)
        return compare_times(np.array([before.span_ms]), np.array([after.span_ms]))

    @property
    def cautions(self) -> list[str]:
        """What is not alike in the runs, to know before any conclusion."""
        return self._words.cautions

    @property
    def statement(self) -> str:
        """The comparison in one sentence."""
        return self._words.sentence

    @cached_property
    def _words(self) -> sentence.Words:
        before, after = self.sides
        counts = _n_steps(self.before), _n_steps(self.after)
        found = sentence.cautions(self.circumstances, (before, after), counts)
        has_steps = bool(len(before.ms) and len(after.ms))
        what = "step" if has_steps else "the profiled code"
        change = sentence.how_it_changed(self.change, what, (len(before.ms), len(after.ms)) if has_steps else (1, 1))
        if not self.change.shown:
            return sentence.Words(found, change)
        eager = _eager_pct(self.before), _eager_pct(self.after)
        if not has_steps:
            return sentence.Words(found, change, sentence.cause_without_steps(self.ops, eager))
        rows = self.steps[(self.steps["kind"] == self._shown_kind) & (self.steps["category"] != "duration")]
        split = {str(row["category"]): (float(row["before_ms"]), float(row["after_ms"])) for _, row in rows.iterrows()}
        return sentence.Words(found, change, sentence.cause_of(split, self.ops, eager))

    @property
    def _shown_kind(self) -> str:
        """What the compared kind is called in `steps`."""
        ours, theirs = self._kind
        return ours if ours == theirs else f"{ours} → {theirs}"

    @cached_property
    def steps(self) -> pd.DataFrame:
        """A typical step of each kind and where its time goes; see `tables.steps_table`."""
        kinds: list[tuple[str, Run | None, Run | None, Change | None]] = []
        ours, theirs = kinds_of(self.before), kinds_of(self.after)
        if self._kind[0]:
            kinds.append((self._shown_kind, *self.sides, self.change))
            ours = [kind for kind in ours if kind != self._kind[0]]
            theirs = [kind for kind in theirs if kind != self._kind[1]]
        for kind in dict.fromkeys([*ours, *theirs]):
            before = run_of(self.before, kind) if kind in ours else None
            after = run_of(self.after, kind) if kind in theirs else None
            both = before is not None and after is not None and len(before.ms) and len(after.ms)
            change = compare_times(before.ms, after.ms) if both and before is not None and after is not None else None
            kinds.append((kind, _with_steps(before), _with_steps(after), change))
        return tables.steps_table(kinds)

    @cached_property
    def _n_steps(self) -> tuple[int, int]:
        """What "per step" divides by: all steps of each run; 1 unless both have some."""
        counts = _n_steps(self.before), _n_steps(self.after)
        return counts if all(counts) else (1, 1)

    @cached_property
    def ops(self) -> pd.DataFrame:
        """Each op with its counterpart; see `tables.ops_table`. The differences add up to that of all self time."""
        return tables.ops_table(self.before, self.after, self._n_steps)

    @cached_property
    def kernels(self) -> pd.DataFrame:
        """Each GPU kernel with its counterpart; see `tables.kernels_table`."""
        return tables.kernels_table(self.before, self.after, self._n_steps)

    @cached_property
    def input_ops(self) -> pd.DataFrame:
        """Each op of the input pipeline with its counterpart; see `tables.input_table`."""
        return tables.input_table(self.before, self.after, self._n_steps)

    @cached_property
    def memory(self) -> pd.DataFrame:
        """What each allocator held; see `tables.memory_table`."""
        return tables.memory_table(self.before, self.after)

    @cached_property
    def overview(self) -> pd.DataFrame:
        """The figures of the overview side by side; see `tables.overview_table`."""
        return tables.overview_table(self.before, self.after, self._own_sides)

    @property
    def _own_sides(self) -> tuple[Run, Run]:
        """The compared steps; where only one run has any, its own."""
        if self._kind[0]:
            return self.sides
        before, after = (run_of(report, next(iter(kinds_of(report)), "")) for report in (self.before, self.after))
        return before, after

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Every run against the first.

        Returns
        -------
        DataFrame
            ``run``, ``steps`` (steady ones; 0 where whole captures are compared), ``median_ms``, ``low_ms``, ``high_ms``,
            ``ratio``, ``ratio_low``, ``ratio_high``, ``told``.
        """
        rows = []
        for name, report in zip(self.names, self.reports, strict=True):
            one = Comparison([self.before, report], [self.names[0], name])
            change, run = one.change, one.sides[1]
            rows.append(
                {
                    "run": name,
                    "steps": len(run.ms) if len(one.sides[0].ms) else 0,
                    "median_ms": change.after_ms,
                    "low_ms": change.after_interval_ms[0],
                    "high_ms": change.after_interval_ms[1],
                    "ratio": change.ratio,
                    "ratio_low": change.ratio_interval[0],
                    "ratio_high": change.ratio_interval[1],
                    "told": change.told if report is not self.before else "",
                }
            )
        return pd.DataFrame(rows)

    @cached_property
    def notes(self) -> list[str]:
        """How the runs were compared, and what each run's own report remarks."""
        notes = []
        before, after = self.sides
        if len(before.ms) and len(after.ms):
            several = min(before.steps, after.steps) > 1
            counted = [
                "the only step"
                if run.steps == 1
                else f"{'' if several else 'the median of '}{len(run.ms):,} of {run.steps:,} steps"
                for run in (before, after)
            ]
            left_out = (
                "; first, last, traced and compiling steps are left out" if max(before.steps, after.steps) > 1 else ""
            )
            notes.append(
                f"Compared: {'the median of ' if several else ''}{counted[0]} before and {counted[1]} after{left_out}."
            )
            for name, run in (("before", before), ("after", after)):
                if run.unsteady:
                    notes.append(f"Every step {name} was traced or compiled: all of them are taken.")
        else:
            notes.append(
                "There are no steps on both sides: the time from the first to the last event of Python's thread is compared, "
                f"one value a run, and less than a factor of 2 is not told from chance. {_HOW_TO_MARK}"
            )
        if self.change.has_interval:
            notes.append(
                f"Intervals: {MEDIAN_LEVEL_PCT} % for medians (resampled in blocks of steps), {RATIO_LEVEL_PCT} % for the ratio, "
                "which also holds how far the parts of each run drift apart."
            )
        for name, report in zip(self.names, self.reports, strict=True):
            notes += [f"{name}: {note}" for note in report.notes]
        return notes

    # ---- how it is shown -----------------------------------------------------------------------------------

    @cached_property
    def payload(self) -> Payload:
        """The comparison's tabs and their data, as every display of it uses them."""
        from .. import __version__
        from ..display.payload import Payload

        head = {"title": self.title, "facts": self._head_facts, "answer": self.answer}
        payload = Payload(id=self.id, version=__version__, head=head, notes=self.notes)
        for tab_id, (title, make) in self._tools(payload).items():
            payload.tabs.append(tab_or_error(tab_id, title, make))
        return payload

    @property
    def answer(self) -> dict[str, Any]:
        """The head's answer: the sentence."""
        return {"text": self.statement, "detail": "", "action": [], "links": []}

    @cached_property
    def _head_facts(self) -> list[dict[str, Any]]:
        rows = []
        for label, run, where in zip(("Before", "After"), self._own_sides, self.circumstances, strict=True):
            steps = f"{run.steps:,} {run.kind} step{'' if run.steps == 1 else 's'}, " if run.steps else ""
            rows.append({"label": label, "value": f"{steps}{where.devices}"})
        return rows

    def _tools(self, payload: Payload) -> dict[str, tuple[str, Callable[[], Tab]]]:
        from ..views import comparison as views
        from ..views.comparison_memory import memory_tab

        runs = self.runs if len(self.reports) > 2 else None
        times = self.sides[0].ms, self.sides[1].ms
        names = self.names[0], self.names[-1]
        steps = self._n_steps
        tools: dict[str, tuple[str, Callable[[], Tab]]] = {
            "steps": (
                "Steps",
                lambda: views.steps_tab(payload, self.steps, self.overview, times, names, runs, self.cautions),
            ),
            "ops": ("Ops", lambda: views.ops_tab(payload, self.ops, steps)),
            "input": ("Input pipeline", lambda: views.input_tab(payload, self.input_ops, steps)),
        }
        if len(self.kernels):
            tools["kernels"] = ("GPU kernels", lambda: views.kernels_tab(payload, self.kernels, steps))
        tools["memory"] = (
            "Memory",
            lambda: memory_tab(payload, self.memory, (self.before.memory, self.after.memory), self._starts_ms),
        )
        tools["trace"] = ("Trace", lambda: self._trace_tab(payload))
        return tools

    def _trace_tab(self, payload: Payload) -> Tab:
        from ..views.colors import OpColors
        from ..views.comparison_trace import trace_tab

        reports = (self.before, self.after)
        colors = OpColors.of(pd.concat([report.ops[["host_or_device", "type", "self_time_us"]] for report in reports]))
        several = [len(report.hosts) for report in reports if len(report.hosts) > 1]
        remarks = [f"Drawn: the first host of each run, of up to {max(several)}."] if several else []
        remarks.append("What the profiler noted with each event is in the run's own report.")
        drawn = []
        for name, report in zip(("before", "after"), reports, strict=True):
            data = report.timelines[0]
            fewer = _within(data)
            drawn.append(fewer)
            if fewer is not data:
                total = len(data.events) + len(data.hidden)
                remarks.append(
                    f"Drawn {name}: {len(fewer.events):,} rows for {total:,} events; the thread pools' bookkeeping is left out, "
                    "short events are merged into bars, and counters have their peaks."
                )
        names = (self.names[0], self.names[-1])
        timelines = (drawn[0], drawn[1])
        return trace_tab(payload, timelines, names, self._places, colors, self._typical_place, remarks)

    @cached_property
    def _places(self) -> list[Place]:
        """Steady steps of both runs, the first of one with the first of the other."""
        tables = []
        for report, kind in zip((self.before, self.after), self._kind, strict=True):
            host = report.hosts[0].steps
            rows = host.slowest[host.averaged[host.slowest]]
            table = host.table.iloc[rows]
            tables.append(table[table["kind"] == kind])
        before, after = (table[["step", "start_ms", "duration_ms"]].to_numpy(float) for table in tables)
        places: list[Place] = []
        for ours, theirs in zip(before, after, strict=False):
            label = f"step {ours[0]:.0f}" if ours[0] == theirs[0] else f"steps {ours[0]:.0f} and {theirs[0]:.0f}"
            places.append((label, (float(ours[1]), float(theirs[1])), (float(ours[2]), float(theirs[2]))))
        return places

    @property
    def _typical_place(self) -> int:
        """The place whose steps took about as long as most."""
        lasts = np.array([times for _, _, times in self._places])
        if not len(lasts):
            return 0
        usual = np.median(lasts, axis=0)
        return int(np.abs(np.log(np.maximum(lasts, 1e-9) / np.maximum(usual, 1e-9))).sum(axis=1).argmin())

    def part(self, against: str) -> ComparedPart:
        """Return the comparison as a part of the report of the run after: a fact of its head and a tab, which hold no report.

        Parameters
        ----------
        against : str
            What to call the run before: ``In [4]``.
        """
        from ..display.payload import Payload
        from ..views import spec

        payload = Payload(id=self.id)
        cases: dict[str, tuple[str, list[Any]]] = {}
        for tab_id, (title, make) in self._tools(payload).items():
            if tab_id != "trace":  # both timelines would double the notebook
                cases[tab_id] = (title, tab_or_error(tab_id, title, make)["items"])
        said = [spec.text(self.statement, "info"), spec.text(" ".join(self.notes))]
        parts = spec.switch("compared_part", "Compare", cases)
        tab = spec.tab("compared", "Comparison", [*said, parts, self._how_to_see_traces()])
        return ComparedPart(
            fact={"label": f"Against {against}", "value": self._words.short},
            link=spec.link(f"See the comparison with {against}", "tool:compared"),
            tab=tab,
            tables=payload.tables,
        )

    def _how_to_see_traces(self) -> dict[str, Any]:
        """What a re-run cell says of the one part that it leaves out."""
        before, after = self.before.title, self.after.title
        named = f"tfprof.history({before!r}), tfprof.history({after!r})" if before != after else "before, after"
        whose = "" if before != after else " of two reports, each kept with --as,"
        words: list[dict[str, Any]] = [
            {"text": f"import tfprof_widgets as tfprof; tfprof.compare({named})", "code": True},
            {"text": f"{whose} while this kernel lives: they are not in this report, which they would double."},
        ]
        return {"kind": "change", "label": "Both traces, one above the other", "change": words}

    @cached_property
    def _starts_ms(self) -> tuple[float, float]:
        """When the first step of each run began; 0 unless both have some."""
        starts = [report.steps["start_ms"].min() for report in (self.before, self.after)]
        return (float(starts[0]), float(starts[1])) if all(start == start for start in starts) else (0.0, 0.0)

    @cached_property
    def _summary(self) -> Sequence[Block]:
        from ..views.comparison_summary import summary_blocks

        return summary_blocks(self.statement, self.steps, self.ops, self._n_steps, self.notes)

    @property
    def _static_html(self) -> str:
        from ..display.static_summary import to_html

        return to_html(self.title, self._summary)

    @cached_property
    def html(self) -> str:
        """The ``text/html`` of the comparison: self-contained, static summary and interactive view."""
        from ..display.html import report_html

        return report_html(self.payload, self._static_html)

    @cached_property
    def text(self) -> str:
        """The comparison's summary in words."""
        from ..display.static_summary import to_text

        return to_text(self.title, self._summary)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": self.html}

    def widget(self) -> ReportWidget:
        """Return the comparison as an anywidget, for ipywidgets layouts, Voilà, Colab, VS Code and marimo."""
        from ..display.widget import ReportWidget

        return ReportWidget(self.payload)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the comparison as one HTML file that opens from disk with no network; return the file written."""
        from ..display.html import report_page

        target = Path(path).expanduser()
        target.write_text(report_page(self.payload, self._static_html, self.title), encoding="utf-8")
        return target

    def to_csv(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write each table as a CSV file into a directory, which is made if need be; return the files written.

        A spreadsheet takes a text that begins with ``=``, ``+``, ``-`` or ``@`` for a formula; such a text gets an apostrophe before it.
        """
        from ..export.csv_text import write_tables

        return write_tables(((name, getattr(self, name)) for name in _TABLES), directory)


_HOW_TO_MARK = "Mark the steps of your own loop (with tfprof.step(i): …) to compare steps."


def _within(data: Timeline) -> Timeline:
    """Return a timeline with as many events as a page has room for."""
    if len(data.events) + len(data.hidden) <= MOST_DRAWN:
        return data
    return thinned(data, MOST_DRAWN).data


def _n_steps(report: Report) -> int:
    return sum(int(host.steps.table["step"].nunique()) for host in report.hosts)


def _eager_pct(report: Report) -> float | None:
    """Share of op time that ran eagerly: the devices', where there are any."""
    shares = report.overview.eager_pct
    return shares.get("device", shares.get("host"))


def _with_steps(run: Run | None) -> Run | None:
    return run if run is not None and len(run.ms) else None
