"""The picture of a cluster: blocks whose tiles of A and B are loaded once and sent to several of them."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from warplab.draw.style import BLUE, GREY, LAUNCH_DPI, LAUNCH_FONT, ORANGE, closed
from warplab.text.tables import TIMES

A_COLOUR, B_COLOUR, BLOCK = "#B9D7EA", "#F6D2BC", "#EDEFF1"
MOST = 4  # blocks along a side; more than eight in all need a kernel's consent
PORTABLE = 8


def draw_cluster(rows: int = 2, columns: int = 2) -> Figure:
    """Draw a cluster of `rows` times `columns` blocks in C = A B, and where each block's tiles come from.

    Blocks of one row need the same tile of A, those of one column the same tile of B. Without a cluster each block
    loads both. With multicast a tile is loaded once and written to the shared memory of every block that needs it.
    Raises ValueError for sides outside 1 to 4 and for more than 8 blocks, the most that every Hopper GPU allows.
    """
    for name, size in (("rows", rows), ("columns", columns)):
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
            raise ValueError(f"{name} is {size!r}; draw_cluster() takes 1 to {MOST}")
    if rows * columns > PORTABLE:
        raise ValueError(
            f"{rows} {TIMES} {columns} = {rows * columns} blocks; a portable cluster has at most {PORTABLE}"
        )
    with plt.rc_context(LAUNCH_FONT):
        figure = plt.figure(figsize=(max(6.6, 1.7 * (columns + 1.4)), 0.95 * (rows + 1) + 0.8), dpi=LAUNCH_DPI)
        ax = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        for row in range(rows):
            ax.add_patch(Rectangle((-1.5, row + 0.15), 0.9, 0.5, fc=A_COLOUR, ec=GREY, gid="A"))
            ax.text(-1.05, row + 0.4, f"A, rows {row}", ha="center", va="center", fontsize=8)
            for column in range(columns):
                _arrow(ax, (-0.6, row + 0.4), (column + 0.02, row + 0.3 + 0.06 * column), BLUE, "multicast A")
        for column in range(columns):
            ax.add_patch(Rectangle((column + 0.02, -1.0), 0.8, 0.45, fc=B_COLOUR, ec=GREY, gid="B"))
            ax.text(column + 0.42, -0.78, f"B, columns {column}", ha="center", va="center", fontsize=8)
            for row in range(rows):
                _arrow(ax, (column + 0.42, -0.55), (column + 0.42 + 0.08 * row, row + 0.02), ORANGE, "multicast B")
        for row in range(rows):
            for column in range(columns):
                ax.add_patch(
                    Rectangle((column + 0.02, row + 0.02), 0.8, 0.72, fc=BLOCK, ec="black", gid="block", zorder=3)
                )
                text = f"block {row}, {column}"
                ax.text(column + 0.42, row + 0.38, text, ha="center", va="center", fontsize=8, zorder=4)
        blocks = rows * columns
        head = f"cluster of {rows} {TIMES} {columns}: {rows} + {columns} = {rows + columns} tiles loaded"
        head += f" per step over k, without multicast {blocks} {TIMES} 2 = {2 * blocks}"
        ax.text(-1.5, -1.35, head, weight="bold", va="center")
        ax.set(xlim=(-1.6, max(columns, 3.6)), ylim=(rows + 0.02, -1.6))
        ax.axis("off")
    return closed(figure)


def _arrow(ax: plt.Axes, start: tuple[float, float], end: tuple[float, float], colour: str, kind: str) -> None:
    arrow = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, shrinkA=0, shrinkB=0)
    arrow.set(color=colour, gid=kind, zorder=2)
    ax.add_patch(arrow)
