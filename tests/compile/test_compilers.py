"""CUDA C++ and Python to PTX, and what a learner sees when that fails."""

import re

import numpy as np
import pytest

from warplab.compile import errors, headers, source_files
from warplab.compile.errors import CompileError
from warplab.compile.numba_compiler import compile_numba
from warplab.compile.nvrtc import compile_cubin, compile_cuda, compile_cuda_program

SCALE = """extern "C" __global__ void scale(float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
"""


def lines_of(ptx):
    return sorted({int(line) for line in re.findall(r"^\s*\.loc\s+1\s+(\d+)", ptx, re.MULTILINE)})


def test_cuda_becomes_ptx_with_the_lines_and_the_name_of_its_file():
    ptx = compile_cuda(SCALE, "scale.cu")
    assert ".visible .entry scale(" in ptx
    assert ".target sm_90" in ptx
    assert re.findall(r'\.file\s+1\s+"(.*)"', ptx) == ["scale.cu"]
    assert lines_of(ptx) == [1, 2, 3, 4]


def test_architecture_and_options_reach_the_compiler():
    assert ".target sm_80" in compile_cuda(SCALE, arch=80)
    source = 'extern "C" __global__ void f(int* x) { x[0] = VALUE; }'
    assert "12345" in compile_cuda(source, options=("-DVALUE=12345",))
    with pytest.raises(CompileError, match="unrecognized option --bogus"):
        compile_cuda(source, options=("--bogus",))


def test_an_option_of_the_learner_replaces_the_bench_s_own():
    source = '#if __cplusplus >= 202002L\nextern "C" __global__ void f() {}\n#endif'
    assert ".entry f" not in compile_cuda(source)
    assert ".entry f" in compile_cuda(source, options=("--std=c++20",))


@pytest.mark.parametrize(
    "header",
    [
        "mma.h",
        "cuda_fp16.h",
        "cuda_bf16.h",
        "cooperative_groups.h",
        "cuda_pipeline.h",
        "cuda/std/cstdint",
        "cuda/barrier",
    ],
)
def test_headers_of_the_pip_packages_are_found(header):
    assert ".entry f" in compile_cuda(f'#include <{header}>\nextern "C" __global__ void f() {{}}')


def test_headers_of_a_toolkit_come_after_those_of_the_packages(tmp_path, monkeypatch):
    found = headers.include_folders.__wrapped__
    monkeypatch.delenv("CUDA_PATH", raising=False)
    packages = found()
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert found() == packages, "a toolkit without headers"
    (tmp_path / "include").mkdir()
    assert found() == (*packages, str(tmp_path / "include"))


def test_name_expressions_instantiate_templates_and_undo_mangling():
    source = "template <typename T> __global__ void fill(T* x, T v) { x[threadIdx.x] = v; }\n__global__ void g() {}"
    program = compile_cuda_program(source, name_expressions=("fill<float>", "fill<double>", "g"))
    assert set(program.names) == {"fill<float>", "fill<double>", "g"}
    for entry in program.names.values():
        assert f".entry {entry}" in program.ptx


def test_a_cubin_is_machine_code():
    assert compile_cubin(SCALE, arch=90)[:4] == b"\x7fELF"


def test_results_are_cached():
    before = compile_cuda_program.cache_info().hits
    compile_cuda(SCALE, "cached.cu")
    compile_cuda(SCALE, "cached.cu")
    assert compile_cuda_program.cache_info().hits == before + 1


def test_a_compile_error_shows_file_line_source_and_caret():
    with pytest.raises(CompileError) as caught:
        compile_cuda(SCALE.replace("threadIdx", "threadIdy"), "cell [5]")
    lines = str(caught.value).splitlines()
    assert lines[0] == 'cell [5], line 2: error: identifier "threadIdy" is undefined'
    assert lines[1].strip() == "int i = blockIdx.x * blockDim.x + threadIdy.x;"
    assert lines[2].index("^") == lines[1].index("threadIdy")
    assert "cell [5](2): error" in caught.value.log


def test_many_errors_are_cut_and_warnings_left_out_beside_them():
    body = "".join(f"  x{i} = 1;\n" for i in range(7))
    with pytest.raises(CompileError) as caught:
        compile_cuda(f'extern "C" __global__ void f() {{\n  int unused;\n{body}}}')
    text = str(caught.value)
    assert text.count("error:") == errors.MOST_ERRORS
    assert text.endswith("4 more errors")
    assert "warning" not in text


def test_functions_of_a_header_that_do_not_match_are_left_out():
    source = """\
#include <mma.h>
using namespace nvcuda::wmma;
__device__ void mine(int x, int y);
extern "C" __global__ void f() {
    __shared__ alignas(32) half tile[16][16];
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    load_matrix_sync(a, tile, 16);
    mine(1);
}"""
    with pytest.raises(CompileError) as caught:
        compile_cuda(source)
    text = str(caught.value)
    assert "half [16][16]" in text
    assert "declarations in mma.hpp matches" in text
    assert "&tile[0][0]" in text
    assert "too few arguments" in text
    assert "/crt/" not in text
    assert len(text.splitlines()) < 15


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("#include <stdio.h>\n__global__ void f() {}", "no host headers"),
        ("int twice(int x) { return 2 * x; }", "__device__ in front"),
    ],
)
def test_common_mistakes_get_a_hint(source, hint):
    with pytest.raises(CompileError, match=hint):
        compile_cuda(source)


def test_warnings_of_a_successful_compilation_are_kept():
    program = compile_cuda_program('extern "C" __global__ void f() {\n  int unused;\n}', "w.cu")
    assert program.log.startswith("w.cu, line 2: warning")


def test_a_missing_nvrtc_is_reported_with_the_doctor(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    monkeypatch.delattr("cuda.bindings.nvrtc", raising=False)
    with pytest.raises(errors.CompilerNotFound, match="doctor"):
        compile_cuda('extern "C" __global__ void never_compiled_before() {}')


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
    assert '"test_compilers.py"' in labelled
    assert texts["test_compilers.py"].splitlines()[first] == "        i = cuda.grid(1)"


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


def test_files_of_one_base_name_stay_apart():
    ptx = '\t.file\t1 "/a/k.cu"\n\t.file\t2 "/b/k.cu"\n\t.file\t3 "given"\n'
    labelled, texts = source_files.label_files(ptx, {"given": "text"})
    assert list(texts) == ["k.cu", "b/k.cu", "given"]
    assert texts["given"] == "text"
    assert '.file\t2 "b/k.cu"' in labelled


def test_half_precision_arguments_compile():
    from numba.cuda import types

    def add(x, y):
        x[0] = x[0] + y

    ptx, _ = compile_numba(add, (types.float16[::1], types.float16))
    assert np.float16(0).nbytes == 2
    assert "add" in ptx
