"""The picture of several launches: the estimated time of each beside the one that was measured or recorded."""

import textwrap
from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from warplab.draw.style import BLUE, GREY, LAUNCH_DPI, LAUNCH_FONT, ORANGE, PALE, closed, duration_axis, finish
from warplab.estimating.beside import KnownTime, off_by, sentences
from warplab.estimating.estimate import Estimate, label
from warplab.hardware.cards import card_of
from warplab.text.tables import duration

_WIDTH = 125  # characters of the note
_LINE, _ABOVE = 0.13, 0.95  # inches: a line of the note, title and axis


def draw_estimates(
    estimates: Mapping[object, Estimate | None], known: Mapping[object, KnownTime | None] | None = None
) -> Figure | None:
    """Draw the estimated times of launches by name, beside the times that are `known` of them under the same names.

    A hatched bar is an estimate, with what limits the launch behind it and a mark at the time without that; a plain
    bar was measured here or recorded on a GPU, as the note says, with the error of the estimate behind it. An estimate
    of None is left out; without any the result is None. Raises ValueError for estimates of several cards, whose times
    would stand on one axis.
    """
    shown = {name: found for name, found in estimates.items() if found is not None}
    if not shown:
        return None
    cards = {found.card.full_name for found in shown.values()}
    if len(cards) > 1:
        raise ValueError(f"the estimates are for {', '.join(sorted(cards))}; draw those of one card in one picture")
    times = {name: (known or {}).get(name) for name in shown}
    longest = max([*(f.seconds for f in shown.values()), *(t.seconds for t in times.values() if t)])
    with plt.rc_context(LAUNCH_FONT):
        figure, ax = plt.subplots(figsize=(7.2, 1.7 + 0.55 * len(shown)), dpi=LAUNCH_DPI)
        for row, (name, found) in enumerate(shown.items()):
            _draw_launch(ax, row, found, times[name], longest)
        ax.plot([], [], "d", color=ORANGE, ms=6, label="estimate without what limits it")
        ax.set_yticks(range(len(shown)), [str(name) for name in shown])
        ax.set_ylim(len(shown) + 0.1, -0.6)  # downwards, with a row below for the legend
        ax.set_xlim(0, longest)
        ax.set_xlabel("time of the launch")
        duration_axis(ax.xaxis)
        ax.legend(loc="lower right", borderaxespad=0.2)
        finish(figure, ax, f"Estimates for {cards.pop()}")
        room = ax.get_window_extent().width  # the axis ends where the last text does
        behind = ((text.get_position()[0], text.get_window_extent().width / room) for text in ax.texts)
        ax.set_xlim(0, max(longest, *(end / max(0.2, 0.98 - share) for end, share in behind)))
        note = _note(list(shown.values()), [time for time in times.values() if time])
        lines = note.count("\n") + 1
        height = _ABOVE + 0.5 * len(shown) + 0.35 + _LINE * lines
        figure.set_figheight(height)
        figure.text(0.01, 0.05 / height, note, fontsize=7, color=GREY, va="bottom")
        figure.subplots_adjust(bottom=(0.55 + _LINE * lines) / height, top=1 - 0.28 / height)
    return closed(figure)


def _draw_launch(ax, row: int, found: Estimate, time: KnownTime | None, longest: float) -> None:
    """Draw one launch: the estimate above, the known time below."""
    gap = 0.01 * longest
    ax.barh(row - 0.19, found.seconds, 0.34, facecolor="white", edgecolor=BLUE, hatch="////", lw=1)
    without = found.lifted.get(found.limit)
    end = found.seconds
    if without is not None:
        ax.plot(without, row - 0.19, "d", color=ORANGE, ms=6, mec="white", mew=0.6)
    text = f"estimate {duration(found.seconds)}: {found.limit}"
    ax.text(end + gap, row - 0.19, text, va="center", fontsize=8)
    if time is None:
        ax.text(gap, row + 0.19, "no recording of this launch", va="center", fontsize=8, color=GREY)
        return
    ax.barh(row + 0.19, time.seconds, 0.34, color=PALE, edgecolor=GREY, lw=1)
    text = f"{time.verb} {duration(time.seconds)}, estimate {100 * off_by(found, time):+.0f} %"
    ax.text(time.seconds + gap, row + 0.19, text, va="center", fontsize=8)


def _note(estimates: list[Estimate], known: list[KnownTime]) -> str:
    """Say what the estimates are worth and where the other times are from."""
    device = estimates[0].card
    parts = [text for found in estimates for text in found.warnings]
    parts.append(label(device, *(found.limit for found in estimates)))
    parts += sentences(known)
    if any(card_of(time.device) is not device for time in known):
        parts.append(f"The estimates are for another card, the {device.name}.")
    return textwrap.fill(" ".join(dict.fromkeys(parts)), _WIDTH)
