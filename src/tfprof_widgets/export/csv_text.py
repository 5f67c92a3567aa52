"""Tables as CSV files, in which no text of a profile may be a formula to a spreadsheet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

# What spreadsheets take for the beginning of a formula; the last four are the wide forms that some take too.
_NUMBER = re.compile(r"[+-][\d.]+(e[+-]?\d+)?", re.IGNORECASE)
_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_tables(tables: Iterable[tuple[str, pd.DataFrame]], directory: str | os.PathLike[str]) -> list[Path]:
    """Write each named table as a CSV file into a directory, which is made if need be; return the files written."""
    target = Path(directory).expanduser()
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables:
        file = target / f"{name}.csv"
        without_formulas(table).to_csv(file, index=False)
        written.append(file)
    return written


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with an apostrophe before each text that a spreadsheet would take for a formula."""
    changed = {}
    for name in table.columns:
        column = table[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            texts = column.cat.categories
            safe = _safe(texts)
            # Two texts must not become one category.
            if safe != list(texts):
                changed[name] = column.astype(object).map(dict(zip(texts, safe, strict=True)))
        elif not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            safe = _safe(column)
            if safe != list(column):
                changed[name] = pd.Series(safe, index=column.index, dtype=object)
    return table.assign(**changed)


def _safe(texts: Iterable[object]) -> list[object]:
    return [f"'{text}" if isinstance(text, str) and _is_formula(text) else text for text in texts]


def _is_formula(text: str) -> bool:
    return text.startswith(_BEGINNINGS) and _NUMBER.fullmatch(text) is None
