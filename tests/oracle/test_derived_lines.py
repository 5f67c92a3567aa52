"""Derived lines of fresh captures, against those that XProf derives for its trace viewer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from generate import gpu_capture
from oracle import xprof
from tfprof_widgets.analysis.derived_lines import NAME_SCOPE, OPS, STEPS, XLA_MODULES, XLA_OPS, derived_lines
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.xspace import read

pytestmark = pytest.mark.oracle

XPROF_NAMES = {NAME_SCOPE: "Framework Name Scope", OPS: "Framework Ops", XLA_MODULES: "XLA Modules", XLA_OPS: "XLA Ops"}


def theirs_of(trace_viewer: dict, kind: str) -> Counter:
    """(device, name, start in ns) of all events of a kind of line."""
    events = trace_viewer["traceEvents"]
    named = [e for e in events if e.get("ph") == "M"]
    process = {e["pid"]: e["args"]["name"] for e in named if e["name"] == "process_name"}
    thread = {(e["pid"], e["tid"]): e["args"]["name"] for e in named if e["name"] == "thread_name"}
    found: Counter = Counter()
    for event in events:
        line = thread.get((event.get("pid"), event.get("tid")), "")
        if event.get("ph") == "X" and line.startswith(XPROF_NAMES[kind]):
            name = event.get("args", {}).get("long_name", event["name"])
            found[
                process[event["pid"]], name.rpartition("/")[2] if kind == XLA_OPS else name, round(event["ts"] * 1000)
            ] += 1
    return found


def mine_of(trace: Trace, kind: str, step=None) -> Counter:
    derived = derived_lines(trace, step)
    rows = np.flatnonzero(np.isin(derived.line, np.flatnonzero(derived.lines["name"] == kind)))
    plane = derived.lines["plane"].to_numpy()[derived.line[rows]]
    found: Counter = Counter()
    for row, device in zip(rows, plane, strict=True):
        name = derived.names[derived.name[row]] + (f":{derived.types[derived.name[row]]}" if kind == OPS else "")
        found[trace.space.plane_name[device], name, derived.start_ps[row] // 1000] += 1
    return found


@pytest.mark.parametrize("name", ["jax_mi300", "jax_mi300_gemm", "jax_mi300_old"])
@pytest.mark.parametrize("kind", [NAME_SCOPE, OPS, XLA_MODULES, XLA_OPS])
def test_lines_of_fresh_xla_captures_are_xprofs(capture, xprof_of, name, kind):
    theirs, mine = theirs_of(xprof_of(name, "trace_viewer"), kind), mine_of(Trace(read(capture(name))), kind)
    assert theirs
    if kind == OPS:
        # XProf writes "name:" with no type, and ":" for an HLO op without a framework name; the times are the same.
        theirs, mine = (Counter({key[::2]: n for key, n in c.items()}) for c in (theirs, mine))
    assert mine == theirs


@pytest.mark.parametrize("kind", [NAME_SCOPE, OPS])
@pytest.mark.parametrize("settings", [{}, {"devices": 2, "layers": 2}])
def test_lines_of_fresh_tensorflow_captures_are_xprofs(kind, settings):
    data = gpu_capture(steps=3, grouped=False, **settings).bytes()
    trace = Trace(read(data))
    theirs = theirs_of(xprof(data, "trace_viewer"), kind)
    assert theirs
    assert mine_of(trace, kind, find_steps(trace).step_of(trace)) == theirs


@pytest.mark.parametrize("kind", [STEPS, NAME_SCOPE, OPS])
def test_a_stored_line_is_derived_again(capture, kind):
    """TensorFlow 2.4 stored these lines in gpu_w0, where one stream of a device runs all kernels."""
    trace = Trace(read(capture("gpu_w0")))
    rows = trace.events_of(np.array([name == kind for name in trace.space.line_name]))
    stored = Counter(
        (
            int(trace.space.line_plane[trace.line[i]]),
            trace.space.meta_name[trace.meta[i]],
            trace.start_ps[i],
            trace.end_ps[i],
        )
        for i in rows
    )
    derived = derived_lines(trace, stored_too=True)
    mine: Counter = Counter()
    for i in np.flatnonzero(np.isin(derived.line, np.flatnonzero(derived.lines["name"] == kind))):
        name = derived.names[derived.name[i]] + (f":{derived.types[derived.name[i]]}" if kind == OPS else "")
        start = derived.start_ps[i]
        mine[int(derived.lines["plane"][derived.line[i]]), name, start, start + derived.duration_ps[i]] += 1
    assert mine == stored
    assert stored
