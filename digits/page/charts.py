"""Curves as SVG that takes its colours from the page, light or dark, and as a legend and a sentence beside it.

A line is told from another by its marker and its dashes, too, not by colour alone. In the page of its own,
template/…/charts.js adds the values under the pointer and zoom; what it needs is in the attribute data-chart.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from digits.page.elements import escape

POINTS = 240  # of a line, at most; a longer one is drawn by means
LOOKS = 6  # different looks of lines; the seventh line looks like the first
_WIDTH, _HEIGHT, _TOP, _BOTTOM, _LETTER = 331, 180, 8, 38, 5.4  # units of the picture, which is scaled to its column
_MARKS = 30  # of a line, at most about
_MOST_TICKS = 6
# Markers, for the legend in a box of 8 x 8 around (12, 5).
_SHAPES = (
    "M12 2a3 3 0 1 0 .01 0z",
    "M9 2h6v6h-6z",
    "M12 1.5l3.5 6.5h-7z",
    "M12 1l4 4-4 4-4-4z",
    "M12 8.5l3.5-6.5h-7z",
    "M11 1.5h2v2.5h2.5v2h-2.5v2.5h-2v-2.5h-2.5v-2h2.5z",
)


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
    values = np.concatenate([values for _, _, values in lines])
    values = values[np.isfinite(values)]
    logarithmic = logarithmic and len(values) > 0
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if percent and not logarithmic:
        low, high = 0.0, 1.0
    elif not logarithmic:
        low, high = _widened(0.0 if plain and low >= 0 else low, high, bottom=not plain)
    elif low == high:
        low, high = low / 2, high * 2
    places = np.concatenate([places for _, places, _ in lines])
    left, right = (0.0, float(most)) if most else _widened(float(places.min()), float(places.max()), bottom=False)
    said = [(at, _label(at, logarithmic, percent)) for at in _ticks(low, high, logarithmic)]
    edge = 20 + _LETTER * max((len(label) for _, label in said), default=0)
    box = (round(edge, 1), _TOP, _WIDTH - 12, _HEIGHT - _BOTTOM)

    def across(at: float) -> float:
        return box[0] + (at - left) / (right - left) * (box[2] - box[0])

    def up(at: float) -> float:
        share = math.log(at / low) / math.log(high / low) if logarithmic else (at - low) / (high - low)
        return box[3] - share * (box[3] - box[1])

    rows = "".join(
        f'<path d="M{box[0]} {up(at):.1f}H{box[2]}"/><text x="{box[0] - 4}" y="{up(at) + 3.5:.1f}" '
        f'text-anchor="end">{label}</text>'
        for at, label in said
    )
    columns = "".join(
        f'<path d="M{across(at):.1f} {box[1]}V{box[3]}"/><text x="{across(at):.1f}" y="{box[3] + 13}" '
        f'text-anchor="middle">{at:g}</text>'
        for at in _ticks(left, right, False)
    )
    names = (
        f'<text x="{(box[0] + box[2]) / 2:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x)}</text><text '
        f'transform="translate(10 {(box[1] + box[3]) / 2}) rotate(-90)" text-anchor="middle">{escape(y)}</text>'
    )
    drawn = "".join(_drawn(line, at, of, across, up, plain) for line, at, of in lines)
    told = {
        "box": box,
        "x": [left, right],
        "title": x,
        "percent": percent,
        "lines": [
            {"name": line.name, "x": [float(f"{one:.6g}") for one in at], "y": [_number(one) for one in of]}
            for line, at, of in lines
        ],
    }
    size = f'viewBox="{box[0]} {box[1]} {box[2] - box[0]:.1f} {box[3] - box[1]}"'
    place = f'x="{box[0]}" y="{box[1]}" width="{box[2] - box[0]:.1f}" height="{box[3] - box[1]}"'
    whole = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" data-chart="{escape(json.dumps(told))}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {whole}>'
        f'<g class="digits-y">{rows}</g><g class="digits-x">{columns}</g>{names}'
        f'<svg class="digits-lines" {place} {size}>{drawn}</svg></svg>'
    )


def _drawn(
    line: Line,
    places: np.ndarray,
    values: np.ndarray,
    across: Callable[[float], float],
    up: Callable[[float], float],
    plain: bool,
) -> str:
    """Return a line's path, which has gaps where there is no number, and its markers."""
    path, marks, pen = "", "", "M"
    every = 1 + len(places) // _MARKS
    for at, (place, value) in enumerate(zip(places, values, strict=True)):
        if not math.isfinite(value):
            pen = "M"
            continue
        x, y = round(across(place), 1), round(up(value), 1)
        path, pen = f"{path}{pen}{x} {y}", "L"
        if not (line.dashed or plain) and at % every == 0:
            moved = f'transform="translate({x - 12:.1f} {y - 5:.1f})"'
            marks += f'<path d="{_SHAPES[line.look % LOOKS]}" data-at="{at}" {moved}/>'
    colour, dashes = f"var(--digits-line-{line.look % LOOKS})", " stroke-dasharray='4 2'" if line.dashed else ""
    width = 1.2 if line.dashed else 1.8
    return (
        f'<g style="stroke: {colour}; fill: {colour}"><path d="{path or "M0 0"}" fill="none" '
        f'stroke-width="{width}"{dashes}/>{marks}</g>'
    )


def _widened(low: float, high: float, bottom: bool) -> tuple[float, float]:
    """Return a range with a little room above, and below if asked; never an empty one."""
    room = 0.05 * (high - low) or abs(high) * 0.1 or 1.0
    return (low - room if bottom or low == high else low), (high + room if bottom or low == high else high)


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Return some round numbers of a range."""
    if logarithmic:
        powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
        if len(powers) > 1:
            return [10.0**power for power in powers[:: -(-len(powers) // _MOST_TICKS)]]
    rough = (high - low) / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{at * step:.12g}") for at in range(first, last + 1)]


def _label(value: float, logarithmic: bool, percent: bool) -> str:
    return _power(value) if logarithmic else f"{100 * value:g} %" if percent else f"{value:.6g}"


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
