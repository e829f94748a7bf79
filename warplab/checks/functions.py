"""Checks of Python functions that return a number or a bool, or raise: `examples` and `function`."""

import copy
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warplab.checks.called import line_of_code
from warplab.checks.errors import CheckFailed, wrong_type
from warplab.checks.session import fresh_seed
from warplab.compile.short_traceback import interrupted
from warplab.launch.kernel_source import is_empty

# Ratios of wrong to right answers that have a known cause.
_UNIT_RATIOS = (
    ([1e3, 1e6, 1e9, 1e12, 1e-3, 1e-6, 1e-9, 1e-12], "the unit of the result: a power of 1000 is missing"),
    ([8, 1 / 8], "the unit of the result: are these bits or bytes?"),
    (
        [(1000 / 1024) ** k for k in (-4, -3, -2, -1, 1, 2, 3, 4)],
        "the unit of the result: kilo means 1000, kibi (KiB, MiB) 1024",
    ),
)
_DEPENDS = "how the result depends on each input"


def examples(function: Callable, table: Sequence[tuple[Mapping[str, Any], Any]], *, rtol: float = 1e-9) -> None:
    """Check `function` on worked examples: pairs of keyword arguments and the value to return.

    For a bool in the table the function must return a bool. For an exception class, such as RuntimeError, it must raise
    that very class. For anything else it must return a finite number within `rtol`. Raises `CheckFailed`.
    """
    _run(function, list(table), rtol, seed=None)


def function(
    function: Callable[..., Any],
    reference: Callable[..., Any],
    make_arguments: Callable[[np.random.Generator], Mapping[str, Any]],
    *,
    trials: int = 100,
    rtol: float = 1e-9,
    seed: int | None = None,
) -> None:
    """Check `function` against `reference` on fresh random keyword arguments.

    `make_arguments(rng)` returns the keyword arguments of one trial. `seed` repeats an earlier run.
    What `reference` returns is what a table of `examples` may hold. Raises `CheckFailed`.
    """
    seed = fresh_seed() if seed is None else seed
    rng = np.random.default_rng(seed)
    inputs = [make_arguments(rng) for _ in range(trials)]
    _run(function, [(arguments, reference(**arguments)) for arguments in inputs], rtol, seed)


def _run(function: Callable, table: list[tuple[Mapping[str, Any], Any]], rtol: float, seed: int | None) -> None:
    name = getattr(function, "__name__", None)
    if not callable(function) or name is None:
        raise CheckFailed(
            "A function is expected here.",
            expected="a Python function",
            got=f"{type(function).__name__}: {function!r}",
            kind="no function",
        )
    if not table:
        raise ValueError("no inputs to check: the table or the number of trials is empty")
    calls = _calls(function, [arguments for arguments, _ in table])
    answers = [
        _answer(function, name, call, arguments, expected, seed)
        for call, (arguments, expected) in zip(calls, table, strict=True)
    ]
    for (arguments, expected), got in zip(table, answers, strict=True):
        if not _right(got, expected, rtol):
            numbers = _numbers([expected for _, expected in table], answers)
            look_at = _look_at(*numbers)
            if look_at.startswith(_DEPENDS):
                more = _beyond(*numbers) or _where_right(table, answers, rtol)
                look_at = "\n".join(filter(None, (more, look_at)))
            raise CheckFailed(
                f"{name} returns the wrong value.",
                expected=repr(expected),
                got=_as(got, expected),
                where=_call(name, arguments, seed),
                look_at="\n".join(filter(None, (look_at, _unused(table, answers)))),
            )
    print(f"{name}: right for {len(table)} input{'s' if len(table) > 1 else ''}.")


def _calls(function: Callable[..., Any], inputs: list[Mapping[str, Any]]) -> list[Callable[[], Any]]:
    """Return a call of `function` for each input. A function in another process takes all inputs at once."""
    batch = getattr(function, "_warplab_batch", None)
    if batch is not None:
        return batch(inputs)
    # Copies, since a list that the function empties may be in several rows of a table.
    return [functools.partial(function, **copy.deepcopy(dict(arguments))) for arguments in inputs]


def _answer(
    function: Callable[..., Any],
    name: str,
    call: Callable[[], Any],
    arguments: Mapping[str, Any],
    expected: Any,
    seed: int | None,
) -> Any:
    """Return what the function returns, as a Python bool or float, after checks of its type and finiteness; what it
    raises, if that is expected."""
    where = _call(name, arguments, seed)
    try:
        got = call()
    except CheckFailed:
        raise
    except KeyboardInterrupt as error:
        interrupted(error, f"{name} ran")
        raise
    except Exception as error:
        # A function in another process raises a class of the same name.
        if _is_exception(expected) and type(error).__name__ == expected.__name__:
            return expected
        raise CheckFailed(
            f"{name} raises {type(error).__name__}: {error}",
            expected=f"raise {expected.__name__}" if _is_exception(expected) else "",
            where=where,
            look_at=line_of_code(error, function),
            kind="exception",
        ) from error
    if _is_exception(expected):
        raise CheckFailed(f"{name} does not raise.", expected=f"raise {expected.__name__}", got=repr(got), where=where)
    if isinstance(got, np.ndarray) and got.ndim == 0:
        got = got[()]  # np.where(a > b, a, b) of numbers
    wanted = bool if isinstance(expected, (bool, np.bool_)) else float
    kind = "True or False" if wanted is bool else "a finite number"
    if got is None:
        blank = getattr(function, "_warplab_blank", False) or is_empty(function)
        raise CheckFailed(
            f"{name} is not written yet: it returns nothing." if blank else f"{name} returns nothing.",
            expected=kind,
            got="None",
            where=where,
            look_at="the return statement"
            + ": print shows a value, return hands it back, on each way through" * (not blank),
            kind="not written" if blank else "wrong type",
        )
    types = (bool, np.bool_) if wanted is bool else (int, float, np.integer, np.floating)
    if not isinstance(got, types) or (wanted is float and isinstance(got, bool)):
        raise wrong_type(
            f"{name} returns the wrong type.",
            expected=kind,
            got=f"{type(got).__name__}: {got!r}",
            where=where,
            look_at="the type of the expression that is returned",
        )
    value = wanted(got)
    if wanted is float and not math.isfinite(value):
        raise CheckFailed(
            f"{name} returns a number that is not finite.",
            expected=kind,
            got=repr(value),
            where=where,
            kind="not finite",
        )
    return value


def _as(got: Any, expected: Any) -> str:
    """Format an answer as the expected one is: 12.0 as 12 where that is a whole number."""
    whole = isinstance(expected, (int, np.integer)) and isinstance(got, float) and got.is_integer()
    return repr(int(got) if whole else got)


def _is_exception(expected: Any) -> bool:
    return isinstance(expected, type) and issubclass(expected, Exception)


def _numbers(expected: list[Any], got: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return both lists without the answers that are exceptions."""
    pairs = [(e, g) for e, g in zip(expected, got, strict=True) if not _is_exception(e)]
    return [e for e, _ in pairs], [g for _, g in pairs]


def _right(got: Any, expected: Any, rtol: float) -> bool:
    if _is_exception(expected):
        return got is expected
    if isinstance(got, bool):
        return got == bool(expected)
    return math.isclose(got, float(expected), rel_tol=rtol, abs_tol=0.0)


def _look_at(expected: list[Any], got: list[Any]) -> str:
    """Return a likely cause, from how the wrong answers relate to the right ones over all inputs."""
    if len(got) > 1 and all(value == got[0] for value in got) and any(value != expected[0] for value in expected):
        same = f"the inputs: the function returned the same value for all {len(got)}. Which of them does it use?"
        units = "\nIf it compares two values, are they in the same unit, with no power of 1000 missing?"
        return same + (units if isinstance(got[0], bool) else "")
    if isinstance(got[0], bool):
        if all(g != bool(e) for g, e in zip(got, expected, strict=True)):
            return "the direction of the comparison: every answer is the opposite of the right one"
        wrong = sum(g != bool(e) for g, e in zip(got, expected, strict=True))
        return f"what is compared: {wrong} of {len(got)} answers {'is' if wrong == 1 else 'are'} wrong"
    ratios = [g / float(e) for g, e in zip(got, expected, strict=True) if e]
    all_but_zeros = bool(ratios) and all(math.isclose(ratio, 1, rel_tol=1e-9) for ratio in ratios)
    if all_but_zeros or not ratios or any(not math.isclose(ratio, ratios[0], rel_tol=1e-9) for ratio in ratios):
        right = sum(math.isclose(g, float(e), rel_tol=1e-9) for g, e in zip(got, expected, strict=True))
        near = _nearly(expected, got)
        if near:
            return near
        if all(math.isclose(g * float(e), 1, rel_tol=1e-9) for g, e in zip(got, expected, strict=True)):
            return "what is divided by what: every answer is 1 divided by the right one"
        if any(expected) and all(float(g) == math.floor(float(e)) for g, e in zip(got, expected, strict=True)):
            return "every answer is the right one rounded down: // rounds down, / does not"
        if all(isinstance(e, (int, np.integer)) and math.ceil(g) == e for g, e in zip(got, expected, strict=True)):
            return "every answer is the right one before it is rounded up"
        if len(got) - right == 1 and len(got) > 4:
            return f"only this input: the other {right} answers are right. What is special about it?"
        if all_but_zeros:
            return f"the inputs whose right answer is 0: the other {len(ratios)} answers are right"
        so_far = f"; {right} of {len(got)} answers are right" if right else ""
        sides = {g > e for g, e in zip(got, map(float, expected), strict=True) if not math.isclose(g, e, rel_tol=1e-9)}
        if right and len(sides) == 1:
            so_far += f", and no wrong one is too {'small' if sides == {True} else 'large'}"
        return f"{_DEPENDS}: the error differs from input to input{so_far}"
    for known, cause in _UNIT_RATIOS:
        if any(math.isclose(ratios[0], ratio, rel_tol=1e-9) for ratio in known):
            return cause
    whole = max(ratios[0], 1 / ratios[0]) if ratios[0] else 0.5
    if len(got) == 1 and abs(whole - round(whole)) > 1e-6:
        return ""  # of one result, a ratio that is no whole number tells nothing
    return f"what is counted: {'the' if len(got) == 1 else 'every'} result is {ratios[0]:.6g} times the right one"


def _unused(table: Sequence[tuple[Mapping[str, Any], Any]], answers: list[Any]) -> str:
    """Name an input that the function ignores: whenever it alone changes, the answer stays, where it should not."""
    rows = list(zip(table, answers, strict=True))
    same: dict[str, set[bool]] = {}
    missed: dict[str, Any] = {}
    for ((one, expected), got), ((other, differently), again) in itertools.combinations(rows, 2):
        changed = [key for key in one if key not in other or not np.array_equal(one[key], other[key])]
        if len(one) > 1 and len(changed) == 1 and one.keys() == other.keys():
            same.setdefault(changed[0], set()).add(got == again)
            if expected != differently:
                missed[changed[0]] = _as(got, expected)
    ignored = [key for key in missed if same[key] == {True}]
    if len(ignored) != 1:
        return ""
    rightly = " as it should" * (missed[ignored[0]] in ("True", "False"))  # a yes can stay though every input is used
    return f"Does it use {ignored[0]}{rightly}? It returned {missed[ignored[0]]} for inputs that differ in it alone."


def _nearly(expected: list[Any], got: list[Any]) -> str:
    """Return a likely cause for whole numbers that are off by their rounding, or by a factor before it; else empty."""
    if len(got) < 2 or not all(
        isinstance(e, (int, np.integer)) and float(g).is_integer() for e, g in zip(expected, got, strict=True)
    ):
        return ""
    pairs = [(float(e), g) for e, g in zip(expected, got, strict=True)]
    off = {g - e for e, g in pairs} - {0.0}
    if len(off) == 1 and abs(min(off)) == 1:
        side = "large" if off == {1.0} else "small"
        wrong = sum(e != g for e, g in pairs)
        return (
            f"off by one: every wrong answer, {wrong} of {len(pairs)}, is too {side} by 1. Is a case missing, a bound "
            "included that is not meant, or something rounded in the wrong direction?"
        )
    if off == {-1.0, 1.0} and all(abs(g) == abs(e) - 1 for e, g in pairs if e != g):
        return "each wrong answer is nearer to 0 by 1: int cuts off, round gives the nearest whole number"
    # With a factor before the rounding, the answer is that many times the right one, give or take the rounding.
    for factor in (2, 4, 8, 1 / 2, 1 / 4, 1 / 8):
        if all(abs(g - factor * e) <= max(1, factor) for e, g in pairs) and max(e for e, _ in pairs) > 8:
            return f"what is counted: every result is about {factor:g} times the right one"
    return ""


def _beyond(expected: list[Any], got: list[Any]) -> str:
    """Say that answers are wrong only where the least or the most is right, and lie beyond it."""
    pairs = [(float(e), g) for e, g in zip(expected, got, strict=True)]
    values = [e for e, _ in pairs]
    wrong = [(e, g) for e, g in pairs if not math.isclose(g, e, rel_tol=1e-9)]
    beyond = [e for e, g in wrong if (e == min(values) and g < e) or (e == max(values) and g > e)]
    if len(wrong) == len(beyond) > 1 and len(pairs) - len(wrong) >= 4 and max(map(values.count, beyond)) > 1:
        ends = " or ".join(f"{end:g}" for end in sorted(set(beyond)))
        return f"only answers that should be {ends} are wrong, and lie beyond: is a limit missing?"
    return ""


def _where_right(table: Sequence[tuple[Mapping[str, Any], Any]], answers: list[Any], rtol: float) -> str:
    """Say which inputs have right answers, if one being a multiple of another, or larger, tells; of a single whole
    number, what comes of the first few."""
    inputs = [arguments for arguments, _ in table]
    names = [name for name, value in inputs[0].items() if all(_is_number(each.get(name)) for each in inputs)]
    if len(inputs[0]) == len(names) == 1 < len(table) and all(type(each[names[0]]) is int for each in inputs):
        columns = [[each[names[0]] for each in inputs], answers, [expected for _, expected in table]]
        some, found, expected = (", ".join(f"{value:.6g}" for value in column[:4]) for column in columns)
        return f"of {some} come {found}, where {expected} are right"
    right = [_right(got, expected, rtol) for (_, expected), got in zip(table, answers, strict=True)]
    for a, b in itertools.permutations(names, 2):
        for said, holds in (("a multiple of", lambda x, y: y and x % y == 0), ("larger than", lambda x, y: x > y)):
            met = [bool(holds(each[a], each[b])) for each in inputs]
            others = [good for good, found in zip(right, met, strict=True) if not found]
            if met.count(True) >= 5 <= len(others) >= 5 * others.count(True) and sum(right) - sum(others) == sum(met):
                rest = f"{sum(others)} of {len(others)}"
                return f"all {sum(met)} answers are right where {a} is {said} {b}; of the others {rest}"
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _call(name: str, arguments: Mapping[str, Any], seed: int | None) -> str:
    call = f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    return call if seed is None else f"{call}, seed {seed}"
