"""A JupyterLab of one's own, and a notebook in it as a person would use it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import nbformat
import pytest

if TYPE_CHECKING:
    from pathlib import Path

REPORT = ".jp-OutputArea-output .tfprof-app"
WIDGET = "globalThis.jupyterapp.shell.currentWidget"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def own_folders(home: Path) -> dict[str, str]:
    """Environment variables that give a Jupyter server settings, signatures and files of its own."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return {name: str(home / folder) for name, folder in folders.items()}


class Lab:
    """A JupyterLab server with settings, signatures and files of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "notebooks"
        self.root.mkdir(parents=True)
        port = free_port()
        self.origin = f"http://127.0.0.1:{port}"
        # A new JupyterLab asks whether it may fetch news.
        notification = home / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        notification.parent.mkdir(parents=True)
        notification.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
        self.log = home / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"),
                    *("--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"),
                    *("--IdentityProvider.token=", f"--ServerApp.root_dir={self.root}"),
                    "--LabApp.extension_manager=readonly",
                ],
                env={**os.environ, **own_folders(home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise

    def _wait_until_up(self) -> None:
        for _ in range(300):
            if self.process.poll() is not None:
                break
            try:
                self.get("/api/status")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
            else:
                return
        pytest.fail(f"JupyterLab did not start:\n{self.log.read_text()[-3000:]}")

    def get(self, path: str):
        with urllib.request.urlopen(self.origin + path, timeout=5) as answer:
            return json.load(answer)

    def write(self, name: str, *sources: str) -> Path:
        """Write a notebook with a cell for each source; none has been run."""
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
        notebook.cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
        nbformat.write(notebook, self.root / name)
        return self.root / name

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Notebook:
    """A notebook opened in a browser that reaches nothing but its server; collects what went wrong."""

    def __init__(self, browser, lab: Lab, name: str, *, kernels: bool = True) -> None:
        self.lab = lab
        self.foreign: list[str] = []
        self.errors: list[str] = []
        self.context = browser.new_context(viewport={"width": 1400, "height": 1000})
        self.context.route(re.compile(f"^https?://(?!{re.escape(lab.origin[7:])}/)"), self._refuse)
        if not kernels:
            none = json.dumps({"default": "", "kernelspecs": {}})
            self.context.route("**/api/kernelspecs*", lambda route: route.fulfill(body=none))
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{lab.origin}/lab/tree/{name}?reset")
        self.page.wait_for_function("globalThis.jupyterapp !== undefined")
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        if kernels:
            self.page.wait_for_function(f"{WIDGET}?.sessionContext?.session?.kernel?.status === 'idle'")
        else:
            # JupyterLab asks which kernel to use, and there is none to choose.
            self.page.locator(".jp-Dialog button", has_text="No Kernel").click()
            self.page.locator(".jp-Dialog").wait_for(state="detached")

    def _refuse(self, route) -> None:
        self.foreign.append(route.request.url)
        route.abort()

    def command(self, name: str) -> None:
        """Start one of JupyterLab's commands, as its menus do, without waiting for its end."""
        self.page.evaluate("name => void globalThis.jupyterapp.commands.execute(name)", name)

    @property
    def report(self):
        """The interactive report that is on the page; waits until it is."""
        report = self.page.locator(REPORT).first
        report.locator("[role=tabpanel]:not([hidden]) > *").first.wait_for()
        report.scroll_into_view_if_needed()
        return report

    def close(self) -> None:
        self.context.close()


def run_new_cell(notebook: Notebook, source: str):
    """Append a cell, run it and return its element once it has run."""
    notebook.command("notebook:insert-cell-below")
    cells = notebook.page.locator(".jp-Notebook .jp-Cell")
    notebook.page.wait_for_function(f"{WIDGET}.content.activeCell.model.sharedModel.getSource() === ''")
    notebook.page.evaluate(f"source => {WIDGET}.content.activeCell.model.sharedModel.setSource(source)", source.strip())
    notebook.command("notebook:run-cell")
    cell = cells.nth(notebook.page.evaluate(f"{WIDGET}.content.activeCellIndex"))
    # A report of 64 hosts takes its time on a busy machine.
    notebook.page.wait_for_function(f"{WIDGET}.content.activeCell.model.executionCount > 0", timeout=120_000)
    cell.scroll_into_view_if_needed()
    return cell


def shut_down(notebook: Notebook) -> None:
    """End the notebook's kernel, and close its page: the server goes on for the other tests."""
    notebook.command("kernelmenu:shutdown")
    notebook.page.wait_for_function(f"{WIDGET}.sessionContext.session === null")
    notebook.close()


def zoom_in(notebook: Notebook, report) -> None:
    """Turn the wheel over the middle of the timeline; its overview then marks a narrower window."""
    plot = report.locator(".tl-over").first
    plot.wait_for()
    plot.scroll_into_view_if_needed()
    window = report.locator(".tl-mini .tl-window").first
    before = window.bounding_box()["width"]
    box = plot.bounding_box()
    notebook.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    notebook.page.keyboard.down("Control")
    notebook.page.mouse.wheel(0, -500)
    notebook.page.keyboard.up("Control")
    notebook.page.wait_for_function(
        "([window, width]) => window.getBoundingClientRect().width < width", arg=[window.element_handle(), 0.8 * before]
    )
