"""`@triton.jit` kernels on the simulator, on NumPy arrays. The seeds are those of NumPy's generators below."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="Triton is an extra: pip install triton")
tl = pytest.importorskip("triton.language")

from warplab import estimate, profile, simulator  # noqa: E402
from warplab.dropin import triton as simulated  # noqa: E402
from warplab.launch.errors import ArgumentError  # noqa: E402

simulated.install()
pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    """A new cache: what another checkout compiled names the lines of that one's files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    total = tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
    tl.store(out + i, total, mask=inside)


def drawn(shape, dtype="f4", seed=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 31, 127, 128, 129, 1000, 1024])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ml_dtypes.bfloat16, "i4", "i8", "u1"])
def test_arrays_of_all_types_and_sizes(n, dtype):
    x, y, out = drawn(n, dtype), drawn(n, dtype, 1), np.full(n, 3, dtype)
    add_kernel[(triton.cdiv(n, 128),)](x, y, out, n, BLOCK=128)
    np.testing.assert_array_equal(out, x + y)


@triton.jit
def scaled_kernel(x, out, factor, shift, flag, pair, nothing, n: tl.constexpr):
    i = tl.arange(0, n)
    value = tl.load(x + i) * factor + shift + pair[0] * 2 + pair[1]
    if nothing is not None:
        value += 1000
    if flag:
        value = -value
    tl.store(out + i, value)


@pytest.mark.parametrize("shift", [1, 16, 5, -3, 1 << 40])
@pytest.mark.parametrize("flag", [False, True])
def test_numbers_and_tuples_are_specialised_as_triton_does(shift, flag):
    x, out = drawn(64, "i8") >> 8, np.zeros(64, np.int64)
    scaled_kernel[(1,)](x, out, 3, shift, flag, (7, 1), None, n=64)
    np.testing.assert_array_equal(out, (x * 3 + shift + 15) * (-1 if flag else 1))


def test_floats_are_float32_and_numbers_wrap_round():
    x, out = drawn(64), np.zeros(64, np.float32)
    scaled_kernel[(1,)](x, out, 0.1, np.float32(0.25).item(), False, (1, -1), None, n=64)
    np.testing.assert_allclose(out, x * np.float32(0.1) + np.float32(1.25), rtol=1e-6)


@triton.jit
def copy_kernel(x, out, stride, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(out + i * stride, tl.load(x + i * stride))


def test_views_keep_their_place_in_the_array_that_they_are_views_of():
    whole = drawn((2, 64))
    before = whole.copy()
    copy_kernel[(1,)](whole[0, 1:], whole[1, 1:], 2, n=16)  # not aligned; both in one array
    expected = before.copy()
    expected[1, 1:33:2] = before[0, 1:33:2]
    np.testing.assert_array_equal(whole, expected)


def test_an_array_on_the_device_and_one_by_dlpack():
    from warplab.dropin import cupy as cp

    class Capsule:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x, y, out = cp.asarray(drawn(64)), drawn(64, seed=1), cp.zeros(64, np.float32)
    add_kernel[(1,)](x, Capsule(y), out, 64, BLOCK=64)
    np.testing.assert_array_equal(out.get(), x.get() + y)


def test_read_only_arrays_are_read():
    x, y, out = drawn(64), drawn(64, seed=1), np.zeros(64, np.float32)
    x.flags.writeable = False
    add_kernel[(1,)](x, y, out, 64, BLOCK=64)
    np.testing.assert_array_equal(out, x + y)


def test_an_empty_grid_launches_nothing():
    out = np.zeros(4, np.float32)
    with profile() as p:
        add_kernel[(0,)](out, out, out, 0, BLOCK=64)
    assert len(p) == 0


# -- what kernels do ---------------------------------------------------------------------------------------------------


@triton.jit
def matmul_kernel(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(left, right))


@pytest.mark.parametrize(("shape", "instruction"), [((64, 32, 32), "wgmma"), ((16, 16, 16), "mma.sync")])
def test_a_product_on_tensor_cores(shape, instruction):
    m, n, k = shape
    a, b, c = drawn((m, k), "f2"), drawn((k, n), "f2", 1), np.zeros((m, n), np.float32)
    with profile() as p:
        kernel = matmul_kernel[(1,)](a, b, c, M=m, N=n, K=k)
    np.testing.assert_allclose(c, a.astype("f4") @ b.astype("f4"), rtol=1e-3, atol=1e-3)
    assert instruction in kernel.asm["ptx"]
    assert p.counts.tensor_operations
    assert p[0].block == (128, 1, 1)


@triton.jit
def histogram_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


def test_atomic_operations():
    x, out = drawn(1000, "u1"), np.zeros(256, np.int32)
    histogram_kernel[(triton.cdiv(1000, 256),)](x, out, 1000, BLOCK=256, num_warps=2)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=256))


@triton.jit
def row_sums_kernel(x, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row, tl.sum(tl.load(x + row * columns + i, mask=i < columns, other=0), axis=0))


@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_sums_through_shared_memory(num_warps):
    x, out = drawn((5, 300)), np.zeros(5, np.float32)
    row_sums_kernel[(5,)](x, out, 300, BLOCK=512, num_warps=num_warps)
    np.testing.assert_allclose(out, x.sum(1), rtol=1e-4, atol=1e-4)


@triton.jit
def row_squares_kernel(x, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, mask=i < columns, other=0)
    tl.store(out + row, tl.sum(values * values, axis=0))


def test_sums_that_lanes_round_differently_are_no_race():
    x, out = drawn((64, 100)), np.zeros(64, np.float32)
    row_squares_kernel[(64,)](x, out, 100, BLOCK=128)
    np.testing.assert_allclose(out, (x * x).sum(1), rtol=1e-5)


def test_clusters():
    x, y, out = drawn(1000), drawn(1000, seed=1), np.zeros(1000, np.float32)
    with profile() as p:
        add_kernel[(2,)](x, y, out, 1000, BLOCK=512, num_ctas=2)
    np.testing.assert_array_equal(out, x + y)
    assert p[0].grid == (4, 1, 1)


@triton.jit
def talking_kernel(x, n: tl.constexpr):
    i = tl.arange(0, n)
    value = tl.load(x + i)
    tl.device_print("value", value)
    tl.device_assert(value < 3, "too large")


def test_print_and_assert(capfd):
    talking_kernel[(1,)](np.array([0, 1, 2, 2], np.int32), n=4, num_warps=1, debug=True)
    assert re.search(r"pid \(0, 0, 0\) idx \( *1\).*value.*1", capfd.readouterr().out)
    with pytest.raises(simulator.AssertFailed, match="too large") as caught:
        talking_kernel[(1,)](np.array([0, 1, 2, 3], np.int32), n=4, num_warps=1, debug=True)
    assert caught.value.file == "test_triton.py"


# -- what is reported --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("short", ["x", "out"])  # a load is three lines of inline assembly, a store one
def test_a_missing_mask_is_found_at_its_line_with_the_argument_and_the_element(short):
    x, out = drawn(100 if short == "x" else 128), np.zeros(100 if short == "out" else 128, np.float32)
    with pytest.raises(simulator.IllegalAddress) as caught:
        copy_kernel[(1,)](x, out, 1, n=128)
    error = caught.value
    assert (error.kernel, error.array, error.index) == ("copy_kernel", short, 100)
    assert error.source.strip() == "tl.store(out + i * stride, tl.load(x + i * stride))"


@triton.jit
def set_number(x):
    tl.store(x, 7.0)


@triton.jit
def number_up(x, seen):
    number = tl.load(x)
    tl.store(x, number + 1)
    tl.store(seen + tl.arange(0, 128), tl.zeros((128,), tl.float32) + number)


@triton.jit
def number_up_behind_a_barrier(x, seen):
    number = tl.load(x)
    tl.debug_barrier()
    tl.store(x, number + 1)
    tl.store(seen + tl.arange(0, 128), tl.zeros((128,), tl.float32) + number)


def test_a_number_updated_in_place_is_a_race_and_a_number_set_is_none():
    x, seen = np.ones(1, np.float32), np.zeros(128, np.float32)
    set_number[(2,)](x, num_warps=4)
    assert x[0] == 7
    for num_warps in (1, 4):
        with pytest.raises(simulator.DataRace, match=r"writes .* of array `x` .*, which other threads read") as caught:
            number_up[(1,)](x, seen, num_warps=num_warps)
        line = number_up.fn.__code__.co_firstlineno + 2  # of the decorator, then `def`, the load, the store
        assert f"which other threads read at line {line}," in str(caught.value)
        assert (caught.value.line, caught.value.reason) == (line + 1, "Is a tl.debug_barrier() missing between them?")
        assert not re.search(r"sync|Numba|cuda", caught.value.reason)
        x[0] = 7
        number_up_behind_a_barrier[(1,)](x, seen, num_warps=num_warps)
        assert (x[0], set(seen)) == (8, {7})


def test_profile_counts_and_estimates():
    x, y, out = drawn(4096), drawn(4096, seed=1), np.zeros(4096, np.float32)
    with profile() as p:
        kernel = add_kernel[(4,)](x, y, out, 4096, BLOCK=1024)
    assert p.kernels == ["add_kernel"]
    # Four floats side by side in each of 128 threads: 512 bytes or 16 sectors for each warp's request.
    assert p.counts.global_load_requests == 2 * 4096 // 128
    assert p.counts.global_load_sectors == 2 * 4096 // 8
    assert any(file == "test_triton.py" for file, _ in p[0].line_mix)
    assert estimate(p, "H100").seconds > 0
    assert p[0].assemble(80).cubin[:4] == b"\x7fELF"
    assert 0 < kernel.n_regs < 255
    assert kernel.n_spills == 0


# -- tuning ------------------------------------------------------------------------------------------------------------


def test_autotune_takes_the_first_configuration_that_fits():
    launched = []
    configurations = [triton.Config({"BLOCK": size}, num_warps=1) for size in (512, 256, 128)]

    @triton.autotune(configs=configurations, key=["n"])
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @triton.jit
    def tuned_kernel(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        tl.static_assert(BLOCK <= 256)
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            tl.store(out + i, tl.load(x + i))
        else:
            tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

    def grid(meta):
        launched.append(meta["BLOCK"])
        return (triton.cdiv(1000, meta["BLOCK"]),)

    x, out = drawn(1000), np.zeros(1000, np.float32)
    with profile() as p:
        tuned_kernel[grid](x, out, 1000)
    np.testing.assert_array_equal(out, x)
    assert len(p) == 1  # nothing is run to tune
    assert launched == [256]


def test_kernels_are_compiled_for_a_card():
    @triton.jit
    def squares(x, out):
        i = tl.arange(0, 32)
        at = 32 * i[:, None] + i[None, :]
        value = tl.load(x + at)
        tl.store(out + at, tl.dot(value, value))

    x, out = drawn((32, 32), "f2"), np.zeros((32, 32), np.float32)
    simulated.install(like="L4")
    try:
        shared = triton.runtime.driver.active.utils.get_device_properties(0)["max_shared_mem"]
        with profile() as p:
            kernel = squares[(1,)](x, out)
    finally:
        simulated.install()
    np.testing.assert_allclose(out, x.astype("f4") @ x.astype("f4"), atol=1e-4)
    assert (kernel.metadata.target.arch, shared) == (89, 99 << 10)
    assert estimate(p, "L4").seconds > 0


def test_autotune_takes_the_least_estimated_time_on_a_card(monkeypatch):
    blocks = (32, 1024, 2048)

    @triton.autotune(configs=[triton.Config({"BLOCK": size}, num_warps=1) for size in blocks], key=["n"])
    @triton.jit
    def add_one(x, out, n, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK <= 1024)
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(out + i, mask=i < n), mask=i < n)

    def grid(meta):
        return (triton.cdiv(1 << 19, meta["BLOCK"]),)

    x, out = drawn(1 << 19), np.zeros(1 << 19, np.float32)
    monkeypatch.setenv("WARPLAB_TUNE_FOR", "A100")
    simulated.install()
    try:
        with profile() as p:
            add_one[grid](x, out, 1 << 19)
    finally:
        monkeypatch.delenv("WARPLAB_TUNE_FOR")
        simulated.install()
    assert [launch.grid[0] for launch in p] == [1 << 14, 1 << 9, 1 << 9]  # two are tried, and the better one runs
    few = {config.kwargs["BLOCK"]: times for config, times in add_one.configs_timings.items()}
    assert few[1024][0] == estimate(p[1], "A100").seconds < few[32][0] == estimate(p[0], "A100").seconds
    assert few[2048][0] == float("inf")
    with pytest.raises(ValueError, match="H1000"):
        simulated.install(tune_for="H1000")


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_times_are_refused():
    with pytest.raises(RuntimeError, match="the simulator's own speed says nothing"):
        triton.testing.do_bench(lambda: None)


def test_what_has_no_memory_is_refused():
    class OnGpu:
        device = type("device", (), {"type": "cuda"})
        dtype = "float32"

        def data_ptr(self):
            return 64

    class NoMemory(OnGpu):
        device = type("device", (), {"type": "cpu"})

    for value, reason in ((OnGpu(), "without a GPU make it on the CPU"), (NoMemory(), "what memory it is in")):
        with pytest.raises(ArgumentError, match=reason):
            add_kernel[(1,)](value, np.zeros(64, "f4"), np.zeros(64, "f4"), 64, BLOCK=64)
    with pytest.raises(TypeError):
        add_kernel[(1,)]("x", np.zeros(64, "f4"), np.zeros(64, "f4"), 64, BLOCK=64)


def test_a_kernel_called_from_its_compiled_form_takes_all_its_arguments():
    x, out = drawn(64), np.zeros(64, np.float32)
    kernel = add_kernel.warmup(x, x, out, 64, BLOCK=64, grid=(1,))
    kernel[(1, 1, 1)](x, x, out, 64, 64)
    np.testing.assert_array_equal(out, x + x)
    with pytest.raises(ArgumentError, match="takes 5 arguments, 3 were given"):
        kernel[(1, 1, 1)](x, x, out)
