"""Running TensorFlow's profiler in this process.

Two promises are kept here, whatever the profiled code does: no profiler session is left
running, and no temporary file remains once the report has been read.

TensorFlow is imported when a capture starts, never before.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import shutil
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report import Report
    from .xspace import XSpace

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

_BUSY = """\
Another profiler session is running in this process, and Python cannot stop it: most likely
somebody is sampling this program through its profiler server. Try again when that has ended.
Nothing was run."""

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


_IGNORED = (
    "TensorFlow ignored some of the options of this capture: {ignored}. Versions 2.20 and 2.21 ignore all tracer levels "
    "(this is {version}); 2.15 follows them."
)


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
    error
        The exception that ended the profiled code, as ``"Type: message"``; None if none did.
    notes
        Remarks for the reader, such as a stale session that had to be stopped first.
    tensorflow_version
        Version of TensorFlow that captured.
    keras_version
        Version of Keras, if it was loaded when the capture ended.
    """

    name: str
    source: str = ""
    logdir: Path | None = None
    run_dir: Path | None = None
    started_s: float = 0.0
    duration_s: float = 0.0
    stop_s: float = 0.0
    options: Options = field(default_factory=Options)
    error: str | None = None
    notes: list[str] = field(default_factory=list)
    tensorflow_version: str = ""
    keras_version: str | None = None


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


def active() -> Session | None:
    """Return the capture that is running in this process, if one is."""
    return _active


class Session:
    """One capture: `start`, `stop`, then `load` for the report.

    The profile is first written to a temporary directory of its own, inside `logdir` if one is given: TensorFlow
    names runs by the second, so two captures in one second would overwrite each other there.
    """

    def __init__(
        self,
        name: str,
        *,
        source: str = "",
        logdir: str | Path | None = None,
        options: Options | None = None,
    ) -> None:
        self.name = name
        self.source = source
        self.logdir = None if logdir is None else _local_directory(logdir)
        self.options = options or Options()
        self.notes: list[str] = []
        self.error: str | None = None
        self._paths: list[Path] = []
        self._run_dir: Path | None = None
        self._tf: Any = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._started_s = 0.0
        self._start = 0.0
        self._duration_s = 0.0
        self._stop_s = 0.0

    @property
    def running(self) -> bool:
        """Whether the profiler is recording for this capture."""
        return _active is self

    def start(self) -> None:
        """Start the profiler.

        Raises
        ------
        CaptureError
            If TensorFlow is missing, the log directory cannot be written to, or a session is running
            that Python cannot stop. Nothing is left behind then.
        """
        global _active
        if self._started_s:
            raise CaptureError("A capture runs once; call profile() again for another one.")
        self._tf = import_tensorflow()
        _import_report()
        if _active is not None:
            self.notes.append(_STALE_OURS.format(name=_active.name))
            _active.stop()
        try:
            if self.logdir is not None:
                self.logdir.mkdir(parents=True, exist_ok=True)
            self._directory = tempfile.TemporaryDirectory(
                prefix=".tfprof-" if self.logdir else "tfprof-", dir=self.logdir, ignore_cleanup_errors=True
            )
        except OSError as error:
            where = f"the log directory {self.logdir}" if self.logdir else "the temporary directory"
            raise CaptureError(f"Cannot write to {where}: {error}. Nothing was run.") from error
        try:
            self._start_profiler()
            _active = self
        except BaseException:
            # Also an interrupt between the profiler's start and here.
            self._abandon()
            raise
        self._started_s = time.time()
        self._start = time.perf_counter()

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
        if not self.running:
            return
        end = time.perf_counter()
        self._duration_s = end - self._start
        try:
            self._tf.profiler.experimental.stop()
        except self._tf.errors.UnavailableError:
            self.notes.append(_STOPPED_INSIDE)
        except Exception as failure:  # noqa: BLE001 - TensorFlow's errors have no common base but this
            self.notes.append(f"TensorFlow could not write the whole profile ({describe_error(failure)}).")
        except BaseException:
            # An interrupt during the stop would leave TensorFlow's session open.
            self._drop_profiler()
            raise
        finally:
            _active = None
            self._stop_s = time.perf_counter() - end
            self._collect()

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
            error=self.error,
            notes=list(self.notes),
            tensorflow_version=getattr(self._tf, "__version__", ""),
            keras_version=getattr(keras, "__version__", None),
        )

    def load(self) -> Report:
        """Read the profile and remove the temporary files.

        Raises
        ------
        CaptureError
            If TensorFlow wrote no profile.
        ValueError
            If the profile is damaged or empty.
        """
        from .report import load_run

        self.stop()
        try:
            if not self._paths:
                reason = " ".join(self.notes)
                raise CaptureError(f"TensorFlow wrote no profile. {reason}".rstrip())
            info = self.info
            report = load_run(self._paths, capture=info)
            ignored = _ignored_options(self.options, [host.trace.space for host in report.hosts])
            if ignored:
                info.notes.append(_IGNORED.format(version=info.tensorflow_version, ignored=ignored))
            return report
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the temporary files; a profile kept in a log directory stays."""
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def _start_profiler(self) -> None:
        experimental = self._tf.profiler.experimental
        already_exists = self._tf.errors.AlreadyExistsError
        options = experimental.ProfilerOptions(
            host_tracer_level=self.options.host_level,
            python_tracer_level=int(self.options.python),
            device_tracer_level=self.options.device_level,
        )
        assert self._directory is not None
        try:
            experimental.start(self._directory.name, options=options)
            return
        except already_exists:
            pass
        try:
            experimental.stop()
            self.notes.append(_STALE_SAVED)
        except Exception as error:  # noqa: BLE001 - as above
            self.notes.append(_STALE_LOST.format(error=describe_error(error)))
        try:
            experimental.start(self._directory.name, options=options)
        except already_exists:
            raise CaptureError(_BUSY) from None

    def _drop_profiler(self) -> None:
        """End TensorFlow's session, if one is there, without writing it."""
        with contextlib.suppress(Exception):
            self._tf.profiler.experimental.stop(save=False)

    def _abandon(self) -> None:
        global _active
        # Needed after a refused start too: TensorFlow then keeps the refused session as if it ran.
        self._drop_profiler()
        _active = None
        self.discard()

    def _collect(self) -> None:
        """Find the files, and move them to where TensorBoard looks if they are to be kept."""
        assert self._directory is not None
        written = Path(self._directory.name)
        for run in sorted((written / "plugins" / "profile").glob("*")):
            if self.logdir is not None:
                run = self._keep(run)
                self._run_dir = run
            self._paths += sorted(run.glob("*.xplane.pb"))

    def _keep(self, run: Path) -> Path:
        assert self.logdir is not None
        target = self.logdir / "plugins" / "profile" / run.name
        number = 1
        try:
            while target.exists():
                number += 1
                target = target.with_name(f"{run.name}_{number}")
            target.parent.mkdir(parents=True, exist_ok=True)
            return Path(shutil.move(run, target))
        except OSError as error:
            self.notes.append(f"The profile could not be kept in {self.logdir}: {error}.")
            return run


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


def _ignored_options(options: Options, spaces: list[XSpace]) -> str:
    """Say which options the profile shows not to have been followed; empty if none."""
    from google.protobuf import unknown_fields
    from google.protobuf.empty_pb2 import Empty

    # The options that took effect, as newer versions of TensorFlow store them: a serialised ProfileOptions.
    stored = [stats["profile_options"] for space in spaces for stats in space.plane_stats if "profile_options" in stats]
    ignored = []
    if stored and isinstance(stored[0], bytes):
        # Its own class is TensorFlow's; read as an empty message, all its fields are unknown ones.
        fields: Any = unknown_fields.UnknownFieldSet(Empty.FromString(stored[0]))
        effective = {each.field_number: each.data for each in fields}
        for number, option, asked in ((2, "host level", options.host_level), (3, "device level", options.device_level)):
            if (level := effective.get(number, 0)) != asked:
                ignored.append(f"{option} {asked} was asked for, {level} was recorded")
    # Names of Python calls begin with a dollar sign.
    if options.python and not any(name.startswith("$") for space in spaces for name in space.meta_name):
        ignored.append("Python calls were asked for, none was recorded")
    return "; ".join(ignored)


class Profile:
    """A context manager that profiles the code inside it; made by `profile`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._report: Report | None = None
        self._failure: Exception | None = None

    def __enter__(self) -> Profile:
        running = active()
        if running is not None:
            # Not an exception: code with its own profile() also runs under %%tfprofile.
            message = _NESTED.format(name=running.name)
            warnings.warn(message, stacklevel=2)
            self._failure = CaptureError(message)
        else:
            self._session.start()
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

    Returns
    -------
    Profile
        The context manager; its ``report`` is there once the block has ended, also if it raised.

    Examples
    --------
    >>> with tfprof.profile() as p:
    ...     model.fit(dataset)
    >>> p.report
    """
    options = Options(host_level=host_level, python=python, device_level=device_level)
    return Profile(Session(name, logdir=logdir, options=options))
