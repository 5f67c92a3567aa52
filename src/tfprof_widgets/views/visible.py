"""Characters that change or hide the text around them, made visible.

A profile's names may hold anything: a right-to-left override that shows a name backwards, an escape sequence that
moves a terminal's cursor, bytes that are no text. On the page and in the summary they stand as what they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

# Controls (line feed and tab are layout), marks of direction and separators of lines.
_CLASS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_SPECIAL = re.compile(f"[{_CLASS}\ud800-\udfff]")
# The same for RE2, which has no surrogates to look for: Arrow's texts are UTF-8.
_SPECIAL_RE2 = "[" + re.sub(r"\\u(....)", r"\\x{\1}", _CLASS) + "]"


def visible(text: str) -> str:
    r"""Return `text` with each control character, mark of direction and lone surrogate as a sign that shows it.

    The signs are Python's escapes (``\x1b``, ``\u202e``), and ``�`` for half of a surrogate pair. Tabs and line feeds stay.
    """
    return _SPECIAL.sub(_sign, text)


def visible_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of texts, or of a dictionary of texts, as `visible` gives each."""
    if pa.types.is_dictionary(column.type):
        return column if not _any_special(column.cast(pa.string())) else _each(column.cast(pa.string()), visible)
    return _each(column, visible) if _any_special(column) else column


def _any_special(column: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, _SPECIAL_RE2)).as_py())


def _each(column: pa.ChunkedArray, change: Callable[[str], str]) -> pa.ChunkedArray:
    """Change the distinct texts of a column, which are few."""
    encoded = column.combine_chunks().dictionary_encode()
    texts = [text if text is None else change(text) for text in encoded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string()).take(encoded.indices)])


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
