"""Run the example notebooks and keep them with their outputs, as they are in the repository: ``make examples``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def run(path: Path) -> None:
    """Run a notebook in its folder and save it, without what changes at every run (times of cells, the link to a kernel)."""
    notebook = nbformat.read(path, as_version=4)
    keep_widgets = "ipywidgets" in "".join(cell.source for cell in notebook.cells)
    client = NotebookClient(
        notebook,
        timeout=240,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        store_widget_state=keep_widgets,
    )
    client.execute()
    notebook.metadata = {key: notebook.metadata[key] for key in ("kernelspec", "widgets") if key in notebook.metadata}
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="all but the quickstart by default")
    args = parser.parse_args()
    # The quickstart is run by `make demo`, and by those who read it.
    others = [path for path in sorted(HERE.glob("*.ipynb")) if path.stem != "quickstart"]
    for path in args.notebooks or others:
        start = time.monotonic()
        run(path.resolve())
        print(f"{path.name}: {time.monotonic() - start:.0f} s, {path.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
