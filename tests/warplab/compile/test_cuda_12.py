"""CUDA 12.9's compilers, the last for V100s, in place of 13.0's: their PTX for capability 7.0 runs in the simulator.

Their wheels are in no pinned set; `.github/workflows/newest.yml` installs them.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warplab.running.programs import COURSE

PROGRAM = """
import numpy as np
from cuda.bindings import nvrtc

from warplab.compile.nvrtc import compile_cubin, compile_cuda
from warplab.launch.kernel_source import PtxSource
from warplab.launch.simulate import simulate

assert nvrtc.nvrtcVersion()[1:] == (12, 9), nvrtc.nvrtcVersion()
SUM = r'''
extern "C" __global__ void sums(const float* x, float* out, int n) {
    __shared__ float parts[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float sum = i < n ? x[i] : 0;
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (!lane) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 8) {
        sum = parts[lane];
        for (int step = 4; step; step /= 2) sum += __shfl_down_sync(0xff, sum, step);
        if (!lane) atomicAdd(out, sum);
    }
}
'''
PRODUCT = r'''
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void product(const __half* a, const __half* b, float* c) {
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, row_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0);
    load_matrix_sync(left, a, 16);
    load_matrix_sync(right, b, 16);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}
'''
rng = np.random.default_rng(70)
ptx = compile_cuda(SUM, arch=70)
assert ".target sm_70" in ptx, ptx[:300]
x, out = rng.integers(-9, 9, 1000).astype(np.float32), np.zeros(1, np.float32)
simulate(PtxSource(ptx), 4, 256, (x, out, np.int32(1000)))
assert out[0] == x.sum(), (out, x.sum())
a, b = (rng.integers(-4, 4, (16, 16)).astype(np.float16) for _ in range(2))
c = np.zeros((16, 16), np.float32)
simulate(PtxSource(compile_cuda(PRODUCT, arch=70)), 1, 32, (a, b, c))
np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
assert compile_cubin(PRODUCT, arch=70)[:4] == b"\\x7fELF"  # for a V100: drivers from branch 525 on load it
"""


MLIR = """
import numpy as np
from numba_cuda_mlir import tools

from warplab.dropin import numba_cuda_mlir as simulated

simulated.install()
tools._cached_cc = (7, 0)  # what it would ask a V100 for
from numba_cuda_mlir import cuda


@cuda.jit
def add(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, i % 4, x[i])


x, out = np.arange(64, dtype=np.float32), np.zeros(4, np.float32)
add[2, 32](x, out)
np.testing.assert_array_equal(out, x.reshape(16, 4).sum(0))
(ptx,) = add.inspect_asm().values()
assert ".target sm_70" in ptx, ptx[:300]
"""
CUDA_12 = {
    "nvidia-cuda-nvrtc-cu12": ("cuda_nvrtc/lib/libnvrtc.so.12", "cuda_nvrtc/lib/libnvrtc-builtins.so.12.9"),
    "nvidia-cuda-nvcc-cu12": ("cuda_nvcc/nvvm/lib64/libnvvm.so",),
    "nvidia-nvjitlink-cu12": ("nvjitlink/lib/libnvJitLink.so.12",),
}


def libraries(package: str) -> list[str]:
    """Return where the libraries of a wheel for CUDA 12.9 are; skip the test without it."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or ():
        if all(Path(folder, name).exists() for name in CUDA_12[package]):
            return [str(Path(folder, name)) for name in CUDA_12[package]]
    pytest.skip(f"needs {package}==12.9.*")


def run(text: str, packages: list[str], folder: Path) -> None:
    """Run a program with libraries of CUDA 12.9 in place of 13.0's."""
    preloaded = " ".join(path for package in packages for path in libraries(package))
    known = {"LD_PRELOAD": preloaded, "PYTHONPATH": str(COURSE), "WARPLAB_BACKEND": "simulator"}
    (folder / "program.py").write_text(text)
    command = [sys.executable, str(folder / "program.py")]
    ran = subprocess.run(command, env=os.environ | known, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_cuda_cpp_for_a_v100_compiles_and_runs(tmp_path):
    run(PROGRAM, ["nvidia-cuda-nvrtc-cu12"], tmp_path)


def test_numba_cuda_mlir_for_a_v100_compiles_and_runs(tmp_path):
    pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is an extra: pip install numba-cuda-mlir")
    run(MLIR, ["nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12"], tmp_path)
