"""The picture of an estimate: what each resource needs of a launch, and what the launch would take without it."""

import textwrap

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from warplab.draw.style import BLUE, GREEN, GREY, LAUNCH_DPI, LAUNCH_FONT, ORANGE, PALE, closed, duration_axis, finish
from warplab.estimating.beside import KnownTime, measured, sentences
from warplab.estimating.estimate import Estimate, estimate
from warplab.hardware.cards import Card
from warplab.text.tables import duration

_WIDTH = 112  # characters of the note


def draw_estimate(
    profile: object, card: str | Card = "H100", *, warm: bool = False, known: KnownTime | None = None
) -> Figure:
    """Draw the estimated time of one launch on `card`, resource by resource.

    A bar is the time that a resource alone would take; a mark is the time of the launch if that resource cost nothing.
    `known`: the time that a GPU took; left out, that of the profile, if it is from a GPU. Arguments and errors as of
    `warplab.estimate`; `profile` may be an estimate already.
    """
    found = profile if isinstance(profile, Estimate) else estimate(profile, card, warm=warm)
    resources, known = found.resources[::-1], known or measured(found)
    others = [known.seconds] if known else []
    with plt.rc_context(LAUNCH_FONT):
        figure, ax = plt.subplots(figsize=(6.4, 2.3 + 0.3 * len(resources)), dpi=LAUNCH_DPI)
        for row, resource in enumerate(resources):
            ax.barh(row, resource.seconds, 0.62, color=BLUE if resource.name == found.limit else PALE)
            if resource.name in found.lifted:
                ax.plot(found.lifted[resource.name], row, "d", color=ORANGE, ms=6)
        ax.axvline(found.seconds, color="black", lw=1.2, label=f"the launch: estimate, {duration(found.seconds)}")
        if known:
            text = f"the launch: {known.verb}, {duration(known.seconds)}"
            ax.axvline(known.seconds, color=GREEN, lw=1.8, ls="--", label=text)
        ax.plot([], [], "d", color=ORANGE, ms=6, label="estimate without this resource")
        ax.set_yticks(range(len(resources)), [resource.name for resource in resources])
        ax.set_ylim(-2.6 - 0.6 * len(others), len(resources) - 0.4)  # rows below the bars for the legend
        ax.set_xlim(0, 1.08 * max(found.seconds, *others, *(resource.seconds for resource in resources)))
        ax.set_xlabel(f"time on {found.card.full_name}, if nothing else took any")
        duration_axis(ax.xaxis)
        ax.legend(loc="lower right", borderaxespad=0.2, framealpha=1)
        finish(figure, ax, f"{found.launch.kernel}, estimate: time by resource")
        origin = sentences([known] if known else [])
        note = textwrap.fill(" ".join([*found.warnings, found.label, *origin]), _WIDTH)
        figure.text(0.01, 0.005, note, fontsize=7, color=GREY, va="bottom")
        figure.subplots_adjust(bottom=(0.6 + 0.13 * note.count("\n") + 0.2) / figure.get_figheight())
    return closed(figure)
