"""The picture of a roofline: where launches stand under the limits of a card."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from warplab.draw.style import AMBER, BLUE, GREEN, LAUNCH_DPI, LAUNCH_FONT, ORANGE, PINK, SKY, closed
from warplab.estimating.roofline import flops, footprint, peaks, roofline
from warplab.hardware.cards import Card
from warplab.hardware.cards import card as find_card
from warplab.launch.profile_queries import launches
from warplab.text.tables import duration, quantity

GRID = "#EDEDED"
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)


def draw_roofline(profile: object, card: str | Card = "H100") -> Figure:
    """Draw launches under the roofline of `card`: operations per second against operations per byte, axes logarithmic.

    A hollow mark is a prediction (`warplab.estimating.roofline`), a filled one a time measured on such a GPU.
    `profile`: a profile, a launch or a list of launches. Launches without floating-point operations or without memory
    traffic have no place on the axes. Raises ValueError where none is left.
    """
    card = find_card(card)
    points = [launch for launch in launches(profile) if flops(launch) and footprint(launch)]
    if not points:
        raise ValueError(
            "no launch has both floating-point operations and global memory traffic, so none can be placed; draw others"
        )
    bandwidth = card.bandwidth_gbs * 1e9
    intensities = [flops(p) / footprint(p) for p in points]
    ridge = card.fp32_tflops * 1e12 / bandwidth
    x = np.geomspace(min(*intensities, ridge) / 8, max(*intensities, ridge) * 12, 200)

    with plt.rc_context(LAUNCH_FONT):
        figure, ax = plt.subplots(figsize=(6.4, 4), dpi=LAUNCH_DPI)
        every = [peaks(launch, card) for launch in points]
        shown = {k: peak for k, (_, peak) in every[0].items() if peak and (k == "FP32" or any(x[k][0] for x in every))}
        ax.plot(x, np.minimum(x * bandwidth, max(shown.values()) * 1e12), color="black", lw=1.5)
        for name, peak in shown.items():
            ax.plot([peak * 1e12 / bandwidth, x[-1]], [peak * 1e12] * 2, color="black", lw=1.5 if name == "FP32" else 1)
            ax.annotate(
                f"{name}, {peak:g} TFLOP/s", (x[-1], peak * 1e12), (0, 3), textcoords="offset points", ha="right"
            )
        middle = np.sqrt(x[0] * ridge)
        ax.annotate(
            f"memory, {quantity(bandwidth, 'B/s')}",
            (middle, middle * bandwidth),
            (-6, 4),
            textcoords="offset points",
            ha="right",
        )
        for i, (launch, intensity) in enumerate(zip(points, intensities, strict=True)):
            colour = COLOURS[i % len(COLOURS)]
            prediction = roofline(launch, card)
            rate = flops(launch) / prediction.seconds
            label = f"{launch.kernel}: predicted, at least {duration(prediction.seconds)}"
            ax.plot([intensity] * 2, [x[0] * bandwidth / 50, rate], color=colour, lw=0.7, ls=":")
            # Launches often lie at the same place: smaller marks come later and leave the larger ones in sight.
            size = max(5, 12 - 2 * i)
            ax.plot(intensity, rate, "o", ms=size, mfc="white", mec=colour, mew=1.8, label=label)
            if launch.gpu_seconds and card.name in (launch.gpu_name or ""):
                measured = flops(launch) / launch.gpu_seconds
                label = f"{launch.kernel}: measured, {duration(launch.gpu_seconds)} ({launch.gpu_name})"
                ax.plot(intensity, measured, "o", ms=size, color=colour, label=label)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="FLOP per byte of memory traffic, each distinct sector once",
            ylabel="FLOP/s",
            xlim=(x[0], x[-1]),
        )
        ax.set_title(f"Roofline of {card.full_name}", weight="bold")
        ax.set_ylim(x[0] * bandwidth / 4, max(shown.values()) * 4e12)
        ax.grid(which="major", color=GRID)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="lower right", frameon=True, framealpha=1, edgecolor=GRID)
        figure.tight_layout()
    return closed(figure)
