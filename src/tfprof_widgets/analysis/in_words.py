"""What a tool's result says of itself at the end of a cell: not all of its tables, which would fill the page."""

from __future__ import annotations

import dataclasses
import reprlib
from typing import Any

import pandas as pd

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 100
_short.maxdict = 12


def described(result: Any, statement: str) -> str:
    """Return a sentence, and a line for each field of a dataclass: its value, or what its table holds.

    Parameters
    ----------
    result : dataclass
        A tool's result.
    statement : str
        What it found, in a sentence.

    Returns
    -------
    str
        Several lines.
    """
    name = type(result).__name__
    fields = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    width = max(map(len, fields))
    lines = [f"{name}: {statement}" if statement else name]
    lines += [f"  .{field:<{width}}  {_in_short(value)}" for field, value in fields.items() if value is not statement]
    return "\n".join(lines)


def _in_short(value: Any) -> str:
    if isinstance(value, pd.DataFrame):
        return (
            f"DataFrame, {len(value):,} {'row' if len(value) == 1 else 'rows'} of {', '.join(map(str, value.columns))}"
        )
    if isinstance(value, list) and value:
        return f"list of {len(value):,} {type(value[0]).__name__}"
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__} of {', '.join(field.name for field in dataclasses.fields(value))}"
    return _short.repr(value)
