"""Tensor cores: fragments against the PTX ISA's figures, products bit for bit against an H100, GEMMs against NumPy."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.matrix_cases import Case, cases
from tests.support.ptx_harness import get, put
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.ptx.fragments import flops, ldmatrix_fragment, mma_fragment, wmma_fragment
from warplab.simulator.translate import aligned_sums

RECORDED = Path(__file__).parent / "recorded" / "matrix_h100.npz"


# -- fragments ---------------------------------------------------------------------------------------------------------


def held(fragment, lane: int) -> list[tuple[int, int]]:
    """(row, column) of each element of a lane."""
    return list(zip(fragment.row[lane].tolist(), fragment.column[lane].tolist(), strict=True))


@pytest.mark.parametrize(
    ("shape", "operand", "kind", "lane", "elements"),
    [
        # Read off the figures of the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and so on.
        ("m16n8k16", "a", "f16", 0, [(0, 0), (0, 1), (8, 0), (8, 1), (0, 8), (0, 9), (8, 8), (8, 9)]),
        ("m16n8k16", "a", "bf16", 31, [(7, 6), (7, 7), (15, 6), (15, 7), (7, 14), (7, 15), (15, 14), (15, 15)]),
        ("m16n8k16", "b", "f16", 0, [(0, 0), (1, 0), (8, 0), (9, 0)]),
        ("m16n8k16", "b", "f16", 29, [(2, 7), (3, 7), (10, 7), (11, 7)]),
        ("m16n8k16", "c", "f32", 0, [(0, 0), (0, 1), (8, 0), (8, 1)]),
        ("m16n8k16", "d", "f32", 6, [(1, 4), (1, 5), (9, 4), (9, 5)]),
        ("m16n8k8", "a", "f16", 5, [(1, 2), (1, 3), (9, 2), (9, 3)]),
        ("m16n8k8", "b", "f16", 5, [(2, 1), (3, 1)]),
        ("m16n8k8", "a", "tf32", 5, [(1, 1), (9, 1), (1, 5), (9, 5)]),
        ("m16n8k8", "b", "tf32", 5, [(1, 1), (5, 1)]),
        ("m16n8k4", "a", "tf32", 31, [(7, 3), (15, 3)]),
        ("m8n8k4", "a", "f64", 31, [(7, 3)]),
        ("m8n8k4", "c", "f64", 31, [(7, 6), (7, 7)]),
        ("m8n8k16", "a", "s8", 1, [(0, 4), (0, 5), (0, 6), (0, 7)]),
        ("m16n8k32", "b", "u8", 4, [(0, 1), (1, 1), (2, 1), (3, 1), (16, 1), (17, 1), (18, 1), (19, 1)]),
    ],
)
def test_fragments_of_the_isa(shape, operand, kind, lane, elements):
    assert held(mma_fragment(shape, operand, kind), lane) == elements


def test_fragments_of_ldmatrix():
    # PTX ISA, "ldmatrix": thread 4i + j holds elements 2j and 2j + 1 of row i.
    assert held(ldmatrix_fragment(), 0) == [(0, 0), (0, 1)]
    assert held(ldmatrix_fragment(), 6) == [(1, 4), (1, 5)]
    assert held(ldmatrix_fragment(transposed=True), 6) == [(4, 1), (5, 1)]


@pytest.mark.parametrize("operand", "abc")
@pytest.mark.parametrize(
    ("fragment", "shape", "kind", "times"),
    [
        (mma_fragment, "m16n8k16", "f16", 1),
        (mma_fragment, "m16n8k32", "s8", 1),
        (wmma_fragment, "m16n16k16", "bf16", 1),
        (wmma_fragment, "m16n16k16", "f16", 2),
        (wmma_fragment, "m8n32k16", "s8", 1),
        (wmma_fragment, "m16n16k8", "tf32", 1),
    ],
)
def test_every_element_is_held(fragment, shape, kind, times, operand):
    kind = {"s8": "s32"}.get(kind, "f32") if operand == "c" else kind
    f = fragment(shape, operand, kind)
    count = np.bincount((f.row * f.columns + f.column).reshape(-1), minlength=f.rows * f.columns)
    assert set(count.tolist()) == {times if operand != "c" else 1}


# -- one instruction, as an H100 does it -------------------------------------------------------------------------------


@functools.cache
def recorded() -> dict[str, np.ndarray]:
    with np.load(RECORDED) as arrays:
        return dict(arrays)


def run(case: Case) -> np.ndarray:
    device = simulator.Device(64 << 20)
    addresses = [put(device, data) for data in case.inputs]
    out = put(device, np.zeros(case.size, np.uint8))
    entry = simulator.load(case.ptx).entries[case.name]
    device.launch(entry, (case.grid,), (32,), [a.to_bytes(8, "little") for a in (*addresses, out)])
    return get(device, out, case.size, "u1")


@pytest.mark.parametrize("times", [aligned_sums.TIMES, 0], ids=["numpy", "machine-code"])
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_bits_of_an_h100(case, times, monkeypatch):
    monkeypatch.setattr(aligned_sums, "TIMES", times)
    monkeypatch.setattr(aligned_sums, "_spent", Counter())
    ours, theirs = run(case), recorded()[case.name]
    dtype = "f8" if "f64" in case.name else "u4"
    ours, theirs = ours.view(dtype), theirs.view(dtype)
    np.testing.assert_array_equal(ours, theirs)
    if dtype == "f8":  # NaN has many forms; of the rest the bits must agree, the zeros' signs too
        number = ~np.isnan(ours)
        assert (ours[number].view("u8") == theirs[number].view("u8")).all()


SPARSE = """
.version 9.0
.target sm_90
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 e, .param .u64 d)
{
    .reg .b32 %i, %a<4>, %b<4>, %e;
    .reg .f32 %d<4>;
    .reg .b64 %at, %p;
    mov.u32 %i, %tid.x;
    ld.param.u64 %p, [a];
    mad.wide.u32 %at, %i, 16, %p;
    ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%at];
    ld.param.u64 %p, [b];
    mad.wide.u32 %at, %i, 16, %p;
    ld.global.v4.b32 {%b0, %b1, %b2, %b3}, [%at];
    ld.param.u64 %p, [e];
    mad.wide.u32 %at, %i, 4, %p;
    ld.global.b32 %e, [%at];
    mov.f32 %d0, 0f00000000;
    mov.f32 %d1, %d0;
    mov.f32 %d2, %d0;
    mov.f32 %d3, %d0;
    mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3},
        {%b0, %b1, %b2, %b3}, {%d0, %d1, %d2, %d3}, %e, SELECTOR;
    ld.param.u64 %p, [d];
    mad.wide.u32 %at, %i, 16, %p;
    st.global.v4.f32 [%at], {%d0, %d1, %d2, %d3};
    ret;
}
"""


def sparse_product(a, b, metadata, selector: int) -> np.ndarray:
    """D of one warp, (16, 8), from the elements of A that are there, (16, 16), B (32, 8) and the lanes' metadata."""
    a, b = (
        matrix[fragment.row, fragment.column].astype(HALF).view(np.uint8)
        for matrix, fragment in (
            (a, mma_fragment("m16n8k16", "a", "f16")),
            (b, mma_fragment("m16n8k32", "b", "f16")),
        )
    )
    device = simulator.Device(1 << 20)
    pointers = [put(device, np.ascontiguousarray(data).reshape(-1)) for data in (a, b, metadata.view(np.uint8))]
    pointers.append(put(device, np.zeros(512, np.uint8)))
    entry = simulator.load(SPARSE.replace("SELECTOR", str(selector))).entries["product"]
    device.launch(entry, (1,), (32,), [address.to_bytes(8, "little") for address in pointers])
    d, fragment = np.empty((16, 8), np.float32), mma_fragment("m16n8k16", "d", "f32")
    d[fragment.row, fragment.column] = get(device, pointers[3], 128, "f4").reshape(32, 4)
    return d


@pytest.mark.parametrize("selector", [0, 1])
def test_a_sparse_factor(selector):
    rng = np.random.default_rng(9)
    held, b = rng.integers(1, 8, (16, 16)), rng.integers(-8, 8, (32, 8))
    where = np.array([rng.permuted(np.arange(4))[:2] for _ in range(128)]).reshape(16, 8, 2)
    where.sort(axis=2)
    # PTX ISA, "Sparse matrix storage": thread 4g + 2·selector has columns 0 to 15 of row g in its low half, of row
    # g + 8 in its high half; the next thread has columns 16 to 31.
    metadata = np.full(32, 0x4444_4444, np.uint32)
    for g in range(8):
        for half in range(2):
            chunks = [*where[g, 4 * half : 4 * half + 4], *where[g + 8, 4 * half : 4 * half + 4]]
            word = sum((int(low) | int(high) << 2) << 4 * n for n, (low, high) in enumerate(chunks))
            metadata[4 * g + 2 * selector + half] = word
    whole = np.zeros((16, 32))
    for row in range(16):
        whole[row, (4 * np.arange(8)[:, None] + where[row]).reshape(-1)] = held[row]
    np.testing.assert_array_equal(sparse_product(held, b, metadata, selector), whole @ b)
    metadata[4 * 3 + 2 * selector] = 0x4444_4041
    with pytest.raises(simulator.SimulatorError, match=r"metadata 0x44444041, .* which elements of row 3 of A"):
        sparse_product(held, b, metadata, selector)


# -- kernels -----------------------------------------------------------------------------------------------------------

SOURCE = r"""
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using namespace nvcuda;

// C (m × n) = A (m × k, rows) · B (k × n, rows); a warp a tile, tiles of A and B in shared memory.
extern "C" __global__ void wmma_gemm(const half* a, const half* b, float* c, int n, int k) {
    __shared__ alignas(32) half ta[16][16 + 8], tb[16][16 + 8];
    int row = 16 * blockIdx.y, column = 16 * blockIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int step = 0; step < k; step += 16) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            ta[i / 16][i % 16] = a[(row + i / 16) * k + step + i % 16];
            tb[i / 16][i % 16] = b[(step + i / 16) * n + column + i % 16];
        }
        __syncwarp();
        wmma::load_matrix_sync(fa, &ta[0][0], 24);
        wmma::load_matrix_sync(fb, &tb[0][0], 24);
        wmma::mma_sync(fc, fa, fb, fc);
        __syncwarp();
    }
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 0.5f;
    wmma::store_matrix_sync(c + row * n + column, fc, n, wmma::mem_row_major);
}

// One tile: D = A·B + C, for any shape, type and layout.
template <int M, int N, int K, typename T, typename U, typename A, typename D, typename LA, typename LB>
__global__ void wmma_tile(const A* a, const A* b, const D* c, D* d, int lda, int ldb, int ldc) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, U> fc;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, ldc, wmma::mem_row_major);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(d, fc, ldc, wmma::mem_row_major);
}

// A warp computes 16 × 8 of C from A (rows) and B (rows), with ldmatrix from swizzled shared memory.
extern "C" __global__ void mma_gemm(const half* a, const half* b, float* c, int n, int k, int swizzled) {
    __shared__ alignas(128) half ta[16][64], tb[64][8];
    int row = 16 * blockIdx.y, column = 8 * blockIdx.x, lane = threadIdx.x;
    float d[4] = {};
    for (int step = 0; step < k; step += 64) {
        for (int i = lane; i < 128; i += 32)  // 8 halves at a time
            *(uint4*)&ta[i / 8][8 * (swizzled ? i % 8 ^ i / 8 % 8 : i % 8)] =
                *(const uint4*)&a[(row + i / 8) * k + step + 8 * (i % 8)];
        for (int i = lane; i < 64; i += 32) *(uint4*)&tb[i][0] = *(const uint4*)&b[(step + i) * n + column];
        __syncwarp();
        for (int part = 0; part < 4; part++) {
            unsigned fa[4], fb[2];
            int r = lane % 16, q = 2 * part + lane / 16;
            unsigned pa = __cvta_generic_to_shared(&ta[r][8 * (swizzled ? q ^ r % 8 : q)]);
            unsigned pb = __cvta_generic_to_shared(&tb[16 * part + lane % 16][0]);
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(pa));
            asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                         : "=r"(fb[0]), "=r"(fb[1]) : "r"(pb));
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                         "{%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                         : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
        }
        __syncwarp();
    }
    for (int i = 0; i < 4; i++) c[(row + lane / 4 + 8 * (i / 2)) * n + column + 2 * (lane % 4) + i % 2] = d[i];
}

extern "C" __global__ void half_a_warp(const half* a, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    if (threadIdx.x < 16) wmma::load_matrix_sync(fa, a, 16);
    c[threadIdx.x] = fa.x[0];
}
extern "C" __global__ void load_at(const half* a, float* c, int offset, int stride) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::load_matrix_sync(fa, a + offset, stride);
    c[threadIdx.x] = fa.x[0];
}
extern "C" __global__ void rows_at(float* c, int offset) {
    __shared__ alignas(16) unsigned t[128];
    t[threadIdx.x] = threadIdx.x;
    __syncthreads();
    unsigned p = __cvta_generic_to_shared(t) + 16 * threadIdx.x + offset, r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(p));
    c[threadIdx.x] = r;
}
extern "C" __global__ void hopper(float* c) {
    asm volatile("wgmma.fence.sync.aligned;");
    c[threadIdx.x] = 1;
}
"""
HALF = np.float16


@pytest.fixture(autouse=True)
def _seeded():
    """Each test draws the same numbers, whatever ran before it."""
    global generator
    generator = np.random.default_rng(20)


def random(*shape) -> np.ndarray:
    return generator.standard_normal(shape)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (32, 48, 80)])
def test_wmma_gemm(m, n, k):
    a, b, c = random(m, k).astype(HALF), random(k, n).astype(HALF), np.zeros((m, n), np.float32)
    profile = simulate(CudaSource(SOURCE, "wmma_gemm"), (n // 16, m // 16), 32, (a, b, c, np.int32(n), np.int32(k)))
    want = 0.5 * a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, want, atol=1e-6 * k, rtol=0)
    tiles = m * n * k // 16**3
    assert profile.tensor_operations == {"m16n16k16.f32.f16": tiles}
    assert tiles * flops("m16n16k16.f32.f16") == 2 * m * n * k
    # An H100 takes two instructions for each; they count for the line that calls mma_sync, not for a line of mma.hpp.
    counted = {place: c.tensor_operations for place, c in profile.lines.items() if c.tensor_operations}
    line = SOURCE[: SOURCE.index("mma_sync(fc, fa, fb, fc)")].count("\n") + 1
    assert counted == {("kernel.cu", line): 2 * tiles}
    assert profile.line_tensor_operations == {("kernel.cu", line): {"m16n16k16.f32.f16": tiles}}
    # In the mix loads and stores of tiles are what they are, and no products.
    mix = profile.line_mix["kernel.cu", line]
    assert mix["tensor"] == tiles
    assert sum(mix.get("tensor", 0) for mix in profile.line_mix.values()) == tiles
    # Both tiles come by ldmatrix .x4, four wavefronts each; rows of 48 bytes meet no bank conflict.
    loads = [c for (_, line), c in profile.lines.items() if c.shared_load_requests]
    assert sum(c.shared_load_requests for c in loads) == 2 * tiles
    assert sum(c.shared_load_wavefronts for c in loads) == 8 * tiles
    assert profile.counts.global_store_requests == 4 * m * n // 256


FLOAT, DOUBLE, INT = np.float32, np.float64, np.int32


@pytest.mark.parametrize("layout_a", ["row", "col"])
@pytest.mark.parametrize("layout_b", ["row", "col"])
@pytest.mark.parametrize(
    ("shape", "factor", "sum_type", "tolerance"),
    [
        *(((m, n, 16), "half", "float", 1e-5) for m, n in ((16, 16), (32, 8), (8, 32))),
        ((16, 16, 16), "half", "half", 2e-2),
        ((16, 16, 16), "__nv_bfloat16", "float", 1e-5),
        ((16, 16, 8), "wmma::precision::tf32", "float", 1e-5),
        ((16, 16, 16), "signed char", "int", 0),
        ((8, 32, 16), "unsigned char", "int", 0),
        ((8, 8, 4), "double", "double", 1e-14),
    ],
)
def test_wmma_tiles(shape, factor, sum_type, tolerance, layout_a, layout_b):
    m, n, k = shape
    element = {"wmma::precision::tf32": "float"}.get(factor, factor)
    types = f"{m},{n},{k},{factor},{sum_type},{element},{sum_type},wmma::{layout_a}_major,wmma::{layout_b}_major"
    a, b, c = random(m, k), random(k, n), random(m, n)
    if factor.endswith("char"):
        low, high = (-128, 127) if factor[0] == "s" else (0, 255)
        a, b, c = (generator.integers(low, high, x.shape, endpoint=True) for x in (a, b, c))
    dtype = {"half": HALF, "float": FLOAT, "double": DOUBLE, "int": INT}[sum_type]
    memory_a, a = _as(element, factor, a)
    memory_b, b = _as(element, factor, b)
    c, d = c.astype(dtype), np.zeros((m, n), dtype)
    lda, ldb = (k if layout_a == "row" else m), (n if layout_b == "row" else k)
    memory_a = np.ascontiguousarray(memory_a if layout_a == "row" else memory_a.T)
    memory_b = np.ascontiguousarray(memory_b if layout_b == "row" else memory_b.T)
    arguments = (memory_a, memory_b, c, d, np.int32(lda), np.int32(ldb), np.int32(n))
    simulate(CudaSource(SOURCE, f"wmma_tile<{types}>"), 1, 32, arguments)
    want = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_allclose(d.astype(np.float64), want, atol=tolerance, rtol=0)


def _as(element: str, factor: str, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What to put in memory for `values` as the C++ type `element`, and the values that the tensor core sees."""
    if element == "__nv_bfloat16":
        bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        return (bits >> np.uint32(16)).astype(np.uint16), bits.view(np.float32)
    memory = values.astype(
        {"half": HALF, "float": FLOAT, "double": DOUBLE, "signed char": np.int8, "unsigned char": np.uint8}[element]
    )
    if "tf32" in factor:
        return memory, (memory.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return memory, memory


SMALL_TYPES = r"""
#include <mma.h>
using namespace nvcuda;
using namespace nvcuda::wmma::experimental;
#define GEMM(name, K, kind, product, type)                                                                            \
    extern "C" __global__ void name(const char* a, const char* b, int* c, int n, int k) {                             \
        wmma::fragment<wmma::matrix_a, 8, 8, K, precision::kind, wmma::row_major> fa;                                 \
        wmma::fragment<wmma::matrix_b, 8, 8, K, precision::kind, wmma::col_major> fb;                                 \
        wmma::fragment<wmma::accumulator, 8, 8, K, int> sums;                                                         \
        wmma::fill_fragment(sums, 0);                                                                                 \
        int row = 8 * blockIdx.y, column = 8 * blockIdx.x;                                                            \
        for (int at = 0; at < k; at += K) {                                                                           \
            wmma::load_matrix_sync(fa, (type*)(a + 16 * (row * k + at) / K), k);                                      \
            wmma::load_matrix_sync(fb, (type*)(b + 16 * (column * k + at) / K), k);                                   \
            product;                                                                                                  \
        }                                                                                                             \
        wmma::store_matrix_sync(c + row * n + column, sums, n, wmma::mem_row_major);                                  \
    }
GEMM(s4, 32, s4, wmma::mma_sync(sums, fa, fb, sums), const void)
GEMM(u4, 32, u4, wmma::mma_sync(sums, fa, fb, sums), const void)
GEMM(different, 128, b1, wmma::bmma_sync(sums, fa, fb, sums, bmmaBitOpXOR), const unsigned)
GEMM(both, 128, b1, wmma::bmma_sync(sums, fa, fb, sums, bmmaBitOpAND), const unsigned)
"""


@pytest.mark.parametrize(("name", "low", "high"), [("s4", -8, 8), ("u4", 0, 16), ("different", 0, 2), ("both", 0, 2)])
def test_wmma_gemm_of_types_that_share_a_byte(name, low, high):
    def packed(matrix):
        if high == 2:
            return np.packbits(matrix.astype(np.uint8), axis=1, bitorder="little")
        return (matrix[:, ::2] & 15 | (matrix[:, 1::2] & 15) << 4).astype(np.uint8)

    m, n, k = 24, 16, 384
    rng = np.random.default_rng(4)
    a, b = rng.integers(low, high, (m, k)), rng.integers(low, high, (n, k))
    want = (a[:, None] != b[None]).sum(axis=2) if name == "different" else a @ b.T
    c = np.zeros((m, n), np.int32)
    grid, arguments = (n // 8, m // 8), (packed(a), packed(b), c, np.int32(n))
    simulate(CudaSource(SMALL_TYPES, name), grid, 32, (*arguments, np.int32(k)))
    np.testing.assert_array_equal(c, want)
    with pytest.raises(simulator.MisalignedAddress, match=r"stride of `wmma\.load\.a"):
        simulate(CudaSource(SMALL_TYPES, name), grid, 32, (*arguments, np.int32(k - 8)))


@pytest.mark.parametrize("swizzled", [0, 1])
def test_mma_gemm_with_ldmatrix(swizzled):
    m, n, k = 32, 24, 128
    a, b, c = random(m, k).astype(HALF), random(k, n).astype(HALF), np.zeros((m, n), np.float32)
    arguments = (a, b, c, np.int32(n), np.int32(k), np.int32(swizzled))
    profile = simulate(CudaSource(SOURCE, "mma_gemm"), (n // 8, m // 16), 32, arguments)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-6 * k, rtol=0)
    steps = m * n * k // (16 * 8 * 16)
    assert profile.tensor_operations == {"m16n8k16.f32.f16": steps}
    assert profile.counts.shared_load_requests == 2 * steps
    # x4 takes four wavefronts when its rows lie in different banks; unswizzled, the eight rows of 128 bytes do not.
    assert profile.counts.shared_load_wavefronts == (4 if swizzled else 32) * steps + 2 * steps


def test_a_matrix_instruction_needs_the_whole_warp():
    a, c = np.ones((16, 16), HALF), np.zeros(32, np.float32)
    never = r"`wmma\.load\.a.*` waits for lanes of its warp that never come: 16 to 31\n(.*\n)*.*needs the whole warp"
    with pytest.raises(simulator.DivergentWarp, match=never):
        simulate(CudaSource(SOURCE, "half_a_warp"), 1, 32, (a, c))
    with pytest.raises(simulator.DivergentWarp, match="16 of the 32 threads of a warp"):
        simulate(CudaSource(SOURCE, "load_at"), 1, 48, (a, np.zeros(48, np.float32), np.int32(0), np.int32(16)))


@pytest.mark.parametrize(
    ("offset", "stride", "error", "words"),
    [
        (0, 24, None, None),
        (8, 24, simulator.MisalignedAddress, "pointer of `wmma.load.a"),
        (0, 20, simulator.MisalignedAddress, "stride of `wmma.load.a"),
        (16, 40, simulator.IllegalAddress, "past the end of array `a`"),
    ],
)
def test_addresses_of_matrices(offset, stride, error, words):
    arguments = (np.ones(16 * 24, HALF), np.zeros(32, np.float32), np.int32(offset), np.int32(stride))
    if error is None:
        simulate(CudaSource(SOURCE, "load_at"), 1, 32, arguments)
        return
    with pytest.raises(error, match=words) as caught:
        simulate(CudaSource(SOURCE, "load_at"), 1, 32, arguments)
    assert caught.value.line is not None
    assert caught.value.array == "a"
    if error is simulator.MisalignedAddress:
        assert caught.value.index == offset
        assert f"begins at byte {2 * offset} of array `a` (768 bytes), element {offset}\n" in str(caught.value)


@pytest.mark.parametrize("offset", [0, 8, 16, 4])
def test_matrices_of_bytes_need_the_alignment_of_a_lanes_part(offset):
    code = """
    #include <mma.h>
    using namespace nvcuda::wmma;
    extern "C" __global__ void product(const signed char* a, const signed char* b, int* d, int offset) {
        fragment<matrix_a, 16, 16, 16, signed char, row_major> fa;
        fragment<matrix_b, 16, 16, 16, signed char, col_major> fb;
        fragment<accumulator, 16, 16, 16, int> sums;
        fill_fragment(sums, 0);
        load_matrix_sync(fa, a + offset, 48);
        load_matrix_sync(fb, b + offset, 48);
        mma_sync(sums, fa, fb, sums);
        store_matrix_sync(d, sums, 16, mem_row_major);
    }"""
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-128, 128, (16, 48)).astype(np.int8) for _ in range(2))
    d = np.zeros((16, 16), np.int32)
    arguments = CudaSource(code, "product"), 1, 32, (a, b, d, np.int32(offset))
    if offset % 8:
        with pytest.raises(simulator.MisalignedAddress, match="is not a multiple of 8 bytes"):
            simulate(*arguments)
        return
    simulate(*arguments)
    part = slice(offset, offset + 16)
    assert np.array_equal(d, a[:, part].astype(np.int32) @ b[:, part].astype(np.int32).T)


def test_addresses_of_rows():
    c = np.zeros(128, np.float32)
    simulate(CudaSource(SOURCE, "rows_at"), 1, 32, (c[:32], np.int32(-0)))
    with pytest.raises(simulator.MisalignedAddress, match="16 bytes"):
        simulate(CudaSource(SOURCE, "rows_at"), 1, 32, (c[:32], np.int32(8)))
    with pytest.raises(simulator.UninitializedRead, match="byte 128 of shared memory"):
        simulate(CudaSource(SOURCE, "rows_at"), 1, 32, (c[:32], np.int32(16)))


def test_wgmma_needs_a_warpgroup():
    with pytest.raises(simulator.DivergentWarp, match=r"`wgmma.fence.* with 32 of the 128 threads of a warpgroup"):
        simulate(CudaSource(SOURCE, "hopper", ("-arch=sm_90a",)), 1, 32, (np.zeros(32, np.float32),))
