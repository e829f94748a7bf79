"""CUDA C++ to PTX and machine code."""

import re

import pytest

from warplab.compile.errors import CompileError
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


def test_warnings_of_a_successful_compilation_are_kept():
    program = compile_cuda_program('extern "C" __global__ void f() {\n  int unused;\n}', "w.cu")
    assert program.log.startswith("w.cu, line 2: warning")
