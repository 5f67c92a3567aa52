"""The capture tests with other versions of TensorFlow, each in an environment of its own.

    python tests/versions.py                # the oldest that is supported; the newest is what `make test` itself installs
    python tests/versions.py 2.15 2.16 2.18

The environments are made beside the checkout's own (``.venv-tf2.15``) and kept. Without a Python that the version runs on, or
without a package index, the version is skipped, and that is said.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = "2.15"

# The newest Python that each version has a wheel for; later versions have them for all that are supported here.
NEWEST_PYTHON = {"2.15": 11, "2.16": 12, "2.17": 12, "2.18": 12, "2.19": 12}
OLDEST_PYTHON = 10  # this package's

TESTS = ["tests/notebook/test_capture_in_kernel.py", "tests/notebook/test_magic_in_kernel.py"]
NEEDED = ["ipykernel", "nbclient", "pytest", "pytest-timeout", "tensorboard"]


def main() -> int:
    """Test each version that is asked for; 1 if one fails."""
    failed = [version for version in sys.argv[1:] or [OLDEST] if not works(version)]
    return int(bool(failed))


def works(version: str) -> bool:
    """Whether the tests pass with a version, or it had to be skipped."""
    python = find_python(NEWEST_PYTHON.get(version, 99))
    if python is None:
        return skip(version, f"it needs a Python between 3.{OLDEST_PYTHON} and 3.{NEWEST_PYTHON[version]}")
    wanted = f"tensorflow-cpu=={version}.*" if sys.platform == "linux" else f"tensorflow=={version}.*"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    venv = ROOT / f".venv-tf{version}"
    installed = venv / ".installed"
    if not installed.exists() or installed.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        # Asked first, so that what goes wrong later is not taken for a missing index.
        asked = subprocess.run(
            [*pip, "index", "versions", wanted.partition("=")[0]], capture_output=True, text=True, check=False
        )
        if asked.returncode:
            return skip(version, f"no package index can be reached ({asked.stderr.strip().splitlines()[-1:]})")
        print(f"Installing TensorFlow {version} into {venv.name}", flush=True)
        subprocess.run([python, "-m", "venv", venv], check=True)
        pip[0] = venv / "bin" / "python"
        subprocess.run([*pip, "install", "--quiet", "--editable", ROOT, wanted, *NEEDED], check=True)
        installed.touch()
    print(f"Capturing with TensorFlow {version}", flush=True)
    pytest = [venv / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(pytest, cwd=ROOT, check=False).returncode == 0


def find_python(newest: int) -> str | None:
    """Return the newest Python, up to 3.`newest`, with which an environment can be made: this one if it will do."""
    own = sys.version_info.minor
    others = [f"python3.{minor}" for minor in range(min(newest, 20), OLDEST_PYTHON - 1, -1)]
    for name in ([sys.executable] if OLDEST_PYTHON <= own <= newest else []) + others:
        path = shutil.which(name)
        if (
            path
            and subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0
        ):
            return path
    return None


def skip(version: str, why: str) -> bool:
    """Say that a version is skipped."""
    print(f"SKIPPED: TensorFlow {version}: {why}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
