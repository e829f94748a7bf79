"""D = A·B + C of f16 with sums in f32, from registers to registers, as machine code: `numerics.tensor_cores`' bits.

A step of 16 products is exact in small numbers: each product of f16 is a float, and in units of the last bit that is
kept, 2**-25 of the largest, a sum of eight is an integer of 32 bits. What holds infinity or NaN is left to NumPy.

A, 16 × 16, is held by a warp as by mma.m16n8k16: in register 2r + h lane 4g + t has row g + 8h, columns 8r + 2t + i, i
being the half of the register; B, 16 × 8n, in register 2j + r column 8j + g, rows 8r + 2t + i; C and D in register
4j + 2h + e row g + 8h, column 8j + 2t + e. The code orders k by r, i and t.
"""

import functools
from collections.abc import Sequence

import numpy as np

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.translate import aligned_sums, machine_compiler
from warplab.simulator.translate.machine_access import place_of
from warplab.simulator.translate.warpgroup_instructions import THREADS

_Result = list[np.ndarray] | None  # None: numbers that are left to NumPy
_FIELDS = ("A", "B", "C", "OUT", "A_NEXT", "B_NEXT", "WARPS", "SHARING", "TILES", "ROOM")
# Bytes of scratch: flags of infinity and NaN, a register's numbers and powers; those of A; of a tile of B.
_ROOM, _ROOM_OF_A, _ROOM_OF_TILE = 1024, 5120, 640

_SOURCE = """
def numbers(word, room):
    # The floats of a register's 32 pairs, and 14 more than the powers of two in them (less than -35 for a zero), as the
    # alignment counts these.
    flags = room
    for half in range(2):
        for i in lanes(32, 32):
            bits = ld4(word + 4 * i) >> 16 * half
            power = (bits >> 10) & 31
            part = bits & 1023
            st4(flags + 4 * i, ld4(flags + 4 * i) | (power == 31))
            part = part | 1024 if power != 0 else part
            power = power if power != 0 else 1
            number = f32mul(f32of_signed(part), (power + 102) << 23)
            st4(room + 256 + 128 * half + 4 * i, number | ((bits & 0x8000) << 16))
            st1(room + 512 + 32 * half + i, power - 1 if part != 0 else -64)


def left(a, next, room, to, powers):
    for row in range(2):
        for r in range(2):
            numbers(ld8(a + 8 * (2 * r + row)) + next, room)
            for half in range(2):
                x = room + 256 + 128 * half
                p = room + 512 + 32 * half
                {left}
                to = to + 512
                powers = powers + 128


def right(b, next, room, tiles, to, powers):
    for word in range(2 * tiles):
        numbers(ld8(b + 8 * word) + next, room)
        for half in range(2):
            for i in lanes(32, 32):
                st4(to + 128 * half + 4 * i, pick4(room + 256 + 128 * half, 8 * (i & 3) + (i >> 2)))
            for i in lanes(32, 8):
                st1(powers + 32 * half + i, pick1(room + 512 + 32 * half, 8 * (i & 3) + (i >> 2)))
        to = to + 256
        powers = powers + 64


def sums(S, room, tiles, a, powers_a, b, powers_b, at):
    flags = room
    for n in range(4 * tiles):
        x = powers_a + 512 * ((n >> 1) & 1)
        y = powers_b + 128 * (n >> 2) + 16 * (n & 1)
        for i in lanes(32, 8):
            most = -128
            {powers}
            st1(room + 128 + i, most)
        x = a + 2048 * ((n >> 1) & 1)
        y = b + 512 * (n >> 2) + 64 * (n & 1)
        c = ld8(ld8(S + C) + 8 * n) + at
        out = ld8(ld8(S + OUT) + 8 * n) + at
        for i in lanes(32, 32):
            sum = ld4(c + 4 * i)
            size = sum & SIZE
            st4(flags + 4 * i, ld4(flags + 4 * i) | (size >= INFINITY))
            most = sx8(ld1(room + 128 + i))
            most = most if most >= 0 else NONE
            own = (size >> 23) - 99
            most = own if own > most else most
            power = most if most > LEAST else LEAST
            scale = (180 - power) << 23
            low = f32to_signed(f32mul(sum, scale))
            high = 0
            {products}
            both = low + high
            sign = ashr((low & high) | (both & (low | high)), 31)
            size = (both ^ sign) - sign
            zeros = clz(size)
            size = size & ~(255 >> (zeros if zeros < 8 else 8))
            total = f32mul(f32of_unsigned(size), (power + 74) << 23) | (sign & SIGN)
            st4(out + 4 * i, f32add(sum, 0) if most < LEAST else total)


def products(S):
    flags = ld8(S + ROOM)
    tiles = ld8(S + TILES)
    a = flags + 1024
    powers_a = a + 4096
    b = powers_a + 1024
    powers_b = b + 512 * tiles
    for i in lanes(32, 32):
        st4(flags + 4 * i, 0)
    for warp in range(ld8(S + WARPS)):
        if urem(warp, ld8(S + SHARING)) == 0:
            right(ld8(S + B), ld8(S + B_NEXT) * udiv(warp, ld8(S + SHARING)), flags, tiles, b, powers_b)
        left(ld8(S + A), ld8(S + A_NEXT) * warp, flags, a, powers_a)
        sums(S, flags, tiles, a, powers_a, b, powers_b, 128 * warp)
    for i in lanes(32):
        bad = either(ld4(flags + 4 * i))
    return bad
"""


_BITS = {"SIZE": 0x7FFFFFFF, "SIGN": 0x80000000, "INFINITY": 0x7F800000}
# Exponents of the largest addend, counted from 2**-28, the least product's: where it is less than `LEAST`, there are no
# products, and their scale would be no float.
_BITS |= {"NONE": -1000, "LEAST": -72}


@functools.cache
def _source() -> machine_compiler.Source:
    parts: dict[str, list[str]] = {"left": [], "powers": [], "products": []}
    for k in range(16):
        x, y, of = 32 * k, 32 * (k // 4) + 4 * (k % 4), "low" if k < 8 else "high"
        parts["powers"] += [
            f"power = ld1(x + {x} + i) + pick1(y + {y}, i & 3)",
            "most = power if power > most else most",
        ]
        product = f"f32mul(ld4(x + {4 * x} + 4 * i), pick4(y + {4 * y}, i & 3))"
        parts["products"].append(f"{of} = {of} + f32to_signed(f32mul({product}, scale))")
    for t in range(4):
        for size, bits in ((4, 32), (1, 8)):
            to = f"{'to' if size == 4 else 'powers'} + {32 * size * t} + {size} * i"
            take = f"pick{size}({'x' if size == 4 else 'p'}, (i & 28) | {t})"
            parts["left"].append(f"for i in lanes(32, {bits}): st{size}({to}, {take})")
    text = _SOURCE.format(**{name: _indented(name, lines) for name, lines in parts.items()})
    return machine_compiler.Source(text, {**{name: 8 * k for k, name in enumerate(_FIELDS)}, **_BITS})


def _indented(name: str, lines: list[str]) -> str:
    (line,) = (line for line in _SOURCE.splitlines() if line.endswith(f"{{{name}}}"))
    return ("\n" + " " * line.index("{")).join(lines)


@functools.cache
def _compiled():
    return machine_compiler.Compiled(_source()).function("products")


def ready(options, log: dict[str, None], kinds: tuple[str, ...], products: int) -> bool:
    """Tell whether the code is for matrices of these PTX types, and pays off for so many products more."""
    ours = kinds[:2] == ("f16", "f16") and {*kinds[2:]} == {"f32"} and options.machine_code
    return ours and aligned_sums.hot("halves", _source, _compiled, products, log)


def of_warps(a: Sequence[np.ndarray], b: Sequence[np.ndarray], c: Sequence[np.ndarray], warps: int) -> _Result:
    """Return D's registers for warps that have a B each. Registers are of one entry per lane, or one for all."""
    a, b, c = ([_whole(x, WARP_SIZE * warps) for x in registers] for registers in (a, b, c))
    return _multiply(a, [place_of(x) for x in b], 4 * WARP_SIZE, c, 1)


def of_warpgroups(
    a: np.ndarray | Sequence[np.ndarray], b: np.ndarray, negated: tuple[bool, bool], c: Sequence[np.ndarray]
) -> _Result:
    """Return D's registers for warpgroups. A: (warpgroups, 64, 16) as `b`, (warpgroups, n, 16), or its registers."""
    groups, n = b.shape[:2]
    lanes, sign = groups * THREADS, np.uint32(0x80008000)
    if isinstance(a, np.ndarray):
        a = list(_pairs(a, 4, 2, 8, 2, 4).transpose(4, 2, 0, 1, 3, 5).reshape(4, lanes))
    a, c = ([_whole(x, lanes) for x in registers] for registers in (a, c))
    right = np.ascontiguousarray(_pairs(b, n // 8, 8, 2, 4).transpose(0, 1, 3, 2, 4))
    if negated[0]:
        a = [x ^ sign for x in a]
    if negated[1]:
        right ^= sign
    first = place_of(right)
    return _multiply(
        a, range(first, first + right.strides[0], 4 * WARP_SIZE), right.strides[0], c, THREADS // WARP_SIZE
    )


def _pairs(matrices: np.ndarray, *shape: int) -> np.ndarray:
    return np.ascontiguousarray(matrices).view(np.uint32).reshape(-1, *shape)


def _whole(register: np.ndarray, lanes: int) -> np.ndarray:
    return np.ascontiguousarray(register if register.shape[0] == lanes else np.broadcast_to(register, lanes))


def _multiply(a: Sequence[np.ndarray], b: Sequence[int], b_next: int, c: Sequence[np.ndarray], sharing: int) -> _Result:
    """`b`: where B's registers are; `sharing` warps have one B, which lies `b_next` bytes behind the one before."""
    lanes, tiles = a[0].shape[0], len(b) // 2
    out = np.empty((len(c), lanes), np.uint32)
    room = np.empty(_ROOM + _ROOM_OF_A + _ROOM_OF_TILE * tiles + 64, np.uint8)
    first = place_of(out)
    places = [*map(place_of, a), *b, *map(place_of, c), *range(first, first + out.nbytes, out.strides[0])]
    table = np.array(places, np.int64)
    tables = (place_of(table) + 8 * n for n in (0, len(a), len(a) + len(b), len(a) + len(b) + len(c)))
    warps = lanes // WARP_SIZE
    # The room begins with a line of the cache.
    fields = *tables, 4 * WARP_SIZE, b_next, warps, sharing, tiles, -(-place_of(room) // 64) * 64
    state = np.array(fields, np.int64)
    return None if _compiled()(place_of(state)) else list(out)
