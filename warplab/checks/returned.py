"""What a function returns in several parts, such as a list of arrays, and what it leaves: `returned`, `untouched`."""

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from warplab.checks.arrays import array
from warplab.checks.errors import CheckFailed, wrong_type


def returned(
    name: str,
    got: Any,
    expected: Any,
    *,
    parts: str | Sequence[str] = "part {}",
    rtol: float = 0.0,
    atol: float = 0.0,
    where: str = "",
) -> None:
    """Check that the function `name` returned `got` where `expected` is right; raise `CheckFailed`, else print nothing.

    `expected`: an array (`got` must have its shape and dtype, and elements within |got - expected| <= atol + rtol *
    |expected|), a number (exactly that, and no bool), None, or a list of these, for which `got` may be a list or a
    tuple. `parts`: what the parts of a list are called, one name each, or one for all with {} for the part's number;
    the name of a part that is itself a list names its parts in that way. `where`: the input, for the message.
    """
    if got is None and expected is not None:
        raise CheckFailed(f"{name} returns nothing.", where=where, kind="not written")
    try:
        if isinstance(expected, list | tuple):
            _listed(f"{name} returns the wrong type.", got, expected, parts, rtol, atol)
        else:
            _leaf(f"the result of {name}", got, expected, rtol, atol)
    except CheckFailed as failed:
        raise failed.at(where) if where else failed from None


def untouched(function: Any, given: Sequence[np.ndarray], before: Sequence[np.ndarray], *, where: str = "") -> None:
    """Check that the latest call of `function` left the arrays `given` as they were `before`; raise `CheckFailed`.

    A function in another process had copies of them, and tells by itself whether it changed these.
    """
    if getattr(function, "_warplab_changed", False) or not all(map(np.array_equal, before, given)):
        problem, hint = f"{function.__name__} changes the arrays of the caller.", "what is done in place"
        raise CheckFailed(problem, where=where, look_at=hint, kind="input modified")


def _listed(
    problem: str, got: Any, expected: Sequence[Any], parts: str | Sequence[str], rtol: float, atol: float
) -> None:
    found, wanted = type(got).__name__, f"a list or tuple of {len(expected)}"
    if not isinstance(got, list | tuple):
        raise wrong_type(problem, expected=wanted, got=found)
    if len(got) != len(expected):
        raise wrong_type(problem.replace("wrong type", "wrong length"), expected=wanted, got=f"{found} of {len(got)}")
    names = [parts] * len(expected) if isinstance(parts, str) else parts
    for k, (part, mine, right) in enumerate(zip(names, got, expected, strict=True)):
        if isinstance(right, list | tuple):
            _listed(f"part {k} of the result has the wrong type.", mine, right, part, rtol, atol)
        else:
            _leaf(part.format(k), mine, right, rtol, atol)


def _leaf(label: str, got: Any, expected: Any, rtol: float, atol: float) -> None:
    if got is None or expected is None:
        if got is not expected:
            wanted, found = ("None" if value is None else _kind(value) for value in (expected, got))
            raise CheckFailed(f"{label} is wrong.", expected=wanted, got=found)
    elif isinstance(expected, np.ndarray):
        with contextlib.redirect_stdout(io.StringIO()):  # one line for all parts, not one for each
            array(got, expected, rtol=rtol, atol=atol, name=label)
    elif not (type(got) in (int, float) or isinstance(got, np.number)) or got != expected:  # no class that may lie
        raise CheckFailed(f"{label} is wrong.", expected=repr(expected), got=repr(got))


def _kind(value: Any) -> str:
    return "an array" if isinstance(value, np.ndarray) else f"{type(value).__name__}: {value!r}"
