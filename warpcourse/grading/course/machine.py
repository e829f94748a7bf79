"""Failures that no submission can be the cause of: a full or failing disk, a gradebook in use, too few open files."""

import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.exc import OperationalError, SQLAlchemyError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_ERRORS = (*_FULL, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_AGAIN = "then run the same command again, which continues where this one stopped"


def at_fault(error: BaseException) -> bool:
    """Return whether the machine caused an error, however a library has wrapped it."""
    return any(_is_of_the_machine(each) for each in _chain(error))


def _is_of_the_machine(error: BaseException) -> bool:
    return isinstance(error, OperationalError) or (isinstance(error, OSError) and error.errno in _ERRORS)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it was raised for or beside."""
    seen: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop(0)
        if each is not None and each not in seen:
            seen.append(each)
            left += [each.__cause__, each.__context__]
            yield each


def told(error: BaseException, folder: Path) -> str:
    """Return what to tell the instructor about an error of files or of the gradebook, in one line, and what to do.

    `folder`: where the class's files are.
    """
    cause = next((each for each in _chain(error) if _is_of_the_machine(each)), error)
    what = str(cause.orig if isinstance(cause, OperationalError) else cause).splitlines()[0]
    if isinstance(cause, OSError) and cause.strerror:
        what = ": ".join([cause.strerror, *([str(cause.filename)] if cause.filename else [])])
    if (isinstance(cause, OSError) and cause.errno in _FULL) or "disk is full" in what:
        return f"the disk is full ({what}); {_free(folder)}; make room, {_AGAIN}"
    if isinstance(cause, SQLAlchemyError):
        return f"the gradebook cannot be used ({what}); close other programs that use it, {_AGAIN}"
    return what


def _free(folder: Path) -> str:
    """Return how much room is left where the grader writes."""
    found: dict[int, str] = {}
    for place in (folder, Path(tempfile.gettempdir())):
        there = next(each for each in (place, *place.absolute().parents) if each.is_dir())
        found.setdefault(there.stat().st_dev, f"{shutil.disk_usage(there).free >> 20} MiB free in {there}")
    return ", ".join(found.values())
