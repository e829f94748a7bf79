"""Conversions to and from FP4, FP6 and the scales ue8m0, of sm_100a, against NVIDIA's own code without them.

cuda_fp4.h, cuda_fp6.h and cuda_fp8.h compute the same in integers where the GPU lacks the instructions, as sm_90a does.
So one program, compiled for both, must give the same bits.
"""

from __future__ import annotations

import numpy as np
import pytest

from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#define KERNEL(NAME, IN, OUT, RESULT) \\
    extern "C" __global__ void NAME(const IN* in, OUT* out, int n) { \\
        int i = blockIdx.x * blockDim.x + threadIdx.x; \\
        if (i < n) { \\
            IN x = in[i]; \\
            out[i] = RESULT; \\
        } \\
    }
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
__device__ u32 bits(__half2_raw h) { return h.x | (u32)h.y << 16; }
__device__ u32 bits(__nv_bfloat162_raw h) { return h.x | (u32)h.y << 16; }
__device__ float2 two(unsigned long long x) { return make_float2(__uint_as_float((u32)x), __uint_as_float(x >> 32)); }
__device__ __half2_raw halves(u32 x) { __half2_raw h; h.x = x; h.y = x >> 16; return h; }
__device__ __nv_bfloat162_raw bhalves(u32 x) { __nv_bfloat162_raw h; h.x = x; h.y = x >> 16; return h; }
KERNEL(to_e2m1, unsigned long long, u8, __nv_cvt_float2_to_fp4x2(two(x), __NV_E2M1, cudaRoundNearest))
KERNEL(to_e2m3, unsigned long long, u16, __nv_cvt_float2_to_fp6x2(two(x), __NV_E2M3, cudaRoundNearest))
KERNEL(to_e3m2, unsigned long long, u16, __nv_cvt_float2_to_fp6x2(two(x), __NV_E3M2, cudaRoundNearest))
KERNEL(down, unsigned long long, u16, __nv_cvt_float2_to_e8m0x2(two(x), __NV_NOSAT, cudaRoundZero))
KERNEL(down_finite, unsigned long long, u16, __nv_cvt_float2_to_e8m0x2(two(x), __NV_SATFINITE, cudaRoundZero))
KERNEL(up, unsigned long long, u16, __nv_cvt_float2_to_e8m0x2(two(x), __NV_NOSAT, cudaRoundPosInf))
KERNEL(up_finite, unsigned long long, u16, __nv_cvt_float2_to_e8m0x2(two(x), __NV_SATFINITE, cudaRoundPosInf))
KERNEL(halves_up, u32, u16, __nv_cvt_bfloat162raw_to_e8m0x2(bhalves(x), __NV_NOSAT, cudaRoundPosInf))
KERNEL(from_e2m1, u8, u32, bits(__nv_cvt_fp4x2_to_halfraw2(x, __NV_E2M1)))
KERNEL(from_e2m3, u16, u32, bits(__nv_cvt_fp6x2_to_halfraw2(x, __NV_E2M3)))
KERNEL(from_e3m2, u16, u32, bits(__nv_cvt_fp6x2_to_halfraw2(x, __NV_E3M2)))
KERNEL(from_e8m0, u16, u32, bits(__nv_cvt_e8m0x2_to_bf162raw(x)))
"""
KERNELS = {  # kernel: the instruction, elements of input and output
    "to_e2m1": ("cvt.rn.satfinite.e2m1x2.f32", "u8", "u1"),
    "to_e2m3": ("cvt.rn.satfinite.e2m3x2.f32", "u8", "u2"),
    "to_e3m2": ("cvt.rn.satfinite.e3m2x2.f32", "u8", "u2"),
    "down": ("cvt.rz.ue8m0x2.f32", "u8", "u2"),
    "down_finite": ("cvt.rz.satfinite.ue8m0x2.f32", "u8", "u2"),
    "up": ("cvt.rp.ue8m0x2.f32", "u8", "u2"),
    "up_finite": ("cvt.rp.satfinite.ue8m0x2.f32", "u8", "u2"),
    "halves_up": ("cvt.rp.ue8m0x2.bf16x2", "u4", "u2"),
    "from_e2m1": ("cvt.rn.f16x2.e2m1x2", "u1", "u4"),
    "from_e2m3": ("cvt.rn.f16x2.e2m3x2", "u2", "u4"),
    "from_e3m2": ("cvt.rn.f16x2.e3m2x2", "u2", "u4"),
    "from_e8m0": ("cvt.rn.bf16x2.ue8m0x2", "u2", "u4"),
}
# Ends of the formats' ranges, ties between their numbers, subnormals, infinities and NaN, of float32.
EDGES = np.array(
    [0, 0x80000000, 1, 0x00400000, 0x00400001, 0x007FFFFF, 0x00800000, 0x3E800000, 0x3E7FFFFF, 0x3D800000, 0x3F000000]
    + [0x3FA00000, 0x40200000, 0x40A00000, 0x40C00000, 0x40C00001, 0x40E00000, 0x41E00000, 0x41E80000, 0x7F000000]
    + [0x7F000001, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xC0C00000, 0xFF7FFFFF, 0xBE7FFFFF],
    np.uint32,
)


def numbers(item: str) -> np.ndarray:
    """All codes of one or two bytes; of float32 and bfloat16 edges, any bits, and numbers near 1. Seed 35."""
    rng = np.random.default_rng(35)
    if item in ("u1", "u2"):
        return np.arange(2 ** (8 * int(item[1])), dtype=item)
    if item == "u4":
        return rng.integers(0, 2**32, 2048, np.uint32)
    near = (rng.standard_normal(2000).astype(np.float32) * np.float32(2.0) ** rng.integers(-8, 8, 2000)).view(np.uint32)
    flat = np.concatenate([EDGES, EDGES[::-1], rng.integers(0, 2**32, 2000, np.uint32), near])
    return flat[: flat.size // 2 * 2].astype(np.uint32).view("u8")


@pytest.mark.parametrize("kernel", KERNELS)
def test_they_give_what_nvidias_code_without_them_gives(kernel):
    instruction, item, result = KERNELS[kernel]
    given, found = numbers(item), []
    for architecture in ("sm_90a", "sm_100a"):
        source = CudaSource(SOURCE, kernel, options=(f"-arch={architecture}",))
        ptx = source.ptx
        assert (instruction in ptx) == (architecture == "sm_100a")
        out = np.zeros(given.size, result)
        simulate(source, -(-given.size // 256), 256, (given, out, np.int32(given.size)))
        found.append(out)
    np.testing.assert_array_equal(found[1], found[0])
    assert np.unique(found[0]).size > 5
