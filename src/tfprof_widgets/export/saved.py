"""A capture as one file: the hosts' profiles as the profiler wrote them, and how they were captured.

It is a zip archive. Its profiles lie as in a log directory, so that TensorBoard opens what is unpacked from it.
"""

from __future__ import annotations

import json
import os
import typing
import zipfile
import zlib
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import pyarrow as pa

from ..session import CaptureInfo
from ..xspace import XSpaceError, read
from ..xspace.logdir import host_name, opened, read_bytes, run_name
from ..xspace.reader import unpacked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..xspace import XSpace

SUFFIX = ".tfprof"
_FORMAT = 1
_MANIFEST = "capture.json"
_RUN = "plugins/profile/saved"


class Saved(NamedTuple):
    """What such a file holds.

    ``spaces`` are the hosts' profiles, ``tracks`` the user's own tracks of each host by name.
    """

    spaces: list[XSpace]
    capture: CaptureInfo | None
    notes: list[str]
    tracks: list[dict[str, pd.DataFrame]]


def is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether a path is such a file, whatever its name."""
    text = os.fspath(path)
    if "://" in text:
        return text.endswith(SUFFIX)
    local = Path(text).expanduser()
    return local.is_file() and zipfile.is_zipfile(local)


def write(
    path: str | os.PathLike[str],
    spaces: Sequence[XSpace],
    capture: CaptureInfo | None,
    notes: Sequence[str],
    tracks: Sequence[Mapping[str, pd.DataFrame]],
    version: str,
) -> Path:
    """Write a capture into one file.

    Raises
    ------
    XSpaceError
        If a profile that was opened from a file is there no more, or was changed since.
    """
    target = Path(path).expanduser()
    contents = [_content(space) for space in spaces]
    # A name on a disk may be bytes that are no text.
    names = [host_name(space.name).encode("utf-8", "replace").decode() for space in spaces]
    files = _distinct([name or "profile" for name in names])
    kept = [(host, name, frame) for host, of_host in enumerate(tracks) for name, frame in of_host.items()]
    manifest: dict[str, Any] = {
        "format": _FORMAT,
        "version": version,
        "capture": None if capture is None else asdict(capture),
        "notes": list(notes),
        "run": run_name(spaces[0].name) if spaces else "",  # what a report of several hosts is called
        "hosts": [f"{_RUN}/{file}.xplane.pb" for file in files],
        # What they are called here: workers on one machine by their addresses, which their profiles don't know.
        "hostnames": [space.hostnames for space in spaces],
        "tracks": [{"host": host, "name": name, "file": f"tracks/{i}.arrow"} for i, (host, name, _) in enumerate(kept)],
    }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MANIFEST, json.dumps(manifest, indent=1, default=str))
        for file, content in zip(manifest["hosts"], contents, strict=True):
            archive.writestr(file, content)
        for track, (_, _, frame) in zip(manifest["tracks"], kept, strict=True):
            sink = pa.BufferOutputStream()
            table = pa.Table.from_pandas(frame, preserve_index=False)
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            archive.writestr(track["file"], sink.getvalue().to_pybytes())
    return target


def read_saved(path: str | os.PathLike[str]) -> Saved:
    """Read a file that `write` has written.

    Raises
    ------
    FileNotFoundError
        If there is none.
    XSpaceError
        If it is damaged, is something else, or was written by a version to come.
    """
    text = os.fspath(path)
    try:
        with opened(text) as file, zipfile.ZipFile(file) as archive:
            manifest = json.loads(archive.read(_MANIFEST))
            if manifest["format"] > _FORMAT:
                msg = (
                    f"{text}: written by tfprof_widgets {manifest.get('version', '')}, in a format that this version doesn't "
                    "know. Update tfprof_widgets to open it."
                )
                raise XSpaceError(msg)
            spaces = [read(archive.read(name), name=f"{text}/{name}", keep=True) for name in manifest["hosts"]]
            run = manifest.get("run", run_name(_RUN + "/"))
            for space in spaces:
                file = space.name.rpartition("/")[2]
                space.name = f"{text}/{run}/{file}" if run else file
            for space, hostnames in zip(spaces, manifest.get("hostnames", []), strict=False):
                space.hostnames = [str(hostname) for hostname in hostnames]
            tracks: list[dict[str, pd.DataFrame]] = [{} for _ in spaces]
            for track in manifest["tracks"]:
                table = pa.ipc.open_file(archive.read(track["file"])).read_all()
                tracks[track["host"]][track["name"]] = table.to_pandas()
            capture = None if manifest["capture"] is None else _restored(CaptureInfo, manifest["capture"])
            return Saved(spaces, capture, list(manifest["notes"]), tracks)
    except XSpaceError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        KeyError,
        IndexError,
        AttributeError,
        TypeError,
        ValueError,  # pyarrow's and JSON's too
        RuntimeError,  # encrypted, or packed in a way that is not known
    ) as error:
        msg = (
            f"{text}: not a capture that report.save() wrote, or a damaged one ({type(error).__name__}: {error}). If it was "
            "copied, copy it again."
        )
        raise XSpaceError(msg) from error


def _content(space: XSpace) -> bytes:
    """Bytes of a profile: kept from when it was read, or read again."""
    if space.content is not None:
        return space.content
    try:
        content = unpacked(read_bytes(space.name), space.name)
    except OSError as error:
        msg = f"{space.name}: this profile was opened from there, and can't be read again to be saved ({error})."
        raise XSpaceError(msg) from error
    if len(content) != space.size_bytes or zlib.crc32(content) != space.checksum:
        msg = f"{space.name}: the file has changed since this report was made of it; load it again, then save."
        raise XSpaceError(msg)
    return content


def _distinct(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result


def _restored(kind: type, values: Mapping[str, Any]) -> Any:
    """Make a dataclass of what was written of one; fields that this version doesn't know are left out."""
    hints = typing.get_type_hints(kind)
    made = {}
    for each in fields(kind):
        if each.name in values:
            value, hint = values[each.name], hints[each.name]
            if is_dataclass(hint):
                value = _restored(typing.cast("type", hint), value)
            elif value is not None and Path in typing.get_args(hint):
                value = Path(value)
            elif isinstance(value, list) and hint != list[str]:
                value = tuple(value)  # JSON has no tuples
            made[each.name] = value
    return kind(**made)
