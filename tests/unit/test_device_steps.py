"""Steps on devices: from when to when, and what belongs to them."""

from __future__ import annotations

import numpy as np
import pytest

from generate import Space, gpu_capture
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.pod import pod
from tfprof_widgets.analysis.steps import CATEGORY_COLUMNS, Steps, find_steps
from tfprof_widgets.analysis.tf_data import tf_data
from tfprof_widgets.analysis.throughput import examples_per_s
from tfprof_widgets.analysis.utilization import utilization
from tfprof_widgets.xspace import read


def steps_of(space: Space) -> Steps:
    steps = find_steps(Trace(read(space.bytes())))
    table = steps.table
    assert np.allclose(table[list(CATEGORY_COLUMNS)].sum(axis=1), table["duration_ms"], rtol=0, atol=1e-9)
    return steps


class Gpu:
    """A host with a GPU, of which each kernel is launched by name."""

    def __init__(self) -> None:
        self.space = Space("worker-0")
        host = self.space.plane("/host:CPU")
        self.python = host.line("python", id=1)
        self.executor, self.nccl = host.line("tf_Compute/2", id=2), host.line("nccl/3", id=3)
        plane = self.space.plane("/device:GPU:0", id=1)
        self.stream, self.other = plane.line("Stream #1(Kernel)", id=1), plane.line("Stream #2", id=2)
        self.launches = 0

    def step(
        self, number: int, at_us: float, duration_us: float, *, mark: bool = True, process_us: float = 100
    ) -> None:
        if mark:
            self.python.event("train", at_us, duration_us, step_num=number, _r=1)
        else:
            self.python.event(
                "train_function", at_us, duration_us, tf_function_call="notTraced-nonXla", tracing_count=1
            )
        self.python.event("FunctionRun", at_us + 1, 2, id=1000 + number, _r=1)
        self.executor.event("ExecutorState::Process", at_us + 5, process_us, id=1000 + number, iter_num=0)

    def kernel(self, name: str, launched_us: float, at_us: float, duration_us: float, *, by=None, on=None) -> None:
        self.launches += 1
        (by or self.executor).event("cuLaunchKernel", launched_us, 1, correlation_id=self.launches)
        (on or self.stream).event(name, at_us, duration_us, correlation_id=self.launches)


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("input_us", [0, 3_000, 20_000])
def test_steps_are_the_same_with_marks_and_without(devices, input_us):
    marked, plain = (steps_of(gpu_capture(devices, 8, input_us=input_us, marks=marks)).table for marks in ("train", ""))
    for column in CATEGORY_COLUMNS:
        if column != "other_ms":
            assert np.allclose(plain[column], marked[column], atol=1e-6), column
    # The time between the marks is Python's; the last call isn't followed by one.
    between = plain["duration_ms"] - marked["duration_ms"]
    assert np.allclose(plain["other_ms"] - marked["other_ms"], between)
    assert between[plain["step"] < 7].between(0, 0.4).all()
    of_first = plain[plain["device"] == "/device:GPU:0"]
    assert of_first["duration_ms"].sum() == pytest.approx(
        (of_first["start_ms"] + of_first["duration_ms"]).max() - of_first["start_ms"].min()
    )


@pytest.mark.parametrize("mark", [True, False])
def test_a_host_that_runs_ahead_makes_no_step_longer(mark):
    """Ten calls of 1 ms, one right after the other; each has 3 ms of kernels on the device."""
    gpu = Gpu()
    for i in range(10):
        gpu.step(i, 1_000 * i, 990, mark=mark)
        gpu.kernel("gemm", 1_000 * i + 50, 100 + 3_000 * i, 3_000)
    table = steps_of(gpu.space).table
    assert np.allclose(table["duration_ms"][1:], 3)
    assert table["device_compute_ms"].sum() == pytest.approx(30)
    assert table["duration_ms"].sum() == pytest.approx(30.1)  # the first waits for its launch


def test_a_kernel_that_outlasts_its_mark_leaves_the_wait_in_the_step():
    shares = []
    for outlasts_us in (-50, 50):
        gpu = Gpu()
        for i in range(8):
            gpu.step(i, 7_000 * i, 6_000, process_us=5_500)
            gpu.executor.event("IteratorGetNext:IteratorGetNext", 7_000 * i + 10, 4_900)
            gpu.kernel("gemm", 7_000 * i + 5_000, 7_000 * i + 5_100, 900 + outlasts_us)
        table = steps_of(gpu.space).table
        shares.append((table["device_compute_ms"] / table["duration_ms"]).mean())
    assert shares == pytest.approx([0.85 / 6, 0.95 / 6.05])


def test_what_a_thread_without_a_step_launches_is_of_the_step_that_the_device_is_in():
    gpu = Gpu()
    for i in range(8):
        at = 3_000 * i
        gpu.step(i, at, 2_900)
        gpu.kernel("gemm", at + 50, at + 60, 500)
        gpu.kernel("ncclDevKernel_AllReduce_Sum_f32", at + 70, at + 600, 2_000, by=gpu.nccl, on=gpu.other)
    # Python's own call between the steps, and what the thread does long after them, are no part of one.
    gpu.kernel("outside", 2_950, 2_955, 10, by=gpu.python)
    gpu.kernel("later", 500_000, 500_010, 10, by=gpu.nccl)
    steps = steps_of(gpu.space)
    assert np.allclose(steps.table["device_collective_ms"], 2)
    trace = Trace(read(gpu.space.bytes()))
    names = np.array(trace.space.meta_name, object)[trace.meta]
    assert steps.step_of_event[np.char.startswith(names.astype(str), "nccl")].tolist() == list(range(8))
    assert steps.step_of_event[np.isin(names, ["outside", "later"])].tolist() == [-1, -1]


def test_collectives_of_generated_captures_have_their_step():
    table = steps_of(gpu_capture(2, 6)).table
    assert (table["device_collective_ms"] > 0.1).all()
    assert (table["output_ms"] > 0).all()


def test_reserving_memory_is_no_work():
    gpu = Gpu()
    for i in range(6):
        gpu.step(i, 1_000 * i, 990)
        gpu.kernel("gemm", 1_000 * i + 15, 1_000 * i + 30, 100)
        gpu.kernel("MemoryAlloc", 1_000 * i + 20, 1_000 * i + 200, 700, on=gpu.other)
    assert np.allclose(steps_of(gpu.space).table["device_compute_ms"], 0.1)
    devices = utilization(Trace(read(gpu.space.bytes()))).devices
    assert devices["busy_ms"].tolist() == pytest.approx([0.6])


def test_an_op_that_the_executor_runs_on_the_host_is_no_launch():
    gpu = Gpu()
    for i in range(6):
        at = 2_000 * i
        gpu.step(i, at, 1_900, process_us=1_500)
        gpu.executor.event("dense/MatMul:MatMul", at + 10, 20)
        gpu.kernel("gemm", at + 15, at + 40, 100)
        gpu.executor.event("map/PyFunc:PyFunc", at + 200, 1_300)
        gpu.kernel("gemm", at + 1_502, at + 1_550, 300)
    table = steps_of(gpu.space).table
    assert np.allclose(table["host_compute_ms"], 1.3)
    assert np.allclose(table["kernel_launch_ms"], 0.1)  # before, between and after the kernel and the op


@pytest.mark.parametrize("mark", [True, False])
def test_a_copy_ahead_makes_no_step_longer(mark):
    """The host is many steps ahead, and copies each batch on another stream while the device computes the steps before."""
    gpu = Gpu()
    for i in range(10):
        gpu.step(i, 1_000 * i, 990, mark=mark)
        gpu.kernel("MemcpyH2D", 1_000 * i + 20, 1_000 * i + 50, 200, on=gpu.other)
        gpu.kernel("gemm", 1_000 * i + 60, 300 + 3_000 * i, 3_000)
    steps = steps_of(gpu.space)
    assert np.allclose(steps.table["duration_ms"][1:], 3)
    assert steps.table["duration_ms"].sum() == pytest.approx(30.3)
    assert steps.between_runs_ms == 0


def test_a_collective_beside_the_next_step_is_counted_once():
    gpu = Gpu()
    for i in range(8):
        gpu.step(i, 3_000 * i, 2_900)
        gpu.kernel("gemm", 3_000 * i + 50, 3_000 * i + 150, 2_500)
        gpu.kernel("ncclDevKernel_AllReduce", 3_000 * i + 60, 3_000 * i + 2_650, 950, on=gpu.other)
    table = steps_of(gpu.space).table
    assert np.allclose(table["duration_ms"][:-1], 3)
    assert np.allclose(table["device_collective_ms"][:-1], 0.35)


def test_what_is_copied_ahead_is_for_the_step_that_comes():
    """A thread of tf.data copies, which belongs to no step, right before the kernels of each."""
    gpu = Gpu()
    copier = gpu.space.plane("/host:CPU").line("tf_data_private_threadpool/9", id=9)
    for i in range(8):
        gpu.step(i, 3_000 * i, 2_900, process_us=40)
        gpu.kernel("gemm", 3_000 * i + 20, 3_000 * i + 1_000, 1_800)
        gpu.kernel("MemcpyH2D", 3_000 * i + 100, 3_000 * i + 200, 600, by=copier, on=gpu.other)
    assert np.allclose(steps_of(gpu.space).table["input_ms"], 0.6)


def test_without_launches_the_time_tells_the_step():
    space = Space("worker-0")
    python = space.plane("/host:CPU").line("python", id=1)
    stream = space.plane("/device:GPU:0", id=1).line("Stream #1(Kernel)", id=1)
    for i in range(8):
        python.event("train", 3_000 * i, 2_900, step_num=i, _r=1)
        stream.event("gemm", 3_000 * i + 100, 2_500)
    table = steps_of(space).table
    assert set(table["device"]) == {"/device:GPU:0"}
    assert np.allclose(table["device_compute_ms"], 2.5)


def test_a_step_whose_kernels_are_not_in_the_capture_enters_no_average():
    gpu = Gpu()
    for i in range(8):
        gpu.step(i, 1_000 * i, 990)
        if i < 6:
            gpu.kernel("gemm", 1_000 * i + 50, 100 + 1_000 * i, 800)
    steps = steps_of(gpu.space)
    assert [("host_only" in flags) for flags in steps.table["flags"]] == [False] * 6 + [True] * 2
    assert not steps.averaged[6:].any()
    assert "without work on a device" in steps.notes[0]


@pytest.mark.parametrize("marks", ["train", ""])
def test_examples_per_second_count_the_time_between_marks(marks):
    gpu = Gpu()
    for i in range(10):
        gpu.step(i, 5_000 * i, 3_900, mark=bool(marks))
        gpu.kernel("gemm", 5_000 * i + 50, 5_000 * i + 100, 3_000)
        gpu.space.plane("/host:CPU").line("tf_data", id=7).event("Iterator::Batch", 5_000 * i + 10, 5, batch_size=64)
    trace = Trace(read(gpu.space.bytes()))
    assert examples_per_s(trace, find_steps(trace)) == pytest.approx(64 / 0.005)


def test_a_call_that_ran_nothing_on_the_device_is_no_other_device():
    """Keras 3 calls once more at the end of each epoch, to be told that there is no batch left."""
    gpu = Gpu()
    for i in range(9):
        gpu.step(i, 3_000 * i, 2_900 if i < 8 else 300, mark=False)
        if i < 8:
            gpu.kernel("gemm", 3_000 * i + 50, 3_000 * i + 100, 2_500)
    compared = pod([steps_of(gpu.space).table])
    assert set(compared.table["device"]) == {"/device:GPU:0"}
    assert compared.stragglers.empty


def test_waiting_beside_the_step_before_costs_nothing():
    """The host is steps ahead of its device, and waits for its input then."""
    gpu = Gpu()
    get_next = gpu.space.plane("/host:CPU").line("tf_data_iterator_get_next", id=8)
    for i in range(12):
        at = 1_000 * i
        gpu.step(i, at, 990)
        get_next.event("IteratorGetNextOp::DoCompute", at + 10, 720, id=1000 + i, iter_num=0)
        get_next.event("Iterator::Prefetch", at + 15, 700, id=7)
        gpu.kernel("gemm", at + 20, 800 + 3_000 * i, 3_000)
    trace = Trace(read(gpu.space.bytes()))
    pipelines = tf_data(trace, find_steps(trace)).pipelines
    assert pipelines["verdict"].tolist() == ["low"]
    assert pipelines["blocked_ms"].tolist() == [0]
