"""Anonymized reports: no original is left in anything that is made of them, whatever it is packed in."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from generate import Compressed, Space, Text, gpu_capture, pod_captures
from tfprof_widgets.anonymize import Anonymizer
from tfprof_widgets.report import Report, load_run
from tfprof_widgets.session import CaptureInfo
from tfprof_widgets.xspace import read

ORIGINALS = (
    "janes-laptop", "corp.example", "jane.doe", "secret_project", "Topsecret", "moonshot", "bucket-of-jane", "10.1.2.3", "doe@",
    "datasets x",
)  # fmt: skip


def hostile_capture() -> Space:
    """A GPU capture whose host, ops, Python calls and stats tell of Jane and her project."""
    space = gpu_capture(devices=1, steps=4, hostname="janes-laptop.corp.example.com")
    line = space.planes[0].line("python janes-laptop", id=99)
    texts = [
        "$/home/jane.doe/secret_project/train.py:12 step",
        "$/home/jane.doe/my secret_project/model.py:7 call",
        "$/usr/lib/python3.11/site-packages/keras/src/trainers/trainer.py:312 fit",
        r"$C:\Users\jane.doe\Topsecret\run.py:1 <module>",
        "jane.doe/dense/MatMul:MatMul",
        "Iterator::TFRecord[/mnt/datasets x/moonshot/train.tfrecord]",
        "read gs://bucket-of-jane/moonshot/part-0.tfrecord",
        "rpc grpc://janes-laptop.corp.example.com:6009 to 10.1.2.3:80",
        "mail jane.doe@corp.example.com",
    ]
    for i, text in enumerate(texts):
        line.event(
            text, 100 * i, 50, note=text, place=Text(f"file={text}"), packed=Compressed(text), raw=text.encode(), same=Text(texts[5])
        )  # fmt: skip
    space.plane(
        "Task Environment", stats={"profile_options": b"\x12\x1a/home/jane.doe/secret_project/logs", "where": texts[0]}
    )
    space.error("cannot open /home/jane.doe/secret_project/x.so on janes-laptop")
    space.warning("see https://janes-laptop.corp.example.com/moonshot and https://www.tensorflow.org/guide/profiler.")
    return space


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = hostile_capture().save(tmp_path_factory.mktemp("logs") / "janes-laptop.corp.example.com.xplane.pb")
    info = CaptureInfo(
        name="Topsecret by jane.doe",
        source="open('/home/jane.doe/secret_project/x')",
        logdir=Path("/home/jane.doe/logs"),
        error="FileNotFoundError: /home/jane.doe/secret_project/x",
        notes=["kept in /home/jane.doe/logs/Topsecret"],
    )
    report = load_run([path], capture=info)
    # In a title nothing tells that a word is a secret, unless it is a user's, a host's or a path.
    report.capture.__dict__["name"] = "run by jane.doe"
    frame = pd.DataFrame({"start_us": [1.0], "duration_us": [2.0], "name": ["/home/jane.doe/secret_project/a"]})
    report.add_track(frame, "of jane.doe")
    return report


@pytest.fixture(scope="module")
def anonymous(report):
    return report.anonymized()


def front_decoded(texts: str) -> list[str]:
    found, before = [], ""
    for part in texts.split("\t")[:-1]:
        before = before[: ord(part[0]) - ord("!")] + part[1:]
        found.append(before)
    return found


def decompressed(html: str) -> bytes:
    """All that a page holds, unpacked."""
    parts = [re.sub(r"<script[^>]*octet-stream.*?</script>", "", html, flags=re.DOTALL).encode()]
    for name, data in re.findall(r'data-tfprof="([^"]+)">([^<]*)</script>', html):
        if name not in ("app", "bokeh"):
            parts.append(gzip.decompress(base64.b64decode(data)))
    return b"\n".join(parts)


def left_in(data: bytes) -> list[str]:
    return [original for original in ORIGINALS if original.lower().encode() in data.lower()]


def test_the_test_finds_originals_where_there_are_any(report):
    assert set(left_in(decompressed(report.html))) >= {
        "janes-laptop",
        "jane.doe",
        "secret_project",
        "Topsecret",
        "moonshot",
    }


def test_nothing_is_left_in_the_page(anonymous):
    data = decompressed(anonymous.html)
    assert left_in(data) == []
    assert b"host-1" in data
    assert b"user-1" in data


def test_nothing_is_left_in_texts_that_share_their_beginnings(anonymous, report):
    import pyarrow as pa

    def texts(of: Report) -> str:
        (packed,) = (table for name, table in of.payload.tables.items() if name.endswith("_stat_texts"))
        table = pa.ipc.open_stream(gzip.decompress(packed)).read_all()
        return "\n".join(front_decoded(table["text"][0].as_py()))

    assert left_in(texts(report).encode())
    assert left_in(texts(anonymous).encode()) == []


def test_nothing_is_left_in_files_and_text(anonymous, tmp_path):
    anonymous.to_csv(tmp_path / "tables")
    anonymous.to_html(tmp_path / "report.html")
    anonymous.to_perfetto(tmp_path / "trace.json")
    for path in tmp_path.rglob("*.*"):
        data = path.read_text(encoding="utf-8")
        assert left_in(decompressed(data) if path.suffix == ".html" else data.encode()) == [], path.name
    for text in (
        anonymous.text,
        repr(anonymous),
        str(anonymous.notes),
        str(anonymous.capture),
        str(anonymous.overview),
    ):
        assert left_in(text.encode()) == []


def test_the_numbers_are_the_same(anonymous, report):
    for name in ("steps", "ops", "kernels", "memory", "events"):
        a, b = getattr(anonymous, name), getattr(report, name)
        numbers = [c for c in b.columns if b[c].dtype.kind in "fi"]
        pd.testing.assert_frame_equal(a[numbers], b[numbers])


def test_one_thing_has_one_stand_in(anonymous):
    names = anonymous.events["name"].astype(str).unique()
    (step,) = [name for name in names if name.endswith(".py:12 step")]
    path = step.removeprefix("$").removesuffix(":12 step")
    assert re.fullmatch(r"path-\d+\.py", path)
    assert "$site-packages/keras/src/trainers/trainer.py:312 fit" in names
    assert "user-1/dense/MatMul:MatMul" in names
    assert anonymous.capture.name == "run by user-1"
    assert anonymous.capture.source == ""
    assert any("https://www.tensorflow.org/guide/profiler." in note for note in anonymous.notes)
    assert anonymous.notes[-1].startswith("Anonymized: ") or any(n.startswith("Anonymized: ") for n in anonymous.notes)


def test_hosts_keep_their_number_in_all_tables():
    spaces = [read(space.bytes(), f"worker-{i}.xplane.pb") for i, space in enumerate(pod_captures(2, 1, 3))]
    report = Report(spaces).anonymized()
    assert set(report.steps["host"]) == set(report.events["host"]) == {"host-1", "host-2"}
    assert "worker-" not in report.html.partition("tfprof-mount")[0]


def test_the_profile_itself_is_not_saved(anonymous, tmp_path):
    with pytest.raises(ValueError, match="profile itself"):
        anonymous.save(tmp_path / "run.tfprof")


def test_an_export_of_the_report_itself_can_be_anonymous(report, tmp_path):
    page = report.to_html(tmp_path / "report.html", anonymize=True).read_text(encoding="utf-8")
    assert left_in(decompressed(page)) == []
    assert "<title>run by user-1</title>" in page


@pytest.mark.parametrize(
    "text",
    [
        "model/dense_1/MatMul:MatMul",
        "/job:localhost/replica:0/task:0/device:CPU:0",
        "/device:GPU:0 (pid 0)",
        "/host:CPU",
        "void cutlass::Kernel<float const*, 128>(int)/2",
        "3 ms/step and 5 /s",
        "EagerExecute: __inference_train_function_1047",
        "kind_src:pinned kind_dst:device size:4 dest:0 async:1",
        "{'a': 1, 'b': (2, 3)}",
        "a // b, http status, 1.5.2, tf.data, np.float32",
        "root and localhost and 127.0.0.1:8080",
        "$threading.py:1002 _bootstrap",
    ],
)
def test_what_is_nobodys_stays(text):
    assert Anonymizer([])(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /srv/data/x.bin: no such file", "open path-1.bin: no such file"),
        ("open '/srv/my data/x y.bin' now", "open 'path-1.bin' now"),
        ("in /srv/my data/x.bin and /srv/b/c", "in path-1.bin and path-2"),
        ("(/srv/a/b)", "(path-1)"),
        ("path:/srv/a/b.", "path:path-1."),
        ("~/models/a.keras", "path-1.keras"),
        ("/secret.py", "path-1.py"),
        (r"D:\work\a b\x.txt", "path-1.txt"),
        (r"\\server\share\x.txt", "path-1.txt"),
        ("s3://bucket/key/a.tfrecord", "s3://path-1.tfrecord"),
        ("http://gpu7.corp:8080/x/y", "http://host-1:8080/path-1"),
        ("at 192.168.0.7:6009", "at host-1:6009"),
        ("at [fe80::1c2d]:6009, 2001:db8:0:7::a and 1:2:3:4:5:6:7:8", "at [host-1]:6009, host-2 and host-3"),
        ("add::Add of [::1]:6009 at 12:30:45, a:b:c fd:ab::cd", "add::Add of [::1]:6009 at 12:30:45, a:b:c fd:ab::cd"),
        ("node7.cluster.internal is down", "host-1 is down"),
        ("mail a.b@c.org now", "mail user-1@host-1 now"),
        ("/usr/lib/python3.11/threading.py:5", "python3.11/threading.py:5"),
    ],
)
def test_what_is_somebodys_is_replaced(text, expected):
    stand_in = Anonymizer([])
    # This machine's own names have the first numbers.
    stand_in._count.clear()
    stand_in._known = None
    assert stand_in(text) == expected


def test_this_machines_names_are_replaced(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "Build-Box7.lab")
    monkeypatch.setattr("getpass.getuser", lambda: "jdoe")
    stand_in = Anonymizer([])
    assert (
        stand_in("jdoe on BUILD-BOX7, build-box7.lab; jdoe_model/x, notjdoe")
        == "user-1 on host-1, host-1; user-1_model/x, notjdoe"
    )
    assert (
        json.dumps(stand_in.statement())
        == '"Anonymized: 1 host name, 1 user name replaced by stand-ins (host-1, user-1, path-1 \\u2026)."'
    )


def test_real_captures_stay_readable(capture):
    from tfprof_widgets.report import load

    report = load(capture("gpu_w0"))
    anonymous = report.anonymized()
    assert "host00000000000000" not in decompressed(anonymous.html).decode("utf-8", "replace")
    ops, before = anonymous.ops, report.ops
    assert (ops["type"].astype(str) == before["type"].astype(str)).all()
    assert (ops["name"].astype(str) == before["name"].astype(str)).mean() > 0.99
