"""Theoretical occupancy of NVIDIA GPUs: the share of a multiprocessor's warps that a kernel can keep resident."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_WARP = 32
_MAX_THREADS_PER_BLOCK = 1024
# A multiprocessor has four partitions, each with its own registers, and gives a warp registers by the 256.
_PARTITIONS = 4
_REGISTER_UNIT = 256


class _Limits(NamedTuple):
    """What one multiprocessor holds (CUDA C++ Programming Guide, "Technical specifications per compute capability")."""

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 65536

    def shared_unit(self, major: int) -> int:
        return 128 if major >= 8 else 256

    def reserved_bytes(self, major: int) -> int:
        """Shared memory of each block that CUDA keeps for itself."""
        return 1024 if major >= 8 else 0


_KIB = 1024
# By compute capability. A capability that isn't here gets no occupancy: a guess would look like a measurement.
_LIMITS = {
    (3, 5): _Limits(64, 16, 48 * _KIB),
    (3, 7): _Limits(64, 16, 112 * _KIB, 131072),
    (5, 0): _Limits(64, 32, 64 * _KIB),
    (5, 2): _Limits(64, 32, 96 * _KIB),
    (6, 0): _Limits(64, 32, 64 * _KIB),
    (6, 1): _Limits(64, 32, 96 * _KIB),
    (7, 0): _Limits(64, 32, 96 * _KIB),
    (7, 2): _Limits(64, 32, 96 * _KIB),
    (7, 5): _Limits(32, 16, 64 * _KIB),
    (8, 0): _Limits(64, 32, 164 * _KIB),
    (8, 6): _Limits(48, 16, 100 * _KIB),
    (8, 7): _Limits(48, 16, 164 * _KIB),
    (8, 9): _Limits(48, 24, 100 * _KIB),
    (9, 0): _Limits(64, 32, 228 * _KIB),
    (10, 0): _Limits(64, 32, 228 * _KIB),
    (10, 3): _Limits(64, 32, 228 * _KIB),
    (12, 0): _Limits(48, 24, 100 * _KIB),
    (12, 1): _Limits(48, 24, 100 * _KIB),
}


def occupancy_pct(
    major: Any,
    minor: Any,
    threads_per_block: ArrayLike,
    registers_per_thread: ArrayLike,
    shared_bytes_per_block: ArrayLike,
) -> NDArray[np.float64]:
    """Resident warps as percent of the most that a multiprocessor holds.

    The calculation is that of CUDA's occupancy calculator, with the largest share of the memory given to shared memory.

    Parameters
    ----------
    major, minor : int
        Compute capability of the device; anything else is a capability that isn't known.
    threads_per_block, registers_per_thread, shared_bytes_per_block : arrays (n)
        Of each kernel.

    Returns
    -------
    float64 array (n)
        From 0 to 100; NaN where the capability isn't known or the kernel could not run on the device.
    """
    threads = np.asarray(threads_per_block, np.float64)
    registers = np.asarray(registers_per_thread, np.float64)
    shared = np.asarray(shared_bytes_per_block, np.float64)
    limits = _LIMITS.get((major, minor)) if isinstance(major, int) and isinstance(minor, int) else None
    if limits is None:
        return np.full(threads.shape, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        warps = np.ceil(threads / _WARP)
        registers_per_warp = _ceil_to(np.maximum(registers, 1) * _WARP, _REGISTER_UNIT)
        resident_by_registers = np.floor(limits.registers / _PARTITIONS / registers_per_warp) * _PARTITIONS
        unit, reserved = limits.shared_unit(major), limits.reserved_bytes(major)
        shared_per_block = _ceil_to(shared + reserved, unit)
        blocks = np.minimum.reduce(
            [
                np.full(threads.shape, float(limits.blocks)),
                np.floor(limits.warps / warps),
                np.floor(resident_by_registers / warps),
                np.where(shared_per_block == 0, np.inf, np.floor(limits.shared_bytes / shared_per_block)),
            ]
        )
    possible = (threads > 0) & (threads <= _MAX_THREADS_PER_BLOCK) & (blocks >= 1)
    return np.where(possible, 100.0 * blocks * warps / limits.warps, np.nan)


def _ceil_to(value: NDArray[np.float64], unit: int) -> NDArray[np.float64]:
    return np.ceil(value / unit) * unit
