"""What led to what across threads and devices: launches to kernels, producers to consumers, stages of tf.data to those who take."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .events import Trace

# XProf's bound: groups with so many on both sides say nothing of who waited for whom.
_CROWD = 64
_STAGE = re.compile(r"(\w+)(Produce|Consume)$")


@dataclass(frozen=True)
class Flow:
    """Arrows of one kind: every source of a group leads to every target of it. n sources, m targets.

    Attributes
    ----------
    kind : str
        ``launch`` (host call to device event), ``work`` (producer to consumer of the executor's), ``element`` (stage of tf.data to
        what takes from it).
    source, target : int64 arrays (n), (m)
        Events of the trace, ascending.
    source_group, target_group : int64 arrays (n), (m)
        Numbered from 0 by their first source.
    """

    kind: str
    source: NDArray[np.int64]
    source_group: NDArray[np.int64]
    target: NDArray[np.int64]
    target_group: NDArray[np.int64]


def flows(trace: Trace) -> list[Flow]:
    """Return the arrows of a trace, by kind; kinds without any are left out."""
    return [flow for flow in (_launches(trace), _work(trace), _elements(trace)) if len(flow.source)]


def _launches(trace: Trace) -> Flow:
    event, key = trace.ints("correlation_id")
    line = trace.line[event]
    host, device = trace.line_is_host[line], trace.line_is_stream[line]
    # Of several host events the last one is the launch.
    last = np.unique(key[host][::-1], return_index=True)[1]
    source, source_key = event[host][::-1][last], key[host][::-1][last]
    order = np.argsort(source)
    return _flow("launch", source[order], source_key[order], event[device], key[device])


def _work(trace: Trace) -> Flow:
    sides = []
    for kind, ident in (("_pt", "_p"), ("_ct", "_c")):
        event, value = trace.ints(ident)
        type_of = trace.dense_ints(kind)
        sides.append((event, value, type_of[event]))
    # One key for a type and an id.
    both = np.concatenate([np.stack(side[1:], axis=1) for side in sides])
    key = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    n = len(sides[0][0])
    return _flow("work", sides[0][0], key[:n], sides[1][0], key[n:])


def _elements(trace: Trace) -> Flow:
    event, value = trace.ints("element_id")
    meta = trace.meta[event]
    stage: dict[str, int] = {}
    of_meta = np.full((len(trace.space.meta_name), 2), -1, np.int64)  # stage, and whether it takes
    for each in np.unique(meta).tolist():
        if found := _STAGE.match(trace.space.meta_name[each]):
            of_meta[each] = stage.setdefault(found[1], len(stage)), found[2] == "Consume"
    both = np.stack([of_meta[meta, 0], value], axis=1)
    key = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    gives, takes = of_meta[meta, 1] == 0, of_meta[meta, 1] == 1
    return _flow("element", event[gives], key[gives], event[takes], key[takes])


def _flow(
    kind: str,
    source: NDArray[np.int64],
    source_key: NDArray[np.int64],
    target: NDArray[np.int64],
    target_key: NDArray[np.int64],
) -> Flow:
    """Keep the groups with both sides, and number them by their first source."""
    keys, first, n_sources = np.unique(source_key, return_index=True, return_counts=True)
    at = np.minimum(np.searchsorted(keys, target_key), max(len(keys) - 1, 0))
    known = keys[at] == target_key if len(keys) else np.zeros(len(target_key), np.bool_)
    n_targets = np.bincount(at[known], minlength=len(keys))
    good = (n_targets > 0) & ((n_sources < _CROWD) | (n_targets < _CROWD))
    number = np.full(len(keys), -1, np.int64)
    number[np.flatnonzero(good)[np.argsort(first[good], kind="stable")]] = np.arange(int(good.sum()))
    source_group = number[np.searchsorted(keys, source_key)]
    target_group = np.where(known, number[at] if len(keys) else -1, -1)
    return Flow(
        kind,
        source[source_group >= 0],
        source_group[source_group >= 0],
        target[target_group >= 0],
        target_group[target_group >= 0],
    )
