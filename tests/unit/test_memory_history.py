"""What was held at any time: at the peak as the peak's table has it, at other times as the events before say."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from generate import gpu_capture, pod_captures
from generate.strategies import allocations
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.memory import BEFORE_CAPTURE, STACK, memory, memory_peak, memory_summary
from tfprof_widgets.analysis.memory_history import MemoryHistory, memory_history
from tfprof_widgets.xspace import read

KEYS = ["op_name", "bytes", "requested_bytes", "region_type", "data_type", "shape"]


def table_of(space) -> pd.DataFrame:
    return memory(Trace(read(space.bytes())))


def held(history: MemoryHistory, place: int, at: int) -> dict[tuple, int]:
    """Occurrences of each kind of block after an allocator's event, counted one by one; sizes of the rows that are no block."""
    events = history.events[history.events["place"] == place]
    counts: dict[int, int] = {}
    for begin, end in zip(events["begins"][: at + 1], events["ends"][: at + 1], strict=True):
        for block, change in ((begin, 1), (end, -1)):
            if block >= 0:
                counts[block] = counts.get(block, 0) + change
    rows = {tuple(history.blocks.loc[block, KEYS]): n for block, n in counts.items() if n}
    assert all(n > 0 for n in rows.values())
    for label, column in ((BEFORE_CAPTURE, "other_bytes"), (STACK, "stack_bytes")):
        size = int(events[column].iloc[at])
        if size > 0:
            rows[(label, size, size, "", "", "")] = 1
    return rows


def rows_of(peak: pd.DataFrame) -> dict[tuple, int]:
    return {tuple(row[KEYS]): row["occurrences"] for _, row in peak.iterrows()}


def check(table: pd.DataFrame, rng: np.random.Generator) -> None:
    history = memory_history([table])
    assert len(history.events) == len(table)
    for place, name in enumerate(memory_summary(table)["allocator"]):
        mine = table[table["allocator"] == name].reset_index(drop=True)
        in_use = mine["in_use_bytes"].to_numpy()
        at_peak = len(in_use) - 1 - int(np.argmax(in_use[::-1]))
        assert held(history, place, at_peak) == rows_of(memory_peak(mine))
        for at in {0, len(mine) - 1, *rng.integers(0, len(mine), 3).tolist()}:
            # The peak of a table that ends there and only grows is its last event.
            until = mine[: at + 1].assign(in_use_bytes=np.arange(at + 1))
            assert held(history, place, at) == rows_of(memory_peak(until))


def test_every_time_of_a_training_on_gpus():
    check(table_of(gpu_capture(2, 6)), np.random.default_rng(0))


@given(allocations(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_every_time_of_any_events(space, seed):
    table = table_of(space)
    check(table, np.random.default_rng(seed))


def test_hosts_share_their_blocks():
    tables = [table_of(space) for space in pod_captures(3, 1, 3)]
    one, all_hosts = memory_history(tables[:1]), memory_history(tables)
    assert len(all_hosts.blocks) == len(all_hosts.blocks.drop_duplicates())
    assert set(map(tuple, one.blocks[KEYS].to_numpy())) <= set(map(tuple, all_hosts.blocks[KEYS].to_numpy()))
    place = 0
    for table in tables:
        for name in memory_summary(table)["allocator"]:
            mine = table[table["allocator"] == name]
            assert held(all_hosts, place, len(mine) - 1) == held(memory_history([mine]), 0, len(mine) - 1)
            place += 1
    assert all_hosts.events["place"].max() == place - 1


def test_without_events_there_is_nothing():
    empty = table_of(gpu_capture(1, 1))[:0]
    history = memory_history([empty, empty])
    assert len(history.events) == len(history.blocks) == 0
