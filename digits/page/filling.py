"""Changes that a panel makes to its own controls, told from choices of the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class Filling:
    """A panel that changes its own controls. While it does, `_filling` is true."""

    _filling = False

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        self._filling = True
        try:
            yield
        finally:
            self._filling = False

    def _refill(self, control: Any, options: list | None, value: Any) -> None:
        """Give a control a value, and new options if it has any, without taking that for a choice of the user."""
        # In one message: between two of them a list would show something that nobody chose.
        with self._quietly(), control.hold_sync():
            if options is not None and list(control.options) != options:
                control.options = options
            if control.value != value:
                control.value = value
