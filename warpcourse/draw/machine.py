"""The picture of the machine: host, bus, and the parts of a GPU, with the part at hand lit."""

from textwrap import wrap
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from warplab.draw.style import AMBER, GREY, LAUNCH_DPI, LAUNCH_FONT, closed
from warplab.hardware.cards import Card
from warplab.hardware.cards import card as find_card
from warplab.simulator.constants import WARP_SIZE
from warplab.text.tables import quantity

LIT, PLAIN, GROUND = AMBER, "#F1F3F5", "white"
EDGE = "#8A8A8A"
INCHES, WIDTH, HEIGHT = 9.0, 100.0, 44.0  # of the picture, and its units across and down without the sentences
LINE, CHARACTERS = 2.6, 118  # of the sentences below


class Part(NamedTuple):
    """A part of the machine: what it is in one sentence, and other names under which it can be asked for."""

    sentence: str
    aliases: tuple[str, ...] = ()


PARTS = {
    "host": Part("the CPU and its memory; the program runs here and queues work for the GPU", ("cpu", "host memory")),
    "bus": Part("PCIe or NVLink between host and GPU; every copy between their memories crosses it", ("pcie",)),
    "device memory": Part(
        "the GPU's DRAM: global memory, where arrays live; large, and the slowest on the card",
        ("global memory", "dram"),
    ),
    "L2": Part("cache of device memory that all SMs share; serves sectors of 32 bytes", ("l2 cache",)),
    "SM": Part(
        "streaming multiprocessor: runs whole blocks, whose warps share all that is drawn in it", ("sms", "block")
    ),
    "scheduler": Part(
        "picks a warp that is ready, each clock, and issues its next instruction; another warp hides one that waits",
        ("schedulers", "warp scheduler", "warp schedulers"),
    ),
    "warp": Part("32 threads that are issued one instruction together", ("warps",)),
    "lane": Part("the place of one thread in its warp; a mask says which lanes take part", ("lanes", "thread")),
    "registers": Part(
        "a thread's own values; the fastest memory, shared out among all resident threads", ("register",)
    ),
    "tensor cores": Part("multiply small matrices for a whole warp, or for four warps together", ("tensor core",)),
    "L1": Part(
        "cache of one SM, which global loads pass; since Volta it and shared memory are one memory, divided by need",
        ("l1 cache",),
    ),
    "shared memory": Part(
        "memory that the threads of one block share and fill themselves, in 32 banks of 4 bytes", ("shared",)
    ),
}
_NAMES = {alias: name for name, part in PARTS.items() for alias in (name.lower(), *part.aliases)}


def draw_machine(*lit: str, card: str | Card = "H100") -> Figure:
    """Draw the machine, from the host to the lanes of a warp, with the parts `lit` in colour and explained below.

    `lit`: any of "host", "bus", "device memory", "L2", "SM", "scheduler", "warp", "lane", "registers",
    "tensor cores", "L1" and "shared memory", or their usual other names ("global memory", "lanes", ...).
    `card`: whose numbers to show, by name or a `Card`; its SMs are drawn as a few of many.
    The numbers are those of `warplab.hardware.cards`, each published by NVIDIA.
    Raises ValueError for a part or a card that is not known, and for a part that the card lacks.
    """
    chosen = [_name(part) for part in lit]
    about = find_card(card)
    if "tensor cores" in chosen and about.tensor_tflops is None:
        raise ValueError(f"the {about.name} has no tensor cores; light another part or choose a later card")
    sentences = [line for name in dict.fromkeys(chosen) for line in wrap(f"{name}: {PARTS[name].sentence}", CHARACTERS)]
    down = HEIGHT + LINE * len(sentences) + (1.0 if sentences else 0.0)
    with plt.rc_context(LAUNCH_FONT):
        figure = plt.figure(figsize=(INCHES, INCHES * down / WIDTH), dpi=LAUNCH_DPI)
        ax = figure.add_axes((0.005, 0.005, 0.99, 0.99))
        ax.set(xlim=(0, WIDTH), ylim=(down, 0))
        ax.axis("off")
        _draw(ax, _Painter(ax, set(chosen)), about)
        for k, line in enumerate(sentences):
            ax.text(0.5, HEIGHT + LINE * (k + 0.8), line, va="center", ha="left", fontsize=9)
    return closed(figure)


def _name(part: str) -> str:
    found = _NAMES.get(part.lower()) if isinstance(part, str) else None
    if found is None:
        raise ValueError(f"the machine has no part {part!r}; choose from {', '.join(PARTS)}")
    return found


class _Painter:
    """Draws parts as boxes, lit or plain. A box's gid is the name of its part."""

    def __init__(self, ax: Axes, lit: set[str]) -> None:
        self.ax, self.lit = ax, lit

    def fill(self, part: str) -> str:
        return LIT if part in self.lit else PLAIN

    def box(
        self, part: str, x: float, y: float, width: float, height: float, text: str = "", top: bool = False
    ) -> Rectangle:
        """Draw a box with its text in the middle, or at its `top`."""
        lit = part in self.lit
        style: dict[str, Any] = {"fc": self.fill(part), "ec": "black" if lit else EDGE, "lw": 1.4 if lit else 0.8}
        patch = Rectangle((x, y), width, height, gid=part, **style)
        self.ax.add_patch(patch)
        place = (x + width / 2, y + 1.0 if top else y + height / 2)
        weight = "bold" if lit else "normal"
        self.ax.text(*place, text, ha="center", va="top" if top else "center", weight=weight, linespacing=1.3)
        return patch


def _draw(ax: Axes, painter: _Painter, card: Card) -> None:
    ax.text(0.5, 1.7, f"The machine, with the numbers of {card.full_name}", weight="bold", va="center")
    painter.box("host", 0.5, 9, 13, 27, "host", top=True)
    for y, text in ((14, "CPU"), (24, "host\nmemory")):
        ax.add_patch(Rectangle((2.3, y), 9.4, 8.5, fc=GROUND, ec=EDGE, lw=0.6))
        ax.text(7, y + 4.25, text, ha="center", va="center")

    lit = "bus" in painter.lit
    head, end, half, neck = 3.0, 4.1, 2.4, 1.2  # of a double-headed arrow, from its middle
    side = [(end, 0), (end - head, half), (end - head, neck)]
    points = [
        *side,
        *((-x, y) for x, y in side[::-1]),
        *((-x, -y) for x, y in side[1:]),
        *((x, -y) for x, y in side[:0:-1]),
    ]
    corners = [(17.75 + x, 22.5 + y) for x, y in points]
    style: dict[str, Any] = {"ec": "black" if lit else EDGE, "lw": 1.4 if lit else 0.8}
    ax.add_patch(Polygon(corners, fc=painter.fill("bus"), gid="bus", **style))
    ax.text(17.75, 17.6, "bus", ha="center", va="center", weight="bold" if lit else "normal")

    ax.add_patch(Rectangle((22, 4), 77.5, 39.2, fc=GROUND, ec=EDGE, lw=1, zorder=0))
    ax.text(23.2, 6.2, "GPU (device)", va="center", color=GREY)
    rate = quantity(card.bandwidth_gbs * 1e9, "B/s")
    painter.box("device memory", 23.4, 9, 11.5, 27, f"device\nmemory\n\n{rate}")
    painter.box("L2", 36.2, 9, 8.3, 27, f"L2 cache\n\n{card.l2_bytes / 2**20:g} MiB")
    _several_sms(ax, painter, card)
    _one_sm(ax, painter, card)


def _several_sms(ax: Axes, painter: _Painter, card: Card) -> None:
    """Draw the SMs as a column of small boxes beside the L2, one of them opened to the right."""
    side, left = 4.3, 46.4
    for row in range(5):
        for column in range(2):
            x, y = left + 5.3 * column, 9 + 5.675 * row
            if (row, column) == (3, 0) or (row, column) == (3, 1):
                ax.text(x + side / 2, y + side / 2, "⋮", ha="center", va="center", fontsize=12)
            else:
                painter.box("SM", x, y, side, side, "SM")
    ax.text(left + 4.8, 38.3, f"{card.sms} SMs", ha="center", va="center")
    corner = left + 5.3 + side
    ax.add_patch(
        Polygon([(corner, 9), (59.6, 5.2), (59.6, 42), (corner, 9 + side)], fc="#E9ECEF", ec="none", zorder=0.5)
    )


def _one_sm(ax: Axes, painter: _Painter, card: Card) -> None:
    """Draw one SM opened: its schedulers, warps of lanes, registers, tensor cores, L1 and shared memory."""
    left, width = 61.2, 36.6
    outline = painter.box("SM", 59.6, 5.2, 39, 36.8, "one SM (streaming multiprocessor)", top=True)
    outline.set(fc=GROUND, lw=2.2 if "SM" in painter.lit else 1, ec=LIT if "SM" in painter.lit else EDGE)
    each = width / card.warp_schedulers
    for k in range(card.warp_schedulers):
        painter.box("scheduler", left + k * each + 0.2, 9.2, each - 0.4, 3.9, "scheduler")
    lanes, cell = left + 6.4, (width - 6.4) / WARP_SIZE
    for row in range(3):
        y = 15.1 + 3 * row
        ax.text(left + 0.2, y + 1.1, f"warp {row}", va="center", weight="bold" if "warp" in painter.lit else "normal")
        for lane in range(WARP_SIZE):
            part = "lane" if "lane" in painter.lit and (row, lane) == (0, 5) else "warp"
            lit = part == "lane" or ("warp" in painter.lit and row == 0)
            style: dict[str, Any] = {"fc": LIT if lit else PLAIN, "ec": "black" if part == "lane" else EDGE}
            ax.add_patch(Rectangle((lanes + lane * cell, y), cell, 2.2, gid=part, lw=0.5, **style))
    resident = card.max_threads // WARP_SIZE
    ax.text(left + 0.2, 24.7, f"⋮  at most {resident} resident warps of {WARP_SIZE} lanes", va="center")
    tensor = card.tensor_tflops is not None
    share = 0.62 if tensor else 1
    painter.box("registers", left, 27, width * share - 0.5 * tensor, 4.6, "registers")
    if tensor:
        painter.box("tensor cores", left + width * share, 27, width * (1 - share), 4.6, "tensor cores")
    painter.box("L1", left, 33.3, width * 0.38, 6.9, "L1 cache")
    shared = f"shared memory\nup to {card.shared_bytes // 1024} KiB"
    painter.box("shared memory", left + width * 0.38, 33.3, width * 0.62, 6.9, shared)
