"""cupy.random on the simulator: NumPy's generators, their numbers put into device memory.

The distributions are CuPy's; the numbers differ from those that a GPU draws from the same seed.
"""

import functools

import numpy as np

from warplab.dropin.cupy._core.core import ndarray
from warplab.dropin.cupy._core.core import to_host as _to_host
from warplab.dropin.cupy._core.missing import missing as _missing

_OF_BOTH = """
    beta binomial chisquare dirichlet exponential f gamma geometric hypergeometric logseries poisson power
    standard_exponential standard_gamma uniform
"""
_OF_STATES = """
    gumbel laplace logistic lognormal multivariate_normal negative_binomial noncentral_chisquare noncentral_f pareto
    rayleigh standard_cauchy standard_t triangular vonmises wald weibull zipf
"""
_INTEGERS = "binomial geometric hypergeometric logseries negative_binomial poisson zipf"


class BitGenerator:
    """A source of random bits, for `Generator`: NumPy's PCG64 in place of a GPU's."""

    def __init__(self, seed=None) -> None:
        self._generator = np.random.default_rng(_to_host(seed))


XORWOW = MRG32k3a = Philox4x3210 = BitGenerator  # cuRAND's, whose numbers are others


class _Draws:
    """What `Generator` and `RandomState` share: distributions of NumPy's generator."""

    _generator: np.random.Generator


def _distribution(name: str, integers: bool):
    """Return a method that draws as NumPy's `name` does; its `dtype` is float32 or float64, or an integer type."""

    def draw(self, *args, dtype=None, **kwargs) -> ndarray:
        if not integers and dtype is not None:
            _float_type(dtype)
        host = map(_to_host, args)
        values = getattr(self._generator, name)(*host, **{key: _to_host(value) for key, value in kwargs.items()})
        return _put(values, dtype)

    draw.__name__ = name
    draw.__doc__ = getattr(np.random.Generator, name).__doc__
    return draw


for _name in _OF_BOTH.split():
    setattr(_Draws, _name, _distribution(_name, _name in _INTEGERS.split()))


class Generator(_Draws):
    """The stand-in for cupy.random.Generator."""

    def __init__(self, bit_generator) -> None:
        self._generator = bit_generator._generator if isinstance(bit_generator, BitGenerator) else bit_generator

    def random(self, size=None, dtype=np.float64, out=None) -> ndarray:
        return _put(self._generator.random(size, np.dtype(dtype)), dtype)

    def standard_normal(self, size=None, dtype=np.float64, out=None) -> ndarray:
        return _put(self._generator.standard_normal(size, np.dtype(dtype)), dtype)

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint: bool = False) -> ndarray:
        return _put(self._generator.integers(_to_host(low), _to_host(high), size, np.dtype(dtype), endpoint), dtype)


class RandomState(_Draws):
    """The stand-in for cupy.random.RandomState, with the methods of which this module has functions."""

    def __init__(self, seed=None, method=None) -> None:
        self.seed(seed)

    def seed(self, seed=None) -> None:
        """Start the sequence again."""
        self._generator = np.random.default_rng(_to_host(seed))

    def rand(self, *size: int, dtype=float) -> ndarray:
        """Draw from [0, 1) uniformly; float32 or float64."""
        return self.random_sample(size or None, dtype)

    def random_sample(self, size=None, dtype=float) -> ndarray:
        """Draw from [0, 1) uniformly; float32 or float64."""
        return Generator(self._generator).random(size, _float_type(dtype))

    def randn(self, *size: int, dtype=float) -> ndarray:
        return self.standard_normal(size or None, dtype)

    def standard_normal(self, size=None, dtype=float) -> ndarray:
        """Draw from the normal distribution of mean 0 and variance 1; float32 or float64."""
        return Generator(self._generator).standard_normal(size, _float_type(dtype))

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=float) -> ndarray:
        return _put(self._generator.normal(_to_host(loc), _to_host(scale), size), _float_type(dtype))

    def uniform(self, low=0.0, high=1.0, size=None, dtype=float) -> ndarray:
        return _put(self._generator.uniform(_to_host(low), _to_host(high), size), _float_type(dtype))

    def randint(self, low, high=None, size=None, dtype=int) -> ndarray:
        """Draw integers from [low, high), or from [0, low) without `high`."""
        return Generator(self._generator).integers(low, high, size, dtype)

    def choice(self, a, size=None, replace: bool = True, p=None) -> ndarray:
        """Draw from the 1-D array `a`, or from range(a), with the probabilities `p`."""
        return _put(self._generator.choice(_to_host(a), size, replace, _to_host(p)), None)

    def permutation(self, a) -> ndarray:
        return _put(self._generator.permutation(_to_host(a)), None)

    def shuffle(self, a: ndarray) -> None:
        a._write(..., self._generator.permutation(_to_host(a)))

    def tomaxint(self, size=None) -> ndarray:
        """Draw integers from 0 to the largest int64."""
        return _put(self._generator.integers(0, 2**63 - 1, size, endpoint=True), None)


for _name in _OF_STATES.split():
    setattr(RandomState, _name, _distribution(_name, _name in _INTEGERS.split()))
_state = {"state": RandomState()}


def default_rng(seed=None) -> Generator:
    return Generator(np.random.default_rng(_to_host(seed)))


def get_random_state() -> RandomState:
    """Return what this module's functions draw from, which all threads and devices share."""
    return _state["state"]


def set_random_state(rs: RandomState) -> None:
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _state["state"] = rs


def reset_states() -> None:
    """Begin with a new sequence."""
    _state["state"] = RandomState()


def _function(name: str):
    @functools.wraps(getattr(RandomState, name))
    def draw(*args, **kwargs):
        return getattr(_state["state"], name)(*args, **kwargs)

    return draw


for _name in dir(RandomState):
    if _name[0] != "_" and _name != "tomaxint":
        globals()[_name] = _function(_name)
random = ranf = sample = globals()["random_sample"]


def bytes(length: int):
    """Return random bytes, on the host."""
    return _state["state"]._generator.bytes(length)


def multinomial(n: int, pvals, size=None) -> ndarray:
    """Draw how often each of several outcomes comes in `n` trials."""
    return _put(_state["state"]._generator.multinomial(n, _to_host(pvals), size), None)


def random_integers(low: int, high: int | None = None, size=None) -> ndarray:
    """Draw integers from [low, high], or from [1, low] without `high`."""
    return _state["state"].randint(*((1, low + 1) if high is None else (low, high + 1)), size=size)


def _float_type(dtype) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"cupy.random only supports float32 and float64, not {dtype}")
    return dtype


def _put(values, dtype) -> ndarray:
    return ndarray._from_host(np.asarray(values, dtype))


def __getattr__(name: str):
    raise _missing("cupy.random", name)
