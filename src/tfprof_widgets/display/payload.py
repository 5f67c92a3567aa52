"""What a report's page holds: a JSON description and the tables that it names."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tfprof_widgets.display import assets
from tfprof_widgets.views.visible import visible, visible_column

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
"""The format of spec and tables; the front end refuses others."""

_LARGEST_EXACT = 2**53 - 1
"""The largest integer that every number up to it has in a JavaScript number."""

_SMALL = 64 * 1024
"""Bytes of a table that is unpacked soon, even with many others like it."""

_FEW = 4
"""A text column with so many rows for each of its texts is encoded by them."""


@dataclass
class Payload:
    """A report in the form in which it travels to the browser.

    Parameters
    ----------
    id : str
        Letters, digits, ``-`` and ``_``; the HTML and the link to Python find each other by it.
    version : str
        Version of tfprof_widgets.
    head : mapping
        ``{"title": str, "facts": [{"label", "value", "hint"?}]}``: the line above the tabs; None for a tool alone.
    tabs : list of mapping
        ``{"id", "title", "items"}`` each; the items are described in ``docs/architecture.md``.
    notes : list of str
        Remarks for the reader, shown under the head line.
    """

    id: str
    version: str = ""
    head: Mapping[str, Any] | None = field(default_factory=lambda: {"facts": []})
    tabs: list[Mapping[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tables: dict[str, bytes] = field(default_factory=dict)
    """Name to gzipped Arrow IPC stream; filled by `add_table`. A bundle holds several, one after the other."""
    bundles: list[dict[str, Any]] = field(default_factory=list)
    """``{"name", "tables", "sizes"}`` each: which tables a bundle holds, in what order, and their bytes; filled by `bundle`."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.id):
            raise ValueError(f"a payload's id has letters, digits, '-' and '_' only, not {self.id!r}")

    def add_table(self, name: str, data: pd.DataFrame | pa.Table) -> str:
        """Pack `data` under `name` and return the name.

        Columns keep their order; a DataFrame's index is left out. Integers travel in the smallest type that
        holds them, and as text if a JavaScript number can't (beyond 2**53); shares (``*_pct``) with seven digits. Characters
        that would hide or turn around the text beside them travel as signs (`visible`).

        Raises
        ------
        ValueError
            If there is a table of that name already.
        """
        if name in self.tables:
            raise ValueError(f"the payload already has a table named {name!r}")
        table = data if isinstance(data, pa.Table) else pa.Table.from_pandas(data, preserve_index=False)
        self.tables[name] = assets.pack(_ipc(_portable(table)))
        return name

    def bundle(self, name: str, tables: Sequence[str]) -> None:
        """Pack small tables that are much alike together: what they repeat, their columns' names to begin with, then travels once.

        Parameters
        ----------
        name : str
            A name that no table has.
        tables : sequence of str
            Tables of the payload; those that aren't small stay by themselves.
        """
        if name in self.tables:
            raise ValueError(f"the payload already has a table named {name!r}")
        unpacked = {table: gzip.decompress(self.tables[table]) for table in tables}
        small = {table: data for table, data in unpacked.items() if len(data) <= _SMALL}
        if len(small) < 2:
            return
        self.bundles.append({"name": name, "tables": list(small), "sizes": [len(data) for data in small.values()]})
        self.tables = {table: packed for table, packed in self.tables.items() if table not in small}
        self.tables[name] = assets.pack(b"".join(small.values()))

    @property
    def spec(self) -> dict[str, Any]:
        """The JSON-able description of the report."""
        spec: dict[str, Any] = _json_ready(
            {
                "format": FORMAT,
                "id": self.id,
                "version": self.version,
                "bokeh_version": assets.bokeh_version(),
                "head": self.head,
                "tabs": self.tabs,
                "notes": self.notes,
                **({"bundles": self.bundles} if self.bundles else {}),
            }
        )
        return spec

    def spec_gz(self) -> bytes:
        """Return the description as gzipped JSON."""
        return assets.pack(json.dumps(self.spec, separators=(",", ":"), allow_nan=False).encode())


def _json_ready(value: Any) -> Any:
    """Turn numpy's scalars into Python's, what JSON has no number for into null, and hidden characters into signs."""
    if isinstance(value, Mapping):
        return {visible(str(key)): _json_ready(each) for key, each in value.items()}
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Sequence):
        return [_json_ready(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    # One batch, so that the browser gets each column as one typed array.
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def _portable(table: pa.Table) -> pa.Table:
    """Bring columns to the types that the browser reads, and leave pandas' remarks out."""
    columns = [_portable_column(column) for column in table.columns]
    # A share needs no more than the seven digits of a small float.
    return pa.table(
        [
            column.cast(pa.float32()) if name.endswith("_pct") and pa.types.is_float64(column.type) else column
            for name, column in zip(table.column_names, columns, strict=True)
        ],
        names=table.column_names,
    )


def _portable_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = visible_column(column)
        return column.cast(pa.dictionary(pa.int32(), pa.string()))
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        column = visible_column(column.cast(pa.string()))
        # Texts that come again and again travel once.
        repeated = len(column) >= _FEW and pc.count_distinct(column, mode="all").as_py() <= len(column) // _FEW
        return column.combine_chunks().dictionary_encode() if repeated else column
    if pa.types.is_int64(kind) or pa.types.is_uint64(kind):
        return _smallest_integer(column)
    return column


def _smallest_integer(column: pa.ChunkedArray) -> pa.ChunkedArray:
    bounds = pc.min_max(column).as_py()
    low, high = bounds["min"] or 0, bounds["max"] or 0
    if low < -_LARGEST_EXACT or high > _LARGEST_EXACT:
        return column.cast(pa.string())
    for bits in (8, 16, 32):
        if low >= 0 and high < 2**bits:
            return column.cast(getattr(pa, f"uint{bits}")())
        if low < 0 and -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1):
            return column.cast(getattr(pa, f"int{bits}")())
    return column.cast(pa.int64())
