"""The picture of an estimate: what each resource needs of a launch, and what the launch would take without it."""

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from warplab.draw.style import BLUE, GREY, LAUNCH_DPI, LAUNCH_FONT, ORANGE, PALE, closed, duration_axis, finish
from warplab.estimating.estimate import Estimate, estimate
from warplab.hardware.cards import Card
from warplab.text.tables import duration

_WIDTH = 96  # characters of the note


def draw_estimate(profile: object, card: str | Card = "H100", *, warm: bool = False) -> Figure:
    """Draw the estimated time of one launch on `card`, resource by resource.

    A bar is the time that a resource alone would take; a mark is the time of the launch if that resource cost nothing.
    Arguments and errors as of `warplab.estimate`; `profile` may be an estimate already.
    """
    found = profile if isinstance(profile, Estimate) else estimate(profile, card, warm=warm)
    resources = found.resources[::-1]
    with plt.rc_context(LAUNCH_FONT):
        figure, ax = plt.subplots(figsize=(6.4, 1.8 + 0.3 * len(resources)), dpi=LAUNCH_DPI)
        for row, resource in enumerate(resources):
            ax.barh(row, resource.seconds, 0.62, color=BLUE if resource.name == found.limit else PALE)
            if resource.name in found.lifted:
                ax.plot(found.lifted[resource.name], row, "d", color=ORANGE, ms=6)
        ax.axvline(found.seconds, color="black", lw=1.2)
        ax.annotate(
            f"estimate, {duration(found.seconds)}",
            (found.seconds, len(resources) - 0.45),
            (-4, 2),
            textcoords="offset points",
            ha="right",
        )
        ax.plot([], [], "d", color=ORANGE, ms=6, label="the launch without this resource")
        ax.set_yticks(range(len(resources)), [resource.name for resource in resources])
        ax.set_ylim(-1.7, len(resources) - 0.1)  # a row below the bars for the legend
        ax.set_xlim(0, 1.08 * max(found.seconds, *(resource.seconds for resource in resources)))
        duration_axis(ax.xaxis)
        ax.legend(loc="lower right")
        finish(figure, ax, f"{found.launch.kernel} on {found.card.full_name}: time by resource")
        note = textwrap.fill(" ".join([*found.warnings, found.label]), _WIDTH)
        figure.text(0.01, 0.005, note, fontsize=7, color=GREY, va="bottom")
        figure.subplots_adjust(bottom=(0.42 + 0.13 * note.count("\n") + 0.2) / figure.get_figheight())
    return closed(figure)
