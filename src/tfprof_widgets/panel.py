"""A panel to profile running programs from a notebook, as TensorBoard's capture dialog does.

The capture runs in a thread of its own, so that the panel shows how far it is and can stop it, and the notebook goes on.
"""

# ipywidgets has no types.
# mypy: disallow-subclassing-any=False

from __future__ import annotations

import threading
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from .sampling import DURATION_S, CaptureStopped, Request, addresses, sample
from .session import CaptureError, Options, describe_error

if TYPE_CHECKING:
    from .report import Report

_LEVELS = [("critical events only", 1), ("the usual events", 2), ("verbose", 3)]
_FIELD = {"width": "auto", "flex": "0 1 auto"}


class CapturePanel(widgets.VBox):
    """Fields for a capture, a button, what is going on, and the last report. Made by `capture_panel`.

    Attributes
    ----------
    report : Report or None
        The last capture's report.
    """

    def __init__(self, address: str, duration_s: float) -> None:
        self.report: Report | None = None
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        labelled: dict[str, Any] = {"style": {"description_width": "initial"}}
        self._address = widgets.Text(
            value=address,
            placeholder="grpc://localhost:6009",
            description="Profiler server",
            tooltip="grpc://host:port, as given to tf.profiler.experimental.server.start; several workers: separated by commas",
            layout={"flex": "1 1 260px", "width": "auto", "min_width": "220px", "max_width": "640px"},
            **labelled,
        )
        self._duration = widgets.BoundedFloatText(
            value=duration_s, min=0.1, max=600, step=0.5, description="Seconds", layout={"width": "130px"}, **labelled
        )
        self._attempts = widgets.BoundedIntText(
            value=3,
            min=1,
            max=20,
            description="Tries",
            tooltip="How often to try when nothing was recorded",
            layout={"width": "100px"},
            **labelled,
        )
        self._host = widgets.Dropdown(
            options=_LEVELS, value=2, description="Host", layout={"width": "210px"}, **labelled
        )
        self._python = widgets.Checkbox(value=False, description="Python calls (slow)", indent=False, layout=_FIELD)
        self._device = widgets.Checkbox(value=True, description="Devices", indent=False, layout=_FIELD)
        self._button = widgets.Button(
            description="Capture",
            icon="dot-circle-o",
            button_style="primary",
            layout={"width": "120px", "flex": "0 0 auto"},
        )
        self._button.on_click(self._clicked)
        self._bar = widgets.FloatProgress(min=0, max=1, layout={"width": "160px", "display": "none"})
        self._status = widgets.HTML(layout={"flex": "1 1 260px", "width": "auto"})
        self._place = widgets.VBox([])
        # Rows that wrap where the window is narrow.
        wrapping = {"display": "flex", "flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 12px"}
        super().__init__(
            [
                widgets.Box([self._address, self._duration, self._attempts], layout=wrapping),
                widgets.Box([self._host, self._python, self._device], layout=wrapping),
                widgets.Box([self._button, self._bar, self._status], layout=wrapping),
                self._place,
            ]
        )
        self._say("Captures from a program that has called <code>tf.profiler.experimental.server.start(port)</code>.")

    @property
    def is_capturing(self) -> bool:
        """Whether a capture is running."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the running capture, if there is one, has ended; at most so many seconds."""
        if self._thread is not None:
            self._thread.join(timeout)

    def close(self) -> None:
        """Stop a running capture, and remove the panel."""
        self._stopped.set()
        super().close()

    def _clicked(self, _button: Any) -> None:
        if self.is_capturing:
            self._stopped.set()
            self._button.disabled = True
            return
        try:
            request = Request(
                addresses(self._address.value),
                self._duration.value,
                options=Options(self._host.value, self._python.value, int(self._device.value)),
                attempts=self._attempts.value,
            )
        except ValueError as error:
            self._fail(str(error))
            return
        self._stopped.clear()
        self._show_button(capturing=True)
        self._thread = threading.Thread(target=self._capture, args=(request,), name="tfprof-panel", daemon=True)
        self._thread.start()

    def _capture(self, request: Request) -> None:
        told = ("", -1.0)

        def tell(words: str, share: float | None) -> None:
            nonlocal told
            now = (words, round(share or 0.0, 2))
            if now != told:
                told = now
                self._bar.value = share or 0.0
                self._say(escape(words))

        self._bar.layout.display = None
        try:
            report = sample(request, tell, self._stopped.is_set)
            shown = report.widget()
        except CaptureStopped as stopped:
            self._say(escape(str(stopped)))
        except (CaptureError, ValueError) as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - in a thread, nobody else would tell it
            self._fail(f"The capture failed: {describe_error(error)}.")
        else:
            self.report = report
            for old in self._place.children:
                old.close()
            self._place.children = (shown,)
            self._say(
                f"{escape(request.where)}: {sum(host.trace.space.n_events for host in report.hosts):,} events. "
                "To keep the report in the notebook, show the panel’s <code>.report</code> in a cell of its own."
            )
        finally:
            self._bar.layout.display = "none"
            self._show_button(capturing=False)

    def _show_button(self, *, capturing: bool) -> None:
        self._button.disabled = False
        self._button.description = "Stop" if capturing else "Capture"
        self._button.icon = "stop" if capturing else "dot-circle-o"
        self._button.button_style = "" if capturing else "primary"

    def _say(self, words: str) -> None:
        self._status.value = f'<div role="status" style="line-height: 1.4; opacity: 0.85">{words}</div>'

    def _fail(self, words: str) -> None:
        self._status.value = (
            f'<div role="alert" style="line-height: 1.4; color: var(--jp-error-color1, #c62828)">{escape(words)}</div>'
        )


def capture_panel(address: str = "", duration: float = DURATION_S) -> CapturePanel:
    """Return a panel with which running programs are profiled, as with TensorBoard's capture dialog.

    It has fields for the address of the program's profiler server (several: separated by commas), the duration and the tracer
    levels, a button, and shows the report below.

    Parameters
    ----------
    address : str, optional
        What the address field says first.
    duration : float
        What the duration field says first, in seconds.

    Returns
    -------
    CapturePanel
        A widget for a cell's last line; its ``report`` is the last capture's.

    Examples
    --------
    >>> panel = tfprof.capture_panel("grpc://localhost:6009")
    >>> panel
    """
    return CapturePanel(address, duration)
