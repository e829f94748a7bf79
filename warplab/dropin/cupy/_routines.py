"""CuPy's routines that take more than `lift`: those that are indexed, and those that take a function."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from warplab.dropin.cupy._core.core import lift, ndarray, to_host
from warplab.simulator import default_device


class _Indexed:
    """An object such as `r_`, which makes an array of what is between its brackets."""

    def __init__(self, of: Any) -> None:
        self._at = lift(lambda *key: of[key if len(key) > 1 else key[0]])

    def __getitem__(self, key) -> ndarray:
        return self._at(*(key if isinstance(key, tuple) else (key,)))


r_, c_, mgrid, ogrid = (_Indexed(of) for of in (np.r_, np.c_, np.mgrid, np.ogrid))


def apply_along_axis(func1d: Callable, axis: int, arr: ndarray, *args, **kwargs) -> ndarray:
    """Apply `func1d(a, ...)`, a function of 1-D device arrays, to the slices of `arr` along `axis`."""

    def on_host(slice_: np.ndarray):
        return to_host(func1d(ndarray._from_host(slice_), *args, **kwargs))

    return lift(lambda a: np.apply_along_axis(on_host, axis, a))(arr)


_memos: list[dict] = []


def memoize(for_each_device: bool = False) -> Callable[[Callable], Callable]:
    """Keep what the decorated function returns for the same hashable arguments, for each device if asked to."""

    def decorator(function: Callable) -> Callable:
        memo: dict[tuple, Any] = {}
        _memos.append(memo)

        @functools.wraps(function)
        def remembered(*args, **kwargs):
            key = for_each_device and default_device().number, args, frozenset(kwargs.items())
            if key not in memo:
                memo[key] = function(*args, **kwargs)
            return memo[key]

        return remembered

    return decorator


def clear_memo() -> None:
    """Forget what all functions decorated with `memoize` returned."""
    for memo in _memos:
        memo.clear()
