"""PTX with one change, as a slip in inline assembly makes it: it runs, or ends in an error of the kernel's."""

from __future__ import annotations

import functools
import random
import re

import numpy as np
import pytest

from warplab import simulator
from warplab.compile.nvrtc import compile_cuda

SOURCE = r"""
#include <cuda_fp16.h>
extern "C" __global__ void product(float* c, const float* a, const float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] * b[i];
}
extern "C" __global__ void sum(float* c, const float* a, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = t < n ? a[t] : 0;
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    float v = s[t] + __popc(__ballot_sync(~0u, s[t] > 0));
    v += __shfl_down_sync(~0u, v, 4) + __activemask() + __reduce_add_sync(~0u, t) + __any_sync(~0u, v > 3);
    if (t == 0) atomicAdd(c, v);
    asm volatile("bar.sync 1, 64;");
    c[t + 1] = v;
}
extern "C" __global__ void mix(unsigned* c, const unsigned* a, int n) {
    unsigned t = threadIdx.x, x = a[t & 31];
    unsigned long long y = (unsigned long long)x * t;
    x = __byte_perm(x, t, 0x3210) + __funnelshift_l(x, t, 3) + __clz(x) + __brev(x) + min(x, t) + __dp4a(x, t, 0u);
    half h = __float2half(x * 0.5f);
    h = __hfma(h, h, h);
    switch (t & 7) {
        case 0: x += 1; break;
        case 1: x *= 3; break;
        case 2: x ^= 7; break;
        case 3: x -= t; break;
        case 4: x /= t | 1; break;
        case 5: x %= t | 1; break;
        default: x = ~x;
    }
    double d = sqrt((double)x) + sinf(x);
    asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; selp.u32 %0, 1, 2, p;}" : "+r"(x) : "r"(t));
    c[t] = x + (unsigned)d + (unsigned)y + __half2float(h) + __match_any_sync(~0u, t & 3) + atomicCAS(c + 64, 0u, t);
    __threadfence();
}
"""
# What no token of these kernels is: literals, types, registers and instructions of other kinds.
OTHERS = """
    32 64 -1 0 0xffffffff 0f3F800000 0d3FF0000000000000 .f32 .u64 .b16 .pred .v2 %p1 %rd1 %r1 %f1 %rs1 %laneid _ bar
    barrier.sync vote.sync shfl.sync.bfly.b32 redux.sync.add.u32 cvta cvta.to.u64 createpolicy.fractional.b64
    activemask.b32 ld.v4.f32 st.v2.u32 atom.global.exch.b64 red.add.f32 cp.async.ca.shared.global bfe.u32 bfi.b32
    testp.finite.f32 nanosleep.u32 fence.proxy.async mbarrier.init.shared.b64 isspacep.shared mapa.u64 getctarank.u32
    setmaxnreg.inc.sync.aligned.u32 discard.global.L2 ex2.approx.f32 fma.rn.f16x2 mul.wide.u32 mad.lo.cc.u32 addc.u32
    slct.u32.s32 set.eq.u32.f32 cnot.b32 szext.wrap.u32 bmsk.clamp.b32 wgmma.fence.sync.aligned elect.sync trap
"""


@functools.cache
def kernels() -> dict[str, str]:
    """PTX of each kernel, by its name, with the module's variables before it."""
    head, *bodies = re.split(r"(?=\.visible \.entry)", compile_cuda(SOURCE))
    return {re.search(r"entry (\w+)", body)[1]: head + body for body in bodies}


def changed(ptx: str, draw: random.Random) -> tuple[str, str]:
    """Return the PTX with one token of one instruction removed, replaced, added, swapped or cut, and that line."""
    start = ptx.index("{")
    words = [*re.findall(r"[%.\w]+|[{}\[\],|!@;:-]", ptx), *OTHERS.split() * 3]
    lines = ptx[start:].split("\n")
    number = draw.choice([k for k, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(".")])
    tokens = re.findall(r"\s+|[%.$\w]+|.", lines[number])
    places = [k for k, token in enumerate(tokens) if token.strip()]
    k, other = draw.choice(places), draw.choice(places)
    parts = tokens[k].split(".")
    part = draw.randrange(1, len(parts)) if len(parts) > 1 else 0
    match draw.randrange(6):
        case 0:
            tokens[k] = ""
        case 1:
            tokens[k] = draw.choice(words)
        case 2:
            tokens.insert(k, draw.choice(words))
        case 3:
            tokens[k], tokens[other] = tokens[other], tokens[k]
        case 4:
            tokens[k] = ".".join([*parts[:part], draw.choice(words).strip("."), *parts[part + 1 :]])
        case _:
            tokens[k] = ".".join([*parts[:part], *parts[part + 1 :]])
    lines[number] = "".join(tokens)
    return ptx[:start] + "\n".join(lines), lines[number].strip()


def run(name: str, ptx: str) -> None:
    device = simulator.Device(4 << 20)
    device.echo = False
    entry = simulator.load(ptx).entries.get(name)
    if entry is None:
        return
    params = []
    for param in entry.params:
        value = 64
        if param.type == "u64":
            value = device.memory.allocate(4096)
            device.memory.view(value, 4096)[:] = np.random.default_rng(1).integers(0, 256, 4096, dtype=np.uint8)
            device.memory.mark_initialized(value, 4096)
        params.append(value.to_bytes(8, "little")[: param.size])
    device.launch(entry, (1,), (64,), params, options=simulator.Options(path_limit=20_000))


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.thorough)])
def test_a_slip_in_ptx_is_an_error_of_the_kernel_never_of_the_simulator(count):
    seed = 34_000 + count
    draw = random.Random(seed)
    ran = 0
    for number in range(count):
        name, ptx = draw.choice(list(kernels().items()))
        ptx, line = changed(ptx, draw)
        try:
            run(name, ptx)
            ran += 1
        except simulator.SimulatorError as error:
            if "cannot read the PTX of kernel" in str(error):
                raise AssertionError(f"no instruction is named: {error}: `{line}`") from error
        except Exception as error:
            raise AssertionError(f"seed {seed}, change {number} of {name}: `{line}`") from error
    assert 0.1 * count < ran < 0.9 * count
