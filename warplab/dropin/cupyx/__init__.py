"""cupyx on the simulator: CuPy's further functions. Those of `cupyx.scipy` are SciPy's, where it is installed."""

import contextlib
from collections.abc import Iterator

import numpy as np

from warplab.dropin.cupy._core.core import lift, lift_in_place
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.dropin.cupy._core.missing import small_module as _small_module
from warplab.dropin.cupyx import profiler, scipy

scatter_add, scatter_max, scatter_min = (lift_in_place(of.at) for of in (np.add, np.maximum, np.minimum))
empty_pinned, zeros_pinned = np.empty, np.zeros  # of the host; that they are locked makes no difference here
empty_like_pinned, zeros_like_pinned = np.empty_like, np.zeros_like
jit = _small_module("cupyx.jit")
time = _small_module("cupyx.time", repeat=profiler.benchmark)


@lift
def rsqrt(x):
    """Return 1 / sqrt(x)."""
    return np.reciprocal(np.sqrt(x))


@contextlib.contextmanager
def errstate(*, linalg=None, fallback_mode=None) -> Iterator[None]:
    """Choose how errors of linear algebra are told: here always by an exception, as with linalg="raise"."""
    yield


@contextlib.contextmanager
def allow_synchronize(allow: bool) -> Iterator[None]:
    """Allow the host to wait for the device inside the block: here it always waits."""
    yield


def __getattr__(name: str):
    raise _missing("cupyx", name)
