"""Small datasets of scenes, and a model that knows all the answers, for tests that need no trained one."""

from __future__ import annotations

import numpy as np

from digits.data import scenes
from digits.data.dataset import Dataset
from digits.networks.detectnet import STRIDE
from digits.tasks import grid
from digits.workspace import Workspace

COUNTS = {"train": 6, "validation": 10, "test": 2}


def small_scenes(workspace: Workspace, kind: str, name: str = "scenes") -> Dataset:
    return scenes.build(workspace, kind, name, COUNTS, seed=4)


class Knowing:
    """In place of a look.Inside: `predict` says what is true of the part's scenes, but for the scenes in `blind`."""

    def __init__(self, dataset: Dataset, part: str = "validation", blind: tuple[int, ...] = ()) -> None:
        self.dataset, self.part, self.blind = dataset, part, blind
        self.pid, self.closed = None, False

    def predict(self, images: np.ndarray, progress=None) -> dict[str, np.ndarray]:
        known = self.dataset.images(self.part)
        rows = [next((row for row, one in enumerate(known) if (one == image).all()), None) for image in images]
        seen = [row if row not in self.blind else None for row in rows]
        if progress is not None:
            progress(1.0)
        return self._boxes(seen) if self.dataset.kind == "detection" else self._masks(seen)

    def _boxes(self, rows: list[int | None]) -> dict[str, np.ndarray]:
        cells = (self.dataset.height // STRIDE, self.dataset.width // STRIDE)
        nothing = np.full((1, 5), -1, np.float32)
        truth = [nothing if row is None else self.dataset.boxes(self.part)[row] for row in rows]
        said = [grid.targets(boxes, cells, STRIDE, len(self.dataset.classes)) for boxes in truth]
        return {"coverage": np.stack([one[0] for one in said]) * 0.9, "edges": np.stack([one[1] for one in said])}

    def _masks(self, rows: list[int | None]) -> dict[str, np.ndarray]:
        values = np.arange(len(self.dataset.classes) + 1)
        ground = np.zeros((self.dataset.height, self.dataset.width), np.uint8)
        masks = np.stack([ground if row is None else self.dataset.masks(self.part)[row] for row in rows])
        return {"probabilities": (masks[..., None] == values).astype(np.float32)}

    def close(self) -> None:
        self.closed = True
