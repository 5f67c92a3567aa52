"""Sampling TensorFlow's own profiler servers, in other processes: from Python and from a notebook."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time

import nbformat
import pytest
from nbclient import NotebookClient

import tfprof_widgets as tfprof
from tfprof_widgets.session import CaptureError

if importlib.util.find_spec("tensorflow") is None:  # only the servers need it
    pytest.skip("needs TensorFlow", allow_module_level=True)

pytestmark = [pytest.mark.notebook, pytest.mark.tensorflow]

# A program as users have it: a loop of marked steps, or, with "idle", one that only waits.
PROGRAM = """
import sys, time
import tensorflow as tf

@tf.function
def step(x):
    return tf.reduce_sum(x @ x)

x = tf.ones((100, 100))
step(x)
tf.profiler.experimental.server.start(int(sys.argv[1]))
print("ready", flush=True)
number = 0
while True:
    if sys.argv[2] == "busy":
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            step(x)
        number += 1
        time.sleep(0.005)
    else:
        time.sleep(0.1)
"""


def free_ports(count: int) -> list[int]:
    probes = [socket.create_server(("localhost", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@pytest.fixture(scope="module")
def servers():
    """Addresses of two busy programs and an idle one, in processes of their own."""
    ports = free_ports(3)
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(port), mode],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        )
        for port, mode in zip(ports, ("busy", "busy", "idle"), strict=True)
    ]
    try:
        for program in programs:
            assert program.stdout.readline() == b"ready\n"
        yield [f"grpc://localhost:{port}" for port in ports]
    finally:
        for program in programs:
            program.kill()
            program.wait()
            program.stdout.close()


def test_one_worker(servers, tmp_path):
    report = tfprof.capture(servers[0], duration=0.5, logdir=tmp_path)
    assert set(report.steps["kind"]) == {"train"}
    assert len(report.steps) > 5
    captured_ms = float(report.overview.environment["Captured time"].removesuffix(" ms").replace(",", ""))
    assert 400 < captured_ms < 5000
    assert len(tfprof.load(tmp_path).steps) == len(report.steps)


def test_two_workers_at_once(servers):
    report = tfprof.capture(servers[:2], duration=0.5)
    assert [host.trace.host for host in report.hosts] == [address.removeprefix("grpc://") for address in servers[:2]]
    assert report.steps.groupby("host").size().min() > 5
    starts = [host.trace.space.environment.get("profile_start_time") for host in report.hosts]
    if all(isinstance(start, int) for start in starts):
        assert abs(starts[0] - starts[1]) < 0.4e9, "they record at the same time"


def test_levels_reach_the_server(servers):
    quiet = tfprof.capture(servers[0], duration=0.3)
    python = tfprof.capture(servers[0], duration=0.3, python=True)
    assert not any(name.startswith("$") for name in quiet.hosts[0].trace.space.meta_name)
    assert any(name.startswith("$") for name in python.hosts[0].trace.space.meta_name)


def test_an_idle_worker(servers):
    with pytest.raises(CaptureError, match="recorded nothing"):
        tfprof.capture(servers[2], duration=0.1, attempts=2)
    report = tfprof.capture([servers[0], servers[2]], duration=0.3)
    assert len(report.hosts) == 1
    assert any("1 of 2 workers" in note for note in report.notes)


CLIENT = """
import sys, tempfile, pathlib
import tfprof_widgets as tfprof
try:
    tfprof.capture(sys.argv[1], duration=60, progress=lambda text, share: share and print("recording", flush=True))
except KeyboardInterrupt:
    print("interrupted", list(pathlib.Path(tempfile.gettempdir()).iterdir()), "tensorflow" in sys.modules, flush=True)
"""


def test_an_interrupt_ends_the_recording_in_the_program_too(servers, tmp_path):
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, servers[0]],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with client:
        assert client.stdout.readline() == "recording\n"
        with pytest.raises(CaptureError, match="is being profiled already"):
            tfprof.capture(servers[0], duration=0.1, attempts=1)
        client.send_signal(signal.SIGINT)
        begin = time.monotonic()
        last = client.stdout.read().splitlines()[-1]
    assert time.monotonic() - begin < 10
    assert last == "interrupted [] False"
    # The server has one session: it would refuse another one for a minute if the interrupt hadn't ended it.
    assert len(tfprof.capture(servers[0], duration=0.3).steps) > 2


def test_the_magic(servers):
    notebook = nbformat.v4.new_notebook()
    client = NotebookClient(notebook, timeout=120, allow_errors=True)

    def run(source: str):
        notebook.cells.append(nbformat.v4.new_code_cell(source))
        return client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)

    with client.setup_kernel():
        run("%load_ext tfprof_widgets\nimport json, sys, tfprof_widgets")
        many = ",".join(servers[:2])
        shown = run(f"%tfprofile --server {many} --duration 0.3 --as pair --name 'two workers'")
        assert [output.output_type for output in shown.outputs] == ["display_data"], (
            "the progress has become the report"
        )
        assert "tfprof-report" in shown.outputs[0].data["text/html"]
        assert shown.outputs[0].data["text/plain"].startswith("two workers")
        facts = run("print(json.dumps([len(pair.hosts), pair is tfprof_report, 'tensorflow' in sys.modules]))")
        assert json.loads(facts.outputs[0].text) == [2, True, False]

        quiet = run(f"%tfprofile --server {servers[0]} --duration 0.2 --quiet")
        assert quiet.outputs == []

        def complaint(source: str) -> str:
            cell = run(source)
            return "".join(output.text for output in cell.outputs if output.output_type == "stream")

        with_code = complaint(f"%%tfprofile --server {servers[0]}\nprint('not ' + 'run')")
        assert "profiles another program" in with_code
        assert "not run" not in with_code
        assert "must be no code" in complaint(f"%tfprofile --server {servers[0]} 1 + 1")
        (port,) = free_ports(1)
        nobody = f"%tfprofile --server grpc://localhost:{port}"
        assert "Nothing listens" in complaint(nobody)
        shown = [output.data["text/plain"] for output in notebook.cells[-1].outputs if "data" in output]
        assert shown == ["tfprofile: nothing was captured."], "in place of what it was doing"
        assert "host and a port" in complaint("%tfprofile --server localhost")

        run(f"panel = tfprof_widgets.capture_panel({many!r}, duration=0.3)\npanel")
        clicked = run(
            "panel._button.click()\npanel.wait(60)\nprint(json.dumps([len(panel.report.hosts), panel.is_capturing]))"
        )
        assert json.loads(clicked.outputs[-1].text) == [2, False]

        from_python = run(f"import tfprof_widgets as tfprof\nr = tfprof.capture({servers[0]!r}, duration=0.3)")
        assert [output.data["text/plain"] for output in from_python.outputs] == [
            f"Captured from {servers[0].removeprefix('grpc://')}."
        ]
