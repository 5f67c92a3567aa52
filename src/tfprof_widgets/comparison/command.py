"""The subcommand ``compare``: two saved profiles side by side, as a page, as text or JSON, and as a test for CI."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conditions import Condition
    from .result import Comparison

#: Exit status if a condition of ``--fail-if`` holds.
CONDITION_HOLDS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's arguments, but those of all subcommands."""
    parser.add_argument(
        "before", metavar="BEFORE", help="the profile to compare with: a log directory, a run or a file"
    )
    parser.add_argument("after", metavar="AFTER", help="the profile that is compared")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the comparison as one HTML file")
    parser.add_argument("--csv", metavar="DIR", help="write each table as a CSV file into this directory")
    parser.add_argument("--json", action="store_true", help="for programs: print a JSON object instead of the summary")
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        type=_condition,
        default=[],
        help=f"leave with exit status {CONDITION_HOLDS} if this holds: 'step_ms > 1.1x' (the typical step takes more than 1.1 times "
        "as long as before, and no chance), 'step_ms > 25' (ms), 'peak_memory_bytes > 120%%'. May be given several times. "
        "Also: examples_per_s, span_ms, input_ms, compilation_ms and the other categories of a step.",
    )


def _condition(text: str) -> Condition:
    from .conditions import parse_condition

    try:
        return parse_condition(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(arguments: argparse.Namespace) -> int:
    """Compare, and return the exit status."""
    from ..report import load
    from .conditions import check
    from .result import compare

    reports = [
        load(path).as_asked(max_mb=None, anonymize=arguments.anonymize) for path in (arguments.before, arguments.after)
    ]
    comparison = compare(*reports)
    checked = [check(comparison, condition) for condition in arguments.fail_if]
    if arguments.json:
        text = json.dumps(summary(comparison) | {"conditions": checked}, indent=2, ensure_ascii=False)
    elif arguments.output or arguments.csv:
        text = comparison.statement
    else:
        text = comparison.text
    sys.stdout.write(f"{text}\n")
    wrote = [comparison.to_html(arguments.output)] if arguments.output else []
    wrote += comparison.to_csv(arguments.csv) if arguments.csv else []
    for path in wrote:
        sys.stderr.write(f"Wrote {path}\n")
    for one in checked:
        if not arguments.json or one["holds"] is not False:
            sys.stderr.write(f"{one['why']}\n")
    if any(one["holds"] for one in checked):
        return CONDITION_HOLDS
    # What could not be checked must not pass for well.
    return int(any(one["holds"] is None for one in checked))


def summary(comparison: Comparison) -> dict[str, Any]:
    """Return what a comparison says in short, JSON-able.

    Returns
    -------
    dict
        ``title``, ``statement``, ``cautions``, ``told`` (``faster``, ``slower``, ``no difference shown``, ``too few steps``), ``ratio``
        and ``ratio_interval`` of the typical step (None where there is none), ``steps``, ``overview``, ``ops`` (the 20 with most
        time won or lost) and ``notes``.
    """
    change = comparison.change
    interval = list(change.ratio_interval) if change.has_interval else None
    return {
        "title": comparison.title,
        "statement": comparison.statement,
        "cautions": comparison.cautions,
        "told": change.told,
        "ratio": None if change.ratio != change.ratio else change.ratio,
        "ratio_interval": interval,
        "steps": _rows(comparison.steps),
        "overview": _rows(comparison.overview),
        "ops": _rows(comparison.ops.head(20)),
        "notes": comparison.notes,
    }


def _rows(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=10))
    return rows
