"""What a test needs made when it is first used, not in each process that collects the test."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any


class Late:
    """Stand for what `make()` returns."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._made = functools.cache(make)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # what pytest asks of each name in a test's module
            raise AttributeError(name)
        return getattr(self._made(), name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._made()(*arguments, **named)


def module(name: str) -> Late:
    """Stand for a module, such as TensorFlow, whose import takes 6 s and 0.5 GB."""
    return Late(lambda: importlib.import_module(name))


def decorated(decorator: Callable[..., Any], *arguments: Any) -> Callable[[Callable[..., Any]], Late]:
    """Decorate by `decorator(*arguments)`, as `cuda.vectorize`, which compiles a function whose types are given."""
    return lambda function: Late(lambda: decorator(*arguments)(function))
