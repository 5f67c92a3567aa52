"""The line that says what is being done: in a notebook, in a terminal, and where outputs are captured."""

from __future__ import annotations

import io
import sys
import types

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher, DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from generate import cpu_fit_capture
from tfprof_widgets.progress import Progress, show_long
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import read


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
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # where a shell puts its own
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


@pytest.fixture
def sent(shell):
    """What a kernel's cell shows: text, identity, whether it is in the place of an output."""
    shell.display_pub = Published()
    shell.display_pub.sent = sent = []
    shell.__dict__["kernel"] = types.SimpleNamespace()
    return sent


class Long:
    """Made for long, as a report of many events is."""

    def _ipython_display_(self):
        show_long(self, "making it …")

    def _repr_mimebundle_(self, **_):
        return {"text/plain": "the report"}


def test_what_takes_long_says_so_and_takes_the_line_s_place(shell, sent):
    display(Long())
    assert [text for text, _, _ in sent] == ["making it …", "the report"]
    assert [update for _, _, update in sent] == [False, True]
    assert sent[0][1] == sent[1][1]
    # Where a line is there already, as under a profiled cell, it is the only one.
    progress = Progress(shell)
    progress.say("the profiler is stopping")
    progress.become(Long())
    assert [text for text, _, _ in sent[2:]] == ["the profiler is stopping", "the report"]


def test_an_output_widget_can_t_change_what_it_showed_and_gets_the_result_alone(shell, sent):
    widgets = pytest.importorskip("ipywidgets")
    output = widgets.Output()
    output.msg_id = "a cell's"
    try:
        display(Long())
        assert [text for text, _, _ in sent] == ["the report"]
    finally:
        output.msg_id = ""
        output.close()


def test_what_is_formatted_for_another_place_is_not_displayed(shell, sent):
    widgets = pytest.importorskip("ipywidgets")
    output = widgets.Output()
    output.append_display_data(Long())
    assert [each["data"]["text/plain"] for each in output.outputs] == ["the report"]
    assert sent == []
    output.close()


def test_outside_of_a_notebook_there_is_the_result_alone(shell):
    shell.display_pub = CapturingDisplayPublisher()
    display(Long())
    assert [output["data"]["text/plain"] for output in shell.display_pub.outputs] == ["the report"]


def test_a_display_that_is_interrupted_leaves_no_words_that_promise_it(shell, sent):
    class Interrupted(Long):
        def _repr_mimebundle_(self, **_):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        display(Interrupted())
    assert [text for text, _, _ in sent] == ["making it …", "Nothing is shown: the display ended early."]


def test_a_report_of_many_events_says_that_it_is_made_and_a_small_one_does_not(shell, sent, monkeypatch):
    small = Report([read(cpu_fit_capture(1, 2).bytes())])
    display(small)
    assert [update for _, _, update in sent] == [False]
    assert not sent[0][0].startswith("tfprof:")
    monkeypatch.setattr("tfprof_widgets.report.report._LONG_FROM_EVENTS", 1)
    display(small)  # made already: it takes no time
    assert [update for _, _, update in sent] == [False, False]
    display(Report([host.trace.space for host in small.hosts]))
    assert [update for _, _, update in sent] == [False, False, False, True]
    assert sent[2][0].startswith("tfprof: making the report of ")
