"""Files of a folder on this machine, without following a link out of it."""

import os
import stat
from pathlib import Path

from digits.data.layout import Path as Names
from digits.data.layout import is_hidden, printable
from digits.data.read_image import MOST_BYTES, BadImage
from digits.files import DigitsError, explained

MOST_FILES = 500_000
EMPTY = "The folder is empty. A class needs images."


class FolderSource:
    """The files below `path`. Raises DigitsError if that is no folder."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            what = "is a file, not a folder" if self.path.exists() else "is not there"
            raise DigitsError(
                f"{os.path.normpath(self.path)} {what}. Give a folder that holds one folder per class, or a .zip file."
            )

    def files(self) -> tuple[list[tuple[object, Names]], list[dict[str, str]]]:
        """Return (what `read` takes, path) of each file in order of names, and what is no file, with the reason."""
        found: list[tuple[object, Names]] = []
        skipped: list[dict[str, str]] = []

        def refuse(path: str, reason: str) -> None:
            slash = "/" if path.endswith("/") else ""
            skipped.append({"file": printable(os.path.relpath(path, self.path)) + slash, "reason": reason})

        def unreadable(error: OSError) -> None:
            refuse(str(error.filename), f"The folder cannot be read: {error.strerror}.")

        for folder, folders, files in os.walk(self.path, onerror=unreadable):
            folders.sort()
            inside = Path(os.path.relpath(folder, self.path)).parts
            if not files and not folders and inside and not is_hidden(inside):
                refuse(folder + "/", EMPTY)
            for name in sorted([*files, *(name for name in folders if os.path.islink(os.path.join(folder, name)))]):
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    refuse(path, "A link, which is not followed. Put the file itself there.")
                elif not os.path.isfile(path):
                    refuse(path, "No plain file.")
                else:
                    found.append((path, Path(os.path.relpath(path, self.path)).parts))
            if len(found) > MOST_FILES:
                raise DigitsError(f"{self.path} holds more than {MOST_FILES} files. Give a folder of images only.")
        return found, skipped

    def read(self, path: object) -> bytes:
        """Return the content of the file at `path`. Raises BadImage if it cannot be read or has become a link."""
        try:
            with explained("read the file"):
                descriptor = os.open(str(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                with open(descriptor, "rb") as stream:
                    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                        raise BadImage("No plain file.")
                    return stream.read(MOST_BYTES + 1)
        except BadImage:
            raise
        except DigitsError as error:
            raise BadImage(str(error)) from error

    def close(self) -> None:
        """Do nothing: a folder holds nothing open."""
