"""The op table on small profiles whose numbers can be worked out by hand, and on generated captures."""

import numpy as np
import pandas as pd
import pytest

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.op_stats import op_stats, without_idle
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import read

COLUMNS = [
    "host_or_device", "type", "name", "occurrences", "total_time_us", "avg_time_us", "self_time_us", "avg_self_time_us",
    "device_self_time_pct", "device_cumulative_pct", "host_self_time_pct", "host_cumulative_pct", "execution_mode",
]  # fmt: skip
PERCENTS = [c for c in COLUMNS if c.endswith("_pct")]


def trace_of(space):
    return Trace(read(space.bytes()))


def ops_of(*spaces):
    traces = [trace_of(space) for space in spaces]
    return op_stats(traces if len(traces) > 1 else traces[0])


def row(ops, name, **more):
    found = ops[ops["name"] == name]
    for column, value in more.items():
        found = found[found[column] == value]
    assert len(found) == 1, found
    return found.iloc[0]


def host():
    space = Space("h")
    return space, space.plane("/host:CPU").line("tf_Compute/1", id=-1)


def gpu(space=None, index=0, **stats):
    space = space or Space("h")
    plane = space.plane(f"/device:GPU:{index}", id=index, stats=stats)
    return space, plane.line("Stream #7(Kernel)", id=7)


# ---- host -----------------------------------------------------------------------------------------------------


def test_total_time_includes_nested_ops_and_self_time_does_not():
    space, line = host()
    line.event("while/body:While", 0, 100)
    line.event("ExecutorState::Process", 5, 90)  # no op, but what lies between two
    line.event("a/b/MatMul:MatMul", 10, 30)
    line.event("a/b/MatMul:MatMul", 50, 20)
    line.event("Cast:Cast", 15, 5)
    line.event("ThreadpoolListener::Record", 16)
    ops = ops_of(space)
    assert list(ops.columns) == COLUMNS
    assert ops["name"].tolist() == ["while/body", "a/b/MatMul", "Cast", "IDLE"]
    assert ops["type"].tolist() == ["While", "MatMul", "Cast", "IDLE"]
    assert ops["occurrences"].tolist() == [1, 2, 1, 0]
    assert ops["total_time_us"].tolist() == [100, 50, 5, 0]
    assert ops["self_time_us"].tolist() == [50, 45, 5, 0]
    assert ops["avg_time_us"].tolist() == [100, 25, 5, 0]
    assert ops["avg_self_time_us"].tolist() == [50, 22.5, 5, 0]
    assert set(ops["execution_mode"]) == {"function"}


def test_idle_is_summed_over_the_threads_that_run_ops():
    space, line = host()
    line.event("a:A", 10, 10)
    line.event("b:B", 30, 10)
    second = space.planes[0].line("tf_Compute/2", id=2)
    second.event("a:A", 100, 5)
    second.event("c:C", 150, 5)
    space.planes[0].line("python").event("no op", 0, 1000)
    ops = ops_of(space)
    idle = row(ops, "IDLE")
    assert (idle["type"], idle["occurrences"], idle["avg_time_us"]) == ("IDLE", 0, 0)
    assert idle["self_time_us"] == 10 + 45
    assert row(ops, "a")["total_time_us"] == 15


def test_percentages_are_of_the_self_time_with_idle_and_the_other_side_is_zero():
    space, line = host()
    line.event("a:A", 0, 60)
    line.event("b:B", 80, 20)
    _, stream = gpu(space)
    stream.event("kernel", 0, 30, tf_op="c:C", kernel_details="regs:1")
    stream.event("kernel", 90, 10, tf_op="d:D", kernel_details="regs:1")
    ops = ops_of(space)
    assert ops["host_or_device"].tolist() == ["Device"] * 3 + ["Host"] * 3
    assert ops["name"].tolist() == ["IDLE", "c", "d", "a", "IDLE", "b"]  # ties by name
    np.testing.assert_allclose(ops["device_self_time_pct"], [60, 30, 10, 0, 0, 0])
    np.testing.assert_allclose(ops["device_cumulative_pct"], [60, 90, 100, 0, 0, 0])
    np.testing.assert_allclose(ops["host_self_time_pct"], [0, 0, 0, 60, 20, 20])
    np.testing.assert_allclose(ops["host_cumulative_pct"], [0, 0, 0, 60, 80, 100])

    narrowed = without_idle(ops)
    assert narrowed.index.tolist() == [1, 2, 3, 5]
    np.testing.assert_allclose(narrowed["device_self_time_pct"], [75, 25, 0, 0])
    np.testing.assert_allclose(narrowed["device_cumulative_pct"], [75, 100, 0, 0])
    np.testing.assert_allclose(narrowed["host_self_time_pct"], [0, 0, 75, 25])
    assert (ops["name"] == "IDLE").sum() == 2, "the table given is left as it is"


def test_an_allocation_is_no_execution_of_its_op():
    space, line = host()
    line.event("Relu:Relu", 0, 10)
    line.event("MemoryAllocation", 2, 0, tf_op="Relu", bytes_allocated=5)
    line.event("MemoryAllocation", 3, 0, tf_op="never/ran", bytes_allocated=6)
    line.event("MemoryDeallocation", 500, 0, tf_op="Relu", bytes_allocated=7)
    ops = ops_of(space)
    assert row(ops, "Relu")["occurrences"] == 1
    assert "never/ran" not in set(ops["name"])
    assert row(ops, "IDLE")["self_time_us"] == 0


def test_a_launch_counts_for_the_op_that_it_names():
    space, line = host()
    line.event("hipModuleLaunchKernel", 0, 4, tf_op="XlaModule:", correlation_id=1)
    line.event("hipModuleLaunchKernel", 10, 6, tf_op="XlaModule:", correlation_id=2)
    line.event("hipModuleLaunchKernel", 20, 6, tf_op="", correlation_id=2)
    launch = row(ops_of(space), "XlaModule")
    assert (launch["type"], launch["occurrences"], launch["total_time_us"]) == ("XlaModule", 2, 10)


def test_ops_of_one_name_are_one_row_with_the_first_known_type():
    space, line = host()
    line.event("truediv:RealDiv", 0, 1)
    line.event("truediv:Div", 1, 1)
    line.event("launch", 2, 1, tf_op="other")
    line.event("other:Mul", 3, 1)
    ops = ops_of(space)
    assert row(ops, "truediv")["type"] == "RealDiv"
    assert row(ops, "other")["occurrences"] == 2
    assert row(ops, "other")["type"] == "Mul"


def test_iterators_are_ops_of_type_dataset():
    space, line = host()
    line.event("Iterator::Root", 0, 10, id=1)
    line.event("Iterator::Root::Prefetch", 1, 8, id=2)
    ops = ops_of(space)
    assert ops["type"].tolist()[:2] == ["Dataset", "Dataset"]
    assert row(ops, "Iterator::Root")["self_time_us"] == 2


def test_an_op_that_ends_with_the_op_around_it_counts():
    space, line = host()
    line.event("outer:Outer", 0, 10)
    line.event("inner:Inner", 5, 5)
    ops = ops_of(space)
    assert row(ops, "inner")["self_time_us"] == 5
    assert row(ops, "outer")["self_time_us"] == 5


def test_ops_that_overlap_in_part_count_in_full_and_share_the_time():
    space, line = host()
    line.event("first:A", 0, 6)
    line.event("second:B", 4, 6)
    ops = ops_of(space)
    assert row(ops, "second")["total_time_us"] == 6
    assert row(ops, "first")["self_time_us"] + row(ops, "second")["self_time_us"] == 6
    assert row(ops, "IDLE")["self_time_us"] == 4


def test_aggregated_events_count_as_often_as_they_say():
    space, line = host()
    line.aggregate("a:A", 12, 340, self_duration_ps=300_000_000)
    line.aggregate("b:B", 3, 30)
    line.event("a:A", 50, 10)
    ops = ops_of(space)
    a = row(ops, "a")
    assert (a["occurrences"], a["total_time_us"], a["self_time_us"]) == (13, 350, 310)
    assert row(ops, "b")["self_time_us"] == 30
    assert row(ops, "IDLE")["self_time_us"] == 0


def test_events_out_of_order():
    space, line = host()
    line.event("inner:Inner", 5, 3)
    line.event("outer:Outer", 0, 10)
    space.planes[0].line("tf_Compute/2", id=2).event("inner:Inner", 0, 1)
    ops = ops_of(space)
    assert row(ops, "outer")["self_time_us"] == 7
    assert row(ops, "inner")["occurrences"] == 2


def test_more_than_500_ops_all_have_their_row():
    space, line = host()
    for i in range(700):
        line.event(f"op_{i}:Mul", i, 1)
    ops = ops_of(space)
    assert len(ops) == 701
    assert ops["host_cumulative_pct"].iloc[-1] == pytest.approx(100)


# ---- eager ----------------------------------------------------------------------------------------------------


def test_ops_that_python_ran_one_by_one():
    space = Space("h")
    line = space.plane("/host:CPU").line("python")
    for start in (0, 100):
        line.event("EagerExecute", start, 20, eager_op="MatMul", is_func=0)
        line.event("EagerLocalExecute: MatMul", start + 1, 18)
    line.event("EagerExecute", 40, 10, eager_op="IteratorGetNext", is_func=0)
    line.event("Iterator::Root", 42, 6, id=1)
    line.event("EagerExecute", 200, 50, eager_op="__inference_f_7", is_func=1)
    ops = ops_of(space)
    matmul = row(ops, "MatMul")
    assert (matmul["type"], matmul["occurrences"], matmul["total_time_us"]) == ("MatMul", 2, 40)
    assert matmul["execution_mode"] == "eager"
    assert row(ops, "IteratorGetNext")["self_time_us"] == 4
    assert row(ops, "Iterator::Root")["execution_mode"] == "function"  # tf.data runs it, not Python
    assert "__inference_f_7" not in set(ops["name"])
    assert row(ops, "IDLE")["self_time_us"] == 0, "what Python does between its ops is not idle"


def test_an_eager_call_that_holds_its_op_is_counted_once():
    """TensorFlow 2.4: the call has the op's name in its own, and an event of the op inside."""
    space = Space("h")
    line = space.plane("/host:CPU").line("python3")
    line.event("EagerExecute: Mul", 0, 20)
    line.event("Mul:Mul", 5, 10)
    line.event("EagerExecute: Mul", 30, 20)  # and one without
    line.event("EagerExecute: __inference_train_function_3", 60, 20)
    ops = ops_of(space)
    both = ops[ops["name"] == "Mul"]
    assert both["occurrences"].tolist() == [1, 1]
    assert both["total_time_us"].tolist() == [20, 10]
    assert both["execution_mode"].tolist() == ["eager", "eager"]


def test_an_op_of_a_function_keeps_its_row_beside_the_eager_one():
    space, line = host()
    line.event("ReadVariableOp:ReadVariableOp", 0, 3)
    space.planes[0].line("python").event("EagerExecute", 0, 10, eager_op="ReadVariableOp", is_func=0)
    ops = ops_of(space)
    assert row(ops, "ReadVariableOp", execution_mode="function")["total_time_us"] == 3
    assert row(ops, "ReadVariableOp", execution_mode="eager")["total_time_us"] == 10


def test_ops_that_the_file_marks_as_eager():
    space, line = host()
    line.event("a:A", 0, 3, is_eager=0, group_id=1)
    line.event("a:A", 5, 3, is_eager=1, group_id=1)
    line.event("b:B", 10, 3, is_eager=0, group_id=1)
    ops = ops_of(space)
    assert row(ops, "a")["execution_mode"] == "eager"
    assert row(ops, "b")["execution_mode"] == "function"


def test_kernels_of_eager_ops_are_eager():
    space = Space("h")
    line = space.plane("/host:CPU").line("python")
    line.event("EagerExecute", 0, 20, eager_op="MatMul", is_func=0)
    line.event("cuLaunchKernel", 5, 3, correlation_id=1)
    line.event("cuLaunchKernel", 50, 3, correlation_id=2)
    _, stream = gpu(space)
    stream.event("gemm", 10, 30, tf_op="MatMul:MatMul", correlation_id=1, kernel_details="regs:1")
    stream.event("gemm", 60, 30, tf_op="dense/MatMul:MatMul", correlation_id=2, kernel_details="regs:1")
    ops = ops_of(space)
    assert row(ops, "MatMul", host_or_device="Device")["execution_mode"] == "eager"
    assert row(ops, "dense/MatMul")["execution_mode"] == "function"


# ---- devices --------------------------------------------------------------------------------------------------


def test_a_device_op_is_what_its_kernels_add_up_to():
    space, stream = gpu()
    for start in (0, 100, 200):
        stream.event("transpose", start, 5, tf_op="conv/Conv2D:Conv2D", kernel_details="regs:1")
        stream.event("winograd", start + 5, 20, tf_op="conv/Conv2D:Conv2D", kernel_details="regs:1")
    ops = ops_of(space)
    conv = row(ops, "conv/Conv2D")
    assert (conv["host_or_device"], conv["type"], conv["occurrences"]) == ("Device", "Conv2D", 3)
    assert conv["total_time_us"] == conv["self_time_us"] == 75
    assert conv["avg_time_us"] == 25
    assert row(ops, "IDLE")["self_time_us"] == 225 - 75


def test_runs_of_an_op_in_several_programs_and_on_several_devices_add_up():
    space = Space("h")
    for index in range(2):
        _, stream = gpu(space, index)
        for program in (1, 2):
            for i in range(3):
                stats = {"program_id": program, "hlo_op": "dot.1", "hlo_module": "jit_f", "name": "jit(f)/dot_general"}
                stream.event(f"gemm_{program}", 100 * program + 10 * i, 5, stats, kernel_details="regs:1")
    dot = row(ops_of(space), "jit(f)/dot_general")
    assert (dot["type"], dot["occurrences"], dot["total_time_us"]) == ("dot_general", 12, 60)


def test_device_idle_is_when_no_stream_is_busy():
    space, stream = gpu()
    stream.event("k", 0, 50, tf_op="a:A", kernel_details="regs:1")
    other = space.planes[0].line("Stream #8(MemcpyH2D)", id=8)
    other.event("MemcpyH2D", 30, 40, tf_op="b:_Send")
    other.event("MemcpyH2D", 90, 10, tf_op="b:_Send")
    ops = ops_of(space)
    assert row(ops, "IDLE")["self_time_us"] == 20
    assert ops["self_time_us"].sum() == 50 + 50 + 20


def test_what_names_no_op_is_not_lost():
    space, stream = gpu()
    stream.event("mystery_kernel", 0, 30, kernel_details="regs:1")
    stream.event("other_kernel", 30, 10, kernel_details="regs:1")
    stream.event("MemcpyH2D", 40, 8, memcpy_details="size:4")
    stream.event("Memset", 48, 2)
    stream.event("k", 50, 50, tf_op="a:A", kernel_details="regs:1")
    ops = ops_of(space)
    rest = row(ops, "unattributed")
    assert (rest["type"], rest["occurrences"], rest["self_time_us"]) == ("unattributed", 2, 40)
    assert row(ops, "MemcpyH2D")["self_time_us"] == 8
    assert row(ops, "Memset")["occurrences"] == 1
    assert ops["self_time_us"].sum() == 100


def test_derived_lines_and_bookkeeping_are_not_counted_again():
    space, stream = gpu()
    stream.event("k", 0, 50, tf_op="a:A", kernel_details="regs:1")
    plane = space.planes[0]
    for offset, name in ((0, "Steps"), (2, "TensorFlow Name Scope"), (3, "TensorFlow Ops")):
        plane.line(name, id=-559038737 + offset).event("a:A", 0, 50, tf_op="a:A")
    plane.line("CUPTI overhead", id=99).event("overhead", 0, 500, tf_op="a:A")
    a = row(ops_of(space), "a")
    assert (a["occurrences"], a["total_time_us"]) == (1, 50)


@pytest.mark.parametrize(
    ("attribution", "dialect"), [("tf_op", "current"), ("annotation", "old"), ("line", "old"), ("tf_op", "amd")]
)
def test_every_dialect_says_the_op_of_each_kernel(attribution, dialect):
    ops = ops_of(gpu_capture(2, 3, dialect=dialect, attribution=attribution))
    device = ops[(ops["host_or_device"] == "Device") & (ops["name"] != "IDLE")]
    assert row(device, "model/conv2d/Conv2D")["occurrences"] == 6
    assert row(device, "CollectiveReduceV2")["occurrences"] == 6
    assert "unattributed" not in set(device["name"])


@pytest.mark.parametrize("attribution", ["tf_op", "annotation", "line", "none"])
def test_device_ops_add_up_to_the_streams(attribution):
    trace = trace_of(gpu_capture(2, 3, dialect="old", attribution=attribution))
    ops = op_stats(trace)
    device = ops[(ops["host_or_device"] == "Device") & (ops["name"] != "IDLE")]
    streams = trace.duration_ps[trace.events_of(trace.line_is_stream)].sum() / 1e6
    assert device["self_time_us"].sum() == pytest.approx(streams, abs=1e-6)
    assert device["device_self_time_pct"].sum() < 100


def test_rates_only_where_the_file_has_them():
    space, stream = gpu(peak_teraflops_per_second=100.0, peak_hbm_bw_gigabytes_per_second=1000.0)
    plane = space.planes[0]
    plane.event_type("dot", stats={"flops": 4_000_000_000, "bytes_accessed": 1_000_000})
    plane.event_type("copy", stats={"bytes_accessed": 50_000_000})
    for start in (0, 200):
        stream.event("dot", start, 100, hlo_op="dot.1", name="f/dot")
    stream.event("copy", 400, 100, hlo_op="copy.1", name="f/copy")
    stream.event("plain", 500, 100, hlo_op="plain.1", name="f/plain")
    ops = ops_of(space)
    dot = row(ops, "f/dot")
    assert dot["flop_rate_gflops"] == pytest.approx(40_000)
    assert dot["bandwidth_gibps"] == pytest.approx(2e6 / 200e-6 / 2**30)
    assert dot["operational_intensity"] == pytest.approx(4000)
    assert dot["bound_by"] == "Compute"
    copy = row(ops, "f/copy")
    assert np.isnan(copy["flop_rate_gflops"])
    assert copy["bound_by"] == "HBM"
    assert pd.isna(row(ops, "f/plain")["bound_by"])
    assert "flop_rate_gflops" not in ops_of(gpu_capture(1, 1))


# ---- whole captures -------------------------------------------------------------------------------------------


def test_a_fit_on_a_cpu():
    ops = ops_of(cpu_fit_capture(2, 5, validation_batches=3))
    prefix = "StatefulPartitionedCall/sequential_1"
    relu = row(ops, f"{prefix}/conv2d_1/Relu")
    assert (relu["occurrences"], relu["type"]) == (16, "_MklNativeFusedConv2D")
    assert row(ops, f"{prefix}/max_pooling2d_1/MaxPool2d")["occurrences"] == 16
    assert f"{prefix}/max_pooling2d_1/MaxPool" not in set(ops["name"]), "it exists only as the name of an allocation"
    assert row(ops, "StatefulPartitionedCall/adam/Sqrt_0")["occurrences"] == 10
    assert row(ops, "OptionalHasValue")["execution_mode"] == "eager"
    assert set(ops["host_or_device"]) == {"Host"}
    assert ops["host_self_time_pct"].sum() == pytest.approx(100)
    assert (ops["device_self_time_pct"] == 0).all()


def test_hosts_are_added_up():
    spaces = pod_captures(2, 1, 3)
    one, other, both = ops_of(spaces[0]), ops_of(spaces[1]), ops_of(*spaces)
    assert len(both) == len(one)
    for column in ("occurrences", "total_time_us", "self_time_us"):
        for name, side in (("model/conv2d/Conv2D", "Device"), ("model/conv2d/Conv2D", "Host"), ("IDLE", "Device")):
            parts = row(one, name, host_or_device=side)[column] + row(other, name, host_or_device=side)[column]
            assert row(both, name, host_or_device=side)[column] == pytest.approx(parts)
    for side in ("device", "host"):
        assert both[f"{side}_self_time_pct"].sum() == pytest.approx(100)


def test_no_ops_give_an_empty_table_with_its_columns():
    space, line = host()
    line.event("no op", 0, 10)
    space.plane("/device:GPU:0")
    for ops in (ops_of(space), ops_of(space, space), without_idle(ops_of(space))):
        assert list(ops.columns) == COLUMNS
        assert len(ops) == 0
        assert ops["occurrences"].dtype == np.int64
        assert ops["self_time_us"].dtype == np.float64


def test_instants_alone_give_no_division_by_zero():
    space, line = host()
    line.event("a:A", 5)
    ops = ops_of(space)
    assert row(ops, "a")["occurrences"] == 1
    assert (ops[PERCENTS] == 0).all(axis=None)


@pytest.mark.filterwarnings("error")
def test_stats_of_the_wrong_type_are_left_out():
    space, line = host()
    line.event("a:A", 0, 3, is_eager="yes", tf_op=5)
    line.event("EagerExecute", 5, 3, is_func="no", eager_op=3)
    line.event("EagerExecute", 9, 3, is_func=0)
    _, stream = gpu(space)
    stream.event(
        "k", 0, 5, tf_op=1.5, annotation=3, program_id="x", flops="many", kernel_details=7, correlation_id=-1.0
    )
    ops = ops_of(space)
    assert row(ops, "a")["execution_mode"] == "function"
    assert row(ops, "unattributed")["self_time_us"] == 5


def test_device_events_without_duration_count_in_no_tool():
    space = Space("host")
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    details = "regs:1 shm:0 grid:1,1,1 block:32,1,1"
    for start in (0, 200):
        stream.event("gemm", start, 100, kernel_details=details, tf_op="a/MatMul:MatMul")
    for start in (150, 900):
        stream.event("nop", start, 0, kernel_details=details, tf_op="b/Mul:Mul")
    stream.event("MemcpyH2D", 950, 0)
    report = Report([read(space.bytes())])
    ops = report.ops.set_index("name")
    assert ops["occurrences"].to_dict() == {"IDLE": 0, "a/MatMul": 2}
    assert ops.loc["IDLE", "self_time_us"] == pytest.approx(100)
    assert report.overview.utilization[0].devices["idle_ms"].tolist() == pytest.approx([0.1])
    assert report.kernels["occurrences"].tolist() == [2]
    (note,) = (note for note in report.notes if "no duration" in note)
    assert note.startswith("3 of 5 events of devices have no duration.")
