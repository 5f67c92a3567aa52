"""What TensorFlow's profiler and CUPTI complain about, what it means, and what mends it.

The texts come from two places: the errors and warnings that the profiler stores in a profile, and TensorFlow's own log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# The guide's own check, and its line.
CUPTI_CHECK = "ldconfig -p | grep libcupti"
CUPTI_PATH = "export LD_LIBRARY_PATH=/usr/local/cuda/extras/CUPTI/lib64:$LD_LIBRARY_PATH"
CUPTI_WHEEL = 'pip install "tensorflow[and-cuda]"'
DOCKER = "docker run --gpus all --privileged=true …   # or, with fewer rights: --cap-add=SYS_ADMIN"
DRIVER_OPTION = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf"
    "   # then reboot"
)


@dataclass(frozen=True)
class Known:
    """A complaint that is known.

    Attributes
    ----------
    name : str
        Short and stable, for programs.
    title, why, do : str
        What it means, why it happens, and what to do: a sentence each.
    commands : tuple of str
        What to type for that.
    is_error : bool
        Whether something is missing from the profile because of it.
    """

    name: str
    pattern: re.Pattern[str]
    title: str
    why: str
    do: str
    commands: tuple[str, ...] = ()
    is_error: bool = True


def _known(name: str, pattern: str, title: str, why: str, do: str, *commands: str, is_error: bool = True) -> Known:
    return Known(name, re.compile(pattern, re.IGNORECASE), title, why, do, commands, is_error)


# The first that fits is taken: causes before their consequences.
KNOWN = (
    _known(
        "privileges",
        r"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES|insufficient privilege|ERR_NVGPUCTRPERM",
        "The GPU may not be profiled by this user (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), so its work is not in the profile.",
        "NVIDIA's driver lets only administrators profile, and a container has not even root's rights.",
        "In Docker, start the container with more rights; elsewhere let all users profile, on the machine itself, not in a container.",
        DOCKER,
        DRIVER_OPTION,
    ),
    _known(
        "other_profiler",
        r"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED|CUPTI_ERROR_MAX_LIMIT_REACHED|CUPTI subscriber already exists",
        "Another profiler had this process's GPUs (CUPTI has one subscriber), so their work is not in the profile.",
        "Nsight Systems or Compute, nvprof, cuda-gdb, DCGM or PyTorch's profiler is attached to this process.",
        "Start Python without it, or let only that tool profile.",
    ),
    _known(
        "libcupti",
        r"failed to load libcupti|could not load dynamic library 'libcupti|could not load.{0,40}cupti|cupti could not be loaded",
        "libcupti was not found by the loader, so what the GPUs did is not in the profile.",
        "TensorFlow loads NVIDIA's profiling library CUPTI, of the CUDA toolkit, when a capture starts.",
        "See whether the loader finds it. Put its folder in front of LD_LIBRARY_PATH before Python starts (on Windows: "
        "extras\\CUPTI\\lib64 in PATH), or install TensorFlow with its own CUDA libraries.",
        CUPTI_CHECK,
        CUPTI_PATH,
        CUPTI_WHEEL,
    ),
    _known(
        "dropped",
        r"events? dropped|too many (?:activity|callback) events|activity buffer full",
        "More happened on the GPUs than the profiler could keep: events are missing.",
        "CUPTI's buffers were full; counts and times of GPU kernels are too low.",
        "Record a shorter part.",
        "%%tfprofile --steps 0:10",
        is_error=False,
    ),
    _known(
        "no_gpu",
        r"no gpu detected",
        "The profiler saw no GPU.",
        "This TensorFlow was built for GPUs, but no driver or no device is there for it (or CUDA_VISIBLE_DEVICES hides them).",
        "If there is one, see whether the driver knows it.",
        "nvidia-smi",
    ),
    _known(
        "libraries",
        r"cannot dlopen some gpu libraries|could not load dynamic library",
        "TensorFlow could not load all of its CUDA libraries, so it does not use the GPUs.",
        "The installed CUDA or cuDNN is missing or of another version than this TensorFlow needs.",
        "Install TensorFlow with its own CUDA libraries.",
        CUPTI_WHEEL,
    ),
    _known(
        "driver_version",
        r"driver version is insufficient|system_driver_mismatch|does not match dso version",
        "NVIDIA's driver does not fit the CUDA libraries.",
        "The driver is older than the CUDA version needs, or was updated without a reboot.",
        "Update the driver, or reboot after an update.",
        "nvidia-smi",
    ),
    _known(
        "no_driver",
        r"could not find cuda drivers|failed call to cuinit|cuda_error_no_device",
        "TensorFlow found no NVIDIA driver, or no device for it.",
        "There is no GPU, its driver is not installed, or the container was started without it.",
        "See whether the driver knows the GPU; in Docker, hand it over.",
        "nvidia-smi",
        "docker run --gpus all …",
    ),
    _known(
        "cupti_busy",
        r"CUPTI_ERROR_HARDWARE_BUSY",
        "The GPU's counters were in use by another process.",
        "A monitoring service (DCGM) or another profiler on this machine has them.",
        "Pause it for the capture.",
        "dcgmi profile --pause",
    ),
    _known(
        "cupti",
        r"CUPTI_ERROR_\w+|\bcupti error|cupti\w*\W.{0,80}\bfailed\b",
        "CUPTI, NVIDIA's profiling library, reported an error: GPU work may be missing from the profile.",
        "The versions of CUPTI, CUDA and the driver may not fit together.",
        "Compare the CUDA version that the driver supports with the one TensorFlow was built for.",
        "nvidia-smi",
        'python -c "import tensorflow as tf; print(tf.sysconfig.get_build_info())"',
    ),
    _known(
        "rocm",
        r"(?:roctracer|rocprofiler|rocm).{0,120}\b(?:failed|error|could not)\b|could not load.{0,40}(?:roctracer|rocprofiler)",
        "ROCm's profiling library reported an error: GPU work may be missing from the profile.",
        "TensorFlow's ROCm build traces GPUs through roctracer, which comes with ROCm.",
        "See whether the loader finds it.",
        "ldconfig -p | grep -E 'roctracer|rocprofiler'",
        "export LD_LIBRARY_PATH=/opt/rocm/lib:$LD_LIBRARY_PATH",
    ),
    _known(
        "another_session",
        r"another profil\w+ (?:session )?(?:is )?(?:active|running)|already active",
        "Another profiler session was running in the process.",
        "A process has one session at a time: a TensorBoard callback (profile_batch), TensorBoard's Capture button, or "
        "tf.profiler.experimental.start without its stop.",
        "End it first.",
        "tf.profiler.experimental.stop()",
    ),
)


def explained(text: str) -> Known | None:
    """Return what is known about a message; None if it is none of these."""
    return next((known for known in KNOWN if known.pattern.search(text)), None)
