"""The Overview and TensorFlow stats tabs in Chromium, with names that try to be HTML and mathematics."""

from __future__ import annotations

import re

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

pytest.importorskip("playwright.sync_api")

from chromium import offline_page  # noqa: E402
from tfprof_widgets.display.html import report_page  # noqa: E402
from tfprof_widgets.display.payload import Payload  # noqa: E402
from tfprof_widgets.views.op_stats import op_stats_tab  # noqa: E402
from tfprof_widgets.views.overview import overview_tab  # noqa: E402
from view_frames import HOSTILE, ops_frame, overview_of, steps_frame  # noqa: E402

DEVICES = ("/device:GPU:0", HOSTILE)


@pytest.fixture(scope="module")
def page_path(tmp_path_factory):
    steps = pd.concat(
        [
            steps_frame(60, kind=HOSTILE, devices=DEVICES, slow_first=200),
            steps_frame(2500, kind="test", devices=DEVICES[:1], first_step=60),
        ],
        ignore_index=True,
    )
    # Of a type of its own with most of the time, so that a big part of the pies is its.
    ops = ops_frame()
    first = ops.index[(ops["host_or_device"] == "Device") & (ops["type"] != "IDLE")][0]
    ops.loc[first, ["name", "type", "self_time_us"]] = [HOSTILE, HOSTILE, 1e5]
    payload = Payload(id="views", head={"title": "views", "facts": []})
    payload.tabs += [
        overview_tab(payload, overview_of(steps, ops, notes=[HOSTILE], environment={HOSTILE: HOSTILE}), steps),
        op_stats_tab(payload, ops),
    ]
    path = tmp_path_factory.mktemp("views") / "report.html"
    path.write_text(report_page(payload, "", "views"), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, page_path):
    """The page, opened; at the end nothing was asked of any network, and no name was more than text."""
    with offline_page(browser, page_path, 1100) as page:
        yield page


def hovered(page, figure, xs) -> list[dict[str, str]]:
    """What the box says at some places of a figure: shares of its width, a bit below its middle."""
    canvas = figure.locator("canvas").first
    canvas.wait_for()
    figure.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    seen = []
    for x in xs:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + 0.55 * box["height"])
        page.wait_for_timeout(100)
        # Bokeh's boxes are in shadow roots; Playwright looks into those, and only text can be read from them.
        labels, values = (page.locator(f".bk-tooltip-row-{part}").all_inner_texts() for part in ("label", "value"))
        seen.append(dict(zip(labels, values, strict=True)))
    return seen


def visible_figure(page, title: str):
    return page.locator("figure:visible", has=page.locator("h4", has_text=title))


def test_a_step_tells_its_categories_and_its_device_as_text(page):
    figure = visible_figure(page, "Step time: 60 steps")
    assert figure.locator("h4").inner_text() == f"Step time: 60 steps ({HOSTILE})"
    seen = hovered(page, figure, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    for step in seen:
        assert {"Step:", "Time:", "Input:", "Device compute:", "Left out:", "Device:"} <= set(step)
        assert re.fullmatch(r"[\d.]+ ms", step["Input:"])
    assert {step["Device:"].replace("\u200b", "") for step in seen} == {f"worker {device}" for device in DEVICES}


def test_pies_tell_the_whole_name_as_text(page):
    page.get_by_role("tab", name="TensorFlow stats").click()
    ((part),) = hovered(page, visible_figure(page, "Device self time by type"), [0.65])
    assert part["Name:"].replace("\u200b", "") == HOSTILE
    assert part["Share:"].endswith(" %")
    names = [name.replace("\n", "") for name in page.locator(".tfprof-legend:visible dt").all_inner_texts()]
    assert HOSTILE in names


def test_idle_time_changes_pies_and_table(page):
    page.get_by_role("tab", name="TensorFlow stats").click()
    count = page.locator(".tfprof-count:visible")
    count.wait_for()
    assert count.inner_text() == "50 rows"
    page.get_by_role("radio", name="included").check()
    page.wait_for_function("[...document.querySelectorAll('.tfprof-count')].some((e) => e.innerText === '52 rows')")
    assert page.locator(".tfprof-legend:visible dt", has_text="IDLE").count() == 4


def test_kinds_and_devices_can_be_chosen(page):
    page.get_by_role("radio", name="test (2,500)").check()
    figure = visible_figure(page, "Step time: 2,500 steps (test)")
    figure.locator("canvas").first.wait_for()
    assert "is the average of 5 steps in a row" in figure.locator("figcaption").inner_text()


@pytest.mark.parametrize("width", [700, 1400])
def test_nothing_is_wider_than_the_page(page, width):
    page.set_viewport_size({"width": width, "height": 1000})
    for name in ("Overview", "TensorFlow stats"):
        page.get_by_role("tab", name=name).click()
        page.locator(".tabulator:visible").first.wait_for()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
