"""What each allocator holds at any time, told by what each event begins and ends to hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .memory import memory_summary, next_of_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_TEXTS = ("op_name", "region_type", "data_type", "shape")
_SIZES = ("bytes", "requested_bytes")


@dataclass(frozen=True)
class MemoryHistory:
    """Blocks of memory, and when each is held.

    Attributes
    ----------
    events : DataFrame
        One row an allocation or deallocation, the allocators one after the other in the order of ``memory_summary`` (host after
        host): ``place`` (number of the allocator in that order), ``time_ms``, ``begins`` and ``ends`` (row of ``blocks``
        that is held once more, or once less, from here on; -1 for none), ``other_bytes`` (in use on the heap after the event beyond the
        blocks held: what was there before the capture; less than 0 only if frees are missing from the file), ``stack_bytes``,
        ``free_bytes``, ``fragmentation`` (0 to 1; NaN if unknown).
    blocks : DataFrame
        One row a kind of block (equal ones of all allocators and hosts), in the order in which they come: ``op_name``,
        ``bytes``, ``requested_bytes``, ``region_type``, ``data_type``, ``shape``.
    """

    events: pd.DataFrame
    blocks: pd.DataFrame


def memory_history(tables: Sequence[pd.DataFrame]) -> MemoryHistory:
    """Tell what is held after each event.

    A block is held from its allocation to the next event of its address, as in `memory.memory_peak`.

    Parameters
    ----------
    tables : sequence of DataFrame
        Each host's ``memory``.
    """
    parts = [_of_host(table) for table in tables]
    events = pd.concat([part for part, _ in parts], ignore_index=True)
    kinds = pd.concat([kind for _, kind in parts], ignore_index=True)
    # Events point to rows of their host's kinds; these become rows of the kinds that all hosts have.
    shifts = np.cumsum([0] + [len(kind) for _, kind in parts[:-1]])
    counts = [int(part["place"].max()) + 1 if len(part) else 0 for part, _ in parts]
    lengths = [len(part) for part, _ in parts]
    events["place"] += np.repeat(np.cumsum([0, *counts[:-1]]), lengths)
    group = kinds.groupby(list(kinds.columns), sort=False, observed=True).ngroup().to_numpy(np.int64)
    shift = np.repeat(shifts, lengths)
    for name in ("begins", "ends"):
        row = events[name].to_numpy()
        known = row >= 0
        events.loc[known, name] = group[(row + shift)[known]]
    blocks = kinds.drop_duplicates(ignore_index=True)
    return MemoryHistory(events, blocks)


def _of_host(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Events and kinds of blocks of one host, in the order in which kinds come."""
    allocator = table["allocator"].cat.codes.to_numpy(np.int64)
    order_of = {name: i for i, name in enumerate(memory_summary(table)["allocator"])}
    place_of = np.array([order_of.get(name, 0) for name in table["allocator"].cat.categories], np.int64)
    place = place_of[allocator] if len(table) else np.empty(0, np.int64)
    order = np.argsort(place, kind="stable")
    is_allocation = (table["kind"].cat.codes == 0).to_numpy()

    keys = [table[name].cat.codes.to_numpy(np.int64) for name in _TEXTS] + [table[name].to_numpy() for name in _SIZES]
    kind_of, first = _groups([key[order] for key in keys], is_allocation[order])
    kinds = pd.DataFrame({name: table[name].astype(object).to_numpy()[order][first] for name in (*_TEXTS, *_SIZES)})
    kinds = kinds.astype(dict.fromkeys(_SIZES, np.int64))

    begins = np.full(len(table), -1, np.int64)
    begins[order] = kind_of
    following = next_of_block(allocator, table["address"].to_numpy())
    ended = is_allocation & (following < len(table))
    ends = np.full(len(table), -1, np.int64)
    ends[following[ended]] = begins[ended]

    sizes = np.append(kinds["bytes"].to_numpy(), 0)  # -1 is none
    change = (sizes[begins] - sizes[ends])[order]
    held = np.cumsum(change)
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    before = np.concatenate([[0], held])[starts]
    held -= np.repeat(before, np.diff(np.append(starts, len(table))))
    events = pd.DataFrame(
        {
            "place": place[order],
            "time_ms": table["time_ms"].to_numpy()[order],
            "begins": begins[order],
            "ends": ends[order],
            "other_bytes": table["heap_bytes"].to_numpy()[order] - held,
            **{name: table[name].to_numpy()[order] for name in ("stack_bytes", "free_bytes", "fragmentation")},
        }
    )
    return events, kinds


def _groups(keys: Sequence[NDArray[np.int64]], used: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number equal rows among the used ones in the order in which they come; -1 for the others. Also the first row of each number."""
    number = np.full(len(used), -1, np.int64)
    rows = np.flatnonzero(used)
    if not len(rows):
        return number, rows
    order = np.lexsort([key[rows] for key in keys])  # stable: of equal rows the first stays first
    differs = np.logical_or.reduce([np.diff(key[rows][order]) != 0 for key in keys])
    group = np.concatenate([[0], np.cumsum(differs)])
    first = order[np.concatenate([[True], differs])]
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    number[rows[order]] = rank[group]
    return number, rows[np.sort(first)]
