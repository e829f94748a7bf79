"""What a kernel of numba.cuda can call, through the stand-in, against NumPy."""

import math
from fractions import Fraction

import numba
import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import numba_cuda as cuda

FULL = 0xFFFFFFFF
LANES = np.arange(32)


# -- where a thread is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("grid", "block"), [(3, 40), ((2, 3), (8, 4)), ((2, 3, 2), (4, 3, 2))])
def test_every_thread_knows_its_place(grid, block):
    place = _places[grid, block]
    (gx, gy, gz), (bx, by, bz) = ((*np.atleast_1d(shape), 1, 1)[:3] for shape in (grid, block))
    z, y, x = np.indices((gz * bz, gy * by, gx * bx)).reshape(3, -1)
    thread = (x % bx) + bx * ((y % by) + by * (z % bz))
    block_number = (x // bx) + gx * ((y // by) + gy * (z // bz))
    expected = [
        *(x, y, z),
        *(x % bx, y % by, z % bz),
        *(x // bx, y // by, z // bz),
        *(x, x, y),
        *(gx * bx, gx * bx, gy * by, gx * bx, gy * by, gz * bz),
        *(thread % 32, 32, bx * by * bz, gx * gy * gz, block_number),
    ]
    assert place.shape[1] == len(expected)
    for column, values in enumerate(expected):
        np.testing.assert_array_equal(place[:, column], values, err_msg=f"column {column}")


@cuda.jit
def tell_place(out):
    x, y, z = cuda.grid(3)
    gx, gy, gz = cuda.gridsize(3)
    row = out[x + gx * (y + gy * z)]
    row[0], row[1], row[2] = x, y, z
    row[3], row[4], row[5] = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    row[6], row[7], row[8] = cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockIdx.z
    row[9] = cuda.grid(1)
    row[10], row[11] = cuda.grid(2)
    row[12] = cuda.gridsize(1)
    row[13], row[14] = cuda.gridsize(2)
    row[15], row[16], row[17] = gx, gy, gz
    row[18] = cuda.laneid
    row[19] = cuda.warpsize
    row[20] = cuda.blockDim.x * cuda.blockDim.y * cuda.blockDim.z
    row[21] = cuda.gridDim.x * cuda.gridDim.y * cuda.gridDim.z
    row[22] = cuda.blockIdx.x + cuda.gridDim.x * (cuda.blockIdx.y + cuda.gridDim.y * cuda.blockIdx.z)


class _Places(dict):
    """Launches, made when a test asks for them."""

    def __missing__(self, key):
        out = np.full((math.prod(np.append(*map(np.atleast_1d, key))), 23), -1)
        tell_place[key](out)
        return out


_places = _Places()


# -- memory of a block, of a thread, constant memory -------------------------------------------------------------

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4) / 8


def test_shared_local_and_constant_arrays():
    @cuda.jit
    def use(out):
        fixed = cuda.shared.array((4, 8), numba.int16)
        sized = cuda.shared.array(0, numba.float64)  # bytes are given at the launch
        other = cuda.shared.array(0, numba.float32)[64:]  # the same bytes, from 256 on
        own = cuda.local.array((2, 3), numba.int32)
        constant = cuda.const.array_like(TABLE)
        i = cuda.threadIdx.x
        fixed[i // 8, i % 8] = 3 * i
        sized[i] = i / 2
        other[i] = -i
        for k in range(6):
            own[k // 3, k % 3] = i * k
        cuda.syncthreads()
        j = 31 - i
        out[i] = fixed[j // 8, j % 8] + sized[j] + other[j] + own[i % 2, i % 3] + constant[i % 3, i % 4]

    out = np.zeros(32)
    use[1, 32, 0, 256 + 128](out)
    j = 31 - LANES
    own = LANES * (3 * (LANES % 2) + LANES % 3)
    np.testing.assert_array_equal(out, 3 * j + j / 2 - j + own + TABLE[LANES % 3, LANES % 4])


def test_more_shared_memory_than_numba_can_launch_with():
    @cuda.jit
    def use(out):
        fixed, sized = cuda.shared.array(16, numba.int8), cuda.shared.array(0, numba.int8)
        fixed[out.size] = sized[3] = 8
        out[0] = fixed[out.size] + sized[3]

    out = np.zeros(1)
    use[1, 1, 0, 48 * 1024 - 16](out)
    assert out[0] == 16
    with pytest.raises(simulator.InvalidLaunch, match="49,153 bytes of shared memory per block"):
        use[1, 1, 0, 48 * 1024 - 15](out)


# -- a block and a warp together ---------------------------------------------------------------------------------


def test_barriers_that_count():
    @cuda.jit
    def count(out, limit):
        i = cuda.threadIdx.x
        out[i, 0] = cuda.syncthreads_count(numba.int32(i % 3 == 0))
        out[i, 1] = cuda.syncthreads_and(numba.int32(i < limit))
        out[i, 2] = cuda.syncthreads_or(numba.int32(i >= limit))

    for limit in (1, 96):
        out = np.zeros((96, 3), np.int32)
        count[1, 96](out, limit)
        np.testing.assert_array_equal(out[:, 0], 32)
        np.testing.assert_array_equal(out[:, 1] != 0, limit == 96)
        np.testing.assert_array_equal(out[:, 2] != 0, limit != 96)


def test_lanes_exchange_values():
    @cuda.jit
    def exchange(a, b, out):
        i = cuda.threadIdx.x
        out[i, 0] = cuda.shfl_sync(FULL, a[i], (5 * i) % 32)
        out[i, 1] = cuda.shfl_up_sync(FULL, a[i], 3)
        out[i, 2] = cuda.shfl_down_sync(FULL, a[i], 3)
        out[i, 3] = cuda.shfl_xor_sync(FULL, a[i], 7)
        out[i, 4] = cuda.shfl_xor_sync(FULL, b[i], 16)

    a, b = np.random.default_rng(1).integers(-(2**62), 2**62, 32), np.random.default_rng(2).random(32)
    out = np.zeros((32, 5))
    results = {}
    for values in (a >> 32, b.astype(np.float32), b):
        exchange[1, 32](values, b, out)
        results[values.dtype] = out.copy()
        np.testing.assert_array_equal(out[:, 0], values[5 * LANES % 32])
        np.testing.assert_array_equal(out[:, 1], values[np.where(LANES < 3, LANES, LANES - 3)])
        np.testing.assert_array_equal(out[:, 2], values[np.where(LANES > 28, LANES, LANES + 3) % 32])
        np.testing.assert_array_equal(out[:, 3], values[LANES ^ 7])
        np.testing.assert_array_equal(out[:, 4], b[LANES ^ 16])
    assert len(results) == 3


def test_lanes_vote():
    @cuda.jit
    def vote(a, out):
        i = cuda.threadIdx.x
        out[i, 0] = cuda.ballot_sync(FULL, a[i] > 2)
        out[i, 1] = cuda.any_sync(FULL, a[i] == 3)
        out[i, 2] = cuda.all_sync(FULL, a[i] >= 0)
        out[i, 3] = cuda.eq_sync(FULL, a[i] < 100)
        out[i, 4] = cuda.match_any_sync(FULL, a[i])
        mask, same = cuda.match_all_sync(FULL, a[i])
        out[i, 5] = mask & FULL
        out[i, 6] = same
        out[i, 7] = cuda.lanemask_lt()
        if i % 5 == 0:
            out[i, 8] = cuda.activemask()
        cuda.syncwarp()
        if i < 8:
            cuda.syncwarp(0xFF)
            out[i, 9] = 1

    a = LANES * 7 % 4
    out = np.zeros((32, 10), np.int64)
    vote[1, 32](a.astype(np.int32), out)

    def bits(lanes):
        return int(sum(1 << int(k) for k in np.flatnonzero(lanes)))

    expected = np.zeros((32, 10), np.int64)
    expected[:, :4] = bits(a > 2), True, True, True
    expected[:, 4] = [bits(a == v) for v in a]
    expected[:, 7] = [bits(k > LANES) for k in LANES]
    expected[::5, 8] = bits(LANES % 5 == 0)
    expected[:8, 9] = 1
    np.testing.assert_array_equal(out & FULL, expected)
    vote[1, 32](np.full(32, 9, np.int32), out)
    np.testing.assert_array_equal(out[:, [1, 3, 5, 6]], [[0, 1, FULL, 1]] * 32)


# -- arithmetic ----------------------------------------------------------------------------------------------------


def _bits_of(values, function):
    width = values.itemsize * 8
    return [function(f"{int(v):0{width}b}", width) for v in values]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_bits(dtype):
    out = np.zeros((64, 4), np.uint64)
    values = [0, 1, 2, 3, np.iinfo(dtype).max, *(1 << k for k in range(32)), *(k * 0x9E3779B1 for k in range(27))]
    values = np.array([value % (int(np.iinfo(dtype).max) + 1) for value in values], dtype)
    look_at_bits[2, 32](values, out)
    np.testing.assert_array_equal(out[:, 0], _bits_of(values, lambda b, w: b.count("1")))
    np.testing.assert_array_equal(out[:, 1], _bits_of(values, lambda b, w: (b + "1").index("1")))
    np.testing.assert_array_equal(out[:, 2], _bits_of(values, lambda b, w: b[::-1].find("1") + 1))
    np.testing.assert_array_equal(out[:, 3], _bits_of(values, lambda b, w: int(b[::-1], 2)))


@cuda.jit
def look_at_bits(values, out):
    i = cuda.grid(1)
    out[i, 0] = cuda.popc(values[i])
    out[i, 1] = cuda.clz(values[i])
    out[i, 2] = cuda.ffs(values[i])
    out[i, 3] = cuda.brev(values[i])


def test_fma_cbrt_selp_and_libdevice():
    @cuda.jit
    def compute(a, b, out, single):
        i = cuda.grid(1)
        out[i, 0] = cuda.fma(a[i], b[i], -1.0)
        out[i, 1] = cuda.cbrt(a[i])
        out[i, 2] = cuda.selp(a[i] < b[i], a[i], b[i])
        out[i, 3] = cuda.libdevice.rsqrt(a[i])
        single[i, 0] = cuda.fma(numba.float32(a[i]), numba.float32(b[i]), numba.float32(-1.0))
        single[i, 1] = cuda.libdevice.fast_sinf(numba.float32(a[i]))

    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.5, 2, (2, 64))
    b[:32] = 1 / a[:32]  # only a fused product keeps what is left
    out, single = np.zeros((64, 4)), np.zeros((64, 2), np.float32)
    compute[2, 32](a, b, out, single)
    exact = np.array([float(Fraction(x) * Fraction(y) - 1) for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    np.testing.assert_array_equal(out[:, 0], exact)
    assert (exact[:32] != a[:32] * b[:32] - 1).any()
    np.testing.assert_allclose(out[:, 1], np.cbrt(a), rtol=4e-16)
    np.testing.assert_array_equal(out[:, 2], np.minimum(a, b))
    np.testing.assert_allclose(out[:, 3], 1 / np.sqrt(a), rtol=4e-16)
    singles = a.astype(np.float32).astype(np.float64) * b.astype(np.float32) - 1
    np.testing.assert_array_equal(single[:, 0], singles.astype(np.float32))
    np.testing.assert_allclose(single[:, 1], np.sin(a), atol=2e-6)


def test_half_precision():
    @cuda.jit
    def compute(a, out):
        i = cuda.grid(1)
        x = a[i]
        out[i, 0] = x * x + x
        out[i, 1] = x / a[0] - a[1]
        out[i, 2] = math.sin(x)
        out[i, 3] = cuda.fp16.hfma(x, x, a[1])
        out[i, 4] = abs(-x) if x > a[1] else -x
        out[i, 5] = math.sqrt(x)
        out[i, 6] = cuda.float32(cuda.bfloat16(numba.float32(x)))

    a = np.linspace(0.3, 9, 32).astype(np.float16)
    out = np.zeros((32, 7), np.float16)
    compute[1, 32](a, out)
    np.testing.assert_array_equal(out[:, 0], a * a + a)
    np.testing.assert_array_equal(out[:, 1], a / a[0] - a[1])
    np.testing.assert_allclose(out[:, 2], np.sin(a.astype(np.float64)), atol=1e-3)
    np.testing.assert_array_equal(out[:, 3], (a.astype(np.float64) ** 2 + a[1]).astype(np.float16))
    np.testing.assert_array_equal(out[:, 4], np.where(a > a[1], a, -a))
    np.testing.assert_array_equal(out[:, 5], np.sqrt(a))
    np.testing.assert_allclose(out[:, 6], a.astype(np.float64), rtol=2**-8)


# -- memory --------------------------------------------------------------------------------------------------------


def test_cache_hints_fences_and_vectors():
    @cuda.jit
    def copy(a, b, out):
        i = cuda.grid(1)
        loaded = cuda.ldca(a, i) + cuda.ldcg(a, i) + cuda.ldcs(a, i) + cuda.ldlu(a, i) + cuda.ldcv(a, i)
        cuda.stcg(b, i, loaded)
        cuda.threadfence_block()
        cuda.threadfence()
        cuda.threadfence_system()
        cuda.nanosleep(20)
        v = cuda.float32x4(a[i], 1, 2, 3)
        w = cuda.int2(i, 7)
        cuda.stwt(out, i, v.x + v.w + w.x + w.y)

    a = np.arange(64, dtype=np.float32)
    b, out = np.zeros((2, 64), np.float32)
    copy[2, 32](a, b, out)
    np.testing.assert_array_equal(b, 5 * a)
    np.testing.assert_array_equal(out, 2 * a + 10)


INTEGERS = (np.int32, np.uint32, np.int64, np.uint64)


ATOMICS = {
    "add": ((*INTEGERS, np.float32, np.float64), lambda a, v: a + v),
    "sub": ((np.int32, np.uint32, np.float32, np.float64), lambda a, v: a - v),
    "and_": (INTEGERS, lambda a, v: a & v),
    "or_": (INTEGERS, lambda a, v: a | v),
    "xor": (INTEGERS, lambda a, v: a ^ v),
    "inc": ((np.uint32, np.uint64), lambda a, v: type(a)(0) if a >= v else a + type(a)(1)),
    "dec": ((np.uint32, np.uint64), lambda a, v: v if a == 0 or a > v else a - type(a)(1)),
    "exch": (INTEGERS, lambda a, v: v),
    "max": ((*INTEGERS, np.float32, np.float64), max),
    "min": ((*INTEGERS, np.float32, np.float64), min),
    "nanmax": ((np.float32, np.float64), np.fmax),
    "nanmin": ((np.float32, np.float64), np.fmin),
}


def _apply_atomics(names, dtype):
    """A kernel that applies each operation to an element of global and one of shared memory, and keeps what it got."""
    code = f"""
def apply(data, values, old):
    shared = cuda.shared.array(({len(names)}, 2), element)
    i = cuda.threadIdx.x
    if i < {len(names)}:
        shared[i, 1] = data[i, 0]
    cuda.syncthreads()
"""
    for row, name in enumerate(names):
        column = "values[i, 1]" if name.startswith("nan") else "values[i, 0]"
        code += f"    old[{row}, i] = cuda.atomic.{name}(data, ({row}, 1), {column})\n"
        code += f"    cuda.atomic.{name}(shared, ({row}, 1), {column})\n"
    code += f"    cuda.syncthreads()\n    if i < {len(names)}:\n        data[i, 0] = shared[i, 1]\n"
    scope = {"cuda": cuda, "element": numba.from_dtype(np.dtype(dtype))}
    exec(code, scope)
    return cuda.jit(scope["apply"])


@pytest.mark.parametrize("dtype", [*INTEGERS, np.float32, np.float64])
def test_atomics(dtype):
    names = [name for name, (dtypes, _) in ATOMICS.items() if dtype in dtypes]
    values = np.array([5, 3, 12, 3, 8, 1, 9, 12, 7, 2] * 4, dtype)
    values = np.stack([values, values], axis=1)
    if dtype in (np.float32, np.float64):
        values[::3, 1] = np.nan
    data, old = np.full((len(names), 2), 20, dtype), np.zeros((len(names), 40), dtype)
    _apply_atomics(names, dtype)[1, 40](data, values, old)
    assert len(names) >= 5
    for row, name in enumerate(names):
        seen, state = [], dtype(20)
        with np.errstate(over="ignore"):
            for value in values[:, int(name.startswith("nan"))]:
                seen.append(state)
                state = ATOMICS[name][1](state, value)
        np.testing.assert_array_equal(data[row], [state, state], err_msg=name)
        if dtype in INTEGERS or name in ("add", "sub"):  # of floats Numba returns what was there when it began to try
            np.testing.assert_array_equal(old[row], seen, err_msg=name)


@pytest.mark.parametrize("barrier_for", [32, 8])
def test_a_warp_meets_again_behind_loops_around_atomic_cas(barrier_for):
    @cuda.jit
    def extremes(values, out, limit):
        i = cuda.threadIdx.x
        cuda.atomic.nanmax(out, 0, values[i])
        cuda.atomic.nanmin(out, 1, values[i])  # the last thread to win tries once more, in vain
        if i < limit:
            cuda.syncthreads()

    out = np.array([-1.0, 2.0])
    values = np.random.default_rng(5).random(32)
    if barrier_for == 32:
        extremes[1, 32](values, out, 32)
        assert out.tolist() == [values.max(), values.min()]
    else:
        with pytest.raises(simulator.DivergentBarrier, match="only 8 of the 32"):
            extremes[1, 32](values, out, 8)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_compare_and_swap(dtype):
    @cuda.jit
    def swap(data, old):
        i = cuda.grid(1)
        old[i, 0] = cuda.atomic.compare_and_swap(data[2:], 5, i + 10)
        old[i, 1] = cuda.atomic.cas(data, 3, 9, i + 20)

    data, old = np.array([1, 2, 5, 7], dtype), np.zeros((4, 2), dtype)
    swap[1, 4](data, old)
    assert data.tolist() == [1, 2, 10, 7]
    assert old.tolist() == [[5, 7], [10, 7], [10, 7], [10, 7]]


# -- the host ----------------------------------------------------------------------------------------------------


def test_print_reaches_the_host(capfd):
    @cuda.jit
    def tell(x):
        i = cuda.grid(1)
        if i < 2:
            print("element", i, "is", x[i])

    tell[1, 32](np.array([1.5, 2.5]))
    assert capfd.readouterr().out == "element 0 is 1.500000\nelement 1 is 2.500000\n"


@cuda.jit
def mirror(x, y):
    i = cuda.grid(1)
    x[i] = i * i
    cuda.cg.this_grid().sync()
    y[i] = x[x.size - 1 - i]  # what a thread of another block wrote


def test_a_barrier_of_the_grid():
    x, y = np.zeros(4 * 96), np.zeros(4 * 96)
    mirror[4, 96](x, y)
    assert y.tolist() == (np.arange(4 * 96)[::-1] ** 2).tolist()


def test_a_barrier_of_a_grid_that_no_gpu_holds_at_a_time_is_refused():
    with pytest.raises(simulator.InvalidLaunch, match=r"300 blocks of 1,024 threads(.|\n)*fewer blocks"):
        mirror[300, 1024](np.zeros(1), np.zeros(1))
