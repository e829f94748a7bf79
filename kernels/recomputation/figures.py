"""Pictures of lab 08: of a plan, of steps that TensorFlow ran and `tape` tracked, and of what was recorded on a GPU.

Those of recordings carry the recording's label. Every function returns a matplotlib Figure that is closed for pyplot,
so that a notebook shows it once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from kernels.recomputation import plan as plans
from kernels.recomputation.resnet import FLOAT, Block
from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import AMBER, BLUE, GREEN, GREY, ORANGE, PINK, finish

MIB = 2**20
COLOURS = (GREY, BLUE, ORANGE, GREEN, PINK)


def draw_plans(layers: int, **chosen: plans.Plan) -> Figure:
    """Draw which layer's output is in memory when, by plan: a bar from its birth to its last use, one panel per plan.

    Time is counted in layers run, forward or backward; outputs of layers that ran again are orange.
    """
    with chart(1, len(chosen), figsize=(4.4 * len(chosen), 2.9), sharey=True) as (figure, axes):
        for ax, (label, plan) in zip(axes, chosen.items(), strict=True):
            bars = plans.lifetimes(plan, layers)
            for bar in bars:
                colour = ORANGE if bar.again else BLUE
                ax.barh(bar.layer, bar.end - bar.begin, 0.8, bar.begin, color=colour)
            ticks = range(int(max(bar.end for bar in bars)))
            most = max(sum(bar.begin <= tick < bar.end for bar in bars) for tick in ticks)
            ax.set(xlabel="layers run, forward and backward", xlim=(0, None), ylim=(layers - 0.4, -0.6))
            ax.set_yticks(range(0, layers, max(1, layers // 8)))
            finish(figure, ax, f"{label}: at most {most} at once")
        axes[0].set_ylabel("output of layer")
        figure.tight_layout()
    return figure


def draw_steps(**steps: Any) -> Figure:
    """Draw live MiB over the operations of steps that were tracked (`segments.TrackedStep`), by label."""
    with chart(figsize=(8, 2.9)) as (figure, ax):
        for (label, step), colour in zip(steps.items(), COLOURS, strict=False):
            live = [event.live / MIB for event in step.tracker.events if event.operation]
            ax.plot(live, color=colour, label=f"{label}: peak {step.peak_mib:.0f} MiB")
        ax.set(xlabel="operations run", ylabel="live MiB", ylim=(0, None))
        ax.legend(frameon=False, loc="upper right")
        finish(figure, ax, "what a step holds, tracked in this process")
    return figure


def draw_parts(parts: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Draw stacked bars by label: bytes of weights, gradients, optimiser, activations and the rest, as shares."""
    totals = {label: sum(part.values()) for label, part in parts.items()}
    labels = [f"{label}: {total / MIB:.0f} MiB" for label, total in totals.items()]
    with chart(figsize=(8.5, 0.6 + 0.55 * len(parts))) as (figure, ax):
        left = [0.0] * len(parts)
        for name, colour in zip(next(iter(parts.values())), (BLUE, GREEN, PINK, ORANGE, GREY), strict=False):
            shares = [100 * part[name] / total for part, total in zip(parts.values(), totals.values(), strict=True)]
            ax.barh(labels, shares, left=left, color=colour, label=name)
            left = [start + share for start, share in zip(left, shares, strict=True)]
        ax.invert_yaxis()
        ax.set(xlabel="% of the bytes", xlim=(0, 100))
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        finish(figure, ax, title)
    return figure


def draw_lengths(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw peak and layer evaluations over the length of segments. Rows: `length`, `peak_mib`, `evaluations`."""
    lengths = [row["length"] for row in rows]
    with chart(1, 2, figsize=(8.2, 2.7)) as (figure, (left, right)):
        left.plot(lengths, [row["peak_mib"] for row in rows], "o-", color=BLUE)
        left.set(ylabel="peak, MiB", ylim=(0, None))
        right.plot(lengths, [row["evaluations"] for row in rows], "o-", color=ORANGE)
        right.set(ylabel="layers run forward", ylim=(0, None))
        for ax, title in ((left, "memory"), (right, "work")):
            _log(ax, lengths)
            ax.set_xlabel("layers per segment")
            finish(figure, ax, title)
    return figure


def draw_depths(depths: Sequence[int], title: str = "tracked in this process", **peaks: Sequence[float]) -> Figure:
    """Draw peak MiB over the number of layers, by label, on log axes; dotted: n and √n by the last points."""
    with chart(figsize=(6.5, 3.1)) as (figure, ax):
        for k, (label, peak) in enumerate(peaks.items()):
            ax.plot(depths, peak, "o-", color=COLOURS[k], label=label)
        first, *_, last = peaks.values()
        for label, values, power in (("∝ n", first, 1), ("∝ √n", last, 0.5)):
            line = [values[-1] * (n / depths[-1]) ** power for n in depths]
            ax.plot(depths, line, ":", color=GREY, lw=1)
            ax.annotate(label, (depths[1], line[1]), (4, -9), textcoords="offset points", color=GREY)
        _log(ax, depths)
        ax.set(xlabel="layers", ylabel="peak, MiB", yscale="log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return figure


def draw_blocks(found: Sequence[Block], **chosen: plans.Plan) -> Figure:
    """Draw MiB that each block of a network keeps per image in float32; below, where the segments of plans begin."""
    with chart(figsize=(8.5, 3)) as (figure, ax):
        sizes = [FLOAT * block.inside_elements / MIB for block in found]
        ax.bar(range(len(found)), sizes, color=BLUE, width=0.85)
        for k, (label, plan) in enumerate(chosen.items(), 1):
            y = -0.09 * k * max(sizes)
            colour = COLOURS[k + 1]
            for segment in plans.segments(plan, len(found)):
                ax.plot([segment.start - 0.4, segment.stop - 0.6], [y, y], color=colour, lw=4, solid_capstyle="butt")
            ax.annotate(label, (len(found), y), va="center", color=colour)
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= max(sizes)])
        ax.set_xticks(range(len(found)), [block.name for block in found], rotation=90, fontsize=7)
        ax.set(xlabel="block (stage.number)", ylabel="MiB per image", xlim=(-1, len(found) + 2))
        ax.xaxis.set_minor_locator(NullLocator())
        finish(figure, ax, "what each block keeps, and the segments of plans")
    return figure


def draw_kernels(m: Measurement) -> Figure:
    """Draw the time of forward and backward pass of SiLU, storing and recomputing, by variant, from `kernel_table`."""
    seconds = {(row["entry"], row["name"]): row["seconds"] for row in m.value["rows"]}
    ways = {"storing": "silu_storing", "recomputing": "silu"}
    names = list(dict.fromkeys(name for entry, name in seconds if entry != "copy"))
    pairs = {
        f"{way}, {name}": (entry, name)
        for name in names
        for way, entry in ways.items()
        if (entry, name) in seconds and (f"{entry}_backward", name) in seconds
    }
    with chart(figsize=(8, 2.6)) as (figure, ax):
        labels = list(pairs)
        parts = [[1e6 * seconds[entry + end, name] for entry, name in pairs.values()] for end in ("", "_backward")]
        ax.barh(labels, parts[0], color=AMBER, label="forward")
        ax.barh(labels, parts[1], left=parts[0], color=BLUE, label="backward")
        ax.invert_yaxis()
        ax.set(xlabel="µs")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        finish(figure, ax, f"SiLU of {m.value['n']:,} float32, {m.label}")
    return figure


def _log(ax: Any, values: Sequence[int]) -> None:
    """Set a logarithmic x axis with a tick at each value."""
    ax.set_xscale("log")
    ax.set_xticks(values, [str(value) for value in values])
    ax.xaxis.set_minor_locator(NullLocator())
