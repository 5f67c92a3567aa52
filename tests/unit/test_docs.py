"""The documentation's worked example is carried out on a copy of the package, and what is generated says what the code says."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r'^```python title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)

if not DOCS.exists():
    pytest.skip("an sdist has no docs", allow_module_level=True)


def test_a_tool_in_an_hour_works_as_it_is_written(tmp_path):
    if not (ROOT / "src" / "tfprof_widgets" / "static" / "inline.js").exists():
        pytest.skip("the front end is not built")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "generate", tmp_path / "tests" / "generate")
    blocks = _BLOCK.findall((DOCS / "adding-a-tool.md").read_text(encoding="utf-8"))
    assert len(blocks) == 7
    for name, code in blocks:
        path = tmp_path / name
        if path.exists():  # below the line that is there already
            there = code.splitlines(keepends=True)[0]
            text = path.read_text(encoding="utf-8")
            assert text.count(there) == 1, f"{name} has no line (or several) {there!r}; docs/adding-a-tool.md names it"
            path.write_text(text.replace(there, code), encoding="utf-8")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, encoding="utf-8")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path / "src"), str(tmp_path / "tests")]))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_threads.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_magics_options_are_the_parsers(hooks):
    from tfprof_widgets.magic import ProfileMagics

    page = hooks.on_page_markdown("before\n\n<!-- generated: magic_options -->\n\nafter")
    flags = {flag for action in ProfileMagics.tfprofile.parser._actions for flag in action.option_strings}
    listed = set(re.findall(r"`(--[a-z-]+)", page))
    assert flags >= {"--as", "--python"}
    assert listed == flags
    assert "generated" not in page
    assert "%%%" not in page


def test_every_public_name_is_in_the_api(hooks):
    import tfprof_widgets

    page = hooks.on_page_markdown((DOCS / "python-api.md").read_text(encoding="utf-8"))
    listed = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    assert set(tfprof_widgets.__all__) <= listed


def test_every_rule_of_the_advice_is_listed(hooks):
    from tfprof_widgets.analysis import advice

    assert hooks.findings().count("\n- ") + 1 >= len(advice._RULES)
