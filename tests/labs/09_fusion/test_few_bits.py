"""Dense layers of one vector with weights of 16, 8 and 4 bits, on the active backend."""

import numpy as np
import pytest

from kernels.fusion.measured import few_bits
from tests.support.random_inputs import generator
from warplab import cp

BITS = 16, 8, 4
GUARD = 8


@pytest.mark.parametrize(("rows", "columns"), [(1, 64), (37, 2048), (65, 1088)])
@pytest.mark.parametrize("bits", BITS)
def test_products_of_weights_of_few_bits(bits, rows, columns):
    rng = generator()
    x = rng.standard_normal(columns).astype(np.float16)
    words, scales, values = few_bits.packed(rng.standard_normal((rows, columns)).astype(np.float32), bits)
    y = cp.asarray(np.full(rows + 2 * GUARD, np.nan, np.float32))
    inner = y[GUARD : GUARD + rows]
    few_bits.product(bits, cp.asarray(words.view(np.uint32)), cp.asarray(scales), cp.asarray(x), inner)
    found, expected = cp.asnumpy(inner), values.astype(np.float64) @ x.astype(np.float64)
    # A lane adds columns / 32 products, the warp five times more: fewer roundings than 4 times the root.
    bound = 4 * columns**0.5 * 2.0**-24 * (np.abs(values).astype(np.float64) @ np.abs(x).astype(np.float64))
    assert (np.abs(found - expected) <= bound).all()
    assert np.isnan(cp.asnumpy(y)[:GUARD]).all()
    assert np.isnan(cp.asnumpy(y)[-GUARD:]).all()


@pytest.mark.parametrize(("bits", "steps"), [(16, 2.0**-11), (8, 2.0**-4), (4, 1 / 14)])
def test_what_weights_stand_for_is_near_them(bits, steps):
    """Half a step of each format: of the number itself in FP16 and FP8, of the largest of a group in INT4."""
    weights = generator().uniform(0.5, 1, (8, 128)).astype(np.float32)
    words, scales, values = few_bits.packed(weights, bits)
    assert np.abs(values - weights).max() <= steps * 1.01
    assert words.nbytes == weights.size * bits // 8
    assert len(scales) == {16: 1, 8: 8, 4: 16}[bits]


def test_a_group_of_zeros_stays_zero():
    for bits in BITS:
        assert not few_bits.packed(np.zeros((2, 128), np.float32), bits)[2].any()
