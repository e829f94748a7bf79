"""Lab 13's decoding: one token from a paged cache, split over warps, against float64."""

import numpy as np
import pytest

from kernels.attention import reference
from kernels.attention.decoding import decode, splits_for
from tests.support.random_inputs import generator
from warplab import cp

from .bounds import operands
from .held import check_decode

# batch, heads, query heads for a head of keys, keys, size; type; splits.
CASES = (
    ((1, 1, 1, 1, 32), "float16", 1),
    ((2, 2, 1, 100, 64), "bfloat16", 3),
    ((1, 8, 4, 130, 128), "float16", 4),
    ((1, 20, 20, 40, 80), "bfloat16", 2),
    ((1, 2, 2, 70, 96), "float16", 7),
    ((1, 1, 1, 50, 256), "float16", None),
)


@pytest.mark.parametrize(("case", "kind", "splits"), CASES, ids=str)
def test_one_page_for_each_sequence(case, kind, splits):
    check_decode(case, kind, splits)


@pytest.mark.parametrize("splits", [1, 3, 9])
def test_sequences_of_many_lengths_in_pages(splits):
    check_decode((4, 4, 2, 75, 64), "float16", splits, page=16, lengths=(75, 0, 1, 32))


def test_random_caches():
    random = generator()
    for _ in range(4):
        shared_by, of_keys, batch = (int(n) for n in random.integers(1, 4, 3))
        keys, splits = (int(n) for n in random.integers(1, 120, 2))
        page, lengths = int(random.choice([16, 32, 48])), random.integers(0, keys + 1, batch)
        check_decode(
            (batch, shared_by * of_keys, shared_by, keys, 64), "float16", splits % 9 + 1, page, lengths, random
        )


def test_splits_fill_the_gpu_and_are_not_too_short():
    assert splits_for(1, 8192, 132) == 32
    assert splits_for(16, 8192, 132) == 8
    assert splits_for(140, 8192, 132) == 6  # 840 blocks: 6.4 rounds of 132
    assert splits_for(64 * 16, 8192, 132) == 1
    assert splits_for(1, 10, 132) == 1


def test_wrong_arguments_are_named():
    q, k = cp.zeros((2, 4, 64), np.float16), cp.zeros((3, 2, 24, 64), np.float16)
    table = cp.zeros((2, 2), np.int32)
    with pytest.raises(ValueError, match="k has 3 pages for 2 sequences: give the table"):
        decode(q, k, k)
    with pytest.raises(
        ValueError, match="a page has 24 keys; where a sequence has several, it must be a multiple of 16"
    ):
        decode(q, k, k, table=table)
    with pytest.raises(ValueError, match=r"v has shape \(3, 2, 24, 32\); it must be \(pages, heads of k, page, 64\)"):
        decode(q, k, cp.zeros((3, 2, 24, 32), np.float16))
    with pytest.raises(ValueError, match="lengths is int64; the kernel takes int32"):
        decode(q, k[:2], k[:2], cp.zeros(2, np.int64))
    with pytest.raises(ValueError, match="splits is 0"):
        decode(q, k[:2], k[:2], splits=0)
    with pytest.raises(ValueError, match="scale is inf"):
        decode(q, k[:2], k[:2], scale=np.inf)


def test_keys_that_are_no_numbers_give_none():
    q, k, v = (x.given.copy() for x in operands(generator(), 2, 2, 1, 1, 40, 32, "float16"))
    k[0] = np.nan
    for splits in (1, 3):
        for found in decode(*map(cp.asarray, (q[:, :, 0].copy(), k, v)), splits=splits):
            assert np.isnan(cp.asnumpy(found)[0]).all()
            assert np.isfinite(cp.asnumpy(found)[1]).all()


def test_scores_of_minus_infinity_weigh_nothing():
    q, k, v = (x.given.copy() for x in operands(generator(), 2, 1, 1, 1, 40, 32, "float16"))
    q[:] = 1
    k[0] = k[1, :, :35] = -np.inf  # of all keys; of all that some warps have
    for splits in (1, 3):
        out, lse = (cp.asnumpy(x) for x in decode(*map(cp.asarray, (q[:, :, 0].copy(), k, v)), splits=splits))
        assert not out[0].any()
        assert lse[0] == -np.inf
        exact = reference.forward(q[1:], k[1:, :, 35:], v[1:, :, 35:])
        np.testing.assert_allclose(out[1], exact[0][0, :, 0], rtol=2e-3, atol=2e-3)
        np.testing.assert_allclose(lse[1], exact[1][0, :, 0], rtol=1e-3)
