"""tcgen05 against NumPy's float64. Each test names its seed. No GPU has confirmed any of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tensor_memory_cases import (
    A_AT,
    SCALES_AT,
    SCALES_B_AT,
    SOURCE,
    TYPES,
    Case,
    codes,
    drawn,
    in_shared_memory,
    packed,
    sum_place,
)
from warpcourse.paths import COURSE
from warplab.compile.headers import COURSE_HEADERS
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator import errors

F16 = ("f32", "f16", "f16")
SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
CASES = [
    *(Case("f16", m, n, F16) for m, n in ((128, 16), (128, 128), (128, 256), (64, 8), (64, 72))),
    *(Case("f16", 128, 64, F16, (a, b), t) for a, b, t in (
        (0, 32, (False, False)), (64, 0, (False, True)), (32, 64, (True, False)), (128, 128, (True, True)),
        (0, 0, (True, True)), (64, 32, (True, True)))),
    Case("f16", 128, 64, F16, steps=4, add=True),
    Case("f16", 128, 32, ("f16", "f16", "f16"), add=True),
    Case("f16", 64, 32, ("f32", "bf16", "bf16"), negated=(True, False)),
    Case("f16", 128, 32, ("f32", "bf16", "f16"), negated=(False, True), shift=3, add=True),
    Case("f16", 128, 32, F16, masked=True),
    Case("f16", 128, 32, F16, in_tensor_memory=True, steps=2),
    Case("f16", 64, 32, F16, in_tensor_memory=True),
    Case("tf32", 128, 64, ("f32", "tf32", "tf32"), steps=2),
    Case("tf32", 64, 64, ("f32", "tf32", "tf32"), ("wide", "wide"), (True, True)),
    Case("tf32", 128, 32, ("f32", "tf32", "tf32"), in_tensor_memory=True),
    *(Case("f8f6f4", 128, 32, ("f32", a, b)) for a, b in zip(SMALL, SMALL[2:] + SMALL[:2], strict=True)),
    Case("f8f6f4", 64, 16, ("f16", "e4m3", "e5m2"), (64, 128), (True, True)),
    *(Case("f8f6f4", 128, 16, ("f32", kind, "e5m2"), in_tensor_memory=True) for kind in ("e4m3", "e2m3", "e2m1")),
    Case("i8", 128, 32, ("s32", "s8", "u8"), add=True),
    Case("i8", 64, 24, ("s32", "u8", "s8"), saturate=True),
    *(Case("mxf8f6f4", 128, 40, ("f32", a, b), scale="ue8m0", ids=(i, 3 - i))
      for a, b, i in (("e4m3", "e4m3", 0), ("e5m2", "e2m1", 1), ("e3m2", "e4m3", 3))),
    Case("mxf4", 128, 256, ("f32", "e2m1", "e2m1"), scale="ue8m0", ids=(2, 0)),
    Case("mxf4nvf4", 128, 64, ("f32", "e2m1", "e2m1"), scale="ue8m0", vector=".scale_vec::2X"),
    Case("mxf4nvf4", 128, 64, ("f32", "e2m1", "e2m1"), scale="ue4m3", vector=".scale_vec::4X", add=True),
    Case("mxf4nvf4", 128, 24, ("f32", "e2m1", "e2m1"), scale="ue4m3", vector=".block16", in_tensor_memory=True),
    *(Case("f16", m, n, F16, group=2, steps=2) for m, n in ((256, 128), (128, 64))),
    Case("f16", 256, 64, F16, (64, 32), (True, True), group=2, masked=True),
    Case("f16", 128, 32, F16, group=2, in_tensor_memory=True),
    Case("mxf8f6f4", 256, 64, ("f32", "e4m3", "e5m2"), scale="ue8m0", group=2, ids=(1, 2)),
    *(Case("f16", m, n, F16, stationary=True) for m, n in ((32, 64), (32, 256), (64, 128), (128, 64))),
    Case("f16", 32, 128, F16, (64, 64), (True, True), add=True, stationary=True),
    Case("tf32", 64, 64, ("f32", "tf32", "tf32"), steps=2, stationary=True),
    Case("i8", 32, 64, ("s32", "s8", "u8"), stationary=True),
    Case("f8f6f4", 64, 256, ("f32", "e4m3", "e3m2"), add=True, stationary=True),
    Case("f16", 128, 64, F16, in_tensor_memory=True, stationary=True),
]  # fmt: skip


def exponents(rng, shape) -> np.ndarray:
    return rng.integers(124, 131, shape).astype(np.uint8)


class Prepared:
    """The arguments of a launch, and what tensor memory must hold after it."""

    def __init__(self, case: Case, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.case, group, by_pairs = case, case.group, case.k == 64 * case.steps
        d, a, b = case.kinds
        left, right = drawn((case.m, case.k), a, rng), drawn((case.n, case.k), b, rng)
        if a == "tf32":
            left, right = (x.view(np.uint32) & np.uint32(0xFFFFE000) for x in (left, right))
            left, right = left.view(np.float32), right.view(np.float32)
        self.before: dict[tuple[int, int, int], int] = {}  # block, lane, column → word
        images, self.left, self.right = [], left, right
        exact = [x.astype(np.float64) for x in (left, right)]
        scales = self._scales(rng) if case.scale else (1, 1)
        for operand in (0, 1):
            exact[operand] = exact[operand] * scales[operand] * (-1 if case.negated[operand] else 1)
        self.held = rng.integers(-40, 40, (case.m, case.n)).astype(np.float64)
        for row in range(case.m):
            for column in range(case.n):
                value = {"f16": np.float16, "f32": np.float32, "s32": np.int32}[d](self.held[row, column])
                self.before[sum_place(case, row, column)] = int(value.view(f"u{value.itemsize}"))
        for block in range(group):
            parts = [x[block * x.shape[0] // group : (block + 1) * x.shape[0] // group] for x in (left, right)]
            if case.in_tensor_memory:
                self._keep(parts[0], a, block, by_pairs)
            placed = [
                in_shared_memory(part[:, k : k + case.k // case.steps] if transposed or swizzle == 0 else part,
                                 kind, swizzle, transposed, by_pairs)
                for part, kind, swizzle, transposed in zip(parts, (a, b), case.swizzles, case.transposed, strict=True)
                for k in (0,)
            ]  # fmt: skip
            images.append(np.concatenate([image for image, _ in placed]))
        self.descriptors = [bits for _, bits in placed]
        self.at_b = placed[0][0].size
        self.image = np.concatenate(images)
        held = self.held * 2.0 ** -max(0, case.shift) if case.add else 0.0
        self.right_sums = exact[0] @ exact[1].T + held

    def _scales(self, rng) -> list[np.ndarray]:
        case, count = self.case, {"mxf8f6f4": 1, "mxf4": 2}.get(self.case.kind, 4)
        count = 2 if "2X" in case.vector else count
        factors = []
        for rows, at, first in ((case.m, SCALES_AT, case.ids[0]), (case.n, SCALES_B_AT, case.ids[1])):
            if case.scale == "ue8m0":
                bits = exponents(rng, (rows, count))
                values = 2.0 ** (bits.astype(float) - 127)
            else:
                kept = rng.uniform(0.25, 4, (rows, count)).astype(TYPES["e4m3"])
                bits, values = codes(kept), kept.astype(float)
            own = rows // case.group if at == SCALES_AT else rows
            for row in range(rows):
                for block in [row // own] if at == SCALES_AT else range(case.group):
                    word = int.from_bytes(bytes(bits[row]), "little") << 8 * first
                    for quarter in range(4):
                        self.before[block, row % own % 32 + 32 * quarter, at + row % own // 32] = word
            factors.append(np.repeat(values, case.k // count, axis=1))
        return factors

    def _keep(self, part: np.ndarray, kind: str, block: int, by_pairs: bool) -> None:
        """Put A into tensor memory."""
        data = packed(part, kind, True) if by_pairs else np.ascontiguousarray(part)
        words = np.ascontiguousarray(data).view(np.uint8).reshape(part.shape[0], -1).view(np.uint32)
        for row in range(part.shape[0]):
            lanes = [row]
            if self.case.m == 64:
                lanes = [row % 16 + 32 * (row // 16)]
            elif part.shape[0] == 64:
                lanes = [row, row + 64]
            for lane in lanes:
                for column, word in enumerate(words[row]):
                    self.before[block, lane, A_AT + column] = int(word)

    def run(self, **options):
        case = self.case
        columns = np.array(sorted({column for _, _, column in self.before}), np.int32)
        words = np.zeros((case.group, 128, columns.size), np.uint32)
        for (block, lane, column), word in self.before.items():
            words[block, lane, np.searchsorted(columns, column)] = word
        n = case.n // (2 if (case.m, case.group) == (128, 2) else 128 // case.m if case.stationary else 1)
        out = np.full((case.group, 128, n), 7, np.uint32)
        mask = np.array([0x0F0F0F0F, 0, 1, 0x80000000], np.uint32)
        step = 32
        a_at = A_AT if case.in_tensor_memory else 0
        bits_a, bits_b = map(np.uint64, self.descriptors)
        size = self.image.size // case.group
        numbers = (a_at, self.at_b, 8 if case.in_tensor_memory else step, step)
        arguments = (self.image, np.int32(size), columns, np.int32(columns.size), words, bits_a, bits_b,
                     *map(np.int32, numbers), np.uint32(case.descriptor), np.int32(case.steps), np.int32(case.add),
                     mask, out, np.int32(n))  # fmt: skip
        if case.group == 2:
            options["cluster"] = (2, 1, 1)
        source = CudaSource(SOURCE, "product", case.options)
        record = simulate(source, case.group, 128, arguments, shared_bytes=size, **options)
        return record, out

    def expected(self, out: np.ndarray) -> np.ndarray:
        """The sums of D as float64, from what tensor memory holds."""
        kind, found = self.case.kinds[0], np.empty(self.right_sums.shape)
        for row, column in np.ndindex(*found.shape):
            word = out[sum_place(self.case, row, column)]
            low = word.astype(np.uint16).view(np.float16)
            found[row, column] = {"f32": word.view(np.float32), "s32": word.view(np.int32), "f16": low}[kind]
        return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_products_are_those_of_float64(case):
    seed = 35
    prepared = Prepared(case, seed)
    record, out = prepared.run()
    right, found = prepared.right_sums, prepared.expected(out)
    if case.masked:  # lanes 0-3, 8-11, ... of the first word, 64 and 127 stay
        kept = [lane for lane in range(128) if [0x0F0F0F0F, 0, 1, 1 << 31][lane // 32] >> lane % 32 & 1]
        rows = [row for row in range(case.m) if sum_place(case, row, 0)[1] in kept]
        assert len(rows) == 18 * case.group, seed
        right[rows] = prepared.held[rows]
    size = np.abs(right).max()
    error = {"f16": 2e-3, "s32": 0, "f32": 2e-6}[case.kinds[0]] * size
    np.testing.assert_allclose(found, right, rtol=0, atol=error, err_msg=f"seed {seed}")
    shape = f"m{case.m}n{case.n}k{case.k // case.steps}.{case.kinds[0]}.{case.kinds[1]}"
    ((name, count),) = record.tensor_operations.items()
    assert name.startswith(shape)
    assert count == case.steps


# -- loads, stores, copies, shifts -------------------------------------------------------------------------------------

# Columns 0-31 of tensor memory are stored from `words`, then an operation works on them, then they are loaded.
MOVES = r"""
typedef unsigned long long u64;
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void __launch_bounds__(128) move(const unsigned char *image, int bytes, const unsigned *words,
                                                       u64 source, unsigned *moved, unsigned *after) {
    extern __shared__ __align__(1024) unsigned char s[];
    __shared__ unsigned given;
    __shared__ u64 done;
    const int t = threadIdx.x;
    for (int i = t; i < bytes; i += 128) s[i] = image[i];
    if (t < 32) asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" :: "r"(at(&given)));
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&done)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned base = given, quarter = t / 32 << 21;
    for (int c = 0; c < 32; c++)
        asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};"
                     :: "r"(base + quarter + c), "r"(words[t * 32 + c]) : "memory");
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    __syncthreads();
    u64 from = source + (at(s) >> 4);
    BODY
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    __syncthreads();
    for (int c = 0; c < 32; c++) {
        unsigned word;
        asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(base + quarter + c));
        asm volatile("tcgen05.wait::ld.sync.aligned;" : "+r"(word) :: "memory");
        after[t * 32 + c] = word;
    }
    __syncthreads();
    if (t < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" :: "r"(base));
}
"""
# Bits of a tile in the order of its lanes, by CuTe's layouts of 32 threads and their values (copy_traits_sm100.hpp):
# width of a lane in bits, then shapes and strides of threads and values.
LAYOUTS = {
    "32x32b.x1": (32, [(32, 32)], [(32, 1)]),
    "16x64b.x1": (64, [(2, 512), (2, 32), (8, 64)], [(32, 1)]),
    "16x64b.x2": (128, [(2, 1024), (2, 32), (8, 128)], [(32, 1), (2, 64)]),
    "16x128b.x1": (128, [(4, 32), (8, 128)], [(32, 1), (2, 1024)]),
    "16x256b.x1": (256, [(4, 64), (8, 256)], [(64, 1), (2, 2048)]),
    "16x256b.x2": (512, [(4, 64), (8, 512)], [(64, 1), (2, 4096), (2, 256)]),
    "16x32bx2.x1": (64, [(16, 64), (2, 32)], [(32, 1)]),
}


def offset(layout: list[tuple[int, int]], index: int) -> int:
    total = 0
    for size, stride in layout:
        total += index % size * stride
        index //= size
    return total


def place_of(name: str, thread: int, register: int) -> tuple[int, int]:
    """Lane and column, from the address, of a thread's register."""
    width, threads, values = LAYOUTS[name]
    bit = offset(threads, thread) + offset(values, 32 * register)
    return bit // width, bit % width // 32


def first(name: str) -> int:
    """The column that the address names; the widest layout needs all 32."""
    return 0 if name == "16x256b.x2" else 2


def body(name: str, packed: bool, loads: bool) -> tuple[str, int]:
    """CUDA C++ that loads to `moved`, or stores from it, and the number of registers per thread."""
    _, _, values = LAYOUTS[name]
    registers = int(np.prod([size for size, _ in values])) // 32
    shape, number = name.split(".")
    listed = ", ".join(f"%{k}" for k in range(registers))
    half = ", 1" if "bx2" in shape else ""
    each = ", ".join(f'"{{}}"(w[{k}])' for k in range(registers))
    lane = " + (16 << 16)" if shape != "32x32b" else ""
    outputs, inputs = each.format(*["=r"] * registers), each.format(*["r"] * registers)
    lines = [f"unsigned w[{registers}];"]
    if loads:
        text = f"tcgen05.ld.sync.aligned.{shape}.{number}{'.pack::16b' if packed else ''}.b32 {{{listed}}}, "
        text += f"[%{registers}]{half};"
        kept = each.format(*["+r"] * registers)
        lines += [f'asm volatile("{text}" : {outputs} : "r"(base + quarter + {first(name)}{lane}));']
        lines += [f'asm volatile("tcgen05.wait::ld.sync.aligned;" : {kept} :: "memory");']
        lines += [f"for (int k = 0; k < {registers}; k++) moved[t * {registers} + k] = w[k];"]
    else:
        text = f"tcgen05.st.sync.aligned.{shape}.{number}{'.unpack::16b' if packed else ''}.b32 [%{registers}]{half}, "
        text += f"{{{listed}}};"
        lines += [f"for (int k = 0; k < {registers}; k++) w[k] = moved[t * {registers} + k];"]
        lines += [f'asm volatile("{text}" :: {inputs}, "r"(base + quarter + {first(name)}{lane}) : "memory");']
    return " ".join(lines), registers


def run_move(text: str, words, moved, image=None, source: int = 0) -> np.ndarray:
    after, image = np.zeros((128, 32), np.uint32), np.zeros(16, np.uint8) if image is None else image
    arguments = image, np.int32(image.size), words, np.uint64(source), moved, after
    kernel = CudaSource(MOVES.replace("BODY", text), "move", ("-arch=sm_100a",))
    simulate(kernel, 1, 128, arguments, shared_bytes=image.size)
    return after


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("loads", [True, False])
def test_registers_are_those_of_cutes_layouts(name, loads, packed):
    rng = np.random.default_rng(35)
    words = rng.integers(0, 1 << 32, (128, 32), np.uint32)
    text, registers = body(name, packed, loads)
    moved = rng.integers(0, 1 << 32, (128, registers), np.uint32)
    expected, right = words.copy(), moved.copy()
    for thread, register in np.ndindex(*moved.shape):
        lane, column = place_of(name, thread % 32, register)
        lane += thread // 32 * 32 + (0 if name.startswith("32x") else 16)
        column = first(name) + column * (2 if packed else 1)
        if loads and packed:
            right[thread, register] = words[lane, column] & 0xFFFF | words[lane, column + 1] << np.uint32(16)
        elif loads:
            right[thread, register] = words[lane, column]
        elif packed:
            expected[lane, column : column + 2] = moved[thread, register] & 0xFFFF, moved[thread, register] >> 16
        else:
            expected[lane, column] = moved[thread, register]
    after = run_move(text, words, moved)
    np.testing.assert_array_equal(moved, right)
    np.testing.assert_array_equal(after, expected)


ISSUE = (
    'if (t == 0) {{ asm volatile("{}; tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%2];"'
    ' :: "r"(base), "l"(from), "r"(at(&done)) : "memory"); }} asm volatile("{{ .reg .pred p;\\nWAIT: '
    'mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\\n@!p bra WAIT; }}" :: "r"(at(&done)) : "memory");'
)


@pytest.mark.parametrize(
    ("shape", "rows", "count", "lanes"),
    [
        ("128x256b", 128, 8, lambda row: [row]),
        ("128x128b", 128, 4, lambda row: [row]),
        ("64x128b.warpx2::02_13", 64, 4, lambda row: [row, row + 64]),  # warps 0 and 2 alike, 1 and 3
        ("64x128b.warpx2::01_23", 64, 4, lambda row: [row + 32 * (row // 32), row + 32 * (row // 32) + 32]),
        ("32x128b.warpx4", 32, 4, lambda row: [row, row + 32, row + 64, row + 96]),
        ("4x256b", 4, 8, lambda row: [32 * row]),
    ],
)
@pytest.mark.parametrize("swizzle", [0, 128])
def test_copies_from_shared_memory(shape, rows, count, lanes, swizzle):
    rng = np.random.default_rng(35)
    words = rng.integers(0, 1 << 32, (128, 32), np.uint32)
    matrix = rng.integers(0, 256, (max(8, rows), 4 * count), np.uint8)
    image, bits = in_shared_memory(matrix, "u8", swizzle, False, False)
    expected = words.copy()
    for row in range(rows):
        for lane in lanes(row):
            expected[lane, :count] = matrix[row].view(np.uint32)
    text = ISSUE.format(f"tcgen05.cp.cta_group::1.{shape} [%0], %1")
    np.testing.assert_array_equal(run_move(text, words, np.zeros(1, np.uint32), image, bits), expected)


@pytest.mark.parametrize("place", ['"r"(at(&done))', '"l"((u64)at(&done))', '"l"(&done)'])
def test_a_shift_moves_the_lanes_of_each_quarter_down_by_one(place):
    """The commit names its space, or gives a shared address without, as ThunderKittens, or a generic one."""
    words = np.random.default_rng(35).integers(0, 1 << 32, (128, 32), np.uint32)
    expected = words.copy()
    for lane in range(128):
        if lane % 32 != 31:
            expected[lane, :8] = words[lane + 1, :8]
    text = ISSUE.format("tcgen05.shift.cta_group::1.down [%0]").replace('"r"(at(&done))', place, 1)
    text = text if place.startswith('"r"') else text.replace("one.shared::cluster", "one")
    np.testing.assert_array_equal(run_move(text, words, np.zeros(1, np.uint32)), expected)


# -- the page ----------------------------------------------------------------------------------------------------------


def by_one_thread(leave_out: str = "") -> tuple[dict, float]:
    """Run the kernel of docs/after_hopper.md: its products, and its largest error."""
    page = (COURSE / "docs" / "after_hopper.md").read_text(encoding="utf-8")
    lines = page.split("%%cuda --gpu-architecture=sm_100a")[1].split("```")[0].splitlines()
    code = "\n".join(line for line in lines if not leave_out or leave_out not in line)
    code = code.replace("__global__", 'extern "C" __global__')
    rng = np.random.default_rng(35)
    a, b = (rng.standard_normal((rows, 64)).astype(np.float16) for rows in (128, 32))
    d = np.zeros((128, 32), np.float32)
    source = CudaSource(code, "by_one_thread", ("-arch=sm_100a", f"-I{COURSE_HEADERS}"))
    record = simulate(source, 1, 128, (a, b, d))
    return record.tensor_operations, np.abs(d - a.astype(np.float64) @ b.astype(np.float64).T).max()


def test_the_kernel_of_the_page_multiplies():
    products, error = by_one_thread()
    assert products == {"m128n32k16.f32.f16": 4}
    assert error < 1e-5


@pytest.mark.parametrize(
    ("line", "says"), [("barrier_wait", r"where a `tcgen05\.mma"), ("give_columns", "ends with 32 columns")]
)
def test_the_page_says_what_is_named(line, says):
    with pytest.raises(errors.SimulatorError, match=says):
        by_one_thread(line)
