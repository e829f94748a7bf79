"""cupy.cuda.texture on the simulator: CUDA arrays, textures and surfaces, for the kernels of RawKernel and RawModule.

Missing are mipmaps, which CuPy does not have either, conversion from sRGB, and texture references, which CUDA 12
removed.
"""

import weakref
from collections.abc import Sequence as _Sequence

import numpy as np

from warplab import simulator as _simulator
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.launch.device_arrays import Buffer as _Buffer
from warplab.launch.device_arrays import DeviceArray as _DeviceArray
from warplab.simulator.memory import texels as _texels

CONSTANTS = {
    **{f"cudaResourceType{name}": n for n, name in enumerate(("Array", "MipmappedArray", "Linear", "Pitch2D"))},
    **{f"cudaChannelFormatKind{name}": n for n, name in enumerate(("Signed", "Unsigned", "Float", "None"))},
    **{f"cudaAddressMode{name}": n for n, name in enumerate(("Wrap", "Clamp", "Mirror", "Border"))},
    **{f"cudaFilterMode{name}": n for n, name in enumerate(("Point", "Linear"))},
    **{f"cudaReadMode{name}": n for n, name in enumerate(("ElementType", "NormalizedFloat"))},
    "cudaArrayDefault": 0,
    "cudaArrayLayered": 1,
    "cudaArraySurfaceLoadStore": 2,
    "cudaArrayCubemap": 4,
    "cudaArrayTextureGather": 8,
}
_ARRAY, _MIPMAPPED, _LINEAR, _PITCH2D = range(4)
_LAYERED, _SURFACE, _CUBE, _GATHER = 1, 2, 4, 8
_KINDS = ("signed", "unsigned", "float")
_ALIGNMENT, _PITCH_ALIGNMENT = 512, 32  # bytes: cudaDeviceProp::textureAlignment, texturePitchAlignment
_CLAMP, _BORDER = "clamp", "border"


class ChannelFormatDescriptor:
    """The format of a texel: bits of the channels x, y, z and w, and their kind (`cudaChannelFormatKind...`)."""

    def __init__(self, x: int, y: int, z: int, w: int, f: int) -> None:
        self._format = {"x": int(x), "y": int(y), "z": int(z), "w": int(w), "f": int(f)}

    def get_channel_format(self) -> dict[str, int]:
        return dict(self._format)

    def _texel(self) -> _texels.TexelFormat:
        *bits, kind = self._format.values()
        used = [b for b in bits if b]
        if used != bits[: len(used)] or len(set(used)) != 1 or kind not in (0, 1, 2):
            raise ValueError(
                f"channels of {bits} bits, kind {kind}: give the first 1, 2 or 4 channels the same number of bits, and "
                "one of cudaChannelFormatKindSigned, Unsigned and Float"
            )
        return _texels.TexelFormat(_KINDS[kind], used[0], len(used))


class CUDAarray:
    """A CUDA array of 1 to 3 dimensions, for textures and surfaces. `width`, `height`, `depth`: in texels.

    `flags`: `cudaArray...`; a layered array has `depth` layers of two dimensions, a cube map six for each cube.
    Values are undefined until `copy_from` or a surface writes them.
    """

    def __init__(
        self, desc: ChannelFormatDescriptor, width: int, height: int = 0, depth: int = 0, flags: int = 0
    ) -> None:
        if width == 0:
            raise ValueError("To create a CUDA array, width must be nonzero.")
        if height == 0 and depth > 0:
            raise ValueError("To create a 2D CUDA array, height must be nonzero.")
        self.desc, self.width, self.height, self.depth, self.flags = desc, width, height, depth, flags
        self.ndim = 3 if depth > 0 else 2 if height > 0 else 1
        form = desc._texel()
        layered = bool(flags & (_LAYERED | _CUBE))
        if layered and not depth:
            raise ValueError("a layered CUDA array or a cube map needs `depth`, its number of layers")
        if flags & _CUBE and (width != height or (depth != 6 if not flags & _LAYERED else depth % 6)):
            raise ValueError(f"a cube map has six layers that are squares, not {depth} of {width} x {height} texels")
        if flags & _GATHER and (self.ndim != 2 or layered):
            raise ValueError("only a 2D CUDA array can be made with cudaArrayTextureGather")
        self._shape = (width, height, depth)[: 2 if layered else self.ndim]
        self._buffer = _Buffer(form.nbytes * width * max(height, 1) * max(depth, 1))
        allocation = self._buffer.device.memory.find(self._buffer.address)
        if allocation is not None:
            allocation.name, allocation.item = "CUDA array", form.bits // 8
        self._texels = _texels.Texels(
            self._buffer.address,
            form,
            self._shape,
            width * form.nbytes,
            layers=depth if layered else None,
            cube=bool(flags & _CUBE),
            surface=bool(flags & _SURFACE),
            gather=bool(flags & _GATHER),
        )
        self.ptr = self._buffer.address

    def copy_from(self, in_arr, stream=None) -> None:
        """Copy from a NumPy or CuPy array of shape (depth, height, channels * width), without the axes it lacks."""
        self._view(in_arr)[...] = in_arr._view if isinstance(in_arr, _DeviceArray) else in_arr
        self._buffer.device.memory.mark_initialized(self._buffer.address, self._buffer.nbytes)

    def copy_to(self, out_arr, stream=None) -> None:
        """Copy to a NumPy or CuPy array of the shape that `copy_from` takes; it must be C-contiguous."""
        if not out_arr.flags.c_contiguous:
            raise ValueError("The output array must be C-contiguous")
        values = self._view(out_arr)
        if isinstance(out_arr, _DeviceArray):
            out_arr._write(..., values)
        else:
            out_arr[...] = values

    def _view(self, other) -> np.ndarray:
        """Return the texels as an array, for copies from or to `other`, which must fit."""
        self._buffer.device.synchronize()
        form = self._texels.format
        shape = (*(n for n in (self.depth, self.height) if n), form.channels * self.width)
        if not isinstance(other, _DeviceArray | np.ndarray):
            raise TypeError(f"a CUDA array copies from and to arrays of NumPy and CuPy, not {type(other).__name__}")
        if other.shape != shape:
            raise ValueError(f"shape mismatch: the array has shape {other.shape}, but the CUDA array takes {shape}")
        if other.dtype != np.dtype(form.dtype):
            have = np.dtype(form.dtype).name
            raise ValueError(f"dtype mismatch: the array holds {other.dtype}, the CUDA array {have}")
        return self._buffer.bytes.view(form.dtype).reshape(shape)


class ResourceDescriptor:
    """What a texture or surface is made of: a CUDA array (`cuArr`), or a CuPy array as linear memory (`arr`, `chDesc`,
    `sizeInBytes`) or as rows of `pitchInBytes` (`arr`, `chDesc`, `width`, `height`)."""

    def __init__(
        self,
        restype: int,
        cuArr: CUDAarray | None = None,
        arr: _DeviceArray | None = None,
        chDesc: ChannelFormatDescriptor | None = None,
        sizeInBytes: int = 0,
        width: int = 0,
        height: int = 0,
        pitchInBytes: int = 0,
    ) -> None:
        if restype == _MIPMAPPED:
            raise NotImplementedError("cudaResourceTypeMipmappedArray is currently not supported.")
        if restype == _ARRAY and not isinstance(cuArr, CUDAarray):
            raise TypeError("cudaResourceTypeArray needs cuArr, a CUDAarray")
        if restype in (_LINEAR, _PITCH2D) and not (isinstance(arr, _DeviceArray) and chDesc is not None):
            raise TypeError("linear and pitched memory need arr, a cupy.ndarray, and chDesc")
        self.restype, self.cuArr, self.arr, self.chDesc = restype, cuArr, arr, chDesc
        self._bytes, self._size, self._pitch = sizeInBytes, (width, height), pitchInBytes

    def get_resource_desc(self) -> dict:
        desc: dict = {"resType": self.restype}
        if self.cuArr is not None and self.restype == _ARRAY:
            return desc | {"array": {"array": self.cuArr.ptr}}
        assert self.arr is not None
        assert self.chDesc is not None
        memory = {"devPtr": self.arr._address, "desc": self.chDesc.get_channel_format()}
        if self.restype == _LINEAR:
            return desc | {"linear": memory | {"sizeInBytes": self._bytes}}
        width, height = self._size
        return desc | {"pitch2D": memory | {"width": width, "height": height, "pitchInBytes": self._pitch}}

    def _texels(self) -> _texels.Texels:
        if self.cuArr is not None and self.restype == _ARRAY:
            return self.cuArr._texels
        if self.restype not in (_LINEAR, _PITCH2D) or self.arr is None or self.chDesc is None:
            raise ValueError(f"resource type {self.restype} is none of cudaResourceTypeArray, Linear and Pitch2D")
        form, address = self.chDesc._texel(), self.arr._address
        if address % _ALIGNMENT:
            raise ValueError(f"the memory of a texture must begin at a multiple of {_ALIGNMENT} bytes; copy the array")
        if self.restype == _LINEAR:
            shape: tuple[int, ...] = (self._bytes // form.nbytes,)
            source, pitch, needed = "linear", self._bytes, self._bytes
        else:
            shape, source, pitch = self._size, "pitch2D", self._pitch
            needed = pitch * (shape[1] - 1) + shape[0] * form.nbytes
            if pitch % _PITCH_ALIGNMENT or pitch < shape[0] * form.nbytes:
                raise ValueError(
                    f"pitchInBytes={pitch} must be a multiple of {_PITCH_ALIGNMENT} and hold a row of "
                    f"{shape[0]} texels of {form.nbytes} bytes"
                )
        if min(shape) < 1 or needed > self.arr.nbytes:
            raise ValueError(f"{needed:,} bytes of texels in an array of {self.arr.nbytes:,} bytes: check the sizes")
        return _texels.Texels(address, form, shape, pitch, source)


class TextureDescriptor:
    """How a texture makes values of coordinates: `cudaAddressMode...` per axis, `cudaFilterMode...`,
    `cudaReadMode...`, the border's four channels, and whether coordinates run from 0 to 1."""

    def __init__(
        self,
        addressModes: _Sequence[int] | None = None,
        filterMode: int = 0,
        readMode: int = 0,
        sRGB: int | None = None,
        borderColors: _Sequence[float] | None = None,
        normalizedCoords: int | None = None,
        maxAnisotropy: int | None = None,
    ) -> None:
        modes, border = list(addressModes or ()), list(borderColors or ())
        if len(modes) > 3 or len(border) > 4:
            raise ValueError("a texture has at most 3 address modes and 4 border colors")
        if any(mode not in range(4) for mode in modes) or filterMode not in (0, 1) or readMode not in (0, 1):
            raise ValueError("use cupy.cuda.runtime's cudaAddressMode..., cudaFilterMode... and cudaReadMode...")
        self._modes, self._filter, self._read = (*modes, 0, 0, 0)[:3], filterMode, readMode
        self._srgb, self._normalized = int(sRGB or 0), int(normalizedCoords or 0)
        self._border = tuple(map(float, (*border, 0, 0, 0, 0)[:4]))
        self._anisotropy = int(maxAnisotropy or 0)

    def get_texture_desc(self) -> dict:
        return {
            "addressMode": self._modes,
            "filterMode": self._filter,
            "readMode": self._read,
            "sRGB": self._srgb,
            "borderColor": self._border,
            "normalizedCoords": self._normalized,
            "maxAnisotropy": self._anisotropy,
        }

    def _sampler(self) -> _texels.Sampler:
        if self._srgb:
            raise NotImplementedError("conversion from sRGB is not on the simulator; convert before copy_from")
        modes = [_texels.ADDRESS_MODES[mode] for mode in self._modes]
        if not self._normalized:  # as CUDA does
            modes = [mode if mode == _BORDER else _CLAMP for mode in modes]
        border = np.array(self._border, np.float32).tolist()
        return _texels.Sampler(
            (modes[0], modes[1], modes[2]), bool(self._filter), bool(self._normalized), bool(self._read), tuple(border)
        )


class _Object:
    """A texture or surface object. `ptr`: its handle, which a kernel is given."""

    def __init__(self, ResDesc: ResourceDescriptor, made: _texels.Texture | _texels.Surface) -> None:
        self.ResDesc = ResDesc
        owner = ResDesc.cuArr if ResDesc.restype == _ARRAY else ResDesc.arr
        device = owner._buffer.device if owner is not None else _simulator.default_device()
        handles = device.memory.handles
        self.ptr = handles.add(made)
        weakref.finalize(self, handles.remove, self.ptr).atexit = False


class TextureObject(_Object):
    """A texture, for a kernel's parameter of type `cudaTextureObject_t`."""

    def __init__(self, ResDesc: ResourceDescriptor, TexDesc: TextureDescriptor) -> None:
        self.TexDesc = TexDesc
        super().__init__(ResDesc, _texels.Texture(ResDesc._texels(), TexDesc._sampler()))


class SurfaceObject(_Object):
    """A surface, for a kernel's parameter of type `cudaSurfaceObject_t`. Its CUDA array needs the flag
    `cudaArraySurfaceLoadStore`."""

    def __init__(self, ResDesc: ResourceDescriptor) -> None:
        if ResDesc.restype != _ARRAY:
            raise ValueError("a surface needs a CUDA array (cudaResourceTypeArray)")
        super().__init__(ResDesc, _texels.Surface(ResDesc._texels()))


def __getattr__(name: str):
    raise _missing("cupy.cuda.texture", name)
