"""Make the captures that the examples open: nobody's real profiles, but generated ones (``tests/generate``)."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from generate import Space, gpu_capture, pod_captures


def captures() -> dict[str, Space]:
    """Path below ``data`` → capture."""
    hosts = pod_captures(hosts=4, devices=2, steps=10, slow_host=2)
    return {
        "gpu.xplane.pb.gz": gpu_capture(steps=16, layers=6, launch_us=45),
        **{f"four_hosts/worker-{index}.xplane.pb.gz": host for index, host in enumerate(hosts)},
    }


def main() -> None:
    for name, space in captures().items():
        path = HERE / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(space.gzip())
        print(f"{path.relative_to(HERE)}: {space.n_events:,} events, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
