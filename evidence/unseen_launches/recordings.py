"""Recorded times of the unseen launches, in files by what may be read when.

The first set is in two files, by the SHA-256 of the kernel's name: those open while the model was built, and those held
out, which were read for the first time on 2026-11-23 and have been open since. The second set was made after that, and
all of it is held out.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evidence.unseen_launches.unseen import UnseenKernel
from warpcourse.bench.timing import rounded

FOLDER = Path(__file__).parent
OPEN, HELD_OUT, SECOND = (FOLDER / f"recordings_{name}.json" for name in ("open", "held_out", "second"))


def is_open(name: str) -> bool:
    """Return whether what bears this name is in the open half of the first set: by the first bit of its SHA-256."""
    return hashlib.sha256(name.encode()).digest()[0] < 128


def file_of(kernel: UnseenKernel) -> Path:
    """Name the file that holds the launches of a kernel."""
    if kernel.second:
        return SECOND
    return OPEN if is_open(kernel.name) else HELD_OUT


def read(kernel: UnseenKernel, name: str) -> dict[str, Any]:
    """Return the recording of a launch. LookupError where there is none."""
    found = _load(file_of(kernel)).get(name)
    if found is None:
        raise LookupError(
            f"{name!r} was never recorded; run `python -m evidence.unseen_launches.record` on a machine with a GPU"
        )
    return found


def is_recorded(kernel: UnseenKernel, name: str) -> bool:
    """Return whether there is a recording of a launch."""
    return name in _load(file_of(kernel))


def add(kernel: UnseenKernel, name: str, values: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
    """Write the recording of a launch to the file of its kernel."""
    path = file_of(kernel)
    found = dict(_load(path)) | {name: {**rounded(dict(values)), "device": machine["device"], "date": machine["date"]}}
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    _load.cache_clear()


@functools.cache
def _load(path: Path) -> dict[str, dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
