"""A report that is too big for its page, in the real JupyterLab: while its kernel is there, the trace is whole."""

from __future__ import annotations

import re

import pytest

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("jupyterlab")

from generate import gpu_capture  # noqa: E402
from lab import WIDGET, Lab, Notebook, run_new_cell  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.notebook]

expect = playwright.expect

# Little is sent at once, so that a window must be narrow; and the page is too small for a third of the events.
SOURCE = """
import tfprof_widgets as tfprof, tfprof_widgets.report.on_demand
tfprof_widgets.report.on_demand.MOST_EVENTS = 3000
report = tfprof.load({path!r})
report.max_mb = (len(report.html) - 60_000) / 1e6
report
"""
TIMELINE = "document.querySelector('.tfprof-tl').timeline"
# Events of the file in view, each by its name and where it is: those that stand for others are no events.
IN_VIEW = f"""
() => {{
  const t = {TIMELINE};
  const [from, to] = [t.viewport.start, t.viewport.end];
  const found = {{ alone: 0, bars: 0, beyond: 0 }};
  for (const track of t.tracks) {{
    if (track.kind !== "host" && track.kind !== "device") continue;
    const store = t.stores.get(false);
    for (let i = store.laneFirst[track.lane]; i < store.laneFirst[track.lane + track.lanes]; i++) {{
      if (store.start[i] >= to || store.end[i] <= from) continue;
      if (t.names.role[store.name[i]] === "merged") found.bars++;
      else found.alone++;
      if (store.row[i] >= t.page.store.n) found.beyond++;
    }}
  }}
  return found;
}}
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    path = tmp_path_factory.mktemp("capture") / "host.xplane.pb"
    gpu_capture(devices=2, steps=40, layers=8).save(path)
    return path


@pytest.fixture(scope="module")
def notebook(browser, tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("on_demand"))
    lab.write("big.ipynb", "1 + 1")
    opened = Notebook(browser, lab, "big.ipynb")
    yield opened
    opened.close()
    lab.stop()


def test_what_the_page_lacks_comes_from_python_and_stays_when_python_goes(notebook, capture):
    page = notebook.page
    cell = run_new_cell(notebook, SOURCE.format(path=str(capture)))
    report = cell.locator(".tfprof-app")
    report.get_by_role("tab", name="Trace").click()
    source = report.locator(".tl-source")
    expect(source).to_contain_text("sends at most 3,000 at once: zoom in")
    assert page.evaluate(IN_VIEW)["bars"] > 0

    # A search is told what it finds of how many.
    search = report.get_by_role("searchbox", name="Search events by name")
    search.fill("relu")
    hits = report.locator(".tl-hits")
    expect(hits).to_contain_text("in the whole trace")
    here, whole = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) (?:hits|in)", hits.inner_text()))
    assert 0 < here < whole
    counted = run_new_cell(notebook, "print('relu:', report.events['name'].str.contains('relu', case=False).sum())")
    assert counted.locator(".jp-OutputArea-output").inner_text().strip() == f"relu: {whole}"
    search.fill("")

    # Zoomed in, every event of the window is there, and many of them are not of the page.
    report.scroll_into_view_if_needed()
    page.evaluate(
        f"() => {{ const t = {TIMELINE}; const [a, b] = t.whole(); t.go(a + (b - a) * 0.4, a + (b - a) * 0.43); }}"
    )
    expect(source).to_contain_text("all those of this window")
    zoomed = page.evaluate(IN_VIEW)
    assert zoomed["bars"] == 0
    assert zoomed["beyond"] > 20

    # A box there counts every event once, as Python does.
    page.evaluate(
        f"() => {{ const t = {TIMELINE}; t.selectBox({{ left: 10, right: t.width - 10, top: 0, bottom: t.height }}); }}"
    )
    title = report.locator(".tl-details h5").inner_text()
    count, repeated = (
        int(re.search(rf"([\d,]+) {words}", title)[1].replace(",", "")) for words in ("events of", "of them")
    )
    told = run_new_cell(notebook, "print(len(report.selection))")
    expect(told.locator(".jp-OutputArea-output")).to_have_text(str(count - repeated))
    report.scroll_into_view_if_needed()

    # One of them has its details, and is what is selected in Python.
    page.evaluate(
        f"""() => {{
          const t = {TIMELINE};
          const store = t.stores.get(false);
          const track = t.tracks.find((each) => each.kind === "device");
          for (let lane = track.lane; lane < track.lane + track.lanes; lane++)
            for (let event = store.laneFirst[lane]; event < store.laneFirst[lane + 1]; event++)
              if (store.row[event] >= t.page.store.n) return t.select({{ store, lane, event }}, true);
        }}"""
    )
    expect(report.locator(".tl-stats")).to_contain_text("Stats (from Python)")
    expect(report.locator(".tl-stats dt").first).to_be_visible()
    name = report.locator(".tl-event h5").inner_text()
    expect(source).to_contain_text("all those of this window")
    told = run_new_cell(notebook, "print(*report.selection['name'], sep='|')")
    expect(told.locator(".jp-OutputArea-output")).to_have_text(name)

    # What launched it may be one of a bar's, too: it is fetched, and selected.
    report.get_by_role("button", name="Caused by").click()
    back = report.get_by_role("button", name="Led to").first
    back.wait_for()
    expect(back).to_have_attribute("title", f"Go to {name}")
    back.click()
    expect(report.locator(".tl-event h5")).to_have_text(name)

    # The kernel ends: what is here stays, and what isn't is said.
    before = page.evaluate(IN_VIEW)
    notebook.command("kernelmenu:shutdown")
    page.wait_for_function(f"{WIDGET}.sessionContext.session === null")
    report.scroll_into_view_if_needed()
    page.evaluate(f"() => {TIMELINE}.all()")
    expect(source).to_contain_text("the kernel that has the others is gone")
    page.evaluate(
        f"() => {{ const t = {TIMELINE}; const [a, b] = t.whole(); t.go(a + (b - a) * 0.4, a + (b - a) * 0.43); }}"
    )
    page.wait_for_function(
        f"() => {{ const t = {TIMELINE}; return t.viewport.length < (t.whole()[1] - t.whole()[0]) * 0.05 }}"
    )
    assert page.evaluate(IN_VIEW)["beyond"] > 0
    assert before["beyond"] > 0
    search.fill("relu")
    expect(hits).to_contain_text("events that are here one by one")
    assert not notebook.errors
