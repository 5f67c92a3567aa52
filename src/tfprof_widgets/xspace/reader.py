"""Bytes of one ``*.xplane.pb`` → flat columns.

This is the only module that knows the decoder (ptars). It turns the file into nested Arrow
columns; everything here then works on whole arrays, so the cost does not depend on Python.
"""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from .descriptor import xplane_file
from .stats import Stats, StatVocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Line timestamps are nanoseconds since the profile's start; an old or foreign file may hold
# nanoseconds since 1970 instead. No capture lasts 12 days, so a later one is an epoch time.
_EPOCH_NS = 10**15
# Times beyond this many picoseconds (about 13 days) can only come from damaged bytes.
_LIMIT_PS = 1 << 60


class XSpaceError(ValueError):
    """A file is not a usable profile; the message says what was wrong and what to do."""


@dataclass
class XSpace:
    """One host's profile as flat columns. P planes, L lines, E events, M event metadata.

    Attributes
    ----------
    name : str
        Where it was read from, for messages.
    size_bytes : int
        Length of the (unpacked) file.
    plane_name, plane_id : list of str, int64 array (P)
        Name and device ordinal of each plane.
    plane_stats : list of dict (P)
        Stats of the planes themselves: capabilities of a device, start and stop time.
    line_plane, line_id, line_name, line_timestamp_ns : int32 (L), int64 (L), list of str, int64 (L)
        Plane, thread or stream id, name (``display_name`` where there is one) and start of each line.
    event_line, event_meta : int32 arrays (E)
        Line and event metadata of each event, in the order of the file.
    event_start_ps, event_duration_ps : int64 arrays (E)
        Absolute start (line timestamp plus offset, since the start of the trace) and duration, in picoseconds.
    event_occurrences : int64 array (E) or None
        ``num_occurrences`` of aggregated events (0 for ordinary ones); None if the file has none.
    meta_plane, meta_id, meta_name, meta_display_name : int32 (M), int64 (M), list of str, list of str
        The event metadata of all planes.
    stats, meta_stats : Stats
        The stats of the events, and those shared by all events of a metadata row.
    errors, warnings, hostnames : list of str
        As stored in the file.
    notes : list of str
        The reader's own remarks: what was repaired, and how much.
    time_origin_ns : int
        What was taken off line timestamps that were epoch times; 0 if they were relative already.
    checksum : int
        CRC-32 of the (unpacked) file.
    content : bytes or None
        The (unpacked) file, where it was to be kept.
    """

    name: str
    size_bytes: int
    plane_name: list[str]
    plane_id: NDArray[np.int64]
    plane_stats: list[dict[str, Any]]
    line_plane: NDArray[np.int32]
    line_id: NDArray[np.int64]
    line_name: list[str]
    line_timestamp_ns: NDArray[np.int64]
    event_line: NDArray[np.int32]
    event_meta: NDArray[np.int32]
    event_start_ps: NDArray[np.int64]
    event_duration_ps: NDArray[np.int64]
    event_occurrences: NDArray[np.int64] | None
    meta_plane: NDArray[np.int32]
    meta_id: NDArray[np.int64]
    meta_name: list[str]
    meta_display_name: list[str]
    stats: Stats
    meta_stats: Stats
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hostnames: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    time_origin_ns: int = 0
    checksum: int = 0
    content: bytes | None = None

    @property
    def n_events(self) -> int:
        """Number of events in the file."""
        return len(self.event_start_ps)

    @property
    def hostname(self) -> str:
        """The host's name; empty if the file has none (macOS, old TensorFlow)."""
        return self.hostnames[0] if self.hostnames else ""

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Stats of the ``Task Environment`` plane: start and stop (epoch ns), options (bytes)."""
        for name, stats in zip(self.plane_name, self.plane_stats, strict=True):
            if name == "Task Environment":
                return stats
        return {}


def read(source: bytes | os.PathLike[str] | str, name: str = "", *, keep: bool = False) -> XSpace:
    """Decode one profile.

    Parameters
    ----------
    source : bytes or path
        The bytes of a ``*.xplane.pb``, or its path; gzip is unpacked.
    name : str
        What messages call it; the path by default.
    keep : bool
        Whether to keep the file's bytes, to be saved again: for files that won't be there any more.

    Returns
    -------
    XSpace

    Raises
    ------
    XSpaceError
        If the bytes are no profile: empty, truncated, foreign, or without a single plane.
    FileNotFoundError, PermissionError
        If the path can't be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        name = name or "profile"
    else:
        name = name or os.fspath(source)
        data = Path(source).read_bytes()
    data = unpacked(data, name)
    if not data:
        msg = f"{name}: the file is empty. The profiler may have been killed before it wrote; profile again."
        raise XSpaceError(msg)
    if _is_text(data):
        msg = (
            f"{name}: a text (a web page, a notebook, JSON …), not a TensorFlow profile. What a report was exported to can't be "
            "opened again: give the log directory, the *.xplane.pb file in it, or what report.save() wrote."
        )
        raise XSpaceError(msg)
    try:
        batch = _decoder().list_to_record_batch([data])
    except Exception as error:  # ptars raises ValueError, and PanicException's base differs by version
        raise _damaged(name, error) from error
    size_bytes, checksum, content = len(data), zlib.crc32(data), data if keep else None
    del source, data  # the decoded columns hold all of it: let it go before more is made
    try:
        space = _flatten(batch, name, size_bytes)
    except DecodeError as error:  # of stats, which are decoded there
        raise _damaged(name, error) from error
    space.checksum, space.content = checksum, content
    if not space.plane_name:
        msg = (
            f"{name}: no plane in it, so it is not a TensorFlow profile (or an empty session). "
            "Give the *.xplane.pb file that the profiler wrote under plugins/profile/<run>/."
        )
        raise XSpaceError(msg)
    return space


def unpacked(data: bytes, name: str) -> bytes:
    """Return the bytes of a file, of a gzipped one those in it."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"{name}: the gzip data is damaged ({error}). Copy the file again, or profile again."
        raise XSpaceError(msg) from error


def _damaged(name: str, error: Exception) -> XSpaceError:
    return XSpaceError(
        f"{name}: not a TensorFlow profile, or a damaged one ({error}). Expected the XSpace "
        "message of a *.xplane.pb file; if it was copied, copy it again."
    )


def _is_text(data: bytes) -> bool:
    """Whether bytes are a text's: any profile has control characters (fields' tags) among its first ones."""
    try:
        start = data[:1000].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < 990:  # not just a character that is cut in two
            return False
        start = data[: error.start].decode("utf-8")
    return all(character.isprintable() or character.isspace() for character in start)


@lru_cache(maxsize=1)
def _decoder() -> Any:
    import ptars  # Rust, 4 ms; kept out of `import tfprof_widgets`

    file = xplane_file(stats_as_bytes=True)
    return ptars.HandlerPool([file]).get_for_message(file.message_types_by_name["XSpace"])


def _flatten(batch: pa.RecordBatch, name: str, size_bytes: int) -> XSpace:
    notes: list[str] = []
    planes = batch.column("planes").values
    plane_lines = planes.field("lines")
    lines = plane_lines.values
    line_events = lines.field("events")
    events = line_events.values

    line_of_plane = _offsets(plane_lines)
    event_of_line = _offsets(line_events)
    n_lines, n_events = len(lines), len(events)
    event_of_plane = event_of_line[line_of_plane]

    line_plane = np.repeat(np.arange(len(planes), dtype=np.int32), np.diff(line_of_plane))
    event_line = np.repeat(np.arange(n_lines, dtype=np.int32), np.diff(event_of_line))

    vocabulary = StatVocabulary(planes.field("stat_metadata"), _offsets(planes.field("stat_metadata")))
    stats = Stats(events.field("stats"), _offsets(events.field("stats")), event_of_plane, vocabulary)

    metadata = planes.field("event_metadata")
    meta_of_plane = _offsets(metadata)
    entries = metadata.values
    meta_id = _numbers(entries.field("key")).copy()
    value = entries.field("value")
    meta_name = _texts(value.field("name"))
    meta_display_name = _texts(value.field("display_name"))
    meta_plane = np.repeat(np.arange(len(planes), dtype=np.int32), np.diff(meta_of_plane))

    event_meta, missing = _metadata_rows(_numbers(events.field("metadata_id")), event_of_plane, meta_id, meta_of_plane)
    if missing:
        meta_plane = np.concatenate([meta_plane, np.array([p for p, _ in missing], np.int32)])
        meta_id = np.concatenate([meta_id, np.array([i for _, i in missing], np.int64)])
        meta_name += [f"unknown event {i}" for _, i in missing]
        meta_display_name += [""] * len(missing)
        affected = int(np.count_nonzero(event_meta >= len(meta_id) - len(missing)))
        notes.append(f"{affected:,} of {n_events:,} events name no known event type (damaged metadata).")

    # The rows added for unknown events have no stats.
    meta_stat_offsets = np.pad(_offsets(value.field("stats")), (0, len(missing)), mode="edge")
    meta_stats = Stats(value.field("stats"), meta_stat_offsets, meta_of_plane, vocabulary)

    timestamp_ns, origin_ns = _relative_timestamps(_numbers(lines.field("timestamp_ns")).copy(), notes)
    start_ps = np.repeat(timestamp_ns * 1000, np.diff(event_of_line))
    offset = events.field("offset_ps")
    start_ps += _numbers(offset)
    duration_ps = _numbers(events.field("duration_ps")).copy()  # lets go of the decoded columns
    occurrences = events.field("num_occurrences")

    longest = max(duration_ps.max(initial=0), start_ps.max(initial=0))
    if longest > _LIMIT_PS or start_ps.min(initial=0) < -_LIMIT_PS or duration_ps.min(initial=0) < 0:
        bad = (duration_ps < 0) | (duration_ps > _LIMIT_PS) | (start_ps > _LIMIT_PS) | (start_ps < -_LIMIT_PS)
        duration_ps = np.where(bad, 0, duration_ps)
        start_ps[bad] = np.repeat(timestamp_ns * 1000, np.diff(event_of_line))[bad]
        notes.append(
            f"{int(bad.sum()):,} of {n_events:,} events have impossible times (damaged bytes); "
            "they are kept at the start of their line with no duration."
        )

    display = _texts(lines.field("display_name"))
    return XSpace(
        name=name,
        size_bytes=size_bytes,
        plane_name=_texts(planes.field("name")),
        plane_id=_numbers(planes.field("id")).copy(),
        plane_stats=_plane_stats(planes.field("stats"), vocabulary),
        line_plane=line_plane,
        line_id=_numbers(lines.field("id")).copy(),
        line_name=[shown or plain for shown, plain in zip(display, _texts(lines.field("name")), strict=True)],
        line_timestamp_ns=timestamp_ns,
        event_line=event_line,
        event_meta=event_meta,
        event_start_ps=start_ps,
        event_duration_ps=duration_ps,
        event_occurrences=None if occurrences.null_count == n_events else _numbers(occurrences).copy(),
        meta_plane=meta_plane,
        meta_id=meta_id,
        meta_name=meta_name,
        meta_display_name=meta_display_name,
        stats=stats,
        meta_stats=meta_stats,
        errors=_texts(batch.column("errors").values),
        warnings=_texts(batch.column("warnings").values),
        hostnames=_texts(batch.column("hostnames").values),
        notes=notes,
        time_origin_ns=origin_ns,
    )


def _offsets(lists: pa.ListArray) -> NDArray[np.int32]:
    return np.asarray(lists.offsets)


def _numbers(column: pa.Array) -> NDArray[np.int64]:
    """Arrow integers as int64, unset ones as 0; a view where nothing is unset: copy what is kept, or all decoded columns stay."""
    if column.null_count:
        column = column.fill_null(0)
    return np.asarray(column).view(np.int64)


def _texts(column: pa.Array) -> list[str]:
    """Arrow bytes as str; what is not UTF-8 becomes U+FFFD, an unset value the empty string."""
    try:
        column = column.cast(pa.string())
    except pa.ArrowInvalid:
        return [(value or b"").decode("utf-8", "replace") for value in column.to_pylist()]
    texts: list[str] = column.fill_null("").to_numpy(zero_copy_only=False).tolist()  # faster than `to_pylist`
    return texts


def _metadata_rows(
    ids: NDArray[np.int64],
    event_of_plane: NDArray[np.int32],
    meta_id: NDArray[np.int64],
    meta_of_plane: NDArray[np.int32],
) -> tuple[NDArray[np.int32], list[tuple[int, int]]]:
    """Turn plane-local metadata ids into rows of the common table; list the ids that have no row."""
    rows = np.empty(len(ids), np.int32)
    missing: list[tuple[int, int]] = []
    for plane in range(len(meta_of_plane) - 1):
        events = slice(event_of_plane[plane], event_of_plane[plane + 1])
        wanted = ids[events]
        if not len(wanted):
            continue
        first, last = meta_of_plane[plane], meta_of_plane[plane + 1]
        keys = meta_id[first:last]
        found = lookup(keys, np.arange(first, last, dtype=np.int32), wanted)
        rows[events] = found
        lost = found < 0
        if lost.any():
            unknown, inverse = np.unique(wanted[lost], return_inverse=True)
            rows[events][lost] = len(meta_id) + len(missing) + inverse
            missing += [(plane, int(i)) for i in unknown]
    return rows, missing


def lookup(
    keys: NDArray[np.int64], values: NDArray[np.signedinteger[Any]], wanted: NDArray[np.int64]
) -> NDArray[np.signedinteger[Any]]:
    """Value of each wanted key, that of the last one if a key is repeated; -1 if absent."""
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), -1, values.dtype)
    low, high = min(int(keys.min()), 0), int(keys.max())
    if high - low < 4 * len(keys) + 1024:  # dense ids (the usual case): a direct table
        table = np.full(high - low + 2, -1, values.dtype)
        table[keys - low] = values
        if low == 0 and int(wanted.view(np.uint64).max()) <= high:  # negative ones are huge as unsigned ones
            return table[wanted]
        inside = (wanted >= low) & (wanted <= high)
        return table[np.where(inside, wanted - low, high - low + 1)]
    order = np.argsort(keys, kind="stable")
    position = np.searchsorted(keys[order], wanted, side="right") - 1
    found = order[np.maximum(position, 0)]
    return np.where((position >= 0) & (keys[found] == wanted), values[found], values.dtype.type(-1))


def _relative_timestamps(timestamp_ns: NDArray[np.int64], notes: list[str]) -> tuple[NDArray[np.int64], int]:
    """Bring epoch timestamps to the start of the trace; return also what was taken off."""
    epoch = timestamp_ns > _EPOCH_NS
    origin = 0
    if epoch.any():
        origin = int(timestamp_ns[epoch].min())
        timestamp_ns = np.where(epoch, timestamp_ns - origin, timestamp_ns)
    wild = (timestamp_ns > _EPOCH_NS) | (timestamp_ns < -_EPOCH_NS)
    if wild.any():
        notes.append(f"{int(wild.sum())} of {len(wild)} lines have impossible timestamps (damaged bytes); taken as 0.")
        timestamp_ns = np.where(wild, 0, timestamp_ns)
    return timestamp_ns, origin


def _plane_stats(lists: pa.ListArray, vocabulary: StatVocabulary) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for plane, stats in enumerate(lists.to_pylist()):
        values: dict[str, Any] = {}
        for stat in stats or []:
            key = vocabulary.name(plane, stat["metadata_id"])
            values[key] = vocabulary.value(plane, stat)
        result.append(values)
    return result
