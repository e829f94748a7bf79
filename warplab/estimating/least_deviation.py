"""A linear program: quantities that are not negative, rules that hold exactly, and statements that hold as well as
they can: the weighed sum of what they are off is least."""

from collections.abc import Iterable, Sequence

import numpy as np

from warplab.extras import needed_for

Terms = Sequence[tuple[int, float]]  # quantities, each with its factor; their sum


class LeastDeviation:
    """`count` quantities, numbered from 0. `cost`: by quantity, what one unit of it costs besides."""

    def __init__(self, count: int, cost: Iterable[float]) -> None:
        self.count = count
        self._cost = list(cost)
        self._equal: list[tuple[Terms, float]] = []
        self._limits: list[Terms] = []
        self._near: list[tuple[Terms, float, float]] = []

    def equal(self, terms: Terms, value: float) -> None:
        """Demand that the sum of `terms` is `value`."""
        self._equal.append((terms, value))

    def at_most_zero(self, terms: Terms) -> None:
        """Demand that the sum of `terms` is at most 0."""
        self._limits.append(terms)

    def near(self, terms: Terms, value: float, weight: float) -> None:
        """Ask that the sum of `terms` is `value` as far as possible; each unit that it is off costs `weight`."""
        self._near.append((terms, value, weight))

    def solve(self) -> np.ndarray:
        """Return the quantities. Raises MissingExtra without SciPy, RuntimeError for rules that contradict."""
        with needed_for("A count of machine instructions"):
            from scipy.optimize import linprog

        # terms + under - over = value, and both cost their weight.
        total = self.count + 2 * len(self._near)
        cost = self._cost + [weight for _, _, weight in self._near for _ in range(2)]
        rows: list[Terms] = [terms for terms, _ in self._equal]
        for k, (terms, _, _) in enumerate(self._near):
            rows.append([*terms, (self.count + 2 * k, 1.0), (self.count + 2 * k + 1, -1.0)])
        values = [value for _, value in self._equal] + [value for _, value, _ in self._near]
        limits = {}
        if self._limits:
            limits = {"A_ub": _matrix(self._limits, total), "b_ub": np.zeros(len(self._limits))}
        found = linprog(cost, A_eq=_matrix(rows, total), b_eq=values, **limits, bounds=(0, None), method="highs")
        if found.x is None:
            raise RuntimeError(f"the linear program has no solution: {found.message}")
        return found.x[: self.count]


def _matrix(rows: Sequence[Terms], columns: int):
    from scipy.sparse import csr_matrix

    entries = [(factor, k, column) for k, terms in enumerate(rows) for column, factor in terms]
    factors, numbers, places = zip(*entries, strict=True)
    return csr_matrix((factors, (numbers, places)), shape=(len(rows), columns))
