"""Bit counting, bit fields and permutations, on whole arrays. Shift amounts and positions are uint32 arrays."""

import numpy as np

from warplab.simulator.numerics.integers import shift_left, shift_right

_NONE = np.uint32(0xFFFFFFFF)


def popc(a):
    """Return the number of ones, as uint32."""
    return np.bitwise_count(a).astype(np.uint32)


def clz(a):
    """Return leading zeros of uint32 or uint64, as uint32."""
    if a.dtype.itemsize == 8:
        high = clz((a >> np.uint64(32)).astype(np.uint32))
        return np.where(high < 32, high, 32 + clz(a.astype(np.uint32)))
    # The exponent of the number as a float64: 1023 for the lowest bit, 0 for the number 0.
    exponent = (a.astype(np.float64).view(np.uint64) >> np.uint64(52)).astype(np.uint32)
    return np.minimum(1054 - exponent, 32)


def brev(a):
    """Return bits in reverse order, uint32 or uint64."""
    for step, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        mask = a.dtype.type(int.from_bytes(bytes([mask]) * a.dtype.itemsize, "little"))
        a = ((a >> step) & mask) | ((a & mask) << step)
    return a.byteswap()


def find_leading(a, shift_amount: bool):
    """Compute bfind: position of the highest bit that differs from the sign, or the shift that moves it to the top; all
    ones if none does."""
    bits = 8 * a.dtype.itemsize
    if a.dtype.kind == "i":
        a = (a ^ (a >> (bits - 1))).view(f"u{bits // 8}")
    zeros = clz(a)
    return np.where(zeros == bits, _NONE, zeros if shift_amount else (bits - 1) - zeros)


def find_nth(mask, base, offset):
    """Compute fns: position of the |offset|-th one of `mask`, from bit `base` inclusive, up or (offset < 0) down; for
    offset 0 `base` itself. All ones where there is no such bit. `mask`, `base`: uint32; `offset`: int32.

    The lowest offset, whose absolute value does not fit its type, gives 0 (seen on an H100)."""
    mask, base, offset = np.broadcast_arrays(mask, base, offset)
    bit = np.arange(32, dtype=np.uint32)
    ones = (mask[:, None] >> bit & 1).astype(bool)
    up = offset[:, None] > 0
    ones &= np.where(up, bit >= base[:, None], bit <= base[:, None])
    ones &= (base < 32)[:, None] & ((offset != 0)[:, None] | (bit == base[:, None]))
    place = np.cumsum(ones, axis=1)
    place = np.where(up, place, place[:, -1:] + 1 - place)  # counted from `base`
    wanted = ones & (place == np.maximum(np.abs(offset.astype(np.int64)), 1)[:, None])
    found = np.where(wanted.any(axis=1), wanted.argmax(axis=1).astype(np.uint32), _NONE)
    return np.where(offset == np.iinfo(np.int32).min, np.uint32(0), found)


def _field(position, length, bits: int):
    """Cut to 8 bits of position and length, as 32-bit instructions do; 64-bit ones use all (recorded)."""
    return (position & 0xFF, length & 0xFF) if bits == 32 else (position, length)


def extract_field(a, position, length):
    """Compute bfe: `length` bits of a from `position` on, extended by the field's top bit if a is signed."""
    bits = 8 * a.dtype.itemsize
    position, length = _field(position, length, bits)
    room = (bits - np.minimum(np.maximum(length, 1), bits)).astype(a.dtype)
    field = shift_right(a, position) << room >> room
    return np.where(length == 0, a.dtype.type(0), field)


def insert_field(a, b, position, length):
    """Compute bfi: b with `length` bits from `position` on replaced by the low bits of a."""
    position, length = _field(position, length, 8 * a.dtype.itemsize)
    ones = np.full(1, np.iinfo(a.dtype).max, a.dtype)
    mask = shift_left(~shift_left(ones, length), position)
    return (b & ~mask) | (shift_left(a, position) & mask)


def extend(a, length, wrap: bool):
    """Compute szext: the low `length` bits of a (int32 or uint32), extended by the sign or by zeros."""
    length = length & 31 if wrap else np.minimum(length, 32)
    room = (32 - np.maximum(length, 1)).astype(a.dtype)
    return np.where(length == 0, a.dtype.type(0), a << room >> room)


def bit_mask(position, length, wrap: bool):
    """Compute bmsk: `length` ones from `position` on, uint32."""
    if wrap:
        position, length = position & 31, length & 31
    return shift_left(~shift_left(np.full(1, _NONE), length), position)


def funnel_shift(low, high, amount, left: bool, wrap: bool):
    """Compute shf: high:low shifted; its upper 32 bits after a left shift, its lower ones after a right shift."""
    both = (high.astype(np.uint64) << np.uint64(32)) | low
    amount = (amount & 31 if wrap else np.minimum(amount, 32)).astype(np.uint64)
    return (both << amount >> np.uint64(32) if left else both >> amount).astype(np.uint32)


def permute(a, b, selector, mode: str = ""):
    """Compute prmt: four of the eight bytes of b:a. PTX ISA, "prmt"; bit 3 of a selector repeats a byte's top bit."""
    both = pack(np.uint64, a, b).view(np.uint8).reshape(-1, 8)
    place = np.arange(4, dtype=np.uint32)
    if mode:
        n = (selector & 3)[:, None]
        selectors = {
            "f4e": place + n,
            "b4e": (n - place) & 7,
            "rc8": n + 0 * place,
            "ecl": np.maximum(place, n),
            "ecr": np.minimum(place, n),
            "rc16": (place & 1) + 2 * (n & 1),
        }[mode]
    else:
        selectors = (selector[:, None] >> (4 * place)) & 15
    index = (selectors & 7).astype(np.intp)
    if index.shape[0] == 1:
        bytes_ = both.take(index[0], axis=1)
    else:
        bytes_ = np.take_along_axis(np.broadcast_to(both, (index.shape[0], 8)), index, axis=1)
    repeat = selectors & 8
    if repeat.any():
        bytes_ = np.where(repeat != 0, (bytes_ >> 7) * np.uint8(255), bytes_)
    return bytes_.reshape(-1).view(np.uint32)


def pack(dtype, *parts):
    """Pack registers side by side into a wider one, the first lowest."""
    n = max(part.shape[0] for part in parts)
    packed = np.empty((n, len(parts)), parts[0].dtype)
    for k, part in enumerate(parts):
        packed[:, k] = part
    return packed.reshape(-1).view(dtype)


def low_and_high(values) -> tuple:
    """Return the low and high 64 bits of 128-bit values, uint64."""
    parts = np.ascontiguousarray(values).view(np.uint64).reshape(-1, 2)
    return parts[:, 0], parts[:, 1]
