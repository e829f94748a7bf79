"""Pictures of lab 09 beside the drawn graph: times by layer, calibration, buffers, batches, factors of a claim.

They take plain values. Those of recordings carry the recording's label. Every function returns a matplotlib Figure that
is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, NullLocator

from kernels.fusion.lesson.claim import PublishedRun
from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import (
    AMBER,
    BLUE,
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
    ink,
)
from warplab.text.tables import quantity

COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)


def draw_parts(parts: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Draw stacked bars of seconds by cause, one bar per label. `parts`: label -> cause -> seconds."""
    with chart(figsize=(7.6, 0.75 + 0.36 * len(parts))) as (figure, ax):
        left = np.zeros(len(parts))
        for cause, colour in zip(next(iter(parts.values())), COLOURS, strict=False):
            seconds = np.array([part[cause] for part in parts.values()])
            ax.barh(list(parts), seconds, left=left, color=colour, label=cause, height=0.65)
            left += seconds
        ax.invert_yaxis()
        duration_axis(ax.xaxis)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        finish(figure, ax, title)
    return figure


def draw_histogram(counts: np.ndarray, largest: float, thresholds: Mapping[str, float], title: str) -> Figure:
    """Draw how often |x| of a tensor falls into each bin of [0, largest], and where calibrations clip it.

    `counts`: shape (bins,). `thresholds`: label -> value of |x| that becomes 127; what lies to its right is clipped.
    """
    edges = np.linspace(0, largest, len(counts) + 1)
    with chart(figsize=(7.6, 2.7)) as (figure, ax):
        ax.stairs(np.maximum(counts, 0.5), edges, baseline=0.5, fill=True, color=PALE)
        text = f"the first bin: {100 * counts[0] / counts.sum():.0f} % of all"
        ax.annotate(text, (0, counts[0]), (8, -4), textcoords="offset points")
        for (label, threshold), colour in zip(thresholds.items(), COLOURS, strict=False):
            ax.axvline(threshold, color=colour, lw=1.5, label=f"{label}: {threshold:.3g}")
        ax.set(yscale="log", ylim=(0.5, None), xlim=(0, 1.02 * largest), xlabel="|x|", ylabel="values per bin")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5), title="127 stands for")
        finish(figure, ax, title)
    return figure


def draw_divergence(curves: Mapping[str, tuple[np.ndarray, np.ndarray]], width: float, title: str) -> Figure:
    """Draw the Kullback-Leibler divergence by threshold, each curve with its minimum. Gaps are where it is infinite.

    `curves`: label -> how many bins of the histogram each candidate keeps, and the divergence in nats, both of shape
    (n,). `width`: of a bin, in units of x.
    """
    with chart(figsize=(7.6, 2.7)) as (figure, ax):
        for (label, (bins, divergences)), colour in zip(curves.items(), COLOURS, strict=False):
            thresholds, best = (np.asarray(bins) + 0.5) * width, int(np.argmin(divergences))
            text = f"{label}: least at {thresholds[best]:.3g}"
            ax.plot(thresholds, divergences, color=colour, lw=1, label=text)
            ax.plot(thresholds[best], divergences[best], "o", color=colour)
        ax.set(xlabel="threshold: the |x| that becomes 127", ylabel="divergence, nats")
        ax.set_xlim(0, 1.02 * float(thresholds[-1]))
        ax.set_ylim(0, None)
        ax.legend(frameon=False, loc="upper center")
        finish(figure, ax, title)
    return figure


def draw_buffers(buffers: Iterable[tuple[str, int, int, int, int]], title: str) -> Figure:
    """Draw where and when each tensor lies in the engine's one allocation.

    `buffers`: (name, first launch, last launch, offset, bytes) each: it is written by the first and read for the last
    time by the last of the launches.
    """
    rows = sorted(buffers, key=lambda row: (row[1], row[3]))
    launches = max(last for _, _, last, _, _ in rows) + 1
    end = max(offset + nbytes for *_, offset, nbytes in rows)
    with chart(figsize=(7.8, 3.4)) as (figure, ax):
        for place, (name, first, last, offset, nbytes) in enumerate(rows):
            colour = COLOURS[place % len(COLOURS)]
            box = Rectangle((first - 0.5, offset), last - first + 1, nbytes, fc=colour, ec="white", lw=1)
            ax.add_patch(box)
            label = name.removesuffix("_relu")
            if nbytes > end / 30 and last - first + 1 > launches * len(label) / 80:  # else it does not fit
                middle = (first + last) / 2, offset + nbytes / 2
                ax.text(*middle, label, ha="center", va="center", fontsize=6.5, color=ink(colour))
        ax.set(xlim=(-0.6, launches - 0.4), ylim=(0, 1.02 * end))
        ax.set(xlabel="launch", ylabel="address in the buffer")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        bytes_axis(ax.yaxis)
        finish(figure, ax, title)
    whole = sum(nbytes for *_, nbytes in rows)
    return closed(figure, f"{len(rows)} tensors of {quantity(whole, 'B')} in {quantity(end, 'B')}, {launches} launches")


def draw_batches(runs: Sequence[PublishedRun], limit: float | None, title: str) -> Figure:
    """Draw images per second against the time of a batch, a line per precision, a mark per batch; and a latency limit.

    Marks of powers of two have their numbers.
    """
    with chart(figsize=(7.6, 3.2)) as (figure, ax):
        for kind, colour in zip(dict.fromkeys(run.precision for run in runs), COLOURS, strict=False):
            own = [run for run in runs if run.precision == kind]
            seconds = [run.seconds for run in own]
            ax.plot(seconds, [run.images_per_second for run in own], "o-", color=colour, ms=4, lw=1, label=kind)
            # FP16 and INT8 run close together: their numbers go to different sides of the lines.
            offset, side = ((-4, 4), "right") if kind.lower() == "int8" else ((4, -9), "left")
            for run in own:
                if run.batch & (run.batch - 1):  # others than powers of two crowd the picture
                    continue
                place = (run.seconds, run.images_per_second)
                ax.annotate(
                    str(run.batch), place, offset, textcoords="offset points", ha=side, fontsize=7, color=colour
                )
        if limit is not None:
            ax.axvline(limit, color="black", lw=1, ls="--")
        ax.set(xscale="log", yscale="log", xlabel="time of a batch = latency", ylabel="images/s")
        for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            axis.set_ticks(_ticks(low, high))
            axis.set_minor_locator(NullLocator())
        duration_axis(ax.xaxis)
        count_axis(ax.yaxis)
        ax.legend(frameon=False, loc="lower right", title="numbers: batch")
        finish(figure, ax, title)
    return figure


def draw_own_batches(m: Measurement) -> Figure:
    """Return `draw_batches` of the lab's own engine, fused, as a CUDA graph: from `measurements`, "batches"."""
    runs = [PublishedRun(row["kind"], row["batch"], row["latency_seconds"]) for row in m.value["rows"]]
    return draw_batches(runs, None, f"our engine on its small network\n{m.label}")


def draw_factors(
    start: float, factors: Mapping[str, float], end: float | None, title: str, unit: str = "images/s"
) -> Figure:
    """Draw a bar from rate to rate per factor, on a logarithmic axis: equal lengths are equal factors.

    `factors`: label -> factor, in order, beginning at `start`; what is missing up to `end`, if it is given, is the
    last, grey bar.
    """
    reached = start * float(np.prod(list(factors.values())))
    rows = [(label, factor, BLUE) for label, factor in factors.items()]
    rows += [] if end is None else [("not accounted for", end / reached, GREY)]
    end = reached if end is None else end
    with chart(figsize=(7.8, 0.8 + 0.36 * len(rows))) as (figure, ax):
        at = start
        for label, factor, colour in rows:
            low, high = sorted((at, at * factor))
            ax.barh(label, high - low, left=low, color=colour, height=0.6)
            ax.text(1.03 * high, label, f"{factor:.2f} ×", va="center")
            at *= factor
        ax.invert_yaxis()
        ax.set(xscale="log", xlabel=unit, xlim=(0.8 * start, 1.6 * end))
        decades = np.log10(end / start)
        # Labels need room: a tenth of the axis between any two.
        between = [tick for tick in _ticks(start, end) if str(tick)[0] in ("12" if decades < 2 else "1")]
        room = 10 ** (decades / 9)
        ax.set_xticks([start, *(tick for tick in between if room * start < tick < end / room), end])
        ax.xaxis.set_minor_locator(NullLocator())
        count_axis(ax.xaxis)
        finish(figure, ax, title)
    steps = ", ".join(f"{label} {factor:.2f} times" for label, factor, _ in rows)
    return closed(figure, f"from {start:,.0f} {unit}: {steps}; then {end:,.0f}")


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten from `low` to `high`; more of them where that leaves too few."""
    found = [k * 10.0**e for e in range(-9, 10) for k in ((1, 2, 5) if high > 6 * low else (1, 2, 3, 4, 5, 7))]
    return [tick for tick in found if low <= tick <= high]
