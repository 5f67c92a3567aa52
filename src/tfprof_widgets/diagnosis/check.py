"""One finding of a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass

OK, INFO, WARNING, ERROR = "ok", "info", "warning", "error"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
        Short and stable, for programs: ``libcupti``, ``privileges``, …
    status : str
        ``ok``, ``info`` (worth knowing), ``warning`` (may be why something is missing) or ``error`` (something is missing).
    found : str
        What was found.
    why : str
        What that means.
    do : str
        What to do; empty if nothing.
    commands : tuple of str
        What to type for that.
    evidence : str
        The message that tells it, where there is one.
    """

    name: str
    status: str
    found: str
    why: str = ""
    do: str = ""
    commands: tuple[str, ...] = ()
    evidence: str = ""

    @property
    def note(self) -> str:
        """What a reader of a report must know of it, in a few sentences."""
        commands = f"Commands: {' · '.join(self.commands)}" if self.commands else ""
        parts = (self.found, self.evidence, self.why if not self.evidence else "", self.do, commands)
        return " ".join(part for part in parts if part)
