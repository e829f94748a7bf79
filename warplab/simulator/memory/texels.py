"""Textures and surfaces: arrays of texels in device memory, and the handles by which kernels name them.

A GPU keeps the texels of a CUDA array in an order of its own. Here they lie row by row: `Texels` says where. A
`Texture` adds the rules by which coordinates become a value; a `Surface` has none, its coordinates are those of the
texels.
[CUDA Runtime API: cudaResourceDesc, cudaTextureDesc, cudaChannelFormatDesc]
"""

import math
from dataclasses import dataclass

import numpy as np

ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")  # in the order of cudaTextureAddressMode
_KINDS = {"signed": "i", "unsigned": "u", "float": "f"}
_FIRST_HANDLE, _STEP = 1 << 52, 64  # beyond all addresses
_REMEMBERED = 64


@dataclass(frozen=True)
class TexelFormat:
    """`kind`: "signed", "unsigned" or "float". `bits`: per channel, 8, 16 or 32 (16 or 32 for "float"). `channels`: 1,
    2 or 4. Raises ValueError for a format that no texture has."""

    kind: str
    bits: int
    channels: int

    def __post_init__(self) -> None:
        widths = (16, 32) if self.kind == "float" else (8, 16, 32)
        if self.kind not in _KINDS or self.bits not in widths or self.channels not in (1, 2, 4):
            raise ValueError(
                f"texels of {self.channels} channels of {self.bits} bits, kind {self.kind!r}: a texture has 1, 2 or 4 "
                "channels of 8, 16 or 32 bits, of 16 or 32 if they are floating-point numbers"
            )

    @property
    def dtype(self) -> str:
        """Return NumPy dtype of a channel."""
        return f"{_KINDS[self.kind]}{self.bits // 8}"

    @property
    def nbytes(self) -> int:
        """Return bytes of a texel."""
        return self.bits // 8 * self.channels

    def __str__(self) -> str:
        return f"{self.channels} x {np.dtype(self.dtype).name}" if self.channels > 1 else np.dtype(self.dtype).name


@dataclass(eq=False)
class Texels:
    """Where texels lie. `address`: of the first one. `shape`: texels along x, y, z. `pitch`: bytes from row to row.

    `layers`: how many arrays of this shape follow one another, None if it is not a layered array; six for each cube
    map (`cube`). `source`: "array", "linear" (linear memory, by integer coordinates only) or "pitch2D".
    `surface`: may a surface be made of it? `gather`: may a kernel gather from it?
    """

    address: int
    format: TexelFormat
    shape: tuple[int, ...]
    pitch: int
    source: str = "array"
    layers: int | None = None
    cube: bool = False
    surface: bool = False
    gather: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        """Return bytes from texel to texel along x, y, z."""
        return self.format.nbytes, self.pitch, self.pitch * (*self.shape, 1)[1]

    @property
    def layer_bytes(self) -> int:
        return self.pitch * math.prod(self.shape[1:])

    def place(self, address: int) -> tuple[tuple[int, ...], int]:
        """Return the coordinates of the texel at an address, and its layer."""
        layer, offset = divmod(address - self.address, self.layer_bytes)
        row, byte = divmod(offset, self.pitch)
        place = byte // self.format.nbytes, row % (*self.shape, 1)[1], row // (*self.shape, 1)[1]
        return place[: len(self.shape)], layer

    def describe(self) -> str:
        """Return words for an error: "a 2D array of 64 x 32 texels (float32)"."""
        size = " x ".join(map(str, self.shape))
        layers = "" if self.layers is None else f" in {self.layers} layers"
        what = {"array": f"a {len(self.shape)}D array", "linear": "linear memory", "pitch2D": "pitched memory"}
        return f"{what[self.source]} of {size} texels{layers} ({self.format})"


@dataclass(frozen=True)
class Sampler:
    """How a texture makes a value of coordinates.

    `modes`: for each axis one of ADDRESS_MODES. `linear`: filter linearly, else take the nearest texel.
    `normalized`: do coordinates run from 0 to 1, else in texels? `as_float`: return integers of 8 or 16 bits as numbers
    from 0 or -1 to 1. `border`: the four channels outside of the array where the mode is "border".
    """

    modes: tuple[str, str, str] = ("clamp", "clamp", "clamp")
    linear: bool = False
    normalized: bool = False
    as_float: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)


@dataclass(eq=False)
class Texture:
    """What a texture handle stands for. Raises ValueError for a sampler that its texels do not allow."""

    texels: Texels
    sampler: Sampler

    def __post_init__(self) -> None:
        if self.sampler.linear and not self.returns_float and self.texels.source != "linear":
            raise ValueError(
                f"linear filtering of {self.texels.format} texels that are read as integers: it needs floating-point "
                "texels, or cudaReadModeNormalizedFloat for integers of 8 or 16 bits"
            )

    @property
    def returns_float(self) -> bool:
        form = self.texels.format
        return form.kind == "float" or (self.sampler.as_float and form.bits < 32)


@dataclass(eq=False)
class Surface:
    """What a surface handle stands for. Raises ValueError for texels that no surface can be made of."""

    texels: Texels

    def __post_init__(self) -> None:
        if not self.texels.surface:
            raise ValueError(
                f"a surface of {self.texels.describe()}, which kernels may only read: make the CUDA array with "
                "flags=cudaArraySurfaceLoadStore"
            )


class Handles:
    """Textures and surfaces by handle, the 64-bit number that a kernel is given."""

    def __init__(self) -> None:
        self._known: dict[int, Texture | Surface] = {}
        self._removed: list[int] = []
        self._next = _FIRST_HANDLE

    def add(self, what: Texture | Surface) -> int:
        """Return the handle of a new texture or surface."""
        handle, self._next = self._next, self._next + _STEP
        self._known[handle] = what
        return handle

    def remove(self, handle: int) -> None:
        """Forget a texture or surface, as when its object is destroyed."""
        self._known.pop(handle, None)
        self._removed = [*self._removed[1 - _REMEMBERED :], handle]

    def find(self, handle: int) -> Texture | Surface | None:
        return self._known.get(handle)

    def addresses(self) -> set[int]:
        """Return where the texels of all textures and surfaces begin."""
        return {what.texels.address for what in self._known.values()}

    def was_removed(self, handle: int) -> bool:
        """Return whether it is the handle of an object that was destroyed lately."""
        return handle in self._removed
