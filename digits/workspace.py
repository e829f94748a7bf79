"""The folder that holds datasets, runs and plans, each in a folder of its own that its ID names."""

import os
import re
import time
import unicodedata
from pathlib import Path

from digits.files import DigitsError, delete_folder, explained
from warpcourse.paths import own_folder

KINDS = ("datasets", "runs", "plans")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_LONGEST_NAME = 40  # characters of a name that an ID keeps


class Workspace:
    """`root/datasets/ID`, `root/runs/ID` and `root/plans/ID`.

    `root` defaults to what WARPLAB_DIGITS names, else to the folder `digits_workspace` in the learner's own folder. It
    is created if it is missing. Raises DigitsError if it cannot be.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        chosen = root or os.environ.get("WARPLAB_DIGITS") or own_folder() / "digits_workspace"
        self.root = Path(chosen).expanduser().absolute()
        self.datasets, self.runs, self.plans = (self.root / kind for kind in KINDS)
        with explained(f"use {self.root} as the workspace"):
            for folder in (self.datasets, self.runs, self.plans):
                folder.mkdir(0o700, parents=True, exist_ok=True)  # images are nobody else's

    def create(self, kind: str, name: str) -> Path:
        """Return a new, empty folder for something of `kind` ("datasets", "runs", "plans"); its name is the ID."""
        stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{short_name(name)}"
        counter = 1
        with explained(f"create {stem}"):
            while True:
                folder = self._kind(kind) / (stem if counter == 1 else f"{stem}-{counter}")
                try:
                    folder.mkdir()
                    return folder
                except FileExistsError:
                    counter += 1

    def folder(self, kind: str, id: str) -> Path:
        """Return the folder of `id`. Raises DigitsError if there is none, or if `id` is no ID (such as "../x")."""
        folder = self._kind(kind) / id if _ID.fullmatch(id) else None
        if folder is None or not folder.is_dir() or folder.is_symlink():
            raise DigitsError(f"There is no {kind[:-1]} {id!r} in {self._kind(kind)}. It may have been deleted.")
        return folder

    def ids(self, kind: str) -> list[str]:
        """Return the IDs of all that is there of `kind`, newest first."""
        with explained(f"list {kind}"):
            entries = list(os.scandir(self._kind(kind)))
        found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and _ID.fullmatch(entry.name)]
        return sorted(found, key=_by_age, reverse=True)

    def delete(self, kind: str, id: str) -> None:
        """Delete the folder of `id`. Raises DigitsError if there is none, or if it cannot be deleted."""
        delete_folder(self.folder(kind, id))

    def _kind(self, kind: str) -> Path:
        if kind not in KINDS:
            raise DigitsError(f"A workspace holds {', '.join(KINDS)}, not {kind!r}.")
        return self.root / kind


def short_name(name: str) -> str:
    """Return `name` as an ID may hold it: letters, digits, - and _ of ASCII, and at least one of them."""
    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_]+", "-", ascii_only)[:_LONGEST_NAME].strip("-") or "unnamed"


def _by_age(id: str) -> tuple[str, int, str]:
    """Return what to sort IDs by: of two of the same second, the one with the higher counter is newer."""
    counter = re.search(r"-(\d+)$", id[16:])
    return id[:15], int(counter[1]) if counter else 1, id
