"""What a linked page asks of Python: exactly the events that its bars stand for, their details, and how many a search finds."""

from __future__ import annotations

import gc
import gzip
import weakref

import numpy as np
import pyarrow as pa
import pytest

from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets.analysis.details import first_row, stat_columns
from tfprof_widgets.analysis.flows import flows
from tfprof_widgets.analysis.thinning import thinned
from tfprof_widgets.analysis.unmerging import Unmerger
from tfprof_widgets.report import Report
from tfprof_widgets.report.link import answer, answering
from tfprof_widgets.report.on_demand import OnDemand
from tfprof_widgets.views.colors import OpColors
from tfprof_widgets.xspace import read


def report_of(*spaces: Space) -> Report:
    return Report([read(space.bytes()) for space in spaces])


def table(packed: bytes):
    return pa.ipc.open_stream(gzip.decompress(packed)).read_all().to_pandas()


def joined(frame, name: str) -> np.ndarray:
    """A number of each row, from its columns of bytes."""
    columns = [column for column in frame if column.rstrip("0123456789") == name]
    return sum(frame[column].to_numpy(np.int64) << (8 * i) for i, column in enumerate(columns))


@pytest.fixture(scope="module")
def report():
    return report_of(gpu_capture(devices=2, steps=30, layers=8))


@pytest.fixture(scope="module")
def parts(report):
    whole = report.timelines[0]
    thin = thinned(whole, 2000)
    return whole, thin, OnDemand(report.hosts[0].trace, whole, thin, report._colors)


def ask(parts, kind: str, most: int | None = None, **more):
    _, thin, on_demand = parts
    return on_demand.answer({"kind": kind, "rows": len(thin.data.events), **more}, most)


def test_bars_share_out_all_events_that_are_not_alone(parts):
    whole, thin, _ = parts
    everything = Unmerger(thin, whole).within(0, whole.span_ps)
    assert everything.bars.tolist() == np.flatnonzero(thin.count > 1).tolist()
    assert len(everything.rows) == thin.count[thin.count > 1].sum()
    alone = thin.first[thin.count == 1]
    assert sorted([*everything.rows, *alone]) == list(range(len(whole.events)))


def test_a_window_has_all_its_events(parts):
    whole, thin, _ = parts
    start = whole.events["start_ps"].to_numpy()
    end = start + whole.events["duration_ps"].to_numpy()
    low, high = 0.4 * whole.span_ps, 0.42 * whole.span_ps
    found = Unmerger(thin, whole).within(low, high)
    assert 0 < len(found.rows) < len(whole.events) / 4
    here = {*found.rows.tolist(), *thin.first[thin.count == 1].tolist()}
    inside = np.flatnonzero((start < high) & (end > low))
    assert set(inside.tolist()) <= here
    # What is gone is what has come, to the picosecond.
    gone = thin.data.events["duration_ps"].to_numpy()[found.bars].sum()
    assert whole.events["duration_ps"].to_numpy()[found.rows].sum() == gone
    for (first, count), track in zip(found.tracks.tolist(), thin.track.tolist(), strict=True):
        of = whole.tracks.iloc[track]
        rows = found.rows[first : first + count]
        assert ((rows >= of["first"]) & (rows < of["first"] + of["count"])).all()
    assert found.tracks[:, 1].sum() == len(found.rows)


def test_an_event_that_is_to_stay_stays(parts):
    whole, thin, _ = parts
    unmerger = Unmerger(thin, whole)
    row = int(thin.last[np.flatnonzero(thin.count > 1)[-1]])
    low, high = 0.0, 0.01 * whole.span_ps
    assert row not in unmerger.within(low, high).rows
    assert row in unmerger.within(low, high, keep=[row]).rows
    assert row not in unmerger.within(low, high, keep=[len(whole.events), -1]).rows  # no events at all


def test_a_window_as_it_is_sent(parts):
    whole, thin, _ = parts
    low, high = 0.4 * whole.span_ps / 1e9, 0.42 * whole.span_ps / 1e9
    told, tables = ask(parts, "window", most=5000, range_ms=[low, high])
    assert not told["all"]
    # Wider than was asked for: it moves a while before more is needed.
    assert told["window_ps"][0] < low * 1e9 < high * 1e9 < told["window_ps"][1]
    events = table(tables["events"])
    rows = np.cumsum(joined(events, "row"))
    assert np.cumsum(joined(table(tables["bars"]), "row")).max() < len(thin.data.events)
    names = [*thin.data.names["name"], *table(tables["names"])["name"]]
    assert [names[code] for code in joined(events, "name")] == whole.names["name"].iloc[
        whole.events["name"].iloc[rows]
    ].to_list()
    assert (joined(events, "duration") * told["unit_ps"] == whole.events["duration_ps"].to_numpy()[rows]).all()
    assert (joined(events, "lane") == whole.events["lane"].to_numpy()[rows]).all()


def test_all_of_the_trace_is_sent_where_it_is_small_and_none_where_a_window_is_too_big(parts):
    whole, thin, _ = parts
    window = [0.4 * whole.span_ps / 1e9, 0.42 * whole.span_ps / 1e9]
    told, _ = ask(parts, "window", range_ms=window)
    assert told["all"]
    own = whole.tracks[whole.tracks["kind"].isin(["host", "device"])]
    assert told["events"] + thin.n_alone == own["count"].sum()
    told, tables = ask(parts, "window", most=3, range_ms=window)
    assert told["too_many"] > told["most"] == 3
    assert not tables


@pytest.mark.parametrize("of_page", [True, False])
def test_details_are_those_of_the_event(report, parts, of_page):
    whole, thin, _ = parts
    columns = stat_columns(report.hosts[0].trace)[0]
    with_details = np.unique(np.concatenate([column.event for column in columns])) + first_row(whole)
    if of_page:
        row = int(np.flatnonzero((thin.count == 1) & np.isin(thin.first, with_details))[0])
        event = int(thin.first[row]) - first_row(whole)
    else:
        event = int(with_details[-1]) - first_row(whole)
        row = event + first_row(whole) + len(thin.data.events)
    told, _ = ask(parts, "details", row=row)
    expected = {c.name: c.texts[c.code[list(c.event).index(event)]] for c in columns if event in c.event}
    assert expected
    assert {stat["name"]: stat["value"] for stat in told["stats"]} == expected


@pytest.mark.parametrize(
    ("match", "text"), [("text", "RELU"), ("regex", "^(?:relu|gemm)"), ("text", "nothing like it")]
)
def test_a_search_counts_the_events_of_the_file(report, parts, match, text):
    told, _ = ask(parts, "search", text=text, match=match)
    names = report.events["name"]
    found = report.events[names.str.contains(text, case=False, regex=match == "regex")]
    assert told["count"] == len(found)
    assert told["total_ps"] == pytest.approx(found["duration_us"].sum() * 1e6)


def test_what_is_folded_away_counts_too():
    report = report_of(cpu_fit_capture(1, 6))
    whole = report.timelines[0]
    assert len(whole.hidden)
    thin = thinned(whole, 300)
    on_demand = OnDemand(report.hosts[0].trace, whole, thin, OpColors())
    told, _ = on_demand.answer({"kind": "search", "rows": len(thin.data.events), "text": "", "match": "text"})
    assert told["count"] == len(report.events)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"kind": "file"}, "window, details, search, not for 'file'"),
        ({"kind": "window", "rows": 1, "range_ms": [0, 1]}, "has changed"),
        ({"kind": "window", "range_ms": [1, 1]}, "ends after it begins"),
        ({"kind": "window", "range_ms": [0, float("nan")]}, "ends after it begins"),
        ({"kind": "search", "text": "(", "match": "regex"}, "reads this pattern differently"),
        ({"kind": "search", "text": "x", "match": "like"}, "not 'like'"),
    ],
)
def test_what_cant_be_answered_says_why(parts, question, words):
    _, thin, on_demand = parts
    with pytest.raises(ValueError, match="(?s)" + words):
        on_demand.answer({"rows": len(thin.data.events), **question})


class Link:
    """Remembers what was sent."""

    def send(self, content, buffers):
        self.content, self.buffers = content, buffers


def test_every_question_gets_its_answer(report):
    whole_size = len(report.html.encode())
    report.max_mb = (whole_size - 40_000) / 1e6
    try:
        item = next(
            item
            for tab in report.payload.tabs
            for item in tab["items"]
            if tab["id"] == "trace" and item["kind"] == "timeline"
        )
        thin = report._trimmed.timelines[0]
        assert item["part"]["alone"] == thin.n_alone < item["part"]["events"]
        hear = answering(weakref.ref(report))
        link = Link()
        question = {"timeline": item["events"], "rows": len(thin.data.events), "range_ms": [0, 1]}
        hear(link, {**question, "kind": "window", "question": 7}, [])
        assert link.content["question"] == 7
        assert link.content["tables"] == ["events", "bars", "names"]
        assert len(link.buffers) == 3
        for number, wrong in enumerate(({}, {**question, "kind": "window", "range_ms": "all"}, {"timeline": "other"})):
            hear(link, {**wrong, "question": number}, [])
            assert link.content["question"] == number
            assert link.content["error"]
        hear(link, "what?", [])
        assert link.content["error"]

        # An event that the page got since is known by the row after the page's own.
        row = 5000
        track = int(np.flatnonzero(report.timelines[0].tracks["first"] <= row)[-1])
        page_track = int(np.flatnonzero(thin.track == track)[0])
        selected = {"timeline": item["events"], "track": page_track, "row": len(thin.data.events) + row}
        report._selected = {**selected, "range_ms": [0, 0]}
        name = report.timelines[0].names["name"][report.timelines[0].events["name"][row]]
        assert report.selection["name"].to_list() == [name]
    finally:
        report._selected = None
        report.max_mb = 4


def test_a_report_that_is_gone_is_told():
    link = Link()
    report = report_of(gpu_capture(1, 3))
    hear = answering(weakref.ref(report))
    del report
    gc.collect()
    hear(link, {"kind": "window", "question": 1}, [])
    assert "not in Python any more" in link.content["error"]


def test_a_page_that_has_all_asks_for_nothing(report):
    report.max_mb = None
    trace = next(tab for tab in report.payload.tabs if tab["id"] == "trace")
    assert all("part" not in item for item in trace["items"])
    with pytest.raises(ValueError, match="no part of a trace"):
        answer(report, {"kind": "window", "timeline": "timeline_0_events"})
    report.max_mb = 4


def test_an_event_leads_to_what_it_launched(report, parts):
    whole, thin, _ = parts
    first = first_row(whole)
    launches = next(flow for flow in flows(report.hosts[0].trace) if flow.kind == "launch")
    n = len(thin.data.events)
    event, group = int(launches.source[-1]), launches.source_group[-1]
    targets = launches.target[launches.target_group == group]
    told, _ = ask(parts, "details", row=n + first + event)
    way = next(way for way in told["ways"] if way["label"] == "Led to")
    assert way["count"] == len(targets)
    row = first + int(targets[0])
    # One that the page has keeps its row there.
    assert way["row"] == n + row or (thin.first[way["row"]] == row and thin.count[way["row"]] == 1)
    assert way["name"] == whole.names["name"][whole.events["name"][row]]
    assert way["start_ps"] == whole.events["start_ps"][row]
    # And the way back.
    back, _ = ask(parts, "details", row=way["row"])
    assert whole.events["start_ps"][first + event] in [
        way["start_ps"] for way in back["ways"] if way["label"] == "Caused by"
    ]
