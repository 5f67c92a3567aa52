"""The reader against the plain protobuf messages, event by event and stat by stat; and what it does with bad input."""

import gzip
import random

import numpy as np
import pytest

from generate import Compressed, Ref, Space, Text, UInt, cpu_fit_capture, gpu_capture
from generate.builder import message_classes
from tfprof_widgets.analysis.device import device_events
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.op_stats import op_stats
from tfprof_widgets.xspace import XSpaceError, read


def text(data):
    return data.decode("utf-8", "replace")


class Plain:
    """What a file holds, by iteration over its protobuf messages."""

    def __init__(self, data):
        self.message = message_classes()["XSpace"].FromString(data)
        self.events = []
        for plane in self.message.planes:
            names = {entry.key: text(entry.value.name) for entry in plane.event_metadata}
            stats = {entry.key: text(entry.value.name).lstrip("\0") for entry in plane.stat_metadata}
            for line in plane.lines:
                for event in line.events:
                    start = line.timestamp_ns * 1000 + event.offset_ps
                    values = [(stats.get(s.metadata_id), *self.value(s, stats)) for s in event.stats]
                    self.events.append((names.get(event.metadata_id), start, event.duration_ps, values))

    @staticmethod
    def value(stat, stats):
        kind = stat.WhichOneof("value")
        if kind is None:
            return None, None
        value = getattr(stat, kind)
        if kind == "ref_value":
            return str, stats.get(value, "")
        if kind == "compressed_str":
            return str, text(gzip.decompress(value))
        if kind in ("str_value", "bytes_value"):
            return str, text(value)
        return (float if kind == "double_value" else int), value


def check_against_protobuf(data):
    space, plain = read(data), Plain(data)
    assert space.n_events == len(plain.events)
    assert [space.meta_name[m] for m in space.event_meta] == [e[0] for e in plain.events]
    # No epoch times among these files, so nothing was taken off.
    assert space.event_start_ps.tolist() == [e[1] for e in plain.events]
    assert space.event_duration_ps.tolist() == [e[2] for e in plain.events]

    by_name: dict[str, list] = {}
    for i, event in enumerate(plain.events):
        for name, kind, value in event[3]:
            by_name.setdefault(name, []).append((i, kind, value))
    assert set(space.stats.names) == {n for n in by_name if n is not None}
    for name, found in by_name.items():
        owners, ints = space.stats.ints(name)
        expected = [(i, v if v < 2**63 else v - 2**64) for i, kind, v in found if kind is int]
        assert list(zip(owners.tolist(), ints.tolist(), strict=True)) == expected
        owners, floats = space.stats.floats(name)
        numbers = [(i, float(v)) for i, kind, v in found if kind in (int, float)]
        assert owners.tolist() == [i for i, _ in numbers]
        assert np.array_equal(floats, [v for _, v in numbers], equal_nan=True)  # real files have nan
        owners, codes, texts = space.stats.strings(name)
        assert [(o, texts[c]) for o, c in zip(owners.tolist(), codes.tolist(), strict=True)] == [
            (i, v) for i, kind, v in found if kind is str
        ]
        assert len(set(texts)) == len(texts)
        assert space.stats.owners(name).tolist() == [i for i, _, _ in found]
    return space, plain


@pytest.mark.parametrize(
    "space",
    [
        cpu_fit_capture(1, 3, validation_batches=1),
        gpu_capture(2, 2, dialect="old"),
        gpu_capture(1, 2, dialect="amd", xla=True),
        gpu_capture(1, 2, attribution="none", grouped=True),
    ],
    ids=["cpu", "old", "amd", "none"],
)
def test_generated_captures_equal_protobuf(space):
    check_against_protobuf(space.bytes())


@pytest.mark.parametrize(
    "name", ["cpu_loop", "eager", "keras2_fit", "macos_old", "windows_no_cupti", "t4_fit_2", "jax_mi300_old"]
)
def test_real_captures_equal_protobuf(capture, name):
    space, plain = check_against_protobuf(capture(name).read_bytes())
    for i in range(0, space.n_events, max(1, space.n_events // 500)):
        details, expected = space.stats.of(i), {n: v for n, _, v in plain.events[i][3]}
        readable = {k: text(v) if isinstance(v, bytes) else v for k, v in details.items()}
        assert repr(sorted(readable.items())) == repr(sorted(expected.items()))


def test_largest_captures_equal_protobuf_in_number_and_times(capture):
    for name in ("cpu_fit", "gpu_w0"):
        data = capture(name).read_bytes()
        space, plain = read(data), Plain(data)
        assert space.event_start_ps.tolist() == [e[1] for e in plain.events]
        assert len(space.stats) == sum(len(e[3]) for e in plain.events)


# ---- stats ----------------------------------------------------------------------------------------------------


def test_a_stat_whose_type_changes_from_event_to_event():
    space = Space()
    line = space.plane("/host:CPU").line("python")
    values = [
        0.25,
        1,
        -1,
        2**63 + 5,
        UInt(7),
        "by reference",
        Text("in place"),
        Compressed("zipped"),
        b"\xff\x00raw",
        None,
        True,
        2.0,
    ]
    for i, value in enumerate(values):
        line.event("e", i, 1, {"level 0": value, "other": i})
    stats = read(space.bytes()).stats

    owners, ints = stats.ints("level 0")
    assert dict(zip(owners.tolist(), ints.tolist(), strict=True)) == {1: 1, 2: -1, 3: 5 - 2**63, 4: 7, 10: 1}
    owners, floats = stats.floats("level 0")
    assert dict(zip(owners.tolist(), floats.tolist(), strict=True)) == {
        0: 0.25,
        1: 1,
        2: -1,
        3: 2.0**63 + 5,
        4: 7,
        10: 1,
        11: 2,
    }
    owners, codes, texts = stats.strings("level 0")
    assert [texts[c] for c in codes] == ["by reference", "in place", "zipped", "\ufffd\0raw"]
    assert owners.tolist() == [5, 6, 7, 8]
    assert stats.owners("level 0").tolist() == list(range(len(values)))
    assert [stats.of(i)["level 0"] for i in range(len(values))] == [
        0.25, 1, -1, 2**63 + 5, 7, "by reference", "in place", "zipped", b"\xff\x00raw", None, 1, 2.0,
    ]  # fmt: skip
    for nothing in (stats.ints("absent"), stats.floats("absent"), stats.strings("absent")):
        assert not len(nothing[0])


def test_one_text_by_reference_in_place_and_compressed_is_one_text():
    space = Space()
    for name in ("/host:CPU", "/device:GPU:0"):
        line = space.plane(name).line("line")
        for value in ("same", Text("same"), Compressed("same")):
            line.event("e", 0, 1, s=value)
    _, codes, texts = read(space.bytes()).stats.strings("s")
    assert texts == ["same"]
    assert codes.tolist() == [0] * 6


def test_references_that_lead_nowhere_and_stats_without_a_name():
    space = Space()
    line = space.plane("/host:CPU").line("python")
    line.event("e", 0, 1, good="text", lost=Ref(99))
    line.event("e", 1, 1).message.stats.add(metadata_id=77, int64_value=5)
    stats = read(space.bytes()).stats
    _, codes, texts = stats.strings("lost")
    assert [texts[c] for c in codes] == [""]
    assert stats.of(0) == {"good": "text", "lost": ""}
    assert stats.of(1) == {"(unknown stat)": 5}


def test_compressed_text_that_is_no_gzip_stays_as_it_is():
    space = Space()
    event = space.plane("/host:CPU").line("python").event("e", 0, 1, s=Compressed("x"))
    event.message.stats[0].compressed_str = b"not gzip"
    _, _, texts = read(space.bytes()).stats.strings("s")
    assert texts == ["not gzip"]


def test_same_ids_mean_other_things_in_another_plane():
    space = Space()
    for plane, name, stat in (("/host:CPU", "a", "x"), ("/device:GPU:0", "b", "y")):
        space.plane(plane).line("line").event(name, 0, 1, {stat: 3})
    result = read(space.bytes())
    assert [result.meta_name[m] for m in result.event_meta] == ["a", "b"]
    assert result.stats.ints("x")[0].tolist() == [0]
    assert result.stats.ints("y")[0].tolist() == [1]


# ---- events ---------------------------------------------------------------------------------------------------


def test_an_unset_offset_is_the_start_of_the_line():
    space = Space()
    line = space.plane("/host:CPU").line("python", timestamp_ns=5_000)
    line.event("e", 7, 1).message.ClearField("offset_ps")
    line.event("e", 7, 1)
    result = read(space.bytes())
    assert result.event_start_ps.tolist() == [5_000_000, 7_000_000]
    assert result.event_occurrences is None


def test_aggregated_events_have_a_number_and_no_start():
    space = Space()
    line = space.plane("/host:CPU").line("python")
    line.aggregate("e", 12, 340)
    line.event("e", 3, 1)
    result = read(space.bytes())
    assert result.event_occurrences.tolist() == [12, 0]
    assert result.event_duration_ps.tolist() == [340_000_000, 1_000_000]


def test_epoch_timestamps_become_relative():
    epoch_ns = 1_700_000_000_000_000_000
    space = Space()
    space.plane("/host:CPU").line("python", timestamp_ns=epoch_ns + 500).event("e", epoch_ns // 1000 + 2, 1)
    space.plane("/device:GPU:0").line("Stream", timestamp_ns=epoch_ns).event("k", epoch_ns // 1000 + 9, 1)
    result = read(space.bytes())
    assert result.event_start_ps.tolist() == [2_000_000, 9_000_000]
    assert result.line_timestamp_ns.tolist() == [500, 0]
    assert result.time_origin_ns == epoch_ns


def test_times_before_the_line_and_before_zero_are_kept():
    space = Space()
    line = space.plane("/host:CPU").line("python", timestamp_ns=1_000)
    line.event("e", -3, 1)
    assert read(space.bytes()).event_start_ps.tolist() == [-3_000_000]


def test_impossible_times_are_repaired_and_said():
    space = Space()
    line = space.plane("/host:CPU").line("python", timestamp_ns=1_000)
    line.event("good", 5, 1)
    line.event("bad", 5, 1).message.duration_ps = -1
    line.event("bad", 5, 1).message.offset_ps = -(2**63)
    line.event("bad", 5, 1).message.offset_ps = 2**63 - 1  # and the line's time on top leaves an int64
    result = read(space.bytes())
    assert result.event_start_ps.tolist() == [5_000_000, 1_000_000, 1_000_000, 1_000_000]
    assert result.event_duration_ps.tolist() == [1_000_000, 0, 0, 0]
    assert any("3 of 4 events have impossible times" in note for note in result.notes)


def test_names_that_are_not_utf8_are_read():
    space = Space()
    plane = space.plane(b"/host:CPU")
    plane.line(b"thr\xe9ad").event(b"op\xff:Op", 0, 1, {b"st\xfeat".decode("latin-1"): 1})
    space.message.hostnames.append(b"h\xf6st")
    space.error(b"bad \xff").warning("fine ü")
    result = read(space.bytes())
    assert result.meta_name == ["op\ufffd:Op"]
    assert result.line_name == ["thr\ufffdad"]
    assert (result.hostname, result.errors, result.warnings) == ("h\ufffdst", ["bad \ufffd"], ["fine ü"])


def test_stat_names_that_begin_with_a_nul_byte():
    space = Space()
    space.plane("/host:CPU").line("python").event("e", 0, 1, {"\0group_id": 4})
    assert read(space.bytes()).stats.ints("group_id")[1].tolist() == [4]


def test_missing_metadata_ids_get_a_name_and_a_note():
    space = Space()
    for name in ("/host:CPU", "/device:GPU:0"):
        line = space.plane(name).line("line")
        line.event("known", 0, 1)
        line.event("known", 1, 1).message.metadata_id = 99
        line.event("known", 2, 1).message.metadata_id = -5
    empty = space.plane("/host:empty").line("line").event("gone", 0, 1)
    del empty.line.plane.message.event_metadata[:]
    result = read(space.bytes())
    names = [result.meta_name[m] for m in result.event_meta]
    assert names == ["known", "unknown event 99", "unknown event -5"] * 2 + ["unknown event 1"]
    assert result.meta_plane[result.event_meta].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert any("5 of 7 events name no known event type" in note for note in result.notes)


def test_metadata_ids_far_apart_and_twice():
    space = Space()
    plane = space.plane("/host:CPU")
    for number, name in ((2**62, "far"), (-(2**62), "negative"), (3, "first"), (3, "again")):
        plane.event_type(name, id=number)
    line = plane.line("line")
    for number in (2**62, -(2**62), 3, 2**63 - 1):
        line.event("far", 0, 1).message.metadata_id = number
    result = read(space.bytes())
    # As in a map, the last entry of a key counts.
    assert [result.meta_name[m] for m in result.event_meta] == [
        "far",
        "negative",
        "again",
        f"unknown event {2**63 - 1}",
    ]


def test_lines_planes_and_what_they_say():
    space = Space("host-1")
    plane = space.plane("/device:GPU:3", id=3, stats={"clock_rate": 5, "device_vendor": "Nvidia", "share": 0.5})
    plane.line("Stream #7(Kernel)", id=-7, display_name="compute", timestamp_ns=12)
    plane.line("", id=8)
    space.plane("Task Environment", stats={"profile_start_time": 2**63 + 1, "profile_options": b"\x08\x01"})
    result = read(space.bytes())
    assert result.plane_name == ["/device:GPU:3", "Task Environment"]
    assert result.plane_stats[0] == {"clock_rate": 5, "device_vendor": "Nvidia", "share": 0.5}
    assert result.environment == {"profile_start_time": 2**63 + 1, "profile_options": b"\x08\x01"}
    assert result.line_name == ["compute", ""]
    assert result.line_id.tolist() == [-7, 8]
    assert result.hostname == "host-1"
    assert result.n_events == 0
    assert len(Trace(result)) == 0


def test_metadata_stats_are_shared_by_the_events_of_a_type():
    space = Space()
    plane = space.plane("/device:GPU:0")
    plane.event_type("fusion.1", display_name="fusion", stats={"flops": 100, "hlo_category": "fusion"})
    plane.line("XLA Ops").event("fusion.1", 0, 1, hlo_category="own")
    trace = Trace(read(space.bytes()))
    assert trace.space.meta_display_name == ["fusion"]
    assert trace.stats_of(0) == {"flops": 100, "hlo_category": "own"}


# ---- bad input ------------------------------------------------------------------------------------------------


def test_gzip_is_unpacked(tmp_path):
    space = cpu_fit_capture(1, 1)
    assert read(space.gzip()).n_events == space.n_events
    path = tmp_path / "host.xplane.pb.gz"
    path.write_bytes(space.gzip())
    assert read(path).name == str(path)
    with pytest.raises(XSpaceError, match=r"host\.gz: the gzip data is damaged"):
        read(space.gzip()[:-20], name="host.gz")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"PK\x03\x04 a zip", "not a TensorFlow profile"),
        (b"{'json': 1}", r"a text .* what report\.save\(\) wrote"),
        (("<!DOCTYPE html>\n<p>" + 2000 * "é").encode(), "a text"),
        (b"\x00" * 100, "not a TensorFlow profile|no plane"),
        (b"\x12\x03bad", "no plane in it"),  # only an error in it
        (b"\xfa\x01\x03abc", "no plane in it"),  # only a field that nobody knows
        (cpu_fit_capture(1, 1).bytes()[:-3], "not a TensorFlow profile, or a damaged one"),
        (Space("host").bytes(), "no plane in it"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
    ],
)
def test_bad_input_is_refused_with_its_reason(data, message):
    with pytest.raises(XSpaceError, match=message) as refused:
        read(data, name="my.xplane.pb")
    assert str(refused.value).startswith("my.xplane.pb: ")


def test_a_damaged_real_file_is_refused(capture):
    with pytest.raises(XSpaceError):
        read(capture("damaged"))


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent.xplane.pb")


# ---- mutations ------------------------------------------------------------------------------------------------


def mutated(data, chance):
    """Return the bytes with a little damage: flipped, cut, repeated, moved or overwritten."""
    result = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(result))
        length = chance.choice((1, 2, 8, 60))
        kind = chance.randrange(6)
        if kind == 0:
            result[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            result[at : at + length] = chance.randbytes(length)
        elif kind == 2:
            del result[at : at + length]
        elif kind == 3:
            result[at:at] = result[at : at + length]
        elif kind == 4:
            result[at : at + length] = b"\xff" * length
        else:
            result = result[: max(at, 1)]
        if not result:
            break
    return bytes(result)


WILD = (0, 1, -1, 2**31, -(2**31), 2**60, 2**62, 2**63 - 1, -(2**63), 10**18, 5, 99)


def mutated_values(data, chance):
    """Return the bytes with impossible values in valid messages: what a decoder lets through."""
    message = message_classes()["XSpace"].FromString(data)
    for _ in range(chance.choice((1, 2, 5, 20))):
        plane = chance.choice(message.planes)
        line = chance.choice(plane.lines) if plane.lines else None
        event = chance.choice(line.events) if line and line.events else None
        stats = event.stats if event and event.stats else plane.stats
        stat = chance.choice(stats) if stats else None
        entry = chance.choice(plane.event_metadata) if plane.event_metadata else None
        targets = [
            (plane, "id"), (plane, "name"), (line, "id"), (line, "timestamp_ns"), (line, "name"), (event, "metadata_id"),
            (event, "offset_ps"), (event, "offset_ps"), (event, "duration_ps"), (event, "duration_ps"), (event, "num_occurrences"),
            (stat, "metadata_id"), (stat, "int64_value"), (stat, "uint64_value"), (stat, "double_value"), (stat, "str_value"),
            (stat, "ref_value"), (stat, "compressed_str"), (entry, "key"), (entry and entry.value, "name"),
            (chance.choice(plane.stat_metadata) if plane.stat_metadata else None, "key"),
        ]  # fmt: skip
        target, field = chance.choice(targets)
        if target is None:
            continue
        value = chance.choice(WILD)
        if field in ("uint64_value", "ref_value"):
            value %= 2**64
        elif field == "double_value":
            value = chance.choice((float("nan"), float("inf"), -1.0, 1e300, 0.5))
        elif field in ("name", "str_value", "compressed_str"):
            value = chance.choice(
                (
                    b"",
                    b"\xff\xfe",
                    b"::",
                    b":",
                    b"a:B",
                    b"/device:GPU:x",
                    b"Steps",
                    b"IDLE",
                    b"%s" * 9,
                    b"EagerExecute: ",
                )
            )
        setattr(target, field, value)
    return message.SerializeToString()


def _small():
    odd = Space("h")
    line = odd.plane("/host:CPU").line("python", id=-1, timestamp_ns=3)
    for i, value in enumerate((1, 0.5, "ref", Text("text"), b"bytes", Compressed("zip"), UInt(3), None)):
        line.event("a/b:Op", i, 2, tf_op=value, is_func=value, group_id=value, eager_op=value, self_duration_ps=value)
        line.event("EagerExecute", i, 1, is_func=0, eager_op="MatMul")
    line.aggregate("a/b:Op", 3, 9)
    return {
        "odd": odd.bytes(),
        "cpu": cpu_fit_capture(1, 1, elements=2, variables=1).bytes(),
        "gpu": gpu_capture(1, 1).bytes(),
        "old": gpu_capture(2, 1, dialect="old").bytes(),
        "xla": gpu_capture(1, 1, dialect="amd", xla=True, grouped=True).bytes(),
    }


def survives(data):
    """Read a file and use it. False if it was refused; anything but `XSpaceError` is a failure."""
    try:
        space = read(data)
    except XSpaceError:
        return False
    trace = Trace(space)
    assert (trace.self_ps <= trace.duration_ps).all()
    assert (trace.depth >= 0).all()
    for stat in space.stats.names:
        space.stats.ints(stat), space.stats.floats(stat), space.stats.strings(stat)
    for event in range(0, len(trace), 17):
        trace.stats_of(event)
    device_events(trace)
    ops = op_stats(trace)
    assert (ops["self_time_us"] <= ops["total_time_us"] * (1 + 1e-9) + 1e-6).all()
    assert (ops["self_time_us"] >= 0).all()
    return True


@pytest.mark.parametrize("kind", ["odd", "cpu", "gpu", "old", "xla"])
@pytest.mark.parametrize("mutate", [mutated, mutated_values])
@pytest.mark.filterwarnings("error")
def test_mutated_files_give_an_error_or_a_result(kind, mutate):
    """Whatever the damage: a refusal with its reason, or numbers that hold together. Never another exception or a hang."""
    original = _small()[kind]
    used = 0
    for seed in range(150):
        try:
            used += survives(mutate(original, random.Random(seed)))
        except Exception as error:
            raise AssertionError(f"{kind}, seed {seed}: {error!r}") from error
    assert used >= 10, "the mutations destroy everything, so they test nothing"
