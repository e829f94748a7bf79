"""The picture of a register tile: a thread's accumulators as the outer product of a column and a row."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.text.tables import TIMES

LEFT, ABOVE, TILE, LIT = "#B9D7EA", "#F6D2BC", "#DDEFE8", "#009E73"
MOST = 16  # rows or columns
NAMED = 8  # up to so many rows and columns each product is written out


def draw_outer_product(rows: int = 4, columns: int = 4, lit: tuple[int, int] | None = None) -> Figure:
    """Draw one step over k of a thread's register tile: `rows` values of A, `columns` of B, all their products.

    The tile stays in registers and is added to at each step, so a step loads rows + columns values for rows * columns
    multiply-adds: the larger and squarer the tile, the fewer loads per operation. `lit`: (row, column) of one
    accumulator to follow. Raises ValueError for sizes outside 1 to 16, and for a `lit` outside the tile.
    """
    for name, size in (("rows", rows), ("columns", columns)):
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
            raise ValueError(f"{name} is {size!r}; draw_outer_product() takes 1 to {MOST}")
    if lit is not None and not (0 <= lit[0] < rows and 0 <= lit[1] < columns):
        raise ValueError(f"lit is {lit!r}; the tile has rows 0 to {rows - 1} and columns 0 to {columns - 1}")
    with plt.rc_context(LAUNCH_FONT):
        across, down = max(columns + 2.6, (12.0 if max(rows, columns) <= NAMED else 16.0)), rows + 5.5
        inch = 0.44 if max(rows, columns) <= NAMED else 0.32
        figure = plt.figure(figsize=(across * inch, down * inch), dpi=LAUNCH_DPI)
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(-2.4, across - 2.4), ylim=(rows + 2.9, -2.6), aspect="equal")
        ax.axis("off")
        row, column = lit if lit is not None else (None, None)
        for r in range(rows):
            _cell(ax, -1.3, r, f"a{r}", LEFT, r == row, "A")
        for c in range(columns):
            _cell(ax, c, -1.3, f"b{c}", ABOVE, c == column, "B")
        named = max(rows, columns) <= NAMED
        for r in range(rows):
            for c in range(columns):
                _cell(ax, c, r, f"+a{r}b{c}" if named else "", LIT if (r, c) == lit else TILE, (r, c) == lit, "C")
        ax.text(-2.2, -2.1, f"{rows} {TIMES} {columns} register tile, one step over k", weight="bold", va="center")
        products = rows * columns
        per_load = f"{products / (rows + columns):.3g}"
        fmas = f"{products} FMA{'s' * (products > 1)}"
        summary = f"{rows} + {columns} = {rows + columns} loads, {fmas}: {per_load} FMAs per load"
        ax.text(-2.2, rows + 0.7, summary, va="center")
        below = "left: column k of A's tile; above: row k of B's tile"
        ax.text(-2.2, rows + 2.3, below, va="center", color=GREY)
        ax.text(-2.2, rows + 1.5, "a tile of 1: 2 loads, 1 FMA: 0.5 FMAs per load", va="center", color=GREY)
    return closed(figure)


def _cell(ax: plt.Axes, x: float, y: float, text: str, colour: str, lit: bool, part: str) -> None:
    """Draw one value. Its gid is the matrix that it belongs to."""
    style: dict[str, Any] = {"ec": "black" if lit else "white", "lw": 1.4 if lit else 1, "zorder": 2 if lit else 1}
    ax.add_patch(Rectangle((x, y), 1, 1, fc=colour, gid=part, **style))
    ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=8, weight="bold" if lit else "normal", zorder=3)
