"""The capture panel, against a stand-in for what asks the servers."""

from __future__ import annotations

import threading

import pytest

import tfprof_widgets as tfprof
from generate import cpu_fit_capture
from tfprof_widgets import panel as panel_module
from tfprof_widgets.sampling import CaptureStopped
from tfprof_widgets.session import CaptureError
from tfprof_widgets.xspace import read

PROFILE = cpu_fit_capture(epochs=1, batches=3).bytes()


@pytest.fixture
def asked(monkeypatch):
    """Requests that were made; each becomes a report, or raises what is in the list `failures`."""

    class Asked(list):
        def __init__(self):
            super().__init__()
            self.failures = []

        hold = None  # an event: capture until it is set

    asked = Asked()

    def sample(request, tell, stopped):
        asked.append(request)
        tell(f"Recording on {request.where} …", 0.5)
        while asked.hold is not None and not asked.hold.wait(0.01):
            if stopped():
                raise CaptureStopped("The capture was stopped.")
        if asked.failures:
            raise asked.failures.pop(0)
        return tfprof.Report([read(PROFILE)])

    monkeypatch.setattr(panel_module, "sample", sample)
    return asked


@pytest.fixture
def panel():
    panel = tfprof.capture_panel("grpc://localhost:6009")
    yield panel
    panel.close()
    panel.wait(10)


def test_a_capture_shows_its_report(asked, panel):
    panel._duration.value, panel._host.value, panel._python.value, panel._device.value = 1.5, 3, True, False
    panel._button.click()
    panel.wait(10)
    (request,) = asked
    assert (request.workers, request.duration_s, request.attempts) == (["localhost:6009"], 1.5, 3)
    options = request.options
    assert (options.host_level, options.python, options.device_level) == (3, True, 0)
    assert len(panel.report.steps) == 3
    (shown,) = panel._place.children
    assert type(shown).__name__ == "ReportWidget"
    assert "events" in panel._status.value
    assert (panel._button.description, panel._bar.layout.display) == ("Capture", "none")


def test_the_next_report_takes_the_place_of_the_last(asked, panel):
    for _ in range(2):
        panel._button.click()
        panel.wait(10)
    assert len(asked) == 2
    assert len(panel._place.children) == 1


def test_what_goes_wrong_is_said_and_the_last_report_stays(asked, panel):
    panel._button.click()
    panel.wait(10)
    before = panel.report, panel._place.children
    asked.failures += [CaptureError("Nothing listens at <b>here</b>"), RuntimeError("a bug")]
    panel._button.click()
    panel.wait(10)
    assert 'role="alert"' in panel._status.value
    assert "Nothing listens at &lt;b&gt;here&lt;/b&gt;" in panel._status.value
    panel._button.click()
    panel.wait(10)
    assert "RuntimeError: a bug" in panel._status.value
    assert (panel.report, panel._place.children) == before
    assert panel._button.description == "Capture"


@pytest.mark.parametrize("address", ["", "localhost", "http://localhost:6006"])
def test_an_address_that_is_none_is_said_at_once(asked, panel, address):
    panel._address.value = address
    panel._button.click()
    assert 'role="alert"' in panel._status.value
    assert not panel.is_capturing
    assert asked == []


def test_a_capture_can_be_stopped(asked, panel):
    asked.hold = threading.Event()
    panel._button.click()
    assert panel.is_capturing
    assert panel._button.description == "Stop"
    panel._button.click()
    panel.wait(10)
    assert not panel.is_capturing
    assert "was stopped" in panel._status.value
    assert panel.report is None
    asked.hold = None
    panel._button.click()
    panel.wait(10)
    assert panel.report is not None


def test_a_closed_panel_stops_its_capture(asked, panel):
    asked.hold = threading.Event()
    panel._button.click()
    panel.close()
    panel.wait(10)
    assert not panel.is_capturing


def test_the_fields_begin_with_what_is_given():
    panel = tfprof.capture_panel("grpc://a:1,grpc://b:2", duration=0.5)
    assert (panel._address.value, panel._duration.value) == ("grpc://a:1,grpc://b:2", 0.5)
    panel.close()
