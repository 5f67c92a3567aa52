"""Sampling, against gRPC servers that answer as TensorFlow's profiler servers do: new ones, old ones, and in trouble."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from concurrent import futures
from pathlib import Path

import pytest

import tfprof_widgets as tfprof
from generate import Space, cpu_fit_capture
from tfprof_widgets import sampling
from tfprof_widgets.profiler_service import messages
from tfprof_widgets.session import CaptureError

grpc = pytest.importorskip("grpc")

PROFILE = cpu_fit_capture(epochs=1, batches=3).bytes()


def empty_profile() -> bytes:
    space = Space("idle")
    space.plane("/host:CPU")
    return space.bytes()


class Server:
    """A profiler server whose answer to each request is a function of the request, its context and its number."""

    def __init__(self, answer):
        self.requests = []
        self.cancelled = threading.Event()
        self._answer = answer
        classes = messages()

        def profile(request, context):
            self.requests.append(request)
            context.add_callback(lambda: None if context.code() or self.answered else self.cancelled.set())
            self.answered = False
            result = self._answer(self, request, context)
            self.answered = True
            return classes["ProfileResponse"](**result)

        self.answered = False
        handler = grpc.unary_unary_rpc_method_handler(
            profile,
            request_deserializer=classes["ProfileRequest"].FromString,
            response_serializer=classes["ProfileResponse"].SerializeToString,
        )
        service = grpc.method_handlers_generic_handler("tensorflow.ProfilerService", {"Profile": handler})
        self._server = grpc.server(futures.ThreadPoolExecutor(2), options=[("grpc.max_send_message_length", -1)])
        self._server.add_generic_rpc_handlers((service,))
        self.port = self._server.add_insecure_port("localhost:0")
        self.address = f"grpc://localhost:{self.port}"
        self._server.start()

    def stop(self):
        self._server.stop(None).wait()


@pytest.fixture
def serve():
    with contextlib.ExitStack() as stack:

        def start(answer):
            server = Server(answer)
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(sampling, "_PAUSE_S", 0.01)
    yield
    assert not list(temporary.iterdir())


def recorded(server, request, context):
    return {"xspace": PROFILE}


def nothing(server, request, context):
    return {"empty_trace": True, "xspace": empty_profile()}


def test_a_capture_becomes_a_report(serve):
    server = serve(recorded)
    report = tfprof.capture(server.address, duration=0.25, host_level=3, python=True, device_level=0)
    assert len(report.steps) == 3
    (request,) = server.requests
    assert (request.duration_ms, request.opts.duration_ms, request.emit_xspace) == (250, 250, True)
    levels = request.opts
    assert (levels.host_tracer_level, levels.python_tracer_level, levels.device_tracer_level) == (3, 1, 0)
    assert levels.version == 1
    assert levels.include_dataset_ops
    assert report.title == f"localhost:{server.port}"
    assert report.capture.duration_s == 0.25
    assert report.notes == [] or all("was asked for" in note for note in report.notes)


def test_several_workers_record_at_the_same_time_and_are_told_apart(serve):
    both = threading.Barrier(2, timeout=10)

    def together(server, request, context):
        both.wait()  # neither is answered before both were asked
        return recorded(server, request, context)

    one, two = serve(together), serve(together)
    report = tfprof.capture([one.address, two.address], duration=0.01, name="pair")
    assert [host.trace.host for host in report.hosts] == [f"localhost:{one.port}", f"localhost:{two.port}"]
    assert report.title == "pair"
    assert len(report.steps) == 6
    many = f"{one.address},{two.address}"
    assert len(tfprof.capture(many, duration=0.01).hosts) == 2


def test_a_worker_that_recorded_nothing_is_named(serve):
    busy, idle = serve(recorded), serve(nothing)
    report = tfprof.capture([busy.address, idle.address], duration=0.01)
    assert len(report.hosts) == 1
    (note,) = report.notes
    assert note.startswith("1 of 2 workers are in this report.")
    assert f"localhost:{idle.port} recorded nothing" in note


def test_nothing_recorded_is_tried_again(serve):
    server = serve(lambda s, r, c: recorded(s, r, c) if len(s.requests) == 3 else nothing(s, r, c))
    assert len(tfprof.capture(server.address, duration=0.01).steps) == 3
    assert len(server.requests) == 3


def test_nothing_recorded_at_all_says_what_to_do(serve):
    server = serve(nothing)
    with pytest.raises(
        CaptureError, match=r"recorded nothing in 0\.01 s \(2 attempts\).*while the program is training"
    ):
        tfprof.capture(server.address, duration=0.01, attempts=2)
    assert len(server.requests) == 2


def busy(server, request, context):
    context.abort(grpc.StatusCode.INTERNAL, "Another profiling session active.")


def test_a_busy_server_is_tried_again_then_named(serve):
    server = serve(busy)
    with pytest.raises(CaptureError, match="is being profiled already"):
        tfprof.capture(server.address, duration=0.01, attempts=2)
    assert len(server.requests) == 2
    released = serve(lambda s, r, c: recorded(s, r, c) if len(s.requests) == 2 else busy(s, r, c))
    assert len(tfprof.capture(released.address, duration=0.01).steps) == 3


def old_server(server, request, context):
    """As TensorFlow 2.15: it knows no emit_xspace, and writes to the repository."""
    run = Path(request.repository_root, request.session_id)
    run.mkdir(parents=True)
    (run / f"{request.host_name.replace(':', '_')}.xplane.pb").write_bytes(PROFILE)
    return {}


def test_an_old_server_writes_the_profile_itself(serve, tmp_path):
    server = serve(old_server)
    assert len(tfprof.capture(server.address, duration=0.01).steps) == 3
    report = tfprof.capture(server.address, duration=0.01, logdir=tmp_path / "logs")
    assert [path.parent for path in (tmp_path / "logs").rglob("*.xplane.pb")] == [report.capture.run_dir]


def test_an_old_server_elsewhere_needs_a_shared_directory(serve):
    server = serve(lambda s, r, c: {})
    with pytest.raises(CaptureError, match=r"cannot send one back.*logdir="):
        tfprof.capture(server.address, duration=0.01)


def test_a_kept_profile_is_where_tensorboard_looks(serve, tmp_path):
    one, two = serve(recorded), serve(recorded)
    report = tfprof.capture([one.address, two.address], duration=0.01, logdir=tmp_path / "logs")
    run = report.capture.run_dir
    assert run.parent == tmp_path / "logs" / "plugins" / "profile"
    assert sorted(file.name for file in run.iterdir()) == sorted(f"localhost_{s.port}.xplane.pb" for s in (one, two))
    assert len(tfprof.load(tmp_path / "logs").steps) == 6


def test_a_sampled_report_can_be_saved_and_shared(serve, tmp_path):
    one, two = serve(recorded), serve(recorded)
    report = tfprof.capture([one.address, two.address], duration=0.01, name="pair")
    again = tfprof.load(report.save(tmp_path / "pair.tfprof"))
    assert (again.title, len(again.steps)) == ("pair", 6)


def test_the_name_by_which_a_worker_was_asked_is_left_out_where_names_are():
    answers = sampling._Answers({"db7.corp.example:6009": PROFILE})
    report = sampling._report(sampling.Request(["db7.corp.example:6009"], 1.0), answers, 0.0, 1.0)
    assert report.title == "db7.corp.example:6009"
    assert [host.trace.host for host in report.hosts] != [report.title]
    assert "db7" not in report.anonymized().text
    assert "db7" not in report.anonymized().title


def test_a_directory_that_cannot_be_written_costs_no_report(serve, tmp_path):
    (tmp_path / "file").write_text("no directory")
    report = tfprof.capture(serve(recorded).address, duration=0.01, logdir=tmp_path / "file")
    assert len(report.steps) == 3
    assert any("could not be kept" in note for note in report.notes)


def test_a_profile_larger_than_grpc_expects(serve):
    space = Space("big")
    line = space.plane("/host:CPU").line("main", id=1)
    line.event("op", 0, 1, text="x" * 6_000_000)
    data = space.bytes()
    assert len(data) > 4 * 2**20
    assert tfprof.capture(serve(lambda s, r, c: {"xspace": data}).address, duration=0.01).hosts


def test_damaged_bytes_are_refused(serve):
    with pytest.raises(CaptureError, match="not a TensorFlow profile"):
        tfprof.capture(serve(lambda s, r, c: {"xspace": b"\xff\xff\xff"}).address, duration=0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def test_nothing_listens(serve):
    port = free_port()
    with pytest.raises(
        CaptureError, match=rf"Nothing listens at localhost:{port}.*server\.start\({port}\).*Nothing was captured"
    ):
        tfprof.capture(f"grpc://localhost:{port}")
    there = serve(recorded)
    with pytest.raises(CaptureError, match="1 of 2 workers cannot be reached"):
        tfprof.capture([there.address, f"localhost:{port}"], duration=0.01)
    assert there.requests == [], "none records before all are there"


def test_a_name_that_is_not_known():
    with pytest.raises(CaptureError, match="not known here"):
        tfprof.capture("grpc://no-such-host.invalid:6009")


@pytest.fixture
def listener():
    """Start something else that listens: it answers each connection with these bytes, or not at all."""
    with contextlib.ExitStack() as stack:

        def listen(reply: bytes) -> int:
            server = stack.enter_context(socket.create_server(("localhost", 0)))
            held = []

            def serve():
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = server.accept()
                        held.append(stack.enter_context(connection))
                        connection.sendall(reply)

            threading.Thread(target=serve, daemon=True).start()
            stack.callback(lambda: server.shutdown(socket.SHUT_RDWR))
            return server.getsockname()[1]

        yield listen


def test_something_else_listens(listener, serve):
    with pytest.raises(CaptureError, match="is not a profiler server"):
        tfprof.capture(f"grpc://localhost:{listener(b'HTTP/1.1 400 Bad Request' + bytes(2) + b'x' * 40)}")
    other = grpc.server(futures.ThreadPoolExecutor(1))
    port = other.add_insecure_port("localhost:0")
    other.start()
    try:
        with pytest.raises(CaptureError, match="not a profiler server"):
            tfprof.capture(f"grpc://localhost:{port}", duration=0.01)
    finally:
        other.stop(None).wait()


def test_something_that_never_answers(listener, monkeypatch):
    monkeypatch.setattr(sampling, "CONNECT_S", 0.3)
    with pytest.raises(CaptureError, match=r"No answer from|failed or broke off"):
        tfprof.capture(f"grpc://localhost:{listener(b'')}")


def hangs(server, request, context):
    server.cancelled.wait(20)
    return {}


def test_a_profile_that_never_comes(serve):
    server = serve(hangs)
    with pytest.raises(CaptureError, match=r"did not hand over its profile within 0\.3 s"):
        tfprof.capture(server.address, duration=0.01, timeout=0.3, attempts=1)


def test_a_server_that_ends_in_the_middle(serve):
    server = serve(lambda s, r, c: c.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed"))
    with pytest.raises(CaptureError, match="broke off"):
        tfprof.capture(server.address, duration=0.01)


def test_an_interrupt_takes_the_request_back(serve):
    server = serve(hangs)

    def interrupt():
        while not server.requests:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        tfprof.capture(server.address, duration=30)
    assert server.cancelled.wait(10), "the server stops recording"


def test_a_capture_can_be_stopped_from_another_thread(serve):
    server = serve(hangs)
    request = sampling.Request(sampling.addresses(server.address), 30.0)
    with pytest.raises(sampling.CaptureStopped):
        sampling.sample(request, lambda text, share: None, lambda: bool(server.requests))
    assert server.cancelled.wait(10)


def test_progress_is_told(serve):
    def slow(server, request, context):
        time.sleep(0.5)
        return recorded(server, request, context)

    told = []
    tfprof.capture(serve(slow).address, duration=0.3, progress=lambda text, share: told.append((text, share)))
    texts = [text for text, _ in told]
    assert texts[0].startswith("Connecting to localhost:")
    assert any("of 0.3 s" in text for text in texts)
    assert any("waiting for the profile of 1 of 1" in text for text in texts)
    assert texts[-1] == "Making the report …"
    shares = [share for _, share in told if share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_progress_in_a_terminal_goes_away_again(serve, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    tfprof.capture(serve(recorded).address, duration=0.1)
    shown = capsys.readouterr().err
    assert "Connecting to" in shown
    assert shown.rpartition("\r")[2] == ""
    assert shown.split("\r")[-2].strip() == ""


def test_no_progress_where_nobody_looks(serve, capsys):
    tfprof.capture(serve(recorded).address, duration=0.01)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("grpc://worker-0:6009", ["worker-0:6009"]),
        ("10.0.0.2:8466,grpc://10.0.0.3:8466/", ["10.0.0.2:8466", "10.0.0.3:8466"]),
        (["grpc://a:1", "b:2, c:3"], ["a:1", "b:2", "c:3"]),
        ("grpc://[::1]:6009", ["[::1]:6009"]),
    ],
)
def test_addresses(given, expected):
    assert sampling.addresses(given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "no address"),
        ([], "no address"),
        ("http://localhost:6006", "not http://"),
        ("localhost", "host and a port"),
        ("localhost:99999", "host and a port"),
        ("a b:1", "host and a port"),
        ("a:1,a:1", "twice"),
    ],
)
def test_addresses_that_are_none(given, words):
    with pytest.raises(ValueError, match=words):
        tfprof.capture(given)


@pytest.mark.parametrize("given", [6009, None, [6009], ["grpc://a:1", None]])
def test_addresses_that_are_no_text(given):
    with pytest.raises(TypeError, match=r"address like 'grpc://localhost:6009'; (6009|None) is none"):
        tfprof.capture(given)


@pytest.mark.parametrize(
    "wrong", [{"duration": 0}, {"duration": -1}, {"duration": float("nan")}, {"attempts": 0}, {"timeout": 0}]
)
def test_arguments_that_are_of_no_use(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        tfprof.capture("grpc://localhost:6009", **wrong)


def test_without_grpc(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(CaptureError, match="pip install grpcio"):
        tfprof.capture("grpc://localhost:6009")
