"""The front end's built files, and BokehJS from the installed bokeh package."""

from __future__ import annotations

import gzip
import os
from functools import cache
from pathlib import Path

_STATIC = Path(__file__).resolve().parent.parent / "static"


class FrontEndMissingError(RuntimeError):
    """The front end was not built (a checkout that was not installed)."""


def front_end(name: str) -> str:
    """Return the text of a file of the built front end.

    Parameters
    ----------
    name : str
        ``widget.js``, ``inline.js`` or ``link.js``.

    Raises
    ------
    FrontEndMissingError
        If the file is not there; the message says how to build it.
    """
    path = _STATIC / name
    try:
        return _read(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        raise FrontEndMissingError(
            f"tfprof_widgets' front end is not built: {path} is missing. In a checkout run "
            "`pip install -e .`, or `npm ci && npm run build` in its js/ folder (Node 20 or later); "
            "an installed wheel has the file, so otherwise reinstall the package."
        ) from None


def front_end_gz(name: str) -> bytes:
    """Return a file of the built front end, gzipped."""
    return _packed(front_end(name))


def esm(name: str) -> str | Path:
    """Return what anywidget takes as a widget's module: the file's text.

    With ``ANYWIDGET_HMR=1``, while the front end is being worked on, the file itself: anywidget then watches it, and widgets on the page
    change with it.
    """
    text = front_end(name)
    return _STATIC / name if os.environ.get("ANYWIDGET_HMR") == "1" else text


@cache
def _read(path: Path, _changed_ns: int) -> str:
    """Text of a file, read again when it has changed."""
    return path.read_text(encoding="utf-8")


@cache
def _packed(text: str) -> bytes:
    return pack(text.encode())


@cache
def bokeh_version() -> str:
    """Return the version of the installed bokeh package, which BokehJS and the figures share."""
    import bokeh

    return bokeh.__version__


@cache
def bokeh_gz() -> bytes:
    """Return ``bokeh.min.js`` of the installed bokeh package, gzipped (about 350 kB)."""
    import bokeh

    path = Path(bokeh.__file__).resolve().parent / "server" / "static" / "js" / "bokeh.min.js"
    return pack(path.read_bytes(), level=9)


# Up to here the last percents of a page's size are worth the time: it takes some hundredths of a second.
_SMALL_BYTES = 1 << 20


def pack(data: bytes, level: int | None = None) -> bytes:
    """Gzip `data`; the same input gives the same output (no time in the header)."""
    return gzip.compress(data, compresslevel=level or (9 if len(data) <= _SMALL_BYTES else 6), mtime=0)
