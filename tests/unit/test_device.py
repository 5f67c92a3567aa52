"""Device events: their kind, and the op and the host call that each belongs to."""

from __future__ import annotations

import numpy as np
import pytest

from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets.analysis.device import KINDS, device_events, host_launch, kind_of, op_of_annotation
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.xspace import read

DETAILS = "regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:32,1,1 occ_pct:50"


def trace_of(space: Space) -> Trace:
    return Trace(read(space.bytes()))


def op_names(trace: Trace) -> list[str | None]:
    devices = device_events(trace)
    return [f"{devices.op_names[c]}:{devices.op_types[c]}" if c >= 0 else None for c in devices.op_code]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MemcpyH2D", "memcpy_h2d"),
        ("MemcpyD2H", "memcpy_d2h"),
        ("MEMCPYHtoD", "memcpy_h2d"),
        ("MemcpyDToD", "memcpy_d2d"),
        ("MemcpyP2P", "memcpy_p2p"),
        ("MemcpyHtoA", "memcpy_h2d"),
        ("MemcpyOther", "memcpy_other"),
        ("MemcpyH2H", "memcpy_other"),
        ("CopyDeviceToHost", "memcpy_d2h"),
        ("CopyDeviceToDevice", "memcpy_d2d"),
        ("Memset", "memset"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "collective"),
        ("ncclKernel_AllGather", "collective"),
        ("void xla::gpu::AllReduceKernelImpl<float>(float*)", "collective"),
        ("MemoryAlloc", "other"),
        ("copy_add_fusion", "kernel"),
        ("copyPackedTensor", "kernel"),
        ("volta_sgemm_128x64_nn", "kernel"),
        ("", "kernel"),
    ],
)
def test_kind_of_a_name(name, kind):
    assert KINDS[kind_of(name)] == kind


def test_a_kernels_details_say_more_than_its_name():
    space = Space()
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    stream.event("memcpy_like_kernel", 0, 5, kernel_details=DETAILS)
    stream.event("MemcpyOther", 10, 5, memcpy_details="kind_src:pinned kind_dst:device size:4 dest:0 async:1")
    stream.event("MemcpyOther", 20, 5, memcpy_details="kind:Unknown size:4")
    devices = device_events(trace_of(space))
    assert [KINDS[k] for k in devices.kind] == ["kernel", "memcpy_h2d", "memcpy_other"]
    assert devices.is_kernel.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("dense/MatMul:MatMul", ("dense/MatMul", "MatMul")),
        ("dense/MatMul:MatMul#shape=(half[2,3];half[])#", ("dense/MatMul", "MatMul")),
        ("Call_1:RemoteCall#shape=(string[])#::#edge_name=arg_1#", ("Call_1", "RemoteCall")),
        ("a/While:While::b/MatMul:MatMul", ("a/While", "While")),
        ("IteratorGetNext/_3:_Send#from=a,to=b#::#edge_name=e#", ("IteratorGetNext/_3", "_Send")),
        ("MakeTensorFromProto", ("MakeTensorFromProto", "MakeTensorFromProto")),
        ("#edge_name=copy#", ("", "")),
        ("", ("", "")),
    ],
)
def test_op_of_an_annotation(text, op):
    assert op_of_annotation(text) == op


def test_the_op_comes_from_tf_op_then_the_annotation_then_the_op_line():
    space = Space()
    plane = space.plane("/device:GPU:0")
    stream = plane.line("Stream #1(Compute)", id=1)
    stream.event("k", 0, 5, kernel_details=DETAILS, tf_op="a/MatMul:MatMul", annotation="b/Relu:Relu")
    stream.event("k", 10, 5, {"level 0": "c/Add:AddV2"}, kernel_details=DETAILS, annotation="d/Mul:Mul")
    stream.event("k", 20, 5, {"level 0": ""}, kernel_details=DETAILS, annotation="e/Sub:Sub#shape=(float[])#")
    stream.event("k", 30, 5, kernel_details=DETAILS)
    stream.event("k", 40, 5, kernel_details=DETAILS)
    stream.event("MemcpyH2D", 32, 1, memcpy_details="size:4 dest:0 async:1")
    ops = plane.line("TensorFlow Ops", id=-559038734)
    ops.event("f/Sum:Sum", 29, 8)
    ops.event("g/Max:Max", 38, 4)  # ends before the last kernel does
    trace = trace_of(space)
    names = dict(zip(trace.start_ps[device_events(trace).event] // 1_000_000, op_names(trace), strict=True))
    assert names == {0: "a/MatMul:MatMul", 10: "c/Add:AddV2", 20: "e/Sub:Sub", 30: "f/Sum:Sum", 32: None, 40: None}


def test_another_devices_op_line_says_nothing():
    space = Space()
    space.plane("/device:GPU:0").line("Stream #1(Compute)", id=1).event("k", 0, 5, kernel_details=DETAILS)
    space.plane("/device:GPU:1").line("TensorFlow Ops", id=-559038734).event("f/Sum:Sum", 0, 8)
    assert op_names(trace_of(space)) == [None]


def test_what_xla_compiled_is_named_by_its_framework_op():
    space = Space()
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    xla = {"kernel_details": DETAILS, "tf_op": "XlaModule:", "hlo_module": "jit_f"}
    stream.event("k", 0, 5, {**xla, "name": "jit(f)/dot_general", "hlo_op": "custom-call.1"})
    stream.event("k", 10, 5, {**xla, "hlo_op": "loop_fusion::copy.12"})
    stream.event("k", 20, 5, xla)
    assert op_names(trace_of(space)) == ["jit(f)/dot_general:dot_general", "copy.12:copy", "XlaModule:XlaModule"]


@pytest.mark.parametrize("attribution", ["tf_op", "annotation", "line"])
@pytest.mark.parametrize("devices", [1, 2])
def test_every_way_of_saying_the_op_gives_the_same_ops(attribution, devices):
    settings = {"devices": devices, "steps": 2, "dialect": "old", "grouped": True}
    trace = trace_of(gpu_capture(attribution=attribution, **settings))
    reference = trace_of(gpu_capture(attribution="tf_op", **settings))
    kernels = device_events(trace).is_kernel
    assert kernels.sum() > 20
    found, expected = (np.array(op_names(t), object)[kernels].tolist() for t in (trace, reference))
    assert found == expected
    assert None not in found


def test_the_last_launch_with_a_correlation_id_wins():
    space = Space()
    host = space.plane("/host:CPU").line("tf_Compute/1", id=1)
    host.event("cuLaunchKernel", 0, 2, correlation_id=7)
    host.event("cuLaunchKernel", 5, 2, correlation_id=7)
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    stream.event("k", 10, 5, correlation_id=7, group_id=3, kernel_details=DETAILS)
    stream.event("k", 20, 5, correlation_id=8, kernel_details=DETAILS)
    stream.event("k", 30, 5, kernel_details=DETAILS)
    trace = trace_of(space)
    devices = device_events(trace)
    launch = host_launch(trace, devices)
    assert trace.start_ps[launch[0]] == 5_000_000
    assert launch[1:].tolist() == [-1, -1]
    assert devices.correlation_id.tolist() == [7, 8, -1]
    assert devices.group_id.tolist() == [3, -1, -1]


def test_every_generated_event_has_its_launch():
    trace = trace_of(gpu_capture(devices=2, steps=2))
    devices = device_events(trace)
    launch = host_launch(trace, devices)
    assert (launch >= 0).all()
    assert trace.line_is_host[trace.line[launch]].all()
    assert (trace.start_ps[launch] <= trace.start_ps[devices.event]).all()


def test_derived_and_bookkeeping_lines_are_no_streams():
    space = Space()
    plane = space.plane("/device:GPU:0")
    for name, line_id in (("Steps", -559038737), ("TensorFlow Ops", -559038734), ("CUPTI overhead", 0)):
        plane.line(name, id=line_id).event("x", 0, 5)
    assert len(device_events(trace_of(space))) == 0


@pytest.mark.parametrize("space", [cpu_fit_capture(epochs=1, batches=2), Space("no planes with lines")])
def test_without_devices_there_is_nothing(space):
    space.plane("/device:GPU:0")
    trace = trace_of(space)
    devices = device_events(trace)
    assert len(devices) == len(host_launch(trace, devices)) == 0
    assert devices.rows(np.arange(3))[1].tolist() == [False] * 3


def test_stats_of_the_wrong_type_are_no_error():
    space = Space()
    stream = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    stream.event("k", 0, 5, kernel_details=3, tf_op=1.5, correlation_id="x", group_id=None, name=2, hlo_op=1)
    stream.event("MemcpyOther", 10, 5, memcpy_details=7)
    devices = device_events(trace_of(space))
    assert devices.op_code.tolist() == [-1, -1]
    assert devices.correlation_id.tolist() == devices.group_id.tolist() == [-1, -1]


def test_a_traces_device_events_are_found_once():
    trace = trace_of(gpu_capture(steps=1))
    assert device_events(trace) is device_events(trace)
