"""What the profiler really recorded, as seen in the profile, beside what it was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .device import device_events
from .overview import device_planes

if TYPE_CHECKING:
    from ..xspace import XSpace
    from .events import Trace

# Fields of the stored message ProfileOptions.
_HOST_LEVEL, _DEVICE_LEVEL, _PYTHON_LEVEL = 2, 3, 4


class Asked(Protocol):
    """What the profiler was asked for; `session.Options` is one."""

    @property
    def host_level(self) -> int:
        """Detail of the host's trace."""

    @property
    def python(self) -> bool:
        """Whether calls of Python functions are traced."""

    @property
    def device_level(self) -> int:
        """Whether devices are traced: 1 or 0."""


@dataclass(frozen=True)
class Recorded:
    """What one host's profile holds.

    Attributes
    ----------
    host_level, device_level : int or None
        The tracer levels that took effect, as newer versions of TensorFlow store them; None if they are not in the file.
    threads, host_events, python_calls : int
        Threads and events of the host, and how many of these are calls of Python functions.
    devices, active_devices, device_events : int
        Accelerators with a plane, those with events, and their events.
    dropped : int
        Events that the profiler says it has dropped.
    unmeasured : int
        Events on streams of devices whose recorded duration is 0: they count in no table.
    """

    host_level: int | None
    device_level: int | None
    threads: int
    host_events: int
    python_calls: int
    devices: int
    active_devices: int
    device_events: int
    dropped: int
    unmeasured: int


def recorded(trace: Trace) -> Recorded:
    """Count what a host's profile holds."""
    space = trace.space
    levels = stored_levels(space)
    n_planes = len(space.plane_name)
    events_of_line = np.bincount(space.event_line, minlength=len(space.line_plane))
    events_of_plane = np.bincount(space.line_plane, weights=events_of_line, minlength=n_planes).astype(np.int64)
    is_host = np.array([name.startswith("/host:") for name in space.plane_name], bool)
    threads = is_host[space.line_plane] & (events_of_line > 0) if n_planes else np.zeros(0, bool)
    # Names of Python calls begin with a dollar sign.
    is_python = np.array([name.startswith("$") for name in space.meta_name], bool)
    devices = device_planes(trace)
    return Recorded(
        host_level=levels.get(_HOST_LEVEL, 0) if levels else None,
        device_level=levels.get(_DEVICE_LEVEL, 0) if levels else None,
        threads=int(threads.sum()),
        host_events=int(events_of_plane[is_host].sum()),
        python_calls=int(is_python[space.event_meta].sum()) if is_python.any() else 0,
        devices=len(devices),
        active_devices=int((events_of_plane[devices] > 0).sum()) if devices else 0,
        device_events=int(events_of_plane[devices].sum()) if devices else 0,
        dropped=sum(_count(stats.get("dropped_traces")) for stats in space.plane_stats),
        unmeasured=int((~device_events(trace).is_measured).sum()),
    )


def stored_levels(space: XSpace) -> dict[int, int]:
    """Return the fields of the options that took effect, by number; empty if the file doesn't tell."""
    from google.protobuf import unknown_fields
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.message import DecodeError

    stored = next((stats["profile_options"] for stats in space.plane_stats if "profile_options" in stats), None)
    if not isinstance(stored, bytes):
        return {}
    try:
        # Its own class is TensorFlow's; read as an empty message, all its fields are unknown ones.
        fields: Any = unknown_fields.UnknownFieldSet(Empty.FromString(stored))
    except DecodeError:
        return {}
    return {field.field_number: field.data for field in fields if isinstance(field.data, int)}


def ignored(found: Sequence[Recorded], asked: Asked) -> list[str]:
    """Say which options the profiles show not to have been followed; empty if none."""
    said = []
    for label, level, levels in (
        ("host level", asked.host_level, [one.host_level for one in found]),
        ("device level", asked.device_level, [one.device_level for one in found]),
    ):
        others = sorted({effective for effective in levels if effective is not None and effective != level})
        if others:
            said.append(f"{label} {level} was asked for, {' and '.join(map(str, others))} was recorded")
    if asked.python and not any(one.python_calls for one in found):
        said.append("Python calls were asked for, none was recorded")
    return said


def recorded_rows(traces: Sequence[Trace], asked: Asked | None) -> dict[str, str]:
    """Describe what was recorded, label by label, and where that is not what was asked for.

    Parameters
    ----------
    traces
        One a host.
    asked
        None where a saved profile was opened: what it was asked for is not known then.
    """
    found = [recorded(trace) for trace in traces]
    threads, events = sum(one.threads for one in found), sum(one.host_events for one in found)
    levels = sorted({one.host_level for one in found if one.host_level is not None})
    host = f"{events:,} event{_s(events)} on {threads:,} thread{_s(threads)}"
    if levels:
        host += f", level {' and '.join(map(str, levels))}"
        if asked is not None and levels != [asked.host_level]:
            host += f" ({asked.host_level} was asked for)"
    calls = sum(one.python_calls for one in found)
    python = f"{calls:,} call{_s(calls)}" if calls else "none"
    if asked is not None and asked.python != bool(calls):
        python += " (though asked for)" if asked.python else " (not asked for)"
    elif not calls and asked is not None:
        python = "none (not asked for)"
    devices, active = sum(one.devices for one in found), sum(one.active_devices for one in found)
    if devices:
        on_devices = sum(one.device_events for one in found)
        device = f"{on_devices:,} event{_s(on_devices)} on {active} of {devices} device{_s(devices)}"
    else:
        device = "none" if asked is None or asked.device_level else "none (not asked for)"
    return {"Host trace": host, "Python calls": python, "Device trace": device}


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _s(number: int) -> str:
    return "" if number == 1 else "s"
