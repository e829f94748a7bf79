"""The picture of a warp that executes both sides of a branch, with a mask of the lanes that take part."""

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.style import AMBER, BLUE, GREEN, GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.simulator.constants import WARP_SIZE

OFF = "#EFEFEF"
MOST_ROWS = 12


def draw_mask(
    condition: Callable[[int], bool] | Sequence[bool],
    then: str | Sequence[str] = "then",
    otherwise: str | Sequence[str] = "else",
    after: str = "after the branch",
) -> Figure:
    """Draw how a warp executes `if (condition) then; else otherwise;`: one row per instruction, a mask on its lanes.

    `condition`: a function of the lane (0 to 31), or its 32 values. `then`, `otherwise`: the statements of the sides,
    one text or several; an empty `otherwise` is a branch without `else`. A side that no lane takes is skipped, as a
    branch skips it. Beside each row stands its mask, lane 0 in the lowest bit, and how many lanes are active.
    A model, one issue per statement; what a kernel really ran is drawn by `draw_timeline`.
    Raises ValueError for a condition of another length, and for more than 12 statements.
    """
    taken = _lanes(condition)
    sides = [("if", _statements(then), taken), ("else", _statements(otherwise), ~taken)]
    rows = [("", "condition", np.ones(WARP_SIZE, bool))]
    rows += [(name, text, lanes) for name, texts, lanes in sides for text in texts if lanes.any()]
    rows += [("", after, np.ones(WARP_SIZE, bool))]
    if len(rows) > MOST_ROWS + 2:
        raise ValueError(f"{len(rows) - 2} statements; draw at most {MOST_ROWS}")
    inside = [lanes for name, _, lanes in rows if name]
    busy = sum(int(lanes.sum()) for lanes in inside)
    with plt.rc_context(LAUNCH_FONT):
        figure = plt.figure(figsize=(9, 0.95 + 0.3 * len(rows)), dpi=LAUNCH_DPI)
        ax = figure.add_axes((0.005, 0.01, 0.99, 0.98))
        for y, (name, text, lanes) in enumerate(rows):
            _row(ax, y, name, text, lanes)
        for lane in (*range(0, WARP_SIZE, 4), WARP_SIZE - 1):
            ax.text(lane + 0.5, -0.25, str(lane), ha="center", va="bottom", color=GREY, fontsize=8)
        ax.text(-0.6, -0.25, "lane", ha="right", va="bottom", color=GREY)
        ax.text(WARP_SIZE + 0.8, -0.25, "mask", va="bottom", color=GREY)
        ax.text(WARP_SIZE + 7.4, -0.25, "active lanes", va="bottom", color=GREY)
        ways = len({name for name, _, _ in rows if name})
        head = "no lane takes a side" if not inside else "both sides, one after the other" if ways > 1 else "one side"
        share = f": {busy} of {WARP_SIZE * len(inside)} lanes active in the branch" if inside else ""
        ax.text(-13, -1.45, f"One warp, {head}{share}", weight="bold", va="center")
        ax.set(xlim=(-13.2, WARP_SIZE + 12.5), ylim=(len(rows) + 0.1, -2))
        ax.axis("off")
    return closed(figure)


def _lanes(condition: Callable[[int], bool] | Sequence[bool]) -> np.ndarray:
    """Return the condition's value in each lane."""
    values = [condition(lane) for lane in range(WARP_SIZE)] if callable(condition) else list(condition)
    if len(values) != WARP_SIZE:
        raise ValueError(f"condition has {len(values)} values; give one for each of the {WARP_SIZE} lanes")
    return np.array([bool(value) for value in values])


def _statements(text: str | Sequence[str]) -> list[str]:
    return [text] * bool(text) if isinstance(text, str) else list(text)


def _row(ax: Axes, y: int, name: str, text: str, lanes: np.ndarray) -> None:
    colour = {"if": BLUE, "else": AMBER}.get(name, GREEN)
    for lane, on in enumerate(lanes):
        ax.add_patch(Rectangle((lane, y + 0.08), 1, 0.84, fc=colour if on else OFF, ec="white", lw=0.8))
    mask = sum(1 << int(lane) for lane in np.flatnonzero(lanes))
    style: dict[str, Any] = {"va": "center", "parse_math": False}
    ax.text(-13, y + 0.5, name, weight="bold", **style)
    ax.text(-10.4, y + 0.5, text if len(text) <= 26 else text[:25] + "…", family="monospace", fontsize=8.5, **style)
    ax.text(WARP_SIZE + 0.8, y + 0.5, f"0x{mask:08x}", family="monospace", fontsize=8.5, **style)
    ax.text(WARP_SIZE + 9.4, y + 0.5, str(int(lanes.sum())), ha="center", **style)
