"""Pictures of lab 06 that show arithmetic, or what the notebook computed; those of measurements are in `figures`.

Every function returns a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from kernels.convolution.definition.geometry import Convolution
from warpcourse.bench.charts import chart
from warplab.draw.style import AMBER, BLUE, DPI, FONT, GREEN, GREY, ORANGE, PALE, PINK, closed, ink
from warplab.launch.profile_queries import one_launch
from warplab.simulator.constants import SECTOR_BYTES

WINDOWS = (ORANGE, BLUE, GREEN, PINK)
PADDING = "#F1F1F1"
LINE_BYTES = 128
MOST_LINES = 16  # of memory in one panel


def draw_sum(x: np.ndarray, w: np.ndarray, y: np.ndarray, at: tuple[int, int], conv: Convolution) -> Figure:
    """Draw one element of y as the sum that makes it: its window of x, the filter, and where it goes.

    `x`, `w`, `y`: one channel each, two-dimensional, small numbers. `at`: row and column of the element.
    """
    padded = np.pad(x, ((conv.padding[0],) * 2, (conv.padding[1],) * 2))
    window = {(at[0] * conv.stride[0] + r * conv.dilation[0], at[1] * conv.stride[1] + s * conv.dilation[1])
              for r in range(conv.r) for s in range(conv.s)}  # fmt: skip
    with plt.rc_context(FONT):
        parts = (("x", padded, window), ("w", w, set(np.ndindex(w.shape))), ("y", y, {at}))
        widths = [part.shape[1] for _, part, _ in parts]
        figure, axes = _panels(0.31 * sum(widths) + 1.6, 0.31 * padded.shape[0] + 0.5, widths)
        for ax, (name, values, marked) in zip(axes, parts, strict=True):
            inner = conv if name == "x" else None
            _numbers(ax, values, marked, inner)
            ax.set_title(name, loc="left", weight="bold")
        for ax, sign in ((axes[1], "·"), (axes[2], "=")):
            ax.text(-0.09, 0.5, sign, transform=ax.transAxes, ha="right", va="center", fontsize=14)
    terms = " + ".join(f"{padded[place]:g} · {factor:g}" for place, factor in zip(sorted(window), w.flat, strict=True))
    return closed(figure, f"y[{at[0]}, {at[1]}] = {terms} = {y[at]:g}")


def draw_windows(variants: Mapping[str, Convolution]) -> Figure:
    """Draw the first windows of each convolution, a panel each: padding in grey, each window's elements in a colour.

    The number in a cell is that of the output, counted by rows, whose window the element is in; where several windows
    hold it the cell is split. Drawn are output (0, 0), its right neighbour and the one below it.
    """
    with plt.rc_context(FONT):
        sizes = [conv.room[1] for conv in variants.values()]
        height = 0.24 * max(conv.room[0] for conv in variants.values()) + 1.3
        figure, axes = _panels(0.24 * sum(sizes) + 0.5 * len(sizes), height, sizes)
        for ax, (name, conv) in zip(axes, variants.items(), strict=True):
            _windows(ax, conv)
            ax.set_anchor("N")
            ax.set_title(f"{name}\n{conv.p} × {conv.q} outputs", loc="left")
        keys = [Patch(color=colour, label=text) for colour, text in zip(
            WINDOWS, ("window of output (0, 0)", "of (0, 1)", "of (1, 0)"), strict=False)]  # fmt: skip
        keys.append(Patch(fc=PADDING, ec=GREY, lw=0.4, label="padding: zeros"))
        figure.legend(handles=keys, ncols=4, frameon=False, loc="outside lower left", handlelength=1.1)
    return closed(figure)


def draw_im2col(conv: Convolution, sources: np.ndarray, element: int) -> Figure:
    """Draw the im2col matrix of one image, each cell with the number of the element of x that it holds.

    `sources`: integers of shape (C · R · S, P · Q), the element's place in the image (counted from its first), or −1
    for a zero of the padding (grey). `element`: the one to be highlighted, in x (left) and wherever the matrix has it.
    """
    rows, columns = sources.shape
    places = np.arange(conv.c * conv.h * conv.w).reshape(conv.c * conv.h, conv.w)
    repeats = int(np.count_nonzero(sources == element))
    with plt.rc_context(FONT):
        unit = 0.25
        height = unit * max(rows, conv.c * conv.h) + 0.8
        figure, axes = _panels(unit * (conv.w + columns) + 0.9, height, (conv.w, columns))
        panels = ((axes[0], places, "x"), (axes[1], sources, f"matrix: element {element} is in it {repeats} times"))
        for ax, numbers, title in panels:
            for (i, j), number in np.ndenumerate(numbers):
                chosen = number == element
                fill = ORANGE if chosen else PADDING if number < 0 else "white"
                ax.add_patch(Rectangle((j, i), 1, 1, fc=fill, ec=PALE, lw=0.5))
                style = {"color": "white", "weight": "bold"} if chosen else {"color": "black"}
                text = "" if number < 0 else str(number)
                ax.text(j + 0.5, i + 0.52, text, ha="center", va="center", fontsize=6.5, **style)
            _frame(ax, *numbers.shape)
            ax.set_anchor("N")
            ax.set_title(title, loc="left", weight="bold")
        axes[1].set(xlabel=f"{columns} columns: windows (p, q)", ylabel=f"{rows} rows: (c, r, s)")
        axes[0].set_xlabel("numbers: places")
    return closed(figure)


def draw_tile(conv: Convolution, row: int, column: int, height: int = 8, width: int = 7) -> Figure:
    """Draw a tile of the im2col matrix, and the elements of x that it stands for: the index map of implicit GEMM.

    The matrix of the first image, depth × pixels, is in no memory (dashed). The tile, `height` × `width`, begins at
    `row` and `column`. Each of its rows has a colour, in the matrix and in the channels of x, where it is a bar.
    """
    rows, columns, window = conv.depth, conv.p * conv.q, conv.r * conv.s
    cells = [(i, j) for i in range(row, min(row + height, rows)) for j in range(column, min(column + width, columns))]
    shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.92, height))
    channels = sorted({i // window for i, _ in cells})
    high, wide = conv.room
    with plt.rc_context(FONT):
        unit = 0.24
        widths = 1.6, *[1] * len(channels)
        figure, axes = _panels(unit * wide * (1.6 + len(channels)) + 0.9, unit * high + 0.75, widths)
        matrix = axes[0]
        matrix.add_patch(Rectangle((0, 0), columns, rows, fc="none", ec=GREY, ls="--", lw=1.4))
        for i in range(window, rows, window):
            matrix.axhline(i, color=PALE, lw=0.6)
        for j in range(conv.q, columns, conv.q):
            matrix.axvline(j, color=PALE, lw=0.6)
        for i, j in cells:
            matrix.add_patch(Rectangle((j, i), 1, 1, fc=shades[i - row], ec="none"))
        matrix.set(xlim=(-0.6, columns + 0.6), ylim=(rows + 0.4, -0.4), xticks=[], yticks=[])
        matrix.spines[:].set_visible(False)
        matrix.set(xlabel=f"{columns} columns: windows (p, q)", ylabel=f"{rows} rows: (c, r, s)")
        matrix.set_title("the matrix, in no memory", loc="left", weight="bold")
        for ax, c in zip(axes[1:], channels, strict=True):
            _padded_cells(ax, conv)
            for i, j in (cell for cell in cells if cell[0] // window == c):
                y, x = _position(conv, i, j)
                slot = i % conv.s / conv.s  # bars of one row of the window lie below each other
                ax.add_patch(Rectangle((x, y + slot + 0.04), 1, 1 / conv.s - 0.08, fc=shades[i - row], ec="none"))
            _frame(ax, high, wide)
            ax.set_title(f"x, channel {c}", loc="left", weight="bold")
    return closed(figure)


def draw_gather(
    profile: object, conv: Convolution, array: str = "x", block: int = 0, channels: int = 3, most: int | None = None
) -> Figure:
    """Draw which elements of x a block of a traced launch loads, in the first channels: NCHW, float32, the first image.

    `profile`: a launch in the simulator, or a profile whose first it is. The number is how many times the block's
    traced threads load the element; `most`: the number that has the darkest blue, by default the largest. ValueError
    where the trace holds no load of `array` by that block.
    """
    _, title = one_launch(profile)
    planes = times_loaded(profile, conv, array, block)[:channels]
    most = most or int(planes.max())
    with plt.rc_context(FONT):
        width = len(planes) * (0.22 * conv.w + 0.25) + 0.2
        figure, axes = _panels(width, 0.22 * conv.h + 0.8, [1] * len(planes))
        for c, ax in enumerate(axes):
            for (i, j), number in np.ndenumerate(planes[c]):
                shade = plt.get_cmap("Blues")(0.15 + 0.75 * min(1, number / most)) if number else "white"
                ax.add_patch(Rectangle((j, i), 1, 1, fc=shade, ec=PALE, lw=0.5))
                if number:
                    colour = "white" if number > 0.6 * most else "black"
                    ax.text(j + 0.5, i + 0.52, str(number), ha="center", va="center", fontsize=6, color=colour)
            _frame(ax, conv.h, conv.w)
            ax.set_title(f"{array}, channel {c}", loc="left")
        figure.suptitle(title, fontsize=9, weight="bold", x=0.01, ha="left")
    return closed(figure)


def times_loaded(profile: object, conv: Convolution, array: str = "x", block: int = 0) -> np.ndarray:
    """Return how many times a block's traced threads load each element of the first image: (channels, height, width).

    Arguments and errors as of `draw_gather`, which draws it.
    """
    launch, _ = one_launch(profile)
    loads = [a for a in launch.accesses if a.space == "global" and a.array == array and a.op == "load"]
    times = np.zeros(conv.c * conv.h * conv.w, int)
    for access in loads:
        places = (access.address[access.block == block].astype(np.int64) - access.array_start) // access.width
        np.add.at(times, places[places < times.size], 1)
    if not times.any():
        raise ValueError(f"the trace of {launch.kernel} holds no load of {array} by block {block}")
    return times.reshape(conv.c, conv.h, conv.w)


def sectors_loaded(profile: object, array: str = "x") -> int:
    """Return sectors that warp 0's first load of an array takes, as `draw_layouts` draws them."""
    return len(_first_load(profile, array)[2])


def draw_layouts(profiles: Mapping[str, object], array: str = "x") -> Figure:
    """Draw the bytes of memory that a warp's first load asks for and gets, one panel per launch.

    A row is a line of 128 bytes that the load touches (the first 16 of them), a cell an element; blue are bytes that
    lanes asked for, amber what else their sectors bring. ValueError where a trace holds no load of `array`.
    """
    drawn = {name: _first_load(profile, array) for name, profile in profiles.items()}
    with plt.rc_context(FONT):
        most = max(min(MOST_LINES, len(lines)) for lines, *_ in drawn.values())
        figure, axes = _panels(3.7 * len(drawn), 0.16 * most + 1.3, [1] * len(drawn))
        for ax, (name, (lines, asked, sectors, width)) in zip(axes, drawn.items(), strict=True):
            cells = LINE_BYTES // width
            for i, line in enumerate(lines[:MOST_LINES]):
                for sector in range(LINE_BYTES // SECTOR_BYTES):
                    brought = line * LINE_BYTES + sector * SECTOR_BYTES in sectors
                    ax.add_patch(Rectangle((sector * cells / 4, i + 0.08), cells / 4, 0.84, fc=AMBER if brought else
                                           "white", ec=PALE, lw=0.5))  # fmt: skip
                for j in range(cells):
                    if line * LINE_BYTES + j * width in asked:
                        ax.add_patch(Rectangle((j, i + 0.08), 1, 0.84, fc=BLUE, ec="white", lw=0.3))
            left_out = len(lines) - MOST_LINES
            used = len(asked) * width / (SECTOR_BYTES * len(sectors))
            ax.set_title(f"{name}: {len(sectors)} sectors, {used:.0%} used", loc="left", weight="bold")
            ax.set(xlim=(0, cells), ylim=(most, 0), yticks=[], xlabel=f"a line of 128 bytes, {width} each")
            ax.set_xticks(range(0, cells + 1, cells // 4))
            if left_out > 0:
                ax.set_ylabel(f"first {MOST_LINES} of {len(lines)} lines")
            ax.spines[["top", "right", "left"]].set_visible(False)
            ax.tick_params(length=0)
        keys = (Patch(color=BLUE, label="a lane asks for it"), Patch(color=AMBER, label="comes along in its sector"))
        figure.legend(handles=keys, ncols=2, frameon=False, loc="outside lower left", handlelength=1.1)
    return closed(figure)


def draw_winograd_tiles(outputs: int = 6) -> Figure:
    """Draw the tiles of F(2 × 2, 3 × 3): each 4 × 4 of x makes 2 × 2 of y, and neighbours overlap by two.

    `outputs`: height and width of y, even. The number in x is how many tiles read the element.
    """
    if outputs < 4 or outputs % 2:
        raise ValueError(f"outputs is {outputs}; draw_winograd_tiles() takes an even number, at least 4")
    side, chosen = outputs + 2, ((0, 0, ORANGE), (1, 1, BLUE))
    readers = np.zeros((side, side), int)
    for i, j in np.ndindex(outputs // 2, outputs // 2):
        readers[2 * i : 2 * i + 4, 2 * j : 2 * j + 4] += 1
    with plt.rc_context(FONT):
        figure, axes = _panels(5.4, 2.9, (side, outputs))
        for (i, j), number in np.ndenumerate(readers):
            shade = {1: "white", 2: "#DCEAF4", 4: "#A9CCE3"}[number]
            axes[0].add_patch(Rectangle((j, i), 1, 1, fc=shade, ec=PALE, lw=0.5))
            axes[0].text(j + 0.5, i + 0.52, str(number), ha="center", va="center", fontsize=7)
        for i, j in np.ndindex(outputs, outputs):
            axes[1].add_patch(Rectangle((j, i), 1, 1, fc="white", ec=PALE, lw=0.5))
        for i, j, colour in chosen:
            axes[0].add_patch(Rectangle((2 * j + 0.05, 2 * i + 0.05), 3.9, 3.9, fc="none", ec=colour, lw=2))
            axes[1].add_patch(Rectangle((2 * j + 0.05, 2 * i + 0.05), 1.9, 1.9, fc="none", ec=colour, lw=2))
        for ax, size, title in ((axes[0], side, "x, padded: tiles of 4 × 4"), (axes[1], outputs, "y: 2 × 2 of each")):
            _frame(ax, size, size)
            ax.set_title(title, loc="left", weight="bold")
    return closed(figure)


def draw_wavefronts(layers: int = 4, steps: int = 8) -> Figure:
    """Draw the cells of a recurrent network, layer by layer and step by step; cells of one colour need not wait.

    A cell needs the one below it and the one to its left, so all cells of a diagonal can run at once.
    """
    with chart(figsize=(0.55 * steps + 1.2, 0.5 * layers + 0.9), layout="constrained") as (figure, ax):
        shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.9, layers + steps - 1))
        for layer, step in np.ndindex(layers, steps):
            ax.add_patch(Rectangle((step + 0.12, layer + 0.14), 0.76, 0.72, fc=shades[layer + step], ec="none"))
            ax.text(step + 0.5, layer + 0.5, str(layer + step + 1), ha="center", va="center", weight="bold",
                    color=ink(shades[layer + step]))  # fmt: skip
            arrow = {"arrowstyle": "-|>", "color": GREY, "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
            if step + 1 < steps:
                ax.annotate("", (step + 1.12, layer + 0.5), (step + 0.88, layer + 0.5), arrowprops=arrow)
            if layer + 1 < layers:
                ax.annotate("", (step + 0.5, layer + 1.14), (step + 0.5, layer + 0.86), arrowprops=arrow)
        ax.set(xlim=(0, steps), ylim=(0, layers), xlabel="time step", ylabel="layer")
        ax.set_xticks(np.arange(steps) + 0.5, [str(i) for i in range(steps)])
        ax.set_yticks(np.arange(layers) + 0.5, [str(i) for i in range(layers)])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title("number: when a cell can run", loc="left", weight="bold")
    return closed(figure, f"{layers} layers of {steps} steps: {layers * steps} cells in {layers + steps - 1} diagonals")


def _panels(width: float, height: float, widths: Sequence[float]) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure of so many inches, and axes side by side, as wide as `widths` are to each other."""
    size, shares = (width, height), list(widths)
    figure, axes = plt.subplots(
        1, len(shares), figsize=size, dpi=DPI, width_ratios=shares, squeeze=False, layout="constrained"
    )
    return figure, axes[0]


def _numbers(ax: Axes, values: np.ndarray, marked: set, conv: Convolution | None) -> None:
    """Draw a grid of numbers; `marked` cells in orange, those outside the image of `conv` in grey."""
    for (i, j), value in np.ndenumerate(values):
        chosen, outside = (i, j) in marked, conv is not None and not _inside(conv, i, j)
        fill = ORANGE if chosen else PADDING if outside else "white"
        ax.add_patch(Rectangle((j, i), 1, 1, fc=fill, ec=PALE, lw=0.6))
        style = {"color": "white", "weight": "bold"} if chosen else {"color": GREY if outside else "black"}
        ax.text(j + 0.5, i + 0.53, f"{value:g}".replace("-", "−"), ha="center", va="center", fontsize=8, **style)
    _frame(ax, *values.shape)


def _windows(ax: Axes, conv: Convolution) -> None:
    _padded_cells(ax, conv)
    outputs = [(p, q) for p, q in ((0, 0), (0, 1), (1, 0)) if p < conv.p and q < conv.q]
    holders: dict[tuple[int, int], list[str]] = {}
    for colour, (p, q) in zip(WINDOWS, outputs, strict=False):
        for r, s in np.ndindex(conv.r, conv.s):
            cell = p * conv.stride[0] + r * conv.dilation[0], q * conv.stride[1] + s * conv.dilation[1]
            holders.setdefault(cell, []).append(colour)
    for (i, j), colours in holders.items():
        for place, colour in enumerate(colours):
            width = 0.86 / len(colours)
            ax.add_patch(Rectangle((j + 0.07 + place * width, i + 0.07), width, 0.86, fc=colour, ec="none"))
    _frame(ax, *conv.room)


def _padded_cells(ax: Axes, conv: Convolution) -> None:
    for i, j in np.ndindex(*conv.room):
        fill = "white" if _inside(conv, i, j) else PADDING
        ax.add_patch(Rectangle((j, i), 1, 1, fc=fill, ec=PALE, lw=0.5))
    top, left = conv.padding
    ax.add_patch(Rectangle((left, top), conv.w, conv.h, fc="none", ec=GREY, lw=1))


def _inside(conv: Convolution, i: int, j: int) -> bool:
    """Return whether a cell of the padded image is one of the image."""
    return 0 <= i - conv.padding[0] < conv.h and 0 <= j - conv.padding[1] < conv.w


def _position(conv: Convolution, row: int, column: int) -> tuple[int, int]:
    """Return row and column, in the padded image, of the element at (row, column) of the im2col matrix."""
    (r, s), (p, q) = divmod(row % (conv.r * conv.s), conv.s), divmod(column, conv.q)
    return p * conv.stride[0] + r * conv.dilation[0], q * conv.stride[1] + s * conv.dilation[1]


def _frame(ax: Axes, rows: int, columns: int) -> None:
    ax.set(xlim=(-0.05, columns + 0.05), ylim=(rows + 0.05, -0.05), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _first_load(profile: object, array: str) -> tuple[list[int], set[int], set[int], int]:
    """Return, of warp 0's first load of the array: lines, addresses asked for, sectors, bytes of an element.

    Addresses count from the array's beginning.
    """
    launch, _ = one_launch(profile)
    for access in launch.accesses:
        if access.space == "global" and access.array == array and access.op == "load":
            lanes = (access.block == 0) & (access.thread < 32)
            if lanes.any():
                first = access.address[lanes].astype(np.int64) - access.array_start
                width = min(access.width, 4)
                asked = {int(a) + b for a in first for b in range(0, access.width, width)}
                sectors = {a // SECTOR_BYTES * SECTOR_BYTES for a in asked}
                return sorted({a // LINE_BYTES for a in asked}), asked, sectors, width
    raise ValueError(f"the trace of {launch.kernel} holds no load of {array} by warp 0 of block 0")
