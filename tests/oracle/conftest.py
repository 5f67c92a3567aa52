"""The oracle tests need XProf, and most of them real captures; without them they are skipped, not failed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore_glob = [] if importlib.util.find_spec("xprof") else ["test_*.py"]


@pytest.fixture(scope="session")
def xprof_of(capture):
    """Return a function: name of a capture and tool → XProf's answer, worked out once a session."""
    from oracle import xprof

    known = {}

    def answer(name: str, tool: str):
        if (name, tool) not in known:
            known[name, tool] = xprof(capture(name), tool)
        return known[name, tool]

    return answer
