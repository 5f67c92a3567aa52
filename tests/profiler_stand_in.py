"""A stand-in for tf.profiler that refuses and fails as the real one does, for captures without TensorFlow."""

from __future__ import annotations

import sys
import tempfile
import types
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from generate import cpu_fit_capture
from tfprof_widgets import session

PROFILE = cpu_fit_capture(epochs=1, batches=3).bytes()


class AlreadyExistsError(Exception):
    pass


class UnavailableError(Exception):
    pass


@dataclass
class Profiler:
    """What tf.profiler.experimental does, where it matters here."""

    logdir: str | None = None  # of the session, if there is one
    busy: bool = False  # somebody samples this process through the profiler server
    content: bytes = PROFILE
    failure: BaseException | None = None  # raised by the next stop
    gpus: tuple[str, ...] = ()
    synchronised: int = 0
    unsynchronisable: Exception | None = None
    options: list = field(default_factory=list)

    @staticmethod
    def ProfilerOptions(**levels):
        return levels

    def sync_devices(self):
        assert self.logdir is not None, "too late"
        if self.unsynchronisable:
            raise self.unsynchronisable
        self.synchronised += 1

    def start(self, logdir, options=None):
        if self.logdir is not None:
            raise AlreadyExistsError("Another profiler is running.")
        # TensorFlow keeps a session that it refused to start.
        self.logdir = logdir
        if self.busy:
            raise AlreadyExistsError("Another profiler is running.")
        self.options.append(options)

    def stop(self, save=True):
        if self.logdir is None:
            raise UnavailableError("No profiler is running.")
        failure, self.failure = self.failure, None
        if isinstance(failure, KeyboardInterrupt):
            raise failure  # the session stays
        logdir, self.logdir = self.logdir, None
        if failure is not None:
            raise failure
        if save and not self.busy:
            run = Path(logdir) / "plugins" / "profile" / "2026_01_01_00_00_00"
            run.mkdir(parents=True, exist_ok=True)
            (run / "host.xplane.pb").write_bytes(self.content)


@pytest.fixture
def profiler(monkeypatch, nothing_is_left):
    profiler = Profiler()
    tensorflow = types.SimpleNamespace(
        __version__="2.99.0",
        profiler=types.SimpleNamespace(experimental=profiler),
        config=types.SimpleNamespace(list_physical_devices=lambda kind: list(profiler.gpus)),
        test=types.SimpleNamespace(experimental=types.SimpleNamespace(sync_devices=profiler.sync_devices)),
        errors=types.SimpleNamespace(AlreadyExistsError=AlreadyExistsError, UnavailableError=UnavailableError),
    )
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    return profiler


@pytest.fixture
def nothing_is_left(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield
    assert session.active() is None
    assert not list(temporary.iterdir())
