"""Stand-ins for what a shared profile tells of its author: host names, user names, paths, addresses.

The texts of the profile itself are changed, before anything is made of them: what no longer is in the profile can be in no
table, figure or file.
"""

from __future__ import annotations

import getpass
import re
import socket
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .report import Report
    from .session import CaptureInfo
    from .xspace import Stats, XSpace

# Accounts that many machines have, and words that profiles are full of: they are replaced within paths only.
_COMMON = frozenset(
    {
        "root", "user", "users", "admin", "runner", "jovyan", "ubuntu", "debian", "ec2-user", "azureuser", "colab",
        "default", "guest", "nobody", "public", "shared", "docker", "app", "localhost", "localhost.localdomain",
        "host", "worker", "tf", "tensorflow", "keras", "python", "train", "test", "predict", "model", "data", "gpu",
        "cpu", "jax", "xla",
    }
)  # fmt: skip
# Documentation that profilers and TensorFlow point to.
_PUBLIC = re.compile(r"(.+\.)?(tensorflow\.org|nvidia\.com|github\.com|python\.org|keras\.io|openxla\.org|amd\.com)")
# What of a path tells only which library it is in.
_LIBRARY = re.compile(r".*[/\\]((?:site|dist)-packages[/\\].+)|.*?[/\\](python\d\.\d+[/\\].+\.py)")
_HOME = re.compile(r"(?:/home|/Users|/user|[A-Za-z]:[/\\]Users)[/\\]([^/\\\s:]+)", re.IGNORECASE)
_EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"

_IN_PATH = r"[^\s/\\:*?\"'<>|,;()\[\]{}=]"
# A directory's name may have blanks in it; where a file's name with blanks ends, only quotes and brackets tell.
_DIRECTORY = rf"{_IN_PATH}+(?: {_IN_PATH}+)*"
_GROUP = "[0-9a-f]{1,4}"  # of an address of IPv6
_NO_DEVICE = r"(?!/?(?:job|replica|task|device|host|gpu|cpu|tpu):)"
_PATTERN = re.compile(
    rf"(?P<email>{_EMAIL})"
    r"|(?P<url>(?<![\w.])[A-Za-z][\w+.-]+://[^\s\"'<>|,;()\[\]{}]+)"
    rf"|(?P<quoted>(?<=[\"'\[(]){_NO_DEVICE}(?:~?/|[A-Za-z]:\\)[^\"'\])\n]*[/\\][^\"'\])\n]*(?=[\"'\])]))"
    rf"|(?P<windows>(?<![A-Za-z])[A-Za-z]:[\\/](?:{_DIRECTORY}[\\/])*{_IN_PATH}*|\\\\(?:{_DIRECTORY}\\)+{_IN_PATH}*)"
    # Not the names of devices (/job:worker/replica:0/…), nor the middle of an op's name.
    rf"|(?P<path>(?<![\w./)\]])(?:~{_IN_PATH}*)?/(?!/){_NO_DEVICE}"
    rf"(?:(?:{_DIRECTORY}/)+{_IN_PATH}*|{_IN_PATH}+\.\w+))"
    r"|(?P<address>(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"
    # Of a network, a site or a link, or in full: `add::Add` would be an address too.
    rf"|(?<![\w:.])(?:(?:{_GROUP}:){{7}}|(?:2{_GROUP}|f[cd]{_GROUP}|fe80):(?:{_GROUP}:|:){{1,6}}){_GROUP}(?![\w:.]))"
    r"|(?P<host>(?<![\w./-])(?:[\w-]+\.)+(?:com|net|org|internal|local|corp|lan|cloud|edu|gov)(?![\w.-]))",
    re.IGNORECASE,
)
# A text that is nothing but a path, which may then have blanks in it.
_WHOLE_PATH = re.compile(r"(?:/|~/|[A-Za-z]:\\|\\\\)[^:;\"'<>|\n]*[/\\][^:;\"'<>|\n]*")
# As Python's tracer names calls.
_CALL = re.compile(r"\$((?:/|[A-Za-z]:\\).+?):(\d+ .*)", re.DOTALL)


class Anonymizer:
    """Replaces what identifies people and machines by stand-ins, the same one for the same thing.

    Parameters
    ----------
    spaces : sequence of XSpace
        Profiles: the names of their hosts, and of the users whose home directories they mention, are replaced wherever
        they stand by themselves.
    texts : iterable of str
        More texts in which to look for users.
    """

    def __init__(self, spaces: Sequence[XSpace], texts: Iterable[str] = ()) -> None:
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._count: dict[str, int] = {}
        self._names: dict[str, str] = {}
        # Those of the profile first, so that they have the first numbers.
        for space in spaces:
            for name in space.hostnames:
                self._add_name("host", name)
        self._add_name("host", socket.gethostname())
        users = [_account()]
        for text in (*texts, *(text for space in spaces for text in _texts(space))):
            if "/" in text or "\\" in text:
                users += _HOME.findall(text)
            if "@" in text:
                users += [found.partition("@")[0] for found in re.findall(_EMAIL, text)]
        for name in dict.fromkeys(users):
            self._add_name("user", name)
        known = sorted(self._names, key=len, reverse=True)
        words = "|".join(map(re.escape, known))
        self._known = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])", re.IGNORECASE) if known else None
        self._done: dict[str, str] = {}

    def _add_name(self, kind: str, name: str) -> None:
        """Replace a name wherever it stands; of a host's full name also the first part."""
        if len(name) < 2 or name.lower() in _COMMON:
            return
        stand_in = self._stand_in(kind, name)
        self._names.setdefault(name.lower(), stand_in)
        first = name.partition(".")[0].lower()
        if kind == "host" and len(first) > 1 and first not in _COMMON and not first.isdigit():
            self._names.setdefault(first, stand_in)

    def _stand_in(self, kind: str, original: str, suffix: str = "") -> str:
        key = (kind, original.lower() if kind in ("host", "user") else original)
        if key not in self._stand_ins:
            self._count[kind] = self._count.get(kind, 0) + 1
            self._stand_ins[key] = f"{kind}-{self._count[kind]}{suffix}"
        return self._stand_ins[key]

    def __call__(self, text: str) -> str:
        """Return a text with stand-ins."""
        done = self._done.get(text)
        if done is None:
            done = self._done[text] = self._replaced(text)
        return done

    def _replaced(self, text: str) -> str:
        if call := _CALL.fullmatch(text):
            return f"${self._path(call[1])}:{self._replaced(call[2])}"
        if _WHOLE_PATH.fullmatch(text) and _PATTERN.match(text):
            return self._path(text)
        parts = []
        end = 0
        for found in _PATTERN.finditer(text):
            parts += [self._words(text[end : found.start()]), self._one(found)]
            end = found.end()
        return "".join([*parts, self._words(text[end:])])

    def _one(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found[0]
        if kind == "email":
            user, _, host = text.partition("@")
            return f"{self._stand_in('user', user)}@{self._stand_in('host', host)}"
        if kind in ("address", "host"):
            if text in ("127.0.0.1", "0.0.0.0") or (kind == "host" and _PUBLIC.fullmatch(text.lower())):  # noqa: S104
                return text
            return self._names.get(text.lower()) or self._stand_in("host", text)
        path = text.rstrip(".:")
        if kind == "url":
            return self._url(path) + text[len(path) :]
        return self._path(path) + text[len(path) :]

    def _url(self, text: str) -> str:
        scheme, _, rest = text.partition("://")
        if scheme.lower() not in ("http", "https", "grpc", "tcp", "ws", "wss"):
            return f"{scheme}://{self._path(rest)}"
        address, slash, path = rest.partition("/")
        host, colon, port = address.rpartition("@")[2].partition(":")
        if _PUBLIC.fullmatch(host.lower()):
            return self._words(text)
        if host not in ("localhost", "127.0.0.1", "0.0.0.0"):  # noqa: S104
            host = self._names.get(host.lower()) or self._stand_in("host", host)
        return f"{scheme}://{host}{colon}{port}{slash}{self._path(path) if path else ''}"

    def _path(self, text: str) -> str:
        if library := _LIBRARY.fullmatch(text):
            return self._words(library[1] or library[2])
        suffix = re.search(r"(?<=[\w-])\.[A-Za-z]\w{0,9}$", text)
        return self._stand_in("path", text, suffix[0] if suffix else "")

    def _words(self, text: str) -> str:
        if self._known is None or not text:
            return text
        return self._known.sub(lambda found: self._names[found[0].lower()], text)

    # ---- what a report is made of ------------------------------------------------------------------------------

    def space(self, space: XSpace) -> XSpace:
        """Return a profile with stand-ins in all its texts; the numbers are the same arrays."""
        name = space.name.replace("\\", "/").rpartition("/")[2]
        base, dot, suffix = name.partition(".xplane.pb")
        # A file is called as its host, if it has one.
        host = (
            self(space.hostname)
            if space.hostname
            else self(base)
            if self(base) != base
            else self._stand_in("host", base)
        )
        return replace(
            space,
            name=host + dot + suffix,
            plane_name=self._all(space.plane_name),
            plane_stats=[{key: self._value(value) for key, value in stats.items()} for stats in space.plane_stats],
            line_name=self._all(space.line_name),
            meta_name=self._all(space.meta_name),
            meta_display_name=self._all(space.meta_display_name),
            stats=self._stats(space.stats),
            meta_stats=self._stats(space.meta_stats),
            errors=self._all(space.errors),
            warnings=self._all(space.warnings),
            hostnames=self._all(space.hostnames),
            notes=self._all(space.notes),
            content=None,
        )

    def capture(self, capture: CaptureInfo) -> CaptureInfo:
        """Return how a capture was made, without the cell's source and without paths."""
        changed: dict[str, Any] = {}
        for each in fields(capture):
            value = getattr(capture, each.name)
            if each.name == "source":
                changed[each.name] = ""
            elif isinstance(value, Path):
                changed[each.name] = None
            elif isinstance(value, str):
                changed[each.name] = self(value)
            elif isinstance(value, list | tuple):
                changed[each.name] = type(value)(self(v) if isinstance(v, str) else v for v in value)
        return replace(capture, **changed)

    def statement(self) -> str:
        """Say what was replaced, in numbers."""
        # Names of this machine and its user, for example, need not be in the texts.
        found = {each for text in self._done.values() for each in re.findall(r"(?:host|user|path)-\d+", text)}
        used = [kind for (kind, _), stand_in in self._stand_ins.items() if Path(stand_in).stem in found]
        counted = [
            f"{number} {noun}{'' if number == 1 else 's'}"
            for kind, noun in (("host", "host name"), ("user", "user name"), ("path", "path"))
            if (number := used.count(kind))
        ]
        what = ", ".join(counted) or "nothing in the texts"
        return f"Anonymized: {what} replaced by stand-ins (host-1, user-1, path-1 …)."

    def _all(self, texts: Sequence[str]) -> list[str]:
        return [self(text) for text in texts]

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, bytes):
            # A message within the message: what has lengths in it can't be changed, only left out. A length before a
            # text may look like a letter of it.
            text = re.sub(r"(?=/|[A-Za-z]:\\)", " ", value.decode("latin-1"))
            return value if self._replaced(text) == text else b""
        return value

    def _stats(self, stats: Stats) -> Stats:
        return stats.with_texts(self._value)


def anonymized(report: Report) -> Report:
    """Return a report with stand-ins in all its texts; see `Report.anonymized`."""
    from .report import Report

    spaces = [host.trace.space for host in report.hosts]
    about = [] if report.capture is None else [report.capture.name, *report.capture.notes, report.capture.error or ""]
    stand_in = Anonymizer(spaces, [*about, *report._notes])
    capture = None if report.capture is None else stand_in.capture(report.capture)
    made = Report([stand_in.space(space) for space in spaces], capture=capture)
    for new, old in zip(made.hosts, report.hosts, strict=True):
        new.trace.host = stand_in(old.trace.host)
    made._own_tracks = [
        {
            stand_in(name): frame.assign(name=[stand_in(str(each)) for each in frame["name"]])
            for name, frame in own.items()
        }
        for own in report._own_tracks
    ]
    made._notes = [*map(stand_in, report._notes), stand_in.statement()]
    made.is_anonymized = True
    made.max_mb = report.max_mb
    return made


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name, in some containers
        return ""


def _texts(space: XSpace) -> Iterator[str]:
    yield space.name
    yield from space.plane_name
    yield from space.line_name
    yield from space.meta_name
    yield from space.errors
    yield from space.warnings
    for stats in (space.stats, space.meta_stats):
        yield from stats.texts
    for values in space.plane_stats:
        for value in values.values():
            if isinstance(value, str | bytes):
                yield value if isinstance(value, str) else value.decode("latin-1")
