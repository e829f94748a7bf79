"""Mutants of the PTX of three small kernels, each judged as a student's kernel is, by one test.

The simulator may fail on a mutant (it is counted, with its kinds): that costs this test and nothing more.
"""

from __future__ import annotations

import functools
import json
import random
import re

import numpy as np

from evidence.fuzz.judged import judged
from warpcourse.grading.student import agent
from warplab import checks
from warplab.launch.kernel_source import CudaSource

HEAD = 'extern "C" __global__ void f(const float* a, float* out, int n) {'
KERNELS = {
    "double": "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = 2 * a[i];",
    "sums": """
        __shared__ float tile[64];
        __shared__ int most;
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (threadIdx.x == 0) most = 0;
        tile[threadIdx.x] = i < n ? a[i] : 0;
        __syncthreads();
        float sum = tile[threadIdx.x ^ 1];
        for (int k = 16; k; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
        if (threadIdx.x % 32 == 0) atomicMax(&most, int(sum));
        __syncthreads();
        if (i < n) out[i] = 2 * tile[threadIdx.x] + 0 * most;""",
    "odd": """
        __shared__ alignas(16) float tile[64];
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        unsigned near, lanes, most = 0;
        asm volatile("{ .reg .u64 p; cvta.to.shared.u64 p, %1; cvt.u32.u64 %0, p; }" : "=r"(near) : "l"(tile));
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(near + 4 * threadIdx.x), "l"(a + i % n));
        asm volatile("cp.async.commit_group; cp.async.wait_group 0; bar.sync 0, 64;" ::: "memory");
        asm volatile("activemask.b32 %0;" : "=r"(lanes));
        asm volatile("{ .reg .pred q; setp.ne.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, -1; }" : "=r"(most) : "r"(i));
        asm volatile("{ .reg .pred q; setp.ne.u32 q, %1, 0; bar.red.popc.u32 %0, 1, 64, q; }" : "=r"(lanes) : "r"(i));
        most += __reduce_max_sync(~0u, i) + __match_any_sync(~0u, i / 4) + __byte_perm(i, most, 0x5140) + __clz(i);
        if (i < n) out[i] = 2 * tile[threadIdx.x] + __int_as_float(0 * (most + lanes));""",
}
TEST = """from warplab import checks
checks.kernel(x, make_case, sizes=[50], launches=[(1, 64)])"""
SECONDS = 10.0  # of processor time for one mutant: less than a submission gets

# Words that the three kernels lack, by their kinds in the grammar of PTX.
OPERATIONS = str.split(
    """barrier bar.arrive bar.red.and.pred vote.all.pred vote.sync.uni.pred redux.sync.add.s32 match.all.sync.b32
    cvta.to.u64 cvta.shared.u64 isspacep.global createpolicy.fractional.L2::evict_first.b64 activemask.b32
    shfl.sync.idx.b32 elect.sync mbarrier.init.shared.b64 mbarrier.arrive.shared.b64 fence.proxy.async
    griddepcontrol.wait nanosleep.u32 ldmatrix.sync.aligned.m8n8.x4.shared.b16
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 wmma.load.a.sync.aligned.row.m16n16k16.f16 mapa.u64 st.async.b32
    cp.async.bulk.global.shared::cta.bulk_group tex.1d.v4.f32.s32 brx.idx call trap exit ret.uni prmt.b32 lop3.b32
    bfe.u32 bfi.b32 fma.rn.f16x2 cvt.rn.satfinite.e4m3x2.f32 testp.nan.f32 dp4a.u32.u32 vadd.u32.u32.u32
    set.eq.u32.f32 slct.f32.s32 sad.u32 mad.hi.cc.u32 addc.u32 atom.global.cas.b128 red.async alloca.u32 stacksave.u32
    setmaxnreg.inc.sync.aligned.u32 getctarank.u64 discard.global.L2 applypriority.global.L2::evict_normal
    prefetch.global.L1"""
)
OPERANDS = str.split(
    """0 1 -1 31 0f3F800000 0d0000000000000000 4294967296 0x7FFFFFFFFFFFFFFF %tid.x %laneid %clock64 %pm0 %r1 %rd1
    %f1 %p1 !%p1 %r999999 [%rd1] [%rd1+4] [0] {%r1,%r2} {%r1,%r2,%r3,%r4} {} _ f_param_0 tile %envreg0 nowhere
    $L__BB0_1 "" ;"""
)
SUFFIXES = str.split(
    """.u8 .s16 .f16 .bf16 .f16x2 .u64 .f64 .b128 .pred .v2 .v4 .v8 .sync .aligned .wide .hi .cc .sat .x .global
    .shared .const .local .param .volatile .relaxed.sys .acquire.gpu .rn .approx .ftz"""
)
WORD = re.compile(r"[%$.\w:]+|0[fd][0-9A-F]+|[^\s\w]")


def make_case(rng: np.random.Generator, n: int) -> checks.Case:
    a = rng.integers(-8, 9, n).astype(np.float32)
    return checks.Case({"a": a, "out": None, "n": np.int32(n)}, {"out": 2 * a})


@functools.cache
def described(kernel: str) -> dict:
    """Return what a student's process says of a kernel."""
    namespace = {"x": CudaSource(f"{HEAD} {KERNELS[kernel]} }}", "f", options=("--gpu-architecture=sm_80",))}
    wish = {"op": "describe", "name": "x", "types": []}
    (answer,) = json.loads(agent.respond(json.dumps({"do": [wish]}), namespace))["done"]
    assert answer["compiled"]["kind"] == "ptx", answer
    return answer


def prepare() -> None:
    """Compile, and judge each kernel as it is, so that what is imported for that costs no mutant's time."""
    for kernel in KERNELS:
        end = attempt((kernel, described(kernel)["compiled"]["ptx"]))
        assert end == ("right", ""), (kernel, end)


def make(random: random.Random) -> tuple[str, str]:
    """Return the name of a kernel, and its PTX with one to four changes."""
    kernel = random.choice([*KERNELS])
    lines = described(kernel)["compiled"]["ptx"].splitlines()
    start = next(n for n, line in enumerate(lines) if ".entry" in line)
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        at = random.randrange(start, len(lines))
        random.choice([_operation, _operation, _operand, _operand, _operand, _suffix, _move, _line, _characters])(
            random, lines, at
        )
    return kernel, "\n".join(lines)


def attempt(mutant: tuple[str, str]) -> tuple[str, str]:
    """Return what came of the test, and the simulator's own error if it failed."""
    kernel, ptx = mutant
    answer = described(kernel)
    answer = {**answer, "compiled": {**answer["compiled"], "ptx": ptx}}
    verdict = judged(answer, TEST, SECONDS, {"make_case": make_case})
    if verdict.trace:
        return "the simulator failed, the test is lost", verdict.trace.strip().splitlines()[-1]
    return verdict.kind or "right", ""


def shown(mutant: tuple[str, str]) -> str:
    return mutant[1]


def _operation(random: random.Random, lines: list[str], at: int) -> None:
    operands = [random.choice(OPERANDS + _registers(random, lines)) for _ in range(random.randrange(6))]
    guard = random.choice(["", "", "", "@%p1 ", "@!%p1 "])
    lines.insert(at, f"{guard}{random.choice(OPERATIONS)} {', '.join(operands)};")


def _operand(random: random.Random, lines: list[str], at: int) -> None:
    words = [*WORD.finditer(lines[at])]
    if words:
        word = random.choice(words)
        new = random.choice(["", *OPERANDS, *_registers(random, lines)])
        lines[at] = lines[at][: word.start()] + new + lines[at][word.end() :]


def _suffix(random: random.Random, lines: list[str], at: int) -> None:
    found = [*re.finditer(r"\.[a-z]\w*", lines[at])]
    if found:
        old = random.choice(found)
        new = random.choice(["", *SUFFIXES, old[0] + random.choice(SUFFIXES)])
        lines[at] = lines[at][: old.start()] + new + lines[at][old.end() :]


def _move(random: random.Random, lines: list[str], at: int) -> None:
    lines.insert(random.randrange(len(lines)), lines.pop(at))


def _line(random: random.Random, lines: list[str], at: int) -> None:
    if random.random() < 0.5:
        del lines[at]
    else:
        lines.insert(random.randrange(len(lines)), lines[at])


def _characters(random: random.Random, lines: list[str], at: int) -> None:
    cut = random.randrange(len(lines[at]) + 1)
    new = random.choice([*'%$.,;[]{}()<>@!"\\/*-+0x9 ', "\0", "é", "\u2028"])
    lines[at] = lines[at][:cut] + new + lines[at][cut + random.randrange(3) :]


def _registers(random: random.Random, lines: list[str]) -> list[str]:
    return random.choice([re.findall(r"%\w+", line) for line in lines if "%" in line] or [[]])
