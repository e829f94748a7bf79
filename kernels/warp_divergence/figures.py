"""Pictures of lab 03. Those of measurements take what `measurements` returns, wrapped by `recordings.measure`, and
carry the measurement's label: measured or recorded, on which GPU, when. `draw_lanes` and `draw_picture` show what a
kernel of the notebook computed. The simulator's timeline of a warp is `warplab.draw_timeline`.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from kernels.warp_divergence.order import LETTERS
from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw import timeline
from warplab.draw.style import BLUE, GREEN, GREY, ORANGE, PINK, closed, duration_axis, finish, ink
from warplab.text.tables import count

COLOURS = dict(zip(LETTERS, timeline.COLOURS, strict=False))  # those of the letters in the lesson's timelines
WARP = 32


def draw_order(m: Measurement, kernel: str = "ordered") -> Figure:
    """Draw which lanes ran which letter when, from `measurements.order_of_sides`: a bar from each letter to the next.

    `kernel`: one of those measured; ValueError names them.
    """
    row = _find(m.value, "kernel", kernel)
    letters = sorted(row["letters"], key=lambda letter: letter["clocks"])
    # A letter ends where the warp goes on with the next; the last is drawn as long as the one before it.
    starts = [letter["clocks"] for letter in letters]
    ends = [*starts[1:], 2 * starts[-1] - starts[-2]]
    with chart(figsize=(8, 2.4)) as (figure, ax):
        for letter, begin, end in zip(letters, starts, ends, strict=True):
            first, lanes = letter["first_lane"], letter["lanes"]
            colour = COLOURS[letter["letter"]]
            ax.barh(first + lanes / 2, end - begin, lanes, begin, color=colour)
            where = ((begin + end) / 2, first + lanes / 2)
            ax.annotate(letter["letter"], where, ha="center", va="center", color=ink(colour), weight="bold")
        ax.set(ylim=(WARP, 0), xlim=(0, ends[-1]), xlabel="clocks of the multiprocessor", ylabel="lane")
        ax.set_yticks([0, 4, 8, 16, 24, 32])
        finish(figure, ax, f"{kernel}: {row['sequence']}, {m.label}")
    return figure


def draw_paths(m: Measurement) -> Figure:
    """Draw the time by the number of ways, by lane and by warp, from `measurements.path_costs`, and K times one way."""
    rows = m.value["rows"]
    ways = [row["ways"] for row in rows]
    one = rows[0]["by_warp_seconds"]
    with chart(figsize=(7.5, 3)) as (figure, ax):
        ax.plot(ways, [k * one for k in ways], "--", color=GREY, lw=1, label="K times one way")
        for by, colour, label in (("lane", ORANGE, "ways by lane"), ("warp", BLUE, "ways by warp")):
            ax.plot(ways, [row[f"by_{by}_seconds"] for row in rows], "o-", color=colour, ms=4, label=label)
        ax.set(xscale="log", yscale="log", xlabel="ways K through the kernel", ylabel="time")
        ax.set_xticks(ways, [str(k) for k in ways])
        ax.minorticks_off()
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        duration_axis(ax.yaxis)
        ax.legend(frameon=False)
        finish(figure, ax, f"{count(m.value['n'])} threads, {m.value['steps']} steps, {m.label}")
    return figure


def draw_efficiency(paths: Measurement, tasks: Measurement) -> Figure:
    """Draw warp efficiency (simulator) against time (GPU), one panel for each kind of work.

    `paths` and `tasks`: from `measurements.path_costs` and `measurements.task_times`. The dashed line is what would be
    if time were instructions alone: half the efficiency, twice the time.
    """
    ways = {"K ways by lane": [_point(row, "by_lane_", str(row["ways"])) for row in paths.value["rows"]]}
    groups: dict[str, list[tuple[float, float, str]]] = {}
    for row in tasks.value:
        groups.setdefault(row["group"], []).append(_point(row, "", row["name"]))
    curves = {**ways, **groups}
    down = -(-len(curves) // 2)
    with chart(down, 2, figsize=(8.5, 2.5 * down + 0.3), squeeze=False) as (figure, axes):
        for ax, (name, points), colour in zip(axes.flat, curves.items(), (ORANGE, BLUE, GREEN, PINK), strict=False):
            _points(ax, points, colour)
            finish(figure, ax, name)
        for ax in axes.flat[len(curves) :]:
            ax.axis("off")
        first = axes[0, 0]
        first.set(xscale="log", yscale="log", xlim=(0.02, 1.6), ylim=(0.8, 1.6 * first.dataLim.y1))
        for axis in (first.xaxis, first.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        for ax in axes.flat[1 : len(curves)]:
            ax.set(xlim=(0, 1.5), ylim=(0.8, max(1.8, 1.1 * ax.dataLim.y1)), xticks=np.linspace(0, 1, 6))
        first.legend(frameon=False, loc="lower left")
        figure.suptitle(f"Efficiency and time, {tasks.label}", x=0.01, ha="left", fontsize=9, weight="bold")
        figure.tight_layout()
    return figure


def _points(ax: Axes, points: list[tuple[float, float, str]], colour: str) -> None:
    """Draw points (efficiency, seconds, text), in units in which the most efficient lies on time = 1 / efficiency."""
    best = max(points, key=lambda point: point[0])
    unit = best[0] * best[1]
    times = np.linspace(1, max(2.0, *(seconds / unit for _, seconds, _ in points)))
    ax.plot(1 / times, times, "--", color=GREY, lw=1, zorder=1, label="time = 1 / efficiency")
    ax.plot([p[0] for p in points], [p[1] / unit for p in points], "o", color=colour, ms=5)
    for x, y, text in points:
        # To the right and above, where the dashed line falls away; but on the left of what lies below that line.
        below = x > 0.4 and x * y < 0.98 * unit
        place = {"xytext": (-6, -9), "ha": "right"} if below else {"xytext": (6, 4), "ha": "left"}
        ax.annotate(text, (x, y / unit), textcoords="offset points", fontsize=7.5, **place)
    ax.set(xlabel="warp efficiency (simulator)", ylabel="time, relative")


def _point(row: dict[str, Any], prefix: str, name: str) -> tuple[float, float, str]:
    return row[f"{prefix}warp_efficiency"], row[f"{prefix}seconds"], name


def draw_lanes(values: np.ndarray, offsets: Sequence[int], used: np.ndarray | None = None) -> Figure:
    """Draw what each lane holds before and after each step of shuffles: lanes across, steps down, with arrows.

    `values`: shape (steps + 1, lanes). `offsets`: of each step, how many lanes further its value comes from; negative
    for lanes before. `used`: bool of the same shape, False for values that do not matter and are drawn grey; all
    matter if it is not given. An arrow is drawn for each step into every lane whose value matters and changed.
    """
    values = np.asarray(values)
    steps, lanes = values.shape
    used = np.ones(values.shape, bool) if used is None else used
    with chart(figsize=(9, 0.55 + 0.5 * steps)) as (figure, ax):
        for row, lane in np.ndindex(values.shape):
            matters = used[row, lane]
            style = {"boxstyle": "round,pad=0.15", "fc": "#DCEBF5" if matters else "#F4F4F4", "ec": "none"}
            colour = "black" if matters else "#A6A6A6"
            ax.text(lane, row, values[row, lane], ha="center", va="center", fontsize=7.5, color=colour, bbox=style)
        for row, offset in enumerate(offsets):
            for lane in range(lanes):
                if 0 <= lane + offset < lanes and used[row + 1, lane] and values[row + 1, lane] != values[row, lane]:
                    arrow = {"arrowstyle": "->", "color": BLUE, "lw": 0.7, "alpha": 0.7}
                    ax.annotate("", (lane, row + 0.78), (lane + offset, row + 0.22), arrowprops=arrow)
        labels = ["before", *(f"from lane {offset:+d}" for offset in offsets)]
        ax.set_yticks(range(steps), labels)
        ax.set_xticks(range(0, lanes, 4 if lanes > 16 else 1))
        ax.set(xlim=(-0.7, lanes - 0.3), ylim=(steps - 0.5, -0.6), xlabel="lane")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        figure.tight_layout()
    first, last = (", ".join(map(str, values[:, lane])) for lane in (0, lanes - 1))
    return closed(figure, f"{lanes} lanes, {len(offsets)} steps: lane 0 holds {first}; lane {lanes - 1} {last}")


def draw_picture(passes: np.ndarray, shapes: Mapping[str, tuple[int, int]]) -> Figure:
    """Draw passes of each pixel, and the efficiency of each warp by the shape of its piece of the picture.

    `passes`: integers, shape (height, width). `shapes`: name -> width and height of a warp's piece, which divide those
    of the picture. A warp's efficiency is the mean of its pixels' passes over their maximum.
    """
    height, width = passes.shape
    with chart(1, 1 + len(shapes), figsize=(9, 3)) as (figure, axes):
        axes[0].imshow(np.log1p(passes), cmap="gray", origin="lower")  # the figure's only scale is the bar's
        axes[0].set_title("passes, more is brighter", loc="left")
        for ax, (name, (across, down)) in zip(axes[1:], shapes.items(), strict=True):
            warps = passes.reshape(height // down, down, width // across, across)
            longest = warps.max(axis=(1, 3))
            share = warps.mean(axis=(1, 3)) / np.maximum(longest, 1)
            extent = (0, width, 0, height)
            ax.imshow(share, "viridis", vmin=0, vmax=1, origin="lower", extent=extent, interpolation="nearest")
            ax.set_title(f"{name}: {passes.sum() / (across * down * longest.sum()):.2f} busy", loc="left")
        for ax in axes:
            ax.set_xticks([])
            ax.set_yticks([])
        bar = figure.colorbar(axes[-1].images[0], ax=axes, fraction=0.015, pad=0.01)
        bar.set_label("share of a warp's lanes that are busy")
    return figure


def draw_rates(m: Measurement, by: str, value: Any) -> Figure:
    """Draw the bandwidth of each kernel of `histogram_table` or `selection_table`, beside the copy and libraries.

    `by`, `value`: which rows, "data" with "uniform" or "skewed", "share" with 0.1, 0.5 or 0.9; ValueError for others.
    """
    rows = [row for row in m.value["rows"] if row[by] == value]
    if not rows:
        raise ValueError(f"{by} {value!r} was not measured; measured are {sorted({r[by] for r in m.value['rows']})}")
    rows = _by_kernel(rows)
    colours = {"library": GREY, "Numba": GREEN, "CUDA C++": BLUE}
    with chart(figsize=(8, 0.9 + 0.27 * len(rows))) as (figure, ax):
        for place, row in enumerate(rows):
            ax.plot(row["gbps"], place, "o", color=colours[row["language"]])  # a bar has no length on this axis
            text = f"{_rate(row['gbps'])} GB/s"
            if row["ratio_to_cub"] is not None:
                text += f", {_share(row['ratio_to_cub'])} of CUB"
            # In a column of their own, which neither dots nor the line of the copy reach.
            ax.annotate(
                text, (1, place), (6, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center"
            )
        ax.axvline(m.value["copy_gbps"], color="black", lw=1, ls="--", zorder=0.9)
        ax.annotate("copy", (m.value["copy_gbps"], -0.6), (0, 2), textcoords="offset points", ha="center")
        ax.set_yticks(range(len(rows)), [row["name"] for row in rows])
        ax.set(
            ylim=(len(rows) - 0.4, -0.6), xscale="log", xlim=(1, 2 * m.value["copy_gbps"]), xlabel="GB/s (logarithmic)"
        )
        finish(figure, ax, "")
        figure.suptitle(f"{count(m.value['n'])} elements, {by} {value}, {m.label}", fontsize=9, weight="bold")
        figure.tight_layout()
    return figure


def _by_kernel(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows in their order, but a kernel of two languages in one place, and libraries last."""
    names = [row["name"].removeprefix("cuda_").removeprefix("numba_") for row in rows]
    keys = [(row["language"] == "library", names.index(name)) for row, name in zip(rows, names, strict=True)]
    return [row for _, row in sorted(zip(keys, rows, strict=True), key=lambda pair: pair[0])]


def _rate(value: float) -> str:
    return count(round(value)) if value >= 100 else f"{value:.3g}"


def _share(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _find(rows: list[dict[str, Any]], key: str, value: str) -> dict[str, Any]:
    row = next((row for row in rows if row[key] == value), None)
    if row is None:
        raise ValueError(f"{key} {value!r} was not measured; measured are {', '.join(row[key] for row in rows)}")
    return row
