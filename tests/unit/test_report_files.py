"""Opening what was captured before: files, runs, log directories, several hosts."""

from __future__ import annotations

import gzip
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pandas as pd
import pytest

from generate import cpu_fit_capture, pod_captures
from tfprof_widgets.report import load, runs
from tfprof_widgets.xspace import XSpaceError


def save_run(logdir, run: str, spaces):
    for index, space in enumerate(spaces):
        space.save(logdir / "plugins" / "profile" / run / f"host{index}.xplane.pb")


@pytest.fixture(scope="module")
def pod():
    return pod_captures(hosts=3, devices=2, steps=6, slow_host=1)


def test_a_log_directory_opens_at_its_newest_run(tmp_path):
    save_run(tmp_path, "2026_01_01_00_00_00", [cpu_fit_capture(1, 3)])
    save_run(tmp_path, "2026_01_02_00_00_00", [cpu_fit_capture(1, 5)])
    assert len(load(tmp_path).steps) == 5
    assert len(load(tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00").steps) == 3
    listed = runs(tmp_path)
    assert listed["run"].tolist() == ["2026_01_01_00_00_00", "2026_01_02_00_00_00"]
    assert listed["hosts"].tolist() == [1, 1]
    assert len(load(listed["path"][0]).steps) == 3


def test_one_file_and_gzipped_files_open(tmp_path):
    path = cpu_fit_capture(1, 4).save(tmp_path / "a.xplane.pb")
    packed = tmp_path / "b.xplane.pb.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(load(path).steps) == 4
    assert len(load(packed).steps) == 4


def test_a_directory_without_profiles_says_what_was_looked_for(tmp_path):
    with pytest.raises(XSpaceError, match=r"no profile in it \(looked for \*\.xplane\.pb"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such file or directory"):
        load(tmp_path / "nothing")
    # Not the working directory, whatever lies there.
    with pytest.raises(ValueError, match="The path is empty"):
        load("")


def test_several_hosts_make_one_report(tmp_path, pod):
    save_run(tmp_path, "run", pod)
    report = load(tmp_path)
    assert sorted(report.steps["host"].unique()) == ["worker-0", "worker-1", "worker-2"]
    assert len(report.steps) == 3 * 2 * 6
    assert (report.pod.groupby("step").size() == 6).all()
    assert set(report.stragglers.query("is_straggler")["host"]) == {"worker-1"}
    assert set(report.events["host"]) == {"worker-0", "worker-1", "worker-2"}
    assert "worker-2" in report.overview.environment["Hosts"]


def test_a_damaged_host_is_named_and_the_others_are_used(tmp_path, pod):
    save_run(tmp_path, "run", pod)
    bad = tmp_path / "plugins" / "profile" / "run" / "host1.xplane.pb"
    bad.write_bytes(bad.read_bytes()[:-100])
    report = load(tmp_path)
    assert sorted(report.steps["host"].unique()) == ["worker-0", "worker-2"]
    assert "1 of 3 hosts could not be read" in report.notes[0]
    assert "host1.xplane.pb" in report.notes[0]


def test_hosts_of_one_name_are_told_apart(tmp_path):
    save_run(tmp_path, "run", [cpu_fit_capture(1, 3, hostname="same"), cpu_fit_capture(1, 3, seed=1, hostname="same")])
    assert load(tmp_path).steps["host"].unique().tolist() == ["same", "same (2)"]


def test_one_host_keeps_what_was_made_of_it(tmp_path):
    save_run(tmp_path, "run", [cpu_fit_capture(1, 3, hostname="same"), cpu_fit_capture(1, 3, seed=1, hostname="same")])
    report = load(tmp_path).anonymized()
    report.max_mb = 2
    second = report.hosts[1].trace.host
    report.add_track(pd.DataFrame({"start_us": [1.0], "duration_us": [2.0], "name": ["mine"]}), "track", second)
    one = report.of_host(second)
    assert (one.is_anonymized, one.max_mb, one.steps["host"].unique().tolist()) == (True, 2, [second])
    assert "track" in one.timelines[0].tracks["label"].tolist()


def test_any_executor_reads_the_hosts(tmp_path, pod):
    save_run(tmp_path, "run", pod)
    alone = load(tmp_path)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        for executor in (threads, processes):
            assert load(tmp_path, executor=executor).steps.equals(alone.steps)


@pytest.fixture
def memory():
    import fsspec

    memory = fsspec.filesystem("memory")
    yield memory
    memory.rm("/bucket", recursive=True)


def test_a_remote_log_directory_opens_through_fsspec(memory, pod):
    profiles = "/bucket/experiment/{}/plugins/profile/{}/{}"
    memory.pipe(profiles.format("train", "2026_01_01_00_00_00", "host.xplane.pb"), cpu_fit_capture(1, 3).bytes())
    for index, space in enumerate(pod):
        packed = gzip.compress(space.bytes())
        memory.pipe(profiles.format("validation/deeper", "2026_01_02_00_00_00", f"{index}.xplane.pb.gz"), packed)
    memory.pipe("/bucket/experiment/train/events.out.tfevents.1.host", b"of TensorBoard")
    listed = runs("memory://bucket/experiment")
    assert listed["run"].tolist() == ["2026_01_01_00_00_00", "2026_01_02_00_00_00"]
    assert listed["hosts"].tolist() == [1, 3]
    assert all(path.startswith("memory://") for path in listed["path"])
    assert len(load(listed["path"][0]).steps) == 3
    assert len(load("memory://bucket/experiment").hosts) == 3
    assert len(load("memory://bucket/experiment/train/plugins/profile/2026_01_01_00_00_00/host.xplane.pb").steps) == 3
    with pytest.raises(FileNotFoundError, match="credentials"):
        load("memory://bucket/another")


@pytest.mark.parametrize(("url", "package"), [("s3://bucket/logs", "s3fs"), ("gs://bucket/logs", "gcsfs")])
def test_a_package_that_opens_the_address_and_is_missing_is_named(url, package, monkeypatch):
    from fsspec.registry import _registry

    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(_registry, url.partition(":")[0], raising=False)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        load(url)


def test_addresses_that_nothing_opens():
    with pytest.raises(XSpaceError, match="nothing is known that opens such addresses"):
        load("nonsense://bucket/logs")


def test_a_profile_is_taken_once_and_none_that_is_being_made(tmp_path):
    path = cpu_fit_capture(1, 4).save(tmp_path / "plugins" / "profile" / "run" / "host.xplane.pb")
    path.with_name("host.xplane.pb.gz").write_bytes(gzip.compress(path.read_bytes()))
    save_run(tmp_path / ".tfprof-being-made", "2099_01_01_00_00_00", [cpu_fit_capture(1, 2)])
    listed = runs(tmp_path)
    assert (listed["run"].tolist(), listed["hosts"].tolist()) == (["run"], [1])
    assert len(load(tmp_path).steps) == 4


def test_hosts_come_as_people_count(tmp_path):
    save_run(tmp_path, "run", pod_captures(hosts=11, devices=1, steps=2))
    assert [host.trace.host for host in load(tmp_path).hosts] == [f"worker-{i}" for i in range(11)]


def test_a_report_of_several_hosts_is_called_as_its_run(tmp_path):
    save_run(tmp_path, "2026_01_02", pod_captures(2, 1, 3))
    assert load(tmp_path).title == "2026_01_02"
    assert load(tmp_path / "plugins" / "profile" / "2026_01_02" / "host1.xplane.pb").title == "host1"
