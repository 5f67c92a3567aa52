"""The items that tabs are made of; ``docs/architecture.md`` says what each means.

Views build their tabs with these functions and nothing else, so that the shape of an item is
written down once in Python and once in ``js/src/types.ts``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bokeh.embed import json_item
from bokeh.models import (
    BoxZoomTool,
    ColumnDataSource,
    HoverTool,
    PanTool,
    Plot,
    Range1d,
    ResetTool,
    Text,
    WheelZoomTool,
)
from bokeh.plotting import figure

from ..analysis.in_words import ms as ms
from ..analysis.in_words import percent as percent

if TYPE_CHECKING:
    import pandas as pd
    from bokeh.models import GlyphRenderer
    from bokeh.models.glyph import Glyph

Item = dict[str, Any]
Tab = dict[str, Any]
Column = dict[str, Any]
Range = tuple[float, float]
Level = Literal["plain", "info", "warning", "error"]


class Tables(Protocol):
    """Where views leave the big data: the payload."""

    def add_table(self, name: str, frame: pd.DataFrame) -> Any:
        """Keep a table under a name that items refer to."""


# ---- items --------------------------------------------------------------------------------------------------


def tab(id: str, title: str, items: Sequence[Item]) -> Tab:
    """Return a tab of items in reading order."""
    return {"id": id, "title": title, "items": list(items)}


def text(words: str, level: Level = "plain") -> Item:
    """Return a paragraph."""
    return {"kind": "text", "text": words, "level": level}


def fact(
    label: str, value: Any, *, hint: str = "", color: str = "", hatch: bool = False, wide: bool = False
) -> dict[str, Any]:
    """Return a row of ``facts``; with a colour it is also the entry of a chart's legend, and a ``wide`` one a line below that."""
    row: dict[str, Any] = {"label": label, "value": value}
    if hint:
        row["hint"] = hint
    if color:
        row["color"] = color
    if hatch:
        row["hatch"] = True
    if wide:
        row["wide"] = True
    return row


def facts(title: str, rows: Sequence[Mapping[str, Any]]) -> Item:
    """Return a list of labelled values."""
    return {"kind": "facts", "title": title, "rows": [dict(row) for row in rows]}


def row(children: Sequence[Item], weights: Sequence[float] | None = None) -> Item:
    """Return items side by side."""
    item: Item = {"kind": "row", "children": list(children)}
    if weights is not None:
        item["weights"] = list(weights)
    return item


def switch(id: str, label: str, cases: Mapping[str, tuple[str, Sequence[Item]]], *, trait: str = "") -> Item:
    """Return items of which one case is shown at a time, the first one to begin with.

    Parameters
    ----------
    cases : mapping
        What each option's value stands for: its label and its items.
    trait : str, optional
        Trait of the widget that holds the label of the case shown, none of the case whose value is empty: switches of the same trait
        change together.
    """
    return {
        **({"trait": trait} if trait else {}),
        "kind": "switch",
        "id": id,
        "label": label,
        "options": [{"value": value, "label": option} for value, (option, _) in cases.items()],
        "value": next(iter(cases)),
        "cases": {value: list(items) for value, (_, items) in cases.items()},
    }


def section(title: str) -> Item:
    """Return the heading of a part of a tab."""
    return {"kind": "section", "title": title}


def link(label: str, href: str) -> dict[str, str]:
    """Return a link to a tool of the report (``tool:`` and its tab's id) or to an ``https://`` address."""
    return {"label": label, "href": href}


def stage(
    name: str,
    depth: int,
    cells: Sequence[Mapping[str, Any]],
    *,
    tags: Sequence[str] = (),
    marked: str = "",
    hint: str = "",
) -> dict[str, Any]:
    """Return a row of ``stages``; ``marked`` says why it stands out."""
    given: dict[str, Any] = {"name": name, "depth": depth, "tags": list(tags), "cells": [dict(cell) for cell in cells]}
    return given | {key: value for key, value in {"marked": marked, "hint": hint}.items() if value}


def stages(title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Mapping[str, Any]], note: str = "") -> Item:
    """Return a tree of stages with values: ``columns`` are the titles and hints of the stage's name and of its cells."""
    heads = [{"title": head} | ({"hint": hint} if hint else {}) for head, hint in columns]
    return {"kind": "stages", "title": title, "columns": heads, "rows": [dict(row) for row in rows]} | (
        {"note": note} if note else {}
    )


def column(
    field: str,
    title: str,
    kind: Literal["text", "number", "percent", "bool"],
    *,
    digits: int | None = None,
    unit: str = "",
    width: int | None = None,
    min_width: int | None = None,
    max_width: int | None = None,
    hint: str = "",
    trace: Mapping[str, str] | None = None,
    label: str = "",
    digits_field: str = "",
) -> Column:
    """Return a table's column; one without a ``width`` shares what the others leave, up to a ``max_width``.

    With ``trace`` its texts are names of events or ops, which the trace can show: those on one ``side`` (``device`` or ``host``, or as the
    field ``side_field`` says), of the op that ``op_field`` names. With ``label``, a field of the table, that one's
    short texts are shown in place of its own, which hovering, copying and files still have whole. ``digits_field`` is a field of the
    table that holds the digits of each row.
    """
    given: Column = {"field": field, "title": title, "kind": kind}
    optional: dict[str, Any] = {
        "digits": digits,
        "unit": unit or None,
        "width": width,
        "min_width": min_width,
        "max_width": max_width,
        "hint": hint or None,
    }
    optional |= {"trace": trace, "label": label or None, "digits_field": digits_field or None}
    return given | {key: value for key, value in optional.items() if value is not None}


def table(
    title: str,
    name: str,
    columns: Sequence[Column],
    *,
    sort: tuple[str, Literal["asc", "desc"]] | None = None,
    csv: str = "",
    filter: bool = False,
    where: Mapping[str, Any] | None = None,
) -> Item:
    """Return a table of the payload's ``name``."""
    item: Item = {"kind": "table", "title": title, "table": name, "columns": list(columns)}
    if sort is not None:
        item["sort"] = [{"field": sort[0], "dir": sort[1]}]
    if csv:
        item["csv"] = csv
    if filter:
        item["filter"] = True
    if where is not None:
        item["where"] = dict(where)
    return item


# ---- figures ------------------------------------------------------------------------------------------------


def plot(
    height: int, x_range: Range, y_range: Range, *, x_label: str = "", y_label: str = "", axes: bool = True
) -> Plot:
    """Return an empty figure, as wide as its place and ``height`` pixels high; one with axes can be zoomed sideways.

    Its colours are the page's (set where it is shown), so none is set here. BokehJS reads
    mathematics into titles, axis labels, legends and factors: text from a profile goes into none
    of them, only into ``hover`` (escaped there) and into legends made of `fact` rows.
    """
    wide = {
        "height": height,
        "sizing_mode": "stretch_width",
        "x_range": Range1d(*x_range),
        "y_range": Range1d(*y_range),
    }
    if not axes:
        p = Plot(**wide, toolbar_location=None, outline_line_color=None, min_border=0)
    else:
        zoom = [tool(dimensions="width") for tool in (PanTool, BoxZoomTool, WheelZoomTool)]
        p = figure(
            **wide, tools=[*zoom, ResetTool()], toolbar_location="right", x_axis_label=x_label, y_axis_label=y_label
        )
        p.x_range.bounds = "auto"
        p.toolbar.autohide = True
        # Dragging over the chart or scrolling the page past it must not move the chart.
        p.toolbar.active_drag = None
        p.toolbar.active_scroll = None
    p.toolbar.logo = None
    return p


def draw(p: Plot, source: ColumnDataSource, glyph: Glyph, **options: Any) -> GlyphRenderer:
    """Draw a glyph for each row of ``source``.

    Not by the figure's own methods: they make four copies of each glyph and give texts a colour of their own.
    """
    return p.add_glyph(source, glyph, **options)


def hover(p: Plot, renderers: Sequence[Any], tooltips: Sequence[tuple[str, str]], **options: Any) -> None:
    """Show values of the data source at the pointer.

    Tooltips name columns as ``@column`` or ``@column{0.00}``, never ``@column{safe}``: only so does BokehJS escape them.
    """
    if any("safe}" in shown for _, shown in tooltips):
        raise ValueError("a tooltip must not mark a profile's text as safe")
    p.add_tools(HoverTool(renderers=list(renderers), tooltips=list(tooltips), **options))


def caption(p: Plot, x: Any, y: Any, words: Any, **options: Any) -> None:
    """Write our own words (never a profile's) into a figure, in the page's colour."""
    source = ColumnDataSource({"x": list(x), "y": list(y), "words": list(words)})
    draw(p, source, Text(x="x", y="y", text="words", text_baseline="middle", **{"text_align": "center"} | options))


def chart(title: str, p: Plot, alt: str, note: str = "") -> Item:
    """Return a figure's item.

    Parameters
    ----------
    alt : str
        What the figure says, in words.
    """
    item: Item = {"kind": "figure", "title": title, "figure": json_item(p), "alt": alt}
    if note:
        item["note"] = note
    return item


# ---- numbers in words ---------------------------------------------------------------------------------------


def count(number: int, noun: str) -> str:
    """Return ``1 step``, ``1,234 steps``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
