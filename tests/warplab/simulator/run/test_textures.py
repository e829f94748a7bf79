"""Texture fetches and surfaces against the CUDA Programming Guide's formulas, one value at a time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin.cupy.cuda import runtime
from warplab.dropin.cupy.cuda.texture import (
    ChannelFormatDescriptor,
    CUDAarray,
    ResourceDescriptor,
    SurfaceObject,
    TextureDescriptor,
    TextureObject,
)
from warplab.simulator.memory.texels import Sampler, TexelFormat, Texels, Texture

KERNELS = r"""
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
typedef cudaTextureObject_t Texture;
typedef cudaSurfaceObject_t Surface;

KERNEL tex_1d(float* o, Texture t, const float* x, int n) { if (I < n) o[I] = tex1D<float>(t, x[I]); }
KERNEL tex_2d(float* o, Texture t, const float* x, const float* y, int n) {
    if (I < n) o[I] = tex2D<float>(t, x[I], y[I]);
}
KERNEL four(float4* o, Texture t, const float* x, const float* y, int n) {
    if (I < n) o[I] = tex2D<float4>(t, x[I], y[I]);
}
KERNEL tex_3d(float* o, Texture t, const float* x, const float* y, const float* z, int n) {
    if (I < n) o[I] = tex3D<float>(t, x[I], y[I], z[I]);
}
KERNEL lod(float* o, Texture t, const float* x, const float* y, int n) {
    if (I < n) o[I] = tex2DLod<float>(t, x[I], y[I], 0.f) - tex2D<float>(t, x[I], y[I]);
}
KERNEL layered(float* o, Texture t, const float* x, const float* y, const int* layer, int n) {
    if (I < n) o[I] = tex2DLayered<float>(t, x[I], y[I], layer[I]);
}
KERNEL layered_1d(float* o, Texture t, const float* x, const int* layer, int n) {
    if (I < n) o[I] = tex1DLayered<float>(t, x[I], layer[I]);
}
KERNEL halves(float* o, Texture t, int n) {
    unsigned short h[4];
    asm volatile("tex.1d.v4.f16.s32 {%0, %1, %2, %3}, [%4, {%5}];"
        : "=h"(h[0]), "=h"(h[1]), "=h"(h[2]), "=h"(h[3]) : "l"(t), "r"((int)I));
    if (I < n) asm("cvt.f32.f16 %0, %1;" : "=f"(o[I]) : "h"(h[0]));
}
KERNEL cube(float* o, Texture t, const float* x, const float* y, const float* z, int n) {
    if (I < n) o[I] = texCubemap<float>(t, x[I], y[I], z[I]);
}
KERNEL gather(float4* o, Texture t, const float* x, const float* y, int n) {
    if (I < n) o[I] = tex2Dgather<float4>(t, x[I], y[I], 0);
}
KERNEL gather_green(float4* o, Texture t, const float* x, const float* y, int n) {
    if (I < n) o[I] = tex2Dgather<float4>(t, x[I], y[I], 1);
}
KERNEL fetch(float* o, Texture t, int first, int n) { if (I < n) o[I] = tex1Dfetch<float>(t, first + (int)I); }
KERNEL two(float* o, Texture a, Texture b, int n) { if (I < n) o[I] = tex1D<float>(I % 3 ? a : b, I); }
KERNEL resident(int* o, Texture t) { bool there; tex2D<float>(t, 1, 1, &there); o[0] = there; }
KERNEL sizes(unsigned* o, Texture t, Surface s) {
    asm("txq.width.b32 %0, [%1];" : "=r"(o[0]) : "l"(t));
    asm("txq.height.b32 %0, [%1];" : "=r"(o[1]) : "l"(t));
    asm("txq.normalized_coords.b32 %0, [%1];" : "=r"(o[2]) : "l"(t));
    asm("suq.width.b32 %0, [%1];" : "=r"(o[3]) : "l"(s));
    asm("suq.depth.b32 %0, [%1];" : "=r"(o[4]) : "l"(s));
}
template <class T, class U> __device__ void parts(U* o, Texture t, int n, int k) {
    T v = tex1D<T>(t, I);
    if (I < n) for (int c = 0; c < k; c++) o[I * k + c] = ((U*)&v)[c];
}
#define PARTS(name, T, U, k) KERNEL name(U* o, Texture t, int n) { parts<T, U>(o, t, n, k); }
PARTS(u8x1, unsigned char, unsigned char, 1)
PARTS(s8x2, char2, signed char, 2)
PARTS(u8x4, uchar4, unsigned char, 4)
PARTS(s16x1, short, short, 1)
PARTS(u16x4, ushort4, unsigned short, 4)
PARTS(s32x2, int2, int, 2)
PARTS(u32x1, unsigned, unsigned, 1)
PARTS(f32x1, float, float, 1)
PARTS(f32x2, float2, float, 2)
PARTS(f32x4, float4, float, 4)
KERNEL copy_2d(Surface from, Surface to, int w, int h) {
    int x = I % w, y = I / w;
    if (y < h) surf2Dwrite(surf2Dread<float>(from, x * 4, y) + 1, to, x * 4, y);
}
KERNEL shifted(Surface from, float* o, int w, int mode) {
    int x = (int)I - 3;
    if (mode == 0) o[I] = surf2Dread<float>(from, x * 4, 1, cudaBoundaryModeZero);
    if (mode == 1) o[I] = surf2Dread<float>(from, x * 4, 1, cudaBoundaryModeClamp);
    if (mode == 2) o[I] = surf2Dread<float>(from, x * 4, 1, cudaBoundaryModeTrap);
    if (mode == 3) surf2Dwrite(7.f, from, x * 4, 1, cudaBoundaryModeZero);
}
KERNEL volume(Surface s, int w, int h) {
    int x = I % w, y = I / w % h, z = I / (w * h);
    surf3Dwrite(make_uchar4(x, y, z, 9), s, x * 4, y, z);
}
KERNEL one_layer(Surface s, int w, int layer) { surf2DLayeredwrite((short)(I + 1), s, (I % w) * 2, I / w, layer); }
KERNEL formatted(Surface s, int n) {
    float f = I * 0.5f;
    if (I < n) asm volatile("sust.p.1d.b32.trap [%0, {%1}], {%2};" :: "l"(s), "r"((int)I), "f"(f));
}
KERNEL back(Surface s, Texture t, float* o) { surf2Dwrite(5.f, s, 4 * I, 0); o[I] = tex2D<float>(t, I, 0); }
KERNEL in_place(float* x, Texture t, int by) { x[I] = tex1Dfetch<float>(t, (I + by) % blockDim.x) + 1; }
"""

RECORDED = Path(__file__).parent / "recorded" / "textures_h100.npz"
MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
KINDS = {"i": 0, "u": 1, "f": 2}


def channels(dtype, count: int = 1) -> ChannelFormatDescriptor:
    dtype = np.dtype(dtype)
    bits = [8 * dtype.itemsize] * count + [0] * (4 - count)
    return ChannelFormatDescriptor(*bits, KINDS[dtype.kind])


def array_of(data: np.ndarray, count: int = 1, flags: int = 0) -> CUDAarray:
    """A CUDA array with these values; shape (z, y, x * count)."""
    z, y, x = (*(0,) * (3 - data.ndim), *data.shape)
    made = CUDAarray(channels(data.dtype, count), x // count, y, z, flags)
    made.copy_from(data)
    return made


def texture(data, modes="clamp", linear=False, normalized=False, as_float=False, border=None, count=1, flags=0):
    made = data if isinstance(data, CUDAarray) else array_of(data, count, flags)
    resource = ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=made)
    rules = TextureDescriptor(
        [MODES[modes]] * 3, int(linear), int(as_float), borderColors=border, normalizedCoords=int(normalized)
    )
    return TextureObject(resource, rules)


def surface(made: CUDAarray) -> SurfaceObject:
    return SurfaceObject(ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=made))


def launch(name: str, *args, blocks: int = 1, threads: int = 32):
    cp.RawModule(code=KERNELS).get_function(name)((blocks,), (threads,), args)


def fetched(name: str, made: TextureObject, *coordinates) -> np.ndarray:
    """What a kernel fetches at these coordinates, arrays of one length."""
    n = len(coordinates[0])
    out = cp.zeros(n, np.float32)
    arrays = [
        cp.asarray(np.asarray(c, np.int32 if np.asarray(c).dtype.kind == "i" else np.float32)) for c in coordinates
    ]
    launch(name, out, made, *arrays, np.int32(n), blocks=-(-n // 64), threads=64)
    return out.get()


# -- the guide's formulas ------------------------------------------------------------------------------------------


def addressed(i: int, n: int, mode: str) -> int | None:
    """The texel for texel number i of an axis; None for the border."""
    if 0 <= i < n:
        return i
    return {"border": None, "wrap": i % n}.get(mode, min(max(i, 0), n - 1))


def coordinate(x: float, n: int, mode: str, normalized: bool) -> float:
    """A coordinate in texels, moved into the valid range as the address mode says."""
    if normalized:
        if mode == "wrap":
            x -= math.floor(x)
        if mode == "mirror":
            x = x - math.floor(x) if math.floor(x) % 2 == 0 else 1 - (x - math.floor(x))
        x *= n
    elif mode in ("wrap", "mirror"):
        mode = "clamp"
    return x if mode == "border" else min(max(x, 0.0), np.nextafter(np.float64(n), 0))


def sample(data: np.ndarray, place, mode: str, linear: bool, normalized: bool, border: float = 0.0) -> float:
    """The value at `place` = (x, y, z) of data[z][y][x]."""
    sizes = data.shape[::-1]
    effective = "clamp" if not normalized and mode in ("wrap", "mirror") else mode
    where = [coordinate(float(x), n, mode, normalized) for x, n in zip(place, sizes, strict=True)]

    def texel(numbers) -> float:
        found = [addressed(i, n, effective) for i, n in zip(numbers, sizes, strict=True)]
        return border if None in found else float(data[tuple(found[::-1])])

    if not linear:
        return texel([math.floor(x) for x in where])
    total = 0.0
    first = [math.floor(x - 0.5) for x in where]
    alpha = [math.floor((x - 0.5 - i) * 256 + 0.5) for x, i in zip(where, first, strict=True)]  # 8 bits of fraction
    flat = len(sizes) == 1 and mode == "border"  # to an H100 of height 1, so that half of y = 0 is the border
    for corner, weight in corners([*alpha, 128] if flat else alpha).items():
        inside = texel([i + c for i, c in zip(first, corner, strict=False)])
        total += weight / 256 * (border if flat and corner[1] == 0 else inside)
    return total


def corners(alpha: list[int]) -> dict[tuple[int, ...], int]:
    """Weights of the corners in 256ths, as an H100 rounds them."""
    if len(alpha) == 1:
        return {(0,): 256 - alpha[0], (1,): alpha[0]}
    if len(alpha) == 3:
        found = {}
        for (x, z), weight in corners([alpha[0], alpha[2]]).items():
            upper = (weight * alpha[1] + 128) // 256
            found |= {(x, 0, z): weight - upper, (x, 1, z): upper}
        return found
    a, b = alpha
    both = (a * b + 128) // 256
    return {(0, 0): 256 - a - b + both, (1, 0): a - both, (0, 1): b - both, (1, 1): both}


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("normalized", "mode"), [(n, m) for n in (False, True) for m in MODES])
def test_coordinates_of_one_to_three_axes(mode, normalized, linear):
    _coordinates(mode, normalized, linear, 1e-6)


def _coordinates(mode, normalized, linear, of_volumes):
    """`of_volumes`: by how much what is filtered in a volume may differ."""
    random = np.random.default_rng(20)
    for shape, name in (((7,), "tex_1d"), ((5, 8), "tex_2d"), ((3, 4, 5), "tex_3d")):
        data = random.standard_normal(shape).astype("f4")
        made = texture(data, mode, linear, normalized, border=[0.75])
        places = [random.uniform(-2.2, 3.2, 90) * (1 if normalized else n) for n in shape[::-1]]
        places = [np.concatenate([p, [0, 0.5, 1, -1, 0.25, 2]]).astype("f4") for p in places]
        got = fetched(name, made, *places)
        expected = [sample(data, place, mode, linear, normalized, 0.75) for place in zip(*places, strict=True)]
        most = of_volumes if len(shape) == 3 else 1e-6
        np.testing.assert_allclose(got, expected, rtol=1e-6 if linear else 0, atol=most if linear else 0)


def test_weights_have_eight_bits():
    made = texture(np.array([0, 1], "f4"), linear=True)
    x = 0.5 + np.arange(0, 1025) / 1024
    got = fetched("tex_1d", made, x)
    assert np.unique(got).tolist() == [k / 256 for k in range(257)]
    assert fetched("tex_1d", made, [0.5 + 0.4 / 256, 0.5 + 0.6 / 256, 1.5 - 0.4 / 256]).tolist() == [0, 1 / 256, 1]


def test_weights_between_four_texels_are_those_of_an_h100():
    """Each texel has a channel of its own, so that a fetch returns the weights."""
    with np.load(RECORDED) as recorded:
        x, y, weights = recorded["x"], recorded["y"], recorded["weights"]
    made = texture(np.eye(4, dtype="f4").reshape(2, 8), linear=True, count=4)
    out = cp.zeros((len(x), 4), "f4")
    launch("four", out, made, cp.asarray(x), cp.asarray(y), np.int32(len(x)), blocks=-(-len(x) // 64), threads=64)
    np.testing.assert_array_equal(out.get() * 256, weights)


def test_no_number_is_a_coordinate_of_zero():
    made = texture(np.array([3, 4], "f4"))
    assert fetched("tex_1d", made, [np.nan, np.inf, -np.inf]).tolist() == [3, 4, 3]


@pytest.mark.parametrize(
    ("name", "dtype", "count"),
    [
        *[("u8x1", "u1", 1), ("s8x2", "i1", 2), ("u8x4", "u1", 4), ("s16x1", "i2", 1), ("u16x4", "u2", 4)],
        *[("s32x2", "i4", 2), ("u32x1", "u4", 1), ("f32x1", "f4", 1), ("f32x2", "f4", 2), ("f32x4", "f4", 4)],
        *[("f32x1", "f2", 1), ("f32x4", "f2", 4)],
    ],
)
def test_types_of_texels(name, dtype, count):
    random = np.random.default_rng(21)
    bits = random.integers(0, 256, 20 * count * np.dtype(dtype).itemsize, "u1").view(dtype)
    data = random.standard_normal(20 * count).astype(dtype) if dtype[0] == "f" else bits
    out = cp.zeros(20 * count, "f4" if dtype[0] == "f" else dtype)
    launch(name, out, texture(data, count=count), np.int32(20))
    np.testing.assert_array_equal(out.get(), data.astype(out.dtype))


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2"])
def test_integers_read_as_parts_of_the_largest(dtype):
    ends = np.iinfo(dtype)
    data = np.array([ends.min, ends.min + 1, 0, 1, ends.max - 1, ends.max], dtype)
    expected = np.maximum(data.astype("f8") / ends.max, -1).astype("f4")
    made = texture(data, as_float=True)
    np.testing.assert_array_equal(fetched("tex_1d", made, np.arange(6.0)), expected)
    between = fetched("tex_1d", texture(data, as_float=True, linear=True), np.arange(1.0, 6))
    steps = 65535 if dtype[0] == "u" else 32767  # of what the filter returns
    middle = np.maximum(data.astype("f8") / ends.max, -1) * steps / 2
    np.testing.assert_allclose(between, np.floor(middle[1:] + middle[:-1] + 0.5) / steps, rtol=1e-6)


def test_a_border_of_integers_has_the_bits_of_its_color():
    color = np.array([17], "i4").view("f4")
    out = cp.zeros(64, "i4")
    launch("s32x2", out, texture(np.arange(8, dtype="i4"), "border", border=[color[0], 0], count=2), np.int32(32))
    np.testing.assert_array_equal(out.get().reshape(32, 2)[4:], [[17, 0]] * 28)


def test_level_of_detail_residency_and_queries():
    data = np.random.default_rng(22).standard_normal((4, 6)).astype("f4")
    made = texture(data, linear=True)
    assert not fetched("lod", made, np.linspace(0, 6, 30), np.linspace(0, 4, 30)).any()
    there = cp.zeros(1, "i4")
    launch("resident", there, made, threads=1)
    assert there.get().tolist() == [1]
    block = array_of(np.zeros((2, 3, 4), "u1"), flags=runtime.cudaArraySurfaceLoadStore)
    out = cp.zeros(5, "u4")
    launch("sizes", out, texture(data, normalized=True), surface(block), threads=1)
    assert out.get().tolist() == [6, 4, 1, 4, 2]


def test_layers():
    random = np.random.default_rng(23)
    data = random.standard_normal((3, 4, 5)).astype("f4")
    made = texture(data, linear=True, flags=runtime.cudaArrayLayered)
    x, y, layer = random.uniform(-1, 6, 60).astype("f4"), random.uniform(-1, 5, 60).astype("f4"), np.arange(60) % 3
    got = fetched("layered", made, x, y, layer)
    expected = [sample(data[k], (a, b), "clamp", True, False) for a, b, k in zip(x, y, layer, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(
        simulator.IllegalAddress, match=r"layer 3 of a 2D array of 5 x 4 texels in 3 layers \(float32\)"
    ):
        fetched("layered", made, [1.0], [1.0], [3])


def test_layers_of_one_axis():
    """CuPy makes no such arrays; CUDA does."""
    data = np.random.default_rng(30).standard_normal((3, 8)).astype("f4")
    array = cp.asarray(data)
    texels = Texels(array.data.ptr, TexelFormat("float", 32, 1), (8,), 32, layers=3)
    handles = simulator.default_device().memory.handles
    handle = handles.add(Texture(texels, Sampler()))
    x, layer = np.arange(24, dtype="f4") % 8, np.arange(24) // 8
    np.testing.assert_array_equal(fetched("layered_1d", np.uint64(handle), x, layer), data.reshape(-1))
    handles.remove(handle)


def test_a_fetch_of_halves():
    data = np.random.default_rng(31).standard_normal(16).astype("f4")
    out = cp.zeros(20, "f4")
    launch("halves", out, texture(data), np.int32(20))
    np.testing.assert_array_equal(out.get(), data[np.minimum(np.arange(20), 15)].astype("f2"))


def test_faces_of_a_cube():
    """The Programming Guide's table: face, and its coordinates s and t, by the largest of x, y, z."""
    data = np.arange(6 * 4, dtype="f4").reshape(6, 2, 2)
    made = texture(data, normalized=True, flags=runtime.cudaArrayCubemap)
    random = np.random.default_rng(24)
    places = random.uniform(-1, 1, (80, 3)).astype("f4")

    def expected(x, y, z):
        m = max(abs(x), abs(y), abs(z))
        face, s, t = (
            ((0, -z, -y) if x > 0 else (1, z, -y))
            if m == abs(x)
            else ((2, x, z) if y > 0 else (3, x, -z))
            if m == abs(y)
            else ((4, x, -y) if z > 0 else (5, -x, -y))
        )
        return data[face][int((t / m + 1) / 2 * 2)][int((s / m + 1) / 2 * 2)]

    np.testing.assert_array_equal(fetched("cube", made, *places.T), [expected(*place) for place in places.tolist()])


def test_gather():
    """Counter-clockwise from the lower left: (x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y)."""
    data = np.arange(12, dtype="f4").reshape(3, 4)
    out = cp.zeros((1, 4), "f4")
    made = texture(data, flags=runtime.cudaArrayTextureGather)
    launch("gather", out, made, cp.asarray(np.array([2.0], "f4")), cp.asarray(np.array([1.0], "f4")), np.int32(1))
    assert out.get().tolist() == [[5, 6, 2, 1]]
    green = texture(np.arange(24, dtype="f4").reshape(3, 8), count=2, flags=runtime.cudaArrayTextureGather)
    launch(
        "gather_green", out, green, cp.asarray(np.array([2.0], "f4")), cp.asarray(np.array([1.0], "f4")), np.int32(1)
    )
    assert out.get().tolist() == [[11, 13, 5, 3]]
    with pytest.raises(simulator.SimulatorError, match="not made for it"):
        launch("gather", out, texture(data), cp.zeros(1, "f4"), cp.zeros(1, "f4"), np.int32(1))


def test_lanes_with_textures_of_their_own():
    a, b = texture(np.arange(40, dtype="f4")), texture(-np.arange(40, dtype="f4"))
    out = cp.zeros(40, "f4")
    launch("two", out, a, b, np.int32(40), blocks=2)
    i = np.arange(40)
    np.testing.assert_array_equal(out.get(), np.where(i % 3 > 0, i, -i))


def test_texture_instructions_are_counted_by_kind():
    import warplab

    x = cp.asarray(np.arange(64, dtype="f4"))
    with warplab.profile() as profile:
        launch("tex_1d", cp.zeros(64, "f4"), texture(np.arange(64, dtype="f4")), x, np.int32(64), blocks=2)
    assert profile[0].mix["texture"] >= 2  # with what prepares them
    assert profile[0].counts.global_load_requests == 2  # those of x alone


# -- linear and pitched memory -------------------------------------------------------------------------------------


def linear(array, dtype="f4") -> TextureObject:
    resource = ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=array, chDesc=channels(dtype), sizeInBytes=array.nbytes
    )
    return TextureObject(resource, TextureDescriptor())


def test_linear_memory():
    data = cp.asarray(np.random.default_rng(25).standard_normal(50).astype("f4"))
    out = cp.zeros(50, "f4")
    launch("fetch", out, linear(data), np.int32(0), np.int32(50), blocks=2)
    np.testing.assert_array_equal(out.get(), data.get())
    with pytest.raises(simulator.IllegalAddress, match=r"texel 50 of linear memory of 50 texels \(float32\)") as caught:
        launch("fetch", out, linear(data), np.int32(1), np.int32(50), blocks=2)
    assert caught.value.thread == (17, 0, 0)
    with pytest.raises(simulator.SimulatorError, match="tex1Dfetch"):
        launch("tex_1d", out, linear(data), data, np.int32(50))


def test_pitched_memory():
    data = np.random.default_rng(26).standard_normal((5, 16)).astype("f4")
    resource = ResourceDescriptor(
        runtime.cudaResourceTypePitch2D,
        arr=cp.asarray(data),
        chDesc=channels("f4"),
        width=13,
        height=5,
        pitchInBytes=64,
    )
    made = TextureObject(resource, TextureDescriptor((1, 1), runtime.cudaFilterModeLinear))
    x, y = np.linspace(-1, 15, 40).astype("f4"), np.linspace(6, -2, 40).astype("f4")
    expected = [sample(data[:, :13], place, "clamp", True, False) for place in zip(x, y, strict=True)]
    np.testing.assert_allclose(fetched("tex_2d", made, x, y), expected, rtol=1e-6, atol=1e-6)


# -- surfaces ------------------------------------------------------------------------------------------------------

STORABLE = 2  # cudaArraySurfaceLoadStore


def test_surfaces_copy_and_keep_to_their_bounds():
    data = np.random.default_rng(27).standard_normal((5, 7)).astype("f4")
    one, other = array_of(data, flags=STORABLE), CUDAarray(channels("f4"), 7, 5, flags=STORABLE)
    launch("copy_2d", surface(one), surface(other), np.int32(7), np.int32(5), blocks=2)
    back = np.zeros_like(data)
    other.copy_to(back)
    np.testing.assert_array_equal(back, data + 1)
    out = cp.zeros(12, "f4")
    launch("shifted", surface(one), out, np.int32(7), np.int32(0), threads=12)
    np.testing.assert_array_equal(out.get(), [0, 0, 0, *data[1], 0, 0])
    launch("shifted", surface(one), out, np.int32(7), np.int32(1), threads=12)
    np.testing.assert_array_equal(out.get(), [*[data[1, 0]] * 3, *data[1], *[data[1, 6]] * 2])
    launch("shifted", surface(one), out, np.int32(7), np.int32(3), threads=12)
    one.copy_to(back)
    data[1] = 7
    np.testing.assert_array_equal(back, data)
    with pytest.raises(simulator.IllegalAddress, match=r"coordinates \(-12, 1\) outside of a surface") as caught:
        launch("shifted", surface(one), out, np.int32(7), np.int32(2), threads=12)
    assert caught.value.thread == (0, 0, 0)


def test_volumes_layers_and_formats():
    block = CUDAarray(channels("u1", 4), 4, 3, 2, flags=STORABLE)
    launch("volume", surface(block), np.int32(4), np.int32(3), threads=24)
    back = np.zeros((2, 3, 16), "u1")
    block.copy_to(back)
    z, y, x = np.indices((2, 3, 4))
    np.testing.assert_array_equal(back.reshape(2, 3, 4, 4), np.stack([x, y, z, np.full_like(x, 9)], -1))
    layers = CUDAarray(channels("i2"), 4, 2, 3, flags=STORABLE | runtime.cudaArrayLayered)
    layers.copy_from(np.zeros((3, 2, 4), "i2"))
    launch("one_layer", surface(layers), np.int32(4), np.int32(2), threads=8)
    back = np.zeros((3, 2, 4), "i2")
    layers.copy_to(back)
    assert back[2].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert not back[:2].any()
    half = CUDAarray(channels("f2"), 20, flags=STORABLE)
    launch("formatted", surface(half), np.int32(20))
    back = np.zeros(20, "f2")
    half.copy_to(back)
    np.testing.assert_array_equal(back, np.arange(20) / 2)


# -- what goes wrong -----------------------------------------------------------------------------------------------


def test_texels_that_nobody_wrote():
    made = texture(CUDAarray(channels("f4"), 6, 4))
    with pytest.raises(simulator.UninitializedRead, match=r"texel \(5, 2\) of a 2D array of 6 x 4 texels \(float32\)"):
        fetched("tex_2d", made, [5.5], [2.5])
    unset = cp.empty(8, "f4")
    unset[:4] = 1
    out = cp.zeros(8, "f4")
    launch("fetch", out, linear(unset), np.int32(0), np.int32(4))
    with pytest.raises(simulator.UninitializedRead, match=r"texel \(4\) of linear memory"):
        launch("fetch", out, linear(unset), np.int32(0), np.int32(8))


def test_what_a_launch_writes_its_own_textures_do_not_see():
    made = array_of(np.zeros((2, 32), "f4"), flags=STORABLE)
    out = cp.zeros(32, "f4")
    with pytest.raises(simulator.StaleTexel, match="that this launch has written") as caught:
        launch("back", surface(made), texture(made), out)
    assert caught.value.line == next(k for k, line in enumerate(KERNELS.splitlines(), 1) if "KERNEL back" in line)
    data = cp.asarray(np.arange(32, dtype="f4"))
    launch("in_place", data, linear(data), np.int32(0))  # each thread its own element, read before it is written
    np.testing.assert_array_equal(data.get(), np.arange(32) + 1)
    with pytest.raises(simulator.DataRace):
        launch("in_place", data, linear(data), np.int32(1))


@pytest.mark.parametrize(
    ("kernel", "made", "message"),
    [
        ("tex_1d", lambda: texture(np.zeros((2, 3), "f4")), r"`tex.1d.v4.f32.f32` on a 2D array of 3 x 2 texels"),
        ("tex_1d", lambda: texture(np.zeros(4, "i4")), "floating-point numbers from a texture that returns integers"),
        ("tex_1d", lambda: surface(CUDAarray(channels("f4"), 4, flags=STORABLE)), "that of a surface"),
        ("tex_1d", lambda: np.uint64(12), "0xc, which is none"),
    ],
)
def test_a_texture_that_does_not_fit(kernel, made, message):
    with pytest.raises(simulator.SimulatorError, match=message):
        launch(kernel, cp.zeros(4, "f4"), made(), cp.zeros(4, "f4"), np.int32(4))


def test_integers_from_a_texture_of_floats_and_a_destroyed_texture():
    out = cp.zeros(20, "u4")
    made = texture(np.zeros(20, "f4"))
    with pytest.raises(simulator.SimulatorError, match="integers from a texture that returns floating-point numbers"):
        launch("u32x1", out, made, np.int32(20))
    handle = np.uint64(made.ptr)
    del made
    with pytest.raises(simulator.SimulatorError, match="whose object has been destroyed"):
        launch("f32x1", cp.zeros(20, "f4"), handle, np.int32(20))
