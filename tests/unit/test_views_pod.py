"""The Pod tab: every host and device of every step is there, and the straggler is named."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from bokeh.document import Document
from bokeh.models import VBar

from generate import pod_captures
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.pod import pod
from tfprof_widgets.analysis.steps import CATEGORIES, CATEGORY_COLUMNS, find_steps
from tfprof_widgets.display.payload import Payload
from tfprof_widgets.views.pod import pod_tab
from tfprof_widgets.xspace import read
from view_frames import HOSTILE, Recorder, every, steps_frame

GPUS = tuple(f"/device:GPU:{i}" for i in range(8))


def tables(hosts: int, devices: int, steps: int, *, slow: int = -1, names: str = "worker-{}") -> list[pd.DataFrame]:
    """Steps of hosts, one of which waits 20 ms longer for its input."""
    frames = []
    for i in range(hosts):
        frame = steps_frame(steps, devices=GPUS[:devices]).assign(host=names.replace("{}", str(i)))
        if i == slow:
            frame[["input_ms", "duration_ms"]] += 20
        frames.append(frame)
    return frames


def tab_of(frames, recorder=None):
    recorder = recorder or Recorder()
    found = pod(frames)
    tab = pod_tab(recorder, found, {"Hosts": str(len(frames))})
    json.dumps(tab, allow_nan=False)
    return tab, recorder, found


def texts(tab) -> str:
    return "\n".join(item["text"] for item in every(tab["items"], "text"))


def test_the_straggler_and_its_category_are_named():
    tab, _, found = tab_of(tables(4, 2, 10, slow=2))
    first = tab["items"][0]
    assert first["level"] == "warning"
    assert first["text"].startswith("worker-2 is the straggler in 10 of 10 steps: 20.")
    assert first["text"].endswith("mostly in Input.")
    assert found.stragglers["is_straggler"].all()


def in_step(frames: list[pd.DataFrame], *, exchange_ms: float = 0.5) -> list[pd.DataFrame]:
    """The same work, but all meet in a collective at the end of each step: so each step takes all the same time."""
    end = pd.concat(frames).groupby("step")["duration_ms"].max() + exchange_ms
    met = []
    for frame in frames:
        waits = end.loc[frame["step"]].to_numpy() - frame["duration_ms"].to_numpy()
        met.append(frame.assign(device_collective_ms=waits, duration_ms=frame["duration_ms"] + waits))
    return met


def test_a_straggler_for_which_the_others_wait_in_collectives_is_named_and_said_so():
    tab, recorder, found = tab_of(in_step(tables(4, 2, 10, slow=2)))
    assert found.table.groupby("step")["total_ms"].std().max() < 1e-9
    first = tab["items"][0]
    assert first["level"] == "warning"
    assert first["text"].startswith("worker-2 is the straggler in 10 of 10 steps: 20.")
    assert "more own work than the median on average, mostly in Input. The others wait 1" in first["text"]
    assert "Own work is the step without collectives" in first["text"]
    captions = recorder.frames["pod_steps"]["caption"]
    assert captions.str.match(
        r"Straggler: worker-2 /device:GPU:\d has 2[\d.]+ ms of own work, [\d.]+ ms \([\d.]+ % of the step\)"
    ).all()
    assert captions.str.contains(
        r"Input takes [12][\d.]+ ms longer than the median's\. The others wait 1[\d.]+ ms longer in coll"
    ).all()
    (stepper,) = every(tab["items"], "stepper")
    rows = recorder.frames["pod_rows"]
    assert stepper["trace"]["slowest"] == "own"
    np.testing.assert_allclose(rows["own"], rows["total"] - rows["device_collective"], atol=1.5)
    workers = recorder.frames["pod_workers"]
    assert set(workers.nlargest(2, "own_ms")["host"]) == {"worker-2"}
    assert {"own_ms", "others_wait_ms"} <= {
        c["field"] for table in every(tab["items"], "table") for c in table["columns"]
    }


def test_one_slow_device_of_a_host_is_named_itself():
    frames = tables(3, 4, 8)
    slow = frames[1]["device"] == GPUS[2]
    frames[1].loc[slow, ["device_compute_ms", "duration_ms"]] += 5
    tab, *_ = tab_of(in_step(frames))
    assert tab["items"][0]["text"].startswith("worker-1 /device:GPU:2 is the straggler in 8 of 8 steps: ")
    assert "mostly in Device compute" in tab["items"][0]["text"]


def test_without_a_straggler_it_is_said_what_was_judged():
    tab, recorder, _ = tab_of(
        in_step([frame.assign(**tables(1, 1, 6)[0][["duration_ms", *CATEGORY_COLUMNS]]) for frame in tables(3, 1, 6)])
    )
    assert "did the own work of a host or device exceed the median by 10 % of the step" in tab["items"][0]["text"]
    assert recorder.frames["pod_steps"]["caption"].str.contains("of own work, as the median does").all()


def test_equal_hosts_have_no_straggler():
    frames = tables(3, 1, 6)
    tab, *_ = tab_of(frames)
    assert tab["items"][0]["level"] == "info"
    assert tab["items"][0]["text"].startswith("No straggler: in none of 6 steps")


def test_where_all_take_the_same_time_none_is_the_slowest():
    twins = [frame.assign(**tables(1, 1, 6)[0][["duration_ms", *CATEGORY_COLUMNS]]) for frame in tables(3, 1, 6)]
    tab, recorder, _ = tab_of(twins)
    captions = recorder.frames["pod_steps"]["caption"]
    assert captions.str.fullmatch(r"No straggler: the slowest of 3 takes [\d.]+ ms, as the median does\.").all()
    assert recorder.frames["pod_workers"]["slowest_in"].tolist() == [0, 0, 0]
    assert next(every(tab["items"], "stepper"))["marks"] == []


def test_the_rows_of_the_chart_are_all_the_times_of_every_step():
    tab, recorder, found = tab_of(tables(12, 2, 7, slow=3))
    (stepper,) = every(tab["items"], "stepper")
    rows, bars, steps = (recorder.frames[stepper[name]] for name in ("rows", "bars", "steps"))
    assert len(rows) == len(found.table) == 12 * 2 * 7
    assert steps["count"].sum() == len(rows)
    assert bars["x"].is_monotonic_increasing
    assert list(dict.fromkeys(bars["host"])) == [f"worker-{i}" for i in range(12)]  # not worker-10 before worker-2
    for number, step in enumerate(steps.itertuples()):
        of_step = rows[step.first : step.first + step.count]
        there = bars.iloc[of_step["bar"]].reset_index(drop=True)
        expected = found.table[found.table["step"] == number].set_index(["host", "device"])
        expected = expected.loc[list(zip(there["host"], there["device"], strict=True))]
        for category in CATEGORIES:
            if category in rows:
                scaled = of_step[category] * stepper["scale"][category]
                np.testing.assert_allclose(scaled, expected[f"{category}_ms"], atol=stepper["scale"][category] / 2)
            else:
                assert (found.table[f"{category}_ms"] == 0).all()
        assert step.top > expected["total_ms"].max()
        assert "worker-3" in step.caption


def test_the_figure_takes_what_the_rows_give():
    tab, recorder, _ = tab_of(tables(2, 2, 5))
    (stepper,) = every(tab["items"], "stepper")
    plot = Document.from_json(stepper["figure"]["doc"]).roots[0]
    source = plot.select_one({"name": "bars"})
    given = {*recorder.frames["pod_rows"].columns, *recorder.frames["pod_bars"].columns}
    assert set(source.data) == given
    assert plot.y_range.name == "height"
    assert sum(isinstance(r.glyph, VBar) for r in plot.renderers) == 1 + sum(c in given for c in CATEGORIES)
    labels = ["GPU 0\nworker-0", "GPU 1\nworker-0", "GPU 0\nworker-1", "GPU 1\nworker-1"]
    assert list(plot.xaxis.major_label_overrides.values()) == labels
    np.testing.assert_allclose(list(plot.xaxis.major_label_overrides), recorder.frames["pod_bars"]["x"])


def test_a_step_far_longer_than_the_others_has_a_height_of_its_own():
    frames = tables(2, 1, 20)
    for frame in frames:
        frame.loc[0, ["compilation_ms", "duration_ms"]] += 5000
    _, recorder, _ = tab_of(frames)
    steps = recorder.frames["pod_steps"]
    assert steps["top"][0] > 5000
    assert steps["top"][1:].max() < 10
    assert steps["top"][1:].nunique() == 1


def test_it_begins_with_the_largest_gap():
    frames = tables(3, 1, 9)
    frames[1].loc[6, ["input_ms", "duration_ms"]] += 50
    tab, recorder, _ = tab_of(frames)
    (stepper,) = every(tab["items"], "stepper")
    assert stepper["value"] == stepper["marks"][0]["value"] == 6
    caption = recorder.frames["pod_steps"]["caption"][6]
    assert caption.startswith("Straggler: worker-1 /device:GPU:0 takes 5")
    assert "Input takes 50" in caption


def test_tables_have_every_worker_and_every_step():
    tab, recorder, found = tab_of(tables(5, 2, 6, slow=1))
    assert len(recorder.frames["stragglers"]) == 6
    workers = recorder.frames["pod_workers"]
    assert len(workers) == 10
    assert workers["slowest_in"].sum() == 6
    assert workers["total_ms"].max() == pytest.approx(found.table.groupby(["host", "device"])["total_ms"].mean().max())
    for table in every(tab["items"], "table"):
        assert {column["field"] for column in table["columns"]} <= set(recorder.frames[table["table"]].columns)


@pytest.mark.parametrize("hosts", [[], [steps_frame(5)]])
def test_nothing_to_compare_is_said(hosts):
    tab, recorder, _ = tab_of(hosts)
    assert "nothing to compare" in texts(tab)
    assert recorder.frames == {}
    assert list(every(tab["items"], "stepper")) == []


def test_hosts_that_share_no_step_are_all_shown():
    early, late = tables(2, 1, 5)
    late = late.assign(step=late["step"] + 100, start_ms=late["start_ms"] + 1e6)
    tab, recorder, found = tab_of([early, late])
    assert all(note in texts(tab) for note in found.notes)
    assert len(recorder.frames["pod_rows"]) == len(found.table)


def test_hostile_hosts_are_numbered_in_the_figure():
    tab, recorder, _ = tab_of(tables(3, 1, 4, names=HOSTILE + "{}"))
    (stepper,) = every(tab["items"], "stepper")
    assert "onerror" not in json.dumps(stepper["figure"])
    plot = Document.from_json(stepper["figure"]["doc"]).roots[0]
    assert list(plot.xaxis.major_label_overrides.values()) == ["GPU 0\nhost 0", "GPU 0\nhost 1", "GPU 0\nhost 2"]
    assert HOSTILE + "0" in set(recorder.frames["pod_bars"]["host"])


def test_64_hosts_of_8_devices_and_300_steps_stay_small():
    frames = tables(64, 8, 300, slow=17)
    payload = Payload(id="pod")
    tab, _, found = tab_of(frames, payload)
    assert tab["items"][0]["text"].startswith("worker-17 is the straggler in 300 of 300 steps")
    assert len(found.table) == 64 * 8 * 300
    assert sum(map(len, payload.tables.values())) < 6 * len(found.table)
    assert len(json.dumps(tab)) < 30_000
    (stepper,) = every(tab["items"], "stepper")
    labels = Document.from_json(stepper["figure"]["doc"]).roots[0].xaxis.major_label_overrides
    assert list(labels.values()) == [f"worker-{i}" for i in range(0, 64, 8)]


def test_a_generated_pod():
    traces = [Trace(read(space.bytes()), f"worker-{i}") for i, space in enumerate(pod_captures(3, 2, 8, slow_host=1))]
    tab, recorder, found = tab_of([find_steps(trace).table for trace in traces])
    assert "worker-1 is the straggler" in tab["items"][0]["text"]
    assert "wait" not in tab["items"][0]["text"].partition("Own work is")[0]  # hosts that don't meet
    np.testing.assert_allclose(found.table[list(CATEGORY_COLUMNS)].sum(axis=1), found.table["total_ms"])
    assert len(recorder.frames["pod_rows"]) == len(found.table)
