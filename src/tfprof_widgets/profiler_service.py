"""TensorFlow's profiler server, spoken to over gRPC: one request, the profile comes back.

``tf.profiler.experimental.client.trace`` sends the same request, but only from a process that has TensorFlow, cannot be
interrupted until its deadline has passed, and lets the server write the profile to a path that both must see. The
messages have kept their numbers since TensorFlow 2.2, and gRPC takes a request back as soon as it is cancelled.
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from .session import CaptureError, Options

if TYPE_CHECKING:
    from types import ModuleType

_SERVICE = "/tensorflow.ProfilerService/"
_NO_GRPC = "Sampling a server needs the package grpcio, which TensorFlow brings along; here:  pip install grpcio"
# The program that answers is on the user's own network, whatever proxy there is to the world outside; and a profile
# can be larger than the 4 MiB that gRPC takes for granted.
_CHANNEL = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]

_field = descriptor_pb2.FieldDescriptorProto
_MESSAGES = {
    "ProfileOptions": (
        ("include_dataset_ops", 1, _field.TYPE_BOOL, ""),
        ("host_tracer_level", 2, _field.TYPE_UINT32, ""),
        ("device_tracer_level", 3, _field.TYPE_UINT32, ""),
        ("python_tracer_level", 4, _field.TYPE_UINT32, ""),
        ("version", 5, _field.TYPE_UINT32, ""),
        ("duration_ms", 9, _field.TYPE_UINT64, ""),
    ),
    "ProfileRequest": (
        ("duration_ms", 1, _field.TYPE_UINT64, ""),
        ("max_events", 2, _field.TYPE_UINT64, ""),
        ("opts", 4, _field.TYPE_MESSAGE, "ProfileOptions"),
        ("repository_root", 5, _field.TYPE_STRING, ""),
        ("session_id", 6, _field.TYPE_STRING, ""),
        ("host_name", 7, _field.TYPE_STRING, ""),
        ("emit_xspace", 9, _field.TYPE_BOOL, ""),
    ),
    # The profile itself is left as bytes here.
    "ProfileResponse": (
        ("empty_trace", 7, _field.TYPE_BOOL, ""),
        ("xspace", 8, _field.TYPE_BYTES, ""),
    ),
}


@lru_cache(maxsize=1)
def messages() -> dict[str, Any]:
    """Return the protobuf classes, from a pool of their own: TensorFlow may have its own in this process."""
    file = descriptor_pb2.FileDescriptorProto(
        name="tfprof_widgets/profiler_service.proto", package="tfprof_widgets.service", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind, of in fields:
            field = message.field.add(name=field_name, number=number, type=kind, label=_field.LABEL_OPTIONAL)
            if of:
                field.type_name = f".{file.package}.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # type: ignore[no-untyped-call, unused-ignore]
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{name}"))  # type: ignore[no-untyped-call, unused-ignore]
        for name in _MESSAGES
    }


def grpc_module() -> ModuleType:
    """Import gRPC and return it.

    Raises
    ------
    CaptureError
        If it isn't installed.
    """
    try:
        import grpc
    except ImportError as error:
        raise CaptureError(f"{_NO_GRPC}  ({error})") from None
    return grpc


class Worker:
    """One program with a profiler server: a connection to it. Closing it takes a running request back."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._channel = grpc_module().insecure_channel(address, options=_CHANNEL)

    def greet(self, timeout_s: float) -> Any:
        """Ask for a method that no server has; return the future, whose ``UNIMPLEMENTED`` says that a server is there."""
        return self._channel.unary_unary(f"{_SERVICE}Greet").future(b"", timeout=timeout_s)

    def profile(self, duration_s: float, options: Options, repository: str, run: str, timeout_s: float) -> Any:
        """Ask for a profile; return the future of a ``ProfileResponse``.

        Parameters
        ----------
        duration_s
            How long to record.
        options
            What to record.
        repository, run
            Servers that cannot send a profile back write it to ``repository/run/<address>.xplane.pb``, as the server sees it.
        timeout_s
            After which the request is given up.
        """
        classes = messages()
        duration_ms = max(1, round(1000 * duration_s))
        request = classes["ProfileRequest"](
            duration_ms=duration_ms,
            max_events=1_000_000,
            repository_root=repository,
            session_id=run,
            host_name=self.address,
            emit_xspace=True,
            opts=classes["ProfileOptions"](
                include_dataset_ops=True,
                host_tracer_level=options.host_level,
                device_tracer_level=options.device_level,
                python_tracer_level=int(options.python),
                version=1,
                duration_ms=duration_ms,
            ),
        )
        call = self._channel.unary_unary(
            f"{_SERVICE}Profile",
            request_serializer=classes["ProfileRequest"].SerializeToString,
            response_deserializer=classes["ProfileResponse"].FromString,
        )
        return call.future(request, timeout=timeout_s)

    def file_name(self) -> str:
        """Name of the file that the server writes, where it writes one."""
        return f"{self.address.replace(':', '_')}.xplane.pb"

    def close(self) -> None:
        """End the connection; a server that is still recording for it stops."""
        self._channel.close()


def greeted(future: Any, address: str) -> str:
    """Say why a greeting wasn't answered; empty if a server is there."""
    error = future.exception()
    if error is None or (_code(error) == "UNIMPLEMENTED" and "http2 header" not in _details(error)):
        return ""
    return explain(error, address)


def is_busy(error: Any) -> bool:
    """Whether a server refused because it is being profiled already."""
    return "another profil" in _details(error).lower()


def explain(error: Any, address: str) -> str:
    """Say in words what a failed request means, and what to do."""
    code, details = _code(error), _details(error)
    low = details.lower()
    if is_busy(error):
        return (
            f"{address} is being profiled already (by TensorBoard, by another notebook, or by the program itself). "
            "A program has one profiler session at a time: try again when that one has ended."
        )
    if "connection refused" in low:
        port = address.rpartition(":")[2]
        return (
            f"Nothing listens at {address} (connection refused). The program to be profiled must start its server: "
            f"tf.profiler.experimental.server.start({port}). If it has: is this the right port, and does a container publish it "
            f"(docker run -p {port}:{port})?"
        )
    if "resolv" in low or "lookup" in low or "domain name" in low:
        return f"The host of {address} is not known here ({details}). Check the name, or give the IP address."
    if "http/2" in low or "settings frame" in low or "http2 header" in low or "wrong version" in low:
        return (
            f"What answers at {address} is not a profiler server (TensorBoard's or Jupyter's own port?). Give the port that "
            "the program passed to tf.profiler.experimental.server.start."
        )
    if code == "UNIMPLEMENTED":
        return (
            f"A gRPC server answers at {address}, but not a profiler server. Give the port that the program passed to "
            "tf.profiler.experimental.server.start."
        )
    if code == "DEADLINE_EXCEEDED":
        return f"No answer from {address} in time. A firewall, a wrong address, or a program that hangs?"
    if code == "UNAVAILABLE":
        return f"The connection to {address} failed or broke off ({details}). Does the program still run?"
    return f"{address} answered with an error: {code}: {details}"


def new_run_id() -> str:
    """Return a name for a run that none of another client's has."""
    return f"tfprof_{uuid.uuid4().hex[:12]}"


def _code(error: Any) -> str:
    code = getattr(error, "code", None)
    status = code() if callable(code) else None
    return str(getattr(status, "name", type(error).__name__))


def _details(error: Any) -> str:
    details = getattr(error, "details", None)
    return str((details() if callable(details) else None) or error)
