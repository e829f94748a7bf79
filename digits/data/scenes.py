"""Datasets of synthetic scenes, for detection (boxes) and segmentation (masks).

The digits that training scenes are made of are not those of validation and test scenes: 70, 15 and 15 % of each class,
by a seeded draw.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from digits.data.scene_drawing import CLASSES, Scene, SceneOptions, draw_scene, pack_boxes
from digits.files import DigitsError, Lock, save_array, write_json
from digits.workspace import Workspace

KINDS = ("detection", "segmentation")
PARTS = ("train", "validation", "test")
COUNTS = {"train": 1500, "validation": 200, "test": 200}
MOST_SCENES = 100_000  # of one part

_SHARES = (0.7, 0.85, 1.0)  # where the parts of the source's digits end
_SECONDS_BETWEEN_REPORTS = 0.5


def build(
    workspace: Workspace,
    kind: str,
    name: str = "scenes",
    counts: Mapping[str, int] = COUNTS,
    seed: int = 0,
    options: SceneOptions | None = None,
    progress: Callable[[float], None] = lambda part: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> str:
    """Draw scenes into a new dataset and return its ID.

    `kind` is "detection" or "segmentation", `counts` how many scenes each part has. `progress` is called with what is
    done, 0 to 1; when `cancelled()` is true the dataset is deleted and DigitsError raised. The same seed and options
    give the same arrays.
    """
    options = options or SceneOptions()
    _check(kind, counts, seed)
    folder = workspace.create("datasets", name)
    record: dict[str, Any] = {
        "id": folder.name,
        "name": name,
        "kind": kind,
        "classes": list(CLASSES),
        "image": {"height": options.height, "width": options.width, "channels": 1},
        "counts": {part: int(counts[part]) for part in PARTS},
        "objects": dict.fromkeys(PARTS, 0),
        "seed": seed,
        "source": {"name": "scenes", "options": asdict(options)},
        "resize": None,
        "created": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "skipped": [],
        "status": "building",
        "progress": 0.0,
    }

    try:
        with Lock(folder / "lock"):
            report = _reporter(folder, record, progress, cancelled)
            for part in PARTS:
                scenes = []
                for scene in draw_part(part, record["counts"][part], seed, options):
                    scenes.append(scene)
                    report()
                record["objects"][part] = sum(len(scene.boxes) for scene in scenes)
                _save(folder, part, kind, scenes, options)
            write_json(folder / "dataset.json", record | {"status": "ready", "progress": 1.0})
    except BaseException:
        workspace.delete("datasets", folder.name)
        raise
    progress(1.0)
    return folder.name


def draw_part(part: str, count: int, seed: int = 0, options: SceneOptions | None = None) -> Any:
    """Yield `count` scenes of "train", "validation" or "test"; scene i is a function of (seed, part, i) and options."""
    images, labels = _digits(part, seed)
    for i in range(count):
        yield draw_scene(np.random.default_rng([seed, PARTS.index(part), i]), images, labels, options)


def _check(kind: str, counts: Mapping[str, int], seed: int) -> None:
    if kind not in KINDS:
        raise DigitsError(f"Scenes make datasets for {' or '.join(KINDS)}, not for {kind!r}.")
    for part in PARTS:
        count = counts.get(part)
        least = 1 if part == "train" else 0
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not least <= count <= MOST_SCENES:
            raise DigitsError(f"{part} has {count!r} scenes; give a whole number from {least} to {MOST_SCENES}.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DigitsError(f"The seed is {seed!r}; give a whole number from 0 on.")


def _reporter(
    folder: Any, record: dict[str, Any], progress: Callable[[float], None], cancelled: Callable[[], bool]
) -> Callable[[], None]:
    """A function to be called after each scene: writes dataset.json and tells `progress` twice a second."""
    total, done, last = sum(record["counts"].values()), 0, float("-inf")
    write_json(folder / "dataset.json", record)

    def report() -> None:
        nonlocal done, last
        done += 1
        if cancelled():
            raise DigitsError(f"Building {record['name']} was cancelled.")
        if time.monotonic() - last >= _SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            record["progress"] = round(done / total, 3)
            write_json(folder / "dataset.json", record)
            progress(record["progress"])

    return report


def _save(folder: Any, part: str, kind: str, scenes: list[Scene], options: SceneOptions) -> None:
    shape = (len(scenes), options.height, options.width)
    images = np.zeros((*shape, 1), np.uint8)
    for image, scene in zip(images, scenes, strict=True):
        image[..., 0] = scene.image
    save_array(folder / f"{part}_images.npy", images)
    if kind == "detection":
        save_array(folder / f"{part}_boxes.npy", pack_boxes([scene.boxes for scene in scenes], options.most))
    else:
        masks = np.array([scene.mask for scene in scenes], np.uint8).reshape(shape)
        save_array(folder / f"{part}_masks.npy", masks)


@functools.lru_cache(maxsize=1)
def _all_digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits  # takes a second

    found = load_digits()
    return found.images, found.target


def _digits(part: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 8, 8) and labels (n,) of the digits that scenes of `part` are made of."""
    images, labels = _all_digits()
    random = np.random.default_rng([seed, len(PARTS)])
    chosen = []
    for label in range(len(CLASSES)):
        rows = random.permutation(np.flatnonzero(labels == label))
        ends = [0, *(round(share * len(rows)) for share in _SHARES)]
        number = PARTS.index(part)
        chosen.append(rows[ends[number] : ends[number + 1]])
    rows = np.concatenate(chosen)
    return images[rows], labels[rows]
