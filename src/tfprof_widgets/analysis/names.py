"""What an event's name says: which names are ops, and of which kind.

The rules are those of TensorFlow's profiler (``tf_op_utils``); they are applied to the distinct names
of a profile, which are few, never to its events.
"""

from __future__ import annotations

import re
from typing import NamedTuple

UNKNOWN, TF_OP, DATASET, JAX_OP, MEMCPY = range(5)

_TF_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*")
_TF_TYPE = re.compile(r"[A-Z_][A-Za-z0-9_]*")
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
        for prefix, kind_of_copy in _MEMCPY.items():
            if full_name[:10].lower() == prefix:
                return Op(MEMCPY, full_name, kind_of_copy)
        return Op(UNKNOWN, full_name, "")
    if name == "Iterator":
        return Op(DATASET, full_name, "Dataset")
    is_tf_name = _TF_NAME.fullmatch(name) is not None
    if is_tf_name and _TF_TYPE.fullmatch(kind):
        return Op(TF_OP, name, kind)
    derived = kind or _TRAILING_INT.sub("", name.rsplit("/", 1)[-1])
    if _JAX_TYPE.fullmatch(derived):
        return Op(JAX_OP, name, derived.partition("[")[0])
    if not kind:
        return Op(TF_OP, name, derived)
    return Op(UNKNOWN, full_name, "")
