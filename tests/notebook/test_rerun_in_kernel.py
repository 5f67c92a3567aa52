"""A cell that is run again in a kernel: its report says how it did against the run before."""

from __future__ import annotations

import importlib.util
import re

import pytest

if importlib.util.find_spec("tensorflow") is None:  # not imported here: only the kernel needs it
    pytest.skip("needs TensorFlow", allow_module_level=True)
pytest.importorskip("nbclient")

from in_kernel import Kernel, start_kernel

pytestmark = [pytest.mark.notebook, pytest.mark.tensorflow]

SETUP = """
import tensorflow as tf
import tfprof_widgets as tfprof
%load_ext tfprof_widgets
a = tf.random.normal((128, 128))

@tf.function
def a_step(a):
    return a @ a

a_step(a)
"""
# A step and what a change of the code adds to it.
CELL = """%%tfprofile {options}
for i in range(30):
    with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
        for _ in range({times}):
            result = a_step(a)
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    client, manager = start_kernel(tmp_path_factory.mktemp("kernel"))
    with manager:
        kernel = Kernel(client)
        assert kernel.run(SETUP).error is None
        yield kernel


def run(kernel: Kernel, options: str = "", times: int = 2) -> str:
    """Run the cell and return its report's text."""
    cell = kernel.run(CELL.format(options=options, times=times))
    assert cell.error is None, cell.error
    (text,) = cell.reports
    return text


def against(text: str) -> tuple[str, str]:
    """What a report was compared with, and what it says of that."""
    found = re.search(r"^Against (\S.*?)  +(.*)$", text, re.MULTILINE)
    return (found[1], found[2]) if found else ("", "")


def test_a_cell_that_is_run_again_is_compared_with_the_run_before(kernel):
    first = run(kernel)
    assert against(first) == ("", "")
    slower = run(kernel, times=40)
    name, said = against(slower)
    assert name == re.match(r"In \[\d+\]", first)[0]
    assert re.match(r"Step .* → .* ms, .*× slower, mostly ", said)
    assert kernel.evaluate("[tab['id'] for tab in tfprof_report.payload.tabs][-1]") == "compared"
    link = kernel.evaluate("tfprof_report.payload.head['answer']['links'][0]")
    assert link == {"label": f"See the comparison with {name}", "href": "tool:compared"}


def test_a_baseline_is_a_variable_or_a_run_of_the_history(kernel):
    run(kernel, "--as kept --name kept-run --no-compare")
    assert against(run(kernel, "--baseline kept", times=40))[0] == "kept-run"
    assert against(run(kernel, "--baseline kept-run", times=40))[0] == "kept-run"
    assert "kept-run" in kernel.evaluate("tfprof.history()['run'].tolist()")
    assert kernel.evaluate("tfprof.history('kept-run') is kept") is True


def test_a_slip_in_the_baselines_name_costs_no_run(kernel):
    cell = kernel.run(CELL.format(options="--baseline nothing", times=1) + "ran = True\n")
    assert "no run is called 'nothing'; there is 'In [" in cell.text + str(cell.error)
    assert kernel.evaluate("'ran' in globals()") is False


def test_no_compare_and_quiet_say_nothing_and_are_remembered(kernel):
    before = kernel.evaluate("len(tfprof.history())")
    assert against(run(kernel, "--no-compare")) == ("", "")
    assert kernel.run(CELL.format(options="--quiet", times=1)).reports == []
    assert kernel.evaluate("len(tfprof.history())") == before + 2
    assert kernel.evaluate("tfprof_report._compared is None") is True


def test_other_code_is_another_cell(kernel):
    cell = kernel.run("%%tfprofile\nb = tf.reduce_sum(tf.random.normal((64, 64)))\nprint('a cell of its own')")
    assert against(cell.reports[0]) == ("", "")


def test_lines_are_compared_too(kernel):
    kernel.run("%tfprofile [a_step(a) for _ in range(20)];")
    cell = kernel.run("%tfprofile [a_step(a) for _ in range(21)];")
    assert against(cell.reports[0])[0].startswith("In [")


def run_as(kernel: Kernel, cell_id: str, source: str) -> None:
    """Run code as JupyterLab does, which tells the cell's id."""
    kc = kernel.client.kc
    content = {
        "code": source,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }
    message = kc.session.msg("execute_request", content, metadata={"cellId": cell_id})
    kc.shell_channel.send(message)
    # The next cell is answered after this one.
    assert kernel.evaluate("True") is True


def test_a_cell_that_was_rewritten_is_still_the_same_cell(kernel):
    run_as(kernel, "one", "%%tfprofile --name first\nfor i in range(20): a_step(a)")
    run_as(kernel, "two", "%%tfprofile --name other\nfor i in range(20): a_step(a)")
    assert kernel.evaluate("tfprof_report._compared is None") is True
    run_as(kernel, "one", "%%tfprofile --name again\nc = tf.linalg.inv(a)\nprint(c.shape, 'nothing is as it was')")
    assert kernel.evaluate("tfprof_report.title") == "again"
    assert kernel.evaluate("tfprof_report._compared.fact['label']") == "Against first"
