"""The picture of a warp's access to shared memory: lanes down, banks across, a colour for each wavefront."""

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
    """One load or store of one warp: its active lanes and the number of the first shared-memory word that each needs.

    `width`: words per lane. Two words are served by half-warp, four by quarter-warp; loads take two of these parts
    together where lanes read in pairs, as the simulator's counts do (`Group.bank_passes`).
    """

    op: str
    line: int
    lanes: np.ndarray
    words: np.ndarray
    width: int = 1

    @property
    def every(self) -> np.ndarray:
        """Return numbers of all words that the lanes need, shape (lanes, width)."""
        return self.words[:, None] + np.arange(self.width)

    @property
    def parts(self) -> np.ndarray:
        """Return, for each lane, the number of the part of the warp with which it is served."""
        size = WARP_SIZE // self.width
        if self.width > 1 and self.op == "load" and self._alike():
            size *= 2
        return self.lanes // size

    def _alike(self) -> bool:
        """Return whether throughout the warp lane i reads what lane i ^ 1 reads, or i ^ 2, or one idles."""
        table = np.full(WARP_SIZE, -1)
        table[self.lanes] = self.words
        pairs = [table[np.arange(WARP_SIZE) ^ distance] for distance in (1, 2)]
        return any(((table == other) | (table < 0) | (other < 0)).all() for other in pairs)

    @property
    def wavefronts(self) -> np.ndarray:
        """Return the number (from 0) of the wavefront that serves each word; one word of every bank.

        Shape (lanes, width).
        """
        numbers = np.zeros(self.every.shape, np.int64)
        before = 0
        for part in np.unique(self.parts):
            own = np.flatnonzero(self.parts == part)
            words = self.every[own]
            there = np.zeros(words.shape, np.int64)
            for bank in np.unique(words % BANKS):
                _, first, number = np.unique(words[words % BANKS == bank], return_index=True, return_inverse=True)
                there[words % BANKS == bank] = np.argsort(np.argsort(first))[number]
            numbers[own] = before + there
            before += int(there.max()) + 1
        return numbers


def draw_banks(profile: object, line: int | None = None, op: str | None = None, warp: int = 0) -> Figure:
    """Draw which lane of a warp needs which bank of shared memory, one panel for each line that loads or stores.

    A warp's accesses to one bank take a wavefront for each different word; the colour is the wavefront's number. A
    panel shows the warp's first access in its line. Accesses of 8 and 16 bytes per lane are served by half-warp and by
    quarter-warp, with a line between these parts. `line`: only this source line; `op`: only "load" or "store";
    `warp`: number of a traced warp in the first block. Raises ValueError where the trace holds no such access.
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
            numbers = range(most) if most <= 5 else (0, most // 2, most - 1)
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
    requests: dict[tuple[str, int], Request] = {}
    for access in found:
        lanes = np.flatnonzero((access.block == access.block.min()) & (access.thread // WARP_SIZE == warp))
        if lanes.size:
            words = access.address[lanes].astype(np.int64) // WORD_BYTES
            width = -(-access.width // WORD_BYTES)
            request = Request(access.op, access.line, access.thread[lanes] % WARP_SIZE, words, width)
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
    for lane, words, numbers in zip(request.lanes, request.every, wavefronts, strict=True):
        for word, wavefront in zip(words, numbers, strict=True):
            ax.add_patch(Rectangle((word % BANKS, lane), 1, 1, color=_colour(int(wavefront), most), lw=0))
    for before, after, lane in zip(request.parts, request.parts[1:], request.lanes[1:], strict=False):
        if before != after:
            ax.axhline(lane, color=FRAME, lw=0.8, ls="--", zorder=0.5)
    count, needed = int(wavefronts.max()) + 1, len(np.unique(request.parts))
    wide = f", {WORD_BYTES * request.width} bytes per lane" if request.width > 1 else ""
    without = f", {needed} without conflicts" if request.width > 1 else ""
    title = f"{request.op}, line {request.line}{wide}\n{count} wavefront{'s' * (count > 1)}{without}"
    ax.set_title(title, loc="left", linespacing=1.35)
    ticks = [*range(0, BANKS, 8), BANKS - 1]
    ax.set_xticks([t + 0.5 for t in ticks], map(str, ticks))
    ax.set_yticks([t + 0.5 for t in ticks], map(str, ticks))
    ax.set(xlim=(0, BANKS), ylim=(WARP_SIZE, 0), xlabel="bank", aspect="equal")
    ax.tick_params(length=0)
    ax.spines[:].set_color(FRAME)
