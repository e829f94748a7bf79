"""Pictures of lab 02's measurements. Each takes what `measurements` or `tables` returns, wrapped by
`recordings.measure`, and carries the measurement's label: measured or recorded, on which GPU, when.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import BLUE, GREEN, GREY, ORANGE, PINK, bytes_axis, count_axis, duration_axis, finish, ink
from warplab.text.tables import count, duration, quantity

LANGUAGES = {"library": GREY, "Numba": GREEN, "CUDA C++": BLUE}


def draw_kernels(m: Measurement, what: str) -> Figure:
    """Draw the bandwidth of every kernel of `tables`.

    A dashed line: the copy, or else the fastest library. `what`: begins the title.
    """
    rows = m.value["kernels"]
    libraries = [row for row in rows if row["language"] == "library"]
    limit = next((row for row in rows if row["kernel"] == "copy"), max(libraries, key=lambda r: r["gbps"], default={}))
    largest = max(row["gbps"] for row in rows)
    with chart(figsize=(8, 0.9 + 0.28 * len(rows))) as (figure, ax):
        for place, row in enumerate(rows):
            ax.barh(place, row["gbps"], color=LANGUAGES[row["language"]], height=0.7)
            share = "" if row is limit or not limit else f", {row['gbps'] / limit['gbps']:.2f} of {_short_name(limit)}"
            inside = row["gbps"] > largest / 2
            ax.annotate(
                f"{count(round(row['gbps']))} GB/s{share}",
                (row["gbps"], place),
                (-4 if inside else 4, 0),
                textcoords="offset points",
                ha="right" if inside else "left",
                va="center",
                color=ink(LANGUAGES[row["language"]]) if inside else "black",
            )
        if limit:
            ax.axvline(limit["gbps"], color="black", lw=1, ls="--", zorder=0.9)  # below the labels
        ax.set_yticks(range(len(rows)), [row["kernel"] for row in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="GB/s of the bytes that the task needs")
        count_axis(ax.xaxis)
        finish(figure, ax, f"{what}, {m.label}")
    return figure


def _short_name(row: Mapping[str, Any]) -> str:
    """Return "CUB (cuda.compute)" as "CUB"."""
    return "the copy" if row["kernel"] == "copy" else row["kernel"].split(" ")[0]


def draw_strides(m: Measurement, sectors: Mapping[int, float]) -> Figure:
    """Draw the bandwidth by stride, from `measurements.strides`, and sectors per request by stride, as simulated."""
    return _with_sectors(m, "stride", sectors, "stride of the loads, in elements")


def draw_offsets(m: Measurement, sectors: Mapping[int, float]) -> Figure:
    """Draw the bandwidth by offset, from `measurements.offsets`, and sectors per request by offset, as simulated."""
    return _with_sectors(m, "offset", sectors, "offset of the loads, in elements")


def _with_sectors(m: Measurement, key: str, sectors: Mapping[int, float], xlabel: str) -> Figure:
    rows = m.value["rows"]
    with chart(2, 1, figsize=(7.5, 4), sharex=True) as (figure, (timed, counted)):
        timed.plot([row[key] for row in rows], [row["gbps"] for row in rows], "o-", color=BLUE, ms=4)
        timed.set(ylim=(0, 1.08 * max(row["gbps"] for row in rows)), ylabel="GB/s of useful bytes")
        count_axis(timed.yaxis)
        counted.plot(list(sectors), list(sectors.values()), "s--", color=ORANGE, ms=3, lw=1)
        counted.set(
            xlabel=xlabel, ylim=(0, 1.2 * max(sectors.values())), ylabel="sectors per load\nrequest (simulator)"
        )
        finish(figure, timed, f"Copy of {count(m.value['n'])} float32, {m.label}")
        finish(figure, counted, "")
    return figure


def draw_stencils(m: Measurement, copy_gbps: float | None = None) -> Figure:
    """Draw the claim's experiment, from `measurements.stencils`: L1 against shared memory by radius.

    `copy_gbps`: draws the bandwidth of a copy, in 1e9 bytes per second, as a line.
    """
    rows = m.value["rows"]
    radii = [row["radius"] for row in rows]
    with chart(1, 2, figsize=(9, 3)) as (figure, (left, right)):
        for kind, name, colour in (("shared", "shared memory", ORANGE), ("l1", "L1 cache", BLUE)):
            left.plot(radii, [row[kind]["gbps"] for row in rows], "o-", color=colour, ms=4, label=name)
        if copy_gbps:
            left.axhline(copy_gbps, color=GREY, lw=1, ls="--", label="a copy")
        left.set(xscale="log", ylim=(0, None), xlabel="radius", ylabel="GB/s, read and written once")
        left.legend(frameon=False)
        right.axhline(0.9, color=GREY, lw=1, ls="--")
        right.annotate("the claim, 0.9", (radii[0], 0.9), (0, -11), textcoords="offset points", color=GREY)
        right.plot(radii, [row["l1_of_shared"] for row in rows], "o-", color=BLUE, ms=4)
        highest = max(row["l1_of_shared"] for row in rows)
        right.set(xscale="log", ylim=(0, 1.1 * highest), xlabel="radius", ylabel="speed: L1 / shared memory")
        for ax in (left, right):
            ax.set_xticks(radii, [str(radius) for radius in radii])
            ax.minorticks_off()
        count_axis(left.yaxis)
        finish(figure, right, "")
        finish(figure, left, f"Mean of 2 · radius + 1 neighbours, {m.label}")
    return figure


def draw_working_sets(m: Measurement) -> Figure:
    """Draw the bandwidth by the bytes that are read again and again, from `measurements.working_sets`."""
    rows, size = m.value["rows"], m.value["l2_bytes"]
    with chart(figsize=(7.5, 2.9)) as (figure, ax):
        ax.plot([row["bytes"] for row in rows], [row["gbps"] for row in rows], "o-", color=BLUE, ms=4)
        ax.axvline(size, color=GREY, lw=1, ls="--")
        name = f"L2: {size / 2**20:.0f} MiB = {quantity(size, 'B')}"
        ax.annotate(name, (size, 0), (4, 6), textcoords="offset points", color=GREY, va="bottom")
        ax.set(xscale="log", ylim=(0, None), xlabel="bytes read again and again", ylabel="GB/s")
        bytes_axis(ax.xaxis)
        count_axis(ax.yaxis)
        finish(figure, ax, f"Reads past the L1 caches, {m.label}")
    return figure


def draw_bytes_in_flight(m: Measurement, latency: float) -> Figure:
    """Draw the bandwidth of a copy by bytes in flight, from `measurements.bytes_in_flight`, and Little's law.

    `latency`: seconds of one load from memory, as `measurements.latencies` gives it for large sizes. Bytes in flight
    are those of loads; the line and the rate count as many again, which are written.
    """
    rows, multiprocessors = m.value["rows"], m.value["multiprocessors"]
    largest = max(row["gbps"] for row in rows)
    with chart(figsize=(7.5, 3.2)) as (figure, ax):
        for width, marker in ((4, "o"), (16, "s")):
            for loads, colour in zip((1, 2, 4, 8), (GREY, GREEN, BLUE, PINK), strict=True):
                own = [row for row in rows if (row["load_bytes"], row["loads"]) == (width, loads)]
                ax.plot(
                    [row["in_flight_bytes"] for row in own],
                    [row["gbps"] for row in own],
                    marker,
                    color=colour,
                    ms=4.5,
                    mfc=colour if width == 16 else "none",
                    label=f"{loads} × {width} bytes per thread",
                )
        for loads, warps, place in ((1, 32, (14, -4)), (8, 4, (14, -12))):  # those that the lesson compares
            row = next(r for r in rows if (r["load_bytes"], r["loads"], r["warps"]) == (4, loads, warps))
            text = f"{warps} warps, {loads} × 4 bytes"
            point = row["in_flight_bytes"], row["gbps"]
            arrow = {"arrowstyle": "-", "color": GREY, "lw": 0.8}
            ax.annotate(text, point, place, textcoords="offset points", color=GREY, arrowprops=arrow)
        flights = np.geomspace(min(row["in_flight_bytes"] for row in rows), max(row["in_flight_bytes"] for row in rows))
        law = 2 * flights * multiprocessors / latency / 1e9
        label = f"2 · bytes in flight · {multiprocessors} / {duration(latency)}"
        ax.plot(flights, law, color="black", lw=1, ls="--", label=label)
        ax.set(
            xscale="log",
            ylim=(0, 1.1 * largest),
            xlabel="bytes in flight per multiprocessor",
            ylabel="GB/s, read and written",
        )
        bytes_axis(ax.xaxis)
        count_axis(ax.yaxis)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        finish(figure, ax, f"Copy, {m.label}")
    return figure


def draw_latencies(m: Measurement) -> Figure:
    """Draw the time of one load that waits for the one before, by the bytes they spread over (`latencies`)."""
    with chart(figsize=(7.5, 2.7)) as (figure, ax):
        ax.plot([row["bytes"] for row in m.value], [row["seconds"] for row in m.value], "o-", color=BLUE, ms=4)
        ax.set(xscale="log", ylim=(0, None), xlabel="bytes over which the loads are spread", ylabel="time of a load")
        bytes_axis(ax.xaxis)
        duration_axis(ax.yaxis)
        finish(figure, ax, f"One load after the other, {m.label}")
    return figure


def draw_bank_conflicts(m: Measurement) -> Figure:
    """Draw the time of loads from shared memory by stride, and their wavefronts (`bank_conflicts`)."""
    rows = m.value["rows"]
    one = next(row["seconds"] for row in rows if row["stride"] == 1)
    with chart(figsize=(7.5, 2.7)) as (figure, ax):
        places = [row["stride"] for row in rows]
        ax.bar(places, [row["seconds"] / one for row in rows], color=BLUE, label="time, stride 1 = 1")
        ax.plot(places, [row["ways"] for row in rows], "_", color=ORANGE, ms=9, mew=2, label="wavefronts per load")
        ax.set(xlabel="stride of the lanes, in words", xlim=(-0.7, places[-1] + 0.7))
        ax.legend(frameon=False)
        finish(figure, ax, f"Loads from shared memory, {m.label}")
    return figure


def draw_unified_memory(m: Measurement) -> Figure:
    """Draw ways to bring an array from the host to a kernel, from `measurements.unified_memory`."""
    rows = m.value["rows"]
    with chart(figsize=(7.5, 0.9 + 0.35 * len(rows))) as (figure, ax):
        for place, row in enumerate(rows):
            moved, kernel = row["move_seconds"], row["kernel_seconds"]
            ax.barh(place, moved, color=GREY, height=0.7, label="copy or prefetch" if place == 0 else None)
            ax.barh(place, kernel, left=moved, color=BLUE, height=0.7, label="kernel" if place == 0 else None)
            text = f"{duration(moved + kernel)}, {quantity(m.value['bytes'] / (moved + kernel), 'B')}/s"
            ax.annotate(text, (moved + kernel, place), (4, 0), textcoords="offset points", va="center")
        ax.set_yticks(range(len(rows)), [row["way"] for row in rows])
        longest = max(row["move_seconds"] + row["kernel_seconds"] for row in rows)
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlim=(0, 1.35 * longest))
        duration_axis(ax.xaxis)
        ax.legend(frameon=False, loc="lower right")
        finish(figure, ax, f"{quantity(m.value['bytes'], 'B')} from the host to a kernel, {m.label}")
    return figure
