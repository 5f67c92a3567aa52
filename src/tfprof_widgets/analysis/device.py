"""What ran on the devices: kernels, copies, memsets, collectives, and the op that each belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from .names import UNKNOWN, parse_op

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .events import Trace

# Kinds of device events, by code.
KINDS = (
    "kernel", "memcpy_h2d", "memcpy_d2h", "memcpy_d2d", "memcpy_p2p", "memcpy_other", "memset", "collective", "other",
)  # fmt: skip
KERNEL, MEMCPY_H2D, MEMCPY_D2H, MEMCPY_D2D, MEMCPY_P2P, MEMCPY_OTHER, MEMSET, COLLECTIVE, OTHER = range(len(KINDS))

# CUPTI's collector writes MemcpyH2D, older ones MEMCPYHtoD, ROCm CopyHostToDevice.
_COPY = re.compile(r"(?:(?:hip|cuda)?memcpy|copy(?=(?:host|device)to))", re.I)
_COPY_ENDS = re.compile(r"([hdpa])(?:ost|evice|eer|rray)?(?:to|2)([hdpa])", re.I)
_COPY_KIND = {"hd": MEMCPY_H2D, "dh": MEMCPY_D2H, "dd": MEMCPY_D2D, "pp": MEMCPY_P2P}
# Kernels that exchange data between devices: NCCL's and RCCL's, and XLA's own all-reduce.
_COLLECTIVE = re.compile(r"(?:void )?(?:nccl|rccl|mscclKernel)|.*all_?reduce_?kernel", re.I)
# Bookkeeping that some collectors put on a device's lines: nothing runs in it.
_NOT_WORK = re.compile(r"memory ?alloc|mem(?:ory)? ?free|memory ?residency|unified ?memory|overhead", re.I)
_OP_LINES = ("TensorFlow Ops", "Framework Ops")
_XLA_MODULE = "XlaModule"
_HLO_NUMBER = re.compile(r"(?:\.\d+)+\Z")


@dataclass(frozen=True)
class DeviceEvents:
    """The events on the streams of all devices, in the order of the trace. n events.

    Attributes
    ----------
    event : int64 array (n)
        Index in the trace, ascending.
    plane, line : int32 arrays (n)
        Plane (device) and line (stream).
    kind : int8 array (n)
        Index into `KINDS`. What isn't known to be anything else counts as a kernel: it occupies the device.
    op_code : int32 array (n)
        Index into ``op_names`` and ``op_types``; -1 for an event that nothing attributes to an op.
    op_names, op_types : list of str
        The distinct ops.
    correlation_id : int64 array (n)
        Shared by the host call that launched it; -1 if there is none.
    group_id : int64 array (n)
        Step index that the file gives; -1 if it gives none.
    is_kernel : bool array (n)
        Whether it is a kernel that its profiler described (``kernel_details``).
    is_measured : bool array (n)
        Whether it has a duration. An event whose recorded duration is 0 was not measured: it is in the trace, and counts nowhere,
        neither as a launch nor as an end of the time in which a device was used.
    """

    event: NDArray[np.int64]
    plane: NDArray[np.int32]
    line: NDArray[np.int32]
    kind: NDArray[np.int8]
    op_code: NDArray[np.int32]
    op_names: list[str]
    op_types: list[str]
    correlation_id: NDArray[np.int64]
    group_id: NDArray[np.int64]
    is_kernel: NDArray[np.bool_]
    is_measured: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.event)

    def rows(self, event: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Rows of some events of the trace, and a mask of those that are on a device.

        Parameters
        ----------
        event : int64 array (m)
            Indices in the trace.

        Returns
        -------
        row : int64 array (k)
            Rows of the events that are device events, in the order given.
        found : bool array (m)
            Which ones those are.
        """
        if not len(self.event):
            return np.empty(0, np.int64), np.zeros(len(event), bool)
        row = np.minimum(np.searchsorted(self.event, event), len(self.event) - 1)
        found = self.event[row] == event
        return row[found], found


# Several tools ask for the same trace's device events; they go when the trace goes.
_known: WeakKeyDictionary[Trace, DeviceEvents] = WeakKeyDictionary()


def device_events(trace: Trace) -> DeviceEvents:
    """Find the kernels, copies and other device events of a trace, and the op of each.

    The op comes from the event's ``tf_op``; else from its ``annotation`` (files of TensorFlow 2.4 and before
    2.11 have only that); else, for kernels, from the stored ``TensorFlow Ops`` line, by time. Where XLA ran, the op
    is the one that XLA compiled (stat ``name``), else the HLO op.

    Parameters
    ----------
    trace : Trace
        One host's events.

    Returns
    -------
    DeviceEvents
        Empty if no device has a stream.
    """
    known = _known.get(trace)
    if known is None:
        known = _known[trace] = _device_events(trace)
    return known


def host_launch(trace: Trace, devices: DeviceEvents) -> NDArray[np.int64]:
    """Host event that launched each device event: the last one with its correlation id.

    Returns
    -------
    int64 array (n)
        Index in the trace; -1 where there is none.
    """
    launch = np.full(len(devices), -1, np.int64)
    if not len(devices):
        return launch
    event, correlation = trace.ints("correlation_id")
    on_host = trace.line_is_host[trace.line[event]]
    event, correlation = event[on_host], correlation[on_host]
    # Sorted by id, then by time: of equal ids the last in time comes last.
    order = np.lexsort((trace.start_ps[event], correlation))
    event, correlation = event[order], correlation[order]
    position = np.searchsorted(correlation, devices.correlation_id, side="right") - 1
    if len(event):
        found = (position >= 0) & (correlation[position] == devices.correlation_id) & (devices.correlation_id >= 0)
        launch[found] = event[position[found]]
    return launch


def _device_events(trace: Trace) -> DeviceEvents:
    event = trace.events_of(trace.line_is_stream)
    n = len(event)
    line = trace.line[event]
    partial = DeviceEvents(
        event=event,
        plane=trace.space.line_plane[line],
        line=line,
        kind=np.zeros(n, np.int8),
        op_code=np.full(n, -1, np.int32),
        op_names=[],
        op_types=[],
        correlation_id=np.full(n, -1, np.int64),
        group_id=np.full(n, -1, np.int64),
        is_kernel=np.zeros(n, bool),
        is_measured=trace.duration_ps[event] > 0,
    )
    if not n:
        return partial
    # A kernel's details say more than its name: AMD copies with kernels, and anyone may call theirs "memcpy…".
    partial.is_kernel[partial.rows(trace.owners("kernel_details"))[0]] = True
    partial.kind[:] = _kinds(trace, partial)
    partial.kind[partial.is_kernel & (partial.kind != COLLECTIVE)] = KERNEL
    for name, column in (("correlation_id", partial.correlation_id), ("group_id", partial.group_id)):
        owner, value = trace.ints(name)
        row, found = partial.rows(owner)
        column[row] = value[found]
    _attribute(trace, partial)
    return partial


def _kinds(trace: Trace, devices: DeviceEvents) -> NDArray[np.int8]:
    metas, inverse = np.unique(trace.meta[devices.event], return_inverse=True)
    kind = np.array([kind_of(trace.space.meta_name[m]) for m in metas], np.int8)[inverse]
    if (kind == MEMCPY_OTHER).any():
        owner, code, texts = trace.strings("memcpy_details")
        row, found = devices.rows(owner)
        by_details = np.array([_copy_kind_of_details(text) for text in texts], np.int8)[code[found]]
        unclear = kind[row] == MEMCPY_OTHER
        kind[row[unclear]] = by_details[unclear]
    return kind


def kind_of(name: str) -> int:
    """Kind of a device event, from its name: an index into `KINDS`.

    Parameters
    ----------
    name : str
        Such as ``MemcpyH2D``, ``ncclDevKernel_AllReduce…``, ``volta_sgemm_128x64_nn``.
    """
    copy = _COPY.match(name)
    if copy:
        ends = _COPY_ENDS.match(name, copy.end())
        # Arrays are device memory.
        return _COPY_KIND.get((ends[1] + ends[2]).lower().replace("a", "d"), MEMCPY_OTHER) if ends else MEMCPY_OTHER
    if name[:6].lower() == "memset":
        return MEMSET
    if _COLLECTIVE.match(name):
        return COLLECTIVE
    return OTHER if _NOT_WORK.match(name) else KERNEL


def _copy_kind_of_details(details: str) -> int:
    """Kind of a copy, from the two kinds of memory in ``memcpy_details``."""
    fields = dict(pair.split(":", 1) for pair in details.split() if ":" in pair)
    ends = ""
    for key in ("kind_src", "kind_dst"):
        memory = fields.get(key, "")
        ends += "h" if memory in ("pageable", "pinned") else "d" if memory.startswith(("device", "array")) else "?"
    return _COPY_KIND.get(ends, MEMCPY_OTHER)


# ---- ops ---------------------------------------------------------------------------------------------------


class _OpTable:
    """The distinct ops met, and the code of each."""

    def __init__(self, devices: DeviceEvents) -> None:
        self._names, self._types = devices.op_names, devices.op_types
        self._code: dict[tuple[str, str], int] = {}

    def code(self, name: str, kind: str) -> int:
        if not name:
            return -1
        known = self._code.setdefault((name, kind), len(self._names))
        if known == len(self._names):
            self._names.append(name)
            self._types.append(kind)
        return known


def op_of_annotation(text: str) -> tuple[str, str]:
    """Name and type of the op in a ``tf_op``, ``level 0`` or ``annotation`` stat; empty if it names none.

    An annotation has levels joined by ``::``, each ``name:type`` with ``#key=value,…#`` after it; the op is
    the outermost one.
    """
    outer = text.partition("#")[0]
    if "::" in outer:
        outer = outer.partition("::")[0]
    op = parse_op(outer)
    if op.category == UNKNOWN and ":" not in outer:
        return outer, outer  # such as MakeTensorFromProto: a part of TensorFlow that is its own type
    return op.name, op.type


def _attribute(trace: Trace, devices: DeviceEvents) -> None:
    table = _OpTable(devices)
    _attribute_xla(trace, devices, table)
    for stat in ("tf_op", "level 0", "annotation"):
        owner, code, texts = trace.strings(stat)
        row, found = devices.rows(owner)
        if not len(row):
            continue
        code = code[found]
        todo = devices.op_code[row] < 0
        row, code = row[todo], code[todo]
        used, inverse = np.unique(code, return_inverse=True)
        ops = np.array([table.code(*op_of_annotation(texts[c])) for c in used], np.int32)
        devices.op_code[row] = ops[inverse] if len(used) else -1
    _attribute_by_time(trace, devices, table)


def _attribute_xla(trace: Trace, devices: DeviceEvents, table: _OpTable) -> None:
    """What XLA compiled: ``tf_op`` names only the module, the op is in ``name`` and ``hlo_op``."""
    owner, code, texts = trace.strings("hlo_op")
    row, found = devices.rows(owner)
    if not len(row):
        return
    name_code = np.full(len(devices), -1, np.int64)
    name_owner, names_of, names = trace.strings("name")
    name_row, name_found = devices.rows(name_owner)
    name_code[name_row] = names_of[name_found]
    pairs, inverse = np.unique(np.stack([name_code[row], code[found]]), axis=1, return_inverse=True)
    ops = [table.code(*_xla_op(names[n] if n >= 0 else "", texts[h])) for n, h in zip(pairs[0], pairs[1], strict=True)]
    devices.op_code[row] = np.array(ops, np.int32)[inverse.ravel()]


def _xla_op(name: str, hlo_op: str) -> tuple[str, str]:
    if name:
        op = parse_op(name if ":" in name else f"{name}:")
        return op.name, op.type or name.rsplit("/", 1)[-1]
    inner = hlo_op.rsplit("::", 1)[-1]
    return inner, _HLO_NUMBER.sub("", inner)


def _attribute_by_time(trace: Trace, devices: DeviceEvents, table: _OpTable) -> None:
    """Kernels that say nothing themselves: the stored op that encloses them on the same device."""
    space = trace.space
    is_op_line = np.array([name in _OP_LINES for name in space.line_name], bool) & trace.line_is_derived
    todo = devices.is_kernel & (devices.op_code < 0)
    if not todo.any() or not is_op_line.any():
        return
    for plane in np.unique(devices.plane[todo]):
        ops = trace.events_of(is_op_line & (space.line_plane == plane))
        ops = ops[np.argsort(trace.start_ps[ops], kind="stable")]
        rows = np.flatnonzero(todo & (devices.plane == plane))
        if not len(ops):
            continue
        kernel = devices.event[rows]
        candidate = np.searchsorted(trace.start_ps[ops], trace.start_ps[kernel], side="right") - 1
        op = ops[np.maximum(candidate, 0)]
        encloses = (candidate >= 0) & (trace.end_ps[op] >= trace.end_ps[kernel])
        metas, inverse = np.unique(trace.meta[op[encloses]], return_inverse=True)
        codes = np.array([table.code(*op_of_annotation(space.meta_name[m])) for m in metas], np.int32)
        devices.op_code[rows[encloses]] = codes[inverse]
