"""Tensor maps: 128 bytes that tell cp.async.bulk.tensor where a tensor lies and which box of it is copied.

NVIDIA's encoding is secret, and only the driver writes it. Here `encode_tiled` and `encode_im2col` write another, with
the arguments and the rules of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col (CUDA Driver API, "Tensor Map Object
Management"), which answer CUDA_ERROR_INVALID_VALUE where these name the rule. `TensorMap` says which bytes of the
tensor go where in shared memory (PTX ISA, "Tensors"): arrays for all 16-byte pieces of a box at once.

Numbers of type TFLOAT32 are rounded on their way to shared memory (to the nearest, ties to even, as an H100 does it;
subnormal ones, too, with and without FTZ) and stored as they are. FTZ changes neither loads nor stores there.

Not modelled: interleaved layouts, packed elements of 4 and 6 bits, and the wide im2col modes of later GPUs.
"""

import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

MAP_BYTES = 128
MAP_ALIGNMENT = 64
PIECE = 16  # bytes; boxes consist of them
MAX_BOX, MAX_PIXELS, MAX_STEP, MAX_RANK = 256, 1024, 8, 5
# Spans in bytes, by CUtensorMapSwizzle. Within 1024 bytes, pieces are exchanged by the line of 128 bytes.
SWIZZLES = {0: 0, 1: 32, 2: 64, 3: 128}

# By CUtensorMapDataType.
_TYPES = {
    0: "u1",
    1: "u2",
    2: "u4",
    3: "i4",
    4: "u8",
    5: "i8",
    6: "f2",
    7: "f4",
    8: "f8",
    9: "bf16",
    **dict.fromkeys((10, 11, 12), "f4"),
}
_FLUSHED, _ROUNDED = (10, 12), (11, 12)  # FLOAT32_FTZ, TFLOAT32, TFLOAT32_FTZ
_NOT_MODELLED = {13: "16U4_ALIGN8B", 14: "16U4_ALIGN16B"}
_TF32_NAN = np.uint32(0x7FFFE000)
_FLOATS = ("f2", "f4", "f8", "bf16")
# What fills a box outside the tensor where the map asks for NaN, as seen on an H100: `numerics.halves.OUTSIDE`.
_NAN = {"f2": 0x7FF7, "bf16": 0x7FF7, "f4": 0x7FF77FF7, "f8": 0x7FF77FF77FF77FF7}
# Of a window's corners, by the number of axes between channels and images.
_CORNERS = {1: (-32768, 32767), 2: (-128, 127), 3: (-16, 15)}

MAGIC = b"tensor\0\2"
_LAYOUT = struct.Struct("<8s5B3xQ4Q5I5H5Bx3h3hHH")
# Of each field, by its name in tensormap.replace, the first byte.
OFFSETS = {"elemtype": 8, "rank": 9, "interleave_layout": 13, "swizzle_mode": 11, "fill_mode": 12, "global_address": 16}
OFFSETS |= {"global_stride": 24, "global_dim": 56, "box_dim": 76, "element_stride": 86}


class Box(NamedTuple):
    """The pieces of the boxes at several places: arrays of shape (places, pieces), one row per place.

    `offset`: of each piece in shared memory from the box's start, before swizzling, uint64; one row serves all.
    `address`: of each unit of `unit` bytes in global memory, uint64, of shape (places, pieces, PIECE // unit).
    `inside`: likewise, whether it lies in the tensor.
    """

    offset: np.ndarray
    address: np.ndarray
    inside: np.ndarray
    unit: int


@dataclass(frozen=True)
class TensorMap:
    """A decoded tensor map. Axes are counted from the innermost. `strides`: bytes, from the second axis on.

    Tiled: `box` elements along each axis, `steps` apart. im2col: `channels` of `pixels` pixels of a window from `lower`
    to the image's end plus `upper`, innermost first. `span`: bytes of the swizzle, 0 for none. `rounded`: loads round
    float32 to TF32; `flushed`: an FTZ type.
    """

    dtype: str
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    span: int
    nan: bool
    im2col: bool = False
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    channels: int = 0
    pixels: int = 0
    rounded: bool = False
    flushed: bool = False

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def item(self) -> int:
        """Return bytes of an element."""
        return 2 if self.dtype == "bf16" else int(self.dtype[1])

    @property
    def line_bytes(self) -> int:
        """Return bytes of a box side by side, along the innermost axis."""
        return self.item * (self.channels if self.im2col else self.box[0])

    @functools.cached_property
    def lines(self) -> int:
        if self.im2col:
            return self.pixels
        return int(np.prod([-(-n // step) for n, step in zip(self.box[1:], self.steps[1:], strict=True)], dtype=int))

    @property
    def box_bytes(self) -> int:
        """Return what a barrier counts."""
        return self.lines * self.line_bytes

    @property
    def pitch(self) -> int:
        """Return bytes from one line of a box to the next in shared memory: the swizzle's, if lines are shorter."""
        return max(self.line_bytes, self.span)

    @property
    def room(self) -> int:
        """Return bytes of shared memory that a box lies in."""
        return (self.lines - 1) * self.pitch + (self.span or self.line_bytes)

    @property
    def fill(self) -> int:
        """Return the bits of an element outside the tensor."""
        return _NAN[self.dtype] if self.nan else 0

    def places(self, at: np.ndarray, offsets: np.ndarray | None = None) -> Box:
        """Return the pieces of the boxes at coordinates `at`, int64 of shape (places, rank).

        `offsets` (im2col): how much further each pixel is read, of shape (places, rank - 2), innermost first.
        """
        rows = self._pixels(at, offsets) if self.im2col else self._rows(at)
        unit = self._unit(at[:, 0])
        along = at[:, :1] * self.item + np.arange(0, self.line_bytes, unit)  # bytes from the start of the line
        inside = (along >= 0) & (along < self.sizes[0] * self.item)
        start = np.full((len(at), self.lines), self.address, np.int64)
        line_inside = np.ones(start.shape, bool)
        for coordinate, size, stride in zip(rows, self.sizes[1:], self.strides, strict=True):
            line_inside &= (coordinate >= 0) & (coordinate < size)
            start += coordinate * stride
        address = (start[:, :, None] + along[:, None, :]).reshape(len(at), -1, PIECE // unit)
        inside = (line_inside[:, :, None] & inside[:, None, :]).reshape(address.shape)
        within = np.arange(0, self.line_bytes, PIECE)
        offset = (np.arange(self.lines)[:, None] * self.pitch + within).astype(np.uint64).reshape(1, -1)
        return Box(offset, address.astype(np.uint64), inside, unit)

    def _unit(self, first: np.ndarray) -> int:
        """Return the most bytes, up to a piece, that lie side by side in memory, aligned, all inside or all outside."""
        bits = self.sizes[0] * self.item | PIECE | int(np.bitwise_or.reduce(first * self.item))
        return bits & -bits

    def _rows(self, at: np.ndarray) -> list[np.ndarray]:
        """Return of each line of boxes the coordinates along all axes but the innermost: arrays (places, lines)."""
        counts = [-(-n // step) for n, step in zip(self.box[1:], self.steps[1:], strict=True)]
        number = np.arange(self.lines)
        found = []
        for axis, (count, step) in enumerate(zip(counts, self.steps[1:], strict=True), 1):
            found.append(at[:, axis : axis + 1] + number % count * step)
            number = number // count
        return found

    def _pixels(self, at: np.ndarray, offsets: np.ndarray | None) -> list[np.ndarray]:
        """Return the same in im2col mode: pixel after pixel, row after row of the window, image after image."""
        number = np.broadcast_to(np.arange(self.pixels), (len(at), self.pixels))
        found = []
        for axis in range(1, self.rank - 1):
            low, high = self.lower[axis - 1], self.sizes[axis] - 1 + self.upper[axis - 1]
            step, first = self.steps[axis], at[:, axis : axis + 1]
            left = (high - first) // step + 1  # on the line where the walk begins
            count = (high - low) // step + 1
            later = number - left
            coordinate = np.where(later < 0, first + number * step, low + later % count * step)
            number = np.where(later < 0, 0, 1 + later // count)
            found.append(coordinate if offsets is None else coordinate + offsets[:, axis - 1 : axis])
        return [*found, at[:, -1:] + number * self.steps[-1]]


def rounded_to_tf32(bits: np.ndarray) -> np.ndarray:
    """Return float32 numbers, uint32, with the 10 bits of fraction that TF32 has."""
    even = bits >> np.uint32(13) & np.uint32(1)
    nearest = (bits + np.uint32(0xFFF) + even) & np.uint32(0xFFFFE000)
    return np.where(bits & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000), _TF32_NAN, nearest)


def swizzled(address: np.ndarray, span: int) -> np.ndarray:
    """Return where TMA puts what belongs at these addresses of shared memory: 16-byte pieces are exchanged by the
    number of their line of 128 bytes, modulo 2, 4 or 8."""
    if not span:
        return address
    return address ^ (address >> np.uint64(3) & np.uint64(span - PIECE))


def encode_tiled(
    data_type: int,
    rank: int,
    address: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int],
    interleave: int = 0,
    swizzle: int = 0,
    promotion: int = 0,
    fill: int = 0,
) -> bytes:
    """Return the map of a box of `box` elements, as by cuTensorMapEncodeTiled; enumerations are numbers.

    `sizes`, `box`, `steps`: along each of `rank` axes, the innermost first. `strides`: bytes, of all but the innermost.
    Raises ValueError that names the rule which the arguments break.
    """
    sizes, strides, box, steps = (tuple(map(int, given)) for given in (sizes, strides, box, steps))
    _demand(1 <= rank <= MAX_RANK, f"tensorRank is {rank}; it must be 1 to {MAX_RANK}")
    item = _check(data_type, rank, address, sizes, strides, steps, interleave, promotion, fill)
    _demand(len(box) >= rank, f"boxDim has {len(box)} entries for {rank} axes")
    box = box[:rank]
    _demand(all(1 <= n <= MAX_BOX for n in box), f"boxDim is {box}; its entries must be 1 to {MAX_BOX}")
    _check_line(box[0], item, swizzle, "boxDim[0]")
    return _packed(data_type, rank, 0, swizzle, fill, address, sizes, strides, box, steps)


def encode_im2col(
    data_type: int,
    rank: int,
    address: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    channels: int,
    pixels: int,
    steps: Sequence[int],
    interleave: int = 0,
    swizzle: int = 0,
    promotion: int = 0,
    fill: int = 0,
) -> bytes:
    """Return the map of a column of `pixels` pixels with `channels` channels each, as cuTensorMapEncodeIm2col takes its
    arguments: `lower`, `upper`: corners of the window, innermost (width) first. Otherwise as `encode_tiled`."""
    sizes, strides, lower, upper, steps = (tuple(map(int, given)) for given in (sizes, strides, lower, upper, steps))
    _demand(3 <= rank <= MAX_RANK, f"tensorRank is {rank}; im2col mode takes 3 to {MAX_RANK}")
    item = _check(data_type, rank, address, sizes, strides, steps, interleave, promotion, fill)
    axes = rank - 2
    low, high = _CORNERS[axes]
    for name, corner in (("pixelBoxLowerCorner", lower), ("pixelBoxUpperCorner", upper)):
        _demand(
            len(corner) >= axes and all(low <= n <= high for n in corner[:axes]),
            f"{name} is {corner}; with {rank} axes it has {axes} entries from {low} to {high}",
        )
    for size, first, beyond in zip(sizes[1:], lower[:axes], upper[:axes], strict=False):
        _demand(size - 1 + beyond >= first, "the window from pixelBoxLowerCorner to pixelBoxUpperCorner is empty")
    _demand(1 <= channels <= MAX_BOX, f"channelsPerPixel is {channels}; it must be 1 to {MAX_BOX}")
    _demand(1 <= pixels <= MAX_PIXELS, f"pixelsPerColumn is {pixels}; it must be 1 to {MAX_PIXELS}")
    _check_line(channels, item, swizzle, "channelsPerPixel")
    corners = lower[:axes], upper[:axes]
    return _packed(data_type, rank, 1, swizzle, fill, address, sizes, strides, (), steps, *corners, channels, pixels)


@functools.lru_cache(maxsize=256)
def decode(data: bytes) -> TensorMap | None:
    """Return the map that these 128 bytes encode, None if they are none."""
    if len(data) < _LAYOUT.size or not data.startswith(MAGIC):
        return None
    _, kind, rank, im2col, swizzle, fill, address, *rest = _LAYOUT.unpack_from(data)
    rank = rank or 1  # of a map whose rank was left zero, which stands for one axis
    strides, sizes, box, steps = rest[:4], rest[4:9], rest[9:14], rest[14:19]
    lower, upper, (channels, pixels) = rest[19:22], rest[22:25], rest[25:]
    axes = rank - 2 if im2col else 0
    return TensorMap(
        _TYPES[kind],
        address,
        tuple(n + 1 for n in sizes[:rank]),
        tuple(strides[: rank - 1]),
        tuple(box[: 0 if im2col else rank]),
        tuple(steps[:rank]),
        SWIZZLES[swizzle],
        bool(fill),
        bool(im2col),
        tuple(lower[:axes]),
        tuple(upper[:axes]),
        channels,
        pixels,
        kind in _ROUNDED,
        kind in _FLUSHED,
    )


def _packed(
    kind, rank, im2col, swizzle, fill, address, sizes, strides, box, steps, lower=(), upper=(), *column
) -> bytes:
    def padded(values: Sequence[int], count: int) -> list[int]:
        return [*values[:count], *[0] * (count - len(values))]

    fields = (
        *padded(strides[: rank - 1], 4),
        *padded([n - 1 for n in sizes[:rank]], 5),
        *padded(box, 5),
        *padded((1, *steps[1:rank]), 5),
        *padded(lower, 3),
        *padded(upper, 3),
        *padded(column, 2),
    )
    return _LAYOUT.pack(MAGIC, kind, rank, im2col, swizzle, fill, address, *fields).ljust(MAP_BYTES, b"\0")


def _check(data_type, rank, address, sizes, strides, steps, interleave, promotion, fill) -> int:
    """Check what both kinds of map have in common; return the bytes of an element."""
    if data_type in _NOT_MODELLED:
        raise ValueError(f"the simulator has no tensor maps of CU_TENSOR_MAP_DATA_TYPE_{_NOT_MODELLED[data_type]}")
    _demand(data_type in _TYPES, f"tensorDataType is {data_type}, which is no CUtensorMapDataType")
    kind = _TYPES[data_type]
    item = 2 if kind == "bf16" else int(kind[1])
    if interleave in (1, 2):
        raise ValueError("the simulator has no interleaved tensor maps: take CU_TENSOR_MAP_INTERLEAVE_NONE")
    _demand(interleave == 0, f"interleave is {interleave}, which is no CUtensorMapInterleave")
    _demand(promotion in range(4), f"l2Promotion is {promotion}, which is no CUtensorMapL2promotion")
    _demand(fill in (0, 1), f"oobFill is {fill}, which is no CUtensorMapFloatOOBfill")
    _demand(not fill or kind in _FLOATS, "oobFill asks for NaN, which integers do not have")
    _demand(address % 16 == 0, f"globalAddress is {address:#x}; it must be a multiple of 16")
    for name, given, count in (("globalDim", sizes, rank), ("globalStrides", strides, rank - 1)):
        _demand(len(given) >= count, f"{name} has {len(given)} entries and needs {count}")
    _demand(all(1 <= n <= 2**32 for n in sizes[:rank]), f"globalDim is {sizes}; its entries must be 1 to 2^32")
    _demand(
        all(n % 16 == 0 and 0 <= n < 2**40 for n in strides[: rank - 1]),
        f"globalStrides is {strides}; its entries must be multiples of 16 bytes below 2^40",
    )
    _demand(len(steps) >= rank, f"elementStrides has {len(steps)} entries for {rank} axes")
    _demand(
        all(1 <= n <= MAX_STEP for n in steps[:rank]), f"elementStrides is {steps}; its entries must be 1 to {MAX_STEP}"
    )
    return item


def _check_line(elements: int, item: int, swizzle: int, name: str) -> None:
    nbytes = elements * item
    _demand(nbytes % PIECE == 0, f"{name} is {elements}, {nbytes} bytes; it must be a multiple of 16 bytes")
    if swizzle in (4, 5, 6):
        raise ValueError("the simulator has no swizzles of other atoms than 16 bytes, which GPUs have after Hopper")
    _demand(swizzle in SWIZZLES, f"swizzle is {swizzle}, which is no CUtensorMapSwizzle")
    span = SWIZZLES[swizzle]
    _demand(
        not span or nbytes <= span,
        f"{name} is {elements}, {nbytes} bytes; with CU_TENSOR_MAP_SWIZZLE_{span}B it is at most {span} bytes",
    )


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)
