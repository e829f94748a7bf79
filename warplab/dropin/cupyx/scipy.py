"""cupyx.scipy on the simulator: SciPy's functions of the same names, where SciPy is installed."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from warplab.dropin.cupy._core.core import lift, ndarray
from warplab.dropin.cupy._core.missing import known as _known
from warplab.dropin.cupy._core.missing import missing as _missing
from warplab.dropin.cupy._core.missing import small_module as _small_module
from warplab.dropin.cupyx._sparse import sparse

__path__: list[str] = []  # as of a package


def _lifting(module: str) -> Callable[[str], Any]:
    """Return what finds SciPy's functions that CuPy has, too, and makes them take device arrays."""

    def find(name: str) -> Any:
        if name not in _known(f"cupyx.{module}"):
            raise _missing(f"cupyx.{module}", name)
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError:
            raise AttributeError(f"cupyx.{module}.{name} is SciPy's here: pip install scipy") from None
        if isinstance(found, np.ufunc) or (callable(found) and not isinstance(found, type)):
            return lift(found)
        raise _missing(f"cupyx.{module}", name)

    return find


for _name in ("spatial.distance", "fft", "fftpack", "linalg", "ndimage", "signal", "spatial", "special", "stats"):
    globals()[_name] = _small_module(f"cupyx.scipy.{_name}", find=_lifting(f"scipy.{_name}"))
globals()["spatial"].distance = globals()["spatial.distance"]


def get_array_module(*args):
    """Return this module if any of the arguments is a device array, else SciPy."""
    ours = any(isinstance(arg, ndarray | sparse.spmatrix) for arg in args)
    return sys.modules[__spec__.name] if ours else importlib.import_module("scipy")


def __getattr__(name: str):
    raise _missing("cupyx.scipy", name)
