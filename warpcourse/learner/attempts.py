"""What lessons wrap around a check: a task that is not solved yet must not stop "Run All"."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from IPython.display import display

from warpcourse.learner import record
from warplab.checks import CheckFailed


@contextmanager
def attempt(key: str = "", failing: Callable[[], Any] | None = None) -> Iterator[None]:
    """Print the message of a check that fails inside the `with` block, in place of an error.

    `key`: the lab's number and the task's name, such as "01/shift"; whether the task is done is then kept for the
    progress page. `failing`: returns a picture of an answer that fails, to show below the message; not called for one
    that nobody has written yet. Only `CheckFailed` is caught; any other exception stops the notebook, as it should.
    Raises ValueError for a key without a lab's number.
    """
    if key:
        record.check_key(key)
    try:
        yield
    except CheckFailed as failed:
        print(failed)
        if failing and "not written yet" not in failed.problem:
            display(failing())
    else:
        if key:
            record.keep("tasks", key, {"done": True})
