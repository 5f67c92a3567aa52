"""Run the quickstart notebook without a browser and leave it, its HTML and the report by itself in a folder."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notebook", type=Path, default=HERE / "quickstart.ipynb")
    parser.add_argument("--into", type=Path, default=Path("build/demo"), help="folder of the results")
    options = parser.parse_args()
    into = options.into.resolve()
    into.mkdir(parents=True, exist_ok=True)

    started = time.monotonic()
    notebook = nbformat.read(options.notebook, as_version=4)
    report_html = into / "report.html"
    # The kernel is the only place where the report lives, so a last cell (not kept) exports it there.
    export = nbformat.v4.new_code_cell(f"before.to_html({str(report_html)!r})")
    notebook.cells.append(export)
    print(f"Running {options.notebook.name} …", flush=True)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(into)}})
    # TensorFlow's remarks about the machine go to the kernel's own stderr: wanted only if it dies.
    with (into / "kernel.log").open("wb") as log:
        client.execute(stderr=log)
    notebook.cells.pop()

    executed = into / options.notebook.name
    nbformat.write(notebook, executed)
    page, _ = HTMLExporter(embed_images=True).from_notebook_node(notebook)
    executed.with_suffix(".html").write_text(page, encoding="utf-8")

    print(
        f"Done in {time.monotonic() - started:.0f} s. The pages open in any browser, the notebook in JupyterLab (make lab installs one):"
    )
    for what, path in {
        "the notebook with its outputs": executed,
        "the notebook as a web page": executed.with_suffix(".html"),
        "the first report by itself": report_html,
    }.items():
        print(f"  {path}  ({path.stat().st_size / 1e6:.1f} MB, {what})")


if __name__ == "__main__":
    main()
