"""Capturing, with a stand-in for tf.profiler that refuses and fails as the real one does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import types
import warnings
from pathlib import Path

import pytest

import tfprof_widgets as tfprof
from generate import Space
from profiler_stand_in import PROFILE
from tfprof_widgets import session
from tfprof_widgets.session import CaptureError, Options, Session, TensorFlowMissingError, describe_error
from tfprof_widgets.window import Window


def test_a_capture_becomes_a_report(profiler):
    with tfprof.profile(name="three batches", host_level=3, python=True, device_level=0) as p:
        assert profiler.logdir is not None
    assert profiler.options == [{"host_tracer_level": 3, "python_tracer_level": 1, "device_tracer_level": 0}]
    assert len(p.report.steps) == 3
    info = p.report.capture
    assert (info.name, info.tensorflow_version, info.error, info.logdir) == ("three batches", "2.99.0", None, None)
    assert 0 < info.duration_s < 5
    assert profiler.logdir is None


def test_an_exception_passes_and_the_report_tells_it(profiler):
    with pytest.raises(ZeroDivisionError), tfprof.profile() as p:
        1 / 0  # noqa: B018
    assert p.report.capture.error == "ZeroDivisionError: division by zero"
    assert any("ZeroDivisionError" in note for note in p.report.notes)


def test_a_stale_session_is_stopped_and_saved_where_it_belongs(profiler, tmp_path):
    profiler.start(str(tmp_path / "theirs"))
    with tfprof.profile() as p:
        pass
    assert len(list((tmp_path / "theirs").glob("plugins/profile/*/*.xplane.pb"))) == 1
    assert any("saved to its own log directory" in note for note in p.report.notes)


def test_a_stale_session_that_cannot_be_saved_is_noted(profiler, tmp_path):
    profiler.start(str(tmp_path / "theirs"))
    profiler.failure = RuntimeError("disk full")
    with tfprof.profile() as p:
        pass
    assert any("RuntimeError: disk full" in note for note in p.report.notes)


def test_a_session_that_python_cannot_stop(profiler):
    profiler.busy = True
    with pytest.raises(CaptureError, match="sampling this program"), tfprof.profile():
        pytest.fail("the block must not run")
    assert profiler.logdir is None, "the refused session would block every later one"
    profiler.busy = False
    with tfprof.profile() as p:
        pass
    assert p.report.capture.notes == []


def test_a_capture_left_running_gives_way_to_the_next(profiler):
    left = tfprof.profile(name="left running")
    left.__enter__()
    session = Session("next")
    session.start()
    session.stop()
    assert any("left running" in note for note in session.load().notes)
    left.__exit__(None, None, None)
    assert len(left.report.steps) == 3


def test_a_capture_that_has_ended_is_not_called_left_running(profiler):
    for window in (Window(), Window(warmup=5)):  # the second one never begins to record
        line = Session("line", window=window)
        line.start()
        line.end_soon()
        after = Session("after")
        after.start()
        after.stop()
        assert after.load().capture.notes == []
        line.discard()


def test_what_shows_the_value_is_no_part_of_the_delay(profiler):
    session = Session("late", window=Window(delay_s=0.2))
    session.start()
    session.end_soon()
    time.sleep(0.4)
    session.stop()
    with pytest.raises(CaptureError, match=r"ended after 0\.[01] s, before the delay of 0\.2 s"):
        session.load()


def test_nothing_is_recorded_after_the_code(profiler):
    session = Session("late", window=Window(warmup=1))
    session.start()
    with tfprof.step():
        pass
    session.end_soon()
    with tfprof.step():  # while the value of the cell is shown
        assert not session.running
    session.stop()
    with pytest.raises(CaptureError, match="after 1 step"):
        session.load()


def test_nested_profiles_warn_and_the_outer_one_goes_on(profiler):
    with tfprof.profile(name="outer") as outer:
        with pytest.warns(UserWarning, match="outer"), tfprof.profile() as inner:
            pass
        assert profiler.logdir is not None
    assert len(outer.report.steps) == 3
    with pytest.raises(CaptureError, match="outer"):
        inner.report  # noqa: B018


def test_of_threads_that_profile_at_once_one_does(profiler, monkeypatch):
    start = profiler.start

    def slow_start(*arguments, **keywords):
        time.sleep(0.05)
        start(*arguments, **keywords)

    monkeypatch.setattr(profiler, "start", slow_start)
    monkeypatch.setattr(
        warnings, "warn", lambda *_, **__: None
    )  # pytest's recording of warnings isn't made for threads
    entered = threading.Barrier(3)
    profiles = [tfprof.profile(name=f"thread {i}") for i in range(3)]

    def capture(one):
        with one:
            entered.wait(10)

    threads = [threading.Thread(target=capture, args=[one]) for one in profiles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [one for one in profiles if one._failure is None]
    assert len(made) == 1
    assert made[0].report.notes == []


def test_the_profiler_stopped_inside(profiler):
    with tfprof.profile() as p:
        profiler.stop()
    assert len(p.report.steps) == 3
    assert any("itself stopped the profiler" in note for note in p.report.notes)


def test_a_profile_that_could_not_be_written(profiler):
    with tfprof.profile() as p:
        profiler.failure = OSError("no space left on device")
    with pytest.raises(CaptureError, match="no space left"):
        p.report  # noqa: B018


def test_a_damaged_profile(profiler):
    profiler.content = PROFILE[:-7]
    with tfprof.profile() as p:
        pass
    with pytest.raises(tfprof.XSpaceError):
        p.report  # noqa: B018


def test_an_interrupt_while_stopping_leaves_no_session(profiler):
    with pytest.raises(KeyboardInterrupt), tfprof.profile() as p:
        profiler.failure = KeyboardInterrupt()
    assert profiler.logdir is None
    with pytest.raises(CaptureError, match="wrote no profile"):
        p.report  # noqa: B018


def test_an_interrupt_after_the_file_was_written_keeps_the_report(profiler, monkeypatch):
    stop = profiler.stop

    def interrupted(save=True):
        stop(save)
        raise KeyboardInterrupt

    monkeypatch.setattr(profiler, "stop", interrupted)
    with pytest.raises(KeyboardInterrupt), tfprof.profile() as p:
        pass
    assert len(p.report.steps) == 3


def test_an_interrupt_while_starting_leaves_no_session(profiler, monkeypatch):
    def interrupted(logdir, options=None):
        profiler.logdir = logdir
        raise KeyboardInterrupt

    monkeypatch.setattr(profiler, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), tfprof.profile():
        pytest.fail("the block must not run")
    assert profiler.logdir is None


def test_gpus_are_synchronised_before_the_stop(profiler):
    with tfprof.profile() as p:
        pass
    assert profiler.synchronised == 0, "there is none: nothing to wait for"
    profiler.gpus = ("/physical_device:GPU:0",)
    with tfprof.profile() as p:
        pass
    assert profiler.synchronised == 1
    assert p.report.capture.notes == []


def test_gpus_that_cannot_be_synchronised_are_said(profiler):
    profiler.gpus = ("/physical_device:GPU:0",)
    profiler.unsynchronisable = RuntimeError("sync_devices() must only be called in Eager mode")
    with tfprof.profile() as p:
        pass
    (note,) = p.report.capture.notes
    assert "could not be synchronised" in note
    assert "Eager mode" in note


def test_ending_soon_does_not_wait_and_stop_does(profiler, monkeypatch):
    stop, go_on = profiler.stop, threading.Event()

    def slow_stop(save=True):
        assert go_on.wait(10)
        stop(save)

    monkeypatch.setattr(profiler, "stop", slow_stop)
    session = Session("slow to stop")
    session.start()
    session.end_soon()
    assert session.running
    go_on.set()
    session.stop()
    assert not session.running
    assert len(session.load().steps) == 3


def test_the_profiler_can_be_warmed_up_first(profiler):
    with tfprof.profile(warmup_profiler=True) as p:
        pass
    assert len(profiler.options) == 2, "once for the warm-up"
    assert len(p.report.steps) == 3


def test_a_full_disk_leaves_no_half_profile_and_says_what_helps(profiler, monkeypatch):
    def stop(save=True):
        run = Path(profiler.logdir) / "plugins" / "profile" / "2026_01_01_00_00_00"
        run.mkdir(parents=True)
        (run / "host.xplane.pb").write_bytes(PROFILE[:10])
        profiler.logdir = None
        raise OSError("no space left on device")

    monkeypatch.setattr(profiler, "stop", stop)
    with tfprof.profile() as p:
        pass
    with pytest.raises(CaptureError, match=r"no space left.*TMPDIR"):
        p.report  # noqa: B018


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_leaves_the_capture_to_its_parent(profiler):
    with tfprof.profile() as p:
        child = os.fork()
        if child == 0:
            status = int(session.active() is not None)
            p._session.discard()  # what the end of a child does
            os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    assert len(p.report.steps) == 3


def test_runs_of_one_second_are_all_kept(profiler, tmp_path):
    logdir = tmp_path / "new" / "logs"
    runs = []
    for _ in range(3):
        with tfprof.profile(logdir=logdir) as p:
            pass
        runs.append(p.report.capture.run_dir)
    assert len(set(runs)) == 3
    assert {run.parent for run in runs} == {logdir / "plugins" / "profile"}
    assert all(list(run.glob("*.xplane.pb")) for run in runs)
    assert [child.name for child in logdir.iterdir()] == ["plugins"]


def test_a_log_directory_that_cannot_be_used(profiler, tmp_path):
    (tmp_path / "a file").write_text("")
    for logdir in (tmp_path / "a file", "gs://bucket/logs"):
        with pytest.raises(CaptureError, match="log directory"), tfprof.profile(logdir=logdir):
            pytest.fail("the block must not run")
    assert profiler.options == []


@pytest.mark.parametrize("levels", [{"host_level": 0}, {"host_level": 4}, {"device_level": 2}])
def test_levels_that_there_are_not(levels):
    with pytest.raises(ValueError, match="level is"):
        Options(**levels)


def test_a_capture_runs_once(profiler):
    p = tfprof.profile()
    with pytest.raises(CaptureError, match="when the with block ends"):
        p.report  # noqa: B018
    with p:
        pass
    with pytest.raises(CaptureError, match="runs once"), p:
        pytest.fail("the block must not run")


def profile_with_options(stored: bytes, *names: str) -> bytes:
    space = Space("host")
    line = space.plane("/host:CPU").line("python", id=1)
    for name in names:
        line.event(name, 0, 1)
    space.plane("Task Environment", stats={"profile_options": stored})
    return space.bytes()


def test_options_that_tensorflow_ignored_are_said(profiler):
    # host_tracer_level 2, device_tracer_level 1, as TensorFlow 2.21 stores them whatever is asked for.
    profiler.content = profile_with_options(b"\x08\x01\x10\x02\x18\x01\x28\x01\x38\x01R\x03/tm", "EagerExecute")
    with tfprof.profile(host_level=3, python=True, device_level=0) as p:
        pass
    (note,) = p.report.notes
    assert "host level 3 was asked for, 2 was recorded" in note
    assert "device level 0 was asked for, 1 was recorded" in note
    assert "Python calls were asked for, none was recorded" in note


def test_options_that_were_followed_are_not_remarked(profiler):
    profiler.content = profile_with_options(b"\x10\x03\x20\x01", "EagerExecute", "$train.py:12 step")
    with tfprof.profile(host_level=3, python=True, device_level=0) as p:
        pass
    assert p.report.notes == []


def test_without_tensorflow_the_install_line_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(TensorFlowMissingError, match=r'pip install "tfprof_widgets\[tensorflow\]"'), tfprof.profile():
        pytest.fail("the block must not run")


def test_a_folder_called_tensorflow_is_not_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    with pytest.raises(TensorFlowMissingError, match="pip install"):
        session.import_tensorflow()


def test_a_broken_tensorflow_says_what_is_broken(monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    for cause in ("raise RuntimeError('bad build')", "import a_module_that_is_missing"):
        (tmp_path / "tensorflow.py").write_text(cause)
        with pytest.raises(TensorFlowMissingError, match=r"bad build|a_module_that_is_missing") as caught:
            session.import_tensorflow()
        assert "pip install" not in str(caught.value)
        (tmp_path / "tensorflow.py").unlink()


def test_errors_are_described_in_one_line():
    assert describe_error(ValueError("one")) == "ValueError: one"
    assert describe_error(ValueError("one\ntwo")) == "ValueError: one …"
    assert describe_error(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_importing_the_package_imports_nothing_big():
    script = (
        "import sys, tfprof_widgets; from tfprof_widgets import profile, CaptureInfo; import tfprof_widgets.magic;"
        "print(sorted({'tensorflow', 'pandas', 'numpy', 'bokeh', 'pyarrow', 'ptars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_exist():
    for name in [*tfprof.__all__, "__version__"]:
        assert getattr(tfprof, name)
        assert name in dir(tfprof)
    with pytest.raises(AttributeError, match="nonsense"):
        tfprof.nonsense  # noqa: B018
