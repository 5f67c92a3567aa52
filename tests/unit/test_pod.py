"""Steps of several hosts, aligned and compared."""

from __future__ import annotations

import tracemalloc

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generate import Space, pod_captures
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.pod import pod, straggler_of_run
from tfprof_widgets.analysis.steps import CATEGORIES, CATEGORY_COLUMNS, CATEGORY_LABELS, HOST_DEVICE, find_steps
from tfprof_widgets.xspace import read


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


GPU = "/device:GPU:{}"


def synchronous(
    work_ms: list[float], exchange_ms: float = 0.2, late: str = "input", late_ms: float = 0.0
) -> list[pd.DataFrame]:
    """Devices of a host that meet in each of three steps; the last one of them is late, in some category."""
    does = [{"device_compute": ms} for ms in work_ms]
    does[-1][late] = does[-1].get(late, 0.0) + late_ms
    longest = max(sum(one.values()) for one in does)
    starts = [0.0, 1e6, 2e6]
    rows = []
    for i, one in enumerate(does):
        rest = {"device_collective": longest - sum(one.values()) + exchange_ms, **one}
        rows.append(host("w", starts, rest.pop("other", 0.0), GPU.format(i), **rest))
    return [pd.concat(rows, ignore_index=True)]


def test_the_one_that_the_others_wait_for_in_collectives_is_the_straggler():
    result = pod(synchronous([0.6, 1.4]))
    table = result.stragglers
    assert result.table["total_ms"].to_numpy() == pytest.approx(1.6)  # all take the same time
    assert set(result.table["bottleneck"]) == {"Device collectives", "Device compute"}
    assert table["device"].tolist() == [GPU.format(1)] * 3
    assert set(table["judged_by"]) == {"own work"}
    assert set(table["category"]) == {"Device compute"}
    assert table["is_straggler"].all()
    first = table.iloc[0]
    assert (first["total_ms"], first["own_ms"], first["median_ms"]) == pytest.approx((1.6, 1.4, 1.0))
    assert (first["excess_ms"], first["excess_pct"], first["others_wait_ms"]) == pytest.approx((0.4, 25, 0.8))
    assert first["category_excess_ms"] == pytest.approx(0.4)


@pytest.mark.parametrize("mark", ["train", ""])
def test_a_slow_device_of_a_capture_is_found_by_its_own_work(mark):
    """GPU 1 computes 1.4 ms, GPU 0 0.6 ms and then waits in the all-reduce, in which both end together."""
    space = Space("w")
    host_plane = space.plane("/host:CPU")
    python, launcher = host_plane.line("python", id=1), host_plane.line("tf_Compute/1", id=2)
    gpus = [space.plane(f"/device:GPU:{i}", id=i) for i in range(2)]
    streams = [[plane.line(f"Stream #{j}(Kernel)", id=j) for j in (1, 2)] for plane in gpus]
    details = "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:128,1,1"
    correlation = 0
    for step in range(6):
        start = 100 + 2_000 * step
        if mark:
            python.event(mark, start, 1_900, step_num=step, _r=1)
        else:
            python.event("train_function", start, 1_900, tf_function_call="notTraced-nonXla")
        python.event("FunctionRun", start + 2, 3, id=step, _r=1, _pt=2, _p=step)
        launcher.event("ExecutorState::Process", start + 10, 200, id=step, iter_num=0, _ct=2, _c=step)
        for gpu, (compute_us, reduce_us) in enumerate(((600, 1_000), (1_400, 190))):
            begin = start + 30 + 10 * gpu
            for stream, name, op, at, long in (
                (0, "gemm", "a/MatMul:MatMul", begin, compute_us),
                (1, "ncclDevKernel_AllReduce", "r:CollectiveReduceV2", begin + compute_us, reduce_us),
            ):
                correlation += 1
                launcher.event("cuLaunchKernel", start + 15 + 10 * gpu + 20 * stream, 5, correlation_id=correlation)
                streams[gpu][stream].event(name, at, long, correlation_id=correlation, kernel_details=details, tf_op=op)
    result = pod([find_steps(Trace(read(space.bytes()))).table])
    assert len(result.stragglers) == 6
    assert set(result.stragglers["device"]) == {GPU.format(1)}
    assert result.stragglers["is_straggler"].all()
    assert set(result.stragglers["category"]) == {"Device compute"}
    assert result.stragglers["others_wait_ms"].to_numpy() == pytest.approx(0.81, abs=0.01)


def test_waiting_longer_for_the_others_makes_no_straggler():
    (table,) = synchronous([1.0, 1.0, 1.0])
    early = table["device"] == GPU.format(0)  # it began early, and is in the collective for longer
    table.loc[early, ["device_collective_ms", "duration_ms"]] += 2.0
    result = pod([table]).stragglers
    assert not result["is_straggler"].any()
    assert result["excess_ms"].tolist() == pytest.approx([0] * 3)


def test_little_work_of_its_own_in_a_step_of_exchange_makes_no_straggler():
    """Twice the own work of the others, but 2 % of the step."""
    assert not pod(synchronous([0.1, 0.1, 0.2], exchange_ms=5.0)).stragglers["is_straggler"].any()


STEP_MS = st.floats(1e-3, 1e4)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(STEP_MS, st.lists(st.floats(0.97, 1.03), min_size=2, max_size=9), st.floats(0, 3), st.sampled_from(CATEGORIES))
def test_jitter_makes_no_straggler_and_real_delay_does(step_ms, jitter, exchange, category):
    work = [step_ms * one for one in jitter]
    assert not pod(synchronous(work, exchange * step_ms)).stragglers["is_straggler"].any()
    if category == "device_collective":
        return
    table = pod(synchronous(work, exchange * step_ms, category, 2 * (1 + exchange) * step_ms)).stragglers
    assert table["is_straggler"].all()
    assert set(table["device"]) == {GPU.format(len(work) - 1)}
    assert set(table["category"]) == {CATEGORY_LABELS[category]}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(*[st.floats(0, 100)] * 8), min_size=2, max_size=6))
def test_without_collectives_the_whole_step_decides(rows):
    names = [name for name in CATEGORY_COLUMNS if name not in ("device_collective_ms", "other_ms")]
    workers = [
        host(f"h{i}", [0.0, 500.0], rest, **{name[:-3]: ms for name, ms in zip(names, row, strict=True)})
        for i, (rest, *row) in enumerate(rows)
    ]
    result = pod(workers)
    total = result.table.groupby("step")["total_ms"]
    table = result.stragglers.set_index("step")
    assert set(table["judged_by"]) == {"whole step"}
    assert table["total_ms"].tolist() == table["own_ms"].tolist() == total.max().tolist()
    assert table["median_ms"].to_numpy() == pytest.approx(total.median().to_numpy())
    assert (table["others_wait_ms"] == 0).all()
    excess = total.max() - total.median()
    clear = (excess - 0.1 * total.median()).abs() > 1e-9
    assert (table["is_straggler"] == (excess >= 0.1 * total.median()))[clear].all()


@pytest.mark.parametrize("marks", ["train", ""])
@pytest.mark.parametrize(("hosts", "devices"), [(1, 2), (1, 4), (3, 2)])
def test_generated_hosts_without_a_slow_one(hosts, devices, marks):
    """Devices of one host meet in each step; hosts here don't: theirs is the time of the whole step."""
    tables = [find_steps(Trace(read(space.bytes()))).table for space in pod_captures(hosts, devices, 8, marks=marks)]
    result = pod(tables)
    assert set(result.stragglers["judged_by"]) == {"own work"}
    total = result.table.groupby("step")["total_ms"]
    late = (total.max() - total.median()) / total.median() >= 0.1
    assert result.stragglers.set_index("step")["is_straggler"].tolist() == late.tolist()
    if hosts == 1:
        assert not late.any()


def test_the_straggler_of_a_run_is_a_host_or_its_one_late_device():
    def devices(name: str, *works: float) -> pd.DataFrame:
        longest = 9.0
        rows = [
            host(name, [0, 20, 40, 60], 0.0, GPU.format(i), device_compute=work, device_collective=longest - work)
            for i, work in enumerate(works)
        ]
        return pd.concat(rows, ignore_index=True)

    alone = straggler_of_run(pod([devices("a", 4, 4, 4), devices("b", 4, 8, 4)]))
    assert (alone.host, alone.device, len(alone.steps), alone.others) == ("b", GPU.format(1), 4, 0)
    together = straggler_of_run(pod([devices("a", 4, 4, 4), devices("b", 8, 8, 8), devices("c", 4, 4, 4)]))
    assert (together.host, together.device, together.others) == ("b", HOST_DEVICE, 0)
    of_one = straggler_of_run(pod([devices("a", 4, 4, 8)]))
    assert (of_one.host, of_one.device) == ("a", GPU.format(2))
    assert straggler_of_run(pod([devices("a", 4, 4, 4)])) is None
    assert straggler_of_run(pod([])) is None


def test_one_host_with_one_device_has_no_stragglers():
    result = pod([host("a", [0, 10, 20])])
    assert len(result.table) == 3
    assert result.stragglers.empty
    assert result.notes == []


def test_no_host_with_steps_gives_an_empty_table():
    result = pod([host("a", [])])
    assert result.table.empty
    assert list(result.table.columns) == list(pod([host("a", [0])]).table.columns)
    assert list(result.table.columns[-3:]) == ["total_ms", "own_ms", "bottleneck"]
