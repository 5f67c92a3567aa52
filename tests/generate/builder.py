"""A small fluent builder of XSpace bytes.

>>> space = Space(hostname="worker-0")
>>> line = space.plane("/host:CPU").line("python", id=-7)
>>> step = line.event("train", 100, 50, step_num=3, _r=1)        # starts at 100 µs, lasts 50 µs
>>> data = space.bytes()

Times are microseconds since the start of the trace; the builder keeps the tables of event and stat
metadata. A stat's type follows from the Python value: ``int`` is int64 (uint64 beyond its range),
``float`` double, ``str`` a reference into the metadata (as TensorFlow stores the arguments of a TraceMe),
``bytes`` bytes, ``None`` a stat with no value; `UInt`, `Text`, `Ref` and `Compressed` ask for the others.
Names may be ``bytes`` too, to store what is not UTF-8. What the builder doesn't do for you can be done
to the protobuf messages themselves: ``space.message``, ``plane.message``, ``line.message``, ``event.message``.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import message_factory

from tfprof_widgets.xspace.descriptor import xplane_file

if TYPE_CHECKING:
    from collections.abc import Mapping

PS_PER_US = 1_000_000


class UInt(int):
    """An integer stat to be stored as uint64."""


class Text(str):
    """A string stat to be stored in place (``str_value``)."""


class Ref(int):
    """A reference to a stat metadata id, stored as it is (to make dangling ones)."""


class Compressed(str):
    """A string stat to be stored gzipped (``compressed_str``)."""


@lru_cache(maxsize=1)
def message_classes() -> dict[str, Any]:
    """Return the protobuf class of each XSpace message, by its name."""
    file = xplane_file()
    return {name: message_factory.GetMessageClass(kind) for name, kind in file.message_types_by_name.items()}


def encode(text: str | bytes) -> bytes:
    """Return the bytes of a name."""
    return text if isinstance(text, bytes) else text.encode()


def to_ps(time_us: float) -> int:
    """Microseconds as whole picoseconds; exact for integers of any size."""
    return time_us * PS_PER_US if isinstance(time_us, int) else round(time_us * PS_PER_US)


class Space:
    """A profile of one host.

    Parameters
    ----------
    hostname : str
        The host's name; none is stored if empty.
    """

    def __init__(self, hostname: str = "") -> None:
        self.message = message_classes()["XSpace"]()
        self.planes: list[Plane] = []
        if hostname:
            self.message.hostnames.append(encode(hostname))

    def plane(self, name: str | bytes, id: int = 0, stats: Mapping[str, Any] | None = None) -> Plane:
        """Add a plane; ``stats`` are those of the plane itself."""
        plane = Plane(self.message.planes.add(id=id, name=encode(name)))
        for key, value in (stats or {}).items():
            plane.put(plane.message.stats, key, value)
        self.planes.append(plane)
        return plane

    def error(self, text: str | bytes) -> Space:
        """Add one of the profiler's errors."""
        self.message.errors.append(encode(text))
        return self

    def warning(self, text: str | bytes) -> Space:
        """Add one of the profiler's warnings."""
        self.message.warnings.append(encode(text))
        return self

    @property
    def n_events(self) -> int:
        """Number of events of all lines."""
        return sum(len(line.events) for plane in self.message.planes for line in plane.lines)

    def bytes(self) -> bytes:
        """Return the file's content."""
        return self.message.SerializeToString(deterministic=True)

    def gzip(self) -> bytes:
        """Return the file's content, gzipped."""
        return gzip.compress(self.bytes(), mtime=0)

    def save(self, path: Path | str) -> Path:
        """Write the file, making its directory, and return its path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.bytes())
        return path


class Plane:
    """A device, the host's threads, or other data. Made by `Space.plane`."""

    def __init__(self, message: Any) -> None:
        self.message = message
        self._events: dict[bytes, int] = {}
        self._stats: dict[bytes, int] = {}
        self._used: set[int] = set()

    def line(
        self,
        name: str | bytes = "",
        id: int = 0,
        timestamp_ns: int = 0,
        display_name: str | bytes = "",
        display_id: int = 0,
    ) -> Line:
        """Add a thread or stream. Events are stored relative to its ``timestamp_ns``."""
        message = self.message.lines.add(
            name=encode(name),
            id=id,
            timestamp_ns=timestamp_ns,
            display_name=encode(display_name),
            display_id=display_id,
        )
        return Line(self, message)

    def event_type(
        self,
        name: str | bytes,
        display_name: str | bytes = "",
        stats: Mapping[str, Any] | None = None,
        id: int | None = None,
    ) -> int:
        """Id of the event metadata of a name, made at its first use; ``stats`` are shared by its events."""
        key = encode(name)
        known = self._events.get(key)
        if known is not None and id is None:
            return known
        number = id if id is not None else next(i for i in _count(len(self._events) + 1) if i not in self._used)
        self._events[key] = number
        self._used.add(number)
        entry = self.message.event_metadata.add(key=number)
        entry.value.id = number
        entry.value.name = key
        if display_name:
            entry.value.display_name = encode(display_name)
        for stat, value in (stats or {}).items():
            self.put(entry.value.stats, stat, value)
        return number

    def display_ops(self) -> None:
        """Give the event types that are ops or iterators their display names, as the profiler does."""
        for entry in self.message.event_metadata:
            name, colon, kind = entry.value.name.partition(b":")
            if name == b"Iterator":
                entry.value.display_name = b"Iterator::" + entry.value.name.rpartition(b"::")[2]
            elif colon and kind[:1].isalpha() and b" " not in name + kind:
                entry.value.display_name = kind

    def stat_type(self, name: str | bytes) -> int:
        """Id of the stat metadata of a name (or of a text that is referred to), made at its first use."""
        key = encode(name)
        number = self._stats.get(key)
        if number is None:
            number = self._stats[key] = len(self._stats) + 1
            entry = self.message.stat_metadata.add(key=number)
            entry.value.id = number
            entry.value.name = key
        return number

    def put(self, stats: Any, name: str | bytes, value: Any) -> None:
        """Add one stat to a repeated field of stats; its type follows from the value's."""
        stat = stats.add(metadata_id=self.stat_type(name))
        if value is None:
            return
        if isinstance(value, Ref):
            stat.ref_value = value
        elif isinstance(value, UInt):
            stat.uint64_value = value
        elif isinstance(value, bool | int):
            if value >= 1 << 63:
                stat.uint64_value = value
            else:
                stat.int64_value = int(value)  # a bool is an int, but not to protobuf
        elif isinstance(value, float):
            stat.double_value = value
        elif isinstance(value, Compressed):
            stat.compressed_str = gzip.compress(value.encode(), mtime=0)
        elif isinstance(value, Text):
            stat.str_value = value.encode()
        elif isinstance(value, str):
            stat.ref_value = self.stat_type(value)
        elif isinstance(value, bytes):
            stat.bytes_value = value
        else:
            msg = f"no stat type for {value!r}"
            raise TypeError(msg)


class Line:
    """A thread or a stream. Made by `Plane.line`."""

    def __init__(self, plane: Plane, message: Any) -> None:
        self.plane = plane
        self.message = message

    def event(
        self,
        name: str | bytes,
        start_us: float,
        duration_us: float = 0,
        /,
        stats: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Event:
        """Add an event; stats by keyword, or in ``stats`` where their names are no identifiers."""
        message = self.message.events.add(
            metadata_id=self.plane.event_type(name),
            offset_ps=to_ps(start_us) - self.message.timestamp_ns * 1000,
        )
        if duration_us:
            message.duration_ps = to_ps(duration_us)
        event = Event(self, message)
        return event.stats(**(stats or {}), **more)

    def aggregate(self, name: str | bytes, occurrences: int, duration_us: float, /, **stats: Any) -> Event:
        """Add an aggregated event: a number of occurrences and their total time, but no start."""
        message = self.message.events.add(
            metadata_id=self.plane.event_type(name), num_occurrences=occurrences, duration_ps=to_ps(duration_us)
        )
        return Event(self, message).stats(**stats)


class Event:
    """One event. Made by `Line.event`."""

    def __init__(self, line: Line, message: Any) -> None:
        self.line = line
        self.message = message

    def stats(self, **stats: Any) -> Event:
        """Add more stats."""
        for name, value in stats.items():
            self.line.plane.put(self.message.stats, name, value)
        return self


def _count(start: int) -> Any:
    while True:
        yield start
        start += 1
