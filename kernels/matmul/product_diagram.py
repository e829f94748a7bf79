"""The picture of a matrix product's launch: which elements of A, B and C its first block touches."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from warplab.draw.style import BLUE, DPI, FONT, ORANGE, closed
from warplab.launch.profile_queries import one_launch
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import Access

WORD_BYTES = 4
LOADED = ("#EFEFEF", "#B9D7EA", BLUE)  # by nobody; by the block; by warp 0 at first
STORED = ("#EFEFEF", "#F6D2BC", ORANGE, "black")  # by nobody; by the block; by its warp 0; by its thread 0


def draw_product(profile: object, m: int, n: int, k: int) -> Figure:
    """Draw what the first block of C = A · B touches: A left of C, B above it, so that a row and a column meet in C.

    `profile`: a launch in the simulator, or a profile whose first it is, of a kernel whose parameters for the matrices
    are named a, b and c: float32, row-major, m × k, k × n and m × n. Of the block its traced warps are drawn
    (`Options.trace_warps`). Dark in A and B is what warp 0 asks for with its first load from either.
    Raise ValueError where the trace holds no load of a or b, or no store to c.
    """
    launch, title = one_launch(profile)
    own = [access for access in launch.accesses if access.space == "global" and (access.block == 0).any()]
    drawn = {"a": np.zeros((m, k), int), "b": np.zeros((k, n), int), "c": np.zeros((m, n), int)}
    for name, op in (("a", "load"), ("b", "load"), ("c", "store")):
        touched = [access for access in own if access.array == name and access.op == op]
        if not touched:
            raise ValueError(f"the trace of {launch.kernel} holds no {op} of an array {name}")
        _mark(drawn[name], touched, op)
    warps = max(int(access.thread[access.block == 0].max()) for access in own) // WARP_SIZE + 1
    with plt.rc_context(FONT):
        unit = 2.6 / max(m, n)  # inches an element
        figure, axes = plt.subplots(
            2,
            2,
            figsize=((k + n) * unit + 2.9, (k + m) * unit + 0.9),
            dpi=DPI,
            width_ratios=(k, n),
            height_ratios=(k, m),
            gridspec_kw={"wspace": 0.06, "hspace": 0.06, "left": 0.08, "right": 0.62, "top": 0.88, "bottom": 0.03},
        )
        axes[0, 0].axis("off")
        for ax, name in ((axes[1, 0], "a"), (axes[0, 1], "b"), (axes[1, 1], "c")):
            _show(ax, drawn[name], STORED if name == "c" else LOADED)
            style = {"xycoords": "axes fraction", "textcoords": "offset points", "weight": "bold", "fontsize": 11}
            ax.annotate(name.upper(), (1, 0), (-4, 4), ha="right", **style)
        axes[1, 0].set_title(f"k = {k}", fontsize=9, pad=4)
        axes[0, 1].set_xlabel(f"{n} columns")
        axes[0, 1].xaxis.set_label_position("top")
        axes[1, 0].set_ylabel(f"{m} rows")
        block = f"the block's first {warps} warps" if warps * WARP_SIZE < np.prod(launch.block) else "the block"
        handles = [
            Patch(color=LOADED[1], label=f"loaded by {block}"),
            Patch(color=LOADED[2], label="of these, warp 0's first loads"),
            Patch(color=STORED[1], label=f"computed by {block}"),
            Patch(color=STORED[2], label="of these, by warp 0"),
            Patch(color=STORED[3], label="of these, by thread 0"),
        ]
        figure.legend(handles=handles, frameon=False, loc="center left", bbox_to_anchor=(0.63, 0.45), handlelength=1.1)
        figure.suptitle(title, fontsize=9, weight="bold", x=0.02, ha="left")
    return closed(figure)


def _mark(levels: np.ndarray, touched: list[Access], op: str) -> None:
    """Raise the level of every touched element, as LOADED and STORED number them."""
    flat = levels.reshape(-1)
    for level, access, lanes in _lanes(touched, op):
        first = (access.address[lanes].astype(np.int64) - access.array_start) // WORD_BYTES
        elements = (first[:, None] + np.arange(access.width // WORD_BYTES)).reshape(-1)
        flat[elements] = np.maximum(flat[elements], level)


def _lanes(touched: list[Access], op: str) -> Iterator[tuple[int, Access, np.ndarray]]:
    """Yield level, access, and which of its lanes it is about."""
    first = next((a for a in touched if ((a.block == 0) & (a.thread < WARP_SIZE)).any()), None)
    for access in touched:
        own = access.block == 0
        yield 1, access, own
        if op == "store":
            yield 2, access, own & (access.thread < WARP_SIZE)
            yield 3, access, own & (access.thread == 0)
        elif access is first:
            yield 2, access, own & (access.thread < WARP_SIZE)


def _show(ax: Axes, levels: np.ndarray, colours: tuple[str, ...]) -> None:
    ax.imshow(levels, ListedColormap(colours), vmin=0, vmax=len(colours) - 1, interpolation="nearest", aspect="auto")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color("#9A9A9A")
