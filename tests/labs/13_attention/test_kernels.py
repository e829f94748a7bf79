"""Lab 13's kernels on the active backend: right results, nothing written outside, bad input refused."""

import numpy as np
import pytest

from kernels.attention import KERNELS, scale
from tests.support.random_inputs import generator
from warplab import cp

SIZES = (0, 1, 31, 32, 33, 255, 256, 257, 1000)
GUARD = 32  # elements before and after the output


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", SIZES)
def test_the_result_is_numpys(name, n):
    x = generator().standard_normal(n, dtype=np.float32)
    whole = cp.asarray(np.full(n + 2 * GUARD, np.nan, np.float32))
    scale(cp.asarray(x), 3, whole[GUARD : GUARD + n], name)
    found = cp.asnumpy(whole)
    np.testing.assert_array_equal(found[GUARD : GUARD + n], np.float32(3) * x)
    assert np.isnan(found[:GUARD]).all()
    assert np.isnan(found[GUARD + n :]).all()


def test_what_does_not_fit_is_refused():
    x = cp.zeros(4, np.float32)
    with pytest.raises(ValueError, match="there is no kernel 'scale'; choose one of numba_scale, cuda_scale"):
        scale(x, 2, x, "scale")
    with pytest.raises(ValueError, match=r"out has shape \(3,\); it must be \(4,\)"):
        scale(x, 2, cp.zeros(3, np.float32))
    with pytest.raises(TypeError, match="x is a ndarray in host memory"):
        scale(np.zeros(4, np.float32), 2, x)
