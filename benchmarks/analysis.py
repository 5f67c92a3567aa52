"""From the file to the data of all tools: this package, XProf making the same tools, and the bare decode as the limit.

    python benchmarks/analysis.py FILE.xplane.pb [--repeat 5] [--without-xprof]
    python benchmarks/analysis.py --events 300000

Everything runs in one process on the same file, alternating, medians and ratios are printed; imports are left out. Peak memory
is measured in a process of its own, above what the imports take. `bench.py` makes the documentation's table of it.
"""

from __future__ import annotations

import argparse
import gc
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "oracle")]

TOOLS = (
    "steps", "ops", "overview", "input_pipeline", "kernels", "memory", "memory_summary", "memory_peak", "pod", "timelines",
)  # fmt: skip
XPROF_TOOLS = (
    "overview_page", "input_pipeline_analyzer", "framework_op_stats", "kernel_stats", "memory_profile", "pod_viewer", "trace_viewer",
)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """One file's medians; seconds and bytes. None: not measured."""

    name: str
    events: int
    file_bytes: int
    decode_s: float
    protobuf_s: float | None
    tools_s: dict[str, float]
    page_s: float
    page_bytes: int
    peak_bytes: int
    xprof_s: float | None
    xprof_trace_bytes: int | None

    @property
    def all_tools_s(self) -> float:
        return sum(self.tools_s.values())


def all_tools(path: Path) -> dict[str, float]:
    """Make the data of every tool; seconds by tool, reading first."""
    from tfprof_widgets import load

    spent = {}
    start = time.perf_counter()
    report = load(path)
    spent["read"] = time.perf_counter() - start
    for tool in TOOLS:
        start = time.perf_counter()
        getattr(report, tool)
        spent[tool] = time.perf_counter() - start
    return spent


def page(path: Path) -> tuple[float, int]:
    """Seconds from the file to the HTML of its report, all tools drawn, and its length."""
    from tfprof_widgets import load

    start = time.perf_counter()
    html = load(path).html
    return time.perf_counter() - start, len(html.encode())


@lru_cache(maxsize=1)
def _whole_decoder():
    """A decoder of all that the messages hold (the package's own leaves stats as bytes)."""
    import ptars

    from tfprof_widgets.xspace.descriptor import xplane_file

    file = xplane_file()
    return ptars.HandlerPool([file]).get_for_message(file.message_types_by_name["XSpace"])


def bare_decode(data: bytes) -> float:
    decoder = _whole_decoder()
    start = time.perf_counter()
    decoder.list_to_record_batch([data])
    return time.perf_counter() - start


def protobuf(data: bytes) -> float:
    """Parse with protobuf, and look at every event and stat once."""
    from generate.builder import message_classes

    message = message_classes()["XSpace"]
    start = time.perf_counter()
    space, total = message.FromString(data), 0
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                total += event.duration_ps
                for stat in event.stats:
                    total += stat.metadata_id
    return time.perf_counter() - start


def xprof(data: bytes, directory: Path) -> tuple[float, int]:
    """Seconds that XProf takes for the same tools, and the length of its trace."""
    from oracle import quiet

    copy = directory / "copy.xplane.pb"
    copy.write_bytes(data)  # XProf keeps caches by the file's name
    options = {"use_saved_result": False, "graph_viewer_options": {}, "trace_viewer_options": {}}
    size = 0
    with quiet():
        from xprof.convert import raw_to_tool_data

        start = time.perf_counter()
        for tool in XPROF_TOOLS:
            made, _ = raw_to_tool_data.xspace_to_tool_data([str(copy)], tool, options)
            if tool == "trace_viewer":
                size = len(made or "")
        return time.perf_counter() - start, size


def peak_memory(path: Path) -> int:
    """Bytes that opening the file and making all tools takes above the imports."""
    # VmHWM, not ru_maxrss: the latter starts at the parent's.
    code = """
import re, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import analysis, fsspec.implementations.local, ptars, tfprof_widgets.report
peak = lambda: int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
analysis.all_tools(Path(sys.argv[1]))
print((peak() - before) * 1024)
"""
    command = [sys.executable, "-c", code, str(path), str(Path(__file__).parent)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def generated(events: int, directory: Path) -> Path:
    """A generated capture of about so many events; made once (17 s a million)."""
    path = directory / f"generated_{events}.xplane.pb"
    if not path.exists():
        from generate import cpu_fit_capture

        in_a_batch = cpu_fit_capture(epochs=1, batches=20).n_events / 20
        cpu_fit_capture(epochs=2, batches=max(1, round(events / in_a_batch / 2))).save(path)
    return path


def measure(path: Path, *, repeat: int = 5, with_xprof: bool = True, with_protobuf: bool = True) -> Measured:
    """Measure a file, the contestants one after the other in each round."""
    from tfprof_widgets import load

    data = path.read_bytes()
    all_tools(path)  # warm: imports and caches
    bare_decode(data)
    rounds: dict[str, list] = {"decode": [], "protobuf": [], "tools": [], "page": [], "xprof": []}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(repeat):
            for name, wanted, run in (
                ("decode", True, lambda: bare_decode(data)),
                ("protobuf", with_protobuf, lambda: protobuf(data)),
                ("tools", True, lambda: all_tools(path)),
                ("page", True, lambda: page(path)),
                ("xprof", with_xprof, lambda: xprof(data, Path(directory))),
            ):
                if wanted:
                    gc.collect()
                    rounds[name].append(run())
    tools = {name: statistics.median(spent[name] for spent in rounds["tools"]) for name in rounds["tools"][0]}
    return Measured(
        name=re.sub(r"\.xplane\.pb$", "", path.name),
        events=load(path).hosts[0].trace.space.n_events,
        file_bytes=len(data),
        decode_s=statistics.median(rounds["decode"]),
        protobuf_s=statistics.median(rounds["protobuf"]) if with_protobuf else None,
        tools_s=tools,
        page_s=statistics.median(seconds for seconds, _ in rounds["page"]),
        page_bytes=rounds["page"][0][1],
        peak_bytes=peak_memory(path),
        xprof_s=statistics.median(seconds for seconds, _ in rounds["xprof"]) if with_xprof else None,
        xprof_trace_bytes=rounds["xprof"][0][1] if with_xprof else None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--events", type=int, default=0, help="measure a generated capture of about so many events")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--without-xprof", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = generated(args.events, Path(directory)) if args.events else args.file
        if path is None:
            parser.error("give a file, or --events")
        m = measure(path, repeat=args.repeat, with_xprof=not args.without_xprof)
    print(f"{m.name}: {m.events:,} events, {m.file_bytes / 1e6:.1f} MB")
    print(f"  bare decode        {m.decode_s * 1e3:9.1f} ms")
    print(f"  protobuf, iterated {m.protobuf_s * 1e3:9.1f} ms")
    print(f"  all tools          {m.all_tools_s * 1e3:9.1f} ms   {m.all_tools_s / m.decode_s:.2f} × the bare decode")
    for name, seconds in m.tools_s.items():
        print(f"    {name:16} {seconds * 1e3:9.1f} ms")
    print(f"  the page           {m.page_s * 1e3:9.1f} ms   {m.page_bytes / m.events:.1f} bytes an event")
    if m.xprof_s is not None:
        print(f"  XProf, same tools  {m.xprof_s * 1e3:9.1f} ms   {m.xprof_s / m.all_tools_s:.1f} × all tools here")
    print(f"  peak memory        {m.peak_bytes / 1e6:9.1f} MB   {m.peak_bytes / m.file_bytes:.1f} × the file")


if __name__ == "__main__":
    main()
