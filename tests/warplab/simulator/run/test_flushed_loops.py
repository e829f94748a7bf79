"""Loops of few lanes with .ftz, as CuPy compiles them: the bits are those of the arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.loop_kernels import MODES, in_a_loop, seen_of, zeros
from tests.support.ptx_harness import NUMPY, get, ptx_of, put
from tests.warplab.simulator.run.test_instructions import execute
from tests.warplab.simulator.run.test_narrow_loops import random_source
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.run import narrow_runs
from warplab.simulator.translate import machine_compiler
from warplab.simulator.translate.machine_writer import MachineWriter

pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="llvmlite does not know this processor")


@pytest.fixture
def eager(monkeypatch):
    """Loops are written at once. Returns the kernels that ran as such, and the opcodes left to the arrays' code."""
    for name in ("_WARM", "_FIRST", "_NEXT", "_EACH", "_WORTH"):
        monkeypatch.setattr(narrow_runs, name, 0)
    runs: list[str] = []
    left: set[str] = set()

    def note_runs(cls):
        run = cls._run

        def noted(self, *args):
            runs.append(self.chunk.entry.name)
            return run(self, *args)

        monkeypatch.setattr(cls, "_run", noted)

    def note_left(cls, method: str):
        leave = getattr(cls, method)

        def noted(self, i):
            left.add(i.opcode)
            return leave(self, i)

        monkeypatch.setattr(cls, method, noted)

    note_runs(narrow_runs.NarrowRuns)
    note_left(MachineWriter, "by_arrays")
    return runs, left


# -- instructions --------------------------------------------------------------------------------------------------

_rng = np.random.default_rng(7)
SMALLEST = np.float32(2.0**-126)
_SIZES = np.array(
    [0, 1, 2, 0x400000, 0x7FFFFE, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x1000000, 0x0C800000, 0x33800000]
    + [0x3EFFFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x40490FDB, 0x4B800000, 0x7E800000, 0x7E800001]
    + [0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FC00123, 0x7FFFFFFF],
    np.uint32,
)
EDGES = np.concatenate([_SIZES, _SIZES | np.uint32(1 << 31)])


def _near_smallest(divided: bool) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose product, or quotient, is 2**-126 or nearly so."""
    a = (_rng.uniform(1, 2, 600) * 2.0**-60 * _rng.choice([-1, 1], 600)).astype(np.float32)
    b = (a.astype(np.float64) / 2.0**-126 if divided else 2.0**-126 / a.astype(np.float64)).astype(np.float32)
    return a.view(np.uint32), b.view(np.uint32) + _rng.integers(-1, 2, 600).astype(np.uint32)


def inputs_of(body: str, count: int) -> list[np.ndarray]:
    """Bits of float32: all pairs of edges, then pairs that give about 2**-126; for a third operand zeros and edges."""
    a, b = np.repeat(EDGES, EDGES.size), np.tile(EDGES, EDGES.size)
    a, b = (np.concatenate(pair) for pair in zip((a, b), _near_smallest(body.startswith("div")), strict=True))
    c = _rng.choice(np.append(EDGES, np.zeros(EDGES.size, np.uint32)), a.size)
    return [EDGES.copy()] if count == 1 else [a, b, c][:count]


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
# Instructions that must have code of their own, with the number of their operands and the type of the result.
OWN = {
    **{f"{opcode}.ftz.f32 %d, %a, %b;": (2, "b32") for opcode in ("add", "sub", "mul", "min", "max")},
    **{f"{opcode}.rn.ftz.f32 %d, %a, %b;": (2, "b32") for opcode in ("add", "sub", "mul", "div")},
    **{f"{opcode}.rn.ftz.f32 %d, %a, %b, %c;": (3, "b32") for opcode in ("fma", "mad")},
    **{f"{opcode}.rn.ftz.f32 %d, %a;": (1, "b32") for opcode in ("rcp", "sqrt")},
    **{f"{opcode}.ftz.f32 %d, %a;": (1, "b32") for opcode in ("neg", "abs")},
    **{f"setp.{c}.ftz.f32 %q, %a, %b; selp.u32 %d, 1, 0, %q;": (2, "b32") for c in COMPARISONS},
    "setp.lt.ftz.f32 %q, %a, 0f00000001; selp.b32 %d, %a, %b, %q;": (2, "b32"),
    "setp.gt.and.ftz.f32 %q, %a, %b, %p; selp.f32 %d, %a, %b, %q;": (2, "b32"),
    **{f"cvt.{r}.ftz.s32.f32 %d, %a;": (1, "b32") for r in ("rni", "rzi", "rmi", "rpi")},
    "cvt.rpi.ftz.u64.f32 %d, %a;": (1, "b64"),
    "cvt.ftz.f64.f32 %d, %a;": (1, "b64"),
    "cvt.f64.f32 %rd2, %a; cvt.f64.f32 %rd3, %b; mul.rn.f64 %rd2, %rd2, %rd3; cvt.rn.ftz.f32.f64 %d, %rd2;": (2, "b32"),
    # Literals, results that are operands again, registers that are written anew, copied, or read as integers.
    "add.ftz.f32 %d, %a, 0f00000123;": (1, "b32"),
    "mul.ftz.f32 %d, %a, 0f80400000;": (1, "b32"),
    "fma.rn.ftz.f32 %d, %a, 0f3F400000, %a;": (1, "b32"),
    "mul.ftz.f32 %t, %a, %b; add.ftz.f32 %d, %t, %c;": (3, "b32"),
    "mul.ftz.f32 %t, %a, %b; add.f32 %t, %t, 0f00000001; mul.ftz.f32 %d, %t, %c;": (3, "b32"),
    "sub.ftz.f32 %t, %a, %b; mov.b32 %d, %t; xor.b32 %t, %t, 1; add.ftz.f32 %d, %d, %t;": (2, "b32"),
    "mul.ftz.f32 %d, %a, %b; mul.rn.f32 %d, %d, %a; fma.rn.ftz.f32 %d, %d, %d, %b;": (2, "b32"),
    "neg.ftz.f32 %t, %a; add.ftz.f32 %d, %a, %t; mov.b32 %a, %b; sub.ftz.f32 %d, %a, %d;": (2, "b32"),
}
# Those that the arrays' code may compute, step by step.
STEPS = {
    **{
        f"{opcode}.approx.ftz.f32 %d, %a;": (1, "b32")
        for opcode in ("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos")
    },
    **{f"div.{form}.ftz.f32 %d, %a, %b;": (2, "b32") for form in ("approx", "full")},
    "add.ftz.sat.f32 %d, %a, %b;": (2, "b32"),
    "mul.rz.ftz.f32 %d, %a, %b;": (2, "b32"),
    "min.ftz.NaN.f32 %d, %a, %b;": (2, "b32"),
    "cvt.rmi.ftz.f32.f32 %d, %a;": (1, "b32"),
    "rcp.approx.ftz.f32 %t, %a; mul.ftz.f32 %d, %t, %b;": (2, "b32"),
}


def bits_in_a_loop(body: str, inputs: Sequence[np.ndarray], output: str) -> np.ndarray:
    """Results of a kernel of 32 threads that go through the elements."""
    text = in_a_loop(body, ["b32"] * len(inputs), output)
    text = text.replace("mov.u32 %i, 0;", "mov.u32 %i, %tid.x;").replace("%i, 1;", "%i, 32;")
    device, dtype, n = simulator.Device(64 << 20), NUMPY[output], inputs[0].size
    addresses = [put(device, values) for values in inputs]
    addresses.append(device.memory.allocate(n * np.dtype(dtype).itemsize))
    params = [*(a.to_bytes(8, "little") for a in addresses), n.to_bytes(4, "little")]
    options = simulator.Options(checks=False, counters=False)
    device.launch(simulator.load(text).entries["kernel"], (1,), (32,), params, options=options)
    return get(device, addresses[-1], n, dtype)


@pytest.mark.parametrize("body", [*OWN, *STEPS])
def test_instructions_flush_as_the_arrays_do(body, eager):
    runs, left = eager
    count, output = {**OWN, **STEPS}[body]
    inputs = inputs_of(body, count)
    program = simulator.load(ptx_of(body, ["b32"] * count, output))
    want = execute(program.entries["kernel"], inputs, NUMPY[output])
    assert not runs
    got = bits_in_a_loop(body, inputs, output)
    different = np.flatnonzero(got != want)
    assert not different.size, [
        f"{[hex(int(v[k])) for v in inputs]}: {int(got[k]):#x}, not {int(want[k]):#x}" for k in different[:5]
    ]
    assert runs
    if body in OWN:
        assert not left


@pytest.mark.parametrize("body", ["mul.rn.ftz.f32 %d, %a, %b;", "div.rn.ftz.f32 %d, %a, %b;"])
def test_what_is_rounded_up_to_the_smallest_number_may_be_a_zero(body, eager):
    a, b = inputs_of(body, 2)
    with np.errstate(all="ignore"):
        rounded = np.divide(*(v.view(np.float32) for v in (a, b))) if body[0] == "d" else a.view("f4") * b.view("f4")
    at = (np.abs(rounded) == SMALLEST) & ~((a << 1) - 1 < 0xFFFFFF) & ~((b << 1) - 1 < 0xFFFFFF)
    got = bits_in_a_loop(body, [a[at], b[at]], "b32").view(np.float32)
    assert set(np.abs(got).tolist()) == {0.0, float(SMALLEST)}


# -- kernels of CuPy -----------------------------------------------------------------------------------------------

SOURCE = """
KERNEL decays(const float* a, float* out, int n) {
    int t = threadIdx.x;
    float s = a[t], r = 1e-36f * a[t + 1];
    for (int i = 0; i < n; i++) {
        s = s * 0.5f; r = r * 0.75f - 1e-39f * a[i & 63];
        out[(2 * i) * blockDim.x + t] = s; out[(2 * i + 1) * blockDim.x + t] = r;
    }
}
KERNEL differences(const float* a, float* out, int n) {
    int t = threadIdx.x;
    float s = 1e-38f;
    for (int i = 0; i < n; i++) {
        s = fmaf(s, -0.99f, a[(i + t) & 63] * 3e-38f);
        if (s > 0) s = fminf(s, 2e-38f) - 1.3e-38f; else s = fabsf(s) / 1.5f;
        out[i * blockDim.x + t] = sqrtf(fabsf(s)) + s;
    }
}
KERNEL special(const float* a, float* out, int n) {
    int t = threadIdx.x;
    float s = 1;
    for (int i = 0; i < n; i++) {
        float x = a[(i * 7 + t) & 63];
        s = s < 1e30f ? s * x + 1 / x : expf(-fabsf(x)) * 1e-37f;
        out[i * blockDim.x + t] = fmaxf(s, x) + (int)x + __int_as_float(__float_as_int(s) >> 1);
    }
}
""".replace("KERNEL", 'extern "C" __global__ void')
SPECIAL = np.resize(np.concatenate([EDGES, _rng.standard_normal(8).astype(np.float32).view(np.uint32)]), 96)
NUMBERS = _rng.standard_normal(96).astype(np.float32)
TRIPS = 160


def outcome(source: str, name: str, narrow: bool, threads: int, args: tuple, **options) -> tuple:
    """Arrays after a launch by CuPy, what its profile holds, and its error. `narrow`: else by the arrays' code."""
    error, device = None, simulator.Device(64 << 20)
    try:
        profile = simulate(
            CudaSource(source, name, by_cupy=True), 1, threads, args, device=device, machine_code=narrow, **options
        )
    except simulator.SimulatorError as caught:
        error, profile = str(caught), caught.profile
    return [a.tobytes() for a in args if isinstance(a, np.ndarray)], profile and seen_of(profile), error


@pytest.mark.parametrize("mode", ["all", "nothing"])
@pytest.mark.parametrize("name", ["decays", "differences", "special"])
def test_a_loop_of_cupy_does_what_the_arrays_do(name, mode, eager):
    runs, _ = eager
    threads, results = 32, []
    for narrow in (False, True):
        numbers = SPECIAL.view(np.float32).copy() if name == "special" else NUMBERS.copy()
        args = (numbers, zeros(2 * TRIPS * threads, np.float32), np.int32(TRIPS))
        results.append(outcome(SOURCE, name, narrow, threads, args, **MODES[mode]))
        assert (name in runs) == narrow
    assert results[0] == results[1]
    assert results[0][2] is None


@pytest.mark.parametrize("seed", range(100, 110))
def test_random_programs_of_cupy_do_what_the_arrays_do(seed, eager):
    threads, results = [32, 20, 1][seed % 3], []
    for narrow in (False, True):
        rng = np.random.default_rng(seed)
        args = (
            rng.integers(-1000, 1000, 8 * 64).astype(np.int32),
            (rng.standard_normal(4 * 64) * 10.0 ** rng.integers(-39, 1, 4 * 64)).astype(np.float32),
            zeros(64, np.int8),
            zeros(8 * 64, np.int64),
            rng.integers(-1000, 1000, 64).astype(np.int32),
            zeros(8),
        )
        results.append(outcome(random_source(seed), "random_program", narrow, threads, args))
    assert results[0] == results[1], f"seed {seed}\n{random_source(seed)}"
