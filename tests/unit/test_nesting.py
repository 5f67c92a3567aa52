"""Nesting without a loop over events must equal what a plain stack gives."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfprof_widgets.analysis.nesting import child_sum, line_order, nest
from tfprof_widgets.xspace import read


def ordered(events):
    """Arrays of (line, start, duration) triples in the order of `line_order`."""
    events = sorted(events, key=lambda e: e[0])
    line = np.array([e[0] for e in events], np.int32)
    start = np.array([e[1] for e in events], np.int64)
    duration = np.array([e[2] for e in events], np.int64)
    order = line_order(line, start, duration)
    return (line, start, duration) if order is None else (line[order], start[order], duration[order])


def by_stack(line, start, duration):
    """XProf's event stack: a begin pushes; an end pops until its own event, closing what overlaps it in part.

    Returns depth, parent and effective end, as lists.
    """
    n = len(line)
    depth, parent, effective = [0] * n, [-1] * n, [0] * n
    points = []
    for i in range(n):
        if duration[i] > 0:
            points.append((line[i], start[i] + duration[i], 0, i))  # what ends at a time is closed before what begins
        points.append((line[i], start[i], 1, i))
    points.sort()
    stack, current = [], None
    for on, time, begins, i in points:
        if on != current:
            stack, current = [], on
        if begins:
            depth[i], parent[i] = len(stack), stack[-1] if stack else -1
            effective[i] = time  # of an instant, which encloses nothing; of others until they are popped
            if duration[i] > 0:
                stack.append(i)
        elif i in stack:
            while True:
                closed = stack.pop()
                effective[closed] = time
                if closed == i:
                    break
    return depth, parent, effective


times = st.one_of(st.integers(0, 12), st.integers(0, 10**13))
events = st.lists(st.tuples(st.integers(0, 3), times, st.one_of(st.integers(0, 6), times)), max_size=40)
# As damaged files have them: the reader lets pass what is below 2^60.
far = st.integers(-(2**60), 2**60)
wild = st.lists(st.tuples(st.integers(0, 5), far, st.integers(0, 2**60)), max_size=12)


def check(triples):
    line, start, duration = ordered(triples)
    depth, parent, effective = nest(line, start, duration)
    expected = by_stack(line.tolist(), start.tolist(), duration.tolist())
    assert (depth.tolist(), parent.tolist(), effective.tolist()) == expected


@settings(max_examples=300, deadline=None)
@given(events)
def test_equals_a_stack(triples):
    check(triples)


@settings(max_examples=100, deadline=None)
@given(wild)
# Together the lines span more than an int64 holds.
@example([(line, -(2**60), 2**60) for line in range(6)] + [(0, 0, 2**60), (0, 3, 2**60)])
def test_equals_a_stack_in_damaged_files(triples):
    check(triples)


@settings(max_examples=200, deadline=None)
@given(events)
def test_time_of_a_line_is_shared_out_without_rest(triples):
    """Self times of a line add up to the time in which any of its events was open, each at most its own duration."""
    line, start, duration = ordered(triples)
    _, parent, effective = nest(line, start, duration)
    length = effective - start
    own = length - child_sum(parent, length)
    assert (own >= 0).all()
    assert (own <= duration).all()
    for number in set(line.tolist()):
        mine = line == number
        top = mine & (parent < 0)
        assert own[mine].sum() == length[top].sum()


@given(events)
def test_line_order_is_a_permutation_into_start_and_longest_first(triples):
    triples = sorted(triples, key=lambda e: e[0])
    line, start, duration = ordered(triples)
    rows = list(zip(line.tolist(), start.tolist(), duration.tolist(), strict=True))
    assert rows == sorted(triples, key=lambda e: (e[0], e[1], -e[2]))


def test_no_events():
    empty = np.empty(0, np.int64)
    depth, parent, effective = nest(empty.astype(np.int32), empty, empty)
    assert len(depth) == len(parent) == len(effective) == 0
    assert line_order(empty.astype(np.int32), empty, empty) is None


def test_what_ends_with_its_parent_is_whole_and_what_outlasts_it_is_not():
    line = np.zeros(3, np.int32)
    start, duration = np.array([0, 5, 8], np.int64), np.array([10, 5, 4], np.int64)
    depth, parent, effective = nest(line, start, duration)
    assert parent.tolist() == [-1, 0, 1]
    assert depth.tolist() == [0, 1, 2]
    assert effective.tolist() == [10, 10, 10]


def test_equals_a_stack_on_a_real_capture(capture):
    space = read(capture("cpu_loop"))
    line, start, duration = space.event_line, space.event_start_ps, space.event_duration_ps
    order = line_order(line, start, duration)
    if order is not None:
        start, duration = start[order], duration[order]
    depth, parent, effective = nest(line, start, duration)
    expected = by_stack(line.tolist(), start.tolist(), duration.tolist())
    assert (depth.tolist(), parent.tolist(), effective.tolist()) == expected
