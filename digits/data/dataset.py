"""A dataset: a folder with a description and arrays by part, which training and the page read.

datasets/ID/dataset.json            what it is, how it was made, how far making it has come
datasets/ID/PART_images.npy         uint8 (n, height, width, channels)
datasets/ID/PART_labels.npy         classification: int64 (n,)
datasets/ID/PART_boxes.npy          detection: float32 (n, most, 5): class (-1: none), x, y, width, height
datasets/ID/PART_masks.npy          segmentation: uint8 (n, height, width), 0 for the ground, else class + 1
datasets/ID/PART_names.npy          the images' names, if they have any
datasets/ID/mean.npy                float32 (height, width, channels), the mean of the images to train on
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from digits.data.layout import printable
from digits.files import DigitsError, Lock, delete_folder, is_locked, load_array, read_json, save_array, write_json
from digits.workspace import Workspace

PARTS = ("train", "validation", "test")
TARGETS = {"classification": "labels", "detection": "boxes", "segmentation": "masks"}  # what each kind is trained on
MOST_SKIPPED = 200  # files that dataset.json names; the others are counted
_CHUNK = 4096  # images that are averaged at a time
_LONGEST_NAME = 100  # characters
_NEW = 10.0  # seconds in which a new folder may lack its description


@dataclass(frozen=True)
class Dataset:
    """A dataset as its folder describes it. `status`: "building", "ready", "failed", "killed" or "damaged".

    Killed: it was being built, and its process is no more. Damaged: its description cannot be read; `message` says why.
    """

    folder: Path
    name: str
    kind: str = ""
    classes: tuple[str, ...] = ()
    height: int = 0
    width: int = 0
    channels: int = 0
    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    seed: int = 0
    source: str = ""
    resize: str = ""
    created: str = ""
    skipped: tuple[Mapping[str, str], ...] = ()
    skipped_count: int = 0
    status: str = "damaged"
    progress: float = 0.0
    message: str = ""

    @classmethod
    def open(cls, workspace: Workspace, id: str) -> Dataset:
        """Return the dataset `id`. Raises DigitsError if there is none or its description is damaged."""
        return _described(workspace.folder("datasets", id))

    @classmethod
    def list(cls, workspace: Workspace, kind: str | None = None) -> list[Dataset]:
        """Return all datasets, or those of `kind`, newest first. A damaged one is among all, with status "damaged"."""
        found = []
        for id in workspace.ids("datasets"):
            folder = workspace.datasets / id
            try:
                found.append(_described(folder))
            except DigitsError as error:
                if not _comes_or_goes(folder):
                    found.append(cls(folder, id, message=str(error)))
        return [dataset for dataset in found if kind in (None, dataset.kind)]

    @classmethod
    def create(
        cls,
        workspace: Workspace,
        name: str,
        kind: str,
        classes: Iterable[str],
        parts: Mapping[str, Mapping[str, ArrayLike]],
        *,
        seed: int,
        source: str,
        resize: str = "none",
        skipped: Iterable[Mapping[str, str]] = (),
    ) -> Dataset:
        """Write a dataset of arrays in memory and return it.

        `parts`: for each of "train", "validation", "test" its "images", and "labels", "boxes" or "masks", as the module
        says; "names" may be added. A part left out is empty. Raises DigitsError if the arrays do not fit together.
        """
        arrays = _checked_parts(kind, tuple(classes), parts)
        folder = workspace.create("datasets", name)
        shape = arrays["train"]["images"].shape[1:]
        description = describe(folder.name, name, kind, classes, shape, seed=seed, source=source, resize=resize)
        try:
            with Lock(folder / "lock"):
                write_json(folder / "dataset.json", description)
                for part, of_part in arrays.items():
                    for what, array in of_part.items():
                        save_array(folder / f"{part}_{what}.npy", array)
                counts = {part: len(of_part["images"]) for part, of_part in arrays.items()}
                finish(folder, description, counts, skipped)
        except BaseException:
            delete_folder(folder)
            raise
        return _described(folder)

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the shape of one image: height, width, channels."""
        return self.height, self.width, self.channels

    def images(self, part: str) -> NDArray[np.uint8]:
        """Return uint8 (n, height, width, channels), mapped. Raises DigitsError if the part is not there or damaged."""
        return self._array(part, "images", np.uint8, self.shape)

    def labels(self, part: str) -> NDArray[np.int64]:
        """Return int64 (n,), the classes of a classification dataset's images."""
        labels = self._array(part, "labels", np.int64, ())
        if len(labels) and not (labels.min() >= 0 and labels.max() < len(self.classes)):
            raise DigitsError(f"{part}_labels.npy of {self.id} has classes that do not exist. Build the dataset again.")
        return labels

    def boxes(self, part: str) -> NDArray[np.float32]:
        """Return float32 (n, most, 5): class (-1 for none), x, y, width, height in pixels."""
        return self._array(part, "boxes", np.float32, (-1, 5))

    def masks(self, part: str) -> NDArray[np.uint8]:
        """Return uint8 (n, height, width): 0 for the ground, else class + 1."""
        return self._array(part, "masks", np.uint8, self.shape[:2])

    def names(self, part: str) -> Sequence[str]:
        """Return what each image is called: its file's name, or its number where it never had one."""
        if not (self.folder / f"{part}_names.npy").is_file():
            return [f"{part} {index}" for index in range(self.counts[part])]
        return [str(name) for name in load_array(self.folder / f"{part}_names.npy")]

    def name_of(self, part: str, index: int) -> str:
        """Return what one image is called, without reading the names of the others."""
        if not (self.folder / f"{part}_names.npy").is_file():
            return f"{part} {index}"
        return str(load_array(self.folder / f"{part}_names.npy")[index])

    def mean(self) -> NDArray[np.float32]:
        """Return float32 (height, width, channels): the mean of the images to train on, pixel by pixel."""
        return load_array(self.folder / "mean.npy")

    def delete(self) -> None:
        """Delete the dataset. Raises DigitsError while it is being built."""
        if is_locked(self.folder / "lock"):
            raise DigitsError(f"{self.name} is being built. Stop that first, then delete it.")
        delete_folder(self.folder)

    def _array(self, part: str, what: str, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
        if part not in PARTS:
            raise DigitsError(f"A dataset has the parts {', '.join(PARTS)}, not {part!r}.")
        if self.status != "ready":
            raise DigitsError(f"{self.name} is not ready ({self.status}). {self.message}".strip())
        if what not in ("images", TARGETS[self.kind]):
            raise DigitsError(f"{self.name} is a dataset for {self.kind} and has no {what}.")
        array = load_array(self.folder / f"{part}_{what}.npy")
        expected = (self.counts[part], *shape)
        fits = len(expected) == array.ndim and all(
            there == size for there, size in zip(array.shape, expected, strict=True) if size >= 0
        )
        if array.dtype != dtype or not fits:
            raise DigitsError(
                f"{part}_{what}.npy of {self.id} holds {array.dtype} {array.shape}, where dataset.json promises "
                f"{np.dtype(dtype)} {expected}. Build the dataset again."
            )
        return array


def describe(
    id: str,
    name: str,
    kind: str,
    classes: Iterable[str],
    shape: tuple[int, ...],
    *,
    seed: int,
    source: str,
    resize: str,
) -> dict[str, Any]:
    """Return what dataset.json holds of a dataset that is being built."""
    height, width, channels = shape
    return {
        "id": id,
        "name": printable(name).strip()[:_LONGEST_NAME] or "dataset",
        "kind": kind,
        "classes": list(classes),
        "image": {"height": height, "width": width, "channels": channels},
        "counts": dict.fromkeys(PARTS, 0),
        "seed": seed,
        "source": source,
        "resize": resize,
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "skipped": [],
        "skipped_count": 0,
        "status": "building",
        "progress": 0.0,
        "message": "",
    }


def finish(folder: Path, description: dict[str, Any], counts: Mapping[str, int], skipped: Iterable[Mapping]) -> None:
    """Write the mean image, and then that the dataset whose arrays lie in `folder` is ready."""
    save_array(folder / "mean.npy", _mean(load_array(folder / "train_images.npy")))
    every = [dict(one) for one in skipped]
    ready = {"counts": dict(counts), "skipped": every[:MOST_SKIPPED], "skipped_count": len(every)}
    write_json(folder / "dataset.json", {**description, **ready, "status": "ready", "progress": 1.0, "message": ""})


def _mean(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    total = np.zeros(images.shape[1:])
    for start in range(0, len(images), _CHUNK):
        total += images[start : start + _CHUNK].sum(axis=0, dtype=np.int64)
    return (total / max(len(images), 1)).astype(np.float32)


def _described(folder: Path) -> Dataset:
    """Read and check dataset.json of `folder`."""
    value = read_json(folder / "dataset.json")
    try:
        image = value["image"]
        dataset = Dataset(
            folder,
            name=str(value["name"]),
            kind=value["kind"],
            classes=tuple(str(name) for name in value["classes"]),
            height=int(image["height"]),
            width=int(image["width"]),
            channels=int(image["channels"]),
            counts={part: int(value["counts"][part]) for part in PARTS},
            seed=int(value["seed"]),
            source=str(value["source"]),
            resize=str(value["resize"]),
            created=str(value["created"]),
            skipped=tuple({"file": str(one["file"]), "reason": str(one["reason"])} for one in value["skipped"]),
            skipped_count=int(value.get("skipped_count", len(value["skipped"]))),
            status=str(value["status"]),
            progress=float(value["progress"]),
            message=str(value.get("message", "")),
        )
        sound = dataset.kind in TARGETS and min(*dataset.counts.values(), *dataset.shape) >= 0
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DigitsError(f"dataset.json of {folder.name} is damaged ({error!r}). Delete the dataset.") from error
    if not sound or dataset.status not in ("building", "ready", "failed"):
        raise DigitsError(f"dataset.json of {folder.name} is damaged: it makes no sense. Delete the dataset.")
    if dataset.status == "building" and not is_locked(folder / "lock"):
        # The process that builds may have ended well since the description was read.
        again = read_json(folder / "dataset.json")
        if again.get("status") != "building":
            return _described(folder)
        message = "The process that built it was killed. Build it again, or delete it."
        dataset = replace(dataset, status="killed", message=message)
    return dataset


def _comes_or_goes(folder: Path) -> bool:
    """Return whether a folder without a description is one that is just being created or deleted."""
    try:
        age = time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return True
    return not (folder / "dataset.json").exists() and (age < _NEW or is_locked(folder / "lock"))


def _checked_parts(
    kind: str, classes: tuple[str, ...], parts: Mapping[str, Mapping[str, ArrayLike]]
) -> dict[str, dict[str, NDArray[Any]]]:
    """Return all three parts with arrays of the types that a dataset has. Raises DigitsError if they do not fit."""
    if kind not in TARGETS:
        raise DigitsError(f"A dataset is for {', '.join(TARGETS)}, not for {kind!r}.")
    if not classes or len(set(classes)) < len(classes):
        raise DigitsError("A dataset needs classes, each of another name.")
    if "train" not in parts or set(parts) - set(PARTS):
        raise DigitsError(f"A dataset has the parts {', '.join(PARTS)}, and needs train. Given: {', '.join(parts)}.")
    target = TARGETS[kind]
    first = {what: np.asarray(array) for what, array in parts["train"].items()}
    checked = {}
    for part in PARTS:
        given = {what: np.asarray(array) for what, array in parts.get(part, {}).items()}
        given = given or {what: array[:0] for what, array in first.items()}
        if set(given) - {"names"} != {"images", target}:
            raise DigitsError(f"A dataset for {kind} needs images and {target}; {part} has {', '.join(given)}.")
        checked[part] = {what: _typed(what, array, part, len(classes)) for what, array in given.items()}
        images = checked[part]["images"]
        if any(len(array) != len(images) for array in given.values()):
            raise DigitsError(f"{part} has {len(images)} images, but not as many {target} or names.")
        if images.shape[1:] != first["images"].shape[1:]:
            raise DigitsError(f"Images of {part} are {images.shape[1:]}, those of train {first['images'].shape[1:]}.")
        if target == "masks" and checked[part]["masks"].shape != images.shape[:3]:
            raise DigitsError(f"Masks of {part} are {checked[part]['masks'].shape}, the images {images.shape}.")
    if not len(checked["train"]["images"]):
        raise DigitsError("There is no image to train on. Choose a smaller share for validation and test.")
    return checked


def _typed(what: str, array: NDArray[Any], part: str, classes: int) -> NDArray[Any]:
    if what == "names":
        return array.astype(np.str_)
    dtype, dimensions = {
        "images": (np.uint8, 4),
        "labels": (np.int64, 1),
        "boxes": (np.float32, 3),
        "masks": (np.uint8, 3),
    }[what]
    if array.ndim != dimensions or array.dtype.kind not in ("f" if what == "boxes" else "iu"):
        raise DigitsError(f"{what} of {part} must have {dimensions} dimensions and be {np.dtype(dtype)}.")
    if what == "images" and (array.dtype != np.uint8 or array.shape[3] not in (1, 3)):
        raise DigitsError(
            f"images of {part} must be uint8 (n, height, width, 1 or 3), not {array.dtype} {array.shape}."
        )
    if what == "boxes" and (array.shape[2] != 5 or not np.isfinite(array).all()):
        raise DigitsError(f"boxes of {part} must be finite numbers (n, most, 5): class, x, y, width, height.")
    highest = {"labels": classes - 1, "masks": classes}.get(what)
    numbers = array if what != "boxes" else array[:, :, 0]
    lowest, highest = (-1, classes - 1) if what == "boxes" else (0, highest)
    if highest is not None and numbers.size and not (lowest <= numbers.min() and numbers.max() <= highest):
        raise DigitsError(f"{what} of {part} name classes that do not exist: there are {classes}.")
    return np.ascontiguousarray(array, dtype)
