"""`called`: what a learner's function returns, or what went wrong."""

from __future__ import annotations

import functools
import sys

import pytest

from warplab.checks import CheckFailed, called


def test_the_result_comes_back():
    assert called(lambda x, y: x - y, "5 and 3", 5, y=3) == 2


def half(x):
    return 1 / x


def forgets(x):
    x += 1


def blank(x):
    """Return twice `x`."""


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (half, "exception", r"half raises ZeroDivisionError: division by zero(.|\n)*line \d+: return 1 / x"),
        (functools.wraps(half)(lambda x: half(x)), "exception", r"half raises(.|\n)*line \d+: return 1 / x"),
        (forgets, "wrong type", "forgets returns nothing."),
        (blank, "not written", "blank is not written yet: it returns nothing."),
    ],
)
def test_a_failure_is_told_with_its_input(function, kind, words):
    with pytest.raises(CheckFailed, match=words) as caught:
        called(function, "x = 0", 0)
    assert caught.value.kind == kind
    assert ("x = 0" in str(caught.value)) is (kind != "not written")


def counts_down(x):
    for _ in range(10_000):
        x -= 1
    return x


def calls_another(x):
    return counts_down(x)


@pytest.mark.parametrize("function", [counts_down, calls_another])
def test_a_loop_without_end_is_one_of_more_lines_than_a_call_may_run(function, monkeypatch):
    assert called(function, "x = 0", 0) == -10_000
    monkeypatch.setattr(sys.modules[called.__module__], "LINES", 20_000)
    with pytest.raises(CheckFailed, match=r"does not end\.(.|\n)*20,000 lines(.|\n)*line \d+: ") as caught:
        called(function, "x = 0", 0)
    assert (caught.value.kind, sys.gettrace()) == ("endless", None)


def test_lines_of_the_library_are_not_counted(monkeypatch):
    monkeypatch.setattr(sys.modules[called.__module__], "LINES", 100)
    assert called(lambda text: functools.reduce(lambda a, b: a, text), "", "x" * 20) == "x"
    assert len(called(lambda n: list(__import__("textwrap").wrap("a " * n, 2)), "", 300)) == 300
