"""The items that views are made of, and numbers in words."""

from __future__ import annotations

import json
import math

import pytest
from bokeh.document import Document

from tfprof_widgets.views import spec


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0.00 µs"), (0.0000123, "0.01 µs"), (0.0896, "89.6 µs"), (0.9996, "1,000 µs"), (3.454, "3.45 ms"), (10.05, "10.1 ms"),
        (903.2, "903 ms"), (1234.0, "1.23 s"), (12_345_678.0, "12,346 s"), (math.nan, "–"),
    ],
)  # fmt: skip
def test_times_have_a_unit_of_their_size(value, words):
    assert spec.ms(value) == words


def test_compared_times_have_one_unit():
    assert [spec.ms(v, like=3.45) for v in (3.45, 0.0896, 0.001, 0.0)] == ["3.45 ms", "0.09 ms", "<0.01 ms", "0.00 ms"]


def test_a_small_share_is_not_none():
    assert [spec.percent(v) for v in (0, 0.01, 0.05, 83.44, 100, math.nan)] == [
        "0.0 %",
        "<0.1 %",
        "0.1 %",
        "83.4 %",
        "100.0 %",
        "–",
    ]


def test_counts_agree_with_their_noun():
    assert [spec.count(n, "step") for n in (0, 1, 1234)] == ["0 steps", "1 step", "1,234 steps"]


def test_items_are_json():
    p = spec.plot(100, (0, 1), (0, 1))
    items = [
        spec.text("a", "info"),
        spec.facts("f", [spec.fact("l", 1, hint="h", color="#ffffff", hatch=True)]),
        spec.row([spec.text("b")], [1]),
        spec.switch("s", "S", {"x": ("X", [spec.text("c")]), "y": ("Y", [])}),
        spec.table("t", "name", [spec.column("c", "C", "number", digits=0, unit="µs", width=9, hint="h")], sort=("c", "desc")),
        spec.chart("p", p, "alt", "note"),
    ]  # fmt: skip
    tab = json.loads(json.dumps(spec.tab("id", "Title", items)))
    assert [item["kind"] for item in tab["items"]] == ["text", "facts", "row", "switch", "table", "figure"]
    assert tab["items"][3]["value"] == "x"
    assert [o["label"] for o in tab["items"][3]["options"]] == ["X", "Y"]


def test_what_is_not_given_is_not_in_an_item():
    assert spec.column("c", "C", "text") == {"field": "c", "title": "C", "kind": "text"}
    assert spec.fact("l", 0) == {"label": "l", "value": 0}
    assert set(spec.table("t", "n", [])) == {"kind", "title", "table", "columns"}


def test_figures_leave_the_page_its_gestures_and_colors():
    p = spec.plot(100, (0, 1), (0, 1))
    spec.caption(p, [0], [0], ["words"])
    figure = spec.chart("p", p, "alt")["figure"]
    model = Document.from_json(figure["doc"]).roots[0]
    assert (model.sizing_mode, model.height) == ("stretch_width", 100)
    assert model.toolbar.logo is None
    assert model.toolbar.active_drag is None
    assert model.toolbar.active_scroll is None
    # A colour in the JSON would win over the page's theme.
    assert "text_color" not in json.dumps(figure)
    assert "background_fill_color" not in json.dumps(figure)


def test_tooltips_cannot_pass_html_through():
    p = spec.plot(100, (0, 1), (0, 1))
    with pytest.raises(ValueError, match="safe"):
        spec.hover(p, [], [("Name", "@name{safe}")])
