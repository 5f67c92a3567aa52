"""Findings on generated runs with a known fault, and none on a run without."""

from __future__ import annotations

import pytest

from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from tfprof_widgets.analysis.advice import Finding
from tfprof_widgets.report import Report, load
from tfprof_widgets.xspace import read


def advice_of(*spaces: Space) -> list[Finding]:
    return Report([read(space.bytes()) for space in spaces]).advice


def titles(findings: list[Finding]) -> list[str]:
    return [finding.title for finding in findings]


def test_a_healthy_run_has_no_finding():
    assert advice_of(cpu_fit_capture(epochs=2, batches=16)) == []


def test_a_run_that_waits_for_input_is_told_which_stage():
    first = advice_of(cpu_fit_capture(epochs=1, batches=16, slow_input_us=6_000))[0]
    assert first.title == "The run waits for its input"
    assert first.confidence == "high"
    assert first.saves_ms == pytest.approx(6, rel=0.2)
    assert "Prefetch" in first.evidence["Stage waited for"] or "Map" in first.evidence["Stage waited for"]
    assert ("Input pipeline", "tool:input_pipeline") in first.links
    assert first.change


def python_loop(n: int, *, traced: int = 0, eager: int = 0, idle_us: int = 0) -> Space:
    """n steps of 2 ms, of which the first ``traced`` ones trace for 50 ms; ``eager`` ops run one by one in each; all end idle."""
    space = Space("worker-0")
    plane = space.plane("/host:CPU")
    python, compute = plane.line("python", id=1), plane.line("tf_Compute/2", id=2)
    at = 0.0
    for i in range(n):
        tracing = 50_000 if i < traced else 0
        python.event("train", at, 2_000 + tracing + idle_us, step_num=i, _r=1)
        kind = "traced-nonXla" if tracing else "notTraced-nonXla"
        python.event("train_step", at + 10, 1_200 + tracing, tf_function_call=kind, tracing_count=min(i + 1, traced))
        if tracing:
            python.event("tf.function-graph_building", at + 20, tracing)
        python.event("FunctionRun", at + 30 + tracing, 10, id=1000 + i, _r=1)
        compute.event("ExecutorState::Process", at + 40 + tracing, 1_150, id=1000 + i, iter_num=0)
        if not eager:
            compute.event("dense/MatMul:MatMul", at + 50 + tracing, 1_700 - 600)
        for k in range(eager):
            start = at + 1_250 + 14 * k
            python.event("EagerExecute", start, 12, eager_op="MatMul", is_func=0)
            python.event("EagerLocalExecute: MatMul", start + 1, 10)
            python.event("EagerKernelExecute", start + 2, 8)
        at += 2_100 + tracing + idle_us
    return space


def test_a_function_that_is_traced_on_each_call_is_named():
    first = advice_of(python_loop(8, traced=8))[0]
    assert first.title == "train_step is traced again and again"
    assert first.evidence["Traced calls"] == "8 of 8"
    assert first.saves_ms == pytest.approx(50 * 7 / 8)
    assert "input_signature" in first.change


def test_what_goes_by_in_steps_that_are_all_traced_is_not_laid_on_python():
    assert "Time goes by outside TensorFlow" in titles(advice_of(python_loop(8, traced=1, idle_us=90_000)))
    assert titles(advice_of(python_loop(8, traced=8, idle_us=90_000))) == ["train_step is traced again and again"]


def test_tracing_once_is_no_fault_but_a_first_step_full_of_it_is_said():
    findings = advice_of(python_loop(8, traced=1))
    (first,) = (finding for finding in findings if finding.title == "The first step was still being compiled")
    assert "left out of the averages" in first.statement
    assert not any("traced again" in title for title in titles(findings))


def test_a_step_that_is_the_only_one_is_not_said_to_be_left_out_of_the_averages():
    (only,) = (f for f in advice_of(python_loop(1, traced=1)) if f.title == "The first step was still being compiled")
    assert "no other step of its kind" in only.statement
    assert "left out" not in only.statement


def test_on_several_devices_input_takes_what_the_overview_says():
    report = Report([read(gpu_capture(devices=2, steps=8, input_us=4_000).bytes())])
    (waits,) = (finding for finding in report.advice if finding.title == "The run waits for its input")
    step = report.overview.step_time.iloc[0]
    assert waits.saves_ms == pytest.approx(step["input_ms"])
    assert f"({100 * step['input_ms'] / step['mean_ms']:.1f} %)" in waits.statement
    assert f"({100 * step['input_ms'] / step['mean_ms']:.0f} %)" in waits.evidence["Waiting for input"]


def test_an_eager_loop_is_told():
    first = advice_of(python_loop(8, eager=40))[0]
    assert first.title == "Ops run eagerly, one by one"
    assert first.evidence["Eager ops"] == "320"
    assert "40 ops run eagerly" in first.statement
    assert "@tf.function" in first.change


def test_eager_ops_beside_a_function_are_its_callbacks():
    assert titles(advice_of(python_loop(8, eager=8, idle_us=9_000))) == ["Time goes by outside TensorFlow"]


def test_a_few_eager_ops_a_step_are_no_loop_and_hide_no_idle_python():
    assert titles(advice_of(python_loop(8, eager=4, idle_us=9_000))) == ["Time goes by outside TensorFlow"]


def test_a_launch_bound_run_is_told():
    assert "The device waits for kernel launches" in titles(advice_of(gpu_capture(devices=1, steps=8, launch_us=60)))


def idle_gpus(devices: int, start_us: int = 0, hostname: str = "worker-0", meanwhile: str = "write a log") -> Space:
    """Steps of 1 ms, in which each device multiplies for 0.3 ms without Tensor Cores, copies for 0.1 ms, and idles for 0.4 ms."""
    space = Space(hostname)
    host = space.plane("/host:CPU")
    python = host.line("python", id=1)
    capability = {"compute_cap_major": 8, "compute_cap_minor": 0}
    streams = [
        space.plane(f"/device:GPU:{i}", id=i, stats=capability).line("Stream #1", id=1, timestamp_ns=0)
        for i in range(devices)
    ]
    details = {
        "kernel_details": "regs:1 static_shared:0 dynamic_shared:0 grid:1,1,1 block:32,1,1",
        "shape": "(float[2,2])",
    }
    for step in range(8):
        at = start_us + 1_000 * step
        python.event("train", at, 990, step_num=step, _r=1)
        if meanwhile:
            python.event(meanwhile, at + 360, 430)
        for i, stream in enumerate(streams):
            correlation = 100 * step + i + 1
            python.event("cuLaunchKernel", at + 10 + i, 1, correlation_id=correlation)
            stream.event("MemcpyH2D", at + 100, 100, correlation_id=correlation)
            for begin in (at + 200, at + 800):
                stream.event("sgemm", begin, 150, tf_op="dense/MatMul:MatMul", correlation_id=correlation, **details)
    return space


@pytest.mark.parametrize(
    "title", ["Tensor Cores are idle", "The device sits idle within the step", "The run waits for its input"]
)
def test_what_many_devices_do_at_once_is_not_added_up(title):
    one, four = (
        next(f for f in advice_of(idle_gpus(devices)) if f.title.startswith(title)).saves_ms for devices in (1, 4)
    )
    assert 0 < one < 1
    assert four <= one + 1e-9


def test_a_gap_of_a_host_is_judged_by_its_own_steps():
    """The second host's device idles in steps that the first one doesn't have any more."""
    busy, idle = cpu_fit_capture(epochs=1, batches=8, hostname="worker-0"), idle_gpus(1, 5_000_000, "worker-1")
    finding = next(f for f in advice_of(busy, idle) if f.title == "The device sits idle within the step")
    assert finding.statement.startswith("worker-1 /device:GPU:0 has nothing to do")


def test_a_gap_that_is_the_time_outside_tensorflow_is_counted_once(capture):
    """The one step of this capture: 9 ms of kernels, then 45 ms in which neither the host nor the device does a thing."""
    findings = load(capture("t4_fit_2")).advice
    assert "The device sits idle within the step" not in [f.title for f in findings]
    outside = next(f for f in findings if f.title == "Time goes by outside TensorFlow")
    assert "/device:GPU:0 has nothing to do for 44.7 ms" in outside.statement
    assert outside.evidence["Long gaps"] == "44.7 ms in 1"
    assert outside.links[0][1].startswith("tool:trace?range_ms=")
    assert sum(f.saves_ms for f in findings) < 56.5


def test_a_gap_in_which_python_does_nothing_that_was_recorded_is_counted_once():
    """All that the thread was in is the step itself, which is no news."""
    findings = advice_of(idle_gpus(1, 5_000_000, meanwhile=""))
    assert "The device sits idle within the step" not in titles(findings)
    outside = next(f for f in findings if f.title == "Time goes by outside TensorFlow")
    assert outside.statement.endswith("at 5.00 s, while the profiler saw nothing on Python's thread.")
    gap = next(f for f in advice_of(idle_gpus(1, 5_000_000)) if f.title == "The device sits idle within the step")
    assert "while Python's thread is in write a log" in gap.statement


def gpu_steps(
    n: int, every_us: float, step_us: float, kernels, *, copies=(), host_op: tuple[float, float] | None = None
) -> Space:
    """Marked steps; kernels and copies from the host are ``(begin, duration)`` in each, in µs, on streams of their own."""
    space = Space("worker-0")
    host = space.plane("/host:CPU")
    python, executor = host.line("python", id=1), host.line("tf_Compute/2", id=2)
    plane = space.plane("/device:GPU:0", id=1)
    stream, copying = plane.line("Stream #1(Kernel)", id=1), plane.line("Stream #2(MemcpyH2D)", id=2)
    for step in range(n):
        at = every_us * step
        python.event("train", at, step_us, step_num=step, _r=1)
        python.event("FunctionRun", at + 1, 2, id=1000 + step, _r=1)
        executor.event("ExecutorState::Process", at + 4, step_us - 10, id=1000 + step, iter_num=0)
        executor.event("cuLaunchKernel", at + 5, 1, correlation_id=step + 1)
        for begin, duration in kernels:
            stream.event("sgemm", at + begin, duration, tf_op="dense/Cast:Cast", correlation_id=step + 1)
        for begin, duration in copies:
            copying.event("MemcpyH2D", at + begin, duration, correlation_id=step + 1)
        if host_op is not None:
            executor.event("map/PyFunc:PyFunc", at + host_op[0], host_op[1])
    return space


def test_copies_beside_kernels_cost_nothing():
    assert titles(advice_of(gpu_steps(8, 2_000, 1_900, [(60, 1_800)], copies=[(100, 900)]))) == []
    findings = advice_of(gpu_steps(8, 2_000, 1_900, [(960, 900)], copies=[(60, 900)]))
    copied = next(f for f in findings if f.title == "Data is copied between host and device in every step")
    assert copied.saves_ms == pytest.approx(0.9)


def test_waiting_for_input_is_told_once():
    """The copies of each step are its input, and so is the gap in which the device waits for them."""
    found = titles(advice_of(gpu_capture(devices=1, steps=8, input_us=3_000)))
    assert found[0] == "The run waits for its input"
    assert not {"Data is copied between host and device in every step", "The device sits idle within the step"} & set(
        found
    )


def test_a_gap_counts_only_as_far_as_it_is_in_the_step():
    """The device works for 1.9 of each step's 2 ms; 7 ms lie between the steps."""
    assert titles(advice_of(gpu_steps(6, 9_000, 2_000, [(60, 1_900)]))) == []


@pytest.mark.parametrize("n", [15, 200])
def test_all_gaps_are_counted_however_many_they_are(n):
    findings = advice_of(gpu_steps(n, 1_000, 995, [(30, 350), (720, 270)]))
    gap = next(f for f in findings if f.title == "The device sits idle within the step")
    assert gap.saves_ms == pytest.approx(0.34)
    assert gap.evidence["Long gaps"].endswith(f" in {n - 2}")  # the first and the last step are in no average


def test_an_op_of_the_host_that_the_device_waits_for_is_named():
    findings = advice_of(gpu_steps(8, 2_000, 1_900, [(30, 150), (1_550, 300)], host_op=(200, 1_300)))
    assert findings[0].title == "The device sits idle within the step"
    assert "while the host runs map/PyFunc:PyFunc" in findings[0].statement
    assert "dataset.map" in findings[0].change


def test_a_straggler_is_named_with_its_category():
    spaces = pod_captures(hosts=4, devices=1, steps=12, slow_host=2)
    finding = next(f for f in advice_of(*spaces) if "keeps the others waiting" in f.title)
    assert finding.title.startswith("worker-2")
    assert finding.evidence["Category"] == "Input"


def test_findings_are_ranked_and_each_has_evidence_and_a_change():
    findings = advice_of(idle_gpus(1))
    weight = {"high": 1.0, "medium": 0.6, "low": 0.3}
    value = [f.saves_ms * weight[f.confidence] for f in findings]
    assert len(findings) > 1
    assert value == sorted(value, reverse=True)
    assert all(f.evidence and f.change and f.links for f in findings)


def test_a_capture_without_steps_and_ops_gives_no_finding():
    space = Space()
    space.plane("/host:CPU").line("python", id=1).event("anything", 0, 5)
    assert advice_of(space) == []


def test_the_slow_device_of_a_synchronous_step_is_blamed_and_not_the_exchange():
    """One device computes for 1.4 ms, the other for 0.6, and waits for it in the all-reduce, which itself takes 0.1 ms."""
    space = Space("worker-0")
    host = space.plane("/host:CPU")
    python, executor = host.line("python", id=1), host.line("tf_Compute/2", id=2)
    streams = [space.plane(f"/device:GPU:{i}", id=i).line("Stream #1(Kernel)", id=1) for i in range(2)]
    for step in range(10):
        at = 2_000 * step
        python.event("train", at, 1_900, step_num=step, _r=1)
        python.event("FunctionRun", at + 1, 2, id=1000 + step, _r=1)
        executor.event("ExecutorState::Process", at + 4, 60, id=1000 + step, iter_num=0)
        for i, compute in enumerate((600, 1_400)):
            correlation = 2 * step + i + 1
            executor.event("cuLaunchKernel", at + 10 + 2 * i, 1, correlation_id=correlation)
            streams[i].event("sgemm", at + 50, compute, tf_op="dense/Cast:Cast", correlation_id=correlation)
            streams[i].event("ncclDevKernel_AllReduce", at + 50 + compute, 1_500 - compute, correlation_id=correlation)
    findings = advice_of(space)
    first = findings[0]
    assert first.title == "worker-0 /device:GPU:1 keeps the others waiting"
    assert "mostly Device compute; the others wait 800 µs for it in collectives" in first.statement
    assert "nvidia-smi" in first.change
    assert "Devices spend their time exchanging gradients" not in titles(findings)
