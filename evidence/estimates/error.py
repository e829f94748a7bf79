"""How far `warplab.estimate` is off: its times beside recorded ones, launch by launch.

`python -m evidence.estimates.error` shows the launches of the labs and of the sets of unseen ones, all of which are
open by now. `--card H200` compares with that card's times. `evidence.estimates.publish`
publishes all. `--match TEXT` takes the launches with that in their names. The roofline is shown for comparison. Needs
no GPU; the first run simulates every launch, some minutes.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from evidence.estimates.timed_work import CARD, CARDS, GROUPS, Timed, group, work
from warplab.estimating.launch_time import LaunchTime, launch_time
from warplab.estimating.rates import rates
from warplab.estimating.roofline import roofline
from warplab.estimating.work import Work
from warplab.simulator.count.counters import Counts, LaunchProfile
from warplab.text.tables import Column, Table, duration

NEAR, FAR = 0.15, 0.30


@dataclass(frozen=True)
class Result:
    """One timed call: seconds recorded, estimated and by roofline; `limit`: of its longest launch.

    `origin`: GPU and date. `kind`: its lab, or the kernel of an unseen launch.
    """

    name: str
    recorded: float
    estimated: float
    bound: float
    limit: str
    origin: str
    kind: str = ""

    @property
    def error(self) -> float:
        """Of the estimate, as a share of the recorded time: -0.2 for a fifth too short."""
        return self.estimated / self.recorded - 1

    @property
    def bound_error(self) -> float:
        """Of the roofline's bound."""
        return self.bound / self.recorded - 1


def result(one: Timed, card: str = CARD) -> Result:
    """Simulate a call, or read what was simulated, and estimate it."""
    parts, known = work(one), rates(card)
    times = [launch_time(part, known, warm=one.warm) for part in parts]
    more = len(parts) - 1 + one.fills  # launches that follow another
    seconds = sum(t.seconds - known.launch_seconds for t in times) + known.launch_seconds
    seconds += more * known.next_launch_seconds
    longest: LaunchTime = max(times, key=lambda t: t.seconds)
    bound = sum(roofline(_profile(part), card).seconds for part in parts)
    return Result(one.name, one.seconds(card), seconds, bound, longest.limit, one.recorded_on(card), one.kind)


def _profile(part: Work) -> LaunchProfile:
    """Return what the roofline needs of a launch."""
    return LaunchProfile(
        part.kernel,
        (max(1, round(part.blocks)), 1, 1),
        (part.threads, 1, 1),
        counts=Counts(**{name: round(n) for name, n in part.counts.items()}),
        footprint={"global_load_bytes": round(part.loaded), "global_store_bytes": round(part.stored)},
    )


def table(results: Sequence[Result]) -> Table:
    """Return one row per call."""
    columns = [
        *(Column("launch", "left"), Column("recorded"), Column("estimate"), Column("error")),
        *(Column("limit", "left"), Column("roofline"), Column("its error")),
    ]
    rows = [
        [
            *(r.name, duration(r.recorded), duration(r.estimated), percent(r.error)),
            *(r.limit, duration(r.bound), percent(r.bound_error)),
        ]
        for r in results
    ]
    return Table(columns, rows)


def percent(share: float) -> str:
    """Write an error: "+12 %"."""
    return f"{100 * share:+.0f} %"


def summary(errors: Sequence[float]) -> str:
    """Say the mean absolute error and the shares that are near."""
    sizes = [abs(error) for error in errors]
    near, far = (sum(size <= limit for size in sizes) for limit in (NEAR, FAR))
    return (
        f"mean absolute error {100 * statistics.fmean(sizes):.1f} %, {near} of {len(sizes)} within {100 * NEAR:.0f} %, "
        f"{far} of {len(sizes)} within {100 * FAR:.0f} %"
    )


def main() -> int:
    """Print the errors of the launches by group."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--card", choices=CARDS, default=CARD)
    parser.add_argument("--match", default="", help="only launches with this in their names")
    arguments = parser.parse_args()
    card = arguments.card
    found = {name: [one for one in group(name, card=card) if arguments.match in one.name] for name in GROUPS}
    if not any(found.values()):
        parser.error(f"no launch has {arguments.match!r} in its name; leave --match out to see them")
    for name, calls in found.items():
        if calls:
            results = [result(one, card) for one in calls]
            print(table(results).text())
            print(f"{name}, estimate: {summary([r.error for r in results])}")
            print(f"{name}, roofline: {summary([r.bound_error for r in results])}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
