"""`cupy.random` on the simulator."""

import re

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


DRAWS = """
    beta(2, 3, 9) binomial(5, 0.3, 9) chisquare(3, 9) choice(5, 9) choice(4, 9, p=[0, 0.5, 0.5, 0]) dirichlet([1,2],9)
    exponential(2, 9) f(3, 4, 9) gamma(2, 1, 9) geometric(0.3, 9) gumbel(0, 1, 9) hypergeometric(5, 6, 4, 9)
    laplace(0, 1, 9) logistic(0, 1, 9) lognormal(0, 1, 9) logseries(0.5, 9)
    multivariate_normal([0, 1], [[1, 0], [0, 1]], 9)
    negative_binomial(3, 0.5, 9) noncentral_chisquare(3, 1, 9) noncentral_f(3, 4, 1, 9) normal(0, 1, 9) pareto(3, 9)
    permutation(9) poisson(4, 9) power(3, 9) rand(9) randint(5, size=9) randn(9) random_sample(9) rayleigh(1, 9)
    standard_cauchy(9) standard_exponential(9) standard_gamma(2, 9) standard_normal(9) standard_t(3, 9)
    triangular(0, 1, 2, 9) uniform(0, 1, 9) vonmises(0, 1, 9) wald(1, 1, 9) weibull(2, 9) zipf(3, 9)
"""


@pytest.mark.parametrize("draw", [part for part in re.split(r"(?<=\))\s+", DRAWS.strip()) if part])
def test_distributions(draw):
    names = {"state": cp.random.RandomState(7), "cp": cp}
    found = eval(f"state.{draw}", names)
    assert isinstance(found, cp.ndarray)
    assert len(found) == 9
    cp.random.seed(7)
    again = eval(f"cp.random.{draw}")  # the module draws from a state of its own, in the same order
    assert again.tolist() == found.tolist()
    assert eval(f"state.{draw}", names).tolist() != found.tolist()  # and goes on


def test_states():
    kept = cp.random.get_random_state()
    cp.random.set_random_state(cp.random.RandomState(1))
    first = cp.random.rand(3).tolist()
    cp.random.set_random_state(cp.random.RandomState(1))
    assert cp.random.rand(3).tolist() == first
    cp.random.reset_states()
    assert cp.random.rand(3).tolist() != first
    cp.random.set_random_state(kept)
    with pytest.raises(TypeError, match="must be an instance of RandomState"):
        cp.random.set_random_state(3)
    generator = cp.random.Generator(cp.random.XORWOW(3))
    assert generator.integers(0, 9, 4, endpoint=True).dtype == np.int64
    assert generator.random(3, np.float32).dtype == np.float32
    assert generator.exponential(2.0, 5).shape == (5,)
    assert cp.random.RandomState(2).tomaxint(3).dtype == np.int64
    assert len(cp.random.bytes(5)) == 5
    assert set(cp.random.random_integers(2, size=50).tolist()) == {1, 2}
    drawn = cp.random.RandomState(3).choice(cp.asarray([1.5, 2.5]), 4, p=cp.asarray([0.0, 1.0]))
    assert drawn.tolist() == [2.5] * 4
    x = cp.arange(9)
    cp.random.shuffle(x)
    assert sorted(x.tolist()) == list(range(9))
    with pytest.raises(TypeError, match="float32 and float64"):
        cp.random.gamma(2, size=3, dtype=cp.int32)
