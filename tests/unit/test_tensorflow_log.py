"""Listening to TensorFlow's log: what CUPTI complains about is taken, and nothing is kept from the user."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from generate.log_lines import HARMLESS, RECORDED, SUBSCRIBE
from tfprof_widgets.diagnosis.known_messages import KNOWN, explained
from tfprof_widgets.tensorflow_log import is_worth_listening, listening

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="descriptors are led through a pipe on POSIX only")


@pytest.mark.parametrize(
    ("line", "name"), RECORDED.items(), ids=[f"{i}-{name}" for i, name in enumerate(RECORDED.values())]
)
def test_recorded_messages_are_understood(line, name):
    assert explained(line).name == name


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_messages_are_none_of_them(line):
    assert explained(line) is None


def test_each_message_says_what_to_do():
    assert all(known.title and known.why and known.do for known in KNOWN)
    commands = {known.name: " ".join(known.commands) for known in KNOWN}
    assert "--privileged=true" in commands["privileges"]
    assert "NVreg_RestrictProfilingToAdminUsers=0" in commands["privileges"]
    assert "ldconfig -p | grep libcupti" in commands["libcupti"]
    assert "/usr/local/cuda/extras/CUPTI/lib64:$LD_LIBRARY_PATH" in commands["libcupti"]
    without = {name for name, text in commands.items() if not text}
    assert without == {"other_profiler"}


def log(text: str) -> None:
    os.write(2, f"{text}\n".encode())


def test_lines_are_taken_and_passed_on(capfd):
    lines = []
    with listening(lines):
        for line in [*RECORDED, *HARMLESS]:
            log(line)
    assert lines == list(RECORDED)
    assert capfd.readouterr().err.splitlines() == [*RECORDED, *HARMLESS]
    log("afterwards")
    assert capfd.readouterr().err == "afterwards\n"


def test_nothing_is_kept_after_the_body(capfd):
    lines = []
    with listening(lines):
        pass
    log(next(iter(RECORDED)))
    assert lines == []


def test_an_exception_passes(capfd):
    lines = []
    with pytest.raises(ZeroDivisionError), listening(lines):  # noqa: PT012
        log(next(iter(RECORDED)))
        1 / 0  # noqa: B018
    assert len(lines) == 1
    log("still there")
    assert capfd.readouterr().err.endswith("still there\n")


def test_more_than_a_pipe_holds(capfd):
    lines = []
    with listening(lines):
        for _ in range(50):
            os.write(2, b"x" * 99_999 + b"\n")
    assert len(capfd.readouterr().err) == 5_000_000
    assert lines == []


def test_a_flood_of_complaints_is_cut(capfd):
    lines = []
    with listening(lines):
        for _ in range(1000):
            log(f"{SUBSCRIBE}CUPTI_ERROR_UNKNOWN")
    assert len(lines) == 200
    assert len(capfd.readouterr().err.splitlines()) == 1000


def test_a_subprocess_that_lives_longer_keeps_its_output(capfd):
    script = "import sys; sys.stdin.read(); sys.stderr.write('late'); sys.stderr.flush()"
    with listening([]):
        child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
    child.stdin.close()
    assert child.wait(30) == 0
    said = ""
    deadline = time.monotonic() + 20
    while not said and time.monotonic() < deadline:
        time.sleep(0.02)
        said = capfd.readouterr().err
    assert said == "late"


def test_no_descriptor_is_left_open(capfd):
    before = set(Path("/dev/fd").iterdir())
    for _ in range(20):
        with listening([]):
            log("line")
    assert len(set(Path("/dev/fd").iterdir())) <= len(before) + 1


def test_a_process_that_crashes_has_told_why():
    script = (
        "import os, signal\nfrom tfprof_widgets.tensorflow_log import listening\nwith listening([]):\n"
        " os.write(2, b'the last words\\n')\n os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-9, "the last words\n")


def test_without_tee(monkeypatch, capfd):
    monkeypatch.setenv("PATH", "/nowhere")
    lines = []
    with listening(lines):
        log(next(iter(RECORDED)))
    assert lines == []
    assert capfd.readouterr().err == f"{next(iter(RECORDED))}\n"


def test_without_a_place_for_the_copy(monkeypatch, capfd):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with listening([]):
        log("said")
    assert capfd.readouterr().err == "said\n"


def test_a_process_without_standard_error():
    script = (
        "import os; os.close(2)\nfrom tfprof_widgets.tensorflow_log import listening\nwith listening([]): print('ran')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "ran\n"


@pytest.mark.parametrize(
    ("build", "worth"),
    [({"is_cuda_build": True}, True), ({"is_rocm_build": True}, True), ({"is_cuda_build": False}, False), ({}, False)],
)
def test_only_builds_for_gpus_are_listened_to(build, worth):
    tf = types.SimpleNamespace(sysconfig=types.SimpleNamespace(get_build_info=lambda: build))
    assert is_worth_listening(tf) is worth
    assert is_worth_listening(types.SimpleNamespace()) is False
