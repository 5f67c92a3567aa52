"""What all the tests share: a browser, the captures that may be present next to the checkout, the generators' import path."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chromium import browser  # noqa: F401  # a fixture, for tests/browser and tests/frontends

# What a shell starts in the background ignores interrupts, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

CAPTURES = Path(__file__).resolve().parents[2] / "shared" / "captures"


def capture_path(name: str) -> Path:
    """Path of a real capture; skips the test where the captures aren't present."""
    path = CAPTURES / f"{name}.xplane.pb"
    if not path.exists():
        pytest.skip(f"no capture {name} next to the checkout")
    return path


@pytest.fixture(scope="session")
def capture():
    """Return a function: name of a real capture → its path (skips the test where it is absent)."""
    return capture_path
