"""The timed launches of all labs, in two halves, and what each asks of a card: simulated once, kept outside git.

A launch is open or held out by a hash of its name, so nobody chooses. What was simulated is in `.estimate_error/` and
made again when a lab's files change.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warplab.bench.lab import Lab, labs
from warplab.bench.timed_launches import Part, TimedCall
from warplab.estimating.work import VERSION, Work, work_of
from warplab.hardware.cards import Card, card
from warplab.launch.simulate import simulate
from warplab.paths import COURSE

KEPT = COURSE / ".estimate_error"
CARD = "H100"  # on which the launches were timed
_SIMULATE = {"checks": False, "races": False, "trace_warps": 0, "instruction_limit": 2**42, "path_limit": 2**40}


@dataclass(frozen=True)
class Timed:
    """One call of a lab. Its time is read only by `seconds`."""

    lab: Lab
    call: TimedCall

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def is_open(self) -> bool:
        """Whether the call belongs to the half that may be looked at while the model is built."""
        return is_open(self.name)

    def seconds(self) -> float:
        """The recorded time."""
        return self.call.seconds(self.lab.recordings.recorded(self.call.key).value)

    def recorded_on(self) -> str:
        """GPU and date of the recording."""
        return self.lab.recordings.recorded(self.call.key).origin


def is_open(name: str) -> bool:
    """Whether a launch of this name is in the open half: by the first bit of its SHA-256."""
    return hashlib.sha256(name.encode()).digest()[0] < 128


def timed() -> list[Timed]:
    """The timed calls of all labs, in order. ValueError where two have the same name."""
    found = [
        Timed(lab, call)
        for lab in labs()
        if (lab.folder / "timed_launches.py").exists()
        for call in lab.module("timed_launches").TIMED
    ]
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two timed launches are called {', '.join(twice)}; give each a name of its own")
    return found


def half(held_out: bool, calls: Iterable[Timed] | None = None) -> list[Timed]:
    """The open half, or the one held out."""
    return [one for one in (timed() if calls is None else calls) if one.is_open != held_out]


def work(one: Timed) -> list[Work]:
    """What each launch of a call asks of the card, multiplied to the size that was timed."""
    path = KEPT / f"{hashlib.sha256(f'{VERSION} {_state(one.lab)} {one.name}'.encode()).hexdigest()[:24]}.json"
    if path.exists():
        return [Work.from_json(values) for values in json.loads(path.read_text())]
    found = [_simulated(part, card(CARD)) for part in one.call.parts()]
    KEPT.mkdir(exist_ok=True)
    path.write_text(json.dumps([one.as_json() for one in found]))
    return found


def _simulated(part: Part, device: Card) -> Work:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Numba's, of small grids
        launch = simulate(
            part.kernel(),
            part.grid,
            part.block,
            part.arguments(),
            shared_bytes=part.shared_bytes,
            sample_blocks=part.sample_blocks,
            **_SIMULATE,
        )
    found = work_of(launch, device)
    if (part.blocks, part.work) == (1.0, 1.0) and part.footprint is None:
        return found
    return found.times(part.blocks, part.work, part.footprint)


_states: dict[str, str] = {}


def _state(lab: Lab) -> str:
    """A hash of the lab's kernels."""
    if lab.topic not in _states:
        files: Sequence = sorted(p for p in lab.folder.iterdir() if p.suffix in (".cu", ".cuh", ".py"))
        text = hashlib.sha256()
        for path in files:
            if path.suffix != ".py" or path.stem in ("numba_kernels", "timed_launches"):
                text.update(path.read_bytes())
        _states[lab.topic] = text.hexdigest()
    return _states[lab.topic]
