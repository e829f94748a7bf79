"""Runs and datasets as files on disk, without training: what the page and its charts read.

run = written(workspace, "first", status="running", epochs=10, reached=3)
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from digits import jobs
from digits.data.dataset import Dataset
from digits.files import append_line, write_json
from digits.training import runs
from digits.training.spec import RunSpec, Solver
from digits.workspace import Workspace

STEPS = 4  # of an epoch


def dataset(workspace: Workspace, name: str = "stripes", images: int = 8) -> Dataset:
    """Write a dataset of two classes, 4 × 4 × 1, that is ready."""
    part = {"images": np.zeros((images, 4, 4, 1), np.uint8), "labels": np.arange(images) % 2}
    parts = {"train": part, "validation": part}
    return Dataset.create(workspace, name, "classification", ["a", "b"], parts, seed=0, source="a test")


def written(
    workspace: Workspace,
    name: str,
    status: str = "done",
    epochs: int = 4,
    reached: int | None = None,
    accuracy: float = 0.9,
    message: str = "",
    **spec: Any,
) -> runs.Run:
    """Write a run that has come so far. Its lock is held by nobody: one that is "running" has been killed.

    Args:
        workspace: Where.
        name: The run's name.
        status: What state.json says.
        epochs: What it is to do.
        reached: The epochs it has done; all if None.
        accuracy: Of the last validation; it has risen to it by equal steps.
        message: What state.json says.
        **spec: Other fields of `RunSpec`.
    """
    reached = epochs if reached is None else reached
    of = spec.pop("dataset", None) or next(iter(workspace.ids("datasets")), "gone")
    asked = RunSpec(dataset=of, name=name, solver=Solver(epochs=epochs), **spec)
    folder = workspace.create("runs", name)
    write_json(folder / runs.RUN, {"id": folder.name, "created": "2026-11-23T00:00:00+00:00", **asked.to_json()})
    points(folder, 0, reached, accuracy, epochs)
    state(folder, status, reached, epochs, message)
    return runs.Run(folder)


def points(folder: Path, first: int, last: int, accuracy: float, epochs: int) -> None:
    """Append the points of the epochs after `first` up to `last`, as the trainer does."""
    for epoch in range(first, last):
        for step in range(STEPS):
            at = epoch + (step + 1) / STEPS
            _point(folder, "train", at, accuracy * at / epochs - 0.05)
        _point(folder, "validation", epoch + 1, accuracy * (epoch + 1) / epochs)


def state(folder: Path, status: str, reached: int, epochs: int, message: str = "") -> None:
    """Write state.json as the trainer does."""
    lines = [json.loads(line) for line in (folder / "curves.jsonl").read_text().splitlines()] if reached else []
    last = {line["part"]: line for line in lines}
    write_json(
        folder / jobs.STATE,
        {
            "status": status,
            "pid": None,
            "step": reached * STEPS,
            "steps": epochs * STEPS,
            "epoch": float(reached),
            "epochs": epochs,
            "seconds": 2.5 * reached,
            "remaining": 2.5 * (epochs - reached) if status == "running" else None,
            "message": message,
            "last": last,
            "best": last.get("validation"),
        },
    )


def load(folder: Path, seconds: int, gpu: bool = False) -> None:
    """Write the load of a training of so many seconds."""
    start = time.time()
    for second in range(seconds):
        line = {"time": start + second, "cpu": 50.0 + second, "process_cpu": 90.0, "memory": 600_000_000}
        line |= {"memory_used": 4_000_000_000, "memory_total": 16_000_000_000}
        if gpu:
            one = {"name": "NVIDIA H100", "gpu": 80, "memory_used": 10_000_000_000, "memory_total": 80_000_000_000}
            line["gpus"] = [one]
        append_line(folder / "load.jsonl", line)


def _point(folder: Path, part: str, epoch: float, accuracy: float) -> None:
    accuracy = min(1.0, max(0.0, accuracy))
    line = {"step": round(epoch * STEPS), "epoch": epoch, "part": part, "loss": 2.3 - 2 * accuracy}
    append_line(folder / "curves.jsonl", line | {"accuracy": accuracy, "rate": 0.001})
