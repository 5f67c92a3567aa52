"""The user's own measurements as tracks of the timeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .intervals import union_ps
from .nesting import nest
from .timeline import TRACK_COLUMNS, Section, pack_lanes, tracks_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .timeline import Timeline

SECTION = "Own tracks"
_COLUMNS = ("start_us", "duration_us", "name")
_PS_PER_NS = 1000
# What the browser's numbers hold exactly, in ns.
_LATEST_US = 1e12


def checked_track(frame: Any) -> pd.DataFrame:
    """Return the events of a track: ``start_us``, ``duration_us`` (float64), ``name`` (str), in the order of drawing.

    Raises
    ------
    TypeError
        If it is no DataFrame.
    ValueError
        If a column is missing, or a time is none, or begins before the trace, or ends before it begins; the message says which.
    """
    if not isinstance(frame, pd.DataFrame):
        msg = f"A track is a pandas DataFrame with the columns {', '.join(_COLUMNS)}, not {type(frame).__name__}."
        raise TypeError(msg)
    missing = [name for name in _COLUMNS if name not in frame]
    if missing:
        msg = (
            f"The track lacks the columns {', '.join(missing)}; it has {', '.join(map(str, frame.columns)) or 'none'}."
        )
        raise ValueError(msg)
    times = {}
    for name in _COLUMNS[:2]:
        value = pd.to_numeric(frame[name], errors="coerce").to_numpy(np.float64)
        _demand(np.isfinite(value), f"{name} is not a number")
        _demand(
            value >= 0,
            f"{name} is negative" + (" (it counts from the start of the trace)" if name == "start_us" else ""),
        )
        _demand(value <= _LATEST_US, f"{name} is beyond {_LATEST_US:.0e} µs (it counts from the start of the trace)")
        times[name] = value
    names = frame["name"].astype("str").where(frame["name"].notna(), "")
    order = np.lexsort((-times["duration_us"], times["start_us"]))
    return pd.DataFrame({**times, "name": names.to_numpy(object)}).iloc[order].reset_index(drop=True)


def _demand(fulfilled: np.ndarray[Any, np.dtype[np.bool_]], complaint: str) -> None:
    bad = np.flatnonzero(~fulfilled)
    if len(bad):
        msg = f"In {len(bad):,} of the track's {len(fulfilled):,} rows {complaint}; the first is row {bad[0]}."
        raise ValueError(msg)


def with_section(data: Timeline, title: str, tracks: Mapping[str, Sequence[Any]]) -> Timeline:
    """Return the timeline with one more section, below the steps and above all else; its events must be added yet.

    Parameters
    ----------
    tracks : mapping
        The columns of `Timeline.tracks` but the section, for the section's tracks.
    """
    section = int("steps" in data.tracks["kind"].to_list())
    rows = {name: data.tracks[name].tolist() for name in TRACK_COLUMNS}
    rows["section"] = [each + (each >= section) for each in rows["section"]] + [section] * len(tracks["label"])
    for name, values in tracks.items():
        rows[name] += values
    in_order = sorted(range(len(rows["section"])), key=rows["section"].__getitem__)
    return replace(
        data,
        sections=[*data.sections[:section], Section(title), *data.sections[section:]],
        tracks=tracks_table({name: [values[i] for i in in_order] for name, values in rows.items()}),
    )


def with_own_tracks(data: Timeline, own: Mapping[str, pd.DataFrame]) -> Timeline:
    """Return the timeline with a section of the user's tracks, below the steps and above all else.

    Parameters
    ----------
    data : Timeline
        The timeline without them.
    own : mapping
        Events by the track's name, each from `checked_track`.
    """
    tracks: dict[str, list[Any]] = {name: [] for name in TRACK_COLUMNS if name != "section"}
    events, names = [data.events], [data.names]
    first, first_name, span_ps = len(data.events), len(data.names), data.span_ps
    for label, frame in own.items():
        if frame.empty:
            continue
        start, duration = (
            np.rint(frame[name].to_numpy() * 1000).astype(np.int64) * _PS_PER_NS for name in ("start_us", "duration_us")
        )
        line = np.zeros(len(frame), np.int32)
        # Rounding may have changed who comes first.
        order = np.lexsort((-duration, start))
        start, duration = start[order], duration[order]
        lane = pack_lanes(line.astype(np.int64), start, duration, nest(line, start, duration)[0])
        code, distinct = pd.factorize(frame["name"].to_numpy(object)[order])
        events.append(
            pd.DataFrame({"start_ps": start, "duration_ps": duration, "name": first_name + code, "lane": lane})
        )
        names.append(pd.DataFrame({"name": distinct, "short": distinct, "type": "", "op": "", "role": "other"}))
        row = {
            "label": label, "hint": label, "kind": "own", "hidden": False, "first": first,
            "count": len(frame), "lanes": int(lane.max()) + 1,
            "busy_ps": int(union_ps(line.astype(np.int64), start, start + duration, 1)[0]),
        }  # fmt: skip
        for column, value in row.items():
            tracks[column].append(value)
        first += len(frame)
        first_name += len(distinct)
        span_ps = max(span_ps, int((start + duration).max()))
    if not tracks["label"]:
        return data
    return replace(
        with_section(data, SECTION, tracks),
        events=pd.concat(events, ignore_index=True).astype(data.events.dtypes.to_dict()),
        names=pd.concat(names, ignore_index=True),
        span_ps=span_ps,
    )
