"""A network as a picture: boxes in the order in which images run through, and lines from layer to layer, as SVG.

Lines that pass a row of boxes get a place of their own in it, so that none runs through a box. All ink is the page's
own text colour, so that the picture is readable on light and on dark ground.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

BOX, LANE, HEIGHT, GAP = 168, 24, 44, 22  # pixels: widths of a box and of a passing line, a box's height, between rows


@dataclass
class _Place:
    """A layer's box, or the place where a line passes a row: `layer` is None then."""

    layer: Mapping[str, Any] | None
    row: int
    above: list[_Place]
    x: float = 0.0

    @property
    def width(self) -> int:
        return LANE if self.layer is None else BOX


def svg(summary: Mapping[str, Any], says: str = "") -> str:
    """The picture of a network as `digits.networks.summary` describes it. `says`: its text alternative."""
    rows, width = _placed(summary["layers"])
    height = len(rows) * (HEIGHT + GAP) + GAP
    says = says or f"The network {summary['name']}: {len(summary['layers'])} layers, from top to bottom"
    lines = "".join(_line(above, place) for row in rows for place in row for above in place.above)
    boxes = "".join(_box(place) for row in rows for place in row)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{_escaped(says)}" font-size="12" '
        f'font-family="inherit" fill="currentColor" stroke="none">{lines}{boxes}</svg>'
    )


def _placed(layers: list[Mapping[str, Any]]) -> tuple[list[list[_Place]], float]:
    """The rows with all places' `x`, each row in the middle; and the picture's width."""
    rows = _rows(layers)
    width = max(sum(place.width + GAP for place in row) for row in rows) + GAP
    for row in rows:
        x = (width - sum(place.width + GAP for place in row) + GAP) / 2
        for place in row:
            place.x = x + place.width / 2
            x += place.width + GAP
    return rows, width


def _rows(layers: list[Mapping[str, Any]]) -> list[list[_Place]]:
    """Each layer one row below the lowest of those that it reads; passing lines have places in the rows between."""
    boxes: dict[str, _Place] = {}
    for layer in layers:
        known = [boxes[name] for name in layer["inputs"] if name in boxes]
        boxes[layer["name"]] = _Place(layer, 1 + max((box.row for box in known), default=-1), [])
    rows: list[list[_Place]] = [[] for _ in range(1 + max(box.row for box in boxes.values()))]
    passing: dict[tuple[str, int], _Place] = {}
    for layer in layers:
        box = boxes[layer["name"]]
        for name in dict.fromkeys(layer["inputs"]):
            if name not in boxes:
                continue
            above = boxes[name]
            for row in range(above.row + 1, box.row):
                if (name, row) not in passing:
                    passing[name, row] = _Place(None, row, [above])
                    rows[row].append(passing[name, row])
                above = passing[name, row]
            box.above.append(above)
        rows[box.row].append(box)
    for before, row in pairwise(rows):  # below what it reads, so that lines cross less
        at = {id(place): number for number, place in enumerate(before)}
        row.sort(key=lambda place: sum(at[id(above)] for above in place.above) / max(1, len(place.above)))
    return rows


def _top(place: _Place) -> float:
    return GAP + place.row * (HEIGHT + GAP)


def _line(above: _Place, place: _Place) -> str:
    start, end = _top(above) + HEIGHT, _top(place)
    through = f" L {place.x:g} {end + HEIGHT:g}" if place.layer is None else ""
    half = (start + end) / 2
    return (
        f'<path d="M {above.x:g} {start:g} C {above.x:g} {half:g}, {place.x:g} {half:g}, {place.x:g} {end:g}{through}" '
        'fill="none" stroke="currentColor" opacity="0.6"/>'
    )


def _box(place: _Place) -> str:
    if place.layer is None:
        return ""
    layer, left, top = place.layer, place.x - BOX / 2, _top(place)
    shape = " × ".join(map(str, layer["shape"])) or "scalar"
    title = f"{layer['name']}: {layer['kind']}, {shape}, {layer['parameters']:,} parameters"
    return (
        f"<g><title>{_escaped(title)}</title>"
        f'<rect x="{left:g}" y="{top:g}" width="{BOX}" height="{HEIGHT}" rx="5" fill="none" stroke="currentColor"/>'
        f'<text x="{place.x:g}" y="{top + 18:g}" text-anchor="middle">{_escaped(_short(layer["kind"]))}</text>'
        f'<text x="{place.x:g}" y="{top + 35:g}" text-anchor="middle" opacity="0.8">{_escaped(shape)}</text></g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:23]}…"


def _escaped(text: str) -> str:
    return html.escape(str(text), quote=True)
