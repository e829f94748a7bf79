"""What lessons wrap around a check: a task that is not solved yet must not stop "Run All"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warpcourse.learner import record
from warplab.checks import CheckFailed


@contextmanager
def attempt(key: str = "") -> Iterator[None]:
    """Print the message of a check that fails inside the `with` block, in place of an error.

    `key`: the lab's number and the task's name, such as "01/shift"; whether the task is done is then kept for the
    progress page. Only `CheckFailed` is caught; any other exception stops the notebook, as it should. Raises
    ValueError for a key without a lab's number.
    """
    if key:
        record.check_key(key)
    try:
        yield
    except CheckFailed as failed:
        print(failed)
    else:
        if key:
            record.keep("tasks", key, {"done": True})
