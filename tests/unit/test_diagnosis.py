"""What a report says about what is missing from it."""

from __future__ import annotations

import pytest

import tfprof_widgets as tfprof
from generate import Space, cpu_fit_capture, gpu_capture
from generate.log_lines import RECORDED, SUBSCRIBE
from tfprof_widgets.diagnosis.check import Check
from tfprof_widgets.diagnosis.report_checks import report_checks
from tfprof_widgets.diagnosis.result import Diagnosis
from tfprof_widgets.session import CaptureInfo, Options
from tfprof_widgets.xspace import read

NO_CUPTI = "host0: Failed to load libcupti (is it installed and accessible?)"


def report_of(*spaces: Space, **capture) -> tfprof.Report:
    info = CaptureInfo("mine", **capture) if capture else None
    return tfprof.Report([read(space.bytes()) for space in spaces], capture=info)


def without_cupti(host: str = "host0") -> Space:
    """As TensorFlow writes it where libcupti is missing: the GPU's plane is there, and empty."""
    space = cpu_fit_capture(epochs=1, batches=3)
    space.message.hostnames[:] = [host.encode()]
    space.plane("/device:GPU:0", stats={"compute_cap_major": 6})
    space.error(NO_CUPTI)
    return space


def names(report: tfprof.Report) -> list[str]:
    return [check.name for check in report_checks(report)]


def test_libcupti_is_missing():
    report = report_of(without_cupti())
    (check,) = report_checks(report)
    assert (check.name, check.status) == ("libcupti", "error")
    assert NO_CUPTI in check.evidence
    assert "ldconfig -p | grep libcupti" in check.commands
    (note,) = report.notes
    assert NO_CUPTI in note
    assert "LD_LIBRARY_PATH=/usr/local/cuda/extras/CUPTI/lib64" in note
    assert NO_CUPTI in report.text


def test_libcupti_is_missing_in_a_real_capture(capture):
    report = tfprof.load(capture("windows_no_cupti"))
    assert names(report) == ["libcupti"]
    assert any("Failed to load libcupti" in note and "LD_LIBRARY_PATH" in note for note in report.notes)


def test_of_several_hosts_each_is_named_once_and_the_cure_once():
    report = report_of(without_cupti("one"), without_cupti("two"))
    (check,) = report_checks(report)
    assert "one: The profiler reported" in check.evidence
    assert "two: The profiler reported" in check.evidence


@pytest.mark.parametrize("status", ["error", "warning"])
def test_what_is_not_known_is_said_as_it_is(status):
    space = cpu_fit_capture(epochs=1, batches=3)
    getattr(space, status)("<b>something new</b>")
    (note,) = report_of(space).notes
    assert note.endswith("<b>something new</b>")
    assert note.startswith("The profiler ")


def test_dropped_events():
    space = gpu_capture(devices=1, steps=2)
    dropped = next(text for text, name in RECORDED.items() if name == "dropped")
    space.warning(dropped)
    (check,) = report_checks(report_of(space))
    assert (check.name, check.status) == ("dropped", "warning")
    assert "1234 events dropped" in check.evidence
    counted = gpu_capture(devices=1, steps=2)
    counted.plane("/host:CPU", stats={"dropped_traces": 1_700})
    (check,) = report_checks(report_of(counted))
    assert "1,700 events" in check.found


@pytest.mark.parametrize("gpus", [1, 3])
def test_devices_without_events(gpus):
    space = cpu_fit_capture(epochs=1, batches=3)
    for number in range(gpus):
        space.plane(f"/device:GPU:{number}", stats={"compute_cap_major": 7})
    (check,) = report_checks(report_of(space))
    assert (check.name, check.status) == ("silent_devices", "warning")
    assert f"{gpus} device" in check.found
    assert check.commands == ("tfprof_widgets.doctor()",)


def test_some_silent_devices_among_others_are_nothing_to_worry_about():
    space = gpu_capture(devices=2, steps=2)
    space.plane("/device:GPU:2")
    assert names(report_of(space)) == []


def test_tensorflow_sees_a_gpu_and_the_profile_has_none(monkeypatch):
    space = cpu_fit_capture(epochs=1, batches=3)
    monkeypatch.setattr("sys.platform", "linux")
    (check,) = report_checks(report_of(space, gpus=2))
    assert (check.name, check.status) == ("no_device_plane", "warning")
    assert "2 GPUs" in check.found
    assert names(report_of(space, gpus=0)) == []
    assert names(report_of(space, gpus=2, options=Options(device_level=0))) == ["options_ignored"]
    monkeypatch.setattr("sys.platform", "darwin")
    (check,) = report_checks(report_of(space, gpus=1))
    assert check.status == "info"
    assert "Metal System Trace" in check.why


def test_the_log_tells_why():
    space = cpu_fit_capture(epochs=1, batches=3)
    log = [
        f"{SUBSCRIBE}CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
        f"{SUBSCRIBE}CUPTI_ERROR_INVALID_PARAMETER",  # a consequence
        "GpuTracer has collected 0 callback api events and 0 activity events.",
    ]
    report = report_of(space, log=log, gpus=1)
    assert names(report) == ["privileges"]
    (note,) = report.notes
    assert "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" in note
    assert "--privileged=true" in note
    assert "NVreg_RestrictProfilingToAdminUsers=0" in note


def test_what_the_profile_and_the_log_both_tell_is_said_once():
    space = without_cupti()
    log = ["W dso_loader.cc:60] Could not load dynamic library 'libcupti.so.11.0'; dlerror: …"]
    assert names(report_of(space, log=log, gpus=1)) == ["libcupti"]


def test_another_profiler():
    space = cpu_fit_capture(epochs=1, batches=3)
    report = report_of(space, log=[f"{SUBSCRIBE}CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"], gpus=1)
    (check,) = report_checks(report)
    assert check.name == "other_profiler"
    assert "Nsight" in check.why


def test_ignored_options_name_the_version_where_it_is_known():
    space = cpu_fit_capture(epochs=1, batches=3)
    report = report_of(space, options=Options(python=True), tensorflow_version="2.21.0")
    (note,) = report.notes
    assert "Python calls were asked for, none was recorded" in note
    assert "(this is 2.21.0)" in note
    (note,) = report_of(space, options=Options(python=True)).notes
    assert "this is" not in note


def test_nothing_at_all():
    space = Space("idle")
    space.plane("/host:CPU")
    assert names(report_of(space)) == ["nothing_ran"]


def test_a_good_report_has_nothing_to_say():
    assert names(report_of(gpu_capture(devices=1, steps=3), gpus=1)) == []
    assert report_of(gpu_capture(devices=1, steps=3), gpus=1).notes == []


CHECKS = [
    Check("fine", "ok", "All is well."),
    Check("bad", "error", "It <broke>.", "Because & so.", "Mend it.", ("a && b > c", "d")),
    Check("odd", "warning", "Odd."),
]


def test_a_diagnosis_is_a_sequence_problems_first():
    found = Diagnosis(CHECKS)
    assert [check.name for check in found] == ["bad", "odd", "fine"]
    assert [check.name for check in found.problems] == ["bad", "odd"]
    assert (len(found), found[0].name) == (3, "bad")
    assert found.summary == "1 problem and 1 thing to look at."
    assert Diagnosis(CHECKS[:1]).summary == "Nothing is amiss."
    frame = found.to_frame()
    assert list(frame["name"]) == ["bad", "odd", "fine"]
    assert frame["commands"][0] == "a && b > c\nd"
    assert list(Diagnosis([]).to_frame().columns) == list(frame.columns)


def test_a_diagnosis_can_be_printed():
    text = str(Diagnosis(CHECKS))
    assert text.splitlines()[0].endswith("1 problem and 1 thing to look at.")
    assert "[✗] It <broke>.\n    Because & so.\n    Mend it.\n      a && b > c\n      d" in text
    assert repr(Diagnosis(CHECKS)) == text


def test_a_diagnosis_shows_itself_and_escapes():
    html = Diagnosis(CHECKS)._repr_html_()
    assert "It &lt;broke&gt;." in html
    assert "a &amp;&amp; b &gt; c</pre>" in html
    assert "<broke>" not in html
    assert html.index("It &lt;broke") < html.index("All is well")
