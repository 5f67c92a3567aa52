"""A summary in plain HTML and in plain text, for where no script runs.

The summary is made of blocks: plain dicts in the form of a tab's items, with a table's rows in place.

======== ==========================================================================================
``kind`` fields
======== ==========================================================================================
text     ``text``, ``level`` (``plain``, ``info``, ``warning``, ``error``)
facts    ``title?``, ``rows``: list of ``{label, value}``
table    ``title?``, ``columns``: list of Column, ``rows``: list of lists, ``note?``
notes    ``title?``, ``texts``: list of str
======== ==========================================================================================

JupyterLab's sanitizer and GitHub's keep only simple elements and few attributes, so there is no style and
no class here, and no heading (JupyterLab would list it in the notebook's table of contents).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_LEVEL = {"info": "Note: ", "warning": "Warning: ", "error": "Error: "}


def blocks_to_html(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the blocks as HTML; every text is escaped."""
    parts = []
    for block in blocks:
        if block.get("title"):
            parts.append(f"<p><strong>{escape(block['title'])}</strong></p>")
        match block["kind"]:
            case "text":
                parts.append(f"<p>{escape(_leveled(block))}</p>")
            case "facts":
                rows = (
                    f"{escape(row['label'])}: <strong>{escape(_text(row['value']))}</strong>" for row in block["rows"]
                )
                parts.append(f"<p>{' · '.join(rows)}</p>")
            case "table":
                parts.append(_html_table(block))
            case "notes":
                parts.append("<ul>" + "".join(f"<li>{escape(text)}</li>" for text in block["texts"]) + "</ul>")
            case kind:
                raise ValueError(f"the static summary has no block of kind {kind!r}")
    return "\n".join(parts)


def blocks_to_text(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the blocks as plain text with aligned columns."""
    parts = []
    for block in blocks:
        lines = [block["title"]] if block.get("title") else []
        match block["kind"]:
            case "text":
                lines.append(_leveled(block))
            case "facts":
                width = max((len(row["label"]) for row in block["rows"]), default=0)
                lines += [f"{row['label']:<{width}}  {_text(row['value'])}" for row in block["rows"]]
            case "table":
                lines += _text_table(block)
            case "notes":
                lines += [f"- {_one_line(text)}" for text in block["texts"]]
            case kind:
                raise ValueError(f"the static summary has no block of kind {kind!r}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _leveled(block: Mapping[str, Any]) -> str:
    return _LEVEL.get(block.get("level", "plain"), "") + str(block["text"])


def _html_table(block: Mapping[str, Any]) -> str:
    columns = block["columns"]
    sides = ["right" if _is_numeric(column) else "left" for column in columns]

    def row(tag: str, texts: Sequence[str]) -> str:
        cells = (f'<{tag} align="{side}">{escape(text)}</{tag}>' for side, text in zip(sides, texts, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    head = row("th", [_header(column) for column in columns])
    body = "".join(row("td", texts) for texts in _cells(block))
    note = f"<p><small>{escape(block['note'])}</small></p>" if block.get("note") else ""
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{note}"


def _text_table(block: Mapping[str, Any]) -> list[str]:
    columns = block["columns"]
    rows = [[_header(column) for column in columns], *_cells(block)]
    widths = [max(len(cell) for cell in cells) for cells in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if _is_numeric(column) else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ).rstrip()
        for row in rows
    ]
    return [*lines, block["note"]] if block.get("note") else lines


def _cells(block: Mapping[str, Any]) -> list[list[str]]:
    return [
        [_text(value, column) for value, column in zip(row, block["columns"], strict=True)] for row in block["rows"]
    ]


def _is_numeric(column: Mapping[str, Any]) -> bool:
    return column["kind"] in ("number", "percent")


def _header(column: Mapping[str, Any]) -> str:
    return f"{column['title']} ({column['unit']})" if column.get("unit") else str(column["title"])


def _text(value: Any, column: Mapping[str, Any] | None = None) -> str:
    """Return a value as people read it, in the way that ``js/src/format.ts`` does."""
    column = column or {"kind": "text"}
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, str):
        return _one_line(value)
    if isinstance(value, bool) or column["kind"] == "bool":
        return "yes" if value else "no"
    percent = column["kind"] == "percent"
    digits = column.get("digits", 1 if percent else None)
    if digits is None:
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.6f}".rstrip("0").rstrip(".")
    else:
        text = f"{value:,.{digits}f}"
    return f"{text}%" if percent else text


def _one_line(text: str) -> str:
    """A name with line breaks must not break the table that it is in."""
    return " ".join(str(text).split())
