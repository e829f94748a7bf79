"""`cupy.testing` on the simulator."""

import numpy as np
import pytest

from warplab.dropin import cupy as cp


@pytest.fixture
def a():
    return cp.asarray(np.arange(6, dtype=np.float32))


def test_testing_compares_host_and_device(a):
    cp.testing.assert_allclose(a, a.get())
    cp.testing.assert_array_equal(a, cp.arange(6))
    with pytest.raises(AssertionError):
        cp.testing.assert_allclose(a, a + 1)
