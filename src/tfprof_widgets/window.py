"""Which part of a run is recorded: from when, until when, and at most how much."""

from __future__ import annotations

import math
from dataclasses import dataclass

# What a cell of an hour may record unless more is asked for. A loop of small eager ops, the densest there is, makes
# about 140,000 events a second: a minute of it is a file of 150 MB, and 83 bytes of memory an event until the stop.
MAX_DURATION_S = 60.0
MAX_GROWTH_GB = 2.0


@dataclass(frozen=True)
class Window:
    """The part of a run that is recorded.

    It begins as soon as all that is asked for at its start is true, and ends with the first that is at its end.

    Attributes
    ----------
    delay_s
        Begin no sooner than this many seconds after the cell.
    duration_s
        Record for so many seconds; None for no end.
    steps
        Record the steps ``(first, end)``, counted from 0 after the warm-up, ``end`` left out as in a slice (None: all that
        follow); None not to count steps.
    warmup
        Leave out so many steps first.
    max_duration_s
        Record no longer than this, whatever else is asked for; a longer `duration_s` wins. `inf` for no limit.
    max_growth_gb
        Stop when the process has grown by so many gigabytes while recording: what is recorded is in memory until the stop.
        `inf` for no limit.
    """

    delay_s: float = 0.0
    duration_s: float | None = None
    steps: tuple[int, int | None] | None = None
    warmup: int = 0
    max_duration_s: float = MAX_DURATION_S
    max_growth_gb: float = MAX_GROWTH_GB

    def __post_init__(self) -> None:
        if not 0 <= self.delay_s < math.inf:
            raise ValueError(f"delay is a number of seconds, not {self.delay_s!r}")
        if self.duration_s is not None and not 0 < self.duration_s < math.inf:
            raise ValueError(f"duration is a number of seconds above 0, not {self.duration_s!r}")
        if self.warmup < 0:
            raise ValueError(f"warmup is a number of steps, not {self.warmup!r}")
        if not self.max_duration_s > 0:
            raise ValueError(
                f"max_duration is a number of seconds above 0, or inf for no limit, not {self.max_duration_s!r}"
            )
        if not self.max_growth_gb > 0:
            raise ValueError(
                f"max_memory is a number of gigabytes above 0, or inf for no limit, not {self.max_growth_gb!r}"
            )
        if self.steps is not None:
            try:
                first, end = self.steps
            except (TypeError, ValueError):
                raise ValueError(f"steps are (FIRST, END) or 'FIRST:END', not {self.steps!r}") from None
            if first < 0 or (end is not None and end <= first):
                raise ValueError(f"steps are FIRST:END with FIRST below END, not {_range(first, end)}")

    @property
    def counts_steps(self) -> bool:
        """Whether steps are counted; the window then begins with one."""
        return self.steps is not None or self.warmup > 0

    @property
    def opens_at_once(self) -> bool:
        """Whether it begins with the cell."""
        return not self.counts_steps and self.delay_s == 0

    @property
    def first_step(self) -> int:
        """The first step that is recorded, counted from the start of the cell."""
        return self.warmup + (self.steps[0] if self.steps else 0)

    @property
    def end_step(self) -> int | None:
        """The first step that isn't recorded any more; None if there is none."""
        return self.warmup + self.steps[1] if self.steps and self.steps[1] is not None else None

    @property
    def limit_s(self) -> float:
        """Seconds after which the recording ends in any case."""
        return self.max_duration_s if self.duration_s is None else self.duration_s


def parse_steps(text: str) -> tuple[int, int | None]:
    """Return the pair that ``A:B``, ``A:`` or ``:B`` means.

    Raises
    ------
    ValueError
        If the text is nothing of the kind; the message says what is expected.
    """
    first, colon, end = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return int(first or 0), int(end) if end else None
    except ValueError:
        raise ValueError(f"steps are FIRST:END, such as 10:20 for the steps 10 to 19, not {text!r}") from None


def _range(first: int, end: int | None) -> str:
    return f"{first}:{'' if end is None else end}"
