"""The command line: what it writes, its messages and exit status, and that it has the magic's options."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tfprof_widgets
from generate import cpu_fit_capture
from tfprof_widgets import cli
from tfprof_widgets.options import SHOWN


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs")
    cpu_fit_capture(1, 12, hostname="janes-laptop").save(
        path / "plugins" / "profile" / "run" / "janes-laptop.xplane.pb"
    )
    return path


def run(capsys, *arguments) -> tuple[int, str, str]:
    try:
        status = cli.main([str(argument) for argument in arguments])
    except SystemExit as left:
        status = left.code
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return status, out, err


def test_report_writes_a_page(capsys, logdir, tmp_path):
    target = tmp_path / "r.html"
    status, out, err = run(capsys, "report", logdir, "-o", target, "--name", "nightly run")
    assert (status, err) == (0, "")
    assert out.startswith(f"Wrote {target} (")
    assert "<title>nightly run</title>" in target.read_text(encoding="utf-8")


def test_report_keeps_to_its_size_and_says_so(capsys, logdir, tmp_path):
    whole, small = tmp_path / "whole.html", tmp_path / "small.html"
    assert run(capsys, "report", logdir, "-o", whole, "--max-mb", "none")[0] == 0
    size = whole.stat().st_size / 1e6 - 0.012
    status, _, err = run(capsys, "report", logdir, "-o", small, "--max-mb", f"{size:.3f}")
    assert status == 0
    assert small.stat().st_size <= size * 1e6
    assert "one by one" in err
    assert "--max-mb none" in err


def test_summary_is_text_or_json(capsys, logdir):
    status, text, err = run(capsys, "summary", logdir)
    assert (status, err) == (0, "")
    assert "12 train" in text
    assert "Host compute" in text
    status, out, _ = run(capsys, "summary", logdir, "--json")
    assert status == 0
    said = json.loads(out)
    report = tfprof_widgets.load(logdir)
    assert said["title"] == "janes-laptop"
    assert said["facts"]["Steps"] == "12 train"
    assert said["step_time"][0]["mean_ms"] == pytest.approx(report.overview.step_time["mean_ms"][0])
    assert [row["name"] for row in said["top_ops"]] == report.overview.top_ops["name"].tolist()
    assert [found["title"] for found in said["advice"]] == [found.title for found in report.advice]
    assert "NaN" not in out


def test_an_anonymous_summary_names_nobody(capsys, logdir):
    for form in ([], ["--json"]):
        status, out, err = run(capsys, "summary", logdir, "--anonymize", *form)
        assert status == 0
        assert "host-1" in out
        assert "janes-laptop" not in out + err


def test_export_writes_what_is_asked_for(capsys, logdir, tmp_path):
    perfetto, tables, saved = tmp_path / "t.json.gz", tmp_path / "tables", tmp_path / "run.tfprof"
    status, out, _ = run(capsys, "export", logdir, "--perfetto", perfetto, "--csv", tables, "--save", saved)
    assert status == 0
    assert perfetto.stat().st_size > 1000
    assert (tables / "steps.csv").exists()
    assert zipfile.is_zipfile(saved)
    assert out.count("Wrote ") == 2 + len(list(tables.iterdir()))
    # What was saved opens as a profile does.
    assert "12 train" in run(capsys, "summary", saved)[1]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["summary", "{tmp}/nothing"], 1, "no such file or directory"),
        (["summary", "{tmp}"], 1, "no profile in it"),
        (["summary", "{tmp}/bad.xplane.pb"], 1, "not a TensorFlow profile"),
        (["report", "{logdir}", "-o", "{tmp}/no/such/place/r.html"], 1, "r.html: No such file or directory"),
        (["summary", "nosuchprotocol://x"], 1, "nosuchprotocol"),
        (["export", "{logdir}", "--anonymize", "--save", "{tmp}/x.tfprof"], 2, "profile itself"),
        (["export", "{logdir}"], 2, "give --perfetto, --csv or --save"),
        (["report", "{logdir}", "--max-mb", "big"], 2, "a size is a number of megabytes above 0, or none"),
        (["nothing"], 2, "invalid choice"),
        ([], 2, "required"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(capsys, logdir, tmp_path, arguments, status, words):
    (tmp_path / "bad.xplane.pb").write_bytes(b"\xff" * 100)
    if arguments[-1:] == ["{tmp}"]:
        (tmp_path / "bad.xplane.pb").unlink()
    filled = [argument.format(tmp=tmp_path, logdir=logdir) for argument in arguments]
    code, out, err = run(capsys, *filled)
    assert code == status
    assert out == ""
    assert words in err


def test_an_unforeseen_error_is_a_line_too_and_a_traceback_with_debug(capsys, logdir, monkeypatch):
    monkeypatch.setattr("tfprof_widgets.report.load", lambda *_: 1 / 0)
    status, _, err = run(capsys, "summary", logdir)
    assert (status, err) == (1, "tfprof-widgets: ZeroDivisionError: division by zero (--debug shows where)\n")
    assert cli.main(["summary", str(logdir), "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_tool_that_fails_is_named_in_a_line(capsys, logdir, tmp_path, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("nothing to divide")

    monkeypatch.setattr("tfprof_widgets.report.Report.kernels", property(broken))
    status, _, err = run(capsys, "report", logdir, "-o", tmp_path / "r.html")
    assert status == 0
    assert "tfprof-widgets: The tool 'GPU kernels' failed on this profile." in err


def test_it_has_the_magics_options(capsys):
    from tfprof_widgets.magic import ProfileMagics

    _, out, _ = run(capsys, "report", "--help")
    flat = " ".join(out.split())
    of_magic = ProfileMagics.tfprofile.parser._option_string_actions
    for option in SHOWN:
        assert option.flags[0] in out
        assert option.flags[0] in of_magic
        assert " ".join(option.keywords["help"].split()) in flat.replace("- ", "-")
    assert "Exit status: 0" in out


def test_every_command_is_listed(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    for command in cli.COMMANDS:
        assert command.help in out
    assert run(capsys, "--version")[1].startswith("tfprof-widgets 0.")


def test_the_module_runs_without_tensorflow(logdir):
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['tfprof-widgets', 'summary', {str(logdir)!r}]\n"
        "try:\n    runpy.run_module('tfprof_widgets', run_name='__main__')\n"
        "except SystemExit as left:\n    assert not left.code\n"
        "print([m for m in ('tensorflow', 'IPython', 'ipywidgets') if m in sys.modules])\n"
    )
    source = Path(tfprof_widgets.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONPATH": str(source)}
    )
    assert "12 train" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_output_of_few_letters_gets_escapes(logdir, tmp_path):
    source = Path(tfprof_widgets.__file__).parents[1]
    command = [sys.executable, "-m", "tfprof_widgets", "compare", str(logdir), str(logdir)]
    environment = {"PYTHONPATH": str(source), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert r" \u2192 " in done.stdout


def test_a_reader_that_leaves_early_is_no_error(logdir):
    source = Path(tfprof_widgets.__file__).parents[1]
    command = f"{sys.executable} -m tfprof_widgets summary {logdir} --json | head -1"
    done = subprocess.run(
        command,
        shell=True,
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(source), "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == "{\n"
    assert "Error" not in done.stderr
