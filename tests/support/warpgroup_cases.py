"""PTX kernels of one wgmma each, the bytes of its operands in shared memory, and what it must compute.

The layouts are built atom by atom as the PTX ISA draws them ("Shared Memory Matrix Layout"), not by the formulas of the
simulator. `evidence.simulator.record_matrix` records those of `recordings` on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from tests.support.matrix_cases import numbers

THREADS, ROWS = 128, 64
BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "f32": 4, "s32": 4}
LINE_CHUNKS = {0: 1, 32: 2, 64: 4, 128: 8}  # of 16 bytes, by swizzle
MODE = {0: 0, 128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class Case:
    """One wgmma: `kinds` of D, A and B; `swizzles` in bytes, 0 for none; `transposed`: A is M-major, B N-major."""

    n: int
    kinds: tuple[str, str, str]
    swizzles: tuple[int, int] = (128, 128)
    transposed: tuple[bool, bool] = (False, False)
    in_registers: bool = False
    scales: tuple[int, int] = (1, 1)
    saturate: bool = False

    @property
    def k(self) -> int:
        return 32 // BYTES[self.kinds[1]]

    @property
    def registers(self) -> int:
        """Of D, in each thread."""
        return self.n * BYTES[self.kinds[0]] // 8

    @property
    def id(self) -> str:
        majors = "".join("KM"[t] for t in self.transposed)
        where = "registers" if self.in_registers else str(self.swizzles[0])
        return f"n{self.n}-{'.'.join(self.kinds)}-{majors}-{where}-{self.swizzles[1]}-{self.scales}"


def cases() -> list[Case]:
    f16, f32 = ("f16", "f16", "f16"), ("f32", "f16", "f16")
    return [
        *(Case(n, f32) for n in (8, 24, 64, 128, 256)),
        *(Case(64, f32, (a, 128), (t, True)) for a in MODE for t in (False, True)),
        *(Case(64, f32, (64, b), (True, t)) for b in MODE for t in (False, True)),
        *(Case(96, kinds, (128, 64), (True, True)) for kinds in (f16, ("f32", "bf16", "bf16"))),
        *(Case(8, kinds, (64, 32), (False, True)) for kinds in (f16, ("f32", "bf16", "bf16"))),
        *(
            Case(n, kinds, (a, b), in_registers=held)
            for n, a, b in ((16, 0, 128), (64, 32, 0), (256, 128, 64))
            for held in (False, True)
            for kinds in (
                ("f32", "tf32", "tf32"),
                ("f32", "e4m3", "e5m2"),
                ("f16", "e5m2", "e4m3"),
                ("s32", "s8", "u8"),
                ("s32", "u8", "s8"),
                f32,
            )
        ),
        Case(32, f16, in_registers=True, transposed=(False, True)),
        *(Case(16, f32, scales=scales) for scales in ((-1, 1), (1, -1), (-1, -1))),
        Case(16, f16, in_registers=True, scales=(-1, 1)),
        Case(24, ("s32", "s8", "s8"), saturate=True),
    ]


# -- operands in shared memory -----------------------------------------------------------------------------------------


def placed(matrix: np.ndarray, swizzle: int, transposed: bool, dense: bool) -> tuple[np.ndarray, int]:
    """An operand (rows, k) as bytes of shared memory, and its descriptor without the address.

    The atoms lie apart from each other unless `dense`, as the two offsets of the descriptor say. What lies between them
    is 0xEE. The bytes are a multiple of 1024.
    """
    chunks, item = LINE_CHUNKS[swizzle], matrix.itemsize
    per_chunk, atom = 16 // item, 128 * chunks
    lines = matrix.T if transposed else matrix  # what runs along a line is contiguous
    along = lines.shape[1] // per_chunk  # chunks
    down_atoms = lines.shape[0] // 8
    # Bytes from atom to atom: down, eight lines on, and across. Along k a swizzled operand has no second atom.
    down = atom if dense else 2 * atom
    across = down * down_atoms + (0 if dense else atom)
    image = np.full(-(-across * max(1, along // chunks) // 1024) * 1024, 0xEE, np.uint8)
    for line in range(lines.shape[0]):
        for chunk in range(along):
            at_line, at_chunk = line % 8, chunk % chunks
            period = {0: 1, 32: at_line // 4 % 2, 64: at_line // 2 % 4, 128: at_line}[swizzle]
            if swizzle:
                at_chunk ^= period
            origin = line // 8 * down + chunk // chunks * across
            place = origin + (at_line * chunks + at_chunk) * 16
            data = np.ascontiguousarray(lines[line, chunk * per_chunk : (chunk + 1) * per_chunk])
            image[place : place + 16] = data.view(np.uint8)
    leading, stride = across, down
    if transposed and not swizzle:
        leading, stride = down, across
    return image, leading // 16 << 16 | stride // 16 << 32 | MODE[swizzle] << 62


# -- registers ---------------------------------------------------------------------------------------------------------


def sums_to_registers(matrix: np.ndarray) -> np.ndarray:
    """D or C (64, n) as the threads of a warpgroup hold it: uint32 (128, registers)."""
    n = matrix.shape[1]
    held = np.zeros((THREADS, n // 2), matrix.dtype)
    for thread in range(THREADS):
        for j in range(n // 2):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (j // 2 % 2)
            held[thread, j] = matrix[row, j // 4 * 8 + thread % 4 * 2 + j % 2]
    return held.view(np.uint32)


def registers_to_sums(held: np.ndarray, dtype) -> np.ndarray:
    """The matrix (64, n) that the registers of a warpgroup hold."""
    held = np.ascontiguousarray(held).view(dtype)
    matrix = np.zeros((ROWS, 2 * held.shape[1]), dtype)
    for thread in range(THREADS):
        for j in range(held.shape[1]):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (j // 2 % 2)
            matrix[row, j // 4 * 8 + thread % 4 * 2 + j % 2] = held[thread, j]
    return matrix


def factor_to_registers(matrix: np.ndarray) -> np.ndarray:
    """A (64, k) as a warpgroup holds it: four registers per thread, two rows and two halves of k. uint32 (128, 4)."""
    per = 4 // matrix.itemsize
    held = np.zeros((THREADS, 4 * per), matrix.dtype)
    for thread in range(THREADS):
        for register in range(4):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (register % 2)
            first = register // 2 * 4 * per + thread % 4 * per
            held[thread, register * per : (register + 1) * per] = matrix[row, first : first + per]
    return held.view(np.uint32)


# -- the kernel --------------------------------------------------------------------------------------------------------


def kernel(case: Case, nbytes: int) -> str:
    """Each block copies its image to shared memory; each of its warpgroups multiplies once.

    Parameters: image, factor (A's registers), c, d, descriptors of A and B, bytes from one warpgroup's A to the next's,
    whether C is added.
    """
    d, a, b = case.kinds
    numbers = list(case.scales) if a not in ("s8", "u8") else []
    if BYTES[a] == 2:
        numbers += [int(t) for t in case.transposed[case.in_registers :]]
    group = "{" + ", ".join(f"%c{j}" for j in range(case.registers)) + "}"
    left = "{%a0, %a1, %a2, %a3}" if case.in_registers else "%da"
    saturate = ".satfinite" if case.saturate else ""
    product = f"wgmma.mma_async.sync.aligned.m64n{case.n}k{case.k}{saturate}.{d}.{a}.{b}"
    register = "f32" if d == "f32" else "b32"
    return f"""
.version 9.0
.target sm_90a
.address_size 64
.visible .entry wgmma(.param .u64 image, .param .u64 factor, .param .u64 c, .param .u64 d, .param .u64 a_desc,
    .param .u64 b_desc, .param .u32 step, .param .u32 add)
{{
    .shared .align 1024 .b8 tile[{nbytes}];
    .reg .pred %p, %add;
    .reg .b32 %i, %t, %n, %at, %w, %x;
    .reg .b32 %a<4>;
    .reg .{register} %c<{case.registers}>;
    .reg .b64 %image, %factor, %rc, %rd, %da, %db, %place, %l;
    ld.param.u64 %image, [image];
    ld.param.u64 %factor, [factor];
    ld.param.u64 %rc, [c];
    ld.param.u64 %rd, [d];
    ld.param.u64 %da, [a_desc];
    ld.param.u64 %db, [b_desc];
    mov.u32 %t, %tid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %x, %ctaid.x;
    mad.wide.u32 %image, %x, {nbytes}, %image;
    shl.b32 %i, %t, 2;
    shl.b32 %n, %n, 2;
COPY:
    cvt.u64.u32 %l, %i;
    add.u64 %place, %image, %l;
    ld.global.b32 %w, [%place];
    mov.u32 %at, tile;
    add.u32 %at, %at, %i;
    st.shared.b32 [%at], %w;
    add.u32 %i, %i, %n;
    setp.lt.u32 %p, %i, {nbytes};
    @%p bra COPY;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %x, %n, %t;
    mad.wide.u32 %factor, %i, 16, %factor;
{chr(10).join(f"    ld.global.b32 %a{j}, [%factor+{4 * j}];" for j in range(4))}
    mad.wide.u32 %rc, %i, {4 * case.registers}, %rc;
    mad.wide.u32 %rd, %i, {4 * case.registers}, %rd;
{chr(10).join(f"    ld.global.{register} %c{j}, [%rc+{4 * j}];" for j in range(case.registers))}
    mov.u32 %at, tile;
    and.b32 %at, %at, 0x3FFFF;
    shr.u32 %at, %at, 4;
    cvt.u64.u32 %l, %at;
    add.u64 %da, %da, %l;
    add.u64 %db, %db, %l;
    ld.param.u32 %w, [step];
    shr.u32 %t, %t, 7;
    mul.lo.u32 %t, %t, %w;
    shr.u32 %t, %t, 4;
    cvt.u64.u32 %l, %t;
    add.u64 %da, %da, %l;
    ld.param.u32 %w, [add];
    setp.ne.u32 %add, %w, 0;
    wgmma.fence.sync.aligned;
    {product} {group}, {left}, %db, {", ".join(("%add", *map(str, numbers)))};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
{chr(10).join(f"    st.global.{register} [%rd+{4 * j}], %c{j};" for j in range(case.registers))}
    ret;
}}
"""


@dataclass(frozen=True)
class Launch:
    """A kernel and what it is given: bytes of its first pointers, then that of `size` bytes of results, and numbers."""

    ptx: str
    blocks: int
    threads: int
    inputs: tuple[np.ndarray, ...]
    size: int
    numbers: tuple[np.generic, ...]


def launch_of(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray, add: bool) -> Launch:
    """The launch that multiplies `a` (blocks, groups, 64, k) by `b` (blocks, n, k), adds `c` (blocks, groups, 64, n)
    and returns the threads' registers. All are bits."""
    blocks, groups = a.shape[:2]
    dense = case.n > 64
    images, step, a_desc, b_desc = [], 0, 0, 0
    for of_a, of_b in zip(a, b, strict=True):
        parts = [placed(matrix, case.swizzles[0], case.transposed[0], dense) for matrix in of_a]
        a_desc, step = parts[0][1], parts[0][0].nbytes
        image_b, b_desc = placed(of_b, case.swizzles[1], case.transposed[1], dense)
        images.append(np.concatenate([*(image for image, _ in parts), image_b]))
    factor = np.concatenate([factor_to_registers(matrix) for of_a in a for matrix in of_a])
    held = np.concatenate([sums_to_registers(matrix) for of_c in c for matrix in of_c])
    inputs = tuple(x.reshape(-1).view(np.uint8) for x in (np.concatenate(images), factor, held))
    words = np.uint64(a_desc), np.uint64(b_desc + groups * step // 16), np.uint32(step), np.uint32(add)
    return Launch(kernel(case, images[0].nbytes), blocks, THREADS * groups, inputs, held.nbytes, words)


def results_of(case: Case, registers: np.ndarray, blocks: int) -> np.ndarray:
    """D (blocks, groups, 64, n), bits, from the bytes that a launch returns."""
    held = np.ascontiguousarray(registers).view(np.uint32).reshape(-1, THREADS, case.registers)
    d = [registers_to_sums(group, f"u{BYTES[case.kinds[0]]}") for group in held]
    return np.array(d).reshape(blocks, -1, ROWS, case.n)


def recordings() -> dict[str, Launch]:
    """Launches on numbers near 1, of all sizes, and of any bits, for `evidence.simulator.record_matrix`, by name."""
    launches = {}
    for case in (Case(n, kinds) for n in (8, 64) for kinds in RECORDED_KINDS):
        d, a, b = case.kinds
        for style in ("near", "wide", "any"):
            name = f"wgmma_n{case.n}_{'_'.join(case.kinds)}_{style}"
            shapes = (1, 1, ROWS, case.k), (1, case.n, case.k), (1, 1, ROWS, case.n)
            drawn = [
                numbers(kind, int(np.prod(shape)), style, f"{name} {operand}").reshape(shape)
                for operand, kind, shape in zip("abc", (a, b, d), shapes, strict=True)
            ]
            launches[name] = launch_of(case, *drawn, True)
    return launches


RECORDED_KINDS = (
    ("f32", "f16", "f16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "bf16"),
    ("f32", "tf32", "tf32"),
    ("f32", "e4m3", "e4m3"),
    ("f32", "e5m2", "e4m3"),
    ("f16", "e4m3", "e5m2"),
    ("s32", "s8", "u8"),
)


# -- arithmetic --------------------------------------------------------------------------------------------------------


def small_numbers(kind: str, shape, random) -> tuple[np.ndarray, np.ndarray]:
    """Random integers from -4 to 4 (of u8 from 0) as bits of a PTX type and as float64: all their sums are exact."""
    values = random.integers(0 if kind == "u8" else -4, 5, shape).astype(np.float64)
    return bits_of(values, kind), values


def bits_of(values: np.ndarray, kind: str) -> np.ndarray:
    """Bits of numbers that the type can represent; of tf32 with garbage in the 13 bits that do not count."""
    if kind in ("f32", "f16", "s8", "u8", "s32"):
        dtype = {"f32": "f4", "f16": "f2", "s8": "i1", "u8": "u1", "s32": "i4"}[kind]
        return values.astype(dtype).view(f"u{BYTES[kind]}")
    if kind == "tf32":
        return values.astype(np.float32).view(np.uint32) | np.uint32(0x1ABC)
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    every = np.array([value_of(code, kind) for code in range(256)], np.float64)
    codes = {value: code for code, value in enumerate(every.tolist()) if value == value}
    return np.vectorize(codes.__getitem__, otypes=[np.uint8])(values + 0.0)


def value_of(code: int, kind: str) -> float:
    """The number that eight bits of e4m3 or e5m2 stand for."""
    bits, bias = {"e4m3": (3, 7), "e5m2": (2, 15)}[kind]
    exponent, fraction = code >> bits & (0x7F >> bits), code & ((1 << bits) - 1)
    if kind == "e4m3" and code & 0x7F == 0x7F:
        return float("nan")
    if kind == "e5m2" and exponent == 31:
        return float("nan") if fraction else float("-inf" if code & 0x80 else "inf")
    size = fraction * 2.0 ** (1 - bias - bits) if exponent == 0 else (1 + fraction / 2**bits) * 2.0 ** (exponent - bias)
    return -size if code & 0x80 else size


def one_sum(a: list[float], b: list[float], c: float, least: tuple[int, int, int], bits: int, output: str) -> Fraction:
    """One element of D by exact arithmetic: addends cut off `bits` bits below the largest exponent, then rounded.

    `least`: the smallest exponents of the types of A, B and C. `output`: "f32", "f16" or "e8m13".
    """
    addends = [(Fraction(c), exponent(c, least[2]))]
    addends += [
        (Fraction(x) * Fraction(y), exponent(x, least[0]) + exponent(y, least[1]))
        for x, y in zip(a, b, strict=True)
        if x and y
    ]
    unit = Fraction(2) ** (max([e for x, e in addends if x] + [-126]) - bits)
    total = sum(int(x / unit) for x, _ in addends) * unit  # int cuts toward zero
    if output == "f16":
        return Fraction(float(np.float16(float(total))))
    size = abs(total)
    if not size:
        return total
    top = 0
    while Fraction(2) ** (top + 1) <= size:
        top += 1
    while Fraction(2) ** top > size:
        top -= 1
    unit = Fraction(2) ** (max(top, -126) - {"f32": 23, "e8m13": 13}[output])
    return int(total / unit) * unit


def exponent(value: float, least: int) -> int:
    return max(int(np.frexp(value)[1]) - 1, least)


def execute_warpgroups(name: str, launch: Launch, scratch: Path) -> np.ndarray:
    """Run a launch on this machine's GPU and return the bytes that it stored."""
    import cupy

    path = scratch / f"{name}.ptx"
    path.write_text(launch.ptx)
    kernel = cupy.RawModule(path=str(path)).get_function("wgmma")
    out = cupy.zeros(launch.size, np.uint8)
    arguments = *(cupy.asarray(data) for data in launch.inputs), out, *launch.numbers
    kernel((launch.blocks,), (launch.threads,), arguments)
    return cupy.asnumpy(out)
