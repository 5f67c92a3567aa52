"""All benchmarks in one run, as tables in ``docs/performance.md``: ``make bench``, with 10 million events ``make bench BIG=1``.

The captures are generated (kept in ``build/bench``), and real ones where ``../shared/captures`` has them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from analysis import ROOT, Measured, generated, measure

CAPTURES = ROOT.parent / "shared" / "captures"
REAL = {
    "cpu_fit": "Keras 3 `fit` on a CPU",
    "keras2_fit": "Keras 2 `fit` on a CPU",
    "gpu_w0": "8 GPUs, one worker",
    "t4_fit_2": "`fit` on one GPU",
}
EVENTS, BIG_EVENTS = (100_000, 1_000_000, 3_000_000), 10_000_000
# XProf takes minutes a round for more, and makes gigabytes of JSON; protobuf's objects of more fill the memory.
XPROF_MOST_EVENTS, PROTOBUF_MOST_EVENTS = 1_500_000, 1_500_000
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- begin: make bench -->", "<!-- end: make bench -->"


def machine() -> str:
    """The machine and the versions, in a line."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    named = re.search(r"model name\s*: (.+)", info)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "pandas", "pyarrow", "ptars", "bokeh", "xprof")
    )
    return (
        f"{named[1] if named else platform.processor()}, {os.cpu_count()} processors, {memory:.0f} GiB, {platform.system()}; "
        f"Python {platform.python_version()}, {packages}; {time.strftime('%Y-%m-%d')}, load {os.getloadavg()[0]:.1f}."
    )


def seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.1f} s"


def times(rows: list[tuple[str, Measured]]) -> str:
    lines = [
        "| file | events | size | bare decode | all tools | × decode | protobuf, iterated | XProf, same tools | XProf ÷ here | page |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for what, m in rows:
        ratio = "–" if m.xprof_s is None else f"{m.xprof_s / m.all_tools_s:.1f}"
        lines.append(
            f"| {what} | {m.events:,} | {m.file_bytes / 1e6:.1f} MB | {seconds(m.decode_s)} | **{seconds(m.all_tools_s)}** "
            f"| {m.all_tools_s / m.decode_s:.1f} | {seconds(m.protobuf_s)} | {seconds(m.xprof_s)} | **{ratio}** | {seconds(m.page_s)} |"
        )
    return "\n".join(lines)


def sizes(rows: list[tuple[str, Measured]]) -> str:
    lines = [
        "| file | peak memory | × file | report | bytes an event | XProf's trace alone, bytes an event |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for what, m in rows:
        trace = "–" if m.xprof_trace_bytes is None else f"{m.xprof_trace_bytes / m.events:.0f}"
        lines.append(
            f"| {what} | {m.peak_bytes / 1e6:.0f} MB | {m.peak_bytes / m.file_bytes:.1f} | {m.page_bytes / 1e6:.2f} MB "
            f"| {m.page_bytes / m.events:.1f} | {trace} |"
        )
    return "\n".join(lines)


def browser(events: list[int]) -> str:
    """The timeline in headless Chromium, software rendering."""
    command = [sys.executable, str(Path(__file__).parent / "timeline_browser.py"), "--events", *map(str, events)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cases, position, decoder = [], 0, json.JSONDecoder()
    while position < len(out.rstrip()):
        case, position = decoder.raw_decode(out, position)
        position += len(out[position:]) - len(out[position:].lstrip())
        cases.append(case)
    lines = [
        "| events | first picture | pan: 95 of 100 frames | zoom: 95 of 100 frames | search | rectangles drawn, at most |",
        "| --: | --: | --: | --: | --: | --: |",
    ]
    for case in cases:
        pan, zoom = case["pan"], case["zoom"]
        most = max(pan["drawn_quads"][1], zoom["drawn_quads"][1])
        lines.append(
            f"| {case['events']:,} | {case['first_picture_ms']:.0f} ms | {pan['p95_ms']:.0f} ms | {zoom['p95_ms']:.0f} ms "
            f"| {case['search_ms']:.0f} ms | {most:,} |"
        )
    return "\n".join(lines)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--big", action="store_true", help="10 million events too (some minutes, 10 GB of memory)")
    parser.add_argument("--without-browser", action="store_true")
    parser.add_argument("--events", type=int, nargs="*", default=list(EVENTS), help="sizes of the generated captures")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--xprof-most", type=int, default=XPROF_MOST_EVENTS, help="leave XProf out beyond so many events"
    )
    parser.add_argument("--dry-run", action="store_true", help="print, and leave the documentation as it is")
    args = parser.parse_args()
    folder = ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [(words, path) for name, words in REAL.items() if (path := CAPTURES / f"{name}.xplane.pb").exists()]
    for events in [*args.events, *([BIG_EVENTS] if args.big else [])]:
        say(f"a generated capture of {events:,} events …")
        sources.append((f"generated, {events / 1e6:g} M", generated(events, folder)))
    rows = []
    for what, path in sources:
        say(f"{what} …")
        size = path.stat().st_size
        about = size / 35  # a generated event's bytes
        rows.append(
            (
                what,
                measure(
                    path,
                    repeat=args.repeat if about < 500_000 else min(args.repeat, 3),
                    with_xprof=about < args.xprof_most,
                    with_protobuf=about < PROTOBUF_MOST_EVENTS,
                ),
            )
        )
    parts = [machine(), times(rows), sizes(rows)]
    if not args.without_browser:
        say("the timeline in Chromium …")
        parts.append(browser([events for events in args.events if events >= 1_000_000] or [100_000]))
    text = "\n\n".join(parts)
    print(text)
    if not args.dry_run:
        before = PAGE.read_text(encoding="utf-8")
        head, _, rest = before.partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
