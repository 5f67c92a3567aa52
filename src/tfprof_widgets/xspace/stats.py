"""The stats of events: half a million small typed values, read by name as whole arrays.

The type of one stat may differ from event to event (``fragmentation`` is an integer when its text was
one, ``id`` is signed or unsigned by its size), so callers say what they want:
``ints``, ``floats`` or ``strings``.
"""

from __future__ import annotations

import gzip
import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


class StatVocabulary:
    """Names of stats (and strings referred to by ``ref_value``) of all planes, in one table.

    Parameters
    ----------
    entries : pyarrow.ListArray (P)
        The ``stat_metadata`` map of each plane.
    offsets : int64 array (P + 1)
        First entry of each plane.
    """

    def __init__(self, entries: pa.ListArray, offsets: NDArray[np.int64]) -> None:
        values = entries.values
        self._keys = np.asarray(values.field("key")).astype(np.int64)
        raw = values.field("value").field("name").to_pylist()
        # Names from some Windows builds begin with a NUL byte.
        texts = [(v or b"").decode("utf-8", "replace").lstrip("\0") for v in raw]
        self.code: dict[str, int] = {}
        self._codes = np.array([self.code.setdefault(t, len(self.code)) for t in texts], np.int32)
        self._offsets = offsets
        self._by_plane: dict[int, dict[int, int]] = {}

    @cached_property
    def texts(self) -> list[str]:
        """All names, by code."""
        return list(self.code)

    def codes(self, plane: int, ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """Codes of plane-local ids; -1 where the plane has no such id."""
        from .reader import lookup

        first, last = self._offsets[plane], self._offsets[plane + 1]
        found = lookup(self._keys[first:last], ids)
        if last == first:
            return np.full(len(ids), -1, np.int32)
        return np.where(found >= 0, self._codes[first:last][found], np.int32(-1))

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
    """Stats of N owners (events, or event metadata), stored as the file has them.

    Parameters
    ----------
    lists : pyarrow.ListArray (N)
        The stats of each owner.
    offsets : int64 array (N + 1)
        First stat of each owner.
    owner_of_plane : int64 array (P + 1)
        First owner of each plane.
    vocabulary : StatVocabulary
        The planes' names for stats.
    """

    def __init__(
        self,
        lists: pa.ListArray,
        offsets: NDArray[np.int64],
        owner_of_plane: NDArray[np.int64],
        vocabulary: StatVocabulary,
    ) -> None:
        self._columns: pa.StructArray = lists.values
        self._offsets = offsets
        self._stat_of_plane = offsets[owner_of_plane]
        self._vocabulary = vocabulary

    def __len__(self) -> int:
        """Return the number of stats."""
        return len(self._columns)

    @cached_property
    def names(self) -> list[str]:
        """Names of the stats that occur at least once."""
        codes = self._order[1]
        return [self._vocabulary.texts[c] for c in np.unique(codes) if c >= 0]

    @cached_property
    def _order(self) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.signedinteger[Any]]]:
        """Stats sorted by name (stable, so by owner within a name), and the sorted name codes."""
        ids = np.asarray(self._columns.field("metadata_id"))
        small = len(self._vocabulary.code) < 2**15
        codes: NDArray[np.signedinteger[Any]] = np.empty(len(ids), np.int16 if small else np.int32)
        for plane in range(len(self._stat_of_plane) - 1):
            part = slice(self._stat_of_plane[plane], self._stat_of_plane[plane + 1])
            if part.start < part.stop:
                codes[part] = self._vocabulary.codes(plane, ids[part])
        order: NDArray[np.signedinteger[Any]] = np.argsort(codes, kind="stable")  # radix sort: linear for 16 bits
        if len(order) < 2**31:
            order = order.astype(np.int32)
        return order, codes[order]

    def _rows(self, name: str) -> NDArray[np.signedinteger[Any]]:
        code = self._vocabulary.code.get(name)
        if code is None:
            return np.empty(0, np.int64)
        order, codes = self._order
        # In the type of the codes: another would convert all of them at each call.
        low, high = np.searchsorted(codes, np.array([code, code + 1], codes.dtype))
        return order[low:high]

    def _owners(self, rows: NDArray[np.signedinteger[Any]]) -> NDArray[np.int64]:
        return np.searchsorted(self._offsets, rows, side="right") - 1

    def _taken(self, field: str, rows: NDArray[np.signedinteger[Any]]) -> pa.Array:
        return self._columns.field(field).take(pa.array(rows))

    def owners(self, name: str) -> NDArray[np.int64]:
        """Owners (events) that have the stat, whatever its type; ascending."""
        return self._owners(self._rows(name))

    def ints(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Owners and values of an integer stat.

        Signed and unsigned values are brought to the same 64 bits (identifiers switch between the
        two by size); values of other types are left out.

        Returns
        -------
        owner, value : int64 arrays (n), ascending by owner
        """
        rows = self._rows(name)
        signed = self._taken("int64_value", rows)
        unsigned = self._taken("uint64_value", rows)
        value = np.asarray(signed.fill_null(0)).view(np.int64)
        if unsigned.null_count < len(rows):
            is_unsigned = np.asarray(unsigned.is_valid())
            value = np.where(is_unsigned, np.asarray(unsigned.fill_null(0)).view(np.int64), value)
            known = is_unsigned | np.asarray(signed.is_valid())
        else:
            known = np.asarray(signed.is_valid())
        if not known.all():
            rows, value = rows[known], value[known]
        return self._owners(rows), value

    def floats(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Owners and values of a numeric stat as float64, whichever number type each has.

        Returns
        -------
        owner, value : int64 array (n), float64 array (n), ascending by owner
        """
        rows = self._rows(name)
        value = np.zeros(len(rows), np.float64)
        known = np.zeros(len(rows), np.bool_)
        for field in ("double_value", "int64_value", "uint64_value"):
            column = self._taken(field, rows)
            if column.null_count < len(rows):
                valid = np.asarray(column.is_valid())
                value[valid] = np.asarray(column.drop_null()).astype(np.float64)
                known |= valid
        return self._owners(rows[known]), value[known]

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
        rows = self._rows(name)
        codes = np.full(len(rows), -1, np.int32)
        table: dict[str, int] = {}
        reference = self._taken("ref_value", rows)
        if reference.null_count < len(rows):
            at = np.flatnonzero(np.asarray(reference.is_valid()))
            ids = np.asarray(reference.drop_null()).view(np.int64)
            plane = np.searchsorted(self._stat_of_plane, rows[at], side="right") - 1
            words = np.empty(len(at), np.int32)
            for p in np.unique(plane):
                words[plane == p] = self._vocabulary.codes(int(p), ids[plane == p])
            distinct, inverse = np.unique(words, return_inverse=True)
            texts = [self._vocabulary.texts[w] if w >= 0 else "" for w in distinct]
            codes[at] = np.array([table.setdefault(t, len(table)) for t in texts], np.int32)[inverse]
        for field in ("str_value", "compressed_str", "bytes_value"):
            column = self._taken(field, rows)
            if column.null_count == len(rows):
                continue
            at = np.flatnonzero(np.asarray(column.is_valid()))
            encoded = column.drop_null().dictionary_encode()
            raw = encoded.dictionary.to_pylist()
            if field == "compressed_str":
                raw = [_inflate(v) for v in raw]
            texts = [v.decode("utf-8", "replace") for v in raw]
            codes[at] = np.array([table.setdefault(t, len(table)) for t in texts], np.int32)[
                np.asarray(encoded.indices)
            ]
        known = codes >= 0
        return self._owners(rows[known]), codes[known], list(table)

    def of(self, owner: int) -> dict[str, Any]:
        """All stats of one owner, as Python objects: for showing the details of one event."""
        low, high = int(self._offsets[owner]), int(self._offsets[owner + 1])
        plane = int(np.searchsorted(self._stat_of_plane, low, side="right")) - 1
        return {
            self._vocabulary.name(plane, stat["metadata_id"]): self._vocabulary.value(plane, stat)
            for stat in self._columns.slice(low, high - low).to_pylist()
        }


def _inflate(data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return data
