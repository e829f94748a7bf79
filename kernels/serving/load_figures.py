"""Pictures of lab 11's batcher, queues and load: measured ones carry their origin in the title that is given to them.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from kernels.serving.load_model import added_per_batch, limits_of, predicted
from kernels.serving.simulated_queue import Served
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
    closed,
    count_axis,
    duration_axis,
    finish,
)

COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)
MOST_REQUESTS = 80  # whose lines can be told apart
MODEL_RATES = 14


def draw_served(served: Served, title: str) -> Figure:
    """What a batcher did: a line per request, thin while it waits, thick in its batch; a cross if it was turned away.

    Bars of one batch have one colour. ValueError for more than 80 requests.
    """
    count = len(served.arrivals)
    if count > MOST_REQUESTS:
        raise ValueError(f"{count} lines would cover each other; draw {MOST_REQUESTS} requests or fewer")
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(8.4, 1.0 + max(1.2, 0.11 * count)), dpi=DPI)
        for number, batch in enumerate(served.batches):
            for request in batch.requests:
                ax.plot([served.arrivals[request], batch.start], [request] * 2, color=GREY, lw=0.9)
                ax.plot(served.arrivals[request], request, "|", color="black", ms=6)
                colour = COLOURS[number % len(COLOURS)]
                ax.plot([batch.start, batch.end], [request] * 2, color=colour, lw=4, solid_capstyle="butt")
        for request in served.refused:
            ax.plot(served.arrivals[request], request, "x", color="black", ms=5)
        ax.set(ylim=(count - 0.3, -0.7), ylabel="request", xlabel="time")
        duration_axis(ax.xaxis)
        handles = [
            Line2D([], [], color="black", marker="|", ls="", label="arrives"),
            Line2D([], [], color=GREY, lw=0.9, label="waits"),
            Line2D([], [], color=BLUE, lw=4, label="in a batch"),
        ]
        if served.refused:
            handles.append(Line2D([], [], color="black", marker="x", ls="", label="turned away"))
        ax.legend(handles=handles, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        finish(figure, ax, title)
    return closed(figure)


def draw_times(times: Mapping[str, Sequence[Mapping[str, Any]]], title: str) -> Figure:
    """Time of a batch, and samples per second, by batch size. `times`: name -> rows as `batch_times` gives them."""
    with plt.rc_context(FONT):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 2.9), dpi=DPI)
        for (name, rows), colour in zip(times.items(), COLOURS, strict=False):
            sizes = [row["batch"] for row in rows]
            left.plot(sizes, [row["seconds"] for row in rows], "o-", ms=4, lw=1, color=colour, label=name)
            right.plot(sizes, [row["samples_per_second"] for row in rows], "o-", ms=4, lw=1, color=colour, label=name)
        every = sorted({row["batch"] for rows in times.values() for row in rows})
        for ax in (left, right):
            ax.set_xscale("log")
            ax.set_xticks(every, [str(size) for size in every])
            ax.minorticks_off()
            ax.set(ylim=(0, None), xlabel="batch")
        duration_axis(left.yaxis)
        count_axis(right.yaxis)
        left.set_ylabel("time of a batch")
        right.set_ylabel("samples/s")
        right.legend(frameon=False)
        finish(figure, right, "")
        finish(figure, left, title)
    return closed(figure)


def draw_load(value: Mapping[str, Any], title: str, *, model: bool = True) -> Figure:
    """Latency and answers per second by offered load, a colour per batch limit.

    Marks are measured: filled the 99th percentile, hollow the median. Lines are the queueing model's 99th percentile
    (`load_model`); without `model`, or for a load without the times of batches, they join the marks. `value`: as the
    measurements of load give it.
    """
    with plt.rc_context(FONT):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.4), dpi=DPI)
        for curve, colour in zip(value["curves"], COLOURS, strict=False):
            rows = [row for row in curve["rows"] if row["p99_seconds"] is not None]
            offered = [row["offered_per_second"] for row in rows]
            joined = "" if model and "times" in value else "-"
            label = f"{curve['batch_limit']}"
            left.plot(offered, [r["p99_seconds"] for r in rows], "o" + joined, ms=4, lw=1, color=colour, label=label)
            left.plot(offered, [r["p50_seconds"] for r in rows], "o", ms=4, mfc="white", color=colour)
            right.plot(offered, [r["answered_per_second"] for r in rows], "o" + joined, ms=4, lw=1, color=colour)
            if not joined:
                grid = np.geomspace(min(offered), max(offered), MODEL_RATES)
                lines = predicted(value["times"], limits_of(curve), grid, added=added_per_batch(value))
                left.plot(grid, [line["p99_seconds"] for line in lines], color=colour, lw=1)
                right.plot(grid, [line["answered_per_second"] for line in lines], color=colour, lw=1)
        left.axhline(value["latency_limit_seconds"], color="black", lw=1, ls="--")
        every = [row["offered_per_second"] for curve in value["curves"] for row in curve["rows"]]
        ends = [min(every), max(every)]
        right.plot(ends, ends, color=GREY, lw=0.8, ls=":")
        for ax in (left, right):
            ax.set(xscale="log", yscale="log", xlabel="offered: requests/s")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_minor_locator(NullLocator())
            count_axis(ax.xaxis)
        duration_axis(left.yaxis)
        count_axis(right.yaxis)
        left.set_ylabel("latency, p99 (filled), p50")
        right.set_ylabel("answered: requests/s")
        left.legend(frameon=False, title="batch limit", loc="upper left")
        finish(figure, right, "")
        finish(figure, left, title)
    return closed(figure)


def draw_waits(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    points: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    xlabel: str,
    title: str,
) -> Figure:
    """Waiting time of formulas, as lines, and of simulated queues, as marks of the same colour for the same label.

    Both: label -> (x, seconds).
    """
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.6, 3.0), dpi=DPI)
        for (label, (x, seconds)), colour in zip(lines.items(), COLOURS, strict=False):
            ax.plot(x, seconds, color=colour, lw=1.2, label=label)
            if label in points:
                ax.plot(*points[label], "o", color=colour, ms=4)
        ax.set(xlabel=xlabel, ylabel="wait", ylim=(0, None))
        duration_axis(ax.yaxis)
        ax.legend(frameon=False, loc="upper left")
        finish(figure, ax, title)
    return closed(figure)


def draw_overload(value: Mapping[str, Any], title: str) -> Figure:
    """What came in each second of an overload, answered and turned away, and the latency of what was answered."""
    whole = [row for row in value["by_second"] if row["offered"]]
    seconds = [row["second"] for row in whole]
    answered = np.array([row["answered"] for row in whole])
    with plt.rc_context(FONT):
        figure, (top, bottom) = plt.subplots(2, 1, figsize=(8.2, 3.8), dpi=DPI, sharex=True, height_ratios=(2, 1))
        top.bar(seconds, answered, width=1, align="edge", color=BLUE, label="answered")
        turned = [row["turned_away"] for row in whole]
        top.bar(seconds, turned, bottom=answered, width=1, align="edge", color=PALE, label="turned away with 429")
        fine = [row for row in whole if row["p99_seconds"] is not None]
        bottom.plot([r["second"] + 0.5 for r in fine], [r["p99_seconds"] for r in fine], "o-", color=ORANGE, ms=3, lw=1)
        top.set_ylabel("requests/s")
        count_axis(top.yaxis)
        bottom.set(ylim=(0, None), xlabel="second", ylabel="p99")
        duration_axis(bottom.yaxis)
        top.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        finish(figure, bottom, "")
        finish(figure, top, title)
    return closed(figure)


def draw_hang(
    planned: Sequence[float], from_plan: Sequence[float], from_sending: Sequence[float], title: str
) -> Figure:
    """Latency by the planned moment, by two generators of the same load: one that does not wait for answers, and one
    that does. Shapes (requests,).
    """
    with plt.rc_context(FONT):
        figure, ax = plt.subplots(figsize=(7.8, 2.8), dpi=DPI)
        _hang(ax, planned, from_plan, BLUE, "since the planned moment (open loop)", "o")
        _hang(ax, planned, from_sending, ORANGE, "since it was sent (closed loop)", ".")
        ax.set(xlabel="planned moment", ylabel="latency", ylim=(0, None))
        duration_axis(ax.xaxis)
        duration_axis(ax.yaxis)
        ax.legend(frameon=False, loc="upper right")
        finish(figure, ax, title)
    return closed(figure)


def _hang(ax: Axes, planned: Sequence[float], latency: Sequence[float], colour: str, label: str, marker: str) -> None:
    p99 = float(np.percentile(latency, 99))
    ax.plot(planned, latency, marker, ms=4, color=colour, label=f"{label}: p99 {1e3 * p99:.3g} ms")
