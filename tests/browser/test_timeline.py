"""The timeline in Chromium, used as a person uses it: with mouse, wheel and keys."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from generate import Space, gpu_capture
from tfprof_widgets import xspace
from tfprof_widgets.analysis.details import ID_STATS, first_row
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.selection import selected_rows
from tfprof_widgets.analysis.thinning import thinned
from tfprof_widgets.analysis.timeline import Timeline
from tfprof_widgets.display.html import report_page
from tfprof_widgets.display.payload import Payload
from tfprof_widgets.report import Report
from tfprof_widgets.views.timeline import timeline_tab
from timeline_page import DRAWN, Viewer, details_of, open_page, open_painted, open_report, page_of, ps_of

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"globalThis.pwned=1;new Image().src='https://example.com/x'\">"
MATHS = "$$x^2$$ and \\(y\\)"

SELECTION = "() => document.querySelector('.tfprof-tl').timeline.ctx.model.get('selection')"


def small() -> Space:
    space = Space(hostname="worker")
    host = space.plane("/host:CPU")
    python = host.line("python", id=1)
    for step in range(40):
        start = step * 1000
        python.event("train", start, 900, step_num=step, _r=1)
        python.event("call", start + 50, 800, tf_function_call="concrete", id=step)
        python.event("inner", start + 100, 200)
    python.event(HOSTILE, 41_000, 900)
    python.event(MATHS, 42_000, 900)
    python.event("line\nbreak", 43_000, 900)
    for thread in range(8):
        pool = host.line(f"tf_Compute/{thread}", id=10 + thread)
        for i in range(400):
            pool.event("dense/MatMul:MatMul" if i % 3 else "relu/Relu:Relu", i * 100 + thread, 5 + i % 90)
            pool.event("ThreadpoolListener::Record", i * 100 + thread + 1, 0)
    return space


@pytest.fixture(scope="module")
def small_trace() -> tuple[Trace, Timeline, str]:
    trace = Trace(xspace.read(small().bytes()))
    return trace, *page_of(trace)


@contextmanager
def viewed(browser, trace: Trace, data: Timeline, html: str, **options: object) -> Iterator[Viewer]:
    """Open a page of a trace; at the end nothing has gone wrong."""
    viewer = Viewer(*open_painted(browser, html, **options), data=data, trace=trace)
    yield viewer
    assert viewer.problems == []
    viewer.page.context.close()


@pytest.fixture
def viewer(browser, small_trace):
    with viewed(browser, *small_trace) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def cpu_fit(browser, capture):
    trace = Trace(xspace.read(capture("cpu_fit")))
    with viewed(browser, trace, *page_of(trace), width=1400) as viewer:
        yield viewer


# ---- what is drawn ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpu_w0(browser, capture):
    trace = Trace(xspace.read(capture("gpu_w0")))
    with viewed(browser, trace, *page_of(trace), width=1400) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def gpu(browser):
    trace = Trace(xspace.read(gpu_capture(2, steps=40).bytes()))
    with viewed(browser, trace, *page_of(trace), width=1400) as viewer:
        yield viewer


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "scroll"), [(-1, 464, 0), (100, 160, 0), (110, 114, 150), (111, 111.2, 200)]
)
def test_what_is_drawn_is_what_is_in_the_file(cpu_fit: Viewer, start_ms: float, end_ms: float, scroll: float) -> None:
    check_what_is_drawn(cpu_fit, start_ms, end_ms, scroll)


@pytest.mark.parametrize(("start_ms", "end_ms", "scroll"), [(-20, 2800, 0), (2560, 2600, 600), (2574, 2574.05, 900)])
def test_what_is_drawn_of_devices_is_what_is_in_the_file(
    gpu_w0: Viewer, start_ms: float, end_ms: float, scroll: float
) -> None:
    check_what_is_drawn(gpu_w0, start_ms, end_ms, scroll)


@pytest.mark.parametrize("share", [1.02, 0.1, 0.003, 0.00001])
@pytest.mark.parametrize("scroll", [0, 10_000])
def test_what_is_drawn_of_a_generated_capture(gpu: Viewer, share: float, scroll: float) -> None:
    half = share * gpu.data.span_ps / 1e9 / 2
    busy = gpu.data.events["start_ps"].median() / 1e9
    middle = gpu.data.span_ps / 1e9 / 2 if share > 1 else busy
    check_what_is_drawn(gpu, middle - half, middle + half, scroll)


def check_what_is_drawn(viewer: Viewer, start_ms: float, end_ms: float, scroll: float) -> None:
    state = viewer.show(start_ms, end_ms, scroll)
    drawn = viewer.page.evaluate(DRAWN)
    assert drawn["lanes"]
    columns = ["track", "lane", "left", "right", "count", "busy", "name", "y", "index"]
    singles, bars = (pd.DataFrame(drawn[part], columns=columns) for part in ("singles", "bars"))
    assert len(singles) + len(bars) == state["rectangles"] <= 10_000
    pixel = state["perPx"] * state["minPx"]
    low = math.floor(state["left"] / pixel) * pixel
    high = math.ceil((state["left"] + state["width"] * state["perPx"]) / pixel) * pixel
    n = 0
    for label, lane, track in drawn["lanes"]:
        events = viewer.events(label, lane, track)
        events = events[(events["end"] >= low) & (events["start"] < high)]
        n += len(events)
        is_long = (events["end"] - events["start"]) >= pixel
        mine = singles[(singles["index"] == track) & (singles["lane"] == lane)]
        # Every event of a pixel or more is there, at its place, under its name.
        assert mine["name"].to_list() == events["name"][is_long].to_list()
        np.testing.assert_array_equal(mine["left"], events["start"][is_long])
        np.testing.assert_array_equal(mine["right"], events["end"][is_long])
        # The bars hold all the others, and cover them and nothing farther than a pixel from them.
        short = events[~is_long]
        own = bars[(bars["index"] == track) & (bars["lane"] == lane)]
        assert own["count"].sum() == len(short)
        assert own["busy"].sum() == pytest.approx((short["end"] - short["start"]).sum(), abs=1e-3)
        for bar in own.itertuples():
            inside = short[(short["end"] >= bar.left - 1e-6) & (short["start"] <= bar.right + 1e-6)]
            assert len(inside)
            assert inside["start"].min() - pixel <= bar.left + 1e-6
            assert bar.right <= inside["end"].max() + pixel + 1e-6
        if len(own):
            left, right = own["left"].to_numpy(), own["right"].to_numpy()
            middle = ((short["start"] + short["end"]) / 2).to_numpy()
            at = np.clip(np.searchsorted(left, middle, side="right") - 1, 0, None)
            assert (middle <= right[at] + pixel * 0.51).all()
    assert n == state["total"]


def test_the_pixels_are_the_events(viewer: Viewer) -> None:
    from PIL import Image

    viewer.show(0, 6)
    names = viewer.data.names.assign(
        color=viewer.page.evaluate("() => document.querySelector('.tfprof-tl').timeline.names.color")
    )
    color_of = dict(zip(names["name"], names["color"], strict=True))
    box = viewer.over
    viewer.page.mouse.move(5, 5)
    image = Image.open(io.BytesIO(viewer.page.screenshot(clip=box))).convert("RGB")
    state = viewer.state()
    checked = 0
    for label in ("python (main)", "tf_Compute #1", "tf_Compute #2"):
        events = viewer.events(label, 0)
        y = round(viewer.lane_y(label)) + 6  # below the name
        for event in events.itertuples():
            left, right = ((t - state["left"]) / state["perPx"] for t in (event.start, event.end))
            if left < 2 or right > box["width"] - 3 or right - left < 3:
                continue
            color = color_of[event.name]
            want = tuple(int(color[i : i + 2], 16) for i in (1, 3, 5))
            for x in (left + 1.5, (left + right) / 2 - 0.5, right - 2.5):
                assert image.getpixel((int(x), y)) == want, (label, event.name, x)
                checked += 1
    assert checked > 100
    gap = (np.array([950_000]) - state["left"]) / state["perPx"]  # between two steps
    assert image.getpixel((int(gap[0]), round(viewer.lane_y("python (main)")))) == (255, 255, 255)


def test_names_of_a_profile_are_text_and_nothing_else(viewer: Viewer) -> None:
    viewer.show(40.9, 44)
    for start, shown in ((41_000, HOSTILE), (42_000, MATHS), (43_000, "line\nbreak")):
        x, y = viewer.point((start + 450) * 1000, viewer.lane_y("python (main)"))
        viewer.page.mouse.move(x, y)
        viewer.page.wait_for_function("() => !document.querySelector('.tl-tip').hidden")
        viewer.settle()
        assert viewer.page.locator(".tl-tip b").text_content() == shown
        viewer.page.mouse.click(x, y)
        viewer.settle()
        assert viewer.page.locator(".tl-details h5").text_content() == shown
    assert viewer.page.locator(".tfprof-tl img").count() == 0
    assert viewer.page.evaluate("() => globalThis.pwned") is None
    assert viewer.page.evaluate("() => globalThis.MathJax") is None


def test_what_is_not_drawn_one_by_one_is_said(cpu_fit: Viewer) -> None:
    state = cpu_fit.show(-1, 464)
    said = cpu_fit.page.locator(".tl-foot span").first.text_content()
    merged = state["total"] - state["alone"]
    # The margins at both ends are no part of the trace.
    assert said == (
        f"In view: 463.0 ms (all), {state['total']:,} events: {state['alone']:,} one by one, "
        f"{merged:,} short ones merged into bars"
    )
    assert cpu_fit.page.locator(".tl-minilabel").text_content() == "0 – 463.0 ms"
    state = cpu_fit.show(111, 111.1)
    said = cpu_fit.page.locator(".tl-foot span").first.text_content()
    assert said == f"In view: 100.0 µs, {state['total']:,} events"


def test_nothing_flashes_while_moving(viewer: Viewer) -> None:
    """In no frame of a long drag is a part of the lane empty that holds events."""
    from PIL import Image

    viewer.show(0, 30)
    x, y = viewer.point(15_000_000, viewer.lane_y("python (main)"))
    viewer.page.mouse.move(x, y)
    viewer.page.mouse.down()
    for step in range(1, 6):
        viewer.page.mouse.move(x - 83 * step, y)
        image = Image.open(io.BytesIO(viewer.page.screenshot(clip=viewer.over))).convert("RGB")
        row = [image.getpixel((i, round(viewer.lane_y("python (main)")) + 6)) for i in range(10, image.width - 10)]
        white = sum(pixel == (255, 255, 255) for pixel in row) / len(row)
        assert 0.05 < white < 0.2  # a tenth of each step is free
    viewer.page.mouse.up()


# ---- moving -------------------------------------------------------------------------------------------------------


def test_the_wheel_scrolls_the_page_until_the_timeline_is_used(viewer: Viewer) -> None:
    before = viewer.settle()
    x, y = viewer.point(20_000_000, 100)
    viewer.page.mouse.move(x, y)
    viewer.page.mouse.wheel(0, 100)
    viewer.page.wait_for_function("() => scrollY > 50")
    assert viewer.settle()["end"] == before["end"]
    viewer.page.evaluate("() => scrollTo(0, 0)")
    viewer.page.mouse.click(x, y)
    for _ in range(5):
        viewer.page.mouse.wheel(0, -100)
    after = viewer.settle()
    assert viewer.page.evaluate("() => scrollY") == 0
    assert after["end"] - after["start"] < 0.4 * (before["end"] - before["start"])
    # The time under the pointer stays there, to a pixel's rounding before and after.
    assert viewer.point(20_000_000, 100)[0] == pytest.approx(x, abs=2)


def test_ctrl_and_the_wheel_zoom_at_once(viewer: Viewer) -> None:
    before = viewer.settle()
    x, y = viewer.point(10_000_000, 100)
    viewer.page.mouse.move(x, y)
    viewer.page.keyboard.down("Control")
    viewer.page.mouse.wheel(0, -100)
    viewer.page.keyboard.up("Control")
    after = viewer.settle()
    assert after["perPx"] < 0.9 * before["perPx"]
    assert viewer.point(10_000_000, 100)[0] == pytest.approx(x, abs=2)


@pytest.fixture
def touched(browser, small_trace):
    """A viewer on a screen that is touched, and a function that puts fingers on it."""
    with viewed(browser, *small_trace, has_touch=True) as viewer:
        session = viewer.page.context.new_cdp_session(viewer.page)

        def touch(kind: str, *fingers: tuple[float, float], first: int = 0) -> None:
            points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(fingers, first)]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        yield viewer, touch


def test_one_finger_pans_and_a_tap_selects(touched) -> None:
    viewer, touch = touched
    viewer.page.evaluate("() => document.querySelector('.tl-main').style.height = '200px'")
    before = viewer.show(10, 20)
    box = viewer.over
    x, y = box["x"] + 500, box["y"] + 150
    touch("touchStart", (x, y))
    for step in range(1, 9):
        touch("touchMove", (x - 15 * step, y - 5 * step))
    touch("touchEnd")
    after = viewer.settle()
    assert (after["left"] - before["left"]) / before["perPx"] == pytest.approx(120, abs=0.01)
    assert after["perPx"] == before["perPx"]
    assert after["scroll"] == 40
    assert viewer.page.evaluate("() => scrollY") == 0  # the page stays where it is
    assert viewer.page.locator(".tl-details").is_hidden()
    viewer.show(10, 20)
    point = viewer.point(12_450_000, viewer.lane_y("python (main)", 1))
    touch("touchStart", point)
    touch("touchEnd")
    viewer.page.locator(".tl-details h5").wait_for()
    assert viewer.page.locator(".tl-details h5").text_content() == "call"


def test_two_fingers_zoom_at_what_is_between_them(touched) -> None:
    viewer, touch = touched
    before = viewer.show(10, 20)
    box = viewer.over
    x, y = box["x"] + 400, box["y"] + 100
    time = before["left"] + 400 * before["perPx"]
    touch("touchStart", (x - 50, y), (x + 50, y))
    for step in range(1, 11):
        touch("touchMove", (x - 50 - 10 * step, y), (x + 50 + 10 * step, y))
    touch("touchEnd")
    after = viewer.settle()
    # The fingers are three times as far apart, and so is what was under them.
    assert after["perPx"] == pytest.approx(before["perPx"] / 3, rel=0.02)
    assert viewer.point(time, 0)[0] == pytest.approx(x, abs=6)
    # Both going one way pan.
    touch("touchStart", (x - 50, y), (x + 50, y))
    for step in range(1, 6):
        touch("touchMove", (x - 50 + 10 * step, y), (x + 50 + 10 * step, y))
    touch("touchEnd")
    moved = viewer.settle()
    assert moved["perPx"] == pytest.approx(after["perPx"], rel=0.05)
    assert viewer.point(time, 0)[0] == pytest.approx(x + 50, abs=12)
    # The one that stays pans on.
    touch("touchStart", (x - 50, y), (x + 50, y))
    touch("touchMove", (x - 60, y), (x + 60, y))
    touch("touchEnd", (x + 60, y), first=1)
    one = viewer.settle()
    for step in range(1, 6):
        touch("touchMove", (x - 60 + 20 * step, y))
    touch("touchEnd")
    left = viewer.settle()
    assert (one["left"] - left["left"]) / one["perPx"] == pytest.approx(100, abs=1)
    assert viewer.page.locator(".tl-details").is_hidden()


def test_a_finger_scrolls_the_tracks_then_the_page(touched) -> None:
    viewer, touch = touched
    viewer.page.evaluate("() => document.querySelector('.tl-main').style.height = '200px'")
    viewer.show(10, 20)
    most = viewer.page.evaluate(
        "() => { const t = document.querySelector('.tfprof-tl').timeline; return t.layout.height - t.height; }"
    )

    def swipe(part: str, up: float) -> None:
        box = viewer.page.locator(part).bounding_box()
        x, y = box["x"] + 60, box["y"] + (150 if up > 0 else 65)
        touch("touchStart", (x, y))
        for step in range(1, 11):
            touch("touchMove", (x, y - up * step / 10))
        touch("touchEnd")
        viewer.settle()

    # Over the events and over the names of their tracks; there and back.
    for part in (".tl-over", ".tl-gutter"):
        swipe(part, 90)
        assert viewer.state()["scroll"] == pytest.approx(90, abs=16)
        swipe(part, -70)
        assert viewer.state()["scroll"] == pytest.approx(20, abs=32)
        assert viewer.page.evaluate("() => scrollY") == 0
        viewer.show(10, 20)
    # At their end the page goes on.
    viewer.show(10, 20, 10_000)
    assert viewer.state()["scroll"] == most
    swipe(".tl-over", 140)
    viewer.page.wait_for_function("() => scrollY > 50")


def test_dragging_pans_and_scrolls(viewer: Viewer) -> None:
    viewer.page.evaluate("() => document.querySelector('.tl-main').style.height = '200px'")
    before = viewer.show(10, 20)
    box = viewer.over
    x, y = box["x"] + 500, box["y"] + 150
    viewer.page.mouse.move(x, y)
    viewer.page.mouse.down()
    viewer.page.mouse.move(x - 60, y - 20, steps=4)
    viewer.page.mouse.move(x - 120, y - 40, steps=4)
    viewer.page.mouse.up()
    after = viewer.settle()
    assert (after["left"] - before["left"]) / before["perPx"] == pytest.approx(120, abs=0.01)
    assert after["perPx"] == before["perPx"]
    assert after["scroll"] == 40
    assert viewer.page.locator(".tl-details").is_hidden()  # a drag is no click
    # Escape gives a drag up.
    viewer.page.keyboard.press("1")
    viewer.page.mouse.move(x, y)
    viewer.page.mouse.down()
    viewer.page.mouse.move(x - 60, y - 60, steps=4)
    assert viewer.page.locator(".tl-drag").is_visible()
    viewer.page.keyboard.press("Escape")
    assert viewer.page.locator(".tl-drag").is_hidden()
    viewer.page.mouse.move(x - 90, y - 60)
    viewer.page.mouse.up()
    viewer.settle()
    assert viewer.page.locator(".tl-details").is_hidden()
    assert viewer.page.locator(".tl-drag").is_hidden()


def test_keys_move_only_while_the_timeline_has_the_focus(viewer: Viewer) -> None:
    before = viewer.show(10, 20)
    viewer.page.keyboard.press("w")
    assert viewer.settle()["end"] == before["end"]
    viewer.page.locator(".tfprof-tl").focus()
    viewer.page.keyboard.press("w")
    zoomed = viewer.settle()
    assert zoomed["end"] - zoomed["start"] < 0.9 * (before["end"] - before["start"])
    viewer.page.keyboard.press("s")
    back = viewer.settle()
    # The view glides to where a key sends it: what is left of the way when it is looked at is less than a percent.
    span = before["end"] - before["start"]
    assert back["end"] - back["start"] == pytest.approx(span, rel=0.01)
    viewer.page.keyboard.press("d")
    assert viewer.settle()["start"] > back["start"]
    viewer.page.keyboard.press("a")
    assert viewer.settle()["start"] == pytest.approx(back["start"], abs=0.01 * span)
    viewer.page.keyboard.press("z")
    whole = viewer.settle()
    assert whole["start"] < 0
    assert whole["end"] > viewer.data.span_ps / 1000
    for key, tool in (("1", "select"), ("3", "zoom"), ("4", "timing"), ("2", "pan")):
        viewer.page.keyboard.press(key)
        assert viewer.state()["tool"] == tool
        assert (
            viewer.page.locator(".tl-bar [role=radio][aria-checked=true]")
            .get_attribute("title")
            .lower()
            .startswith(tool)
        )
    viewer.show(10, 20)
    for key, start_ms in (("Home", 0), ("End", viewer.data.span_ps / 1e9 - 10)):
        viewer.page.keyboard.press(key)
        assert viewer.settle()["start"] == pytest.approx(start_ms * 1e6, abs=1e5)
    # Arrows go from tool to tool where the focus is on one, which a click doesn't leave there.
    hint = viewer.page.locator(".tl-hint")
    viewer.page.get_by_role("radio", name="Zoom").click()
    assert "drag over a time" in hint.text_content()
    viewer.page.keyboard.press("ArrowRight")
    assert viewer.state()["tool"] == "zoom"
    viewer.page.get_by_role("radio", name="Zoom").focus()
    for key, tool in (("ArrowRight", "timing"), ("ArrowRight", "select"), ("ArrowLeft", "timing")):
        viewer.page.keyboard.press(key)
        assert viewer.state()["tool"] == tool
        name = {"timing": "Time", "select": "Select"}[tool]
        assert viewer.page.get_by_role("radio", name=name).evaluate("each => each === document.activeElement")
    assert "drag measures" in hint.text_content()
    for close in (
        lambda: viewer.page.keyboard.press("Escape"),
        lambda: viewer.page.locator(".tl-foot").click(position={"x": 2, "y": 2}),
        lambda: viewer.page.get_by_role("button", name="Keys (?)").click(),
    ):
        viewer.page.keyboard.press("?")
        assert viewer.page.get_by_role("dialog").is_visible()
        close()
        assert viewer.page.locator(".tl-help").is_hidden()
        viewer.page.locator(".tfprof-tl").focus()


def test_the_minimap_moves_the_window(viewer: Viewer) -> None:
    viewer.show(0, 4)
    mini = viewer.page.locator(".tl-mini").bounding_box()
    # What a drag would do there is seen before it begins.
    window = viewer.page.locator(".tl-window").bounding_box()
    for x, cursor in (
        (window["x"] + window["width"], "ew-resize"),
        (window["x"] + window["width"] / 2, "grab"),
        (mini["x"] + 400, "crosshair"),
    ):
        viewer.page.mouse.move(x, mini["y"] + 15)
        assert (
            viewer.page.evaluate(
                "([x, y]) => getComputedStyle(document.elementFromPoint(x, y)).cursor", [x, mini["y"] + 15]
            )
            == cursor
        )
    span = viewer.data.span_ps / 1000
    y = mini["y"] + 15
    viewer.page.mouse.move(mini["x"] + mini["width"] * 0.5, y)
    viewer.page.mouse.down()
    viewer.page.mouse.move(mini["x"] + mini["width"] * 0.75, y, steps=5)
    viewer.page.mouse.up()
    state = viewer.settle()
    assert state["start"] == pytest.approx(0.5 * span, abs=span / 200)
    assert state["end"] == pytest.approx(0.75 * span, abs=span / 200)


# ---- selecting ----------------------------------------------------------------------------------------------------


def test_a_click_shows_an_events_details(viewer: Viewer) -> None:
    viewer.show(3.0, 5.2)
    x, y = viewer.point(4_400_000, viewer.lane_y("python (main)", 1))
    viewer.page.mouse.click(x, y)
    viewer.settle()
    details = viewer.page.locator(".tl-details")
    told = viewer.page.evaluate(SELECTION)
    row = viewer.data.events.iloc[told["row"]]
    assert (row["start_ps"], viewer.data.tracks["label"][told["track"]]) == (4_050_000_000, "python (main)")
    assert told["range_ms"] == [pytest.approx(4.05), pytest.approx(4.85)]
    assert details.locator("h5").text_content() == "call"
    shown = dict(zip(details.locator("dt").all_text_contents(), details.locator("dd").all_text_contents(), strict=True))
    assert shown["Start"] == "4.050000 ms"
    assert shown["Duration"] == "800.0 µs"
    assert shown["Self time"] == "600.0 µs"
    assert shown["Thread"] == "python"
    assert shown["Step"] == "train 4"
    viewer.page.keyboard.press("ArrowRight")
    viewer.settle()
    assert details.locator("dd").first.text_content() == "5.050000 ms"
    viewer.page.keyboard.press("ArrowUp")
    viewer.settle()
    assert details.locator("h5").text_content() == "train"
    viewer.page.keyboard.press("f")
    state = viewer.settle()
    assert state["start"] < 5_000_000 < 5_900_000 < state["end"] < 6_100_000
    viewer.page.keyboard.press("Escape")
    assert details.is_hidden()
    assert viewer.page.evaluate(SELECTION) is None
    # What is in view is gone to without a move, if only just; what isn't, with no empty time beside it.
    viewer.show(1.045, 11.045)
    viewer.page.mouse.click(*viewer.point(1_500_000, viewer.lane_y("python (main)", 0)))
    before = viewer.settle()
    viewer.page.keyboard.press("ArrowDown")
    after = viewer.settle()
    assert details.locator("dd").first.text_content() == "1.050000 ms"
    assert (after["start"], after["end"]) == (before["start"], before["end"])
    viewer.page.keyboard.press("ArrowLeft")
    first = viewer.settle()
    assert details.locator("dd").first.text_content() == "50.000 µs"
    assert first["start"] == pytest.approx(0, abs=before["perPx"])
    assert first["end"] - first["start"] == pytest.approx(before["end"] - before["start"])


def test_the_details_say_what_the_profiler_noted(viewer: Viewer) -> None:
    viewer.show(3.0, 5.2)
    x, y = viewer.point(4_400_000, viewer.lane_y("python (main)", 1))
    viewer.page.mouse.click(x, y)
    stats = viewer.page.locator(".tl-stats")
    stats.wait_for()
    assert stats.locator("dt").all_text_contents() == ["Function call"]
    assert stats.locator("dt").get_attribute("title") == "tf_function_call"
    assert stats.locator("dd").inner_text() == "concrete – whether it was traced anew, and compiled by XLA"
    said = "Not in this report, for any event: _r, id (80 of 160 stats). They are ids, or too many for a page."
    assert stats.locator("p").inner_text() == said
    # An event without any says so, and doesn't keep the one before; what is so for all of them is said in full once.
    viewer.page.keyboard.press("ArrowDown")
    viewer.page.wait_for_function("() => document.querySelector('.tl-stats h6')?.textContent.startsWith('No stats')")
    assert stats.locator("p").count() == 0
    assert stats.get_by_role("img", name=said).get_attribute("title") == said
    viewer.page.keyboard.press("Escape")


def test_all_stats_of_a_capture_come_back(cpu_fit: Viewer) -> None:
    trace = cpu_fit.trace
    cpu_fit.show(100, 110)
    box = cpu_fit.page.evaluate(
        """() => { const t = document.querySelector('.tfprof-tl').timeline; const s = t.stores.get(false);
        const { lane } = t.shown.boxes.find(b => t.tracks[b.track].kind === 'host');
        t.select({ store: s, lane, event: s.laneFirst[lane] }); }"""
    )
    assert box is None
    cpu_fit.page.locator(".tl-stats").wait_for()
    first = first_row(cpu_fit.data)
    rows = list(range(first, first + len(trace), 997))
    found = cpu_fit.page.evaluate(
        """async (rows) => { const t = document.querySelector('.tfprof-tl').timeline; const stats = await t.eventDetails.stats;
        return rows.map(row => stats.of(row).map(s => s.name).sort()); }""",
        rows,
    )
    expected = [sorted(set(trace.stats_of(row - first)) - ID_STATS) for row in rows]
    assert found == expected
    assert sum(map(len, expected)) > 50
    cpu_fit.page.evaluate("() => document.querySelector('.tfprof-tl').timeline.select(null)")


def test_self_times_are_those_of_the_trace(cpu_fit: Viewer) -> None:
    cpu_fit.show(-1, 464)
    found = cpu_fit.page.evaluate(
        """() => { const t = document.querySelector('.tfprof-tl').timeline; const out = [];
        t.tracks.forEach((track, index) => { if (track.kind !== 'host' || track.hidden) return;
          const store = t.stores.get(false);
          for (let lane = track.lane; lane < track.lane + track.lanes; lane++) {
            for (let e = store.laneFirst[lane]; e < store.laneFirst[lane + 1]; e += 7) {
              const fields = t.eventDetails.fields({ store, lane, event: e });
              const self = fields.find(f => f.label === 'Self time') ?? fields.find(f => f.label === 'Duration');
              out.push([track.hint, store.start[e], store.end[e] - store.start[e], self.value]);
            } } }); return out; }"""
    )
    trace = cpu_fit.trace
    line = np.array(trace.space.line_name, object)[trace.line]
    truth: dict[tuple, set[int]] = {}
    unknown = 0
    for key in zip(line, trace.start_ps // 1000, trace.duration_ps // 1000, trace.self_ps, strict=True):
        truth.setdefault(key[:3], set()).add(int(key[3]))
    assert len(found) > 10_000
    for hint, start, duration, text in found:
        if text == "–":
            unknown += 1
            continue
        self_ps = ps_of(text)
        assert any(abs(self_ps - value) <= 6e-4 * value + 500 for value in truth[(hint, start, duration)]), (
            hint,
            start,
            text,
        )
    assert unknown < 0.01 * len(found)  # of events that overlap


def test_a_box_sums_up_what_is_in_it(viewer: Viewer) -> None:
    viewer.show(0, 10)
    viewer.page.locator(".tfprof-tl").focus()
    viewer.page.keyboard.press("1")
    x0, y0 = viewer.point(2_000_000, viewer.lane_y("tf_Compute #1") - 3)
    x1, y1 = viewer.point(5_000_000, viewer.lane_y("tf_Compute #2") + 3)
    viewer.page.mouse.move(x0, y0)
    viewer.page.mouse.down()
    viewer.page.mouse.move(x1, y1, steps=5)
    viewer.page.mouse.up()
    viewer.settle()
    rows = [row.split("\t") for row in viewer.page.locator(".tl-details tbody").inner_text().splitlines()]
    events = pd.concat([viewer.events("tf_Compute #1", 0), viewer.events("tf_Compute #2", 0)])
    box = viewer.page.evaluate("() => document.querySelector('.tfprof-tl').timeline.summaryOf")
    assert (box["start"], box["end"]) == (pytest.approx(2e6, abs=2e4), pytest.approx(5e6, abs=2e4))
    events = events[(events["end"] >= box["start"]) & (events["start"] <= box["end"])]
    told = viewer.page.evaluate(SELECTION)
    assert len(selected_rows(told, viewer.data, viewer.trace)) == len(events)
    # Sorted by the column whose head is clicked, or pressed.
    heads = viewer.page.locator(".tl-details th")
    for name, falls in (("Name", False), ("Count", True), ("Count", False), ("Max", True)):
        heads.get_by_role("button", name=name).press("Enter")
        column = heads.all_inner_texts().index(f"{name} {'▾' if falls else '▴'}")
        assert heads.nth(column).get_attribute("aria-sort") == ("descending" if falls else "ascending")
        cells = viewer.page.locator(f".tl-details td:nth-child({column + 1})").all_inner_texts()
        keys = cells if name == "Name" else [ps_of(text) if name == "Max" else int(text) for text in cells]
        assert keys == sorted(keys, reverse=falls)
    heads.get_by_role("button", name="Total").click()
    # Over the whole width it is the trace that is summed up, without the margins beside it; deep inside it is still there.
    viewer.page.keyboard.press("z")
    viewer.settle()
    frame, y = viewer.over, viewer.lane_y("Steps")
    viewer.page.mouse.move(frame["x"] + 1, frame["y"] + y)
    viewer.page.mouse.down()
    viewer.page.mouse.move(frame["x"] + frame["width"] - 1, frame["y"] + viewer.lane_y("tf_Compute #2"), steps=5)
    viewer.page.mouse.up()
    viewer.settle()
    whole = viewer.page.evaluate("() => document.querySelector('.tfprof-tl').timeline.summaryOf")
    assert (whole["start"], whole["end"]) == (0, viewer.data.span_ps / 1000)
    viewer.show(4.6, 4.600_02)
    assert viewer.page.locator(".tl-drag").bounding_box()["width"] >= frame["width"]
    # Its edge on what is pinned stays there when the others scroll.
    viewer.page.evaluate("() => document.querySelector('.tl-main').style.height = '160px'")
    viewer.settle()
    viewer.show(0, 10, 60)
    assert viewer.state()["scroll"] == 60
    assert viewer.page.locator(".tl-drag").bounding_box()["y"] == pytest.approx(frame["y"] + y, abs=2)
    count = events.groupby("name").size()
    assert {row[0]: int(row[1].replace(",", "")) for row in rows} == count.to_dict()
    total = events.assign(d=events["end"] - events["start"]).groupby("name")["d"]
    for row in rows:
        for text, value in zip(
            row[2:], (total.sum(), total.sum(), total.mean(), total.min(), total.max()), strict=True
        ):
            assert ps_of(text) == pytest.approx(value[row[0]] * 1000, rel=1e-3)


def drag_box(viewer: Viewer, first: str, last: str, start: float, end: float) -> list[list[str]]:
    """Drag a box from one lane to another; return the rows of its table."""
    viewer.page.locator(".tfprof-tl").focus()
    viewer.page.keyboard.press("1")
    viewer.page.mouse.move(*viewer.point(start, viewer.lane_y(first) - 3))
    viewer.page.mouse.down()
    viewer.page.mouse.move(*viewer.point(end, viewer.lane_y(last) + 3), steps=4)
    viewer.page.mouse.up()
    viewer.settle()
    rows = viewer.page.locator(".tl-details tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    viewer.page.keyboard.press("2")
    return rows


def test_kernels_of_one_name_are_one_row_whatever_their_op(gpu: Viewer) -> None:
    gpu.show(-1, gpu.data.span_ps / 1e9 + 1)
    tracks = gpu.data.tracks
    label = next(label for label in tracks.loc[tracks["kind"] == "device", "label"] if "Kernel,Memset" in label)
    gpu.page.evaluate("y => document.querySelector('.tfprof-tl').timeline.scrollTo(y)", gpu.lane_y(label) - 150)
    gpu.settle()
    rows = drag_box(gpu, label, label, 0, gpu.data.span_ps / gpu.item_unit)
    events = gpu.events(label, 0)
    by_op = gpu.data.names.loc[gpu.data.names["name"].isin(events["name"].unique())]
    assert len(by_op) > by_op["name"].nunique()
    assert {row[0]: int(row[1].replace(",", "")) for row in rows} == events["name"].value_counts().to_dict()
    title = gpu.page.locator(".tl-details h5").text_content()
    assert title.startswith(f"{len(events):,} events of {events['name'].nunique():,} names in ")
    told = gpu.page.evaluate(SELECTION)
    assert len(selected_rows(told, gpu.data, gpu.trace)) == len(events)


def test_a_page_kept_small_says_what_it_does_not_know(browser) -> None:
    report = Report([xspace.read(small().bytes())])
    whole = report.timelines[0]
    thin = thinned(whole, 1500)
    payload = Payload(id="trace")
    tab = timeline_tab(payload, thin.data, stats=([thin.stats], {}))
    payload.tabs.append(tab)
    viewer = Viewer(
        *open_painted(browser, report_page(payload, "", "trace")), data=thin.data, trace=report.hosts[0].trace
    )
    page = viewer.page
    viewer.show(-1, whole.span_ps / 1e9 + 1)
    in_all = int(thin.count.sum())
    assert in_all > 2 * len(thin.count)
    assert viewer.state()["total"] == in_all
    assert f" about {in_all:,} events: " in page.locator(".tl-foot").inner_text()
    rows = drag_box(viewer, "tf_Compute #1", "tf_Compute #2", 0.5 * whole.span_ps / 1000, 0.6 * whole.span_ps / 1000)
    told = page.evaluate(SELECTION)
    events = len(selected_rows(thin.in_whole(told, whole), whole, report.hosts[0].trace))
    said = page.locator(".tl-details h5").text_content()
    count = int(said.removeprefix("About ").split(" ")[0].replace(",", ""))
    # But for those of a bar that is partly in the box.
    assert count == pytest.approx(events, abs=2 * int(thin.count.max()))
    assert sum(int(row[1].replace(",", "")) for row in rows) == count
    (merged,) = (row for row in rows if row[0].startswith("Merged into "))
    assert f"In this page, which was kept small, {count - int(merged[1].replace(',', '')):,} event" in said
    assert (merged[3], merged[5], merged[6]) == ("–", "–", "–")
    # A bar has no self time, and says of how many events it is.
    bar = next(
        row for row in page.evaluate(DRAWN)["singles"] + page.evaluate(DRAWN)["bars"] if row[6].startswith("Merged")
    )
    page.evaluate(
        """label => { const t = document.querySelector('.tfprof-tl').timeline; const track = t.tracks.find(each => each.label === label);
        const store = t.stores.get(false); let event = store.laneFirst[track.lane];
        while (!store.isBar(event)) event++;
        t.select({ store, lane: track.lane, event }); }""",
        bar[0],
    )
    pane = page.locator(".tl-details")
    page.wait_for_function("() => document.querySelector('.tl-details h6')?.textContent.startsWith('Stats')")
    shown = dict(zip(pane.locator("dt").all_text_contents(), pane.locator("dd").all_text_contents(), strict=True))
    assert "Self time" not in shown
    assert f" of {shown['Events merged'].split(' ')[0]} events together, which this page" in shown["Duration"]
    assert viewer.problems == []
    page.context.close()


def test_a_time_is_measured_between_edges(viewer: Viewer) -> None:
    viewer.show(3.0, 5.2)
    viewer.page.locator(".tfprof-tl").focus()
    viewer.page.keyboard.press("4")
    y = viewer.lane_y("python (main)", 0)
    (x0, y0), (x1, _) = viewer.point(4_000_000, y), viewer.point(4_900_000, y)
    viewer.page.mouse.move(x0 + 4, y0)
    viewer.page.mouse.down()
    viewer.page.mouse.move(x1 - 3, y0, steps=6)
    viewer.page.mouse.up()
    assert viewer.settle()["ranges"] == [{"start": 4_000_000, "end": 4_900_000}]
    assert viewer.page.locator(".tl-range span").text_content() == "900.0 µs"
    # A second one, of the event that is selected.
    viewer.page.keyboard.press("2")
    viewer.page.mouse.click(*viewer.point(4_600_000, viewer.lane_y("python (main)", 1)))
    viewer.page.keyboard.press("m")
    assert viewer.settle()["ranges"] == [{"start": 4_000_000, "end": 4_900_000}, {"start": 4_050_000, "end": 4_850_000}]
    assert viewer.page.locator(".tl-range span").all_text_contents() == ["900.0 µs", "800.0 µs"]
    # Their labels stand below each other.
    first, second = (label.bounding_box() for label in viewer.page.locator(".tl-range span").all())
    assert first["y"] + first["height"] <= second["y"] + 1
    # The same time isn't marked twice; a mark says from when to when it is.
    viewer.page.keyboard.press("m")
    assert len(viewer.settle()["ranges"]) == 2
    tags = viewer.page.locator(".tl-length")
    assert tags.first.get_attribute("title") == "900.0 µs: 4.000000 ms – 4.900000 ms"
    # Deep inside of both they are still there, with their labels, and out of view they are gone.
    viewer.show(4.6, 4.600_02)
    width = viewer.over["width"]
    for i, mark in enumerate(viewer.page.locator(".tl-range").all()):
        assert mark.bounding_box()["width"] >= width
        assert tags.nth(i).locator("span").is_visible()
        assert tags.nth(i).bounding_box()["x"] > viewer.over["x"]
    viewer.show(10, 12)
    assert not any(mark.is_visible() for mark in viewer.page.locator(".tl-range").all())
    viewer.show(3.0, 5.2)
    # One of them is taken away; the keys are still the timeline's.
    tags.first.get_by_role("button").click()
    assert viewer.settle()["ranges"] == [{"start": 4_050_000, "end": 4_850_000}]
    assert viewer.page.locator(".tl-details h5").text_content() == "call"
    for _ in range(2):
        viewer.page.keyboard.press("Escape")
    assert viewer.settle()["ranges"] == []


def test_search_counts_what_pandas_counts(cpu_fit: Viewer) -> None:
    cpu_fit.show(-1, 464)
    trace = cpu_fit.trace.whole
    name = pd.Series(np.array(trace.space.meta_name, object)[trace.meta])
    duration_ms = trace.duration_ps / 1e9
    for text, regex in (
        ("matmul", False),
        ("ThreadpoolListener", False),
        (r"^Iterator::.*Shuffle$", True),
        ("no such", False),
    ):
        cpu_fit.page.evaluate(
            "([t, r]) => document.querySelector('.tfprof-tl').timeline.searching.search(t, r)",
            [text, "regex" if regex else "text"],
        )
        said = cpu_fit.page.locator(".tl-hits").text_content()
        hit = name.str.contains(text, case=False, regex=regex).to_numpy()
        if not hit.any():
            assert said == "no hits"
            continue
        count, _, total = said.partition(" hits · ")
        if not duration_ms[hit].any():
            assert total == "without a duration"
            continue
        assert int(count.replace(",", "")) == hit.sum()
        number, _, unit = total.partition(" ")
        assert float(number) * {"s": 1e3, "ms": 1, "µs": 1e-3}.get(unit, 1) == pytest.approx(
            duration_ms[hit].sum(), rel=1e-3
        )
    cpu_fit.page.evaluate("() => document.querySelector('.tfprof-tl').timeline.searching.search('', 'text')")


def test_an_op_of_the_table_is_shown_in_the_trace(browser) -> None:
    report = Report([xspace.read(small().bytes())])
    page, problems = open_page(browser, report_page(report.payload, "", "report"))
    page.get_by_role("tab", name="TensorFlow stats").click()
    row = page.locator("[data-tab=op_stats] .tabulator-row:visible", has_text="dense/MatMul").first
    row.hover()
    row.get_by_role("button", name="Show dense/MatMul in the trace").click()
    assert page.get_by_role("tab", name="Trace").get_attribute("aria-selected") == "true"
    page.wait_for_function("() => document.querySelector('.tl-hits')?.textContent.includes('hits')")
    events = report.events[report.events["name"] == "dense/MatMul:MatMul"]
    assert page.locator(".tl-hits").text_content().split(" hits")[0] == f"{len(events):,}"
    assert page.locator(".tl-details h5").text_content() == "dense/MatMul:MatMul"
    longest = events[events["duration_us"] == events["duration_us"].max()]
    shown = details_of(page.locator(".tl-details"))
    assert any(ps_of(shown["Start"]) == pytest.approx(start_us * 1e6) for start_us in longest["start_us"])
    assert page.locator(".tl-hits").text_content().endswith("of the op, on the host")
    # Once more, from a place in the trace where there is none.
    page.evaluate(
        """() => { const t = document.querySelector('.tfprof-tl').timeline; t.select(null);
        t.viewport.set(41.5e6, 42e6); t.invalidate(); }"""
    )
    page.get_by_role("tab", name="TensorFlow stats").click()
    row.hover()
    row.get_by_role("button", name="Show dense/MatMul in the trace").click()
    page.wait_for_function("() => document.querySelector('.tfprof-tl').timeline.viewport.end < 41e6")
    page.locator(".tl-selected").wait_for()
    assert problems == []
    page.context.close()


def test_a_highlight_from_python_is_a_name_an_op_or_a_text(viewer: Viewer) -> None:
    def highlight(name: str | None) -> str:
        viewer.page.evaluate(
            "(name) => document.querySelector('.tfprof-tl').timeline.ctx.model.set('highlight', name)", name
        )
        viewer.settle()
        return viewer.page.locator(".tl-hits").text_content().split(" · ")[0]

    assert highlight("call") == "40 hits"
    assert highlight("relu/Relu") == "1,072 hits"
    assert highlight("nn") == "40 hits"  # inner
    assert highlight("nothing of the kind") == "no hits"
    viewer.page.evaluate("() => document.querySelector('.tfprof-tl').timeline.select(null)")


def test_own_measurements_stand_on_the_same_axis(browser) -> None:
    report = Report([xspace.read(small().bytes())])
    report.add_track(
        pd.DataFrame(
            {
                "start_us": [4_000, 5_000, 20_000, 20_500, 20_100],
                "duration_us": [900, 100, 1_000, 1_000, 50],
                "name": ["load", HOSTILE, "A", "B", "inside of A"],
            }
        ),
        name="My $$x$$",
    )
    viewer = open_report(browser, report)
    page, problems = viewer.page, viewer.problems
    viewer.show(3.0, 5.5)
    assert labels(viewer)[:3] == ["Steps", "Own tracks", "My $$x$$"]
    page.mouse.click(*viewer.point(4_450_000, viewer.lane_y("My $$x$$")))
    viewer.settle()
    shown = details_of(page.locator(".tl-details"))
    assert (shown["Start"], shown["Duration"], shown["Track"]) == ("4.000000 ms", "900.0 µs", "My $$x$$")
    assert shown["Step"] == "train 4"
    # On the same axis: it lies over the thread's event that has the same times.
    x0, x1 = (viewer.point(t, 0)[0] for t in (4_000_000, 4_900_000))
    outline = page.locator(".tl-selected").bounding_box()
    assert (outline["x"], outline["x"] + outline["width"]) == (pytest.approx(x0, abs=2), pytest.approx(x1, abs=2))
    # Nothing of the profiler's is said of them.
    assert page.locator(".tl-details h6").count() == 0
    # Where they overlap there is no self time: not in the pane, nor the tip, nor the table.
    viewer.show(19.5, 22)
    page.mouse.click(*viewer.point(20_200_000, viewer.lane_y("My $$x$$")))
    viewer.settle()
    shown = details_of(page.locator(".tl-details"))
    assert shown["Self time"].startswith("– – not known: events overlap here")
    assert "1.000 ms · self – · at 20.000000 ms" in page.locator(".tl-tip").inner_text()
    rows = drag_box(viewer, "My $$x$$", "My $$x$$", 19_900_000, 21_600_000)
    assert {row[0]: row[3] for row in rows} == {"A": "–"}
    assert page.locator(".tl-details h5").text_content().startswith("1 event of 1 name in ")
    assert problems == []
    page.context.close()


def test_a_counter_is_an_area_and_says_its_value(browser) -> None:
    from PIL import Image

    space = small()
    data = space.plane("/host:CPU").line("tf_data", id=99)
    for i, fill in enumerate((8, 4, 0, 2)):
        data.event("Iterator::Prefetch", 10_000 * i, 50, buffered_elements=fill)
    report = Report([xspace.read(space.bytes())])
    viewer = open_report(browser, report)
    page, problems = viewer.page, viewer.problems
    viewer.show(0, 40)
    assert labels(viewer)[:3] == ["Steps", "Counters", "Buffer Prefetch"]
    label = page.locator(".tl-label", has_text="Buffer Prefetch").bounding_box()
    middle = label["y"] + label["height"] / 2
    for time_ms, value in ((5, "8"), (15, "4"), (25, "0"), (35, "2")):
        page.mouse.move(viewer.point(time_ms * 1e6, 0)[0], middle)
        viewer.settle()
        assert page.locator(".tl-tip b").text_content() == value
    assert "Elements that wait in the buffer of Iterator::Prefetch" in page.locator(".tl-tip").inner_text()
    # The height of the area is the value's share of the most.
    page.mouse.move(5, 5)
    viewer.settle()
    image = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    heights = []
    for time_ms in (5, 15, 25, 35):
        x = round(viewer.point(time_ms * 1e6, 0)[0])
        column = image[round(label["y"]) : round(label["y"] + label["height"]) - 2, x].astype(int)
        heights.append(int((column[:, 2] - column[:, 0] > 40).sum()))
    assert heights == [pytest.approx(19, abs=1), pytest.approx(9.5, abs=1), 0, pytest.approx(4.75, abs=1)]
    # A pixel in which it changes says from what to what.
    viewer.show(0.4, 38.9)
    said = set()
    for beside_px in (-1, 0, 1):
        page.mouse.move(viewer.point(10e6, 0)[0] + beside_px, middle)
        viewer.settle()
        said.add(page.locator(".tl-tip b").text_content())
    assert said == {"8", "4 to 8", "4"}
    viewer.show(0, 40)
    # Folded away, it is a strip in the section's own line.
    page.locator(".tl-section .tl-name", has_text="Counters").click()
    viewer.settle()
    page.mouse.move(5, 5)
    line = page.locator(".tl-section", has_text="Counters").bounding_box()
    image = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    strip = image[round(line["y"]) : round(line["y"] + line["height"]), round(viewer.point(5e6, 0)[0])].astype(int)
    assert (strip[:, 2] - strip[:, 0] > 40).sum() >= 10
    assert problems == []
    page.context.close()


def drawn_arrows(which: str = "") -> str:
    """Script that gives the curve and tip of each arrow that is drawn."""
    return f"""[...document.querySelectorAll(".tl-arrows path{which}")].flatMap(path =>
        (path.getAttribute("d") ?? "").split("M").slice(1).reduce((all, part, i) =>
        i % 2 === 0 ? [...all, part] : [...all.slice(0, -1), all.at(-1) + "M" + part], []))"""


def test_arrows_show_what_led_to_what(browser) -> None:
    space = small()
    host = space.plane("/host:CPU")
    host.line("launcher", id=50).event("FunctionRun", 4_000, 100, _pt=2, _p=11)
    for thread, start in ((51, 4_300), (52, 4_500)):
        host.line(f"runner/{thread}", id=thread).event("ExecutorState::Process", start, 100, _ct=2, _c=11)
    report = Report([xspace.read(space.bytes())])
    viewer = open_report(browser, report)
    page, problems = viewer.page, viewer.problems
    page.evaluate("() => document.querySelector('.tl-gutter input').focus()")
    page.keyboard.type("launcher|runner")
    viewer.show(3.5, 5)
    assert page.evaluate(drawn_arrows()) == []
    page.mouse.click(*viewer.point(4_050_000, viewer.lane_y("launcher")))
    page.wait_for_function(f"() => {drawn_arrows('.tl-strong')}.length === 2")
    # From the end of the one to the beginnings of the others.
    edge = viewer.over["x"]
    for drawn, start in zip(page.evaluate(drawn_arrows(".tl-strong")), (4_300_000, 4_500_000), strict=True):
        assert float(drawn.split()[0]) == pytest.approx(viewer.point(4_100_000, 0)[0] - edge, abs=1)
        assert float(drawn.split("L")[1].split()[0]) == pytest.approx(viewer.point(start, 0)[0] - edge, abs=1)
    page.get_by_role("button", name="Led to: ExecutorState::Process and 1 more").click()
    viewer.settle()
    assert page.locator(".tl-details h5").text_content() == "ExecutorState::Process"
    page.get_by_role("button", name="Caused by: FunctionRun").wait_for()
    page.wait_for_function(f"() => {drawn_arrows()}.length === 1")
    page.keyboard.press("Escape")
    # All of them on demand, with their number.
    page.get_by_role("button", name="More timeline tools").click()
    page.get_by_label("Arrows").check()
    page.wait_for_function(f"() => {drawn_arrows(':not(.tl-strong)')}.length === 2")
    assert "2 of 2 arrows drawn" in page.locator(".tl-foot").inner_text()
    page.get_by_label("Arrows").uncheck()
    page.wait_for_function(f"() => {drawn_arrows()}.length === 0")
    assert problems == []
    page.context.close()


def test_the_search_of_a_report_counts_what_its_events_hold(browser) -> None:
    report = Report([xspace.read(gpu_capture(2, steps=12).bytes())])
    viewer = open_report(browser, report)
    box = viewer.page.locator(".tl-search input")
    for text in ("conv2d", "Memcpy", "ampere", "ThreadpoolListener"):
        box.fill(text)
        hit = report.events[report.events["name"].astype(str).str.contains(text, case=False, regex=False)]
        said = f"{len(hit):,} hits" if len(hit) else "no hits"
        viewer.page.wait_for_function(
            "said => document.querySelector('.tl-hits').textContent.startsWith(said)", arg=said
        )
        if len(hit):
            total = viewer.page.locator(".tl-hits").text_content().partition(" · ")[2]
            assert ps_of(total) == pytest.approx(hit["duration_us"].sum() * 1e6, rel=6e-4)
    assert viewer.problems == []
    viewer.page.context.close()


def test_calls_of_python_are_on_their_thread_with_their_source(browser) -> None:
    space = Space(hostname="worker")
    python = space.plane("/host:CPU").line("python", id=1)
    python.event("train", 43_000, 900, step_num=0, _r=1)
    python.event("$train.py:118 read_batch", 44_000, 500)
    python.event("$<frozen importlib._bootstrap>:1053 <lambda>", 44_050, 100)
    python.event("$builtins len", 44_200, 50)
    python.event("$<unknown> append", 44_300, 50)
    viewer = open_report(browser, Report([xspace.read(space.bytes())]))
    viewer.show(43.9, 44.6)
    for time, lane, name, function, source in (
        (44_020, 0, "$train.py:118 read_batch", "read_batch", "train.py:118"),
        (44_100, 1, "$<frozen importlib._bootstrap>:1053 <lambda>", "<lambda>", "<frozen importlib._bootstrap>:1053"),
        (44_225, 1, "$builtins len", "len", "builtins"),
        (44_325, 1, "$<unknown> append", "append", "not known"),
    ):
        viewer.page.mouse.click(*viewer.point(time * 1000, viewer.lane_y("python (main)", lane)))
        viewer.settle()
        details = viewer.page.locator(".tl-details")
        assert details.locator("h5").text_content() == name
        shown = details_of(details)
        assert shown["Python function"] == function
        assert shown["Source"].partition(" – ")[0] == source
        assert shown["Thread"] == "python"
    # Below an event without others in it there is nothing to go to.
    viewer.show(42.9, 44.6)
    viewer.page.mouse.click(*viewer.point(43_450_000, viewer.lane_y("python (main)", 0)))
    viewer.page.keyboard.press("ArrowDown")
    viewer.settle()
    assert viewer.page.locator(".tl-details h5").text_content() == "train"
    viewer.page.keyboard.press("ArrowRight")
    viewer.page.keyboard.press("ArrowDown")
    viewer.settle()
    assert viewer.page.locator(".tl-details h5").text_content().endswith("<lambda>")
    assert viewer.problems == []
    viewer.page.context.close()


def test_calls_of_python_in_a_real_capture(browser, capture) -> None:
    report = Report([xspace.read(capture("jax_mi300"))])
    viewer = open_report(browser, report)
    viewer.page.locator(".tl-search input").fill("_array_shard_arg")
    hit = report.events[report.events["name"].astype(str).str.contains("_array_shard_arg", regex=False)]
    viewer.page.wait_for_function(
        "said => document.querySelector('.tl-hits').textContent.startsWith(said)", arg=f"{len(hit)} hit"
    )
    viewer.page.keyboard.press("Enter")
    viewer.settle()
    details = viewer.page.locator(".tl-details")
    shown = details_of(details)
    assert shown["Source"].startswith("array.py:")
    assert shown["Thread"] == hit["line"].astype(str).iloc[0] == "python"
    assert viewer.problems == []
    viewer.page.context.close()


def test_search_by_keys(viewer: Viewer) -> None:
    viewer.show(0, 2)
    viewer.page.locator(".tfprof-tl").focus()
    viewer.page.keyboard.press("/")
    viewer.page.keyboard.type("img src")
    viewer.page.wait_for_function("() => document.querySelector('.tl-hits').textContent.startsWith('1 hit')")
    viewer.page.keyboard.press("Enter")
    state = viewer.settle()
    assert viewer.page.locator(".tl-details h5").text_content() == HOSTILE
    assert state["start"] < 41_000_000 < state["end"]
    viewer.page.keyboard.press("Escape")
    assert viewer.page.locator(".tl-hits").text_content() == ""
    # Next and previous hit, by keys and by buttons; then all of this name, from the details.
    viewer.page.keyboard.press("/")
    viewer.page.keyboard.type("NNE")
    viewer.page.wait_for_function("() => document.querySelector('.tl-hits').textContent.startsWith('40 hits')")
    start = viewer.page.locator(".tl-details dd").first
    at = []
    for press in (
        lambda: viewer.page.keyboard.press("Enter"),
        lambda: viewer.page.keyboard.press("Enter"),
        lambda: viewer.page.get_by_role("button", name="Next hit (Enter)").click(),
        lambda: viewer.page.locator(".tl-search input").press("Shift+Enter"),
        lambda: viewer.page.get_by_role("button", name="Previous hit (Shift + Enter)").click(),
    ):
        press()
        viewer.settle()
        assert viewer.page.locator(".tl-details h5").text_content() == "inner"
        at.append(ps_of(start.text_content()) / 1e6)
    steps = np.diff(at).tolist()
    assert steps == [1000, 1000, -1000, -1000]
    viewer.page.get_by_role("button", name="All of this name").click()
    assert viewer.page.locator(".tl-search input").input_value() == "inner"
    for _ in range(2):
        viewer.page.keyboard.press("Escape")
    viewer.page.keyboard.press("/")
    viewer.page.locator(".tl-search button").first.click()
    viewer.page.locator(".tl-search input").fill("(")
    assert viewer.page.locator(".tl-search input").get_attribute("aria-invalid") == "true"


# ---- tracks -------------------------------------------------------------------------------------------------------


def in_timeline(viewer: Viewer) -> bool:
    """Whether keys and the wheel are the timeline's."""
    return viewer.page.evaluate("() => document.querySelector('.tfprof-tl').contains(document.activeElement)")


def labels(viewer: Viewer) -> list[str]:
    return [text.lstrip("▶") for text in viewer.page.locator(".tl-label .tl-name").all_text_contents()]


def test_sections_and_tracks_fold_and_stay_in_sight(viewer: Viewer) -> None:
    viewer.show(0, 45)
    assert labels(viewer)[:4] == ["Steps", "Host Threads", "python (main)", "tf_Compute #1"]
    python = viewer.page.locator(".tl-track .tl-name", has_text="python")
    tall = viewer.page.locator(".tl-label", has_text="python").bounding_box()["height"]
    python.click()
    viewer.settle()
    assert python.get_attribute("aria-expanded") == "false"
    assert viewer.page.locator(".tl-label", has_text="python").bounding_box()["height"] < tall
    section = viewer.page.locator(".tl-section .tl-name")
    section.click()
    viewer.settle()
    assert labels(viewer) == ["Steps", "Host Threads"]
    # What is folded is still drawn, as thin strips.
    assert {track for track, *_ in viewer.page.evaluate(DRAWN)["lanes"]} >= {"python (main)", "tf_Compute #8"}
    section.press("Enter")
    viewer.settle()
    assert len(labels(viewer)) > 4


def test_bookkeeping_is_folded_away_with_a_count_and_a_switch(viewer: Viewer) -> None:
    viewer.page.get_by_role("button", name="More timeline tools").click()
    switch = viewer.page.get_by_label("Thread-pool bookkeeping (3,200 events)")
    assert not switch.is_checked()
    assert not any("bookkeeping" in label for label in labels(viewer))
    switch.check()
    viewer.settle()
    assert "tf_Compute #1 · pool bookkeeping" in labels(viewer)
    drawn = pd.DataFrame(viewer.page.evaluate(DRAWN)["bars"])
    assert (drawn[0] == "tf_Compute #1 · pool bookkeeping").any()
    # The focus is at the switch; keys are still the timeline's.
    for key, tool in (("1", "select"), ("2", "pan")):
        viewer.page.keyboard.press(key)
        assert viewer.state()["tool"] == tool
    switch.uncheck()
    viewer.settle()
    assert not any("bookkeeping" in label for label in labels(viewer))


def test_the_tools_fit_into_any_window(viewer: Viewer) -> None:
    page, bar = viewer.page, viewer.page.locator(".tl-bar")
    page.locator(".tl-search input").fill("Relu")
    menu = page.get_by_role("button", name="More timeline tools")
    switch = page.get_by_label("Thread-pool bookkeeping (3,200 events)")
    for width, lines in ((1400, 1), (950, 1), (700, 2), (400, 3)):
        page.set_viewport_size({"width": width, "height": 900})
        viewer.settle()
        # Nothing lies on or beside anything else: the tools of a line have one middle, and are in the bar.
        boxes = page.evaluate(
            """() => [...document.querySelectorAll(".tl-bar button, .tl-bar input, .tl-hits, .tl-more > *")]
                .map(each => each.getBoundingClientRect()).filter(box => box.width > 0)
                .map(({ x, y, width, height }) => [x, y, width, height])"""
        )
        frame = bar.bounding_box()
        assert all(x >= frame["x"] and x + w <= frame["x"] + frame["width"] for x, _, w, _ in boxes)
        middles = sorted(y + h / 2 for _, y, _, h in boxes)
        assert 1 + sum(b - a > 6 for a, b in itertools.pairwise(middles)) <= lines
        assert frame["height"] < 14 + 26 * lines
        for number, (x, y, w, h) in enumerate(boxes):
            for other_x, other_y, other_w, other_h in boxes[number + 1 :]:
                inside = other_x >= x and other_x + other_w <= x + w and other_y >= y and other_y + other_h <= y + h
                apart = (
                    other_x >= x + w - 1
                    or x >= other_x + other_w - 1
                    or other_y >= y + h - 1
                    or y >= other_y + other_h - 1
                )
                assert apart or inside
        # The axis, and the filter beside it, have their room however few marks there are.
        assert page.get_by_label("Filter tracks").bounding_box()["height"] > 15
        assert page.evaluate("() => document.querySelector('.tfprof-tl').timeline.shown.frame.ticks.at.length") >= 1
        page.locator(".tfprof-tl").focus()
        page.keyboard.press("?")
        keys = page.locator(".tl-help").bounding_box()
        assert keys["x"] >= 0
        assert keys["x"] + keys["width"] <= width
        page.keyboard.press("Escape")
        # Also where the axis counts from a time of its own.
        viewer.show(10, 10.000_1)
        assert page.get_by_label("Filter tracks").bounding_box()["width"] > 45
        viewer.show(0, 45)
        assert menu.is_visible() == (width < 1000)
        assert switch.is_visible() == (width > 1000)
    # What is behind the button works as before; Escape and a click elsewhere close it, one at a time with all else.
    menu.click()
    switch.check()
    viewer.settle()
    assert any("bookkeeping" in label for label in labels(viewer))
    switch.uncheck()
    switch.press("Escape")
    assert switch.is_hidden()
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "More timeline tools"
    assert page.locator(".tl-hits").inner_text() != ""
    menu.click()
    page.locator(".tl-foot").click()
    assert switch.is_hidden()


def test_tracks_are_pinned_hidden_and_filtered(viewer: Viewer) -> None:
    viewer.show(0, 45)
    top = viewer.over["y"]
    pool = viewer.page.locator(".tl-label", has_text="tf_Compute #3")
    pool.hover()
    pool.get_by_label("Pin to the top").click()
    viewer.settle()
    assert in_timeline(viewer)
    assert labels(viewer)[-1] == "tf_Compute #8"
    assert pool.bounding_box()["y"] == pytest.approx(top + 24, abs=1)
    # What is pinned stays when the others scroll; the steps are from the start.
    viewer.page.evaluate("() => document.querySelector('.tl-main').style.height = '200px'")
    viewer.settle()
    viewer.show(0, 45, 1000)
    assert viewer.state()["scroll"] > 50
    assert viewer.page.locator(".tl-label", has_text="Steps").bounding_box()["y"] == pytest.approx(top, abs=1)
    assert pool.bounding_box()["y"] == pytest.approx(top + 24, abs=1)
    x, y = viewer.point(5_500_000, 12)
    viewer.page.mouse.click(x, y)
    viewer.settle()
    assert viewer.page.locator(".tl-details h5").text_content() == "train 5"
    # More of them than half of the frame has room for scroll, as the first of all.
    for number in (2, 4, 5, 6, 7, 8):
        viewer.page.evaluate(
            """text => { const t = document.querySelector('.tfprof-tl').timeline;
            t.shownTracks.pin(t.tracks.findIndex(track => track.label === text)); }""",
            f"tf_Compute #{number}",
        )
    viewer.show(0, 45)
    assert labels(viewer)[:4] == ["Steps", "tf_Compute #2", "tf_Compute #3", "tf_Compute #4"]
    fifth = viewer.page.locator(".tl-label", has_text="tf_Compute #5")
    assert fifth.get_by_label("Pin to the top").get_attribute("aria-pressed") == "true"
    y = fifth.bounding_box()["y"]
    viewer.show(0, 45, 30)
    assert fifth.bounding_box()["y"] == pytest.approx(y - 30, abs=1)
    assert viewer.page.evaluate(
        "() => { const t = document.querySelector('.tfprof-tl').timeline; return t.layout.pinnedHeight <= t.height / 2; }"
    )
    viewer.show(0, 45, 10_000)
    assert viewer.page.locator(".tl-label", has_text="tf_Compute #1").is_visible()
    viewer.page.evaluate(
        """() => { const { shownTracks } = document.querySelector('.tfprof-tl').timeline;
        for (const track of [...shownTracks.pinned].slice(2)) shownTracks.pin(track); }"""
    )
    viewer.show(0, 45)
    pool.hover()
    pool.get_by_label("Pin to the top").click()
    viewer.page.evaluate("() => document.querySelector('.tl-main').style.height = '400px'")
    viewer.settle()
    viewer.show(0, 45)
    assert viewer.page.locator(".tl-some").is_hidden()
    other = viewer.page.locator(".tl-label", has_text="tf_Compute #1")
    other.hover()
    other.get_by_label("Hide this track").click()
    viewer.settle()
    assert in_timeline(viewer)
    assert "tf_Compute #1" not in labels(viewer)
    assert viewer.page.locator(".tl-some").text_content() == "9 of 10 tracks shown: show all"
    viewer.page.get_by_label("Filter tracks").fill("#[2-4]$")
    viewer.settle()
    assert labels(viewer) == ["Steps", "Host Threads", "tf_Compute #2", "tf_Compute #3", "tf_Compute #4"]
    viewer.page.keyboard.press("Escape")
    viewer.settle()
    assert labels(viewer)[-1] == "tf_Compute #8"
    viewer.page.keyboard.press("w")  # is no letter of the filter any more
    viewer.page.keyboard.press("Tab")
    viewer.page.get_by_label("Filter tracks").fill("#[2-4]$")
    viewer.settle()
    # By keys alone, too; the focus goes with the track.
    fourth = viewer.page.locator(".tl-label", has_text="tf_Compute #4")
    fourth.locator(".tl-name").focus()
    viewer.page.keyboard.press("Tab")
    assert fourth.get_by_label("Pin to the top").evaluate("each => each === document.activeElement")
    viewer.page.keyboard.press("Enter")
    viewer.settle()
    assert labels(viewer)[:2] == ["Steps", "tf_Compute #4"]
    assert fourth.locator(".tl-name").evaluate("each => each === document.activeElement")
    viewer.page.keyboard.press("Tab")
    viewer.page.keyboard.press("Enter")
    viewer.settle()
    assert labels(viewer)[-1] == "tf_Compute #4"
    viewer.page.locator(".tl-some").click()
    viewer.settle()
    assert "tf_Compute #1" in labels(viewer)
    assert viewer.page.get_by_label("Filter tracks").input_value() == ""


def test_whose_tracks_they_are_is_seen_wherever_they_stand(gpu: Viewer) -> None:
    tracks = gpu.data.tracks
    alike = [i for i, label in enumerate(tracks["label"]) if label == "Stream #13(Kernel,Memset)"]
    assert len(alike) == 2
    pin = "tracks => tracks.forEach(track => document.querySelector('.tfprof-tl').timeline.shownTracks.pin(track))"
    gpu.page.evaluate(pin, alike)
    gpu.settle()
    texts = gpu.page.locator(".tl-pinned .tl-name").all_inner_texts()
    assert [text.split("Stream")[0].strip() for text in texts if "Stream" in text] == ["GPU:0", "GPU:1"]
    gpu.page.evaluate("() => document.querySelector('.tl-main').style.height = '260px'")
    gpu.settle()
    gpu.show(0, 45, 10_000)
    whose = gpu.page.locator(".tl-whose")
    assert whose.is_visible()
    last = gpu.data.sections[int(tracks["section"].max())].title
    assert whose.text_content() == last
    gpu.show(0, 45, 0)
    assert whose.is_hidden()
    gpu.page.evaluate(pin, alike)
    gpu.page.evaluate("() => document.querySelector('.tl-main').style.height = '500px'")
    gpu.settle()


def test_tracks_scroll_by_the_wheel_over_their_labels(viewer: Viewer) -> None:
    viewer.page.evaluate("() => document.querySelector('.tl-main').style.height = '200px'")
    viewer.settle()
    box = viewer.page.locator(".tl-gutter").bounding_box()
    viewer.page.mouse.move(box["x"] + 40, box["y"] + 100)
    viewer.page.mouse.wheel(0, 60)
    assert viewer.settle()["scroll"] == 60
    assert viewer.page.evaluate("() => scrollY") == 0


# ---- the page -----------------------------------------------------------------------------------------------------


def test_it_follows_the_page_from_light_to_dark(viewer: Viewer) -> None:
    from PIL import Image

    def corner() -> tuple[int, int, int]:
        viewer.settle()
        box = viewer.over
        clip = {
            "x": box["x"] + box["width"] - 4,
            "y": box["y"] + viewer.lane_y("python (main)"),
            "width": 2,
            "height": 2,
        }
        return Image.open(io.BytesIO(viewer.page.screenshot(clip=clip))).convert("RGB").getpixel((0, 0))

    viewer.show(0, 45)
    assert corner() == (255, 255, 255)
    viewer.page.evaluate("() => document.documentElement.setAttribute('data-theme', 'dark')")
    viewer.page.wait_for_function("() => document.querySelector('.tfprof-tl').hasAttribute('data-dark')")
    assert sum(corner()) < 120


def test_it_can_be_read_without_seeing(viewer: Viewer) -> None:
    root = viewer.page.locator(".tfprof-tl")
    assert root.get_attribute("tabindex") == "0"
    assert "timeline" in root.get_attribute("aria-label").lower()
    summary = viewer.page.locator(f"#{root.get_attribute('aria-describedby')}").text_content()
    assert "events on 9 tracks" in summary
    assert "40 steps" in summary


def test_the_range_is_shared_with_python(viewer: Viewer) -> None:
    viewer.page.evaluate(
        """() => { const { model } = document.querySelector('.tfprof-tl').timeline.ctx;
        globalThis.told = []; model.on('change:range_ms', () => globalThis.told.push(model.get('range_ms')));
        model.set('range_ms', [10, 12]); model.save_changes(); }"""
    )
    state = viewer.settle()
    assert (state["start"], state["end"]) == (pytest.approx(10_000_000), pytest.approx(12_000_000))
    viewer.show(20, 25)
    viewer.page.wait_for_function("() => globalThis.told.length > 1")
    assert viewer.page.evaluate("() => globalThis.told.at(-1)") == [pytest.approx(20), pytest.approx(25)]
