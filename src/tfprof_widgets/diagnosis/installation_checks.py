"""Judging an installation of TensorFlow: whether it can capture anything, and what stands in its way."""

from __future__ import annotations

import platform
import re
import sys
from typing import TYPE_CHECKING

from .check import ERROR, INFO, OK, WARNING, Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .installation import Installation
    from .machine import Machine

# One is made of the other: these go together.
_WRAPPERS = ("tensorflow-macos", "tensorflow-intel", "tensorflow-cpu-aws")


def installation_checks(installed: Installation, machine: Machine) -> Iterator[Check]:
    """Judge the installation of TensorFlow."""
    names = ", ".join(f"{name} {version}" for name, version in installed.distributions.items())
    if not installed.version:
        yield Check(
            "tensorflow",
            ERROR,
            "TensorFlow cannot be imported, so nothing can be captured in this process.",
            installed.error.partition("\n")[0],
            "Opening saved profiles and sampling a server work without it. To capture here, install it and restart the kernel.",
            ('pip install "tensorflow[and-cuda]"   # with NVIDIA GPUs', "pip install tensorflow-cpu   # without"),
        )
    else:
        built = _built_for(installed)
        yield Check("tensorflow", OK, f"TensorFlow {installed.version}, {built}{f' ({names})' if names else ''}.")
    if len([name for name in installed.distributions if name not in _WRAPPERS]) > 1:
        yield Check(
            "several_tensorflows",
            WARNING,
            f"Several distributions of TensorFlow are installed: {names}.",
            "They have the same files: the one installed last has overwritten the others, in part if their versions differ.",
            "Remove all, and install the one that is wanted.",
            (f"pip uninstall {' '.join(installed.distributions)}",),
        )
    yield from _version_checks(installed)
    if installed.version and machine.system == "Windows" and _numbers(installed.version) >= (2, 11):
        yield Check(
            "windows",
            INFO,
            "TensorFlow for Windows has had no GPU support since version 2.11.",
            "Only the host's part of a profile can be recorded.",
            "Use TensorFlow in WSL2 for the GPU.",
            ("wsl --install",),
        )
    if machine.environment.get("TF_CPP_MIN_LOG_LEVEL", "0") >= "3":
        yield Check(
            "log_level",
            INFO,
            f"TF_CPP_MIN_LOG_LEVEL={machine.environment['TF_CPP_MIN_LOG_LEVEL']} hides TensorFlow's errors.",
            "What CUPTI complains about cannot be told then.",
            "Set it to 2 or less before TensorFlow is imported.",
            ("export TF_CPP_MIN_LOG_LEVEL=2",),
        )


def _built_for(installed: Installation) -> str:
    if installed.is_cuda_build:
        cuda = installed.build.get("cuda_version")
        return f"built for NVIDIA GPUs{f' (CUDA {cuda})' if cuda else ''}"
    if installed.is_rocm_build:
        return "built for AMD GPUs (ROCm)"
    return "with Apple's Metal plug-in" if installed.has_metal else "built for CPUs only"


def _version_checks(installed: Installation) -> Iterator[Check]:
    version = installed.version or next(iter(installed.distributions.values()), "")
    tensorflow = _numbers(version)
    numpy, pyarrow = (_numbers(installed.versions.get(name, "")) for name in ("numpy", "pyarrow"))
    if tensorflow and tensorflow < (2, 18) and numpy >= (2,):
        yield Check(
            "numpy",
            ERROR if installed.error else WARNING,
            f"TensorFlow {version} was made for NumPy 1, and NumPy {installed.versions['numpy']} is installed.",
            "TensorFlow works with NumPy 2 from version 2.18 on.",
            "Go back to NumPy 1.26, or update TensorFlow.",
            ('pip install "numpy<2"',),
        )
    if pyarrow >= (26,) and numpy and numpy < (2,):
        yield Check(
            "pyarrow",
            ERROR,
            f"pyarrow {installed.versions['pyarrow']} needs NumPy 2, and NumPy {installed.versions['numpy']} is installed.",
            "Reports cannot be made.",
            "Go back to pyarrow 25, which works with both.",
            ('pip install "pyarrow<26"',),
        )
    if tensorflow[:2] in ((2, 20), (2, 21)):
        yield Check(
            "levels",
            INFO,
            f"TensorFlow {version} ignores the tracer levels (--host-level, --python, --device-level) in its own process.",
            "It always records with the usual ones. Its profiler server follows them: see tfprof_widgets.capture().",
        )
    newest = (3, 12) if tensorflow and tensorflow < (2, 20) else (3, 13)
    if installed.error and sys.version_info[:2] > newest:
        yield Check(
            "python",
            WARNING,
            f"This is Python {platform.python_version()}; TensorFlow may not exist for it yet.",
            "",
            "Use an older Python.",
        )


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; empty if there are none."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
