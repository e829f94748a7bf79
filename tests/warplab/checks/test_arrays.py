"""The check of an array: type, shape, values."""

from __future__ import annotations

import re

import numpy as np
import pytest

from warplab import checks

WANTED = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)


def test_array_that_is_right(capsys):
    checks.array(WANTED.copy(), WANTED, name="c")
    checks.array(np.full((), 2.5), np.full((), 2.5))
    checks.array(np.zeros((0, 3)), np.zeros((0, 3)))
    checks.array(WANTED * np.float32(1 + 1e-6), WANTED, rtol=1e-5)
    checks.array(np.array([np.inf, -np.inf]), np.array([np.inf, -np.inf]))
    assert "c: right, an array of float32, shape (3, 4).\n" in capsys.readouterr().out


def test_array_on_the_device():
    from warplab import cp, cuda

    checks.array(cuda.to_device(WANTED), WANTED)
    checks.array(cp.asarray(WANTED), WANTED)


class EqualsEverything(np.ndarray):
    def __array_ufunc__(self, *_, **__):
        return np.bool_(True)


@pytest.mark.parametrize(
    ("got", "kind", "message"),
    [
        (WANTED.tolist(), "wrong type", "c is not an array"),
        (WANTED.view(EqualsEverything), "wrong type", "c is not an array"),
        (WANTED[0], "wrong type", "c has the wrong shape"),  # would broadcast
        (WANTED.reshape(1, 3, 4), "wrong type", "c has the wrong shape"),
        (WANTED.astype(np.float64), "wrong type", "c has the wrong dtype"),
        (np.full_like(WANTED, np.nan), "not finite", "c is not finite at [0, 0]"),
        (np.full_like(WANTED, np.inf), "not finite", "c is not finite at [0, 0]"),
        (WANTED + np.float32(0.5), "wrong result", "c is wrong in 12 of 12 elements, the first at [0, 0]"),
    ],
)
def test_array_that_is_wrong(got, kind, message):
    with pytest.raises(checks.CheckFailed, match=re.escape(message)) as caught:
        checks.array(got, WANTED, rtol=0.1, atol=0.01, name="c")
    assert caught.value.kind == kind


@pytest.mark.parametrize("expected", [np.nan, np.inf])
def test_not_even_nan_is_nan_and_infinity_is_no_number(expected):
    for got in {np.nan, 1.0, -np.inf}:
        with pytest.raises(checks.CheckFailed):
            checks.array(np.array([got]), np.array([expected]), rtol=1.0, atol=1e300)
