"""Programs that others published, each with a host part of our own: data, launches, and a check against NumPy.

A host part gets the program's device code (`Code`), launches its kernels as the program does, on fewer data, and
asserts what the program's own check asserts. None of the published code is kept here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from warplab.dropin import cupy as cp
from warplab.dropin.cupy.cuda import texture

ARRAY, LINEAR, PITCHED = 0, 2, 3  # cudaResourceType
WRAP, CLAMP = 0, 1  # cudaAddressMode
SURFACE, LAYERED, CUBE = 2, 1, 4  # flags of a CUDA array


class Code:
    """Device code of a program. `kernel` returns a kernel of it by name, as in C++: "f", or "f<float, 128>"."""

    def __init__(self, text: str) -> None:
        self.text = text

    def kernel(self, name: str, extern_c: bool = False, **options):
        module = self._module(name, extern_c)
        return module.get_function(name)

    @functools.cache  # noqa: B019 - a program's modules live as long as the program
    def _module(self, name: str, extern_c: bool):
        return cp.RawModule(code=self.text, options=("-std=c++17",), name_expressions=None if extern_c else (name,))

    def constant(self, kernel, name: str, values: np.ndarray, extern_c: bool = False) -> None:
        """Write a `__constant__` or `__device__` variable that a kernel uses."""
        entry = kernel._warplab_source.load()
        program = entry.program
        mangled = next(v for v in program.variables if v == name or f"{len(name)}{name}" in v)
        device = cp.cuda.Device()._device
        address = device.variable_address(program, mangled)
        data = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
        device.memory.view(address, data.size)[:] = data


@dataclass(frozen=True)
class Program:
    """`source`: repository. `files`: of it, in the order in which they are compiled together. `kernels`: for the page.
    `settings`: lines before the code, such as macros that the program's build sets."""

    source: str
    name: str
    files: tuple[str, ...]
    kernels: str
    run: Callable[[Code], None]
    settings: str = ""


PROGRAMS: list[Program] = []
SAMPLES = "NVIDIA/cuda-samples"
LLM = "karpathy/llm.c"
SGEMM = "siboehm/SGEMM_CUDA"


def program(source: str, name: str, files: Sequence[str] | str, kernels: str, settings: str = ""):
    """Register a host part."""

    def register(run: Callable[[Code], None]) -> Callable[[Code], None]:
        listed = (files,) if isinstance(files, str) else tuple(files)
        PROGRAMS.append(Program(source, name, listed, kernels, run, settings))
        return run

    return register


def floats(shape, seed: int = 0, low: float = -1, high: float = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def uints(shape, most: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, most, shape).astype(np.uint32)


def close(got, expected, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    np.testing.assert_allclose(cp.asnumpy(got), expected, rtol=rtol, atol=atol)


def equal(got, expected) -> None:
    np.testing.assert_array_equal(cp.asnumpy(got), expected)


def i4(n: int) -> np.int32:
    return np.int32(n)


# -- textures and surfaces -----------------------------------------------------------------------------------------


def cuda_array(data: np.ndarray, channels: int = 1, flags: int = 0) -> texture.CUDAarray:
    kind = {"i": 0, "u": 1, "f": 2}[data.dtype.kind]
    bits = [8 * data.itemsize] * channels + [0] * (4 - channels)
    z, y, x = (*(0,) * (3 - data.ndim), *data.shape)
    made = texture.CUDAarray(texture.ChannelFormatDescriptor(*bits, kind), x // channels, y, z, flags)
    made.copy_from(data)
    return made


def textured(data, mode: int = WRAP, linear: bool = True, normalized: bool = True, as_float: bool = False, **more):
    made = data if isinstance(data, texture.CUDAarray) else cuda_array(data, **more)
    rules = texture.TextureDescriptor((mode,) * 3, int(linear), int(as_float), normalizedCoords=int(normalized))
    return texture.TextureObject(texture.ResourceDescriptor(ARRAY, cuArr=made), rules)


def interpolated(data: np.ndarray, x: np.ndarray, y: np.ndarray, wrap: bool) -> np.ndarray:
    """Bilinear interpolation at x, y, in texels from the array's corner."""
    height, width = data.shape

    def at(i, n):
        return i % n if wrap else np.clip(i, 0, n - 1)

    x0, y0 = np.floor(x - 0.5).astype(int), np.floor(y - 0.5).astype(int)
    a, b = x - 0.5 - x0, y - 0.5 - y0
    corners = [[data[at(y0 + j, height), at(x0 + i, width)] for i in (0, 1)] for j in (0, 1)]
    top, bottom = ((1 - a) * row[0] + a * row[1] for row in corners)
    return (1 - b) * top + b * bottom


def rotated(data: np.ndarray, theta: float, centre: float) -> np.ndarray:
    """Turn a picture about its middle, as several samples do; `centre`: 0.5 where pixels are told by their corner."""
    height, width = data.shape
    y, x = np.mgrid[:height, :width].astype(np.float64)
    u, v = (x - width / 2) / width, (y - height / 2) / height
    if centre:  # distances in pixels, not in parts of the picture
        u, v = x - width / 2, y - height / 2
        tu, tv = u * np.cos(theta) - v * np.sin(theta), v * np.cos(theta) + u * np.sin(theta)
        return interpolated(data, tu + width / 2, tv + height / 2, wrap=True)
    tu, tv = u * np.cos(theta) - v * np.sin(theta), v * np.cos(theta) + u * np.sin(theta)
    return interpolated(data, (tu + 0.5) * width, (tv + 0.5) * height, wrap=True)


INTRO = "Samples/0_Introduction"
CONCEPTS = "Samples/2_Concepts_and_Techniques"
DOMAIN = "Samples/5_Domain_Specific"


@program(SAMPLES, "simpleTexture", f"{INTRO}/simpleTexture/simpleTexture.cu", "transformKernel")
def _simple_texture(code: Code) -> None:
    data, out = floats((64, 64), low=0), cp.zeros((64, 64), "f4")
    code.kernel("transformKernel")((8, 8), (8, 8), (out, i4(64), i4(64), np.float32(0.5), textured(data)))
    close(out, rotated(data, 0.5, centre=0.5), atol=5e-3)


@program(
    SAMPLES,
    "simplePitchLinearTexture",
    f"{INTRO}/simplePitchLinearTexture/simplePitchLinearTexture.cu",
    "shiftPitchLinear, shiftArray",
)
def _simple_pitch_linear(code: Code) -> None:
    data = floats((32, 64))
    rules = texture.TextureDescriptor((WRAP, WRAP), 0, 0, normalizedCoords=1)
    memory = cp.asarray(data)
    resource = texture.ResourceDescriptor(
        PITCHED,
        arr=memory,
        chDesc=texture.ChannelFormatDescriptor(32, 0, 0, 0, 2),
        width=64,
        height=32,
        pitchInBytes=256,
    )
    made = {"shiftPitchLinear": texture.TextureObject(resource, rules), "shiftArray": textured(data, linear=False)}
    for name, object_ in made.items():
        out = cp.zeros((32, 64), "f4")
        code.kernel(name)((4, 2), (16, 16), (out, i4(64), i4(64), i4(32), i4(-16), i4(-8), object_))
        equal(out, np.roll(data, (8, 16), (0, 1)))


@program(SAMPLES, "simpleLayeredTexture", f"{INTRO}/simpleLayeredTexture/simpleLayeredTexture.cu", "transformKernel")
def _simple_layered(code: Code) -> None:
    data, out = floats((5, 32, 32)), cp.zeros((5, 32, 32), "f4")
    made = textured(data, flags=LAYERED)
    for layer in range(5):
        code.kernel("transformKernel")((4, 4), (8, 8), (out, i4(32), i4(32), i4(layer), made))
    close(out, -data + np.arange(5)[:, None, None])


@program(SAMPLES, "simpleCubemapTexture", f"{INTRO}/simpleCubemapTexture/simpleCubemapTexture.cu", "transformKernel")
def _simple_cubemap(code: Code) -> None:
    data, out = floats((6, 32, 32)), cp.zeros((6, 32, 32), "f4")
    code.kernel("transformKernel")((4, 4), (8, 8), (out, i4(32), textured(data, flags=CUBE)))
    close(out, -data)


@program(
    SAMPLES,
    "simpleSurfaceWrite",
    f"{INTRO}/simpleSurfaceWrite/simpleSurfaceWrite.cu",
    "surfaceWriteKernel, transformKernel",
)
def _simple_surface(code: Code) -> None:
    data, out = floats((64, 64), low=0), cp.zeros((64, 64), "f4")
    made = texture.CUDAarray(texture.ChannelFormatDescriptor(32, 0, 0, 0, 2), 64, 64, flags=SURFACE)
    target = texture.SurfaceObject(texture.ResourceDescriptor(ARRAY, cuArr=made))
    code.kernel("surfaceWriteKernel")((8, 8), (8, 8), (cp.asarray(data), i4(64), i4(64), target))
    code.kernel("transformKernel")((8, 8), (8, 8), (out, i4(64), i4(64), np.float32(0.5), textured(made)))
    close(out, rotated(data, 0.5, centre=0), atol=5e-3)


@program(
    SAMPLES,
    "simpleTexture3D",
    f"{INTRO}/simpleTexture3D/simpleTexture3D_kernel.cu",
    "d_render",
    "typedef unsigned int uint; typedef unsigned char uchar;",
)
def _simple_3d(code: Code) -> None:
    data, out = uints((16, 16, 16), 256).astype("u1"), cp.zeros((32, 32), "u4")
    made = textured(data, as_float=True)
    code.kernel("d_render", extern_c=False)(
        (2, 2), (16, 16), (out, np.uint32(32), np.uint32(32), np.float32(0.5), made)
    )
    y, x = np.mgrid[:32, :32] / 32
    planes = [interpolated(data[k] / 255, x * 16, y * 16, wrap=True) for k in (7, 8)]
    close(out.get() & 255, np.floor((planes[0] + planes[1]) / 2 * 255), atol=2)


@program(
    SAMPLES,
    "bicubicTexture",
    f"{DOMAIN}/bicubicTexture/bicubicTexture_kernel.cuh",
    "d_render, d_renderBicubic, d_renderFastBicubic, d_renderCatRom",
    "typedef unsigned int uint; typedef unsigned char uchar;",
)
def _bicubic(code: Code) -> None:
    data = np.add.outer(4 * np.arange(32), 3 * np.arange(32)).astype("u1")  # a plane, which all filters but one keep
    results = {}
    for name in ("d_render", "d_renderBicubic", "d_renderFastBicubic", "d_renderCatRom"):
        out = cp.zeros((24, 24), np.dtype("4u1"))
        made = textured(
            data, CLAMP, normalized=False, as_float=True, linear=name in ("d_render", "d_renderFastBicubic")
        )
        numbers = np.float32(4.25), np.float32(4.25), np.float32(0.75), np.float32(12), np.float32(12)
        code.kernel(name)((2, 2), (16, 16), (out, np.uint32(24), np.uint32(24), *numbers, made))
        results[name] = out.get()[..., 0].astype(int)
    place = (np.arange(24) - 12) * 0.75 + 12 + 4.25 - 0.5
    expected = np.add.outer(4 * place, 3 * place)
    for name in ("d_render", "d_renderBicubic", "d_renderFastBicubic"):
        close(results[name][:20, :20], expected[:20, :20], atol=2.5)
    close(results["d_renderCatRom"][:20, :20], expected[:20, :20], atol=3.5)


@program(
    SAMPLES,
    "convolutionTexture",
    (
        f"{CONCEPTS}/convolutionTexture/convolutionTexture_common.h",
        f"{CONCEPTS}/convolutionTexture/convolutionTexture.cu",
    ),
    "convolutionRowsKernel, convolutionColumnsKernel",
)
def _convolution_texture(code: Code) -> None:
    data, weights = floats((48, 64)), floats(17, 1)
    for name, axis in (("convolutionRowsKernel", 1), ("convolutionColumnsKernel", 0)):
        out, kernel = cp.zeros((48, 64), "f4"), code.kernel(name)
        code.constant(kernel, "c_Kernel", weights)
        kernel((4, 4), (16, 12), (out, i4(64), i4(48), textured(data, CLAMP, linear=False, normalized=False)))
        close(out, _convolved(data, weights, axis, edge=True), atol=1e-5)


def _convolved(data: np.ndarray, weights: np.ndarray, axis: int, edge: bool) -> np.ndarray:
    radius = len(weights) // 2
    pad = [(radius, radius) if k == axis else (0, 0) for k in range(2)]
    padded = np.pad(data.astype(np.float64), pad, mode="edge" if edge else "constant")
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(weights), axis)
    return windows @ weights[::-1]


@program(SAMPLES, "HSOpticalFlow (warping)", f"{DOMAIN}/HSOpticalFlow/warpingKernel.cuh", "WarpingKernel")
def _warping(code: Code) -> None:
    data, u, v = floats((24, 32)), floats((24, 32), 1, -2, 2), floats((24, 32), 2, -2, 2)
    out, made = cp.zeros((24, 32), "f4"), textured(np.pad(data, ((0, 0), (0, 0))), 2)
    code.kernel("WarpingKernel")((1, 4), (32, 6), (i4(32), i4(24), i4(32), cp.asarray(u), cp.asarray(v), out, made))
    y, x = np.mgrid[:24, :32]
    mirrored = np.pad(data, 4, mode="symmetric")
    close(out, interpolated(mirrored, x + u + 4.5, y + v + 4.5, wrap=False), atol=1e-2)


@program(
    SAMPLES,
    "volumeFiltering",
    (
        "Common/helper_math.h",
        *(f"{DOMAIN}/volumeFiltering/{file}" for file in ("volume.h", "volumeFilter.h", "volumeFilter_kernel.cu")),
    ),
    "d_filter_surface3d",
    "struct cudaArray;",
)
def _volume_filter(code: Code) -> None:
    data, weights = uints((6, 8, 10), 256, 11).astype("u1"), np.zeros((125, 4), "f4")
    steps = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)])
    weights[:27, :3], weights[:27, 3] = steps, floats(27, 12, 0, 0.05)
    target = texture.CUDAarray(texture.ChannelFormatDescriptor(8, 0, 0, 0, 1), 10, 8, 6, SURFACE)
    kernel = code.kernel("d_filter_surface3d")
    code.constant(kernel, "c_filterData", weights)
    size = np.array([(10, 8, 6)], np.dtype([("width", "u8"), ("height", "u8"), ("depth", "u8")]))[0]
    made = textured(data, CLAMP, linear=False, normalized=False, as_float=True)
    surface = texture.SurfaceObject(texture.ResourceDescriptor(ARRAY, cuArr=target))
    kernel((2, 1, 6), (8, 8, 1), (i4(27), np.float32(0.1), size, made, surface))
    got = np.zeros_like(data)
    target.copy_to(got)
    padded = np.pad(data / 255.0, 1, mode="edge")
    parts = (w * padded[1 + z : 7 + z, 1 + y : 9 + y, 1 + x : 11 + x] for (x, y, z, w) in _steps(weights))
    close(got.astype(int), np.floor(np.clip(sum(parts) + 0.1, 0, 1) * 255), atol=1)


def _steps(weights: np.ndarray) -> list[tuple[int, int, int, float]]:
    return [(int(x), int(y), int(z), float(w)) for x, y, z, w in weights[:27]]


@program(SAMPLES, "stereoDisparity", f"{DOMAIN}/stereoDisparity/stereoDisparity_kernel.cuh", "stereoDisparityKernel")
def _stereo(code: Code) -> None:
    left = np.random.default_rng(3).integers(0, 256, (32, 64, 4)).astype("u1")
    right = np.roll(left, 5, 1)  # every point lies five pixels to the right
    images = [np.ascontiguousarray(image).view("u4").reshape(32, 64) for image in (left, right)]
    objects = []
    for image in images:
        resource = texture.ResourceDescriptor(
            PITCHED,
            arr=cp.asarray(image),
            chDesc=texture.ChannelFormatDescriptor(32, 0, 0, 0, 1),
            width=64,
            height=32,
            pitchInBytes=256,
        )
        objects.append(texture.TextureObject(resource, texture.TextureDescriptor((CLAMP, CLAMP), 0, 0)))
    out = cp.zeros((32, 64), "u4")
    arguments = (cp.asarray(images[0]), cp.asarray(images[1]), out, i4(64), i4(32), i4(0), i4(8), *objects)
    code.kernel("stereoDisparityKernel")((2, 4), (32, 8), arguments)
    equal(out.get()[8:24, 8:40], np.full((16, 32), 5 + 8))


# -- arithmetic, sorting, sums -------------------------------------------------------------------------------------


@program(SAMPLES, "vectorAdd", f"{INTRO}/vectorAdd/vectorAdd.cu", "vectorAdd")
def _vector_add(code: Code) -> None:
    a, b, out = floats(5000), floats(5000, 1), cp.zeros(5000, "f4")
    code.kernel("vectorAdd")((20,), (256,), (cp.asarray(a), cp.asarray(b), out, i4(5000)))
    equal(out, a + b)


@program(SAMPLES, "matrixMul", f"{INTRO}/matrixMul/matrixMul.cu", "MatrixMulCUDA<16>, MatrixMulCUDA<32>")
def _matrix_mul(code: Code) -> None:
    a, b = floats((64, 96)), floats((96, 128), 1)
    for size in (16, 32):
        out = cp.zeros((64, 128), "f4")
        kernel = code.kernel(f"MatrixMulCUDA<{size}>")
        kernel((128 // size, 64 // size), (size, size), (out, cp.asarray(a), cp.asarray(b), i4(96), i4(128)))
        close(out, a.astype("f8") @ b, atol=1e-4)


@program(SAMPLES, "transpose", "Samples/6_Performance/transpose/transpose.cu", "copy, copySharedMem, five transposes")
def _transpose(code: Code) -> None:
    data = floats((64, 64))
    for name in ("copy", "copySharedMem"):
        out = cp.zeros((64, 64), "f4")
        code.kernel(name)((2, 2), (32, 16), (out, cp.asarray(data), i4(64), i4(64)))
        equal(out, data)
    for name in ("transposeNaive", "transposeCoalesced", "transposeNoBankConflicts", "transposeDiagonal"):
        out = cp.zeros((64, 64), "f4")
        code.kernel(name)((2, 2), (32, 16), (out, cp.asarray(data), i4(64), i4(64)))
        equal(out, data.T)
    out = cp.zeros((64, 64), "f4")
    code.kernel("transposeFineGrained")((2, 2), (32, 16), (out, cp.asarray(data), i4(64), i4(64)))
    tiles = data.reshape(2, 32, 2, 32).transpose(0, 3, 2, 1).reshape(64, 64)  # each tile in its place
    equal(out, tiles)


@program(
    SAMPLES,
    "convolutionSeparable",
    (
        f"{CONCEPTS}/convolutionSeparable/convolutionSeparable_common.h",
        f"{CONCEPTS}/convolutionSeparable/convolutionSeparable.cu",
    ),
    "convolutionRowsKernel, convolutionColumnsKernel",
)
def _convolution(code: Code) -> None:
    data, weights = floats((64, 128)), floats(17, 1)
    shapes = {"convolutionRowsKernel": ((1, 16), (16, 4)), "convolutionColumnsKernel": ((8, 1), (16, 8))}
    for axis, (name, (grid, block)) in zip((1, 0), shapes.items(), strict=True):
        out, kernel = cp.zeros((64, 128), "f4"), code.kernel(name)
        code.constant(kernel, "c_Kernel", weights)
        kernel(grid, block, (out, cp.asarray(data), i4(128), i4(64), i4(128)))
        close(out, _convolved(data, weights, axis, edge=False), atol=1e-5)


HISTOGRAM = f"{CONCEPTS}/histogram"


@program(
    SAMPLES,
    "histogram (64 bins)",
    (f"{HISTOGRAM}/histogram_common.h", f"{HISTOGRAM}/histogram64.cu"),
    "histogram64Kernel, mergeHistogram64Kernel",
)
def _histogram64(code: Code) -> None:
    data = uints(16 * 64 * 40, 256, 4).astype("u1")
    count = -(-data.size // (64 * 255))
    partial, out = cp.zeros(64 * count, "u4"), cp.zeros(64, "u4")
    arguments = (partial, cp.asarray(data), np.uint32(data.size // 16))
    code.kernel("histogram64Kernel")((count,), (64,), arguments)
    code.kernel("mergeHistogram64Kernel")((64,), (256,), (out, partial, np.uint32(count)))
    equal(out, np.bincount(data >> 2, minlength=64))


@program(
    SAMPLES,
    "histogram (256 bins)",
    (f"{HISTOGRAM}/histogram_common.h", f"{HISTOGRAM}/histogram256.cu"),
    "histogram256Kernel, mergeHistogram256Kernel",
)
def _histogram256(code: Code) -> None:
    data = uints(40_000, 256, 5).astype("u1")
    partial, out = cp.zeros(256 * 10, "u4"), cp.zeros(256, "u4")
    code.kernel("histogram256Kernel")((10,), (192,), (partial, cp.asarray(data), np.uint32(data.size // 4)))
    code.kernel("mergeHistogram256Kernel")((256,), (256,), (out, partial, np.uint32(10)))
    equal(out, np.bincount(data, minlength=256))


@program(
    SAMPLES,
    "scan",
    (f"{CONCEPTS}/scan/scan_common.h", f"{CONCEPTS}/scan/scan.cu"),
    "scanExclusiveShared, scanExclusiveShared2, uniformUpdate",
    "typedef unsigned int uint;",
)
def _scan(code: Code) -> None:
    data, top = uints((4, 1024), 1000, 6), 1024
    source, out = cp.asarray(data), cp.zeros((4, 1024), "u4")
    code.kernel("scanExclusiveShared")((4,), (256,), (out, source, np.uint32(top)))
    equal(out, np.cumsum(data, 1) - data)
    buffer = cp.zeros(4, "u4")
    code.kernel("scanExclusiveShared2")((1,), (256,), (buffer, out, source, np.uint32(4), np.uint32(4)))
    code.kernel("uniformUpdate")((4,), (256,), (out, buffer))
    equal(out, (np.cumsum(data) - data.reshape(-1)).reshape(4, 1024))


SORTING = f"{CONCEPTS}/sortingNetworks"
SORTING_FILES = (f"{SORTING}/sortingNetworks_common.h", f"{SORTING}/sortingNetworks_common.cuh")
UINT = "typedef unsigned int uint;"


def _sorted(code: Code, shared: str, merge: Callable[[Code, list, int], None]) -> None:
    keys, length = uints(4096, 60_000, 7), 4096
    values = np.arange(length, dtype="u4")
    arrays = [cp.zeros(length, "u4"), cp.zeros(length, "u4"), cp.asarray(keys), cp.asarray(values)]
    if shared.startswith("odd"):
        code.kernel(shared)((4,), (512,), (*arrays, np.uint32(1024), np.uint32(1)))
    else:
        code.kernel(shared)((4,), (512,), tuple(arrays))
    merge(code, arrays[:2] * 2, length)
    got_keys, got_values = arrays[0].get(), arrays[1].get()
    equal(got_keys, np.sort(keys))
    equal(keys[got_values], got_keys)


@program(
    SAMPLES,
    "sortingNetworks (bitonic)",
    (*SORTING_FILES, f"{SORTING}/bitonicSort.cu"),
    "bitonicSortShared1, bitonicMergeGlobal, bitonicMergeShared",
    UINT,
)
def _bitonic(code: Code) -> None:
    def merge(code: Code, arrays: list, length: int) -> None:
        size = 2048
        while size <= length:
            stride = size // 2
            while stride >= 1024:
                numbers = np.uint32([length, size, stride, 1])
                code.kernel("bitonicMergeGlobal")((length // 512,), (256,), (*arrays, *numbers))
                stride //= 2
            code.kernel("bitonicMergeShared")((length // 1024,), (512,), (*arrays, *np.uint32([length, size, 1])))
            size *= 2

    _sorted(code, "bitonicSortShared1", merge)


@program(
    SAMPLES,
    "sortingNetworks (odd-even)",
    (*SORTING_FILES, f"{SORTING}/oddEvenMergeSort.cu"),
    "oddEvenMergeSortShared, oddEvenMergeGlobal",
    UINT,
)
def _odd_even(code: Code) -> None:
    def merge(code: Code, arrays: list, length: int) -> None:
        for size in (2048, 4096):
            stride = size // 2
            while stride > 0:
                numbers = np.uint32([length, size, stride, 1])
                code.kernel("oddEvenMergeGlobal")((length // 512,), (256,), (*arrays, *numbers))
                stride //= 2

    _sorted(code, "oddEvenMergeSortShared", merge)


@program(
    SAMPLES,
    "fastWalshTransform",
    f"{DOMAIN}/fastWalshTransform/fastWalshTransform_kernel.cuh",
    "fwtBatch1Kernel, fwtBatch2Kernel, modulateKernel",
)
def _walsh(code: Code) -> None:
    n, log2 = 8192, 13
    data = floats(n, 8)
    array, size, left = cp.asarray(data), n, log2
    while left > 11:
        code.kernel("fwtBatch2Kernel")((size // 1024, n // size), (256,), (array, array, i4(size // 4)))
        left, size = left - 2, size // 4
    code.kernel("fwtBatch1Kernel")((n // size,), (size // 4,), (array, array, i4(left)), shared_mem=4 * size)
    expected = data.astype("f8")
    for k in range(log2):
        a = expected.reshape(-1, 2, 1 << k)
        expected = np.stack([a[:, 0] + a[:, 1], a[:, 0] - a[:, 1]], 1).reshape(-1)
    close(array, expected, rtol=1e-4, atol=1e-3)
    other = cp.asarray(floats(n, 9))
    before = array.get()
    code.kernel("modulateKernel")((8,), (256,), (array, other, i4(n)))
    close(array, before * other.get() / n)


@program(SAMPLES, "scalarProd", f"{CONCEPTS}/scalarProd/scalarProd_kernel.cuh", "scalarProdGPU")
def _scalar_product(code: Code) -> None:
    a, b = floats((20, 1500)), floats((20, 1500), 1)
    out = cp.zeros(20, "f4")
    code.kernel("scalarProdGPU")((8,), (256,), (out, cp.asarray(a), cp.asarray(b), i4(20), i4(1500)))
    close(out, np.einsum("ij,ij->i", a.astype("f8"), b), rtol=1e-4, atol=1e-4)


@program(SAMPLES, "BlackScholes", f"{DOMAIN}/BlackScholes/BlackScholes_kernel.cuh", "BlackScholesGPU")
def _black_scholes(code: Code) -> None:
    from math import erf

    n = 2000
    price, strike, years = floats(n, 1, 5, 30), floats(n, 2, 1, 100), floats(n, 3, 0.25, 10)
    call, put = cp.zeros(n, "f4"), cp.zeros(n, "f4")
    arrays = (call, put, cp.asarray(price), cp.asarray(strike), cp.asarray(years))
    code.kernel("BlackScholesGPU")((8,), (128,), (*arrays, np.float32(0.02), np.float32(0.3), i4(n)))
    s, x, t = (a.astype("f8") for a in (price, strike, years))
    d1 = (np.log(s / x) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    d2 = d1 - 0.3 * np.sqrt(t)

    def normal(d):
        return np.array([(1 + erf(v / 2**0.5)) / 2 for v in d])

    expected = s * normal(d1) - x * np.exp(-0.02 * t) * normal(d2)
    close(call, expected, rtol=1e-3, atol=1e-3)
    close(put, expected - s + x * np.exp(-0.02 * t), rtol=1e-3, atol=1e-3)


@program(
    SAMPLES,
    "simpleVoteIntrinsics",
    f"{INTRO}/simpleVoteIntrinsics/simpleVote_kernel.cuh",
    "VoteAnyKernel1, VoteAllKernel2, VoteAnyKernel3",
)
def _votes(code: Code) -> None:
    data = np.zeros(128, "u4")
    data[[5, 70]], data[96:] = 1, 1
    for name, expected in (("VoteAnyKernel1", np.any), ("VoteAllKernel2", np.all)):
        out = cp.zeros(128, "u4")
        code.kernel(name)((1,), (128,), (cp.asarray(data), out, i4(128)))
        equal(out, np.repeat(expected(data.reshape(4, 32), 1), 32))
    info = cp.zeros((96, 3), "?")
    code.kernel("VoteAnyKernel3")((1,), (96,), (info, i4(32)))
    equal(info, np.array([[t >= 32 and w, t >= 48, t >= 64] for t in range(96) for w in [t // 32 > 0]]) * True)


@program(
    SAMPLES, "simpleAtomicIntrinsics", f"{INTRO}/simpleAtomicIntrinsics/simpleAtomicIntrinsics_kernel.cuh", "testKernel"
)
def _atomics(code: Code) -> None:
    data = cp.zeros(11, "i4")
    data[8] = data[10] = 0xFF
    code.kernel("testKernel")((8,), (64,), (data,))
    n, got = 512, data.get()
    equal(got[[0, 1, 3, 4]], [10 * n, -10 * n, n - 1, 0])
    assert 0 <= got[2] < n
    assert 0 <= got[7] < n
    limit = 0
    for _ in range(n):
        limit = 0 if limit >= 17 else limit + 1
    assert got[5] == limit
    equal(got[8:], [0xFF & functools.reduce(lambda a, b: a & b, (2 * i + 7 for i in range(n))),
                    functools.reduce(lambda a, b: a | b, (1 << (i % 32) for i in range(n))) - (1 << 32),
                    functools.reduce(lambda a, b: a ^ b, range(n), 0xFF)])  # fmt: skip


@program(SAMPLES, "shfl_scan", f"{CONCEPTS}/shfl_scan/shfl_scan.cu", "shfl_scan_test, uniform_add")
def _shuffle_scan(code: Code) -> None:
    data, partial = np.ones(4096, "i4"), cp.zeros(16, "i4")
    array = cp.asarray(data)
    kernel, add = code.kernel("shfl_scan_test"), code.kernel("uniform_add")
    kernel((16,), (256,), (array, i4(32), partial), shared_mem=32)
    kernel((1,), (16,), (partial, i4(32), None), shared_mem=32)
    add((15,), (256,), (array[256:], partial, i4(4096)))
    equal(array, np.arange(1, 4097))


@program(SAMPLES, "inlinePTX", f"{CONCEPTS}/inlinePTX/inlinePTX.cu", "sequence_gpu")
def _inline_ptx(code: Code) -> None:
    out = cp.zeros(1000, "i4")
    code.kernel("sequence_gpu")((4,), (256,), (out, i4(1000)))
    equal(out, np.arange(1000) % 32)


@program(SAMPLES, "reduction", f"{CONCEPTS}/reduction/reduction_kernel.cu", "reduce0 to reduce7, cg_reduce")
def _reduction(code: Code) -> None:
    n, threads = 4096, 128
    data = uints(n, 1000, 10).astype("i4")
    names = {f"reduce{k}<int>": threads for k in range(3)} | {"reduce3<int>": 2 * threads}
    names |= {f"reduce{k}<int, {threads}>": 2 * threads for k in (4, 5)}
    names |= {f"reduce{k}<int, {threads}, {p}>": 4 * threads for k in (6, 7) for p in ("true", "false")}
    names |= {"cg_reduce<int>": 4 * threads}
    for name, each in names.items():
        blocks = n // each
        out = cp.zeros(blocks, "i4")
        shared = 8 * threads
        code.kernel(name)((blocks,), (threads,), (cp.asarray(data), out, np.uint32(n)), shared_mem=shared)
        assert int(out.get().sum()) == int(data.sum()), name


@program(
    SAMPLES,
    "threadFenceReduction",
    f"{CONCEPTS}/threadFenceReduction/threadFenceReduction_kernel.cuh",
    "reduceMultiPass, reduceSinglePass",
)
def _thread_fence(code: Code) -> None:
    data = uints(8192, 100, 11).astype("f4")
    for pass_ in ("MultiPass", "SinglePass"):
        out = cp.zeros(16, "f4")
        kernel = code.kernel(f"reduce{pass_}<128, true>")
        kernel((16,), (128,), (cp.asarray(data), out, np.uint32(8192)), shared_mem=4 * 128)
        got = out.get()
        assert (got.sum() if pass_ == "MultiPass" else got[0]) == data.sum()


@program(
    SAMPLES,
    "binaryPartitionCG",
    "Samples/3_CUDA_Features/binaryPartitionCG/binaryPartitionCG.cu",
    "oddEvenCountAndSumCG",
)
def _partition(code: Code) -> None:
    data = uints(2048, 50, 12).astype("i4")
    odds, sums = cp.zeros(1, "i4"), cp.zeros(2, "i4")
    code.kernel("oddEvenCountAndSumCG")((4,), (128,), (cp.asarray(data), odds, sums, np.uint32(2048)))
    odd = data % 2 == 1
    equal(odds, [odd.sum()])
    equal(sums, [data[odd].sum(), data[~odd].sum()])


@program(SAMPLES, "clock", f"{INTRO}/clock/clock.cu", "timedReduction", "typedef long clock_t_host;")
def _clock(code: Code) -> None:
    data, out, timer = floats(512), cp.zeros(8, "f4"), cp.zeros(16, "i8")
    code.kernel("timedReduction")((8,), (256,), (cp.asarray(data), out, timer), shared_mem=4 * 512)
    equal(out, np.full(8, data.min()))
    begin, end = timer.get().reshape(2, 8)
    assert (end > begin).all()


# -- llm.c ---------------------------------------------------------------------------------------------------------

LLM_SETTINGS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#define ENABLE_FP32
#define M_PI 3.14159265358979323846
#define INFINITY __int_as_float(0x7f800000)
"""


def _norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = x.mean(1)
    rstd = 1 / np.sqrt(x.var(1) + 1e-5)
    return (x - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd


@program(
    LLM,
    "layernorm_forward",
    ("dev/cuda/common.h", "dev/cuda/layernorm_forward.cu"),
    "layernorm_forward_kernel1, 3, 4, 5, mean, rstd and normalization kernels",
    LLM_SETTINGS,
)
def _layernorm(code: Code) -> None:
    n, c = 32, 192
    x, weight, bias = floats((n, c)), floats(c, 1), floats(c, 2)
    expected, mean, rstd = _norm(x.astype("f8"), weight, bias)
    inputs = cp.asarray(x), cp.asarray(weight), cp.asarray(bias)
    shapes = {1: ((1,), (32,), 0), 3: ((8,), (128,), 0), 4: ((8,), (128,), 0), 5: ((n,), (128,), 0)}
    for number, (grid, block, shared) in shapes.items():
        results = [cp.zeros((n, c), "f4"), cp.zeros(n, "f4"), cp.zeros(n, "f4")]
        kernel = code.kernel(f"layernorm_forward_kernel{number}")
        kernel(grid, block, (*results, *inputs, i4(n), i4(c)), shared_mem=shared)
        for got, right in zip(results, (expected, mean, rstd), strict=True):
            close(got, right, rtol=1e-4, atol=1e-4)
    out, got_mean, got_rstd = cp.zeros((n, c), "f4"), cp.zeros(n, "f4"), cp.zeros(n, "f4")
    code.kernel("mean_kernel")((n,), (128,), (got_mean, inputs[0], i4(n), i4(c), i4(128)), shared_mem=512)
    code.kernel("rstd_kernel")((n,), (128,), (got_rstd, inputs[0], got_mean, i4(n), i4(c), i4(128)), shared_mem=512)
    arguments = (out, inputs[0], got_mean, got_rstd, *inputs[1:], i4(4), i4(n // 4), i4(c))
    code.kernel("normalization_kernel")((-(-n * c // 256),), (256,), arguments)
    close(out, expected, rtol=1e-4, atol=1e-4)


@program(
    LLM,
    "softmax_forward",
    ("dev/cuda/common.h", "dev/cuda/softmax_forward.cu"),
    "softmax_forward_kernel1, 2, 3, 4, 7, softmax_forward_online_kernel1, 2, 8",
    LLM_SETTINGS,
)
def _softmax(code: Code) -> None:
    n, c = 16, 300
    x = floats((n, c), 3, -5, 5)
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    expected = e / e.sum(1, keepdims=True)
    shapes = {
        "softmax_forward_kernel1": ((1,), (32,), 0),
        "softmax_forward_kernel2": ((n,), (128,), 512),
        "softmax_forward_kernel3": ((n,), (32,), 0),
        "softmax_forward_kernel4": ((n,), (128,), 32),
        "softmax_forward_online_kernel1": ((1,), (32,), 0),
        "softmax_forward_online_kernel2": ((4,), (128,), 0),
        "softmax_forward_kernel7": ((n,), (128,), 32),
        "softmax_forward_online_kernel8": ((4,), (128,), 0),
    }
    faults = []
    for name, (grid, block, shared) in shapes.items():
        out = cp.zeros((n, c), "f4")
        try:
            code.kernel(name)(grid, block, (out, cp.asarray(x), i4(n), i4(c)), shared_mem=shared)
            close(out, expected, rtol=1e-4, atol=1e-6)
        except Exception as error:  # told with the others
            faults.append((name, error))
    if faults:
        raise Findings(faults)


@program(
    LLM,
    "gelu_forward",
    ("dev/cuda/common.h", "dev/cuda/gelu_forward.cu"),
    "gelu_forward_kernel1, gelu_forward_kernel2",
    LLM_SETTINGS,
)
def _gelu(code: Code) -> None:
    x = floats(4096, 4, -4, 4)
    cube = 0.044715 * x.astype("f8") ** 3
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + cube)))
    for number, blocks in ((1, 16), (2, 4)):
        out = cp.zeros(4096, "f4")
        code.kernel(f"gelu_forward_kernel{number}")((blocks,), (256,), (out, cp.asarray(x), i4(4096)))
        close(out, expected, rtol=1e-4, atol=1e-5)


@program(
    LLM,
    "residual_forward",
    ("dev/cuda/common.h", "dev/cuda/residual_forward.cu"),
    "residual_forward_kernel1, residual_forward_kernel2",
    LLM_SETTINGS,
)
def _residual(code: Code) -> None:
    a, b = floats(4096), floats(4096, 1)
    for number, blocks in ((1, 16), (2, 4)):
        out = cp.zeros(4096, "f4")
        kernel = code.kernel(f"residual_forward_kernel{number}")
        kernel((blocks,), (256,), (out, cp.asarray(a), cp.asarray(b), i4(4096)))
        equal(out, a + b)


@program(
    LLM,
    "encoder_forward",
    ("dev/cuda/common.h", "dev/cuda/encoder_forward.cu"),
    "encoder_forward_kernel1, 2, 3",
    LLM_SETTINGS,
)
def _encoder(code: Code) -> None:
    b, t, c, vocabulary = 2, 16, 64, 50
    tokens, words, places = uints((b, t), vocabulary, 5).astype("i4"), floats((vocabulary, c)), floats((t, c), 1)
    expected = words[tokens] + places
    for number, threads in ((1, b * t), (2, b * t * c), (3, b * t * c // 4)):
        out = cp.zeros((b, t, c), "f4")
        arguments = (out, cp.asarray(tokens), cp.asarray(words), cp.asarray(places), i4(b), i4(t), i4(c))
        code.kernel(f"encoder_forward_kernel{number}")((-(-threads // 128),), (128,), arguments)
        equal(out, expected)


@program(LLM, "adamw", ("dev/cuda/common.h", "dev/cuda/adamw.cu"), "adamw_kernel1, adamw_kernel2", LLM_SETTINGS)
def _adamw(code: Code) -> None:
    n, rate, beta1, beta2, decay = 3000, 1e-3, 0.9, 0.999, 0.01
    start = [floats(n, 1), floats(n, 2), floats(n, 3), floats(n, 4, 0, 1)]
    parameters, gradients, m, v = (a.astype("f8") for a in start)
    m, v = beta1 * m + (1 - beta1) * gradients, beta2 * v + (1 - beta2) * gradients**2
    m_hat, v_hat = m / (1 - beta1**3), v / (1 - beta2**3)
    expected = parameters - rate * (m_hat / (np.sqrt(v_hat) + 1e-8) + decay * parameters)
    numbers = np.float32([rate, beta1, beta2, 1 - beta1**3, 1 - beta2**3, 1e-8, decay])
    for number in (1, 2):
        arrays = [cp.asarray(a) for a in start]
        code.kernel(f"adamw_kernel{number}")((12,), (256,), (*arrays, np.int64(n), *numbers))
        for got, right in zip((arrays[0], arrays[2], arrays[3]), (expected, m, v), strict=True):
            close(got, right, rtol=1e-4, atol=1e-5)


@program(
    LLM,
    "crossentropy_forward",
    ("dev/cuda/common.h", "dev/cuda/crossentropy_forward.cu"),
    "crossentropy_forward_kernel1",
    LLM_SETTINGS,
)
def _crossentropy(code: Code) -> None:
    b, t, v = 4, 16, 100
    probabilities, targets = floats((b, t, v), 5, 0.01, 1), uints((b, t), v, 6).astype("i4")
    out = cp.zeros((b, t), "f4")
    arguments = (out, cp.asarray(probabilities), cp.asarray(targets), i4(b), i4(t), i4(v))
    code.kernel("crossentropy_forward_kernel1")((1,), (64,), arguments)
    chosen = np.take_along_axis(probabilities, targets[..., None].astype(np.int64), -1)[..., 0]
    close(out, -np.log(chosen.astype("f8")))


@program(
    LLM,
    "gelu_backward",
    ("dev/cuda/common.h", "dev/cuda/gelu_backward.cu"),
    "gelu_backward1, gelu_backward2",
    LLM_SETTINGS,
)
def _gelu_backward(code: Code) -> None:
    x, gradient = floats(4096, 7, -4, 4), floats(4096, 8)
    wide, scale = x.astype("f8"), np.sqrt(2 / np.pi)
    inner = scale * (wide + 0.044715 * wide**3)
    slope = scale * (1 + 3 * 0.044715 * wide**2) / np.cosh(inner) ** 2
    expected = (0.5 * (1 + np.tanh(inner)) + 0.5 * wide * slope) * gradient
    for number, blocks in ((1, 16), (2, 4)):
        out = cp.zeros(4096, "f4")
        arguments = (out, cp.asarray(x), cp.asarray(gradient), i4(4096))
        code.kernel(f"gelu_backward{number}")((blocks,), (256,), arguments)
        close(out, expected, rtol=1e-4, atol=1e-5)


@program(
    LLM,
    "global_norm",
    ("dev/cuda/common.h", "dev/cuda/global_norm.cu"),
    "norm_kernel1<float> to norm_kernel4<float>",
    LLM_SETTINGS,
)
def _global_norm(code: Code) -> None:
    x = floats(5000, 9)
    for number in range(1, 5):
        out = cp.zeros(4, "f4")
        code.kernel(f"norm_kernel{number}<float>")((4,), (128,), (out, cp.asarray(x), np.uint64(5000)))
        close(out.get().sum(), (x.astype("f8") ** 2).sum(), rtol=1e-4)


@program(
    LLM,
    "matmul_forward",
    ("dev/cuda/common.h", "dev/cuda/matmul_forward.cu"),
    "matmul_forward_kernel1, matmul_forward_kernel4, add_bias",
    LLM_SETTINGS,
)
def _matmul_forward(code: Code) -> None:
    rows, c, oc = 128, 64, 128
    x, weight, bias = floats((rows, c)), floats((oc, c), 1), floats(oc, 2)
    expected = x.astype("f8") @ weight.T + bias
    inputs = cp.asarray(x), cp.asarray(weight), cp.asarray(bias)
    out = cp.zeros((rows, oc), "f4")
    code.kernel("matmul_forward_kernel1")((8, 8), (16, 16), (out, *inputs, i4(rows), i4(c), i4(oc)))
    close(out, expected, rtol=1e-4, atol=1e-4)
    out = cp.zeros((rows, oc), "f4")
    code.kernel("matmul_forward_kernel4")((1, 1), (16, 16), (out, *inputs, i4(c), i4(oc)))
    close(out, expected, rtol=1e-4, atol=1e-4)
    code.kernel("add_bias")((4,), (256,), (out, inputs[2], i4(2), i4(rows // 2), i4(oc)))
    close(out, expected + bias, rtol=1e-4, atol=1e-4)


# -- SGEMM ---------------------------------------------------------------------------------------------------------

KERNELS = "src/kernels"
SGEMM_SETTINGS = """
typedef unsigned int uint;
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
#define assert(condition)
"""


def _product(code: Code, name: str, grid, block, m: int, n: int, k: int) -> None:
    a, b, c = floats((m, k)), floats((k, n), 1), floats((m, n), 2)
    out = cp.asarray(c)
    numbers = i4(m), i4(n), i4(k), np.float32(0.5)
    code.kernel(name)(grid, block, (*numbers, cp.asarray(a), cp.asarray(b), np.float32(3), out))
    close(out, 0.5 * (a.astype("f8") @ b) + 3 * c, rtol=1e-4, atol=1e-3)


_STEPS = [
    ("1_naive", "sgemm_naive", (2, 2), (32, 32), (64, 64, 96)),
    ("2_kernel_global_mem_coalesce", "sgemm_global_mem_coalesce<32>", (2, 2), (1024,), (64, 64, 96)),
    ("3_kernel_shared_mem_blocking", "sgemm_shared_mem_block<32>", (2, 2), (1024,), (64, 64, 96)),
    ("4_kernel_1D_blocktiling", "sgemm1DBlocktiling<64, 64, 8, 8>", (2, 2), (512,), (128, 128, 64)),
    ("5_kernel_2D_blocktiling", "sgemm2DBlocktiling<128, 128, 8, 8, 8>", (1, 1), (256,), (128, 128, 64)),
    ("6_kernel_vectorize", "sgemmVectorize<128, 128, 8, 8, 8>", (1, 1), (256,), (128, 128, 64)),
    ("7_kernel_resolve_bank_conflicts", "sgemmResolveBankConflicts<128, 128, 8, 8, 8>", (1, 1), (256,), (128, 128, 64)),
    ("8_kernel_bank_extra_col", "sgemmResolveBankExtraCol<128, 128, 8, 8, 8>", (1, 1), (256,), (128, 128, 64)),
    ("9_kernel_autotuned", "sgemmAutotuned<128, 128, 16, 8, 8>", (1, 1), (256,), (128, 128, 64)),
    ("10_kernel_warptiling", "sgemmWarptiling<128, 128, 16, 64, 64, 4, 8, 4, 128>", (1, 1), (128,), (128, 128, 64)),
]
for _file, _name, _grid, _block, _size in _STEPS:
    _run = functools.partial(
        lambda code, name, grid, block, size: _product(code, name, grid, block, *size),
        name=_name,
        grid=_grid,
        block=_block,
        size=_size,
    )
    program(SGEMM, _file, f"{KERNELS}/{_file}.cuh", _name, SGEMM_SETTINGS)(_run)


class Findings(AssertionError):
    """Several kernels of a program with what happened in each."""

    def __init__(self, found: list[tuple[str, Exception]]) -> None:
        self.found = found
        super().__init__("; ".join(f"{name}: {str(error).partition(chr(10))[0]}" for name, error in found))


def by_source() -> dict[str, list[Program]]:
    """Group the programs by their repository."""
    grouped = itertools.groupby(sorted(PROGRAMS, key=lambda p: p.source), key=lambda p: p.source)
    return {source: list(of_it) for source, of_it in grouped}
