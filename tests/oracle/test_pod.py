"""The pod viewer against XProf's, on CPU hosts with marked steps (on GPUs XProf merges the devices of a host)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from generate import cpu_fit_capture
from oracle import xprof
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.pod import pod
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.xspace import read

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("batches", [(12, 12), (12, 7), (6, 9, 14)])
def test_steps_of_several_hosts_equal_xprofs(batches):
    files = [
        cpu_fit_capture(epochs=1, batches=n, seed=i, hostname=f"worker-{i}", marks="train").bytes()
        for i, n in enumerate(batches)
    ]
    sequence = xprof(files, "pod_viewer")["podStatsSequence"]["podStatsMap"]
    theirs = pd.DataFrame(
        [
            {"step": index, "host": core["hostName"], "total_ms": core["totalDurationUs"] / 1e3}
            for index, step in enumerate(sequence)
            for core in step["podStatsPerCore"].values()
        ]
    ).sort_values(["step", "host"], ignore_index=True)
    ours = pod([find_steps(Trace(read(file))).table for file in files]).table
    assert len(ours) == len(theirs)
    assert ours["host"].tolist() == theirs["host"].tolist()
    assert np.allclose(ours["total_ms"], theirs["total_ms"], atol=1e-6)
