"""The import hook, in Pythons of their own: who gets a stand-in, who the library, and what is refused."""

from __future__ import annotations

import textwrap
import types

import pytest

from tests.warplab.running.programs import COURSE, python
from warplab.dropin import imports

OF_LIBRARY = {
    "triton": """
import triton
import triton.language as tl

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def launch(x):
    double[(1,)](x, x.size, BLOCK=128)
""",
    "numba_cuda_mlir": """
from numba_cuda_mlir import cuda

@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2

def launch(x):
    double[1, 128](x)
""",
}
INSTALL = "import warplab; warplab.install()\n"


def _run(tmp_path, text: str, **variables: str) -> str:
    ran = python(tmp_path, "-c", INSTALL + textwrap.dedent(text), **variables)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("from numba import cuda", "cuda.__spec__.name"),
        ("import numba", "numba.cuda.__spec__.name"),
        ("import numba.cuda", "numba.cuda.__spec__.name"),
        ("import numba.cuda as c", "c.__spec__.name"),
        ("import numba.core.types, numba.cuda", "numba.cuda.__spec__.name"),
        ("from numba.cuda import jit", "jit.__module__"),
        ("import importlib; c = importlib.import_module('numba.cuda')", "c.__spec__.name"),
        ("import importlib; c = importlib.import_module('numba').cuda", "c.__spec__.name"),
        ("c = __import__('numba').cuda", "c.__spec__.name"),
        ("from numba.cuda.random import create_xoroshiro128p_states as c", "c.__module__"),
        ("import cupy as cp", "cp.__spec__.name"),
        ("import cupy.cuda.texture as c", "c.__spec__.name"),
        ("from cupy import cuda", "cuda.__spec__.name"),
    ],
)
def test_a_program_gets_the_stand_in_however_it_imports(tmp_path, statement: str, value: str) -> None:
    assert _run(tmp_path, f"{statement}\nprint({value})").startswith("warplab.dropin.")


def test_stand_ins_have_the_names_of_what_they_stand_for(tmp_path) -> None:
    text = """
        import cupy, cupyx, numba.cuda
        print(cupy.__name__, cupyx.__name__, numba.cuda.__name__, cupy.get_array_module(cupy.zeros(1)) is cupy)
    """
    assert _run(tmp_path, text).split() == ["cupy", "cupyx", "numba.cuda", "True"]


def test_what_fails_in_a_stand_in_is_not_taken_for_missing() -> None:
    own, standin = types.ModuleType("library"), types.ModuleType("stand_in")
    vars(own).update(lacking="the library's", failing="the library's")
    merged = imports._Merged(own, standin)
    assert merged.lacking == "the library's"
    vars(standin)["__getattr__"] = lambda name: getattr(None, f"no {name}")
    with pytest.raises(AttributeError, match="no failing"):
        merged.failing  # noqa: B018


def test_what_is_no_kernel_is_numbas_own(tmp_path) -> None:
    text = """
        import numba, numba.core.types, sys
        from numba import njit, float32, types
        from numba.cuda import types as of_cuda, libdevice
        print(numba.__version__ == sys.modules["numba"].__version__, njit(lambda x: x + 1)(1), float32 is types.float32)
        print(libdevice.__name__, "cupy" in sys.modules)
    """
    assert _run(tmp_path, text).split() == ["True", "2", "True", "numba.cuda.libdevice", "False"]


def test_a_function_of_elements_needs_no_import_of_numba_cuda(tmp_path) -> None:
    text = """
        import numpy as np
        import numba
        from numba import guvectorize, vectorize

        @vectorize(["float32(float32, float32)"], target="cuda")
        def add(x, y):
            return x + y
        print(add(np.float32([1, 2]), np.float32([3, 4])), numba.vectorize(lambda x: 2 * x)(4))

        @guvectorize(["(float32[:], float32[:])"], "(n)->()", target="cuda")
        def total(row, out):
            out[0] = 0
            for x in row:
                out[0] += x
        print(total(np.float32([[1, 2], [3, 4]])))
    """
    assert _run(tmp_path, text).split("\n")[:2] == ["[4. 6.] 8", "[3. 7.]"]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("import cupy.nothing", "the stand-in for cupy has no cupy.nothing"),
        ("from cupy import nothing", "module 'cupy' has no attribute 'nothing': CuPy has none of that name"),
        ("from cupy import poly1d", "cannot import name 'poly1d' from 'cupy': cupy.poly1d is not on the simulator"),
        ("from numba.cuda import nvvm", "cuda.jit and cuda.compile_ptx call the compiler"),
    ],
)
def test_what_there_is_not_is_refused_with_a_reason(tmp_path, statement: str, said: str) -> None:
    assert said in _run(tmp_path, f"try:\n    {statement}\nexcept ImportError as error:\n    print(error)")


def test_children_follow_by_the_environment_and_keep_their_own_sitecustomize(tmp_path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('own')\n")
    text = """
        import subprocess, sys
        child = "from numba import cuda; print(cuda.__spec__.name)"
        subprocess.run([sys.executable, "-c", child], check=True)
    """
    path = f"{COURSE}:{tmp_path}"
    assert _run(tmp_path, text, PYTHONPATH=path).split() == ["own", "own", "warplab.dropin.numba_cuda"]


def test_nothing_of_the_package_is_read_where_it_is_not_asked_for(tmp_path) -> None:
    text = "import sys; print([n for n in sys.modules if n.startswith('warplab')], __import__.__module__)"
    assert python(tmp_path, "-c", text).stdout == "[] builtins\n"
    assert python(tmp_path, "-c", text, WARPLAB="1").stdout == "[] builtins\n"


def test_a_kernel_may_name_the_modules(tmp_path) -> None:
    (tmp_path / "kernels.py").write_text(
        textwrap.dedent("""
        import numba
        import numba.cuda as nc

        @numba.cuda.jit
        def k(x):
            i = numba.cuda.grid(1)
            x[i] = nc.threadIdx.x + numba.float32(1)
        """)
    )
    text = "import numpy as np; from kernels import k; x = np.zeros(32, np.float32); k[1, 32](x); print(x.sum())"
    assert _run(tmp_path, text) == "528.0\n"


@pytest.mark.parametrize("library", ["triton", "numba_cuda_mlir"])
def test_a_library_that_stays_itself_launches_on_the_simulator(tmp_path, library: str) -> None:
    pytest.importorskip(library)
    (tmp_path / "kernels.py").write_text(OF_LIBRARY[library])
    text = "import numpy as np; from kernels import launch; x = np.ones(100, np.float32); launch(x); print(x.sum())"
    assert _run(tmp_path, text) == "200.0\n"


def test_a_gpu_needs_no_stand_in(tmp_path) -> None:
    ran = python(tmp_path, "-c", INSTALL, WARPLAB_BACKEND="gpu")
    assert "WARPLAB_BACKEND=gpu asks for a GPU" in ran.stderr
