"""The trace timeline: an empty Bokeh figure, and the events as small integers for the browser to draw into it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING
from zlib import compress, crc32

import numpy as np
import pandas as pd
from bokeh.models import ColumnDataSource, FixedTicker, Grid, LinearAxis, Quad, Range1d, Text
from bokeh.models.formatters import BasicTickFormatter
from bokeh.plotting import figure

from ..analysis.details import first_row
from . import spec
from .colors import OpColors
from .packing import byte_columns, n_bytes_of
from .template import Template
from .timeline_stats import add_stats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..analysis.counters import CounterTrack
    from ..analysis.details import StatColumn
    from ..analysis.flows import Flow
    from ..analysis.timeline import Timeline
    from ..analysis.unmerging import Unmerged

#: Fills of what is no op: paler than an op's, so that the ops stand out, and readable under black on both themes.
OTHER_PALETTE = (
    "#a3b7cb", "#c9b79c", "#a9c2a4", "#c7a9bd", "#aeaed2", "#c6c08d", "#93bfc4", "#cda898", "#b3bfae", "#b8a7c9",
)  # fmt: skip
#: Fills of steps by kind.
STEP_COLORS = {"train": "#3f8fd9", "test": "#8a70c9", "predict": "#3fa7a0"}
_STEP_COLOR = "#5b87b0"

# A name without what makes it one of many: numbers, and what follows a colon and a blank.
_VARIABLE = re.compile(r": .*|\d+")

PS_PER_NS = 1000

# Rows, and in how many stretches, from which is told what all take.
_SAMPLE, _SAMPLES = 1 << 16, 4
_AXIS_PX = 27


def timeline_tab(
    payload: spec.Tables,
    data: Timeline,
    colors: OpColors | None = None,
    prefix: str = "timeline",
    stats: tuple[list[StatColumn], dict[str, int]] | None = None,
    flows: Sequence[Flow] = (),
) -> spec.Tab:
    """Return the Trace tab.

    Parameters
    ----------
    payload : Tables
        Gets ``{prefix}_events``, ``{prefix}_hidden``, ``{prefix}_tracks``, ``{prefix}_names``.
    data : Timeline
        What to draw.
    colors : OpColors, optional
        Colours of op types, as in the report's other views.
    prefix : str
        Of the names of the payload's tables.
    stats : list of StatColumn and dict, optional
        What the profiler noted with the events, and what of it is left out: from `analysis.details.stat_columns`.
    flows : sequence of Flow
        Arrows between events.
    """
    colors = colors or OpColors()
    unit_ps = _unit_ps(data)
    # A counter's rows are in a table of their own: its first one there is no event.
    first = data.tracks[data.tracks["kind"] != "counter"].groupby("hidden")["first"]
    firsts = {hidden: np.sort(rows.to_numpy()) for hidden, rows in first}
    empty = np.empty(0, np.int64)
    payload.add_table(f"{prefix}_events", pack_events(data.events, firsts.get(False, empty), unit_ps))
    if len(data.hidden):
        payload.add_table(f"{prefix}_hidden", pack_events(data.hidden, firsts.get(True, empty), unit_ps))
    payload.add_table(f"{prefix}_tracks", data.tracks)
    payload.add_table(f"{prefix}_names", data.names.assign(color=_colors(data.names, colors)))
    item: spec.Item = {
        "kind": "timeline",
        "events": f"{prefix}_events",
        "hidden": f"{prefix}_hidden" if len(data.hidden) else None,
        "hidden_count": len(data.hidden),
        "tracks": f"{prefix}_tracks",
        "names": f"{prefix}_names",
        "figure": _skeleton().fill({}),
        "unit_ps": unit_ps,
        "span_ps": data.span_ps,
        "sections": [{"title": s.title, "collapsed": s.collapsed} for s in data.sections],
        "empty_planes": data.empty_planes,
        "alt": describe(data),
    }
    if data.counters:
        payload.add_table(f"{prefix}_counters", pack_counters(data.counters, unit_ps))
        item["counters"] = {
            "table": f"{prefix}_counters",
            "units": [counter.unit for counter in data.counters],
            "scales": [_scale(counter) for counter in data.counters],
        }
    if flows:
        payload.add_table(f"{prefix}_flows", pack_flows(flows, first_row(data)))
        parts = [{"kind": flow.kind, "sources": len(flow.source), "targets": len(flow.target)} for flow in flows]
        item["flows"] = {"table": f"{prefix}_flows", "parts": parts}
    if stats is not None:
        item["stats"] = add_stats(payload, *stats, first_row(data), len(data.events) + len(data.hidden), prefix)
    return spec.tab("trace", "Trace", [item])


def describe(data: Timeline) -> str:
    """Return what the timeline shows, in words."""
    own = data.tracks[data.tracks["kind"].isin(["host", "device"])]
    words = [
        f"{spec.count(int(own['count'].sum()), 'event')} on {spec.count(len(own), 'track')} in {spec.ms(data.span_ps / 1e9)}."
    ]
    if len(own):
        busiest = own.loc[own["busy_ps"].idxmax()]
        words.append(f"Busiest: {busiest['label']}, {spec.ms(busiest['busy_ps'] / 1e9)}.")
    steps = int(data.tracks.loc[data.tracks["kind"] == "steps", "count"].sum())
    if steps:
        words.append(f"{spec.count(steps, 'step')} on top.")
    if len(data.hidden):
        words.append(f"{spec.count(len(data.hidden), 'event')} of thread-pool bookkeeping folded away.")
    if data.empty_planes:
        words.append(f"Without events: {', '.join(data.empty_planes)}.")
    return " ".join(words)


# ---- packing ------------------------------------------------------------------------------------------------


def _unit_ps(data: Timeline) -> int:
    """Nanoseconds if all times are whole ones (they nearly always are), else picoseconds."""
    columns = [frame[name].to_numpy() for frame in (data.events, data.hidden) for name in ("start_ps", "duration_ps")]
    return PS_PER_NS if all(not (column % PS_PER_NS).any() for column in columns) else 1


def pack_events(events: pd.DataFrame, first: NDArray[np.int64], unit_ps: int) -> pd.DataFrame:
    """Turn events into columns of bytes that gzip packs well: under 3 bytes an event.

    Each start becomes the gap from the event before it on its track: from that one's start if this one lies
    in a deeper lane, else from its end (gaps are negative only where lanes were packed; they wrap around). Every
    number is then split into its bytes, one column each (``start0`` holds the lowest): the high bytes hardly vary.

    Parameters
    ----------
    events : DataFrame (N)
        ``start_ps``, ``duration_ps``, ``name``, ``lane``, ordered by track.
    first : int64 array
        First row of each track, ascending.
    unit_ps : int
        Picoseconds in a tick.

    Returns
    -------
    DataFrame (N)
        ``start0`` …, ``duration0`` …, ``name0`` …, ``lane0`` …, all uint8.
    """
    start = events["start_ps"].to_numpy() // unit_ps
    duration = events["duration_ps"].to_numpy() // unit_ps
    lane = events["lane"].to_numpy()
    end = start + duration
    before = np.zeros(len(events), np.int64)
    if len(events):
        before[1:] = np.where(lane[1:] > lane[:-1], start[:-1], end[:-1])
        before[first] = 0
        # Above a track's first event there is no lane, so it may lie in any.
    n_bytes = n_bytes_of(int(end.max()) if len(events) else 0)
    columns = byte_columns("start", (start - before) % 256**n_bytes, n_bytes)
    columns |= byte_columns("duration", duration)
    columns |= byte_columns("name", events["name"].to_numpy())
    columns |= byte_columns("lane", lane)
    return pd.DataFrame(columns)


def packed_bytes(events: pd.DataFrame) -> int:
    """Return about how many bytes events take in a page's tables: from a sample, if they are many.

    Parameters
    ----------
    events : DataFrame (N)
        As for `pack_events`.
    """
    n, few = len(events), _SAMPLE // _SAMPLES
    if n > _SAMPLE:
        starts = np.linspace(0, n - few, _SAMPLES).astype(np.int64)
        events = pd.concat([events.iloc[first : first + few] for first in starts])
    columns = pack_events(events, np.arange(0, len(events), few), PS_PER_NS)
    packed = sum(len(compress(column.to_numpy().tobytes(), 6)) for _, column in columns.items())
    return packed * n // max(len(events), 1)


def _scale(counter: CounterTrack) -> int:
    return max(1, int(np.gcd.reduce(counter.value)))


def pack_counters(counters: Sequence[CounterTrack], unit_ps: int) -> pd.DataFrame:
    """Return a row a change, counter after counter: ``time{n}`` (gap to the one before, in ticks), ``value{n}`` (by its scale)."""
    gaps = [np.diff(counter.time_ps // unit_ps, prepend=0) for counter in counters]
    values = [counter.value // _scale(counter) for counter in counters]
    return pd.DataFrame(byte_columns("time", np.concatenate(gaps)) | byte_columns("value", np.concatenate(values)))


def pack_flows(flows: Sequence[Flow], first_row: int) -> pd.DataFrame:
    """Return a row a source, then a row a target, of each flow: ``row{n}`` (gap to the one before), ``group{n}`` (zigzag of the change)."""
    sides = [(e, g) for f in flows for e, g in ((f.source, f.source_group), (f.target, f.target_group))]
    gaps = [np.diff(event, prepend=-first_row) for event, _ in sides]
    changes = [np.diff(group, prepend=0) for _, group in sides]
    zigzag = [np.where(change < 0, -2 * change - 1, 2 * change) for change in changes]
    return pd.DataFrame(byte_columns("row", np.concatenate(gaps)) | byte_columns("group", np.concatenate(zigzag)))


def add_unmerged(payload: spec.Tables, found: Unmerged, whole: Timeline, part: Timeline, colors: OpColors) -> spec.Item:
    """Add what comes in the place of bars.

    Parameters
    ----------
    payload : Tables
        Gets ``events`` (as of a timeline, and ``row{n}``: gaps of their rows in the whole), ``bars`` (``row{n}``: gaps of the rows of those
        that are taken apart) and ``names`` (those that the page lacks; they follow its own).
    found : Unmerged
        Bars and events.
    whole, part : Timeline
        All of the timeline, and what the page has of it.
    colors : OpColors
        Colours of op types.

    Returns
    -------
    dict
        ``unit_ps`` of the events, and ``tracks``: first and number of the events of each track of the page.
    """
    events = whole.events.iloc[found.rows]
    columns = ["name", "short", "type", "op", "role"]
    known = {row: i for i, row in enumerate(part.names[columns].itertuples(index=False, name=None))}
    used, code = np.unique(events["name"].to_numpy(), return_inverse=True)
    names = whole.names.iloc[used]
    places = np.empty(len(used), np.int64)
    new: list[int] = []
    for i, row in enumerate(names[columns].itertuples(index=False, name=None)):
        if row not in known:
            known[row] = len(part.names) + len(new)
            new.append(i)
        places[i] = known[row]
    unit_ps = _unit_ps(whole)
    first = np.unique(found.tracks[found.tracks[:, 1] > 0, 0])
    packed = pack_events(events.assign(name=places[code]), first, unit_ps)
    payload.add_table("events", packed.assign(**byte_columns("row", np.diff(found.rows, prepend=0))))
    payload.add_table("bars", pd.DataFrame(byte_columns("row", np.diff(found.bars, prepend=0))))
    added = names.iloc[new]
    payload.add_table("names", added.assign(color=_colors(added, colors)))
    return {"unit_ps": unit_ps, "tracks": found.tracks.tolist()}


def _colors(names: pd.DataFrame, op_color: Callable[[str], str]) -> list[str]:
    def color(name: str, kind: str, role: str) -> str:
        if role == "step":
            return STEP_COLORS.get(kind, _STEP_COLOR)
        if role in ("op", "merged") and kind:
            return op_color(kind)
        stem = _VARIABLE.sub("", name)
        return OTHER_PALETTE[crc32(stem.encode("utf-8", "surrogatepass")) % len(OTHER_PALETTE)]

    return [color(*row) for row in zip(names["name"], names["type"], names["role"], strict=True)]


# ---- figure -------------------------------------------------------------------------------------------------


@cache
def _skeleton() -> Template:
    """The figure of every host: it takes longer to make than a small host's data."""
    return Template(_figure())


def _figure() -> figure:
    """Return the figure that the browser fills.

    Its units are pixels from the top left corner of the frame, so that no zoom strains the precision of a float.
    """
    boxes = ColumnDataSource({name: [] for name in ("left", "right", "top", "bottom", "color")}, name="boxes")
    words = ColumnDataSource({name: [] for name in ("x", "y", "text", "color")}, name="words")
    ticker = FixedTicker(ticks=[], minor_ticks=[], name="ticker")
    p = figure(
        height=320,
        x_range=Range1d(0, 1),
        y_range=Range1d(1, 0),
        x_axis_type=None,
        y_axis_type=None,
        tools=[],
        toolbar_location=None,
        output_backend="canvas",
        min_border=0,
        # Room for the axis, and the filter beside it, also where no mark is in view.
        min_border_top=_AXIS_PX,
        outline_line_color=None,
        lod_threshold=None,
        sizing_mode="stretch_width",
    )
    axis = LinearAxis(
        ticker=ticker,
        formatter=BasicTickFormatter(name="formatter"),
        minor_tick_line_color=None,
        major_tick_in=0,
        name="axis",
    )
    p.add_layout(axis, "above")
    p.add_layout(Grid(dimension=0, ticker=ticker))
    fill = Quad(left="left", right="right", top="top", bottom="bottom", fill_color="color", line_color=None)
    text = Text(x="x", y="y", text="text", text_color="color", text_font_size="11px", text_baseline="middle")
    for source, glyph in ((boxes, fill), (words, text)):
        # Nothing is selected by Bokeh: no glyphs for that need to be kept up to date.
        p.add_glyph(source, glyph, selection_glyph=None, nonselection_glyph=None, muted_glyph=None)
    return p
