"""Sampling a running program: asking its profiler server for a capture.

The program has called ``tf.profiler.experimental.server.start(port)``. No TensorFlow is needed here, and nothing is left
behind: an interrupt takes the request back, upon which the server stops recording.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .profiler_service import Worker, explain, greeted, is_busy, new_run_id
from .progress import Progress as Line
from .session import CaptureError, CaptureInfo, Options

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .report import Report
    from .xspace import XSpace

# Told how far a capture is: a sentence, and the share of the time that is over (None where that isn't known).
Progress: TypeAlias = Callable[[str, float | None], None]

DURATION_S = 2.0
CONNECT_S = 5.0
_POLL_S = 0.05
# A worker is busy or idle for a moment; so long it is left alone before the next attempt.
_PAUSE_S = 0.5
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")

_EMPTY = (
    "{where} recorded nothing in {duration:g} s ({attempts}). A profiler server records only what its own process does: "
    "start the capture while the program is training or answering requests, or let it last longer (duration={longer:g})."
)
_ON_ITS_DISK = (
    "{where} took the profile, but its TensorFlow cannot send one back: it has written it to {path}, as it sees it. "
    "Give a directory that both this Python and the program see: logdir='/shared/logs' (or gs://…)."
)


class CaptureStopped(CaptureError):  # noqa: N818 - it is no fault
    """A capture was stopped by the user."""


def capture(
    address: str | Sequence[str],
    duration: float = DURATION_S,
    *,
    name: str = "",
    logdir: str | Path | None = None,
    host_level: int = 2,
    python: bool = False,
    device_level: int = 1,
    attempts: int = 3,
    timeout: float = 60.0,
    progress: bool | Progress = True,
) -> Report:
    """Profile a running program, or several at once, through their profiler servers.

    Each program has started its server with ``tf.profiler.experimental.server.start(port)``. An interrupt stops the capture
    there too. TensorFlow need not be installed here.

    Parameters
    ----------
    address : str or sequence of str
        ``grpc://host:port`` of each worker: a list, or separated by commas. They record at the same time.
    duration : float
        How long to record, in seconds.
    name : str, optional
        What the report is called; the addresses by default.
    logdir : path or URL, optional
        Keep the profile in this log directory, where TensorBoard finds it too. Servers of old TensorFlow versions (2.15 among
        them) write their profile to this path themselves, so for such a server on another machine it must be a shared one.
    host_level : int
        Detail of the host's trace: 1 critical events only, 2 the usual ones, 3 verbose.
    python : bool
        Whether to trace every Python function call of the programs too, which slows them down noticeably.
    device_level : int
        1 to trace devices (GPU, TPU), 0 not to.
    attempts : int
        How often to try when nothing was recorded, or a worker is being profiled by somebody else.
    timeout : float
        How long to wait for the profiles after the recording, in seconds.
    progress : bool or callable
        Whether to show how far it is; a callable is told instead: a sentence, and the share that is done or None.

    Returns
    -------
    Report
        Of all workers. One that failed during the capture, or recorded nothing, is named in the notes, if another did.

    Raises
    ------
    CaptureError
        If a worker can't be reached, or none recorded anything: the message says what to do.
    ValueError
        If an argument isn't usable.

    Examples
    --------
    >>> tfprof.capture("grpc://localhost:6009", duration=2.0)
    >>> tfprof.capture("grpc://worker-0:6009, grpc://worker-1:6009")
    """
    request = Request(
        addresses(address),
        duration,
        name=name,
        logdir=logdir,
        options=Options(host_level=host_level, python=python, device_level=device_level),
        attempts=attempts,
        timeout_s=timeout,
    )
    with _telling(progress, request.where) as tell:
        return sample(request, tell)


def addresses(address: str | Sequence[str]) -> list[str]:
    """Split and check the addresses of workers; return each as ``host:port``.

    Raises
    ------
    ValueError
        If there is none, one isn't an address, or one is there twice.
    TypeError
        If one is no text.
    """
    for each in [address] if isinstance(address, str) or not hasattr(address, "__iter__") else address:
        if not isinstance(each, str):
            raise TypeError(f"A profiler server has an address like 'grpc://localhost:6009'; {each!r} is none.")
    given = address.split(",") if isinstance(address, str) else [part for each in address for part in each.split(",")]
    result = []
    for text in filter(None, map(str.strip, given)):
        scheme, _, rest = text.rpartition("://")
        if scheme not in ("", "grpc"):
            raise ValueError(f"{text!r}: a profiler server has an address like grpc://host:6009, not {scheme}://…")
        match = _ADDRESS.fullmatch(rest.rstrip("/"))
        if match is None or not 0 < int(match["port"]) < 65536:
            raise ValueError(
                f"{text!r} is not the address of a profiler server: it has a host and a port, like grpc://localhost:6009 "
                "(the port given to tf.profiler.experimental.server.start)."
            )
        if match[0] in result:
            raise ValueError(f"{text!r} is there twice; each worker has its own port.")
        result.append(match[0])
    if not result:
        raise ValueError("There is no address; a profiler server has one like grpc://localhost:6009.")
    return result


@dataclass
class Request:
    """What to capture, from whom."""

    workers: list[str]
    duration_s: float
    name: str = ""
    logdir: str | Path | None = None
    options: Options = field(default_factory=Options)
    attempts: int = 3
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if not 0.001 <= self.duration_s < float("inf"):
            raise ValueError(f"duration is a time in seconds, at least 0.001, not {self.duration_s!r}")
        if self.attempts < 1:
            raise ValueError(f"attempts is at least 1, not {self.attempts!r}")
        if not 0 < self.timeout_s < float("inf"):
            raise ValueError(f"timeout is a time in seconds, not {self.timeout_s!r}")

    @property
    def where(self) -> str:
        """The workers in a few words."""
        if len(self.workers) <= 2:
            return " and ".join(self.workers)
        return f"{len(self.workers)} workers"


@dataclass
class _Answers:
    """What the workers said: their profiles, and why others have none."""

    profiles: dict[str, bytes] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    busy: bool = False


def sample(request: Request, tell: Progress, stopped: Callable[[], bool] = lambda: False) -> Report:
    """Ask the workers of a request for a capture and make the report; see `capture`.

    Parameters
    ----------
    tell
        Told how far it is.
    stopped
        Asked again and again; once it is true, the capture is taken back and `CaptureStopped` raised.
    """
    with ExitStack() as closing:
        workers = []
        for address in request.workers:
            workers.append(Worker(address))
            closing.callback(workers[-1].close)
        tell(f"Connecting to {request.where} …", None)
        _connect(workers, stopped)
        run = new_run_id()
        if request.logdir is None:
            # Only for servers that write the profile themselves: same machine, then.
            root = tempfile.mkdtemp(prefix="tfprof-")
            closing.callback(shutil.rmtree, root, ignore_errors=True)
        else:
            root = _profile_root(request.logdir)
            closing.callback(_remove, f"{root}/{run}")
        started_s = time.time()
        for attempt in range(1, request.attempts + 1):
            started_s, begun = time.time(), time.perf_counter()
            answers = _profile(workers, request, root, run, tell, stopped)
            recorded_s = time.perf_counter() - begun
            if answers.profiles or not (answers.empty or answers.busy) or attempt == request.attempts:
                break
            tell(f"Nothing was recorded; trying again ({attempt + 1} of {request.attempts}) …", None)
            _wait(lambda: False, time.perf_counter() + _PAUSE_S, stopped)
        if not answers.profiles:
            raise CaptureError(_nothing(answers, request, attempt))
        tell("Making the report …", None)
        return _report(request, answers, started_s, recorded_s)


def _connect(workers: Sequence[Worker], stopped: Callable[[], bool]) -> None:
    """Make sure that all workers are there before any of them records."""
    greetings = [worker.greet(CONNECT_S) for worker in workers]
    _wait(lambda: all(greeting.done() for greeting in greetings), time.perf_counter() + 2 * CONNECT_S, stopped)
    lost = [greeted(greeting, worker.address) for worker, greeting in zip(workers, greetings, strict=True)]
    lost = [reason for reason in lost if reason]
    if lost:
        counted = f"{len(lost)} of {len(workers)} workers cannot be reached. " if len(workers) > 1 else ""
        raise CaptureError(f"{counted}{' '.join(lost)} Nothing was captured.")


def _profile(
    workers: Sequence[Worker], request: Request, root: str, run: str, tell: Progress, stopped: Callable[[], bool]
) -> _Answers:
    futures = [
        worker.profile(request.duration_s, request.options, root, run, request.duration_s + request.timeout_s)
        for worker in workers
    ]
    begun = time.perf_counter()

    def done() -> bool:
        over = time.perf_counter() - begun
        left = sum(not future.done() for future in futures)
        if over < request.duration_s:
            share = over / request.duration_s
            tell(f"Recording on {request.where}: {over:.1f} of {request.duration_s:g} s …", share)
        elif left:
            tell(f"Recorded; waiting for the profile of {left} of {len(futures)} …", 1.0)
        return not left

    _wait(done, begun + request.duration_s + request.timeout_s + 1, stopped)
    answers = _Answers()
    for worker, future in zip(workers, futures, strict=True):
        error = future.exception()
        if error is not None:
            answers.busy |= is_busy(error)
            answers.failed[worker.address] = _explained(error, worker.address, request)
            continue
        response = future.result()
        if response.empty_trace:
            answers.empty.append(worker.address)
        elif response.xspace:
            answers.profiles[worker.address] = response.xspace
        else:
            path = f"{root.rstrip('/')}/{run}/{worker.file_name()}"
            try:
                answers.profiles[worker.address] = _read(path)
            except OSError:
                answers.failed[worker.address] = _ON_ITS_DISK.format(where=worker.address, path=path)
    return answers


def _explained(error: Any, address: str, request: Request) -> str:
    code = getattr(error, "code", None)
    if callable(code) and getattr(code(), "name", "") == "DEADLINE_EXCEEDED":
        return (
            f"{address} did not hand over its profile within {request.timeout_s:g} s after the recording. A long capture of a "
            f"busy program takes its time: record less (duration={max(0.5, request.duration_s / 4):g}), or wait longer "
            f"(timeout={4 * request.timeout_s:g})."
        )
    return explain(error, address)


def _nothing(answers: _Answers, request: Request, attempts: int) -> str:
    reasons = list(answers.failed.values())
    if answers.empty:
        tried = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        where, longer = " and ".join(answers.empty), max(5.0, 3 * request.duration_s)
        reasons.append(_EMPTY.format(where=where, duration=request.duration_s, attempts=tried, longer=longer))
    return " ".join(reasons)


def _wait(done: Callable[[], bool], until: float, stopped: Callable[[], bool]) -> None:
    # Short sleeps: an interrupt ends them at once, which it would not end a wait inside gRPC.
    while not done() and time.perf_counter() < until:
        if stopped():
            raise CaptureStopped("The capture was stopped.")
        time.sleep(_POLL_S)


def _report(request: Request, answers: _Answers, started_s: float, recorded_s: float) -> Report:
    from .report import Report
    from .xspace import XSpaceError, read

    spaces: dict[str, XSpace] = {}
    lost = list(answers.failed.values())
    for address, data in answers.profiles.items():
        try:
            # Kept, to be saved with the report: there is no file to read them from again.
            spaces[address] = read(data, name=f"{address.replace(':', '_')}.xplane.pb", keep=True)
        except XSpaceError as error:
            lost.append(str(error))
    if not spaces:
        raise CaptureError(" ".join(lost))
    lost += [
        f"{address} recorded nothing in {request.duration_s:g} s: its process did no TensorFlow work then."
        for address in answers.empty
    ]
    if lost:
        lost = [f"{len(spaces)} of {len(request.workers)} workers are in this report. {' '.join(lost)}"]
    names = [space.hostname for space in spaces.values()]
    if len(set(names)) < len(names):
        # Workers on one machine: the address tells them apart, the host's name doesn't.
        for address, space in spaces.items():
            space.hostnames = [address]
    else:
        # Named after what they call themselves; what they are called here must be known too, to be left out where that is asked.
        for address, space in spaces.items():
            space.hostnames = [*space.hostnames, address.rpartition(":")[0]] if space.hostname else [address]
    run_dir = None
    if request.logdir is not None:
        run_dir, problem = _keep(request, answers.profiles)
        lost += problem
    capture = CaptureInfo(
        name=request.name or request.where,
        logdir=None if request.logdir is None or "://" in str(request.logdir) else Path(request.logdir),
        run_dir=run_dir,
        started_s=started_s,
        duration_s=request.duration_s,
        stop_s=max(0.0, recorded_s - request.duration_s),
        options=request.options,
    )
    return Report(list(spaces.values()), capture=capture, notes=lost)


def _keep(request: Request, profiles: dict[str, bytes]) -> tuple[Path | None, list[str]]:
    """Write the profiles where TensorBoard looks; return the run's directory if it is a local one, and what went wrong."""
    import fsspec

    assert request.logdir is not None
    root = _profile_root(request.logdir)
    # TensorBoard's runs have such names, in local time.
    name = datetime.now().astimezone().strftime("%Y_%m_%d_%H_%M_%S_%f")[:-3]
    try:
        for address, data in profiles.items():
            with fsspec.open(f"{root}/{name}/{address.replace(':', '_')}.xplane.pb", "wb", auto_mkdir=True) as file:
                file.write(data)
    except (OSError, ImportError, ValueError) as error:
        return None, [f"The profile could not be kept in {request.logdir}: {error}."]
    return (None if "://" in root else Path(root, name)), []


def _profile_root(logdir: str | Path) -> str:
    text = str(logdir).rstrip("/") if "://" in str(logdir) else str(Path(logdir).expanduser().absolute())
    return f"{text}/plugins/profile"


def _remove(path: str) -> None:
    """Remove what a server wrote itself; it is read by now."""
    import fsspec

    with suppress(OSError, ImportError, ValueError):
        fs, place = fsspec.core.url_to_fs(path)
        if fs.exists(place):
            fs.rm(place, recursive=True)


def _read(path: str) -> bytes:
    from .xspace.logdir import read_bytes

    return read_bytes(path)


# ---- progress --------------------------------------------------------------------------------------------------


@contextmanager
def _telling(progress: bool | Progress, where: str) -> Iterator[Progress]:
    """Yield what shows the progress: a line in a notebook's output, or in a terminal one that goes away again."""
    if callable(progress):
        yield progress
        return
    shell = _notebook_shell()
    line: _NotebookLine | _TerminalLine | None = None
    if progress and shell is not None:
        line = _NotebookLine(shell)
    elif progress and sys.stderr is not None and sys.stderr.isatty():
        line = _TerminalLine()
    if line is None:
        yield lambda _text, _share: None
        return
    ended = "No profile was captured."
    try:
        yield line.tell
        ended = f"Captured from {where}."
    finally:
        line.end(ended)


class _NotebookLine:
    """One output that changes, a few times a second at most: each change is a message to the browser."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._line = Line(shell)
        self._shown, self._changed_s = "", 0.0

    def tell(self, text: str, share: float | None) -> None:
        now = time.perf_counter()
        if text != self._shown and (share in (None, 1.0) or now - self._changed_s > 0.2):
            self._line.say(text)
            self._shown, self._changed_s = text, now

    def end(self, text: str) -> None:
        self._line.say(text)


class _TerminalLine:
    def __init__(self) -> None:
        self._width = 0

    def tell(self, text: str, share: float | None) -> None:  # noqa: ARG002
        sys.stderr.write(f"\r{text:<{self._width}}")
        sys.stderr.flush()
        self._width = max(self._width, len(text))

    def end(self, text: str) -> None:  # noqa: ARG002
        sys.stderr.write(f"\r{'':<{self._width}}\r")
        sys.stderr.flush()


def _notebook_shell() -> InteractiveShell | None:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None
