"""tf.data: stages, waiting and bottlenecks on generated pipelines whose timing is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generate import Space, cpu_fit_capture
from generate.input_pipeline import LAUNCH_US, input_pipeline_capture
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.iterators import blame, is_asynchronous, iterators
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.analysis.tf_data import TfData, suggest, tf_data
from tfprof_widgets.xspace import read


def analyse(space: Space, *, steps: bool = True) -> TfData:
    trace = Trace(read(space.bytes()))
    return tf_data(trace, find_steps(trace) if steps else None)


def stage(result: TfData, name: str):
    rows = result.stages[result.stages["name"] == name]
    assert len(rows) == 1, rows
    return rows.iloc[0]


def host_lines(*names: str):
    plane = Space("worker-0").plane("/host:CPU")
    space = Space("worker-0")
    plane = space.plane("/host:CPU")
    return space, [plane.line(name, id=i + 1) for i, name in enumerate(names)]


# ---- which stage the loop waits for --------------------------------------------------------------------------


def test_the_two_calls_of_the_published_example():
    # The vector of XProf's own test of its tf.data analysis.
    space, (consumer, producer) = host_lines("get_next", "background")
    for start, end, element in ((0, 100, 0), (200, 220, 1)):
        consumer.event("Iterator::Prefetch", start, end - start, id=123)
        consumer.event("PrefetchConsume", end - 1, 1, element_id=element)
    for start, end, element in ((0, 80, 0), (100, 180, 1)):
        producer.event("PrefetchProduce", start, end - start, element_id=element)
        producer.event("Iterator::Prefetch::Range", start, end - start, id=456, parent_id=123)
    result = analyse(space, steps=False)
    (pipeline,) = result.pipelines.to_dict("records")
    assert (pipeline["mean_ms"], pipeline["min_ms"], pipeline["max_ms"]) == pytest.approx((0.060, 0.020, 0.100))
    assert (pipeline["calls"], pipeline["slow_calls"]) == (2, 1)
    assert result.calls["bottleneck"].tolist() == ["Iterator::Prefetch::Range", "Iterator::Prefetch"]
    assert result.calls["bottleneck_ms"].tolist() == pytest.approx([0.080, 0.020])


@pytest.mark.parametrize(
    ("times", "culprit", "wait_us"),
    [
        # What the loop waits a step follows from the times: the pipeline's period, less the step's. With a
        # parallelism of 1 the next element is read when the last one was taken, so reading and mapping add up.
        ({"source_us": 3000, "map_us": 200, "step_us": 500}, "TFRecord", 2700),
        ({"source_us": 3000, "map_us": 200, "step_us": 500, "parallelism": 3}, "TFRecord", 2500),
        ({"source_us": 100, "map_us": 4000, "step_us": 500}, "ParallelMapV2", 3600),
        ({"source_us": 100, "map_us": 4000, "step_us": 500, "parallelism": 4}, "ParallelMapV2", 500),
        ({"source_us": 900, "map_us": 100, "step_us": 500, "buffer": 1}, "TFRecord", 500),
    ],
)
def test_the_slow_stage_is_named_and_what_the_loop_waits_for_it_is_measured(times, culprit, wait_us):
    played = input_pipeline_capture(40, **times)
    result = analyse(played.space)
    (pipeline,) = result.pipelines.to_dict("records")
    assert pipeline["bottleneck"].rpartition("::")[2] == culprit
    assert pipeline["bottleneck_pct"] > 75
    assert pipeline["verdict"] == "high"
    assert pipeline["kind"] == "train"
    assert pipeline["blocked_ms"] * 1000 == pytest.approx(np.mean(played.waited_us[1:-1]), abs=5)
    assert pipeline["blocked_ms"] * 1000 == pytest.approx(wait_us, rel=0.02)
    assert pipeline["suggestion"]
    assert stage(result, culprit)["is_bottleneck"]
    assert result.stages["is_bottleneck"].sum() == 1


def test_a_prefetch_that_hides_a_slow_stage_is_no_bottleneck():
    played = input_pipeline_capture(40, source_us=100, map_us=2000, step_us=3000, buffer=2)
    result = analyse(played.space)
    (pipeline,) = result.pipelines.to_dict("records")
    assert pipeline["verdict"] == "low"
    assert pipeline["suggestion"] == ""
    assert "keeps up" in pipeline["statement"]
    assert "first call" in pipeline["statement"]  # which waited for the whole map
    assert pipeline["first_call_ms"] > 2
    assert stage(result, "Prefetch")["buffered_elements"] > 0.9


def test_waiting_is_judged_relative_to_the_step_time():
    # The same calls of 40 µs: nothing in a step of 3 ms, much in one of 0.1 ms.
    def loop(step_us: float) -> dict:
        space, (python,) = host_lines("python")
        for n in range(10):
            start = 1000 + n * step_us
            python.event("train", start, step_us, step_num=n, _r=1)
            python.event("Iterator::Root", start + 1, 40, id=1)
        return analyse(space).pipelines.iloc[0].to_dict()

    short, long = loop(100), loop(3000)
    assert (short["verdict"], long["verdict"]) == ("high", "low")
    assert short["blocked_pct"] == pytest.approx(40)
    assert (short["slow_calls"], long["slow_calls"]) == (10, 0)
    assert short["step_time_ms"] == pytest.approx(0.1)


def test_the_first_calls_that_fill_the_buffers_do_not_decide():
    space, (python,) = host_lines("python")
    for n in range(12):
        start = 10_000 + n * 1000
        python.event("train", start, 1000, step_num=n, _r=1)
        python.event("Iterator::Root", start + 1, 900 if n == 0 else 5, id=1)
    result = analyse(space)
    assert result.pipelines["verdict"].tolist() == ["low"]
    assert result.calls["is_judged"].tolist() == [False] + [True] * 10 + [False]
    assert result.pipelines["max_ms"].tolist() == pytest.approx([0.9])


def test_without_steps_waiting_is_set_against_the_time_from_call_to_call():
    played = input_pipeline_capture(20, source_us=3000, step_us=1000, marked=False)
    result = analyse(played.space, steps=False)
    (pipeline,) = result.pipelines.to_dict("records")
    assert pipeline["step_time_ms"] == pytest.approx(3.0, rel=0.05)
    assert pipeline["blocked_pct"] == pytest.approx(100 * 2 / 3, rel=0.05)
    assert result.calls["is_judged"].tolist() == [False] + [True] * 19


def test_replicas_that_read_at_the_same_time_make_the_step_wait_once():
    space, (python, *replicas) = host_lines("python", "get_next/1", "get_next/2")
    for n in range(8):
        python.event("train", n * 1000, 1000, step_num=n, _r=1)
        for r, line in enumerate(replicas):
            # tf.data's threads belong to no step by nesting; the function's id leads there
            python.event("FunctionRun", n * 1000 + 1 + r, 1, id=100 * n + r)
            line.event("IteratorGetNextOp::DoCompute", n * 1000 + 100, 400, id=100 * n + r, iter_num=0)
            line.event("Iterator::Prefetch", n * 1000 + 100, 400, id=50 + r)
            line.event("Iterator::Prefetch::Generator", n * 1000 + 110, 380, id=60 + r, parent_id=50 + r)
    result = analyse(space)
    (pipeline,) = result.pipelines.to_dict("records")
    assert pipeline["iterators"] == 2
    assert pipeline["blocked_ms"] == pytest.approx(0.4)
    assert pipeline["place"] == "device"
    assert any("hands batches to a device" in note for note in result.notes)


# ---- what a stage's time was ---------------------------------------------------------------------------------


def test_functions_belong_to_the_stage_that_calls_them():
    played = input_pipeline_capture(20, source_us=100, map_us=700, parallelism=2)
    result = analyse(played.space)
    mapped = stage(result, "ParallelMapV2")
    assert mapped["function_time_ms"] * 1000 == pytest.approx(played.function_us)
    assert mapped["python_time_ms"] == 0
    assert result.stages["function_time_ms"].sum() == pytest.approx(mapped["function_time_ms"])
    # 20 elements for 20 batches, two at a time
    assert mapped["time_per_batch_ms"] * 1000 == pytest.approx((700 + LAUNCH_US) / 2, rel=0.05)
    assert stage(result, "TFRecord")["time_per_batch_ms"] == pytest.approx(0.1)


def test_python_functions_are_told_apart():
    played = input_pipeline_capture(20, source_us=100, map_us=700, step_us=100, function_op="EagerPyFunc:EagerPyFunc")
    result = analyse(played.space)
    mapped = stage(result, "ParallelMapV2")
    assert mapped["python_time_ms"] * 1000 == pytest.approx(20 * 700 * 0.9)
    assert "py_function" in result.pipelines["suggestion"][0]


def test_a_function_that_calls_another_is_counted_once():
    space, (producer, pool) = host_lines("background", "pool")
    producer.event("ParallelMapProduce", 0, 50, element_id=1)
    producer.event("Iterator::Root::ParallelMapV2::Range", 0, 10, id=2, parent_id=1)
    producer.event("InstantiatedCapturedFunction::RunAsync", 10, 5, id=77)
    pool.event("ExecutorState::Process", 20, 100, id=77)
    pool.event("ExecutorState::Process", 30, 60, id=77)  # of the inner function, on the same thread
    pool.event("ExecutorState::Process", 200, 30, id=77)  # and later on
    pool.event("ExecutorState::Process", 300, 30, id=78)  # somebody else's
    result = analyse(space, steps=False)
    assert stage(result, "ParallelMapV2")["function_time_ms"] == pytest.approx(0.005 + 0.100 + 0.030)
    assert stage(result, "ParallelMapV2")["calls"] == 0  # never asked for, but there
    assert result.stages["name"].tolist() == ["ParallelMapV2", "Range"]
    assert any("nobody took anything" in note for note in result.notes)


def test_waiting_for_another_thread_is_told_from_work():
    played = input_pipeline_capture(20, source_us=100, map_us=2000, step_us=500)
    result = analyse(played.space)
    prefetch, mapped, source = (stage(result, n) for n in ("Prefetch", "ParallelMapV2", "TFRecord"))
    assert prefetch["wait_time_ms"] * 1000 == pytest.approx(sum(played.waited_us))
    assert mapped["self_time_ms"] - mapped["wait_time_ms"] == pytest.approx(20 * 0.002)
    assert source["wait_time_ms"] == 0
    assert source["work_time_ms"] == pytest.approx(20 * 0.1)
    assert (result.stages["wait_time_ms"] <= result.stages["self_time_ms"] + 1e-12).all()


def test_a_map_that_waits_for_its_function_waits():
    space, (thread, pool) = host_lines("background", "pool")
    thread.event("Iterator::Root", 0, 130, id=1)
    thread.event("Iterator::Root::Map", 10, 110, id=2, parent_id=1)
    thread.event("Iterator::Root::Map::Range", 12, 8, id=3, parent_id=2)
    thread.event("InstantiatedCapturedFunction::Run", 30, 80, id=55)
    pool.event("ExecutorState::Process", 35, 70, id=55)
    result = analyse(space, steps=False)
    mapped = stage(result, "Map")
    assert mapped["self_time_ms"] == pytest.approx(0.102)
    assert mapped["wait_time_ms"] == pytest.approx(0.080)
    assert mapped["work_time_ms"] == pytest.approx(0.022)
    assert mapped["function_time_ms"] == pytest.approx(0.070)


def test_a_function_that_runs_on_the_calling_thread_is_no_waiting():
    space, (thread,) = host_lines("background")
    thread.event("Iterator::Root", 0, 130, id=1)
    thread.event("Iterator::Root::Map", 10, 110, id=2, parent_id=1)
    thread.event("InstantiatedCapturedFunction::Run", 30, 80, id=55)
    thread.event("ExecutorState::Process", 35, 70, id=55)
    thread.event("decode:DecodeJpeg", 40, 60)
    result = analyse(space, steps=False)
    mapped = stage(result, "Map")
    assert mapped["self_time_ms"] == pytest.approx(0.050)  # as in the op table: less the ops inside
    assert mapped["wait_time_ms"] == pytest.approx(0.010)
    assert mapped["function_time_ms"] == pytest.approx(0.070)


def test_a_function_that_left_no_trace_but_its_call_takes_as_long_as_the_call():
    space, (thread,) = host_lines("background")
    thread.event("Iterator::Root", 0, 130, id=1)
    thread.event("Iterator::Root::Filter", 10, 110, id=2, parent_id=1)
    thread.event("InstantiatedCapturedFunction::RunWithBorrowedArgs", 30, 80, id=55)
    assert stage(analyse(space, steps=False), "Filter")["function_time_ms"] == pytest.approx(0.080)


def test_an_asynchronous_stage_that_hands_over_nothing_only_waited():
    space, (thread,) = host_lines("background")
    thread.event("Iterator::Root", 0, 130, id=1)
    thread.event("Iterator::Root::Prefetch", 10, 110, id=2, parent_id=1)
    assert stage(analyse(space, steps=False), "Prefetch")["wait_time_ms"] == pytest.approx(0.110)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Prefetch", True), ("ParallelMapV2", True), ("Iterator::Root::MapAndBatch", True), ("ParallelInterleaveV4", True),
        ("ParallelBatch", True), ("DataServiceV2", True), ("Map", False), ("BatchV2", False), ("Shuffle", False), ("PrefetchX", False),
    ],
)  # fmt: skip
def test_which_stages_work_ahead(name, expected):
    assert is_asynchronous(name) is expected


# ---- stages and pipelines ------------------------------------------------------------------------------------


def test_epochs_over_one_dataset_are_one_pipeline_and_validation_is_another():
    result = analyse(cpu_fit_capture(epochs=3, batches=8, validation_batches=4))
    table = result.pipelines.set_index("kind")
    assert table.loc["train", ["iterators", "calls"]].tolist() == [3, 24]
    assert table.loc["test", ["iterators", "calls"]].tolist() == [3, 12]
    assert len(table) == 2


def test_iterators_that_get_the_ids_of_earlier_ones_stay_apart():
    # Seen in Keras: the validation's prefetch lies where the training's lay, so it has its id; the root's differs.
    space, (python, background) = host_lines("python", "background")
    at, element = 0, 0
    for root in (10, 20, 10, 20):  # train, validation, train, validation
        for _ in range(5 if root == 10 else 2):
            python.event("train" if root == 10 else "test", at, 90, step_num=element, _r=1)
            python.event("Iterator::Root", at + 1, 50, id=root, name=f"PrefetchDataset:{root}")
            python.event("Iterator::Root::Prefetch", at + 2, 48, id=99, parent_id=root)
            python.event("PrefetchConsume", at + 45, 1, element_id=element)
            background.event("PrefetchProduce", at + 5, 35, element_id=element)
            background.event("Iterator::Root::Prefetch::Range", at + 6, 30, id=98, parent_id=99)
            at, element = at + 100, element + 1
        background.event("PrefetchProduce", at - 20, 10, element_id=-element)  # one too many, which nobody takes
        background.event("Iterator::Root::Prefetch::Range", at - 19, 8, id=98, parent_id=99)
    result = analyse(space)
    calls = result.stages.pivot_table(index="pipeline", columns="name", values="calls")
    assert calls.loc[0].to_dict() == {"Root": 10, "Prefetch": 10, "Range": 12}
    assert calls.loc[1].to_dict() == {"Root": 4, "Prefetch": 4, "Range": 6}
    assert result.pipelines["kind"].tolist() == ["train", "test"]
    assert result.stages["blocking_time_ms"].sum() == pytest.approx(
        result.calls["duration_ms"][result.calls["is_judged"]].sum()
    )


def test_elements_whose_numbers_start_again_belong_to_the_call_that_took_them():
    # Old TensorFlow counts elements from 0 for each iterator; the second one has the first one's address.
    space, (thread, background) = host_lines("get_next", "background")
    for epoch in (0, 1000):
        for n in range(4):
            background.event("PrefetchProduce", epoch + n * 100, 60 + n, element_id=n)
            background.event("Iterator::Model::Prefetch::Range", epoch + n * 100, 60 + n, id=3, parent_id=2)
            thread.event("Iterator::Model", epoch + n * 100, 70, id=1)
            thread.event("Iterator::Model::Prefetch", epoch + n * 100, 70, id=2, parent_id=1)
            thread.event("PrefetchConsume", epoch + n * 100 + 69, 1, element_id=n)
    result = analyse(space, steps=False)
    assert result.calls["bottleneck"].str.endswith("Range").all()
    assert result.calls["bottleneck_ms"].tolist() == pytest.approx([0.060, 0.061, 0.062, 0.063] * 2)


def datasets_made_in_a_loop(count: int, passes: int = 1) -> TfData:
    space, (thread,) = host_lines("background")
    for n in range(count * passes):
        for batch in range(3):
            name = f"PrefetchDataset:{n % count}"
            thread.event("Iterator::Root", n * 100 + batch * 20, 10, id=1000 + n, name=name)
            thread.event("Iterator::Root::Prefetch", n * 100 + batch * 20 + 1, 8, id=5, parent_id=1000 + n)
    return analyse(space, steps=False)


def test_many_datasets_that_differ_in_their_number_alone_are_one_pipeline():
    result = datasets_made_in_a_loop(40)
    assert result.pipelines[["iterators", "calls"]].values.tolist() == [[40, 120]]
    assert len(result.stages) == 2


def test_a_few_datasets_or_datasets_read_again_are_pipelines_of_their_own():
    assert len(datasets_made_in_a_loop(3).pipelines) == 3
    assert datasets_made_in_a_loop(12, passes=2).pipelines["iterators"].tolist() == [2] * 12


def test_an_iterator_outside_all_steps_feeds_what_the_others_of_its_dataset_feed():
    space, (python,) = host_lines("python")
    for n in range(6):
        if n < 5:
            python.event("train", n * 100, 90, step_num=n, _r=1)
        python.event("Iterator::Root", n * 100 + 10, 10, id=1 + n // 5, name="PrefetchDataset:7")
    result = analyse(space)
    assert result.pipelines[["kind", "iterators", "calls"]].values.tolist() == [["train", 2, 6]]


def test_numbers_that_only_count_iterators_are_no_stages_but_those_of_inputs_are():
    space, (thread,) = host_lines("background")
    zipped = "Iterator::Root::Zip"
    thread.event("Iterator::Root", 0, 1000, id=1)
    thread.event(zipped, 1, 900, id=2, parent_id=1)
    thread.event(f"{zipped}[0]::FlatMap", 10, 100, id=3, parent_id=2)
    thread.event(f"{zipped}[0]::FlatMap[7]::TFRecord", 11, 20, id=4, parent_id=3)
    thread.event(f"{zipped}[0]::FlatMap[8]::TFRecord", 40, 30, id=5, parent_id=3)
    thread.event(f"{zipped}[1]::Range", 200, 10, id=6, parent_id=2)
    table = analyse(space, steps=False).stages
    assert table["stage"].tolist() == [
        "Iterator::Root", zipped, f"{zipped}[0]::FlatMap", f"{zipped}[0]::FlatMap[*]::TFRecord", f"{zipped}[1]::Range",
    ]  # fmt: skip
    assert table["depth"].tolist() == [0, 1, 2, 3, 2]
    assert table["parent"].tolist() == ["", "Iterator::Root", zipped, f"{zipped}[0]::FlatMap", zipped]
    assert table["calls"].tolist() == [1, 1, 1, 2, 1]


def test_parameters_are_the_last_that_were_seen_and_a_missing_count_of_elements_is_none():
    space, (thread,) = host_lines("background")
    stats = [
        {"parallelism": 1, "autotune": "true", "interleave_depth": 0},
        {"parallelism": 4, "buffered_elements": 6, "interleave_depth": 0},
        {"parallelism": "unavailable", "interleave_depth": 0},
    ]
    for n, more in enumerate(stats):
        thread.event("Iterator::Root", n * 100, 90, id=1)
        thread.event("Iterator::Root::Prefetch", n * 100 + 1, 80, id=2, parent_id=1, buffer_size=-1, buffer_limit=n + 1)
        thread.event("Iterator::Root::Prefetch::ParallelMapV2", n * 100 + 2, 50, id=3, parent_id=2, **more)
        thread.event(
            "Iterator::Root::Prefetch::ParallelMapV2::BatchV2", n * 100 + 3, 20, id=4, parent_id=3, batch_size=32
        )
    result = analyse(space, steps=False)
    mapped = stage(result, "ParallelMapV2")
    assert (mapped["parallelism"], mapped["buffered_elements"], mapped["is_autotuned"]) == (4, 2, True)
    assert np.isnan(mapped["buffer_size"])
    assert stage(result, "Prefetch")["buffer_size"] == 3
    assert stage(result, "Prefetch")["buffered_elements"] == 0
    assert stage(result, "BatchV2")["batch_size"] == 32
    assert np.isnan(stage(result, "BatchV2")["buffered_elements"])


def test_an_old_profile_without_counts_of_elements_does_not_say_zero():
    space, (thread,) = host_lines("background")
    thread.event("Iterator::Model", 0, 90, id=1)
    thread.event("Iterator::Model::Prefetch", 1, 80, id=2, parent_id=1, buffer_limit=2)
    assert np.isnan(stage(analyse(space, steps=False), "Prefetch")["buffered_elements"])


def test_what_a_parallel_interleave_reads_runs_on_as_many_threads():
    space, (thread,) = host_lines("background")
    for n in range(4):
        thread.event("Iterator::Root", n * 100, 90, id=1)
        thread.event("Iterator::Root::ParallelInterleaveV4", n * 100 + 1, 80, id=2, parent_id=1, parallelism=4)
        thread.event(f"Iterator::Root::ParallelInterleaveV4[{n}]::TFRecord", n * 100 + 10, 40, id=30 + n, parent_id=2)
    assert stage(analyse(space, steps=False), "TFRecord")["time_per_batch_ms"] == pytest.approx(0.010)


# ---- odd profiles --------------------------------------------------------------------------------------------


def test_no_iterators_give_empty_tables_with_all_columns_and_a_note():
    space, (python,) = host_lines("python")
    python.event("train", 0, 100, step_num=0, _r=1)
    full, empty = analyse(input_pipeline_capture(3).space), analyse(space)
    assert empty.notes
    assert empty.main is None
    for name in ("pipelines", "stages", "calls"):
        assert list(getattr(empty, name).columns) == list(getattr(full, name).columns)
        assert getattr(empty, name).empty


def test_iterators_without_ids_go_by_their_names():
    space, (thread,) = host_lines("background")
    for n in range(3):
        thread.event("Iterator::Root", n * 100, 90)
        thread.event("Iterator::Root::Range", n * 100 + 10, 60)
    result = analyse(space, steps=False)
    assert result.pipelines["calls"].max() == 3
    assert result.calls["bottleneck"].unique().tolist() == ["Iterator::Root::Range"]


def test_damaged_ids_that_form_a_ring_do_no_harm():
    space, (thread, other) = host_lines("a", "b")
    thread.event("Iterator::Root", 0, 90, id=1)
    thread.event("PrefetchConsume", 80, 1, element_id=5)
    thread.event("Iterator::Root::A", 100, 50, id=2, parent_id=3)
    thread.event("Iterator::Root::A::B", 110, 20, id=3, parent_id=2)
    for line, own, above, element in ((thread, 7, 8, 1), (other, 8, 7, 2)):
        line.event("PrefetchProduce", 200, 80, element_id=element)
        line.event("Iterator::Root::C", 201, 70, id=own, parent_id=above)
        line.event("PrefetchConsume", 250, 1, element_id=3 - element)
    result = analyse(space, steps=False)
    assert result.stages["calls"].sum() == 5
    assert result.stages["blocking_time_ms"].sum() == pytest.approx(0.090)


def test_stats_of_the_wrong_type_are_as_good_as_missing():
    space, (thread,) = host_lines("background")
    for n in range(3):
        thread.event("Iterator::Root", n * 100, 90, id="one", parent_id=1.5, name=7, cpu_budget="many")
        thread.event(
            "Iterator::Root::Prefetch", n * 100 + 1, 50, id=b"x", buffer_limit=None, parallelism=2.5, autotune=1
        )
    result = analyse(space, steps=False)
    assert result.stages["calls"].sum() == 6
    assert result.stages["parallelism"].isna().all()


interval = st.tuples(st.integers(0, 60), st.integers(1, 40))


@st.composite
def background_calls(draw):
    """Root calls one after the other; calls on other threads, of which some are taken by a root call or by one another."""
    roots = draw(st.integers(1, 4))
    calls = draw(st.lists(st.tuples(interval, st.integers(0, 5), st.integers(0, 6)), max_size=12))
    return roots, calls


@settings(max_examples=150, deadline=None)
@given(background_calls())
def test_the_time_of_root_calls_is_divided_without_rest(case):
    roots, calls = case
    space = Space("worker-0")
    plane = space.plane("/host:CPU")
    line = plane.line("get_next", id=1)
    for n in range(roots):
        line.event("Iterator::Root", n * 30, 25, id=1)
        for element in range(3):
            line.event("PrefetchConsume", n * 30 + 20 + element, 1, element_id=3 * n + element)
    for i, ((start, duration), taken_by, element) in enumerate(calls):
        thread = plane.line("background", id=10 + i)
        own, above = 100 + i, 1 if taken_by == 0 else 100 + (i * 7 + taken_by) % max(1, len(calls))
        thread.event("PrefetchProduce", start, duration, element_id=element)
        thread.event("Iterator::Root::Stage", start, duration, id=own, parent_id=above)
        thread.event("PrefetchConsume", start + duration - 0.5, 0.25, element_id=element)
    trace = Trace(read(space.bytes()))
    its = iterators(trace)
    blocking, root = blame(trace, its)
    assert (blocking >= 0).all()
    assert blocking.sum() == trace.duration_ps[its.event[its.is_root_call]].sum()
    for row in np.flatnonzero(its.is_root_call):
        assert blocking[root == row].sum() == trace.duration_ps[its.event[row]]
    assert (blocking[root < 0] == 0).all()


# ---- suggestions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("ParallelMapV2", {"parallelism": 1}, "num_parallel_calls"),
        ("MapAndBatch", {"parallelism": 8}, "cheaper"),
        ("Map", {}, "num_parallel_calls"),
        ("Map", {"python_time_ms": 9}, "py_function"),
        ("Generator", {"python_time_ms": 9}, "generator is Python"),
        ("Interleave", {}, "num_parallel_calls"),
        ("ParallelInterleaveV4", {}, "cycle_length"),
        ("TFRecord", {}, "interleave"),
        ("BatchV2", {}, "num_parallel_calls"),
        ("Filter", {}, "one element at a time"),
        ("Shuffle", {}, "buffer"),
        ("DataServiceV2", {}, "workers"),
        ("Prefetch", {"buffered_elements": 2}, "ready"),
        ("Prefetch", {"buffered_elements": 0}, "empty"),
        ("SomethingNew", {}, "guide"),
        ("Map", {"python_time_ms": 9, "stage": "Iterator::Root::MemoryCacheImpl::Map"}, "a later epoch"),
        ("TFRecord", {"stage": "Iterator::Root::FileCache::FileCacheImpl[0]::BatchV2::TFRecord"}, "a later epoch"),
        ("MemoryCache", {"stage": "Iterator::Root::MemoryCache"}, "guide"),
    ],
)
def test_each_stage_gets_advice_of_its_own(name, more, words):
    nothing = {"parallelism": np.nan, "function_time_ms": 10.0, "python_time_ms": 0.0, "buffered_elements": np.nan}
    assert words in suggest(
        {**nothing, "name": name, "stage": f"Iterator::Root::{name}", **more}, {"cpu_budget": 8.0, "place": "host"}
    )
