"""Addresses of shared and local memory have 32 bits and wrap round: a register may lie below the memory, if a constant
brings the sum back into it. Compilers write this for `s[t + k - 16]`."""

from __future__ import annotations

import re

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

# The simulator's ways through an access: with and without checks, by arrays, by the machine code of a loop.
WAYS = {
    "checked": {"machine_code": False},
    "unchecked": {"machine_code": False, "checks": False, "counters": False},
    "checked loop": {},
    "unchecked loop": {"checks": False, "counters": False},
}
PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out)
{
    .reg .b32 %r<12>; .reg .b64 %rd<6>; .reg .pred %p1;
    .shared .align 4 .b8 s[4096];
    .local .align 4 .b8 l[16];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, s;
    shl.b32 %r2, %r1, 2;
    add.s32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    add.s32 %r5, %r4, -4096;
    mov.u32 %r6, l;
    add.s32 %r6, %r6, -64;
    mov.u32 %r9, 0;
loop:
    ld.shared.u32 %r7, [%r5+4096];
    st.local.u32 [%r6+68], %r7;
    ld.local.u32 %r8, [%r6+68];
    st.shared.u32 [%r5+4096], %r8;
    red.shared.add.u32 [%r5+4096], 3;
    add.s32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, 600;
    @%p1 bra loop;
    ld.shared.u32 %r10, [%r5+4096];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r10;
    ret;
}
"""


# The same with registers of 64 bits, of which the upper half says nothing.
WIDE = (
    PTX.replace("loop:\n", "add.s32 %r11, %r1, 3; mov.b64 %rd4, {%r5, %r11}; mov.b64 %rd5, {%r6, %r11};\nloop:\n")
    .replace("[%r5+", "[%rd4+")
    .replace("[%r6+", "[%rd5+")
)
# Generic addresses: the register lies below the window of shared memory, the sum in it.
GENERIC = (
    PTX.replace("loop:\n", "cvt.u64.u32 %rd4, %r4; cvta.shared.u64 %rd4, %rd4; add.s64 %rd4, %rd4, -4096;\nloop:\n")
    .replace("shared.u32 [%r5", "u32 [%rd4")
    .replace("red.shared.add.u32 [%r5", "red.add.u32 [%rd4")
)


@pytest.mark.parametrize("ptx", [PTX, WIDE, GENERIC], ids=["32 bits", "64 bits", "generic"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 7, 32, 256])
def test_a_negative_register_and_an_offset(ptx, way, threads):
    device = simulator.Device(1 << 24)
    out = device.memory.allocate(4 * threads)
    options = simulator.Options(**WAYS[way])
    for _ in range(2):  # the second time the loop is machine code from its start
        parameters = [out.to_bytes(8, "little")]
        device.launch(simulator.load(ptx).entries["kernel"], (1,), (threads,), parameters, options=options)
        found = device.memory.view(out, 4 * threads).view(np.uint32)
        np.testing.assert_array_equal(found, np.arange(threads) + 1800)


def test_what_lies_below_the_memory_is_said_with_its_sign():
    with pytest.raises(simulator.IllegalAddress, match=r"at byte -32 of shared memory \(element -8 of `s`\)") as caught:
        launched(PTX.replace("[%r5+4096]", "[%r5+4064]"))
    assert "negative" in caught.value.reason


@pytest.mark.parametrize("offset", [4096 + 16384, 4096 - 64])
@pytest.mark.parametrize("way", ["unchecked", "unchecked loop"])
def test_without_checks_an_access_beyond_memory_is_the_kernels_fault(way, offset):
    """It said that this was a bug of the simulator."""
    with pytest.raises(simulator.IllegalAddress, match="launch it with them"):
        launched(PTX.replace("[%r5+4096]", f"[%r5+{offset}]"), **WAYS[way])


# Matrix loads and stores, an mbarrier and a bulk copy, at a register that lies 4096 bytes below the memory.
COPIES = """.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 out)
{
    .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<3>;
    .shared .align 128 .b8 s[384];
    .shared .align 8 .b8 bar[8];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, s;
    mad.lo.s32 %r3, %r1, 4, %r2;
    add.s32 %r4, %r1, 1000;
    st.shared.u32 [%r3], %r4;
    and.b32 %r5, %r1, 7;
    mad.lo.s32 %r5, %r5, 16, %r2;
    add.s32 %r5, %r5, -4096;
    mov.u32 %r6, bar;
    add.s32 %r6, %r6, -4096;
    add.s32 %r7, %r2, -3840;
    add.s32 %r8, %r1, 3;
    mov.b64 %rd5, {%r5, %r8}; mov.b64 %rd6, {%r6, %r8}; mov.b64 %rd7, {%r7, %r8};
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra initialised;
    mbarrier.init.shared.b64 [%r6+4096], 1;
initialised:
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r5+4096];
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5+4224], {%r9};
    @%p1 bra wait;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r6+4096], 128;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7+4096], [%rd1], 128, [%r6+4096];
wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r6+4096], 0;
    @!%p2 bra wait;
    bar.sync 0;
    ld.shared.u32 %r10, [%r3+128];
    ld.shared.u32 %r11, [%r3+256];
    add.s32 %r10, %r10, %r11;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r10;
    ret;
}
"""


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("checks", [True, False])
def test_matrices_mbarriers_and_bulk_copies(bits, checks):
    ptx = re.sub(r"\[%r([567])\+", r"[%rd\1+", COPIES) if bits == 64 else COPIES
    device = simulator.Device(1 << 24)
    out = device.memory.allocate(128)
    device.memory.view(out, 128).view(np.uint32)[:] = np.arange(32) * 10_000
    device.memory.mark_initialized(out, 128)
    options = simulator.Options(checks=checks)
    device.launch(simulator.load(ptx).entries["kernel"], (1,), (32,), [out.to_bytes(8, "little")], options=options)
    np.testing.assert_array_equal(device.memory.view(out, 128).view(np.uint32), np.arange(32) * 10_001 + 1000)


def launched(ptx: str, **how) -> None:
    device = simulator.Device(1 << 24)
    out = device.memory.allocate(4096)
    device.launch(
        simulator.load(ptx).entries["kernel"],
        (1,),
        (32,),
        [out.to_bytes(8, "little")],
        options=simulator.Options(**how),
    )


MERGE = """
extern "C" __global__ void k(int* out, const unsigned* index) {  // merge of HeCBench: an index without a sign
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = 2 * t;
    __syncthreads();
    out[t] = (s + 63)[~index[t]];
}
"""


@pytest.mark.parametrize("way", WAYS)
def test_an_index_without_a_sign_that_means_a_negative_one(way):
    source = CudaSource(MERGE, "k")
    assert "[%rd" in source.ptx.split("ld.shared")[1], "the address has 64 bits"
    index, out = np.arange(63, dtype=np.uint32), np.zeros(63, np.int32)
    simulate(source, 1, 63, (out, index), **WAYS[way] | {"races": False, "checks": way.startswith("checked")})
    np.testing.assert_array_equal(out, 2 * (62 - index.astype(int)))


SOURCE = """
extern "C" __global__ void window(const int* x, int* out) {  // a tiled convolution, as textbooks write it
    __shared__ double s[128];
    __shared__ int hits[128];
    int t = threadIdx.x;
    s[t] = x[t];
    hits[t] = 0;
    __syncthreads();
    double sum = 0;
    #pragma unroll
    for (int k = 0; k < 33; k++) {
        int j = t + k - 16;
        if (j >= 0 && j < 128) {
            sum += s[t + k - 16];
            atomicAdd(&hits[t + k - 16], 1);
        }
    }
    __syncthreads();
    out[t] = (int)sum * 64 + hits[t];
}
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_window_around_each_element(way):
    x = np.random.default_rng(5).integers(0, 1000, 128, dtype=np.int32)
    out = np.zeros(128, np.int32)
    simulate(CudaSource(SOURCE, "window"), 1, 128, (x, out), **WAYS[way])
    near = np.abs(np.subtract.outer(np.arange(128), np.arange(128))) <= 16
    np.testing.assert_array_equal(out, (near * x).sum(1) * 64 + near.sum(1))
