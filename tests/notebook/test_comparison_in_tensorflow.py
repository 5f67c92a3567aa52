"""Comparisons of real runs: the same code run again is told to be the same, other code to be another."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

if importlib.util.find_spec("tensorflow") is None:  # not imported here: only the program needs it
    pytest.skip("needs TensorFlow", allow_module_level=True)

pytestmark = [pytest.mark.notebook, pytest.mark.tensorflow]

PROGRAM = """
import json
import numpy as np
import tensorflow as tf
import tfprof_widgets as tfprof

random = np.random.default_rng(0)
x, y = random.normal(size=(1024, 128)).astype("float32"), random.integers(0, 10, 1024)


def pipeline(slow=0):
    def prepare(a, b):
        for _ in range(slow):
            a = tf.linalg.matvec(tf.reshape(tf.tile(a, [128]), (128, 128)), a)
            a = a / tf.norm(a)
        return a * 2.0, b

    return tf.data.Dataset.from_tensor_slices((x, y)).map(prepare).batch(32).prefetch(1)


layers = [tf.keras.layers.Dense(n, activation="relu") for n in (128, 128)]
model = tf.keras.Sequential([tf.keras.layers.Input((128,)), *layers, tf.keras.layers.Dense(10)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def run(dataset):
    with tfprof.profile() as profile:
        model.fit(dataset, epochs=2, verbose=0)
    return profile.report


same, slow = pipeline(), pipeline(slow=60)
reports = [run(same) for _ in range(20)]
told = [tfprof.compare(*pair).change.told for pair in zip(reports[::2], reports[1::2])]
other = tfprof.compare(reports[-1], run(slow))
print(json.dumps({"told": told, "other": other.statement}))
"""


def test_the_same_code_shows_no_difference_in_nine_of_ten_comparisons_and_a_slow_input_does(tmp_path):
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", TMPDIR=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["told"].count("no difference shown") >= 9, said["told"]
    assert "slower, mostly more waiting for input" in said["other"]
