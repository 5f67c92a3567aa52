"""Lengths of unions of intervals, many groups at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def union_ps(
    group: NDArray[np.int64], start_ps: NDArray[np.int64], end_ps: NDArray[np.int64], n_groups: int
) -> NDArray[np.int64]:
    """Time covered by at least one interval of each group.

    Parameters
    ----------
    group, start_ps, end_ps : int64 arrays (K)
        Intervals; those that end before they start count as empty.
    n_groups : int

    Returns
    -------
    int64 array (n_groups)
        Length of the union of each group's intervals, in picoseconds.
    """
    return layered_union_ps(group, start_ps, end_ps, np.zeros(len(group), np.int8), n_groups, 1)[:, 0]


def layered_union_ps(
    group: NDArray[np.int64],
    start_ps: NDArray[np.int64],
    end_ps: NDArray[np.int64],
    layer: NDArray[np.int8],
    n_groups: int,
    n_layers: int,
) -> NDArray[np.int64]:
    """Time of each layer that no layer before it covers: a sweep in which the first active layer wins.

    Parameters
    ----------
    group, start_ps, end_ps : int64 arrays (K)
        Intervals.
    layer : int8 array (K)
        Layer of each interval; 0 has the highest priority.
    n_groups, n_layers : int

    Returns
    -------
    int64 array (n_groups, n_layers)
        Picoseconds; each row sums to the length of the union of all the group's intervals.
    """
    result = np.zeros((n_groups, n_layers), np.int64)
    keep = end_ps > start_ps
    if not keep.any():
        return result
    group, start_ps, end_ps, layer = group[keep], start_ps[keep], end_ps[keep], layer[keep]
    order = np.lexsort((start_ps, group))
    group, start_ps, end_ps, layer = group[order], start_ps[order], end_ps[order], layer[order]
    # Shift the groups apart, so that one running maximum serves them all.
    first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    low = np.minimum.reduceat(start_ps, first)
    span = np.maximum.reduceat(end_ps, first) - low
    shift = np.concatenate([[0], np.cumsum(span)[:-1]]) - low
    shift = np.repeat(shift, np.diff(np.concatenate([first, [len(group)]])))
    start_ps, end_ps = start_ps + shift, end_ps + shift
    covered = np.zeros(n_groups, np.int64)
    for k in range(n_layers):
        at = layer <= k
        if not (layer[at] == k).any():
            continue
        g, s, e = group[at], start_ps[at], end_ps[at]
        reach = np.maximum.accumulate(e)
        new = np.maximum(e - np.maximum(s, np.concatenate([[s[0]], reach[:-1]])), 0)
        first = np.flatnonzero(np.concatenate([[True], g[1:] != g[:-1]]))
        total = np.zeros(n_groups, np.int64)
        total[g[first]] = np.add.reduceat(new, first)
        result[:, k] = total - covered
        covered = total
    return result


def overlapping(
    start_ps: NDArray[np.int64],
    end_ps: NDArray[np.int64],
    span_start_ps: NDArray[np.int64],
    span_end_ps: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of an interval and a span that overlap.

    Parameters
    ----------
    start_ps, end_ps : int64 arrays (K)
        Intervals in any order.
    span_start_ps, span_end_ps : int64 arrays (S)
        Spans, ascending and not overlapping one another.

    Returns
    -------
    interval, span : int64 arrays (number of pairs)
    """
    first = np.searchsorted(span_end_ps, start_ps, side="right")
    last = np.searchsorted(span_start_ps, end_ps, side="left")
    count = np.maximum(last - first, 0)
    interval = np.repeat(np.arange(len(start_ps)), count)
    inner = np.arange(len(interval)) - np.repeat(np.cumsum(count) - count, count)
    return interval, np.repeat(first, count) + inner
