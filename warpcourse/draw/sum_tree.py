"""The picture of a sum as a tree: which thread adds what in each step."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.style import BLUE, GREY, LAUNCH_DPI, LAUNCH_FONT, closed

OLD, NEW = "#F1F3F5", "#9CCBE8"
ORDERS = ("sequential", "interleaved")
MOST = 32


def draw_sum_tree(values: int | Sequence[float] = 8, order: str = "sequential") -> Figure:
    """Draw the steps of `part[t] += part[t + step]` until part[0] holds the sum of all `values`.

    `values`: a power of two from 2 to 32 numbers, or how many of them (1, 2, 3, ...). `order`: "sequential", where the
    first threads add and step halves each time, so that whole warps fall idle; or "interleaved", where step doubles and
    every second, fourth, ... thread adds, so that a few lanes of every warp stay busy.
    Raises ValueError for other orders and numbers of values.
    """
    if order not in ORDERS:
        raise ValueError(f"order is {order!r}; choose {ORDERS[0]!r} or {ORDERS[1]!r}")
    numbers: list[float] = list(range(1, values + 1)) if isinstance(values, int) else list(values)
    n = len(numbers)
    if not 2 <= n <= MOST or n & (n - 1):
        raise ValueError(f"{n} values; draw_sum_tree() takes 2, 4, 8, 16 or {MOST}")
    rows, active = [numbers], []
    for step, threads in _steps(n, order):
        row = list(rows[-1])
        for t in threads:
            row[t] = rows[-1][t] + rows[-1][t + step]
        rows.append(row)
        active.append((step, threads))
    with plt.rc_context(LAUNCH_FONT):
        figure = plt.figure(figsize=(9, 0.75 + 0.52 * len(rows)), dpi=LAUNCH_DPI)
        ax = figure.add_axes((0.005, 0.01, 0.99, 0.98))
        for k, row in enumerate(rows):
            step, threads = active[k - 1] if k else (0, [])
            for t, number in enumerate(row):
                colour = NEW if t in threads else OLD
                ax.add_patch(Rectangle((t + 0.06, 2 * k), 0.88, 1, fc=colour, ec="none"))
                ax.text(t + 0.5, 2 * k + 0.5, f"{number:g}", ha="center", va="center", fontsize=8)
            for t in threads:
                for source in (t, t + step):
                    ax.plot([source + 0.5, t + 0.5], [2 * k - 0.95, 2 * k - 0.05], color=BLUE, lw=1)
            many = f"{len(threads)} thread{'s' * (len(threads) > 1)}"
            text = f"step {step}: {many}" if k else "before"
            ax.text(-0.02 * n, 2 * k + 0.5, text, ha="right", va="center", color=GREY)
        for t in range(n):
            ax.text(t + 0.5, -0.3, str(t), ha="center", va="bottom", color=GREY, fontsize=8)
        ax.text(-0.02 * n, -0.3, "t", ha="right", va="bottom", color=GREY)
        ax.text(-0.21 * n, -1.5, f"{order}: {n} values, {len(active)} steps, {n - 1} additions", weight="bold")
        ax.set(xlim=(-0.215 * n, n), ylim=(2 * len(rows) - 0.8, -2.2))
        ax.axis("off")
    return closed(figure)


def _steps(n: int, order: str) -> list[tuple[int, list[int]]]:
    """Return for each step its distance and the threads that add."""
    distances = [1 << k for k in range(n.bit_length() - 1)]
    if order == "sequential":
        return [(step, list(range(step))) for step in reversed(distances)]
    return [(step, list(range(0, n, 2 * step))) for step in distances]
