"""One Chromium for all the browser tests of a worker: Playwright's synchronous API can't be started twice."""

from __future__ import annotations

import os
import shutil

import pytest

CHROMIUM = next(
    filter(None, (os.environ.get("CHROMIUM"), *map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))),
    None,
)
# No request of the browser's own, so that every request is the page's.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    """Return a headless Chromium; skips where there is none, except in CI."""
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        message = "no Chromium on the PATH (make chromium installs it)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
