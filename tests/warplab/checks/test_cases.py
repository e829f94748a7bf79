"""The inputs that checks make: distinct values, exact sums, launches that cover them, poison."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kernel_checks import INDEX, PRODUCT, RIGHT, cuda_kernel, failure
from warplab import checks
from warplab.checks.cases import at_the_end, cover, cover_tiles, distinct, poisoned, same_bits, summable


@given(st.integers(1, 3000), st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]))
def test_inputs_are_distinct_and_not_whole(n, seed, dtype):
    values = distinct(np.random.default_rng(seed), n, dtype)
    assert values.dtype == dtype
    assert np.unique(values).size == n
    assert not np.any(values == np.round(values))
    assert np.all((values > 1) & (values < 9))


@given(st.integers(1, 10_000), st.sampled_from([1, 32, 96, 1024]), st.sampled_from([1, 4]))
def test_cover_is_enough_and_not_a_block_more(n, block, elements):
    blocks, threads = cover(block, elements=elements)(n)
    assert threads == block
    assert (blocks - 1) * block * elements < n <= blocks * block * elements


@given(st.integers(1, 200), st.integers(1, 200))
def test_tiles_cover_a_matrix_and_no_more(rows, columns):
    (across, down), block = cover_tiles((32, 8), tile=(32, 16))((rows, columns))
    assert block == (32, 8)
    assert (across - 1) * 32 < columns <= across * 32
    assert (down - 1) * 16 < rows <= down * 16


@given(st.integers(0, 2**32), st.integers(1, 2**14))
def test_sums_of_summable_values_are_exact(seed, n):
    rng = np.random.default_rng(seed)
    values = summable(rng, n)
    assert values.dtype == np.float32
    for order in (values, values[::-1], rng.permutation(values)):
        assert np.cumsum(order)[-1] == np.sum(values, dtype=np.float64)


def test_a_half_holds_not_all_summable_values():
    values = summable(np.random.default_rng(51), 128)
    assert 2 < np.count_nonzero(values != values.astype(np.float16)) < 32


def test_more_summable_values_than_sums_are_exact_for():
    with pytest.raises(ValueError, match="summable: 262145 elements, expected 1 to 262144"):
        summable(np.random.default_rng(50), 2**18 + 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint8])
def test_poison(dtype):
    poison = poisoned(np.ones((3, 4), dtype))
    assert (poison.shape, poison.dtype) == ((3, 4), np.dtype(dtype))
    if np.issubdtype(dtype, np.floating):
        assert np.isnan(poison).all()
        assert not same_bits(poison, np.full((3, 4), np.nan, dtype)).any()  # a computed NaN is no poison


def test_each_run_draws_new_inputs():
    seen = []

    def make_case(rng, n):
        case = PRODUCT(rng, n)
        seen.append(float(case.arguments["a"][0]))
        return case

    for _ in range(2):
        checks.kernel(RIGHT, make_case, sizes=[1], launches=[(1, 32)])
    assert seen[0] != seen[1]


AT_2_24 = {"sizes": [2**24 + 997], "launches": [cover(128)], "sample_blocks": 4}


def ends():
    return at_the_end(np.multiply, ("a", "b"), "c", length="n")


def test_of_a_long_vector_the_last_elements_are_asked_for():
    checks.kernel(RIGHT, ends(), **AT_2_24)


def test_an_index_in_float32_misses_some_of_them():
    caught = failure(cuda_kernel(INDEX + "i = (float)i; if (i < n) c[i] = a[i] * b[i];"), ends(), **AT_2_24)
    assert "c is wrong in " in caught.problem
    assert caught.look_at.startswith("the index: float32 has 24 bits")


def test_a_guard_that_is_one_short_misses_the_last():
    short = failure(cuda_kernel(INDEX + "if (i < n - 1) c[i] = a[i] * b[i];"), ends(), **AT_2_24)
    assert "c is wrong in 1 of 16,778,213 elements" in short.problem.replace("16778213", "16,778,213")
