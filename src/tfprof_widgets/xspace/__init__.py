"""XSpace files: bytes to columns."""

from .reader import XSpace, XSpaceError, hosts, read
from .stats import Stats

__all__ = ["Stats", "XSpace", "XSpaceError", "hosts", "read"]
