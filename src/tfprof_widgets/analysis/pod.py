"""The pod viewer's data: the steps of several hosts side by side, and which one the others wait for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .intervals import overlapping
from .steps import CATEGORIES, CATEGORY_COLUMNS, CATEGORY_LABELS, HOST_DEVICE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# A host or device counts as the straggler of a step if it takes longer than the median of all by this share of the step.
STRAGGLER_EXCESS_PCT = 10.0
# What a straggler is judged by: see `Pod.stragglers`.
OWN_WORK, WHOLE_STEP = "own work", "whole step"
# A note names so many hosts.
_MOST_NAMED = 3
_STRAGGLER_COLUMNS = (
    "step", "host", "device", "judged_by", "total_ms", "own_ms", "median_ms", "excess_ms", "excess_pct", "category",
    "category_excess_ms", "others_wait_ms", "is_straggler",
)  # fmt: skip


@dataclass(frozen=True)
class Pod:
    """Steps of all hosts and devices, aligned.

    Attributes
    ----------
    table : DataFrame
        One row a step, host and device: ``step`` (common number, from 0), ``host``, ``host_step`` (the host's own),
        ``kind``, ``device``, ``start_ms`` (in the host's own trace), the nine ``*_ms`` categories, ``total_ms`` (their sum),
        ``own_ms`` (without the time in collectives) and ``bottleneck`` (label of the largest).
    stragglers : DataFrame
        One row a step that several hosts or devices ran, of the slowest of them. Collectives end when the last one has come, so
        that where there are any the step takes all of them equally long, and the fast ones longest in the collective: the
        slowest is then the one with most *own work*, else the one whose *whole step* is longest (``judged_by``).
        ``step``, ``host``, ``device``, ``judged_by``, ``total_ms`` and ``own_ms`` of the slowest, ``median_ms`` of what all are
        judged by, ``excess_ms`` above it, ``excess_pct`` (of the median step), ``category`` (label of the one in which the
        slowest exceeds the median most; of its own work), ``category_excess_ms``, ``others_wait_ms`` (how much longer than it the
        others are in collectives, on average), and ``is_straggler`` (an excess of at least 10 % of the median step).
    notes : list of str
        How hosts were aligned, and what couldn't be.
    """

    table: pd.DataFrame
    stragglers: pd.DataFrame
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RunStraggler:
    """Who was the straggler most often.

    Attributes
    ----------
    host, device : str
        The device is `HOST_DEVICE` where the host is meant with all its devices.
    steps : DataFrame
        Its rows of ``Pod.stragglers``.
    others : int
        How many other hosts (of one host: devices) were stragglers too.
    """

    host: str
    device: str
    steps: pd.DataFrame
    others: int


def _on_devices(table: pd.DataFrame) -> pd.DataFrame:
    """A host's steps without those in which none of its devices did a thing, if they did in others: nobody waits for those."""
    idle = (table["device"] == HOST_DEVICE).to_numpy()
    return table if idle.all() else table[~idle]


def pod(tables: Sequence[pd.DataFrame]) -> Pod:
    """Align the steps of several hosts and compare them.

    Hosts start and stop recording at different moments. As in XProf, the host with the shortest recorded span is the
    reference; each other one is shifted by whole steps so that the steps overlap in time as much as they can, and the
    steps that all hosts have are kept.

    Parameters
    ----------
    tables : sequence of DataFrame
        ``Steps.table`` of each host.

    Returns
    -------
    Pod
        Of one host too. Where hosts have no step in common, all their own steps are kept, and a note says so.
    """
    notes: list[str] = []
    without = [str(t["host"].iloc[0]) if len(t) else f"host {i}" for i, t in enumerate(tables) if not len(t)]
    used = [_on_devices(table) for table in tables if len(table)]
    if without and used:
        more = f" and {len(without) - _MOST_NAMED} more" if len(without) > _MOST_NAMED else ""
        names = ", ".join(without[:_MOST_NAMED]) + more
        notes.append(f"{len(without)} of {len(tables)} hosts have no steps and are left out: {names}.")
    shifts = _shifts(used, notes)
    aligned = []
    for table, shift in zip(used, shifts, strict=True):
        # By place, not number: a host may lack a step in between, such as one in which its devices did nothing.
        place = (
            np.unique(table["step"].to_numpy(), return_inverse=True)[1] if len(used) > 1 else table["step"].to_numpy()
        )
        aligned.append(table.assign(host_step=table["step"], step=place - shift))
    if len(aligned) > 1:
        low = max(int(rows["step"].min()) for rows in aligned)
        high = min(int(rows["step"].max()) for rows in aligned)
        if low > high:
            notes.append(
                "The hosts have no step in common (they recorded at different times); each host's own steps are shown, not aligned."
            )
            aligned = [table.assign(host_step=table["step"]) for table in used]
        else:
            total = sum(rows["step"].nunique() for rows in aligned)
            aligned = [rows[rows["step"].between(low, high)].assign(step=lambda r: r["step"] - low) for rows in aligned]
            kept = sum(rows["step"].nunique() for rows in aligned)
            if kept < total:
                notes.append(
                    f"{kept} of {total} steps of all hosts are compared: the hosts' steps are matched by when they ran, by each host's "
                    "own clock, and these are the ones that every host then has."
                )
    if not aligned:
        text, number, whole = (pd.Series(dtype=kind) for kind in ("str", "float64", "int64"))
        empty = {"step": whole, "host": text, "host_step": whole, "kind": text, "device": text}
        empty |= dict.fromkeys(("start_ms", *CATEGORY_COLUMNS, "total_ms", "own_ms"), number) | {"bottleneck": text}
        return Pod(pd.DataFrame(empty), pd.DataFrame(columns=list(_STRAGGLER_COLUMNS)), notes)
    table = pd.concat(aligned, ignore_index=True)
    order = np.lexsort([table[name].to_numpy(object).astype(str) for name in ("device", "host")] + [table["step"]])
    columns = ("step", "host", "host_step", "kind", "device", "start_ms", *CATEGORY_COLUMNS)
    ordered = {name: table[name].to_numpy()[order] for name in columns}
    ordered |= {"total_ms": table["duration_ms"].to_numpy()[order]}
    ordered |= {"own_ms": ordered["total_ms"] - ordered["device_collective_ms"]}
    ordered |= {"bottleneck": _bottleneck(np.stack([ordered[name] for name in CATEGORY_COLUMNS], axis=1))}
    table = pd.DataFrame(ordered)
    return Pod(table, _stragglers(table), notes)


def _shifts(tables: Sequence[pd.DataFrame], notes: list[str]) -> list[int]:
    """How many steps to take off each host's numbers, so that they are the reference's."""
    if len(tables) < 2:
        return [0] * len(tables)
    apart: list[str] = []
    spans = [_spans(table) for table in tables]
    chief = min(range(len(tables)), key=lambda i: int(spans[i][1].max() - spans[i][0].min()))
    shifts = []
    for i, (start, end) in enumerate(spans):
        if i == chief:
            shifts.append(0)
            continue
        chief_start, chief_end = spans[chief]
        # Pairs that may overlap, at most a few for each step (devices may end a step after the next has begun).
        low = np.minimum.accumulate(chief_start[::-1])[::-1]
        mine, its = overlapping(start, end, low, np.maximum.accumulate(chief_end))
        overlap = np.minimum(end[mine], chief_end[its]) - np.maximum(start[mine], chief_start[its])
        candidates, of_pair = np.unique(mine - its, return_inverse=True)
        total = np.bincount(of_pair, weights=np.maximum(overlap, 0).astype(np.float64))
        if not total.any():
            shifts.append(0)
            apart.append(str(tables[i]["host"].iloc[0]))
            continue
        # Of equal overlaps XProf takes 0, 1, 2, … before -1, -2, …
        preference = np.where(candidates >= 0, candidates, len(start) + len(chief_start) - candidates)
        shifts.append(int(candidates[np.lexsort((preference, -total))[0]]))
    if apart:
        more = f" and {len(apart) - _MOST_NAMED} more" if len(apart) > _MOST_NAMED else ""
        notes.append(
            f"The steps of {', '.join(apart[:_MOST_NAMED])}{more} overlap none of {tables[chief]['host'].iloc[0]} in time; their "
            "numbers are taken as they are."
        )
    return shifts


def _spans(table: pd.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Start and end of each step of a host over its devices, in nanoseconds."""
    start = (table["start_ms"] * 1e6).round().astype(np.int64)
    end = ((table["start_ms"] + table["duration_ms"]) * 1e6).round().astype(np.int64)
    return start.groupby(table["step"]).min().to_numpy(), end.groupby(table["step"]).max().to_numpy()


def _bottleneck(values: NDArray[np.float64]) -> NDArray[np.object_]:
    labels = np.array([CATEGORY_LABELS[c] for c in CATEGORIES], object)
    # Of equal categories the one whose name comes last in the alphabet, as in XProf.
    order = np.argsort(labels)[::-1]
    return labels[order][np.argmax(values[:, order], axis=1)]


def _stragglers(table: pd.DataFrame) -> pd.DataFrame:
    columns = list(_STRAGGLER_COLUMNS)
    step = table["step"].to_numpy()
    same = step[1:] == step[:-1]
    if not same.any():
        return pd.DataFrame(columns=columns)
    several = np.flatnonzero(np.append(same, False) | np.append(False, same))
    # The rows are in the order of the steps: of each step those from ``first`` on.
    first = np.flatnonzero(np.append(True, np.diff(step[several]) != 0))
    of_row = np.repeat(np.arange(len(first)), np.diff(first, append=len(several)))
    total, own, collective = (
        table[name].to_numpy()[several] for name in ("total_ms", "own_ms", "device_collective_ms")
    )
    # Where there are no collectives, own work is the whole step.
    meets = np.maximum.reduceat(collective, first) > 0
    # The first of the slowest rows.
    slowest = np.lexsort((np.arange(len(several)), -own, of_row))[first]
    categories = [table[name].to_numpy()[several] for name in CATEGORY_COLUMNS]
    excess = np.stack([value[slowest] - _medians(of_row, first, value) for value in categories], axis=1)
    excess[meets, CATEGORIES.index("device_collective")] = -np.inf
    most = excess.argmax(axis=1)
    median, median_step = _medians(of_row, first, own), _medians(of_row, first, total)
    excess_ms = own[slowest] - median
    n_others = np.diff(first, append=len(several)) - 1
    others_ms = (np.add.reduceat(collective, first) - collective[slowest]) / n_others
    share = np.divide(100 * excess_ms, median_step, out=np.zeros(len(first)), where=median_step > 0)
    return pd.DataFrame(
        {
            "step": step[several[first]],
            "host": table["host"].to_numpy(object)[several[slowest]],
            "device": table["device"].to_numpy(object)[several[slowest]],
            "judged_by": np.where(meets, OWN_WORK, WHOLE_STEP).astype(object),
            "total_ms": total[slowest],
            "own_ms": own[slowest],
            "median_ms": median,
            "excess_ms": excess_ms,
            "excess_pct": share,
            "category": [CATEGORY_LABELS[CATEGORIES[i]] for i in most],
            "category_excess_ms": excess[np.arange(len(excess)), most],
            "others_wait_ms": np.maximum(others_ms - collective[slowest], 0.0),
            "is_straggler": (excess_ms > 0) & (excess_ms * 100 >= STRAGGLER_EXCESS_PCT * median_step),
        },
        columns=columns,
    )


def _medians(group: NDArray[np.int64], first: NDArray[np.int64], value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Median of the values of each group; groups are ascending, and begin at ``first``."""
    ordered = value[np.lexsort((value, group))]
    size = np.diff(first, append=len(value))
    median: NDArray[np.float64] = (ordered[first + (size - 1) // 2] + ordered[first + size // 2]) / 2
    return median


def straggler_of_run(pod: Pod) -> RunStraggler | None:
    """Find who was the straggler of most steps.

    Of several hosts it is a host, as its devices wait for one another and any of them can come out slowest; with its device where
    that one is late by itself.

    Returns
    -------
    RunStraggler or None
        None if no step has a straggler.
    """
    slow = pod.stragglers[pod.stragglers["is_straggler"].astype(bool)]
    if slow.empty:
        return None
    if len(set(pod.table["host"])) > 1:
        named = slow.groupby("host", sort=False).size()
        mine = slow[slow["host"] == named.idxmax()]
        device = _late_alone(pod.table, mine)
    else:
        named = slow.groupby("device", sort=False).size()
        mine = slow[slow["device"] == named.idxmax()]
        device = str(named.idxmax())
    return RunStraggler(str(mine["host"].iloc[0]), device, mine, len(named) - 1)


def _late_alone(table: pd.DataFrame, mine: pd.DataFrame) -> str:
    """The device that is its host's straggler in most of these steps, while the host's others are in time; else `HOST_DEVICE`."""
    device = mine["device"].mode().iloc[0]
    if not (mine["judged_by"] == OWN_WORK).any() or (mine["device"] == device).mean() <= 0.5:
        return HOST_DEVICE
    steps = mine.set_index("step")
    limit = steps["median_ms"] + steps["excess_ms"] / 2
    others = table[
        (table["host"] == mine["host"].iloc[0]) & (table["device"] != device) & table["step"].isin(limit.index)
    ]
    late = others["own_ms"].to_numpy() > limit.loc[others["step"]].to_numpy()
    return str(device) if len(late) and late.mean() < 0.5 else HOST_DEVICE


def worker(host: str, device: str) -> str:
    """Name of a host and device for people: the host alone where there is no device."""
    return host if device == HOST_DEVICE else f"{host} {device}"
