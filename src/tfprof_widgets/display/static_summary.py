"""A summary in plain HTML and in plain text, for where no script runs.

JupyterLab's sanitizer and GitHub's keep only simple elements and few attributes, so there is no style and
no class here, and no heading (JupyterLab would list it in the notebook's table of contents). Names are set apart with
`bdi` where they share a line with others: one in a script that runs from right to left turns nothing else around.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from itertools import zip_longest

from tfprof_widgets.views.blocks import Block, Facts, SmallTable, Value
from tfprof_widgets.views.visible import visible

_SHORT = 12
"""A text of so many letters stays on one line."""

_LONGEST = 1000
"""A text with more letters than this is cut in the middle, and its length said."""


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """Return the blocks as HTML; every text is escaped."""
    parts = [f"<p><strong>{_html(title)}</strong></p>"] if title else []
    for block in blocks:
        if block.title:
            parts.append(f"<p><strong>{_html(block.title)}</strong></p>")
        if isinstance(block, Facts):
            facts = (f"<bdi>{_html(label)}: <strong>{_html(value)}</strong></bdi>" for label, value in block.rows)
            parts.append(f"<p>{' · '.join(facts)}</p>")
        elif isinstance(block, SmallTable):
            parts.append(_html_table(block))
        elif len(block.texts) == 1:
            parts.append(f"<p>{_html(block.texts[0])}</p>")
        else:
            parts.append("<ul>" + "".join(f"<li>{_html(text)}</li>" for text in block.texts) + "</ul>")
    return "\n".join(parts)


def to_text(title: str, blocks: Sequence[Block]) -> str:
    """Return the blocks as plain text with aligned columns."""
    parts = [_text(title)] if title else []
    for block in blocks:
        lines = [_text(block.title)] if block.title else []
        if isinstance(block, Facts):
            rows = [(_text(label), _text(value)) for label, value in block.rows]
            width = max((len(label) for label, _ in rows), default=0)
            lines += [f"{label:<{width}}  {value}" for label, value in rows]
        elif isinstance(block, SmallTable):
            lines += _text_table(block)
        else:
            mark = "- " if len(block.texts) > 1 else ""
            lines += [f"{mark}{_text(text)}" for text in block.texts]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _html_table(table: SmallTable) -> str:
    # JupyterLab's own style (all to the right) counts for more than `align`, and GitHub drops `style`.
    align = ['align="right"' if numeric else 'align="left" style="text-align:left"' for numeric in _numeric(table)]

    def row(tag: str, cells: Sequence[str]) -> str:
        inside = (f"<{tag} {side}>{_breakable(cell)}</{tag}>" for side, cell in zip(align, cells, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    head = row("th", [_text(column) for column in table.columns])
    body = "".join(row("td", [_text(value, table.digits) for value in values]) for values in table.rows)
    note = f"<p><small>{_html(table.note)}</small></p>" if table.note else ""
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{note}"


def _breakable(text: str) -> str:
    """Escape; a long name may be broken after its parts, and a number stays with its unit."""
    if len(text) <= _SHORT:
        return _no_maths(escape(text).replace(" ", "&nbsp;"))
    return _no_maths(_PART.sub(r"\g<0><wbr>", escape(text)))


# Where a name may be broken: after what stands between its parts, and between their words (Conv2D|Backprop|Filter).
_PART = re.compile(r"::|[/:.,…]|_(?=[A-Za-z])|[A-Za-z0-9](?=[A-Z][a-z])")


def _text_table(table: SmallTable) -> list[str]:
    rows = [
        [_text(column) for column in table.columns],
        *([_text(value, table.digits) for value in row] for row in table.rows),
    ]
    widths = [max(len(cell) for cell in column) for column in zip_longest(*rows, fillvalue="")]
    numeric = _numeric(table)
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]
    return [*lines, *([_text(table.note)] if table.note else [])]


_QUANTITY = re.compile(r"–|[<>−-]?[\d.,]+(\s?(%|[^\W\d_]{1,3}))?")
"""A number as text, with a unit: ``12.3 %``, ``0.48 ms``."""


def _numeric(table: SmallTable) -> list[bool]:
    """For each column, whether all its values are numbers, which stand to the right."""
    return [
        bool(table.rows) and all(_QUANTITY.fullmatch(_text(row[i])) is not None for row in table.rows)
        for i in range(len(table.columns))
    ]


def _text(value: Value, digits: int = 2) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        shown = f"{value:,.{digits}f}"
        # As elsewhere in the report: a minus, and none before what is shown as 0.
        return shown.replace("-", "−" if shown.strip("-0.,") else "")
    if isinstance(value, int):
        return f"{value:,}"
    # A name with line breaks must not break the table.
    text = " ".join(visible(str(value)).split())
    if len(text) <= _LONGEST:
        return text
    return f"{text[:200]}… ({len(text):,} characters) …{text[-60:]}"


def _html(text: Value) -> str:
    return _no_maths(escape(_text(text)))


def _no_maths(html: str) -> str:
    """Set the marks of mathematics apart: notebooks typeset what is between two of them, across no elements."""
    return re.sub(r"\$|\\(?=[(\[])", r"<span>\g<0></span>", html)
