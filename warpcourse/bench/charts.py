"""The frame of a lab's chart: type sizes, resolution, and colours of curves side by side."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from warplab.draw.style import AMBER, BLUE, DPI, FONT, GREEN, ORANGE, PINK, SKY, closed

COLOURS = BLUE, ORANGE, GREEN, PINK, AMBER, SKY


@contextmanager
def chart(*rows_and_columns: int, **settings: Any) -> Iterator[tuple[Figure, Any]]:
    """Give a lab's chart and its axes, as `plt.subplots` does, with its type sizes; closed for pyplot in the end."""
    with plt.rc_context(FONT):
        figure, axes = plt.subplots(*rows_and_columns, dpi=DPI, **settings)
        yield figure, axes
    closed(figure)
