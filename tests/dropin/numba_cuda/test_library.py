"""What numba.cuda builds kernels for: reductions, random numbers, functions of arrays."""

import functools

import numba
import numpy as np
import pytest

from warplab.dropin import choice
from warplab.dropin import numba_cuda as cuda
from warplab.hardware import backend
from warplab.report.profile import profile

# -- reductions --------------------------------------------------------------------------------------------------

SIZES = (1, 2, 31, 32, 33, 127, 128, 129, 255, 1000, 8192, 8193, 10007)


@cuda.reduce
def add(a, b):
    return a + b


@cuda.Reduce
def larger(a, b):
    return a if a > b else b


@pytest.mark.parametrize("size", SIZES)
def test_reductions(size):
    values = np.random.default_rng(size).permutation(size).astype(np.int64) - size // 2
    device = cuda.to_device(values)
    assert add(values) == add(device) == values.sum()
    assert add(device, init=7) == values.sum() + 7
    assert larger(device, init=-(10**6)) == values.max()
    assert larger(device, init=10**6) == 10**6
    np.testing.assert_array_equal(device.copy_to_host(), values)


def test_a_reduction_of_the_first_elements_into_an_array():
    values = cuda.to_device(np.arange(1000, dtype=np.int64))
    result = cuda.device_array(2, np.int64)
    assert add(values, size=300, res=result, init=1, stream=cuda.stream()) is None
    assert result[0] == 300 * 299 // 2 + 1
    assert add(values[:0], init=5) == 5
    with pytest.raises(TypeError, match="1D"):
        add(np.ones((2, 2)))


def test_sums_of_floats_are_taken_in_the_order_of_the_gpu():
    values = np.random.default_rng(1).random(5000, np.float32)
    # Block k of 39 takes chunks k, k + 39, ...; here one each. In a warp of 32, lane i takes lane i + 16, i + 8, ...
    whole, rest = values[: 39 * 128].reshape(39, 4, 32), values[39 * 128 :]
    lanes = whole.copy()
    for width in (16, 8, 4, 2, 1):
        lanes = lanes[..., :width] + lanes[..., width : 2 * width]
    warps = lanes[..., 0]
    partials = (warps[:, 0] + warps[:, 2]) + (warps[:, 1] + warps[:, 3])
    partials[0] += np.float32(0.25)

    def one_after_another(numbers):
        return functools.reduce(np.add, numbers)

    assert rest.size == 8
    partials = np.append(partials, one_after_another(rest))
    first = partials[:32]
    for width in (16, 8, 4, 2, 1):
        first = first[:width] + first[width : 2 * width]
    assert cuda.reduce(lambda a, b: a + b)(values, init=0.25) == first[0] + one_after_another(partials[32:])


def test_a_profile_shows_the_launches_of_a_reduction():
    with profile() as p:
        add(np.ones(1000, np.int64))
    assert p.kernels == ["gpu_reduce_block_strided"]
    assert [launch.grid[0] for launch in p] == [7, 1, 1]


# -- random numbers --------------------------------------------------------------------------------------------------


@cuda.jit
def draw(states, out):
    i = cuda.grid(1)
    if i < states.size:
        out[i, 0] = cuda.random.xoroshiro128p_uniform_float32(states, i)
        out[i, 1] = cuda.random.xoroshiro128p_uniform_float64(states, i)
        out[i, 2] = cuda.random.xoroshiro128p_normal_float32(states, i)
        out[i, 3] = cuda.random.xoroshiro128p_normal_float64(states, i)


def _xoroshiro128p(state):
    """The next number and the next state of the published generator."""
    low, high = state
    mask = 2**64 - 1
    result, high = (low + high) & mask, low ^ high

    def rotated(x, k):
        return (x << k | x >> (64 - k)) & mask

    return result, (rotated(low, 55) ^ high ^ (high << 14) & mask, rotated(high, 36))


def test_random_numbers():
    states = cuda.random.create_xoroshiro128p_states(2000, seed=7)
    first = states.copy_to_host()
    assert len(set(first["s0"].tolist())) == 2000
    out = np.zeros((2000, 4))
    draw[16, 128](states, out)
    np.testing.assert_allclose(out[:, :2].mean(0), 0.5, atol=0.03)
    np.testing.assert_allclose(out[:, 2:].mean(0), 0, atol=0.1)
    np.testing.assert_allclose(out[:, 2:].std(0), 1, atol=0.06)
    for thread in (0, 1, 1999):
        a, state = _xoroshiro128p((int(first[thread]["s0"]), int(first[thread]["s1"])))
        b, state = _xoroshiro128p(state)
        assert out[thread, 0] == np.float32((a >> 11) / 2**53)
        assert out[thread, 1] == (b >> 11) / 2**53
    again = np.zeros((2000, 4))
    draw[16, 128](cuda.random.create_xoroshiro128p_states(2000, seed=7), again)
    np.testing.assert_array_equal(again, out)
    later = cuda.random.create_xoroshiro128p_states(5, seed=7, subsequence_start=3).copy_to_host()
    np.testing.assert_array_equal(later[:2], first[3:5])


# -- functions of arrays -----------------------------------------------------------------------------------------------


@cuda.vectorize(["float32(float32, float32)", "float64(float64, float64)", "int32(int32, int32)"])
def weighted(a, b):
    return a + 2 * b


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_vectorize(dtype):
    a = np.arange(60).astype(dtype).reshape(3, 20)
    b = a[::-1].copy()
    np.testing.assert_array_equal(weighted(a, b), a + 2 * b)
    np.testing.assert_array_equal(weighted(a, a[:1]), a + 2 * a[:1])
    np.testing.assert_array_equal(weighted(a.T, b.T), (a + 2 * b).T)
    np.testing.assert_array_equal(weighted(a, dtype(3)), a + 6)
    result = weighted(cuda.to_device(a), cuda.to_device(b[:, :1].copy()))
    assert isinstance(result, cuda.devicearray.DeviceNDArray)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.copy_to_host(), a + 2 * b[:, :1])
    out = cuda.device_array((3, 20), dtype)
    weighted(a, b, out=out)
    np.testing.assert_array_equal(out.copy_to_host(), a + 2 * b)


def test_vectorize_refuses_what_numba_gets_wrong():
    with pytest.raises(TypeError, match="No matching version"):
        weighted(np.ones(3, np.int64), np.ones(3, np.int64))
    with pytest.raises(ValueError, match="missing axes"):
        weighted(np.ones((3, 20)), np.ones(20))
    with pytest.raises(TypeError, match="needs the types"):
        cuda.vectorize(lambda a: a)
    with pytest.raises(ValueError, match="Unsupported target: cpu"):
        cuda.vectorize(["int32(int32)"], target="cpu")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100, 129])
def test_a_vectorized_function_reduces(size):
    values = np.arange(1, size + 1, dtype=np.int32)
    assert total.reduce(values) == total.reduce(cuda.to_device(values)) == values.sum()


@cuda.vectorize("int32(int32, int32)")
def total(a, b):
    return a + b


@cuda.guvectorize(["void(float32[:,:], float32[:,:], float32[:,:])"], "(m,n),(n,p)->(m,p)")
def product(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


@cuda.guvectorize(["(float64[:], float64, float64[:])"], "(n),()->(n)")
def scaled(a, factor, out):
    for i in range(a.shape[0]):
        out[i] = a[i] * factor


def test_guvectorize():
    rng = np.random.default_rng(4)
    a, b = rng.random((5, 3, 4), np.float32), rng.random((5, 4, 2), np.float32)
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-6)
    np.testing.assert_allclose(product(a, b[0]), a @ b[0], rtol=1e-6)
    result = product(cuda.to_device(a), cuda.to_device(b))
    np.testing.assert_allclose(result.copy_to_host(), a @ b, rtol=1e-6)
    rows = rng.random((6, 3))
    np.testing.assert_array_equal(scaled(rows, 2.0), rows * 2)
    np.testing.assert_array_equal(scaled(rows, np.arange(6.0)), rows * np.arange(6)[:, None])
    with pytest.raises(TypeError, match="types and layout"):
        cuda.guvectorize("(n)->(n)")


# -- compiling, and Numba's own names ----------------------------------------------------------------------------------


def test_ptx_of_device_functions():
    def half(x):
        return x / 2

    ptx, result = cuda.compile_ptx(half, (numba.float32,), device=True)
    assert str(result) == "float64"
    assert ".target sm_90" in ptx
    assert ".target sm_80" in cuda.compile_ptx(half, (numba.float32,), device=True, cc=(8, 0))[0]
    for compile in (cuda.compile, cuda.compile_for_current_device):
        assert ".target sm_90" in compile(half, (numba.float32,))[0]
    assert ".target sm_90" in cuda.compile_ptx_for_current_device(half, (numba.float32,), device=True)[0]


def test_numba_s_own_imports_reach_the_simulator(monkeypatch):
    import numba.cuda.random as numba_random
    from numba.np.ufunc import decorators

    registries = [decorators.Vectorize.target_registry, decorators.GUVectorize.target_registry]
    for registry in registries:
        monkeypatch.setattr(registry, "ondemand", dict(registry.ondemand))
    monkeypatch.setattr(numba_random, "create_xoroshiro128p_states", None)
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    monkeypatch.setattr(backend, "announce", lambda: None)
    assert choice.load("cuda") is cuda
    cuda.install()  # once more changes nothing

    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def draw_one(states, out):
        out[cuda.grid(1)] = xoroshiro128p_uniform_float32(states, cuda.grid(1))

    @numba.vectorize(["float32(float32)"], target="cuda")
    def double(x):
        return 2 * x

    for registry in registries:
        registry.pop("cuda")
    out = cuda.device_array(32, np.float32)
    draw_one[1, 32](create_xoroshiro128p_states(32, seed=1), out)
    np.testing.assert_array_equal(double(out).copy_to_host(), 2 * out.copy_to_host())
