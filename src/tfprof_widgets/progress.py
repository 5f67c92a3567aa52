"""One line that says what is being done, and is replaced by what comes of it.

In a notebook it is an output of its own, updated in place, so that the saved notebook has the result and nothing else. In a
terminal it is a line that is written over. Where outputs are being captured there is none, nor in an `ipywidgets.Output`,
which can't change what it has shown.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from IPython.core.interactiveshell import InteractiveShell
    from IPython.display import DisplayHandle


class Progress:
    """What is being done now, in one line.

    Parameters
    ----------
    shell
        The shell whose user waits.
    """

    def __init__(self, shell: InteractiveShell | None) -> None:
        from IPython.core.displaypub import CapturingDisplayPublisher

        captured = isinstance(getattr(shell, "display_pub", None), CapturingDisplayPublisher)
        in_kernel = getattr(shell, "kernel", None) is not None
        self.in_notebook = in_kernel and not captured and not _in_output_widget()
        self._in_terminal = not in_kernel and not captured and sys.stderr.isatty()
        self._handle: DisplayHandle | None = None
        self._width = 0

    def say(self, words: str) -> None:
        """Show the line, in place of an earlier one."""
        if self.in_notebook:
            self._show(_line(words), raw=True)
        elif self._in_terminal:
            sys.stderr.write(f"\r{words.ljust(self._width)}")
            sys.stderr.flush()
            self._width = len(words)

    def become(self, result: Any) -> None:
        """Show a result in place of the line."""
        self._wipe()
        with _one_line():
            self._show(result, raw=False)

    def fail(self, words: str) -> None:
        """Show what went wrong in place of the line."""
        self._wipe()
        if self._handle is not None:
            self._show(_line(words, opacity=1), raw=True)
        else:
            sys.stderr.write(f"{words}\n")

    def end(self, words: str) -> None:
        """Say in place of the line, where there is one, that nothing came of it; why is told elsewhere."""
        self._wipe()
        if self._handle is not None:
            self._show(_line(words), raw=True)

    def _wipe(self) -> None:
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0

    def _show(self, what: Any, *, raw: bool) -> None:
        from IPython.display import display

        if self._handle is not None:
            self._handle.update(what, raw=raw)
        elif self.in_notebook:
            self._handle = display(what, raw=raw, display_id=True)
        else:
            display(what, raw=raw)


def show_long(result: Any, words: str) -> None:
    """Show in a notebook what takes long to make, and in its place meanwhile a line that says so.

    Parameters
    ----------
    result
        What is shown. Its own ``_ipython_display_`` may call this.
    words
        What is being done.

    Raises
    ------
    NotImplementedError
        If this is no place for a line, or there is one already: IPython then shows the result as it shows all else.
    """
    ipython = sys.modules.get("IPython")
    progress = Progress(ipython.get_ipython() if ipython is not None else None)
    if _shown or not progress.in_notebook or not _is_displayed():
        raise NotImplementedError
    try:
        progress.say(words)
        progress.become(result)
    except BaseException:
        progress.end("Nothing is shown: the display ended early.")
        raise


# Whether a line is turning into a result now, whose display needs none of its own.
_shown = False


@contextmanager
def _one_line() -> Iterator[None]:
    global _shown
    before, _shown = _shown, True
    try:
        yield
    finally:
        _shown = before


# Where IPython's `display` and a cell's last value come from; `display` was in `display` before version 7.23.
_DISPLAYS = {"IPython.core.display", "IPython.core.display_functions", "IPython.core.displayhook"}


def _is_displayed() -> bool:
    """Whether IPython formats something to display it in the cell, and not for others who put it somewhere else.

    Such are ``Output.append_display_data`` and a front end that asks for an expression; IPython tells them apart by nothing else.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "format" and frame.f_globals.get("__name__") == "IPython.core.formatters":
            caller = frame.f_back
            return caller is not None and caller.f_globals.get("__name__") in _DISPLAYS
        frame = frame.f_back
    return False


def _in_output_widget() -> bool:
    """Whether an ``ipywidgets.Output`` takes what is displayed now."""
    ipywidgets = sys.modules.get("ipywidgets")
    if ipywidgets is None:
        return False
    widgets = list(getattr(ipywidgets.widgets.widget, "_instances", {}).values())
    return any(isinstance(widget, ipywidgets.Output) and widget.msg_id for widget in widgets)


def _line(words: str, opacity: float = 0.75) -> dict[str, str]:
    from html import escape

    # As wide as the report's own text; the theme's colours, where there are any.
    style = f"font-family: var(--jp-ui-font-family, sans-serif); opacity: {opacity}; padding: 4px 0"
    return {"text/plain": words, "text/html": f'<div class="tfprof-progress" style="{style}">{escape(words)}</div>'}
