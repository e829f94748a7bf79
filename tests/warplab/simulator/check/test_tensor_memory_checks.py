"""What goes wrong with tcgen05 and tensor memory, one mistake each in a kernel that is right without. Seed: 35."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator import errors

# D (128 x 32) = A (128 x 16) · B (32 x 16) in FP16, K-major without swizzle. Two products of the same: D = 2 A·B.
SOURCE = r"""
typedef unsigned long long u64;
#define IS(x) (WRONG == x)
enum { NONE, KEPT, FREED_TWICE, FREED_LESS, UNWAITED, UNHEARD, UNCOMMITTED, QUARTER, UNALLOCATED, UNWRITTEN, BY_ALL,
       UNSTORED, UNLOADED, AFTER_PERMIT, TOO_MANY, ODD_COUNT, OVERWRITTEN, NO_PROXY, OUTSIDE, FREED_EARLY, OTHER_PLACE,
       HALF_WARP, HEARD_BY_BARRIER, HEARD_BY_WARP, REUSED, RELEASED_EARLY, FREED_UNREAD, NEXT, NEXT_RELEASED,
       NEXT_UNREAD, FACTOR, FACTOR_EARLY };
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ u64 described(const void *p, u64 high) { return high | (at(p) >> 4) | 8ull << 16 | 16ull << 32; }
__device__ unsigned allocate(unsigned *given, int columns) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(at(given)), "r"(columns)
                 : "memory");
    return *given;
}
__device__ void release(unsigned base, int columns) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(base), "r"(columns));
}
__device__ void multiply(unsigned d, u64 a, u64 b, unsigned idesc, int add) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\n\t"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
                 :: "r"(d), "l"(a), "l"(b), "r"(idesc), "r"(add) : "memory");
}
__device__ void multiply_held(unsigned d, unsigned a, u64 b, unsigned idesc) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0;\n\t"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p; }" :: "r"(d), "r"(a), "l"(b), "r"(idesc));
}
__device__ void store(unsigned to, unsigned word) {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};\ntcgen05.wait::st.sync.aligned;"
                 :: "r"(to), "r"(word) : "memory");
}
__device__ void wait(u64 *done, int parity = 0) {
    asm volatile("{ .reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra WAIT; }"
                 :: "r"(at(done)), "r"(parity) : "memory");
}
extern "C" __global__ void __launch_bounds__(128) product(const unsigned short *a, const unsigned short *b, float *d,
                                                          unsigned idesc, u64 high) {
    __shared__ __align__(1024) unsigned short left[128 * 16], right[32 * 16];
    __shared__ unsigned given;
    __shared__ u64 done, issued, read;
    const int t = threadIdx.x;
    for (int i = t; i < 128 * 16; i += 128) left[i] = a[i];
    for (int i = t; i < 32 * 16; i += 128) right[i] = b[i];
    if (t < 32) {
        if (IS(AFTER_PERMIT)) asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
        if (IS(TOO_MANY)) allocate(&given, 512);
        if (!IS(HALF_WARP) || t < 16) allocate(&given, IS(ODD_COUNT) ? 48 : 64);
    }
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&done)) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&issued)) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" :: "r"(at(&read)) : "memory");
    }
    if (!IS(NO_PROXY)) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned base = given, quarter = (IS(QUARTER) ? 0 : t / 32) << 21;
    if (IS(FACTOR) || IS(FACTOR_EARLY)) {
        const unsigned *row = (const unsigned *)a + (t / 8 * 16 + t % 8) * 4;  // of A: two chunks of four words
        for (int c = 0; c < 8; c++) store(base + 32 + quarter + c, row[c / 4 * 32 + c % 4]);
        __syncthreads();
    }
    if (IS(UNSTORED)) {
        for (int c = 0; c < 32; c++)
            asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" :: "r"(base + quarter + c), "r"(0)
                         : "memory");
        __syncthreads();
    }
    if (IS(BY_ALL) ? t < 32 : t == 0) {
        u64 from_a = described(left, high), from_b = described(right, high);
        multiply(base, from_a, from_b, idesc, IS(UNWRITTEN) || IS(UNSTORED));
        if (IS(FACTOR) || IS(FACTOR_EARLY)) multiply_held(base, base + 32, from_b, idesc);
        else multiply(base + (IS(OTHER_PLACE) ? 8 : 0), from_a, from_b, idesc, !IS(OTHER_PLACE));
        if (!IS(UNCOMMITTED))
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                         :: "r"(at(&done)) : "memory");
        if (IS(OVERWRITTEN)) left[5] = 0;
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(&issued)) : "memory");
    }
    if (t == 77 && (IS(REUSED) || IS(RELEASED_EARLY))) {
        wait(IS(REUSED) ? &done : &issued);
        left[5] = 0;
    }
    if (IS(FREED_EARLY) && t < 32) release(base, 64);
    if (IS(HEARD_BY_BARRIER)) {
        if (t == 77) wait(&done);
        __syncthreads();
    } else if (IS(HEARD_BY_WARP)) {
        if (t % 32 == 5) wait(&done);
        __syncwarp();
    } else if (IS(UNHEARD)) {
        if (t < 32) wait(&done);
        else for (int k = 0; k < 200; k++) __nanosleep(100);
    } else if (IS(FACTOR_EARLY)) {
        wait(&issued);
        store(base + 32 + quarter, 0);
        wait(&done);
    } else if (!IS(UNWAITED)) wait(&done);
    if (IS(FACTOR)) store(base + 32 + quarter, 0);
    for (int c = 0; c < 32; c++) {
        unsigned word, from = base + quarter + c + (IS(UNALLOCATED) ? 64 : IS(OUTSIDE) ? 512 : 0);
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(from));
        if (!IS(UNLOADED)) asm volatile("tcgen05.wait::ld.sync.aligned;" : "+r"(word) :: "memory");
        d[t * 32 + c] = __uint_as_float(word);
    }
    if (IS(NEXT_RELEASED) && t % 32 == 7) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(&read)));
    if (IS(NEXT)) __syncthreads();
    if ((IS(NEXT) || IS(NEXT_RELEASED) || IS(NEXT_UNREAD)) && t == 0) {
        if (IS(NEXT_RELEASED)) wait(&read);
        multiply(base, described(left, high), described(right, high), idesc, 0);
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                     :: "r"(at(&done)) : "memory");
        wait(&done, 1);
    }
    if (!IS(FREED_UNREAD)) __syncthreads();
    if (t < 32 && !IS(KEPT) && !IS(FREED_EARLY)) {
        release(base, IS(FREED_LESS) ? 32 : 64);
        if (IS(FREED_TWICE)) release(base, 64);
    }
}
"""
IDESC, HIGH = 1 << 4 | 32 // 8 << 17 | 128 // 16 << 24, 1 << 46


def chunked(matrix: np.ndarray) -> np.ndarray:
    """Rows of 16 elements as two chunks of 8, and eight rows of a chunk after another."""
    return np.ascontiguousarray(matrix.reshape(-1, 8, 2, 8).transpose(0, 2, 1, 3))


def run(wrong: str = "NONE", idesc: int = IDESC, high: int = HIGH, **options) -> np.ndarray:
    rng = np.random.default_rng(35)
    a, b = (rng.standard_normal((rows, 16)).astype(np.float16) for rows in (128, 32))
    d = np.zeros((128, 32), np.float32)
    source = CudaSource(SOURCE, "product", ("-arch=sm_100a", f"-DWRONG={wrong}"))
    arguments = chunked(a).view(np.uint16), chunked(b).view(np.uint16), d, np.uint32(idesc), np.uint64(high)
    simulate(source, 1, 128, arguments, **options)
    return d - 2 * a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize(
    "how", ["NONE", "HEARD_BY_BARRIER", "HEARD_BY_WARP", "REUSED", "NEXT", "NEXT_RELEASED", "FACTOR"]
)
def test_the_kernel_is_right_without_a_mistake(how):
    assert np.abs(run(how)).max() < 1e-5


def test_what_is_left_to_chance_runs_without_checks():
    assert np.abs(run("KEPT", checks=False)).max() < 1e-5


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ("KEPT", errors.SimulatorError, r"the block ends with 64 columns of tensor memory, from 0x0, allocated"),
        (
            "FREED_TWICE",
            errors.SimulatorError,
            r"dealloc of columns at 0x0, where no allocation .*\n(.*\n)+.*freed before",
        ),
        ("FREED_LESS", errors.SimulatorError, r"dealloc of 32 columns at 0x0, where 64 are allocated"),
        ("FREED_EARLY", errors.UnorderedTensorMemory, r"dealloc.* where a `tcgen05\.mma\S*` may be under way"),
        (
            "UNWAITED",
            errors.UnorderedTensorMemory,
            r"ld\S*` at columns where a `tcgen05\.mma\S*` may .*\n(.*\n)+.*commit",
        ),
        ("UNHEARD", errors.UnorderedTensorMemory, r"by threads that do not know that it is over"),
        ("UNCOMMITTED", errors.DivergentBarrier, r"wait for ever at an mbarrier: 1 arrivals"),
        ("QUARTER", errors.IllegalAddress, r"lanes 0 to 31 of tensor memory by a warp that reaches lanes 32 to 63"),
        ("UNALLOCATED", errors.IllegalAddress, r"column 64 of tensor memory, which the block has not allocated"),
        ("OUTSIDE", errors.IllegalAddress, r"column 512 of tensor memory, which has 128 lanes and 512 columns"),
        (
            "UNWRITTEN",
            errors.UninitializedRead,
            r"reads sums in lane 0, column 0 of tensor memory, which nothing wrote",
        ),
        ("BY_ALL", errors.SimulatorError, r"32 threads of a warp issue `tcgen05\.mma\S*`, each once"),
        ("UNSTORED", errors.UnorderedTensorMemory, r"where a `tcgen05\.st\S*` may be under way\n(.*\n)+.*wait::st"),
        ("UNLOADED", errors.UnorderedRegisters, r"reads a register of a tcgen05\.ld that may still be under way"),
        ("AFTER_PERMIT", errors.SimulatorError, r"alloc after tcgen05\.relinquish_alloc_permit"),
        ("TOO_MANY", errors.SimulatorError, r"no 64 columns of tensor memory in a row are free, as the block has 512"),
        ("ODD_COUNT", errors.SimulatorError, r"`tcgen05\.alloc\S*` of 48 columns"),
        ("OVERWRITTEN", errors.SimulatorError, r"written while `tcgen05\.mma\S*` could still read it: .* of `left`"),
        ("RELEASED_EARLY", errors.SimulatorError, r"writes byte .* of `left`|could still read it: .* of `left`"),
        ("NO_PROXY", errors.MissingProxyFence, r"fence\.proxy\.async"),
        (
            "FREED_UNREAD",
            errors.UnorderedTensorMemory,
            r"dealloc\S*` at columns of a `tcgen05\.ld.*\n(.*\n)+.*wait::ld",
        ),
        ("NEXT_UNREAD", errors.UnorderedTensorMemory, r"mma\S*` at columns of a `tcgen05\.ld\S*`, by a thread that"),
        ("FACTOR_EARLY", errors.UnorderedTensorMemory, r"st\S*` at columns of a `tcgen05\.mma\S*`, by a thread that"),
        ("OTHER_PLACE", errors.UnorderedTensorMemory, r"sums overlap, in another place or shape"),
        ("HALF_WARP", errors.DivergentWarp, r"tcgen05\.alloc"),
    ],
)
def test_each_mistake_is_named(wrong, error, says):
    with pytest.raises(error, match=says):
        run(wrong)


@pytest.mark.parametrize(
    ("idesc", "says"),
    [
        (IDESC ^ 8 << 24, r"M \(bits 24-28, times 16\) is 0, but \.kind::f16 with \.cta_group::1 has \(64, 128\)"),
        (IDESC ^ 3 << 17, r"N \(bits 17-22, times 8\) is 56, but must be a multiple of 16"),
        (IDESC | 1 << 6, r"bits 0x40 must be 0"),
        (IDESC | 1 << 2, r"A is sparse"),
        (IDESC | 1 << 3, r"bit 3 saturates"),
        (IDESC | 2 << 7, r"A's type, bits 7-9, is 2; there are 0 f16, 1 bf16"),
        (IDESC & ~16 | 1 << 10, r"factors in bf16 need sums in f32"),
        (IDESC | 1 << 30, r"the shift, are for tcgen05\.mma\.ws"),
    ],
)
def test_wrong_bits_of_an_instruction_descriptor_are_named(idesc, says):
    with pytest.raises(errors.WrongDescriptor, match=says):
        run(idesc=idesc)


@pytest.mark.parametrize(
    ("high", "says"),
    [
        (0, r"bits 46-48 must be 0b001"),
        (HIGH | 3 << 61, r"bits 61-63 name swizzle 3; there are 0 none"),
        (HIGH | 1 << 61, r"a transposed tf32 operand needs swizzle 1"),
        (HIGH | 1 << 52, r"bit 52"),
        (HIGH | 1 << 55, r"bits 53-60 must be 0"),
    ],
)
def test_wrong_bits_of_a_shared_memory_descriptor_are_named(high, says):
    with pytest.raises(errors.WrongDescriptor, match=says):
        run(high=high)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tcgen05.mma.ws.cta_group::1.kind::f16 [%t], %rd, %rd, %t, %p, %rd;", r"zero-column-mask-desc"),
        ("tcgen05.mma.ws.cta_group::2.kind::f16 [%t], %rd, %rd, %t, %p;", r"\.ws is of one block"),
        ("tcgen05.mma.sp.cta_group::1.kind::f16 [%t], %rd, %rd, [%t], %t, %p;", r"sparse factors"),
        ("tcgen05.mma.cta_group::1.kind::f16.ashift [%t], [%t], %rd, %t, %p;", r"shifted factors"),
        ("tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%t], %rd;", r"copies that widen elements"),
        ("tcgen05.mma.cta_group::1.kind::mxf4 [%t], %rd, %rd, %t, [%t], [%t], %p;", r"\.block_scale belongs to"),
        (
            "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; "
            "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
            r"must have the same \.cta_group",
        ),
        ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%t}, [%t];", r"1 registers, where it moves 2"),
        ("tcgen05.ld.sync.aligned.32x32b.x3.b32 {%t, %t, %t}, [%t];", r"tcgen05\.ld"),
    ],
)
def test_forms_that_are_not_simulated_name_themselves(text, says):
    ptx = (
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k() { .reg .pred %p; .reg .b32 %t; .reg .b64 "
        f"%rd; mov.b32 %t, 0; mov.b64 %rd, 0; setp.eq.b32 %p, %t, 0; {text} ret; }}"
    )
    device = simulator.Device()
    with pytest.raises(errors.UnsupportedInstruction, match=says):
        device.launch(simulator.load(ptx).entries["k"], (1,), (32,), ())
