"""An allocator that reports what it does, as TensorFlow's do: one event an allocation or release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .thread import Thread


@dataclass
class Allocator:
    """A heap with its statistics.

    Parameters
    ----------
    name : str
        Such as ``mklcpu`` or ``GPU_0_bfc``.
    capacity_bytes, in_use_bytes : int
        Size of the heap, and what was allocated before the capture.
    peak_bytes : int
        The most that was ever in use, since before the capture.
    """

    name: str
    capacity_bytes: int
    in_use_bytes: int = 0
    peak_bytes: int = 0
    _next: int = 0x5555_0000_0000
    _live: dict[int, tuple[int, int]] = field(default_factory=dict)

    def allocate(
        self, thread: Thread, requested_bytes: int, op: str, step_id: int, shape: str, data_type: int = 1, region: str = "output",
        **more: Any,
    ) -> int:  # fmt: skip
        """Write an allocation; return its address."""
        size = -(-requested_bytes // 256) * 256
        address = self._next
        self._next += size
        self.in_use_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.in_use_bytes)
        self._live[address] = requested_bytes, size
        thread.instant(
            "MemoryAllocation", self._state(requested_bytes, size, address), tf_op=op, id=step_id, region_type=region,
            data_type=data_type, shape=shape, **more,
        )  # fmt: skip
        return address

    def release(self, thread: Thread, address: int, **more: Any) -> None:
        """Write the release of an address."""
        requested, size = self._live.pop(address)
        self.in_use_bytes -= size
        thread.instant("MemoryDeallocation", self._state(requested, size, address), id=0, data_type=0, **more)

    def _state(self, requested: int, size: int, address: int) -> dict[str, Any]:
        free = self.capacity_bytes - self.in_use_bytes
        # The number is printed and parsed again, so a whole one becomes an integer.
        fragmentation = round(min(0.9, 0.1 + len(self._live) / 200), 2) if self._live else 0
        return {
            "allocator_name": self.name, "bytes_reserved": 0, "bytes_allocated": self.in_use_bytes,
            "bytes_available": free, "fragmentation": fragmentation, "peak_bytes_in_use": self.peak_bytes,
            "requested_bytes": requested, "allocation_bytes": size, "addr": address,
        }  # fmt: skip
