"""Mistakes of a first Numba kernel: each is told what was meant and what to write, in a notebook and by the checks."""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.support.kernel_checks import failure
from warplab import cuda
from warplab.checks.cases import elementwise
from warplab.compile.short_traceback import short_traceback

SUM = elementwise(np.add, ("x", "y"), "out")


@cuda.jit
def slices(x, y, out):
    out[:] = x + y


@cuda.jit
def whole_arrays(x, y, out):
    i = cuda.grid(1)
    z = x + y
    out[i] = z[i]


@cuda.jit
def returns(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        return x[i] + y[i]


@cuda.jit
def numpy_function(x, y, out):
    np.add(x, y, out)


@cuda.jit
def numpy_on_elements(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = np.add(x[i], y[i])


@cuda.jit
def makes_a_list(x, y, out):
    i = cuda.grid(1)
    parts = [x[i], y[i]]
    out[i] = parts[0] + parts[1]


@cuda.jit
def grows_a_list(x, y, out):
    parts = []
    parts.append(x[0])
    out[0] = parts[0]


@cuda.jit
def makes_an_array(x, y, out):
    z = np.zeros(4)
    out[0] = z[0]


@cuda.jit
def unknown_name(x, y, out):
    out[0] = undefined_name  # noqa: F821


MISTAKES = [
    (slices, "out[:] = x + y\n", "i = cuda.grid(1)"),
    (whole_arrays, "x + y\n", "write x[i] + y[i]"),
    (returns, "return x[i] + y[i]\n", "out[i] = x[i] + y[i]"),
    (numpy_function, "np.add(x, y, out)\n", "write the operator, on elements: x[i] + y[i]"),
    (numpy_on_elements, "np.add(x[i], y[i])\n", "write the operator, on elements: x[i] + y[i]"),
    (makes_a_list, "[x[i], y[i]]\n", "cuda.local.array"),
    (grows_a_list, "[]\n", "cuda.local.array"),
    (makes_an_array, "np.zeros(4)\n", "cuda.shared.array"),
]


@pytest.mark.parametrize(("kernel", "code", "advice"), MISTAKES, ids=lambda value: getattr(value, "__name__", None))
def test_a_check_says_what_was_meant(kernel, code, advice):
    error = failure(kernel, SUM)
    assert error.kind == "compile"
    assert f": {code}" in error.look_at
    assert advice in error.look_at


def test_a_notebook_says_it_before_numba_s_own_message():
    InteractiveShell.instance()
    x, y, out = np.ones((3, 32), np.float32)
    with pytest.raises(Exception, match="return_value") as caught:
        returns[1, 32](x, y, out)
    lines = short_traceback(caught.value)
    said = next(number for number, line in enumerate(lines) if "A kernel returns nothing" in line)
    assert "TypingError" in lines[said + 1]


def test_other_errors_are_left_alone():
    assert "undefined_name" in failure(unknown_name, SUM).got
    assert failure(unknown_name, SUM).look_at == ""
