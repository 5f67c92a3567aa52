"""Opening what was captured before."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pandas as pd

from ..xspace import XSpaceError, read_hosts
from ..xspace.logdir import find_runs, newest_run
from .report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from ..session import CaptureInfo


def load(path: str | os.PathLike[str], *, executor: Executor | None = None) -> Report:
    """Open a saved profile.

    Parameters
    ----------
    path : path or URL
        A log directory (its newest run), a run's directory, one ``*.xplane.pb``, or what `Report.save` wrote; URLs go through fsspec.
    executor : concurrent.futures.Executor, optional
        What reads the hosts' files side by side, a file a task: a process pool by default where the files are many and big;
        a Dask client's ``get_executor()`` reads them on a cluster.

    Returns
    -------
    Report
        Of all the run's hosts. One that can't be read is named in the notes, if another can.

    Raises
    ------
    ValueError
        If the path is empty.
    FileNotFoundError
        If the path doesn't exist.
    XSpaceError
        If there is no usable profile there.
    """
    from ..export.saved import is_saved, read_saved

    try:
        os.fspath(path)
    except TypeError as error:
        msg = f"A profile is opened by its path (str or Path), not by {type(path).__name__}."
        raise TypeError(msg) from error
    if not str(path).strip():
        msg = "The path is empty. A profile is opened by the path of its file or log directory."
        raise ValueError(msg)
    if is_saved(path):
        saved = read_saved(path)
        report = Report(saved.spaces, capture=saved.capture, notes=saved.notes)
        for host, tracks in zip(report.hosts, saved.tracks, strict=True):
            for name, frame in tracks.items():
                report.add_track(frame, name, host.trace.host)
        return report
    return load_run(newest_run(path).files, executor=executor)


def runs(path: str | os.PathLike[str]) -> pd.DataFrame:
    """List what a log directory holds, oldest run first.

    Returns
    -------
    DataFrame
        ``run``, ``hosts`` (number of files), ``size_bytes``, ``modified``, ``path`` (to give to `load`).
    """
    found = find_runs(path)
    return pd.DataFrame(
        {
            "run": [run.name for run in found],
            "hosts": [len(run.files) for run in found],
            "size_bytes": [run.size_bytes for run in found],
            "modified": [run.modified for run in found],
            "path": [run.path for run in found],
        }
    )


def load_run(
    paths: Sequence[str | os.PathLike[str]], *, capture: CaptureInfo | None = None, executor: Executor | None = None
) -> Report:
    """Read the files of one run, a host each, at once: they may be deleted afterwards.

    Parameters
    ----------
    paths : sequence of paths or URLs
        One a host.
    capture : CaptureInfo, optional
        How they were captured.
    executor : concurrent.futures.Executor, optional
        As for `load`.

    Raises
    ------
    XSpaceError
        If none of the files is a usable profile.
    """
    # What a capture left in a temporary directory is soon gone.
    keep = capture is not None and capture.run_dir is None
    spaces, lost = read_hosts([os.fspath(path) for path in paths], executor, keep=keep)
    if not spaces:
        raise XSpaceError("\n".join(lost) or "The run has no file.")
    notes = [f"{len(lost)} of {len(paths)} hosts could not be read: {'; '.join(lost)}"] if lost else []
    return Report(spaces, capture=capture, notes=notes)
