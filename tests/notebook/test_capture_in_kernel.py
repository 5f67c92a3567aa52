"""Every way to capture in this process, and every way in which it can be cut short, in a real kernel."""

from __future__ import annotations

import importlib.metadata
import importlib.util

import pytest
from nbclient.exceptions import DeadKernelError

from in_kernel import ASSERT_NO_SESSION, Kernel, interrupt, start_kernel

if importlib.util.find_spec("tensorflow") is None:  # not imported here: only kernels need it
    pytest.skip("needs TensorFlow", allow_module_level=True)

pytestmark = [pytest.mark.notebook, pytest.mark.tensorflow]

SET_UP = """
import gc, threading, subprocess
import tfprof_widgets as tfprof
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x, y = tf.ones((256, 16)), tf.ones((256, 1))
batches = tf.data.Dataset.from_generator(
    lambda: (tf.ones((64, 64)) for _ in range(12)), output_signature=tf.TensorSpec((64, 64))
)

@tf.function
def a_step(a):
    return tf.reduce_sum(a @ a)

result = a_step(tf.ones((64, 64)))

def names():
    return str(set(tfprof_report.events.name))
"""


@pytest.fixture(scope="module")
def set_up(shared_kernel):
    assert shared_kernel.run(SET_UP).error is None


@pytest.fixture
def kernel(kernel, set_up):
    return kernel


def test_the_kernel_has_the_tensorflow_of_these_tests(kernel):
    assert kernel.evaluate("tf.__version__") in [
        v for name in ("tensorflow", "tensorflow-cpu") for v in _versions(name)
    ]


def _versions(name: str) -> list[str]:
    try:
        return [importlib.metadata.version(name)]
    except importlib.metadata.PackageNotFoundError:
        return []


# ---- a window of the cell --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("model.fit(x, y, batch_size=8, epochs=2, verbose=0)", "train"),
        ("model.evaluate(x, y, batch_size=8, verbose=0)", "test"),
        ("model.predict(x, batch_size=8, verbose=0)", "predict"),
        ("for _ in range(20): model.train_on_batch(x[:8], y[:8])", "train"),
        ("for _ in range(20): model.test_on_batch(x[:8], y[:8])", "test"),
        ("for _ in range(20): model.predict_on_batch(x[:8])", "predict"),
        ("for batch in tfprof.step(batches): a_step(batch)", "train"),
        ("for i, batch in enumerate(batches):\n    with tfprof.step(i, kind='mine'): a_step(batch)", "mine"),
    ],
)
def test_some_steps_of_a_cell(kernel, code, kind):
    cell = kernel.run(f"%%tfprofile --quiet --warmup 2 --steps 1:8\n{code}")
    assert cell.error is None
    assert not cell.text
    assert kernel.evaluate("len(tfprof_report.steps)") == 7
    assert kernel.evaluate("sorted(set(tfprof_report.steps.kind))") == [kind]
    assert kernel.evaluate("'batch_begin' in str(keras.callbacks.CallbackList.on_train_batch_begin.__qualname__)")


def test_some_steps_of_a_cell_that_awaits(kernel):
    cell = kernel.run(
        "%%tfprofile --quiet --steps 1:3\nimport asyncio\n"
        "for i in tfprof.step(range(5)):\n    result = a_step(a)\n    await asyncio.sleep(0.001)\ni"
    )
    assert cell.value == "4"
    assert kernel.evaluate("len(tfprof_report.steps)") == 2


def test_marks_leave_the_number_of_steps_as_it_is(kernel):
    counts, means = [], []
    for loop in (
        "for batch in batches: a_step(batch)",
        "for i, batch in enumerate(batches):\n    with tfprof.step(i): a_step(batch)",
        "for batch in tfprof.step(batches): a_step(batch)",
        "for batch in tfprof.step(list(batches)): a_step(batch)",
    ):
        assert kernel.run(f"%%tfprofile --quiet\n{loop}").error is None
        counts.append(kernel.evaluate("len(tfprof_report.steps)"))
        means.append(kernel.evaluate("float(tfprof_report.overview.step_time.mean_ms[0])"))
    assert counts == [12] * 4
    assert min(means) > 0
    # What XProf looks for in a mark: a root, and its number.
    kernel.run(
        "trace = tfprof_report.hosts[0].trace\nnumbered, roots = (set(trace.owners(n).tolist()) for n in ('step_num', '_r'))"
    )
    assert kernel.evaluate("len(numbered), numbered <= roots") == (12, True)


def test_a_time_of_a_cell(kernel):
    cell = kernel.run(
        "%%tfprofile --delay 0.2 --duration 0.3\n"
        "end = time.perf_counter() + 1.5\n"
        "while time.perf_counter() < end:\n"
        "    result = a_step(a)\n"
        "'the value'"
    )
    assert cell.value == "'the value'"
    assert len(cell.reports) == 1
    assert 0.3 <= kernel.evaluate("tfprof_report.capture.duration_s") < 1
    assert kernel.evaluate("len(tfprof_report.steps) > 3")


def test_a_long_cell_is_cut_and_the_report_says_so(kernel):
    cell = kernel.run("%%tfprofile --max-duration 0.2\nb = a @ a\ntime.sleep(0.6)\nfinished = True")
    assert "ended after 0.2 s" in cell.reports[0]
    assert kernel.evaluate("finished")


def test_a_cell_that_ends_before_its_window(kernel):
    for options, words in (("--delay 60", "before the delay"), ("--steps 100:200", "no step at all")):
        cell = kernel.run(f"%%tfprofile {options}\nb = a @ a\n'the value'")
        assert cell.value == "'the value'"
        assert not cell.reports
        assert words in cell.message
        assert kernel.evaluate("'tfprof_report' in globals()") is False
    cell = kernel.run("%%tfprofile --warmup 1\n1 / 0")
    assert cell.error[0] == "ZeroDivisionError"
    assert "Nothing was recorded" in cell.message


def test_an_interrupt_in_the_delay_and_in_the_window(kernel):
    interrupt(kernel, after_s=0.5)
    cell = kernel.run("%%tfprofile --delay 60\ntime.sleep(30)")
    assert cell.error[0] == "KeyboardInterrupt"
    assert "Nothing was recorded" in cell.message
    interrupt(kernel, after_s=0.7)
    cell = kernel.run("%%tfprofile --steps 2:1000000\nwhile True:\n    with tfprof.step(): result = a_step(a)")
    assert cell.error[0] == "KeyboardInterrupt"
    assert "KeyboardInterrupt" in cell.reports[0]
    assert kernel.evaluate("len(tfprof_report.steps) > 5")


# ---- what is shown, and when -----------------------------------------------------------------------------------


def test_the_value_is_shown_first_then_progress_which_becomes_the_report(kernel, monkeypatch):
    messages = []
    client = kernel.client
    process = client.process_message

    def record(message, *arguments):
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data", "execute_result"):
            html = content["data"].get("text/html", "")
            kind = [word for word in ("tfprof-report", "tfprof-progress") if word in html] or ["value"]
            messages.append((message["msg_type"], kind[0]))
        return process(message, *arguments)

    monkeypatch.setattr(client, "process_message", record)
    cell = kernel.run("%%tfprofile\nb = a @ a\n7")
    assert messages == [
        ("execute_result", "value"),
        ("display_data", "tfprof-progress"),
        ("update_display_data", "tfprof-progress"),
        ("update_display_data", "tfprof-progress"),
        ("update_display_data", "tfprof-report"),
    ]
    assert cell.kinds == ["execute_result", "display_data"]
    assert len(cell.reports) == 1


def test_the_value_does_not_wait_for_a_slow_stop(kernel):
    kernel.run(
        "stop = tf.profiler.experimental.stop\n"
        "shown = threading.Event()\n"
        "class Shown:\n"
        "    def __repr__(self):\n"
        "        shown.set()\n"
        "        return 'shown'\n"
        "def slow_stop(save=True):\n"
        "    waited.append(shown.wait(20))\n"
        "    stop(save)\n"
        "waited = []"
    )
    cell = kernel.run("%%tfprofile\nb = a @ a\ntf.profiler.experimental.stop = slow_stop\nShown()")
    kernel.run("tf.profiler.experimental.stop = stop")
    assert cell.value == "shown"
    assert kernel.evaluate("waited") == [True], "the stop saw the value on the screen before it ended"
    assert len(cell.reports) == 1


def test_warming_up_the_profiler(kernel):
    alone = kernel.run("%tfprofile --warmup-profiler")
    assert "is warm" in alone.stdout
    assert not alone.reports
    assert len(kernel.run("%%tfprofile --warmup-profiler\nb = a @ a").reports) == 1


def test_steps_that_trace_are_left_out_of_averages_and_both_numbers_are_shown(kernel):
    cell = kernel.run(
        "%%tfprofile\n"
        "fresh = keras.Sequential([keras.Input((16,)), keras.layers.Dense(1)])\n"
        "fresh.compile('sgd', 'mse')\n"
        "history = fresh.fit(x, y, batch_size=8, verbose=0)"
    )
    row = kernel.evaluate(
        "tfprof_report.overview.step_time[['steps', 'left_out', 'mean_ms', 'max_ms']].iloc[0].to_dict()"
    )
    assert row["steps"] + row["left_out"] == 32
    assert kernel.evaluate("'traced' in tfprof_report.steps['flags'][0]")
    # The traced one is far slower than those that are averaged.
    assert kernel.evaluate("float(tfprof_report.steps.duration_ms[0])") > row["max_ms"]
    assert "left out" in cell.reports[0].lower()


# ---- threads, processes, and other profilers -------------------------------------------------------------------


def test_a_cell_that_starts_threads_and_processes(kernel):
    cell = kernel.run(
        "%%tfprofile\n"
        "def work():\n"
        "    global inverse\n"
        "    inverse = tf.linalg.inv(a + tf.eye(64))\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start(); thread.join()\n"
        "child = subprocess.run(['true'], check=True)\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0)\n"
        "status = os.waitpid(pid, 0)[1]\n"
        "b = a @ a"
    )
    assert cell.error is None
    assert len(cell.reports) == 1
    assert kernel.evaluate("status") == 0
    assert kernel.evaluate("'MatrixInverse' in names() and 'MatMul' in names()")


def test_a_thread_that_outlives_the_cell(kernel):
    cell = kernel.run(
        "%%tfprofile\n"
        "stop_it = threading.Event()\n"
        "def forever():\n"
        "    while not stop_it.wait(0.001): a @ a\n"
        "thread = threading.Thread(target=forever)\n"
        "thread.start()\n"
        "time.sleep(0.1)"
    )
    assert len(cell.reports) == 1
    kernel.run("stop_it.set(); thread.join()")


def test_nested_profiles(kernel):
    cell = kernel.run("%%tfprofile\nwith tfprof.profile() as inner:\n    b = a @ a\n'value'")
    assert cell.value == "'value'"
    assert len(cell.reports) == 1
    assert "captures nothing of its own" in cell.text
    assert kernel.evaluate("'MatMul' in names()")


def test_a_tensorboard_callback_in_the_cell_does_not_take_the_session(kernel, tmp_path):
    cell = kernel.run(
        f"%%tfprofile\ncallback = keras.callbacks.TensorBoard({str(tmp_path)!r}, profile_batch=(2, 4))\n"
        "history = model.fit(x, y, batch_size=8, verbose=0, callbacks=[callback])"
    )
    assert len(cell.reports) == 1
    assert kernel.evaluate("len(tfprof_report.steps)") >= 2


def test_log_directories_of_the_callback_and_of_the_api_are_opened(kernel, tmp_path):
    cell = kernel.run(
        f"callback = keras.callbacks.TensorBoard({str(tmp_path)!r}, profile_batch=(2, 4))\n"
        "history = model.fit(x, y, batch_size=8, verbose=0, callbacks=[callback])\n"
        f"with tf.profiler.experimental.Profile({str(tmp_path / 'api')!r}):\n"
        "    b = a @ a"
    )
    assert cell.error is None
    assert kernel.evaluate(f"len(tfprof.runs({str(tmp_path)!r}))") == 2
    assert kernel.evaluate(f"'MatMul' in str(set(tfprof.load({str(tmp_path)!r}).events.name))")
    assert kernel.evaluate(f"len(tfprof.load(tfprof.runs({str(tmp_path)!r}).path[0]).steps)") >= 2


# ---- nothing lost, nothing left --------------------------------------------------------------------------------


def test_a_full_disk_is_said_and_the_cell_goes_on(kernel):
    cell = kernel.run(
        "%%tfprofile\n"
        "import resource, signal\n"
        "ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "b = a @ a\n"
        "limits = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))\n"
        "'the value'"
    )
    kernel.run("resource.setrlimit(resource.RLIMIT_FSIZE, limits)")
    assert cell.value == "'the value'"
    assert "Is the disk full" in cell.message
    assert kernel.evaluate("'tfprof_report' in globals()") is False


def test_a_temporary_directory_that_cannot_be_written_to(kernel):
    kernel.run("import tempfile\nplace, tempfile.tempdir = tempfile.tempdir, '/proc/nowhere'\nran = False")
    cell = kernel.run("%%tfprofile\nran = True")
    kernel.run("tempfile.tempdir = place")
    assert "Cannot write to the temporary directory" in cell.text
    assert kernel.evaluate("ran") is False


def test_fifty_runs_good_and_failing_leave_nothing_but_the_last_report(kernel, temporary):
    kernel.run(
        "class Failure(Exception): pass\n"
        "def alive():\n"
        "    gc.collect()\n"
        "    return sum(type(o).__name__ == 'Report' for o in gc.get_objects())\n"
        "before = threading.active_count()"
    )
    kernel.run("os.environ['TFPROF_HISTORY_MIB'] = '0'  # which runs to keep for comparisons is another matter")
    for number in range(50):
        options = ("", "--steps 1:2", "--delay 60", "--duration 0.001", "--warmup 9")[number % 5]
        quiet = "--quiet" if number % 10 else ""
        ending = "raise Failure" if number % 3 == 0 else f"{number}"
        cell = kernel.run(
            f"%%tfprofile {quiet} {options}\nfor _ in tfprof.step(range(3)): result = a_step(a)\n{ending}"
        )
        assert (cell.error is not None) == (number % 3 == 0)
    assert kernel.run(ASSERT_NO_SESSION).error is None
    assert not list(temporary.glob("*tfprof*"))
    kernel.run("%%tfprofile\nb = a @ a")
    kernel.run(
        "import sys\nfor name in ('last_type', 'last_value', 'last_traceback', 'last_exc'): vars(sys).pop(name, None)"
    )
    assert kernel.evaluate("alive()") == 1
    assert kernel.evaluate("threading.active_count() - before") == 0


@pytest.mark.parametrize("when", ["while the cell runs", "while the report is made"])
def test_a_killed_kernel(kernel, temporary, when):
    client, running = start_kernel(temporary)
    with running:
        doomed = Kernel(client)
        doomed.run("%load_ext tfprof_widgets\nimport os, signal\nimport tensorflow as tf\nimport tfprof_widgets.report")
        kill = "os.kill(os.getpid(), signal.SIGKILL)"
        code = kill if when == "while the cell runs" else f"tfprof_widgets.report.load_run = lambda *_, **__: {kill}"
        with pytest.raises(DeadKernelError):
            doomed.run(f"%%tfprofile --name doomed\nb = tf.linalg.inv(tf.eye(8))\n{code}")
    assert len(list(temporary.glob("tfprof-*"))) == 1
    assert "doomed" in kernel.run("%reload_ext tfprof_widgets").stdout
    found = kernel.run("found = tfprof.recover()\nfound").value
    assert "doomed" in found
    if when == "while the cell runs":
        assert "nothing was written" in found
    else:
        assert kernel.evaluate("'MatrixInverse' in str(set(found[0].events.name)), found[0].title") == (True, "doomed")
