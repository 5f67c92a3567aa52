"""Figures that are made once and filled many times: Bokeh takes some 50 ms for each, whatever is in it."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.embed import json_item

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bokeh.models import LayoutDOM
    from numpy.typing import NDArray

    Column = Sequence[Any] | NDArray[Any]

# Numbers are written out up to so many: bytes would take more room.
_FEW = 16
_NAN = {"type": "number", "value": "nan"}


class Template:
    """A figure whose data sources and ranges are found by their names.

    Parameters
    ----------
    plot : Plot, or a layout of several
        Its data sources (empty), ranges, glyphs and annotations that vary have a ``name``.
    """

    def __init__(self, plot: LayoutDOM) -> None:
        self._json = json.dumps(json_item(plot))

    def fill(
        self, data: Mapping[str, Mapping[str, Column]], more: Mapping[str, Mapping[str, Any]] | None = None
    ) -> dict[str, Any]:
        """Return the figure's JSON with its data.

        Parameters
        ----------
        data : mapping
            Columns of each data source, by the source's name.
        more : mapping, optional
            Attributes (numbers and texts) of other models, by their name.
        """
        figure: dict[str, Any] = json.loads(self._json)
        wanted: dict[str, Mapping[str, Any]] = {
            **{name: {"data": _columns(columns)} for name, columns in data.items()},
            **(more or {}),
        }
        missing = set(wanted) - _set_attributes(figure["doc"]["roots"], wanted)
        if missing:
            raise ValueError(f"the figure has no model named {', '.join(sorted(missing))}")
        return figure


def _set_attributes(value: Any, wanted: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Set attributes of the models with these names; return the names found."""
    if isinstance(value, list):
        return set().union(*(_set_attributes(each, wanted) for each in value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*(_set_attributes(each, wanted) for each in value.values()))
    attributes = value.get("attributes")
    name = attributes.get("name") if isinstance(attributes, dict) and value.get("type") == "object" else None
    if isinstance(attributes, dict) and isinstance(name, str) and name in wanted:
        attributes.update(wanted[name])
        found.add(name)
    return found


def _columns(columns: Mapping[str, Column]) -> dict[str, Any]:
    return {"type": "map", "entries": [[name, _column(values)] for name, values in columns.items()]}


def _column(values: Column) -> Any:
    """Return a column as Bokeh writes it: a few values as a list, many numbers as bytes."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or len(array) <= _FEW:
        return [_NAN if each != each else each for each in array.tolist()]
    array = array.astype("<f4" if array.dtype.kind == "f" else "<i4")
    packed = gzip.compress(array.tobytes(), mtime=0)
    return {
        "type": "ndarray",
        "array": {"type": "bytes", "data": base64.b64encode(packed).decode()},
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "order": "little",
    }
