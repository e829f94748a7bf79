"""The timing cache: seconds of each tactic by layer and device, kept in a JSON file.

A layer is known by its sizes, types, layouts and batch, not by its name or weights: a network whose layers are alike is
timed once, and a second network that shares some finds these. Times of different devices stay apart, and so do
estimates.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels.fusion.tactics.layer import Layer

FORMAT = 1


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
            held = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise TimingCacheError(
                f"{path} is no timing cache ({error}); delete it, and tuning writes a new one"
            ) from None
        if not isinstance(held, dict) or held.get("format") != FORMAT or not _is_right(held.get("timings")):
            raise TimingCacheError(
                f"{path} is no timing cache of format {FORMAT}; delete it, and tuning writes a new one"
            )
        return cls(device, held["timings"])


def _is_right(timings: Any) -> bool:
    return _nested(timings, 2) and all(
        isinstance(s, int | float) and not isinstance(s, bool) and math.isfinite(s) and s >= 0
        for s in _leaves(timings, 2)
    )


def _nested(value: Any, depth: int) -> bool:
    """Return whether a value is dictionaries, so many deep below the first."""
    return isinstance(value, dict) and (depth == 0 or all(_nested(v, depth - 1) for v in value.values()))


def _leaves(value: dict, depth: int) -> Iterable[Any]:
    for inner in value.values():
        if depth == 0:
            yield inner
        else:
            yield from _leaves(inner, depth - 1)
