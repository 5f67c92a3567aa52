"""Many hosts: a Dask cluster gives what one process gives, and the way of the documentation to thousands works as it is written."""

from __future__ import annotations

import re
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from generate import pod_captures
from tfprof_widgets.report import load
from tfprof_widgets.xspace import read_hosts

SCALING = Path(__file__).resolve().parents[2] / "docs" / "scaling.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    for index, space in enumerate(pod_captures(hosts=6, devices=2, steps=6, slow_host=4)):
        space.save(folder / f"worker-{index}.xplane.pb")
    return folder


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_dask_cluster_reads_what_one_process_reads(run):
    distributed = pytest.importorskip("distributed")
    alone = load(run)
    cluster = distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        report = load(run, executor=client.get_executor())
    assert len(report.hosts) == 6
    for table in ("steps", "ops", "pod", "events", "memory"):
        assert getattr(report, table).equals(getattr(alone, table)), table


def test_few_more_hosts_are_begun_than_there_are_workers():
    """A cluster's workers keep what they have read until it is fetched."""

    class Slow(Executor):
        _max_workers = 2

        def __init__(self):
            self.begun, self.fetched, self.most = 0, 0, 0

        def submit(self, task, path):
            self.begun += 1
            self.most = max(self.most, self.begun - self.fetched)
            future = Future()
            future.set_result(f"{path} read")
            fetch = future.result

            def result():
                self.fetched += 1
                return fetch()

            future.result = result
            return future

    executor = Slow()
    spaces, lost = read_hosts([f"host{i}" for i in range(50)], executor)
    assert spaces == []
    assert lost == [f"host{i} read" for i in range(50)]  # all, in their order
    assert executor.most <= 4


def test_thousands_of_hosts_as_documented(run):
    if not SCALING.exists():
        pytest.skip("an sdist has no docs")
    code = re.search(r'^```python title="thousands.py"\n(.*?)^```$', SCALING.read_text(encoding="utf-8"), re.M | re.S)[
        1
    ]
    names: dict = {}
    exec(compile(code, "thousands.py", "exec"), names)
    files = sorted(map(str, run.glob("*.xplane.pb")))
    with ThreadPoolExecutor(2) as executor:
        late, reports = names["slowest_hosts"](files, executor, most=1)
    whole = load(run).stragglers.query("is_straggler")["host"].value_counts()
    assert late.to_dict() == whole.to_dict()
    assert late.index[0] == "worker-4"
    assert [report.hosts[0].trace.host for report in reports] == ["worker-4"]
