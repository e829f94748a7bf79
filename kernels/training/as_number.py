"""What the checks of the lesson need: functions that return a tensor, as functions that return a number."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def as_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, under its own name, with a tensor of one element turned into a float; all else is passed on."""

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        found = function(*given, **named)
        is_tensor = hasattr(found, "numpy") and np.size(found.numpy()) == 1
        return float(np.reshape(found.numpy(), ())) if is_tensor else found

    return call
