"""Reports as anywidgets: one that is displayed, and one that links a report's HTML to Python.

Importing this module imports anywidget and ipywidgets; nothing else in the package does.
"""

from __future__ import annotations

import json
from typing import Any

import anywidget
import traitlets

from tfprof_widgets.display import assets
from tfprof_widgets.display.payload import Payload


class _Linked(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget has no types here
    """What the reader does, as traits that follow the browser and lead it."""

    tab = traitlets.Unicode(None, allow_none=True, help="id of the tab shown").tag(sync=True)
    range_ms = traitlets.List(
        traitlets.Float(), default_value=None, allow_none=True, help="[from, to] of the timeline, in ms"
    ).tag(sync=True)
    selection = traitlets.Any(None, allow_none=True, help="what is selected: JSON-able").tag(sync=True)
    host = traitlets.Unicode(None, allow_none=True, help="host that tools of one host at a time show").tag(sync=True)
    highlight = traitlets.Unicode(None, allow_none=True, help="name that the timeline highlights").tag(sync=True)


class ReportWidget(_Linked):
    """A report that is linked to Python while it is displayed.

    Parameters
    ----------
    payload : Payload
        The report.
    """

    _esm = assets.esm("widget.js")

    # As text: notebooks saved with their widgets sort the keys of objects, and Bokeh's figures must be read in their order.
    spec = traitlets.Dict(help="the payload's spec").tag(
        sync=True, to_json=lambda spec, _: json.dumps(spec, allow_nan=False), from_json=lambda text, _: json.loads(text)
    )
    tables = traitlets.Dict(help="name to gzipped Arrow IPC stream").tag(sync=True)
    bokeh = traitlets.Bytes(help="bokeh.min.js, gzipped").tag(sync=True)

    def __init__(self, payload: Payload, **kwargs: Any) -> None:
        super().__init__(spec=payload.spec, tables=dict(payload.tables), bokeh=assets.bokeh_gz(), **kwargs)


class LinkWidget(_Linked):
    """Links the HTML of the report with the id `report_id` to Python. It is created, not displayed."""

    _esm = assets.esm("link.js")

    report_id = traitlets.Unicode(help="the payload's id").tag(sync=True)

    def __init__(self, report_id: str, **kwargs: Any) -> None:
        super().__init__(report_id=report_id, **kwargs)
