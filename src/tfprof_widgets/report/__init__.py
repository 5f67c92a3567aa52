"""The report: where the stages meet. Every part is made on first use, once.

`report` is the class, with the tables as properties. What it shows is made by `head` (facts and notes), `tabs` (a tab a tool), `timelines`
(what the trace draws, whole or in part) and `page` (all of it together, within its size); `link` hears what its displays tell and ask,
and `opening` makes reports of what was captured before.
"""

from .opening import load, load_run, runs
from .report import Report

__all__ = ["Report", "load", "load_run", "runs"]
