"""Hypothesis strategies that draw profiles: threads that nest or overlap, devices, marked steps, allocations.

Two kinds of threads are drawn. *Tidy* ones are what a profiler writes: events nest, and no two end together. *Wild* ones are lists of
spans that may overlap in part, begin or end together, or come in any order: `xprof_loses_none` tells whether XProf has them all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from .builder import Compressed, Event, Ref, Space, Text, UInt

if TYPE_CHECKING:
    from collections.abc import Callable

    from .builder import Line

OP_NAMES = (
    "dense/MatMul:MatMul", "dense/Relu:Relu", "a/b>c/d-e.f/op_1:_Fused", "7/op:Op", "XlaModule:", "jit(f)/add:add[x]", "copy_1:",
    "infeed/InfeedEnqueueTuple:InfeedEnqueueTuple", "MEMCPYHtoD",
)  # fmt: skip
ITERATOR_NAMES = (
    "Iterator::Root", "Iterator::Root::Prefetch", "Iterator::Root::Prefetch::TFRecord", "Iterator::Root::Map[0]::TextLine",
    "Iterator::Root::ParallelMapV2::FixedLengthRecord", "Iterator::Root::BatchV2",
)  # fmt: skip
OTHER_NAMES = (
    "", "plain", ":Op", "a:b:c", "ExecutorState::Process", "EagerLocalExecute: MatMul", "dé/op:Op", "<script>:alert(1)", "name:",
)  # fmt: skip
# Thread ids are hashes of 64 bits with a sign; the derived lines' ids are among them.
THREAD_IDS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3), st.just(-559038737))
ODD_VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(UInt),
    st.floats(),
    st.text(max_size=6),
    st.text(max_size=6).map(Text),
    st.text(max_size=6).map(Compressed),
    st.binary(max_size=6),
    st.integers(0, 9).map(Ref),
)


@dataclass
class Span:
    """An event to be: times in picoseconds."""

    name: str
    start_ps: int
    duration_ps: int
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def end_ps(self) -> int:
        """End, in picoseconds."""
        return self.start_ps + self.duration_ps

    def write(self, line: Line) -> None:
        """Add the event to a line."""
        event = line.event(self.name, 0, 0, self.stats)
        event.message.offset_ps = self.start_ps - line.message.timestamp_ns * 1000
        event.message.duration_ps = self.duration_ps


_ACTIONS = st.tuples(st.sampled_from(("open", "close", "leaf", "leaf")), st.integers(0, 40), st.integers(0, 30))


@st.composite
def tidy_spans(
    draw: st.DrawFn,
    names: st.SearchStrategy[str],
    *,
    start_ps: int = 0,
    end_ps: int | None = None,
    max_size: int = 25,
    in_order: bool = False,
) -> list[Span]:
    """Draw the events of one thread that nest properly, no two of which end together; now and then out of order."""
    actions = draw(st.lists(_ACTIONS, max_size=max_size))
    shuffled = not in_order and draw(st.booleans())
    unit = draw(st.sampled_from((1, 1000)))
    at, spread = 0, int(shuffled)  # in order, siblings may touch, and a child begin with its parent
    spans: list[Span] = []
    open_: list[Span] = []
    for action, gap, duration in actions:
        if action == "close":
            if open_:
                at += gap + 1
                closed = open_.pop()
                closed.duration_ps = at - closed.start_ps
            continue
        at += gap + spread
        span = Span(draw(names), at, duration if action == "leaf" else 0)
        spans.append(span)
        if action == "leaf":
            at += duration
        else:
            open_.append(span)
    while open_:
        at += 1
        closed = open_.pop()
        closed.duration_ps = at - closed.start_ps
    if end_ps is not None and at:
        unit = max(min(unit, (end_ps - start_ps - 1) // at), 0)
    spans = [Span(s.name, start_ps + unit * s.start_ps, unit * s.duration_ps) for s in spans] if unit else []
    return draw(st.permutations(spans)) if shuffled else spans


@st.composite
def wild_spans(draw: st.DrawFn, name: Callable[[int], str], max_size: int = 8) -> list[Span]:
    """Draw the events of one thread that may overlap in any way, each with a name of its own."""
    times = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=max_size))
    return [Span(name(i), 1000 * start, 1000 * duration) for i, (start, duration) in enumerate(times)]


def xprof_loses_none(spans: list[Span]) -> bool:
    """Whether XProf's event stack finds every one of a thread's events: points by time, then in the file's order.

    A begin pushes; an end pops until its own event, and what lies above is lost.
    """
    points = [
        (time, i, is_end) for i, s in enumerate(spans) for is_end, time in ((False, s.start_ps), (True, s.end_ps))
    ]
    stack: list[int] = []
    for _, i, is_end in sorted(points, key=lambda p: p[0]):
        if not is_end:
            stack.append(i)
        elif not stack or stack.pop() != i:
            return False
    return True


def new_line(draw: st.DrawFn, plane: Any, name: str, used: set[int]) -> Line:
    """Add a line with an id that no other line of the plane has; its clock begins before all events."""
    ident = draw(THREAD_IDS)
    while ident in used:
        ident = ident + 1 if ident < 2**63 - 1 else -3
    used.add(ident)
    return plane.line(name, id=ident, timestamp_ns=0)


@st.composite
def marked_steps(draw: st.DrawFn, hostname: str = "host", max_steps: int = 8, start_us: int = 0) -> Space:
    """Draw a loop of marked steps: calls, executors on other threads that may outlast their step, input, and noise."""
    space = Space(hostname)
    plane = space.plane("/host:CPU")
    used: set[int] = set()
    python, compute, get_next, noise = (
        new_line(draw, plane, name, used)
        for name in ("python", "tf_Compute/1", "tf_data_iterator_get_next/2", "tf_numa_-1_Eigen/3")
    )
    kind = draw(st.sampled_from(("train", "test", "predict", "MyStep")))
    now_ps = start_us * 1_000_000
    compute_free_ps = get_next_free_ps = 0
    inner = st.sampled_from((*OP_NAMES[:5], "plain", "EagerLocalExecute: x"))
    for step in range(draw(st.integers(0, max_steps))):
        now_ps += 1000 * draw(st.integers(1, 300))
        duration_ps = 1000 * draw(st.integers(20, 1000))
        ident = draw(st.sampled_from((1, -1))) * (draw(st.integers(2**20, 2**63 - 2**20)) + step)
        context = draw(st.integers(2**20, 2**64 - 1)) ^ step
        Span(kind, now_ps, duration_ps, {"step_num": step, "_r": 1}).write(python)
        launch_ps = now_ps + 1000
        Span("TFE_Py_Execute", launch_ps, 3000).write(python)  # XProf leaves out a step of launches alone
        Span("FunctionRun", launch_ps, 2000, {"id": ident, "_pt": 2, "_p": UInt(context)}).write(python)
        for span in draw(
            tidy_spans(inner, start_ps=launch_ps + 3000, end_ps=now_ps + duration_ps, max_size=8, in_order=True)
        ):
            span.write(python)
        if draw(st.booleans()):
            began_ps = max(launch_ps + 1000 * draw(st.integers(1, 60)), compute_free_ps)
            length_ps = 1000 * draw(st.integers(5, 900))
            stats = {"id": ident, "iter_num": 0, "_ct": 2, "_c": UInt(context)}
            Span("ExecutorState::Process", began_ps, length_ps, stats).write(compute)
            for span in draw(
                tidy_spans(inner, start_ps=began_ps + 1000, end_ps=began_ps + length_ps, max_size=8, in_order=True)
            ):
                span.write(compute)
            compute_free_ps = began_ps + length_ps + 1000
            if draw(st.booleans()):
                asked_ps = max(began_ps + 500, get_next_free_ps)
                waited_ps = 1000 * draw(st.integers(1, 400))
                Span("IteratorGetNextOp::DoCompute", asked_ps, waited_ps, {"id": ident, "iter_num": 0}).write(get_next)
                get_next_free_ps = asked_ps + waited_ps + 1000
        now_ps += duration_ps
    for span in draw(tidy_spans(inner, start_ps=start_us * 1_000_000, max_size=6)):
        span.write(noise)
    return space


@st.composite
def gpu_host(draw: st.DrawFn, hostname: str = "host", *, streams: int = 2, max_events: int = 12) -> Space:
    """Draw devices whose streams run described kernels, of ops that `OP_NAMES` has or of none, and copies."""
    space = Space(hostname)
    space.plane("/host:CPU").line("python", id=1).event("plain", 0, 1)
    capability: dict[str, Any] = {"compute_cap_major": 8, "compute_cap_minor": 0, "device_vendor": "Nvidia"}
    dimension = st.sampled_from(("1,1,1", "160,1,1", "8,8,2"))
    numbers = st.sampled_from((0, 24, 64, 255))
    kernel_names = st.sampled_from(
        ("volta_sgemm_128x64_nn", "void Kernel<float>(int, char*)", "h884gemm", "ncclKernel_AllReduce", "é")
    )
    for device in range(draw(st.integers(0, 2))):
        plane = space.plane(f"/device:GPU:{device}", id=device, stats=capability)
        for stream in range(draw(st.integers(0, streams))):
            line = plane.line(f"Stream #{stream + 1}(Kernel)", id=stream + 1)
            at_ps = 0
            for gap, duration in draw(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), max_size=max_events)):
                at_ps += 1000 * gap
                stats = {}
                op = draw(st.sampled_from((*OP_NAMES[:7], "")))
                if op:
                    stats["tf_op"] = draw(st.sampled_from((str, Text)))(op)
                if draw(st.integers(0, 5)):
                    stats["kernel_details"] = (
                        f"regs:{draw(numbers)} static_shared:{draw(numbers)} dynamic_shared:{draw(numbers)} "
                        f"grid:{draw(dimension)} block:{draw(dimension)} occ_pct:{draw(st.sampled_from(('0', '50', '37.5', '100')))}"
                    )
                    name = draw(kernel_names)
                else:
                    name = draw(st.sampled_from(("MemcpyH2D", "MemcpyD2H", "Memset")))
                Span(name, at_ps, 1000 * duration, stats).write(line)
                at_ps += 1000 * duration
    return space


@st.composite
def allocations(draw: st.DrawFn, hostname: str = "host", max_size: int = 20) -> Space:
    """Draw what allocators report: several threads, blocks from before the capture, addresses used again."""
    space = Space(hostname)
    plane = space.plane("/host:CPU")
    used: set[int] = set()
    lines = [new_line(draw, plane, f"tf_Compute/{i}", used) for i in range(draw(st.integers(1, 3)))]
    capacity = 2**34
    in_use = dict.fromkeys(("mklcpu", "GPU_0_bfc"), draw(st.integers(0, 2**20)))
    peak = dict.fromkeys(in_use, draw(st.integers(0, 2**21)))
    live: dict[tuple[str, int], tuple[int, int]] = {}
    at_ps = 0
    for free, gap, size in draw(
        st.lists(st.tuples(st.booleans(), st.integers(1, 5), st.integers(1, 2**20)), max_size=max_size)
    ):
        at_ps += 1000 * gap
        stats: dict[str, Any] = {}
        if free and live:
            name, address = draw(st.sampled_from(sorted(live)))
            requested, size = live.pop((name, address))
            in_use[name] -= size
            kind = "MemoryDeallocation"
        else:
            kind, name = "MemoryAllocation", draw(st.sampled_from(sorted(in_use)))
            address = draw(st.integers(0, 40).filter(lambda a, name=name: (name, a) not in live))
            requested = draw(st.integers(1, size))
            live[name, address] = requested, size
            in_use[name] += size
            stats = {
                "tf_op": draw(st.sampled_from(("dense/MatMul", "x"))),
                "region_type": "output",
                "data_type": 1,
                "shape": "[2]",
            }
        peak[name] = max(peak[name], in_use[name])
        stats |= {
            "allocator_name": name, "bytes_reserved": 0, "bytes_allocated": in_use[name],
            "bytes_available": capacity - in_use[name], "peak_bytes_in_use": peak[name],
            "fragmentation": draw(st.sampled_from((0, 0.25, 1.0))), "requested_bytes": requested,
            "allocation_bytes": size, "addr": 0x7F0000000000 + address, "id": draw(st.integers(-5, 5)),
        }  # fmt: skip
        Span(kind, at_ps, 0, stats).write(draw(st.sampled_from(lines)))
    return space


STAT_NAMES = (
    "step_num", "_r", "id", "parent_id", "correlation_id", "group_id", "tf_op", "kernel_details", "memcpy_details", "annotation",
    "level 0",
    "hlo_op", "hlo_module", "name", "program_id", "shape", "shapes", "batch_size", "equation", "is_func", "eager_op", "is_eager",
    "tf_function_call", "tracing_count", "step_name", "_pt", "_p", "_ct", "_c", "iter_num", "element_id", "buffer_size", "parallelism",
    "buffered_elements", "allocator_name", "bytes_allocated", "bytes_reserved", "bytes_available", "peak_bytes_in_use", "requested_bytes",
    "allocation_bytes", "addr", "fragmentation", "data_type", "index_on_host", "flops", "bytes_accessed", "self_duration_ps", "",
)  # fmt: skip
# What a stat of these names usually is; now and then it is something else.
_USUAL: dict[str, st.SearchStrategy[Any]] = {
    "tf_op": st.sampled_from(OP_NAMES),
    "annotation": st.sampled_from(("dense/MatMul:MatMul#shape=(half[2])#::x:Y", "x")),
    "hlo_op": st.sampled_from(("fusion.1", "a::b.2")),
    "kernel_details": st.sampled_from(
        (
            "regs:38 shm:0 grid:160,1,1 block:1024,1,1",
            "grid:x block:0,0,0 occ_pct:nan",
            "regs:99999999999 static_shared:1 grid:1,1,1 block:1,1,1",
        )
    ),
    "tf_function_call": st.sampled_from(("concrete", "traced-nonXla", "notTraced-nonXla")),
    "eager_op": st.sampled_from(("MatMul", "Relu", "__inference_f_1")),
    "is_func": st.integers(0, 1),
    "shape": st.sampled_from(("(half[2];float[])", "(bfloat16[1])", "")),
    "shapes": st.sampled_from(("[32,28] [32]", "[?]", "[]", "")),
    "allocator_name": st.sampled_from(("mklcpu", "GPU_0_bfc", "\0PU_0_bfc", "")),
    "step_name": st.sampled_from(("train 1", "1", "")),
    "fragmentation": st.sampled_from((0, 0.5, float("nan"))),
}
_EVENT_NAMES = (
    *OP_NAMES, *ITERATOR_NAMES, *OTHER_NAMES, "train", "Profiled batch", "FunctionRun", "EagerExecute", "EagerExecute: Mul",
    "EagerKernelExecute",
    "multi_step_on_iterator", "tf.function-graph_building", "IteratorGetNextOp::DoCompute", "MemoryAllocation", "MemoryDeallocation",
    "PrefetchProduce", "PrefetchConsume", "InstantiatedCapturedFunction::Run", "ThreadpoolListener::Record", "MemcpyH2D",
    "MemcpyD2H", "Memset",
    "CopyDeviceToHost", "ncclKernel_AllReduce", "volta_h884gemm", "MemoryFree", "0", "EagerLocalExecute: MakeIterator",
)  # fmt: skip
_PLANES = (
    "/host:CPU", "/host:CPU", "/host:CPU [1234]", "/device:GPU:0", "/device:GPU:0", "/device:GPU:1", "/device:TPU:0", "/host:metadata",
    "Task Environment", "/device:CUSTOM:x", "", "<b>",
)  # fmt: skip
_LINES = (
    "python", "python3", "tf_Compute/1", "", "Stream #1(Kernel)", "Stream #2(MemcpyH2D)", "Steps", "TensorFlow Ops",
    "Framework Ops", "XLA Ops",
    "XLA Modules", "CUPTI overhead", "_counters_",
)  # fmt: skip


@st.composite
def anything(draw: st.DrawFn, hostname: str | None = None) -> Space:
    """Draw any profile at all: planes, lines, events and stats that mean something, in combinations that need not."""
    space = Space(draw(st.sampled_from(("host", "other", ""))) if hostname is None else hostname)
    small = st.integers(0, 5)
    for _ in range(draw(st.integers(1, 4))):
        plane = space.plane(
            draw(st.sampled_from(_PLANES)),
            id=draw(small),
            stats=draw(st.dictionaries(st.sampled_from(("compute_cap_major", "device_vendor", "gpu_device_name", "core_count",
            "memory_size",
                                                        "profile_start_time", "profile_stop_time")), ODD_VALUES, max_size=3)),
        )  # fmt: skip
        for _ in range(draw(st.integers(0, 3))):
            timestamp_ns = draw(st.sampled_from((0, 0, 18_818, 1_700_000_000_000_000_000, -5)))
            line = plane.line(draw(st.sampled_from(_LINES)), id=draw(THREAD_IDS), timestamp_ns=timestamp_ns)
            for _ in range(draw(st.integers(0, 8))):
                stats = {}
                for name in draw(st.lists(st.sampled_from(STAT_NAMES), max_size=4, unique=True)):
                    stats[name] = draw(ODD_VALUES if draw(st.integers(0, 4)) == 0 else _USUAL.get(name, small))
                name = draw(st.sampled_from(_EVENT_NAMES))
                if draw(st.integers(0, 30)) == 0:
                    line.aggregate(name, draw(small), draw(small), **stats)
                    continue
                message = line.message.events.add(
                    metadata_id=plane.event_type(name),
                    offset_ps=1000 * draw(st.integers(-5, 40)),
                    duration_ps=1000 * draw(st.sampled_from((0, 1, 5, 10, 20, 60))),
                )
                Event(line, message).stats(**stats)
    return space
