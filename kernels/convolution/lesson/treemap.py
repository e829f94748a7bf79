"""Squarified treemaps: areas in proportion to values, as near to squares as can be.

Source: Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000).
"""

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle: its lower left corner, width and height."""

    x: float
    y: float
    width: float
    height: float


def squarified(values: Sequence[float], box: Box) -> list[Box]:
    """Return a box for each of `values`, in their order, with areas in proportion; together they fill `box`.

    Values must be positive, the largest first, or ValueError is raised.
    """
    if any(value <= 0 for value in values) or list(values) != sorted(values, reverse=True):
        raise ValueError(f"values must be positive, the largest first; they are {list(values)}")
    areas, found = [value * box.width * box.height / sum(values) for value in values], []
    while areas:
        count, short = 1, min(box.width, box.height)
        while count < len(areas) and _worst(areas[: count + 1], short) <= _worst(areas[:count], short):
            count += 1
        strip, box = _laid(areas[:count], box)
        found += strip
        areas = areas[count:]
    return found


def _worst(areas: Sequence[float], side: float) -> float:
    """Return the most that a box of a strip along `side` is longer than wide, or wider than long."""
    return max(max(side**2 * area / sum(areas) ** 2, sum(areas) ** 2 / (side**2 * area)) for area in areas)


def _laid(areas: Sequence[float], box: Box) -> tuple[list[Box], Box]:
    """Return the boxes of a strip along the shorter side, and what is left of `box` beside it."""
    upright = box.height <= box.width
    thickness, place, found = sum(areas) / min(box.width, box.height), 0.0, []
    for area in areas:
        length = area / thickness
        found.append(
            Box(box.x, box.y + place, thickness, length) if upright else Box(box.x + place, box.y, length, thickness)
        )
        place += length
    if upright:
        return found, Box(box.x + thickness, box.y, max(0.0, box.width - thickness), box.height)
    return found, Box(box.x, box.y + thickness, box.width, max(0.0, box.height - thickness))
