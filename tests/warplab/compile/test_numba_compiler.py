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


def test_a_kernel_whose_variables_nvvm_cannot_place_compiles_with_its_lines():
    from numba.cuda import types

    from warplab.dropin import numba_cuda as cuda

    def confusion(scores, labels, matrix):
        counts = cuda.shared.array(256, types.int32)
        classes, me = scores.shape[1], cuda.threadIdx.x
        for cell in range(me, classes * classes, cuda.blockDim.x):
            counts[cell] = 0
        cuda.syncthreads()
        for i in range(cuda.grid(1), labels.size, cuda.gridsize(1)):
            highest = scores[i, 0]
            for c in range(1, classes):
                highest = max(highest, scores[i, c])
            best = 0
            while scores[i, best] != highest:
                best += 1
            if labels[i] > -1:
                cuda.atomic.add(counts, labels[i] * classes + best, 1)
        cuda.syncthreads()
        for cell in range(me, classes * classes, cuda.blockDim.x):
            cuda.atomic.add(matrix, (cell // classes, cell % classes), counts[cell])

    arrays = types.float32[:, ::1], types.int32[::1], types.int32[:, ::1]
    ptx, _ = compile_numba(confusion, arrays, arch=90)
    first = confusion.__code__.co_firstlineno
    assert {first + 9, first + 11, first + 14} <= set(lines_of(ptx))


def test_a_kernel_that_is_only_described_yet_compiles():
    from numba.cuda import types

    def to_be_written(x):
        """Add one to each element."""

    assert compile_numba(to_be_written, (types.float32[::1],), arch=90)[1] == "to_be_written"


def test_what_nvvm_refuses_is_one_error_without_the_compilers_own_lines(monkeypatch):
    from numba.cuda import types
    from numba.cuda.codegen import CUDACodeLibrary

    from warplab.compile.numba_internals import nvvmError

    def store(x):
        x[0] = 1

    code = CUDACodeLibrary.llvm_strs.fget
    wrong = property(lambda library: [text + "\ndefine void @f() { ret i32 0 }\n" for text in code(library)])
    monkeypatch.setattr(CUDACodeLibrary, "llvm_strs", wrong)
    with pytest.raises(nvvmError, match="ERROR_INVALID_IR") as caught:
        compile_numba(store, (types.float32[::1],))
    assert caught.value.__context__ is None
    assert caught.value._render_traceback_()[-1] == "nvvmError: ERROR_INVALID_IR (6)"


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
