"""Submissions, read from their folders. Nothing in them is trusted: reading has limits and follows no links."""

import contextlib
import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from warpcourse.grading.course.outputs_left_out import MAX_NOTEBOOK, MAX_WITH_OUTPUTS, without_outputs
from warpcourse.grading.exchange.artefacts import clean_text

MAX_FILES = 500
MAX_ENTRIES = 20_000  # files, folders and all else
MAX_BYTES = 64 * 2**20  # all files together
# Of a path inside the folder, in bytes: it must fit wherever the grader copies the file.
MAX_PATH = 1000
MAX_NOTES = 20
TIMESTAMP = "timestamp.txt"  # written by nbgrader when a student submits, and beside it:
SECRET = "submission_secret.txt"
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LEFT_OUT = {".ipynb_checkpoints", "__pycache__", "feedback"}  # as in nbgrader's CourseDirectory.ignore


@dataclass(frozen=True)
class Submission:
    """One student's submission for one assignment.

    `files`: path relative to the folder, with "/" -> content. `timestamp`: when it was handed in, in UTC, None if
    unknown. `hash`: of paths and contents, without the timestamp. `notes`: what was left out and why. `unusable`:
    (reason, status) if it cannot be read or exceeds the limits; `files` is then empty.
    """

    student: str
    files: dict[str, bytes]
    timestamp: datetime | None
    hash: str
    notes: tuple[str, ...] = ()
    unusable: tuple[str, str] | None = None

    @property
    def size(self) -> int:
        """Return the bytes of its files."""
        return sum(map(len, self.files.values()))


def read(student: str, folder: Path, dated: bool = False) -> Submission:
    """Read the submission in `folder`, which lies in the student's. Leaves out what is no plain file.

    Follows no link: neither these two folders nor anything in them may be one. `dated`: the instructor vouches for
    each timestamp.txt; otherwise one that nbgrader did not write is the student's own word and not believed.
    """
    for place in (folder.parent, folder):
        mode = place.lstat().st_mode
        if not stat.S_ISDIR(mode):
            what = "a link, which the grader does not follow" if stat.S_ISLNK(mode) else "no folder"
            reason = f"{place.name} is {what}: put the folder with the notebook there."
            digest = hashlib.sha256(reason.encode(errors="replace"))
            # A file among the students' folders may have nothing to do with any of them: no score for that.
            status = "student_crash" if stat.S_ISLNK(mode) or place == folder else "infra_error"
            return Submission(student, {}, None, digest.hexdigest(), (), (clean_text(reason), status))
    found = _Walk(folder)
    found.notes += found.unreadable[:MAX_NOTES]
    timestamp = _timestamp(folder, found.notes, dated)
    sizes = found.sizes
    sizes.pop(TIMESTAMP, None)
    shorter = {} if found.excess else _without_outputs(folder, sizes, found.notes)
    excess = found.excess or _excess(sizes)
    if excess:
        digest = hashlib.sha256(repr(sorted(sizes.items())).encode())
        return Submission(student, {}, timestamp, digest.hexdigest(), _shortened(found.notes), (excess, "limit"))
    files = {}
    digest = hashlib.sha256()
    for path in sorted(sizes):
        try:
            content = shorter.get(path) or _content(folder, path, MAX_BYTES)
        except OSError as error:
            found.cannot_read(path, error)
            continue
        if content is None:
            found.notes.append(f"{path} is not a plain file and was left out.")
            continue
        files[path] = content
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    notes = _shortened(found.notes)
    notebook = f"{folder.name}.ipynb"
    if found.unreadable and notebook not in files:
        reason = (
            f"{found.unreadable[0]} Make the submission readable, for example with "
            f"`chmod -R u+rwX {folder}`, then run the same command again."
        )
        return Submission(student, {}, timestamp, digest.hexdigest(), notes, (reason, "infra_error"))
    if (folder / notebook).is_dir():
        reason = f"{notebook} is missing: there is a folder of that name, where a notebook belongs."
        return Submission(student, {}, timestamp, digest.hexdigest(), notes, (reason, "student_crash"))
    return Submission(student, files, timestamp, digest.hexdigest(), notes)


def copy(folder: Path, to: Path) -> tuple[str, ...]:
    """Copy the plain files of a hand-in, following no link, the smallest first. Return what was left out and why.

    Raises OSError where `to` cannot be written.
    """
    found, left = _Walk(folder), MAX_WITH_OUTPUTS
    to.mkdir(parents=True)
    for path in sorted(found.sizes, key=found.sizes.__getitem__):
        try:
            content = _content(folder, path, left)
        except OSError as error:
            found.cannot_read(path, error)
            continue
        if content is None:
            found.notes.append(f"{path} is too large, or no plain file, and was left out.")
            continue
        left -= len(content)
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_bytes(content)
    return _shortened([*filter(None, [found.excess]), *found.unreadable, *found.notes])


class _Walk:
    """The plain files of a folder and their sizes, what was left out, and what could not be read."""

    def __init__(self, folder: Path) -> None:
        self.sizes: dict[str, int] = {}
        self.notes: list[str] = []
        self.unreadable: list[str] = []
        self.excess = ""
        self._folder, self._entries = folder, 0
        left = [""]
        while left and not self.excess:
            inside = left.pop()
            try:
                with _opened(folder, inside, _FOLDER) as place, os.scandir(place) as entries:
                    left += self._folders(inside, entries)
            except OSError as error:
                self.cannot_read(inside or "The folder", error)

    def cannot_read(self, path: str, error: OSError) -> None:
        self.unreadable.append(f"{clean_text(path)} cannot be read ({error.strerror}).")

    def _folders(self, inside: str, entries: Iterable[os.DirEntry]) -> list[str]:
        """Take in one folder. Return the folders in it."""
        folders = []
        for entry in entries:
            self._entries += 1
            if self._entries > MAX_ENTRIES or len(self.sizes) > MAX_FILES:
                what = f"{MAX_FILES} files" if len(self.sizes) > MAX_FILES else f"{MAX_ENTRIES} files and folders"
                self.excess = f"The submission has more than {what}."
                break
            path = f"{inside}/{entry.name}" if inside else entry.name
            if entry.name in LEFT_OUT or entry.name.endswith(".pyc"):
                continue
            try:
                if clean_text(entry.name) != entry.name:
                    self.notes.append(f"{clean_text(path)} has a name that is not UTF-8 and was left out.")
                elif len(path.encode()) > MAX_PATH:
                    self.notes.append(f"{path[:60]}… has a path of more than {MAX_PATH} bytes and was left out.")
                elif entry.is_symlink():
                    self.notes.append(f"{path} is a link and was left out.")
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.is_file(follow_symlinks=False):
                    self.sizes[path] = entry.stat(follow_symlinks=False).st_size
                else:
                    self.notes.append(f"{path} is not a plain file and was left out.")
            except OSError as error:
                self.cannot_read(path, error)
        return sorted(folders, reverse=True)


def _shortened(notes: list[str]) -> tuple[str, ...]:
    more = len(notes) - MAX_NOTES
    return tuple(notes) if more <= 0 else (*sorted(notes)[:MAX_NOTES], f"{more} more were left out.")


def _without_outputs(folder: Path, sizes: dict[str, int], notes: list[str]) -> dict[str, bytes]:
    """Return the largest notebook without its outputs, by its path, if it is too large only with them.

    Puts its new size into `sizes`.
    """
    path = max((path for path in sizes if path.endswith(".ipynb")), key=sizes.__getitem__, default="")
    if not path or not MAX_NOTEBOOK < sizes[path] <= MAX_WITH_OUTPUTS:
        return {}
    with contextlib.suppress(OSError):
        content = without_outputs(_content(folder, path, MAX_WITH_OUTPUTS) or b"")
        if 0 < len(content) <= MAX_NOTEBOOK:
            notes.append(f"{path} has {sizes[path] / 2**20:.0f} MiB: it was graded without its outputs.")
            sizes[path] = len(content)
            return {path: content}
    return {}


def _excess(sizes: Mapping[str, int]) -> str:
    """Return which limit a submission of these sizes exceeds, "" if none."""
    for path, size in sizes.items():
        if path.endswith(".ipynb") and size > MAX_NOTEBOOK:
            allowed = MAX_NOTEBOOK // 2**20
            return f"{path} has {size / 2**20:.0f} MiB, but a notebook may have {allowed}; clear its outputs."
    total = sum(sizes.values())
    if total > MAX_BYTES:
        return f"The submission has {total / 2**20:.0f} MiB, but only {MAX_BYTES // 2**20} are allowed."
    return ""


@contextlib.contextmanager
def _opened(folder: Path, inside: str, flags: int) -> Iterator[int]:
    """Open what lies `inside` a submission's folder. No part from the student's folder on may be a link.

    Raises OSError.
    """
    place = os.open(folder.parent.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    parts = [folder.parent.name, folder.name, *filter(None, inside.split("/"))]
    try:
        for number, part in enumerate(parts, 1):
            last = number == len(parts)
            inner = os.open(part, os.O_RDONLY | flags if last else os.O_PATH | _FOLDER, dir_fd=place)
            os.close(place)
            place = inner
        yield place
    finally:
        os.close(place)


def _content(folder: Path, path: str, limit: int) -> bytes | None:
    """Read a plain file of at most `limit` bytes. Return None if it is something else by now. Raises OSError."""
    try:
        with (
            _opened(folder, path, os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            content = file.read(limit + 1)
    except PermissionError:
        raise
    except OSError:
        return None
    return content if len(content) <= limit else None


def timestamp_text(folder: Path) -> bytes:
    """Return what is in timestamp.txt, b"" if there is no such file."""
    return _short(folder, TIMESTAMP)


def _short(folder: Path, path: str) -> bytes:
    with contextlib.suppress(OSError):
        return _content(folder, path, 1000) or b""
    return b""


def _timestamp(folder: Path, notes: list[str], dated: bool) -> datetime | None:
    text = timestamp_text(folder).decode("utf-8", "replace").strip()
    if not text:
        return None
    if not dated and not re.fullmatch(rb"[0-9a-f]{128}", _short(folder, SECRET)):
        notes.append(f"{TIMESTAMP} did not come from nbgrader, so the time of handing in is unknown.")
        return None
    try:
        return parse_utc(text)
    except (ValueError, OverflowError):
        notes.append(f"{TIMESTAMP} holds no date ({text[:40]!r}), so the time of handing in is unknown.")
        return None


def beside(files: Mapping[str, bytes], ours: Iterable[str]) -> dict[str, bytes]:
    """Return the files that can lie beside `ours`: none named like a folder of ours, or in a folder like our file."""
    taken = set(ours)
    folders = {path[:end] for path in taken for end, character in enumerate(path) if character == "/"}
    return {
        path: content
        for path, content in files.items()
        if path not in folders and not any(path[:end] in taken for end, c in enumerate(path) if c == "/")
    }


def problem_with_name(student: str) -> str:
    """Return why this cannot be a student's id, "" if it can. nbgrader's pages show ids without escaping them."""
    wrong = sorted(
        {character for character in student if character in '<>"\\/' or unicodedata.category(character)[0] == "C"}
    )
    if not wrong:
        return ""
    return (
        f"The name of the student's folder holds {', '.join(map(ascii, wrong))}, which nbgrader's pages would not show "
        "as text. Rename the folder, then run the same command again."
    )
