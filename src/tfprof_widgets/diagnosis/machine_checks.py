"""Judging a machine: whether the work of its GPUs can be recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from . import known_messages as known
from .check import ERROR, INFO, OK, WARNING, Check

if TYPE_CHECKING:
    from .installation import Installation
    from .machine import Machine


def machine_checks(machine: Machine, installed: Installation) -> Iterator[Check]:
    """Judge drivers, libraries and rights; only what concerns the GPUs that are here."""
    yield _gpus(machine, installed)
    yield from _log(installed)
    if installed.has_metal:
        yield Check(
            "metal",
            INFO,
            "tensorflow-metal has no device tracer.",
            "Reports have the host's part only; there are no GPU kernels in them.",
            "Apple's Instruments show the GPU's part.",
            ("xcrun xctrace record --template 'Metal System Trace' --attach PID",),
        )
    if installed.is_cuda_build or machine.has_nvidia_gpu:
        if machine.system != "Windows":
            yield _cupti(machine, installed)
        yield from _rights(machine)
        yield from _injected(machine)
    if installed.is_rocm_build or (machine.has_kfd and not machine.has_nvidia_gpu):
        yield _roctracer(machine)
    if machine.is_wsl and (installed.is_cuda_build or machine.has_nvidia_gpu):
        yield Check(
            "wsl",
            INFO,
            "This Linux runs inside Windows (WSL).",
            "The driver is Windows' own; CUPTI works in WSL2 with drivers from version 470 on, and its rights are Windows' too.",
            "If GPU work is missing: in Windows, NVIDIA Control Panel › Desktop › Enable Developer Settings › Manage GPU Performance "
            "Counters › Allow access to all users.",
        )


def _gpus(machine: Machine, installed: Installation) -> Check:
    hidden = {name: value for name, value in machine.environment.items() if name.endswith("VISIBLE_DEVICES")}
    hides = [f"{name}={value}" for name, value in hidden.items() if value.strip() in ("", "-1", "NoDevFiles")]
    here = _what_is_here(machine)
    sees = len(installed.gpus)
    if sees:
        return Check("gpus", OK, f"TensorFlow sees {sees} GPU{'' if sees == 1 else 's'}{f' ({here})' if here else ''}.")
    if not here:
        if machine.nvidia_smi_error:
            return Check(
                "gpus",
                ERROR,
                f"nvidia-smi fails: {machine.nvidia_smi_error}",
                "NVIDIA's driver is installed, but does not work.",
                "Update or reinstall the driver, or reboot after an update.",
                ("nvidia-smi",),
            )
        if machine.is_wsl and "/dev/dxg" in machine.nvidia_devices and installed.is_cuda_build:
            found, do = "No NVIDIA GPU is seen in this WSL.", "See whether the driver in Windows shows it."
            return Check("gpus", INFO, found, "", do, ("nvidia-smi",))
        why = "There is none for the profiler to record; reports have the host's part, which is all there is."
        if machine.container:
            return Check(
                "gpus", INFO, f"No GPU is seen in this container ({machine.container}).", why,
                "If the machine has one, the container must be given it.", ("docker run --gpus all …",),
            )  # fmt: skip
        return Check("gpus", INFO, "No GPU is seen on this machine.", why)
    if hides:
        return Check(
            "gpus",
            WARNING,
            f"TensorFlow sees no GPU, because {' and '.join(hides)} hides them ({here}).",
            "",
            "Unset it before TensorFlow is imported.",
            tuple(f"unset {name.partition('=')[0]}" for name in hides),
        )
    if not installed.version:
        return Check("gpus", INFO, f"There is a GPU here ({here}).")
    if machine.has_kfd and not machine.has_nvidia_gpu:
        if installed.is_rocm_build:
            do, commands = "See whether ROCm shows it.", ("rocminfo",)
        else:
            do, commands = "Install a build for ROCm.", ("pip install tensorflow-rocm",)
        return Check("gpus", WARNING, f"TensorFlow does not see the GPU that is here ({here}).", "", do, commands)
    if not installed.is_cuda_build:
        remove = next(iter(installed.distributions), "tensorflow")
        uninstall = "" if remove == "tensorflow" else f"pip uninstall -y {remove} && "
        return Check(
            "gpus",
            ERROR,
            f"There is an NVIDIA GPU here ({here}), but this TensorFlow was built for CPUs only.",
            "It cannot use the GPU, so there is nothing to record of it.",
            "Install the build with CUDA, and restart the kernel.",
            (f'{uninstall}pip install "tensorflow[and-cuda]"',),
        )
    return Check(
        "gpus",
        ERROR,
        f"TensorFlow was built for NVIDIA GPUs, but does not see the one here ({here}).",
        "One of its CUDA libraries was not found, or the driver does not fit them; its log says which.",
        "Install TensorFlow with its own CUDA libraries, and restart the kernel.",
        (known.CUPTI_WHEEL, "python -c \"import tensorflow as tf; tf.config.list_physical_devices('GPU')\""),
    )


def _what_is_here(machine: Machine) -> str:
    if machine.nvidia_smi:
        names = [line.partition(",")[0] for line in machine.nvidia_smi]
        driver = machine.nvidia_smi[0].rpartition(",")[2].strip()
        counted = ", ".join(
            f"{names.count(name)} × {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)
        )
        return f"{counted}, driver {driver}"
    if machine.has_nvidia_gpu:
        return ", ".join(machine.nvidia_devices)
    return "AMD, /dev/kfd" if machine.has_kfd else ""


def _log(installed: Installation) -> Iterator[Check]:
    """What TensorFlow's log says while it looks for GPUs; only a build for GPUs has anything to say that matters."""
    if not (installed.is_cuda_build or installed.is_rocm_build) or installed.gpus:
        return
    seen = set()
    for line in installed.log:
        meaning = known.explained(line)
        if meaning is not None and meaning.name not in seen:
            seen.add(meaning.name)
            said = f"TensorFlow's log says: {line}"
            yield Check(meaning.name, WARNING, meaning.title, meaning.why, meaning.do, meaning.commands, said)


def _cupti(machine: Machine, installed: Installation) -> Check:
    reachable = [library for library in machine.cupti if library.via]
    if reachable:
        first = reachable[0]
        cuda, own = str(installed.build.get("cuda_version") or ""), _major(first.path)
        wanted = cuda.partition(".")[0]
        if wanted and own and own != wanted and first.via != "loaded in this process":
            return Check(
                "libcupti",
                WARNING,
                f"libcupti is there, but of CUDA {own}, and TensorFlow was built for CUDA {cuda} ({first.path}, by {first.via}).",
                "TensorFlow asks the loader for its own version.",
                "Install the CUDA libraries that TensorFlow was built for.",
                (known.CUPTI_WHEEL, known.CUPTI_CHECK),
            )
        return Check("libcupti", OK, f"libcupti is found: {first.path} ({first.via}).")
    if machine.cupti:
        home = str(PurePosixPath(machine.cupti[0].path).parent)
        return Check(
            "libcupti",
            ERROR,
            f"libcupti is on this machine ({machine.cupti[0].path}), but the loader does not find it.",
            f"`{known.CUPTI_CHECK}` lists nothing, and its folder is not in LD_LIBRARY_PATH"
            f"{'' if machine.environment.get('LD_LIBRARY_PATH') else ', which is not set'}. The loader reads that variable when Python "
            "starts: setting it in a notebook is too late.",
            "Put the folder in front before Python (the Jupyter server) starts, then check again.",
            (f"export LD_LIBRARY_PATH={home}:$LD_LIBRARY_PATH", known.CUPTI_CHECK, guide_check()),
        )
    return Check(
        "libcupti",
        ERROR if installed.is_cuda_build else WARNING,
        "libcupti, NVIDIA's profiling library, is not on this machine, or not where the loader looks.",
        f"`{known.CUPTI_CHECK}` lists nothing. Without it a profile has no GPU work.",
        "Install TensorFlow with its own CUDA libraries, or the CUDA toolkit, and put its CUPTI in front of LD_LIBRARY_PATH before "
        "Python starts.",
        (known.CUPTI_WHEEL, known.CUPTI_PATH, guide_check()),
    )


def guide_check() -> str:
    """Return the check of TensorFlow's guide: what the loader sees in the folders of LD_LIBRARY_PATH."""
    return "/sbin/ldconfig -N -v $(sed 's/:/ /g' <<< $LD_LIBRARY_PATH) | grep libcupti"


def _major(path: str) -> str:
    """CUDA's major version in the name of a libcupti; empty if it has none (CUDA 10 and older name the minor one too)."""
    match = re.search(r"libcupti\.so\.(\d+)", path)
    number = match[1] if match else ""
    return number if number and int(number) < 1000 else ""


def _rights(machine: Machine) -> Iterator[Check]:
    if machine.admins_only is None:
        return
    if not machine.admins_only:
        yield Check("privileges", OK, "NVIDIA's driver lets all users profile.")
    elif machine.may_profile:
        yield Check("privileges", OK, "NVIDIA's driver lets administrators profile, and this process has such rights.")
    elif machine.container:
        yield Check(
            "privileges",
            WARNING,
            f"NVIDIA's driver lets only administrators profile, and this container ({machine.container}) has no such rights.",
            "A capture then ends with CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, and the profile has no GPU work.",
            "Start the container with more rights, or let all users profile on the machine that runs it."
            if machine.container != "Kubernetes"
            else "Give the pod the capability (securityContext), or let all users profile on its node.",
            (known.DOCKER, known.DRIVER_OPTION)
            if machine.container != "Kubernetes"
            else ('securityContext: {capabilities: {add: ["SYS_ADMIN"]}}', known.DRIVER_OPTION),
        )
    else:
        yield Check(
            "privileges",
            WARNING,
            "NVIDIA's driver lets only administrators profile, and this process has no such rights.",
            "A capture may then end with CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, and the profile has no GPU work.",
            "Let all users profile.",
            (known.DRIVER_OPTION,),
        )


def _injected(machine: Machine) -> Iterator[Check]:
    if machine.injected:
        yield Check(
            "other_profiler",
            WARNING,
            f"Another profiler seems to be attached to this process: {'; '.join(machine.injected)}",
            "CUPTI has one subscriber: TensorFlow's profiler gets CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED then.",
            "Start Python without it (not under nsys, ncu or cuda-gdb), and without these variables.",
            tuple(f"unset {sign.partition('=')[0]}" for sign in machine.injected if "=" in sign),
        )


def _roctracer(machine: Machine) -> Check:
    reachable = [library for library in machine.roctracer if library.via]
    if reachable:
        return Check("roctracer", OK, f"ROCm's tracing library is found: {reachable[0].path} ({reachable[0].via}).")
    home = str(PurePosixPath(machine.roctracer[0].path).parent) if machine.roctracer else "/opt/rocm/lib"
    return Check(
        "roctracer",
        WARNING,
        "ROCm's tracing library (libroctracer64) is not found by the loader.",
        "TensorFlow's ROCm build traces AMD GPUs through it.",
        "Install it with ROCm, and put its folder in front of LD_LIBRARY_PATH before Python starts.",
        (f"export LD_LIBRARY_PATH={home}:$LD_LIBRARY_PATH", "ldconfig -p | grep roctracer"),
    )
