"""Stats, from their bytes to columns.

The decoder takes twice as long for the events' stats as for all the rest, and makes eight columns of 64 bits of which
each stat uses two. So it leaves them as bytes, and they are taken apart here, all of them at once: a stat as profilers
write it is its name's id, then one value. Any other, which protobuf allows (no id, fields twice, in another order), goes
through protobuf itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf import message_factory

from .descriptor import xplane_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What a stat's value is. The last two are made texts by `stats.Stats`.
UNSET, DOUBLE, UNSIGNED, SIGNED, TEXT, BYTES, REFERENCE, COMPRESSED = range(8)
_OTHER = -1
_FIELDS = {
    "double_value": DOUBLE, "uint64_value": UNSIGNED, "int64_value": SIGNED, "str_value": TEXT, "bytes_value": BYTES,
    "ref_value": REFERENCE, "compressed_str": COMPRESSED,
}  # fmt: skip
_ID_TAG = 0x08
_KIND_OF_TAG = np.full(256, _OTHER, np.int8)
_KIND_OF_TAG[[0x11, 0x18, 0x20, 0x2A, 0x32, 0x38, 0x42]] = DOUBLE, UNSIGNED, SIGNED, TEXT, BYTES, REFERENCE, COMPRESSED
_IS_VARINT = np.zeros(256, np.bool_)
_IS_VARINT[[0x18, 0x20, 0x38]] = True
_LONGEST_VARINT = 10
# By the number of a varint's bytes, of which the first eight are looked at as one word: which bits of the word are its own, and
# which of them must say that more follows (all but the last byte's). None is of no bytes, or of eleven.
_OWN_BITS = np.array([0, *((1 << min(8 * n, 64)) - 1 for n in range(1, 12))], np.uint64)
_MORE_BITS = np.array([1, *(int.from_bytes(b"\x80" * min(n - 1, 8), "big") for n in range(1, 11)), 1], np.uint64)
_TOP_BITS = np.uint64(0x8080808080808080)
# What one part needs stays in the processor's cache.
_PART = 1 << 15


class Decoded(NamedTuple):
    """S stats.

    Attributes
    ----------
    id : int64 array (S)
        Id of the stat's name in its plane.
    kind : int8 array (S)
        `UNSET` and so on.
    bits : int64 array (S)
        The 64 bits of a number, the id of a reference; 0 for texts.
    texts : list of (int, int64 array (K), BinaryArray (K))
        Kind, stats (ascending) and texts, for each of the kinds `TEXT`, `BYTES` and `COMPRESSED` that occurs.
    """

    id: NDArray[np.int64]
    kind: NDArray[np.int8]
    bits: NDArray[np.int64]
    texts: list[tuple[int, NDArray[np.int64], pa.Array]]


def decode_stats(stats: pa.BinaryArray) -> Decoded:
    """Take stats apart.

    Parameters
    ----------
    stats : BinaryArray (S)
        The bytes of each ``XStat`` message.

    Raises
    ------
    google.protobuf.message.DecodeError
        If the bytes of a stat are no such message.
    """
    _, offset_buffer, data_buffer = stats.buffers()
    decoded = Decoded(np.zeros(len(stats), np.int64), np.zeros(len(stats), np.int8), np.zeros(len(stats), np.int64), [])
    if not len(stats):
        return decoded
    offset = np.frombuffer(offset_buffer, np.int32)[stats.offset : stats.offset + len(stats) + 1]
    data = np.frombuffer(data_buffer or b"", np.uint8)
    wrong = np.zeros(len(stats), np.bool_)
    for first in range(0, len(stats), _PART):
        part = slice(first, first + _PART)
        bounds = offset[first : first + _PART + 1].astype(np.int64)
        # Room behind, so that eight bytes can be read at once wherever a value begins.
        own = np.zeros(int(bounds[-1] - bounds[0]) + 16, np.uint8)
        own[:-16] = data[bounds[0] : bounds[-1]]
        bounds -= bounds[0]
        wrong[part] = _numbers(own, bounds, decoded.id[part], decoded.kind[part], decoded.bits[part])
    for kind in (TEXT, BYTES, COMPRESSED):
        which = np.flatnonzero(decoded.kind == kind)
        if len(which):
            start, end = offset[which].astype(np.int64), offset[which + 1].astype(np.int64)
            value = start + 3 + (data[start + 1] >= 128)
            length, first_byte = _varints(data, value, end)
            whole = (first_byte >= 0) & (first_byte + length == end)
            wrong[which[~whole]] = True
            which, first_byte, end = which[whole], first_byte[whole], end[whole]
            decoded.texts.append((kind, which, _slices(data, first_byte, end)))
    return _by_protobuf(stats, np.flatnonzero(wrong), decoded) if wrong.any() else decoded


def _numbers(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    name_id: NDArray[np.int64],
    kind: NDArray[np.int8],
    bits: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Fill in the ids, kinds and bits of some stats (0 for texts), and tell which are not written as expected.

    ``bounds`` are where each begins in ``data``, and where the last one ends.
    """
    start, end = bounds[:-1], bounds[1:]
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    name = data[start + 1]
    name_id[:] = name
    position = start + 2
    wrong = data[start] != _ID_TAG
    if (name >= 128).any():
        longer = np.flatnonzero(name >= 128)
        second = data[position[longer]].astype(np.int64)
        name_id[longer] = (name_id[longer] & 127) | (second << 7)
        position[longer] += 1
        wrong[longer[second >= 128]] = True  # as many names as that are rare
    tag = data[position]
    kind[:] = _KIND_OF_TAG[tag]
    no_value = position >= end
    wrong |= (position > end) | ((kind == _OTHER) & ~no_value)
    kind[no_value] = UNSET

    position += 1
    size = np.clip(end - position, 0, _LONGEST_VARINT + 1)
    word = words[position]
    value = word & _OWN_BITS[size]
    whole = (value & _TOP_BITS) == _MORE_BITS[size]
    # Seven bits of each byte: pairs of bytes, of pairs, of fours are moved together.
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    ):
        value = (value & np.uint64(low)) | ((value & np.uint64(high)) >> np.uint64(shift))
    long = np.flatnonzero(size > 8)
    if len(long):
        ninth = data[position[long] + 8].astype(np.uint64)
        value[long] |= (ninth & np.uint64(127)) << np.uint64(56)
        whole[long] &= (ninth >= 128) == (size[long] > 9)
        longest = long[size[long] > 9]
        tenth = data[position[longest] + 9].astype(np.uint64)
        value[longest] |= tenth << np.uint64(63)
        whole[longest] &= tenth < 2
    bits[:] = value.view(np.int64)

    other = np.flatnonzero(~_IS_VARINT[tag] | no_value)
    whole[other] = True
    bits[other] = 0
    double = other[kind[other] == DOUBLE]
    bits[double] = word[double].view(np.int64)
    whole[double] = size[double] == 8
    return wrong | ~whole


def _varints(
    data: NDArray[np.uint8], position: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of 7 bits a byte at some positions, and where each ends (-1 if it doesn't before its ``end``)."""
    value = np.zeros(len(position), np.int64)
    after = np.full(len(position), -1, np.int64)
    left = np.flatnonzero(position < end)
    at = position[left]
    for byte in range(_LONGEST_VARINT):
        if not len(left):
            break
        found = data[at]
        value[left] |= (found & 127).astype(np.int64) << (7 * byte)
        at += 1
        last = found < 128
        after[left[last]] = at[last]
        on = ~last & (at < end[left])
        left, at = left[on], at[on]
    return value, after


def _slices(data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]) -> pa.Array:
    """Parts of the data, ascending, as a BinaryArray: every other one of the parts and what is between them."""
    bounds = np.stack([start, end], 1).ravel().astype(np.int32)
    both = pa.BinaryArray.from_buffers(
        pa.binary(), max(len(bounds) - 1, 0), [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    return both.take(pa.array(np.arange(0, len(both), 2)))


@lru_cache(maxsize=1)
def _message() -> Any:
    return message_factory.GetMessageClass(xplane_file().message_types_by_name["XStat"])


def _by_protobuf(stats: pa.BinaryArray, which: NDArray[np.int64], decoded: Decoded) -> Decoded:
    """Fill in some stats as protobuf reads them."""
    texts: dict[int, dict[int, bytes]] = {}
    for kind, at, values in decoded.texts:
        texts[kind] = dict(zip(at.tolist(), values.to_pylist(), strict=True))
    for index, raw in zip(which.tolist(), stats.take(pa.array(which)).to_pylist(), strict=True):
        for known in texts.values():
            known.pop(index, None)
        stat = _message().FromString(raw or b"")
        field = stat.WhichOneof("value")
        kind = UNSET if field is None else _FIELDS[field]
        decoded.id[index], decoded.kind[index], decoded.bits[index] = stat.metadata_id, kind, 0
        if kind in (TEXT, BYTES, COMPRESSED):
            texts.setdefault(kind, {})[index] = getattr(stat, field)
        elif kind == DOUBLE:
            decoded.bits[index] = np.float64(stat.double_value).view(np.int64)
        elif field is not None:
            decoded.bits[index] = np.array(getattr(stat, field) % 2**64, np.uint64).view(np.int64)
    merged = []
    for kind in (TEXT, BYTES, COMPRESSED):
        if texts.get(kind):
            indices = sorted(texts[kind])
            values = pa.array([texts[kind][index] for index in indices], pa.binary())
            merged.append((kind, np.array(indices, np.int64), values))
    return Decoded(decoded.id, decoded.kind, decoded.bits, merged)
