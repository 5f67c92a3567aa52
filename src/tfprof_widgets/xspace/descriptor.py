"""The XSpace messages, declared in a private descriptor pool.

Only the fields that the package reads are declared, so nothing else is decoded. Three
choices differ from the public ``xplane.proto`` on purpose:

* strings are ``bytes``: real sessions hold names that are not UTF-8, and a strict decoder
  refuses the whole file for one of them;
* maps are repeated messages: a map entry has the same bytes, and a duplicate key (a damaged
  file) then stays visible instead of being an error;
* ``XStat.compressed_str`` (field 8) is declared although TensorFlow 2.21 doesn't have it yet.

The pool is private, so that opening a profile neither imports TensorFlow nor clashes with its
own copy of these messages.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from google.protobuf import descriptor_pb2, descriptor_pool

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor

_Field = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "tfprof_widgets"
_FILE = "tfprof_widgets/xplane.proto"

_INT64 = _Field.TYPE_INT64
_UINT64 = _Field.TYPE_UINT64
_DOUBLE = _Field.TYPE_DOUBLE
_BYTES = _Field.TYPE_BYTES

# message: [(number, name, scalar type or message name, repeated, member of a oneof)]
_MESSAGES: dict[str, list[tuple[int, str, int | str, bool, bool]]] = {
    "XStat": [
        (1, "metadata_id", _INT64, False, False),
        (2, "double_value", _DOUBLE, False, True),
        (3, "uint64_value", _UINT64, False, True),
        (4, "int64_value", _INT64, False, True),
        (5, "str_value", _BYTES, False, True),
        (6, "bytes_value", _BYTES, False, True),
        (7, "ref_value", _UINT64, False, True),
        (8, "compressed_str", _BYTES, False, True),
    ],
    "XEvent": [
        (1, "metadata_id", _INT64, False, False),
        (2, "offset_ps", _INT64, False, True),
        (3, "duration_ps", _INT64, False, False),
        (4, "stats", "XStat", True, False),
        (5, "num_occurrences", _INT64, False, True),
    ],
    "XLine": [
        (1, "id", _INT64, False, False),
        (2, "name", _BYTES, False, False),
        (3, "timestamp_ns", _INT64, False, False),
        (4, "events", "XEvent", True, False),
        (9, "duration_ps", _INT64, False, False),
        (10, "display_id", _INT64, False, False),
        (11, "display_name", _BYTES, False, False),
    ],
    "XEventMetadata": [
        (1, "id", _INT64, False, False),
        (2, "name", _BYTES, False, False),
        (4, "display_name", _BYTES, False, False),
        (5, "stats", "XStat", True, False),
    ],
    "XStatMetadata": [
        (1, "id", _INT64, False, False),
        (2, "name", _BYTES, False, False),
    ],
    "EventMetadataEntry": [
        (1, "key", _INT64, False, False),
        (2, "value", "XEventMetadata", False, False),
    ],
    "StatMetadataEntry": [
        (1, "key", _INT64, False, False),
        (2, "value", "XStatMetadata", False, False),
    ],
    "XPlane": [
        (1, "id", _INT64, False, False),
        (2, "name", _BYTES, False, False),
        (3, "lines", "XLine", True, False),
        (4, "event_metadata", "EventMetadataEntry", True, False),
        (5, "stat_metadata", "StatMetadataEntry", True, False),
        (6, "stats", "XStat", True, False),
    ],
    "XSpace": [
        (1, "planes", "XPlane", True, False),
        (2, "errors", _BYTES, True, False),
        (3, "warnings", _BYTES, True, False),
        (4, "hostnames", _BYTES, True, False),
    ],
}


# Fields that the reader takes as bytes: see `wire`.
_LEFT_AS_BYTES = {("XEvent", "stats"), ("XEventMetadata", "stats")}


@lru_cache(maxsize=2)
def xplane_file(*, stats_as_bytes: bool = False) -> FileDescriptor:
    """Return the file descriptor of the XSpace messages, made once per process.

    Parameters
    ----------
    stats_as_bytes : bool
        Whether events' stats are declared as bytes, which has them left undecoded.
    """
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if any(in_oneof for *_, in_oneof in fields):
            message.oneof_decl.add(name="value")
        for number, field_name, kind, repeated, in_oneof in fields:
            field = message.field.add(
                name=field_name,
                number=number,
                label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
            )
            if stats_as_bytes and (name, field_name) in _LEFT_AS_BYTES:
                field.type = _BYTES
            elif isinstance(kind, str):
                field.type = _Field.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
            else:
                field.type = kind  # type: ignore[assignment]
            if in_oneof:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(_FILE)
