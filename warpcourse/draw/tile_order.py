"""The picture of the order in which blocks take the tiles of a product, and what the tiles at hand read."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.text.tables import TIMES

NOW, LATER, READ, UNREAD = "#E69F00", "#F1F3F5", "#9CCBE8", "#F1F3F5"
MOST = 16  # rows or columns of tiles


def order(rows: int, columns: int, group: int) -> list[tuple[int, int]]:
    """Return the tiles as (row, column) in their order: a group of rows at a time, column by column."""
    found = []
    for first in range(0, rows, group):
        last = min(rows, first + group)
        found += [(row, column) for column in range(columns) for row in range(first, last)]
    return found


def draw_tile_order(rows: int = 8, columns: int = 8, at_once: int = 16, group: int = 1) -> Figure:
    """Draw the tiles of C numbered in the order in which blocks take them, the first `at_once` of them lit.

    `group`: rows that are gone through together, column by column; 1 is the plain order, row by row. Beside C stand
    the strips of A and above it those of B that the lit tiles read: the fewer, the more of it the L2 cache serves.
    The right panel is drawn for `group`, the left for 1, unless they are the same.
    Raises ValueError for numbers outside 1 to 16, and for more tiles at once than there are.
    """
    for name, value, most in (("rows", rows, MOST), ("columns", columns, MOST), ("group", group, rows)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ValueError(f"{name} is {value!r}; draw_tile_order() takes 1 to {most}")
    if isinstance(at_once, bool) or not isinstance(at_once, int) or not 1 <= at_once <= rows * columns:
        raise ValueError(f"at_once is {at_once!r}; C has {rows * columns} tiles")
    groups = [1] if group == 1 else [1, group]
    with plt.rc_context(LAUNCH_FONT):
        size = (max(4.2, 0.36 * (columns + 3)) * len(groups), 0.36 * (rows + 4) + 0.6)
        figure, axes = plt.subplots(1, len(groups), figsize=size, dpi=LAUNCH_DPI, squeeze=False)
        for ax, together in zip(axes[0], groups, strict=True):
            _panel(ax, rows, columns, at_once, together)
        figure.tight_layout()
    return closed(figure)


def _panel(ax: Axes, rows: int, columns: int, at_once: int, group: int) -> None:
    tiles = order(rows, columns, group)
    now = set(tiles[:at_once])
    read_rows, read_columns = {row for row, _ in now}, {column for _, column in now}
    for number, (row, column) in enumerate(tiles):
        colour = NOW if (row, column) in now else LATER
        ax.add_patch(Rectangle((column, row), 1, 1, fc=colour, ec="white", gid="now" if (row, column) in now else "C"))
        ax.text(column + 0.5, row + 0.5, str(number), ha="center", va="center", fontsize=7.5)
    for row in range(rows):
        _strip(ax, -1.4, row, row in read_rows, "A")
    for column in range(columns):
        _strip(ax, column, -1.4, column in read_columns, "B")
    ax.text(-0.9, -0.9, "A, B", ha="center", va="center", color=GREY)
    strips = f"{len(read_rows)} of A + {len(read_columns)} of B = {len(read_rows) + len(read_columns)} strips"
    how = "row by row" if group == 1 else f"groups of {group} rows"
    ax.set_title(
        f"{rows} {TIMES} {columns} tiles, {how}\n{at_once} at once read {strips}", loc="left", linespacing=1.35
    )
    ax.set(xlim=(-1.6, columns + 0.1), ylim=(rows + 0.1, -1.6), aspect="equal")
    ax.axis("off")


def _strip(ax: Axes, x: float, y: float, read: bool, name: str) -> None:
    style: dict[str, Any] = {"fc": READ if read else UNREAD, "ec": "white"}
    ax.add_patch(Rectangle((x, y), 1, 1, gid=f"{name} read" if read else name, **style))
