"""Profiles made for tests and demos: byte-exact XSpace files, by hand or as whole captures."""

from .builder import Compressed, Event, Line, Plane, Ref, Space, Text, UInt

__all__ = ["Compressed", "Event", "Line", "Plane", "Ref", "Space", "Text", "UInt"]
