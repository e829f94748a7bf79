"""Comparisons in a chain, which Python and C++ read differently: told in place of a guard that is missing."""

from __future__ import annotations

import pytest

from tests.support.kernel_checks import INDEX, PRODUCT, cuda_kernel, failure
from warplab.compile.cuda_mistakes import chained


@pytest.mark.parametrize(
    ("guard", "read"),
    [
        ("0 <= i < n", "C++ reads (0 <= i) < n, which compares true or false, 1 or 0, with n:"),
        ("0<=i<n", "C++ reads (0<=i) < n,"),
        ("-1 < i + 0 <= n - 1", "C++ reads (-1 < i + 0) <= n,"),
        ("0 <= int(threadIdx.x) < n && true", "C++ reads (0 <= int(threadIdx.x)) < n,"),
    ],
)
def test_a_chain_is_told_in_place_of_a_missing_guard(guard, read):
    error = failure(cuda_kernel(f"{INDEX}\n  // 0 <= i < n\n  if ({guard}) c[i] = a[i] * b[i];"), PRODUCT)
    assert "reaches past the end of" in error.problem
    line, said = error.look_at.split("\n")
    assert line == f"line 3: if ({guard}) c[i] = a[i] * b[i]; }}"
    assert said.startswith(read)


@pytest.mark.parametrize(
    "code",
    [
        '// 0 <= i < n\n/* 0 <= j\n < n */ if (i < n) printf("0 <= i < n");',
        "if (0 <= i && i < n) c[i] = a[i] < b[i] ? 0 : 1;",
        "for (int k = 0; k < n; k++) if (k < 4) m[k] <<= 1;",
        "if (i <= n << 2 || (i < n) == (j < m) || min(i < n, j < m)) x = i < n ? j < m : k;",
        "array<array<int, 3>, 4> a; v<v<int>> b; static_cast<int>(i) < n;",
        "template <int A> __device__ bool f(int a) { return a < A; }",
    ],
)
def test_other_comparisons_are_none(code):
    assert chained(code) == ""
