"""The magics in an IPython shell of their own, with captures that need no TensorFlow."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from IPython.core.error import UsageError
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tfprof_widgets import magic, session
from tfprof_widgets.comparison import rerun

# The reports that were given to be compared and kept.
remembered: list[Report] = []


class Report:
    hosts = ()

    def __init__(self, session):
        self.session = session

    def as_asked(self, **asked):
        self.asked = asked
        return self

    def _repr_mimebundle_(self, **_):
        return {"text/plain": f"<report of {self.session.name}>", "text/html": "<div class='tfprof-report'></div>"}


class Session(session.Session):
    """A capture that records no more than when it ran."""

    made: list[Session] = []  # noqa: RUF012
    running_now = False
    refuse: str | None = None
    damage: Exception | None = None

    def start(self):
        if self.refuse:
            raise session.CaptureError(self.refuse)
        Session.made.append(self)
        Session.running_now = True

    def stop(self, error=None):
        if error is not None:
            self.error = session.describe_error(error)
        Session.running_now = False

    def end_soon(self):
        Session.running_now = False

    def load(self, *, keep=False):
        assert not Session.running_now
        if self.damage:
            raise self.damage
        return Report(self)


@pytest.fixture(scope="module")
def a_shell():
    HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    # A shell puts a module of its own there, and its reset() empties it: what starts processes later would miss its __spec__.
    main = sys.modules["__main__"]
    shell = InteractiveShell.instance()
    yield shell
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main


@pytest.fixture
def shell(a_shell, monkeypatch):
    monkeypatch.setattr(magic, "Session", Session)
    monkeypatch.setattr(Session, "made", [])
    monkeypatch.setattr(rerun, "remember", lambda report, **_: remembered.append(report))
    remembered.clear()
    a_shell.run_line_magic("load_ext", "tfprof_widgets")
    a_shell.user_ns["running"] = lambda: Session.running_now
    yield a_shell
    assert not Session.running_now
    assert "showtraceback" not in vars(a_shell)
    a_shell.run_line_magic("unload_ext", "tfprof_widgets")
    a_shell.reset()


def run(shell, source: str):
    """Run a cell; its result and what it wrote (the text shell displays by printing)."""
    with capture_output(display=False) as captured:
        result = shell.run_cell(source, store_history=True)
    return result, captured.stdout + captured.stderr


def test_only_the_cell_is_captured(shell):
    result, out = run(shell, "before = running()\n%tfprofile\nwithin = running()\nwithin, running()")
    assert shell.user_ns["before"] is False
    assert result.result == (True, True)
    assert out.index("(True, True)") < out.index("<report of In [")


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ("", {"max_mb": 4.0, "anonymize": False}),
        ("--max-mb 2.5 --anonymize", {"max_mb": 2.5, "anonymize": True}),
        ("--max-mb none", {"max_mb": None, "anonymize": False}),
    ],
)
def test_the_report_is_made_as_asked(shell, options, asked):
    for source in (f"%%tfprofile {options}\n1 + 1", f"%tfprofile {options} 1 + 1"):
        run(shell, source)
        assert shell.user_ns["tfprof_report"].asked == asked


def test_the_source_is_the_cell_as_written(shell):
    source = "%%tfprofile --name 'a b'\nx = 1\nx"
    run(shell, source)
    assert Session.made[0].source == source
    assert Session.made[0].name == "a b"


@pytest.mark.parametrize(
    ("line", "expected", "code"),
    [
        ("", {}, ""),
        ("--python --quiet", {"python": True, "quiet": True}, ""),
        ("--name 'two words' --as x f(1)", {"name": "two words", "variable": "x"}, "f(1)"),
        ('--name="two words" f("a  b", c)', {"name": "two words"}, 'f("a  b", c)'),
        ("--host-level 3 --device-level=0", {"host_level": 3, "device_level": 0}, ""),
        (r"--logdir C:\logs x - -1", {"logdir": r"C:\logs"}, "x - -1"),
        ("-- -x", {}, "-x"),
        ("--steps 10:20 --warmup=3 f()", {"steps": (10, 20), "warmup": 3}, "f()"),
        ("--steps 5: --delay 0.5", {"steps": (5, None), "delay": 0.5}, ""),
        (
            "--duration 2 --max-duration inf --max-memory 4",
            {"duration": 2.0, "max_duration": math.inf, "max_memory": 4.0},
            "",
        ),
        ("f(a, --b)", {}, "f(a, --b)"),
        ("--quiet {k: v for k, v in d}", {"quiet": True}, "{k: v for k, v in d}"),
    ],
)
def test_options_and_code(shell, line, expected, code):
    options, rest = magic._registered(shell).options_and_code(line)
    assert rest == code
    defaults = {
        "variable": None, "name": None, "logdir": None, "host_level": 2, "python": False, "device_level": 1, "quiet": False,
        "steps": None, "warmup": 0, "delay": 0.0, "duration": None, "max_duration": 60.0, "max_memory": 2.0,
        "warmup_profiler": False,
    }  # fmt: skip
    assert {name: getattr(options, name) for name in defaults} == defaults | expected


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--nonsense 1", "--nonsense"),
        ("--nam x", "--nam"),
        ("-x", "-x"),
        ("--name", "expected one argument"),
        ("--host-level 4", "host-level"),
        ("--as not-a-name", "not-a-name"),
        ("--as class", "class"),
        ("--steps 10", "10 to 19"),
        ("--steps a:b", "10 to 19"),
    ],
)
def test_wrong_options(shell, line, words):
    with pytest.raises(UsageError, match=words):
        magic._registered(shell).options_and_code(line)
    for source in (f"%%tfprofile {line}\nran = 1", f"%tfprofile {line}"):
        result, out = run(shell, source)
        assert not result.success
        assert words in out
    assert "ran" not in shell.user_ns
    assert not Session.made


def test_values_of_options_may_hold_the_notebook_s_variables(shell):
    shell.user_ns.update(where="/my logs", name=3, option="o")
    options, code = magic._registered(shell).options_and_code(
        '--logdir {where}/a --name "run $name {option}" f({name})'
    )
    assert (options.logdir, options.name, code) == ("/my logs/a", "run 3 o", "f({name})")
    run(shell, "%%tfprofile --steps {name}:{name+2} --name '{unknown}'\nran = 1")
    assert Session.made[0].window.steps == (3, 5)
    assert Session.made[0].name == "{unknown}"
    run(shell, "numbers = iter([7, 8])")
    run(shell, "%%tfprofile --warmup {next(numbers)}\n1")
    assert Session.made.pop().window.warmup == 7  # an expression is carried out once
    run(shell, "def f(where):\n    %tfprofile --name {where} 1\nf('inner')")
    assert Session.made[1].name == "inner"


def test_a_slip_in_the_middle_of_a_cell_changes_nothing_for_the_cells_after(shell):
    _, out = run(shell, "x = 1\n%tfprofile --bogus\nx")
    assert "Unknown option --bogus" in out
    assert "transformer" not in out
    result, _ = run(shell, "%%tfprofile\n1 + 1")
    assert result.result == 2
    assert magic._registered(shell)._last_value in shell.ast_transformers


def test_a_server_knows_nothing_of_this_code_s_steps(shell, monkeypatch):
    monkeypatch.setattr("tfprof_widgets.sampling.sample", lambda *_: pytest.fail("sampled"))
    _, out = run(shell, "%tfprofile --server localhost:6009 --steps 0:5 --warmup 1 --duration 2")
    assert "--steps and --warmup with --server" in out


@pytest.mark.parametrize("line", ["--steps 20:10", "--duration 0", "--delay -1", "--warmup -1", "--max-memory 0"])
def test_windows_that_make_no_sense(shell, line):
    _, out = run(shell, f"%%tfprofile {line}\nran = 1")
    assert "UsageError" in out
    assert "ran" not in shell.user_ns
    assert not Session.made


def test_help_names_every_option(shell):
    documentation = shell.find_cell_magic("tfprofile").__doc__
    for option in magic.ProfileMagics.tfprofile.parser._option_string_actions:
        assert option in documentation


def test_a_line_s_semicolon_silences_its_value(shell):
    assert "Out[" in run(shell, "%tfprofile 3 + 4")[1]
    assert "Out[" not in run(shell, "%tfprofile 3 + 4;")[1]


def test_a_cell_s_semicolon_silences_its_value(shell):
    assert "Out[" not in run(shell, "%%tfprofile\n3 + 4;")[1]


def test_a_line_sees_the_variables_of_its_function(shell):
    result, _ = run(shell, "def f(local):\n    return get_ipython().run_line_magic('tfprofile', 'local + 1')\nf(1)")
    assert result.result == 2


def test_a_line_of_statements_has_no_value(shell):
    result, _ = run(shell, "%tfprofile x = 3; y = x")
    assert result.result is None
    assert shell.user_ns["y"] == 3


def test_a_line_cannot_await(shell):
    _, out = run(shell, "%tfprofile await f()")
    assert "UsageError: A line cannot await" in out
    assert not Session.made


def test_values_are_shown_as_the_shell_is_set(shell, monkeypatch):
    monkeypatch.setattr(shell, "ast_node_interactivity", "all")
    _, out = run(shell, "%%tfprofile\n1\n2")
    assert "Out[" in out
    assert out.index("1") < out.index("2")
    monkeypatch.setattr(shell, "ast_node_interactivity", "last_expr_or_assign")
    result, _ = run(shell, "%%tfprofile\nx = 5")
    assert result.result == 5
    monkeypatch.setattr(shell, "ast_node_interactivity", "none")
    result, out = run(shell, "%%tfprofile\nx = 6\nx")
    assert result.result is None
    assert "<report of" in out


def test_a_syntax_error_is_shown_and_nothing_captured(shell):
    result, out = run(shell, "%%tfprofile\nx = = 1")
    assert isinstance(result.error_before_exec, SyntaxError)
    assert "line 2" in out.replace("\x1b[39m", "").replace("\x1b[32m", "")
    assert not Session.made


def test_a_traceback_that_the_cell_itself_shows_does_not_end_the_capture(shell):
    result, _ = run(
        shell, "%%tfprofile\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()\nrunning()"
    )
    assert result.result is True


def test_an_error_in_a_nested_cell_does_not_end_the_capture(shell):
    run(shell, "%%tfprofile\nr = get_ipython().run_cell('1 / 0')\nstill = running()")
    assert shell.user_ns["still"] is True
    assert Session.made[0].error is None


def test_a_profiled_cell_run_by_a_profiled_cell(shell):
    _, out = run(
        shell, "%%tfprofile --name outer\nr = get_ipython().run_cell('%%tfprofile\\n1 + 1')\nstill = running()"
    )
    assert shell.user_ns["still"] is True
    assert out.count("<report of") == 1
    assert [session.name for session in Session.made] == ["outer"]
    assert "was not started" in Session.made[0].notes[0]


def test_lines_in_a_profiled_cell_keep_their_value(shell):
    result, _ = run(shell, "%%tfprofile\n%tfprofile 1 + 1")
    assert result.result == 2
    assert len(Session.made) == 1


def test_several_lines_of_a_cell_are_shown_in_order(shell):
    _, out = run(shell, "for i in range(3):\n    %tfprofile --name n i\n'value'")
    assert out.count("<report of n>") == 3
    assert out.index("value") < out.index("<report of n>")
    assert [report.session.name for report in remembered] == ["n"] * 3


def test_a_magic_called_by_code(shell):
    source = "get_ipython().run_cell_magic('tfprofile', '--name called', 'x = running()')"
    _, out = run(shell, source)
    assert shell.user_ns["x"] is True
    assert "<report of called>" in out
    failing, _ = run(shell, "get_ipython().run_cell_magic('tfprofile', '', '1 / 0')\nnot_reached = 1")
    assert isinstance(failing.error_in_exec, ZeroDivisionError)
    assert "not_reached" not in shell.user_ns


@pytest.mark.parametrize("source", ["%%tfprofile", "%%tfprofile\n", "%%tfprofile\n  \n", "%%tfprofile f()\nx = 1"])
def test_cells_without_code_below(shell, source):
    result, out = run(shell, source)
    assert "UsageError" in out
    assert not result.success
    assert not Session.made


def test_a_refused_start_runs_nothing(shell, monkeypatch):
    monkeypatch.setattr(Session, "refuse", "No TensorFlow here.")
    _, out = run(shell, "%%tfprofile\nran = True")
    assert out == "UsageError: No TensorFlow here.\n"
    assert "ran" not in shell.user_ns


def test_a_report_that_fails_leaves_the_value_and_no_older_report(shell, monkeypatch):
    run(shell, "%%tfprofile --as mine\n1")
    assert shell.user_ns["mine"] is shell.user_ns["tfprof_report"]
    for damage in (ValueError("the file is damaged"), ZeroDivisionError("a bug")):
        monkeypatch.setattr(Session, "damage", damage)
        result, out = run(shell, "%%tfprofile --as mine\n2")
        assert result.result == 2
        assert str(damage) in out
        assert "Traceback" not in out
        assert "tfprof_report" not in shell.user_ns
        assert "mine" not in shell.user_ns


def test_an_interrupt_of_the_stop_shows_the_report_all_the_same(shell, monkeypatch):
    def interrupted(self, error=None):
        Session.running_now = False
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "stop", interrupted)
    result, out = run(shell, "%%tfprofile\n3")
    assert result.result == 3
    assert out.count("<report of") == 1


def test_an_interrupt_while_the_report_is_made_says_where_the_capture_is(shell, monkeypatch):
    run(shell, "%%tfprofile\n1")
    monkeypatch.setattr(Session, "damage", KeyboardInterrupt())
    result, out = run(shell, "%%tfprofile\n2")
    assert result.result == 2
    assert "recover() opens what was captured" in out
    assert "Traceback" not in out
    assert "tfprof_report" not in shell.user_ns


def test_a_cell_is_complete_when_a_cell_magic_is(shell):
    assert shell.check_complete("%%tfprofile\nx = 1")[0] == shell.check_complete("%%time\nx = 1")[0] == "incomplete"
    assert shell.check_complete("%%tfprofile\nx = 1\n\n")[0] == shell.check_complete("%%time\nx = 1\n\n")[0]


def test_other_cells_are_untouched(shell):
    for source in ("x = 1\n", "%%time\nx = 1\n", "%%tfprofiler\nx = 1\n", "%%tfprofile?\nx\n", ""):
        lines = source.splitlines(keepends=True)
        assert magic._registered(shell)._transform(lines) == lines


def test_unloading_takes_everything_out(shell):
    lists = (shell.input_transformers_cleanup, shell.ast_transformers, shell.events.callbacks["post_run_cell"])
    sizes = [len(each) for each in lists]
    shell.run_line_magic("reload_ext", "tfprof_widgets")
    magic.install(shell)
    assert [len(each) for each in lists] == sizes
    magic.uninstall(shell)
    assert [len(each) for each in lists] == [size - 1 for size in sizes]
    assert shell.find_line_magic("tfprofile") is None
    assert shell.find_cell_magic("tfprofile") is None
    magic.uninstall(shell)
    magic.install(shell)


def test_unloading_within_a_profiled_cell_ends_the_capture(shell):
    _, out = run(shell, "%%tfprofile\n%unload_ext tfprof_widgets\nstill = running()")
    assert shell.user_ns["still"] is False
    assert out.count("<report of") == 1
    shell.run_line_magic("load_ext", "tfprof_widgets")


def test_loading_in_a_fresh_interpreter_is_quick():
    script = (
        "import sys, time\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "from IPython.core.history import HistoryManager\n"
        "HistoryManager.enabled = False\n"
        "shell = InteractiveShell.instance()\n"
        "begin = time.process_time()\n"
        "shell.run_line_magic('load_ext', 'tfprof_widgets')\n"
        "print(time.process_time() - begin)\n"
        "print(sorted({'tensorflow', 'pandas', 'numpy', 'bokeh', 'pyarrow'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, modules = done.stdout.split()
    assert float(seconds) < 0.5
    assert modules == "[]"
