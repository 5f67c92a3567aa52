"""Steps of several hosts, aligned and compared."""

from __future__ import annotations

import tracemalloc

import pandas as pd
import pytest

from tfprof_widgets.analysis.pod import pod
from tfprof_widgets.analysis.steps import CATEGORY_COLUMNS, CATEGORY_LABELS, HOST_DEVICE


def host(name: str, starts_ms: list[float], duration_ms: float = 8.0, device: str = HOST_DEVICE, **category_ms: float):
    rows = []
    for step, start in enumerate(starts_ms):
        row = {"step": step, "kind": "train", "host": name, "device": device, "start_ms": start, "flags": "averaged"}
        row |= dict.fromkeys(CATEGORY_COLUMNS, 0.0) | {f"{k}_ms": v for k, v in category_ms.items()}
        total = duration_ms + sum(category_ms.values())
        row["other_ms"] = duration_ms
        rows.append(row | {"duration_ms": total})
    if not rows:
        from tfprof_widgets.analysis.steps import _empty_table

        return _empty_table()
    return pd.DataFrame(rows)


def test_hosts_that_started_later_are_shifted_by_whole_steps():
    early, late = host("a", [0, 10, 20, 30, 40]), host("b", [21, 31, 41])
    result = pod([early, late])
    assert result.table.query("host == 'a'")["host_step"].tolist() == [2, 3, 4]
    assert result.table.query("host == 'b'")["host_step"].tolist() == [0, 1, 2]
    assert result.table["step"].tolist() == [0, 0, 1, 1, 2, 2]
    (note,) = result.notes
    assert note.startswith("6 of 8 steps of all hosts are compared:")


def test_hosts_with_nothing_in_common_are_shown_and_said():
    result = pod([host("a", [0, 10]), host("b", [1000, 1010])])
    assert len(result.table) == 4
    assert "overlap none of" in result.notes[0]


def test_many_hosts_apart_are_one_note():
    result = pod([host(f"h{i}", [1000 * i, 1000 * i + 10]) for i in range(9)])
    (note,) = (note for note in result.notes if "overlap none of" in note)
    assert "h1, h2, h3 and 5 more" in note


def test_a_host_without_steps_is_named():
    result = pod([host("a", [0, 10]), host("b", []), host("c", [0, 10])])
    assert set(result.table["host"]) == {"a", "c"}
    assert result.notes[0].startswith("1 of 3 hosts have no steps")


def test_a_host_that_lacks_a_step_in_between_is_aligned_by_time():
    complete, gap = host("a", [0, 10, 20, 30]), host("b", [0, 10, 20, 30, 40, 50]).query("step not in [1, 2]")
    late = gap.assign(start_ms=gap["start_ms"] - 20)
    table = pod([complete, late]).table
    assert table.query("host == 'b'")["host_step"].tolist() == [0, 3, 4, 5]
    assert table.query("host == 'b'")["step"].tolist() == [0, 1, 2, 3]
    assert len(table) == 8


def test_aligning_many_steps_compares_only_those_that_overlap():
    n = 5_000
    many = [host(name, [10.0 * i + k for i in range(n)]) for k, name in enumerate("abc")]
    tracemalloc.start()
    try:
        assert len(pod(many).table) == 3 * n
        assert tracemalloc.get_traced_memory()[1] < 100e6  # a matrix of all pairs would be 200 MB
    finally:
        tracemalloc.stop()


def test_the_straggler_and_what_makes_it_slow_are_named():
    fast = [host(name, [0, 20, 40], device_compute=4.0) for name in "abc"]
    slow = host("d", [0, 20, 40], device_compute=4.0, input=6.0)
    result = pod([*fast, slow])
    assert result.stragglers["host"].tolist() == ["d"] * 3
    assert result.stragglers["category"].tolist() == [CATEGORY_LABELS["input"]] * 3
    assert result.stragglers["excess_ms"].tolist() == pytest.approx([6.0] * 3)
    assert result.stragglers["is_straggler"].all()
    assert not pod(fast).stragglers["is_straggler"].any()


def test_one_host_with_one_device_has_no_stragglers():
    result = pod([host("a", [0, 10, 20])])
    assert len(result.table) == 3
    assert result.stragglers.empty
    assert result.notes == []


def test_no_host_with_steps_gives_an_empty_table():
    result = pod([host("a", [])])
    assert result.table.empty
    assert list(result.table.columns[-2:]) == ["total_ms", "bottleneck"]
