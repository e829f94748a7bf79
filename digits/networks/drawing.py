"""A network as a picture: boxes in the order in which images run through, and lines from layer to layer, as SVG.

Lines that pass a row of boxes get a place of their own in it, so that none runs through a box. All ink is the page's
own text colour, so that the picture is readable on light and on dark ground.
"""

import html
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from warpcourse.bench import graph_rows
from warpcourse.bench.graph_rows import Place

BOX, LANE, HEIGHT, GAP = 168, 24, 44, 22  # pixels: widths of a box and of a passing line, a box's height, between rows


def svg(summary: Mapping[str, Any]) -> str:
    """Return the picture of a network as `digits.networks.summary` describes it."""
    rows, width = _placed(summary["layers"])
    height = len(rows) * (HEIGHT + GAP) + GAP
    says = f"The network {summary['name']}: {len(summary['layers'])} layers, from top to bottom"
    lines = "".join(_line(above, place) for row in rows for place in row for above in place.above)
    boxes = "".join(_box(place) for row in rows for place in row)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{html.escape(says)}" font-size="12" '
        f'font-family="inherit" fill="currentColor" stroke="none">{lines}{boxes}</svg>'
    )


def _placed(layers: list[Mapping[str, Any]]) -> tuple[list[list[Place]], float]:
    """Return the rows with all places' `x`, each row in the middle; and the picture's width."""
    rows = graph_rows.rows((layer["name"], layer["inputs"], layer) for layer in layers)
    for before, row in pairwise(rows):  # below what it reads, so that lines cross less
        at = {id(place): number for number, place in enumerate(before)}
        row.sort(key=lambda place: (sum(at[id(above)] for above in place.above) / len(place.above), place.number))
    width = max(sum(_width(place) + GAP for place in row) for row in rows) + GAP
    for row in rows:
        x = (width - sum(_width(place) + GAP for place in row) + GAP) / 2
        for place in row:
            place.x = x + _width(place) / 2
            x += _width(place) + GAP
    return rows, width


def _width(place: Place) -> int:
    return BOX if place.content else LANE


def _top(place: Place) -> float:
    return GAP + place.row * (HEIGHT + GAP)


def _line(above: Place, place: Place) -> str:
    start, end = _top(above) + HEIGHT, _top(place)
    through = f" L {place.x:g} {end + HEIGHT:g}" if place.content is None else ""
    half = (start + end) / 2
    return (
        f'<path d="M {above.x:g} {start:g} C {above.x:g} {half:g}, {place.x:g} {half:g}, {place.x:g} {end:g}{through}" '
        'fill="none" stroke="currentColor" opacity="0.6"/>'
    )


def _box(place: Place) -> str:
    if place.content is None:
        return ""
    layer, left, top = place.content, place.x - BOX / 2, _top(place)
    shape = " × ".join(map(str, layer["shape"])) or "scalar"
    title = f"{layer['name']}: {layer['kind']}, {shape}, {layer['parameters']:,} parameters"
    return (
        f"<g><title>{html.escape(title)}</title>"
        f'<rect x="{left:g}" y="{top:g}" width="{BOX}" height="{HEIGHT}" rx="5" fill="none" stroke="currentColor"/>'
        f'<text x="{place.x:g}" y="{top + 18:g}" text-anchor="middle">{html.escape(_short(layer["kind"]))}</text>'
        f'<text x="{place.x:g}" y="{top + 35:g}" text-anchor="middle" opacity="0.8">{html.escape(shape)}</text></g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:23]}…"
