"""Profiles made for tests and demos: byte-exact XSpace files, by hand or as whole captures.

No real capture may be kept with the project, so these stand in for them: `cpu_fit_capture` for Keras on a CPU,
`gpu_capture` for training on one host's GPUs, `pod_captures` for several hosts.
"""

from .builder import Compressed, Event, Line, Plane, Ref, Space, Text, UInt
from .cpu import cpu_fit_capture
from .gpu import gpu_capture, pod_captures

__all__ = [
    "Compressed", "Event", "Line", "Plane", "Ref", "Space", "Text", "UInt", "cpu_fit_capture", "gpu_capture", "pod_captures",
]  # fmt: skip
