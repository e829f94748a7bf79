"""A framework's values as NumPy's, in the student's process: the judge has no framework and takes only arrays."""

import sys
from typing import Any

from warpcourse.grading.frameworks import FRAMEWORKS, Framework


def without_tensors(value: Any) -> Any:
    """Return `value` with a NumPy array or scalar for each value of a framework in it, such as an eager tensor.

    Lists, tuples and dicts are looked into; any other value stays as it is. No framework is imported for this.
    """
    loaded = [framework for framework in FRAMEWORKS if not framework.modules.isdisjoint(sys.modules)]
    return _converted(loaded, value, 0) if loaded else value


def _converted(loaded: list[Framework], value: Any, depth: int) -> Any:
    kind = type(value)
    if depth < 20:  # as deep as artefacts go; a list may contain itself
        if kind in (list, tuple):
            return kind(_converted(loaded, item, depth + 1) for item in value)
        if kind is dict:
            return {key: _converted(loaded, item, depth + 1) for key, item in value.items()}
    for framework in loaded:
        value = framework.plain(value)
    return _converted(loaded, value, depth) if type(value) is list and kind is not list else value
