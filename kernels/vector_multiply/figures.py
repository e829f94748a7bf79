"""Pictures of lab 01: bounds, bandwidths and times. Each takes what `measurements` returns, wrapped by
`recordings.measure`, and carries the measurement's label: measured or recorded, on which GPU, when.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import BLUE, GREEN, GREY, ORANGE, PALE, SKY, bytes_axis, count_axis, duration_axis, finish, ink
from warplab.hardware.cards import CARDS, card_of
from warplab.text.tables import TIMES, count, duration, quantity


def draw_least_times(nbytes: float, claimed: float) -> Figure:
    """Draw the least time in which each card's memory can move `nbytes` bytes, beside a `claimed` time in seconds."""
    cards = list(CARDS.values())
    least = [nbytes / (card.bandwidth_gbs * 1e9) for card in cards]
    with chart(figsize=(7.5, 0.7 + 0.3 * len(cards))) as (figure, ax):
        ax.axvline(claimed, color=ORANGE, lw=2)
        ax.annotate(
            f"claimed: {duration(claimed)}",
            (claimed, -0.7),
            (5, -2),
            textcoords="offset points",
            color=ORANGE,
            va="top",
        )
        for row, seconds in enumerate(least):
            ax.plot([claimed, seconds], [row, row], color=PALE, lw=2, zorder=0)
            ax.plot(seconds, row, "o", color=BLUE)
            text = f"{duration(seconds)}, {count(round(seconds / claimed))} {TIMES} the claim"
            ax.annotate(text, (seconds, row), (8, 0), textcoords="offset points", va="center")
        names = [f"{card.name}, {card.year}, {count(round(card.bandwidth_gbs))} GB/s" for card in cards]
        ax.set_yticks(range(len(cards)), names)
        ax.set(xscale="log", xlim=(claimed / 2, max(least) * 30), ylim=(len(cards) - 0.5, -0.7))
        duration_axis(ax.xaxis)
        finish(figure, ax, f"The least time in which a card's memory moves {quantity(nbytes, 'B')}")
    return figure


def draw_ten_launches(m: Measurement) -> Figure:
    """Draw what host and GPU do over time while `launches` kernels are launched; where the clock was stopped.

    `m.value`: `returned_seconds`, `finished_seconds`, `launches`, as `measurements.ten_launches` gives them.
    """
    returned, finished = m.value["returned_seconds"], m.value["finished_seconds"]
    launches = m.value["launches"]
    with chart(figsize=(8.5, 2.1)) as (figure, ax):
        edges = np.linspace(0, finished, launches + 1)
        widths = np.diff(edges)
        for k, (left, width) in enumerate(zip(edges, widths, strict=False)):
            colour = SKY if k % 2 else BLUE
            ax.barh(0, width, left=left, color=colour)
            ax.text(left + width / 2, 0, str(k + 1), ha="center", va="center", color=ink(colour), weight="bold")
        ax.barh(1, returned, color=ORANGE)
        ax.annotate(
            f"all {launches} launches have returned: {duration(returned)}",
            (returned, 1),
            (finished * 0.05, 1),
            va="center",
            color=ORANGE,
            arrowprops={"arrowstyle": "->", "color": ORANGE},
        )
        ax.annotate(f"finished: {duration(finished)}", (finished, 0.5), ha="right", va="center", color=BLUE)
        ax.set_yticks([1, 0], ["host", "GPU"])
        ax.set(ylim=(-0.55, 1.5), xlim=(0, finished * 1.005), xlabel="time since the first launch")
        duration_axis(ax.xaxis)
        finish(figure, ax, f"Ten launches, {m.label}")
    return figure


def draw_bandwidths(m: Measurement) -> Figure:
    """Draw effective bandwidth of every kernel of `measurements.kernel_table`, beside the copy of the same run."""
    rows = m.value["rows"]
    limit = next(row["gbps"] for row in rows if row["kernel"] == "copy")
    colours = {"library": GREY, "Numba": GREEN, "CUDA C++": BLUE}
    with chart(figsize=(8, 0.9 + 0.3 * len(rows))) as (figure, ax):
        for place, row in enumerate(rows):
            colour = colours[row["language"]]
            ax.barh(place, row["gbps"], color=colour, height=0.68)
            text = f"{count(round(row['gbps']))} GB/s, {row['gbps'] / limit:.2f} of the copy"
            ax.text(row["gbps"] * 0.99, place, text, va="center", ha="right", color=ink(colour))
        ax.axvline(limit, color="black", lw=1, ls="--")
        card = card_of(m.device)
        if card is not None:
            ax.axvline(card.bandwidth_gbs, color=ORANGE, lw=1)
            where = (card.bandwidth_gbs, -0.6)
            ax.annotate("data sheet", where, (0, 2), textcoords="offset points", ha="center", color=ORANGE)
        ax.set_yticks(range(len(rows)), [row["kernel"] for row in rows])
        ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="GB/s of bytes read and written")
        count_axis(ax.xaxis)
        finish(figure, ax, f"{count(m.value['n'])} float32, {m.label}", pad=14 if card else 6)
    return figure


def draw_grid_sizes(m: Measurement) -> Figure:
    """Draw the bandwidth of the grid-stride kernel by the number of blocks, from `measurements.grid_sizes`."""
    rows, multiprocessors = m.value["rows"], m.value["multiprocessors"]
    with chart(figsize=(7.5, 2.7)) as (figure, ax):
        ax.plot([r["blocks"] for r in rows], [r["gbps"] for r in rows], "o-", color=BLUE, ms=4)
        ax.axvline(multiprocessors, color=GREY, lw=1, ls="--")
        ax.annotate(f"one block per multiprocessor ({multiprocessors})", (multiprocessors * 1.15, 60), color=GREY)
        ax.set(xscale="log", ylim=(0, None), xlabel=f"blocks of {m.value['block']} threads", ylabel="GB/s")
        count_axis(ax.xaxis)
        count_axis(ax.yaxis)
        finish(figure, ax, f"Grid-stride loop, {m.label}")
    return figure


COPIES = (
    ("device_to_device", "on the device (read + written)", GREY, "-"),
    ("host_to_device_pinned", "host to device, pinned", BLUE, "-"),
    ("device_to_host_pinned", "device to host, pinned", BLUE, "--"),
    ("host_to_device_pageable", "host to device, pageable", ORANGE, "-"),
    ("device_to_host_pageable", "device to host, pageable", ORANGE, "--"),
)


def draw_copies(m: Measurement) -> Figure:
    """Draw rates of copies by their size, from `measurements.copies`."""
    sizes = [row["bytes"] for row in m.value]
    with chart(figsize=(7.5, 3.2)) as (figure, ax):
        for key, label, colour, style in COPIES:
            rates = [row[f"{key}_gbps"] for row in m.value]
            ax.plot(
                sizes, rates, style, marker="o", ms=3, color=colour, label=f"{label}: {_three_digits(rates[-1])} GB/s"
            )
        ax.set(xscale="log", yscale="log", xlabel="bytes copied", ylabel="GB/s")
        bytes_axis(ax.xaxis)
        count_axis(ax.yaxis)
        ax.legend(title="largest size:", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        finish(figure, ax, f"Copies, {m.label}")
    return figure


def draw_one_multiply(m: Measurement) -> Figure:
    """Draw the time of one vector multiply by the number of elements, from `measurements`' `prediction_multiply`."""
    rows = m.value["rows"]
    lines = (
        ("NumPy, one core", [r["numpy_seconds"] for r in rows], "black", "-"),
        ("GPU, with copies, pageable", [r["pageable"]["total_seconds"] for r in rows], ORANGE, "-"),
        ("GPU, with copies, pinned", [r["pinned"]["total_seconds"] for r in rows], BLUE, "-"),
        ("GPU, data already there", [r["on_gpu_seconds"] for r in rows], GREEN, "-"),
    )
    return _times([r["n"] for r in rows], lines, "elements", f"One vector multiply, {m.label}")


def draw_one_layer(m: Measurement, batch: int = 1) -> Figure:
    """Draw the time of one dense layer by its width, from `measurements`' `prediction_dense`; weights on the GPU."""
    rows = [row for row in m.value["rows"] if row["batch"] == batch]
    if not rows:
        known = sorted({row["batch"] for row in m.value["rows"]})
        raise ValueError(f"batch {batch} was not measured; measured are {', '.join(map(str, known))}")
    lines = (
        ("NumPy with its BLAS", [r["numpy_seconds"] for r in rows], "black", "-"),
        ("GPU, with copies, pinned", [r["total_seconds"] for r in rows], BLUE, "-"),
        ("of that the kernel", [r["kernel_seconds"] for r in rows], BLUE, ":"),
    )
    title = f"One dense layer, batch {batch}, weights on the GPU, {m.label}"
    return _times([r["n"] for r in rows], lines, "inputs and outputs of the layer", title)


Line = tuple[str, Sequence[float], str, str]


def _times(sizes: list[int], lines: tuple[Line, ...], xlabel: str, title: str) -> Figure:
    with chart(figsize=(7.5, 3.2)) as (figure, ax):
        for label, seconds, colour, style in lines:
            ax.plot(sizes, seconds, style, marker="o", ms=3, color=colour, label=label)
        ax.set(xscale="log", yscale="log", xlabel=xlabel)
        ax.set_xticks(sizes, [count(n) for n in sizes], rotation=25 if len(sizes) > 6 else 0, minor=False)
        ax.minorticks_off()
        duration_axis(ax.yaxis)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        finish(figure, ax, title)
    return figure


def _three_digits(rate: float) -> str:
    return count(round(rate)) if rate >= 100 else f"{rate:.3g}"
