"""Damaged profiles: refused with a clear error, or analysed as far as they go; never an exception from inside a tool."""

from __future__ import annotations

import os
import random
import warnings

import pytest

from generate import cpu_fit_capture, gpu_capture
from generate.builder import message_classes
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import XSpaceError, read

# More with e.g. TFPROF_FUZZ=20000; half of the mutations change bytes, half the messages' fields.
MUTATIONS = int(os.environ.get("TFPROF_FUZZ", "600"))
BATCHES = 12
TOOLS = (
    "steps", "ops", "overview", "input_pipeline", "kernels", "memory", "memory_summary", "memory_peak", "pod", "events",
    "timelines", "advice",
)  # fmt: skip
EXTREMES = (0, 1, -1, 2, 255, 2**31, -(2**31), 2**53, 2**62, 2**63 - 1, -(2**63))


def captures() -> list[bytes]:
    return [
        cpu_fit_capture(epochs=2, batches=3, variables=1, elements=2, validation_batches=1).bytes(),
        gpu_capture(devices=2, steps=2, dialect="current").bytes(),
        gpu_capture(devices=1, steps=2, dialect="old").bytes(),
        gpu_capture(devices=1, steps=2, dialect="amd", xla=True).bytes(),
    ]


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(changed))
        how = rng.randrange(4)
        if how == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            changed[at] = rng.randrange(256)
        elif how == 2:
            del changed[at : at + rng.randrange(1, 40)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 10))
    return bytes(changed)


def change_fields(data: bytes, rng: random.Random) -> bytes:
    """Change the messages themselves, so that the file still parses: ids, times, names, types of stats."""
    space = message_classes()["XSpace"].FromString(data)
    for _ in range(rng.choice((1, 3, 12))):
        plane = rng.choice(space.planes)
        how = rng.randrange(8)
        if how == 0 and plane.event_metadata:
            del plane.event_metadata[rng.randrange(len(plane.event_metadata))]
        elif how == 1 and plane.stat_metadata:
            rng.choice(plane.stat_metadata).value.name = rng.choice(
                (b"", b"\xff\xfe", b"step_num", b"correlation_id", b"kernel_details")
            )
        elif how == 2:
            plane.name = rng.choice((b"", b"/device:GPU:x", b"/host:CPU", b"\x00", b"/device:GPU:0"))
        elif how == 3 and plane.event_metadata:
            rng.choice(plane.event_metadata).value.name = rng.choice(
                (b"", b"a:b:c", b"Iterator::", b":", b"train", b"\xc3\x28", b"MemcpyH2D")
            )
        elif plane.lines:
            line = rng.choice(plane.lines)
            if how == 4:
                line.timestamp_ns = rng.choice(EXTREMES)
            elif how == 5:
                line.name, line.id = rng.choice((b"", b"Steps", b"python", b"XLA Ops")), rng.choice(EXTREMES)
            elif line.events:
                event = rng.choice(line.events)
                if how == 6:
                    event.duration_ps, event.offset_ps = rng.choice(EXTREMES), rng.choice(EXTREMES)
                elif event.stats:
                    stat = rng.choice(event.stats)
                    kind = rng.choice(
                        ("double_value", "uint64_value", "int64_value", "str_value", "ref_value", "bytes_value")
                    )
                    value = {
                        "double_value": float("nan"),
                        "str_value": b"\xff",
                        "bytes_value": b"",
                        "uint64_value": 2**64 - 1,
                    }
                    setattr(stat, kind, value.get(kind, rng.choice((0, 3, 2**62))))
    return space.SerializeToString()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_damage_makes_a_tool_fail(batch):
    rng = random.Random(batch)
    originals = captures()
    refused = analysed = 0
    for number in range(MUTATIONS // BATCHES):
        data = (change_bytes if number % 2 else change_fields)(rng.choice(originals), rng)
        try:
            space = read(data)
        except XSpaceError:
            refused += 1
            continue
        report = Report([space])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for tool in TOOLS:
                getattr(report, tool)
        analysed += 1
    assert analysed > MUTATIONS // BATCHES // 4
    assert refused + analysed == MUTATIONS // BATCHES
