"""tcgen05 as data: its instruction and shared-memory descriptors, and where matrices lie in tensor memory.

Tensor memory is, per multiprocessor, 128 lanes of 512 columns of 32 bits. Bits 16-31 of an address are the lane, 0-15
the column. All here follows the PTX ISA ("TensorCore 5th Generation Family Instructions") and, where that has pictures,
CUTLASS (cute/arch/mma_sm100_desc.hpp, cute/atom/copy_traits_sm100.hpp and mma_traits_sm100_frag.hpp). **No GPU has
confirmed it.**

Operands in shared memory lie as those of wgmma do (`warpgroup_instructions`), but the descriptor has other bits: 46-48
are 0b001, 52 is the mode of the leading offset, and 61-63 the swizzle: 0 none, 2 128 bytes, 4 64, 6 32, and 1 for 128
bytes whose atoms have 32 bytes. That one has four lines, not eight, and exchanges bits 5, 6 of an address by 7, 8; it
is for MN-major tf32 alone. Elements of 4 and 6 bits fill a chunk of 16 bytes by sixteen, the rest of it is padding,
unless the kind is mxf4 or mxf4nvf4, which pack two to a byte.
"""

import functools
from dataclasses import dataclass

import numpy as np

from warplab.simulator.ptx.program import Where
from warplab.simulator.translate.warpgroup_instructions import CHUNK_BYTES, DEPTH_BYTES, Descriptor, unpack
from warplab.simulator.translate.warpgroup_instructions import chunk_addresses as hopper_addresses

LANES, COLUMNS, QUARTER = 128, 512, 32  # a warp reaches a quarter of the lanes
MOST_SCALE = 15  # of scale-input-d

_SMALL = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_HALF = frozenset(("f16", "bf16"))


@dataclass(frozen=True)
class Kind:
    """A .kind of tcgen05.mma: types of A and B and of D by their numbers, elements along k, scale factors along k."""

    factors: dict[int, str]
    sums: dict[int, str]
    k: int
    scales: tuple[int, ...] = ()  # the numbers that its qualifiers may ask for, the first without one
    transposes: bool = True
    negates: bool = True


KINDS = {
    "f16": Kind({0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}, 16),
    "tf32": Kind({2: "tf32"}, {1: "f32"}, 8),
    "f8f6f4": Kind(_SMALL, {0: "f16", 1: "f32"}, 32),
    "i8": Kind({0: "u8", 1: "s8"}, {2: "s32"}, 32, negates=False),
    "mxf8f6f4": Kind(_SMALL, {1: "f32"}, 32, (1,)),
    "mxf4": Kind({1: "e2m1"}, {1: "f32"}, 64, (2,), transposes=False),
    "mxf4nvf4": Kind({1: "e2m1"}, {1: "f32"}, 64, (2, 4), transposes=False),
}
_CONTAINER_BYTES = {"tf32": 4, "f16": 2, "bf16": 2}  # of an element; the others take one


@dataclass(eq=False)
class TensorProduct:
    """One tcgen05.mma: its .kind and .cta_group, scale factors along k, power of two that divides D, and whether it is
    weight-stationary (.ws)."""

    kind: str
    group: int
    scales: int
    shift: int
    stationary: bool
    where: Where
    text: str


@dataclass(frozen=True)
class Form:
    """What an instruction descriptor says. `kinds`: types of A, B and D; `scale_ids`: bytes in a word of tensor memory
    where the factors of A and B begin; `scale_type`: "ue4m3" or "ue8m0"."""

    m: int
    n: int
    k: int
    kinds: tuple[str, str, str]
    negated: tuple[bool, bool]
    transposed: tuple[bool, bool]
    saturate: bool
    scale_ids: tuple[int, int] = (0, 0)
    scale_type: str = ""
    stationary: bool = False

    @property
    def name(self) -> str:
        a, b, d = self.kinds
        return f"m{self.m}n{self.n}k{self.k}.{d}.{a}" + (f".{b}" if b != a else "")

    @property
    def packed(self) -> bool:
        """Return whether two elements share a byte."""
        return self.k == 64

    def container(self, operand: int) -> int:
        """Return bytes of an element of A (0) or B (1) in shared memory."""
        return _CONTAINER_BYTES.get(self.kinds[operand], 1)


@functools.lru_cache(maxsize=256)
def form(bits: int, name: str, group: int, scales: int, stationary: bool = False) -> Form:
    """Return what the instruction descriptor `bits` says to tcgen05.mma of .kind::`name` and .cta_group::`group`, with
    so many scale factors along k, or to tcgen05.mma.ws. Raises ValueError with what is wrong with it."""
    kind, scaled = KINDS[name], scales > 0
    if bits & 1 << 2:
        raise ValueError("bit 2 says that A is sparse, which only tcgen05.mma.sp may be")
    spare = 0x0000004B if scaled else 0x20800040
    if bits & spare:
        raise ValueError(f"bits {bits & spare:#x} must be 0")
    a, b = (_named(kind.factors, bits >> low & 7, f"{which}'s type, bits {low}-{low + 2}")
            for which, low in (("A", 7), ("B", 10)))  # fmt: skip
    d = "f32" if scaled else _named(kind.sums, bits >> 4 & 3, "D's type, bits 4-5")
    if d == "f16" and "bf16" in (a, b):
        raise ValueError("D is f16 (bits 4-5), but factors in bf16 need sums in f32")
    saturate = not scaled and bool(bits >> 3 & 1)
    if saturate and name != "i8":
        raise ValueError("bit 3 saturates, which only .kind::i8 does")
    negated, transposed = (bool(bits >> 13 & 1), bool(bits >> 14 & 1)), (bool(bits >> 15 & 1), bool(bits >> 16 & 1))
    if any(negated) and not kind.negates:
        raise ValueError(f"bits 13-14 negate, which .kind::{name} cannot")
    for which, kept, major in (("A", a, transposed[0]), ("B", b, transposed[1])):
        if major and (not kind.transposes or kept in ("e2m3", "e3m2", "e2m1")):
            raise ValueError(f"bits 15-16 say that {which} is {'MN'[which == 'B']}-major, which {kept} cannot be here")
    n, m = (bits >> 17 & 0x3F) << 3, (bits >> 24 & 0x1F) << 4
    if not scaled and bits >> 30:
        raise ValueError("bits 30-31, the shift, are for tcgen05.mma.ws with a mask of columns, which is not simulated")
    if stationary:
        _check_stationary(m, n)
    else:
        _check_shape(m, n, name, group, transposed[1] and _CONTAINER_BYTES.get(b, 1) == 1)
    if not scaled:
        return Form(m, n, kind.k, (a, b, d), negated, transposed, saturate, stationary=stationary)
    if bits >> 31:
        raise ValueError("bit 31 asks for K = 96, which sm_100a does not have")
    ids = bits >> 29 & 3, bits >> 4 & 3
    if any(i % scales for i in ids):
        raise ValueError(f"the scale factors' IDs (bits 29-30 and 4-5) are {ids}, but must be multiples of {scales}")
    scale_type = "ue8m0" if bits >> 23 & 1 else "ue4m3"
    if scale_type == "ue4m3" and (name != "mxf4nvf4" or scales != 4):
        raise ValueError("bit 23 says that scale factors are UE4M3, which only .kind::mxf4nvf4 with .scale_vec::4X has")
    return Form(m, n, kind.k, (a, b, d), negated, transposed, False, ids, scale_type)


def _named(table: dict[int, str], number: int, what: str) -> str:
    if number not in table:
        known = ", ".join(f"{k} {v}" for k, v in table.items())
        raise ValueError(f"{what}, is {number}; there are {known}")
    return table[number]


def _check_stationary(m: int, n: int) -> None:
    if m not in (32, 64, 128) or n not in (64, 128, 256):
        raise ValueError(
            f"M (bits 24-28, times 16) is {m} and N (bits 17-22, times 8) {n}, but tcgen05.mma.ws has M 32, 64 or 128 "
            "and N 64, 128 or 256"
        )


def _check_shape(m: int, n: int, kind: str, group: int, bytes_transposed: bool) -> None:
    scaled = kind.startswith("mx")
    rows = (128 * group,) if scaled else (64 * group, 128 * group)
    if m not in rows:
        raise ValueError(f"M (bits 24-28, times 16) is {m}, but .kind::{kind} with .cta_group::{group} has {rows}")
    if bytes_transposed or (kind == "i8" and n not in (8, 24)):
        step = 16 * group
    else:
        step = 8 if group == 1 and (m == 64 or scaled) else 16
    if not 0 < n <= 256 or n % step:
        raise ValueError(f"N (bits 17-22, times 8) is {n}, but must be a multiple of {step} up to 256")


# -- shared memory -----------------------------------------------------------------------------------------------------

SWIZZLES = {0: 0, 1: 128, 2: 128, 4: 64, 6: 32}  # bytes, by the number in a descriptor
_WIDE = 1  # the one whose atoms have 32 bytes


def check_descriptor(bits: int, transposed: bool, item: int) -> None:
    """Raise ValueError with what is wrong with a shared-memory descriptor of an operand."""
    if bits >> 46 & 7 != 1:
        raise ValueError("bits 46-48 must be 0b001, which tells it from one of wgmma")
    if bits >> 52 & 1:
        raise ValueError("bit 52, absolute leading addresses, is for operands of K = 48 bytes, which sm_100a has not")
    if bits >> 53 & 0xFF:
        raise ValueError("bits 53-60 must be 0")
    swizzle = bits >> 61
    if swizzle not in SWIZZLES:
        known = "0 none, 1 128 bytes with atoms of 32, 2 128 bytes, 4 64, 6 32"
        raise ValueError(f"bits 61-63 name swizzle {swizzle}; there are {known}")
    if (transposed and item == 4) != (swizzle == _WIDE):
        raise ValueError(
            "a transposed tf32 operand needs swizzle 1 (128 bytes with atoms of 32), and no other may have it"
        )


def operand_addresses(bits: np.ndarray, rows: int, item: int, transposed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return `chunk_addresses` of operands, as of wgmma, and their starts. `bits`: descriptors, uint64."""
    fields = unpack(bits)  # where bits 62-63 name the same swizzles
    if not (bits >> np.uint64(61) == _WIDE).any():
        return hopper_addresses(fields, rows, item, transposed), fields.start
    return _wide_addresses(fields, rows), fields.start


def _wide_addresses(fields: Descriptor, rows: int) -> np.ndarray:
    """Return addresses where atoms have 32 bytes: (descriptors, rows / 4, 8), of MN-major tf32."""
    start, leading, stride, base, _ = (field[:, None, None] for field in fields)
    row, k = np.arange(rows * 4 // CHUNK_BYTES)[:, None], np.arange(DEPTH_BYTES // 4)
    address = start + k % 4 * 128 + k // 4 * stride + row // 8 * leading + row % 8 * CHUNK_BYTES
    return address ^ ((address >> 7) - base & 3) << 5


def unpacked(chunks: np.ndarray, form_: Form, operand: int) -> np.ndarray:
    """Return A (0) or B (1) as one unsigned integer per element, (operands, rows, k), from the 32 bytes of each row,
    K-major, (operands, rows, 32) uint8."""
    kind, item = form_.kinds[operand], form_.container(operand)
    if form_.packed:
        return np.stack((chunks & 15, chunks >> 4), axis=-1).reshape(*chunks.shape[:2], 64)
    if kind not in ("e2m3", "e3m2", "e2m1"):
        return np.ascontiguousarray(chunks).view(f"u{item}")
    pieces = chunks.reshape(*chunks.shape[:2], 2, CHUNK_BYTES)
    width = 4 if kind == "e2m1" else 6
    bits = np.unpackbits(pieces[..., : 2 * width], axis=-1, bitorder="little").reshape(*pieces.shape[:3], 16, width)
    return (bits << np.arange(width, dtype=np.uint8)).sum(-1, dtype=np.uint8).reshape(*chunks.shape[:2], 32)


# -- tensor memory -----------------------------------------------------------------------------------------------------


def sum_places(m: int, n: int, group: int, stationary: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return lanes and columns, which broadcast to (rows of a block, n), of D in the tensor memory of one block."""
    row, column = np.arange(m // group)[:, None], np.arange(n)
    if stationary:  # M rows, and beneath them the next columns of D, until all lanes are full
        width = n * m // LANES
        return row + m * (column // width), column % width
    if m // group == LANES:  # layouts A and D
        return row, column
    if group == 2:  # layout B: the right half of D beneath the left
        return row + 64 * (column >= n // 2), column % (n // 2)
    return row % 16 + row // 16 * QUARTER, column  # layout F: half of each quarter


def factor_lanes(m: int, group: int) -> np.ndarray:
    """Return the lanes of A's rows, where it lies in tensor memory. (Layout B holds them twice; the first are read.)"""
    row = np.arange(m // group)
    return row % 16 + row // 16 * QUARTER if (m, group) == (64, 1) else row


def scale_places(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lane and column of the word with the scale factors of each row of A, or column of B."""
    row = np.arange(rows)
    return row % QUARTER, row // QUARTER


@dataclass(frozen=True)
class Transfer:
    """Which word of tensor memory each register of a warp's tcgen05.ld or st is: `lane`, `column` of shape
    (32, registers), from the address. `packed`: two half words in one register, from columns `column` and the next."""

    lane: np.ndarray
    column: np.ndarray
    lanes: int  # that it spans
    columns: int
    packed: bool


def transfer(shape: str, number: int, half: int, packed: bool) -> Transfer:
    """Return what tcgen05.ld or st of `shape` moves. KeyError for a shape or number that it does not have."""
    registers = number * {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}[shape]
    if number & number - 1 or not 0 < registers <= 128 or not 0 <= half < COLUMNS:
        raise KeyError(number)
    t, r = np.arange(32)[:, None], np.arange(registers)
    lane, column = {
        "32x32b": (t + 0 * r, r + 0 * t),
        "16x64b": (t // 4 + 8 * (t % 2) + 0 * r, 2 * r + t // 2 % 2),
        "16x128b": (t // 4 + 8 * (r % 2), r // 2 * 4 + t % 4),
        "16x256b": (t // 4 + 8 * (r // 2 % 2), r // 4 * 8 + t % 4 * 2 + r % 2),
        "16x32bx2": (t % 16 + 0 * r, r + t // 16 * half),
    }[shape]
    column = column * (1 + packed)
    return Transfer(lane, column, 32 if shape == "32x32b" else 16, int(column.max()) + 1 + packed, packed)


@dataclass(frozen=True)
class Copy:
    """A shape of tcgen05.cp: how many rows of how many chunks of 16 bytes, and the lanes of each, (copies, rows)."""

    rows: int
    chunks: int
    lanes: np.ndarray


def copy_shape(shape: str, spread: str) -> Copy:
    """Return what tcgen05.cp of `shape` moves, `spread` to other warps' lanes as in ".warpx4". KeyError if unknown."""
    row = np.arange(128)
    return {
        ("128x256b", ""): Copy(128, 2, row[None]),
        ("128x128b", ""): Copy(128, 1, row[None]),
        ("4x256b", ""): Copy(4, 2, np.arange(0, 128, QUARTER)[None]),
        ("64x128b", "warpx2::02_13"): Copy(64, 1, np.stack((row[:64], row[64:]))),
        ("64x128b", "warpx2::01_23"): Copy(
            64, 1, np.stack([row[:64] % QUARTER + row[:64] // QUARTER * 64 + QUARTER * k for k in range(2)])
        ),
        ("32x128b", "warpx4"): Copy(32, 1, row.reshape(4, QUARTER)),
    }[shape, spread]
