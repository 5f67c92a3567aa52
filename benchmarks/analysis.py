"""From the file to the data of all tools: this package, XProf making the same tools, and the bare decode as the limit.

    python benchmarks/analysis.py FILE.xplane.pb [--repeat 5] [--without-xprof]
    python benchmarks/analysis.py --generate-mb 50

Everything runs in one process on the same file, alternating, medians and ratios are printed; imports are left out. Peak memory
is measured in a process of its own, above what the imports take.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOOLS = (
    "steps", "ops", "overview", "input_pipeline", "kernels", "memory", "memory_summary", "memory_peak", "pod", "timelines",
)  # fmt: skip
XPROF_TOOLS = (
    "overview_page", "input_pipeline_analyzer", "framework_op_stats", "kernel_stats", "memory_profile", "pod_viewer", "trace_viewer",
)  # fmt: skip


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


def bare_decode(data: bytes) -> float:
    from tfprof_widgets.xspace.reader import _decoder

    start = time.perf_counter()
    _decoder().list_to_record_batch([data])
    return time.perf_counter() - start


@contextlib.contextmanager
def quiet():
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def xprof(path: Path) -> float:
    with quiet():
        from xprof.convert import raw_to_tool_data

        options = {"use_saved_result": False, "graph_viewer_options": {}, "trace_viewer_options": {}}
        start = time.perf_counter()
        for tool in XPROF_TOOLS:
            raw_to_tool_data.xspace_to_tool_data([str(path)], tool, options)
        return time.perf_counter() - start


def peak_memory(path: Path) -> tuple[int, int]:
    """Bytes that opening the file and making all tools takes above the imports; and the file's size."""
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
    out = subprocess.run(
        [sys.executable, "-c", code, str(path), str(Path(__file__).parent)], check=True, capture_output=True, text=True
    )
    return int(out.stdout), path.stat().st_size


def generated(megabytes: float, directory: Path) -> Path:
    """A generated capture of about that size."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from generate import cpu_fit_capture

    one = len(cpu_fit_capture(epochs=1, batches=20).bytes()) / 20
    return cpu_fit_capture(epochs=2, batches=int(megabytes * 2**20 / one / 2)).save(directory / "generated.xplane.pb")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--generate-mb", type=float, default=0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--without-xprof", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = generated(args.generate_mb, Path(directory)) if args.generate_mb else args.file
        if path is None:
            parser.error("give a file, or --generate-mb")
        data = path.read_bytes()
        all_tools(path)  # warm: imports and caches
        runs, decodes, theirs = [], [], []
        for _ in range(args.repeat):
            gc.collect()
            decodes.append(bare_decode(data))
            gc.collect()
            runs.append(all_tools(path))
            if not args.without_xprof:
                copy = Path(directory) / "copy.xplane.pb"
                copy.write_bytes(data)
                theirs.append(xprof(copy))
        ours = statistics.median(sum(run.values()) for run in runs)
        decode = statistics.median(decodes)
        peak, size = peak_memory(path)
        print(f"{path.name}: {size / 1e6:.1f} MB")
        print(f"  bare decode        {decode * 1e3:9.1f} ms")
        print(f"  all tools          {ours * 1e3:9.1f} ms   {ours / decode:.2f} × the bare decode")
        for name in runs[0]:
            print(f"    {name:16} {statistics.median(run[name] for run in runs) * 1e3:9.1f} ms")
        if theirs:
            xprof_s = statistics.median(theirs)
            print(f"  XProf, same tools  {xprof_s * 1e3:9.1f} ms   {xprof_s / ours:.1f} × all tools here")
        print(f"  peak memory        {peak / 1e6:9.1f} MB   {peak / size:.1f} × the file")


if __name__ == "__main__":
    main()
