"""Pictures of lab 05 that show what the notebook computed; those of the ladder are in `figures`.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter

from warpcourse.bench.charts import chart
from warplab.draw.style import BLUE, GREEN, GREY, ORANGE, PALE, PINK, closed, finish, ink
from warplab.text.tables import count

CURVES = ((BLUE, "o-"), (ORANGE, "s-"), (GREEN, "^-"), (PINK, "D-"), (GREY, "v-"))
ROWS_OF_LANES = ("#FFFFFF", "#E3EEF6")  # lanes 4g to 4g + 3 have one colour; neighbouring g differ


def draw_steps(row: int = 1, column: int = 2, side: int = 16, step: int = 4) -> Figure:
    """Draw a product of side × side matrices cut into steps: which blocks of A and B go into one block of D.

    `row`, `column`: of the block of D. A step is `step` × `step`; blocks of A and B that meet have one colour.
    """
    blocks = side // step
    shades = [plt.get_cmap("viridis")(0.25 + 0.6 * k / max(1, blocks - 1)) for k in range(blocks)]
    with chart(2, 2, figsize=(4.2, 4.2)) as (figure, axes):
        for ax, name in zip(axes.flat, ("", "B", "A", "D"), strict=True):
            ax.set(xlim=(0, side), ylim=(side, 0), aspect="equal", xticks=[], yticks=[])
            ax.set_visible(bool(name))
            for k in range(blocks):
                place = {"A": (step * k, step * row), "B": (step * column, step * k)}.get(name)
                if place:
                    ax.add_patch(Rectangle(place, step, step, color=shades[k]))
                    x, y = place[0] + step / 2, place[1] + step / 2
                    ax.text(x, y, str(k), ha="center", va="center", color=ink(shades[k]), weight="bold")
            if name == "D":
                ax.add_patch(Rectangle((step * column, step * row), step, step, color=ORANGE))
            for line in range(side + 1):
                style = {"color": GREY if line % step == 0 else PALE, "lw": 0.9 if line % step == 0 else 0.4}
                ax.axhline(line, **style)
                ax.axvline(line, **style)
            ax.set_title(name, loc="left", weight="bold")
        figure.tight_layout(pad=0.4)
    return closed(
        figure, f"block ({row}, {column}) of D, {step} × {step}: {blocks} blocks along a row of A and a column of B"
    )


def draw_fragments(a: np.ndarray, b: np.ndarray, d: np.ndarray, lane: int = 5, n: int = 8) -> Figure:
    """Draw which lane holds which element of A, B and D, laid out as in a product; one lane is highlighted.

    `a`, `b`, `d`: integers of shape (32, elements), the number of the element that a lane holds in each place of its
    registers, counted by rows of the matrix. `n`: columns of B and D. A cell has the number of its lane; in those of
    `lane` a small number more, the place in the registers.
    """
    m, k = d.size // n, b.size // n
    with chart(2, 2, figsize=(7.6, 9.2), width_ratios=(k, n), height_ratios=(k, m), layout="constrained") as (
        figure,
        axes,
    ):
        axes[0, 0].set_visible(False)
        for ax, name, held, columns in ((axes[0, 1], "B", b, n), (axes[1, 0], "A", a, k), (axes[1, 1], "D", d, n)):
            _draw_holders(ax, held, columns, lane)
            ax.set_title(f"{name} ({held.size // columns} × {columns})", loc="left", weight="bold")
    return figure


def _draw_holders(ax: Axes, held: np.ndarray, columns: int, lane: int) -> None:
    rows = held.size // columns
    for holder, place in np.ndindex(held.shape):
        y, x = divmod(int(held[holder, place]), columns)
        chosen = holder == lane
        colour = ORANGE if chosen else ROWS_OF_LANES[holder // 4 % 2]
        ax.add_patch(Rectangle((x, y), 1, 1, fc=colour, ec=PALE, lw=0.5))
        style = {"color": ink(colour), "weight": "bold" if chosen else "normal"}
        ax.text(x + 0.4, y + 0.46, str(holder), ha="center", va="center", fontsize=8, **style)
        if chosen:
            ax.text(x + 0.96, y + 0.99, str(place), ha="right", va="bottom", fontsize=7, color=ink(colour))
    ax.set(xlim=(0, columns), ylim=(rows, 0), aspect="equal")
    for axis, size in ((ax.xaxis, columns), (ax.yaxis, rows)):
        axis.set_ticks(np.arange(0, size, 4) + 0.5, [str(i) for i in range(0, size, 4)])
    ax.tick_params(length=0)


def draw_rows(profiles: Mapping[str, Any]) -> Figure:
    """Draw where the rows lie that one `ldmatrix.x4` reads, one panel per profile: its last load from shared memory.

    A line is 128 bytes, all banks once, in chunks of 16 bytes. A number is a row of a matrix of 8 × 8 halves, a colour
    one of the four matrices. Rows of one matrix in one column of the picture take turns.
    """
    with chart(1, len(profiles), figsize=(3 * len(profiles), 4.7), squeeze=False) as (figure, axes):
        for ax, (name, profile) in zip(axes[0], profiles.items(), strict=True):
            loads = [a for a in profile[0].accesses if a.space == "shared" and a.op == "load"]
            lines, columns = np.divmod((loads[-1].address - loads[-1].array_start).astype(int) // 16, 8)
            for lane, (y, x) in enumerate(zip(lines, columns, strict=True)):
                colour = CURVES[lane // 8][0]
                ax.add_patch(Rectangle((x, y), 1, 1, fc=colour))
                ax.text(x + 0.5, y + 0.5, str(lane % 8), ha="center", va="center", color=ink(colour), weight="bold")
            ax.set(xlim=(0, 8), ylim=(lines.max() + 1, 0), xticks=range(9), yticks=range(lines.max() + 2))
            ax.set_xticklabels([str(16 * k) for k in range(9)])
            ax.set(xlabel="byte of the line")
            ax.tick_params(length=0)
            finish(figure, ax, f"{name}: {profile.counts.shared_load_wavefronts} passes")
        axes[0, 0].set_ylabel("line of 128 bytes")
        keys = [Patch(color=CURVES[k][0], label=f"matrix {k}") for k in range(4)]
        figure.legend(handles=keys, ncols=4, frameon=False, loc="lower center", title="number: row of its matrix")
        figure.tight_layout(rect=(0, 0.1, 1, 1))
    return figure


def draw_errors(lengths: Sequence[int], errors: Mapping[str, Sequence[float]], title: str) -> Figure:
    """Draw relative error of sums of `lengths` products, a curve per name, with slopes of √K and of K to compare
    with."""
    lengths = np.asarray(lengths, float)
    with chart(figsize=(7.5, 3.6)) as (figure, ax):
        for (name, values), (colour, style) in zip(errors.items(), CURVES, strict=False):
            ax.plot(lengths, values, style, color=colour, ms=4, label=name)
        # The guides begin near the lowest point of all curves, so that they cross none of them.
        low = 0.5 * min(min(v for v in values if v > 0) for values in errors.values())
        for power, text in ((0.5, "√K"), (1, "K")):
            guide = low * (lengths / lengths[0]) ** power
            ax.plot(lengths, guide, ":", color=GREY, lw=1)
            ax.annotate(text, (lengths[-1], guide[-1]), (4, 0), textcoords="offset points", va="center", color=GREY)
        ax.set(xscale="log", yscale="log", xlabel="K, products a sum", ylabel="relative error")
        ax.set_xticks(lengths, [count(int(k)) for k in lengths], fontsize=7.5)
        ax.minorticks_off()
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.03, 1))
        finish(figure, ax, title)
    return figure


def draw_formats(magnitudes: Sequence[float], errors: Mapping[str, Sequence[float]]) -> Figure:
    """Draw relative error of rounding by the size of a number, one curve per format; where it is infinite there is
    none.

    Curves that are drawn first are wider, so that they are seen behind others upon them.
    """
    with chart(figsize=(7.5, 3.4)) as (figure, ax):
        for width, (name, values), (colour, _) in zip((8, 5, 3.5, 2.2, 1), errors.items(), CURVES, strict=True):
            values = np.where(np.isfinite(values), values, np.nan)
            ax.plot(magnitudes, values, color=colour, lw=width, label=name, drawstyle="steps-post")
        ax.set(xscale="log", yscale="log", ylim=(2e-4, 1.6), xlabel="size of the number", ylabel="relative error")
        ax.set_xscale("log", base=2)
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
        finish(figure, ax, "largest error of rounding, of the numbers of a size")
    return figure


def draw_gradients(gradients: np.ndarray, scale: float) -> Figure:
    """Draw distribution of the gradients' sizes, as they are and times `scale`, against the range of FP16."""
    size = np.abs(gradients[gradients != 0])
    info = np.finfo(np.float16)
    with chart(figsize=(7.5, 3)) as (figure, ax):
        bins = 2.0 ** np.arange(np.floor(np.log2(size.min())), 18)
        for factor, colour, name in ((1, BLUE, "gradients"), (scale, ORANGE, f"times {count(int(scale))}")):
            ax.hist(factor * size, bins, color=colour, alpha=0.65, label=name)
        end = 2.0**23  # room for a word beyond the largest number
        smallest, normal, largest = (float(x) for x in (info.smallest_subnormal, info.smallest_normal, info.max))
        ax.axvspan(ax.get_xlim()[0], smallest / 2, color=PALE, zorder=0)
        ax.axvspan(largest, end, color=PALE, zorder=0)
        top = ax.get_ylim()[1]
        for x, text, side in ((smallest / 2, "zero in FP16", "right"), (largest, "infinite", "left")):
            ax.text(x, top, f" {text} ", ha=side, va="top", fontsize=8)
        ax.axvline(normal, color=GREY, lw=1, ls="--")
        ax.text(normal, top, " full precision from here", ha="left", va="top", fontsize=8, color=GREY)
        ax.set_xscale("log", base=2)
        ax.set(xlim=(bins[0], end), xlabel="size", ylabel="how many")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: count(int(v))))
        ax.legend(frameon=False, loc="center", bbox_to_anchor=(0.7, 0.5))
        finish(figure, ax, f"gradients of the hidden layer, as they are and times {count(int(scale))}")
    return figure
