"""Python kernels to PTX."""

import re

import numpy as np
import pytest

from warplab.compile import source_files
from warplab.compile.numba_compiler import compile_numba


def lines_of(ptx):
    return sorted({int(line) for line in re.findall(r"^\s*\.loc\s+1\s+(\d+)", ptx, re.MULTILINE)})


def test_numba_kernels_compile_without_a_gpu_and_keep_their_name_and_lines():
    from numba.cuda import types

    from warplab.dropin import numba_cuda as cuda

    def double(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    ptx, entry = compile_numba(double, (types.float32[::1],))
    assert entry == "double"
    assert ".visible .entry double(" in ptx
    assert "_ZN" not in ptx.split(".entry double(")[1]
    first = double.__code__.co_firstlineno
    assert [line for line in lines_of(ptx) if line] == [first, first + 1, first + 2, first + 3]  # 0: no line
    labelled, texts = source_files.label_files(ptx)
    assert '"test_numba_compiler.py"' in labelled
    assert texts["test_numba_compiler.py"].splitlines()[first] == "        i = cuda.grid(1)"


def test_numba_s_own_errors_come_through():
    from numba.cuda import types
    from numba.cuda.core.errors import TypingError

    def wrong(x):
        x[0] = no_such_name  # noqa: F821

    with pytest.raises(TypingError, match="no_such_name"):
        compile_numba(wrong, (types.float32[::1],))


def test_fastmath_is_passed_on():
    from numba.cuda import types

    def divide(x):
        x[0] = x[0] / x[1]

    assert "div.approx" in compile_numba(divide, (types.float32[::1],), fastmath=True)[0]
    assert "div.rn.f32" in compile_numba(divide, (types.float32[::1],))[0]


def test_half_precision_arguments_compile():
    from numba.cuda import types

    def add(x, y):
        x[0] = x[0] + y

    ptx, _ = compile_numba(add, (types.float16[::1], types.float16))
    assert np.float16(0).nbytes == 2
    assert "add" in ptx
