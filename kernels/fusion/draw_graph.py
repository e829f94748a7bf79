"""A graph as a picture, from its inputs at the top to its outputs at the bottom; fused layers stand out.

Layers in rows by the longest way from an input (Sugiyama's method: long arrows are led through empty places of the
rows between, places in a row follow the mean of their neighbours).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from kernels.fusion.graph import Graph, Node
from warplab.draw import style

# Inches. A box holds a name and what the layer is.
COLUMN, BOX, LINE, GAP, MARGIN = 1.38, 1.29, 0.13, 0.13, 0.1
TITLE, LEGEND_LINE, LEGEND_WIDTH = 0.3, 0.17, 2.9
NAME_SIZE, DETAIL_SIZE = 6.5, 6.0
SWEEPS = 12
KINDS = {
    "convolution or dense": "#CFE2F3",
    "fused: convolution + bias (+ sum, ReLU)": "#F9CB9C",
    "fused: parallel branches in one": "#B6D7A8",
    "pooling": "#E4DAF1",
    "other layers": "#EFEFEF",
    "conversion of type or layout": "#FFF2A8",
}
CONVOLUTION, FUSED, BRANCHES, POOLING, OTHER, CONVERSION = KINDS


@dataclass
class _Place:
    """Where a layer stands, or an input of the graph, or (without text) an arrow on its way through a row.

    `height`: inches; of an arrow, that of the row, which it crosses upright.
    """

    row: int
    lines: list[str] = field(default_factory=list)
    kind: str | None = None
    x: float = 0.0
    height: float = 0.0
    above: list[_Place] = field(default_factory=list)
    below: list[_Place] = field(default_factory=list)


def draw_graph(graph: Graph, title: str | None = None) -> Figure:
    """The picture of one graph."""
    return _figure([(graph, title or graph.name)])


def draw_before_and_after(before: Graph, after: Graph, titles: tuple[str, str] | None = None) -> Figure:
    """Two graphs side by side, to one scale."""
    default = (f"before: {len(before.nodes)} layers", f"after: {len(after.nodes)}")
    return _figure(list(zip((before, after), titles or default, strict=True)))


def _figure(graphs: list[tuple[Graph, str]]) -> Figure:
    drawn = [(_arranged(graph), title) for graph, title in graphs]
    widths = [max(_width(rows), LEGEND_WIDTH) for rows, _ in drawn]
    heights = [_height(rows) for rows, _ in drawn]
    used = [kind for kind in KINDS if any(p.kind == kind for rows, _ in drawn for row in rows for p in row)]
    # The legend stands below the last graph, in the room that this leaves if it is the shorter one.
    height = max(*heights, heights[-1] + LEGEND_LINE * len(used) + MARGIN)
    with plt.rc_context({**style.FONT, "legend.fontsize": 7.5}):
        figure = plt.figure(figsize=(sum(widths), height + TITLE), dpi=style.DPI)
        total = figure.get_size_inches()
        left = 0.0
        for (rows, title), width in zip(drawn, widths, strict=True):
            ax = figure.add_axes((left / total[0], 0, width / total[0], height / total[1]))
            ax.set(xlim=(0, width), ylim=(height, 0))
            ax.axis("off")
            ax.text(MARGIN, -TITLE / 2, title, weight="bold", va="center")
            _draw(ax, rows)
            left += width
        handles = [Patch(facecolor=KINDS[kind], edgecolor=style.GREY, label=kind) for kind in used]
        ax.legend(handles=handles, loc="lower left", frameon=False, borderaxespad=0.3, labelspacing=0.3)
    return style.closed(figure)


def _draw(ax: Axes, rows: list[list[_Place]]) -> None:
    heights = _row_heights(rows)
    middle = np.cumsum(heights) - np.array(heights) / 2
    for row in rows:
        for place in row:
            for other in place.below:
                # From the lower edge of a box, or straight through an empty place, to the upper edge of the next.
                start, end = middle[place.row] + place.height / 2, middle[other.row] - other.height / 2
                _arrow(ax, (place.x, start), (other.x, end), head=bool(other.lines))
    for row in rows:
        for place in row:
            if place.lines:
                _box(ax, place, middle[place.row])
            else:
                ends = middle[place.row] - place.height / 2, middle[place.row] + place.height / 2
                ax.plot([place.x, place.x], ends, color=style.GREY, lw=0.7, zorder=0)


def _box(ax: Axes, place: _Place, y: float) -> None:
    corner = (place.x - BOX / 2, y - place.height / 2)
    look = {"facecolor": KINDS[place.kind] if place.kind else "white", "edgecolor": style.GREY, "linewidth": 0.6}
    shape = FancyBboxPatch(corner, BOX, place.height, boxstyle="round,pad=0,rounding_size=0.05", **look)
    ax.add_patch(shape)
    for i, text in enumerate(place.lines):
        name = i < len(place.lines) - 1 or place.kind is None
        where = y + (i - (len(place.lines) - 1) / 2) * LINE
        size, color = (NAME_SIZE, "black") if name else (DETAIL_SIZE, style.GREY)
        ax.text(place.x, where, text, ha="center", va="center_baseline", size=size, color=color)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], head: bool) -> None:
    """An S-shaped line, upright at both ends, so that the parts of a long one join smoothly."""
    t = np.linspace(0, 1, 25)
    bend = (end[1] - start[1]) / 2
    x = start[0] + (end[0] - start[0]) * (3 * t**2 - 2 * t**3)
    y = (1 - t) ** 3 * start[1] + 3 * (1 - t) * t * ((1 - t) * (start[1] + bend) + t * (end[1] - bend)) + t**3 * end[1]
    ax.plot(x, y, color=style.GREY, lw=0.7, zorder=0)
    if head:
        ax.plot(end[0], end[1] - 0.025, marker="v", markersize=2.8, color=style.GREY, zorder=0)


def _arranged(graph: Graph) -> list[list[_Place]]:
    """The places of all layers, in rows and with their x."""
    rows = _rows(graph)
    for row in rows:
        tallest = max(_text_height(place) for place in row)
        for place in row:
            place.height = _text_height(place) or tallest
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            row.sort(key=lambda place, down=sweep % 2 == 0: _mean(place, place.above if down else place.below))
            for i, place in enumerate(row):
                place.x = i - (len(row) - 1) / 2
    for sweep in range(40 * SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _spread(row)
    left = min(place.x for row in rows for place in row)
    for row in rows:
        for place in row:
            place.x = MARGIN + BOX / 2 + (place.x - left) * COLUMN
    return rows


def _rows(graph: Graph) -> list[list[_Place]]:
    writers: dict[str, list[_Place]] = {name: [_Place(0, [name])] for name in graph.inputs}
    places = [place for found in writers.values() for place in found]
    for node in graph.nodes:
        above = list({id(place): place for name in node.inputs for place in writers[name]}.values())
        place = _Place(1 + max((other.row for other in above), default=-1), _lines(node), _kind(node), above=above)
        for other in above:
            other.below.append(place)
        places.append(place)
        for part in node.outputs:
            writers.setdefault(part.tensor, []).append(place)
    rows: list[list[_Place]] = [[] for _ in range(1 + max(place.row for place in places))]
    for place in places:
        rows[place.row].append(place)
        place.below = [_led(rows, place, other) for other in place.below]
    return rows


def _led(rows: list[list[_Place]], start: _Place, end: _Place) -> _Place:
    """The next place on the way from one place to another: itself, or empty places that lead there."""
    last = start
    first = None
    for row in range(start.row + 1, end.row):
        empty = _Place(row, above=[last])
        rows[row].append(empty)
        if last is not start:
            last.below = [empty]
        first, last = first or empty, empty
    if last is not start:
        last.below = [end]
        end.above = [last if other is start else other for other in end.above]
    return first or end


def _mean(place: _Place, others: list[_Place]) -> float:
    return float(np.mean([other.x for other in others])) if others else place.x


def _pull(place: _Place) -> tuple[float, float]:
    """The mean of the neighbours, and how strongly they pull. Long arrows pull harder, to be straight."""
    total, weights = 0.0, 0.0
    for other in (*place.above, *place.below):
        weight = 1.0 if place.lines and other.lines else 2.0 if place.lines or other.lines else 8.0
        total, weights = total + weight * other.x, weights + weight
    return (total / weights, weights) if weights else (place.x, 1e-3)


def _spread(row: list[_Place]) -> None:
    """Move the places of a row towards their neighbours above and below, in order and a column apart.

    The least squares that keep the order: pool adjacent violators of (wanted - place in the row). Arrows that only pass
    need less room than boxes.
    """
    room = [0.0]
    for left, right in itertools.pairwise(row):
        room.append(room[-1] + (1.0 if left.lines and right.lines else 0.6 if left.lines or right.lines else 0.2))
    blocks: list[tuple[float, float, int]] = []  # what the places of a block want, how strongly, and how many they are
    for place, offset in zip(row, room, strict=True):
        wanted, weight = _pull(place)
        wanted, count = wanted - offset, 1
        while blocks and blocks[-1][0] >= wanted:
            other, strength, places = blocks.pop()
            wanted = (other * strength + wanted * weight) / (strength + weight)
            weight, count = strength + weight, places + count
        blocks.append((wanted, weight, count))
    found = [wanted for wanted, _, count in blocks for _ in range(count)]
    for place, value, offset in zip(row, found, room, strict=True):
        place.x = value + offset


def _text_height(place: _Place) -> float:
    return LINE * len(place.lines) + 0.07 if place.lines else 0


def _height(rows: list[list[_Place]]) -> float:
    return sum(_row_heights(rows))


def _row_heights(rows: list[list[_Place]]) -> list[float]:
    return [max(place.height for place in row) + GAP for row in rows]


def _width(rows: list[list[_Place]]) -> float:
    return max(place.x for row in rows for place in row) + BOX / 2 + MARGIN


def _kind(node: Node) -> str:
    if node.op == "cbr":
        return BRANCHES if len(node.outputs) > 1 else FUSED
    if node.op in ("conv", "dense"):
        return CONVOLUTION
    if node.op == "convert":
        return CONVERSION
    return POOLING if node.op.endswith("pool") else OTHER


def _lines(node: Node) -> list[str]:
    """The name, a line for each layer in it, and what the node is."""
    names = node.name.split(" + ")
    return [*(f"{name} +" for name in names[:-1]), names[-1], _detail(node)]


def _detail(node: Node) -> str:
    if node.op in ("conv", "cbr"):
        filters = node.weights["filters"].shape
        text = f"{node.op} {filters[2]}×{filters[3]}, {'+'.join(str(part.channels) for part in node.outputs)}"
        if node.op == "cbr":
            kind = {"float32": "", "float16": "FP16 ", "int8": "INT8 "}[node.attributes["precision"]]
            text = kind + text.replace("cbr", "CBR") + (", + x" if len(node.inputs) == 2 else "")
        return text
    if "window" in node.attributes:
        height, width = node.attributes["window"]
        return f"{node.op.replace('_', ' ')} {height}×{width}"
    return node.op.replace("_", " ")
