"""What wrong elements have to do with the right ones: `relation` and `stored` say it where that is plain."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_FEWEST = 4  # elements that a relation must fit: fewer are alike by chance
_LONGEST = 2**22  # elements; of more, copies in float64 would take most of a process's memory
_MOST = 64.5  # times the right result, or part of it, is a small factor
_BY_CHANCE = 8  # twice a single number below this may be another mistake
_SEVERAL = 8  # wrong elements that go wrong in one way: fewer may do so by chance
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
    if got.dtype.kind not in "iuf" or got.size > _LONGEST or not np.isfinite(got).all():
        return ""
    with np.errstate(all="ignore"):  # a warning on stderr would be one more failure to nbgrader
        if multiple := _multiplied(got, expected, max(rtol, 1e-5), atol):
            return multiple
        few = got.size < _FEWEST
        return "" if few else _moved(got, expected) or _added(got, expected) or _of_inputs(got, arguments)


def stored(got: np.ndarray, expected: np.ndarray, rtol: float = 0.0, atol: float = 0.0) -> str:
    """Return, in a sentence, how results were limited, rounded or read as unsigned, if that alone is wrong; else ""."""
    if got.dtype.kind not in "iuf" or got.size > _LONGEST or not np.isfinite(got).all():
        return ""
    wrong = ~np.isclose(got, expected, rtol=rtol, atol=atol)
    if np.count_nonzero(wrong) < _SEVERAL:
        return ""
    byte, numbers = got.itemsize == 1, (got[wrong].astype(np.float64), expected[wrong].astype(np.float64))
    between = (expected > expected.min()) & (expected < expected.max()) & ~wrong
    if np.count_nonzero(between) >= _SEVERAL and (limit := _unlimited(*numbers, expected, byte)):
        return limit
    return _misrounded(*numbers, expected[between]) if byte else _unsigned(*numbers, expected)


def _unlimited(got: np.ndarray, expected: np.ndarray, all_of: np.ndarray, byte: bool) -> str:
    """Say that what lies beyond the least or the most of `all_of` is wrong, and all that is; a byte may wrap around."""
    ends = []
    for end, beyond in ((all_of.min(), got < all_of.min()), (all_of.max(), got > all_of.max())):
        meant = expected == end
        if meant.any() and np.unique(got[meant]).size >= _FEWEST and (byte or beyond[meant].all()):
            ends.append(end)
    if not ends or not np.isin(expected, ends).all():
        return ""
    said = f"only elements that should be {' or '.join(f'{end:g}' for end in ends)} are wrong: is a limit missing"
    return f"{said}, such as ReLU or a clip, or is it another?" + " What a byte cannot hold wraps around." * byte


def _misrounded(got: np.ndarray, expected: np.ndarray, right: np.ndarray) -> str:
    """Say that whole numbers are off by one as from another rounding: at any size, as by a wrong scale they are not."""
    off, negative = got - expected, expected < 0
    size = np.abs(np.concatenate([expected, right]))
    wrong = np.arange(size.size) < expected.size
    small = size <= np.median(size)
    inner, outer = wrong[small & (size > 0)], wrong[~small]
    if (np.abs(off) != 1).any() or 2 * inner.sum() * outer.size < outer.sum() * inner.size:
        return ""
    if (off == -np.sign(expected)).all():
        if negative.all() and (right < 0).mean() < 0.05:
            return (
                "only negative elements are wrong, nearer to 0 by 1: 0.5 added and cut off rounds positive ones alone"
            )
        return "each wrong element is nearer to 0 by 1: is it cut off in place of rounded to the nearest?"
    if abs(off.sum()) == off.size and negative.any() and not negative.all():
        return f"each wrong element is too {'large' if off[0] > 0 else 'small'} by 1: is it rounded to the nearest?"
    return ""


def _unsigned(got: np.ndarray, expected: np.ndarray, all_of: np.ndarray) -> str:
    """Say that signed bytes or words were read as unsigned ones: off by whole 256, or some 2^32 times too large."""
    off = got - expected
    if all_of.dtype.kind in "iu":
        if (off % 256).any() or not (all_of % 256).any():
            return ""
        return "each wrong element is off by a multiple of 256: are signed bytes taken for unsigned ones?"
    usual = np.median(np.abs(all_of))
    if usual and 2.0**28 <= np.median(np.abs(off)) / usual <= 2.0**36:
        return (
            "wrong elements are some 2^32 times too large: does an unsigned number go below 0, where it wraps around?"
        )
    return ""


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
