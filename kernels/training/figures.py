"""Pictures of lab 07. Those of measurements take what `recordings.measure` returns and carry its label; the others show
what a cell of the lesson has computed.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import AMBER, BLUE, DPI, FONT, GREEN, GREY, ORANGE, PALE, PINK, SKY, closed, finish, ink

COLOURS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, GREY)
FP16_NORMAL = 2.0**-14  # the smallest; below it FP16 has fewer digits, and ends at 2^-24


def _box(ax: Any, x: float, y: float, text: str, colour: str, width: float = 1.5, height: float = 0.62) -> None:
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0.02,rounding_size=0.08",
            facecolor=colour,
            edgecolor="none",
        )
    )
    ax.annotate(text, (x, y), ha="center", va="center", color=ink(colour))


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": GREY, "shrinkA": 0, "shrinkB": 0})


def draw_step() -> Figure:
    """Draw a data-parallel step: two towers, each with half of the batch and all of the weights; gradients averaged."""
    with chart(figsize=(8, 2.3)) as (figure, ax):
        for y, half in ((1.5, "first"), (0.5, "second")):
            _box(ax, 1, y, f"{half} half of\nthe batch", SKY)
            _box(ax, 3.4, y, "tower: forward,\nbackward", BLUE, 1.7)
            _box(ax, 5.6, y, "gradient", ORANGE, 1.2)
            _arrow(ax, (1.78, y), (2.5, y))
            _arrow(ax, (4.28, y), (4.95, y))
            _arrow(ax, (6.22, y), (6.95, 1.1 if y > 1 else 0.9))
        _box(ax, 7.5, 1, "mean", GREEN, 1)
        _box(ax, 9.4, 1, "w ← w − r · mean\nin every tower", PINK, 1.8)
        _arrow(ax, (8.02, 1), (8.45, 1))
        ax.set(xlim=(0, 10.5), ylim=(0, 2))
        ax.set_axis_off()
        figure.tight_layout()
    said = "two towers, each with half of the batch: forward, backward, gradient; then the mean of both gradients"
    return closed(figure, f"{said}; then w ← w − r · mean in every tower")


def draw_graph(graph: Any) -> Figure:
    """Draw the operations of a `tf.Graph` as boxes, inputs on the left, each one column right of what it waits for."""
    operations = graph.get_operations()
    depth: dict[str, int] = {}
    for op in operations:
        depth[op.name] = 1 + max((depth[tensor.op.name] for tensor in op.inputs), default=-1)
    # A constant stands just before its first reader, which keeps arrows short.
    for op in operations:
        readers = [depth[reader.name] for tensor in op.outputs for reader in tensor.consumers()]
        if op.type == "Const" and readers:
            depth[op.name] = min(readers) - 1
    place: dict[str, tuple[float, float]] = {}
    for column in sorted(set(depth.values())):
        here = [op for op in operations if depth[op.name] == column]
        for row, op in enumerate(here):
            place[op.name] = (1.7 * column, (len(here) - 1) / 2 - row)
    with plt.rc_context(FONT | {"font.size": 8}):
        width, height = 1 + max(x for x, _ in place.values()), 1 + 2 * max(abs(y) for _, y in place.values())
        figure, ax = plt.subplots(figsize=(min(9.5, 0.62 * width + 1), max(1.6, 0.55 * height + 0.5)), dpi=DPI)
        for op in operations:
            for tensor in op.inputs:
                (x0, y0), (x1, y1) = place[tensor.op.name], place[op.name]
                _arrow(ax, (x0 + 0.7, y0), (x1 - 0.7, y1))
        for op in operations:
            colour = {"Const": PALE, "Placeholder": SKY, "Identity": PALE}.get(op.type, BLUE)
            _box(ax, *place[op.name], op.type, colour, 1.38)
        ax.set(xlim=(-1, width), ylim=(-height / 2 - 0.1, height / 2 + 0.1))
        ax.set_axis_off()
        figure.tight_layout()
    read = ((op.type, " and ".join(tensor.op.type for tensor in op.inputs)) for op in operations)
    return closed(figure, ", ".join(f"{kind} of {inputs}" if inputs else kind for kind, inputs in read))


def draw_runs(runs: Mapping[str, Any]) -> Figure:
    """Draw the loss and share of dead units over the steps of some `regression.History`s, by label."""
    with chart(1, 2, figsize=(8.5, 2.9)) as (figure, (left, right)):
        for (label, run), colour in zip(runs.items(), COLOURS, strict=False):
            steps = np.arange(1, len(run.loss) + 1)
            left.plot(steps, run.loss, color=colour, label=label)
            right.plot(steps, run.dead, color=colour, label=label)
        left.set(xscale="log", yscale="log", xlabel="step", ylabel="mean squared error")
        right.set(xscale="log", xlabel="step", ylim=(-0.04, 1.04))
        left.legend(frameon=False)
        finish(figure, left, "loss")
        finish(figure, right, "share of dead hidden units")
    return figure


def draw_fits(x: np.ndarray, fits: Mapping[str, np.ndarray], hidden: Mapping[str, np.ndarray]) -> Figure:
    """Draw left: outputs over x, by label, beside the number itself. Then hidden units over x, one panel per label.

    `x`: shape (n, 1). `fits`: outputs (n, 1), in units of x. `hidden`: (n, units).
    """
    with plt.rc_context(FONT):
        panels = 1 + len(hidden)
        figure, axes = plt.subplots(1, panels, figsize=(3 * panels, 2.7), dpi=DPI)
        axes[0].plot(x, x, color=GREY, ls="--", label="the number")
        for (label, y), colour in zip(fits.items(), COLOURS, strict=False):
            axes[0].plot(x, y, color=colour, label=label)
        axes[0].set(xlabel="x", ylabel="output")
        axes[0].legend(frameon=False)
        finish(figure, axes[0], "what the network says")
        for ax, (label, units), colour in zip(axes[1:], hidden.items(), COLOURS, strict=False):
            ax.plot(x, units, color=colour, lw=0.8)
            ax.set(xlabel="x", ylim=(-0.1, max(1.0, 1.05 * float(units.max()))))
            finish(figure, ax, f"hidden units, {label}")
    return closed(figure)


def draw_gradients(gradients: np.ndarray, scales: Sequence[float]) -> Figure:
    """Draw histogram of the magnitudes of `gradients`, any shape, times each of `scales`, on the range of FP16."""
    sizes = np.abs(np.asarray(gradients, dtype=np.float64).ravel())
    sizes = sizes[sizes > 0]
    with chart(figsize=(8.5, 2.9)) as (figure, ax):
        bins = np.arange(-36, 10)
        for scale, colour in zip(scales, COLOURS, strict=False):
            lost = np.mean((sizes * scale).astype(np.float16) == 0)
            coarse = np.mean(sizes * scale < FP16_NORMAL) - lost
            label = f"× $2^{{{int(np.log2(scale))}}}$: {lost:.1%} become 0, {coarse:.1%} lose digits"
            ax.hist(np.log2(sizes * scale), bins=bins, color=colour, alpha=0.65, label=label)
        for power, text in ((-24, "smallest\nFP16"), (-14, "smallest\nnormal"), (16, "largest\nFP16")):
            ax.axvline(power, color=GREY, ls="--", lw=1)
            ax.annotate(text, (power - 0.3, 0.97), xycoords=("data", "axes fraction"), va="top", ha="right")
        ax.set(xlabel="magnitude, as a power of 2", ylabel="values", xlim=(-36, 18))
        ax.set_ylim(top=1.35 * ax.get_ylim()[1])
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.6, 0.98), ncols=2)
        finish(figure, ax, "gradients in FP16", pad=10)
    return figure


def draw_rates(kernels: Measurement | None, xla: Measurement | None) -> Figure:
    """Draw GB/s of every way to compute gelu(x + bias) and its gradients, of `kernel_table` and `xla_through_jax`."""
    given = [m for m in (kernels, xla) if m]
    if not given:
        raise ValueError("there is nothing to draw: neither the kernels nor XLA have been measured")
    with chart(1, 2, figsize=(8.5, 3.1)) as (figure, axes):
        for ax, way in zip(axes, ("forward", "backward"), strict=True):
            rows = [
                (f"JAX, {row['name']}" if m is xla else row["name"], row["gbps"], _colour(m is xla, row["name"]))
                for m in given
                for row in m.value["kernels"]
                if row["way"] == way
            ]
            names, rates, colours = zip(*rows, strict=True)
            bars = ax.barh(names, rates, color=colours)
            ax.bar_label(bars, fmt="%.0f", padding=3)
            ax.invert_yaxis()
            ax.set(xlabel="GB/s of what must be moved", xlim=(0, 1.2 * max(rates)))
            finish(figure, ax, way)
        figure.suptitle(given[0].label, fontsize=9, x=0.01, ha="left", weight="bold")
        figure.tight_layout()
    return figure


def _colour(by_jax: bool, name: str) -> str:
    return GREY if name == "copy" else GREEN if by_jax else BLUE


def draw_training(trained: Mapping[str, Any]) -> Figure:
    """Draw the loss by step of two `digits.Trained`, by label, the second dashed, and how far the two are apart."""
    with chart(1, 2, figsize=(8.5, 2.8)) as (figure, (left, right)):
        for k, (label, run) in enumerate(trained.items()):
            style = {"color": COLOURS[k], "ls": "--" if k else "-", "lw": 1.4 if k else 2.6, "label": label}
            left.plot(run.losses, **style)
        right.plot(np.abs(np.subtract(*(run.losses for run in trained.values()))), ".", color=COLOURS[2])
        for ax in (left, right):
            ax.set(xlabel="step", yscale="log")
        left.legend(frameon=False)
        finish(figure, left, "loss")
        finish(figure, right, "difference of the two losses")
    return figure


def draw_cycle(exaflop: float, cards: Sequence[tuple[str, float]], days: Sequence[float]) -> Figure:
    """Draw days of one card for `exaflop` over the share of its peak that it reaches; `cards`: (name, peak in TFLOP/s).

    `days`: claims to mark, as horizontal lines.
    """
    shares = np.linspace(0.05, 1, 60)
    with chart(figsize=(8.5, 3)) as (figure, ax):
        for (name, peak), colour in zip(cards, COLOURS, strict=False):
            ax.plot(
                100 * shares, exaflop * 1e6 / (peak * shares) / 86_400, color=colour, label=f"{name}: {peak:g} TFLOPS"
            )
        for claim in days:
            ax.axhline(claim, color=GREY, ls="--", lw=1)
            ax.annotate(f"{claim:g} days", (5, claim), va="top", ha="left", color=GREY)
        ax.set(yscale="log", xlabel="share of the peak, %", ylabel="days of one card")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        finish(figure, ax, f"{exaflop:g} exaFLOP on one card, by data sheet")
    return figure
