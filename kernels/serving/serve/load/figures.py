"""Pictures of lab 11's load: what was measured carries its origin in the title that is given to it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from kernels.serving.serve.load.model import added_per_batch, limits_of, predicted
from warpcourse.bench.charts import COLOURS, chart
from warplab.draw.style import BLUE, GREY, ORANGE, PALE, count_axis, duration_axis, finish

MODEL_RATES = 14


def draw_recorded_load(value: Mapping[str, Any], title: str, *, model: bool = True) -> Figure:
    """Draw latency and answers per second by offered load, a colour per batch limit.

    Marks are measured: filled the 99th percentile, hollow the median. Lines are the queueing model's 99th percentile
    (module `model`); without `model`, or for a load without the times of batches, they join the marks. `value`: as the
    measurements of load give it.
    """
    with chart(1, 2, figsize=(8.6, 3.4)) as (figure, (left, right)):
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
        left.set_ylabel("latency")
        right.set_ylabel("answered: requests/s")
        left.legend(frameon=False, title="batch limit", loc="upper left")
        kinds = [
            Line2D([], [], color=GREY, lw=0, marker="o", ms=4, mfc=fill, label=what)
            for what, fill in (("p99", GREY), ("p50", "white"))
        ]
        kinds += [] if joined else [Line2D([], [], color=GREY, lw=1, label="p99 by the model")]
        right.legend(handles=kinds, frameon=False, loc="upper left")
        finish(figure, right, "")
        finish(figure, left, title)
    return figure


def draw_overload(value: Mapping[str, Any], title: str) -> Figure:
    """Draw what came in each second of an overload, answered and turned away, and the latency of what was answered."""
    whole = [row for row in value["by_second"] if row["offered"]]
    seconds = [row["second"] for row in whole]
    answered = np.array([row["answered"] for row in whole])
    with chart(2, 1, figsize=(8.2, 3.8), sharex=True, height_ratios=(2, 1)) as (figure, (top, bottom)):
        top.bar(seconds, answered, width=1, align="edge", color=BLUE, label="answered")
        turned = [row["turned_away"] for row in whole]
        top.bar(seconds, turned, bottom=answered, width=1, align="edge", color=PALE, label="turned away with 429")
        fine = [row for row in whole if row["p99_seconds"] is not None]
        bottom.margins(y=0.5)  # of what lies between the least and the most, far above 0
        bottom.plot([r["second"] + 0.5 for r in fine], [r["p99_seconds"] for r in fine], "o-", color=ORANGE, ms=3, lw=1)
        top.set_ylabel("requests/s")
        count_axis(top.yaxis)
        bottom.set(ylim=(0, None), xlabel="second", ylabel="p99")
        duration_axis(bottom.yaxis)
        top.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        finish(figure, bottom, "")
        finish(figure, top, title)
    return figure
