"""The picture of nested tiles: a block's tile, one warp's part of it, one thread's part of that."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch, Rectangle

from warplab.draw.style import AMBER, GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.text.tables import TIMES, count

PLAIN, LINE = "#EAF1F7", "#8FA9BD"
MOST_LEVELS = 5
MOST_PARTS = 64  # along a side, drawn with lines between them


def draw_zoom(levels: Mapping[str, tuple[int, int]]) -> Figure:
    """Draw tiles inside tiles, one panel per level, each the lit part of the one before.

    `levels`: {name: (rows, columns)} from the outermost tile inwards, two to five of them, as in
    {"block": (128, 128), "warp": (64, 32), "thread": (8, 8)}; each must divide the one before.
    The last panel is divided into single elements. Raises ValueError where tiles do not fit.
    """
    sizes = list(levels.items())
    _check(sizes)
    with plt.rc_context(LAUNCH_FONT):
        figure, axes = plt.subplots(
            1, len(sizes), figsize=(max(5.0, 2.9 * len(sizes)), 3.3), dpi=LAUNCH_DPI, gridspec_kw={"wspace": 0.35}
        )
        figure.subplots_adjust(left=0.03, right=0.97, top=0.84, bottom=0.12)
        parts = [(name, *size) for name, size in sizes[1:]] + [("element", 1, 1)]
        for ax, (name, (rows, columns)), (inner, down, across) in zip(axes, sizes, parts, strict=True):
            _panel(ax, name, rows, columns, inner, down, across)
        for (before, after), (_, (rows, columns)) in zip(pairwise(axes), sizes[1:], strict=True):
            for mine, theirs in (((columns, 0), (0, 0)), ((columns, rows), (0, rows))):
                style: dict[str, Any] = {"color": AMBER, "lw": 1, "coordsA": "data", "coordsB": "data"}
                figure.add_artist(ConnectionPatch(mine, theirs, axesA=before, axesB=after, **style))
    return closed(figure)


def _check(sizes: list[tuple[str, tuple[int, int]]]) -> None:
    if not 2 <= len(sizes) <= MOST_LEVELS:
        raise ValueError(f"{len(sizes)} levels; draw_zoom() takes 2 to {MOST_LEVELS}, from the outermost tile inwards")
    for name, size in sizes:
        whole = isinstance(size, tuple | list) and len(size) == 2 and all(type(n) is int and n > 0 for n in size)
        if not whole:
            raise ValueError(f"{name} is {size!r}; give (rows, columns), two positive integers")
    for (outer, large), (inner, small) in pairwise(sizes):
        if large[0] % small[0] or large[1] % small[1]:
            raise ValueError(
                f"a {inner}'s tile of {small[0]} {TIMES} {small[1]} does not divide "
                f"a {outer}'s of {large[0]} {TIMES} {large[1]}; choose sizes that do"
            )


def _panel(ax: Axes, name: str, rows: int, columns: int, inner: str, down: int, across: int) -> None:
    """Draw one level and its parts of `down` times `across` elements, the first one lit."""
    ax.add_patch(Rectangle((0, 0), columns, rows, fc=PLAIN, ec="black", lw=1, gid=name))
    if rows // down <= MOST_PARTS and columns // across <= MOST_PARTS:
        ax.hlines(range(down, rows, down), 0, columns, color=LINE, lw=0.6)
        ax.vlines(range(across, columns, across), 0, rows, color=LINE, lw=0.6)
    ax.add_patch(Rectangle((0, 0), across, down, fc=AMBER, ec="black", lw=0.8, gid=inner, zorder=3))
    parts = rows * columns // (down * across)
    ax.set_title(f"{name}: {count(rows)} {TIMES} {count(columns)}", loc="left", weight="bold")
    grid = f" = {count(rows // down)} {TIMES} {count(columns // across)}" if parts > 1 else ""
    plural = "" if parts == 1 else "es" if inner.endswith(("s", "ch")) else "s"
    ax.set_xlabel(f"{count(parts)}{grid} {inner}{plural}", color=GREY)
    side = max(rows, columns)
    ax.set(xlim=(0, side), ylim=(side, 0), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
