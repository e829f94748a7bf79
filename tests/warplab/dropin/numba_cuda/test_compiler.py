"""numba.cuda's functions that only compile."""

import numba

from warplab.dropin import numba_cuda as cuda


def test_ptx_of_device_functions():
    def half(x):
        return x / 2

    ptx, result = cuda.compile_ptx(half, (numba.float32,), device=True)
    assert str(result) == "float64"
    assert ".target sm_90" in ptx
    assert ".target sm_80" in cuda.compile_ptx(half, (numba.float32,), device=True, cc=(8, 0))[0]
    for compile in (cuda.compile, cuda.compile_for_current_device):
        assert ".target sm_90" in compile(half, (numba.float32,))[0]
    assert ".target sm_90" in cuda.compile_ptx_for_current_device(half, (numba.float32,), device=True)[0]
