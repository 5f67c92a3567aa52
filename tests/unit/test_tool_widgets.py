"""Each tool alone as an anywidget: its own tables and no others, no head, and traits both ways."""

from __future__ import annotations

import pytest

from generate import cpu_fit_capture, pod_captures
from tfprof_widgets.display import assets
from tfprof_widgets.report import Report
from tfprof_widgets.xspace import read

try:
    assets.front_end("widget.js")
except assets.FrontEndMissingError:
    pytest.skip("the front end is not built", allow_module_level=True)

TOOLS = {
    "overview_page": "overview",
    "step_chart": "overview",
    "input_pipeline_analyzer": "input_pipeline",
    "op_table": "op_stats",
    "kernel_table": "kernels",
    "memory_profile": "memory",
    "pod_viewer": "pod",
}


@pytest.fixture(scope="module")
def report():
    return Report([read(space.bytes()) for space in pod_captures(hosts=3, devices=2, steps=8)])


def kinds(items) -> set[str]:
    found = set()
    for item in items:
        within = [item.get("children", []), *item.get("cases", {}).values()]
        found |= {item["kind"]}.union(*map(kinds, within))
    return found


@pytest.mark.parametrize(("method", "tool"), TOOLS.items())
def test_a_tool_alone_has_one_tab_its_tables_and_no_head(report, method, tool):
    widget = getattr(report, method)()
    (tab,) = widget.spec["tabs"]
    assert tab["id"] == widget.tab == tool
    assert widget.spec["head"] is None
    assert widget.spec["id"] == report.id
    assert "error" not in {item.get("level") for item in tab["items"]}
    words = str(tab["items"])
    assert all(f"'{name}'" in words for name in widget.tables)
    assert set(widget.tables) <= set(report.payload.tables)


def test_tables_and_the_chart_come_without_what_is_around_them(report):
    tables, chart = (
        kinds(report.op_table().spec["tabs"][0]["items"]),
        kinds(report.step_chart().spec["tabs"][0]["items"]),
    )
    assert "table" in tables
    assert "figure" not in tables
    assert "figure" in chart
    assert "facts" in chart  # its legend
    assert not tables & {"text", "facts"}
    assert not chart & {"table", "findings"}
    assert list(report.op_table().tables) == ["ops"]
    assert report.step_chart().tables == {}


def test_the_analyzer_alone_has_the_step_chart_that_the_overview_draws(report):
    items = report.input_pipeline_analyzer().spec["tabs"][0]["items"]
    assert any(item.get("title", "").startswith("Step time: ") for item in items)


def test_a_tool_of_one_host_knows_no_other(report):
    every, one = report.overview_page(), report.overview_page(host="worker-1")
    assert "worker-2" in str(every.spec)
    assert "worker-2" not in str(one.spec)
    with pytest.raises(KeyError, match="worker-9"):
        report.memory_profile(host="worker-9")


def test_switches_of_hosts_follow_one_trait_whose_values_are_names(report):
    (switch,) = report.memory_profile().spec["tabs"][0]["items"]
    assert switch["trait"] == "host"
    assert [option["label"] for option in switch["options"]] == ["worker-0", "worker-1", "worker-2"]
    widget = report.widget()
    seen = []
    widget.observe(lambda change: seen.append(change["new"]), names="host")
    widget.set_state({"host": "worker-2"})
    assert seen == ["worker-2"]


def test_a_tool_with_nothing_to_show_says_why():
    (item, *_) = Report([read(cpu_fit_capture(1, 4).bytes())]).kernel_table().spec["tabs"][0]["items"]
    assert item["kind"] == "text"
    assert "No GPU" in item["text"]
