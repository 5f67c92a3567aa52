"""What a reader has selected in the timeline, as rows of the table of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .details import first_row
from .own_tracks import SECTION as OWN_TRACKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .events import Trace
    from .timeline import Timeline

_PS_PER_MS = 1e9
# Tracks that repeat what is on others.
_REPEATING = ("steps", "derived")


def selected_rows(selection: Mapping[str, Any], data: Timeline, trace: Trace) -> NDArray[np.int64]:
    """Return which rows of the trace's `events_table` are selected, ascending.

    Parameters
    ----------
    selection : mapping
        As the browser tells it: ``track`` and ``row`` of an event (rows count within ``data.events``, or ``data.hidden`` if the track
        is hidden there), or ``range_ms`` and ``lanes``, each with ``track``, ``first``, ``last`` (lanes of the track). A step stands
        for what began in its time, a derived event for what began in its time on its device; in a box neither counts.
    data : Timeline
        What was drawn.
    trace : Trace
        The events of it.

    Returns
    -------
    int64 array
        Empty for what is no selection.
    """
    first = first_row(data)
    whole = trace.whole
    found = []
    for hidden, rows in _selected(selection, data).items():
        of = trace.bookkeeping if hidden else trace
        event = rows - (0 if hidden else first)
        event = event[(event >= 0) & (event < len(of))]
        found.append(whole.rank[event if of.order is None else of.order[event]])
    return np.unique(np.concatenate(found)).astype(np.int64) if found else np.empty(0, np.int64)


def selected_own(selection: Mapping[str, Any], data: Timeline) -> pd.DataFrame:
    """Return the user's own events that are selected, as rows of an `events_table`: ``line`` is the track, ``plane`` that of all of them.

    Parameters
    ----------
    selection, data
        As for `selected_rows`.
    """
    rows = np.unique(_selected(selection, data).get(False, np.empty(0, np.int64)))
    own = data.tracks[data.tracks["kind"] == "own"]
    track = np.searchsorted(own["first"].to_numpy(), rows, side="right") - 1
    mine = track >= 0
    rows, track = rows[mine], track[mine]
    inside = rows < (own["first"] + own["count"]).to_numpy()[track]
    rows, track = rows[inside], track[inside]
    events = data.events.iloc[rows]
    return pd.DataFrame(
        {
            "plane": OWN_TRACKS,
            "line": own["label"].to_numpy(object)[track],
            "name": data.names["name"].to_numpy(object)[events["name"].to_numpy()],
            "start_us": events["start_ps"].to_numpy() / 1e6,
            "duration_us": events["duration_ps"].to_numpy() / 1e6,
            "depth": events["lane"].to_numpy(),
            "step": pd.array([pd.NA] * len(rows), dtype="Int64"),
        }
    )


def _selected(selection: Mapping[str, Any], data: Timeline) -> dict[bool, NDArray[np.int64]]:
    """Rows of ``data.events`` (False) and of ``data.hidden`` (True), in no order."""
    tracks = data.tracks
    parts: dict[bool, list[NDArray[np.int64]]] = {}

    def add(track: pd.Series[Any], rows: NDArray[np.int64]) -> None:
        parts.setdefault(bool(track["hidden"]), []).append(rows)

    if "row" in selection:
        track = tracks.iloc[int(selection["track"])]
        row = int(selection["row"])
        if track["kind"] not in _REPEATING:
            add(track, np.array([row], np.int64))
        elif 0 <= row < len(data.events):
            step = data.events.iloc[row]
            span = int(step["start_ps"]), int(step["start_ps"] + step["duration_ps"])
            own = ~tracks["kind"].isin((*_REPEATING, "counter")) & ~tracks["hidden"]
            if track["kind"] == "derived":
                own &= tracks["section"] == track["section"]
            for index in np.flatnonzero(own):
                inside, start, _ = _times(data, tracks.iloc[index])
                add(tracks.iloc[index], inside[(start >= span[0]) & (start < span[1])])
    else:
        low, high = (round(float(ms) * _PS_PER_MS) for ms in selection["range_ms"])
        for lanes in selection["lanes"]:
            track = tracks.iloc[int(lanes["track"])]
            if track["kind"] in (*_REPEATING, "counter"):
                continue
            rows, start, end = _times(data, track)
            lane = (data.hidden if track["hidden"] else data.events)["lane"].to_numpy()[rows]
            add(
                track,
                rows[(end >= low) & (start <= high) & (lane >= int(lanes["first"])) & (lane <= int(lanes["last"]))],
            )
    return {hidden: np.concatenate(rows) for hidden, rows in parts.items()}


def _times(data: Timeline, track: pd.Series[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows, starts and ends of a track's events."""
    frame = data.hidden if track["hidden"] else data.events
    rows = np.arange(track["first"], track["first"] + track["count"])
    start = frame["start_ps"].to_numpy()[rows]
    return rows, start, start + frame["duration_ps"].to_numpy()[rows]
