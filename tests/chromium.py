"""One Chromium for all the browser tests of a worker: Playwright's synchronous API can't be started twice."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager

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

PATIENCE_MS = 120_000


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
        # A machine that does other things too may stand still for longer than Playwright would wait.
        browser.new_context, browser.new_page = _patient(browser.new_context), _patient(browser.new_page)
        api.expect.set_options(timeout=PATIENCE_MS)
        yield browser
        browser.close()


def _patient(make):
    def made(**options):
        context_or_page = make(**options)
        context_or_page.set_default_timeout(PATIENCE_MS)
        return context_or_page

    return made


@contextmanager
def offline_page(browser, path, width: int, *, meant: str = ""):
    """Open a report's file; at the end it had asked for nothing else, no name was more than text, and nothing went wrong.

    An error with the words `meant` is one that the test is about.
    """
    context = browser.new_context(viewport={"width": width, "height": 1000})
    asked, errors = [], []
    context.on("request", lambda request: asked.append(request.url))
    context.route(re.compile("^(?!file:|data:|blob:)"), lambda route: route.abort())
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    page.wait_for_selector(".tfprof-app canvas")
    yield page
    assert page.evaluate("globalThis.pwned") is None
    assert [error for error in errors if not meant or meant not in error] == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [path.as_uri()]
    context.close()
