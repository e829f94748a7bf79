"""`called`: what a learner's function returns, or what went wrong."""

from __future__ import annotations

import functools

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
