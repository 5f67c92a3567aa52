"""The GPU kernels tab: which kernels take the devices' time, for which ops, and whether Tensor Cores work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import spec
from .advice import UNSEEN_CHANGE
from .colors import OpColors
from .kernel_labels import kernel_labels
from .pie import SLICES, pie
from .spec import fact, ms, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

_NO_OP, _NO_TYPE = "(no op)", "(type unknown)"
# A whole CUDA graph, whose number follows.
_GRAPH = r"CudaGraph(?:Exec)?\b"
_NO_GPU = (
    "No GPU is in this capture, so there are no kernels. If one did take part, the profiler could not see it: CUPTI, of the CUDA "
    "toolkit, was not found or not permitted."
)
_NO_KERNELS = (
    "A GPU took part, but no kernel of it was measured: none ran on it while the profiler ran, or the profiler could not see them. "
    f"What may help: {UNSEEN_CHANGE}"
)


def kernels_tab(
    payload: spec.Tables, kernels: pd.DataFrame, ops: pd.DataFrame, colors: OpColors, *, has_gpu: bool = True
) -> spec.Tab:
    """Return the GPU kernels tab.

    Parameters
    ----------
    payload : Payload
        Gets the table ``kernels``, and ``kernels_by_name`` and ``kernels_by_op`` where those have fewer rows.
    kernels : DataFrame
        ``report.kernels``: one row a kernel, launch shape and op (and host, if several).
    ops : DataFrame
        ``report.ops``, for the ops' types.
    colors : OpColors
        The report's colours of op types.
    has_gpu : bool
        Whether there is a GPU in the capture.
    """
    if kernels.empty:
        return spec.tab("kernels", "GPU kernels", [spec.text(_NO_KERNELS if has_gpu else _NO_GPU, "info")])
    kernels = kernels.sort_values("total_time_us", ascending=False, kind="stable").reset_index(drop=True)
    kernels["op_name"] = kernels["op_name"].astype(object).where(kernels["op_name"].astype(bool), _NO_OP)
    by_name, by_op = _grouped(kernels, "kernel_name", "op_name"), _grouped(kernels, "op_name", "kernel_name")
    labels = kernel_labels(by_name["kernel_name"].astype(str))
    for table in (kernels, by_name):
        table["kernel_label"] = table["kernel_name"].astype(str).map(labels).astype("category")
    total_us = float(kernels["total_time_us"].sum())
    for name, table in (("kernels", kernels), ("kernels_by_name", by_name), ("kernels_by_op", by_op)):
        table.insert(0, "rank", np.arange(1, len(table) + 1))
        table["time_pct"] = 100 * table["total_time_us"] / (total_us or 1.0)
        # Where each group is one row, the first table has it.
        if name == "kernels" or len(table) < len(kernels):
            payload.add_table(name, table)

    kernel_color = OpColors(by_name["kernel_name"].astype(str))
    type_of = dict(zip(ops["name"].astype(str), ops["type"].astype(str), strict=True))
    pies = spec.row(
        [
            _pie(by_name, "kernel_name", "kernel", kernel_color, labels),
            _op_pie(by_op, type_of, colors),
        ]
    )
    by_kernel = _grouped_table(
        "kernel_name", "Kernel name", "Ops", "kernels_by_name", grouped=len(by_name) < len(kernels)
    )
    by_its_op = _grouped_table("op_name", "Op name", "Kernels", "kernels_by_op", grouped=len(by_op) < len(kernels))
    cases = {
        "each": ("kernel and op", [_table(kernels)]),
        "kernel": ("kernel", [by_kernel]),
        "op": ("op", [by_its_op]),
    }
    rows = spec.switch("kernel_rows", "A row for each", cases)
    return spec.tab("kernels", "GPU kernels", [_summary(kernels), *_without_details(kernels), pies, rows])


def _grouped(kernels: pd.DataFrame, by: str, other: str) -> pd.DataFrame:
    """Sums of the rows of each kernel or op, most time first."""
    groups = kernels.groupby(by, sort=False, observed=True)
    table = groups.agg(
        kinds=(other, "nunique"),
        tensor_core_eligible=("tensor_core_eligible", "any"),
        uses_tensor_core=("uses_tensor_core", "any"),
        occurrences=("occurrences", "sum"),
        total_time_us=("total_time_us", "sum"),
        min_time_us=("min_time_us", "min"),
        max_time_us=("max_time_us", "max"),
    ).reset_index()
    table["avg_time_us"] = table["total_time_us"] / table["occurrences"].clip(lower=1)
    return table.sort_values("total_time_us", ascending=False, kind="stable", ignore_index=True)


def _summary(kernels: pd.DataFrame) -> spec.Item:
    time = kernels["total_time_us"].to_numpy(float)
    total = float(time.sum()) or 1.0
    eligible, used = (kernels[c].to_numpy(bool) for c in ("tensor_core_eligible", "uses_tensor_core"))
    launches = int(kernels["occurrences"].sum())
    average = time.sum() / 1e3 / max(launches, 1)
    too_short = "A launch takes 5 to 10 µs: kernels that short leave the GPU idle"
    with_units = "Share of kernel time in kernels with Tensor Core instructions"
    without = "Share of kernel time for ops that Tensor Cores can compute, in kernels that don't use them: mixed precision would help"
    rows = [
        fact("Kernel time", ms(time.sum() / 1e3), hint="Of all devices, added up"),
        fact("Kernels", f"{kernels['kernel_name'].nunique():,}"),
        fact("Launches", f"{launches:,}", hint="Of all kernels"),
        fact("Average kernel", ms(average), hint=too_short),
        fact("With Tensor Cores", percent(100 * time[used].sum() / total), hint=with_units),
        fact("Eligible, Tensor Cores unused", percent(100 * time[eligible & ~used].sum() / total), hint=without),
    ]
    return spec.facts("", rows)


def _without_details(kernels: pd.DataFrame) -> list[spec.Item]:
    """What is not known of some kernels, if any."""
    unknown = kernels[kernels["block_dim"].astype(str) == ""]
    if unknown.empty:
        return []
    count, launches = int(unknown["occurrences"].sum()), int(kernels["occurrences"].sum())
    share = 100 * unknown["total_time_us"].sum() / (kernels["total_time_us"].sum() or 1.0)
    graphs = unknown["kernel_name"].astype(str).str.match(_GRAPH)
    words = (
        f"The profiler recorded no details of {count:,} of {launches:,} launches ({percent(share)} of the kernel time): their registers, "
        "memory, dimensions and occupancy are not known."
    )
    if graphs.any():
        which = "They" if graphs.all() else f"{int(unknown.loc[graphs, 'occurrences'].sum()):,} of them"
        words += (
            f" {which} are whole CUDA graphs, each recorded as one event: the kernels within, and whether these use Tensor Cores, are "
            "not in the profile."
        )
    return [spec.text(words, "info")]


def _pie(
    table: pd.DataFrame, by: str, noun: str, color: Callable[[str], str], labels: Mapping[str, str] | None = None
) -> spec.Item:
    names = [str(name) for name in table[by]]
    times_ms = table["total_time_us"].to_numpy(float) / 1e3
    short = labels or {}
    fills = [color(name) for name in names]
    return pie(
        f"GPU time by {noun}", names, times_ms, fills, noun, "GPU time", shorter=lambda name: short.get(name, name)
    )


def _op_pie(by_op: pd.DataFrame, type_of: Mapping[str, str], colors: OpColors) -> spec.Item:
    """By op; by the ops' type where so many ops share the time that most of the pie would be the others."""
    time_us = by_op["total_time_us"]
    if time_us.iloc[:SLICES].sum() >= time_us.sum() / 2:
        return _pie(by_op, "op_name", "op", lambda name: colors(type_of.get(name, "")))
    types = by_op["op_name"].astype(str).map(lambda name: type_of.get(name, "") or _NO_TYPE)
    by_type = time_us.groupby(types.rename("type")).sum().sort_values(ascending=False, kind="stable").reset_index()
    return _pie(by_type, "type", "op type", colors)


def _table(kernels: pd.DataFrame) -> spec.Item:
    columns = [spec.column("rank", "Rank", "number", digits=0, width=60)]
    if "host" in kernels:
        columns.append(spec.column("host", "Host", "text", width=110))
    columns += [
        spec.column(
            "kernel_name",
            "Kernel name",
            "text",
            min_width=220,
            trace={"side": "device", "op_field": "op_name"},
            label="kernel_label",
        ),
        spec.column(
            "op_name", "Op name", "text", min_width=240, hint="The op that launched it", trace={"side": "device"}
        ),
        *_flags(),
        *_times(),
        spec.column(
            "registers_per_thread", "Registers", "number", digits=0, width=88, hint="GPU registers for each thread"
        ),
        spec.column(
            "shared_memory_bytes", "Shared memory", "number", digits=0, unit="B", width=88, hint="Static and dynamic"
        ),
        spec.column("block_dim", "Block dimensions", "text", width=104, hint="blockDim.x, .y, .z"),
        spec.column("grid_dim", "Grid dimensions", "text", width=120, hint="gridDim.x, .y, .z"),
    ]
    if kernels["occupancy_pct"].notna().any():
        hint = "Share of the warps that a multiprocessor can hold"
        columns.append(spec.column("occupancy_pct", "Occupancy", "percent", digits=0, width=96, hint=hint))
    return _kernel_table("Kernels", "kernels", columns)


def _grouped_table(by: str, title: str, others: str, name: str, *, grouped: bool) -> spec.Item:
    columns = [
        spec.column("rank", "Rank", "number", digits=0, width=60),
        spec.column(
            by,
            title,
            "text",
            min_width=260,
            trace={"side": "device"},
            label="kernel_label" if by == "kernel_name" else "",
        ),
        *([spec.column("kinds", others, "number", digits=0, width=80)] if grouped else []),
        *_flags(),
        *_times(),
    ]
    return _kernel_table(f"{title.split()[0]}s", name if grouped else "kernels", columns)


def _flags() -> list[spec.Column]:
    eligible = "Whether Tensor Cores can compute the op (filter: yes, no)"
    used = "Whether the kernel contains Tensor Core instructions (filter: yes, no)"
    return [
        spec.column("tensor_core_eligible", "TC eligible", "bool", width=80, hint=eligible),
        spec.column("uses_tensor_core", "TC used", "bool", width=72, hint=used),
    ]


def _times() -> list[spec.Column]:
    labels = {"total": "Total duration", "avg": "Average", "min": "Minimum", "max": "Maximum"}
    return [
        spec.column("time_pct", "Share", "percent", digits=1, width=84, hint="Of the time of all kernels"),
        spec.column("occurrences", "Occurrences", "number", digits=0, width=104),
        *(
            spec.column(f"{name}_time_us", label, "number", digits=1, unit="µs", width=88)
            for name, label in labels.items()
        ),
    ]


def _kernel_table(title: str, name: str, columns: list[dict[str, Any]]) -> spec.Item:
    return spec.table(title, name, columns, sort=("total_time_us", "desc"), csv=f"{name}.csv", filter=True)
