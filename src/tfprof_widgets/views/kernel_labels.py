"""Short labels of GPU kernels, whose names are C++ functions of hundreds of letters that mostly begin alike."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAMESPACE = r"(?:\w+|\(anonymous namespace\))::"
_CPP_FUNCTION = re.compile(rf"(?:void )?(?:{_NAMESPACE})*(\w+)<(.*)>")
# All kernels of Cutlass are one function too, of what its first type names.
_CUTLASS_KERNEL = re.compile(r"\bKernel\d?<(?:\w+::)*(\w+)")
_EIGEN_OPERATION = re.compile(
    r"\b(?!TensorAssignOp|TensorCwise|scalar_constant_op)(?:Tensor\w+Op|\w+_op|(?:greater|less|equal|not_equal)\w*)\b"
)
# The type and the rank of what Eigen reads and writes: Tensor<Eigen::half const, 2, …>.
_EIGEN_TENSOR = re.compile(r"\bTensor<([\w: ]+?)(?: const)?, (\d+)")
# What follows are the types of the arguments, which say the same again.
_EIGEN_END = ", Eigen::GpuDevice>"


def kernel_label(name: str) -> str:
    """Return what a C++ kernel is, without its return type, namespaces, and types of arguments.

    Eigen's kernels are all one function: what each computes is told by the first operation in its type.

    >>> kernel_label("void cudnn::fft2d_c2r<float, 2u>(float*, int)")
    'fft2d_c2r<…>'
    """
    function = _CPP_FUNCTION.match(name)
    if function is None:
        return name
    short = function[1]
    if short == "EigenMetaKernel":
        computes = _EIGEN_OPERATION.search(name)
        return f"Eigen {_bare(computes[0])}" if computes else short
    cutlass = _CUTLASS_KERNEL.search(name)
    return cutlass[1] if cutlass else f"{short}<…>"


def kernel_labels(names: Iterable[str]) -> dict[str, str]:
    """Return a label for each name; kernels of one label get their types too, which tell them apart.

    Those that differ only in what no label says, such as the width of an index, are numbered.
    """
    labels = {name: kernel_label(name) for name in names}
    for alike in _groups(labels):
        labels |= _with_arguments(alike, labels[alike[0]])
    for alike in _groups(labels):
        for number, name in enumerate(alike[1:], start=2):
            labels[name] += f" ({number})"
    return labels


def _groups(labels: dict[str, str]) -> list[list[str]]:
    named = defaultdict(list)
    for name, label in labels.items():
        named[label].append(name)
    return [alike for alike in named.values() if len(alike) > 1]


def _bare(operation: str) -> str:
    """An operation of Eigen's without what most of them begin with: ``ConversionOp``, ``product_op``."""
    return operation.removeprefix("Tensor").removeprefix("scalar_")


def _with_arguments(names: list[str], label: str) -> dict[str, str]:
    """Labels of kernels of one function that say which types it is for, as far as they differ."""
    if label.startswith("Eigen "):
        operation = label.removeprefix("Eigen ")
        return {name: f"{label} {_eigen_types(name, operation)}".rstrip() for name in names}
    if not label.endswith("<…>"):
        return {}
    given = [_arguments(name) for name in names]
    same = [False] * max(map(len, given))
    if len(set(map(len, given))) == 1:
        same = [len(set(values)) == 1 for values in zip(*given, strict=True)]
    labels = {}
    for name, arguments in zip(names, given, strict=True):
        shown = ["…" if alike else argument for argument, alike in zip(arguments, same, strict=False)]
        shown = [part for i, part in enumerate(shown) if part != "…" or i == 0 or shown[i - 1] != "…"]
        labels[name] = f"{label.removesuffix('<…>')}<{', '.join(shown)}>"
    return labels


def _arguments(name: str) -> list[str]:
    """The arguments of a C++ function's template, without namespaces."""
    function = _CPP_FUNCTION.match(name)
    if function is None:
        return []
    depth, arguments = 1, [""]
    for letter in re.sub(_NAMESPACE, "", name[function.start(2) :]):
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0:  # the bracket that closes the template's
            break
        if letter == "," and depth == 1:
            arguments.append("")
        else:
            arguments[-1] += letter
    return [argument.strip() for argument in arguments]


def _eigen_types(name: str, operation: str) -> str:
    """What an Eigen kernel reads and writes, and what else it computes: ``float → half``."""
    head = name.partition(_EIGEN_END)[0]
    tensors = [
        re.sub(_NAMESPACE, "", kind) + (f" {rank}D" if rank != "1" else "")
        for kind, rank in _EIGEN_TENSOR.findall(head)
    ]
    # The first is what is assigned to; what is written is named last.
    written, read = tensors[:1], list(dict.fromkeys(tensors[1:]))
    types = " → ".join(filter(None, ([", ".join(read)] if read != written else []) + written))
    others = [bare for bare in dict.fromkeys(map(_bare, _EIGEN_OPERATION.findall(head))) if bare != operation]
    others += [f"scalar {side}" for side in ("left", "right") if f"scalar_{side}" in head]
    return f"{types} ({', '.join(others)})" if others else types
