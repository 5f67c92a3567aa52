"""Steps of real captures, against XProf's pod viewer (which keeps all steps, at full precision) and counted batches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.steps import CATEGORY_COLUMNS, Steps, find_steps
from tfprof_widgets.xspace import read

pytestmark = pytest.mark.oracle


@pytest.fixture
def steps_of(capture):
    def of(name: str) -> Steps:
        return find_steps(Trace(read(capture(name))))

    return of


# The batches that ran (captures/README.md), not what XProf finds: it finds none on cpu_fit, tb and py.
@pytest.mark.parametrize(
    ("name", "rows", "kind"),
    [
        ("cpu_fit", 128, "train"),
        ("cpu_loop", 20, "train"),
        ("keras2_fit", 64, "train"),
        ("tb", 11, "Profiled batch"),
        ("py", 5, "train"),
        ("eager", 6, "MyStep"),
        ("raw_tf", 5, "train"),
        ("t4_fit", 1, "train"),
        ("gpu_w0", 2, "step"),
    ],
)
def test_steps_are_the_batches_that_ran(steps_of, name, rows, kind):
    table = steps_of(name).table
    assert len(table) == rows
    assert set(table["kind"]) == {kind}
    assert np.allclose(table[list(CATEGORY_COLUMNS)].sum(axis=1), table["duration_ms"], rtol=0, atol=1e-9)
    assert (table[list(CATEGORY_COLUMNS)] >= -1e-12).all(axis=None)


@pytest.mark.parametrize("name", ["cpu_loop", "keras2_fit", "eager"])
def test_marked_steps_equal_xprofs(steps_of, xprof_of, name):
    sequence = xprof_of(name, "pod_viewer")["podStatsSequence"]["podStatsMap"]
    theirs = pd.DataFrame([next(iter(step["podStatsPerCore"].values())) for step in sequence])
    part = pd.DataFrame(theirs["stepBreakdownUs"].tolist()).fillna(0) / 1e3
    ours = steps_of(name).table
    assert len(theirs) == len(ours)
    assert np.allclose(ours["duration_ms"], theirs["totalDurationUs"] / 1e3, atol=1e-6)
    assert np.allclose(ours["input_ms"], part["6"], atol=1e-6)
    # XProf calls waiting and bookkeeping "Host compute"; only the sum with "All others" is comparable.
    rest = ours["compilation_ms"] + ours["host_compute_ms"] + ours["other_ms"]
    assert np.allclose(rest, part["4"] + part["9"], atol=1e-6)
    assert (ours["host_compute_ms"] <= part["4"] + 1e-6).all()


def test_keras_3_fit_has_its_epoch_boundary_outside_all_steps(steps_of):
    steps = steps_of("cpu_fit")
    table = steps.table
    assert 3.2 <= table["duration_ms"][steps.averaged].mean() <= 3.5
    end_ms = table["start_ms"] + table["duration_ms"]
    gap_ms = (table["start_ms"].shift(-1) - end_ms)[:-1]
    assert gap_ms[63] == pytest.approx(steps.between_runs_ms)
    assert gap_ms[63] > 5
    assert gap_ms.drop(index=63).abs().max() < 1e-9


@pytest.mark.parametrize(("name", "duration_ms"), [("t4_fit", 10.63), ("t4_fit_2", 56.51), ("t4_fit_3", 9.01)])
def test_a_device_step_spans_what_the_device_did(steps_of, name, duration_ms):
    table = steps_of(name).table
    assert table["device"].tolist() == ["/device:GPU:0"]
    assert table["duration_ms"].iloc[0] == pytest.approx(duration_ms, abs=0.005)
    assert table["device_compute_ms"].iloc[0] > 0
    assert table["kernel_launch_ms"].iloc[0] > 0  # XProf shows 0 on GPUs


def test_devices_are_not_clipped_to_one_another(steps_of):
    table = steps_of("gpu_w0").table.set_index("device")
    assert table.loc["/device:GPU:4", "duration_ms"] == pytest.approx(19.87, abs=0.005)
    assert table.loc["/device:GPU:6", "duration_ms"] == pytest.approx(21.31, abs=0.005)
    # XProf's 14.876 ms holds copies, which it takes for compute; here they are Input and Output.
    assert table.loc["/device:GPU:6", "device_compute_ms"] == pytest.approx(14.865, abs=0.0005)
    assert (table["output_ms"] > 0).all()


def test_a_traced_first_call_is_shown_and_not_averaged(steps_of):
    steps = steps_of("raw_tf")
    assert {"traced", "compiling", "unmarked"} <= set(steps.table["flags"].iloc[0].split())
    assert steps.table["compilation_ms"].iloc[0] > 700
    assert not steps.averaged[0]
