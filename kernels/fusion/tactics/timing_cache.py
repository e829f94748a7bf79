"""The timing cache: seconds of each tactic by layer and device, kept in a JSON file.

A layer is known by its sizes, types, layouts and batch, not by its name or weights: a network whose layers are alike is
timed once, and a second network that shares some finds these. Times of different devices stay apart, and so do
estimates.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from sys import float_info

import jsonschema

from kernels.fusion.tactics.layer import Layer

FORMAT = 1


def _objects_of(inner: dict) -> dict:
    return {"type": "object", "additionalProperties": inner}


_SECONDS = {"type": "number", "minimum": 0, "maximum": float_info.max}
_SCHEMA = {
    "type": "object",
    "properties": {"format": {"const": FORMAT}, "timings": _objects_of(_objects_of(_objects_of(_SECONDS)))},
    "required": ["format", "timings"],
}


class TimingCacheError(ValueError):
    """A file that is no timing cache: the message says what is wrong with it, and what to do."""


@dataclass
class TimingCache:
    """Timings of `device`, and those of others that the file holds, which are kept. `hits`, `misses`: of `get`."""

    device: str
    timings: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    hits: int = 0
    misses: int = 0

    def get(self, layer: Layer, tactic: str) -> float | None:
        """Return seconds of a tactic on this device; None if nobody has timed it."""
        found = self.timings.get(self.device, {}).get(layer.key, {}).get(tactic)
        self.hits += found is not None
        self.misses += found is None
        return found

    def put(self, layer: Layer, tactic: str, seconds: float) -> None:
        """Keep a time. ValueError unless it is a finite number, at least 0."""
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"{tactic} took {seconds} seconds; a time is a finite number, at least 0")
        self.timings.setdefault(self.device, {}).setdefault(layer.key, {})[tactic] = float(seconds)

    def __len__(self) -> int:
        """Return how many times of this device it holds."""
        return sum(map(len, self.timings.get(self.device, {}).values()))

    def save(self, path: str | Path) -> None:
        """Write the file as a whole, so that it is never half written."""
        path = Path(path)
        text = json.dumps({"format": FORMAT, "timings": self.timings}, indent=1, sort_keys=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        unfinished.write_text(text + "\n", encoding="utf-8")
        os.replace(unfinished, path)

    @classmethod
    def load(cls, path: str | Path, device: str) -> TimingCache:
        """Return the cache in a file, for a device. TimingCacheError for a file of another kind."""
        try:
            # int refuses NaN and the infinities, which are no JSON.
            held = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=int)
        except (ValueError, RecursionError) as error:
            raise TimingCacheError(
                f"{path} is no timing cache ({error}); delete it, and tuning writes a new one"
            ) from None
        if not jsonschema.Draft202012Validator(_SCHEMA).is_valid(held):
            raise TimingCacheError(
                f"{path} is no timing cache of format {FORMAT}; delete it, and tuning writes a new one"
            )
        return cls(device, held["timings"])
