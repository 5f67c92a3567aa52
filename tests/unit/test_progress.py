"""The line that says what is being done: in a notebook, in a terminal, and where outputs are captured."""

from __future__ import annotations

import io
import sys
import types

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher, DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from tfprof_widgets.progress import Progress


class Result:
    def _repr_mimebundle_(self, **_):
        return {"text/plain": "the result"}


class Published(DisplayPublisher):
    """Keeps what a kernel would send."""

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **_):
        self.sent.append((data["text/plain"], (transient or {}).get("display_id"), update))


@pytest.fixture
def shell(monkeypatch):
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    yield shell
    InteractiveShell.clear_instance()


def test_in_a_notebook_one_output_becomes_the_result(shell):
    shell.display_pub = Published()
    shell.display_pub.sent = sent = []
    shell.__dict__["kernel"] = types.SimpleNamespace()
    progress = Progress(shell)
    progress.say("stopping <…>")
    progress.say("making")
    progress.become(Result())
    assert [text for text, _, _ in sent] == ["stopping <…>", "making", "the result"]
    assert [update for _, _, update in sent] == [False, True, True]
    assert len({identity for _, identity, _ in sent}) == 1
    assert sent[0][1]


def test_a_failure_takes_the_line_s_place(shell, capsys):
    shell.display_pub = Published()
    shell.display_pub.sent = sent = []
    shell.__dict__["kernel"] = types.SimpleNamespace()
    progress = Progress(shell)
    progress.say("making")
    progress.fail("no report")
    assert [text for text, _, _ in sent] == ["making", "no report"]
    quiet = Progress(shell)
    quiet.fail("no report")
    assert len(sent) == 2
    assert capsys.readouterr().err == "no report\n"


def test_in_a_terminal_the_line_is_written_over(shell, monkeypatch, capsys):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress(shell)
    progress.say("a longer line")
    progress.say("short")
    progress.become(Result())
    assert terminal.getvalue() == "\ra longer line\rshort        \r" + " " * 5 + "\r"
    assert "the result" in capsys.readouterr().out


def test_where_outputs_are_captured_there_is_the_result_alone(shell):
    shell.display_pub = CapturingDisplayPublisher()
    shell.__dict__["kernel"] = types.SimpleNamespace()
    progress = Progress(shell)
    progress.say("making")
    progress.become(Result())
    assert [output["data"]["text/plain"] for output in shell.display_pub.outputs] == ["the result"]
