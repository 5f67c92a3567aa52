"""One line that says what is being done, and is replaced by what comes of it.

In a notebook it is an output of its own, updated in place, so that the saved notebook has the result and nothing else. In a
terminal it is a line that is written over. Where outputs are being captured there is none.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
        self._in_notebook = getattr(shell, "kernel", None) is not None and not captured
        self._in_terminal = not self._in_notebook and not captured and sys.stderr.isatty()
        self._handle: DisplayHandle | None = None
        self._width = 0

    def say(self, words: str) -> None:
        """Show the line, in place of an earlier one."""
        if self._in_notebook:
            self._show(_line(words), raw=True)
        elif self._in_terminal:
            sys.stderr.write(f"\r{words.ljust(self._width)}")
            sys.stderr.flush()
            self._width = len(words)

    def become(self, result: Any) -> None:
        """Show a result in place of the line."""
        self._wipe()
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
        elif self._in_notebook:
            self._handle = display(what, raw=raw, display_id=True)
        else:
            display(what, raw=raw)


def _line(words: str, opacity: float = 0.75) -> dict[str, str]:
    from html import escape

    # As wide as the report's own text; the theme's colours, where there are any.
    style = f"font-family: var(--jp-ui-font-family, sans-serif); opacity: {opacity}; padding: 4px 0"
    return {"text/plain": words, "text/html": f'<div class="tfprof-progress" style="{style}">{escape(words)}</div>'}
