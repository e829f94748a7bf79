"""The names of numba.cuda: each is there, or its absence says why."""

import inspect

import numpy as np
import pytest
from numba import cuda as numba_cuda

from warplab.dropin import numba_cuda as cuda


def test_every_name_is_one_of_numba_cuda_with_the_same_parameters():
    for name in dir(cuda):
        real = getattr(numba_cuda, name)
        ours = getattr(cuda, name)
        if name in cuda.__all__ and inspect.isfunction(real) and name != "event_elapsed_time":
            assert _parameters(ours) == _parameters(real), name


def _parameters(function):
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]


def test_what_a_kernel_calls_is_numba_s_own():
    for name in (
        "grid",
        "threadIdx",
        "shared",
        "local",
        "const",
        "atomic",
        "syncthreads",
        "shfl_sync",
        "float32",
        "laneid",
    ):
        assert getattr(cuda, name) is getattr(numba_cuda, name)


@pytest.mark.parametrize("name", sorted(name for name in dir(numba_cuda) if not name.startswith("_")))
def test_every_name_of_numba_cuda_is_there_or_says_why_not(name):
    missing = object()
    if getattr(cuda, name, missing) is missing:
        with pytest.raises(AttributeError, match=f"cuda.{name} of Numba is not on the simulator: "):
            getattr(cuda, name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("set_memory_manager", "manages its memory itself"),
        ("IpcHandle", "one process"),
        ("driver", "current_context"),
        ("dispatcher", "import numba.cuda.dispatcher"),
        ("simulator", "one Python thread"),
    ],
)
def test_what_is_missing_says_why(name, reason):
    with pytest.raises(AttributeError, match=reason):
        getattr(cuda, name)


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'gird'"):
        cuda.gird(1)


def test_names_imported_from_cuda():
    from warplab.dropin.numba_cuda import float32, grid

    @cuda.jit
    def run(x):
        i = grid(1)
        if i < x.size:
            x[i] = float32(i)

    x = np.zeros(40, np.float32)
    run[2, 32](x)
    np.testing.assert_array_equal(x, np.arange(40))


def test_what_programs_ask_numba_s_modules_for():
    device = cuda.to_device(np.ones(3))
    assert isinstance(device, cuda.devicearray.DeviceNDArray)
    assert isinstance(device, cuda.cudadrv.devicearray.DeviceNDArray)
    assert cuda.devicearray.is_cuda_ndarray(device)
    assert cuda.cudadrv.error.CudaSupportError is numba_cuda.CudaSupportError
    with pytest.raises(AttributeError, match=r"cuda\.cudadrv\.nvvm of Numba is not on the simulator"):
        _ = cuda.cudadrv.nvvm
