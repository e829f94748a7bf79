"""cupy.testing on the simulator: NumPy's assertions for arrays of the host and the device."""

from __future__ import annotations

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


assert_allclose = _on_host(np.testing.assert_allclose)
assert_array_equal = _on_host(np.testing.assert_array_equal)
assert_array_almost_equal = _on_host(np.testing.assert_array_almost_equal)


def __getattr__(name: str):
    raise _missing("cupy.testing", name)
