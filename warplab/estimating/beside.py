"""An estimate beside a time that is known of the same launch: what lessons show, with a GPU and without.

with profile() as p:
    kernel[grid, block](a, b)
found = estimate_if_possible(p)  # None, and a sentence that says why, where the assembler is missing
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from warplab.compile.errors import CompilerNotFound
from warplab.estimating.estimate import Estimate, estimate
from warplab.extras import MissingExtra
from warplab.hardware import backend, driver
from warplab.hardware.cards import Card, card, card_of

RECORDED_ON = "H100"  # where the course's times were recorded


@dataclass(frozen=True)
class KnownTime:
    """How long a launch took on a GPU. `seconds`; `device` and `date`: of the GPU and the day.

    `live`: measured now, else recorded. `of`: which launch it was, where it was not the learner's own.
    """

    seconds: float
    device: str
    date: str
    live: bool
    of: str = ""

    @property
    def verb(self) -> str:
        """Return what was done with it: "measured" or "recorded"."""
        return "measured" if self.live else "recorded"

    @property
    def label(self) -> str:
        """Return where and when: "recorded on NVIDIA H100 80GB HBM3, 2026-11-21"."""
        return f"{self.verb} on {self.device}, {self.date}"


def card_here() -> Card:
    """Return the card to estimate for: that of the GPU that runs kernels here, if its rates are known, else the one of
    the recordings."""
    found = driver.query().gpus if backend.name() == "gpu" else ()
    here = card_of(found[0].name) if found else None
    return here if here is not None and here.rates else card(RECORDED_ON)


def estimate_if_possible(profile: object, card: str | Card | None = None, **how: Any) -> Estimate | None:
    """Return `estimate(profile, card, **how)`, for `card_here()` if no card is given.

    Where NVIDIA's assembler is missing, print what to do and return None, so that a lesson goes on.
    """
    try:
        return estimate(profile, card_here() if card is None else card, **how)
    except (CompilerNotFound, MissingExtra) as error:
        print(f"No estimate, as it needs the machine code: {error}. The lesson goes on without it.")
        return None


def measured(found: Estimate) -> KnownTime | None:
    """Return the time of the very launch of an estimate, where it was profiled on a GPU, else None."""
    launch = found.launch
    if launch.gpu_seconds is None or found.blocks != 1 or found.each != 1:
        return None
    return KnownTime(launch.gpu_seconds, launch.gpu_name or "a GPU", datetime.date.today().isoformat(), live=True)


def off_by(found: Estimate, known: KnownTime) -> float:
    """Return the error of an estimate as a share of the known time: 0.1 if it is a tenth too long."""
    return found.seconds / known.seconds - 1


def sentences(known: Iterable[KnownTime]) -> list[str]:
    """Say where times are from, those of one GPU and day together: "Recorded on NVIDIA H100, 2026-11-21: a; b."."""
    launches: dict[str, list[str]] = {}
    for time in known:
        launches.setdefault(time.label, []).append(time.of)
    named = {label: "; ".join(dict.fromkeys(filter(None, of))) for label, of in launches.items()}
    return [f"{label[0].upper()}{label[1:]}{f': {of}' if of else ''}." for label, of in named.items()]
