"""Pictures of lab 11's lesson: here those of what the learner wrote, and by name all others, from their rooms.

Those here take plain values: utilisation, waiting, flushes, latencies. Times are units of a model, not seconds of a
GPU, unless a label names a device.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from kernels.serving.overlap.sharing.figures import draw_parts, draw_processes, draw_trade, draw_ways
from kernels.serving.overlap.streams.figures import draw_overlap, draw_pipeline, draw_timeline, recorded_timeline
from kernels.serving.serve.batching.queueing import BatchQueue
from kernels.serving.serve.load.figures import draw_overload, draw_recorded_load
from kernels.serving.serve.load.generator import OK, LoadResult
from kernels.serving.utilisation.figures import draw_roads, draw_samples, draw_trace, draw_utilisation
from warpcourse.bench.charts import COLOURS, chart
from warplab.draw.style import BLUE, GREY, ORANGE, PALE, finish


def draw_busy(kernels: Sequence[tuple[float, float, int]], period: float, sms: int, title: str) -> Figure:
    """Draw a GPU's SMs up, time across: a box for each kernel, `blocks` SMs high; below, the time with any kernel.

    `kernels`: (begin, end, blocks), a block on an SM of its own. Kernels that run at the same time are stacked.
    """
    with chart(figsize=(7.6, 2.5)) as (figure, ax):
        placed: list[tuple[float, float, int, int]] = []
        strip = sms * 0.08
        for begin, end, blocks in sorted(kernels):
            high = min(blocks, sms)
            floor = max((top for b, e, _, top in placed if b < end and begin < e), default=0)
            floor = 0 if floor + high > sms else floor
            placed.append((begin, end, floor, floor + high))
            ax.add_patch(Rectangle((begin, floor), end - begin, high, facecolor=BLUE, edgecolor=BLUE, lw=0.8))
            ax.add_patch(Rectangle((begin, -1.6 * strip), end - begin, strip, facecolor=ORANGE))
        ax.set(xlim=(0, period), ylim=(-2 * strip, sms), xlabel="time", ylabel="SMs")
        ax.yaxis.set_major_locator(MaxNLocator(4, integer=True, prune="lower"))
        handles = [Patch(color=BLUE, label="SM with a block"), Patch(color=ORANGE, label="some kernel runs")]
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        finish(figure, ax, title)
    return figure


def draw_waiting(
    curves: Mapping[str, Callable[[float], float]], points: Mapping[str, Mapping[float, float]], title: str
) -> Figure:
    """Draw mean wait, in service times, against the load: lines by formula, crosses for what a simulation gave."""
    loads = np.linspace(0.02, 0.97, 96)
    with chart(figsize=(7.6, 2.7)) as (figure, ax):
        for (name, wait), colour in zip(curves.items(), COLOURS, strict=False):
            ax.plot(loads, [wait(float(load)) for load in loads], color=colour, label=name)
        for (name, found), colour in zip(points.items(), COLOURS, strict=False):
            ax.plot(list(found), list(found.values()), "x", color=colour, label=name)
        ax.set(xlabel="load ρ", ylabel="wait, in service times", xlim=(0, 1), ylim=(0, 18))
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return figure


def draw_latencies(latencies: Mapping[str, Sequence[float]], unit: str, title: str) -> Figure:
    """Draw latency by percentile, the upper ones drawn apart as is usual: 50, 90, 99, ... at equal distances."""
    with chart(figsize=(7.6, 2.6)) as (figure, ax):
        for (name, values), colour in zip(latencies.items(), COLOURS, strict=False):
            ordered = np.sort(np.asarray(values, float))
            share = (np.arange(len(ordered)) + 0.5) / len(ordered)
            ax.plot(-np.log10(1 - share), ordered, color=colour, label=name)
        nines = [0.5, 0.9, 0.99, 0.999]
        ax.set_xticks([-np.log10(1 - share) for share in nines], [f"p{100 * share:g}" for share in nines])
        ax.set(ylabel=f"latency, {unit}", xlim=(0, 3.1), ylim=(0, None))
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return figure


def draw_batches(
    arrivals: Sequence[float], batches: Sequence[tuple[float, float, Sequence[int]]], unit: str, title: str
) -> Figure:
    """Draw requests down, time across: how long each waited (pale) and in which batch it was computed (coloured).

    `arrivals`: when each request came. `batches`: (begin, end, numbers of the requests in it).
    """
    with chart(figsize=(7.6, 0.9 + 0.13 * len(arrivals))) as (figure, ax):
        for number, (begin, end, requests) in enumerate(batches):
            for request in requests:
                arrived = arrivals[request]
                ax.add_patch(Rectangle((arrived, request - 0.4), begin - arrived, 0.8, facecolor=PALE))
                colour = COLOURS[number % len(COLOURS)]
                ax.add_patch(Rectangle((begin, request - 0.4), end - begin, 0.8, facecolor=colour))
        ax.plot(arrivals, range(len(arrivals)), "|", color=GREY)
        last = max((end for _, end, _ in batches), default=max(arrivals, default=1))
        ax.set(xlim=(0, 1.02 * last), ylim=(len(arrivals) - 0.4, -0.6), xlabel=unit, ylabel="request")
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        finish(figure, ax, title)
        ax.grid(False, axis="y")
    return figure


def draw_sharing(
    in_turns: Callable[[int, float], float],
    together: Callable[[int, float, float], float],
    busy: float,
    fill: float,
    most: int = 16,
) -> Figure:
    """Draw the model's throughput of 1 to `most` processes, in units of one, by time slices and together."""
    counts = range(1, most + 1)
    with chart(figsize=(7.6, 2.6)) as (figure, ax):
        ax.plot(counts, counts, color=PALE, label="n times")
        ax.plot(counts, [together(n, busy, fill) for n in counts], "o-", ms=3, color=BLUE, label="yours: together")
        ax.plot(counts, [in_turns(n, busy) for n in counts], "o-", ms=3, color=ORANGE, label="yours: in turns")
        ax.set(xlabel="processes", ylabel="throughput; one alone has 1", ylim=(0, 1.15 / (busy * fill)))
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        ax.legend(frameon=False)
        title = f"the model: alone, kernels run for {busy:.0%} of the time, on {fill:.0%} of the SMs"
        finish(figure, ax, title)
    return figure


def draw_load(
    runs: Mapping[int, Sequence[LoadResult]], modelled: Mapping[int, Sequence[BatchQueue]], title: str
) -> Figure:
    """Draw answers per second and latency against the offered load, a colour per batch limit; the model's dotted.

    `runs`: batch limit -> what became of runs at different rates; `modelled`: the model's queue for each of these runs.
    `title`: on whose clock the runs were.
    """
    with chart(1, 2, figsize=(8.6, 3.0)) as (figure, (left, right)):
        for (limit, loads), colour in zip(runs.items(), COLOURS, strict=False):
            offered = [load.offered for load in loads]
            left.plot(offered, [one.throughput for one in loads], "o-", ms=3, color=colour, label=f"batches ≤ {limit}")
            left.plot(offered, [queue.throughput for queue in modelled[limit]], ":", color=colour, lw=2)
            right.plot(offered, [1e3 * load.percentile(99) for load in loads], "o-", ms=3, color=colour)
            means = [1e3 * float(np.mean(load.latency[load.status == OK])) for load in loads]
            right.plot(offered, means, "o", ms=4, mfc="none", color=colour)
            right.plot(offered, [1e3 * queue.latency for queue in modelled[limit]], ":", color=colour, lw=2)
        left.plot([], [], ":", color=GREY, lw=2, label="the model")
        right.plot([], [], "o-", ms=3, color=GREY, label="p99")
        right.plot([], [], "o", ms=3, mfc="none", color=GREY, label="mean")
        right.plot([], [], ":", color=GREY, lw=2, label="mean, the model's")
        for ax, what in ((left, "answered per second"), (right, "latency, ms")):
            ax.set(xlabel="requests per second", ylabel=what, xscale="log", yscale="log")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
                axis.set_minor_formatter(NullFormatter())
            finish(figure, ax, "")
        left.legend(frameon=False)
        right.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        figure.suptitle(title, x=0.01, ha="left", fontsize=9)
        figure.tight_layout()
    return figure


def draw_frame(nv12: np.ndarray, planes: np.ndarray) -> Figure:
    """Draw a decoded frame's brightness, uint8 (height * 3 / 2, width), and the planes made of it, float32 (3, rows,
    columns), each on the range of its own values."""
    shown = [nv12[: nv12.shape[0] * 2 // 3], *planes]
    names = [
        "decoded: brightness",
        *(f"{name}, {planes.shape[2]} × {planes.shape[1]}" for name in ("red", "green", "blue")),
    ]
    with chart(1, 4, figsize=(7.6, 1.6)) as (figure, axes):
        for ax, picture, name in zip(axes, shown, names, strict=True):
            ax.imshow(picture, cmap="gray")
            ax.set_title(name, loc="left")
            ax.set_axis_off()
        figure.tight_layout()
    return figure
