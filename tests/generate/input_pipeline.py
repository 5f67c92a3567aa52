"""A training loop that reads from tf.data: source → parallel map → prefetch, played through event by event.

When each element is read, mapped, buffered and taken follows from the times given, so what the loop waits for is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Space

HANDOVER_US = 2
LAUNCH_US = 4
ROOT, PREFETCH, MAP, SOURCE = 9_212_745_863_890_739_253, 16_284_188_150_987_819_417, 5_642_542_297_021_772_594, 77


@dataclass
class Played:
    """What `input_pipeline_capture` played.

    Attributes
    ----------
    space : Space
        The profile.
    waited_us : list of float
        Time of each call of the outermost iterator, from its start until the element was there.
    function_us : float
        Time that the map function ran in all, launching included.
    elements : int
        Elements read from the source.
    """

    space: Space
    waited_us: list[float]
    function_us: float
    elements: int


def input_pipeline_capture(
    steps: int = 12,
    *,
    source_us: float = 100,
    map_us: float = 100,
    parallelism: int = 1,
    buffer: int = 2,
    step_us: float = 1000,
    source: str = "TFRecord",
    function_op: str = "decode:DecodeJpeg",
    marked: bool = True,
    space: Space | None = None,
    start_us: float = 1000,
) -> Played:
    """Generate the profile of a loop whose input is made in the background.

    Parameters
    ----------
    steps : int
        Batches that the loop takes.
    source_us, map_us : float
        Time to read an element, and time of the map function for it.
    parallelism : int
        Map functions that run at the same time.
    buffer : int
        Elements that are kept ready.
    step_us : float
        Time of a step without waiting for input.
    source : str
        Name of the source's stage.
    function_op : str
        The op that the map function runs.
    marked : bool
        Whether steps are marked.
    space : Space, optional
        Where to add the events (a plane ``/host:CPU`` of its own); a new one by default.
    start_us : float
        When the loop begins.

    Returns
    -------
    Played
    """
    space = Space("worker-0") if space is None else space
    plane = space.plane("/host:CPU")
    python = plane.line("python", id=1)
    prefetcher = plane.line("tf_data_iterator_resource/2", id=2)
    runner = plane.line("tf_data_iterator_resource/3", id=3)
    pool = [plane.line(f"tf_data_private_threadpool/{4 + i}", id=4 + i) for i in range(parallelism)]
    pool_free = [start_us] * parallelism

    root, prefetch = "Iterator::Root", "Iterator::Root::Prefetch"
    mapped, read = f"{prefetch}::ParallelMapV2", f"{prefetch}::ParallelMapV2::{source}"
    taken: list[float] = []  # by the loop
    popped: list[float] = []  # by the prefetcher
    ready: list[float] = []  # in the prefetch buffer
    waited: list[float] = []
    runner_free = prefetcher_free = begin = start_us
    function_us = 0.0
    for n in range(steps):
        # The runner reads one element after the other, as long as few enough are under way.
        at = max(runner_free, popped[n - parallelism] if n >= parallelism else start_us)
        launched = at + source_us + LAUNCH_US
        runner.event("ParallelMapProduce", at, launched + 1 - at, element_id=1000 + n)
        runner.event(read, at, source_us, id=SOURCE, parent_id=MAP, name=f"{source}Dataset:0")
        runner.event("InstantiatedCapturedFunction::RunAsync", at + source_us, LAUNCH_US, id=-(n + 1) * 7919)
        runner_free = launched + 1
        # The function, on whichever thread is free first.
        thread = min(range(parallelism), key=pool_free.__getitem__)
        begun = max(launched, pool_free[thread])
        pool[thread].event("ExecutorState::Process", begun, map_us, id=-(n + 1) * 7919, iter_num=0)
        pool[thread].event(function_op, begun + map_us * 0.05, map_us * 0.9)
        pool_free[thread] = mapped_at = begun + map_us
        function_us += LAUNCH_US + map_us
        # The prefetcher takes it, as soon as there is room in its buffer.
        asked = max(prefetcher_free, taken[n - buffer] if n >= buffer else start_us)
        pop = max(asked + HANDOVER_US, mapped_at)
        prefetcher.event("PrefetchProduce", asked, pop + 3 - asked, element_id=2000 + n)
        prefetcher.event(
            mapped, asked + 1, pop + 1 - asked, id=MAP, parent_id=PREFETCH, parallelism=parallelism, autotune="false",
            interleave_depth=0, **({"buffered_elements": 1} if mapped_at <= asked else {}),
        )  # fmt: skip
        prefetcher.event("ParallelMapConsume", pop, 1, element_id=1000 + n)
        prefetcher_free = pop + 3
        popped.append(pop)
        ready.append(prefetcher_free)
        # The loop takes it.
        got = max(begin + 3 + HANDOVER_US, ready[n])
        count = sum(r <= begin + 3 for r in ready) - n
        if marked:
            python.event("train", begin, got + 4 + step_us - begin, step_num=n, _r=1)
        python.event("IteratorGetNextOp::DoCompute", begin + 1, got + 3 - begin - 1, id=9000 + n, iter_num=0)
        python.event(
            root,
            begin + 2,
            got + 2 - begin - 2,
            id=ROOT,
            name="PrefetchDataset:2",
            shapes="[64]",
            types="float",
            cpu_budget=4,
        )
        python.event(
            prefetch, begin + 3, got + 1 - begin - 3, id=PREFETCH, parent_id=ROOT, buffer_limit=buffer, autotune="true",
            interleave_depth=0, **({"buffered_elements": count} if count > 0 else {}),
        )  # fmt: skip
        python.event("PrefetchConsume", got, 1, element_id=2000 + n)
        python.event("model/MatMul:MatMul", got + 4, step_us)
        taken.append(got)
        waited.append(got - begin - 3)
        begin = got + 4 + step_us
    return Played(space, waited, function_us, steps)
