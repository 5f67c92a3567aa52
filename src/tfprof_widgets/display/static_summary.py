"""A summary in plain HTML and in plain text, for where no script runs.

JupyterLab's sanitizer and GitHub's keep only simple elements and few attributes, so there is no style and
no class here, and no heading (JupyterLab would list it in the notebook's table of contents).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import TypeAlias

Value: TypeAlias = str | float | int | bool | None


@dataclass(frozen=True)
class Facts:
    """Labels and their values, on one line if they are few."""

    rows: Sequence[tuple[str, Value]]
    title: str = ""


@dataclass(frozen=True)
class SmallTable:
    """A table short enough to be read whole.

    Parameters
    ----------
    columns : sequence of str
        The headers, units included.
    rows : sequence of sequence
        One value a column; floats are shown with `digits` digits after the point.
    note : str
        Said below: what was left out, for example.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    title: str = ""
    note: str = ""
    digits: int = 2


@dataclass(frozen=True)
class Notes:
    """Sentences, each on its own."""

    texts: Sequence[str]
    title: str = ""


Block: TypeAlias = Facts | SmallTable | Notes


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Return the blocks as HTML; every text is escaped."""
    parts = [f"<p><strong>{escape(title)}</strong></p>"] if title else []
    for block in blocks:
        if block.title:
            parts.append(f"<p><strong>{escape(block.title)}</strong></p>")
        if isinstance(block, Facts):
            facts = (f"{escape(label)}: <strong>{escape(_text(value))}</strong>" for label, value in block.rows)
            parts.append(f"<p>{' · '.join(facts)}</p>")
        elif isinstance(block, SmallTable):
            parts.append(_html_table(block))
        else:
            parts.append("<ul>" + "".join(f"<li>{escape(text)}</li>" for text in block.texts) + "</ul>")
    return "\n".join(parts)


def to_text(title: str, blocks: Sequence[Block]) -> str:
    """Return the blocks as plain text with aligned columns."""
    parts = [title] if title else []
    for block in blocks:
        lines = [block.title] if block.title else []
        if isinstance(block, Facts):
            width = max((len(label) for label, _ in block.rows), default=0)
            lines += [f"{label:<{width}}  {_text(value)}" for label, value in block.rows]
        elif isinstance(block, SmallTable):
            lines += _text_table(block)
        else:
            lines += [f"- {text}" for text in block.texts]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _html_table(table: SmallTable) -> str:
    align = ["right" if numeric else "left" for numeric in _numeric(table)]
    head = "".join(
        f'<th align="{side}">{escape(column)}</th>' for side, column in zip(align, table.columns, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td align="{side}">{escape(_text(value, table.digits))}</td>'
            for side, value in zip(align, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    note = f"<p><small>{escape(table.note)}</small></p>" if table.note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _text_table(table: SmallTable) -> list[str]:
    rows = [list(table.columns), *([_text(value, table.digits) for value in row] for row in table.rows)]
    widths = [max(len(cell) for cell in column) for column in zip_longest(*rows, fillvalue="")]
    numeric = _numeric(table)
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]
    return [*lines, *([table.note] if table.note else [])]


def _numeric(table: SmallTable) -> list[bool]:
    def is_number(value: Value) -> bool:
        return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))

    return [bool(table.rows) and all(is_number(row[i]) for row in table.rows) for i in range(len(table.columns))]


def _text(value: Value, digits: int = 2) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.{digits}f}"
    if isinstance(value, int):
        return f"{value:,}"
    # A name with line breaks must not break the table.
    return " ".join(str(value).split())
