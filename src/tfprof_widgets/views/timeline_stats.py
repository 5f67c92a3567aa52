"""The stats of the timeline's events, packed so that the browser can look one event's up."""

from __future__ import annotations

import gzip
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .packing import byte_columns
from .stat_words import words_of
from .visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.details import StatColumn
    from . import spec

#: Room in the payload: of a report's size, what is for details and flows, less what base64 adds.
BYTES_AN_EVENT = 3
FIXED_BYTES = 24_000

_MOST_SHARED = 93


def add_stats(
    payload: spec.Tables,
    columns: Sequence[StatColumn],
    left_out: dict[str, int],
    first_row: int,
    n_events: int,
    prefix: str,
) -> spec.Item:
    """Add the tables of the stats, and return what the timeline's item says of them.

    Parameters
    ----------
    payload : Tables
        Gets ``{prefix}_stats`` (a row an event and stat: gap to the stat's event before, value), ``{prefix}_stat_names``,
        ``{prefix}_stat_values`` (text of each value) and ``{prefix}_stat_texts``.
    columns : sequence of StatColumn
        Stats by event of the trace.
    left_out : dict
        Number of events by stat, of those not in ``columns``.
    first_row : int
        Row of the timeline's events that is the trace's first event.
    n_events : int
        Events of the file: the room is by them.

    Returns
    -------
    dict
        ``table``, ``names``, ``values``, ``texts`` (payload tables), ``count``, ``total`` (stats here, and in the file),
        ``left_out`` (names of stats that aren't here).
    """
    # Those of the same events follow each other: what repeats is packed well.
    kept = sorted(columns, key=lambda column: (len(column.event), column.event[:1].tolist(), column.name))
    left_out = dict(left_out)
    room = FIXED_BYTES + BYTES_AN_EVENT * n_events
    tables = _tables(kept, first_row)
    while kept and _size(tables) > room:
        largest = max(kept, key=lambda column: 2 * len(column.event) + sum(map(len, column.texts)))
        kept.remove(largest)
        left_out[largest.name] = left_out.get(largest.name, 0) + len(largest.event)
        tables = _tables(kept, first_row)
    for name, table in tables.items():
        payload.add_table(f"{prefix}_{name}", table)
    count = sum(len(column.event) for column in kept)
    return {
        "table": f"{prefix}_stats",
        "names": f"{prefix}_stat_names",
        "values": f"{prefix}_stat_values",
        "texts": f"{prefix}_stat_texts",
        "count": count,
        "total": count + sum(left_out.values()),
        "left_out": sorted(left_out),
    }


def _tables(columns: Sequence[StatColumn], first_row: int) -> dict[str, pd.DataFrame]:
    texts = sorted({value for column in columns for value in column.texts})
    at = {text: i for i, text in enumerate(texts)}
    rows: list[dict[str, Any]] = []
    first = first_value = 0
    for column in columns:
        words = words_of(column.name)
        place = {"first": first, "count": len(column.event), "first_value": first_value, "values": len(column.texts)}
        rows.append({"name": column.name, **words._asdict(), **place})
        first += len(column.event)
        first_value += len(column.texts)
    gaps = [np.diff(column.event, prepend=-first_row) for column in columns]
    codes = [column.code for column in columns]
    values = [np.diff([at[value] for value in column.texts], prepend=0) for column in columns]
    empty = [np.empty(0, np.int64)]
    return {
        "stats": pd.DataFrame(
            byte_columns("row", np.concatenate(gaps or empty)) | byte_columns("value", np.concatenate(codes or empty))
        ),
        "stat_names": pd.DataFrame(
            rows, columns=["name", "label", "unit", "meaning", "first", "count", "first_value", "values"]
        ),
        "stat_values": pd.DataFrame(byte_columns("text", np.concatenate(values or empty))),
        "stat_texts": pd.DataFrame({"text": pd.Series([front_coded(texts)], dtype="str")}),
    }


def front_coded(texts: Sequence[str]) -> str:
    """Join sorted texts, of each only what differs from the one before: half the size of the texts, when packed.

    Each text is a character that says how many characters it shares with the one before (``!`` for none, then in the order of
    ASCII, at most 93), its rest, and a tab.
    """
    parts = []
    before = ""
    for text in texts:
        clean = visible(text).replace("\t", r"\t")
        shared = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before[:_MOST_SHARED], clean, strict=False))
        )
        # JavaScript counts the characters beyond 16 bits twice.
        if not clean[:shared].isascii():
            shared = 0
        parts.append(f"{chr(ord('!') + shared)}{clean[shared:]}\t")
        before = clean
    return "".join(parts)


def _size(tables: dict[str, pd.DataFrame]) -> int:
    """About what the tables take, packed."""
    parts = [column.to_numpy().tobytes() for name in ("stats", "stat_values") for _, column in tables[name].items()]
    parts.append(tables["stat_texts"]["text"].iloc[0].encode("utf-8", "surrogatepass"))
    return sum(len(gzip.compress(part, 6)) for part in parts)
