"""Look into a zip without unpacking it: nothing is written, no link is followed, no bomb goes off.

What an archive says of its own sizes is not believed; reading stops where the limit is.
"""

import contextlib
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MOST_ENTRIES = 20_000  # a class of a thousand that hands in twenty files each
LARGEST = 100 * 2**20  # bytes of one file
RATIO, SMALL = 300, 10 * 2**20  # beyond so many bytes, nothing honest shrinks to a 300th
JUNK = ("__MACOSX", ".ipynb_checkpoints")
SAFE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others may ask for gigabytes of memory
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)


class BadArchive(ValueError):
    """An archive, or a file in it, that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file in an archive. `parts` are its folders and its name."""

    parts: tuple[str, ...]
    info: zipfile.ZipInfo

    @property
    def name(self) -> str:
        return self.parts[-1]

    def __str__(self) -> str:
        return "/".join(self.parts)


def is_zip(path: Path) -> bool:
    """By its first bytes: the name says little."""
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


@contextlib.contextmanager
def opened(source: Path | BinaryIO, name: str) -> Iterator[zipfile.ZipFile]:
    """The archive for reading; `name` is for messages. Raises BadArchive."""
    try:
        archive = zipfile.ZipFile(source)
    except DAMAGED as error:
        raise BadArchive(f"{name} is damaged or no zip ({error})") from None
    with archive:
        if (entries := len(archive.infolist())) > MOST_ENTRIES:
            raise BadArchive(f"{name} has {entries} entries, at most {MOST_ENTRIES} are read")
        yield archive


def members(archive: zipfile.ZipFile) -> tuple[list[Member], list[str]]:
    """The files in it that somebody put there, and a line for each that is refused."""
    found, refused = [], []
    for info in archive.infolist():
        path = _name(info)
        parts = tuple(part for part in path.split("/") if part not in ("", "."))
        if info.is_dir() or path.endswith("/") or not parts or set(parts) & set(JUNK):
            continue
        if stat.S_ISLNK(info.external_attr >> 16):
            refused.append(f"{path} is a link and was not followed")
        elif ".." in parts or path.startswith("/") or path[1:2] == ":":
            refused.append(f"{path} points out of the archive and was not read")
        elif not parts[-1].startswith("."):
            found.append(Member(parts, info))
    return found, refused


def content(archive: zipfile.ZipFile, member: Member) -> bytes:
    """The bytes of one file. Raises BadArchive."""
    info = member.info
    if info.flag_bits & 1:
        raise BadArchive(f"{member.name} is protected by a password")
    if info.compress_type not in SAFE:
        raise BadArchive(f"{member.name} is packed in a way that is not read here")
    try:
        with archive.open(info) as file:
            data = file.read(LARGEST + 1)
    except DAMAGED as error:
        raise BadArchive(f"{member.name} is damaged ({error})") from None
    if len(data) > LARGEST:
        raise BadArchive(f"{member.name} has more than {LARGEST // 2**20} MiB")
    if len(data) > SMALL and len(data) > RATIO * max(info.compress_size, 1):
        raise BadArchive(f"{member.name} unpacks to {len(data) // info.compress_size} times itself")
    return data


def _name(info: zipfile.ZipInfo) -> str:
    """With / between folders; names that were UTF-8 without saying so (macOS) are mended."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode()
    return name.replace("\\", "/")
