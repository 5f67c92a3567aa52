"""A profile as a Chrome JSON trace, which Perfetto's viewer and Chrome's ``chrome://tracing`` open.

Perfetto's own binary format would be half the size, but only its own viewer reads that.

Every line of the file is made for all events at once: as columns of texts, joined by Arrow.
"""

from __future__ import annotations

import gzip
import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..analysis.events import line_labels
from ..analysis.timeline import pack_lanes

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from ..analysis.counters import CounterTrack
    from ..analysis.details import StatColumn
    from ..analysis.events import Trace
    from ..analysis.flows import Flow

# Lines that are made at once: a few MB of text.
_CHUNK = 65_536


@dataclass(frozen=True)
class HostEvents:
    """What is exported of one host. N events of the trace.

    Attributes
    ----------
    trace : Trace
        The host's events; those of the file that it leaves out are exported too.
    step : int64 array (N)
        Step of each event; -1 for none.
    stats : sequence of StatColumn
        What the profiler noted with the events, as their arguments.
    flows : sequence of Flow
        Arrows between events.
    counters : sequence of CounterTrack
        Numbers over time.
    """

    trace: Trace
    step: NDArray[np.int64]
    stats: Sequence[StatColumn] = ()
    flows: Sequence[Flow] = ()
    counters: Sequence[CounterTrack] = field(default_factory=list)


def write_chrome_json(path: str | os.PathLike[str], hosts: Sequence[HostEvents], title: str) -> Path:
    """Write the hosts' events as a Chrome JSON trace; gzipped if the path ends in ``.gz``.

    Planes are processes, lines are threads, with names as in ``report.events``. Times are whole nanoseconds from the start of the
    trace (a start and an end in picoseconds are both rounded down). Where events of a line overlap without one enclosing the other,
    which the format can't hold, they are spread over several threads of the line's name.
    """
    target = Path(path).expanduser()
    with ExitStack() as stack:
        file: Any = stack.enter_context(target.open("wb"))
        if target.suffix == ".gz":
            file = stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
        file.write(b'{"displayTimeUnit":"ns","traceEvents":[')
        separator = b"\n"
        about = {"title": title, "source": "tfprof_widgets", "times": "from the start of the trace"}
        for lines in _lines(hosts, about):
            if len(lines):
                file.write(separator + ",\n".join(lines.to_pylist()).encode())
                separator = b",\n"
        file.write(f'\n],"otherData":{json.dumps(about)}}}\n'.encode())
    return target


def _lines(hosts: Sequence[HostEvents], about: dict[str, str]) -> Iterator[pa.Array]:
    """Yield the file's lines; what could not be written is said in ``about``."""
    left_out = 0
    first_pid = 1
    first_tid = 1 + sum(len(host.trace.space.plane_name) + 1 for host in hosts)
    first_flow = 1
    for host in hosts:
        writer = _Host(host, first_pid, first_tid, prefix=f"{host.trace.host}: " if len(hosts) > 1 else "")
        yield writer.metadata()
        first_flow = yield from writer.events(first_flow)
        yield from writer.counters()
        first_pid = writer.counter_pid + 1
        first_tid += writer.n_threads
        left_out += writer.arrows_left_out
    if left_out:
        about["left out"] = f"{left_out:,} arrows that would point back in time"


class _Host:
    """The lines of one host. T threads: a line with lanes has one each."""

    def __init__(self, host: HostEvents, first_pid: int, first_tid: int, prefix: str) -> None:
        self.host = host
        self.whole = host.trace.whole
        self.prefix = prefix
        self.first_pid = first_pid
        space = host.trace.space
        self.counter_pid = first_pid + len(space.plane_name)
        lane = np.zeros(len(self.whole), np.int64)
        crossing = self.whole.events_of(~self.whole.line_is_nested)
        if len(crossing):
            line = self.whole.line[crossing].astype(np.int64)
            start_ps: NDArray[np.int64] = self.whole.start_ps[crossing]
            duration_ps: NDArray[np.int64] = self.whole.duration_ps[crossing]
            lane[crossing] = pack_lanes(line, start_ps, duration_ps, np.zeros(len(crossing), np.int32))
        # A thread for each lane of each line with events: from 0, by line.
        lanes = np.ones(len(space.line_plane), np.int64)
        np.maximum.at(lanes, self.whole.line[crossing], lane[crossing] + 1)
        first = np.cumsum(lanes) - lanes
        self.n_threads = int(lanes.sum())
        self.line_of_thread = np.repeat(np.arange(len(lanes)), lanes)
        self.lane_of_thread = np.arange(self.n_threads) - first[self.line_of_thread]
        self.tid = first_tid + np.arange(self.n_threads)
        self.pid = first_pid + space.line_plane[self.line_of_thread].astype(np.int64)
        self.thread = first[self.whole.line] + lane
        # Left of 0 only in damaged files; Perfetto refuses such times.
        origin_ps = min(int(self.whole.start_ps.min(initial=0)), 0)
        self.start_ns = (self.whole.start_ps - origin_ps) // 1000
        self.end_ns = (self.whole.end_ps - origin_ps) // 1000
        self.origin_ps = origin_ps
        self.arrows_left_out = 0

    def metadata(self) -> pa.Array:
        """Names and order of the processes and threads that have something."""
        trace, space = self.host.trace, self.host.trace.space
        rows: list[dict[str, Any]] = []

        def add(kind: str, pid: int, tid: int, **arguments: Any) -> None:
            rows.append({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": arguments})

        used = np.zeros(self.n_threads, np.bool_)
        used[self.thread] = True
        # Devices first, as in TensorBoard.
        planes = np.unique(space.line_plane[self.line_of_thread[used]]).tolist()
        for plane in planes:
            pid = self.first_pid + plane
            add("process_name", pid, 0, name=self.prefix + space.plane_name[plane])
            add("process_sort_index", pid, 0, sort_index=pid + (1_000_000 if trace.plane_is_host[plane] else 0))
        if self.host.counters:
            add("process_name", self.counter_pid, 0, name=f"{self.prefix}Counters")
            add("process_sort_index", self.counter_pid, 0, sort_index=self.counter_pid + 2_000_000)
        labels = line_labels(space)
        for thread in np.flatnonzero(used).tolist():
            line, lane = int(self.line_of_thread[thread]), int(self.lane_of_thread[thread])
            pid, tid = int(self.pid[thread]), int(self.tid[thread])
            add("thread_name", pid, tid, name=labels[line])
            add("thread_sort_index", pid, tid, sort_index=(-1_000_000 if line == trace.main_line else tid) + lane)
        return pa.array([json.dumps(row, ensure_ascii=False) for row in rows], pa.string())

    def events(self, first_flow: int) -> Generator[pa.Array, None, int]:
        """Yield the slices, and after each one the ends of arrows at it; return the next free number of an arrow."""
        names = _json_texts(self.host.trace.space.meta_name)
        columns = list(self._arguments())
        at, end_of = self._arrows()
        for first in range(0, len(self.whole), _CHUNK):
            part = slice(first, min(first + _CHUNK, len(self.whole)))
            thread, start_ns = self.thread[part], self.start_ns[part]
            # Where: what slices and arrows have in common.
            where = _joined('"pid":', self.pid[thread], ',"tid":', self.tid[thread], ',"ts":', _us(start_ns))
            name = names.take(pa.array(self.whole.meta[part]))
            duration = _us(self.end_ns[part] - start_ns)
            slices = _joined(
                '{"ph":"X","name":',
                name,
                ",",
                where,
                ',"dur":',
                duration,
                ',"args":{',
                _arguments_of(columns, part),
                "}}",
            )
            low, high = np.searchsorted(at, [part.start, part.stop])
            if low == high:
                yield slices
                continue
            here = pa.array(at[low:high] - first)
            number, begins, kind = (each[low:high] for each in end_of)
            phase = pa.array(['{"ph":"f","bp":"e","name":', '{"ph":"s","name":']).take(pa.array(begins.astype(np.int8)))
            kinds = _json_texts([flow.kind for flow in self.host.flows]).take(pa.array(kind))
            arrows = _joined(phase, kinds, ',"cat":', kinds, ',"id":', first_flow + number, ",", where.take(here), "}")
            order = np.argsort(np.concatenate([np.arange(part.stop - first), at[low:high] - first]), kind="stable")
            yield pa.concat_arrays([slices, arrows]).take(pa.array(order))
        return first_flow + len(at) // 2

    def _arrows(self) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...]]:
        """Return the ends of all arrows, by event: the event; and number, whether it begins there, kind.

        An arrow has one source and one target in this format, so each group gives an arrow for each pair; and it must not end
        before it begins.
        """
        sources, targets, kinds = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int8)]
        for index, flow in enumerate(self.host.flows):
            n_groups = int(flow.source_group.max(initial=-1)) + 1
            by_group = np.argsort(flow.target_group, kind="stable")
            n_targets = np.bincount(flow.target_group, minlength=n_groups)
            first = np.cumsum(n_targets) - n_targets
            times = n_targets[flow.source_group]
            source = np.repeat(flow.source, times)
            place = np.arange(len(source)) - np.repeat(np.cumsum(times) - times, times)
            target = flow.target[by_group][np.repeat(first[flow.source_group], times) + place]
            sources.append(source)
            targets.append(target)
            kinds.append(np.full(len(source), index, np.int8))
        source, target = self._rows(np.concatenate(sources)), self._rows(np.concatenate(targets))
        forward = self.start_ns[source] <= self.start_ns[target]
        self.arrows_left_out = len(source) - int(forward.sum())
        event = np.concatenate([source[forward], target[forward]])
        kind_of = np.concatenate(kinds)[forward]
        n = len(kind_of)
        order = np.argsort(event, kind="stable")
        number = np.tile(np.arange(n), 2)
        begins = np.repeat([True, False], n)
        return event[order], (number[order], begins[order], np.tile(kind_of, 2)[order])

    def _rows(self, event: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows among all events of the file of events of the trace."""
        trace = self.host.trace
        return self.whole.rank[event if trace.order is None else trace.order[event]].astype(np.int64)

    def _arguments(self) -> Iterator[tuple[NDArray[np.int64], NDArray[Any], pa.Array]]:
        """Yield, for each argument: rows of the events that have it (ascending), which text each has, the texts."""
        step = self.host.step
        has = np.flatnonzero(step >= 0)
        distinct, which = np.unique(step[has], return_inverse=True)
        yield self._by_row(has, which, [f',"step":{number}' for number in distinct.tolist()])
        seen: dict[str, NDArray[np.int64]] = {"step": np.arange(len(step))}
        for column in self.host.stats:
            event: NDArray[np.int64] = column.event
            code: NDArray[np.integer[Any]] = column.code
            if column.name in seen:  # of an event and of its metadata too: a name may come once
                new = ~np.isin(event, seen[column.name])
                event, code = event[new], code[new]
            seen[column.name] = event
            key = json.dumps(column.name, ensure_ascii=False)
            yield self._by_row(event, code, [f",{key}:{json.dumps(t, ensure_ascii=False)}" for t in column.texts])

    def _by_row(
        self, event: NDArray[np.int64], code: NDArray[Any], texts: list[str]
    ) -> tuple[NDArray[np.int64], NDArray[Any], pa.Array]:
        row = self._rows(event)
        order = np.argsort(row, kind="stable")
        return row[order], code[order], pa.array(texts, pa.string())

    def counters(self) -> Iterator[pa.Array]:
        """Yield each counter's changes."""
        for counter in self.host.counters:
            head = f'{{"ph":"C","pid":{self.counter_pid},"name":{json.dumps(counter.label, ensure_ascii=False)},"ts":'
            time = _us((counter.time_ps - self.origin_ps) // 1000)
            unit = json.dumps(counter.unit or "value")
            yield _joined(head, time, f',"args":{{{unit}:', counter.value, "}}")


def _arguments_of(columns: list[tuple[NDArray[np.int64], NDArray[Any], pa.Array]], part: slice) -> pa.Array:
    """Return the arguments of some events, as JSON without the braces."""
    parts: list[pa.Array] = []
    count = part.stop - part.start
    for row, code, texts in columns:
        low, high = np.searchsorted(row, [part.start, part.stop])
        if low < high:
            index = np.zeros(count, np.int32)
            none = np.ones(count, np.bool_)
            index[row[low:high] - part.start] = code[low:high]
            none[row[low:high] - part.start] = False
            parts.append(texts.take(pa.array(index, mask=none)))
    if not parts:
        return pa.array([""] * count, pa.string())
    # Each begins with a comma. (Joined by commas with nulls skipped, Arrow leaves out rows that have nothing but nulls.)
    joined = pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="")
    return pc.utf8_slice_codeunits(joined, 1)


def _json_texts(texts: Sequence[str]) -> pa.Array:
    return pa.array([json.dumps(text, ensure_ascii=False) for text in texts], pa.string())


def _joined(*parts: str | pa.Array | NDArray[np.integer[Any]]) -> pa.Array:
    """Join texts, columns of texts and columns of numbers, row by row."""
    columns = [pa.array(part).cast(pa.string()) if isinstance(part, np.ndarray) else part for part in parts]
    return pc.binary_join_element_wise(*columns, "")


def _us(time_ns: NDArray[np.int64]) -> pa.Array:
    """Nanoseconds, not negative, as microseconds with three digits after the point."""
    rest = pc.utf8_lpad(pa.array(time_ns % 1000).cast(pa.string()), 3, "0")
    return pc.binary_join_element_wise(pa.array(time_ns // 1000).cast(pa.string()), rest, ".")
