"""Datasets of synthetic scenes, for detection (boxes) and segmentation (masks).

Digits of training scenes are not those of validation and test scenes: 70, 15 and 15 % of each class, by a seeded draw.
"""

import functools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from digits.data.dataset import PARTS, Dataset
from digits.data.scene_drawing import CLASSES, Scene, SceneOptions, draw_scene, pack_boxes
from digits.files import DigitsError
from digits.workspace import Workspace

KINDS = ("detection", "segmentation")
COUNTS = {"train": 1500, "validation": 200, "test": 200}
MOST_SCENES = 100_000  # of one part

_SHARES = (0.7, 0.85, 1.0)  # where the parts of the source's digits end
_SCENES_BETWEEN_REPORTS = 50


def build(
    workspace: Workspace,
    kind: str,
    name: str = "scenes",
    counts: Mapping[str, int] = COUNTS,
    seed: int = 0,
    options: SceneOptions | None = None,
    progress: Callable[[float], None] = lambda part: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Dataset:
    """Draw scenes into a new dataset.

    `kind` is "detection" or "segmentation", `counts` how many scenes each part has. `progress` is called with what is
    drawn, 0 to 1. The same seed and options give the same arrays. Raises DigitsError, leaving nothing behind, for a
    wrong value and when `cancelled()` is true.
    """
    options = options or SceneOptions()
    _check(kind, counts, seed)
    total, drawn = sum(counts[part] for part in PARTS), 0
    parts = {}
    for part in PARTS:
        scenes = []
        for scene in draw_part(part, counts[part], seed, options):
            if cancelled():
                raise DigitsError(f"Building {name} was cancelled.")
            scenes.append(scene)
            drawn += 1
            if drawn % _SCENES_BETWEEN_REPORTS == 0:
                progress(drawn / total)
        parts[part] = _arrays(kind, scenes, options)
    source = f"scenes of {options.fewest} to {options.most} digits, {options.smallest} to {options.largest} pixels high"
    dataset = Dataset.create(workspace, name, kind, CLASSES, parts, seed=int(seed), source=source)
    progress(1.0)
    return dataset


def draw_part(part: str, count: int, seed: int = 0, options: SceneOptions | None = None) -> Iterator[Scene]:
    """Yield `count` scenes of "train", "validation" or "test"; scene i is a function of (seed, part, i) and options."""
    images, labels = _digits(part, seed)
    for i in range(count):
        yield draw_scene(np.random.default_rng([seed, PARTS.index(part), i]), images, labels, options)


def _check(kind: str, counts: Mapping[str, int], seed: int) -> None:
    if kind not in KINDS:
        raise DigitsError(f"Scenes make datasets for {' or '.join(KINDS)}, not for {kind!r}.")
    for part in PARTS:
        count = counts.get(part)
        least = 0 if part == "test" else 1
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not least <= count <= MOST_SCENES:
            raise DigitsError(f"{part} has {count!r} scenes; give a whole number from {least} to {MOST_SCENES}.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DigitsError(f"The seed is {seed!r}; give a whole number from 0 on.")


def _arrays(kind: str, scenes: list[Scene], options: SceneOptions) -> dict[str, np.ndarray]:
    shape = (len(scenes), options.height, options.width)
    images = np.array([scene.image for scene in scenes], np.uint8).reshape(*shape, 1)
    if kind == "detection":
        return {"images": images, "boxes": pack_boxes([scene.boxes for scene in scenes], options.most)}
    return {"images": images, "masks": np.array([scene.mask for scene in scenes], np.uint8).reshape(shape)}


@functools.lru_cache(maxsize=1)
def _all_digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits  # takes a second

    found = load_digits()
    return found.images, found.target


def _digits(part: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images (n, 8, 8) and labels (n,) of the digits that scenes of `part` are made of."""
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
