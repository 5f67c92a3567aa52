"""What is selected in the browser, as rows of the report's events."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from generate import Space, gpu_capture
from tfprof_widgets.display import assets
from tfprof_widgets.display.payload import Payload
from tfprof_widgets.report import Report
from tfprof_widgets.report.link import answer as answered
from tfprof_widgets.xspace import read

try:
    assets.front_end("widget.js")
except assets.FrontEndMissingError:
    pytest.skip("the front end is not built", allow_module_level=True)


def space() -> Space:
    space = Space(hostname="w")
    host = space.plane("/host:CPU")
    # Out of order in the file, and with bookkeeping between.
    pool = host.line("tf_Compute/1", id=2)
    pool.event("late:Relu", 2500, 100)
    pool.event("ThreadpoolListener::Record", 1200, 1)
    pool.event("early:Relu", 1100, 100)
    python = host.line("python", id=1)
    for step in range(3):
        python.event("train", step * 1000, 900, step_num=step, _r=1)
        python.event("call", step * 1000 + 50, 800)
    return space


@pytest.fixture
def report() -> Report:
    return Report([read(space().bytes())])


def track_of(report: Report, label: str, host: int = 0) -> int:
    return report.timelines[host].tracks["label"].to_list().index(label)


def names(report: Report) -> list[tuple[str, float]]:
    return list(zip(report.selection["name"], report.selection["start_us"], strict=True))


def test_nothing_is_an_empty_table_of_events(report: Report) -> None:
    assert len(report.selection) == 0
    assert list(report.selection) == list(report.events)


def test_a_click_is_one_event(report: Report) -> None:
    widget = report.widget()
    tracks, track = report.timelines[0].tracks, track_of(report, "tf_Compute")
    row = int(tracks.loc[track, "first"])
    told = {"timeline": "timeline_0_events", "range_ms": [1.1, 1.2], "track": track, "row": row}
    widget.set_state({"selection": told})
    assert names(report) == [("early:Relu", 1100)]
    assert report.selection.index.to_list() == report.events.index[report.events["name"] == "early:Relu"].to_list()
    widget.set_state({"selection": None})
    assert len(report.selection) == 0


def test_a_hidden_event_is_one_too(report: Report) -> None:
    track = report.timelines[0].tracks["kind"].to_list().index("bookkeeping")
    report.widget().set_state(
        {"selection": {"timeline": "timeline_0_events", "range_ms": [1, 2], "track": track, "row": 0}}
    )
    assert names(report) == [("ThreadpoolListener::Record", 1200)]


def test_a_step_is_what_began_in_its_time(report: Report) -> None:
    told = {"timeline": "timeline_0_events", "range_ms": [1, 1.9], "track": track_of(report, "Steps"), "row": 1}
    report.widget().set_state({"selection": told})
    assert sorted(names(report)) == [("call", 1050), ("early:Relu", 1100), ("train", 1000)]


def test_a_box_is_what_touches_it_on_its_lanes(report: Report) -> None:
    lanes = [
        {"track": track_of(report, "Steps"), "first": 0, "last": 0},
        {"track": track_of(report, "python (main)"), "first": 1, "last": 1},
        {"track": track_of(report, "tf_Compute"), "first": 0, "last": 0},
    ]
    widget = report.widget()
    widget.set_state({"selection": {"timeline": "timeline_0_events", "range_ms": [1.0, 2.05], "lanes": lanes}})
    assert sorted(names(report)) == [("call", 1050), ("call", 2050), ("early:Relu", 1100)]
    # The last display that was used counts.
    report.widget().set_state({"selection": {"timeline": "timeline_0_events", "range_ms": [2.4, 3], "lanes": lanes}})
    assert sorted(names(report)) == [("call", 2050), ("late:Relu", 2500)]


def test_of_several_hosts_it_is_the_one_that_was_clicked() -> None:
    report = Report([read(space().bytes()), read(space().bytes())])
    track = track_of(report, "tf_Compute", 1)
    row = int(report.timelines[1].tracks.loc[track, "first"]) + 1
    told = {"timeline": "timeline_1_events", "range_ms": [1, 2], "track": track, "row": row}
    report.widget().set_state({"selection": told})
    assert names(report) == [("late:Relu", 2500)]
    assert report.selection.index[0] >= len(report.events) // 2


def test_a_derived_event_is_what_ran_on_its_device() -> None:
    report = Report([read(gpu_capture(devices=2, steps=3, layers=2).bytes())])
    data = report.timelines[0]
    track = data.tracks["kind"].to_list().index("derived")
    row = int(data.tracks.loc[track, "first"])
    event = data.events.iloc[row]
    told = {"timeline": "timeline_0_events", "range_ms": [0, 1], "track": track, "row": row}
    report.widget().set_state({"selection": told})
    start = event["start_ps"] / 1e6
    plane = report.selection["plane"].astype(str)
    assert plane.nunique() == 1
    assert data.sections[data.tracks.loc[track, "section"]].title.startswith(plane.iloc[0])
    assert report.selection["start_us"].between(start, start + event["duration_ps"] / 1e6).all()
    assert len(report.selection) > 0


def test_the_trace_viewer_is_the_trace_alone(report: Report) -> None:
    state = report.trace_viewer(range_ms=(1, 2), highlight="call").get_state()
    assert (state["range_ms"], state["highlight"]) == ([1.0, 2.0], "call")
    assert [tab["id"] for tab in json.loads(state["spec"])["tabs"]] == ["trace"]
    assert set(state["tables"]) < set(report.payload.tables)
    everything = report.trace_viewer().get_state()
    assert (everything["range_ms"], everything["highlight"]) == (None, None)
    with pytest.raises(ValueError, match="range_ms must be two times"):
        report.trace_viewer(range_ms=(2, 1))


def test_a_selection_in_the_trace_viewer_counts_too(report: Report) -> None:
    viewer = report.trace_viewer()
    told = {"timeline": "timeline_0_events", "range_ms": [1, 1.9], "track": track_of(report, "Steps"), "row": 1}
    viewer.set_state({"selection": told})
    assert len(report.selection) == 3


def test_own_measurements_are_selected_too(report: Report) -> None:
    report.add_track(
        pd.DataFrame({"start_us": [1050, 1150, 5000], "duration_us": [100, 20, 1], "name": ["load", "parse", "late"]}),
        name="Mine",
    )
    report.add_track(pd.DataFrame({"start_us": [1080], "duration_us": [1], "name": ["other"]}), name="Other")
    widget = report.widget()
    tracks, mine = report.timelines[0].tracks, track_of(report, "Mine")
    first = int(tracks.loc[mine, "first"])
    told = {"timeline": "timeline_0_own2_events", "range_ms": [1.15, 1.17], "track": mine, "row": first + 1}
    widget.set_state({"selection": told})
    row = report.selection.iloc[0]
    assert report.selection.columns.to_list() == report.events.columns.to_list()
    assert (row["plane"], row["line"], row["name"], row["start_us"], row["duration_us"]) == (
        "Own tracks", "Mine", "parse", 1150, 20,
    )  # fmt: skip
    # A box over them and a thread: the file's events first.
    lanes = [{"track": track_of(report, label), "first": 0, "last": 9} for label in ("Mine", "Other", "tf_Compute")]
    widget.set_state({"selection": {"timeline": "timeline_0_own2_events", "range_ms": [1.0, 1.2], "lanes": lanes}})
    assert names(report) == [("early:Relu", 1100), ("load", 1050), ("parse", 1150), ("other", 1080)]
    assert report.selection.index.is_unique
    # A step stands for what began in its time, whoever measured it.
    step = int(tracks.loc[track_of(report, "Steps"), "first"]) + 1
    widget.set_state(
        {
            "selection": {
                "timeline": "timeline_0_own2_events",
                "range_ms": [1, 1.9],
                "track": track_of(report, "Steps"),
                "row": step,
            }
        }
    )
    assert {"load", "parse", "other", "train"} <= set(report.selection["name"])
    assert "late" not in set(report.selection["name"])


# ---- displays made before the report's timeline changed -----------------------------------------------------------------


def own(name: str) -> pd.DataFrame:
    return pd.DataFrame({"start_us": [1150, 1160], "duration_us": [5, 5], "name": [f"{name} 1", f"{name} 2"]})


def item_of(payload: Payload) -> dict[str, Any]:
    trace = next(tab for tab in payload.tabs if tab["id"] == "trace")
    return next(item for item in trace["items"] if item["kind"] == "timeline")


def told_by(item: dict[str, Any], payload: Payload, label: str, **more: Any) -> dict[str, Any]:
    """What a display tells of its first event on a track: all numbers are of its own tables."""
    tracks = pa.ipc.open_stream(gzip.decompress(payload.tables[item["tracks"]])).read_all().to_pandas()
    track = tracks["label"].to_list().index(label)
    row = int(tracks.loc[track, "first"])
    return {"timeline": item["events"], "range_ms": [1, 2], "track": track, "row": row, **more}


def test_a_display_made_before_a_track_was_added_still_means_what_it_shows(report: Report) -> None:
    made = [(item_of(report.payload), report.payload)]
    for name in ("One", "Two"):
        report.add_track(own(name), name)
        made.append((item_of(report.payload), report.payload))
    assert len({item["events"] for item, _ in made}) == 3
    # All of them speak through the one link of the report.
    link = report.widget()
    for item, payload in made:
        link.set_state({"selection": told_by(item, payload, "tf_Compute")})
        assert names(report) == [("early:Relu", 1100)]
        box = told_by(item, payload, "tf_Compute")
        lanes = [{"track": box.pop("track"), "first": 0, "last": 0}]
        del box["row"]
        link.set_state({"selection": {**box, "lanes": lanes}})
        assert names(report) == [("early:Relu", 1100)]
        bookkeeping = "tf_Compute · pool bookkeeping"
        link.set_state({"selection": told_by(item, payload, bookkeeping, row=0)})
        assert names(report) == [("ThreadpoolListener::Record", 1200)]
    for item, payload in made[1:]:
        link.set_state({"selection": told_by(item, payload, "One")})
        assert names(report) == [("One 1", 1150)]
    # A step there is without the measurements that the display didn't have yet.
    for (item, payload), n_own in zip(made, (0, 2, 4), strict=True):
        told = told_by(item, payload, "Steps")
        link.set_state({"selection": {**told, "row": told["row"] + 1}})
        assert len(report.selection) == 3 + n_own


def test_a_display_of_another_report_selects_nothing(report: Report) -> None:
    for timeline in ("timeline_1_events", "timeline_0_own1_events", "timeline_0_tracks", "before_events", None, 3):
        told = {"timeline": timeline, "range_ms": [1, 2], "track": 1, "row": 0}
        report.widget().set_state({"selection": told})
        assert len(report.selection) == 0


def test_a_page_with_a_part_of_the_trace_means_what_it_shows_whatever_was_done_since() -> None:
    report = Report([read(gpu_capture(devices=1, steps=12, layers=8).bytes())])
    report.max_mb = max(0.9 * len(report.html.encode()) / 1e6, 0.1)
    before, payload = item_of(report.payload), report.payload
    assert "part" in before
    tracks = pa.ipc.open_stream(gzip.decompress(payload.tables[before["tracks"]])).read_all().to_pandas()
    host = tracks.index[tracks["kind"] == "host"][0]
    told = {"timeline": before["events"], "range_ms": [0, 1], "track": int(host), "row": int(tracks["first"][host])}
    link = report.widget()
    link.set_state({"selection": told})
    expected = report.selection
    assert len(expected) > 0
    window = {"kind": "window", "timeline": before["events"], "range_ms": [0, 10]}
    window["rows"] = int(tracks.loc[tracks["kind"] != "counter", "count"].sum())
    answer = answered(report, window)

    report.add_track(own("One"), "One")
    report.max_mb = 0.8 * report.max_mb
    assert item_of(report.payload)["events"] != before["events"]
    link.set_state({"selection": {**told, "range_ms": [0, 2]}})
    pd.testing.assert_frame_equal(report.selection, expected)
    assert answered(report, window) == answer
