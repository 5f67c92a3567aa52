"""Stats taken apart from their bytes: what protobuf reads, for every way in which protobuf allows to write them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from generate.builder import message_classes
from tfprof_widgets.xspace import wire

KINDS = {
    "double_value": wire.DOUBLE, "uint64_value": wire.UNSIGNED, "int64_value": wire.SIGNED, "str_value": wire.TEXT,
    "bytes_value": wire.BYTES, "ref_value": wire.REFERENCE, "compressed_str": wire.COMPRESSED,
}  # fmt: skip
unsigned = st.integers(0, 2**64 - 1) | st.sampled_from([2**n - d for n in range(0, 65, 7) for d in (0, 1)])
values = st.one_of(
    st.tuples(st.just("double_value"), st.floats(allow_nan=True)),
    st.tuples(st.just("uint64_value"), unsigned),
    st.tuples(st.just("ref_value"), unsigned),
    st.tuples(st.just("int64_value"), st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)),
    st.tuples(st.sampled_from(["str_value", "bytes_value", "compressed_str"]), st.binary(max_size=300)),
    st.just((None, None)),
)
names = st.integers(0, 300) | st.sampled_from([127, 128, 2**14 - 1, 2**14, 2**31, -1])


def message(name, field, value):
    stat = message_classes()["XStat"](metadata_id=name)
    if field is not None:
        setattr(stat, field, value)
    return stat.SerializeToString()


def expected(raw):
    stat = message_classes()["XStat"].FromString(raw)
    field = stat.WhichOneof("value")
    value = None if field is None else getattr(stat, field)
    if field == "double_value":
        value = np.float64(value).tobytes()
    return stat.metadata_id, wire.UNSET if field is None else KINDS[field], value


def told(decoded, index):
    kind, bits = int(decoded.kind[index]), decoded.bits[index]
    for text, where, texts in decoded.texts:
        if index in where:
            assert text == kind
            return int(decoded.id[index]), kind, texts[int(np.searchsorted(where, index))].as_py()
    assert kind not in (wire.TEXT, wire.BYTES, wire.COMPRESSED)
    value = {wire.DOUBLE: bits.tobytes(), wire.SIGNED: int(bits), wire.UNSET: None}.get(kind, int(bits) % 2**64)
    return int(decoded.id[index]), kind, value


def check(raws):
    decoded = wire.decode_stats(pa.array(raws, pa.binary()))
    assert [told(decoded, i) for i in range(len(raws))] == [expected(raw) for raw in raws]


@given(st.lists(st.tuples(names, values), max_size=40))
@settings(max_examples=300, deadline=None)
def test_stats_as_profilers_write_them(stats):
    check([message(name, field, value) for name, (field, value) in stats])


@given(st.lists(st.lists(st.tuples(names, values), max_size=3), max_size=12))
@settings(max_examples=150, deadline=None)
def test_stats_with_fields_missing_repeated_and_in_any_order(stats):
    """Messages one after the other are one message, in which the last of a field counts."""
    check([b"".join(message(name, field, value) for name, (field, value) in parts) for parts in stats])


def test_parts_of_many_stats_join():
    count = 2 * wire._PART + 5
    raws = [message(i % 200, "int64_value", i * i - 7) for i in range(count)]
    decoded = wire.decode_stats(pa.array(raws, pa.binary()))
    index = np.arange(count)
    assert (decoded.id == index % 200).all()
    assert (decoded.bits == index * index - 7).all()
    assert (decoded.kind == wire.SIGNED).all()


def test_a_slice_of_an_array_is_read_from_its_start():
    raws = [message(1, "str_value", b"first"), message(2, "str_value", b"second"), message(3, "int64_value", 5)]
    decoded = wire.decode_stats(pa.array(raws, pa.binary())[1:])
    assert [told(decoded, i) for i in range(2)] == [expected(raw) for raw in raws[1:]]


@pytest.mark.parametrize(
    "raw", [b"\x08", b"\x08\x05\x20", b"\x08\x05\x20\xff", b"\x08\x05\x11\x00", b"\x08\x05\x2a\x09ab", b"\xff"]
)
def test_what_is_cut_off_is_refused(raw):
    with pytest.raises(DecodeError):
        wire.decode_stats(pa.array([message(1, "int64_value", 3), raw], pa.binary()))
