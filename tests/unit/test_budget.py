"""Reports within a budget: what is left out, that it is said, and that what is shown is true."""

from __future__ import annotations

import numpy as np
import pytest

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from tfprof_widgets.analysis.thinning import thinned, without_bookkeeping
from tfprof_widgets.budget import parse_max_mb
from tfprof_widgets.report import Report
from tfprof_widgets.views.timeline import describe
from tfprof_widgets.xspace import read


def report_of(*spaces: Space) -> Report:
    return Report([read(space.bytes()) for space in spaces])


@pytest.fixture(scope="module")
def report():
    return report_of(gpu_capture(devices=2, steps=120, layers=8))


def rows_of(data, track) -> slice:
    return slice(track["first"], track["first"] + track["count"])


def by_lane(data) -> dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]:
    """Starts and ends of the events of each track and lane."""
    found = {}
    for index, track in data.tracks.iterrows():
        if track["kind"] == "counter" or track["hidden"]:
            continue
        part = data.events.iloc[rows_of(data, track)]
        for lane, events in part.groupby("lane"):
            start = events["start_ps"].to_numpy()
            found[track["label"], index, lane] = start, start + events["duration_ps"].to_numpy()
    return found


@pytest.mark.parametrize("most", [5000, 1000, 300])
def test_a_thinned_timeline_has_the_same_busy_times(report, most):
    whole = report.timelines[0]
    thin = thinned(whole, most)
    assert len(thin.data.events) <= most < len(whole.events)
    assert len(thin.data.events) > most * 0.8
    assert thin.count.sum() == len(whole.events)
    before = {key[::2]: (end - start).sum() for key, (start, end) in by_lane(without_bookkeeping(whole).data).items()}
    after = by_lane(thin.data)
    assert {key[::2]: (end - start).sum() for key, (start, end) in after.items()} == before
    for start, end in after.values():
        assert (start[1:] >= end[:-1]).all()  # nothing overlaps in a lane
    # Rows are ordered as the browser wants them.
    for _, track in thin.data.tracks.iterrows():
        if track["kind"] != "counter":
            part = thin.data.events.iloc[rows_of(thin.data, track)]
            assert (np.diff(part["start_ps"]) >= 0).all()


def test_what_matters_most_is_kept(report):
    whole = report.timelines[0]
    thin = thinned(whole, 1000)
    tracks = thin.data.tracks
    assert (
        tracks.loc[tracks["kind"] == "steps", "count"].sum()
        == whole.tracks.loc[whole.tracks["kind"] == "steps", "count"].sum()
    )
    alone = thin.count == 1
    shown = set(thin.first[alone].tolist())
    on_device = whole.tracks[whole.tracks["kind"] == "device"]
    rows = np.concatenate(
        [np.arange(track["first"], track["first"] + track["count"]) for _, track in on_device.iterrows()]
    )
    longest = rows[np.argsort(-whole.events["duration_ps"].to_numpy()[rows])[:50]]
    assert set(longest.tolist()) <= shown
    # A bar is called after its longest event, and says how many it stands for.
    bars = thin.data.events[~alone]
    assert thin.data.names["name"].iloc[bars["name"]].str.startswith("Merged events, the longest: ").all()
    stats = thin.stats
    assert [int(stats.texts[code].replace(",", "")) for code in stats.code] == thin.count[~alone].tolist()


def test_a_timeline_that_is_small_enough_loses_only_bookkeeping():
    whole = report_of(cpu_fit_capture(1, 5)).timelines[0]
    assert len(whole.hidden)
    thin = thinned(whole, 10**6)
    assert (thin.count == 1).all()
    assert not len(thin.data.hidden)
    assert not thin.data.tracks["hidden"].any()
    assert len(thin.data.events) == len(whole.events)
    assert thin.n_alone == sum(whole.tracks.loc[whole.tracks["kind"].isin(["host", "device"]), "count"])


def test_counters_keep_their_peaks(report):
    whole = report.timelines[0]
    assert sum(len(counter.time_ps) for counter in whole.counters) > 200
    thin = thinned(whole, 400).data
    assert [counter.label for counter in thin.counters] == [counter.label for counter in whole.counters]
    for less, more in zip(thin.counters, whole.counters, strict=True):
        at = np.searchsorted(more.time_ps, less.time_ps)
        assert (more.time_ps[at] == less.time_ps).all()
        assert (more.value[at] == less.value).all()
        assert less.value.max() == more.value.max()
        assert less.value[-1] == more.value[-1]
    tracks = thin.tracks[thin.tracks["kind"] == "counter"]
    counts = [len(counter.time_ps) for counter in thin.counters]
    assert sum(counts) <= 100 + 2 * len(counts)
    assert tracks["count"].to_list() == counts
    assert tracks["first"].to_list() == (np.cumsum(counts) - counts).tolist()


def test_a_selection_means_the_same_events(report):
    whole, host = report.timelines[0], report.hosts[0]
    thin = thinned(whole, 1000)
    tracks = thin.data.tracks
    for wanted in (np.flatnonzero(thin.count > 20), np.flatnonzero(thin.count == 1)):
        kinds = np.repeat(tracks["kind"].to_numpy(object), tracks["count"].where(tracks["kind"] != "counter", 0))
        row = int(next(r for r in wanted if kinds[r] == "host"))
        track = next(
            i for i, t in tracks.iterrows() if t["kind"] == "host" and t["first"] <= row < t["first"] + t["count"]
        )
        start = thin.data.events["start_ps"][row] / 1e9
        selection = {"timeline": "timeline_0_events", "track": track, "row": row, "range_ms": [start, start]}
        report._selected = thin.in_whole(selection, whole)
        found = report.selection
        assert len(found) == thin.count[row]
        assert found["line"].nunique() == 1
        assert found["duration_us"].sum() == pytest.approx(thin.data.events["duration_ps"][row] / 1e6)
    report._selected = None
    assert host.trace is not None


def test_a_report_fits_its_budget_and_says_what_is_left_out(report):
    whole_size = len(report.html.encode())
    assert report.payload is report._whole_payload
    budget = (whole_size - 60_000) / 1e6
    report.max_mb = budget
    try:
        size = len(report.html.encode())
        assert size <= budget * 1e6
        n_events = len(report.events)
        fact = report.payload.head["facts"][-1]
        assert fact["label"] == "One by one in the page"
        assert fact["value"].endswith(f" of {n_events:,}")
        note = report.payload.notes[-1]
        assert "max_mb=None" in note
        assert "--max-mb none" in note
        static = report.html.partition('<div class="tfprof-mount">')[0]
        assert f"of {n_events:,} events one by one" in static
        # All tables are there, whole.
        for name, table in report._whole_payload.tables.items():
            if not name.startswith("timeline"):
                assert report.payload.tables[name] == table
        assert len(report._trimmed.timelines[0].data.events) < len(report.timelines[0].events)
        report.max_mb = None
        assert len(report.html.encode()) == whole_size
        assert not any("one by one" in note for note in report.payload.notes)
    finally:
        report.max_mb = 4


def test_details_and_arrows_go_before_events(report):
    details = sum(len(table) for name, table in report._whole_payload.tables.items() if "_stat" in name)
    assert details * 4 / 3 > 10_000  # base64
    report.max_mb = (len(report.html.encode()) - 5_000) / 1e6
    try:
        plan = report._trimmed.plan
        assert (plan.arrows, plan.details, plan.events) == (False, False, None)
        assert report.payload.notes[-1].count("Left out: the events' details and arrows.") == 1
    finally:
        report.max_mb = 4


def test_a_budget_below_the_tables_is_said(report):
    report.max_mb = 0.1
    try:
        assert "This report takes more than the 0.1 MB asked for" in report.payload.notes[-1]
        assert len(report._trimmed.timelines[0].data.events) < 1000
    finally:
        report.max_mb = 4


def test_hosts_share_the_budget():
    report = report_of(*pod_captures(3, 1, 30))
    report.max_mb = (len(report.html.encode()) - 25_000) / 1e6
    assert len(report.html.encode()) <= report.max_mb * 1e6
    assert len(report._trimmed.timelines) == 3
    assert report.payload.tabs[3]["items"][1]["kind"] == "switch"


def test_the_file_has_the_size_that_is_asked_for(report, tmp_path):
    whole = report.to_html(tmp_path / "whole.html", max_mb=None).stat().st_size
    small = report.to_html(tmp_path / "small.html", max_mb=0.9).stat().st_size
    assert small <= 900_000 < whole
    assert report.max_mb == 4
    with pytest.raises(ValueError, match="above 0"):
        report.to_html(tmp_path / "none.html", max_mb=-1)
    assert report.max_mb == 4


def test_the_linked_widget_shows_all(report):
    report.max_mb = 0.8
    try:
        assert set(report.widget().tables) == set(report._whole_payload.tables)
    finally:
        report.max_mb = 4


def test_words_of_a_whole_timeline_are_as_before(report):
    assert "events" in describe(report.timelines[0])


@pytest.mark.parametrize(("text", "size"), [("4", 4.0), ("0.5", 0.5), ("none", None), ("None", None)])
def test_a_size_is_read(text, size):
    assert parse_max_mb(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "big", "nan"])
def test_a_wrong_size_is_refused(text):
    with pytest.raises(ValueError, match="a number of megabytes above 0"):
        parse_max_mb(text)
