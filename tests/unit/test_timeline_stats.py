"""What the profiler noted with events: chosen, packed, and found again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from generate import Space
from tfprof_widgets import xspace
from tfprof_widgets.analysis.details import ID_STATS, first_row, stat_columns
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.kernels import readable_details
from tfprof_widgets.analysis.memory import data_type_name
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.analysis.timeline import timeline
from tfprof_widgets.views import timeline_stats
from tfprof_widgets.views.timeline_stats import add_stats, front_coded


def front_decoded(coded: str) -> list[str]:
    texts = []
    before = ""
    for part in coded.split("\t")[:-1]:
        before = before[: ord(part[0]) - ord("!")] + part[1:]
        texts.append(before)
    return texts


def number(table: pd.DataFrame, name: str) -> np.ndarray:
    columns = [column for column in table if column.startswith(name)]
    return sum(table[column].to_numpy().astype(np.int64) << (8 * i) for i, column in enumerate(columns))


class Tables(dict):
    def add_table(self, name: str, table: pd.DataFrame) -> None:
        self[name] = table

    def stats(self) -> set[tuple[int, str, str]]:
        """Row, stat and value of each, unpacked as the browser does."""
        table, texts = self["t_stats"], front_decoded(self["t_stat_texts"]["text"].iloc[0])
        row, value, text = number(table, "row"), number(table, "value"), number(self["t_stat_values"], "text")
        found = []
        for stat in self["t_stat_names"].itertuples():
            part = slice(stat.first, stat.first + stat.count)
            values = np.cumsum(text[stat.first_value : stat.first_value + stat.values])
            found += [(r, stat.name, texts[values[v]]) for r, v in zip(np.cumsum(row[part]), value[part], strict=True)]
        assert len(found) == len(set(found))
        return set(found)


def word(name: str, value: object) -> str:
    if name == "data_type" and isinstance(value, int):
        return data_type_name(value)
    if name == "kernel_details":
        return readable_details(str(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def truth(trace: Trace, first: int) -> set[tuple[int, str, str]]:
    return {
        (first + event, name, word(name, value))
        for event in range(len(trace))
        for name, value in trace.stats_of(event).items()
        if name not in ID_STATS
    }


def mixed() -> Space:
    space = Space(hostname="w")
    host = space.plane("/host:CPU")
    line = host.line("python", id=1)
    host.event_type("fused", stats={"flops": 12})
    line.event("train", 0, 50, step_num=3, _r=1)
    line.event("fused", 10, 5, bytes=2**40, id=7, note="a\nb")
    line.event("fused", 20, 5, ratio=0.125, id=8, note="a\nbc é")
    line.event("alloc", 30, 5, fragmentation=0, data_type=1)
    line.event("alloc", 40, 5, fragmentation="0.5", data_type=101)
    return space


def test_every_stat_is_found_again_but_ids() -> None:
    trace = Trace(xspace.read(mixed().bytes()))
    columns, left_out = stat_columns(trace)
    tables = Tables()
    said = add_stats(tables, columns, left_out, 2, 5, "t")
    expected = truth(trace, 2)
    assert tables.stats() == expected
    assert {(2 + 3, "data_type", "float"), (2 + 4, "data_type", "float_ref"), (2 + 1, "flops", "12")} <= expected
    assert said["count"] == len(expected)
    assert said["total"] == len(expected) + 3
    assert said["left_out"] == ["_r", "id"]
    labels = dict(zip(tables["t_stat_names"]["name"], tables["t_stat_names"]["label"], strict=True))
    assert labels["step_num"] == "Step number"
    assert labels["ratio"] == "ratio"


@pytest.mark.parametrize("name", ["t4_fit_2", "py", "tb"])
def test_real_captures(capture, name: str) -> None:
    trace = Trace(xspace.read(capture(name)))
    data = timeline(trace, find_steps(trace))
    tables = Tables()
    add_stats(tables, *stat_columns(trace), first_row(data), len(trace), "t")
    assert tables.stats() == truth(trace, first_row(data))
    own = data.events.iloc[first_row(data) :][: len(trace)]
    np.testing.assert_array_equal(own["duration_ps"], trace.duration_ps)


NONSENSE = "not readable: the file has impossible numbers"


@pytest.mark.parametrize(
    ("details", "shown"),
    [
        ("regs:38 shm:0 grid:160,1,1 block:1024,1,1", None),
        ("regs:512 shm:0 grid:4294967296,1,1 block:1,1,1", None),
        (" grid:1280,1,1 block:256,1,1 private_mem:0 group_mem:0 occ_pct:0", None),
        ("", None),
        ("grid:? block:", None),
        ("regs:1924695264 shm:140039589685120 grid:99839920,48,1 block:140039741180448,0,140039741204646", NONSENSE),
        ("regs:0 shm:0 grid:0,1,1 block:64,1,1", NONSENSE),
        ("regs:0 shm:0 grid:1,1,1 block:2048,1,1", NONSENSE),
        (
            "regs:2191500840 static_shared:32462 dynamic_shared:0 grid:8,1,1 block:64,1,1 occ_pct:0",
            "grid:8,1,1 block:64,1,1 occ_pct:0 (registers and shared memory are not readable: the file has impossible numbers)",
        ),
    ],
)
def test_impossible_numbers_of_a_launch_are_no_facts(details: str, shown: str | None) -> None:
    space = Space()
    line = space.plane("/host:CPU").line("python", id=1)
    line.event("cuLaunchKernel", 0, 5, kernel_details=details)
    line.event("cuLaunchKernel", 10, 5, kernel_details="regs:16 shm:0 grid:1,1,1 block:32,1,1")
    trace = Trace(xspace.read(space.bytes()))
    (column,) = stat_columns(trace)[0]
    assert column.texts[int(column.code[0])] == (details if shown is None else shown)
    assert column.texts[int(column.code[1])] == "regs:16 shm:0 grid:1,1,1 block:32,1,1"


def test_what_has_no_room_stays_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_stats, "FIXED_BYTES", 2000)
    space = Space()
    line = space.plane("/host:CPU").line("python", id=1)
    rng = np.random.default_rng(0)
    for i in range(500):
        line.event("op", i * 10, 5, shape="[2]", noise=rng.bytes(30).hex())
    trace = Trace(xspace.read(space.bytes()))
    tables = Tables()
    said = add_stats(tables, *stat_columns(trace), 0, 500, "t")
    assert (said["count"], said["total"], said["left_out"]) == (500, 1000, ["noise"])
    assert {stat for _, stat, _ in tables.stats()} == {"shape"}


def test_nothing_noted_is_no_table_of_nothing() -> None:
    tables = Tables()
    said = add_stats(tables, [], {}, 0, 0, "t")
    assert (said["count"], said["total"], said["left_out"]) == (0, 0, [])
    assert tables.stats() == set()


@pytest.mark.parametrize("texts", [[], [""], ["a" * 300, "a" * 301], ["😀a", "😀b"], ["a\0b\tc"], ["", "!", "é", "éa"]])
def test_texts_share_beginnings(texts: list[str]) -> None:
    assert front_decoded(front_coded(texts)) == [text.replace("\0", r"\x00").replace("\t", r"\t") for text in texts]
