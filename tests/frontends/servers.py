"""Servers of notebooks, each with settings, signatures and files of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from lab import free_port, own_folders

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@contextmanager
def running(command: Sequence[str], port: int, home: Path, ready: str) -> Iterator[str]:
    """Run a server as long as it is needed; gives its origin once `ready` (a path) is answered."""
    environment = {
        **os.environ,
        **own_folders(home),
        **{f"XDG_{each}_HOME": str(home / "xdg") for each in ("CONFIG", "STATE", "CACHE")},
        "MARIMO_SKIP_UPDATE_CHECK": "1",
    }
    origin = f"http://127.0.0.1:{port}"
    log = home / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        for _ in range(600):
            if process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(origin + ready, timeout=5):
                    break
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        else:
            process.kill()
        if process.poll() is not None:
            pytest.fail(f"The server did not start:\n{log.read_text()[-3000:]}")
        yield origin
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def jupyter(home: Path, root: Path) -> Iterator[str]:
    """One Jupyter server with Notebook 7 (`/notebooks`), nbclassic (`/nbclassic`) and Voilà (`/voila`) on it."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "notebook", "--no-browser", "--allow-root", "--expose-app-in-browser"),
        *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="),
        f"--ServerApp.root_dir={root}",
        "--ServerApp.jpserver_extensions={'nbclassic': True, 'voila.server_extension': True}",
        *(
            "--LabApp.extension_manager=readonly",
            "--JupyterNotebookApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ),
    ]
    with running(command, port, home, "/api/status") as origin:
        yield origin


@contextmanager
def marimo(home: Path, app: Path) -> Iterator[str]:
    """Serve a marimo notebook as an app."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "marimo", "--quiet", "run", str(app), "--headless", "--no-token"),
        *("--host=127.0.0.1", f"--port={port}"),
    ]
    with running(command, port, home, "/health") as origin:
        yield origin
