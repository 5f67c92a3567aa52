"""GPU kernel statistics: one row for each kernel, launch shape and op."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from .device import COLLECTIVE, KERNEL, device_events
from .names import search
from .occupancy import occupancy_pct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from .device import DeviceEvents
    from .events import Trace

T = TypeVar("T")

COLUMNS: dict[str, Any] = {
    "kernel_name": "object", "registers_per_thread": "Int64", "shared_memory_bytes": "Int64", "block_dim": "object",
    "grid_dim": "object", "occupancy_pct": "float64", "tensor_core_eligible": "bool", "uses_tensor_core": "bool",
    "op_name": "object", "occurrences": "int64", "total_time_us": "float64", "avg_time_us": "float64",
    "min_time_us": "float64", "max_time_us": "float64",
}  # fmt: skip

# Parts of the names of kernels that hold Tensor Core instructions. The first lines are the profiler's own list
# (up to Ampere); the others add CUTLASS, Hopper, Blackwell, fused attention, and AMD's matrix cores.
_TENSOR_CORE = (
    r"[a-z]16816|c1688|conv1x1|conv2d_c1_k1|dgrad_1x1_stride_2x2|direct_group|first_layer_wgrad_kernel|h1688|h884|hmma"
    r"|i16832|i8816|s884|s1688|xmma_gemm|xmma_implicit_gemm|xmma_sparse_conv|xmma_sparse_gemm"
    r"|xmma_warp_specialized_implicit_gemm"
    r"|tensorop|gmma|tcgen05|utc[a-z]*mma|\bumma|nvjet_|d884|[diq]mma_|[a-z]16832|xmma_(?:fprop|dgrad|wgrad)"
    r"|MmaSm(?:8|9|1)\d|Mainloop\w*Umma|SM\d+_\d+x\d+x\d+|flash_(?:fwd|bwd|attn)|fmha_|attn_fwd|gemm_fusion"
    r"|_MI\d+x\d+x\d+|mfma|wmma"
)
# Ops that Tensor Cores can compute. By type; the name rules below are for files whose ops have no type.
_ELIGIBLE_TYPE = (
    r"^(?:_?(?:Fused|Quantized)*(?:"
    r"Conv[23]D(?:Backprop(?:Filter|Input)(?:V2)?)?|DepthwiseConv2dNative(?:Backprop(?:Filter|Input))?"
    r"|(?:Batch)?MatMul(?:V[23])?|Einsum|CudnnRNN\w*|XlaDot(?:V2)?|XlaConv(?:V2)?|Dot|Conv(?:olution)?"
    r")|dot_general|conv_general_dilated)$"
)
_ELIGIBLE_NAME = (
    r"(?:Conv2D|Conv2DBackpropFilter|Conv2DBackpropInput|Conv3D|DepthwiseConv2dNative"
    r"|DepthwiseConv2dNativeBackpropFilter|DepthwiseConv2dNativeBackpropInput|/MatMul|FusedMatMul|/CudnnRNN|XlaDot|XlaDotV2)$"
    r"|BatchMatMul|CudnnRNNV|CudnnRNNForward|CudnnRNNBackprop|conv_general_dilated|dot_general"
)
_PRODUCT = r"^[^,]*,[^,]*->[^,]*$"  # an einsum's equation with two operands
# No GPU has more registers for a thread (NVIDIA 255, AMD 512): beyond, the collector read something else.
_MAX_REGISTERS = 512
# Nor starts more threads in a block, or that many blocks (or, counted by AMD, threads) along an axis.
_MAX_BLOCK, _MAX_GRID = 1024, 2**32
_SIZE = re.compile(r"\b(grid|block):(\S*)")
_REGISTERS = re.compile(r"\bregs:([0-9]+)")
_BESIDE_REGISTERS = re.compile(r"(?:regs|static_shared|dynamic_shared|shm|group_mem):\S*\s*")


class Launch(NamedTuple):
    """What ``kernel_details`` says of one launch. None, or no dimensions: it doesn't say, or says the impossible."""

    registers: int | None
    shared_bytes: int | None
    block: tuple[int, ...]
    grid: tuple[int, ...]
    occupancy_pct: float | None


# Of a kernel without such details.
_UNKNOWN_LAUNCH = Launch(None, None, (), (), None)


def parse_details(text: str) -> Launch:
    """Read a ``kernel_details`` stat, in any of its dialects.

    * current: ``regs:38 static_shared:0 dynamic_shared:64 grid:160,1,1 block:1024,1,1 occ_pct:50``
    * until TensorFlow 2.4: ``regs:38 shm:0 grid:… block:…`` (static shared memory only)
    * AMD: ``grid:… block:… private_mem:0 group_mem:2112 occ_pct:0`` (0 for: not known)
    """
    fields = dict(pair.split(":", 1) for pair in text.split() if ":" in pair)

    def number(key: str) -> int | None:
        value = fields.get(key, "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None

    def dimensions(key: str) -> tuple[int, ...]:
        parts = fields.get(key, "").split(",")
        valid = len(parts) == 3 and all(p.isascii() and p.isdigit() and len(p) < 16 for p in parts)
        return tuple(int(p) for p in parts) if valid else (1, 1, 1)

    registers = number("regs")
    shared = [v for k in ("static_shared", "dynamic_shared", "shm", "group_mem") if (v := number(k)) is not None]
    shared_bytes = sum(shared) if shared else None
    if registers is not None and registers > _MAX_REGISTERS:
        registers = shared_bytes = None  # read from the wrong place, and so was the memory beside it
    try:
        occupancy = float(fields.get("occ_pct", "0"))
    except ValueError:
        occupancy = 0.0
    return Launch(
        registers, shared_bytes, dimensions("block"), dimensions("grid"), occupancy if 0 < occupancy <= 100 else None
    )


def readable_details(text: str) -> str:
    """Return a ``kernel_details`` stat without what no launch can have: the collector has put memory that it never wrote into some."""
    for kind, value in _SIZE.findall(text):
        most = _MAX_BLOCK if kind == "block" else _MAX_GRID
        numbers = [int(part[:20]) for part in value.split(",") if part.isascii() and part.isdigit()]
        if not all(0 < number <= most for number in numbers):
            return "not readable: the file has impossible numbers"
    found = _REGISTERS.search(text)
    if found is None or int(found[1][:20]) <= _MAX_REGISTERS:
        return text
    rest = _BESIDE_REGISTERS.sub("", text).strip()
    return f"{rest} (registers and shared memory are not readable: the file has impossible numbers)".lstrip()


def uses_tensor_core(kernel_names: Sequence[str]) -> NDArray[np.bool_]:
    """Which kernels' names say that they hold Tensor Core (or AMD matrix core) instructions, shape (K,)."""
    return search(kernel_names, _TENSOR_CORE, ignore_case=True)


def tensor_core_eligible(op_names: Sequence[str], op_types: Sequence[str]) -> NDArray[np.bool_]:
    """Which ops Tensor Cores can compute, matrix products and convolutions, shape (K,).

    Parameters
    ----------
    op_names, op_types : sequence of str (K)
        The ops; either text may be empty.
    """
    return search(op_types, _ELIGIBLE_TYPE) | search(op_names, _ELIGIBLE_NAME)


def is_product(equations: Sequence[str]) -> NDArray[np.bool_]:
    """Which einsum equations are products of two operands, which Tensor Cores can compute, shape (K,)."""
    return search(equations, _PRODUCT)


def kernels(trace: Trace) -> pd.DataFrame:
    """Statistics of the GPU kernels, over all devices of a host.

    A row for each distinct kernel name, launch shape (grid, block, registers, shared memory) and op, by falling total time. A
    kernel whose recorded duration is 0 was not measured and is left out. One of whose launch the profiler tells nothing, such as a
    whole CUDA graph (``CudaGraphExec:7``), is there without the details.

    Parameters
    ----------
    trace : Trace
        One host's events.

    Returns
    -------
    pandas.DataFrame
        ``kernel_name``; ``registers_per_thread``; ``shared_memory_bytes`` a block (static and dynamic, as far as the file has
        them); ``block_dim`` and ``grid_dim`` as ``"x,y,z"``, empty where the file tells nothing of the launch;
        ``occupancy_pct``, the file's, else computed from the launch
        and the device's compute capability (an upper bound where the file leaves out dynamic shared memory), else NaN;
        ``tensor_core_eligible``, whether Tensor Cores can compute the op;
        ``uses_tensor_core``, whether the kernel does; ``op_name``, empty if nothing says which op launched it;
        ``occurrences``; ``total_time_us``, ``avg_time_us``, ``min_time_us`` and ``max_time_us``.
        Missing values (NA) are those that the file doesn't have, or has as nonsense.
    """
    devices = device_events(trace)
    rows = np.flatnonzero(np.isin(devices.kind, (KERNEL, COLLECTIVE)) & devices.is_measured)
    if not len(rows):
        return pd.DataFrame({name: pd.array([], dtype=kind) for name, kind in COLUMNS.items()})
    event = devices.event[rows]

    name, names = _recode(trace.meta[event], trace.space.meta_name.__getitem__)
    detail, details = _texts_of(trace, devices, rows, "kernel_details")
    # An empty text is one of a launch of one thread, as XProf reads it; only where there is none is nothing known.
    detail = np.where(devices.is_kernel[rows], detail, len(details))
    launch, launches = _recode(
        detail, lambda code: parse_details(details[code]) if code < len(details) else _UNKNOWN_LAUNCH
    )
    shape, shapes = _recode(launch, lambda code: launches[code][:4])
    equation, equations = _texts_of(trace, devices, rows, "equation")

    op = devices.op_code[rows]
    # Launches that are one row of the table become neighbours; ``first`` is the first of each such group.
    order = np.lexsort((op, shape, name))
    name, shape, op = name[order], shape[order], op[order]
    first = np.flatnonzero(np.concatenate([[True], (np.diff(name) != 0) | (np.diff(shape) != 0) | (np.diff(op) != 0)]))
    name, shape, op = name[first], shape[first], op[first]
    count = np.diff(first, append=len(order))
    duration_ps = trace.duration_ps[event[order]]
    total_ps = np.add.reduceat(duration_ps, first)
    occupancy = _occupancy(trace, devices.plane[rows], launch, launches)[order]
    product = np.logical_or.reduceat(is_product(equations)[equation[order]], first)

    op_eligible = tensor_core_eligible(devices.op_names, devices.op_types)
    uses = uses_tensor_core(names)[name]
    columns: dict[str, NDArray[Any]] = {
        "kernel_name": _objects(names)[name],
        "registers_per_thread": _objects([one[0] for one in shapes])[shape],
        "shared_memory_bytes": _objects([one[1] for one in shapes])[shape],
        "block_dim": _objects([",".join(map(str, one[2])) for one in shapes])[shape],
        "grid_dim": _objects([",".join(map(str, one[3])) for one in shapes])[shape],
        "occupancy_pct": np.fmax.reduceat(occupancy, first),
        # The last one of the ops is for op -1.
        "tensor_core_eligible": np.append(op_eligible, False)[op] | uses | product,
        "uses_tensor_core": uses,
        "op_name": _objects([*devices.op_names, ""])[op],
        "occurrences": count,
        "total_time_us": total_ps / 1e6,
        "avg_time_us": total_ps / count / 1e6,
        "min_time_us": np.minimum.reduceat(duration_ps, first) / 1e6,
        "max_time_us": np.maximum.reduceat(duration_ps, first) / 1e6,
    }
    keys = [columns[key].tolist() for key in ("kernel_name", "op_name", "grid_dim", "block_dim")]
    by_time = list(zip((-total_ps).tolist(), *keys, strict=True))
    shown = np.array(sorted(range(len(by_time)), key=by_time.__getitem__), np.int64)
    return pd.DataFrame({key: _typed(columns[key][shown], kind) for key, kind in COLUMNS.items()})


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """Python's objects as an array."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _typed(values: NDArray[Any], kind: str) -> Any:
    """A column of the table; None in an integer column is NA."""
    if kind == "Int64":
        missing = np.array([value is None for value in values], bool)
        return pd.arrays.IntegerArray(np.where(missing, 0, values).astype(np.int64), missing)
    return pd.Series(values, dtype=kind, copy=False) if kind == "object" else values.astype(kind, copy=False)


def _recode(code: NDArray[np.integer[Any]], label: Callable[[int], T]) -> tuple[NDArray[np.int64], list[T]]:
    """Give codes with equal labels one code; return the codes and the distinct labels."""
    used, inverse = np.unique(code, return_inverse=True)
    table: dict[T, int] = {}
    recoded = np.array([table.setdefault(label(int(c)), len(table)) for c in used], np.int64)
    return recoded[inverse], list(table)


def _texts_of(
    trace: Trace, devices: DeviceEvents, rows: NDArray[np.int64], stat: str
) -> tuple[NDArray[np.int64], list[str]]:
    """A string stat of some device events: the code of each one's text, and the texts; empty where unset."""
    owner, code, texts = trace.strings(stat)
    row, found = devices.rows(owner)
    dense = np.full(len(devices), len(texts), np.int64)
    dense[row] = code[found]
    return dense[rows], [*texts, ""]


def _occupancy(
    trace: Trace, plane: NDArray[np.int32], launch: NDArray[np.int64], launches: list[Launch]
) -> NDArray[np.float64]:
    """Occupancy of each kernel launch: the file's, else what the device's capability allows."""

    def column(values: list[float | None]) -> NDArray[np.float64]:
        return np.array([np.nan if v is None else v for v in values], np.float64)

    stored = column([one.occupancy_pct for one in launches])
    result = stored[launch]
    threads = column([float(np.prod(one.block, dtype=np.float64)) if one.block else None for one in launches])
    registers = column([one.registers for one in launches])
    shared = column([one.shared_bytes for one in launches])
    for device in np.unique(plane):
        stats = trace.space.plane_stats[device]
        if stats.get("device_vendor", "Nvidia") != "Nvidia":
            continue
        capability = stats.get("compute_cap_major"), stats.get("compute_cap_minor")
        computed = occupancy_pct(*capability, threads, registers, shared)
        here = (plane == device) & np.isnan(result)
        result[here] = computed[launch[here]]
    return result
