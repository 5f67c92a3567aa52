"""What the documentation takes from the code when it is built, so that neither can say something else.

A line ``<!-- generated: NAME -->`` in a page is replaced by what the function of that name returns.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import tfprof_widgets


def magic_options() -> str:
    """Return the table of the magic's options, from its own parser."""
    from tfprof_widgets.magic import ProfileMagics

    return _options_of(ProfileMagics.tfprofile.parser)  # type: ignore[attr-defined]


def commands() -> str:
    """Return a section for each command of the command line, from its own parser."""
    from tfprof_widgets.cli import parser

    top = parser()
    actions = top._subparsers._group_actions  # type: ignore[union-attr]
    paragraphs = [textwrap.fill(" ".join(part.split()), 88) for part in (top.epilog or "").strip().split("\n\n")]
    sections = ["```text\n" + "\n\n".join(paragraphs) + "\n```"]
    for name, command in (actions[0].choices or {}).items():
        usage = command.format_usage().removeprefix("usage: ").strip()
        words = (command.description or "").strip()
        sections.append(f"## {name}\n\n{words}\n\n```text\n{usage}\n```\n\n{_options_of(command)}")
    return "\n\n".join(sections)


def _options_of(parser: argparse.ArgumentParser) -> str:
    """Return the table of a parser's arguments and options."""
    formatter = parser._get_formatter()
    rows = ["| | |", "| --- | --- |"]
    for action in parser._actions:
        if action.help in (argparse.SUPPRESS, None) or action.dest in ("help", "code"):
            continue
        value = "" if action.nargs == 0 else f" {formatter._format_args(action, (action.dest or '').upper())}"
        flags = ", ".join(f"`{flag}{value}`" for flag in action.option_strings) or f"`{action.metavar or action.dest}`"
        rows.append(f"| {flags} | {_cell(formatter._expand_help(action))} |")
    return "\n".join(rows)


def public_functions() -> str:
    """Return a section for each public function and class of the package, apart from the report and errors."""
    return _sections(lambda thing: thing != "Report" and not thing.endswith("Error"))


def public_errors() -> str:
    """Return a section for each public exception."""
    return _sections(lambda thing: thing.endswith("Error"))


def findings() -> str:
    """Return what the recommendations look for, from the titles of their rules."""
    source = (Path(tfprof_widgets.__file__).parent / "analysis" / "advice.py").read_text(encoding="utf-8")
    titles = re.findall(r'title=f?"([^"]+)"', source)
    return "\n".join(f"- {re.sub('{.*?}', '…', title)}" for title in titles)


def step_categories() -> str:
    """Return the table of the step time's categories, from their one list."""
    from tfprof_widgets.analysis.steps import CATEGORIES, CATEGORY_LABELS

    rows = ["| in the report | column |", "| --- | --- |"]
    labels = (
        CATEGORY_LABELS if isinstance(CATEGORY_LABELS, dict) else dict(zip(CATEGORIES, CATEGORY_LABELS, strict=True))
    )
    rows += [f"| {labels[name]} | `{name}_ms` |" for name in CATEGORIES]
    return "\n".join(rows)


def trace_keys() -> str:
    """Return the table of the timeline's keys, from the list that its help shows."""
    toolbar = Path(__file__).resolve().parents[1] / "js" / "src" / "timeline" / "toolbar.ts"
    keys = re.search(r"const KEYS: .*?= \[\n(.*?)^\];", toolbar.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert keys is not None, f"{toolbar} has no list KEYS"
    rows = re.findall(r'\["([^"]+)", "([^"]+)"\]', keys[1])
    return "\n".join(["| | |", "| --- | --- |", *(f"| **{key}** | {meaning} |" for key, meaning in rows)])


_GENERATED: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (magic_options, commands, trace_keys, public_functions, public_errors, findings, step_categories)
}


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in the generated parts of a page (mkdocs calls this)."""

    def fill(match: re.Match[str]) -> str:
        return _GENERATED[match[1]]()

    return re.sub(r"^<!-- generated: (\w+) -->$", fill, markdown, flags=re.MULTILINE)


def _sections(wanted: Callable[[str], bool]) -> str:
    names = [name for name in sorted(tfprof_widgets.__all__, key=str.lower) if wanted(name)]
    return "\n\n".join(f"::: tfprof_widgets.{tfprof_widgets._MODULE_OF[name]}.{name}" for name in names)


def _cell(text: str) -> str:
    """Text as a table's cell: whole sentences, nothing that Markdown would take for markup."""
    text = " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")
    return re.sub(r"(%%?tfprofile|tfprof_report|DIR\S*/\S*[^\s).])", r"`\1`", text[:1].upper() + text[1:])
