"""The arrays after a launch: which values pass, and that every array is checked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernel_checks import INDEX, PRODUCT, cuda_kernel, failure
from warplab import checks
from warplab.checks import Case
from warplab.checks.cases import distinct


@pytest.mark.parametrize("expected", [np.nan, 1.0])
@pytest.mark.parametrize("tolerance", [{}, {"rtol": 1e-3, "atol": 1e9}])
def test_nan_never_passes(expected, tolerance):
    def make_case(rng, n):
        return Case({"c": None}, {"c": np.full(n, expected, np.float32)})

    kernel = cuda_kernel('c[threadIdx.x] = nanf("");', "float* c")
    assert "is wrong in 8 of 8 elements" in str(failure(kernel, make_case, sizes=[8], launches=[(1, 8)], **tolerance))


def test_tolerance():
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i] * 1.001f;")
    checks.kernel(kernel, PRODUCT, rtol=0.01)
    assert "is wrong" in str(failure(kernel, PRODUCT, rtol=1e-4))
    assert "is wrong" in str(failure(kernel, PRODUCT))


def test_infinity_is_close_to_nothing():
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] / 0.0f;")
    assert "= inf" in str(failure(kernel, PRODUCT, rtol=0.5, atol=1e30))


def test_every_array_is_checked_not_only_the_output():
    kernel = cuda_kernel(INDEX + "if (i < n) { c[i] = a[i] * b[i]; const_cast<float*>(b)[i] = 0; }")
    error = failure(kernel, PRODUCT)
    assert error.problem == "f: the input b was modified."
    assert error.got == "b[0] = 0.0"


def test_an_array_may_be_input_and_output():
    def make_case(rng, n):
        a = distinct(rng, n)
        return Case({"a": a, "n": np.int32(n)}, {"a": a + np.float32(1)})

    parameters = "float* a, int n"
    checks.kernel(cuda_kernel(INDEX + "if (i < n) a[i] += 1;", parameters), make_case)
    error = failure(cuda_kernel(INDEX + "if (i < n - 1) a[i] += 1;", parameters), make_case)
    assert "a is wrong in 1 of 1000 elements, the first at index 999" in str(error)


def test_two_outputs_of_two_dimensions():
    def make_case(rng, n):
        a = distinct(rng, n * n).reshape(n, n)
        return Case({"a": a, "t": None, "s": None}, {"t": a.T.copy(), "s": a.sum(axis=1, keepdims=True)})

    body = (
        "int n = blockDim.x, i = threadIdx.x; float sum = 0;"
        "for (int j = 0; j < n; ++j) { t[j * n + i] = a[i * n + j]; sum += a[i * n + j]; } s[i] = sum;"
    )
    launch = {"sizes": [3, 8], "launches": [lambda n: (1, n)], "rtol": 1e-5}
    checks.kernel(cuda_kernel(body, "const float* a, float* t, float* s"), make_case, **launch)
    wrong = cuda_kernel(body + "if (i == 5) s[5] += 1;", "const float* a, float* t, float* s")
    assert "s is wrong in 1 of 8 elements, the first at [5, 0]" in str(failure(wrong, make_case, **launch))


def bytes_in_order(rng, n):
    return Case({"c": None, "n": np.int32(n)}, {"c": np.arange(n).astype(np.int8)})


def bytes_kernel(body):
    return cuda_kernel(INDEX + body, "signed char* c, int n")


def test_a_right_byte_may_look_like_the_poison():
    """One of 256 does: a kernel that stored it is right."""
    checks.kernel(bytes_kernel("if (i < n) c[i] = i;"), bytes_in_order, sizes=[256], launches=[(4, 64)])


@pytest.mark.parametrize("body", ["if (i < n - 1) c[i] = i;", "if (i < n) c[i] = i < n - 1 ? i : -91;"])
def test_of_a_wrong_byte_that_looks_like_the_poison_nobody_can_tell(body):
    error = failure(bytes_kernel(body), bytes_in_order, sizes=[256], launches=[(4, 64)])
    assert "c is wrong in 1 of 256 elements" in error.problem
    assert error.got == "c[255] = -91, as in memory before the launch"


def test_many_bytes_that_look_like_the_poison_were_never_written():
    error = failure(bytes_kernel("if (i < 200) c[i] = i;"), bytes_in_order, sizes=[256], launches=[(4, 64)])
    assert "only the first 200 of 256 elements were written" in error.problem


@pytest.mark.parametrize(("factor", "rtol"), [(3, 0), (5, 0), (3.0001, 0), (3.0001, 1e-3)])
def test_a_mistake_that_a_case_knows_is_named_within_the_tolerance(factor, rtol):
    kernel = cuda_kernel(f"{INDEX} if (i < n) c[i] = {factor} * a[i];", "const float* a, float* c, int n")

    def make_case(rng, n):
        a = rng.integers(1, 100, n).astype(np.float32)
        return Case({"a": a, "c": None, "n": np.int32(n)}, {"c": 2 * a}, {"the factor": lambda: 3 * a})

    said = str(failure(kernel, make_case, rtol=rtol))
    assert ("the factor" in said) == (factor == 3 or bool(rtol))


def test_a_mistake_of_another_output_is_passed_over():
    kernel = cuda_kernel(f"{INDEX} if (i < n) c[i] = 3 * a[i];", "const float* a, float* c, int n")

    def make_case(rng, n):
        a = rng.integers(1, 100, n).astype(np.float32)
        known = {"another output": lambda: np.ones((2, 3)), "the factor": lambda: 3 * a}
        return Case({"a": a, "c": None, "n": np.int32(n)}, {"c": 2 * a}, known)

    assert "the factor" in str(failure(kernel, make_case))
