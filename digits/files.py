"""Plain files that survive whatever happens to the process that writes them.

A file is replaced whole or not at all, a line is appended whole or skipped, and a lock tells whether its owner lives.
A folder may have been copied from somebody else: nothing is written through a link in it, only plain files are read.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

UNFINISHED = ".unfinished-"  # what names of files begin with until they are whole


class DigitsError(ValueError):
    """What was wrong and what to do, in a sentence that the page shows as it is."""


@contextlib.contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn an OSError inside into a DigitsError, `doing` being what failed, such as "write run.json"."""
    try:
        yield
    except OSError as error:
        raise DigitsError(f"Cannot {doing}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full. Delete datasets or runs that you no longer need, then try again."
    if error.errno == errno.EFBIG:
        return "the file would be larger than this account may write (ulimit -f). Choose fewer or smaller images."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission for {error.filename}. Choose a folder of your own."
    if error.errno == errno.ELOOP:
        return "it is a link, and nothing is written through links. Put a plain file there, or delete the link."
    if error.errno == errno.ENAMETOOLONG:
        return "the name is too long. Choose a shorter one."
    return f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}."


def open_plain(path: Path, flags: int) -> int:
    """Return `os.open(path, flags)` of a plain file; it is created with os.O_CREAT.

    What is opened to be written to is no link: one in a copied folder could lead to any file of the user's. Raises
    OSError otherwise, at once for a pipe, too, at which opening would wait for ever.
    """
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    descriptor = os.open(path, flags | os.O_NONBLOCK | (os.O_NOFOLLOW if writes else 0), 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    return descriptor


def open_log(path: Path, anew: bool = False) -> BinaryIO:
    """Return the log at `path`, to which a process appends what it prints; emptied first if `anew`. DigitsError."""
    with explained(f"write {Path(path).name} of {Path(path).parent.name}"):
        descriptor = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if anew else 0))
    return open(descriptor, "ab")


def _content(path: Path) -> bytes:
    with open(open_plain(path, os.O_RDONLY), "rb") as stream:
        return stream.read()


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace the file at `path` by what `write(stream)` writes; it is the old one or the new one, never half of it.

    Raises DigitsError if the disk is full or the folder refuses; the old file is then as it was.
    """
    path = Path(path)
    with explained(f"write {path.name}"):
        descriptor, unfinished = tempfile.mkstemp(prefix=f"{UNFINISHED}{path.name}-", dir=path.parent)
        try:
            with open(descriptor, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(unfinished, 0o644)
            os.replace(unfinished, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            raise
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Write the folder's entries to the disk, without which a renamed file may be gone after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Replace the JSON file at `path` by `value`. A loss that is not a number is written as NaN, as Python reads it."""
    data = (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
    write_file(path, lambda stream: stream.write(data))


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in the JSON file at `path`. Raises DigitsError if it is missing or is not a JSON object."""
    path = Path(path)
    with explained(f"read {path.name} of {path.parent.name}"):
        data = _content(path)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise DigitsError(f"{path.name} of {path.parent.name} is damaged: it is no JSON object. Delete or restore it.")
    return value


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Append `value` to the file of JSON lines at `path`, as one line. One process at a time may append.

    A line that an earlier process left torn stays a line of its own. Raises DigitsError if the disk is full; nothing is
    then appended.
    """
    path = Path(path)
    line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
    with explained(f"write {path.name}"):
        descriptor = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            _write_whole(descriptor, line, size)
        finally:
            os.close(descriptor)


def _write_whole(descriptor: int, data: bytes, size: int) -> None:
    """Write `data` at the end of a file of `size` bytes; if that fails halfway, the file has `size` bytes again."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects in a file of JSON lines; none if there is no file. Torn lines are skipped."""
    path = Path(path)
    with explained(f"read {path.name} of {path.parent.name}"):
        try:
            data = _content(path)
        except FileNotFoundError:
            return []
    values = []
    for line in data.split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(line)
            if isinstance(value, dict):
                values.append(value)
    return values


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Replace the .npy file at `path` by `array`. Arrays of Python objects are refused."""

    def write(stream: BinaryIO) -> None:
        # Into what is no file to NumPy: its own way of writing files does not tell why one fails, such as a full disk.
        np.lib.format.write_array(_Plain(stream), np.asanyarray(array), allow_pickle=False)  # type: ignore[arg-type]

    write_file(path, write)


class _Plain:
    """A stream with nothing but `write`."""

    def __init__(self, stream: BinaryIO) -> None:
        self.write = stream.write


def load_array(path: Path) -> NDArray[Any]:
    """Return the array of a .npy file, mapped: what is not read is not loaded, and it cannot be written to.

    Raises DigitsError if the file is missing, cut off, or holds anything but an array of numbers.
    """
    path = Path(path)
    with explained(f"read {path.name} of {path.parent.name}"):
        os.close(open_plain(path, os.O_RDONLY))
        try:
            return np.lib.format.open_memmap(path, mode="r")
        except (ValueError, EOFError, TypeError, SyntaxError, MemoryError, OverflowError) as error:
            raise DigitsError(f"{path.name} of {path.parent.name} is damaged ({error}). Build it again.") from error


def checksum(path: Path) -> str:
    """Return the SHA-256 of the file at `path`, in hexadecimal. Raises DigitsError if it cannot be read."""
    with explained(f"read {Path(path).name}"), open(open_plain(path, os.O_RDONLY), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def delete_folder(folder: Path) -> None:
    """Delete a folder with all that is in it. It disappears at once under its name, even if deleting is interrupted."""
    folder = Path(folder)
    with explained(f"delete {folder.name}"):
        doomed = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
        os.replace(folder, doomed / folder.name)
        shutil.rmtree(doomed)


class Lock:
    """A lock on a file that is held until `release()`, or until the process that holds it is no more, however it ended.

    with Lock(run / "lock") as lock: ...
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None

    def acquire(self, patience: float = 2.0) -> bool:
        """Take the lock and return True, or False if another process holds it. `patience`: seconds.

        Asking `is_locked` takes the lock for a moment, so one refusal does not tell that it is held.
        """
        with explained(f"lock {self.path.name} of {self.path.parent.name}"):
            descriptor = open_plain(self.path, os.O_RDWR | os.O_CREAT)
        deadline = time.monotonic() + patience
        while not _taken(descriptor):
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return False
            time.sleep(0.02)
        self._descriptor = descriptor
        return True

    @property
    def descriptor(self) -> int | None:
        """Return the open file that holds the lock, for a child process to inherit it (subprocess's `pass_fds`)."""
        return self._descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "Lock":
        if not self.acquire():
            raise DigitsError(f"Another process works on {self.path.parent.name}. Wait until it is done, or stop it.")
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_locked(path: Path) -> bool:
    """Return whether a process that lives holds the lock at `path`."""
    try:
        descriptor = open_plain(path, os.O_RDONLY)  # whoever may only read the workspace may ask, too
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.EINVAL:  # a pipe or a folder: no lock of ours
            return False
        raise
    try:
        # Shared, so that two that ask at the same time do not take each other for the owner.
        return not _taken(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _taken(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
