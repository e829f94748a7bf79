"""The folders of CUDA's headers."""

import pytest

from warplab.compile import headers
from warplab.compile.nvrtc import compile_cuda


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
