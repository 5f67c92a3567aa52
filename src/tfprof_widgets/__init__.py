"""TensorFlow profiles, interactive in the notebook.

In a notebook::

    %load_ext tfprof_widgets

    %%tfprofile
    model.fit(dataset)

Everything is imported on first use, and TensorFlow only to capture, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .comparison.kept_runs import history
    from .comparison.result import Comparison, compare
    from .diagnosis.check import Check
    from .diagnosis.result import Diagnosis, doctor
    from .panel import CapturePanel, capture_panel
    from .recovery import Recovered, recover
    from .report import Report, load, runs
    from .sampling import capture
    from .session import CaptureError, CaptureInfo, Profile, TensorFlowMissingError, profile
    from .step_marks import step
    from .xspace import XSpaceError

    __version__: str

__all__ = [
    "CaptureError",
    "CaptureInfo",
    "CapturePanel",
    "Check",
    "Comparison",
    "Diagnosis",
    "Profile",
    "Recovered",
    "Report",
    "TensorFlowMissingError",
    "XSpaceError",
    "capture",
    "capture_panel",
    "compare",
    "doctor",
    "history",
    "load",
    "profile",
    "recover",
    "runs",
    "step",
]

_MODULE_OF = {
    "CaptureError": "session",
    "CaptureInfo": "session",
    "Comparison": "comparison.result",
    "Profile": "session",
    "TensorFlowMissingError": "session",
    "compare": "comparison.result",
    "Check": "diagnosis.check",
    "Diagnosis": "diagnosis.result",
    "doctor": "diagnosis.result",
    "history": "comparison.kept_runs",
    "profile": "session",
    "Recovered": "recovery",
    "recover": "recovery",
    "step": "step_marks",
    "Report": "report",
    "load": "report",
    "runs": "report",
    "capture": "sampling",
    "CapturePanel": "panel",
    "capture_panel": "panel",
    "XSpaceError": "xspace",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("tfprof_widgets")
    elif name in _MODULE_OF:
        value = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register ``%tfprofile`` and ``%%tfprofile``; called by ``%load_ext tfprof_widgets``."""
    from .magic import install
    from .recovery import hint

    install(shell)
    left = hint()
    if left:
        sys.stdout.write(f"{left}\n")


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics again; called by ``%unload_ext tfprof_widgets``."""
    from .magic import uninstall

    uninstall(shell)
