"""The picture of a small launch: in each element of its arrays the threads that touched it; what is wrong is red."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from warplab.compile.short_traceback import first_line
from warplab.draw.grid import BLOCK_COLOURS
from warplab.draw.style import GREY, LAUNCH_DPI, LAUNCH_FONT, ORANGE, closed
from warplab.launch.dimensions import dimensions
from warplab.launch.guard_bands import GuardedArray
from warplab.launch.kernel_source import source_of
from warplab.launch.simulate import simulate
from warplab.simulator import Device
from warplab.simulator.count.counters import Access
from warplab.simulator.errors import DataRace, SimulatorError
from warplab.text.tables import TIMES

_MOST_ELEMENTS = 128  # of an array
_MOST_INSTRUCTIONS = 5000  # of one path
_IN_A_ROW = 16
_MOST_OUTSIDE = 8  # elements on each side that are drawn
_ACROSS = 34  # elements and gaps in a row of panels
_MOST_NOTES = 4
_WIDTH = 110  # characters of a note in one line
_DONE = {"load": "loaded", "store": "stored", "atomic": "changed by atomics"}
_SHARED = "shared memory of block 0"

Thread = tuple[int, int]  # block, thread in the block
Dimensions = tuple[int, int, int]


@dataclass
class Panel:
    """What accesses of one kind (load, store, atomic) did to one array. `threads`: by element, in their order."""

    name: str
    op: str
    shape: tuple[int, ...]
    threads: dict[int, list[Thread]] = field(default_factory=dict)
    wrong: dict[int, str] = field(default_factory=dict)  # what it is, and what was expected

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def across(self) -> int:
        return self.shape[-1] if len(self.shape) > 1 else min(max(self.size + len(self.near()), 1), _IN_A_ROW)

    def outside(self) -> list[int]:
        return sorted(element for element in self.threads if not 0 <= element < self.size)

    def near(self) -> list[int]:
        return [e for e in self.outside() if -_MOST_OUTSIDE <= e < self.size + _MOST_OUTSIDE]

    def place(self, element: int) -> tuple[float, int]:
        """Return column and row; elements outside the array stand apart, those in front of it in rows above."""
        row, column = divmod(element, self.across)
        apart = 0.3 if element >= self.size else -0.3 if element < 0 else 0.0
        return column + apart, row

    def note(self, access: Access, elements: Mapping[int, int], each: int = 1) -> None:
        """Note an access: `elements` maps its lanes to what they touched, or to the first of `each` elements."""
        for lane, first in elements.items():
            thread = int(access.block[lane]), int(access.thread[lane])
            for element in range(first, first + each):
                if thread not in (seen := self.threads.setdefault(element, [])):
                    seen.append(thread)


def draw_touched(
    kernel: Any,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    arguments: Mapping[str, Any],
    expected: Mapping[str, np.ndarray] | None = None,
) -> Figure:
    """Launch a kernel in the simulator, right or wrong, and draw which thread touched which element.

    `arguments`: NumPy arrays of at most 128 elements and numbers, by the names of the parameters; they are not changed.
    `expected`: arrays after the launch; elements unlike theirs are red. An element holds the `threadIdx` of the threads
    that touched it, and has the colour of their block. Elements outside an array are drawn beside it, in red: there is
    memory around the arrays, so the launch goes on. A kernel that fails is drawn untouched, with the reason.
    Raises ValueError for larger arrays.
    """
    across, size = dimensions(grid, "grid"), dimensions(block, "block")
    given = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    if large := [name for name, value in given.items() if value.size > _MOST_ELEMENTS]:
        raise ValueError(f"{large[0]} has {given[large[0]].size} elements; draw_touched draws at most {_MOST_ELEMENTS}")
    device, threads = Device(), prod(across) * prod(size)
    device.echo = False
    guarded = {name: GuardedArray(value, threads, k, device) for k, (name, value) in enumerate(given.items())}
    launched = tuple(guarded[name].array if name in guarded else value for name, value in arguments.items())
    name, notes, ran, accesses = getattr(kernel, "__name__", "kernel"), [], True, []

    def launch(races: bool) -> list[Access]:
        trace = {"trace_warps": threads, "trace_events": 4096, "path_limit": _MOST_INSTRUCTIONS}
        return simulate(kernel, grid, block, launched, device=device, races=races, **trace).accesses

    try:
        source = source_of(kernel)
        name = source.name
        if not source.blank:
            try:
                accesses = launch(True)
            except DataRace as race:
                # The bytes are those of memory in which bands lie around the arrays.
                notes.append(re.sub(r"byte \d+ of array (`\w+`) \((.*?)\)", r"\2 of \1", race.what))
                for array, value in guarded.items():
                    value.restore(given[array])
                accesses = launch(False)
    except SimulatorError as error:
        notes.append(f"{name} was stopped: {first_line(error)}")
        ran = False
    except Exception as error:  # the compilers raise classes of their own, whose messages are long
        notes.append(f"{name} does not run: {type(error).__name__}")
        ran = False
    panels = [*_of_arrays(accesses, guarded, given, expected or {}), *_of_shared_memory(accesses)]
    for panel in panels:
        by_atomics = panel.op == "store" and (panel.name, "atomic") in {(other.name, other.op) for other in panels}
        if ran and not by_atomics and panel.op != "load" and panel.name in (expected or {}):
            panel.wrong = _unlike(guarded[panel.name].values(), np.asarray((expected or {})[panel.name]))
        notes += _notes(panel, size)
    return _draw(name, across, size, panels, notes)


def _of_arrays(
    accesses: list[Access],
    guarded: Mapping[str, GuardedArray],
    given: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
) -> Iterator[Panel]:
    for op in _DONE:
        for name, array in guarded.items():
            panel = Panel(name, op, given[name].shape)
            for access in accesses:
                if (access.space, access.op) == ("global", op):
                    places = enumerate(access.address.tolist())
                    touched = {lane: array.index(place) for lane, place in places if array.holds(place)}
                    panel.note(access, touched, max(access.width // given[name].itemsize, 1))
            if panel.threads or (op == "store" and name in expected):
                yield panel


def _of_shared_memory(accesses: list[Access]) -> Iterator[Panel]:
    shared = [access for access in accesses if access.space == "shared" and 0 in access.block]
    if not shared:
        return
    first, last = (int(f([f(access.address) for access in shared])) for f in (np.min, np.max))
    width = min(access.width for access in shared)
    for op in ("store", "load"):
        panel = Panel(_SHARED, op, (min((last - first) // width + 1, _MOST_ELEMENTS),))
        for access in shared:
            if access.op == op:
                places = enumerate(((access.address.astype(np.int64) - first) // width).tolist())
                panel.note(access, {lane: place for lane, place in places if not access.block[lane]})
        if panel.threads:
            yield panel


def _unlike(after: np.ndarray, expected: np.ndarray) -> dict[int, str]:
    same = np.isclose(after.ravel(), expected.ravel(), rtol=1e-5, equal_nan=True)
    return {int(k): f"{after.ravel()[k]:.4g} in place of {expected.ravel()[k]:.4g}" for k in np.flatnonzero(~same)}


def _notes(panel: Panel, block: Dimensions) -> list[str]:
    """Say what is wrong in a panel, by its first element."""
    found = []
    if outside := panel.outside():
        who = _thread(panel.threads[outside[0]][0], block)
        what = f"{panel.name}[{outside[0]}], {_DONE[panel.op]} by {who}, lies outside {panel.name}"
        found.append(f"{what} (and {len(outside) - 1} more)" if len(outside) > 1 else what)
    if wrong := sorted(panel.wrong):
        index = tuple(int(k) for k in np.unravel_index(wrong[0], panel.shape))
        name = f"{panel.name}[{', '.join(map(str, index))}]"
        what = f"{name} was stored by no thread"
        if threads := panel.threads.get(wrong[0]):
            what = f"{name}, stored by {_thread(threads[-1], block)}, is {panel.wrong[wrong[0]]}"
        are = "is" if len(wrong) == 2 else "are"
        found.append(f"{what} (and {len(wrong) - 1} more {are} wrong)" if len(wrong) > 1 else what)
    return found


def _thread(thread: Thread, block: Dimensions) -> str:
    return f"thread {_index(thread, block)} of block {thread[0]}"


def _index(thread: Thread, block: Dimensions) -> str:
    """Return threadIdx of a thread: one number in a block of one dimension, otherwise x,y."""
    return str(thread[1]) if block[1:] == (1, 1) else f"{thread[1] % block[0]},{thread[1] // block[0]}"


def _draw(name: str, grid: Dimensions, block: Dimensions, panels: list[Panel], notes: list[str]) -> Figure:
    shown = [*notes[:_MOST_NOTES], *[f"… {len(notes) - _MOST_NOTES} more"] * (len(notes) > _MOST_NOTES)]
    with plt.rc_context(LAUNCH_FONT):
        figure, ax = plt.subplots(dpi=LAUNCH_DPI)
        x, top, bottom = 0.0, 0.0, 0.0
        for panel in panels:
            if x and x + panel.across > _ACROSS:
                x, top = 0.0, bottom + 0.8
            bottom = max(bottom, _draw_panel(ax, panel, x, top, block))
            x += max(panel.across, 0.4 * len(_title(panel))) + 1.5
        what = "threadIdx.x" if block[1:] == (1, 1) else "threadIdx.x,threadIdx.y"
        head = f"{name}, {_sizes(grid, 'block')} of {_sizes(block, 'thread')}; in each element {what} of who touched it"
        by_block = [{block for block, _ in touched} for panel in panels for touched in panel.threads.values()]
        if prod(grid) > 1:
            shared = any(len(blocks) > 1 for blocks in by_block)
            head += "; +n: n more; in the colour of the first's block" if shared else "; each block has its colour"
        ax.text(0, -0.4, head, weight="bold")
        height = bottom + 0.4
        for note in shown:
            lines = textwrap.wrap(note, _WIDTH)
            ax.text(0, height, "\n".join(lines), color=ORANGE, weight="bold", va="top")
            height += 0.75 * len(lines) + 0.15
        height += 0.3
        ax.set(xlim=(-0.2, _ACROSS), ylim=(height, -1.2))
        figure.set_size_inches(9, 9 * (height + 1.2) / _ACROSS)
        ax.axis("off")
        figure.subplots_adjust(0.005, 0.005, 0.995, 0.995)
    return closed(figure)


def _sizes(size: Dimensions, what: str) -> str:
    used = [str(part) for part in size[: max(1, max((k + 1 for k in range(3) if size[k] > 1), default=1))]]
    return f"{f' {TIMES} '.join(used)} {what}{'s' * (prod(size) > 1)}"


def _title(panel: Panel) -> str:
    return f"{panel.name}, {_DONE[panel.op]}"


def _draw_panel(ax: Axes, panel: Panel, x: float, top: float, block: Dimensions) -> float:
    """Draw one panel with its upper left corner at (x, top); return where it ends below."""
    elements = sorted({*range(panel.size), *panel.near()})
    above = -panel.place(elements[0])[1]
    ax.text(x, top + 0.7, _title(panel), color=GREY)
    for element in elements:
        column, row = panel.place(element)
        left, upper, threads = x + column, top + 1.1 + above + row, sorted(panel.threads.get(element, []))
        bad = element in panel.wrong or not 0 <= element < panel.size
        colour = BLOCK_COLOURS[threads[0][0] % len(BLOCK_COLOURS)] if threads else "white"
        edge, width = (ORANGE, 1.8) if bad else (GREY, 0.5)
        box = Rectangle((left + 0.04, upper + 0.04), 0.92, 0.92, fc=colour, ec=edge, lw=width, zorder=2 + bad)
        ax.add_patch(box)
        said = [_index(thread, block) for thread in threads]
        last = f"…{said[-1]}" if threads and threads[0][0] == threads[-1][0] else f"+{len(said) - 1}"
        text = "\n".join(said if len(said) < 3 else [said[0], last])
        size = 8 if len(said) == 1 and len(text) < 3 else 6
        ax.text(left + 0.5, upper + 0.5, text, ha="center", va="center", fontsize=size, linespacing=0.9, zorder=4)
    return top + 1.1 + above + panel.place(elements[-1])[1] + 1
