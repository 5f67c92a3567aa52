"""TensorFlow's own log while the profiler starts and stops: that is where CUPTI's errors are told.

TensorFlow writes to the process's standard error (file descriptor 2), below Python's ``sys.stderr``, and offers no way to
listen. So the descriptor is led through a pipe meanwhile, and a thread passes on at once all that comes: nothing is
hidden or lost, also of what a subprocess writes that was started meanwhile and lives longer.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from .known_messages import explained

_PIPE_BYTES = 1 << 20
# Said when a capture ends; tells that CUPTI was there and recorded nothing.
_COUNTS = "GpuTracer has collected"
_MOST_LINES = 200


def is_worth_listening(tf: Any) -> bool:
    """Whether this TensorFlow has a device tracer that could complain; on a CPU's build the descriptor is left alone."""
    if sys.platform == "win32":
        return False
    try:
        build = tf.sysconfig.get_build_info()
    except Exception:  # noqa: BLE001 - another version's, or a vendor's
        return False
    return bool(build.get("is_cuda_build") or build.get("is_rocm_build"))


@contextlib.contextmanager
def listening(lines: list[str]) -> Iterator[None]:
    """Add what TensorFlow's log says about the device tracer to a list, while the body runs.

    Parameters
    ----------
    lines
        Gets the lines that are known to matter (`known_messages`); there is nothing else in it.
    """
    try:
        original = os.dup(2)
    except OSError:  # the process has no standard error
        yield
        return
    try:
        read, write = os.pipe()
    except OSError:
        os.close(original)
        yield
        return
    _enlarge(write)
    told: list[bytes] = []
    reader = threading.Thread(target=_pass_on, args=(read, original, told), name="tfprof-log", daemon=True)
    restore = os.dup(original)
    reader.start()
    os.dup2(write, 2)
    os.close(write)
    try:
        yield
    finally:
        os.dup2(restore, 2)  # the pipe's last writer, unless a subprocess has it too
        os.close(restore)
        reader.join(timeout=1.0)
        text = b"".join(list(told)).decode(errors="replace")
        new = [line.strip() for line in text.splitlines() if _COUNTS in line or explained(line)]
        lines += new[: max(0, _MOST_LINES - len(lines))]


def _pass_on(read: int, original: int, told: list[bytes]) -> None:
    kept = 0
    try:
        while data := os.read(read, 65536):
            view = memoryview(data)
            while view:
                view = view[os.write(original, view) :]
            if kept < _PIPE_BYTES:
                told.append(data)
                kept += len(data)
    except OSError:  # whoever read the original is gone
        pass
    finally:
        os.close(read)
        os.close(original)


def _enlarge(pipe: int) -> None:
    """Make room in the pipe, so that a burst of lines never has to wait for the thread that reads it."""
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
