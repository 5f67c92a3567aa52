"""The command ``tfprof-widgets``: reports of saved profiles, without a notebook and without TensorFlow.

Each subcommand is a `Command` in `COMMANDS`.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .comparison.command import add_arguments as add_compare_arguments
from .comparison.command import run as compare
from .options import SHOWN, Option

if TYPE_CHECKING:
    import pandas as pd

    from .report import Report

_EPILOG = """\
LOGDIR is a log directory (its newest run is taken), the directory of a run, one *.xplane.pb file, or a file that
report.save() wrote; addresses such as gs://bucket/logs work where fsspec's package for them is installed.

Exit status: 0 if all was written; 1 if the profile could not be read or something could not be written, with the reason
on standard error; 2 if the command line was wrong; 3 if a condition of compare --fail-if holds.
"""

OK, FAILED = 0, 1

# Options that aren't about the page.
_OF_ANY_FORM = [option for option in SHOWN if "--max-mb" not in option.flags]


class Command(NamedTuple):
    """A subcommand.

    Attributes
    ----------
    name, help : str
        What it is called, and does.
    add_arguments : function
        Adds its arguments to its parser.
    run : function
        Does it with the parsed arguments, and returns the exit status if that isn't 0; exceptions become messages.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


def add_options(parser: argparse.ArgumentParser, options: Sequence[Option]) -> None:
    """Give a parser options of the magic."""
    for option in options:
        parser.add_argument(*option.flags, **option.keywords)


def add_logdir(parser: argparse.ArgumentParser) -> None:
    """Give a parser the profile to open."""
    parser.add_argument("logdir", metavar="LOGDIR", help="the profile: a log directory, a run or a file")


def open_report(arguments: argparse.Namespace) -> Report:
    """Return the report of the profile, as the options ask for it."""
    from .report import load

    max_mb = getattr(arguments, "max_mb", None)
    return load(arguments.logdir).as_asked(name=arguments.name, max_mb=max_mb, anonymize=arguments.anonymize)


# ---- report -----------------------------------------------------------------------------------------------------


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    add_logdir(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="report.html", help="file to write. Default: report.html"
    )
    add_options(parser, SHOWN)


def _report(arguments: argparse.Namespace) -> None:
    report = open_report(arguments)
    _wrote(report.to_html(arguments.output))
    for note in report.payload.notes:
        _say(note)


# ---- summary ----------------------------------------------------------------------------------------------------


def _summary_arguments(parser: argparse.ArgumentParser) -> None:
    add_logdir(parser)
    parser.add_argument(
        "--json", action="store_true", help="for programs: a JSON object; times in the unit that their names end in"
    )
    add_options(parser, _OF_ANY_FORM)


def _summary(arguments: argparse.Namespace) -> None:
    report = open_report(arguments)
    text = json.dumps(summary(report), indent=2, ensure_ascii=False) if arguments.json else report.text
    sys.stdout.write(f"{text}\n")


def summary(report: Report) -> dict[str, Any]:
    """Return what a report says in short, JSON-able.

    Returns
    -------
    dict
        ``title``, ``facts`` (label to text), ``statement``, ``step_time`` and ``top_ops`` (lists of rows, as in ``report.overview``),
        ``advice`` (``title``, ``statement``, ``saves_ms``, ``confidence``, ``change``, ``evidence``, the most promising first),
        ``environment`` (label to text), ``examples_per_s``, ``notes``.
    """
    overview = report.overview
    return {
        "title": report.title,
        "facts": {fact["label"]: fact["value"] for fact in report._head_facts},
        "statement": overview.statement,
        "step_time": _rows(overview.step_time),
        "top_ops": _rows(overview.top_ops),
        "advice": [
            {
                name: getattr(found, name)
                for name in ("title", "statement", "saves_ms", "confidence", "change", "evidence")
            }
            for found in report.advice
        ],
        "environment": dict(overview.environment),
        "examples_per_s": overview.examples_per_s,
        "notes": report.notes,
    }


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=10))
    return rows


# ---- export -----------------------------------------------------------------------------------------------------


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    add_logdir(parser)
    parser.add_argument(
        "--perfetto", metavar="FILE", help="all events, for ui.perfetto.dev and chrome://tracing; .json or .json.gz"
    )
    parser.add_argument("--csv", metavar="DIR", help="each table as a CSV file in this directory")
    parser.add_argument(
        "--save", metavar="FILE", help="the profile of all hosts as one file, which opens as LOGDIR does; .tfprof"
    )
    add_options(parser, _OF_ANY_FORM)


def _export(arguments: argparse.Namespace) -> None:
    if not (arguments.perfetto or arguments.csv or arguments.save):
        raise _UsageError("nothing to export: give --perfetto, --csv or --save")
    if arguments.save and arguments.anonymize:
        raise _UsageError("--save writes the profile itself, with all its names: it can't be anonymized")
    report = open_report(arguments)
    if arguments.perfetto:
        _wrote(report.to_perfetto(arguments.perfetto))
    if arguments.csv:
        for path in report.to_csv(arguments.csv):
            _wrote(path)
    if arguments.save:
        _wrote(report.save(arguments.save))


# ---- compare ----------------------------------------------------------------------------------------------------


def _compare_arguments(parser: argparse.ArgumentParser) -> None:
    add_compare_arguments(parser)
    add_options(parser, [option for option in _OF_ANY_FORM if "--anonymize" in option.flags])


COMMANDS = (
    Command("report", "write the interactive report as one HTML file", _report_arguments, _report),
    Command("summary", "print the report in short", _summary_arguments, _summary),
    Command("export", "write the profile in other formats", _export_arguments, _export),
    Command("compare", "compare two profiles: what became faster or slower, and why", _compare_arguments, compare),
)


# ---- the command ------------------------------------------------------------------------------------------------


class _UsageError(Exception):
    """The arguments make no sense together."""


class _Message(logging.Formatter):
    """A warning in a line, without a traceback."""

    def formatException(self, _: Any) -> str:  # noqa: N802  # logging's name
        return ""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    from . import __version__

    top = argparse.ArgumentParser(
        prog="tfprof-widgets",
        description="Reports of profiles that TensorFlow's profiler has recorded.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"tfprof-widgets {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog=_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)
        sub.add_argument("--debug", action="store_true", help="show the Python traceback of an error")
        sub.set_defaults(run=command.run, usage_error=sub.error)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    options = parser().parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter() if options.debug else _Message("tfprof-widgets: %(message)s"))
    log = logging.getLogger("tfprof_widgets")
    log.addHandler(handler)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An output that can't take a "→" (a file, in Windows' old code pages) gets its escape, as standard error does.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status: int = options.run(options) or OK
        sys.stdout.flush()
    except _UsageError as error:
        options.usage_error(str(error))
    except BrokenPipeError:
        # Whoever read the output has gone; what Python still has for them at its end must not fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        _say("interrupted")
        return FAILED
    except Exception as error:  # noqa: BLE001  # whatever it is, the user gets a sentence
        if options.debug:
            traceback.print_exc()
        _say(_reason(error))
        return FAILED
    finally:
        log.removeHandler(handler)
    return status


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"{error}. Install what is missing with pip, then try again."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    # Our own errors say what was wrong and what to do; of others the kind may tell something.
    ours = isinstance(error, ValueError | FileNotFoundError) or type(error).__module__.startswith("tfprof_widgets")
    return str(error) if ours else f"{type(error).__name__}: {error} (--debug shows where)"


def _say(text: str) -> None:
    sys.stderr.write(f"tfprof-widgets: {text}\n")


def _wrote(path: Path) -> None:
    sys.stdout.write(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB)\n")
