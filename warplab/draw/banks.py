"""The picture of a warp's access to shared memory: lanes down, banks across, a colour for each wavefront."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from warplab.draw.style import BLUE, DPI, LAUNCH_FONT, closed
from warplab.launch.profile_queries import one_launch
from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import LaunchProfile

BANKS, WORD_BYTES = 32, 4
GRID, FRAME = "#E4E4E4", "#9A9A9A"
MOST_PANELS = 3


@dataclass
class Request:
    """One load or store of one warp: its active lanes and the number of the shared-memory word that each needs."""

    op: str
    line: int
    lanes: np.ndarray
    words: np.ndarray

    @property
    def wavefronts(self) -> np.ndarray:
        """Number, from 0, of the wavefront that serves each lane; one wavefront serves one word of every bank."""
        numbers = np.zeros(len(self.words), np.int64)
        for bank in np.unique(self.words % BANKS):
            there = np.flatnonzero(self.words % BANKS == bank)
            _, first, number = np.unique(self.words[there], return_index=True, return_inverse=True)
            numbers[there] = np.argsort(np.argsort(first))[number]
        return numbers


def draw_banks(profile: object, line: int | None = None, op: str | None = None, warp: int = 0) -> Figure:
    """Draw which lane of a warp needs which bank of shared memory, one panel for each line that loads or stores.

    A warp's accesses to one bank take a wavefront for each different word; the colour is the wavefront's number. A
    panel shows the warp's first access in its line. `line`: only this source line; `op`: only "load" or "store";
    `warp`: number of a traced warp in the first block. Raises ValueError where the trace holds no such access, and for
    accesses of 8 and 16 bytes per lane, which the hardware serves in parts of a warp.
    """
    launch, title = one_launch(profile)
    requests = _requests(launch, line, op, warp)
    shown = requests[:MOST_PANELS]
    most = max(int(r.wavefronts.max()) + 1 for r in shown)
    with plt.rc_context(LAUNCH_FONT):
        figure, axes = plt.subplots(1, len(shown), figsize=(0.5 + 3.6 * len(shown), 4), dpi=DPI, squeeze=False)
        for ax, request in zip(axes[0], shown, strict=True):
            _draw(ax, request, most)
        axes[0, 0].set_ylabel("lane")
        left_out = len(requests) - len(shown)
        more = f", {left_out} more: choose with line=" if left_out else ""
        figure.suptitle(f"{title}, warp {warp}{more}", fontsize=9, weight="bold", x=0.01, ha="left")
        if most > 1:
            numbers = sorted({0, most // 2, most - 1})
            handles = [Patch(color=_colour(k, most), label=f"wavefront {k + 1}") for k in numbers]
            figure.legend(handles=handles, loc="lower center", ncols=len(handles), frameon=False, handlelength=1.1)
        figure.tight_layout(rect=(0, 0.08 if most > 1 else 0, 1, 1))
    return closed(figure)


def _requests(launch: LaunchProfile, line: int | None, op: str | None, warp: int) -> list[Request]:
    """Return the warp's first request of each line and operation that accesses shared memory."""
    traced = [a for a in launch.accesses if a.space == "shared" and a.op != "atomic" and len(a.address)]
    found = [a for a in traced if line in (None, a.line) and op in (None, a.op)]
    if not found:
        places = ", ".join(sorted({f"{a.op} in line {a.line}" for a in traced})) or "none"
        raise ValueError(
            f"the trace of {launch.kernel} holds no access to shared memory with line={line!r}, op={op!r}; "
            f"it has: {places}"
        )
    narrow = [a for a in found if a.width <= WORD_BYTES]
    if not narrow:
        raise ValueError(
            f"{launch.kernel} accesses {found[0].width} bytes per lane there, which are served in parts of a warp; "
            "draw_banks() draws accesses of up to 4 bytes per lane"
        )
    requests: dict[tuple[str, int], Request] = {}
    for access in narrow:
        lanes = np.flatnonzero((access.block == access.block.min()) & (access.thread // WARP_SIZE == warp))
        if lanes.size:
            words = access.address[lanes].astype(np.int64) // WORD_BYTES
            request = Request(access.op, access.line, access.thread[lanes] % WARP_SIZE, words)
            requests.setdefault((access.op, access.line), request)
    if not requests:
        raise ValueError(f"the trace of {launch.kernel} holds no access of warp {warp}")
    return list(requests.values())


def _colour(wavefront: int, most: int) -> str | tuple[float, float, float, float]:
    return BLUE if most == 1 else plt.get_cmap("viridis")(0.9 * wavefront / (most - 1))


def _draw(ax: Axes, request: Request, most: int) -> None:
    for edge in range(0, BANKS + 1, 4):
        ax.axvline(edge, color=GRID, lw=0.6, zorder=0)
        ax.axhline(edge, color=GRID, lw=0.6, zorder=0)
    wavefronts = request.wavefronts
    for lane, word, wavefront in zip(request.lanes, request.words, wavefronts, strict=True):
        ax.add_patch(Rectangle((word % BANKS, lane), 1, 1, color=_colour(int(wavefront), most), lw=0))
    count = int(wavefronts.max()) + 1
    ax.set_title(
        f"{request.op}, line {request.line}\n{count} wavefront{'s' * (count > 1)}", loc="left", linespacing=1.35
    )
    ticks = [*range(0, BANKS, 8), BANKS - 1]
    ax.set_xticks([t + 0.5 for t in ticks], map(str, ticks))
    ax.set_yticks([t + 0.5 for t in ticks], map(str, ticks))
    ax.set(xlim=(0, BANKS), ylim=(WARP_SIZE, 0), xlabel="bank", aspect="equal")
    ax.tick_params(length=0)
    ax.spines[:].set_color(FRAME)
