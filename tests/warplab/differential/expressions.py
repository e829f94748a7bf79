"""Random expressions of CUDA C++ without undefined behaviour.

Signed arithmetic goes through unsigned types, shifts are masked, divisors are neither 0 nor -1, conversions of floats
to integers use the intrinsics that define every input, and neither payload nor sign of a NaN matters: hardware keeps
one operand's or none, and may negate a NaN by flipping its bit or by arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.warplab.differential.choices import Choices

C_TYPES = {
    "s8": "signed char",
    "u8": "unsigned char",
    "s16": "short",
    "u16": "unsigned short",
    "s32": "int",
    "u32": "unsigned",
    "s64": "long long",
    "u64": "unsigned long long",
    "f16": "__half",
    "bf16": "__nv_bfloat16",
    "f32": "float",
    "f64": "double",
}
INTEGERS = tuple(kind for kind in C_TYPES if kind[0] in "su")
HALVES = ("f16", "bf16")
ROUNDINGS = ("rn", "rz", "ru", "rd")

# Helpers of all kernels. `word` gives a value's bits, with one pattern for every NaN.
PRELUDE = """\
#include <cuda_bf16.h>
#include <cuda_fp16.h>
typedef unsigned long long u64;
typedef long long s64;
__device__ unsigned word(unsigned x) { return x; }
__device__ unsigned word(int x) { return x; }
__device__ unsigned word(short x) { return x; }
__device__ unsigned word(unsigned short x) { return x; }
__device__ unsigned word(signed char x) { return x; }
__device__ unsigned word(unsigned char x) { return x; }
__device__ unsigned word(float x) { return x != x ? 0x7fffffffu : __float_as_uint(x); }
__device__ unsigned word(__half x) { return __hisnan(x) ? 0x7fffu : __half_as_ushort(x); }
__device__ unsigned word(__nv_bfloat16 x) { return __hisnan(x) ? 0x7fffu : __bfloat16_as_ushort(x); }
__device__ u64 word(u64 x) { return x; }
__device__ u64 word(s64 x) { return x; }
__device__ u64 word(double x) { return x != x ? 0x7fffffffffffffffull : (u64)__double_as_longlong(x); }
template <class T> __device__ T quotient(T a, T b) { return b == 0 || b == T(-1) ? T(a ^ b) : T(a / b); }
template <class T> __device__ T modulus(T a, T b) { return b == 0 || b == T(-1) ? T(a & b) : T(a % b); }
__device__ float with_sign(float a, float b) { return b != b ? fabsf(a) : copysignf(a, b); }
__device__ double with_sign(double a, double b) { return b != b ? fabs(a) : copysign(a, b); }
__device__ u64 add_with_carry(unsigned a, unsigned b, unsigned c, unsigned d) {
    unsigned low, high;
    asm("add.cc.u32 %0, %2, %3; addc.u32 %1, %4, %5;" : "=r"(low), "=r"(high) : "r"(a), "r"(b), "r"(c), "r"(d));
    return (u64)high << 32 | low;
}
"""

EDGES = {
    8: (0, 1, 2, 0x7F, 0x80, 0xFF),
    16: (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x100),
    32: (0, 1, 31, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x10000, 0x9E3779B9),
    64: (0, 1, 0x7FFFFFFFFFFFFFFF, 1 << 63, 0xFFFFFFFFFFFFFFFF, 1 << 32, 0x9E3779B97F4A7C15),
}
FLOAT_CONSTANTS = ("0.0", "-0.0", "1.0", "-1.0", "0.5", "3.0", "0.1", "-7.25", "1e-30", "1e30", "123456.789")

# {a}, {b}, {c}: operands of the type; other letters: u u32, s s32, w u64, l s64, f f32, d f64, p bool; {r} a rounding.
TERMS = {
    "u32": """__umulhi({a}, {b})|(unsigned)__clz({s})|(unsigned)__popc({a})|__brev({a})|__byte_perm({a}, {b}, {c})
        |__funnelshift_l({a}, {b}, {c})|__funnelshift_lc({a}, {b}, {c})|__funnelshift_r({a}, {b}, {c})
        |__funnelshift_rc({a}, {b}, {c})|__usad({a}, {b}, {c})|__uhadd({a}, {b})|__urhadd({a}, {b})
        |__umul24({a}, {b})|__dp4a({a}, {b}, {c})|__vadd4({a}, {b})|__vsub2({a}, {b})|__vaddus2({a}, {b})
        |__vabsdiffu4({a}, {b})|__vcmpgtu2({a}, {b})|__vcmpeq4({a}, {b})|__vmaxu4({a}, {b})|__vmins2({a}, {b})
        |umin({a}, {b})|umax({a}, {b})|__float2uint_{r}({f})|__double2uint_{r}({d})|word({f})|(unsigned)word({d})
        |__sad({s}, {s}, {a})|(unsigned)(word({d}) >> 32)|(unsigned)__popcll({w})|(unsigned)__clzll({l})
        |{a} * {b} + {c}|({a} & {b}) ^ ({b} | ~{c})|(({a} >> ({b} & 31)) & 0xffu)|(unsigned)(((u64){a} * {b}) >> 17)""",
    "s32": """__mulhi({a}, {b})|__ffs({a})|__hadd({a}, {b})|__rhadd({a}, {b})|__mul24({a}, {b})|min({a}, {b})
        |max({a}, {b})|__dp4a({a}, {b}, {c})|__dp2a_lo({a}, {b}, {c})|__float2int_{r}({f})|__double2int_{r}({d})
        |__ffsll({l})
        |((int)((unsigned){a} << 8) >> 20)|(int)(((s64){a} * {b}) >> 32)|(int)((signed char){a})|(int)((short){a})""",
    "u64": """__umul64hi({a}, {b})|__brevll({a})|min({a}, {b})|max({a}, {b})|(u64){u} * {u}|(u64){u} * {u} + {a}
        |__float2ull_{r}({f})|__double2ull_{r}({d})|word({d})|add_with_carry({u}, {u}, {u}, {u})
        |({a} >> 13 | {a} << 51)|{a} * {b} + {c}|(u64)(unsigned char)({a} >> ({u} & 63))""",
    "s64": """__mul64hi({a}, {b})|min({a}, {b})|max({a}, {b})|(s64){s} * {s}|__float2ll_{r}({f})|__double2ll_{r}({d})
        |(s64)((u64)((s64){s} * {s}) + (u64){a})|(s64)((u64){a} * (u64){b} + (u64){c})""",
    "f32": """({a} + {b})|({a} - {b})|({a} * {b})|({a} * {b} + {c})|({a} / {b})|fmaf({a}, {b}, {c})|fminf({a}, {b})
        |fmaxf({a}, {b})|fabsf({a})|(-{a})|sqrtf({a})|sqrtf(fabsf({a}))|floorf({a})|ceilf({a})|truncf({a})|rintf({a})
        |roundf({a})|with_sign({a}, {b})|fdimf({a}, {b})|ldexpf({a}, (int)({u} & 63u) - 32)|__saturatef({a})
        |__fadd_{r}({a}, {b})|__fsub_{r}({a}, {b})|__fmul_{r}({a}, {b})|__fmaf_{r}({a}, {b}, {c})|__fdiv_{r}({a}, {b})
        |__fsqrt_{r}({a})|__frcp_{r}({a})|__int2float_{r}({s})|__uint2float_{r}({u})|__ll2float_{r}({l})
        |__ull2float_{r}({w})|__double2float_{r}({d})|(float){u}|__frsqrt_rn({a})|nextafterf({a}, {b})
        |fmodf({a}, {b})""",
    "f64": """({a} + {b})|({a} - {b})|({a} * {b})|({a} * {b} + {c})|({a} / {b})|fma({a}, {b}, {c})|fmin({a}, {b})
        |fmax({a}, {b})|fabs({a})|(-{a})|sqrt({a})|floor({a})|ceil({a})|trunc({a})|rint({a})|with_sign({a}, {b})
        |ldexp({a}, (int)({u} & 127u) - 64)|__dadd_{r}({a}, {b})|__dsub_{r}({a}, {b})|__dmul_{r}({a}, {b})
        |__fma_{r}({a}, {b}, {c})|__ddiv_{r}({a}, {b})|__dsqrt_{r}({a})|__drcp_{r}({a})|(double){s}|(double){f}
        |__ll2double_{r}({l})|__ull2double_{r}({w})|(double){u}|round({a})""",
    "f16": """__hadd_rn({a}, {b})|__hsub_rn({a}, {b})|__hmul_rn({a}, {b})|__hfma({a}, {b}, {c})|__hneg({a})|__habs({a})
        |__float2half_{r}({f})|__double2half({d})|__int2half_{r}({s})|__uint2half_{r}({u})
        |__ushort2half_rn({u} & 0xffffu)
        |htrunc({a})|hfloor({a})|hceil({a})|hrint({a})|__hfma_sat({a}, {b}, {c})
        |__low2half(__hfma2(__halves2half2({a}, {b}), __halves2half2({b}, {c}), __halves2half2({c}, {a})))
        |__high2half(__hmul2_rn(__halves2half2({a}, {b}), __halves2half2({b}, {c})))""",
    "bf16": """__hadd_rn({a}, {b})|__hsub_rn({a}, {b})|__hmul_rn({a}, {b})|__hfma({a}, {b}, {c})|__hneg({a})|__habs({a})
        |__float2bfloat16_{r}({f})|__double2bfloat16({d})
        |__low2bfloat16(__hfma2(__halves2bfloat162({a}, {b}), __bfloat162bfloat162({b}), __bfloat162bfloat162({c})))""",
}  # fmt: skip
FROM_HALVES = {
    "f32": "__half2float({f16})|__bfloat162float({bf16})",
    "s32": "__half2int_{r}({f16})|(int)word({bf16})",
    "u32": "__half2uint_{r}({f16})|word({f16})",
}
BOOLEANS = """{u} < {u}|{s} < {s}|{u} == {u}|{s} != {s}|{w} <= {w}|{l} > {l}|{f} < {f}|{f} >= {f}|{f} == {f}|{f} != {f}
    |!({f} < {f})|{d} > {d}|{d} <= {d}|{d} != {d}|isnan({f})|isinf({f})|isfinite({d})|({u} & 1u)|({w} >> 40 & 1)
    |({p} && {p})|({p} || {p})|!{p}|({p} ^ {p})"""
HALF_BOOLEANS = "__hlt({f16}, {f16})|__hge({f16}, {f16})|__heq({f16}, {f16})|__hneu({f16}, {f16})|__hgt({bf16}, {bf16})"
LETTERS = {"u": "u32", "s": "s32", "w": "u64", "l": "s64", "f": "f32", "d": "f64"}


def terms(table: str) -> list[str]:
    """Alternatives of a table, which "|" at the start of an alternative divides."""
    parts, depth, current = [], 0, ""
    for character in table:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [part.strip() for part in (*parts, current)]


_TERMS = {kind: terms(table) for kind, table in TERMS.items()}
_FROM_HALVES = {kind: terms(table) for kind, table in FROM_HALVES.items()}
_BOOLEANS, _HALF_BOOLEANS = terms(BOOLEANS), terms(HALF_BOOLEANS)


def bits(kind: str) -> int:
    return int(kind.lstrip("bfsu"))


class Expressions:
    """Writes expressions over `variables`: names by type. `kinds`: the types that the kernel uses."""

    def __init__(self, choices: Choices, kinds: tuple[str, ...], arch: int) -> None:
        self.choices, self.kinds, self.arch = choices, kinds, arch
        self.variables: dict[str, list[str]] = {kind: [] for kind in C_TYPES}
        self.inputs: Callable[[str], str] | None = None  # an expression that loads an input, where there is one
        self.functions: list[tuple[str, str, list[str]]] = []  # name, type of the result, types of the parameters

    def of(self, kind: str, depth: int) -> str:
        """An expression of C type `kind`, in parentheses where it needs them."""
        c = self.choices
        if depth <= 0 or c.happens(15):
            return self.leaf(kind)
        callable_ = [f for f in self.functions if f[1] == kind]
        if callable_ and c.happens(15):
            name, _, parameters = c.one(callable_)
            return f"{name}({', '.join(self.of(p, depth - 1) for p in parameters)})"
        if c.happens(12):
            return f"({self.boolean(depth - 1)} ? {self.of(kind, depth - 1)} : {self.of(kind, depth - 1)})"
        if kind in INTEGERS and c.happens(45):
            return self.integer(kind, depth)
        if kind in _TERMS:
            table = _TERMS[kind]
            if kind in _FROM_HALVES and self.uses_halves() and c.happens(30):
                table = _FROM_HALVES[kind]
            if self.arch < 80 and kind == "bf16":
                table = [term for term in table if "fma" not in term]
            return f"({self.fill(c.one(table), kind, depth - 1)})"
        return self.integer(kind, depth)

    def uses_halves(self) -> bool:
        return "f16" in self.kinds

    def fill(self, term: str, kind: str, depth: int) -> str:
        """`term` with an expression for each letter in braces."""
        head, *rest = term.split("{")
        out = head
        rounding = None
        for part in rest:
            letter, _, tail = part.partition("}")
            if letter == "r":
                rounding = rounding or self.choices.one(ROUNDINGS)
                value = rounding
            elif letter == "p":
                value = self.boolean(depth)
            else:
                value = self.of(LETTERS.get(letter, kind if letter in "abc" else letter), depth)
            out += value + tail
        return out

    def boolean(self, depth: int) -> str:
        c = self.choices
        table = _HALF_BOOLEANS if self.uses_halves() and c.happens(20) else _BOOLEANS
        if depth <= 0:
            table = _BOOLEANS[:8]
        return f"({self.fill(c.one(table), 'u32', depth - 1)})"

    def integer(self, kind: str, depth: int) -> str:
        """Operators of C++, defined for every value."""
        c, width, c_type = self.choices, bits(kind), C_TYPES[kind]
        wide = "u64" if width == 64 else "unsigned"
        a, b = self.of(kind, depth - 1), self.of(kind, depth - 1)
        form = c.below(12)
        if form < 5:
            return f"({c_type})(({wide}){a} {c.one('+-*&|^')} ({wide}){b})"
        if form == 5:
            return f"({c_type})(({wide}){a} << ({b} & {width - 1}))"
        if form == 6:
            return f"({c_type})({a} >> ({b} & {width - 1}))"
        if form == 7:
            return f"({c_type})~{a}"
        if form == 8:
            return f"{c.one(('quotient', 'modulus'))}<{c_type}>({a}, {b})"
        if form == 9:
            return f"({c_type})({a} {c.one('/%')} ({c_type}){c.one((3, 7, 10, 100, 64))})"
        if form == 10:
            return f"({c_type}){self.boolean(depth - 1)}"
        return f"({c_type}){self.of(c.one(INTEGERS), depth - 1)}"

    def leaf(self, kind: str) -> str:
        c = self.choices
        known = self.variables[kind]
        if known and c.happens(70):
            return c.one(known)
        if self.inputs is not None and c.happens(60):
            text = self.inputs(kind)
            if text:
                return text
        if known and c.happens(50):
            return c.one(known)
        return self.converted(kind) if c.happens(60) else self.constant(kind)

    def converted(self, kind: str) -> str:
        """A variable of another type as a `kind`, or a constant."""
        c = self.choices
        others = [k for k in (INTEGERS if kind in INTEGERS else ("f32",)) if self.variables[k] and k != kind]
        if not others:
            return self.constant(kind)
        other = c.one(others)
        name = c.one(self.variables[other])
        if kind in INTEGERS or kind == "f64":
            return f"({C_TYPES[kind]}){name}"
        if kind in HALVES:
            return f"__float2{'half' if kind == 'f16' else 'bfloat16'}({name})"
        return self.constant(kind)

    def constant(self, kind: str) -> str:
        c = self.choices
        if kind in INTEGERS:
            number = c.one(EDGES[bits(kind)]) if c.happens(50) else c.below(1 << min(bits(kind), 30))
            return f"({C_TYPES[kind]}){number:#x}{'ull' if bits(kind) == 64 else 'u'}"
        number = c.one(FLOAT_CONSTANTS)
        if kind == "f64":
            return f"({number})"
        if kind == "f32":
            return f"({number}f)"
        return f"__float2{'half' if kind == 'f16' else 'bfloat16'}({number}f)"
