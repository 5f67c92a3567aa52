"""Measure the timeline in headless Chromium with software rendering: first picture, frames, search, rectangles.

    python benchmarks/timeline_browser.py [--events 1000000 3000000] [--profile FILE.xplane.pb]

Frames are those of the screen: the time from one animation frame to the next while every frame pans or zooms, once
without arrows and once with all of them. On a busy machine look at the processor time of the page's main thread
(``cpu_ms``), which other programs don't add to; ``script_p95_ms`` is what of a frame is the timeline's own script.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tfprof_widgets import xspace
from tfprof_widgets.analysis.counters import CounterTrack, counters, with_counters
from tfprof_widgets.analysis.details import first_row
from tfprof_widgets.analysis.events import Trace
from tfprof_widgets.analysis.flows import Flow, flows
from tfprof_widgets.analysis.intervals import union_ps
from tfprof_widgets.analysis.memory import memory
from tfprof_widgets.analysis.steps import find_steps
from tfprof_widgets.analysis.timeline import Section, Timeline, timeline
from tfprof_widgets.display.html import report_page
from tfprof_widgets.display.payload import Payload
from tfprof_widgets.views.timeline import timeline_tab

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
STEPS = 120

_FIRST_PICTURE = """
async () => {
  const wait = () => new Promise(requestAnimationFrame);
  for (let i = 0; i < 2000; i++) {
    const root = document.querySelector(".tfprof-tl");
    if (root?.timeline?.painted > 0 && root.timeline.shown) return performance.now() - performance.getEntriesByName("boot")[0].startTime;
    await wait();
  }
  return null;
}
"""

_FRAMES = """
async ([steps, mode, arrows]) => {
  const t = document.querySelector(".tfprof-tl").timeline;
  const span = t.viewport.span;
  const next = () => new Promise(requestAnimationFrame);
  await t.eventArrows.setArrows(arrows);
  const times = [], boxes = [], work = [];
  const render = Object.getPrototypeOf(t).render;
  t.render = (now) => { const begun = performance.now(); render.call(t, now); work.push(performance.now() - begun); };
  const share = mode === "pan" ? 0.2 : 1;
  t.viewport.set(0, span * share); t.invalidate();
  await next(); await next(); await next();
  work.length = 0;
  let last = await next();
  let most = "";
  for (let i = 0; i < steps; i++) {
    if (mode === "pan") t.panPx(9, 0);
    else t.zoomAt(i < steps / 2 ? 0.88 : 1 / 0.88, t.width * 0.4);
    const now = await next();
    times.push(now - last);
    last = now;
    boxes.push(t.shown.rectangles);
    if (i === 0) most = t.eventArrows.arrowWords;
  }
  delete t.render;
  return { times, boxes, work, most };
}
"""

_SEARCH = """
async (text) => {
  const t = document.querySelector(".tfprof-tl").timeline;
  await t.searching.search("warm up", "text");
  const begun = performance.now();
  await t.searching.search(text, "regex");
  const took = performance.now() - begun;
  const said = document.querySelector(".tl-hits").textContent;
  await t.searching.search("", "text");
  return [took, said];
}
"""


def synthetic(n_events: int, n_tracks: int = 24, seed: int = 0) -> Timeline:
    """Return a trace of nested work, three lanes a thread, spread over half a minute."""
    random = np.random.default_rng(seed)
    per_track = n_events // n_tracks
    starts, durations, lanes, names, tracks = [], [], [], [], []
    first = 0
    for track in range(n_tracks):
        n = per_track // 6  # one outer event, two inner ones, three innermost
        length = np.rint(random.lognormal(11.5, 1.0, n)).astype(np.int64) + 2000  # ns
        start = np.cumsum(length + random.integers(0, 60_000, n)) - length
        start -= start[0] if n else 0
        inner = [(start, length, 0), (start + length // 50, length // 3, 1), (start + length // 2, length // 3, 1)]
        inner += [
            (start + length // 40, length // 9, 2),
            (start + length // 6, length // 9, 2),
            (start + length * 11 // 20, length // 5, 2),
        ]
        s = np.concatenate([part[0] for part in inner])
        d = np.concatenate([part[1] for part in inner])
        lane = np.repeat(np.array([part[2] for part in inner], np.int32), n)
        order = np.lexsort((-d, s))
        starts.append(s[order] * 1000)
        durations.append(d[order] * 1000)
        lanes.append(lane[order])
        names.append(random.integers(0, 300, len(s)))
        count = len(s)
        group = np.zeros(count, np.int64)
        busy = union_ps(group, starts[-1], starts[-1] + durations[-1], 1)[0]
        tracks.append((0, f"tf_Compute #{track + 1}", f"tf_Compute/{track}", "host", False, first, count, 3, int(busy)))
        first += count
    events = pd.DataFrame(
        {
            "start_ps": np.concatenate(starts),
            "duration_ps": np.concatenate(durations),
            "name": np.concatenate(names),
            "lane": np.concatenate(lanes),
        }
    )
    columns = ["section", "label", "hint", "kind", "hidden", "first", "count", "lanes", "busy_ps"]
    types = ["MatMul", "Relu", "Conv2D", "Mul", "AddV2", "Cast", "", ""]
    table = pd.DataFrame(
        {
            "name": [f"model/layer_{i}/op_{i}" for i in range(300)],
            "short": [types[i % 8] or f"Function_{i}" for i in range(300)],
            "type": [types[i % 8] for i in range(300)],
            "op": "",
            "role": ["op" if types[i % 8] else "other" for i in range(300)],
        }
    )
    span = int((events["start_ps"] + events["duration_ps"]).max())
    return Timeline(
        [Section("Host Threads")], pd.DataFrame(tracks, columns=columns), events, events.iloc[:0], table, span
    )


def from_profile(path: Path) -> tuple[Timeline, list[Flow]]:
    """Return the timeline and the arrows of a real profile."""
    trace = Trace(xspace.read(path))
    return with_counters(timeline(trace, find_steps(trace)), counters(trace, memory(trace))), flows(trace)


def arrows(data: Timeline, every: int = 6, seed: int = 1) -> list[Flow]:
    """Return an arrow from one event of so many to a later one, anywhere."""
    random = np.random.default_rng(seed)
    first, n = first_row(data), len(data.events) - first_row(data)
    source = np.sort(random.choice(n, n // every, replace=False)) if n else np.empty(0, np.int64)
    start = data.events["start_ps"].to_numpy()[first:]
    by_start = np.argsort(start, kind="stable")
    later = np.minimum(np.searchsorted(start[by_start], start[source]) + random.integers(1, 500, len(source)), n - 1)
    target = by_start[later]
    order = np.argsort(target, kind="stable")
    group = np.arange(len(source))
    return [Flow("work", source, group, target[order], group[order])]


def counter_tracks(data: Timeline, n: int, seed: int = 2) -> list[CounterTrack]:
    """Return two counters of so many changes."""
    random = np.random.default_rng(seed)
    time = np.unique(random.integers(0, data.span_ps // 1000, n)) * 1000
    return [
        CounterTrack(f"Counter {i}", f"Counter {i}", "bytes", time, random.integers(0, 1 << 30, len(time)))
        for i in range(2)
    ]


def page_of(data: Timeline, flows: list[Flow], directory: Path) -> tuple[Path, dict[str, int]]:
    """Write the report's page; return its path and the packed size of its tables."""
    payload = Payload(id="bench")
    payload.tabs.append(timeline_tab(payload, data, flows=flows))
    page = report_page(payload, "<p>benchmark</p>", "benchmark")
    # The clock starts when the page, and with it the payload, has been read.
    page = page.replace('<script type="module">', '<script>performance.mark("boot")</script><script type="module">')
    path = directory / "timeline.html"
    path.write_text(page)
    return path, {name: len(data) for name, data in payload.tables.items()}


def _cpu_ms(session: Any) -> float:
    """Processor time that the page's main thread has used."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")


def measure(path: Path, width: int = 1400) -> dict[str, Any]:
    """Return the measurements of a page."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 900})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri(), wait_until="commit", timeout=120_000)
        page.wait_for_selector(".tfprof-tl", timeout=120_000)
        result: dict[str, Any] = {"first_picture_ms": page.evaluate(_FIRST_PICTURE)}
        result["first_picture_cpu_ms"] = round(_cpu_ms(session))
        result["load"] = os.getloadavg()[0]
        page.wait_for_timeout(500)
        for mode, arrows in (("pan", False), ("zoom", False), ("pan", True), ("zoom", True)):
            before = _cpu_ms(session)
            frames = page.evaluate(_FRAMES, [STEPS, mode, arrows])
            cpu = _cpu_ms(session) - before
            times = np.array(frames["times"])
            result[mode + (" with arrows" if arrows else "")] = {
                **({"arrows": frames["most"].strip(" ·")} if arrows else {}),
                "frames": len(times),
                "cpu_ms": round(cpu / len(times), 1),
                "script_p95_ms": round(float(np.percentile(frames["work"], 95)), 1),
                "p50_ms": float(np.percentile(times, 50)),
                "p95_ms": float(np.percentile(times, 95)),
                "max_ms": float(times.max()),
                # Two refreshes of the display; times come in tenths of a millisecond.
                "within_33_ms_pct": float(100 * (times < 33.5).mean()),
                "drawn_quads": [int(min(frames["boxes"])), int(max(frames["boxes"]))],
            }
        result["search_ms"], result["search"] = page.evaluate(_SEARCH, r"layer_1|mul")
        result["heap_mb"] = page.evaluate("() => performance.memory.usedJSHeapSize / 1e6")
        browser.close()
    return result


def main() -> None:
    """Print the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--profile", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    cases = []
    for n in args.events:
        data = synthetic(n)
        cases.append((f"{n:,} synthetic events", with_counters(data, counter_tracks(data, n // 5)), arrows(data)))
    cases += [(path.name, *from_profile(path)) for path in args.profile]
    for name, data, found in cases:
        with tempfile.TemporaryDirectory() as directory:
            path, sizes = page_of(data, found, Path(directory))
            n = len(data.events) + len(data.hidden)
            packed = sum(size for name, size in sizes.items() if "flows" not in name and "counters" not in name)
            print(
                json.dumps(
                    {
                        "case": name,
                        "events": n,
                        "packed_bytes_per_event": round(packed / max(1, n), 3),
                        **measure(path),
                    },
                    indent=2,
                )
            )


if __name__ == "__main__":
    main()
