"""Colours, type sizes, axes and finishing touches of all pictures: charts of the labs and pictures of a launch.

The colours can be told apart with any kind of colour vision (Okabe and Ito 2008).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from warplab.text.tables import count, duration, quantity

if TYPE_CHECKING:
    from matplotlib.typing import ColorType, RcKeyType

_POWER = re.compile(r"\$\\mathdefault\{(\w+)\^\{(.*?)\}\}\$")  # Matplotlib's, on a logarithmic axis
_DIGIT = re.compile(r"\d")
MOST_NUMBERS = 16  # of one kind of bars, in a picture's words
DRAWING = {"needs_background": "light"}  # JupyterLab marks its image; on a dark page the course's desk turns it over

# Charts of the labs.
FONT: dict[RcKeyType, Any] = {"font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8.5}
DPI = 90

# Pictures of a launch, which hold more text.
LAUNCH_FONT: dict[RcKeyType, Any] = {**FONT, "legend.fontsize": 8}
LAUNCH_DPI = 100

BLUE, ORANGE, GREEN, PINK, GREY, PALE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6B6B6B", "#D9D9D9"
SKY, AMBER = "#56B4E9", "#E69F00"


def ink(colour: ColorType) -> str:
    """Return "black" or "white", whichever is read better on `colour`: at 4.5 : 1 or more, by WCAG 2's luminance."""
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in to_rgb(colour))
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "black" if luminance > 0.179 else "white"


def finish(figure: Figure, ax: Axes, title: str, *, pad: float = 6) -> None:
    """Give one axes its title, grid and frame. `pad`: points between title and axes."""
    ax.set_title(title, loc="left", weight="bold", pad=pad)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=PALE, lw=0.6)
    ax.set_axisbelow(True)
    figure.tight_layout()


def _three_digits(value: float) -> str:
    """Return a number to three digits as it is read aloud: 2,770 and not 2.77e+03."""
    text = f"{value:.3g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def _bars(ax: Axes) -> Iterator[str]:
    """Say the length of each bar, by the tick that it stands at, up to MOST_NUMBERS of one kind."""
    for kind in ax.containers:
        if isinstance(kind, BarContainer):
            across = kind.orientation == "horizontal"
            axis = ax.yaxis if across else ax.xaxis
            named_places = not isinstance(axis.get_major_locator(), MaxNLocator)
            labels = (t.get_text() for t in axis.get_ticklabels()) if named_places else ()
            ticks = dict(zip(axis.get_ticklocs(), labels, strict=False))
            told = []
            for bar in kind.patches[:MOST_NUMBERS]:
                place = bar.get_y() + bar.get_height() / 2 if across else bar.get_x() + bar.get_width() / 2
                near = min(ticks, key=lambda tick: abs(tick - place), default=0.0)
                where = ticks.get(near, "") if named_places else f"{place:.0f}"
                told.append(f"{where} {_three_digits(bar.get_width() if across else bar.get_height())}".strip())
            named = str(kind.get_label())
            yield ("" if named.startswith("_") else f"{named}: ") + ", ".join(told)


def _lines(ax: Axes) -> Iterator[str]:
    """Say where each curve begins and ends that has a name, or many points and an axis that has one."""
    for line in ax.get_lines():
        named, heights = str(line.get_label()), [y for y in np.asarray(line.get_ydata(), float) if np.isfinite(y)]
        if named.startswith("_") and len(heights) > 3:
            named = ax.get_ylabel() or "_"
        if not named.startswith("_") and len(heights) > 1:
            yield f"{named} from {_three_digits(heights[0])} to {_three_digits(heights[-1])}"


class Picture(Figure):
    """A figure that a notebook shows with what it says in words, since JupyterLab gives images no text alternative."""

    more = ""  # that no title says

    @property
    def says(self) -> str:
        """Return the titles, the bold texts, the notes and the numbers of the legends as one sentence."""
        legends = [*self.legends, *(legend for ax in self.axes if (legend := ax.get_legend()))]
        found = [self.get_suptitle()]
        for ax in self.axes:
            found += [ax.get_title(place).replace("\n", ", ") for place in ("left", "center", "right")]
            found += [t.get_text() for t in ax.texts if t.get_fontweight() == "bold" and t.get_text().count(" ") > 1]
        found += [text.get_text() for text in self.texts]
        labels = [text.get_text() for legend in legends for text in (legend.get_title(), *legend.get_texts())]
        found += [label for label in labels if _DIGIT.search(label)]
        found += [drawn for ax in self.axes for drawn in (*_bars(ax), *_lines(ax))]
        plain = (
            re.sub(r"\$\\mathdefault\{(\w+)\^\{(.*?)\}\}\$", r"\1^\2", text) for text in [*found, self.more]
        )  # powers on an axis
        kept = dict.fromkeys(" ".join(text.split()).rstrip(".") for text in plain)
        return "; ".join(text for text in kept if text) + "."

    def _ipython_display_(self) -> None:
        from IPython.core.pylabtools import print_figure
        from IPython.display import display

        shown = {"image/png": print_figure(self, base64=True), "text/plain": repr(self)}
        photograph = any(image.get_cmap().name == "gray" for ax in self.axes for image in ax.images)
        display(shown, raw=True, metadata={} if photograph else DRAWING)
        display({"text/html": folded(self.says), "text/plain": self.says}, raw=True)


def folded(words: str) -> str:
    """Return a picture's words as HTML, folded."""
    return f"<details><summary>In words</summary>{escape(words)}</details>" if words else ""


def closed(figure: Figure, more: str = "") -> Picture:
    """Return the figure, closed for pyplot, so that a notebook shows it once, as the value of the cell.

    `more`: what its words say beside its titles.
    """
    plt.close(figure)
    figure.__class__ = Picture  # pyplot makes figures in many ways, each with its own arguments
    assert isinstance(figure, Picture)
    figure.more = more
    return figure


def count_axis(axis: Axis) -> None:
    """Label an axis with whole numbers, thousands set apart."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: count(int(v)) if v >= 1 else f"{v:g}"))


def duration_axis(axis: Axis) -> None:
    """Label an axis of seconds, each tick in the unit that suits it."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: short(duration(v)) if v > 0 else "0"))


def bytes_axis(axis: Axis) -> None:
    """Label an axis of bytes, each tick in the unit that suits it."""
    axis.set_major_formatter(FuncFormatter(lambda v, _: short(quantity(v, "B"))))


def short(text: str) -> str:
    """Shorten "10.0 kB" to "10 kB", for round numbers on an axis."""
    number, unit = text.split(" ")
    return f"{float(number):g} {unit}"
