"""Recorded times of the unseen launches, in files by what may be read when, and by card.

The first set is in two files, by the SHA-256 of the kernel's name: those open while the model was built, and those held
out, which were read for the first time on 2026-11-23 and have been open since. The second set was made after that, and
all of it was held out, and so were the third to the sixth. The files are an
H100's; those of another card have its name at the end.
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
from warplab.hardware.cards import card_of

FOLDER = Path(__file__).parent
NAMES = "open", "held_out", "second", "third", "fourth", "fifth", "sixth"
HALVES = OPEN, HELD_OUT, SECOND, THIRD, FOURTH, FIFTH, SIXTH = NAMES


def is_open(name: str) -> bool:
    """Return whether what bears this name is in the open half of the first set: by the first bit of its SHA-256."""
    return hashlib.sha256(name.encode()).digest()[0] < 128


def half_of(kernel: UnseenKernel) -> str:
    """Say in which of `HALVES` a kernel is."""
    if kernel.of_set > 1:
        return HALVES[kernel.of_set]
    return OPEN if is_open(kernel.name) else HELD_OUT


def file_of(half: str, card: str = "H100") -> Path:
    """Name the file that holds a half's launches on a card."""
    return FOLDER / f"recordings_{half}{'' if card == 'H100' else f'_{card.lower()}'}.json"


def read(kernel: UnseenKernel, name: str, card: str = "H100") -> dict[str, Any]:
    """Return the recording of a launch. LookupError where there is none."""
    found = _load(file_of(half_of(kernel), card)).get(name)
    if found is None:
        raise LookupError(
            f"{name!r} was never recorded on an {card}; run `python -m evidence.unseen_launches.record` on a machine "
            "with one"
        )
    return found


def is_recorded(kernel: UnseenKernel, name: str, card: str = "H100") -> bool:
    """Return whether there is a recording of a launch."""
    return name in _load(file_of(half_of(kernel), card))


def add(kernel: UnseenKernel, name: str, values: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
    """Write the recording of a launch to the file of its kernel and card."""
    path = file_of(half_of(kernel), name_of(machine["device"]))
    found = dict(_load(path)) | {name: {**rounded(dict(values)), "device": machine["device"], "date": machine["date"]}}
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    _load.cache_clear()


def name_of(device: str) -> str:
    """Return a card's name by that which its driver gives it."""
    known = card_of(device)
    if known is None:
        raise ValueError(f"{device} is no card of cards.toml, which could name its file; add it first")
    return known.name


@functools.cache
def _load(path: Path) -> dict[str, dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
