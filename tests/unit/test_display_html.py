"""The self-contained HTML, as text; tests/browser opens it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import bokeh
import pandas as pd
import pytest

from tfprof_widgets.display import assets
from tfprof_widgets.display.html import report_html, report_page
from tfprof_widgets.display.payload import Payload

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._name: str | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self._name = dict(attrs).get("data-tfprof") if tag == "script" else None

    def handle_data(self, data):
        if self._name is not None:
            self.texts[self._name] = self.texts.get(self._name, "") + data

    def handle_endtag(self, tag):
        if tag == "script":
            self._name = None


@pytest.fixture
def _front_end(monkeypatch):
    """Some front end: these tests are about what is around it."""
    monkeypatch.setattr(assets, "front_end", lambda name: f"/* {name} */")


@pytest.fixture
def payload(_front_end):
    payload = Payload("run-1", version='1"2', head={"title": HOSTILE, "facts": []}, notes=[HOSTILE])
    payload.tabs.append({"id": "t", "title": HOSTILE, "items": [{"kind": "text", "text": HOSTILE, "level": "plain"}]})
    payload.add_table("ops", pd.DataFrame({"name": [HOSTILE]}))
    payload.add_table('od"d', pd.DataFrame({"x": [1]}))
    return payload


def unpack(text: str) -> bytes:
    return gzip.decompress(base64.b64decode(text))


def test_everything_is_in_it_and_comes_back(payload):
    elements = Elements(report_html(payload, "<p>summary</p>"))
    assert list(elements.texts) == ["spec", "table:ops", 'table:od"d', "app", "bokeh"]
    assert json.loads(unpack(elements.texts["spec"])) == payload.spec
    assert unpack(elements.texts["app"]) == b"/* inline.js */"
    assert f'"{bokeh.__version__}"'.encode() in unpack(elements.texts["bokeh"])


def test_nothing_from_a_profile_becomes_an_element(payload):
    html = report_html(payload, "")
    assert "alert(1)" not in html
    tags = [(tag, attributes.get("type")) for tag, attributes in Elements(html).found]
    assert {tag for tag, _ in tags} == {"div", "p", "small", "em", "script"}
    assert [kind for tag, kind in tags if tag == "script"] == ["application/octet-stream"] * 5 + ["module"]


def test_nothing_in_it_is_fetched(payload):
    page = report_page(payload, "", "title")
    for _tag, attributes in Elements(page).found:
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
    assert "default-src 'none'" in page


def test_a_page_s_title_is_text(payload):
    assert "<title>&lt;/title&gt;@REPORT@</title>" in report_page(payload, "", "</title>@REPORT@")


def test_the_summary_comes_first_and_says_how_to_get_the_rest(payload):
    html = report_html(payload, "<p>summary</p>")
    assert html.index("<p>summary</p>") < html.index("<script")
    assert re.search(r"Trust Notebook.*run the cell", html)
    assert "Trust Notebook" not in report_page(payload, "", "t")


def test_the_same_report_gives_the_same_html(payload):
    assert report_html(payload, "x") == report_html(payload, "x")


def test_the_fixed_part_of_a_notebook_stays_small():
    try:
        html = report_html(Payload("p"), "")
    except assets.FrontEndMissingError:
        pytest.skip("the front end is not built")
    assert len(html) < 1_000_000
    assert len(assets.front_end_gz("inline.js")) < 150_000


def test_a_front_end_that_is_not_built_says_how_to_build_it(monkeypatch, tmp_path):
    monkeypatch.setattr(assets, "_STATIC", tmp_path)
    with pytest.raises(assets.FrontEndMissingError, match="npm run build"):
        report_html(Payload("p"), "")


def test_the_display_stage_imports_widgets_only_for_widgets():
    code = (
        "import sys, tfprof_widgets, tfprof_widgets.display.html, tfprof_widgets.display.static_summary\n"
        "print([m for m in ('anywidget', 'ipywidgets', 'bokeh', 'tensorflow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
