"""The overview's numbers on generated runs."""

from __future__ import annotations

import pytest

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.steps import CATEGORY_COLUMNS
from tfprof_widgets.analysis.utilization import utilization
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import read


def report_of(*spaces: Space) -> Report:
    return Report([read(space.bytes()) for space in spaces])


def test_step_time_is_a_row_a_kind_with_training_first():
    table = report_of(cpu_fit_capture(epochs=2, batches=8, validation_batches=4)).overview.step_time
    assert table["kind"].tolist() == ["train", "test"]
    assert table["steps"].tolist() == [14, 6]
    assert table["left_out"].tolist() == [2, 2]
    assert (table["min_ms"] <= table["median_ms"]).all()
    assert (table["median_ms"] <= table["max_ms"]).all()
    assert table[list(CATEGORY_COLUMNS)].sum(axis=1).to_numpy() == pytest.approx(table["mean_ms"].to_numpy())


def test_averages_are_those_of_the_steps_that_enter_them():
    report = report_of(cpu_fit_capture(epochs=1, batches=12))
    used = report.steps[report.steps["flags"].str.contains("averaged")]["duration_ms"]
    row = report.overview.step_time.iloc[0]
    assert row["mean_ms"] == pytest.approx(used.mean())
    assert row["std_ms"] == pytest.approx(used.std())
    assert row["steps"] == len(used) == 10


def test_examples_per_second_follow_from_the_batch_size():
    report = report_of(cpu_fit_capture(epochs=1, batches=12))
    batch, _ = 64, None
    assert report.overview.examples_per_s == pytest.approx(batch / report.overview.step_time["mean_ms"].iloc[0] * 1e3)


def test_top_ops_are_the_hosts_without_a_device_and_the_devices_with_one():
    host = report_of(cpu_fit_capture(epochs=1, batches=6)).overview.top_ops
    device = report_of(gpu_capture(devices=1, steps=4)).overview.top_ops
    assert set(host["host_or_device"]) == {"Host"}
    assert set(device["host_or_device"]) == {"Device"}
    assert len(host) == 10
    assert host["self_time_us"].is_monotonic_decreasing
    assert host["cumulative_pct"].tolist() == pytest.approx(host["self_time_pct"].cumsum().tolist())


def test_the_environment_names_hosts_devices_and_versions():
    report = report_of(*pod_captures(hosts=2, devices=2, steps=4))
    environment = report.overview.environment
    assert environment["Hosts"] == "2 (worker-0, worker-1)"
    assert environment["Device cores"] == "4 (4 with events)"
    assert report_of(cpu_fit_capture(1, 3)).overview.environment["Device type"] == "CPU"


def test_devices_of_which_nothing_was_recorded_are_counted():
    assert report_of(*pod_captures(hosts=1, devices=2, steps=4)).overview.unseen_devices == 0
    assert report_of(cpu_fit_capture()).overview.unseen_devices == 0
    space = cpu_fit_capture()
    space.plane("/device:GPU:0", id=10)
    unseen = report_of(space).overview
    assert unseen.unseen_devices == 1
    # No op explains the time in which the host ran the step's functions, so that is said.
    assert any("was not recorded, so the times of the operations" in note for note in unseen.notes)
    assert not any("was not recorded" in note for note in report_of(cpu_fit_capture()).overview.notes)


def test_each_of_several_hosts_has_step_times_of_its_own():
    report = report_of(*pod_captures(hosts=3, devices=1, steps=4, slow_host=1))
    own = report.overview.host_step_time
    assert list(own) == ["worker-0", "worker-1", "worker-2"]
    for host, step_time in own.items():
        alone = report.of_host(host).overview.step_time
        assert step_time["mean_ms"].tolist() == alone["mean_ms"].tolist()
    assert own["worker-1"]["input_ms"].iloc[0] > own["worker-0"]["input_ms"].iloc[0] + 2
    assert report_of(cpu_fit_capture(1, 3)).overview.host_step_time == {}


def test_one_host_of_several_has_a_report_of_its_own():
    report = report_of(*pod_captures(hosts=3, devices=1, steps=4))
    assert set(report.of_host("worker-1").steps["host"]) == {"worker-1"}
    with pytest.raises(KeyError, match="worker-2"):
        report.of_host("worker-9")


def test_one_of_several_hosts_that_share_a_name_keeps_its_number():
    report = report_of(cpu_fit_capture(1, 3, hostname="same"), cpu_fit_capture(1, 4, hostname="same"))
    second = report.of_host("same (2)")
    assert set(second.steps["host"]) == {"same (2)"}
    assert len(second.steps) == 4


def device_line(*kernels: tuple[str, float, float], shape: str = "") -> Space:
    space = Space("host")
    stats = {"shape": shape} if shape else {}
    line = space.plane("/device:GPU:0").line("Stream #1(Kernel)", id=1)
    for name, start, duration in kernels:
        line.event(
            name,
            start,
            duration,
            kernel_details="regs:1 static_shared:0 dynamic_shared:0 grid:1,1,1 block:1,1,1",
            **stats,
        )
    return space


def test_busy_idle_and_gaps_of_a_device():
    space = device_line(("a", 0, 10), ("b", 5, 10), ("c", 40, 10), ("d", 52, 8))
    used = utilization(Trace(read(space.bytes())))
    device = used.devices.iloc[0]
    assert (device["window_ms"], device["busy_ms"], device["idle_ms"]) == pytest.approx((0.06, 0.033, 0.027))
    assert device["busy_pct"] == pytest.approx(55.0)
    assert used.longest_gaps[["before", "after"]].to_numpy().tolist() == [["b", "c"], ["c", "d"]]
    assert used.longest_gaps["duration_us"].tolist() == pytest.approx([25, 2])
    assert used.gap_histogram["gaps"].sum() == 2
    assert used.gap_histogram["total_us"].sum() == pytest.approx(27)


@pytest.mark.parametrize(
    ("name", "shape", "half_pct"),
    [
        ("kernel", "(half[4,4];float[4])", 100),
        ("kernel", "(bfloat16[4,4])", 100),  # XProf counts it as 32 bits
        ("kernel_fp16", "(float[4,4])", 0),
        ("kernel_fp16", "", 100),
        ("kernel", "", 0),
    ],
)
def test_precision_follows_the_shapes_else_the_name(name, shape, half_pct):
    overview = report_of(device_line((name, 0, 10), shape=shape)).overview
    assert overview.precision == pytest.approx({"16-bit": half_pct, "32-bit": 100 - half_pct})


@pytest.mark.parametrize(
    ("name", "is_half"),
    [
        ("void cudnn::ops::nchwToNhwcKernel<__half, float, float, false, true>(cudnn::ops::nchw2nhwc_params_t<float>)", True),
        ("void cudnn::bn_fw_tr_1C11_kernel_new<__half2, float, 512>(float)", True),
        ("void splitKreduce_kernel<32, 16, int, float, half, float>(cublasSplitKParams<float>)", True),
        ("void tensorflow::BiasNHWCKernel<Eigen::half>(int, Eigen::half const*)", True),
        ("_ZN10tensorflow14BiasNHWCKernelIN5Eigen4halfEEEviPKT_S4_PS2_i", True),
        ("void tensorflow::BiasNHWCKernel<Eigen::bfloat16>(int, Eigen::bfloat16 const*)", True),
        ("void gemv<int, __nv_bfloat16, float>(float)", True),
        ("void cutlass::Kernel2<cutlass::half_t>(Params)", True),
        ("void ck::kernel_gemm_xdl<_Float16, float>(float)", True),
        ("volta_h884gemm_128x128_ldg8_nn", True),
        ("volta_s884gemm_fp16_128x128_ldg8_f2f_nn", True),
        ("turing_h1688gemm_256x64_ldg8_stages_32x1_nn", True),
        ("ampere_h16816gemm_128x64_ldg8_stages_64x3_nn", True),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nn", True),
        ("void cutlass_cudnn_infer::Kernel<cutlass_tensorop_h16816fprop_optimized_128x128_32x5_nhwc_align8>(Params)", True),
        ("cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_32x1_nn_align8", True),
        ("cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_nn_align8", True),
        ("volta_hgemm_128x64_nn", True),
        ("maxwell_hcudnn_winograd_128x128_ldg1_ldg4_tile148n_nt", True),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x64x32", True),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", True),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", True),
        ("nvjet_hsh_192x192_64x4_2x1_v_bz_coopB_TNT", True),
        ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN", True),
        ("Cijk_Ailk_Bljk_HB_MT64x64x16", True),
        ("void tensorflow::functor::ResizeNearestNeighborNHWC<float, HalfPixelScalerForNN>(int)", False),
        ("void ResizeBilinearKernel_faster<float, half_pixel_centers>(int)", False),
        ("loop_add_fusion_16816", False),
        ("rotate_half", False),
        ("rotate_half_fusion", False),
        ("fusion_884", False),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16", False),
        ("cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4", False),  # TF32
        ("cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1", False),
        ("nvjet_sss_128x256_64x4", False),
        ("Cijk_Ailk_Bljk_SB_MT128x64x16", False),
        ("volta_sgemm_128x64_nn", False),
        ("void splitKreduce_kernel<float, float, float, float>(cublasSplitKParams<float>)", False),
    ],
)  # fmt: skip
def test_which_names_of_kernels_say_16_bits(name, is_half):
    used = utilization(Trace(read(device_line((name, 0, 10)).bytes()))).devices
    assert used["compute_16bit_ms"].tolist() == pytest.approx([0.01 if is_half else 0.0])


def test_a_capture_with_neither_steps_nor_ops_has_an_overview_that_says_so():
    space = Space()
    space.plane("/host:CPU").line("python", id=1).event("anything", 0, 5)
    overview = report_of(space).overview
    assert overview.statement == "No steps and no ops were recorded."
    assert overview.step_time.empty
    assert overview.top_ops.empty
    assert overview.device_busy_pct is None
    assert overview.examples_per_s is None
