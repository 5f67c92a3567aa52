"""CUPTI's complaints in TensorFlow's log, in a real kernel: there the descriptor leads to Jupyter already."""

from __future__ import annotations

import importlib.util
import os

import nbformat
import pytest
from nbclient import NotebookClient

from generate.log_lines import SUBSCRIBE

if importlib.util.find_spec("tensorflow") is None:  # only the kernel needs it
    pytest.skip("needs TensorFlow", allow_module_level=True)

pytestmark = [pytest.mark.notebook, pytest.mark.tensorflow]

COMPLAINT = f"{SUBSCRIBE}CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
# A build for GPUs, whose device tracer complains when the profiler starts.
SETUP = f"""
%load_ext tfprof_widgets
import os, sys
import tensorflow as tf

build = tf.sysconfig.get_build_info()
tf.sysconfig.get_build_info = lambda: {{**build, "is_cuda_build": True}}
start = tf.profiler.experimental.start

def complaining(*arguments, **keywords):
    os.write(2, {COMPLAINT!r}.encode() + b"\\n")
    return start(*arguments, **keywords)

tf.profiler.experimental.start = complaining
"""
CELL = """
%%tfprofile
os.write(2, b"from below\\n")
print("from above", file=sys.stderr)
tf.reduce_sum(tf.ones((10, 10)))
"""


def test_the_report_tells_what_the_log_says_and_the_user_still_sees_it():
    notebook = nbformat.v4.new_notebook()
    client = NotebookClient(notebook, timeout=120)

    def run(source: str):
        notebook.cells.append(nbformat.v4.new_code_cell(source))
        return client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)

    # Under pytest's own variable a kernel doesn't lead the descriptor to the notebook.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    with client.setup_kernel(env=environment):
        run(SETUP)
        outputs = run(CELL.lstrip()).outputs
        notes = run("print(*tfprof_report.notes, sep='\\n')").outputs[0].text
        run("%%tfprofile\ntf.reduce_sum(tf.ones((10, 10)))")
        quiet = run("os.write(2, b'afterwards\\n'); None").outputs
    said = "".join(output.text for output in outputs if output.get("name") == "stderr")
    for line in (COMPLAINT, "from below", "from above"):
        assert said.count(line) == 1
    assert "--privileged=true" in notes
    assert COMPLAINT in notes
    assert "".join(output.text for output in quiet if output.get("name") == "stderr") == "afterwards\n"
