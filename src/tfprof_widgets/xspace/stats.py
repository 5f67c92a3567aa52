"""The stats of events: half a million small typed values, read by name as whole arrays.

The type of one stat may differ from event to event (``fragmentation`` is an integer when its text was
one, ``id`` is signed or unsigned by its size), so callers say what they want:
``ints``, ``floats`` or ``strings``.
"""

from __future__ import annotations

import copy
import gzip
import itertools
import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .wire import BYTES, COMPRESSED, DOUBLE, REFERENCE, SIGNED, TEXT, UNSET, UNSIGNED, Decoded, decode_stats

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray


class StatVocabulary:
    """Names of stats (and strings referred to by ``ref_value``) of all planes, in one table.

    Parameters
    ----------
    entries : pyarrow.ListArray (P)
        The ``stat_metadata`` map of each plane.
    offsets : int32 array (P + 1)
        First entry of each plane.
    """

    def __init__(self, entries: pa.ListArray, offsets: NDArray[np.int32]) -> None:
        values = entries.values
        self._keys = np.asarray(values.field("key")).astype(np.int64)
        raw = values.field("value").field("name").to_numpy(zero_copy_only=False).tolist()
        # Names from some Windows builds begin with a NUL byte.
        texts = [(v or b"").decode("utf-8", "replace").lstrip("\0") for v in raw]
        self.code: dict[str, int] = {}
        codes = [self.code.setdefault(t, len(self.code)) for t in texts]
        # 16 bits, if they do, are sorted in linear time.
        self._codes = np.array(codes, np.int16 if len(self.code) < 2**15 else np.int32)
        self._offsets = offsets

    @property
    def dtype(self) -> np.dtype[np.signedinteger[Any]]:
        """Type of the codes."""
        return self._codes.dtype

    @cached_property
    def texts(self) -> list[str]:
        """All names, by code."""
        return list(self.code)

    def codes(self, plane: int, ids: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
        """Codes of plane-local ids; -1 where the plane has no such id."""
        from .reader import lookup

        first, last = self._offsets[plane], self._offsets[plane + 1]
        return lookup(self._keys[first:last], self._codes[first:last], ids)

    def name(self, plane: int, stat_id: int) -> str:
        """Name of one stat of a plane."""
        code = int(self.codes(plane, np.array([stat_id], np.int64))[0])
        return self.texts[code] if code >= 0 else f"unknown stat {stat_id}"

    def value(self, plane: int, stat: dict[str, Any]) -> Any:
        """One stat's value as a Python object (float, int, str or bytes; None if unset)."""
        for field in ("double_value", "uint64_value", "int64_value"):
            if stat[field] is not None:
                return stat[field]
        if stat["str_value"] is not None:
            return stat["str_value"].decode("utf-8", "replace")
        if stat["bytes_value"] is not None:
            return stat["bytes_value"]
        if stat["compressed_str"] is not None:
            return _inflate(stat["compressed_str"]).decode("utf-8", "replace")
        if stat["ref_value"] is not None:
            return self.name(plane, min(stat["ref_value"], (1 << 63) - 1))
        return None


class Stats:
    """Stats of N owners (events, or event metadata): S stats.

    A stat is kept as 64 bits and a kind, a text as its number in a table of distinct texts, which takes less than half the
    memory of the decoded columns. They stay in the order of the file; those of one name are a slice of an index.

    Parameters
    ----------
    lists : pyarrow.ListArray (N)
        The stats of each owner, each as the bytes of its message.
    offsets : int32 array (N + 1)
        First stat of each owner.
    owner_of_plane : int32 array (P + 1)
        First owner of each plane.
    vocabulary : StatVocabulary
        The planes' names for stats.
    """

    def __init__(
        self,
        lists: pa.ListArray,
        offsets: NDArray[np.int32],
        owner_of_plane: NDArray[np.int32],
        vocabulary: StatVocabulary,
    ) -> None:
        decoded = decode_stats(lists.values)
        planes = _slices(offsets[owner_of_plane])
        # The distinct texts: the vocabulary's first, as it is what references refer to.
        self._texts: list[bytes | str] = list(vocabulary.code)
        self._code = vocabulary.code
        self._values(decoded, planes, vocabulary)
        self._name = _codes(vocabulary, planes, decoded.id)
        self._owner = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        # Names of one byte (-1 is then the last one) sort in one pass.
        key = self._name.astype(np.uint8) if len(self._code) < 256 else self._name
        by_name = np.argsort(key, kind="stable")
        bounds = np.arange(len(self._code) + 1).astype(key.dtype)  # another type would convert all names
        self._first = np.searchsorted(key[by_name], bounds)
        self._by_name = by_name.astype(np.int32)

    def _values(self, decoded: Decoded, planes: list[slice], vocabulary: StatVocabulary) -> None:
        """Turn references and texts into numbers of texts, in the columns of bits and kinds."""
        bits, kind = decoded.bits, decoded.kind
        at = np.flatnonzero(kind == REFERENCE)
        if len(at):
            ids = bits[at]
            word = np.empty(len(at), np.int64)
            bounds = np.searchsorted(at, [0, *(part.stop for part in planes)])
            for plane, part in enumerate(_slices(bounds)):
                if part.start < part.stop:
                    word[part] = vocabulary.codes(plane, ids[part])
            if (word < 0).any():  # references to nothing, in damaged files
                word[word < 0] = self._number_of("")
            kind[at], bits[at] = TEXT, word
        for text, where, values in decoded.texts:
            encoded = values.dictionary_encode()
            raw = encoded.dictionary.to_numpy(zero_copy_only=False).tolist()
            if text == COMPRESSED:
                raw = map(_inflate, raw)
            if text != BYTES:
                raw = [v.decode("utf-8", "replace") for v in raw]
            kind[where] = BYTES if text == BYTES else TEXT
            bits[where] = np.array([self._number_of(v) for v in raw], np.int64)[np.asarray(encoded.indices)]
        self._bits, self._kind = bits, kind

    def _number_of(self, text: str | bytes) -> int:
        """Number of a text that may be new."""
        known = self._code.get(text, -1) if isinstance(text, str) else -1
        if known < 0:
            known = len(self._texts)
            self._texts.append(text)
        return known

    def __len__(self) -> int:
        """Return the number of stats."""
        return len(self._name)

    @cached_property
    def names(self) -> list[str]:
        """Names of the stats that occur at least once."""
        return [str(self._texts[code]) for code in np.flatnonzero(np.diff(self._first))]

    @property
    def texts(self) -> list[str]:
        """All distinct texts: names of stats, and values; bytes as Latin-1."""
        return [text if isinstance(text, str) else text.decode("latin-1") for text in self._texts]

    def with_texts(self, change: Callable[[str | bytes], str | bytes]) -> Stats:
        """Return the same stats with every text (names of stats too) changed; the numbers are the same arrays."""
        other = copy.copy(self)
        other.__dict__.pop("names", None)
        other._texts = [change(text) for text in self._texts]
        # The names come first; of two that became one, the first stands.
        other._code = {}
        for code, name in enumerate(other._texts[: len(self._code)]):
            other._code.setdefault(str(name), code)
        return other

    def _part(self, name: str) -> NDArray[np.int64]:
        """Indices of the stats of a name, ascending."""
        code = self._code.get(name)
        part = slice(0, 0) if code is None else slice(self._first[code], self._first[code + 1])
        return self._by_name[part].astype(np.int64)

    def owners(self, name: str) -> NDArray[np.int64]:
        """Owners (events) that have the stat, whatever its type; ascending."""
        return self._owner[self._part(name)].astype(np.int64)

    def ints(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Owners and values of an integer stat.

        Signed and unsigned values are brought to the same 64 bits (identifiers switch between the
        two by size); values of other types are left out.

        Returns
        -------
        owner, value : int64 arrays (n), ascending by owner
        """
        part = self._part(name)
        owner, value, kind = self._owner[part].astype(np.int64), self._bits[part], self._kind[part]
        known = (kind == SIGNED) | (kind == UNSIGNED)
        return (owner, value) if known.all() else (owner[known], value[known])

    def floats(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Owners and values of a numeric stat as float64, whichever number type each has.

        Returns
        -------
        owner, value : int64 array (n), float64 array (n), ascending by owner
        """
        part = self._part(name)
        owner, bits, kind = self._owner[part].astype(np.int64), self._bits[part], self._kind[part]
        value = np.where(kind == DOUBLE, bits.view(np.float64), bits)
        unsigned = kind == UNSIGNED
        value[unsigned] = bits[unsigned].view(np.uint64)
        known = (kind >= DOUBLE) & (kind <= SIGNED)
        return (owner, value) if known.all() else (owner[known], value[known])

    def strings(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int32], list[str]]:
        """Owners and texts of a string stat (stored directly, by reference or compressed).

        Returns
        -------
        owner : int64 array (n), ascending
        code : int32 array (n)
            Index into ``texts``.
        texts : list of str
            The distinct texts.
        """
        part = self._part(name)
        owner, number, kind = self._owner[part].astype(np.int64), self._bits[part], self._kind[part]
        known = (kind == TEXT) | (kind == BYTES)
        if not known.all():
            owner, number = owner[known], number[known]
        used = np.zeros(len(self._texts), np.bool_)
        used[number] = True
        distinct = np.flatnonzero(used)
        position = np.cumsum(used, dtype=np.int32) - 1
        texts: dict[str, int] = {}
        again = np.array([texts.setdefault(_decoded(self._texts[i]), len(texts)) for i in distinct], np.int32)
        code = again[position[number]] if len(distinct) else np.empty(0, np.int32)
        return owner, code, list(texts)

    def of(self, owner: int) -> dict[str, Any]:
        """All stats of one owner, as Python objects: for showing the details of one event."""
        first, last = np.searchsorted(self._owner, np.array([owner, owner + 1], np.int32))
        return {
            str(self._texts[self._name[i]]) if self._name[i] >= 0 else "(unknown stat)": self._object(i)
            for i in range(first, last)
        }

    def _object(self, index: int) -> Any:
        kind, bits = self._kind[index], self._bits[index]
        if kind == DOUBLE:
            return float(bits.view(np.float64))
        if kind == UNSIGNED:
            return int(bits.view(np.uint64))
        if kind == SIGNED:
            return int(bits)
        return None if kind == UNSET else self._texts[int(bits)]


def _slices(bounds: NDArray[np.integer[Any]]) -> list[slice]:
    return [slice(int(low), int(high)) for low, high in itertools.pairwise(bounds)]


def _codes(vocabulary: StatVocabulary, planes: list[slice], ids: NDArray[np.int64]) -> NDArray[np.signedinteger[Any]]:
    """Code of each stat's name; -1 where its plane has no such id."""
    codes = np.empty(len(ids), vocabulary.dtype)
    for plane, part in enumerate(planes):
        if part.start < part.stop:
            codes[part] = vocabulary.codes(plane, ids[part])
    return codes


def _decoded(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def _inflate(data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return data
