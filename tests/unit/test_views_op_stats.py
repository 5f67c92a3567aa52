"""The TensorFlow stats tab, from generated ops."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import AnnularWedge, ColumnDataSource

from tfprof_widgets.views.colors import NEUTRAL_COLOR, OpColors
from tfprof_widgets.views.op_stats import op_stats_tab, ops_table
from view_frames import HOSTILE, Recorder, every, ops_frame


def tab_of(ops):
    recorder = Recorder()
    tab = op_stats_tab(recorder, ops)
    json.dumps(tab, allow_nan=False)
    return tab, recorder


def cases(tab):
    (switch,) = tab["items"]
    return switch["cases"]


def wedges(chart) -> dict:
    plot = Document.from_json(chart["figure"]["doc"]).roots[0]
    return next(r.data_source.data for r in plot.renderers if isinstance(r.glyph, AnnularWedge))


def pies(items) -> dict[str, dict]:
    return {chart["title"]: wedges(chart) for chart in every(items, "figure")}


def test_there_are_four_pies_each_of_the_whole_time():
    ops = ops_frame()
    busy = ops[ops["type"] != "IDLE"]
    found = pies(cases(tab_of(ops)[0])["without"])
    assert list(found) == [
        "Host self time by type",
        "Host self time by operation",
        "Device self time by type",
        "Device self time by operation",
    ]
    for title, data in found.items():
        side = busy[busy["host_or_device"] == title.split()[0]]
        by = "type" if title.endswith("type") else "name"
        sums = side.groupby(by)["self_time_us"].sum().sort_values(ascending=False)
        turn = np.array(data["from"]) - np.array(data["to"])
        assert turn.sum() == pytest.approx(2 * np.pi)
        np.testing.assert_allclose(turn[:10] / (2 * np.pi), sums[:10] / sums.sum())
        assert list(data["name"][:10]) == list(sums.index[:10])


def test_small_parts_are_folded_and_counted():
    found = pies(cases(tab_of(ops_frame(30, 11))[0])["without"])
    assert found["Host self time by operation"]["name"][-1] == "Other (20 operations)"
    assert found["Host self time by type"]["name"][-1] == "Other (3 types)"
    assert found["Host self time by type"]["color"][-1] == NEUTRAL_COLOR
    # One alone is not folded: "other" would take its place without saying more.
    assert len(found["Device self time by operation"]["name"]) == 11
    assert not any("Other" in name for name in found["Device self time by operation"]["name"])


def test_a_type_has_one_color_in_all_pies():
    ops = ops_frame()
    type_of = dict(zip(ops["name"], ops["type"], strict=True))
    colors = OpColors.of(ops)
    for data in pies(cases(tab_of(ops)[0])["with"]).values():
        for name, color in zip(data["name"], data["color"], strict=True):
            if not name.startswith("Other ("):
                assert color == colors(type_of.get(name, name))


def test_each_pie_has_a_legend_in_words():
    case = cases(tab_of(ops_frame())[0])["without"]
    charts, legends = list(every(case, "figure")), list(every(case, "facts"))
    for chart, legend in zip(charts, legends, strict=True):
        data = wedges(chart)
        assert [row["label"] for row in legend["rows"]] == list(data["name"])
        assert [row["color"] for row in legend["rows"]] == list(data["color"])
        for row, share, time in zip(legend["rows"], data["share"], data["time"], strict=True):
            assert row["value"] == f"{share} · {time}"
        assert data["name"][0] in chart["alt"]


def test_idle_time_is_in_one_case_and_out_of_the_other():
    tab, _ = tab_of(ops_frame())
    (switch,) = tab["items"]
    assert switch["value"] == "without"
    for case, there in (("without", False), ("with", True)):
        for data in pies(switch["cases"][case]).values():
            assert ("IDLE" in data["name"]) is there
    idle = pies(switch["cases"]["with"])["Host self time by type"]
    assert (idle["name"][0], idle["color"][0], idle["share"][0]) == ("IDLE", NEUTRAL_COLOR, "75.0 %")
    (without,), (whole,) = (list(every(switch["cases"][case], "table")) for case in ("without", "with"))
    assert without["where"] == {"field": "type", "not_equals": "IDLE"}
    assert "where" not in whole
    assert without["table"] == whole["table"] == "ops"


def test_the_table_has_the_columns_of_the_guide_and_their_data():
    tab, recorder = tab_of(ops_frame())
    titles = [
        "Rank", "Host/device", "Operation type", "Operation name", "Occurrences", "Total time", "Average time", "Total self time",
        "Average self time", "Self time on device", "Cumulative on device", "Self time on host", "Cumulative on host",
        "Execution mode",
    ]  # fmt: skip
    for case in cases(tab).values():
        (table,) = every(case, "table")
        assert [column["title"] for column in table["columns"]] == titles
        assert {column["field"] for column in table["columns"]} <= set(recorder.frames["ops"].columns)
        assert table["filter"] is True
        assert table["csv"] == "tensorflow_stats.csv"
        assert table["sort"] == [{"field": "self_time_us", "dir": "desc"}]


def test_rates_are_shown_where_the_file_has_them():
    ops = ops_frame().assign(flop_rate_gflops=1.5, bandwidth_gibps=np.nan, operational_intensity=np.nan, bound_by="HBM")
    (table,) = every(cases(tab_of(ops)[0])["without"], "table")
    titles = [column["title"] for column in table["columns"]]
    assert {"FLOP rate", "Bound by"} <= set(titles)
    assert "Memory bandwidth" not in titles


def test_ranks_and_percentages_of_both_readings():
    ops = ops_frame()
    table = ops_table(ops)
    assert len(table) == len(ops)
    assert table["self_time_us"].is_monotonic_decreasing
    assert list(table["rank_with_idle"]) == list(range(1, len(ops) + 1))
    idle = table["type"] == "IDLE"
    assert table.loc[idle, ["rank", "host_self_time_pct", "device_self_time_pct"]].isna().all(axis=None)
    assert list(table.loc[~idle, "rank"]) == list(range(1, len(ops) - 1))
    for side in ("host", "device"):
        assert table[f"{side}_self_time_pct"].sum() == pytest.approx(100, abs=0.05)  # rounded to three digits
        assert table[f"{side}_self_time_with_idle_pct"].sum() == pytest.approx(100, abs=0.05)  # rounded to three digits
        assert table.loc[idle, f"{side}_self_time_with_idle_pct"].max() == pytest.approx(75)
        assert table.loc[~idle, f"{side}_cumulative_pct"].max() == pytest.approx(100)


def test_without_a_device_it_says_why():
    tab, _ = tab_of(ops_frame(30, 0))
    for case in cases(tab).values():
        assert [chart["title"] for chart in every(case, "figure")] == [
            "Host self time by type",
            "Host self time by operation",
        ]
        assert any("No operation ran on a device" in item["text"] for item in every(case, "text"))
        (table,) = every(case, "table")
        assert not any("device" in column["field"] and "pct" in column["field"] for column in table["columns"])


def test_a_device_that_was_not_recorded_is_not_said_to_have_run_nothing():
    tab = op_stats_tab(Recorder(), ops_frame(30, 0), unseen=True)
    for case in cases(tab).values():
        words = " ".join(item["text"] for item in every(case, "text"))
        assert "was not recorded" in words
        assert "No operation ran" not in words


def test_without_a_host_it_says_why():
    tab, _ = tab_of(ops_frame(0, 20))
    assert any("No operation was recorded on the host" in item["text"] for item in every(cases(tab)["without"], "text"))


def test_without_idle_rows_there_is_nothing_to_switch():
    tab, _ = tab_of(ops_frame(idle=False))
    assert "switch" not in [item["kind"] for item in tab["items"]]
    assert len(list(every(tab["items"], "figure"))) == 4


@pytest.mark.parametrize("ops", [ops_frame(0, 0), ops_frame()[lambda ops: ops["type"] == "IDLE"]])
def test_no_ops_say_what_to_do(ops):
    tab, recorder = tab_of(ops)
    (item,) = tab["items"]
    assert item["kind"] == "text"
    assert "--host-level" in item["text"]
    assert not recorder.frames


def test_names_of_a_profile_reach_figures_only_as_data():
    ops = ops_frame(name=HOSTILE + "{}").replace({"type": {"MatMul": HOSTILE}})
    for case in cases(tab_of(ops)[0]).values():
        for chart in every(case, "figure"):
            plot = Document.from_json(chart["figure"]["doc"]).roots[0]
            sources = [m for m in plot.references() if isinstance(m, ColumnDataSource)]
            assert any("pwned" in str(list(s.data.values())) for s in sources)
            for model in plot.references() - set(sources):
                assert "pwned" not in json.dumps(model.properties_with_values(include_defaults=False), default=str)


def test_a_name_that_is_empty_can_be_seen():
    ops = ops_frame(name="")
    names = pies(cases(tab_of(ops)[0])["without"])["Host self time by operation"]["name"]
    assert list(names) == ["(no name)"]
