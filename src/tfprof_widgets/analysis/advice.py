"""What to change first: findings drawn from a run's numbers, each with its evidence and one concrete change.

A rule that finds no evidence gives no finding; "nothing stands out" is an answer. Savings are upper bounds: the time that would go if the
cause went and nothing else took its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import numpy as np
import pandas as pd

from .device import KERNEL, MEMCPY_D2H, MEMCPY_H2D, OTHER, device_events
from .in_words import ms
from .intervals import layered_union_ps, union_ps
from .op_stats import IDLE
from .pod import OWN_WORK, straggler_of_run, worker
from .steps import host_ops
from .utilization import gaps_in_steps, host_activity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .events import Trace
    from .input_pipeline import InputPipeline
    from .overview import Overview
    from .pod import Pod
    from .steps import Steps

# Shares of the step time, in percent, from which XProf calls a category moderate or high (its overview page).
LAUNCH_MODERATE_PCT, LAUNCH_HIGH_PCT = 3.0, 15.0
COLLECTIVES_HIGH_PCT = 15.0
OUTPUT_MODERATE_PCT = 5.0
# XProf warns of "all others" from 3 %, which almost any healthy run on a CPU has (Keras' own Python takes 14 to 17 % of
# steps of 3 ms); from here on it is worth changing something.
OTHER_PCT = 25.0
# XProf suggests tf.function from this share of op time run eagerly; a few eager ops between steps (Keras has four) are not a loop.
EAGER_PCT, EAGER_OPS_PER_STEP, EAGER_OPS_BESIDE_FUNCTION = 10.0, 5, 20
# Below this share of 16-bit compute XProf suggests mixed precision; it pays where matrix products take a good part.
HALF_PRECISION_PCT, ELIGIBLE_KERNELS_PCT = 10.0, 20.0
# Tensor Cores came with compute capability 7.0 and speed 16-bit products up at least twofold.
TENSOR_CORE_CAPABILITY, TENSOR_CORE_SPEEDUP = 7, 2.0
# A launch takes some 5 to 10 µs: kernels no longer than that can't keep a device busy (TensorFlow's GPU performance guide).
TINY_KERNEL_US, BUSY_DEVICE_PCT = 10.0, 70.0
# Gaps up to this length are launch overhead; one that takes this share of a step is the device waiting for somebody.
LONG_GAP_US, LONG_GAP_SHARE = 100.0, 0.2
# A function that is traced a second time while steps run is traced for new Python values or shapes (TensorFlow's guide to tf.function).
RETRACES = 2
# Of an allocator that is nearly full, a share of free memory in pieces that size can end in an out-of-memory error.
FRAGMENTATION, NEARLY_FULL = 0.3, 0.8
# A worker is the straggler of the run if it is the slowest by 10 % (pod.STRAGGLER_EXCESS_PCT) in most of the steps.
STRAGGLER_STEPS_SHARE, STRAGGLER_STEPS = 0.5, 3  # of at least so many compared steps
# Compiling that takes this share of the capture is worth a word, even if only the first step compiles.
COMPILATION_PCT = 10.0

_GUIDES = {
    "data": ("Better performance with the tf.data API", "https://www.tensorflow.org/guide/data_performance"),
    "gpu": ("Optimize TensorFlow GPU performance", "https://www.tensorflow.org/guide/gpu_performance_analysis"),
    "function": ("Better performance with tf.function", "https://www.tensorflow.org/guide/function"),
    "precision": ("Mixed precision", "https://www.tensorflow.org/guide/mixed_precision"),
    "distribute": ("Distributed training with TensorFlow", "https://www.tensorflow.org/guide/distributed_training"),
    "profiler": ("Optimize TensorFlow performance using the Profiler", "https://www.tensorflow.org/guide/profiler"),
}
_CONFIDENCE = {"high": 1.0, "medium": 0.6, "low": 0.3}
_INPUT_CODE = "dataset = dataset.map(f, num_parallel_calls=tf.data.AUTOTUNE).batch(n).prefetch(tf.data.AUTOTUNE)"


@dataclass(frozen=True)
class Finding:
    """One thing that costs time, and what to do about it.

    Attributes
    ----------
    title : str
        What is wrong, in a few words.
    statement : str
        The same in a sentence with its numbers.
    saves_ms : float
        At most how much time of an average step would be saved (of the whole capture where no steps were found); 0 for
        findings that cost something else than time.
    confidence : {'high', 'medium', 'low'}
        How sure it is that the change saves that.
    evidence : dict
        Label → text: the numbers, ops and steps that the finding rests on.
    change : str
        One concrete change, as code or a setting.
    links : list of tuple
        Label and target: a tool of the report (``tool:trace``, where need be with a place in it: ``tool:trace?highlight=NAME``,
        ``tool:trace?range_ms=FROM,TO``) or an address of TensorFlow's documentation.
    """

    title: str
    statement: str
    saves_ms: float
    confidence: str
    evidence: dict[str, str] = field(default_factory=dict)
    change: str = ""
    links: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """What the rules look at: a run's tools. One trace and one `Steps` a host."""

    traces: Sequence[Trace]
    steps: Sequence[Steps]
    ops: pd.DataFrame
    overview: Overview
    input_pipeline: InputPipeline
    kernels: pd.DataFrame
    memory_summary: pd.DataFrame
    pod: Pod

    @property
    def kind(self) -> str:
        """Kind of step that is judged: training where there is any; empty without steps."""
        return "" if self.overview.step_time.empty else str(self.overview.step_time["kind"].iloc[0])

    @property
    def step_ms(self) -> float:
        """Mean time of such a step; 0 without steps."""
        return 0.0 if self.overview.step_time.empty else float(self.overview.step_time["mean_ms"].iloc[0])

    @property
    def n_steps(self) -> int:
        """Number of steps of all kinds and hosts; 1 without steps, so that totals stand for the capture."""
        return max(sum(s.table["step"].nunique() for s in self.steps), 1)

    def judged(self, steps: Steps) -> pd.DataFrame:
        """The steps of a host, one row a device, that the averages are of."""
        table = steps.table
        return table[steps.averaged & (table["kind"].to_numpy(object) == self.kind)]

    @property
    def n_judged(self) -> int:
        """How many those are of all hosts."""
        return max(sum(len(self.judged(steps)) for steps in self.steps), 1)

    @property
    def n_device_steps(self) -> int:
        """The same, each counted on each device: sums over all devices divided by it are an average device's."""
        devices = sum(len(used.devices) for used in self.overview.utilization)
        return sum(len(s.table) for s in self.steps) or devices or 1

    def category_ms(self, name: str) -> float:
        """Mean time of a category in such a step."""
        return 0.0 if self.overview.step_time.empty else float(self.overview.step_time[f"{name}_ms"].iloc[0])

    def category_pct(self, name: str) -> float:
        """Its share of the step time."""
        return 100 * self.category_ms(name) / self.step_ms if self.step_ms else 0.0

    @property
    def step_words(self) -> str:
        """What the numbers are of."""
        return "training step" if self.kind == "train" else "step"


def advice(run: Run) -> list[Finding]:
    """List what to change, the most promising first.

    Parameters
    ----------
    run : Run
        The run's tools.

    Returns
    -------
    list of Finding
        By falling ``saves_ms`` weighted by confidence; empty if nothing stands out.
    """
    findings = [finding for rule in _RULES for finding in rule(run)]
    return sorted(findings, key=lambda f: -f.saves_ms * _CONFIDENCE[f.confidence])


def _link(*keys: str) -> list[tuple[str, str]]:
    """Links to tools (``tool:…``) and to guides."""
    titles = {
        "input_pipeline": "Input pipeline",
        "op_stats": "TensorFlow stats",
        "trace": "Trace",
        "kernels": "GPU kernels",
    }
    titles |= {"memory": "Memory", "pod": "Pod", "overview": "Overview"}
    return [_GUIDES[key] if key in _GUIDES else (titles[key], f"tool:{key}") for key in keys]


def _in_trace(*, highlight: str = "", range_ms: tuple[float, float] | None = None) -> tuple[str, str]:
    """Link to a place in the trace: a name to highlight there, a time to show."""
    place = {"highlight": highlight} if highlight else {}
    if range_ms is not None:
        place["range_ms"] = ",".join(f"{ms:.6f}" for ms in range_ms)
    return "Trace", f"tool:trace?{urlencode(place, quote_via=quote)}"


def _around(start_ms: float, duration_ms: float) -> tuple[float, float]:
    """A time with what is just before and after it."""
    return start_ms - 0.2 * duration_ms, start_ms + 1.2 * duration_ms


def _input_bound(run: Run) -> Iterator[Finding]:
    summary = run.input_pipeline.summary
    if summary.verdict not in ("high", "moderate"):
        return
    stages = run.input_pipeline.tf_data
    bottleneck = stages[stages["is_bottleneck"].astype(bool)] if len(stages) else stages
    # With several devices the step is the slowest device's, here as in the Overview; the analyzer's own share is that of all devices' time.
    input_ms, step_ms, share = run.category_ms("input"), run.step_ms, run.category_pct("input")
    said, _, more = summary.statement.partition(". ")
    if any(s.table.duplicated("step").any() for s in run.steps):
        how_much = f"{ms(input_ms)} of the {ms(step_ms)} of a {run.step_words} ({share:.1f} %)"
        said = f"{said.partition(':')[0]}: waiting for input takes {how_much}"
    statement = f"{said}. {more}" if more else f"{said.rstrip('.')}."
    evidence = {
        "Waiting for input": f"{ms(input_ms)} of {ms(step_ms)} ({share:.0f} %)",
        "Steps": f"{summary.steps:,} averaged",
    }
    if summary.stage:
        evidence["Stage waited for"] = f"{summary.stage} ({summary.stage_pct:.0f} % of the waiting)"
    for _, stage in bottleneck.head(1).iterrows():
        for name in ("parallelism", "buffer_size", "buffered_elements"):
            if pd.notna(stage[name]):
                evidence[name.replace("_", " ").capitalize()] = f"{stage[name]:g}"
    yield Finding(
        title="The run waits for its input",
        statement=statement,
        saves_ms=input_ms,
        confidence="high" if summary.verdict == "high" else "medium",
        evidence=evidence,
        change=summary.suggestion or _INPUT_CODE,
        links=_link("input_pipeline", "data"),
    )


def _launch_bound(run: Run) -> Iterator[Finding]:
    share, busy = run.category_pct("kernel_launch"), run.overview.device_busy_pct
    if busy is None or share < LAUNCH_MODERATE_PCT:
        return
    evidence = {"Kernel launch": f"{ms(run.category_ms('kernel_launch'))} of each step ({share:.0f} %)"}
    durations = np.concatenate([_kernel_us(trace) for trace in run.traces])
    tiny = len(durations) > 0 and float(np.median(durations)) < TINY_KERNEL_US
    if len(durations):
        evidence["Kernels"] = f"{len(durations):,}, half of them shorter than {np.median(durations):.3g} µs"
    if share < LAUNCH_HIGH_PCT and not tiny:
        return
    change = "model.compile(..., jit_compile=True)   # or tf.function(jit_compile=True): XLA fuses small ops into fewer kernels"
    if not tiny:
        change = "os.environ['TF_GPU_THREAD_MODE'] = 'gpu_private'   # before TensorFlow starts: launches get threads of their own"
    yield Finding(
        title="The device waits for kernel launches",
        statement=f"{share:.0f} % of each {run.step_words} goes into launching kernels while the device has nothing to do.",
        saves_ms=run.category_ms("kernel_launch"),
        confidence="high" if share >= LAUNCH_HIGH_PCT and tiny else "medium",
        evidence=evidence,
        change=change,
        links=_link("trace", "kernels", "gpu"),
    )


def _kernel_us(trace: Trace) -> NDArray[np.float64]:
    devices = device_events(trace)
    return trace.duration_ps[devices.event[(devices.kind == KERNEL) & devices.is_measured]] / 1e6


def _small_kernels(run: Run) -> Iterator[Finding]:
    """A device that idles between kernels although nothing else is to blame: too little work at a time."""
    busy = run.overview.device_busy_pct
    compute = run.category_ms("device_compute")
    if busy is None or not run.step_ms or 100 * compute / run.step_ms > BUSY_DEVICE_PCT:
        return
    durations = np.concatenate([_kernel_us(trace) for trace in run.traces])
    if (
        not len(durations)
        or np.median(durations) >= TINY_KERNEL_US
        or run.category_pct("kernel_launch") >= LAUNCH_MODERATE_PCT
    ):
        return
    yield Finding(
        title="Kernels are too small to keep the device busy",
        statement=(
            f"The device computes for {100 * compute / run.step_ms:.0f} % of each {run.step_words}; half of its "
            f"{len(durations):,} kernels are shorter than {np.median(durations):.3g} µs."
        ),
        saves_ms=_short_gaps_ms(run) / run.n_device_steps,
        confidence="low",
        evidence={"Device compute": f"{ms(compute)} of {ms(run.step_ms)}"},
        change="Use a larger batch size (and scale the learning rate with it); or let XLA fuse small ops: jit_compile=True",
        links=_link("kernels", "trace", "gpu"),
    )


def _short_gaps_ms(run: Run) -> float:
    """Idle time of all devices in gaps too short for anything but the next launch."""
    tables = [used.gap_histogram for used in run.overview.utilization]
    return sum(float(t["total_us"][t["to_us"] <= LONG_GAP_US].sum()) for t in tables) / 1e3


def _long_gap(run: Run) -> tuple[Finding, bool] | None:
    """A device that has nothing to do for a good part of a step at a time; and whether it is known what the host did then."""
    least_ps = LONG_GAP_SHARE * run.step_ms * 1e9
    longest_us = max(
        (float(u.longest_gaps["duration_us"].max()) for u in run.overview.utilization if len(u.longest_gaps)),
        default=0.0,
    )
    if not run.step_ms or longest_us * 1e6 < least_ps:
        return None
    of_hosts = [
        gaps_in_steps(trace, run.judged(steps), least_ps) for trace, steps in zip(run.traces, run.steps, strict=True)
    ]
    long_ms = sum(int((gaps.end_ps - gaps.start_ps).sum()) for gaps in of_hosts) / 1e9
    if not long_ms:
        return None
    lengths = [int((gaps.end_ps - gaps.start_ps).max(initial=0)) for gaps in of_hosts]
    which = int(np.argmax(lengths))
    trace, gaps = run.traces[which], of_hosts[which]
    at = int(np.argmax(gaps.end_ps - gaps.start_ps))
    start_ms, duration_ms = gaps.start_ps[at] / 1e9, lengths[which] / 1e9
    activity, share = host_activity(trace, gaps.start_ps[[at]], gaps.end_ps[[at]])
    host = activity[0] if share[0] >= 20 else ""
    op = _host_op_within(trace, int(gaps.start_ps[at]), int(gaps.end_ps[at]))
    device = f"{trace.host} {gaps.device[at]}" if len(run.traces) > 1 else str(gaps.device[at])
    n_gaps = sum(len(gaps.start_ps) for gaps in of_hosts)
    meanwhile = f"Python's thread is in {host}" if host else "the profiler saw nothing on Python's thread"
    if op:
        meanwhile = f"the host runs {op}"
    finding = Finding(
        title="The device sits idle within the step",
        statement=f"{device} has nothing to do for {ms(duration_ms)} at {ms(start_ms)}, while {meanwhile}.",
        saves_ms=long_ms / run.n_judged,
        confidence="medium",
        evidence={
            "Before": str(gaps.before[at])[:120],
            "After": str(gaps.after[at])[:120],
            "Long gaps": f"{ms(long_ms)} in {n_gaps:,}",
        },
        change=(
            "Let a device run that op (another op, or another type of numbers), or do its work in the input pipeline: dataset.map(...)"
            if op
            else "Look at that moment in the trace; a .numpy(), a print or a Python if on a result makes the device wait for Python"
        ),
        links=[_in_trace(range_ms=_around(start_ms, duration_ms)), *_link("gpu")],
    )
    return finding, bool(op or host)


def _host_op_within(trace: Trace, start_ps: int, end_ps: int) -> str:
    """The executor's op of the host that takes most of a time; empty if none takes half of it."""
    event = host_ops(trace, device_events(trace))
    covered = np.minimum(trace.end_ps[event], end_ps) - np.maximum(trace.start_ps[event], start_ps)
    if not len(event) or 2 * covered.max() < end_ps - start_ps:
        return ""
    return trace.space.meta_name[trace.meta[event[np.argmax(covered)]]]


def _retracing(run: Run) -> Iterator[Finding]:
    counts: dict[str, list[float]] = {}
    for trace in run.traces:
        event, code, texts = trace.strings("tf_function_call")
        if not len(event):
            continue
        traced = np.array([text.startswith("traced") for text in texts], bool)[code]
        building = trace.named("tf.function-graph_building")
        for function in np.unique(trace.meta[event[traced]]):
            mine = event[trace.meta[event] == function]
            calls = event[traced & (trace.meta[event] == function)]
            inside = building[_within(trace, building, calls)]
            spent = union_ps(
                trace.line[inside].astype(np.int64),
                trace.start_ps[inside],
                trace.end_ps[inside],
                len(trace.space.line_plane),
            )
            total = counts.setdefault(trace.space.meta_name[function], [0, 0, 0.0])
            total[0] += len(calls)
            total[1] += len(mine)
            total[2] += float(spent.sum()) / 1e9 or float(trace.duration_ps[calls].sum()) / 1e9
    for function, (traces, calls, spent_ms) in counts.items():
        if traces < RETRACES:
            continue
        yield Finding(
            title=f"{function} is traced again and again",
            statement=f"{function} was traced in {traces:.0f} of its {calls:.0f} calls, which took {ms(spent_ms)}: it should be once.",
            saves_ms=spent_ms * (traces - 1) / traces / run.n_steps,
            confidence="high",
            evidence={"Traced calls": f"{traces:.0f} of {calls:.0f}", "Time spent tracing": f"{ms(spent_ms)}"},
            change=(
                "Pass tensors instead of Python numbers, keep shapes fixed (dataset.batch(n, drop_remainder=True)), or declare them: "
                "@tf.function(input_signature=[tf.TensorSpec([None, ...], tf.float32)]) or reduce_retracing=True"
            ),
            links=[_in_trace(highlight=function), *_link("function")],
        )


def _within(trace: Trace, event: NDArray[np.int64], calls: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which events lie inside one of some calls of their own line (both in the order of the trace)."""
    if not len(calls):
        return np.zeros(len(event), np.bool_)
    before = np.searchsorted(calls, event, side="right") - 1
    call = calls[np.maximum(before, 0)]
    return (before >= 0) & (trace.line[call] == trace.line[event]) & (trace.end_ps[event] <= trace.end_ps[call])


def _first_compilation(run: Run) -> Iterator[Finding]:
    # Every device of a step waits for the same compiler.
    table = pd.concat([s.table.iloc[s.slowest] for s in run.steps]) if run.steps else pd.DataFrame()
    if table.empty:
        return
    spent = table[table["compilation_ms"] > 0]
    total = float(table["duration_ms"].sum())
    compiled = float(spent["compilation_ms"].sum())
    compiling = spent["step"].unique()
    averaged = any(s.averaged[s.table["compilation_ms"].to_numpy() > 0].any() for s in run.steps)
    if len(compiling) != 1 or compiled * 100 < COMPILATION_PCT * total:
        return
    yield Finding(
        title="The first step was still being compiled",
        statement=(
            f"Tracing and compiling took {ms(compiled)} of step {int(compiling[0])}. "
            + (
                "It happens once, but there is no other step of its kind to tell how long the later ones take."
                if averaged
                else "It happens once and is left out of the averages, but fills much of this capture."
            )
        ),
        saves_ms=0.0,
        confidence="high",
        evidence={"Compilation": f"{ms(compiled)} of {ms(total)} in all steps"},
        change="Run one step before the profiled cell, so that the capture shows steady steps.",
        links=[_in_trace(range_ms=_around(*spent.iloc[0][["start_ms", "duration_ms"]])), *_link("profiler")],
    )


def _eager_loop(run: Run) -> Iterator[Finding]:
    share = run.overview.eager_pct.get("host", 0.0)
    if share < EAGER_PCT:
        return
    eager = run.ops[
        (run.ops["execution_mode"] == "eager") & (run.ops["type"] != IDLE) & (run.ops["host_or_device"] == "Host")
    ]
    executed = _eager_ops(run)
    per_step = executed / run.n_steps
    if not _is_eager_loop(run):
        return
    has_steps = run.step_ms > 0
    op_ms = float(eager["self_time_us"].sum()) / 1e3
    if has_steps:
        saves, of_what = run.category_ms("other"), "step"
        where = f"{per_step:,.0f} ops run eagerly, one by one from Python, in each step"
    else:
        saves, of_what = max(sum(_main_ms(trace) for trace in run.traces) - op_ms, 0.0), "capture"
        where = f"{executed:,} ops ran eagerly, one by one from Python"
    names = ", ".join(eager.nlargest(3, "self_time_us")["name"].astype(str))
    yield Finding(
        title="Ops run eagerly, one by one",
        statement=f"{where} ({share:.0f} % of the host's op time): Python and dispatch take up to {ms(saves)} of the {of_what}.",
        saves_ms=saves,
        confidence="high" if share > 50 else "medium",
        evidence={"Eager ops": f"{executed:,}", "Share of op time": f"{share:.0f} %", "Most time in": names},
        change="@tf.function   # above the function that runs one step; in Keras: model.compile(..., run_eagerly=False)",
        links=_link("op_stats", "trace", "function"),
    )


def _is_eager_loop(run: Run) -> bool:
    """Whether so many ops run eagerly that they are the step; beside a function, some are callbacks' (summaries, conditions)."""
    functions = sum(len(trace.named("FunctionRun")) for trace in run.traces)
    least = EAGER_OPS_BESIDE_FUNCTION if functions >= run.n_steps else EAGER_OPS_PER_STEP
    return _eager_ops(run) >= least * run.n_steps


def _eager_ops(run: Run) -> int:
    return sum(_count_eager(trace) for trace in run.traces)


def _count_eager(trace: Trace) -> int:
    """Ops that Python ran eagerly (`EagerExecute` of an op, not of a function)."""
    event, is_function = trace.ints("is_func")
    eager = event[is_function == 0]
    if len(eager):
        return len(eager)
    return len(trace.named("EagerKernelExecute")) if not len(event) else 0


def _main_ms(trace: Trace) -> float:
    at = np.flatnonzero(trace.line == trace.main_line)
    return float(trace.end_ps[at].max() - trace.start_ps[at].min()) / 1e9 if len(at) else 0.0


def _low_precision_use(run: Run) -> Iterator[Finding]:
    half = run.overview.precision.get("16-bit")
    table = run.kernels
    if half is None or half >= HALF_PRECISION_PCT or table.empty:
        return
    planes = [stats for trace in run.traces for stats in trace.space.plane_stats if stats.get("device_vendor") != "AMD"]
    capabilities = [stats.get("compute_cap_major") for stats in planes]
    if not any(isinstance(major, int) and major >= TENSOR_CORE_CAPABILITY for major in capabilities):
        return
    total = float(table["total_time_us"].sum())
    idle_units = table[table["tensor_core_eligible"].astype(bool) & ~table["uses_tensor_core"].astype(bool)]
    eligible_us = float(idle_units["total_time_us"].sum())
    if not total or 100 * eligible_us < ELIGIBLE_KERNELS_PCT * total:
        return
    share = 100 * eligible_us / total
    yield Finding(
        title="Tensor Cores are idle",
        statement=(
            f"{share:.0f} % of the kernel time is in matrix products and convolutions that could use Tensor Cores and don't; "
            f"{half:.0f} % of the compute time is in 16 bits."
        ),
        saves_ms=eligible_us / 1e3 * (1 - 1 / TENSOR_CORE_SPEEDUP) / run.n_device_steps,
        confidence="medium",
        evidence={
            "Eligible, not using": f"{ms(eligible_us / 1e3)} of {ms(total / 1e3)} kernel time",
            "Largest": ", ".join(idle_units["op_name"].astype(str).head(3)),
        },
        change="tf.keras.mixed_precision.set_global_policy('mixed_float16')   # before the model is built; sizes in multiples of 8",
        links=_link("kernels", "precision"),
    )


def _copies(run: Run) -> Iterator[Finding]:
    """Copies between host and device that a step waits for."""
    if not run.step_ms:
        return
    totals = {MEMCPY_H2D: 0.0, MEMCPY_D2H: 0.0}
    counts = {MEMCPY_H2D: 0, MEMCPY_D2H: 0}
    alone_ps = 0
    # What a run that waits for its input copies to the device is part of that.
    told = next(_input_bound(run), None) is not None
    for trace, steps in zip(run.traces, run.steps, strict=True):
        devices = device_events(trace)
        if not len(devices):
            continue
        start, end = trace.start_ps[devices.event], trace.end_ps[devices.event]
        in_step = np.isin(steps.step_of(trace)[devices.event], run.judged(steps)["step"].to_numpy())
        for kind in totals:
            mine = (devices.kind == kind) & in_step
            totals[kind] += float((end - start)[mine].sum()) / 1e9
            counts[kind] += int(mine.sum())
        # A copy beside a kernel costs nothing: the device computes meanwhile.
        is_copy = np.isin(devices.kind, [kind for kind in totals if kind == MEMCPY_D2H or not told])
        looked_at = in_step & is_copy | ~is_copy & (devices.kind != OTHER)
        layer = is_copy.astype(np.int8)[looked_at]
        planes, plane = np.unique(devices.plane[looked_at], return_inverse=True)
        alone_ps += int(layered_union_ps(plane, start[looked_at], end[looked_at], layer, len(planes), 2)[:, 1].sum())
    per_step = alone_ps / 1e9 / run.n_judged
    if 100 * per_step < OUTPUT_MODERATE_PCT * run.step_ms:
        return
    yield Finding(
        title="Data is copied between host and device in every step",
        statement=(
            f"For {ms(per_step)} of each {run.step_words} ({100 * per_step / run.step_ms:.0f} %) a device does nothing but copy from or "
            "to the host."
        ),
        saves_ms=per_step,
        confidence="medium",
        evidence={
            "To the device": f"{counts[MEMCPY_H2D]:,} copies, {ms(totals[MEMCPY_H2D])}",
            "To the host": f"{counts[MEMCPY_D2H]:,} copies, {ms(totals[MEMCPY_D2H])}",
        },
        change=(
            "Keep tensors on the device: no .numpy(), print or Python if on a tensor inside the step; fetch metrics every N steps; "
            "dataset.prefetch(tf.data.AUTOTUNE) so that input is copied ahead"
        ),
        links=[_in_trace(highlight="Memcpy"), *_link("gpu")],
    )


def _collectives(run: Run) -> Iterator[Finding]:
    total_ms = run.category_ms("device_collective")
    # While one device is late, the others wait for it in the collective: that is the straggler's doing. The last one doesn't wait.
    least_ms = run.pod.table.groupby("step")["device_collective_ms"].min().mean()
    exchange_ms = min(total_ms, float(least_ms)) if len(run.pod.table) else total_ms
    share = 100 * exchange_ms / run.step_ms if run.step_ms else 0.0
    if share < COLLECTIVES_HIGH_PCT:
        return
    evidence = {"Device collectives": f"{ms(total_ms)} ({run.category_pct('device_collective'):.0f} %)"}
    if exchange_ms < 0.9 * total_ms:
        evidence["Of it waiting for the slowest"] = ms(total_ms - exchange_ms)
    yield Finding(
        title="Devices spend their time exchanging gradients",
        statement=f"Collective communication takes {ms(exchange_ms)} of each {run.step_words} ({share:.0f} %).",
        saves_ms=exchange_ms,
        confidence="low",
        evidence=evidence,
        change="Use a larger batch for each replica, so that there is more computing for each exchange; check for a straggler first",
        links=_link("pod", "trace", "distribute"),
    )


_OF_STRAGGLERS = {
    "Device compute": (
        "Compare that device with the others: its share of the batch, its model, clock and temperature (nvidia-smi -q -d CLOCK,PERFORMANCE)"
    ),
    "Input": "Look at that worker's own input pipeline and load; give every worker the same share of the data (dataset.shard)",
}


def _straggler(run: Run) -> Iterator[Finding]:
    table = run.pod.stragglers
    found = straggler_of_run(run.pod)
    if len(table) < STRAGGLER_STEPS or found is None or len(found.steps) < STRAGGLER_STEPS_SHARE * len(table):
        return
    mine = found.steps
    name = worker(found.host, found.device)
    category = str(mine["category"].mode().iloc[0])
    of_own = mine[mine["judged_by"] == OWN_WORK]
    counted = f"{len(mine)} of {len(table)} steps"
    if 2 * len(of_own) >= len(mine):
        statement = (
            f"{name} does {ms(mine['excess_ms'].mean())} more work of its own than the median in {counted}, mostly {category}; the "
            f"others wait {ms(of_own['others_wait_ms'].mean())} for it in collectives."
        )
    else:
        statement = (
            f"{name} is the slowest in {counted}, by {ms(mine['excess_ms'].mean())} on average, mostly in {category}."
        )
    yield Finding(
        title=f"{name} keeps the others waiting",
        statement=statement,
        saves_ms=float(mine["excess_ms"].sum()) / len(table),
        confidence="medium",
        evidence={"Slowest": counted, "Category": category},
        change=_OF_STRAGGLERS.get(
            category, "Look at that worker's load, and at what it does in the trace while the others wait"
        ),
        links=_link("pod", "distribute"),
    )


def _python_overhead(run: Run) -> Iterator[Finding]:
    share = run.category_pct("other")
    eager = run.overview.eager_pct.get("host", 0.0) >= 50 and _is_eager_loop(run)
    if share < OTHER_PCT or eager:
        return  # an eager loop has its own finding
    if all("traced" in flags for s in run.steps for flags in s.table["flags"][s.averaged]):
        return  # a graph's first run optimises and places it: what goes by then goes with the tracing
    keras = any(
        "step_on_iterator" in name or name.endswith("_function") for t in run.traces for name in t.space.meta_name
    )
    change = (
        "model.compile(..., steps_per_execution=10)   # ten batches for each return to Python"
        if keras
        else "Loop inside the tf.function (for batch in dataset: ... under @tf.function) instead of calling it for each batch"
    )
    yield Finding(
        title="Time goes by outside TensorFlow",
        statement=(
            f"{share:.0f} % of each {run.step_words} ({ms(run.category_ms('other'))}) is neither input nor computing: "
            "Python between the calls (callbacks, metrics, logging), dispatch, waiting for threads."
        ),
        saves_ms=run.category_ms("other"),
        confidence="medium" if share >= 2 * OTHER_PCT else "low",
        evidence={"All others": f"{ms(run.category_ms('other'))} of {ms(run.step_ms)} ({share:.0f} %)"},
        change=change,
        links=_link("trace", "profiler"),
    )


def _idle(run: Run) -> Iterator[Finding]:
    """A device's long gap, and the time outside TensorFlow.

    Where the gap is that time, or that of waiting for input, its saving counts once.
    """
    gap, is_seen = _long_gap(run) or (None, False)
    outside, fed = (next(rule(run), None) for rule in (_python_overhead, _input_bound))
    if gap is not None and fed is not None and gap.saves_ms <= 1.05 * fed.saves_ms:
        gap = None  # the device waits for its input
    if gap is None or outside is None or is_seen or gap.saves_ms > 1.05 * outside.saves_ms:
        yield from (finding for finding in (gap, outside) if finding is not None)
        return
    yield replace(
        outside,
        statement=f"{outside.statement} {gap.statement}",
        evidence=outside.evidence | gap.evidence,
        links=[*gap.links[:1], *(link for link in outside.links if link[0] != gap.links[0][0])],
    )


def _fragmentation(run: Run) -> Iterator[Finding]:
    for _, row in run.memory_summary.iterrows():
        if not re.match(r"GPU_\d+_bfc", str(row["allocator"])) or not row["capacity_bytes"]:
            continue
        full = float(row["peak_bytes"]) / float(row["capacity_bytes"])
        if not row["fragmentation"] >= FRAGMENTATION or full < NEARLY_FULL:
            continue
        yield Finding(
            title=f"{row['allocator']} is nearly full and fragmented",
            statement=(
                f"At its peak {row['allocator']} is {100 * full:.0f} % full, and "
                f"{100 * row['fragmentation']:.0f} % of the free memory is in pieces."
            ),
            saves_ms=0.0,
            confidence="medium",
            evidence={"Peak": f"{row['peak_bytes'] / 2**30:.2f} of {row['capacity_bytes'] / 2**30:.2f} GiB"},
            change="os.environ['TF_GPU_ALLOCATOR'] = 'cuda_malloc_async'   # before TensorFlow starts; or a smaller batch",
            links=_link("memory", "gpu"),
        )


_RULES: tuple[Callable[[Run], Iterator[Finding]], ...] = (
    _input_bound,
    _launch_bound,
    _small_kernels,
    _retracing,
    _eager_loop,
    _low_precision_use,
    _copies,
    _collectives,
    _straggler,
    _idle,
    _first_compilation,
    _fragmentation,
)
