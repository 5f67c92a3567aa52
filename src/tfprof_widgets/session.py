"""Running TensorFlow's profiler in this process.

Two promises are kept here, whatever the profiled code does: no profiler session is left
running, and no temporary file remains once the report has been read.

A capture is started and stopped by its own thread (the cell's), but its recording may begin and end in others: a thread
that watches the clock, or one that runs steps. A lock orders them; who comes second finds the work done.

TensorFlow is imported when a capture starts, never before.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .keras_batches import listen
from .scratch import Scratch
from .step_marks import StepCounter, count_with
from .tensorflow_log import is_worth_listening, listening
from .window import MAX_DURATION_S, MAX_GROWTH_GB, Window, parse_steps

if TYPE_CHECKING:
    from .report import Report

_NO_TENSORFLOW = """\
TensorFlow is needed to profile, and this Python has none ({python}).
Install it with:  pip install "tfprof_widgets[tensorflow]"
or select a kernel in which TensorFlow is already installed: any distribution of it will do
(tensorflow-cpu, a vendor's build). Nothing was run."""

_BROKEN_TENSORFLOW = """\
TensorFlow is installed, but could not be imported: {error}
Nothing was run."""

_OLD_TENSORFLOW = """\
TensorFlow {version} has no tf.profiler.experimental; version 2.2 or later is needed.
Nothing was run."""

_NOT_RUN = "\nNothing was run."

_BUSY = (
    """\
Another profiler session is running in this process, and Python cannot stop it: most likely
somebody is sampling this program through its profiler server. Try again when that has ended.\
"""
    + _NOT_RUN
)

_NESTED = "A capture of this code was already running ({name}); profile() inside it captures nothing of its own."

_STALE_SAVED = (
    "A profiler session that tfprof_widgets did not start was still running (for example from a "
    "tf.profiler.experimental.start without its stop, or an interrupted TensorBoard callback). "
    "It was stopped and saved to its own log directory before this capture started."
)

_STALE_LOST = (
    "A profiler session that tfprof_widgets did not start was still running. It was stopped before "
    "this capture started; what it had recorded could not be saved ({error})."
)

_STALE_OURS = "An earlier capture of tfprof_widgets ({name}) was still running; it was stopped before this one started."

_STOPPED_INSIDE = (
    "The profiled code itself stopped the profiler (tf.profiler.experimental.stop, or a callback "
    "that calls it); the report shows what was captured until then."
)

_NOT_WRITTEN = (
    "TensorFlow could not write the profile ({error}). Is the disk full, or has the directory become read-only? Free some "
    "space in {where}, or choose another place: a log directory (--logdir), or the variable TMPDIR before Python starts."
)

_NOTHING = "Nothing was recorded: "

_ENDED_IN_DELAY = (
    "Nothing was recorded: the code ended after {seconds:.1f} s, before the delay of {delay:g} s was over."
)

_ENDED_BEFORE_STEP = (
    _NOTHING + "recording was to begin with step {first} (counted from 0), and the code ended after {count}. "
    "Counted are the batches of Keras, and the tfprof.step() marks of a loop of your own."
)

_NEVER_BEGAN = _NOTHING + "the profiler could not be started when its time came. {error}"

_CUT_BY_TIME = (
    "The recording was ended after {limit:g} s, the limit; the code went on without the profiler. To record another part, give --delay, "
    "--duration, --warmup or --steps (in Python: parameters of the same names); --max-duration raises the limit."
)

_CUT_BY_SIZE = (
    "The recording was ended after {seconds:.1f} s, because the process had grown by {growth:.1f} GB while it ran (what is "
    "recorded is kept in memory until the profiler stops); the code went on without it. --max-memory raises the limit of "
    "{limit:g} GB; if it is data that the code loads, load it before the profiled part."
)

_NOT_SYNCHRONISED = (
    "The GPUs could not be synchronised before the profiler stopped ({error}): kernels that were still running then, of "
    "the last step in particular, may be missing."
)

# How often the clock is looked at, and the memory, while the profiler records.
_WATCH_EVERY_S = 0.25


class CaptureError(RuntimeError):
    """A capture could not be made; the message says why and what helps."""


class TensorFlowMissingError(CaptureError):
    """TensorFlow cannot be imported here, so nothing can be captured."""


@dataclass(frozen=True)
class Options:
    """What the profiler is asked to record.

    Attributes
    ----------
    host_level
        Detail of the host's trace: 1 critical events only, 2 the usual ones, 3 verbose.
    python
        Whether every Python function call is traced too. It slows Python down noticeably.
    device_level
        1 to trace devices (GPU, TPU), 0 not to.
    """

    host_level: int = 2
    python: bool = False
    device_level: int = 1

    def __post_init__(self) -> None:
        if self.host_level not in (1, 2, 3):
            raise ValueError(f"host_level is 1, 2 or 3, not {self.host_level!r}")
        if self.device_level not in (0, 1):
            raise ValueError(f"device_level is 0 or 1, not {self.device_level!r}")


@dataclass(frozen=True)
class CaptureInfo:
    """How a capture was made, as far as the profile itself doesn't say.

    Attributes
    ----------
    name
        What the report is called.
    source
        Source text of the profiled cell or line; empty where it is unknown.
    logdir
        Log directory in which the profile was kept, for TensorBoard too; None if it wasn't.
    run_dir
        The run's own directory in it (``logdir/plugins/profile/<run>``), or None.
    started_s
        Wall-clock time of the start, in seconds since the epoch.
    duration_s
        Time in seconds for which the profiler ran.
    stop_s
        Time in seconds that the profiler then took to stop and to write its file.
    options
        What was asked for; what was recorded is in the profile.
    window
        Which part of the code was asked for.
    error
        The exception that ended the profiled code, as ``"Type: message"``; None if none did.
    notes
        Remarks for the reader, such as a stale session that had to be stopped first.
    tensorflow_version
        Version of TensorFlow that captured.
    keras_version
        Version of Keras, if it was loaded when the capture ended.
    gpus
        Number of GPUs that TensorFlow saw; None if it wasn't asked.
    log
        What TensorFlow's log said about the device tracer while the profiler started and stopped.
    """

    name: str
    source: str = ""
    logdir: Path | None = None
    run_dir: Path | None = None
    started_s: float = 0.0
    duration_s: float = 0.0
    stop_s: float = 0.0
    options: Options = field(default_factory=Options)
    window: Window = field(default_factory=Window)
    error: str | None = None
    notes: list[str] = field(default_factory=list)
    tensorflow_version: str = ""
    keras_version: str | None = None
    gpus: int | None = None
    log: list[str] = field(default_factory=list)


def describe_error(error: BaseException) -> str:
    """Return ``"Type: message"``; of a message of many lines only the first, with an ellipsis."""
    first, _, rest = str(error).strip().partition("\n")
    kind = type(error).__name__
    return f"{kind}: {first}{' …' if rest.strip() else ''}" if first else kind


def import_tensorflow() -> Any:
    """Import TensorFlow and return it.

    Raises
    ------
    TensorFlowMissingError
        If it isn't installed, is broken, or is older than its profiler.
    """
    try:
        tf = importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        if error.name == "tensorflow":
            raise TensorFlowMissingError(_NO_TENSORFLOW.format(python=sys.executable)) from None
        raise TensorFlowMissingError(_BROKEN_TENSORFLOW.format(error=error)) from error
    except Exception as error:  # a broken build raises whatever it likes
        raise TensorFlowMissingError(_BROKEN_TENSORFLOW.format(error=describe_error(error))) from error
    if not hasattr(getattr(tf, "profiler", None), "experimental"):
        # An empty folder called tensorflow imports too, as a namespace package without a version.
        version = getattr(tf, "__version__", None)
        message = _OLD_TENSORFLOW.format(version=version) if version else _NO_TENSORFLOW
        raise TensorFlowMissingError(message.format(python=sys.executable))
    return tf


# The capture that runs now: TensorFlow allows one session a process.
_active: Session | None = None

# Held while one begins, so that of several threads that profile at once the others see it.
_beginning = threading.RLock()


def active() -> Session | None:
    """Return the capture that is running in this process, if one is."""
    return _active


def _forget() -> None:
    """In a fork of this process: the capture is the parent's, and so are the profiler's threads."""
    global _active, _beginning
    _active = None
    _beginning = threading.RLock()  # a thread that the fork doesn't have may have held it
    count_with(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Session:
    """One capture: `start`, `stop`, then `load` for the report.

    Recording begins at the start and ends at the stop, unless a `window` says otherwise. The profile is first written to
    a temporary directory of its own, inside `logdir` if one is given: TensorFlow names runs by the second, so two captures
    in one second would overwrite each other there.
    """

    def __init__(
        self,
        name: str,
        *,
        source: str = "",
        logdir: str | Path | None = None,
        options: Options | None = None,
        window: Window | None = None,
        warm_up: bool = False,
    ) -> None:
        self.name = name
        self.source = source
        self.logdir = None if logdir is None else _local_directory(logdir)
        self.options = options or Options()
        self.window = window or Window()
        self.warm_up = warm_up
        self.notes: list[str] = []
        self.error: str | None = None
        self._paths: list[Path] = []
        self._run_dir: Path | None = None
        self._tf: Any = None
        self._scratch: Scratch | None = None
        self._ended_s: float | None = None  # when the profiled code ended: what comes after that is not of it
        self._attempted = False  # to start TensorFlow's session: until then what runs is somebody else's
        # new, waiting (for its window), recording, done
        self._state = "new"
        self._lock = threading.RLock()
        self._wake = threading.Event()  # something happened that the watch must know of
        self._unlisten: Callable[[], None] = lambda: None
        self._steps_done = 0
        self._began_s = 0.0  # the cell, on the clock of time.perf_counter
        self._started_s = 0.0
        self._start = 0.0
        self._end: float | None = None
        self._duration_s = 0.0
        self._stop_s = 0.0
        self._growth_from = 0
        self._gpus: int | None = None
        self._log: list[str] = []

    @property
    def running(self) -> bool:
        """Whether the profiler is recording for this capture."""
        return self._state == "recording"

    def start(self) -> None:
        """Start the profiler, or wait for the window in which it is to run.

        Raises
        ------
        CaptureError
            If TensorFlow is missing, the log directory cannot be written to, or a session is running
            that Python cannot stop. Nothing is left behind then.
        """
        with _beginning:
            self._start_alone()

    def _start_alone(self) -> None:
        global _active
        if self._state != "new":
            raise CaptureError("A capture runs once; call profile() again for another one.")
        self._tf = import_tensorflow()
        _import_report()
        if _active is not None:
            # Else it is the line before this one, of which only the profile is still being written.
            if _active._ended_s is None:
                self.notes.append(_STALE_OURS.format(name=_active.name))
            _active.stop()
        self._make_scratch()
        try:
            if self.warm_up:
                with self._listening():
                    warm_up(self._tf)
            self._began_s = time.perf_counter()
            self._state = "waiting"
            _active = self
            if self.window.counts_steps:
                self._count_steps()
            if self.window.opens_at_once:
                self._begin()
            threading.Thread(target=self._watch, name="tfprof-watch", daemon=True).start()
        except BaseException:
            # Also an interrupt between the profiler's start and here.
            self._abandon()
            raise

    def end_soon(self) -> None:
        """End the recording without waiting until the profile is written; `stop` waits for it."""
        self._ended_s = time.perf_counter()
        if self._state == "recording" and self._end is None:
            self._end = time.perf_counter()
            threading.Thread(target=self._end_recording, name="tfprof-stop", daemon=True).start()

    def stop(self, error: BaseException | None = None) -> None:
        """Stop the profiler and write the profile; does nothing if it was stopped before.

        Parameters
        ----------
        error
            The exception that ended the profiled code, if one did.
        """
        global _active
        if error is not None:
            self.error = describe_error(error)
        try:
            with self._lock:
                if self._state == "waiting":
                    self._state = "done"
                    self.notes.append(self._why_nothing())
                self._end_recording()
        finally:
            self._unlisten()
            self._wake.set()
            if _active is self:
                _active = None

    @property
    def info(self) -> CaptureInfo:
        """How the capture was made."""
        keras = sys.modules.get("keras") or sys.modules.get("tf_keras")
        return CaptureInfo(
            name=self.name,
            source=self.source,
            logdir=self.logdir,
            run_dir=self._run_dir,
            started_s=self._started_s,
            duration_s=self._duration_s,
            stop_s=self._stop_s,
            options=self.options,
            window=self.window,
            error=self.error,
            notes=list(self.notes),
            tensorflow_version=getattr(self._tf, "__version__", ""),
            keras_version=getattr(keras, "__version__", None),
            gpus=self._gpus,
            log=list(self._log),
        )

    def load(self, *, keep: bool = False) -> Report:
        """Read the profile and remove the temporary files.

        Parameters
        ----------
        keep
            Leave the temporary files until `discard`, so that they outlive this process if it dies while the report is made.

        Raises
        ------
        CaptureError
            If TensorFlow wrote no profile.
        ValueError
            If the profile is damaged or empty.
        """
        from .report import load_run

        try:
            self.stop()
            if not self._paths:
                nothing = [note for note in self.notes if note.startswith(_NOTHING)]
                raise CaptureError(*nothing[:1] or [f"TensorFlow wrote no profile. {' '.join(self.notes)}".rstrip()])
            report = load_run(self._paths, capture=self.info)
        except (CaptureError, ValueError):
            self.discard()  # there is nothing in it
            raise
        except BaseException:
            self.leave()
            raise
        if not keep:
            self.discard()
        return report

    @property
    def size_bytes(self) -> int:
        """Size of the profile's files, as long as they are there; 0 before the profiler has stopped."""
        return sum(path.stat().st_size for path in self._paths if path.exists())

    def discard(self) -> None:
        """Remove the temporary files; a profile kept in a log directory stays."""
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def leave(self) -> None:
        """Leave the temporary files to `recover`, if there is a profile in them."""
        if self._scratch is not None and self._paths and self._run_dir is None:
            self._scratch.leave()
            self._scratch = None
        self.discard()

    # ---- the profiler ------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Begin to record. The lock is held, or nobody else knows of this capture yet."""
        with self._listening():
            self._start_profiler()
        self._growth_from = _process_bytes()
        self._started_s = time.time()
        self._start = time.perf_counter()
        self._state = "recording"
        self._wake.set()

    def _begin_late(self) -> None:
        """Begin to record in the middle of the user's code, which must not suffer."""
        try:
            self._begin()
        except BaseException as error:
            self._drop_profiler()
            self._state = "done"
            why = str(error).removesuffix(_NOT_RUN) if isinstance(error, CaptureError) else describe_error(error)
            self.notes.append(_NEVER_BEGAN.format(error=" ".join(why.split())))
            if not isinstance(error, Exception):
                raise

    def _end_recording(self, note: str | None = None) -> None:
        """Stop the profiler, if it is recording, and collect what it wrote."""
        with self._lock:
            if self._state != "recording":
                return
            end = self._end or time.perf_counter()
            self._duration_s = end - self._start
            if note is not None:
                self.notes.append(note)
            try:
                self._synchronise()
                with self._listening():
                    self._stop_profiler()
            except BaseException:
                # An interrupt during the stop would leave TensorFlow's session open.
                self._drop_profiler()
                raise
            finally:
                self._state = "done"
                self._stop_s = time.perf_counter() - end
                self._collect()

    def _listening(self) -> contextlib.AbstractContextManager[None]:
        """Listen to TensorFlow's log, if it can be about GPUs."""
        return listening(self._log) if is_worth_listening(self._tf) else contextlib.nullcontext()

    def _stop_profiler(self) -> None:
        try:
            self._tf.profiler.experimental.stop()
        except self._tf.errors.UnavailableError:
            self.notes.append(_STOPPED_INSIDE)
        except Exception as failure:  # noqa: BLE001 - TensorFlow's errors have no common base but this
            assert self._scratch is not None
            where = self._scratch.path.parent
            self.notes.append(_NOT_WRITTEN.format(error=describe_error(failure), where=where))
            # What there is of it ends in the middle.
            shutil.rmtree(self._scratch.path / "plugins", ignore_errors=True)

    def _synchronise(self) -> None:
        """Wait for the GPUs: what they have not finished is not in the profile."""
        try:
            self._gpus = len(self._tf.config.list_physical_devices("GPU"))
            if not self._gpus or not _runtime_is_up():
                return
            self._tf.test.experimental.sync_devices()
        except Exception as error:  # noqa: BLE001 - as above
            self.notes.append(_NOT_SYNCHRONISED.format(error=describe_error(error)))

    def _start_profiler(self) -> None:
        experimental = self._tf.profiler.experimental
        already_exists = self._tf.errors.AlreadyExistsError
        options = experimental.ProfilerOptions(
            host_tracer_level=self.options.host_level,
            python_tracer_level=int(self.options.python),
            device_tracer_level=self.options.device_level,
        )
        assert self._scratch is not None
        directory = str(self._scratch.path)
        self._attempted = True
        try:
            experimental.start(directory, options=options)
            return
        except already_exists:
            pass
        try:
            experimental.stop()
            self.notes.append(_STALE_SAVED)
        except Exception as error:  # noqa: BLE001 - as above
            self.notes.append(_STALE_LOST.format(error=describe_error(error)))
        try:
            experimental.start(directory, options=options)
        except already_exists:
            raise CaptureError(_BUSY) from None

    def _drop_profiler(self) -> None:
        """End TensorFlow's session, if one is there, without writing it."""
        with contextlib.suppress(Exception):
            self._tf.profiler.experimental.stop(save=False)

    def _abandon(self) -> None:
        global _active
        # Needed after a refused start too: TensorFlow then keeps the refused session as if it ran.
        if self._attempted:
            self._drop_profiler()
        self._state = "done"
        self._unlisten()
        self._wake.set()
        _active = None
        self.discard()

    # ---- the window --------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Begin after the delay, and end when time or memory are up; runs in a thread of its own."""
        window = self.window
        if window.delay_s:
            self._wake.wait(window.delay_s)
            with self._lock:
                if self._state == "waiting" and not window.counts_steps and self._ended_s is None:
                    self._begin_late()
        while self._state != "done":
            elapsed = time.perf_counter() - self._start if self._state == "recording" else 0.0
            growth_gb = (_process_bytes() - self._growth_from) / 1e9
            if self._state == "recording" and elapsed >= window.limit_s:
                note = None if window.duration_s else _CUT_BY_TIME.format(limit=window.limit_s)
                self._end_recording(note)
            elif self._state == "recording" and growth_gb > window.max_growth_gb:
                self._end_recording(_CUT_BY_SIZE.format(seconds=elapsed, growth=growth_gb, limit=window.max_growth_gb))
            else:
                self._wake.wait(max(0.0, min(_WATCH_EVERY_S, window.limit_s - elapsed)))
                self._wake.clear()

    def _count_steps(self) -> None:
        counter = StepCounter(self._step_begins, self._step_ended)
        stop_listening = listen(counter, self._tf)

        def unlisten() -> None:
            count_with(None)
            stop_listening()

        self._unlisten = unlisten
        count_with(counter)

    def _step_begins(self) -> None:
        with self._lock:
            late_enough = time.perf_counter() - self._began_s >= self.window.delay_s and self._ended_s is None
            if self._state == "waiting" and late_enough and self._steps_done >= self.window.first_step:
                if self._is_past_end():
                    return
                self._begin_late()

    def _step_ended(self) -> None:
        with self._lock:
            if self._ended_s is None:
                self._steps_done += 1
            if self._state == "recording" and self._is_past_end():
                self._end_recording()
            if self._state == "done":
                self._unlisten()

    def _is_past_end(self) -> bool:
        end = self.window.end_step
        return end is not None and self._steps_done >= end

    def _why_nothing(self) -> str:
        if not self.window.counts_steps:
            seconds = (self._ended_s or time.perf_counter()) - self._began_s
            return _ENDED_IN_DELAY.format(seconds=seconds, delay=self.window.delay_s)
        count = (
            f"{self._steps_done:,} step{'' if self._steps_done == 1 else 's'}" if self._steps_done else "no step at all"
        )
        why = _ENDED_BEFORE_STEP.format(first=self.window.first_step, count=count)
        if self._steps_done >= self.window.first_step and self.window.delay_s:
            why += f" The delay of {self.window.delay_s:g} s was not over before."
        return why

    # ---- the files ---------------------------------------------------------------------------------------------

    def _make_scratch(self) -> None:
        facts = {
            "name": self.name,
            "source": self.source,
            "started_s": time.time(),
            "options": asdict(self.options),
            "tensorflow_version": str(getattr(self._tf, "__version__", "")),
        }
        try:
            if self.logdir is not None:
                self.logdir.mkdir(parents=True, exist_ok=True)
            self._scratch = Scratch(self.logdir, facts)
        except OSError as error:
            where = f"the log directory {self.logdir}" if self.logdir else "the temporary directory"
            raise CaptureError(f"Cannot write to {where}: {error}. Nothing was run.") from error

    def _collect(self) -> None:
        """Find the files, and move them to where TensorBoard looks if they are to be kept."""
        assert self._scratch is not None
        for run in sorted((self._scratch.path / "plugins" / "profile").glob("*")):
            if self.logdir is not None:
                run = self._keep(run)
            self._paths += sorted(run.glob("*.xplane.pb"))

    def _keep(self, run: Path) -> Path:
        assert self.logdir is not None
        try:
            self._run_dir = keep_run(run, self.logdir)
        except OSError as error:
            self.notes.append(f"The profile could not be kept in {self.logdir}: {error}.")
            return run
        return self._run_dir


def keep_run(run: Path, logdir: Path) -> Path:
    """Move a run's directory to where TensorBoard looks in a log directory, and return where it is then.

    Raises
    ------
    OSError
        If that cannot be written to.
    """
    target = logdir / "plugins" / "profile" / run.name
    number = 1
    while target.exists():
        number += 1
        target = target.with_name(f"{run.name}_{number}")
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(run, target))


def warm_up(tf: Any) -> None:
    """Start TensorFlow's profiler and stop it at once, so that loading CUPTI and the like isn't in the capture that follows."""
    experimental = tf.profiler.experimental
    try:
        experimental.start("")
    except tf.errors.AlreadyExistsError:
        return  # it is warm; whose session that is, the capture itself will see
    experimental.stop(save=False)


def _process_bytes() -> int:
    """Memory that this process holds, in bytes."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def _runtime_is_up() -> bool:
    """Whether TensorFlow has taken the devices: synchronising would take them, and a GPU's memory with them."""
    try:
        context = sys.modules["tensorflow.python.eager.context"].context()
        return bool(context._initialized)
    except (KeyError, AttributeError):  # another version's insides
        return True


def _import_report() -> None:
    """Import all that a report needs: before the capture, so that it neither shows in it nor delays the report after it."""
    importlib.import_module(".report", __package__)
    for name in (".views", ".display"):
        package = importlib.import_module(name, __package__)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{name}.{module.name}", __package__)


def _local_directory(logdir: str | Path) -> Path:
    if "://" in str(logdir):
        raise CaptureError(f"The log directory must be a local one, not {logdir}. Nothing was run.")
    return Path(logdir).expanduser().absolute()


class Profile:
    """A context manager that profiles the code inside it; made by `profile`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._report: Report | None = None
        self._failure: Exception | None = None

    def __enter__(self) -> Profile:
        with _beginning:
            running = active()
            if running is None:
                self._session.start()
                return self
        # Not an exception: code with its own profile() also runs under %%tfprofile.
        message = _NESTED.format(name=running.name)
        warnings.warn(message, stacklevel=2)
        self._failure = CaptureError(message)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._failure is not None:  # nested: never started
            return
        try:
            self._session.stop(error)
        finally:  # after an interrupt of the stop too
            try:
                self._report = self._session.load()
            except Exception as failure:  # noqa: BLE001
                # Raised by `report`: here it would hide the exception of the user's own code.
                self._failure = failure

    @property
    def info(self) -> CaptureInfo:
        """How the capture was made."""
        return self._session.info

    @property
    def report(self) -> Report:
        """The report of what ran inside the ``with`` block.

        Raises
        ------
        CaptureError
            If the block has not ended yet, or nothing could be captured.
        ValueError
            If the profile is damaged or empty.
        """
        if self._failure is not None:
            raise self._failure
        if self._report is None:
            raise CaptureError("There is no report yet: it is made when the with block ends.")
        return self._report


def profile(
    *,
    name: str = "profile",
    logdir: str | Path | None = None,
    host_level: int = 2,
    python: bool = False,
    device_level: int = 1,
    delay: float = 0.0,
    duration: float | None = None,
    steps: str | tuple[int, int | None] | None = None,
    warmup: int = 0,
    max_duration: float = MAX_DURATION_S,
    max_memory: float = MAX_GROWTH_GB,
    warmup_profiler: bool = False,
) -> Profile:
    """Profile the TensorFlow code of a ``with`` block.

    Parameters
    ----------
    name
        What the report is called.
    logdir
        Keep the profile in this log directory, where TensorBoard finds it too. Without it nothing is kept.
    host_level
        Detail of the host's trace: 1 critical events only, 2 the usual ones, 3 verbose.
    python
        Whether to trace every Python function call too, which slows Python down noticeably.
    device_level
        1 to trace devices (GPU, TPU), 0 not to.
    delay
        Begin to record so many seconds after the block.
    duration
        Record for so many seconds.
    steps
        Record the steps ``(first, end)``, or ``"first:end"``, counted from 0, ``end`` left out. Counted are Keras' batches
        and the marks made by `step`.
    warmup
        Leave out so many steps first; `steps` are counted after them.
    max_duration
        Record no longer than so many seconds, if there is no `duration`; ``float("inf")`` for no limit.
    max_memory
        Stop recording when the process has grown by so many gigabytes meanwhile; ``float("inf")`` for no limit.
    warmup_profiler
        Start and stop the profiler once before, so that what it loads at its first start is not in the capture.

    Returns
    -------
    Profile
        The context manager; its ``report`` is there once the block has ended, also if it raised.

    Raises
    ------
    ValueError
        If a level, a time or a range of steps makes no sense; the message says which.

    Examples
    --------
    >>> with tfprof.profile(warmup=10, steps="0:20") as p:
    ...     model.fit(dataset)
    >>> p.report
    """
    options = Options(host_level=host_level, python=python, device_level=device_level)
    wanted = parse_steps(steps) if isinstance(steps, str) else steps
    window = Window(delay, duration, wanted, warmup, max_duration, max_memory)
    return Profile(Session(name, logdir=logdir, options=options, window=window, warm_up=warmup_profiler))
