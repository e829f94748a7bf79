"""Blocks for all lanes as machine code: results, counters, traces and errors are those of the arrays."""

import numpy as np
import pytest

from tests.support.loop_kernels import FLOATS, MODES, zeros
from tests.support.ptx_harness import NUMPY, get, ptx_of, put
from tests.warplab.simulator.run.test_instructions import GROUPS
from tests.warplab.simulator.run.test_narrow_loops import ERRORS, OF_WARPS, OWN, outcome, random_source
from tests.warplab.simulator.run.test_narrow_observers import EVENTS, observer_of
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.check import races
from warplab.simulator.observer import Observer
from warplab.simulator.run import machine_runs
from warplab.simulator.translate import machine_blocks, machine_compiler
from warplab.simulator.translate.machine_blocks import MachineBlocks
from warplab.simulator.translate.machine_operations import TABLE

pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="llvmlite does not know this processor")

SHAPES = [(1, 32), (1, 96), (3, 64), (2, 128)]
OF_BLOCKS = """
KERNEL product(const float* a, const float* b, float* out, int n) {
    __shared__ float ta[8][8], tb[8][8];
    int x = threadIdx.x % 8, y = threadIdx.x / 8, column = blockIdx.x % (n / 8) * 8, row = blockIdx.x / (n / 8) * 8;
    float s = 0;
    for (int t = 0; t < n; t += 8) {
        ta[y][x] = a[(row + y) * n + t + x];
        tb[y][x] = b[(t + y) * n + column + x];
        FIRST
        for (int k = 0; k < 8; k++) s += ta[y][k] * tb[k][x];
        SECOND
    }
    out[(row + y) * n + column + x] = s;
}
KERNEL in_place(float* a, float* out, const float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = a[i] * b[i];
    out[i] = a[i ^ MIRROR] + b[i + PAST];
}
KERNEL turns(float* a, float* out, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float* from = a;
    float* to = b;
    for (int k = 0; k < n; k++) {
        to[i] = from[i] * 1.5f + k;
        float* other = from;
        from = to;
        to = other;
    }
    out[i] = from[i];
}
KERNEL flat(const unsigned short* a, double* out, const long long* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = a[i] * 0.5 + b[0], y = b[1] / (1.0 + (i & 7));
    out[i] = fma(x, y, -x) + (i % 5 ? 0.0 : 0.0 / (i & 1));
}
""".replace("KERNEL", 'extern "C" __global__ void')
BARRIER = "__syncthreads();"


@pytest.fixture
def eager(monkeypatch):
    """Blocks become machine code at once, in chunks of any size. Returns the runs: by kernel, were they good?"""
    monkeypatch.setattr(MachineBlocks, "times", 0)
    monkeypatch.setattr(machine_runs, "FEWEST", 1)
    runs: list[tuple[str, bool]] = []
    ran = machine_runs.MachineRuns._ran

    def noted(self, *args):
        good = ran(self, *args)
        runs.append((self.chunk.entry.name, good))
        return good

    monkeypatch.setattr(machine_runs.MachineRuns, "_ran", noted)
    return runs


def both(eager, source: str, name: str, grid: int, block: int, make, **options) -> tuple:
    """The outcome by machine code, which is held to that of the arrays."""
    want = outcome(source, name, grid, block, make(), False, **options)
    assert not eager
    got = outcome(source, name, grid, block, make(), True, **options)
    assert got == want
    return got


EACH = [
    (name, SHAPES[(k + m) % len(SHAPES)], mode)
    for k, name in enumerate(OWN)
    for m, mode in enumerate(MODES)
    if mode in ("all", list(MODES)[1 + k % (len(MODES) - 1)])
    # Without checks, nothing finds a misaligned access.
    if name != "misaligned_lanes" or MODES[mode].get("checks", True)
]


@pytest.mark.parametrize(("name", "shape", "mode"), EACH)
def test_blocks_do_what_the_arrays_do(name, shape, mode, eager):
    both(eager, OF_WARPS, name, *shape, lambda: OWN[name](shape[0] * shape[1]), **MODES[mode])
    assert (name, True) in eager


def product(first: str = BARRIER, second: str = BARRIER) -> str:
    return OF_BLOCKS.replace("FIRST", first).replace("SECOND", second).replace("MIRROR", "0").replace("PAST", "0")


@pytest.mark.parametrize("mode", ["all", "checks off", "no races", "used reads only"])
def test_a_tiled_product(mode, eager):
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal((24, 24)).astype(np.float32) for _ in range(2))
    a[3, 4], b[2, 2], a[5] = np.nan, np.inf, 1e-40
    got = both(eager, product(), "product", 9, 64, lambda: (a, b, zeros(24 * 24, np.float32), 24), **MODES[mode])
    assert got[2] is None
    assert eager.count(("product", True)) >= 8  # the blocks before and between barriers, three times, and the others
    assert ("product", False) not in eager


@pytest.mark.parametrize("less", ["", "__syncwarp();"])
@pytest.mark.parametrize("first", [True, False])
def test_a_deleted_barrier_is_the_same_race(first, less, eager):
    barriers = (less, BARRIER) if first else (BARRIER, less)
    factors = np.random.default_rng(5).standard_normal((2, 576)).astype(np.float32)
    make = lambda: (*factors.copy(), zeros(576, np.float32), 24)  # noqa: E731
    _, _, error = both(eager, product(*barriers), "product", 9, 64, make)
    assert "race" in error


@pytest.mark.parametrize("kind", ["int", "unsigned", "long long", "unsigned long long", "short"])
def test_no_division_ends_the_process(kind, eager):
    """Of numbers that all lanes share, by 0, and of the lowest by -1."""
    source = """extern "C" __global__ void divided(KIND* out, KIND lowest, KIND zero) {
        int i = threadIdx.x;
        out[i] = (KIND)(i / zero) + (KIND)(lowest / zero);
        out[i + 64] = (KIND)(lowest / (KIND)(zero - 1)) - (KIND)(i % zero);
        out[i + 128] = (KIND)(lowest % (KIND)(zero - 1)) + i;
        out[i + 192] = (KIND)(lowest % zero) + i;
    }""".replace("KIND", kind)
    dtype = np.dtype({"int": "i4", "unsigned": "u4", "long long": "i8", "short": "i2"}.get(kind, "u8"))
    lowest = dtype.type(np.iinfo(dtype).min)
    make = lambda: (zeros(256, dtype), lowest, dtype.type(0))  # noqa: E731
    *_, error = both(eager, source, "divided", 1, 64, make)
    assert error is None
    assert ("divided", True) in eager


PADDED = """
__device__ float of(TYPE s) { return GET; }
extern "C" __global__ void padded(const float* a, float* out, int past, int n) {
    __shared__ TYPE s[16][17];
    int x = threadIdx.x % 16, y = threadIdx.x / 16, i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = a[i];
    s[y][x] = PUT;
    __syncthreads();
    out[i] = of(s[y][0]) * 3 + of(s[y][x + past]) * 5 + of(s[x * n % 16][y]);
}"""
ELEMENTS = [
    ("signed char", "v", "s"),
    ("short", "v", "s"),
    ("float", "v", "s"),
    ("double", "v", "s"),
    ("float2", "make_float2(v, 1)", "s.x + s.y"),
    ("float4", "make_float4(v, 1, 2, 3)", "s.x + s.y + s.z + s.w"),
    ("double2", "make_double2(v, 1)", "s.x + s.y"),
]


@pytest.mark.parametrize("past", [0, 1])
@pytest.mark.parametrize(("kind", "value", "number"), ELEMENTS)
def test_rows_with_an_element_that_nobody_writes(kind, value, number, past, eager):
    source = PADDED.replace("TYPE", kind).replace("PUT", value).replace("GET", number)
    make = lambda: (10 * np.resize(FLOATS, 512), zeros(512, np.float32), past, 7)  # noqa: E731
    *_, error = both(eager, source, "padded", 2, 256, make)
    assert ("never written" in str(error)) == bool(past), error
    assert ("padded", True) in eager
    assert (("padded", False) in eager) == bool(past)


@pytest.mark.parametrize("kind", ["short", "float", "double"])
@pytest.mark.parametrize("apart", [0, 8, 16, 17])
def test_stores_by_halves_of_a_warp(apart, kind, eager):
    source = """extern "C" __global__ void k(const float* a, float* out, int apart) {
        __shared__ TYPE s[512];
        int t = threadIdx.x, at = t % 16 + apart * (t / 16);
        for (int n = 0; n < 2; n++) {
            s[at] = a[t] + n;
            __syncthreads();
            out[t] += s[at ^ 1];
            __syncthreads();
        }
    }""".replace("TYPE", kind)
    make = lambda: (9 * FLOATS[:256], zeros(256, np.float32), apart)  # noqa: E731
    *_, error = both(eager, source, "k", 1, 256, make)
    assert ("race" in str(error)) == (apart < 16), error
    assert ("k", True) in eager


@pytest.mark.parametrize("victim", [70, 200])
@pytest.mark.parametrize("places", [0, 40, 1 << 25])
def test_loads_that_were_recorded_race_whenever_they_are_examined(places, victim, eager, monkeypatch):
    source = """extern "C" __global__ void k(float* a, float* out, int victim) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[i] = a[i] * a[i & ~31];
        if (i == 150) a[victim] = 3;
    }"""
    monkeypatch.setattr(races, "_PENDING_PLACES", places)
    make = lambda: (np.resize(FLOATS, 256), zeros(192, np.float32), victim)  # noqa: E731
    *_, error = both(eager, source, "k", 6, 32, make, chunk_lanes=64)
    assert ("race" in str(error)) == (victim < 192)
    assert ("k", True) in eager


@pytest.mark.parametrize(("mirror", "past", "says"), [(0, 0, None), (1, 0, "race"), (0, 1, "illegal address")])
def test_stores_before_loads(mirror, past, says, eager):
    source = product().replace("i ^ 0", f"i ^ {mirror}").replace("i + 0", f"i + {past}")
    make = lambda: (FLOATS[:192].copy(), zeros(192, np.float32), FLOATS[:192].copy(), 192)  # noqa: E731
    *_, error = both(eager, source, "in_place", 3, 64, make)
    assert (says or "None") in str(error)


@pytest.mark.parametrize("name", ["turns", "flat"])
def test_arrays_that_take_turns_and_results_of_float64(name, eager):
    first = FLOATS[:192].copy() if name == "turns" else np.arange(192, dtype=np.uint16)
    out = zeros(192, np.float32 if name == "turns" else np.float64)
    third = FLOATS[:192].copy() if name == "turns" else np.array([3, -5])
    *_, error = both(eager, product(), name, 3, 64, lambda: (first.copy(), out.copy(), third.copy(), 9))
    assert error is None
    assert (name, True) in eager
    assert (name, False) in eager or name == "turns"  # a NaN of float64 is left to the arrays


@pytest.mark.parametrize("name", sorted(ERRORS - {"never_ends"}))
def test_errors_of_a_chunk_of_many_warps(name, eager):
    threads = 128
    *_, error = both(eager, OF_WARPS, name, 4, threads, lambda: OWN[name](4 * threads))
    assert error is not None


MOST_CASES = 2  # of an opcode: each is compiled


@pytest.mark.parametrize("opcode", sorted(GROUPS.keys() & TABLE.keys()))
def test_instructions_give_the_bits_of_the_arrays(opcode, eager):
    problems = []
    for case in GROUPS[opcode][1 :: max(1, len(GROUPS[opcode]) // MOST_CASES)]:
        inputs, dtype = [np.resize(values, 256) for values in case.values()], NUMPY[case.output_type]
        results = []
        for machine in (False, True):
            device = simulator.Device(64 << 20)
            entry = simulator.load(ptx_of(case.body, case.input_types, case.output_type)).entries["kernel"]
            at = [put(device, values) for values in inputs]
            at.append(device.memory.allocate(256 * np.dtype(dtype).itemsize))
            params = [*(a.to_bytes(8, "little") for a in at), (256).to_bytes(4, "little")]
            device.launch(entry, (2,), (128,), params, options=simulator.Options(machine_code=machine))
            results.append(get(device, at[-1], 256, dtype))
        if (results[0] != results[1]).any():
            k = int(np.flatnonzero(results[0] != results[1])[0])
            found, want = (int(result[k]) for result in results[::-1])
            problems.append(f"{case.body} {[hex(int(v[k])) for v in inputs]}: {found:#x}, not {want:#x}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("seed", range(100, 116))
def test_random_programs_do_what_the_arrays_do(seed, eager):
    rng = np.random.default_rng(seed)
    grid, threads = SHAPES[seed % 2]
    arrays = (
        rng.integers(-1000, 1000, 8 * 96).astype(np.int32),
        rng.standard_normal(4 * 96).astype(np.float32),
        zeros(96, np.int8),
        zeros(8 * 96, np.int64),
        rng.integers(-1000, 1000, 64).astype(np.int32),
        zeros(8),
    )
    make = lambda: tuple(a.copy() for a in arrays)  # noqa: E731
    source = random_source(seed).replace("4 * 64", "4 * 96")
    both(eager, source, "random_program", grid, threads, make, **list(MODES.values())[seed % 2])


@pytest.mark.parametrize("left_out", [*EVENTS, ""])
def test_an_observer_sees_what_it_sees_of_the_arrays(left_out, eager):
    """As the head of `simulator.observer` says, only one of what is loaded leaves all blocks to NumPy."""
    events, results = [event for event in EVENTS if event != left_out], []
    for machine in (False, True):
        observer, seen = observer_of(events)
        made = outcome(OF_WARPS, "collatz", 2, 128, OWN["collatz"](256), machine, observers=(observer,))
        results.append((made, seen))
        assert any(good for _, good in eager) == (machine and left_out == "loaded")
    assert results[0] == results[1]
    assert {event[0] for event in results[0][1]} == set(events)


@pytest.mark.parametrize("event", ["load", "store"])
def test_an_observer_ends_a_launch_that_has_counted_as_much(event, eager):
    def ends(self, *_):
        raise simulator.SimulatorError("enough")

    source = CudaSource('extern "C" __global__ void k(int* a) { a[threadIdx.x] = a[threadIdx.x] + a[0]; }', "k")
    watcher, counts = type("Watcher", (Observer,), {event: ends}), []
    for machine_code in (False, True):
        with pytest.raises(simulator.SimulatorError) as caught:
            simulate(source, 1, 32, (zeros(32),), races=False, machine_code=machine_code, observers=(watcher(),))
        counts.append((caught.value.profile.counts, caught.value.profile.footprint))
    assert counts[0] == counts[1]
    assert eager == [("k", True)]


def test_a_block_that_reads_a_clock_is_left_to_the_arrays(eager):
    source = 'extern "C" __global__ void k(long long* a) { a[threadIdx.x] = clock64(); }'
    both(eager, source, "k", 2, 64, lambda: (zeros(64, np.int64),), races=False)
    assert not eager


def log_of(source: str, block: int = 64, **options) -> list[str]:
    return simulate(CudaSource(source, "k"), 2, block, (zeros(4),), **options).log


ATOMIC = 'extern "C" __global__ void k(int* a) {\n    atomicAdd(&a[threadIdx.x & 3], 1);\n}'


def test_the_log_says_what_is_left_to_numpy_and_why(eager):
    (line,) = log_of(ATOMIC)
    assert line.startswith("NumPy ran the code from line 1 on: ")
    assert "atom" in line or "red" in line
    assert log_of(ATOMIC, machine_code=False) == []
    assert log_of(ATOMIC, 40) == [
        "NumPy ran all blocks of code, compiled loops aside: the last warp of each block is not full"
    ]
    store = 'extern "C" __global__ void k(int* a) { a[threadIdx.x & 3] = 1; }'
    assert log_of(store) == []
    for event in ("store", "stored"):
        watcher = type("Watcher", (Observer,), {event: lambda *of: None})()
        assert log_of(store, observers=(watcher,)) == ["NumPy made stores: Watcher sees them"]
    fenced = store.replace("a[", "__threadfence(); __syncthreads(); a[")
    assert "NumPy made stores: fences, mbarriers or volatile accesses order them" in log_of(fenced)


def test_the_log_says_that_few_threads_run():
    assert log_of(ATOMIC) == [
        "NumPy ran all blocks of code, compiled loops aside: fewer than 4,096 threads run at one time"
    ]


@pytest.mark.parametrize(("steps", "good"), [(4, False), (300, True)])
def test_a_long_block_of_few_threads_is_machine_code(steps, good, eager, monkeypatch):
    monkeypatch.setattr(machine_runs, "FEWEST", 4096)
    source = f"""extern "C" __global__ void k(float* a) {{
        float x = a[threadIdx.x], y = x * 0.5f, z = 1;
        #pragma unroll
        for (int k = 0; k < {steps}; k++) z = fmaf(z, y, x);
        a[threadIdx.x] = z;
    }}"""
    monkeypatch.setattr(MachineBlocks, "times", 10**9)
    want = outcome(source, "k", 2, 128, (FLOATS[:256].copy(),), False)
    monkeypatch.setattr(MachineBlocks, "times", 0)
    assert outcome(source, "k", 2, 128, (FLOATS[:256].copy(),), True) == want
    assert (("k", True) in eager) == good


@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_rows_of_multiply_adds_at_the_edge_of_float32(ftz, eager):
    """Subnormal factors, sums and results, those next to 2**-126, infinities and NaN, single entries, one register
    that is a factor and the sum."""
    source = """extern "C" __global__ void k(const float* a, float* out, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float x = a[i], y = a[(i * 7 + n) % 256], z = a[(i * 5 + 3) % 256], w = a[n];
        asm volatile("fma.rn.ftz.f32 %0, %0, %1, %2;" : "+f"(z) : "f"(x), "f"(y));
        asm volatile("fma.rn.ftz.f32 %0, %1, %1, %0;" : "+f"(w) : "f"(x));
        asm volatile("fma.rn.ftz.f32 %0, %1, %2, %0;" : "+f"(z) : "f"(x), "f"(w));
        out[i] = z + w;
    }""".replace(".ftz", ftz)
    edge = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0**-126,
        -(2.0**-126),
        2.0**-127,
        2.0**-149,
        np.inf,
        np.nan,
        2.0**127,
        0.5,
        2.0**-63,
    ]
    values = np.random.default_rng(2).choice(np.array(edge, np.float32), 256)
    for x in (values, np.random.default_rng(3).standard_normal(256).astype(np.float32)):
        *_, error = both(eager, source, "k", 2, 128, lambda x=x: (x.copy(), zeros(256, np.float32), 9))
        assert error is None
        eager.clear()


def test_a_block_that_llvm_does_not_take_is_left_to_numpy(eager, monkeypatch):
    def fails(*_):
        raise RuntimeError("LLVM ERROR: no such instruction")

    source = 'extern "C" __global__ void k(int* a) { a[threadIdx.x & 3] = 7; }'
    monkeypatch.setattr(machine_compiler, "Compiled", fails)
    assert log_of(source) == ["NumPy ran the code from line 1 on: LLVM ERROR: no such instruction"]


def test_a_block_with_too_many_kinds_of_code_is_left_to_numpy(eager, monkeypatch):
    source = 'extern "C" __global__ void k(int* a) { a[threadIdx.x & 3] = 8; }'
    monkeypatch.setattr(machine_blocks, "_MOST_VERSIONS", 0)
    assert log_of(source) == ["NumPy ran the code from line 1 on: other registers held one value for all"]


def test_code_from_a_block_of_another_shape_counts_the_same(eager):
    """What an atomic operation costs depends on whether its address is one register for all lanes."""
    code = """extern "C" __global__ void k(int* a, int n) {
        int y;
        asm volatile("and.b32 %0, %1, 7;" : "=r"(y) : "r"(threadIdx.y));  // in front of the branch
        if (threadIdx.x < n) atomicAdd(a + y, 1);
    }"""
    source = CudaSource(code, "k")

    def counts(block: tuple[int, int], machine_code: bool):
        return simulate(source, 1, block, (zeros(8), 99), machine_code=machine_code).counts

    for block in ((8, 4), (64, 1)):
        assert counts(block, True) == counts(block, False)
    assert eager == 2 * [("k", True)]


def test_a_large_launch_is_compiled_while_it_runs(monkeypatch):
    monkeypatch.setattr(machine_blocks, "_FIRST", 0)  # as if the process had compiled some before
    ran, runs = machine_runs.MachineRuns._ran, list[bool]()

    def noted(self, *args):
        runs.append(ran(self, *args))
        return runs[-1]

    monkeypatch.setattr(machine_runs.MachineRuns, "_ran", noted)
    source = """extern "C" __global__ void k(const float* a, float* b) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        b[i] = a[i] * 2.5f;
    }"""
    for blocks, compiled in ((1 << 16, True), (1 << 8, False)):
        a = np.arange(blocks * 64, dtype=np.float32)
        b = np.zeros_like(a)
        simulate(CudaSource(source.replace("2.5f", f"{blocks}.5f"), "k"), blocks, 64, (a, b))
        assert (b == a * np.float32(blocks + 0.5)).all()
        assert any(runs) == compiled
        runs.clear()
