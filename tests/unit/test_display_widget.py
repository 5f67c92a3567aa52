"""The widgets' traits: what anywidget sends to the browser, and back."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pandas as pd
import pytest
import traitlets

from tfprof_widgets.display import assets
from tfprof_widgets.display.payload import Payload

try:
    from tfprof_widgets.display.widget import LinkWidget, ReportWidget
except assets.FrontEndMissingError:
    pytest.skip("the front end is not built", allow_module_level=True)


@pytest.fixture
def payload():
    payload = Payload("run-1", tabs=[{"id": "a", "title": "A", "items": []}])
    payload.add_table("ops", pd.DataFrame({"x": [1, 2]}))
    return payload


def test_the_report_travels_in_traits(payload):
    state = ReportWidget(payload).get_state()
    assert json.loads(state["spec"]) == payload.spec  # as text, whose keys no saving sorts
    assert state["tables"] == payload.tables
    assert b"Bokeh" in gzip.decompress(state["bokeh"])
    assert [state[name] for name in ("tab", "range_ms", "selection")] == [None, None, None]
    assert "render" in state["_esm"]


def test_the_link_carries_the_id_and_no_data():
    link = LinkWidget("run-1")
    state = link.get_state()
    assert state["report_id"] == "run-1"
    assert not {"spec", "tables", "bokeh"} & set(state)
    assert len(state["_esm"]) < 10_000


def test_what_the_reader_does_reaches_python():
    link = LinkWidget("run-1")
    seen = []
    link.observe(lambda change: seen.append((change["name"], change["new"])), names=["tab", "range_ms", "selection"])
    link.set_state({"tab": "trace", "range_ms": [0.5, 2], "selection": {"events": [1]}})
    assert sorted(seen) == [("range_ms", [0.5, 2]), ("selection", {"events": [1]}), ("tab", "trace")]
    with pytest.raises(traitlets.TraitError):
        link.range_ms = "all"


LIVE = """
import sys, time
from pathlib import Path
from tfprof_widgets.display import assets
assets._STATIC = Path(sys.argv[1])
from tfprof_widgets.display.payload import Payload
from tfprof_widgets.display.widget import ReportWidget
widget = ReportWidget(Payload("run-1"))
assert "// first" in widget.get_state()["_esm"]
before = assets.front_end_gz("inline.js")
end = time.monotonic() + 20
while "// second" not in widget.get_state()["_esm"] and time.monotonic() < end:
    for name in ("widget.js", "inline.js"):  # again and again: the watching begins at some time
        (assets._STATIC / name).write_text("export default {} // second" + str(time.monotonic()))
    time.sleep(0.2)
print("// second" in widget.get_state()["_esm"], assets.front_end_gz("inline.js") != before)
"""


def test_while_the_front_end_is_worked_on_widgets_change_with_the_file(tmp_path):
    pytest.importorskip("watchfiles")
    for name in ("widget.js", "link.js", "inline.js"):
        (tmp_path / name).write_text("export default {} // first")
    command = [sys.executable, "-W", "error", "-c", LIVE, str(tmp_path)]
    environment = dict(os.environ, ANYWIDGET_HMR="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True True\n", done.stderr
