"""The call of a learner's function in a check: `called`."""

import inspect
import linecache
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from warplab.checks.errors import CheckFailed
from warplab.launch.kernel_source import is_empty

LINES = 10_000_000  # of the notebook that a call may run: some seconds


class _Endless(BaseException):  # no Exception, which a learner's function may catch
    pass


def called(function: Callable[..., Any], where: str, *arguments: Any, **named: Any) -> Any:
    """Return what `function` returns; raise `CheckFailed` if it raises, returns None, or does not end.

    `where`: the input, for the message. An unwritten function is told apart from one that forgets to return.
    """
    name = getattr(function, "__name__", "the function")
    try:
        got = _counted(function, *arguments, **named)
    except _Endless as error:
        problem, got = f"{name} does not end.", f"{LINES:,} lines that ran, and no result"
        look_at = line_of_code(error, function)
        raise CheckFailed(problem, got=got, where=where, look_at=look_at, kind="endless") from None
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


def _counted(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return what `function` returns; raise _Endless after LINES lines of it, and of others of its notebook.

    Lines, not seconds: a busy machine makes no right answer a wrong one. A debugger keeps its own place.
    """
    names, left = getattr(inspect.unwrap(function), "__globals__", None), LINES
    if names is None or sys.gettrace() is not None:
        return function(*arguments, **named)

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_globals is not names:
            return None
        left -= event == "line"
        if left < 0:
            raise _Endless
        return count

    sys.settrace(count)
    try:
        return function(*arguments, **named)
    finally:
        sys.settrace(None)


def line_of_code(error: BaseException, function: Callable[..., Any]) -> str:
    """Return the line of the learner's function that raised `error`; "" if that is not known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    numbers = [frame.lineno for frame in frames if frame.filename == code.co_filename]
    if not numbers or numbers[-1] is None:
        return ""
    return f"line {numbers[-1]}: {linecache.getline(code.co_filename, numbers[-1]).strip()}"
