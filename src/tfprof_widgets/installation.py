"""TensorFlow as it is installed here: which distribution, which build, which devices it sees."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .diagnosis import Check
    from .machine import Machine

_TENSORFLOWS = (
    "tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tensorflow-macos", "tensorflow-rocm", "tensorflow-intel",
    "intel-tensorflow", "tensorflow-cpu-aws",
)  # fmt: skip
# One is made of the other: these go together.
_WRAPPERS = ("tensorflow-macos", "tensorflow-intel", "tensorflow-cpu-aws")
_OTHERS = ("keras", "tensorflow-metal", "numpy", "pyarrow", "protobuf", "anywidget", "bokeh", "ipywidgets")


_TIMEOUT_S = 120


@dataclass(frozen=True)
class Installation:
    """What `import tensorflow` gives.

    Attributes
    ----------
    distributions : dict
        Installed distributions of TensorFlow and their versions.
    versions : dict
        Versions of the packages that matter beside it.
    version : str
        TensorFlow's own; empty if it cannot be imported.
    error : str
        Why it cannot be imported.
    build : dict
        What it says about its build (``is_cuda_build``, ``cuda_version``, …).
    gpus : list of str
        The GPUs that it sees.
    log : list of str
        What its log says about GPUs while it is imported.
    """

    distributions: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    version: str = ""
    error: str = ""
    build: dict[str, Any] = field(default_factory=dict)
    gpus: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def is_cuda_build(self) -> bool:
        """Whether it was built for NVIDIA's GPUs."""
        return bool(self.build.get("is_cuda_build"))

    @property
    def is_rocm_build(self) -> bool:
        """Whether it was built for AMD's GPUs."""
        return bool(self.build.get("is_rocm_build"))

    @property
    def has_metal(self) -> bool:
        """Whether Apple's plug-in is installed."""
        return "tensorflow-metal" in self.versions


def installation() -> Installation:
    """Import TensorFlow and ask it: in this process where it is imported already, else in one of its own.

    There, what it prints and loads does not disturb the user's, and one that crashes or hangs can be told.
    """
    from .tensorflow_log import listening

    distributions = {name: version for name in _TENSORFLOWS if (version := _version(name))}
    versions = {name: version for name in _OTHERS if (version := _version(name))}
    log: list[str] = []
    if "tensorflow" in sys.modules:
        with listening(log):
            told = _ask_here()
        told["log"] += log
    else:
        told = _ask_elsewhere()
    return Installation(distributions, versions, **told)


def _ask_here() -> dict[str, Any]:
    """Return the fields of an `Installation` that TensorFlow itself tells."""
    from .session import TensorFlowMissingError, describe_error, import_tensorflow

    told: dict[str, Any] = {"log": []}
    try:
        tf = import_tensorflow()
        told["version"] = str(getattr(tf, "__version__", ""))
        told["build"] = dict(tf.sysconfig.get_build_info())
        told["gpus"] = [str(device.name) for device in tf.config.list_physical_devices("GPU")]
    except TensorFlowMissingError as missing:
        told["error"] = str(missing)
    except Exception as failure:  # noqa: BLE001 - a driver that does not answer, a vendor's build
        told["log"].append(describe_error(failure))
    return told


_SCRIPT = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from tfprof_widgets.installation import _ask_here
print("\\ntfprof:" + json.dumps(_ask_here(), default=str))
"""


def _ask_elsewhere() -> dict[str, Any]:
    """As `_ask_here`, in another process, whose log is read."""
    from .tensorflow_log import telling

    command = [sys.executable, "-c", _SCRIPT, json.dumps(sys.path)]
    try:
        done = subprocess.run(  # noqa: S603 - this Python, and a fixed script
            command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"Importing TensorFlow took more than {_TIMEOUT_S} s and was given up."}
    except OSError as failure:
        return {"error": f"No Python could be started to import TensorFlow: {failure}"}
    _, marker, answer = done.stdout.rpartition("\ntfprof:")
    if marker:
        told: dict[str, Any] = json.loads(answer)
        told["log"] += telling(done.stderr.splitlines())
        return told
    last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it said nothing")
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return {"error": f"Importing TensorFlow crashed Python ({how}): {last}"}


def installation_checks(installed: Installation, machine: Machine) -> Iterator[Check]:
    """Judge the installation of TensorFlow."""
    from .diagnosis import ERROR, INFO, OK, WARNING, Check

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
    from .diagnosis import ERROR, INFO, WARNING, Check

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


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; empty if there are none."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
