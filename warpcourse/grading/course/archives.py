"""Files in archives: zips, tars and folders, one inside another.

They are read in memory and nothing is unpacked: a path in an archive names no place on this machine.
"""

import bz2
import functools
import gzip
import io
import itertools
import re
import stat
import tarfile
import time
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from warpcourse.grading.course.submissions import MAX_ENTRIES
from warpcourse.grading.exchange.artefacts import clean_text

MAX_NAME = 255  # characters of a file's name, as most disks have it
_JUNK = re.compile(r"__MACOSX|\.ipynb_checkpoints|\.DS_Store|Thumbs\.db|desktop\.ini|\._.*")


class ArchiveError(Exception):
    """An archive or a file in it is not read. The message says why."""


class Entry(NamedTuple):
    """A file: its path in composed Unicode, (year, ..., second) of its last change, is it neither link nor device."""

    parts: tuple[str, ...]
    when: tuple[int, ...]
    plain: bool
    open: Callable[[], Any]


def of_class(path: Path) -> list[Entry]:
    """Return the files of a class's archive or folder. Raises `ArchiveError`, OSError."""
    if path.is_dir():
        files = ((file, file.lstat()) for file in sorted(path.rglob("*")))
        return _entries(
            (str(f.relative_to(path)), time.gmtime(s.st_mtime), s.st_mode, functools.partial(f.open, "rb"))
            for f, s in files
        )
    try:
        return _entries(_zip(path) if zipfile.is_zipfile(path) else _tar(tarfile.open(path)))
    except (tarfile.TarError, zipfile.BadZipFile) as error:
        raise ArchiveError(f"{path} cannot be read as a zip or a tar ({error}); download it again") from error


def inside(name: str, content: bytes) -> list[Entry] | None:
    """Return the files of a student's archive, None if `content` is none. Raises whatever its format raises."""
    if content.startswith((b"PK\3\4", b"PK\5\6")):
        if content.count(b"PK\1\2") > MAX_ENTRIES:  # before zipfile makes an object of each
            raise ArchiveError(f"more than {MAX_ENTRIES} files")
        return _entries(_zip(io.BytesIO(content)))
    if content[257:262] == b"ustar":
        return _entries(itertools.islice(_tar(tarfile.open(fileobj=io.BytesIO(content))), MAX_ENTRIES))
    for magic, opened in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open)):
        if content.startswith(magic):
            inner = re.sub(r"(\.gz|\.bz2)$", "", re.sub(r"\.t(gz|bz2?)$", ".tar", name))
            return [Entry((inner,), (), True, functools.partial(opened, io.BytesIO(content)))]
    return None


def _zip(file: Path | io.BytesIO) -> Iterator[tuple]:
    archive = zipfile.ZipFile(file)
    for info in archive.infolist():
        mode = stat.S_IFDIR if info.filename.endswith(("/", "\\")) else info.external_attr >> 16
        # Windows writes no mode.
        mode = mode if stat.S_IFMT(mode) else stat.S_IFREG
        yield info.filename, info.date_time, mode, functools.partial(_opened, archive, info)


def _opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    # Of the other methods zipfile unpacks whole blocks, whatever it was asked for: gigabytes of a kilobyte.
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError("it has a password, or few programs read it; pack it again as an ordinary zip")
    return archive.open(info)


def _tar(archive: tarfile.TarFile) -> Iterator[tuple]:
    for member in archive:
        mode = stat.S_IFREG if member.isreg() else stat.S_IFDIR if member.isdir() else stat.S_IFLNK
        when = time.gmtime(min(max(member.mtime, 0), 2**33))
        yield member.name, when, mode, functools.partial(archive.extractfile, member)


def _entries(found: Iterable[tuple]) -> list[Entry]:
    entries = []
    for path, when, mode, opened in found:
        # Windows has written backslashes into archives.
        parts = re.split(r"[\\/]", unicodedata.normalize("NFC", clean_text(path)))
        parts = [part[-MAX_NAME:] for part in parts if part not in ("", ".", "..")]
        if parts and not stat.S_ISDIR(mode) and not any(map(_JUNK.fullmatch, parts)):
            entries.append(Entry(tuple(parts), tuple(when)[:6], stat.S_ISREG(mode), opened))
    return entries
