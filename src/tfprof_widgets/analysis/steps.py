"""Steps: which batches ran, when, and where the time of each went.

What is a step, where it begins and ends, and what its categories mean is defined in ``docs/steps.md``; it differs from XProf's
definition on purpose (XProf finds no steps in Keras 3's ``fit``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .device import (
    COLLECTIVE,
    KERNEL,
    MEMCPY_D2D,
    MEMCPY_D2H,
    MEMCPY_H2D,
    MEMCPY_OTHER,
    MEMCPY_P2P,
    MEMSET,
    OTHER,
    DeviceEvents,
    device_events,
    host_launch,
)
from .intervals import layered_union_ps, overlapping
from .names import IMPLICIT_ROOTS, JAX_OP, TF_OP
from .nesting import nest, stable_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .events import Trace

CATEGORIES = (
    "compilation",
    "input",
    "output",
    "kernel_launch",
    "host_compute",
    "device_to_device",
    "device_collective",
    "device_compute",
    "other",
)
CATEGORY_COLUMNS = tuple(f"{c}_ms" for c in CATEGORIES)
CATEGORY_LABELS = {
    "compilation": "Compilation",
    "input": "Input",
    "output": "Output",
    "kernel_launch": "Kernel launch",
    "host_compute": "Host compute",
    "device_to_device": "Device to device",
    "device_collective": "Device collectives",
    "device_compute": "Device compute",
    "other": "All others (incl. Python overhead)",
}
# Where activities overlap, the first of these gets the time (XProf's priorities).
_LAYERS = (
    "device_compute",
    "output",
    "device_to_device",
    "input",
    "device_collective",
    "host_op",
    "kernel_launch",
    "copy_to_device",
    "compilation",
    "host_compute",
)
# Copies whose direction the file doesn't tell stay on the device as far as anyone knows.
_LAYER_OF_DEVICE_KIND = {
    MEMCPY_D2H: "output",
    MEMCPY_H2D: "copy_to_device",
    MEMCPY_D2D: "device_to_device",
    MEMCPY_P2P: "device_to_device",
    MEMCPY_OTHER: "device_to_device",
    COLLECTIVE: "device_collective",
}
# Ops of the host that run a function, send or wait: they don't compute themselves.
_CALLS = frozenset(
    {
        "PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "If", "StatelessIf", "While", "StatelessWhile", "Case",
        "StatelessCase", "_Send", "_Recv", "_HostSend", "_HostRecv", "XlaLaunch", "_XlaRun",
    }
)  # fmt: skip
HOST_DEVICE = "/host:CPU"
_KIND_ORDER = ("train", "", "Profiled batch", "test", "predict")


def rank_of_kind(kind: str) -> int:
    """Which kind of step a run is about: training, marks of the user's own, Keras' other kinds."""
    return _KIND_ORDER.index(kind if kind in _KIND_ORDER else "")


# Marks that mean a training step whoever wrote them; they win over marks of other names around them.
_STEP_MARKS = frozenset({"train", "test", "predict", "TraceContext", "Profiled batch", "StepTrace"})
# Keras' functions that run one batch (or steps_per_execution of them), and what each is for. The ones marked
# None serve training and testing alike: their ops tell which.
_BATCH_FUNCTIONS: dict[str, str | None] = {
    "train_function": "train",
    "test_function": "test",
    "predict_function": "predict",
    "one_step_on_data_distributed": "predict",
    "multi_step_on_data": "predict",
    "one_step_on_data": None,
    "one_step_on_iterator": None,
    "multi_step_on_iterator": None,
}
# A pause of this many median periods between two calls starts a new run of steps (an epoch, a validation).
_RUN_GAP_MEDIANS = 10.0
# With more steps than this of one kind, the first and the last are left out of averages, as XProf does.
_MIN_STEPS_TO_TRIM = 5
# The last call of a run that ran this much fewer ops than the median hit the end of the data.
_END_OF_DATA_SHARE = 0.2

# For `Trace.meta_search`.
_COMPILATION = (
    r"^(tf\.function-graph_building|XlaCompil|(\w+::)*\w*Compiler::|(\w+::)+Compile\w*$|LlvmIrGen|CompileGraph)"
)
_ITERATOR_GET_NEXT = r"^iteratorgetnext"
_GRADIENT = r"(^|/)(gradient_tape|gradients)(_\d+)?/"
_INFERENCE_SUFFIX = re.compile(r"_\d+$")


@dataclass
class Steps:
    """The steps of one host.

    Attributes
    ----------
    table : DataFrame
        One row a step and device (host-only: one row a step), in time order: ``step``, ``kind``, ``host``, ``device``, ``start_ms``,
        ``duration_ms``, ``flags`` and one ``*_ms`` column a category, which sum to ``duration_ms``. ``flags`` holds the
        words ``first``, ``last``, ``traced``, ``compiling``, ``end_of_data``, ``host_only``, ``unmarked``,
        ``averaged``, separated by spaces.
    between_runs_ms : float
        Time between runs of unmarked steps (an epoch's start, validation's set-up), charged to no step.
    source : str
        How steps were found: ``marks``, ``function calls``, ``function runs``, ``device steps``, ``iterator``, or empty.
    notes : list of str
        What the reader of the numbers should know.
    """

    table: pd.DataFrame
    between_runs_ms: float = 0.0
    source: str = ""
    notes: list[str] = field(default_factory=list)
    step_of_event: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), repr=False)

    @cached_property
    def averaged(self) -> NDArray[np.bool_]:
        """Rows of ``table`` that enter averages, shape (rows,)."""
        return np.array(["averaged" in words for words in self.table["flags"].to_numpy(object)], bool)

    @cached_property
    def slowest(self) -> NDArray[np.int64]:
        """Row of ``table`` of each step's slowest device, in the order of the steps."""
        step, ms = self.table["step"].to_numpy(), self.table["duration_ms"].to_numpy()
        order = np.lexsort((-ms, step))
        return order[np.flatnonzero(np.diff(step[order], prepend=-1))]

    def step_of(self, trace: Trace) -> NDArray[np.int64]:
        """Step of each event of the trace, shape (N,); -1 for events of no step."""
        del trace
        return self.step_of_event


@dataclass
class _HostSteps:
    """Spans on the thread that runs the steps; ascending, not overlapping. S steps."""

    start_ps: NDArray[np.int64]
    end_ps: NDArray[np.int64]
    kind: NDArray[np.object_]
    marked: NDArray[np.bool_]
    traced: NDArray[np.bool_]
    source: str
    event: NDArray[np.int64]  # the mark or call of each step; -1 where there is none
    #: Whether the time after a step belongs to none, and is worth telling.
    pauses: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    last_of_run: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))


def find_steps(trace: Trace, devices: DeviceEvents | None = None) -> Steps:
    """Find the steps of a host and split the time of each into categories.

    Parameters
    ----------
    trace : Trace
        The host's events.
    devices : DeviceEvents, optional
        The device events of the trace, if they are at hand.

    Returns
    -------
    Steps
        With an empty table and a note saying why if nothing repeats.
    """
    devices = device_events(trace) if devices is None else devices
    has_devices = len(devices.event) > 0
    host = _host_steps(trace)
    notes: list[str] = []
    step_of = np.full(len(trace), -1, np.int64)
    if host is not None:
        step_of = _assign(trace, host)
        _name_kinds(trace, host, step_of)
        if has_devices:
            _assign_devices(trace, host, devices, step_of)
        n_steps = len(host.start_ps)
        kind = host.kind
        source = host.source
    else:
        group = trace.dense_ints("group_id", -1)
        stored = _stored_steps(trace)
        known = np.unique(group[stored] if len(stored) else devices.group_id)
        known = known[known >= 0]
        if not len(known):
            notes.append(
                "No steps were found: no step marks, no function called for each batch, and nothing on a device that repeats. "
                "Mark the steps of your own loop: with tfprof_widgets.step(i): …"
            )
            return Steps(_empty_table(), 0.0, "", notes, step_of)
        n_steps, source = len(known), "device steps"
        kind = _device_kinds(trace, known)
        found = np.minimum(np.searchsorted(known, group), n_steps - 1)
        step_of = np.where(known[found] == group, found, -1)

    row_step, row_plane, row_start, row_end = _rows(trace, host, devices, step_of, n_steps)
    if not len(row_step):
        notes.append("No steps were found: the step marks enclose no time.")
        return Steps(_empty_table(), 0.0, "", notes, step_of)
    layers = _breakdown(trace, devices, step_of, row_step, row_plane, row_start, row_end)
    flags = _flags(trace, host, kind, n_steps, step_of, layers, row_step, row_plane)

    ps = {name: layers[:, i] for i, name in enumerate(_LAYERS)}
    ps["input"] = ps["input"] + ps.pop("copy_to_device")
    ps["host_compute"] = ps["host_compute"] + ps.pop("host_op")
    ps["other"] = (row_end - row_start) - layers.sum(axis=1)
    table = pd.DataFrame(
        {
            "step": row_step,
            "kind": kind[row_step],
            "host": trace.host,
            "device": [trace.space.plane_name[p] if p >= 0 else HOST_DEVICE for p in row_plane],
            "start_ms": row_start / 1e9,
            "duration_ms": (row_end - row_start) / 1e9,
            "flags": flags[row_step],
            **{f"{category}_ms": ps[category] / 1e9 for category in CATEGORIES},
        }
    )
    between = _between_runs_ps(host, row_step, row_start, row_end) / 1e9 if host is not None else 0.0
    result = Steps(table, between, source, notes, step_of)
    left_out = int((~result.averaged[result.slowest]).sum())
    if left_out:
        or_idle = ", without work on a device" if table["flags"].str.contains("host_only").any() else ""
        verb = "is" if left_out == 1 else "are"
        notes.append(
            f"{left_out} of {n_steps} steps {verb} left out of the averages (first, last, traced, compiling{or_idle} or at the end of the "
            "data)."
        )
    return result


def _empty_table() -> pd.DataFrame:
    columns: dict[str, pd.Series[float] | pd.Series[int] | pd.Series[str]] = {"step": pd.Series(dtype="int64")}
    for name in ("kind", "host", "device"):
        columns[name] = pd.Series(dtype="str")
    columns["start_ms"] = pd.Series(dtype="float64")
    columns["duration_ms"] = pd.Series(dtype="float64")
    columns["flags"] = pd.Series(dtype="str")
    for name in CATEGORY_COLUMNS:
        columns[name] = pd.Series(dtype="float64")
    return pd.DataFrame(columns)


# ---- finding the steps on the host ---------------------------------------------------------------------------


def _host_steps(trace: Trace) -> _HostSteps | None:
    main = trace.main_line
    if main < 0:
        return None
    marks = _marks(trace, main)
    calls, function = _calls(trace, main, marks)
    if len(marks) or len(calls):
        return _from_marks_and_calls(trace, marks, calls, function)
    if len(_stored_steps(trace)):
        return None  # TensorFlow grouped the device's work into steps already: better than a guess
    for source, starts in (("function runs", _function_runs(trace, main)), ("iterator", _iterator_calls(trace, main))):
        if len(starts) >= 2:  # one alone says nothing about where a step ends
            return _from_starts(trace, starts, source)
    return None


def _marks(trace: Trace, main: int) -> NDArray[np.int64]:
    """Explicit marks of the main thread, one a step: events with ``step_num``, or roots that the user named."""
    marked = np.zeros(len(trace), np.bool_)
    for stat in ("step_num", "_r"):
        marked[trace.owners(stat)] = True
    marked[trace.owners("end_of_data")] = False  # a `tfprof.step` that asked for another batch in vain
    first, end = trace.line_first_event[main : main + 2]
    candidates = first + np.flatnonzero(marked[first:end])
    name = trace.space.meta_name
    implicit = trace.meta_matches(IMPLICIT_ROOTS.__contains__)
    candidates = candidates[~implicit[trace.meta[candidates]]]
    candidates = candidates[trace.duration_ps[candidates] > 0]
    if not len(candidates):
        return candidates
    preferred = trace.meta_matches(_STEP_MARKS.__contains__)[trace.meta[candidates]]
    if preferred.any():
        candidates = candidates[preferred]
    # Of marks inside marks the outer one is the step, unless it encloses several of one name: then it is an epoch.
    while True:
        _, parent, _ = nest(trace.line[candidates], trace.start_ps[candidates], trace.duration_ps[candidates])
        inside = parent >= 0
        if not inside.any():
            return candidates
        pairs, count = np.unique(np.stack([parent[inside], trace.meta[candidates][inside]]), axis=1, return_counts=True)
        epochs = np.unique(pairs[0][count > 1])
        epochs = epochs[[name[m] not in _STEP_MARKS for m in trace.meta[candidates[epochs]]]] if len(epochs) else epochs
        keep = np.ones(len(candidates), np.bool_)
        if len(epochs):
            keep[epochs] = False
        else:
            keep[inside] = False
        candidates = candidates[keep]


def _calls(trace: Trace, main: int, marks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Calls of a ``tf.function`` that are a batch each, outside all marks; and the name of each one's function."""
    nothing = np.empty(0, np.int64), np.empty(0, object)
    call = trace.owners("tf_function_call")
    call = call[(trace.line[call] == main) & (trace.duration_ps[call] > 0)]
    if not len(call):
        return nothing
    depth, _, _ = nest(trace.line[call], trace.start_ps[call], trace.duration_ps[call])
    call = call[depth == 0]
    marked_meta: set[int] = set()
    if len(marks):
        inside, _ = overlapping(trace.start_ps[call], trace.end_ps[call], trace.start_ps[marks], trace.end_ps[marks])
        outside = np.ones(len(call), np.bool_)
        outside[inside] = False
        marked_meta = set(trace.meta[call[~outside]].tolist())
        call = call[outside]
        if not len(call):
            return nothing
    names = trace.space.meta_name
    meta, inverse, count = np.unique(trace.meta[call], return_inverse=True, return_counts=True)
    total = np.bincount(inverse, weights=trace.duration_ps[call].astype(np.float64))
    accepted = np.array([names[m] in _BATCH_FUNCTIONS or int(m) in marked_meta for m in meta], bool)
    if not accepted.any() and not len(marks):
        # A loop of the user's own: the function with the most time, and those that run while it doesn't.
        by_time = sorted(range(len(meta)), key=lambda i: (count[i] > 1, total[i]), reverse=True)
        for i in by_time:
            if count[i] < 2 and accepted.any():
                continue
            mine = call[inverse == i]
            taken = call[accepted[inverse]]
            if len(taken):
                between = np.searchsorted(taken, mine)
                inner = (between > 0) & (between < len(taken))
                alone = np.unique(between[inner]).size * 2 <= np.count_nonzero(inner)
                if inner.any() and not alone:
                    continue  # interleaved with the steps found already: part of them
            accepted[i] = True
    call = call[accepted[inverse]]
    return call, np.array([names[m] for m in trace.meta[call]], object)


def _from_marks_and_calls(
    trace: Trace, marks: NDArray[np.int64], calls: NDArray[np.int64], function: NDArray[np.object_]
) -> _HostSteps:
    event = np.concatenate([marks, calls])
    marked = np.concatenate([np.ones(len(marks), bool), np.zeros(len(calls), bool)])
    kind = np.concatenate([np.array([trace.space.meta_name[m] for m in trace.meta[marks]], object), function])
    order = np.argsort(event, kind="stable")
    event, marked, kind = event[order], marked[order], kind[order]
    start, end = trace.start_ps[event], trace.end_ps[event]

    owner, code, texts = trace.strings("tf_function_call")
    is_traced = np.array([t.startswith("traced") for t in texts], bool)
    traced_call = owner[is_traced[code]] if len(texts) else owner[:0]
    hit, step = overlapping(trace.start_ps[traced_call], trace.end_ps[traced_call], start, end)
    traced = np.zeros(len(event), np.bool_)
    traced[step[trace.line[traced_call[hit]] == trace.main_line]] = True

    # Where a run of unmarked calls ends: another function, a new iterator, or a long pause.
    n = len(event)
    last_of_run = np.ones(n, np.bool_)
    together = ~marked[:-1] & ~marked[1:] & (kind[:-1] == kind[1:])
    period = np.diff(start)
    pause = start[1:] - end[:-1]
    if together.any():
        together &= ~(pause > _RUN_GAP_MEDIANS * np.median(period[together])) & ~_new_iterator(
            trace, end[:-1], start[1:]
        )
    last_of_run[:-1] = ~together
    host_end = end.copy()
    host_end[:-1] = np.where(together, start[1:], end[:-1])
    pauses = np.zeros(n, np.bool_)
    pauses[:-1] = ~together & ~(marked[:-1] & marked[1:])
    return _HostSteps(
        start_ps=start,
        end_ps=host_end,
        kind=kind,
        marked=marked,
        traced=traced,
        source="marks" if marked.any() else "function calls",
        event=event,
        pauses=pauses,
        last_of_run=last_of_run,
    )


def _new_iterator(trace: Trace, gap_start_ps: NDArray[np.int64], gap_end_ps: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Gaps between calls in which the main thread made an iterator."""
    made = trace.meta_search("MakeIterator|: OneShotIterator$")
    at = np.flatnonzero(made[trace.meta] & (trace.line == trace.main_line))
    times = np.sort(trace.start_ps[at])
    return np.searchsorted(times, gap_end_ps) > np.searchsorted(times, gap_start_ps)


def _function_runs(trace: Trace, main: int) -> NDArray[np.int64]:
    runs = trace.named("FunctionRun", "SessionRun", "RunGraph")
    return runs[trace.line[runs] == main]


def _iterator_calls(trace: Trace, main: int) -> NDArray[np.int64]:
    calls = trace.named("EagerLocalExecute: IteratorGetNext", "EagerLocalExecute: IteratorGetNextSync")
    return calls[trace.line[calls] == main]


def _from_starts(trace: Trace, event: NDArray[np.int64], source: str) -> _HostSteps:
    """Steps from the start of one event to the start of the next; the last ends with what its thread did."""
    start = trace.start_ps[event]
    on_main = trace.line == trace.main_line
    end = np.append(start[1:], trace.end_ps[on_main].max())
    n = len(event)
    false = np.zeros(n, np.bool_)
    last = false.copy()
    last[-1] = True
    return _HostSteps(start, end, np.full(n, "step", object), false, false.copy(), source, event, false.copy(), last)


def _name_kinds(trace: Trace, host: _HostSteps, step_of: NDArray[np.int64]) -> None:
    """Give Keras' functions the kind they serve; tell train from test by whether gradients ran."""
    ambiguous = np.zeros(len(host.kind), np.bool_)
    for i, name in enumerate(host.kind):
        if not host.marked[i] and name in _BATCH_FUNCTIONS:
            served = _BATCH_FUNCTIONS[name]
            if served is None:
                ambiguous[i] = True
            else:
                host.kind[i] = served
    if not ambiguous.any():
        return
    # The function inside, `__inference_multi_step_on_iterator_1435`, is the same for all its calls.
    inner = _inner_functions(trace, host)
    ops = _count(trace, trace.ops.category == TF_OP, step_of, len(host.kind))
    is_gradient = trace.meta_search(_GRADIENT)
    gradients = _count(trace, is_gradient, step_of, len(host.kind))
    for function in set(inner[ambiguous]):
        at = ambiguous & (inner == function)
        if gradients[at].any():
            host.kind[at] = "train"
        elif ops[at].any():
            host.kind[at] = "test"
        # With no ops recorded (host tracer level 1) nothing tells the two apart: the function's own name stays.


def _count(trace: Trace, which_meta: NDArray[np.bool_], step_of: NDArray[np.int64], n_steps: int) -> NDArray[np.int64]:
    """Number of events in each step whose metadata row is one of some."""
    step = step_of[np.flatnonzero(which_meta[trace.meta])]
    return np.bincount(step[step >= 0], minlength=n_steps)


def _inner_functions(trace: Trace, host: _HostSteps) -> NDArray[np.object_]:
    prefix = "EagerLocalExecute: __inference_"
    is_function = trace.meta_search(f"^{prefix}")
    event = np.flatnonzero(is_function[trace.meta] & (trace.line == trace.main_line))
    step = np.searchsorted(host.start_ps, trace.start_ps[event], side="right") - 1
    inner = np.array(host.kind, object)
    ok = step >= 0
    for s, m in zip(step[ok][::-1], trace.meta[event[ok]][::-1], strict=True):
        inner[s] = trace.space.meta_name[m]
    return inner


def _device_kinds(trace: Trace, groups: NDArray[np.int64]) -> NDArray[np.object_]:
    """Kind of each stored group, from its step name less the number (``train 12``)."""
    kind = np.full(len(groups), "step", object)
    owner, code, texts = trace.strings("step_name")
    group = trace.dense_ints("group_id", -1)[owner] if len(owner) else owner
    for g, c in dict(zip(group.tolist(), code.tolist(), strict=True)).items():
        word = re.sub(r"\s*\d+$", "", texts[c]).strip()
        at = np.searchsorted(groups, g)
        if word and word not in ("EagerKernelExecute", *IMPLICIT_ROOTS) and at < len(groups) and groups[at] == g:
            kind[at] = word
    return kind


# ---- which event belongs to which step -----------------------------------------------------------------------


def _assign(trace: Trace, host: _HostSteps) -> NDArray[np.int64]:
    """Step of each event: by time on the main thread, by executor id elsewhere, then whatever nests inside."""
    step_of = np.full(len(trace), -1, np.int64)
    main = slice(*trace.line_first_event[trace.main_line : trace.main_line + 2])
    step = np.searchsorted(host.start_ps, trace.start_ps[main], side="right") - 1
    inside = (step >= 0) & (trace.start_ps[main] < host.end_ps[np.maximum(step, 0)])
    step_of[main][inside] = step[inside]

    owner, value = trace.ints("id")
    roots = np.isin(
        owner, trace.named("FunctionRun", "SessionRun", "RunGraph", "EagerKernelExecute"), assume_unique=True
    )
    roots &= step_of[owner] >= 0
    if roots.any():
        run, first = np.unique(value[roots], return_index=True)
        run_step = step_of[owner[roots]][first]
        # MemoryAllocation events carry the executor's id too, so allocations are found by it as well.
        elsewhere = trace.line[owner] != trace.main_line
        owner, value = owner[elsewhere], value[elsewhere]
        at = np.minimum(np.searchsorted(run, value), len(run) - 1)
        same = run[at] == value
        step_of[owner[same]] = run_step[at[same]]
    _inherit(trace, step_of)
    return step_of


def _inherit(trace: Trace, step_of: NDArray[np.int64]) -> None:
    """Give each event without a step that of the event around it, from the outside in."""
    depth, parent = trace.depth, trace.parent
    if not len(depth):
        return
    open_ = np.flatnonzero((step_of < 0) & (parent >= 0))
    level = depth[open_]
    by_level = open_[stable_order(level)]
    for at in np.split(by_level, np.cumsum(np.bincount(level))):
        step_of[at] = step_of[parent[at]]


def _assign_devices(trace: Trace, host: _HostSteps, devices: DeviceEvents, step_of: NDArray[np.int64]) -> None:
    """Tie device events to steps: by the launch that caused them, by the stored group, else by what the device did before."""
    launch = host_launch(trace, devices)
    device_step = np.where(launch >= 0, step_of[launch], -1)
    grouped, group = trace.ints("group_id")
    ours = (step_of[grouped] >= 0) & trace.line_is_host[trace.line[grouped]]
    if ours.any():
        key, first = np.unique(group[ours], return_index=True)
        group_step = step_of[grouped[ours]][first]
        at = np.minimum(np.searchsorted(key, devices.group_id), len(key) - 1)
        same = (key[at] == devices.group_id) & (device_step < 0)
        device_step = np.where(same, group_step[at], device_step)
    if not (devices.group_id >= 0).any():
        _inherit_on_devices(trace, host, devices, launch, device_step)
    step_of[devices.event] = device_step


def _inherit_on_devices(
    trace: Trace,
    host: _HostSteps,
    devices: DeviceEvents,
    launch: NDArray[np.int64],
    device_step: NDArray[np.int64],
) -> None:
    """Give device events of no step that of the event before them on their device, as XProf does; copies to it that of the one after.

    NCCL launches its kernels from a thread of its own, and some launches aren't recorded. But what Python's thread launched outside
    the steps, and what was launched when the step was over, is no part of it.
    """
    start, end = trace.start_ps[devices.event], trace.end_ps[devices.event]
    n_planes = len(trace.space.plane_name)
    known = device_step >= 0
    order = np.lexsort((start, devices.plane))
    before, after = np.full(len(devices), -1, np.int64), np.full(len(devices), -1, np.int64)
    before[order] = _last_known(devices.plane[order], device_step[order])
    after[order] = _last_known(devices.plane[order][::-1], device_step[order][::-1])[::-1]
    # What is copied to the device is for what comes; and where no launch was recorded, only the time is left to go by.
    step = np.where(devices.kind == MEMCPY_H2D, after, before)
    by_time = np.searchsorted(host.start_ps, start, side="right") - 1
    unlaunched = ~np.isin(devices.plane, devices.plane[known])
    step = np.where(unlaunched, by_time, step)

    begun = np.where(launch >= 0, trace.start_ps[launch], start)
    by_python = (launch >= 0) & (trace.line[launch] == trace.main_line)
    busy_until = np.zeros(len(host.start_ps) * n_planes, np.int64)
    np.maximum.at(busy_until, (device_step * n_planes + devices.plane)[known], end[known])
    open_ = np.flatnonzero(~known & (step >= 0) & ~by_python)
    of = step[open_]
    part = (begun[open_] < host.end_ps[of]) | (start[open_] < busy_until[of * n_planes + devices.plane[open_]])
    device_step[open_[part]] = of[part]


def _last_known(plane: NDArray[np.int32], step: NDArray[np.int64]) -> NDArray[np.int64]:
    """The step of each event or, where it has none, of the last one before it on its plane that has; else -1. Ordered by plane."""
    last = np.maximum.accumulate(np.where(step >= 0, np.arange(len(step)), -1)) if len(step) else step
    return np.where((last >= 0) & (plane[last] == plane), step[last], -1) if len(step) else step


# ---- rows and their breakdown --------------------------------------------------------------------------------


def _rows(
    trace: Trace, host: _HostSteps | None, devices: DeviceEvents, step_of: NDArray[np.int64], n_steps: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """One row a step and device that worked for it; the host itself where no device did. (step, plane, start, end)."""
    step: NDArray[np.int64] = np.empty(0, np.int64)
    plane, start, end = step, step, step
    mine = (step_of[devices.event] >= 0) & (devices.kind != OTHER)
    at = devices.event[mine]
    if len(at):
        planes = trace.space.line_plane[trace.line[at]].astype(np.int64)
        key, inverse = np.unique(step_of[at] * len(trace.space.plane_name) + planes, return_inverse=True)
        start, end = _spans(inverse, trace.start_ps[at], trace.end_ps[at], len(key))
        step, plane = np.divmod(key, len(trace.space.plane_name))
        # Copies and collectives may run beside the computing of another step; a step without a kernel has nothing else.
        computes = np.isin(devices.kind[mine], (KERNEL, MEMSET))
        only = ~np.isin(np.arange(len(key)), inverse[computes])
        core = computes | only[inverse]
        begun, done = _spans(inverse[core], trace.start_ps[at][core], trace.end_ps[at][core], len(key))
        stored = _use_stored_spans(trace, devices, step_of, step, plane, start, end)
        if host is not None:
            # What the file says is a step stays one, unless a mark encloses it.
            encloses = host.marked[step] & (host.start_ps[step] <= start) & (host.end_ps[step] >= end)
            ours = ~stored | encloses
            # A device takes a step up when the host has, and when it is done with the one before: what it waits for until its
            # first kernel is the step's. A host that runs ahead of its device doesn't make the steps longer.
            taken_up = np.minimum(begun, np.maximum(host.start_ps[step], _done_before(plane, done)))
            next_one = _next_one(plane, taken_up)
            given_up = np.maximum(np.maximum(done, host.end_ps[step]), np.minimum(end, next_one))
            start, end = np.where(ours, taken_up, start), np.where(ours, given_up, end)
    if host is not None:
        alone = np.setdiff1d(np.arange(n_steps), step)
        step = np.concatenate([step, alone])
        plane = np.concatenate([plane, np.full(len(alone), -1)])
        start = np.concatenate([start, host.start_ps[alone]])
        end = np.concatenate([end, host.end_ps[alone]])
    order = np.lexsort((plane, step))
    return step[order], plane[order], start[order], end[order]


def _spans(
    group: NDArray[np.int64], start_ps: NDArray[np.int64], end_ps: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First start and last end of each group."""
    start = np.full(n, np.iinfo(np.int64).max)
    end = np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(start, group, start_ps)
    np.maximum.at(end, group, end_ps)
    return start, end


def _done_before(plane: NDArray[np.int64], done_ps: NDArray[np.int64]) -> NDArray[np.int64]:
    """When each row's device was done with all steps before; the lowest number where there are none. Ordered by step."""
    before = np.full(len(plane), np.iinfo(np.int64).min)
    for each in np.unique(plane):
        rows = np.flatnonzero(plane == each)
        before[rows[1:]] = np.maximum.accumulate(done_ps[rows])[:-1]
    return before


def _next_one(plane: NDArray[np.int64], begun_ps: NDArray[np.int64]) -> NDArray[np.int64]:
    """When each row's device began the next step; the largest number where there is none. Ordered by step."""
    after = np.full(len(plane), np.iinfo(np.int64).max)
    for each in np.unique(plane):
        rows = np.flatnonzero(plane == each)
        after[rows[:-1]] = begun_ps[rows[1:]]
    return after


def _between_runs_ps(
    host: _HostSteps, row_step: NDArray[np.int64], row_start: NDArray[np.int64], row_end: NDArray[np.int64]
) -> int:
    """Time after the steps that end a run, until the next step begins on any device."""
    start, end = _spans(row_step, row_start, row_end, len(host.start_ps))
    pauses = np.flatnonzero(host.pauses[:-1]) if len(host.pauses) else np.empty(0, np.int64)
    return int(np.maximum(start[pauses + 1] - np.maximum.accumulate(end)[pauses], 0).sum())


def _stored_steps(trace: Trace) -> NDArray[np.int64]:
    """Events of the devices' ``Steps`` lines, where the file was grouped when it was written."""
    is_steps = np.array([n == "Steps" for n in trace.space.line_name], bool)
    return trace.events_of(is_steps & trace.plane_is_device[trace.space.line_plane])


def _use_stored_spans(
    trace: Trace,
    devices: DeviceEvents,
    step_of: NDArray[np.int64],
    step: NDArray[np.int64],
    plane: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Take the span from the device's stored ``Steps`` line where the file has one; tell which rows have."""
    has_one = np.zeros(len(step), np.bool_)
    stored = _stored_steps(trace)
    if not len(stored):
        return has_one
    stored_group = trace.dense_ints("group_id", -1)[stored]
    grouped = (devices.group_id >= 0) & (step_of[devices.event] >= 0)
    key, first = np.unique(devices.group_id[grouped], return_index=True)
    if not len(key):
        return has_one
    group_step = step_of[devices.event[grouped]][first]
    at = np.minimum(np.searchsorted(key, stored_group), len(key) - 1)
    for event, known, s in zip(stored, key[at] == stored_group, group_step[at], strict=True):
        row = np.flatnonzero((step == s) & (plane == trace.space.line_plane[trace.line[event]]))
        if known and len(row):
            start[row], end[row] = trace.start_ps[event], trace.end_ps[event]
            has_one[row] = True
            step_of[event] = s
    return has_one


def _breakdown(
    trace: Trace,
    devices: DeviceEvents,
    step_of: NDArray[np.int64],
    row_step: NDArray[np.int64],
    row_plane: NDArray[np.int64],
    row_start: NDArray[np.int64],
    row_end: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Picoseconds of each layer in each row, shape (rows, layers)."""
    group: list[NDArray[np.int64]] = []
    event: list[NDArray[np.int64]] = []
    layer: list[NDArray[np.int8]] = []

    def add(rows: NDArray[np.int64], events: NDArray[np.int64], name: str) -> None:
        group.append(rows)
        event.append(events)
        layer.append(np.full(len(rows), _LAYERS.index(name), np.int8))

    # The host's events count for every row of their step: each device waits for the same host.
    first = np.searchsorted(row_step, np.arange(int(row_step.max()) + 2))

    def add_host(events: NDArray[np.int64], name: str) -> None:
        events = events[step_of[events] >= 0]
        count = np.diff(first)[step_of[events]]
        inner = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        add(np.repeat(first[step_of[events]], count) + inner, np.repeat(events, count), name)

    meta = trace.meta
    on_host = trace.line_is_host[trace.line]
    is_input = trace.meta_search(_ITERATOR_GET_NEXT, ignore_case=True)
    is_op = np.isin(trace.ops.category, (TF_OP, JAX_OP)) | trace.meta_matches("EagerKernelExecute".__eq__)
    is_compilation = trace.meta_search(_COMPILATION)
    relevant = np.flatnonzero((is_input | is_op | is_compilation)[meta] & on_host)
    add_host(relevant[is_input[meta[relevant]]], "input")
    add_host(relevant[(is_op & ~is_input)[meta[relevant]]], "host_compute")

    # Compilation also runs on threads of its own; it belongs to the steps during which it ran.
    compiling = relevant[is_compilation[meta[relevant]]]
    elsewhere = compiling[step_of[compiling] < 0]
    add_host(compiling, "compilation")
    if len(elsewhere):
        for r in np.unique(row_plane):
            rows = np.flatnonzero(row_plane == r)
            hit, span = overlapping(trace.start_ps[elsewhere], trace.end_ps[elsewhere], row_start[rows], row_end[rows])
            add(rows[span], elsewhere[hit], "compilation")

    if (row_plane >= 0).any():
        launch = np.union1d(trace.owners("correlation_id"), trace.named("ExecutorState::Process"))
        add_host(launch[on_host[launch]], "kernel_launch")
        # The executor's time is that of launching, unless the host itself computes in it.
        add_host(host_ops(trace, devices), "host_op")
        mine = (step_of[devices.event] >= 0) & (devices.kind != OTHER)
        at = devices.event[mine]
        kind = devices.kind[mine]
        n_planes = len(trace.space.plane_name)
        row_key = row_step * n_planes + np.where(row_plane >= 0, row_plane, n_planes - 1)
        rows = np.searchsorted(row_key, step_of[at] * n_planes + trace.space.line_plane[trace.line[at]])
        for code in np.unique(kind):
            add(rows[kind == code], at[kind == code], _LAYER_OF_DEVICE_KIND.get(int(code), "device_compute"))

    rows, events = np.concatenate(group), np.concatenate(event)
    start = np.maximum(trace.start_ps[events], row_start[rows])
    end = np.minimum(trace.end_ps[events], row_end[rows])
    return layered_union_ps(rows, start, end, np.concatenate(layer), len(row_step), len(_LAYERS))


def host_ops(trace: Trace, devices: DeviceEvents) -> NDArray[np.int64]:
    """Find the ops that the executor ran on the host: of none of them is anything on a device, and they launched nothing.

    Returns
    -------
    int64 array
        Indices in the trace, ascending.
    """
    ops = trace.ops
    on_device = set(devices.op_names)
    computes = [n not in on_device and t not in _CALLS for n, t in zip(ops.name, ops.type, strict=True)]
    meta = (ops.category == TF_OP) & np.array(computes, bool)
    on_host = trace.line_is_host[trace.line] & (trace.line != trace.main_line)
    launches = np.zeros(len(trace), np.bool_)
    launch = trace.owners("correlation_id")
    while len(launch):
        launch = np.unique(trace.parent[launch])
        launch = launch[launch >= 0]
        launches[launch] = True
    process = np.zeros(len(trace), np.bool_)
    process[trace.named("ExecutorState::Process")] = True
    event = np.flatnonzero(meta[trace.meta] & on_host & ~launches & (trace.parent >= 0))
    return event[process[trace.parent[event]]]


def _flags(
    trace: Trace,
    host: _HostSteps | None,
    kind: NDArray[np.object_],
    n_steps: int,
    step_of: NDArray[np.int64],
    layers: NDArray[np.int64],
    row_step: NDArray[np.int64],
    row_plane: NDArray[np.int64],
) -> NDArray[np.object_]:
    """Words about each step; ``averaged`` for those that enter the averages."""
    compiling = np.zeros(n_steps, np.bool_)
    compiling[row_step[layers[:, _LAYERS.index("compilation")] > 0]] = True
    traced = host.traced if host is not None else np.zeros(n_steps, np.bool_)
    end_of_data = _end_of_data(trace, host, kind, step_of) if host is not None else np.zeros(n_steps, np.bool_)
    first, last, trimmed = (np.zeros(n_steps, np.bool_) for _ in range(3))
    present = np.zeros(n_steps, np.bool_)
    present[row_step] = True
    for k in dict.fromkeys(kind):
        at = np.flatnonzero((kind == k) & present)
        if len(at):
            first[at[0]] = last[at[-1]] = True
            if len(at) > _MIN_STEPS_TO_TRIM:
                trimmed[at[[0, -1]]] = True
    # Where a device did nothing for a step as it did for others, the capture lacks its kernels, or it is no step like the others.
    on_device = np.zeros(n_steps, np.bool_)
    on_device[row_step[row_plane >= 0]] = True
    host_only = np.isin(kind, list({*kind[on_device]})) & ~on_device & present
    averaged = present & ~(trimmed | traced | compiling | end_of_data | host_only)
    for k in dict.fromkeys(kind):
        if not averaged[kind == k].any():
            averaged[(kind == k) & present] = True  # better a flagged average than none
    words = {
        "first": first,
        "last": last,
        "traced": traced,
        "compiling": compiling,
        "end_of_data": end_of_data,
        "host_only": host_only,
        "unmarked": ~host.marked if host is not None else np.zeros(n_steps, np.bool_),
        "averaged": averaged,
    }
    return np.array([" ".join(word for word, mask in words.items() if mask[i]) for i in range(n_steps)], object)


def _end_of_data(
    trace: Trace, host: _HostSteps, kind: NDArray[np.object_], step_of: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Last calls of a run in which the iterator had nothing left, so that next to no op ran."""
    n = len(kind)
    ended = np.zeros(n, np.bool_)
    ops = _count(trace, trace.ops.category == TF_OP, step_of, n)
    for k in dict.fromkeys(kind):
        at = np.flatnonzero(kind == k)
        if len(at) > 2:
            ended[at] = host.last_of_run[at] & ~host.marked[at] & (ops[at] < _END_OF_DATA_SHARE * np.median(ops[at]))
    return ended
