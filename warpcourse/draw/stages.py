"""The picture of a pipeline: a ring of buffers that loads fill while the arithmetic uses them."""

from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.text.tables import percent

LOADING, USED = "#F5CF87", "#9CCBE8"
MOST_TILES, MOST_STAGES = 16, 8


class Turn(NamedTuple):
    """One tile's way through its stage: when its load is issued, arrives, and when its use begins and ends."""

    issued: float
    arrived: float
    begins: float
    ends: float


def schedule(tiles: int, stages: int, latency: float, use: float) -> list[Turn]:
    """Return each tile's times: a load starts when its stage is free, a use after the tile before it is done."""
    turns: list[Turn] = []
    for tile in range(tiles):
        issued = turns[tile - stages].ends if tile >= stages else 0.0
        arrived = issued + latency
        begins = max(arrived, turns[-1].ends if turns else 0.0)
        turns.append(Turn(issued, arrived, begins, begins + use))
    return turns


def draw_stages(tiles: int = 6, stages: int = 2, latency: float = 3, use: float = 1) -> Figure:
    """Draw when each of `stages` buffers is filled and used, for `tiles` tiles that one consumer uses in turn.

    One stage: load, use, load, use. Two: double buffering. More: a pipeline, in which several loads are under way at
    once. `latency`: time from asking for a tile to its arrival; `use`: time that the arithmetic takes for one. A
    load is issued as soon as its stage is free, by a producer or by the threads that compute. Latency is hidden when
    stages - 1 uses take as long as one load. A model: times are chosen, not measured, and bandwidth sets no limit.
    Raises ValueError for more than 16 tiles or 8 stages and for times that are not positive.
    """
    for name, value, most in (("tiles", tiles, MOST_TILES), ("stages", stages, MOST_STAGES)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ValueError(f"{name} is {value!r}; draw_stages() takes 1 to {most}")
    for name, time in (("latency", latency), ("use", use)):
        if isinstance(time, bool) or not isinstance(time, int | float) or not time > 0:
            raise ValueError(f"{name} is {time!r}; give a positive time, in any unit")
    turns = schedule(tiles, stages, float(latency), float(use))
    end = turns[-1].ends
    with plt.rc_context(LAUNCH_FONT):
        figure, ax = plt.subplots(figsize=(9, 1.2 + 0.34 * stages), dpi=LAUNCH_DPI)
        for tile, turn in enumerate(turns):
            y = tile % stages + 0.08
            for kind, start, stop, colour in (
                ("load", turn.issued, turn.arrived, LOADING),
                ("use", turn.begins, turn.ends, USED),
            ):
                ax.add_patch(Rectangle((start, y), stop - start, 0.84, fc=colour, ec="white", gid=f"{kind} {tile}"))
                if (stop - start) / end > 0.02:
                    ax.text((start + stop) / 2, y + 0.42, str(tile), ha="center", va="center", fontsize=8)
        ax.set(xlim=(0, end), ylim=(stages, 0), xlabel="time")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_yticks([k + 0.5 for k in range(stages)], [f"stage {k}" for k in range(stages)])
        ax.tick_params(length=2)
        ax.spines[["top", "right"]].set_visible(False)
        busy = percent(tiles * float(use) / end)
        many = f"{stages} stage{'s' * (stages > 1)}"
        ax.set_title(f"{many}: {tiles} tiles in {end:g}, arithmetic busy {busy}", loc="left", weight="bold")
        handles = [Patch(color=LOADING, label="load under way, of tile"), Patch(color=USED, label="used, of tile")]
        handles.append(Patch(fc="white", ec=GREY, lw=0.5, label="waits for its turn, or all tiles are loaded"))
        figure.legend(handles=handles, loc="lower left", ncols=3, frameon=False, handlelength=1.1, borderpad=0.1)
        figure.tight_layout(rect=(0, 0.08, 1, 1))
    return closed(figure)
