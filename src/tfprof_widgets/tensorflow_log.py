"""TensorFlow's own log while the profiler starts and stops: that is where CUPTI's errors are told.

TensorFlow writes to the process's standard error (file descriptor 2), below Python's ``sys.stderr``, and offers no way to
listen. So the descriptor is led through the system's ``tee`` meanwhile. Being a process of its own, it passes on at once
all that comes, whatever this process does: holds Python's lock, crashes in a driver, or leaves a subprocess behind that
writes longer.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from .diagnosis.known_messages import explained

# Said when a capture ends; tells that CUPTI was there and recorded nothing.
_COUNTS = "GpuTracer has collected"
_MOST_LINES = 200
_MOST_BYTES = 10_000_000
# Those that pass on what a subprocess still writes.
_outliving: list[subprocess.Popen[bytes]] = []


def is_worth_listening(tf: Any) -> bool:
    """Whether this TensorFlow has a device tracer that could complain; on a CPU's build the descriptor is left alone."""
    if sys.platform == "win32":
        return False
    try:
        build = tf.sysconfig.get_build_info()
    except Exception:  # noqa: BLE001 - another version's, or a vendor's
        return False
    return bool(build.get("is_cuda_build") or build.get("is_rocm_build"))


def telling(lines: Iterable[str]) -> list[str]:
    """Return the lines that tell something about the device tracer (see `diagnosis.known_messages`), the first 200 at most."""
    told = (line.strip() for line in lines if _COUNTS in line or explained(line))
    return [line for line, _ in zip(told, range(_MOST_LINES), strict=False)]


@contextlib.contextmanager
def listening(lines: list[str]) -> Iterator[None]:
    """Add what TensorFlow's log says about the device tracer to a list, while the body runs.

    Parameters
    ----------
    lines
        Gets the lines that are known to matter; 200 at most are in it.
    """
    with contextlib.ExitStack() as stack:
        try:
            original = os.dup(2)
            stack.callback(os.close, original)
            # It has no name: nothing of it can be left behind.
            copy = stack.enter_context(tempfile.TemporaryFile())
            tee = _tee(original, copy.fileno())
        except OSError:  # no standard error, no tee, no place for the copy: then the log stays unheard
            tee = None
        if tee is None:
            yield
            return
        try:
            yield
        finally:
            os.dup2(original, 2)  # the pipe has no writer now, unless a subprocess has it too
            with contextlib.suppress(subprocess.TimeoutExpired):
                tee.wait(1.0)
            _outliving[:] = [each for each in (*_outliving, tee) if each.poll() is None]
            copy.seek(0)
            text = copy.read(_MOST_BYTES).decode(errors="replace")
            lines += telling(text.splitlines())[: max(0, _MOST_LINES - len(lines))]


def _tee(original: int, copy: int) -> subprocess.Popen[bytes] | None:
    """Lead the standard error through ``tee`` to where it led before, and into a file; None if there is no such program."""
    program = shutil.which("tee")
    if program is None:
        return None
    read, write = os.pipe()
    try:
        tee = subprocess.Popen(  # noqa: S603 - the system's own program
            [program, f"/dev/fd/{copy}"],
            stdin=read,
            stdout=original,
            stderr=subprocess.DEVNULL,
            pass_fds=(copy,),
            start_new_session=True,  # an interrupt is for the profiled code
        )
        os.dup2(write, 2)
    finally:
        os.close(read)
        os.close(write)
    return tee
