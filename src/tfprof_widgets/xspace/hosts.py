"""Several hosts of one run: reading their files side by side, and telling them apart."""

from __future__ import annotations

import logging
import os
from collections import deque
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

from .logdir import host_name, read_bytes
from .reader import XSpace, XSpaceError, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor, Future

_log = logging.getLogger(__name__)

# Starting worker processes takes about a second: as long as reading this many bytes here.
_POOL_FROM_BYTES = 64 * 2**20


def read_hosts(
    paths: Sequence[str], executor: Executor | None = None, *, keep: bool = False
) -> tuple[list[XSpace], list[str]]:
    """Read one file a host.

    Parameters
    ----------
    paths : sequence of str
        Paths or URLs.
    executor : Executor, optional
        Runs the reading, a file a task. By default a process pool where that pays, else this process.
    keep : bool
        Whether to keep the files' bytes; see `read`.

    Returns
    -------
    spaces : list of XSpace
        Of the files that could be read, in their order.
    lost : list of str
        What was wrong with each of the others.
    """
    task = partial(read_host, keep=keep)
    if executor is not None:
        return _sorted_out(_side_by_side(executor, task, paths))
    # What is in fsspec's memory is in this process's only.
    here = any(path.startswith("memory://") for path in paths)
    if len(paths) > 1 and not here and _total_bytes(paths) >= _POOL_FROM_BYTES:
        workers = min(len(paths), os.cpu_count() or 1)
        try:
            # Spawned, not forked: TensorFlow's threads in this process would not survive a fork.
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                return _sorted_out(_side_by_side(pool, task, paths))
        except (BrokenExecutor, OSError, AttributeError):
            # No processes to be had: a sandbox, a script without a main guard, a __main__ without a __spec__.
            _log.info(
                "The hosts' files are read one after the other: no worker processes could be started.", exc_info=True
            )
    return _sorted_out([task(path) for path in paths])


def _side_by_side(executor: Executor, task: Callable[[str], XSpace | str], paths: Sequence[str]) -> list[XSpace | str]:
    """Results of a task for each path, in their order.

    Few more are begun than there are workers: a cluster's keep their results until these are fetched, and reading is faster than fetching.
    """
    ahead = 2 * _workers_of(executor)
    results: list[XSpace | str] = []
    waiting: deque[Future[XSpace | str]] = deque()
    for path in paths:
        if len(waiting) >= ahead:
            results.append(waiting.popleft().result())
        waiting.append(executor.submit(task, path))
    while waiting:
        results.append(waiting.popleft().result())
    return results


def _workers_of(executor: Executor) -> int:
    """How many tasks an executor runs at a time; neither the standard library's nor Dask's tells it publicly."""
    workers = getattr(executor, "_max_workers", 0)
    client = getattr(executor, "_client", None)
    if not workers and client is not None:
        workers = sum(client.ncores().values())
    return max(int(workers or 32), 1)


def read_host(path: str, *, keep: bool = False) -> XSpace | str:
    """Read one host's file; return what was wrong with it if it can't be used."""
    try:
        return read(read_bytes(path), name=path, keep=keep)
    except (XSpaceError, OSError) as error:
        text = str(error)
        return text if path in text else f"{path}: {text}"


def hosts(spaces: Sequence[XSpace]) -> list[str]:
    """Distinct names of several hosts: the stored name, else the file's; a repeated one gets a number."""
    seen: dict[str, int] = {}
    names = []
    for space in spaces:
        base = space.hostname or (host_name(space.name) if len(spaces) > 1 else "localhost")
        seen[base] = seen.get(base, 0) + 1
        names.append(base if seen[base] == 1 else f"{base} ({seen[base]})")
    return names


def _sorted_out(results: list[XSpace | str]) -> tuple[list[XSpace], list[str]]:
    return [r for r in results if isinstance(r, XSpace)], [r for r in results if isinstance(r, str)]


def _total_bytes(paths: Sequence[str]) -> int:
    """Size of the local files together; remote ones count as big, since reading them waits for the network."""
    return sum(os.path.getsize(path) if os.path.exists(path) else _POOL_FROM_BYTES for path in paths)  # noqa: PTH110, PTH202
