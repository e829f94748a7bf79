"""Curves as SVG that takes its colours from the page, light or dark, and as a legend and a sentence beside it.

matplotlib lays out axes and lines. Its colours become the CSS variables of page.css, and its text stays text. A line is
told from another by its marker and its dashes, too, not by colour alone.
"""

from __future__ import annotations

import io
import math
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from digits.page.elements import escape

POINTS = 240  # of a line, at most; a longer one is drawn by means
LOOKS = 6  # different looks of lines; the seventh line looks like the first
_WIDTH, _HEIGHT = 4.6, 2.5  # inches of 72 units; the page scales the picture to its column
_INK, _FAINT = "#0a0b0c", "#0a0b0d"
_COLOURS = tuple(f"#0a0b{16 + look:02x}" for look in range(LOOKS))
_MARKERS = ("o", "s", "^", "D", "v", "P")
# The markers again, for the legend: in a box of 8 x 8 around (12, 5).
_SHAPES = (
    "M12 2a3 3 0 1 0 .01 0z",
    "M9 2h6v6h-6z",
    "M12 1.5l3.5 6.5h-7z",
    "M12 1l4 4-4 4-4-4z",
    "M12 8.5l3.5-6.5h-7z",
    "M11 1.5h2v2.5h2.5v2h-2.5v2.5h-2v-2.5h-2.5v-2h2.5z",
)
_LOCK = threading.Lock()  # matplotlib's settings are the process's; charts are drawn in threads


@dataclass(frozen=True)
class Line:
    """A curve: its `name`, as the legend says it, and its points, `x` finite; NaN and infinities in `y` leave a gap.

    `look`: which colour and marker, 0 to `LOOKS` - 1, the same for all lines of a run. `dashed`: whether it is thin and
    dashed, without markers, as training is beside validation.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: int = 0
    dashed: bool = False


def chart(
    lines: Sequence[Line],
    title: str,
    x: str,
    y: str,
    logarithmic: bool = False,
    percent: bool = False,
    most: float | None = None,
    plain: bool = False,
) -> str:
    """Return the HTML of a chart: a title, the SVG with a text alternative, and a legend if there are several lines.

    `lines`: the curves; those without a point are left out. `x`, `y`: the axes, with units. `logarithmic`: whether the
    vertical axis is; values that are not positive are then left out. `percent`: whether y is a share from 0 to 1,
    shown as percent. `most`: where the horizontal axis ends, if not with the lines, so that progress can be seen.
    `plain`: whether lines have no markers: computed ones, where a point is nothing of its own.
    """
    lines = [line for line in lines if len(line.x)]
    head = f'<figure class="digits-chart"><figcaption>{escape(title)}</figcaption>'
    if not lines:
        return f'{head}<p class="digits-muted">No points yet.</p></figure>'
    drawn = [_thinned(line, logarithmic) for line in lines]
    with _LOCK:
        picture = _svg(drawn, x, y, logarithmic, percent, most, plain)
    label = escape(f"{title}. " + " ".join(told(line, x, percent) for line in lines))
    body = picture.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return f"{head}{body}{legend(lines) if len(lines) > 1 else ''}{_gaps(lines)}</figure>"


def legend(lines: Sequence[Line]) -> str:
    """Return the HTML of a legend: beside each name its line, dashes and marker."""
    keys = "".join(f"<li>{key(line.look, line.dashed)} {escape(line.name)}</li>" for line in lines)
    return f'<ul class="digits-legend">{keys}</ul>'


def key(look: int, dashed: bool = False) -> str:
    """Return the SVG of a sample of a line."""
    colour = f"var(--digits-line-{look % LOOKS})"
    dashes = ' stroke-dasharray="4 2" stroke-width="1.2"' if dashed else ' stroke-width="2"'
    marker = "" if dashed else f'<path d="{_SHAPES[look % LOOKS]}" fill="{colour}"/>'
    return (
        '<svg class="digits-key" viewBox="0 0 24 10" width="24" height="10" aria-hidden="true">'
        f'<path d="M0 5H24" stroke="{colour}" fill="none"{dashes}/>{marker}</svg>'
    )


def told(line: Line, x: str, percent: bool = False) -> str:
    """Return a line in words: where it starts, where it is now, and its lowest and highest point."""
    points = [(place, value) for place, value in zip(line.x, line.y, strict=True) if math.isfinite(value)]
    if not points:
        return f"{line.name}: no finite value."
    first, last = points[0], points[-1]
    low, high = min(points, key=lambda point: point[1]), max(points, key=lambda point: point[1])
    return (
        f"{line.name}: from {_shown(first[1], percent)} to {_shown(last[1], percent)} at {x} {last[0]:g}; lowest "
        f"{_shown(low[1], percent)} at {low[0]:g}, highest {_shown(high[1], percent)} at {high[0]:g}."
    )


def _shown(value: float, percent: bool) -> str:
    return f"{100 * value:.1f} %" if percent else f"{value:.4g}"


def _power(value: float) -> str:
    """Return a number of a logarithmic axis: 0.001 to 1000 as they are, others such as 10⁶."""
    if 1e-3 <= value <= 1e3:
        return f"{value:g}"
    factor, exponent = f"{value:.0e}".split("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if factor == "1" else f"{factor}·{power}"


def _gaps(lines: Sequence[Line]) -> str:
    for line in lines:
        for place, value in zip(line.x, line.y, strict=True):
            if not math.isfinite(value):
                return (
                    f'<p class="digits-error">{escape(line.name)} is not a finite number from {place:g} on: the '
                    "training has diverged. Take a lower rate.</p>"
                )
    return ""


def _thinned(line: Line, logarithmic: bool) -> tuple[Line, np.ndarray, np.ndarray]:
    """Return the points to draw: all of a short line, means of neighbours of a long one."""
    x, y = np.asarray(line.x, float), np.asarray(line.y, float)
    y = np.where(np.isfinite(y) & ((y > 0) | (not logarithmic)), y, np.nan)
    size = math.ceil(len(x) / POINTS)
    if size > 1:
        # The last bucket may be short; NaN in it counts for nothing, a bucket of NaN is a gap.
        pad = -len(x) % size
        x, y = (np.pad(values, (0, pad), constant_values=np.nan).reshape(-1, size) for values in (x, y))
        counted = np.isfinite(y).sum(1)
        y = np.where(counted > 0, np.nansum(y, 1) / np.maximum(counted, 1), np.nan)
        x = np.nansum(x, 1) / np.maximum(np.isfinite(x).sum(1), 1)
    return line, x, y


def _svg(
    lines: list[tuple[Line, np.ndarray, np.ndarray]],
    x: str,
    y: str,
    logarithmic: bool,
    percent: bool,
    most: float | None,
    plain: bool,
) -> str:
    # Here, since importing it takes longer than laying out the page.
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, PercentFormatter

    settings = {"svg.fonttype": "none", "svg.hashsalt": None, "font.family": "sans-serif", "text.parse_math": False}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        figure.patch.set_alpha(0)
        axes.patch.set_alpha(0)
        for line, places, values in lines:
            look = line.look % LOOKS
            marks = (
                {}
                if line.dashed or plain
                else {"marker": _MARKERS[look], "markersize": 4.5, "markevery": 1 + len(places) // 30}
            )
            dashes = {"linestyle": (0, (4, 2)), "linewidth": 1.2} if line.dashed else {"linewidth": 1.8}
            axes.plot(places, values, color=_COLOURS[look], clip_on=False, **marks, **dashes)
        if logarithmic and any(np.isfinite(values).any() for _, _, values in lines):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
            axes.yaxis.set_minor_formatter(NullFormatter())
        elif percent:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
            axes.set_ylim(0, 1)
        elif plain:
            axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        if most:
            axes.set_xlim(0, most)
        axes.set_xlabel(x, fontsize=10, color=_INK)
        axes.set_ylabel(y, fontsize=10, color=_INK)
        axes.tick_params(which="both", labelsize=9.5, labelcolor=_INK, color=_FAINT)
        axes.grid(color=_FAINT, linewidth=0.5)
        axes.spines[:].set_color(_FAINT)
        axes.spines[["top", "right"]].set_visible(False)
        stream = io.StringIO()
        FigureCanvasSVG(figure).print_svg(
            stream, metadata={"Date": None, "Creator": None, "Type": None, "Format": None}
        )
    return _themed(stream.getvalue())


def _themed(svg: str) -> str:
    svg = svg[svg.index("<svg") :]
    # A style sheet inside would hold for the whole page, and so would names that stand in every picture.
    svg = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*" ', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*" ', r"<svg \1", svg, count=1)
    colours = {_INK: "--digits-ink", _FAINT: "--digits-faint"}
    colours |= {colour: f"--digits-line-{look}" for look, colour in enumerate(_COLOURS)}
    for colour, variable in colours.items():
        svg = svg.replace(colour, f"var({variable})")
    return re.sub(r"\s*font-family: [^;\"]*;", "", re.sub(r"\s*\n\s*", " ", svg))  # the page's own font
