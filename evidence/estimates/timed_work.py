"""Launches with recorded times, in groups, and what each asks of a card: simulated once, kept outside git.

`labs`: launches of the labs, whose errors have been published; the model was built with them in view. The others are
of kernels that no lab has (`evidence.unseen_launches`). `open` and `held out first`: the first set. A kernel of
it, with all its launches, is in one or the other by a hash of its name, so nobody chooses; the second half was read on
2026-11-23 and is open since. `held out second`: the second set, read on that day, too. `held out third`, `held out
fourth`, `held out fifth`, `held out sixth`: read on 2026-11-27, in this order. Since then all are open.

Times are an H100's and, of the sets, an H200's, too; a few of labs are an H200's alone. Both have the same
machine code, so a launch is simulated once.

What was simulated is in `.estimate_error/`, and made again when the files of a kernel change: `python -m
evidence.estimates.timed_work` simulates what is missing and reads no time.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evidence.estimates.timed_calls import Part, TimedCall
from evidence.unseen_launches import recordings
from evidence.unseen_launches.catalogue import launches
from evidence.unseen_launches.unseen import SOURCES, UnseenKernel, UnseenLaunch
from warpcourse.bench.lab import Lab, labs
from warpcourse.paths import COURSE
from warplab.estimating.work import VERSION, Work, work_of
from warplab.hardware.cards import Card, card
from warplab.launch.simulate import simulate

KEPT = COURSE / ".estimate_error"
OF_LABS = Path(__file__).parent / "of_labs"
CARD, OTHER = CARDS = ("H100", "H200")  # on which the launches were timed: all on the first, but for some of labs
LABS, OPEN, FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH = GROUPS = (
    *("labs", "open", "held out first"),
    *("held out second", "held out third", "held out fourth", "held out fifth", "held out sixth"),
)
_GROUP_OF_HALF = {
    recordings.OPEN: OPEN,
    recordings.HELD_OUT: FIRST,
    recordings.SECOND: SECOND,
    recordings.THIRD: THIRD,
    recordings.FOURTH: FOURTH,
    recordings.FIFTH: FIFTH,
    recordings.SIXTH: SIXTH,
}
_SIMULATE = {"checks": False, "races": False, "instruction_limit": 2**42, "path_limit": 2**40}


@dataclass(frozen=True)
class Timed:
    """One call with a recorded time, which only `seconds` reads.

    `name`: unique. `group`: of `GROUPS`. `kind`: the lab, or the kernel of an unseen launch. `parts()`: the call's
    launches, at the size that is simulated. `fills`, `warm`: as in `TimedCall`. `recorded_on(card)`: GPU and date.
    `state()`: a hash of the files that hold the kernel. `is_recorded(card)`: whether there is a time yet.
    """

    name: str
    group: str
    kind: str
    parts: Callable[[], Sequence[Part]]
    seconds: Callable[[str], float]
    recorded_on: Callable[[str], str]
    state: Callable[[], str]
    is_recorded: Callable[[str], bool]
    fills: int = 0
    warm: bool = False


def timed() -> list[Timed]:
    """Return the timed calls of all groups, in order. ValueError where two have the same name."""
    found = [
        *(
            _of_lab(lab, file, call)
            for lab in labs()
            if (file := OF_LABS / f"{lab.topic}.py").exists()
            for call in importlib.import_module(f"evidence.estimates.of_labs.{lab.topic}").TIMED
        ),
        *(_unseen(name, kernel, one) for name, kernel, one in launches()),
    ]
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two timed launches are called {', '.join(twice)}; give each a name of its own")
    return found


def group(name: str, calls: Iterable[Timed] | None = None, card: str = CARD) -> list[Timed]:
    """Return the calls of a group, as far as they have been recorded on a card."""
    return [one for one in (timed() if calls is None else calls) if one.group == name and one.is_recorded(card)]


def _of_lab(lab: Lab, file: Path, call: TimedCall) -> Timed:
    recorded = functools.partial((call.recordings or lab.recordings).recorded, call.key)
    kind = f"lab {lab.number:02}"
    return Timed(
        *(f"{kind}, {call.name}", LABS, kind, call.parts),
        lambda _: call.seconds(recorded().value),
        lambda _: recorded().origin,
        lambda: _state_of_lab(lab.folder, file),
        lambda card: recordings.name_of(recorded().origin.partition(", ")[0]) == card,
        call.fills,
        call.warm,
    )


def _unseen(name: str, kernel: UnseenKernel, one: UnseenLaunch) -> Timed:
    def recorded_on(card: str) -> str:
        found = recordings.read(kernel, name, card)
        return f"{found['device']}, {found['date']}"

    return Timed(
        *(name, _GROUP_OF_HALF[recordings.half_of(kernel)], kernel.name),
        lambda: [kernel.part(one)],
        lambda card: recordings.read(kernel, name, card)["seconds"],
        recorded_on,
        lambda: _state_of_kernel(kernel),
        lambda card: recordings.is_recorded(kernel, name, card),
        warm=kernel.warm,
    )


def work(one: Timed, again: bool = False) -> list[Work]:
    """Return what each launch of a call asks of the card, multiplied to the size that was timed.

    `again`: simulate also what is kept.
    """
    path = _kept(one)
    if path.exists() and not again:
        return [Work.from_json(values) for values in json.loads(path.read_text())]
    found = [_simulated(part, card(CARD)) for part in one.parts()]
    KEPT.mkdir(exist_ok=True)
    path.write_text(json.dumps([one.as_json() for one in found]))
    return found


def _kept(one: Timed) -> Path:
    """Name the file that keeps what a call asks of the card."""
    return KEPT / f"{hashlib.sha256(f'{VERSION} {one.state()} {one.name}'.encode()).hexdigest()[:24]}.json"


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


@functools.cache
def _state_of_lab(folder: Path, calls: Path) -> str:
    """Hash the kernels in a lab's folder and the module with its calls."""
    kernels = (p for p in folder.iterdir() if p.suffix in (".cu", ".cuh") or p.name == "numba_kernels.py")
    return _hash((*sorted(kernels), calls))


@functools.cache
def _state_of_kernel(kernel: UnseenKernel) -> str:
    """Hash the file with the kernel and the module with its cases."""
    cases = sys.modules[kernel.case.__module__].__file__
    assert cases is not None
    return _hash((SOURCES.folder / kernel.file, Path(cases)))


def _hash(files: Iterable[Path]) -> str:
    text = hashlib.sha256()
    for path in files:
        text.update(path.read_bytes())
    return text.hexdigest()


def main() -> int:
    """Simulate the calls that are not kept yet; say how long each took."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--group", choices=GROUPS, help="one group alone")
    parser.add_argument("--match", default="", help="only calls with this in their names")
    parser.add_argument("--again", action="store_true", help="also those that are kept: the model has changed")
    arguments = parser.parse_args()
    missing = [
        one
        for one in timed()
        if arguments.match in one.name
        and arguments.group in (None, one.group)
        and (arguments.again or not _kept(one).exists())
    ]
    for number, one in enumerate(missing, 1):
        begin = time.process_time()
        work(one, arguments.again)
        print(f"{number}/{len(missing)} {one.name}: simulated, {time.process_time() - begin:.1f} s of CPU", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
