"""Input pipeline, kernels, memory, pod and the recommendations in Chromium, with names that try to be HTML and mathematics."""

from __future__ import annotations

import dataclasses
import re

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

pytest.importorskip("playwright.sync_api")

from chromium import offline_page  # noqa: E402
from generate import gpu_capture  # noqa: E402
from generate.input_pipeline import input_pipeline_capture  # noqa: E402
from tfprof_widgets.analysis.advice import Finding  # noqa: E402
from tfprof_widgets.analysis.events import Trace  # noqa: E402
from tfprof_widgets.analysis.input_pipeline import input_pipeline  # noqa: E402
from tfprof_widgets.analysis.kernels import kernels  # noqa: E402
from tfprof_widgets.analysis.memory import memory, memory_peak, memory_summary  # noqa: E402
from tfprof_widgets.analysis.memory_history import memory_history  # noqa: E402
from tfprof_widgets.analysis.op_stats import op_stats  # noqa: E402
from tfprof_widgets.analysis.pod import pod  # noqa: E402
from tfprof_widgets.analysis.steps import find_steps  # noqa: E402
from tfprof_widgets.display.html import report_page  # noqa: E402
from tfprof_widgets.display.payload import Payload  # noqa: E402
from tfprof_widgets.views.advice import answer, recommendations  # noqa: E402
from tfprof_widgets.views.colors import OpColors  # noqa: E402
from tfprof_widgets.views.input_pipeline import find_step_chart, input_pipeline_tab  # noqa: E402
from tfprof_widgets.views.kernels import kernels_tab  # noqa: E402
from tfprof_widgets.views.memory import memory_tab  # noqa: E402
from tfprof_widgets.views.overview import overview_tab  # noqa: E402
from tfprof_widgets.views.pod import pod_tab  # noqa: E402
from tfprof_widgets.xspace import read  # noqa: E402
from view_frames import HOSTILE, ops_frame, overview_of, steps_frame  # noqa: E402

GPUS = ("/device:GPU:0", "/device:GPU:1")
FINDING = Finding(
    title=HOSTILE,
    statement=HOSTILE,
    saves_ms=1.0,
    confidence="high",
    evidence={HOSTILE: HOSTILE},
    change=f"Use map(f, num_parallel_calls=2), not {HOSTILE}",
    links=[
        ("GPU kernels", "tool:kernels"),
        ("Guide", "https://www.tensorflow.org/guide/profiler"),
        ("bad", "javascript:globalThis.pwned=3"),
    ],
)


def hostile_memory() -> pd.DataFrame:
    held = memory(Trace(read(gpu_capture(2, 6).bytes()), "worker-0"))
    return held.assign(op_name=pd.Categorical([HOSTILE] * len(held)))


def build() -> Payload:
    steps = steps_frame(20, kind=HOSTILE, devices=GPUS)
    ops = ops_frame()
    summary = overview_of(steps, ops)
    payload = Payload(id="tools", head={"title": "tools", "facts": [], "answer": answer([FINDING, FINDING], summary)})
    overview = overview_tab(payload, summary, steps)
    overview["items"].insert(0, recommendations([FINDING, FINDING], 3.0))
    payload.tabs.append(overview)

    trace = Trace(read(input_pipeline_capture(12, map_us=5000).space.bytes()), HOSTILE)
    analysis = input_pipeline([trace], [find_steps(trace)], op_stats([trace]))
    hostile = dataclasses.replace(
        analysis,
        tf_data=analysis.tf_data.assign(name=HOSTILE),
        pipelines=analysis.pipelines.assign(name=HOSTILE, statement=HOSTILE),
        input_ops=analysis.input_ops.assign(name=HOSTILE),
    )
    payload.tabs.append(input_pipeline_tab(payload, hostile, find_step_chart(overview["items"])))

    gpu = Trace(read(gpu_capture(2, 6).bytes()), "worker-0")
    payload.tabs.append(
        kernels_tab(payload, kernels(gpu).assign(kernel_name=HOSTILE, op_name=HOSTILE), ops, OpColors.of(ops))
    )
    held = hostile_memory()
    gpu_steps = find_steps(gpu).table
    payload.tabs.append(memory_tab(payload, held, memory_summary(held), memory_history([held]), gpu_steps))
    hosts = [steps_frame(9, devices=GPUS).assign(host=f"{HOSTILE}{i}") for i in range(3)]
    hosts[1].loc[4, ["input_ms", "duration_ms"]] += 50
    payload.tabs.append(pod_tab(payload, pod(hosts), {HOSTILE: HOSTILE}))
    return payload


@pytest.fixture(scope="module")
def page_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tools") / "report.html"
    path.write_text(report_page(build(), "", "tools"), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, page_path):
    """The page, opened; at the end nothing was asked of any network, and no name was more than text."""
    with offline_page(browser, page_path, 1100) as page:
        yield page


def show(page, tab: str):
    page.get_by_role("tab", name=tab).click()
    panel = page.locator(".tfprof-panel:visible")
    panel.wait_for()
    return panel


def tooltip(page, figure, x: float, y: float) -> str:
    """Text of the box over a place in a figure, as shares of its width and height."""
    canvas = figure.locator("canvas").first
    canvas.wait_for()
    figure.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    for shift in range(40):  # each figure has a box of its own, empty until it is needed
        page.mouse.move(box["x"] + x * box["width"] + shift % 3, box["y"] + y * box["height"])
        page.wait_for_timeout(50)
        shown = page.locator(".bk-tooltip-content:visible").all_inner_texts()
        if any(shown):
            return "\n".join(shown)
    return ""


def test_the_answer_stands_above_every_tool_and_leads_to_its_evidence(page):
    said = page.locator(".tfprof-answer")
    assert said.locator(".tfprof-answer-text").inner_text() == HOSTILE
    said.get_by_role("button", name="See it in: GPU kernels").click()
    assert page.get_by_role("tab", name="GPU kernels").get_attribute("aria-selected") == "true"
    assert said.is_visible()
    said.get_by_role("button", name="1 more recommendation").click()
    assert page.get_by_role("tab", name="Overview").get_attribute("aria-selected") == "true"


def test_a_recommendation_is_opened_copied_and_followed_with_keys_alone(page):
    first = page.locator(".tfprof-finding").first
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    assert first.get_attribute("open") is not None
    for words in (HOSTILE, "saves up to 1.00 ms a step (33.3 %)", "num_parallel_calls=2"):
        assert words in first.inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    first.get_by_role("button", name=re.compile("Copied|Select and copy")).wait_for()
    assert first.get_by_role("link").count() == 1
    assert first.get_by_role("link").get_attribute("href") == "https://www.tensorflow.org/guide/profiler"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.get_by_role("tab", name="GPU kernels").get_attribute("aria-selected") == "true"


def test_the_step_chart_is_on_both_tabs(page):
    page.locator("h4:visible", has_text="Step time: 20 steps").wait_for()
    panel = show(page, "Input pipeline")
    figure = panel.locator("figure", has=page.locator("h4", has_text="Step time: 20 steps"))
    assert "Device compute:" in tooltip(page, figure, 0.5, 0.7)
    show(page, "Overview")
    figure = page.locator("figure:visible", has=page.locator("h4", has_text="Step time: 20 steps"))
    assert "Device compute:" in tooltip(page, figure, 0.5, 0.7)


def test_stages_are_a_table_with_the_bottleneck_in_words(page):
    panel = show(page, "Input pipeline")
    rows = panel.locator(".tfprof-stages tbody tr")
    assert rows.count() == 4
    assert panel.get_by_text("bottleneck", exact=True).count() == 1
    assert rows.first.get_by_role("rowheader").inner_text().replace("\n", "").startswith("<img src=x")
    waiting = panel.locator("figure", has=page.locator("h4", has_text="Waiting for input"))
    assert "Waiting:" in tooltip(page, waiting, 0.5, 0.6)


def test_kernels_are_filtered_by_tensor_cores_and_grouped(page):
    panel = show(page, "GPU kernels")
    count = panel.locator(".tfprof-count:visible")
    count.wait_for()
    whole = int(count.inner_text().split()[0])
    panel.get_by_label("Filter TC used").fill("yes")
    page.wait_for_function("[...document.querySelectorAll('.tfprof-count')].some((e) => / of /.test(e.innerText))")
    assert 0 < int(count.inner_text().split()[0]) < whole
    panel.get_by_role("radio", name="op", exact=True).check()
    page.wait_for_function("[...document.querySelectorAll('.tfprof-count')].some((e) => e.innerText === '1 row')")
    assert panel.locator(".tfprof-legend:visible dt").first.inner_text().replace("\n", "").startswith("<img src=x")


# Paints the first column of the canvas behind each figure in view red, or tells how many of them have some red there.
FIRST_COLUMN = """(paint) => {
    let red = 0;
    const walk = (node) => {
        if (node.shadowRoot) walk(node.shadowRoot);
        for (const child of node.children) walk(child);
        if (node.tagName !== "CANVAS" || node.getBoundingClientRect().height < 100) return;
        const context = node.getContext("2d");
        context.resetTransform();
        context.fillStyle = "red";
        if (paint) context.fillRect(0, 0, 1, node.height);
        const [r, g] = context.getImageData(0, 50, 1, 1).data;
        red += Number(r - g > 8);
    };
    walk(document.body);
    return red;
}"""


def test_nothing_that_was_at_the_edge_of_a_figure_is_left_there(page):
    show(page, "Memory").locator("figure:visible canvas").first.wait_for()
    assert page.evaluate(FIRST_COLUMN, True) > 0
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"({FIRST_COLUMN})(false) === 0")


def test_memory_tells_the_values_under_the_pointer(page):
    panel = show(page, "Memory")
    seen = tooltip(page, panel.locator("figure:visible"), 0.5, 0.6)
    for label in ("Time:", "Heap:", "Fragmentation:"):
        assert label in seen
    panel.get_by_role("radio", name=re.compile("GPU_1_bfc")).check()
    panel.locator("figure:visible canvas").first.wait_for()
    assert panel.locator("figure:visible").count() == 1


def test_a_click_on_the_memory_chart_tells_what_was_held_then(page):
    panel = show(page, "Memory")
    table = hostile_memory()
    first = memory_summary(table)["allocator"][0]
    mine = table[table["allocator"] == first].reset_index(drop=True)
    peak = memory_peak(table).query("allocator == @first")

    def shown(what: str) -> pd.Series:
        """Occurrences of each size in the table; all of an allocator's kinds of block fit into it."""
        panel.get_by_role("heading", name=re.compile(what)).wait_for()
        rows = panel.locator(".tabulator-row:visible")
        texts = [row.locator(".tabulator-cell").all_inner_texts() for row in rows.all()]
        return sorted((cells[1].strip(), int(cells[3])) for cells in texts)

    def expected(held: pd.DataFrame) -> list[tuple[str, int]]:
        return sorted(
            (f"{b / 2**20:,.3f}" if b >= 525 else "<0.001", n)
            for b, n in zip(held["bytes"], held["occurrences"], strict=True)
        )

    assert shown("Allocations at the peak") == expected(peak)
    # Near the end, where another set of blocks is held than at the peak.
    chart = panel.locator(".tfprof-clickable:visible")
    canvas = chart.locator("canvas").first
    canvas.wait_for()
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + 0.86 * box["width"], box["y"] + 0.5 * box["height"])
    heading = panel.get_by_role("heading", name=re.compile(r"Allocations at \d"))
    heading.wait_for()
    at_ms = float(panel.get_by_label("What was held at (ms)").input_value())
    at = int((mine["time_ms"] <= at_ms + 1e-7).sum())
    assert f"after change {at} of {len(mine)}" in panel.inner_text()
    until = mine[:at]
    assert shown(r"Allocations at \d") == expected(memory_peak(until.assign(in_use_bytes=range(at))))

    # The same with keys alone.
    panel.get_by_role("button", name="Peak", exact=True).focus()
    page.keyboard.press("Enter")
    assert shown("Allocations at the peak") == expected(peak)
    panel.get_by_label("What was held at (ms)").fill(f"{at_ms:.6f}")
    page.keyboard.press("Enter")
    assert f"after change {at} of {len(mine)}" in panel.inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert f"after change {min(at + 1, len(mine))} of {len(mine)}" in panel.inner_text()


def test_the_slider_goes_from_step_to_step(page):
    panel = show(page, "Pod")
    slider = panel.get_by_role("slider", name="Step")
    caption = panel.locator(".tfprof-item-stepper figcaption").first
    slider.wait_for()
    page.wait_for_function("document.querySelector('.tfprof-item-stepper output')?.innerText !== ''")
    assert panel.locator("output").inner_text() == "4 (5 of 9)"
    assert caption.inner_text().startswith(f"Straggler: {HOSTILE}1 /device:GPU:0 takes 5")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert panel.locator("output").inner_text() == "5 (6 of 9)"
    assert caption.inner_text().startswith("No straggler") or caption.inner_text().startswith("Straggler")
    assert slider.get_attribute("aria-valuetext") == "step 5"
    page.keyboard.press("End")
    assert panel.get_by_role("button", name="Next step").is_disabled()
    panel.get_by_role("button", name="Largest gap (step 4)").click()
    assert panel.locator("output").inner_text() == "4 (5 of 9)"
    seen = tooltip(page, panel.locator(".tfprof-item-stepper figure"), 0.5, 0.6)
    assert "<img src=x onerror=" in seen
    for label in ("Device:", "Input:", "Most in:"):
        assert label in seen
