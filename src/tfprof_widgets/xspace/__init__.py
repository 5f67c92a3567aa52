"""XSpace files: bytes to columns."""

from .hosts import hosts, read_hosts
from .reader import XSpace, XSpaceError, read
from .stats import Stats

__all__ = ["Stats", "XSpace", "XSpaceError", "hosts", "read", "read_hosts"]
