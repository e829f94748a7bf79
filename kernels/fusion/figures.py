"""Pictures of lab 09 beside the drawn graph: times by layer, calibration, buffers, batches, factors of a claim.

They take plain values. Those of recordings carry the recording's label. Every function returns a matplotlib Figure that
is closed for pyplot, so that a notebook shows it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, NullLocator

from kernels.fusion.claim import Run
from warplab.draw.style import (
    AMBER,
    BLUE,
    DPI,
    FONT,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PINK,
    SKY,
    bytes_axis,
    closed,
    count_axis,
    duration_axis,
    finish,
)

COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)


def draw_parts(parts: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Stacked bars of seconds by cause, one bar per label. `parts`: label -> cause -> seconds."""
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.6, 0.75 + 0.36 * len(parts)), dpi=DPI)
        left = np.zeros(len(parts))
        for cause, colour in zip(next(iter(parts.values())), COLOURS, strict=False):
            seconds = np.array([part[cause] for part in parts.values()])
            ax.barh(list(parts), seconds, left=left, color=colour, label=cause, height=0.65)
            left += seconds
        ax.invert_yaxis()
        duration_axis(ax.xaxis)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        finish(figure, ax, title)
    return closed(figure)


def draw_histogram(counts: np.ndarray, largest: float, thresholds: Mapping[str, float], title: str) -> Figure:
    """How often |x| of a tensor falls into each bin of [0, largest], and where calibrations clip it.

    `counts`: shape (bins,). `thresholds`: label -> value of |x| that becomes 127; what lies to its right is clipped.
    """
    edges = np.linspace(0, largest, len(counts) + 1)
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.6, 2.7), dpi=DPI)
        ax.stairs(np.maximum(counts, 0.5), edges, baseline=0.5, fill=True, color=PALE)
        text = f"the first bin: {100 * counts[0] / counts.sum():.0f} % of all"
        ax.annotate(text, (0, counts[0]), (8, -4), textcoords="offset points")
        for (label, threshold), colour in zip(thresholds.items(), COLOURS, strict=False):
            ax.axvline(threshold, color=colour, lw=1.5, label=f"{label}: {threshold:.3g}")
        ax.set(yscale="log", ylim=(0.5, None), xlim=(0, 1.02 * largest), xlabel="|x|", ylabel="values per bin")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), title="127 stands for")
        finish(figure, ax, title)
    return closed(figure)


def draw_divergence(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], width: float, title: str) -> Figure:
    """The Kullback-Leibler divergence by threshold, each curve with its minimum. Gaps are where it is infinite.

    `curves`: label -> how many bins of the histogram each candidate keeps, and the divergence in nats, both of shape
    (n,). `width`: of a bin, in units of x.
    """
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.6, 2.7), dpi=DPI)
        for (label, (bins, divergences)), colour in zip(curves.items(), COLOURS, strict=False):
            thresholds, best = (np.asarray(bins) + 0.5) * width, int(np.argmin(divergences))
            text = f"{label}: least at {thresholds[best]:.3g}"
            ax.plot(thresholds, divergences, color=colour, lw=1, label=text)
            ax.plot(thresholds[best], divergences[best], "o", color=colour)
        ax.set(xlabel="threshold: the |x| that becomes 127", ylabel="divergence, nats", yscale="log")
        ax.set_xlim(0, 1.02 * float(thresholds[-1]))
        low, high = ax.get_ylim()
        ticks = [k * 10.0**e for e in range(-9, 3) for k in (1, 2, 5) if low <= k * 10.0**e <= high]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.yaxis.set_minor_locator(NullLocator())
        ax.legend(frameon=False, loc="upper center")
        finish(figure, ax, title)
    return closed(figure)


def draw_buffers(buffers: Iterable[tuple[str, int, int, int, int]], title: str) -> Figure:
    """Where and when each tensor lies in the engine's one allocation.

    `buffers`: (name, first launch, last launch, offset, bytes) each: it is written by the first and read for the last
    time by the last of the launches.
    """
    rows = sorted(buffers, key=lambda row: (row[1], row[3]))
    launches = max(last for _, _, last, _, _ in rows) + 1
    end = max(offset + nbytes for *_, offset, nbytes in rows)
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.8, 3.4), dpi=DPI)
        for place, (name, first, last, offset, nbytes) in enumerate(rows):
            colour = COLOURS[place % len(COLOURS)]
            box = Rectangle((first - 0.5, offset), last - first + 1, nbytes, fc=colour, ec="white", lw=1, alpha=0.85)
            ax.add_patch(box)
            label = name.removesuffix("_relu")
            if nbytes > end / 30 and last - first + 1 > launches * len(label) / 80:  # else it does not fit
                middle = (first + last) / 2, offset + nbytes / 2
                ax.text(*middle, label, ha="center", va="center", fontsize=6.5, color="white")
        ax.set(xlim=(-0.6, launches - 0.4), ylim=(0, 1.02 * end))
        ax.set(xlabel="launch", ylabel="address in the buffer")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        bytes_axis(ax.yaxis)
        finish(figure, ax, title)
    return closed(figure)


def draw_batches(runs: Sequence[Run], limit: float, title: str) -> Figure:
    """Images per second against the time of a batch, a line per precision, a mark per batch; and a latency limit."""
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.6, 3.2), dpi=DPI)
        for kind, colour in zip(dict.fromkeys(run.precision for run in runs), COLOURS, strict=False):
            own = [run for run in runs if run.precision == kind]
            seconds = [run.seconds for run in own]
            ax.plot(seconds, [run.images_per_second for run in own], "o-", color=colour, ms=4, lw=1, label=kind)
            for run in own:
                place = (run.seconds, run.images_per_second)
                ax.annotate(str(run.batch), place, (3, -10), textcoords="offset points", fontsize=7, color=colour)
        ax.axvline(limit, color="black", lw=1, ls="--")
        ax.set(xscale="log", yscale="log", xlabel="time of a batch = latency", ylabel="images/s")
        ax.set_xticks([1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1])
        ax.xaxis.set_minor_locator(NullLocator())
        duration_axis(ax.xaxis)
        ax.set_yticks([200, 500, 1000, 2000, 5000])
        ax.yaxis.set_minor_locator(NullLocator())
        count_axis(ax.yaxis)
        ax.legend(frameon=False, loc="lower right", title="numbers: batch")
        finish(figure, ax, title)
    return closed(figure)


def draw_factors(start: float, factors: Mapping[str, float], end: float, title: str, unit: str = "images/s") -> Figure:
    """A bar from rate to rate per factor, on a logarithmic axis: equal lengths are equal factors.

    `factors`: label -> factor, in order, beginning at `start`; what is missing up to `end` is the last, grey bar.
    """
    rest = end / (start * float(np.prod(list(factors.values()))))
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.8, 0.8 + 0.36 * (len(factors) + 1)), dpi=DPI)
        at = start
        for label, factor, colour in [
            *((label, factor, BLUE) for label, factor in factors.items()),
            ("not accounted for", rest, GREY),
        ]:
            low, high = sorted((at, at * factor))
            ax.barh(label, high - low, left=low, color=colour, height=0.6)
            ax.text(1.03 * high, label, f"{factor:.2f} ×", va="center")
            at *= factor
        ax.invert_yaxis()
        ax.set(xscale="log", xlabel=unit, xlim=(0.8 * start, 1.6 * end))
        ax.set_xticks([start, 1000, 2000, end])
        ax.xaxis.set_minor_locator(NullLocator())
        count_axis(ax.xaxis)
        finish(figure, ax, title)
    return closed(figure)
