"""The check of an array that a learner computed: `array`."""

from typing import Any

import numpy as np

from warplab.checks.errors import CheckFailed, wrong_type
from warplab.checks.relations import relation
from warplab.launch.array_placement import host_array


def array(got: Any, expected: np.ndarray, *, rtol: float = 0.0, atol: float = 0.0, name: str = "the result") -> None:
    """Check that `got` is the array `expected`; raise `CheckFailed` at the first thing that is wrong.

    `got`: a NumPy array or a device array. Its shape and dtype must be those of `expected`, without broadcasting or
    conversion. Elements must be finite where `expected` is finite, and infinite with the same sign where it is
    infinite; a NaN never passes. `rtol`, `atol`: tolerance for finite floating-point elements, |got - expected| <=
    atol + rtol * |expected|; the default asks for equal values.
    """
    expected = np.asarray(expected)
    if type(got) is not np.ndarray and not hasattr(got, "__cuda_array_interface__"):
        raise wrong_type(f"{name} is not an array.", expected=_described(expected), got=f"{type(got).__name__}")
    values = host_array(got)
    for what, have, want in (("shape", values.shape, expected.shape), ("dtype", values.dtype, expected.dtype)):
        if have != want:
            raise wrong_type(f"{name} has the wrong {what}.", expected=_described(expected), got=_described(values))
    if np.issubdtype(expected.dtype, np.inexact):
        _check_finite(values, expected, name)
        with np.errstate(all="ignore"):
            near = np.abs(values - expected) <= atol + rtol * np.abs(expected)
        right = (values == expected) | (near & np.isfinite(expected))
    else:
        right = values == expected
    if not np.all(right):
        at = _first(~right)
        raise CheckFailed(
            f"{name} is wrong in {np.count_nonzero(~right)} of {expected.size} elements, the first at {_index(at)}.",
            expected=f"{_index(at)} = {expected[at]}",
            got=f"{_index(at)} = {values[at]}",
            look_at=relation(values, expected, {}, rtol, atol),
        )
    print(f"{name}: right, {_described(expected)}.")


def _check_finite(values: np.ndarray, expected: np.ndarray, name: str) -> None:
    odd = np.isnan(values) | (np.isfinite(values) != np.isfinite(expected))
    if np.any(odd):
        at = _first(odd)
        what = "finite" if np.isfinite(expected[at]) else str(expected[at])
        raise CheckFailed(
            f"{name} is not {what} at {_index(at)}.",
            expected=f"{_index(at)} = {expected[at]}",
            got=f"{_index(at)} = {values[at]}",
            kind="not finite",
        )


def _first(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])


def _described(values: np.ndarray) -> str:
    return f"an array of {values.dtype}, shape {values.shape}"


def _index(at: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, at))}]" if at else "its only element"
