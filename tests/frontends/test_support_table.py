"""The README's table of front ends and the tests behind it say the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def rows() -> list[list[str]]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## What works where", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def checked_here() -> set[str]:
    return {
        each.name
        for file in HERE.glob("test_*.py")
        if file.name != Path(__file__).name
        for each in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    }


def named() -> set[str]:
    return {name for row in rows() for name in re.findall(r"`([^`]+)`", row[3])}


def test_every_line_has_its_test_and_every_test_its_line():
    assert all(re.search(r"`test_", row[3]) for row in rows())
    files = {name for name in named() if name.endswith(".py")}
    assert all((ROOT / "tests" / "browser" / name).exists() for name in files)
    assert named() - files == checked_here()


def test_a_line_says_interactive_only_where_its_test_checks_that():
    checked: dict[str, str] = {}
    for file in HERE.glob("test_*.py"):
        source = file.read_text(encoding="utf-8")
        for each in ast.parse(source).body:
            if isinstance(each, ast.FunctionDef):
                checked[each.name] = ast.get_source_segment(source, each) or ""
    for _, shown, _, tests in rows():
        for name in re.findall(r"`(test_\w+)`", tests):
            wanted = "check_interactive(" if shown.startswith("interactive") else "check_summary("
            assert wanted in checked[name] or name == "test_latex", name


def test_what_the_tests_need_is_installed_for_them():
    extra = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("\ndev = [", 1)[1].split("\n]", 1)[0]
    for package in ("jupyterlab", "notebook", "nbclassic", "voila", "marimo", "nh3", "pypdf", "playwright"):
        assert re.search(rf'"{package}\b', extra), package
