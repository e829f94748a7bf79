"""Random choices that depend on the seed alone, in every version of Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Built on `random.Random.random`, the only method whose sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, n: int) -> int:
        return int(self._random() * n)

    def one(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def weighted(self, weights: dict[T, int]) -> T:
        left = self.below(sum(weights.values()))
        for option, weight in weights.items():
            left -= weight
            if left < 0:
                return option
        raise AssertionError

    def happens(self, percent: int) -> bool:
        return self.below(100) < percent
