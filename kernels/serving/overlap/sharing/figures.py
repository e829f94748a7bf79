"""Pictures of processes that share a GPU: the model's timelines, and what was recorded beside what the model predicts.

Pictures of a recording carry its label.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

from kernels.serving.overlap.sharing.model import Gpu, Request, predict
from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import AMBER, BLUE, GREEN, GREY, ORANGE, PALE, SKY, count_axis, duration_axis, finish

COLOURS = {"time slices": ORANGE, "MPS": BLUE, "streams": GREEN, "one batch": AMBER}


def draw_processes(ways: Mapping[str, Sequence[Request]], title: str) -> Figure:
    """Draw clients down, virtual time across, a panel per way: running is coloured, host and waiting before it pale.

    `ways`: by name ("time slices", "MPS", ...) the model's requests.
    """
    end = max((one.answered for found in ways.values() for one in found), default=1.0)
    clients = [1 + max((one.client for one in found), default=0) for found in ways.values()]
    with chart(len(ways), 1, figsize=(7.6, 0.9 + 0.26 * sum(clients)), sharex=True, squeeze=False) as (figure, axes):
        for ax, (way, found), rows in zip(axes.flat, ways.items(), clients, strict=True):
            for one in found:
                low = one.client - 0.38
                ax.add_patch(Rectangle((one.sent, low), one.began - one.sent, 0.76, facecolor=PALE))
                colour = COLOURS.get(way, BLUE)
                box = Rectangle((one.began, low), one.answered - one.began, 0.76, fc=colour, ec="white", lw=0.6)
                ax.add_patch(box)
            ax.set(xlim=(0, end), ylim=(rows - 0.5, -0.5), ylabel="client")
            ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            answered = sum(one.answered <= end for one in found)
            finish(
                figure,
                ax,
                f"{way}: {answered} answers" if ax is not axes.flat[0] else f"{title}\n{way}: {answered} answers",
            )
            ax.grid(False, axis="y")
        duration_axis(axes.flat[-1].xaxis)
        axes.flat[-1].set_xlabel("virtual time")
        figure.tight_layout()
    return figure


def draw_ways(m: Measurement, gpu: Gpu | None = None, saturated: Measurement | None = None) -> Figure:
    """Draw images per second and p99 latency of k requests in flight, by way; the model's dotted, if `gpu` is given.

    `m`: the recording "sharing_ways"; rows of batch 1. `saturated`: "sharing_saturated", for more requests in flight.
    """
    with chart(1, 2, figsize=(7.8, 3.1)) as (figure, (left, right)):
        more = saturated.value["rows"] if saturated else ()
        found = [row for row in (*m.value["rows"], *more) if row["batch"] == 1]
        ks = sorted({row["clients"] for row in found})
        one = next(row["images_per_second"] for row in found if row["clients"] == 1 and row["way"] == "time slices")
        left.plot(ks, [k * one for k in ks], color=GREY, lw=0.8, ls="--", label="k × one process")
        for way in dict.fromkeys(row["way"] for row in found):
            own = sorted((row for row in found if row["way"] == way), key=lambda row: row["clients"])
            at = [row["clients"] for row in own]
            colour = COLOURS[way]
            left.plot(at, [row["images_per_second"] for row in own], "o-", ms=3.5, color=colour, label=way)
            right.plot(at, [row["p99_seconds"] for row in own], "o-", ms=3.5, color=colour)
            if gpu is not None:
                modelled = [predict(gpu, way, k) for k in at]
                left.plot(at, [row["images_per_second"] for row in modelled], ":", color=colour)
                right.plot(at, [row["p99_seconds"] for row in modelled], ":", color=colour)
        if gpu is not None:
            left.plot([], [], ":", color=GREY, label="model")
        for ax in (left, right):
            ax.set(xscale="log", yscale="log", xlabel="requests in flight, batch 1")
            ax.xaxis.set_major_locator(FixedLocator(ks))
            ax.xaxis.set_minor_locator(NullLocator())
            count_axis(ax.xaxis)
        left.set_ylabel("images/s")
        count_axis(left.yaxis)
        _one_two_five(left.yaxis)
        right.set_ylabel("p99 latency")
        duration_axis(right.yaxis)
        _one_two_five(right.yaxis)
        left.legend(frameon=False)
        finish(figure, left, m.label)
        finish(figure, right, "")
    return figure


def draw_trade(ways: Measurement, batches: Measurement) -> Figure:
    """Draw images per second against median latency: larger batches of one process, and more processes of one image.

    `ways`, `batches`: the recordings "sharing_ways" and "sharing_batches". Numbers: requests in flight × batch.
    """
    curves = {
        "one process, larger batches": (AMBER, [(row["batch"], row) for row in batches.value["rows"]]),
        **{
            f"{way}, batch {batch}": (colour, _curve(ways, way, batch))
            for way, batch, colour in (
                ("time slices", 1, ORANGE),
                ("MPS", 1, BLUE),
                ("MPS", 4, SKY),
                ("streams", 1, GREEN),
            )
        },
    }
    with chart(figsize=(7.8, 3.4)) as (figure, ax):
        for name, (colour, points) in curves.items():
            xs = [row["p50_seconds"] for _, row in points]
            ys = [row["images_per_second"] for _, row in points]
            ax.plot(xs, ys, "o-", ms=3.5, lw=1, color=colour, label=name)
            for number, row in points[:: max(1, len(points) - 1)]:  # the first and the last
                place = (row["p50_seconds"], row["images_per_second"])
                ax.annotate(str(number), place, (3, 3), textcoords="offset points", fontsize=7, color=colour)
        ax.set(xscale="log", yscale="log", xlabel="median latency", ylabel="images/s")
        duration_axis(ax.xaxis)
        count_axis(ax.yaxis)
        for axis in (ax.xaxis, ax.yaxis):
            _one_two_five(axis)
        ax.legend(frameon=False, title="numbers: images in flight")
        finish(figure, ax, ways.label)
    return figure


def draw_parts(m: Measurement) -> Figure:
    """Draw, left, throughput of large batches by the percentage of threads; right, a small request beside a large one.

    `m`: the recording "sharing_parts".
    """
    with chart(1, 2, figsize=(7.8, 2.9), width_ratios=(2, 3)) as (figure, (left, right)):
        rows = sorted(m.value["alone"], key=lambda row: row["percentage"])
        whole = rows[-1]
        xs = [row["percentage"] for row in rows]
        left.plot(xs, [row["images_per_second"] for row in rows], "o-", ms=3.5, color=BLUE)
        line = [whole["images_per_second"] * x / whole["percentage"] for x in xs]
        left.plot(xs, line, "--", lw=0.8, color=GREY)
        left.set(xlabel="% of the threads", ylabel="images/s", xlim=(0, 105), ylim=(0, None))
        count_axis(left.yaxis)
        pairs = m.value["neighbours"]
        names = list(dict.fromkeys(_pair(row) for row in pairs))
        for number, name in enumerate(names):
            for row in (row for row in pairs if _pair(row) == name):
                alone = row["neighbour"] == "alone"
                place = number + (-0.2 if alone else 0.2)
                colour = PALE if alone else BLUE
                right.barh(place, row["p50_seconds"], height=0.36, color=colour)
                right.plot([row["p50_seconds"], row["p99_seconds"]], [place] * 2, color="black", lw=1)
        right.set_yticks(range(len(names)), names)
        right.invert_yaxis()
        right.set_xlabel("latency of one image: bar p50, line to p99")
        duration_axis(right.xaxis)
        handles = [Patch(color=PALE, label="alone"), Patch(color=BLUE, label="beside large batches")]
        right.legend(handles=handles, frameon=False)
        finish(figure, left, m.label)
        finish(figure, right, "")
        right.grid(False, axis="y")
    return figure


def _pair(row: Mapping[str, Any]) -> str:
    return "\n".join(filter(None, (row["way"], row["shares"])))


def _curve(m: Measurement, way: str, batch: int) -> list[tuple[int, dict[str, Any]]]:
    """List (images in flight, row) by the number of clients."""
    rows = [row for row in m.value["rows"] if (row["way"], row["batch"]) == (way, batch)]
    return [(row["clients"] * batch, row) for row in sorted(rows, key=lambda row: row["clients"])]


def _one_two_five(axis: Axis) -> None:
    """Set ticks at 1, 2 and 5 times the powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
