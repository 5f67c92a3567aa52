"""Directories in which captures lie until their report is there, and those that earlier processes left.

Each holds ``capture.json``, which says whose it is and what was captured, so that a capture whose kernel died can be
told from one that is still being made, and opened.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PREFIX = "tfprof-"
_MANIFEST = "capture.json"

# Those of captures that this process is still at work on.
_in_use: set[str] = set()


class Scratch:
    """A new directory for one capture, removed by `remove`, or at the latest when this process ends.

    Parameters
    ----------
    parent
        Where to make it; None for the system's place for temporary files. In a log directory it is a hidden one.
    facts
        What to write down about the capture, JSON-able.

    Raises
    ------
    OSError
        If it cannot be made or written to.
    """

    def __init__(self, parent: Path | None, facts: dict[str, Any]) -> None:
        import psutil

        prefix = PREFIX if parent is None else f".{PREFIX}"
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._finalizer = weakref.finalize(self, _remove, str(self.path), os.getpid())
        _in_use.add(str(self.path))
        owner = {
            "pid": os.getpid(),
            "process_started_s": psutil.Process().create_time(),
            "machine": socket.gethostname(),
        }
        try:
            (self.path / _MANIFEST).write_text(json.dumps({**owner, **facts}), encoding="utf-8")
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the directory and what is in it."""
        self._finalizer()

    def leave(self) -> None:
        """Let the directory be: `leftovers` finds it from now on."""
        self._finalizer.detach()
        _in_use.discard(str(self.path))


def _remove(path: str, pid: int) -> None:
    # A fork of this process must not remove what is still its parent's.
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)
        _in_use.discard(path)


@dataclass(frozen=True)
class Leftover:
    """A capture's directory that nobody is at work on any more.

    Attributes
    ----------
    path
        The directory.
    facts
        What was written down about the capture; empty if that cannot be read.
    files
        The profiles in it, one a host; none if the process ended before the profiler stopped.
    """

    path: Path
    facts: dict[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Of all profiles."""
        return sum(file.stat().st_size for file in self.files)


def leftovers(logdir: Path | None = None) -> list[Leftover]:
    """Return what earlier processes left, or this one where it could make no report; oldest first.

    Parameters
    ----------
    logdir
        A log directory in which to look too.
    """
    found = []
    for directory in _candidates(logdir):
        facts = _facts(directory)
        if facts is None or _is_owned(directory, facts):
            continue
        files = tuple(sorted(directory.glob("plugins/profile/*/*.xplane.pb")))
        found.append(Leftover(directory, facts, files))
    return sorted(found, key=lambda each: each.facts.get("started_s", 0.0))


def _candidates(logdir: Path | None) -> Iterator[Path]:
    places = [(Path(tempfile.gettempdir()), f"{PREFIX}*")] + ([(logdir, f".{PREFIX}*")] if logdir else [])
    for place, pattern in places:
        for directory in place.glob(pattern):
            try:
                status = directory.lstat()
            except OSError:  # gone just now
                continue
            # Where everybody may write, what is not ours may be anything.
            mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            if mine and directory.is_dir() and not directory.is_symlink():
                yield directory


def _facts(directory: Path) -> dict[str, Any] | None:
    """Return what was written down; None if this is no directory of ours."""
    try:
        facts = json.loads((directory / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and isinstance(facts.get("pid"), int) else None


def _is_owned(directory: Path, facts: dict[str, Any]) -> bool:
    import psutil

    if facts.get("machine") != socket.gethostname():
        # On a disk that machines share, as log directories and TMPDIR may be: whether that process lives cannot be known here.
        return True
    if facts["pid"] == os.getpid():
        return str(directory) in _in_use
    try:
        # Another process may have got the number since.
        return abs(psutil.Process(facts["pid"]).create_time() - float(facts["process_started_s"])) < 1.0
    except (psutil.Error, KeyError, TypeError, ValueError):
        return False
