"""A capture whose names try everything: markup, script, mathematics, control characters, bytes that are no text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .gpu import gpu_capture

if TYPE_CHECKING:
    from .builder import Space

_CODE = "globalThis.pwned=1;top.pwned=1;new Image().src='https://example.com/pwned'"

MARKUP = f'<img src=x onerror="{_CODE}"><svg onload="{_CODE}"><b>bold</b>'
SCRIPT = f"</script></style></title></textarea>--><script>{_CODE}</script>"
MATHS = r"$$x$$ \(y\) \[z\]"
REVERSED = "evil\u202etxt.exe\u2066 \u2029 \u200f"
CONTROL = "bell\x07 null\x00 escape\x1b[31m tab\t line\nreturn\r delete\x7f end"
BROKEN = b"surrogate \xed\xa0\x80 latin \xe9 cut \xf0\x9f"
PROTO = "__proto__"
HUGE = "huge/" + "W" * 200_000


def hostile_capture(steps: int = 6) -> Space:
    """Generate the profile of a training loop on two GPUs in which every kind of name is hostile.

    Its numbers are those of `gpu_capture`, with an input that takes long: there are steps, ops, kernels,
    allocations and advice.
    """
    space = gpu_capture(2, steps, marks="train", input_us=4000, hostname=f"host {MARKUP}{REVERSED}")
    space.error(f"error {MARKUP}{CONTROL}").warning(f"warning {SCRIPT}{REVERSED}".encode() + BROKEN)
    # Parts of the names of ops, kernels, threads and stats: the rest of each keeps its sense.
    new = {
        b"model/conv2d": MARKUP,
        b"model/re_lu": PROTO,
        b"model/dense": SCRIPT,
        b"loss/Sparse": MATHS,
        b"SGD/update": CONTROL,
        b"cutlass_cudnn_infer": MARKUP,
        b"ampere_fp16_s16816gemm_fp16_128x64": SCRIPT,
        b"ApplyKerasMomentumKernel": HUGE,
        b"EigenMetaKernel": REVERSED,
        b"sm80_xmma_wgrad": MATHS,
        b"EagerKernelExecute": PROTO,
        b"ExecutorDoneCallback": BROKEN,
        b"ExecutorState::Process": HUGE,
        b"NVIDIA A100-SXM4-40GB": MARKUP,
        b"[64,224,224,3]": MARKUP,
        b"Nvidia": SCRIPT,
        b"python3": MARKUP,
        b"tf_Compute/1105654978": REVERSED,
        b"Stream #20(Kernel)": f"Stream #20({SCRIPT})",
    }
    changed = {old: text if isinstance(text, bytes) else text.encode() for old, text in new.items()}

    def rename(message: object, field: str) -> None:
        text = getattr(message, field)
        for old, made in changed.items():
            text = text.replace(old, made)
        setattr(message, field, text)

    for plane in space.message.planes:
        for line in plane.lines:
            rename(line, "name")
        for entry in (*plane.event_metadata, *plane.stat_metadata):
            rename(entry.value, "name")
    return space
