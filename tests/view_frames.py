"""Steps, ops and overviews in the form in which the analysis gives them to the views."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from tfprof_widgets.analysis.op_stats import without_idle
from tfprof_widgets.analysis.overview import Overview
from tfprof_widgets.analysis.steps import CATEGORIES, CATEGORY_COLUMNS

HOSTILE = '<img src=x onerror="globalThis.pwned=1">$$\\frac{a}{b}$$\\(x\\)</script><script>globalThis.pwned=2</script>'
CPU = "/host:CPU"


class Recorder:
    """Stands in for the payload: keeps the frames that views leave there."""

    def __init__(self) -> None:
        self.frames: dict[str, pd.DataFrame] = {}

    def add_table(self, name: str, frame: pd.DataFrame) -> str:
        assert name not in self.frames
        self.frames[name] = frame
        return name


def steps_frame(
    n: int, *, kind: str = "train", devices: tuple[str, ...] = (CPU,), first_step: int = 0, slow_first: float = 1.0
) -> pd.DataFrame:
    """Steps of about 3 ms; the first (`slow_first` times as long) and the last are left out of averages."""
    rng = np.random.default_rng(n)
    frames = []
    for device in devices:
        times = {f"{c}_ms": np.zeros(n) for c in CATEGORIES}
        times["input_ms"] = rng.uniform(0.1, 0.5, n)
        times["other_ms"] = rng.uniform(0.1, 0.3, n)
        times["host_compute_ms" if device == CPU else "device_compute_ms"] = rng.uniform(2.0, 3.0, n)
        times["compilation_ms"][0] = (slow_first - 1) * 3
        flags = ["averaged"] * n
        flags[0], flags[-1] = "first traced", "last"
        frame = pd.DataFrame({"step": first_step + np.arange(n), "kind": kind, "host": "worker", "device": device})
        frame["duration_ms"] = sum(times.values())
        frame["start_ms"] = frame["duration_ms"].cumsum() - frame["duration_ms"]
        frames.append(frame.assign(flags=flags, **times))
    return pd.concat(frames, ignore_index=True)


def ops_frame(
    n_host: int = 30, n_device: int = 20, *, idle: bool = True, name: str = "model/dense_{}/MatMul"
) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    types = [
        "MatMul",
        "Relu",
        "Conv2D",
        "AddV2",
        "Mul",
        "Sum",
        "Softmax",
        "Cast",
        "Dataset",
        "Sqrt",
        "Rsqrt",
        "Tile",
        "Pad",
    ]
    frames = []
    for side, n in (("Device", n_device), ("Host", n_host)):
        frame = pd.DataFrame(
            {
                "host_or_device": side,
                "type": [types[i % len(types)] for i in range(n)],
                "name": [name.replace("{}", str(i)) for i in range(n)],
                "occurrences": rng.integers(1, 100, n),
                "self_time_us": rng.exponential(500, n) + 1,
            }
        )
        if idle and n:
            total = frame["self_time_us"].sum()
            frame.loc[n] = [side, "IDLE", "IDLE", 0, 3 * total]
        frames.append(frame)
    ops = pd.concat(frames, ignore_index=True).sort_values(
        ["host_or_device", "self_time_us"], ascending=[True, False], ignore_index=True
    )
    ops["total_time_us"] = 1.5 * ops["self_time_us"]
    ops["avg_time_us"] = ops["total_time_us"] / ops["occurrences"].clip(lower=1)
    ops["avg_self_time_us"] = ops["self_time_us"] / ops["occurrences"].clip(lower=1)
    for side in ("device", "host"):
        mine = ops["self_time_us"].where(ops["host_or_device"] == side.capitalize(), 0.0)
        ops[f"{side}_self_time_pct"] = 100 * mine / (mine.sum() or 1)
        ops[f"{side}_cumulative_pct"] = ops[f"{side}_self_time_pct"].cumsum()
    return ops.assign(execution_mode="function")


def overview_of(steps: pd.DataFrame, ops: pd.DataFrame, **more) -> Overview:
    rows = []
    for kind, of_kind in steps.groupby("kind", sort=False):
        longest = of_kind.loc[of_kind.groupby("step")["duration_ms"].idxmax()]
        used = longest[longest["flags"].str.contains("averaged")]
        ms = used["duration_ms"]
        row = {
            "kind": kind,
            "steps": len(used),
            "left_out": len(longest) - len(used),
            "mean_ms": ms.mean(),
            "std_ms": ms.std(),
            "all_mean_ms": longest["duration_ms"].mean(),
        }
        row |= {"min_ms": ms.min(), "max_ms": ms.max(), "median_ms": ms.median()}
        rows.append(row | dict(used[list(CATEGORY_COLUMNS)].mean()))
    busy = without_idle(ops)
    side = "device" if (busy["host_or_device"] == "Device").any() else "host"
    top = (
        busy[busy["host_or_device"] == side.capitalize()]
        .nlargest(10, "self_time_us")
        .rename(columns={"type": "category"})
    )
    top = top.assign(
        self_time_pct=top[f"{side}_self_time_pct"], cumulative_pct=top[f"{side}_self_time_pct"].cumsum()
    )  # fmt: skip
    top = top[["name", "category", "self_time_us", "self_time_pct", "cumulative_pct", "occurrences", "host_or_device"]]
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
    return Overview(
        **{
            "step_time": pd.DataFrame(rows, columns=columns),
            "top_ops": top,
            "environment": {"Hosts": "1 (worker)", "Device type": "CPU"},
            "statement": "A training step takes 3 ms.",
        }
        | more
    )


def every(items, kind):
    """All items of a kind, in rows and in every case of switches too."""
    for item in items:
        if item["kind"] == kind:
            yield item
        yield from every(item.get("children", []), kind)
        for case in item.get("cases", {}).values():
            yield from every(case, kind)


def without_data(figure) -> str:
    """A figure's JSON less the columns of its data sources: what BokehJS might read mathematics into."""

    def strip(value):
        if isinstance(value, list):
            return [strip(each) for each in value]
        if not isinstance(value, dict):
            return value
        is_source = value.get("name") == "ColumnDataSource"
        return {
            key: {**each, "data": None} if is_source and key == "attributes" else strip(each)
            for key, each in value.items()
        }

    return json.dumps(strip(figure))
