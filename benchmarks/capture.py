"""What ``%%tfprofile`` adds to a cell, over TensorFlow's own start and stop; side by side, in mixed order, in one process.

    python benchmarks/capture.py [ROUNDS]

Taken of each cell: how long its code took, and how much of the processor (which other work on the machine disturbs less); when its
value was on the screen (the bare cell has stopped the profiler and written the file by then; under ``%%tfprofile`` that happens
while the value is shown); and when everything was done. Also printed: what a step mark costs.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TFPROF_HISTORY_MIB", "0")

SET_UP = """
import tensorflow as tf, keras
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
x, y = tf.random.normal((4096, 64)), tf.random.normal((4096, 1))
options = tf.profiler.experimental.ProfilerOptions()
model.fit(x, y, verbose=0)

def work():
    begin = time.perf_counter(), time.process_time()
    model.fit(x, y, batch_size=32, epochs=2, verbose=0)
    took.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
"""

CELLS = {
    "no profiler": "work()\nValue()",
    "bare start/stop": "tf.profiler.experimental.start(logdir, options)\nwork()\ntf.profiler.experimental.stop()\nValue()",
    "%%tfprofile": "%%tfprofile --quiet\nwork()\nValue()",
    "%%tfprofile --steps 0:": "%%tfprofile --quiet --steps 0:\nwork()\nValue()",
}


def main() -> None:
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    HistoryManager.enabled = False
    shell = InteractiveShell.instance()
    took: list[tuple[float, float]] = []
    shown: list[float] = []

    class Value:
        def __repr__(self) -> str:
            shown.append(time.perf_counter())
            return "the value"

    with tempfile.TemporaryDirectory() as logdir:
        shell.user_ns.update(time=time, took=took, Value=Value, logdir=logdir)
        shell.run_cell("%load_ext tfprof_widgets")
        shell.run_cell(SET_UP).raise_error()
        times: dict[str, list[tuple[float, ...]]] = {name: [] for name in CELLS}
        for turn in range(rounds + 1):
            for name in random.sample(list(CELLS), len(CELLS)):
                gc.collect()
                begin = time.perf_counter()
                shell.run_cell(CELLS[name]).raise_error()
                if turn:  # the first round warms up
                    times[name].append((*took[-1], shown[-1] - begin, time.perf_counter() - begin))
    columns = ("the code", "its CPU time", "value shown", "all done")
    middle = {name: [statistics.median(row[i] for row in rows) for i in range(4)] for name, rows in times.items()}
    print(f"\nMedians of {rounds} rounds in ms, and what they are over those of bare start/stop")
    print(" " * 24 + "".join(f"{column:>20}" for column in columns))
    for name, values in middle.items():
        over = (value / bare - 1 for value, bare in zip(values, middle["bare start/stop"], strict=True))
        print(f"{name:24}" + "".join(f"{v * 1e3:10.1f} ({o:+6.1%})" for v, o in zip(values, over, strict=True)))
    print(f"\na step mark while nothing is recorded: {_mark_us():.2f} us")


def _mark_us() -> float:
    import tfprof_widgets as tfprof

    n = 100_000
    begin = time.perf_counter()
    for i in range(n):
        with tfprof.step(i):
            pass
    return (time.perf_counter() - begin) / n * 1e6


if __name__ == "__main__":
    main()
