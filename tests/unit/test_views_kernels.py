"""The GPU kernels tab, and the pies that it shares with the TensorFlow stats."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from bokeh.document import Document
from bokeh.models import AnnularWedge

from generate import Space, gpu_capture, pod_captures
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.kernels import kernels
from tfprof_widgets.views.colors import OpColors
from tfprof_widgets.views.kernel_labels import kernel_label, kernel_labels
from tfprof_widgets.views.kernels import kernels_tab
from tfprof_widgets.xspace import read
from view_frames import HOSTILE, Recorder, every, ops_frame, without_data


def tab_of(table: pd.DataFrame, **options):
    recorder, ops = Recorder(), ops_frame()
    tab = kernels_tab(recorder, table, ops, OpColors.of(ops), **options)
    json.dumps(tab, allow_nan=False)
    return tab, recorder


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return kernels(Trace(read(gpu_capture(2, 4).bytes()), "worker-0"))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64>(cutlass_80::Params)",
            "cutlass_80_tensorop_s1688gemm_64x64",
        ),
        ("void cudnn::cnn::wgrad_alg0_engine<float, 512, 6>(int, int, float const*)", "wgrad_alg0_engine<…>"),
        (
            "void Eigen::internal::EigenMetaKernel<Eigen::TensorAssignOp<A, Eigen::scalar_product_op<float, float>>, long>(C)",
            "Eigen product_op",
        ),
        ("void Eigen::internal::EigenMetaKernel<A, long>(A, long)", "EigenMetaKernel"),
    ],
)
def test_kernels_of_cpp_are_named_by_what_they_compute(name, short):
    assert kernel_label(name) == short


_EIGEN = (
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<"
    "Eigen::TensorMap<Eigen::Tensor<{to}, 1, 1, long>, 16>, Eigen::{op}, "
    "Eigen::TensorMap<Eigen::Tensor<{of} const, {rank}, 1, long>, 16> const> const> const, Eigen::GpuDevice>, {index}>({index})"
)


def eigen(op: str, of: str, to: str, rank: int = 1, index: str = "long") -> str:
    return _EIGEN.format(op=op, of=of, to=to, rank=rank, index=index)


def test_kernels_of_one_label_are_told_apart_by_what_differs():
    product = "TensorCwiseUnaryOp<Eigen::internal::{}<Eigen::half, Eigen::internal::scalar_product_op<Eigen::half>>"
    names = {
        eigen("TensorConversionOp<Eigen::half", "float", "Eigen::half"): "Eigen ConversionOp float → half",
        eigen("TensorConversionOp<Eigen::half", "bool", "Eigen::half"): "Eigen ConversionOp bool → half",
        eigen("TensorConversionOp<float", "Eigen::half", "float", 2): "Eigen ConversionOp half 2D → float",
        eigen(product.format("scalar_left"), "Eigen::half", "Eigen::half"): "Eigen product_op half (scalar left)",
        eigen(product.format("scalar_right"), "Eigen::half", "Eigen::half"): "Eigen product_op half (scalar right)",
        eigen("scalar_sum_op<float", "float", "float"): "Eigen sum_op float",
        eigen("scalar_sum_op<float", "float", "float", index="int"): "Eigen sum_op float (2)",
        eigen("scalar_exp_op<float", "float", "float"): "Eigen exp_op",
        "void fft2d_r2c_32x32<float, false, 0u, cub::Sum<float> >(float2*, int)": "fft2d_r2c_32x32<…, 0u, …>",
        "void fft2d_r2c_32x32<float, false, 1u, cub::Sum<float> >(float2*, int)": "fft2d_r2c_32x32<…, 1u, …>",
        "void RowReduce<float*, cub::Sum>(int)": "RowReduce<…, Sum>",
        "void RowReduce<float*, cub::Max>(int)": "RowReduce<…, Max>",
        "void a::(anonymous namespace)::Softmax<float, 4>(float*, bool)": "Softmax<…>",
        "volta_sgemm_128x64_nn": "volta_sgemm_128x64_nn",
    }
    assert kernel_labels(names) == names


@pytest.mark.parametrize(
    "name", ["", "<", "void a<", "a<b>(", "void Eigen::internal::EigenMetaKernel<", "x<>" * 3, HOSTILE]
)
def test_names_that_are_no_functions_have_labels_too(name):
    assert list(kernel_labels([name, f"{name} "])) == [name, f"{name} "]


def test_where_many_ops_share_the_time_the_pie_is_by_type(table):
    many = pd.concat([table.assign(op_name=[f"{op}_{n}" for op in table["op_name"]]) for n in range(40)])
    for frame, title in ((table, "GPU time by op"), (many, "GPU time by op type")):
        tab, _ = tab_of(frame)
        figures = list(every(tab["items"], "figure"))
        assert figures[1]["title"] == title


def test_without_kernels_it_says_why(table):
    for has_gpu, words in ((False, "No GPU is in this capture"), (True, "no kernel of it was measured")):
        tab, recorder = tab_of(table[:0], has_gpu=has_gpu)
        (item,) = tab["items"]
        assert words in item["text"]
        assert recorder.frames == {}


def test_the_table_has_every_column_of_the_guide(table):
    tab, recorder = tab_of(table)
    (switch,) = (item for item in tab["items"] if item["kind"] == "switch")
    (item,) = switch["cases"]["each"]
    assert {column["field"] for column in item["columns"]} >= {"rank", *table.columns}
    shown = recorder.frames["kernels"]
    assert len(shown) == len(table)
    assert shown["total_time_us"].is_monotonic_decreasing
    assert list(shown["rank"]) == list(range(1, len(table) + 1))
    assert shown["time_pct"].sum() == pytest.approx(100)
    assert item["filter"] is True


@pytest.mark.parametrize(("name", "by"), [("kernels_by_name", "kernel_name"), ("kernels_by_op", "op_name")])
def test_groups_add_up_the_same_launches(table, name, by):
    _, recorder = tab_of(table)
    # Where each group is one row, the whole table serves.
    grouped = recorder.frames.get(name, recorder.frames["kernels"])
    assert grouped[by].is_unique
    assert grouped["occurrences"].sum() == table["occurrences"].sum()
    assert grouped["total_time_us"].sum() == pytest.approx(table["total_time_us"].sum())
    row = grouped.iloc[0]
    mine = table[table[by] == row[by]]
    assert (row["min_time_us"], row["max_time_us"]) == (mine["min_time_us"].min(), mine["max_time_us"].max())
    assert row["avg_time_us"] == pytest.approx(mine["total_time_us"].sum() / mine["occurrences"].sum())
    assert row["uses_tensor_core"] == mine["uses_tensor_core"].any()


def test_pies_are_of_the_whole_time(table):
    tab, recorder = tab_of(table)
    for chart, name in zip(every(tab["items"], "figure"), ("kernels_by_name", "kernels_by_op"), strict=True):
        plot = Document.from_json(chart["figure"]["doc"]).roots[0]
        data = next(r.data_source.data for r in plot.renderers if isinstance(r.glyph, AnnularWedge))
        turns = (np.array(data["from"]) - np.array(data["to"])) / (2 * np.pi)
        assert turns.sum() == pytest.approx(1)
        shown = recorder.frames.get(name, recorder.frames["kernels"])
        np.testing.assert_allclose(turns[:10], shown["time_pct"][: len(turns)][:10] / 100, rtol=1e-5)


def test_shares_of_tensor_cores(table):
    tab, _ = tab_of(table)
    summary = {row["label"]: row["value"] for row in tab["items"][0]["rows"]}
    total = table["total_time_us"].sum()
    used = table["total_time_us"][table["uses_tensor_core"]].sum()
    assert 0 < used < total
    assert summary["With Tensor Cores"] == f"{100 * used / total:.1f} %"
    launches = table["occurrences"].sum()
    assert (summary["Launches"], summary["Kernels"]) == (f"{launches:,}", f"{table['kernel_name'].nunique()}")


def test_one_hostile_kernel(table):
    one = table[:1].assign(kernel_name=HOSTILE, op_name="")
    tab, recorder = tab_of(one)
    assert recorder.frames["kernels"]["op_name"].tolist() == ["(no op)"]
    for chart in every(tab["items"], "figure"):
        assert "onerror" not in without_data(chart["figure"])
        assert "onerror" not in chart["title"]


def test_several_hosts_have_a_column():
    spaces = [read(space.bytes()) for space in pod_captures(64, 1, 2)]
    tables = [kernels(Trace(space, f"worker-{i}")).assign(host=f"worker-{i}") for i, space in enumerate(spaces)]
    tab, recorder = tab_of(pd.concat(tables, ignore_index=True))
    item = next(every(tab["items"], "table"))
    assert item["columns"][1]["field"] == "host"
    assert recorder.frames["kernels"]["host"].nunique() == 64
    assert len(json.dumps(tab)) < 40_000


def test_an_op_of_several_kernels_is_one_row(table):
    several = table.assign(op_name=["model/a"] * 5 + ["model/b"] * (len(table) - 5))
    tab, recorder = tab_of(several)
    grouped = recorder.frames["kernels_by_op"]
    assert sorted(grouped["op_name"]) == ["model/a", "model/b"]
    assert (
        dict(zip(grouped["op_name"], grouped["kinds"], strict=True))
        == several.groupby("op_name")["kernel_name"].nunique().to_dict()
    )
    (switch,) = (item for item in tab["items"] if item["kind"] == "switch")
    (item,) = switch["cases"]["op"]
    assert item["table"] == "kernels_by_op"
    assert {column["field"] for column in item["columns"]} <= set(grouped.columns)


def test_kernels_without_launch_details_are_shown_and_said():
    space = gpu_capture(1, 3)
    stream = space.plane("/device:GPU:0").line("Stream #30(Kernel)", id=30)
    for step in range(3):
        stream.event("CudaGraphExec:7", 1_000 * step, 800, correlation_id=9_000 + step)
    stream.event("undescribed", 5_000, 200)
    table = kernels(Trace(read(space.bytes()), "worker-0"))
    tab, recorder = tab_of(table)
    (item,) = every(tab["items"], "text")
    launches = table["occurrences"].sum()
    share = 100 * 2_600 / table["total_time_us"].sum()
    assert item["text"].startswith(
        f"The profiler recorded no details of 4 of {launches} launches ({share:.1f} % of the kernel time)"
    )
    assert "3 of them are whole CUDA graphs" in item["text"]
    shown = recorder.frames["kernels"].set_index("kernel_name")
    assert shown.loc["CudaGraphExec:7", ["occurrences", "block_dim", "grid_dim"]].tolist() == [3, "", ""]
    assert shown.loc["CudaGraphExec:7", ["registers_per_thread", "occupancy_pct"]].isna().all()


def test_a_capture_of_cuda_graphs_only_does_not_deny_them():
    space = Space("host")
    space.plane("/device:GPU:0").line("Stream #1", id=1).event("CudaGraphExec:7", 0, 800)
    tab, recorder = tab_of(kernels(Trace(read(space.bytes()), "host")))
    assert recorder.frames["kernels"]["kernel_name"].astype(str).tolist() == ["CudaGraphExec:7"]
    (item,) = every(tab["items"], "text")
    assert item["text"].startswith("The profiler recorded no details of 1 of 1 launches (100.0 % of the kernel time)")
