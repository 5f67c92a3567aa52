"""Charts saved as PNG and SVG, by mouse and by keyboard, in light and dark, with hostile names."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.browser

pytest.importorskip("playwright.sync_api")
image = pytest.importorskip("PIL.Image")

from generate import gpu_capture  # noqa: E402
from tfprof_widgets.report import load  # noqa: E402

HOSTILE = "</text><script>globalThis.pwned=1</script>"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pictures")
    space = gpu_capture(devices=1, steps=6)
    space.planes[0].line(HOSTILE, id=77).event(HOSTILE, 100, 5000)
    return load(space.save(directory / "a run.xplane.pb")).to_html(directory / "report.html")


@pytest.fixture(params=["light", "dark"])
def page(browser, path, request):
    page = browser.new_page(color_scheme=request.param, viewport={"width": 1200, "height": 900})
    page.paper = {"light": (255, 255, 255), "dark": (0x16, 0x19, 0x1D)}[request.param]
    page.goto(path.as_uri())
    page.wait_for_selector(".tfprof-tablist")
    yield page
    assert page.evaluate("globalThis.pwned") is None
    page.close()


def saved(page, bar, kind: str, key: str | None = None) -> tuple[str, bytes]:
    button = bar.get_by_role("button", name=kind)
    with page.expect_download() as download:
        if key is None:
            button.click()
        else:
            button.focus()
            page.keyboard.press(key)
    return download.value.suggested_filename, download.value.path().read_bytes()


def test_a_chart_is_saved(page):
    figure = page.locator("figure.tfprof-figure", has_text=re.compile("Step time: ")).first
    bar = figure.locator(".tfprof-save")
    bar.wait_for()
    name, data = saved(page, bar, "PNG")
    assert name.startswith("a-run_Step-time")
    assert name.endswith(".png")
    picture = image.open(io.BytesIO(data)).convert("RGB")
    assert picture.width > figure.bounding_box()["width"]  # twice the page's pixels
    assert picture.getpixel((3, 3)) == page.paper
    assert len(picture.resize((200, 200), image.Resampling.NEAREST).getcolors(40_000)) > 5
    name, data = saved(page, bar, "SVG", key="Enter")
    assert name.endswith(".svg")
    root = ET.fromstring(data)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert any(text.startswith("Step time") for text in texts)
    assert "Step" in texts  # the axis
    assert len(list(root.iter(f"{SVG}path"))) > 5


def test_the_trace_is_saved_with_the_names_of_its_tracks(page):
    page.get_by_role("tab", name="Trace").click()
    page.wait_for_function("() => document.querySelector('.tfprof-tl')?.timeline?.painted > 0")
    page.evaluate("() => document.querySelector('.tfprof-tl').timeline.addRange(0, 2_000_000)")
    page.locator(".tl-length").wait_for()
    page.get_by_role("button", name="More timeline tools").click()
    bar = page.locator(".tl-bar .tfprof-save")
    bar.wait_for()
    name, data = saved(page, bar, "SVG", key="Enter")
    assert name == "a-run_Trace.svg"
    root = ET.fromstring(data)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert any("Stream #13" in text for text in texts)
    assert any("GPU:0" in text for text in texts)
    assert "2.000 ms" in texts  # what is marked
    assert not list(root.iter(f"{SVG}script"))
    name, data = saved(page, bar, "PNG")
    assert page.evaluate("() => document.querySelector('.tfprof-tl').contains(document.activeElement)")
    picture = image.open(io.BytesIO(data)).convert("RGB")
    assert picture.getpixel((3, 3)) == page.paper
    assert len(picture.resize((300, 300), image.Resampling.NEAREST).getcolors(90_000)) > 8
