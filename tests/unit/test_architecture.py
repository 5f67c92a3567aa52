"""The package is laid out as docs/architecture.md and CONTRIBUTING.md say, and no stage reaches ahead."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tfprof_widgets

PACKAGE = Path(tfprof_widgets.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
STAGES = ["xspace", "analysis", "views", "display"]


def imported(path: Path) -> set[str]:
    """What of the package a module imports, also within functions: `views.spec`, `report`, …"""
    here = path.relative_to(PACKAGE).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                parts = [*here[: len(here) + 1 - node.level], *(node.module or "").split(".")]
            elif (node.module or "").split(".")[0] == "tfprof_widgets":
                parts = (node.module or "").split(".")[1:]
            else:
                continue
            base = ".".join(filter(None, parts))
            found |= {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {
                a.name.removeprefix("tfprof_widgets.") for a in node.names if a.name.startswith("tfprof_widgets.")
            }
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_no_stage_reaches_ahead(stage):
    ahead = [*STAGES[STAGES.index(stage) + 1 :], "report", "comparison", "session", "magic"]
    modules = sorted((PACKAGE / stage).glob("*.py"))
    assert len(modules) > 3
    for path in modules:
        reached = {name for name in imported(path) if name.split(".")[0] in ahead}
        assert not reached, f"{path.name} imports {', '.join(sorted(reached))}"


def test_every_module_at_the_top_has_its_place_in_the_documentation():
    if not (ROOT / "docs").exists():
        pytest.skip("an sdist has no docs")
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = [path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")]
    packages = [f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")]
    missing = [name for name in [*modules, *packages] if name not in text and f"## {name[:-1]}:" not in text]
    assert missing == []


def test_every_module_that_the_documentation_names_is_there():
    if not (ROOT / "docs").exists():
        pytest.skip("an sdist has no docs")
    there = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        named = {name for name in re.findall(r"`(?:…/)?([\w/]+\.py)`", text) if not (ROOT / name).exists()}
        lost = {name for name in named if not any(path == name or path.endswith(f"/{name}") for path in there)}
        assert lost == set(), f"{page} names modules that are not there"
    folders = re.findall(r"`…/(\w+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(folders) > 3
    assert [name for name in folders if not (PACKAGE / name).is_dir()] == []
