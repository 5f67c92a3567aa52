"""Many hosts of one run: read one after the other, in a process pool, and on a Dask cluster of this machine.

    python benchmarks/hosts.py [--hosts 64] [--events 1000000] [--folder build/bench/hosts]

All must give the same answer. The memory that each worker took at most is printed beside that of one host read alone, and that of this
process, which holds all hosts at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import re
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from analysis import ROOT, generated


def named(data: bytes, host: str) -> bytes:
    """A profile without a host's name, with one: its field at the end of the message."""
    name = host.encode()
    return data + b"\x22" + bytes([len(name)]) + name


def make(folder: Path, hosts: int, events: int) -> list[str]:
    """The files of a run, one a host."""
    run = folder / f"{hosts}_hosts_{events}_events"
    if run.exists() and len(list(run.glob("*.xplane.pb"))) == hosts:
        return sorted(map(str, run.glob("*.xplane.pb")))
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    data = generated(events, folder).read_bytes()
    data = data.removesuffix(b"\x22\x08worker-0")
    for index in range(hosts):
        (run / f"worker-{index:04}.xplane.pb").write_bytes(named(data, f"worker-{index:04}"))
    return sorted(map(str, run.glob("*.xplane.pb")))


def peak_mb() -> float:
    """Most memory that this process has had, in MB."""
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 1e3


def worker_peak(_: int) -> tuple[int, float]:
    time.sleep(0.2)  # so that every worker gets one of these
    return os.getpid(), peak_mb()


def answer(spaces: list) -> str:
    """A digest of what was read, and the number of events."""
    digest = hashlib.sha256()
    for space in spaces:
        for array in (space.event_start_ps, space.event_duration_ps, space.event_meta, space.stats.ints("group_id")[1]):
            digest.update(array.tobytes())
        digest.update(space.hostname.encode())
    return f"{sum(space.n_events for space in spaces):,} events, {digest.hexdigest()[:16]}"


def one_host(path: str) -> float:
    """Memory that reading one host takes at most, above what the imports take, in a process of its own."""
    from tfprof_widgets.xspace import read_hosts

    before = idle(0)
    read_hosts([path])
    return peak_mb() - before


def idle(_: int) -> float:
    import fsspec.implementations.local  # noqa: F401
    import pyarrow as pa

    from tfprof_widgets.xspace import reader

    reader._decoder()
    pa.array([b"a", b"a"]).dictionary_encode().take(pa.array([0]))
    return peak_mb()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    paths = make(args.folder, args.hosts, args.events)
    size = sum(Path(path).stat().st_size for path in paths)
    print(f"{len(paths)} hosts, {size / 1e6:.0f} MB, {args.workers} workers")

    from tfprof_widgets.xspace import read_hosts
    from tfprof_widgets.xspace.hosts import read_host

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        alone = pool.submit(one_host, paths[0]).result()
    print(f"one host alone: {alone:.0f} MB")

    with ProcessPoolExecutor(args.workers, mp_context=context) as pool:
        start_mb = max(pool.map(idle, range(args.workers)))
        start = time.perf_counter()
        spaces, lost = read_hosts(paths, pool)
        spent = time.perf_counter() - start
        peaks = dict(pool.map(worker_peak, range(4 * args.workers)))
    print(
        f"process pool: {spent:.1f} s; workers took at most {max(peaks.values()) - start_mb:.0f} MB; {answer(spaces)}; lost {lost}"
    )
    first = answer(spaces)
    del spaces

    from distributed import Client, LocalCluster

    with LocalCluster(args.workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        start_mb = max(client.run(idle, 0).values())
        start = time.perf_counter()
        spaces, lost = read_hosts(paths, client.get_executor())
        spent = time.perf_counter() - start
        peak = max(client.run(peak_mb).values())
    print(
        f"Dask LocalCluster: {spent:.1f} s; workers took at most {peak - start_mb:.0f} MB; {answer(spaces)}; lost {lost}"
    )
    assert answer(spaces) == first
    del spaces

    start = time.perf_counter()
    for path in paths[:8]:
        read_host(path)
    spent = time.perf_counter() - start
    print(
        f"one after the other, 8 of them: {spent:.1f} s, so {spent / 8 * len(paths):.0f} s for all; this process: {peak_mb():.0f} MB"
    )


if __name__ == "__main__":
    main()
