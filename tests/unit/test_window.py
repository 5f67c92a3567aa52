"""When a capture begins and ends, with a stand-in for the profiler and with steps that the test counts itself."""

from __future__ import annotations

import math
import sys
import threading
import time
import types

import pytest

import tfprof_widgets as tfprof
from tfprof_widgets import session
from tfprof_widgets.session import CaptureError
from tfprof_widgets.window import Window, parse_steps


@pytest.fixture
def recorded(profiler):
    """Return a function: run a loop and list the rounds in which the profiler ran."""

    def run(rounds, mark=tfprof.step, **window):
        during = []
        with tfprof.profile(**window) as p:
            for i in range(rounds):
                with mark(i):
                    during.append(profiler.logdir is not None)
            running_at_end = profiler.logdir is not None
        return [i for i, on in enumerate(during) if on], running_at_end, p

    return run


@pytest.mark.parametrize(
    ("window", "rounds", "ends"),
    [
        ({}, range(10), False),
        ({"steps": "3:6"}, range(3, 6), True),
        ({"steps": (0, 2)}, range(2), True),
        ({"steps": "7:"}, range(7, 10), False),
        ({"steps": ":4"}, range(4), True),
        ({"warmup": 4}, range(4, 10), False),
        ({"warmup": 4, "steps": "1:3"}, range(5, 7), True),
        ({"steps": "8:20"}, range(8, 10), False),
    ],
)
def test_the_steps_asked_for_are_recorded(recorded, window, rounds, ends):
    on, running_at_end, p = recorded(10, **window)
    assert on == list(rounds)
    assert running_at_end is not ends
    assert len(p.report.steps) == 3
    assert p.report.notes == []


def test_a_loop_that_ends_too_early_says_how_far_it_came(recorded):
    for window, words in (({"steps": "10:20"}, "step 10 .* after 3 steps"), ({"warmup": 5}, "step 5 .* after 3 steps")):
        on, _, p = recorded(3, **window)
        assert on == []
        with pytest.raises(CaptureError, match=words):
            p.report  # noqa: B018
    _, _, p = recorded(0, warmup=1)
    with pytest.raises(CaptureError, match="after no step at all"):
        p.report  # noqa: B018


def test_an_exception_before_the_first_step_passes(profiler):
    with pytest.raises(ZeroDivisionError), tfprof.profile(warmup=1) as p:
        1 / 0  # noqa: B018
    with pytest.raises(CaptureError, match="Nothing was recorded"):
        p.report  # noqa: B018


def test_an_exception_in_a_recorded_step_ends_with_a_report(profiler):
    with pytest.raises(ZeroDivisionError), tfprof.profile(steps="1:9") as p:
        [1 / (2 - i) for i in tfprof.step(range(5))]
    assert profiler.logdir is None
    assert p.report.capture.error == "ZeroDivisionError: division by zero"


def test_inner_marks_are_counted_and_an_epoch_s_is_not(profiler):
    on = []
    with tfprof.profile(steps="3:5"):
        for epoch in range(2):
            with tfprof.step(epoch, kind="epoch"):
                for _ in tfprof.step(range(4)):
                    on.append(profiler.logdir is not None)
    assert [i for i, is_on in enumerate(on) if is_on] == [3, 4]


def test_data_that_ends_is_no_step(profiler):
    with tfprof.profile(steps="5:") as p:
        for _ in range(2):
            for _ in tfprof.step(iter(range(2))):
                pass
    with pytest.raises(CaptureError, match="after 4 steps"):
        p.report  # noqa: B018


class Keras:
    """What a capture wraps of Keras: a list of callbacks that is told of batches, and a model without callbacks."""

    def __init__(self):
        class CallbackList:
            def on_train_batch_begin(self, batch, logs=None): ...
            def on_train_batch_end(self, batch, logs=None): ...
            def on_test_batch_begin(self, batch, logs=None): ...
            def on_test_batch_end(self, batch, logs=None): ...
            def on_predict_batch_begin(self, batch, logs=None): ...
            def on_predict_batch_end(self, batch, logs=None): ...

        class Trainer:
            def train_on_batch(self, x):
                return x

            def test_on_batch(self, x):
                return x

            def predict_on_batch(self, x):
                return x

        class Model(Trainer): ...

        self.callbacks = types.SimpleNamespace(CallbackList=CallbackList)
        self.Model = Model


@pytest.fixture
def keras(monkeypatch):
    keras = Keras()
    monkeypatch.setitem(sys.modules, "keras", keras)
    monkeypatch.delitem(sys.modules, "tf_keras", raising=False)
    return keras


@pytest.mark.parametrize("loop", ["train", "test", "predict"])
def test_keras_batches_are_counted_and_keras_is_put_back(profiler, keras, loop):
    callback_list, model = keras.callbacks.CallbackList, keras.Model
    before = dict(vars(callback_list)), dict(vars(model))
    callbacks, on = callback_list(), []
    with tfprof.profile(steps="2:4"):
        for batch in range(3):
            getattr(callbacks, f"on_{loop}_batch_begin")(batch)
            on.append(profiler.logdir is not None)
            getattr(callbacks, f"on_{loop}_batch_end")(batch)
        getattr(callbacks, f"on_{loop}_batch_begin")(3)  # and then the data had ended
        with tfprof.step():
            getattr(callbacks, f"on_{loop}_batch_begin")(0)  # belongs to the mark around it
            getattr(callbacks, f"on_{loop}_batch_end")(0)
        assert profiler.logdir is None
        assert (dict(vars(callback_list)), dict(vars(model))) == before, "the window is over: Keras is itself again"
        assert getattr(model(), f"{loop}_on_batch")(7) == 7
    assert on == [False, False, True]


def test_batches_without_callbacks_are_counted(profiler, keras):
    on = []
    model = keras.Model()
    with tfprof.profile(steps="1:2") as p:
        for i in range(3):
            assert model.train_on_batch(i) == i
            on.append(p.info.duration_s > 0)
    assert on == [False, True, True]
    assert "train_on_batch" not in vars(keras.Model)


def test_a_delay_and_a_duration(profiler):
    with tfprof.profile(delay=0.05, duration=0.05) as p:
        assert profiler.logdir is None
        wait_until(lambda: p._session.running)
        wait_until(lambda: not p._session.running)
        assert profiler.logdir is None
    assert 0.05 <= p.report.capture.duration_s < 1
    assert p.report.notes == []


def test_code_that_ends_during_the_delay(profiler):
    with tfprof.profile(delay=60) as p:
        pass
    with pytest.raises(CaptureError, match="before the delay of 60 s was over"):
        p.report  # noqa: B018


def test_steps_wait_for_the_delay(profiler):
    on = []
    with tfprof.profile(delay=0.05, steps="0:100") as p:
        while sum(on) < 2:
            with tfprof.step():
                on.append(profiler.logdir is not None)
                time.sleep(0.01)
    assert on[0] is False
    assert len(p.report.steps) == 3


@pytest.mark.parametrize(
    ("window", "words"),
    [({"max_duration": 0.05}, "after 0.05 s, the limit"), ({"max_memory": 1e-9}, "had grown by")],
)
def test_limits_end_the_recording_and_are_said(profiler, monkeypatch, window, words):
    sizes = iter(range(10**9, 2 * 10**9, 10**6))
    monkeypatch.setattr(session, "_process_bytes", lambda: next(sizes))
    with tfprof.profile(**window) as p:
        wait_until(lambda: not p._session.running)
        assert profiler.logdir is None
    (note,) = p.report.notes
    assert words in note
    assert "the code went on" in note


def test_a_profiler_that_cannot_start_later_leaves_the_code_alone(profiler):
    profiler.busy = True
    with tfprof.profile(steps="1:2") as p:
        for i in tfprof.step(range(3)):
            last = i
    assert last == 2
    with pytest.raises(CaptureError, match=r"could not be started .* sampling this program"):
        p.report  # noqa: B018
    profiler.busy = False
    assert profiler.logdir is None


def test_an_interrupt_of_the_start_leaves_another_s_session_alone(profiler, monkeypatch, tmp_path):
    profiler.start(str(tmp_path))

    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(threading, "Thread", interrupted)
    with pytest.raises(KeyboardInterrupt), tfprof.profile(delay=60):
        pytest.fail("the block must not run")
    assert profiler.logdir == str(tmp_path)
    profiler.stop()


def test_many_threads_that_end_at_once_stop_once(profiler, monkeypatch):
    stops = []
    stop = profiler.stop
    monkeypatch.setattr(profiler, "stop", lambda save=True: (stops.append(save), time.sleep(0.02), stop(save)))
    with tfprof.profile(steps="0:1") as p:
        barrier = threading.Barrier(8)

        def work():
            barrier.wait()
            with tfprof.step():
                pass

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert stops == [True]
    assert len(p.report.steps) == 3


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize(("text", "steps"), [("10:20", (10, 20)), ("3:", (3, None)), (":4", (0, 4)), (":", (0, None))])
def test_ranges_of_steps(text, steps):
    assert parse_steps(text) == steps


@pytest.mark.parametrize("text", ["", "10", "a:b", "1:2:3", "1.5:2"])
def test_texts_that_are_no_range(text):
    with pytest.raises(ValueError, match="steps are FIRST:END"):
        parse_steps(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"delay_s": -1},
        {"delay_s": math.inf},
        {"duration_s": 0},
        {"steps": (5, 5)},
        {"steps": (-1, 5)},
        {"steps": 5},
        {"warmup": -1},
        {"max_duration_s": 0},
        {"max_growth_gb": math.nan},
    ],
)
def test_windows_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match=r"(is|are) "):
        Window(**wrong)


def test_a_duration_asked_for_is_above_the_limit():
    assert Window(duration_s=100).limit_s == 100
    assert Window().limit_s == 60
