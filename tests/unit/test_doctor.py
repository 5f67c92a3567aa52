"""The doctor, on faked machines: their /proc and /dev, loader, nvidia-smi, variables and TensorFlow."""

from __future__ import annotations

import importlib.metadata
import sys
import types
from pathlib import Path

import pytest

import tfprof_widgets as tfprof
from generate import cpu_fit_capture
from generate.log_lines import RECORDED
from tfprof_widgets.diagnosis import installation, machine
from tfprof_widgets.diagnosis.installation import Installation
from tfprof_widgets.diagnosis.installation_checks import installation_checks
from tfprof_widgets.diagnosis.machine import look
from tfprof_widgets.diagnosis.machine_checks import machine_checks
from tfprof_widgets.session import CaptureInfo, Options
from tfprof_widgets.xspace import read

CUDA = Installation(
    {"tensorflow": "2.18.0"}, {"numpy": "2.0.0"}, "2.18.0", build={"is_cuda_build": True, "cuda_version": "12.5.1"}
)
CPU = Installation({"tensorflow-cpu": "2.18.0"}, {"numpy": "2.0.0"}, "2.18.0", build={"is_cuda_build": False})
SEES_ONE = Installation(CUDA.distributions, CUDA.versions, "2.18.0", build=CUDA.build, gpus=["/physical_device:GPU:0"])
ROCM = Installation({"tensorflow-rocm": "2.14.0"}, {}, "2.14.0", build={"is_rocm_build": True})


class Fake:
    """A machine: files below a root of its own, programs on a PATH of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        self.variables = {"PATH": str(self.bin)}
        self.file("proc/version", "Linux version 6.1.0 (gcc 12)")
        self.file("proc/self/status", "Name:\tpython\nCapEff:\t0000000000000000\n")
        self.program("ldconfig", "")

    def file(self, path: str, text: str = "") -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def program(self, name: str, prints: str, code: int = 0) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{prints}\nEND\nexit {code}\n")
        path.chmod(0o755)

    def gpus(self, *names: str, driver: str = "550.54.14") -> Fake:
        for number, _ in enumerate(names):
            self.file(f"dev/nvidia{number}")
        self.program("nvidia-smi", "\n".join(f"{name}, {driver}" for name in names))
        return self

    def look(self, system: str = "Linux") -> machine.Machine:
        return look(self.root, self.variables, system)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_SYSTEM_PATH", ())  # not this machine's own programs
    monkeypatch.setattr(machine, "_python_path", lambda: [str(tmp_path / "site-packages")])
    return Fake(tmp_path)


def check(fake: Fake, installed: Installation, name: str, system: str = "Linux"):
    found = [one for one in machine_checks(fake.look(system), installed) if one.name == name]
    assert len(found) == 1, found
    return found[0]


def names(fake: Fake, installed: Installation) -> dict[str, str]:
    return {one.name: one.status for one in machine_checks(fake.look(), installed)}


# ---- GPUs --------------------------------------------------------------------------------------------------------


def test_no_gpu_at_all(fake):
    assert names(fake, CPU) == {"gpus": "info"}
    assert "host's part" in check(fake, CPU, "gpus").why


def test_a_gpu_and_a_build_that_sees_it(fake):
    fake.gpus("NVIDIA A100", "NVIDIA A100")
    found = check(fake, SEES_ONE, "gpus")
    assert found.status == "ok"
    assert "2 × NVIDIA A100, driver 550.54.14" in found.found


def test_a_gpu_and_a_build_for_cpus(fake):
    fake.gpus("Tesla T4")
    found = check(fake, CPU, "gpus")
    assert found.status == "error"
    assert "Tesla T4" in found.found
    assert found.commands == ('pip uninstall -y tensorflow-cpu && pip install "tensorflow[and-cuda]"',)


def test_a_gpu_that_a_build_for_gpus_does_not_see(fake):
    fake.gpus("Tesla T4")
    lines = [line for line, name in RECORDED.items() if name in ("libraries", "no_driver")]
    blind = Installation(CUDA.distributions, CUDA.versions, "2.18.0", build=CUDA.build, log=lines)
    assert check(fake, blind, "gpus").status == "error"
    assert "Cannot dlopen some GPU libraries" in check(fake, blind, "libraries").evidence
    assert check(fake, blind, "no_driver").status == "warning"


@pytest.mark.parametrize("value", ["", "-1"])
def test_gpus_that_are_hidden(fake, value):
    fake.gpus("Tesla T4").variables["CUDA_VISIBLE_DEVICES"] = value
    found = check(fake, CUDA, "gpus")
    assert found.status == "warning"
    assert f"CUDA_VISIBLE_DEVICES={value} hides" in found.found
    assert found.commands == ("unset CUDA_VISIBLE_DEVICES",)


def test_device_files_without_nvidia_smi(fake):
    fake.file("dev/nvidia0")
    fake.file("dev/nvidiactl")
    assert fake.look().nvidia_devices == ["/dev/nvidia0"]
    assert "/dev/nvidia0" in check(fake, CPU, "gpus").found


def test_a_driver_that_does_not_work(fake):
    fake.program("nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch", code=18)
    found = check(fake, CUDA, "gpus")
    assert found.status == "error"
    assert "Driver/library version mismatch" in found.found


def test_an_nvidia_smi_that_hangs(fake, monkeypatch):
    (fake.bin / "nvidia-smi").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    (fake.bin / "nvidia-smi").chmod(0o755)
    monkeypatch.setattr(machine, "_TIMEOUT_S", 0.2)
    assert "TimeoutExpired" in check(fake, CUDA, "gpus").found


def test_no_gpu_in_a_container(fake):
    fake.file(".dockerenv")
    found = check(fake, CUDA, "gpus")
    assert "container (Docker)" in found.found
    assert found.commands == ("docker run --gpus all …",)


# ---- libcupti ----------------------------------------------------------------------------------------------------


def test_libcupti_by_the_loaders_cache(fake):
    fake.gpus("Tesla T4")
    fake.program(
        "ldconfig",
        "\n".join(f"\t{name}.so.12 (libc6,x86-64) => /usr/lib/{name}.so.12" for name in ("libcudart", "libcupti")),
    )
    found = check(fake, SEES_ONE, "libcupti")
    assert (found.status, found.found) == ("ok", "libcupti is found: /usr/lib/libcupti.so.12 (ldconfig).")
    assert fake.look().loader_check == "libcupti.so.12 (libc6,x86-64) => /usr/lib/libcupti.so.12"


def test_libcupti_by_ld_library_path(fake):
    library = fake.file("extras/CUPTI/lib64/libcupti.so.12")
    fake.variables["LD_LIBRARY_PATH"] = f"/nowhere:{library.parent}"
    assert check(fake, CUDA, "libcupti").found == f"libcupti is found: {library} (LD_LIBRARY_PATH)."


def test_libcupti_of_tensorflows_own_wheels(fake):
    library = fake.file("site-packages/nvidia/cuda_cupti/lib/libcupti.so.12")
    assert check(fake, CUDA, "libcupti").found == f"libcupti is found: {library} (TensorFlow's own (pip))."


def test_libcupti_that_is_loaded(fake):
    fake.file("proc/self/maps", "7f00-7f01 r-xp 00000000 08:01 123   /opt/cuda/libcupti.so.2024.3.0\n")
    assert check(fake, CUDA, "libcupti").found.endswith("(loaded in this process).")


def test_libcupti_where_the_loader_does_not_look(fake):
    library = fake.file("usr/local/cuda-12.5/extras/CUPTI/lib64/libcupti.so.12")
    found = check(fake, CUDA, "libcupti")
    assert found.status == "error"
    assert str(library) in found.found
    assert f"export LD_LIBRARY_PATH={library.parent}:$LD_LIBRARY_PATH" in found.commands
    assert "ldconfig -p | grep libcupti" in found.commands
    assert any(command.startswith("/sbin/ldconfig -N -v") for command in found.commands), "the guide's own check"
    assert "not set" in found.why


def test_libcupti_in_a_conda_environment(fake):
    library = fake.file("conda/lib/libcupti.so.12")
    fake.variables["CONDA_PREFIX"] = str(fake.root / "conda")
    assert f"export LD_LIBRARY_PATH={library.parent}:$LD_LIBRARY_PATH" in check(fake, CUDA, "libcupti").commands


def test_no_libcupti(fake):
    found = check(fake, CUDA, "libcupti")
    assert found.status == "error"
    assert 'pip install "tensorflow[and-cuda]"' in found.commands
    assert "export LD_LIBRARY_PATH=/usr/local/cuda/extras/CUPTI/lib64:$LD_LIBRARY_PATH" in found.commands


def test_libcupti_of_another_cuda(fake):
    fake.program("ldconfig", "\tlibcupti.so.11.8 (libc6,x86-64) => /usr/lib/libcupti.so.11.8")
    found = check(fake, CUDA, "libcupti")
    assert found.status == "warning"
    assert "of CUDA 11" in found.found
    fake.program("ldconfig", "\tlibcupti.so.2024.2.1 (libc6,x86-64) => /usr/lib/libcupti.so.2024.2.1")
    assert check(fake, CUDA, "libcupti").status == "ok", "the name doesn't tell"


def test_cupti_does_not_matter_without_nvidia(fake):
    assert "libcupti" not in names(fake, CPU)
    assert "libcupti" not in names(fake, ROCM)


# ---- rights ------------------------------------------------------------------------------------------------------

ADMINS_ONLY = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"


def test_all_may_profile(fake):
    fake.gpus("Tesla T4").file("proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n")
    assert check(fake, SEES_ONE, "privileges").status == "ok"


@pytest.mark.parametrize(
    ("rights", "status"), [("0000000000200000", "ok"), ("0000004000000000", "ok"), ("00000000a80425fb", "warning")]
)
def test_only_administrators_may_profile(fake, rights, status):
    fake.gpus("Tesla T4").file("proc/driver/nvidia/params", ADMINS_ONLY)
    fake.file("proc/self/status", f"CapInh:\t0\nCapEff:\t{rights}\n")
    found = check(fake, SEES_ONE, "privileges")
    assert found.status == status
    if status == "warning":
        assert "NVreg_RestrictProfilingToAdminUsers=0" in found.commands[0]


def test_only_administrators_may_profile_and_this_is_a_container(fake):
    fake.gpus("Tesla T4").file("proc/driver/nvidia/params", ADMINS_ONLY)
    fake.file("proc/1/cgroup", "12:pids:/docker/abc\n")
    found = check(fake, SEES_ONE, "privileges")
    assert "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" in found.why
    assert "--privileged=true" in found.commands[0]
    assert "--cap-add=SYS_ADMIN" in found.commands[0]
    fake.variables["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
    assert "securityContext" in check(fake, SEES_ONE, "privileges").commands[0]


def test_a_driver_that_does_not_tell(fake):
    assert "privileges" not in names(fake.gpus("Tesla T4"), SEES_ONE)


# ---- others ------------------------------------------------------------------------------------------------------


def test_nsight_is_attached(fake):
    fake.gpus("Tesla T4").variables["CUDA_INJECTION64_PATH"] = "/opt/nvidia/nsight-systems/libToolsInjection64.so"
    found = check(fake, SEES_ONE, "other_profiler")
    assert found.status == "warning"
    assert "MULTIPLE_SUBSCRIBERS" in found.why
    assert found.commands == ("unset CUDA_INJECTION64_PATH",)


def test_nsight_is_loaded(fake):
    path = "/opt/nvidia/nsight-compute/target/libcuda-injection.so"
    fake.gpus("Tesla T4").file("proc/self/maps", f"7f00-7f01 r-xp 00000000 08:01 123   {path}\n")
    assert path in check(fake, SEES_ONE, "other_profiler").found
    fake.variables["LD_PRELOAD"] = "/usr/lib/libjemalloc.so"
    assert fake.look().injected == [path]


def test_wsl(fake):
    fake.file("proc/version", "Linux version 5.15.90.1-microsoft-standard-WSL2")
    fake.file("dev/dxg")
    assert check(fake, CUDA, "wsl").status == "info"
    assert "No NVIDIA GPU is seen in this WSL" in check(fake, CUDA, "gpus").found
    assert "wsl" not in names(fake, CPU)


def test_metal(fake):
    metal = Installation({"tensorflow": "2.18.0"}, {"tensorflow-metal": "1.2"}, "2.18.0", gpus=["GPU:0"])
    found = check(fake, metal, "metal", system="Darwin")
    assert found.status == "info"
    assert "no device tracer" in found.found


def test_rocm(fake):
    fake.file("dev/kfd")
    assert check(fake, ROCM, "roctracer").status == "warning"
    assert check(fake, ROCM, "gpus").commands == ("rocminfo",)
    assert check(fake, CPU, "gpus").commands == ("pip install tensorflow-rocm",)
    library = fake.file("opt/rocm-6.0/lib/libroctracer64.so.4")
    assert f"export LD_LIBRARY_PATH={library.parent}:$LD_LIBRARY_PATH" in check(fake, ROCM, "roctracer").commands
    fake.variables["LD_LIBRARY_PATH"] = str(library.parent)
    assert check(fake, ROCM, "roctracer").status == "ok"


# ---- the installation --------------------------------------------------------------------------------------------


def judged(installed: Installation, **machine_facts) -> dict[str, str]:
    return {one.name: one.status for one in installation_checks(installed, machine.Machine(**machine_facts))}


def test_builds():
    texts = [next(iter(installation_checks(one, machine.Machine()))).found for one in (CUDA, CPU, ROCM)]
    assert texts == [
        "TensorFlow 2.18.0, built for NVIDIA GPUs (CUDA 12.5.1) (tensorflow 2.18.0).",
        "TensorFlow 2.18.0, built for CPUs only (tensorflow-cpu 2.18.0).",
        "TensorFlow 2.14.0, built for AMD GPUs (ROCm) (tensorflow-rocm 2.14.0).",
    ]


def test_no_tensorflow():
    found = list(
        installation_checks(Installation(error="TensorFlow is needed, and there is none.\nmore"), machine.Machine())
    )
    assert [(one.name, one.status) for one in found] == [("tensorflow", "error")]
    assert any("tensorflow[and-cuda]" in command for command in found[0].commands)


def test_several_tensorflows():
    both = Installation({"tensorflow": "2.18.0", "tensorflow-cpu": "2.17.0"}, {}, "2.18.0")
    assert judged(both)["several_tensorflows"] == "warning"
    wrapped = Installation({"tensorflow": "2.15.0", "tensorflow-macos": "2.15.0"}, {}, "2.15.0")
    assert "several_tensorflows" not in judged(wrapped)


@pytest.mark.parametrize(
    ("version", "packages", "name", "status"),
    [
        ("2.15.1", {"numpy": "2.1.0"}, "numpy", "warning"),
        ("2.15.1", {"numpy": "1.26.4", "pyarrow": "26.0.0"}, "pyarrow", "error"),
        ("2.21.0", {"numpy": "2.1.0"}, "levels", "info"),
        ("2.20.0", {"numpy": "2.1.0"}, "levels", "info"),
    ],
)
def test_versions_that_do_not_go_together(version, packages, name, status):
    assert judged(Installation({"tensorflow": version}, packages, version))[name] == status


@pytest.mark.parametrize(
    ("version", "numpy", "pyarrow"), [("2.15.1", "1.26.4", "25.0.0"), ("2.18.0", "2.0.0", "26.0.0")]
)
def test_versions_that_go_together(version, numpy, pyarrow):
    installed = Installation({"tensorflow": version}, {"numpy": numpy, "pyarrow": pyarrow}, version)
    assert judged(installed) == {"tensorflow": "ok"}


def test_windows():
    assert judged(CPU, system="Windows")["windows"] == "info"
    old = Installation({"tensorflow": "2.10.0"}, {"numpy": "1.23.0"}, "2.10.0")
    assert "windows" not in judged(old, system="Windows")


def test_a_log_that_is_hidden():
    assert judged(CUDA, environment={"TF_CPP_MIN_LOG_LEVEL": "3"})["log_level"] == "info"
    assert "log_level" not in judged(CUDA, environment={"TF_CPP_MIN_LOG_LEVEL": "1"})


# ---- all of it ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tensorflow(monkeypatch):
    """Stand in for TensorFlow: what the doctor asks it."""
    build = {"is_cuda_build": True, "cuda_version": "12.5.1"}
    fake = types.SimpleNamespace(
        __version__="2.18.0",
        profiler=types.SimpleNamespace(experimental=object()),
        sysconfig=types.SimpleNamespace(get_build_info=lambda: build),
        config=types.SimpleNamespace(list_physical_devices=lambda kind: [types.SimpleNamespace(name=f"{kind}:0")]),
    )
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    monkeypatch.setattr(installation, "_version", {"tensorflow": "2.18.0", "numpy": "2.0.0"}.get)
    return fake


def test_the_doctor_looks_at_everything(fake, tensorflow, monkeypatch):
    fake.gpus("Tesla T4").file("proc/driver/nvidia/params", ADMINS_ONLY)
    seen = fake.look()
    monkeypatch.setattr(machine, "look", lambda: seen)
    found = tfprof.doctor()
    assert {one.name: one.status for one in found} == {
        "libcupti": "error",
        "privileges": "warning",
        "tensorflow": "ok",
        "gpus": "ok",
    }
    assert [one.name for one in found.problems] == ["libcupti", "privileges"]
    assert all(one.commands for one in found.problems)


def test_the_doctor_looks_at_a_report(fake, tensorflow, monkeypatch):
    seen = fake.look()
    monkeypatch.setattr(machine, "look", lambda: seen)
    space = cpu_fit_capture(epochs=1, batches=3)
    report = tfprof.Report([read(space.bytes())], capture=CaptureInfo("mine", options=Options(python=True), gpus=1))
    found = {one.name: one for one in tfprof.doctor(report)}
    assert {"options_ignored", "no_device_plane", "recorded", "libcupti"} <= set(found)
    assert "python calls none (though asked for)" in found["recorded"].found
    assert "no_steps" not in found


def test_room_for_captures(fake, tensorflow, monkeypatch):
    seen = fake.look()
    monkeypatch.setattr(machine, "look", lambda: seen)
    monkeypatch.setattr("shutil.disk_usage", lambda path: types.SimpleNamespace(free=300e6))
    room = {one.name: one for one in tfprof.doctor()}["room"]
    assert room.status == "warning"
    assert "0.3 GB are free" in room.found

    def none():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", none)
    assert {one.name: one.status for one in tfprof.doctor()}["room"] == "error"


def test_a_running_capture_is_told(fake, tensorflow, monkeypatch):
    seen = fake.look()
    monkeypatch.setattr(machine, "look", lambda: seen)
    assert "session" not in [one.name for one in tfprof.doctor()]
    monkeypatch.setattr("tfprof_widgets.session._active", types.SimpleNamespace(name="In [3]"))
    running = {one.name: one for one in tfprof.doctor()}["session"]
    assert running.status == "warning"
    assert "In [3]" in running.found


def test_a_tensorflow_that_fails_is_told(tensorflow, monkeypatch):
    def fails(kind):
        raise RuntimeError("cuInit failed")

    tensorflow.config.list_physical_devices = fails
    installed = installation.installation()
    assert (installed.version, installed.gpus, installed.error) == ("2.18.0", [], "")
    assert "RuntimeError: cuInit failed" in installed.log


def test_without_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    found = installation.installation()
    assert found.version == ""
    assert "TensorFlow is needed" in found.error or "could not be imported" in found.error


FAKE_TENSORFLOW = """
import os, sys, types
__version__ = "2.18.0"
profiler = types.SimpleNamespace(experimental=object())
sysconfig = types.SimpleNamespace(get_build_info=lambda: {"is_cuda_build": True})
config = types.SimpleNamespace(list_physical_devices=lambda kind: [])
print("chatter")
"""


@pytest.fixture
def installed_tensorflow(tmp_path, monkeypatch):
    """Return a function that installs a TensorFlow which isn't imported yet: source text → the installation asked elsewhere."""

    def install(source: str) -> Installation:
        package = tmp_path / "packages" / "tensorflow"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(source)
        monkeypatch.syspath_prepend(str(package.parent))
        monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
        found = installation.installation()
        assert "tensorflow" not in sys.modules
        return found

    return install


def test_tensorflow_is_asked_in_a_process_of_its_own(installed_tensorflow, capfd):
    line = next(line for line, name in RECORDED.items() if name == "libraries")
    found = installed_tensorflow(
        f"{FAKE_TENSORFLOW}\nos.write(2, {line!r}.encode() + b'\\n')\nos.write(2, b'oneDNN is on')"
    )
    assert (found.version, found.is_cuda_build, found.gpus, found.error) == ("2.18.0", True, [], "")
    assert found.log == [line]
    assert capfd.readouterr() == ("", ""), "nothing of its chatter is the user's"


def test_a_tensorflow_that_crashes_python(installed_tensorflow):
    found = installed_tensorflow("import os, signal\nos.write(2, b'illegal\\n')\nos.kill(os.getpid(), signal.SIGKILL)")
    assert found.error == "Importing TensorFlow crashed Python (signal 9): illegal"
    (check,) = (one for one in installation_checks(found, machine.Machine()) if one.name == "tensorflow")
    assert check.status == "error"
    assert "crashed Python" in check.why


def test_a_tensorflow_that_hangs(installed_tensorflow, monkeypatch):
    monkeypatch.setattr(installation, "_TIMEOUT_S", 1)
    found = installed_tensorflow("import time\ntime.sleep(60)")
    assert "took more than 1 s" in found.error


def test_a_tensorflow_that_is_broken(installed_tensorflow):
    found = installed_tensorflow("raise ImportError('libcudart is missing')")
    assert "libcudart is missing" in found.error


def test_versions_are_those_of_the_distributions():
    assert installation._version("numpy") == importlib.metadata.version("numpy")
    assert installation._version("no-such-distribution") == ""
