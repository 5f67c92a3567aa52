"""Which event encloses which: nesting of the events of many lines at once, without a loop over events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def line_order(
    line: NDArray[np.int32], start_ps: NDArray[np.int64], duration_ps: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Order events by line, start, and longest first; None if they are in that order already.

    Parameters
    ----------
    line, start_ps, duration_ps : arrays (N)
        ``line`` must be ascending.
    """
    if len(line) < 2:
        return None
    same = line[1:] == line[:-1]
    step = np.diff(start_ps)
    wrong = same & ((step < 0) | ((step == 0) & (duration_ps[1:] > duration_ps[:-1])))
    if not wrong.any():
        return None
    order = np.arange(len(line))
    bounds = np.flatnonzero(np.concatenate([[True], ~same, [True]]))
    # Only the lines that need it are sorted; most profilers write most lines in order.
    for index in np.unique(np.searchsorted(bounds, np.flatnonzero(wrong), side="right") - 1):
        part = slice(bounds[index], bounds[index + 1])
        order[part] = part.start + np.lexsort((-duration_ps[part], start_ps[part]))
    return order


def disjoint_times(
    line: NDArray[np.int32], start_ps: NDArray[np.int64], end_ps: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Shift each line's times behind those of the line before, so that one sorted array holds them all."""
    if not len(line):
        return start_ps, end_ps
    first = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
    low = np.minimum.reduceat(start_ps, first)
    high = np.maximum.reduceat(end_ps, first)
    span = (high - low).astype(np.float64) + 1
    if span.sum() >= 2.0**62:  # only damaged files: use the times' ranks instead
        _, rank = np.unique(np.concatenate([start_ps, end_ps]), return_inverse=True)
        ranks = rank.astype(np.int64).reshape(2, -1)
        return disjoint_times(line, ranks[0], ranks[1])
    base = np.concatenate([[0], np.cumsum(high - low + 1)[:-1]]) - low
    shift = np.repeat(base, np.diff(np.concatenate([first, [len(line)]])))
    return start_ps + shift, end_ps + shift


def nest(
    line: NDArray[np.int32], start_ps: NDArray[np.int64], duration_ps: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Depth, parent and effective end of each event.

    Events of a line normally nest. Where two overlap in part, the rule is that of XProf's event stack:
    the end of the outer one closes the inner one too, which is then not *whole* (its effective end is before its end).
    Events without a duration enclose nothing.

    Parameters
    ----------
    line, start_ps, duration_ps : arrays (N)
        In the order of `line_order`.

    Returns
    -------
    depth : int32 array (N)
        0 for events inside no other.
    parent : int32 array (N)
        Index of the innermost enclosing event; -1 if there is none.
    effective_end_ps : int64 array (N)
        The end, or an enclosing event's earlier end.
    """
    solid = duration_ps > 0
    end_ps = start_ps + duration_ps
    if not solid.any():  # nothing encloses anything
        return np.zeros(len(line), np.int32), np.full(len(line), -1, np.int32), end_ps
    start, end = disjoint_times(line, start_ps, end_ps)
    depth, parent = _enclosing(start, end)
    inside = np.flatnonzero(parent >= 0)
    crossing = inside[end[inside] > end[parent[inside]]]
    if not len(crossing):
        return depth, parent, end_ps

    # Redo the lines in which events overlap in part.
    todo = np.flatnonzero(solid & np.isin(line, np.unique(line[crossing])))
    effective = end.copy()
    effective[todo] = _effective_ends(line[todo], start[todo], end[todo])
    depth, parent = _enclosing(start, effective)
    # Back to the events' own times: a cut end is the end of an event that encloses it.
    cut = np.flatnonzero(effective != end)
    by_end = np.argsort(end, kind="stable")
    effective_ps = end_ps.copy()
    effective_ps[cut] = end_ps[by_end[np.searchsorted(end[by_end], effective[cut])]]
    return depth, parent, effective_ps


def child_sum(parent: NDArray[np.int32], value: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of ``value`` over the direct children of each event, exact in int64."""
    total = np.zeros(len(parent), np.int64)
    inside = np.flatnonzero(parent >= 0)
    if not len(inside):
        return total
    owner = parent[inside]
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    first = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
    total[owner[first]] = np.add.reduceat(value[inside][order], first)
    return total


def nearest(parent: NDArray[np.int32], mask: NDArray[np.bool_], events: NDArray[np.int64]) -> NDArray[np.int64]:
    """Innermost enclosing event of some kind, for a few events.

    Parameters
    ----------
    parent : int32 array (N)
        As `nest` gives it.
    mask : bool array (N)
        The events that count.
    events : int64 array (K)
        The events asked about.

    Returns
    -------
    int64 array (K)
        Index of each one's innermost enclosing event in ``mask``; -1 if there is none.
    """
    found = parent[events].astype(np.int64)
    active = np.flatnonzero(found >= 0)
    active = active[~mask[found[active]]]
    while len(active):
        found[active] = parent[found[active]]
        active = active[found[active] >= 0]
        active = active[~mask[found[active]]]
    return found


def stable_order(key: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Sort by a key that isn't negative, equal ones in their order; in linear time if it fits in 16 bits, as it mostly does."""
    return np.argsort(key.astype(np.int16) if key.max(initial=0) < 2**15 else key, kind="stable")


def _enclosing(start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Depth and parent of events of which none overlaps another in part, starts ascending."""
    n = len(start)
    # An event encloses the next, or nothing; it closes at the first one that starts not before its end.
    encloses = start[1:] < end[:-1]
    closing = np.bincount(np.searchsorted(start, end[:-1][encloses]), minlength=n)[1:n]
    change: NDArray[np.int32] = encloses - closing.astype(np.int32)
    depth = np.zeros(n, np.int32)
    np.cumsum(change, out=depth[1:])
    # An event deeper than the one before it lies in that one; any other is a sibling of the last one of its depth.
    by_depth = stable_order(depth)
    is_first = np.zeros(n, np.bool_)
    is_first[1:] = change > 0
    last_first = np.maximum.accumulate(np.where(is_first[by_depth], np.arange(n, dtype=np.int32), 0))
    parent = np.empty(n, np.int32)
    parent[by_depth] = by_depth[last_first] - 1
    parent[depth == 0] = -1
    return depth, parent


def _effective_ends(line: NDArray[np.int32], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ends of events that overlap in part, none after that of an event around it; one level of the stack at a time.

    At each level the first event of a block stays; the next to stay is the first one that starts after its
    effective end, and so on: a chain that is followed by doubling the length of the jump.
    """
    effective = end.copy()
    above = np.full(len(line), -1, np.int64)
    block: NDArray[np.integer[Any]] = line  # events of one block share their parent
    alive = np.arange(len(line))
    while len(alive):
        first = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]]))
        size = np.diff(np.concatenate([first, [len(alive)]]))
        block_end = np.repeat(first + size, size)
        limit = np.where(above[alive] >= 0, effective[above[alive]], np.iinfo(np.int64).max)
        clipped = np.minimum(end[alive], limit)
        following = np.minimum(np.searchsorted(start[alive], clipped, side="left"), block_end)
        stays = np.zeros(len(alive) + 1, np.bool_)
        stays[first] = True
        jump = np.append(np.where(following < block_end, following, len(alive)), len(alive))
        while True:
            reached = jump[np.flatnonzero(stays)]
            if stays[reached].all():
                break
            stays[reached] = True
            jump = jump[jump]
        stays = stays[:-1]
        member = np.flatnonzero(stays)
        effective[alive[member]] = clipped[member]
        # The rest lie between one member and the next: that member is their parent.
        rest = np.flatnonzero(~stays)
        block = np.searchsorted(member, rest, side="right") - 1
        above[alive[rest]] = alive[member[block]]
        alive = alive[rest]
    return effective
