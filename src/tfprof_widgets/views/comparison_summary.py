"""The comparison in short, for where no script runs, and as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..analysis.op_stats import IDLE
from ..analysis.steps import CATEGORY_LABELS
from .blocks import Block, Notes, SmallTable, Value
from .spec import count
from .summary import shortened_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

_MOST_OPS = 10


def summary_blocks(
    statement: str, steps: pd.DataFrame, ops: pd.DataFrame, n_steps: tuple[int, int], notes: Sequence[str]
) -> list[Block]:
    """Return what the summary says, in the order to read it.

    Parameters
    ----------
    statement : str
        The comparison in a sentence.
    steps, ops : DataFrame
        The comparison's.
    n_steps : (int, int)
        What "per step" divides by; 1 and 1 without steps.
    notes : sequence of str
        How the runs were compared.
    """
    blocks: list[Block] = [Notes([statement])]
    for kind, rows in steps.groupby("kind", sort=False):
        shown = rows[(rows["before_ms"] > 0) | (rows["after_ms"] > 0)]
        table: list[list[Value]] = [
            [
                "Typical step (median)" if row["category"] == "duration" else CATEGORY_LABELS[str(row["category"])],
                *(float(row[column]) for column in ("before_ms", "after_ms", "difference_ms", "ratio")),
            ]
            for _, row in shown.iterrows()
        ]
        heads = [f"{kind}", "Before (ms)", "After (ms)", "Difference (ms)", "Ratio"]
        blocks.append(SmallTable(heads, table, title="Where the time goes"))
    busy = ops[(ops["type"] != IDLE) & (ops["difference_us_per_step"] != 0)]
    if len(busy):
        names = shortened_apart([str(name) for name in busy["name"].head(_MOST_OPS)])
        of = " of a step" if n_steps != (1, 1) else ""
        changed: list[list[Value]] = [
            [
                str(op["type"]),
                name,
                *(float(op[f"{which}_us_per_step"]) for which in ("before", "after", "difference")),
                str(op["matched"]),
            ]
            for name, (_, op) in zip(names, busy.head(_MOST_OPS).iterrows(), strict=True)
        ]
        left = len(busy) - len(changed)
        blocks.append(
            SmallTable(
                ["Type", "Operation", "Before (µs)", "After (µs)", "Difference (µs)", "Matched by"],
                changed,
                title="Operations with the most time won or lost",
                note=f"Self time{of}." + (f" {count(left, 'more operation')} not shown." if left else ""),
                digits=1,
            )
        )
    if notes:
        blocks.append(Notes(list(notes), title="Notes"))
    return blocks
