"""The report in short, for where no script runs (GitHub, a notebook that isn't trusted) and as plain text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..analysis.steps import CATEGORIES, CATEGORY_LABELS
from .advice import answer, mean_step_ms, note
from .blocks import Block, Facts, Notes, SmallTable
from .spec import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from ..analysis.advice import Finding
    from ..analysis.overview import Overview

_STATISTICS = {
    "mean_ms": "Average",
    "std_ms": "Std. deviation",
    "min_ms": "Minimum",
    "median_ms": "Median",
    "max_ms": "Maximum",
}
# A name longer than this is cut in the middle: the summary is read in narrow places, and the report has it whole.
_LONGEST_NAME, _LONGEST_CATEGORY = 72, 24
_MOST_FINDINGS = 3


def summary_blocks(
    head_facts: Sequence[Mapping[str, Any]],
    notes: Sequence[str],
    overview: Overview,
    findings: Sequence[Finding] | None = None,
) -> list[Block]:
    """Return what the summary says, in the order to read it.

    Parameters
    ----------
    head_facts : sequence of mapping
        The head line's facts: ``label`` and ``value``.
    notes : sequence of str
        What to know before trusting the numbers.
    overview : Overview
        Averages, top ops, environment.
    findings : sequence of Finding, optional
        What to change, the most promising first; empty if nothing stands out, None if that is not known.
    """
    shown = [(str(fact["label"]), fact["value"]) for fact in head_facts]
    blocks: list[Block] = [Facts(shown)] if shown else []
    said = answer(findings, overview)["text"] if findings is not None else ""
    if said:
        blocks.append(Notes([said]))
    if overview.statement and overview.statement != said:
        blocks.append(Notes([overview.statement]))
    if findings:
        blocks.append(_recommendations(findings, overview))
    if len(overview.step_time):
        blocks += _step_time(overview.step_time)
    if len(overview.top_ops):
        blocks.append(_top_ops(overview.top_ops))
    # What the head line says already is not said twice.
    environment = [(label, value) for label, value in overview.environment.items() if (label, value) not in shown]
    if environment:
        blocks.append(Facts(environment, title="Run environment"))
    remarks = list(dict.fromkeys([*notes, *overview.notes]))
    if remarks:
        blocks.append(Notes(remarks, title="Notes"))
    return blocks


def _recommendations(findings: Sequence[Finding], overview: Overview) -> Block:
    step_ms = mean_step_ms(overview)
    words = [f"{f.title} ({note(f, step_ms)}). To change: {f.change}" for f in findings[:_MOST_FINDINGS]]
    more = len(findings) - _MOST_FINDINGS
    if more > 0:
        words.append(f"{count(more, 'more recommendation')} and the evidence are in the interactive report.")
    return Notes(words, title="Recommendations")


def _step_time(step_time: pd.DataFrame) -> list[Block]:
    kinds = [row for _, row in step_time.iterrows()]
    digits = _digits([float(row["mean_ms"]) for row in kinds])
    statistics = SmallTable(
        ["Kind of step", "Averaged", *_STATISTICS.values()],
        [
            [
                str(row["kind"]),
                f"{int(row['steps']):,} of {int(row['steps'] + row['left_out']):,}",
                *(float(row[field]) for field in _STATISTICS),
            ]
            for row in kinds
        ],
        title="Step time in ms",
        digits=digits,
    )
    averaged = [row for row in kinds if row["steps"] > 0]
    if not averaged:
        return [statistics]
    # Each kind has a column of times and one of shares; a category that took no time in any kind is only named.
    seen = [c for c in CATEGORIES if any(row[f"{c}_ms"] > 0 for row in averaged)]
    unseen = [CATEGORY_LABELS[c] for c in CATEGORIES if c not in seen]
    heads = (head for row in averaged for head in (f"{row['kind']} (ms)", f"{row['kind']} (%)"))
    breakdown = SmallTable(
        ["Category", *heads],
        [[CATEGORY_LABELS[c], *(cell for row in averaged for cell in _time_and_share(row, c))] for c in seen],
        title="Where the time of an average step goes",
        note=f"No time in: {', '.join(unseen)}." if unseen else "",
        digits=digits,
    )
    return [statistics, breakdown]


def _time_and_share(row: pd.Series[Any], category: str) -> tuple[float, float]:
    time, mean = float(row[f"{category}_ms"]), float(row["mean_ms"])
    return time, 100 * time / mean if mean > 0 else math.nan


def _digits(means_ms: Sequence[float]) -> int:
    """Digits after the point that leave three which count to the shortest of some times."""
    shortest = min((mean for mean in means_ms if mean > 0), default=1.0)
    return 2 if shortest >= 1 else 3 if shortest >= 0.1 else 4


def _top_ops(top_ops: pd.DataFrame) -> Block:
    names = shortened_apart([str(name) for name in top_ops["name"]])
    side = "device" if (top_ops["host_or_device"] == "Device").any() else "host"
    return SmallTable(
        ["Rank", "Self time (%)", "Cumulative (%)", "Category", "Operation", "Self time (µs)", "Occurrences"],
        [
            [
                rank,
                float(op["self_time_pct"]),
                float(op["cumulative_pct"]),
                shortened(str(op["category"]), _LONGEST_CATEGORY),
                name,
                float(op["self_time_us"]),
                int(op["occurrences"]),
            ]
            for rank, (name, (_, op)) in enumerate(zip(names, top_ops.iterrows(), strict=True), start=1)
        ],
        title=f"Top {count(len(top_ops), 'TensorFlow operation')} on the {side}",
        note=f"Percent of the self time of all operations on the {side}.",
        digits=1,
    )


def shortened(name: str, most: int = _LONGEST_NAME) -> str:
    """Cut a name in the middle."""
    if len(name) <= most:
        return name
    end = most // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def shortened_apart(names: Sequence[str], most: int = _LONGEST_NAME) -> list[str]:
    """Cut names in the middle; those that would then read the same lose what they share instead, and keep what tells them apart."""
    cut = [shortened(name, most) for name in names]
    for text in {text for text in cut if cut.count(text) > 1}:
        alike = [i for i, other in enumerate(cut) if other == text]
        if len({names[i] for i in alike}) == 1:
            continue
        first, last = min(names[i] for i in alike), max(names[i] for i in alike)
        shared = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        begins = first.rfind("/", 0, shared) + 1 or shared
        for i in alike:
            rest = names[i][begins:]
            head = max(most - 1 - len(rest), most // 4)
            cut[i] = f"{names[i][: min(head, begins)]}…{shortened(rest, most - 1 - min(head, begins))}"
    return cut
