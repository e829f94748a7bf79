"""Numba's inner modules and private names are used behind one door, warplab.compile.numba_internals."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

COURSE = Path(__file__).resolve().parents[3]
DOOR = COURSE / "warplab" / "compile" / "numba_internals.py"
PACKAGES = ("warplab", "warpcourse", "kernels", "digits", "tools")
PUBLIC = {"numba", "numba.cuda", "numba.types", "numba.cuda.types", "numba.cuda.random"}


def inner_names(source: str) -> list[str]:
    """List the names of Numba in `source` that are not public: imported, reached through a module, or given as text."""
    nodes = list(ast.walk(ast.parse(source)))
    paths, modules = [], {}  # what a name of `source` stands for
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                paths.append(name.name)
                modules[name.asname or name.name.split(".")[0]] = name.name if name.asname else name.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                paths.append(f"{node.module}.{name.name}")
                modules[name.asname or name.name] = paths[-1]
        elif isinstance(node, ast.Constant) and re.fullmatch(r"numba(_cuda)?(\.\w+)+", str(node.value)):
            paths.append(node.value)
    for node in nodes:
        if isinstance(node, ast.Attribute):
            first, *rest = ast.unparse(node).split(".")
            paths.append(".".join([modules.get(first, ""), *rest]))
    return [path for path in paths if re.match(r"numba(_cuda)?(\.|$)", path) and _is_inner(path)]


def _is_inner(path: str) -> bool:
    parts = path.split(".")
    here = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return any(re.match(r"_(?!_)", part) for part in parts) or any(_is_module(p) for p in here if p not in PUBLIC)


def _is_module(path: str) -> bool:
    parent, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(parent), name, None) if parent else None
        return isinstance(found or importlib.import_module(path), ModuleType)
    except ImportError:
        return False


@pytest.mark.parametrize(
    "source",
    [
        "import numba.cuda.dispatcher",
        "import numba.cuda.core.config as settings",
        "from numba.cuda.core import config",
        "from numba.cuda import config",
        "from numba.core.errors import TypingError",
        "from numba.cuda.decorators import _validate_shared_memory_carveout",
        "import numba_cuda.numba.cuda",
        "import numba.cuda\nnumba.cuda.config.CUDA_DEBUGINFO_DEFAULT",
        "def late():\n    from numba import cuda as c\n    return c.cudadrv.driver.driver",
        "from numba.cuda import random as r\nr._hidden",
        'importlib.import_module("numba.cuda.core.sigutils")',
    ],
)
def test_inner_names_are_found(source):
    assert inner_names(source)


@pytest.mark.parametrize(
    "source",
    [
        "from numba import float32, types",
        "from numba import cuda\ncuda.jit\ncuda.types.float32\ncuda.shared.array",
        "from numba.cuda import CUSource, types\nfrom numba.cuda.random import xoroshiro128p_dtype",
        "import numba.cuda as n\nn.__file__\nother.numba.cuda.core.config",
        "from warplab import cuda\ncuda.cudadrv\ncuda._hidden",
        'print("numba.cuda.random has them")',
    ],
)
def test_public_names_pass(source):
    assert inner_names(source) == []


def test_no_other_module_uses_inner_names_of_numba():
    modules = [path for package in PACKAGES for path in (COURSE / package).rglob("*.py") if path != DOOR]
    found = {path.relative_to(COURSE): inner_names(path.read_text()) for path in modules if "numba" in path.read_text()}
    assert len(found) > 20
    assert {path: names for path, names in found.items() if names} == {}


def test_a_first_compilation_imports_no_scipy_linalg_and_finds_that_it_is_there():
    text = """import sys
from numba import float32
from warplab.compile.numba_compiler import compile_numba
compile_numba(lambda a: None, (float32,))
print(*[name for name in sys.modules if name.startswith("scipy.linalg")])
from numba.cuda.np.arraymath import _HAVE_BLAS
import scipy.linalg.cython_blas
print(_HAVE_BLAS, hasattr(scipy.linalg.cython_blas, "__pyx_capi__"))
"""
    done = subprocess.run([sys.executable, "-c", text], cwd=COURSE, capture_output=True, text=True)
    assert done.stdout == "\nTrue True\n", done.stderr


@pytest.mark.parametrize("name", ["dispatcher", "kernel_cache", "vectorizers"])
def test_what_a_stand_in_overrides_is_still_numbas(name):
    """A private method that this module does not call is for Numba to call, so a class of Numba's has it, too."""
    module = importlib.import_module(f"warplab.dropin.numba_cuda.{name}")
    source, overridden = inspect.getsource(module), set()
    for kind in vars(module).values():
        bases = [b for b in getattr(kind, "__mro__", ()) if b.__module__.startswith("numba.")]
        if not bases or kind.__module__ != module.__name__:
            continue
        private = {n for n in vars(kind) if re.match(r"_(?!_)", n) and not re.search(rf"\w\.{n}\b", source)}
        assert private <= {n for base in bases for n in vars(base)}
        overridden |= private
    assert overridden
