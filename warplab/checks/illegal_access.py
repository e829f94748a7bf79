"""The failure of a kernel that reaches outside its arrays: the access, what the kernel wrote there, the likely cause.

To find out more than the simulator reports, the kernel runs once more, with room around its arrays.
"""

import re
from dataclasses import dataclass
from math import prod

import numpy as np

from warplab.checks.cases import Dimensions
from warplab.checks.errors import CheckFailed, kind_of, line_of
from warplab.checks.explain_fragments import LOAD_OR_STORE, PAST_THE_END
from warplab.checks.explain_outputs import TAIL, place
from warplab.checks.kernel_run import KernelRun
from warplab.checks.session import device
from warplab.compile.kernel_mistakes import loose_guard
from warplab.launch.guard_bands import BAND_ELEMENTS, GuardedArray
from warplab.simulator.count.counters import Access, LaunchProfile
from warplab.simulator.errors import IllegalAddress, Index3, SimulatorError

_NO_INDEX = "itself a valid index?"
_INSIDE = (
    "is each index (row and column, if there are two) compared with the size of the array, must all be inside, and is "
    f"a size {_NO_INDEX}"
)


def failure(run: KernelRun, error: IllegalAddress) -> CheckFailed:
    """Return what a learner is told of an illegal address that stopped `run`."""
    arrays = {name: value for name, value in run.case.buffers().items() if isinstance(value, np.ndarray)}
    places = hasattr(run.kernel, "py_func")  # an index of C++ counts all elements, whatever the array's shape
    access = OutsideAccess.of(error.what, arrays if places else {k: v.ravel() for k, v in arrays.items()})
    got, look_at = str(error), access.look_at() if access else "the index, and the size it is compared with"
    if LOAD_OR_STORE in got:
        look_at = PAST_THE_END
    else:
        got, look_at = _with_room(run, error, access, arrays) or (got, look_at)
    if places and look_at.endswith(_NO_INDEX):  # the kernel's source may answer
        look_at = loose_guard(run.kernel.py_func) or look_at
    return run.failed(
        f"{run.name}: {access.problem()}" if access else f"{run.name} reaches outside its arrays.",
        got=got,
        look_at=look_at,
        kind=kind_of(error),
        line=line_of(error),
    )


@dataclass(frozen=True)
class OutsideAccess:
    """An access outside an array. `index`: the first element that it touches, counted row by row."""

    op: str  # "load", "store" or "atomic operation"
    side: str  # "past the end" or "before the start"
    array: str
    index: int
    shape: tuple[int, ...]
    width: int
    itemsize: int

    @classmethod
    def of(cls, message: str, arrays: dict[str, np.ndarray]) -> "OutsideAccess | None":
        """Read it from the simulator's message; None if it is not about an array of the launch."""
        found = re.match(
            r"illegal address: an? ([a-z ]+) of (\d+) bytes at \w+: ([\d,]+) bytes (past the end|before the start) "
            r"of array `(\w+)`",
            message,
        )
        if not found or found[5] not in arrays:
            return None
        array, width, distance = arrays[found[5]], int(found[2]), int(found[3].replace(",", ""))
        start = array.nbytes + distance - width if found[4] == "past the end" else -distance
        return cls(found[1], found[4], found[5], start // array.itemsize, array.shape, width, array.itemsize)

    def problem(self) -> str:
        article = "an" if self.op[0] == "a" else "a"
        link = "of" if self.op == "load" else "to" if self.op == "store" else "on"
        what = link if self.width == self.itemsize else f"of {self.width} bytes at"
        size = " × ".join(map(str, self.shape))
        return (
            f"{article} {self.op} {what} {self.element()} reaches {self.side} of {self.array} "
            f"({size} element{'' if size == '1' else 's'})."
        )

    def element(self) -> str:
        if len(self.shape) > 1:  # which row and column were meant, the address does not say
            return f"element {self.index} of {self.array}, counted row by row,"
        return f"{self.array}[{self.index}]"

    def look_at(self, element: str = "", tiles: bool = False) -> str:
        """Return where to look. `element`: what the thread stores to next, such as "c[0]", if that is known. `tiles`:
        the kernel keeps values in shared memory, so what a thread loads need not be for its own element."""
        n = prod(self.shape)
        last = f"the last element is {self.array}{place(n - 1, self.shape)}" if n else "the array is empty"
        if element and self.op == "load" and tiles:
            return f"the index into {self.array}, and the guard of the load into shared memory: {last}"
        if element and self.op == "load" and "," not in element:
            return f"the index into {self.array}: the thread reads {self.element()} to compute {element}"
        if self.side == "before the start":
            return f"the index into {self.array}: it becomes negative"
        if element:  # what lies past the end of a row is the next one, so the store's address is inside
            return f"the index into {self.array}: {last}; and the guard: {_INSIDE}"
        return f"the index into {self.array}, and the guard: {last}"


def _with_room(
    run: KernelRun, error: IllegalAddress, access: OutsideAccess | None, arrays: dict[str, np.ndarray]
) -> tuple[str, str] | None:
    """Return what happened, and where to look, from a launch with room around the arrays; None if it tells no more."""
    guarded = {name: GuardedArray(value, run.threads, k, device()) for k, (name, value) in enumerate(arrays.items())}
    arguments = tuple(guarded[name].array if name in guarded else value for name, value in run.case.buffers().items())
    trace = {"trace_warps": -(-run.threads // 32), "trace_events": min(4096, 2**22 // run.threads)}
    try:
        profile = run.simulate(arguments, path_limit=64 * BAND_ELEMENTS, races=False, **trace)
    except SimulatorError:
        return None  # further out than the bands
    got = str(error)
    odd = _odd_width(profile.accesses, {name: value.itemsize for name, value in guarded.items()}, access)
    if odd:
        return got, odd
    store = _next_store(profile, _linear(error.block, run.grid), _linear(error.thread, run.block), guarded)
    if store is None:
        return None
    name, index = store
    value, tiles = guarded[name], bool(profile.counts.shared_store_requests + profile.counts.shared_copy_wavefronts)
    if 0 <= index < value.size and (access is None or access.op == "load"):
        if access is None:
            return None
        # The simulator's reason asks for a guard, which such a thread does not need.
        rows = arrays[name].ndim == 2 or hasattr(run.kernel, "py_func")  # an index of C++ counts all elements
        element = name + place(index, arrays[name].shape if rows else (value.size,))
        return got.removesuffix(f"\n  {error.reason}"), access.look_at(element, tiles)
    before, after = value.written_around()
    if not (before.any() or after.any()):
        return None
    if value.size == run.blocks < run.threads == max(array.size for array in arrays.values()):
        return got.removesuffix(f"\n  {error.reason}"), f"the index into {name}, which has one element for each block"
    crossing = (
        traced.width // value.itemsize
        for traced in profile.accesses
        if traced.op == "store" and value.crossed(traced.address, traced.width)
    )
    what, look_at = _overrun(name, before, after, value.size, run.threads, max(crossing, default=0))
    if tiles and access and access.op == "load":  # a guard of the store alone does not help
        look_at = f"{access.look_at(name, tiles)}\nand {look_at}"
    counted = ", counted row by row" * (arrays[name].ndim > 1 and "index" in what and hasattr(run.kernel, "py_func"))
    return f"{got}\nAllowed to continue, the kernel {what}{counted}.", look_at


def _linear(index: Index3 | None, size: Dimensions) -> int | None:
    """Return the number of a block in its grid, or of a thread in its block."""
    if index is None:
        return None
    across, down = (*((size,) if isinstance(size, int) else size), 1, 1)[:2]
    return index[0] + across * (index[1] + down * index[2])


def _next_store(
    profile: LaunchProfile, block: int | None, thread: int | None, guarded: dict[str, GuardedArray]
) -> tuple[str, int] | None:
    """Return array and index of the store that the illegal access is of: itself, or the thread's next one."""
    if block is None or thread is None:
        return None
    met = False
    for access in profile.accesses:
        lanes = np.flatnonzero((access.block == block) & (access.thread == thread))
        if access.space != "global" or not lanes.size:
            continue
        address = int(access.address[lanes[0]])
        name = next((name for name, value in guarded.items() if value.holds(address)), None)
        if name is None:
            continue
        index = guarded[name].index(address)
        elements = access.width // guarded[name].itemsize
        met = met or index < 0 or index + elements > guarded[name].size
        if met and access.op == "store":
            # The last element of a wide store shows that it ends outside, even if it starts inside.
            return name, index if index < 0 else index + max(elements, 1) - 1
    return None


def _odd_width(accesses: list[Access], itemsizes: dict[str, int], outside: OutsideAccess | None) -> str:
    """Return where to look if the kernel accesses an array in pieces wider or narrower than its elements; else empty.

    `outside`: the access past an array that is to be explained; other arrays are not its cause. Pairs of halves, 4
    bytes at a time, are no mistake.
    """
    for access in accesses:
        size = itemsizes.get(access.array or "")
        if (outside and access.array != outside.array) or (size, access.width) == (2, 4):
            continue
        if size and access.width != size and access.width < 16:
            return (
                f"the types of the parameters: {access.array} has elements of {size} bytes, "
                f"but the kernel accesses {access.width} bytes at a time (line {access.line})"
            )
    return ""


def _overrun(name: str, before: np.ndarray, after: np.ndarray, n: int, threads: int, group: int) -> tuple[str, str]:
    """Return what was written outside array `name` of n elements, and where to look.

    `before`, `after`: elements written on both sides (bool). `group`: elements of a store that crosses the end, or 0.
    """
    if before.any():
        return (f"wrote {int(before.sum())} elements before the start of {name}", "the index: it becomes negative")
    count, last = int(after.sum()), n + int(np.flatnonzero(after)[-1])
    if count == threads - n and count > 1 and last == threads - 1:
        return (
            f"wrote {count} elements past the end of {name}: {threads} threads, {n} elements",
            "the guard: what must a thread do that has no element?",
        )
    if count < group:
        return (
            f"wrote {count} element{'s' if count > 1 else ''} past the end of {name}: "
            f"a store of {group} elements crosses it",
            TAIL,
        )
    if count == 1 and last == n:
        return (
            f"wrote one element past the end of {name}, index {n} of an array of {n}",
            f"the index, and the size it is compared with: is n {_NO_INDEX}",
        )
    return (
        f"wrote {count} elements past the end of {name}, up to index {last} of an array of {n}",
        f"the index and the guard of the store: which element is meant, {_INSIDE}",
    )
