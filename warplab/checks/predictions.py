"""The check of numbers that a learner predicts before running anything: `predictions`."""

import math
import numbers
from collections.abc import Mapping
from typing import Any

from warplab.checks.errors import CheckFailed, wrong_type


def predictions(given: Any, right: Mapping[str, float], *, name: str = "prediction", rtol: float = 1e-9) -> None:
    """Check that the dict `given` has the number `right[key]` for each key of `right`; other keys do not matter.

    Raises `CheckFailed`, which names the keys whose number is wrong, but never the right number.
    """
    if not isinstance(given, Mapping):
        raise wrong_type(f"{name} is not a dict.", got=f"{type(given).__name__}: {given!r}")
    missing = [key for key in right if given.get(key) is None]
    if missing:
        raise CheckFailed(f"{name} has no number yet for {_listed(missing)}.", kind="not written")
    for key in right:
        value = given[key]
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)  # a Fraction, too
        if not number or not math.isfinite(value):
            raise wrong_type(f"{name} has no finite number for {key!r}.", got=f"{type(value).__name__}: {value!r}")
    wrong = [key for key, value in right.items() if not math.isclose(given[key], value, rel_tol=rtol)]
    if wrong:
        raise CheckFailed(
            f"{name} is wrong for {len(wrong)} of {len(right)}: {_listed(wrong)}.",
            got=", ".join(f"{key!r}: {given[key]!r}" for key in wrong),
        )
    print(f"{name}: right for {_listed(list(right))}.")


def _listed(keys: list[str]) -> str:
    return ", ".join(map(repr, keys))
