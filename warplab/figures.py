"""Pictures of the learner's own launch: who touches which addresses and banks, which lanes run when, which source lines
cost, how a grid covers an array, where launches stand under a card's roofline.

Every function returns a matplotlib Figure that is already closed for pyplot, so that a notebook shows it once: as the
value of the cell. The colours are told apart with any colour vision (Okabe and Ito 2008; viridis).
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.access_figure import FONT, draw_accesses
from warplab.bank_figure import draw_banks
from warplab.cards import Card
from warplab.cards import card as find_card
from warplab.report import launches, one_launch, sectors, sectors_per_request, shorten, source_lines
from warplab.roofline import flops, footprint, predict
from warplab.simulator.counters import COUNTERS, Counts, LaunchProfile
from warplab.tables import TIMES, count, duration, percent, quantity, ratio
from warplab.timeline_figure import draw_timeline

__all__ = ["draw_accesses", "draw_banks", "draw_grid", "draw_roofline", "draw_timeline", "heat_map"]

GREY, PALE = "#6B6B6B", "#EDEDED"
BLOCK_COLOURS = ("#9CCBE8", "#F5CF87", "#93D5BF", "#E5B3CD")
MOST_ROWS = 21
DPI = 100


def _closed(figure: Figure) -> Figure:
    plt.close(figure)
    return figure


HEAT_COLUMNS = ("warp_instructions", "sectors", "sectors_per_request")
DERIVED_METRICS = {
    "sectors": ("sectors", sectors, count),
    "sectors_per_request": ("sectors\na request", sectors_per_request, ratio),
    "warp_efficiency": ("warp\nefficiency", lambda c: c.warp_efficiency, percent),
}


def heat_map(profile: object, metric: str | Sequence[str] = "warp_instructions") -> Figure:
    """The kernel's source, each line beside what it cost, as in a profiler's source view.

    `metric`: one name or several: a field of `Counts` ("warp_instructions", "global_load_sectors", ...), or "sectors",
    "sectors_per_request", "warp_efficiency". One name is shown before the usual three. The darkest cell of a column
    is its largest number. Raises ValueError for an unknown metric and for a launch without counts by line.
    """
    launch, title = one_launch(profile)
    names = [metric, *(n for n in HEAT_COLUMNS if n != metric)] if isinstance(metric, str) else list(metric)
    columns = [_metric(name) for name in names]
    rows = _source_rows(launch)
    if not rows:
        raise ValueError(f"the launch of {launch.kernel} has no counts by source line; was it compiled with line info?")

    with plt.rc_context(FONT):
        top, height = 2.2, 0.19
        figure, ax = plt.subplots(figsize=(9, 0.45 + height * (len(rows) + top)), dpi=DPI)
        cell = 11.0
        left = 100 - cell * len(columns)
        characters = int((left - 6) / 0.805)
        ax.set(xlim=(0, 100), ylim=(len(rows), -top))
        ax.axis("off")
        figure.subplots_adjust(0.01, 0.02, 0.99, 0.98)
        ax.text(0, -top + 0.1, title, va="top", weight="bold")
        for c, (label, value, form) in enumerate(columns):
            x = left + c * cell
            for up, part in enumerate(reversed(label.split("\n"))):
                ax.text(x + cell / 2, -0.35 - 0.72 * up, part, ha="center", va="baseline", color=GREY)
            values = [None if counts is None else value(counts) for _, _, counts in rows]
            largest = max((v for v in values if v), default=0)
            for r, v in enumerate(values):
                if v:
                    colour = plt.get_cmap("YlOrBr")(0.55 * v / largest)
                    ax.add_patch(Rectangle((x + 0.3, r + 0.04), cell - 0.6, 0.92, color=colour, lw=0))
                    ax.text(x + cell - 1, r + 0.53, form(v), ha="right", va="center", fontsize=8.5)
        for r, (number, code, _) in enumerate(rows):
            mono = {"family": "monospace", "va": "center", "fontsize": 8.5, "parse_math": False}
            ax.text(3.5, r + 0.53, number, ha="right", color=GREY, **mono)
            ax.text(5, r + 0.53, shorten(code, characters), **mono)
    return _closed(figure)


def _metric(name: str) -> tuple:
    """Label, function of Counts and format of a column of `heat_map`."""
    if name in DERIVED_METRICS:
        return DERIVED_METRICS[name]
    labels = {counter.name: counter.label for counter in COUNTERS}
    if name not in labels:
        raise ValueError(f"no metric named {name!r}; the known ones are {', '.join([*DERIVED_METRICS, *labels])}")
    return labels[name].replace(" ", "\n", 1), lambda counts: getattr(counts, name), count


def _source_rows(launch: LaunchProfile) -> list[tuple[str, str, Counts | None]]:
    """(line number, source text, counts or None) from the first to the last line that ran; gaps of long code cut."""
    rows: list[tuple[str, str, Counts | None]] = []
    files = sorted({file for file, line in launch.lines if line})
    for file in files:
        counted = {line: counts for (f, line), counts in launch.lines.items() if f == file and line}
        numbers = list(range(min(counted), max(counted) + 1))
        code = source_lines(launch, file, numbers)
        if len(numbers) > MOST_ROWS:
            numbers = sorted(counted)
        rows += [("", file, None)] * (len(files) > 1)
        for before, number in zip([None, *numbers], numbers, strict=False):
            if before is not None and number > before + 1:
                rows.append(("", "⋮", None))
            rows.append((str(number), code[number], counted.get(number)))
    if len(rows) > MOST_ROWS:
        heavy = sorted((r for r in rows if r[2]), key=lambda r: -r[2].warp_instructions)[: MOST_ROWS - 1]
        rows = [row for row in rows if row in heavy] + [("", f"⋮ the {MOST_ROWS - 1} heaviest lines", None)]
    return rows


MOST_BLOCKS = 4
MOST_PASSES = 4
AT_LEAST = "\N{GREATER-THAN OR EQUAL TO}"


def draw_grid(grid: int | tuple[int], block: int | tuple[int], n: int, grid_stride: bool = False) -> Figure:
    """A one-dimensional grid: its blocks, their threads, under each thread the elements of an array of `n` it owns.

    Element i = blockIdx.x * blockDim.x + threadIdx.x; with `grid_stride` also i + gridDim.x * blockDim.x and so on.
    Threads that a guard `i < n` must stop are hatched. Large grids and blocks are cut ("...").
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

    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(9, 1.95 + 0.34 * shown_passes), dpi=DPI)
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
    return _closed(figure)


def _positive(name: str, value: int | tuple[int]) -> int:
    size = value[0] if isinstance(value, tuple | list) and len(value) == 1 else value
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ValueError(f"{name} is {value!r}; draw_grid() takes a positive integer: it draws one-dimensional grids")
    return int(size)


def _cut(size: int, most: int) -> list[int | None]:
    """0, 1, ..., size - 1, cut to about `most` entries, with None for what is left out."""
    return list(range(size)) if size <= most else [*range(most - 2), None, size - 1]


def _element(ax: Axes, x: float, y: float, element: int, n: int, colour: str) -> None:
    guarded = element >= n
    style = {"fc": "white", "ec": GREY, "hatch": "/////", "lw": 0.5} if guarded else {"fc": colour, "ec": "white"}
    with plt.rc_context({"hatch.linewidth": 0.5, "hatch.color": "#AAAAAA"}):
        ax.add_patch(Rectangle((x, y), 1, 0.9, **style))
    ax.text(
        x + 0.5,
        y + 0.45,
        count(element),
        ha="center",
        va="center",
        fontsize=8,
        color=GREY if guarded else "black",
    )


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


def draw_roofline(profile: object, card: str | Card = "H100") -> Figure:
    """Launches under the roofline of `card`: operations a second against operations a byte, both axes logarithmic.

    A hollow mark is a prediction (`warplab.roofline`), a filled one a time measured on a GPU of that name.
    `profile`: a profile, a launch or a list of launches. Launches without floating-point operations or without memory
    traffic have no place on the axes; raises ValueError where none is left.
    """
    card = find_card(card)
    points = [launch for launch in launches(profile) if flops(launch) and footprint(launch)]
    if not points:
        raise ValueError(
            "no launch has both floating-point operations and global memory traffic, so none can be placed"
        )
    bandwidth = card.bandwidth_gbs * 1e9
    intensities = [flops(p) / footprint(p) for p in points]
    ridge = card.fp32_tflops * 1e12 / bandwidth
    x = np.geomspace(min(*intensities, ridge) / 8, max(*intensities, ridge) * 12, 200)

    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(6.4, 4), dpi=DPI)
        used = {"FP64": "flops_f64", "FP32": "flops_f32", "FP16": "flops_f16"}
        peaks = {"FP64": card.fp64_tflops, "FP32": card.fp32_tflops, "FP16": card.fp16_tflops}
        peaks = {k: v for k, v in peaks.items() if k == "FP32" or any(getattr(p.counts, used[k]) for p in points)}
        ax.plot(x, np.minimum(x * bandwidth, max(peaks.values()) * 1e12), color="black", lw=1.5)
        for name, peak in peaks.items():
            ax.plot(
                [peak * 1e12 / bandwidth, x[-1]],
                [peak * 1e12] * 2,
                color="black",
                lw=1.5 if name == "FP32" else 1,
            )
            ax.annotate(
                f"{name}, {peak:g} TFLOP/s",
                (x[-1], peak * 1e12),
                (0, 3),
                textcoords="offset points",
                ha="right",
            )
        middle = np.sqrt(x[0] * ridge)
        ax.annotate(
            f"memory, {quantity(bandwidth, 'B/s')}",
            (middle, middle * bandwidth),
            (-6, 4),
            textcoords="offset points",
            ha="right",
        )
        for i, (launch, intensity) in enumerate(zip(points, intensities, strict=True)):
            colour = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")[i % 6]
            prediction = predict(launch, card)
            rate = flops(launch) / prediction.seconds
            label = f"{launch.kernel}: predicted, at least {duration(prediction.seconds)}"
            ax.plot([intensity] * 2, [x[0] * bandwidth / 50, rate], color=colour, lw=0.7, ls=":")
            # Launches often lie at the same place: smaller marks come later and leave the larger ones in sight.
            size = max(5, 12 - 2 * i)
            ax.plot(intensity, rate, "o", ms=size, mfc="white", mec=colour, mew=1.8, label=label)
            if launch.gpu_seconds and card.name in (launch.gpu_name or ""):
                measured = flops(launch) / launch.gpu_seconds
                label = f"{launch.kernel}: measured, {duration(launch.gpu_seconds)} ({launch.gpu_name})"
                ax.plot(intensity, measured, "o", ms=size, color=colour, label=label)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="FLOP per byte of memory traffic, each distinct sector once",
            ylabel="FLOP/s",
            xlim=(x[0], x[-1]),
        )
        ax.set_title(f"Roofline of {card.full_name}", weight="bold")
        ax.set_ylim(x[0] * bandwidth / 4, max(peaks.values()) * 4e12)
        ax.grid(which="major", color=PALE)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="lower right", frameon=True, framealpha=1, edgecolor=PALE)
        figure.tight_layout()
    return _closed(figure)
