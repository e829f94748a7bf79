"""Submissions, read from their folders. Nothing in them is trusted: reading has limits and follows no links."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from warplab.grading.exchange.artefacts import clean_text

MAX_FILES = 500
MAX_BYTES = 64 * 2**20  # all files together
MAX_NOTEBOOK = 32 * 2**20
TIMESTAMP = "timestamp.txt"  # written by nbgrader when it collects
LEFT_OUT = {".ipynb_checkpoints", "__pycache__", "feedback"}  # as in nbgrader's CourseDirectory.ignore


@dataclass(frozen=True)
class Submission:
    """One student's submission for one assignment.

    `files`: path relative to the folder, with "/" -> content. `timestamp`: when it was handed in, in UTC, None if
    unknown. `hash`: of paths and contents, without the timestamp. `notes`: what was left out and why. `unusable`:
    (reason, status) if the folder exceeds the limits; `files` is then empty.
    """

    student: str
    files: dict[str, bytes]
    timestamp: datetime | None
    hash: str
    notes: tuple[str, ...] = ()
    unusable: tuple[str, str] | None = None


def read(student: str, folder: Path) -> Submission:
    """Read the submission in `folder`. Leaves out links, never following them, and all else that is no plain file."""
    notes: list[str] = []
    sizes: dict[str, int] = {}
    for path in _walk(folder, notes):
        sizes[path] = os.lstat(folder / path).st_size
        if len(sizes) > MAX_FILES:
            break
    timestamp = _timestamp(folder, notes)
    sizes.pop(TIMESTAMP, None)
    excess = _excess(sizes)
    if excess:
        digest = hashlib.sha256(repr(sorted(sizes.items())).encode())
        return Submission(student, {}, timestamp, digest.hexdigest(), tuple(notes), (excess, "limit"))
    files = {}
    digest = hashlib.sha256()
    for path in sorted(sizes):
        content = _content(folder / path, MAX_BYTES)
        if content is None:
            notes.append(f"{path} is not a plain file and was left out.")
            continue
        files[path] = content
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return Submission(student, files, timestamp, digest.hexdigest(), tuple(notes))


def _walk(folder: Path, notes: list[str]) -> list[str]:
    """Return relative paths of plain files, at most one more than `MAX_FILES`."""
    found: list[str] = []
    left = [""]
    while left and len(found) <= MAX_FILES:
        inside = left.pop()
        for entry in sorted(os.scandir(folder / inside), key=lambda entry: entry.name):
            path = f"{inside}/{entry.name}" if inside else entry.name
            if entry.name in LEFT_OUT or entry.name.endswith(".pyc"):
                continue
            if clean_text(entry.name) != entry.name:
                notes.append(f"{clean_text(path)} has a name that is not UTF-8 and was left out.")
            elif entry.is_symlink():
                notes.append(f"{path} is a link and was left out.")
            elif entry.is_dir(follow_symlinks=False):
                left.append(path)
            elif entry.is_file(follow_symlinks=False):
                found.append(path)
            else:
                notes.append(f"{path} is not a plain file and was left out.")
    return found


def _excess(sizes: Mapping[str, int]) -> str:
    """Return which limit a submission of these sizes exceeds, "" if none."""
    if len(sizes) > MAX_FILES:
        return f"The submission has more than {MAX_FILES} files."
    for path, size in sizes.items():
        if path.endswith(".ipynb") and size > MAX_NOTEBOOK:
            allowed = MAX_NOTEBOOK // 2**20
            return f"{path} has {size / 2**20:.0f} MiB, but a notebook may have {allowed}; clear its outputs."
    total = sum(sizes.values())
    if total > MAX_BYTES:
        return f"The submission has {total / 2**20:.0f} MiB, but only {MAX_BYTES // 2**20} are allowed."
    return ""


def _content(path: Path, limit: int) -> bytes | None:
    """Read a plain file of at most `limit` bytes. Return None if it is something else by now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = file.read(limit + 1)
    return content if len(content) <= limit else None


def _timestamp(folder: Path, notes: list[str]) -> datetime | None:
    content = _content(folder / TIMESTAMP, 1000)
    text = (content or b"").decode("utf-8", "replace").strip()
    if not text:
        return None
    try:
        return parse_utc(text)
    except (ValueError, OverflowError):
        notes.append(f"{TIMESTAMP} holds no date ({text[:40]!r}), so the time of handing in is unknown.")
        return None
