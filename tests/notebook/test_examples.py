"""The example notebooks, run as they are: the first sentence of each report names the fault, or says that there is none."""

from __future__ import annotations

import gzip
import importlib.util
import re
import shutil
from pathlib import Path

import nbformat
import pytest

if importlib.util.find_spec("tensorflow") is None:  # not imported here: only kernels need it
    pytest.skip("needs TensorFlow", allow_module_level=True)
nbclient = pytest.importorskip("nbclient")

pytestmark = [pytest.mark.notebook, pytest.mark.tensorflow]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LARGEST = 3_000_000

# What the head of the first report says, and the first finding behind it; of the second report, what it no longer says.
FAULTS = {
    "input_bound": (r"(Highly|Moderately) input-bound: .*", r"The run waits for its input"),
    "retracing": (r"train_step was traced in 20 of its 20 calls.*", r"train_step is traced again and again"),
    "eager_loop": (r"[\d,]+ ops ran eagerly, one by one from Python.*", r"Ops run eagerly, one by one"),
}
# What the comparison of both reports says is the cause of the gain.
CAUSES = {
    "input_bound": r"mostly less waiting for input",
    "retracing": r"mostly less tracing and compiling",
    "eager_loop": r"mostly because ops no longer run eagerly, one by one from Python",
}
# What shows which sentence heads a report, last in its notebook: three lines a report, answer, findings, tools that failed.
ASK = """
for report in ({reports}):
    print(report.payload.head["answer"]["text"])
    print(*[finding.title for finding in report.advice], sep=" | ")
    print(*[tab["id"] for tab in report.payload.tabs if any(item.get("level") == "error" for item in tab["items"])])
"""
COMPARE = """
import tfprof_widgets
print(tfprof_widgets.compare(before, after).statement)
"""


def said(name: str, folder: Path, ask: str) -> list[str]:
    """Run a notebook, and a last cell that asks something; return the lines that it prints."""
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    notebook.cells.append(nbformat.v4.new_code_cell(ask))
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    return outputs[-1].text.split("\n")


@pytest.mark.parametrize("name", FAULTS)
def test_the_first_sentence_names_the_fault_and_the_cure_ends_it(name, tmp_path):
    sentence, title = FAULTS[name]
    lines = said(name, tmp_path, ASK.format(reports="before, after") + COMPARE)
    answer, findings, failed, after, findings_after, failed_after, compared, *_ = lines
    assert re.fullmatch(sentence, answer)
    assert findings.split(" | ")[0] == title
    assert not re.fullmatch(sentence, after)
    assert title not in findings_after.split(" | ")
    assert failed + failed_after == ""
    assert re.fullmatch(rf".*→.*× faster.*, {CAUSES[name]}.*\.", compared)


def test_a_healthy_training_gets_no_finding(tmp_path):
    answer, findings, failed, *_ = said("healthy", tmp_path, ASK.format(reports="report,"))
    assert (answer, findings, failed) == ("Nothing stands out.", "", "")


# A line of what the last cell of each prints, among what the notebooks without a fault show.
ASKED = {
    "custom_loop": ("print(report.steps['kind'].value_counts().to_dict())", r"\{'train': 32, 'test': 8\}"),
    "log_directory": ("print([len(runs), len(callbacks_run.steps), len(own_run.steps)])", r"\[2, 2[01], 32\]"),
    "gpu_capture": ("print(report.advice[0].title, len(report.steps))", r"Data is copied .* 16"),
    "several_hosts": ("print(sorted(set(late['host'])), len(report.hosts))", r"\['worker-2'\] 4"),
    "compose_widgets": ("print(trace.range_ms, trace.highlight, memory.host)", r"\[4.0, 12.0\] MatMul None"),
}


@pytest.mark.parametrize("name", ASKED)
def test_an_example_runs_and_finds_what_it_is_about(name, tmp_path):
    shutil.copytree(EXAMPLES / "data", tmp_path / "data")
    question, answer = ASKED[name]
    said_last = said(name, tmp_path, question)[0]
    assert re.fullmatch(answer, said_last), said_last


def test_the_captures_of_the_examples_are_the_generated_ones():
    spec = importlib.util.spec_from_file_location("make_data", EXAMPLES / "make_data.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, space in module.captures().items():
        assert gzip.decompress((EXAMPLES / "data" / name).read_bytes()) == space.bytes(), name


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_what_is_kept_of_a_notebook_is_small_and_names_no_place_on_the_disk(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    assert re.findall(r"(?:/home/|/root/|/tmp/|/Users/|site-packages/)[^\s\"]*", text) == []
    for cell in notebook.cells:
        assert not any(output.output_type == "error" for output in cell.get("outputs", []))
