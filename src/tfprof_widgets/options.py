"""The options that the magic and the command line have in common: one definition each.

They are kept as the arguments of argparse's ``add_argument``, which IPython's ``@argument`` takes too, so that the
magic's help, the command line's help and the documentation all say the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Option(NamedTuple):
    """One option: ``add_argument(*flags, **keywords)``."""

    flags: tuple[str, ...]
    keywords: dict[str, Any]


def _option(*flags: str, **keywords: Any) -> Option:
    return Option(flags, keywords)


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

# How the report is shown and shared.
SHOWN = (_option("--name", metavar="TEXT", help='title of the report; quote it if it has spaces. Default: "In [n]".'),)
