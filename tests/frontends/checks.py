"""What every front end is held to, whichever it is: the same checks on the report that it shows."""

from __future__ import annotations

import csv
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from generate.hostile import HUGE, MARKUP, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

READY = ".tfprof-app [role=tabpanel]:not([hidden]) canvas"
#: What no page may show: a name's characters that would turn the text beside them around, or hide.
HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200f\x00\x07\x1b]")


class Visit:
    """A page of a browser that reaches nothing but what it is given; collects what it asked for and what went wrong.

    Parameters
    ----------
    browser
        Playwright's.
    origin : str
        The only server that may be asked; none if empty.
    files : mapping of str to bytes, str or Path
        What is answered for these addresses: the pages themselves, and what a front end's own template asks a CDN for.
    blocked : str
        Regular expression of what the front end itself asks for elsewhere: refused, and not held against the report.
    """

    def __init__(
        self,
        browser,
        *,
        origin: str = "",
        files: Mapping[str, str | bytes | Path] | None = None,
        blocked: str = "(?!)",
        dark: bool = False,
        width: int = 1200,
    ) -> None:
        self.asked: list[str] = []
        self.errors: list[str] = []
        self._files, self._blocked, self._origin = files or {}, re.compile(blocked), origin
        self.context = browser.new_context(
            viewport={"width": width, "height": 1000}, accept_downloads=True, color_scheme="dark" if dark else "light"
        )
        self.context.route(re.compile("^(?!data:|blob:)"), self._answer)
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)

    def _answer(self, route) -> None:
        url = route.request.url
        if url in self._files:
            content = self._files[url]
            if isinstance(content, Path):
                route.fulfill(path=content)
            else:
                route.fulfill(body=content, content_type="text/html; charset=utf-8")
        elif self._origin and url.startswith(self._origin + "/"):
            route.continue_()
        else:
            if not self._blocked.search(url):
                self.asked.append(url)
            route.abort()

    def look(self, name: str) -> None:
        """Leave a picture of the page in the folder that the variable TFPROF_PICTURES names, if it names one."""
        folder = os.environ.get("TFPROF_PICTURES")
        if folder:
            self.page.screenshot(path=Path(folder) / f"{name}.png")

    def is_clean(self, errors: str = "(?!)") -> None:
        """Nothing beyond the page was asked for, no name of the profile ran, and nothing went wrong but what `errors` allows."""
        assert self.asked == []
        for frame in self.page.frames:
            assert frame.evaluate("globalThis.pwned") is None
            assert frame.locator("img[src=x], svg[onload]").count() == 0
            assert not HIDDEN.search(frame.locator("body").inner_text())
        assert [error for error in self.errors if not re.search(errors, error)] == []


@contextmanager
def visit(browser, **how) -> Iterator[Visit]:
    """Open a page for as long as a test needs it; a report that is seen must leave it clean."""
    opened = Visit(browser, **how)
    try:
        yield opened
    except BaseException:
        opened.look("failed")
        raise
    finally:
        opened.context.close()


# Number of rectangles, once they are drawn.
_PAINTED = """async (e) => {
  while (!(e.timeline?.painted > 0)) await new Promise(requestAnimationFrame);
  return e.timeline.shown.rectangles;
}"""
# Times that the timeline shows once it rests, and no longer those that it showed before; null if it stays at those.
_AT_REST = """async (e, former) => {
  const at = () => [e.timeline.viewport.start, e.timeline.viewport.end];
  const begun = performance.now();
  while (performance.now() - begun < 5000) {
    const now = at();
    await new Promise((done) => setTimeout(done, 100));
    if (String(at()) === String(now) && String(now) !== String(former)) return now;
  }
  return null;
}"""


def check_interactive(visit: Visit, report, *, dark: bool | None = None) -> None:
    """A report does what it is there for: it says what to change, the trace pans, a search finds, a table sorts, a CSV comes.

    Parameters
    ----------
    visit : Visit
        The page that it is on.
    report : Locator
        Its `.tfprof-app`, in whatever frame.
    dark : bool, optional
        Whether it has to be dark; None if that is not known.
    """
    report.locator("[role=tabpanel]:not([hidden]) canvas").first.wait_for()
    report.scroll_into_view_if_needed()
    if dark is not None:
        assert report.get_attribute("data-tfprof-theme") == ("dark" if dark else "light")
    assert "input-bound" in report.locator(".tfprof-answer-text").inner_text()
    assert report.get_by_role("alert").count() == 0
    assert not re.search("failed on this profile", report.inner_text())

    _check_table(visit, report)
    _check_trace(visit, report)


def _check_table(visit: Visit, report) -> None:
    report.get_by_role("tab", name="TensorFlow stats").click()
    panel = report.locator("[role=tabpanel]:not([hidden])")
    cells = panel.locator('.tabulator-row .tabulator-cell[tabulator-field="occurrences"]')
    cells.first.wait_for()
    header = panel.locator('[role=columnheader][tabulator-field="occurrences"]')
    for direction, best in (("descending", max), ("ascending", min)):
        header.locator(".tfprof-coltitle").click()
        panel.locator(f'[role=columnheader][tabulator-field="occurrences"][aria-sort="{direction}"]').wait_for()
        values = [int(text.replace(",", "")) for text in cells.all_inner_texts()]
        assert values[0] == best(values), direction
        assert len(set(values)) > 1
    with visit.page.expect_download() as download:
        panel.get_by_role("button", name="Download CSV").first.click()
    csv.field_size_limit(2 * len(HUGE))
    rows = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
    names = "\n".join(row["name"] for row in rows)
    assert len(rows) > 10
    assert MARKUP in names
    assert SCRIPT in names


def _check_trace(visit: Visit, report) -> None:
    report.get_by_role("tab", name="Trace").click()
    timeline = report.locator(".tfprof-tl")
    over = timeline.locator(".tl-over")
    over.wait_for()
    assert timeline.evaluate(_PAINTED) > 50
    # Closer first, so that there is where to go; then a drag to the left.
    timeline.get_by_role("button", name=re.compile("^Zoom in")).click()
    before = timeline.evaluate(_AT_REST, None)
    after = next(filter(None, (_drag(visit, timeline, over, before) for _ in range(4))), None)
    assert after is not None, "four drags moved nothing"
    assert after[0] > before[0]
    # Six steps on two devices; the hit is selected, and its details open.
    search = timeline.locator(".tl-search input")
    search.fill("MemcpyH2D")
    timeline.locator(".tl-hits", has_text=re.compile(r"\b12\b")).wait_for()
    search.press("Enter")
    timeline.get_by_text("MemcpyH2D").first.wait_for()


def _drag(visit: Visit, timeline, over, before: list[float]) -> list[float] | None:
    """Drag the trace to the left; the times that it shows then, None if it didn't move (a slide may move under the pointer)."""
    width, height = over.evaluate("(e) => [e.clientWidth, e.clientHeight]")
    over.hover(position={"x": width * 0.6, "y": min(height, 200) / 2})  # waits until it stands still
    box = over.bounding_box()
    x, y = box["x"] + box["width"] * 0.6, box["y"] + min(box["height"], 200) / 2
    visit.page.mouse.move(x, y)
    visit.page.mouse.down()
    visit.page.mouse.move(x - box["width"] / 4, y, steps=5)
    visit.page.mouse.up()
    return timeline.evaluate(_AT_REST, before)


def check_summary(text: str) -> None:
    """Where no script runs, the summary has what counts: the verdict, step time, top operations, advice; and no base64."""
    for words in (
        "Highly input-bound",
        "Recommendations",
        "To change:",
        "Step time in ms",
        "Average",
        "Device compute",
        "Top 10 TensorFlow operations",
        "CollectiveReduceV2",
        "__proto__/Relu",
        "$$x$$ \\(y\\) \\[z\\]",  # as text: no page typesets it
    ):
        assert words in text, words
    assert not HIDDEN.search(text)
    assert not re.search(r"[A-Za-z0-9+/]{300}", re.sub("W+", "W", text))
