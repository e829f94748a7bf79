"""What a notebook says of kernels that are not there, or are launched with the other language's syntax."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import cp, cuda
from warplab.dropin import missing_names
from warplab.dropin.missing_names import explanation


def test_a_kernel_of_a_cell_that_did_not_compile(monkeypatch):
    monkeypatch.setattr(missing_names, "not_compiled", {"scale"})
    assert "its cell" not in explanation("scale", "scale((1,), (32,), (x,))", [])
    assert "did" not in explanation("other", "y = other + 1", [])
    assert "scale was not compiled" in explanation("scale", "scale((1,), (32,), (x,))", [])


def test_a_renamed_kernel():
    said = explanation("multiply_cuda", "checks.kernel(multiply_cuda, product)", ["multiply", "multiply_cud"])
    assert "but a kernel multiply_cud. Has the cell that defines multiply_cuda been run" in said
    assert "If renamed: here it is called multiply_cuda" in said


def test_a_cell_that_was_not_run():
    assert explanation("pack", "pack[1, 32](x)", ["meet"]).startswith("There is no pack yet. Run the cell")
    assert explanation("pack", "checks.examples(pack, [])", []).startswith("There is no pack yet.")


def test_ordinary_names_are_python_s_business():
    assert explanation("n", "print(n + 1)", ["multiply"]) == ""


def test_numba_s_kernel_called_like_a_kernel_of_cupy():
    @cuda.jit
    def scale(x, factor):
        x[0] *= factor

    for arguments in (((1,), (32,), (np.ones(1), 2.0)), (np.ones(1), 2.0)):
        with pytest.raises(ValueError, match=r"scale is a Numba kernel.*scale\[blocks, threads\]\(x, factor\)"):
            scale(*arguments)


def test_a_kernel_of_cuda_called_like_numba_s():
    kernel = cp.RawKernel('extern "C" __global__ void scale(float* x) { x[0] = 2; }', "scale")
    x = cp.zeros(1, dtype=np.float32)
    for launch in (
        lambda: kernel[1, 32](x),
        lambda: kernel((1,), (32,)),
        lambda: kernel((1,), (32,), x, 2),
    ):
        with pytest.raises(TypeError, match=r"scale is a kernel in CUDA C\+\+, .*scale\(\(blocks,\), \(threads,\), "):
            launch()
    kernel((1,), (1,), (x,))
    assert x.get()[0] == 2
