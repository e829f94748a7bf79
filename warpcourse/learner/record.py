"""The file in which the course keeps what a learner did: progress.json in the learner's own folder.

It is written as a whole and put in place in one step, under a lock, so that neither a crash nor two open lessons can
spoil it. A file that cannot be read is set aside, never overwritten. Where the folder cannot be written, what was done
is kept until the process ends.
"""

import contextlib
import datetime
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpcourse.paths import own_folder

NAME = "progress.json"
SECTIONS = ("predictions", "tasks", "exercises")
KEY = re.compile(r"\d\d/[a-z0-9]+(-[a-z0-9]+)*")

Record = dict[str, dict[str, dict[str, Any]]]

_unwritten: Record = {}


def check_key(key: object) -> str:
    """Return `key`. Raises ValueError unless it is a lab's number and a name, such as "01/requests"."""
    if isinstance(key, str) and KEY.fullmatch(key):
        return key
    raise ValueError(
        f'the key is {key!r}; give the number of the lab and a name of small letters, such as "01/load-requests"'
    )


def path() -> Path:
    """Return where the record is."""
    return own_folder() / NAME


def read() -> Record:
    """Return all that is known: section -> key -> fields. Empty sections where nothing was kept yet."""
    return _with_unwritten(_load(path()))


def entry(section: str, key: str) -> dict[str, Any]:
    """Return what is kept below `key`, an empty dict if nothing is."""
    return dict(read()[section].get(key, {}))


def keep(section: str, key: str, fields: dict[str, Any]) -> str:
    """Add `fields`, with the time, to what is kept below `key`.

    Returns "", or why the file could not be written; then the fields are kept until this process ends.
    """
    fields = {**fields, "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        with _locked(path()):
            record = _load(path(), set_aside=True)
            record[section].setdefault(key, {}).update(fields)
            _write(path(), record)
    except OSError as error:
        _unwritten.setdefault(section, {}).setdefault(key, {}).update(fields)
        return f"{path()} cannot be written ({error.strerror or error}), so this is forgotten when the notebook closes"
    return ""


def _load(file: Path, set_aside: bool = False) -> Record:
    """Return the record in `file`; an empty one if there is none or it is damaged (`set_aside` renames it)."""
    try:
        record = json.loads(file.read_bytes())
        if _well_formed(record):
            return {section: record.get(section, {}) for section in SECTIONS}
    except FileNotFoundError:
        return {section: {} for section in SECTIONS}
    except (ValueError, RecursionError):  # not UTF-8, not JSON
        pass
    except OSError:
        if set_aside:
            raise
    if set_aside:
        os.replace(file, _free_name(file))
    return {section: {} for section in SECTIONS}


def _well_formed(record: object) -> bool:
    return isinstance(record, dict) and all(
        isinstance(entries, dict) and all(isinstance(fields, dict) for fields in entries.values())
        for entries in record.values()
    )


def _free_name(file: Path) -> Path:
    number = 1
    while (free := file.with_name(f"{file.stem}.damaged-{number}{file.suffix}")).exists():
        number += 1
    return free


def _with_unwritten(record: Record) -> Record:
    for section, entries in _unwritten.items():
        for key, fields in entries.items():
            record[section].setdefault(key, {}).update(fields)
    return record


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with open(file.with_name(f".{file.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(file: Path, record: Record) -> None:
    descriptor, unfinished = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:
            json.dump(record, stream, indent=1, ensure_ascii=False)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise
