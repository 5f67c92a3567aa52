"""Reports saved and opened again, and tables as CSV files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pandas as pd
import pytest

import tfprof_widgets as tfprof
from generate import Space, cpu_fit_capture, gpu_capture, pod_captures
from tfprof_widgets.report import Report, load, load_run
from tfprof_widgets.session import CaptureInfo, Options
from tfprof_widgets.xspace import XSpaceError, read

INFO = CaptureInfo(
    name="my run",
    source="model.fit(dataset)",
    logdir=Path("logs"),
    started_s=1.5,
    duration_s=2.5,
    options=Options(host_level=3, python=True),
    error="ValueError: no",
    notes=["a note"],
    tensorflow_version="2.20.0",
)


def captured(tmp_path, *spaces: Space, info: CaptureInfo = INFO) -> Report:
    """A report as a session makes it: of files that are gone when it is there."""
    paths = [space.save(tmp_path / "scratch" / f"host{i}.xplane.pb") for i, space in enumerate(spaces)]
    report = load_run(paths, capture=info)
    for path in paths:
        path.unlink()
    return report


def assert_same(a: Report, b: Report) -> None:
    assert (a.title, a.notes, a._head_facts, a.capture) == (b.title, b.notes, b._head_facts, b.capture)
    for name in ("steps", "ops", "events", "memory"):
        pd.testing.assert_frame_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("spaces", [[cpu_fit_capture(1, 5)], pod_captures(2, 1, 3)], ids=["cpu", "pod"])
def test_a_capture_makes_the_same_report_again(tmp_path, spaces):
    report = captured(tmp_path, *spaces)
    report.add_track(pd.DataFrame({"start_us": [1.0], "duration_us": [2.0], "name": ["mine"]}), "track")
    again = load(report.save(tmp_path / "run.tfprof"))
    assert_same(report, again)
    assert again.capture == INFO
    assert "The cell ended early (ValueError: no)" in str(again.notes)
    assert again.timelines[0].tracks["label"].tolist() == report.timelines[0].tracks["label"].tolist()
    # And once more, from the file.
    assert_same(report, load(again.save(tmp_path / "twice.zip")))


@pytest.mark.parametrize("name", ["a::b [x]* ?#%20 é.tfprof", "~/run.tfprof", "latin-\udce9.tfprof"])
def test_it_opens_whatever_its_name(tmp_path, monkeypatch, name):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = Path(name.removesuffix(".tfprof")).expanduser() / f"{Path(name).stem}.xplane.pb"
    cpu_fit_capture(1, 5).save(path)
    for opened in (load(path.parent), load(path)):
        assert len(load(opened.save(name)).steps) == 5
    assert opened.to_html(Path(name).with_suffix(".html")).is_file()


def test_a_page_is_not_what_is_saved(tmp_path):
    with pytest.raises(ValueError, match=r"use to_html\('.*run\.HTML'\)"):
        captured(tmp_path, cpu_fit_capture(1, 3)).save(tmp_path / "run.HTML")
    assert not (tmp_path / "run.HTML").exists()


def test_an_opened_profile_is_saved_from_its_file(tmp_path):
    path = gpu_capture(devices=1, steps=2).save(tmp_path / "logs" / "worker.xplane.pb")
    report = tfprof.load(path)
    saved = report.save(tmp_path / "run.tfprof")
    path.unlink()
    again = load(saved)
    assert_same(report, again)
    assert again.title == "worker"
    with pytest.raises(XSpaceError, match="can't be read again"):
        report.save(tmp_path / "late.tfprof")
    cpu_fit_capture(1, 2).save(path)
    with pytest.raises(XSpaceError, match="has changed"):
        report.save(tmp_path / "late.tfprof")
    assert not (tmp_path / "late.tfprof").exists()


def test_what_is_unpacked_from_it_is_a_log_directory(tmp_path):
    saved = captured(tmp_path, cpu_fit_capture(1, 4)).save(tmp_path / "run.tfprof")
    with zipfile.ZipFile(saved) as archive:
        archive.extractall(tmp_path / "logs")
    assert len(load(tmp_path / "logs").steps) == 4


def test_hosts_of_one_file_name_stay_apart(tmp_path):
    spaces = [read(space.bytes(), "same", keep=True) for space in pod_captures(2, 1, 2)]
    report = Report(spaces)
    assert_same(report, load(report.save(tmp_path / "run.tfprof")))


def test_a_report_of_several_hosts_is_still_called_as_its_run(tmp_path):
    run = tmp_path / "plugins" / "profile" / "2024_05_06"
    for number, space in enumerate(pod_captures(2, 1, 2)):
        space.save(run / f"host{number}.xplane.pb")
    report = load(run)
    assert report.title == "2024_05_06"
    assert load(report.save(tmp_path / "run.tfprof")).title == "2024_05_06"


def test_workers_of_one_machine_keep_the_addresses_that_tell_them_apart(tmp_path):
    spaces = [read(gpu_capture(1, 2, seed=seed).bytes(), keep=True) for seed in range(2)]
    for space, address in zip(spaces, ("vm:6009", "vm:6010"), strict=True):
        space.hostnames = [address]
    report = Report(spaces)
    again = tfprof.load(report.save(tmp_path / "run.tfprof"))
    assert (
        [host.trace.host for host in again.hosts]
        == [host.trace.host for host in report.hosts]
        == ["vm:6009", "vm:6010"]
    )


def test_a_file_that_is_none_says_so(tmp_path):
    saved = captured(tmp_path, cpu_fit_capture(1, 3)).save(tmp_path / "run.tfprof")
    content = saved.read_bytes()
    (tmp_path / "cut.tfprof").write_bytes(content[: len(content) // 2])
    with pytest.raises(XSpaceError, match="not a TensorFlow profile"):
        load(tmp_path / "cut.tfprof")
    (tmp_path / "bad.tfprof").write_bytes(content[:200] + bytes(40) + content[240:])
    with pytest.raises(XSpaceError, match="a damaged one"):
        load(tmp_path / "bad.tfprof")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(XSpaceError, match=r"not a capture that report.save\(\) wrote"):
        load(tmp_path / "other.zip")
    for manifest in (b"\xff", b"[]", b'{"format": "1"}', b'{"format": 1, "hosts": 3}'):
        with zipfile.ZipFile(tmp_path / "strange.zip", "w") as archive:
            archive.writestr("capture.json", manifest)
        with pytest.raises(XSpaceError, match=r"not a capture that report.save\(\) wrote"):
            load(tmp_path / "strange.zip")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.tfprof")


def test_a_file_of_a_later_version(tmp_path):
    saved = captured(tmp_path, cpu_fit_capture(1, 3)).save(tmp_path / "run.tfprof")

    def rewritten(name: str, **changes) -> Path:
        with zipfile.ZipFile(saved) as old, zipfile.ZipFile(tmp_path / name, "w") as new:
            for item in old.namelist():
                data = old.read(item)
                if item == "capture.json":
                    manifest = json.loads(data)
                    manifest.update(changes)
                    manifest["capture"]["asked_by"] = "a field to come"
                    data = json.dumps(manifest).encode()
                new.writestr(item, data)
        return tmp_path / name

    assert len(load(rewritten("field.tfprof")).steps) == 3
    with pytest.raises(XSpaceError, match=r"written by tfprof_widgets 9.9.*Update tfprof_widgets"):
        load(rewritten("format.tfprof", format=2, version="9.9"))


def test_no_text_in_a_csv_is_a_formula(tmp_path):
    names = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\tx", "plain", "-12.5", "a=b"]
    space = Space("h")
    line = space.plane("/host:CPU").line("=line", id=1)
    for i, name in enumerate(names):
        line.event(name, 10 * i, 5)
    report = Report([read(space.bytes())])
    report.to_csv(tmp_path)
    back = pd.read_csv(tmp_path / "events.csv", keep_default_na=False)
    assert back["name"].tolist() == [*(f"'{name}" for name in names[:5]), *names[5:]]
    assert set(back["line"]) == {"'=line"}
    assert back["start_us"].tolist() == report.events["start_us"].tolist()
