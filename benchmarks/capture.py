"""What ``%%tfprofile`` adds to a cell, over TensorFlow's own start and stop; side by side, in turns, in one process.

    python benchmarks/capture.py [ROUNDS]

Three times are taken of each cell: how long its code took, when its value was on the screen (the bare cell has stopped the
profiler and written the file by then; under ``%%tfprofile`` that happens while the value is shown), and when everything was
done. Also printed: what a step mark costs, and what counting steps adds.
"""

from __future__ import annotations

import gc
import os
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
    begin = time.perf_counter()
    model.fit(x, y, batch_size=32, epochs=4, verbose=0)
    took.append(time.perf_counter() - begin)
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

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    HistoryManager.enabled = False
    shell = InteractiveShell.instance()
    took: list[float] = []
    shown: list[float] = []

    class Value:
        def __repr__(self) -> str:
            shown.append(time.perf_counter())
            return "the value"

    with tempfile.TemporaryDirectory() as logdir:
        shell.user_ns.update(time=time, took=took, Value=Value, logdir=logdir)
        shell.run_cell("%load_ext tfprof_widgets")
        shell.run_cell(SET_UP).raise_error()
        times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in CELLS}
        for turn in range(rounds + 1):
            for name, cell in CELLS.items():
                gc.collect()
                begin = time.perf_counter()
                shell.run_cell(cell).raise_error()
                if turn:  # the first round warms up
                    times[name].append((took[-1], shown[-1] - begin, time.perf_counter() - begin))
    print(f"\nMedians of {rounds} rounds, in ms (and over bare start/stop, median of the rounds' ratios)")
    print(f"{'':24} {'the code':>20} {'value shown':>20} {'all done':>12}")
    for name, rows in times.items():
        code, value, done = (statistics.median(row[i] for row in rows) for i in range(3))
        over = [
            statistics.median(mine[i] / bare[i] for mine, bare in zip(rows, times["bare start/stop"], strict=True)) - 1
            for i in range(2)
        ]
        print(f"{name:24} {code * 1e3:9.1f} ({over[0]:+7.2%}) {value * 1e3:9.1f} ({over[1]:+7.2%}) {done * 1e3:11.1f}")
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
