"""What all elements of a wrong output have to do with the right ones: `relation` says it where one is plain."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_FEWEST = 4  # elements that a relation must fit: fewer are alike by chance
_MOST = 64.5  # times the right result, or part of it, is a small factor
_BY_CHANCE = 8  # twice a single number below this may be another mistake
_COMBINED: dict[str, Callable] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
    "%": np.remainder,
}


def relation(
    got: np.ndarray, expected: np.ndarray, arguments: Mapping[str, Any], rtol: float = 0.0, atol: float = 0.0
) -> str:
    """Return, in a sentence, what makes all elements of `got` out of `expected`, or of one or two input arrays.

    "" if nothing plain does, or if they may be alike by chance. `arguments`: the kernel's by name; outputs are None.
    `rtol`, `atol`: the check's tolerance, within which a multiple of the right result may be, too.
    """
    if got.dtype.kind not in "iuf" or not np.isfinite(got).all():
        return ""
    with np.errstate(all="ignore"):  # a warning on stderr would be one more failure to nbgrader
        if multiple := _multiplied(got, expected, max(rtol, 1e-5), atol):
            return multiple
        few = got.size < _FEWEST
        return "" if few else _moved(got, expected) or _added(got, expected) or _of_inputs(got, arguments)


def _moved(got: np.ndarray, expected: np.ndarray) -> str:
    """Say that the right elements are at other places, where these are more than a few values."""
    values = np.unique(expected)
    if values.size < _FEWEST:
        exchanged = values.size == 2 and (got != expected).all() and np.isin(got, values).all()
        return "of two values every element holds the other one" if exchanged else ""
    turned = {"the rows": expected[::-1], "the columns": expected[:, ::-1]} if expected.ndim == 2 else {}
    for what, other in turned.items():
        if np.array_equal(got, other):
            return f"{what} are in the opposite order"
    if expected.ndim == 2 and np.array_equal(got.ravel(), expected.T.ravel()):
        return "it is transposed: element [i, j] holds what belongs to [j, i]"
    if expected.ndim > 1:
        return ""
    if np.array_equal(got, expected[::-1]):
        return "it is backwards: the first element holds what belongs to the last"
    for by in range(1, min(33, got.size - _FEWEST + 1)):
        for low, high, where in ((got[:-by], expected[by:], "after"), (got[by:], expected[:-by], "before")):
            if np.array_equal(low, high):
                places = "1 place" if by == 1 else f"{by} places"
                return f"it is shifted: an element holds what belongs {places} {where} it"
    return ""


def _multiplied(got: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> str:
    """Say that one small whole factor, or 1 divided by it, makes all elements of the right ones."""
    some = expected != 0
    if not some.any() or (np.ptp(expected) == 0 and (expected.size > 1 or abs(expected.sum()) < _BY_CHANCE)):
        return ""
    factor = float(np.median(got[some] / expected[some]))
    if not 1 / _MOST <= abs(factor) <= _MOST:
        return ""
    large = round(factor if abs(factor) > 1 else 1 / factor)
    exact = large if abs(factor) > 1 else 1 / large
    if large == 1 or not np.allclose(got, exact * expected, rtol=rtol, atol=atol):
        return ""
    if large == -1:
        return "every element has the wrong sign"
    return f"every element is {f'{large} times as large as' if abs(factor) > 1 else f'1/{large} of'} the right one"


def _added(got: np.ndarray, expected: np.ndarray) -> str:
    """Say that one whole number added makes all elements of the right ones."""
    added = got.astype(np.float64) - expected
    if np.ptp(expected) and added[added != 0].size == added.size:
        number = float(np.median(added))
        if np.allclose(added, number, rtol=1e-3, atol=0) and np.isclose(number, round(number), rtol=1e-3):
            return f"every element is too {'large' if number > 0 else 'small'} by {abs(round(number))}"
    return ""


def _of_inputs(got: np.ndarray, arguments: Mapping[str, Any]) -> str:
    """Say that every element is one of an input, or of two inputs by one operator."""
    arrays = {
        name: array.astype(np.float64)
        for name, array in arguments.items()
        if isinstance(array, np.ndarray) and array.shape == got.shape and array.dtype.kind in "iuf"
    }
    for name, array in arrays.items():
        if np.array_equal(got, array):
            return f"every element is the one of {name}"
    for (a, left), (b, right) in itertools.permutations(arrays.items(), 2):
        for sign, operator in _COMBINED.items():
            if np.allclose(got, operator(left, right), rtol=1e-5, atol=0):
                return f"{a} {sign} {b} gives every element that was stored"
    return ""
