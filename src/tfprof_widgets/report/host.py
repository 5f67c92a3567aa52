"""One host's part of a report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..analysis.events import Trace
from ..analysis.memory import memory
from ..analysis.steps import Steps, find_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass
class HostProfile:
    """One host's part of a report."""

    trace: Trace

    @cached_property
    def steps(self) -> Steps:
        """The host's steps."""
        return find_steps(self.trace)

    @cached_property
    def memory(self) -> pd.DataFrame:
        """The host's allocations and deallocations, in time order."""
        return memory(self.trace, self.step_of_event)

    @cached_property
    def step_of_event(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Step of each event of the trace; -1 for events of no step."""
        return self.steps.step_of(self.trace)


def of_hosts(hosts: Sequence[HostProfile], make: Callable[[HostProfile], pd.DataFrame]) -> pd.DataFrame:
    """Table of every host, one below the other; with several hosts, the first column tells which."""
    tables = [make(host) for host in hosts]
    if len(tables) == 1:
        return tables[0]
    named = [table.assign(host=host.trace.host) for host, table in zip(hosts, tables, strict=True)]
    table = pd.concat(named, ignore_index=True)
    return table[["host", *(name for name in table.columns if name != "host")]]
