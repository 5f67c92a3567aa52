"""Facts about the machine that decide whether its GPUs can be profiled. Nothing is judged here; see `machine_checks`.

They are read from the places where Linux, the drivers and the loader keep them, under a root directory and with the
environment variables that are given, so that other machines can be looked at in a test.
"""

from __future__ import annotations

import glob
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_TIMEOUT_S = 10
# Where the commands are that PATH doesn't always name.
_SYSTEM_PATH = ("/sbin", "/usr/sbin", "/usr/lib/wsl/lib")
_CUPTI_HOMES = (
    "usr/local/cuda*/extras/CUPTI/lib64",
    "usr/local/cuda*/targets/*/lib",
    "opt/cuda/extras/CUPTI/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
)
# Bits of Linux' capabilities.
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_INJECTED = re.compile(
    r"nsight|nsys|ToolsInjection|libcuda-injection|cupti_trace_injection|nvprof|cuda-gdb", re.IGNORECASE
)
_INJECTION_VARIABLES = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD", "NSYS_PROFILING_SESSION_ID")


@dataclass(frozen=True)
class Library:
    """Where a shared library is, and how the loader comes to it (a word or two; empty if it does not)."""

    path: str
    via: str = ""


@dataclass(frozen=True)
class Machine:
    """What is known about this machine and this process.

    Attributes
    ----------
    system : str
        ``Linux``, ``Windows`` or ``Darwin``, as `platform.system` says it.
    machine : str
        The processor's architecture.
    is_wsl : bool
        Whether this Linux runs inside Windows.
    container : str
        ``Docker``, ``Podman``, ``Kubernetes``, or empty.
    nvidia_devices : list of str
        The driver's device files, ``/dev/nvidia0`` and so on (on WSL ``/dev/dxg``).
    nvidia_smi : list of str or None
        A line a GPU (name, driver); None if there is no ``nvidia-smi``.
    nvidia_smi_error : str
        What it said if it failed.
    has_kfd : bool
        Whether AMD's driver is there.
    cupti, roctracer : list of Library
        Those that were found, those the loader finds first.
    loader_check : str
        What ``ldconfig -p`` says of libcupti; empty if nothing.
    admins_only : bool or None
        Whether NVIDIA's driver lets only administrators profile; None where it doesn't tell.
    may_profile : bool
        Whether this process is such an administrator (root's capabilities, in a container too).
    injected : list of str
        Signs of another profiler in this process.
    environment : dict
        Those of the environment variables that matter.
    """

    system: str = ""
    machine: str = ""
    is_wsl: bool = False
    container: str = ""
    nvidia_devices: list[str] = field(default_factory=list)
    nvidia_smi: list[str] | None = None
    nvidia_smi_error: str = ""
    has_kfd: bool = False
    cupti: list[Library] = field(default_factory=list)
    roctracer: list[Library] = field(default_factory=list)
    loader_check: str = ""
    admins_only: bool | None = None
    may_profile: bool = False
    injected: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def has_nvidia_gpu(self) -> bool:
        """Whether NVIDIA's driver shows a GPU here."""
        return bool(self.nvidia_smi or [name for name in self.nvidia_devices if name != "/dev/dxg"])


_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "TF_CPP_MIN_LOG_LEVEL", "CONDA_PREFIX")


def look(root: Path = Path("/"), environment: Mapping[str, str] | None = None, system: str | None = None) -> Machine:
    """Look around.

    Parameters
    ----------
    root
        The directory under which ``/dev``, ``/proc`` and the libraries are.
    environment
        The environment variables; this process's own by default.
    system
        The operating system; this one by default.
    """
    variables = dict(os.environ if environment is None else environment)
    system = platform.system() if system is None else system
    smi, smi_error = _nvidia_smi(variables)
    cache = _run(["ldconfig", "-p"], variables)[0] if system == "Linux" else ""
    kernel = _text(root / "proc/version")
    return Machine(
        system=system,
        machine=platform.machine(),
        is_wsl="microsoft" in kernel.lower(),
        container=_container(root, variables),
        nvidia_devices=_devices(root),
        nvidia_smi=smi,
        nvidia_smi_error=smi_error,
        has_kfd=(root / "dev/kfd").exists(),
        cupti=_libraries("libcupti", root, variables, cache, _CUPTI_HOMES, "nvidia/cuda_cupti/lib"),
        roctracer=_libraries("libroctracer64", root, variables, cache, ("opt/rocm*/lib",), ""),
        loader_check="\n".join(line.strip() for line in cache.splitlines() if "libcupti" in line),
        admins_only=_admins_only(root),
        may_profile=_may_profile(root),
        injected=_injected(root, variables),
        environment={name: variables[name] for name in _VARIABLES if name in variables},
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _run(command: Sequence[str], variables: Mapping[str, str]) -> tuple[str, str]:
    """Return what a command prints, and why there is nothing if it failed; both empty if there is no such command."""
    search = os.pathsep.join([variables.get("PATH", ""), *_SYSTEM_PATH])
    program = shutil.which(command[0], path=search)
    if program is None:
        return "", ""
    try:
        done = subprocess.run(  # noqa: S603 - fixed commands
            [program, *command[1:]],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env=dict(variables),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{type(error).__name__}: {error}"
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        return "", said[0] if said else f"it ended with {done.returncode}"
    return done.stdout, ""


def _nvidia_smi(variables: Mapping[str, str]) -> tuple[list[str] | None, str]:
    out, error = _run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], variables)
    if not out and not error:
        return None, ""
    return [line.strip() for line in out.splitlines() if line.strip()], error


def _devices(root: Path) -> list[str]:
    names = sorted(path.name for path in root.glob("dev/nvidia[0-9]*")) + [path.name for path in root.glob("dev/dxg")]
    return [f"/dev/{name}" for name in names]


def _container(root: Path, variables: Mapping[str, str]) -> str:
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "Kubernetes"
    if (root / ".dockerenv").exists():
        return "Docker"
    if (root / "run/.containerenv").exists():
        return "Podman"
    return "Docker" if re.search(r"docker|containerd", _text(root / "proc/1/cgroup")) else ""


def _libraries(
    name: str, root: Path, variables: Mapping[str, str], cache: str, homes: Sequence[str], wheel: str
) -> list[Library]:
    """Find a library, the ways of the loader first."""
    found: dict[str, str] = {}

    def add(path: str, via: str) -> None:
        found.setdefault(path, via)

    for line in _text(root / "proc/self/maps").splitlines():
        path = line.rpartition(" ")[2]
        if f"/{name}.so" in path:
            add(path, "loaded in this process")
    for directory in filter(None, variables.get("LD_LIBRARY_PATH", "").split(":")):
        for path in sorted(glob.glob(f"{glob.escape(directory)}/{name}.so*")):  # noqa: PTH207 - may be relative
            add(path, "LD_LIBRARY_PATH")
    for line in cache.splitlines():
        if line.strip().startswith(f"{name}.so"):
            add(line.rpartition("=> ")[2].strip(), "ldconfig")
    if wheel:
        for directory in _python_path():
            for file in sorted(Path(directory or ".", wheel).glob(f"{name}.so*")):
                add(str(file), "TensorFlow's own (pip)")
    prefix = variables.get("CONDA_PREFIX")
    elsewhere = [file for home in homes for file in sorted(root.glob(f"{home}/{name}.so*"))]
    elsewhere += sorted(Path(prefix, "lib").glob(f"{name}.so*")) if prefix else []
    for file in elsewhere:
        add(str(file), "")
    return sorted((Library(path, via) for path, via in found.items()), key=lambda library: not library.via)


def _python_path() -> list[str]:
    return sys.path


def _admins_only(root: Path) -> bool | None:
    match = re.search(r"RmProfilingAdminOnly:\s*(\d)", _text(root / "proc/driver/nvidia/params"))
    return None if match is None else match[1] == "1"


def _may_profile(root: Path) -> bool:
    match = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", _text(root / "proc/self/status"), re.MULTILINE)
    rights = int(match[1], 16) if match else 0
    return bool(rights >> _CAP_SYS_ADMIN & 1 or rights >> _CAP_PERFMON & 1)


def _injected(root: Path, variables: Mapping[str, str]) -> list[str]:
    signs = [
        f"{name}={variables[name]}"
        for name in _INJECTION_VARIABLES
        if variables.get(name) and (name.startswith("NSYS") or _INJECTED.search(variables[name]) or "INJECTION" in name)
    ]
    loaded = {
        line.rpartition(" ")[2]
        for line in _text(root / "proc/self/maps").splitlines()
        if "/" in line and _INJECTED.search(line.rpartition("/")[2])
    }
    return signs + sorted(loaded)
