"""The self-contained page, opened from disk in Chromium with the network blocked, as a reader would."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.browser

pytest.importorskip("playwright.sync_api")

import bokeh  # noqa: E402
from bokeh.embed import json_item  # noqa: E402
from bokeh.models import ColumnDataSource, HoverTool, Legend, LegendItem  # noqa: E402
from bokeh.plotting import figure  # noqa: E402

from chromium import offline_page  # noqa: E402
from tfprof_widgets.display.html import report_page  # noqa: E402
from tfprof_widgets.display.payload import Payload  # noqa: E402
from tfprof_widgets.display.static_summary import to_html  # noqa: E402
from tfprof_widgets.views.blocks import Facts, SmallTable  # noqa: E402

HOSTILE = [
    "<img src=x onerror=\"globalThis.pwned=1;new Image().src='https://example.com/x'\">",
    "$$x$$",
    r"\(y\) and \[z\]",
    "</script><script>globalThis.pwned=1</script>",
    'a "quoted", name',
    "@{value} $name",
]
LONG = "training/model/very_long_block_name_that_goes_on/" * 4 + "dense_7/MatMul"
N_ROWS = 10_000


def ops() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    names = HOSTILE + [LONG] + [f"model/block_{i % 97}/dense_{i}/MatMul" for i in range(N_ROWS - len(HOSTILE) - 1)]
    time = rng.exponential(1000, N_ROWS).round(3)
    return pd.DataFrame(
        {
            "name": names,
            "type": ["MatMul"] * (len(HOSTILE) + 1)
            + list(rng.choice(["MatMul", "Relu", "Conv2D", "IDLE"], N_ROWS - len(HOSTILE) - 1)),
            "occurrences": rng.integers(1, 5000, N_ROWS),
            "total_time_us": time,
            "self_time_pct": 100 * time / time.sum() * 50,
            "on_host": rng.random(N_ROWS) < 0.5,
        }
    )


def steps_figure() -> dict:
    rng = np.random.default_rng(3)
    parts = {"Input": "#d55e00", "Device compute": "#009e73", "Kernel launch": "#cc79a7", "All others": "#8a939c"}
    data = {"step": np.arange(64), **{part: rng.gamma(9, 0.2, 64) for part in parts}}
    p = figure(height=240, toolbar_location=None, x_axis_label="step", y_axis_label="ms")
    p.vbar_stack(
        list(parts), x="step", width=1, color=list(parts.values()), line_color="white", source=ColumnDataSource(data),
        legend_label=list(parts),
    )  # fmt: skip
    p.add_tools(HoverTool(tooltips=[("step", "@step"), ("kind", "$name")]))
    p.y_range.start = 0
    p.legend.orientation = "horizontal"
    p.legend.location = "top_left"
    return json_item(p)


def names_figure() -> dict:
    """Names from a profile in every place where BokehJS writes text."""
    source = ColumnDataSource({"name": HOSTILE, "value": list(range(1, len(HOSTILE) + 1))})
    p = figure(
        height=320, y_range=HOSTILE, title=HOSTILE[1], x_axis_label=HOSTILE[1], y_axis_label=HOSTILE[2], name="names"
    )
    p.hbar("name", right="value", height=0.8, source=source)
    p.text(x="value", y="name", text="name", source=source)
    p.add_layout(Legend(items=[LegendItem(label=name, renderers=[]) for name in HOSTILE[:3]]), "above")
    p.add_tools(HoverTool(tooltips=[("name", "@name"), ("value", "@value")]))
    p.xaxis.major_label_overrides = {1: HOSTILE[1]}
    return json_item(p)


def sample() -> Payload:
    payload = Payload(
        id="sample-1",
        version="0.1",
        head={
            "title": "model.fit(dataset, epochs=2)",
            "facts": [
                {"label": "Steps", "value": "64 train"},
                {"label": "Captured", "value": "1.84 s", "hint": "from start to stop"},
                {"label": "Device", "value": "CPU"},
                {"label": "TensorFlow", "value": "2.21.0"},
                {"label": "Events", "value": "261,254"},
            ],
        },
        notes=["The first step is left out of the averages: it traced the function.", HOSTILE[0]],
    )
    payload.add_table("ops", ops())
    columns = [
        {"field": "type", "title": "Type", "kind": "text", "width": 90},
        {"field": "name", "title": "Operation", "kind": "text", "hint": "as in the graph"},
        {"field": "occurrences", "title": "Occurrences", "kind": "number"},
        {"field": "total_time_us", "title": "Total time", "kind": "number", "digits": 1, "unit": "µs"},
        {"field": "self_time_pct", "title": "Self time", "kind": "percent", "digits": 2},
        {"field": "on_host", "title": "Host", "kind": "bool"},
    ]
    table = {
        "kind": "table", "title": "Operations", "table": "ops", "columns": columns, "csv": "ops.csv", "filter": True,
        "sort": [{"field": "total_time_us", "dir": "desc"}],
    }  # fmt: skip
    parts = {"Input": "#d55e00", "Device compute": "#009e73", "Kernel launch": "#cc79a7", "All others": "#8a939c"}
    facts = {
        "kind": "facts",
        "title": "Average step time",
        "rows": [
            {"label": label, "value": f"{1.8 - i / 7:.2f} ms", "color": color, "hatch": i == 3}
            for i, (label, color) in enumerate(parts.items())
        ],
    }
    environment = {
        "kind": "facts",
        "title": "Run environment",
        "rows": [
            {"label": "Hosts", "value": 1},
            {"label": "Device type", "value": "GPU (NVIDIA T4)", "hint": "as the plane says"},
            {"label": "Device cores", "value": 2},
            {"label": "Peak memory", "value": 14.25},
            {"label": "Eager", "value": False},
        ],
    }
    payload.tabs += [
        {
            "id": "overview",
            "title": "Overview",
            "items": [
                {"kind": "text", "level": "warning", "text": "Your program is HIGHLY input-bound: 41.2 % of the step time."},
                {
                    "kind": "row",
                    "weights": [2, 1],
                    "children": [
                        {"kind": "figure", "title": "Step time", "figure": steps_figure(), "alt": "Step times", "note": "Hover a bar."},
                        facts,
                    ],
                },
                environment,
            ],
        },
        {
            "id": "ops",
            "title": "TensorFlow stats",
            "items": [
                {
                    "kind": "switch", "id": "idle", "label": "Idle time", "value": "without",
                    "options": [{"value": "without", "label": "excluded"}, {"value": "with", "label": "included"}],
                    "cases": {"without": [{**table, "where": {"field": "type", "not_equals": "IDLE"}}], "with": [table]},
                }
            ],
        },
        {
            "id": "names",
            "title": "Names",
            "items": [
                {"kind": "figure", "title": HOSTILE[0], "figure": names_figure(), "alt": HOSTILE[0], "note": HOSTILE[3]},
                {"kind": "facts", "title": HOSTILE[0], "rows": [{"label": HOSTILE[0], "value": HOSTILE[3]}]},
                {"kind": "text", "level": "info", "text": HOSTILE[0]},
                {"kind": "table", "title": "Broken", "table": "nowhere", "columns": columns},
                {"kind": "text", "level": "plain", "text": "after the broken item"},
            ],
        },
    ]  # fmt: skip
    return payload


def static() -> str:
    return to_html("Summary", [Facts([("Steps", 64)]), SmallTable(["Operation"], [[name] for name in HOSTILE])])


@pytest.fixture(scope="session")
def page_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(
        report_page(sample(), static(), "Sample </title><script>globalThis.pwned=1</script>"), encoding="utf-8"
    )
    return path


@pytest.fixture
def page(browser, page_path):
    """The page, opened; at the end nothing was asked of any network, and nothing went wrong but what is meant to."""
    with offline_page(browser, page_path, 1280, meant='named "nowhere"') as page:
        yield page


def rows(page):
    return page.locator("[role=tabpanel]:not([hidden]) .tabulator-row:visible")


def column(page, field):
    return page.locator(
        f'[role=tabpanel]:not([hidden]) .tabulator-row:visible .tabulator-cell[tabulator-field="{field}"]'
    )


def show_ops(page):
    page.get_by_role("tab", name="TensorFlow stats").click()
    rows(page).first.wait_for()


def test_the_interactive_view_replaces_the_summary(page):
    assert not page.locator(".tfprof-static").is_visible()
    assert page.get_by_text("model.fit(dataset, epochs=2)").is_visible()
    page.wait_for_selector("figure canvas")
    assert page.evaluate("globalThis.Bokeh") is None


def test_without_scripts_the_summary_stays(browser, page_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_path.as_uri())
    assert page.locator(".tfprof-static").is_visible()
    assert page.get_by_text(HOSTILE[0]).is_visible()
    context.close()


def test_a_report_that_cannot_start_says_so_and_keeps_its_summary(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("tfprof_widgets.display.payload.FORMAT", 99)
    path = tmp_path / "report.html"
    path.write_text(report_page(sample(), static(), "t"), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    page.get_by_role("alert").wait_for()
    assert "format 99" in page.get_by_role("alert").inner_text()
    assert page.locator(".tfprof-static").is_visible()
    context.close()


def test_a_page_that_has_a_module_loader_and_another_bokeh(browser, page_path):
    context = browser.new_context()
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(
        """
        globalThis.other = globalThis.Bokeh = {version: "2.4.3", __bokeh__: true};
        globalThis.define = Object.assign(() => { globalThis.swallowed = true; }, {amd: {}});
        globalThis.require = () => { globalThis.swallowed = true; };
        """
    )
    page.goto(page_path.as_uri())
    page.locator("figure canvas").first.wait_for()
    assert page.evaluate("Bokeh === other && Object.keys(other).join()") == "version,__bokeh__"
    assert page.evaluate("globalThis.swallowed") is None
    assert errors == []
    context.close()


def test_a_report_that_is_shown_twice(browser, page_path, tmp_path):
    html = page_path.read_text(encoding="utf-8")
    body = html[html.index("<body>") + 6 : html.index("</body>")]
    twice = tmp_path / "twice.html"
    twice.write_text(html.replace("</body>", f"{body}</body>"), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(twice.as_uri())
    page.locator("figure canvas").nth(1).wait_for()
    assert page.locator(".tfprof-app").count() == 2
    assert page.evaluate("Object.keys(__tfprof_apps).length") == 1
    # Each has its own tabs.
    page.get_by_role("tab", name="Names").first.click()
    assert page.locator("[role=tab][aria-selected=true]").all_inner_texts() == ["Names", "Overview"]
    context.close()


def test_a_report_taken_off_the_page_lets_go_and_comes_back(page):
    page.locator("figure canvas").first.wait_for()
    documents = f"__tfprof_bokeh['{bokeh.__version__}'].then(Bokeh => Bokeh.documents.length)"
    assert page.evaluate(documents) == 1
    # As when a cell is run again: the former output goes, another comes.
    page.evaluate(
        """async () => {
          globalThis.former = document.getElementById("tfprof-sample-1");
          const next = former.cloneNode(true);
          next.querySelector(".tfprof-mount").replaceChildren();
          former.replaceWith(next);
          await Object.values(__tfprof_apps)[0].mount(next);
        }"""
    )
    page.locator("figure canvas").first.wait_for()
    assert page.evaluate(documents) == 1
    assert page.evaluate("former.querySelector('.tfprof-app')") is None
    # As when a notebook puts an output back that was scrolled away.
    page.evaluate("document.body.prepend(former)")
    page.locator(".tfprof-app").nth(1).wait_for()
    assert page.locator(".tfprof-app").count() == 2
    assert page.locator(".tfprof-static:visible").count() == 0


def test_tabs_by_keyboard(page):
    page.get_by_role("tab", name="Overview").focus()
    page.keyboard.press("ArrowRight")
    selected = page.locator("[role=tab][aria-selected=true]")
    assert selected.inner_text() == "TensorFlow stats"
    assert selected.evaluate("element => element === document.activeElement")
    page.keyboard.press("End")
    assert selected.inner_text() == "Names"
    page.keyboard.press("ArrowRight")
    assert selected.inner_text() == "Overview"
    assert page.locator("[role=tabpanel]:visible").count() == 1


def test_a_table_sorts_by_click_and_by_keyboard(page):
    show_ops(page)
    data = ops().query("type != 'IDLE'")
    assert column(page, "total_time_us").first.inner_text() == f"{data.total_time_us.max():,.1f}"
    header = page.locator('[role=columnheader][tabulator-field="occurrences"]:visible')
    header.locator(".tfprof-coltitle").click()
    assert column(page, "occurrences").first.inner_text() == f"{data.occurrences.max():,}"
    assert header.get_attribute("aria-sort") == "descending"
    header.focus()
    page.keyboard.press("Enter")
    assert column(page, "occurrences").first.inner_text() == f"{data.occurrences.min():,}"


def test_only_the_rows_in_view_are_drawn(page):
    show_ops(page)
    assert rows(page).count() < 100


def test_filters_search_and_counts_combine(page):
    show_ops(page)
    data = ops().query("type != 'IDLE'")
    count = page.locator(".tfprof-count:visible")
    assert count.inner_text() == f"{len(data):,} rows"
    page.get_by_label("Filter Occurrences").fill(">4000")
    expected = data[data.occurrences > 4000]
    assert count.inner_text() == f"{len(expected):,} of {len(data):,} rows"
    page.get_by_label("Search Operations").fill("BLOCK_7/")
    expected = expected[expected.name.str.contains("block_7/")]
    assert count.inner_text() == f"{len(expected):,} of {len(data):,} rows"
    assert rows(page).count() == len(expected)


def test_csv_without_a_kernel(page):
    show_ops(page)
    data = ops().query("type != 'IDLE'")
    page.get_by_label("Filter Type").fill("relu")
    with page.expect_download() as info:
        page.get_by_role("button", name="CSV of these").click()
    assert info.value.suggested_filename == "ops.csv"
    saved = list(csv.DictReader(io.StringIO(info.value.path().read_bytes().decode())))
    expected = data[data.type == "Relu"]
    assert len(saved) == len(expected)
    with page.expect_download() as info:
        page.get_by_role("button", name="CSV of all").click()
    saved = pd.read_csv(info.value.path())
    # No text is a formula of a spreadsheet.
    assert sorted(saved.name) == sorted(data.name.str.replace(r"^(?=[=+\-@])", "'", regex=True))
    # Values are the raw ones, not those shown.
    np.testing.assert_array_equal(np.sort(saved.total_time_us), np.sort(data.total_time_us))


def test_long_names_are_cut_in_the_middle_and_copied_whole(browser, page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    show_ops(page)
    page.get_by_label("Search Operations").fill("very_long_block")
    cell = column(page, "name").first
    assert cell.locator(".tfprof-name").get_attribute("title") == LONG
    end = cell.locator(".tfprof-name-end")
    assert LONG.endswith(end.inner_text())
    box, outer = end.bounding_box(), cell.bounding_box()
    assert box["x"] + box["width"] <= outer["x"] + outer["width"]
    copied = cell.evaluate(
        """cell => {
          getSelection().selectAllChildren(cell);
          let copied;
          const event = new ClipboardEvent("copy", {bubbles: true, cancelable: true, clipboardData: new DataTransfer()});
          cell.dispatchEvent(event);
          return event.clipboardData.getData("text/plain");
        }"""
    )
    assert copied == LONG


def test_the_switch_shows_the_other_case(page):
    show_ops(page)
    page.get_by_role("radio", name="included").check()
    page.get_by_text(f"{N_ROWS:,} rows").wait_for()


def test_names_from_a_profile_stay_text(page):
    show_ops(page)
    for name in HOSTILE:
        page.get_by_label("Search Operations").fill(name)
        assert column(page, "name").first.inner_text().replace("\n", "") == name
    page.set_viewport_size({"width": 1400, "height": 900})
    page.get_by_role("tab", name="Names").click()
    canvas = page.locator("figure:visible canvas").first
    canvas.wait_for()
    box = canvas.bounding_box()
    # Every bar's hover box, too.
    seen = set()
    for y in np.linspace(box["y"] + 30, box["y"] + box["height"] - 50, 40):
        page.mouse.move(box["x"] + box["width"] * 0.45, y)
        page.wait_for_timeout(40)
        seen.update(page.locator(".bk-tooltip-row-value").all_inner_texts())
    assert HOSTILE[0] in seen
    assert page.locator("img").count() == 0
    assert "MathJax" not in page.content()


def test_an_item_that_fails_says_so_and_leaves_the_rest(page):
    page.get_by_role("tab", name="Names").click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert 'holds no table named "nowhere"' in alert.inner_text()
    assert page.get_by_text("after the broken item").is_visible()


def test_the_theme_is_followed_live(page):
    canvas = page.locator("figure canvas").first
    canvas.wait_for()
    app = page.locator(".tfprof-app")
    background = "canvas => [...canvas.getContext('2d').getImageData(2, 2, 1, 1).data]"
    assert app.get_attribute("data-tfprof-theme") == "light"
    assert canvas.evaluate(background)[:3] == [255, 255, 255]
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(300)
    assert app.get_attribute("data-tfprof-theme") == "dark"
    assert max(canvas.evaluate(background)[:3]) < 60
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7)
    hover = page.locator(".bk-Tooltip").first
    hover.wait_for()
    assert hover.evaluate("box => getComputedStyle(box).backgroundColor") == "rgb(22, 25, 29)"
    # What the page says counts for more than what the system does.
    page.evaluate("document.body.setAttribute('data-jp-theme-light', 'true')")
    page.wait_for_timeout(300)
    assert app.get_attribute("data-tfprof-theme") == "light"


def test_figures_follow_the_width(page):
    canvas = page.locator("figure canvas").first
    canvas.wait_for()
    page.set_viewport_size({"width": 1400, "height": 800})
    page.wait_for_timeout(300)
    wide = canvas.bounding_box()["width"]
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_timeout(300)
    assert canvas.bounding_box()["width"] < wide
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
