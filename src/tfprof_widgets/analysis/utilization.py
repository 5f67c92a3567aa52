"""How well devices were used: busy and idle time, the gaps between kernels, and the precision of what they computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .device import (
    COLLECTIVE,
    MEMCPY_D2D,
    MEMCPY_D2H,
    MEMCPY_H2D,
    MEMCPY_OTHER,
    MEMCPY_P2P,
    MEMSET,
    OTHER,
    DeviceEvents,
    device_events,
)
from .intervals import layered_union_ps, overlapping
from .names import search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .events import Trace

# Neither moves nor clears data for its own sake: everything else computes.
_NOT_COMPUTE = (MEMCPY_H2D, MEMCPY_D2H, MEMCPY_D2D, MEMCPY_P2P, MEMCPY_OTHER, MEMSET, COLLECTIVE, OTHER)
# XProf looks for `half` and `fp16`, so that bfloat16 counts as 32 bits there; it has 16.
_HALF_SHAPE = r"\b(half|bfloat16|bf16|f16)\b"
# Whole words only, and in their own case: a kernel may be a functor of `HalfPixelScaler`, or XLA's `loop_add_fusion_16816`.
_HALF_NAME = (
    r"(?:[^A-Za-z0-9_]|__|rocblas_)half(?:[248]|_t)?(?:$|[^A-Za-z0-9_])"  # a C++ type
    r"|(?:Eigen4|6__|7__|cutlass6)half|bfloat16|_Float16"  # mangled ones, and those whose names hold nothing else
    r"|(?:^|[^A-Za-z])(?:b?fp16|bf16|FP16|BF16)|(?:^|[^A-Za-z0-9])f16"
    r"|(?:^|[^A-Za-z])(?:[hs](?:884|16816|161616)|h1688)(?:$|[^0-9])"  # Tensor Core instructions that take nothing else
    r"|(?:^|[^A-Za-z])h(?:gemm|cudnn)"
    r"|nvjet_(?:sm\d+_)?[ht]s[hst]_"  # cuBLAS on Hopper and later: h is half, t bfloat16
    r"|\bCijk_[A-Za-z]+_[A-Za-z]+_[HB][A-Z]*_"  # AMD's Tensile: likewise H and B
)
_LONGEST_GAPS = 20
# Bounds of the histogram of gaps, in µs: a launch takes a few, a stall milliseconds.
GAP_BOUNDS_US = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 10_000.0, np.inf)


@dataclass(frozen=True)
class Utilization:
    """Use of the devices of one host.

    Attributes
    ----------
    devices : DataFrame
        One row a device with events: ``host``, ``device``, ``window_ms`` (its first event to its last), ``busy_ms`` (at
        least one stream at work), ``idle_ms``, ``busy_pct``, ``idle_pct`` (of the window), ``compute_16bit_ms``,
        ``compute_32bit_ms`` (time that computes; where both run, 16-bit), ``gaps``, ``longest_gap_us``.
    gap_histogram : DataFrame
        One row a device and class of gap length: ``device``, ``from_us``, ``to_us``, ``gaps``, ``total_us``.
    longest_gaps : DataFrame
        The longest gaps of all devices: ``device``, ``start_ms``, ``duration_us``, ``before`` and ``after`` (names of the
        device's events on either side), ``host_activity`` (what took most of the gap on the thread that runs Python; empty
        if nothing was recorded there), ``host_activity_pct`` (its share of the gap).
    """

    devices: pd.DataFrame
    gap_histogram: pd.DataFrame
    longest_gaps: pd.DataFrame


def precision(used: Sequence[Utilization]) -> dict[str, float]:
    """Share of 16-bit and of 32-bit compute over the devices of all hosts.

    Returns
    -------
    dict
        ``16-bit`` and ``32-bit`` → percent, which sum to 100; empty if nothing computed.
    """
    half = sum(float(u.devices["compute_16bit_ms"].sum()) for u in used)
    single = sum(float(u.devices["compute_32bit_ms"].sum()) for u in used)
    total = half + single
    return {"16-bit": 100 * half / total, "32-bit": 100 * single / total} if total else {}


def utilization(trace: Trace, devices: DeviceEvents | None = None) -> Utilization:
    """Measure the use of each device.

    Parameters
    ----------
    trace : Trace
        One host's events.
    devices : DeviceEvents, optional
        Its device events, if they are at hand.

    Returns
    -------
    Utilization
        Empty tables if no device has events.
    """
    devices = device_events(trace) if devices is None else devices
    if not len(devices):
        return _nothing()
    start, end = trace.start_ps[devices.event], trace.end_ps[devices.event]
    is_half = _is_half(trace, devices)
    is_compute = ~np.isin(devices.kind, _NOT_COMPUTE)
    bounds = np.array(GAP_BOUNDS_US)
    rows, histograms, gaps = [], [], []
    for plane in np.unique(devices.plane):
        at = _at_work(devices, plane, start, end)
        if not len(at):
            continue
        name = trace.space.plane_name[plane]
        gap_start, gap_end, before, after = _gaps(start[at], end[at])
        gap_us = (gap_end - gap_start) / 1e6
        window = int(end[at].max() - start[at].min())
        idle = int((gap_end - gap_start).sum())
        layer = np.where(is_compute[at], np.where(is_half[at], 0, 1), 2).astype(np.int8)
        half, single, _ = layered_union_ps(np.zeros(len(at), np.int64), start[at], end[at], layer, 1, 3)[0]
        rows.append(
            {
                "host": trace.host,
                "device": name,
                "window_ms": window / 1e9,
                "busy_ms": (window - idle) / 1e9,
                "idle_ms": idle / 1e9,
                "busy_pct": 100 * (window - idle) / window,
                "idle_pct": 100 * idle / window,
                "compute_16bit_ms": half / 1e9,
                "compute_32bit_ms": single / 1e9,
                "gaps": len(gap_us),
                "longest_gap_us": gap_us.max() if len(gap_us) else 0.0,
            }
        )
        bucket = np.searchsorted(bounds, gap_us, side="right") - 1
        n_classes = len(bounds) - 1
        histograms.append(
            {
                "device": _repeated(name, n_classes),
                "from_us": bounds[:-1],
                "to_us": bounds[1:],
                "gaps": np.bincount(bucket, minlength=n_classes)[:n_classes],
                "total_us": np.bincount(bucket, weights=gap_us, minlength=n_classes)[:n_classes],
            }
        )
        longest = np.argsort(-gap_us, kind="stable")[:_LONGEST_GAPS]
        meta = trace.meta[devices.event[at]]
        gaps.append(
            {
                "device": _repeated(name, len(longest)),
                "start_ps": gap_start[longest],
                "end_ps": gap_end[longest],
                "before": meta[before[longest]],
                "after": meta[after[longest]],
            }
        )
    if not rows:
        return _nothing()
    devices_table = pd.DataFrame({name: [row[name] for row in rows] for name in rows[0]})
    return Utilization(devices_table, pd.DataFrame(_joined(histograms)), _longest_gaps(trace, _joined(gaps)))


@dataclass(frozen=True)
class Gaps:
    """Times within steps in which a device has nothing to do. G gaps, in the order of the steps.

    Attributes
    ----------
    start_ps, end_ps : int64 arrays (G)
        Cut off where the step begins and ends.
    device, before, after : object arrays (G)
        Name of the device, and of its events on either side of the gap.
    """

    start_ps: NDArray[np.int64]
    end_ps: NDArray[np.int64]
    device: NDArray[np.object_]
    before: NDArray[np.object_]
    after: NDArray[np.object_]


def gaps_in_steps(trace: Trace, steps: pd.DataFrame, least_ps: float) -> Gaps:
    """Find the gaps of the devices within their steps.

    Parameters
    ----------
    trace : Trace
        One host's events.
    steps : DataFrame
        Its steps: ``device``, ``start_ms``, ``duration_ms``.
    least_ps : float
        Shorter ones are left out.

    Returns
    -------
    Gaps
    """
    devices = device_events(trace)
    start, end = trace.start_ps[devices.event], trace.end_ps[devices.event]
    names = np.array(trace.space.meta_name, object)
    parts = []
    for plane in np.unique(devices.plane):
        at = _at_work(devices, plane, start, end)
        name = trace.space.plane_name[plane]
        mine = steps[steps["device"] == name]
        if not len(at) or mine.empty:
            continue
        step_start = np.rint(mine["start_ms"].to_numpy() * 1e9).astype(np.int64)
        step_end = step_start + np.rint(mine["duration_ms"].to_numpy() * 1e9).astype(np.int64)
        # Steps whose kernels overlap: their common time is that of the first.
        step_start[1:] = np.maximum(step_start[1:], np.maximum.accumulate(step_end)[:-1])
        gap_start, gap_end, before, after = _gaps(start[at], end[at])
        gap, row = overlapping(gap_start, gap_end, step_start, step_end)
        low, high = np.maximum(gap_start[gap], step_start[row]), np.minimum(gap_end[gap], step_end[row])
        long = high - low >= least_ps
        meta = trace.meta[devices.event[at]]
        around = (names[meta[side[gap[long]]]] for side in (before, after))
        parts.append((low[long], high[long], _repeated(name, int(long.sum())), *around))
    if not parts:
        return Gaps(*np.empty((2, 0), np.int64), *np.empty((3, 0), object))
    return Gaps(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _at_work(
    devices: DeviceEvents, plane: int, start_ps: NDArray[np.int64], end_ps: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows of a device's events in which it works."""
    return np.flatnonzero((devices.plane == plane) & (end_ps > start_ps) & (devices.kind != OTHER))


def _repeated(text: str, n: int) -> NDArray[np.object_]:
    return np.full(n, text, object)


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _longest_gaps(trace: Trace, gaps: dict[str, NDArray[Any]]) -> pd.DataFrame:
    """The longest of some gaps, and what the host did meanwhile."""
    longest = np.argsort(gaps["start_ps"] - gaps["end_ps"], kind="stable")[:_LONGEST_GAPS]
    device, start, end, before, after = (
        gaps[name][longest] for name in ("device", "start_ps", "end_ps", "before", "after")
    )
    activity, share = host_activity(trace, start, end)
    return pd.DataFrame(
        {
            "device": device,
            "start_ms": start / 1e9,
            "duration_us": (end - start) / 1e6,
            "before": [trace.space.meta_name[m] for m in before],
            "after": [trace.space.meta_name[m] for m in after],
            "host_activity": activity,
            "host_activity_pct": share,
        }
    )


def _nothing() -> Utilization:
    text, number = pd.Series(dtype="str").array, np.empty(0)
    numbers = ("window_ms", "busy_ms", "idle_ms", "busy_pct", "idle_pct", "compute_16bit_ms", "compute_32bit_ms")
    devices = {"host": text, "device": text, **dict.fromkeys((*numbers, "gaps", "longest_gap_us"), number)}
    histogram = {"device": text, **dict.fromkeys(("from_us", "to_us", "gaps", "total_us"), number)}
    gaps = {"device": text, "start_ms": number, "duration_us": number, "before": text, "after": text}
    gaps |= {"host_activity": text, "host_activity_pct": number}
    return Utilization(pd.DataFrame(devices), pd.DataFrame(histogram), pd.DataFrame(gaps))


def _gaps(
    start_ps: NDArray[np.int64], end_ps: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Times at which no interval is active: their start and end, and the interval that ends and begins each."""
    order = np.argsort(start_ps, kind="stable")
    start, end = start_ps[order], end_ps[order]
    reach = np.maximum.accumulate(end)
    free = np.flatnonzero(start[1:] > reach[:-1])
    # The interval that reaches furthest is the last one to have raised the running maximum.
    raised = np.concatenate([[True], reach[1:] > reach[:-1]])
    last_raised = np.maximum.accumulate(np.where(raised, np.arange(len(end)), 0))
    return reach[free], start[free + 1], order[last_raised[free]], order[free + 1]


def _is_half(trace: Trace, devices: DeviceEvents) -> NDArray[np.bool_]:
    """Device events that work on 16-bit numbers: by the shapes of their op, else by their own name."""
    metas, inverse = np.unique(trace.meta[devices.event], return_inverse=True)
    by_name = search([trace.space.meta_name[m] for m in metas], _HALF_NAME)[inverse]
    owner, code, texts = trace.strings("shape")
    row, found = devices.rows(owner)
    if not len(row):
        return by_name
    has_half = search(texts, _HALF_SHAPE)
    says = np.array([bool(text) for text in texts], bool)
    codes = code[found]
    by_name[row[says[codes]]] = has_half[codes[says[codes]]]
    return by_name


def host_activity(
    trace: Trace, start_ps: NDArray[np.int64], end_ps: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.float64]]:
    """Name of the main thread's outermost event that covers most of each interval, and its share in percent.

    Marks of steps don't count: that it happened within a step tells nothing.
    """
    names, share = [""] * len(start_ps), np.zeros(len(start_ps))
    if trace.main_line < 0:
        return names, share
    first, end = trace.line_first_event[trace.main_line : trace.main_line + 2]
    rows = first + np.flatnonzero((trace.depth[first:end] <= 1) & (trace.duration_ps[first:end] > 0))
    is_mark = np.zeros(len(trace), np.bool_)
    is_mark[trace.owners("step_num")] = True
    # Depth first: the last event of depth 0 until here is the parent of one below it.
    root = np.maximum.accumulate(np.where(trace.depth[rows] == 0, rows, -1))
    outer = rows[~is_mark[rows] & ((rows == root) | is_mark[root])]
    outer_start, outer_end = trace.start_ps[outer], trace.end_ps[outer]
    for i, (start, end) in enumerate(zip(start_ps, end_ps, strict=True)):
        low, high = np.searchsorted(outer_end, start, side="right"), np.searchsorted(outer_start, end)
        if low < high:
            covered = np.minimum(outer_end[low:high], end) - np.maximum(outer_start[low:high], start)
            best = int(np.argmax(covered))
            names[i] = trace.space.meta_name[trace.meta[outer[low + best]]]
            share[i] = 100 * covered[best] / (end - start)
    return names, share
