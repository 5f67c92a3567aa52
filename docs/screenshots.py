"""Take the pictures of the tools for the documentation, from generated captures: ``make docs-images``."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from playwright.sync_api import Page, sync_playwright

import tfprof_widgets as tfprof
from generate import cpu_fit_capture, gpu_capture, pod_captures

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTH = 1100


def pictures() -> dict[str, tuple[list[bytes], str, int]]:
    """Name of each picture → the hosts' profiles, the tab, and how much of its height to show."""
    gpu = [gpu_capture().bytes()]
    return {
        "input_pipeline": ([cpu_fit_capture(slow_input_us=2500).bytes()], "Input pipeline", 820),
        "op_stats": ([cpu_fit_capture().bytes()], "TensorFlow stats", 900),
        "kernels": (gpu, "GPU kernels", 800),
        "memory": (gpu, "Memory", 800),
        "pod": ([space.bytes() for space in pod_captures(slow_host=1)], "Pod", 900),
    }


def take(page: Page, name: str, hosts: list[bytes], tab: str, height: int) -> None:
    """Save the picture of one tab."""
    with tempfile.TemporaryDirectory() as directory:
        for index, data in enumerate(hosts):
            Path(directory, f"worker-{index}.xplane.pb").write_bytes(data)
        html = tfprof.load(directory).to_html(Path(directory, "report.html"))
        page.goto(html.as_uri())
        page.get_by_role("tab", name=tab, exact=True).click()
        panel = page.get_by_role("tabpanel")
        panel.wait_for()
        page.wait_for_timeout(1500)  # figures settle; a picture for people, no test
        box = panel.bounding_box()
        assert box is not None
        clip = {"x": 0, "y": box["y"], "width": WIDTH, "height": min(height, box["height"] + 8)}
        page.screenshot(path=HERE / "images" / f"{name}.png", clip=clip, full_page=True)


def main() -> None:
    """Take all pictures."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", chromium), args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        for name, (hosts, tab, height) in pictures().items():
            take(page, name, hosts, tab, height)
        browser.close()


if __name__ == "__main__":
    main()
