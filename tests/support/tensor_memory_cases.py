"""A kernel of tcgen05 for one product of any form, the bytes of its operands, and where its sums lie.

What lies where is written here element by element from the PTX ISA's and CUTLASS's pictures, not by the formulas of the
simulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tests.support.warpgroup_cases import placed

MODE = {0: 0, 128: 2, 64: 4, 32: 6, "wide": 1}  # of a descriptor, by swizzle in bytes
TYPES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "s8": np.int8,
    "u8": np.uint8,
}
NUMBER = {
    **dict(f16=0, bf16=1, tf32=2),
    **dict(e4m3=0, e5m2=1, e2m3=3, e3m2=4, e2m1=5),
    **dict(u8=0, s8=1),
}
SUM = {"f16": 0, "f32": 1, "s32": 2}
DEPTH = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
A_AT, SCALES_AT, SCALES_B_AT = 256, 384, 400  # columns of tensor memory

# SETTINGS: GROUP, KIND, MORE (further modifiers), FROM_A ("[%1]" or "%1"), MASK and SCALES (operands, or nothing).
SOURCE = r"""
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define OF "cta_group::" TEXT(GROUP)
typedef unsigned long long u64;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned rank() { unsigned r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ void meet() {
    __syncthreads();
    if (GROUP == 2) asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}

// `image`: bytes of shared memory, of each block. `columns`, `words`: what tensor memory holds before, of each block.
// `steps` products, one after another: A is at byte `a` (or column `a`), B at `b`, by descriptors without address.
extern "C" __global__ void __launch_bounds__(128) product(
    const unsigned char *image, int bytes, const int *columns, int count, const unsigned *words, u64 a, u64 b, int at_a,
    int at_b, int step_a, int step_b, unsigned idesc, int steps, int add, const unsigned *mask, unsigned *sums, int n) {
    extern __shared__ __align__(1024) unsigned char s[];
    __shared__ unsigned given;
    __shared__ u64 done;
    const int t = threadIdx.x, me = blockIdx.x;
    for (int i = t; i < bytes; i += 128) s[i] = image[me * bytes + i];
    if (t < 32)
        asm volatile("tcgen05.alloc." OF ".sync.aligned.shared::cta.b32 [%0], 512;" :: "r"(at(&given)) : "memory");
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&done)) : "memory");
    asm volatile("fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    const unsigned base = given, quarter = t / 32 << 21;
    for (int i = 0; i < count; i++)
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};"
                     :: "r"(base + quarter + columns[i]), "r"(words[(me * 128 + t) * count + i]) : "memory");
    asm volatile("tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;" ::: "memory");
    meet();
    if (t == 0 && (GROUP == 1 || rank() == 0)) {
        for (int k = 0; k < steps; k++) {
            u64 from_b = b + (at(s) + at_b + k * step_b >> 4);
            u64 from_a = a + (at(s) + at_a + k * step_a >> 4);
            unsigned in_a = base + at_a + k * step_a;
            unsigned sa = base + SCALES_AT, sb = base + SCALES_B_AT;
            asm volatile(
                "{ .reg .pred p; setp.ne.b32 p, %5, 0;\n\t"
                "tcgen05.mma" WS "." OF ".kind::" KIND MORE " [%0], " FROM_A ", %3, %4, " MASK SCALES "p" SHIFT "; }"
                :: "r"(base), "l"(from_a), "r"(in_a), "l"(from_b), "r"(idesc), "r"((int)(add || k)), "r"(mask[0]),
                   "r"(mask[1]), "r"(mask[2]), "r"(mask[3]), "r"(sa), "r"(sb) : "memory");
        }
        if (GROUP == 1)
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                         :: "r"(at(&done)) : "memory");
        else
            asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
                         "[%0], %1;" :: "r"(at(&done)), "h"((short)3) : "memory");
    }
    asm volatile("{ .reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra WAIT; }"
                 :: "r"(at(&done)) : "memory");
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    for (int c = 0; c < n; c++) {
        unsigned word;
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(base + quarter + c));
        asm volatile("tcgen05.wait::ld.sync.aligned;" : "+r"(word) :: "memory");
        sums[(me * 128 + t) * n + c] = word;
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    meet();
    if (t < 32) {
        asm volatile("tcgen05.dealloc." OF ".sync.aligned.b32 %0, 512;" :: "r"(base));
        asm volatile("tcgen05.relinquish_alloc_permit." OF ".sync.aligned;");
    }
}
"""


@dataclass(frozen=True)
class Case:
    """One product, or several along k. `kinds`: of D, A and B; `swizzles` of A and B in bytes, 0 for none, or "wide";
    `transposed`: A is M-major, B N-major; `scale`: type of scale factors; `wrong`: bits of the instruction
    descriptor to change; `shift`: power of two that divides D, -1 for no operand."""

    kind: str
    m: int
    n: int
    kinds: tuple[str, str, str]
    swizzles: tuple = (128, 128)
    transposed: tuple[bool, bool] = (False, False)
    in_tensor_memory: bool = False
    group: int = 1
    steps: int = 1
    add: bool = False
    negated: tuple[bool, bool] = (False, False)
    masked: bool = False
    saturate: bool = False
    scale: str = ""
    vector: str = ""
    ids: tuple[int, int] = (0, 0)
    shift: int = -1
    wrong: int = 0
    stationary: bool = False

    @property
    def k(self) -> int:
        return DEPTH[self.kind] * self.steps

    @property
    def id(self) -> str:
        parts = [self.kind, f"{self.m}x{self.n}x{self.k}", ".".join(self.kinds), *map(str, self.swizzles)]
        parts += ["KM"[self.transposed[0]] + "KN"[self.transposed[1]], f"g{self.group}", self.vector]
        flags = ("in_tensor_memory", "add", "masked", "saturate", "stationary")
        return "-".join([*filter(None, parts), *(flag for flag in flags if getattr(self, flag)), *map(str, self.ids)])

    @property
    def descriptor(self) -> int:
        """The instruction descriptor."""
        d, a, b = self.kinds
        a, b = (1 if self.k == 64 * self.steps else NUMBER[x] for x in (a, b))
        bits = a << 7 | b << 10 | self.n // 8 << 17 | self.m // 16 << 24
        bits |= self.negated[0] << 13 | self.negated[1] << 14 | self.transposed[0] << 15 | self.transposed[1] << 16
        if self.scale:
            bits |= self.ids[0] << 29 | self.ids[1] << 4 | (self.scale == "ue8m0") << 23
        else:
            bits |= SUM[d] << 4 | self.saturate << 3
        return bits ^ self.wrong

    @property
    def options(self) -> tuple[str, ...]:
        more = ".block_scale" + self.vector if self.scale else ""
        more += ".collector::b1::fill" if self.stationary else ""
        scales = "[%10], [%11], " if self.scale else ""
        mask = "{%6, %7, %8, %9" + ", %6, %7, %8, %9" * (self.group - 1) + "}, " if self.masked else ""
        defined = {
            "KIND": f'"{self.kind}"',
            "WS": '".ws"' if self.stationary else '""',
            "MORE": f'"{more}"',
            "FROM_A": '"[%2]"' if self.in_tensor_memory else '"%1"',
            "MASK": f'"{mask}"',
            "SCALES": f'"{scales}"',
            "SHIFT": f'", {self.shift}"' if self.shift >= 0 else '""',
            "GROUP": self.group,
            "SCALES_AT": SCALES_AT,
            "SCALES_B_AT": SCALES_B_AT,
        }
        return "-arch=sm_100a", *(f"-D{name}={value}" for name, value in defined.items())


def drawn(shape, kind: str, rng) -> np.ndarray:
    if kind in ("s8", "u8"):
        info = np.iinfo(TYPES[kind])
        return rng.integers(info.min, info.max, shape, TYPES[kind], endpoint=True)
    return (2 * rng.standard_normal(shape)).astype(TYPES[kind])


def codes(matrix: np.ndarray) -> np.ndarray:
    """Bits of small elements, a byte each."""
    return matrix.view(np.uint8)


def packed(matrix: np.ndarray, kind: str, by_pairs: bool) -> np.ndarray:
    """A K-major operand with elements of 4 or 6 bits as bytes (rows, bytes along k): two to a byte, or sixteen to
    sixteen bytes that begin with them."""
    rows, k = matrix.shape
    if by_pairs:
        return codes(matrix)[:, 0::2] | codes(matrix)[:, 1::2] << 4
    width = 4 if kind == "e2m1" else 6
    out = np.full((rows, k), 0xEE, np.uint8)
    for row in range(rows):
        for first in range(0, k, 16):
            number = sum(int(codes(matrix)[row, first + i]) << width * i for i in range(16))
            out[row, first : first + 2 * width] = np.frombuffer(number.to_bytes(2 * width, "little"), np.uint8)
    return out


def placed_wide(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """An MN-major tf32 operand (rows, 8) with a swizzle of 128 bytes whose atoms have 32: four lines of k, 32 rows."""
    rows, k = matrix.shape
    image = np.zeros(rows * k * 4, np.uint8)
    for row in range(rows):
        for line in range(k):
            atom = 32 * (row % 32 // 8) ^ 32 * (line % 4)  # which 32 bytes of the line of 128
            place = row // 32 * 1024 + line // 4 * 512 + line % 4 * 128 + atom + row % 8 * 4
            image[place : place + 4] = matrix[row, line : line + 1].view(np.uint8)
    return image, 1024 // 16 << 16 | 512 // 16 << 32


def in_shared_memory(
    matrix: np.ndarray, kind: str, swizzle, transposed: bool, by_pairs: bool
) -> tuple[np.ndarray, int]:
    """An operand as bytes of shared memory, and its descriptor without the address."""
    if swizzle == "wide":
        image, bits = placed_wide(matrix)
    else:
        if kind in ("e2m1", "e2m3", "e3m2"):
            matrix = packed(matrix, kind, by_pairs)
        image, bits = placed(matrix, swizzle, transposed, True)
    return image, bits & ~(3 << 62) | 1 << 46 | MODE[swizzle] << 61


def sum_place(case: Case, row: int, column: int) -> tuple[int, int, int]:
    """Block, lane and column of an element of D."""
    if case.stationary:
        width = case.n // (128 // case.m)
        return 0, row + case.m * (column // width), column % width
    if case.group == 1:
        return 0, row if case.m == 128 else row % 16 + 32 * (row // 16), column
    if case.m == 256:
        return row // 128, row % 128, column
    return row // 64, row % 64 + 64 * (column // (case.n // 2)), column % (case.n // 2)
