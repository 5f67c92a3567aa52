"""The overview page's numbers: average step time and where it goes, top ops, the environment of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .in_words import described, ms
from .op_stats import IDLE, UNATTRIBUTED
from .steps import CATEGORIES, CATEGORY_COLUMNS, CATEGORY_LABELS, Steps, rank_of_kind
from .throughput import examples_per_s
from .utilization import Utilization, precision, utilization

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .events import Trace

_TOP_OPS = 10
# Kinds are shown in this order, then by total time: training is what people profile.
_STEP_IN_A_SENTENCE = {"train": "training step", "test": "test step", "predict": "prediction step", "step": "step"}
_IN_A_SENTENCE = {"other": "everything else (Python among it)"}
_NVIDIA_BY_CAPABILITY = (
    (3, "Fermi"), (5, "Kepler"), (6, "Maxwell"), (7, "Pascal"), (7.5, "Volta"), (8, "Turing"), (8.9, "Ampere"),
    (9, "Ada Lovelace"), (10, "Hopper"), (13, "Blackwell"),
)  # fmt: skip


@dataclass(frozen=True)
class Overview:
    """What the overview page shows.

    Attributes
    ----------
    step_time : DataFrame
        One row a kind of step, training first: ``kind``, ``steps`` (averaged ones), ``left_out``, ``mean_ms``, ``std_ms`` (sample standard
        deviation; NaN for one step), ``min_ms``, ``max_ms``, ``median_ms``, ``all_mean_ms`` (with those left out), and the mean
        of each category (``compilation_ms`` … ``other_ms``, which sum to ``mean_ms``). With several devices a step takes as long as
        its slowest device's, whose breakdown it gets.
    top_ops : DataFrame
        The ten ops with the most self time, on the device where there is one, else on the host: ``name``, ``category``, ``self_time_us``,
        ``self_time_pct`` (of all ops of that side), ``cumulative_pct``, ``occurrences``, ``host_or_device``.
    environment : dict
        Label → text, in the order to show.
    precision : dict
        ``16-bit`` and ``32-bit`` → percent of the devices' compute time; empty without devices.
    utilization : list of Utilization
        Busy and idle time of each host's devices, and the gaps between their kernels.
    examples_per_s : float or None
        Of all hosts; None where the file doesn't tell the batch size.
    eager_pct : dict
        ``host`` and ``device`` → share of the ops' self time that ran eagerly, in percent.
    op_share_pct : dict
        ``host`` and ``device`` → share of the executions of ops that ran there, in percent (IDLE and unattributed kernels apart).
    statement : str
        One sentence on where the time of a step goes.
    notes : list of str
        What the reader of the numbers should know.
    unseen_devices : int
        Devices that took part, where nothing was recorded of any of them.
    host_step_time : dict
        Host → `step_time` of its steps alone; empty for a run on one host.
    """

    step_time: pd.DataFrame
    top_ops: pd.DataFrame
    environment: dict[str, str]
    statement: str
    notes: list[str] = field(default_factory=list)
    precision: dict[str, float] = field(default_factory=dict)
    utilization: list[Utilization] = field(default_factory=list)
    examples_per_s: float | None = None
    eager_pct: dict[str, float] = field(default_factory=dict)
    op_share_pct: dict[str, float] = field(default_factory=dict)
    unseen_devices: int = 0
    host_step_time: dict[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def device_busy_pct(self) -> float | None:
        """Share of the devices' windows in which they were busy, in percent; None without devices."""
        devices = pd.concat([u.devices for u in self.utilization]) if self.utilization else pd.DataFrame()
        if devices.empty or not devices["window_ms"].sum():
            return None
        return float(100 * devices["busy_ms"].sum() / devices["window_ms"].sum())

    def to_frame(self) -> pd.DataFrame:
        """Return the step times as a table (what `step_time` holds)."""
        return self.step_time

    def __repr__(self) -> str:
        return described(self, self.statement)


def overview(
    traces: Sequence[Trace], steps: Sequence[Steps], ops: pd.DataFrame, versions: dict[str, str] | None = None
) -> Overview:
    """Summarise a run.

    Parameters
    ----------
    traces : sequence of Trace
        One for each host.
    steps : sequence of Steps
        Theirs, in the same order.
    ops : DataFrame
        The op table of all hosts (`op_stats`).
    versions : dict, optional
        Versions known from the capture (``TensorFlow`` → ``2.21.0``).

    Returns
    -------
    Overview
    """
    step_time = _step_time(steps)
    devices, active = _count_devices(traces)
    notes = list(dict.fromkeys(note for s in steps for note in s.notes))
    between_ms = sum(s.between_runs_ms for s in steps)
    if between_ms > 0:
        notes.append(
            f"{between_ms:.1f} ms lie between runs of steps (start of an epoch, validation) and are charged to none."
        )
    if not active and devices and len(step_time) and step_time["host_compute_ms"].iloc[0] > 0:
        notes.append(
            "Host compute is here the time in which the host ran the functions of a step, waiting for the device among it. The "
            "device's part of them was not recorded, so the times of the operations add up to far less."
        )
    used = [utilization(trace) for trace in traces]
    rates = [examples_per_s(t, s) for t, s in zip(traces, steps, strict=True)]
    known = [rate for rate in rates if rate is not None]
    return Overview(
        step_time=step_time,
        top_ops=_top_ops(ops),
        environment=environment(traces, versions),
        statement=_statement(step_time, ops),
        notes=notes,
        precision=precision(used),
        utilization=used,
        examples_per_s=sum(known) if known and len(known) == len(rates) else None,
        eager_pct=_eager_pct(ops),
        op_share_pct=_op_share_pct(ops),
        unseen_devices=0 if active else devices,
        host_step_time={t.host: _step_time([s]) for t, s in zip(traces, steps, strict=True)} if len(traces) > 1 else {},
    )


def _step_time(steps: Sequence[Steps]) -> pd.DataFrame:
    columns = [
        "kind",
        "steps",
        "left_out",
        "mean_ms",
        "std_ms",
        "min_ms",
        "max_ms",
        "median_ms",
        "all_mean_ms",
        *CATEGORY_COLUMNS,
    ]
    found = [s for s in steps if len(s.table)]
    if not found:
        return pd.DataFrame({c: pd.Series(dtype="str" if c == "kind" else "float64") for c in columns})
    kind = np.concatenate([s.table["kind"].to_numpy(object)[s.slowest] for s in found])
    times_ms = np.concatenate(
        [
            np.stack([s.table[c].to_numpy()[s.slowest] for c in ("duration_ms", *CATEGORY_COLUMNS)], axis=1)
            for s in found
        ]
    )
    averaged = np.concatenate([s.averaged[s.slowest] for s in found])
    result: list[dict[str, Any]] = []
    for one in dict.fromkeys(kind):
        of_kind = kind == one
        used = times_ms[of_kind & averaged]
        total = used[:, 0]
        row: dict[str, Any] = {
            "kind": one,
            "steps": len(used),
            "left_out": int(of_kind.sum()) - len(used),
            "mean_ms": total.mean(),
            "std_ms": total.std(ddof=1) if len(used) > 1 else np.nan,
            "min_ms": total.min(),
            "max_ms": total.max(),
            "median_ms": np.median(total),
            "all_mean_ms": times_ms[of_kind, 0].mean(),
        }
        row |= zip(CATEGORY_COLUMNS, used[:, 1:].mean(axis=0), strict=True)
        row["_rank"] = (rank_of_kind(one), -times_ms[of_kind, 0].sum())
        result.append(row)
    result.sort(key=lambda row: row.pop("_rank"))
    return pd.DataFrame(result, columns=columns)


def _top_ops(ops: pd.DataFrame) -> pd.DataFrame:
    side, own = ops["host_or_device"].to_numpy(object), ops["self_time_us"].to_numpy()
    busy = ops["type"].to_numpy(object) != IDLE
    on_device = busy & (side == "Device")
    mine = np.flatnonzero(on_device if on_device.any() else busy & (side == "Host"))
    top = mine[np.argsort(-own[mine], kind="stable")[:_TOP_OPS]]
    total = own[mine].sum()
    share = 100 * own[top] / total if total > 0 else np.zeros(len(top))
    return pd.DataFrame(
        {
            "name": ops["name"].to_numpy(object)[top],
            "category": ops["type"].to_numpy(object)[top],
            "self_time_us": own[top],
            "self_time_pct": share,
            "cumulative_pct": np.cumsum(share),
            "occurrences": ops["occurrences"].to_numpy()[top],
            "host_or_device": side[top],
        }
    )


def _eager_pct(ops: pd.DataFrame) -> dict[str, float]:
    """Share of each side's self time, IDLE apart, that ran eagerly."""
    side, own = ops["host_or_device"].to_numpy(object), ops["self_time_us"].to_numpy()
    busy = ops["type"].to_numpy(object) != IDLE
    eager = ops["execution_mode"].to_numpy(object) == "eager"
    result = {}
    for name in ("Device", "Host"):
        mine = busy & (side == name)
        total = own[mine].sum()
        if total > 0:
            result[name.lower()] = float(100 * own[mine & eager].sum() / total)
    return result


def _op_share_pct(ops: pd.DataFrame) -> dict[str, float]:
    """Share of the executions of ops on each side."""
    side, kind, times = (ops[c].to_numpy() for c in ("host_or_device", "type", "occurrences"))
    real = (kind != IDLE) & (kind != UNATTRIBUTED)
    executions = {name: float(times[real & (side == name)].sum()) for name in ("Device", "Host")}
    total = sum(executions.values())
    return {name.lower(): 100 * n / total for name, n in executions.items() if n} if total else {}


def _statement(step_time: pd.DataFrame, ops: pd.DataFrame) -> str:
    if step_time.empty:
        if not len(ops):
            return "No steps and no ops were recorded."
        busiest = ops[ops["type"] != IDLE].nlargest(1, "self_time_us")
        if not len(busiest):
            return "No step was found in this capture."
        return f"No step was found; the op with the most self time is {busiest['name'].iloc[0]}."
    row = step_time.iloc[0]
    mean = float(row["mean_ms"])  # of at least one step: where none is steady, all of a kind are averaged
    shares = sorted(((100 * float(row[f"{c}_ms"]) / mean if mean else 0.0, c) for c in CATEGORIES), reverse=True)
    largest = [(share, c) for share, c in shares if share >= 1][:4]
    parts = [f"{share:.0f} % {_IN_A_SENTENCE.get(c, CATEGORY_LABELS[c].lower())}" for share, c in largest]
    name = _STEP_IN_A_SENTENCE.get(row["kind"], f"“{row['kind']}” step")
    return f"A {name} takes {ms(mean)} on average: {', '.join(parts)}."


# ---- run environment -----------------------------------------------------------------------------------------


def captured_ms(trace: Trace) -> float:
    """Length of the capture: from the profiler's start to its stop, else from the first event to the last."""
    environment = trace.space.environment
    start, stop = environment.get("profile_start_time"), environment.get("profile_stop_time")
    if isinstance(start, int) and isinstance(stop, int) and 0 < stop - start < 10**15:
        return (stop - start) / 1e6
    if not trace.space.n_events:
        return 0.0
    start_ps = trace.space.event_start_ps
    return float((start_ps + trace.space.event_duration_ps).max() - start_ps.min()) / 1e9


def device_planes(trace: Trace) -> list[int]:
    """Planes of accelerators: those of type GPU or TPU, with events or without."""
    return [i for i, name in enumerate(trace.space.plane_name) if name.startswith(("/device:GPU:", "/device:TPU:"))]


def device_model(stats: dict[str, Any]) -> str:
    """What a device plane's stats say about its model, in XProf's words (``Nvidia GPU (Volta)``)."""
    name = stats.get("gpu_device_name")
    if isinstance(name, str) and name:
        return name
    major, minor = stats.get("compute_cap_major"), stats.get("compute_cap_minor")
    vendor = str(stats.get("device_vendor") or "")
    if vendor == "AMD":
        return f"AMD GPU - gfx{major}{minor}" if major else "AMD GPU"
    if isinstance(major, int):
        capability = major + (minor if isinstance(minor, int) else 0) / 10
        family = next((family for bound, family in _NVIDIA_BY_CAPABILITY if capability < bound), "")
        return f"Nvidia GPU ({family}, compute capability {major}.{minor or 0})" if family else "Nvidia GPU"
    return "GPU"


def device_type(traces: Sequence[Trace]) -> str:
    """Model of the accelerators of a run; ``CPU`` if it has none."""
    models: dict[str, None] = {}
    for trace in traces:
        for plane in device_planes(trace):
            is_tpu = trace.space.plane_name[plane].startswith("/device:TPU:")
            models["TPU" if is_tpu else device_model(trace.space.plane_stats[plane])] = None
    return ", ".join(models) or "CPU"


def _count_devices(traces: Sequence[Trace]) -> tuple[int, int]:
    """Number of devices, and of those with events."""
    planes = [(trace, plane) for trace in traces for plane in device_planes(trace)]
    active = sum(bool(np.isin(trace.space.line_plane[trace.line], [plane]).any()) for trace, plane in planes)
    return len(planes), active


def environment(traces: Sequence[Trace], versions: dict[str, str] | None = None) -> dict[str, str]:
    """Describe where a run took place.

    Returns
    -------
    dict
        Label → text: hosts, device type, devices (N of them with events), captured time, events, versions.
    """
    planes = [(trace, plane) for trace in traces for plane in device_planes(trace)]
    _, active = _count_devices(traces)
    result = {
        "Hosts": f"{len(traces)} ({', '.join(trace.host for trace in traces[:4])}{', …' if len(traces) > 4 else ''})",
        "Device type": device_type(traces),
        "Device cores": "0 (the host's CPU does the work)" if not planes else f"{len(planes)} ({active} with events)",
    }
    for trace, plane in planes[:1]:
        stats = trace.space.plane_stats[plane]
        if isinstance(stats.get("memory_size"), int):
            result["Device memory"] = f"{stats['memory_size'] / 2**30:.1f} GiB each"
        if isinstance(stats.get("core_count"), int):
            result["Multiprocessors"] = f"{stats['core_count']} on each device"
    captured = max((captured_ms(t) for t in traces), default=0.0)
    result["Captured time"] = f"{captured:,.{1 if captured >= 1 else 3}f} ms"
    result["Events"] = f"{sum(t.space.n_events for t in traces):,}"
    result.update(versions or {})
    return result
