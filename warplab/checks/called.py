"""The call of a learner's function in a check: `called`."""

import inspect
import linecache
import traceback
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
        problem, look_at = f"{name} raises {type(error).__name__}: {error}", line_of_code(error, function)
        raise CheckFailed(problem, where=where, look_at=look_at, kind="exception") from error
    if got is None:
        blank = is_empty(function)
        raise CheckFailed(
            f"{name} is not written yet: it returns nothing." if blank else f"{name} returns nothing.",
            where="" if blank else where,
            look_at="the return statement",
            kind="not written" if blank else "wrong type",
        )
    return got


def line_of_code(error: Exception, function: Callable[..., Any]) -> str:
    """Return the line of the learner's function that raised `error`; "" if that is not known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    numbers = [frame.lineno for frame in frames if frame.filename == code.co_filename]
    if not numbers or numbers[-1] is None:
        return ""
    return f"line {numbers[-1]}: {linecache.getline(code.co_filename, numbers[-1]).strip()}"
