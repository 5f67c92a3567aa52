"""The Pod tab: the same step on every host and device, side by side, and which of them the others wait for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, FixedTicker, NumeralTickFormatter, VBar
from bokeh.transform import stack

from ..analysis.pod import OWN_WORK, straggler_of_run, worker
from ..analysis.steps import CATEGORIES, CATEGORY_LABELS, HOST_DEVICE
from ..xspace.logdir import natural_key
from . import spec
from .colors import CATEGORY_COLORS, HATCHED_CATEGORIES
from .spec import count, fact, ms, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ..analysis.pod import Pod

_HATCH_STYLE = {"hatch_color": "white", "hatch_alpha": 0.5, "hatch_scale": 9, "hatch_weight": 1}
_LINE = "#808890"
# Times travel in ticks, the largest of them below this: two bytes each.
_MOST_TICKS = 60_000
# Room between the bars of two hosts, in bars; so few bars are not made wider than that; so many labels fit below them.
_HOST_GAP, _FEWEST_WIDTHS, _MOST_LABELS = 0.6, 8, 8
# A step that is so many times as long as the usual ones has a height of its own.
_OUTLYING = 2.0
# So little of the step above the median is none: it would be shown as 0.0 %.
_NO_GAP_PCT = 0.05
# The others wait for a straggler if their collectives are longer by at least this part of its excess.
_LEAST_WAIT = 0.1
# Host names of these letters only are no mathematics to BokehJS, and so short ones fit below a bar.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,14}")
_WHAT_OWN_WORK_IS = "Own work is the step without collectives, in which those that have finished wait for the others."
_DEVICE = re.compile(r"/device:([A-Z]+):(\d+)")


def pod_tab(payload: spec.Tables, pod: Pod, environment: Mapping[str, str]) -> spec.Tab:
    """Return the Pod tab.

    Parameters
    ----------
    payload : Payload
        Gets the tables ``pod_rows``, ``pod_bars``, ``pod_steps`` (the chart of one step), ``pod_workers`` and ``stragglers``.
    pod : Pod
        The steps of all hosts and devices.
    environment : mapping
        Label → text: where the run took place.
    """
    table = pod.table
    run = spec.facts("Run environment", [fact(label, value) for label, value in environment.items()])
    if table.empty:
        why = "No step was found in this capture, so there is nothing to compare between hosts and devices."
        return spec.tab("pod", "Pod", [spec.text(" ".join([why, *pod.notes]), "info"), run])
    workers = _workers(table)
    if len(workers) == 1:
        why = (
            "One host with one device took part, so there is nothing to compare: its steps are on the Overview. Profiles of several hosts "
            "are read together from one run directory: tfprof_widgets.load(directory)."
        )
        return spec.tab("pod", "Pod", [spec.text(why, "info"), run])
    worker = (
        workers.set_index(["host", "device"])["number"]
        .reindex(pd.MultiIndex.from_frame(table[["host", "device"]]))
        .to_numpy()
    )
    rows = table.assign(worker=worker).sort_values(["step", "worker"], kind="stable", ignore_index=True)
    items = [
        spec.text(*_verdict(pod)),
        *([spec.text(" ".join(pod.notes))] if pod.notes else []),
        spec.facts("", _facts(pod, workers)),
        _stepper(payload, rows, workers, pod),
        _legend(rows),
        _straggler_table(payload, pod.stragglers),
        _worker_table(payload, rows, workers, pod.stragglers),
        run,
    ]
    return spec.tab("pod", "Pod", items)


def _workers(table: pd.DataFrame) -> pd.DataFrame:
    """The hosts and devices (``host``, ``device``, ``number``), ordered as people count: ``worker-2`` before ``worker-10``."""
    pairs = table[["host", "device"]].drop_duplicates()
    order = sorted(range(len(pairs)), key=lambda i: tuple(natural_key(str(name)) for name in pairs.iloc[i]))
    workers = pairs.iloc[order].reset_index(drop=True)
    return workers.assign(number=np.arange(len(workers)))


# ---- who is slow --------------------------------------------------------------------------------------------


def _verdict(pod: Pod) -> tuple[str, spec.Level]:
    slow = int(pod.stragglers["is_straggler"].sum())
    found = straggler_of_run(pod)
    compared = len(pod.stragglers)
    if not compared:
        return "No step was run by more than one host or device, so there is nothing to compare.", "info"
    if found is None:
        which = f"in none of {compared:,} steps" if compared > 1 else "nowhere in the one step compared"
        if _by_own_work(pod.stragglers):
            return (
                f"No straggler: {which} did the own work of a host or device exceed the median by 10 % of the step. {_WHAT_OWN_WORK_IS}",
                "info",
            )
        return f"No straggler: {which} did a host or device take 10 % longer than the median of all.", "info"
    mine = found.steps
    category = mine["category"].mode().iloc[0]
    name = worker(found.host, found.device)
    excess_ms = float(mine["excess_ms"].mean())
    excess = ms(excess_ms)
    words = f"{name} is the straggler in {len(mine):,} of {count(compared, 'step')}: "
    if _by_own_work(mine):
        waits = _waits(float(mine["others_wait_ms"].mean()), excess_ms)
        words += f"{excess} more own work than the median on average, mostly in {category}.{waits} {_WHAT_OWN_WORK_IS}"
    else:
        words += f"{excess} above the median on average, mostly in {category}."
    if found.others:
        noun = "other host" if len(set(pod.table["host"])) > 1 else "other device"
        rest = count(slow - len(mine), "step")
        words += f" {count(found.others, noun)} {'was' if found.others == 1 else 'were'} the straggler in {rest}."
    return words, "warning" if slow * 2 >= compared else "info"


def _by_own_work(stragglers: pd.DataFrame) -> bool:
    """Whether any of these steps has collectives, in which devices wait for one another."""
    return bool((stragglers["judged_by"] == OWN_WORK).any())


def _facts(pod: Pod, workers: pd.DataFrame) -> list[dict[str, object]]:
    table, stragglers = pod.table, pod.stragglers
    slow = int(stragglers["is_straggler"].sum())
    own = _by_own_work(stragglers)
    hint = (
        "The most own work exceeds the median by at least 10 % of the step"
        if own
        else "The slowest takes at least 10 % longer than the median of all"
    )
    return [
        fact("Hosts", f"{workers['host'].nunique():,}"),
        fact("Devices" if (workers["device"] != HOST_DEVICE).any() else "Workers", f"{len(workers):,}"),
        fact("Steps compared", f"{len(stragglers):,} of {table['step'].nunique():,}"),
        fact("Steps with a straggler", f"{slow:,}", hint=hint),
        fact(
            "Average step",
            ms(float(table["total_ms"].mean())),
            hint="Of all hosts, devices and steps, also those that the Overview's averages leave out",
        ),
        fact(
            "Slowest of each step",
            ms(float(table.groupby("step")["total_ms"].max().mean())),
            hint="On average: what the run takes",
        ),
    ]


def _with_a_gap(stragglers: pd.DataFrame) -> pd.DataFrame:
    """The steps that some took longer for than others: where all took the same time, none is the slowest."""
    return stragglers[stragglers["excess_pct"] > _NO_GAP_PCT]


# ---- one step -----------------------------------------------------------------------------------------------


def _stepper(payload: spec.Tables, rows: pd.DataFrame, workers: pd.DataFrame, pod: Pod) -> spec.Item:
    shown = [c for c in CATEGORIES if (rows[f"{c}_ms"] > 0).any()]
    tick_ms = _tick_ms(float(rows["total_ms"].max()))
    ticks = {c: np.rint(rows[f"{c}_ms"].to_numpy(float) / tick_ms).astype(np.int64) for c in shown}
    for name in ("total", "own", "start"):
        ticks[name] = np.rint(rows[f"{name}_ms"].to_numpy(float) / tick_ms).astype(np.int64)
    bottleneck = pd.Categorical(rows["bottleneck"].astype(str))
    payload.add_table(
        "pod_rows", pd.DataFrame({"bar": rows["worker"].to_numpy(np.int64), **ticks, "bottleneck": bottleneck})
    )
    x = _positions(workers)
    bars = pd.DataFrame(
        {"x": x.astype(np.float32), "host": workers["host"].astype(str), "device": workers["device"].astype(str)}
    )
    payload.add_table("pod_bars", bars)
    steps = _steps(rows, pod.stragglers, len(workers))
    payload.add_table("pod_steps", steps)

    excess = pod.stragglers.set_index("step")["excess_ms"].reindex(rows["step"].unique()).to_numpy(float)
    worst = int(np.nanargmax(excess)) if np.isfinite(excess).any() else 0
    gap = len(steps) > 1 and len(_with_a_gap(pod.stragglers))
    marks = [{"label": f"Largest gap (step {steps['label'][worst]})", "value": worst}] if gap else []
    longest = rows.loc[rows.groupby("step")["total_ms"].idxmax()]
    alt = (
        f"Step time of each of {len(workers)} hosts and devices, split into {', '.join(CATEGORY_LABELS[c] for c in shown)}, for one of "
        f"{count(len(steps), 'step')} at a time; the slowest took from {ms(float(longest['total_ms'].min()))} to "
        f"{ms(float(longest['total_ms'].max()))}."
    )
    return {
        "kind": "stepper",
        "title": "Step time of every host and device",
        "label": "Step",
        "figure": json_item(_figure(workers, x, shown, float(rows["total_ms"].median()))),
        "alt": alt,
        "rows": "pod_rows",
        "bars": "pod_bars",
        "steps": "pod_steps",
        "scale": dict.fromkeys(ticks, tick_ms),
        "value": worst,
        "marks": marks,
        "trace": {
            "start": "start",
            "length": "total",
            "slowest": "own",
            "several_hosts": len(set(workers["host"])) > 1,
        },
    }


def _tick_ms(longest_ms: float) -> float:
    """A power of ten, so that numbers stay round."""
    return 10.0 ** np.ceil(np.log10(max(longest_ms, 1e-6) / _MOST_TICKS))


def _positions(workers: pd.DataFrame) -> NDArray[np.float64]:
    """Place of each bar: one after the other, with a gap between hosts of several devices."""
    host = workers["host"].to_numpy(object)
    begins = np.concatenate([[False], host[1:] != host[:-1]])
    gap = _HOST_GAP if begins.sum() + 1 < len(workers) else 0.0
    return np.arange(len(workers)) + gap * np.cumsum(begins)


def _steps(rows: pd.DataFrame, stragglers: pd.DataFrame, n_workers: int) -> pd.DataFrame:
    """A row a step: ``label``, ``caption``, ``top``, and ``first`` and ``count`` of its rows."""
    number, first, counts = np.unique(rows["step"].to_numpy(np.int64), return_index=True, return_counts=True)
    highest = rows.groupby("step")["total_ms"].max().reindex(number).to_numpy(float)
    usual = highest[highest <= _OUTLYING * np.median(highest)].max()
    tops = np.where(highest <= usual, usual, highest) * 1.06
    kinds = rows["kind"].to_numpy(object)[first]
    several_kinds = len(set(kinds)) > 1
    labels = [f"{n} ({kind})" if several_kinds else str(n) for n, kind in zip(number.tolist(), kinds, strict=True)]
    said = {
        row.step: _caption(row, int(n))
        for row, n in zip(stragglers.itertuples(), _of_step(stragglers, number, counts), strict=True)
    }
    captions = [said.get(n, "Only one host or device ran this step.") for n in number.tolist()]
    short = [f" {n_workers - c:,} of {n_workers:,} did not run it." if c < n_workers else "" for c in counts.tolist()]
    captions = [caption + more for caption, more in zip(captions, short, strict=True)]
    return pd.DataFrame(
        {"label": labels, "caption": captions, "top": tops.astype(np.float32), "first": first, "count": counts}
    )


def _of_step(stragglers: pd.DataFrame, number: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return counts[np.searchsorted(number, stragglers["step"].to_numpy(np.int64))] if len(stragglers) else counts[:0]


def _caption(row: object, n_workers: int) -> str:
    host, device, judged_by, own_ms, excess_ms, excess_pct, category, category_ms, wait_ms = (
        getattr(row, name)
        for name in (
            "host", "device", "judged_by", "own_ms", "excess_ms", "excess_pct", "category", "category_excess_ms", "others_wait_ms",
        )
    )  # fmt: skip
    own = judged_by == OWN_WORK
    takes = f"has {ms(own_ms)} of own work" if own else f"takes {ms(own_ms)}"
    if not excess_pct > _NO_GAP_PCT:
        return f"No straggler: the slowest of {n_workers:,} {takes}, as the median does."
    above = f"{ms(excess_ms, like=own_ms)} ({percent(excess_pct)}{' of the step' if own else ''})"
    if not getattr(row, "is_straggler", False):
        return f"No straggler: the slowest, {worker(host, device)}, {takes}, {above} above the median of {n_workers:,}."
    words = (
        f"Straggler: {worker(host, device)} {takes}, {above} above the median of {n_workers:,}; "
        f"{category} takes {ms(category_ms, like=own_ms)} longer than the median's."
    )
    return words + _waits(wait_ms, excess_ms, like=own_ms)


def _waits(wait_ms: float, excess_ms: float, like: float | None = None) -> str:
    """What the others do meanwhile, if collectives hold them up: hosts that run apart don't wait."""
    if not wait_ms > _LEAST_WAIT * excess_ms:
        return ""
    return f" The others wait {ms(wait_ms, like=like)} longer in collectives."


def _figure(workers: pd.DataFrame, x: NDArray[np.float64], shown: list[str], median_ms: float) -> object:
    room = max(0.6, (_FEWEST_WIDTHS - (x[-1] - x[0])) / 2)
    p = spec.plot(280, (x[0] - room, x[-1] + room), (0, 1), x_label="", y_label="Step time (ms)")
    p.y_range.name = "height"
    p.xgrid.visible = False
    p.yaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    labels = _labels(workers, x)
    p.xaxis.ticker = FixedTicker(ticks=list(labels))
    p.xaxis.major_label_overrides = labels
    source = ColumnDataSource(
        {name: [] for name in ("x", "bar", *shown, "total", "own", "start", "host", "device", "bottleneck")},
        name="bars",
    )
    for i, category in enumerate(shown):
        bar = VBar(
            x="x", width=0.86, bottom=stack(*shown[:i]), top=stack(*shown[: i + 1]),
            fill_color=CATEGORY_COLORS[category], line_color=None,
            hatch_pattern="right_diagonal_line" if category in HATCHED_CATEGORIES else " ", **_HATCH_STYLE,
        )  # fmt: skip
        spec.draw(p, source, bar)
    whole = VBar(x="x", top="total", width=1.0, fill_color=None, line_color=None)
    lit = VBar(x="x", top="total", width=1.0, fill_color=_LINE, fill_alpha=0.3, line_color=None)
    columns = spec.draw(p, source, whole, hover_glyph=lit)
    digits = int(np.clip(2 - np.floor(np.log10(median_ms)), 0, 4)) if median_ms > 0 else 3
    number = "{0,0." + "0" * digits + "}" if digits else "{0,0}"
    tooltips = [("Host", "@host"), ("Device", "@device"), ("Time", f"@total{number} ms")]
    if "device_collective" in shown:
        tooltips.append(("Own work", f"@own{number} ms"))
    tooltips.append(("Most in", "@bottleneck"))
    tooltips += [(CATEGORY_LABELS[c], f"@{c}{number} ms") for c in shown]
    spec.hover(p, [columns], tooltips, mode="vline", point_policy="follow_mouse")
    return p


def _labels(workers: pd.DataFrame, x: NDArray[np.float64]) -> dict[float, str]:
    """Labels below the bars, in words that can't be mathematics: of each bar, or of some hosts where they are many."""
    hosts = list(dict.fromkeys(workers["host"].astype(str)))
    short = {host: host if _PLAIN_NAME.fullmatch(host) else f"host {i}" for i, host in enumerate(hosts)}
    if len(workers) <= _MOST_LABELS:
        pairs = zip(workers["host"].astype(str), workers["device"].astype(str), strict=True)
        return {
            float(at): _label(short[host] if len(hosts) > 1 else "", device)
            for at, (host, device) in zip(x, pairs, strict=True)
        }
    if len(hosts) == 1:
        every = -(-len(workers) // _MOST_LABELS)
        return {float(x[i]): _label("", str(workers["device"][i])) for i in range(0, len(workers), every)}
    middles = pd.Series(x).groupby(workers["host"].astype(str), sort=False).mean()
    every = -(-len(hosts) // _MOST_LABELS)
    return {float(middles[host]): short[host] for host in hosts[::every]}


def _label(host: str, device: str) -> str:
    found = _DEVICE.fullmatch(device)
    name = f"{found[1]} {found[2]}" if found else "host" if not host else ""
    return "\n".join(part for part in (name, host) if part)


def _legend(rows: pd.DataFrame) -> spec.Item:
    mean = rows[[f"{c}_ms" for c in CATEGORIES]].mean()
    total = float(rows["total_ms"].mean())
    parts = [
        fact(
            "All others" if c == "other" else CATEGORY_LABELS[c],
            f"{ms(float(mean[f'{c}_ms']), like=total)} · {percent(100 * float(mean[f'{c}_ms']) / total if total > 0 else 0.0)}",
            color=CATEGORY_COLORS[c],
            hatch=c in HATCHED_CATEGORIES,
        )
        for c in CATEGORIES
        if mean[f"{c}_ms"] > 0
    ]
    return spec.facts("Average of all hosts, devices and steps", parts)


# ---- tables -------------------------------------------------------------------------------------------------


def _straggler_table(payload: spec.Tables, stragglers: pd.DataFrame) -> spec.Item:
    if stragglers.empty:
        return spec.text("No step was run by more than one host or device.")
    payload.add_table(
        "stragglers", stragglers.astype({"host": "category", "device": "category", "category": "category"})
    )
    own = _by_own_work(stragglers)
    of_own = "Own work: the step without collectives" if own else ""
    columns = [
        spec.column("step", "Step", "number", digits=0, width=72),
        spec.column("host", "Host", "text", min_width=130),
        spec.column("device", "Device", "text", min_width=120),
        spec.column("total_ms", "Its time", "number", digits=2, unit="ms", width=92),
        *([spec.column("own_ms", "Its own work", "number", digits=2, unit="ms", width=92, hint=of_own)] if own else []),
        spec.column("median_ms", "Median of all", "number", digits=2, unit="ms", width=92, hint=of_own),
        spec.column("excess_ms", "Above the median", "number", digits=2, unit="ms", width=104),
        spec.column("category", "Mostly in", "text", min_width=170),
        spec.column(
            "category_excess_ms",
            "Excess there",
            "number",
            digits=2,
            unit="ms",
            width=92,
            hint="Above the median in that category",
        ),
        *([_waiting()] if own else []),
        spec.column(
            "is_straggler",
            "Straggler",
            "bool",
            width=88,
            hint=f"At least 10 % {'of the step ' if own else ''}above the median (filter: yes, no)",
        ),
    ]
    return spec.table(
        "Slowest host or device of each step",
        "stragglers",
        columns,
        sort=("excess_ms", "desc"),
        csv="stragglers.csv",
        filter=True,
    )


def _own_work() -> spec.Column:
    return spec.column(
        "own_ms", "Own work", "number", digits=2, unit="ms", width=92, hint="The step without collectives, on average"
    )


def _waiting() -> spec.Column:
    hint = "How much longer the others are in collectives, on average"
    return spec.column("others_wait_ms", "Others wait", "number", digits=2, unit="ms", width=92, hint=hint)


def _worker_table(
    payload: spec.Tables, rows: pd.DataFrame, workers: pd.DataFrame, stragglers: pd.DataFrame
) -> spec.Item:
    shown = [c for c in CATEGORIES if (rows[f"{c}_ms"] > 0).any()]
    of_worker = rows.groupby("worker")
    own = _by_own_work(stragglers)
    slow = _with_a_gap(stragglers)
    slowest = slow.groupby(["host", "device"]).size() if len(slow) else pd.Series(dtype="int64")
    pairs = pd.MultiIndex.from_frame(workers[["host", "device"]])
    table = pd.DataFrame(
        {
            "host": workers["host"],
            "device": workers["device"],
            "steps": of_worker.size().to_numpy(),
            "total_ms": of_worker["total_ms"].mean().to_numpy(),
            **({"own_ms": of_worker["own_ms"].mean().to_numpy()} if own else {}),
            "slowest_in": slowest.reindex(pairs).fillna(0).to_numpy(np.int64)
            if len(slowest)
            else np.zeros(len(workers), np.int64),
            **{f"{c}_ms": of_worker[f"{c}_ms"].mean().to_numpy() for c in shown},
        }
    )
    payload.add_table("pod_workers", table)
    columns = [
        spec.column("host", "Host", "text", min_width=130),
        spec.column("device", "Device", "text", min_width=120),
        spec.column("steps", "Steps", "number", digits=0, width=72),
        spec.column("total_ms", "Average step", "number", digits=2, unit="ms", width=92),
        *([_own_work()] if own else []),
        spec.column("slowest_in", "Slowest in", "number", digits=0, unit="steps", width=88),
        *(
            spec.column(
                f"{c}_ms", "All others" if c == "other" else CATEGORY_LABELS[c], "number", digits=2, unit="ms", width=92
            )
            for c in shown
        ),
    ]
    by = "own_ms" if own else "total_ms"
    return spec.table(
        "Hosts and devices", "pod_workers", columns, sort=(by, "desc"), csv="hosts_and_devices.csv", filter=True
    )
