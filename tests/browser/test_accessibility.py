"""Every tool of a report, light and dark: no serious or critical violation by axe-core, and keys alone reach everything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

pytest.importorskip("playwright.sync_api")

from generate import cpu_fit_capture, gpu_capture, pod_captures  # noqa: E402
from generate.input_pipeline import input_pipeline_capture  # noqa: E402
from tfprof_widgets.report import Report  # noqa: E402
from tfprof_widgets.xspace import read  # noqa: E402

AXE = Path(__file__).resolve().parents[2] / "js" / "node_modules" / "axe-core" / "axe.min.js"
if not AXE.exists() and not os.environ.get("CI"):
    pytest.skip("axe-core is not installed (npm ci in js/)", allow_module_level=True)

CAPTURES = {
    "cpu": lambda: [cpu_fit_capture(2, 12, slow_input_us=3_000)],
    "gpu": lambda: [gpu_capture(2, 8, launch_us=60)],
    "input": lambda: [input_pipeline_capture(12, map_us=5_000).space],
    "hosts": lambda: pod_captures(hosts=64, devices=1, steps=4, slow_host=2),
}
# The page around the report is this test's, and what Bokeh draws on its canvas has the figure's text alternative beside it.
RUN = """async (options) => {
  const { violations } = await axe.run(document.querySelector(".tfprof-app"), options);
  const place = (node) => `${node.target.join(" ")} | ${node.html.slice(0, 160)} | ${node.failureSummary}`;
  return violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, impact, nodes }) => `${id} (${impact}) in ${nodes.length} places: ${nodes.slice(0, 4).map(place).join(" ;; ")}`);
}"""


@pytest.fixture(scope="module", params=CAPTURES)
def page_path(request, tmp_path_factory):
    report = Report([read(space.bytes()) for space in CAPTURES[request.param]()])
    return report.to_html(tmp_path_factory.mktemp(request.param) / "report.html")


# The theme changes colours and nothing else: all rules once, for the other theme the one on colours (half the time).
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast", "link-in-text-block"]}}


@pytest.mark.parametrize("scheme", RULES)
def test_no_tool_has_a_serious_violation(browser, page_path, scheme):
    # A policy against scripts from elsewhere would keep axe out too.
    context = browser.new_context(viewport={"width": 1300, "height": 1000}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(page_path.as_uri())
    page.add_script_tag(path=str(AXE))
    found = {}
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.locator(".tfprof-panel:visible > *").first.wait_for()
        page.evaluate("document.querySelectorAll('.tfprof-app details').forEach((each) => void (each.open = true))")
        page.wait_for_timeout(700)
        if violations := page.evaluate(RUN, RULES[scheme]):
            found[tab.inner_text()] = violations
    assert page.locator(".tfprof-app").get_attribute("data-tfprof-theme") == scheme
    context.close()
    assert found == {}


# What the Tab key should reach: of radio buttons the chosen one, of tabs the selected one.
STOPS = """() => {
  globalThis.reached ??= new Set(document.addEventListener("focusin", ({ target }) => globalThis.reached.add(target)));
  const panel = document.querySelector(".tfprof-panel:not([hidden])");
  const stops = [...panel.querySelectorAll("button, a[href], input, select, summary, [tabindex]")];
  globalThis.stops = stops.filter((each) =>
    each.checkVisibility() && !each.disabled && each.tabIndex >= 0 && (each.type !== "radio" || each.checked));
  return globalThis.stops.length;
}"""
# A table makes its rows anew as they scroll into view, and with them their buttons: reaching some of those is reaching all.
MISSED = """() => {
  const buttons = ".tfprof-totrace";
  const missed = globalThis.stops.filter((each) => !globalThis.reached.has(each) && !each.matches(buttons));
  const inRows = globalThis.stops.some((each) => each.matches(buttons));
  if (inRows && ![...globalThis.reached].some((each) => each.matches(buttons))) missed.push(...globalThis.stops);
  return missed.map((each) => each.outerHTML.slice(0, 200));
}"""
# What looks as if it could be clicked, and isn't in anything that keys reach. A chart's marks have their words and keys beside it.
MOUSE_ONLY = """() => {
  const panel = document.querySelector(".tfprof-panel:not([hidden])");
  const reachable = "button, a[href], input, select, summary, label, [tabindex]";
  return [...panel.querySelectorAll("*")]
    .filter((each) => each.checkVisibility() && getComputedStyle(each).cursor === "pointer" && each.closest(reachable) === null)
    .filter((each) => each.closest(".tfprof-clickable") === null)
    .map((each) => each.outerHTML.slice(0, 200));
}"""


def test_keys_alone_reach_everything(browser, page_path):
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.goto(page_path.as_uri())
    tabs = page.get_by_role("tab")
    tabs.first.focus()
    found = {}
    for number in range(tabs.count()):
        tab = tabs.nth(number)
        assert tab.evaluate("element => element === document.activeElement")
        page.locator(".tfprof-panel:visible > *").first.wait_for()
        page.wait_for_function(
            "[...document.querySelectorAll('.tfprof-panel:not([hidden]) .tfprof-canvas')].every((each) => each.children.length)"
        )
        stops = page.evaluate(STOPS)
        # A track has two buttons more while its name has the focus.
        for _ in range(3 * stops + 5):
            page.keyboard.press("Tab")
            if not page.evaluate(
                "document.querySelector('.tfprof-panel:not([hidden])').contains(document.activeElement)"
            ):
                break
        missed = page.evaluate(MISSED) + page.evaluate(MOUSE_ONLY)
        if missed:
            found[tab.inner_text()] = missed
        tab.focus()
        page.keyboard.press("ArrowRight")
    page.close()
    assert found == {}
