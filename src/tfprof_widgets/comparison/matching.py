"""Finds the counterpart of each row of one run in the other: by its name, else by what it is and its place."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from numpy.typing import NDArray

#: What became of a row that has no counterpart.
APPEARED, VANISHED = "appeared", "vanished"

# Larger groups of a key are matched in their order, without weighing their times.
_MOST_WEIGHED = 400
# What TensorFlow puts before the names of a function's ops when it is called (Keras 3, TensorFlow 2.16 and later).
_CALLS = re.compile(r"^(?:(?:Stateful)?PartitionedCall(?:_\d+)?/)+")
# What makes a name one of several: layers `dense_1`, `dense_2`, second uses `MatMul_1`.
_NUMBERED = re.compile(r"(?:_\d+)+(?=/|$)")
_NUMBER = re.compile(r"(\d+)")


class Rule(NamedTuple):
    """A way to match: rows with the same key are counterparts.

    Parameters
    ----------
    says : str
        How rows were matched by it, for the table's reader.
    key : callable
        Row (a mapping of the table's columns) → key; None for rows that it does not match.
    by_place : bool
        Whether rows of one key follow one another by their places in the run; else by their names, as people count.
    """

    says: str
    key: Callable[[dict[str, Any]], Hashable]
    by_place: bool = False


class Side(NamedTuple):
    """The rows of a run, in N places.

    Parameters
    ----------
    rows : list of dict
        Their columns.
    place : float array (N)
        Where each stands in the run: when it first ran, for example.
    weight : float array (N)
        What two rows that are the same thing have about the same of: their time each time they ran.
    """

    rows: list[dict[str, Any]]
    place: NDArray[np.float64]
    weight: NDArray[np.float64]


class Match(NamedTuple):
    """A row of the result: rows of both sides (-1 for none) and how they came together."""

    before: int
    after: int
    says: str


def match(before: Side, after: Side, rules: Sequence[Rule]) -> list[Match]:
    """Match the rows of two runs, each row at most once; what no rule matches has vanished or appeared.

    Parameters
    ----------
    before, after : Side
        The runs.
    rules : sequence of Rule
        The strictest first. Rows of one key are matched in their order; where there are more on one side, so that the weights of
        the counterparts differ least.
    """
    left, right = dict.fromkeys(range(len(before.rows))), dict.fromkeys(range(len(after.rows)))
    matches = []
    for rule in rules:
        ours, theirs = _groups(before, left, rule), _groups(after, right, rule)
        for key, mine in ours.items():
            for i, j in _in_order(before, after, mine, theirs.get(key, []), rule):
                matches.append(Match(i, j, rule.says))
                del left[i], right[j]
        if not left or not right:
            break
    return [*matches, *(Match(i, -1, VANISHED) for i in left), *(Match(-1, j, APPEARED) for j in right)]


def _groups(side: Side, rows: Iterable[int], rule: Rule) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i in rows:
        key = rule.key(side.rows[i])
        if key is not None:
            groups[key].append(i)
    return groups


def _in_order(before: Side, after: Side, mine: list[int], theirs: list[int], rule: Rule) -> list[tuple[int, int]]:
    if len(mine) == 1 and len(theirs) == 1:
        return [(mine[0], theirs[0])]
    mine, theirs = _sorted(before, mine, rule), _sorted(after, theirs, rule)
    if len(mine) == len(theirs) or max(len(mine), len(theirs)) > _MOST_WEIGHED:
        return list(zip(mine, theirs, strict=False))
    if len(mine) < len(theirs):
        kept = _aligned(before.weight[mine], after.weight[theirs])
        return [(i, theirs[k]) for i, k in zip(mine, kept, strict=True)]
    kept = _aligned(after.weight[theirs], before.weight[mine])
    return [(mine[k], j) for j, k in zip(theirs, kept, strict=True)]


def _sorted(side: Side, rows: list[int], rule: Rule) -> list[int]:
    # Ops that run side by side change places from run to run; the numbers in their names don't.
    def name(i: int) -> tuple[Any, ...]:
        return natural_order(str(side.rows[i].get("name", "")))

    return sorted(rows, key=lambda i: (side.place[i], name(i)) if rule.by_place else (name(i), side.place[i]))


def _aligned(few: NDArray[np.float64], many: NDArray[np.float64]) -> list[int]:
    """Which of the many go with the few, in order, so that their weights differ least (as logarithms)."""
    if not len(few):
        return []
    cost = np.abs(np.log(few[:, None] + 1e-9) - np.log(many[None, :] + 1e-9))
    # best[i, j]: least cost of the first i of the few with counterparts among the first j of the many.
    best = np.full((len(few) + 1, len(many) + 1), np.inf)
    best[0] = 0
    for i in range(len(few)):
        best[i + 1, 1:] = np.minimum.accumulate(best[i, :-1] + cost[i])
    kept = []
    j = len(many)
    for i in range(len(few), 0, -1):
        # The first place that reaches the least cost is the one that was taken.
        j = int(np.argmax(best[i, : j + 1] <= best[i, j]))
        kept.append(j - 1)
        j -= 1
    return kept[::-1]


@cache
def bare_name(name: str) -> str:
    """Return an op's name without what changes from one program to the next: numbers of layers, calls around it, case."""
    return _NUMBERED.sub("", _CALLS.sub("", name)).lower()


@cache
def bare_layer(name: str) -> tuple[str, str]:
    """Return the bare name of an op's layer, and the op in it with its number: ``MatMul_1`` of a layer is never its ``MatMul``."""
    layer, _, op = _CALLS.sub("", name).rpartition("/")
    return bare_name(layer), op.lower()


def last_part(name: str) -> str:
    """Return the last part of an op's bare name: what the op does within its layer."""
    return bare_name(name).rsplit("/", 1)[-1]


@cache
def natural_order(name: str) -> tuple[Any, ...]:
    """Key that sorts ``dense_2`` before ``dense_10``, and ``dense`` before both."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in _NUMBER.split(name))
