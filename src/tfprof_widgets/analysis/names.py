"""What an event's name says: which names are ops, and of which kind.

The rules are those of TensorFlow's profiler (``tf_op_utils``); they are applied to the distinct names
of a profile, which are few, never to its events.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

UNKNOWN, TF_OP, DATASET, JAX_OP, MEMCPY = range(5)

_TF_OP = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*:[A-Z_][A-Za-z0-9_]*")
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?", re.DOTALL)
_TRAILING_INT = re.compile(r"_\d+\Z")
_MEMCPY = {
    "memcpyhtod": "MemcpyHToD",
    "memcpydtoh": "MemcpyDToH",
    "memcpydtod": "MemcpyDToD",
    "memcpyhtoh": "MemcpyHToH",
}

THREADPOOL_PREFIX = "ThreadpoolListener::"
ALLOCATION_NAMES = ("MemoryAllocation", "MemoryDeallocation")
# Function runs and executor steps: roots of a step that the user never sees a name of.
IMPLICIT_ROOTS = ("FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process")


class Op(NamedTuple):
    """An op recognised in a name. ``category`` is one of the module's constants."""

    category: int
    name: str
    type: str


def search(texts: Sequence[str] | pa.Array, pattern: str, *, ignore_case: bool = False) -> NDArray[np.bool_]:
    """In which of many texts a regular expression is found.

    Parameters
    ----------
    texts : sequence of str, or StringArray (N)
    pattern : str
        In RE2's dialect: Arrow takes a fifth of Python's time for plain names, a fiftieth for kernels'.
    ignore_case : bool

    Returns
    -------
    bool array (N)
    """
    array = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    found = pc.match_substring_regex(array, pattern, ignore_case=ignore_case)
    mask: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return mask


class Ops(NamedTuple):
    """The ops recognised in M names: as `parse_op` tells them."""

    category: NDArray[np.int8]
    name: list[str]
    type: list[str]


def parse_ops(names: Sequence[str]) -> Ops:
    """Recognise the ops in many names, of which most are ops of TensorFlow's."""
    is_plain = search(names, f"^{_TF_OP.pattern}$")
    category = np.full(len(names), TF_OP, np.int8)
    op_names, types = [""] * len(names), [""] * len(names)
    for i, (name, plain) in enumerate(zip(names, is_plain.tolist(), strict=True)):
        if plain and not name.startswith("Iterator:"):
            op_names[i], _, types[i] = name.partition(":")
        else:
            category[i], op_names[i], types[i] = parse_op(name)
    return Ops(category, op_names, types)


def parse_op(full_name: str) -> Op:
    """Recognise the op in an event name or a ``tf_op`` stat.

    Parameters
    ----------
    full_name : str
        Such as ``dense/MatMul:MatMul``, ``Iterator::Root::Prefetch``, ``MemcpyHToD``.

    Returns
    -------
    Op
        Category ``UNKNOWN`` (with the whole name as name and no type) for what is no op.
    """
    name, colon, kind = full_name.partition(":")
    if not colon:
        kind_of_copy = _MEMCPY.get(full_name[:10].lower())
        return Op(MEMCPY, full_name, kind_of_copy) if kind_of_copy else Op(UNKNOWN, full_name, "")
    if name == "Iterator":
        return Op(DATASET, full_name, "Dataset")
    if _TF_OP.fullmatch(full_name):
        return Op(TF_OP, name, kind)
    derived = kind or _TRAILING_INT.sub("", name.rsplit("/", 1)[-1])
    if _JAX_TYPE.fullmatch(derived):
        return Op(JAX_OP, name, derived.partition("[")[0])
    if not kind:
        return Op(TF_OP, name, derived)
    return Op(UNKNOWN, full_name, "")
