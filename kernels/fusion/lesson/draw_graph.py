"""A graph as a picture, from its inputs at the top to its outputs at the bottom; fused layers stand out.

Layers in rows by the longest way from an input (Sugiyama's method: long arrows are led through empty places of the
rows between, places in a row follow the mean of their neighbours).
"""

import itertools
from collections import Counter
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from kernels.fusion.graph import Graph, Node
from warpcourse.bench import graph_rows
from warpcourse.bench.graph_rows import Place
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
class _Box:
    """What stands in the place of a layer, or of an input of the graph, which is of no kind."""

    lines: list[str]
    kind: str | None = None

    @property
    def height(self) -> float:
        """Return inches."""
        return LINE * len(self.lines) + 0.07


def draw_graph(graph: Graph, title: str | None = None) -> Figure:
    """Draw the picture of a graph."""
    rows = _arranged(graph)
    width = max(max(place.x for row in rows for place in row) + BOX / 2 + MARGIN, LEGEND_WIDTH)
    used = [
        kind for kind in KINDS if any(place.content and place.content.kind == kind for row in rows for place in row)
    ]
    height = sum(_row_heights(rows)) + LEGEND_LINE * len(used) + MARGIN
    with plt.rc_context({**style.FONT, "legend.fontsize": 7.5}):
        figure = plt.figure(figsize=(width, height + TITLE), dpi=style.DPI)
        total = figure.get_size_inches()
        ax = figure.add_axes((0, 0, width / total[0], height / total[1]))
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.axis("off")
        ax.text(MARGIN, -TITLE / 2, title or graph.name, weight="bold", va="center")
        _draw(ax, rows)
        handles = [Patch(facecolor=KINDS[kind], edgecolor=style.GREY, label=kind) for kind in used]
        ax.legend(handles=handles, loc="lower left", frameon=False, borderaxespad=0.3, labelspacing=0.3)
    kinds = Counter(place.content.kind or "input" for row in rows for place in row if place.content)
    return style.closed(figure, ", ".join(f"{number} {kind}" for kind, number in kinds.items()))


def _draw(ax: Axes, rows: list[list[Place]]) -> None:
    heights = _row_heights(rows)
    middle = np.cumsum(heights) - np.array(heights) / 2
    for row, height in zip(rows, heights, strict=True):
        for place in row:
            y, half = middle[place.row], _half(place, height)
            for other in place.below:
                # From the lower edge of a box, or straight through an empty place, to the upper edge of the next.
                end = middle[other.row] - _half(other, heights[other.row])
                _arrow(ax, (place.x, y + half), (other.x, end), head=bool(other.content))
            if place.content:
                _box(ax, place.content, place.x, y)
            else:
                ax.plot([place.x, place.x], [y - half, y + half], color=style.GREY, lw=0.7, zorder=0)


def _box(ax: Axes, box: _Box, x: float, y: float) -> None:
    corner = (x - BOX / 2, y - box.height / 2)
    look = {"facecolor": KINDS[box.kind] if box.kind else "white", "edgecolor": style.GREY, "linewidth": 0.6}
    shape = FancyBboxPatch(corner, BOX, box.height, boxstyle="round,pad=0,rounding_size=0.05", **look)
    ax.add_patch(shape)
    for i, text in enumerate(box.lines):
        name = i < len(box.lines) - 1 or box.kind is None
        where = y + (i - (len(box.lines) - 1) / 2) * LINE
        size, color = (NAME_SIZE, "black") if name else (DETAIL_SIZE, style.GREY)
        ax.text(x, where, text, ha="center", va="center_baseline", size=size, color=color)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], head: bool) -> None:
    """Draw an S-shaped line, upright at both ends, so that the parts of a long one join smoothly."""
    t = np.linspace(0, 1, 25)
    bend = (end[1] - start[1]) / 2
    x = start[0] + (end[0] - start[0]) * (3 * t**2 - 2 * t**3)
    y = (1 - t) ** 3 * start[1] + 3 * (1 - t) * t * ((1 - t) * (start[1] + bend) + t * (end[1] - bend)) + t**3 * end[1]
    ax.plot(x, y, color=style.GREY, lw=0.7, zorder=0)
    if head:
        ax.plot(end[0], end[1] - 0.025, marker="v", markersize=2.8, color=style.GREY, zorder=0)


def _arranged(graph: Graph) -> list[list[Place]]:
    """Return the places of all layers, in rows and with their x."""
    writers = {name: [name] for name in graph.inputs}
    layers: list[tuple[str, list[str], _Box]] = [(name, [], _Box([name])) for name in graph.inputs]
    for node in graph.nodes:
        reads = [writer for name in node.inputs for writer in writers[name]]
        layers.append((f"layer {node.name}", reads, _Box(_lines(node), _kind(node))))
        for part in node.outputs:
            writers.setdefault(part.tensor, []).append(f"layer {node.name}")
    rows = graph_rows.rows(layers)
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


def _mean(place: Place, others: list[Place]) -> float:
    return float(np.mean([other.x for other in others])) if others else place.x


def _pull(place: Place) -> tuple[float, float]:
    """Return the mean of the neighbours, and how strongly they pull. Long arrows pull harder, to be straight."""
    total, weights = 0.0, 0.0
    for other in (*place.above, *place.below):
        weight = 1.0 if place.content and other.content else 2.0 if place.content or other.content else 8.0
        total, weights = total + weight * other.x, weights + weight
    return (total / weights, weights) if weights else (place.x, 1e-3)


def _spread(row: list[Place]) -> None:
    """Move the places of a row towards their neighbours above and below, in order and a column apart.

    The least squares that keep the order: pool adjacent violators of (wanted - place in the row). Arrows that only pass
    need less room than boxes.
    """
    room = [0.0]
    for left, right in itertools.pairwise(row):
        room.append(
            room[-1] + (1.0 if left.content and right.content else 0.6 if left.content or right.content else 0.2)
        )
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


def _row_heights(rows: list[list[Place]]) -> list[float]:
    return [max(place.content.height for place in row if place.content) + GAP for row in rows]


def _half(place: Place, row: float) -> float:
    """Return half of a place's height; a line on its way crosses a row that is so high, upright."""
    return (place.content.height if place.content else row - GAP) / 2


def _kind(node: Node) -> str:
    if node.op == "cbr":
        return BRANCHES if len(node.outputs) > 1 else FUSED
    if node.op in ("conv", "dense"):
        return CONVOLUTION
    if node.op == "convert":
        return CONVERSION
    return POOLING if node.op.endswith("pool") else OTHER


def _lines(node: Node) -> list[str]:
    """Return the name, a line for each layer in it, and what the node is."""
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
