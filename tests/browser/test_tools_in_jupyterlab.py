"""Every tool used in the real JupyterLab: sorted, filtered, switched, clicked; on a CPU, on GPUs, and with 64 hosts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("jupyterlab")

from generate import cpu_fit_capture, gpu_capture, pod_captures  # noqa: E402
from lab import WIDGET, Lab, Notebook, run_new_cell, shut_down, zoom_in  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.notebook]

expect = playwright.expect
GPU_W0 = Path(__file__).resolve().parents[3] / "shared" / "captures" / "gpu_w0.xplane.pb"
MADE = {
    "cpu": lambda: [cpu_fit_capture(2, 12, slow_input_us=3_000)],
    "gpu": lambda: [gpu_capture(2, 8, launch_us=60)],
    "hosts": lambda: pod_captures(hosts=64, devices=1, steps=6, slow_host=10),
}


@pytest.fixture(scope="module")
def notebook(browser, tmp_path_factory):
    """One notebook of one JupyterLab for all of the tests; it opens saved profiles, so its kernel needs no TensorFlow."""
    lab = Lab(tmp_path_factory.mktemp("tools"))
    lab.write("tools.ipynb", "import tfprof_widgets as tfprof")
    opened = Notebook(browser, lab, "tools.ipynb")
    opened.command("notebook:run-cell")
    opened.page.wait_for_function(f"{WIDGET}.content.activeCell.model.executionCount > 0")
    yield opened
    shut_down(opened)
    lab.stop()


@pytest.fixture(scope="module", params=[*MADE, "gpu_w0"])
def shown(request, notebook, tmp_path_factory):
    """A capture's name, and its report under a cell of the notebook."""
    name = request.param
    if name == "gpu_w0":
        if not GPU_W0.exists():
            pytest.skip("the capture gpu_w0 is not here")
        source = GPU_W0
    else:
        source = tmp_path_factory.mktemp(name)
        for index, space in enumerate(MADE[name]()):
            space.save(source / f"worker-{index}.xplane.pb")
    cell = run_new_cell(notebook, f"report = tfprof.load({str(source)!r})\nreport")
    report = cell.locator(".tfprof-app")
    report.get_by_role("tab").first.wait_for(timeout=90_000)
    return name, report


def open_tool(report, title: str):
    report.get_by_role("tab", name=title, exact=True).click()
    panel = report.locator(".tfprof-panel:visible")
    panel.locator(":scope > *").first.wait_for()
    return panel


def sort_by(table, field: str) -> list[float]:
    """Sort a table by a column of numbers, the largest first; return those in view."""
    header = table.locator(f'.tabulator-col[tabulator-field="{field}"]')
    header.focus()
    while header.get_attribute("aria-sort") != "descending":
        before = header.get_attribute("aria-sort")
        header.press("Enter")
        expect(header).not_to_have_attribute("aria-sort", before)
    cells = table.locator(f'.tabulator-row .tabulator-cell[tabulator-field="{field}"]')
    values = [float(re.sub(r"[^\d.]", "", text) or 0) for text in cells.all_inner_texts()]
    assert values == sorted(values, reverse=True)
    return values


def table_of(panel, title: str):
    return panel.locator(".tfprof-item-table, .tfprof-item-held").filter(
        has=panel.page.get_by_role("heading", name=re.compile(title))
    )


def test_overview(shown):
    name, report = shown
    panel = open_tool(report, "Overview")
    panel.locator("canvas").first.wait_for()
    assert len(sort_by(table_of(panel, "^Top"), "occurrences")) > 1
    finding = panel.locator(".tfprof-finding").first
    if finding.count():
        finding.locator("summary").press("Enter")
        expect(finding.locator(".tfprof-finding-body")).to_be_visible()
    has_devices = name != "cpu"
    assert table_of(panel, "^Use of the devices").count() == has_devices
    if has_devices:
        gaps = sort_by(table_of(panel, "longest gap"), "duration_us")
        assert gaps[0] > 0


def test_input_pipeline(shown):
    name, report = shown
    panel = open_tool(report, "Input pipeline")
    panel.get_by_role("heading").first.wait_for()
    panel.locator("canvas").first.wait_for()
    if name == "cpu":
        expect(panel.locator(".tfprof-stages tbody tr").first).to_be_visible()


def test_tensorflow_stats(shown):
    _, report = shown
    panel = open_tool(report, "TensorFlow stats")
    table = table_of(panel, "^Operations").first
    counted = table.locator(".tfprof-count")
    counted.wait_for()
    whole = int(counted.inner_text().split()[0].replace(",", ""))
    cells = table.locator('.tabulator-row .tabulator-cell[tabulator-field="type"]')
    wanted = cells.first.inner_text().replace("\n", "")
    table.get_by_label("Filter Operation type").fill(wanted)
    expect(counted).to_have_text(re.compile(rf"^\d+ of {whole:,} rows$"))
    types = cells.all_inner_texts()
    assert types
    assert all(wanted in each.replace("\n", "") for each in types)
    sort_by(table, "self_time_us")
    table.get_by_label("Filter Operation type").fill("")
    expect(counted).to_have_text(f"{whole:,} rows")
    with report.page.expect_download() as download:
        table.get_by_role("button", name="Download CSV").click()
    assert len(Path(download.value.path()).read_text(encoding="utf-8").splitlines()) == whole + 1
    choice = panel.get_by_role("radiogroup").first
    other = choice.locator("input:not(:checked)").first
    other.check()
    expect(panel.locator(".tabulator:visible")).to_have_count(1)


def test_trace(notebook, shown):
    name, report = shown
    panel = open_tool(report, "Trace")
    if name == "hosts":
        hosts = panel.get_by_label("Host")
        labels = hosts.locator("option").all_inner_texts()
        assert labels == [f"worker-{i}" for i in range(64)]
        hosts.select_option("worker-63")
        panel.locator(".tl-over:visible").wait_for()
        hosts.select_option("worker-0")
    search = panel.locator(".tl-search input:visible")
    search.fill("nothing is called this")
    expect(panel.locator(".tl-hits:visible")).to_contain_text("no hits")
    search.fill("e")
    expect(panel.locator(".tl-hits:visible")).to_contain_text(re.compile(r"\d hits"))
    search.fill("")
    zoom_in(notebook, report)


def test_gpu_kernels(shown):
    name, report = shown
    panel = open_tool(report, "GPU kernels")
    if name == "cpu":
        expect(panel).to_contain_text("No GPU")
        assert panel.locator("canvas").count() == 0
        return
    panel.locator("canvas").first.wait_for()
    table = panel.locator(".tfprof-item-table:visible").first
    sort_by(table, "total_time_us")
    counted = table.locator(".tfprof-count")
    whole = int(counted.inner_text().split()[0].replace(",", ""))
    table.get_by_label("Filter TC used").fill("no")
    expect(counted).to_have_text(re.compile(rf"^[\d,]+ of {whole:,} rows$"))
    panel.get_by_role("radio", name="op", exact=True).check()
    expect(panel.locator(".tabulator:visible")).to_have_count(1)


def test_memory(notebook, shown):
    name, report = shown
    panel = open_tool(report, "Memory")
    if name == "hosts":
        panel.get_by_label("Host").select_option("worker-10")
        # The tools of one report show one host.
        expect(open_tool(report, "Trace").get_by_label("Host")).to_have_value("10")
        panel = open_tool(report, "Memory")
    chart = panel.locator(".tfprof-clickable:visible")
    chart.locator("canvas").first.wait_for()
    held = table_of(panel, "Allocations").locator("visible=true").first
    heading = held.get_by_role("heading", name=re.compile("^Allocations at"))
    expect(heading).to_have_text(re.compile("at the peak"))
    sort_by(held, "total_size_mib")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    notebook.page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 90)
    expect(heading).to_have_text(re.compile(r"Allocations at [\d,.]+ ms"))
    held.get_by_role("button", name="Peak", exact=True).press("Enter")
    expect(heading).to_have_text(re.compile("at the peak"))


def test_pod(shown):
    name, report = shown
    panel = open_tool(report, "Pod")
    if name == "cpu":
        expect(panel).to_contain_text("nothing to compare")
        return
    said = panel.locator(".tfprof-stepper output")
    said.wait_for()
    if name != "gpu_w0":  # which has one step
        slider = panel.get_by_role("slider", name="Step")
        slider.press("Home")
        first = said.inner_text()
        slider.press("ArrowRight")
        expect(said).not_to_have_text(first)
    if name == "hosts":
        expect(panel).to_contain_text("worker-10 is the straggler")
        workers = table_of(panel, "^Hosts and devices")
        workers.get_by_label("Filter Host", exact=True).fill("worker-10")
        expect(workers.locator(".tfprof-count")).to_have_text("1 of 64 rows")


def test_the_theme_switches_under_a_report(notebook, shown):
    name, report = shown
    if name != "gpu":
        pytest.skip("one report is enough")
    open_tool(report, "Memory")
    paper = "element => getComputedStyle(element).backgroundColor"
    colors = {}
    for theme, mode in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        notebook.page.evaluate(
            "theme => globalThis.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
        )
        expect(report).to_have_attribute("data-tfprof-theme", mode)
        colors[mode] = report.evaluate(paper)
    assert colors == {"dark": "rgb(22, 25, 29)", "light": "rgb(255, 255, 255)"}


def test_traits_go_both_ways(notebook, tmp_path):
    for index, space in enumerate(pod_captures(hosts=3, devices=1, steps=4)):
        space.save(tmp_path / f"worker-{index}.xplane.pb")
    cell = run_new_cell(notebook, f"pod = tfprof.load({str(tmp_path)!r})\nled = pod.widget()\nled")
    report = cell.locator(".tfprof-app")
    report.get_by_role("tab").first.wait_for()
    page = notebook.page
    run_new_cell(notebook, "led.tab, led.host, led.range_ms = 'trace', 'worker-2', [1.0, 3.0]")
    expect(report.get_by_role("tab", name="Trace")).to_have_attribute("aria-selected", "true")
    expect(report.get_by_role("radio", name="worker-2")).to_be_checked()
    report.locator(".tl-over:visible").wait_for()
    model = "() => document.querySelector('.tfprof-tl:not([hidden] *)')?.timeline.ctx.model"
    page.wait_for_function(f"JSON.stringify(({model})()?.get('range_ms')) === '[1,3]'")

    report.get_by_role("radio", name="worker-1").check()
    plot = report.locator(".tl-over:visible")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    page.keyboard.down("Control")
    page.mouse.wheel(0, 300)
    page.keyboard.up("Control")
    page.wait_for_function(f"(({model})().get('range_ms') ?? [1, 3])[0] < 1")
    report.get_by_role("tab", name="Pod").click()
    asked = run_new_cell(notebook, "print('reader:', led.tab, led.host, led.range_ms[0] < 1 < 3 < led.range_ms[1])")
    asked.get_by_text("reader: pod worker-1 True").last.wait_for()
    run_new_cell(
        notebook,
        "led.tab = 'trace'; led.selection = {'timeline': 'timeline_1_events', 'track': 1, 'row': 0, 'range_ms': [0, 1]}",
    )
    page.wait_for_function(f"({model})()?.get('selection')?.row === 0")


def test_nothing_was_fetched_from_elsewhere_and_nothing_failed(notebook):
    assert notebook.foreign == []
    assert notebook.errors == []
