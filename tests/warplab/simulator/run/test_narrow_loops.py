"""Loops of a few lanes as machine code: results, counters, traces and errors are those of the arrays."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from tests.support.loop_kernels import (
    FLOATS,
    INTEGERS,
    LAUNCHES,
    MODES,
    ONE_LANE_ERRORS,
    SOURCE,
    N,
    in_a_loop,
    seen_of,
    zeros,
)
from tests.support.ptx_harness import NUMPY, get, ptx_of, put
from tests.warplab.simulator.run.test_instructions import GROUPS, execute
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.run import narrow_runs
from warplab.simulator.translate import machine_compiler
from warplab.simulator.translate.machine_operations import TABLE

pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="llvmlite does not know this processor")

OF_WARPS = """
KERNEL sums(const float* a, float* out, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) { s = s * 0.5f + a[i]; out[i] = s; }
}
KERNEL backwards_sums(const double* a, double* out, int n) {
    double s = 0;
    for (int i = n - 1 - threadIdx.x; i >= 0; i -= blockDim.x) { s = fma(s, 0.5, a[i]) / 1.25; out[i] = s; }
}
KERNEL strided(const float* a, float* out, int n) {
    for (int i = 0; i < n; i++) out[threadIdx.x] += a[(threadIdx.x * 7 + i * 3) % n];
}
KERNEL of_shared(const float* a, float* out, int n) {
    __shared__ float b[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) b[i] = i;
    __syncthreads();
    float s = 0;
    for (int i = 0; i < n; i++) s += b[(threadIdx.x * 33 + i) & 255] + b[i & 255];
    out[threadIdx.x] = s;
}
KERNEL wide_shared(const double* a, double* out, int n) {
    __shared__ double b[256];
    __shared__ float4 c[64];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) b[i] = i;
    for (int i = threadIdx.x; i < 64; i += blockDim.x) c[i] = make_float4(i, i, i + 1, 2);
    __syncthreads();
    double s = 0;
    for (int i = 0; i < n; i++) {
        float4 x = c[(threadIdx.x * 3 + i) & 63];
        s += b[(threadIdx.x * 5 + i) & 255] + x.x + x.z + b[threadIdx.x / 2];
    }
    out[threadIdx.x] = s;
}
KERNEL collatz(const int* a, int* out, int n) {
    int s = threadIdx.x;
    for (int i = 0; i < n; i++) {
        if (s & 1) s = 3 * s + a[i & 15]; else s >>= 1;
        if (s < 5) s += a[i & 31];
        out[threadIdx.x + blockDim.x * (i & 7)] = s;
    }
}
KERNEL different_trips(const int* a, int* out, int n) {
    int s = 0;
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < (threadIdx.x + k) % 7; i++) { s += a[i + k % 9]; if (s % 5 == 3) break; }
        if (s % 11 == threadIdx.x % 3) continue;
        s ^= k;
    }
    out[threadIdx.x] = s;
}
KERNEL ends_early(const int* a, int* out, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) { s += a[i]; if (s > 1000 * (int)threadIdx.x) return; out[threadIdx.x] = s; }
}
KERNEL tiles(const float* a, float* out, int n) {
    __shared__ float tile[128];
    float s = 0;
    for (int t = 0; t < n / 4; t++) {
        tile[threadIdx.x] = a[(t * blockDim.x + threadIdx.x) % n];
        __syncthreads();
        for (int k = 0; k < 20; k++) s += tile[(k + threadIdx.x) % blockDim.x];
        __syncthreads();
    }
    out[threadIdx.x] = s;
}
KERNEL shuffles(const int* a, int* out, int n) {
    int s = a[threadIdx.x];
    for (int t = 0; t < 20; t++) {
        for (int k = 0; k < 9; k++) s = s * 3 + a[k];
        s += __shfl_xor_sync(~0u, s, 1 << (t % 5));
    }
    out[threadIdx.x] = s;
}
KERNEL counts(int* a, int* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&out[a[i] & 15], 1);
}
KERNEL logarithms_of_many(const float* a, float* out, int n) {
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) { s += __logf(fabsf(a[i]) + 1); out[i] = rsqrtf(s) + __expf(-s); }
}
KERNEL own_arrays(const int* a, int* out, int n) {
    int own[8];
    for (int k = 0; k < 8; k++) own[k] = threadIdx.x;
    for (int i = 0; i < n; i++) own[(a[i] + threadIdx.x) & 7] += i;
    for (int k = 0; k < 8; k++) out[8 * threadIdx.x + k] = own[k];
}
KERNEL small_types(const unsigned char* a, short* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = (short)(a[i] * 7) + (signed char)a[n - 1 - i];
}
KERNEL generic_pointers(int* a, int* out, int n) {
    __shared__ int s[128];
    s[threadIdx.x] = threadIdx.x;
    int* p = n > 1000 ? a : s + threadIdx.x;
    for (int i = 0; i < n; i++) *p += i;
    out[threadIdx.x] = *p;
}
__device__ int table[128] = {1, 2, 3};
__constant__ int scale[4] = {3, 1, 4, 1};
KERNEL of_module(const int* a, int* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) { table[threadIdx.x] += a[i]; out[i] = scale[i & 3] * a[i]; }
    out[threadIdx.x] = table[threadIdx.x];
}
__device__ int late, never;
KERNEL where_variables_lie(const int* a, int* out, int n) {
    for (int i = 0; i < n; i++) { if (a[i] < 0) never = i; out[threadIdx.x] = i; }
    out[threadIdx.x] = (int)(long long)&late;
}
KERNEL some_too_far(const int* a, int* out, int n) {
    for (int i = threadIdx.x; i < n + 5; i += blockDim.x) out[i] = a[i < n ? i : 0];
}
KERNEL unwritten(const int* a, int* out, int n) {
    __shared__ int s[128];
    if (threadIdx.x != 7) s[threadIdx.x] = 1;
    __syncthreads();
    int t = 0;
    for (int i = 0; i < n; i++) t += s[(threadIdx.x & 1) + i / 4];
    out[threadIdx.x] = t;
}
KERNEL misaligned_lanes(char* a, int n) {
    for (int i = 0; i < n; i++) *(int*)(a + threadIdx.x * 4 + (i > 40 && threadIdx.x == 9)) = i;
}
KERNEL race_of_neighbours(const int* a, int* out, int n) {
    for (int i = 0; i < n; i++) out[threadIdx.x + (i == 33)] = a[i];
}
KERNEL race_with_readers(int* a, int* out, int n) {
    int s = 0;
    for (int i = 0; i < 60; i++) { s += a[i]; if (i == 41 && threadIdx.x == 5) a[50] = s; }
    out[threadIdx.x] = s;
}
KERNEL race_read_later(int* a, int* out, int n) {
    int s = 0;
    for (int i = 0; i < 60; i++) { if (i == 41 && threadIdx.x == 5) a[50] = s; s += a[i]; }
    out[threadIdx.x] = s;
}
KERNEL race_one_value(int* a, int* out, int n) {
    for (int i = 0; i < n; i++) out[i] = i < 50 ? i : threadIdx.x;
}
KERNEL same_value(int* a, int* out, int n) {
    for (int i = 0; i < 60; i++) { out[i] = i; out[100 + i % 3] = 7; }
}
KERNEL missing_barrier(const int* a, int* out, int n) {
    __shared__ int s[128];
    int t = 0;
    for (int i = 0; i < 40; i++) {
        s[threadIdx.x] = i;
        __syncthreads();
        for (int k = 0; k < 4; k++) t += s[(threadIdx.x + k) % blockDim.x];
        if (i != 30) __syncthreads();
    }
    out[threadIdx.x] = t;
}
KERNEL warp_synchronous(const int* a, int* out, int n) {
    __shared__ int s[128];
    int t = 0;
    for (int i = 0; i < 30; i++) {
        s[threadIdx.x] = i;
        __syncwarp();
        for (int k = 0; k < 3; k++) t += s[threadIdx.x ^ k];
        __syncwarp();
    }
    out[threadIdx.x] = t;
}
KERNEL warp_race(const int* a, int* out, int n) {
    __shared__ int s[128];
    int t = 0;
    for (int i = 0; i < 30; i++) {
        s[threadIdx.x] = i;
        __syncwarp();
        for (int k = 0; k < 3; k++) t += s[threadIdx.x ^ (i == 21 ? 32 : k)];
        __syncwarp();
    }
    out[threadIdx.x] = t;
}
KERNEL never_ends(int* out, int n) { int i = 0; while (out[1] == 0) { out[32 + threadIdx.x] = i++ + n; } }
KERNEL parted_for_long(int* out, int n) {
    int s = 0;
    for (int i = 0; i < (threadIdx.x % 3 == 0 ? 9000 : 20); i++) s = s * 5 + i;
    out[threadIdx.x] = s;
}
""".replace("KERNEL", 'extern "C" __global__ void')

OWN = {
    "sums": lambda t: (FLOATS, zeros(N, np.float32), N),
    "backwards_sums": lambda t: (FLOATS.astype(np.float64), zeros(N, np.float64), N),
    "strided": lambda t: (FLOATS, zeros(t, np.float32), 100),
    "of_shared": lambda t: (FLOATS, zeros(t, np.float32), 100),
    "wide_shared": lambda t: (FLOATS.astype(np.float64), zeros(t, np.float64), 50),
    "collatz": lambda t: (INTEGERS, zeros(8 * t), 60),
    "different_trips": lambda t: (INTEGERS, zeros(t), 40),
    "ends_early": lambda t: (INTEGERS, zeros(t), N),
    "tiles": lambda t: (FLOATS, zeros(t, np.float32), 40),
    "shuffles": lambda t: (INTEGERS, zeros(t), N),
    "counts": lambda t: (INTEGERS, zeros(16), N),
    "logarithms_of_many": lambda t: (FLOATS, zeros(N, np.float32), N),
    "own_arrays": lambda t: (INTEGERS, zeros(8 * t), 80),
    "small_types": lambda t: (INTEGERS.astype(np.uint8), zeros(N, np.int16), N),
    "generic_pointers": lambda t: (INTEGERS, zeros(t), 60),
    "of_module": lambda t: (INTEGERS, zeros(N), N),
    "where_variables_lie": lambda t: (INTEGERS, zeros(t), 70),
    "some_too_far": lambda t: (INTEGERS, zeros(N), N),
    "unwritten": lambda t: (INTEGERS, zeros(t), 30),
    "misaligned_lanes": lambda t: (zeros(8 * t, np.int8), 60),
    "race_of_neighbours": lambda t: (INTEGERS, zeros(t + 1), 50),
    "race_with_readers": lambda t: (INTEGERS.copy(), zeros(t), N),
    "race_read_later": lambda t: (INTEGERS.copy(), zeros(t), N),
    "race_one_value": lambda t: (INTEGERS, zeros(60), 60),
    "same_value": lambda t: (INTEGERS, zeros(103), N),
    "missing_barrier": lambda t: (INTEGERS, zeros(t), N),
    "warp_synchronous": lambda t: (INTEGERS, zeros(t), N),
    "warp_race": lambda t: (INTEGERS, zeros(t), N),
    "never_ends": lambda t: (zeros(32 + t), 3),
    "parted_for_long": lambda t: (zeros(t), N),
}
ERRORS = {"some_too_far", "unwritten", "misaligned_lanes", "missing_barrier", "warp_race", "never_ends"}
ERRORS |= {name for name in OWN if name.startswith("race")}
MANY = 40  # blocks, of which all but one have nothing to do
SHAPES = {
    "one warp": (1, 32),
    "a part of two": (1, 40),
    "three warps": (1, 96),
    "three blocks": (3, 24),
    "one block of many": (MANY, 40),
}


def one_of_many(source: str) -> str:
    """The kernels of a source, in which one of `MANY` blocks does all."""
    return re.sub(r"(__global__ void \w+\([^)]*\) \{)", rf"\1 if (blockIdx.x != {MANY // 2}) return;", source)


def outcome(source: str, name: str, grid: int, block: int, args: tuple, narrow: bool, **options) -> tuple:
    """Arrays after a launch, what its profile holds, and its error."""
    args = tuple(np.int32(a) if isinstance(a, int) else a for a in args)
    limits = {"path_limit": 20_000} if name in ("endless", "never_ends") else {}
    error, device = None, simulator.Device(64 << 20)
    source = one_of_many(source) if grid == MANY else source
    chosen = {"machine_code": narrow, **options, **limits}
    try:
        profile = simulate(CudaSource(source, name), grid, block, args, device=device, **chosen)
    except simulator.SimulatorError as caught:
        error, profile = str(caught), caught.profile
    arrays = [a.tobytes() for a in args if isinstance(a, np.ndarray)]
    return arrays, None if profile is None else seen_of(profile), error


@pytest.fixture
def eager(monkeypatch):
    """Loops become machine code at once. Returns the runs of each kernel."""
    for name in ("_WARM", "_FIRST", "_NEXT", "_EACH", "_WORTH"):
        monkeypatch.setattr(narrow_runs, name, 0)
    runs: list[str] = []
    run = narrow_runs.NarrowRuns._run

    def noted(self, *args):
        runs.append(self.chunk.entry.name)
        return run(self, *args)

    monkeypatch.setattr(narrow_runs.NarrowRuns, "_run", noted)
    return runs


EACH = [  # every kernel in every mode, each time in another shape
    (name, list(SHAPES)[(k + m) % len(SHAPES)], mode) for k, name in enumerate(OWN) for m, mode in enumerate(MODES)
]


@pytest.mark.parametrize(("name", "shape", "mode"), EACH)
def test_a_narrow_loop_does_what_the_arrays_do(name, shape, mode, eager):
    (grid, block), make, options = SHAPES[shape], OWN[name], MODES[mode]
    if name == "misaligned_lanes" and not options.get("checks", True):
        pytest.skip("without checks, nothing finds a misaligned access")
    want = outcome(OF_WARPS, name, grid, block, make(block), False, **options)
    assert not eager
    got = outcome(OF_WARPS, name, grid, block, make(block), True, **options)
    assert got == want
    assert name in eager or name == "counts"  # an atomic operation in a block leaves nothing to do


OF_ONE_LANE = [  # every kernel with all that is checked and counted, and in another mode
    (name, mode) for k, name in enumerate(LAUNCHES) for mode in ("all", list(MODES)[1 + k % (len(MODES) - 1)])
]


@pytest.mark.parametrize(("name", "mode"), OF_ONE_LANE)
def test_so_does_a_loop_of_one_lane(name, mode, eager):
    if name == "shared_too_far" and not MODES[mode].get("checks", True):
        pytest.skip("without checks, nothing finds an access outside shared memory")
    grid, block, make = LAUNCHES[name]
    want = outcome(SOURCE, name, grid, block, make(), False, **MODES[mode])
    assert not eager
    assert outcome(SOURCE, name, grid, block, make(), True, **MODES[mode]) == want
    assert name in eager
    if mode == "all":
        assert (want[2] is not None) == (name in ONE_LANE_ERRORS)


@pytest.mark.parametrize("name", OWN)
def test_so_it_does_when_it_starts_late(name, monkeypatch):
    for limit, number in (("_WARM", 16), ("_FIRST", 500), ("_NEXT", 500), ("_EACH", 0)):
        monkeypatch.setattr(narrow_runs, limit, number)
    want = outcome(OF_WARPS, name, 1, 96, OWN[name](96), False)
    assert outcome(OF_WARPS, name, 1, 96, OWN[name](96), True) == want
    assert (want[2] is not None) == (name in ERRORS)


# -- instructions --------------------------------------------------------------------------------------------------


MOST_CASES = 3  # of an opcode: each is compiled


@pytest.mark.parametrize("opcode", sorted(GROUPS))
def test_instructions_in_a_narrow_loop_give_the_bits_of_the_arrays(opcode, eager):
    device = simulator.Device(64 << 20)
    problems = []
    for case in GROUPS[opcode][:: max(1, len(GROUPS[opcode]) // MOST_CASES)]:
        inputs, dtype = case.values(), NUMPY[case.output_type]
        n = inputs[0].size
        program = simulator.load(ptx_of(case.body, case.input_types, case.output_type))
        want = execute(program.entries["kernel"], inputs, dtype)
        text = in_a_loop(case.body, case.input_types, case.output_type)
        entry = simulator.load(text.replace("mov.u32 %i, 0;", "mov.u32 %i, %tid.x;").replace("%i, 1;", "%i, 32;"))
        addresses = [put(device, values) for values in inputs]
        addresses.append(device.memory.allocate(n * np.dtype(dtype).itemsize))
        params = [*(a.to_bytes(8, "little") for a in addresses), n.to_bytes(4, "little")]
        options = simulator.Options(checks=False, counters=False)
        device.launch(entry.entries["kernel"], (1,), (32,), params, options=options)
        got = get(device, addresses[-1], n, dtype)
        for address in addresses:
            device.memory.free(address)
        if dtype == NUMPY["f64"]:  # which of two NaNs NumPy returns depends on the length of its arrays
            floats = got.view(np.float64)
            got = np.where(np.isnan(floats) & np.isnan(want.view(np.float64)), want, got)
        for k in np.flatnonzero(got != want)[:4]:
            problems.append(f"{case.body} {[hex(int(v[k])) for v in inputs]}: {int(got[k]):#x}, not {int(want[k]):#x}")
    assert not problems, "\n".join(problems)
    assert eager or opcode not in TABLE


# -- random programs -----------------------------------------------------------------------------------------------


def random_source(seed: int) -> str:
    """A kernel whose threads go round nested loops, with branches and accesses at random, some of which race."""
    rng = random.Random(seed)
    names = ["a", "b", "c", "d"]
    floats = ["p", "q"]
    own = rng.random() < 0.7  # each thread has its own elements, so that nothing races

    def value(depth: int = 0) -> str:
        if depth > 2 or rng.random() < 0.3:
            return rng.choice([*names, "i", "j", "t", str(rng.randrange(-9, 100))])
        op = rng.choice(["+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%", "min", "max"])
        x, y = value(depth + 1), value(depth + 1)
        if op in ("min", "max"):
            return f"{op}((int)({x}), (int)({y}))"
        if op in ("<<", ">>"):
            return f"(({x}) {op} (({y}) & 15))"
        if op in ("/", "%"):
            return f"(({x}) {op} ((({y}) & 7) + 1))"
        return f"(({x}) {op} ({y}))"

    def number(depth: int = 0) -> str:
        if depth > 2 or rng.random() < 0.3:
            return rng.choice([*floats, f"(float)({value(2)})", f"{rng.uniform(-2, 2):.4f}f"])
        op = rng.choice(["+", "-", "*", "/", "fmaf", "fminf", "fabsf", "__expf"])
        x, y = number(depth + 1), number(depth + 1)
        if op == "fmaf":
            return f"fmaf({x}, {y}, {number(depth + 1)})"
        if op == "fminf":
            return f"fminf({x}, {y})"
        return f"{op}({x})" if op in ("fabsf", "__expf") else f"(({x}) {op} ({y}))"

    def place(size: int) -> str:
        return f"t * {size} + ((({value()}) & {size - 1}))" if own else f"(({value()}) & {size - 1})"

    def statement(depth: int) -> str:
        kind = rng.random()
        if kind < 0.3:
            return f"{rng.choice(names)} = {value()};"
        if kind < 0.42:
            return f"{rng.choice(floats)} = {number()};"
        if kind < 0.52:
            return f"data[{place(8)}] = {value()};"
        if kind < 0.6:
            return f"{rng.choice(names)} += data[{place(8)}];"
        if kind < 0.66:
            return f"{rng.choice(names)} += constant[({value()}) & 63];"
        if kind < 0.7:
            return f"s[{place(4)}] ^= {value()};"
        if kind < 0.74:
            return f"f[{place(4)}] = {number()} + f[{place(4)}];"
        if kind < 0.88 and depth < 3:
            return f"if (({value()}) {rng.choice(['<', '==', '>'])} {value()}) {{ {block(depth + 1)} }}" + (
                f" else {{ {block(depth + 1)} }}" if rng.random() < 0.5 else ""
            )
        if kind < 0.9 and depth == 0:
            return rng.choice(["__syncthreads();", "__syncwarp();", "b += __shfl_xor_sync(~0u, a, 1);"])
        if kind < 0.92 and depth == 0:
            return "atomicAdd(&hits[a & 7], 1);"
        if depth < 2:
            return f"for (j = 0; j < (({value(1)}) & 7); j++) {{ {block(depth + 2)} }}"
        return rng.choice(["wide += (long long)a * b;", "wide ^= wide >> 9;", "byte[t] = (signed char)d;"])

    def block(depth: int) -> str:
        return " ".join(statement(depth) for _ in range(rng.randrange(1, 4)))

    return f"""
extern "C" __global__ void random_program(
    int* data, float* f, signed char* byte, long long* out, const int* constant, int* hits) {{
    __shared__ int s[4 * 64];
    int t = threadIdx.x;
    for (int i = t; i < 4 * 64; i += blockDim.x) s[i] = i;
    __syncthreads();
    int a = 1, b = t, c = 3, d = t * t, i, j = 0;
    unsigned e = 5;
    float p = 0.5f, q = 1.5f + t;
    long long wide = 1;
    for (i = 0; i < 25; i++) {{ {block(0)} e = e * 3 + a; {block(0)} {block(0)} }}
    out[8 * t] = wide; out[8 * t + 1] = a; out[8 * t + 2] = b; out[8 * t + 3] = c; out[8 * t + 4] = d;
    out[8 * t + 5] = __float_as_int(p); out[8 * t + 6] = e; out[8 * t + 7] = __float_as_int(q);
}}
"""


def random_outcome(seed: int, narrow: bool) -> tuple:
    rng = np.random.default_rng(seed)
    grid, threads = [(1, 32), (1, 64), (MANY, 40), (1, 20), (1, 1)][seed % 5]
    args = (
        rng.integers(-1000, 1000, 8 * 64).astype(np.int32),
        rng.standard_normal(4 * 64).astype(np.float32),
        zeros(64, np.int8),
        zeros(8 * 64, np.int64),
        rng.integers(-1000, 1000, 64).astype(np.int32),
        zeros(8),
    )
    options = list(MODES.values())[seed // 4 % len(MODES)]
    return outcome(random_source(seed), "random_program", grid, threads, args, narrow, **options)


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_do_what_the_arrays_do(seed, eager):
    assert random_outcome(seed, True) == random_outcome(seed, False), f"seed {seed}\n{random_source(seed)}"


@pytest.mark.parametrize(
    ("inside", "why"), [("__syncthreads();", "wait"), ("atomicAdd(a + 40, 1);", "atom|red"), ("", "")]
)
def test_the_log_says_which_loops_numpy_runs(inside, why, eager):
    source = f"""extern "C" __global__ void k(int* a, int n) {{
        for (int i = 0; i < n; i++) {{
            {inside}
            a[threadIdx.x] += i;
        }}
    }}"""
    log = simulate(CudaSource(source, "k"), 1, 40, (zeros(41), np.int32(500))).log
    said = [line for line in log if line.startswith("NumPy ran the loop around line ")]
    assert bool(said) == bool(why)
    assert all(re.search(why, line) for line in said)


@pytest.mark.parametrize("options", [{}, {"checks": False, "counters": False}], ids=["checks", "none"])
def test_a_loop_too_short_to_gain_is_left_to_numpy_and_the_log_says_so(options, eager, monkeypatch):
    monkeypatch.setattr(narrow_runs, "_WORTH", 40)
    source = """extern "C" __global__ void k(int* a, int rounds, int n) {
        int sum = threadIdx.x;
        for (int r = 0; r < rounds; r++) {
            __syncthreads();
            #pragma unroll 1
            for (int i = 0; i < n; i++) sum = sum * 3 ^ i;
        }
        a[threadIdx.x] = sum;
    }"""

    def run(n: int) -> tuple[int, bool]:
        eager.clear()
        log = simulate(CudaSource(source, "k"), 1, 32, (zeros(32), np.int32(40), np.int32(n)), **options).log
        return len(eager), any("it is too short to gain" in line for line in log)

    compiled, told = run(1)
    assert narrow_runs._PROBES <= compiled < 40
    assert told
    compiled, told = run(100)
    assert compiled >= 40
    assert not told
