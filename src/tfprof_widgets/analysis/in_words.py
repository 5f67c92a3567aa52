"""Results in words: numbers as people read them, the same in sentences, tables and charts; and what a tool's result says of itself."""

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


# ---- numbers ------------------------------------------------------------------------------------------------


def ms(value: float, like: float | None = None) -> str:
    """Return a time in milliseconds as people read it.

    Its unit suits its size, or that of ``like``: times to be compared have one unit.
    """
    if value != value:  # NaN
        return "–"
    size = abs(value if like is None or like != like else like)
    unit, scale = next(((u, s) for u, s in (("s", 1e-3), ("ms", 1.0)) if size * s >= 1), ("µs", 1e3))
    least = 10.0 ** -_digits(size * scale)
    if 0 < abs(value * scale) < least / 2:
        return f"<{least:g} {unit}"
    return f"{value * scale:,.{_digits(size * scale)}f} {unit}"


def percent(value: float) -> str:
    """Return a percentage with one digit; a small share is not shown as none."""
    if value != value:
        return "–"
    if 0 < value < 0.05:
        return "<0.1 %"
    return f"{value:.1f} %"


def share(value: float) -> str:
    """Return a percentage without digits, as a sentence has it; nearly all is not shown as all, nor a little as none."""
    return percent(value) if 0 < value < 0.5 or 99.5 <= value < 99.95 else f"{value:.0f} %"


def _digits(size: float) -> int:
    """Return how many digits after the point give a number of this size three that count."""
    return 0 if size >= 100 else 1 if size >= 10 else 2
