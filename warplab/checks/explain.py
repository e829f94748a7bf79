"""From a wrong result to its likely cause: the `look_at` lines of a failed kernel check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from warplab.simulator.count.counters import WARP_SIZE, Access, Counts, LaunchProfile

_SUMS = frozenset(field.name for field in fields(Counts))  # counters to which each line adds
READS = "the expression that computes an element, and which elements of the inputs it reads"
_TAIL = "the tail: the elements left over when n is not a multiple of 4"


@dataclass(frozen=True)
class Outside:
    """An access outside an array. `index`: the first element that it touches; `size`: elements of the array."""

    op: str  # "load", "store" or "atomic operation"
    side: str  # "past the end" or "before the start"
    array: str
    index: int
    size: int
    width: int
    itemsize: int

    @classmethod
    def of(cls, message: str, arrays: dict[str, np.ndarray]) -> Outside | None:
        """From what the simulator says; None where it is about no array of the launch."""
        found = re.match(
            r"illegal address: an? ([a-z ]+) of (\d+) bytes at \w+: ([\d,]+) bytes (past the end|before the start) "
            r"of array `(\w+)`",
            message,
        )
        if not found or found[5] not in arrays:
            return None
        array, width, distance = arrays[found[5]], int(found[2]), int(found[3].replace(",", ""))
        start = array.nbytes + distance - width if found[4] == "past the end" else -distance
        return cls(found[1], found[4], found[5], start // array.itemsize, array.size, width, array.itemsize)

    def problem(self) -> str:
        article = "an" if self.op[0] == "a" else "a"
        what = "of" if self.width == self.itemsize else f"of {self.width} bytes at"
        return (
            f"{article} {self.op} {what} {self.array}[{self.index}] reaches {self.side} of {self.array} "
            f"({self.size} element{'' if self.size == 1 else 's'})."
        )

    def look_at(self, element: str, tiles: bool = False) -> str:
        """`element`: what the thread stores to next, such as "c[0]", "" if that is not known. `tiles`: the kernel
        keeps values in shared memory, so what a thread loads need not be for its own element."""
        if element and self.op == "load" and tiles:
            last = f"the last element is {self.array}[{self.size - 1}]"
            return f"the index into {self.array}, and the guard of the load into shared memory: {last}"
        if element and self.op == "load":
            return f"the index into {self.array}: the thread reads {self.array}[{self.index}] for {element}"
        if self.side == "before the start":
            return f"the index into {self.array}: it becomes negative"
        return f"the index into {self.array}, and the guard: the last element is {self.array}[{self.size - 1}]"


def place(index: int, shape: tuple[int, ...]) -> str:
    """Where element `index`, counted through the array, is: "[7]", or "[1, 2]" in an array of two dimensions."""
    at = (index,) if len(shape) == 1 else np.unravel_index(index, shape)
    return f"[{', '.join(str(int(i)) for i in at)}]"


def unwritten_places(written: np.ndarray) -> tuple[str, str]:
    """As `unwritten`, for arrays of two and more dimensions."""
    missing = np.argwhere(~written)
    first = place(int(np.flatnonzero(~written)[0]), written.shape)
    size = " × ".join(map(str, written.shape))
    what = f"{len(missing)} of {written.size} elements were never written, the first at {first}"
    ends = [f"[{', '.join(map(str, corner))}]" for corner in (missing.min(axis=0), missing.max(axis=0))]
    return (
        f"{what} ({size} elements)",
        f"the threads that should write {' to '.join(dict.fromkeys(ends))}: how do they find row and column, "
        "and what does their guard compare with what?",
    )


def unwritten(written: np.ndarray, grid: int, block: int) -> tuple[str, str]:
    """What was left out, and where to look, for an output of which `written` (1-D bool) elements were stored."""
    n, count = written.size, int(written.sum())
    first = int(np.flatnonzero(~written)[0])
    if written[first:].any():
        missing, last = n - count, first + int(np.argmax(written[first:])) - 1
        gap = f"index {first}" if first == last else f"indices {first} to {last}"
        return (
            f"{missing} of {n} elements were never written, the first at index {first}",
            f"the index of each thread: together the threads leave gaps, the first at {gap}",
        )
    what = f"only the first {first} of {n} elements {'was' if first == 1 else 'were'} written"
    if first == n - 1 and first % 4 == 0:
        return (
            f"the last of {n} elements was never written",
            f"the condition that ends the work, or {_TAIL}",
        )
    if first == n - 1:
        return (
            f"the last of {n} elements was never written",
            "the condition that ends the work: does it let the last element in?",
        )
    if first == block and grid > 1:
        return (
            f"{what}, as many as one block has threads",
            "the index: threads of different blocks share it",
        )
    if first == grid * block:
        return (
            f"{what}, as many as the launch has threads",
            "what a thread does after its first element: there are fewer threads than elements",
        )
    if n - first < 4 and first % 4 == 0:
        return (what, _TAIL)
    return (
        what,
        f"elements {first} to {n - 1}, which no thread takes: how does a thread find its index? "
        "Or is a size written into the kernel?",
    )


def overrun(before: np.ndarray, after: np.ndarray, n: int, threads: int, group: int) -> tuple[str, str]:
    """What was written outside an output of n elements, from the written elements (1-D bool) on both sides.

    `group`: elements that one store instruction of a thread writes.
    """
    if before.any():
        return (
            f"wrote {int(before.sum())} elements in front of the array",
            "the index: it becomes negative",
        )
    count, last = int(after.sum()), n + int(np.flatnonzero(after)[-1])
    if count == threads - n and count > 1 and last == threads - 1:
        return (
            f"wrote {count} elements past the end: {threads} threads, {n} elements",
            "the guard: what must a thread do that has no element?",
        )
    if count < group:
        return (
            f"wrote {count} element{'s' if count > 1 else ''} past the end: a store of {group} reaches over it",
            _TAIL,
        )
    if count == 1 and last == n:
        return (
            f"wrote one element past the end, index {n} of an array of {n}",
            "the comparison with the size: is n itself an index?",
        )
    return (
        f"wrote {count} elements past the end, up to index {last} of an array of {n}",
        "the guard of the store: is there one, and does it compare each index (row and column, if there are two) with "
        "the size of the array?",
    )


def wrong_values(
    got: np.ndarray, expected: np.ndarray, wrong: np.ndarray, shape: tuple[int, ...], counts: Counts | None = None
) -> str:
    """Where to look for an output whose elements `wrong` have the wrong value.

    `got`, `expected`: of one dimension, `wrong` indices into them; `shape`: that the array has; `counts`: of the
    launch.
    """
    values, wanted = got[wrong], expected[wrong]
    if np.issubdtype(expected.dtype, np.floating):
        if np.isnan(values).all():
            return "what is read: NaN comes out, as if from memory that holds no result yet"
        if np.array_equal(values, np.trunc(wanted)):
            return "the types: every wrong value is the right one cut to a whole number"
        with np.errstate(over="ignore"):  # a warning on stderr would be one more failure to nbgrader
            halves = wanted.astype(np.float16).astype(expected.dtype)
        if np.array_equal(values, halves):
            return "the types: every wrong value is the right one rounded to 16 bits"
    if expected.size == 1 and counts and counts.global_store_requests > 1 and not counts.atomics:
        return (
            f"the stores to the one result: warps store {counts.global_store_requests} times and no atomic operation "
            "is used. Where one reads the sum, adds and stores, what others added meanwhile is lost"
        )
    if expected.size == 1:
        return "which elements come into the one result, and whether each does so once"
    source = np.flatnonzero(expected == values[0])
    if source.size and _are_others(values[:8], expected):
        here, there = (str(i) if len(shape) == 1 else place(i, shape) for i in (int(wrong[0]), int(source[0])))
        return f"the index: element {here} holds the right value of element {there}"
    if wrong.size == 1 and wrong[0] == expected.size - 1:
        return "the last element"
    if wrong.size < 4 and wrong[0] >= expected.size // 4 * 4:
        return "the tail: only elements after the last whole group of 4 are wrong"
    if counts and counts.shared_store_requests + counts.shared_copy_wavefronts:
        return (
            f"{READS}, also those that the block brings into shared memory: from which row and column, to which place"
        )
    return READS


def _are_others(values: np.ndarray, expected: np.ndarray) -> bool:
    """Whether wrong values are right ones of other elements, and not by chance, as one of few values may be."""
    return bool(np.isin(values, expected).all()) and (values.size >= 4 or np.unique(expected).size == expected.size)


def odd_width(accesses: list[Access], itemsizes: dict[str, int], outside: Outside | None = None) -> str | None:
    """The array that a kernel accesses in pieces wider or narrower than its elements, if it does so with one width.

    `outside`: the access past an array that is to be explained; other arrays are not its cause. Halves in pairs, 4
    bytes at a time, are no mistake.
    """
    for access in accesses:
        size = itemsizes.get(access.array or "")
        if (outside and access.array != outside.array) or (size, access.width) == (2, 4):
            continue
        if size and access.width != size and access.width < 16:
            return (
                f"the types of the parameters: {access.array} has elements of {size} bytes, "
                f"the kernel accesses {access.width} bytes at a time (line {access.line})"
            )
    return None


def not_compiled(error: str) -> str:
    """Where to look for a message of a compiler that says neither what is wrong nor where; empty for others."""
    if re.search(r"Function\(<function (shared|local)\.array .*\n(.*\n)? *>>> array\(.*int64", error):
        return (
            "the sizes of the array in shared or local memory: each is a number, or a name that stands for one "
            "outside of the kernel, not an expression"
        )
    return ""


# What stands behind a counter that is not asked for by any line of the source as such.
_BEHIND = {
    "flops_f64": "A number without a type, such as 0 or 0.0, makes a sum float64 in Numba; float32(0) does not.",
    "local_load_requests": "In local memory lie arrays whose index is known only at run time, and values for which a "
    "thread has no register left: how many does it keep at a time?",
}
_BEHIND["local_store_requests"] = _BEHIND["local_load_requests"]
MOST_LINES = 4


def over_limit(profile: LaunchProfile, counter: str, got: float, most: float) -> str:
    """The source lines that add to `counter`, the most first, and why they do; empty where lines are not known.

    Of a ratio, to which lines do not add, the line where it is largest.
    """
    if not hasattr(type(profile.counts), counter) or not profile.lines:
        return ""
    parts = {place: getattr(counts, counter) or 0 for place, counts in profile.lines.items()}
    found = sorted((place for place in parts if parts[place]), key=lambda place: (-parts[place], place))
    if not found:
        return ""
    if counter not in _SUMS:
        text = _line(profile, found[0])
    elif len(found) == 1:
        text = f"{_line(profile, found[0])}\nNo other line adds to the count."
    else:
        text = "\n".join(f"{_line(profile, place)}  ({number(parts[place])})" for place in found[:MOST_LINES])
        left = found[MOST_LINES:]
        if left:
            text += f"\nand {len(left)} more line{'s' * (len(left) > 1)} ({number(sum(parts[x] for x in left))})"
    if counter == "global_store_bytes" and most:
        text += f"\n{number(got / most)} times the bytes allowed: do several threads write the same element?"
    return text + (f"\n{_BEHIND[counter]}" if counter in _BEHIND else "")


def under_limit(profile: LaunchProfile, counter: str) -> str:
    """For the warp efficiency: the source line at which most lanes idle, without lines nothing. For tensor cores: what
    works instead of them. Nothing for other counters."""
    if counter == "tensor_operations":
        return "what computes the sums: the ordinary cores?"
    if counter != "warp_efficiency":
        return ""

    def idle(counts: Counts) -> int:
        return WARP_SIZE * counts.warp_instructions - counts.thread_instructions

    key = max(profile.lines, key=lambda place: idle(profile.lines[place]), default=None)
    if key is None or not idle(profile.lines[key]):
        return ""
    counts = profile.lines[key]
    active = counts.thread_instructions / counts.warp_instructions
    return f"{_line(profile, key)}\nOf the {WARP_SIZE} lanes of a warp {number(active)} are active here, on average."


def products(counts: Mapping[str, float]) -> str:
    """Matrix products by name, such as "8 of m16n16k16.f32.f16"."""
    return ", ".join(f"{number(count)} of {name}" for name, count in counts.items()) or "none"


def _line(profile: LaunchProfile, place: tuple[str, int]) -> str:
    """A source line with its number, such as "line 7: out[i] = a[i]"."""
    file, line = place
    text = profile.sources.get(file, "").splitlines()
    return f"line {line}" + (f": {text[line - 1].strip()}" if 0 < line <= len(text) else "")


def number(value: float) -> str:
    """Digits with separators where it is whole, else 3 significant ones."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3g}" if value < 1000 else f"{value:,.1f}"
