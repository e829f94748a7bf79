"""A small dataset, and runs on it without a worker, for tests that start one as they need it."""

from __future__ import annotations

import numpy as np

from digits.data.dataset import Dataset
from digits.files import write_json
from digits.training.runs import Run
from digits.training.spec import RunSpec, Solver
from digits.workspace import Workspace


def small_dataset(workspace: Workspace, train: int = 46, validation: int = 70, seed: int = 3) -> Dataset:
    """Blobs of two classes in images of 8 × 8 × 1, which a network can learn to tell apart."""
    rng = np.random.default_rng(seed)

    def part(count: int) -> dict:
        labels = rng.integers(0, 2, count)
        images = rng.integers(0, 90, (count, 8, 8, 1), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[:, 4 * label : 4 * label + 4] += 60
        return {"images": images, "labels": labels}

    parts = {"train": part(train), "validation": part(validation), "test": part(5)}
    return Dataset.create(workspace, "small", "classification", ["left", "right"], parts, seed=seed, source="a test")


def small_spec(dataset: Dataset, **solver) -> RunSpec:
    """A LeNet-like network with dropout and augmentation; 12 steps an epoch, the last of them of 2 images."""
    solver = {"epochs": 3, "batch": 4, "rate": 0.002, "policy": {"name": "cosine"}, "seed": 7, **solver}
    solver.setdefault("augment", {"shift": 0.1, "noise": 10.0})
    return RunSpec(dataset.id, {"name": "lenet", "filters": 4, "units": 16}, Solver(**solver), name="small")


def unstarted(workspace: Workspace, spec: RunSpec) -> Run:
    """A run as `runs.start` creates it, with no worker."""
    folder = workspace.create("runs", spec.name)
    write_json(folder / "run.json", {"id": folder.name, **spec.to_json()})
    write_json(folder / "state.json", {"status": "waiting", "message": ""})
    return Run(folder)
