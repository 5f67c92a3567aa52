"""``%%tfprofile`` as users meet it: in a real kernel, with real TensorFlow."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from in_kernel import ASSERT_NO_SESSION, Kernel, interrupt, start_kernel

if importlib.util.find_spec("tensorflow") is None:  # not imported here: only kernels need it
    pytest.skip("needs TensorFlow", allow_module_level=True)

pytestmark = [pytest.mark.notebook, pytest.mark.tensorflow]


def test_loading_the_extension_is_quick_and_imports_nothing_big(kernel):
    assert float(kernel.load_s) < 0.5
    assert kernel.loaded.strip() == "[]"


def test_a_training_cell_runs_as_ever_and_the_report_is_below_its_value(kernel):
    cell = kernel.run(
        "%%tfprofile\n"
        "model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "print('before the fit')\n"
        "history = model.fit(tf.ones((64, 16)), tf.ones((64, 1)), batch_size=8, epochs=2, verbose=0)\n"
        "len(history.history['loss'])"
    )
    assert cell.error is None
    assert cell.kinds == ["stream", "execute_result", "display_data"]
    assert cell.stdout == "before the fit\n"
    assert cell.value == "2"
    assert len(cell.reports) == 1
    count = cell.node.execution_count
    assert kernel.evaluate(f"Out[{count}]") == 2
    assert kernel.evaluate("len(tfprof_report.steps)") == 2 * 64 // 8
    assert kernel.evaluate("tfprof_report.capture.name") == f"In [{count}]"
    assert kernel.evaluate("tfprof_report.capture.source").endswith("len(history.history['loss'])")
    assert kernel.evaluate("tfprof_report.capture.tensorflow_version == tf.__version__")
    assert kernel.evaluate("tfprof_report.capture.keras_version == keras.__version__")
    assert kernel.evaluate("type(history).__name__") == "History"


def test_an_exception_shows_its_own_traceback_once_then_the_report(kernel):
    cell = kernel.run("%%tfprofile\nb = a @ a\n\ndef fail():\n    return 1 / 0\n\nfail()\nnever = 1")
    assert cell.kinds == ["error", "display_data"]
    name, traceback = cell.error
    assert name == "ZeroDivisionError"
    assert re.search(r"line 7\b", traceback)
    assert re.search(r"line 5, in fail", traceback)
    assert "tfprof_widgets" not in traceback
    assert "hidden" not in traceback
    assert "ZeroDivisionError: division by zero" in cell.reports[0]
    assert kernel.evaluate("tfprof_report.capture.error") == "ZeroDivisionError: division by zero"
    assert kernel.evaluate("b.shape[0]") == 64
    assert kernel.evaluate("'never' in globals()") is False
    assert kernel.evaluate("'MatMul' in str(set(tfprof_report.events.name))")
    # What was put on the shell for the time of the capture is gone.
    assert kernel.evaluate("'showtraceback' in vars(get_ipython())") is False


def test_formatting_the_traceback_is_not_captured(kernel):
    kernel.run("class Slow(Exception):\n    def __str__(self):\n        time.sleep(0.3)\n        return 'slow to say'")
    cell = kernel.run("%%tfprofile\nb = a @ a\nraise Slow")
    assert cell.error[0] == "Slow"
    assert kernel.evaluate("tfprof_report.capture.duration_s < 0.3")


def test_displaying_the_value_is_not_captured(kernel):
    kernel.run("class Slow:\n    def __repr__(self):\n        time.sleep(0.3)\n        return 'slow to say'")
    cell = kernel.run("%%tfprofile\nb = a @ a\nSlow()")
    assert cell.value == "slow to say"
    assert kernel.evaluate("tfprof_report.capture.duration_s < 0.3")


def test_python_calls_are_recorded_or_said_to_be_missing(kernel):
    cell = kernel.run("%%tfprofile --python\ndef a_function():\n    return a @ a\n\nb = a_function()")
    recorded = kernel.evaluate("'a_function' in str(set(tfprof_report.events.name))")
    assert recorded != ("TensorFlow ignored" in cell.reports[0])


def test_an_interrupt_keeps_what_was_captured(kernel):
    interrupt(kernel, after_s=0.7)
    cell = kernel.run("%%tfprofile\nwhile True:\n    b = a @ a\n    time.sleep(0.01)\n")
    assert cell.kinds == ["error", "display_data"]
    name, traceback = cell.error
    assert name == "KeyboardInterrupt"
    assert "tfprof_widgets" not in traceback
    assert "KeyboardInterrupt" in cell.reports[0]
    assert kernel.evaluate("0.1 < tfprof_report.capture.duration_s < 5")
    assert kernel.evaluate("'MatMul' in str(set(tfprof_report.events.name))")


def test_an_interrupt_of_an_awaiting_cell(kernel):
    interrupt(kernel, after_s=0.7)
    # Short, as ipykernel 7 lets the running sleep end before it cancels the cell, with the magic and without.
    cell = kernel.run("%%tfprofile\nimport asyncio\nb = a @ a\nawait asyncio.sleep(2)\nnot_reached = 1")
    assert cell.kinds == ["error", "display_data"]
    assert cell.error[0] == "CancelledError"
    assert "CancelledError" in cell.reports[0]
    assert kernel.evaluate("'not_reached' in globals()") is False


def test_await_at_the_top_level(kernel):
    cell = kernel.run(
        "%%tfprofile\nimport asyncio\nawait asyncio.sleep(0.05, a @ a)\nawait asyncio.sleep(0.01, 'slept')"
    )
    assert cell.error is None
    assert cell.kinds == ["execute_result", "display_data"]
    assert cell.value == "'slept'"
    assert kernel.evaluate("tfprof_report.capture.duration_s > 0.05")


def test_magics_and_shell_commands_inside(kernel):
    cell = kernel.run(
        "%%tfprofile\n!echo from the shell\nfiles = !echo one\n%time b = a @ a\nsquare = %sx echo two\nprint(files, square)"
    )
    assert cell.error is None
    assert "from the shell" in cell.stdout
    assert "Wall time" in cell.stdout
    assert "['one'] ['two']" in cell.stdout
    assert len(cell.reports) == 1


@pytest.mark.parametrize("first", ["%%tfprofile\n%%time\n", "%%time\n%%tfprofile\n"])
def test_time_in_either_order(kernel, first):
    cell = kernel.run(f"{first}b = a @ a\n'the value'")
    assert cell.error is None
    assert cell.kinds == ["stream", "execute_result", "display_data"]
    assert "Wall time" in cell.stdout
    assert cell.value == "'the value'"
    assert kernel.evaluate("'MatMul' in str(set(tfprof_report.events.name))")


def test_captured_output_holds_the_report(kernel):
    cell = kernel.run("%%capture captured\n%%tfprofile\nb = a @ a\nprint('inside')")
    assert cell.error is None
    assert not cell.outputs
    assert kernel.evaluate("captured.stdout") == "inside\n"
    assert kernel.evaluate("['text/html' in output.data for output in captured.outputs]") == [True]


def test_a_nested_run_cell_does_not_end_the_profile(kernel):
    cell = kernel.run("%%tfprofile\nnested = get_ipython().run_cell('1 + 1')\nb = tf.linalg.inv(a + tf.eye(64))")
    assert cell.error is None
    assert len(cell.reports) == 1
    assert kernel.evaluate("'MatrixInverse' in str(set(tfprof_report.events.name))")


def test_a_line_keeps_its_value(kernel):
    cell = kernel.run('%tfprofile --name "One line" (a @ a).shape[0]')
    assert cell.kinds == ["execute_result", "display_data"]
    assert cell.value == "64"
    assert kernel.evaluate("tfprof_report.capture.name") == "One line"
    assigned = kernel.run("size = %tfprofile (a @ a).shape[1]\nprint(size, tfprof_report.capture.source)")
    assert assigned.stdout == "64 (a @ a).shape[1]\n"
    assert len(assigned.reports) == 1


def test_a_line_that_fails(kernel):
    cell = kernel.run("x = 1\n%tfprofile (a @ a).shape[0] / 0\nx = 2")
    assert cell.kinds == ["error", "display_data"]
    assert cell.error[0] == "ZeroDivisionError"
    assert "tfprof_widgets" not in cell.error[1]
    assert kernel.evaluate("x") == 1


def test_quiet_and_as(kernel):
    cell = kernel.run("%%tfprofile --quiet --as mine\nb = a @ a\n3")
    assert cell.kinds == ["execute_result"]
    assert kernel.evaluate("mine is tfprof_report and 'MatMul' in str(set(mine.events.name))")


def test_a_stale_session_is_stopped_saved_and_noted(kernel, tmp_path):
    kernel.run(f"tf.profiler.experimental.start({str(tmp_path)!r})")
    cell = kernel.run("%%tfprofile\nb = a @ a\n4")
    assert cell.value == "4"
    assert "was still running" in cell.reports[0]
    assert kernel.evaluate("'MatMul' in str(set(tfprof_report.events.name))")
    assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 1


def test_a_session_stopped_inside_the_cell(kernel):
    cell = kernel.run("%%tfprofile\nb = a @ a\ntf.profiler.experimental.stop()\n5")
    assert cell.value == "5"
    assert "stopped the profiler" in cell.reports[0]


def test_logdir_keeps_every_run_where_tensorboard_looks(kernel, tmp_path):
    for _ in range(2):
        assert kernel.run(f"%%tfprofile --quiet --logdir {tmp_path}\nb = a @ a").error is None
    assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 2
    assert [child.name for child in tmp_path.iterdir()] == ["plugins"]
    assert Path(kernel.evaluate("str(tfprof_report.capture.run_dir)")).parent == tmp_path / "plugins" / "profile"


def test_wrong_options_stop_the_cell_before_it_runs(kernel):
    for options in ("--nonsense", "--host-level 9", "--as 1x", "a @ a", "--logdir /proc/nowhere"):
        kernel.run("ran = False")
        cell = kernel.run(f"%%tfprofile {options}\nran = True")
        assert cell.text.startswith("UsageError: ") or cell.error[0] == "UsageError"
        assert not cell.reports
        assert kernel.evaluate("ran") is False


def test_the_context_manager(kernel):
    cell = kernel.run(
        "import tfprof_widgets as tfprof\nwith tfprof.profile(name='block') as p:\n    b = a @ a\np.report.capture.name"
    )
    assert cell.value == "'block'"
    failing = kernel.run("with tfprof.profile() as p:\n    b = a @ a\n    1 / 0")
    assert failing.error[0] == "ZeroDivisionError"
    assert kernel.evaluate("p.report.capture.error") == "ZeroDivisionError: division by zero"


def test_reloading_does_not_register_twice(kernel):
    kernel.run("%reload_ext tfprof_widgets\n%load_ext tfprof_widgets")
    cell = kernel.run("%%tfprofile\nb = a @ a\n6")
    assert cell.kinds == ["execute_result", "display_data"]


def test_twenty_runs_leave_nothing(kernel):
    for number in range(20):
        cell = kernel.run(f"%%tfprofile --quiet\nb = a @ a\n{'1 / 0' if number % 3 == 0 else number}")
        assert (cell.error is not None) == (number % 3 == 0)
    assert kernel.run(ASSERT_NO_SESSION).error is None


def test_without_tensorflow_nothing_is_run_and_the_install_line_is_shown(tmp_path):
    client, running = start_kernel(tmp_path)
    with running:
        kernel = Kernel(client)
        # How Python says that a module must not be imported; a missing one raises the same error.
        kernel.run("import sys\nsys.modules['tensorflow'] = None\n%load_ext tfprof_widgets\nran = False")
        cell = kernel.run("%%tfprofile\nran = True")
        assert 'pip install "tfprof_widgets[tensorflow]"' in cell.text
        assert kernel.evaluate("ran") is False
        assert not cell.reports
        assert kernel.evaluate("'pandas' in sys.modules") is False
