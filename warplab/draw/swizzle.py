"""The picture of a tile that arrives swizzled in shared memory, as Hopper's TMA lays it out."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.draw.style import LAUNCH_DPI, LAUNCH_FONT, closed

MODES = (0, 32, 64, 128)  # bytes of an inner row; 0: not swizzled
CHUNK, LINE, BANK_BYTES = 16, 128, 4
COLOURS = ("#9CCBE8", "#F5CF87", "#93D5BF", "#E5B3CD", "#C9D8F0", "#F3DDB3", "#CDE8DC", "#F0D9E6")
ROWS = 8


def swizzled(offset: int, mode: int) -> int:
    """Return where a byte of the tile lies: bits 4 and up XORed with bits 7 and up, one, two or three of them.

    As CUTLASS writes them, Swizzle<1, 4, 3>, <2, 4, 3> and <3, 4, 3>; CUDA driver API, `CUtensorMapSwizzle`.
    `mode`: 0, 32, 64 or 128.
    """
    mask = max(mode // CHUNK - 1, 0)
    return offset ^ ((offset >> 7 & mask) << 4)


def draw_swizzle(mode: int = 128, chunk: int = 0) -> Figure:
    """Draw where the 16-byte chunks of eight rows lie in shared memory, plain and swizzled as TMA does it.

    `mode`: the swizzle, 32, 64 or 128 bytes, which is also the length of a row of the tile. A cell is a chunk, named
    by its row and its place in the row; a line of the picture is 128 bytes, all 32 banks. Framed is chunk number
    `chunk` of every row, which eight lanes of a `ldmatrix` read together: chunks one below the other share their banks,
    so they take as many wavefronts as there are in the fullest place.
    Raises ValueError for another mode and for a chunk that a row does not have.
    """
    if mode not in MODES[1:]:
        raise ValueError(f"mode is {mode!r}; TMA swizzles rows of 32, 64 or 128 bytes")
    if isinstance(chunk, bool) or not isinstance(chunk, int) or not 0 <= chunk < mode // CHUNK:
        raise ValueError(f"chunk is {chunk!r}; a row of {mode} bytes has chunks 0 to {mode // CHUNK - 1}")
    lines = ROWS * mode // LINE
    with plt.rc_context(LAUNCH_FONT):
        figure, axes = plt.subplots(1, 2, figsize=(9, 1.15 + 0.36 * lines), dpi=LAUNCH_DPI)
        for ax, kind in zip(axes, (0, mode), strict=True):
            _panel(ax, mode, kind, chunk, lines)
        figure.tight_layout()
    return closed(figure)


def _panel(ax: Axes, row_bytes: int, kind: int, chosen: int, lines: int) -> None:
    places: list[int] = []
    for row in range(ROWS):
        for chunk in range(row_bytes // CHUNK):
            offset = swizzled(row * row_bytes + chunk * CHUNK, kind)
            x, y = offset % LINE // CHUNK, offset // LINE
            framed = chunk == chosen
            style: dict[str, Any] = {
                "ec": "black" if framed else "white",
                "lw": 1.6 if framed else 1,
                "zorder": 2 if framed else 1,
            }
            ax.add_patch(Rectangle((x, y), 1, 1, fc=COLOURS[chunk], gid=f"{row},{chunk}", **style))
            weight = "bold" if framed else "normal"
            ax.text(x + 0.5, y + 0.5, f"{row},{chunk}", ha="center", va="center", fontsize=8, weight=weight, zorder=3)
            places += [x] * framed
    most = max(places.count(x) for x in places)
    name = f"{kind}-byte swizzle" if kind else "plain"
    ax.set_title(f"{name}: chunk {chosen} of 8 rows, {most} wavefront{'s' * (most > 1)}", loc="left", weight="bold")
    banks = CHUNK // BANK_BYTES
    ax.set_xticks([k + 0.5 for k in range(8)], [f"{banks * k}-{banks * k + 3}" for k in range(8)])
    ax.set_yticks([k + 0.5 for k in range(lines)], [str(LINE * k) for k in range(lines)])
    ax.set(xlim=(0, 8), ylim=(lines, 0), xlabel="banks", ylabel="" if kind else "byte")
    ax.tick_params(length=0)
