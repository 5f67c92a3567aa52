"""Numbers as columns of bytes, which gzip packs best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def n_bytes_of(largest: int) -> int:
    """Return how many bytes a number needs; at least one."""
    return max(1, (largest.bit_length() + 7) // 8)


def byte_columns(name: str, values: NDArray[Any], n_bytes: int = 0) -> dict[str, NDArray[np.uint8]]:
    """Split numbers that aren't negative into their bytes, a column each: ``{name}0`` holds the lowest.

    Parameters
    ----------
    values : integer array (N)
        The numbers.
    n_bytes : int
        Columns to make; by default as many as the largest number needs.
    """
    n_bytes = n_bytes or n_bytes_of(int(values.max()) if len(values) else 0)
    split = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    return {f"{name}{i}": np.ascontiguousarray(split[:, i]) for i in range(n_bytes)}
