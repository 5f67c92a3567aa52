"""The magics ``%tfprofile`` and ``%%tfprofile``.

A cell under ``%%tfprofile`` is not run by the magic: an input transformer turns its first line into the statement
``%tfprofile OPTIONS`` (profile the rest of this cell), and IPython runs the cell as any other. So await, line
numbers, tracebacks, interrupts, history, Out[n] and a final semicolon are IPython's own. The profiler is stopped when
the last value is there, an exception has come up, or at the latest when the cell ends; the report is displayed then.
"""

# IPython has no types for its magics.
# mypy: disallow-untyped-decorators=False, disallow-subclassing-any=False

from __future__ import annotations

import ast
import contextlib
import keyword
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any

from IPython import get_ipython
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import cell_magic
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.utils.text import DollarFormatter

try:
    from IPython.core.magic import output_can_be_silenced
except ImportError:  # IPython 7, which Colab has: a final semicolon after a profiled line changes nothing there

    def output_can_be_silenced(magic_func: Any) -> Any:
        """Leave the magic as it is."""
        return magic_func


from .options import COMPARED, RECORDED, SAMPLED, SHOWN, WINDOWED, Option
from .progress import Progress
from .session import CaptureError, Options, Session, describe_error, import_tensorflow, warm_up
from .window import Window

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

    from .report import Report

VARIABLE = "tfprof_report"

_NESTED = "A %tfprofile inside this cell was not started: the whole cell was being profiled already."

_NO_CODE = "--server profiles another program, which runs its own code; there must be no code with it here."

_NOT_WITH_SERVER = (
    "{options} with --server: that is for code that runs here. Another program is recorded from now on, for the --duration; "
    "what came of it is compared with tfprof_widgets.compare()."
)
# Options of which a server knows nothing, as argparse calls them.
_OF_CODE_HERE = ("steps", "warmup", "delay", "max_duration", "max_memory", "warmup_profiler", "baseline")

# A word, in which a quoted part may hold spaces.
_WORD = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|\S)+)""")


def _shared(options: Sequence[Option]) -> Callable[[Any], Any]:
    """Return a decorator that gives a magic these options, in their order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = argument(*option.flags, **option.keywords)(function)
        return function

    return decorate


@dataclass
class _Run:
    """A profiled cell or line: its capture, and the execution that it belongs to."""

    session: Session
    # None where IPython lost it (after a nested run_cell); the run then ends with the next execution that ends.
    execution: ExecutionResult | None
    names: list[str]
    quiet: bool
    asked: dict[str, Any] = field(default_factory=dict)  # of the report
    report: Report | None = None
    failure: str | None = None  # why there is no report
    compared: bool = True
    baseline: Report | None = None  # to compare with; else the cell's run before
    cell: str = ""  # the notebook's id of the cell, and which of its runs this is

    def ends_with(self, result: ExecutionResult | None) -> bool:
        if self.execution is None or result is None or result is self.execution:
            return True
        # When an exception breaks out of IPython's runner, it reports a result made afresh.
        ours, ended = self.execution.info, result.info
        return bool(ended is not None and ours is not None and ended.raw_cell == ours.raw_cell)


@magics_class
class ProfileMagics(Magics):
    """``%tfprofile`` and ``%%tfprofile``, and the hooks they need in the shell."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._run: _Run | None = None  # the cell that is being profiled now
        self._to_display: list[_Run] = []  # lines of a cell that hasn't ended yet
        self._unhook_traceback: Callable[[], None] = lambda: None
        self._last_value = _LastValueTransformer(self._code_of)
        self._transform = _CellTransformer(self._profiles_rest)

    @needs_local_scope
    @no_var_expand
    @output_can_be_silenced
    @magic_arguments()
    @argument("--as", dest="variable", metavar="NAME", help="also bind the report to this variable.")
    @_shared(SHOWN)
    @argument(
        "--logdir",
        metavar="DIR",
        help="keep the profile in this log directory, where TensorBoard finds it too "
        "(DIR/plugins/profile/...). Without it nothing is kept but the report.",
    )
    @_shared(WINDOWED)
    @_shared(SAMPLED)
    @_shared(RECORDED)
    @_shared(COMPARED)
    @argument("--quiet", action="store_true", help="don't display the report; it is still in tfprof_report.")
    @argument("code", nargs="*", help="for %%tfprofile on one line: the code to profile.")
    @line_cell_magic
    def tfprofile(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """Profile TensorFlow code and show an interactive report below it.

        Profile a whole cell::

            %%tfprofile
            model.fit(dataset, epochs=2)

        one line, whose value is kept::

            history = %tfprofile model.fit(dataset, epochs=2)

        or, with no code on the line, the rest of a cell::

            build_the_model()
            %tfprofile
            model.fit(dataset, epochs=2)

        A long cell need not be recorded to its end (and is not: see --max-duration)::

            %%tfprofile --warmup 10 --steps 0:20
            model.fit(dataset, epochs=100)

        A program that runs elsewhere is profiled through the server that it has started with
        tf.profiler.experimental.server.start(6009)::

            %tfprofile --server grpc://localhost:6009 --duration 2

        The cell runs as it would without the magic. After an exception or an interrupt the report shows what was
        captured until then. It is bound to the variable tfprof_report.
        """
        __tracebackhide__ = True  # IPython leaves frames with this name out of tracebacks
        if cell is not None:
            return self._run_as_cell(line, cell)
        options, code = self.options_and_code(line, local_ns)
        if options.server:
            self._sample(options, code)
        elif not code:
            if options.warmup_profiler and self._ends_cell():
                self._warm_up()
            else:
                self._begin(options)
        else:
            return self._profile_line(options, code, local_ns)
        return None

    def options_and_code(self, line: str, local_ns: dict[str, Any] | None = None) -> tuple[Any, str]:
        """Split a magic's line into its parsed options and the code after them, which is left as it is.

        In values of options ``{expression}`` and ``$variable`` are the notebook's, as in other magics.

        Parameters
        ----------
        line
            What follows ``%tfprofile``.
        local_ns
            Variables of the function in which it stands.

        Raises
        ------
        UsageError
            If an option is unknown or its value is missing or wrong.
        """
        given, code = self._split(line)
        variables = {**self.shell.user_ns, **(local_ns or {})}
        arguments = [name if value is None else f"{name}={_filled(value, variables)}" for name, value in given]
        options = self.tfprofile.parser.parse_args(arguments)
        name = options.variable
        if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
            raise UsageError(f"--as needs the name of a variable, not {name!r}.")
        return options, code

    def _split(self, line: str) -> tuple[list[tuple[str, str | None]], str]:
        """Split a line into the options, each with its value or None, and the code after them."""
        given: list[tuple[str, str | None]] = []
        position = 0
        while (word := _WORD.match(line, position)) and word[1].startswith("-"):
            position = word.end()
            option, equals, value = word[1].partition("=")
            if option == "--":
                break
            action = self.tfprofile.parser._option_string_actions.get(option)
            if action is None:
                raise UsageError(f"Unknown option {option}; %%tfprofile? lists the options.")
            if equals:
                given.append((option, _unquoted(value)))
            elif action.nargs != 0 and (word := _WORD.match(line, position)):
                position = word.end()
                given.append((option, _unquoted(word[1])))
            else:
                given.append((option, None))
        return given, line[position:].strip()

    def _code_of(self, line: str) -> str | None:
        """Return the code on a line; None if its options are wrong, which the magic itself will say."""
        try:
            return self._split(line)[1]
        except UsageError:
            return None

    def _profiles_rest(self, line: str) -> bool:
        """Whether a line has valid options and no code, so that ``%tfprofile`` profiles what comes after it."""
        try:
            given, code = self._split(line)
            if not any(
                value is not None and _has_variables(value) for _, value in given
            ):  # those are known when the cell runs
                self.options_and_code(line)
            return not code and "--server" not in dict(given)
        except UsageError:
            return False

    def _run_as_cell(self, line: str, cell: str) -> None:
        """Run a cell magic that IPython hands over: one with wrong options, or called by other code."""
        options, code = self.options_and_code(line)
        if options.server:
            raise UsageError(_NO_CODE)
        if code:
            raise UsageError("The code to profile goes below the line with %%tfprofile, or behind a %tfprofile.")
        if not cell.strip():
            raise UsageError("There is no code below %%tfprofile.")
        result = self.shell.run_cell(f"%%tfprofile {line}\n{cell}")
        result.raise_error()

    def _new_run(self, options: Any, source: str) -> _Run:
        execution = self.shell.displayhook.exec_result
        count = execution.execution_count if execution is not None else self.shell.execution_count
        if not source and execution is not None and execution.info is not None:
            source = execution.info.raw_cell
        levels = Options(options.host_level, options.python, options.device_level)
        names = [VARIABLE] + ([options.variable] if options.variable else [])
        baseline = self._baseline(options)
        try:
            window = Window(
                options.delay, options.duration, options.steps, options.warmup, options.max_duration, options.max_memory
            )
            session = Session(
                options.name or f"In [{count}]",
                source=source,
                logdir=options.logdir,
                options=levels,
                window=window,
                warm_up=options.warmup_profiler,
            )
            run = _Run(session, execution, names, options.quiet, _asked(options))
            run.compared, run.baseline, run.cell = not options.no_compare, baseline, self._cell(execution)
            session.start()
        except (CaptureError, ValueError) as error:
            raise UsageError(str(error)) from None
        return run

    def _baseline(self, options: Any) -> Report | None:
        """Return what to compare with, if that is said; before the code runs, so that a slip costs no run."""
        if options.baseline is None:
            return None
        from .comparison.rerun import baseline_of

        try:
            return baseline_of(options.baseline, self.shell.user_ns)
        except KeyError as error:
            raise UsageError(
                f"--baseline needs a report's variable or a run of tfprof_widgets.history(): {error.args[0]}"
            ) from None

    def _cell(self, execution: ExecutionResult | None) -> str:
        """Return which cell this is, as far as the notebook tells, and which of its runs."""
        info = None if execution is None else execution.info
        cell = getattr(info, "cell_id", None)
        return f"{cell}#{len(self._to_display)}" if cell else ""

    def _ends_cell(self) -> bool:
        """Whether the last line of the cell is a ``%tfprofile``: then there is nothing after it to profile."""
        execution = self.shell.displayhook.exec_result
        source = execution.info.raw_cell if execution is not None and execution.info is not None else ""
        lines = [line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        return bool(lines) and re.match(r"\s*%tfprofile\b", lines[-1]) is not None

    def _warm_up(self) -> None:
        try:
            tf = import_tensorflow()
        except CaptureError as error:
            raise UsageError(str(error)) from None
        begin = time.perf_counter()
        warm_up(tf)
        sys.stdout.write(f"The profiler is warm: its first start took {time.perf_counter() - begin:.2f} s.\n")

    def _begin(self, options: Any) -> None:
        """Profile from here to the end of the cell."""
        if self._run is not None:
            self._run.session.notes.append(_NESTED)
            return
        self._run = self._new_run(options, source="")
        self._hook_traceback()

    def end(self) -> None:
        """Stop the profiler if the cell that is being executed is the profiled one; the cell's result need not wait for it."""
        if self._run is not None and self.shell.displayhook.exec_result is self._run.execution:
            self._unhook_traceback()
            self._run.session.end_soon()

    def _sample(self, options: Any, code: str) -> None:
        """Profile another program, through its server, and show the report here."""
        from .sampling import DURATION_S, Request, addresses, sample

        if code:
            raise UsageError(_NO_CODE)
        default = self.tfprofile.parser.get_default
        useless = [f"--{name.replace('_', '-')}" for name in _OF_CODE_HERE if getattr(options, name) != default(name)]
        if useless:
            raise UsageError(_NOT_WITH_SERVER.format(options=" and ".join(useless)))
        levels = Options(options.host_level, options.python, options.device_level)
        duration_s = DURATION_S if options.duration is None else options.duration
        progress = Progress(None if options.quiet else self.shell)
        try:
            request = Request(addresses(options.server), duration_s, options.name or "", options.logdir, levels)
            report = sample(request, lambda words, _share: progress.say(f"tfprofile: {words}")).as_asked(
                **_asked(options)
            )
        except (CaptureError, ValueError) as error:
            progress.end("tfprofile: nothing was captured.")
            raise UsageError(str(error)) from None
        except BaseException:
            progress.end("tfprofile: nothing was captured.")
            raise
        for name in [VARIABLE] + ([options.variable] if options.variable else []):
            self.shell.user_ns[name] = report
        if not options.quiet:
            progress.become(report)

    def _profile_line(self, options: Any, code: str, local_ns: dict[str, Any] | None) -> Any:
        __tracebackhide__ = True
        body, value = self._compile(code)
        run: _Run | None = None
        if self._run is not None:
            self._run.session.notes.append(_NESTED)
        else:
            run = self._new_run(options, source=code)
        variables = self.shell.user_ns
        error: BaseException | None = None
        try:
            exec(body, variables, local_ns)  # noqa: S102
            return eval(value, variables, local_ns) if value is not None else None  # noqa: S307
        except BaseException as raised:
            error = raised
            raise
        finally:
            if run is not None:
                run.session.end_soon()
                if error is not None:
                    run.session.error = describe_error(error)
                if not (self._ends_cell() and run.execution is not None):
                    # What follows in the cell may use the report.
                    self._load(run)
                # Displayed at the end of the cell: below the value.
                self._to_display.append(run)

    def _compile(self, code: str) -> tuple[CodeType, CodeType | None]:
        """Compile the code of a line: its statements, and its last expression if it ends with one."""
        transformed = self.shell.transform_cell(code)
        file = self.shell.compile.cache(transformed, raw_code=code)
        tree = self.shell.transform_ast(self.shell.compile.ast_parse(transformed, filename=file))
        last = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        try:
            value = None if last is None else self.shell.compile(ast.Expression(last), file, "eval")
            return self.shell.compile(tree, file, "exec"), value
        except SyntaxError as error:
            if "'await' outside" in str(error):
                raise UsageError("A line cannot await; put %%tfprofile over the cell instead.") from None
            raise

    def _load(self, run: _Run) -> None:
        """Make the report and bind it; failing, keep why."""
        session = run.session
        run.failure = "it was interrupted."
        try:
            run.report = session.load(keep=True).as_asked(**run.asked)
            run.failure = None
        except (CaptureError, ValueError) as error:
            run.failure = str(error)
        except Exception as error:  # noqa: BLE001 - the cell's own result must not suffer
            session.leave()
            run.failure = (
                f"making it failed with {describe_error(error)}. What was captured is kept until tfprof_widgets.recover() "
                "opens it; with --logdir DIR it stays in DIR for good."
            )
        finally:
            for name in run.names:
                # An older report under that name would be taken for this one.
                self.shell.user_ns.pop(name, None)
                if run.report is not None:
                    self.shell.user_ns[name] = run.report

    def _cell_ended(self, result: ExecutionResult | None) -> None:
        """After every execution: finish and display what belongs to it."""
        for run in [run for run in self._to_display if run.ends_with(result)]:
            self._to_display.remove(run)
            self._show(run)
        run_now = self._run
        if run_now is None or not run_now.ends_with(result):
            return
        self._run = None
        error = None if result is None else (result.error_in_exec or result.error_before_exec)
        run_now.session.error = None if error is None else describe_error(error)
        self._unhook_traceback()
        run_now.session.end_soon()
        self._show(run_now)

    def _show(self, run: _Run) -> None:
        """Wait for the profiler, make the report and display it, and say meanwhile what is being done."""
        progress = Progress(self.shell)
        try:
            if run.report is None and run.failure is None:
                if not run.quiet:
                    progress.say("tfprofile: the profiler is stopping …")
                # It takes the time it takes; an interrupt doesn't make it shorter.
                with contextlib.suppress(KeyboardInterrupt):
                    run.session.stop()
                if not run.quiet and run.session.size_bytes:
                    progress.say(f"tfprofile: reading the profile, {run.session.size_bytes / 1e6:.1f} MB …")
                self._load(run)
            if run.report is not None:
                from .comparison.rerun import remember

                remember(run.report, cell=run.cell, baseline=run.baseline, shown=run.compared and not run.quiet)
            if run.report is None:
                progress.fail(f"tfprofile: no report of {run.session.name}: {run.failure}")
            elif not run.quiet:
                progress.say(f"tfprofile: making the report of {_size(run.report)} …")
                progress.become(run.report)
        except KeyboardInterrupt:
            there = f"{VARIABLE} shows it" if run.report else "tfprof_widgets.recover() opens what was captured"
            progress.fail(f"tfprofile: interrupted while the report of {run.session.name} was made; {there}.")
        finally:
            run.session.discard()

    def _hook_traceback(self) -> None:
        """Stop the profiler before IPython formats a traceback.

        That takes its time, and a Python trace would be full of it. There is no event for it, so the method is
        replaced on the shell until the profiler stops.
        """
        shell = self.shell
        attributes = vars(shell)
        before = attributes.get("showtraceback")
        original = shell.showtraceback

        def showtraceback(*arguments: Any, **keywords: Any) -> Any:
            if keywords.get("running_compiled_code"):  # it is the cell's own, not one that other code shows
                self.end()
            return original(*arguments, **keywords)

        def unhook() -> None:
            if attributes.get("showtraceback") is showtraceback:
                if before is None:
                    del attributes["showtraceback"]
                else:
                    attributes["showtraceback"] = before

        attributes["showtraceback"] = showtraceback
        self._unhook_traceback = unhook

    def hook(self) -> None:
        """Put the transformers and the event in the shell's lists."""
        self.shell.register_magics(self)
        self.shell.input_transformers_cleanup.append(self._transform)
        self.shell.ast_transformers.append(self._last_value)
        self.shell.events.register("post_run_cell", self._cell_ended)

    def unhook(self) -> None:
        """Take everything out of the shell again; a cell that is being profiled ends first."""
        if self._run is not None:
            self._cell_ended(self._run.execution)
        self.shell.magics_manager.registry.pop("ProfileMagics", None)
        for kind in ("line", "cell"):
            self.shell.magics_manager.magics[kind].pop("tfprofile", None)
        for entries, entry in (
            (self.shell.input_transformers_cleanup, self._transform),
            (self.shell.ast_transformers, self._last_value),
        ):
            if entry in entries:
                entries.remove(entry)
        if self._cell_ended in self.shell.events.callbacks["post_run_cell"]:
            self.shell.events.unregister("post_run_cell", self._cell_ended)


class _CellTransformer:
    """Turns the line ``%%tfprofile OPTIONS`` at the top of a cell into ``%tfprofile OPTIONS``."""

    # IPython leaves such transformers out when it asks whether a typed cell is complete.
    has_side_effects = True

    def __init__(self, profiles_rest: Callable[[str], bool]) -> None:
        self._profiles_rest = profiles_rest

    def __call__(self, lines: list[str]) -> list[str]:
        head = re.match(r"%%tfprofile(?:[ \t]+(.*))?$", lines[0].rstrip()) if lines else None
        rest = lines[1:]
        if head is None or not "".join(rest).strip():
            return lines
        options = (head[1] or "").strip()
        if not self._profiles_rest(options):
            return lines  # the magic itself then says what is wrong
        # Another cell magic below is no longer at the top, where IPython looks for it.
        return [f"get_ipython().run_line_magic('tfprofile', {options!r})\n", *cell_magic(self(rest))]


class _LastValueTransformer:
    """Stops the profiler between the last value of a profiled cell and its display."""

    def __init__(self, code_of: Callable[[str], str | None]) -> None:
        self._code_of = code_of

    def visit(self, module: ast.Module) -> ast.Module:
        last = module.body[-1] if module.body else None
        if isinstance(last, ast.Expr) and any(self._begins(statement) for statement in module.body[:-1]):
            end = ast.parse(f"__import__({__name__!r}, fromlist=['end']).end(0)", mode="eval").body
            assert isinstance(end, ast.Call)
            for node in ast.walk(end):
                ast.copy_location(node, last.value)
            end.args = [last.value]
            last.value = end
        return module

    def _begins(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Expr(
                ast.Call(
                    ast.Attribute(ast.Call(ast.Name("get_ipython")), "run_line_magic"),
                    [ast.Constant("tfprofile"), ast.Constant(str(line))],
                )
            ):
                # IPython drops a transformer that raises, for all cells to come.
                return self._code_of(line) == ""
        return False


def end(value: Any) -> Any:
    """Stop the profiler of the current cell and return its last value unchanged."""
    magics = _registered(get_ipython())
    if magics is not None:
        magics.end()
    return value


def install(shell: InteractiveShell) -> None:
    """Register the magics with a shell, in place of an earlier registration."""
    uninstall(shell)
    ProfileMagics(shell).hook()


def uninstall(shell: InteractiveShell) -> None:
    """Remove the magics from a shell."""
    magics = _registered(shell)
    if magics is not None:
        magics.unhook()


def _registered(shell: InteractiveShell) -> ProfileMagics | None:
    # Asked from the shell, and by name, so that a reloaded module finds the magics of the old one.
    return shell.magics_manager.registry.get("ProfileMagics")


def _asked(options: Any) -> dict[str, Any]:
    """Return what is asked of the report; see `Report.as_asked`."""
    return {"max_mb": options.max_mb, "anonymize": options.anonymize}


def _size(report: Report) -> str:
    events = sum(host.trace.space.n_events for host in report.hosts)
    return f"{events:,} event{'' if events == 1 else 's'}"


def _has_variables(value: str) -> bool:
    return "{" in value or "$" in value


def _filled(value: str, variables: dict[str, Any]) -> str:
    """Return an option's value with the notebook's variables in it; as it is if that can't be done, as IPython does."""
    if not _has_variables(value):
        return value
    with contextlib.suppress(Exception):
        return str(DollarFormatter().vformat(value, [], variables))
    return value


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
