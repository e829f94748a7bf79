"""cupy.testing on the simulator: NumPy's assertions for arrays of the host and the device, and arrays to try."""

import functools
from collections.abc import Callable

import numpy as np

from warplab.dropin.cupy._core.core import ndarray
from warplab.dropin.cupy._core.missing import missing as _missing


def _on_host(assertion: Callable) -> Callable:
    @functools.wraps(assertion, assigned=("__name__", "__doc__"))
    def compare(actual, desired, *args, **kwargs) -> None:
        host = [x.get() if isinstance(x, ndarray) else np.asarray(x) for x in (actual, desired)]
        assertion(*host, *args, **kwargs)

    return compare


_ASSERTIONS = """
    assert_allclose assert_array_almost_equal assert_array_almost_equal_nulp assert_array_equal assert_array_less
    assert_array_max_ulp
"""
for _name in _ASSERTIONS.split():
    globals()[_name] = _on_host(getattr(np.testing, _name))
assert_warns = np.testing.assert_warns


def shaped_arange(shape, xp=None, dtype=np.float32, order="C"):
    """Return an array of 1, 2, 3, …, of `xp`: cupy, or numpy."""
    values = np.arange(1, np.prod(shape, dtype=int) + 1)
    values = values % 2 if np.dtype(dtype).kind == "b" else values
    return _of(xp, values.astype(dtype).reshape(shape), order)


def shaped_reverse_arange(shape, xp=None, dtype=np.float32):
    """Return an array of …, 3, 2, 1, of `xp`: cupy, or numpy."""
    values = np.arange(np.prod(shape, dtype=int), 0, -1)
    values = values % 2 if np.dtype(dtype).kind == "b" else values
    return _of(xp, values.astype(dtype).reshape(shape), "C")


def shaped_random(shape, xp=None, dtype=np.float32, scale=10, seed=0, order="C"):
    """Return an array of random numbers from [0, scale), of `xp`: cupy, or numpy; the same for the same seed."""
    rng, dtype = np.random.RandomState(seed), np.dtype(dtype)
    if dtype.kind == "b":
        values = rng.randint(2, size=shape)
    elif dtype.kind == "c":
        values = rng.rand(*shape) + 1j * rng.rand(*shape)
        values *= scale
    else:
        values = rng.rand(*shape) * scale
    return _of(xp, np.asarray(values).astype(dtype), order)


def _of(xp, values: np.ndarray, order):
    values = np.asarray(values, order=order)
    return values if xp is np else ndarray._from_host(values)


def __getattr__(name: str):
    raise _missing("cupy.testing", name)
