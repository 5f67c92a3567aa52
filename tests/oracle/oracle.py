"""XProf as a reference: run quietly on a copy of a profile, its answers parsed.

XProf is a development dependency. It logs from C++ on file descriptor 2 and writes cache files next to its input, hence
the redirection and the temporary copy. Where its numbers are known to be wrong, the tests say so.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Real captures that XProf can open, without and with devices.
CPU_CAPTURES = (
    "cpu_fit",
    "cpu_loop",
    "tb",
    "py",
    "eager",
    "keras2_fit",
    "keras2_graph",
    "keras2_eager",
    "raw_tf",
    "macos_old",
)
GPU_CAPTURES = (
    "t4_fit",
    "t4_fit_2",
    "t4_fit_3",
    "gpu_w0",
    "windows_no_cupti",
    "jax_mi300",
    "jax_mi300_gemm",
    "jax_mi300_old",
)
CAPTURES = CPU_CAPTURES + GPU_CAPTURES

_PARAMS = {"use_saved_result": False, "graph_viewer_options": {}, "trace_viewer_options": {}}


@contextmanager
def quiet() -> Iterator[None]:
    """Send what is written to file descriptor 2 nowhere."""
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def xprof(source: Path | bytes | Sequence[Path | bytes], tool: str, **params: Any) -> Any:
    """Run one of XProf's tools.

    Parameters
    ----------
    source : path or bytes, or a sequence of them
        The profile, or one a host. Each is copied to a directory of its own call.
    tool : str
        Such as ``framework_op_stats``.
    **params
        Added to the tool's parameters.

    Returns
    -------
    parsed JSON, or None if the tool failed
    """
    sources = [source] if isinstance(source, Path | bytes) else list(source)
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for index, one in enumerate(sources):
            path = Path(directory) / f"host{index}.xplane.pb"
            if isinstance(one, bytes):
                path.write_bytes(one)
            else:
                shutil.copy(one, path)
            paths.append(str(path))
        with quiet():
            from xprof.convert import raw_to_tool_data

            data, _ = raw_to_tool_data.xspace_to_tool_data(paths, tool, {**_PARAMS, **params})
    return None if data is None else json.loads(data)


def frame(table: dict[str, Any]) -> pd.DataFrame:
    """Turn one of XProf's tables into a DataFrame: a column an id (the order of columns differs between tools)."""
    rows = [[cell["v"] for cell in row["c"]] for row in table.get("rows", [])]
    return pd.DataFrame(rows, columns=[column["id"] for column in table["cols"]])


def properties(table: dict[str, Any]) -> dict[str, str]:
    """Return the properties of one of XProf's tables; values are strings."""
    return dict(table.get("p", {}))
