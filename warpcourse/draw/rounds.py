"""The picture of tiles in rounds over the SMs: wave quantisation, and what split-k does about it."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from warplab.draw.style import BLUE, GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.text.tables import count, percent

BUSY, IDLE = "#9CCBE8", "#F1F3F5"
FEW = 16  # SMs that are drawn one by one
MOST_ROUNDS = 40


def draw_rounds(tiles: int, sms: int, split_k: int = 1) -> Figure:
    """Draw when which SM works on which tile, one tile per SM at a time, all tiles taking equally long.

    The last round (the trade says wave) is seldom full: wave quantisation. With `split_k` a second panel shows every
    tile cut into so many parts along k, each taking that part of the time, on the same axis; that their sums must be
    added up is not drawn. A model: the numbers are computed, not measured.
    Raises ValueError for numbers below 1 and for more than 40 rounds.
    """
    for name, value in (("tiles", tiles), ("sms", sms), ("split_k", split_k)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; draw_rounds() takes a positive integer")
    panels = [1] if split_k == 1 else [1, split_k]
    most = max(-(-tiles * parts // sms) for parts in panels)
    if most > MOST_ROUNDS:
        raise ValueError(f"{most} rounds; draw_rounds() draws up to {MOST_ROUNDS}: take fewer tiles or more SMs")
    longest = max(-(-tiles * parts // sms) / parts for parts in panels)
    with plt.rc_context(LAUNCH_FONT):
        height = 0.15 * sms if sms <= FEW else 2.0
        figure, axes = plt.subplots(
            len(panels), 1, figsize=(8, (max(1.0, height) + 0.75) * len(panels) + 0.1), dpi=LAUNCH_DPI, squeeze=False
        )
        for ax, parts in zip(axes[:, 0], panels, strict=True):
            _panel(ax, tiles, sms, parts)
            ax.set_xlim(0, longest)
            if longest >= 2:
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[-1, 0].set_xlabel("time, in tiles of the whole k")
        figure.tight_layout()
    return closed(figure)


def _panel(ax: Axes, tiles: int, sms: int, parts: int) -> None:
    work = tiles * parts
    rounds = -(-work // sms)
    for k in range(rounds):
        busy = min(sms, work - k * sms)
        left, width = k / parts, 1 / parts
        ax.add_patch(Rectangle((left, 0), width, busy, fc=BUSY, lw=0, gid="busy"))
        if busy < sms:
            ax.add_patch(Rectangle((left, busy), width, sms - busy, fc=IDLE, lw=0, gid="idle"))
        if sms <= FEW:
            ax.hlines(range(1, sms), left, left + width, color="white", lw=0.8)
            if rounds <= 12:
                for sm in range(busy):
                    ax.text(left + width / 2, sm + 0.5, str((k * sms + sm) // parts), ha="center", va="center", size=7)
        ax.axvline(left + width, color=BLUE, lw=0.8)
    what = f"{count(tiles)} tile{'s' * (tiles > 1)}" + (f", each in {parts} parts along k" if parts > 1 else "")
    used = percent(work / (rounds * sms))
    time = f"{rounds / parts:.3g}"
    head = f"{what}, on {count(sms)} SMs: {rounds} round{'s' * (rounds > 1)}, time {time}, {used} of the SMs' time used"
    ax.set_title(head, loc="left", weight="bold")
    ax.set_ylabel("SM", color=GREY)
    ax.set(ylim=(sms, 0), yticks=[0.5, sms - 0.5] if sms > 1 else [0.5])
    ax.set_yticklabels(["0", str(sms - 1)] if sms > 1 else ["0"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=2)
