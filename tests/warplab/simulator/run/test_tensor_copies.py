"""Tensor maps and cp.async.bulk.tensor: boxes, columns of pixels, swizzles, multicast, stores and reductions, against
references in plain Python; and what is refused. `test_hopper_on_gpu` runs these kernels on a GPU.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.support.random_inputs import generator
from tests.support.tensor_boxes import im2col_column, in_shared, tiled_box
from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.memory.tensor_maps import decode, encode_im2col, encode_tiled

KINDS = {"u1": 0, "u2": 1, "u4": 2, "i4": 3, "u8": 4, "i8": 5, "f2": 6, "f4": 7, "f8": 8}
SPANS = {0: 0, 32: 1, 64: 2, 128: 3}
SOURCE = r"""
typedef unsigned long long mbarrier;
struct alignas(64) TensorMap { unsigned char bytes[128]; };
#define MAP const __grid_constant__ TensorMap map
#ifndef CLUSTER
#define CLUSTER 1
#endif
#define KERNEL extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1)
__device__ unsigned shared_address(const void *p) { return __cvta_generic_to_shared(p); }
__device__ void init(unsigned bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect(unsigned bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}
__device__ void wait(unsigned bar, int parity) {
    asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra DONE;\nbra AGAIN;\nDONE:\n}" :: "r"(bar), "r"(parity) : "memory");
}
__device__ void meet() { asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); }
#define LOAD "cp.async.bulk.tensor." D ".shared::cluster.global." MODE "mbarrier::complete_tx::bytes"
#define STORE(op) "cp." op "async.bulk.tensor." D ".global.shared::cta." RED MODE "bulk_group"
#if AXES == 1
#define D "1d"
#define AT "{%2}"
#elif AXES == 2
#define D "2d"
#define AT "{%2, %3}"
#elif AXES == 3
#define D "3d"
#define AT "{%2, %3, %4}"
#elif AXES == 4
#define D "4d"
#define AT "{%2, %3, %4, %5}"
#else
#define D "5d"
#define AT "{%2, %3, %4, %5, %6}"
#endif
#ifdef IM2COL
#define MODE "im2col."
#if AXES == 3
#define FURTHER ", {%8}"
#elif AXES == 4
#define FURTHER ", {%8, %9}"
#else
#define FURTHER ", {%8, %9, %10}"
#endif
#else
#define MODE ""
#define FURTHER ""
#endif
struct Place { int at[5]; unsigned short further[4]; };
extern __shared__ __align__(1024) unsigned char box[];

__device__ void load(const TensorMap &map, const Place &p, unsigned bar) {
    asm volatile(LOAD " [%0], [%1, " AT "], [%7]" FURTHER ";" :: "r"(shared_address(box)), "l"(&map), "r"(p.at[0]),
                 "r"(p.at[1]), "r"(p.at[2]), "r"(p.at[3]), "r"(p.at[4]), "r"(bar), "h"(p.further[0]), "h"(p.further[1]),
                 "h"(p.further[2]) : "memory");
}
// A box or column of each block's own place, as it lies in shared memory.
KERNEL loaded(MAP, const Place *places, unsigned char *out, int bytes) {
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) { init(b, 1); expect(b, bytes); load(map, places[blockIdx.x], b); }
    __syncthreads();
    wait(b, 0);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[blockIdx.x * bytes + i] = box[i];
}
#if AXES == 2 && !defined(IM2COL)
KERNEL multicast(MAP, unsigned char *out, int bytes, int mask) {  // block 0 loads for the blocks of the mask
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar), rank = blockIdx.x % CLUSTER;
    if (threadIdx.x == 0) { init(b, 1); expect(b, mask >> rank & 1 ? bytes : 0); }
    meet();
    if (rank == 0 && threadIdx.x == 0)
        asm volatile(LOAD ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(shared_address(box)), "l"(&map),
                     "r"(0), "r"((int)blockIdx.x), "r"(b), "h"((unsigned short)mask) : "memory");
    if (mask >> rank & 1) {
        wait(b, 0);
        for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[blockIdx.x * bytes + i] = box[i];
    }
    meet();
}
#if __CUDA_ARCH__ >= 1000
KERNEL pairs(MAP, unsigned char *out, int bytes, int mask) {  // boxes of two blocks, and one mbarrier, of the even one
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar), rank = blockIdx.x % CLUSTER, even = b & 0xFEFFFFFF;  // as CUTLASS finds it
    if (threadIdx.x == 0 && rank % 2 == 0) { init(b, 1); expect(b, 2 * bytes); }
    meet();
    if (threadIdx.x == 0 && mask == 0)
        asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" :: "r"(shared_address(box)), "l"(&map), "r"(0),
                     "r"((int)blockIdx.x), "r"(even) : "memory");
    if (threadIdx.x == 0 && mask && rank == 1)
        asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" :: "r"(shared_address(box)), "l"(&map),
                     "r"(0), "r"((int)blockIdx.x), "r"(even), "h"((unsigned short)mask) : "memory");
    if (rank % 2 == 0) wait(b, 0);
    meet();
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[blockIdx.x * bytes + i] = box[i];
    meet();
}
#endif
KERNEL hinted(MAP, unsigned char *out, int bytes) {  // hints, which change nothing, and all else spelt out
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar);
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("prefetch.tensormap [%0];" :: "l"(&map) : "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    unsigned elected;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
    if (elected) {
        init(b, 1);
        expect(b, bytes);
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" :: "l"(&map), "r"(0), "r"(0));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                     "[%0], [%1, {%2, %3}], [%4], %5;" :: "r"(shared_address(box)), "l"(&map), "r"(0), "r"(3), "r"(b),
                     "l"(policy) : "memory");
    }
    __syncwarp();
    wait(b, 0);
    for (int i = threadIdx.x; i < bytes; i += 32) out[i] = box[i];
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
KERNEL loaded_by_all(MAP, unsigned char *out, int bytes) {  // each thread of the first warp asks for a box of its own
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar);
    if (threadIdx.x == 0) { init(b, 1); expect(b, 32 * bytes); }
    __syncthreads();
    asm volatile(LOAD " [%0], [%1, {%2, %3}], [%4];" :: "r"(shared_address(box + bytes * threadIdx.x)), "l"(&map),
                 "r"(0), "r"((int)threadIdx.x), "r"(b) : "memory");
    wait(b, 0);
    for (int i = threadIdx.x; i < 32 * bytes; i += 32) out[i] = box[i];
}
KERNEL too_soon(MAP, unsigned char *out, int bytes, int what) {
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar);
    Place p = {};
    if (threadIdx.x == 0) { init(b, 1); expect(b, bytes); load(map, p, b); }
    __syncthreads();
    if (what == 0) out[threadIdx.x] = box[threadIdx.x];  // nobody has waited
    if (threadIdx.x == 0 || what > 1) wait(b, 0);
    if (what == 1) out[threadIdx.x] = box[threadIdx.x];  // thread 0 has
    if (what == 3) box[threadIdx.x] = 0;
    __syncthreads();
    if (what == 4 && threadIdx.x == 0) { expect(b, bytes); load(map, p, b); }  // nobody waits for this one
}
KERNEL overwritten(MAP, unsigned char *out, int bytes, int waits) {  // the second load comes while some still read
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar);
    Place p = {};
    if (threadIdx.x == 0) { init(b, 1); expect(b, bytes); load(map, p, b); }
    __syncthreads();
    wait(b, 0);
    out[threadIdx.x] = box[threadIdx.x];
    if (waits) __syncthreads();
    p.at[1] = 1;  // other rows
    if (threadIdx.x == 0) { expect(b, bytes); load(map, p, b); }
    wait(b, 1);
}
#endif
#ifndef RED
#define RED ""
#define OP ""
#else
#define OP "reduce."
#endif
#undef MODE
#ifdef IM2COL
#define MODE "im2col_no_offs."
#else
#define MODE "tile."
#endif
KERNEL dumped(MAP, const Place *places, unsigned char *out, int bytes, int room) {  // with all around the box
    __shared__ mbarrier bar;
    unsigned b = shared_address(&bar);
    for (int i = threadIdx.x; i < room; i += blockDim.x) box[i] = 0xEE;
    asm volatile("fence.proxy.async;" ::: "memory");
    if (threadIdx.x == 0) init(b, 1);
    __syncthreads();
    if (threadIdx.x == 0) { expect(b, bytes); load(map, places[blockIdx.x], b); }
    wait(b, 0);
    for (int i = threadIdx.x; i < room; i += blockDim.x) out[i] = box[i];
}
KERNEL stored(MAP, const Place *places, const unsigned char *data, int bytes) {
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) box[i] = data[blockIdx.x * bytes + i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x) return;
    const Place &p = places[blockIdx.x];
    asm volatile(STORE(OP) " [%1, " AT "], [%0];" :: "r"(shared_address(box)), "l"(&map), "r"(p.at[0]), "r"(p.at[1]),
                 "r"(p.at[2]), "r"(p.at[3]), "r"(p.at[4]) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}
"""
RECORDED = Path(__file__).parent / "recorded" / "tf32_h100.npz"
SHORT_LINES = RECORDED.with_name("short_lines_h100.npz")
SHORT = [(span, nbytes) for span in (32, 64, 128) for nbytes in (16, 32, 48, 64, 80, 96) if nbytes < span]
PLACE = np.dtype([("at", "i4", 5), ("further", "u2", 4)])


def source(name, axes, *options):
    return CudaSource(SOURCE, name, (f"-DAXES={axes}", "--gpu-architecture=sm_90a", *options))


def strides_of(tensor):
    """Bytes from element to element along all axes but the innermost, innermost first."""
    return [tensor.strides[axis] for axis in range(tensor.ndim - 2, -1, -1)]


def on_device(array):
    """An address that stays valid while the array that is returned lives."""
    return cp.asarray(array)


def address(array):
    return array.__cuda_array_interface__["data"][0]


def padded(tensor):
    """A copy whose rows begin at multiples of 16 bytes: as a larger array, of which the tensor is a part."""
    item = tensor.dtype.itemsize
    room = np.zeros((*tensor.shape[:-1], -(-tensor.shape[-1] * item // 16) * 16 // item), tensor.dtype)
    room[..., : tensor.shape[-1]] = tensor
    return room


def as_map(data):
    return np.frombuffer(data, "V128")


def places(rows):
    result = np.zeros(len(rows), PLACE)
    for place, (at, further) in zip(result, rows, strict=True):
        place["at"][: len(at)], place["further"][: len(further)] = at, further
    return result


def values(rng, shape, dtype):
    return rng.integers(1, 100, shape).astype(dtype)


TILED = [
    # dtype, shape (outermost first), box, steps, swizzle
    ("f4", (50,), (8,), (1,), 0),
    ("u1", (9, 40), (32, 3), (1, 1), 0),
    ("u1", (9, 40), (32, 4), (1, 1), 32),
    ("f2", (20, 72), (64, 10), (1, 1), 128),
    ("f2", (20, 70), (32, 9), (1, 2), 64),
    ("i4", (7, 6, 12), (4, 3, 2), (1, 1, 1), 0),
    ("f4", (5, 6, 32), (32, 4, 3), (1, 2, 1), 128),
    ("u2", (4, 3, 5, 24), (16, 2, 3, 2), (1, 1, 1, 1), 32),
    ("f8", (3, 2, 3, 4, 6), (2, 3, 2, 2, 2), (1, 1, 2, 1, 1), 0),
]


@pytest.mark.parametrize("case", TILED, ids=lambda case: f"{case[0]}-{len(case[1])}d-swizzle{case[4]}")
def test_boxes(case):
    dtype, shape, box, steps, span = case
    rng = generator()
    tensor = values(rng, shape, dtype)
    room = on_device(padded(tensor))
    axes, item = len(shape), tensor.dtype.itemsize
    data = encode_tiled(
        KINDS[dtype], axes, address(room), shape[::-1], strides_of(padded(tensor)), box, steps, 0, SPANS[span], 0, 0
    )
    sizes = shape[::-1]
    corners = [0] * axes, [n - 1 for n in sizes], [-(b // 2) for b in box]
    rows = [*corners, *([int(rng.integers(-b, n)) for n, b in zip(sizes, box, strict=True)] for _ in range(10))]
    rows = [[at[0] // (16 // item) * (16 // item), *at[1:]] for at in rows]
    want = [in_shared(tiled_box(tensor, at, box, steps), span) for at in rows]
    out = np.zeros((len(rows), want[0].size), np.uint8)
    arguments = as_map(data), places([(at, ()) for at in rows]), out, np.int32(want[0].size)
    simulate(source("loaded", axes), len(rows), 32, arguments, shared_bytes=-(-want[0].size // 1024) * 1024)
    np.testing.assert_array_equal(out, np.stack(want))


@pytest.mark.parametrize(("span", "nbytes"), SHORT)
def test_lines_shorter_than_the_swizzle_lie_as_on_an_h100(span, nbytes):
    tensor = np.arange(16 * 64, dtype="u2").reshape(16, 64)
    room = on_device(tensor)
    data = encode_tiled(KINDS["f2"], 2, address(room), (64, 16), (128,), (nbytes // 2, 12), (1, 1), 0, SPANS[span])
    out = np.zeros(2048, np.uint8)
    given = as_map(data), places([((0, 0), ())]), out, np.int32(12 * nbytes), np.int32(2048)
    simulate(source("dumped", 2), 1, 32, given, shared_bytes=2048)
    with np.load(SHORT_LINES) as recorded:
        np.testing.assert_array_equal(out, recorded[f"span{span}_line{nbytes}"])


@pytest.mark.parametrize("name", ["loaded", "stored"])
def test_boxes_begin_at_multiples_of_16_bytes(name):
    room = on_device(np.zeros((8, 64), "f2"))
    data = encode_tiled(KINDS["f2"], 2, address(room), (64, 8), (128,), (64, 8), (1, 1))
    given = as_map(data), places([((4, 0), ())]), np.zeros((1, 1024), np.uint8), np.int32(1024)
    with pytest.raises(simulator.MisalignedAddress, match="begins at coordinate 4 along the innermost axis, 8 bytes"):
        simulate(source(name, 2), 1, 64, given, shared_bytes=1024)


def test_boxes_are_not_stored_before_their_tensor():
    """As loads may begin there."""
    for at in ((-8, 0), (0, -3)):
        with pytest.raises(simulator.IllegalAddress, match="a box is stored at the coordinates"):
            stored(np.zeros((20, 72), "f2"), at, (64, 8), (1, 1), 128)


def test_nan_outside():
    tensor = np.ones((4, 8), np.float16)
    room = on_device(tensor)
    data = encode_tiled(KINDS["f2"], 2, address(room), (8, 4), (16,), (8, 4), (1, 1), fill=1)
    out = np.zeros((1, 64), np.uint8)
    simulate(source("loaded", 2), 1, 32, (as_map(data), places([((0, 2), ())]), out, np.int32(64)), shared_bytes=1024)
    got = out.view(np.float16).reshape(4, 8)
    assert got[:2].tolist() == [[1] * 8] * 2
    assert set(got[2:].view("u2").reshape(-1).tolist()) == {0x7FF7}  # an H100's


@pytest.mark.parametrize(("kind", "rounded"), [(7, False), (10, False), (11, True), (12, True)])
def test_numbers_of_tensor_maps_as_an_h100_loads_and_stores_them(kind, rounded):
    """TFLOAT32 rounds what it loads; FTZ changes nothing there (H100 80GB HBM3, 2026-11-23)."""
    with np.load(RECORDED) as recorded:
        bits, tf32 = recorded["bits"], recorded["tf32"]
    room, nbytes = on_device(bits.view("f4")), 1024
    data = encode_tiled(kind, 1, address(room), (1024,), (), (256,), (1,))
    out, at = np.zeros((4, nbytes), np.uint8), places([((256 * block,), ()) for block in range(4)])
    simulate(source("loaded", 1), 4, 32, (as_map(data), at, out, np.int32(nbytes)), shared_bytes=nbytes)
    np.testing.assert_array_equal(out.reshape(-1).view("u4"), tf32 if rounded else bits)
    back = on_device(np.zeros(1024, "f4"))
    data = encode_tiled(kind, 1, address(back), (1024,), (), (256,), (1,))
    given = as_map(data), at, bits.view("u1").reshape(4, nbytes).copy(), np.int32(nbytes)
    simulate(source("stored", 1), 4, 64, given, shared_bytes=nbytes)
    np.testing.assert_array_equal(cp.asnumpy(back).view("u4"), bits)


def test_reductions_of_flushed_numbers_are_refused():
    room = on_device(np.zeros(256, "f4"))
    data = encode_tiled(10, 1, address(room), (256,), (), (256,), (1,))
    given = as_map(data), places([((0,), ())]), np.zeros((1, 1024), np.uint8), np.int32(1024)
    with pytest.raises(simulator.UnsupportedInstruction, match="tensor map of an FTZ type"):
        simulate(source("stored", 1, '-DRED="add."'), 1, 64, given, shared_bytes=1024)


IM2COL = [
    # shape (images, …, channels), lower, upper, channels, pixels, steps, offsets per place
    ("f2", (3, 9, 16), (-1,), (-1,), 16, 7, (1, 1, 1), 2),
    ("f2", (2, 6, 5, 24), (-1, -1), (-1, -1), 16, 11, (1, 1, 1, 1), 2),
    ("f2", (2, 7, 6, 64), (-1, -2), (-1, 0), 64, 40, (1, 2, 1, 1), 1),
    ("f4", (2, 8, 8, 12), (0, 0), (-2, -2), 8, 9, (1, 2, 3, 1), 2),
    ("f2", (2, 3, 4, 5, 16), (-1, 0, -1), (-1, -2, 0), 8, 50, (1, 1, 2, 1, 1), 2),
]


@pytest.mark.parametrize("case", IM2COL, ids=lambda case: f"{case[0]}-{len(case[1])}d-{case[4]}")
def test_columns_of_pixels(case):
    dtype, shape, lower, upper, channels, pixels, steps, most = case
    rng = generator()
    tensor = values(rng, shape, dtype)
    room = on_device(tensor)
    axes, nbytes = len(shape), channels * pixels * tensor.dtype.itemsize
    span = 128 if channels * tensor.dtype.itemsize == 128 else 0
    data = encode_im2col(
        KINDS[dtype], axes, address(room), shape[::-1], strides_of(tensor), lower, upper, channels, pixels, steps, 0,
        SPANS[span],
    )  # fmt: skip
    spatial = shape[-2:0:-1]
    rows = []
    for _ in range(8):
        at = [int(rng.integers(0, 2)) * 8]
        for size, low, high, step in zip(spatial, lower, upper, steps[1:], strict=False):
            at.append(low + step * int(rng.integers(0, (size - 1 + high - low) // step + 1)))
        at.append(int(rng.integers(0, shape[0])))
        rows.append((at, [int(rng.integers(0, most + 1)) for _ in spatial]))
    want = [
        in_shared(im2col_column(tensor, at, lower, upper, channels, pixels, steps, further), span)
        for at, further in rows
    ]
    out = np.zeros((len(rows), nbytes), np.uint8)
    arguments = as_map(data), places(rows), out, np.int32(nbytes)
    simulate(source("loaded", axes, "-DIM2COL"), len(rows), 64, arguments, shared_bytes=8192)
    np.testing.assert_array_equal(out, np.stack(want))


@pytest.mark.parametrize(("cluster", "mask"), [(2, 3), (4, 0b1010), (4, 1)])
def test_multicast(cluster, mask):
    tensor = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    room, nbytes = on_device(tensor), 8 * 128
    data = encode_tiled(KINDS["f2"], 2, address(room), (64, 64), (128,), (64, 8), (1, 1), 0, 3)
    out = np.zeros((2 * cluster, nbytes), np.uint8)
    arguments = as_map(data), out, np.int32(nbytes), np.int32(mask)
    simulate(source("multicast", 2, f"-DCLUSTER={cluster}"), 2 * cluster, 32, arguments, shared_bytes=1024)
    for block in range(2 * cluster):
        first = block // cluster * cluster
        want = in_shared(tiled_box(tensor, (0, first), (64, 8), (1, 1)), 128)
        assert out[block].tolist() == (want if mask >> block % cluster & 1 else 0 * want).tolist()


@pytest.mark.parametrize("mask", [0, 0b1111])
def test_boxes_for_pairs_of_blocks(mask):
    """Of sm_100 (.cta_group::2): the even block of each pair hears of both boxes, also of those of a multicast."""
    tensor = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    room, nbytes = on_device(tensor), 8 * 128
    data = encode_tiled(KINDS["f2"], 2, address(room), (64, 64), (128,), (64, 8), (1, 1), 0, 3)
    out = np.zeros((8, nbytes), np.uint8)
    kernel = CudaSource(SOURCE, "pairs", ("-DAXES=2", "-arch=sm_100a", "-DCLUSTER=4"))
    simulate(kernel, 8, 32, (as_map(data), out, np.int32(nbytes), np.int32(mask)), shared_bytes=1024)
    for block in range(8):
        row = block // 4 * 4 + 1 if mask else block
        want = in_shared(tiled_box(tensor, (0, row), (64, 8), (1, 1)), 128)
        assert out[block].tolist() == want.tolist()


CANCELLED = r"""
#include <cuda/barrier>
#include <cuda/ptx>
extern "C" __global__ void __cluster_dims__(2, 1, 1) ask(int* out) {
    namespace ptx = cuda::ptx;
    __shared__ alignas(16) int4 answer;
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 16);
    }
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0 && (ALL == 0 || blockIdx.x % 2 == 0)) {
#if ALL
        ptx::clusterlaunchcontrol_try_cancel_multicast(&answer, &bar);
#else
        ptx::clusterlaunchcontrol_try_cancel(&answer, &bar);
#endif
    }
    while (!ptx::mbarrier_try_wait_parity(&bar, 0));
    out[blockIdx.x * 32 + threadIdx.x] += 1 + ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer);
}
"""


@pytest.mark.parametrize("everywhere", [0, 1])
def test_no_block_is_cancelled_as_all_run(everywhere):
    """Of sm_100: a kernel whose blocks ask for the work of others is right where none gets any."""
    out = np.zeros((6, 32), np.int32)
    simulate(CudaSource(CANCELLED, "ask", ("-arch=sm_100a", f"-DALL={everywhere}")), 6, 32, (out,))
    assert (out == 1).all()


def test_hints_and_one_elected_thread():
    tensor = np.arange(40 * 64, dtype=np.float16).reshape(40, 64)
    room = on_device(tensor)
    data = encode_tiled(KINDS["f2"], 2, address(room), (64, 40), (128,), (64, 2), (1, 1))
    out = np.zeros(256, np.uint8)
    simulate(source("hinted", 2), 1, 32, (as_map(data), out, np.int32(256)), shared_bytes=8192)
    assert out.tolist() == in_shared(tiled_box(tensor, (0, 3), (64, 2), (1, 1)), 0).tolist()


def test_every_thread_may_ask_for_a_box():
    tensor = np.arange(40 * 64, dtype=np.float16).reshape(40, 64)
    room = on_device(tensor)
    data = encode_tiled(KINDS["f2"], 2, address(room), (64, 40), (128,), (64, 2), (1, 1))
    out = np.zeros((32, 256), np.uint8)
    simulate(source("loaded_by_all", 2), 1, 32, (as_map(data), out, np.int32(256)), shared_bytes=8192)
    want = [in_shared(tiled_box(tensor, (0, row), (64, 2), (1, 1)), 0) for row in range(32)]
    np.testing.assert_array_equal(out, np.stack(want))


# -- stores ------------------------------------------------------------------------------------------------------------


def scattered(tensor, at, box, steps, flat, operation):
    """Apply a box to a tensor: only what lies inside."""
    counts = [box[0], *(-(-n // step) for n, step in zip(box[1:], steps[1:], strict=True))]
    axes = tensor.ndim
    for number, index in enumerate(itertools.product(*(range(n) for n in reversed(counts)))):
        place = [at[axis] + index[axes - 1 - axis] * (steps[axis] if axis else 1) for axis in range(axes)]
        if all(0 <= p < n for p, n in zip(place, reversed(tensor.shape), strict=True)):
            there = tuple(reversed(place))
            tensor[there] = operation(tensor[there], flat[number])


def stored(tensor, at, box, steps, span, *options, operation=lambda old, new: new, repeats=1):
    rng = generator()
    room = on_device(padded(tensor))
    dtype, axes, nbytes = tensor.dtype.str[1:], tensor.ndim, int(np.prod(box)) * tensor.dtype.itemsize
    assert all(step == 1 for step in steps)
    data = encode_tiled(
        KINDS[dtype], axes, address(room), tensor.shape[::-1], strides_of(padded(tensor)), box, steps, 0, SPANS[span]
    )
    flats = [values(rng, int(np.prod(box)), dtype) for _ in range(repeats)]
    sent = np.stack([in_shared(flat, span) for flat in flats])
    arguments = as_map(data), places([(at, ())] * repeats), sent, np.int32(nbytes)
    simulate(source("stored", axes, *options), repeats, 64, arguments, shared_bytes=-(-nbytes // 1024) * 1024)
    want = tensor.copy()
    for flat in flats:
        scattered(want, at, box, steps, flat, operation)
    np.testing.assert_array_equal(cp.asnumpy(room)[..., : tensor.shape[-1]], want)


@pytest.mark.parametrize("at", [(0, 0), (8, 17), (72, 25), (40, 5), (16, 0)])
@pytest.mark.parametrize("span", [0, 128])
def test_stored_boxes(at, span):
    stored(np.zeros((20, 70), np.float16), at, (64, 8), (1, 1), span)


def test_what_lies_outside_of_the_tensor_is_not_read():
    """Half of the box has not even been written."""
    room = on_device(np.zeros((1, 8), "f2"))
    data = encode_tiled(KINDS["f2"], 2, address(room), (8, 1), (16,), (16, 1), (1, 1))
    sent = np.arange(1, 9, dtype="f2")
    given = as_map(data), places([((0, 0), ())]), sent.view("u1")[None].copy(), np.int32(16)
    simulate(source("stored", 2), 1, 64, given, shared_bytes=1024)
    assert cp.asnumpy(room).tolist() == [sent.tolist()]


def test_stored_boxes_of_more_axes():
    stored(np.zeros((4, 5, 12), np.float32), (4, 3, 2), (8, 4, 3), (1, 1, 1), 0)


def test_stored_pixels():
    tensor = np.zeros((2, 5, 4, 64), np.float16)
    room = on_device(tensor)
    lower, upper, pixels, steps = (0, 0), (0, 0), 9, (1, 2, 2, 1)
    data = encode_im2col(
        KINDS["f2"], 4, address(room), tensor.shape[::-1], strides_of(tensor), lower, upper, 64, pixels, steps, 0, 3
    )
    flat = values(generator(), 64 * pixels, "f2")
    arguments = as_map(data), places([((0, 2, 2, 0), ())]), in_shared(flat, 128)[None], np.int32(128 * pixels)
    simulate(source("stored", 4, "-DIM2COL"), 1, 64, arguments, shared_bytes=2048)
    # From (row 2, column 2) of image 0 on, every second pixel of every second row.
    visited = [(0, 2, 2), (0, 4, 0), (0, 4, 2), (1, 0, 0), (1, 0, 2), (1, 2, 0), (1, 2, 2), (1, 4, 0), (1, 4, 2)]
    for number, place in enumerate(visited):
        tensor[place] = flat[64 * number : 64 * number + 64]
    np.testing.assert_array_equal(cp.asnumpy(room), tensor)


@pytest.mark.parametrize(
    ("dtype", "name", "operation"),
    [
        ("i4", "add", lambda a, b: a + b),
        ("f4", "add", lambda a, b: a + b),
        ("f2", "add", lambda a, b: a + b),
        ("u4", "min", min),
        ("i4", "max", max),
        ("u4", "and", lambda a, b: a & b),
        ("u8", "or", lambda a, b: a | b),
        ("u4", "xor", lambda a, b: a ^ b),
        ("u4", "inc", lambda a, b: 0 if a >= b else a + 1),
        ("u4", "dec", lambda a, b: b if a == 0 or a > b else a - 1),
    ],
)
def test_reductions(dtype, name, operation):
    tensor = values(generator(), (6, 20), dtype)
    stored(tensor, (8, 2), (16, 5), (1, 1), 0, f'-DRED="{name}."', operation=operation, repeats=3)


# -- what is found -----------------------------------------------------------------------------------------------------


def wrong(name, *arguments, box=(64, 8), span=128, axes=2, shared_bytes=1024, block=64, options=(), **changed):
    tensor = np.arange(512, dtype=np.float16).reshape(8, 64)
    room = on_device(tensor)
    given = {"data_type": 6, "rank": 2, "address": address(room), "sizes": (64, 8), "strides": (128,), "box": box}
    data = encode_tiled(**given | {"steps": (1, 1), "swizzle": SPANS[span]} | changed)
    arguments = as_map(data), *arguments
    simulate(source(name, axes, *options), 1, block, arguments, shared_bytes=shared_bytes)


def test_a_box_is_not_there_before_its_barrier():
    out = np.zeros(1024, np.uint8)
    with pytest.raises(simulator.UninitializedRead, match="is still being copied"):
        wrong("too_soon", out, np.int32(1024), np.int32(0))
    with pytest.raises(simulator.DataRace, match=r"reads byte .* of shared memory"):  # only thread 0 has waited
        wrong("too_soon", out, np.int32(1024), np.int32(1))
    wrong("too_soon", out, np.int32(1024), np.int32(2))
    wrong("too_soon", out, np.int32(1024), np.int32(3))


def test_a_kernel_must_wait_for_its_boxes():
    with pytest.raises(simulator.SimulatorError, match="ends while a copy into its shared memory is under way"):
        wrong("too_soon", np.zeros(1024, np.uint8), np.int32(1024), np.int32(4))


def test_a_box_over_one_that_others_still_read():
    out = np.zeros(1024, np.uint8)
    wrong("overwritten", out, np.int32(1024), np.int32(1))
    with pytest.raises(simulator.DataRace, match=r"writes byte \d+ of shared memory"):
        wrong("overwritten", out, np.int32(1024), np.int32(0))


@pytest.mark.parametrize(
    ("nbytes", "message"), [(1040, "16 bytes of its phase never come"), (512, "512 bytes too many")]
)
def test_a_barrier_with_the_wrong_number_of_bytes(nbytes, message):
    with pytest.raises(simulator.DivergentBarrier, match=message):
        wrong("too_soon", np.zeros(1024, np.uint8), np.int32(nbytes), np.int32(2))


def test_copies_that_do_not_fit():
    out, place = np.zeros((1, 1024), np.uint8), places([((0, 0), ())])
    given = place, out, np.int32(1024)
    with pytest.raises(simulator.IllegalAddress, match=r"a copy of 1,024 bytes at byte 1,024 .* has 1,520 bytes"):
        wrong("too_soon", out, np.int32(1024), np.int32(2), shared_bytes=512 - 16)
    with pytest.raises(simulator.SimulatorError, match="3 coordinates from a tensor of 2 axes"):
        wrong("loaded", *given, axes=3)
    with pytest.raises(simulator.SimulatorError, match="copy in im2col mode with a tensor map in tiled mode"):
        wrong("loaded", *given, axes=2 + 1, options=("-DIM2COL",), rank=3, sizes=(64, 2, 4), strides=(128, 256),
              box=(64, 2, 4), steps=(1, 1, 1))  # fmt: skip
    tensor = on_device(np.ones((8, 64), np.float16))
    data = encode_tiled(6, 2, address(tensor), (64, 8), (128,), (64, 8), (1, 1), 0, 3)
    arguments = as_map(data), np.zeros((2, 1024), np.uint8), np.int32(1024), np.int32(4)
    with pytest.raises(simulator.SimulatorError, match="multicast copy for the blocks 0x4 of a cluster of 2"):
        simulate(source("multicast", 2, "-DCLUSTER=2"), 2, 32, arguments, shared_bytes=1024)


# -- maps --------------------------------------------------------------------------------------------------------------

RIGHT = {
    "data_type": 6, "rank": 3, "address": 1 << 20, "sizes": (64, 8, 4), "strides": (128, 1024), "box": (64, 4, 2),
    "steps": (1, 1, 1), "interleave": 0, "swizzle": 3, "promotion": 0, "fill": 0,
}  # fmt: skip
PIXELS = {
    "data_type": 6, "rank": 4, "address": 1 << 20, "sizes": (64, 8, 8, 4), "strides": (128, 1024, 8192),
    "lower": (-1, -1), "upper": (-1, -1), "channels": 64, "pixels": 64, "steps": (1, 1, 1, 1), "swizzle": 3,
}  # fmt: skip


def test_maps_say_what_they_were_given():
    tensor = decode(encode_tiled(**RIGHT | {"sizes": (64, 2**32, 1), "strides": (128, 2**40 - 16), "fill": 1}))
    assert (tensor.sizes, tensor.strides, tensor.box) == ((64, 2**32, 1), (128, 2**40 - 16), (64, 4, 2))
    assert (tensor.address, tensor.dtype, tensor.span, tensor.nan) == (1 << 20, "f2", 128, True)
    column = decode(encode_im2col(**PIXELS))
    assert (column.lower, column.upper, column.channels, column.pixels) == ((-1, -1), (-1, -1), 64, 64)
    assert len(encode_tiled(**RIGHT)) == len(encode_im2col(**PIXELS)) == 128
    assert decode(bytes(128)) is None


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"data_type": 99}, "tensorDataType is 99"),
        ({"data_type": 13}, "no tensor maps of CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B"),
        ({"rank": 0}, "tensorRank is 0; it must be 1 to 5"),
        ({"rank": 6}, "tensorRank is 6"),
        ({"address": 8}, "globalAddress is 0x8; it must be a multiple of 16"),
        ({"sizes": (64, 0, 4)}, "globalDim is"),
        ({"sizes": (64, 2**32 + 1, 4)}, "globalDim is"),
        ({"strides": (120, 1024)}, "globalStrides is"),
        ({"strides": (128, 2**40)}, "globalStrides is"),
        ({"strides": (128,)}, "globalStrides has 1 entries and needs 2"),
        ({"box": (64, 257, 1)}, "boxDim is"),
        ({"box": (64, 0, 1)}, "boxDim is"),
        ({"box": (12, 1, 1)}, r"boxDim\[0\] is 12, 24 bytes; it must be a multiple of 16 bytes"),
        ({"box": (128, 1, 1)}, "with CU_TENSOR_MAP_SWIZZLE_128B it is at most 128 bytes"),
        ({"steps": (1, 9, 1)}, "elementStrides is"),
        ({"interleave": 1}, "no interleaved tensor maps"),
        ({"interleave": 3}, "interleave is 3"),
        ({"swizzle": 9}, "swizzle is 9"),
        ({"swizzle": 4}, "no swizzles of other atoms"),
        ({"promotion": 4}, "l2Promotion is 4"),
        ({"fill": 2}, "oobFill is 2"),
        ({"fill": 1, "data_type": 1}, "oobFill asks for NaN, which integers do not have"),
    ],
)
def test_maps_that_the_driver_refuses(changed, rule):
    with pytest.raises(ValueError, match=rule):
        encode_tiled(**RIGHT | changed)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"rank": 2}, "tensorRank is 2; im2col mode takes 3 to 5"),
        ({"lower": (-129, 0)}, "pixelBoxLowerCorner is .*; with 4 axes it has 2 entries from -128 to 127"),
        ({"upper": (128, 0)}, "pixelBoxUpperCorner is"),
        ({"upper": (-9, 0), "lower": (0, 0)}, "the window .* is empty"),
        ({"channels": 257}, "channelsPerPixel is 257"),
        ({"pixels": 1025}, "pixelsPerColumn is 1025; it must be 1 to 1024"),
        ({"pixels": 0}, "pixelsPerColumn is 0"),
        ({"channels": 12}, "channelsPerPixel is 12, 24 bytes"),
    ],
)
def test_windows_that_the_driver_refuses(changed, rule):
    with pytest.raises(ValueError, match=rule):
        encode_im2col(**PIXELS | changed)


REPLACING = r"""
#define REPLACE(field, value) asm volatile("tensormap.replace.tile." field ";" :: "l"(map), value : "memory")
extern "C" __global__ void replaces(unsigned char *map, const float *x, int width, long long pitch) {
    REPLACE("rank.global.b1024.b32 [%0], %1", "r"(1));
    REPLACE("global_address.global.b1024.b64 [%0], %1", "l"(x));
    REPLACE("global_dim.global.b1024.b32 [%0], 0, %1", "r"(width));
    REPLACE("global_dim.global.b1024.b32 [%0], 1, %1", "r"(7));
    REPLACE("global_stride.global.b1024.b64 [%0], 0, %1", "l"(pitch));
    REPLACE("box_dim.global.b1024.b32 [%0], 0, %1", "r"(8));
    REPLACE("box_dim.global.b1024.b32 [%0], 1, %1", "r"(4));
    REPLACE("element_stride.global.b1024.b32 [%0], 0, %1", "r"(1));
    REPLACE("element_stride.b1024.b32 [%0], 1, %1", "r"(2));
    REPLACE("elemtype.global.b1024.b32 [%0], 0xA", "r"(0));
    REPLACE("interleave_layout.global.b1024.b32 [%0], 0", "r"(0));
    REPLACE("swizzle_mode.global.b1024.b32 [%0], 1", "r"(0));
    REPLACE("fill_mode.global.b1024.b32 [%0], %1", "r"(1));
}
extern "C" __global__ void replaces_too_little(int *out) {
    __shared__ int map[1];
    unsigned at = __cvta_generic_to_shared(map);
    asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 2;" :: "r"(at));
    out[0] = map[0];
}
"""


def test_a_kernel_makes_a_map_of_zeros():
    x, made = cp.zeros(1000, cp.float32), cp.zeros(128, cp.uint8)
    simulate(CudaSource(REPLACING, "replaces"), 1, 1, (made, x, np.int32(24), np.int64(96)), counters=False)
    assert made.get().tobytes() == encode_tiled(9, 2, x.data.ptr, (24, 7), (96,), (8, 4), (1, 2), swizzle=1, fill=1)
    assert decode(made.get().tobytes()).dtype == "bf16"
    with pytest.raises(simulator.SimulatorError, match=r"a store of 8 bytes .* of which the block has 4 bytes"):
        simulate(CudaSource(REPLACING, "replaces_too_little"), 1, 1, (cp.zeros(1, cp.int32),), counters=False)
