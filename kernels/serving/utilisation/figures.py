"""Pictures of lab 11 about utilisation: samples in virtual time, loads measured, a monitor, three roads, a timeline.

Times of `draw_samples` are virtual. Those of recordings carry the recording's label. Every function returns a
matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, PercentFormatter

from kernels.serving.utilisation import traces
from kernels.serving.utilisation.three_roads import INSTRUCTIONS, LATENCY, LEAST, MEMORY, Decision
from kernels.serving.utilisation.traces import Span
from kernels.serving.utilisation.virtual import Kernel, Look, samples
from warpcourse.bench.charts import chart
from warpcourse.bench.recordings import Measurement
from warplab.draw.style import AMBER, BLUE, DPI, GREEN, GREY, ORANGE, PALE, PINK, SKY, Picture, duration_axis, finish
from warplab.hardware.cards import Card
from warplab.hardware.cards import card as find_card

if TYPE_CHECKING:
    from kernels.serving.utilisation.monitor import Sample

UTILISATION, ACTIVITY, OCCUPANCY = "utilisation (NVML)", "SM activity", "occupancy"
# By what is told: the name of a `monitor.Sample`'s field, and a colour.
INSTRUMENTS = {
    UTILISATION: ("utilisation", ORANGE),
    ACTIVITY: ("sm", BLUE),
    OCCUPANCY: ("occupancy", GREEN),
    "DRAM": ("dram", PINK),
    "FP32": ("fp32", SKY),
}
STYLES = {UTILISATION: "-", ACTIVITY: "-", OCCUPANCY: "--"}  # activity and occupancy may be equal
NARROWEST = 0.003  # of a timeline's width: about two pixels, so that no span vanishes
TRACE_COLOURS = {traces.CALL: GREY, traces.UP: ORANGE, traces.KERNEL: BLUE, traces.ON_DEVICE: SKY, traces.DOWN: PINK}
ROAD_COLOURS = {MEMORY: PINK, INSTRUCTIONS: BLUE, LATENCY: AMBER}


def draw_samples(
    kernels: Sequence[Kernel],
    period: float,
    until: float | None = None,
    *,
    card: str | Card = "H100",
    title: str = "what each sample period is told",
) -> Figure:
    """Draw, above, kernels in time, as high as the share of SMs that they are on; below, what each sample period tells.

    `period`: of the samples, in seconds of virtual time. ValueError where there is none.
    """
    card = find_card(card)
    looks = samples(kernels, period, until, card=card)
    if not looks:
        raise ValueError("there is no sample period to draw; give a kernel, or `until`")
    with chart(2, 1, figsize=(7.6, 3.8), sharex=True) as (figure, (above, below)):
        for kernel in kernels:
            box = Rectangle((kernel.start, 0), kernel.seconds, kernel.sms / card.sms, fc=SKY, ec=BLUE, lw=1)
            above.add_patch(box)
            if kernel.name:
                middle = kernel.start + kernel.seconds / 2, kernel.sms / card.sms
                above.annotate(kernel.name, middle, (0, 2), textcoords="offset points", ha="center", fontsize=7.5)
        _percent(above)
        above.set(ylabel="SMs", ylim=(-0.05, 1.15))
        _look_lines(below, looks)
        _percent(below)
        below.set(ylabel="of the period", ylim=(-0.04, 1.08), xlabel="time, virtual")
        for ax in (above, below):
            for look in looks:
                ax.axvline(look.end, color=PALE, lw=0.8)
        below.set_xlim(looks[0].start, looks[-1].end)
        duration_axis(below.xaxis)
        below.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        finish(figure, below, "")
        finish(figure, above, title)
    return figure


def _look_lines(ax: Axes, looks: Sequence[Look]) -> None:
    edges = [look.start for look in looks] + [looks[-1].end]
    shares = zip(*((look.utilisation, look.sm_activity, look.occupancy) for look in looks), strict=True)
    for (name, style), values in zip(STYLES.items(), shares, strict=True):
        ax.stairs(values, edges, baseline=None, color=INSTRUMENTS[name][1], lw=2, ls=style, label=name)


def draw_utilisation(m: Measurement) -> Figure:
    """Draw bars per load of `measurements`, "utilisation": NVML's figure beside activity, occupancy, memory.

    A bar that is missing was not told by that driver.
    """
    rows = m.value["rows"]
    told = {UTILISATION: [row["nvml"] for row in rows]}
    for name in (ACTIVITY, OCCUPANCY, "FP32", "DRAM"):
        told[name] = [row["gpm"][INSTRUMENTS[name][0]] for row in rows]
    told = {name: values for name, values in told.items() if any(v is not None for v in values)}
    with chart(figsize=(7.8, 0.9 + 0.72 * len(rows))) as (figure, ax):
        height = 0.84 / len(told)
        for place, (name, values) in enumerate(told.items()):
            at = np.arange(len(rows)) + (place - (len(told) - 1) / 2) * height
            ax.barh(at, [v or 0 for v in values], height, color=INSTRUMENTS[name][1], label=name)
            for y, v in zip(at, values, strict=True):
                if v is not None:
                    ax.text(v + 0.01, y, f"{100 * v:.2f} %", va="center", fontsize=6.5)
        ax.set_yticks(range(len(rows)), [row["load"] for row in rows])
        ax.invert_yaxis()
        ax.xaxis.set_major_formatter(PercentFormatter(1))
        ax.set_xlim(0, 1.13)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        finish(figure, ax, f"how busy is it?\n{m.label}")
    return figure


def draw_monitor(found: Sequence[Sample], label: str, marks: Iterable[tuple[float, str]] = ()) -> Figure:
    """Draw what a `Monitor` saw: shares of time above, watts and memory below. `marks`: seconds and what began then.

    A monitor draws in its own thread, beside a program that may draw too: so no pyplot here, and no shared settings.
    """
    figure = Picture(figsize=(7.8, 4.0), dpi=DPI)
    shares, watts = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    memory = watts.twinx()
    for name, (field, colour) in INSTRUMENTS.items():
        _curve(shares, found, field, name, colour)
    _curve(watts, found, "watts", "power", AMBER)
    _curve(memory, found, "memory_bytes", "memory in use", GREY)
    _percent(shares)
    shares.set_ylim(-0.04, 1.08)
    watts.set_ylim(0, None)
    memory.set_ylim(0, None)
    memory.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v / 1e9:g} GB"))
    memory.spines[["top"]].set_visible(False)
    watts.set_xlabel("seconds", fontsize=9)
    watts.set_ylabel("W", fontsize=9)
    top = _mark(shares, list(marks), max((s.seconds for s in found), default=0.0))
    beside: dict[str, Any] = {"frameon": False, "loc": "center left", "bbox_to_anchor": (1.13, 0.5), "fontsize": 8.5}
    for ax in (shares, watts, memory):
        ax.tick_params(labelsize=9)
    for ax, lines in ((shares, shares.lines), (watts, [*watts.lines, *memory.lines])):
        named = [line for line in lines if not str(line.get_label()).startswith("_")]
        if named:
            ax.legend(named, [str(line.get_label()) for line in named], **beside)
    finish(figure, watts, "")
    finish(figure, shares, "")
    shares.set_title(label, loc="left", weight="bold", fontsize=9, pad=6 + top)
    figure.tight_layout()
    return figure


def _mark(ax: Axes, marks: Sequence[tuple[float, str]], end: float) -> float:
    """Mark moments, each with its name above: in lines as wide as the time to the next, or above the one before where
    that is too short. Returns the height of the names in points."""
    across, least, size = 305, 30, 6  # points: the picture, a line at least, the type
    top = below = 0.0
    for place, (seconds, name) in enumerate(marks):
        until = marks[place + 1][0] if place + 1 < len(marks) else max(end, seconds)
        room = across * (until - seconds) / (end or 1) - 7
        lines = _wrapped(name, max(room, least), size)
        ax.axvline(seconds, color=GREY, lw=0.8, ls=":")
        ax.annotate(
            *("\n".join(lines), (seconds, 1.08), (2, 2 + below)),
            textcoords="offset points",
            fontsize=size,
            va="bottom",
            annotation_clip=False,
        )
        height = below + 1.3 * size * len(lines)
        top, below = max(top, height), height if room < least else 0.0
    return top


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """Return lines of at most `width` points, a longer word alone."""
    lines: list[str] = []
    for word in text.replace(" %", "\u00a0%").split(" "):  # a number and its sign together
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and TextPath((0, 0), longer, size=size).get_extents().width <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _curve(ax: Axes, found: Sequence[Sample], field: str, name: str, colour: str) -> None:
    points = [(s.seconds, getattr(s, field)) for s in found if getattr(s, field) is not None]
    if points:
        ax.plot(*zip(*points, strict=True), color=colour, lw=1.5, label=name)


def draw_roads(decisions: Sequence[Decision], title: str | None = None) -> Figure:
    """Draw which road each launch is on: shares of its time that memory and instructions account for, three regions.

    ValueError without a decision.
    """
    if not decisions:
        raise ValueError("there is no decision to draw; decide() about a launch first")
    with chart(figsize=(7.4, 4.4 + 0.3 * len(decisions))) as (figure, ax):
        corners = {
            LATENCY: [(0, 0), (LEAST, 0), (LEAST, LEAST), (0, LEAST)],
            MEMORY: [(LEAST, 0), (1.04, 0), (1.04, 1.04), (LEAST, LEAST)],
            INSTRUCTIONS: [(0, LEAST), (LEAST, LEAST), (1.04, 1.04), (0, 1.04)],
        }
        texts = {
            LATENCY: (0.02, 0.44, "LATENCY: it waits.\nMore blocks, more loads in flight,\nother work beside it"),
            MEMORY: (0.62, 0.44, "MEMORY\nFewer sectors and bytes:\ncoalesce, tile,\nsmaller types"),
            INSTRUCTIONS: (0.02, 0.78, "INSTRUCTIONS\nFewer, wider ones; no divergence;\ntensor cores"),
        }
        for road, places in corners.items():
            ax.add_patch(Polygon(places, fc=ROAD_COLOURS[road], alpha=0.14, lw=0))
            x, y, text = texts[road]
            ax.text(x, y, text, fontsize=8)
        taken: list[tuple[float, float]] = []  # of the numbers, beside their marks
        for number, d in enumerate(decisions, 1):
            x, y = min(d.memory, 1.0), min(d.instructions, 1.0)
            beside = x
            while any(abs(beside - a) < 0.035 and abs(y - b) < 0.05 for a, b in taken):
                beside -= 0.035
            taken.append((beside, y))
            label = f"{number} {d.name}: memory {d.memory:.0%}, instructions {d.instructions:.0%}: {d.road}"
            colour = ROAD_COLOURS[d.road]
            ax.plot(x, y, "o", ms=8, color=colour, mec="black", mew=0.8, clip_on=False, label=label)
            ax.annotate(
                str(number), (beside, y), (0, 6), textcoords="offset points", ha="center", fontsize=8, weight="bold"
            )
        measured = {d.measured for d in decisions}
        how = {frozenset({True}): "times measured", frozenset({False}): "times reckoned from counters, not measured"}
        ax.set(xlim=(0, 1.04), ylim=(0, 1.04), xlabel="memory, of the launch's time", ylabel="instructions")
        ax.xaxis.set_major_formatter(PercentFormatter(1))
        _percent(ax)
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, -0.15), handlelength=1, labelspacing=0.9)
        origin = how.get(frozenset(measured), "times as labelled")
        finish(figure, ax, title or f"what explains a launch's time, {decisions[0].card.name}; {origin}")
    return figure


def draw_trace(found: Sequence[Span], title: str) -> Figure:
    """Draw a timeline: the host's calls into CUDA, copies up, kernels, copies down, and where the GPU did nothing.

    What is too short to be seen is drawn two pixels wide.
    """
    rows = [kind for kind in TRACE_COLOURS if any(span.kind == kind for span in found)]
    with chart(figsize=(8.2, 0.9 + 0.42 * len(rows))) as (figure, ax):
        for start, end in traces.gaps(found):
            ax.axvspan(start, end, color=PALE, alpha=0.6, lw=0)
        least = NARROWEST * max((span.end for span in found), default=0.0)
        for place, kind in enumerate(rows):
            spans = [(span.start, max(span.seconds, least)) for span in found if span.kind == kind]
            ax.broken_barh(spans, (place - 0.36, 0.72), color=TRACE_COLOURS[kind], lw=0)
        ax.set_yticks(range(len(rows)), [f"host: {k}s" if k == traces.CALL else k for k in rows])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        duration_axis(ax.xaxis)
        ax.set_xlabel("grey: nothing on the GPU")
        finish(figure, ax, title)
        ax.grid(False, axis="y")
    return figure


def _percent(ax: Axes) -> None:
    ax.yaxis.set_major_formatter(PercentFormatter(1))
