"""Training on GPUs: host threads that launch, streams that run, in the dialects of several collectors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .builder import Space, Text
from .cpu import EPOCH_NS
from .memory import Allocator
from .thread import Thread

if TYPE_CHECKING:
    from .builder import Line, Plane

# Ids of the lines that TensorFlow derives: 0xDEADBEEF as an int32, and on.
_STEPS, _NAME_SCOPE, _OPS = -559038737, -559038735, -559038734


class Kernel(NamedTuple):
    """One kernel of the model: the op that launches it, and what its profiler says of it."""

    op: str
    type: str
    name: str
    us: float
    registers: int
    shared_bytes: int
    grid: str
    block: str
    shape: str
    output_bytes: int = 0
    temporary_bytes: int = 0


_CONV = "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_h16816fprop_optimized_128x128_32x5_nhwc_align8>(Params)"
_GEMM = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn"
_BIAS = "void tensorflow::BiasNHWCKernel<Eigen::half>(int, Eigen::half const*, Eigen::half const*, Eigen::half*, int)"
_RELU = "void Eigen::internal::EigenMetaKernel<TensorCwiseUnaryOp<scalar_max_op<float>, Eigen::GpuDevice>, int>(int)"
_MODEL: list[Kernel] = [
    Kernel("model/conv2d/Conv2D", "Conv2D", _CONV, 310, 128, 49_152, "64,8,1", "128,1,1",
           "(half[64,224,224,3];half[7,7,3,64])", 102_760_448, 33_554_432),
    Kernel("model/conv2d/BiasAdd", "BiasAdd", _BIAS, 62, 20, 0, "640,1,1", "1024,1,1", "(half[64,112,112,64];half[64])"),
    Kernel("model/re_lu/Relu", "Relu", _RELU, 55, 16, 0, "640,1,1", "1024,1,1", "(half[64,112,112,64])"),
    Kernel("model/dense/MatMul", "MatMul", _GEMM, 140, 96, 32_768, "16,4,1", "256,1,1", "(half[64,2048];half[2048,1000])", 131_072),
    Kernel("model/dense/BiasAdd", "BiasAdd", _BIAS, 4, 20, 0, "4,1,1", "1024,1,1", "(half[64,1000];half[1000])"),
    Kernel("loss/SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
           "void tensorflow::SoftmaxXentKernel<float, int>(float const*, int*)", 9, 32, 2_048, "64,1,1", "256,1,1",
           "(float[64,1000])", 256_000),
    Kernel("gradient_tape/model/dense/MatMul/MatMul_1", "MatMul", _GEMM.replace("_nn", "_tn"), 150, 96, 32_768, "32,4,1", "256,1,1",
           "(half[2048,64];half[64,1000])", 4_096_000),
    Kernel("gradient_tape/model/re_lu/ReluGrad", "ReluGrad", _RELU.replace("scalar_max_op", "relu_grad_op"), 70, 18, 0,
           "640,1,1", "1024,1,1",
           "(half[64,112,112,64];half[64,112,112,64])"),
    Kernel("gradient_tape/model/conv2d/Conv2D/Conv2DBackpropFilter", "Conv2DBackpropFilter",
           "sm80_xmma_wgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x64x32", 420, 168, 65_536, "7,7,16", "256,1,1",
           "(half[64,224,224,3];int32[4];half[64,112,112,64])", 37_632, 67_108_864),
]  # fmt: skip
_OPTIMIZER = Kernel("SGD/update/ResourceApplyMomentum", "ResourceApplyKerasMomentum",
                    "void tensorflow::functor::ApplyKerasMomentumKernel<float>(GpuLaunchConfig)", 6, 24, 0, "16,1,1",
                    "256,1,1", "(float[])")  # fmt: skip

_A100 = {
    "clock_rate": 1_410_000, "core_count": 108, "memory_bandwidth": 1_555_000_000_000, "memory_size": 42_505_273_344,
    "compute_cap_major": 8, "compute_cap_minor": 0,
}  # fmt: skip
_V100 = {
    "clock_rate": 1_530_000, "core_count": 80, "memory_bandwidth": 898_048_000_000, "memory_size": 16_945_512_448,
    "compute_cap_major": 7, "compute_cap_minor": 0,
}  # fmt: skip
_MI300 = {
    "clock_rate": 2_100_000, "core_count": 304, "memory_bandwidth": 5_300_000_000_000, "memory_size": 206_141_652_992,
    "compute_cap_major": 9, "compute_cap_minor": 4, "device_vendor": "AMD",
}  # fmt: skip
_CAPABILITIES = {
    "current": {**_A100, "device_vendor": "Nvidia", "gpu_device_name": "NVIDIA A100-SXM4-40GB"},
    "old": _V100,
    "amd": {**_MI300, "gpu_device_name": "AMD Instinct MI300X"},
}


@dataclass
class _Device:
    """A device while it is generated: its streams, and what ran in each step."""

    index: int
    plane: Plane
    compute: Thread
    to_device: Thread
    to_host: Thread
    collective: Thread | None
    launcher: Thread
    memory: Allocator
    ran: list[tuple[int, int, str, int]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)


@dataclass
class _Run:
    """What the whole capture shares."""

    dialect: str
    attribution: str
    grouped: bool
    xla: bool
    allocations: bool
    random: np.random.Generator
    correlation: int = 0

    def group(self, step: int) -> dict[str, Any]:
        return {"group_id": step} if self.grouped else {}


def gpu_capture(
    devices: int = 1,
    steps: int = 8,
    *,
    dialect: str = "current",
    seed: int = 0,
    hostname: str = "worker-0",
    attribution: str = "",
    grouped: bool | None = None,
    marks: str = "train",
    layers: int = 1,
    input_us: float = 0,
    launch_us: float = 9,
    skew_us: float = 0,
    xla: bool = False,
    allocations: bool = True,
) -> Space:
    """Generate the profile of a training loop on one host's GPUs.

    Parameters
    ----------
    devices, steps : int
        GPUs of the host, and training steps.
    dialect : {'current', 'old', 'amd'}
        How kernels and copies are described: today's CUPTI collector, TensorFlow 2.4's, or ROCm's.
    seed : int
        The same seed gives the same bytes.
    hostname : str
        The host's name; none if empty.
    attribution : {'', 'tf_op', 'annotation', 'line', 'none'}
        What says the op of a kernel: its ``tf_op``, its ``annotation`` and ``level 0``, only the stored ``TensorFlow Ops``
        line (of a grouped file), or nothing. By default what the dialect has.
    grouped : bool, optional
        Whether TensorFlow has grouped the events already: ``group_id`` everywhere, and the lines ``Steps``,
        ``TensorFlow Ops`` and ``TensorFlow Name Scope``. By default only in the old dialect.
    marks : str
        Name of the mark around every step; none if empty (then only the function calls tell the steps).
    layers : int
        How many times the model's kernels are repeated: about ``9 * layers + 4`` kernels a step and device.
    input_us : float
        How long every step waits for its input.
    launch_us : float
        How long a launch takes on the host; large values make a run launch-bound.
    skew_us : float
        Added to all times: the host's clock and start against others'.
    xla : bool
        Whether kernels come from XLA: ``tf_op`` then names only the module, the op is in ``name`` and ``hlo_op``.
    allocations : bool
        Whether memory events are recorded.

    Returns
    -------
    Space
    """
    random = np.random.default_rng(seed)
    grouped = dialect == "old" if grouped is None else grouped
    attribution = attribution or ("annotation" if dialect == "old" else "tf_op")
    run = _Run(dialect, attribution, grouped, xla, allocations, random)
    space = Space(hostname)
    start_ns = 500_000 + round(skew_us * 1000)
    host = space.plane("/host:CPU")
    python = Thread(host.line("python3", id=1_630_881_670, timestamp_ns=237_916), random, start_ns)
    get_next = Thread(
        host.line("tf_data_iterator_get_next_as_optional/996270379", id=996_270_379, timestamp_ns=237_916),
        random,
        start_ns,
    )
    gpus = [_device(space, host, run, index, devices > 1, start_ns) for index in range(devices)]
    for step in range(steps):
        _step(run, python, get_next, gpus, step, marks, layers, input_us, launch_us)
    if grouped:
        for gpu in gpus:
            _derived_lines(gpu, steps, marks)
    host.display_ops()
    if dialect != "old":
        end_ns = max([python.now_ns, *(gpu.to_host.now_ns for gpu in gpus)])
        space.plane(
            "Task Environment",
            stats={"profile_start_time": EPOCH_NS, "profile_stop_time": EPOCH_NS + end_ns + 1_000_000},
        )
    return space


def pod_captures(
    hosts: int = 2, devices: int = 2, steps: int = 8, *, slow_host: int = -1, seed: int = 0, **more: Any
) -> list[Space]:
    """Generate one profile a host, whose clocks differ by milliseconds; one host may be a straggler.

    Parameters
    ----------
    hosts, devices, steps : int
        Hosts, GPUs of each, and steps.
    slow_host : int
        The host whose input takes 4 ms longer; none by default.
    seed : int
        Of the first host.
    **more
        As for `gpu_capture`.
    """
    return [
        gpu_capture(
            devices, steps, seed=seed + index, hostname=f"worker-{index}", skew_us=1_700.0 * index,
            input_us=4_000 if index == slow_host else 0, **more,
        )
        for index in range(hosts)
    ]  # fmt: skip


def _device(space: Space, host: Plane, run: _Run, index: int, several: bool, start_ns: int) -> _Device:
    old = run.dialect == "old"
    plane = space.plane(f"/device:GPU:{index}", id=index, stats=_CAPABILITIES[run.dialect])

    def stream(number: int, kinds: str) -> Thread:
        line: Line = plane.line(
            f"Stream #{number}({kinds})", id=number, timestamp_ns=245_747, display_id=0 if old else number
        )
        return Thread(line, run.random, start_ns)

    ident = 1_105_654_971 + 7 * index
    return _Device(
        index=index,
        plane=plane,
        compute=stream(13, "Compute" if old else "Kernel,Memset"),
        to_device=stream(14, "MemcpyH2D"),
        to_host=stream(15, "MemcpyD2H"),
        collective=stream(20, "Compute" if old else "Kernel") if several else None,
        launcher=Thread(host.line(f"tf_Compute/{ident}", id=ident, timestamp_ns=237_916), run.random, start_ns),
        memory=Allocator(f"GPU_{index}_bfc", 15_000_000_000, in_use_bytes=268_435_456, peak_bytes=2_147_483_648),
    )


def _step(
    run: _Run,
    python: Thread,
    get_next: Thread,
    gpus: list[_Device],
    step: int,
    marks: str,
    layers: int,
    input_us: float,
    launch_us: float,
) -> None:
    step_id = int(run.random.integers(-(2**63), 2**63 - 1))
    context = int(run.random.integers(0, 2**64 - 1, dtype=np.uint64))
    group = run.group(step)
    kind = 1 if run.dialect == "old" else 2
    eager: dict[str, Any] = (
        {} if run.dialect == "old" else {"eager_op": "__inference_train_function_1047", "is_func": 1}
    )
    with python.wait(150_000).span(marks or "train_step", group, **({"step_num": step, "_r": 1} if marks else {})):
        with (
            python.wait(20_000).span("train_function", group, tf_function_call="notTraced-nonXla", tracing_count=2),
            python.wait(80_000).span(
                "EagerExecute" if eager else "EagerExecute: __inference_train_function_1047", {**group, **eager}
            ),
            python.wait(3_000).span("EagerKernelExecute", group),
        ):
            python.wait(5_000).leaf("FunctionRun", 20_000, group, id=step_id, _r=1, _pt=kind, _p=context)
            asked = python.now_ns
            input_ns = _input(get_next.wait_until(asked), step_id, input_us, group)
            for gpu in gpus:
                process = {"id": step_id, "iter_num": 0, "_ct": kind, "_c": context, **group}
                gpu.launcher.wait_until(input_ns).wait(15_000)
                with gpu.launcher.span("ExecutorState::Process", process):
                    _launch_model(run, gpu, step, step_id, layers, launch_us)
            if len(gpus) > 1:
                _all_reduce(run, gpus, step, launch_us)
            for gpu in gpus:
                _finish(run, gpu, step, step_id, launch_us)
            # The call returns when all is launched, long before all has run.
            python.wait_until(max(gpu.launcher.now_ns for gpu in gpus)).wait(30_000)
        # The loop reads the loss, so it waits for the devices in the end.
        python.wait_until(max(gpu.to_host.now_ns for gpu in gpus)).wait(40_000)


def _input(get_next: Thread, step_id: int, input_us: float, group: dict[str, Any]) -> int:
    with get_next.wait(5_000).span("IteratorGetNextAsOptionalOp::DoCompute", group, id=step_id, iter_num=0):
        with get_next.wait(5_000).span("Iterator::Prefetch", group, id=7_001):
            get_next.wait(input_us * 1000 + 10_000).leaf("PrefetchConsume", 500, group, element_id=get_next.now_ns)
            get_next.wait(1_000)
        get_next.wait(3_000)
    return get_next.now_ns


def _launch_model(run: _Run, gpu: _Device, step: int, step_id: int, layers: int, launch_us: float) -> None:
    group, host = run.group(step), gpu.launcher
    size = 64 * 224 * 224 * 3 * 2
    with host.wait(2_000).span("IteratorGetNext/_3:_Send", group):
        if run.allocations:
            gpu.held.append(
                gpu.memory.allocate(host, size, "SameWorkerRecvDone", 0, "[64,224,224,3]", 19, "dynamic", **group)
            )
        _copy(run, gpu, gpu.to_device, "MemcpyH2D", size, "IteratorGetNext/_3:_Send", step, launch_us)
    gpu.compute.wait_until(gpu.to_device.now_ns)
    for layer in range(layers):
        for kernel in _MODEL:
            named = kernel if layer == 0 else kernel._replace(op=kernel.op.replace("model/", f"model/block_{layer}/"))
            with host.wait(1_500).span(f"{named.op}:{named.type}", group, **({"is_eager": 0} if run.grouped else {})):
                temporary = 0
                if run.allocations and named.output_bytes:
                    gpu.held.append(
                        gpu.memory.allocate(
                            host.wait(800), named.output_bytes, named.op, step_id, "[64,112,112,64]", 19, **group
                        )
                    )
                if run.allocations and named.temporary_bytes:
                    temporary = gpu.memory.allocate(
                        host.wait(500), named.temporary_bytes, named.op, step_id, "[]", 4, "temp", **group
                    )
                if named.type == "SparseSoftmaxCrossEntropyWithLogits":
                    _memset(run, gpu, named, step, launch_us)
                _launch(run, gpu, gpu.compute, named, step, launch_us)
                if temporary:
                    gpu.memory.release(host.wait(300), temporary, **group)


def _all_reduce(run: _Run, gpus: list[_Device], step: int, launch_us: float) -> None:
    """Sum the gradients: a kernel on every device, all at once."""
    ready = max(gpu.compute.now_ns for gpu in gpus) + 5_000
    op = Kernel(
        "CollectiveReduceV2",
        "CollectiveReduceV2",
        "ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)",
        180,
        96,
        1_024,
        "4,1,1",
        "512,1,1",
        "(half[1000])",
    )
    for gpu in gpus:
        assert gpu.collective is not None
        gpu.collective.wait_until(ready)
        with gpu.launcher.wait(2_000).span(f"{op.op}:{op.type}", run.group(step)):
            _launch(run, gpu, gpu.collective, op, step, launch_us)
    end = max(gpu.collective.now_ns for gpu in gpus if gpu.collective)
    for gpu in gpus:
        gpu.compute.wait_until(end)


def _finish(run: _Run, gpu: _Device, step: int, step_id: int, launch_us: float) -> None:
    group, host = run.group(step), gpu.launcher
    for number in range(4):
        update = _OPTIMIZER._replace(op=f"{_OPTIMIZER.op}_{number}")
        with host.wait(1_500).span(f"{update.op}:{update.type}", group):
            _launch(run, gpu, gpu.compute, update, step, launch_us)
    while gpu.held:
        gpu.memory.release(host.wait(400), gpu.held.pop(), **group)
    gpu.to_host.wait_until(gpu.compute.now_ns)
    with host.wait(2_000).span("Identity/_40:_Recv", group):
        _copy(run, gpu, gpu.to_host, "MemcpyD2H", 4, "Identity/_40:_Recv", step, launch_us)
    host.leaf("ExecutorDoneCallback", 4_000, group, id=step_id)


def _launch(run: _Run, gpu: _Device, stream: Thread, kernel: Kernel, step: int, launch_us: float) -> None:
    run.correlation += 1
    old, amd = run.dialect == "old", run.dialect == "amd"
    name = f"{kernel.name}.kd" if amd else kernel.name
    call: dict[str, Any] = {"correlation_id": run.correlation}
    if old:  # that collector wrote what lay in memory
        call |= {
            "context_id": f"$${gpu.index + 1}",
            "kernel_details": Text("regs:17179869185 shm:7 grid:1,210453397508,0 block:0,0,0"),
        }
    else:
        call["device_id"] = gpu.index
    gpu.launcher.wait(300).leaf(
        name if old else "hipModuleLaunchKernel" if amd else "cuLaunchKernel",
        launch_us * 1000,
        {**call, **run.group(step)},
    )

    details = {
        "old": f"regs:{kernel.registers} shm:{kernel.shared_bytes} grid:{kernel.grid} block:{kernel.block}",
        "current": f"regs:{kernel.registers} static_shared:{kernel.shared_bytes} dynamic_shared:0 grid:{kernel.grid} "
        f"block:{kernel.block} occ_pct:{min(100, 3200 // kernel.registers)}",
        "amd": f" grid:{kernel.grid} block:{kernel.block} private_mem:0 group_mem:{kernel.shared_bytes} occ_pct:0",
    }[run.dialect]
    full_name = f"{kernel.op}:{kernel.type}"
    stats = {
        "correlation_id": run.correlation,
        "kernel_details": Text(details),
        **_attribution(run, full_name, kernel.shape),
    }
    _on_device(run, gpu, stream, name, kernel.us, full_name, step, stats)


def _attribution(run: _Run, full_name: str, shape: str) -> dict[str, Any]:
    if run.xla:
        op, _, kind = full_name.partition(":")
        fusion = f"loop_{kind.lower()}_fusion"
        return {
            "tf_op": "XlaModule:",
            "name": f"{op}:{kind}",
            "hlo_op": fusion,
            "hlo_module": "a_inference_train_function_1047",
            "program_id": 15,
        }
    if run.attribution == "tf_op":
        return {"tf_op": full_name, "shape": shape} if shape else {"tf_op": full_name}
    if run.attribution == "annotation":
        return {
            "annotation": f"{full_name}#shape={shape}#" if shape else full_name,
            "level 0": full_name,
            "shape": shape,
        }
    return {}


def _copy(
    run: _Run, gpu: _Device, stream: Thread, name: str, size: int, full_name: str, step: int, launch_us: float
) -> None:
    run.correlation += 1
    to_device = name == "MemcpyH2D"
    call = {"current": "cuMemcpyHtoDAsync" if to_device else "cuMemcpyDtoHAsync", "amd": "hipMemcpyAsync"}.get(
        run.dialect, name
    )
    gpu.launcher.wait(300).leaf(call, launch_us * 2000, {"correlation_id": run.correlation, **run.group(step)})
    kinds = "kind_src:pinned kind_dst:device" if to_device else "kind_src:device kind_dst:pageable"
    details = {
        "current": f"{kinds} size:{size} dest:{gpu.index} async:1",
        "old": f"size:{size} dest:{gpu.index} async:1",
        "amd": f"kind:Unknown size:{size} dest:{gpu.index} async:1",
    }[run.dialect]
    stats = {"correlation_id": run.correlation, "memcpy_details": Text(details), **_attribution(run, full_name, "")}
    shown = name if run.dialect != "amd" else "CopyHostToDevice" if to_device else "CopyDeviceToHost"
    _on_device(run, gpu, stream, shown, max(1.5, size / 12_000), "", step, stats)


def _memset(run: _Run, gpu: _Device, kernel: Kernel, step: int, launch_us: float) -> None:
    run.correlation += 1
    gpu.launcher.leaf("hipMemsetAsync" if run.dialect == "amd" else "cuMemsetD32Async", launch_us * 1000,
                      {"correlation_id": run.correlation, **run.group(step)})  # fmt: skip
    stats = {"correlation_id": run.correlation, "Memset_details": Text("kind:device num_bytes:256000 async:1"),
             **_attribution(run, f"{kernel.op}:{kernel.type}", "")}  # fmt: skip
    _on_device(run, gpu, gpu.compute, "Memset", 2, "", step, stats)


def _on_device(
    run: _Run, gpu: _Device, stream: Thread, name: str, us: float, op: str, step: int, stats: dict[str, Any]
) -> None:
    """Run on a stream, some microseconds after the launch or when the stream is free."""
    stream.wait_until(gpu.launcher.now_ns + 4_000).wait(900)
    start = stream.now_ns
    event = stream.leaf(name, us * 1000, {**stats, **run.group(step), **({"is_eager": 0} if run.grouped else {})})
    gpu.ran.append((start, start + event.message.duration_ps // 1000, op, step))


def _derived_lines(gpu: _Device, steps: int, marks: str) -> None:
    """Add the lines that TensorFlow 2.4 wrote: the op and name scope of each kernel, and the steps."""
    ops = gpu.plane.line("TensorFlow Ops", id=_OPS, timestamp_ns=245_747)
    scopes = gpu.plane.line("TensorFlow Name Scope", id=_NAME_SCOPE, timestamp_ns=245_747)
    line = gpu.plane.line("Steps", id=_STEPS, timestamp_ns=245_747)
    for start, end, op, step in sorted(gpu.ran):
        if op:
            ops.event(op, start / 1000, (end - start) / 1000, group_id=step)
            for scope in op.rpartition(":")[0].split("/")[:-1]:
                scopes.event(scope, start / 1000, (end - start) / 1000, group_id=step)
    for step in range(steps):
        of_step = [(start, end) for start, end, _, s in gpu.ran if s == step]
        first, last = min(s for s, _ in of_step), max(e for _, e in of_step)
        line.event(str(step), first / 1000, (last - first) / 1000, group_id=step, step_name=f"{marks} {step}".strip())
    gpu.plane.display_ops()
