"""Measurements that a notebook shows: live on a GPU, else those recorded on a named GPU, and labelled so.

recordings = Recordings("vector_multiply")          # kernels/vector_multiply/recordings.json
m = recordings.measure("ten_launches", ten_launches)
print(m.label)                                      # recorded on NVIDIA H100 80GB HBM3, 2026-11-21
m.value["finished_seconds"]
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplab.bench import timing
from warplab.hardware import backend
from warplab.paths import COURSE

KERNELS = COURSE / "kernels"


class MissingRecording(LookupError):
    """There is no GPU to measure on, and nobody recorded this measurement."""


@dataclass(frozen=True)
class Measurement:
    """`value` as the measuring function returned it (in JSON types), the GPU and the date it is from."""

    value: Any
    device: str
    date: str
    live: bool

    @property
    def label(self) -> str:
        """What a table or a plot of this measurement must say of its origin."""
        return f"{'measured' if self.live else 'recorded'} on {self.device}, {self.date}"


class Recordings:
    """The recordings of one topic, in `folder/topic/recordings.json`."""

    def __init__(self, topic: str, folder: Path = KERNELS) -> None:
        self.topic = topic
        self.path = folder / topic / "recordings.json"

    def measure(self, key: str, function: Callable[[], Any]) -> Measurement:
        """Calls `function` on a GPU, or gives the recorded value of `key`.

        Raises MissingRecording where there is neither a GPU nor a recording.
        """
        if backend.name() == "gpu":
            about = timing.machine()
            return Measurement(timing.rounded(function()), about["device"], about["date"], live=True)
        recorded = self.load()
        if key not in recorded["values"]:
            known = ", ".join(sorted(recorded["values"])) or "none"
            raise MissingRecording(
                f"{key!r} was never recorded for {self.topic}; recorded are: {known}. Check the name, or run "
                f"`python -m kernels.{self.topic}.benchmark --record` on a machine with a GPU."
            )
        return Measurement(recorded["values"][key], recorded["device"], recorded["date"], live=False)

    def load(self) -> dict[str, Any]:
        """The whole file: `device`, `date` and more about the machine, and `values` by key."""
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            raise MissingRecording(
                f"there is no GPU here and {self.path} does not exist; "
                f"run `python -m kernels.{self.topic}.benchmark --record` on a machine with a GPU."
            ) from None
        return json.loads(text)

    def record(self, functions: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """Measures every function on the GPU and writes the file anew; returns the values by key."""
        timing.require_gpu("Recording")
        values = {}
        for key, function in functions.items():
            print(f"recording {key}", flush=True)
            values[key] = timing.rounded(function())
        text = json.dumps({**timing.machine(), "values": values}, indent=1)
        unfinished = self.path.with_suffix(".tmp")
        unfinished.write_text(text + "\n")
        os.replace(unfinished, self.path)
        return values
