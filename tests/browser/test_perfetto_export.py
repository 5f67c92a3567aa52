"""The exported trace in Chrome's own importer, which XProf's package ships: same slices, durations, threads."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

pytest.importorskip("playwright.sync_api")
xprof = pytest.importorskip("xprof")

from generate import gpu_capture, pod_captures  # noqa: E402
from tfprof_widgets.report import Report, load  # noqa: E402
from tfprof_widgets.xspace import read  # noqa: E402

VIEWER = Path(xprof.__file__).parent / "static" / "trace_viewer_index.html"
IMPORT = """text => {
  const model = new tr.Model();
  new tr.importer.Import(model).importTraces([text]);
  const threads = [];
  for (const process of Object.values(model.processes))
    for (const thread of Object.values(process.threads)) {
      const slices = [...thread.sliceGroup.childEvents()];
      if (slices.length) threads.push([process.name, thread.name, slices.length, slices.reduce((sum, s) => sum + s.duration, 0)]);
    }
  const counters = Object.values(model.processes).flatMap((p) => Object.values(p.counters).map((c) => c.name));
  return {threads, counters, arrows: model.flowEvents.length, warnings: model.importWarnings.map((w) => w.message)};
}"""


@pytest.fixture(scope="module")
def importer(browser):
    page = browser.new_page()
    page.goto(VIEWER.as_uri())
    page.wait_for_function("globalThis.tr?.importer?.Import !== undefined")
    yield lambda path: page.evaluate(IMPORT, path.read_text())
    page.close()


def check(report: Report, found: dict) -> None:
    assert found["warnings"] == []
    events = report.events
    plane = events["plane"].astype(str)
    if "host" in events:
        plane = events["host"].astype(str) + ": " + plane
    expected = events.groupby([plane, events["line"].astype(str)])["duration_us"].agg(["size", "sum"])
    # Threads of one name in one process (lines with lanes, or two lines of one name) count together.
    seen: dict[tuple[str, str], list[float]] = {}
    for process, thread, count, ms in found["threads"]:
        total = seen.setdefault((process, thread), [0, 0.0])
        total[0] += count
        total[1] += ms * 1000
    assert {key: value[0] for key, value in seen.items()} == expected["size"].to_dict()
    for key, row in expected.iterrows():
        assert seen[key][1] == pytest.approx(row["sum"], rel=1e-6, abs=0.001 * row["size"])


@pytest.mark.parametrize("spaces", [[gpu_capture(devices=2, steps=4)], pod_captures(2, 2, 3)], ids=["gpu", "pod"])
def test_chrome_imports_the_slices_of_each_thread(importer, tmp_path, spaces):
    report = Report([read(space.bytes()) for space in spaces])
    found = importer(report.to_perfetto(tmp_path / "trace.json"))
    check(report, found)
    assert found["arrows"] > 100
    assert "Memory GPU_0_bfc" in found["counters"]


def test_chrome_imports_a_real_capture(importer, capture, tmp_path):
    report = load(capture("gpu_w0"))
    check(report, importer(report.to_perfetto(tmp_path / "trace.json")))
