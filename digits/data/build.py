"""The job that makes a dataset of a folder or an archive of images.

    python -m digits.data.build DATASET_FOLDER --lock LOCK

The folder holds dataset.json and build.json, as digits.data.building writes them, and the lock is held by the open file
LOCK, which ends with this process. The job says how far it has come in dataset.json, ends early when the file `wanted`
says "stop", and leaves arrays, or the reason why there are none.
"""

import contextlib
import functools
import os
import shutil
import sys
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from digits.data import split
from digits.data.build_options import BuildOptions
from digits.data.dataset import MOST_SKIPPED, PARTS, finish
from digits.data.folder_source import FolderSource
from digits.data.layout import Placed, class_order, place
from digits.data.read_image import read_image
from digits.data.resize import fit
from digits.data.zip_source import ZipSource
from digits.files import DigitsError, explained, read_json, save_array, write_file, write_json
from digits.jobs import wanted, work

RAW = "images.unfinished"  # the images one after another, before they are drawn into parts
UPLOAD = "upload.zip"  # what a browser sent
_TOGETHER = 64  # images that are decoded at a time
_THREADS = min(4, os.cpu_count() or 1)  # Pillow decodes without the interpreter's lock
_BETWEEN = 0.5  # seconds between two notes of the progress

Skipped = list[dict[str, str]]


class Stopped(DigitsError):
    """The user no longer wants the dataset."""


def build(folder: Path) -> int:
    """Build the dataset in `folder`; return 0. What happens is said in its dataset.json, but for a full disk."""
    description = read_json(folder / "dataset.json")
    skipped: Skipped = []
    try:
        _build(folder, description, skipped)
    except BaseException as error:
        message = str(error) if isinstance(error, DigitsError) else f"{_unforeseen(error)} The log says where."
        # First the space, then the note: the disk may be full.
        clear(folder)
        listed = {"skipped": skipped[:MOST_SKIPPED], "skipped_count": len(skipped)}
        write_json(folder / "dataset.json", {**description, **listed, "status": "failed", "message": message})
        if not isinstance(error, DigitsError):
            raise  # into the log
    return 0


def _unforeseen(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "There is not enough memory. Choose smaller images or fewer of them."
    return f"Building failed: {type(error).__name__}: {error}."


def clear(folder: Path) -> None:
    """Delete the arrays in `folder`, finished or not."""
    for path in [*folder.glob("*.npy"), *folder.glob(f"*{RAW}*"), *folder.glob(".unfinished-*")]:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _build(folder: Path, description: dict[str, Any], skipped: Skipped) -> None:
    """Write the arrays and the description of a ready dataset; add to `skipped` what is not taken."""
    recipe = read_json(folder / "build.json")
    options = BuildOptions.from_dict(recipe["options"])
    note = BuildProgress(folder, description)
    note(0.0, "Listing the files.")
    # Not what the recipe says: it may have been copied from somebody else, and the upload is deleted in the end.
    path = folder / UPLOAD if recipe["uploaded"] else Path(recipe["path"])
    with contextlib.closing(ZipSource(path) if recipe["kind"] == "zip" else FolderSource(path)) as source:
        files, no_files = source.files()
        placed, out_of_place = place(files)
        skipped += no_files + out_of_place
        if not placed:
            raise DigitsError(f"{_shown(path)} holds no images in folders of classes. {_EXPECTED}{_first(skipped)}")
        chosen = _chosen(placed, options)
        _check_space(folder, len(chosen), options)
        kept = _read(source, chosen, folder, options, skipped, note)
    classes, kept_of_classes = _classes(chosen, kept, options, skipped)
    if len(classes) < 2:
        found = f"the class {classes[0]!r} only" if classes else "no class"
        raise DigitsError(f"{_shown(path)} has images of {found}. {_EXPECTED}{_first(skipped)}")
    counts = _write_parts(folder, chosen, kept, kept_of_classes, classes, options, note)
    (folder / RAW).unlink()
    finish(folder, {**description, "classes": classes}, counts, sorted(skipped, key=lambda one: one["file"]))
    if recipe["uploaded"]:
        path.unlink(missing_ok=True)  # its images are in the arrays now


_EXPECTED = "Give one folder per class, at least two, such as cat/1.png and dog/1.png."


def _shown(path: Path) -> str:
    return "The upload" if path.name == UPLOAD else str(path)


def _first(skipped: Skipped) -> str:
    if not skipped:
        return ""
    file, reason = skipped[0]["file"], skipped[0]["reason"]
    if len(skipped) == 1:
        return f" {file} was skipped: {reason}"
    return f" {len(skipped)} files were skipped, the first, {file}: {reason}"


class BuildProgress:
    """Notes how far the job has come, at most every half second, and ends it when the user wants that."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        self._folder, self._description = folder, description
        self._next = 0.0

    def __call__(self, progress: float, message: str) -> None:
        """Raise Stopped if the user wants no more of it."""
        if wanted(self._folder) == "stop":
            raise Stopped("Stopped before it was done. Build it again, or delete it.")
        if time.monotonic() >= self._next:
            write_json(self._folder / "dataset.json", {**self._description, "progress": progress, "message": message})
            self._next = time.monotonic() + _BETWEEN


def _chosen(placed: Sequence[Placed], options: BuildOptions) -> list[Placed]:
    """Return the files to read: all, or so many of each class, drawn by the seed; images of parts given count apart."""
    if not options.most:
        return list(placed)
    groups: dict[tuple[str, str], list[int]] = {}
    for index, file in enumerate(placed):
        groups.setdefault((file.label, file.part), []).append(index)
    drawn: list[int] = []
    for (label, _), members in groups.items():
        rng = np.random.default_rng([options.seed, zlib.crc32(label.encode())])
        drawn += [members[index] for index in rng.permutation(len(members))[: options.most]]
    return [placed[index] for index in sorted(drawn)]


def _check_space(folder: Path, images: int, options: BuildOptions) -> None:
    needed = 2 * images * options.height * options.width * options.channels  # in order, and drawn into parts
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DigitsError(
            f"{images} images of {options.width} × {options.height} need {needed / 1e9:.1f} GB while they are built; "
            f"the disk has {free / 1e9:.1f} GB. Choose smaller images, fewer of a class, or free some space."
        )


def _read(
    source: FolderSource | ZipSource,
    files: Sequence[Placed],
    folder: Path,
    options: BuildOptions,
    skipped: Skipped,
    note: BuildProgress,
) -> list[int]:
    """Write the images that can be read to the raw file. Return which of `files` these are."""

    def one(file: Placed) -> NDArray[np.uint8] | str:
        # Seeded by the file's name, so that noise beside an image does not depend on the other images.
        rng = np.random.default_rng([options.seed, zlib.crc32(file.name.encode())])
        try:
            image = read_image(source.read(file.where))
            return fit(image, options.height, options.width, options.channels, options.resize, rng)
        except DigitsError as error:
            return str(error)

    kept: list[int] = []
    bad, begun = 0, time.monotonic()
    with explained("write the images"), open(folder / RAW, "wb") as raw, ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(files), _TOGETHER):
            together = files[start : start + _TOGETHER]
            for index, image in enumerate(pool.map(one, together), start):
                if isinstance(image, str):
                    skipped.append({"file": files[index].name, "reason": image})
                    bad += 1
                else:
                    raw.write(image.tobytes())
                    kept.append(index)
            done = start + len(together)
            left = (time.monotonic() - begun) * (len(files) / done - 1)
            note(0.9 * done / len(files), f"{done} of {len(files)} files read, {bad} of them skipped, {_to_go(left)}.")
    return kept


def _to_go(seconds: float) -> str:
    return f"about {seconds:.0f} s to go" if seconds < 100 else f"about {seconds / 60:.0f} min to go"


def _classes(
    files: Sequence[Placed], kept: Sequence[int], options: BuildOptions, skipped: Skipped
) -> tuple[list[str], list[int]]:
    """Return the classes that have images enough to train on, and which of `kept` belong to them."""
    to_train = Counter(files[index].label for index in kept if files[index].part in ("", "train"))
    every = sorted({file.label for file in files}, key=class_order)
    classes = [label for label in every if to_train[label] >= options.least]
    for label in every:
        if label not in classes:
            reason = f"{to_train[label]} images to train on; a class needs {options.least}."
            skipped.append({"file": f"{label}/", "reason": f"The class is left out. {reason}"})
    names = set(classes)
    return classes, [place for place, index in enumerate(kept) if files[index].label in names]


def _write_parts(
    folder: Path,
    files: Sequence[Placed],
    kept: Sequence[int],
    places: Sequence[int],
    classes: Sequence[str],
    options: BuildOptions,
    note: BuildProgress,
) -> dict[str, int]:
    """Draw the parts, write their arrays and return how many images each has.

    places: which images of the raw file are in the dataset.
    """
    number = {label: index for index, label in enumerate(classes)}
    labels = np.array([number[files[kept[place]].label] for place in places], np.int64)
    given = np.array([files[kept[place]].part for place in places])
    drawn = _drawn(labels, given, options)
    shape = (len(kept), options.height, options.width, options.channels)
    raw = np.memmap(folder / RAW, np.uint8, "r", shape=shape)
    for part, indices in drawn.items():
        note(0.9, f"Writing {len(indices)} images for {part}.")
        where = np.array(places, np.int64)[indices]
        write_file(folder / f"{part}_images.npy", functools.partial(_gather, raw, where))
        save_array(folder / f"{part}_labels.npy", labels[indices])
        names = [files[kept[place]].name for place in where]
        save_array(folder / f"{part}_names.npy", np.array(names, np.str_))
    return {part: len(drawn[part]) for part in PARTS}


def _drawn(labels: NDArray[np.int64], given: NDArray[np.str_], options: BuildOptions) -> dict[str, NDArray[np.int64]]:
    """Return the indices of each part: those given by folders, the rest drawn. A part given is not drawn, too."""
    shares = {part: 0.0 if (given == part).any() else getattr(options, part) for part in ("validation", "test")}
    free = np.flatnonzero((given == "") | (given == "train"))
    parts = {part: free[drawn] for part, drawn in split.draw(labels[free], **shares, seed=options.seed).items()}
    for part in ("validation", "test"):
        parts[part] = np.concatenate([parts[part], np.flatnonzero(given == part)])
    return parts


def _gather(raw: NDArray[np.uint8], where: NDArray[np.int64], stream: BinaryIO) -> None:
    """Write raw[where] as an .npy file, without holding it all in memory."""
    header = {"descr": "|u1", "fortran_order": False, "shape": (len(where), *raw.shape[1:])}
    np.lib.format.write_array_header_1_0(stream, header)
    for start in range(0, len(where), _TOGETHER):
        stream.write(raw[where[start : start + _TOGETHER]].tobytes())


if __name__ == "__main__":
    sys.exit(work("digits.data.build", "Another process builds the dataset {name} already.", build))
