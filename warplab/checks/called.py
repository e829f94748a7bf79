"""The call of a learner's function in a check: `called`."""

from collections.abc import Callable
from typing import Any

from warplab.checks.errors import CheckFailed
from warplab.launch.kernel_source import is_empty


def called(function: Callable[..., Any], where: str, *arguments: Any, **named: Any) -> Any:
    """Return what `function` returns; raise `CheckFailed` if it raises, or returns None.

    `where`: the input, for the message. An unwritten function is told apart from one that forgets to return.
    """
    name = getattr(function, "__name__", "the function")
    try:
        got = function(*arguments, **named)
    except Exception as error:
        raise CheckFailed(f"{name} raises {type(error).__name__}: {error}", where=where, kind="exception") from error
    if got is None:
        blank = is_empty(function)
        raise CheckFailed(
            f"{name} is not written yet: it returns nothing." if blank else f"{name} returns nothing.",
            where="" if blank else where,
            look_at="the return statement",
            kind="not written" if blank else "wrong type",
        )
    return got
