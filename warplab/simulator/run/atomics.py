"""Atomic operations of a group of lanes, as if the lanes came one after another in the order of their numbers.

Where all addresses differ, one array operation does it. Otherwise the lanes are sorted by address, and those with one
address, a *segment*, are processed by prefix sums, by a scan, or in rounds with one lane of each segment per round.
Floating-point sums round after every lane, as the hardware does.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from ml_dtypes import bfloat16

from warplab.simulator.numerics import flush_f32, half_from_f32, half_to_f32

_MANY_SEGMENTS, _ROUNDS = 256, 128  # rounds pay off for many segments; what is longer is finished one by one
_CAS_ROUNDS = 8


class AtomicOperation(NamedTuple):
    """`step(old, b)` is what one lane leaves in memory. `ufunc`, if any, does the same and can be scanned.
    `accumulate`, if any, returns what each lane leaves, given what was there and then each lane's b."""

    step: Callable
    ufunc: np.ufunc | None = None
    accumulate: Callable | None = None


def _add_flushed(old, b):
    return flush_f32(flush_f32(old) + flush_f32(b))


def _on_bf16(function: Callable) -> Callable:
    return lambda old, b: half_from_f32(function(half_to_f32(old, "bf16"), half_to_f32(b, "bf16")), "bf16")


def _accumulate_bf16(own: np.ndarray) -> np.ndarray:
    """Add bfloat16 bits, each a float32 that is rounded to bfloat16, as in `step`."""
    bits = np.add.accumulate(own.view(bfloat16)).view(np.uint16)[1:]
    return np.where(bits & np.uint16(0x7FFF) > 0x7F80, np.uint16(0x7FFF), bits)


def _extremes_of_bf16(ufunc: np.ufunc) -> Callable:
    return lambda own: half_from_f32(ufunc.accumulate(half_to_f32(own, "bf16")), "bf16")[1:]


OPERATIONS = {
    "add": AtomicOperation(np.add, np.add),
    "min": AtomicOperation(np.minimum, np.minimum),
    "max": AtomicOperation(np.maximum, np.maximum),
    "and": AtomicOperation(np.bitwise_and, np.bitwise_and),
    "or": AtomicOperation(np.bitwise_or, np.bitwise_or),
    "xor": AtomicOperation(np.bitwise_xor, np.bitwise_xor),
    "inc": AtomicOperation(lambda old, bound: np.where(old >= bound, old.dtype.type(0), old + old.dtype.type(1))),
    "dec": AtomicOperation(lambda old, bound: np.where((old == 0) | (old > bound), bound, old - old.dtype.type(1))),
    "exch": AtomicOperation(lambda old, b: np.broadcast_to(b, old.shape)),
    "fadd": AtomicOperation(np.add, np.add),
    "fadd.ftz": AtomicOperation(_add_flushed),
    "fmin": AtomicOperation(np.fmin, np.fmin),
    "fmax": AtomicOperation(np.fmax, np.fmax),
    "fadd.bf16": AtomicOperation(_on_bf16(np.add), accumulate=_accumulate_bf16),
    "fmin.bf16": AtomicOperation(_on_bf16(np.fmin), accumulate=_extremes_of_bf16(np.fmin)),
    "fmax.bf16": AtomicOperation(_on_bf16(np.fmax), accumulate=_extremes_of_bf16(np.fmax)),
}
_CANONICAL_NAN = {"f2": np.array(0x7FFF, "u2").view("f2"), "f4": np.array(0x7FFFFFFF, "u4").view("f4")}


class Atomics:
    """Called by translated blocks. `lanes` are the group's, None for all; results have one entry per lane."""

    def __init__(self, chunk) -> None:
        self.access = chunk.access

    def run(self, site, addresses, operation: str, operands: tuple, lanes, wanted: bool) -> list[np.ndarray | None]:
        """Return the old values, one array per element of the access (None where they are not wanted).

        `operands`: for each element the values b, or (compare, b) for "cas".
        """
        access, group = self.access, self.access.chunk.group
        space, addresses = access.resolve(site, addresses)
        for notify in access.chunk.observers.atomic:
            notify(site, space, addresses, lanes, operation != "exch" or wanted)
        dtype, item = site.dtype, site.item
        if operation in ("cas", "exch") and site.count == 2:  # 128 bits
            dtype, item = "V16", 16
        view, index = addresses.index(access.views[space][dtype], item, site.offset)
        if operation == "fadd" and space == "global" and site.dtype == "f4":
            operation = "fadd.ftz"
        found = [apply(view[k:], index, operation, values, group.count, wanted) for k, values in enumerate(operands)]
        if wanted and _in_vain(operation, operands[0], found[0]):
            access.chunk.waits_in_vain = True  # perhaps they wait for a lock, whose holder must run now
        return found

    @staticmethod
    def halves(packed: np.ndarray, dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return the low and high halves of 32-bit values."""
        pair = np.ascontiguousarray(packed).view(dtype).reshape(-1, 2)
        return pair[:, 0].copy(), pair[:, 1].copy()

    @staticmethod
    def packed(low: np.ndarray | None, high: np.ndarray | None) -> np.ndarray | None:
        return None if low is None or high is None else np.stack((low, high), axis=-1).reshape(-1).view(np.uint32)


def apply(view: np.ndarray, index: np.ndarray, operation: str, operands, count: int, wanted: bool):
    """Execute `operation` for `count` lanes at elements `index` of `view` (one element, or one per lane).

    Returns the values that the lanes found, or None unless `wanted`.
    """
    if operation == "fadd.ftz" and not _may_be_subnormal(view, index, operands):
        operation = "fadd"
    if index.shape[0] == count:
        steps = index[1:] - index[:-1]
        order = None
        if (steps < 0).any():
            order = np.argsort(index, kind="stable")
            steps = np.diff(index[order])
        if (steps != 0).all():
            return _apart(view, index, operation, operands)
        ordered = index if order is None else index[order]
        starts = np.concatenate(([0], np.flatnonzero(steps) + 1))
    else:
        order, ordered, starts = None, index, np.zeros(1, np.int64)
    places = ordered[starts]
    if operation == "cas":
        operands = tuple(_each(values, order, count) for values in operands)
    else:
        operands = _each(operands, order, count)
    segments = _Segments(starts, count, view.take(places))
    found, left = _contended(segments, operation, operands, wanted)
    view[places] = left
    if not wanted:
        return None
    if order is None:
        return found
    result = np.empty_like(found)
    result[order] = found
    return result


def _in_vain(operation: str, operands, found: np.ndarray) -> bool:
    """Tell whether no lane of a CAS found what it compares with, or all lanes wrote what they found."""
    if operation == "cas":
        return not (found == operands[0]).any()
    return operation == "exch" and bool((found == operands).all())


def _each(values: np.ndarray, order, count: int) -> np.ndarray:
    values = np.broadcast_to(values, count)
    return values if order is None else values[order]


def _may_be_subnormal(view, index, values) -> bool:
    """Tell whether a sum may be: not of multiples of 2**-125, such as all numbers from 2**-102 on."""
    return any(((np.abs(v) < np.float32(2.0**-102)) & (v != 0)).any() for v in (values, view.take(index)))


def _apart(view: np.ndarray, index: np.ndarray, operation: str, operands) -> np.ndarray:
    """Do an operation on lanes that each have an address of their own."""
    old = view.take(index)
    if operation == "cas":
        compare, b = operands
        view[index] = np.where(old == compare, b, old)
    else:
        view[index] = _canonical(OPERATIONS[operation].step(old, operands))
    return old


def _canonical(values: np.ndarray) -> np.ndarray:
    """Give NaN results of float32 and float16 their one bit pattern."""
    nan = _CANONICAL_NAN.get(values.dtype.str[1:])
    if nan is None or not np.isnan(values).any():
        return values
    return np.where(np.isnan(values), nan, values)


class _Segments:
    """Lanes sorted by address. `starts`: where each address begins; `old`: the value it held before."""

    def __init__(self, starts: np.ndarray, count: int, old: np.ndarray) -> None:
        self.starts, self.count, self.old = starts, count, old
        self.lengths = np.diff(np.append(starts, count))
        self.ends = starts + self.lengths - 1

    @property
    def number(self) -> np.ndarray:
        """Return the segment of each lane."""
        return np.repeat(np.arange(self.starts.shape[0]), self.lengths)

    @property
    def place(self) -> np.ndarray:
        """Return the position of each lane in its segment."""
        return np.arange(self.count) - np.repeat(self.starts, self.lengths)

    def spread(self, values: np.ndarray) -> np.ndarray:
        return np.repeat(values, self.lengths)

    def shifted(self, left: np.ndarray) -> np.ndarray:
        """Return what each lane finds, given what each leaves."""
        found = np.empty_like(left)
        found[1:] = left[:-1]
        found[self.starts] = self.old
        return found


def _contended(segments: _Segments, operation: str, b, wanted: bool) -> tuple[np.ndarray | None, np.ndarray]:
    """Return what each lane finds (None where not wanted), and what is left of each segment."""
    if operation == "cas":
        return _compare_and_swap(segments, *b)
    if operation == "exch":
        return segments.shifted(b), b[segments.ends]
    if operation in ("inc", "dec") and (b == b[0]).all():
        return _count_around(segments, operation, int(b[0]))
    ufunc = OPERATIONS[operation].ufunc
    if operation == "add" and wanted:
        sums = np.cumsum(b, dtype=b.dtype)
        before = sums - b
        found = before + segments.spread(segments.old - before[segments.starts])
        return found, found[segments.ends] + b[segments.ends]
    if ufunc is not None and operation[0] != "f":
        if not wanted:
            return None, ufunc(segments.old, ufunc.reduceat(b, segments.starts, dtype=b.dtype))
        left = _scan(segments, ufunc, b)
        return segments.shifted(left), left[segments.ends]
    return _one_by_one(segments, OPERATIONS[operation], b)


def _scan(segments: _Segments, ufunc: np.ufunc, b: np.ndarray) -> np.ndarray:
    """Return what each lane leaves, by doubling steps."""
    left = b.copy()
    left[segments.starts] = ufunc(segments.old, left[segments.starts])
    if segments.starts.shape[0] == 1:
        return ufunc.accumulate(left)
    place, step, longest = segments.place, 1, int(segments.lengths.max())
    while step < longest:
        left[step:] = np.where(place[step:] >= step, ufunc(left[:-step], left[step:]), left[step:])
        step *= 2
    return left


def _count_around(segments: _Segments, operation: str, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """Count by inc or dec, lanes with one bound: after the first lane a value counts around 0…bound."""
    step, dtype = OPERATIONS[operation].step, segments.old.dtype
    cycle = np.uint64(bound + 1)
    first = step(segments.old, dtype.type(bound)).astype(np.uint64)
    after = (segments.place % (bound + 1)).astype(np.uint64)  # 32-bit operations: nothing overflows 64 bits
    turned = segments.spread(first) + (after if operation == "inc" else cycle - after)
    left = (turned % cycle).astype(dtype)
    return segments.shifted(left), left[segments.ends]


def _one_by_one(segments: _Segments, operation: AtomicOperation, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute in rounds for many short segments; what is longer, or few, a segment at a time."""
    left = np.empty_like(b)
    current = segments.old
    done = 0
    if segments.starts.shape[0] > _MANY_SEGMENTS:
        done = min(_ROUNDS, int(segments.lengths.max()))
        current = current.copy()
        for place in range(done):
            going = np.flatnonzero(segments.lengths > place)
            lane = segments.starts[going] + place
            left[lane] = current[going] = _canonical(operation.step(current[going], b[lane]))
    for number in np.flatnonzero(segments.lengths > done):
        first, end = segments.starts[number] + done, segments.ends[number] + 1
        own = np.concatenate((current[number : number + 1], b[first:end]))
        if operation.ufunc is not None:
            left[first:end] = _canonical(operation.ufunc.accumulate(own)[1:])
        elif operation.accumulate is not None:
            left[first:end] = operation.accumulate(own)
        else:
            for k in range(1, own.shape[0]):
                own[k : k + 1] = _canonical(operation.step(own[k - 1 : k], own[k : k + 1]))
            left[first:end] = own[1:]
    return segments.shifted(left), left[segments.ends]


def _compare_and_swap(segments: _Segments, compare: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Go in rounds: a segment's first lane that finds what it compares with swaps; those before it did not."""
    number, current = segments.number, segments.old.copy()
    found = np.empty_like(b)
    rest = np.arange(segments.count)
    for _ in range(_CAS_ROUNDS):
        at = number[rest]
        hits = rest[compare[rest] == current[at]]
        winners = hits[np.unique(number[hits], return_index=True)[1]]
        last = np.full(current.shape, segments.count)
        last[number[winners]] = winners
        done = rest <= last[at]
        found[rest[done]] = current[at[done]]
        current[number[winners]] = b[winners]
        rest = rest[~done]
        if not rest.size:
            return found, current
    values = current.tolist()  # many lanes swap one after another: plain Python is the quickest
    old = []
    for where, expected, new in zip(number[rest].tolist(), compare[rest].tolist(), b[rest].tolist(), strict=True):
        old.append(values[where])
        if values[where] == expected:
            values[where] = new
    found[rest] = old
    return found, np.array(values, current.dtype)
