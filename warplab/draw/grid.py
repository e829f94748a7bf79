"""The picture of a grid: how thread blocks cover the elements of an array."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.text.tables import TIMES, count

BLOCK_COLOURS = ("#9CCBE8", "#F5CF87", "#93D5BF", "#E5B3CD")
HATCH = "#AAAAAA"
MOST_BLOCKS = 4
MOST_PASSES = 4
AT_LEAST = "\N{GREATER-THAN OR EQUAL TO}"


def draw_grid(grid: int | tuple[int], block: int | tuple[int], n: int, grid_stride: bool = False) -> Figure:
    """Draw a one-dimensional grid: its blocks, their threads, and under each thread its elements of an array of `n`.

    A thread owns element i = blockIdx.x * blockDim.x + threadIdx.x; with `grid_stride` also
    i + gridDim.x * blockDim.x and so on. Threads that a guard `i < n` must stop are hatched. Large grids and blocks are
    cut ("...").
    Raises ValueError where grid, block or n is not a positive integer (or a tuple of one).
    """
    grid, block, n = _positive("grid", grid), _positive("block", block), _positive("n", n)
    threads = grid * block
    passes = -(-n // threads) if grid_stride else 1
    shown_passes = min(passes, MOST_PASSES)
    blocks = _cut(grid, MOST_BLOCKS)
    widest = len(count(shown_passes * threads - 1))
    drawn = len([b for b in blocks if b is not None])
    lanes = _cut(block, max(3, 128 // (max(widest, 2) + 2) // drawn))

    with plt.rc_context(LAUNCH_FONT):
        figure, ax = plt.subplots(figsize=(9, 1.95 + 0.34 * shown_passes), dpi=LAUNCH_DPI)
        x = 0.0
        for b in blocks:
            if b is None:
                ax.text(x + 0.4, 1.0, "…", ha="center", va="center", fontsize=12)
                x += 1.1
                continue
            start = x
            colour = BLOCK_COLOURS[b % len(BLOCK_COLOURS)]
            for t in lanes:
                if t is None:
                    for y in (1.5, *(2.8 + p for p in range(shown_passes))):
                        ax.text(x + 0.5, y, "…", ha="center", va="center")
                else:
                    ax.add_patch(Rectangle((x, 1.05), 1, 0.9, fc=colour, ec="white"))
                    ax.text(x + 0.5, 1.5, str(t), ha="center", va="center", fontsize=8)
                    for p in range(shown_passes):
                        _element(ax, x, 2.35 + p, b * block + t + p * threads, n, colour)
                x += 1
            ax.text((start + x) / 2, 0.55, f"block {count(b)}", ha="center", va="center", weight="bold")
            ax.add_patch(Rectangle((start - 0.08, 0.15), x - start + 0.16, 1.9, fc="none", ec=GREY, lw=0.8))
            x += 0.5
        labels = ["threadIdx.x", "element i"] if shown_passes == 1 else ["threadIdx.x"]
        labels += [f"pass {p + 1}: i" + (f" + {count(p * threads)}" if p else "") for p in range(shown_passes)] * (
            shown_passes > 1
        )
        for y, label in zip([1.5, *(2.8 + p for p in range(shown_passes))], labels, strict=True):
            ax.text(-0.3, y, label, ha="right", va="center", color=GREY)
        bottom = 2.35 + shown_passes
        ax.text(0, bottom + 0.45, _coverage(threads, n, passes, shown_passes, grid_stride), va="center")
        ax.set(xlim=(-0.115 * x - 0.8, x), ylim=(bottom + 0.9, -0.75))
        ax.text(
            0,
            -0.4,
            f"grid {count(grid)} {TIMES} block {count(block)} = {count(threads)} threads, n = {count(n)}",
            weight="bold",
        )
        ax.axis("off")
        figure.subplots_adjust(0.005, 0.01, 0.995, 0.99)
    return closed(figure)


def _positive(name: str, value: int | tuple[int]) -> int:
    size = value[0] if isinstance(value, tuple | list) and len(value) == 1 else value
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ValueError(f"{name} is {value!r}; draw_grid() takes a positive integer: it draws one-dimensional grids")
    return int(size)


def _cut(size: int, most: int) -> list[int | None]:
    """List 0, 1, ..., size - 1, cut to about `most` entries, with None for what is left out."""
    return list(range(size)) if size <= most else [*range(most - 2), None, size - 1]


def _element(ax: Axes, x: float, y: float, element: int, n: int, colour: str) -> None:
    guarded = element >= n
    style = {"fc": "white", "ec": GREY, "hatch": "/////", "lw": 0.5} if guarded else {"fc": colour, "ec": "white"}
    with plt.rc_context({"hatch.linewidth": 0.5, "hatch.color": HATCH}):
        ax.add_patch(Rectangle((x, y), 1, 0.9, **style))
    ax.text(x + 0.5, y + 0.45, count(element), ha="center", va="center", fontsize=8, color=GREY if guarded else "black")


def _coverage(threads: int, n: int, passes: int, shown: int, grid_stride: bool) -> str:
    idle = passes * threads - n
    parts = []
    if shown < passes:
        parts.append(f"{count(passes)} passes, the first {shown} drawn")
    if idle > 0:
        where = " in the last pass" if passes > 1 else ""
        hatched = "hatched: " * (shown == passes)
        parts.append(
            f"{hatched}{count(idle)} thread{'s' * (idle > 1)}{where} with i {AT_LEAST} n, which the guard stops"
        )
    if idle < 0 and not grid_stride:
        parts.append(
            f"elements {count(threads)} to {count(n - 1)} have no thread, unless the kernel loops with a grid stride"
        )
    return "; ".join(parts) or "every thread owns as many elements as every other, and none is left over"
