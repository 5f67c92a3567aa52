"""The options that the magic and the command line have in common: one definition each.

They are kept as the arguments of argparse's ``add_argument``, which IPython's ``@argument`` takes too, so that the
magic's help, the command line's help and the documentation all say the same.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any, NamedTuple

from .budget import DEFAULT_MAX_MB, parse_max_mb
from .window import MAX_DURATION_S, MAX_GROWTH_GB, parse_steps


class Option(NamedTuple):
    """One option: ``add_argument(*flags, **keywords)``."""

    flags: tuple[str, ...]
    keywords: dict[str, Any]


def _option(*flags: str, **keywords: Any) -> Option:
    return Option(flags, keywords)


def _checked(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a type for argparse that says what the parser's own error says."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None

    return convert


# What the profiler is asked to record; see `session.Options`.
RECORDED = (
    _option(
        "--host-level",
        metavar="N",
        type=int,
        default=2,
        choices=(1, 2, 3),
        help="detail of the host's trace: 1 critical events only, 2 the usual ones, 3 verbose. Default: 2.",
    ),
    _option(
        "--python",
        action="store_true",
        help="trace every call of a Python function too. Slows Python down noticeably.",
    ),
    _option(
        "--device-level",
        metavar="N",
        type=int,
        default=1,
        choices=(0, 1),
        help="1 to trace devices (GPU, TPU), 0 not to. Default: 1.",
    ),
)

# Which part of the code is recorded in this process; see `window.Window`.
WINDOWED = (
    _option(
        "--steps",
        metavar="A:B",
        type=_checked(parse_steps),
        help="record the steps A to B-1 only, counted from 0: Keras' batches, and the tfprof.step() marks of a loop of "
        "your own. A: for all from A on.",
    ),
    _option(
        "--warmup",
        metavar="N",
        type=int,
        default=0,
        help="leave out the first N steps: they trace, compile and allocate. --steps are counted after them.",
    ),
    _option("--delay", metavar="S", type=float, default=0.0, help="begin to record S seconds after the cell."),
    _option("--duration", metavar="S", type=float, help="record for S seconds. The cell goes on without the profiler."),
    _option(
        "--max-duration",
        metavar="S",
        type=float,
        default=MAX_DURATION_S,
        help=f"record no longer than S seconds if there is no --duration; inf for no limit. Default: {MAX_DURATION_S:g}.",
    ),
    _option(
        "--max-memory",
        metavar="GB",
        type=float,
        default=MAX_GROWTH_GB,
        help="stop recording when the process has grown by so many gigabytes meanwhile (what is recorded is in memory until "
        f"the profiler stops); inf for no limit. Default: {MAX_GROWTH_GB:g}.",
    ),
    _option(
        "--warmup-profiler",
        action="store_true",
        help="start and stop the profiler once before, so that what it loads at its first start (CUPTI) is not in the capture.",
    ),
)

# Another program instead of this process; see `sampling.capture`.
SAMPLED = (
    _option(
        "--server",
        metavar="ADDR",
        help="profile another program through its profiler server, grpc://host:port, for the --duration (2 s if there is none). "
        "Several workers: separated by commas, without spaces.",
    ),
)

# What the report is compared with; see `comparison.rerun`.
COMPARED = (
    _option(
        "--baseline",
        metavar="NAME",
        help="compare with this run: a variable that holds a report, or a name in tfprof_widgets.history(). Default: the "
        "run of this cell before, if there was one.",
    ),
    _option("--no-compare", action="store_true", help="don't say how the run did against the one before."),
)

# How the report is shown and shared.
SHOWN = (
    _option(
        "--name", metavar="TEXT", help='title of the report; quote it if it has spaces. Default: "In [n]", or the file.'
    ),
    _option(
        "--max-mb",
        metavar="MB",
        type=_checked(parse_max_mb),
        default=DEFAULT_MAX_MB,
        help="size that the report may have; a larger one leaves out details of the trace and says so. none for no limit. "
        f"Default: {DEFAULT_MAX_MB:g}.",
    ),
    _option(
        "--anonymize",
        action="store_true",
        help="put stand-ins for host names, paths and user names: for reports to be shared.",
    ),
)
