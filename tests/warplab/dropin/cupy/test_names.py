"""CuPy's names and parameters."""

import inspect

import cupy
import cupyx
import cupyx.profiler
import numpy as np
import pytest

from warplab.dropin import cupy as cp
from warplab.dropin import cupyx as cupyx_stand_in
from warplab.dropin.cupy._core.missing import LIST


@pytest.fixture
def a():
    return cp.asarray(np.arange(6, dtype=np.float32))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (cp, cupy),
        (cp.ndarray, cupy.ndarray),
        (cp.cuda, cupy.cuda),
        (cp.cuda.device, cupy.cuda.device),
        (cp.cuda.memory, cupy.cuda.memory),
        (cp.cuda.nvtx, cupy.cuda.nvtx),
        (cp.cuda.stream, cupy.cuda.stream),
        (cp.fft, cupy.fft),
        (cp.fft.config, cupy.fft.config),
        (cp.linalg, cupy.linalg),
        (cp.random, cupy.random),
        (cp.random.Generator, cupy.random.Generator),
        (cp.random.RandomState, cupy.random.RandomState),
        (cp.testing, cupy.testing),
        (cp.cuda.MemoryPool, cupy.cuda.MemoryPool),
        (cupyx_stand_in, cupyx),
        (cupyx_stand_in.profiler, cupyx.profiler),
    ],
)
def test_every_name_is_one_of_cupy(ours, theirs):
    own = {"DeviceArray", "annotations", "np", "lift", "sys", "types", "functools", "Callable", "Buffer", "Iterator"}
    own |= {"BorrowedBuffer", "NamedTuple", "NoReturn", "contextlib", "lift_in_place", "simulated_device", "threading"}
    own |= {"SECONDS", "BenchmarkResult", "Device", "ufunc", "time", "using_allocator", "jit"} - set(dir(theirs))
    own |= {"ndarray"} if ours is not cp else set()  # imported there
    names = {n for n in dir(ours) if not n.startswith("_")} - own
    assert len(names) > 2
    assert [n for n in sorted(names) if not hasattr(theirs, n)] == []


def test_python_functions_take_cupy_s_parameters():
    checked = 0
    for name in ("array", "asarray", "asnumpy", "empty", "zeros", "ones", "full", "copyto", "empty_like"):
        theirs = list(inspect.signature(getattr(cupy, name)).parameters)
        ours = list(inspect.signature(getattr(cp, name)).parameters)
        assert [p for p in ours if p not in theirs] == [], name
        assert theirs[: len(ours)][0] == ours[0], name
        checked += 1
    assert checked == 9


@pytest.mark.parametrize(
    ("space", "name", "instead"),
    [
        (cp, "poly1d", "give the coefficients to cupy.polyval"),
        (cp.cuda, "Graph", "launch the kernels one after another"),
        (cp.fft.config, "set_cufft_callbacks", ""),
        (cp.random, "mtrand", None),
        (cp.testing, "parameterize", "write the test with pytest.mark.parametrize"),
        (cupyx_stand_in.jit, "rawkernel", "write the kernel with numba.cuda or as a cupy.RawKernel"),
        (cp, "vectorize", "write a cupy.ElementwiseKernel"),
    ],
)
def test_what_is_missing_says_what_to_do(space, name, instead):
    message = "CuPy has none of that name" if instead is None else f"on a GPU all of CuPy is there.*{instead}"
    with pytest.raises(AttributeError, match=message):
        getattr(space, name)


def test_the_list_of_names_is_the_installed_cupy_s():
    first = LIST.read_text().splitlines()[0]
    assert f"CuPy {cp.__version__}," in first
    assert (
        first == f"# The public names of CuPy {cupy.__version__}, by module, from python -m evidence.cupy_names.known."
    )


def test_get_array_module(a):
    assert cp.get_array_module(np.ones(1), a) is cp
    assert cp.get_array_module(np.ones(1)) is np
