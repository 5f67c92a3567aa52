"""Which event encloses which: nesting of the events of many lines at once, without a loop over events."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    n = len(line)
    start, end = disjoint_times(line, start_ps, start_ps + duration_ps)
    solid = duration_ps > 0
    if not solid.any():  # nothing encloses anything
        return np.zeros(n, np.int32), np.full(n, -1, np.int32), start_ps + duration_ps
    every = bool(solid.all())
    solid_at = np.arange(n) if every else np.flatnonzero(solid)
    s_start, s_end = (start, end) if every else (start[solid_at], end[solid_at])

    s_depth = _depth(s_start, s_end)
    s_parent = _parents(s_depth, s_depth, np.arange(len(s_start)))
    inside = s_parent >= 0
    s_effective = s_end
    if (s_end[inside] > s_end[s_parent[inside]]).any():
        s_line = line if every else line[solid_at]
        s_depth, s_parent, s_effective = _nest_overlapping(s_line, s_start, s_end, s_depth, s_parent)

    if every:
        depth, parent, effective = s_depth, s_parent, s_effective
    else:
        # An instant lies in whatever is open at its time; `closed` are solid events that ended by then.
        at = np.flatnonzero(~solid)
        opened = np.searchsorted(s_start, start[at], side="right")
        closed = np.searchsorted(np.sort(s_effective), start[at], side="right")
        depth = np.empty(n, np.int32)
        parent = np.empty(n, np.int32)
        effective = end.copy()
        depth[solid_at], depth[at] = s_depth, opened - closed
        found = _parents(s_depth, depth[at], opened)
        parent[solid_at] = np.where(s_parent >= 0, solid_at[s_parent], -1)
        parent[at] = np.where(found >= 0, solid_at[found], -1)
        effective[solid_at] = s_effective
    # Back to the events' own times: a cut end is the end of an event that encloses it.
    end_ps = start_ps + duration_ps
    cut = np.flatnonzero(effective != end)
    effective_ps = end_ps
    if len(cut):
        by_end = np.argsort(end, kind="stable")
        effective_ps = end_ps.copy()
        effective_ps[cut] = end_ps[by_end[np.searchsorted(end[by_end], effective[cut])]]
    return depth.astype(np.int32), parent.astype(np.int32), effective_ps


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


def _depth(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Events opened before, less those closed by then."""
    return np.arange(len(start)) - np.searchsorted(np.sort(end), start, side="right")


def _parents(
    depth: NDArray[np.int64], child_depth: NDArray[np.int64], position: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each child, the last event before ``position`` that is one level up; -1 at level 0."""
    parent = np.full(len(child_depth), -1, np.int64)
    if not len(depth) or not len(child_depth):
        return parent
    by_level = np.argsort(depth.astype(np.int32), kind="stable")
    bounds = np.searchsorted(depth[by_level], np.arange(int(depth.max()) + 2))
    children = np.argsort(child_depth.astype(np.int32), kind="stable")
    child_bounds = np.searchsorted(child_depth[children], np.arange(int(child_depth.max()) + 2))
    for level in range(1, len(child_bounds) - 1):
        mine = children[child_bounds[level] : child_bounds[level + 1]]
        upper = by_level[bounds[level - 1] : bounds[level]] if level < len(bounds) else by_level[:0]
        found = np.searchsorted(upper, position[mine]) - 1
        if len(upper):
            parent[mine] = np.where(found >= 0, upper[np.maximum(found, 0)], -1)
    return parent


def _nest_overlapping(
    line: NDArray[np.int32],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    depth: NDArray[np.int64],
    parent: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Redo the lines in which events overlap in part, one level of the stack at a time.

    At each level the first event of a block stays; the next to stay is the first one that starts after its
    effective end, and so on: a chain that is followed by doubling the length of the jump.
    """
    depth, parent, effective = depth.copy(), parent.copy(), end.copy()
    inside = parent >= 0
    crossing = np.unique(line[np.flatnonzero(inside)[end[inside] > end[parent[inside]]]])
    todo = np.flatnonzero(np.isin(line, crossing))
    n = len(todo)
    s, e = start[todo], end[todo]
    _, block = np.unique(line[todo], return_inverse=True)  # events of one block share their parent
    above = np.full(n, -1, np.int64)
    level = 0
    alive = np.arange(n)
    while len(alive):
        first = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]]))
        size = np.diff(np.concatenate([first, [len(alive)]]))
        block_end = np.repeat(first + size, size)
        limit = np.where(above[alive] >= 0, effective[todo[np.maximum(above[alive], 0)]], np.iinfo(np.int64).max)
        clipped = np.minimum(e[alive], limit)
        following = np.minimum(np.searchsorted(s[alive], clipped, side="left"), block_end)
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
        rows = todo[alive[member]]
        depth[rows] = level
        parent[rows] = np.where(above[alive[member]] >= 0, todo[np.maximum(above[alive[member]], 0)], -1)
        effective[rows] = clipped[member]
        # The rest lie between one member and the next: that member is their parent.
        rest = np.flatnonzero(~stays)
        owner = np.searchsorted(member, rest, side="right") - 1
        block = owner
        above[alive[rest]] = alive[member[owner]]
        alive = alive[rest]
        level += 1
    return depth, parent, effective
