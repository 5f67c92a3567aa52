"""tf.data's iterator events: which stage of which pipeline each belongs to, and what its time was.

Every call of an iterator's ``GetNext`` is one event. A stage that works ahead (prefetch, parallel map, …) runs its input
on another thread, inside an ``XProduce`` event; the call that takes an element holds an ``XConsume`` event with the same
``element_id``. Functions given to a stage (``map``, ``filter``, generators) are ``InstantiatedCapturedFunction`` events;
their ops run under ``ExecutorState::Process`` events with the same ``id``, mostly on other threads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .nesting import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .events import Trace

_PRODUCE = re.compile(r"(Prefetch|Parallel\w+|MapAndBatch|ParseExample)(Produce|InitializeInput)")
_CONSUME = re.compile(r"(Prefetch|Parallel\w+|MapAndBatch|ParseExample)Consume")
_CAPTURED = "InstantiatedCapturedFunction::"
# What `_sort` knows more about.
_CANDIDATES = f"^(Iterator::|{_CAPTURED}|ExecutorState::Process$)|(Produce|InitializeInput|Consume)$"
_OTHER, _ROOT, _ITERATOR, _PRODUCER, _CONSUMER, _FUNCTION, _EXECUTOR = range(7)
_PYTHON_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
# Stages whose result is made on other threads, or by another process; their names may have a version (ParallelMapV2).
_ASYNCHRONOUS = re.compile(
    r"(Legacy)?(Prefetch|ParallelInterleave|ParallelMap|ParseExample|MapAndBatch|ParallelBatch|DataService)(V\d+)?"
)
_INDEX = re.compile(r"\[\d+\]")
# Stages with several inputs: the number in their name says which input. In others it counts iterators made one after another.
_SEVERAL_INPUTS = re.compile(
    r"(Zip|Concatenate|DirectedInterleave|SampleFromDatasets|ChooseFrom\w*|ChooseFastest\w*)(V\d+)?\["
)


@dataclass(frozen=True)
class Iterators:
    """The iterator events of a trace. I events, U iterators, S stages.

    Attributes
    ----------
    event : int64 array (I)
        Their indices in the trace, ascending.
    iterator : int64 array (I)
        Iterator of each event.
    stage : int64 array (I)
        Stage of each event.
    self_ps, wait_ps : int64 arrays (I)
        Duration less that of ops nested in it on its thread (XProf's self time); and how much of it was spent waiting
        for another thread.
    caller : int64 array (I)
        The iterator event that waited for this one or called it, across threads; -1 for calls from outside the
        pipeline, and for elements made in advance that nobody took while the trace ran.
    is_root_call : bool array (I)
        Calls of a pipeline's outermost iterator.
    parent_iterator : int64 array (U)
        The iterator that reads from each one; itself at the top of what is known.
    top_iterator : int64 array (U)
        The outermost one of each one's pipeline.
    iterator_stage : int64 array (U)
        Stage of each iterator.
    function_ps, python_ps, overhead_ps : int64 arrays (U)
        Thread time in the functions given to each iterator (launching and running them), how much of that in Python
        functions, and the thread time of handing elements over in the background (which is in no iterator event).
    stage_name : list of str (S)
        Name of each stage: the iterators' long name with ``[*]`` for numbers that only count iterators.
    stage_parent : int64 array (S)
        The stage that reads from each one; -1 at the top.
    """

    event: NDArray[np.int64]
    iterator: NDArray[np.int64]
    stage: NDArray[np.int64]
    self_ps: NDArray[np.int64]
    wait_ps: NDArray[np.int64]
    caller: NDArray[np.int64]
    is_root_call: NDArray[np.bool_]
    parent_iterator: NDArray[np.int64]
    top_iterator: NDArray[np.int64]
    iterator_stage: NDArray[np.int64]
    function_ps: NDArray[np.int64]
    python_ps: NDArray[np.int64]
    overhead_ps: NDArray[np.int64]
    stage_name: list[str]
    stage_parent: NDArray[np.int64]


def iterators(trace: Trace) -> Iterators:
    """Find the iterator events of a trace, and what belongs to them."""
    names = trace.space.meta_name
    sort = np.full(len(names), _OTHER, np.int8)
    candidates = np.flatnonzero(trace.meta_search(_CANDIDATES) & trace.plane_is_host[trace.space.meta_plane])
    sort[candidates] = [_sort(names[i]) for i in candidates.tolist()]
    sort = sort[trace.meta]
    is_iterator = (sort == _ROOT) | (sort == _ITERATOR)
    event = np.flatnonzero(is_iterator)
    produce, consume = np.flatnonzero(sort == _PRODUCER), np.flatnonzero(sort == _CONSUMER)
    captured, process = np.flatnonzero(sort == _FUNCTION), np.flatnonzero(sort == _EXECUTOR)
    is_root = sort[event] == _ROOT
    around_mask = is_iterator | (sort == _PRODUCER)
    del sort
    meta = trace.meta[event]

    # Iterators have an id, the hash of a name and an address; what has none goes by its name.
    stat_id = trace.ints("id")
    iterator_id = _values(stat_id, event)
    parent_id = _values(trace.ints("parent_id"), event)
    iterator_id = np.where(iterator_id == 0, meta, iterator_id)

    # On a thread: the iterator or the background producer around each event.
    around = nearest(trace.parent, around_mask, event)
    row_of = _Rows(event, len(trace))
    caller = row_of(around)
    made_by = np.where((around >= 0) & (caller < 0), around, -1)  # the producer, for what is made in the background
    caller[is_root] = -1
    consumer = row_of(nearest(trace.parent, is_iterator, consume))
    consume, consumer = consume[consumer >= 0], consumer[consumer >= 0]
    _link(trace, event, iterator_id, parent_id, made_by, consume, consumer, caller)

    iterator, parent_iterator, top_iterator = _identify(trace, event, iterator_id, parent_id, caller, is_root)
    iterator_meta = np.full(len(parent_iterator), -1, np.int64)
    iterator_meta[iterator] = meta
    iterator_stage, stage_name, stage_parent = _stages(names, iterator_meta, parent_iterator)
    self_ps, inner_op, inner_owner = _op_self(trace, event, row_of)
    wait_ps = _waits(trace, event, meta, self_ps, inner_op, inner_owner, consume, consumer, captured, row_of)
    function_ps, python_ps, overhead_ps = _functions(
        trace, stat_id, iterator, parent_iterator, event, made_by, produce, captured, process, around_mask, row_of
    )
    return Iterators(
        event, iterator, iterator_stage[iterator], self_ps, wait_ps, caller, is_root, parent_iterator, top_iterator,
        iterator_stage, function_ps, python_ps, overhead_ps, stage_name, stage_parent,
    )  # fmt: skip


def is_asynchronous(stage_name: str) -> bool:
    """Whether a stage's elements are made on other threads."""
    return _ASYNCHRONOUS.fullmatch(short_name(stage_name)) is not None


def short_name(stage_name: str) -> str:
    """Return the last part of a stage's name."""
    return stage_name.rpartition("::")[2]


def _sort(name: str) -> int:
    """What an event is, by its name."""
    if name.startswith("Iterator::"):
        return _ROOT if name.count("::") == 1 else _ITERATOR
    if name.startswith(_CAPTURED):
        return _FUNCTION
    if name.endswith(("Produce", "InitializeInput")) and _PRODUCE.fullmatch(name):
        return _PRODUCER
    if name.endswith("Consume") and _CONSUME.fullmatch(name):
        return _CONSUMER
    return _EXECUTOR if name == "ExecutorState::Process" else _OTHER


def _names_mask(trace: Trace, meta: NDArray[np.int32], rule: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Mask over the metadata rows: those among ``meta`` whose name fulfils a rule."""
    mask = np.zeros(len(trace.space.meta_name), np.bool_)
    for m in np.unique(meta):
        mask[m] = rule(trace.space.meta_name[m])
    return mask


def _is_launch(trace: Trace, captured: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Calls of functions that don't wait for them."""
    meta = trace.meta[captured]
    return _names_mask(trace, meta, lambda name: name.endswith("RunAsync"))[meta]


class _Rows:
    """Position of events among a few chosen ones; -1 for others (and for -1)."""

    def __init__(self, chosen: NDArray[np.int64], n_events: int) -> None:
        self._row = np.full(n_events + 1, -1, np.int32)
        self._row[chosen] = np.arange(len(chosen))

    def __call__(self, events: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        return self._row[events].astype(np.int64)


def _values(stat: tuple[NDArray[np.int64], NDArray[np.int64]], events: NDArray[np.int64]) -> NDArray[np.int64]:
    """Values of an integer stat (as `Trace.ints` gives it) for a few events; 0 where it is missing."""
    owner, value = stat
    if not len(owner):
        return np.zeros(len(events), np.int64)
    row = np.minimum(np.searchsorted(owner, events), len(owner) - 1)
    return np.where(owner[row] == events, value[row], 0)


def _ends(trace: Trace, events: NDArray[np.int64]) -> NDArray[np.int64]:
    return trace.start_ps[events] + trace.duration_ps[events]


def _fold(name: str) -> str:
    """Name of the stage of an iterator's long name, without the numbers that only count iterators."""
    if "[" not in name:
        return name
    return "::".join(p if _SEVERAL_INPUTS.match(p) else _INDEX.sub("[*]", p) for p in name.split("::"))


def _identify(
    trace: Trace,
    event: NDArray[np.int64],
    iterator_id: NDArray[np.int64],
    parent_id: NDArray[np.int64],
    caller: NDArray[np.int64],
    is_root: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Iterator of each event (I), and the iterators' parents and outermost iterators (U).

    An id says too little: the validation's prefetch may get the address, and so the id, that the training's had the epoch before.
    So an iterator is an id together with its outermost iterator, which is known from the calls. For an element that nobody took
    it is that of the id's last element which somebody took.
    """
    n = len(event)
    has_parent = parent_id != 0
    code, ids = pd.factorize(np.concatenate([iterator_id, parent_id[has_parent]]))
    own = code[:n]
    above = np.full(n, -1, np.int64)
    above[has_parent] = code[n:]
    by_id = np.arange(len(ids))
    by_id[own[has_parent]] = above[has_parent]
    by_id = _follow(by_id)

    outermost = _follow(np.where(caller >= 0, caller, np.arange(n)))
    known = is_root[outermost]
    top = np.where(known, own[outermost], -1)
    if not known.all():
        order = np.lexsort((trace.start_ps[event], own))
        group = own[order]
        position = np.arange(n)
        before = np.maximum.accumulate(np.where(known[order], position, -1))
        after = np.minimum.accumulate(np.where(known[order], position, n)[::-1])[::-1]
        near = np.where((before >= 0) & (group[before] == group), before, np.minimum(after, n - 1))
        near_top = np.where((group[near] == group) & known[order[near]], top[order[near]], by_id[group])
        guess = np.empty(n, np.int64)
        guess[order] = near_top
        top = np.where(known, top, guess[outermost])

    tops = np.flatnonzero(np.bincount(top, minlength=len(ids)))
    where = np.searchsorted(tops, top)
    width = len(tops) + 1
    keys = np.concatenate(
        [own * width + where, (above * width + where)[has_parent], tops * width + np.arange(len(tops))]
    )
    instance, keys = pd.factorize(keys)
    iterator = instance[:n]
    parent_iterator = np.arange(len(keys))
    parent_iterator[iterator[has_parent]] = instance[n : n + np.count_nonzero(has_parent)]
    top_instance = instance[n + np.count_nonzero(has_parent) :]
    return iterator, parent_iterator, top_instance[keys % width]


def _follow(upper: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where a chain ends, for every element. Each round doubles the distance; damaged ids that form a ring end anywhere in it."""
    for _ in range(16):
        further = upper[upper]
        if (further == upper).all():
            break
        upper = further
    return upper


def _stages(
    names: list[str], iterator_meta: NDArray[np.int64], parent_iterator: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[str], NDArray[np.int64]]:
    """Stage of each iterator, and the stages' names and parents. An iterator that was never called is named by one that it reads."""
    known = np.unique(iterator_meta[iterator_meta >= 0])
    code: dict[str, int] = {}
    of_meta = np.full(len(names), -1, np.int64)
    for m in known:
        of_meta[m] = code.setdefault(_fold(names[m]), len(code))
    stage = np.where(iterator_meta >= 0, of_meta[iterator_meta], -1)
    silent = np.flatnonzero((stage < 0)[parent_iterator] & (stage >= 0))
    pairs = np.unique(np.stack([parent_iterator[silent], stage[silent]]), axis=1)
    stage_name = list(code)
    for owner, child in pairs.T:
        upper = re.sub(r"\[(\d+|\*)\]$", "", stage_name[child].rpartition("::")[0])
        stage[owner] = code.setdefault(upper, len(code))
    stage_name = list(code)
    stage_parent = np.full(len(stage_name), -1, np.int64)
    inner = np.flatnonzero((parent_iterator != np.arange(len(stage))) & (stage >= 0))
    upper_stage = stage[parent_iterator[inner]]
    different = upper_stage != stage[inner]
    stage_parent[stage[inner][different]] = upper_stage[different]
    return stage, stage_name, stage_parent


def _op_self(
    trace: Trace, event: NDArray[np.int64], row_of: _Rows
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Self time of iterator events among the ops of their thread; the ops directly inside them, and whose each is (row)."""
    duration = trace.duration_ps[event]
    if not len(event):
        return duration, event, event
    # Only on lines with iterators can ops be inside iterators.
    has_iterators = np.zeros(len(trace.space.line_plane), np.bool_)
    has_iterators[trace.line[event]] = True
    here = trace.events_of(has_iterators)
    here = here[trace.meta_is_op[trace.meta[here]]]
    is_op = np.zeros(len(trace), np.bool_)
    is_op[here] = True
    inside = here[trace.parent[here] >= 0]
    row = row_of(nearest(trace.parent, is_op, inside))
    inside, row = inside[row >= 0], row[row >= 0]
    spent = np.zeros(len(event), np.int64)
    np.add.at(spent, row, trace.duration_ps[inside])
    return np.maximum(duration - spent, 0), inside, row


def _link(
    trace: Trace,
    event: NDArray[np.int64],
    iterator_id: NDArray[np.int64],
    parent_id: NDArray[np.int64],
    made_by: NDArray[np.int64],
    consume: NDArray[np.int64],
    consumer: NDArray[np.int64],
    caller: NDArray[np.int64],
) -> None:
    """Set the caller of what was made in the background: the call that took the element."""
    child = np.flatnonzero(made_by >= 0)
    if not len(child) or not len(consume):
        return
    producer, which = np.unique(made_by[child], return_inverse=True)
    element_id = trace.ints("element_id")
    made = _values(element_id, producer)[which]
    taken = _values(element_id, consume)
    wanted = _mix(parent_id[child], made)
    offered = _mix(iterator_id[consumer], taken)
    order = np.argsort(offered, kind="stable")
    offered = offered[order]
    if (offered[1:] == offered[:-1]).any():
        # Counters start again with a new iterator at the same address: the first that ended later is the right one.
        key, end = np.unique(offered), _ends(trace, event[consumer[order]])
        times = np.unique(end)
        offers = np.searchsorted(key, offered) * len(times) + np.searchsorted(times, end)
        inner = np.argsort(offers, kind="stable")
        wants = np.searchsorted(key, wanted) * len(times) + np.searchsorted(times, trace.start_ps[event[child]])
        order, found = order[inner], np.searchsorted(offers[inner], wants)
    else:
        found = np.searchsorted(offered, wanted)
    found_at = order[np.minimum(found, len(order) - 1)]
    same = (found < len(order)) & (iterator_id[consumer[found_at]] == parent_id[child]) & (taken[found_at] == made)
    caller[child[same]] = consumer[found_at[same]]


def _mix(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.uint64]:
    """One 64-bit key for two (compared in full afterwards)."""
    mixed = a.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ b.view(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    return mixed ^ (mixed >> np.uint64(29))


def _waits(
    trace: Trace,
    event: NDArray[np.int64],
    meta: NDArray[np.int32],
    self_ps: NDArray[np.int64],
    inner_op: NDArray[np.int64],
    inner_owner: NDArray[np.int64],
    consume: NDArray[np.int64],
    consumer: NDArray[np.int64],
    captured: NDArray[np.int64],
    row_of: _Rows,
) -> NDArray[np.int64]:
    """How much of each iterator event's self time was waiting."""
    asynchronous = _names_mask(trace, meta, is_asynchronous)[meta]
    # A stage that works ahead waits until it takes the element; if it takes none, all its time was waiting.
    taken = _ends(trace, event)
    np.minimum.at(taken, consumer, trace.start_ps[consume])
    before = np.zeros(len(event), np.int64)
    early = trace.start_ps[inner_op] < taken[inner_owner]
    np.add.at(before, inner_owner[early], trace.duration_ps[inner_op[early]])
    wait = np.where(asynchronous, taken - trace.start_ps[event] - before, 0)
    # A stage that calls a function and needs its result waits as long as nothing else happens on the thread meanwhile.
    call = captured[~_is_launch(trace, captured)]
    owner = row_of(trace.parent[call])
    call, owner = call[owner >= 0], owner[owner >= 0]
    if len(call):
        np.add.at(wait, owner, np.maximum(trace.self_ps[call], 0))
    return np.clip(wait, 0, self_ps)


def _functions(
    trace: Trace,
    stat_id: tuple[NDArray[np.int64], NDArray[np.int64]],
    iterator: NDArray[np.int64],
    parent_iterator: NDArray[np.int64],
    event: NDArray[np.int64],
    made_by: NDArray[np.int64],
    produce: NDArray[np.int64],
    captured: NDArray[np.int64],
    process: NDArray[np.int64],
    around_mask: NDArray[np.bool_],
    row_of: _Rows,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Thread time of each iterator's functions, of Python functions in them, and of its background threads' own work."""
    function = np.zeros(len(parent_iterator), np.int64)
    python = np.zeros(len(parent_iterator), np.int64)
    overhead = np.zeros(len(parent_iterator), np.int64)
    # A producer works for the iterator that reads from what is called in it.
    producer_row = _Rows(produce, len(trace))
    worker = np.full(len(produce), -1, np.int64)
    made = np.flatnonzero(made_by >= 0)
    worker[producer_row(made_by[made])] = parent_iterator[iterator[made]]
    if len(produce):
        inside = producer_row(trace.parent[event])
        launched = captured[producer_row(trace.parent[captured]) >= 0]
        own = trace.duration_ps[produce].copy()
        np.subtract.at(own, inside[inside >= 0], trace.duration_ps[event[inside >= 0]])
        np.subtract.at(own, producer_row(trace.parent[launched]), trace.duration_ps[launched])
        # One inside an iterator event is in that one's self time already.
        outside = (worker >= 0) & (nearest(trace.parent, around_mask, produce) < 0)
        np.add.at(overhead, worker[outside], np.maximum(own[outside], 0))
    if not len(captured):
        return function, python, overhead

    around = nearest(trace.parent, around_mask, captured)
    row, background = row_of(around), producer_row(around)
    of = np.where(background >= 0, np.append(worker, -1)[background], -1)
    of[row >= 0] = iterator[row[row >= 0]]
    call_id = _values(stat_id, captured)
    order = np.argsort(call_id, kind="stable")
    process_id = _values(stat_id, process)
    if len(process):
        at = order[np.minimum(np.searchsorted(call_id[order], process_id), len(order) - 1)]
        mine = (call_id[at] == process_id) & (process_id != 0)
        process, at = process[mine], at[mine]
    else:
        at = process
    asynchronous = _is_launch(trace, captured)
    ran = np.zeros(len(captured), np.bool_)
    ran[at] = True
    # Launching is work too; of a call that left no other trace, the whole call is.
    counted = asynchronous | ~ran
    work = np.concatenate([process, captured[counted]])
    work_of = np.concatenate([of[at], of[counted]])
    mask = np.zeros(len(trace), np.bool_)
    mask[work] = True
    outermost = (nearest(trace.parent, mask, work) < 0) & (work_of >= 0)
    np.add.at(function, work_of[outermost], trace.duration_ps[work[outermost]])

    is_python = np.array([kind in _PYTHON_OPS for kind in trace.ops.type], bool)
    called = np.flatnonzero(is_python[trace.meta]) if is_python.any() else captured[:0]
    if len(called):
        by_index = np.argsort(work, kind="stable")
        inside = _Rows(work[by_index], len(trace))(nearest(trace.parent, mask, called))
        owner = np.where(inside >= 0, work_of[by_index][inside], -1)
        np.add.at(python, owner[owner >= 0], trace.duration_ps[called[owner >= 0]])
    return function, python, overhead


def blame(trace: Trace, its: Iterators) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide the time of the root calls among the iterator events that it was spent in, across threads.

    A root call's time belongs to itself, except for what overlaps with the calls that it made or waited for; their time
    (as far as it lies in the root call's) is divided in the same way.

    Parameters
    ----------
    trace : Trace
        The events.
    its : Iterators
        Its iterator events.

    Returns
    -------
    blocking_ps : int64 array (I)
        Time for which each event held up the root call; sums to the root calls' durations.
    root : int64 array (I)
        Row of the root call that each event held up; -1 for events that held up none.
    """
    n = len(its.event)
    blocking = np.zeros(n, np.int64)
    root = np.full(n, -1, np.int64)
    start = trace.start_ps[its.event]
    end = _ends(trace, its.event)
    by_caller = np.argsort(its.caller, kind="stable")
    sorted_caller = its.caller[by_caller]
    level = np.flatnonzero(its.is_root_call)
    root[level] = level
    blocking[level] = end[level] - start[level]
    while len(level):
        first = np.searchsorted(sorted_caller, level, side="left")
        count = np.searchsorted(sorted_caller, level, side="right") - first
        inner = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        child = by_caller[np.repeat(first, count) + inner]
        owner = np.repeat(level, count)
        fresh = root[child] < 0  # damaged ids could form a ring
        child, owner = child[fresh], owner[fresh]
        low = np.maximum(start[child], start[owner])
        high = np.minimum(end[child], end[owner])
        keep = high > low
        child, owner, low, high = child[keep], owner[keep], low[keep], high[keep]
        if not len(child):
            break
        order = np.lexsort((low, owner))
        child, owner, low, high = child[order], owner[order], low[order], high[order]
        # Siblings on several threads may overlap: the time goes to the one that began first.
        group = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
        size = np.diff(np.concatenate([group, [len(owner)]]))
        span = end[owner[group]] - start[owner[group]] + 1
        shift = np.repeat(np.concatenate([[0], np.cumsum(span)[:-1]]) - start[owner[group]], size)
        reach = np.maximum.accumulate(high + shift)
        low = np.maximum(low + shift, np.concatenate([[low[0] + shift[0]], reach[:-1]])) - shift
        keep = high > low
        child, owner, low, high = child[keep], owner[keep], low[keep], high[keep]
        start[child], end[child] = low, high
        root[child] = root[owner]
        blocking[child] = high - low
        np.subtract.at(blocking, owner, high - low)
        level = child
    return blocking, root
