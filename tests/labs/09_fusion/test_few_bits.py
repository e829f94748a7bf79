"""Dense layers of one vector with weights of 16, 8 and 4 bits, on the active backend."""

import numpy as np
import pytest

from kernels.fusion.measured import few_bits
from tests.support.random_inputs import generator
from warplab import cp

FORMATS = few_bits.FORMATS.values()
GUARD = 8


@pytest.mark.parametrize(("rows", "columns"), [(1, 64), (37, 2048), (65, 1088)])
@pytest.mark.parametrize(("bits", "group"), FORMATS)
def test_products_of_weights_of_few_bits(bits, group, rows, columns):
    rng = generator()
    x = rng.standard_normal(columns).astype(np.float16)
    words, scales, values = few_bits.packed(rng.standard_normal((rows, columns)).astype(np.float32), bits, group)
    y = cp.asarray(np.full(rows + 2 * GUARD, np.nan, np.float32))
    inner = y[GUARD : GUARD + rows]
    few_bits.product(bits, group, cp.asarray(words.view(np.uint32)), cp.asarray(scales), cp.asarray(x), inner)
    found, expected = cp.asnumpy(inner), values.astype(np.float64) @ x.astype(np.float64)
    # A lane adds columns / 32 products, the warp five times more: fewer roundings than 4 times the root.
    bound = 4 * columns**0.5 * 2.0**-24 * (np.abs(values).astype(np.float64) @ np.abs(x).astype(np.float64))
    assert (np.abs(found - expected) <= bound).all()
    assert np.isnan(cp.asnumpy(y)[:GUARD]).all()
    assert np.isnan(cp.asnumpy(y)[-GUARD:]).all()


@pytest.mark.parametrize(
    ("bits", "group", "scales_of_all", "steps"),
    [(16, 0, 1, 2.0**-11), (8, 0, 8, 2.0**-4), (8, 64, 16, 2.0**-4), (4, 64, 16, 1 / 14)],
)
def test_what_weights_stand_for_is_near_them(bits, group, scales_of_all, steps):
    """Half a step of each format: of the number itself in FP16 and FP8, of the largest of a group in INT4."""
    weights = generator().uniform(0.5, 1, (8, 128)).astype(np.float32)
    words, scales, values = few_bits.packed(weights, bits, group)
    assert np.abs(values - weights).max() <= steps * 1.01
    assert words.nbytes == weights.size * bits // 8
    assert len(scales) == scales_of_all


def test_a_group_of_zeros_stays_zero():
    for bits, group in FORMATS:
        assert not few_bits.packed(np.zeros((2, 128), np.float32), bits, group)[2].any()


def error(weights, bits, group):
    """Return the root of the mean square error of what stands for weights behind the first group, by theirs."""
    values = few_bits.packed(weights.astype(np.float32), bits, group)[2][:, 64:]
    return float(np.sqrt(np.mean((values - weights[:, 64:]) ** 2) / np.mean(weights[:, 64:] ** 2)))


def test_a_scale_for_a_group_keeps_what_is_far_out_from_the_others():
    weights = np.random.default_rng(0).standard_normal((256, 4096))
    far = weights.copy()
    far[:, 0] = 2.0**18
    of_a_row, of_groups = (8, 0), (8, few_bits.GROUP)
    told = [f"{error(weights, *of):.1%}" for of in (of_a_row, of_groups, (4, few_bits.GROUP))]
    assert told == ["2.6%", "2.5%", "10.8%"], "lesson 09, fusion-four-after"
    assert f"{error(far, *of_a_row):.0%}" == "33%"
    assert error(far, *of_groups) == error(weights, *of_groups)
