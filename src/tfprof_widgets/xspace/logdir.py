"""Log directories: where profilers leave their files, and which of them belong together.

TensorFlow writes ``<logdir>/plugins/profile/<run>/<host>.xplane.pb``. A run is a directory with such files; each
file is one host's profile.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ..scratch import PREFIX
from .reader import XSpaceError

SUFFIXES = (".xplane.pb", ".xplane.pb.gz")


@dataclass(frozen=True)
class Run:
    """One profiling session in a log directory.

    Attributes
    ----------
    name : str
        Name of the run's directory (TensorFlow's is the time of the session, ``2026_11_29_19_06_28``).
    path : str
        The directory, as a path or URL.
    files : tuple of str
        One file a host, ordered as people count: ``worker-2`` before ``worker-10``.
    size_bytes : int
        Of all files.
    modified : datetime or None
        When the newest file was written; None where the storage doesn't tell.
    """

    name: str
    path: str
    files: tuple[str, ...]
    size_bytes: int
    modified: datetime | None


def find_runs(path: str | os.PathLike[str]) -> list[Run]:
    """List the runs under a path, oldest first.

    Parameters
    ----------
    path : path or URL
        A log directory (any level of it), a run's directory, or one file. URLs (``gs://…``, ``s3://…``) go through fsspec.

    Returns
    -------
    list of Run
        Empty if there is no profile below the path.

    Raises
    ------
    FileNotFoundError
        If the path doesn't exist.
    ImportError
        If a package is missing that opens URLs of this kind; the message names it.
    XSpaceError
        If nothing opens URLs of this kind.
    """
    text = os.fspath(path)
    fs, root = _file_system(text)
    if not fs.exists(root):
        # Storage says no more to those who may not look.
        hint = ", or no right to read it with the credentials that are set up here" if "://" in text else ""
        msg = f"{text}: no such file or directory{hint}."
        raise FileNotFoundError(msg)
    found = {root: fs.info(root)} if fs.isfile(root) else _profiles(fs, root)
    by_directory: dict[str, dict[str, dict[str, object]]] = {}
    for name, info in found.items():
        by_directory.setdefault(name.rpartition("/")[0], {})[name] = info
    runs = [
        Run(
            name=directory.rpartition("/")[2],
            path=fs.unstrip_protocol(directory) if "://" in text else directory,
            files=tuple(fs.unstrip_protocol(f) if "://" in text else f for f in sorted(files, key=natural_key)),
            size_bytes=sum(int(str(info.get("size") or 0)) for info in files.values()),
            modified=max(filter(None, map(_modified, files.values())), default=None),
        )
        for directory, files in by_directory.items()
    ]
    # TensorFlow names runs by their time, so the name orders what was written in the same instant.
    oldest = datetime.min.replace(tzinfo=timezone.utc)
    return sorted(runs, key=lambda run: (run.modified or oldest, run.name))


def newest_run(path: str | os.PathLike[str]) -> Run:
    """Return the newest run under a path.

    Raises
    ------
    XSpaceError
        If there is none; the message says what was looked for.
    """
    runs = find_runs(path)
    if not runs:
        msg = (
            f"{os.fspath(path)}: no profile in it (looked for *.xplane.pb at any depth; TensorFlow writes them to "
            "<logdir>/plugins/profile/<run>/). Was the profiler stopped, and is this the directory given to it?"
        )
        raise XSpaceError(msg)
    return runs[-1]


def read_bytes(path: str) -> bytes:
    """Bytes of a local file or URL."""
    with opened(path) as file:
        return bytes(file.read())


def opened(path: str) -> Any:
    """Return a local file or URL, opened to read bytes from it."""
    fs, name = _file_system(path)
    return fs.open(name, "rb")


def natural_key(name: str) -> list[tuple[int, str]]:
    """Key that orders names as people count: ``worker-2`` before ``worker-10``."""
    return [(int(part), "") if part.isdecimal() and len(part) < 19 else (-1, part) for part in re.split(r"(\d+)", name)]


def host_name(path: str) -> str:
    """Name of the host that a file's name tells: the name without its suffix."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return name.removesuffix(".gz").removesuffix(".xplane.pb")


def run_name(path: str) -> str:
    """Name of the run that a host's file is of: that of the directory it lies in; empty for a bare file name."""
    return path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2]


def _file_system(path: str) -> tuple[Any, str]:
    """Return what opens a path or URL, and the name that it has there."""
    import fsspec
    from fsspec.registry import known_implementations

    if "://" not in path:  # to fsspec, "::" in a file's name would be a chain of addresses
        fs = fsspec.filesystem("file")
        return fs, fs._strip_protocol(path)
    try:
        fs, name = fsspec.core.url_to_fs(path)
    except ImportError as error:
        scheme = path.partition("://")[0]
        # "s3fs.S3FileSystem": the package is called as its module is.
        known = known_implementations.get(scheme, {}).get("class", "")
        package = known.partition(".")[0] or "the package that fsspec asks for"
        msg = f"{path}: addresses with {scheme}:// are opened by {package}, which is not installed ({error}). pip install {package}"
        raise ImportError(msg) from error
    except ValueError as error:
        raise XSpaceError(f"{path}: nothing is known that opens such addresses ({error}).") from error
    return fs, name


def _profiles(fs: Any, root: str) -> dict[str, dict[str, object]]:
    """Every profile below a directory: once each, though it be there packed and unpacked, and none that is being made."""
    found = {
        name: info
        for name, info in fs.find(root, detail=True).items()
        if name.endswith(SUFFIXES) and f"/.{PREFIX}" not in name.removeprefix(root)
    }
    return {name: info for name, info in found.items() if name.removesuffix(".gz") not in found or name[-3:] != ".gz"}


def _modified(info: dict[str, object]) -> datetime | None:
    for key in ("mtime", "last_modified", "LastModified", "updated", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, timezone.utc)
    return None
