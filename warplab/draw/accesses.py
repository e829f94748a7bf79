"""The picture of a launch's memory accesses: threads down, addresses across, 32-byte sectors as bands."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from warplab.draw.style import BLUE, LAUNCH_DPI, LAUNCH_FONT, ORANGE, closed
from warplab.launch.profile_queries import one_launch
from warplab.simulator.constants import SECTOR_BYTES, WARP_SIZE
from warplab.simulator.count.counters import Access, LaunchProfile
from warplab.text.tables import count

USED, UNUSED = "#DCE9F5", "#F7DCA8"
OP_COLOURS = {"load": BLUE, "store": ORANGE, "atomic": "#A0407F"}
OPS = tuple(OP_COLOURS)
MOST_PANELS = 6
MOST_STEPS = 8
MOST_SECTORS = 72
GAP = 0.7 * SECTOR_BYTES
ORDINALS = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")

Warp = tuple[int, int]


@dataclass
class Request:
    """One instruction of one warp. `threads`: grid index of each active lane; `offsets`: its first byte in the array.

    `width`: bytes per lane. `step`: how many such accesses this warp made to the array before.
    """

    warp: Warp
    threads: np.ndarray
    offsets: np.ndarray
    width: int
    step: int

    def bytes(self, chosen: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return the distinct byte offsets that the lanes touch."""
        return np.unique(self.offsets[chosen, None] + np.arange(self.width))


@dataclass
class Panel:
    """All traced accesses of one kind (load, store, atomic) to one array. `start`: its first address."""

    op: str
    array: str | None
    start: int
    lines: set[int] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)

    @property
    def shift(self) -> int:
        return self.start % SECTOR_BYTES

    def sectors(self, offsets: np.ndarray) -> np.ndarray:
        """Return the distinct sectors of byte offsets; sector 0 holds the array's first byte."""
        return np.unique((offsets + self.shift) // SECTOR_BYTES)


def draw_accesses(
    profile: object,
    array: str | None = None,
    line: int | None = None,
    threads: int = 32,
    element_bytes: int | None = None,
) -> Figure:
    """Draw which thread touched which element of which array, one panel for each array and operation.

    Every mark is one thread's access, as wide as the bytes it asks for. Behind a warp's marks lie the 32-byte sectors
    that its requests fetch, blue where a lane uses the bytes, yellow where none does. Addresses that no drawn thread
    touches are cut out. Where threads access an array more than once, the colour tells the order.

    `array`, `line`: draw only this array, this source line. `threads`: draw that many traced threads, from the first.
    `element_bytes`: unit of the horizontal axis; by default the narrowest access, or 4 for vectors of 16 bytes.
    Raises ValueError where the trace holds no such access.
    """
    launch, title = one_launch(profile)
    if threads < 1:
        raise ValueError(f"threads is {threads}; draw at least one thread")
    accesses = _chosen(launch, array, line)
    panels = _panels(accesses, prod(launch.block))
    rows = _rows(accesses, prod(launch.block), threads)
    panels = [p for p in panels if any(np.isin(r.threads, list(rows)).any() for r in p.requests)]
    left_out = len(panels) - MOST_PANELS
    panels = panels[:MOST_PANELS]
    shown, most = _steps(panels, rows), max(r.step + 1 for p in panels for r in p.requests)

    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    with plt.rc_context(LAUNCH_FONT):
        size = (8.6 if across > 1 else 6.0, 3.6 if down == 1 else 5.0)
        figure, axes = plt.subplots(down, across, figsize=size, dpi=LAUNCH_DPI, squeeze=False, sharey=True)
        wasted = False
        for ax, panel in zip(axes.flat, panels, strict=False):
            wasted |= _draw(ax, panel, rows, shown, element_bytes, prod(launch.block))
        for ax in axes.flat[len(panels) :]:
            ax.axis("off")
        for ax in axes[:, 0]:
            ax.set_ylabel("thread")
        notes = [_drawn(rows, prod(launch.grid) * prod(launch.block))]
        if shown < most:
            notes.append(
                f"the first {shown} of {count(most)} accesses of each thread" if shown > 1 else "first accesses"
            )
        if any(len(lanes) < len(r.threads) for p in panels for r, lanes in _visible(p, rows, shown)):
            notes.append("sectors per request: of whole warps")
        if left_out > 0:
            notes.append(f"{left_out} more panels: choose with array=")
        figure.suptitle(", ".join([title, *notes]), fontsize=9, weight="bold", x=0.01, ha="left")
        handles = [Patch(color=USED, label="sectors: bytes used")]
        handles += [Patch(color=UNUSED, label="sectors: bytes that no access uses")] * wasted
        if shown > 1:
            labels = [f"{ORDINALS[0]} access", *ORDINALS[1:shown]]
            handles += [Patch(color=_step_colour(s, shown), label=label) for s, label in enumerate(labels)]
        style = {"frameon": False, "handlelength": 1.1, "handletextpad": 0.5, "columnspacing": 1.2}
        figure.legend(handles=handles, loc="lower center", ncols=len(handles), **style)
        figure.tight_layout(rect=(0, 0.06, 1, 1), w_pad=1.2)
    return closed(figure)


def _drawn(rows: dict[int, int], total: int) -> str:
    """Say how many of the launch's `total` threads are drawn."""
    if len(rows) == total:
        return f"{count(total)} thread{'s' * (total != 1)}"
    first = "first " * (list(rows) == list(range(len(rows))))
    return f"{first}{count(len(rows))} of {count(total)} threads"


def _chosen(launch: LaunchProfile, array: str | None, line: int | None) -> list[Access]:
    traced = [a for a in launch.accesses if a.space == "global" and len(a.address)]
    if not traced:
        raise ValueError(f"the trace of {launch.kernel} holds no access to global memory")
    found = [a for a in traced if array in (None, a.array) and line in (None, a.line)]
    if not found:
        names = ", ".join(sorted({str(a.array) for a in traced}))
        numbers = ", ".join(str(n) for n in sorted({a.line for a in traced}))
        raise ValueError(
            f"the trace of {launch.kernel} holds no access with array={array!r}, line={line!r}; "
            f"it has the arrays {names} and the lines {numbers}"
        )
    return found


def _rows(accesses: list[Access], block_size: int, threads: int) -> dict[int, int]:
    """Assign rows to the first `threads` threads of the traced warps, idle lanes included."""
    warps = {int(w) for a in accesses for w in np.unique(a.block * block_size + a.thread // WARP_SIZE * WARP_SIZE)}
    rows: dict[int, int] = {}
    for first in sorted(warps):
        last = min(first + WARP_SIZE, first - first % block_size + block_size)
        for thread in range(first, last):
            if len(rows) < threads:
                rows[thread] = len(rows)
    return rows


def _panels(accesses: list[Access], block_size: int) -> list[Panel]:
    panels: dict[tuple, Panel] = {}
    steps: Counter = Counter()
    for a in accesses:
        # Memory outside known allocations is drawn from the first address seen.
        start = a.array_start or int(a.address.min()) // SECTOR_BYTES * SECTOR_BYTES
        key = (a.op, a.array, a.array_start)
        panel = panels.setdefault(key, Panel(a.op, a.array, start))
        panel.lines.add(a.line)
        offsets = a.address.astype(np.int64) - panel.start
        for warp, lanes in _by_warp(a):
            threads = a.block[lanes] * block_size + a.thread[lanes]
            panel.requests.append(Request(warp, threads, offsets[lanes], a.width, steps[key, warp]))
            steps[key, warp] += 1
    return sorted(panels.values(), key=lambda p: (OPS.index(p.op), p.start))


def _by_warp(access: Access) -> Iterator[tuple[Warp, np.ndarray]]:
    warps = np.stack([access.block, access.thread // WARP_SIZE], axis=1)
    for block, warp in np.unique(warps, axis=0):
        yield (int(block), int(warp)), np.flatnonzero((warps == (block, warp)).all(axis=1))


def _visible(panel: Panel, rows: dict[int, int], shown: int) -> Iterator[tuple[Request, np.ndarray]]:
    """Yield the first `shown` requests of each warp in the panel, with the positions of the lanes that have a row."""
    for request in panel.requests:
        lanes = np.flatnonzero([int(t) in rows for t in request.threads])
        if request.step < shown and len(lanes):
            yield request, lanes


def _steps(panels: list[Panel], rows: dict[int, int]) -> int:
    """Return how many accesses of each thread fit on the horizontal axis of every panel."""
    most = max(r.step + 1 for p in panels for r in p.requests)
    for shown in range(min(most, MOST_STEPS), 1, -1):
        if all(len(_touched(p, rows, shown)) <= MOST_SECTORS for p in panels):
            return shown
    return 1


def _touched(panel: Panel, rows: dict[int, int], shown: int) -> np.ndarray:
    return np.unique(np.concatenate([panel.sectors(r.bytes(lanes)) for r, lanes in _visible(panel, rows, shown)]))


class Ruler:
    """Map from byte offset to horizontal position that narrows untouched sectors between touched ones to a gap."""

    def __init__(self, panel: Panel, touched: np.ndarray) -> None:
        self.shift = panel.shift
        self.touched = touched
        gaps = np.diff(touched) > 2
        # A single untouched sector is no narrower than a gap, so it stays.
        step = np.where(gaps, SECTOR_BYTES + GAP, np.diff(touched) * SECTOR_BYTES)
        self.left = np.concatenate([[0.0], np.cumsum(step)])
        self.end = self.left[-1] + SECTOR_BYTES
        self.starts = np.flatnonzero(np.concatenate([[True], gaps]))

    def __call__(self, offsets: np.ndarray) -> np.ndarray:
        place = offsets + self.shift
        index = np.searchsorted(self.touched, place // SECTOR_BYTES)
        return self.left[index] + place % SECTOR_BYTES

    def offset(self, index: int) -> int:
        """Return the first byte offset of the touched sector number `index`."""
        return int(self.touched[index]) * SECTOR_BYTES - self.shift


def _step_colour(step: int, shown: int) -> tuple:
    return plt.get_cmap("viridis")(0.05 + 0.83 * step / max(1, shown - 1))


def _draw(ax: Axes, panel: Panel, rows: dict[int, int], shown: int, unit: int | None, block_size: int) -> bool:
    """Draw one panel. Return whether some fetched bytes are not used."""
    ruler = Ruler(panel, _touched(panel, rows, shown))
    wasted = _draw_sectors(ax, panel, ruler, rows, shown)
    pixels = 560 if ax.figure.bbox.width < 7 * LAUNCH_DPI else 250
    thinnest = 3 * ruler.end / pixels
    for step in range(shown):
        marks = []
        for request, lanes in _visible(panel, rows, shown):
            if request.step == step:
                x = ruler(request.offsets[lanes])
                for left, thread in zip(x, request.threads[lanes], strict=True):
                    width = max(request.width, thinnest)
                    marks.append(Rectangle((left, rows[int(thread)] - 0.4), width, 0.8))
        colour = OP_COLOURS[panel.op] if shown == 1 else _step_colour(step, shown)
        ax.add_collection(PatchCollection(marks, facecolor=colour, lw=0, zorder=2))
    _label(ax, panel, ruler, rows, unit, block_size, [request for request, _ in _visible(panel, rows, shown)])
    return wasted


def _draw_sectors(ax: Axes, panel: Panel, ruler: Ruler, rows: dict[int, int], shown: int) -> bool:
    """Draw bands behind each warp: the sectors it fetched, and which of their bytes none of its lanes used."""
    fetched: dict[Warp, list[np.ndarray]] = {}
    height: dict[Warp, list[int]] = {}
    # A later access, drawn or not, may still use what an earlier one fetched.
    for request in panel.requests:
        fetched.setdefault(request.warp, []).append(request.bytes())
    for request, lanes in _visible(panel, rows, shown):
        height.setdefault(request.warp, []).extend(rows[int(t)] for t in request.threads[lanes])
    used: list[Rectangle] = []
    unused: list[Rectangle] = []
    for warp, seen in height.items():
        touched = np.unique(np.concatenate(fetched[warp]))
        top, bottom = min(seen) - 0.5, max(seen) + 0.5
        for index, sector in enumerate(ruler.touched):
            inside = np.zeros(SECTOR_BYTES, dtype=bool)
            first = sector * SECTOR_BYTES - ruler.shift
            inside[touched[(touched >= first) & (touched < first + SECTOR_BYTES)] - first] = True
            if not inside.any():
                continue
            edges = np.flatnonzero(np.diff(inside, prepend=~inside[:1], append=~inside[-1:]))
            for a, b in pairwise(edges):
                box = Rectangle((ruler.left[index] + a, top), int(b - a), bottom - top)
                (used if inside[a] else unused).append(box)
        ax.vlines(ruler.left, top, bottom, color="white", lw=0.9, zorder=1.5)
    ax.add_collection(PatchCollection(used, facecolor=USED, lw=0, zorder=1))
    ax.add_collection(PatchCollection(unused, facecolor=UNUSED, lw=0, zorder=1))
    return bool(unused)


def _label(
    ax: Axes, panel: Panel, ruler: Ruler, rows: dict[int, int], unit: int | None, block_size: int, drawn: list[Request]
) -> None:
    unit = unit or min((r.width for r in panel.requests if r.width < 16), default=4)
    name = panel.array if panel.array is not None else "unnamed memory"
    cut = "" if len(ruler.starts) == 1 else ", gaps left out"
    ax.set_xlabel(f"element of {name} ({unit} bytes each){cut}")
    wanted = ruler.starts if len(ruler.starts) > 1 else np.arange(0, len(ruler.touched), -(-len(ruler.touched) // 8))
    wanted = wanted[:: -(-len(wanted) // 5)]
    elements = [ruler.offset(int(i)) / unit for i in wanted]
    for start in ruler.starts[1:]:  # the axis is broken where something is cut out
        end = ruler.left[start - 1] + SECTOR_BYTES
        gap = ([end, ruler.left[start]], [0, 0])
        ax.plot(*gap, color="white", lw=3, transform=ax.get_xaxis_transform(), clip_on=False, zorder=3)
    ax.set_xticks(ruler.left[wanted], [count(int(e)) if e == int(e) else f"{e:.1f}" for e in elements])
    threads = list(rows)
    every = next((e for e in (1, 2, 4, 8, 16) if len(threads) <= 9 * e), WARP_SIZE)
    last = len(threads) - 1
    ticks = [*(t for t in range(0, len(threads), every) if last - t > every / 2), last]
    ax.set_yticks(ticks, [count(threads[t]) for t in ticks])
    for row, (before, after) in enumerate(pairwise(threads)):
        if after // block_size != before // block_size:
            ax.axhline(row + 0.5, color="black", lw=1)
        elif after % block_size % WARP_SIZE == 0:
            ax.axhline(row + 0.5, color="#6B6B6B", lw=0.8, ls="--")
    ax.set(xlim=(-0.01 * ruler.end, 1.01 * ruler.end), ylim=(len(threads) - 0.5, -0.5))
    ax.spines[["top", "right"]].set_visible(False)
    numbers = sorted(n for n in panel.lines if n)
    lines = ", ".join(map(str, numbers[:2])) + ", \N{HORIZONTAL ELLIPSIS}" * (len(numbers) > 2)
    where = f" (line {lines})" if lines else ""
    widths = " or ".join(str(w) for w in sorted({r.width for r in panel.requests}))
    head = f"{panel.op} {name}, {widths} bytes per thread{where}"
    ax.set_title(f"{head}\n{_cost(panel, drawn)}", loc="left", linespacing=1.35)


def _cost(panel: Panel, drawn: list[Request]) -> str:
    """Name the sectors per request of the drawn requests, and the share of their bytes that lanes asked for."""
    bytes_ = [r.bytes() for r in drawn]
    sectors = [len(panel.sectors(b)) for b in bytes_]
    low, high = min(sectors), max(sectors)
    number = str(low) if low == high else f"{low} to {high}"
    used = 100 * sum(len(b) for b in bytes_) / (SECTOR_BYTES * sum(sectors))
    return f"{number} sector{'s' * (high != 1)} per request, {used:.3g} % used"
