"""What the charts of all labs share: colours, size of type, axes in readable units, the last touches.

The colours are told apart with any colour vision (Okabe and Ito 2008).
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from warplab.text.tables import count, duration, quantity

FONT = {"font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8.5}
DPI = 90
BLUE, ORANGE, GREEN, PINK, GREY, PALE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6B6B6B", "#D9D9D9"


def finish(figure: Figure, ax: Axes, title: str, *, pad: float = 6) -> None:
    """Title, grid and frame of one axes. `pad`: points between title and axes."""
    ax.set_title(title, loc="left", weight="bold", pad=pad)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=PALE, lw=0.6)
    ax.set_axisbelow(True)
    figure.tight_layout()


def closed(figure: Figure) -> Figure:
    """The figure, closed for pyplot: a notebook shows it once, as the value of the cell."""
    plt.close(figure)
    return figure


def count_axis(axis: Axis) -> None:
    """Whole numbers with thousands apart."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: count(int(v)) if v >= 1 else f"{v:g}"))


def duration_axis(axis: Axis) -> None:
    """Seconds, in the unit that suits each tick."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: short(duration(v)) if v > 0 else "0"))


def bytes_axis(axis: Axis) -> None:
    """Bytes, in the unit that suits each tick."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: short(quantity(v, "B"))))


def short(text: str) -> str:
    """ "10.0 kB" as "10 kB", for round numbers on an axis."""
    number, unit = text.split(" ")
    return f"{float(number):g} {unit}"
