"""A page with a timeline, for the tests of it in Chromium."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from tfprof_widgets.analysis.details import stat_columns
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.analysis.timeline import Timeline, timeline
from tfprof_widgets.display.html import report_page
from tfprof_widgets.display.payload import Payload
from tfprof_widgets.report import Report
from tfprof_widgets.views.timeline import timeline_tab

PAINTED = "() => document.querySelector('.tfprof-tl')?.timeline?.painted > 0"
_STATE = """
() => {
  const t = document.querySelector(".tfprof-tl").timeline;
  return { start: t.viewport.start, end: t.viewport.end, perPx: t.perPx, left: t.timeAt(0), scroll: t.scroll, width: t.width,
    height: t.height, tool: t.tool, frames: t.frames, painted: t.painted, rectangles: t.shown.rectangles, minPx: t.shown.minPx,
    total: t.shown.total, alone: t.shown.alone, ranges: t.ranges };
}
"""

DRAWN = """
() => {
  const t = document.querySelector(".tfprof-tl").timeline;
  const { singles, bars } = t.scene.drawn;
  const rows = (part) => Array.from({ length: part.n }, (_, i) => {
    const box = t.shown.boxes[part.row[i]];
    const { store } = box;
    const event = part.event[i];
    return [t.tracks[box.track].label, box.lane - t.tracks[box.track].lane, part.left[i], part.right[i], part.count[i], part.busy[i],
      t.names.name[store.name[event]], (box.top + box.bottom) / 2 - t.scroll, box.track];
  });
  const lanes = t.shown.boxes.map((b) => [t.tracks[b.track].label, b.lane - t.tracks[b.track].lane, b.track]);
  return { singles: rows(singles), bars: rows(bars), lanes };
}
"""


def details_of(pane) -> dict[str, str]:
    """What the details pane says, by its labels; at one moment, as more may come."""
    return pane.evaluate(
        "pane => Object.fromEntries([...pane.querySelectorAll('dt')].map(each => [each.textContent, each.nextElementSibling.textContent]))"
    )


@dataclass
class Viewer:
    """A page with a timeline on it, and what was put in."""

    page: object
    problems: list[str]
    data: Timeline
    trace: Trace

    def state(self) -> dict:
        return self.page.evaluate(_STATE)

    def settle(self) -> dict:
        """Wait until nothing moves any more."""
        self.page.wait_for_function(
            """() => { const t = document.querySelector('.tfprof-tl').timeline; const now = t.frames;
            return new Promise(done => setTimeout(() => done(t.frames === now && t.frame === 0 && t.painted > 0), 120)); }"""
        )
        return self.state()

    def show(self, start_ms: float, end_ms: float, scroll: float = 0) -> dict:
        ticks = 1e9 / self.item_unit
        self.page.evaluate(
            """([a, b, y]) => { const t = document.querySelector('.tfprof-tl').timeline;
            t.viewport.set(a, b); t.invalidate(); t.scrollTo(y); }""",
            [start_ms * ticks, end_ms * ticks, scroll],
        )
        return self.settle()

    @property
    def item_unit(self) -> int:
        """Picoseconds in a tick."""
        return self.page.evaluate("() => document.querySelector('.tfprof-tl').timeline.unit")

    @property
    def over(self) -> dict:
        return self.page.locator(".tl-over").bounding_box()

    def point(self, time_ticks: float, y: float) -> tuple[float, float]:
        """Where on the page a time is, `y` pixels below the frame's top."""
        state, box = self.state(), self.over
        return box["x"] + (time_ticks - state["left"]) / state["perPx"], box["y"] + y

    def lane_y(self, label: str, lane: int = 0) -> float:
        return self.page.evaluate(
            """([label, lane]) => { const t = document.querySelector('.tfprof-tl').timeline;
            const box = t.shown.boxes.find(b => t.tracks[b.track].label === label && b.lane - t.tracks[b.track].lane === lane);
            return (box.top + box.bottom) / 2 - (box.pinned ? 0 : t.scroll); }""",
            [label, lane],
        )

    def events(self, label: str, lane: int, track: int | None = None) -> pd.DataFrame:
        """Events of one lane, in ticks, with their names; of the first track of that label, if not of a given one."""
        tracks = self.data.tracks
        row = tracks[tracks["label"] == label].iloc[0] if track is None else tracks.iloc[track]
        frame = self.data.hidden if row["hidden"] else self.data.events
        events = frame.iloc[row["first"] : row["first"] + row["count"]]
        events = events[events["lane"] == lane]
        start = events["start_ps"].to_numpy() / self.item_unit
        return pd.DataFrame(
            {
                "name": self.data.names["name"].to_numpy()[events["name"]],
                "start": start,
                "end": start + events["duration_ps"].to_numpy() / self.item_unit,
            }
        )


def ps_of(text: str) -> float:
    """Turn a time as it is shown into picoseconds."""
    number, _, unit = text.partition(" ")
    return float(number) * {"": 1, "ps": 1, "ns": 1e3, "µs": 1e6, "ms": 1e9, "s": 1e12}[unit]


def page_of(trace: Trace) -> tuple[Timeline, str]:
    """Return a timeline, and a page with nothing else on it."""
    data = timeline(trace, find_steps(trace))
    payload = Payload(id="trace")
    payload.tabs.append(timeline_tab(payload, data, stats=stat_columns(trace)))
    return data, report_page(payload, "<p>summary</p>", "trace")


def open_painted(browser, html: str, width: int = 1200, **options: object) -> tuple[object, list[str]]:
    page, problems = open_page(browser, html, width, **options)
    page.wait_for_function(PAINTED)
    return page, problems


def open_report(browser, report: Report, tab: str = "Trace") -> Viewer:
    """Open a report at a tab; the viewer is of its first host."""
    page, problems = open_page(browser, report_page(report.payload, "", "report"))
    page.get_by_role("tab", name=tab).click()
    if tab == "Trace":
        page.wait_for_function(PAINTED)
    return Viewer(page, problems, report.timelines[0], report.hosts[0].trace)


def open_page(browser, html: str, width: int = 1200, **options: object) -> tuple[object, list[str]]:
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: problems.append(request.url) if request.url.startswith("http") else None)
    page.route("http*://**/*", lambda route: route.abort())
    # Above and below it there is a page to scroll.
    html = html.replace("</body>", '<div style="height: 2000px"></div></body>')
    page.route("file:///trace.html", lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto("file:///trace.html")
    return page, problems
