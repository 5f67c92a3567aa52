"""Keras 3's ``model.fit`` on a CPU, as TensorFlow 2.16 and later record it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .builder import Space
from .memory import Allocator
from .thread import Thread

if TYPE_CHECKING:
    from .builder import Plane

EPOCH_NS = 1_700_000_000_000_000_000
TRAIN_FUNCTION = "__inference_multi_step_on_iterator_1435"
TEST_FUNCTION = "__inference_multi_step_on_iterator_2210"

_MODEL = "StatefulPartitionedCall/sequential_1"
_TAPE = "StatefulPartitionedCall/gradient_tape/sequential_1"
# (op name, op type, µs, bytes allocated, the shape, the name that the allocation gives if it differs)
_FORWARD: list[tuple[str, str, float, int, str, str]] = [
    (f"{_MODEL}/conv2d_1/Relu", "_MklNativeFusedConv2D", 380, 2_768_896, "[64,26,26,16]", ""),
    # The layout pass renames the op, but the allocation still has the first name: an op that never ran.
    (
        f"{_MODEL}/max_pooling2d_1/MaxPool2d", "_MklNativeMaxPool", 610, 692_224, "[64,13,13,16]",
        f"{_MODEL}/max_pooling2d_1/MaxPool",
    ),
    (f"{_MODEL}/flatten_1/Reshape", "Reshape", 2, 0, "", ""),
    (f"{_MODEL}/dense_1/Relu", "_MklNativeFusedMatMul", 430, 16_384, "[64,64]", ""),
    (f"{_MODEL}/dense_1_2/BiasAdd", "_MklNativeFusedMatMul", 13, 2_560, "[64,10]", ""),
    ("StatefulPartitionedCall/compile_loss/SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", 12, 0, "", ""),
]  # fmt: skip
_BACKWARD: list[tuple[str, str, float, int, str, str]] = [
    (f"{_TAPE}/dense_1_2/MatMul/MatMul_1", "_MklMatMul", 14, 2_560, "[64,10]", ""),
    (f"{_TAPE}/dense_1/MatMul/MatMul", "_MklMatMul", 240, 692_224, "[2704,64]", ""),
    (f"{_TAPE}/max_pooling2d_1/MaxPool2d/MaxPoolGrad", "_MklNativeMaxPoolGrad", 330, 2_768_896, "[64,26,26,16]", ""),
    (
        f"{_TAPE}/conv2d_1/convolution/Conv2DBackpropFilter",
        "_MklNativeConv2DBackpropFilter",
        410,
        640,
        "[3,3,1,16]",
        "",
    ),
]
_DATASET_TYPES = {"shapes": "[?,28,28,1] [?]", "types": "float int64"}


@dataclass
class _Fit:
    """State of a run while it is generated."""

    python: Thread
    compute: list[Thread]
    eigen: list[Thread]
    get_next: Thread
    prefetch: Thread
    produce: Thread
    pool: list[Thread]
    heap: Allocator
    random: np.random.Generator
    bookkeeping: bool
    slow_input_us: float
    variables: int
    elements: int
    first_count: int
    region: int = 0

    def new_id(self) -> int:
        """Return a step id: 63 random bits and a sign."""
        return int(self.random.integers(-(2**63), 2**63 - 1))

    def context(self) -> int:
        """Return a producer's context id: 64 random bits, so sometimes too large for an int64."""
        return int(self.random.integers(0, 2**64 - 1, dtype=np.uint64))

    def record(self, thread: Thread) -> int:
        """Hand work to a pool; return the region's number."""
        self.region += 1
        if self.bookkeeping:
            thread.instant("ThreadpoolListener::Record", _pt=15, _p=self.region)
        return self.region

    def begin(self, thread: Thread, region: int) -> None:
        """Start a pool's work on a thread."""
        if self.bookkeeping:
            thread.instant("ThreadpoolListener::StartRegion", _ct=15, _c=region)
            thread.wait(150)

    def end(self, thread: Thread) -> None:
        """End a pool's work on a thread."""
        thread.wait(150)
        if self.bookkeeping:
            thread.instant("ThreadpoolListener::StopRegion")


def cpu_fit_capture(
    epochs: int = 2,
    batches: int = 16,
    *,
    seed: int = 0,
    hostname: str = "worker-0",
    validation_batches: int = 0,
    marks: str = "",
    traced_first: bool = False,
    slow_input_us: float = 0,
    variables: int = 6,
    elements: int = 16,
    bookkeeping: bool = True,
    allocations: bool = True,
) -> Space:
    """Generate the profile of a ``fit``.

    Parameters
    ----------
    epochs, batches : int
        Epochs, and training batches in each: ``epochs * batches`` training steps.
    seed : int
        The same seed gives the same bytes.
    hostname : str
        The host's name; none if empty.
    validation_batches : int
        Batches evaluated after each epoch, by the same Python function and another graph.
    marks : str
        Name of an explicit mark around every batch (``train``: as Keras 2 has them, with ``step_num`` and ``_r``).
    traced_first : bool
        Whether the first training call traces the function (80 ms of graph building).
    slow_input_us : float
        How long each batch additionally waits for its input.
    variables : int
        Variables that the optimizer updates: seven small ops each.
    elements : int
        Dataset elements mapped for each batch.
    bookkeeping, allocations : bool
        Whether thread-pool bookkeeping and memory events are recorded (about half of a real capture's events).

    Returns
    -------
    Space
        About ``100 + 11 * variables + 13 * elements`` events a batch.
    """
    random = np.random.default_rng(seed)
    space = Space(hostname)
    plane = space.plane("/host:CPU")
    run = _threads(plane, random, bookkeeping, slow_input_us, variables, elements, 1 if traced_first else 2)
    if not allocations:
        run.heap.allocate = lambda *_, **__: 0  # type: ignore[method-assign]
        run.heap.release = lambda *_, **__: None  # type: ignore[method-assign]
    step = 0
    for epoch in range(epochs):
        iterator = _start_epoch(run, epoch)
        for batch in range(batches):
            tracing = traced_first and step == 0
            _batch(run, iterator, step, marks, tracing)
            step += 1
            if batch == batches - 1:
                _end_of_data(run)
        if validation_batches:
            iterator = _start_epoch(run, epoch)
            for batch in range(validation_batches):
                _batch(run, iterator, batch, marks and "test", tracing=False, training=False)
            _end_of_data(run)
    stop_ns = max(t.now_ns for t in [run.python, *run.compute, *run.pool, run.produce]) + 100_000
    space.plane(
        "Task Environment",
        stats={
            "profile_start_time": EPOCH_NS,
            "profile_stop_time": EPOCH_NS + stop_ns,
            "profile_options": b"\x08\x01\x10\x02\x18\x01(\x018\x01",
        },
    )
    plane.display_ops()
    return space


def _threads(
    plane: Plane,
    random: np.random.Generator,
    bookkeeping: bool,
    slow_input_us: float,
    variables: int,
    elements: int,
    first_count: int,
) -> _Fit:
    def thread(name: str) -> Thread:
        ident = int(random.integers(-(2**62), 2**62))
        label = name if name == "python" else f"{name}/{ident}"
        return Thread(plane.line(label, id=ident, timestamp_ns=18_818), random, now_ns=200_000)

    return _Fit(
        python=thread("python"),
        compute=[thread("tf_Compute"), thread("tf_Compute")],
        eigen=[thread("tf_numa_-1_Eigen"), thread("tf_numa_-1_Eigen")],
        get_next=thread("tf_data_iterator_get_next"),
        prefetch=thread("tf_data_iterator_resource"),
        produce=thread("tf_data_iterator_resource"),
        pool=[thread("tf_data_private_threadpool"), thread("tf_data_private_threadpool")],
        heap=Allocator("mklcpu", 25_278_201_856, in_use_bytes=2_076_672, peak_bytes=16_777_216),
        random=random,
        bookkeeping=bookkeeping,
        slow_input_us=slow_input_us,
        variables=variables,
        elements=elements,
        first_count=first_count,
    )


def _eager(run: _Fit, op: str, us: float) -> None:
    """Write one op that Keras runs eagerly on the Python thread."""
    thread = run.python
    with thread.span("TFE_Py_FastPathExecute_C"):
        thread.wait(8_000)
        with thread.span("EagerExecute", eager_op=op, is_func=0):
            thread.wait(200)
            with thread.span(f"EagerLocalExecute: {op}"):
                thread.wait(3_000).leaf("EagerCopyToDevice", 300)
                with thread.wait(200).span("EagerKernelExecute"), thread.wait(100).span("KernelAndDeviceFunc::Run"):
                    thread.wait(us * 1000)
    thread.wait(5_000).leaf("TFE_DeleteTensorHandle", 300)


def _start_epoch(run: _Fit, epoch: int) -> dict[str, int]:
    """Make an iterator: ids of its stages."""
    with (
        run.python.wait(400_000).span("TFE_Py_FastPathExecute_C"),
        run.python.wait(5_000).span("EagerExecute", eager_op="MakeIterator", is_func=0),
        run.python.wait(1_000).span("EagerLocalExecute: MakeIterator"),
    ):
        for stage in ("Prefetch", "ParallelMapV2", "Shuffle", "TensorSlice")[: 4 if epoch == 0 else 3]:
            run.python.leaf(f"MakeIterator::{stage}Dataset", 40_000)
    run.python.wait(100_000)
    return {
        name: int(run.random.integers(2**62, 2**64 - 1, dtype=np.uint64))
        for name in ("root", "prefetch", "batch", "shuffle", "slice")
    }


def _end_of_data(run: _Fit) -> None:
    """Ask for one batch too many."""
    _eager(run, "OptionalHasValue", 12)


def _batch(run: _Fit, ids: dict[str, int], step: int, mark: str, tracing: bool, training: bool = True) -> None:
    python = run.python
    _eager(run, "OptionalHasValue", 12)
    _eager(run, "OptionalGetValue", 4)
    python.wait(40_000)
    if mark:
        with python.span(mark, step_num=step, _r=1):
            _call(run, ids, tracing, training)
    else:
        _call(run, ids, tracing, training)


def _call(run: _Fit, ids: dict[str, int], tracing: bool, training: bool) -> None:
    python = run.python
    function = TRAIN_FUNCTION if training else TEST_FUNCTION
    step_id, context = run.new_id(), run.context()
    kind = "traced-nonXla" if tracing else "notTraced-nonXla"
    with python.span("multi_step_on_iterator", tf_function_call=kind, tracing_count=run.first_count):
        if tracing:
            with python.wait(500_000).span("tf.function-graph_building"):
                python.wait(80_000_000)
        with (
            python.wait(200_000).span("TFE_Py_ExecuteCancelable"),
            python.wait(15_000).span("EagerExecute", eager_op=function, is_func=1),
            python.wait(500).span(f"EagerLocalExecute: {function}"),
        ):
            python.wait(700).leaf("EagerCopyToDevice", 12_000)
            python.wait(2_000).leaf("ValidateInputTypeAndPlacement", 700)
            with python.wait(300).span("EagerKernelExecute"), python.wait(500).span("KernelAndDeviceFunc::Run"):
                with python.wait(11_000).span("FunctionRun", id=step_id, _r=1, _pt=2, _p=context):
                    region = run.record(python.wait(2_700))
                    python.wait(15_000)
                finished = _execute(run, ids, step_id, context, region, training)
                python.wait_until(finished).wait(20_000)


def _execute(run: _Fit, ids: dict[str, int], step_id: int, context: int, region: int, training: bool) -> int:
    """Run the graph on the inter-op pool; return when it ended."""
    launched_ns = run.python.now_ns
    first, second = run.compute
    process: dict[str, Any] = {"id": step_id, "iter_num": 0, "_ct": 2, "_c": context}

    # The root region reads variables and hands the first of them to the other thread.
    first.wait_until(launched_ns).wait(12_000)
    run.begin(first, region)
    with first.span("ExecutorState::Process", process):
        others = [run.record(first.wait(1_500)) for _ in range(3)]
        for number in range(run.variables):
            first.wait(300).leaf(f"StatefulPartitionedCall/Add_{number}/ReadVariableOp:ReadVariableOp", 200)
    run.end(first)
    second.wait_until(first.now_ns)
    for number, other in enumerate(others):
        run.begin(second.wait(2_000), other)
        with second.span("ExecutorState::Process", process):
            second.wait(300).leaf(f"{_MODEL}/layer_{number}/ReadVariableOp:ReadVariableOp", 200)
        run.end(second)

    input_ns = _next_batch(run, ids, step_id, first.now_ns)
    work = run.record(run.get_next)
    first.wait_until(input_ns).wait(10_000)
    run.begin(first, work)
    with first.span("ExecutorState::Process", process):
        held = [_op(run, first, op, step_id) for op in _FORWARD + (_BACKWARD if training else [])]
        for number in range(run.variables if training else 0):
            scope = "StatefulPartitionedCall/adam"
            for op, kind in (("Sub", "Sub"), ("Mul", "Mul"), ("AssignAddVariableOp", "AssignAddVariableOp"), ("Square", "Square"),
                             ("Sqrt", "Sqrt"), ("truediv", "RealDiv"), ("AssignSubVariableOp", "AssignSubVariableOp")):  # fmt: skip
                first.wait(400).leaf(f"{scope}/{op}_{number}:{kind}", 900)
        for address in held:
            if address:
                run.heap.release(first.wait(300), address)
    run.end(first)
    last = run.record(first)
    run.begin(second.wait_until(first.now_ns).wait(3_000), last)
    second.leaf("ExecutorDoneCallback", 5_000, id=step_id, _ct=2, _c=context)
    run.end(second)
    return second.now_ns


def _op(run: _Fit, thread: Thread, op: tuple[str, str, float, int, str, str], step_id: int) -> int:
    name, kind, us, size, shape, allocated_as = op
    address = 0
    with thread.wait(500).span(f"{name}:{kind}"):
        if size:
            address = run.heap.allocate(thread.wait(3_000), size, allocated_as or name, step_id, shape)
        if us > 100:  # large ops share their work with the intra-op pool
            started = thread.now_ns
            for helper in run.eigen:
                region = run.record(thread.wait(1_000))
                helper.wait_until(started).wait(30_000)
                run.begin(helper, region)
                helper.wait(us * 600)
                run.end(helper)
        thread.wait(us * 1000)
    return address


def _next_batch(run: _Fit, ids: dict[str, int], step_id: int, asked_ns: int) -> int:
    """Take one batch from the prefetch buffer, and have the next one made; return when it was there."""
    element = EPOCH_NS + asked_ns
    get_next = run.get_next.wait_until(asked_ns).wait(5_000)
    with get_next.span("IteratorGetNextOp::DoCompute", id=step_id, iter_num=0, element_size=201_216):
        with get_next.wait(9_000).span(
            "Iterator::Root", _DATASET_TYPES, name="PrefetchDataset:4", id=ids["root"], algorithm="DEFAULT", cpu_budget=2,
            intra_op_parallelism=1, threadpool_size=2, warm_start="false", ram_budget_megabytes=11_308,
        ), get_next.wait(1_500).span(
            "Iterator::Root::Prefetch", _DATASET_TYPES, name="PrefetchDataset:3", id=ids["prefetch"], parent_id=ids["root"],
            buffer_limit=2, buffered_elements=0 if run.slow_input_us else 2, autotune="true",
        ):  # fmt: skip
            if run.slow_input_us:
                get_next.wait(run.slow_input_us * 1000)
            get_next.wait(3_000).leaf("PrefetchConsume", 400, element_id=element)
            get_next.wait(2_000)
        get_next.wait(6_000)
    taken = get_next.now_ns
    with run.prefetch.wait_until(taken).span("PrefetchProduce", element_id=element + 1):
        run.prefetch.wait(2_000)
        with run.prefetch.span(
            "Iterator::Root::Prefetch::MapAndBatch", _DATASET_TYPES, name="fused(ParallelMapDatasetV2:2,BatchDatasetV2:3)",
            id=ids["batch"], parent_id=ids["prefetch"], autotune="true", batch_size=64, parallelism=2, buffered_elements=1,
        ):  # fmt: skip
            run.prefetch.wait(run.slow_input_us * 800 + 2_000).leaf("MapAndBatchConsume", 400, element_id=element + 2)
            run.prefetch.wait(500)
    produce = run.produce.wait_until(taken).wait(10_000)
    with produce.span("MapAndBatchProduce", element_id=element + 2):
        for number in range(run.elements):
            with produce.wait(500).span(
                "Iterator::Root::Prefetch::MapAndBatch::Shuffle", name="ShuffleDataset:1", shapes="[28,28,1] []",
                types="float int64", id=ids["shuffle"], parent_id=ids["batch"], buffer_size=1024,
            ):  # fmt: skip
                produce.wait(600).leaf(
                    "Iterator::Root::Prefetch::MapAndBatch::Shuffle::TensorSlice", 450, name="TensorSliceDataset:0",
                    shapes="[28,28,1] []", types="float int64", id=ids["slice"], parent_id=ids["shuffle"],
                )  # fmt: skip
            function_id, context = run.new_id(), run.context()
            with (
                produce.wait(300).span("InstantiatedCapturedFunction::RunAsync", id=function_id),
                produce.wait(800).span("FunctionRun", id=function_id, _r=1, _pt=2, _p=context),
            ):
                region = run.record(produce.wait(900))
                produce.wait(1_500)
            worker = run.pool[number % len(run.pool)].wait_until(produce.now_ns)
            run.begin(worker.wait(2_000), region)
            with worker.span("ExecutorState::Process", id=function_id, iter_num=0, _ct=2, _c=context):
                worker.wait(300).leaf("truediv:RealDiv", 13_000 + run.slow_input_us * 20)
            run.end(worker)
    return taken
