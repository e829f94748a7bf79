"""Likely causes of wrong outputs: from the elements that are missing or wrong to where a learner should look."""

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.count.counters import Counts

EXPRESSION = "the expression that computes an element"
READS = f"{EXPRESSION}, and which elements of the inputs it reads"
_FEW = 8  # results of which each may be made of many elements
TAIL = "the tail: the elements left over when n is not a multiple of 4"


def place(index: int | np.integer, shape: tuple[int, ...]) -> str:
    """Return where element `index`, counted through the array, is: "[7]", or "[1, 2]" in an array of two dimensions."""
    at = (index,) if len(shape) == 1 else np.unravel_index(index, shape)
    return f"[{', '.join(str(int(i)) for i in at)}]"


def unwritten(written: np.ndarray, blocks: int, threads_per_block: int) -> tuple[str, str]:
    """Return what was left out, and where to look, for an output whose `written` (bool) elements alone were stored."""
    if written.ndim == 1:
        return _unwritten_elements(written, blocks, threads_per_block)
    return _unwritten_places(written)


def _unwritten_places(written: np.ndarray) -> tuple[str, str]:
    """Say where an array of two and more dimensions is unwritten, and what to look at."""
    missing = np.argwhere(~written)
    first = place(np.flatnonzero(~written)[0], written.shape)
    size = " × ".join(map(str, written.shape))
    what = f"{len(missing)} of {written.size} elements were never written, the first at {first}"
    ends = [f"[{', '.join(map(str, corner))}]" for corner in (missing.min(axis=0), missing.max(axis=0))]
    return (
        f"{what} ({size} elements)",
        f"the threads that should write {' to '.join(dict.fromkeys(ends))}: how do they find their row and column, "
        "does each write all elements that are its own, and what does a guard, if there is one, compare?",
    )


def _unwritten_elements(written: np.ndarray, blocks: int, threads_per_block: int) -> tuple[str, str]:
    n, count = written.size, int(written.sum())
    first = int(np.flatnonzero(~written)[0])
    if written[first:].any():
        missing, last = n - count, first + int(np.argmax(written[first:])) - 1
        gap = f"index {first}" if first == last else f"indices {first} to {last}"
        what = f"{missing} of {n} elements were never written, the first at index {first}"
        if _irregular(written):
            return (
                what,
                f"the condition before the store: here and there an element is left out, the first at {gap}. Every "
                "element needs a store, whatever its value",
            )
        return (what, f"the index of each thread: together the threads leave gaps, the first at {gap}")
    if first == n - 1 > 0:
        look_at = "the condition that ends the work"
        return (
            f"the last of {n} elements was never written",
            f"{look_at}, or {TAIL}" if first % 4 == 0 else f"{look_at}: does it let the last element in?",
        )
    if first == 0:
        return (f"none of its {n} elements was written", "the store to it: is there one, and does any thread reach it?")
    what = f"only the first {f'{first} of {n} elements were' if first > 1 else f'of {n} elements was'} written"
    for parts, what_stores, own in (
        (blocks, "block", "blockIdx.x"),
        (
            blocks * -(-threads_per_block // WARP_SIZE),
            "warp",
            "threadIdx.x / 32 in the block (% 32 gives a lane's number)",
        ),
    ):
        if first == 1 and n == parts:
            return (
                what,
                f"where each {what_stores} stores its own result: its number is {own}. Does one of its threads store?",
            )
    if first == threads_per_block and blocks > 1:
        return (
            f"{what}, as many as one block has threads",
            "the index: threads of different blocks compute the same one",
        )
    if first == blocks * threads_per_block:
        return (
            f"{what}, as many as the launch has threads",
            "what a thread does after its first element, and with which index: there are fewer threads than elements",
        )
    if n - first < 4 and first % 4 == 0:
        return (what, TAIL)
    return (
        what,
        f"elements {first} to {n - 1}, which no thread takes: how does a thread find its index? "
        + ("Does it have 16 bits?" if first == 2**16 else "Or is a size hard-coded in the kernel?"),
    )


def _irregular(written: np.ndarray) -> bool:
    """Return whether what is left out follows the values and not the index: many gaps, of lengths that differ."""
    ends = np.flatnonzero(np.diff(np.concatenate(([True], written, [True]))))
    gaps = (ends[1::2] - ends[::2])[:-1]  # the end of the array may cut the last one off
    return gaps.size >= 8 and np.unique(gaps).size >= 3


def wrong_values(
    got: np.ndarray, expected: np.ndarray, wrong: np.ndarray, shape: tuple[int, ...], counts: Counts | None = None
) -> str:
    """Return where to look for an output whose elements `wrong` have the wrong value.

    `got`, `expected`: one-dimensional; `wrong`: indices into them; `shape`: of the array; `counts`: of the launch.
    """
    values, wanted = got[wrong], expected[wrong]
    if np.issubdtype(expected.dtype, np.floating):
        if np.isnan(values).all():
            return "what makes NaN: a value read before any result was stored there, 0 / 0 or inf - inf"
        types = _wrong_types(values, wanted)
        if types:
            return types
    if expected.size == 1 and counts and counts.global_store_requests > 1 and not counts.atomics:
        return (
            f"the stores to the single result: warps store to it {counts.global_store_requests} times and no atomic "
            "operation is used. If a warp reads the sum, adds to it and stores it, it loses what others added meanwhile"
        )
    if expected.size == 1:
        return "which elements go into the single result, and whether each does so exactly once"
    if expected.size <= _FEW and counts and counts.global_load_bytes > 4 * expected.nbytes:
        return "which elements go into each result, and whether each does so exactly once"
    source = np.flatnonzero(expected == values[0])
    if source.size and _are_others(values[:8], expected):
        here, there = (str(i) if len(shape) == 1 else place(i, shape) for i in (int(wrong[0]), int(source[0])))
        return f"the index: element {here} holds the right value of element {there}"
    lanes = np.unique(wrong % WARP_SIZE)
    if lanes.size == 1 and wrong.size > 1 and len(shape) == 1:
        return f"lane {lanes[0]} of each warp, the only one that is wrong: which element, or whose value, does it take?"
    if wrong[-1] == wrong.size - 1 < expected.size // 8 and len(shape) == 1:
        first = f"the first {wrong.size} elements, the only ones that are wrong: what do they"
        if wrong.size == 1:
            first = "the first element, the only wrong one: what does it"
        return f"{first} read before the start of an array? In Numba a negative index counts from the end"
    if wrong.size == 1 and wrong[0] == expected.size - 1:
        return "the last element"
    if wrong.size < 4 < expected.size and wrong[0] >= expected.size // 4 * 4:
        return "the tail: only elements after the last whole group of 4 are wrong"
    if counts and counts.shared_store_requests + counts.shared_copy_wavefronts:
        if len(shape) == 1 and counts.global_load_bytes >= 2 * _FEW * expected.nbytes:
            return (
                "which elements go into each result, and whether each does so exactly once: does the loop over shared "
                "memory make its last step?"
            )
        where = "place" if len(shape) == 1 else "row and column"
        return f"{READS}, including those that the block copies into shared memory: from which {where}, and to which?"
    return READS


def added_to_garbage(name: str, values: np.ndarray, wanted: np.ndarray, before: np.ndarray) -> str:
    """Return where to look if `values` are the right ones added to what memory held `before` the launch; else ""."""
    with np.errstate(over="ignore"):
        added = np.isnan(values) if np.isnan(before).all() else values == before + wanted
    if not added.all():
        return ""
    return (
        f"the atomic operations on {name}: they add to what is there, and before the launch that is anything, not 0. "
        "Add up elsewhere, and store each result once"
    )


def _wrong_types(values: np.ndarray, wanted: np.ndarray) -> str:
    """Return where to look for values that differ from floating-point ones by their type alone; else empty."""
    if np.array_equal(values, np.trunc(wanted)):
        return "the types: every wrong value is the right one cut to a whole number"
    with np.errstate(over="ignore"):  # a warning on stderr would be one more failure to nbgrader
        halves = wanted.astype(np.float16).astype(wanted.dtype)
    if np.array_equal(values, halves):
        return "the types: every wrong value is the right one rounded to 16 bits"
    return ""


def _are_others(values: np.ndarray, expected: np.ndarray) -> bool:
    """Return whether wrong values are right ones of other elements, and not by chance, as one of few values may be."""
    distinct = np.unique(expected).size
    many = min(values.size, distinct) >= 4 and np.unique(values).size > 1  # one value alone is what a border holds, too
    many &= expected.itemsize > 1  # any of a byte's 256 values stands somewhere
    return bool(np.isin(values, expected).all()) and (distinct == expected.size or many)
