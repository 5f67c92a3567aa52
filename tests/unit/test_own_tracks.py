"""Tracks that the user adds: validated, laid out below the steps, and nothing else moved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from generate import Space
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import read


def report(hosts: int = 1, *, marked: bool = True) -> Report:
    spaces = []
    for index in range(hosts):
        space = Space(hostname=f"w{index}")
        line = space.plane("/host:CPU").line("python", id=1)
        for step in range(3):
            line.event("train", step * 1000, 900, **({"step_num": step, "_r": 1} if marked else {}))
        spaces.append(read(space.bytes()))
    return Report(spaces)


def frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"start_us": [30.5, 10, 12], "duration_us": [1, 20, 30], "name": ["c", "a", "b"]} | columns)


@pytest.mark.parametrize("marked", [True, False])
def test_a_track_is_laid_out_and_the_others_stay(marked: bool) -> None:
    plain = report(marked=marked).timelines[0]
    mine = report(marked=marked)
    _ = mine.timelines  # made before: it is made anew
    mine.add_track(frame(), name="Load")
    mine.add_track(frame(name=["a", "a", None]), name="Wait")
    data = mine.timelines[0]
    at = int(marked)
    assert [s.title for s in data.sections] == [s.title for s in plain.sections[:at]] + ["Own tracks"] + [
        s.title for s in plain.sections[at:]
    ]
    rest = data.tracks[data.tracks["kind"] != "own"].reset_index(drop=True)
    assert rest["label"].to_list() == plain.tracks["label"].to_list()
    titles = [data.sections[s].title for s in rest["section"]]
    assert titles == [plain.sections[s].title for s in plain.tracks["section"]]
    own = data.tracks[data.tracks["kind"] == "own"]
    assert own[["label", "lanes", "count", "busy_ps"]].to_numpy().tolist() == [
        ["Load", 2, 3, 32_000_000],
        ["Wait", 2, 3, 32_000_000],
    ]
    rows = data.events.iloc[own["first"].iloc[0] :][:3]
    assert rows["start_ps"].to_list() == [10_000_000, 12_000_000, 30_500_000]
    assert data.names["name"].to_numpy()[rows["name"]].tolist() == ["a", "b", "c"]
    # The rows of the trace's events are where they were.
    pd.testing.assert_frame_equal(data.events.iloc[: len(plain.events)], plain.events)


def test_a_display_made_later_has_it() -> None:
    mine = report()
    before = mine.html
    mine.add_track(frame(), name="Load")
    assert mine.html != before
    tracks = next(tab for tab in mine.payload.tabs if tab["id"] == "trace")["items"][0]
    assert tracks["sections"][1]["title"] == "Own tracks"


def test_it_may_outlast_the_trace_and_be_empty() -> None:
    mine = report()
    mine.add_track(frame(start_us=[1e6, 1, 2]), name="Long")
    mine.add_track(frame().iloc[:0], name="Empty")
    assert mine.timelines[0].span_ps == 1_000_001_000_000
    assert "Empty" not in mine.timelines[0].tracks["label"].to_list()


def test_of_several_hosts_one_is_chosen() -> None:
    mine = report(hosts=2)
    mine.add_track(frame(), name="Load", host="w1")
    has = [(data.tracks["kind"] == "own").any() for data in mine.timelines]
    assert has == [False, True]
    with pytest.raises(ValueError, match=r"There is no host 'w9' in this report; it has 'w0', 'w1'"):
        mine.add_track(frame(), name="Load", host="w9")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (frame().drop(columns="duration_us"), "lacks the columns duration_us; it has start_us, name"),
        (frame(start_us=[1, "soon", 2]), "In 1 of the track's 3 rows start_us is not a number; the first is row 1"),
        (
            frame(duration_us=[1, np.nan, np.inf]),
            "In 2 of the track's 3 rows duration_us is not a number; the first is row 1",
        ),
        (frame(start_us=[-1, 0, 2]), "start_us is negative .it counts from the start of the trace"),
        (frame(duration_us=[1, 2, -3]), "duration_us is negative; the first is row 2"),
        (frame(start_us=[1.7e15, 0, 2]), "start_us is beyond"),
    ],
)
def test_what_is_wrong_with_a_track_is_said(bad: pd.DataFrame, message: str) -> None:
    mine = report()
    with pytest.raises(ValueError, match=message):
        mine.add_track(bad, name="Load")
    assert mine.timelines[0].tracks["kind"].to_list() == report().timelines[0].tracks["kind"].to_list()


def test_other_input_is_refused() -> None:
    mine = report()
    with pytest.raises(TypeError, match="pandas DataFrame with the columns start_us, duration_us, name, not list"):
        mine.add_track([1, 2], name="Load")  # type: ignore[arg-type]
    mine.add_track(frame(), name="Load")
    for name in ("Load", ""):
        with pytest.raises(ValueError, match="needs a name that no other one has"):
            mine.add_track(frame(), name=name)
