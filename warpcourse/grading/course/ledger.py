"""The ledger of a course, which records what was graded with what result. Append-only, synced, safe after any crash.

    grading/ledger/ledger.jsonl     one record per line, each with its own checksum
    grading/ledger/objects/ab/cd…   contents too big for a line, named by their SHA-256, written before the line
    grading/ledger/lock             held by the one coordinator that may write

Kinds of records: "result" (one grading of one submission), "merged" (that result is in the gradebook), "regrade"
(results before this line no longer count), "feedback" (a page was made from these inputs). The last record of a kind
counts. A torn or damaged line is skipped: its work is found missing and done again.

Why not SQLite: its queries and schema would take as many lines as they save, lock and large objects would stay, a
damaged page could cost many records instead of one, and its WAL mode does not work on network file systems.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from warpcourse.grading.judge.jobs import Key


class LedgerError(Exception):
    """The ledger cannot be used now. The message says why and what to do."""


def key_of(record: dict[str, Any]) -> Key:
    return Key(*(record[field] for field in Key._fields))


class Ledger:
    """An open ledger. Use as a context manager, which holds the lock. Raises `LedgerError`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged = 0  # lines skipped in reading
        self._results: dict[Key, dict[str, Any]] = {}
        self._merged: dict[tuple[str, str], dict[str, Any]] = {}
        self._feedback: dict[tuple[str, str], str] = {}
        self._count = 0

    def __enter__(self) -> Ledger:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # objects hold hidden tests
        (self.folder / "objects").mkdir(exist_ok=True)
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._lock, 200, 0).decode("utf-8", "replace").strip() or "unknown"
            os.close(self._lock)
            raise LedgerError(
                f"another grading of this course is running ({holder}), and only one may write the gradebook; "
                "wait for it or end it, its results are kept"
            ) from None
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
            self._file = self._open()
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        os.close(self._lock)

    def _open(self) -> int:
        path = self.folder / "ledger.jsonl"
        new = not path.exists()
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if new:
            _sync_folder(self.folder)
        content = path.read_bytes()
        for line in content.split(b"\n"):
            if line:
                record = _checked(line)
                if record is None:
                    self.damaged += 1
                else:
                    self._take(record)
        if content and not content.endswith(b"\n"):
            os.write(file, b"\n")  # a torn last line must not spoil the next record
        return file

    def append(self, record: dict[str, Any]) -> dict[str, Any]:
        """Write one record, synced. Return it with its number and its time (UTC)."""
        numbered = {"number": self._count + 1, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **record}
        text = json.dumps(numbered, sort_keys=True, ensure_ascii=True)
        line = json.dumps({"sha256": _sha256(text.encode())[:32], "record": numbered}, sort_keys=True) + "\n"
        left = memoryview(line.encode())
        while left:
            left = left[os.write(self._file, left) :]
        os.fsync(self._file)
        self._take(numbered)
        return numbered

    def _take(self, record: dict[str, Any]) -> None:
        self._count = max(self._count, record["number"])
        kind = record["kind"]
        if kind == "result":
            self._results[key_of(record)] = record
        elif kind == "merged":
            self._merged[record["assignment"], record["student"]] = record
        elif kind == "feedback":
            self._feedback[record["assignment"], record["student"]] = record["inputs"]
        elif kind == "regrade":
            students = record["students"]
            for key in [key for key in self._results if key.assignment == record["assignment"]]:
                if students is None or key.student in students:
                    del self._results[key]

    def result(self, key: Key) -> dict[str, Any] | None:
        """Return the current result for this submission and these tests."""
        return self._results.get(key)

    def merged(self, assignment: str, student: str) -> int | None:
        """Return the number of this student's result in the gradebook."""
        record = self._merged.get((assignment, student))
        return record["result"] if record else None

    def feedback(self, assignment: str, student: str) -> str | None:
        """Return the hash of the inputs of this student's last feedback page."""
        return self._feedback.get((assignment, student))

    def regrade(self, assignment: str, students: Iterable[str] | None) -> None:
        """Void the results so far of these students, or of all. An interrupted re-grading can then continue."""
        self.append(
            {"kind": "regrade", "assignment": assignment, "students": None if students is None else sorted(students)}
        )

    def put(self, content: bytes) -> str:
        """Keep content, synced. Return its SHA-256, under which it is kept."""
        name = _sha256(content)
        path = self._object(name)
        if not path.exists():
            if not path.parent.exists():
                path.parent.mkdir(parents=True)
                _sync_folder(path.parent.parent)
            write_synced(path, content)
        return name

    def has(self, name: str) -> bool:
        """Return whether content is kept under this SHA-256."""
        return self._object(name).exists()

    def get(self, name: str) -> bytes:
        """Return content kept by `put`. Raises `LedgerError` if it is missing or damaged."""
        try:
            content = self._object(name).read_bytes()
        except OSError:
            content = b""
        if _sha256(content) != name:
            raise LedgerError(f"{self._object(name)} is missing or damaged; grade that submission again with --regrade")
        return content

    def _object(self, name: str) -> Path:
        return self.folder / "objects" / name[:2] / name[2:]


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every undamaged record of the ledger in `folder`, in order. Takes no lock, so only for reading."""
    for line in (folder / "ledger.jsonl").read_bytes().split(b"\n"):
        record = _checked(line) if line else None
        if record is not None:
            yield record


def write_synced(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file whole or not at all, even if the machine stops. `mode`: before the umask."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    _sync_folder(path.parent)


def _checked(line: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(line)
        record = parsed["record"]
        text = json.dumps(record, sort_keys=True, ensure_ascii=True)
        return record if parsed["sha256"] == _sha256(text.encode())[:32] else None
    except (ValueError, KeyError, TypeError):
        return None


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
