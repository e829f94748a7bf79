"""`cupyx` on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import scipy.spatial.distance
import scipy.special

from tests.warplab.dropin.cupy.arrays import random_array
from warplab.dropin import cupy as cp
from warplab.dropin import cupyx
from warplab.dropin.cupyx.profiler import benchmark
from warplab.dropin.cupyx.scipy import ndimage


def test_scatters():
    x = cp.zeros(4)
    cupyx.scatter_add(x, cp.asarray([1, 1, 3]), 2.0)
    assert x.tolist() == [0, 4, 0, 2]
    cupyx.scatter_max(x, cp.asarray([0, 1]), cp.asarray([5.0, 1.0]))
    cupyx.scatter_min(x, cp.asarray([3, 3]), cp.asarray([1.0, -1.0]))
    assert x.tolist() == [5, 4, 0, -1]
    np.testing.assert_allclose(cupyx.rsqrt(cp.asarray([4.0, 16.0])).get(), [0.5, 0.25])
    with cupyx.errstate(linalg="raise"), cupyx.allow_synchronize(False), pytest.raises(cp.linalg.LinAlgError):
        cp.linalg.inv(cp.zeros((2, 2)))
    assert cupyx.zeros_pinned((2, 3)).tolist() == np.zeros((2, 3)).tolist()


def test_times_are_the_simulator_s_and_say_so():
    calls = []
    result = benchmark(lambda n: calls.append(n), (3,), n_repeat=7)
    assert calls == [3] * 8
    assert len(result.cpu_times) == 7
    assert "simulator:" in str(result)
    assert "nothing about a GPU" in repr(result)
    assert "GPU-0" not in str(result)
    with pytest.warns(RuntimeWarning, match="there is no GPU here"):
        np.testing.assert_array_equal(result.gpu_times, [[np.nan] * 7])


def test_a_slow_function_is_not_called_for_ever(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("warplab.dropin.cupyx.profiler.time.perf_counter", lambda: next(clock))
    result = benchmark(lambda: None)
    assert len(result.cpu_times) == 2  # of a second each
    assert "2 of 10,000 calls" in str(result)
    with pytest.raises(ValueError, match="callable"):
        benchmark(3)
    with pytest.raises(ValueError, match="tuple"):
        benchmark(len, [3])


def test_marks_for_profilers_do_nothing():
    with cupyx.profiler.profile(), cupyx.profiler.time_range("x", color_id=0), cp.cuda.profile():
        cp.cuda.nvtx.RangePush("x")
        cp.cuda.nvtx.Mark("x")
        cp.cuda.nvtx.RangePop()


def test_scipy_s_functions():
    x = random_array((8, 9), "f8", 1)
    d = cp.asarray(x)
    np.testing.assert_array_equal(ndimage.gaussian_filter(d, 2).get(), scipy.ndimage.gaussian_filter(x, 2))
    np.testing.assert_array_equal(ndimage.zoom(d, 2, order=1).get(), scipy.ndimage.zoom(x, 2, order=1))
    np.testing.assert_array_equal(cupyx.scipy.special.erf(d).get(), scipy.special.erf(x))
    found = cupyx.scipy.spatial.distance.cdist(d, d)
    np.testing.assert_array_equal(found.get(), scipy.spatial.distance.cdist(x, x))
    assert cupyx.scipy.get_array_module(d) is cupyx.scipy
    assert cupyx.scipy.get_array_module(x).__name__ == "scipy"
    assert not cupyx.scipy.sparse.issparse(d)
    assert not isinstance(d, cupyx.scipy.sparse.spmatrix)
    with pytest.raises(AttributeError, match="CuPy has none of that name"):
        _ = ndimage.watershed_ift
