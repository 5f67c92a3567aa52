"""Kernel statistics: every dialect of the details, occupancy, Tensor Cores, and that nothing is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from generate import Space, cpu_fit_capture, gpu_capture
from tfprof_widgets.analysis.device import device_events
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.kernels import (
    COLUMNS,
    is_product,
    kernels,
    parse_details,
    tensor_core_eligible,
    uses_tensor_core,
)
from tfprof_widgets.analysis.occupancy import occupancy_pct
from tfprof_widgets.xspace import read

V100 = {"compute_cap_major": 7, "compute_cap_minor": 0}


def trace_of(space: Space) -> Trace:
    return Trace(read(space.bytes()))


def stream_of(space: Space, capability: dict | None = None):
    return space.plane("/device:GPU:0", stats=capability).line("Stream #1(Kernel)", id=1)


@pytest.mark.parametrize(
    ("text", "registers", "shared", "block", "grid", "occupancy"),
    [
        ("regs:38 static_shared:128 dynamic_shared:64 grid:160,2,3 block:1024,1,1 occ_pct:50", 38, 192, (1024, 1, 1), (160, 2, 3), 50),
        ("regs:38\nstatic_shared:0\ndynamic_shared:0\ngrid:1,1,1\nblock:8,8,2\nocc_pct:37.5", 38, 0, (8, 8, 2), (1, 1, 1), 37.5),
        ("regs:94 shm:3328 grid:1,1,512 block:8,8,1", 94, 3328, (8, 8, 1), (1, 1, 512), None),
        (" grid:16,1,1 block:512,1,1 private_mem:0 group_mem:2112 occ_pct:0", None, 2112, (512, 1, 1), (16, 1, 1), None),
        ("regs:2191500840 static_shared:32462 grid:16,1,1 block:256,1,1 occ_pct:0", None, None, (256, 1, 1), (16, 1, 1), None),
        ("regs:-1 shm:x grid:1,2 block:1,a,1 occ_pct:much", None, None, (1, 1, 1), (1, 1, 1), None),
        ("occ_pct:nan", None, None, (1, 1, 1), (1, 1, 1), None),
        ("", None, None, (1, 1, 1), (1, 1, 1), None),
    ],
)  # fmt: skip
def test_details_in_every_dialect(text, registers, shared, block, grid, occupancy):
    assert parse_details(text) == (registers, shared, block, grid, occupancy)


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "expected"),
    [
        # Limited by registers: 38 of them are 1,280 a warp, so 12 warps fit a partition, 48 the multiprocessor, one block.
        ((7, 0), 1024, 38, 0, 50),
        ((7, 0), 256, 32, 0, 100),
        ((7, 0), 32, 16, 0, 50),  # by blocks: 32 of one warp
        ((7, 0), 256, 32, 49152, 25),  # by shared memory: two blocks
        ((7, 5), 1024, 64, 0, 100),
        ((8, 0), 128, 255, 0, 12.5),
        ((8, 0), 128, 32, 163 * 1024, 6.25),  # CUDA's own kilobyte leaves room for one block
        ((8, 6), 1024, 32, 0, 100 * 32 / 48),
        ((9, 0), 384, 168, 230_000, 18.75),
        ((12, 0), 64, 32, 0, 100),
        ((7, 0), 2048, 32, 0, math.nan),  # no such block can be launched
        ((7, 0), 0, 32, 0, math.nan),
        ((7, 0), 1024, 255, 0, math.nan),
        ((99, 9), 256, 32, 0, math.nan),
        ((None, "7"), 256, 32, 0, math.nan),
    ],
)
def test_occupancy(capability, threads, registers, shared, expected):
    assert occupancy_pct(*capability, [threads], [registers], [shared])[0] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", True),
        ("turing_fp16_s1688gemm_fp16_256x128", True),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn", True),
        ("sm80_xmma_wgrad_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x3_nn_align4>(Params)", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", True),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", True),
        ("void cutlass::device_kernel<cutlass::gemm::collective::MainloopSm90TmaGmmaWarpSpecialized<4>>", True),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x64x64", True),
        ("cutlass3x_sm100_tensorop_s128x256x16gemm_bf16_bf16_f32_bf16_bf16_128x256x64_0_tnn_align8_1sm", True),
        ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN", True),
        ("gemm_fusion_dot_general_1", True),
        ("ampere_h16816gemm_128x64_ldg8_stages_64x3_nn", True),
        ("loop_add_fusion_16816", False),  # XLA numbers its kernels
        ("volta_sgemm_128x64_nn", False),
        ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", False),
        ("Cijk_Ailk_Bljk_SB_MT64x64x8_SE_TT4_4", False),
        ("void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<summary, gamma_op>>", False),
        ("", False),
    ],
)
def test_which_kernels_use_tensor_cores(name, expected):
    assert uses_tensor_core([name, "other"]).tolist() == [expected, False]


@pytest.mark.parametrize(
    ("name", "kind", "equation", "expected"),
    [
        ("dense/Tensordot/MatMul_1", "MatMul", "", True),
        ("my_layer", "Conv2D", "", True),
        ("a", "_FusedConv2D", "", True),
        ("a", "Conv2DBackpropInput", "", True),
        ("a", "Conv3DBackpropFilterV2", "", True),
        ("a", "DepthwiseConv2dNativeBackpropFilter", "", True),
        ("a", "BatchMatMulV2", "", True),
        ("a", "CudnnRNNV3", "", True),
        ("jit(f)/conv_general_dilated", "conv_general_dilated", "", True),
        ("dense/MatMul", "", "", True),
        ("a", "XlaEinsum", "abc,cd->abd", True),
        ("a", "XlaEinsum", "abc->acb", False),
        ("dense/BiasAdd", "BiasAdd", "", False),
        ("MatMul/shape", "Const", "", False),
        ("a", "Conv2DSlowBackprop", "", False),
        ("", "", "", False),
    ],
)
def test_which_ops_tensor_cores_can_compute(name, kind, equation, expected):
    assert (tensor_core_eligible([name], [kind]) | is_product([equation])).tolist() == [expected]


def test_a_row_is_a_kernel_a_launch_shape_and_an_op():
    space = Space()
    stream = stream_of(space, V100)
    details = "regs:38 shm:0 grid:{},1,1 block:1024,1,1"
    stream.event("k", 0, 5, kernel_details=details.format(2), tf_op="a/MatMul:MatMul")
    stream.event("k", 10, 7, kernel_details=details.format(2), tf_op="a/MatMul:MatMul")
    stream.event("k", 20, 1, kernel_details=details.format(4), tf_op="a/MatMul:MatMul")
    stream.event("k", 30, 1, kernel_details=details.format(2), tf_op="b/Relu:Relu")
    stream.event("k", 40, 2, kernel_details=details.format(2))
    stream.event("not measured", 50, 0, kernel_details=details.format(2))
    stream.event("MemcpyH2D", 60, 90, memcpy_details="size:4 dest:0 async:1")
    table = kernels(trace_of(space))
    assert table["op_name"].tolist() == ["a/MatMul", "", "a/MatMul", "b/Relu"]
    first = table.iloc[0]
    assert (first["occurrences"], first["total_time_us"], first["avg_time_us"]) == (2, 12, 6)
    assert (first["min_time_us"], first["max_time_us"], first["occupancy_pct"]) == (5, 7, 50)
    assert (first["grid_dim"], first["block_dim"], first["registers_per_thread"]) == ("2,1,1", "1024,1,1", 38)
    assert table["tensor_core_eligible"].tolist() == [True, False, True, False]
    assert not table["uses_tensor_core"].any()


def test_a_kernel_that_the_profiler_did_not_describe_is_there_without_details():
    space = Space()
    stream = stream_of(space, V100)
    stream.event("k", 0, 5, kernel_details="regs:38 shm:0 grid:2,1,1 block:1024,1,1", tf_op="a/MatMul:MatMul")
    stream.event("CudaGraphExec:7", 10, 50)
    stream.event("CudaGraphExec:7", 70, 40)
    stream.event("ncclDevKernel_AllReduce", 120, 3, tf_op="r:CollectiveReduceV2")
    stream.event("empty", 130, 2, kernel_details="")
    stream.event("MemcpyH2D", 140, 90, memcpy_details="size:4 dest:0 async:1")
    stream.event("MemoryAlloc", 240, 9)
    table = kernels(trace_of(space)).set_index("kernel_name")
    assert table.index.tolist() == ["CudaGraphExec:7", "k", "ncclDevKernel_AllReduce", "empty"]
    graph = table.loc["CudaGraphExec:7"]
    assert (graph["occurrences"], graph["total_time_us"], graph["op_name"]) == (2, 90, "")
    assert table["block_dim"].tolist() == ["", "1024,1,1", "", "1,1,1"]
    assert table["grid_dim"].tolist() == ["", "2,1,1", "", "1,1,1"]
    assert table["registers_per_thread"].isna().tolist() == [True, False, True, True]
    assert math.isnan(graph["occupancy_pct"])
    assert not table["uses_tensor_core"].any()


def test_equal_names_of_several_devices_are_one_row():
    space = Space()
    for device in range(2):
        line = space.plane(f"/device:GPU:{device}", id=device).line("Stream #1(Kernel)", id=1)
        line.event("k", device, 5, kernel_details="regs:16 shm:0 grid:1,1,1 block:32,1,1", tf_op="a/B:B")
    table = kernels(trace_of(space))
    assert table["occurrences"].tolist() == [2]


def test_the_files_occupancy_is_kept_and_only_missing_ones_are_computed():
    space = Space()
    stream = stream_of(space, V100)
    stream.event(
        "stored", 0, 5, kernel_details="regs:38 static_shared:0 dynamic_shared:0 grid:1,1,1 block:1024,1,1 occ_pct:25"
    )
    stream.event(
        "computed", 10, 4, kernel_details="regs:38 static_shared:0 dynamic_shared:0 grid:1,1,1 block:1024,1,1 occ_pct:0"
    )
    stream.event("unknown", 20, 3, kernel_details="grid:1,1,1 block:1024,1,1")
    assert kernels(trace_of(space))["occupancy_pct"].tolist() == pytest.approx([25, 50, math.nan], nan_ok=True)


def test_an_amd_device_gets_no_nvidia_occupancy():
    space = Space()
    stream = stream_of(space, {"compute_cap_major": 9, "compute_cap_minor": 0, "device_vendor": "AMD"})
    stream.event("k", 0, 5, kernel_details="regs:38 static_shared:0 dynamic_shared:0 grid:1,1,1 block:256,1,1")
    assert kernels(trace_of(space))["occupancy_pct"].isna().all()


def test_nonsense_registers_are_missing_values():
    space = Space()
    stream_of(space).event("k", 0, 5, kernel_details="regs:2191500840 static_shared:32462 grid:1,1,1 block:256,1,1")
    table = kernels(trace_of(space))
    assert table[["registers_per_thread", "shared_memory_bytes"]].isna().all(axis=None)


def test_an_equation_makes_the_op_eligible():
    space = Space()
    stream_of(space).event(
        "k",
        0,
        5,
        kernel_details="regs:8 shm:0 grid:1,1,1 block:8,1,1",
        tf_op="e/XlaEinsum:XlaEinsum",
        equation="ab,bc->ac",
    )
    assert kernels(trace_of(space))["tensor_core_eligible"].tolist() == [True]


@pytest.mark.parametrize("dialect", ["current", "old", "amd"])
@pytest.mark.parametrize("xla", [False, True])
def test_nothing_of_a_capture_is_lost(dialect, xla):
    trace = trace_of(gpu_capture(devices=2, steps=3, dialect=dialect, xla=xla))
    devices = device_events(trace)
    ran = devices.event[devices.is_kernel]
    table = kernels(trace)
    assert table["occurrences"].sum() == len(ran)
    assert table["total_time_us"].sum() == pytest.approx(trace.duration_ps[ran].sum() / 1e6)
    assert (table["op_name"] != "").all()
    assert table["total_time_us"].is_monotonic_decreasing
    assert (table["min_time_us"] <= table["avg_time_us"]).all()
    assert (table["avg_time_us"] <= table["max_time_us"]).all()
    assert table["uses_tensor_core"].any()
    assert (table["tensor_core_eligible"] | ~table["uses_tensor_core"]).all()


@pytest.mark.parametrize("space", [cpu_fit_capture(epochs=1, batches=2), Space("empty")])
def test_without_kernels_the_table_is_empty_and_typed(space):
    space.plane("/device:GPU:0")
    table = kernels(trace_of(space))
    assert len(table) == 0
    assert table.dtypes.astype(str).to_dict() == COLUMNS
    assert list(kernels(trace_of(gpu_capture(steps=1))).dtypes.astype(str)) == list(COLUMNS.values())


def test_details_of_the_wrong_type_are_no_error():
    space = Space()
    stream_of(space, {"compute_cap_major": "seven", "compute_cap_minor": 1.5}).event(
        "k", 0, 5, kernel_details=7, equation=3
    )
    table = kernels(trace_of(space))
    assert table["occurrences"].tolist() == [1]
    assert np.isnan(table["occupancy_pct"][0])
