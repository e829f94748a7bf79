"""The picture of decoupled look-back: how a block of a one-pass scan learns the sum of all before it."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from warplab.draw.style import BLUE, GREY, LAUNCH_DPI, LAUNCH_FONT, ORANGE, closed

NOTHING, SUM, PREFIX, MINE = "#F1F3F5", "#9CCBE8", "#93D5BF", "#F5CF87"
STATES = {"-": ("nothing yet", NOTHING), "A": ("its own sum", SUM), "P": ("prefix", PREFIX)}
MOST = 12


def draw_look_back(sums: Sequence[float] = (3, 1, 4, 1, 5, 9), published: str = "PPAAAA", block: int = 5) -> Figure:
    """Draw how `block` looks back over the blocks before it, from the nearest on, until it meets a prefix.

    `sums`: each block's own sum. `published`: one letter per block: "-" nothing yet, "A" its own sum (aggregate), "P"
    its prefix, the sum of all blocks up to and including it. Sums are added and the walk goes on; a prefix is added and
    ends it; at a block that has published nothing it waits there. The first block's sum is its prefix.
    Raises ValueError for other letters, unequal lengths, more than 12 blocks and a block that is not there.
    """
    numbers = list(sums)
    if not 1 <= len(numbers) <= MOST or len(published) != len(numbers) or set(published) - set(STATES):
        raise ValueError(
            f"{len(numbers)} sums, published={published!r}; give 1 to {MOST} sums and one of '-', 'A', 'P' for each"
        )
    if published[0] == "A":
        raise ValueError("block 0 publishes its sum as a prefix, as none is before it; its letter is 'P' or '-'")
    if isinstance(block, bool) or not isinstance(block, int) or not 0 <= block < len(numbers):
        raise ValueError(f"block is {block!r}; there are blocks 0 to {len(numbers) - 1}")
    visited = _walk(published, block)
    with plt.rc_context(LAUNCH_FONT):
        figure = plt.figure(figsize=(9, 2.7), dpi=LAUNCH_DPI)
        ax = figure.add_axes((0.005, 0.01, 0.99, 0.98))
        for k, (number, letter) in enumerate(zip(numbers, published, strict=True)):
            text, colour = STATES[letter]
            shown = {"-": "", "A": f"{number:g}", "P": f"{sum(numbers[: k + 1]):g}"}[letter]
            edge: dict[str, Any] = {"ec": "black", "lw": 1.6} if k == block else {"ec": "white", "lw": 1}
            ax.add_patch(Rectangle((k, 0), 0.94, 1, fc=MINE if k == block else colour, gid=f"block {k}", **edge))
            ax.text(k + 0.47, -0.2, f"block {k}", ha="center", va="center", fontsize=8, color=GREY)
            ax.text(k + 0.47, 0.35, "looks back" if k == block else text, ha="center", va="center", fontsize=7.5)
            value = f"sum {number:g}" if k == block else shown
            ax.text(k + 0.47, 0.72, value, ha="center", va="center", weight="bold")
        for k in visited:
            waits = published[k] == "-"
            style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}
            # The curve's depth is half of rad times its length; the longest must stay in the picture.
            bend = min(0.25, 160 / ((block - k) * 900 / max(len(numbers), 6)))
            curve = f"arc3,rad={-bend}"
            arrow = FancyArrowPatch((block + 0.4, 1.02), (k + 0.5, 1.02), connectionstyle=curve, gid=f"to {k}", **style)
            arrow.set(color=ORANGE if waits else BLUE, linestyle="--" if waits else "-")
            ax.add_patch(arrow)
        ax.text(0, -0.62, _result(numbers, published, block, visited), weight="bold", va="center")
        ax.set(xlim=(-0.05, max(len(numbers), 6)), ylim=(2.0, -0.85))
        ax.axis("off")
    return closed(figure)


def _walk(published: str, block: int) -> list[int]:
    """Return the blocks that are looked at, nearest first; the last one ends the walk or makes it wait."""
    visited = []
    for k in reversed(range(block)):
        visited.append(k)
        if published[k] != "A":
            break
    return visited


def _result(numbers: list[float], published: str, block: int, visited: list[int]) -> str:
    if not visited:
        return "block 0 has nothing to look back at: its prefix is its sum"
    added = [f"{numbers[k]:g}" for k in visited if published[k] == "A"]
    last = visited[-1]
    if published[last] == "-":
        so_far = f" with {' + '.join(added)} so far" if added else ""
        return f"block {block} waits{so_far}: block {last} has published nothing yet"
    before = sum(numbers[:block])
    terms = " + ".join([*added, f"{sum(numbers[: last + 1]):g} (prefix of block {last})"])
    return f"before block {block}: {terms} = {before:g}; it publishes the prefix {before + numbers[block]:g}"
