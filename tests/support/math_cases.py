"""CUDA C++ functions, one kernel each, recorded on a GPU (`tests.support.recorded`); the simulator must reproduce them.

NVRTC compiles all of them together. Inputs depend on a kernel's name alone; values are bit patterns.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace

import numpy as np

from tests.support.instruction_cases import bits_of, values_of
from warplab.compile.nvrtc import compile_cuda

C_TYPES = {
    "u8": "unsigned char", "s8": "signed char", "u16": "unsigned short", "s16": "short", "u32": "unsigned",
    "s32": "int", "u64": "unsigned long long", "s64": "long long", "f32": "float", "f64": "double",
    "f16": "__half", "bf16": "__nv_bfloat16", "f16x2": "__half2", "bf16x2": "__nv_bfloat162",
}  # fmt: skip

F32_1 = """acosf acoshf asinf asinhf atanf atanhf cbrtf ceilf cosf coshf cospif erff erfcf erfcinvf erfcxf erfinvf
exp10f exp2f expf expm1f fabsf floorf lgammaf log10f log1pf log2f logbf logf nearbyintf normcdff normcdfinvf rcbrtf
rintf roundf rsqrtf sinf sinhf sinpif sqrtf tanf tanhf tgammaf truncf j0f j1f y0f y1f
__cosf __exp10f __expf __log10f __log2f __logf __saturatef __sinf __tanf __frsqrt_rn
__frcp_rn __frcp_rz __frcp_ru __frcp_rd __fsqrt_rn __fsqrt_rz __fsqrt_ru __fsqrt_rd"""
F32_2 = """atan2f copysignf fdimf fmaxf fminf fmodf hypotf nextafterf powf remainderf __fdividef __powf
__fadd_rn __fadd_rz __fadd_ru __fadd_rd __fmul_rz __fmul_ru __fsub_rd __fdiv_rn __fdiv_rz __fdiv_ru __fdiv_rd"""
F32_3 = "fmaf __fmaf_rz __fmaf_ru __fmaf_rd norm3df rnorm3df"
F64_1 = """acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1
fabs floor lgamma log log10 log1p log2 logb nearbyint normcdf normcdfinv rcbrt rint round rsqrt sin sinh sinpi sqrt
tan tanh tgamma trunc __drcp_rn __drcp_rz __drcp_ru __drcp_rd __dsqrt_rn __dsqrt_rz __dsqrt_ru __dsqrt_rd"""
F64_2 = """atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder __dadd_rz __dmul_ru __dsub_rd
__ddiv_rn __ddiv_rz __ddiv_ru __ddiv_rd"""
F64_3 = "fma __fma_rz __fma_ru __fma_rd"
TO_INTEGER = {
    "f32": """ilogbf:s32 llrintf:s64 llroundf:s64 lroundf:s32 isnan:s32 isinf:s32 isfinite:s32
    signbit:s32 __float2int_rd:s32 __float2int_ru:s32 __float2uint_rn:u32 __float2ll_rd:s64 __float2ull_ru:u64
    __float_as_int:s32""",
    "f64": """ilogb:s32 llrint:s64 llround:s64 isnan:s32 isinf:s32 isfinite:s32 signbit:s32 __double2int_rn:s32
    __double2uint_ru:u32 __double2ll_rd:s64 __double2ull_rz:u64 __double2hiint:s32 __double2loint:s32
    __double2float_rz:f32 __double2float_ru:f32 __double2float_rd:f32 __double_as_longlong:s64""",
    "s32": "__int2float_rz:f32 __int2float_ru:f32 __ffs:s32",
    "u32": "__uint2float_rd:f32 __uint2double_rn:f64",
    "s64": "__ll2float_rd:f32 __ll2double_rz:f64 __ffsll:s32",
    "u64": "__ull2float_rz:f32 __ull2double_ru:f64 __popcll:s32 __clzll:s32",
}
U32_1 = "__brev __clz __popc __vabs4 __vabs2 __vabsss2 __vnegss2 __vneg4"
U32_2 = """__hadd __rhadd __mul24 __umul24 __mulhi __umulhi __uhadd __urhadd __vadd4 __vadd2 __vaddss2 __vaddus4
__vabsdiffs2 __vabsdiffu4 __vavgs4 __vavgu2 __vcmpeq4 __vcmpgts2 __vcmpleu4 __vmaxs4 __vmaxu2 __vminu2 __vmins4
__vsads4 __vsadu2 __vseteq4 __vsetgtu2 __vsub4 __vsub2 __vsubss2 __vsubus4 __vhaddu4 umax umin"""
U32_3 = """__byte_perm __funnelshift_l __funnelshift_lc __funnelshift_r __funnelshift_rc __dp4a __dp2a_lo __dp2a_hi
__sad __usad __viaddmax_s32 __viaddmin_s32_relu __vimax3_u32 __vimin3_s16x2"""
HALF_1 = """__habs __hneg hsqrt hrsqrt hrcp hexp hexp2 hexp10 hlog hlog2 hlog10 hsin hcos hfloor hceil htrunc hrint
htanh htanh_approx"""
HALF_2 = """__hadd __hsub __hmul __hdiv __hadd_sat __hsub_sat __hmul_sat __hmax __hmin __hmax_nan __hmin_nan __hadd_rn
__hmul_rn"""
HALF_3 = "__hfma __hfma_relu __hfma_sat"
HALF_COMPARE = "__heq __hne __hlt __hle __hgt __hge __hequ __hneu __hltu __hleu __hgtu __hgeu"
HALF2_1 = """__habs2 __hneg2 h2sqrt h2rsqrt h2rcp h2exp h2exp2 h2log h2sin h2floor h2rint h2tanh __hisnan2
__lowhigh2highlow"""
HALF2_2 = """__hadd2 __hsub2 __hmul2 __h2div __hadd2_sat __hmax2 __hmin2 __hmax2_nan __heq2 __hne2 __hlt2 __hgtu2
__hgeu2 __lows2half2"""
HALF2_3 = "__hfma2 __hfma2_relu __hcmadd"
HALF2_COMPARE = "__hbeq2 __hbne2 __hblt2 __hbgeu2 __heq2_mask __hltu2_mask"

# Functions that end in the GPU's approximate ones, whose last bits the simulator does not have: ulps, and a difference
# that is allowed besides where a function crosses zero.
APPROXIMATE = {
    "asinhf atanf cbrtf coshf erfcf exp10f exp2f expf normcdff rcbrtf rsqrtf sinhf tanf tanhf": (2, 0),
    "tgammaf atanhf erfcinv erfcinvf erfcxf erfinvf j0f j1f y0f y1f rnorm3df": (2, 0),
    "__exp10f __expf __fdividef htanh_approx": (2, 0),
    "normcdfinvf": (4, 0),
    "__powf": (128, 0),
    "rsqrt": (1, 0),
    "__tanf": (512, 2.0**-16),
    "__cosf __sinf": (2, 2.0**-20),
    "__log10f __log2f __logf": (2, 2.0**-21),
}
APPROXIMATE_FAST = {
    "exp10f expf hypotf norm3df sqrtf": (2, 0),
    "powf": (128, 0),
    "tanf": (512, 2.0**-16),
    "tanhf": (256, 0),
    "cosf sinf": (2, 2.0**-20),
    "log10f log2f logf": (2, 2.0**-21),
}

# Integer code that compilers turn into carry chains, bit-field instructions and multiplications by magic numbers.
INTEGER_CODE = {
    "s64": {
        "int128_product": "(long long)(((__int128)x * y + z) >> 64)",
        "int128_shift": "(long long)(((((__int128)x) << 64 | (unsigned long long)y) << (z & 63)) >> 47)",
        "int128_compare": "((__int128)x * y < (__int128)y * z)",
        "mul64hi": "__mul64hi(x, y)",
        "division_by_7": "x / 7 + y % 10",
    },
    "u64": {
        "umul64hi": "__umul64hi(x, y)",
        "uint128_sum": "(unsigned long long)(((unsigned __int128)x * y + (unsigned __int128)y * z) >> 64)",
        "brevll": "__brevll(x)",
        "rotate": "(x << (y & 63)) | (x >> (-y & 63))",
        "udivision_by_7": "x / 7 + y % 10",
    },
    "u32": {
        "bit_field": "((x >> 5) & 31) | (y << 9)",
        "udivision_by_10": "x / 10 + y % 7",
        "popcount": "__popc(x & y)",
    },
    "s32": {"division_by_3": "x / 3 + y % 5", "absolute": "abs(x) - min(y, z)"},
}


@dataclass(frozen=True)
class MathCase:
    """`expression` of x, y, z, by a kernel called `name`."""

    name: str
    expression: str
    inputs: tuple[str, ...]
    output: str
    use_fast_math: bool = False

    @property
    def source(self) -> str:
        params = "".join(f"const {C_TYPES[kind]}* p{k}, " for k, kind in enumerate(self.inputs))
        reads = " ".join(f"{C_TYPES[kind]} {'xyz'[k]} = p{k}[i];" for k, kind in enumerate(self.inputs))
        return (
            f'extern "C" __global__ void {self.name}({params}{C_TYPES[self.output]}* out, unsigned n) {{\n'
            f"    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            f"    if (i < n) {{ {reads} out[i] = {self.expression}; }}\n}}\n"
        )

    def values(self) -> list[np.ndarray]:
        seed = zlib.crc32(self.name.encode())
        smooth = "f" in self.inputs[0] and len(self.inputs) == 1
        values = [values_of(kind, seed + 7919 * k, smooth)[:128] for k, kind in enumerate(self.inputs)]
        if self.name.split("_k_")[0] in ("div", "rem"):  # CUDA C++ leaves division by zero undefined
            values[1][values[1] == 0] = 3
        if self.name.startswith("__powf"):  # near 1 the error of lg2.approx is as large as the logarithm
            base = values[0].view(np.float32)
            base[np.abs(base - 1) < 2.0**-8] = 3
        return values

    @property
    def _allowed(self) -> tuple[int, float]:
        function = self.name.split("_k_")[0]
        tables = (APPROXIMATE_FAST, APPROXIMATE) if self.use_fast_math else (APPROXIMATE,)
        rows = (row for table in tables for row in table.items())
        return next((allowed for names, allowed in rows if function in names.split()), (0, 0))

    @property
    def ulps(self) -> int:
        return self._allowed[0]

    @property
    def absolute(self) -> float:
        return self._allowed[1]

    @property
    def may_be_fast(self) -> bool:
        """Whether --use_fast_math may change the kernel's code."""
        return "f32" in (*self.inputs, self.output) or "f16" in self.inputs

    @property
    def output_dtype(self) -> str:
        return f"u{max(8, bits_of(self.output)) // 8}"


def math_cases(fast: bool = False) -> list[MathCase]:
    """All cases, or with `fast` those that --use_fast_math may change."""
    every = _every()
    return [replace(case, use_fast_math=True) for case in every if case.may_be_fast] if fast else every


def _every() -> list[MathCase]:
    every: list[MathCase] = []

    def add(functions: str, inputs: tuple[str, ...], output: str) -> None:
        for function in functions.split():
            call = f"{function}({', '.join('xyz'[: len(inputs)])})"
            every.append(MathCase(f"{function}_k_{'_'.join((*inputs, output))}", call, inputs, output))

    for kind, lists in (("f32", (F32_1, F32_2, F32_3)), ("f64", (F64_1, F64_2, F64_3)), ("u32", (U32_1, U32_2, U32_3))):
        for k, functions in enumerate(lists):
            add(functions, (kind,) * (k + 1), kind)
    for kind, functions in TO_INTEGER.items():
        for word in functions.split():
            function, _, output = word.partition(":")
            add(function, (kind,), output)
    for kind in ("f16", "bf16"):
        for k, functions in enumerate((HALF_1, HALF_2, HALF_3)):
            add(functions, (kind,) * (k + 1), kind)
        add(HALF_COMPARE, (kind, kind), "s32")
        for k, functions in enumerate((HALF2_1, HALF2_2, HALF2_3)):
            if kind == "bf16":
                functions = functions.replace("__lows2half2", "__lows2bfloat162")
            add(functions, (f"{kind}x2",) * (k + 1), f"{kind}x2")
        add(HALF2_COMPARE, (f"{kind}x2",) * 2, "u32")
        for rounding in ("rn", "rz", "ru", "rd"):
            name = {"f16": "half", "bf16": "bfloat16"}[kind]
            add(f"__float2{name}_{rounding} ", ("f32",), kind)
            for c, output in (("int", "s32"), ("ushort", "u16"), ("ll", "s64"), ("uint", "u32")):
                add(f"__{name}2{c}_{rounding}", (kind,), output)
                add(f"__{c}2{name}_{rounding}", (output,), kind)
        add(f"__double2{name}", ("f64",), kind)
    for kind, codes in INTEGER_CODE.items():
        for name, expression in codes.items():
            inputs = (kind,) * (1 + max("xyz".index(v) for v in re.findall(r"\b[xyz]\b", expression)))
            every.append(MathCase(f"{name}_k_{kind}", expression, inputs, kind))
    for kind in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        for name, sign in {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "less": "<", "xor": "^"}.items():
            every.append(MathCase(f"{name}_k_{kind}", f"x {sign} y", (kind, kind), kind))
        bits = kind[1:]
        every.append(MathCase(f"shl_k_{kind}", f"x << (y & {int(bits) - 1})", (kind, kind), kind))
        every.append(MathCase(f"shr_k_{kind}", f"x >> (y & {int(bits) - 1})", (kind, kind), kind))
    scalars = [kind for kind in C_TYPES if "x2" not in kind]
    for have in scalars:
        for to in scalars:
            # C++ leaves an integer conversion of a float out of range undefined; the GPU's instruction does not.
            if have != to:
                every.append(MathCase(f"convert_k_{have}_{to}", f"({C_TYPES[to]})x", (have,), to))
    return every


def math_ptx(fast: bool = False) -> str:
    source = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + "".join(case.source for case in math_cases(fast))
    return compile_cuda(source, options=("-w", "--device-int128", *(["--use_fast_math"] if fast else [])))
