"""A line that says how a long wait goes on, in a notebook: in place of the one before, and gone in the end."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from warpcourse.learner.form import in_notebook


@contextlib.contextmanager
def waiting(after: float = 2.0) -> Iterator[Callable[[str], None]]:
    """Yield what shows a text and the seconds so far, once there are `after`. Outside a notebook nothing is shown."""
    began, shown, handle = time.monotonic(), "", None

    def say(text: str) -> None:
        nonlocal shown, handle
        seconds = time.monotonic() - began
        line = f"{text}, {seconds:.0f} s"
        if seconds < after or line == shown or not in_notebook():
            return
        from IPython.display import display

        shown, data = line, {"text/plain": line}
        handle = handle or display(data, raw=True, display_id=True)
        handle.update(data, raw=True)

    try:
        yield say
    finally:
        if handle is not None:
            nothing: dict[str, Any] = {"text/plain": ""}
            handle.update(nothing, raw=True)
