"""What several files of unit tests share."""

from __future__ import annotations

from profiler_stand_in import nothing_is_left, profiler  # noqa: F401  # fixtures
