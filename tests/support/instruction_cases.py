"""Scalar PTX instructions with inputs, recorded on a GPU (`tests.support.recorded`); the simulator must reproduce them.

A case is a few instructions that compute %d from %a, %b and %c. Its inputs depend on its name alone, so only the
results need recording. All values are bit patterns, as unsigned integers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

ELEMENTS = 256
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32}
INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
ROUNDINGS = ("rn", "rz", "rm", "rp")
ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")

# Zeros, infinities, quiet and signalling NaN, subnormals, ends of the range, neighbours of 1, ties, integers' limits.
EDGES = {
    8: [0, 1, 2, 3, 7, 8, 9, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF],
    16: [0, 1, 2, 3, 7, 8, 15, 16, 31, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF],
    32: [0, 1, 2, 3, 7, 31, 32, 33, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0x80000001]
    + [0xFFFFFFF9, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678, 0x00FF00FF],
    64: [0, 1, 2, 3, 7, 63, 64, 65, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63]
    + [(1 << 63) + 1, (1 << 64) - 7, (1 << 64) - 2, (1 << 64) - 1, 0x123456789ABCDEF, (1 << 53) + 1, (1 << 24) + 1],
    "f16": [0, 0x8000, 0x3C00, 0xBC00, 0x3C01, 0x3BFF, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFE01, 1, 0x8001, 0x3FF]
    + [0x400, 0x8400, 0x7BFF, 0xFBFF, 0x3800, 0xB800, 0x3E00, 0x4100, 0x4248, 0x5BF8, 0x5C00, 0x7800, 0x6400],
    "bf16": [0, 0x8000, 0x3F80, 0xBF80, 0x3F81, 0x3F7F, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFC1, 1, 0x8001, 0x7F]
    + [0x80, 0x8080, 0x7F7F, 0xFF7F, 0x3F00, 0xBF00, 0x3FC0, 0x4020, 0x4049, 0x437F, 0x4F00, 0xCF00, 0x5F00, 0x4300],
    "f32": [0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000]
    + [0x7F800001, 0xFFC00123, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x80800000, 0x1000000, 0x7F7FFFFF, 0xFF7FFFFF]
    + [0x3F000000, 0xBF000000, 0x3FC00000, 0x40200000, 0x40490FDB, 0x437F0000, 0x43000000, 0x477FE000, 0x477FF000]
    + [0x477FEFFF, 0x38800000, 0x33800000, 0x33000000, 0x33000001, 0x4B800000, 0x4B800001, 0x4EFFFFFF, 0x4F000000]
    + [0x4F7FFFFF, 0x4F800000, 0xCF000000, 0x5EFFFFFF, 0x5F000000, 0xDF000000, 0x5F800000, 0x3F808000, 0x3F818000]
    + [0x7F7F8000, 0x387FF000, 0x1FFFFFFF, 0x2B8CBCCC],
    "f64": [0, 1 << 63, 0x3FF0 << 48, 0xBFF0 << 48, (0x3FF0 << 48) + 1, (0x3FF0 << 48) - 1, 0x7FF0 << 48, 0xFFF0 << 48]
    + [0x7FF8 << 48, (0x7FF0 << 48) + 1, (0xFFF8 << 48) + 0x123, 1, (1 << 63) + 1, (1 << 52) - 1, 1 << 52]
    + [(0x8010 << 48), (0x7FF0 << 48) - 1, (0xFFF0 << 48) - 1, 0x3FE0 << 48, 0xBFE0 << 48, 0x3FF8 << 48, 0x4004 << 48]
    + [0x400921FB54442D18, 0x41DFFFFFFFC00000, 0x41E0 << 48, 0xC1E0 << 48, 0x41EFFFFFFFE00000, 0x43E0 << 48]
    + [0xC3E0 << 48, 0x43F0 << 48, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x380FFFFFE0000000, 0x36A0 << 48]
    + [0x3690 << 48, 0x40EFFC0000000000, 0x40EFFE0000000000, 0x3FF0000010000000, 0x3FF0000030000000, 0x3E60 << 48],
    "amount": [0, 1, 2, 7, 8, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 65, 100, 255, 256, 0x80000000, 0xFFFFFFFF],
}


@dataclass(frozen=True)
class Case:
    """`inputs`: the kinds of %a, %b, %c; `output`: the kind of %d. `ulps`, `absolute`: allowed difference, if any."""

    body: str
    inputs: tuple[str, ...]
    output: str
    ulps: int = 0
    absolute: float = 0.0

    @property
    def input_types(self) -> list[str]:
        return [f"b{bits_of(kind)}" for kind in self.inputs]

    @property
    def output_type(self) -> str:
        return f"b{bits_of(self.output)}"

    @property
    def output_dtype(self) -> str:
        return f"u{bits_of(self.output) // 8}"

    def values(self) -> list[np.ndarray]:
        """One array of bit patterns an input."""
        seed = zlib.crc32(self.body.encode())
        return [values_of(kind, seed + 7919 * k, self.ulps > 0) for k, kind in enumerate(self.inputs)]


def bits_of(kind: str) -> int:
    return 32 if kind == "amount" else BITS.get(kind) or int(kind[1:])


def _random(seed: int, n: int) -> np.ndarray:
    """uint64, the same on every machine and with every NumPy (splitmix64)."""
    z = (np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed) * np.uint64(n)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def values_of(kind: str, seed: int, smooth: bool) -> np.ndarray:
    """Edge cases first, then any bits, then numbers of like size. `smooth`: more of the last."""
    bits = bits_of(kind)
    if kind.endswith("x2"):
        half = kind[:-2] if "f" in kind else "u16"
        low, high = (values_of(half, seed + k, smooth).astype(np.uint32) for k in (0, 1))
        return low | high << np.uint32(16)
    random = _random(seed, ELEMENTS)
    edges = np.array(EDGES.get(kind) or EDGES[bits], np.uint64)
    values = random & np.uint64((1 << bits) - 1)
    first, second = (48, 64) if smooth else (160, 208)
    if smooth:
        values[: len(edges)] = edges
        first = len(edges)
    else:
        values[:first] = edges[random[:first] % np.uint64(len(edges))]
    if kind == "amount":
        values[first:] %= np.uint64(72)
    elif "f" in kind:
        exponent, bias = {"f16": (10, 15), "bf16": (7, 127), "f32": (23, 127), "f64": (52, 1023)}[kind]
        mantissa = values[second:] & np.uint64((1 << exponent) - 1)
        scale = np.uint64(bias - 4) + (random[second:] >> np.uint64(60)) % np.uint64(8)
        sign = (random[second:] >> np.uint64(59) & np.uint64(1)) << np.uint64(bits - 1)
        values[second:] = mantissa | scale << np.uint64(exponent) | sign
    else:
        values[second:] >>= np.uint64(bits // 2)
    return values.astype(f"u{bits // 8}")


def cases() -> list[Case]:
    """All cases, by name."""
    parts = (_integers, _bits, _carry, _floats, _approximate, _halves, _comparisons, _conversions)
    return [case for part in parts for case in part()]


def _integers() -> Iterator[Case]:
    for t in INTEGERS:
        wide = f"{t[0]}{2 * int(t[1:])}"
        for opcode in ("add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem"):
            yield Case(f"{opcode}.{t} %d, %a, %b;", (t, t), t)
        for opcode in ("mad.lo", "mad.hi", "sad"):
            yield Case(f"{opcode}.{t} %d, %a, %b, %c;", (t, t, t), t)
        if t[1:] != "64":
            yield Case(f"mul.wide.{t} %d, %a, %b;", (t, t), wide)
            yield Case(f"mad.wide.{t} %d, %a, %b, %c;", (t, t, wide), wide)
        if t[0] == "s":
            yield Case(f"abs.{t} %d, %a;", (t,), t)
            yield Case(f"neg.{t} %d, %a;", (t,), t)
    for opcode in ("add.sat", "sub.sat"):
        yield Case(f"{opcode}.s32 %d, %a, %b;", ("s32", "s32"), "s32")
    yield Case("mad.hi.sat.s32 %d, %a, %b, %c;", ("s32", "s32", "s32"), "s32")
    for t in ("u32", "s32"):
        for form in ("lo", "hi"):
            yield Case(f"mul24.{form}.{t} %d, %a, %b;", (t, t), t)
            yield Case(f"mad24.{form}.{t} %d, %a, %b, %c;", (t, t, t), t)
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            yield Case(f"dp4a.{a}.{b} %d, %a, %b, %c;", ("b32", "b32", "b32"), "b32")
            for half in ("lo", "hi"):
                yield Case(f"dp2a.{half}.{a}.{b} %d, %a, %b, %c;", ("b32", "b32", "b32"), "b32")
    for t in ("u16x2", "s16x2"):
        for opcode in ("add", "min", "max"):
            yield Case(f"{opcode}.{t} %d, %a, %b;", (t, t), t)
    for lanes in (2, 4):
        for t in ("u32", "s32"):
            yield Case(f"vabsdiff{lanes}.u32.{t}.{t} %d, %a, %b, %c;", ("b32", "b32", "b32"), "b32")
            yield Case(f"vabsdiff{lanes}.u32.{t}.{t}.add %d, %a, %b, %c;", ("b32", "b32", "b32"), "b32")


def _bits() -> Iterator[Case]:
    for n in (16, 32, 64):
        t = f"b{n}"
        for opcode in ("and", "or", "xor"):
            yield Case(f"{opcode}.{t} %d, %a, %b;", (t, t), t)
        for opcode in ("not", "cnot"):
            yield Case(f"{opcode}.{t} %d, %a;", (t,), t)
        yield Case(f"shl.{t} %d, %a, %b;", (t, "amount"), t)
        for sign in "usb":
            yield Case(f"shr.{sign}{n} %d, %a, %b;", (t, "amount"), t)
    for n in (32, 64):
        t = f"b{n}"
        for opcode in ("clz", "popc"):
            yield Case(f"{opcode}.{t} %d, %a;", (t,), "b32")
        yield Case(f"brev.{t} %d, %a;", (t,), t)
        for sign in "us":
            yield Case(f"bfind.{sign}{n} %d, %a;", (t,), "b32")
            yield Case(f"bfind.shiftamt.{sign}{n} %d, %a;", (t,), "b32")
            yield Case(f"bfe.{sign}{n} %d, %a, %b, %c;", (t, "amount", "amount"), t)
        yield Case(f"bfi.{t} %d, %a, %b, %c, 7;", (t, t, "amount"), t)
        yield Case(f"bfi.{t} %d, %a, %b, 5, %c;", (t, t, "amount"), t)
    for table in (0x00, 0x8E, 0x96, 0xE8, 0xCA, 0xB1, 0xFF):
        yield Case(f"lop3.b32 %d, %a, %b, %c, {table:#x};", ("b32", "b32", "b32"), "b32")
    for direction in "lr":
        for mode in ("wrap", "clamp"):
            yield Case(f"shf.{direction}.{mode}.b32 %d, %a, %b, %c;", ("b32", "b32", "amount"), "b32")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield Case(f"prmt.b32{mode} %d, %a, %b, %c;", ("b32", "b32", "b32"), "b32")
    for mode in ("clamp", "wrap"):
        for t in ("u32", "s32"):
            yield Case(f"szext.{mode}.{t} %d, %a, %b;", ("b32", "amount"), "b32")
        yield Case(f"bmsk.{mode}.b32 %d, %a, %b;", ("amount", "amount"), "b32")


def _carry() -> Iterator[Case]:
    for n in (32, 64):
        t = f"u{n}"
        three = (t, t, t)
        declare = f".reg .b{n} %x, %y, %z;"
        for opcode in ("add", "sub"):
            chain = f"{opcode}.cc.{t} %x, %a, %b; {opcode}c.cc.{t} %y, %b, %c; {opcode}c.{t} %z, %c, %a;"
            yield Case(f"{declare} {chain} xor.b{n} %d, %x, %y; xor.b{n} %d, %d, %z;", three, t)
            flag = f"{opcode}.cc.{t} %x, %a, %b; {opcode}c.cc.{t} %y, %b, %c; {opcode}c.{t} %d, 0, 0;"
            yield Case(f"{declare} {flag}", three, t)
        mad = f"mad.lo.cc.{t} %x, %a, %b, %c; madc.hi.cc.{t} %y, %a, %b, %c; madc.lo.cc.{t} %z, %b, %c, %a;"
        yield Case(f"{declare} {mad} addc.{t} %d, 0, 0;", three, t)
        yield Case(f"{declare} {mad} madc.hi.{t} %d, %x, %y, %z;", three, t)
        # The flag of a subtraction read by an addition, and the other way round.
        yield Case(f"{declare} sub.cc.{t} %x, %a, %b; addc.{t} %d, %c, 0;", three, t)
        yield Case(f"{declare} add.cc.{t} %x, %a, %b; subc.{t} %d, %c, 0;", three, t)
    yield Case(".reg .b32 %x; mad.hi.cc.s32 %x, %a, %b, %c; madc.hi.s32 %d, %a, %b, %c;", ("s32", "s32", "s32"), "s32")


def _floats() -> Iterator[Case]:
    for t in ("f32", "f64"):
        for ftz in ("", ".ftz") if t == "f32" else ("",):
            for rounding in ROUNDINGS:
                for opcode in ("add", "sub", "mul", "div"):
                    yield Case(f"{opcode}.{rounding}{ftz}.{t} %d, %a, %b;", (t, t), t)
                yield Case(f"fma.{rounding}{ftz}.{t} %d, %a, %b, %c;", (t, t, t), t)
                yield Case(f"mad.{rounding}{ftz}.{t} %d, %a, %b, %c;", (t, t, t), t)
                for opcode in ("sqrt", "rcp"):
                    yield Case(f"{opcode}.{rounding}{ftz}.{t} %d, %a;", (t,), t)
            for opcode in ("abs", "neg"):
                yield Case(f"{opcode}{ftz}.{t} %d, %a;", (t,), t)
            for opcode in ("min", "max"):
                yield Case(f"{opcode}{ftz}.{t} %d, %a, %b;", (t, t), t)
                if t == "f32":
                    yield Case(f"{opcode}{ftz}.NaN.{t} %d, %a, %b;", (t, t), t)
                    yield Case(f"{opcode}{ftz}.xorsign.abs.{t} %d, %a, %b;", (t, t), t)
                    yield Case(f"{opcode}{ftz}.NaN.xorsign.abs.{t} %d, %a, %b;", (t, t), t)
            if t == "f32":
                for opcode in ("add", "sub", "mul"):
                    yield Case(f"{opcode}{ftz}.sat.{t} %d, %a, %b;", (t, t), t)
                    yield Case(f"{opcode}.rz{ftz}.sat.{t} %d, %a, %b;", (t, t), t)
                yield Case(f"fma.rn{ftz}.sat.{t} %d, %a, %b, %c;", (t, t, t), t)
                yield Case(f"fma.rm{ftz}.sat.{t} %d, %a, %b, %c;", (t, t, t), t)
        yield Case(f"copysign.{t} %d, %a, %b;", (t, t), t)
        for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield Case(f"testp.{what}.{t} %q, %a; selp.u32 %d, 1, 0, %q;", (t,), "u32")


def _approximate() -> Iterator[Case]:
    # Ulps between the GPU's tables and the simulator's exactly rounded results; PTX ISA allows each more than that.
    for ftz in ("", ".ftz"):
        for opcode, ulps in (("rcp", 2), ("sqrt", 2), ("rsqrt", 2), ("ex2", 3)):
            yield Case(f"{opcode}.approx{ftz}.f32 %d, %a;", ("f32",), "f32", ulps)
        yield Case(f"lg2.approx{ftz}.f32 %d, %a;", ("f32",), "f32", 4, 2.0**-21)
        yield Case(f"div.approx{ftz}.f32 %d, %a, %b;", ("f32", "f32"), "f32", 3)
        yield Case(f"div.full{ftz}.f32 %d, %a, %b;", ("f32", "f32"), "f32", 4)
        for opcode in ("sin", "cos"):
            yield Case(f"{opcode}.approx{ftz}.f32 %d, %a;", ("f32",), "f32", 1, 2.0**-19)
    yield Case("tanh.approx.f32 %d, %a;", ("f32",), "f32", 256)
    for opcode in ("rcp", "rsqrt"):
        yield Case(f"{opcode}.approx.ftz.f64 %d, %a;", ("f64",), "f64", 1 << 32)
    yield Case("rsqrt.approx.f64 %d, %a;", ("f64",), "f64", 1)
    for t in ("f16", "bf16", "f16x2", "bf16x2"):
        yield Case(f"tanh.approx.{t} %d, %a;", (t,), t, 1)
        yield Case(f"ex2.approx{'.ftz' if 'b' in t else ''}.{t} %d, %a;", (t,), t, 1)


def _halves() -> Iterator[Case]:
    for t in ("f16", "bf16", "f16x2", "bf16x2"):
        ieee = not t.startswith("b")
        for ftz in ("", ".ftz") if ieee else ("",):
            for opcode in ("add", "sub", "mul"):
                yield Case(f"{opcode}{ftz}.{t} %d, %a, %b;", (t, t), t)
                yield Case(f"{opcode}.rn{ftz}.{t} %d, %a, %b;", (t, t), t)
                if ieee:
                    yield Case(f"{opcode}{ftz}.sat.{t} %d, %a, %b;", (t, t), t)
            yield Case(f"fma.rn{ftz}.{t} %d, %a, %b, %c;", (t, t, t), t)
            yield Case(f"fma.rn{ftz}.relu.{t} %d, %a, %b, %c;", (t, t, t), t)
            if ieee:
                yield Case(f"fma.rn{ftz}.sat.{t} %d, %a, %b, %c;", (t, t, t), t)
            yield Case(f"neg{ftz}.{t} %d, %a;", (t,), t)
            yield Case(f"abs{ftz}.{t} %d, %a;", (t,), t)
            for opcode in ("min", "max"):
                yield Case(f"{opcode}{ftz}.{t} %d, %a, %b;", (t, t), t)
                yield Case(f"{opcode}{ftz}.NaN.{t} %d, %a, %b;", (t, t), t)
                yield Case(f"{opcode}{ftz}.NaN.xorsign.abs.{t} %d, %a, %b;", (t, t), t)


def _comparisons() -> Iterator[Case]:
    for t in (*INTEGERS, "b16", "b32", "b64"):
        order = {"b": ("eq", "ne"), "u": (*ORDERED, "lo", "ls", "hi", "hs"), "s": ORDERED}[t[0]]
        for comparison in order:
            yield Case(f"setp.{comparison}.{t} %q, %a, %b; selp.u32 %d, 1, 0, %q;", (t, t), "u32")
        comparison = order[-1]
        for to in ("u32", "s32", "f32"):
            yield Case(f"set.{comparison}.{to}.{t} %d, %a, %b;", (t, t), to)
    for t, ftz in (("f32", ""), ("f32", ".ftz"), ("f64", ""), ("f16", ""), ("f16", ".ftz"), ("bf16", "")):
        for comparison in (*ORDERED, *UNORDERED):
            yield Case(f"setp.{comparison}{ftz}.{t} %q, %a, %b; selp.u32 %d, 1, 0, %q;", (t, t), "u32")
        for comparison in ("eq", "ne", "ltu", "nan"):
            for to in ("u32", "s32", "f32") if "f16" not in t else ("u32", "u16", t):
                yield Case(f"set.{comparison}{ftz}.{to}.{t} %d, %a, %b;", (t, t), to)
    for t in ("f16x2", "bf16x2"):
        for comparison in (*ORDERED, *UNORDERED):
            body = f"setp.{comparison}.{t} %p|%q, %a, %b; selp.u32 %d, 1, 0, %p; @%q or.b32 %d, %d, 2;"
            yield Case(body, (t, t), "u32")
            yield Case(f"set.{comparison}.{t}.{t} %d, %a, %b;", (t, t), t)
        yield Case(f"set.leu.u32.{t} %d, %a, %b;", (t, t), "u32")
    yield Case("setp.lt.s32 %p|%q, %a, %b; selp.u32 %d, 1, 0, %p; @%q or.b32 %d, %d, 2;", ("s32", "s32"), "u32")
    lead = "setp.gt.s32 %p, %c, 0;"
    for combine in ("and", "or", "xor"):
        for negate in ("", "!"):
            body = f"{lead} setp.lt.{combine}.s32 %p|%q, %a, %b, {negate}%p;"
            yield Case(f"{body} selp.u32 %d, 1, 0, %p; @%q or.b32 %d, %d, 2;", ("s32", "s32", "s32"), "u32")
    yield Case("setp.lt.s32 %p, %a, %b; selp.b64 %d, %c, 5, %p;", ("s32", "s32", "b64"), "b64")
    for t in ("u16", "s32", "b64", "f32", "f64"):
        yield Case(f"slct.{t}.s32 %d, %a, %b, %c;", (t, t, "s32"), t)
        yield Case(f"slct.{t}.f32 %d, %a, %b, %c;", (t, t, "f32"), t)
        yield Case(f"slct.ftz.{t}.f32 %d, %a, %b, %c;", (t, t, "f32"), t)


def _conversions() -> Iterator[Case]:
    integers = [f"{sign}{n}" for n in (8, 16, 32, 64) for sign in "us"]
    for to in integers:
        register = f"{to[0]}{max(32, int(to[1:]))}"
        for have in integers:
            source = f"b{max(16, int(have[1:]))}"
            for sat in ("", ".sat"):
                if sat and not _saturates(to, have):
                    continue
                yield Case(f"cvt{sat}.{to}.{have} %d, %a;", (source,), register)
        for have in ("f16", "bf16", "f32", "f64"):
            for rounding in ("rni", "rzi", "rmi", "rpi"):
                if have == "bf16" and to[1:] == "8":  # only to a register of 8 bits
                    body = f".reg .b8 %x; cvt.{rounding}.{to}.{have} %x, %a; mov.b16 %d, {{%x, 0}};"
                    yield Case(body, (have,), "b16")
                elif have == "bf16":
                    yield Case(f"cvt.{rounding}.{to}.{have} %d, %a;", (have,), to)
                else:
                    yield Case(f"cvt.{rounding}.{to}.{have} %d, %a;", (have,), register)
            if have == "f32":
                yield Case(f"cvt.rpi.ftz.{to}.{have} %d, %a;", (have,), register)
            if have != "bf16":
                yield Case(f"cvt.rzi.sat.{to}.{have} %d, %a;", (have,), register)
    for have in integers:
        source = f"b{max(16, int(have[1:]))}"
        for to in ("f16", "bf16", "f32", "f64"):
            for rounding in ROUNDINGS if (to, have[1:]) != ("bf16", "8") else ():
                yield Case(f"cvt.{rounding}.{to}.{have} %d, %a;", (source,), to)
        for to in ("f16", "f32", "f64"):
            yield Case(f"cvt.rz.sat.{to}.{have} %d, %a;", (source,), to)
    for rounding in ROUNDINGS:
        for to, have in (("f32", "f64"), ("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("bf16", "f64")):
            yield Case(f"cvt.{rounding}.{to}.{have} %d, %a;", (have,), to)
        yield Case(f"cvt.{rounding}.ftz.f32.f64 %d, %a;", ("f64",), "f32")
        yield Case(f"cvt.{rounding}.bf16.f16 %d, %a;", ("f16",), "bf16")
        yield Case(f"cvt.{rounding}.f16.bf16 %d, %a;", ("bf16",), "f16")
    for rounding in ("rn", "rz"):
        for relu in ("", ".relu"):
            for to in ("f16", "bf16"):
                yield Case(f"cvt.{rounding}{relu}.{to}x2.f32 %d, %a, %b;", ("f32", "f32"), f"{to}x2")
                if relu:
                    yield Case(f"cvt.{rounding}{relu}.{to}.f32 %d, %a;", ("f32",), to)
            yield Case(f"cvt.{rounding}{relu}.tf32.f32 %d, %a;", ("f32",), "b32")
    yield Case("cvt.rna.tf32.f32 %d, %a;", ("f32",), "b32")
    yield Case("cvt.rn.sat.f32.f64 %d, %a;", ("f64",), "f32")
    yield Case("cvt.rn.sat.f16.f32 %d, %a;", ("f32",), "f16")
    yield Case("cvt.rn.ftz.f16.f32 %d, %a;", ("f32",), "f16")
    for to, have in (("f32", "f16"), ("f32", "bf16"), ("f64", "f16"), ("f64", "bf16"), ("f64", "f32")):
        yield Case(f"cvt.{to}.{have} %d, %a;", (have,), to)
    for body, kind in (("cvt.ftz.f64.f32", "f32"), ("cvt.sat.f64.f32", "f32"), ("cvt.sat.f32.f16", "f16")):
        yield Case(f"{body} %d, %a;", (kind,), body.split(".")[-2])
    yield Case("cvt.ftz.f32.f16 %d, %a;", ("f16",), "f32")
    for t in ("f16", "bf16", "f32", "f64"):
        for rounding in ("rni", "rzi", "rmi", "rpi"):
            yield Case(f"cvt.{rounding}.{t}.{t} %d, %a;", (t,), t)
    for modifiers in ("rni.ftz", "sat", "ftz.sat", "ftz", "rpi.sat"):
        yield Case(f"cvt.{modifiers}.f32.f32 %d, %a;", ("f32",), "f32")
    for to in ("u16", "s16"):
        yield Case(f"cvt.pack.sat.{to}.s32 %d, %a, %b;", ("s32", "s32"), "b32")
    for to in ("u8", "s8", "u4", "s2"):
        yield Case(f"cvt.pack.sat.{to}.s32.b32 %d, %a, %b, %c;", ("s32", "s32", "b32"), "b32")
    for to in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            yield Case(f"cvt.rn.satfinite{relu}.{to}.f32 %d, %a, %b;", ("f32", "f32"), "b16")
            yield Case(f"cvt.rn.satfinite{relu}.{to}.f16x2 %d, %a;", ("f16x2",), "b16")
            yield Case(f"cvt.rn{relu}.f16x2.{to} %d, %a;", ("b16",), "f16x2")


def _saturates(to: str, have: str) -> bool:
    """Whether values of the type `have` may lie outside `to`; PTX has no .sat otherwise."""
    inner, outer = (np.iinfo(np.dtype(f"{t[0].replace('s', 'i')}{int(t[1:]) // 8}")) for t in (to, have))
    return outer.min < inner.min or outer.max > inner.max
