"""What processes that died have left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tfprof_widgets as tfprof
from profiler_stand_in import PROFILE
from tfprof_widgets import recovery, scratch
from tfprof_widgets.scratch import Scratch

DIES = """
import os, sys
from pathlib import Path
from tfprof_widgets.scratch import Scratch
where = Path(sys.argv[1]) if sys.argv[1] else None
made = Scratch(where, {"name": sys.argv[2], "source": "fit()", "started_s": 1.7e9, "options": {"host_level": 3}})
run = made.path / "plugins" / "profile" / "2026_01_01_00_00_00"
if sys.argv[3] != "nothing":
    run.mkdir(parents=True)
    (run / "host.xplane.pb").write_bytes(sys.stdin.buffer.read())
os._exit(9)  # as a killed kernel: nothing is cleaned up
"""


@pytest.fixture
def temporary(nothing_is_left, monkeypatch):
    import tempfile

    place = Path(tempfile.gettempdir())
    monkeypatch.setenv("TMPDIR", str(place))  # of the processes that die
    return place


def die(name: str, content: bytes | None = PROFILE, logdir: Path | None = None) -> None:
    arguments = [str(logdir or ""), name, "nothing" if content is None else "profile"]
    done = subprocess.run([sys.executable, "-c", DIES, *arguments], input=content or b"", check=False)
    assert done.returncode == 9


def test_nothing_left_is_said(temporary):
    found = tfprof.recover()
    assert len(found) == 0
    assert "No capture was left behind" in repr(found)
    assert recovery.hint() is None


def test_a_capture_whose_process_died_is_opened_and_removed(temporary):
    die("In [3]")
    assert "In [3]" in recovery.hint()
    found = tfprof.recover()
    assert len(found) == 1
    assert len(found[0].steps) == 3
    assert (found[0].title, found[0].capture.source, found[0].capture.options.host_level) == ("In [3]", "fit()", 3)
    assert "recovered" in found[0].notes[0]
    assert "In [3]" in repr(found)
    assert not list(temporary.iterdir())


def test_one_that_died_before_the_profiler_stopped_is_said_and_removed(temporary):
    die("In [4]", content=None)
    found = tfprof.recover()
    assert len(found) == 0
    assert "In [4]" in repr(found)
    assert "nothing was written" in repr(found)
    assert not list(temporary.iterdir())


def test_a_damaged_one_is_named_and_left_until_it_is_discarded(temporary):
    die("In [5]", PROFILE[:-7])
    die("In [6]")
    found = tfprof.recover()
    assert [report.title for report in found] == ["In [6]"]
    (left,) = temporary.iterdir()
    assert str(left) in repr(found)
    found.discard()
    assert not list(temporary.iterdir())


def test_a_log_directory_is_looked_into_and_keeps_what_is_found(temporary, tmp_path):
    logdir = tmp_path / "logs"
    logdir.mkdir()
    die("in logdir", logdir=logdir)
    die("in temporary")
    found = tfprof.recover(logdir)
    assert {report.title for report in found} == {"in logdir", "in temporary"}
    assert [child.name for child in logdir.iterdir()] == ["plugins"]
    assert len(tfprof.runs(logdir)) == 2
    assert not list(temporary.iterdir())


def test_what_somebody_is_at_work_on_is_left_alone(temporary):
    ours = Scratch(None, {"name": "ours"})
    assert scratch.leftovers() == []
    facts = json.loads((ours.path / "capture.json").read_text())
    alive = temporary / "tfprof-alive"
    alive.mkdir()
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        import psutil

        facts |= {"pid": other.pid, "process_started_s": psutil.Process(other.pid).create_time()}
        (alive / "capture.json").write_text(json.dumps(facts))
        assert scratch.leftovers() == []
        # The number belongs to another process by now.
        (alive / "capture.json").write_text(json.dumps(facts | {"process_started_s": 1.0}))
        assert [left.path for left in scratch.leftovers()] == [alive]
        # Another machine's, where machines share the place: nobody here knows whether that process lives.
        (alive / "capture.json").write_text(json.dumps(facts | {"process_started_s": 1.0, "machine": "another"}))
        assert scratch.leftovers() == []
        (alive / "capture.json").write_text(json.dumps(facts | {"process_started_s": 1.0}))
    finally:
        other.communicate(b"\n")
    assert len(tfprof.recover()) == 0
    ours.remove()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"pid": "1"}', "\x00"])
def test_directories_of_others_are_not_touched(temporary, content):
    strange = temporary / "tfprof-strange"
    strange.mkdir()
    (strange / "capture.json").write_text(content)
    (temporary / "tfprof-file").write_text("")
    (temporary / "tfprof-link").symlink_to(strange, target_is_directory=True)
    assert len(tfprof.recover()) == 0
    assert len(list(temporary.iterdir())) == 3
    for path in (temporary / "tfprof-file", temporary / "tfprof-link", strange / "capture.json"):
        path.unlink()
    strange.rmdir()


def test_a_report_that_could_not_be_made_is_left_to_recover(profiler, temporary, monkeypatch):
    with pytest.MonkeyPatch.context() as patch:

        def bug(*arguments, **keywords):
            raise ZeroDivisionError("a bug")

        patch.setattr("tfprof_widgets.report.load_run", bug)
        with tfprof.profile(name="unlucky") as p:
            pass
        with pytest.raises(ZeroDivisionError):
            p.report  # noqa: B018
    (report,) = tfprof.recover()
    assert report.title == "unlucky"
    assert not list(temporary.iterdir())
