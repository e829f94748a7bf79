"""Checkpoints of a run: arrays in a .npz file, and beside it a .json with its checksum, which makes it one.

The arrays are written first, so a process that is killed in between leaves no checkpoint, or a whole one. One that was
damaged afterwards is found by its checksum, and the one before it is taken.
"""

import contextlib
import re
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from digits.files import UNFINISHED, DigitsError, checksum, explained, read_json, write_file, write_json

FOLDER = "checkpoints"
LAST = 2  # so many are kept, besides those that are to be kept for good
_NAME = re.compile(r"step-(\d{9})\.json")


@dataclass(frozen=True)
class Stored:
    """A checkpoint that was written; whether it can be read is known once it is."""

    folder: Path
    step: int

    @property
    def name(self) -> str:
        return f"step-{self.step:09d}"

    @property
    def about(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def arrays(self) -> Path:
        """Return the file of arrays that `about` names, one of `places`."""
        with contextlib.suppress(DigitsError):
            named = read_json(self.about).get("arrays")
            return next((place for place in self.places if place.name == named), self.places[0])
        return self.places[0]

    @property
    def places(self) -> tuple[Path, Path]:
        """Return two names for the arrays: a checkpoint that is written again never overwrites what it replaces."""
        return self.folder / f"{self.name}.npz", self.folder / f"{self.name}-again.npz"


def listed(run: Path) -> list[Stored]:
    """Return the checkpoints of the run in the folder `run`, oldest first."""
    folder = Path(run) / FOLDER
    with explained(f"list the checkpoints of {Path(run).name}"):
        names = [_NAME.fullmatch(path.name) for path in folder.iterdir()] if folder.is_dir() else []
    return sorted((Stored(folder, int(name[1])) for name in names if name), key=lambda stored: stored.step)


def write(run: Path, step: int, arrays: Mapping[str, NDArray], about: Mapping[str, Any], keep: bool = False) -> None:
    """Write a checkpoint of `step`, then delete older ones. `about`: what JSON holds. `keep`: never delete it.

    Raises DigitsError if the disk is full; the checkpoints before it are then as they were.
    """
    stored = Stored(Path(run) / FOLDER, step)
    with explained(f"create {FOLDER}"):
        stored.folder.mkdir(exist_ok=True)
    taken = stored.arrays if stored.about.exists() else None
    keep = keep or (taken is not None and _kept(stored))
    place = next(place for place in stored.places if place != taken)
    whole: dict[str, Any] = {**arrays, "allow_pickle": False}
    write_file(place, lambda stream: np.savez(stream, **whole))
    told = {**about, "step": step, "keep": keep, "arrays": place.name, "sha256": checksum(place)}
    write_json(stored.about, told)
    if taken is not None:
        taken.unlink(missing_ok=True)
    _prune(run)


def _prune(run: Path) -> None:
    for stored in listed(run)[:-LAST]:
        if not _kept(stored):
            _delete(stored)


def _kept(stored: Stored) -> bool:
    with contextlib.suppress(DigitsError):
        return bool(read_json(stored.about).get("keep"))
    return False


def _delete(stored: Stored) -> None:
    with contextlib.suppress(OSError):
        stored.about.unlink(missing_ok=True)
        for place in stored.places:
            place.unlink(missing_ok=True)


def read(stored: Stored) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and what was said about them. Raises DigitsError if they are missing or damaged."""
    about, place = read_json(stored.about), stored.arrays
    if checksum(place) != about.get("sha256"):
        raise DigitsError(f"The checkpoint of step {stored.step} is damaged: its checksum differs.")
    try:
        with zipfile.ZipFile(place) as archive:
            if any(member.file_size != member.compress_size for member in archive.infolist()):
                raise ValueError("it is compressed, as this course never writes one")
        with np.load(place, allow_pickle=False) as arrays:
            return dict(arrays), about
    except (ValueError, OSError, KeyError, EOFError, MemoryError, OverflowError, zipfile.BadZipFile) as error:
        raise DigitsError(f"The checkpoint of step {stored.step} cannot be read ({error}).") from error


def latest(run: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any], list[str]] | tuple[None, None, list[str]]:
    """Return arrays and about of the newest checkpoint that is whole, or None twice; and what newer ones lack."""
    problems: list[str] = []
    for stored in reversed(listed(run)):
        try:
            return *read(stored), problems
        except DigitsError as error:
            problems.append(str(error))
    return None, None, problems


def tidy(run: Path) -> None:
    """Delete what a killed process left: unfinished files, and arrays that never became a checkpoint."""
    folder = Path(run) / FOLDER
    whole = {stored.arrays for stored in listed(run)}
    for place in (Path(run), folder):
        for path in place.glob(f"{UNFINISHED}*") if place.is_dir() else ():
            with contextlib.suppress(OSError):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for path in set(folder.glob("step-*.npz")) - whole if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            path.unlink()
