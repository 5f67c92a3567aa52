"""The ways between the trace and the report's other tools, gone with the mouse: from a step, a kernel, memory, a finding, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from generate import Space, gpu_capture, pod_captures
from tfprof_widgets import xspace
from tfprof_widgets.display.html import report_page
from tfprof_widgets.report import Report
from timeline_page import PAINTED, Viewer, details_of, open_page, ps_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.browser

FOUND = ".tabulator-row.tfprof-found:visible"


@pytest.fixture(scope="module")
def generated() -> Report:
    return Report([xspace.read(gpu_capture(steps=30).bytes())])


@pytest.fixture(scope="module")
def copying() -> Report:
    return Report([xspace.read(copies_back().bytes())])


@pytest.fixture(scope="module")
def captured(capture) -> Report:
    return Report([xspace.read(capture("gpu_w0"))])


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    return request.getfixturevalue(request.param)


@pytest.fixture
def viewer(browser, report: Report) -> Iterator[Viewer]:
    page, problems = open_page(browser, report_page(report.payload, "", "report"), width=1400)
    yield Viewer(page, problems, report.timelines[0], report.hosts[0].trace)
    assert problems == []
    page.context.close()


both = pytest.mark.parametrize("report", ["generated", "captured"], indirect=True)


def open_tab(viewer: Viewer, name: str) -> None:
    viewer.page.get_by_role("tab", name=name).click()
    if name == "Trace":
        viewer.page.wait_for_function(PAINTED)
        viewer.settle()


def shown_tab(viewer: Viewer) -> str:
    return viewer.page.locator("[role=tab][aria-selected=true]").text_content()


def track_with(viewer: Viewer, name: str) -> str:
    """Return the label of a device's track with an event of that name."""
    names = viewer.data.names["name"].to_numpy()[viewer.data.events["name"]]
    devices = viewer.data.tracks[viewer.data.tracks["kind"] == "device"]
    return next(row.label for row in devices.itertuples() if (names[row.first : row.first + row.count] == name).any())


def click_event(viewer: Viewer, label: str, name: str) -> tuple[float, float]:
    """Click the middle of the longest event of that name on a track; its start and end in ticks."""
    lanes = int(viewer.data.tracks.set_index("label").loc[label, "lanes"])
    found = [
        (lane, row) for lane in range(lanes) for row in viewer.events(label, lane).itertuples() if row.name == name
    ]
    lane, event = max(found, key=lambda each: each[1].end - each[1].start)
    length = event.end - event.start
    viewer.page.evaluate(
        """([label, a, b]) => { const t = document.querySelector('.tfprof-tl').timeline;
        const track = t.tracks.findIndex(each => each.label === label);
        const band = t.layout.bands.find(each => each.track === track);
        t.viewport.set(a, b); t.scrollTo(band.top - t.layout.pinnedHeight - 20); t.invalidate(); }""",
        [label, event.start - length, event.end + length],
    )
    viewer.settle()
    viewer.page.mouse.click(*viewer.point((event.start + event.end) / 2, viewer.lane_y(label, lane)))
    viewer.page.wait_for_function("name => document.querySelector('.tl-details h5')?.textContent === name", arg=name)
    return event.start, event.end


def cells(viewer: Viewer) -> list[str]:
    viewer.page.locator(FOUND).wait_for()
    assert viewer.page.locator(FOUND).count() == 1
    row, window = viewer.page.locator(FOUND).bounding_box(), viewer.page.viewport_size
    assert 0 <= row["y"] <= window["height"] - row["height"]
    return viewer.page.locator(f"{FOUND} .tabulator-cell").all_text_contents()


def step_column(viewer: Viewer, tab: str, step: int) -> tuple[float, float]:
    """Where on the page the column of a step is, once its chart is drawn and in the window."""
    chart = viewer.page.locator(f"[data-tab={tab}] .tfprof-clickable").locator("visible=true").first
    chart.scroll_into_view_if_needed()
    find = """async ([canvas, step]) => {
      const Bokeh = await Object.values(globalThis.__tfprof_bokeh)[0];
      const view = [...Bokeh.index.roots].find(each => canvas.contains(each.el) && each.frame?.bbox.width > 50);
      if (view === undefined) return null;
      const { data } = view.model.document.get_model_by_name("steps");
      const at = Array.from(data.step).indexOf(step);
      const { left, right, top, bottom } = view.frame.bbox;
      const { start, end } = view.model.x_range;
      const box = view.el.getBoundingClientRect();
      return [box.left + left + (data.x[at] - start) / (end - start) * (right - left), box.top + (top + bottom) / 2];
    }"""
    where = [chart.element_handle(), step]
    viewer.page.wait_for_function(find, arg=where)
    return tuple(viewer.page.evaluate(find, where))


BAR = """async ([canvas, bar]) => {
  const Bokeh = await Object.values(globalThis.__tfprof_bokeh)[0];
  const view = [...Bokeh.index.roots].find(each => canvas.contains(each.el) && each.frame?.bbox.width > 50);
  if (view === undefined) return null;
  const { data } = view.model.document.get_model_by_name("bars");
  const { left, right, top, bottom } = view.frame.bbox;
  const { start, end } = view.model.x_range;
  const box = view.el.getBoundingClientRect();
  return [box.left + left + (data.x[bar] - start) / (end - start) * (right - left), box.top + (top + bottom) / 2];
}"""


def test_a_bar_of_the_pod_is_shown_in_the_trace(browser) -> None:
    report = Report([xspace.read(space.bytes()) for space in pod_captures(2, 2, 6)])
    page, problems = open_page(browser, report_page(report.payload, "", "report"), width=1400)
    viewer = Viewer(page, problems, report.timelines[1], report.hosts[1].trace)
    # The second host's second device, its own clock and tracks; then, by keys, the slowest of that step.
    shown = report.pod[report.pod["step"] == 2].sort_values(["host", "device"]).reset_index(drop=True)
    slowest = shown["own_ms"].idxmax()  # all devices of a host take the same time: they meet in a collective
    for bar, by_key in ((3, False), (slowest, True)):
        open_tab(viewer, "Pod")
        slider = page.get_by_role("slider", name="Step")
        slider.wait_for()
        slider.fill("2")
        chart = page.locator("[data-tab=pod] .tfprof-clickable")
        chart.scroll_into_view_if_needed()
        where = [chart.element_handle(), bar]
        page.wait_for_function(BAR, arg=where)
        if by_key:
            page.get_by_role("button", name="Slowest in the trace").press("Enter")
        else:
            page.mouse.click(*page.evaluate(BAR, where))
        row = shown.iloc[bar]
        chosen = page.locator(".tl-details h5").locator("visible=true")
        chosen.wait_for()
        assert shown_tab(viewer) == "Trace"
        assert chosen.inner_text() == f"{row['kind']} {row['host_step']}"
        place = page.evaluate(
            """() => { const t = [...document.querySelectorAll('.tfprof-tl')].find(each => each.checkVisibility()).timeline;
            const { store, lane, event } = t.selected;
            const of = t.tracks.find(track => t.storeOf(track) === store && lane >= track.lane && lane < track.lane + track.lanes);
            return [of.hint, t.item.events, store.start[event] * t.unit / 1e9,
              t.viewport.start * t.unit / 1e9, t.viewport.end * t.unit / 1e9]; }"""
        )
        host = [each.trace.host for each in report.hosts].index(row["host"])
        assert place[:2] == [f"Steps on {row['device']}", f"timeline_{host}_events"]
        assert place[2] == pytest.approx(row["start_ms"], abs=1e-3)
        end_ms = row["start_ms"] + row["total_ms"]
        assert place[3] < row["start_ms"] < end_ms < place[4] < end_ms + row["total_ms"]
    assert problems == []
    page.context.close()


@both
@pytest.mark.parametrize("tab", ["Overview", "Input pipeline"])
def test_a_step_of_the_chart_is_shown_in_the_trace(viewer: Viewer, report: Report, tab: str) -> None:
    open_tab(viewer, tab)
    row = report.steps.iloc[len(report.steps) // 2]
    step = report.steps[report.steps["step"] == row["step"]].sort_values("duration_ms").iloc[-1]  # the slowest device's
    viewer.page.mouse.click(*step_column(viewer, tab.lower().replace(" ", "_"), int(step["step"])))
    viewer.page.wait_for_function(PAINTED)
    viewer.page.locator(".tl-details h5").wait_for()
    state = viewer.settle()
    assert shown_tab(viewer) == "Trace"
    assert viewer.page.locator(".tl-details h5").text_content() == f"{step['kind']} {step['step']}"
    start, end = (ms * 1e9 / viewer.item_unit for ms in (step["start_ms"], step["start_ms"] + step["duration_ms"]))
    assert state["start"] < start < end < state["end"]
    assert end - start > 0.7 * (state["end"] - state["start"])
    outline = viewer.page.locator(".tl-selected").bounding_box()
    assert outline["x"] == pytest.approx(viewer.point(start, 0)[0], abs=2)
    assert outline["x"] + outline["width"] == pytest.approx(viewer.point(end, 0)[0], abs=2)


@both
def test_a_kernel_leads_to_its_row_and_to_that_of_its_op(viewer: Viewer, report: Report) -> None:
    kernel = report.kernels.iloc[len(report.kernels) // 2]
    label = track_with(viewer, kernel["kernel_name"])
    open_tab(viewer, "Trace")
    # Filters that hide the row are taken away.
    open_tab(viewer, "GPU kernels")
    viewer.page.locator("[data-tab=kernels] .tfprof-search:visible").fill("nothing has this name")
    viewer.page.get_by_text("No rows match.").wait_for()
    open_tab(viewer, "Trace")
    click_event(viewer, label, kernel["kernel_name"])
    op = details_of(viewer.page.locator(".tl-details"))["Op"]
    viewer.page.get_by_role("button", name="Kernel in GPU kernels").click()
    assert shown_tab(viewer) == "GPU kernels"
    found = cells(viewer)
    # The cell says what the kernel computes; its full name is what the pointer shows.
    names = viewer.page.locator(f"{FOUND} [title]").evaluate_all("every => every.map(each => each.title)")
    assert any(kernel["kernel_name"] in name for name in names)
    assert any(op in cell for cell in found)
    open_tab(viewer, "Trace")
    viewer.page.get_by_role("button", name="Op in TensorFlow stats").click()
    assert shown_tab(viewer) == "TensorFlow stats"
    found = cells(viewer)
    assert "Device" in found
    assert any(op in cell for cell in found)


@both
def test_an_allocation_leads_to_what_was_held_then_and_back(viewer: Viewer, report: Report) -> None:
    known = report.memory[(report.memory["kind"] == "allocation") & (report.memory["op_name"].astype(str) != "")]
    row = known.iloc[len(known) // 2]
    open_tab(viewer, "Memory")
    open_tab(viewer, "Trace")
    time_ps = row["time_ms"] * 1e9
    names = viewer.data.names["name"].to_numpy()
    at = next(
        i
        for i in (viewer.data.events["start_ps"] - time_ps).abs().nsmallest(5).index
        if names[viewer.data.events["name"][i]] == "MemoryAllocation"
    )
    # It takes no time: the person finds it by its name and the keys.
    viewer.page.locator(".tfprof-tl").focus()
    viewer.page.keyboard.press("/")
    viewer.page.keyboard.type("MemoryAllocation")
    viewer.page.wait_for_function("() => document.querySelector('.tl-hits').textContent.includes('hits')")
    ticks = viewer.data.events["start_ps"][at] / viewer.item_unit
    viewer.page.evaluate(
        "t => { const tl = document.querySelector('.tfprof-tl').timeline; tl.viewport.set(t - 20, t + 400); tl.invalidate(); }",
        ticks,
    )
    viewer.settle()
    viewer.page.keyboard.press("Enter")
    viewer.page.get_by_role("button", name="Memory held then").click()
    assert shown_tab(viewer) == "Memory"
    assert any(str(row["op_name"]) in cell for cell in cells(viewer))
    chosen = viewer.page.get_by_role("spinbutton", name="What was held at (ms)").locator("visible=true")
    assert float(chosen.input_value()) == pytest.approx(row["time_ms"], abs=2e-3)
    # And back, from the change after it.
    viewer.page.get_by_role("button", name="Next change").locator("visible=true").click()
    later = float(chosen.input_value())
    viewer.page.get_by_role("button", name="Show this time in the trace").locator("visible=true").click()
    assert shown_tab(viewer) == "Trace"
    viewer.page.wait_for_function(
        "() => /^Memory(A|Dea)llocation$/.test(document.querySelector('.tl-details h5')?.textContent)"
    )
    state = viewer.settle()
    start = ps_of(viewer.page.locator(".tl-details dd").first.text_content())
    assert start == pytest.approx(later * 1e9, abs=1500)
    assert state["start"] * viewer.item_unit < start < state["end"] * viewer.item_unit


def copies_back() -> Space:
    """Steps in which the device copies to the host for a third of the time, and does nothing else then."""
    space = Space("worker-0")
    host = space.plane("/host:CPU")
    python, executor = host.line("python", id=1), host.line("tf_Compute/2", id=2)
    stream = space.plane("/device:GPU:0", id=1).line("Stream #1(Kernel)", id=1)
    for step in range(10):
        at = 3_000 * step
        python.event("train", at, 2_900, step_num=step, _r=1)
        python.event("FunctionRun", at + 1, 2, id=1000 + step, _r=1)
        executor.event("ExecutorState::Process", at + 4, 60, id=1000 + step, iter_num=0)
        executor.event("cuLaunchKernel", at + 10, 1, correlation_id=step + 1)
        stream.event("sgemm", at + 50, 1_800, tf_op="dense/Cast:Cast", correlation_id=step + 1)
        stream.event("MemcpyD2H", at + 1_850, 1_000, correlation_id=step + 1)
    return space


@pytest.mark.parametrize("report", ["copying"], indirect=True)
def test_a_finding_is_shown_in_the_trace(viewer: Viewer, report: Report) -> None:
    number, finding = next(
        (i, found) for i, found in enumerate(report.advice) if any("highlight" in href for _, href in found.links)
    )
    open_tab(viewer, "Overview")
    item = viewer.page.locator(".tfprof-finding").nth(number)
    item.locator("summary").click()
    assert item.locator("summary").get_by_text(finding.title).is_visible()
    item.get_by_role("button", name="Trace").click()
    viewer.page.wait_for_function("() => document.querySelector('.tl-hits')?.textContent.includes('hits')")
    viewer.page.locator(".tl-selected").wait_for()
    events = report.events[report.events["name"].astype(str).str.contains("Memcpy", case=False)]
    assert viewer.page.locator(".tl-hits").text_content().split(" hits")[0] == f"{len(events):,}"
    assert "Memcpy" in viewer.page.locator(".tl-details h5").text_content()


SELECTED = """() => { const t = document.querySelector('.tfprof-tl').timeline; const { store, lane, event } = t.selected;
const track = t.tracks.find(each => t.storeOf(each) === store && lane >= each.lane && lane < each.lane + each.lanes);
return [track.kind, t.names.op[store.name[event]], store.duration(event) * t.unit / 1e6]; }"""


@both
def test_a_kernel_of_the_table_is_shown_in_the_trace(viewer: Viewer, report: Report) -> None:
    """Its longest run: that is what the row is about. Old files have the host's launches under the same name."""
    open_tab(viewer, "GPU kernels")
    name, op, longest_us = report.kernels[["kernel_name", "op_name", "max_time_us"]].iloc[0]
    row = viewer.page.locator("[data-tab=kernels] .tabulator-row:visible").first
    row.hover()
    row.get_by_role("button", name=f"Show {name} in the trace").click()
    viewer.page.wait_for_function("() => /^[\\d,]+ hit/.test(document.querySelector('.tl-hits')?.textContent)")
    viewer.page.locator(".tl-selected").wait_for()
    state = viewer.settle()
    assert viewer.page.locator(".tl-details h5").text_content() == name
    kind, of_op, duration_us = viewer.page.evaluate(SELECTED)
    assert (kind, of_op) == ("device", op)
    assert duration_us == pytest.approx(longest_us)
    same = report.kernels[(report.kernels["kernel_name"] == name) & (report.kernels["op_name"] == op)]
    assert viewer.page.locator(".tl-hits").text_content().startswith(f"{same['occurrences'].sum():,} hit")
    outline = viewer.page.locator(".tl-selected").bounding_box()
    assert outline["width"] > 20
    assert outline["x"] > viewer.over["x"]
    assert state["end"] - state["start"] < viewer.data.span_ps / viewer.item_unit / 2


@both
@pytest.mark.parametrize("side", ["Device", "Host"])
def test_an_op_of_the_table_is_shown_where_it_ran(viewer: Viewer, report: Report, side: str) -> None:
    open_tab(viewer, "TensorFlow stats")
    ops = report.ops[(report.ops["host_or_device"] == side) & report.ops["name"].isin(report.kernels["op_name"])]
    name = ops.sort_values("self_time_us", ascending=False)["name"].iloc[0]
    viewer.page.locator("[data-tab=op_stats] .tfprof-search:visible").first.fill(name)
    row = viewer.page.locator("[data-tab=op_stats] .tabulator-row:visible", has_text=side).first
    row.hover()
    row.locator(".tfprof-totrace").first.click()
    viewer.page.locator(".tl-selected").wait_for()
    kind, of_op, _ = viewer.page.evaluate(SELECTED)
    assert (kind, of_op) == (side.lower(), name)
