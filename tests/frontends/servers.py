"""Servers of notebooks, each with settings, signatures and files of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def running(command: Sequence[str], port: int, home: Path, ready: str) -> Iterator[str]:
    """Run a server as long as it is needed; gives its origin once `ready` (a path) is answered."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "XDG_CONFIG_HOME": "xdg",
        "XDG_STATE_HOME": "xdg",
        "XDG_CACHE_HOME": "xdg",
    }
    environment = dict(
        os.environ, MARIMO_SKIP_UPDATE_CHECK="1", **{name: str(home / folder) for name, folder in folders.items()}
    )
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
