"""Rules that choose, for each shape, how a product is computed: an estimate of the time whose constants are fitted to
measured times, and what the choices by it cost.

A plan's time is launch + waves × (start + steps × max(products, bytes from L2, latency) + results) + fix-up; each lab
says what its kernels' plans come to in these terms. What is fitted are the constants, on every second row of a table of
measured plans; the other rows tell how good the choice is where nothing was fitted.
"""

import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpcourse.bench import hopper

Shape = tuple[int, int, int]  # m, n, k
Constants = Mapping[str, float]
SEARCHES = 3  # for constants, of which the best counts, as each may end in a valley of its own
STEPS, FARTHEST = 12_000, 10  # of a search; times what the constants start from
_NEAR = 3  # plans count by how near they are to the fastest: (its time / theirs) ** _NEAR
_SURE = 40  # a choice between two plans counts by (their ratio) ** _SURE, where the rule takes the lower
_TIMES = 0.5  # how much the estimate of a time counts beside the choice


@dataclass(frozen=True)
class Row:
    """Measured plans of one shape: `seconds` of each, and of the library's fastest algorithm; None where it refuses."""

    shape: Shape
    plans: Sequence[Any]
    seconds: Sequence[float]
    library: float | None


Terms = Callable[..., tuple[float, ...]]  # of a plan for a shape
Estimate = Callable[[Constants, Any], Any]  # seconds from constants and terms: numbers, or arrays of them


def regret(row: Row, chosen: Any) -> float:
    """Return how many times as long as the fastest plan of a row the chosen one takes; ValueError if it is not among
    them."""
    if chosen not in row.plans:
        raise ValueError(f"{chosen} was not measured for {row.shape}")
    return row.seconds[list(row.plans).index(chosen)] / min(row.seconds)


def mean_regret(regrets: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, regrets)) / len(regrets))


def most_of(sharp: float, *times: Any) -> Any:
    """Return how long takes what is done side by side: the longest of times, and more where others come near it."""
    return sum(time**sharp for time in times) ** (1 / sharp)


def fit(rows: Sequence[Row], terms: Terms, estimate: Estimate, start: Constants, seed: int = 0) -> dict[str, float]:
    """Return constants with which the plan of the shortest estimated time costs least over the rows.

    `start`: where the search begins, seconds and their like, all positive. The search is random: it changes one or two
    constants at a time and keeps what is better; `seed` makes it repeatable.
    """
    random, names = np.random.default_rng(seed), list(start)
    table = np.array([terms(plan, row.shape) for row in rows for plan in row.plans]).T
    times = np.array([seconds for row in rows for seconds in row.seconds])
    sizes = [len(row.plans) for row in rows]
    first, least = np.cumsum([0, *sizes[:-1]]), np.repeat([min(row.seconds) for row in rows], sizes)
    near, more = (least / times) ** _NEAR, np.log(times / least)
    near /= np.repeat(np.add.reduceat(near, first), sizes)

    def loss(values: np.ndarray) -> float:
        estimated = estimate(dict(zip(names, values, strict=True)), table)
        chosen = (np.repeat(np.minimum.reduceat(estimated, first), sizes) / estimated) ** _SURE
        choices = np.add.reduceat(chosen * more, first) / np.add.reduceat(chosen, first)
        return (choices.sum() + _TIMES * float(near @ np.log(estimated / times) ** 2)) / len(rows)

    begin = np.array([start[name] for name in names])
    values, lowest, width = begin, loss(begin), 0.3
    for _ in range(STEPS):
        changed = values.copy()
        which = random.integers(len(values), size=random.integers(1, 3))
        changed[which] *= np.exp(random.normal(0, width, len(which)))
        changed = np.clip(changed, begin / FARTHEST, begin * FARTHEST)
        found = loss(changed)
        width = min(0.5, width * 1.1) if found < lowest else max(0.03, width * 0.995)
        if found < lowest:
            values, lowest = changed, found
    return {name: float(f"{value:.3g}") for name, value in zip(names, values, strict=True)}


@dataclass(frozen=True, eq=False)
class Rule:
    """A lab's rule: which of its plans takes the shortest time by arithmetic.

    `path`: plans.json, with `device`, `date`, `rule`, which holds the `constants` and their regret, and `rows`, which
    these are from. A plan is `plan(sizes(*numbers), parts, flag)`. `plans(shape, transposed, multiprocessors)`: those
    among which it chooses; `terms(plan, shape, transposed, multiprocessors)`: what `estimate` reckons with; `start`:
    where the search for constants begins.
    """

    path: Path
    plan: Callable[..., Any]
    sizes: Callable[..., Any]
    plans: Callable[..., list[Any]]
    terms: Terms
    estimate: Estimate
    start: Constants

    @functools.cached_property
    def table(self) -> dict[str, Any]:
        """Return plans.json."""
        return json.loads(self.path.read_text(encoding="utf-8"))

    def rows(self, found: Iterable[dict[str, Any]] | None = None) -> list[Row]:
        """Return measured plans, by default those of plans.json, from rows as it has them: `shape`, `library` in µs and
        `plans`, each [*packed(plan), µs]."""
        return [
            Row(
                tuple(row["shape"]),
                [self.unpacked(numbers) for *numbers, _ in row["plans"]],
                [1e-6 * time for *_, time in row["plans"]],
                row["library"] and 1e-6 * row["library"],
            )
            for row in (self.table["rows"] if found is None else found)
        ]

    def unpacked(self, numbers: Sequence[int]) -> Any:
        """Return a plan from what `packed` gave."""
        *sizes, parts, flag = numbers
        return self.plan(self.sizes(*sizes), parts, bool(flag))

    def chosen(self, m: int, n: int, k: int, transposed: str = "NN") -> Any:
        """Return the plan of the shortest estimated time on the current device. `transposed`: as BLAS says it."""
        return _chosen(self, (m, n, k), transposed, hopper.multiprocessors())

    def best(self, constants: Constants, shape: Shape, transposed: str = "NN", multiprocessors: int = 132) -> Any:
        """Return the plan that takes the shortest time with these constants."""
        found = self.plans(shape, transposed, multiprocessors)
        of = np.array([self.terms(plan, shape, transposed, multiprocessors) for plan in found]).T
        return found[int(np.argmin(self.estimate(constants, of)))]

    def fitted(self, found: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Return `constants` fitted to the rule's plans of every second row, and the regret of the choice, to all plans
        that were measured, on these and on the others."""
        rows = self.rows(found)
        halves = {"fitted": rows[::2], "held_out": rows[1::2]}
        own = [self._own(row) for row in halves["fitted"]]
        found_constants = (fit(own, self.terms, self.estimate, self.start, seed) for seed in range(SEARCHES))
        constants = min(found_constants, key=lambda each: self.regret(each, halves["fitted"])["mean"])
        return {"constants": constants} | {f"regret_{name}": self.regret(constants, h) for name, h in halves.items()}

    def _own(self, row: Row) -> Row:
        """Return a row with those of its plans alone among which the rule chooses."""
        own = set(self.plans(row.shape))
        kept = [i for i, plan in enumerate(row.plans) if plan in own]
        return Row(row.shape, [row.plans[i] for i in kept], [row.seconds[i] for i in kept], row.library)

    def regret(self, constants: Constants, rows: Iterable[Row]) -> dict[str, float]:
        """Return the geometric `mean` and the `most` of what the choice with these constants costs over rows."""
        found = [regret(row, self.best(constants, row.shape)) for row in rows]
        return {"mean": mean_regret(found), "most": max(found)}


def packed(plan: Any) -> list[int]:
    """Return a plan as plans.json holds it."""
    sizes, parts, flag = astuple(plan)
    return [*sizes, parts, int(flag)]


@functools.lru_cache(maxsize=4096)
def _chosen(rule: Rule, shape: Shape, transposed: str, multiprocessors: int) -> Any:
    return rule.best(rule.table["rule"]["constants"], shape, transposed, multiprocessors)
