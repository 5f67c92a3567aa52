"""A kernel to run cells in, and what the tests ask of a cell that has run."""

from __future__ import annotations

import ast
import os
import re
import signal
import threading
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ANSI = re.compile(r"\x1b\[[0-9;]*m")

# What tells whether TensorFlow has a session: starting one. Not the magic itself, which would recover.
ASSERT_NO_SESSION = """
tf.profiler.experimental.start(scratch)
tf.profiler.experimental.stop(save=False)
"""


class Cell:
    """An executed cell."""

    def __init__(self, node):
        self.node = node
        self.outputs = node.outputs

    @property
    def kinds(self) -> list[str]:
        return [output.output_type for output in self.outputs]

    @property
    def text(self) -> str:
        """What the cell printed, both streams."""
        return "".join(output.text for output in self.outputs if output.output_type == "stream")

    @property
    def stdout(self) -> str:
        return "".join(output.text for output in self.outputs if output.get("name") == "stdout")

    @property
    def value(self) -> str | None:
        """The text of the cell's Out[n]."""
        values = [output.data["text/plain"] for output in self.outputs if output.output_type == "execute_result"]
        assert len(values) < 2
        return values[0] if values else None

    @property
    def message(self) -> str:
        """What is shown in the place of a report that could not be made."""
        bundles = [output.data for output in self.outputs if output.output_type == "display_data"]
        return "".join(b["text/plain"] for b in bundles if "tfprof-progress" in b.get("text/html", ""))

    @property
    def error(self):
        """The one error output, with its traceback as plain text; None if there is none."""
        errors = [output for output in self.outputs if output.output_type == "error"]
        assert len(errors) < 2, "the traceback is shown once"
        if not errors:
            return None
        return errors[0].ename, ANSI.sub("", "\n".join(errors[0].traceback))

    @property
    def reports(self) -> list[str]:
        """The texts of the displayed reports."""
        bundles = [output.data for output in self.outputs if output.output_type == "display_data"]
        return [bundle["text/plain"] for bundle in bundles if "tfprof-report" in bundle.get("text/html", "")]


class Kernel:
    def __init__(self, client: NotebookClient):
        self.client = client

    def run(self, source: str) -> Cell:
        cell = nbformat.v4.new_code_cell(source)
        cells = self.client.nb.cells
        cells.append(cell)
        return Cell(self.client.execute_cell(cell, len(cells) - 1))

    def evaluate(self, expression: str):
        """The value of an expression of literals."""
        cell = self.run(f"print(repr(({expression})))")
        assert cell.error is None, cell.error
        return ast.literal_eval(cell.stdout)


def start_kernel(temporary: Path):
    """A client whose kernel keeps its temporary files where the test sees them."""
    client = NotebookClient(nbformat.v4.new_notebook(), kernel_name="python3", allow_errors=True, timeout=120)
    environment = dict(os.environ, TMPDIR=str(temporary), TF_CPP_MIN_LOG_LEVEL="3", PYTHONWARNINGS="default")
    return client, client.setup_kernel(env=environment)


def interrupt(kernel, after_s):
    """Send the kernel the signal that a notebook's stop button sends."""
    pid = kernel.evaluate("os.getpid()")
    threading.Timer(after_s, os.kill, (pid, signal.SIGINT)).start()
