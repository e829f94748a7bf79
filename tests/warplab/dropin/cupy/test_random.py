"""`cupy.random` on the simulator."""

import numpy as np
import pytest

from warplab.dropin import cupy as cp


def test_random_numbers():
    cp.random.seed(3)
    first = cp.random.rand(1000, dtype=cp.float32)
    cp.random.seed(3)
    assert bool((cp.random.rand(1000, dtype=cp.float32) == first).all())
    assert first.dtype == np.float32
    assert 0 <= float(first.min()) < 0.1 < 0.9 < float(first.max()) < 1
    assert cp.random.randn(2, 3).dtype == np.float64
    assert cp.random.randint(0, 5, (10,), dtype=cp.int32).dtype == np.int32
    assert cp.random.default_rng(1).standard_normal((2, 2), dtype=np.float32).dtype == np.float32
    assert abs(float(cp.random.normal(5, 0.1, 1000).mean()) - 5) < 0.05
    assert sorted(cp.random.permutation(5).tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="float32 and float64"):
        cp.random.rand(3, dtype=cp.int32)
