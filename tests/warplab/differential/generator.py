"""Random kernels: CUDA C++ source, launch and inputs, each a function of a seed.

Seeds are compiled in batches of `BATCH`; a batch has its own compiler options and target.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from tests.warplab.differential import approximate
from tests.warplab.differential.choices import Choices
from tests.warplab.differential.expressions import C_TYPES, HALVES, INTEGERS, PRELUDE, Expressions
from tests.warplab.differential.statements import ACCUMULATORS, Statements

BATCH = 50
# Compiler options and target of a batch, by its number. With -G nothing is optimised: functions are called, and
# variables lie in local memory.
COMPILATIONS = (
    (("--fmad=false",), 90),
    ((), 90),
    (("--ftz=true",), 80),
    (("-G",), 90),
    (("--fmad=false",), 75),
    (("--fmad=false",), 90),
    ((), 80),
    (("--ftz=true", "--fmad=false"), 90),
)
# Threads of a block by axis, and blocks.
SHAPES = (
    ((32,), 1), ((32,), 2), ((64,), 1), ((64,), 2), ((128,), 1), ((32,), 3), ((64,), 1),
    ((40,), 2), ((48,), 1), ((100,), 1), ((8, 8), 1), ((16, 6), 1), ((4, 4, 4), 1), ((16,), 4),
)  # fmt: skip
MOST_WORDS = 6  # of results, a thread

_CONTROL = {"branch": 4, "switch": 2, "loop": 3, "uniform_loop": 1, "collatz": 1}
_PLAIN = {"assign": 6, "new_variable": 4, "branch": 2, "loop": 1, "vector": 1}
_SIMPLE = ("u32", "s32", "u64", "f32")
# By kind of kernel: types, and weights of statements.
FLAVOURS = {
    "integer": (INTEGERS, _PLAIN),
    "float": (("f32", "u32", "s32"), _PLAIN),
    "double": (("f64", "f32", "u32", "s64"), _PLAIN),
    "mixed": ((*INTEGERS, "f32", "f64"), {**_PLAIN, **_CONTROL, "local_array": 1, "constant_table": 1}),
    "control": (_SIMPLE, {**_CONTROL, "assign": 5, "new_variable": 1, "atomic": 1}),
    "warp": (("u32", "s32", "u64", "s64", "f32", "f64"), {**_PLAIN, "warp": 5, "vote": 5, "uniform_loop": 2}),
    "shared": (
        (*_SIMPLE, "f64", "u8", "s16"),
        {**_PLAIN, "exchange": 4, "warp_exchange": 2, "tree": 2, "histogram": 2, "block_vote": 1, "uniform_loop": 2},
    ),
    "atomics": ((*_SIMPLE, "s64"), {**_PLAIN, "atomic": 8, "histogram": 2, "uniform_loop": 1}),
    "memory": (
        ("u32", "s32", "f32", "f64", "u64", "s16", "u16", "u8", "s8"),
        {"assign": 4, "vector": 6, "local_array": 4, "constant_table": 3, "exchange": 2, "branch": 1, "loop": 1},
    ),
    "half": ((*HALVES, "f32", "u32", "s32"), {**_PLAIN, "exchange": 1, "local_array": 1}),
    "approximate": ((), {}),
}
_IN_FUNCTIONS = {"assign": 4, "new_variable": 3, "branch": 2, "switch": 1, "loop": 2, "local_array": 1, "collatz": 1}


@dataclass(frozen=True)
class Kernel:
    """`source` without the prelude. `approximate`: for each word of a thread's results its function, else empty.

    `by_thread`: whether a thread's words lie together.
    """

    seed: int
    name: str
    flavour: str
    source: str
    block: tuple[int, ...]
    grid: int
    words: int
    by_thread: bool
    approximate: tuple[approximate.Function, ...]

    @property
    def threads(self) -> int:
        return int(np.prod(self.block)) * self.grid


def options_of(batch: int) -> tuple[tuple[str, ...], int]:
    return COMPILATIONS[batch % len(COMPILATIONS)]


def source_of(batch: int) -> str:
    """The source of a batch: the prelude and its kernels."""
    return PRELUDE + "".join(kernel(seed).source for seed in seeds_of(batch))


def seeds_of(batch: int) -> range:
    return range(batch * BATCH, (batch + 1) * BATCH)


@functools.lru_cache(maxsize=4 * BATCH)
def kernel(seed: int) -> Kernel:
    choices = Choices(seed)
    flavour = tuple(FLAVOURS)[seed % len(FLAVOURS)]
    block, grid = choices.one(SHAPES)
    threads = int(np.prod(block))
    name = f"kernel{seed}"
    options, arch = options_of(seed // BATCH)
    if flavour == "approximate":
        functions: list[str] = []
        lines, results, wanted = approximate.body(choices)
    else:
        functions, lines, results = _body(choices, flavour, name, threads, arch, "-G" in options)
        wanted = []
    words = []
    by_word: list[approximate.Function] = []
    for number, (kind, value) in enumerate(results):
        parts = [f"(unsigned)word({value})"]
        if kind.endswith("64"):
            parts.append(f"(unsigned)(word({value}) >> 32)")
        if len(words) + len(parts) <= MOST_WORDS or wanted:
            words += parts
            by_word += wanted[number : number + 1] * len(parts)
    by_thread = choices.happens(50)
    lines += _stores(choices, words, by_thread)
    if choices.happens(20) and not wanted:
        lines += [f"if (({words[0]} & 3u) == 1u) return;", "atomicAdd(&g[21], i + 1u);"]
    parameters = (
        "const unsigned *__restrict__ in_u, const u64 *__restrict__ in_w, const float *__restrict__ in_f, "
        "const double *__restrict__ in_d, unsigned *g, unsigned *out, unsigned n, unsigned trips"
    )
    head = [
        "const unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);",
        f"const unsigned i = blockIdx.x * {threads}u + t, lane = t & 31u;",
        f"const unsigned warp_lanes = min(32u, {threads}u - (t - lane));",
        "const unsigned warp_mask = 0xffffffffu >> (32u - warp_lanes);",
        "(void)warp_mask;",
    ]
    text = "\n".join(functions)
    text += f'\nextern "C" __global__ void {name}({parameters}) {{\n' + "\n".join([*head, *lines]) + "\n}\n"
    return Kernel(seed, name, flavour, text, block, grid, len(words), by_thread, tuple(by_word))


def _stores(choices: Choices, words: list[str], by_thread: bool) -> list[str]:
    if not by_thread:
        return [f"out[{k}u * n + i] = {word};" for k, word in enumerate(words)]
    if len(words) in (2, 4) and choices.happens(60):
        return [f"((uint{len(words)} *)out)[i] = make_uint{len(words)}({', '.join(words)});"]
    return [f"out[i * {len(words)}u + {k}u] = {word};" for k, word in enumerate(words)]


def _body(choices: Choices, flavour: str, name: str, threads: int, arch: int, debug: bool):
    """Text of the functions and tables, lines of the body, and results as (type, expression)."""
    kinds, weights = FLAVOURS[flavour]
    expressions = Expressions(choices, kinds, arch)
    outside = []
    for number in range(choices.below(3)):
        outside.append(_function(choices, expressions, f"{name}_f{number}", kinds, threads))
    expressions.inputs = lambda kind: _input(choices, kind)
    body = Statements(choices, expressions, name, threads, debug)
    for kind in dict.fromkeys(("u32", *kinds)):
        body.declare(kind, _input(choices, kind))
    body.left = 6 + choices.below(22)
    while body.left > 0:
        body.some(4, weights, 3, True)
    results = []
    for kind in kinds:
        results += [(kind, v) for v in expressions.variables[kind][:2]]
    order = [results.pop(choices.below(len(results))) for _ in range(min(len(results), MOST_WORDS))]
    outside[:0] = body.globals
    return outside, body.lines, order


def _function(choices: Choices, outer: Expressions, name: str, kinds, threads: int) -> str:
    """A device function, which `outer` may call from then on."""
    inner = Expressions(choices, kinds, outer.arch)
    inner.functions = list(outer.functions)
    parameters = ["u32"] + [choices.one(kinds) for _ in range(1 + choices.below(2))]
    result = choices.one(kinds)
    for number, kind in enumerate(parameters):
        inner.variables[kind].append(f"p{number}")
    statements = Statements(choices, inner, name, threads, debug=False)
    if not inner.variables[result]:
        statements.declare(result, inner.of(result, 2))
    statements.left = 2 + choices.below(4)
    statements.some(3, _IN_FUNCTIONS, 2, False)
    statements.write(f"return {inner.of(result, 2)};")
    outer.functions.append((name, result, parameters))
    form = choices.one(("__noinline__", "__noinline__", "__forceinline__", "inline"))
    given = ", ".join(f"{C_TYPES[kind]} p{number}" for number, kind in enumerate(parameters))
    return f"{form} __device__ {C_TYPES[result]} {name}({given}) {{\n" + "\n".join(statements.lines) + "\n}"


def _input(choices: Choices, kind: str) -> str:
    """An expression that reads a thread's input. `in_u` and `in_f` hold 4 n values, `in_w` and `in_d` 2 n."""
    wide = kind in ("u64", "s64", "f64")
    places = ["i", "i + n", "n - 1u - i", f"(i * 5u + {choices.below(64)}u) % n", "2u * i + 1u"]
    place = choices.one(places if wide else [*places, "4u * i + 2u", "i + 3u * n"])
    if kind in ("u64", "s64"):
        return f"(({C_TYPES[kind]})in_w[{place}])"
    if kind == "f64":
        return f"in_d[{place}]"
    if kind == "f32":
        return f"in_f[{place}]"
    if kind in HALVES:
        if choices.happens(50):
            return f"__float2{'half' if kind == 'f16' else 'bfloat16'}(in_f[{place}])"
        return f"__ushort_as_{'half' if kind == 'f16' else 'bfloat16'}((unsigned short)in_u[{place}])"
    return f"(({C_TYPES[kind]})in_u[{place}])"


# -- inputs ------------------------------------------------------------------------------------------------

_EDGES = {
    "u4": [0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF],
    "u8": [0, 1, 2, 63, 64, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1],
}
_FLOAT_EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    1.5,
    -2.5,
    np.inf,
    -np.inf,
    np.nan,
    2.0**31,
    -(2.0**31),
    2.0**63,
    2.0**24,
]
_FLOAT_EDGES += [2.0**63, 2.0**24, 2.0**-126, 2.0**-127, 2.0**-149, 65504.0, 65520.0, 2.0**-14, 2.0**-24, 1 / 3]
_FLOAT_EDGES += [3.4028234663852886e38, 1.0 + 2.0**-23, 255.0, 256.5, -128.5, 1e10, -1e-10]
_DOUBLE_EDGES = [*_FLOAT_EDGES, 2.0**-1022, 5e-324, 1.7976931348623157e308, 2.0**53 + 2, 2.0**52 + 0.5, 2.0**-1060]


def inputs(seed: int) -> dict[str, np.ndarray]:
    """The arrays of a kernel: in_u (uint32) and in_f (float32) of 4 n, in_w (uint64) and in_d (float64) of 2 n, g."""
    n = kernel(seed).threads
    bits = np.random.PCG64(seed)  # the sequence of raw bits is the one that NumPy keeps

    def raw(size: int) -> np.ndarray:
        return bits.random_raw(size)

    def mixed(size: int, *alternatives: np.ndarray) -> np.ndarray:
        which = raw(size) % np.uint64(len(alternatives))
        return np.choose(which.astype(np.intp), alternatives)

    def edges(values: np.ndarray, size: int) -> np.ndarray:
        return values[(raw(size) % np.uint64(len(values))).astype(np.intp)]

    def integers(dtype: str, size: int) -> np.ndarray:
        anything = raw(size).astype(dtype)
        return mixed(size, anything, edges(np.array(_EDGES[dtype], dtype), size), anything & np.array(0xFF, dtype))

    def floats(dtype: str, special: list[float], size: int) -> np.ndarray:
        anything = raw(size).astype(f"u{dtype[1:]}").view(dtype)
        quiet = np.where(np.isnan(anything), np.array(np.nan, dtype), anything)
        moderate = (raw(size) >> np.uint64(32)).astype(np.int64) - (1 << 31)
        some = (moderate / 2.0**20).astype(dtype), (moderate / 2.0**31).astype(dtype)
        return mixed(size, quiet, edges(np.array(special, dtype), size), *some)

    return {
        "in_u": integers("u4", 4 * n),
        "in_w": integers("u8", 2 * n),
        "in_f": floats("f4", _FLOAT_EDGES, 4 * n),
        "in_d": floats("f8", _DOUBLE_EDGES, 2 * n),
        "g": np.array(ACCUMULATORS, np.uint32),
    }


TRIPS = 3  # the argument that uniform loops use
