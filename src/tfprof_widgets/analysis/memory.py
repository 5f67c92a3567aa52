"""Memory: every allocation and free of every allocator, and what was live at the peak."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .events import Trace

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"
KINDS = ("allocation", "deallocation")
BEFORE_CAPTURE = "(allocated before the capture)"
STACK = "(stack)"

# DataType of tensorflow/core/framework/types.proto, by number; 0 is no type. A reference type is 100 more.
_DATA_TYPES = (
    "", "float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8", "quint8",
    "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "resource", "variant", "uint32", "uint64",
    "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4", "uint4", "int2",
    "uint2",
)  # fmt: skip
_REFERENCE = 100
# Some Windows builds overwrite the first letter of short texts (with a NUL, which the reader drops).
_BEHEADED = re.compile(r"PU_\d+_bfc|pu_host_bfc")
_BEHEADED_SHAPE = re.compile(r"\d*\]|\d+")

_AT_PEAK = ("time_ms", "in_use_bytes", "stack_bytes", "heap_bytes", "free_bytes", "fragmentation")
_PEAK_TEXTS = ("op_name", "region_type", "data_type", "shape")
_PEAK_TYPES = dict.fromkeys(("allocator", *_PEAK_TEXTS), object)
MEMORY_COLUMNS = (
    "allocator", "time_ms", "kind", "bytes", "requested_bytes", "in_use_bytes", "peak_bytes", "fragmentation", "op_name",
    "region_type", "data_type", "shape", "step", "stack_bytes", "heap_bytes", "free_bytes", "address",
)  # fmt: skip
SUMMARY_COLUMNS = (
    "allocator", "allocations", "deallocations", "capacity_bytes", "lifetime_peak_bytes", "peak_bytes", "peak_time_ms",
    "stack_bytes", "heap_bytes", "free_bytes", "fragmentation",
)  # fmt: skip
PEAK_COLUMNS = (
    "allocator", "op_name", "occurrences", "bytes", "requested_bytes", "total_bytes", "region_type", "data_type", "shape",
)  # fmt: skip


def memory(trace: Trace, step: NDArray[np.int64] | None = None) -> pd.DataFrame:
    """All allocations and deallocations, in time order.

    Parameters
    ----------
    trace : Trace
        One host's events. Allocations are recorded from host tracer level 2 on.
    step : int64 array (N), optional
        The step of each event of the trace; -1 for none.

    Returns
    -------
    pandas.DataFrame
        ``allocator``; ``time_ms`` since the start of the trace; ``kind``, ``allocation`` or ``deallocation``; ``bytes`` and
        ``requested_bytes`` of the block; ``in_use_bytes`` of the allocator after it (stack and heap);
        ``peak_bytes`` that the allocator had ever had in use by then; ``fragmentation`` from 0 to 1, NaN if unknown;
        ``op_name``, ``region_type`` (output, temp, …), ``data_type`` and ``shape`` of the tensor, for a deallocation those of the
        allocation that it ends (empty if that came before the capture); ``step`` (NA for none); ``stack_bytes`` reserved,
        ``heap_bytes`` in use and ``free_bytes`` available, all after it; ``address`` of the block.
        Texts are categorical.
    """
    named = trace.named(ALLOCATION, DEALLOCATION)
    named = named[trace.line_is_host[trace.line[named]]]
    named = named[np.argsort(trace.start_ps[named], kind="stable")]
    is_allocation = trace.meta_matches(ALLOCATION.__eq__)[trace.meta[named]]
    rows = _Rows(trace, named)
    allocator = rows.categorical("allocator_name", _allocator_name)
    unnamed = allocator.codes == allocator.categories.get_loc("") if "" in allocator.categories else False
    if np.any(unnamed):
        allocator = _numbered_allocators(rows, allocator)

    stack = rows.size("bytes_reserved")
    heap = rows.size("bytes_allocated")
    address = rows.ints("addr")
    texts = {
        "op_name": rows.categorical("tf_op", _known),
        "region_type": rows.categorical("region_type", _known),
        "data_type": _data_types(rows.ints("data_type")),
        "shape": rows.categorical("shape", _shape),
    }
    _inherit(texts, is_allocation, next_of_block(allocator.codes, address))
    return pd.DataFrame(
        {
            "allocator": allocator,
            "time_ms": trace.start_ps[named] / 1e9,
            "kind": pd.Categorical.from_codes(np.where(is_allocation, 0, 1), categories=pd.Index(KINDS, dtype=object)),
            "bytes": rows.size("allocation_bytes"),
            "requested_bytes": rows.size("requested_bytes"),
            "in_use_bytes": stack + heap,
            "peak_bytes": rows.size("peak_bytes_in_use"),
            "fragmentation": rows.floats("fragmentation"),
            **texts,
            "step": _steps(step, named),
            "stack_bytes": stack,
            "heap_bytes": heap,
            "free_bytes": rows.size("bytes_available"),
            "address": address,
        },
        columns=list(MEMORY_COLUMNS),
    )


def memory_summary(table: pd.DataFrame) -> pd.DataFrame:
    """Sum up the memory of each allocator.

    Parameters
    ----------
    table : DataFrame
        As `memory` returns it.

    Returns
    -------
    pandas.DataFrame
        One row an allocator, the one with the highest peak first: ``allocator``; ``allocations`` and ``deallocations``, counted from
        all events; ``capacity_bytes`` (in use and free); ``lifetime_peak_bytes``, the most ever in use since the program began, as far as
        the allocator or this capture knows; ``peak_bytes``, the most in use during the capture, and ``peak_time_ms``,
        when that was last reached; ``stack_bytes``, ``heap_bytes``, ``free_bytes`` and ``fragmentation`` at that time.
    """
    peak = _peak_rows(table)
    column = {name: table[name].to_numpy()[peak] for name in _AT_PEAK}
    allocator = table["allocator"].cat.codes.to_numpy()
    is_allocation = (table["kind"].cat.codes == 0).to_numpy()
    lifetime = np.zeros(len(table["allocator"].cat.categories), np.int64)
    np.maximum.at(lifetime, allocator, np.maximum(table["peak_bytes"].to_numpy(), table["in_use_bytes"].to_numpy()))
    of_peak = allocator[peak]
    return pd.DataFrame(
        {
            "allocator": table["allocator"].astype(object).to_numpy()[peak],
            "allocations": np.bincount(allocator[is_allocation], minlength=len(lifetime))[of_peak],
            "deallocations": np.bincount(allocator[~is_allocation], minlength=len(lifetime))[of_peak],
            "capacity_bytes": column["in_use_bytes"] + column["free_bytes"],
            "lifetime_peak_bytes": lifetime[of_peak],
            "peak_bytes": column["in_use_bytes"],
            "peak_time_ms": column["time_ms"],
            "stack_bytes": column["stack_bytes"],
            "heap_bytes": column["heap_bytes"],
            "free_bytes": column["free_bytes"],
            "fragmentation": column["fragmentation"],
        },
        columns=list(SUMMARY_COLUMNS),
    )


def memory_peak(table: pd.DataFrame) -> pd.DataFrame:
    """What each allocator held when most was in use.

    Parameters
    ----------
    table : DataFrame
        As `memory` returns it, whole: a block is live from its allocation to the next event of its address.

    Returns
    -------
    pandas.DataFrame
        Per allocator, in the order of `memory_summary`, a row for equal live blocks, by falling ``total_bytes``: ``allocator``;
        ``op_name``; ``occurrences``; ``bytes`` and ``requested_bytes`` of one block; ``total_bytes`` of all of them;
        ``region_type``; ``data_type``; ``shape``.
        Two rows that are no op make the sum complete: what was on the heap already (``(allocated before the capture)``), and what the
        stack reserves (``(stack)``).
    """
    peak = _peak_rows(table)
    allocator = table["allocator"].cat.codes.to_numpy()
    rank = np.zeros(len(table["allocator"].cat.categories), np.int64)
    rank[allocator[peak]] = np.arange(len(peak))
    moment = peak[rank[allocator]]  # of each row's allocator
    row = np.arange(len(table))
    is_allocation = (table["kind"].cat.codes == 0).to_numpy()
    following = next_of_block(allocator, table["address"].to_numpy())
    live = is_allocation & (row <= moment) & (following > moment)

    # Equal blocks become neighbours, then one row each.
    texts = {name: table[name].cat for name in _PEAK_TEXTS}
    keys = {"rank": rank[allocator], **{name: table[name].to_numpy() for name in ("bytes", "requested_bytes")}}
    keys = {name: key[live] for name, key in (keys | {n: t.codes.to_numpy() for n, t in texts.items()}).items()}
    order = np.lexsort(list(keys.values()))
    differs = [np.diff(key[order]) != 0 for key in keys.values()]
    first = np.flatnonzero(np.concatenate([[True] * min(len(order), 1), np.logical_or.reduce(differs)]))
    rows = {name: key[order[first]] for name, key in keys.items()}
    rows |= {name: text.categories.to_numpy(object)[rows[name]] for name, text in texts.items()}
    rows["occurrences"] = np.diff(np.append(first, len(order)))

    held = np.bincount(keys["rank"], weights=keys["bytes"], minlength=len(peak)).astype(np.int64)
    before = table["heap_bytes"].to_numpy()[peak] - held
    for label, size in ((BEFORE_CAPTURE, before), (STACK, table["stack_bytes"].to_numpy()[peak])):
        some = np.flatnonzero(size > 0)  # less than 0 only if frees are missing from the file
        empty = np.full(len(some), "", object)
        extra = {
            "rank": some,
            "bytes": size[some],
            "requested_bytes": size[some],
            "op_name": np.full(len(some), label, object),
        }
        extra |= {"region_type": empty, "data_type": empty, "shape": empty, "occurrences": np.ones(len(some), np.int64)}
        rows = {name: np.concatenate([rows[name], extra[name]]) for name in rows}
    rows["total_bytes"] = rows["bytes"] * rows["occurrences"]
    rows["allocator"] = table["allocator"].astype(object).to_numpy()[peak[rows["rank"]]]
    order = np.lexsort(
        (rows["shape"].astype(str), rows["op_name"].astype(str), -rows["bytes"], -rows["total_bytes"], rows["rank"])
    )
    return pd.DataFrame(
        {name: pd.Series(rows[name][order], dtype=_PEAK_TYPES.get(name), copy=False) for name in PEAK_COLUMNS}
    )


class _Rows:
    """Stats of the memory events alone, as arrays over them."""

    def __init__(self, trace: Trace, event: NDArray[np.int64]) -> None:
        self._trace = trace
        self._row = np.argsort(event)
        self._event = event[self._row]

    def __len__(self) -> int:
        return len(self._event)

    def _place(self, owner: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if not len(self._event):
            return np.empty(0, np.int64), np.zeros(len(owner), bool)
        if np.array_equal(owner, self._event):  # most stats are those of all memory events and of no other
            return self._row, np.ones(len(owner), bool)
        row = np.minimum(np.searchsorted(self._event, owner), len(self._event) - 1)
        found = self._event[row] == owner
        return self._row[row[found]], found

    def ints(self, stat: str, missing: int = 0) -> NDArray[np.int64]:
        owner, value = self._trace.ints(stat)
        row, found = self._place(owner)
        column = np.full(len(self._event), missing, np.int64)
        column[row] = value[found]
        return column

    def size(self, stat: str) -> NDArray[np.int64]:
        """Bytes; only damaged files hold less than none or more than a petabyte."""
        return np.clip(self.ints(stat), 0, 1 << 50)

    def floats(self, stat: str) -> NDArray[np.float64]:
        owner, value = self._trace.floats(stat)
        row, found = self._place(owner)
        column = np.full(len(self._event), np.nan)
        column[row] = value[found]
        return column

    def categorical(self, stat: str, clean: Callable[[str], str]) -> pd.Categorical:
        owner, code, texts = self._trace.strings(stat)
        row, found = self._place(owner)
        column = np.full(len(self._event), len(texts), np.int64)
        column[row] = code[found]
        return _categorical(column, lambda c: clean(texts[c]) if c < len(texts) else "")


def _categorical(code: NDArray[np.int64], label: Callable[[int], str]) -> pd.Categorical:
    """Categorical of the labels of some codes; codes with one label become one category."""
    used, inverse = np.unique(code, return_inverse=True)
    table: dict[str, int] = {}
    recoded = np.array([table.setdefault(label(int(c)), len(table)) for c in used], np.int64)
    return pd.Categorical.from_codes(recoded[inverse], categories=pd.Index(list(table), dtype=object))


def _known(text: str) -> str:
    return "" if text == "(null)" else text  # what C++ printed for no text at all


def _shape(text: str) -> str:
    # Such builds also end a text at its first comma: of several dimensions only the first is left.
    if _BEHEADED_SHAPE.fullmatch(text):
        return f"[{text}" if text.endswith("]") else f"[{text},…]"
    return _known(text)


def _allocator_name(text: str) -> str:
    if _BEHEADED.fullmatch(text):
        return ("G" if text[0] == "P" else "g") + text
    return text


def _numbered_allocators(rows: _Rows, named: pd.Categorical) -> pd.Categorical:
    """Allocators without a name are told apart by the device's number."""
    number = rows.ints("index_on_host", -1)
    number = np.where(number >= 0, number, rows.ints("device_ordinal", -1))
    texts = list(named.categories)
    code = np.where(np.asarray(named == ""), len(texts) + 1 + number, named.codes)  # those of no number come first

    def label(c: int) -> str:
        device = c - len(texts) - 1
        return texts[c] if c < len(texts) else f"device {device}" if device >= 0 else "unknown allocator"

    return _categorical(code, label)


def data_type_name(code: int) -> str:
    """Return the name of a ``DataType``; empty for none."""
    is_reference = code > _REFERENCE
    base = code - _REFERENCE if is_reference else code
    if not 0 <= base < len(_DATA_TYPES):
        return f"type {code}"
    return _DATA_TYPES[base] + ("_ref" if is_reference else "")


def _data_types(code: NDArray[np.int64]) -> pd.Categorical:
    return _categorical(code, data_type_name)


def _steps(step: NDArray[np.int64] | None, event: NDArray[np.int64]) -> pd.arrays.IntegerArray:
    value = np.full(len(event), -1) if step is None else step[event]
    return pd.arrays.IntegerArray(np.maximum(value, 0).astype(np.int64), value < 0)


def next_of_block(allocator: NDArray[np.integer[Any]], address: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the next event of the same allocator (code) and address; the number of rows if there is none."""
    n = len(address)
    order = np.lexsort((address, allocator))  # stable: rows of one address stay in time order
    allocator, address = allocator[order], address[order]
    same = (allocator[1:] == allocator[:-1]) & (address[1:] == address[:-1])
    following = np.full(n, n, np.int64)
    following[order[:-1][same]] = order[1:][same]
    return following


def _inherit(texts: dict[str, pd.Categorical], is_allocation: NDArray[np.bool_], following: NDArray[np.int64]) -> None:
    """Give each deallocation the op, region, type and shape of the allocation that it ends."""
    source = np.flatnonzero(is_allocation & (following < len(following)))
    target = following[source]
    ends = ~is_allocation[target]
    source, target = source[ends], target[ends]
    for name, text in texts.items():
        codes = text.codes.copy()
        codes[target] = codes[source]
        texts[name] = pd.Categorical.from_codes(codes, dtype=text.dtype)


def _peak_rows(table: pd.DataFrame) -> NDArray[np.int64]:
    """Row of each allocator's highest use (the last of equal ones); the allocator with the highest one first."""
    in_use = table["in_use_bytes"].to_numpy()
    allocator = table["allocator"].cat
    order = np.lexsort((np.arange(len(table)), in_use, allocator.codes.to_numpy()))
    code = allocator.codes.to_numpy()[order]
    last = order[np.flatnonzero(np.append(code[1:] != code[:-1], np.ones(min(len(code), 1), bool)))]
    name = allocator.categories.to_numpy(object)[allocator.codes.to_numpy()[last]]
    return last[np.lexsort((name.astype(str), -in_use[last]))]
