"""Sizes that nobody knows before: drawn from the seed of a check, which in grading comes from the course's secret."""

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import numpy as np

Sizes = Callable[[np.random.Generator], list[Any]]


def drawn(
    count: int,
    least: Any,
    most: Any,
    *,
    multiple: int | tuple[int, ...] = 1,
    also: Iterable[Any] = (),
    known: Iterable[Any] = (),
) -> Sizes:
    """Return what draws `count` different sizes from `least` to `most`, for the argument `sizes` of `kernel`.

    Pairs of (blocks, threads per block) serve as its argument `launches`.

    `least`, `most`: both integers, or both tuples of integers, such as (rows, columns), between which each is drawn.
    The sizes are spread evenly over the magnitudes, so that small ones are as likely as large ones. `multiple`: every
    number is a multiple of it, or of its own part of it. `also`: sizes that are there beside those drawn. `known`:
    sizes that are not drawn, such as those of a visible test. Raises ValueError if there are not enough to draw.
    """
    fixed = list(also)
    taken = {*fixed, *known}
    bounds = np.broadcast_arrays(np.atleast_1d(least), np.atleast_1d(most), np.atleast_1d(multiple))
    choices = [np.arange(-(-low // step) * step, high + 1, step) for low, high, step in zip(*bounds, strict=True)]
    if count < 1 or any(not some.size or some[0] < 1 for some in choices):
        raise ValueError(f"drawn: {count} sizes from {least} to {most}, multiples of {multiple}; there are none")
    if prod(some.size for some in choices) < count + len(taken):
        raise ValueError(f"drawn: {count} sizes from {least} to {most} beside {len(taken)} others; there are too few")

    def draw(rng: np.random.Generator) -> list[Any]:
        sizes = list(fixed)
        while len(sizes) < count + len(fixed):
            numbers = tuple(int(rng.choice(some, p=(1 / some) / (1 / some).sum())) for some in choices)
            size = numbers if isinstance(least, tuple) else numbers[0]
            if size not in taken and size not in sizes:
                sizes.append(size)
        return sizes

    return draw
