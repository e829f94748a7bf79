"""Loops that a single lane runs as one function: results, counters, traces and errors are those of the arrays."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from tests.simulator.run.test_instructions import GROUPS, execute
from tests.support.instruction_cases import cases
from tests.support.ptx_harness import NUMPY, get, ptx_of, put
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.run import serial_runs
from warplab.simulator.translate.serial_operations import TABLE

SOURCE = """
KERNEL hash_(unsigned* out, int n) {
    unsigned x = 1;
    for (int i = 0; i < n; i++) { x = x * 1664525u + 1013904223u; x ^= x >> 7; x = (x << 3) | (x >> 29); }
    out[0] = x;
}
KERNEL prefix(const int* a, int* out, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) { s += a[i]; out[i] = s; }
}
KERNEL horner(const float* a, float* out, int n) {
    float s = 0, t = 1;
    for (int i = 0; i < n; i++) { s = s * 0.75f + a[i]; t = fmaxf(t, s) / 1.5f; }
    out[0] = s; out[1] = t;
}
KERNEL horner_double(const double* a, double* out, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s = s * 0.75 + sqrt(fabs(a[i]));
    out[0] = s;
}
KERNEL sort(int* a, int n) {
    for (int i = 1; i < n; i++) {
        int v = a[i], j = i - 1;
        while (j >= 0 && a[j] > v) { a[j + 1] = a[j]; j--; }
        a[j + 1] = v;
    }
}
KERNEL histogram(const int* a, int* out, int n) {
    __shared__ int bins[16];
    for (int i = 0; i < 16; i++) bins[i] = 0;
    for (int i = 0; i < n; i++) { if (a[i] % 3 == 0) bins[a[i] & 15] += 2; else bins[a[i] & 15]++; }
    for (int i = 0; i < 16; i++) out[i] = bins[i];
}
KERNEL local_array(const int* a, int* out, int n) {
    int last[8];
    for (int i = 0; i < 8; i++) last[i] = 0;
    for (int i = 0; i < n; i++) last[a[i] & 7] = i;
    for (int i = 0; i < 8; i++) out[i] = last[i];
}
KERNEL vectors(const float4* a, float4* out, int n) {
    for (int i = 0; i < n; i++) { float4 v = a[i]; v.x += v.w; v.y *= v.z; out[i] = v; }
}
KERNEL bytes(const unsigned char* a, unsigned char* out, int n) {
    for (int i = 0; i < n; i++) out[i] = (unsigned char)(a[i] * 3 + (signed char)a[n - 1 - i]);
}
KERNEL one_of_many(const int* a, int* out, int n) {
    __shared__ int sum;
    if (threadIdx.x == 5) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; sum = s; }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
KERNEL between_barriers(int* a, int n) {  // what some read, others have written before the barrier
    __shared__ int s[64];
    for (int k = 0; k < 3; k++) {
        s[threadIdx.x] = a[threadIdx.x] + k;
        __syncthreads();
        if (threadIdx.x == 0) for (int i = 1; i < n; i++) { s[i] += s[i - 1]; a[i] = s[i]; }
        __syncthreads();
    }
}
__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int total;
KERNEL variables(const int* a, int* out, int n) {
    for (int i = 0; i < n; i++) { if (a[i] & 1) total += table[a[i] & 7]; out[i] = total; }
    total = 0;
}
KERNEL triangle(int* out, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) { if ((i ^ j) & 1) continue; count += j; }
    out[0] = count;
}
KERNEL both_forms(const float* a, float* out, int n) {  // bits of a register as a number and as an integer, often
    float s = 1;
    int count = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        float x = a[i];
        unsigned bits = __float_as_uint(x);
        count += bits < 0x3f800000u ? 1 : 0;
        count += bits < 0x3f000000u ? 3 : 0;
        count += bits < 0x40000000u ? 5 : 0;
        count ^= bits < 0xbf800000u ? i : 0;
        s = s * x; s += x * 3.f; s = s * x; s += x * 5.f; s = s * x;
        s += x * 7.f; s = s * x; s += x * 9.f; s = s * x; s += x * 11.f;
        s = fmaxf(fminf(s, 1.f), -1.f);
        out[i] = s + count;
    }
}
KERNEL logarithms(const float* a, float* out, int n) {
    for (int i = 0; i < n; i++) out[i] = logf(1 + fabsf(a[i])) + atan2f(a[i], 2.f);
}
KERNEL backwards(float* out, int n) {  // the compiler adds a constant to a base below the array
    __shared__ float s[320];
    if (threadIdx.x == 0) for (int i = 0; i < n; i++) s[319 - i] = i + 0.5f;
    __syncthreads();
    out[threadIdx.x] = s[319 - threadIdx.x];
}
KERNEL too_far(const int* a, int* out, int n) { for (int i = 0; i < 2 * n; i++) out[i] = a[i]; }
KERNEL unwritten(int* out, int* other, int n) { int s = 0; for (int i = 0; i < n; i++) s += out[i]; other[0] = s; }
KERNEL misaligned(char* a, int n) { for (int i = 0; i < n; i++) *(int*)(a + 4 * i + (i == n / 2)) = i; }
KERNEL shared_too_far(int* out, int n) {
    __shared__ int s[64];
    for (int i = 0; i < n; i++) s[i] = i;
    out[0] = s[3];
}
KERNEL shared_unwritten(int* out, int n) {
    __shared__ int s[64];
    for (int i = 0; i < 40; i++) s[i] = i;
    int t = 0;
    for (int i = 0; i < n; i++) t += s[i];
    out[0] = t;
}
KERNEL endless(int* out, int n) { while (out[0] == 0) out[1] += n; }
KERNEL race_of_writes(int* out, int n) {
    if (threadIdx.x == 40) out[n / 2] = 7;
    if (threadIdx.x == 0) for (int i = 0; i < n; i++) out[i] = i;
}
KERNEL race_of_reads(int* a, int* out, int n) {
    if (threadIdx.x == 0) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; out[0] = s; }
    if (threadIdx.x == 40) a[n / 2] = 7;
}
KERNEL race_of_shared(int* out, int n) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    if (threadIdx.x == 0) { int t = 0; for (int i = 0; i < n; i++) t += s[i]; out[0] = t; }
}
KERNEL race_after(int* a, int* out, int n) {  // who comes last finds what the loop has done
    if (threadIdx.x == 0) { int t = 0; for (int i = 0; i < n; i++) { t += a[i]; if (i & 1) a[i] = 2 * t; } out[0] = t; }
    __syncwarp();
    if (threadIdx.x == 1) a[n / 2] = 7;
    if (threadIdx.x == 40) a[n / 2 + 1] = 7;
}
""".replace("KERNEL", 'extern "C" __global__ void')

N = 300
_rng = np.random.default_rng(1)
INTEGERS = _rng.integers(0, 1000, N).astype(np.int32)
FLOATS = _rng.standard_normal(N).astype(np.float32)


def zeros(n: int, dtype=np.int32) -> np.ndarray:
    return np.zeros(n, dtype)


LAUNCHES = {
    "hash_": (1, 1, lambda: (zeros(1, np.uint32), 2000)),
    "both_forms": (1, 1, lambda: (FLOATS, zeros(N, np.float32), N)),
    "logarithms": (1, 1, lambda: (FLOATS, zeros(N, np.float32), N)),
    "backwards": (1, 64, lambda: (zeros(64, np.float32), 200)),
    "prefix": (1, 1, lambda: (INTEGERS, zeros(N), N)),
    "horner": (1, 1, lambda: (FLOATS, zeros(2, np.float32), N)),
    "horner_double": (1, 1, lambda: (FLOATS.astype(np.float64), zeros(1, np.float64), N)),
    "sort": (1, 1, lambda: (INTEGERS[:120].copy(), 120)),
    "histogram": (1, 1, lambda: (INTEGERS, zeros(16), N)),
    "local_array": (1, 1, lambda: (INTEGERS, zeros(8), N)),
    "vectors": (1, 1, lambda: (FLOATS, zeros(N, np.float32), N // 4)),
    "bytes": (1, 1, lambda: (INTEGERS.astype(np.uint8), zeros(N, np.uint8), N)),
    "one_of_many": (1, 64, lambda: (INTEGERS, zeros(64), N)),
    "between_barriers": (1, 64, lambda: (INTEGERS[:64].copy(), 64)),
    "variables": (1, 1, lambda: (INTEGERS, zeros(N), N)),
    "triangle": (1, 1, lambda: (zeros(1), 60)),
    "too_far": (1, 1, lambda: (INTEGERS, zeros(2 * N), N)),
    "misaligned": (1, 1, lambda: (zeros(4 * N, np.int8), N)),
    "shared_too_far": (1, 1, lambda: (zeros(1), 70)),
    "shared_unwritten": (1, 1, lambda: (zeros(1), 60)),
    "endless": (1, 1, lambda: (zeros(2), 3)),
    "race_of_writes": (1, 64, lambda: (zeros(N), N)),
    "race_of_reads": (1, 64, lambda: (INTEGERS.copy(), zeros(1), N)),
    "race_of_shared": (1, 64, lambda: (zeros(1), 64)),
    "race_after": (1, 64, lambda: (INTEGERS.copy(), zeros(1), N)),
}
ERRORS = {"too_far", "misaligned", "shared_too_far", "shared_unwritten", "endless"} | {
    name for name in LAUNCHES if name.startswith("race")
}
MODES = {
    "all": {},
    "checks off": {"checks": False},
    "nothing": {"checks": False, "counters": False},
    "no races": {"races": False, "trace_events": 100},
    "used reads only": {"used_reads_only": True, "trace_events": 7},
    "pascal": {"scheduling": "pascal", "trace_warps": 1},
}


def seen_of(profile) -> dict:
    """All that a profile holds, as values that can be compared."""
    found = {f.name: getattr(profile, f.name) for f in dataclasses.fields(simulator.LaunchProfile) if f.compare}
    found["accesses"] = [
        tuple(v.tolist() if isinstance(v, np.ndarray) else v for v in vars(a).values()) for a in profile.accesses
    ]
    found["accesses"] = [row[:-1] + (row[-3][0] - row[-1],) for row in _relative(found["accesses"])]
    steps = profile.steps
    if steps is not None:
        found["steps"] = steps.complete, [steps.of(*warp) for warp in steps.traced]
    if profile.flow is not None:
        found["flow"] = {k: v for k, v in vars(profile.flow).items() if k != "translation"}
    if profile.reuse is not None:
        found["reuse"] = vars(profile.reuse)
    return found


def _relative(rows: list[tuple]) -> list[tuple]:
    """Addresses as distances from the start of their array, which each launch puts elsewhere."""
    return [(*row[:-3], [a - row[-1] for a in row[-3]], *row[-2:]) for row in rows]


def outcome(name: str, serial: bool, **options) -> tuple:
    """Arrays after a launch, what its profile holds, and its error."""
    grid, block, make = LAUNCHES[name]
    args = tuple(np.int32(a) if isinstance(a, int) else a for a in make())
    limits = {"path_limit": 20_000} if name == "endless" else {}
    device = simulator.Device(64 << 20)
    error = None
    try:
        profile = simulate(
            CudaSource(SOURCE, name),
            grid,
            block,
            args,
            device=device,
            serial_loops=serial,
            narrow_loops=False,
            **options,
            **limits,
        )
    except simulator.SimulatorError as caught:
        error, profile = str(caught), caught.profile
    arrays = [a.tobytes() for a in args if isinstance(a, np.ndarray)]
    return arrays, None if profile is None else seen_of(profile), error


@pytest.fixture
def eager(monkeypatch):
    """Loops become functions at once, however short they are. Returns the runs of each kernel."""
    monkeypatch.setattr(serial_runs, "_WARM", 1)
    monkeypatch.setattr(serial_runs, "_WORTH", 0)
    runs: list[str] = []
    run = serial_runs.SerialRuns._run

    def noted(self, *args):
        runs.append(self.chunk.entry.name)
        return run(self, *args)

    monkeypatch.setattr(serial_runs.SerialRuns, "_run", noted)
    return runs


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", LAUNCHES)
def test_a_serial_loop_does_what_the_arrays_do(name, mode, eager):
    if name == "shared_too_far" and not MODES[mode].get("checks", True):
        pytest.skip("without checks, nothing finds an access outside shared memory")
    want = outcome(name, False, **MODES[mode])
    assert not eager
    assert outcome(name, True, **MODES[mode]) == want
    assert name in eager
    if mode == "all":
        assert (want[2] is not None) == (name in ERRORS)


@pytest.mark.parametrize("name", LAUNCHES)
def test_so_it_does_when_it_starts_late(name):
    assert outcome(name, True) == outcome(name, False)


# -- instructions --------------------------------------------------------------------------------------------------


def in_a_loop(body: str, input_types: list[str], output_type: str) -> str:
    """`ptx_of`, for one thread that goes through the elements."""
    text = ptx_of(body, input_types, output_type)
    head, rest = text.split("    mov.u32 %i, %ctaid.x;")
    _, rest = rest.split("    add.u32 %i, %i, %t;")
    rest = rest.replace("ret;", "add.u32 %i, %i, 1;\n    bra LOOP;\nEND:\n    ret;").replace("bra DONE;", "bra END;")
    return f"{head}    mov.u32 %i, 0;\nLOOP:{rest}"


@pytest.mark.parametrize("opcode", sorted(GROUPS.keys() & TABLE))
def test_instructions_in_a_serial_loop_give_the_bits_of_the_arrays(opcode, eager):
    device = simulator.Device(64 << 20)
    problems = []
    for case in GROUPS[opcode]:
        inputs, dtype = case.values(), NUMPY[case.output_type]
        n = inputs[0].size
        want = execute(
            simulator.load(ptx_of(case.body, case.input_types, case.output_type)).entries["kernel"], inputs, dtype
        )
        entry = simulator.load(in_a_loop(case.body, case.input_types, case.output_type)).entries["kernel"]
        addresses = [put(device, values) for values in inputs]
        addresses.append(device.memory.allocate(n * np.dtype(dtype).itemsize))
        params = [*(a.to_bytes(8, "little") for a in addresses), n.to_bytes(4, "little")]
        options = simulator.Options(checks=False, counters=False)
        device.launch(entry, (1,), (1,), params, options=options)
        got = get(device, addresses[-1], n, dtype)
        for address in addresses:
            device.memory.free(address)
        for k in np.flatnonzero(got != want)[:4]:
            problems.append(f"{case.body} {[hex(int(v[k])) for v in inputs]}: {int(got[k]):#x}, not {int(want[k]):#x}")
    assert not problems, "\n".join(problems)


KNOWN = ("add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "and", "shl", "shr", "setp", "cvt")


@pytest.mark.parametrize("opcode", KNOWN)
def test_common_instructions_have_code_for_plain_numbers(opcode, eager):
    case = next(c for c in cases() if c.body.startswith(opcode) and c.output in ("b32", "u32", "s32", "f32"))
    entry = simulator.load(in_a_loop(case.body, case.input_types, case.output_type)).entries["kernel"]
    device = simulator.Device(64 << 20)
    addresses = [put(device, np.ones(4, np.uint64)) for _ in range(len(case.inputs) + 1)]
    params = [*(a.to_bytes(8, "little") for a in addresses), (4).to_bytes(4, "little")]
    device.launch(entry, (1,), (1,), params, options=simulator.Options())
    assert eager


# -- random programs -----------------------------------------------------------------------------------------------


def random_source(seed: int) -> str:
    """A kernel of one thread with nested loops, branches, and accesses at random."""
    rng = random.Random(seed)
    names = ["a", "b", "c", "d"]
    floats = ["p", "q"]

    def value(depth: int = 0) -> str:
        if depth > 2 or rng.random() < 0.3:
            return rng.choice([*names, "i", "j", str(rng.randrange(-9, 100))])
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
        op = rng.choice(["+", "-", "*", "/", "fmaf", "fminf", "fabsf"])
        x, y = number(depth + 1), number(depth + 1)
        if op == "fmaf":
            return f"fmaf({x}, {y}, {number(depth + 1)})"
        if op == "fminf":
            return f"fminf({x}, {y})"
        return f"fabsf({x})" if op == "fabsf" else f"(({x}) {op} ({y}))"

    def statement(depth: int) -> str:
        kind = rng.random()
        if kind < 0.35:
            return f"{rng.choice(names)} = {value()};"
        if kind < 0.5:
            return f"{rng.choice(floats)} = {number()};"
        if kind < 0.6:
            return f"data[({value()}) & 63] = {value()};"
        if kind < 0.7:
            return f"{rng.choice(names)} += data[({value()}) & 63];"
        if kind < 0.75:
            return f"s[({value()}) & 31] ^= {value()};"
        if kind < 0.8:
            return f"f[({value()}) & 63] = {number()} + f[i & 63];"
        if kind < 0.9 and depth < 3:
            return f"if (({value()}) {rng.choice(['<', '==', '>'])} {value()}) {{ {block(depth + 1)} }}" + (
                f" else {{ {block(depth + 1)} }}" if rng.random() < 0.5 else ""
            )
        if depth < 2:
            return f"for (j = 0; j < (({value(1)}) & 7); j++) {{ {block(depth + 2)} }}"
        return rng.choice(["wide += (long long)a * b;", "wide ^= wide >> 9;", "byte[c & 63] = (signed char)d;"])

    def block(depth: int) -> str:
        return " ".join(statement(depth) for _ in range(rng.randrange(1, 4)))

    return f"""
extern "C" __global__ void random_program(int* data, float* f, signed char* byte, long long* out) {{
    __shared__ int s[32];
    for (int i = 0; i < 32; i++) s[i] = i;
    int a = 1, b = 2, c = 3, d = 4, i, j = 0;
    unsigned e = 5;
    float p = 0.5f, q = 1.5f;
    long long wide = 1;
    for (i = 0; i < 40; i++) {{ {block(0)} e = e * 3 + a; {block(0)} {block(0)} }}
    out[0] = wide; out[1] = a; out[2] = b; out[3] = c; out[4] = d; out[5] = s[i & 31]; out[6] = e;
    f[0] = p; f[1] = q;
}}
"""


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_do_what_the_arrays_do(seed, eager):
    source = random_source(seed)
    results = []
    for serial in (False, True):
        rng = np.random.default_rng(seed)
        args = (
            rng.integers(-1000, 1000, 64).astype(np.int32),
            rng.standard_normal(64).astype(np.float32),
            zeros(64, np.int8),
            zeros(7, np.int64),
        )
        profile = simulate(
            CudaSource(source, "random_program"),
            1,
            1,
            args,
            device=simulator.Device(64 << 20),
            serial_loops=serial,
            narrow_loops=False,
        )
        results.append(([a.tobytes() for a in args], seen_of(profile)))
    assert results[0] == results[1], f"seed {seed}\n{source}"
    assert eager or len(profile.flow.threads) == 1  # the compiler may leave no loop
