"""TensorFlow as it is installed here: which distribution, which build, which devices it sees."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

_TENSORFLOWS = (
    "tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tensorflow-macos", "tensorflow-rocm", "tensorflow-intel",
    "intel-tensorflow", "tensorflow-cpu-aws",
)  # fmt: skip
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
    from ..tensorflow_log import listening

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
    from ..session import TensorFlowMissingError, describe_error, import_tensorflow

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
from tfprof_widgets.diagnosis.installation import _ask_here
print("\\ntfprof:" + json.dumps(_ask_here(), default=str))
"""


def _ask_elsewhere() -> dict[str, Any]:
    """As `_ask_here`, in another process, whose log is read."""
    from ..tensorflow_log import telling

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


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
