"""The picture of a tile with its halo: what a block loads to compute its part of a stencil."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, closed

TILE, HALO, OTHER, OUT = "#9CCBE8", "#F5CF87", "#F1F3F5", "#93D5BF"
MOST = 40  # elements


def draw_halo(block: int = 8, radius: int = 2, n: int = 24, index: int = 1) -> Figure:
    """Draw what block `index` of `block` threads loads where each result needs `radius` neighbours on either side.

    The block's own elements are its tile, the neighbours beside it the halo; what lies outside the array of `n` is
    hatched. Below stand the tile in shared memory, then the results, and lines from one result to what it reads.
    Raises ValueError for sizes below 1, a negative radius, more than 40 elements and a block outside the array.
    """
    sizes = {"block": (block, 1), "radius": (radius, 0), "n": (n, 1), "index": (index, 0)}
    for name, (size, least) in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < least:
            raise ValueError(f"{name} is {size!r}; draw_halo() takes an integer of at least {least}")
    if n > MOST or block + 2 * radius > MOST:
        raise ValueError(f"n = {n}, block + 2 * radius = {block + 2 * radius}; draw_halo() draws up to {MOST} elements")
    if index * block >= n:
        raise ValueError(f"index is {index}; {n} elements have blocks 0 to {(n - 1) // block}")
    first, last = index * block, min(n, (index + 1) * block)
    left, right = min(0, first - radius), max(n, last + radius)
    with plt.rc_context(LAUNCH_FONT):
        figure = plt.figure(figsize=(9, 2.75), dpi=LAUNCH_DPI)
        ax = figure.add_axes((0.005, 0.1, 0.99, 0.89))
        for element in range(left, right):
            inside, near = 0 <= element < n, first - radius <= element < last + radius
            if inside or near:
                part = "tile" if first <= element < last else "halo" if near else "array"
                _cell(ax, element, 0, element, part, inside)
        for element in range(first - radius, last + radius):
            part = "tile" if first <= element < last else "halo"
            _cell(ax, element, 2.2, element, f"shared {part}", 0 <= element < n)
        for element in range(first, last):
            _cell(ax, element, 4.4, element, "result", True)
        one = (first + last - 1) // 2
        for element in range(one - radius, one + radius + 1):
            ax.plot([element + 0.5, one + 0.5], [3.2, 4.4], color="black", lw=0.8, zorder=3)
        for y, text in ((0.5, "in, device memory"), (2.7, "tile in shared memory"), (4.9, "out")):
            ax.text(left - 0.5, y, text, ha="right", va="center", color=GREY)
        loads = sum(0 <= e < n for e in range(first - radius, last + radius))
        results = last - first
        head = f"block {index}: {loads} loads for {results} results, each of which reads {2 * radius + 1} words"
        ax.text(left - 0.26 * (right - left), -0.9, head, weight="bold", va="center")
        ax.set(xlim=(left - 0.27 * (right - left), right + 0.2), ylim=(5.6, -1.5))
        ax.axis("off")
        handles = [Patch(color=TILE, label="the block's tile"), Patch(color=HALO, label="halo")]
        if first < radius or last + radius > n:
            handles.append(Patch(fc="white", ec=GREY, hatch="/////", lw=0.5, label="outside the array"))
        figure.legend(handles=handles, loc="lower left", ncols=3, frameon=False, handlelength=1.1, borderpad=0.1)
    return closed(figure)


def _cell(ax: Axes, x: float, y: float, element: int, part: str, inside: bool) -> None:
    """Draw one element; its gid is its part."""
    colour = {"tile": TILE, "halo": HALO, "array": OTHER, "result": OUT}[part.removeprefix("shared ")]
    style: dict[str, Any] = (
        {"fc": colour, "ec": "white"} if inside else {"fc": "white", "ec": GREY, "hatch": "/////", "lw": 0.5}
    )
    ax.add_patch(Rectangle((x, y), 1, 1, gid=part if inside else "outside", **style))
    if inside:
        ax.text(x + 0.5, y + 0.5, str(element), ha="center", va="center", fontsize=7.5)
